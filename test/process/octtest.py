"""What the Python tests share: TAP lines, running programs, and the wire of contract section 5,
written from the contract alone."""
import contextlib, glob, json, os, random, re, resource, signal, socket, struct, subprocess, sys, time
import traceback
import zmq

BUILD = os.environ.get("OCT_BUILD", "build")
TOP = os.environ.get("OCT_TOP", ".")
DATA = os.path.join(TOP, "..", "shared", "data")
SLOW = "asan" in BUILD or "tsan" in BUILD  # sanitizers: everything takes several times longer
# How long to wait for what only has to happen in the end: it ends a test that hangs, it judges no
# pace, and a busy machine must not reach it.
PATIENCE_S = 240 if SLOW else 60

LONG = os.environ.get("OCT_LONG", "") == "1"  # make faults: every fault at full length

_cases = []
_seen = []


def case(function):
    """Marks a test; its docstring is its name."""
    _cases.append(function)
    return function


def load_liboctd():
    """For a test that imports the package octd: where that and its library lie. With AddressSanitizer
    the test begins again, with the sanitizer before all other libraries; what Python keeps until its
    end is no leak of octd's."""
    os.environ["OCTD_LIBRARY"] = os.path.join(BUILD, "liboctd.so.0")
    package = os.path.join(TOP, "python")
    os.environ["PYTHONPATH"] += ":" + package
    sys.path.insert(0, package)
    if "asan" in BUILD and "LD_PRELOAD" not in os.environ:
        preload = subprocess.run(["gcc", "-print-file-name=libasan.so"], check=True, text=True,
                                 stdout=subprocess.PIPE).stdout.strip()
        os.environ.update(LD_PRELOAD=preload, ASAN_OPTIONS="detect_leaks=0")
        os.execv(sys.executable, [sys.executable, *sys.argv])


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


def run(*arguments, timeout=600 if SLOW else 120):
    """Runs a program to its end; returns (status, stdout, stderr)."""
    done = subprocess.run([program(arguments[0]), *map(str, arguments[1:])],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout,
                          stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def ok(*arguments):
    """octctl, which must end well: what it printed, on both streams."""
    got, out, err = run("octctl", *arguments)
    assert got == 0, (arguments, got, out, err)
    return out, err


def status_table(*options):
    """What octctl status --all prints, its long rows in one piece."""
    return re.sub(r"\n {20,}", " ", ok("status", "--all", *options)[0])


def refused_by(command, status, words, *arguments):
    """octctl COMMAND ends with this status, one line on stderr with these words, and no output."""
    before = sorted(os.listdir(at()))
    got, out, err = run("octctl", command, *arguments)
    assert got == status and err.count("\n") == 1 and err.startswith(f"octctl {command}: "), \
        (arguments, got, out, err)
    assert words in err and out == "", (words, out, err)
    assert sorted(os.listdir(at())) == before, (arguments, set(os.listdir(at())) ^ set(before))


def folder(name):
    path = os.path.join(os.environ.get("TMPDIR", "/tmp"), name)
    os.makedirs(path, exist_ok=True)
    return path


def at(*name):
    """A file of the test's own; their folder."""
    return os.path.join(folder("files"), *name)


def until(true, what, timeout_s=PATIENCE_S):
    """Waits until true() is, and returns what it was."""
    end = time.monotonic() + timeout_s
    while not (found := true()):
        assert time.monotonic() < end, "waited in vain: " + what
        time.sleep(0.02)
    return found


def free_port():
    """A port of this machine that nobody has now. Not one of those that the system gives to whoever
    asks for any: such a one may be taken by the next connection of another test."""
    while True:
        port = random.randrange(10000, 32000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass


def cpu_s(pid):
    """The processor time of a process and, where it leads a session, of all who are in it."""
    ticks = 0
    for path in glob.glob("/proc/[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has just ended
            words = open(path).read().rpartition(")")[2].split()
            if pid in (int(path.split("/")[2]), int(words[3])):
                ticks += sum(map(int, words[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def waited_ms(*pids):
    """For how long the threads of these processes were ready but had no processor, all of them
    together, and the machine's own processors none either. What happens meanwhile is the machine's
    doing: on a busy one, a thread that holds a lock waits too."""
    total = 0.0
    for pid in pids:
        for path in glob.glob(f"/proc/{pid}/task/*/schedstat"):
            try:
                total += int(open(path).read().split()[1]) * 1e-6
            except (OSError, IndexError):
                pass  # it has ended
    return total + stolen_ms()


def stolen_ms():
    """For how long the machine's own processors had none, since it started."""
    stolen = int(open("/proc/stat").readline().split()[8])
    return stolen * 1000 / os.sysconf("SC_CLK_TCK")


def waits_ms(pid):
    """{thread: for how long it was ready but had no processor}. "main" is the main thread,
    "ZMQbg/IO/0" and "ZMQbg/Reaper" are libzmq's of the process's first context, the others have
    their number as name."""
    threads = []
    for tid in map(int, os.listdir(f"/proc/{pid}/task")):
        try:
            stat = open(f"/proc/{pid}/task/{tid}/stat").read()
            wait_ms = int(open(f"/proc/{pid}/task/{tid}/schedstat").read().split()[1]) * 1e-6
        except (OSError, IndexError):
            continue  # it has ended
        name, rest = stat[stat.index("(") + 1:].rsplit(")", 1)
        threads.append((int(rest.split()[19]), tid, name, wait_ms))  # the oldest first
    waits = {}
    for _, tid, name, wait_ms in sorted(threads):
        name = "main" if tid == pid else name if name.startswith("ZMQbg/") else tid
        waits[tid if name in waits else name] = wait_ms
    return waits


class ReplyClock:
    """How long a reply took, less what the machine took: waits for a processor of the threads that
    request and reply pass, one behind the other, and of who holds a lock that the daemon's main
    thread wants. Threads that wait for a processor beside them excuse nothing.

    While it waits the client looks now and then what the main thread does. Its own waits count
    until the first such look, when it sends, and from the last one on, when the reply may have
    come; between them it woke for the looks alone."""
    LOOK_MS = 40
    PATH = "main", "ZMQbg/IO/0", "ZMQbg/Reaper"

    def __init__(self, pid):
        self.pid, self.before = pid, waits_ms(pid)
        self.stolen_ms = stolen_ms()
        self.own_ms, self.locked_ms = [self.path_ms(waits_ms(os.getpid()))], 0.0
        self.began = time.monotonic()

    def poll(self, socket, timeout_s):
        """Waits for the reply; whether it has come."""
        while time.monotonic() < self.began + timeout_s:
            began = time.monotonic()
            came = socket.poll(self.LOOK_MS)
            self.own_ms.append(self.path_ms(waits_ms(os.getpid())))
            if came:
                return True
            if self.wants_lock():
                self.locked_ms += (time.monotonic() - began) * 1e3
        return False

    def wants_lock(self):
        """Whether the daemon's main thread is in futex(), or in the kernel where nothing interrupts
        it (it wants memory that another thread holds); yes where nobody may know."""
        try:
            call = open(f"/proc/{self.pid}/syscall").read().split()[0]
            stat = open(f"/proc/{self.pid}/task/{self.pid}/stat").read()
        except (OSError, IndexError):
            return True
        futex = dict(x86_64="202", aarch64="98").get(os.uname().machine, call)
        return call == futex or stat[stat.rindex(")") + 2] == "D"

    def path_ms(self, waits):
        return sum(waits.get(name, 0) for name in self.PATH)

    def took_ms(self):
        """(by the clock, less what the machine took)"""
        took_ms = (time.monotonic() - self.began) * 1e3
        now = waits_ms(self.pid)
        beside = [now[name] - self.before.get(name, 0) for name in now if name not in self.PATH]
        own, last = self.own_ms, max(1, len(self.own_ms) - 3)  # before the last look in vain
        excused_ms = (self.path_ms(now) - self.path_ms(self.before) + own[1] - own[0]
                      + own[-1] - own[last] + stolen_ms() - self.stolen_ms
                      + min(self.locked_ms, max(beside, default=0)))
        return took_ms, took_ms - max(0, excused_ms)


def catches(process, number=signal.SIGTERM):
    """Waits until a process has come to handle a signal, or to block it and ask for it; before, the
    signal would end it."""
    def caught():
        assert process.poll() is None, "it has ended"
        masks = [int(line.split()[1], 16) for line in open(f"/proc/{process.pid}/status")
                 if line.startswith(("SigCgt:", "SigBlk:"))]
        return any(mask >> (number - 1) & 1 for mask in masks)
    until(caught, f"a handler of signal {number}")


def connected(subscriber, connect):
    """Calls connect(), which makes a SUB socket connect (again), and waits until its subscription
    stands: greeted by the other end, and a moment later, which the subscription takes."""
    monitor = subscriber.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED)
    connect()
    # Polled, because a socket subscribes again only while it is used.
    until(lambda: subscriber.poll(0) is not None and monitor.poll(20), "a connection")
    subscriber.disable_monitor()
    monitor.close(0)
    end = time.monotonic() + (2 if SLOW else 0.5)
    while time.monotonic() < end:
        subscriber.poll(0)
        time.sleep(0.02)


def n_connected(endpoint):
    """How many are connected to who listens at an ipc endpoint."""
    path = endpoint[len("ipc://"):]
    held = [line for line in open("/proc/net/unix") if line.rstrip("\n").endswith(" " + path)]
    return max(0, len(held) - 1)


def check_sums(status):
    """What must hold of every status, whenever it is asked for."""
    dropped = status["bscans_dropped"]
    done, begun = status["bscans_done"], status["bscans_begun"]
    out = done + dropped["engine"]
    assert begun == done + sum(dropped.values()) + status["bscans_in_flight"], status
    assert status["bscans_in_flight"] >= 0, status
    assert status["bscans_published"] <= done, status
    assert status["bscans_published"] + status["bscans_not_published"] <= out, status
    assert status["bscans_written"] <= out, status
    assert status["messages_duplicate"] <= status["messages_received"], status
    assert status["messages_reordered"] <= status["messages_missed"], status
    assert status["volumes_incomplete"] <= status["volumes_written"], status
    latency = status["latency_us"]
    assert latency["p50"] <= latency["p99"] <= latency["max"], latency
    record, account = status["record"], status["record_account"]
    assert account["offered"] == (account["written"] + account["pending"]
                                  + sum(account["dropped"].values())), account
    total = status["record_total"]
    assert total["offered"] == (total["written"] + total["pending"]
                                + sum(total["dropped"].values())), total
    assert total["written"] == status["bscans_written"], (total, status["bscans_written"])
    assert total["offered"] >= account["offered"] and all(
        total["dropped"][why] >= n for why, n in account["dropped"].items()), (total, account)
    assert 0 <= account["written"] <= status["bscans_written"] and account["pending"] >= 0, account
    for analysis in status["analysis"]:
        assert analysis["seen"] == analysis["done"] + sum(analysis["skipped"].values()), analysis
        assert analysis["seen"] <= out, (analysis, status)
    assert record["bscans_waiting"] <= record["bscans_queued"], record
    assert not record["active"] or status["phase"] in ("recording", "draining", "error"), status
    if status["phase"] == "recording" and not status["pending"]:
        assert record["active"], status
    if "geometry" in status:
        m = status["geometry"]["lines"]
        assert out * m <= status["lines_received"] + status["lines_missing"], status
        assert status["lines_received"] + status["lines_dropped"] <= begun * m, status


class Crowd:
    """Connections that say nothing and stay, while the block lasts. octd is started with so few
    descriptors that they would not do for all of them: see few_descriptors."""

    def __init__(self, endpoint, n):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, n + 200)), hard))
        self.sockets = []
        for _ in range(n):
            if endpoint.startswith("ipc://"):
                there, made = endpoint[6:], socket.socket(socket.AF_UNIX)
            else:
                there, made = ("127.0.0.1", int(endpoint.split(":")[-1])), socket.socket()
            made.connect(there)  # waits its turn
            self.sockets.append(made)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for made in self.sockets:
            made.close()


@contextlib.contextmanager
def few_descriptors(n):
    """ulimit -n for the daemons that are started within."""
    Daemon.preexec = staticmethod(
        lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (n, n)))
    try:
        yield
    finally:
        Daemon.preexec = None


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


# For a program whose memory is looked at: AddressSanitizer holds back up to 256 MB of what was freed.
NOTHING_HELD_BACK = dict(ASAN_OPTIONS="quarantine_size_mb=1")


class Daemon:
    """A running octd on ipc endpoints of its own."""
    count = 0
    program = "octd"
    preexec = None  # run in the new process before octd

    def __init__(self, *arguments, wait=True, env=None, stderr=None):
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
            [program(self.program), *self.common, "--set", f"record.directory={self.records}",
             *map(str, arguments)],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=open(self.log_path, "wb") if stderr is None else stderr,
            env=dict(os.environ, **(env or {})), preexec_fn=self.preexec)
        if wait:
            try:
                while self.send("status", timeout_s=60)["pending"]:
                    time.sleep(0.01)
            except Exception:
                self.kill()
                raise AssertionError("octd did not start: " + self.log())

    def log(self):
        if not os.path.exists(self.log_path):
            return ""  # its stderr went elsewhere
        return open(self.log_path, errors="replace").read()

    def ask(self, cmd, timeout_s=PATIENCE_S, **fields):
        """A patient client: asks again while the daemon is busy, waits for what is under way."""
        end = time.monotonic() + timeout_s
        while True:
            reply = self.send(cmd, timeout_s, **fields)
            if cmd == "status" or time.monotonic() > end:
                return reply
            if reply.get("pending") and fields.get("action") == "last":
                last = self.wait(lambda s: s["record_last"]["file"]
                                 or not s["record_last"]["saving"])["record_last"]
                return dict(ok=not last["error"], file=last["file"], error=last["error"])
            if reply.get("pending"):
                while time.monotonic() < end and (status := self.send("status"))["pending"]:
                    time.sleep(0.01)
                failed = cmd == "start" and status["state"] in ("idle", "error") or \
                    fields.get("action") == "start" and not status["record"]["active"]
                if failed:
                    return dict(ok=False, error=status["last_error"])
                return dict(ok=True, state=status["state"], phase=status["phase"])
            if not reply.get("busy"):
                return reply
            time.sleep(0.01)

    def send(self, cmd, timeout_s=PATIENCE_S, **fields):
        """One request, one reply."""
        socket = self.context.socket(zmq.REQ)
        socket.linger = 0
        socket.connect(self.control)
        socket.send(json.dumps(dict(cmd=cmd, **fields)).encode())
        end = time.monotonic() + timeout_s
        while time.monotonic() < end:
            ended = self.process.poll() is not None  # what it said last may still be on its way
            if socket.poll(200):
                reply = json.loads(socket.recv())
                socket.close()
                return reply
            if ended:
                break
        socket.close()
        raise AssertionError(f"no reply to {cmd}; log: {self.log()}")

    def status(self):
        # A connection over which nothing was said yet is cut when any key goes, and a request may
        # go with it (access.h), so a question that changes nothing is asked again.
        for _ in range(PATIENCE_S // 10):
            try:
                reply = self.send("status", 10)
                break
            except AssertionError:
                if self.process.poll() is not None:
                    raise
        else:
            reply = self.send("status", 10)
        assert reply["ok"], reply
        check_sums(reply)
        return reply

    def wait(self, what, timeout_s=PATIENCE_S):
        """Waits until what(status) is true; returns that status."""
        end = time.monotonic() + timeout_s
        while True:
            status = self.status()
            if what(status):
                return status
            assert time.monotonic() < end, f"waited in vain: {status}"
            time.sleep(0.02)

    def subscriber(self, topic="bscan"):
        """Gets every message of the topic from now on; a receive that gets none is zmq.Again."""
        socket = self.context.socket(zmq.SUB)
        socket.rcvhwm = 0
        socket.rcvtimeo = PATIENCE_S * 1000
        socket.setsockopt(zmq.SUBSCRIBE, topic.encode())
        connected(socket, lambda: socket.connect(self.publish))
        return socket

    def end(self, number=signal.SIGTERM, timeout_s=PATIENCE_S):
        """Ends the daemon with a signal and returns its exit status."""
        self.process.send_signal(number)
        return self.process.wait(timeout_s)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.context.destroy(linger=0)
        # A report of a sanitizer counts, whatever became of the process.
        assert not SLOW or not re.search(r"Sanitizer: |runtime error: ", self.log()), self.log()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()


class Replay:
    """octctl replay of a recording, again and again, while the block lasts."""

    def __init__(self, daemon, path, rate, *options):
        self.process = subprocess.Popen(
            [program("octctl"), "replay", path, *daemon.common, *map(str, options), "--loop", "--rate",
             str(rate)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)

    def stop(self):
        """As a camera that is switched off: the acquisition ends."""
        self.process.send_signal(signal.SIGINT)
        self.process.wait(30)

    def kill(self):
        self.process.kill()
        self.process.wait()

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
