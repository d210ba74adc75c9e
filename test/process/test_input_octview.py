#!/usr/bin/python3
"""Raw recordings of OCTview with its .json beside them, written from what formats/input/octview.c and
octview_meta.h say: their pictures are those of the same samples, and contradictions are refused."""
import json, os

import numpy as np

from inputrig import *
from octtest import case, main, run


def meta(**changes):
    """As OCTview's _create_metadata_json writes it."""
    lines, bscans = changes.pop("lines", M), changes.pop("bscans", V)
    wanted = {
        "Created": "20/07/2022 14:01:02", "OCTview version": "1.0.0", "Data-type": "UINT16",
        "Processed": "False", "Processing-params": {}, "Number-of-frames": "1",
        "Frame-size-voxels": lines * bscans * N, "Spectrometer-bins": N,
        "Spectrometer-bandwidth-nm": [1261.4, 1359.1], "Axial-voxel-size-mm": 0.0035,
        "Axial-crop-offset": 0, "Axial-crop-size": N, "A-lines": lines, "A-line-repeat": 1,
        "B-lines": bscans, "B-line-repeat": 1, "Scan-pattern-type": "RasterScanPattern",
        "XY-ROI-mm": [1.2, 0.5], "XY-Shift-mm": [0, 0], "V/mm-scan-factors": [14.06, 14.06],
        "Pattern-rate-hz": 20.5, "Line-camera-trigger-rate-hz": 75900}
    wanted.update({k.replace("_", "-"): v for k, v in changes.items()})
    return json.dumps({k: v for k, v in wanted.items() if v != "absent"})


def put(place, spectra, text, name="trial", beside="trial"):
    if text is not None:
        write(os.path.join(place, beside + ".json"), text)
    return write(os.path.join(place, name + ".bin"), spectra.astype("<u2").tobytes())


def axis(place):
    return ["--set", "calibration.kmap=" + table(place, "kmap.txt", np.linspace(0, N - 1, N))]


@case
def same_pictures():
    """a recording of several frames makes the pictures of its samples"""
    place = clean("octview")
    spectra = fringes(shape=(3 * V, M, N))
    path = put(place, spectra, meta())
    assert_alike(recon(path, *axis(place)), recon_plain(place, spectra, *axis(place)))
    settings = settings_of(path)
    for key, wanted in (("camera.samples", N), ("scan.lines", M), ("scan.line_rate_hz", 75900),
                        ("scan.width_um", 1200), ("scan.height_um", 500)):
        assert float(settings[key]) == wanted, (key, settings[key])


@case
def depth_scale():
    """the depth of a mirror is true by the wavelengths of the spectrometer"""
    place = clean("octview-depth")
    k = np.linspace(2e3 * np.pi / 1261.4, 2e3 * np.pi / 1359.1, N)
    path = put(place, mirror(k, 140.0), meta())
    depth, pixel = seen_depth(path, *axis(place))
    assert abs(depth - 140.0) < pixel, (depth, pixel)
    said = json.loads(run("octctl", "info", path, "--json", *axis(place))[1])
    assert abs(said["depth_um"] / pixel - 1) < 1e-6 and said["axial_um"] == 3.5, said
    assert abs(said["lambda_nm"] - 1310.25) < 1e-9 and abs(said["bandwidth_nm"] - 97.7) < 1e-9
    for band in ([0, 0], [1359.1, 1261.4], [1261.4], "none", [1261.4, 1e9], [-1300, -1200]):
        path = put(place, mirror(k, 140.0), meta(Spectrometer_bandwidth_nm=band))
        assert np.isnan(seen_depth(path, *axis(place))[1]), band


@case
def numbered_files():
    """the files that follow the first have its .json"""
    place = clean("octview-numbered")
    for name in ("trial_0001", "trial_0012"):
        path = put(place, fringes(), meta(), name)
        assert_alike(recon(path, *axis(place)), recon_plain(place, fringes(), *axis(place)))
    # One of its own comes before that of the first.
    write(os.path.join(place, "trial_0001.json"), meta(lines=M // 2, bscans=2 * V))
    wanted = recon_plain(place, fringes().reshape(2 * V, M // 2, N), *axis(place))
    assert_alike(recon(os.path.join(place, "trial_0001.bin"), *axis(place)), wanted)


@case
def repeats():
    """repeated A-lines and B-scans are lines and B-scans, counted once or told apart"""
    place = clean("octview-repeats")
    wanted = recon_plain(place, fringes(shape=(6, M, N)), *axis(place))
    for changes in ({"lines": M // 3, "bscans": 3, "A_line_repeat": 3, "B_line_repeat": 2},
                    {"lines": M, "bscans": 6, "A_line_repeat": 3, "B_line_repeat": 2}):
        text = meta(**changes | {"Frame_size_voxels": 6 * M * N})
        path = put(place, fringes(shape=(6, M, N)), text)
        assert_alike(recon(path, *axis(place)), wanted)


@case
def plain_without_json():
    """without a .json of OCTview, samples are plain"""
    place = clean("octview-plain")
    keys = ["--set", f"camera.samples={N}", "--set", f"scan.lines={M}", *axis(place)]
    wanted = recon_plain(place, fringes(), *axis(place))
    for text in (None, "", "{", "[]", "7", '{"a": 1}', meta()[:-4], "\0" + meta(), "[" * 5000,
                 " " * 2000000):
        path = put(place, fringes(), text)
        assert_alike(recon(path, *keys), wanted)


def wrong():
    yield "processed", meta(Data_type="COMPLEX64", Processed="True"), 0, "not spectra"
    yield "type", meta(Data_type="UINT8"), 0, "not spectra"
    yield "type-number", meta(Data_type=16), 0, "not spectra"
    yield "flag", meta(Processed="True"), 0, "not spectra"
    yield "no-type", meta(Data_type="absent"), 0, "not spectra"
    for key in ("Spectrometer_bins", "A_lines", "B_lines", "Frame_size_voxels"):
        yield "no-" + key, meta(**{key: "absent"}), 0, "lacks Spectrometer-bins"
        yield "text-" + key, meta(**{key: "12"}), 0, "lacks Spectrometer-bins"
    yield "fraction", meta(A_lines=M + .5), 0, "lacks Spectrometer-bins"
    yield "negative", meta(A_lines=-M, B_lines=-V), 0, "lacks Spectrometer-bins"
    yield "nothing", meta(Spectrometer_bins=0), 0, "lacks Spectrometer-bins"
    yield "other-frame", meta(Frame_size_voxels=N * M * V + N), 0, "contradict"
    yield "large", meta(A_lines=1e300, B_lines=1e300, Frame_size_voxels=1e300), 0, "lacks"
    yield "wide", meta(Spectrometer_bins=1 << 30, A_lines=1, B_lines=1,
                       Frame_size_voxels=1 << 30), 0, "beyond what can be processed"
    yield "few", meta(Spectrometer_bins=2, Frame_size_voxels=2 * M * V), 0, "beyond what can be"
    yield "tall", meta(lines=1 << 20, bscans=1), 0, "A-lines a B-scan, more than"
    yield "deep", meta(lines=1, bscans=1 << 22), 0, "beyond what can be processed"
    yield "cut", meta(), 2, "not whole frames"
    yield "odd", meta(), 1, "not whole frames"
    yield "bscan", meta(), 2 * M * N, "not whole frames"
    yield "empty", meta(), -1, "not whole frames"


@case
def refusals():
    """a .json and a file that contradict each other are refused in one line"""
    for name, text, cut, words in wrong():
        place = clean("octview-wrong-" + name)
        path = put(place, fringes(), text)
        os.truncate(path, 0 if cut < 0 else os.path.getsize(path) - cut)
        refuse(path, words)


@case
def strange_json():
    """a .json of any bytes does no harm"""
    rng = np.random.default_rng(1)
    place = clean("octview-strange")
    good = meta().encode()
    for i in range(16):
        text = bytearray(good)
        for at in rng.integers(0, len(text), 1 + 2 * i):
            text[at] = rng.integers(0, 256)
        status, _, err = run("octctl", "info", put(place, fringes(), bytes(text)))
        assert status in (0, 1, 2) and err.count("\n") == (status != 0), (status, err)
    for changes in ({"XY_ROI_mm": 7}, {"XY_ROI_mm": []}, {"XY_ROI_mm": ["a", None]},
                    {"Axial_voxel_size_mm": -1}, {"Line_camera_trigger_rate_hz": 0}):
        path = put(place, fringes(), meta(**changes))
        assert_alike(recon(path, *axis(place)), recon_plain(place, fringes(), *axis(place)))


main()
