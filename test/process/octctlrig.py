"""What the tests of octctl share: TAP lines, running it, its errors' text, small recordings, and
who takes the lines of a camera."""
import os, re, struct, subprocess, threading, time

import h5py, numpy as np, zmq

from octtest import BUILD, PATIENCE_S

TMP = os.environ["TMPDIR"]
OCTCTL = os.path.join(BUILD, "octctl")
count = 0


def check(condition, sentence, detail="", excuse=None):
    """excuse: why a failure tells nothing of octd, if it does not."""
    global count
    count += 1
    if not condition and excuse:
        print(f"ok {count} - {sentence} # SKIP {excuse}: {detail}")
        return
    print(f"{'ok' if condition else 'not ok'} {count} - {sentence}")
    if not condition and detail != "":
        print("# " + str(detail).replace("\n", "\n# "))


def run(program, *arguments, timeout=PATIENCE_S):
    return subprocess.run([os.path.join(BUILD, program), *map(str, arguments)], text=True,
                          capture_output=True, timeout=timeout)


def octctl(*arguments, timeout=PATIENCE_S):
    done = run("octctl", *arguments, timeout=timeout)
    return done.returncode, done.stdout, done.stderr


def refused(sentence, status, pattern, *arguments):
    """The command fails with this status and exactly one line on stderr that matches."""
    code, out, err = octctl(*arguments)
    good = code == status and err.count("\n") == 1 and re.search(pattern, err)
    check(good, sentence, f"status {code}, wanted {status}\n{err}wanted {pattern}\n{out}")


def main(*tests):
    for test in tests:
        test()
    print(f"1..{count}")


# ---- recordings ----

N, M, V = 64, 10, 4
SMALL = ("--set", f"camera.samples={N}", "--set", f"scan.lines={M}", "--set", f"scan.bscans={V}")


def make_raw(name, n_bscans, header=b"", trailer=b""):
    samples = np.random.default_rng(7).integers(0, 65536, (n_bscans * M, N), dtype="<u2")
    with open(os.path.join(TMP, name), "wb") as f:
        f.write(header + samples.tobytes() + trailer)
    return os.path.join(TMP, name), samples


def make_h5(name, valid=None, missing=None, spectra=True):
    path = os.path.join(TMP, name)
    samples = np.random.default_rng(8).integers(0, 4096, (V, M, N), dtype="<u2")
    with h5py.File(path, "w") as f:
        if spectra:
            f["spectra"] = samples
        else:
            f["bscans"] = np.zeros((V, M, 32), "u1")
        f["frames/sequence"] = np.arange(V, dtype="<u8")
        f["frames/time_ns"] = np.arange(V, dtype="<u8") * 1000
        f["frames/missing_lines"] = np.array(missing or [0] * V, "<u4")
        f["frames/valid"] = np.array(valid or [1] * V, "u1")
        f["calibration/wavelengths_nm"] = np.linspace(800, 880, N)
    return path, samples.reshape(V * M, N)


# ---- lines in ----

class Receiver(threading.Thread):
    """PULL as octd binds it; keeps (arrival, header fields, payload) of every message."""

    def __init__(self, name):
        super().__init__(daemon=True)  # a test that fails half way must not hang
        self.endpoint = f"ipc://{TMP}/{name}"
        self.context = zmq.Context()
        self.socket = self.context.socket(zmq.PULL)
        self.socket.bind(self.endpoint)
        self.messages, self.stop = [], threading.Event()
        self.start()

    def run(self):
        while not self.stop.is_set() or self.socket.poll(400):
            if self.socket.poll(20):
                parts = self.socket.recv_multipart()
                self.messages.append((time.monotonic(), parts))

    def finish(self):
        self.stop.set()
        self.join()
        self.socket.close(0)
        self.context.term()
        return [self.decode(at, parts) for at, parts in self.messages]

    @staticmethod
    def decode(at, parts):
        assert len(parts) == 2 and len(parts[0]) == 64, [len(p) for p in parts]
        names = "magic version size sequence time first lines samples format flags epoch crc"
        m = dict(zip(names.split(), struct.unpack("<4sHHQQQIIHHII12x", parts[0])))
        assert (m["magic"], m["version"], m["size"]) == (b"OCTL", 1, 64) and not any(parts[0][52:])
        samples = np.frombuffer(parts[1], "<u2" if m["format"] == 2 else "u1").astype("<u2")
        if m["format"] == 3:  # Mono12p
            a, b, c = samples.reshape(-1, 3).T
            samples = np.stack([a | (b & 15) << 8, b >> 4 | c << 4], -1)
        m["at"], m["data"] = at, samples.reshape(m["lines"], m["samples"])
        return m


def play(name, *arguments):
    receiver = Receiver(name)
    try:
        result = octctl("replay", *arguments, "--to", receiver.endpoint)
    finally:
        messages = receiver.finish()
    return result, messages


def lines_by_number(messages):
    return {m["first"] + j: m["data"][j] for m in messages for j in range(m["lines"])}
