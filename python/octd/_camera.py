"""A camera driver: A-lines into a running octd, by the C client (octd/client.h)."""
from __future__ import annotations

import contextlib
import ctypes
import time
from typing import Any, Iterator, NamedTuple, Optional, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _library
from ._errors import Error, Timeout
from ._sockets import Path

SLICE_MS = 200  # a wait is cut into such, between which Python looks at Ctrl-C


class Counters(NamedTuple):
    """Since the camera was connected."""

    messages_sent: int
    lines_sent: int
    messages_dropped: int
    lines_dropped: int
    lines_skipped: int
    messages_queued: int
    lines_queued: int


def _file(path: Path, name: str) -> Optional[bytes]:
    return None if path is None else _library.text(path, name)


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

    Belongs to one thread at a time (a second waits) and to the process that made it. Use it in a
    `with` statement, which ends the acquisition and closes; or call `close`.

    >>> with octd.Camera("tcp://127.0.0.1:5701", samples=832) as camera:
    ...     camera.start()
    ...     for lines in blocks:             # u16 [any number][832]
    ...         camera.send(lines)
    """

    def __init__(self, endpoint: str = "tcp://127.0.0.1:5701", samples: int = 832, *,
                 crc: bool = False, drop_when_full: bool = False, queue: int = 64,
                 wait_s: Optional[float] = None, linger_s: float = 10, client_key: Path = None,
                 server_public: Path = None) -> None:
        _library.milliseconds(wait_s, "wait_s")
        self.endpoint, self._samples = endpoint, _library.whole(samples, "samples")
        self._wait_s, self._borrowed = wait_s, False
        linger_ms = _library.milliseconds(linger_s, "linger_s")
        options = _library.CameraOptions(
            ctypes.sizeof(_library.CameraOptions), _library.whole(queue, "queue", least=1),
            _library.FOR_EVER_MS if linger_ms is None else max(1, linger_ms), SLICE_MS,
            bool(drop_when_full), bool(crc), _file(client_key, "client_key"),
            _file(server_public, "server_public"))
        pointer, why = ctypes.c_void_p(), ctypes.create_string_buffer(512)
        code = _library.load().octd_camera_connect(ctypes.byref(pointer), endpoint, self._samples,
                                                   ctypes.byref(options), why, len(why))
        _library.raise_for(code, why.value.decode("utf-8", "replace"))
        self._handle = _library.Handle("camera", pointer, "close", "camera")

    @property
    def samples(self) -> int:
        """N, samples an A-line."""
        return self._samples

    def _until(self, call: Any, wait_s: Optional[float], what: str) -> int:
        """call() until it neither ran out of time nor was interrupted; Python's own handlers of
        signals run between."""
        wait_ms = _library.milliseconds(wait_s, "a time to wait")
        end = None if wait_ms is None else time.monotonic() + wait_ms / 1000
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
        self._handle.check(code)
        return True

    def wait_connected(self, timeout_s: float = 10) -> None:
        """Waits until octd has taken the connection; octd.Timeout."""
        self._check(self._until(lambda: self._handle.call("wait_connected", SLICE_MS), timeout_s,
                                "no octd answered"))

    def start(self) -> None:
        """The next line begins an acquisition and is number 0."""
        self._handle.call("start")

    def follow(self, epochs: Sequence[int]) -> None:
        """The same for lines of octd's scan: `epochs` of an announcement (topic scan). octd takes
        them as of that scan, or refuses them."""
        first, last = (_library.whole(epoch, "an epoch") for epoch in epochs)
        if first > last:
            raise Error(f"epochs {first} to {last}: the first is not the smaller one")
        self._handle.call("follow", first, last)

    def skip(self, n_lines: int) -> None:
        """n_lines were lost before the next one: without this, all later lines would slide."""
        self._handle.call("skip", n_lines)

    @property
    def next_line(self) -> int:
        """The number that the next line gets."""
        return int(self._handle.call("next_line"))

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
        return self._check(self._until(
            lambda: self._handle.call("send", block.ctypes.data, n_lines, now), self._wait_s,
            "no room for a block"))

    @contextlib.contextmanager
    def block(self, n_lines: int, time_ns: Optional[int] = None) -> Iterator[NDArray[np.uint16]]:
        """Memory for the next block, uint16 [n_lines][N], to be filled in a `with` statement and
        sent at its end: with shm:// octd's own, so that nothing is copied. It must not be used
        afterwards. An exception within sends nothing. octd.Error of kind "dropped": no room and
        drop_when_full.

        >>> with camera.block(240) as lines:
        ...     grabber.read_into(lines)
        """
        n, memory = _library.whole(n_lines, "n_lines"), ctypes.c_void_p()
        with self._handle:  # nobody closes the camera while the memory is lent
            if self._borrowed:
                raise Error("a block is lent already: its `with` statement ends first", "state")
            self._borrowed = True
            try:
                if not self._check(self._until(
                        lambda: self._handle.call("borrow", n, ctypes.byref(memory)),
                        self._wait_s, "no room for a block")):
                    raise Error(f"{self.endpoint}: no room for a block of {n} lines: it is counted "
                                "as dropped", "dropped")
                assert memory.value is not None
                values = (ctypes.c_uint16 * (n * self._samples)).from_address(memory.value)
                yield np.ctypeslib.as_array(values).reshape(n, self._samples)
                now = time.monotonic_ns() if time_ns is None else time_ns
                self._check(self._until(lambda: self._handle.call("send_borrowed", n, now),
                                        self._wait_s, "no room for a block"))
            finally:
                self._borrowed = False
                self._handle.call("return")  # what was not sent

    def end(self) -> None:
        """Ends the acquisition."""
        code = self._handle.call("end")
        if code not in (_library.TIMEOUT, _library.INTERRUPTED):  # nobody is there to hear it
            self._check(code)

    def flush(self, timeout_s: float = 10) -> None:
        """Waits until the network has taken everything; octd.Timeout."""
        self._check(self._until(lambda: self._handle.call("flush", SLICE_MS), timeout_s,
                                "not everything was taken"))

    @property
    def counters(self) -> Counters:
        """Messages and lines sent, dropped, skipped and queued."""
        its = _library.CameraCounters(ctypes.sizeof(_library.CameraCounters))
        self._handle.do("count", ctypes.byref(its))
        return Counters(*(int(getattr(its, name)) for name in Counters._fields))

    def close(self) -> int:
        """Waits for delivery (linger_s) and closes. Returns how many messages were given up."""
        if self._borrowed:
            with self._handle:  # another thread's block ends first
                if self._borrowed:
                    raise Error("a block is lent: its `with` statement ends before close", "state")
        return self._handle.close()

    def __enter__(self) -> Camera:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        try:
            if self._handle and kind is None:
                self.end()
        finally:
            self.close()
