"""Pictures and results of a running octd, as arrays (docs/streams.md)."""
from __future__ import annotations

import json
import os
from typing import Any, Dict, Iterator, Optional, Tuple

import numpy as np
from numpy.typing import NDArray

from . import _library, _sockets
from ._errors import Error, Timeout, check_process

DTYPES: Dict[object, "np.dtype[Any]"] = {
    "uint8": np.dtype("u1"), "uint16": np.dtype("<u2"), "float": np.dtype("<f4")}

Message = Tuple[Dict[str, Any], NDArray[Any]]


def _decode(parts: list[Any], endpoint: str) -> Message:
    """Header and array of a message; the array lies in the message's own memory, read-only."""
    if len(parts) != 3:
        raise Error(f"{endpoint}: a message of {len(parts)} parts: this is no octd", "format")
    try:
        header = json.loads(bytes(parts[1].buffer))
        shape = [int(n) for n in header["shape"]]
        dtype = DTYPES[header["dtype"]]
        array = np.frombuffer(parts[2].buffer, dtype).reshape(shape)
        if bytes(parts[0].buffer) == b"complex":
            array = array.view("<c8")[..., 0]
        array.flags.writeable = False
    except (ValueError, KeyError, TypeError) as why:
        raise Error(f"{endpoint}: a message that is not octd's: {why!r}", "format") from None
    return header, array


class Subscription:
    """An iterator of (header, array); `octd.subscribe` makes one. Belongs to one thread of the
    process that made it; use it in a `with` statement, or call `close`."""

    def __init__(self, endpoint: str, topic: str, timeout_s: Optional[float], queue: int,
                 client_key: _sockets.Path, server_public: _sockets.Path) -> None:
        self.endpoint, self.topic, self.timeout_s = endpoint, topic, timeout_s
        self._pid = os.getpid()
        self._socket = _sockets.connect("SUB", endpoint, client_key, server_public,
                                        rcvhwm=_library.whole(queue, "queue", 31))
        self._socket.subscribe(topic.encode())

    def __iter__(self) -> Iterator[Message]:
        return self

    def __next__(self) -> Message:
        if self._socket.closed:
            raise StopIteration
        return self.receive(self.timeout_s)

    def receive(self, timeout_s: Optional[float] = None) -> Message:
        """The next message; Timeout if none has come after timeout_s (None: waits for ever)."""
        check_process(self._pid, "subscription")
        wait_ms = _library.milliseconds(timeout_s, "timeout_s")
        while True:
            if not self._socket.poll(wait_ms):
                raise Timeout(f"{self.endpoint}: nothing of topic '{self.topic}' within "
                              f"{timeout_s:g} s: does octd run, do lines come?")
            parts = self._socket.recv_multipart(copy=False)
            # A subscription takes every topic that begins with it: "cells" none of "cellsize".
            if not self.topic or bytes(parts[0].buffer) == self.topic.encode():
                return _decode(parts, self.endpoint)

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> Subscription:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def subscribe(endpoint: str = "tcp://127.0.0.1:5702", topic: str = "bscan", *,
              timeout_s: Optional[float] = None, queue: int = 4,
              client_key: _sockets.Path = None,
              server_public: _sockets.Path = None) -> Subscription:
    """Subscribes to a topic of octd's publish.endpoint: "bscan", "spectrum", "enface", ..., or ""
    for all (`header["dataset"]` then says which it is).

    Iterating gives (header, array): the header is a dict (docs/streams.md), the array u8, u16 or
    f32 of header["shape"], `bscan` [M][D] (array.T has depth downward), `complex` complex64
    [M][D]. It lies in the message's
    own memory and is read-only; it stays good as long as it is kept.

    timeout_s : raise octd.Timeout when nothing has come for so long; None: wait.
    queue : messages that wait for a reader that is slow; more are lost, of which a jump of
        header["frame_num"] tells. octd and others do not notice.
    client_key, server_public : paths of CURVE keys, where octd has keys.

    >>> with octd.subscribe("tcp://127.0.0.1:5702", timeout_s=5) as pictures:
    ...     for header, picture in pictures:
    ...         print(header["frame_num"], picture.mean())
    """
    return Subscription(endpoint, topic, timeout_s, queue, client_key, server_public)
