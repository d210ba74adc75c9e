"""Recordings (HDF5 files, docs/recordings.md) as arrays that are read when they are used."""
from __future__ import annotations

import configparser
import os
from typing import Any, Iterator, Tuple

import numpy as np
from numpy.typing import NDArray

from . import _library, _recon
from ._errors import Error

AXES = ("bscan", "line", "depth")
LEAST_INTENSITY = 1e-12  # counts^2, as octd takes logarithms

_AXIS_KEYS = {"kmap", "wavelengths", "calibration.kmap", "calibration.wavelengths"}


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _runs(valid: NDArray[np.bool_], most: int) -> Iterator[tuple[int, int, bool]]:
    """(first, end, valid) of neighbouring rows that are alike, `most` at a time."""
    edges = [0, *(np.flatnonzero(np.diff(valid.astype(np.int8))) + 1).tolist(), len(valid)]
    for first, end in zip(edges[:-1], edges[1:]):
        for at in range(first, end, most):
            yield at, min(end, at + most), bool(valid[at])


def of_axes(key: Any) -> Tuple[Any, Any, Any]:
    """What an index says of each of three axes."""
    parts = list(key) if isinstance(key, tuple) else [key]
    if len([part for part in parts if part is not Ellipsis]) > 3 or \
            any(part is None for part in parts):
        raise IndexError("an index of three axes, and no new ones")
    at = next((i for i, part in enumerate(parts) if part is Ellipsis), len(parts))
    parts[at:at + 1] = [slice(None)] * (4 - len(parts) if at < len(parts) else 3 - len(parts))
    rows, lines, rest = parts
    return rows, lines, rest


class _Packed:
    """/spectra_packed as the u16 [V][M][N] that it holds: reads and unpacks what is indexed."""

    dtype = np.dtype(np.uint16)
    ndim = 3

    def __init__(self, dataset: Any) -> None:
        self._dataset, self.attrs = dataset, dataset.attrs
        self._format = _text(dataset.attrs.get("sample_format", ""))
        if self._format not in ("u8", "mono12p"):
            raise Error(f"{dataset.file.filename}: spectra_packed: sample_format {self._format!r} is "
                        "not known", "format")
        self.shape = (*dataset.shape[:2], int(dataset.attrs["samples"]))

    def __len__(self) -> int:
        return int(self.shape[0])

    def __array__(self, dtype: Any = None, copy: Any = None) -> NDArray[Any]:
        return np.asarray(self[:], dtype)

    def __getitem__(self, key: Any) -> Any:
        rows, within, samples = of_axes(key)
        lines = self._dataset[rows, within].astype(np.uint16)
        if self._format == "mono12p":
            packed = lines
            lines = np.empty((*packed.shape[:-1], self.shape[2]), np.uint16)
            lines[..., 0::2] = packed[..., 0::3] | (packed[..., 1::3] & 15) << 8
            lines[..., 1::2] = packed[..., 1::3] >> 4 | packed[..., 2::3] << 4
        return lines[..., samples]


class Recording:
    """An HDF5 file that octd or octctl wrote, open for reading; `octd.open` makes one.

    Arrays are h5py datasets, which read what is indexed: `recording.bscans[10]` reads one B-scan.
    Use it in a `with` statement, or call `close`.

    path : as it was opened
    file : the h5py.File, for what is not here
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        try:
            import h5py
        except ImportError:
            raise Error("reading recordings needs h5py (apt install python3-h5py, or pip install "
                        "h5py)", "state") from None

        self.path = os.fsdecode(_library.text(path, "path"))
        try:
            self.file: Any = h5py.File(self.path, "r")
        except OSError as why:
            said = os.strerror(why.errno) if why.errno else str(why)
            raise Error(f"{self.path}: cannot be opened as a recording: {said}", "io") from None
        if self.bscans is None and self.spectra is None:
            self.file.close()
            raise Error(f"{self.path}: holds neither /bscans nor /spectra: it is no recording",
                        "format")

    # ---- arrays ----

    def _dataset(self, name: str) -> Any:
        found = self.file.get(name)
        return found if hasattr(found, "shape") else None

    @property
    def bscans(self) -> Any:
        """Pictures, u8 or f32 [V][M][D] (h5py dataset), or None."""
        return self._dataset("bscans")

    @property
    def complex(self) -> Any:
        """Complex values before the square, complex64 [V][M][D] in counts (h5py dataset; `octctl
        recon --complex`), or None."""
        return self._dataset("complex")

    @property
    def spectra(self) -> Any:
        """The camera's samples, u16 [V][M][N] (h5py dataset, or of what was recorded as it was sent,
        record.spectra=as_sent, what is indexed like one), or None."""
        packed = self._dataset("spectra_packed")
        return _Packed(packed) if packed is not None else self._dataset("spectra")

    @property
    def _main(self) -> Any:
        return self.bscans if self.bscans is not None else self.spectra

    def __len__(self) -> int:
        """V, rows for B-scans, whether they came or not."""
        return int(self._main.shape[0])

    @property
    def valid(self) -> NDArray[np.bool_]:
        """[V]: everything of this row is in the file. Files of other programs: all are."""
        flags = self._dataset("frames/valid")
        return np.ones(len(self), bool) if flags is None else flags[:] == 1

    @property
    def line_valid(self) -> NDArray[np.bool_]:
        """[V][M]: this A-line came."""
        flags = self._dataset("frames/line_valid")
        if flags is None:
            return np.repeat(self.valid[:, None], self._main.shape[1], axis=1)
        return np.asarray(flags[:] == 1)

    @property
    def time_ns(self) -> NDArray[np.uint64] | None:
        """[V]: the camera's clock at the first block of each B-scan, or None."""
        times = self._dataset("frames/time_ns")
        return None if times is None else times[:]

    @property
    def limits(self) -> NDArray[np.float64]:
        """[V][2]: what grey 0 and 255 stand for, dB, or counts^2 if not `is_log`."""
        lo, hi = self._dataset("frames/lo"), self._dataset("frames/hi")
        if lo is None or hi is None:
            raise Error(f"{self.path}: has no limits of pictures (frames/lo, frames/hi)", "format")
        return np.stack([lo[:], hi[:]], axis=1)

    @property
    def calibration(self) -> dict[str, NDArray[np.float64]]:
        """What of wavelengths_nm, kmap_px, dispersion [P2][2] and background is in the file."""
        group = self.file.get("calibration")
        return {} if group is None else {name: group[name][:] for name in group}

    @property
    def analysis(self) -> dict[str, Any]:
        """Results of analyses by name (h5py datasets; their attributes describe them)."""
        group = self.file.get("analysis")
        return {} if group is None else {name: data for name, data in group.items()
                                         if "quantity" in data.attrs}

    # ---- what it says of itself ----

    def attribute(self, name: str) -> str:
        """An attribute of the file as text, such as eye, pseudonym, start_time, engine; "" if there
        is none."""
        value = self.file.attrs.get(name)
        return "" if value is None else _text(value)

    @property
    def config(self) -> str:
        """The configuration by which it was made, INI text; "" if there is none."""
        return self.attribute("config")

    def key(self, name: str) -> str:
        """The value of a key, "pipeline.log", in that configuration; "" if it has none."""
        parser = configparser.RawConfigParser(strict=False, inline_comment_prefixes=(";",))
        parser.read_string(self.config)
        section, _, key = name.partition(".")
        return parser.get(section, key, fallback="")

    @property
    def is_log(self) -> bool:
        """Whether pictures are dB rather than counts^2."""
        units = self.bscans.attrs.get("units") if self.bscans is not None else None
        if units is not None:
            return _text(units) == "dB"
        return self.key("pipeline.log") != "no"

    @property
    def spacing_um(self) -> Tuple[float, float, float]:
        """Micrometres from B-scan to B-scan, from A-line to A-line and from depth pixel to depth
        pixel (in tissue); NaN: the file does not know."""
        main = self._main
        found = main.attrs.get("axis_spacing_um", self.file.attrs.get("axis_spacing_um"))
        values = [float("nan")] * 3 if found is None else [float(value) for value in found]
        if self.bscans is None:  # samples have no length
            values[2] = float("nan")
        return values[0], values[1], values[2]

    @property
    def axes_um(self) -> dict[str, NDArray[np.float64]]:
        """Coordinates in um of B-scans [V], A-lines [M] and depths [D], from 0 (depth: from zero
        delay, as far as the file knows what was cut off); NaN where a spacing is not known. B-scans
        of scan.repeats share a place, A-lines of scan.line_repeats a point."""
        shape = self._main.shape
        first = 0 if self.bscans is None else int(self.bscans.attrs.get("first_depth_px", 0))
        begin = (0, 0, first)
        axes = {name: (begin[i] + np.arange(shape[i], dtype=np.float64)) * self.spacing_um[i]
                for i, name in enumerate(AXES)}
        for i, name in enumerate(("bscan", "line")):
            places = self.file.get(name + "_um")
            if places is not None and places.shape == (shape[i],):
                axes[name] = places[:].astype(np.float64)
        return axes

    # ---- where A-lines lie ----

    @property
    def pattern(self) -> str:
        """The way of the scan, "raster", "circle", ... (docs/scan.md); "" if the file does not
        say."""
        group = self.file.get("scan")
        return "" if group is None else _text(group.attrs.get("pattern", ""))

    @property
    def x_um(self) -> Any:
        """Where A-lines of the pictures lie, f32 [V][M] in um (h5py dataset), origin in the middle
        of the scan's field; None: the file does not say."""
        return self._dataset("scan/x_um")

    @property
    def y_um(self) -> Any:
        """As x_um."""
        return self._dataset("scan/y_um")

    # ---- pictures ----

    def db(self, rows: Any = slice(None), lines: Any = slice(None),
           depths: Any = slice(None)) -> NDArray[np.float32]:
        """Pictures in dB, f32 [rows][lines][depths], each as an index of its axis, all by default;
        a list of numbers, and the step of a slice, must rise.
        A row that is not valid is NaN. u8 pictures stay cut off at their limits."""
        if self.bscans is None:
            raise Error(f"{self.path}: holds spectra and no pictures: reconstruct them (recon)",
                        "state")
        valid = self.valid[rows]
        pictures = np.asarray(self.bscans[rows, lines, depths])
        values = pictures.astype(np.float32)
        if pictures.dtype == np.uint8:
            limits = self.limits[rows].astype(np.float32)
            of_row = (..., *[None] * (pictures.ndim - np.ndim(valid)))
            lo, hi = limits[..., 0][of_row], limits[..., 1][of_row]
            values *= (hi - lo) / np.float32(255)
            values += lo
        if not self.is_log:
            values = np.asarray(10 * np.log10(np.maximum(values, np.float32(LEAST_INTENSITY))))
        if not np.all(valid):
            values[np.logical_not(valid)] = np.nan
        return np.asarray(values, np.float32)

    def to_xarray(self, rows: Any = slice(None)) -> Any:
        """xarray.DataArray of `db(rows)`, dimensions bscan, line, depth, coordinates in um where
        the spacing is known. `rows` is a slice. Needs xarray."""
        try:
            import xarray
        except ImportError:
            raise Error("to_xarray needs xarray (apt install python3-xarray, or pip)",
                        "state") from None
        coordinates = {}
        for name, values in self.axes_um.items():
            values = values[rows] if name == "bscan" else values
            if not np.any(np.isnan(values)):
                coordinates[name] = (name, values, {"units": "um"})
        attributes = {"units": "dB", "source": self.path}
        attributes.update({name: self.attribute(name)
                           for name in ("eye", "pseudonym", "start_time", "software")})
        return xarray.DataArray(self.db(rows), dims=AXES, coords=coordinates, name="intensity",
                                attrs=attributes)

    # ---- spectra ----

    def reconstructor(self, **given: Any) -> _recon.Reconstructor:
        """An octd.Reconstructor with this recording's configuration and calibration; what is given
        (as to Reconstructor) wins, as on octctl's command line."""
        names = {name if name in ("kmap", "wavelengths", "dispersion", "background")
                 else _recon.key_name(name) for name in given}
        arrays = self.calibration
        arguments: dict[str, Any] = {}
        if not names & _AXIS_KEYS:
            for name, dataset in (("wavelengths", "wavelengths_nm"), ("kmap", "kmap_px")):
                if dataset in arrays:
                    arguments[name] = arrays[dataset]
        elif not names & {"kmap", "wavelengths"}:
            arguments.update({"calibration.kmap": "", "calibration.wavelengths": ""})
        phase_is_new = "dispersion" in names or any(
            name.startswith("calibration.dispersion") for name in names)
        # A phase of coefficients is computed again, to the last bit as before.
        if "dispersion" in arrays and not phase_is_new and (
                not self.config or self.key("calibration.dispersion")):
            arguments["dispersion"] = arrays["dispersion"]
        if "background" in arrays and not names & {"background", "calibration.background"}:
            arguments["background"] = arrays["background"]
        arguments.update(given)
        return _recon.Reconstructor(config=self.config + "\n", **arguments)

    def recon(self, out: NDArray[Any] | None = None, limits: NDArray[np.float64] | None = None,
              **given: Any) -> NDArray[Any]:
        """Reconstructs the spectra again, as `octctl recon` does: [V][M][D], rows that are not
        valid are 0. Reads the file in parts. `given` as for `reconstructor`; `out` as for
        calling it; limits f64 [V][2]."""
        if self.spectra is None:
            raise Error(f"{self.path}: holds pictures but no spectra: there is nothing to "
                        "reconstruct", "state")
        n, n_lines, n_samples = self.spectra.shape
        step = max(1, (64 << 20) // (n_lines * n_samples * 2))
        line_valid = self.line_valid
        with self.reconstructor(**given) as engine:
            depth, dtype = engine.start(n_lines, n_samples)
            if out is None:
                out = np.zeros((n, n_lines, depth), dtype)
            engine.begin(n)
            self._place(engine)
            for first, end, valid in _runs(self.valid, step):
                if not valid:
                    out[first:end] = 0
                    engine.skip(end - first)
                    continue
                engine.more(self.spectra[first:end], line_valid=line_valid[first:end],
                            out=out[first:end],
                            limits=None if limits is None else limits[first:end])
        return out

    def _place(self, engine: _recon.Reconstructor) -> None:
        """Says which B-scans of the scan's volumes these are, where the file has others."""
        numbers, rows = self._dataset("frames/number"), np.flatnonzero(self.valid)
        text = self.key("scan.bscans")
        bscans = int(text) if text.isdigit() else 0
        if bscans in (0, len(self)) or numbers is None or len(rows) == 0:
            return
        first = int(numbers[rows[0]]) - int(rows[0])
        engine.scan(bscans, max(first, 0))

    def close(self) -> None:
        """Closes the file; its datasets are no longer readable."""
        self.file.close()

    def __enter__(self) -> Recording:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        if not self.file:
            return f"<octd.Recording {self.path!r}, closed>"
        parts = [f"{name} {data.dtype} {list(data.shape)}"
                 for name, data in (("bscans", self.bscans), ("spectra", self.spectra))
                 if data is not None]
        return f"<octd.Recording {self.path!r}: {', '.join(parts)}>"


def open(path: str | os.PathLike[str]) -> Recording:  # noqa: A001
    """Opens a recording: `with octd.open("volume.h5") as recording: ...`. Raises Error if it is no
    such file."""
    return Recording(path)
