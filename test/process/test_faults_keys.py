#!/usr/bin/python3
"""Who may come in: CURVE keys on all three sockets, tried by real clients with right keys, wrong
keys and no keys."""
import shutil, socket, stat
from keyrig import *


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
    assert "secret-key" in start(keys.public("octd"))  # which others may read, as they should
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
        assert "curve yes" in run("octctl", "status", "--all", *mine)[1]
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
                if more[reason] and more[reason] + (not sure) * more["broken_off"] >= 6:
                    return True
                # On a busy machine one left before it was looked at: another comes.
                speak_as(keys, who, server)
                heard = daemon.hears("control", 0.4)
                speak_as(keys, "alice")
                assert not heard, (who, server)
                return False
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


if __name__ == "__main__":
    main()
