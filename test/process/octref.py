"""Contract section 1 in double precision with numpy (its FFT, not ours), for the Python tests.
The judge of the engines is test/rig/oracle.c; this one judges whole programs."""
import numpy as np


def axis_of(values, n_samples, p1, left):
    """lambda at every upsampled position (contract step 4)."""
    p2 = 2 * p1
    values = np.asarray(values, float)
    if len(values) == p2:
        return values
    c = np.arange(p2) * p1 / p2 - left
    i = np.clip(np.floor(c).astype(int), 0, n_samples - 2)
    return values[i] + (values[i + 1] - values[i]) * (c - i)


def intensity(spectra, wavelengths, valid=None, a2=0.0, a3=0.0, phase=None, crop=None, dc=True):
    """spectra u16 [M][N] -> I [M][D]. valid: bool [M], lines that came."""
    m, n = spectra.shape
    valid = np.ones(m, bool) if valid is None else np.asarray(valid, bool)
    x = spectra.astype(float)
    if dc:
        x = x - x[valid].mean(axis=0)
    x[~valid] = 0
    p1 = 2048
    while p1 < n:
        p1 *= 2
    p2, left = 2 * p1, (p1 - n) // 2
    padded = np.zeros((m, p1))
    padded[:, left:left + n] = x
    spectrum = np.fft.rfft(padded)
    spectrum[:, -1] /= 2
    longer = np.zeros((m, p2 // 2 + 1), complex)
    longer[:, :p1 // 2 + 1] = spectrum
    u = np.fft.irfft(longer, p2) * (p2 / p1)
    lam = axis_of(wavelengths, n, p1, left)
    k = np.linspace(2 * np.pi / lam[0], 2 * np.pi / lam[-1], p2)
    at = 2 * np.pi / k
    rising = lam[1] > lam[0]
    position = np.interp(at if rising else -at, lam if rising else -lam, np.arange(p2))
    l = np.clip(np.floor(position).astype(int), 0, p2 - 2)
    w = (at - lam[l]) / (lam[l + 1] - lam[l])
    v = u[:, l] * (1 - w) + u[:, l + 1] * w
    t = 2 * np.arange(p2) / (p2 - 1) - 1
    v = v * (np.exp(-1j * (a2 * t**2 + a3 * t**3)) if phase is None else phase)
    b = np.fft.fft(v) / n
    first, last = crop or (0, p2 // 2)
    return np.abs(b[:, first:last])**2


def decibel(value):
    return 10 * np.log10(np.maximum(value, 1e-12))
