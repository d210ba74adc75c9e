#!/usr/bin/python3
"""SIGTERM in every state, with the queues full: all B-scans that were begun are saved, the exit
status is 0, the deadline is kept."""
import glob
import h5py
from octfaults import *

DRAIN_S = 60 if SLOW else 20
ROUNDS = 5 if LONG else 1
LARGE_M = (4 if SLOW else 16) * M
LARGE = settings(scan=dict(lines=LARGE_M, bscans=V), daemon=dict(drain_s=DRAIN_S),
                 pipeline=dict(threads=1, ring_bscans=128, simd="plain", interpolation="cubic"))
LARGE_LINES = np.random.default_rng(2).integers(100, 4000, (LARGE_M, N)).astype("<u2")


def saved(daemon):
    """How many B-scans the files hold; all of them have their final names."""
    names = glob.glob(daemon.records + "/*")
    assert not [name for name in names if name.endswith(".part")], names
    return sum(int(h5py.File(name)["frames/valid"][:].sum()) for name in names)


def fill(daemon, epoch=1, n_bscans=100):
    """Pushes faster than one thread reconstructs until B-scans queue up in memory."""
    sender = Sender(daemon, epoch)
    for b in range(n_bscans):
        sender.send(LARGE_LINES, b * LARGE_M, flags=b == 0)
    return daemon.wait(lambda s: s["bscans_in_flight"] > 40)


def end(daemon):
    """SIGTERM; the exit status and the last status that was told while the daemon drained,
    None: there was none."""
    began, last = time.monotonic(), None
    daemon.process.send_signal(signal.SIGTERM)
    while daemon.process.poll() is None:
        assert time.monotonic() - began < DRAIN_S, daemon.log()
        try:
            reply = daemon.send("status", timeout_s=2)
        except AssertionError:
            continue
        check_sums(reply)
        if "geometry" in reply and reply["phase"] == "draining":  # the session still stands
            last = reply
        time.sleep(0.005)
    return daemon.process.returncode, last


@case
def idle():
    """SIGTERM while idle"""
    with Daemon(*BASE, *LARGE, "--set", "daemon.autostart=no") as daemon:
        assert daemon.status()["phase"] == "idle"
        assert end(daemon)[0] == 0, daemon.log()
        assert "idle -> draining" in daemon.log()


@case
def starting():
    """SIGTERM while the engine is being built"""
    with environment(XDG_CACHE_HOME=folder("cold")):
        daemon = Daemon(*BASE, *LARGE, wait=False)
    with daemon:
        assert daemon.send("status")["phase"] in ("starting", "armed")
        assert end(daemon)[0] == 0, daemon.log()


@case
def armed():
    """SIGTERM while armed"""
    with Daemon(*BASE, *LARGE) as daemon:
        assert daemon.status()["phase"] == "armed"
        assert end(daemon)[0] == 0, daemon.log()


@case
def running():
    """SIGTERM while running with a full queue: all is reconstructed, control answers till the end"""
    with Daemon(*BASE, *LARGE) as daemon:
        begun = fill(daemon)["bscans_begun"]
        code, last = end(daemon)
        assert code == 0, daemon.log()
        assert last and last["bscans_begun"] >= begun, last
        assert sum(last["bscans_dropped"].values()) == 0, last


@case
def recording():
    """SIGTERM while recording with a full queue: every B-scan that was begun is in a file"""
    total = 0
    for number in range(ROUNDS):
        with Daemon(*BASE, *LARGE) as daemon:
            assert daemon.ask("record", action="start")["phase"] == "recording"
            begun = fill(daemon, number + 1)["bscans_begun"]
            code, last = end(daemon)
            assert code == 0, daemon.log()
            assert sum(last["bscans_dropped"].values()) == 0, last
            in_files = saved(daemon)
            assert in_files >= last["bscans_begun"] >= begun, (in_files, last, begun)
            total += in_files
    seen(f"{ROUNDS} times, {total} B-scans begun and in files, exit status 0")


@case
def draining():
    """SIGTERM while a stop is draining a recording with a full queue"""
    with Daemon(*BASE, *LARGE) as daemon:
        assert daemon.ask("record", action="start")["ok"]
        begun = fill(daemon)["bscans_begun"]
        assert daemon.send("stop")["ok"]
        assert daemon.send("status")["phase"] == "draining"
        assert end(daemon)[0] == 0, daemon.log()
        assert saved(daemon) >= begun


@case
def error():
    """SIGTERM in error"""
    with Daemon(*BASE, *LARGE) as daemon:
        daemon.ask("stop")
        assert daemon.ask("set", key="scan.lines", value=65535)["ok"]
        assert daemon.ask("set", key="pipeline.ring_bscans", value=65536)["ok"]
        assert not daemon.ask("start")["ok"]
        assert daemon.status()["phase"] == "error"
        assert end(daemon)[0] == 0, daemon.log()


@case
def stalled_disk():
    """SIGTERM while the disk stands still: what waits is saved when it comes back in time"""
    faults = Faults("stall")
    with faults.environment(), Daemon(*BASE, *LARGE) as daemon:
        assert daemon.ask("record", action="start")["ok"]
        with faults.on("stall"):
            begun = fill(daemon)["bscans_begun"]
            daemon.process.send_signal(signal.SIGTERM)
            time.sleep(2)
            assert daemon.process.poll() is None and daemon.send("status")["phase"] == "draining"
        assert daemon.process.wait(DRAIN_S) == 0, daemon.log()
        assert saved(daemon) >= begun


@case
def disk_that_does_not_come_back():
    """SIGTERM while the disk stands still for good: ends at daemon.drain_s with status 1"""
    faults = Faults("gone")
    with faults.environment(), Daemon(*BASE, *LARGE, "--set", "daemon.drain_s=3") as daemon:
        assert daemon.ask("record", action="start")["ok"]
        with faults.on("stall"):
            fill(daemon)
            began = time.monotonic()
            assert daemon.end() == 1, daemon.log()
            assert 2.9 < time.monotonic() - began < 15
            assert "daemon.drain_s" in daemon.log().splitlines()[-1], daemon.log()


main()
