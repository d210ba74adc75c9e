#!/usr/bin/python3
"""A disk that stalls while octd records: what the recorder's memory absorbs is not lost, what it
cannot is dropped from the recording with its reason, and the live picture goes on."""
import re, tempfile, urllib.request
from faultrig import *


RING = 128  # pipeline.ring_bscans as shipped


def stalls(stall_s, buffer_s):
    with Faulty(*settings(record=dict(buffer_s=buffer_s))) as daemon, Camera(daemon) as camera:
        assert f"stalls {buffer_s:.1f} s" in daemon.log(), daemon.log()
        viewer = Viewer(daemon, camera)
        assert daemon.ask("record", action="start")["ok"]
        daemon.wait(lambda s: s["volumes_written"] >= 2)
        viewer.forget()
        pids = daemon.process.pid, os.getpid()
        daemon.stall_once(stall_s)
        end = time.monotonic() + stall_s + 1
        while time.monotonic() < end:
            began, waited = time.monotonic(), waited_ms(*pids)
            account(daemon)
            took_s = time.monotonic() - began - (waited_ms(*pids) - waited) * 1e-3
            assert took_s < LIVE_S, "control waits for the disk"
            record = daemon.status()["record"]
            assert record["bscans_queued"] <= record["buffer_bscans"] + RING, record
            time.sleep(0.05)
        after = daemon.status()["volumes_written"]
        daemon.wait(lambda s: s["volumes_written"] > after + 1)
        pause_s = viewer.end()
        camera.stop()
        daemon.ask("record", action="stop")
        daemon.wait(lambda s: not s["record"]["active"])
        daemon.wait(lambda s: s["record"]["bscans_queued"] == 0)  # what was dropped does not wait
        a = account(daemon)
        assert daemon.status()["last_error"] == "" and a["pending"] == 0, a
        there, lost = everything_is_there(daemon)
        check_files(daemon)
        assert set(lost) <= {"disk_slow"}, lost.keys()
        dropped = len(lost.get("disk_slow", ()))
        assert a["dropped"] == dict(source=0, ring_full=0, engine=0, disk_slow=dropped,
                                    write_failed=0, paused=0), (a, dropped)
        assert a["written"] == len(there) and a["offered"] == len(there) + dropped
        assert pause_s < LIVE_S, f"the live picture paused {pause_s:.2f} s"
        if dropped:
            assert f"{dropped} disk_slow" in daemon.log()
        return dropped, pause_s


@case
def stall_absorbed():
    """the disk stalls 1 s, the recorder's memory is for 3 s"""
    dropped, pause_s = stalls(1, 3)
    assert dropped == 0, dropped
    seen(f"no B-scan lost; longest pause of the live picture {pause_s * 1e3:.0f} ms")


def memory_folder():
    """Where files are in memory, if there is room; None: where all others are."""
    room = os.statvfs("/dev/shm") if os.path.isdir("/dev/shm") else None
    return "/dev/shm" if room and room.f_bavail * room.f_frsize > 256 << 20 else None


@case
def paused():
    """octd is stopped (SIGSTOP) for 5 s while the camera goes on: no disk is blamed"""
    # A disk that keeps up with the camera, but with no burst, however fast the machine is: each
    # B-scan is synced twice, for 5 ms each. No real disk is part of it, as that one may hang.
    stop_s, rate = 5, RATE / 30
    slow = settings(pipeline=dict(ring_bscans=16), scan=dict(line_rate_hz=rate),
                    record=dict(buffer_s=1, sync_interval_s=0))
    with tempfile.TemporaryDirectory(dir=memory_folder()) as memory, \
            Faulty(*slow) as daemon, Camera(daemon, rate) as camera:
        daemon.records = os.path.join(memory, "records")
        assert daemon.ask("set", key="record.directory", value=daemon.records)["ok"]
        daemon.fault("sync_stall 5")
        assert daemon.ask("record", action="start")["ok"]
        daemon.wait(lambda s: s["bscans_written"] >= 10)
        daemon.process.send_signal(signal.SIGSTOP)
        time.sleep(stop_s)
        daemon.process.send_signal(signal.SIGCONT)
        end, degraded = time.monotonic() + stop_s, set()
        while time.monotonic() < end:
            account(daemon)
            degraded.update(daemon.status()["degraded"])
            time.sleep(0.02)
        daemon.wait(lambda s: s["record"]["bscans_queued"] == 0)
        camera.stop()
        daemon.ask("record", action="stop")
        daemon.wait(lambda s: not s["record"]["active"])
        a = account(daemon)
        there, lost = everything_is_there(daemon)
        check_files(daemon)
        assert set(lost) == {"paused"} and "disk" not in degraded, (lost.keys(), degraded)
        n_lost = len(lost["paused"])
        assert a["dropped"] == dict(source=0, ring_full=0, engine=0, disk_slow=0, write_failed=0,
                                    paused=n_lost), (a, n_lost)
        assert a["written"] == len(there) and a["offered"] == len(there) + n_lost, a
        assert re.search(r"octd did not run for [5-9]\.\d s", daemon.log()), daemon.log()
        assert f"{n_lost} paused" in daemon.log() and not daemon.status()["last_error"]
        seen(f"{n_lost} of {stop_s * rate / M:.0f} B-scans dropped as paused, none as disk_slow, "
             "the same in the gap maps, the status and the log")


def overflows(stall_s, buffer_s):
    dropped, pause_s = stalls(stall_s, buffer_s)
    # What the memory holds is kept; half of the image ring more may be.
    most = (stall_s - buffer_s + 1) * BSCANS_S
    assert (stall_s - buffer_s - 1) * BSCANS_S < dropped < most, (dropped, most)
    seen(f"{dropped} B-scans dropped as disk_slow ({stall_s} s are {stall_s * BSCANS_S:.0f}), the "
         f"same in the gap maps, the status and the log; longest pause of the live picture "
         f"{pause_s * 1e3:.0f} ms")


@case
def stall_too_long():
    """the disk stalls 3 s, the recorder's memory is for 1 s"""
    overflows(3, 1)


@case
def slow_is_told():
    """a disk that becomes slow while recording: status, metrics and log say so, until it is back"""
    setup = settings(record=dict(buffer_s=1), metrics=dict(endpoint="127.0.0.1:0"))
    with Faulty(*setup) as daemon, Camera(daemon):
        url = re.search(r"metrics on (http://\S+)", daemon.log()).group(1)

        def metric():
            text = urllib.request.urlopen(url, timeout=PATIENCE_S).read().decode()
            return int(re.search(r'octd_degraded{what="disk"} (\d)', text).group(1))

        assert daemon.ask("record", action="start")["ok"]
        daemon.wait(lambda s: s["volumes_written"] >= 2 and "disk" not in s["degraded"])
        for words in "stall 400", "stall once 3000":
            daemon.fault(words)
            began, full = time.monotonic(), None
            while "disk" not in (status := daemon.status())["degraded"]:
                record, now = status["record"], time.monotonic()
                if full is None and record["bscans_waiting"] >= record["buffer_bscans"]:
                    full = now
                assert now - began < PATIENCE_S, status
                time.sleep(0.02)
            now = time.monotonic()
            seen(f"{words}: told {now - began:.1f} s after it began, {now - (full or now):.1f} s "
                 "after the memory was full")
            if words == "stall 400":  # the other may be over
                until(metric, "the metric")
                assert status["last_error"] == "" and status["phase"] == "recording"
            daemon.fault("")
            daemon.wait(lambda s: "disk" not in s["degraded"])
            until(lambda: not metric(), "the metric's end")
        log = daemon.log()
        assert "the disk takes too long: " in log, log
        ends = log.count("the disk no longer holds up the recording")
        assert log.count("the disk takes too long") == ends, log
        # What ends while it is slow ends the word of it, too.
        daemon.fault("stall 400")
        daemon.wait(lambda s: "disk" in s["degraded"])
        daemon.ask("record", action="stop")
        daemon.fault("")
        daemon.wait(lambda s: not s["record"]["active"] and "disk" not in s["degraded"])
        check_files(daemon)


@case
def slow_for_long():
    """the disk is always too slow, with memory for 1800 B-scans: it is blamed, not the camera"""
    # Between any two B-scans that are kept some are dropped: the reason of each such gap must be
    # known until the recorder comes to it, a whole memory later.
    lines, room = 4, 1800
    overload = settings(scan=dict(lines=lines, bscans=500),
                        record=dict(buffer_s=room * lines / RATE, sync_interval_s=0))
    with Faulty(*overload) as daemon, Camera(daemon) as camera:
        assert daemon.ask("record", action="start")["ok"]
        daemon.fault("sync_stall 1")
        daemon.wait(lambda s: s["record"]["bscans_waiting"] > 0.9 * room, timeout_s=600)
        written = daemon.status()["bscans_written"] + room  # the first after what waits now
        daemon.wait(lambda s: s["bscans_written"] > written + 50, timeout_s=600)
        daemon.fault("")
        daemon.ask("record", action="stop")
        daemon.wait(lambda s: not s["record"]["active"])
        camera.stop()
        status = daemon.status()
        dropped = status["record_account"]["dropped"]
        assert status["lines_missing"] == 0 and dropped["source"] == 0, dropped
        assert dropped["disk_slow"] > 0 and not dropped["write_failed"], dropped
        reasons = {}
        for name in names(daemon):
            with h5py.File(name, "r") as f:
                for n, reason in zip(f["gaps/n_lines"][:], f["gaps/reason"][:]):
                    if n:
                        reasons[int(reason)] = reasons.get(int(reason), 0) + 1
        check_files(daemon)
        assert 1 not in reasons and reasons[4] > 0, reasons  # source, disk_slow
        seen(f"{dropped['disk_slow']} B-scans dropped in {reasons[4]} gaps as disk_slow, none as "
             "the source's, in account and gap maps")


@case
def ends_during_a_stall():
    """SIGTERM while the disk stalls 2 s"""
    with Faulty(*settings(record=dict(buffer_s=2))) as daemon:
        assert daemon.ask("record", action="start")["ok"]
        with Camera(daemon):  # from its first line on everything is recorded
            daemon.wait(lambda s: s["volumes_written"] >= 1)
            daemon.stall_once(2)
            begun = daemon.status()["bscans_begun"]
            began = time.monotonic()
            assert daemon.end() == 0, daemon.log()
            took_s = time.monotonic() - began
        assert "+ 0 dropped" in daemon.log(), daemon.log()
        there, lost = everything_is_there(daemon)
        assert not lost and len(there) >= begun and not glob.glob(daemon.records + "/*.part")
        check_files(daemon)
        seen(f"exit status 0 after {took_s:.1f} s, {len(there)} B-scans saved, all that had come")


@case
def stops_during_a_stall():
    """stop while the disk stalls beyond daemon.drain_s: told, and closed when the disk comes back"""
    with Faulty(*settings(record=dict(buffer_s=8), daemon=dict(drain_s=3))) as daemon:
        assert daemon.ask("record", action="start")["ok"]
        with Camera(daemon):
            daemon.wait(lambda s: s["volumes_written"] >= 1)
            daemon.stall_once(6)
            time.sleep(1)  # some come meanwhile
            reply = daemon.ask("stop")
        told = daemon.status()["last_error"]
        waiting = re.search(r"the disk has not taken (\d+) B-scans", told)
        assert reply["ok"] and reply["phase"] == "error" and waiting and int(waiting[1]) > 100, told
        status = daemon.wait(lambda s: not s["record"]["active"])
        assert "+ 0 dropped" in daemon.log(), daemon.log()
        assert status["record_account"]["pending"] == 0
        assert status["bscans_written"] == status["record_account"]["offered"], status
        assert daemon.end() == 0, daemon.log()
        check_files(daemon)
        seen(told)


if LONG:
    @case
    def stall_absorbed_long():
        """the disk stalls 5 s, the recorder's memory is for 8 s"""
        dropped, pause_s = stalls(5, 8)
        assert dropped == 0, dropped
        seen(f"no B-scan lost; longest pause of the live picture {pause_s * 1e3:.0f} ms")

    @case
    def stall_half_a_minute():
        """the disk stalls 30 s, the recorder's memory is for 5 s"""
        overflows(30, 5)

main()
