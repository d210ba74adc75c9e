#!/usr/bin/python3
"""Control under random commands: a model of the daemon's states, written from daemon/state.h,
agrees with the daemon after every reply; no command hangs; every reply comes within 100 ms."""
import fcntl, random, re
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
    assert int(re.search(r"(\d+) lines", lost[0]).group(1)) > 50, lost
    seen(f"{len(lines)} lines read; {lost[0]}")


def kmap(n):
    path = os.path.join(folder("calibration"), f"kmap{n}.txt")
    np.savetxt(path, np.linspace(0, n - 1, 64), fmt="%.6f")
    return path


main()
