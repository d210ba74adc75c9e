#!/usr/bin/python3
"""An operator's five minutes, shortened: a real octd fed by octctl replay, octview in a real window
under Xvfb, keys and mouse by xdotool. What the window shows is judged by its own snapshots."""
import glob, itertools, shutil
import numpy as np
from PIL import Image
from octtest import *
from viewrig import BAD, GOOD, PLAIN, RECORD, WARN, Desk

W, H = 1280, 720
MEASURE = 0x5c, 0xc8, 0xff
# Files of the window, its settings, the recording that is played.
HERE = folder("session")


def share(pixels, colour, left, top, width, height):
    """How much of a rectangle has exactly this colour."""
    part = pixels[top:top + height, left:left + width]
    return float((part == np.array(colour, np.uint8)).all(-1).mean())


def recording(pixels):
    return share(pixels, RECORD, 0, 0, W // 2, 8) > 0.9


def alarm(pixels):
    """The stripe of the banner at the left edge."""
    return share(pixels, BAD, 9, 48, 5, 30) > 0.9


def live(pixels):
    return share(pixels, GOOD, 9, H - 17, 7, 9) > 0.9


class Clinic(Desk):
    """Everything that stands on the desk."""

    PAUSE_S = 0.3

    def __init__(self):
        super().__init__("session", W, H)

    def start_daemon(self):
        self.start_octd()
        self.start_camera()

    def look(self, key="s"):
        """What the window shows: a snapshot, taken by its own key."""
        return np.asarray(Image.open(self.snap(key)).convert("RGB"))

    def wish(self, press, true, what, again_s=20):
        """A wish that octd grants. octview gives up on an answer after two seconds, which an octd
        may take on a busy machine, and keys may be lost there: then it is wished again."""
        end = time.monotonic() + PATIENCE_S
        while True:
            press()
            try:
                until(true, what, again_s)
                return
            except AssertionError:
                if time.monotonic() > end:
                    raise

    def see(self, true, what):
        self.until(lambda: true(self.look()), what)

    def open(self):
        super().open(settings=())
        self.point()


clinic = None


@case
def it_waits_and_connects():
    """a window without a daemon says so; with one it shows the live picture"""
    global clinic
    clinic = Clinic()
    clinic.open()
    waiting = clinic.look()
    assert not live(waiting) and (waiting.max(-1) > 200).mean() > 0.002
    clinic.start_daemon()
    clinic.see(live, "a live picture")
    clinic.see(lambda p: (p[60:570, 300:900].max(-1) > 150).mean() > 0.01, "a bright picture")
    clinic.until(lambda: not alarm(clinic.look()), "no alarm")


def need_window():
    if clinic is None or clinic.viewer is None:
        raise Skip("no window")


@case
def contrast_and_layout():
    """keys change contrast, colours and layout at once"""
    need_window()
    before = clinic.look()
    clinic.keys("Left", "Left", "shift+Left", "shift+Left")
    brighter = clinic.look()
    middle = np.s_[100:500, 500:700]
    assert brighter[middle].mean() > before[middle].mean() + 10
    clinic.keys("shift+c", "shift+c")
    colours = clinic.look()[middle].astype(int)
    assert (abs(colours[..., 0] - colours[..., 2]) > 30).mean() > 0.2
    clinic.keys("p", "shift+c", "l", "l")
    four = clinic.look()
    assert share(four, MEASURE, 780, 380, 480, 180) > 0.002  # the spectrum's curve
    assert share(four, GOOD, 80, 380, 660, 180) > 0.002      # the profile's
    clinic.keys("l")


def lines_across(pixels):
    """Rows of the B-scan's panel with a green line; it is half transparent."""
    panel = pixels[60:400, 10:700].astype(int)
    return int(((panel[..., 1] - panel[..., 0] > 20).sum(1) > 60).sum())


@case
def en_face_is_octds():
    """the en face panel shows octd's picture; E and the slab's keys set what octd computes"""
    need_window()
    clinic.keys("l")  # two panels
    try:
        clinic.see(lambda p: share(p, GOOD, 10, 420, 1260, 200) > 0.0001, "the scan's place")
        panel = np.s_[420:620, 340:940]  # below the B-scan of a wide scan
        clinic.see(lambda p: (p[panel].max(-1) > 60).mean() > 0.02, "an en face picture")
        # Once a volume was seen whole the panel stays full: 40 B-scans take 0.8 s.
        rows = lambda p: int((p[panel].std(axis=1).max(-1) > 8).sum())
        clinic.see(lambda p: rows(p) > 145, "all rows of it")
        assert min(rows(clinic.look()) for _ in range(4)) > 145
        get = lambda key: clinic.ask("get", key="analysis.enface_" + key)["value"]
        before = get("projection"), float(get("slab_first")), float(get("slab_last"))
        clinic.wish(lambda: clinic.keys("e"), lambda: get("projection") != before[0], "a projection")
        assert lines_across(clinic.look()) == 0
        clinic.keys("Next")  # PageDown
        clinic.until(lambda: get("projection") == "slab", "the slab")
        clinic.until(lambda: abs(float(get("slab_last")) - before[2] - 0.01) < 1e-3, "the slab's end")
        assert abs(float(get("slab_first")) - before[1] - 0.01) < 1e-3
        clinic.see(lambda p: 2 <= lines_across(p) <= 8, "its edges on the B-scan")
        for key, value in zip(("projection", "slab_first", "slab_last"), before):
            assert clinic.ask("set", key="analysis.enface_" + key, value=value)["ok"]
    finally:
        clinic.keys("l", "l")


@case
def calipers():
    """calipers are drawn where the mouse was dragged, and taken away"""
    need_window()
    clinic.keys("m")
    clinic.drag(560, 200, 560, 400)
    image = clinic.look()
    assert share(image, MEASURE, 558, 210, 5, 180) > 0.3
    clinic.keys("x", "m")
    assert share(clinic.look(), MEASURE, 558, 210, 5, 180) == 0
    clinic.xdotool("mousemove", 600, 300, "click", 1)
    assert share(clinic.look(), (0xff, 0xe1, 0x4d), 560, 280, 80, 40) > 0.005  # the marked point
    clinic.keys("x")


@case
def calipers_and_a_mark_by_key():
    """M and the arrows put calipers there and move them; N marks a point; X takes both away"""
    need_window()
    before = clinic.look()
    clinic.keys("m", "Right", "Down", "Tab", "shift+Up")
    image = clinic.look()
    assert share(image, MEASURE, 540, 100, 120, 440) > share(before, MEASURE, 540, 100, 120, 440) \
        + 0.002
    clinic.keys("n", "shift+Left", "shift+Left", "Up")
    image = clinic.look()
    assert share(image, (0xff, 0xe1, 0x4d), 480, 200, 200, 200) > 0.001
    clinic.keys("x", "m")
    assert share(clinic.look(), MEASURE, 540, 100, 120, 440) == 0


@case
def the_average_in_place_of_bscans():
    """B shows octd's average, asks for one where octd makes none, and shows each B-scan again"""
    need_window()

    def corner(image):
        """The second line of the corner: how far the scales differ goes below it."""
        return share(image, PLAIN, 10, 122, 300, 18) > 0.004
    number = lambda: clinic.ask("get", key="average.bscans")["value"]
    assert clinic.ask("set", key="average.bscans", value="1")["ok"]
    assert not corner(clinic.look())
    clinic.wish(lambda: clinic.keys("b"), lambda: number() == "8", "an average of 8")
    clinic.see(corner, "the average")
    clinic.wish(lambda: clinic.keys("shift+b"), lambda: number() == "16", "one of 16")
    # While octd begins the new average, B asks for one again: then it is pressed once more.
    clinic.see(corner, "the average of 16")
    clinic.wish(lambda: clinic.keys("b"), lambda: not corner(clinic.look()), "each B-scan",
                again_s=15)
    bscan = np.s_[100:400, 300:700]
    first = clinic.look()[bscan]
    clinic.see(lambda image: (image[bscan] != first).mean() > 0.1, "the next B-scan")
    assert clinic.ask("set", key="average.bscans", value="1")["ok"]


@case
def recording_from_the_window():
    """R records, the window says so only as the daemon confirms, and R ends it"""
    need_window()
    clinic.wish(lambda: clinic.keys("y"),
                lambda: clinic.ask("get", key="record.eye")["value"] == "OD", "the eye")

    def type_name():
        clinic.keys("t")
        clinic.xdotool("type", "--delay", "60", "P-7r")  # letters that are keys elsewhere
        clinic.keys("Return")
    clinic.wish(type_name, lambda: clinic.ask("get", key="record.pseudonym")["value"] == "P-7r",
                "pseudonym")
    assert clinic.ask("get", key="record.eye")["value"] == "OD"
    clinic.until(lambda: clinic.ask("status")["state"] == "running", "lines")
    clinic.wish(lambda: clinic.keys("r"), lambda: clinic.ask("status")["record"]["active"],
                "recording")
    clinic.see(recording, "the header says recording")
    clinic.keys("Escape")  # leaves no recording alone
    clinic.until(lambda: clinic.ask("status")["volumes_written"] >= 1, "a volume")
    assert clinic.viewer.poll() is None
    # The button, its first, at the left.
    clinic.wish(lambda: clinic.xdotool("mousemove", 50, 678, "click", 1),
                lambda: not clinic.ask("status")["record"]["active"], "the end of it")
    clinic.see(lambda p: not recording(p), "the header says so")
    if not SLOW:  # there it may say that no answer came
        clinic.see(lambda p: share(p, GOOD, 0, 0, W, 50) > 0.01, "SAVED n volumes")
    name = sorted(glob.glob(HERE + "/records/*.h5"))[0]
    assert os.path.basename(name).startswith("OD_")


@case
def a_refused_recording_is_seen():
    """a recording that octd refuses is told in the window"""
    need_window()
    assert clinic.ask("set", key="record.directory", value="/dev/null/nowhere")["ok"]
    clinic.keys("r")
    clinic.see(lambda p: share(p, BAD, 0, 0, W, 50) > 0.01, "the refusal")
    assert clinic.ask("status")["state"] == "running"
    assert clinic.ask("set", key="record.directory", value=HERE + "/records")["ok"]


@case
def freezing_and_stepping():
    """frozen the picture stands; comma steps back"""
    need_window()
    picture = np.s_[120:480, 500:700]
    clinic.keys("space")
    time.sleep(5)  # messages go
    first, second = clinic.look(), clinic.look()
    assert np.array_equal(first[picture], second[picture])
    clinic.keys("comma", "comma")

    def stepped():
        clinic.keys("comma")
        return not np.array_equal(clinic.look()[picture], first[picture])
    clinic.until(stepped, "an older picture")
    clinic.keys("space")
    clinic.see(lambda p: not np.array_equal(p[picture], clinic.look()[picture]), "it goes on")


@case
def plain_snapshot():
    """Shift+S saves the picture as it came, without words"""
    need_window()
    assert clinic.look("shift+s").shape == (640, 120, 3)


@case
def the_daemon_dies_and_comes_back():
    """a killed daemon is told by a banner within seconds, and found again by itself"""
    need_window()
    clinic.kill_octd()
    clinic.see(lambda p: alarm(p) and not live(p), "the banner")
    clinic.start_daemon()
    clinic.see(lambda p: live(p) and not alarm(p), "live again")


@case
def settings_are_remembered():
    """Q ends it with status 0; layout and contrast are remembered"""
    need_window()
    clinic.keys("l", "Right")
    clinic.keys("q")
    assert clinic.viewer.wait(PATIENCE_S) == 0
    text = open(HERE + "/config/octd/viewer.ini").read()
    assert "layout = two" in text and "contrast = manual" in text, text
    log = open(HERE + "/octview.log").read()
    assert log == "", log
    clinic.open()
    clinic.see(lambda p: live(p) and share(p, GOOD, 10, 420, 1260, 200) > 0.0001,
               "a second start, with the scan's place in the en face")
    clinic.keys("ctrl+o", "F1")
    clinic.keys("m", "l")
    clinic.keys("F1")
    clinic.keys("q", "s")  # locked: nothing
    assert clinic.viewer.poll() is None
    # Recording is not locked. This window did not hear who said the label: it asks once.
    clinic.wish(lambda: clinic.keys("r", "r"),
                lambda: clinic.ask("status")["record"]["active"], "recording in the profile")
    # Until octview has heard that recording is on, R asks for it once more.
    clinic.wish(lambda: clinic.keys("r"),
                lambda: not clinic.ask("status")["record"]["active"], "the end of it", again_s=5)
    clinic.keys("shift+c", "m", "ctrl+o")  # nor are the colours; measuring is
    middle = clinic.look()[np.s_[100:500, 200:400]]
    assert middle[:60].mean() > middle[-60:].mean() + 10  # inverted: bright above the retina
    clinic.keys("q")
    assert clinic.viewer.wait(PATIENCE_S) == 0


def locales():
    """Names of locales that are not UTF-8, and where to find them. In Japan's older one X11 composes
    its own bytes; it is made here, where that can be done."""
    yield "C", None
    path, name = folder("session/locales"), "ja_JP.eucJP"
    if shutil.which("localedef"):
        subprocess.run(["localedef", "-i", "ja_JP", "-f", "EUC-JP", f"{path}/{name}"],
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if os.path.exists(f"{path}/{name}"):
        yield name, path


@case
def letters_survive_any_locale():
    """a pseudonym typed in letters outside ASCII, alone or of two keys, arrives in any locale"""
    need_window()
    env = {k: v for k, v in clinic.env.items() if not k.startswith("LC_") and k != "LANG"}
    typed, there = "P\u00e9\u00b5\u015f\u0416\u00fc", dict(env, LC_ALL="C.UTF-8")
    for name, path in locales():
        clinic.env = dict(env, LC_ALL=name, **({"LOCPATH": path} if path else {}))
        clinic.open()
        clinic.see(live, "a live picture")
        clinic.env = there  # xdotool's own

        # xdotool lends a key to each letter that has none; a busy window must see it in time.
        delays_ms = itertools.chain((60, 120, 250), itertools.repeat(600))

        def type_name():
            clinic.keys("t", *["BackSpace"] * 10)
            clinic.xdotool("type", "--delay", str(next(delays_ms)), typed[:-1])
            clinic.keys("dead_diaeresis", "u", "Return")
        clinic.wish(type_name, lambda: clinic.ask("get", key="record.pseudonym")["value"] == typed,
                    "the pseudonym in " + name, again_s=3)
        clinic.keys("q")
        assert clinic.viewer.wait(PATIENCE_S) == 0
        assert clinic.ask("set", key="record.pseudonym", value="")["ok"]
    clinic.env = env


@case
def snapshot_command():
    """octctl snapshot draws the same window without a display"""
    need_window()
    env = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY")}
    done = subprocess.run([program("octctl"), "snapshot", HERE + "/out.png", *clinic.common,
                           "--size", f"{W}x{H}", "--settings", "none"], env=env, timeout=PATIENCE_S,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    image = np.asarray(Image.open(HERE + "/out.png").convert("RGB"))
    assert image.shape == (H, W, 3) and live(image)
    with open(HERE + "/two.ini", "w") as f:
        f.write("[view]\nlayout = two\n")
    for _ in range(5):  # a busy machine brings no whole volume within these pictures
        done = subprocess.run([program("octctl"), "snapshot", HERE + "/two.png", *clinic.common,
                               "--size", f"{W}x{H}", "--settings", HERE + "/two.ini", "--n-frames",
                               "90"], env=env, timeout=PATIENCE_S, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True)
        assert done.returncode == 0 and done.stderr == "", done.stderr
        image = np.asarray(Image.open(HERE + "/two.png").convert("RGB"))[445:570, 10:1270]
        columns = np.flatnonzero((image.std(axis=0).max(-1) > 8))
        # 120 A-lines, 40 B-scans as far apart: three times as wide as high, not 120 to a guess of
        # 64.
        if 500 < columns[-1] - columns[0] < 640:
            break
    assert 500 < columns[-1] - columns[0] < 640, (columns[0], columns[-1])
    for words, status in ((["--nope"], 2), ([], 2), (["/dev/null/a.png"], 1)):
        done = subprocess.run([program("octctl"), "snapshot", *words, *clinic.common,
                               "--settings", "none"], env=env, timeout=PATIENCE_S,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)
        assert done.returncode == status and done.stderr.count("\n") == 1, (words, done)


try:
    main()
finally:
    if clinic is not None:
        clinic.close()
