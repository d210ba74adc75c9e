#!/usr/bin/python3
"""octctl export of recordings that are no volume files: plain samples, .npy, HDF5 of others,
OCTview, OCTproZ, vortex, Thorlabs and a pipe give their samples to the bit, with what they say of
lengths and times; what they do not hold is refused, and broken ones leave nothing behind."""
import re, shutil, signal, zipfile

import h5py, nibabel, numpy as np, tifffile

from inputrig import M, N, V, clean, fringes, table, write
from octtest import *
from recordingrig import u8_recording

S = fringes()
GEOMETRY = ("--set", f"camera.samples={N}", "--set", f"scan.lines={M}")
LENGTHS = "--pixel-um=-,10,20"
OCTVIEW = {"Created": "20/07/2022 14:01:02", "OCTview version": "1.0.0", "Data-type": "UINT16",
           "Processed": "False", "Number-of-frames": "1", "Frame-size-voxels": M * V * N,
           "Spectrometer-bins": N, "A-lines": M, "A-line-repeat": 1, "B-lines": V,
           "B-line-repeat": 1, "Scan-pattern-type": "RasterScanPattern", "XY-ROI-mm": [1.2, 0.5],
           "Line-camera-trigger-rate-hz": 75900}
OCTPROZ = ("[General]\ntimestamp=20250504_141131540\n\n[record]\nname=a\nsave_meta_info=true\n\n"
           "[processing]\nresampling=false\ndispersion_compensation=false\n\n"
           f"[Virtual%20OCT%20System]\nbit_depth=12\nbuffers_from_file=2\nbuffers_per_volume=1\n"
           f"depth={V}\nfile_path=C:/a.raw\nheight={M}\nwait_time=0\nwidth={N}\n\n"
           "[main_window_settings]\nmain_active_system=Virtual OCT System\n")
THORLABS = f"""<?xml version="1.0" encoding="utf-8"?>
<Ocity version="1.0"><DataFiles>""" + "".join(
    f'<DataFile Type="Raw" ApoRegionStart0="0" ApoRegionEnd0="1" ScanRegionStart0="1" '
    f'ScanRegionEnd0="{M + 1}" SizeZ="{N}" SizeX="{M + 1}" BytesPerPixel="2">data\\Spectral{v}.data'
    "</DataFile>" for v in range(V)) + f"""</DataFiles>
<Image Type="RawSpectra"><SizePixel Unit="px"><SizeZ>48</SizeZ><SizeX>{M}</SizeX><SizeY>{V}</SizeY>
</SizePixel><SizeReal Unit="mm"><SizeZ>0.15</SizeZ><SizeX>2.4</SizeX><SizeY>1.2</SizeY></SizeReal>
</Image><Acquisition><Timestamp>1700000000</Timestamp></Acquisition><Instrument>
<BitDepth>12</BitDepth><BytesPerPixel>2</BytesPerPixel><RawDataIsSigned>False</RawDataIsSigned>
<CameraLineRate>36000</CameraLineRate></Instrument></Ocity>
"""


def plain(name, data):
    return write(at(name), np.ascontiguousarray(data).tobytes())


def numpy_file(name, data):
    np.save(at(name), data)
    return at(name)


def hdf5_file(name, data, um=None, **how):
    with h5py.File(at(name), "w") as f:
        d = f.create_dataset("scan/raw", data=data, **how)
        if um:
            d.attrs["axis_spacing_um"] = np.array(um, float)
    return at(name)


def thorlabs_file(name):
    with zipfile.ZipFile(at(name), "w", zipfile.ZIP_DEFLATED) as z:
        z.writestr("Header.xml", THORLABS)
        for v in range(V):
            z.writestr(f"data\\Spectral{v}.data", np.vstack([S[v, :1], S[v]]).tobytes())
    return at(name)


def vortex_file(name):
    with h5py.File(at(name), "w") as f:
        f.create_dataset("data", data=S[None, ..., None], chunks=(1, 1, 1, N, 1),
                         maxshape=(None, V, M, N, 1))
    return at(name)


def recordings():
    """Of each kind: a file with the samples S, how it is read, spacing and time of a B-scan."""
    write(at("trial.json"), json.dumps(OCTVIEW))
    write(at("20250504_141131540_a_meta.txt"), OCTPROZ)
    nothing = [None] * 3
    field = ("--set", "scan.width_um=600", "--set", "scan.height_um=50")
    rate = ("--set", "scan.line_rate_hz=24000")
    return [
        (plain("a.raw", S), GEOMETRY, nothing, None),
        (plain("b.bin", S), GEOMETRY + field + rate, [50 / V, 600 / M, None], M / 24000),
        (numpy_file("a.npy", S), (), nothing, None),
        (hdf5_file("a.h5", S, (20, 10, 1)), (), [20, 10, None], None),
        (hdf5_file("a.mat", S.transpose(2, 1, 0)), ("--set", "file.transpose=all"), nothing, None),
        (plain("trial.bin", S), (), [500 / V, 1200 / M, None], M / 75900),
        (plain("20250504_141131540_a_raw.raw", S), (), nothing, None),
        (vortex_file("vortex.h5"), (), nothing, None),
        (thorlabs_file("a.oct"), (), [1200 / V, 2400 / M, None], M / 36000),
    ]


def exported(source, out, *options, stdin=None):
    """What octctl export --json says of the file, and the file."""
    done = subprocess.run([program("octctl"), "export", source, at(out), *options, "--force",
                           "--json"], input=stdin, capture_output=True, timeout=4 * PATIENCE_S)
    assert done.returncode == 0 and done.stderr == b"", (source, options, done)
    said, = json.loads(done.stdout)
    return said, at(out)


def array(source, *options, stdin=None):
    said, path = exported(source, "out.npy", *options, stdin=stdin)
    return said, np.load(path)


def equal(a, b):
    assert a.dtype == b.dtype and a.shape == b.shape, (a.dtype, a.shape, b.dtype, b.shape)
    assert np.array_equal(a, b), np.argwhere(a != b)[:5]


def matlab(path, name):
    with h5py.File(path) as f:
        value = f[name][()]
        if f[name].attrs["MATLAB_class"] == b"char":
            empty = f[name].attrs.get("MATLAB_empty", 0)
            return "" if empty else "".join(map(chr, value[:, 0]))
        return value.ravel()


@case
def samples_to_the_bit():
    """each kind of recording gives its samples in every format, with the lengths that it says"""
    for source, how, um, plane_s in recordings():
        said, u16 = array(source, *how)
        equal(u16, S)
        assert said["dataset"] == "spectra" and said["sample"] == "u16", said
        assert said["axes"] == ["bscan", "line", "sample"] and said["missing"] == 0, said
        assert said["unit"] == "counts" and said["scaling"] == "" and len(said["uid"]) == 32
        assert np.allclose(np.array(said["spacing_um"], float), np.array(um, float),
                           equal_nan=True), (source, said["spacing_um"])
        named, again = array(source, "--dataset=/spectra", *how)
        equal(again, S)
        assert named["uid"] == said["uid"]
        known = () if um[0] else (LENGTHS,)
        um = np.array(um if um[0] else (20, 10, np.nan), float)
        image = nibabel.load(exported(source, "out.nii.gz", *how, *known)[1])
        equal(np.asarray(image.dataobj).T, S)
        assert np.allclose(image.header.get_zooms(), (1, um[1] / 1000, um[0] / 1000)), source
        assert image.header["sform_code"] == 0
        assert b"pixdim[1] is no length" in image.header["descrip"].item()
        with tifffile.TiffFile(exported(source, "out.ome.tif", *how, *known)[1]) as tiff:
            equal(tiff.asarray(), S)
            length = re.search(r'PhysicalSizeZ="([^"]+)"', tiff.ome_metadata)
            assert abs(float(length[1]) - um[0]) < 1e-6 * um[0], (source, length[0])
            assert said["uid"] in tiff.ome_metadata and "PhysicalSizeX" not in tiff.ome_metadata
        _, path = exported(source, "out.mat", *how)
        assert np.allclose(matlab(path, "plane_s"), np.nan if plane_s is None else plane_s,
                           equal_nan=True), source
        equal(matlab(path, "data").reshape(V, M, N), S)


@case
def parts_and_volumes():
    """--frames takes some; scan.bscans says what the height is of; each export says what it took"""
    source = plain("two.raw", np.concatenate([S, S[::-1]]))
    said, some = array(source, *GEOMETRY, "--frames=3:7")
    equal(some, np.concatenate([S, S[::-1]])[3:7])
    height = ("--set", "scan.height_um=50")
    said, some = array(source, *GEOMETRY, *height, "--frames=1:8:3")
    equal(some, np.concatenate([S, S[::-1]])[1:8:3])
    assert said["spacing_um"][0] == 3 * 50 / (2 * V)
    _, path = exported(source, "steps.mat", *GEOMETRY, "--set=scan.line_rate_hz=4000", "--frames=1:8:3")
    assert abs(matlab(path, "plane_s") - 3 * M / 4000) < 1e-9
    assert array(source, *GEOMETRY, *height)[0]["spacing_um"][0] == 50 / (2 * V)
    volumes = array(source, *GEOMETRY, *height, "--set", f"scan.bscans={V}")[0]
    assert volumes["spacing_um"][0] == 50 / V and volumes["dims"] == [2 * V, M, N]
    out, _ = ok("export", source, at("said.npy"), *GEOMETRY, "--pixel-um=-,-,5")
    assert out == (f"{at('said.npy')}: spectra as npy, u16 {2 * V} bscan (5 um) x {M} line x {N} "
                   "sample, counts\n"), out
    refused_by("export", 2, f"has B-scans 0:{2 * V}", source, at("x.npy"), *GEOMETRY, "--frames=9:11")
    with h5py.File(at("many.h5"), "w") as f:
        f["first"], f["second"] = S, S[:, ::-1]
    refused_by("export", 1, "file.dataset", at("many.h5"), at("x.npy"))
    equal(array(at("many.h5"), "--set", "file.dataset=second")[1], np.ascontiguousarray(S[:, ::-1]))


@case
def samples_of_other_types():
    """samples that became u16 are what the rule makes of them, and the report says which"""
    signed = (S.astype("i4") - 32768).astype("<i2")
    said, u16 = array(numpy_file("signed.npy", signed))
    equal(u16, S)
    assert "+ 32768" in said["scaling"], said
    out, _ = ok("export", at("signed.npy"), at("said.npy"), "--force")
    assert out.endswith(f"samples of {at('signed.npy')} became u16 by {said['scaling']}\n"), out
    u8 = (S >> 4).astype("u1")
    equal(array(plain("u8.raw", u8), *GEOMETRY, "--set", "file.sample=u8")[1], u8.astype("u2"))


@case
def one_identity():
    """a recording is one whatever its name and label, another one once its samples differ"""
    uid = array(plain("a.raw", S), *GEOMETRY)[0]["uid"]
    shutil.copy(at("a.raw"), at("renamed.raw"))
    labels = ("--set", "record.eye=OD", "--set", "record.pseudonym=somebody", "--pseudonym")
    assert array(at("renamed.raw"), *GEOMETRY, *labels, "--frames=2:3")[0]["uid"] == uid
    other = S.copy()
    other[0, M - 1, N - 1] += 1
    assert array(plain("other.raw", other), *GEOMETRY)[0]["uid"] != uid
    assert array(plain("short.raw", S[:-1]), *GEOMETRY)[0]["uid"] != uid
    _, path = exported(at("a.raw"), "label.mat", *GEOMETRY, *labels)
    assert matlab(path, "eye") == "OD" and matlab(path, "pseudonym") == "somebody"
    _, path = exported(at("a.raw"), "label.mat", *GEOMETRY, "--eye=OS")
    assert matlab(path, "eye") == "OS" and "pseudonym" not in h5py.File(path)
    refused_by("export", 2, "record.eye corrects it", at("a.raw"), at("x.npy"), *GEOMETRY, *labels, "--eye=OS")
    _, path = exported(thorlabs_file("a.oct"), "when.mat")
    assert matlab(path, "start_time") == "2023-11-14T22:13:20Z", matlab(path, "start_time")
    assert matlab(path, "start_time_source") == "recorded"


@case
def when_it_was_recorded():
    """a recording without a time of its own is as old as its file, and says so; a pipe has none"""
    source, when = at("2020.raw"), "2020-02-03T04:05:06Z"
    axis = ("--set", "calibration.kmap=" + table(at(), "kmap.txt", np.linspace(0, N - 1, N)))
    shutil.copy(at("a.raw"), source)
    os.utime(source, (1580702706, 1580702706))
    out = at("2020.h5")
    ok("recon", source, out, *GEOMETRY, *axis, "--force")
    with h5py.File(out) as f:
        assert (f.attrs["start_time"], f.attrs["start_time_source"]) == (when, "file_modified")
    again = at("again.h5")  # from its own copy, younger than it
    shutil.copy(out, again)
    for path, told in ((source, GEOMETRY), (again, ())):
        _, made = exported(path, "when.mat", *told)
        assert matlab(made, "start_time") == when, matlab(made, "start_time")
        assert matlab(made, "start_time_source") == "file_modified"
        _, made = exported(path, "when.ome.tif", *told, "--pixel-um=" + ("-" if told else "2") + ",10,20")
        with tifffile.TiffFile(made) as tiff:
            assert f"<AcquisitionDate>{when}<" in tiff.ome_metadata
            assert '<M K="start_time_source">file_modified<' in tiff.ome_metadata
        said = json.loads(ok("info", path, "--json", *told)[0])
        assert (said["start_time"], said["start_time_source"]) == (when, "file_modified"), said
        assert re.search(f"^file changed +{when}$", ok("info", path, *told)[0], re.M)
    with open(source, "rb") as file:
        subprocess.run([program("octctl"), "recon", "-", out, "--force", *GEOMETRY, *axis],
                       input=file.read(), check=True, stdout=subprocess.DEVNULL)
    with h5py.File(out) as f:
        assert (f.attrs["start_time"], f.attrs["start_time_source"]) == ("", "unknown")


@case
def pipes():
    """standard input is any recording: samples, .npy, HDF5, and a volume with its pictures too"""
    files = recordings()
    for source, how, _, _ in files[:1] + files[2:5]:
        content = open(source, "rb").read()
        said, u16 = array("-", *how, stdin=content)
        equal(u16, S)
        assert said["uid"] == array(source, *how)[0]["uid"]
        with open(source, "rb") as file:
            done = subprocess.run([program("octctl"), "export", "-", at("out.nii.gz"), *how,
                                   "--force", LENGTHS], stdin=file, capture_output=True)
        assert done.returncode == 0, done
        equal(np.asarray(nibabel.load(at("out.nii.gz")).dataobj).T, S)
    u8_recording(at("own.h5"))
    content = open(at("own.h5"), "rb").read()
    for options in ((), ("--dataset=enface",), ("--sample=f32", "--frames=1:4")):
        (said, piped), (of_file, filed) = (array("-", *options, stdin=content),
                                           array(at("own.h5"), *options))
        assert said == of_file and piped.tobytes() == filed.tobytes(), (options, said, of_file)


@case
def a_pipe_without_end():
    """Ctrl+C ends an export that waits for standard input"""
    before = sorted(os.listdir(at()))
    process = subprocess.Popen([program("octctl"), "export", "-", at("cut.npy")],
                               stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    catches(process, signal.SIGINT)
    process.stdin.write(bytes(5000))
    process.stdin.flush()
    process.send_signal(signal.SIGINT)
    try:
        process.wait(timeout=PATIENCE_S)
    finally:
        process.kill()
    err = process.stderr.read()
    assert process.returncode == 1 and err.count(b"\n") == 1 and b"interrupted" in err, err
    assert sorted(os.listdir(at())) == before


@case
def what_they_do_not_hold():
    """pictures, results and en face pictures of them are refused, and unknown lengths asked for"""
    for source, how, um, _ in recordings():
        for dataset in ("bscans", "enface", "analysis/average"):
            refused_by("export", 2, f"no {dataset}: octctl recon makes one of it, or --dataset spectra", source,
                    at("x.npy"), *how, "--dataset", dataset)
        if not um[0]:
            refused_by("export", 2, "the length from B-scan to B-scan is unknown", source, at("x.nii"), *how)
            refused_by("export", 2, "the length from A-line to A-line is unknown", source, at("x.ome.tif"), *how,
                    "--pixel-um=-,-,5")
        refused_by("export", 2, "spectra are no pictures of an eye", source, at("x.dcm"), *how, LENGTHS)
        refused_by("export", 2, "leave --sample out", source, at("x.npy"), *how, "--sample=f32")
        refused_by("export", 2, "--slab is of --dataset enface", source, at("x.npy"), *how, "--slab=1:2")
        refused_by("export", 2, "is an input itself", source, source, *how, "--to=npy", "--force")


@case
def broken_recordings():
    """broken recordings end with one line, those that break in the middle too; nothing is left"""
    whole = open(numpy_file("whole.npy", S), "rb").read()
    noise = np.random.default_rng(5).integers(0, 4096, S.shape, "u2")  # which does not pack well
    packed = hdf5_file("packed.h5", noise, chunks=(1, M, N), compression="gzip", fletcher32=True)
    with h5py.File(packed) as f:
        where = f["scan/raw"].id.get_chunk_info(V - 1).byte_offset
    content = bytearray(open(packed, "rb").read())
    content[where + 200] ^= 255
    write(at("torn.h5"), bytes(content))
    array(at("torn.h5"), f"--frames=0:{V - 1}")
    refused_by("export", 1, "torn.h5", at("torn.h5"), at("x.npy"))
    os.makedirs(at("folder"), exist_ok=True)
    write(at("cut.json"), json.dumps(OCTVIEW))
    for words, source, how in (
            ("bytes", write(at("cut.npy"), whole[:len(whole) // 2]), ()),
            ("cut.h5", write(at("cut.h5"), bytes(content[:len(content) // 2])), ()),
            ("too few", plain("cut.raw", S.ravel()[:-1]), GEOMETRY),
            ("holds no samples", write(at("empty.raw"), b""), GEOMETRY),
            ("cut.bin", plain("cut.bin", S[:-1]), ()),
            ("name a file in it", at("folder"), GEOMETRY),
            ("cannot open", at("absent.raw"), GEOMETRY),
            ("was never written", hdf5_file("never.h5", None, shape=S.shape, dtype="u2"), ())):
        refused_by("export", 1, words, source, at("x.npy"), *how)
        refused_by("export", 1, words, source, at("x.ome.tif"), *how, LENGTHS, "--dataset=spectra")
    refused_by("export", 1, "standard input", "-", at("x.npy"), *GEOMETRY)


main()
