#!/usr/bin/python3
"""From mirrors and samples of the synthetic spectrometer to a calibration, and back through octd's
chain: k map, dispersion and widths against the truth, and what is no mirror by name."""
from calibraterig import *
from octtest import *

SEEN, UNSEEN = (100, 400, 800), (250.5, 600, 921)


def calibrated(name, depths, *options):
    """The folder that calibrate kmap made of these mirrors, once."""
    made = at(name + "-found")
    files = mirrors(name, depths, *options)
    if not os.path.exists(made):
        ok("calibrate", "kmap", *files, made)
    return files, made


def off_px(file, made):
    """How far the k map found lies from the true one, rms over the source's width: both are maps of
    equal steps in k, up to first step and size of the steps."""
    place, source = truth(file, "place_q"), truth(file, "source_counts")
    kmap = np.loadtxt(made + "/kmap.txt")
    found = np.interp(np.arange(len(place)), kmap, np.arange(len(kmap)))
    wide = source > source.max() / 2
    fit = np.polyfit(place[wide], found[wide], 1)
    return np.sqrt(np.mean(((found - np.polyval(fit, place)) / np.gradient(found))[wide] ** 2))


def true_over_spectrum(file):
    """a2, a3 of the truth with t from -1 to 1 over the camera's samples."""
    place, (a2, a3) = truth(file, "place_q"), truth(file, "dispersion_rad")
    first, last = (2 * place[[0, -1]] / (4095 if len(place) <= 2048 else 8191) - 1)
    half, middle = (last - first) / 2, (last + first) / 2
    return half ** 2 * (a2 + 3 * a3 * middle), a3 * half ** 3


def coefficients(ini):
    with open(ini) as f:
        return [float(re.search(rf"^;?dispersion_a{m} = (.*)$", text, re.M)[1])
                for text in [f.read()] for m in (2, 3)]


def judge(name, depths, *options, a3_rad=0.05):
    files, made = calibrated(name, depths, *options)
    off = off_px(files[0], made)
    assert off < 0.02, off
    found, true = coefficients(made + "/calibration.ini"), true_over_spectrum(files[0])
    assert abs(found[0] / true[0] - 1) < 0.01 and abs(found[1] - true[1]) < a3_rad, (found, true)
    return files, made


def widths(files, made):
    said, _ = report(*files, "--config", made + "/calibration.ini", *NUFFT)
    return [f["configured"]["fwhm_px"] / truth(file, "limit_px")
            for file, f in zip(files, said["files"])], said


@case
def a_lumpy_source_is_calibrated_to_the_limit():
    """source with a bump: k map to 0.02 px, a2 to 1 %, widths to 2 % of the limit to 0.9 P2/4"""
    files, made = judge("rough", SEEN, "--source-bump", "0.5")
    others = mirrors("unseen", UNSEEN, "--source-bump", "0.5", "--seed", "2")
    ratios, said = widths(files + others, made)
    assert all(abs(r - 1) < 0.02 for r in ratios), ratios
    shifts = [f["configured"]["depth_px"] - d for f, d in zip(said["files"], SEEN + UNSEEN)]
    assert np.ptp(shifts) < 1, shifts


@case
def noise_and_two_mirrors_do():
    """40 dB, two depths: the same bounds"""
    files, made = judge("noisy", (150, 600), "--snr", "40", a3_rad=0.1)
    assert all(abs(r - 1) < 0.02 for r in widths(files, made)[0])


@case
def mirrors_at_rest_do():
    """mirrors that do not move: the same bounds"""
    files, made = judge("rest", (120, 500), "--turns", "0")
    assert all(abs(r - 1) < 0.02 for r in widths(files, made)[0])


@case
def recon_takes_the_files():
    """octctl recon with what calibrate wrote: the brightest pixel is where the report says"""
    files, made = calibrated("rough", SEEN, "--source-bump", "0.5")
    _, said = widths(files[1:2], made)
    ok("recon", files[1], at("picture.h5"), "--config", made + "/calibration.ini", *NUFFT,
       "--set", "output.sample=f32", "--force")
    with h5py.File(at("picture.h5")) as f:
        line = 10 ** (f["bscans"][0].astype(float) / 10)
    line = line.mean(0)
    top = 8 + line[8:].argmax()
    assert abs(top - said["files"][0]["configured"]["depth_px"]) < 0.6, top
    assert 3 <= (line > line[top] / 2).sum() <= 4, line[top - 4:top + 5]


@case
def layers_give_the_dispersion():
    """calibrate dispersion on four layers: a2 to 1 %, and mirrors as narrow as the limit"""
    layers = mirrors("layers", ["200+260+430+600"])
    kmap = ["--set", f"calibration.kmap={at('layers-cal')}/kmap.txt"]
    found = at("layers.ini")
    ok("calibrate", "dispersion", *layers, found, *kmap, "--set", "calibration.dispersion_a2=0",
       "--force")
    got, true = coefficients(found), true_over_spectrum(layers[0])
    assert abs(got[0] / true[0] - 1) < 0.01 and abs(got[1] - true[1]) < 0.1, (got, true)
    mirror = mirrors("plain", [350])
    said, _ = report(*mirror, "--config", found, *NUFFT)
    ratio = said["files"][0]["configured"]["fwhm_px"] / truth(mirror[0], "limit_px")
    assert abs(ratio - 1) < 0.02, ratio


@case
def what_is_no_mirror_is_refused_with_its_number():
    """kmap: each bad recording by name, with its number and file, and nothing is written"""
    good = mirrors("rough", SEEN, "--source-bump", "0.5")
    bad = mirrors("none-good", ["none", "200+450", "1400", "3"])
    bright = mirrors("bright", [200], "--gain", "2.5")
    for file, words in zip(bad + bright, ("no fringe", "two fringes", "Nyquist", "depth zero", "saturated")):
        got, out, err = run("octctl", "calibrate", "kmap", good[0], file, good[2], at("no"))
        assert got == 1 and out == "" and err.count("\n") == 1, (got, out, err)
        assert f"mirror 2 ({file}): " in err and words in err, err
        assert not os.path.exists(at("no"))
    _, made = calibrated("rough", SEEN, "--source-bump", "0.5")
    before = os.stat(made + "/kmap.txt").st_mtime_ns
    got, out, err = run("octctl", "calibrate", "kmap", *good, made)
    assert got != 0 and err.count("\n") == 1 and "exist" in err, (got, err)
    assert os.stat(made + "/kmap.txt").st_mtime_ns == before


main()
