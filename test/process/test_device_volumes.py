#!/usr/bin/python3
"""What other devices export, through octctl: a real eye's Spectralis .vol against the picture and the
lines that were published with it, volumes made of it, and DICOM of octctl export and of pydicom,
packed and not, read back identical."""
import io, shutil, struct

import h5py
import numpy as np
import pydicom
from PIL import Image
from pydicom.encaps import encapsulate
from octtest import *

EYE = os.path.join(DATA, "eyes", "peripapillary.vol")
M, D, V = 48, 40, 5


def real():
    if not os.path.exists(EYE):
        raise Skip("../shared/data/eyes is not there")
    return EYE


def vol(name, linear, layers=(), pattern=3, eye=b"OS"):
    """A .vol of [V][D][M] linear intensity and lines [layers][V][M]."""
    v, d, m = linear.shape
    size = 256 + 4 * m * len(layers)
    head = struct.pack("<12s3i3d2i2did4sq2i", b"HSF-OCT-103", m, v, d, 0.0115, 0.12, 0.00387, 3, 3, 0.01, 0.01, 30,
                       -1.5, eye, 132251763065000000, pattern, size)
    with open(at(name), "wb") as f:
        f.write(head.ljust(2048, b"\0") + bytes(9))
        for i in range(v):
            f.write(struct.pack("<12si4d2ifi", b"HSF-BS-103", size, 0, 0, 1, 0, len(layers), 256, 27, 0).ljust(256, b"\0"))
            f.write(b"".join(np.asarray(line[i], "<f4").tobytes() for line in layers))
            f.write(linear[i].astype("<f4").tobytes())
    return at(name)


def some():
    """Speckle over two layers that bend, a little deeper from B-scan to B-scan."""
    v, z, x = np.mgrid[:V, :D, :M]
    layers = sum(np.exp(-((z - top - v * 0.5 - 3 * np.sin(x / 9)) / 1.5) ** 2) for top in (12, 26))
    linear = (0.002 + layers) * np.random.default_rng(7).exponential(0.2, (V, D, M))
    return linear / linear.max()


def grey(linear):
    return 255 * np.asarray(linear, "f8") ** 0.25


def exported(source, name, *options):
    ok("export", source, at(name), "--force", *options)
    return np.load(at(name)) if name.endswith(".npy") else at(name)


@case
def a_real_eye():
    """the picture is that which was published, to the grey; spacing, eye, time and layers are told"""
    facts = json.loads(ok("info", real(), "--json")[0])
    assert (facts["format"], facts["bscans"], facts["lines"], facts["depth"]) == ("Spectralis .vol", 1, 768, 496)
    assert (facts["eye"], facts["layers"], facts["start_time"]) == ("OD", "ilm, bm, nfl", "2015-02-11T17:39:32Z")
    assert facts["spacing_um"][0] is None and np.allclose(facts["spacing_um"][1:], [15.6126, 3.87167], atol=1e-4)
    published = np.array(Image.open(EYE[:-4] + ".png"))
    assert np.array_equal(np.array(Image.open(exported(EYE, "eye.png"))), published)
    f32 = exported(EYE, "eye.npy")
    assert f32.dtype == np.float32 and np.array_equal(np.rint(f32[0].T), published)
    assert "ok" in ok("check", EYE)[0]


@case
def a_real_eye_s_lines():
    """octctl surfaces writes the device's lines beside its own, which lie on them"""
    with open(real(), "rb") as f:
        whole = f.read()
    start = 2048 + 768 * 768
    head = bytearray(whole[:start])
    struct.pack_into("<i", head, 16, 3)  # three times the one B-scan, 30 um apart
    struct.pack_into("<d", head, 32, 0.03)
    struct.pack_into("<i", head, 96, 3)
    with open(at("three.vol"), "wb") as f:
        f.write(head + whole[start:] * 3)
    ok("surfaces", at("three.vol"), at("three.h5"), "--png", at("three.png"), "--denoise", "none")
    lines = np.genfromtxt(EYE[:-4] + ".csv", delimiter=",", names=True)
    with h5py.File(at("three.h5")) as f:
        assert sorted(f["device"]) == ["bm", "ilm", "nfl"]
        for name in f["device"]:
            assert np.allclose(f["device"][name][:], lines[name + "_px"], atol=1e-3, equal_nan=True)
            assert f["device"][name].attrs["found_by"] in ("Spectralis .vol", b"Spectralis .vol")
        assert np.allclose(f.attrs["axis_spacing_um"], [30, 15.6126, 3.87167], atol=1e-4)
        found = f["surfaces/ilm"][:]
        assert np.isfinite(found).mean() > 0.9 and np.nanmedian(abs(found - lines["ilm_px"])) < 4
        found = f["surfaces/rpe"][:]
        assert np.isfinite(found).mean() > 0.9 and np.nanmedian(abs(found - lines["bm_px"])) < 4
    drawn = np.array(Image.open(at("three-bscans.png")).convert("RGB")).astype(int)
    assert (abs(drawn - [0x9a, 0x9a, 0x9a]).sum(axis=2) < 12).sum() > 300, "the device's lines are drawn"


@case
def a_vol_for_every_analysis():
    """exports, en face pictures and registered volumes have its spacing, eye and grey"""
    linear = some()
    source = vol("a.vol", linear)
    want = grey(linear).transpose(0, 2, 1)
    assert np.allclose(exported(source, "a.npy"), want, atol=1e-3)
    for frames, part in ("2:4", slice(2, 4)), ("0:4:3", slice(0, 4, 3)):
        assert np.allclose(exported(source, "b.npy", "--frames", frames), want[part], atol=1e-3)
    face = exported(source, "face.npy", "--dataset", "enface", "--slab", "10:20")
    assert np.allclose(face[0], want[:, :, 10:20].mean(axis=2), atol=1e-3)
    ok("export", source, at("a.nii.gz"), "--force")
    text = ok("register-volumes", source, at("a.nii.gz"), at("same.h5"), "--model", "bscans")[0]
    with h5py.File(at("same.h5")) as f:
        assert np.allclose(f["warped"].attrs["element_size_um"], [120, 11.5, 3.87], rtol=1e-4), text
    ok("register", source, at("bscans.h5"), "--as", "volume")
    with h5py.File(at("bscans.h5")) as f:
        assert f["bscans"].shape[0] == V and np.allclose(f.attrs["um_px"], [11.5, 3.87], rtol=1e-6)
    status, _, err = run("octctl", "cones", source)
    assert status == 1 and "holds B-scans; --slab" in err, err
    status, _, err = run("octctl", "export", source, at("x.npy"), "--dataset", "spectra")
    assert status == 2 and "holds B-scans but no spectra" in err and err.count("\n") == 1, err
    status, _, err = run("octctl", "export", source, at("x.dcm"), "--eye", "OD")
    assert status == 2 and "it says OS" in err, err


@case
def our_own_dicom():
    """what octctl export writes is read back identical, with its spacing, eye, and as a copy"""
    source = vol("a.vol", some())
    ok("export", source, at("a.dcm"), "--force")
    u8 = exported(source, "u8.npy", "--sample", "u8")
    assert u8.dtype == np.uint8 and len(np.unique(u8)) > 100
    assert np.array_equal(exported(at("a.dcm"), "again.npy"), u8)
    facts = json.loads(ok("info", at("a.dcm"), "--json")[0])
    assert (facts["format"], facts["eye"], facts["sample"]) == ("DICOM", "OS", "u8")
    assert np.allclose(facts["spacing_um"], [120, 11.5, 3.87])
    assert "layers" not in facts and "start_time" not in facts  # that it stands for none is known
    d = pydicom.dcmread(at("a.dcm"))
    assert d.ImageType[0] == "DERIVED" and d.PatientID.startswith("octd-")
    ok("export", at("a.dcm"), at("b.dcm"), "--force")
    assert np.array_equal(pydicom.dcmread(at("b.dcm")).pixel_array, d.pixel_array)
    ok("export", source, at("face.dcm"), "--dataset", "enface", "--force")
    status, _, err = run("octctl", "info", at("face.dcm"))
    assert status == 1 and "en face picture" in err and err.count("\n") == 1, err


def repacked(syntax, frames, **changes):
    d = pydicom.dcmread(at("a.dcm"))
    d.PixelData = encapsulate(frames)
    d["PixelData"].is_undefined_length = True
    d.file_meta.TransferSyntaxUID = syntax
    for key, value in changes.items():
        setattr(d, key, value)
    d.save_as(at("packed.dcm"))
    return at("packed.dcm")


@case
def dicom_of_others():
    """implicit, 16 bits, RLE of pydicom and JPEG of libjpeg; JPEG 2000 and parts are refused by name"""
    ok("export", vol("a.vol", some()), at("a.dcm"), "--force")
    whole = pydicom.dcmread(at("a.dcm")).pixel_array
    d = pydicom.dcmread(at("a.dcm"))
    d.is_implicit_VR = True
    d.file_meta.TransferSyntaxUID = pydicom.uid.ImplicitVRLittleEndian
    d.save_as(at("implicit.dcm"))
    assert np.array_equal(exported(at("implicit.dcm"), "c.npy").transpose(0, 2, 1), whole)
    d = pydicom.dcmread(at("a.dcm"))
    d.BitsAllocated, d.BitsStored, d.HighBit = 16, 12, 11
    d.PixelData = (whole.astype("<u2") * 16 + 3).tobytes()
    d["PixelData"].VR = "OW"
    d.save_as(at("u16.dcm"))
    assert np.array_equal(exported(at("u16.dcm"), "c.npy").transpose(0, 2, 1), whole.astype("f4") * 16 + 3)
    d.compress(pydicom.uid.RLELossless, encoding_plugin="pydicom")
    d.save_as(at("rle.dcm"))
    assert np.array_equal(exported(at("rle.dcm"), "c.npy").transpose(0, 2, 1), whole.astype("f4") * 16 + 3)
    frames, near = [], []
    for frame in np.repeat(np.repeat(whole[:, ::4, ::4], 4, 1), 4, 2):  # blocks: JPEG hardly changes them
        stream = io.BytesIO()
        Image.fromarray(frame).save(stream, "JPEG", quality=98)
        frames.append(stream.getvalue())
        near.append(np.array(Image.open(io.BytesIO(stream.getvalue()))).astype(int))
    jpeg = repacked(pydicom.uid.JPEGBaseline8Bit, frames)
    assert abs(exported(jpeg, "c.npy").transpose(0, 2, 1).astype(int) - near).max() <= 1
    baseline = pydicom.uid.JPEGBaseline8Bit
    for syntax, some_frames, changes, words in (
            (pydicom.uid.JPEG2000Lossless, frames, {}, "JPEG 2000 is not"),
            (baseline, frames[:-1], {}, "fragment a frame"),
            (baseline, frames, {"InConcatenationTotalNumber": 2}, "part 1 of 2 of a concatenation")):
        path = repacked(syntax, some_frames, **changes)
        status, out, err = run("octctl", "export", path, at("x.npy"), "--force")
        assert status == 1 and words in err and err.count("\n") == 1, err


@case
def damage():
    """cut and hostile files end in one line, whatever reads them, and check tells them"""
    source = vol("a.vol", some(), [np.full((V, M), 9.0)])
    ok("export", source, at("a.dcm"), "--force")
    for whole in source, at("a.dcm"):
        with open(whole, "rb") as f:
            data = f.read()
        for part in 140, 1000, 2000, len(data) - 1:
            with open(at("cut"), "wb") as f:
                f.write(data[:part])
            for command in (("check",), ("info",), ("export", at("x.npy")), ("surfaces", at("x.h5")),
                            ("register-volumes", source, at("x.h5"))):
                status, out, err = run("octctl", command[0], at("cut"), *command[1:])
                assert status == 1 and err.count("\n") == 1 and "cut" in err, (part, command, out, err)
    shutil.copy(source, at("bad.vol"))
    with open(at("bad.vol"), "r+b") as f:
        f.seek(2048 + 9 + 2 * (256 + 4 * M + 4 * M * D))
        f.write(b"nothing")
    status, out, err = run("octctl", "check", source, at("bad.vol"))
    assert status == 1 and out.count("ok:") == 1 and "B-scan 2 has no header" in err, (out, err)


main()
