"""octview in a real window under Xvfb, at any size, on a real octd that octctl replay feeds: its
keys and buttons are pressed, and what it shows is read from the screen's own memory."""
import glob, shutil
import numpy as np
from PIL import Image, ImageDraw, ImageFont
from octtest import *

FONT = "/usr/share/fonts/truetype/dejavu/DejaVuSansMono.ttf"
SIZES = ((1280, 720), (1920, 1080), (3840, 2160))
# viewer/draw/canvas.h
GROUND, BAR, BUTTON = (0x12, 0x16, 0x1c), (0x22, 0x2a, 0x34), (0x30, 0x3b, 0x49)
PLAIN, DIM, GOOD, WARN, BAD, RECORD = (0xd8, 0xde, 0xe6), (0x8a, 0x96, 0xa4), (0x7f, 0xc8, 0xa0), \
    (0xe6, 0xb8, 0x66), (0xf0, 0x8a, 0x7c), (0xb3, 0x26, 0x1e)
SAME = 0.88  # how alike drawn words and words of the same font are at least
RATE_HZ = 2400 if SLOW else 6000  # A-lines
# Parts of the window's height.
HEADER, BANNERS, BUTTONS, STATUS = (0, 0.08), (0.03, 0.3), (0.85, 0.99), (0.95, 1)


def needs_a_screen():
    for name in "Xvfb", "xdotool":
        if not shutil.which(name):
            raise Skip(f"{name} is not installed")
    if not os.path.exists(FONT):
        raise Skip("DejaVu Sans Mono is not installed")


def soft(image):
    """Neighbours share their light: letters lie at parts of a pixel."""
    for _ in range(2):
        wide = np.pad(image, ((1, 1), (0, 0)), mode="edge")
        image = ((wide[:-2] + 2 * wide[1:-1] + wide[2:]) / 4).T
    return image


def letters(words, px):
    """How light each pixel of these words is, 0 to 1, with half a letter of nothing at each end, so
    that words are not found within longer ones."""
    font, edge = ImageFont.truetype(FONT, 8 * px), px // 3
    image = Image.new("L", (int(font.getlength(words)) // 8 * 8 + 16 * edge, 11 * px), 0)
    ImageDraw.Draw(image).text((8 * edge, 0), words, fill=255, font=font)
    drawn = np.asarray(image.resize((image.width // 8, image.height // 8), Image.BOX), np.float32)
    rows = np.flatnonzero(drawn.max(1) > 12)
    return soft(drawn[rows[0]:rows[-1] + 1] / 255)


class Picture:
    """A grey picture, 0 to 1, in which words are looked for."""

    def __init__(self, light):
        self.light = light
        # A multiple of 32 transforms fast; words are not longer than what is added.
        self.shape = tuple((n + 32) // 32 * 32 for n in light.shape)
        self.spectra = [np.fft.rfft2(x, self.shape) for x in (light, light * light)]

    def likeness(self, of):
        """The correlation of `of` with each place that holds it, -1 to 1; None: there is none."""
        h, w = of.shape
        if h > self.light.shape[0] or w > self.light.shape[1]:
            return None
        rows, columns = self.light.shape[0] - h + 1, self.light.shape[1] - w + 1

        def sums(kernel, spectrum):
            turned = np.conj(np.fft.rfft2(kernel, self.shape))
            return np.fft.irfft2(spectrum * turned, self.shape)[:rows, :columns]
        of, ones = of - of.mean(), np.ones_like(of)
        mean = sums(ones, self.spectra[0]) / of.size
        power = sums(ones, self.spectra[1]) / of.size - mean * mean
        return sums(of, self.spectra[0]) / of.size / np.sqrt(np.maximum(power, 1e-4)
                                                             * (of * of).mean())

    def find(self, words, sizes):
        """(how alike, x, y) of the middle of the best place."""
        best = (0.0, 0, 0)
        for px in sizes:
            of = letters(words, px)
            like = self.likeness(of)
            if like is not None:
                y, x = np.unravel_index(np.argmax(abs(like)), like.shape)
                best = max(best, (float(abs(like[y, x])), int(x) + of.shape[1] // 2,
                                  int(y) + of.shape[0] // 2))
        return best


class Screen:
    """An Xvfb whose pixels lie in a file (XWD: a header of big-endian words, then the picture)."""

    def __init__(self, width, height, where):
        needs_a_screen()
        self.width, self.height = width, height
        read, write = os.pipe()
        self.process = subprocess.Popen(
            ["Xvfb", "-displayfd", str(write), "-screen", "0", f"{width}x{height}x24", "-dpi", "96",
             "-fbdir", where, "-nolisten", "tcp", "-noreset"], pass_fds=[write],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(write)
        with os.fdopen(read) as line:
            self.display = ":" + line.readline().strip()
        path = where + "/Xvfb_screen0"
        words = np.fromfile(path, ">u4", 25)
        assert words[11] == 32 and words[4] == width, words
        self.memory = np.memmap(path, np.uint8, "r", int(words[0] + 12 * words[19]),
                                (height, int(words[12])))[:, :width * 4].reshape(height, width, 4)

    def shot(self, part=np.s_[:]):
        """The window, or a part of it, as it is: red, green, blue."""
        return self.memory[part][:, :, 2::-1].copy()


class Desk:
    """A screen, octview, octd and a camera, each of which may be missing."""

    PAUSE_S = 0.15  # after keys, for what they do to be seen

    def __init__(self, name, width=1280, height=720, **sections):
        self.where = folder(name)
        self.screen = Screen(width, height, self.where)
        self.width, self.height = width, height
        self.text_px = None
        self.octd = self.viewer = self.camera = None
        self.n_clicks = 0
        self.control = f"ipc://{self.where}/ctl"
        self.records = self.where + "/records"
        scan = dict(lines=120, bscans=40, line_rate_hz=RATE_HZ, **sections.pop("scan", {}))
        ok("synth", self.where + "/eye.raw", "--calibration", self.where + "/cal",
           *settings(scan=dict(lines=120, bscans=40)))
        pipeline = dict(crop_last=640, range="percentile", **sections.pop("pipeline", {}))
        record = dict(directory=self.records, **sections.pop("record", {}))
        self.common = ["--config", self.where + "/cal/calibration.ini", *settings(
            scan=scan, pipeline=pipeline, record=record,
            ingest=dict(endpoint=f"ipc://{self.where}/in"),
            publish=dict(endpoint=f"ipc://{self.where}/out"),
            control=dict(endpoint=self.control), **sections)]
        self.env = dict(os.environ, DISPLAY=self.screen.display, SDL_VIDEODRIVER="x11",
                        XDG_CONFIG_HOME=self.where + "/config",
                        # X libraries that SDL unloads leak a little (see test_viewer_program.py).
                        ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0")

    # ---- what stands on it ----

    def start(self, name, *arguments, env=None):
        return subprocess.Popen([program(name), *arguments], cwd=self.where,
                                env=env or os.environ, stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL,
                                stderr=open(f"{self.where}/{name}.log", "ab"))

    def start_octd(self, *more):
        self.octd = self.start("octd", *self.common, *more)
        until(lambda: self.ask("status", patience_s=2), "octd starts")

    def start_camera(self, rate=RATE_HZ):
        self.rate = rate
        self.keep_camera()

    def keep_camera(self):
        """Replay gives up when nobody takes its lines for a while, as on a machine too busy."""
        if self.octd and getattr(self, "rate", 0) and \
                (self.camera is None or self.camera.poll() is not None):
            self.camera = self.start("octctl", "replay", self.where + "/eye.raw", *self.common,
                                     "--loop", "--rate", str(self.rate))

    def point(self):
        """The mouse into the B-scan, where no button is."""
        self.xdotool("mousemove", self.width // 2 - 100, self.height // 2)
        time.sleep(0.5)

    def snap(self, key="s"):
        """The file of a snapshot that a key takes; one that has its name is whole."""
        pictures = self.where + "/octview-*.png"
        before = set(glob.glob(pictures))
        self.xdotool("key", key)
        self.until(lambda: set(glob.glob(pictures)) - before, "a snapshot")
        new, = set(glob.glob(pictures)) - before
        return new

    def stop_camera(self):
        self.rate = 0
        self.end(self.camera)
        self.camera = None

    def kill_octd(self):
        self.end(self.octd)
        self.octd = None

    def open(self, *arguments, settings=("--settings", "none")):
        self.viewer = self.start("octview", *self.common, *settings, "--size",
                                 f"{self.width}x{self.height}", *arguments, env=self.env)
        self.xdotool("search", "--sync", "--name", "^octview ")
        catches(self.viewer)

    @staticmethod
    def end(process):
        if process is not None and process.poll() is None:
            process.kill()
            process.wait()

    def close(self):
        for process in (self.viewer, self.camera, self.octd, self.screen.process):
            self.end(process)

    def ask(self, cmd, patience_s=PATIENCE_S, **fields):
        """octd's reply; None: there is none."""
        socket = zmq.Context.instance().socket(zmq.REQ)
        socket.linger = 0
        socket.connect(self.control)
        socket.send(json.dumps(dict(cmd=cmd, **fields)).encode())
        reply = json.loads(socket.recv()) if socket.poll(patience_s * 1000) else None
        socket.close()
        return reply

    def set(self, **values):
        """section__key=value"""
        for key, value in values.items():
            reply = self.ask("set", key=key.replace("__", "."), value=str(value))
            assert reply["ok"], reply

    def value(self, key):
        return self.ask("get", key=key)["value"]

    # ---- hands ----

    def until(self, true, what):
        def is_so():
            self.keep_camera()
            return true()
        until(is_so, what)

    def xdotool(self, *words):
        subprocess.run(["xdotool", *map(str, words)], env=self.env, timeout=PATIENCE_S, check=True,
                       stdout=subprocess.DEVNULL)

    def keys(self, *keys):
        self.xdotool("key", *keys)
        time.sleep(self.PAUSE_S)

    def drag(self, x0, y0, x1, y1, button=1):
        self.xdotool("mousemove", x0, y0, "mousedown", button)
        self.xdotool("mousemove", (x0 + x1) // 2, (y0 + y1) // 2, "mousemove", x1, y1)
        time.sleep(0.2)
        self.xdotool("mouseup", button)

    def type(self, text):
        self.xdotool("type", "--delay", "40", text)
        time.sleep(0.15)

    def click_at(self, x, y):
        self.n_clicks += 1
        self.xdotool("mousemove", x, y)
        time.sleep(0.05)
        self.xdotool("click", 1)
        time.sleep(0.15)

    def click(self, *labels):
        """A button by its label, or by another one where a label has no room. Counted."""
        places = []

        def are_there():
            found = filter(None, (self.find(label, HEADER, BUTTONS) for label in labels))
            places.extend(place for place in found if not self.is_of_no_use(*place))
            return places
        self.until(are_there, "a button " + " or ".join(labels))
        self.click_at(*places[0])

    # ---- eyes ----

    def is_of_no_use(self, x, y):
        """Whether the button below the picture with its label there is of no use now: what makes
        it so may not have come to the window yet."""
        label = self.look()[y - 8:y + 8, x - 24:x + 24].mean(-1)
        return y > BUTTONS[0] * self.height and np.median(label) < 100 and label.max() < 190

    def look(self):
        return self.screen.shot()

    def middle(self):
        """The inner part of the B-scan, where it is alone in the window."""
        return self.screen.shot(np.s_[self.height * 3 // 10:self.height * 7 // 10,
                                      self.width // 5:self.width // 2])

    def strip(self, top, bottom, pixels=None):
        """A part of the window's height, to look for words in."""
        pixels = self.look() if pixels is None else pixels
        part = pixels[int(top * self.height):int(np.ceil(bottom * self.height))]
        return Picture(soft(part.astype(np.float32).mean(-1) / 255))

    def learn_text(self):
        """The height of normal letters: that of the end of the status line."""
        strip = self.strip(0.9, 1)
        best = max((strip.find("F2 more", [px])[0], px) for px in range(11, 50))
        if best[0] > SAME:
            self.text_px = best[1]
        return self.text_px

    def find(self, words, *strips, pixels=None):
        """Where the middle of these words is, in normal or large letters; None: nowhere. Strips:
        pairs of the window's height to look in; else in all of it."""
        if self.text_px is None:
            self.until(self.learn_text, "letters")
        sizes = self.text_px, self.text_px * 3 // 2
        best = (0.0, 0, 0)
        for top, bottom in strips or [(0, 1)]:
            like, x, y = self.strip(top, bottom, pixels).find(words, sizes)
            best = max(best, (like, x, int(top * self.height) + y))
        return best[1:] if best[0] > SAME else None

    def says(self, words, *where):
        return lambda: self.find(words, *where) is not None

    def state_is(self, word):
        """What the status line begins with."""
        place = self.find(word, STATUS)
        return place is not None and place[0] < self.width // 3

    def save(self, name):
        """The window into the folder OCT_PICTURES, where that is given."""
        to = os.environ.get("OCT_PICTURES")
        if to:
            Image.fromarray(self.look()).save(f"{to}/{name}-{self.width}x{self.height}.png")

    def white_share(self):
        """The share of the window that the largest white rectangle has: the B-scan, where octd
        shows it all white."""
        white = (self.look().min(-1) > 250)
        rows, columns = white.mean(1), white.mean(0)
        rows, columns = np.flatnonzero(rows > rows.max() / 2), \
            np.flatnonzero(columns > columns.max() / 2)
        if not len(rows) or white.mean() < 0.01:
            return 0.0
        return float((np.ptp(rows) + 1) * (np.ptp(columns) + 1) / white.size)


def share(pixels, colour):
    """How much of these pixels has exactly this colour."""
    return float((pixels == np.array(colour, np.uint8)).all(-1).mean())
