"""A camera driver that goes on sending as it is told, for the tests of right and wrong ones."""
import threading
import numpy as np
from octtest import *

N, M, V = 128, 40, 10
BASE = settings(camera=dict(samples=N), scan=dict(lines=M, bscans=V),
                pipeline=dict(crop_last=50, threads=1),
                calibration=dict(wavelengths=calibration(N)))
LINES = np.random.default_rng(3).integers(100, 4000, (M, N)).astype("<u2")
T = np.arange(N) / N
SMOOTH = np.tile((3000 * 4 * T * (1 - T) + 300).astype("<u2"), (M, 1))  # a spectrum, 12 bits
PAUSE_S = 0.02  # 50 B-scans a second


class Driver(Sender):
    """Sends message after message, as `how(self, k)` says, until it is stopped."""
    epochs = iter(range(100, 10000))

    def __init__(self, daemon, how):
        super().__init__(daemon, next(self.epochs))
        self.how, self.going, self.k = how, True, 0
        self.thread = threading.Thread(target=self.run, daemon=True)

    def run(self):
        while self.going:
            self.how(self, self.k)
            self.k += 1
            time.sleep(PAUSE_S)

    def raw(self, *parts):
        self.socket.send_multipart(parts)
        self.sequence += 1

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.going = False
        self.thread.join()
        self.socket.close()


def right(s, k):
    s.send(LINES, k * M)
