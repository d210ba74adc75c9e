#!/usr/bin/python3
"""A simulated camera: pushes one volume into octd.

    push_lines.py [--samples N] [--packed] [ENDPOINT [N_BSCANS [CLIENT.key_secret OCTD.key]]]

--packed sends 12 bits packed, GenICam's Mono12p. The two files are keys made by octctl keygen, for a daemon with security.server_key."""
import os, struct, sys, time
import numpy as np, zmq, zmq.auth

N, M, RATE_HZ = 832, 240, 50000  # camera.samples, scan.lines, A-lines a second
if sys.argv[1:2] == ["--samples"]:
    N = int(sys.argv[2])
    del sys.argv[1:3]
PACKED = sys.argv[1:2] == ["--packed"]
if PACKED:
    del sys.argv[1:2]
ENDPOINT = sys.argv[1] if len(sys.argv) > 1 else "tcp://127.0.0.1:5701"
N_BSCANS = int(sys.argv[2]) if len(sys.argv) > 2 else 240
STARTS, ENDS, FORMAT = 1, 2, 3 if PACKED else 2

context = zmq.Context()
socket = context.socket(zmq.PUSH)
socket.sndhwm = 8        # B-scans that may wait; ZeroMQ's own 1000 would hide a daemon that hangs
socket.sndtimeo = 10000  # ms that send waits for room
socket.linger = 10000    # ms that context.term() waits for what is still on its way
monitor = socket.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED)
try:
    if len(sys.argv) > 4:
        socket.curve_publickey, socket.curve_secretkey = zmq.auth.load_certificate(sys.argv[3])
        socket.curve_serverkey, _ = zmq.auth.load_certificate(sys.argv[4])
    socket.connect(ENDPOINT)
except (OSError, ValueError, zmq.ZMQError) as error:
    sys.exit(f"push_lines: {ENDPOINT}: {error}")
if not monitor.poll(10000):
    sys.exit(f"push_lines: no daemon at {ENDPOINT} within 10 s")
socket.disable_monitor()
monitor.close()
epoch = int.from_bytes(os.urandom(4), "little")  # a new one each time the sender starts
t = np.linspace(-1, 1, N)
source = 20000 * np.exp(-4 * t * t)  # the light source's spectrum, in camera counts
for b in range(N_BSCANS):
    depth = 60 + 20 * np.sin(2 * np.pi * (np.arange(M) / M + b / N_BSCANS))  # a wavy mirror
    lines = (source * (1 + 0.3 * np.cos(np.pi * np.outer(depth, t)))).astype("<u2")
    if PACKED:  # of 16 bits the upper 12; two samples in three bytes
        a, c = lines[:, 0::2] >> 4, lines[:, 1::2] >> 4
        lines = np.stack([a & 255, a >> 8 | (c & 15) << 4, c >> 4], -1).astype("u1")
    flags = (STARTS if b == 0 else 0) | (ENDS if b == N_BSCANS - 1 else 0)
    header = struct.pack("<4sHHQQQIIHHII12x", b"OCTL", 1, 64, b, time.monotonic_ns(), b * M,
                         M, N, FORMAT, flags, epoch, 0)  # 0: no CRC-32C; 12 reserved bytes
    try:
        socket.send_multipart([header, lines.tobytes()])
    except zmq.Again:
        sys.exit(f"push_lines: the daemon at {ENDPOINT} has taken nothing for 10 s")
    time.sleep(M / RATE_HZ)
socket.close()
context.term()  # Python's own end waits for nothing
