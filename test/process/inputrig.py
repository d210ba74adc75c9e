"""What the tests of other programs' recordings share: spectra with fringes, a reconstruction of a
file, the same of plain samples with the calibration given by hand, and files that must be refused."""
import configparser, os, shutil

import h5py, numpy as np

from octtest import folder, ok, run

V, M, N = 5, 12, 96
CHAIN = ("--set", "output.sample=f32", "--set", "pipeline.interpolation=linear")


def fringes(bits=12, shape=(V, M, N), seed=3):
    """Camera counts [V][M][N]: a source, reflectors at depths that change from line to line, noise."""
    rng = np.random.default_rng(seed)
    v, m, n = (axis.astype(float) for axis in np.indices(shape))
    source = np.exp(-(((n - shape[2] / 2) / (shape[2] / 3)) ** 2))
    wave = sum(a * np.cos(2 * np.pi * f * n / shape[2] + m * v) for a, f in ((.3, 9), (.1, 23)))
    counts = source * (1 + wave) * 2 ** (bits - 2) + rng.normal(0, 3, shape) + 2 ** (bits - 4)
    return np.clip(np.rint(counts), 0, 2 ** bits - 1).astype("u2")


def mirror(k, z):
    """Spectra of a mirror at the optical path z (um); k (rad/um) of the N samples. Its phase turns
    from line to line, or the mean of all of them would take it away."""
    turn = np.linspace(0, 2 * np.pi, M, endpoint=False)[:, None]
    line = 2000 + 800 * np.hanning(N) * np.cos(2 * k * z + turn)
    return np.rint(np.broadcast_to(line, (V, M, N))).astype("u2")


def seen_depth(path, *keys):
    """Where its brightest pixel lies by the spacing that the output states, and that of a pixel: um of
    optical path."""
    recon(path, *keys)
    with h5py.File(path + ".out.h5") as file:
        um = file["bscans"].attrs["axis_spacing_um"][2] * file.attrs["refractive_index"]
        profile = file["bscans"][...].mean((0, 1))
    return um * (8 + int(np.argmax(profile[8:]))), um


def write(path, data):
    with open(path, "wb") as file:
        file.write(data if isinstance(data, bytes) else data.encode())
    return path


def clean(name):
    path = folder(name)
    shutil.rmtree(path)
    os.makedirs(path)
    return path


def recon(path, *more):
    """The pictures [V][M][D] in dB."""
    out = path + ".out.h5"
    ok("recon", path, out, "--force", *CHAIN, *more)
    with h5py.File(out) as file:
        assert file["bscans"].attrs["units"] in ("dB", b"dB")
        return file["bscans"][:]


def settings_of(path):
    """The configuration that the last reconstruction of a file was made with, "section.key"."""
    with h5py.File(path + ".out.h5") as file:
        text = file.attrs["config"]
    ini = configparser.ConfigParser(interpolation=None)
    ini.read_string(text if isinstance(text, str) else text.decode())
    return {f"{section}.{key}": value for section in ini.sections()
            for key, value in ini[section].items()}


def recon_plain(place, spectra, *more):
    """The same of plain samples, whose geometry is given."""
    path = write(os.path.join(place, "plain.samples"), spectra.astype("<u2").tobytes())
    v, m, n = spectra.shape
    return recon(path, "--set", f"camera.samples={n}", "--set", f"scan.lines={m}",
                 "--set", f"scan.bscans={v}", *more)


def table(place, name, values):
    """A calibration's text file."""
    return write(os.path.join(place, name), "".join(f"{x!r}\n" for x in map(float, values)))


def assert_alike(got, wanted, db=1e-3):
    assert got.shape == wanted.shape, (got.shape, wanted.shape)
    seen = wanted > wanted.max() - 60
    worst = np.abs(got - wanted)[seen].max()
    assert worst < db, f"{worst} dB apart"
    assert np.ptp(wanted) > 20, "a picture of nothing"


def refuse(path, words, *more, commands=("info", "recon")):
    """octctl info and recon say in one line what is wrong, and end well."""
    out = path + ".refused.h5"
    for command in commands:
        to = [out, "--force", *CHAIN] if command == "recon" else []
        status, said, err = run("octctl", command, path, *to, *more)
        assert status in (1, 2) and err.count("\n") == 1, (command, path, status, said, err)
        assert not os.path.exists(out), (command, path)
        assert any(word in err for word in ([words] if isinstance(words, str) else words)), (words, err)
