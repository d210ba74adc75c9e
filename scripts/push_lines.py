#!/usr/bin/python3
"""A simulated camera: pushes one volume into octd, or scans what octd asks for."""
import argparse, json, os, struct, sys, time

RATE_HZ = 50000  # A-lines a second
read = argparse.ArgumentParser(description=__doc__)
read.add_argument("--samples", type=int, default=832, metavar="N", help="camera.samples (832)")
read.add_argument("--lines", type=int, default=240, metavar="M",
                  help="scan.lines: A-lines a B-scan, and a message (240)")
read.add_argument("--packed", action="store_true",
                  help="send 12 bits packed, GenICam's Mono12p")
read.add_argument("--follow", nargs=2, metavar=("PUBLISH", "CONTROL"),
                  help="octd's publish.endpoint and control.endpoint: mirrors are driven by what "
                  "octd says until Ctrl-C; --lines and BSCANS count for nothing")
read.add_argument("endpoint", nargs="?", default="tcp://127.0.0.1:5701", metavar="ENDPOINT",
                  help="octd's ingest.endpoint (%(default)s)")
read.add_argument("bscans", nargs="?", type=int, default=240, metavar="BSCANS",
                  help="B-scans of the volume (%(default)s)")
read.add_argument("keys", nargs="*", metavar="KEY",
                  help="CLIENT.key_secret OCTD.key, made by octctl keygen, for a daemon with "
                  "security.server_key")
given = read.parse_args()
if len(given.keys) not in (0, 2):
    read.error("two keys, or none")
N, M, ENDPOINT, N_BSCANS = given.samples, given.lines, given.endpoint, given.bscans
STARTS, ENDS, FOLLOWS, FORMAT = 1, 2, 4, 3 if given.packed else 2

import numpy as np, zmq, zmq.auth  # below the options: --help needs neither

context = zmq.Context()


def connect(kind, endpoint):
    s = context.socket(kind)
    s.sndhwm = 8        # B-scans that may wait; ZeroMQ's own 1000 would hide a daemon that hangs
    s.sndtimeo = 10000  # ms that send waits for room
    s.linger = 10000    # ms that context.term() waits for what is still on its way
    try:
        if given.keys:
            s.curve_publickey, s.curve_secretkey = zmq.auth.load_certificate(given.keys[0])
            s.curve_serverkey, _ = zmq.auth.load_certificate(given.keys[1])
        monitor = s.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED)
        s.connect(endpoint)
    except (OSError, ValueError, zmq.ZMQError) as error:
        sys.exit(f"push_lines: {endpoint}: {error}")
    if not monitor.poll(10000):
        sys.exit(f"push_lines: no daemon at {endpoint} within 10 s")
    s.disable_monitor()
    monitor.close()
    return s


t = np.linspace(-1, 1, N)
source = 20000 * np.exp(-4 * t * t)  # the light source's spectrum, in camera counts
socket = connect(zmq.PUSH, ENDPOINT)


def send(depth, number, first_line, flags, epoch):
    """Lines of a mirror at these depths, in pixels."""
    lines = (source * (1 + 0.3 * np.cos(np.pi * np.outer(depth, t)))).astype("<u2")
    if given.packed:  # of 16 bits the upper 12; two samples in three bytes
        a, c = lines[:, 0::2] >> 4, lines[:, 1::2] >> 4
        lines = np.stack([a & 255, a >> 8 | (c & 15) << 4, c >> 4], -1).astype("u1")
    header = struct.pack("<4sHHQQQIIHHII12x", b"OCTL", 1, 64, number, time.monotonic_ns(),
                         first_line, len(depth), N, FORMAT, flags, epoch,
                         0)  # 0: no CRC-32C; 12 reserved bytes
    try:
        socket.send_multipart([header, lines.tobytes()])
    except zmq.Again:
        sys.exit(f"push_lines: the daemon at {ENDPOINT} has taken nothing for 10 s")
    time.sleep(len(depth) / RATE_HZ)


def way_of_mirrors(control, scan):
    """What octd wants the mirrors to do: V of x and y, line by line of a volume."""
    way = np.empty((0, 2))
    while len(way) < scan["sent_lines"]:
        control.send_json({"cmd": "scan", "first": len(way)})
        page = control.recv_json()
        if page.get("busy"):  # a recording begins, say, or the scan changes
            time.sleep(0.05)
            continue
        if not page["ok"] or page["epochs"] != scan["epochs"]:
            return None  # it has changed meanwhile: the next announcement says to what
        if None in page["x_v"] + page["y_v"]:
            sys.exit("push_lines: octd knows no volts: set scan.width_um and scan.height_um")
        way = np.vstack([way, np.transpose([page["x_v"], page["y_v"]])])
    return way


SAME = "number", "epochs", "ends"  # of an octd that was started anew, numbers come again


def follow(news, control):
    """Scan after scan, as octd announces them."""
    scan = way = None
    while True:
        while news.poll(0 if way is not None else None):
            now = json.loads(news.recv_multipart()[1])
            if scan and [now[key] for key in SAME] == [scan[key] for key in SAME]:
                continue  # told again, to somebody who came later
            if way is not None:
                send([], number, line, ENDS | FOLLOWS, epoch)
            scan, number, line = now, 0, 0
            way = None if now["ends"] else way_of_mirrors(control, now)
            epoch = scan["epochs"][0] + int.from_bytes(os.urandom(2), "little")
        if way is None:
            continue
        n = scan["sent_lines"] // scan["bscans"]  # a B-scan and its flyback
        at = way[np.arange(line, line + n) % len(way)]
        is_last = scan["volumes"] and line + n == scan["volumes"] * len(way)
        send(60 + 5 * np.sin(at[:, 0]) + 3 * at[:, 1], number, line,
             FOLLOWS | (STARTS if line == 0 else 0) | (ENDS if is_last else 0), epoch)
        number, line, way = number + 1, line + n, None if is_last else way


if given.follow:
    news = connect(zmq.SUB, given.follow[0])
    news.subscribe(b"scan")
    try:
        follow(news, connect(zmq.REQ, given.follow[1]))
    except KeyboardInterrupt:
        sys.exit(0)
epoch = int.from_bytes(os.urandom(4), "little")  # a new one each time the sender starts
for b in range(N_BSCANS):
    depth = 60 + 20 * np.sin(2 * np.pi * (np.arange(M) / M + b / N_BSCANS))  # a wavy mirror
    send(depth, b, b * M, (STARTS if b == 0 else 0) | (ENDS if b == N_BSCANS - 1 else 0), epoch)
socket.close()
context.term()  # Python's own end waits for nothing
