"""What the Python tests share: TAP lines, running programs, and the wire of contract section 5,
written from the contract alone."""
import json, os, signal, struct, subprocess, sys, time, traceback
import zmq

BUILD = os.environ.get("OCT_BUILD", "build")
TOP = os.environ.get("OCT_TOP", ".")
DATA = os.path.join(TOP, "..", "shared", "data")
SLOW = "asan" in BUILD or "tsan" in BUILD  # sanitizers: everything takes several times longer

LONG = os.environ.get("OCT_LONG", "") == "1"  # make faults: every fault at full length

_cases = []
_seen = []


def case(function):
    """Marks a test; its docstring is its name."""
    _cases.append(function)
    return function


def seen(text):
    """Says what a fault did; make faults shows it in its table, beside the verdict."""
    _seen.append(text)
    print("# seen: " + text, flush=True)


def _book(name, verdict):
    """One row of the table, if somebody asks for it."""
    path = os.environ.get("OCT_FAULTS_TABLE")
    if path:
        with open(path, "a") as table:
            table.write(json.dumps([name, "; ".join(_seen), verdict]) + "\n")
    _seen.clear()


class Skip(Exception):
    pass


def main():
    failed = 0
    for number, function in enumerate(_cases, 1):
        name = " ".join(function.__doc__.split())
        try:
            function()
            print(f"ok {number} - {name}", flush=True)
            _book(name, "passed")
        except Skip as why:
            print(f"ok {number} - {name} # SKIP {why}", flush=True)
            _book(name, f"skipped: {why}")
        except Exception:
            failed += 1
            print(f"not ok {number} - {name}", flush=True)
            print("".join("# " + line + "\n" for line in traceback.format_exc().splitlines()),
                  flush=True)
            _book(name, "FAILED")
    sys.exit(failed > 0)


def program(name):
    return os.path.join(BUILD, name)


def run(*arguments, timeout=120):
    """Runs a program to its end; returns (status, stdout, stderr)."""
    done = subprocess.run([program(arguments[0]), *map(str, arguments[1:])],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout,
                          stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def folder(name):
    path = os.path.join(os.environ.get("TMPDIR", "/tmp"), name)
    os.makedirs(path, exist_ok=True)
    return path


def calibration(n_samples):
    """A file of wavelengths: rising, not quite straight, as a spectrometer's."""
    path = os.path.join(folder("calibration"), "wavelengths.txt")
    with open(path, "w") as file:
        for i in range(n_samples):
            t = i / n_samples
            file.write(f"{825 + 52 * t - 2.5 * t * t:.9f}\n")
    return path


def settings(**sections):
    """settings(scan=dict(lines=3)) -> ["--set", "scan.lines=3"]"""
    words = []
    for section, keys in sections.items():
        for key, value in keys.items():
            words += ["--set", f"{section}.{key}={value}"]
    return words


class Daemon:
    """A running octd on ipc endpoints of its own."""
    count = 0

    def __init__(self, *arguments, wait=True, env=None):
        Daemon.count += 1
        where = folder(f"octd{os.getpid()}-{Daemon.count}")
        self.ingest = f"ipc://{where}/in"
        self.publish = f"ipc://{where}/out"
        self.control = f"ipc://{where}/ctl"
        self.records = os.path.join(where, "records")
        self.log_path = os.path.join(where, "log")
        self.context = zmq.Context()
        self.common = settings(ingest=dict(endpoint=self.ingest),
                               publish=dict(endpoint=self.publish),
                               control=dict(endpoint=self.control))
        self.process = subprocess.Popen(
            [program("octd"), *self.common, "--set", f"record.directory={self.records}",
             *map(str, arguments)],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=open(self.log_path, "wb"),
            env=dict(os.environ, **(env or {})))
        if wait:
            try:
                while self.send("status", timeout_s=60)["pending"]:
                    time.sleep(0.01)
            except Exception:
                self.kill()
                raise AssertionError("octd did not start: " + self.log())

    def log(self):
        return open(self.log_path, errors="replace").read()

    def ask(self, cmd, timeout_s=20, **fields):
        """A patient client: asks again while the daemon is busy, waits for what is under way."""
        until = time.monotonic() + timeout_s
        while True:
            reply = self.send(cmd, timeout_s, **fields)
            if cmd == "status" or time.monotonic() > until:
                return reply
            if reply.get("pending"):
                while time.monotonic() < until and (status := self.send("status"))["pending"]:
                    time.sleep(0.01)
                failed = cmd == "start" and status["state"] in ("idle", "error") or \
                    fields.get("action") == "start" and not status["record"]["active"]
                if failed:
                    return dict(ok=False, error=status["last_error"])
                return dict(ok=True, state=status["state"], phase=status["phase"])
            if not reply.get("busy"):
                return reply
            time.sleep(0.01)

    def send(self, cmd, timeout_s=20, **fields):
        """One request, one reply."""
        socket = self.context.socket(zmq.REQ)
        socket.linger = 0
        socket.connect(self.control)
        socket.send(json.dumps(dict(cmd=cmd, **fields)).encode())
        until = time.monotonic() + timeout_s
        while time.monotonic() < until:
            if socket.poll(200):
                reply = json.loads(socket.recv())
                socket.close()
                return reply
            if self.process.poll() is not None:
                break
        socket.close()
        raise AssertionError(f"no reply to {cmd}; log: {self.log()}")

    def status(self):
        reply = self.ask("status")
        assert reply["ok"], reply
        dropped = sum(reply["bscans_dropped"].values())
        assert reply["bscans_begun"] == reply["bscans_done"] + dropped + reply["bscans_in_flight"]
        return reply

    def wait(self, what, timeout_s=30):
        """Waits until what(status) is true; returns that status."""
        until = time.monotonic() + timeout_s
        while True:
            status = self.status()
            if what(status):
                return status
            assert time.monotonic() < until, f"waited in vain: {status}"
            time.sleep(0.02)

    def subscriber(self):
        socket = self.context.socket(zmq.SUB)
        socket.rcvhwm = 0
        socket.setsockopt(zmq.SUBSCRIBE, b"bscan")
        socket.connect(self.publish)
        time.sleep(0.3)  # a subscription takes its way
        return socket

    def end(self, number=signal.SIGTERM, timeout_s=60):
        """Ends the daemon with a signal and returns its exit status."""
        self.process.send_signal(number)
        return self.process.wait(timeout_s)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.context.destroy(linger=0)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()


class Sender:
    """A camera driver: contract section 5, lines in."""

    def __init__(self, daemon, epoch):
        self.socket = daemon.context.socket(zmq.PUSH)
        self.socket.linger = 5000
        self.socket.connect(daemon.ingest)
        self.epoch, self.sequence = epoch, 0

    def header(self, lines, first_line, flags=0, time_ns=0, crc=0, **change):
        """64 bytes; `change` replaces fields by name."""
        field = dict(magic=b"OCTL", version=1, header_bytes=64, sequence=self.sequence,
                     time_ns=time_ns, first_line=first_line, n_lines=len(lines),
                     n_samples=lines.shape[1], format=2, flags=flags, epoch=self.epoch, crc=crc,
                     zeros=bytes(12))
        field.update(change)
        return struct.pack("<4sHHQQQIIHHII12s", *field.values())

    def send(self, lines, first_line, flags=0, sequence=None, **change):
        if sequence is not None:
            change["sequence"] = sequence
        self.socket.send_multipart([self.header(lines, first_line, flags, **change),
                                    lines.tobytes()])
        if sequence is None:
            self.sequence += 1
