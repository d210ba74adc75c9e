#!/usr/bin/python3
"""octview as a program: exit statuses, the headless screenshot, and a real window under Xvfb where
there is one. The publisher here is written from the contract, section 5."""
import glob, json, os, shutil, signal, subprocess, sys, tempfile, threading, time

import numpy
import zmq
from PIL import Image

from octtest import PATIENCE_S, catches, until

OCTVIEW = os.path.join(os.environ["OCT_BUILD"], "octview")
TMP = tempfile.mkdtemp(prefix="octview-test-")
BLIND = {k: v for k, v in os.environ.items()
         if k not in ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER")}
BLIND["XDG_CONFIG_HOME"] = TMP + "/config"  # what octview remembers stays here
M, D = 60, 50
failed = number = 0


def case(name, good, note=""):
    global failed, number
    number += 1
    failed += not good
    print(f"{'ok' if good else 'not ok'} {number} - {name}", flush=True)
    if not good and note:
        print("# " + str(note).replace("\n", "\n# "), flush=True)


def skip(name, reason):
    global number
    number += 1
    print(f"ok {number} - {name} # SKIP {reason}", flush=True)


V = 240  # B-scans a volume
ENFACE = numpy.full((V, M), numpy.nan, "<f4")
ENFACE[:V // 2] = 40  # of 0 .. 60: grey 170; the other half never came
QUALITY = {"snr_db": 30, "sharpness": 5, "level_db": 30, "blink": 0, "motion": 0, "missing": 0,
           "blinks": 0, "motions": 0, "snr_smooth_db": 30, "sharpness_smooth": 5}


def analysis(name, values, n, **more):
    """A message of an analysis' topic."""
    header = {"frame_num": n, "acquisition_id": "t", "dtype": "float", "dsize": values.nbytes,
              "dataset": "analysis/" + name, "compression": "none",
              "shape": [str(size) for size in values.shape], "time_ns": n, "missing_lines": 0,
              "lo": 0.0, "hi": 60.0, "volume": n // V, "bscan": n % V, **more}
    return [name.encode(), json.dumps(header).encode(), values.tobytes()]


class Publisher(threading.Thread):
    """50 pictures a second with a bright layer at depth 10..14 of 50; with `analyses`, their rows of
    the quality, of which every fiftieth is a blink's, and ten en face pictures a second."""

    def __init__(self, endpoint, analyses=False):
        super().__init__(daemon=True)
        self.endpoint, self.going, self.analyses = endpoint, True, analyses
        self.start()

    def send_analyses(self, socket, n):
        row = dict(QUALITY, blink=float(n % 50 == 25))
        socket.send_multipart(analysis("quality", numpy.array(list(row.values()), "<f4"), n,
                                       labels=list(row)))
        if n % 5 == 0:
            socket.send_multipart(analysis("enface", ENFACE, n, whole=False, unit="dB"))

    def run(self):
        context = zmq.Context()
        socket = context.socket(zmq.PUB)
        socket.linger = 0
        socket.bind(self.endpoint)
        image = numpy.zeros((M, D), numpy.uint8)
        image[:, 10:15] = 255
        n = 0
        while self.going:
            header = {"frame_num": n, "acquisition_id": "t", "dtype": "uint8", "dsize": M * D,
                      "dataset": "bscans", "compression": "none", "shape": [str(M), str(D)],
                      "time_ns": n, "missing_lines": 0, "lo": 0.0, "hi": 60.0,
                      "volume": n // 240, "bscan": n % 240}
            socket.send_multipart([b"bscan", json.dumps(header).encode(), image.tobytes()])
            if self.analyses:
                self.send_analyses(socket, n)
            n += 1
            time.sleep(0.02)
        context.destroy(linger=0)

    def stop(self):
        self.going = False
        self.join()


def octview(*arguments, **more):
    return subprocess.run([OCTVIEW, *arguments], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=PATIENCE_S, **{"env": BLIND, "cwd": TMP, **more})


def one_line(run, status, *words):
    return (run.returncode == status and run.stderr.count("\n") == 1
            and all(w in run.stderr for w in words))


def calls():
    run = octview("--help")
    case("--help names every option and key and exits 0", run.returncode == 0 and all(
        w in run.stdout for w in ("--headless", "--connect", "--set", "Space", "publish.endpoint")))
    run = octview("--version")
    other = subprocess.run([OCTVIEW.replace("octview", "octctl"), "--version"],
                           capture_output=True, text=True, timeout=60)
    lines = [l for l in run.stdout.splitlines()[1:] if not l.startswith(("SDL", "libpng"))]
    case("--version is octctl's, with the window's libraries", run.returncode == 0
         and run.stdout.startswith("octview ") and len(run.stdout.splitlines()) == len(lines) + 4
         and lines == other.stdout.splitlines()[1:], run.stdout)
    for arguments, word in ((["--nope"], "--nope"), (["a.h5", "b.h5"], "b.h5"),
                            (["--size", "9x9"], "9x9"),
                            (["--set", "no.such=1"], "no.such"), (["--frames", "0"], "--frames"),
                            (["--headless", "--screenshot", "x.jpg"], "x.jpg"),
                            (["--headless", "--screenshot", "png"], ".png"),
                            (["--headless"], "--screenshot"), (["--connect"], "--connect"),
                            (["--config", "/nonexistent.ini"], "/nonexistent.ini"),
                            (["--headless", "--screenshot", "x.png", "--connect", "odd"], "odd"),
                            (["--headless", "--screenshot", "x.png", "--timeout", "nan"], "nan")):
        run = octview(*arguments)
        case(f"octview {' '.join(arguments)} exits 2 with one line", one_line(run, 2, word),
             run.stderr)
    run = octview()
    case("without a display a window exits 1 and names --headless",
         one_line(run, 1, "--headless"), run.stderr)


def headless(endpoint):
    shot = os.path.join(TMP, "shot.png")
    run = octview("--headless", "--screenshot", shot, "--timeout", "0.3", "--connect", endpoint)
    case("without pictures headless exits 1 with one line and writes nothing",
         one_line(run, 1, endpoint, "0 of 1") and not os.path.exists(shot), run.stderr)
    publisher = Publisher(endpoint)
    run = octview("--headless", "--frames", "5", "--screenshot", shot, "--set",
                  "publish.endpoint=" + endpoint, "--size", "640x480",
                  env=dict(BLIND, DISPLAY=":nonexistent"))
    pixels = numpy.asarray(Image.open(shot).convert("L")) if os.path.exists(shot) else None
    case("headless draws the window into a PNG without touching a display",
         run.returncode == 0 and run.stderr == "" and pixels is not None
         and pixels.shape == (480, 640), run.stderr)
    if pixels is not None:
        rows = numpy.flatnonzero(pixels[60:380, 320] > 128)
        case("the layer lies upright in the upper third of the PNG",
             len(rows) > 15 and 20 < rows.mean() < 120, list(rows))
    case("no temporary file stays behind", glob.glob(shot + ".*") == [])
    run = octview("--headless", "--screenshot", "/nonexistent/a.png", "--connect", endpoint)
    case("a screenshot that cannot be written exits 1 and names it",
         one_line(run, 1, "/nonexistent/a.png"), run.stderr)
    fifo, device, beside = (os.path.join(TMP, name) for name in ("a.png", "null.png", "folder.png"))
    os.mkfifo(fifo)
    os.symlink("/dev/null", device)
    os.mkdir(beside)
    for path, word in (fifo, "no plain file"), (device, "no plain file"), (beside, "a folder"):
        before = os.lstat(path).st_ino, os.lstat(path).st_mode
        run = octview("--headless", "--screenshot", path, "--connect", endpoint)
        case(f"a screenshot does not replace {word}: {os.path.basename(path)}",
             one_line(run, 2, path, word)
             and (os.lstat(path).st_ino, os.lstat(path).st_mode) == before, run.stderr)
    viewer = subprocess.Popen([OCTVIEW, "--headless", "--frames", "1000000", "--screenshot", shot,
                               "--connect", endpoint], env=BLIND, stderr=subprocess.PIPE, text=True)
    catches(viewer)
    viewer.send_signal(signal.SIGTERM)
    text = viewer.communicate(timeout=PATIENCE_S)[1]
    case("an interrupted headless run exits 1 and says so",
         viewer.returncode == 1 and "interrupted" in text, text)
    publisher.stop()


def spectra_alone(what, shown, *scan):
    """A recording without pictures is shown as octctl recon would have made them, on this CPU,
    whatever the one that recorded it could do."""
    octctl, seen = os.path.join(os.environ["OCT_BUILD"], "octctl"), []
    avx512 = " avx512f " in open("/proc/cpuinfo").read()
    names = [os.path.join(TMP, what + name) for name in ("raw.h5", "pictures.h5")]
    keys = (*scan, "scan.lines=64", "scan.bscans=8", "pipeline.crop_last=200",
            "pipeline.simd=" + ("plain" if avx512 else "avx512"))
    runs = [subprocess.run([octctl, *words], capture_output=True, text=True, timeout=60)
            for words in (["synth", names[0], *(w for key in keys for w in ("--set", key))],
                          ["recon", *names, "--set", "output.sample=f32", "--set",
                           "pipeline.simd=auto"])]
    for name in names:
        runs.append(octview("--headless", "--frames", shown, "--screenshot", name + ".png",
                            "--settings", "none", name))
        if os.path.exists(name + ".png"):
            grey = Image.open(name + ".png").convert("L").crop((20, 160, 900, 340))  # below the file's name
            seen.append(numpy.asarray(grey).astype(int))
    case(f"of a recording of spectra alone{what} the pictures are octctl recon's",
         not any(run.returncode for run in runs) and len(seen) == 2 and seen[0].std() > 20
         and abs(seen[0] - seen[1]).max() < 9, [run.stderr for run in runs])  # the mean is its own


def greys(pixels, grey):
    """Pixels of exactly this grey, right of the middle."""
    return int((pixels[:, pixels.shape[1] // 2:] == grey).all(-1).sum())


def panels(endpoint):
    """En face and quality are what the stream brings."""
    shot, two = os.path.join(TMP, "two.png"), os.path.join(TMP, "two.ini")
    found = {}
    with open(two, "w") as file:
        file.write("[view]\nlayout = two\n")
    for with_them in (False, True):
        publisher = Publisher(endpoint + str(with_them), with_them)
        run = octview("--headless", "--frames", "200", "--screenshot", shot, "--connect",
                      publisher.endpoint, "--control", "none", "--settings", two, "--size",
                      "640x480")
        publisher.stop()
        assert run.returncode == 0 and run.stderr == "", run.stderr
        found[with_them] = numpy.asarray(Image.open(shot).convert("RGB")).astype(int)
    grey, red = {}, {}
    for with_them, pixels in found.items():
        grey[with_them] = greys(pixels, 170)
        strip = pixels[380:430, 250:]  # the timeline, behind its words
        red[with_them] = int(((strip[..., 0] - strip[..., 1] > 45) & (strip[..., 0] > 120)).sum())
    case("the en face picture of the stream is in its panel, half of it", grey[True] > 3000
         and grey[False] < 100, grey)
    case("blinks of the stream's quality stand on the timeline", red[True] > 30
         and red[False] == 0, red)


class Control(threading.Thread):
    """An octd's control socket, with an en face picture that can be set."""

    def __init__(self, endpoint):
        super().__init__(daemon=True)
        self.endpoint, self.going, self.sets = endpoint, True, []
        self.values = {"projection": "mean", "slab_first": 0.4, "slab_last": 0.6}
        self.start()

    def answer(self, request):
        if request["cmd"] == "status":
            return {"ok": True, "state": "running",
                    "analysis": [{"name": "enface", **self.values}]}
        key, value = request["key"].removeprefix("analysis.enface_"), request["value"]
        self.sets.append((key, value))
        self.values[key] = value if key == "projection" else float(value)
        return {"ok": True}

    def run(self):
        context = zmq.Context()
        socket = context.socket(zmq.REP)
        socket.linger, socket.rcvtimeo = 0, 50
        socket.bind(self.endpoint)
        while self.going:
            try:
                request = json.loads(socket.recv())
            except zmq.Again:
                continue
            socket.send(json.dumps(self.answer(request)).encode())
        context.destroy(linger=0)

    def stop(self):
        self.going = False
        self.join()


def settings_of_the_daemon(endpoint):
    """E and the slab's keys set what octd computes."""
    desk, publisher = Desk(), Publisher(endpoint, True)
    control = Control(endpoint + "-control")
    try:
        viewer = desk.open(endpoint, "--control", control.endpoint)
        until(lambda: bright(desk.snap()) > 5000, "a live picture")
        case("what octd has is not set anew", control.sets == [], control.sets)
        desk.keys("l", "e")
        until(lambda: control.sets, "the projection")
        case("E sets octd's projection", control.sets == [("projection", "max")], control.sets)
        desk.keys("Next")
        until(lambda: len(control.sets) >= 4, "the slab")
        case("PageDown shows the slab and moves it", control.sets[1:] ==
             [("projection", "slab"), ("slab_first", "0.4100"), ("slab_last", "0.6100")],
             control.sets)
        for _ in range(4):
            desk.keys(*["Next"] * 5)
        until(lambda: control.values["slab_last"] > 0.8, "the slab's end")
        case("many presses arrive at their sum", control.values ==
             {"projection": "slab", "slab_first": 0.61, "slab_last": 0.81}, control.values)
        control.stop()
        desk.keys("q")
        case("Q quits without an answer, too", viewer.wait(timeout=PATIENCE_S) == 0)
    finally:
        control.stop()
        publisher.stop()
        desk.close()


def bright(pixels):
    return int((pixels > 200).sum())


class Desk:
    """An Xvfb with what is needed to look at it and press keys."""

    def __init__(self):
        read, write = os.pipe()
        self.server = subprocess.Popen(
            ["Xvfb", "-displayfd", str(write), "-screen", "0", "800x600x24", "-nolisten", "tcp",
             "-noreset"],
            pass_fds=[write], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(write)
        # The number and its newline are two writes: closing between them would end the server.
        with os.fdopen(read) as line:
            display = line.readline().strip()
        if not display:
            raise RuntimeError("Xvfb did not start")
        # SDL unloads X libraries that leak a little; once unloaded they cannot be named in
        # lsan.supp. The headless runs look for leaks of our own.
        self.env = dict(BLIND, DISPLAY=":" + display, SDL_VIDEODRIVER="x11",
                        ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0")

    def open(self, endpoint, *arguments, size=("--size", "640x480")):
        viewer = subprocess.Popen([OCTVIEW, "--connect", endpoint, *size, *arguments],
                                  env=self.env, cwd=TMP, stderr=subprocess.PIPE, text=True)
        subprocess.run(["xdotool", "search", "--sync", "--name", "^octview "], env=self.env,
                       stdout=subprocess.DEVNULL, timeout=PATIENCE_S, check=True)
        time.sleep(0.5)
        return viewer

    def keys(self, *keys):
        subprocess.run(["xdotool", "mousemove", "400", "300", "key", *keys], env=self.env,
                       timeout=PATIENCE_S, check=True)
        time.sleep(0.6)

    def snap(self):
        """What the window shows: S, and the file that comes of it."""
        before = set(pictures())
        self.keys("s")
        until(lambda: set(pictures()) - before, "a snapshot")
        new, = set(pictures()) - before
        return numpy.asarray(Image.open(new).convert("L"))  # a file that has its name is whole

    def close(self):
        self.server.terminate()
        self.server.wait()


def pictures():
    return sorted(glob.glob(os.path.join(TMP, "octview-*.png")))


def niceness(pid):
    """Of every thread."""
    return {os.getpriority(os.PRIO_PROCESS, int(t)) for t in os.listdir(f"/proc/{pid}/task")}


def gives_way(endpoint):
    """A viewer is nicer than what started it, every thread of it, as far as view.nice says."""
    before = os.getpriority(os.PRIO_PROCESS, 0)
    for arguments, wanted in (([], max(before, 10)), (["--set", "view.nice=15"], max(before, 15)),
                              (["--set", "view.nice=0"], before)):
        viewer = subprocess.Popen([OCTVIEW, "--headless", "--screenshot", TMP + "/n.png",
                                   "--connect", endpoint, *arguments], env=BLIND,
                                  start_new_session=True)
        until(lambda: len(os.listdir(f"/proc/{viewer.pid}/task")) >= 4, "its threads")
        found = niceness(viewer.pid)
        group = f"/proc/{viewer.pid}/autogroup"  # a session of its own: its autogroup too
        words = open(group).read().split() if os.path.exists(group) else []
        viewer.kill()
        viewer.wait()
        case(f"{' '.join(arguments) or 'by itself'} octview has nice {wanted}",
             found == {wanted} and (not words or wanted == before or words[-1] == str(wanted)),
             (found, words))


def window(endpoint):
    desk = Desk()
    try:
        viewer = desk.open(endpoint)
        saved = [desk.snap()]
        publisher = Publisher(endpoint)
        end = time.monotonic() + PATIENCE_S
        while True:  # until it has found the publisher
            saved.append(desk.snap())
            live = bright(saved[-1]) > bright(saved[0]) + 5000
            if live or time.monotonic() > end:
                break
        desk.keys("Shift+Left", "Shift+Left", "Down", "w")
        saved.append(desk.snap())
        case("S saves every snapshot under a name of its own", len(pictures()) == len(saved),
             pictures())
        case("a window without a daemon is not black", bright(saved[0]) > 100)
        case("the live picture shows its layer", live, [bright(pixels) for pixels in saved])
        case("W makes pixels square where no spacing is known, and the window is filled without",
             bright(saved[-1][40:300, 10:60]) < bright(saved[-2][40:300, 10:60]))
        desk.keys("f")
        full = desk.snap()
        desk.keys("f")
        own = desk.snap()
        case("F fills a screen without a window manager, and F leaves it",
             full.shape == (600, 800) and own.shape == (480, 640) and bright(full[-60:]) > 100,
             (full.shape, own.shape))
        desk.keys("q")
        case("Q quits with exit status 0", viewer.wait(timeout=PATIENCE_S) == 0)
        text = viewer.stderr.read()
        case("a run in the window writes nothing to stderr", text == "", text)
        viewer = desk.open(endpoint, size=())
        whole = desk.snap()
        case("without --size the window is as large as the screen", whole.shape == (600, 800),
             whole.shape)
        desk.keys("q")
        viewer.wait(timeout=PATIENCE_S)
        for name, number_of in (("SIGINT", signal.SIGINT), ("SIGTERM", signal.SIGTERM)):
            viewer = desk.open(endpoint)
            viewer.send_signal(number_of)
            case(f"{name} ends the window with exit status 0", viewer.wait(timeout=PATIENCE_S) == 0)
        publisher.stop()
    finally:
        desk.close()


def main():
    try:
        calls()
        headless("ipc://" + os.path.join(TMP, "a"))
        spectra_alone("", "3")
        spectra_alone(", unevenly scanned,", "2", "scan.pattern=raster-both",
                      "scan.flyback_lines=40", "scan.phase=60", "scan.trigger_delay_lines=3.4")
        panels("ipc://" + os.path.join(TMP, "d"))
        gives_way("ipc://" + os.path.join(TMP, "c"))
        if shutil.which("Xvfb") and shutil.which("xdotool"):
            window("ipc://" + os.path.join(TMP, "b"))
            settings_of_the_daemon("ipc://" + os.path.join(TMP, "e"))
        else:
            skip("a window under Xvfb", "Xvfb or xdotool is not installed")
    finally:
        shutil.rmtree(TMP, ignore_errors=True)
    print(f"1..{number}")
    sys.exit(failed > 0)


main()
