#!/usr/bin/python3
"""octctl calibrate report: what mirrors of the synthetic spectrometer show, against the truth."""
from calibraterig import *
from octtest import *

DEPTHS = 60, 300, 921


def lumpy():
    return mirrors("lumpy", DEPTHS, "--source-bump", "0.5")


def falloff(f, spot=0.8):
    return np.sinc(f) * np.exp(-(np.pi * spot * f) ** 2 / (4 * np.log(2)))


def amplitude(file):
    """Of a mirror whose fringe is what its truth says, with the contract's weights."""
    place, source = truth(file, "place_q"), truth(file, "source_counts")
    slope, (a2, a3), n = np.gradient(place), truth(file, "dispersion_rad"), len(place)
    t = 2 * place / 4095 - 1
    f = (truth(file, "mirror/depth_px")[0] / 4096 + t * (2 * a2 + 3 * a3 * t) / 4095 / np.pi) * slope
    return (source * slope * falloff(abs(f))).sum() * 0.3 / 2 / n


@case
def with_the_true_calibration_mirrors_are_as_the_truth_says():
    """the true calibration: depth to 0.02 px, amplitude to 1 %, limit to 0.5 %, width to 2 % of it"""
    said, err = report(*lumpy(), *true_calibration("lumpy"), *NUFFT, "--pixel-um", "1.595")
    assert err == "" and len(said["files"]) == 3
    for number, (file, got) in enumerate(zip(lumpy(), said["files"]), 1):
        peak, limit = got["configured"], truth(file, "limit_px")
        assert got["number"] == number and got["file"] == file and got["lines"] == 32
        assert got["interpolation"] == "nufft" and not got["at_rest"]
        assert abs(peak["depth_px"] - truth(file, "mirror/depth_px")[0]) < 0.02, peak
        assert abs(peak["amplitude_counts"] / amplitude(file) - 1) < 0.01, (peak, amplitude(file))
        assert abs(got["limit_px"] / limit - 1) < 0.005, (got["limit_px"], limit)
        assert abs(peak["fwhm_px"] / limit - 1) < 0.02, (peak, limit)
        assert abs(peak["of_limit"] - peak["fwhm_px"] / got["limit_px"]) < 1e-9
        assert abs(peak["depth_um"] - 1.595 * peak["depth_px"]) < 1e-6
        assert abs(peak["fwhm_um"] - 1.595 * peak["fwhm_px"]) < 1e-6
    assert abs(said["files"][0]["configured"]["snr_db"] - 60) < 1.5, said["files"][0]


@case
def without_a_calibration_they_are_not():
    """the map of even steps that the recording carries: deep mirrors are several times wider"""
    said, _ = report(*lumpy()[:2], *NUFFT)
    peak = said["files"][1]["configured"]
    assert peak["of_limit"] > 2 and peak["depth_um"] is None, peak


@case
def every_window_is_told_with_its_gain():
    """windows: flat narrows, flattened Hann lowers the side lobes of a lumpy source by 4 dB and more"""
    said, _ = report(lumpy()[1], *true_calibration("lumpy"), *NUFFT)
    windows = {w["window"]: w for w in said["files"][0]["windows"]}
    assert list(windows) == ["none", "hann", "hamming", "blackman", "gauss", "flat", "hann, flattened"]
    none, flat, flattened = windows["none"], windows["flat"], windows["hann, flattened"]
    for key in "fwhm_px", "side_lobe_db", "peak_db":
        assert abs(none[key] - said["files"][0]["configured"][key]) < 1e-6, key
    assert flat["fwhm_px"] < 0.8 * none["fwhm_px"], (flat, none)
    assert flattened["side_lobe_db"] < none["side_lobe_db"] - 4, (flattened, none)
    widths = [windows[w]["fwhm_px"] for w in ("none", "hamming", "hann", "blackman")]
    assert sorted(widths) == widths, widths


@case
def a_configured_window_is_the_configured_peak():
    """pipeline.window: the configured chain has it, and the table of windows stays as it is"""
    said, _ = report(lumpy()[0], *true_calibration("lumpy"), *NUFFT, "--set", "pipeline.window=hann")
    got = said["files"][0]
    windows = {w["window"]: w for w in got["windows"]}
    assert abs(got["configured"]["fwhm_px"] - windows["hann"]["fwhm_px"]) < 1e-6
    assert windows["none"]["fwhm_px"] < 0.9 * got["configured"]["fwhm_px"]


@case
def a_running_mean_is_the_mean_of_the_only_bscan():
    """pipeline.dc = running: the same peak as with bscan"""
    both = [report(lumpy()[0], *true_calibration("lumpy"), *NUFFT, "--set", f"pipeline.dc={dc}")[0]
            for dc in ("running", "bscan")]
    peaks = [said["files"][0]["configured"] for said in both]
    assert peaks[0] == peaks[1] and peaks[0]["fwhm_px"] > 3, peaks


@case
def the_roll_off_is_the_lines():
    """roll-off: the line through the mirrors' peaks, by least squares"""
    said, _ = report(*lumpy(), *true_calibration("lumpy"), *NUFFT)
    peaks = [(f["configured"]["depth_px"], f["configured"]["peak_db"]) for f in said["files"]]
    slope, zero = np.polyfit(*zip(*peaks), 1)
    line = said["rolloff"]
    assert line["mirrors"] == 3 and abs(line["zero_db"] - zero) < 1e-3, (line, zero)
    assert abs(line["db_per_100px"] - 100 * slope) < 1e-3
    assert abs(line["minus_6db_px"] + 6 / slope) < 0.1
    said, _ = report(*lumpy()[:2], *true_calibration("lumpy"), *NUFFT)
    assert said["rolloff"]["db_per_100px"] is None


@case
def a_mirror_at_rest_is_seen():
    """a mirror at rest: not taken off with the mean A-line, as wide as one that moves"""
    still = mirrors("still", [300], "--turns", "0")
    said, _ = report(*still, *true_calibration("still"), *NUFFT)
    got = said["files"][0]
    assert got["at_rest"], got
    assert abs(got["configured"]["fwhm_px"] / truth(still[0], "limit_px") - 1) < 0.02, got


@case
def peaks_narrower_than_pixels_resolve_are_measured_between_them():
    """2048 samples, which fill the line: 1.3 px wide, to 1 % of the limit; a single A-line does"""
    files = mirrors("long", [300.5, 800], "--set", "camera.samples=2048", "--set", "scan.lines=1")
    said, _ = report(*files, *true_calibration("long"), *NUFFT)
    for file, got in zip(files, said["files"]):
        peak, limit = got["configured"], truth(file, "limit_px")
        assert abs(peak["depth_px"] - truth(file, "mirror/depth_px")[0]) < 0.02, peak
        assert limit < 1.4 and abs(peak["fwhm_px"] / limit - 1) < 0.01, (peak, limit)
        assert got["at_rest"] and got["lines"] == 1


@case
def what_is_no_mirror_is_told_by_name_and_number():
    """bad recordings: each is told with its number and what is wrong, the others are measured"""
    bad = mirrors("bad", ["none", "200+450", "250", "3"], "--snr", "50")
    bright = mirrors("bright", [200], "--gain", "2.5")
    good = lumpy()[1]
    said, err = report(*bad, *bright, good, *true_calibration("lumpy"), *NUFFT, status=1)
    lines = err.splitlines()
    assert len(lines) == 4, err
    for line, number, file, words in zip(lines, (1, 2, 4, 5), (bad[0], bad[1], bad[3], bright[0]),
                                         ("no fringe", "two fringes", "zero", "saturated")):
        assert line.startswith(f"octctl calibrate report: mirror {number} ({file}): "), line
        assert words in line, (words, line)
        assert words in said["files"][number - 1]["why"], said["files"][number - 1]
    assert said["files"][5]["configured"]["state"] == "mirror" and said["files"][5]["number"] == 6


@case
def plain_samples_and_text_and_pictures():
    """plain samples do too; the text has what JSON has; pictures are made, and kept without --force"""
    if not os.path.exists(at("plain.raw")):
        ok("synth", at("plain.raw"), "--mirror", "200.5", "--calibration", at("plain-cal"), *LINES)
    options = [at("plain.raw"), *true_calibration("plain"), *NUFFT, *LINES]
    said, _ = report(*options)
    assert abs(said["files"][0]["configured"]["depth_px"] - 200.5) < 0.02
    peaks, windows = at("peaks.png"), at("windows.png")
    out, _ = ok("calibrate", "--report", *options, "--picture", peaks, "--windows", windows)
    assert f"1 {at('plain.raw')}: depth 200.50 px" in out, out
    assert re.search(r"^  hann, flattened  +[0-9.]+ ", out, re.M), out
    for file in peaks, windows:
        with open(file, "rb") as picture:
            assert picture.read(8) == b"\x89PNG\r\n\x1a\n" and os.path.getsize(file) > 5000
    got, out, err = run("octctl", "calibrate", "report", *options, "--picture", peaks)
    assert got == 1 and out == "" and "exists" in err and err.count("\n") == 1, (got, out, err)
    ok("calibrate", "report", *options, "--picture", peaks, "--force")


@case
def mistakes_are_told():
    """no file, an input as picture, a calibration that is none: one line each"""
    file = lumpy()[0]
    for status, words, arguments in (
            (2, "no recording", []),
            (2, "--pixel-um", [file, "--pixel-um", "0"]),
            (1, "mirror 2: ", [file, at("absent.h5")]),
            (2, "is an input itself", [file, "--picture", file]),
    ):
        got, out, err = run("octctl", "calibrate", "report", *arguments)
        assert got == status and out == "" and err.count("\n") == 1 and words in err, (arguments, got, out, err)


main()
