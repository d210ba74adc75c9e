"""octctl recon resamples an old recording exactly and shapes its spectra, judged by numpy."""
import os

import h5py, numpy as np

from octctlrig import TMP, M, N, V, check, main, make_h5, octctl, refused

P1, P2 = 2048, 4096
WAVELENGTHS = np.linspace(800, 808, N) + 0.3 * np.linspace(-1, 1, N)**2
CONFIG = "[pipeline]\ncrop_last = 2048\ninterpolation = cubic\n[calibration]\ndispersion_a2 = 30\n"
FLOATS = ("--set", "output.sample=f32", "--set", "pipeline.log=no", "--set", "pipeline.backend=cpu")
NUFFT = ("--set", "pipeline.interpolation=nufft", "--set", "pipeline.crop_last=auto", *FLOATS)


def old_recording(with_background=False):
    """Made by an octd that knew neither nufft nor windows."""
    path, samples = make_h5("old.h5")
    with h5py.File(path, "a") as f:
        f.attrs["config"] = CONFIG
        f["calibration/wavelengths_nm"][...] = WAVELENGTHS
        if with_background:
            f["calibration/background"] = source()
    return path, samples.reshape(V, M, N).astype(float)


def source():
    return 100 + 1000 * np.exp(-np.linspace(-2, 2, N)**2)


def places():
    left = (P1 - N) // 2
    before = WAVELENGTHS[0] - left * (WAVELENGTHS[1] - WAVELENGTHS[0])
    behind = (P2 - 1) / 2 - left - (N - 1)
    after = WAVELENGTHS[-1] + behind * (WAVELENGTHS[-1] - WAVELENGTHS[-2])
    ends = np.array([before, after])
    k, (first, last) = 2 * np.pi / WAVELENGTHS, 2 * np.pi / ends
    return (k - first) / (last - first) * (P2 - 1)


def exact(samples, window):
    """|B| of contract section 6, of all B-scans."""
    q = places()
    t = 2 * q / (P2 - 1) - 1
    factor = np.gradient(q) * window * np.exp(-30j * t**2) / N
    turns = np.exp(-2j * np.pi * np.outer(q, np.arange(P2 // 4)) / P2)
    x = samples - samples.mean(axis=1, keepdims=True)
    return np.abs((x * factor) @ turns)


def differs(path, wanted):
    """The largest difference of amplitudes, of the largest."""
    with h5py.File(path) as f:
        got = np.sqrt(f["bscans"][...].astype(float))
    return np.abs(got - wanted).max() / wanted.max() if got.shape == wanted.shape else got.shape


def test_exact_resampling():
    path, samples = old_recording()
    out = os.path.join(TMP, "exact.h5")
    status, _, err = octctl("recon", path, out, *NUFFT)
    check(status == 0, "an old recording is reconstructed with nufft", err)
    off = differs(out, exact(samples, 1))
    check(off < 1e-4, "it is the exact sum, to -80 dB", off)
    with h5py.File(out) as f:
        text = f.attrs["config"]
        text = text.decode() if isinstance(text, bytes) else text
    check("\ninterpolation = nufft\n" in text and "\nnufft_accuracy_db = -80\n" in text
          and "\ndispersion_a2 = 30\n" in text, "the result says how it was made", text)
    refused("a recording's crop that nufft cannot have is refused", 2,
            "interpolation: pipeline.crop_last is 2048: with pipeline.interpolation=nufft",
            "recon", path, os.path.join(TMP, "no.h5"), "--set", "pipeline.interpolation=nufft")


def test_windows():
    path, samples = old_recording(with_background=True)
    q = places()
    t = 2 * (q - q[0]) / (q[-1] - q[0]) - 1
    i = np.arange(N)
    weights = np.exp(-0.5 * ((i[:, None] - i) * 64 / N)**2)
    smooth = weights @ source() / weights.sum(axis=1)
    light, hann = smooth * np.gradient(q), 0.5 + 0.5 * np.cos(np.pi * t)
    flat = smooth * smooth.max() / (smooth**2 + (0.05 * smooth.max())**2)
    out = os.path.join(TMP, "windowed.h5")
    status, _, err = octctl("recon", path, out, "--force", *NUFFT, "--set", "pipeline.window=hann")
    off = differs(out, exact(samples, hann * light.sum() / (light * hann).sum()))
    check(status == 0 and off < 1e-4, "a window is given to an old recording", f"{off} {err}")
    with h5py.File(out) as f:
        grid = 2 * np.arange(P2) / (P2 - 1) - 1
        phase = f["calibration/dispersion"][...]
        kept = np.abs(phase[:, 0] + 1j * phase[:, 1] - np.exp(-30j * grid**2)).max()
    check(kept < 1e-9, "the phase that is recorded has no window", kept)
    light_file = os.path.join(TMP, "light.txt")
    np.savetxt(light_file, source())
    status, _, err = octctl("recon", path, out, "--force", *NUFFT, "--set", "pipeline.window=hann",
                            "--set", "pipeline.flatten=yes",
                            "--set", f"calibration.background={light_file}")
    window = hann * flat
    off = differs(out, exact(samples, window * light.sum() / (light * window).sum()))
    check(status == 0 and off < 1e-4, "it is divided by the source too", f"{off} {err}")
    refused("a division without a source is refused", 2,
            "--set pipeline.window: calibration.background is missing: pipeline.window=flat",
            "recon", path, os.path.join(TMP, "no.h5"), "--set", "pipeline.window=flat")


main(test_exact_resampling, test_windows)
