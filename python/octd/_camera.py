"""A camera driver: A-lines into a running octd, by the C client (octd/client.h)."""
from __future__ import annotations

import contextlib
import ctypes
import os
import time
from typing import Any, Iterator, NamedTuple, Optional

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _library
from ._errors import Error, Timeout
from ._sockets import Path

SLICE_MS = 200  # a wait is cut into such, between which Python looks at Ctrl-C
FOR_EVER_MS = 0xFFFFFFFF


class Counters(NamedTuple):
    """Since the camera was connected."""

    messages_sent: int
    lines_sent: int
    messages_dropped: int
    lines_dropped: int
    lines_skipped: int
    messages_queued: int
    lines_queued: int


def _u32(value: int, name: str) -> int:
    """ctypes would take the lower 32 bits of any number."""
    if not 0 <= value <= 0xFFFFFFFF:
        raise Error(f"{name} is {value}: it is 0 to {0xFFFFFFFF}")
    return value


def _file(path: Path) -> Optional[bytes]:
    return None if path is None else os.fsencode(path)


class Camera:
    """Pushes A-lines into octd's ingest.endpoint: "tcp://HOST:PORT", "ipc://PATH" or, on octd's own
    machine, "shm://NAME". All go through the C client: lines are numbered, a connection that
    breaks is made again, CRC-32C and CURVE keys are there if they are asked for.

    samples : N, samples an A-line, as octd's camera.samples
    crc : guard every block by a CRC-32C
    drop_when_full : send never waits: a block without room is dropped and counted
    queue : blocks that wait for octd at most
    wait_s : most that send waits for room, then octd.Timeout; None: for ever
    linger_s : most that close waits for delivery
    client_key, server_public : paths of CURVE keys, where octd has keys

    Belongs to one thread at a time. Use it in a `with` statement, which ends the acquisition and
    closes; or call `close`.

    >>> with octd.Camera("tcp://127.0.0.1:5701", samples=832) as camera:
    ...     camera.start()
    ...     for lines in blocks:             # u16 [any number][832]
    ...         camera.send(lines)
    """

    def __init__(self, endpoint: str = "tcp://127.0.0.1:5701", samples: int = 832, *,
                 crc: bool = False, drop_when_full: bool = False, queue: int = 64,
                 wait_s: Optional[float] = None, linger_s: float = 10, client_key: Path = None,
                 server_public: Path = None) -> None:
        self._library, self._handle = _library.load(), ctypes.c_void_p()
        self.endpoint, self.samples = endpoint, samples
        self._wait_s, self._borrowed = wait_s, False
        options = _library.CameraOptions(
            ctypes.sizeof(_library.CameraOptions), _u32(queue, "queue"),
            _u32(round(linger_s * 1000), "linger_s in ms"), SLICE_MS, drop_when_full, crc,
            _file(client_key), _file(server_public))
        text = ctypes.create_string_buffer(512)
        code = self._library.octd_camera_connect(ctypes.byref(self._handle), endpoint.encode(),
                                                 _u32(samples, "samples"), ctypes.byref(options),
                                                 text, len(text))
        _library.raise_for(code, text.value.decode())

    def _open(self) -> ctypes.c_void_p:
        if not self._handle:
            raise Error("the camera is closed", "state")
        return self._handle

    def _until(self, call: Any, wait_s: Optional[float], what: str) -> int:
        """call() until it neither ran out of time nor was interrupted; Python's own handlers of
        signals run between."""
        end = None if wait_s is None else time.monotonic() + wait_s
        while True:
            code = int(call())
            if code not in (_library.TIMEOUT, _library.INTERRUPTED):
                return code
            if end is not None and time.monotonic() >= end:
                raise Timeout(f"{self.endpoint}: {what} within {wait_s:g} s")

    def _check(self, code: int) -> bool:
        """False: dropped."""
        if code == _library.DROPPED:
            return False
        _library.raise_for(code, self._library.octd_camera_error(self._open()).decode())
        return True

    def wait_connected(self, timeout_s: float = 10) -> None:
        """Waits until octd has taken the connection; octd.Timeout."""
        def wait() -> int:
            return int(self._library.octd_camera_wait_connected(self._open(), SLICE_MS))
        self._check(self._until(wait, timeout_s, "no octd answered"))

    def start(self) -> None:
        """The next line begins an acquisition and is number 0."""
        self._library.octd_camera_start(self._open())

    def skip(self, n_lines: int) -> None:
        """n_lines were lost before the next one: without this, all later lines would slide."""
        self._library.octd_camera_skip(self._open(), n_lines)

    @property
    def next_line(self) -> int:
        """The number that the next line gets."""
        return int(self._library.octd_camera_next_line(self._open()))

    def send(self, lines: ArrayLike, time_ns: Optional[int] = None) -> bool:
        """Sends a block of A-lines, uint16 [any number][N] (or [N], or [B][M][N]), copied once.
        time_ns: the camera's clock at the first; None: the computer's. False: there was no room and
        drop_when_full; it is counted, and octd sees a gap."""
        block = np.asarray(lines)
        if block.dtype.kind != "u" or block.dtype.itemsize > 2 or block.shape[-1:] != (
                self.samples,):
            raise Error(f"a block of {block.dtype} {list(block.shape)}: uint16 [lines]"
                        f"[{self.samples}] is needed")
        block = np.ascontiguousarray(block, np.uint16)
        n_lines = block.size // self.samples
        now = time.monotonic_ns() if time_ns is None else time_ns

        def send() -> int:
            return int(self._library.octd_camera_send(self._open(), block.ctypes.data, n_lines,
                                                      now))
        return self._check(self._until(send, self._wait_s, "no room for a block"))

    @contextlib.contextmanager
    def block(self, n_lines: int, time_ns: Optional[int] = None) -> Iterator[NDArray[np.uint16]]:
        """Memory for the next block, uint16 [n_lines][N], to be filled in a `with` statement and
        sent at its end: with shm:// octd's own, so that nothing is copied. It must not be used
        afterwards. An exception within sends nothing. octd.Error of kind "dropped": no room and
        drop_when_full.

        >>> with camera.block(240) as lines:
        ...     grabber.read_into(lines)
        """
        memory = ctypes.c_void_p()

        def borrow() -> int:
            return int(self._library.octd_camera_borrow(self._open(), n_lines,
                                                        ctypes.byref(memory)))

        def send() -> int:
            return int(self._library.octd_camera_send_borrowed(self._open(), n_lines, now))
        if not self._check(self._until(borrow, self._wait_s, "no room for a block")):
            raise Error(f"{self.endpoint}: no room for a block of {n_lines} lines: it is counted "
                        "as dropped", "dropped")
        assert memory.value is not None
        values = (ctypes.c_uint16 * (n_lines * self.samples)).from_address(memory.value)
        try:
            yield np.ctypeslib.as_array(values).reshape(n_lines, self.samples)
            now = time.monotonic_ns() if time_ns is None else time_ns
            self._check(self._until(send, self._wait_s, "no room for a block"))
        except BaseException:
            self._library.octd_camera_return(self._open())
            raise

    def end(self) -> None:
        """Ends the acquisition."""
        code = self._library.octd_camera_end(self._open())
        if code not in (_library.TIMEOUT, _library.INTERRUPTED):  # nobody is there to hear it
            self._check(code)

    def flush(self, timeout_s: float = 10) -> None:
        """Waits until the network has taken everything; octd.Timeout."""
        def wait() -> int:
            return int(self._library.octd_camera_flush(self._open(), SLICE_MS))
        self._check(self._until(wait, timeout_s, "not everything was taken"))

    @property
    def counters(self) -> Counters:
        """Messages and lines sent, dropped, skipped and queued."""
        its = _library.CameraCounters(ctypes.sizeof(_library.CameraCounters))
        self._check(self._library.octd_camera_count(self._open(), ctypes.byref(its)))
        return Counters(*(int(getattr(its, name)) for name in Counters._fields))

    def close(self) -> int:
        """Waits for delivery (linger_s) and closes. Returns how many messages were given up."""
        handle, self._handle = self._handle, ctypes.c_void_p()
        return int(self._library.octd_camera_close(handle)) if handle else 0

    def __enter__(self) -> Camera:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            if self._handle and kind is None:
                self.end()
        finally:
            self.close()
