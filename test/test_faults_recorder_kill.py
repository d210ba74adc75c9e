#!/usr/bin/python3
"""kill -9 at random moments while recording: what is left on the disk."""
import glob, random
import h5py
import numpy as np
from octcrc import crc32c_rows
from octtest import *

N, M, V = 832, 16, 100
RATE = 8000
SYNC_S = 0.1
ROUNDS = 100 if LONG else 5
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


def killed_once(delay_s):
    """Returns (reported as written before the kill, found, files, seconds lost at the end)."""
    with Daemon(*BASE) as daemon:
        assert daemon.ask("record", action="start")["ok"]
        player = subprocess.Popen(
            [program("octctl"), "replay", PATH, *daemon.common, *BASE, "--loop", "--rate",
             str(RATE)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        try:
            daemon.wait(lambda s: s["record"]["file"])
            until = time.monotonic() + delay_s
            status = daemon.status()
            while time.monotonic() < until:
                status = daemon.status()
            daemon.process.kill()
            daemon.process.wait()
        finally:
            player.kill()
            player.wait()
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


@case
def killed_at_random_moments():
    """kill -9 at random moments while recording"""
    print(f"# SEED={seed}", flush=True)
    total, n_files, worst_s = 0, 0, 0
    for _ in range(ROUNDS):
        written, found, files, lost_s = killed_once(dice.uniform(0.0, 1.5))
        assert found >= written, f"{written} were reported as written, {found} are there"
        total, n_files, worst_s = total + found, n_files + files, max(worst_s, lost_s)
    # The interval, a sync that takes its time, and one more B-scan under way.
    assert worst_s < SYNC_S + (5 if SLOW else 1.5), f"{worst_s:.2f} s were lost"
    seen(f"{ROUNDS} kills, {n_files} files all open, {total} B-scans all with right CRC-32C, none "
         f"reported as written is missing; at most the last {worst_s:.2f} s are (sync every "
         f"{SYNC_S} s)")


main()
