#!/usr/bin/python3
"""Hostile bytes where keys do not help: names that lead elsewhere, messages without end, requests
that are none; and what the systemd unit leaves an intruder."""
import glob, re, shutil, socket
import h5py
from keyrig import *


@case
def recordings_stay_in_their_folder():
    """no name that a client gives leads a recording out of the record folder, or to a shell"""
    hostile = ["../../out", "/etc/out", "..", ".", "a/b", "a\\b", "$(touch pwned)", "`touch pwned`",
               "; touch pwned", "%s%n%x", "-rf", "~root", "CON", "a" * 127, "ä ö", "a b|c", "\u202e"]
    with Daemon(*BASE) as daemon:
        daemon.wait(lambda s: s["state"] == "running")
        for number, name in enumerate(hostile):
            reply = daemon.ask("set", key="record.pseudonym", value=name)
            if not reply["ok"]:
                continue
            before = daemon.status()["volumes_written"]
            reply = daemon.ask("record", action="start")
            assert reply["ok"], (name, reply)
            send_volume(daemon, 1 + number)
            daemon.wait(lambda s: s["volumes_written"] == before + 1)
            assert daemon.ask("record", action="stop")["ok"]
            daemon.wait(lambda s: not s["record"]["active"])
            path = daemon.status()["record"]["file"]
            assert os.path.dirname(os.path.realpath(path)) == os.path.realpath(daemon.records), path
            with h5py.File(path) as file:
                kept = file.attrs["pseudonym"]
                assert (kept if isinstance(kept, str) else kept.decode()) == name, (name, kept)
        for eye in ("../OD", "OD/../../x", "od"):
            assert not daemon.ask("set", key="record.eye", value=eye)["ok"]
        for name in ("a\nb", "a\0b", "\x1b[2J", "a" * 128):
            assert not daemon.ask("set", key="record.pseudonym", value=name)["ok"], name
        found = [os.path.join(d, f) for d, _, files in os.walk(HERE) for f in files
                 if f.endswith((".h5", ".part")) or f == "pwned"]
        assert all(f.startswith(daemon.records + "/") and f.endswith(".h5") for f in found), found
        assert len(found) >= 10, found
        for place in (os.getcwd(), "/etc", os.path.dirname(daemon.records)):
            assert not glob.glob(place + "/out_*") and not os.path.exists(place + "/pwned")


def memory_kib(daemon):
    return int(re.search(r"VmRSS:\s+(\d+)", open(f"/proc/{daemon.process.pid}/status").read())[1])


def send_without_end(endpoint, mechanism, most_bytes=64 << 20):
    """A raw peer: a greeting, then parts of one message that has no last one. The bytes that could
    be sent before the daemon ended the connection; None: it never did."""
    part = b"\x03" + (60000).to_bytes(8, "big") + bytes(60000)
    sent = 0
    with socket.create_connection(("127.0.0.1", int(endpoint.split(":")[-1])), PATIENCE_S) as s:
        try:
            s.sendall(b"\xff" + bytes(8) + b"\x7f\x03\x00" + mechanism.ljust(20, b"\0") + bytes(32))
            while sent < most_bytes:
                s.sendall(part)
                sent += len(part)
        except (BrokenPipeError, ConnectionResetError):
            return sent
    return None


@case
def nobody_fills_the_memory_from_outside():
    """a peer that has no key and sends a message without end is ended by the handshake, and takes
    no memory"""
    keys = standard("endless", "alice")
    with Guarded(keys) as daemon:
        daemon.wait(lambda s: s["state"] == "running")
        before = memory_kib(daemon)
        for endpoint in (daemon.ingest, daemon.publish, daemon.control):
            for mechanism in (b"NULL", b"CURVE", b"PLAIN"):
                sent = send_without_end(endpoint, mechanism)
                assert sent is not None, (endpoint, mechanism)
                print(f"# {mechanism.decode()}: {sent} bytes", flush=True)
        assert memory_kib(daemon) < before + (20 << 10), (before, memory_kib(daemon))
        assert daemon.status()["state"] == "running"


@case
def messages_are_bounded():
    """a message beyond the bound ends its connection on every socket, and nothing else"""
    with Daemon(*BASE, "--set", "ingest.max_message_mb=1") as daemon:
        before = memory_kib(daemon)
        for kind, endpoint, parts in (
                (zmq.DEALER, daemon.control, [b"", b" " * 70000]),
                (zmq.DEALER, daemon.control, [b" " * (64 << 20)]),
                (zmq.PUSH, daemon.ingest, [bytes(64), bytes((1 << 20) + 1)]),
                (zmq.PUSH, daemon.ingest, [bytes(256 << 20)])):
            s = daemon.context.socket(kind)
            s.linger = 0
            monitor = s.get_monitor_socket(zmq.EVENT_DISCONNECTED)
            s.connect(endpoint)
            s.send_multipart(parts)
            assert disconnects(monitor, PATIENCE_S) is not None, (kind, len(parts[-1]))
            s.disable_monitor()
            s.close()
        s = daemon.context.socket(zmq.SUB)
        monitor = s.get_monitor_socket(zmq.EVENT_DISCONNECTED)
        s.connect(daemon.publish)
        s.subscribe(b"x" * 5000)
        assert disconnects(monitor, PATIENCE_S) is not None
        # As many parts as one likes are still one message of no use.
        s = daemon.context.socket(zmq.PUSH)
        s.connect(daemon.ingest)
        s.send_multipart([b"x"] * 20000)
        daemon.wait(lambda s: s["messages_bad"]["parts"] == 1)
        assert memory_kib(daemon) < before + (150 << 10), (before, memory_kib(daemon))
        assert daemon.status()["state"] == "running"


@case
def control_is_parsed_and_checked():
    """hostile requests get a refusal each; keys outside the table, paths and shells come to
    nothing"""
    deep = b'{"cmd":' * 20000
    requests = [b"", b"\0", b"null", b"[]", b"1e999", b'"status"', b'{"cmd":"status"', deep,
                b"[" * 60000, b'{"cmd":null}', b'{"cmd":["status"]}', b'{"cmd":"; id"}',
                b'{"cmd":"$(id)"}', b'{"cmd":"set","key":"../../etc","value":"1"}',
                b'{"cmd":"set","key":"record","value":"x"}',
                b'{"cmd":"set","key":"record.directory.x","value":"x"}',
                b'{"cmd":"set","key":"' + b"a" * 5000 + b'.b","value":"x"}',
                b'{"cmd":"set","key":"ingest.endpoint","value":"tcp://*:1"}',
                b'{"cmd":"set","key":"security.allowed","value":"/tmp"}',
                b'{"cmd":"set","key":"security.server_key","value":""}',
                b'{"cmd":"set","key":"camera.samples","value":1e300}',
                b'{"cmd":"set","key":"camera.samples","value":{"a":1}}',
                b'{"cmd":"get","key":"%n%s"}', b'{"cmd":"record","action":"start; id"}',
                b'{"cmd":"status"}{"cmd":"shutdown"}', b'{"cmd":"status"}\0{"cmd":"shutdown"}',
                b'\xff\xfe{"cmd":"status"}', b'{"cmd":"\\u0000shutdown"}',
                b'{"cmd":"shutdown\\u0000"}', b'{"cmd":"set","key":"record.eye","value":"OD\\u0000x"}',
                b'{"cmd":"shutdown\0"}']
    with Daemon(*BASE) as daemon:
        for request in requests:
            s = daemon.context.socket(zmq.REQ)
            s.linger = 0
            s.connect(daemon.control)
            s.send(request)
            if len(request) > 65536:
                assert not s.poll(300), request[:40]
            else:
                assert s.poll(PATIENCE_S * 1000), request[:40]
                reply = json.loads(s.recv())
                assert reply["ok"] is False and isinstance(reply["error"], str), request[:40]
                assert len(reply["error"]) < 600
            s.close()
        children = open(f"/proc/{daemon.process.pid}/task/{daemon.process.pid}/children").read()
        assert children == "", children
        assert daemon.status()["state"] == "running"
        symbols = subprocess.run(["nm", "-D", "--undefined-only", program("octd")],
                                 capture_output=True, check=True).stdout.decode()
        for function in ("system", "popen", "execve", "execvp", "execlp", "posix_spawn"):
            assert not re.search(rf"\bU {function}\b", symbols), function


@case
def the_unit_is_hardened():
    """the systemd unit verifies, keeps its restrictions and exposes little"""
    unit = folder("unit") + "/octd.service"
    text = open(TOP + "/config/octd.service").read()
    with open(unit, "w") as file:
        file.write(text.replace("@PREFIX@/bin/octd", os.path.abspath(program("octd")))
                   .replace("Documentation=man:octd(1)\n", ""))
    for line in ("NoNewPrivileges=yes", "ProtectSystem=strict", "PrivateTmp=yes",
                 "LimitMEMLOCK=infinity", "DynamicUser=yes", "CapabilityBoundingSet=",
                 "MemoryMax=90%"):
        assert re.search(rf"^{line}$", text, re.M), line
    if not shutil.which("systemd-analyze"):
        raise Skip("no systemd-analyze")
    done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    done = subprocess.run(["systemd-analyze", "security", "--offline=true", "--threshold=20",
                           "--no-pager", unit], capture_output=True, timeout=PATIENCE_S)
    assert done.returncode == 0, (done.stdout[-300:], done.stderr)


if __name__ == "__main__":
    main()
