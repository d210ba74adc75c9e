#!/usr/bin/python3
"""The service manager's side: NOTIFY_SOCKET and WATCHDOG_USEC as systemd sets them. The engine is
wedged and the disk stalled from outside (test/preload/faults.c)."""
import socket
from octfaults import *

# With its own transforms the CPU engine never asks FFTW, which is what the preload can wedge.
FFTW = settings(pipeline=dict(backend="cpu", simd="plain"))
INTERVAL_S = 8 if SLOW else 4 if LONG else 1.2


class Manager:
    """A datagram socket that notes what comes, and when."""

    def __init__(self, name):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(name)
        self.name = name.replace("\0", "@")
        self.messages = []  # (when, text)

    def listen(self, seconds, until=lambda text: False):
        """Takes datagrams for so long; true as soon as `until` is."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.socket.settimeout(left)
            try:
                text = self.socket.recv(4096).decode()
            except socket.timeout:
                break
            self.messages.append((time.monotonic(), text))
            if until(text):
                return True
        return False

    def now(self):
        """The time, when all that was told before it has been noted."""
        self.socket.settimeout(0)
        try:
            while True:
                self.messages.append((time.monotonic(), self.socket.recv(4096).decode()))
        except BlockingIOError:
            return time.monotonic()

    def count(self, text, since=0.0):
        return sum(when >= since and text in message.split("\n")
                   for when, message in self.messages)

    def daemon(self, *arguments, **more):
        with environment(NOTIFY_SOCKET=self.name, WATCHDOG_USEC=str(int(INTERVAL_S * 1e6)), **more):
            return Daemon(*BASE, *arguments)


class Flow:
    """A sender that sends a volume again and again, from one thread, a B-scan at a time."""

    def __init__(self, daemon):
        self.sender, self.line = Sender(daemon, 1), 0
        self.sender.socket.sndtimeo = 0

    def push(self, manager, seconds, n_bscans=0):
        """For so long, and until so many were sent."""
        end, n = time.monotonic() + seconds, self.line // M + n_bscans
        while time.monotonic() < end or self.line < n * M:
            at = self.line % (V * M)
            try:
                self.sender.send(LINES[at:at + M], self.line, flags=self.line == 0)
                self.line += M
            except zmq.Again:
                pass  # the daemon holds back: it has no room
            manager.listen(0.01)


@case
def ready_and_fed():
    """READY comes once, the watchdog is fed while idle and while lines flow, STOPPING at SIGTERM"""
    manager = Manager("\0oct-" + str(os.getpid()))  # an abstract name
    with manager.daemon() as daemon:
        assert manager.listen(PATIENCE_S, lambda text: text == "READY=1"), manager.messages
        began = time.monotonic()
        manager.listen(2 * INTERVAL_S)
        assert manager.count("WATCHDOG=1", began) >= 4, manager.messages
        flow, began = Flow(daemon), time.monotonic()
        flow.push(manager, 2 * INTERVAL_S)
        assert manager.count("WATCHDOG=1", began) >= 4, manager.messages
        daemon.wait(lambda s: s["bscans_done"] > 10)
        assert any("STATUS=running" in text for _, text in manager.messages), manager.messages
        assert manager.count("STOPPING=1") == 0
        daemon.process.send_signal(signal.SIGTERM)
        assert manager.listen(PATIENCE_S, lambda text: text == "STOPPING=1"), manager.messages
        assert daemon.process.wait(PATIENCE_S) == 0, daemon.log()
        assert manager.count("READY=1") == 1 and manager.count("STOPPING=1") == 1


@case
def wedged_engine():
    """with the engine wedged under load no WATCHDOG comes within the interval; freed, it does"""
    manager, faults = Manager(os.path.join(folder("notify"), "wedge")), Faults("wedge")
    with faults.environment(), manager.daemon(*FFTW) as daemon:
        flow = Flow(daemon)
        flow.push(manager, 0.5)
        daemon.wait(lambda s: s["bscans_done"] > 0)
        with faults.on("wedge"):
            flow.push(manager, INTERVAL_S)  # one may still be due
            began = manager.now()
            flow.push(manager, 1.5 * INTERVAL_S)
            assert manager.count("WATCHDOG=1", began) == 0, manager.messages
            status = daemon.status()  # control goes on, and says so
            assert status["bscans_in_flight"] > 0, status
            manager.listen(INTERVAL_S)  # nor when no more lines come
            assert manager.count("WATCHDOG=1", began) == 0, manager.messages
        began = time.monotonic()
        flow.push(manager, 2 * INTERVAL_S)
        assert manager.count("WATCHDOG=1", began) >= 2, manager.messages
        assert daemon.end() == 0, daemon.log()


@case
def wedged_ingest():
    """with the ingest thread wedged no WATCHDOG comes within the interval; freed, it does"""
    manager, faults = Manager(os.path.join(folder("notify"), "ingest")), Faults("ingest")
    with faults.environment(), manager.daemon() as daemon:
        assert manager.listen(20, lambda text: text == "READY=1"), manager.messages
        with faults.on("ingest"):
            manager.listen(INTERVAL_S)  # one may still be due
            began = manager.now()
            manager.listen(1.5 * INTERVAL_S)
            assert manager.count("WATCHDOG=1", began) == 0, manager.messages
            assert daemon.status()["ok"]
        began = time.monotonic()
        Flow(daemon).push(manager, 2 * INTERVAL_S)
        assert manager.count("WATCHDOG=1", began) >= 2, manager.messages
        assert daemon.status()["bscans_done"] > 0
        assert daemon.end() == 0, daemon.log()


@case
def wedged_keeper():
    """with the recorder's keeper wedged no WATCHDOG comes within the interval, with few lines and
    with many; freed, it does"""
    manager, faults = Manager(os.path.join(folder("notify"), "keeper")), Faults("keeper")
    with faults.environment(), manager.daemon() as daemon:
        flow = Flow(daemon)
        flow.push(manager, 0.5)
        daemon.wait(lambda s: s["bscans_done"] == flow.line // M and
                    s["record"]["bscans_queued"] == 0)
        with faults.on("keeper"):
            flow.push(manager, 0, 5)  # the rings do not fill: only the keeper stands still
            manager.listen(INTERVAL_S)  # one may still be due
            began = manager.now()
            manager.listen(1.5 * INTERVAL_S)
            assert 0 < daemon.status()["record"]["bscans_queued"] < 16
            assert manager.count("WATCHDOG=1", began) == 0, manager.messages
            flow.push(manager, 1.5 * INTERVAL_S)  # the engine moves
            assert manager.count("WATCHDOG=1", began) == 0, manager.messages
        began = time.monotonic()
        flow.push(manager, 2 * INTERVAL_S)
        assert manager.count("WATCHDOG=1", began) >= 2, manager.messages
        assert daemon.end() == 0, daemon.log()


def is_full(daemon):
    """The recorder's buffer is, and the keeper has one more in hand."""
    record = daemon.status()["record"]
    return record["bscans_queued"] > record["bscans_waiting"] >= record["buffer_bscans"]


@case
def a_full_buffer_is_no_wedge():
    """a disk that stands still with the buffer full and no more lines: the watchdog goes on"""
    manager, faults = Manager(os.path.join(folder("notify"), "full")), Faults("full")
    with faults.environment(), manager.daemon("--set", "record.buffer_s=0.01") as daemon:
        assert daemon.ask("record", action="start")["ok"]
        flow = Flow(daemon)
        flow.push(manager, 0.3)
        with faults.on("stall"):
            until(lambda: flow.push(manager, 0.2) or is_full(daemon), "a full buffer")
            began = time.monotonic()
            manager.listen(2 * INTERVAL_S)
            assert manager.count("WATCHDOG=1", began) >= 4, manager.messages
            assert is_full(daemon)
        assert daemon.end() == 0, daemon.log()


@case
def a_fifo_as_calibration():
    """a FIFO as a calibration is refused at once, and the daemon can be started with another"""
    manager = Manager("\0oct-fifo-" + str(os.getpid()))
    path = os.path.join(folder("fifo"), "wavelengths")
    os.mkfifo(path)
    with manager.daemon() as daemon:
        before = daemon.ask("get", key="calibration.wavelengths")["value"]
        assert daemon.ask("stop")["ok"]
        daemon.wait(lambda s: s["phase"] == "idle")
        assert daemon.ask("set", key="calibration.wavelengths", value=path)["ok"]
        reply = daemon.ask("start")
        assert not reply["ok"] and path in reply["error"], reply
        assert daemon.status()["phase"] == "idle"
        assert daemon.ask("set", key="calibration.wavelengths", value=before)["ok"]
        assert daemon.ask("start")["ok"]
        assert daemon.end() == 0, daemon.log()


@case
def wedged_to_the_end():
    """a wedged engine cannot keep the daemon: it ends by daemon.drain_s with status 1 and says why"""
    faults = Faults("end")
    with faults.environment(), Daemon(*BASE, *FFTW, "--set", "daemon.drain_s=3") as daemon:
        with faults.on("wedge"):
            Sender(daemon, 1).send(LINES[:V * M], 0, flags=1)
            daemon.wait(lambda s: s["bscans_begun"] == V)
            reply = daemon.ask("stop")
            assert reply["ok"] and reply["phase"] == "error", reply
            assert "drain_s" in daemon.status()["last_error"]
            began = time.monotonic()
            assert daemon.end() == 1, daemon.log()
            assert time.monotonic() - began < 15
        assert "drain_s" in daemon.log().splitlines()[-1]


@case
def a_stalled_disk_is_no_wedge():
    """a disk that stands still fills the ring, but the watchdog goes on being fed"""
    manager, faults = Manager(os.path.join(folder("notify"), "stall")), Faults("stall")
    with faults.environment(), manager.daemon() as daemon:
        assert daemon.ask("record", action="start")["ok"]
        flow = Flow(daemon)
        flow.push(manager, 0.3)
        with faults.on("stall"):
            flow.push(manager, 1)
            began = time.monotonic()
            flow.push(manager, 2 * INTERVAL_S)
            assert manager.count("WATCHDOG=1", began) >= 4, manager.messages
        assert daemon.end() == 0, daemon.log()


@case
def environment_that_makes_no_sense():
    """a NOTIFY_SOCKET that is no path, and a watchdog for another process, are left alone"""
    manager = Manager(os.path.join(folder("notify"), "socket-other"))
    with manager.daemon(WATCHDOG_PID="1") as daemon:
        assert manager.listen(PATIENCE_S, lambda text: text == "READY=1")
        manager.listen(INTERVAL_S)
        assert manager.count("WATCHDOG=1") == 0, manager.messages
        assert daemon.end() == 0
    manager.name = "nonsense"
    with manager.daemon() as daemon:
        assert "NOTIFY_SOCKET" in daemon.log()
        assert daemon.end() == 0


main()
