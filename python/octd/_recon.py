"""Reconstruction of spectra in memory, with the engine of `octctl recon`."""
from __future__ import annotations

import ctypes
import os
from typing import Any, Sequence, Union

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _library
from ._errors import Error

Values = Union[ArrayLike, str, "os.PathLike[str]", None]
Key = Union[str, int, float, bool]

MOST_BYTES_A_CALL = 256 << 20  # of spectra; between two calls Python looks at Ctrl-C


def key_name(name: str) -> str:
    """pipeline_crop_last and pipeline.crop_last are the same: sections have no '_'."""
    return name if "." in name else name.replace("_", ".", 1)


def _key_value(value: Key) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "yes" if value else "no"
    if isinstance(value, (float, np.floating)):
        return repr(float(value))
    return str(value)


def _is_path(value: object) -> bool:
    return isinstance(value, (str, os.PathLike))


def _doubles(values: ArrayLike, name: str) -> NDArray[np.float64]:
    array = np.ascontiguousarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise Error(f"{name}: an array of one axis is needed, not {array.ndim}")
    return array


def _spectra(spectra: ArrayLike) -> NDArray[np.uint16]:
    """u16 in the machine's byte order, C-contiguous, aligned: copied only if it is not."""
    array = np.asarray(spectra)
    if array.dtype.kind != "u" or array.dtype.itemsize > 2:
        raise Error(f"spectra are {array.dtype}: the engine takes the camera's uint16 (or uint8) "
                    "samples; convert them by a rule of your own")
    if array.ndim not in (2, 3, 4):
        raise Error(f"spectra have {array.ndim} axes: [M][N], [B][M][N] or [volumes][B][M][N] "
                    "are needed (M A-lines of N samples)")
    return np.require(array, np.uint16, ["C_CONTIGUOUS", "ALIGNED"])


class Reconstructor:
    """An engine that reconstructs array after array; made once, it costs nothing more to start.

    Parameters
    ----------
    kmap : array [K] of camera pixels of equal steps in k (from 0), or the path of such a file.
    wavelengths : array [N] or [P2] in nm, or a path. Either this or `kmap`, or a `config` with one.
    dispersion : complex array [P2] of phase factors; floats [P2][2] (re, im); up to four numbers,
        which are a2 to a5 in radians (docs/reconstruction.md, step 5); or a path. P2 is twice N
        raised to a power of two, of at least 2048.
    background : array [N] in counts, or a path; for pipeline_dc="file" and for flatten.
    backend : "auto" (a GPU if one answers), "cpu" or "cuda".
    sample : "u8" or "f32" of the pictures; None: what `config` says, or u8.
    complex : the complex values before the square in place of pictures, complex64 in counts, NaN
        where an A-line is missing.
    config : path of an octd.ini, or its text (what holds a line end is text).
    **keys : any key of the configuration, pipeline_crop_last=512 or {"pipeline.crop_last": 512};
        they win over `config`.

    The number of A-lines and of samples comes from the first array; another shape builds the engine
    anew. An object belongs to one thread at a time (a second waits, with `close` too) and to the
    process that made it; different objects do not disturb one another.
    """

    def __init__(self, *, kmap: Values = None, wavelengths: Values = None,
                 dispersion: Values = None, background: Values = None,
                 backend: str | None = None, sample: str | None = None, complex: bool = False,
                 config: str | os.PathLike[str] | None = None, **keys: Key) -> None:
        pointer = _library.load().octd_recon_create()
        self._handle = _library.Handle("recon", pointer, "destroy", "reconstructor")
        self._shape: tuple[int, int] | None = None  # M, N that it was started for
        self._depth, self._axial_um = 0, float("nan")
        self._dtype: np.dtype[Any] = np.dtype(np.uint8)
        if not self._handle:
            raise Error("out of memory", "memory")
        try:
            if config is not None:
                self._load(config)
            self._calibrate(kmap, wavelengths, dispersion, background)
            if backend is not None:
                self.set("pipeline.backend", backend)
            if sample is not None:
                self.set("output.sample", sample)
            self._handle.call("complex", int(bool(complex)))
            for name, value in keys.items():
                self.set(name, value)
        except BaseException:
            self.close()
            raise

    # ---- configuration ----

    def _load(self, config: str | os.PathLike[str]) -> None:
        if isinstance(config, str) and "\n" in config:
            self._handle.do("load_text", config, "config")
        else:
            self._handle.do("load", config)

    def _give(self, name: str, values: NDArray[np.float64], n: int) -> None:
        with self._handle:
            self._handle.do(name, values.ctypes.data, n)
            self._shape = None

    def _calibrate(self, kmap: Values, wavelengths: Values, dispersion: Values,
                   background: Values) -> None:
        if kmap is not None and wavelengths is not None:
            raise Error("kmap and wavelengths are both given: keep one", "config")
        if kmap is not None or wavelengths is not None:
            self.set("calibration.kmap", "")
            self.set("calibration.wavelengths", "")
        for name, values in (("kmap", kmap), ("wavelengths", wavelengths),
                             ("background", background)):
            if values is None:
                continue
            if _is_path(values):
                self.set("calibration." + name, os.fspath(values))  # type: ignore[arg-type]
            else:
                array = _doubles(values, name)  # type: ignore[arg-type]
                self._give(name, array, len(array))
        if dispersion is not None:
            self.set_dispersion(dispersion)

    def set(self, key: str, value: Key) -> None:
        """Sets a key; the next reconstruction begins with it, with a new engine. The keys
        camera.samples and scan.lines follow the arrays and need not be set."""
        with self._handle:
            self._handle.do("set", key_name(key), _key_value(value))
            self._shape = None

    def get(self, key: str) -> str:
        """The value of a key, as the configuration writes it."""
        text = ctypes.create_string_buffer(4096)
        self._handle.do("get", key_name(key), text, len(text))
        return os.fsdecode(text.value)

    def set_dispersion(self, dispersion: Values) -> None:
        """Another dispersion in place of the one before, for the next reconstruction; as the
        parameter above."""
        if _is_path(dispersion):
            self._replace_dispersion(os.fspath(dispersion), [])  # type: ignore[arg-type]
            return
        array = np.asarray(dispersion)
        if array.ndim == 1 and array.dtype.kind in "iuf" and array.size <= 4:
            self._replace_dispersion("", [float(a) for a in array])
            return
        if array.ndim == 1 and array.dtype.kind == "c":
            array = np.stack([array.real, array.imag], axis=1)
        if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iuf":
            raise Error("dispersion: a complex array [P2], floats [P2][2] or up to four "
                        f"coefficients a2, a3, ... are needed, not {array.dtype} "
                        f"{list(array.shape)}")
        values = np.ascontiguousarray(array, dtype=np.float64)
        self._give("dispersion", values, len(values))

    def _replace_dispersion(self, path: str, coefficients: Sequence[float]) -> None:
        with self._handle:
            self._give("dispersion", np.empty(0), 0)
            self.set("calibration.dispersion", path)
            for order in range(2, 6):
                given = order - 2 < len(coefficients)
                self.set(f"calibration.dispersion_a{order}",
                         coefficients[order - 2] if given else 0.0)

    # ---- what it is ----

    @property
    def engine(self) -> str:
        """One line on the engine and why it was chosen; "" before the first reconstruction."""
        return str(self._handle.call("engine"))

    @property
    def axial_um(self) -> float:
        """Optical path of a depth pixel in air, um; NaN without wavelengths, or before the first
        reconstruction. In tissue divide by its refractive index."""
        return self._axial_um

    def start(self, n_lines: int, n_samples: int) -> tuple[int, np.dtype[Any]]:
        """Makes the engine for B-scans of M = n_lines A-lines of N = n_samples, unless it is there.
        Returns D and the dtype of the pictures. Reconstructing does this by itself."""
        with self._handle:
            if self._handle and self._shape == (n_lines, n_samples):
                return self._depth, self._dtype
            self.set("camera.samples", n_samples)
            self.set("scan.lines", n_lines)
            self._handle.do("start")
            depth, pixel_bytes = ctypes.c_uint32(), ctypes.c_uint32()
            axial_um = ctypes.c_double()
            self._handle.do("shape", None, None, ctypes.byref(depth), ctypes.byref(pixel_bytes),
                            ctypes.byref(axial_um))
            self._depth, self._axial_um = depth.value, axial_um.value
            self._dtype = np.dtype({1: "u1", 4: "f4", 8: "c8"}[pixel_bytes.value])
            self._shape = n_lines, n_samples
            return self._depth, self._dtype

    # ---- work ----

    def __call__(self, spectra: ArrayLike, *, line_valid: ArrayLike | None = None,
                 out: NDArray[Any] | None = None,
                 limits: NDArray[np.float64] | None = None) -> NDArray[Any]:
        """Reconstructs spectra as one recording, or of four axes as so many volumes.

        Parameters
        ----------
        spectra : uint16 [M][N], [B][M][N] or [volumes][B][M][N]. Read in place if it is
            C-contiguous and in the machine's byte order, else copied; uint8 is copied.
        line_valid : [M], [B][M] or [volumes][B][M]; 0: the A-line is missing.
        out : array for the pictures, C-contiguous, of their shape and dtype; None: a new one.
        limits : float64 [2], [B][2] or [volumes][B][2], C-contiguous; filled with what grey 0 and
            255 stand for: dB, or counts^2 with pipeline_log=False.

        Returns
        -------
        Pictures, uint8 or float32 (dB, or counts^2), or complex64, shaped as the spectra with D
        for N.
        """
        array = _spectra(spectra)
        with self._handle:
            self.start(array.shape[-2], array.shape[-1])
            self.begin(array.shape[1] if array.ndim == 4 else 0)
            return self.more(array, line_valid=line_valid, out=out, limits=limits)

    def begin(self, volume_bscans: int = 0) -> None:
        """What follows by `more` is a recording of its own: limits and the running mean start
        afresh. They also do behind every volume_bscans B-scans; 0: behind scan.bscans of them where
        that key is set, else never. After `start`."""
        self._handle.do("begin", volume_bscans)

    def scan(self, scan_bscans: int, first_bscan: int = 0) -> None:
        """After `begin`: its first B-scan is number first_bscan of the scan, of which a volume has
        scan_bscans. It says which B-scans of scan_pattern="raster-both" came from the other side,
        where a recording begins or ends within a volume; without it they count from `begin` on."""
        self._handle.do("scan", scan_bscans, first_bscan)

    def skip(self, n_bscans: int) -> None:
        """The next B-scans never came; those behind them keep their places."""
        self._handle.do("skip", n_bscans)

    def more(self, spectra: ArrayLike, *, line_valid: ArrayLike | None = None,
             out: NDArray[Any] | None = None,
             limits: NDArray[np.float64] | None = None) -> NDArray[Any]:
        """Reconstructs the next B-scans of a recording that is larger than memory, as if all had
        been given at once. After `start` and `begin`; arrays as for a call."""
        array = _spectra(spectra)
        lead, n_lines = array.shape[:-2], array.shape[-2]
        with self._handle:
            if self._shape != array.shape[-2:]:
                raise Error(f"spectra {list(array.shape)}: the engine was not started for "
                            f"B-scans of {n_lines} lines of {array.shape[-1]} samples", "state")
            pictures = self._out(out, (*lead, n_lines, self._depth), self._dtype, "out")
            if limits is not None:
                self._out(limits, (*lead, 2), np.dtype(np.float64), "limits")
            mask = None
            if line_valid is not None:
                mask = np.ascontiguousarray(np.asarray(line_valid) != 0, dtype=np.uint8)
                if mask.shape != array.shape[:-1]:
                    raise Error(f"line_valid is {list(mask.shape)}: the spectra have A-lines "
                                f"{list(array.shape[:-1])}")
            self._run(int(np.prod(lead, dtype=np.int64)), array, mask, pictures, limits)
            return pictures

    @staticmethod
    def _out(out: NDArray[Any] | None, shape: Sequence[int], dtype: np.dtype[Any],
             name: str) -> NDArray[Any]:
        if out is None:
            return np.empty(shape, dtype)
        if (out.shape != tuple(shape) or out.dtype != dtype or not out.flags.c_contiguous
                or not out.flags.writeable or not out.flags.aligned):
            raise Error(f"{name} is {out.dtype} {list(out.shape)}: {dtype} {list(shape)}, "
                        "C-contiguous and writeable, is needed")
        return out

    def _run(self, n: int, spectra: NDArray[np.uint16], mask: NDArray[np.uint8] | None,
             pictures: NDArray[Any], limits: NDArray[np.float64] | None) -> None:
        """In parts, one call each; ctypes lets other threads of Python run meanwhile."""
        if n == 0:
            return
        in_bytes, out_bytes = spectra.nbytes // n, pictures.nbytes // n
        mask_bytes = mask.nbytes // n if mask is not None else 0
        step = max(1, MOST_BYTES_A_CALL // in_bytes)
        for first in range(0, n, step):
            count = min(step, n - first)
            self._handle.do(
                "run", spectra.ctypes.data + first * in_bytes,
                mask.ctypes.data + first * mask_bytes if mask is not None else None, count,
                pictures.ctypes.data + first * out_bytes, count * out_bytes,
                limits.ctypes.data + first * 16 if limits is not None else None)

    def close(self) -> None:
        """Frees the engine; the garbage collector does it, too. Waits for what another thread
        computes with it."""
        self._handle.close()

    def __enter__(self) -> Reconstructor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self.close()


def recon(spectra: ArrayLike, *, kmap: Values = None, wavelengths: Values = None,
          dispersion: Values = None, background: Values = None, backend: str | None = None,
          sample: str | None = None, complex: bool = False,
          config: str | os.PathLike[str] | None = None, line_valid: ArrayLike | None = None,
          out: NDArray[Any] | None = None, limits: NDArray[np.float64] | None = None,
          **keys: Key) -> NDArray[Any]:
    """Reconstructs an array of spectra, as `octctl recon` does a file of them, to the byte.

    uint16 [B][M][N] (or [M][N], or [volumes][B][M][N]) in, uint8 or with sample="f32" float32 dB
    [B][M][D] out, or with complex=True complex64. A-lines lie in the order of places, as in
    recordings; where scan_phase or scan_trigger_delay_lines (or `config`) says that they lie
    unevenly, pictures are put onto the even grid. Parameters are those of Reconstructor and of
    calling it; use one of those for many arrays of one shape: it keeps the engine.

    >>> pictures = octd.recon(spectra, kmap=kmap, dispersion=[1.2, -0.4], sample="f32")
    """
    with Reconstructor(kmap=kmap, wavelengths=wavelengths, dispersion=dispersion,
                       background=background, backend=backend, sample=sample, complex=complex,
                       config=config, **keys) as engine:
        return engine(spectra, line_valid=line_valid, out=out, limits=limits)
