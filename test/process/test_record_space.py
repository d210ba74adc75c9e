#!/usr/bin/python3
"""What a recording that ends before its volume takes of the disk, however it ends."""
import glob
import h5py
import numpy as np
from octtest import *

N, M, V = 832, 20, 2000  # 66 MB of spectra
RATE = 20000  # a volume lasts 2 s
BASE = settings(scan=dict(lines=M, bscans=V, line_rate_hz=RATE), pipeline=dict(crop_last=128),
                calibration=dict(wavelengths=calibration(N)), record=dict(sync_interval_s=0.05),
                analysis=dict(run="quality"))


def lines():
    path = os.path.join(folder("recordings"), "lines.raw")
    np.random.default_rng(1).integers(100, 4000, (20 * M, N)).astype("<u2").tofile(path)
    return path


PATH = lines()


def record_until(end):
    """Records a part of a volume and ends as `end` says; the file, its share of the disk, that of
    its rows that came. On a slow machine the volume may be nearly over by then: then again."""
    for _ in range(10):
        with Daemon(*BASE) as daemon:
            with Replay(daemon, PATH, RATE, *BASE):
                assert run("octctl", "record", "start", *daemon.common)[0] == 0
                daemon.wait(lambda s: s["record_account"]["written"] % V > 20)
                end(daemon)
            name = max(glob.glob(glob.escape(daemon.records) + "/*"))
            size = os.stat(name)
            with h5py.File(name) as f:
                valid = f["frames/valid"][:] == 1
                if not 20 < valid.sum() < 0.9 * V:
                    continue
                spectra = f["spectra"][:]
                assert spectra.shape == (V, M, N)
                if name.endswith(".h5"):  # what comes to the disk before it is synced is not valid
                    assert not spectra[valid.nonzero()[0][-1] + 2:].any()
                assert spectra[valid].any(axis=(1, 2)).all()
            assert run("octctl", "check", name)[0] == 0
            return name, size.st_blocks * 512 / size.st_size, valid.sum() / V
    raise AssertionError("no recording ended within its volume")


def can_punch():
    return subprocess.run(["fallocate", "-p", "-l", "4096", PATH + ".hole"],
                          stderr=subprocess.DEVNULL).returncode == 0


def expect_little(name, share, used):
    seen(f"{100 * used:.0f} % of the rows, {100 * share:.0f} % of the length on the disk")
    if not can_punch():
        raise Skip("this file system punches no holes")
    assert name.endswith(".h5") and share < used + 0.05, (name, share, used)


open(PATH + ".hole", "wb").write(bytes(8192))


@case
def record_stop():
    """record stop: what was not recorded goes back to the disk; check and h5py read the file"""
    expect_little(*record_until(lambda d: run("octctl", "record", "stop", *d.common)))


@case
def stop():
    """stop: likewise"""
    expect_little(*record_until(lambda d: run("octctl", "stop", *d.common)))


@case
def shutdown():
    """shutdown: likewise"""
    expect_little(*record_until(lambda d: run("octctl", "shutdown", *d.common)))


@case
def killed():
    """kill -9: the .part keeps its space and is right"""
    def kill(daemon):
        daemon.process.kill()
        daemon.process.wait()
    name, share, _ = record_until(kill)
    assert name.endswith(".part") and share > 0.99, (name, share)


main()
