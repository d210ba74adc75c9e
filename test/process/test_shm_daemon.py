#!/usr/bin/python3
"""Lines through shared memory into a real octd: a driver in Python written from
docs/camera-drivers.md alone, the client library's own, and drivers that are killed."""
import atexit, fcntl, glob, hashlib, mmap, os, signal, struct, subprocess, sys, time
import numpy as np, zmq
from octtest import *

N, M, V, D = 832, 60, 10, 512
NAME = f"pytest-{os.getpid()}"
WAVELENGTHS = os.path.join(folder("calibration"), "wavelengths.txt")
np.savetxt(WAVELENGTHS, np.linspace(825, 875, N), fmt="%.10f")
COMMON = settings(camera=dict(samples=N), scan=dict(lines=M, bscans=V),
                  calibration=dict(wavelengths=WAVELENGTHS), output=dict(sample="f32"),
                  pipeline=dict(crop_last=D, threads=1), publish=dict(queue_bscans=200))
SHM = settings(ingest=dict(endpoint=f"shm://{NAME}", queue_messages=8))


@atexit.register
def remove_shared():
    """What an octd leaves that a failing test kills."""
    for path in glob.glob(f"/dev/shm/octd.{NAME}*"):
        os.unlink(path)


class SharedSender(Sender):
    """A driver over shm://; plain fcntl locks, an mmap and a PUSH socket."""

    def __init__(self, name, epoch):
        self.context = zmq.Context()
        self.socket = self.context.socket(zmq.PUSH)
        self.socket.linger = 5000
        self.socket.connect(f"ipc:///dev/shm/octd.{name}.sock")
        self.epoch, self.sequence = epoch, 0
        self.fd = os.open(f"/dev/shm/octd.{name}", os.O_RDWR | os.O_CLOEXEC)
        self.memory = mmap.mmap(self.fd, 0)
        magic, self.instance, self.n_slots, n_samples, self.slot_bytes, self.offset = \
            struct.unpack_from("<8sQIIQQ", self.memory, 0)
        assert magic == b"OCTSHM01" and n_samples == N
        self.words = np.frombuffer(self.memory, "<u8", self.n_slots, 4096)

    def claim(self, timeout_s=PATIENCE_S):
        end = time.monotonic() + timeout_s
        while time.monotonic() < end:
            for slot in range(self.n_slots):
                if self.words[slot] != 0:
                    continue
                try:
                    fcntl.lockf(self.fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 1 + slot)
                except OSError:
                    continue
                if self.words[slot] == 0:
                    return slot
                fcntl.lockf(self.fd, fcntl.LOCK_UN, 1, 1 + slot)
            time.sleep(0.0005)
        raise AssertionError("no slot is free")

    def post(self, slot, lines, first_line, flags=0):
        data = lines.tobytes()
        at = self.offset + slot * self.slot_bytes
        self.memory[at:at + len(data)] = data
        self.words[slot] = self.epoch << 32 | (self.sequence % 2**31) << 1 | 1
        fcntl.lockf(self.fd, fcntl.LOCK_UN, 1, 1 + slot)
        self.socket.send_multipart([self.header(lines, first_line, flags),
                                    struct.pack("<QII", self.instance, slot, 0)])
        self.sequence += 1

    def send(self, lines, first_line, flags=0):
        self.post(self.claim(), lines, first_line, flags)


def spectra(n_lines):
    rng = np.random.default_rng(3)
    i, j = np.arange(N), np.arange(n_lines)[:, None]
    fringe = 300 * np.cos(2 * np.pi * i * (0.02 + 0.18 * ((j * 37) % 101) / 101) + j)
    return np.clip(1000 + fringe + rng.normal(0, 10, (n_lines, N)), 1, 4095).astype("<u2")


def pictures(viewer, n):
    got = []
    while len(got) < n:
        assert viewer.poll(PATIENCE_S * 1000), f"{len(got)} of {n}"
        got.append(hashlib.sha256(viewer.recv_multipart()[2]).hexdigest())
    return got


def start(*more):
    return Daemon(*COMMON, *SHM, *more)


@case
def same_bytes():
    """pictures are the same bytes whether lines came by ipc, by mmap or by the client library"""
    lines = spectra(20 * M)
    seen = {}
    with Daemon(*COMMON) as daemon:
        viewer = daemon.subscriber()
        sender = Sender(daemon, 5)
        for first in range(0, len(lines), 37):
            sender.send(lines[first:first + 37], first, flags=0 if first else 1)
        seen["ipc"] = pictures(viewer, 20)
    with start() as daemon:
        viewer = daemon.subscriber()
        sender = SharedSender(NAME, 6)
        for first in range(0, len(lines), 37):
            sender.send(lines[first:first + 37], first, flags=0 if first else 1)
        seen["mmap"] = pictures(viewer, 20)
        raw = os.path.join(folder("raw"), "lines.raw")
        lines.tofile(raw)
        for block in (1, 37, 500):
            status, out, err = run("octctl", "replay", raw, *COMMON, "--to", f"shm://{NAME}",
                                   "--rate", 20000 if block == 1 else 0, "--block", block)
            assert status == 0, (out, err)
            seen[f"client {block}"] = pictures(viewer, 20)
        status = daemon.wait(lambda s: s["lines_received"] == 4 * len(lines))
        assert status["lines_missing"] == 0 and not any(status["messages_bad"].values()), status
        assert status["endpoints"]["ingest"] == f"shm://{NAME}"
    assert len(set(seen["ipc"])) == 20
    for name, got in seen.items():
        assert got == seen["ipc"], name


HOLDER = """
import sys
sys.path.insert(0, {test!r})
import fcntl, time, test_shm_daemon as t
s = t.SharedSender({name!r}, 77)
for slot in range(s.n_slots):  # all held; in half of them lines whose message is never sent
    fcntl.lockf(s.fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 1 + slot)
    s.words[slot] = 77 << 32 | 1 if slot % 2 else 0
print("holds", flush=True)
time.sleep(60)
"""


@case
def killed_driver():
    """a driver killed with -9 while it holds every slot costs its slots for a moment, no more"""
    with start() as daemon:
        text = HOLDER.format(test=os.path.join(TOP, "test/process"), name=NAME)
        holder = subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE)
        try:
            assert holder.stdout.readline() == b"holds\n"
            sender = SharedSender(NAME, 8)
            assert sender.n_slots > 8  # those of the queue and those of the ring
            try:
                sender.claim(timeout_s=1)
                raise RuntimeError("the slots of a living driver were given away")
            except AssertionError:
                pass
        finally:
            holder.kill()
            holder.wait()
        lines = spectra(8 * M)
        for first in range(0, len(lines), M):
            sender.send(lines[first:first + M], first, flags=0 if first else 1)
        status = daemon.wait(lambda s: s["bscans_done"] == 8
                             and s["slots_reclaimed"] == sender.n_slots // 2)
        assert status["lines_missing"] == 0, status


@case
def killed_daemon():
    """a driver goes on with the daemon that follows one killed with -9, under the same name"""
    lines = spectra(M)
    raw = os.path.join(folder("raw"), "one.raw")
    lines.tofile(raw)
    first = start()
    player = subprocess.Popen([program("octctl"), "replay", raw, *COMMON, "--to", f"shm://{NAME}",
                               "--rate", "20000", "--loop"], stdout=subprocess.PIPE)
    try:
        first.wait(lambda s: s["bscans_done"] > 10)
        first.process.kill()
        first.process.wait()
        assert os.path.exists(f"/dev/shm/octd.{NAME}")  # nobody could remove it
        with start() as second:
            status = second.wait(lambda s: s["bscans_done"] > 10)
            assert status["lines_missing"] < 3 * M, status
            status, _, err = run("octd", *COMMON, *SHM)
            assert status == 1 and "another octd" in err, err
            player.send_signal(signal.SIGINT)
            player.wait(PATIENCE_S)
            assert second.end() == 0, second.log()
        assert not os.path.exists(f"/dev/shm/octd.{NAME}")
        assert not os.path.exists(f"/dev/shm/octd.{NAME}.sock")
    finally:
        player.kill()
        player.wait()
        first.kill()


@case
def garbage_beside():
    """a driver that scribbles over everything while another one sends costs pictures, not octd"""
    with start("--set", "ingest.idle_s=0.1") as daemon:
        good, evil = SharedSender(NAME, 9), SharedSender(NAME, 10)
        rng = np.random.default_rng(4)
        lines = spectra(M)
        for number in range(300):
            if number % 10 == 0:
                page = rng.integers(0, 256, 4096, np.uint8).tobytes()
                evil.memory[0:4096] = page
                evil.words[:] = rng.integers(0, 2**63, evil.n_slots)
            evil.socket.send_multipart([rng.bytes(64), rng.bytes(16)])
            evil.socket.send_multipart([evil.header(lines, number * M), struct.pack(
                "<QII", evil.instance, int(rng.integers(0, evil.n_slots + 9)), 0)])
            free = np.flatnonzero(good.words == 0)
            if len(free):
                good.post(int(free[0]), lines, number * M)
            else:
                good.words[0] = 0
        daemon.wait(lambda s: s["messages_bad"]["slot"] > 100 and s["bscans_done"] > 0)
        assert daemon.process.poll() is None
        assert daemon.end() == 0, daemon.log()


CUTTER = """
import os, sys, time
inodes, until = set(), time.monotonic() + 4
while time.monotonic() < until:
    try:
        file = os.open(sys.argv[1], os.O_WRONLY)  # octd unlinks it as soon as it is short
    except FileNotFoundError:
        continue
    os.ftruncate(file, 0)
    inodes.add(os.fstat(file).st_ino)
    os.close(file)
print(len(inodes))
"""


@case
def cut_in_a_loop():
    """a driver that cuts the memory in a loop costs lines meanwhile, and octd is none the worse"""
    raw = os.path.join(folder("raw"), "cut.raw")
    lines = spectra(M)
    lines.tofile(raw)

    def play():  # dies as its memory is cut, as any driver may
        return subprocess.Popen([program("octctl"), "replay", raw, *COMMON, "--to",
                                 f"shm://{NAME}", "--rate", "50000", "--loop"],
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    with start() as daemon:
        player = play()
        daemon.wait(lambda s: s["bscans_done"] > 5)
        sender = SharedSender(NAME, 11)
        cutter = subprocess.Popen([sys.executable, "-c", CUTTER, f"/dev/shm/octd.{NAME}"],
                                  stdout=subprocess.PIPE)
        try:
            while cutter.poll() is None:
                asked = time.monotonic()
                assert daemon.status()["state"] == "running"
                assert time.monotonic() - asked < 2
                sender.socket.send_multipart([sender.header(lines, 0),
                                              struct.pack("<QII", sender.instance, 0, 0)])
                if player.poll() is not None:
                    player = play()
                time.sleep(0.02)
            n_files = int(cutter.stdout.read())
            assert 2 <= n_files <= 6, n_files  # one a second, and the one that was there
            told = daemon.log().count("cut the shared memory short")
            assert told == 1, daemon.log()
            before = daemon.status()
            assert before["messages_bad"]["slot"] > 10, before
            after_s, until = before["bscans_done"], time.monotonic() + 20
            while daemon.status()["bscans_done"] < after_s + 100:
                assert time.monotonic() < until, daemon.status()
                if player.poll() is not None:
                    player = play()
                time.sleep(0.02)
        finally:
            cutter.kill()
            cutter.wait()
            player.kill()
            player.wait()
        assert daemon.end() == 0, daemon.log()
        assert not os.path.exists(f"/dev/shm/octd.{NAME}")
        assert not os.path.exists(f"/dev/shm/octd.{NAME}.sock")


def put(path, data=b"not octd's"):
    """Another file in the place of this one."""
    with open(path + ".new", "wb") as file:
        file.write(data)
    os.rename(path + ".new", path)


def overwrite(path):
    with open(path, "r+b") as file:
        file.write(bytes(64))


def regrow(path, to=0, more=0):
    file = os.open(path, os.O_RDWR)
    size = os.fstat(file).st_size
    os.ftruncate(file, to)
    os.ftruncate(file, size + more)
    os.close(file)


MEMORY, SOCKET = f"/dev/shm/octd.{NAME}", f"/dev/shm/octd.{NAME}.sock"
# What is done, what the log says of it, whether drivers that are attached go on as they are.
HARMS = [
    ("the memory's name is removed", lambda: os.unlink(MEMORY), "removed or replaced the shared",
     False),
    ("the memory is replaced by another file", lambda: put(MEMORY), None, False),
    ("the socket's name is removed", lambda: os.unlink(SOCKET), "replaced the socket", True),
    ("the socket is replaced by another file", lambda: put(SOCKET), None, True),
    ("the header is zeroed", lambda: overwrite(MEMORY), "wrote over the header", True),
    ("the memory is cut and grown again", lambda: regrow(MEMORY), None, None),
    ("its end is cut and grown again", lambda: regrow(MEMORY, 1 << 20), None, None),
    ("the memory is made longer", lambda: regrow(MEMORY, os.stat(MEMORY).st_size, 4096), None, True),
]


def send_one(sender, lines):
    """One B-scan, by whatever is left of the memory."""
    sender.send(lines, M * sender.sequence)


@case
def harm_is_put_right():
    """memory or socket removed, replaced, overwritten, cut and grown: a new driver comes in within
    two seconds, those that can go on do, and the log says what was done"""
    lines = spectra(M)
    with start("--set", "ingest.idle_s=0.2") as daemon:
        for number, (name, harm, words, goes_on) in enumerate(HARMS):
            sender = SharedSender(NAME, 100 + number)
            send_one(sender, lines)
            done = daemon.wait(lambda s: s["bscans_done"] > number)
            harm()
            began, mended = time.monotonic(), done["shm_mended"]
            after = daemon.wait(lambda s: s["shm_mended"] > mended, 20)
            took_s = time.monotonic() - began
            assert took_s < 2 + waited_ms(daemon.process.pid) * 1e-3, (name, took_s)
            assert after["shm_mended"] == mended + 1, (name, after)
            assert words is None or words in daemon.log(), (name, daemon.log())
            if goes_on:
                send_one(sender, lines)
                daemon.wait(lambda s: s["bscans_done"] > done["bscans_done"])
            elif goes_on is False:  # as docs/camera-drivers.md says, it opens the file again
                until(lambda: not is_served(sender.fd), "the old memory to be let go")
            done = daemon.status()
            newcomer = SharedSender(NAME, 200 + number)
            send_one(newcomer, lines)
            daemon.wait(lambda s: s["bscans_done"] > done["bscans_done"])
            seen(f"{name}: put right after {took_s:.1f} s")
        assert daemon.status()["state"] == "running"
        assert daemon.end() == 0, daemon.log()
    assert not os.path.exists(MEMORY) and not os.path.exists(SOCKET)


def is_served(fd):
    """Whether somebody holds byte 0 of the file."""
    lock = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 1, 0)
    F_OFD_GETLK = 36
    return struct.unpack("hhqqi4x", fcntl.fcntl(fd, F_OFD_GETLK, lock))[0] != fcntl.F_UNLCK


@case
def anothers_name_is_left_alone():
    """an octd whose names were removed leaves those of the octd that took them, and says so"""
    lines = spectra(M)
    with start() as first:
        sender = SharedSender(NAME, 300)
        send_one(sender, lines)
        first.wait(lambda s: s["bscans_done"] == 1)
        os.kill(first.process.pid, signal.SIGSTOP)  # so that it does not take them again at once
        os.unlink(MEMORY)
        os.unlink(SOCKET)
        with start() as second:
            inodes = [os.stat(path).st_ino for path in (MEMORY, SOCKET)]
            os.kill(first.process.pid, signal.SIGCONT)
            until(lambda: "no new driver comes in; it is tried again" in first.log(), "a message")
            send_one(sender, lines)  # who was attached goes on
            first.wait(lambda s: s["bscans_done"] == 2)
            newcomer = SharedSender(NAME, 301)
            send_one(newcomer, lines)
            second.wait(lambda s: s["bscans_done"] == 1)
            assert first.end() == 0, first.log()
            assert inodes == [os.stat(path).st_ino for path in (MEMORY, SOCKET)]
            assert second.end() == 0


@case
def misnamed():
    """a name with a slash, and one that is taken, are refused with one line and status 2 or 1"""
    for endpoint in ("shm://a/b", "shm://", "shm://.."):
        status, _, err = run("octd", "--set", f"ingest.endpoint={endpoint}")
        assert status == 2 and err.count("\n") == 1 and "ingest.endpoint" in err, err
    raw = os.path.join(folder("raw"), "two.raw")
    spectra(M).tofile(raw)
    status, _, err = run("octctl", "replay", raw, *COMMON, "--to", "shm://a/b")
    assert status == 2 and err.count("\n") == 1 and "shm://a/b" in err, err
    with start() as daemon:
        status, _, err = run("octd", *COMMON, *SHM, "--set", "publish.endpoint=tcp://127.0.0.1:*",
                             "--set", "control.endpoint=tcp://127.0.0.1:*")
        assert status == 1 and "another octd" in err and NAME in err, err
        assert daemon.send("status")["ok"]


if __name__ == "__main__":
    main()
