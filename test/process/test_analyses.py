#!/usr/bin/python3
"""Analyses beside the stream, in a real octd: topics, datasets, status, settings, and those that
misbehave (test/daemon/octd_misbehaving.c)."""
import contextlib
import ctypes
import glob
import h5py
import math
from octfaults import *

D = 128  # crop_last of BASE
ODIN = {"frame_num", "acquisition_id", "dtype", "dsize", "dataset", "compression", "shape", "time_ns",
        "missing_lines", "lo", "hi", "volume", "bscan"}


class Misbehaving(Daemon):
    program = "test/octd_misbehaving"


def analyses(status):
    return {a["name"]: a for a in status["analysis"]}


def in_step(daemon, sender, n_bscans, first=0, names=("enface", "quality")):
    """B-scans one by one, so that no analysis is late on a busy machine."""
    before = daemon.status()
    for i in range(n_bscans):
        at = (first + i) * M
        sender.send(LINES[at % len(LINES):][:M], at, flags=1 if at == 0 else 0)
        daemon.wait(lambda s: s["bscans_done"] == before["bscans_done"] + i + 1 and all(
            a["seen"] == s["bscans_done"] for a in s["analysis"] if a["name"] in names))


@case
def what_a_key_may_ask_for_is_there():
    """angiogram beside flow, where analysis.run names flow alone: at rest until flow.enabled"""
    keys = settings(analysis=dict(run="flow"), scan=dict(repeats=2))
    with Daemon(*BASE, *keys) as daemon:
        rows = analyses(daemon.status())
        assert rows["flow"]["at_rest"] and rows["angiogram"]["at_rest"], rows
        images = daemon.subscriber("angiogram")
        reply = daemon.ask("set", key="flow.enabled", value="yes")
        assert reply["ok"], reply
        daemon.wait(lambda s: not any(a["at_rest"] for a in s["analysis"]))
        in_step(daemon, Sender(daemon, 1), V, names=("flow",))
        topic, header, values = receive(images)
        assert header["shape"] == [str(V // 2), str(M)], header


@case
def en_face_and_quality_are_published():
    """topic enface has a row a B-scan, what a B-scan's own pixels say; topic quality is JSON"""
    with Daemon(*BASE, *settings(scan=dict(width_um=600, height_um=500))) as daemon:
        pictures, enface, quality = (daemon.subscriber(t) for t in ("bscan", "enface", "quality"))
        in_step(daemon, Sender(daemon, 1), V)
        rows = []
        for i in range(V):
            _, header, pixels = receive(pictures)
            step = (header["hi"] - header["lo"]) / 255
            rows.append(header["lo"] + pixels.astype(float).mean(axis=1) * step)
            topic, header, values = receive(quality)
            assert topic == "quality" and header["dataset"] == "analysis/quality", header
            assert ODIN <= set(header) and header["bscan"] == i, header
            assert header["quantity"] == "numbers" and len(header["labels"]) == values.size
            for label, value in zip(header["labels"], values):
                assert abs(header["values"][label] - value) <= 1e-5 * abs(value), header
            assert 0 < header["values"]["snr_db"] < 100 and header["values"]["sharpness"] >= 1
        while True:
            topic, header, values = receive(enface)
            assert ODIN <= set(header) and header["shape"] == [str(V), str(M)], header
            assert header["unit"] == "dB" and header["spacing_um"] == [50, 30], header
            assert header["dataset"] == "analysis/enface"
            for row in range(V):
                if row <= header["bscan"]:
                    assert np.allclose(values[row], rows[row], atol=1e-3), (row, values[row])
                else:
                    assert np.isnan(values[row]).all()
            if header["whole"]:
                break
        assert header["bscan"] == V - 1 and header["lo"] < header["hi"]
        status = daemon.status()
        for name in ("enface", "quality"):
            a = analyses(status)[name]
            assert a["seen"] == a["done"] == V and not a["failing"] and a["error"] == "", a
            assert a["running"] == "cpu"


@case
def a_live_setting_reaches_its_stage():
    """set analysis.enface_projection changes the next image, the configuration, and nothing else"""
    with Daemon(*BASE) as daemon:
        enface, pictures = daemon.subscriber("enface"), daemon.subscriber("bscan")
        sender = Sender(daemon, 1)
        in_step(daemon, sender, V)
        assert daemon.ask("set", key="analysis.enface_projection", value="max")["ok"]
        assert daemon.ask("get", key="analysis.enface_projection")["value"] == "max"
        in_step(daemon, sender, V, V)
        most = []
        for _ in range(2 * V):
            _, header, pixels = receive(pictures)
            step = (header["hi"] - header["lo"]) / 255
            most.append(header["lo"] + pixels.max(axis=1) * step)
        while True:
            _, header, values = receive(enface)
            if header["whole"] and header["volume"] == 1:
                break
        assert np.allclose(values, most[V:], atol=1e-3)
        refused = daemon.ask("set", key="analysis.enface_slab_first", value="0.9")
        assert not refused["ok"] and "enface_slab" in refused["error"], refused
        refused = daemon.ask("set", key="analysis.run", value="")
        assert not refused["ok"] and "stop" in refused["error"], refused


@case
def they_are_recorded():
    """a recording has /analysis/enface and /analysis/quality, row for row what was published"""
    with Daemon(*BASE, *settings(scan=dict(width_um=600, height_um=500))) as daemon:
        enface, quality = daemon.subscriber("enface"), daemon.subscriber("quality")
        a_bscan = M * LINES.shape[1] * 2 + M * D  # and a row of en face, a row of the quality
        columns = 4 + 1  # of float images: rows, valid
        reserved = daemon.status()["record"]["bytes_per_bscan"]
        assert daemon.ask("record", action="start")["ok"]
        in_step(daemon, Sender(daemon, 1), 2 * V)
        daemon.wait(lambda s: s["volumes_written"] == 2)
        assert daemon.ask("record", action="stop")["ok"]
        files = sorted(glob.glob(daemon.records + "/*.h5"))
        rows = [receive(quality)[2] for _ in range(2 * V)]
        a_bscan += M * 4 + columns / V + rows[0].size * 4 + columns
        assert reserved == math.ceil(a_bscan)
        images = {}
        while len(images) < 2:
            _, header, values = receive(enface)
            if header["whole"]:
                images[header["volume"]] = values
        for volume, path in enumerate(files):
            with h5py.File(path) as file:
                assert (file["/frames/valid"][:] == 1).all()
                dataset = file["/analysis/enface"]
                assert dataset.shape == (V, M) and dataset.attrs["units"] == "dB"
                assert list(dataset.attrs["axis_spacing_um"]) == [50, 30]
                assert np.array_equal(dataset[:], images[volume])
                dataset = file["/analysis/quality"]
                assert list(dataset.attrs["labels"])[0] == "snr_db"
                assert (file["/frames/quality_valid"][:] == 1).all()
                assert np.array_equal(dataset[:], rows[volume * V:(volume + 1) * V])
            status, out, err = run("octctl", "info", path)
            assert status == 0 and f"enface [{V}][{M}] f32, dB: written" in out, (out, err)
            assert run("octctl", "check", path)[0] == 0
        status = daemon.status()
        assert all(a["recorded"] > 0 and a["not_recorded"] == 0 for a in status["analysis"]
                   if not a["at_rest"]), status


@case
def a_volume_that_ends_early_keeps_its_rows():
    """an acquisition that ends half way: its file has the en face rows of what there was"""
    with Daemon(*BASE) as daemon:
        assert daemon.ask("record", action="start")["ok"]
        sender = Sender(daemon, 1)
        in_step(daemon, sender, V // 2)
        assert daemon.ask("record", action="stop")["ok"]
        daemon.wait(lambda s: s["volumes_written"] == 1)
        with h5py.File(glob.glob(daemon.records + "/*.h5")[0]) as file:
            values = file["/analysis/enface"][:]
            assert not np.isnan(values[:V // 2]).any(), values
            assert np.isnan(values[V // 2:]).all()
            assert list(file["/frames/quality_valid"][:]) == [1] * (V // 2) + [0] * (V - V // 2)


@case
def whoever_misbehaves_harms_nobody():
    """sleeping 10 s a B-scan, hanging, failing, nonsense: no picture late, no B-scan unrecorded"""
    names = ["sleeper", "hanger", "failer", "nonsense", "unborn", "mean", "enface", "quality"]
    run_all = settings(analysis=dict(run=",".join(names)))
    # Half of the ring, half a second, is what a busy machine may keep the publisher from its work.
    room = settings(pipeline=dict(ring_bscans=256))
    with Misbehaving(*BASE, *LONG_VOLUMES, *run_all, *room) as daemon, Player(daemon, 4000):
        assert daemon.ask("record", action="start")["ok"]
        status = daemon.wait(lambda s: s["volumes_written"] >= 3 and
                             analyses(s)["sleeper"]["busy_s"] > 6)
        a = analyses(status)
        assert a["hanger"]["busy_s"] > 5 and a["hanger"]["done"] == 0, a
        assert a["failer"]["done"] == 0 and a["failer"]["skipped"]["failed"] > 0
        assert a["failer"]["error"] == "it fails as it should" and a["failer"]["failing"]
        assert "nonsense size" in a["nonsense"]["error"] and a["nonsense"]["results"] == 0
        assert a["unborn"]["running"] == "none" and "as it says" in a["unborn"]["error"]
        assert a["sleeper"]["skipped"]["late"] + a["sleeper"]["done"] > 0 or a["sleeper"]["seen"] == 0
        for good in ("mean", "enface", "quality"):
            assert a[good]["done"] > 0 and not a[good]["failing"], a[good]
        assert "analysis" in status["degraded"], status["degraded"]
        assert status["bscans_not_published"] == 0 and sum(status["bscans_dropped"].values()) == 0
        assert sum(status["record_account"]["dropped"].values()) == 0, status["record_account"]
        # A file's B-scans are safe when it is closed, as volumes take half a sync_interval_s.
        assert status["record_account"]["pending"] < 5 * 100 + 60, status["record_account"]
        p99_ms = status["latency_us"]["p99"] / 1000
        seen(f"p99 {p99_ms:.1f} ms beside those that misbehave")
        if not SLOW:
            assert p99_ms < 200, status["latency_us"]
        log = daemon.log()
        for words in ("analysis unborn does not run: out of memory, as it says",
                      "analysis failer: it fails as it should", "analysis nonsense: it returned",
                      "analysis hanger has been at work at one B-scan for",
                      "analysis sleeper has been at work at one B-scan for"):
            assert words in log, (words, log)
        began = time.monotonic()
        assert daemon.end() == 0, daemon.log()
        took = time.monotonic() - began
        seen(f"ended within {took:.1f} s")
        assert took < 30 or SLOW, daemon.log()
        files = sorted(glob.glob(daemon.records + "/*.h5"))
        for path in files[:-1]:
            with h5py.File(path) as file:
                assert (file["/frames/valid"][:] == 1).all(), path
                assert not file["/frames/hanger_valid"][:].any()


@case
def values_are_lent_in_the_daemon():
    """an analysis of float values gets them: its mean of a B-scan is that of the published pixels"""
    settings_f32 = settings(analysis=dict(run="mean"), output=dict(sample="f32"))
    settings_u8 = settings(analysis=dict(run="mean"),
                           pipeline=dict(range="manual", min_db=-60, max_db=160))
    for chosen, tolerance in ((settings_f32, 1e-4), (settings_u8, 0.5)):
        with Misbehaving(*BASE, *chosen) as daemon:
            pictures, means = daemon.subscriber("bscan"), daemon.subscriber("mean")
            in_step(daemon, Sender(daemon, 1), V, names=("mean",))
            done = analyses(daemon.status())["mean"]
            assert done["done"] > V // 2, done
            by_number = {}
            for _ in range(V):
                _, header, pixels = receive(pictures)
                values = pixels.astype(float)
                if header["dtype"] == "uint8":
                    values = header["lo"] + values * (header["hi"] - header["lo"]) / 255
                by_number[header["frame_num"]] = values.mean()
            for _ in range(done["results"]):
                _, header, row = receive(means)
                assert abs(row[0] - by_number[header["frame_num"]]) < tolerance, (header, by_number)


@case
def no_count_of_an_analysis_is_larger_than_its_whole():
    """seen = done + skipped <= B-scans; what became of results <= results, in every answer"""
    quick = settings(scan=dict(lines=2, bscans=4))
    with Daemon(*BASE, *quick) as daemon, Player(daemon, 100000, *quick):
        listener = daemon.subscriber("quality")
        listener.rcvhwm = 1
        assert daemon.ask("record", action="start")["ok"]
        daemon.wait(lambda s: s["bscans_done"] > 1000)
        n = 0
        until = time.monotonic() + 1
        while time.monotonic() < until:
            s = daemon.status()
            for a in s["analysis"]:
                n += 1
                assert a["seen"] == a["done"] + sum(a["skipped"].values()), a
                assert a["seen"] <= s["bscans_done"] + s["bscans_dropped"]["engine"], (a, s)
                dealt = a["published"] + a["not_published"] + a["unwanted"]
                assert dealt <= a["results"], a
                assert a["recorded"] <= a["results"], a
        seen(f"{n} looks")


@case
def a_name_that_is_none_is_refused():
    """analysis.run with an unknown name ends octd with status 2 and the names there are"""
    for text, words in (("enfac", "enface,quality"), ("enface,enface", "enface"),
                        ("En face", "analysis.run")):
        status, _, err = run("octd", *BASE, *settings(analysis=dict(run=text)))
        assert status == 2 and "analysis.run" in err and words in err, (status, err)


@case
def none_may_run():
    """analysis.run= leaves octd as it was: no topics, no datasets, an empty list in the status"""
    with Daemon(*BASE, *settings(analysis=dict(run=""))) as daemon:
        assert daemon.ask("record", action="start")["ok"]
        sender = Sender(daemon, 1)
        sender.send(LINES[:M * V], 0, flags=1)
        status = daemon.wait(lambda s: s["volumes_written"] == 1)
        assert status["analysis"] == [], status["analysis"]
        with h5py.File(glob.glob(daemon.records + "/*.h5")[0]) as file:
            assert "analysis" not in file


PTRACE_SEIZE, PTRACE_INTERRUPT, PTRACE_DETACH = 0x4206, 0x4207, 17
LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


def yielding_threads(pid):
    """Threads of SCHED_BATCH: {name: [thread, ...]}."""
    found = {}
    for thread in map(int, os.listdir(f"/proc/{pid}/task")):
        if os.sched_getscheduler(thread) == os.SCHED_BATCH:
            name = open(f"/proc/{pid}/task/{thread}/comm").read().strip()
            found.setdefault(name, []).append(thread)
    return found


@contextlib.contextmanager
def stopped(threads):
    """Each thread where it is, as if it had no processor."""
    def ptrace(request, thread):
        if LIBC.ptrace(request, thread, None, None):
            raise Skip(f"ptrace: {os.strerror(ctypes.get_errno())}")
    for thread in threads:
        ptrace(PTRACE_SEIZE, thread)
        ptrace(PTRACE_INTERRUPT, thread)
        os.waitpid(thread, 0x40000000)  # __WALL
    yield
    for thread in threads:
        ptrace(PTRACE_DETACH, thread)


@case
def nobody_waits_for_analyses_that_get_no_processor():
    """all threads of analyses stopped wherever they are: pictures, replies, recordings go on"""
    everything = settings(cells=dict(enabled="yes"), surfaces=dict(enabled="yes"),
                          rolloff=dict(enabled="yes"), average=dict(bscans=16))
    with Daemon(*BASE, *everything) as daemon:
        pictures, sender, at = daemon.subscriber(), Sender(daemon, 1), 0

        def go_on(n):
            nonlocal at
            for _ in range(n):
                before = daemon.status()["bscans_done"]
                sender.send(LINES[at * M % len(LINES):][:M], at * M, flags=at == 0)
                at += 1
                assert receive(pictures)[1]["frame_num"] == at - 1
            assert daemon.status()["bscans_done"] > before

        go_on(5)
        threads = yielding_threads(daemon.process.pid)
        names = {"octd-enface", "octd-quality", "octd-surfaces", "octd-slab",
                 "octd-average", "octd-rolloff", "octd-analysis"}
        assert names <= set(threads), threads
        threads = sum(threads.values(), [])
        for _ in range(60 if LONG else 25):
            with stopped(threads):
                go_on(8)
            go_on(2)
        assert daemon.ask("record", action="start")["ok"]
        with stopped(threads):
            go_on(3 * V + 40)  # more than any ring holds
            assert daemon.ask("record", action="stop")["ok"]
            daemon.wait(lambda s: s["record_account"]["pending"] == 0)
        status = daemon.wait(lambda s: not s["record"]["active"])
        files = sorted(glob.glob(daemon.records + "/*.h5"))
        assert len(files) >= 3 and status["bscans_unsaved"] == 0, (files, status["record_account"])
        assert sum(status["bscans_dropped"].values()) == 0, status["bscans_dropped"]
        assert status["bscans_not_published"] == 0, status


@case
def an_analysis_that_does_not_follow_is_named_once():
    """status, degraded, the metrics' words and one line of the log, until it follows again"""
    with Daemon(*BASE, *settings(analysis=dict(run="quality"))) as daemon:
        sender, pictures = Sender(daemon, 1), daemon.subscriber()
        in_step(daemon, sender, V, names=("quality",))
        daemon.wait(lambda s: analyses(s)["quality"]["late_share"] == 0)
        assert "analysis_late" not in daemon.status()["degraded"]
        threads = sum(yielding_threads(daemon.process.pid).values(), [])
        at = V
        for _ in range(2):
            with stopped(threads):
                for _ in range(64):
                    sender.send(LINES[at * M % len(LINES):][:M], at * M)
                    at += 1
                    receive(pictures)
            late = daemon.wait(lambda s: "analysis_late" in s["degraded"])
            quality = analyses(late)["quality"]
            assert quality["late"] and 0.1 < quality["late_share"] <= 1, quality
            daemon.wait(lambda s: "analysis_late" not in s["degraded"])
        assert len(re.findall("analysis quality does not follow: it skips", daemon.log())) == 1
        code, table, err = run("octctl", "status", *daemon.common)
        assert code == 0 and "does not follow" not in table, table


main()
