#!/usr/bin/python3
"""octview's window under Xvfb, with B-scans of 1024 x 1024 at 100 a second, a row of the quality
with each and ten en face pictures a second of 512 x 1024: at most half of a core
with the software renderer, flat memory, and what is drawn is new. Processor time is measured, which
other programs on the machine change less than the clock's; what is drawn is read from the screen's
own memory."""
import re, threading
import numpy as np
from octtest import *
from viewrig import Screen

HERE = folder("speed")
M = D = 1024
HZ = 10 if SLOW else 100
MOST_CORE = 0.5


V = 512  # B-scans a volume
QUALITY = ("snr_db", "sharpness", "level_db", "blink", "motion", "missing", "blinks", "motions",
           "snr_smooth_db", "sharpness_smooth")


class Publisher(threading.Thread):
    """Prepared pictures: the frame's number stands in the grey of each. With them what octd computes
    of them: a row of the quality each, and an en face picture that grows row by row."""

    def __init__(self, endpoint):
        super().__init__(daemon=True)
        self.endpoint, self.going, self.n = endpoint, True, 0
        rng = np.random.default_rng(1)
        self.enface = np.full((V, M), np.nan, "<f4")
        self.images = [(rng.integers(0, 60, (M, D), dtype=np.uint8) + 20 * k).tobytes()
                       for k in range(8)]

    def send_analysis(self, socket, name, values, **more):
        header = {"frame_num": self.n, "acquisition_id": "t", "dtype": "float",
                  "dsize": values.nbytes, "dataset": "analysis/" + name, "compression": "none",
                  "shape": [str(size) for size in values.shape], "time_ns": self.n,
                  "missing_lines": 0, "lo": 0.0, "hi": 60.0, "volume": self.n // V,
                  "bscan": self.n % V, **more}
        socket.send_multipart([name.encode(), json.dumps(header).encode(), values.tobytes()])

    def send_analyses(self, socket):
        row = np.zeros(len(QUALITY), "<f4") + 30
        row[3:8] = 0
        self.send_analysis(socket, "quality", row, labels=QUALITY)
        self.enface[self.n % V] = 20 + self.n % 30
        if self.n % (HZ // 10) == 0:
            self.send_analysis(socket, "enface", self.enface, whole=False, unit="dB")

    def run(self):
        socket = zmq.Context.instance().socket(zmq.PUB)
        socket.linger = 0
        socket.sndhwm = 12
        socket.bind(self.endpoint)
        start = time.monotonic()
        while self.going:
            header = {"frame_num": self.n, "acquisition_id": "t", "dtype": "uint8",
                      "dsize": M * D, "dataset": "bscans", "compression": "none",
                      "shape": [str(M), str(D)], "time_ns": self.n, "missing_lines": 0,
                      "lo": 0.0, "hi": 60.0, "volume": self.n // V, "bscan": self.n % V}
            socket.send_multipart([b"bscan", json.dumps(header).encode(), self.images[self.n % 8]],
                                  copy=False)
            self.send_analyses(socket)
            self.n += 1
            time.sleep(max(0.0, start + self.n / HZ - time.monotonic()))
        socket.close()


def shown(screen):
    """Which of the prepared pictures is in the middle of the window."""
    return round((float(screen.memory[200:240, 560:620, 0].mean()) - 29.5) / 20)


def watch(screen, publisher, seconds):
    """How many pictures a second are shown, and how many B-scans they are behind (of eight)."""
    end, last, n, behind = time.monotonic() + seconds, None, 0, []
    while time.monotonic() < end:
        newest, now = publisher.n - 1, shown(screen)
        if now != last:
            behind.append((newest - now) % 8)
            n += 1
        last = now
        time.sleep(0.002)
    return n / seconds, float(np.median(behind or [8]))


def used_s(pid):
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_kb(pid):
    return int(re.search(r"VmRSS:\s+(\d+)", open(f"/proc/{pid}/status").read())[1])


def settle(pid):
    """Ten seconds' worth of B-scans are kept, in 512 MiB at most: until those are full."""
    before, end = 0, time.monotonic() + (120 if SLOW else 60)
    while time.monotonic() < end and (resident_kb(pid) - before > 2048 or before < 500 * 1024):
        before = resident_kb(pid)
        time.sleep(2)


@case
def half_a_core_and_flat_memory():
    """1024 x 1024 pixels at 100 a second take at most half of a core and no more memory"""
    screen = Screen(1280, 720, HERE)
    publisher = Publisher(f"ipc://{HERE}/out")
    publisher.start()
    viewer = subprocess.Popen([program("octview"), "--connect", publisher.endpoint, "--control",
                               "none", "--settings", "none"], cwd=HERE,
                              env=dict(os.environ, DISPLAY=screen.display, SDL_VIDEODRIVER="x11",
                                       **NOTHING_HELD_BACK))
    try:
        settle(viewer.pid)
        shares, drawn, kept_out, memory = [], [], [], [resident_kb(viewer.pid)]
        pids = viewer.pid, screen.process.pid, os.getpid()
        for _ in range(3):
            before, start, first = used_s(viewer.pid), time.monotonic(), publisher.n
            waited = waited_ms(*pids)
            drawn.append(watch(screen, publisher, 3))
            seconds = time.monotonic() - start
            kept_out.append((waited_ms(*pids) - waited) * 1e-3 / seconds)
            shares.append((used_s(viewer.pid) - before) / seconds)
            memory.append(resident_kb(viewer.pid))
            print(f"# {shares[-1]:.2f} of a core at {(publisher.n - first) / seconds:.0f} B-scans/s,"
                  f" {drawn[-1][0]:.0f} of them shown, {drawn[-1][1]:.0f} behind, "
                  f"{memory[-1] / 1024:.0f} MB")
        assert viewer.poll() is None
        if not SLOW:
            assert min(shares) <= MOST_CORE, shares
            # A busy machine shows fewer than the sixty that a quiet one does: how many, only one
            # that lets the viewer run can tell.
            good = max(rate for rate, _ in drawn) > 20 and min(late for _, late in drawn) <= 4
            assert good or min(kept_out) > 0.2, (drawn, kept_out)
        assert memory[-1] - memory[0] < (64 if SLOW else 8) * 1024, memory
        assert memory[-1] < (4 if SLOW else 0.8) * (1 << 20), memory
    finally:
        publisher.going = False
        for process in (viewer, screen.process):
            process.kill()
            process.wait()
        publisher.join()


main()
