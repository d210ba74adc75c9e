#!/usr/bin/python3
"""Cells live, in a real octd: topic, dataset, settings, accounts, of volumes and of B-scans."""
import glob
import urllib.request
import h5py
from octfaults import *

M, V, DEPTH, R, UM = 56, 48, 96, 4.0, 3.0
ROW_NS = 2_000_000
COLUMNS = ["track", "x_px", "y_px", "radius_px", "score", "how", "speed_um_s"]
KEYS = ["track", "x", "y", "r", "score", "how", "speed_um_s"]
HOWS = ["detected", "snake", "coasted"]
SCAN = settings(scan=dict(lines=M, bscans=V, width_um=M * UM, height_um=V * UM),
                pipeline=dict(crop_last=DEPTH, ring_bscans=32, backend="cpu"),
                calibration=dict(wavelengths=wavelengths()), output=dict(sample="f32"),
                analysis=dict(enface_projection="max"), cells=dict(radius_px=R))
K = np.arange(N) / N
# Where cells are in volume 0, and how far they go in one, in px: x, y, dx, dy.
MOVING = [(16, 14, 2, 0), (38, 20, 0, 1.5), (24, 34, -1, 0.5)]


def disk(x, y, at_x, at_y):
    return 1 / (1 + np.exp((np.hypot(x - at_x, y - at_y) - R) / 0.4))


def spectra(strength, depths, phases, dice):
    """A-lines that reflect so strongly [line][depth]."""
    waves = np.cos(2 * np.pi * depths[:, None] / 2.46 * K + phases[..., None])
    fringes = (strength[..., None] * waves).sum(1)
    return np.clip(20000 + fringes + dice.normal(0, 30, fringes.shape), 0, 65535).round().astype("<u2")


def row_of(volume, row):
    """A B-scan of a volume in which cells are brighter from above."""
    dice = np.random.default_rng(volume * V + row)
    x, t = np.arange(M), volume + row / V
    light = sum(disk(x, row, cx + dx * t, cy + dy * t) for cx, cy, dx, dy in MOVING)
    depths = np.array([30.0])
    return spectra((200 * (1 + 3 * light))[:, None], depths, np.zeros((M, 1)), dice)


def section_of(n):
    """A B-scan with a cell in it, brighter than what is about it."""
    dice = np.random.default_rng(n)
    depths = np.arange(8, DEPTH - 8, 2.46)  # one a resolved depth, and none cancels its neighbour
    light = disk(np.arange(M)[:, None], depths, 20 + 1.5 * n, 50)
    return spectra(20 * (1 + 12 * light), depths, np.pi / 2 * np.arange(len(depths)) + 0 * light, dice)


def cells_of(status):
    return next(a for a in status["analysis"] if a["name"] == "cells")


class Scanner:
    """Sends B-scans one by one, each when the analysis has dealt with the one before."""

    def __init__(self, daemon, bscan):
        self.daemon, self.bscan, self.sender, self.n = daemon, bscan, Sender(daemon, 1), 0

    def scan(self, n):
        for _ in range(n):
            before = self.daemon.status()
            resting = cells_of(before)["at_rest"]
            self.sender.send(self.bscan(self.n), self.n * M, flags=self.n == 0,
                             time_ns=10 ** 12 + self.n * ROW_NS)
            self.n += 1
            status = self.daemon.wait(
                lambda s: s["bscans_published"] == before["bscans_published"] + 1
                and (resting or cells_of(s)["seen"] == cells_of(before)["seen"] + 1))
        return status

    def volumes(self, n):
        return self.scan(n * V)


def of_volumes(n):
    return row_of(n // V, n % V)


def check_message(header, values):
    """The objects of the header are the rows of the table."""
    assert header["dataset"] == "analysis/cells" and header["labels"] == COLUMNS, header
    assert values.shape == (len(header["cells"]), 7) and header["count"] == len(values), header
    for cell, row in zip(header["cells"], values):
        assert list(cell) == KEYS and cell["how"] == HOWS[int(row[5])], cell
        for key, value in zip(KEYS, row):
            if key != "how" and np.isnan(value):
                assert cell[key] is None, cell
            elif key != "how":
                assert abs(cell[key] - value) <= 1e-6 * abs(value), (cell, row)


@case
def it_rests_until_it_is_enabled():
    """set cells.enabled wakes it: tracks of the cells that move, told after min_frames volumes"""
    port = free_port()
    with Daemon(*SCAN, "--set", f"metrics.endpoint=127.0.0.1:{port}") as daemon:
        socket, scanner = daemon.subscriber("cells"), Scanner(daemon, of_volumes)
        status = scanner.scan(3)
        assert cells_of(status)["at_rest"] and cells_of(status)["seen"] == 0, cells_of(status)
        assert daemon.ask("set", key="cells.enabled", value="yes")["ok"]
        daemon.wait(lambda s: not cells_of(s)["at_rest"])
        scanner.scan(V - 3)
        _, header, values = receive(socket)
        assert header["cells"] == [] and values.shape == (0, 7) and header["median_speed_um_s"] is None
        for volume in range(1, 5):
            scanner.volumes(1)
            _, header, values = receive(socket)
            check_message(header, values)
            assert header["volume"] == volume and header["bscan"] == V - 1 and header["whole"]
            assert header["frames_done"] == volume + 1 and header["is_bscan"] == 0
            assert (header["width"], header["height"]) == (M, V)
        assert [c["track"] for c in header["cells"]] == [1, 2, 3], header["cells"]
        for cx, cy, dx, dy in MOVING:
            t = 4 + (cy + 4 * dy) / (V - dy)
            cell, = (c for c in header["cells"]
                     if np.hypot(c["x"] - cx - dx * t, c["y"] - cy - dy * t) < 0.6)
            assert cell["how"] == "detected" and cell["score"] < -1.8 and abs(cell["r"] - R) < 1
            speed = np.hypot(dx, dy) * UM / (V * ROW_NS * 1e-9)
            assert abs(cell["speed_um_s"] / speed - 1) < 0.15, (cell, speed)
        known = [c["speed_um_s"] for c in header["cells"]]
        assert abs(header["median_speed_um_s"] - np.median(known)) < 1e-3, header
        status = daemon.status()
        counts = cells_of(status)
        assert counts["seen"] == counts["done"] + sum(counts["skipped"].values()) == 5 * V - 3, counts
        assert counts["running"] == "cpu" and counts["radius_px"] == R and counts["enabled"] is True
        text = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics").read().decode()
        number = lambda row: float(re.search("^" + re.escape(row) + r"\S* ([0-9.e+]+)$", text, re.M)[1])
        done = number('octd_analysis_done_total{analysis="cells"')
        assert done == counts["done"], text
        # Keys of others, and those that need no other film, leave the tracks.
        assert daemon.ask("set", key="average.min_score", value="0.4")["ok"]
        assert daemon.ask("set", key="cells.min_frames", value="2")["ok"]
        scanner.volumes(1)
        _, header, _ = receive(socket)
        assert [c["track"] for c in header["cells"]] == [1, 2, 3], header["cells"]
        assert daemon.ask("set", key="cells.enabled", value="no")["ok"]
        daemon.wait(lambda s: cells_of(s)["at_rest"])
        assert cells_of(scanner.scan(2))["seen"] == 6 * V - 3


@case
def a_volume_is_recorded_as_it_was_told():
    """cells.record: /analysis/cells of each volume is what the topic said; the default has none"""
    wanted = settings(cells=dict(enabled="yes", record="yes", min_frames=2))
    with Daemon(*SCAN, *wanted) as daemon:
        socket, scanner = daemon.subscriber("cells"), Scanner(daemon, of_volumes)
        assert daemon.ask("record", action="start")["ok"]
        for volume in range(2):
            scanner.volumes(1)
            _, header, values = receive(socket)
            daemon.wait(lambda s: s["volumes_written"] == volume + 1)
            path = sorted(glob.glob(daemon.records + "/*.h5"), key=os.path.getmtime)[-1]
            with h5py.File(path) as f:
                table, columns = f["analysis/cells"], f["analysis"]
                assert table.shape == (256, 7) and columns["cells_valid"][0] == 1
                assert columns["cells_rows"][0] == len(values) == (len(MOVING) if volume else 0)
                assert np.array_equal(table[:len(values)], values, equal_nan=True)
                assert np.isnan(table[len(values):]).all()
                assert columns["cells_count"][0] == header["count"]
                labels = [s if isinstance(s, str) else s.decode() for s in table.attrs["labels"]]
                assert labels == COLUMNS, labels
            assert run("octctl", "check", path)[0] == 0
    with Daemon(*SCAN, "--set", "cells.enabled=yes") as daemon:
        scanner = Scanner(daemon, of_volumes)
        assert daemon.ask("record", action="start")["ok"]
        scanner.volumes(1)
        daemon.wait(lambda s: s["volumes_written"] == 1)
        with h5py.File(glob.glob(daemon.records + "/*.h5")[0]) as f:
            assert "cells" not in f["analysis"]


@case
def bscans_that_come_too_quickly_are_skipped_and_counted():
    """400 B-scans a second of 240 x 512: begun = done + skipped, and no picture waits for them"""
    n, lines = 300, 240
    wanted = settings(cells=dict(enabled="yes", source="bscan"), scan=dict(lines=lines),
                      pipeline=dict(crop_last=512))
    with Daemon(*SCAN, *wanted) as daemon:
        socket, sender = daemon.subscriber("cells"), Sender(daemon, 1)
        dice = np.random.default_rng(7)
        bscan = dice.integers(18000, 22000, (lines, N)).astype("<u2")
        begin = time.monotonic()
        for i in range(n):
            sender.send(bscan, i * lines, flags=i == 0, time_ns=10 ** 12 + i * 2_500_000)
            time.sleep(max(0, begin + (i + 1) / 400 - time.monotonic()))
        status = daemon.wait(lambda s: s["bscans_done"] + sum(s["bscans_dropped"].values()) == n
                             and cells_of(s)["seen"] == s["bscans_done"]
                             and s["bscans_published"] + s["bscans_not_published"]
                             == s["bscans_done"])
        counts = cells_of(status)
        skipped = counts["skipped"]
        seen(f"{counts['done']} done, {skipped['late']} late, {n} sent in "
             f"{time.monotonic() - begin:.2f} s")
        assert counts["done"] + sum(skipped.values()) == counts["seen"] == status["bscans_done"], counts
        assert counts["done"] > 0 and skipped["late"] > 0, counts
        assert sum(skipped.values()) == skipped["late"] and counts["results"] == counts["done"], counts
        told = 0
        while told < counts["done"] and socket.poll(2000):
            told = receive(socket)[1]["frames_done"]
        assert told == counts["done"], (told, counts)


@case
def cells_of_bscans():
    """source=bscan: a table a B-scan, a cell that moves along the A-lines, all of it recorded"""
    n = 12
    wanted = settings(cells=dict(enabled="yes", record="yes", source="bscan", threshold=1.2),
                      scan=dict(bscans=n, height_um=0))
    with Daemon(*SCAN, *wanted) as daemon:
        socket, scanner = daemon.subscriber("cells"), Scanner(daemon, section_of)
        assert daemon.ask("record", action="start")["ok"]
        scanner.scan(n)
        told = [receive(socket)[1:] for _ in range(n)]
        daemon.wait(lambda s: s["volumes_written"] == 1)
        for i, (header, values) in enumerate(told):
            check_message(header, values)
            assert header["bscan"] == i and header["is_bscan"] == 1
            assert (header["width"], header["height"]) == (M, DEPTH)
            # A wave over wavelengths is 1.06 of it over k.
            near = [c for c in header["cells"] if np.hypot(c["x"] - 20 - 1.5 * i, c["y"] - 53) < 3]
            assert i < 2 or len(near) == 1, (i, header["cells"])
        counts = cells_of(daemon.status())
        assert counts["results"] == counts["recorded"] == n and counts["not_recorded"] == 0, counts
        with h5py.File(glob.glob(daemon.records + "/*.h5")[0]) as f:
            table, frames = f["analysis/cells"], f["frames"]
            assert table.shape == (n, 256, 7) and frames["cells_valid"][:].all()
            for i, (header, values) in enumerate(told):
                assert frames["cells_rows"][i] == len(values)
                assert np.array_equal(table[i, :len(values)], values, equal_nan=True)
                assert np.isnan(table[i, len(values):]).all()
                assert frames["cells_frames_done"][i] == header["frames_done"] == i + 1


@case
def every_bscan_of_a_camera_that_never_pauses_is_accounted_for():
    """beside a fast camera: seen = done + skipped at every moment, and pictures lose nothing to it"""
    wanted = settings(cells=dict(enabled="yes", source="bscan", radius_px=2))
    with Daemon(*BASE, *wanted) as daemon, Player(daemon, 4000 if SLOW else 40000):
        daemon.subscriber("cells")
        daemon.wait(lambda s: cells_of(s)["done"] >= (5 if SLOW else 20))
        for _ in range(20):
            status = daemon.status()
            counts = cells_of(status)
            assert counts["seen"] == counts["done"] + sum(counts["skipped"].values()), counts
            assert counts["seen"] <= status["bscans_done"], (counts, status["bscans_done"])
        assert status["degraded"] == [], status["degraded"]


@case
def wrong_settings_are_refused():
    """a radius that does not fit, texts that are no region and no angle: named, and left as it was"""
    for key, value, says in (("roi", "1,2,3", "X,Y,W,H"), ("flow_deg", "left", "-360 to 360"),
                             ("flow_deg", "0x10", "-360 to 360"),
                             ("flow_deg", "nan", "-360 to 360"),
                             ("radius_px", "1", "1.5 to 200"), ("source", "volume", "enface")):
        status, _, err = run("octd", *SCAN, "--set", f"cells.{key}={value}")
        assert status == 2 and f"cells.{key}" in err and says in err, err
    with Daemon(*SCAN, "--set", "cells.enabled=yes") as daemon:
        for key, value, says in (("radius_px", "40", "too small"), ("roi", "50,0,20,20", "region"),
                                 ("roi", "0,0,x,9", "X,Y,W,H"), ("radius_um", "500", "too small")):
            refused = daemon.ask("set", key="cells." + key, value=value)
            assert not refused["ok"] and says in refused["error"], refused
        assert daemon.ask("get", key="cells.radius_px")["value"] == "4"
        assert daemon.ask("set", key="cells.roi", value="5,5,40,40")["ok"]
        assert daemon.ask("set", key="cells.flow_deg", value="-90")["ok"]
        assert daemon.ask("set", key="cells.max_speed_um_s", value="10000")["ok"]
        _, out, _ = run("octctl", "status", "--all", *daemon.common)
        assert "max_speed_um_s 10,000," in out, out  # a speed, not seconds
        assert not cells_of(daemon.status())["failing"]
    with Daemon(*SCAN, "--set", "cells.enabled=yes", "--set", "cells.radius_px=40") as daemon:
        assert cells_of(daemon.status())["failing"]
        refused = daemon.ask("set", key="cells.radius_px", value="4")
        assert not refused["ok"] and "did not start" in refused["error"], refused
        assert "too small" in refused["error"] and "stop" in refused["error"], refused


main()
