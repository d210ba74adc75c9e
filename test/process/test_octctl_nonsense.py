#!/usr/bin/python3
"""octctl against a daemon that answers nonsense: every wait has an end, and says why it ended."""
import itertools, threading
from octtest import *

WAIT_S, TIMEOUT_S = 0.6, 1.0
# What a command may take beyond its limits on a busy machine; far below what it took without any.
SLACK_S = 10


class Liar:
    """A control endpoint where `answer` makes the reply, bytes or an object; None: there is none."""

    def __init__(self, answer):
        self.endpoint = f"tcp://127.0.0.1:{free_port()}"
        self.answer = answer
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        socket = zmq.Context.instance().socket(zmq.ROUTER)
        socket.linger = 0
        socket.bind(self.endpoint)
        while not self.ended.is_set():
            if not socket.poll(20):
                continue
            peer, empty, body = socket.recv_multipart()
            reply = self.answer(json.loads(body))
            if reply is not None:
                socket.send_multipart([peer, empty, reply if isinstance(reply, bytes)
                                       else json.dumps(reply).encode()])
        socket.close()

    def end(self):
        self.ended.set()
        self.thread.join()


COUNT = itertools.count()
JUMPS = itertools.cycle([1e300, -1e300, 1e308, 0])
PENDING = dict(ok=True, pending=True, record=dict(active=True), record_last=dict(saving=True),
               phase="draining")
ENDLESS = {  # how a daemon may never come to an end, and the commands that wait for one
    "pending for ever": (lambda r: PENDING, ["start", "stop", "record start", "record stop",
                                             "record last x"]),
    "busy for ever": (lambda r: dict(ok=False, busy=True, error="busy"),
                      ["start", "stop", "record start", "set a b"]),
    "huge numbers that jump": (lambda r: dict(PENDING, bytes_written=next(JUMPS), bscans_done=1e308),
                               ["stop", "record stop", "record last"]),
    "pictures that go on while the disk stands": (lambda r: dict(PENDING, bscans_done=next(COUNT)),
                                                  ["record stop"]),
    "wrong types": (lambda r: dict(PENDING, bytes_written="x", bscans_done=[], record_last=7),
                    ["stop", "record stop"]),
}


def start(liar, command):
    began = time.monotonic()
    return command, began, subprocess.Popen(
        [program("octctl"), *command.split(), "--endpoint", liar.endpoint, "--wait", str(WAIT_S),
         "--timeout", str(TIMEOUT_S)],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def finish(process):
    """(status, stdout, stderr); one that does not end is ended."""
    try:
        out, err = process.communicate(timeout=WAIT_S + TIMEOUT_S + SLACK_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise AssertionError("still waiting") from None
    return process.returncode, out.decode(), err.decode()


@case
def what_never_ends_is_given_up():
    """pending or busy for ever, huge numbers, wrong types: each command ends with a message"""
    liars = {name: Liar(answer) for name, (answer, _) in ENDLESS.items()}
    running = [(name, *start(liars[name], command))
               for name, (_, commands) in ENDLESS.items() for command in commands]
    try:
        for name, command, began, process in running:
            status, out, err = finish(process)
            if name == "wrong types" and command == "record last":
                continue
            assert status == 1 and err.count("\n") == 1, (name, command, status, err)
            assert "not done after" in err and "octctl status" in err, (name, command, err)
    finally:
        for liar in liars.values():
            liar.end()


@case
def what_gets_on_is_waited_for():
    """counts that rise are waited for beyond --wait, until it is done"""
    began = time.monotonic()
    done_s = 4 * WAIT_S

    def answer(request):
        is_over = time.monotonic() - began > done_s
        return dict(ok=True, pending=not is_over, bytes_written=next(COUNT), phase="idle",
                    record=dict(active=not is_over), record_last=dict(saving=not is_over, error="",
                                                                      file="a.h5", bscans_saved=1))
    liar = Liar(answer)
    try:
        for command, _, process in [start(liar, c) for c in ("stop", "record stop", "record last")]:
            status, out, err = finish(process)
            assert status == 0 and not err, (command, status, err)
    finally:
        liar.end()


@case
def nonsense_answers_are_refused():
    """no JSON, JSON of another type, a huge reply, none at all, letters that steer a terminal"""
    answers = [b"", b"[]", b"7", b"\xff\xfe", b"{", b"nothing", b"[" * 100000, b'"' + b"x" * 300000]
    liar = Liar(lambda r: answers[next(COUNT) % len(answers)])
    huge, silent = Liar(lambda r: b" " * (64 << 20) + b"{}"), Liar(lambda r: None)
    escape = Liar(lambda r: {"ok": True, "a\x1b[2J": "b\x1b[2J\x07\nc"})
    liars = [liar, huge, silent, escape]
    try:
        running = [start(liar, "status") for _ in range(2 * len(answers))]
        for _, _, process in running:
            status, out, err = finish(process)
            assert status == 1 and "no JSON object" in err, (status, out, err)
        for one in (huge, silent):
            status, out, err = finish(start(one, "status")[2])
            assert status == 1 and "no daemon answers" in err, (status, err)
        status, out, err = finish(start(escape, "status --all")[2])
        assert status == 0 and "b?[2J??c" in out and not re.search(r"[^\n -~]", out), out
    finally:
        for one in liars:
            one.end()


main()
