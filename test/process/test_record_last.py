#!/usr/bin/python3
"""octctl record last: the last seconds, out of memory into a file, while everything runs."""
from faultrig import *

LAST_S = 2.0
KEPT = int(LAST_S * BSCANS_S)
KEEP = settings(record=dict(last_s=LAST_S))


def ask_last(daemon, *arguments):
    status, out, err = run("octctl", *daemon.common, "record", "last", *arguments)
    return status, out.strip(), err


def rss_mib(daemon):
    text = open(f"/proc/{daemon.process.pid}/status").read()
    return int(text.split("VmRSS:")[1].split()[0]) / 1024


def full(daemon):
    return daemon.wait(lambda s: s["record_last"]["bscans"] == KEPT)


@case
def saves_the_last_seconds():
    """the last seconds become a file, in order, complete, verified, and they are the last ones"""
    with Daemon(*BASE, *KEEP, *settings(record=dict(buffer_s=5))) as daemon, Camera(daemon):
        assert "MiB" in daemon.log() and f"{KEPT} B-scans" in daemon.log(), daemon.log()
        full(daemon)
        before = daemon.status()["bscans_done"]
        status, path, err = ask_last(daemon)
        assert status == 0 and os.path.dirname(path) == daemon.records, (path, err)
        after = daemon.status()["bscans_done"]
        numbers, gaps = look(path)
        assert len(numbers) == KEPT and not gaps, (len(numbers), gaps)
        assert max(numbers) - min(numbers) == KEPT - 1
        # The keeper may be behind what is done; not as far as the picture may be.
        assert before - LIVE_S * BSCANS_S <= max(numbers) <= after, (before, max(numbers), after)
        check_files(daemon)
        with h5py.File(path) as f:
            assert np.array_equal(np.diff(f["frames/number"][:].astype(int)), np.ones(KEPT - 1))
            assert "last_s=2" in f.attrs["config"].replace(" ", "")
        status, second, err = ask_last(daemon, "the-case.2")
        assert status == 0 and second == os.path.join(daemon.records, "the-case.2.h5"), err
        later, _ = look(second)
        assert len(later) == KEPT and min(later) > min(numbers)
        assert daemon.status()["record_last"]["files_saved"] == 2


@case
def while_recording():
    """saving the last seconds takes nothing from a recording that is under way"""
    with Daemon(*BASE, *KEEP, *settings(record=dict(buffer_s=5))) as daemon, \
            Camera(daemon) as camera:
        viewer = Viewer(daemon, camera)
        assert daemon.ask("record", action="start")["ok"]
        full(daemon)
        for _ in range(3):
            assert ask_last(daemon)[0] == 0
        daemon.wait(lambda s: s["record_account"]["offered"] > 2 * V)  # a slow machine: later
        pause_s = viewer.end()
        camera.stop()
        daemon.ask("record", action="stop")
        daemon.wait(lambda s: not s["record"]["active"])
        a = account(daemon)
        assert a["offered"] == a["written"] > 2 * V, a
        for name in [n for n in names(daemon) if n.endswith("_last.h5")]:
            assert len(look(name)[0]) == KEPT
            os.unlink(name)
        there, lost = everything_is_there(daemon)
        assert len(there) == a["written"] and not lost
        assert pause_s < LIVE_S, pause_s


@case
def memory_is_flat():
    """the memory is taken at the start, as said, and does not grow"""
    with Daemon(*BASE, *KEEP, env=NOTHING_HELD_BACK) as daemon:
        said = float(daemon.log().split("slow disk ")[1].split(" MiB")[0])
        slot = daemon.status()["record_last"]["memory_bytes"] / 2**20
        assert abs(said - slot) < 0.1 and said > KEPT * M * (2 * N + 200) / 2**20
        at_start = rss_mib(daemon)
        assert at_start > said
        with Camera(daemon):
            full(daemon)
            ask_last(daemon)
            warm = rss_mib(daemon)
            for _ in range(4):
                assert ask_last(daemon)[0] == 0
            time.sleep(1)
            assert rss_mib(daemon) < warm * 1.05 + 4, (at_start, warm, rss_mib(daemon))


@case
def refusals():
    """off, empty, a name that leaves the folder, one that is there, and what does not fit"""
    with Daemon(*BASE) as daemon:
        status, _, err = ask_last(daemon)
        assert status == 1 and "record.last_s" in err, err
    with Daemon(*BASE, *KEEP) as daemon:
        status, _, err = ask_last(daemon)
        assert status == 1 and "no B-scan" in err, err
        with Camera(daemon):
            daemon.wait(lambda s: s["record_last"]["bscans"] > 10)
            for name in ("../x", "/tmp/x", ".hidden", "a/b", "x" * 101, "a b", "ä"):
                status, _, err = ask_last(daemon, name)
                assert status == 1 and "name" in err, (name, err)
            assert not daemon.ask("record", action="last", name=7)["ok"]
            assert ask_last(daemon, "one")[0] == 0
            status, _, err = ask_last(daemon, "one.h5")
            assert status == 1 and "exists already" in err, err
            assert daemon.status()["state"] == "running"
        assert [os.path.basename(n) for n in names(daemon)] == ["one.h5"]
    for scan, words in ((dict(line_rate_hz=5e6), "a file holds at most"),
                        (dict(line_rate_hz=4e6, lines=16000), "MiB can be had")):
        done = subprocess.run([program("octd"), *BASE, *settings(
            record=dict(last_s=3600), scan=scan, ingest=dict(endpoint="ipc://x1"),
            publish=dict(endpoint="ipc://x2"), control=dict(endpoint="ipc://x3"),
            pipeline=dict(ring_bscans=4))], stderr=subprocess.PIPE, timeout=60)
        err = done.stderr.decode()
        assert done.returncode == 2 and "record.last_s" in err and words in err, err


def expect_slow(daemon, path):
    """What the file lacks of the history is in its gap map as the disk's doing, and is told."""
    numbers, gaps = look(path)
    last = daemon.status()["record_last"]
    assert last["file"] == path and last["bscans_saved"] == len(numbers), (path, last)
    lost = gaps.get("disk_slow", set())
    assert set(gaps) == {"disk_slow"} and not lost & numbers, {k: len(v) for k, v in gaps.items()}
    assert len(numbers) + len(lost) == KEPT == max(numbers | lost) - min(numbers | lost) + 1
    assert last["bscans_lost"] == len(lost) > 0 < len(numbers), last
    assert (f"saved {len(numbers)} of the last {KEPT} B-scans as {path}: the disk was too slow for "
            f"the other {len(lost)}") in daemon.log(), daemon.log()
    check_files(daemon)
    return len(lost)


@case
def slow_disk():
    """a disk too slow to save in time costs the saved file its oldest B-scans, and says so"""
    with Faulty(*KEEP, *settings(record=dict(buffer_s=0.5))) as daemon, Camera(daemon):
        full(daemon)
        daemon.fault("stall 300")  # each write
        reply = daemon.ask("record", action="last")
        assert reply["ok"], reply
        time.sleep(2.5)
        assert not daemon.ask("record", action="last")["ok"]
        daemon.fault("")
        status = daemon.wait(lambda s: not s["record_last"]["saving"])
        assert status["record_last"]["error"] == "", status
        assert status["bscans_dropped"] == dict(ring_full=0, engine=0)
        expect_slow(daemon, reply["file"])
        full(daemon)
        daemon.fault("stall 60")
        octctl = subprocess.Popen([program("octctl"), *daemon.common, "record", "last", "second"],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        daemon.wait(lambda s: s["record_last"]["saving"] and
                    s["record_last"]["bscans_lost"] > 10)
        daemon.fault("")
        out, err = octctl.communicate(timeout=PATIENCE_S)
        lost = expect_slow(daemon, out.strip())
        assert octctl.returncode == 0 and f"warning: record last: {lost} of {KEPT} B-scans" in err, err


main()
