#!/usr/bin/python3
"""The depth scale of a k map: scan.axial_um, or scan.lambda_nm and scan.bandwidth_nm, beside the
wavelengths of the same spectrometer and the depth of a mirror that is known in micrometres."""
import h5py
import numpy as np
from octtest import *

N, M = 832, 32
INDEX = 1.25
where = folder("axial")
MIRROR, CAL = os.path.join(where, "m.h5"), os.path.join(where, "cal")
ok("synth", MIRROR, "--mirror", "300", "--calibration", CAL, *settings(
    scan=dict(bscans=1, lines=M)))
with h5py.File(MIRROR) as f:
    DEPTH_UM, AXIAL_UM = f["truth/mirror/depth_um"][0], f["truth/axial_um"][()].item()
    NM = f["truth/wavelengths_nm"][:]
CENTRE, BAND = (NM[0] + NM[-1]) / 2, abs(NM[-1] - NM[0])
KMAP = dict(kmap=os.path.join(CAL, "kmap.txt"))
WAVELENGTHS = dict(wavelengths=os.path.join(CAL, "wavelengths.txt"))
assert os.path.exists(KMAP["kmap"]), os.listdir(CAL)


def recon(name, calibration, **scan):
    """(status, stderr, um of a depth pixel in the sample, um of the mirror's peak in air)"""
    out = os.path.join(where, name + ".h5")
    status, _, err = run("octctl", "recon", MIRROR, out, "--config",
                         os.path.join(CAL, "calibration.ini"), *settings(
                             calibration=calibration, output=dict(sample="f32"),
                             pipeline=dict(dc="bscan", crop_first=5, crop_last=0,
                                           interpolation="cubic"),
                             scan=dict(refractive_index=INDEX, **scan)))
    if status:
        return status, err, None, None
    with h5py.File(out) as f:
        um = f["bscans"].attrs["axis_spacing_um"][2]
        assert np.isclose(um, f["bscans"].attrs["element_size_um"][2], equal_nan=True)
        mean = f["bscans"][0].mean(axis=0)
        at = int(np.argmax(mean))
        left, middle, right = mean[at - 1:at + 2]
        peak = 5 + at + 0.5 * (left - right) / (left - 2 * middle + right)
        if not np.isnan(um):  # the scale says the same
            assert np.allclose(f["bscans"].dims[2][0][:], (5 + np.arange(len(mean))) * um)
        else:
            assert len(f["bscans"].dims[2]) == 0 and f["bscans"].dims[2].label == "depth"
    return status, err, um, peak * um * INDEX


@case
def wavelengths():
    """wavelengths: the mirror lies where it was put, in micrometres"""
    status, err, um, depth = recon("nm", dict(**WAVELENGTHS, kmap=""))
    # calibration.ini has dispersion for the steps of the k map: on these it moves the peak a little
    assert status == 0 and abs(depth / DEPTH_UM - 1) < 5e-3, (err, depth, DEPTH_UM)


@case
def nothing():
    """a k map alone: the depth spacing is not known"""
    status, err, um, _ = recon("alone", KMAP)
    assert status == 0 and np.isnan(um), (err, um)


@case
def band():
    """a k map and the band that the samples span: the same depth as by wavelengths"""
    status, err, um, depth = recon("band", KMAP, lambda_nm=CENTRE, bandwidth_nm=BAND)
    assert status == 0 and abs(um * INDEX / AXIAL_UM - 1) < 1e-3, (err, um, AXIAL_UM)
    assert abs(depth / DEPTH_UM - 1) < 1e-3, (depth, DEPTH_UM)


@case
def stated():
    """a k map and scan.axial_um: as stated, over the refractive index"""
    status, err, um, depth = recon("stated", KMAP, axial_um=AXIAL_UM)
    assert status == 0 and abs(um * INDEX / AXIAL_UM - 1) < 1e-9, (err, um)
    assert abs(depth / DEPTH_UM - 1) < 1e-3, (depth, DEPTH_UM)


@case
def together():
    """what agrees to 2 % is taken, the best known wins; what does not is one line that names both"""
    by_nm = recon("both", dict(**WAVELENGTHS, kmap=""))[2]
    status, err, um, _ = recon("agrees", dict(**WAVELENGTHS, kmap=""), lambda_nm=CENTRE,
                               bandwidth_nm=BAND * 1.01)
    assert status == 0 and um == by_nm, (err, um, by_nm)
    status, err, um, _ = recon("agree", KMAP, axial_um=AXIAL_UM, lambda_nm=CENTRE,
                               bandwidth_nm=BAND)
    assert status == 0 and abs(um * INDEX / AXIAL_UM - 1) < 1e-9, (err, um)
    for name, calibration, scan, words in (
            ("a", dict(**WAVELENGTHS, kmap=""), dict(axial_um=2 * AXIAL_UM),
             ("scan.axial_um", "calibration.wavelengths")),
            ("b", dict(**WAVELENGTHS, kmap=""), dict(lambda_nm=CENTRE, bandwidth_nm=BAND / 2),
             ("scan.bandwidth_nm", "calibration.wavelengths")),
            ("c", KMAP, dict(axial_um=AXIAL_UM, lambda_nm=CENTRE, bandwidth_nm=BAND * 1.1),
             ("scan.axial_um", "scan.lambda_nm")),
            ("d", KMAP, dict(lambda_nm=CENTRE), ("scan.bandwidth_nm is not set",)),
            ("e", KMAP, dict(bandwidth_nm=BAND), ("scan.lambda_nm is not set",)),
            ("f", KMAP, dict(lambda_nm=300, bandwidth_nm=250), ("175 to 425 nm",))):
        status, err, _, _ = recon(name, calibration, **scan)
        assert status != 0 and err.count("\n") == 1, (name, status, err)
        assert all(word in err for word in words), (name, err)


@case
def greys():
    """what grey stands for: common limits in dB, those of each B-scan, values that are not cut off"""
    for name, words, want in (
            ("manual", dict(range="manual", min_db=3, max_db=70), dict(
                units="dB", grey_limits="common", grey_lo=3, grey_hi=70)),
            ("own", dict(range="percentile"), dict(
                units="dB", grey_limits="per B-scan: /frames/lo, /frames/hi")),
            ("counts", dict(log="no", range="auto"), dict(units="counts^2"))):
        out = os.path.join(where, f"grey-{name}.h5")
        ok("recon", MIRROR, out, *settings(pipeline=words, output=dict(sample="u8")))
        with h5py.File(out) as f:
            said = dict(f["bscans"].attrs)
            assert all(said[k] == v for k, v in want.items()), (name, said)
            assert ("grey_lo" in said) == (name == "manual")
            assert ("log" in said["grey_quantity"]) == (name != "counts")
            assert f["frames/lo"].attrs["units"] == said["units"]
            if name == "manual":
                assert f["frames/lo"][0] == 3 and f["frames/hi"][0] == 70
    out = os.path.join(where, "band.h5")
    with h5py.File(out) as f:
        assert f["bscans"].attrs["grey_limits"] == "none" and f["bscans"].attrs["units"] == "dB"


@case
def daemon():
    """octd says it in the status and on the wire, and its recordings have it"""
    scan = dict(lines=M, bscans=1, refractive_index=INDEX, axial_um=AXIAL_UM)
    with Daemon(*settings(scan=scan, calibration=KMAP, camera=dict(samples=N))) as d:
        assert abs(d.status()["scan"]["axial_um"] - AXIAL_UM / INDEX) < 1e-9, d.status()["scan"]


@case
def calibrated():
    """octctl calibrate kmap with positions writes it into calibration.ini"""
    depths = (100, 300, 500, 700, 900)
    ok("synth", os.path.join(where, "k.h5"), "--mirror", ",".join(map(str, depths)), *settings(
        scan=dict(bscans=1, lines=M)))
    ok("calibrate", "kmap", *[os.path.join(where, f"k-{i + 1}.h5") for i in range(5)],
       os.path.join(where, "kcal"), "--positions", ",".join(str(40 + 1.6 * d) for d in depths))
    out = os.path.join(where, "k.out.h5")
    ok("recon", os.path.join(where, "k-2.h5"), out, "--config",
       os.path.join(where, "kcal", "calibration.ini"), *settings(scan=dict(refractive_index=INDEX)))
    with h5py.File(out) as f:
        um = f["bscans"].attrs["axis_spacing_um"][2]
    assert abs(um * INDEX / 1.6 - 1) < 2e-3, um


main()
