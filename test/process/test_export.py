#!/usr/bin/python3
"""octctl export: numpy, PNG and MATLAB files read back by numpy, PIL and h5py and compared to the
bit, with order, spacing and limits; what is refused; what is left behind."""
import re, shutil, signal
import h5py
import numpy as np
from PIL import Image
from octtest import *
from recordingrig import *


def exported(source, out, *options):
    """What octctl export --json says of the file, and the file."""
    said = json.loads(ok("export", source, at(out), *options, "--force", "--json")[0])
    assert len(said) == 1 and said[0]["file"] == at(out)
    return said[0], at(out)


def array(source, *options):
    said, path = exported(source, "array.npy", *options)
    return said, np.load(path)


def equal(a, b):
    assert a.dtype == b.dtype and a.shape == b.shape, (a.dtype, a.shape, b.dtype, b.shape)
    assert np.array_equal(a, b, equal_nan=a.dtype.kind == "f"), np.argwhere(a != b)[:5]


def near(said, lo, hi):
    """JSON gives numbers but for their last bit."""
    return abs(said["lo"] - lo) <= 1e-15 * abs(lo) and abs(said["hi"] - hi) <= 1e-15 * abs(hi)


@case
def pictures_have_common_limits():
    """B-scans of u8 have one pair of limits, or are dB in f32; where limits agree they stay"""
    db = u8_recording(at("own.h5"))
    said, u8 = array(at("own.h5"))
    with h5py.File(at("own.h5")) as f:
        valid = f["frames/valid"][:] == 1
        lo, hi = f["frames/lo"][valid].min(), f["frames/hi"][valid].max()
        assert lo > f["frames/lo"][:].min() or hi < f["frames/hi"][:].max(), "missing ones count"
    assert near(said, lo, hi) and said["missing"] == 2, said
    equal(u8, common_u8(db, lo, hi))
    assert (u8[2] == 0).all() and (u8[4, 3] == 0).all() and u8[4, 4].any()
    u8_recording(at("other.h5"), seed=2)  # which differs in its pixels alone
    assert array(at("other.h5"))[0]["uid"] != said["uid"]
    said, f32 = array(at("own.h5"), "--sample", "f32")
    equal(f32, db.astype(np.float32))
    assert said["lo"] is None and said["unit"] == "dB" and np.isnan(f32[[2, 5]]).all()
    u8_recording(at("same.h5"), limits="same", missing=(), lost=())
    with h5py.File(at("same.h5")) as f:
        equal(array(at("same.h5"))[1], f["bscans"][:])
    db = u8_recording(at("none.h5"), limits="none", config="", missing=())
    said, u8 = array(at("none.h5"))
    assert (said["lo"], said["unit"]) == (None, "dB"), said
    equal(u8, np.nan_to_num(db).astype(np.uint8))


@case
def packed_and_linear():
    """packed, big-endian and linear recordings are the same to an export, but for the unit"""
    u8_recording(at("own.h5"))
    _, want = array(at("own.h5"))
    shutil.copy(at("own.h5"), at("packed.h5"))
    with h5py.File(at("packed.h5"), "r+") as f:
        pixels, about = f["bscans"][:], dict(f["bscans"].attrs)
        del f["bscans"]
        f.create_dataset("bscans", data=pixels, chunks=(1, 13, 37), compression="gzip",
                         shuffle=True)
        f["bscans"].attrs.update(about)
        f.attrs["config"] = "[pipeline]\nlog = no\n"
    said, got = array(at("packed.h5"))
    equal(got, want)
    assert said["unit"] == "counts^2" and said["spacing_um"] == [12.5, 5.25, 3.5]
    with h5py.File(at("big.h5"), "w") as f:
        f["bscans"] = np.arange(24, dtype=">f8").reshape(2, 3, 4)
    said, got = array(at("big.h5"))
    equal(got, np.arange(24, dtype=np.float32).reshape(2, 3, 4))
    assert said["unit"] == "" and said["spacing_um"] == [None] * 3


@case
def ranges():
    """--range cuts off, --frames chooses, and the report says what is which"""
    db = u8_recording(at("own.h5"))
    said, u8 = array(at("own.h5"), "--range", "-5:20.5")
    assert (said["lo"], said["hi"]) == (-5, 20.5)
    equal(u8, common_u8(db, -5, 20.5))
    assert set(np.unique(u8)) >= {0, 255}
    said, some = array(at("own.h5"), "--frames", "1:4", "--range=-5:20.5")
    equal(some, u8[1:4])
    assert said["missing"] == 1 and said["dims"] == [3, 13, 37]
    assert said["axes"] == ["bscan", "line", "depth"] and said["spacing_um"] == [12.5, 5.25, 3.5]
    out, _ = ok("export", at("own.h5"), at("said.npy"), "--range=-5:20.5", "--pixel-um=2,-,10")
    assert out == (f"{at('said.npy')}: bscans as npy, u8 7 bscan (10 um) x 13 line (5.25 um) x 37 "
                   f"depth (2 um), 0 is -5 and 255 is 20.5 dB\n{at('said.npy')}: 2 of 7 B-scans of "
                   f"{at('own.h5')} were never written and are 0\n"), out


@case
def floats():
    """f32 B-scans stay as they are; as u8 the display limits count, else the extremes"""
    rng = np.random.default_rng(2)
    data = rng.normal(20, 9, (4, 6, 10)).astype(np.float32)
    data[1, 2, 3], data[2, 1, 1] = np.nan, -np.inf
    with h5py.File(at("f32.h5"), "w") as f:
        f["bscans"] = data
        common(f, f["bscans"], (1, 2, 3), ("bscan", "line", "depth"))
    equal(array(at("f32.h5"))[1], data)
    said, u8 = array(at("f32.h5"), "--sample", "u8")
    finite = data[np.isfinite(data)].astype(float)
    assert near(said, finite.min(), finite.max()), said
    equal(u8, common_u8(np.where(data == -np.inf, finite.min(), data).astype(float), finite.min(),
                        finite.max()))
    with h5py.File(at("f32.h5"), "r+") as f:
        f["frames/lo"], f["frames/hi"] = np.full(4, 11.5), np.array([30, 31, 32, 30.5])
    said, u8 = array(at("f32.h5"), "--sample", "u8")
    assert (said["lo"], said["hi"]) == (11.5, 32)
    equal(u8, common_u8(data.astype(float), 11.5, 32))


@case
def spectra():
    """spectra come as the camera sent them; one recording has one uid, whatever its label"""
    base = settings(scan=dict(lines=24, bscans=5), calibration=dict(wavelengths=calibration(832)),
                    pipeline=dict(crop_last=64))
    ok("synth", at("raw.h5"), *base)
    with h5py.File(at("raw.h5")) as f:
        said, u16 = array(at("raw.h5"), "--dataset", "/spectra")
        equal(u16, f["spectra"][:])
        assert said["axes"][2] == "sample" and said["spacing_um"][2] is None
        equal(array(at("raw.h5"), "--dataset", "spectra", "--frames=4:5")[1], f["spectra"][4:5])
    ok("recon", at("raw.h5"), at("real.h5"), *base)
    with h5py.File(at("real.h5")) as f:
        lo, hi = f["frames/lo"][:], f["frames/hi"][:]
        db = lo[:, None, None] + f["bscans"][:] * (hi - lo)[:, None, None] / 255.0
        um = list(f["bscans"].attrs["axis_spacing_um"])
    said, u8 = array(at("real.h5"))
    equal(u8, common_u8(db, lo.min(), hi.max()))
    assert said["spacing_um"] == um
    uid = said["uid"]
    ok("label", at("real.h5"), "--eye", "OD", "--pseudonym", "other")
    shutil.copy(at("real.h5"), at("renamed.h5"))
    assert array(at("renamed.h5"), "--dataset=enface")[0]["uid"] == uid and len(uid) == 32
    assert said["uid"] != array(at("raw.h5"), "--dataset=spectra")[0]["uid"]
    refused_by("export", 2, "octctl recon makes them", at("raw.h5"), at("x.npy"))
    refused_by("export", 2, "holds no spectra", at("real.h5"), at("x.npy"), "--dataset", "spectra")


@case
def from_above():
    """en face: the mean of a slab, or what the recording says; missing rows are NaN"""
    db = u8_recording(at("own.h5"))
    f32 = db.astype(np.float32).astype(float)

    def mean(first, last):
        return f32[None, :, :, first:last].mean(axis=3).astype(np.float32)
    said, face = array(at("own.h5"), "--dataset", "enface", "--slab", "4:19")
    np.testing.assert_allclose(face, mean(4, 19), rtol=1e-6)
    assert (np.isnan(face) == np.isnan(mean(4, 19))).all() and face.dtype == np.float32
    assert said["dims"] == [1, 7, 13] and said["spacing_um"] == [15 * 3.5, 12.5, 5.25], said
    assert said["missing"] == 2
    np.testing.assert_allclose(array(at("own.h5"), "--dataset=enface")[1], mean(0, 37), rtol=1e-6)
    most = f32[None].max(axis=3).astype(np.float32)
    highest = "analysis.enface_projection=max"
    equal(array(at("own.h5"), "--dataset=enface", "--set", highest)[1], most)
    u8_recording(at("max.h5"), config=CONFIG + "[analysis]\nenface_projection = slab\n"
                 "enface_slab_first = 0.25\nenface_slab_last = 0.5\n")
    first, last = int(0.25 * 37), round(0.5 * 37)
    shares = array(at("max.h5"), "--dataset=enface")[1]
    assert any(np.allclose(shares, mean(a, b), rtol=1e-6, equal_nan=True)
               for a in (first, first + 1) for b in (last, last + 1)), "shares of the depth"
    said, u8 = array(at("own.h5"), "--dataset=enface", "--slab=4:19", "--sample=u8", "--frames=0:5")
    values = face[:, :5].astype(float)
    assert near(said, np.nanmin(values), np.nanmax(values)), said
    equal(u8, common_u8(values, np.nanmin(values), np.nanmax(values)))
    refused_by("export", 2, "its depth is 0:37", at("own.h5"), at("x.npy"), "--dataset=enface", "--slab=4:38")
    refused_by("export", 2, "--slab is of --dataset enface", at("own.h5"), at("x.npy"), "--slab=4:38")


@case
def steps():
    """--frames A:B:STEP takes every STEP-th plane or row, and they lie as much farther apart"""
    u8_recording(at("step.h5"))
    values = np.random.default_rng(5).normal(0, 1, (7, 13, 20)).astype(np.float32)
    there = np.ones(7)
    add_result(at("step.h5"), "average", values, ("bscan", "line", "depth"), (12.5, 5.25, 3.5), "dB", there)
    add_result(at("step.h5"), "slab", values[:, :, 0], ("bscan", "line"), (12.5, 5.25), "dB", there)
    f32 = "--sample=f32"
    for axis, source, *options in ((0, "step.h5", f32), (0, "raw.h5", "--dataset=spectra"),
                                   (1, "step.h5", "--dataset=enface", "--slab=4:19", f32),
                                   (0, "step.h5", "--dataset=analysis/average", f32),
                                   (1, "step.h5", "--dataset=analysis/slab", f32)):
        whole, every = array(at(source), *options)
        for um in (), ("--pixel-um=-,-,10",):
            said, some = array(at(source), *options, *um, "--frames=1:5:3")
            equal(some, every.take([1, 4], axis))
            apart = 10 if um else whole["spacing_um"][axis]
            assert said["spacing_um"][axis] == (None if apart is None else 3 * apart), (options, said)
    for name, *options in ("bscans",), ("average", "--dataset=analysis/average"):
        with h5py.File(exported(at("step.h5"), "step.mat", *options, "--frames=0:7:3")[1]) as f:
            assert abs(matlab(f, "plane_s")[0, 0] - 3 * 0.004) < 1e-9, name


@case
def results():
    """results of analyses: of B-scans, rows, blocks and the volume, with their own limits"""
    u8_recording(at("res.h5"))
    rng = np.random.default_rng(3)
    average = rng.integers(0, 256, (7, 13, 20), dtype=np.uint8)
    valid, lo, hi = [1, 1, 0, 1, 1, 0, 1], rng.uniform(-9, -5, 7), rng.uniform(20, 30, 7)
    add_result(at("res.h5"), "average", average, ("bscan", "line", "depth"), (12.5, 5.25, 3.5),
               "dB", valid, lo=lo, hi=hi)
    slab = rng.normal(0, 1, (7, 13)).astype(np.float32)
    add_result(at("res.h5"), "slab", slab, ("bscan", "line"), (12.5, 5.25), "dB", valid)
    face = rng.normal(0, 1, (7, 13)).astype(np.float32)
    add_result(at("res.h5"), "enface", face, ("bscan", "line"), (12.5, 5.25), "dB", [1], True)
    add_result(at("res.h5"), "layers", rng.normal(0, 1, (7, 4, 13)).astype(np.float32),
               ("bscan", "row", "line"), (12.5, np.nan, 5.25), "px", [0] * 7)
    blocks = rng.integers(0, 256, (3, 13, 20), dtype=np.uint8)
    add_result(at("res.h5"), "blocks", blocks, ("bscan", "line", "depth"), (37.5, 5.25, 3.5), "dB",
               [1, 0, 1], lo=[-1, -99, -2], hi=[20, 99, 21], block=3)
    db = lo[:, None, None] + average * (hi - lo)[:, None, None] / 255.0
    there = np.array(valid) == 1
    db[~there] = np.nan
    said, u8 = array(at("res.h5"), "--dataset", "analysis/average")
    assert near(said, lo[there].min(), hi[there].max()) and said["missing"] == 2, said
    equal(u8, common_u8(db, lo[there].min(), hi[there].max()))
    equal(array(at("res.h5"), "--dataset=analysis/average", "--sample=f32", "--frames=3:6")[1],
          db.astype(np.float32)[3:6])
    said, rows = array(at("res.h5"), "--dataset", "analysis/slab")
    equal(rows, np.where(there[:, None], slab, np.float32(np.nan))[None])
    assert said["axes"] == ["", "bscan", "line"] and said["spacing_um"] == [None, 12.5, 5.25]
    equal(array(at("res.h5"), "--dataset", "analysis/slab", "--frames=3:6")[1], rows[:, 3:6])
    equal(array(at("res.h5"), "--dataset", "analysis/enface")[1], face[None])
    said, three = array(at("res.h5"), "--dataset", "analysis/blocks")
    low, span = (np.array(n, float)[:, None, None] for n in ((-1, 0, -2), (21, 0, 23)))
    of_blocks = low + blocks * span / 255
    of_blocks[1] = np.nan
    equal(three, common_u8(of_blocks, -2, 21))
    assert (said["lo"], said["hi"], said["missing"]) == (-2, 21, 1), said
    assert said["spacing_um"] == [37.5, 5.25, 3.5]
    with h5py.File(exported(at("res.h5"), "blocks.mat", "--dataset=analysis/blocks")[1]) as f:
        assert abs(matlab(f, "plane_s")[0, 0] - 0.012) < 1e-9  # three B-scans
    for name in ("enface", "blocks"):
        refused_by("export", 2, "no image of each B-scan", at("res.h5"), at("x.npy"),
                f"--dataset=analysis/{name}", "--frames=3:6")
    refused_by("export", 2, "it has average, blocks, enface, layers, slab", at("res.h5"), at("x.npy"),
            "--dataset=analysis/cells")
    refused_by("export", 2, "is empty: no result", at("res.h5"), at("x.npy"), "--dataset=analysis/layers")
    exported(at("res.h5"), "average/", "--dataset=analysis/average")
    equal(np.array(Image.open(at("average/plane-0003.png"))), u8[3].T)


@case
def pictures():
    """PNG: a folder of planes, depth downwards, described, or one picture; 8 and 16 bits"""
    u8_recording(at("own.h5"))
    said, u8 = array(at("own.h5"))
    shutil.rmtree(at("png"), ignore_errors=True)
    exported(at("own.h5"), "png/")
    names = [f"plane-{v:04}.png" for v in range(7)] + ["volume.json"]
    assert sorted(os.listdir(at("png"))) == names
    for v in range(7):
        picture = Image.open(at(f"png/plane-{v:04}.png"))
        assert picture.mode == "L" and picture.size == (13, 37)
        equal(np.array(picture), u8[v].T)
        dpi = picture.info["dpi"]
        assert abs(dpi[0] * 5.25 / 25400 - 1) < 1e-5 and abs(dpi[1] * 3.5 / 25400 - 1) < 1e-5, dpi
    facts = json.load(open(at("png/volume.json")))
    assert facts["axes"] == ["bscan", "depth", "line"] and facts["dims"] == [7, 37, 13]
    assert facts["spacing_um"] == [12.5, 3.5, 5.25] and facts["missing_planes"] == [2, 5]
    assert (facts["lo"], facts["hi"], facts["unit"]) == (said["lo"], said["hi"], "dB")
    assert facts["eye"] == "OS" and facts["acquisition_uid"] == said["uid"]
    assert facts["plane_s"] == 0.004 and facts["refractive_index"] == 1.36, facts
    said, path = exported(at("own.h5"), "face.png", "--dataset=enface", "--slab=4:19")
    picture = Image.open(path)
    equal(np.array(picture), array(at("own.h5"), "--dataset=enface", "--slab=4:19",
                                   "--sample=u8")[1][0])
    assert json.loads(picture.info["Description"])["spacing_um"] == [52.5, 12.5, 5.25]
    refused_by("export", 2, "name a folder", at("own.h5"), at("many.png"))
    refused_by("export", 2, "not standard output", at("own.h5"), "-", "--to=npy")
    refused_by("export", 2, "takes no f32", at("own.h5"), at("f32.png"), "--sample=f32")
    exported(at("raw.h5"), "spectra/", "--dataset=spectra", "--frames=1:3")
    with h5py.File(at("raw.h5")) as f:
        equal(np.array(Image.open(at("spectra/plane-0001.png"))).astype(np.uint16),
              f["spectra"][2])


@case
def folders_are_replaced_whole():
    """a folder of pictures is replaced with --force alone, and only where an export made it"""
    u8_recording(at("own.h5"))
    exported(at("own.h5"), "again/")
    refused_by("export", 1, "exists already", at("own.h5"), at("again/"))
    refused_by("export", 1, "exists already", at("own.h5"), at("again"), "--to=png")
    exported(at("own.h5"), "again/", "--frames=0:2")
    assert len(os.listdir(at("again"))) == 3
    open(at("again/notes.txt"), "w").write("mine")
    refused_by("export", 2, "holds other files", at("own.h5"), at("again/"), "--force")
    assert open(at("again/notes.txt")).read() == "mine" and len(os.listdir(at("again"))) == 4
    os.makedirs(at("own"), exist_ok=True)
    refused_by("export", 2, "holds other files", at("own.h5"), at("own"), "--to=png", "--force")
    refused_by("export", 2, "is no folder", at("own.h5"), at("own.h5"), "--to=png", "--force")
    refused_by("export", 1, "cannot be made", at("own.h5"), at("nowhere/at/all/"))


def matlab(f, name):
    """A variable as MATLAB shows it."""
    d = f[name]
    kind = d.attrs["MATLAB_class"].decode()
    if d.attrs.get("MATLAB_empty", 0):
        assert tuple(d[:]) == (0, 0)
        return "" if kind == "char" else np.zeros((0, 0))
    if kind == "char":
        assert d.shape[1] == 1 and d.dtype == np.uint16
        return "".join(map(chr, d[:, 0]))
    assert np.dtype(dict(double="f8", single="f4", logical="u1").get(kind, kind)) == d.dtype
    return d[()].T


@case
def matlab_files():
    """MATLAB 7.3: header, classes, the array of size depth, A-lines, B-scans, and what it is"""
    u8_recording(at("own.h5"))
    for options in ((), ("--sample", "f32"), ("--dataset", "enface")):
        want = array(at("own.h5"), *options)
        said, path = exported(at("own.h5"), "own.mat", *options)
        start = open(path, "rb").read(512)
        assert start[:20] == b"MATLAB 7.3 MAT-file," and start[124:128] == b"\0\2IM", start
        assert start[116:124] == bytes(8) and start[128:] == bytes(384)
        with h5py.File(path) as f:
            assert f.userblock_size == 512
            equal(np.ascontiguousarray(matlab(f, "data").T), want[1])
            assert matlab(f, "data").shape == tuple(said["dims"][::-1])
            assert matlab(f, "axes") == ",".join(said["axes"][::-1])
            assert list(matlab(f, "spacing_um")[0]) == said["spacing_um"][::-1]
            lo = matlab(f, "lo")[0, 0]
            assert (said["lo"] is None and np.isnan(lo)) or abs(lo - said["lo"]) < 1e-14
            assert matlab(f, "eye") == "OS" and matlab(f, "unit") == "dB"
            assert matlab(f, "acquisition_uid") == said["uid"] and "pseudonym" not in f
            if not options:
                assert list(matlab(f, "valid")[0]) == [1, 1, 0, 1, 1, 0, 1]
    with h5py.File(exported(at("none.h5"), "none.mat")[1]) as f:
        assert np.isnan(matlab(f, "lo")).all()
    ok("label", at("own.h5"), "--eye", "none")
    with h5py.File(exported(at("own.h5"), "own.mat")[1]) as f:
        assert matlab(f, "eye") == ""
    with h5py.File(exported(at("raw.h5"), "raw.mat", "--dataset=spectra")[1]) as f, \
            h5py.File(at("raw.h5")) as g:
        equal(np.ascontiguousarray(matlab(f, "data").T), g["spectra"][:])


@case
def lengths():
    """a length that a format writes and nobody knows stops it and names --pixel-um: never a 1"""
    nan = np.nan
    for axis, words in enumerate(("B-scan to B-scan", "A-line to A-line", "depth pixel to depth")):
        um = [12.5, 5.25, 3.5]
        um[axis] = nan
        u8_recording(at("um.h5"), um=um)
        given = "--pixel-um=" + ",".join("7.5" if i == axis else "-" for i in (2, 1, 0))
        for out in ("um.ome.tif", "um.nii.gz", "um.dcm"):
            refused_by("export", 2, f"the length from {words}", at("um.h5"), at(out))
            assert "--pixel-um D,L,B" in run("octctl", "export", at("um.h5"), at(out))[2]
            said, _ = exported(at("um.h5"), out, given)
            assert said["spacing_um"] == [7.5 if i == axis else u for i, u in enumerate(um)], said
            os.remove(at(out))
        exported(at("um.h5"), "um/")
        facts = json.load(open(at("um/volume.json")))
        assert facts["spacing_um"] == [None if np.isnan(um[i]) else um[i] for i in (0, 2, 1)], facts
        with h5py.File(exported(at("um.h5"), "um.mat")[1]) as f:
            np.testing.assert_array_equal(matlab(f, "spacing_um"), [um[::-1]])
    u8_recording(at("um.h5"), um=(nan, 5.25, nan))
    refused_by("export", 2, "the length from B-scan", at("um.h5"), at("face.nii"), "--dataset=enface")
    u8_recording(at("places.h5"), um=(12.5, 5.25, 3.5))
    twice = "--set=scan.repeats=2"  # at each place
    for more in [], ["--dataset=enface"]:
        refused_by("export", 2, "2 B-scans lie at each place", at("places.h5"), at("twice.nii"), twice, *more)
    said, _ = exported(at("places.h5"), "twice.npy", twice)
    assert said["spacing_um"] == [None, 5.25, 3.5], said
    said, _ = exported(at("places.h5"), "twice.nii", twice, "--pixel-um=-,-,7")
    assert said["spacing_um"][0] == 7, said
    said, _ = exported(at("um.h5"), "face.nii", "--dataset=enface", "--pixel-um=-,-,3")
    assert said["spacing_um"] == [None, 3, 5.25]
    said, _ = exported(at("um.h5"), "one.nii", "--frames=3:4", "--pixel-um=2,-,-")
    assert said["spacing_um"] == [None, 5.25, 2]


@case
def every_format():
    """help and messages name every format; each writes B-scans, OME-TIFF several recordings"""
    u8_recording(at("own.h5"))
    text = ok("help", "export")[0]
    said = run("octctl", "export", at("own.h5"), at("x"), "--to=gif")[2]
    formats = dict(re.findall(r"([a-z-]+) \((\S+?)\)", said))
    assert len(formats) == 6, formats
    for name, suffix in formats.items():
        assert name in text and suffix in text, (name, suffix, text)
        said, _ = exported(at("own.h5"), "each" + suffix)
        assert said["format"] == name and said["dims"] == [7, 13, 37]
        assert json.loads(ok("export", at("own.h5"), at("by-name"), "--to", name.upper(), "--force",
                             "--json")[0])[0]["format"] == name
        (shutil.rmtree if os.path.isdir(at("by-name")) else os.remove)(at("by-name"))
    said = json.loads(ok("export", at("own.h5"), at("real.h5"), at("two.ome.tif"), "--json")[0])
    assert [one["dims"][0] for one in said] == [7, 5] and said[0]["uid"] != said[1]["uid"]


@case
def nobody_is_named():
    """no export holds the pseudonym unasked, a path, a file's name or the configuration"""
    u8_recording(at("own.h5"))
    words = [w.encode(code) for w in (PSEUDONYM, WHERE, "own.h5", "refractive_index = ", "[record]")
             for code in ("utf-8", "utf-16-le")]
    for out in ("secret.npy", "secret.mat", "secret/"):
        exported(at("own.h5"), out)
        paths = [at(out)]
        if out[-1] == "/":
            paths = [os.path.join(at(out), name) for name in os.listdir(at(out))]
        for path in paths:
            content = open(path, "rb").read()
            found = [w for w in words if w in content]
            assert not found, (path, found)
    with h5py.File(exported(at("own.h5"), "named.mat", "--pseudonym")[1]) as f:
        assert matlab(f, "pseudonym") == PSEUDONYM
    exported(at("own.h5"), "named/", "--pseudonym")
    assert json.load(open(at("named/volume.json")))["pseudonym"] == PSEUDONYM


@case
def wrong_words():
    """mistakes in the command line end with status 2 and one line; files that exist stay"""
    u8_recording(at("own.h5"))
    own = at("own.h5")
    for words, arguments in (
            ("two files are needed", [own]),
            ("there are npy", [own, at("x.tar")]),
            ("--to gif: no such format", [own, at("x.npy"), "--to=gif"]),
            ("takes one recording", [own, own, at("x.npy")]),
            ("--dataset frames", [own, at("x.npy"), "--dataset=frames"]),
            ("--dataset analysis/", [own, at("x.npy"), "--dataset=analysis/"]),
            ("--dataset analysis/a/b", [own, at("x.npy"), "--dataset=analysis/a/b"]),
            ("--sample i16", [own, at("x.npy"), "--sample=i16"]),
            ("--range needs", [own, at("x.npy"), "--range=5"]),
            ("--range needs", [own, at("x.npy"), "--range=5:5"]),
            ("--range needs", [own, at("x.npy"), "--range=1:nan"]),
            ("--range is of", [own, at("x.npy"), "--range=1:2", "--sample=f32"]),
            ("--frames needs", [own, at("x.npy"), "--frames=3"]),
            ("--frames needs", [own, at("x.npy"), "--frames=-1:3"]),
            ("--frames needs", [own, at("x.npy"), "--frames=3:3"]),
            ("--frames needs", [own, at("x.npy"), "--frames=1:3:0"]),
            ("--frames needs", [own, at("x.npy"), "--frames=1:3:1:1"]),
            ("--frames needs", [own, at("x.npy"), "--frames=1:4294967296"]),
            ("has B-scans 0:7", [own, at("x.npy"), "--frames=3:8"]),
            ("--spacing needs", [own, at("x.npy"), "--spacing=3"]),
            ("--pixel-um needs", [own, at("x.npy"), "--pixel-um=0,4,3"]),
            ("--pixel-um needs", [own, at("x.npy"), "--pixel-um=3,4,5,6"]),
            ("--pixel-um needs", [own, at("x.npy"), "--pixel-um=3,,5"]),
            ("--slab needs", [own, at("x.npy"), "--dataset=enface", "--slab=7:7"]),
            ("leave --sample out", [at("raw.h5"), at("x.npy"), "--dataset=spectra", "--sample=u8"]),
            ("is an input itself", [own, own, "--to=npy", "--force"]),
            ("holds a recording", [own, at("raw.h5"), "--to=npy", "--force"])):
        refused_by("export", 2, words, *arguments)
    open(at("there.npy"), "w").write("there")
    refused_by("export", 1, "exists already", own, at("there.npy"))
    assert open(at("there.npy")).read() == "there"
    refused_by("export", 1, "cannot be made", own, at("nowhere/x.npy"))
    refused_by("export", 1, "cannot open", at("absent.h5"), at("x.npy"))
    refused_by("export", 1, "too few", at("there.npy"), at("x.npy"))
    with h5py.File(at("mixed.h5"), "w") as f:
        f["bscans"] = np.full((3, 4, 5), 51, np.uint8)
        f["frames/lo"], f["frames/hi"] = np.array([0.0, 0, 1]), np.array([1.0, 0, 2])
    for options in ([], ["--sample=f32"], ["--dataset=enface"]):
        refused_by("export", 1, "only 2 of 3 B-scans", at("mixed.h5"), at("x.npy"), *options)
    _, u8 = array(at("mixed.h5"), "--range=0:2")
    assert [set(plane.flat) for plane in u8] == [{26}, {51}, {153}], u8


def broken(number):
    """A recording with fault `number`; None: there are no more."""
    path = at("broken.h5")
    u8_recording(path)
    add_result(path, "slab", np.zeros((7, 13), np.float32), ("bscan", "line"), (1, 1), "dB",
               [1] * 7)
    content = open(path, "rb").read()

    def replaced(name, data, group="bscans"):
        with h5py.File(path, "r+") as f:
            del f[name]
            if data is not None:
                f[name] = data

    def attribute(name, value):
        with h5py.File(path, "r+") as f:
            f["bscans"].attrs[name] = value
    faults = [
        lambda: open(path, "wb").write(content[:len(content) // 2]),
        lambda: open(path, "wb").write(content[:2048]),
        lambda: open(path, "wb").write(b""),
        lambda: open(path, "wb").write(bytes(5000)),
        lambda: open(path, "wb").write(b"\x89HDF\r\n\x1a\n" + bytes(500)),
        lambda: open(path, "wb").write(content[:600] + os.urandom(400) + content[1000:]),
        lambda: replaced("bscans", None),
        lambda: replaced("bscans", np.zeros((7, 13), np.uint8)),
        lambda: replaced("bscans", np.zeros((7, 13, 37), np.int64)),
        lambda: replaced("bscans", np.zeros((0, 13, 37), np.uint8)),
        lambda: replaced("bscans", np.zeros((7, 13, 37), "S4")),
        lambda: replaced("bscans", h5py.Empty("u1")),
        lambda: replaced("bscans", h5py.SoftLink("/nowhere")),
        lambda: replaced("bscans", h5py.ExternalLink("/etc/passwd", "/x")),
        lambda: replaced("bscans", h5py.SoftLink("/frames")),
        lambda: replaced("frames/valid", np.ones(3, np.uint8)),
        lambda: replaced("frames/lo", np.ones((7, 2))),
        lambda: replaced("frames/lo", np.full(7, np.nan)),
        lambda: replaced("frames/line_valid", np.ones((7, 12), np.uint8)),
        lambda: replaced("frames/hi", np.full(7, np.inf)),
        lambda: replaced("frames/slab_valid", np.full(7, 3, np.uint8)),
        lambda: replaced("frames/slab_rows", np.full(7, 9999, np.uint32)),
        lambda: replaced("analysis/slab", np.zeros((7, 2, 2, 2, 2), np.float32)),
        lambda: replaced("analysis/slab", np.zeros((6, 13), np.float32)),
        lambda: attribute("axis_spacing_um", np.array([0.0, -1, np.inf])),
        lambda: attribute("axis_spacing_um", "a text"),
        lambda: attribute("axis_names", np.array([1, 2, 3])),
    ]
    if number >= len(faults):
        return None
    faults[number]()
    return path


@case
def hostile_files():
    """broken recordings end with one line or are exported; none brings octctl down"""
    n_refused = 0
    number = -1
    while path := broken(number + 1):
        number += 1
        for dataset in ("bscans", "enface", "analysis/slab"):
            status, out, err = run("octctl", "export", path, at("broken.npy"), "--dataset", dataset,
                                   "--force")
            assert status in (0, 1, 2) and (status == 0) == os.path.exists(at("broken.npy")), \
                (number, dataset, status, out, err)
            assert status == 0 or (err.count("\n") == 1 and err.startswith("octctl export: ")), err
            n_refused += status != 0
            if status == 0:
                os.remove(at("broken.npy"))
    assert number >= 20 and n_refused >= 40, (number, n_refused)
    assert not [n for n in os.listdir(at()) if ".new." in n]


def huge(name, V, M=128, D=256, dtype=np.uint8):
    """Takes no room on the disk: chunks that were never written."""
    with h5py.File(at(name), "w") as f:
        f.create_dataset("bscans", (V, M, D), dtype, chunks=(1, M, D))
        common(f, f["bscans"], (1, 1, 1), ("bscan", "line", "depth"))
    return at(name)


@case
def interrupted():
    """Ctrl+C ends an export within a moment, and nothing of it is left behind"""
    path = huge("huge.h5", 100000, 256, 512)
    for out, option in (("cut.npy", "--sample=u8"), ("cut/", "--sample=u8"),
                        ("cut.mat", "--sample=u8"), ("pass.npy", "--dataset=enface")):
        before = sorted(os.listdir(at()))
        if out == "cut.mat":
            path = huge("huge.h5", 4000, 256, 512)  # its space is taken at once
        process = subprocess.Popen([program("octctl"), "export", path, at(out), option],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        catches(process, signal.SIGINT)
        if not out.startswith("pass"):
            until(lambda: sorted(os.listdir(at())) != before, "a file in the making")
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        said, err = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 1 and said == b"", (out, process.returncode, said, err)
        # It may come while a child still looks at the file.
        assert err in (b"octctl export: interrupted: nothing is left behind\n",
                       f"octctl export: {path}: interrupted while it was looked at\n".encode()), err
        assert time.monotonic() - began < PATIENCE_S
        assert sorted(os.listdir(at())) == before, os.listdir(at())


@case
def a_full_disk():
    """a write that fails leaves nothing behind and says so"""
    path = huge("large.h5", 64)
    before = sorted(os.listdir(at()))
    for out in ("full.npy", "full.mat"):
        done = subprocess.run([program("octctl"), "export", path, at(out)], capture_output=True,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE,
                                                                    (1 << 20, 1 << 20)))
        assert done.returncode == 1 and b"cannot be written" in done.stderr, done
        assert done.stderr.count(b"\n") == 1, done
        assert sorted(os.listdir(at())) == before, os.listdir(at())


@case
def memory():
    """a volume is exported plane by plane: memory does not grow with it"""
    peaks = []
    for V in (16, 2048):
        path = huge("long.h5", V)
        process = subprocess.Popen([program("octctl"), "export", path, at("long.npy"), "--force"],
                                   stdout=subprocess.DEVNULL,
                                   env=dict(os.environ, **NOTHING_HELD_BACK))
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0
        peaks.append(used.ru_maxrss // 1024)
    assert os.path.getsize(at("long.npy")) == 128 + 2048 * 128 * 256
    os.remove(at("long.npy"))
    assert peaks[1] < peaks[0] + 32, peaks  # 64 MiB of samples


main()
