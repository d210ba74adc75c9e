#!/usr/bin/python3
"""More connections than there are file descriptors: they are closed at once, and recorder, camera,
control and the viewers that were there before go on."""
import resource
from octfaults import *

FEW, CROWD = 256, 300


def flood(endpoint_of, *arguments):
    """A crowd comes to the viewers' socket in the middle of a recording, and stays."""
    with few_descriptors(FEW):
        daemon = Daemon(*BASE, *LONG_VOLUMES, *arguments)
    with daemon, Player(daemon, 4000, *LONG_VOLUMES) as camera:
        assert "only 256 file descriptors are allowed" in daemon.log(), daemon.log()
        assert daemon.ask("record", action="start")["ok"]
        daemon.wait(lambda s: s["volumes_written"] > 1)
        endpoint = endpoint_of(daemon)
        with Crowd(endpoint, CROWD):
            # Over ipc and tcp alike connect() ends before accept(): all are asked for by now.
            status = daemon.wait(lambda s: s["security"]["connections_not_taken"] > CROWD // 3)
            held = len(os.listdir(f"/proc/{daemon.process.pid}/fd"))
            assert held <= FEW - 64, held
            camera.kill()  # a camera comes back, control is asked anew, files are opened
            with Player(daemon, 4000, *LONG_VOLUMES):
                written = status["volumes_written"]
                daemon.wait(lambda s: s["volumes_written"] > written + 2)
                assert daemon.ask("record", action="stop")["ok"]
                daemon.wait(lambda s: not s["record"]["active"])
                assert daemon.ask("stop")["ok"] and daemon.ask("start")["ok"]  # a session anew
        assert "no file descriptors are left for more" in daemon.log()
        with Player(daemon, 4000, *LONG_VOLUMES):  # those that went made room
            subscriber = daemon.context.socket(zmq.SUB)
            subscriber.linger = 0
            subscriber.subscribe(b"bscan")
            connected(subscriber, lambda: subscriber.connect(endpoint))
            assert subscriber.poll(PATIENCE_S * 1000), "no picture after the crowd had gone"
        status = daemon.status()
        dropped = status["record_account"]["dropped"]
        assert sum(n for why, n in dropped.items() if why != "source") == 0, dropped
        assert not status["last_error"], status["last_error"]
        assert daemon.end() == 0, daemon.log()
        seen(f"{CROWD} connections to {FEW} descriptors: "
             f"{status['security']['connections_not_taken']} not taken, {held} descriptors held, "
             f"{status['bscans_written']} B-scans written, none lost")


@case
def crowd_on_ipc():
    """more viewers than descriptors come over ipc and stay: octd lives, nothing recorded is lost"""
    flood(lambda daemon: daemon.publish)


@case
def crowd_on_tcp():
    """more viewers than descriptors come over tcp and stay: octd lives, nothing recorded is lost"""
    at = f"tcp://127.0.0.1:{free_port()}"
    flood(lambda daemon: at, "--set", f"publish.endpoint={at}")


@case
def soft_limit_is_raised():
    """a soft limit below the hard one is raised at the start"""
    Daemon.preexec = staticmethod(
        lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (128, 4096)))
    try:
        daemon = Daemon(*BASE)
    finally:
        Daemon.preexec = None
    with daemon:
        line = [l for l in open(f"/proc/{daemon.process.pid}/limits") if "open files" in l][0]
        assert line.split()[3:5] == ["4096", "4096"], line
        assert "file descriptors" not in daemon.log()
        assert daemon.end() == 0


@case
def too_few():
    """a hard limit under which everybody would be refused: octd says so and does not start"""
    for limit in 64, 100, 191:
        said = subprocess.run(["sh", "-c", f'ulimit -n {limit}; exec "$@"', "sh", program("octd"),
                               *BASE], stderr=subprocess.PIPE, text=True, timeout=PATIENCE_S)
        assert said.returncode == 2 and said.stderr.count("\n") == 1, (limit, said)
        assert f"only {limit} file descriptors are allowed, octd needs 192" in said.stderr, said
    with few_descriptors(192):
        daemon = Daemon(*BASE, *LONG_VOLUMES)
    with daemon, Player(daemon, 4000, *LONG_VOLUMES):  # what starts takes connections
        daemon.wait(lambda s: s["bscans_done"] > 0)
        assert daemon.status()["security"]["connections_not_taken"] == 0
        assert daemon.end() == 0


main()
