#!/usr/bin/python3
"""kill -9 at random moments while recording: what is left on the disk."""
import glob, random, statistics
import h5py
import numpy as np
from octcrc import crc32c_rows
from octtest import *

N, M, V = 832, 16, 100
RATE = 8000
SYNC_S = 0.1
ROUNDS = 50 if LONG else 3
seed = int(os.environ.get("SEED", "0")) or random.randrange(1 << 30)
dice = random.Random(seed)


def recording():
    path = os.path.join(folder("recordings"), "lines.raw")
    lines = np.random.default_rng(2).integers(100, 4000, (3 * V, M, N)).astype("<u2")
    lines.tofile(path)
    return path, lines


BASE = settings(scan=dict(lines=M, bscans=V, line_rate_hz=RATE), pipeline=dict(crop_last=200),
                calibration=dict(wavelengths=calibration(N)),
                record=dict(sync_interval_s=SYNC_S))
PATH, LINES = recording()


def rows_of(name):
    """The rows of a file that count as written: spectra, pictures and their sums."""
    with h5py.File(name, "r") as f:
        valid = f["frames/valid"][:] == 1
        assert name.endswith(".part") or valid.all() or f["gaps/n_lines"][0] > 0, name
        assert f["frames/missing_lines"][:].sum() == 0
        number = f["frames/number"][:][valid]
        expected = np.flatnonzero(valid) + f.attrs["first_bscan"]
        assert np.array_equal(number, expected), name
        spectra = f["spectra"][:][valid]
        assert np.array_equal(spectra, LINES[number % len(LINES)]), f"{name}: not what was sent"
        return (number, spectra, f["bscans"][:][valid], f["frames/spectra_crc32c"][:][valid],
                f["frames/bscans_crc32c"][:][valid])


def killed_once(delay_s, *more):
    """Returns (reported as written before the kill, found, files, seconds lost at the end)."""
    arguments = BASE + list(more)
    with Daemon(*arguments) as daemon:
        assert daemon.ask("record", action="start")["ok"]
        with Replay(daemon, PATH, RATE, *arguments):
            daemon.wait(lambda s: s["record"]["file"])
            until = time.monotonic() + delay_s
            status = daemon.status()
            while time.monotonic() < until:
                status = daemon.status()
            daemon.process.kill()
            daemon.process.wait()
        names = sorted(glob.glob(daemon.records + "/*"))
        read = [rows_of(name) for name in names]
        number, spectra, pictures, spectra_crc, bscans_crc = map(np.concatenate, zip(*read))
        assert len(np.unique(number)) == len(number)
        if len(number):
            assert np.array_equal(crc32c_rows(spectra), spectra_crc), "spectra: a sum is wrong"
            assert np.array_equal(crc32c_rows(pictures), bscans_crc), "pictures: a sum is wrong"
        code, out, err = run("octctl", "check", *names)
        assert code == 0 and out.count("ok:") == len(names), (out, err)
        lost_s = max(0, status["bscans_done"] - len(number)) * M / RATE
        return status["bscans_written"], len(number), len(names), lost_s


def killed(rounds, shortest_s, *more):
    """Kills at random moments; says what was found, returns what each of them lost, in seconds."""
    total, n_files, lost_s = 0, 0, []
    for _ in range(rounds):
        written, found, files, lost = killed_once(dice.uniform(shortest_s, 1.5), *more)
        assert found >= written, f"{written} were reported as written, {found} are there"
        total, n_files = total + found, n_files + files
        lost_s.append(lost)
    seen(f"{rounds} kills, {n_files} files all open, {total} B-scans all with right CRC-32C, none "
         f"reported as written is missing; at most the last {max(lost_s):.2f} s are, "
         f"{statistics.median(lost_s):.2f} s in the median (sync every {SYNC_S} s)")
    return lost_s


@case
def killed_at_random_moments():
    """kill -9 at random moments while recording volumes of 0.2 s"""
    print(f"# SEED={seed}", flush=True)
    killed(ROUNDS, 0)


def sync_here_s():
    """What a sync takes this disk, whatever octd does."""
    took_s = []
    with open(os.path.join(folder("sync"), "file"), "wb", buffering=0) as file:
        for _ in range(9):
            file.write(bytes(1 << 20))
            began = time.monotonic()
            os.fdatasync(file.fileno())
            took_s.append(time.monotonic() - began)
    return statistics.median(took_s)


@case
def killed_within_a_volume():
    """kill -9 within a long volume: what is lost is what came since the last sync"""
    lost_s = killed(ROUNDS + 2, 0.75, *settings(scan=dict(bscans=10 * V)))
    # The interval and two syncs under way; the median, as a disk may hang now and then.
    allowed_s = SYNC_S + (0.6 if SLOW else 0.4) + 4 * sync_here_s()
    assert statistics.median(lost_s) < allowed_s, (lost_s, allowed_s)


main()
