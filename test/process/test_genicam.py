"""octgenicam with aravis' simulated cameras: what arrives and is recorded is the camera's pattern,
by the numbers of its frames; lost frames, a camera that goes away, wrong words."""
import glob, os, signal, socket, struct, subprocess

import h5py, numpy as np

from octctlrig import Receiver
from octtest import (LONG, PATIENCE_S, SLOW, Daemon, Skip, calibration, case, catches, folder, main,
                     program, run, settings, until)

N, H = 64, 15  # samples a line, lines a frame; a B-scan has 10, so that frames end within them
SIZE = ("--set", f"Width={N}", "--set", f"Height={H}")
RATE = ("--set", f"AcquisitionFrameRate={20 if SLOW else 200}")
FAKE = ("--camera", "Fake_1", *SIZE, *RATE)
GIGE = ("--camera", "127.0.0.1", *SIZE, *RATE)


def need():
    if not os.path.exists(program("octgenicam")):
        raise Skip("octgenicam is not built: there is no aravis")


class Camera:
    """A GigE Vision camera at 127.0.0.1 that leaves out `lose` ids before every n-th frame."""

    def __init__(self, every=0, lose=1):
        need()
        self.command = [program("test/fake_gv_camera"), "OCT1",
                        os.path.join(folder("cameras"), "camera.xml"), str(every), str(lose)]
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, text=True,
                                        stderr=subprocess.DEVNULL)
        if self.process.stdout.readline() != "ready\n":
            status = self.process.wait()
            assert status == 77, status
            raise Skip("another GigE Vision camera has 127.0.0.1")

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()


def gige_lines(frames, bits=12):
    """Lines of camera frames, as test/camera/fake_gv_camera.c draws them: (n, H, N)."""
    x, y = np.arange(N), np.arange(H)
    frames = np.asarray(frames)
    return ((5 * x + 3 * y[:, None] + 7 * frames[:, None, None]) % (1 << bits)).astype(np.uint16)


def received(*arguments):
    """(exit status, messages, stdout, stderr) of octgenicam, pushing into who takes lines."""
    need()
    receiver = Receiver("genicam")
    try:
        status, out, err = run("octgenicam", *arguments, "--to", receiver.endpoint)
    finally:
        messages = receiver.finish()
    return status, messages, out, err


def checked(messages):
    """One acquisition: flags, sequence, whole frames at multiples of H; the frames by number."""
    flags = [m["flags"] for m in messages]
    assert flags[0] == 1 and flags[-1] == 2 and not any(flags[1:-1]), flags
    assert [m["sequence"] for m in messages] == list(range(len(messages)))
    frames = messages[:-1]
    assert all(m["first"] % H == 0 and m["data"].shape == (H, N) for m in frames)
    assert all(a["time"] < b["time"] for a, b in zip(frames, frames[1:]))
    assert frames[0]["first"] == 0
    return {m["first"] // H: m["data"] for m in frames}


@case
def simulated_camera():
    """aravis' own camera, Mono8 and Mono16, over the turn of its 16-bit frame ids: every sample"""
    y, x = np.mgrid[:H, :N]
    for name, step, most in (("Mono8", 1, 255), ("Mono16", 256, 65535)):
        status, got, out, err = received(*FAKE, "--set", f"PixelFormat={name}", "--frames", 150)
        assert status == 0 and err == "" and f"{name}, to ipc://" in out, (status, out, err)
        frames = checked(got)
        assert list(frames) == list(range(150)), list(frames)  # ids 65401 to 65535, then 1 to 15
        for k, data in frames.items():
            frame_id = (65400 + k) % 65535 + 1
            assert np.array_equal(data, step * (x + y + frame_id) % most), (name, k)
        assert "150 frames, 2250 lines sent; 0 frames lost" in out, out


@case
def packed_pixels_and_losses():
    """GigE Vision: Mono12p, Mono12Packed, Mono12 and Mono8, and each lost frame is a gap"""
    for name, bits in ("Mono12p", 12), ("Mono12Packed", 12), ("Mono12", 12), ("Mono8", 8):
        with Camera(every=5, lose=2):
            status, got, out, err = received(*GIGE, "--set", f"PixelFormat={name}",
                                             "--frames", 20)
        assert status == 0, (status, out, err)
        frames = checked(got)
        first = int(frames[0][0, 0]) // 7  # of the camera's frames; 0 but where packets were lost
        assert first < 20, first
        numbers = np.array(list(frames))
        assert np.array_equal(np.stack(list(frames.values())), gige_lines(numbers + first, bits))
        # Two are left out before every fifth that is drawn: 4, 5, 11, 12, 18, 19, ...
        assert len(frames) == 20 and not {n for n in numbers + first if n % 7 in (4, 5)}, numbers
        assert numbers[-1] >= 24 and "frames lost before frame" in err, (numbers, err)


LINES, BSCANS = 10, 12


def recorded_by_octd(camera, endpoint=None):
    """Pushes 30 frames into an octd that records: {B-scan number: its lines, how many are
    missing}."""
    need()
    with Daemon(*settings(camera=dict(samples=N, bits=12), scan=dict(lines=LINES, bscans=BSCANS),
                          calibration=dict(wavelengths=calibration(N)),
                          pipeline=dict(backend="cpu"), record=dict(spectra="yes"),
                          **(dict(ingest=dict(endpoint=endpoint)) if endpoint else {}))) as daemon:
        config = os.path.join(folder("cameras"), "octd.ini")
        with open(config, "w") as file:
            file.write(f"[ingest]\nendpoint = {endpoint or daemon.ingest}\n"
                       f"[camera]\nsamples = {N}\n[scan]\nlines = {LINES}\n")
        assert daemon.ask("record", action="start")["ok"]
        status, out, err = run("octgenicam", *camera, "--frames", 30, "--config", config)
        assert status == 0, (status, out, err)
        daemon.wait(lambda s: not s["record"]["active"]
                    or s["bscans_in_flight"] == 0 and s["lines_received"] == 30 * H)
        daemon.ask("record", action="stop")
        daemon.wait(lambda s: not s["record"]["active"])
        assert daemon.end() == 0, daemon.log()  # it removes its shared memory
        seen = {}
        for path in sorted(glob.glob(daemon.records + "/*.h5")):
            with h5py.File(path) as file:
                for row, valid in enumerate(file["frames/valid"][:]):
                    missing = int(file["frames/missing_lines"][row]) if valid else LINES
                    seen[int(file.attrs["first_bscan"]) + row] = file["spectra"][row], missing
    return seen


@case
def recorded():
    """octd records what the camera saw; lost frames are missing lines where they were lost"""
    with Camera(every=7, lose=1):
        seen = recorded_by_octd([*GIGE, "--set", "PixelFormat=Mono12p"])
    assert set(range(4 * BSCANS)) <= set(seen), sorted(seen)
    first = int(seen[0][0][0, 0]) // 7
    truth = gige_lines(np.arange(first, first + 60)).reshape(-1, N)
    for number in range(4 * BSCANS):
        spectra, missing = seen[number]
        came = (spectra == truth[number * LINES:(number + 1) * LINES]).all(axis=1)
        assert missing == int((~came).sum()), (number, missing, came)
    # Frames 6, 14, 22 and 30 of these 32 are left out.
    assert sum(seen[number][1] for number in range(4 * BSCANS)) >= 4 * H


@case
def recorded_through_memory():
    """with shm:// frames are written where octd reads them; one larger than a slot goes in parts"""
    seen = recorded_by_octd(FAKE, f"shm://genicam{os.getpid()}")
    y, x = np.mgrid[:30 * H, :N]
    truth = (x + y % H + 65401 + y // H) % 255
    for number in range(30 * H // LINES):
        spectra, missing = seen[number]
        assert missing == 0 and np.array_equal(
            spectra, truth[number * LINES:(number + 1) * LINES]), (number, missing)


@case
def interrupted():
    """SIGINT ends the acquisition: the end flag, the summary, status 0"""
    need()
    receiver = Receiver("interrupted")
    process = subprocess.Popen([program("octgenicam"), *FAKE, "--to", receiver.endpoint],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        catches(process, signal.SIGINT)
        until(lambda: len(receiver.messages) > 10, "frames")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE_S)
    finally:
        process.kill()
        messages = receiver.finish()
    assert process.returncode == 0 and err == "" and "frames lost" in out, (out, err)
    frames = checked(messages)
    assert list(frames) == list(range(len(frames))), list(frames)


@case
def gone_and_back():
    """a camera that goes away ends the acquisition and is waited for, or ends the program"""
    receiver = Receiver("gone")
    with Camera() as camera:
        process = subprocess.Popen([program("octgenicam"), *GIGE, "--to", receiver.endpoint,
                                    "--reconnect"], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        try:
            until(lambda: len(receiver.messages) > 3, "frames")
            camera.kill()

            def ends():
                return [m for m in list(receiver.messages) if m[1][0][42] & 2]
            until(ends, "the end of the acquisition")
            n = len(receiver.messages)
            camera.start()
            until(lambda: len(receiver.messages) > n + 3, "frames of the camera that came back")
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=PATIENCE_S)
            assert process.returncode == 0 and "has gone away; waiting for it" in err, (out, err)
        finally:
            process.kill()
            messages = receiver.finish()
    starts = [i for i, m in enumerate(messages) if m["flags"] & 1]
    assert len(starts) == 2 and messages[starts[1]]["first"] == 0, starts
    assert messages[starts[1] - 1]["flags"] & 2 and messages[-1]["flags"] & 2


class Controller:
    """Another program that controls the camera, by GVCP; frames go to its own socket."""

    HEARTBEAT_MS, PRIVILEGE, PORT, ADDRESS = 0x938, 0xA00, 0xD00, 0xD18
    ACQUISITION = 0x124  # of aravis' simulated camera

    def __init__(self):
        self.commands, self.frames = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                                      for _ in range(2))
        for each in self.commands, self.frames:
            each.bind(("127.0.0.1", 0))
            each.settimeout(PATIENCE_S)
        self.commands.connect(("127.0.0.1", 3956))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.commands.close()
        self.frames.close()

    def command(self, number, *words):
        self.commands.send(struct.pack(f">BBHHH{len(words)}I", 0x42, 1, number, 4 * len(words), 1,
                                       *words))
        return struct.unpack(">I", self.commands.recv(64)[8:12])[0]

    def read(self, register):
        return self.command(0x80, register)

    def write(self, register, value):
        self.command(0x82, register, value)

    def has_frames(self, patience_s):
        self.frames.settimeout(patience_s)
        try:
            return bool(self.frames.recv(65536))
        except TimeoutError:
            return False

    def leave_in_acquisition(self):
        """As a program that was killed: the camera is free, and goes on for who controls it next,
        to where it sent before."""
        self.write(self.PRIVILEGE, 2)
        self.write(self.ADDRESS, 0x7F000001)
        self.write(self.PORT, self.frames.getsockname()[1])
        self.write(self.ACQUISITION, 1)
        assert self.has_frames(PATIENCE_S)
        self.write(self.PRIVILEGE, 0)
        while self.has_frames(0.3):
            pass


@case
def left_in_acquisition():
    """a camera that goes on with an acquisition from before, to elsewhere, sends its frames here"""
    many = ("--set", f"Width={N}") * 60  # the camera is set up for a while
    with Camera(), Controller() as other:
        for _ in range(5):
            other.leave_in_acquisition()
            receiver = Receiver("left_over")
            process = subprocess.Popen(
                [program("octgenicam"), *map(str, GIGE), *many, "--frames", "20",
                 "--to", receiver.endpoint], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            try:
                until(lambda: other.read(other.PRIVILEGE) == 2, "the camera to be controlled")
                process.send_signal(signal.SIGSTOP)  # while the camera looks what it is to do
                was_hit = other.has_frames(0.5)
                process.send_signal(signal.SIGCONT)
                assert process.communicate(timeout=PATIENCE_S)[0] and process.returncode == 0
            finally:
                process.kill()
                frames = checked(receiver.finish())
            assert len(frames) == 20
            if was_hit:
                break


@case
def of_another_program():
    """a camera that another program controls is not set up half, but refused in a line"""
    with Camera(), Controller() as other:
        other.write(other.HEARTBEAT_MS, 3600000)
        other.write(other.PRIVILEGE, 2)
        for given in GIGE, GIGE[:2]:
            status, out, err = run("octgenicam", *given, "--to", f"ipc://{folder('x')}/x")
            assert status == 1 and out == "" and err.count("\n") == 1, (status, out, err)
            assert "another program controls this camera" in err, err


@case
def gone():
    """without --reconnect a camera that goes away is status 1 and a line, after the end flag"""
    if not LONG:
        raise Skip("aravis takes seconds to see it; OCT_LONG=1")
    receiver = Receiver("left")
    with Camera() as camera:
        process = subprocess.Popen([program("octgenicam"), *GIGE, "--to", receiver.endpoint],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            until(lambda: len(receiver.messages) > 3, "frames")
            camera.kill()
            out, err = process.communicate(timeout=PATIENCE_S)
        finally:
            process.kill()
            messages = receiver.finish()
    assert process.returncode == 1 and err.endswith("the camera has gone away\n"), (out, err)
    assert messages[-1]["flags"] & 2


@case
def lists_and_says():
    """--list, --version and --help; wrong words are one line and a status"""
    need()
    status, out, err = run("octgenicam", "--list", "--fake")
    assert status == 0 and "Fake_1\tFake\t" in out and err == "", (status, out, err)
    assert run("octgenicam", "--version")[1].startswith("octgenicam ")
    assert "--camera ID" in run("octgenicam", "--help")[1]
    config = os.path.join(folder("cameras"), "narrow.ini")
    with open(config, "w") as file:
        file.write(f"[camera]\nsamples = {2 * N}\n")
    nowhere = ("--to", f"ipc://{folder('cameras')}/nowhere", "--wait", "0.1")
    for wanted, words, arguments in (
            (2, "no such option", ["--nope", "1"]),
            (2, "needs a value", ["--camera"]),
            (2, "needs a number", ["--frames", "0"]),
            (2, "takes options alone", ["camera"]),
            (2, "no feature Nope", [*FAKE, "--set", "Nope=1"]),
            (2, "is no command", [*FAKE, "--set", "Width"]),
            (2, "--set Width=", [*FAKE, "--set", "Width=1000000"]),
            (2, "PixelFormat RGB8 is not read", [*FAKE, "--set", "PixelFormat=RGB8"]),
            (2, f"camera.samples is {2 * N}", [*FAKE, "--config", config]),
            (2, "ingest.endpoint", [*FAKE, "--to", "nonsense"]),
            (1, "no daemon takes lines", [*FAKE, *nowhere]),
            (1, "camera nobody", ["--camera", "nobody", *nowhere])):
        status, out, err = run("octgenicam", *arguments)
        assert status == wanted and words in err and err.count("\n") == 1 and out == "" \
            and err.startswith("octgenicam: "), (arguments, status, out, err)


main()
