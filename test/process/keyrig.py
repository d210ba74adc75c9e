"""What the tests of keys share: folders of pairs, an octd that lets in only who has one, clients
that speak with one, and a monitor that tells when a connection was cut."""
import numpy as np
import zmq.auth
from zmq.utils.monitor import parse_monitor_message
from octtest import *

N, M, V = 832, 60, 8
HERE = os.environ.get("TMPDIR", "/tmp")

BASE = settings(scan=dict(lines=M, bscans=V), pipeline=dict(crop_last=300, backend="cpu"),
                calibration=dict(wavelengths=calibration(N)))
LINES = np.random.default_rng(1).integers(100, 4000, (2 * V * M, N)).astype("<u2")


class Keys:
    """A folder of pairs made by octctl keygen."""

    def __init__(self, name):
        self.folder = folder(name)
        self.allowed = self.folder + "/allowed"

    def make(self, name):
        status, out, err = run("octctl", "keygen", f"{self.folder}/{name}")
        assert status == 0, err
        return self.secret(name)

    def secret(self, name):
        return f"{self.folder}/{name}.key_secret"

    def public(self, name):
        return f"{self.folder}/{name}.key"

    def allow(self, *arguments):
        return run("octctl", "allow", *arguments, "--set", f"security.allowed={self.allowed}")

    def client(self, name):
        """The settings of a client program."""
        return settings(security=dict(client_key=self.secret(name),
                                      server_public=self.public("octd")))


class KeyedContext(zmq.Context):
    """Every socket speaks with the key of `pair` to the server of `server`; None: plain."""
    pair = server = None

    def socket(self, *args, **kw):
        made = super().socket(*args, **kw)
        if KeyedContext.pair and made.type in (zmq.REQ, zmq.PUSH, zmq.SUB):
            made.curve_publickey, made.curve_secretkey = KeyedContext.pair
            made.curve_serverkey = KeyedContext.server
        return made


def speak_as(keys, name, server="octd"):
    KeyedContext.pair = zmq.auth.load_certificate(keys.secret(name)) if name else None
    KeyedContext.server = zmq.auth.load_certificate(keys.public(server))[0]


def endpoints(host="127.0.0.1"):
    return {name: f"tcp://{host}:{free_port()}" for name in ("ingest", "publish", "control")}


class Guarded(Daemon):
    """An octd with keys, on tcp; the clients it makes speak as `name`."""

    def __init__(self, keys, name="alice", where=None, *arguments):
        at = where or endpoints()
        words = settings(**{k: dict(endpoint=v) for k, v in at.items()})
        super().__init__(*BASE, *words, *settings(security=dict(
            server_key=keys.secret("octd"), allowed=keys.allowed)), *arguments, wait=False)
        self.context = KeyedContext()
        self.ingest, self.publish, self.control = (v.replace("*", "127.0.0.1") for v in at.values())
        self.common = settings(ingest=dict(endpoint=self.ingest),
                               publish=dict(endpoint=self.publish),
                               control=dict(endpoint=self.control))
        speak_as(keys, name)
        try:
            self.ask("status")
        except Exception:
            self.kill()
            raise

    def hears(self, kind, timeout_s=1.0):
        """Whether a client of this kind, as the keys are now, gets anywhere."""
        if kind == "control":
            with self.context.socket(zmq.REQ) as s:
                s.linger = 0
                s.connect(self.control)
                s.send(b'{"cmd":"status"}')
                return bool(s.poll(timeout_s * 1000))
        if kind == "publish":
            with self.context.socket(zmq.SUB) as s:
                s.linger = 0
                s.subscribe(b"")
                s.connect(self.publish)
                return bool(s.poll(timeout_s * 1000))
        with self.context.socket(zmq.PUSH) as s:
            s.linger = 0
            s.connect(self.ingest)
            s.send_multipart([b"junk", b"junk"])
            time.sleep(timeout_s)
            return False  # the caller looks at the counts


def standard(name, *clients):
    keys = Keys(name)
    for who in ("octd", *clients):
        keys.make(who)
    for who in clients:
        assert keys.allow(keys.public(who))[0] == 0
    return keys


def refused(daemon):
    return daemon.status()["security"]["refused"]


def send_volume(daemon, epoch, first=0, flags=1):
    sender = Sender(daemon, epoch)
    lines = LINES[:V * M].reshape(V, M, N)
    for b in range(V):
        sender.send(lines[b], first + b * M, flags=flags if b == 0 else 0)
    return sender


def disconnects(monitor, timeout_s):
    """Seconds until the monitor tells of a disconnection; None: never."""
    began = time.monotonic()
    while time.monotonic() < began + timeout_s:
        if monitor.poll(50) and \
                parse_monitor_message(monitor.recv_multipart())["event"] == zmq.EVENT_DISCONNECTED:
            return time.monotonic() - began
    return None
