#!/usr/bin/python3
"""What can be wrong around octd when it starts, and while it runs: each gives one clear line, or a
fallback that the status shows."""
import glob, resource, shutil, socket
import numpy as np
from octtest import *

N, M, V = 832, 60, 8
HERE = os.environ.get("TMPDIR", "/tmp")


BASE = settings(scan=dict(lines=M, bscans=V), pipeline=dict(crop_last=300, backend="cpu"),
                calibration=dict(wavelengths=calibration(N)))
LINES = np.random.default_rng(1).integers(100, 4000, (V * M, N)).astype("<u2")
SECTIONS = ("ingest", "publish", "control")


def ends(name, **other):
    """ipc endpoints of their own for all sections, but for those in `other`."""
    where = {s: dict(endpoint=f"ipc://{HERE}/{name}-{s}") for s in SECTIONS}
    return settings(**{**where, **{s: dict(endpoint=e) for s, e in other.items()}})


def refused(*arguments, status=1):
    """octd with these arguments ends at once; its one line of complaint."""
    got, out, err = run("octd", *BASE, *arguments)
    complaint = [line for line in err.splitlines() if "error" in line]
    assert got == status and len(complaint) == 1, (got, err)
    return complaint[0]


def without(capability):
    """The words before a program that take a power of root from it; nothing for others."""
    if os.geteuid() != 0:
        return []
    if not shutil.which("setpriv"):
        raise Skip("no setpriv")
    return ["setpriv", f"--bounding-set=-{capability},-dac_read_search", "--inh-caps=-all"]


def started(control, *arguments):
    """An octd whose control endpoint is not its own choice."""
    daemon = Daemon(*BASE, *arguments, wait=False)
    daemon.control = control
    try:
        while daemon.ask("status")["pending"]:
            time.sleep(0.01)
    except AssertionError:
        daemon.kill()
        raise
    return daemon


class Bare(Daemon):
    """An octd behind other words, such as setpriv ..., with limits of its own."""

    def __init__(self, words, *arguments, limits=None):
        self.words, self.preexec = words, limits
        original = subprocess.Popen

        def start(command, **kw):
            return original([*words, *command], **kw)

        subprocess.Popen = start
        try:
            super().__init__(*BASE, *arguments)
        finally:
            subprocess.Popen = original


@case
def a_port_in_use_is_named():
    """a tcp port in use is refused on each socket by key and endpoint, and nothing stays bound"""
    for section in SECTIONS:
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            other.listen()
            endpoint = f"tcp://127.0.0.1:{other.getsockname()[1]}"
            line = refused(*ends("port", **{section: endpoint}))
            assert f"{section}.endpoint" in line and endpoint in line and "in use" in line, line
        control = endpoint if section == "control" else f"ipc://{HERE}/port-control"
        with started(control, *ends("port", **{section: endpoint})) as daemon:
            assert daemon.ask("status")["state"] == "running"


@case
def two_on_one_port():
    """the same port for two sockets of one daemon is refused too"""
    endpoint = f"tcp://127.0.0.1:{free_port()}"
    line = refused(*ends("same", ingest=endpoint, publish=endpoint))
    assert endpoint in line, line


@case
def a_stale_ipc_file_is_no_hindrance():
    """an ipc file that a killed daemon left is taken over; a live one, a plain file, a folder, a
    link and a place that is not there are refused and left alone"""
    with Daemon(*BASE) as first:
        first.process.kill()
        first.process.wait()
        for endpoint in (first.ingest, first.publish, first.control):
            assert os.path.exists(endpoint[6:]), endpoint
        with started(first.control, *first.common) as second:
            for section in SECTIONS:
                taken = getattr(first, section)
                line = refused(*ends("taken", **{section: taken}))
                assert section in line and "in use" in line, line
            assert second.ask("status")["state"] == "running"
    os.makedirs(HERE + "/things/folder", exist_ok=True)
    with open(HERE + "/things/file", "w") as file:
        file.write("precious")
    os.symlink(HERE + "/things/file", HERE + "/things/link")
    for name in ("file", "folder", "link"):
        line = refused(*ends("things", ingest=f"ipc://{HERE}/things/{name}"))
        assert "no socket" in line and name in line, line
    assert open(HERE + "/things/file").read() == "precious"
    assert os.path.islink(HERE + "/things/link") and os.path.isdir(HERE + "/things/folder")
    line = refused(*ends("nowhere", ingest=f"ipc://{HERE}/no/such/folder/in"))
    assert "ingest.endpoint" in line and "No such file" in line, line


@case
def a_read_only_record_folder():
    """a record folder that cannot be written is told at the start, refused when recording starts,
    and the pictures go on; made writable, it records"""
    place = folder("readonly")
    os.chmod(place, 0o555)
    with Bare(without("dac_override"), "--set", f"record.directory={place}") as daemon:
        assert "record.directory" in daemon.log() and "cannot be written" in daemon.log()
        measured = daemon.log().count("forecast:")
        reply = daemon.ask("record", action="start")
        assert not reply["ok"] and place in reply["error"], reply
        assert "recording not started: record.directory" in daemon.log()
        assert daemon.log().count("forecast:") == measured  # refused at once, nothing measured
        assert "record.directory" in daemon.status()["last_error"]
        subscriber = daemon.subscriber()
        Sender(daemon, 1).send(LINES, 0, flags=1)
        assert daemon.wait(lambda s: s["bscans_published"] == V)["state"] == "running"
        assert subscriber.poll(PATIENCE_S * 1000)
        os.chmod(place, 0o755)
        assert daemon.ask("record", action="start")["ok"]
        Sender(daemon, 2).send(LINES, 0, flags=1)
        daemon.wait(lambda s: s["volumes_written"] == 1)
        assert len(os.listdir(place)) == 1


@case
def no_memory_lock():
    """without the right to lock memory octd warns, says so in the status, and works"""
    if SLOW:
        raise Skip("a sanitizer takes mlock's place: it locks nothing and says that it has")

    def none():
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (0, 0))

    with Bare(without("ipc_lock"), limits=none) as daemon:
        assert daemon.log().count("not locked in memory") == 1 and "ulimit -l" in daemon.log()
        assert daemon.status()["memory_locked"] is False
        Sender(daemon, 1).send(LINES, 0, flags=1)
        daemon.wait(lambda s: s["bscans_done"] == V)
    if resource.getrlimit(resource.RLIMIT_MEMLOCK)[1] == resource.RLIM_INFINITY:
        def all_of_it():
            resource.setrlimit(resource.RLIMIT_MEMLOCK, (-1, -1))

        with Bare([], limits=all_of_it) as daemon:
            assert daemon.status()["memory_locked"] is True, daemon.log()


@case
def the_configuration_changes_under_it():
    """a configuration file that changes, goes or is replaced is told once and flagged; what runs is
    what it said at the start"""
    def edit(path):
        with open(path, "a") as ini:
            ini.write("\n; one more line\n[record]\neye = OS\n")

    def replace(path):
        with open(path + ".new", "w") as ini:
            ini.write("[record]\neye = OS\n")
        os.rename(path + ".new", path)

    def spoil(path):
        with open(path, "w") as ini:
            ini.write("this is no configuration")

    for change in (edit, replace, spoil, os.remove):
        path = HERE + "/lab.ini"
        with open(path, "w") as ini:
            ini.write("[camera]\nbits = 12\n")
        with Daemon(*BASE, "--config", path) as daemon:
            time.sleep(1.3)
            assert daemon.status()["config_file_changed"] is False
            change(path)
            daemon.wait(lambda s: s["config_file_changed"])
            time.sleep(1.3)  # it looks every second
            assert daemon.log().count(path + " has changed") == 1, daemon.log()
            assert daemon.ask("get", key="camera.bits")["value"] == "12"
            assert daemon.ask("get", key="record.eye")["value"] == ""
            assert daemon.ask("stop")["ok"] and daemon.ask("start")["ok"]
            assert daemon.status()["state"] == "running"


NO_STDIO = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh"]


@case
def without_standard_files():
    """with standard input, output and error closed octd records and ends in order, octctl writes a
    whole file, octview shows: none of their files has one of those numbers"""
    def holds_places(pid):
        places = [f"/proc/{pid}/fd/{fd}" for fd in range(3)]
        return [os.path.lexists(p) and os.readlink(p) for p in places] == ["/dev/null"] * 3

    with Bare(NO_STDIO) as daemon:
        assert holds_places(daemon.process.pid)
        assert daemon.ask("record", action="start")["ok"]
        Sender(daemon, 1).send(LINES, 0, flags=1)
        daemon.wait(lambda s: s["volumes_written"] == 1)
        daemon.send("set", key="no.such.key", value=1)  # refused, in the log
        assert daemon.end() == 0
        assert run("octctl", "check", *glob.glob(daemon.records + "/*"))[0] == 0
    size = settings(camera=dict(samples=64), scan=dict(lines=4, bscans=2))
    words = [program("octctl"), "synth", "--volumes", "1", *size]
    for name, before in (("usual", []), ("bare", NO_STDIO)):
        status = subprocess.run([*before, *words, f"{HERE}/{name}.raw"], stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
        assert status == (1 if before else 0), (name, status)  # what it prints goes nowhere
    usual = open(HERE + "/usual.raw", "rb").read()
    assert usual and usual == open(HERE + "/bare.raw", "rb").read()
    viewer = subprocess.Popen([*NO_STDIO, program("octview"), "--headless", "--settings", "none",
                               "--screenshot", HERE + "/shot.png", *ends("nobody")], env=dict(os.environ, SDL_VIDEODRIVER="dummy"))
    try:
        until(lambda: viewer.poll() is None and "octview" in os.readlink(
            f"/proc/{viewer.pid}/exe") and holds_places(viewer.pid), "octview with its places taken")
    finally:
        viewer.kill()
        viewer.wait()


if __name__ == "__main__":
    main()
