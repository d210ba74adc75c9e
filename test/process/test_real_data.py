#!/usr/bin/python3
"""Real spectra (the folder shared/data beside the checkout): what a right reconstruction shows, by
numbers. Skipped where the folder is absent."""
import time
import h5py
import numpy as np
from octtest import *

CROP = 700


def need_data():
    if not os.path.isdir(DATA):
        raise Skip("no real spectra beside the checkout")


def plate_settings(dispersion=True):
    keys = dict(kmap=f"{DATA}/sd2019_kmap.txt")
    if dispersion:
        keys["dispersion"] = f"{DATA}/sd2019_dispersion.txt"
    return settings(camera=dict(samples=1024), scan=dict(lines=1049, bscans=1),
                    calibration=keys, pipeline=dict(crop_last=CROP), output=dict(sample="f32"),
                    file=dict(header_bytes=552, trailer_bytes=8192))


SCATTERER = settings(camera=dict(samples=1024), scan=dict(lines=100, bscans=100),
                     calibration=dict(kmap=f"{DATA}/sd2020_kmap.txt",
                                      dispersion=f"{DATA}/sd2020_dispersion.txt"),
                     pipeline=dict(crop_last=CROP), output=dict(sample="f32"))


def recon(name, options):
    out = os.path.join(folder("recon"), name + ".h5")
    status, _, err = run("octctl", "recon", f"{DATA}/{name}.raw", out, "--force", *options)
    assert status == 0, err
    with h5py.File(out) as volume:
        return volume["bscans"][:]


def smoothed(image, n):
    """Mean over n neighbouring A-lines of the intensity, against speckle."""
    return np.apply_along_axis(lambda a: np.convolve(a, np.ones(n) / n, "same"), 0,
                               10**(image / 10))


def straightened(image, lines, depths):
    """Mean over A-lines of the intensity within 40 pixels of `depths`, each line's sum 1."""
    rows = []
    for line, depth in zip(lines, depths):
        row = np.interp(depth + np.arange(-40, 41), np.arange(CROP), 10**(image[line] / 10))
        rows.append(row / row.sum())
    profile = np.mean(rows, axis=0)
    return profile - np.percentile(profile, 20)


def width(profile, part):
    """Pixels above this part of the peak."""
    return np.count_nonzero(profile > profile.max() * part)


def trace(image, lines):
    """Depth of the thin line in each of these A-lines: it falls evenly from (230, 450), a little
    curved, to the right edge at 130 to 140."""
    bright = smoothed(image, 9)
    depths = []
    for line in lines:
        middle = 450 - 300 * (line - 230) / 818
        low = int(middle) - 50
        depths.append(low + bright[line, low:low + 100].argmax())
    return np.array(depths)


@case
def plate_line():
    """plate: the thin line runs from depth 450 at A-line 230 to 130 at the right edge"""
    need_data()
    image = recon("plate", plate_settings())[0]
    assert image.shape == (1049, CROP)
    lines = np.arange(240, 1046, 5)
    depths = trace(image, lines)
    fit = np.polyval(np.polyfit(lines, depths, 3), lines)
    print(f"# plate: the line runs from {fit[0]:.0f} at A-line {lines[0]} to {fit[-1]:.0f} at "
          f"{lines[-1]}")
    assert np.percentile(np.abs(depths - fit), 95) < 5, depths
    assert np.all(np.diff(fit) < 0)
    assert abs(fit[0] - 447) < 10 and abs(fit[-1] - 135) < 12, (fit[0], fit[-1])


@case
def plate_layer():
    """plate: a short double layer lies near depth 250 on the left"""
    need_data()
    bright = smoothed(recon("plate", plate_settings())[0], 25)
    for line in (60, 100, 140, 180):
        profile = 10 * np.log10(bright[line, 150:350])
        peak = 150 + profile.argmax()
        assert 225 < peak < 265, (line, peak)
        assert profile.max() > np.median(profile) + 12
    beyond = 10 * np.log10(bright[300, 200:300])
    assert beyond.max() < 10 * np.log10(bright[100, 150:350].max()) - 10


@case
def plate_dispersion():
    """plate: without the dispersion phase the line is much thicker"""
    need_data()
    sharp, blurred = recon("plate", plate_settings())[0], recon("plate", plate_settings(False))[0]
    lines = np.arange(300, 1040)
    profiles = []
    for image in (sharp, blurred):
        ridge = np.polyval(np.polyfit(lines, trace(image, lines), 7), lines)
        profiles.append(straightened(image, lines, ridge))
    half = [width(profile, 0.5) for profile in profiles]
    tenth = [width(profile, 0.1) for profile in profiles]
    print(f"# plate: the line's width with / without the phase: {half[0]} / {half[1]} pixels at "
          f"half, {tenth[0]} / {tenth[1]} at a tenth of the peak")
    assert half[1] >= 1.8 * half[0] and tenth[1] >= 1.4 * tenth[0]


@case
def other_samples():
    """pdms and wood: a surface stands out of the noise"""
    need_data()
    for name in ("pdms", "wood"):
        image = recon(name, plate_settings())[0]
        bright = 10 * np.log10(smoothed(image, 25)[:, 20:])
        stands_out = bright.max(axis=1) - np.median(bright, axis=1)
        print(f"# {name}: the brightest pixel is {np.median(stands_out):.1f} dB above the median")
        assert np.median(stands_out) > 12, np.median(stands_out)


def surface_of(volume):
    bright = smoothed(volume, 9)[:, 20:300]
    noise = np.median(bright[:, 10:30])
    return 20 + (bright > 30 * noise).argmax(axis=1)


@case
def scatterer_through_the_daemon():
    """scatterer: replayed through octd as a volume, its surface falls from 115 to 60"""
    need_data()
    with Daemon(*SCATTERER) as daemon:
        assert daemon.ask("record", action="start")["ok"]
        status, out, err = run("octctl", "replay", f"{DATA}/scatterer.raw", *daemon.common,
                               *SCATTERER, "--rate", 20000)
        assert status == 0, err
        status = daemon.wait(lambda s: s["volumes_written"] == 1)
        assert status["lines_received"] == 10000 and status["lines_missing"] == 0
        assert status["bscans_published"] == 100
        name, = [os.path.join(daemon.records, n) for n in os.listdir(daemon.records)]
        with h5py.File(name) as volume:
            spectra = np.fromfile(f"{DATA}/scatterer.raw", "<u2").reshape(100, 100, 1024)
            assert np.array_equal(volume["spectra"][:], spectra)
            live = volume["bscans"][:]
            assert volume["frames/valid"][:].all()
    assert np.array_equal(live, recon("scatterer", SCATTERER))
    surface = surface_of(live[50])
    left, right = np.median(surface[2:12]), np.median(surface[-10:])
    print(f"# scatterer B-scan 50: surface at {left:.0f} on the left, {right:.0f} on the right")
    assert abs(left - 115) < 12 and abs(right - 60) < 12, surface
    below = 10 * np.log10((10**(live[50] / 10)).mean(axis=0))
    assert below[110:140].mean() > below[300:400].mean() + 8 > below[550:650].mean() + 3


main()
