#!/usr/bin/python3
"""The daemon as a whole: control, recording, replay into it, and the reconstruction of what it
recorded."""
import glob, json, socket, time
import h5py
import numpy as np
from octtest import *

N, M, V = 832, 60, 8
rng = np.random.default_rng(3)


def calibration():
    path = os.path.join(folder("calibration"), "wavelengths.txt")
    if not os.path.exists(path):
        t = np.arange(N) / N
        np.savetxt(path, 825 + 52 * t - 2.5 * t * t, fmt="%.9f")
    return path


def recording(n_bscans, name="lines.raw"):
    """Plain samples with fringes, a different depth in each A-line."""
    path = os.path.join(folder("recordings"), name)
    t = np.arange(N) / N
    j = np.arange(n_bscans * M)[:, None]
    fringe = 300 * np.cos(2 * np.pi * t * (40 + 90 * np.sin(j * 0.05)**2) + j)
    lines = 300 + (2500 + fringe) * np.exp(-8 * (t - .5)**2) + rng.normal(0, 15, (len(j), N))
    lines.astype("<u2").tofile(path)
    return path, lines.astype("<u2").reshape(n_bscans, M, N)


BASE = settings(scan=dict(lines=M, bscans=V), pipeline=dict(crop_last=700),
                calibration=dict(wavelengths=calibration(), dispersion_a2=11, dispersion_a3=-2),
                daemon=dict(drain_s=60))


def files(daemon):
    return sorted(glob.glob(daemon.records + "/*.h5"))


def replay(daemon, path, *more):
    status, out, err = run("octctl", "replay", path, *daemon.common, *BASE, "--rate", 20000, *more)
    assert status == 0, err
    return out


def recon(path, *more):
    out = os.path.join(folder("recon"), os.path.basename(path).split(".")[0] + ".h5")
    status, _, err = run("octctl", "recon", path, out, "--force", *more)
    assert status == 0, err
    return out


def record_and_reconstruct(**pipeline):
    path, lines = recording(3 * V + 3)
    with Daemon(*BASE, *settings(pipeline=pipeline)) as daemon:
        assert daemon.ask("record", action="start")["ok"]
        assert daemon.status()["state"] == "recording"
        replay(daemon, path)
        daemon.wait(lambda s: s["bscans_done"] == 3 * V + 3 and s["volumes_written"] == 4)
        assert daemon.ask("record", action="stop")["ok"]
        status = daemon.wait(lambda s: s["state"] == "running")
        assert status["lines_missing"] == 0 and status["bscans_written"] == 3 * V + 3
        assert status["volumes_incomplete"] == 1, status
        assert daemon.end() == 0, daemon.log()
        assert len(files(daemon)) == 4, files(daemon)
        for number, name in enumerate(files(daemon)):
            with h5py.File(name) as volume:
                n = V if number < 3 else 3
                assert np.array_equal(volume["frames/valid"][:], np.arange(V) < n)
                assert np.array_equal(volume["spectra"][:n], lines[number * V:number * V + n])
                assert volume["frames/missing_lines"][:].sum() == 0
                again = recon(name)
                with h5py.File(again) as other:
                    same = volume["bscans"][:n] == other["bscans"][:n]
                    assert same.all(), (pipeline, number, np.count_nonzero(~same))
                    assert volume["bscans"][:n].std() > 1
                    assert np.array_equal(volume["frames/lo"][:n], other["frames/lo"][:n])


@case
def recon_equals_recorded():
    """recon of recorded spectra equals the recorded B-scans byte for byte, in every range mode"""
    record_and_reconstruct(range="auto")
    record_and_reconstruct(range="percentile")
    record_and_reconstruct(range="manual", min_db=-5, max_db=45)
    record_and_reconstruct(range="percentile", log="no")


@case
def recon_equals_recorded_in_floats():
    """the same for pictures of floats, a file of wavelengths as long as P2, cubic, dispersion over the
    spectrum"""
    path, _ = recording(V)
    long = os.path.join(folder("calibration"), "long.txt")
    t = (np.arange(4096) / 2 - (2048 - N) // 2) / N
    np.savetxt(long, 825 + 52 * t - 2.5 * t * t, fmt="%.9f")
    with Daemon(*BASE, *settings(output=dict(sample="f32"), pipeline=dict(interpolation="cubic"),
                                 calibration=dict(wavelengths=long, dispersion_over="spectrum",
                                                  dispersion_a5=.5))) as daemon:
        daemon.ask("record", action="start")
        replay(daemon, path)
        daemon.wait(lambda s: s["volumes_written"] == 1)
        name, = files(daemon)
        with h5py.File(name) as a, h5py.File(recon(name)) as b:
            assert a["bscans"].dtype == "f4" and np.array_equal(a["bscans"][:], b["bscans"][:])
            assert np.array_equal(a["calibration/wavelengths_nm"][:].size, 4096)
            # t is -1 at the first of the camera's samples and 1 at the last, linear in k
            lam, first = a["calibration/wavelengths_nm"][:], 2048 - N
            k = np.linspace(1 / lam[0], 1 / lam[-1], 4096)
            low, high = 1 / lam[first], 1 / lam[first + 2 * (N - 1)]
            t = 2 * (k - low) / (high - low) - 1
            phase = np.exp(-1j * (11 * t**2 - 2 * t**3 + .5 * t**5))
            assert np.abs(a["calibration/dispersion"][:] @ [1, 1j] - phase).max() < 1e-9
            assert np.array_equal(a["calibration/dispersion"], b["calibration/dispersion"])
        # the recording's coefficients, read the other way
        with h5py.File(recon(name, "--set", "calibration.dispersion_over=grid")) as other:
            t = 2 * np.arange(4096) / 4095 - 1
            phase = np.exp(-1j * (11 * t**2 - 2 * t**3 + .5 * t**5))
            assert np.abs(other["calibration/dispersion"][:] @ [1, 1j] - phase).max() < 1e-9


@case
def gaps_are_recorded():
    """missing lines are recorded as such and replayed and reconstructed as such"""
    path, lines = recording(V, "gaps.raw")
    with Daemon(*BASE) as daemon:
        daemon.ask("record", action="start")
        sender = Sender(daemon, 5)
        flat = lines.reshape(-1, N)
        sender.send(flat[:2 * M + 9], 0, flags=1)
        sender.send(flat[2 * M + 20:3 * M], 2 * M + 20)
        sender.send(flat[5 * M:], 5 * M, flags=2)
        daemon.wait(lambda s: s["volumes_written"] == 1)
        name, = files(daemon)
        expected = np.array([0, 0, 11, 0, 0, 0, 0, 0])
        valid = np.array([1, 1, 1, 0, 0, 1, 1, 1])
        with h5py.File(name) as volume:
            assert np.array_equal(volume["frames/valid"][:], valid)
            assert np.array_equal(volume["frames/missing_lines"][:], expected)
            assert not volume["spectra"][2, 9:20].any() and volume["spectra"][2, 20:].all()
            with h5py.File(recon(name)) as other:
                assert np.array_equal(volume["bscans"][:], other["bscans"][:])
                assert np.array_equal(other["frames/missing_lines"][:], expected)
        daemon.ask("record", action="start")
        replay(daemon, name)
        daemon.wait(lambda s: s["volumes_written"] == 2)
        with h5py.File(files(daemon)[1]) as volume, h5py.File(name) as first:
            assert np.array_equal(volume["frames/valid"][:], valid)
            assert np.array_equal(volume["frames/line_valid"][:], first["frames/line_valid"][:])
            assert np.array_equal(volume["bscans"][:], first["bscans"][:])


@case
def recording_waits_for_a_volume():
    """recording begins with a whole volume; what was under way is left alone"""
    _, lines = recording(2 * V, "two.raw")
    with Daemon(*BASE) as daemon:
        sender, flat = Sender(daemon, 9), lines.reshape(-1, N)
        sender.send(flat[:3 * M], 0, flags=1)
        daemon.wait(lambda s: s["bscans_done"] == 3 and s["record"]["bscans_queued"] == 0)
        daemon.ask("record", action="start")
        assert daemon.status()["record"]["waiting_for_volume"]
        sender.send(flat[3 * M:], 3 * M, flags=2)
        daemon.wait(lambda s: s["volumes_written"] == 1)
        name, = files(daemon)
        with h5py.File(name) as volume:
            assert np.array_equal(volume["spectra"][:], lines[V:])
            assert volume["frames/valid"][:].all()


def grey(**pipeline):
    """A volume from its line M/2 on: lo and hi of each B-scan and the mean grey of its last half,
    as they were published and are in the file. Before it: the volume's last line but one alone."""
    _, lines = recording(V, "middle.raw")
    with Daemon(*BASE, *settings(pipeline=pipeline)) as daemon:
        viewer, flat = daemon.subscriber(), lines.reshape(-1, N)
        daemon.ask("record", action="start")
        Sender(daemon, 9).send(flat[M - 1:M], M - 1, flags=1)
        Sender(daemon, 10).send(flat[M // 2:], M // 2, flags=3)
        daemon.wait(lambda s: s["bscans_done"] == V + 1 and s["volumes_written"] == 2)
        with h5py.File(files(daemon)[1]) as volume:
            assert list(volume["frames/missing_lines"][:2]) == [M // 2, 0]
            limits = np.stack([volume["frames/lo"][:], volume["frames/hi"][:]], 1)
            means = volume["bscans"][:, M // 2:].mean((1, 2))
        for _ in range(V + 1):
            assert viewer.poll(PATIENCE_S * 1000)
            _, header, image = viewer.recv_multipart()
            header = json.loads(header)
            if header["missing_lines"] == M // 2:
                assert np.allclose([header["lo"], header["hi"]], limits[0]), (header, limits)
                shown = np.frombuffer(image, "u1").reshape(M, -1)
                assert shown[M // 2:].mean() == means[0] and not shown[:M // 2].any()
    return limits, means


@case
def missing_lines_take_no_part_in_limits():
    """a volume taken up in the middle of a B-scan is as bright from its first line on"""
    # The least value of a B-scan is a speckle null, which differs by itself.
    for pipeline, most_db, most in ((dict(range="percentile"), 1, 10), (dict(range="auto"), 25, 40)):
        limits, means = grey(**pipeline)
        seen(f"{pipeline}: lo, hi {limits[:3].round(2).tolist()}, grey {means[:4].round(1)}")
        assert np.abs(limits[0] - limits[1:]).max() < most_db, limits
        assert np.abs(means[0] - means[1:]).max() < most, (pipeline, means)


@case
def stop_keeps_what_there_was():
    """record stop closes the file with what there was; the pictures go on"""
    _, lines = recording(V, "part.raw")
    with Daemon(*BASE) as daemon:
        daemon.ask("record", action="start")
        assert not daemon.ask("record", action="start")["ok"]
        sender, flat = Sender(daemon, 9), lines.reshape(-1, N)
        sender.send(flat[:5 * M], 0, flags=1)
        daemon.wait(lambda s: s["bscans_done"] == 5)
        daemon.ask("record", action="stop")
        status = daemon.wait(lambda s: not s["record"]["active"])
        assert status["bscans_written"] == 5 and status["volumes_incomplete"] == 1
        sender.send(flat[5 * M:], 5 * M)
        daemon.wait(lambda s: s["bscans_done"] == V)
        name, = files(daemon)
        with h5py.File(name) as volume:
            assert np.array_equal(volume["frames/valid"][:], np.arange(V) < 5)


@case
def sigterm_while_recording():
    """SIGTERM in the middle of a replay closes the file whole and exits 0"""
    path, _ = recording(3 * V)
    with Daemon(*BASE) as daemon:
        daemon.ask("record", action="start")
        with Replay(daemon, path, 6000, *BASE):
            daemon.wait(lambda s: s["volumes_written"] >= 1)
            begun = daemon.wait(lambda s: s["bscans_begun"] % V > 2)["bscans_begun"]
            assert daemon.end() == 0, daemon.log()
        assert not glob.glob(daemon.records + "/*.part")
        with_all = sum(int(h5py.File(name)["frames/valid"][:].sum()) for name in files(daemon))
        assert with_all >= begun, (with_all, begun)


@case
def killed_while_recording():
    """after kill -9 every B-scan reported as written is readable"""
    path, lines = recording(2 * V)
    with Daemon(*BASE, "--set", "record.sync_interval_s=0.05") as daemon:
        daemon.ask("record", action="start")
        sender, flat = Sender(daemon, 3), lines.reshape(-1, N)
        sender.send(flat[:(V + 5) * M], 0, flags=1)
        written = daemon.wait(lambda s: s["bscans_written"] == V + 5)["bscans_written"]
        daemon.process.kill()
        daemon.process.wait()
        found = 0
        for name in sorted(glob.glob(daemon.records + "/*")):
            with h5py.File(name) as volume:
                rows = np.flatnonzero(volume["frames/valid"][:])
                base = V * int(re.search(r"_v(\d+)\.h5", name)[1])
                for row in rows:
                    assert np.array_equal(volume["spectra"][row], lines[base + row])
                found += len(rows)
        assert found == written, (found, written)


@case
def control_talks_json():
    """control answers every request with one JSON object, whatever it is"""
    with Daemon(*BASE) as daemon:
        def raw(request):
            client = daemon.context.socket(zmq.REQ)
            client.connect(daemon.control)
            client.send(request)
            assert client.poll(PATIENCE_S * 1000)
            reply = json.loads(client.recv())
            client.close(linger=0)
            return reply

        for request in (b"", b"{", b"[]", b"null", b"{}", b"\xff\xfe", b"{\"cmd\":1}",
                        b"{\"cmd\":\"status\"} x", b"{\"cmd\":\"status\"}\0",
                        b"{\"cmd\":\"nonsense\"}", b"{\"cmd\":\"record\"}",
                        b"{\"cmd\":\"record\",\"action\":\"pause\"}", b"{\"cmd\":\"set\"}",
                        b"{\"cmd\":\"set\",\"key\":\"pipeline.min_db\"}",
                        b"{\"cmd\":\"set\",\"key\":\"no.such\",\"value\":\"1\"}",
                        b"{\"cmd\":\"set\",\"key\":\"pipeline.min_db\",\"value\":\"warm\"}",
                        b"{\"cmd\":\"get\",\"key\":\"no.such\"}", b"[" * 20000):
            reply = raw(request)
            assert reply["ok"] is False and reply["error"], (request[:40], reply)
            assert "\n" not in reply["error"]
        assert raw(b" {\"cmd\":\"status\"}\n")["ok"]
        status = daemon.status()
        for key in ("state", "backend", "lines_received", "lines_missing", "messages_bad",
                    "bscans_done", "bscans_published", "bscans_dropped", "volumes_written",
                    "bytes_written", "latency_us", "uptime_s", "last_error"):
            assert key in status, key


@case
def keys_change_when_they_may():
    """set changes live keys at once, others only while idle, endpoints never"""
    path, lines = recording(V)
    with Daemon(*BASE) as daemon:
        viewer = daemon.subscriber()
        assert daemon.ask("set", key="pipeline.range", value="manual")["ok"]
        assert daemon.ask("set", key="pipeline.min_db", value=-7.5)["ok"]
        assert daemon.ask("get", key="pipeline.min_db")["value"] == "-7.5"
        reply = daemon.ask("set", key="pipeline.max_db", value="-20")
        assert not reply["ok"] and "pipeline.max_db" in reply["error"], reply
        reply = daemon.ask("set", key="pipeline.crop_last", value="100")
        assert not reply["ok"] and "stop" in reply["error"], reply
        assert not daemon.ask("set", key="ingest.endpoint", value="tcp://127.0.0.1:1")["ok"]
        Sender(daemon, 1).send(lines[0], 0, flags=3)
        assert json.loads(viewer.recv_multipart()[1])["lo"] == -7.5
        assert daemon.ask("stop")["state"] == "idle"
        assert daemon.ask("set", key="pipeline.crop_last", value="100")["ok"]
        assert daemon.ask("set", key="pipeline.crop_last", value="99999")["ok"] is False
        connected(viewer, lambda: daemon.ask("start"))
        assert daemon.status()["state"] == "running" and not viewer.poll(0)
        Sender(daemon, 2).send(lines[0], 0, flags=3)
        assert json.loads(viewer.recv_multipart()[1])["shape"] == [str(M), "100"]


@case
def files_say_how_they_were_made():
    """no key changes while a recording is under way, so that its files say how they were made"""
    with Daemon(*BASE) as daemon:
        daemon.ask("record", action="start")
        for key, value in (("pipeline.min_db", "-3"), ("record.spectra", "no"),
                           ("pipeline.crop_last", "50")):
            reply = daemon.ask("set", key=key, value=value)
            assert not reply["ok"] and "stop" in reply["error"], reply
        daemon.ask("record", action="stop")
        daemon.wait(lambda s: not s["record"]["active"])
        assert daemon.ask("set", key="pipeline.min_db", value="-3")["ok"]


@case
def calibration_that_does_not_stand():
    """a calibration that does not stand is refused at start; what stood before stands"""
    _, lines = recording(V)
    with Daemon(*BASE) as daemon:
        daemon.ask("stop")
        assert daemon.ask("set", key="calibration.wavelengths", value="/no/such.txt")["ok"]
        reply = daemon.ask("start")
        assert not reply["ok"] and "/no/such.txt" in reply["error"], reply
        assert daemon.status()["state"] == "idle" and "/no/such" in daemon.status()["last_error"]
        assert daemon.ask("set", key="calibration.wavelengths", value=calibration())["ok"]
        assert daemon.ask("start")["state"] == "running"
        assert daemon.status()["last_error"] == ""
        Sender(daemon, 1).send(lines[0], 0, flags=3)
        daemon.wait(lambda s: s["bscans_published"] == 1)


@case
def disk_too_small():
    """a disk that holds no volume is told when recording starts"""
    small = folder("small")
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=500k", "tmpfs", small],
                      stderr=subprocess.DEVNULL).returncode:
        raise Skip("no right to mount a small file system")
    try:
        with Daemon(*BASE) as daemon:
            assert daemon.ask("set", key="record.directory", value=small)["ok"]
            reply = daemon.ask("record", action="start")
            assert not reply["ok"] and small in reply["error"] and "MB" in reply["error"], reply
            assert daemon.status()["state"] == "running"
    finally:
        subprocess.run(["umount", small])


@case
def idle_until_started():
    """with autostart=no lines are ignored until start"""
    _, lines = recording(V)
    with Daemon(*BASE, "--set", "daemon.autostart=no") as daemon:
        assert daemon.status()["state"] == "idle"
        assert not daemon.ask("record", action="start")["ok"]
        sender = Sender(daemon, 1)
        sender.send(lines[0], 0, flags=1)
        daemon.wait(lambda s: s["messages_ignored"] == 1)
        assert daemon.ask("start")["state"] == "running"
        sender.send(lines[1], M)
        status = daemon.wait(lambda s: s["bscans_done"] == 1)
        assert status["lines_received"] == M
        assert daemon.ask("stop")["state"] == "idle"
        sender.send(lines[2], 2 * M)
        status = daemon.wait(lambda s: s["messages_ignored"] == 2)
        assert status["bscans_done"] == 1
        assert daemon.ask("shutdown")["ok"]
        assert daemon.process.wait(PATIENCE_S) == 0


@case
def octctl_waits():
    """octctl stop and shutdown return when it is so, and what they cut off is no loss"""
    _, lines = recording(V)
    with Daemon(*BASE, "--set", "ingest.idle_s=0") as daemon:
        sender = Sender(daemon, 1)
        sender.send(lines[0][:M // 2], 0, flags=1)
        daemon.wait(lambda s: s["bscans_begun"] == 1)
        assert run("octctl", "stop", *daemon.common) == (0, "ok\n", "")
        status = daemon.status()
        assert status["phase"] == "idle" and not status["pending"], status
        assert status["lines_missing"] == status["lines_cut"] == M - M // 2, status
        assert run("octctl", "start", *daemon.common) == (0, "ok\n", "")
        sender.send(lines[1][10:], M + 10)
        sender.send(lines[2], 2 * M)
        status = daemon.wait(lambda s: s["bscans_done"] == 3)
        assert status["lines_missing"] == status["lines_cut"] == M - M // 2 + 10, status
        assert daemon.ask("record", action="start")["ok"]
        sender.send(lines[3], 3 * M)
        daemon.wait(lambda s: s["bscans_done"] == 4)
        summary, out = (run("octctl", "status", *more, *daemon.common)[1] for more in ([], ["--all"]))
        first = ["state", "recording", "lines", "B-scans", "latency", "losses", "disk"]
        assert [line.split()[0] for line in summary.splitlines()[:7]] == first, summary
        assert "4 done, " in summary and "\n\n" not in summary, summary
        for key in status:
            assert key == "ok" or out.count("\n  " + key.replace("_", " ")[:20]) >= 1 or \
                key.endswith("_s") or key.endswith("_us"), (key, out)
        rows = re.findall(r"^  analysis (\w+) +running cpu, seen", out, re.MULTILINE)
        assert rows == [a["name"] for a in status["analysis"]], (rows, out)
        assert run("octctl", "shutdown", *daemon.common) == (0, "ok\n", "")
        assert daemon.process.poll() == 0, "octd has ended when octctl has"
        assert all(name.endswith(".h5") for name in os.listdir(daemon.records))


@case
def idle_bscan():
    """a B-scan begun and left alone is delivered after ingest.idle_s"""
    _, lines = recording(V)
    with Daemon(*BASE, "--set", "ingest.idle_s=0.2") as daemon:
        Sender(daemon, 1).send(lines[0][:10], 0, flags=1)
        status = daemon.wait(lambda s: s["bscans_done"] == 1)
        assert status["lines_missing"] == M - 10


def refusal(*arguments, program_name="octd"):
    status, out, err = run(program_name, *arguments)
    lines = [line for line in err.splitlines() if line]
    assert status in (1, 2) and lines, (status, err)
    return status, lines[-1]


@case
def refusals_at_start():
    """what cannot be is refused at the start in one line that names it"""
    endpoints = settings(ingest=dict(endpoint="ipc://a"), publish=dict(endpoint="ipc://b"),
                         control=dict(endpoint="ipc://c"))
    status, line = refusal(*endpoints)
    assert status == 2 and "calibration.wavelengths" in line, line
    status, line = refusal(*endpoints, *BASE, "--set", "camera.samples=0")
    assert status == 2 and "camera.samples" in line, line
    status, line = refusal(*endpoints, *BASE, "--set", "pipeline.crop_last=2049")
    assert status == 2 and "pipeline.crop_last" in line and "2048" in line, line
    status, line = refusal(*endpoints, *BASE, "--set", "camera.colour=red")
    assert status == 2 and "colour" in line, line
    status, line = refusal(*endpoints, *BASE, "--set", "pipeline.backend=cuda")
    assert "cuda" in line, line
    status, line = refusal(*endpoints, *BASE, "--config", "/no/such.ini")
    assert status == 2 and "/no/such.ini" in line, line
    short = os.path.join(folder("calibration"), "short.txt")
    np.savetxt(short, np.linspace(800, 850, 10))
    status, line = refusal(*endpoints, *BASE, "--set", f"calibration.wavelengths={short}")
    assert status == 2 and short in line and "10" in line, line
    status, line = refusal(*endpoints, *BASE, "--nonsense")
    assert status == 2
    status, line = refusal(*endpoints, *BASE, "extra")
    assert status == 2 and "extra" in line


@case
def port_in_use():
    """a port in use is named, and nothing is left running"""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        endpoint = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        for section in ("ingest", "publish", "control"):
            others = dict(ingest=dict(endpoint="ipc://x1"), publish=dict(endpoint="ipc://x2"),
                          control=dict(endpoint="ipc://x3"))
            others[section] = dict(endpoint=endpoint)
            status, line = refusal(*BASE, *settings(**others))
            assert status == 1 and endpoint in line and f"{section}.endpoint" in line, line


@case
def ipc_in_use():
    """a second daemon on the same ipc endpoints is refused; a stale file is no hindrance"""
    with Daemon(*BASE) as daemon:
        status, line = refusal(*BASE, *daemon.common)
        assert status == 1 and "use" in line and ".endpoint" in line, line
        assert daemon.status()["ok"]
        daemon.process.kill()
        daemon.process.wait()
        assert os.path.exists(daemon.control[len("ipc://"):])
        again = subprocess.Popen([program("octd"), *BASE, *daemon.common],
                                 stderr=subprocess.DEVNULL)
        try:
            daemon.process = again
            daemon.ask("status")
        finally:
            again.terminate()
            assert again.wait(PATIENCE_S) == 0


@case
def folder_that_cannot_be_written():
    """recording into a place that cannot be written is refused, the daemon goes on"""
    _, lines = recording(V)
    with Daemon(*BASE) as daemon:
        assert daemon.ask("set", key="record.directory", value="/proc/none")["ok"]
        reply = daemon.ask("record", action="start")
        assert not reply["ok"] and "/proc/none" in reply["error"], reply
        Sender(daemon, 1).send(lines[0], 0, flags=3)
        status = daemon.wait(lambda s: s["bscans_published"] == 1)
        assert status["state"] == "running" and "/proc/none" in status["last_error"]


@case
def recon_refuses():
    """recon refuses foreign, truncated and unfitting files by name"""
    path, _ = recording(V)
    odd = os.path.join(folder("recordings"), "odd.raw")
    open(odd, "wb").write(open(path, "rb").read()[:-100])
    out = os.path.join(folder("recon"), "never.h5")
    status, line = refusal("recon", odd, out, *BASE, program_name="octctl")
    assert status != 0 and odd in line and "100" in line or "bytes" in line, line
    for content in (b"", b"hello", open(path, "rb").read()[:5000]):
        foreign = os.path.join(folder("recordings"), "foreign.h5")
        open(foreign, "wb").write(content)
        status, line = refusal("recon", foreign, out, *BASE, program_name="octctl")
        assert foreign in line, line
    made = recon(path, *BASE)
    status, line = refusal("recon", made, out, program_name="octctl")
    assert "spectra" in line, line
    assert not os.path.exists(out) and not os.path.exists(out + ".part")
    status, line = refusal("recon", path, made, *BASE, program_name="octctl")
    assert made in line and "--force" in line, line
    status, line = refusal("recon", path, os.path.join(folder("recon"), "x.png"), *BASE,
                           program_name="octctl")
    assert status == 2 and "x.png" in line, line


@case
def recon_keeps_spectra():
    """recon never replaces spectra, not even with --force; interrupted it leaves nothing"""
    path, _ = recording(V)
    with Daemon(*BASE) as daemon:
        daemon.ask("record", action="start")
        replay(daemon, path)
        daemon.wait(lambda s: s["volumes_written"] == 1)
        name, = files(daemon)
        other = name.replace(".h5", "-copy.h5")
        open(other, "wb").write(open(name, "rb").read())
        before = open(name, "rb").read()
        for output in (name, other):
            status, line = refusal("recon", name, output, "--force", program_name="octctl")
            assert status == 2 and output in line, line
            assert open(output, "rb").read() == before
    big, _ = recording(400, "big.raw")
    out = os.path.join(folder("recon"), "interrupted.h5")
    slow = settings(pipeline=dict(threads=1, simd="plain", interpolation="cubic"))
    for force in ([], ["--force"]):
        process = subprocess.Popen([program("octctl"), "recon", big, out, *BASE, *slow, *force],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        until(lambda: glob.glob(out + "*part"), "a file under way")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 1 and b"interrupted" in err, err
        assert not glob.glob(out + "*"), glob.glob(out + "*")


main()
