#!/usr/bin/python3
"""Every B-scan of a recording is accounted for by number: in the file's gap map, in the status, in
the log; octctl check says whether it is so; and what a file must say about itself travels in it."""
import glob
import h5py
import numpy as np
from octcrc import crc32c_rows
from octtest import *

N, M, V = 832, 30, 20
rng = np.random.default_rng(8)


BASE = settings(scan=dict(lines=M, bscans=V, width_um=3000, height_um=2000),
                pipeline=dict(crop_last=100), record=dict(sync_interval_s=0.05, last_s=1),
                calibration=dict(wavelengths=calibration(N), dispersion_a2=5))
LINES = rng.integers(100, 4000, (3 * V * M, N)).astype("<u2")


def names(daemon):
    return sorted(glob.glob(daemon.records + "/*"))


def gap_map(f):
    """{line: reason}, and the number of ranges."""
    words = list(f["gaps/reason"].attrs["names"])
    lines, n_ranges = {}, 0
    for first, n, reason in zip(f["gaps/first_line"][:], f["gaps/n_lines"][:],
                                f["gaps/reason"][:]):
        n_ranges += n > 0
        for line in range(int(first), int(first + n)):
            assert line not in lines
            lines[line] = words[reason]
    return lines, n_ranges


def account(daemon):
    a = daemon.status()["record_account"]
    assert a["offered"] == a["written"] + a["pending"] + sum(a["dropped"].values()), a
    return a


@case
def source_loses_by_plan():
    """lines that the source loses are in the gap map one by one, whole B-scans in the account"""
    lost = set(int(x) for x in rng.choice(3 * V * M, 60, replace=False))
    for bscan in (4, 5, 17, 18, 19, 20, 21, 40, 3 * V - 1):  # whole; across two volumes; the end
        lost |= set(range(bscan * M, bscan * M + M))
    with Daemon(*BASE) as daemon:
        assert daemon.ask("record", action="start")["ok"]
        sender = Sender(daemon, 1)
        flags, line = 1, 0
        while line < 3 * V * M:
            end = line
            while end < 3 * V * M and end not in lost and end - line < 100:
                end += 1
            if end > line:
                sender.send(LINES[line:end], line, flags=flags)
                flags = 0
            line = max(end, line + 1)
        sender.send(LINES[:0], 3 * V * M, flags=2)
        daemon.wait(lambda s: s["volumes_written"] == 3)
        a = account(daemon)
        assert a["offered"] == 3 * V and a["dropped"]["source"] == 9, a
        assert a["written"] == 3 * V - 9 and daemon.status()["lines_missing"] == len(lost)
        daemon.ask("record", action="stop")
        daemon.wait(lambda s: not s["record"]["active"])
        assert (f"{3 * V} B-scans offered = {3 * V - 9} written + 9 dropped (9 source)"
                in daemon.log()), daemon.log()
        found = {}
        for volume, name in enumerate(names(daemon)):
            with h5py.File(name) as f:
                lines, _ = gap_map(f)
                found.update(lines)
                assert f.attrs["first_bscan"] == volume * V
                assert np.array_equal(f["frames/number"][:][f["frames/valid"][:] == 1],
                                      volume * V + np.flatnonzero(f["frames/valid"][:]))
        assert found == {line: "source" for line in lost}
        status, out, err = run("octctl", "check", *names(daemon))
        assert status == 0 and out.count(" source") == 3, (out, err)
        status, out, err = run("octctl", "check", "--json", *names(daemon))
        told = json.loads(out)
        assert [f["dropped"] for f in told] == [dict(source=5), dict(source=2), dict(source=2)]
        assert sum(f["missing_lines"] for f in told) == len(lost - {x for x in lost if x // M in
                                                        (4, 5, 17, 18, 19, 20, 21, 40, 3 * V - 1)})


@case
def volumes_of_which_nothing_came():
    """volumes of which nothing came are in the next file's gap map and in the account"""
    with Daemon(*BASE) as daemon:
        assert daemon.ask("record", action="start")["ok"]
        sender = Sender(daemon, 1)
        sender.send(LINES[:V * M], 0, flags=1)
        sender.send(LINES[:V * M], 3 * V * M)
        daemon.wait(lambda s: s["volumes_written"] == 2)
        a = account(daemon)
        assert a["offered"] == 4 * V and a["dropped"]["source"] == 2 * V, a
        with h5py.File(names(daemon)[1]) as f:
            lines, n_ranges = gap_map(f)
            assert n_ranges == 1 and set(lines) == set(range(V * M, 3 * V * M))
            assert f.attrs["first_bscan"] == 3 * V
        assert run("octctl", "check", *names(daemon))[0] == 0


@case
def before_and_after():
    """what was not to be recorded is no loss: before a sender that joins, after a stop"""
    with Daemon(*BASE) as daemon:
        assert daemon.ask("record", action="start")["ok"]
        sender = Sender(daemon, 1)
        sender.send(LINES[3 * M:9 * M], 3 * M)  # joins in the middle of a volume
        daemon.wait(lambda s: s["bscans_written"] == 6)
        daemon.ask("record", action="stop")
        daemon.wait(lambda s: not s["record"]["active"])
        name, = names(daemon)
        with h5py.File(name) as f:
            lines, n_ranges = gap_map(f)
        assert n_ranges == 2 and set(lines.values()) == {"not_recorded"}
        assert sorted({line // M for line in lines}) == [0, 1, 2] + list(range(9, V))
        a = account(daemon)
        assert a["offered"] == a["written"] == 6, a
        assert run("octctl", "check", name)[0] == 0
        # A second recording begins with a volume of its own and counts anew.
        assert daemon.ask("record", action="start")["ok"]
        assert account(daemon)["offered"] == 0
        sender.send(LINES[9 * M:2 * V * M], 9 * M)
        daemon.wait(lambda s: s["volumes_written"] == 2)
        a = account(daemon)
        assert a["offered"] == a["written"] == V, a


def spoiled(source, change):
    """A copy of a recording, changed by change(h5py file)."""
    path = os.path.join(folder("spoiled"), "copy.h5")
    open(path, "wb").write(open(source, "rb").read())
    with h5py.File(path, "r+") as f:
        change(f)
    return path


def ends_anywhere(m, v, dc):
    top = 2**64 // (m * v) * m * v  # begins the last volume
    with Daemon(*BASE, *settings(scan=dict(lines=m, bscans=v), pipeline=dict(dc=dc))) as daemon:
        assert daemon.ask("record", action="start")["ok"]
        sender, last, source, written = Sender(daemon, 0), 2**64 - 1, 0, 0
        for begin in (0, top - v * m, top, top + m):
            for end in [begin + n for n in (3, m, m + 3, 2 * m + 1, 3 * m, 4 * m + 5)] + [last]:
                if not begin < end <= min(last, begin + 6 * m):
                    continue
                for come in {min(end, begin + m), end}:  # what comes of it, from its begin on
                    sender.epoch, sender.sequence = sender.epoch + 1, 0
                    sender.send(LINES[:come - begin], begin)
                    sender.send(LINES[:0], end, flags=2)
                    came, stop = -(-come // m), -(-end // m)
                    stop = min(stop, -(-came // v) * v)  # a volume of which nothing came: no file
                    written += came - begin // m
                    source += stop - came
        assert sender.epoch > 15 and source > 10, (sender.epoch, source)
        daemon.wait(lambda s: s["acquisitions"] == sender.epoch)
        daemon.ask("record", action="stop")
        daemon.wait(lambda s: not s["record"]["active"])
        a = account(daemon)
        assert a["written"] == written and a["dropped"]["source"] == source, (a, written, source)
        assert a["offered"] == source + written, a
        for name in names(daemon):
            with h5py.File(name) as f:
                valid = f["frames/valid"][:] == 1
                numbers = [int(n) for n in f["frames/number"][:][valid]]
                rows = [int(f.attrs["first_bscan"]) + int(r) for r in np.flatnonzero(valid)]
                assert numbers == rows
                ranges = [(int(a), int(n)) for a, n in
                          zip(f["gaps/first_line"][:], f["gaps/n_lines"][:]) if n > 0]
                # Every line of the volume is there once, in a row or in the gap map.
                lines = [x % 2**64 for a, n in ranges for x in range(a, a + n)]
                for number, mask in zip(numbers, f["frames/line_valid"][:][valid]):
                    lines += [(number * m + int(j)) % 2**64 for j in np.flatnonzero(mask)]
                begin = int(f.attrs["first_bscan"]) * m
                own = [x % 2**64 for x in range(begin, begin + v * m)]
                assert sorted(lines) == sorted(own), (name, begin, ranges)
        status, out, err = run("octctl", "check", *names(daemon))
        assert status == 0, (out, err)

    def shift(f):  # a range that stands elsewhere is still found
        index = np.flatnonzero(f["gaps/n_lines"][:])[-1]
        f["gaps/first_line"][index] = (int(f["gaps/first_line"][index]) + 1) % 2**64
    for name in names(daemon)[-3:]:
        status, out, err = run("octctl", "check", spoiled(name, shift))
        assert status == 1 and "gap map" in out, (name, out, err)


@case
def ends_anywhere_near_the_last_number():
    """acquisitions that end anywhere, in the middle of a B-scan and near line 2^64 too: file, account
    and check agree"""
    for m, v, dc in ((7, 3, "bscan"), (1, 7, "none")):  # volumes that do not divide 2^64
        ends_anywhere(m, v, dc)


@case
def check_finds_it():
    """octctl check names the B-scan that is not as it was written, whatever is wrong with it"""
    with Daemon(*BASE) as daemon:
        assert daemon.ask("record", action="start")["ok"]
        sender = Sender(daemon, 1)
        sender.send(LINES[:5 * M + 7], 0, flags=1)
        sender.send(LINES[5 * M + 9:8 * M], 5 * M + 9)
        sender.send(LINES[9 * M:V * M], 9 * M)
        daemon.wait(lambda s: s["volumes_written"] == 1)
        name, = names(daemon)

    def flip(array, *at):
        def change(f):
            value = f[array][at]
            f[array][at] = value ^ value.dtype.type(1)
        return change

    def drop_range(f):
        index = np.flatnonzero(f["gaps/first_line"][:] == 8 * M)[0]
        f["gaps/first_line"][index] = 500 * M

    for change, bscan in ((flip("spectra", 3, 29, 831), 3), (flip("bscans", 0, 0, 0), 0),
                          (flip("frames/spectra_crc32c", 19), 19),
                          (flip("frames/bscans_crc32c", 2), 2), (flip("frames/number", 11), 11),
                          (flip("frames/missing_lines", 5), 5),
                          (flip("frames/line_valid", 7, 4), 7), (flip("frames/valid", 6), 6),
                          (drop_range, 8)):
        path = spoiled(name, change)
        status, out, err = run("octctl", "check", path, name)
        assert status == 1 and f"  B-scan {bscan}: " in out, (bscan, out, err)
        assert out.count("\n  B-scan ") == 1 and f"{name}: ok" in out, out
        status, out, _ = run("octctl", "check", "--json", path)
        told, = json.loads(out)
        assert status == 1 and not told["ok"] and [b["bscan"] for b in told["bad"]] == [bscan]
    for change, words in ((lambda f: f.__delitem__("frames/spectra_crc32c"), "cannot be verified"),
                          (lambda f: f.__delitem__("spectra") or f.__delitem__("bscans"), "neither")):
        status, out, err = run("octctl", "check", spoiled(name, change))
        assert status == 1 and words in err, (out, err)
    assert run("octctl", "check", "/no/such.h5")[0] == 1
    assert run("octctl", "check")[0] == 2 and run("octctl", "check", "--what", name)[0] == 2


@case
def what_travels():
    """configuration, calibration, eye, pseudonym and spacings are in every file; nobody's name is"""
    with Daemon(*BASE) as daemon:
        assert daemon.ask("set", key="record.eye", value="OS")["ok"]
        assert daemon.ask("set", key="record.pseudonym", value="P-0042")["ok"]
        assert not daemon.ask("set", key="record.eye", value="left")["ok"]
        assert daemon.ask("record", action="start")["ok"]
        Sender(daemon, 1).send(LINES[:(V + 7) * M], 0, flags=1)
        daemon.wait(lambda s: s["volumes_written"] == 1 and s["bscans_written"] == V + 7)
        daemon.ask("record", action="stop")
        daemon.wait(lambda s: not s["record"]["active"])
        assert daemon.ask("record", action="last", name="last")["ok"]
        daemon.wait(lambda s: s["record_last"]["files_saved"] == 1)
        assert len(names(daemon)) == 3
        for name in names(daemon):
            with h5py.File(name) as f:
                assert f.attrs["eye"] == "OS" and f.attrs["pseudonym"] == "P-0042"
                text = f.attrs["config"]
                for words in ("[scan]", "dispersion_a2", "eye=OS", "pseudonym=P-0042"):
                    assert words in text.replace(" = ", "="), words
                own = os.path.join(folder("own"), "own.ini")
                open(own, "w").write(text)
                assert run("octctl", "--config", own, "info", name)[0] == 0
                assert np.allclose(f["calibration/wavelengths_nm"][:],
                                   np.loadtxt(calibration(N)), rtol=0, atol=1e-9)
                assert f["calibration/dispersion"].shape == (4096, 2)
                assert list(f.attrs["axis_names"]) == ["bscan", "line", "depth"]
                slow, fast, axial = f.attrs["axis_spacing_um"]
                assert abs(fast - 3000 / M) < 1e-9 and 1 < axial < 10
                assert abs(slow - 2000 / V) < 1e-9, (name, slow)
                assert time.strptime(f.attrs["start_time"], "%Y-%m-%dT%H:%M:%SZ")
                asked = {"software", "config", "start_time", "start_time_source", "engine", "eye", "pseudonym",
                         "refractive_index", "axis_names", "axis_spacing_um", "first_bscan"}
                assert set(f.attrs) <= asked, set(f.attrs) - asked
                valid = f["frames/valid"][:] == 1
                assert np.array_equal(crc32c_rows(f["spectra"][:][valid]),
                                      f["frames/spectra_crc32c"][:][valid])


main()
