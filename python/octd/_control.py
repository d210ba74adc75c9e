"""Commands to a running octd (docs/streams.md, Control)."""
from __future__ import annotations

import json
import os
import time
from typing import Any, Callable, Optional

import numpy as np
from numpy.typing import NDArray

from . import _library, _sockets
from ._errors import Error, Timeout, check_process

Reply = dict[str, Any]

AGAIN_S = 0.05


class Control:
    """The control socket of octd. Each method sends a command and returns its reply, a dict; what
    octd refuses raises Error with its words. Belongs to one thread of the process that made it; use
    it in a `with` statement, or call `close`.

    endpoint : octd's control.endpoint
    timeout_s : raise octd.Timeout if a reply has not come by then (octd replies within 0.1 s), or
        what is under way is not done
    client_key, server_public : paths of CURVE keys, where octd has keys
    """

    def __init__(self, endpoint: str = "tcp://127.0.0.1:5703", *, timeout_s: float = 10,
                 client_key: _sockets.Path = None, server_public: _sockets.Path = None) -> None:
        self.endpoint, self.timeout_s = endpoint, timeout_s
        _library.milliseconds(timeout_s, "timeout_s")
        self._keys, self._pid = (client_key, server_public), os.getpid()
        self._socket: Any = None

    def _ask(self, request: Reply, until: float) -> Reply:
        check_process(self._pid, "control")
        text = json.dumps(request).encode()
        if self._socket is None:
            self._socket = _sockets.connect("REQ", self.endpoint, *self._keys)
        try:
            self._socket.send(text)
            left_s = max(0, until - time.monotonic())
            if not self._socket.poll(_library.milliseconds(left_s, "timeout_s")):
                raise Timeout(f"{self.endpoint}: no reply to {request['cmd']} within "
                              f"{self.timeout_s:g} s: does octd run there?")
            text = self._socket.recv()
        except BaseException:  # Ctrl-C too: a reply that comes late is none to the next command
            self.close()
            raise
        try:
            reply = json.loads(text)
        except ValueError:
            raise Error(f"{self.endpoint}: the reply is no JSON: this is no octd",
                        "format") from None
        if not isinstance(reply, dict):
            raise Error(f"{self.endpoint}: the reply is no object: this is no octd", "format")
        return reply

    def request(self, cmd: str, **fields: Any) -> Reply:
        """Any command. One that octd is too busy for (it starts, or drains) is sent again."""
        until = time.monotonic() + self.timeout_s
        while True:
            reply = self._ask({"cmd": cmd, **fields}, until)
            if reply.get("ok"):
                return reply
            if not reply.get("busy") or time.monotonic() > until:
                raise Error(str(reply.get("error", "refused without a word")), "refused")
            time.sleep(AGAIN_S)

    def wait(self, true: Callable[[Reply], bool], timeout_s: Optional[float] = None) -> Reply:
        """Asks for the status until true(status) is; returns that status.

        >>> control.wait(lambda status: status["volumes_written"] >= 3, timeout_s=60)
        """
        limit_s = self.timeout_s if timeout_s is None else timeout_s
        until = time.monotonic() + limit_s
        while True:
            status = self.status()
            if true(status):
                return status
            if time.monotonic() > until:
                raise Timeout(f"{self.endpoint}: not so within {limit_s:g} s; octd is "
                              f"{status['phase']}")
            time.sleep(AGAIN_S)

    def _settled(self, cmd: str, **fields: Any) -> Reply:
        """A command whose work goes on behind the reply: waits for it, too."""
        reply = self.request(cmd, **fields)
        if reply.get("pending"):
            status = self.wait(lambda status: not status["pending"])
            if (cmd == "start" and status["state"] in ("idle", "error")
                    or fields.get("action") == "start" and not status["record"]["active"]):
                raise Error(str(status["last_error"]), "refused")
        return reply

    def status(self) -> Reply:
        """The whole status (docs/streams.md has a table)."""
        return self.request("status")

    def start(self) -> Reply:
        """Accepts lines; builds the pipeline anew if keys have changed."""
        return self._settled("start")

    def stop(self) -> Reply:
        """Takes what has arrived, ends a recording, then ignores lines."""
        return self._settled("stop")

    def set(self, key: str, value: Any) -> Reply:
        """Changes a key, "pipeline.min_db"; Error says if it may not change now."""
        text = ("yes" if value else "no") if isinstance(value, bool) else str(value)
        return self.request("set", key=key, value=text)

    def get(self, key: str) -> str:
        """The value of a key in force."""
        return str(self.request("get", key=key)["value"])

    def record_start(self, volumes: Optional[int] = None) -> Reply:
        """Records from the next whole volume on, and ends by itself behind so many whole volumes
        (0: when it is stopped; None: record.volumes). `warning` of the reply: octd or its disk may
        be too slow."""
        fields = {} if volumes is None else {"volumes": volumes}
        return self._settled("record", action="start", **fields)

    def record_stop(self) -> Reply:
        """Closes the file with what there is."""
        return self._settled("record", action="stop")

    def record_last(self, name: Optional[str] = None) -> Reply:
        """Begins to save the last seconds (record.last_s); `record_last` of the status tells when
        they are saved."""
        fields = {} if name is None else {"name": name}
        return self.request("record", action="last", **fields)

    def background(self, bscans: int = 64, timeout_s: float = 10) -> NDArray[np.float64]:
        """The mean spectrum of the next whole B-scans, counts [N]."""
        number = self.request("background", bscans=bscans, timeout_s=timeout_s)["number"]
        self._errand(number, timeout_s)
        values: list[float] = []
        while True:
            part = self.request("background", first=len(values))
            values += part["values"]
            if not part["values"] or len(values) >= part["samples"]:
                return np.array(values)

    def calibrate(self) -> Reply:
        """Looks for the dispersion that makes the next two whole B-scans sharpest; changes nothing.
        Returns the `result` (docs/calibration.md): state, a2, a3, over_spectrum, ..."""
        result = self._errand(self.request("calibrate")["number"], 10)["result"]
        return dict(result)

    def _errand(self, number: int, timeout_s: float) -> Reply:
        """Waits for what is computed beside the stream."""
        status = self.wait(lambda status: status["errand"]["number"] != number
                           or not status["errand"]["pending"], timeout_s + self.timeout_s)
        errand = dict(status["errand"])
        if errand["error"]:
            raise Error(str(errand["error"]), "refused")
        return errand

    def shutdown(self) -> Reply:
        """Finishes what is in flight, closes files whole; octd ends."""
        return self.request("shutdown")

    def close(self) -> None:
        socket, self._socket = self._socket, None
        if socket is not None:
            socket.close()

    def __enter__(self) -> Control:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
