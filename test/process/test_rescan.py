#!/usr/bin/python3
"""Another scan while octd runs: drivers follow, a recording goes on in its next file, and no line is
taken as of another scan than it was sent for."""
import glob
import h5py
import numpy as np
from octtest import *

M, V, N, UM = 64, 48, 256, 1200.0
EYE = dict(scan=dict(lines=M, bscans=V, width_um=UM, height_um=UM), camera=dict(samples=N))
CHOICES = ("Volume: | Star: pattern=radial flyback_lines=5 | Disc: pattern=circle width_um=500 "
           "| Spot: pattern=line lines=40 bscans=8 centre_y_um=180 angle_deg=30 width_um=700")
PATTERN = {"Volume": "raster", "Star": "radial", "Disc": "circle", "Spot": "line"}


def eye():
    """A recorded raster of an eye: from its samples every other scan is made."""
    path = at("eye.h5")
    if not os.path.exists(path):
        ok("synth", path, *settings(**EYE), "--motion", "none")
    with h5py.File(path) as file:
        nm = at("nm.txt")
        np.savetxt(nm, file["calibration/wavelengths_nm"][()], fmt="%.12g")
        return path, file["spectra"][()], settings(calibration=dict(wavelengths=nm))


def octd(*arguments, **values):
    common = settings(**EYE, ingest=dict(idle_s=0))
    return Daemon(*common, "--set", "scan.choices=" + CHOICES, *eye()[2], *arguments,
                  *settings(**values))


class Follower:
    """octctl replay --follow of the eye, while the block lasts."""

    def __init__(self, daemon, rate=40000):
        self.process = subprocess.Popen(
            [program("octctl"), "replay", eye()[0], *daemon.common, "--follow", "--json", "--rate",
             str(rate)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True)

    def __enter__(self):
        return self

    def stop(self):
        """Ends it; how many lines it has sent."""
        self.process.send_signal(signal.SIGINT)
        return json.loads(self.process.communicate(timeout=60)[0])["lines_sent"]

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


class ByHand:
    """A driver that follows when the test wants it: what it hears and sends is one step each."""

    def __init__(self, daemon):
        self.daemon = daemon
        self.news = daemon.context.socket(zmq.SUB)
        self.lines = daemon.context.socket(zmq.PUSH)
        self.lines.linger = 0
        self.news.connect(daemon.publish)
        self.lines.connect(daemon.ingest)
        self.news.subscribe(b"scan")

    def hear(self, **wanted):
        """The next announcement that says so."""
        while self.news.poll(1000 * PATIENCE_S):
            said = json.loads(self.news.recv_multipart()[1])
            if wanted.items() <= said.items():
                return said
        raise AssertionError(f"not announced: {wanted}")

    def begin(self, scan):
        self.epoch, self.n_sent, self.n = scan["epochs"][0] + random.randrange(1000), 0, scan["lines"]

    def send(self, n_bscans, flags=4):
        samples = np.random.default_rng(0).integers(0, 4000, (self.n, N), "<u2").tobytes()
        for _ in range(n_bscans):
            header = struct.pack("<4sHHQQQIIHHII12x", b"OCTL", 1, 64, self.n_sent, time.monotonic_ns(),
                                 self.n_sent * self.n, self.n, N, 2, flags | (self.n_sent == 0),
                                 self.epoch, 0)
            self.lines.send_multipart([header, samples])
            self.n_sent += 1


def nearest(share, n):
    """The parts in which shares of a field lie; on a border either of two."""
    return [np.clip(np.floor(share * n + e), 0, n - 1).astype(int) for e in (-1e-6, 1e-6)]


def check_file(path, raster, pattern):
    """Every A-line of the file is that of the eye where the file says that it lies."""
    with h5py.File(path) as file:
        assert file["scan"].attrs["pattern"] in (pattern, pattern.encode()), (path, pattern)
        valid = file["frames/valid"][()].astype(bool)
        assert not file["frames/missing_lines"][()][valid][:-1].any(), path
        x, y, spectra = (file[name][()] for name in ("scan/x_um", "scan/y_um", "spectra"))
        line_valid = file["frames/line_valid"][()].astype(bool) & valid[:, None]
    same = np.zeros(x.shape, bool)
    for column in nearest(x / UM + 0.5, M):
        for row in nearest(y / UM + 0.5, V):
            same |= (raster[row, column] == spectra).all(-1)
    assert same[line_valid].all(), (path, pattern, np.argwhere(~same & line_valid)[:5])
    return int(line_valid.sum())


def files_of(daemon):
    return sorted(glob.glob(daemon.records + "/*.h5"))


@case
def recording_goes_on():
    """scan after scan while octd records: every line that was sent is recorded, in a file of its scan"""
    path, raster, _ = eye()

    def note():
        status = daemon.send("status")
        check_sums(status)
        assert status["lines_missing"] == status["lines_late"] == 0, status
        assert not any(status["messages_bad"].values()), status["messages_bad"]
        assert not any(status["record_total"]["dropped"].values()), status["record_total"]

    with octd(record=dict(bscans="no")) as daemon, Follower(daemon) as camera:
        first = daemon.wait(lambda s: s["bscans_done"] > 0)
        assert first["scan"]["choices"] == list(PATTERN) and first["scan"]["choice"] == "Volume"
        assert daemon.ask("record", action="start")["ok"]
        numbers = [first["scan"]["number"]]
        for name in "Star", "Disc", "Spot", "Volume":
            files = files_of(daemon)
            daemon.wait(lambda s: s["phase"] == "recording" and s["volumes_written"] > 1)
            note()
            assert daemon.ask("scan", to=name)["ok"]
            status = daemon.send("status")
            assert status["scan"]["choice"] == name and status["phase"] == "recording", status
            assert status["scan"]["pattern"] == PATTERN[name]
            numbers.append(status["scan"]["number"])
            assert len(files_of(daemon)) > len(files)
        assert len(set(numbers)) == len(numbers), numbers
        daemon.wait(lambda s: s["volumes_written"] > 1)
        assert daemon.ask("record", action="stop")["ok"]
        note()
        camera.stop()
        found = {}
        for file in files_of(daemon):
            with h5py.File(file) as volume:
                pattern = volume["scan"].attrs["pattern"]
            pattern = pattern.decode() if isinstance(pattern, bytes) else pattern
            found[pattern] = found.get(pattern, 0) + check_file(file, raster, pattern)
        assert set(found) == {"raster", "radial", "circle", "line"}, found


@case
def nothing_is_lost():
    """of two scans one after another every line that the camera has sent is in a file"""
    _, raster, _ = eye()
    with octd() as daemon:
        assert daemon.ask("record", action="start")["ok"]
        with Follower(daemon) as camera:
            daemon.wait(lambda s: s["volumes_written"] > 0)
            assert daemon.ask("scan", to="Star", volumes=3)["ok"]
            status = daemon.wait(lambda s: s["volumes_written"] == 3)
            daemon.wait(lambda s: s["volumes_written"] == 3 and s["bscans_in_flight"] == 0)
            n_sent = camera.stop()
        assert daemon.ask("record", action="stop")["ok"]
        assert not any(status["messages_bad"].values()), status["messages_bad"]
        files = files_of(daemon)
        n = {p: sum(check_file(f, raster, p) for f in files
                    if h5py.File(f)["scan"].attrs["pattern"] in (p, p.encode()))
             for p in ("raster", "radial")}
        assert n["radial"] == 3 * M * V, n
        assert n["raster"] + 3 * (M + 5) * V == n_sent, (n, n_sent)


@case
def others_are_not_heard():
    """a driver that does not follow is refused after a change, in words, and heard again after a start"""
    with octd() as daemon, Replay(daemon, eye()[0], 40000):
        daemon.wait(lambda s: s["bscans_done"] > 3)
        assert daemon.ask("scan", to="Disc")["ok"]
        status = daemon.wait(lambda s: "source_refused" in s["degraded"])
        assert status["messages_bad"]["scan"] > 0 and status["lines_received"] == 0, status
        fault = status["source"]["fault"]
        assert fault["reason"] == "scan" and "stop and start" in fault["cure"], fault
        assert daemon.ask("stop")["ok"] and daemon.ask("start")["ok"]
        status = daemon.wait(lambda s: s["bscans_done"] > 3)
        assert status["scan"]["pattern"] == "circle" and status["messages_bad"]["scan"] == 0, status


@case
def refusals():
    """what no scan can be is refused, and the one before goes on, recorded as it was"""
    with octd(record=dict(volumes=0)) as daemon, Follower(daemon):
        daemon.wait(lambda s: s["bscans_done"] > 0)
        for wish, words in ((dict(to="Moon"), "scan.choices"),
                            (dict(set={"pattern": "spiral", "phase": 20}), "scan.phase"),
                            (dict(set={"samples": 20}), "no such key"),
                            (dict(set={"choices": "A:"}), "no key of a scan"),
                            (dict(set=[1]), "no object"), (dict(to=3), "no string"),
                            (dict(set={"lines": [1]}), "no string and no number"),
                            (dict(to="Star", volumes=-1), "volumes")):
            reply = daemon.ask("scan", **wish)
            assert not reply["ok"] and words in reply["error"], (wish, reply)
        assert daemon.ask("record", action="start")["ok"]
        before = daemon.wait(lambda s: s["volumes_written"] > 0)
        # Only the build finds out that there is no such file.
        code, _, err = run(program("octctl"), "rescan", "pattern=file", "positions=/nowhere/p.txt",
                           *daemon.common)
        assert code == 1 and "/nowhere/p.txt" in err and err.count("\n") == 1, (code, err)
        status = daemon.wait(lambda s: s["phase"] == "recording" and s["volumes_written"] > 0)
        assert status["scan"]["pattern"] == "raster" and status["scan"]["choice"] == "Volume", status
        assert status["scan"]["number"] > before["scan"]["number"]
        check_sums(status)


@case
def interrupted():
    """stop, record stop and SIGTERM while the scan changes end what they should"""
    with octd() as daemon, Follower(daemon):
        daemon.wait(lambda s: s["bscans_done"] > 0)
        assert daemon.ask("record", action="start")["ok"]
        assert daemon.send("scan", to="Star")["ok"]
        assert daemon.ask("stop")["ok"]
        status = daemon.wait(lambda s: s["phase"] == "idle" and not s["pending"])
        assert not status["record"]["active"], status
        assert daemon.ask("start")["ok"]
        daemon.wait(lambda s: s["bscans_done"] > 0 and s["scan"]["pattern"] == "radial")
        assert daemon.ask("record", action="start")["ok"]
        assert daemon.send("scan", to="Disc")["ok"]
        assert daemon.ask("record", action="stop")["ok"]
        status = daemon.wait(lambda s: not s["pending"] and not s["record"]["active"])
        assert daemon.ask("record", action="start", volumes=2)["ok"]
        assert daemon.send("scan", to="")["ok"]
        daemon.process.send_signal(signal.SIGTERM)
        assert daemon.process.wait(60) == 0


@case
def volumes_of_a_recording():
    """a recording of n volumes has n whole ones, however often the scan changes meanwhile"""
    with octd() as daemon, Follower(daemon):
        daemon.wait(lambda s: s["bscans_done"] > 0)
        assert daemon.ask("record", action="start", volumes=6)["ok"]
        for name in "Disc", "Star":
            daemon.wait(lambda s: s["volumes_written"] > 0)
            assert daemon.ask("scan", to=name)["ok"]
        daemon.wait(lambda s: not s["record"]["active"])
        whole = 0
        for path in files_of(daemon):
            with h5py.File(path) as file:
                whole += bool(file["frames/valid"][()].all())
        assert whole == 6, whole


@case
def no_acquisition_is_taken_for_another():
    """pictures of two scans, and of before and after a stop, have different acquisition_ids"""
    with octd() as daemon, Follower(daemon):
        pictures = daemon.subscriber()

        def another(seen):
            while (name := json.loads(pictures.recv_multipart()[1])["acquisition_id"]) in seen:
                pass
            return name

        seen = [another([])]
        assert daemon.ask("scan", to="Star")["ok"]
        seen.append(another(seen))
        assert daemon.ask("stop")["ok"] and daemon.ask("start")["ok"]
        seen.append(another(seen))
        pictures.close()


@case
def complete_while_it_ends():
    """a recording whose last volume becomes whole while the scan ends is over, and none begins"""
    with octd() as daemon:
        driver = ByHand(daemon)
        driver.begin(driver.hear())
        assert daemon.ask("record", action="start", volumes=1)["ok"]
        driver.send(V - 1)
        daemon.wait(lambda s: s["bscans_done"] == V - 1)
        assert daemon.send("scan", to="Star")["ok"]
        driver.hear(ends=True)
        driver.send(1, flags=4 | 2)
        status = daemon.wait(lambda s: not s["pending"])
        assert not status["record"]["active"] and status["phase"] == "armed", status["record"]
        assert len(files_of(daemon)) == 1


@case
def others_meanwhile():
    """while the scan ends a recording waits for the next one, and the last seconds are of this one"""
    with octd(record=dict(last_s=1)) as daemon:
        driver = ByHand(daemon)
        driver.begin(driver.hear())
        driver.send(V)
        daemon.wait(lambda s: s["bscans_done"] == V)
        assert daemon.send("scan", to="Disc")["ok"]
        last = daemon.send("record", action="last")
        for command, fields in ("record", dict(action="start")), ("calibrate", {}):
            reply = daemon.send(command, **fields)
            assert reply["busy"] and "scan" in reply["error"], reply
        driver.hear(ends=True)
        assert last["ok"] and daemon.ask("record", action="start")["ok"]
        assert daemon.send("status")["record"]["active"]
        path, = glob.glob(daemon.records + "/*last.h5")
        with h5py.File(path) as file:
            assert np.isclose(file.attrs["axis_spacing_um"][1], UM / M), file.attrs["axis_spacing_um"]
            assert "pattern = raster" in str(file.attrs["config"])


@case
def stopped_while_it_is_built():
    """after a stop in the middle of the change, too, any driver is heard"""
    with octd() as daemon:
        driver = ByHand(daemon)
        driver.begin(driver.hear())
        assert daemon.send("scan", to="Disc")["ok"]
        until(lambda: daemon.send("status")["phase"] in ("starting", "armed"), "the build")
        assert daemon.ask("stop")["ok"] and daemon.ask("start")["ok"]
        driver.send(2, flags=0)
        status = daemon.wait(lambda s: s["bscans_done"] == 2)
        assert status["scan"]["pattern"] == "circle", status["scan"]


@case
def back_to_what_was():
    """what a change said goes with it: volumes of one that was refused, a line rate, a lost recording"""
    with octd() as daemon:
        driver = ByHand(daemon)
        n = driver.hear()["number"]
        assert daemon.ask("scan", set={"pattern": "file", "positions": "/no/p.txt"}, volumes=3)["ok"]
        assert driver.hear(ends=False, number=n + 2)["volumes"] == 0
        for wish, origin in (dict(set={"line_rate_hz": 20000}), "config"), (dict(to=""), "default"):
            assert daemon.ask("scan", **wish)["ok"]
            assert daemon.send("status")["scan"]["line_rate_from"] == origin, wish
        # Keys are named as they are written.
        assert daemon.ask("scan", TO="Star")["number"] == daemon.send("status")["scan"]["number"]
        assert daemon.ask("record", action="start")["ok"]
        os.rename(daemon.records, daemon.records + ".moved")
        open(daemon.records, "w").close()
        code, _, err = run("octctl", "rescan", "Star", *daemon.common)
        status = daemon.send("status")
        assert code == 1 and daemon.records in err and err.count("\n") == 1, (code, err)
        assert status["phase"] == "armed" and daemon.records in status["last_error"], status


@case
def neither_possible():
    """where the scan before is no longer possible either, the status says why"""
    positions = at("positions.txt")
    np.savetxt(positions, np.zeros((M * V, 2)))
    with octd(scan=dict(pattern="file", positions=positions)) as daemon:
        assert daemon.ask("record", action="start")["ok"]
        os.remove(positions)
        assert daemon.send("scan", set={"positions": "/no/p.txt"})["ok"]
        status = daemon.wait(lambda s: not s["pending"])
        assert status["phase"] == "idle" and positions in status["last_error"], status["last_error"]
        assert "/no/p.txt" in status["scan"]["refused"]


@case
def a_slow_camera():
    """a B-scan that lasts longer than the change is still taken"""
    with octd() as daemon, Follower(daemon, rate=100):
        daemon.wait(lambda s: s["scan"]["line_rate_from"] == "camera")
        assert daemon.ask("scan", to="Disc")["ok"]
        status = daemon.wait(lambda s: s["bscans_done"] > 1)
        assert not any(status["messages_bad"].values()), status["messages_bad"]


@case
def in_python():
    """push_lines.py --follow: another scan, one told again, a busy octd, one that was started anew"""
    with octd() as daemon:
        script = subprocess.Popen(
            [sys.executable, os.path.join(TOP, "scripts", "push_lines.py"), "--samples", str(N),
             "--follow", daemon.publish, daemon.control, daemon.ingest])
        try:
            daemon.wait(lambda s: s["bscans_done"] > 1)
            assert daemon.ask("scan", to="Spot", volumes=1)["ok"]
            daemon.wait(lambda s: s["bscans_done"] == 8)
            ByHand(daemon).hear()
            assert daemon.ask("scan", to="Star")["ok"]
            assert daemon.ask("record", action="start")["ok"]
            daemon.wait(lambda s: s["volumes_written"] > 0)
            command = open(f"/proc/{daemon.process.pid}/cmdline").read().split("\0")[:-1]
            daemon.process.kill()
            daemon.process.wait()
            daemon.process = subprocess.Popen(command, stdin=subprocess.DEVNULL,
                                              stderr=open(daemon.log_path, "ab"))
            daemon.wait(lambda s: s["bscans_done"] > 1)
        finally:
            script.kill()
            script.wait()


if __name__ == "__main__":
    main()
