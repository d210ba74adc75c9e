#!/usr/bin/python3
"""Recordings of n volumes by command, key and octctl, with the account that belongs to them; names
of files, folders and pseudonyms in any letters."""
import glob, shutil
import h5py
import numpy as np
from octtest import *

N, M, V = 832, 20, 10
RATE = 2000  # a volume lasts 0.1 s
BASE = settings(scan=dict(lines=M, bscans=V, line_rate_hz=RATE), pipeline=dict(crop_last=128),
                calibration=dict(wavelengths=calibration(N)), record=dict(sync_interval_s=0.05))


def recording():
    path = os.path.join(folder("recordings"), "lines.raw")
    np.random.default_rng(1).integers(100, 4000, (2 * V * M, N)).astype("<u2").tofile(path)
    return path


PATH = recording()


def Camera(daemon):
    return Replay(daemon, PATH, RATE, *BASE)


def files(daemon):
    return sorted(glob.glob(glob.escape(daemon.records) + "/*"))


def expect_whole(status, names, n):
    """n whole volumes, offered = written and nothing else."""
    record, account = status["record"], status["record_account"]
    check_sums(status)
    assert status["state"] == "running" and not record["active"], status
    assert record["volumes_written"] == n and record["volumes_incomplete"] == 0, record
    assert account["offered"] == account["written"] == n * V, account
    assert not any(account["dropped"].values()) and account["pending"] == 0, account
    assert len(names) == n and all(name.endswith(".h5") for name in names), names
    firsts = []
    for name in names:
        with h5py.File(name) as f:
            assert f["frames/valid"][:].all() and f["spectra"].shape == (V, M, N)
            firsts.append(f["frames/number"][0])
    assert firsts == [firsts[0] + V * i for i in range(n)], firsts


def new_files(daemon, before):
    return [name for name in files(daemon) if name not in before]


def ended(status):
    return not status["record"]["active"] and status["phase"] == "running"


@case
def n_volumes_and_no_more():
    """record start with volumes: so many whole files, then the stream alone, whoever asks"""
    with Daemon(*BASE) as daemon, Camera(daemon):
        daemon.wait(lambda s: s["bscans_done"] > V)
        for n, begin in ((3, lambda: daemon.ask("record", action="start", volumes=3)),
                         (1, lambda: daemon.ask("record", action="start", volumes=1)),
                         (2, lambda: dict(ok=run("octctl", "record", "start", "--volumes", 2,
                                                 *daemon.common)[0] == 0))):
            before = files(daemon)
            assert begin()["ok"]
            status = daemon.wait(ended)
            assert status["record"]["volumes"] == n
            expect_whole(status, new_files(daemon, before), n)
            done = status["bscans_done"]
            daemon.wait(lambda s: s["bscans_done"] > done + V)
            assert len(new_files(daemon, before)) == n
        assert daemon.ask("get", key="record.volumes")["value"] == "0"  # of those alone
        assert not daemon.status()["last_error"]
        assert daemon.end() == 0, daemon.log()


@case
def the_key_is_live():
    """record.volumes holds for the next recordings, and for the one under way when it changes"""
    with Daemon(*BASE, *settings(record=dict(volumes=2))) as daemon, Camera(daemon):
        assert daemon.ask("record", action="start")["ok"]
        status = daemon.wait(ended)
        expect_whole(status, files(daemon), 2)
        before = files(daemon)
        assert daemon.ask("set", key="record.volumes", value="0")["ok"]
        assert daemon.ask("record", action="start")["ok"]
        daemon.wait(lambda s: s["record"]["volumes_written"] == 1)
        assert daemon.status()["record"]["volumes"] == 0
        reply = daemon.ask("set", key="record.volumes", value=4)
        assert reply["ok"], reply
        out, _ = ok("status", *daemon.common)
        assert re.search(r"\d of 4 volumes", out), out
        status = daemon.wait(ended)
        expect_whole(status, new_files(daemon, before), 4)
        for value in ("-1", "1.5", "many"):
            assert not daemon.ask("set", key="record.volumes", value=value)["ok"]
        for value in (-1, 1.5, "3", 1e10, True):
            reply = daemon.ask("record", action="start", volumes=value)
            assert not reply["ok"] and "volumes" in reply["error"], reply
        assert "belongs to" in daemon.ask("record", action="stop", volumes=1)["error"]
        refused_by("record", 2, "belongs to start", "stop", "--volumes", 1, *daemon.common)
        assert not daemon.status()["record"]["active"]


@case
def a_stop_before_the_end():
    """stop comes before the n volumes: the last file is a piece, and the status says so"""
    with Daemon(*BASE) as daemon, Camera(daemon):
        assert daemon.ask("record", action="start", volumes=1000)["ok"]
        daemon.wait(lambda s: s["record"]["volumes_written"] >= 2)
        assert daemon.ask("record", action="stop")["ok"]
        status = daemon.wait(ended)
        record, account = status["record"], status["record_account"]
        whole = record["volumes_written"] - record["volumes_incomplete"]
        assert record["volumes_incomplete"] <= 1 and whole >= 2, record
        assert account["offered"] == account["written"] == sum(
            int(h5py.File(name)["frames/valid"][:].sum()) for name in files(daemon)), account


@case
def names_and_letters():
    """names of files leave the pseudonym out unless they are told to have it; letters outside ASCII
    in pseudonyms and folders, in any locale"""
    who = "J\u00fcrgen \u65e5/\u0416"
    for number, locale in enumerate(("C", "POSIX", "C.UTF-8", "de_DE.ISO-8859-1")):
        where = os.path.join(folder(f"\u00dcbung {number} \u65e5\u672c"), "Aufnahmen")
        for left in (where, where + " \u00e9"):
            shutil.rmtree(left, ignore_errors=True)
        env = dict(LC_ALL=locale)
        with Daemon(*BASE, *settings(record=dict(directory=where)), env=env) as daemon, \
                Camera(daemon):
            daemon.records = where
            done = subprocess.run([program("octctl"), "set", "record.pseudonym", who,
                                   *daemon.common], env=dict(os.environ, **env),
                                  stdout=subprocess.DEVNULL)
            assert done.returncode == 0
            assert daemon.ask("get", key="record.pseudonym")["value"] == who
            assert daemon.ask("set", key="record.eye", value="OD")["ok"]
            assert daemon.ask("record", action="start", volumes=1)["ok"]
            status = daemon.wait(ended)
            plain, = files(daemon)
            assert re.fullmatch(r"OD_\d{8}T\d{9}Z_v\d{4}\.h5", os.path.basename(plain)), plain
            assert status["record"]["file"] == plain and status["record"]["pseudonym"] == who
            assert daemon.ask("set", key="record.name_has_pseudonym", value="yes")["ok"]
            assert daemon.ask("record", action="start", volumes=1)["ok"]
            daemon.wait(ended)
            named, = new_files(daemon, [plain])
            assert os.path.basename(named).startswith("J\u00fcrgen-\u65e5-\u0416_OD_"), named
            for name in (plain, named):
                with h5py.File(name) as f:
                    assert f.attrs["pseudonym"] == who and f.attrs["eye"] == "OD"
                ok("label", name, "--pseudonym", who + "!", "--mark", "keep")
            ok("check", plain, named)
            assert daemon.ask("set", key="record.directory", value=where + " \u00e9")["ok"]
            assert daemon.ask("record", action="start", volumes=1)["ok"]
            assert daemon.wait(ended)["record"]["file"].startswith(where + " \u00e9/J\u00fcrgen")


main()
