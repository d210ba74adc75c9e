#!/usr/bin/python3
"""How the daemon stops, starts again and ends, while others do not behave."""
import glob, resource
import h5py
import numpy as np
from octtest import *

N, M, V = 832, 60, 8


def recording():
    path = os.path.join(folder("recordings"), "lines.raw")
    lines = np.random.default_rng(1).integers(100, 4000, (2 * V, M, N)).astype("<u2")
    lines.tofile(path)
    return path, lines


BASE = settings(scan=dict(lines=M, bscans=V), pipeline=dict(crop_last=300),
                calibration=dict(wavelengths=calibration(N)), daemon=dict(drain_s=60))
PATH, LINES = recording()


def Player(daemon):
    return Replay(daemon, PATH, 20000, *BASE)


def files(daemon):
    return sorted(glob.glob(daemon.records + "/*"))


def expect_whole(daemon):
    """Every file has its final name and opens; returns how many B-scans they hold."""
    assert files(daemon) and not glob.glob(daemon.records + "/*.part"), files(daemon)
    return sum(int(h5py.File(name)["frames/valid"][:].sum()) for name in files(daemon))


@case
def starts_again_on_the_same_ports():
    """after a changed key, start builds anew on the same tcp ports every time"""
    ports = settings(ingest=dict(endpoint=f"tcp://127.0.0.1:{free_port()}"),
                     publish=dict(endpoint=f"tcp://127.0.0.1:{free_port()}"))
    with Daemon(*BASE, *ports) as daemon:
        def descriptors():
            return len(os.listdir(f"/proc/{daemon.process.pid}/fd"))

        before = descriptors()
        for depth in range(100, 110 if SLOW else 140):
            assert daemon.ask("stop")["state"] == "idle"
            assert daemon.ask("set", key="pipeline.crop_last", value=depth)["ok"]
            reply = daemon.ask("start")
            assert reply["ok"] and reply["state"] == "running", reply
        assert daemon.status()["geometry"]["depth"] == depth
        until(lambda: descriptors() <= before + 2, f"{before} descriptors again")
        assert daemon.end() == 0, daemon.log()


@case
def stops_under_a_sender_that_never_pauses():
    """stop, start and stop again under a sender that never pauses"""
    with Daemon(*BASE) as daemon, Player(daemon):
        for _ in range(2):
            daemon.wait(lambda s: s["bscans_done"] > 20)
            assert daemon.ask("stop")["state"] == "idle"
            stopped = daemon.wait(lambda s: s["bscans_in_flight"] == 0)
            status = daemon.wait(lambda s: s["messages_ignored"] > stopped["messages_ignored"] + 5)
            assert status["bscans_begun"] == stopped["bscans_begun"]
            assert daemon.ask("start")["state"] == "running"
            again = daemon.wait(lambda s: s["bscans_done"] > stopped["bscans_done"] + 5)
            # What came meanwhile was not wanted: it is ignored, not missing. At most the B-scan
            # that was cut by the stop and the one that the start fell into miss lines.
            assert again["lines_missing"] <= 4 * M, again
            assert again["acquisitions"] == stopped["acquisitions"] + 1
        assert daemon.ask("stop")["ok"]


@case
def two_signals():
    """a second signal does not cut short what the first began"""
    with Daemon(*BASE) as daemon:
        assert daemon.ask("record", action="start")["ok"]
        with Player(daemon):  # from its first line on everything is recorded
            daemon.wait(lambda s: s["volumes_written"] >= 1)
            begun = daemon.status()["bscans_begun"]
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                daemon.process.send_signal(number)
                time.sleep(0.05)
            assert daemon.process.wait(PATIENCE_S) == 0, (daemon.process.returncode, daemon.log())
        assert expect_whole(daemon) >= begun


@case
def other_signals():
    """signals that mean nothing to it change nothing; SIGQUIT, SIGPWR and SIGXCPU drain as SIGTERM"""
    stray = [signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGVTALRM, signal.SIGPROF,
             signal.SIGIO, signal.SIGSTKFLT, signal.SIGPIPE, signal.SIGRTMIN, signal.SIGRTMAX]
    for last in (signal.SIGQUIT, signal.SIGPWR, signal.SIGXCPU):
        with Daemon(*BASE) as daemon:
            assert daemon.ask("record", action="start")["ok"]
            sender = Sender(daemon, 1)
            sender.send(LINES.reshape(-1, N)[:5 * M], 0, flags=1)
            for number in stray:
                daemon.process.send_signal(number)
            daemon.wait(lambda s: s["bscans_done"] == 5 and s["state"] == "recording")
            sender.send(LINES.reshape(-1, N)[5 * M:7 * M], 5 * M)
            daemon.wait(lambda s: s["bscans_begun"] == 7)
            for number in (last, signal.SIGUSR1, last):
                daemon.process.send_signal(number)
            assert daemon.process.wait(PATIENCE_S) == 0, (last, daemon.process.returncode)
            assert expect_whole(daemon) == 7
    Daemon.preexec = staticmethod(lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))  # nohup
    try:
        with Daemon(*BASE) as daemon:
            daemon.process.send_signal(signal.SIGHUP)
            assert not daemon.ask("set", key="no.such", value=1)["ok"] and daemon.status()["ok"]
            assert daemon.end() == 0
    finally:
        Daemon.preexec = None


@case
def record_stop_then_shutdown():
    """record stop and shutdown at once close the file with all that had come"""
    for _ in range(3):
        with Daemon(*BASE) as daemon:
            daemon.ask("record", action="start")
            sender = Sender(daemon, 1)
            sender.send(LINES.reshape(-1, N)[:5 * M], 0, flags=1)
            daemon.wait(lambda s: s["bscans_done"] == 5)
            assert daemon.ask("record", action="stop")["ok"]
            assert daemon.ask("shutdown")["ok"]
            assert daemon.process.wait(PATIENCE_S) == 0, daemon.log()
            assert expect_whole(daemon) == 5


@case
def signal_during_the_start():
    """SIGTERM while the daemon is still starting ends it with 0"""
    for delay_s in (0.05, 0.1, 0.2, 0.4):
        daemon = Daemon(*BASE, wait=False)
        time.sleep(delay_s)
        daemon.process.send_signal(signal.SIGTERM)
        status = daemon.process.wait(PATIENCE_S)
        # Before main has come to watch signals, the signal itself ends the process.
        assert status == 0 or (status == -signal.SIGTERM and not daemon.log()), daemon.log()
        daemon.kill()


@case
def status_without_a_session():
    """a start that fails leaves a daemon that answers with every key and starts when it can"""
    with Daemon(*BASE) as daemon:
        keys = set(daemon.status())
        daemon.ask("stop")
        # Rings of more than this machine's memory: refused when the session is built.
        assert daemon.ask("set", key="scan.lines", value="65535")["ok"]
        assert daemon.ask("set", key="pipeline.ring_bscans", value="65536")["ok"]
        reply = daemon.ask("start")
        assert not reply["ok"] and "ring_bscans" in reply["error"], reply
        status = daemon.status()
        assert status["state"] == "error" and "ring_bscans" in status["last_error"]
        assert keys - set(status) <= {"geometry", "endpoints"}, keys - set(status)
        assert status["bscans_done"] == 0 and status["latency_us"] == dict(p50=0, p99=0, max=0)
        assert daemon.ask("stop")["ok"]
        assert not daemon.ask("record", action="start")["ok"]
        assert daemon.ask("set", key="scan.lines", value=M)["ok"]
        assert daemon.ask("set", key="pipeline.ring_bscans", value="16")["ok"]
        assert daemon.ask("start")["state"] == "running"
        Sender(daemon, 1).send(LINES.reshape(-1, N)[:M], 0, flags=1)
        daemon.wait(lambda s: s["bscans_done"] == 1)


@case
def file_size_limit():
    """a limit of file sizes ends the recording, not the daemon"""
    daemon = Daemon(*BASE)
    with daemon:
        resource.prlimit(daemon.process.pid, resource.RLIMIT_FSIZE,
                         (100000, resource.RLIM_INFINITY))
        assert daemon.ask("record", action="start")["ok"]
        sender = Sender(daemon, 1)
        sender.send(LINES.reshape(-1, N)[:2 * M], 0, flags=1)
        status = daemon.wait(lambda s: s["last_error"] and s["state"] == "running")
        assert "large" in status["last_error"], status["last_error"]
        sender.send(LINES.reshape(-1, N)[2 * M:4 * M], 2 * M)
        status = daemon.wait(lambda s: s["bscans_published"] == 4 and
                             s["bscans_done"] == s["bscans_written"] + 4)
        n_lost = status["bscans_unsaved"]  # one number, which ended with the recording
        assert sum(status["record_account"]["dropped"].values()) == n_lost > 0, status
        assert f" {n_lost} dropped ({n_lost} write_failed)" in daemon.log(), daemon.log()
        assert daemon.end() == 0, daemon.log()


main()
