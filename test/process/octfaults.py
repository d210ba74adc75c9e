"""Real faults on real processes, for test_faults_*.py: test/preload/faults.c, senders and players."""
import contextlib
import numpy as np
from octtest import *

LONG = os.environ.get("OCT_LONG") == "1"
N, M, V = 832, 20, 10  # samples, A-lines, B-scans


def wavelengths():
    path = os.path.join(folder("calibration"), "wavelengths.txt")
    t = np.arange(N) / N
    np.savetxt(path, 825 + 52 * t - 2.5 * t * t, fmt="%.9f")
    return path


BASE = settings(scan=dict(lines=M, bscans=V), pipeline=dict(crop_last=128, ring_bscans=32),
                calibration=dict(wavelengths=wavelengths()), daemon=dict(drain_s=60))
# For cameras that are recorded for seconds: a volume is closed with some three syncs, and at 4000
# A-lines a second V B-scans take 50 ms.
LONG_VOLUMES = settings(scan=dict(bscans=10 * V))
LINES = np.random.default_rng(1).integers(100, 4000, (2 * V * M, N)).astype("<u2")


def Player(daemon, rate=20000, *more):
    path = os.path.join(folder("recordings"), "lines.raw")
    LINES.tofile(path)
    return Replay(daemon, path, rate, *BASE, *more)


def receive(socket):
    """(topic, header, values) of the next message of a subscriber, whose sizes are right."""
    topic, header, values = socket.recv_multipart()
    header = json.loads(header)
    assert header["dsize"] == len(values)
    shape = [int(n) for n in header["shape"]]
    dtype = {"float": "<f4", "uint8": "u1"}[header["dtype"]]
    return topic.decode(), header, np.frombuffer(values, dtype).reshape(shape)


@contextlib.contextmanager
def environment(**values):
    """os.environ for what is started within."""
    before = dict(os.environ)
    os.environ.update(values)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


class Faults:
    """The preload library, built for this test, and its switches."""

    def __init__(self, name):
        self.folder = folder("faults-" + name)
        self.library = os.path.join(self.folder, "faults.so")
        subprocess.run(["gcc", "-std=c17", "-O1", "-Wall", "-fPIC", "-shared", "-o", self.library,
                        os.path.join(TOP, "test/preload/faults.c"), "-ldl"], check=True)

    def environment(self, **more):
        return environment(LD_PRELOAD=self.library, OCT_FAULTS=self.folder,
                           ASAN_OPTIONS="verify_asan_link_order=0", **more)

    @contextlib.contextmanager
    def on(self, fault, text=""):
        """The fault, for as long as the block takes. One that hit nobody is an error."""
        path = os.path.join(self.folder, fault)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path + ".hit")
        with open(path + ".new", "w") as file:
            file.write(text)
        os.rename(path + ".new", path)
        try:
            yield
        finally:
            os.unlink(path)
        assert os.path.exists(path + ".hit"), f"{fault}: nothing was hit, so nothing was tested"


COUNTS = ("lines_received lines_missing lines_duplicate lines_late lines_dropped messages_received "
          "messages_duplicate messages_missed bscans_begun bscans_done bscans_published "
          "bscans_written bytes_written acquisitions").split()


def check_monotonic(before, after):
    for key in COUNTS:
        assert after[key] >= before[key], (key, before[key], after[key])
    assert after["uptime_s"] >= before["uptime_s"], (before["uptime_s"], after["uptime_s"])
