#!/usr/bin/python3
"""Control under random commands: a model of the daemon's states, written from daemon/state.h,
agrees with the daemon after every reply; no command hangs; every reply comes within 100 ms."""
import fcntl, random, re, socket, struct
import h5py
from octfaults import *

COMMANDS = 10000 if LONG else 500
MOST_MS = 1000 if SLOW else 100

# What a command does in each phase: the next phase, or None where it is refused.
COMMAND = {
    "start": dict(idle="starting", starting="starting", armed="armed", running="running",
                  recording="recording", draining=None, error="starting"),
    "stop": dict(idle="idle", starting="draining", armed="draining", running="draining",
                 recording="draining", draining="draining", error="error"),
    "record start": dict(idle=None, starting=None, armed="recording", running="recording",
                         recording=None, draining=None, error=None),
    "record stop": {phase: phase for phase in
                    "idle starting armed running recording draining error".split()},
    "set idle": dict(idle="idle", starting=None, armed=None, running=None, recording=None,
                     draining=None, error="error"),
    "set live": dict(idle="idle", starting="starting", armed="armed", running="running",
                     recording=None, draining=None, error="error"),
}
# What happens by itself.
HAPPENS = dict(idle=[], starting=["armed", "idle"], armed=["running"], running=["armed"],
               recording=["running"], draining=["idle"], error=[])
CONTRACT = dict(idle=["idle"], starting=["idle"], armed=["running"], running=["running"],
                recording=["recording"], draining=["running", "recording"], error=["error"])


def closure(phases):
    """All phases that these come to by themselves."""
    found, new = set(), set(phases)
    while new:
        found |= new
        new = {later for phase in new for later in HAPPENS[phase]} - found
    return found


BASE += settings(record=dict(sync_interval_s=0.1))


class Client:
    """One REQ socket that notes how long replies take."""

    def __init__(self, daemon):
        self.socket = daemon.context.socket(zmq.REQ)
        self.socket.linger = 0
        self.socket.connect(daemon.control)
        self.times_ms, self.real_ms = {}, []
        self.pid = daemon.process.pid

    def ask(self, name, **request):
        clock = ReplyClock(self.pid)
        self.socket.send(json.dumps(request).encode())
        assert clock.poll(self.socket, PATIENCE_S), f"no reply to {name}: the daemon hangs"
        real_ms, took_ms = clock.took_ms()
        reply = json.loads(self.socket.recv())
        self.real_ms.append(real_ms)
        self.times_ms.setdefault((name, reply.get("phase", "refused")), []).append(took_ms)
        return reply

    def table(self):
        """Longest reply in ms by command and phase."""
        return ", ".join(f"{name} in {phase}: {max(times):.1f} ms of {len(times)}"
                         for (name, phase), times in sorted(self.times_ms.items()))

    def late(self):
        return [(key, t) for key, times in self.times_ms.items() for t in times if t > MOST_MS]

    def check(self, what=""):
        late = self.late()
        assert not late, f"replies beyond {MOST_MS} ms: {late}"
        beyond = sum(ms > MOST_MS for ms in self.real_ms)
        seen(f"{what}{len(self.real_ms)} replies, longest {max(self.real_ms):.1f} ms by the clock, "
             f"{beyond} beyond {MOST_MS} ms (none with waits for a processor taken off)")


def request_for(name, rng):
    if name == "set live":
        return dict(cmd="set", key="pipeline.min_db", value=rng.randint(-20, 20))
    if name == "set idle":
        return dict(cmd="set", key="pipeline.crop_last", value=rng.randint(100, 140))
    if name.startswith("record"):
        return dict(cmd="record", action=name.split()[1])
    return dict(cmd=name)


def check_command(client, name, possible, rng):
    """Sends one command and returns what the daemon may be in afterwards."""
    before = closure(possible)
    reply = client.ask(name, **request_for(name, rng))
    granted = {COMMAND[name][phase] for phase in before} - {None}
    if reply["ok"]:
        assert granted, (name, before, reply)
        allowed = closure(granted)
        assert reply["phase"] in allowed, (name, before, reply)
        assert reply["state"] in CONTRACT[reply["phase"]], reply
        return {reply["phase"]}
    refusing = {phase for phase in before if COMMAND[name][phase] is None}
    if name == "record start" and "folder" in reply["error"]:
        return closure(granted)
    assert refusing, (name, before, reply)
    return refusing


def check_status(client, possible):
    status = client.ask("status", cmd="status")
    assert status["phase"] in closure(possible), (possible, status["phase"])
    assert status["state"] in CONTRACT[status["phase"]], status
    check_sums(status)
    assert not status["last_error"], status
    return {status["phase"]}


@case
def random_commands():
    """random start, stop, record and set: model and daemon agree after every reply, none hangs"""
    seed = int(os.environ.get("OCT_SEED", "20"))
    rng = random.Random(seed)
    with Daemon(*BASE, *LONG_VOLUMES) as daemon, Player(daemon, 10000, *LONG_VOLUMES):
        client = Client(daemon)
        possible, phases = check_status(client, set(COMMAND["start"])), set()
        wanted, end = {"idle", "running", "recording", "draining"}, time.monotonic() + PATIENCE_S
        commands = 0
        # A disk that hangs holds one phase for many commands: goes on until every one was seen.
        while commands < COMMANDS or (not wanted <= phases and time.monotonic() < end):
            commands += 1
            name = rng.choice(list(COMMAND))
            if "draining" in possible and rng.random() < 0.7:
                name = "set live"  # ask what is asked most, or wait
                time.sleep(0.02)
            possible = check_command(client, name, possible, rng)
            possible = check_status(client, possible)
            phases |= possible
            time.sleep(rng.choice([0, 0, 0.002, 0.01, 0.05]))
        print(f"# seed {seed}: {client.table()}", flush=True)
        assert wanted <= phases, phases
        client.check(f"seed {seed}, {commands} commands and as many status; ")
        assert daemon.end() == 0, daemon.log()


@case
def replies_while_plans_are_measured():
    """while the first start measures FFT plans, every command is answered within 100 ms"""
    with environment(XDG_CACHE_HOME=folder("cold")):
        daemon = Daemon("--set", "camera.samples=16384", "--set", "scan.lines=8", "--set",
                        "scan.bscans=4", "--set", f"calibration.kmap={kmap(16384)}", wait=False)
    with daemon:
        client, phases = Client(daemon), set()
        client.ask("first", cmd="status")  # the time to load the program is not a reply's
        del client.times_ms["first", "starting"], client.real_ms[:]
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            status = client.ask("status", cmd="status")
            phases.add(status["phase"])
            if status["phase"] == "armed":
                break
            client.ask("start", cmd="start")
            reply = client.ask("record start", cmd="record", action="start")
            assert reply["ok"] or reply["busy"], reply
            client.ask("set", cmd="set", key="pipeline.min_db", value=1)
            if reply["ok"]:
                break
        print(f"# {client.table()}", flush=True)
        assert "starting" in phases, phases
        client.check()
        assert daemon.end() == 0


@case
def replies_while_the_disk_stands_still():
    """while the disk stands still, every command is answered within 100 ms, and done when it moves"""
    faults = Faults("stall")
    config = os.path.join(folder("config"), "octd.ini")
    open(config, "w").close()
    with faults.environment():
        daemon = Daemon("--config", config, *BASE, *settings(record=dict(last_s=1)))
    with daemon, Player(daemon):
        client = Client(daemon)
        daemon.wait(lambda s: s["bscans_done"] > 20 and s["disk_bytes_free"] is not None
                    and s["record_last"]["bscans"] > 0)
        with faults.on("stall"):  # the last seconds, from when they were asked for
            before = client.ask("status", cmd="status")["bscans_begun"]
            reply = client.ask("record last", cmd="record", action="last")
            asked = client.ask("status", cmd="status")["bscans_begun"]
            assert reply["ok"] and reply["pending"] and "file" not in reply, reply
            began = time.monotonic()
            while time.monotonic() - began < 2:
                last = client.ask("status", cmd="status")["record_last"]
                assert last["saving"] and last["file"] == "" and last["bscans"] > 0, last
                again = client.ask("record last", cmd="record", action="last")
                assert not again["ok"] and "being saved already" in again["error"], again
                time.sleep(0.05)
        last = daemon.wait(lambda s: not s["record_last"]["saving"])["record_last"]
        with h5py.File(last["file"]) as file:
            valid, number = file["frames/valid"][:] == 1, file["frames/number"][:]
        assert last["error"] == "" and valid.sum() == last["bscans_saved"] > 0, last
        assert number[valid].max() <= asked, (number[valid].max(), before, asked)
        reply = daemon.ask("record", action="last", name=os.path.basename(last["file"]))
        assert not reply["ok"] and "exists already" in reply["error"], reply
        with faults.on("stall"):
            reply = client.ask("record start", cmd="record", action="start")
            assert reply["ok"] and reply["pending"] and reply["phase"] == "recording", reply
            began = time.monotonic()
            while time.monotonic() - began < 3:
                assert client.ask("status", cmd="status")["phase"] == "recording"
                assert client.ask("set", cmd="set", key="pipeline.min_db", value=1)["ok"] is False
                assert client.ask("record start", cmd="record", action="start")["ok"] is False
                time.sleep(0.05)
        daemon.wait(lambda s: s["volumes_written"] > 2)
        with faults.on("stall"):
            client.ask("record stop", cmd="record", action="stop")
            assert client.ask("stop", cmd="stop")["phase"] == "draining"
            for _ in range(20):
                assert client.ask("status", cmd="status")["phase"] == "draining"
                time.sleep(0.02)
        daemon.wait(lambda s: s["phase"] == "idle")
        print(f"# {client.table()}", flush=True)
        client.check()
        with faults.on("stall"):  # asked for its space, it does not answer: no reason to stay
            time.sleep(1.2)
            began = time.monotonic()
            assert daemon.end() == 0, daemon.log()
            assert time.monotonic() - began < 15  # not daemon.drain_s


@case
def a_late_reply_is_seen():
    """the measure itself: replies that octd holds back are seen as late, however busy it is here"""
    if SLOW:
        raise Skip("a second is allowed here, more than what is held back")
    faults, most = Faults("reply"), 300
    with faults.environment():
        daemon = Daemon(*BASE, *LONG_VOLUMES)
    with daemon, Player(daemon, 4000, *LONG_VOLUMES):
        client = Client(daemon)
        daemon.ask("record", action="start")
        with faults.on("reply", "150"):
            for _ in range(most):
                client.ask("status", cmd="status")
        held = int(most / 20)
        print(f"# {len(client.late())} of {held} seen, by the clock "
              f"{sum(ms > 150 for ms in client.real_ms)}", flush=True)
        assert len(client.late()) >= held / 4, client.real_ms
        seen(f"{len(client.late())} of {held} replies held back for 150 ms seen as late")
        assert daemon.end() == 0


@case
def replies_while_nobody_reads_the_log():
    """a log that nobody reads holds up nobody, and says itself how many lines it lost"""
    out, log = os.pipe()
    fcntl.fcntl(log, fcntl.F_SETPIPE_SZ, 8192)  # taken as full when the second page is begun
    read = []
    with Daemon(*BASE, stderr=log) as daemon, Player(daemon, rate=400):
        client = Client(daemon)
        n_lines = 0
        while n_lines < 200:  # some 60 bytes each: twice what the pipe takes
            for cmd, phase in (("stop", "idle"), ("start", "running")):
                client.ask(cmd, cmd=cmd)
                end = time.monotonic() + PATIENCE_S
                while client.ask("status", cmd="status")["phase"] != phase:
                    assert time.monotonic() < end, f"not {phase} after {n_lines} lines"
                    time.sleep(0.002)
                n_lines += 2  # at least
        print(f"# {client.table()}", flush=True)
        client.check()
        read.append(os.read(out, 65536))  # what had been written before it was full
        client.ask("stop", cmd="stop")
        read.append(os.read(out, 65536))
        while not read[-1].endswith(b"-> idle\n"):
            read.append(os.read(out, 65536))
        assert daemon.end() == 0
    os.close(log)
    lines = b"".join(read).decode().splitlines()
    assert all(line.startswith("octd: ") for line in lines), lines
    lost = [line for line in lines if "lines of this log were lost here" in line]
    assert len(lost) == 1 and lines.index(lost[0]) > 20, lost
    assert int(re.search(r"(\d+) lines", lost[0]).group(1)) > 10, lost
    seen(f"{len(lines)} lines read; {lost[0]}")


def main_waits_ms(daemon):
    """For how long the main thread was ready and had no processor."""
    return waits_ms(daemon.process.pid)["main"] + stolen_ms()


class Watchdog:
    """Hears octd's WATCHDOG=1 as systemd does, and notes the longest pause between two, less the
    main thread's waits for a processor in it."""

    def __init__(self, name):
        self.path = os.path.join(folder("notify"), name)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.socket.setblocking(False)
        self.last = None

    def environment(self, interval_s):
        return environment(NOTIFY_SOCKET=self.path, WATCHDOG_USEC=str(int(interval_s * 1e6)))

    def begin(self, daemon):
        self.daemon, self.longest_s = daemon, 0.0
        self.last = time.monotonic(), main_waits_ms(daemon)

    def look(self):
        now, waited = time.monotonic(), main_waits_ms(self.daemon)
        self.longest_s = max(self.longest_s, now - self.last[0] - (waited - self.last[1]) * 1e-3)
        with contextlib.suppress(BlockingIOError):
            while True:
                if b"WATCHDOG=1" in self.socket.recv(4096):
                    self.last = now, waited


FLOOD = """
import sys, time, zmq
context, request = zmq.Context(), b'{"cmd":"status","a":[' + b"0," * 32000 + b"0]}"
sockets = [context.socket(zmq.DEALER) for _ in range(48)]
for socket in sockets:
    socket.linger = 0
    socket.connect(sys.argv[1])
until = time.monotonic() + 30
while time.monotonic() < until:
    n_full = 0
    for socket in sockets:
        try:
            socket.send_multipart([b"", request], zmq.NOBLOCK)
        except zmq.Again:
            n_full += 1
    if n_full == len(sockets):
        time.sleep(0.001)
"""


@case
def replies_while_wide_requests_flood():
    """while 48 clients flood with requests of 32,000 values, replies come and the watchdog is fed"""
    watchdog, interval_s = Watchdog("flood"), 1.0
    with watchdog.environment(interval_s):
        daemon = Daemon(*BASE)
    with daemon:
        client = Client(daemon)
        wide = client.ask("wide", cmd="status", a=[0] * 1000)
        assert not wide["ok"] and "more than 64 names and values" in wide["error"], wide
        wide = client.ask("long", cmd="status", a="x" * 60000)
        assert not wide["ok"] and "at most 8192" in wide["error"], wide
        flood = subprocess.Popen([sys.executable, "-c", FLOOD, daemon.control])
        try:
            time.sleep(0.5)
            watchdog.begin(daemon)
            end = time.monotonic() + 3
            while time.monotonic() < end:
                assert client.ask("status", cmd="status")["ok"]
                watchdog.look()
        finally:
            flood.kill()
            flood.wait()
        client.check("beside 48 clients that flood: ")
        assert watchdog.longest_s < interval_s, watchdog.longest_s  # it is due each quarter
        seen(f"WATCHDOG=1 of 1 s: the longest pause {watchdog.longest_s * 1e3:.0f} ms")
        assert daemon.end() == 0


def speak_zmtp(endpoint, kind):
    """A plain connection that has shaken hands as a ZeroMQ 4 socket of that kind."""
    def hear(n):
        while n > 0:
            n -= len(peer.recv(n))
    peer = socket.socket(socket.AF_UNIX)
    peer.settimeout(PATIENCE_S)
    peer.connect(endpoint[len("ipc://"):])
    peer.sendall(b"\xff" + bytes(8) + b"\x7f\3\0NULL" + bytes(48))
    hear(64)
    ready = b"\5READY\x0bSocket-Type" + struct.pack(">I", len(kind)) + kind
    peer.sendall(b"\4" + bytes([len(ready)]) + ready)
    return peer


def flood_with_parts(endpoint, kind, n):
    """A message of so many empty parts, the last one not among them; whether it was cut off."""
    peer = speak_zmtp(endpoint, kind)
    try:
        peer.sendall(b"\1\0" * n)
        peer.settimeout(2)
        while peer.recv(65536):  # its greeting and what else it had to say
            pass
    except (BrokenPipeError, ConnectionResetError):
        return True
    except TimeoutError:
        return False
    return True


def memory_mib(daemon):
    status = open(f"/proc/{daemon.process.pid}/status").read()
    return int(re.search(r"VmRSS:\s+(\d+)", status).group(1)) >> 10


@case
def messages_of_a_million_parts():
    """a message of a million empty parts ends its connection before octd has collected it"""
    with Daemon(*BASE) as daemon, Player(daemon):
        client, before = Client(daemon), daemon.wait(lambda s: s["bscans_done"] > 20)
        had_mib = memory_mib(daemon)
        for endpoint, kind in (daemon.ingest, b"PUSH"), (daemon.control, b"DEALER"), \
                (daemon.publish, b"SUB"):
            assert flood_with_parts(endpoint, kind, 1_000_000), kind
            client.ask("status", cmd="status")
        status = daemon.wait(lambda s: s["security"]["connections_flooded"] == 3 and
                             s["messages_bad"]["parts"] == 1)
        assert memory_mib(daemon) < had_mib + (200 if SLOW else 30), (memory_mib(daemon), had_mib)
        assert "connections were cut: a message of more than 16 parts" in daemon.log()
        daemon.wait(lambda s: s["bscans_done"] > status["bscans_done"] + 20)
        assert not before["messages_bad"]["parts"]
        for n, cut in (16, 0), (17, 1):  # as a client that asks with so many parts
            asker = daemon.context.socket(zmq.PUSH)
            asker.linger = 1000
            asker.connect(daemon.ingest)
            asker.send_multipart([b""] * n)
            now = daemon.wait(lambda s: s["messages_bad"]["parts"] == 2 + cut)
            assert now["security"]["connections_flooded"] >= 3 + cut, now["security"]
            asker.close()
        client.check("beside messages of a million parts: ")
        assert daemon.end() == 0


def raw_reply(daemon, request):
    """The bytes that answer these bytes."""
    asker = daemon.context.socket(zmq.REQ)
    asker.linger = 0
    asker.connect(daemon.control)
    asker.send(request)
    assert asker.poll(PATIENCE_S * 1000), f"no reply to {request}"
    reply = asker.recv()
    asker.close()
    return reply


LATIN = "J\xfcrgen".encode("latin-1")


def refused(*arguments):
    done = subprocess.run([program("octd"), *arguments], capture_output=True, timeout=PATIENCE_S)
    assert done.returncode == 2, (done.returncode, done.stderr)
    return done.stderr.decode()  # which is UTF-8 itself


@case
def text_that_is_no_utf8():
    """Latin-1 is refused in config, --set and control with what to do; what the system calls so is
    shown with '?'; every reply is UTF-8 and JSON"""
    config = os.path.join(folder("latin"), "lab.ini")
    with open(config, "wb") as file:
        file.write(b"; M\xfcller's\n[record]\npseudonym = " + LATIN + b"\n")
    said = refused("--config", config)
    assert "lab.ini:3: [record] pseudonym: 'J?rgen' is not UTF-8: write it in that" in said, said
    said = refused("--set", b"record.pseudonym=" + LATIN)
    assert "--set record.pseudonym: 'J?rgen' is not UTF-8" in said, said
    said = refused("--set", b"record.directory=/data/" + LATIN)
    assert "--set record.directory: '/data/J?rgen' is not UTF-8" in said and "link" in said, said
    where = os.path.join(folder("latin").encode(), b"M\xfcller")
    os.mkdir(where)
    Daemon.preexec = staticmethod(lambda: os.chdir(where))
    try:
        daemon = Daemon(*BASE, "--set", "record.directory=.", *settings(record=dict(last_s=1)))
    finally:
        Daemon.preexec = None
    with daemon, Player(daemon):
        for request in (b'{"cmd":"set","key":"record.pseudonym","value":"' + LATIN + b'"}',
                        b'{"cmd":"' + LATIN + b'"}', b'{"cmd":"get","key":"' + LATIN + b'"}',
                        b'{"cmd":"' + b"a" * 39 + "\u20ac".encode() + b'"}'):  # cut in the message
            reply = json.loads(raw_reply(daemon, request).decode())
            assert reply["ok"] is False, reply
        for name in ("J\u00fcrgen", "\u03bb \u5b57 \U0001f441"):
            assert daemon.send("set", key="record.pseudonym", value=name)["ok"]
            reply = json.loads(raw_reply(daemon, b'{"cmd":"get","key":"record.pseudonym"}').decode())
            assert reply["value"] == name, reply
        daemon.wait(lambda s: s["record_last"]["bscans"] > 0)
        raw_reply(daemon, b'{"cmd":"record","action":"last"}').decode()

        def saved():
            status = json.loads(raw_reply(daemon, b'{"cmd":"status"}').decode())
            return not status["record_last"]["saving"] and status["record_last"]
        last = until(saved, "the last seconds")
        assert "/M?ller/" in last["file"] and last["files_saved"] == 1, last
        raw_reply(daemon, b'{"cmd":"record","action":"start"}').decode()
        until(lambda: json.loads(raw_reply(daemon, b'{"cmd":"status"}').decode())["volumes_written"],
              "a volume")
        assert daemon.end() == 0, daemon.log()
        open(daemon.log_path, "rb").read().decode()
    written = [name for name in os.listdir(where) if name.endswith(b".h5")]
    assert len(written) >= 2, written
    with h5py.File(os.path.join(where, written[0])) as file:
        texts = [v for v in file.attrs.values() if isinstance(v, (str, bytes))]
        assert all(isinstance(text, str) and "\ufffd" not in text and
                   not any("\udc80" <= c <= "\udcff" for c in text) for text in texts), texts
        assert "\u5b57" in "".join(texts), texts


def kmap(n):
    path = os.path.join(folder("calibration"), f"kmap{n}.txt")
    np.savetxt(path, np.linspace(0, n - 1, 64), fmt="%.6f")
    return path


main()
