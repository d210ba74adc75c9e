#!/usr/bin/python3
"""A disk that is full, fails, cuts writes short, or is interrupted while octd records. In all
of it the live picture goes on, what was written can be read, and every B-scan is accounted for."""
from faultrig import *


@case
def short_writes_and_interrupts():
    """short writes, then EINTR at every other call"""
    with Faulty(*settings(record=dict(buffer_s=5))) as daemon, Camera(daemon) as camera:
        viewer = Viewer(daemon, camera)
        assert daemon.ask("record", action="start")["ok"]
        for words in ("short", "eintr"):
            daemon.fault(words)
            before = daemon.status()["volumes_written"]
            daemon.wait(lambda s: s["volumes_written"] >= before + 3)
        viewer_s = viewer.end()
        camera.stop()
        daemon.fault("")
        daemon.ask("record", action="stop")
        daemon.wait(lambda s: not s["record"]["active"])
        a = account(daemon)
        assert a["offered"] == a["written"] > 5 * V and not daemon.status()["last_error"], a
        there, lost = everything_is_there(daemon)
        assert len(there) == a["written"] and not lost, lost
        check_files(daemon)
        assert viewer_s < LIVE_S, viewer_s
        seen(f"{a['written']} B-scans, none lost, all verified; longest pause of the live picture "
             f"{viewer_s * 1e3:.0f} ms")


def ended(daemon, failed):
    """The account of a recording that has failed ended with it: one number in status and log."""
    done = daemon.status()["bscans_done"]
    a = daemon.wait(lambda s: s["bscans_done"] > done + 50)["record_account"]
    n_lost = sum(a["dropped"].values())
    assert a == failed["record_account"] and a["pending"] == 0, (a, failed["record_account"])
    assert failed["bscans_unsaved"] == daemon.status()["bscans_unsaved"]
    assert f'{a["offered"]} B-scans offered = {a["written"]} written + {n_lost} dropped' in \
        daemon.log(), (a, daemon.log())
    return a


def fail_in_a_file(daemon, words):
    """A recording fails within a file, of a second. Where this process waits for a processor the
    next one may have begun: then once more."""
    for _ in range(5):
        assert daemon.ask("record", action="start")["ok"]
        status = daemon.wait(lambda s: s["volumes_written"] and
                             0 < s["record"]["bscans_in_file"] < 2 * V)
        written = status["bscans_written"]
        daemon.fault(words)
        status = daemon.wait(lambda s: s["state"] == "running" and s["last_error"])
        assert status["bscans_written"] >= written
        if ".part" in status["last_error"]:
            break
        daemon.fault("")
    return status


def fails(words, text):
    with Faulty(*settings(scan=dict(bscans=3 * V))) as daemon, Camera(daemon) as camera:
        viewer = Viewer(daemon, camera)
        status = fail_in_a_file(daemon, words)
        assert text in status["last_error"] and ".part" in status["last_error"], status
        pictures = viewer.n_pictures
        daemon.wait(lambda s: viewer.n_pictures > pictures + 100)
        daemon.fault("")
        files = names(daemon)
        part, = (name for name in files if name.endswith(".part"))
        assert part in status["last_error"]
        kept = {name: len(look(name)[0]) for name in files}
        check_files(daemon)
        a = ended(daemon, status)
        # Rows that were marked valid before a sync failed are there, and count as failed all the same.
        unsure = a["dropped"]["write_failed"] if words == "sync_eio" else 0
        assert 0 <= sum(kept.values()) - status["bscans_written"] <= unsure, (kept, a)
        assert daemon.ask("record", action="start")["ok"]
        assert account(daemon)["dropped"]["write_failed"] == 0  # an account of its own
        daemon.wait(lambda s: s["volumes_written"] >= status["volumes_written"] + 1)
        pause_s = viewer.end()
        assert pause_s < LIVE_S, pause_s
        assert daemon.end() == 0
        seen(f"the recording stopped: \"{text}\" naming the file; {status['bscans_written']} "
             f"B-scans kept and verified, {a['dropped']['write_failed']} counted as write_failed; "
             f"longest pause of the live picture {pause_s * 1e3:.0f} ms; recorded again afterwards")


@case
def eio():
    """EIO from a write"""
    fails("eio", "Input/output error")


@case
def sync_eio():
    """EIO from a sync"""
    fails("sync_eio", "Input/output error")


def stopped_by_the_folder(daemon, times):
    """The folder cannot be synced: what is told; all that was counted as written is there."""
    until(lambda: daemon.log().count("recording stopped: ") == times, "the recording's end")
    status = daemon.wait(lambda s: not s["record"]["active"] and s["last_error"])
    for words in ("cannot sync the folder", daemon.records, "Input/output error"):
        assert words in status["last_error"], status
    daemon.fault("")
    assert sum(len(look(name)[0]) for name in names(daemon)) == status["bscans_written"]
    check_files(daemon)
    ended(daemon, status)
    return status


@case
def folder_eio():
    """EIO from a sync of the folder, when a file is whole and when one begins"""
    with Faulty(*settings(scan=dict(bscans=4 * V))) as daemon, Camera(daemon) as camera:
        viewer = Viewer(daemon, camera)
        assert daemon.ask("record", action="start")["ok"]
        daemon.wait(lambda s: s["record"]["bscans_in_file"])
        daemon.fault("folder_eio")  # long before the file is whole
        status = stopped_by_the_folder(daemon, 1)
        files = names(daemon)
        assert status["bscans_written"] == 4 * V and status["volumes_written"] == 0, status
        assert len(files) == 1 and files[0].endswith(".h5"), files
        daemon.fault("folder_eio")
        assert daemon.send("record", action="start")["ok"]
        status = stopped_by_the_folder(daemon, 2)
        assert names(daemon) == files and not status["record_account"]["written"], status
        assert daemon.ask("record", action="start")["ok"]
        daemon.wait(lambda s: s["volumes_written"] >= status["volumes_written"] + 1)
        pause_s = viewer.end()
        assert pause_s < LIVE_S, pause_s
        assert daemon.end() == 0
        seen(f"both stopped the recording by name; all that was counted as written verified, the "
             f"file that began withdrawn; longest pause of the live picture {pause_s * 1e3:.0f} ms")


@case
def enospc():
    """ENOSPC in the middle of a file (a disk that promised the space)"""
    fails("enospc", "No space left")


def unlucky_round(daemon, seed):
    """One recording, or as many as it takes to see files come and fail."""
    before = daemon.status()["volumes_written"]
    daemon.fault(f"random 40 {seed}")
    end = time.monotonic() + PATIENCE_S
    failed = 0
    while time.monotonic() < end:
        if not daemon.ask("record", action="start")["ok"]:
            failed += 1
        status = daemon.wait(lambda s: not s["record"]["active"]
                             or s["volumes_written"] > before + 4)
        failed += not status["record"]["active"]
        if status["volumes_written"] > before + 4 or failed > 2:
            break
    daemon.ask("record", action="stop")
    daemon.wait(lambda s: not s["record"]["active"])
    account(daemon)
    daemon.fault("")
    return failed


@case
def random_faults():
    """one call in 40 fails by chance (ENOSPC, EIO, EINTR), three seeds: octd ends with 0"""
    with Faulty(*settings(scan=dict(bscans=20))) as daemon, Camera(daemon) as camera:
        viewer = Viewer(daemon, camera)
        failed = sum(unlucky_round(daemon, seed) for seed in range(3))
        assert failed > 4, failed
        files = names(daemon)
        there = sum(len(look(name)[0]) for name in files)
        written = daemon.status()["bscans_written"]
        assert there >= written > 0, (there, written)
        check_files(daemon)
        pause_s = viewer.end()
        assert pause_s < LIVE_S, pause_s
        status = daemon.end()
        assert status == 0, status
        seen(f"{failed} recordings ended by name, {written} B-scans counted as written and verified "
             f"in {len(files)} files; octd ended with 0; longest pause of the live picture "
             f"{pause_s * 1e3:.0f} ms")


@case
def full_disk():
    """the disk is full (a small tmpfs)"""
    small = folder("small")
    volume = V * M * (2 * N + 200)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={int(2.6 * volume)}", "tmpfs", small],
                      stderr=subprocess.DEVNULL).returncode:
        raise Skip("no right to mount a small file system")
    try:
        with Daemon(*BASE) as daemon, Camera(daemon) as camera:
            daemon.records = os.path.join(small, "records")
            assert daemon.ask("set", key="record.directory", value=daemon.records)["ok"]
            viewer = Viewer(daemon, camera)
            left_s = daemon.wait(lambda s: s["record"]["disk_left_s"])["record"]["disk_left_s"]
            assert 0.5 < left_s / (2.6 * V / BSCANS_S) < 1.1, left_s
            assert daemon.ask("record", action="start")["ok"]
            status = daemon.wait(lambda s: s["state"] == "running" and s["last_error"])
            assert "no room" in status["last_error"] and small in status["last_error"], status
            assert status["volumes_written"] == 2 and status["bscans_written"] == 2 * V, status
            assert len(names(daemon)) == 2 and all(n.endswith(".h5") for n in names(daemon))
            check_files(daemon)
            there, lost = everything_is_there(daemon)
            assert len(there) == 2 * V and not lost
            pictures = viewer.n_pictures
            daemon.wait(lambda s: viewer.n_pictures > pictures + 100)
            ended(daemon, status)
            assert not daemon.ask("record", action="start")["ok"]  # and says so beforehand
            pause_s = viewer.end()
            assert pause_s < LIVE_S, pause_s
            assert daemon.end() == 0
            seen(f"two whole volumes kept, the third refused by name with what it wants and what "
                 f"is free; longest pause of the live picture {pause_s * 1e3:.0f} ms")
    finally:
        subprocess.run(["umount", small])


main()
