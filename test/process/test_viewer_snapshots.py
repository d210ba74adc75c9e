#!/usr/bin/python3
"""octview's snapshots as another program reads them, its dimmer as the screen shows it, and its
sounds as the audio device hears them: a real octd fed by octctl replay, a real window under Xvfb."""
import datetime, re
import numpy as np
from PIL import Image
from octtest import *
from viewrig import RECORD, Desk

W, H = 1280, 720
HERE = folder("snapshots")
HEARD = HERE + "/heard"


class Window(Desk):
    PAUSE_S = 0.3

    def __init__(self):
        super().__init__("snapshots", W, H, view=dict(snapshot_has_pseudonym="yes"),
                         record=dict(eye="OD", pseudonym="M\u00fcl/7"))
        self.start_octd()
        self.start_camera()

    def open(self, driver, device=HEARD):
        """A window whose sounds go to a file, or whose audio driver is another."""
        self.env.update(SDL_AUDIODRIVER=driver, SDL_DISKAUDIOFILE=device)
        super().open()
        self.point()

    def quit(self):
        self.keys("q")
        return self.viewer.wait(timeout=PATIENCE_S)

    def snap(self, key="s"):
        """(name, picture, what its text says) of a snapshot that a key takes."""
        new = super().snap(key)
        image = Image.open(new)
        return os.path.basename(new), np.asarray(image.convert("RGB")), image.text


desk = None


def need_window():
    if desk is None or desk.viewer is None or desk.viewer.poll() is not None:
        raise Skip("no window")


@case
def a_live_snapshot():
    """a snapshot's name has time, eye and a safe pseudonym; its text says what it shows"""
    global desk
    desk = Window()
    desk.open("disk")
    state = lambda: json.loads(desk.snap()[2]["octview"])["state"]
    assert state() in ("waiting", "live")
    desk.until(lambda: state() == "live", "a live picture")
    name, picture, text = desk.snap()
    found = re.fullmatch(r"octview-(\d{8}-\d{6})-\d{3}-OD-M\u00fcl_7\.png", name)
    assert found, name
    assert picture.shape == (H, W, 3)
    when = datetime.datetime.strptime(text["Creation Time"], "%Y-%m-%dT%H:%M:%S%z")
    assert when.strftime("%Y%m%d-%H%M%S") == found[1], (text["Creation Time"], name)
    assert abs(when.timestamp() - time.time()) < PATIENCE_S
    assert text["Software"].startswith("octview ")
    about = json.loads(text["octview"])
    assert about["shows"] == "window" and about["eye"] == "OD", about
    assert about["pseudonym"] == "M\u00fcl/7" and "M\u00fcl/7" in text["Description"]
    assert about["acquisition"] and about["n_lines"] == 120 and 0 <= about["bscan"] < 40
    assert about["calipers"] == [] and "mark" not in about
    assert about["contrast"]["black"] < about["contrast"]["white"]


@case
def calipers_in_a_frozen_snapshot():
    """a frozen picture's calipers stand in the text, with lengths that follow from the spacing"""
    need_window()
    desk.keys("space", "m")
    desk.drag(300, 150, 300, 350)
    desk.drag(500, 200, 600, 300)
    _, _, text = desk.snap()
    about = json.loads(text["octview"])
    assert about["state"] == "frozen", about
    um = about["spacing_um"]
    assert [c["number"] for c in about["calipers"]] == [1, 2], about
    for c in about["calipers"]:
        across, deep = (abs(b - a) * um[k] for a, b, k in zip(c["from"], c["to"],
                                                              ("line", "depth")))
        assert abs(c["um"] - np.hypot(across, deep)) < 1e-6 * c["um"] and c["um"] > 10, c
        assert abs(c["across_um"] - across) < 1e-6 and abs(c["deep_um"] - deep) < 1e-6
        assert f"{c['number']}: {c['um']:.1f} \u00b5m" in text["Description"], text
    first = about["calipers"][0]
    assert abs(first["from"][0] - first["to"][0]) < 1e-9 and first["to"][1] > first["from"][1]


@case
def the_picture_alone():
    """Shift+S saves the picture in its own pixels, the frozen one the same each time"""
    need_window()
    _, first, text = desk.snap("shift+s")
    about = json.loads(text["octview"])
    assert about["shows"] == "picture" and len(about["calipers"]) == 2
    assert first.shape == (about["depth"], about["n_lines"], 3), first.shape
    assert (first[..., 0] == first[..., 2]).all() and first.std() > 5
    assert np.array_equal(first, desk.snap("shift+s")[1])


def light(pixels):
    """Mean light of sRGB pixels, 0 to 1."""
    c = pixels / 255
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4).mean()


@case
def less_light():
    """Ctrl+D takes light from the screen, a half and a quarter stay; snapshots keep theirs"""
    need_window()
    picture = np.s_[80:500, 100:1000]
    time.sleep(5)  # messages go
    full, saved = light(desk.look()[picture]), desk.snap()[1]
    assert full > 0.005
    for share in 0.5, 0.25, 1:
        desk.keys("ctrl+d")
        desk.until(lambda: abs(light(desk.look()[picture]) / full - share) < 0.03, "the light")
        assert np.array_equal(desk.snap()[1][picture], saved[picture])
    desk.keys("x", "m", "space")


PITCH = dict(a=660, b=880, c=1320)


def tones():
    """The tones that the device heard, by the strongest frequency of each: "ab", "ba", "ccc"."""
    if not os.path.exists(HEARD) or os.path.getsize(HEARD) < 960:
        return ""
    x = np.fromfile(HEARD, "<i2").astype(float)
    loud = np.convolve(abs(x) > 300, np.ones(480), "same") > 0
    edges = np.flatnonzero(np.diff(np.concatenate([[0], loud.astype(int), [0]])))
    word = ""
    for a, b in edges.reshape(-1, 2):
        spectrum = abs(np.fft.rfft(x[a:b] * np.hanning(b - a)))
        hz = np.argmax(spectrum) * 48000 / (b - a)
        word += next((k for k, v in PITCH.items() if abs(v - hz) < 15), "?")
    return word


@case
def sounds():
    """Ctrl+S sounds; a recording's begin and end and an alarm sound different; off, nothing does"""
    need_window()
    desk.until(lambda: desk.ask("status")["state"] == "running", "lines")

    def is_told():
        """The red line at the top. R means the end only once the window knows of a recording."""
        return bool((desk.look()[2:6, 10:W // 2] == RECORD).all(-1).mean() > 0.9)

    def record(wanted):
        desk.keys("r")
        desk.until(lambda: is_told() == wanted, "a recording" if wanted else "its end")
    record(True)
    record(False)
    assert not os.path.exists(HEARD)  # off by default
    desk.keys("ctrl+s")
    desk.until(lambda: "ab" in tones(), "a sound that says that there are sounds")
    os.remove(HEARD)
    record(True)
    desk.until(lambda: "ab" in tones(), "the begin")
    record(False)
    desk.until(lambda: "ba" in tones(), "the end")
    desk.kill_octd()
    until(lambda: "ccc" in tones(), "the alarm")
    assert desk.quit() == 0


@case
def a_machine_without_audio():
    """without an audio driver the window goes on, says so once, and ends well"""
    if desk is None:
        raise Skip("no window")
    desk.open("nonesuch")
    desk.keys("ctrl+s")
    log = lambda: open(HERE + "/octview.log").read()
    until(lambda: "no sound: " in log(), "a word of it")
    desk.keys("ctrl+s", "ctrl+s")
    desk.snap()
    assert desk.quit() == 0 and log().count("no sound: ") == 1, log()


@case
def a_device_that_hangs():
    """while the audio device hangs the window goes on, and ends in time"""
    if desk is None:
        raise Skip("no window")
    os.mkfifo(HERE + "/pipe")  # opening it for writing waits for a reader
    desk.open("disk", HERE + "/pipe")
    desk.keys("ctrl+s")
    time.sleep(1)
    wchan = {open(f"/proc/{desk.viewer.pid}/task/{t}/wchan").read()
             for t in os.listdir(f"/proc/{desk.viewer.pid}/task")}
    begin = time.monotonic()
    desk.snap()
    desk.snap()
    seen(f"two snapshots in {time.monotonic() - begin:.1f} s, threads in {sorted(wchan)}")
    begin = time.monotonic()
    assert desk.quit() == 0
    assert time.monotonic() - begin < (60 if SLOW else 10)


if __name__ == "__main__":
    try:
        main()
    finally:
        if desk is not None:
            desk.close()
