"""ZeroMQ sockets of clients, with CURVE keys where octd has some."""
from __future__ import annotations

import os
import re
import stat
from typing import Any, Union

from . import _library
from ._errors import Error

Path = Union[str, "os.PathLike[str]", None]
_KEY = r"[!-~]{40}"


def _read_key(path: Path, field: str) -> bytes:
    """The key in a file as octctl keygen, czmq and pyzmq write it, or that is nothing else."""
    name = os.fsdecode(_library.text(path, field))
    try:
        with open(name, encoding="utf-8", errors="replace") as file:
            everyone = stat.S_IMODE(os.fstat(file.fileno()).st_mode) & stat.S_IROTH
            text = file.read(4096)
    except OSError as why:
        raise Error(f"{name}: cannot be read: {why.strerror}", "config") from None
    if field == "secret-key" and everyone:
        raise Error(f"{name}: everyone may read this secret key: chmod 600 it", "config")
    found = (re.search(rf"^\s*{field}\s*=\s*[\"']?({_KEY}?)[\"']?\s*$", text, re.M)
             or re.fullmatch(rf"\s*({_KEY})\s*", text))
    if not found:
        raise Error(f"{name}: holds no {field} (a file of octctl keygen does)", "config")
    return found.group(1).encode()


def connect(kind: str, endpoint: str, client_key: Path, server_public: Path, **options: int) -> Any:
    """A connected socket of the process's context; `options` are ZeroMQ's, lower-case, and are set
    before it connects. The caller closes it."""
    try:
        import zmq
    except ImportError:
        raise Error("talking to octd needs zmq (apt install python3-zmq, or pip install pyzmq)",
                    "state") from None

    if (client_key is None) != (server_public is None):
        raise Error("client_key and server_public belong together: give both or none", "config")
    address = _library.text(endpoint, "endpoint")
    socket: Any = zmq.Context.instance().socket(getattr(zmq, kind))
    try:
        socket.linger = 0
        for name, value in options.items():
            setattr(socket, name, value)
        if client_key is not None:
            secret = _read_key(client_key, "secret-key")
            socket.curve_secretkey = secret
            socket.curve_publickey = zmq.curve_public(secret)
            socket.curve_serverkey = _read_key(server_public, "public-key")
        socket.connect(address)
    except zmq.ZMQError as why:
        socket.close()
        raise Error(f"{endpoint}: {why}: give tcp://HOST:PORT or ipc://PATH", "config") from None
    except BaseException:
        socket.close()
        raise
    return socket
