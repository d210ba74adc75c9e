#!/usr/bin/python3
"""Who may come in: CURVE keys on all three sockets, tried by real clients with right keys, wrong
keys, no keys and keys that were taken away; and hostile bytes where keys do not help."""
import glob, re, shutil, socket, stat
import h5py
import numpy as np
import zmq.auth, zmq.utils.z85
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


@case
def only_this_machine_without_keys():
    """an endpoint that others can reach is refused at the start without keys, in one line"""
    try:
        own = socket.gethostbyname(socket.gethostname())
    except OSError:
        own = "127.0.0.1"  # a machine that does not know its own name
    far = ["tcp://*:0", "tcp://0.0.0.0:0", "tcp://[::]:0", "tcp://lo:0", "tcp://eth0:0",
           "tcp://128.0.0.1:0", "tcp://127.0.0.1.example:0", "tcp://[::ffff:127.0.0.1]:0"]
    if not own.startswith("127."):
        far.append(f"tcp://{own}:0")
    for endpoint in far:
        for section in ("ingest", "publish", "control"):
            local = settings(**{s: dict(endpoint=f"ipc://{HERE}/far-{s}")
                                for s in ("ingest", "publish", "control") if s != section})
            status, out, err = run("octd", *BASE, *local, "--set", f"{section}.endpoint={endpoint}")
            assert status == 2, (endpoint, section, status, err)
            assert err.count("\n") == 1 and f"{section}.endpoint" in err, err
            assert "security.server_key" in err and "security.allowed" in err, err
    # The same file names the line at fault.
    with open(HERE + "/far.ini", "w") as ini:
        ini.write("[publish]\nendpoint = tcp://*:5702\n")
    status, out, err = run("octd", "--config", HERE + "/far.ini", *BASE)
    assert status == 2 and "far.ini:2" in err and err.count("\n") == 1, (status, err)
    for host in ("127.0.0.1", "127.1.2.3"):
        at = endpoints(host)
        with Daemon(*BASE, *settings(ingest=dict(endpoint=at["ingest"]),
                                     publish=dict(endpoint=at["publish"]))) as daemon:
            assert daemon.status()["endpoints"]["ingest"] == at["ingest"]
            assert not daemon.status()["security"]["curve"]


@case
def keys_are_made_and_kept():
    """keygen makes a pair that others read, keeps the secret secret and replaces nothing"""
    keys = Keys("pairs")
    for mask in (0o022, 0o000, 0o077):
        before = os.umask(mask)
        try:
            keys.make(f"pair{mask}")
        finally:
            os.umask(before)
        path = keys.secret(f"pair{mask}")
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600, oct(os.stat(path).st_mode)
        public, secret = zmq.auth.load_certificate(path)
        assert zmq.curve_public(secret) == public
        assert zmq.auth.load_certificate(keys.public(f"pair{mask}")) == (public, None)
        assert stat.S_IMODE(os.stat(keys.public(f"pair{mask}")).st_mode) == 0o644
        assert secret not in open(keys.public(f"pair{mask}"), "rb").read()
    before = open(keys.secret("pair0"), "rb").read(), open(keys.public("pair0"), "rb").read()
    for lost in (None, keys.public("pair0"), keys.secret("pair0")):
        kept = open(lost, "rb").read() if lost else b""
        if lost:
            os.remove(lost)
        status, out, err = run("octctl", "keygen", keys.folder + "/pair0")
        assert status == 1 and "exists" in err and err.count("\n") == 1, (lost, status, err)
        if lost:
            assert not os.path.exists(lost)
            with open(os.open(lost, os.O_CREAT | os.O_WRONLY, 0o600), "wb") as file:
                file.write(kept)
    assert before == (open(keys.secret("pair0"), "rb").read(),
                      open(keys.public("pair0"), "rb").read())


@case
def a_bad_key_file_is_named():
    """octd refuses to start with a secret that others may read, or with none, and says which"""
    keys = standard("bad", "alice")
    os.chmod(keys.secret("octd"), 0o604)
    ends = settings(**{s: dict(endpoint=f"ipc://{HERE}/bad-{s}")
                       for s in ("ingest", "publish", "control")})

    def start(server_key, allowed=keys.allowed):
        status, out, err = run("octd", *BASE, *ends, *settings(
            security=dict(server_key=server_key, allowed=allowed)))
        assert status == 2 and err.count("\n") == 1, (server_key, status, err)
        return err

    assert "chmod 600" in start(keys.secret("octd"))
    os.chmod(keys.secret("octd"), 0o600)
    os.chmod(keys.public("octd"), 0o600)
    assert "secret-key" in start(keys.public("octd"))
    assert "none.key_secret" in start(keys.folder + "/none.key_secret")
    assert "no key file" in start("/dev/zero")
    assert "security.allowed" in start(keys.secret("octd"), keys.folder + "/nowhere")
    assert "belong together" in start("", keys.allowed)
    with open(keys.folder + "/junk.key_secret", "wb") as junk:
        junk.write(bytes(range(256)) * 4)
    os.chmod(keys.folder + "/junk.key_secret", 0o600)
    assert "secret-key" in start(keys.folder + "/junk.key_secret")
    status, out, err = run("octctl", "status", *settings(
        security=dict(client_key=keys.secret("alice"))))
    assert status == 2 and "belong together" in err, err


@case
def names_stay_in_the_folder():
    """allow: names cannot leave the folder, replace nothing, and what is listed is what is there"""
    keys = Keys("names")
    keys.make("alice"), keys.make("bob")
    public = zmq.auth.load_certificate(keys.public("alice"))[0].decode()
    os.makedirs(keys.allowed + "/sub")  # so that a path through it leads somewhere
    for name in ("../out", "a/b", "sub/../../out", "sub/../../alice",
                 "sub/in", "/etc/out", ".hidden", "", "..", "a" * 252, "a b", "a\nb", "a;b",
                 "$(id)", "ä"):
        for words in (("--name", name, keys.public("alice")), ("--name", name, public),
                      ("--remove", name)):
            status, out, err = keys.allow(*words)
            assert status in (1, 2) and err.count("\n") == 1, (name, words, status, err)
    assert os.listdir(keys.allowed) == ["sub"] and os.listdir(keys.allowed + "/sub") == []
    os.rmdir(keys.allowed + "/sub")
    assert not os.path.exists(keys.folder + "/out.key")

    assert keys.allow(keys.secret("alice"))[0] == 0  # of a pair only the public half is taken
    assert b"secret" not in open(keys.allowed + "/alice.key", "rb").read()
    assert keys.allow(keys.public("alice"))[0] == 0  # the same again
    status, out, err = keys.allow(keys.public("bob"), "--name", "alice")
    assert status == 1 and "another key" in err, err
    assert keys.allow(public)[0] == 2  # a key alone has no name
    assert keys.allow(public, "--name", "alice.2")[0] == 0
    assert keys.allow(public[:-1], "--name", "short")[0] in (1, 2)
    # As long as a file's name may be, whole: two that begin alike are two.
    for end in "xy":
        long = shutil.copy(keys.public("bob"), keys.folder + "/" + "l" * 250 + end + ".key")
        assert keys.allow(long)[0] == 0
        os.rename(long, keys.folder + "/moved.key")
        assert os.path.exists(f"{keys.allowed}/{'l' * 250}{end}.key")
        assert keys.allow("--remove", "l" * 250 + end)[0] == 0
    status, out, err = keys.allow("--list")
    assert status == 0 and sorted(out.split()) == sorted(["alice", public, "alice.2", public]), out
    assert keys.allow("--remove", "alice")[0] == 0
    status, out, err = keys.allow("--remove", "alice")
    assert status == 1 and "alice" in err, err
    assert sorted(os.listdir(keys.allowed)) == ["alice.2.key"]
    assert keys.allow("--list", "--remove", "alice.2")[0] == 2
    assert run("octctl", "allow", "--list")[0] == 2


@case
def every_client_speaks_curve():
    """octctl, replay, push_lines in C and Python, octview and pyzmq come in with their key"""
    keys = standard("clients", "alice")
    np.asarray(LINES[:V * M]).tofile(HERE + "/volume.raw")
    with Guarded(keys) as daemon:
        mine = [*daemon.common, *keys.client("alice"), *BASE]
        status, out, err = run("octctl", "status", "--json", *mine)
        assert status == 0 and json.loads(out)["security"]["curve"], (out, err)
        assert "curve yes" in run("octctl", "status", *mine)[1]
        subscriber = daemon.subscriber()
        status, out, err = run("octctl", "replay", HERE + "/volume.raw", *mine, "--rate", "20000")
        assert status == 0, err
        daemon.wait(lambda s: s["bscans_done"] == V)
        for b in range(V):
            assert subscriber.poll(PATIENCE_S * 1000), b
            assert json.loads(subscriber.recv_multipart()[1])["bscan"] == b
        pair = [keys.secret("alice"), keys.public("octd")]
        for command in ([program("push_lines")],
                        ["/usr/bin/python3", TOP + "/scripts/push_lines.py"]):
            before = daemon.status()["lines_received"]
            subprocess.run([*command, daemon.ingest, "3", *pair], check=True, timeout=PATIENCE_S)
            daemon.wait(lambda s: s["lines_received"] == before + 3 * 240)
        shot = HERE + "/shot.png"
        viewer = subprocess.Popen(
            [program("octview"), "--headless", "--screenshot", shot, "--settings", "none",
             *mine], stdin=subprocess.DEVNULL, env=dict(os.environ, SDL_VIDEODRIVER="dummy"),
            stderr=subprocess.PIPE)
        end, epoch = time.monotonic() + PATIENCE_S, 100
        while viewer.poll() is None and time.monotonic() < end:
            send_volume(daemon, epoch)
            epoch += 1
            time.sleep(0.1)
        assert viewer.wait(1) == 0, viewer.stderr.read()
        assert open(shot, "rb").read(4) == b"\x89PNG"
        assert sum(refused(daemon).values()) == 0, refused(daemon)


@case
def strangers_are_refused_and_counted():
    """no key, an unknown key, a wrong server key and junk: nothing passes, all is counted by reason
    and logged once"""
    keys = standard("strangers", "alice")
    keys.make("mallory"), keys.make("other")
    with Guarded(keys, "alice", endpoints("*")) as daemon:
        received = daemon.status()["lines_received"]
        for who, server, reason in ((None, "octd", "plain"), ("mallory", "octd", "unknown_key"),
                                    ("alice", "other", "protocol")):
            # Who notices first that the two do not match, the client or octd, is chance.
            before = refused(daemon)
            for kind in ("control", "publish", "ingest"):
                for _ in range(2):
                    speak_as(keys, who, server)
                    assert not daemon.hears(kind, 0.4), (who, server, kind)
                    speak_as(keys, "alice")
            sure = reason == "unknown_key"

            def counted():
                more = {r: n - before[r] for r, n in refused(daemon).items()}
                return more[reason] and more[reason] + (not sure) * more["broken_off"] >= 6
            until(counted, f"six refusals of {who} to {server}: {before}")
        # Bytes that are no ZeroMQ at all.
        for junk in (b"GET / HTTP/1.0\r\n\r\n", b"\xff" + bytes(8) + b"\x7f\x01\x08", b"\0" * 64,
                     os.urandom(4096)):
            for endpoint in (daemon.control, daemon.publish, daemon.ingest):
                with socket.create_connection(("127.0.0.1", int(endpoint.split(":")[-1]))) as s:
                    s.sendall(junk)
        # The old way to claim another's name: its public key, but not its secret one.
        public = zmq.auth.load_certificate(keys.public("alice"))[0]
        speak_as(keys, "mallory")
        KeyedContext.pair = (public, KeyedContext.pair[1])
        assert not daemon.hears("control", 0.5)
        speak_as(keys, "alice")
        status = daemon.status()
        assert status["lines_received"] == received
        assert sum(status["messages_bad"].values()) == 0, "a stranger's message came through"
        assert status["state"] == "running"
        log = daemon.log()
        mallory = zmq.auth.load_certificate(keys.public("mallory"))[0].decode()
        assert log.count(mallory) == 1, log
        # Of a peer that has gone before it was looked at, the address is unknown: a second line.
        assert 1 <= log.count("plain ZeroMQ") <= 2 and "127.0.0.1" in log, log
        secret = zmq.auth.load_certificate(keys.secret("octd"))[1].decode()
        assert secret not in log and secret not in json.dumps(status)


@case
def a_flood_does_not_fill_the_log():
    """a hundred strangers of a hundred keys are all counted, and told in a score of lines"""
    keys = standard("flood", "alice")
    with Guarded(keys) as daemon:
        server, n = KeyedContext.server, 0
        for _ in range(10):
            sockets = []
            for _ in range(10):
                s = zmq.Context.instance().socket(zmq.PUSH)
                s.linger = 0
                s.curve_publickey, s.curve_secretkey = zmq.curve_keypair()
                s.curve_serverkey = server
                s.connect(daemon.ingest)
                sockets.append(s)
            n += len(sockets)
            daemon.wait(lambda s: s["security"]["refused"]["unknown_key"] >= n)
            for s in sockets:
                s.close()
        assert refused(daemon)["unknown_key"] == n == 100, refused(daemon)
        lines = [l for l in daemon.log().splitlines() if "refused a connection" in l]
        assert 10 <= len(lines) <= 20, len(lines)


def disconnects(monitor, timeout_s):
    """Seconds until the monitor tells of a disconnection; None: never."""
    began = time.monotonic()
    while time.monotonic() < began + timeout_s:
        if monitor.poll(50) and \
                parse_monitor_message(monitor.recv_multipart())["event"] == zmq.EVENT_DISCONNECTED:
            return time.monotonic() - began
    return None


def try_to(send, *arguments):
    """A socket that was refused for good has nobody to send to."""
    try:
        send(*arguments)
    except zmq.Again:
        pass


@case
def a_removed_key_is_out_at_once():
    """a key that is removed: its viewer, camera and commands are cut within a second, live as they
    are; the others lose nothing"""
    keys = standard("revoked", "alice", "bob")
    with Guarded(keys) as daemon:
        speak_as(keys, "bob")
        his_eye = daemon.subscriber()
        his_monitor = his_eye.get_monitor_socket(zmq.EVENT_DISCONNECTED)
        his_camera = Sender(daemon, 7)
        his_camera.socket.linger = 0
        his_camera.socket.sndtimeo = 200
        his_voice = daemon.context.socket(zmq.DEALER)
        his_voice.curve_publickey, his_voice.curve_secretkey = KeyedContext.pair
        his_voice.curve_serverkey = KeyedContext.server
        his_voice.linger = 0
        his_voice.sndtimeo = 200
        his_voice.connect(daemon.control)
        his_voice.send_multipart([b"", b'{"cmd":"status"}'])
        assert his_voice.poll(PATIENCE_S * 1000) and his_voice.recv_multipart()
        camera_monitor = his_camera.socket.get_monitor_socket(zmq.EVENT_DISCONNECTED)
        voice_monitor = his_voice.get_monitor_socket(zmq.EVENT_DISCONNECTED)
        speak_as(keys, "alice")
        my_eye = daemon.subscriber()
        my_monitor = my_eye.get_monitor_socket(zmq.EVENT_DISCONNECTED)
        his_camera.send(LINES[:M], 0, flags=1)
        daemon.wait(lambda s: s["bscans_published"] >= 1)
        my_camera = send_volume(daemon, 8)
        for eye in (my_eye, his_eye):
            for b in range(1 + V):
                assert eye.poll(PATIENCE_S * 1000), b
                eye.recv_multipart()

        assert keys.allow("--remove", "bob")[0] == 0
        pids, began = (daemon.process.pid, os.getpid()), time.monotonic()
        waited = waited_ms(*pids)
        for monitor in (his_monitor, camera_monitor, voice_monitor):
            assert disconnects(monitor, PATIENCE_S) is not None
        took_s = time.monotonic() - began - (waited_ms(*pids) - waited) * 1e-3
        assert took_s < (10 if SLOW else 2), took_s  # the folder is looked at every second
        before = daemon.wait(lambda s: s["security"]["connections_cut"] >= 3)
        assert before["security"]["keys_allowed"] == 1
        # What he sends now, over whatever connection, changes nothing; what I send, all.
        for i in range(5):
            try_to(his_camera.send, LINES[:M], (1 + i) * M)
        try_to(his_voice.send_multipart, [b"", b'{"cmd":"shutdown"}'])
        for b in range(V):
            my_camera.send(LINES[b * M:(b + 1) * M], (V + b) * M)
        after = daemon.wait(lambda s: s["bscans_done"] >= before["bscans_done"] + V)
        time.sleep(0.5)
        after = daemon.status()
        assert after["bscans_done"] == before["bscans_done"] + V, (before, after)
        assert after["lines_received"] == before["lines_received"] + V * M
        assert after["messages_bad"] == before["messages_bad"]
        daemon.wait(lambda s: s["security"]["refused"]["revoked_key"] >= 1)  # he tries again
        assert not his_voice.poll(100) and not his_eye.poll(100)
        for b in range(V):
            assert my_eye.poll(PATIENCE_S * 1000), b
            assert json.loads(my_eye.recv_multipart()[1])["bscan"] == b
        assert disconnects(my_monitor, 0.2) is None, "an innocent connection was cut"
        # And back again.
        assert keys.allow(keys.public("bob"))[0] == 0
        daemon.wait(lambda s: s["security"]["keys_allowed"] == 2)
        speak_as(keys, "bob")
        assert daemon.hears("control", PATIENCE_S)
        log = daemon.log()
        assert log.count("the key bob is out") == 1 and log.count("the key bob is allowed") == 1


@case
def a_silent_connection_goes_with_its_key():
    """a viewer that came in and has not subscribed is cut when its key goes: what it subscribes to
    afterwards brings it no picture"""
    keys = standard("silent", "alice", "bob")
    with Guarded(keys) as daemon:
        speak_as(keys, "bob")
        quiet, late = (daemon.context.socket(zmq.SUB) for _ in range(2))
        made = [s.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_DISCONNECTED)
                for s in (quiet, late)]
        for s in (quiet, late):
            s.linger = 0
            s.connect(daemon.publish)
        for monitor in made:
            assert monitor.poll(PATIENCE_S * 1000), "no handshake"
            event = parse_monitor_message(monitor.recv_multipart())["event"]
            assert event == zmq.EVENT_HANDSHAKE_SUCCEEDED, event
        speak_as(keys, "alice")
        mine = daemon.subscriber()
        my_monitor = mine.get_monitor_socket(zmq.EVENT_DISCONNECTED)
        camera = send_volume(daemon, 1)
        daemon.wait(lambda s: s["bscans_published"] == V)
        assert keys.allow("--remove", "bob")[0] == 0
        late.subscribe(b"")
        assert disconnects(made[0], PATIENCE_S) is not None, "a silent connection stayed"
        quiet.subscribe(b"")
        daemon.wait(lambda s: s["security"]["keys_allowed"] == 1)
        for b in range(V):
            camera.send(LINES[b * M:(b + 1) * M], (V + b) * M)
        daemon.wait(lambda s: s["bscans_published"] == 2 * V)
        assert not quiet.poll(500) and not late.poll(0), "a picture for a key that has gone"
        assert disconnects(my_monitor, 0.1) is None, "an innocent connection was cut"
        assert daemon.status()["security"]["connections_cut"] >= 2


@case
def subscribers_that_leave_are_no_refusals():
    """a viewer that goes counts as no refused message, with its key or after it"""
    keys = standard("leaving", "alice")
    with Guarded(keys) as daemon:
        for epoch in range(1, 6):
            eye = daemon.subscriber()
            send_volume(daemon, epoch)
            assert eye.poll(PATIENCE_S * 1000)
            eye.close()
        daemon.wait(lambda s: s["bscans_in_flight"] == 0)
        time.sleep(0.5)
        assert daemon.status()["security"]["messages_refused"] == 0


@case
def a_queue_full_of_a_removed_key_is_refused():
    """messages that were already queued when their key went are refused, one by one, and counted"""
    keys = standard("queued", "alice", "bob")
    with Guarded(keys) as daemon:
        # Whether the watch or a message is first is chance, so it may take some rounds; what counts
        # is bounded by that moment.
        for epoch in range(1, 30):
            seen = daemon.status()["lines_received"]
            speak_as(keys, "bob")
            camera = send_volume(daemon, epoch)
            camera.socket.linger = 0
            camera.socket.sndtimeo = 200
            start = daemon.wait(lambda s: s["bscans_in_flight"] == 0 and
                                s["acquisitions"] == epoch and
                                s["lines_received"] >= seen + V * M)
            speak_as(keys, "alice")
            daemon.process.send_signal(signal.SIGSTOP)
            for b in range(40):  # into the sockets' buffers
                try_to(camera.send, LINES[:M], (V + b) * M)
            time.sleep(0.3)
            os.remove(keys.allowed + "/bob.key")
            daemon.process.send_signal(signal.SIGCONT)
            daemon.wait(lambda s: s["security"]["keys_allowed"] == 1)
            before = daemon.wait(lambda s: s["bscans_in_flight"] == 0)
            # One message may have been let in already when its key went, and not have been counted
            # yet; it has M lines, and what is sent from now on has not.
            try_to(camera.send, LINES[:M - 1], 99 * V * M)
            time.sleep(0.5)
            after = daemon.status()
            assert after["lines_received"] - before["lines_received"] in (0, M), (before, after)
            for lost in ("messages_missed", "lines_missing"):  # none came in behind a refused one
                assert after[lost] == start[lost], (start, after)
            assert after["security"]["keys_allowed"] == 1
            print(f"# round {epoch}: {after['security']}", flush=True)
            if after["security"]["messages_refused"]:
                return
            assert keys.allow(keys.public("bob"))[0] == 0
            daemon.wait(lambda s: s["security"]["keys_allowed"] == 2)
        assert False, "no queued message was ever refused"


@case
def the_folder_itself_goes():
    """without the folder nobody comes in; what is no key in it is told and lets nobody in"""
    keys = standard("folder", "alice")
    with open(keys.allowed + "/broken.key", "wb") as file:
        file.write(b"public-key = \"too short\"\n")
    os.symlink("/dev/zero", keys.allowed + "/zero.key")
    os.mkfifo(keys.allowed + "/pipe.key")
    with Guarded(keys) as daemon:
        assert daemon.status()["security"]["keys_allowed"] == 1
        assert "broken.key" in daemon.log() or "zero.key" in daemon.log() or \
            "pipe.key" in daemon.log()
        os.rename(keys.allowed, keys.allowed + ".away")
        until(lambda: "nobody comes in" in daemon.log(), "the news of the folder")
        assert not daemon.hears("control", 0.5)
        os.rename(keys.allowed + ".away", keys.allowed)
        until(lambda: daemon.hears("control", 1), "the folder to be found again")


@case
def unreadable_and_too_many_keys():
    """a key file that cannot be read lets nobody in and is told, in the log once, in the status and
    as degraded; another's removal counts meanwhile; more keys than octd takes are refused"""
    keys = standard("spoilt", "alice", "bob", "carol")
    with Guarded(keys) as daemon:
        os.symlink("/proc/self/mem", keys.folder + "/link")  # opens; reading it is EIO
        os.rename(keys.folder + "/link", keys.allowed + "/bob.key")
        status = daemon.wait(lambda s: s["security"]["keys_allowed"] == 2)
        assert status["security"]["keys_unreadable"] == 1 and "keys" in status["degraded"], status
        os.remove(keys.allowed + "/carol.key")
        status = daemon.wait(lambda s: s["security"]["keys_allowed"] == 1)
        for who in ("bob", "carol"):
            speak_as(keys, who)
            assert not daemon.hears("control", 0.5), who
        speak_as(keys, "alice")
        time.sleep(1.2)  # it looks every second
        assert daemon.log().count("bob.key: cannot read") == 1, daemon.log()
        os.remove(keys.allowed + "/bob.key")
        status = daemon.wait(lambda s: s["degraded"] == [])
        assert status["security"]["keys_unreadable"] == 0
    public = open(keys.public("bob"), "rb").read()
    for i in range(4096 - 1):
        with open(f"{keys.allowed}/{i}.key", "wb") as file:
            file.write(public)
    status, out, err = keys.allow(keys.public("carol"))
    assert status == 1 and "4096" in err, err
    shutil.copy(keys.public("carol"), keys.allowed)
    status, out, err = run("octd", *BASE, *settings(
        security=dict(server_key=keys.secret("octd"), allowed=keys.allowed)))
    assert status == 2 and "more than 4096 keys" in err and err.count("\n") == 1, (status, err)
    shutil.rmtree(keys.allowed)


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
def crowd_of_strangers():
    """strangers take every descriptor that they can have: keys are read, files opened, all the same"""
    keys = standard("crowd", "alice")
    keys.make("bob")
    with few_descriptors(256):
        daemon = Guarded(keys)
    with daemon:
        daemon.wait(lambda s: not s["pending"])
        with Crowd(daemon.publish, 300):
            daemon.wait(lambda s: s["security"]["connections_not_taken"] > 50)
            assert keys.allow(keys.public("bob"))[0] == 0
            daemon.wait(lambda s: s["security"]["keys_allowed"] == 2)
            assert daemon.ask("record", action="start")["ok"]
            send_volume(daemon, 1)
            daemon.wait(lambda s: s["volumes_written"] == 1)
        assert "folder of keys" not in daemon.log()
        assert daemon.end() == 0


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
