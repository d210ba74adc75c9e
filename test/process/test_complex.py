#!/usr/bin/python3
"""Complex values: octctl recon --complex, against its pictures and an independent reference."""
import glob, shutil
import h5py, numpy as np
from octtest import *

N, M, V = 400, 24, 12
SIZE = settings(camera=dict(samples=N), scan=dict(lines=M, bscans=V))


def made(name, *arguments, size=SIZE):
    path = os.path.join(folder("complex"), name)
    if os.path.exists(path):
        os.remove(path)
    ok("synth", path, *size, *arguments)
    return path


def with_losses(path):
    """Rows that never came, and a line."""
    with h5py.File(path, "a") as file:
        file["frames/valid"][4:6] = 0
        file["frames/line_valid"][9, 3] = 0
        file["frames/missing_lines"][9] = 1


def recon(path, name, *arguments):
    out = os.path.join(folder("complex"), name)
    ok("recon", path, out, "--force", "--backend", "cpu", *arguments)
    return out


@case
def beside_the_pictures():
    """/complex is complex64 beside /bscans, whose intensity it has; pictures are as without it"""
    path = made("scene.h5")
    with_losses(path)
    for interpolation in ("nufft", "linear", "cubic"):
        keys = settings(pipeline=dict(interpolation=interpolation, crop_first=7, crop_last=200),
                        output=dict(sample="f32"))
        with h5py.File(recon(path, "with.h5", "--complex", *keys)) as file, \
                h5py.File(recon(path, "without.h5", *keys)) as plain:
            z, pictures = file["complex"], file["bscans"][:]
            assert "complex" not in plain and np.array_equal(pictures, plain["bscans"][:])
            assert z.dtype == np.complex64 and z.shape == (V, M, 193) and z.chunks is None
            assert z.attrs["units"] == "counts" and z.attrs["first_depth_px"] == 7
            assert list(z.attrs["axis_names"]) == ["bscan", "line", "depth"]
            assert z.dims[2][0].name == "/depth_um", z.dims[2]
            z, valid = z[:], file["frames/valid"][:].astype(bool)
            assert not valid[4:6].any() and not z[4:6].any() and valid.sum() == V - 2
            assert np.isnan(z[9, 3]).all() and np.isnan(z[valid]).sum() == z.shape[2]
            z[9, 3], valid[9] = 0, True
            db = 10 * np.log10(np.maximum(np.abs(z[valid].astype(complex)) ** 2, 1e-12))
            assert np.abs(db - pictures[valid]).max() < 1e-3, interpolation
    said, _ = ok("check", os.path.join(folder("complex"), "with.h5"))
    assert f"{V - 2} of {V} B-scans written" in said, said


@case
def one_after_the_other():
    """many recordings at a time, one thread or two, and packed: the same values"""
    paths = [made(f"eye{i}.h5", "--seed", str(i)) for i in range(3)]
    out = os.path.join(folder("complex"), "out")
    shutil.rmtree(out, ignore_errors=True)
    ok("recon", *paths, "--out-dir", out, "--complex", "--jobs", "1", "--backend", "cpu")
    for path in paths:
        alone = recon(path, "alone.h5", "--complex", "--set", "pipeline.threads=1")
        there = os.path.join(out, os.path.basename(path))
        packed = os.path.join(folder("complex"), "packed.h5")
        ok("pack", there, packed, "--force")
        with h5py.File(alone) as a, h5py.File(there) as b, h5py.File(packed) as c:
            assert a["complex"][:].any() and a["complex"].dtype == c["complex"].dtype
            assert a["complex"][:].tobytes() == b["complex"][:].tobytes()
            assert a["complex"][:].tobytes() == c["complex"][:].tobytes()


@case
def as_the_key_says():
    """output.sample=c64: recon writes what --complex writes, beside pictures of u8"""
    path = made("key.h5")
    with h5py.File(recon(path, "key-c64.h5", "--set", "output.sample=c64")) as a, \
            h5py.File(recon(path, "key-option.h5", "--complex")) as b:
        assert a["bscans"].dtype == np.uint8 and np.array_equal(a["bscans"][:], b["bscans"][:])
        assert a["complex"].dtype == np.complex64
        assert a["complex"][:].tobytes() == b["complex"][:].tobytes()


def complex_bytes(daemon):
    return daemon.status()["complex"]["bytes"]


def ended(status):
    return not status["record"]["active"]


@case
def recorded_by_octd():
    """c64: files of octd have what recon makes of their spectra; nobody makes it else"""
    v, m, n = 10, 20, 832
    base = (*settings(scan=dict(lines=m, bscans=v, line_rate_hz=2000), output=dict(sample="c64"),
                      pipeline=dict(crop_last=128, dc="bscan", backend="cpu"),
                      calibration=dict(wavelengths=calibration(n))),)
    lines = os.path.join(folder("complex"), "lines.raw")
    np.random.default_rng(1).integers(100, 4000, (2 * v * m, n)).astype("<u2").tofile(lines)
    with Daemon(*base, *settings(record=dict(volumes=2))) as daemon, \
            Replay(daemon, lines, 2000, *base):
        daemon.wait(lambda s: s["bscans_done"] > v)
        assert complex_bytes(daemon) == 0
        assert daemon.ask("record", action="start")["ok"]
        status = daemon.wait(ended)
        assert status["record_account"]["written"] == 2 * v and not status["last_error"], status
        before, done = complex_bytes(daemon), daemon.status()["bscans_done"]
        daemon.wait(lambda s: s["bscans_done"] > done + 2 * v)
        assert complex_bytes(daemon) <= before + 8 * m * 128 * 8  # what was in flight
        names = sorted(glob.glob(daemon.records + "/*.h5"))
        assert len(names) == 2, names
        for name in names:
            like_recon(name, v)
        assert daemon.ask("set", key="record.bscans", value="no")["ok"]
        assert daemon.ask("record", action="start")["ok"]
        daemon.wait(ended)
        rest = sorted(set(glob.glob(daemon.records + "/*.h5")) - set(names))
        for name in rest:
            with h5py.File(name) as file:
                assert "complex" not in file and file["frames/valid"][:].all()
        assert len(rest) == 2, rest
    with Daemon(*base, *settings(record=dict(last_s=0.5))) as daemon, \
            Replay(daemon, lines, 2000, *base):
        daemon.wait(lambda s: s["record_last"]["bscans"] == 50)
        last = daemon.ask("record", action="last")
        assert last["ok"], last
        daemon.wait(lambda s: not s["record_last"]["saving"])
        like_recon(last["file"], 50)


def like_recon(name, n):
    """its complex values are those of its spectra"""
    ok("check", name)
    with h5py.File(name) as got, h5py.File(recon(name, "again.h5")) as made_again:
        assert got["frames/valid"][:].all() and len(got["complex"]) == n
        assert got["complex"].dtype == np.complex64 and np.abs(got["complex"][-1]).max() > 1
        assert got["complex"][:].tobytes() == made_again["complex"][:].tobytes()
        assert got["complex"].attrs["units"] == "counts"


@case
def killed():
    """killed with -9 while it writes: every B-scan that counts as written has its values"""
    n = 6000
    size = settings(camera=dict(samples=N), scan=dict(lines=4, bscans=n),
                    pipeline=dict(crop_last=60))  # no whole rows a block
    path = made("long.h5", size=size)
    whole = recon(path, "whole.h5", "--complex")
    at = os.path.join(folder("complex"), "cut.h5")
    parts = lambda: glob.glob(os.path.join(folder("complex"), "*cut*.part"))
    for part in parts():
        os.remove(part)
    process = subprocess.Popen([program("octctl"), "recon", path, at, "--force", "--complex",
                                "--backend", "cpu", "--quiet"])
    written = 0

    def some():
        nonlocal written
        for part in parts():
            try:
                with h5py.File(part, locking=False) as file:
                    written = int(file["frames/valid"][:].sum())
            except OSError:
                pass
        return written > 0 or process.poll() is not None
    until(some, "rows that count")
    process.kill()
    process.wait()
    if not parts():
        raise Skip("it was done before it could be killed")
    part, = parts()
    with h5py.File(part, locking=False) as file, h5py.File(whole) as other:
        valid = file["frames/valid"][:].astype(bool)
        seen(f"{valid.sum()} of {n} B-scans were in the file")
        assert valid.any() and valid.sum() < n
        rows = np.flatnonzero(valid)
        for row in (*rows[::37], *rows[-40:]):
            assert file["complex"][row].tobytes() == other["complex"][row].tobytes(), row


@case
def reference():
    """an independent reference's B of three phantoms: within -80 dB, phases within 1e-3 rad"""
    folders = sorted(glob.glob(os.path.join(DATA, "flow", "*", "")))
    if not folders:
        raise Skip("no flow phantoms beside the checkout")
    for place in folders:
        truth = np.load(place + "truth.npz")
        b, first = truth["B"].astype(complex), int(truth["crop_first"])
        out = recon(place + "spectra.raw", "flow.h5", "--complex", *settings(
            camera=dict(samples=832), scan=dict(lines=b.shape[1], bscans=len(b)),
            calibration=dict(wavelengths=place + "wavelengths.txt"),
            pipeline=dict(crop_first=first, crop_last=first + b.shape[2])))
        with h5py.File(out) as file:
            z = file["complex"][:].astype(complex)
        off_db = 20 * np.log10(np.abs(z - b).max() / np.abs(b).max())
        bright = np.minimum(np.abs(b[1:]), np.abs(b[:-1])) ** 2 > 100 * float(truth["n0"])
        pair, wanted = z[1:] * z[:-1].conj(), b[1:] * b[:-1].conj()
        turn = np.abs(np.angle(pair * wanted.conj()))[bright].max()
        print(f"# {os.path.basename(place[:-1])}: {off_db:.0f} dB of the largest, {bright.sum()} "
              f"pairs at 20 dB within {turn:.1e} rad")
        assert off_db < -80 and bright.sum() > 100 and turn < 1e-3


main()
