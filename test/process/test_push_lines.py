"""The examples of camera drivers, scripts/push_lines in C and Python, against who takes lines as
octd does."""
import struct, subprocess, time

import numpy as np, zmq

from octcrc import crc32c_rows
from octctlrig import *
from octtest import TOP

PUSH_LINES = {"Python": ["/usr/bin/python3", TOP + "/scripts/push_lines.py"],
              "C": [BUILD + "/push_lines"]}


def test_push_lines():
    for name, command in PUSH_LINES.items():
        receiver = Receiver("p6")
        try:
            done = subprocess.run([*command, receiver.endpoint, "5"], capture_output=True,
                                  text=True, timeout=PATIENCE_S)
        finally:
            got = receiver.finish()
        numbers = lines_by_number(got)
        data = [m["data"] for m in got if m["lines"]]
        check(done.returncode == 0 and sorted(numbers) == list(range(5 * 240))
              and got[0]["flags"] & 1 and got[-1]["flags"] & 2 and data[0].shape == (240, 832)
              and 10000 < data[0].max() < 60000 and not np.array_equal(data[0], data[1]),
              f"the {name} example pushes what the contract asks for", done.stderr)
        with_crc = [m for m in got if m["crc"]]
        check(all(crc32c_rows(m["data"][None])[0] == m["crc"] for m in with_crc[:1])
              and (name == "Python") != bool(with_crc),
              f"the {name} example's check sum is right or absent")


def test_push_lines_of_another_size():
    """--lines and --samples, as octd's scan.lines and camera.samples; --help says them"""
    for name, command in PUSH_LINES.items():
        receiver = Receiver("p7")
        try:
            done = subprocess.run([*command, "--samples", "64", "--lines", "7", receiver.endpoint,
                                   "3"], capture_output=True, text=True, timeout=PATIENCE_S)
        finally:
            data = [m["data"].shape for m in receiver.finish() if m["lines"]]
        check(done.returncode == 0 and data == [(7, 64)] * 3,
              f"the {name} example sends B-scans of the size it is told", (data, done.stderr))
        said = {option: subprocess.run([*command, option], capture_output=True, text=True,
                                       timeout=PATIENCE_S) for option in ("--help", "--frob")}
        check(said["--help"].returncode == 0 and said["--frob"].returncode == 2
              and all(word in said["--help"].stdout for word in ("usage: ", "--samples", "--lines"))
              and said["--frob"].stderr.startswith("usage: "),
              f"the {name} example says how it is called", said)


def test_push_lines_refused():
    for what, endpoint, *keys in (("endpoint", "nonsense"),
                                  ("key file", f"ipc://{TMP}/none", TMP + "/no.key_secret", TMP)):
        done = subprocess.run([*PUSH_LINES["Python"], endpoint, "5", *keys], capture_output=True,
                              text=True, timeout=PATIENCE_S)
        check(done.returncode == 1 and done.stderr.startswith("push_lines: ")
              and done.stderr.count("\n") == 1, f"a wrong {what} is one line", done.stderr)


def push_five(name, where):
    return subprocess.Popen([*PUSH_LINES[name], f"ipc://{TMP}/{where}", "5"], text=True,
                            stderr=subprocess.PIPE)


def test_push_lines_late():
    """The daemon comes a second after the camera and takes nothing for another: nothing is lost,
    and nothing is sent where nobody ever comes."""
    late = {name: push_five(name, "late" + name) for name in PUSH_LINES}
    nowhere = {name: push_five(name, "nowhere") for name in PUSH_LINES}
    time.sleep(1)
    context, sockets = zmq.Context(), {}
    for name in late:
        sockets[name] = context.socket(zmq.PULL)
        sockets[name].rcvhwm = 1
        sockets[name].bind(f"ipc://{TMP}/late{name}")
    time.sleep(1)
    for name in ("C", "Python"):  # that in C waits for 10 s, however slow the other one is
        numbers, flags = [], 0
        while not flags & 2 and sockets[name].poll(PATIENCE_S * 1000):
            header = sockets[name].recv_multipart()[0]
            flags = struct.unpack_from("<H", header, 42)[0]
            if struct.unpack_from("<I", header, 32)[0]:
                numbers.append(struct.unpack_from("<Q", header, 8)[0])
        said = late[name].communicate(timeout=PATIENCE_S)[1]
        check(numbers == list(range(5)) and late[name].returncode == 0,
              f"the {name} example waits for a daemon that is late and slow", (numbers, said))
    for name in nowhere:
        said = nowhere[name].communicate(timeout=PATIENCE_S)[1]
        check(nowhere[name].returncode == 1 and said.count("\n") == 1 and "nowhere" in said,
              f"the {name} example says that no daemon is there", said)
    context.destroy(linger=0)


main(test_push_lines, test_push_lines_of_another_size, test_push_lines_refused, test_push_lines_late)
