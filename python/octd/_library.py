"""liboctd.so: where it is, and its functions (octd/octd.h has their promises)."""
from __future__ import annotations

import ctypes
import functools
import os
from pathlib import Path
from typing import Iterator

from ._errors import Error, Timeout

NAME = "liboctd.so.0"
API_VERSION = 1  # the least that this package calls

OK, DROPPED, TIMEOUT, INTERRUPTED = 0, 8, 9, 10
KINDS = ("", "argument", "config", "format", "io", "memory", "backend", "state", "dropped",
         "timeout", "interrupted")


class CameraOptions(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("queue_messages", ctypes.c_uint32),
                ("linger_ms", ctypes.c_uint32), ("wait_ms", ctypes.c_uint32),
                ("drop_when_full", ctypes.c_int), ("crc", ctypes.c_int),
                ("client_key", ctypes.c_char_p), ("server_public", ctypes.c_char_p)]


class CameraCounters(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("messages_sent", ctypes.c_uint64),
                ("lines_sent", ctypes.c_uint64), ("messages_dropped", ctypes.c_uint64),
                ("lines_dropped", ctypes.c_uint64), ("lines_skipped", ctypes.c_uint64),
                ("messages_queued", ctypes.c_uint64), ("lines_queued", ctypes.c_uint64)]


_P, _S, _I = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int
_U32, _U64, _Z = ctypes.c_uint32, ctypes.c_uint64, ctypes.c_size_t

# name: (what it returns, its arguments)
_FUNCTIONS: dict[str, tuple[object, list[object]]] = {
    "octd_api_version": (ctypes.c_uint, []),
    "octd_version": (_S, []),
    "octd_recon_create": (_P, []),
    "octd_recon_destroy": (None, [_P]),
    "octd_recon_error": (_S, [_P]),
    "octd_recon_set": (_I, [_P, _S, _S]),
    "octd_recon_load": (_I, [_P, _S]),
    "octd_recon_load_text": (_I, [_P, _S, _S]),
    "octd_recon_get": (_I, [_P, _S, _P, _Z]),
    "octd_recon_wavelengths": (_I, [_P, _P, _Z]),
    "octd_recon_kmap": (_I, [_P, _P, _Z]),
    "octd_recon_dispersion": (_I, [_P, _P, _Z]),
    "octd_recon_background": (_I, [_P, _P, _Z]),
    "octd_recon_start": (_I, [_P]),
    "octd_recon_engine": (_S, [_P]),
    "octd_recon_shape": (_I, [_P] + [ctypes.POINTER(_U32)] * 4 + [ctypes.POINTER(ctypes.c_double)]),
    "octd_recon_begin": (_I, [_P, _U32]),
    "octd_recon_skip": (_I, [_P, _U64]),
    "octd_recon_run": (_I, [_P, _P, _P, _U64, _P, _Z, _P]),
    "octd_camera_connect": (_I, [ctypes.POINTER(_P), _S, _U32, ctypes.POINTER(CameraOptions),
                                 ctypes.c_char_p, _Z]),
    "octd_camera_wait_connected": (_I, [_P, _U32]),
    "octd_camera_start": (None, [_P]),
    "octd_camera_skip": (None, [_P, _U64]),
    "octd_camera_next_line": (_U64, [_P]),
    "octd_camera_send": (_I, [_P, _P, _U32, _U64]),
    "octd_camera_borrow": (_I, [_P, _U32, ctypes.POINTER(_P)]),
    "octd_camera_send_borrowed": (_I, [_P, _U32, _U64]),
    "octd_camera_return": (None, [_P]),
    "octd_camera_end": (_I, [_P]),
    "octd_camera_end_with_next": (None, [_P]),
    "octd_camera_flush": (_I, [_P, _U32]),
    "octd_camera_count": (_I, [_P, ctypes.POINTER(CameraCounters)]),
    "octd_camera_error": (_S, [_P]),
    "octd_camera_give_up": (None, [_P]),
    "octd_camera_close": (_U64, [_P]),
}


def _candidates() -> Iterator[str]:
    """Where the library may be, the likeliest first: OCTD_LIBRARY alone if that is set; the prefix
    that the package was installed under; the checkout that it is part of, or was installed from;
    where the loader looks."""
    named = os.environ.get("OCTD_LIBRARY")
    if named:
        yield named
        return
    package = Path(__file__).resolve().parent
    parents = list(package.parents)
    if len(parents) > 2 and parents[0].name == "dist-packages":
        yield str(parents[2] / NAME)  # PREFIX/lib/python3/dist-packages/octd
    if len(parents) > 1 and parents[0].name == "python":
        yield str(parents[1] / "build" / NAME)  # CHECKOUT/python/octd
    note = package / "checkout.txt"  # written by pip install ./python
    if note.exists():
        yield str(Path(note.read_text(encoding="utf-8").strip()) / "build" / NAME)
    yield NAME


@functools.lru_cache(maxsize=None)
def _load() -> tuple[ctypes.CDLL, str]:
    tried: list[str] = []
    for path in _candidates():
        if "/" in path and not os.path.exists(path):
            tried.append(f"{path}: is not there")
            continue
        try:
            library = ctypes.CDLL(path)
        except OSError as why:
            tried.append(str(why))
            continue
        for name, (result, arguments) in _FUNCTIONS.items():
            function = getattr(library, name, None)
            if function is None:
                raise Error(f"{path}: has no {name}: it is older than this package, or no liboctd",
                            "io")
            function.restype, function.argtypes = result, arguments
        if library.octd_api_version() < API_VERSION:
            raise Error(f"{path}: its API is version {library.octd_api_version()}, this package "
                        f"needs {API_VERSION}: build it again", "io")
        return library, path
    raise Error("liboctd.so.0 is not found: build it (make) or set OCTD_LIBRARY to its path; tried "
                + "; ".join(tried), "io")


def load() -> ctypes.CDLL:
    """The library, loaded at its first use."""
    return _load()[0]


def library_path() -> str:
    """Which liboctd.so is used. Raises Error if there is none."""
    return _load()[1]


def library_version() -> str:
    """The version of that library, "0.1.0"."""
    return str(load().octd_version().decode())


def raise_for(code: int, text: str) -> None:
    """Raises what an octd_result other than 0 stands for."""
    if code == OK:
        return
    if code == TIMEOUT:
        raise Timeout(text)
    raise Error(text, KINDS[code] if 0 < code < len(KINDS) else "state")
