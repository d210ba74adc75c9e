#!/usr/bin/python3
"""Scans by every pattern: the same eye comes back, live and offline, and is said to lie where it lay."""
import glob
import h5py
import json
import numpy as np
from octtest import *

M, V, N, UM = 96, 96, 512, 900.0
EYE = dict(scan=dict(lines=M, bscans=V, width_um=UM, height_um=UM), camera=dict(samples=N))
BOTH = {"scan.pattern": "raster-both", "scan.flyback_lines": 12, "scan.trigger_delay_lines": 3.37}
RESONANT = {**BOTH, "scan.phase": 60, "scan.flyback_lines": 48}


def keys(values):
    return [word for key, value in values.items() for word in ("--set", f"{key}={value}")]


def synth(name, **values):
    """An eye at rest, scanned with these keys; its en face picture, um a pixel, and truth."""
    path = at(name + ".h5")
    if not os.path.exists(path):
        ok("synth", path, *settings(**EYE), "--motion", "none", *keys(values))
    return path


def enface(path):
    out = path.replace(".h5", ".enface.h5")
    ok("analyse", "enface", path, out, "--force")
    with h5py.File(out) as file:
        d = file["analysis/enface"]
        return d[()], d.attrs["axis_spacing_um"], [str(a) for a in d.attrs["axis_names"]]


def smooth(picture, k=5):
    """The mean of (2 k + 1)^2 pixels: what speckle leaves of tissue."""
    wide = np.pad(np.where(np.isfinite(picture), picture, np.nanmean(picture)), k, mode="edge")
    sums = np.pad(wide.cumsum(0).cumsum(1), ((1, 0), (1, 0)))
    w = 2 * k + 1
    return (sums[w:, w:] - sums[:-w, w:] - sums[w:, :-w] + sums[:-w, :-w]) / w ** 2


def on_raster(picture, um):
    """The values of a gridded picture where the raster's A-lines lie."""
    c = (np.arange(M) + .5) / M * UM - UM / 2
    y, x = [np.clip(c / um[0] + (n - 1) / 2, 0, n - 1.001) for n in picture.shape]
    y0, x0 = np.floor(y).astype(int)[:, None], np.floor(x).astype(int)[None]
    fy, fx = y[:, None] - y0, x[None] - x0
    return (picture[y0, x0] * (1 - fy) * (1 - fx) + picture[y0 + 1, x0] * fy * (1 - fx)
            + picture[y0, x0 + 1] * (1 - fy) * fx + picture[y0 + 1, x0 + 1] * fy * fx)


def same_eye(picture, um, most_share):
    """Of the raster's range from above, inside the circle that all patterns fill."""
    raster = enface(synth("raster"))[0]
    if picture.shape != raster.shape or um[0] != UM / V:
        picture = on_raster(picture, um)
    c = (np.arange(M) + .5) / M * UM - UM / 2
    inside = np.hypot(*np.meshgrid(c, c)) < 0.42 * UM
    inside &= np.isfinite(picture)
    assert inside.mean() > 0.5, inside.mean()
    difference = (smooth(picture) - smooth(raster))[inside]
    span = np.ptp(np.percentile(raster, [0.5, 99.5]))
    assert difference.std() < most_share * span, (difference.std(), span)
    plain = np.corrcoef(picture[inside], raster[inside])[0, 1]
    assert plain > 0.85, plain  # speckle too, as it is the same tissue


@case
def gridded():
    """radial, spiral and lissajous are gridded to the picture that a raster makes of the same eye"""
    for pattern in "radial", "spiral", "lissajous":
        picture, um, axes = enface(synth(pattern, **{"scan.pattern": pattern}))
        assert axes == ["y", "x"] and um[0] == um[1] and abs(um[0] / (UM / M) - 1) < 0.2, (axes, um)
        same_eye(picture, um, 0.02)


@case
def both_ways():
    """both ways, with a lag of 3.37 lines and a resonant mirror: the raster's picture; without it not"""
    for name, values, most in ("both", BOTH, 0.01), ("resonant", RESONANT, 0.02):
        picture, um, axes = enface(synth(name, **values))
        assert axes == ["bscan", "line"]
        same_eye(picture, um, most)
    path = synth("both", **BOTH)
    out = at("late.h5")
    ok("analyse", "enface", path, out, "--set", "scan.trigger_delay_lines=3")
    with h5py.File(out) as file:
        late = file["analysis/enface"][()]
    good = enface(path)[0]
    step = [np.abs(np.diff(p, axis=0)).mean() for p in (good, late)]
    assert step[1] > 1.1 * step[0], step  # neighbours lie apart


@case
def positions():
    """/scan says where each A-line lay, to a float's last bit; truth of the surfaces is of those places"""
    with h5py.File(synth("radial", **{"scan.pattern": "radial"})) as file:
        x, y = file["scan/x_um"][()], file["scan/y_um"][()]
        assert file["scan"].attrs["pattern"] in ("radial", b"radial")
    s = ((np.arange(M) + .5) / M - .5) * UM
    angle = np.pi * np.arange(V) / V
    assert np.allclose(x, np.outer(np.cos(angle), s), atol=1e-3)
    assert np.allclose(y, np.outer(np.sin(angle), s), atol=1e-3)


@case
def from_a_file():
    """pattern=file: an A-line a row; the recording keeps them; another number of rows is refused"""
    places = np.random.default_rng(1).uniform(-UM / 2, UM / 2, (M * V, 2))
    table = at("places.txt")
    np.savetxt(table, places, fmt="%.6f")
    path = synth("file", **{"scan.pattern": "file", "scan.positions": table})
    with h5py.File(path) as file:
        assert np.allclose(file["scan/x_um"][()].ravel(), places[:, 0], atol=1e-3)
    os.remove(table)
    picture, um, _ = enface(path)
    same_eye(picture, um, 0.04)  # at random: some places are bare
    np.savetxt(table, places[:-1])
    refused_by("synth", 2, "scan.positions: has 9215 rows, and a volume 9216 A-lines",
               at("no.h5"), *settings(**EYE), "--set", "scan.pattern=file", "--set",
               f"scan.positions={table}")


@case
def lag_is_found():
    """calibrate scan finds the lag to 0.02 lines, of an even and of a resonant mirror, in any setting"""
    for name, values in ("both", BOTH), ("resonant", RESONANT):
        path, out = synth(name, **values), at(name + ".ini")
        found = json.loads(ok("calibrate", "scan", path, out, "--json")[0])
        assert abs(found["trigger_delay_lines"] - 3.37) < 0.02, found
        assert found["used"] >= 20 and found["sd_lines"] < 0.02, found
        assert "[scan]\ntrigger_delay_lines = 3.3" in open(out).read()
    got, out, err = run("octctl", "calibrate", "scan", synth("raster"))
    assert got and not out and "its scan.pattern is raster: " in err, (got, err)


@case
def live():
    """replayed with flyback and turns into octd: to the sample what was recorded, every line counted"""
    path = synth("resonant", **RESONANT)
    scan = keys({**RESONANT, "analysis.run": "enface", "record.volumes": 1})
    with h5py.File(path) as file:
        spectra = file["spectra"][()]
        nm = at("nm.txt")
        np.savetxt(nm, file["calibration/wavelengths_nm"][()], fmt="%.12g")
    with Daemon(*settings(**EYE, calibration=dict(wavelengths=nm)), *scan) as daemon:
        assert daemon.ask("record", action="start")["ok"]
        ok("replay", path, "--to", daemon.ingest, "--rate", "40000")
        status = daemon.wait(lambda s: s["volumes_written"] == 1)
        check_sums(status)
        assert status["lines_received"] == M * V and status["lines_flyback"] == 48 * V, status
        assert status["lines_missing"] == 0 and status["lines_late"] == 0, status
        assert status["scan"]["pattern"] == "raster-both"
        way = daemon.ask("scan", first=(M + 48) * 3 - 50)  # turned sweeps end on the left
        assert way["pattern"] == "raster-both" and way["sent_lines"] == (M + 48) * V
        assert way["aline"][:50] == [1] * 5 + [0] * 45, way["aline"][:50]
        assert len(way["x_v"]) == len(way["y_v"]) == 1024  # the mirror goes on over its turning point
        assert 0.375 < max(way["x_v"]) < 0.435 and -0.435 < min(way["x_v"]) < -0.375
        assert daemon.ask("scan", first=(M + 48) * V)["x_v"] == []
        recorded = glob.glob(daemon.records + "/*.h5")
        with h5py.File(recorded[0]) as file:
            assert (file["spectra"][()] == spectra).all()
            live = file["bscans"][()]
    again = at("again.h5")
    ok("recon", recorded[0], again)
    with h5py.File(again) as file:
        assert (file["bscans"][()] == live).all()


def with_axis(path):
    """The keys of an octd that knows this eye's wavelengths."""
    nm = at("nm.txt")
    with h5py.File(path) as file:
        np.savetxt(nm, file["calibration/wavelengths_nm"][()], fmt="%.12g")
    return settings(calibration=dict(wavelengths=nm))


def last_whole(daemon):
    """A file of record last with more than a volume and no gap: a busy machine may leave some."""
    for _ in range(20):
        daemon.wait(lambda s: s["record_last"]["bscans"] > 7 and s["bscans_done"] > 20)
        name = ok("record", "last", *daemon.common)[0].strip()
        with h5py.File(name) as file:
            number, valid = file["frames/number"][()], file["frames/valid"][()]
            whole = not file["frames/missing_lines"][()].any()
        if len(number) > 7 and valid.all() and whole and (np.diff(number.astype(int)) == 1).all():
            return name
    raise AssertionError("no file without a gap")


@case
def kept_from_the_middle():
    """record last begins and ends within volumes of an odd number: recon makes the same pictures of it,
    and /scan says where its A-lines lay; so of places of a file"""
    eye = dict(EYE["scan"], bscans=7)
    places = at("seven.txt")
    np.savetxt(places, np.random.default_rng(2).uniform(-UM / 2, UM / 2, (M * 7, 2)), fmt="%.6f")
    for pattern in BOTH, {"scan.pattern": "file", "scan.positions": places}:
        path = at(pattern["scan.pattern"] + "7.h5")
        common = [*settings(scan=eye, camera=dict(samples=N)), *keys(pattern)]
        ok("synth", path, "--motion", "none", *common)
        rate = M / 0.1  # a volume and a half is kept
        last = settings(scan=dict(line_rate_hz=rate), record=dict(last_s=1.1),
                        pipeline=dict(smoothing_bscans=0))
        with Daemon(*common, *with_axis(path), *last) as daemon:
            with Replay(daemon, path, 20000, *common):
                name = last_whole(daemon)
        with h5py.File(name) as file:
            kept, b = file["bscans"][()], file["frames/number"][()] % 7
            x = file["scan/x_um"][()]
        if "scan.positions" in pattern:
            assert np.allclose(x, np.loadtxt(places)[:, 0].reshape(7, M)[b], atol=1e-3)
        again = at("seven_again.h5")
        ok("recon", name, again, "--force")
        with h5py.File(again) as file:
            assert (file["bscans"][()] == kept).all(), pattern


@case
def rows_that_do_not_follow():
    """where B-scans are missing between rows, each is put right by the way that it was scanned"""
    path, gap = synth("resonant", **RESONANT), at("gap.h5")
    lin = ["--force", *settings(pipeline=dict(range="manual"))]
    ok("recon", path, at("all.h5"), *lin)
    with h5py.File(path) as file, h5py.File(gap, "w") as to:
        for name in file:
            file.copy(name, to)
        to.attrs.update(file.attrs)
        spectra, number = file["spectra"][()], file["frames/number"][()]
        to["spectra"][10:-1], to["frames/number"][10:-1] = spectra[11:], number[11:]
        to["frames/valid"][-1] = 0
        for column in "bscans_crc32c", "spectra_crc32c", "crc32c":
            if column in to["frames"]:
                del to["frames"][column]
    ok("recon", gap, at("gap_again.h5"), *lin)
    with h5py.File(at("all.h5")) as whole, h5py.File(at("gap_again.h5")) as file:
        assert (file["bscans"][:10] == whole["bscans"][:10]).all()
        assert (file["bscans"][10:-1] == whole["bscans"][11:]).all()


@case
def volumes_of_an_odd_number():
    """plain samples of two volumes of 7, scanned both ways, are replayed as the camera sent them"""
    lines = np.random.default_rng(3).integers(100, 4000, (14, M, N)).astype("<u2")
    raw = at("odd.raw")
    lines.tofile(raw)
    common = [*settings(scan=dict(lines=M, bscans=7), camera=dict(samples=N)), *keys(BOTH)]
    with Daemon(*common, *with_axis(synth("raster")), *settings(record=dict(volumes=2))) as daemon:
        assert daemon.ask("record", action="start")["ok"]
        ok("replay", raw, "--to", daemon.ingest, "--rate", "20000", *common)
        daemon.wait(lambda s: s["volumes_written"] == 2)
        names = sorted(glob.glob(daemon.records + "/*.h5"))
        for i, name in enumerate(names):
            with h5py.File(name) as file:
                assert (file["spectra"][()] == lines[7 * i:7 * i + 7]).all(), i


@case
def waveforms():
    """octctl scan: CSV, NPY and WAV say the same, within the mirrors' limits, 85 % and more of use"""
    names = {kind: at("way." + kind) for kind in ("csv", "npy", "wav", "png")}
    found = json.loads(ok("scan", "--fit", "--json",
                          *settings(scan=dict(lines=512, bscans=512, width_um=3000, height_um=3000)),
                          *[word for kind in names for word in ("--" + kind, names[kind])])[0])
    assert found["useful_percent"] >= 85 and found["acceleration_percent"] <= 101, found
    way = np.load(names["npy"])
    assert way.shape == (512, 512 + found["flyback_lines"], 3)
    flat = way.reshape(-1, 3)
    rows = np.loadtxt(names["csv"], delimiter=",", skiprows=1)
    assert np.allclose(rows[:, 1:], flat, atol=1e-6) and abs(rows[-1, 0] * 1e5 - len(flat) + 1) < 1e-3
    sound = np.frombuffer(open(names["wav"], "rb").read()[44:], "<f4").reshape(-1, 2)
    assert (sound == flat[:, :2]).all()
    volts = 3000 / 600 * 0.5  # of the field
    around = np.concatenate([flat[-1:, :2], flat[:, :2], flat[:1, :2]]).astype(float)
    assert np.abs(np.diff(around, 2, axis=0)).max() * 1e10 <= 1.02 * 4 * volts / 3e-4 ** 2
    assert np.allclose(way[0, :512, 0], (np.arange(512) + .5 - 256) / 512 * volts, atol=1e-6)
    refused_by("scan", 2, "are needed (octctl scan --fit takes them)",
               *settings(scan=dict(lines=512, bscans=512, width_um=3000, height_um=3000,
                                   flyback_lines=9)))


@case
def silent_at_the_end():
    """a camera that falls silent with a volume's last line of flyback did not stop within it"""
    lines = np.random.default_rng(4).integers(100, 4000, (7 * (M + 12), N)).astype("<u2")
    common = [*settings(scan=dict(lines=M, bscans=7), camera=dict(samples=N)), *keys(BOTH)]
    for n_lines, silent in (len(lines), 0), (len(lines) - 40, 1):
        with Daemon(*common, *with_axis(synth("raster")),
                    *settings(ingest=dict(idle_s=0.2))) as daemon:
            sender = Sender(daemon, 5)
            sender.send(lines[:n_lines], 0, 1)
            daemon.wait(lambda s: s["lines_received"] > 0)
            time.sleep(2)  # ten times as long as a pause may last
            daemon.wait(lambda s: s["phase"] == "armed")
            assert daemon.log().count("fell silent") == silent, daemon.log()


@case
def refusals():
    """what a pattern cannot have is refused at the start, by its key"""
    own = {s: dict(endpoint=f"ipc://{at(s)}") for s in ("ingest", "publish", "control")}
    for values, words in (({"scan.pattern": "circle"}, "scan.width_um: is 0"),
                          ({"scan.pattern": "spiral", "scan.width_um": 5, "scan.phase": 10},
                           "scan.phase: only a sweep"),
                          ({"scan.trigger_delay_lines": 9}, "is 9, and 0.5 is the most"),
                          ({"scan.pattern": "file"}, "scan.positions: is not set")):
        got, out, err = run("octd", *settings(calibration=dict(wavelengths=calibration(832)), **own),
                            *keys(values))
        assert got == 2 and words in err.splitlines()[-1], (got, err)


main()
