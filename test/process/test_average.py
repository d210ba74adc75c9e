#!/usr/bin/python3
"""The live average of B-scans, in a real octd: topic, dataset, settings, status, blocks of repeats."""
import glob
import signal
import h5py
from octfaults import *

LINES, DEPTH, VOLUME = 64, 192, 12
SCAN = settings(scan=dict(lines=LINES, bscans=VOLUME), pipeline=dict(crop_last=DEPTH, ring_bscans=32),
                calibration=dict(wavelengths=wavelengths()), output=dict(sample="f32"))


def eye(seed, noise, scene=5):
    """A-lines of a B-scan: reflectors that lie at other depths in each A-line, and noise."""
    random = np.random.default_rng(scene)
    depths = random.uniform(20, DEPTH - 20, (LINES, 12))
    depths[1:] = depths[:1] + 4 * np.sin(np.arange(1, LINES)[:, None] / 3 + np.arange(12))
    strength = random.uniform(60, 300, (LINES, 12))
    k = np.arange(N) / N
    fringes = (strength[:, :, None] * np.cos(2 * np.pi * depths[:, :, None] / 2.46 * k)).sum(1)
    more = np.random.default_rng(seed).normal(0, noise, (LINES, N))
    return np.clip(20000 + fringes + more, 0, 65535).round().astype("<u2")


class Scanner:
    """Sends B-scans one by one, each when the average has dealt with the one before."""

    def __init__(self, daemon):
        self.daemon, self.sender, self.n = daemon, Sender(daemon, 1), 0

    def scan(self, bscan, average=True):
        before = self.daemon.status()
        self.sender.send(bscan, self.n * LINES, flags=self.n == 0)
        self.n += 1
        dealt = seen_by(before) + average
        return self.daemon.wait(lambda s: s["bscans_published"] == before["bscans_published"] + 1
                                and seen_by(s) >= dealt)


def seen_by(status):
    return sum(a["seen"] for a in status["analysis"] if a["name"] == "average")


def mean_db(pictures):
    """The oracle: intensity, in double precision."""
    return 10 * np.log10(np.mean([10 ** (p.astype(float) / 10) for p in pictures], axis=0))


def average_of(status):
    return next(a for a in status["analysis"] if a["name"] == "average")


@case
def it_is_off_until_it_is_asked_for():
    """set average.bscans wakes it in a running daemon: the topic is the mean of the last ones"""
    with Daemon(*SCAN, "--set", "average.register=none") as daemon:
        pictures, averages = daemon.subscriber("bscan"), daemon.subscriber("average")
        scanner = Scanner(daemon)
        for i in range(3):
            status = scanner.scan(eye(i, 300), average=False)
        last = average_of(status)
        assert last["at_rest"] and last["seen"] == 0, last
        assert status["average"] == dict(bscans=1, averaged=0, rejected=0, resets=0, behind=0,
                                         score=None, min_score=0), status["average"]
        assert daemon.ask("set", key="average.bscans", value="4")["ok"]
        daemon.wait(lambda s: not average_of(s)["at_rest"])
        third, shown = [receive(pictures)[2] for _ in range(3)][-1], []
        for i in range(7):
            status = scanner.scan(eye(10 + i, 300))
            shown.append(receive(pictures)[2])
            _, header, mean = receive(averages)
            if i == 0 and header["frame_num"] == 2:  # its stage was woken before it came to it
                shown.insert(0, third)
                _, header, mean = receive(averages)
            window = shown[-4:]
            assert header["dataset"] == "analysis/average" and header["unit"] == "dB", header
            assert header["averaged"] == len(window) == status["average"]["averaged"], header
            assert header["score"] is None and header["shift_px"] == [0, 0], header
            assert header["rejected"] == header["resets"] == 0 and header["frame_num"] == 3 + i
            assert np.abs(mean - mean_db(window)).max() < 2e-3, i
        assert daemon.ask("set", key="average.bscans", value="1")["ok"]
        status = daemon.wait(lambda s: average_of(s)["at_rest"])
        assert status["average"]["averaged"] == 0 and status["average"]["behind"] == 0


@case
def a_bad_frame_is_left_out():
    """B-scans of another scene score low, are left out and counted; eight of them begin anew"""
    with Daemon(*SCAN, *settings(scan=dict(bscans=100), output=dict(sample="u8"),
                                 average=dict(bscans=16))) as daemon:
        averages, scanner = daemon.subscriber("average"), Scanner(daemon)
        for i in range(5):
            status = scanner.scan(eye(i, 200))
        assert status["average"]["averaged"] == 5 and status["average"]["rejected"] == 0, status
        assert status["average"]["score"] > 0.5, status["average"]
        headers = [receive(averages)[1:] for _ in range(5)]
        before = headers[-1][1]
        assert headers[-1][0]["dtype"] == "uint8" and headers[-1][0]["score"] > 0.5
        status = scanner.scan(eye(77, 200, scene=6))
        _, header, image = receive(averages)
        assert header["rejected"] == 1 and header["averaged"] == 5 and header["score"] < 0.3, header
        assert (image == before).all() and status["average"]["rejected"] == 1
        status = scanner.scan(eye(6, 200))
        assert status["average"]["averaged"] == 6 and status["average"]["resets"] == 0
        for i in range(8):
            status = scanner.scan(eye(80 + i, 200, scene=7))
        assert status["average"]["resets"] == 1 and status["average"]["averaged"] == 1, status
        assert status["degraded"] == [], status["degraded"]
        _, out, _ = run("octctl", "status", *daemon.common)
        assert "1 of 16 in the mean, 9 left out" in out, out
        refused = daemon.ask("set", key="average.bscans", value="257")
        assert not refused["ok"] and "average.bscans" in refused["error"], refused


@case
def it_is_recorded_where_asked_for():
    """average.record: /analysis/average and its columns, what was published; /average is the same"""
    wanted = settings(average=dict(bscans=4, record="yes"), output=dict(sample="u8"))
    with Daemon(*SCAN, *wanted) as daemon:
        averages, scanner = daemon.subscriber("average"), Scanner(daemon)
        assert daemon.ask("record", action="start")["ok"]
        for i in range(VOLUME):
            scanner.scan(eye(i, 200))
        daemon.wait(lambda s: s["volumes_written"] == 1)
        sent = [receive(averages)[1:] for _ in range(VOLUME)]
        path, = glob.glob(daemon.records + "/*.h5")
        with h5py.File(path) as f:
            data, frames = f["analysis/average"], f["frames"]
            assert f["average"] == data and data.shape == (VOLUME, LINES, DEPTH)
            assert list(data.attrs["axis_names"]) == ["bscan", "line", "depth"]
            assert frames["average_valid"][:].all()
            for i, (header, image) in enumerate(sent):
                assert (data[i] == image).all() and abs(frames["average_lo"][i] - header["lo"]) < 1e-9
                assert frames["average_averaged"][i] == header["averaged"] == min(i + 1, 4)
                assert frames["average_rejected"][i] == header["rejected"] == 0
                assert np.array_equal(frames["average_shift_px"][i], header["shift_px"])
                score = np.nan if header["score"] is None else header["score"]
                assert np.allclose(frames["average_score"][i], score, atol=1e-12, equal_nan=True), i
        assert run("octctl", "check", path)[0] == 0
        assert "dataset            average [12][64][192] u8, dB: 12 rows" in run("octctl", "info", path)[1]
    with Daemon(*SCAN, *settings(average=dict(bscans=4))) as daemon:
        scanner = Scanner(daemon)
        assert daemon.ask("record", action="start")["ok"]
        for i in range(VOLUME):
            scanner.scan(eye(i, 200))
        daemon.wait(lambda s: s["volumes_written"] == 1)
        with h5py.File(glob.glob(daemon.records + "/*.h5")[0]) as f:
            assert "average" not in f and "average" not in f["analysis"]


@case
def repeats_are_averaged_by_blocks():
    """scan.repeats: one image a block, [V/N][M][D], the registered mean of the block's B-scans"""
    wanted = settings(scan=dict(repeats=4), average=dict(record="yes", register="none"))
    with Daemon(*SCAN, *wanted) as daemon:
        pictures, averages = daemon.subscriber("bscan"), daemon.subscriber("average")
        scanner = Scanner(daemon)
        assert daemon.ask("record", action="start")["ok"]
        for i in range(VOLUME):
            scanner.scan(eye(i, 300, scene=i // 4))
        daemon.wait(lambda s: s["volumes_written"] == 1)
        shown = [receive(pictures)[2] for _ in range(VOLUME)]
        path, = glob.glob(daemon.records + "/*.h5")
        with h5py.File(path) as f:
            data, columns = f["average"], f["analysis"]
            assert data.shape == (3, LINES, DEPTH) and data.attrs["bscans_an_image"] == 4
            assert columns["average_valid"][:].all() and (columns["average_averaged"][:] == 4).all()
            for block in range(3):
                _, header, image = receive(averages)
                assert header["bscan"] == 4 * block + 3 and header["averaged"] == 4
                assert (data[block] == image).all()
                assert np.abs(image - mean_db(shown[4 * block:4 * block + 4])).max() < 2e-3
        assert run("octctl", "check", path)[0] == 0
        assert "average [3][64][192] f32, dB: 3 rows" in run("octctl", "info", path)[1]


@case
def the_last_block_of_a_volume_is_recorded_though_cut():
    """scan.repeats: blocks that lack B-scans, the volume's last one too, have their row of the file"""
    wanted = settings(scan=dict(repeats=4), average=dict(record="yes"))
    with Daemon(*SCAN, *wanted) as daemon:
        averages, sender = daemon.subscriber("average"), Sender(daemon, 1)
        assert daemon.status()["average"]["score"] is None
        assert daemon.ask("record", action="start")["ok"]
        came = [b for b in range(VOLUME + 4) if b not in (2, VOLUME - 2, VOLUME - 1)]
        for n, b in enumerate(came, 1):
            sender.send(eye(b, 200, scene=b // 4), b * LINES, flags=b == 0)
            daemon.wait(lambda s: seen_by(s) == n)
        status = daemon.wait(lambda s: s["volumes_written"] == 1)
        counts = average_of(status)
        assert counts["results"] == 4 and counts["not_recorded"] == 0, counts
        sent = [receive(averages)[1:] for _ in range(3)]
        assert [h["averaged"] for h, _ in sent] == [3, 4, 2], [h for h, _ in sent]
        assert [(h["volume"], h["bscan"]) for h, _ in sent] == [(0, 3), (0, 7), (0, VOLUME - 3)]
        path, = glob.glob(daemon.records + "/*.h5")
        with h5py.File(path) as f:
            assert f["analysis/average_valid"][:].tolist() == [1, 1, 1]
            assert all((f["average"][i] == image).all() for i, (_, image) in enumerate(sent))
            assert f["analysis/average_averaged"][:].tolist() == [3, 4, 2]


@case
def a_killed_recording_has_its_averages():
    """kill -9: the averages that had been synced are in the file, and valid"""
    wanted = settings(scan=dict(bscans=400), record=dict(sync_interval_s=0.2),
                      average=dict(bscans=4, record="yes"))
    with Daemon(*SCAN, *wanted) as daemon:
        scanner = Scanner(daemon)
        assert daemon.ask("record", action="start")["ok"]
        for i in range(8):
            scanner.scan(eye(i, 200))
        daemon.wait(lambda s: s["bscans_written"] == 8)
        time.sleep(0.5)
        daemon.process.send_signal(signal.SIGKILL)
        daemon.process.wait()
        path, = glob.glob(daemon.records + "/*.part")
        with h5py.File(path) as f:
            valid = f["frames/average_valid"][:].astype(bool)
            assert valid[:8].sum() >= 7 and not valid[8:].any(), valid[:12]
            rows = f["average"][:8][valid[:8]]
            assert np.isfinite(rows).all() and (rows.std(axis=(1, 2)) > 1).all()


@case
def wrong_settings_are_refused():
    """repeats that do not divide the volume, and an average that nothing computes, are named"""
    status, _, err = run("octd", *SCAN, "--set", "scan.repeats=5")
    assert status == 2 and "scan.repeats" in err and "divide scan.bscans" in err, err
    with Daemon(*SCAN, "--set", "analysis.run=") as daemon:
        refused = daemon.ask("set", key="average.bscans", value="4")
        assert not refused["ok"] and "analysis.run" in refused["error"], refused
        assert daemon.status()["analysis"] == []
    small = settings(pipeline=dict(crop_last=12))
    with Daemon(*SCAN, *small) as daemon:
        refused = daemon.ask("set", key="average.bscans", value="2")
        assert not refused["ok"] and "set average.register to none" in refused["error"], refused
        assert daemon.ask("set", key="average.register", value="none")["ok"]
        assert daemon.ask("set", key="average.bscans", value="2")["ok"]
        refused = daemon.ask("set", key="average.register", value="rigid")
        assert not refused["ok"] and daemon.ask("get", key="average.register")["value"] == "none"
    with Daemon(*SCAN, "--set", "analysis.run=", "--set", "average.bscans=4") as daemon:
        assert [a["name"] for a in daemon.status()["analysis"]] == ["average"]


main()
