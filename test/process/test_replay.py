"""octctl replay: every byte, gaps, slow and stuck receivers, every error's text."""
import json, re, signal, subprocess, time

import numpy as np, zmq

from octctlrig import *
from octtest import until


def test_replay_bytes():
    path, samples = make_raw("b.raw", 6)
    for block in (1, 7, M, 1000):
        result, got = play("p1", path, *SMALL, "--rate", 0, "--block", block)
        joined = np.concatenate([m["data"] for m in got])
        check(result[0] == 0 and np.array_equal(joined, samples)
              and [m["first"] for m in got] == list(range(0, 6 * M, block))
              and [m["sequence"] for m in got] == list(range(len(got)))
              and len({m["epoch"] for m in got}) == 1 and got[0]["samples"] == N
              and {m["format"] for m in got} == {2},
              f"blocks of {block} lines carry every byte, numbered", result)
        flags = [m["flags"] for m in got]
        expected = [1] + [0] * (len(got) - 2) + [2] if len(got) > 1 else [3]
        check(flags == expected, f"with blocks of {block} the first starts and the last ends",
              flags)
    _, first = play("p2", path, *SMALL, "--rate", 0)
    _, second = play("p2", path, *SMALL, "--rate", 0)
    check(first[0]["lines"] == M, "a block is one B-scan unless told otherwise")
    check(first[0]["epoch"] != second[0]["epoch"], "every start has an epoch of its own")


def test_replay_gaps():
    path, samples = make_h5("g.h5", valid=[0, 1, 0, 1])
    result, got = play("p3", path, "--rate", 0)
    numbers = lines_by_number(got)
    expected = [*range(M, 2 * M), *range(3 * M, 4 * M)]
    check(result[0] == 0 and sorted(numbers) == expected
          and all(np.array_equal(numbers[i], samples[i]) for i in expected),
          "B-scans that were not recorded become gaps in first_line", (result, sorted(numbers)))
    result, got = play("p3", path, "--rate", 0, "--block", 25)
    numbers = lines_by_number(got)
    check(sorted(numbers) == expected and [m["first"] for m in got] == [M, 3 * M] and
          all(np.array_equal(numbers[i], samples[i]) for i in expected),
          "gaps within a block split it", [(m["first"], m["lines"]) for m in got])
    check([m["flags"] for m in got] == [1, 2], "the flags sit on what is sent", got)
    check("20 lines missing" in result[1], "the summary counts the gap", result[1])
    path, _ = make_h5("t.h5", valid=[1, 1, 1, 0])
    result, got = play("p3", path, "--rate", 0)
    check(got[-1]["flags"] == 2 and got[-1]["lines"] == 0 and got[-1]["first"] == 4 * M,
          "an end in a gap is an empty message with the flag", got[-1])


def test_replay_loop():
    path, samples = make_raw("l.raw", 3)
    receiver = Receiver("p4")
    process = subprocess.Popen([OCTCTL, "replay", path, *SMALL, "--loop", "--rate", "1000",
                                "--to", receiver.endpoint, "--json"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until(lambda: len(receiver.messages) >= 8, "eight messages")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE_S)
    got = receiver.finish()
    numbers = lines_by_number(got)
    check(process.returncode == 0 and sorted(numbers) == list(range(len(numbers)))
          and len(numbers) > 60
          and all(np.array_equal(v, samples[i % 30]) for i, v in numbers.items()),
          "--loop goes on numbering and begins again", (process.returncode, err))
    check([m["flags"] for m in got] == [1] + [0] * (len(got) - 2) + [2] and got[-1]["lines"] == 0,
          "SIGINT ends with the end flag", [m["flags"] for m in got])
    summary = json.loads(out)
    check(summary["interrupted"] and summary["lines_sent"] == len(numbers)
          and summary["lines_undelivered"] == 0, "the summary counts what was sent", out)


def test_replay_slow():
    path = TMP + "/s.raw"
    np.zeros(40 << 20, "u1").tofile(path)  # 40 MiB: more than what sockets and queues take up
    small = ("--set", "camera.samples=1024", "--set", "scan.lines=128", "--set", "scan.bscans=10")
    endpoint = f"ipc://{TMP}/slow"
    context = zmq.Context()
    socket = context.socket(zmq.PULL)
    socket.rcvhwm = 1
    socket.bind(endpoint)
    process = subprocess.Popen([OCTCTL, "replay", path, *small, "--rate", "100000", "--strict",
                                "--to", endpoint], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True)
    n = 0
    socket.poll(1000 * PATIENCE_S)  # it has begun
    time.sleep(0.7)
    while process.poll() is None:
        while socket.poll(20):
            socket.recv_multipart()
            n += 1
    out, err = process.communicate()
    while socket.poll(100):
        socket.recv_multipart()
        n += 1
    socket.close(0)
    context.term()
    check(n == 160, "a slow receiver still gets everything", n)
    check(re.search(r"fell behind by \d+\.\d+ s, \d+ times?: the receiver or this machine is too "
                    "slow", out) and len(re.findall("behind schedule", err)) == 1,
          "falling behind is told once and in the summary", out + err)
    check(process.returncode == 1 and "rate was not kept" in err,
          "--strict makes it a failure", err)


def test_replay_gone():
    """octd goes away and comes back: what held the camera up is octd, not a slow machine."""
    endpoint, context = f"ipc://{TMP}/gone", zmq.Context()
    process = subprocess.Popen([OCTCTL, "replay", TMP + "/s.raw", "--set", "camera.samples=1024",
                                "--set", "scan.lines=128", "--rate", "10000", "--to", endpoint],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for stays_s in (0.1, PATIENCE_S):
        socket = context.socket(zmq.PULL)
        socket.rcvhwm = 1
        socket.bind(endpoint)
        socket.poll(1000 * PATIENCE_S)  # it has begun, or again
        until = time.monotonic() + stays_s
        while process.poll() is None and time.monotonic() < until:
            if socket.poll(20):
                socket.recv_multipart()
        socket.close(0)
        time.sleep(3 if stays_s < 1 else 0)
    out, err = process.communicate(timeout=PATIENCE_S)
    context.term()
    check(process.returncode == 0 and re.findall("takes no lines at (.*)", err) == [endpoint]
          and "octd took no lines" in out and "too slow" not in out,
          "an octd that is away is named as such", out + err)


def test_replay_errors():
    path, _ = make_raw("e.raw", 2)
    started = time.monotonic()
    refused("without a daemon replay names the endpoint", 1,
            f"no daemon takes lines at ipc://{TMP}/none after 0.3 s", "replay", path, *SMALL,
            "--to", f"ipc://{TMP}/none", "--wait", "0.3")
    took_s = time.monotonic() - started
    check(took_s < 10, "--wait is kept, not its default", took_s)
    refused("an endpoint of an unknown kind is refused", 2, "endpoint 'carrier:pigeon'", "replay",
            path, *SMALL, "--to", "carrier:pigeon")
    refused("a negative rate is refused", 2, "--rate", "replay", path, "--rate", "-5")
    refused("a block of nothing is refused", 2, "--block", "replay", path, "--block", "0")
    refused("a block beyond the daemon's limit is refused", 2, "ingest.max_message_mb", "replay",
            path, *SMALL, "--block", "1000000000")
    refused("replay wants a recording", 2, "which recording", "replay", "--loop")
    refused("a second recording is refused", 2, "unexpected argument", "replay", path, path)
    refused("a raw file that does not fit is refused", 1, "bytes too many", "replay", path, *SMALL,
            "--set", "file.header_bytes=1")
    path, _ = make_h5("e.h5")
    refused("a volume of another geometry names file, key and both values", 2,
            r"e\.h5: .*scan\.lines = 10, .* 11", "replay", path, "--set", "scan.lines=11")
    path, _ = make_h5("n.h5", spectra=False)
    refused("a volume without spectra is refused", 1, "n.h5: .*no spectra", "replay", path)


def test_replay_undelivered():
    """The daemon is there, then stops taking lines for good."""
    path = TMP + "/s.raw"
    endpoint = f"ipc://{TMP}/stuck"
    context = zmq.Context()
    socket = context.socket(zmq.PULL)
    socket.rcvhwm = 1
    socket.bind(endpoint)
    done = octctl("replay", path, "--set", "camera.samples=1024", "--set", "scan.lines=512",
                  "--rate", "0", "--to", endpoint)
    socket.close(0)
    context.term()
    check(done[0] == 1 and re.search(r"\d+ messages \(\d+ lines\) were not delivered", done[2]),
          "what a stuck daemon did not take is counted", done)


main(test_replay_bytes, test_replay_gaps, test_replay_loop, test_replay_slow, test_replay_gone,
     test_replay_errors, test_replay_undelivered)
