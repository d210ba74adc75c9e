#!/usr/bin/python3
"""Keys that are taken away or cannot be read: who came in with them is cut at once, the others lose
nothing."""
import shutil
from keyrig import *


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


if __name__ == "__main__":
    main()
