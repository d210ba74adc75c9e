"""liboctd.so: where it is, and its functions (octd/octd.h has their promises)."""
from __future__ import annotations

import ctypes
import functools
import math
import operator
import os
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable, Iterator, Optional, Tuple

from ._errors import Error, Timeout, check_process

NAME = "liboctd.so.0"
API_VERSION = 3  # the least that this package calls

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


# ---- what crosses into C ----

FOR_EVER_MS = 0xFFFFFFFF


def whole(value: Any, name: str, bits: int = 32, least: int = 0) -> int:
    """A whole number that fits; ctypes would take the lower bits of any."""
    try:
        number = operator.index(value)
    except TypeError:
        raise Error(f"{name} is {value!r}: a whole number is needed") from None
    if not least <= number < 1 << bits:
        raise Error(f"{name} is {number}: it is {least} to {(1 << bits) - 1}")
    return number


def text(value: Any, name: str) -> bytes:
    """A str or a path as C takes it; C would cut it at a NUL."""
    try:
        given = os.fsencode(value)
    except (TypeError, UnicodeError):
        raise Error(f"{name} is {value!r}: text is needed") from None
    if b"\0" in given:
        raise Error(f"{name} is {value!r}: text without a NUL is needed")
    return given


def milliseconds(seconds: Optional[float], name: str) -> Optional[int]:
    """A time to wait; None and inf: for ever."""
    if seconds is None or seconds == math.inf:
        return None
    if not 0 <= seconds < 1 << 21:
        raise Error(f"{name} is {seconds!r}: seconds are 0 to {(1 << 21) - 1}, or None: for ever")
    return math.ceil(seconds * 1000)


_Argument = Tuple[Any, Optional[Callable[[Any], Any]]]  # what ctypes takes, how it is checked


def _n(name: str, bits: int = 32) -> _Argument:
    return {32: ctypes.c_uint32, 64: ctypes.c_uint64}[bits], lambda value: whole(value, name, bits)


def _s(name: str) -> _Argument:
    return ctypes.c_char_p, lambda value: text(value, name)


def _to(kind: Any) -> _Argument:
    return ctypes.POINTER(kind), None


_S, _I, _U64 = ctypes.c_char_p, ctypes.c_int, ctypes.c_uint64
_P: _Argument = (ctypes.c_void_p, None)
_Z: _Argument = (ctypes.c_size_t, None)  # of arrays that the package has looked at

# name: (what it returns, its arguments)
_FUNCTIONS: dict[str, tuple[Any, list[_Argument]]] = {
    "octd_api_version": (ctypes.c_uint, []),
    "octd_version": (_S, []),
    "octd_recon_create": (ctypes.c_void_p, []),
    "octd_recon_destroy": (None, [_P]),
    "octd_recon_error": (_S, [_P]),
    "octd_recon_set": (_I, [_P, _s("the key"), _s("the value")]),
    "octd_recon_load": (_I, [_P, _s("config")]),
    "octd_recon_load_text": (_I, [_P, _s("config"), _s("its name")]),
    "octd_recon_get": (_I, [_P, _s("the key"), _P, _Z]),
    "octd_recon_wavelengths": (_I, [_P, _P, _Z]),
    "octd_recon_kmap": (_I, [_P, _P, _Z]),
    "octd_recon_dispersion": (_I, [_P, _P, _Z]),
    "octd_recon_background": (_I, [_P, _P, _Z]),
    "octd_recon_complex": (None, [_P, (_I, None)]),
    "octd_recon_start": (_I, [_P]),
    "octd_recon_engine": (_S, [_P]),
    "octd_recon_shape": (_I, [_P] + [_to(ctypes.c_uint32)] * 4 + [_to(ctypes.c_double)]),
    "octd_recon_begin": (_I, [_P, _n("volume_bscans")]),
    "octd_recon_scan": (_I, [_P, _n("scan_bscans", 32), _n("first_bscan", 64)]),
    "octd_recon_skip": (_I, [_P, _n("n_bscans", 64)]),
    "octd_recon_run": (_I, [_P, _P, _P, _n("n_bscans", 64), _P, _Z, _P]),
    "octd_camera_connect": (_I, [_to(ctypes.c_void_p), _s("endpoint"), _n("samples"),
                                 _to(CameraOptions), _P, _Z]),
    "octd_camera_wait_connected": (_I, [_P, _n("timeout_ms")]),
    "octd_camera_start": (None, [_P]),
    "octd_camera_follow": (None, [_P, _n("an epoch"), _n("an epoch")]),
    "octd_camera_skip": (None, [_P, _n("n_lines", 64)]),
    "octd_camera_next_line": (_U64, [_P]),
    "octd_camera_send": (_I, [_P, _P, _n("n_lines"), _n("time_ns", 64)]),
    "octd_camera_borrow": (_I, [_P, _n("n_lines"), _to(ctypes.c_void_p)]),
    "octd_camera_send_borrowed": (_I, [_P, _n("n_lines"), _n("time_ns", 64)]),
    "octd_camera_return": (None, [_P]),
    "octd_camera_end": (_I, [_P]),
    "octd_camera_end_with_next": (None, [_P]),
    "octd_camera_flush": (_I, [_P, _n("timeout_ms")]),
    "octd_camera_count": (_I, [_P, _to(CameraCounters)]),
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


def _checked(function: Any, result: Any, arguments: list[_Argument]) -> Callable[..., Any]:
    """The function with its arguments checked; text that it returns is str."""
    function.restype, function.argtypes = result, [kind for kind, _ in arguments]

    def call(*given: Any) -> Any:
        said = function(*(check(value) if check else value
                          for (_, check), value in zip(arguments, given)))
        return said.decode("utf-8", "replace") if isinstance(said, bytes) else said
    return call


@functools.lru_cache(maxsize=None)
def _load() -> tuple[SimpleNamespace, str]:
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
        functions = SimpleNamespace()
        for name, (result, arguments) in _FUNCTIONS.items():
            function = getattr(library, name, None)
            if function is None:
                raise Error(f"{path}: has no {name}: it is older than this package, or no liboctd",
                            "io")
            setattr(functions, name, _checked(function, result, arguments))
        if functions.octd_api_version() < API_VERSION:
            raise Error(f"{path}: its API is version {functions.octd_api_version()}, this package "
                        f"needs {API_VERSION}: build it again", "io")
        return functions, path
    raise Error("liboctd.so.0 is not found: build it (make) or set OCTD_LIBRARY to its path; tried "
                + "; ".join(tried), "io")


def load() -> SimpleNamespace:
    """The functions of the library, loaded at its first use."""
    return _load()[0]


def library_path() -> str:
    """Which liboctd.so is used. Raises Error if there is none."""
    return _load()[1]


def library_version() -> str:
    """The version of that library, "0.1.0"."""
    return str(load().octd_version())


def raise_for(code: int, text: str) -> None:
    """Raises what an octd_result other than 0 stands for."""
    if code == OK:
        return
    if code == TIMEOUT:
        raise Timeout(text)
    raise Error(text, KINDS[code] if 0 < code < len(KINDS) else "state")


class Handle:
    """A handle of the library: its functions are called one at a time, not behind its end, and not
    in a process forked from that which made it. A `with` statement keeps calls together.

    kind, end : octd_KIND_... are its functions, octd_KIND_END ends it
    what : it, in words
    """

    def __init__(self, kind: str, pointer: Any, end: str, what: str) -> None:
        self._functions, self._prefix, self._end = load(), f"octd_{kind}_", end
        self._pointer, self._what = pointer, what
        self._pid, self._lock = os.getpid(), threading.RLock()

    def __enter__(self) -> Handle:
        check_process(self._pid, self._what)
        self._lock.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def __bool__(self) -> bool:
        return bool(self._pointer)

    def call(self, name: str, *arguments: Any) -> Any:
        with self:
            if not self._pointer:
                raise Error(f"the {self._what} is closed", "state")
            return getattr(self._functions, self._prefix + name)(self._pointer, *arguments)

    def check(self, code: int) -> None:
        if code:
            raise_for(code, self.call("error"))

    def do(self, name: str, *arguments: Any) -> None:
        """A call that may fail."""
        with self:
            self.check(self.call(name, *arguments))

    def close(self) -> int:
        """In a forked process nothing: what the handle stands for is the parent's."""
        if self._pid != os.getpid():
            return 0
        with self._lock:
            pointer, self._pointer = self._pointer, None
            return int(getattr(self._functions, self._prefix + self._end)(pointer) or 0
                       if pointer else 0)
