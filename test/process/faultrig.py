"""What the disk-fault tests share: a daemon whose disk can be told to fail, a camera that never
stops, a viewer that notes every pause, and a look at what was recorded."""
import glob, threading
import h5py
import numpy as np
from octcrc import crc32c_rows
from octtest import *

N, M, V = 832, 40, 100
RATE = 12000  # A-lines a second: 300 B-scans
BSCANS_S = RATE / M
LIVE_S = 0.5  # the longest pause between two pictures that still counts as going on; the machine's
# own (see Viewer) are not counted


def recording():
    path = os.path.join(folder("recordings"), "lines.raw")
    lines = np.random.default_rng(4).integers(100, 4000, (2 * V, M, N)).astype("<u2")
    lines.tofile(path)
    return path, lines


BASE = settings(scan=dict(lines=M, bscans=V, line_rate_hz=RATE), pipeline=dict(crop_last=200),
                calibration=dict(wavelengths=calibration(N)), record=dict(sync_interval_s=0.2))
PATH, LINES = recording()


class Faulty(Daemon):
    """octd with test/preload/faultio.c before its C library."""

    def __init__(self, *arguments, journal=None):
        if SLOW:
            raise Skip("a sanitizer will not have another library before it")
        self.plan_path = os.path.join(folder("plans"), f"plan{Daemon.count}")
        self.fault("")
        env = dict(LD_PRELOAD=os.path.abspath(os.path.join(BUILD, "test", "faultio.so")),
                   FAULTIO=self.plan_path)
        if journal:
            env["FAULTIO_JOURNAL"] = journal
        super().__init__(*BASE, *arguments, env=env)

    def fault(self, words):
        with open(self.plan_path + ".new", "w") as plan:
            plan.write(words)
        os.rename(self.plan_path + ".new", self.plan_path)

    def stall_once(self, stall_s):
        """The next call to the disk hangs for so long; returns when it does."""
        self.fault(f"stall once {int(stall_s * 1000)}")
        until(lambda: not os.path.exists(self.plan_path), "a call that hangs")


def Camera(daemon, rate=RATE):
    return Replay(daemon, PATH, rate, *BASE)


class Viewer(threading.Thread):
    """Counts pictures and notes the longest pause between two, less the time in it during which
    octd, its camera and the viewer were ready to run and had no processor: that is the machine's."""
    LOOK_S = 0.1

    def __init__(self, daemon, camera):
        super().__init__(daemon=True)
        self.socket = daemon.subscriber()
        self.pids = daemon.process.pid, camera.process.pid, os.getpid()
        self.n_pictures, self.longest_s, self.last_s = 0, 0.0, None
        self.waited_s = [waited_ms(*self.pids) * 1e-3] * 2  # when looked at last, and before
        self.looked_s = time.monotonic()
        self.ended = False
        self.start()

    def look(self, now):
        self.waited_s = [waited_ms(*self.pids) * 1e-3, self.waited_s[0]]
        self.looked_s = now

    def note(self, now):
        """A pause that ends or goes on at this moment. It may have begun before the last look."""
        pause_s = now - (self.last_s or now)
        if pause_s > self.LOOK_S:
            began_s = self.waited_s[1]
            self.look(now)
            pause_s -= self.waited_s[0] - began_s
        elif now - self.looked_s > self.LOOK_S:
            self.look(now)
        self.longest_s = max(self.longest_s, pause_s)

    def run(self):
        while not self.ended:
            try:
                if not self.socket.poll(50):
                    continue
                self.socket.recv_multipart()
            except zmq.ZMQError:  # the test has ended
                return
            now = time.monotonic()
            self.note(now)
            self.last_s, self.n_pictures = now, self.n_pictures + 1

    def forget(self):
        self.longest_s = 0.0

    def end(self):
        """The longest pause since forget, the one that goes on included."""
        self.ended = True
        self.join(PATIENCE_S)
        self.note(time.monotonic())
        return self.longest_s


def account(daemon):
    a = daemon.status()["record_account"]
    assert a["offered"] == a["written"] + a["pending"] + sum(a["dropped"].values()), a
    return a


def names(daemon):
    return sorted(glob.glob(daemon.records + "/*"))


def look(name):
    """Verifies a file with means of its own; returns (B-scan numbers that are there, gaps as
    {reason: set of B-scan numbers}). Lines within B-scans do not go missing in these tests."""
    with h5py.File(name, "r") as f:
        valid = f["frames/valid"][:] == 1
        number = f["frames/number"][:][valid]
        spectra, pictures = f["spectra"][:][valid], f["bscans"][:][valid]
        assert np.array_equal(spectra, LINES[number % len(LINES)]), f"{name}: not what was sent"
        if len(number):
            assert np.array_equal(crc32c_rows(spectra), f["frames/spectra_crc32c"][:][valid])
            assert np.array_equal(crc32c_rows(pictures), f["frames/bscans_crc32c"][:][valid])
        gaps = {}
        words = [w.decode() if isinstance(w, bytes) else w for w in f["gaps/reason"].attrs["names"]]
        for first, n, reason in zip(f["gaps/first_line"][:], f["gaps/n_lines"][:],
                                    f["gaps/reason"][:]):
            if n:
                assert first % M == 0 and n % M == 0, (name, first, n)
                gaps.setdefault(words[reason], set()).update(
                    range(int(first) // M, int(first + n) // M))
        return set(int(n) for n in number), gaps


def check_files(daemon):
    status, out, err = run("octctl", "check", *names(daemon))
    assert status == 0, (out, err)
    return out


def everything_is_there(daemon, first_file=0):
    """All files: B-scans written and gaps, by number, make one whole without overlap."""
    there, lost = set(), {}
    for name in names(daemon)[first_file:]:
        numbers, gaps = look(name)
        assert not there & numbers
        there |= numbers
        for reason, what in gaps.items():
            lost.setdefault(reason, set()).update(what)
    lost.pop("not_recorded", None)
    dropped = set().union(*lost.values()) if lost else set()
    assert not there & dropped
    whole = there | dropped
    assert whole == set(range(min(whole), max(whole) + 1)), "numbers that nobody answers for"
    return there, lost
