#!/usr/bin/python3
"""The page of octweb in a headless Chromium, on a real octd that a synthetic retina is replayed
into: what is seen, pressed, typed and measured, on a phone, a tablet and a desktop."""
from webrig import *

LINES, BSCANS, DEPTH, WIDTH_UM = 120, 16, 600, 1200
EYE = at("retina.h5")
PHONE, TABLET, DESK, LEAST = (390, 844), (1024, 768), (1920, 1080), (320, 568)
KEEPS = os.environ.get("OCT_PICTURES")  # make check-window: pictures to be looked at


class Eye:
    """octd, its camera and octweb."""

    def __init__(self):
        field = settings(scan=dict(lines=LINES, bscans=BSCANS, width_um=WIDTH_UM, height_um=320))
        ok("synth", EYE, *field, "--seed", 3, "--calibration", at("cal"))
        self.scan = ["--config", at("cal", "calibration.ini"),
                     *settings(pipeline=dict(crop_last=DEPTH, backend="cpu"))]
        self.octd = Daemon(*self.scan)
        self.web = Web(self.octd.publish, self.octd.control, *self.scan, "--set",
                       f"record.directory={self.octd.records}")
        self.camera = None
        self.keep_camera()
        atexit.register(self.end)

    def keep_camera(self):
        if self.camera is None or self.camera.poll() is not None:
            self.camera = subprocess.Popen(
                [program("octctl"), "replay", EYE, *self.octd.common, "--loop", "--rate", "1800"],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def end(self):
        for process in self.camera, self.octd.process, self.web.process:
            process.kill()
            process.wait()


eye = Eye()


def page(size, role="operate"):
    c = Chromium(*size, touch=size[0] < 500)
    c.size = size
    c.go(eye.web.link("doctor-" + role, role))
    eye.keep_camera()
    c.until("window.octweb && octweb.drawn.length > 3 && octweb.state !== null", "a picture")
    return c


def keep(c, name):
    path = at(f"{name}-{c.size[0]}x{c.size[1]}.png")
    c.picture(path)
    if KEEPS:
        shutil.copy(path, KEEPS)


def words(c, where):
    return c.js(f"document.querySelector('{where}').textContent")


def press(c, label):
    """A button, once it is of use."""
    find = f"[...document.querySelectorAll('button')].find(b => b.textContent === '{label}')"
    c.until(f"{find} && !{find}.disabled", f"the button {label}")
    c.js(f"{find}.click()")


@case
def sizes():
    """on each screen all is in view from left to right, letters are legible and buttons are large"""
    for size in LEAST, PHONE, TABLET, DESK:
        c = page(size)
        assert c.js("document.documentElement.scrollWidth") <= size[0], size
        small = c.js("""[...document.querySelectorAll('button, input')].filter(b => b.offsetParent &&
            b.getBoundingClientRect().height < 31).map(b => b.textContent)""")
        letters = c.js("""Math.min(...[...document.querySelectorAll('p, span, button, strong')]
            .filter(e => e.offsetParent && e.textContent)
            .map(e => parseFloat(getComputedStyle(e).fontSize)))""")
        assert small == [] and letters >= 14, (size, small, letters)
        c.until("!document.getElementById('enface').hidden", "the picture from above")
        time.sleep(0.5)
        keep(c, "live")
        assert c.errors() == [], c.errors()
        nameless = c.js("""[...document.querySelectorAll('button, input, canvas.picture, figure')]
            .filter(e => !(e.textContent.trim() || e.ariaLabel || e.labels?.length
                           || e.placeholder || e.closest('[aria-label]'))).length""")
        assert nameless == 0
        c.close()


@case
def layers():
    """layers that octd finds are drawn where octview draws them, by octview's words"""
    c = page(TABLET)
    press(c, "Layers")
    c.until("octweb.panels[0].picture?.words?.some(w => w[0].startsWith('ILM to RPE'))", "layers")
    found = c.js("""(() => { const p = octweb.panels[0].picture;
        return {draw: p.draw, lines: p.lines, depth: p.depth}; })()""")
    import h5py
    with h5py.File(EYE) as file:
        truth = {name: file[f"truth/surfaces_px/{name}"][:] for name in ("ilm", "rpe")}
    for name, rgb, by in ("ilm", 0x4be0d0, -2.5), ("rpe", 0xff7ac8, 4):
        at_ = [np.array(d[3]).reshape(-1, 2) / 1e4 for d in found["draw"] if d[0] == rgb]
        places = np.concatenate(at_)
        line = np.clip((places[:, 0] * LINES).astype(int), 0, LINES - 1)
        near = np.abs(places[:, 1] * DEPTH - 0.5 - truth[name][:, line] - by).min(0)
        assert len(places) > LINES / 2 and np.median(near) < 3, (name, np.median(near))
    c.close()


@case
def freezing():
    """frozen, the value under the cursor is right to the last bit, and the picture stays"""
    c = page(DESK)
    c.js("document.activeElement.blur()")
    c.key(" ")
    c.until("octweb.panels[0].picture.isPng", "the whole picture")
    assert words(c, "#bscan .veil strong") == "FROZEN"
    frame = c.js("octweb.panels[0].picture.frame")
    box = c.js("(() => { const b = document.getElementById('bscan').getBoundingClientRect();"
               "return [b.left, b.top, b.width, b.height]; })()")
    for u, v in (0.3, 0.4), (0.77, 0.62), (0.01, 0.99):
        c.mouse("mouseMoved", box[0] + u * box[2], box[1] + v * box[3])
        value, line, depth = re.match(r"(\S+) dB  A-line (\d+), depth (\d+)",
                                      words(c, "#readout")).groups()
        assert abs(int(line) - u * LINES) <= 1 and abs(int(depth) - v * DEPTH) <= 1
        level, lo, hi = c.js(f"""(() => {{ const p = octweb.panels[0];
            return [p.raw.getContext('2d').getImageData({line}, {depth}, 1, 1).data[0],
                    p.picture.lo, p.picture.hi]; }})()""")
        assert abs(float(value) - (lo + level / 255 * (hi - lo))) < 0.051
    keep(c, "frozen")
    time.sleep(0.5)
    assert c.js("octweb.panels[0].picture.frame") == frame
    c.key(" ")
    c.until(f"octweb.panels[0].picture.frame > {frame}", "live pictures")
    c.close()


@case
def measuring():
    """calipers are in micrometres, by mouse and by arrows; keys and buttons change the contrast"""
    c = page(DESK)
    press(c, "Measure")
    left, top, wide, high = c.js(
        "(() => { const b = document.getElementById('bscan').getBoundingClientRect();"
        "return [b.left, b.top, b.width, b.height]; })()")
    c.mouse("mousePressed", left + 0.25 * wide, top + 0.5 * high)
    c.mouse("mouseMoved", left + 0.75 * wide, top + 0.5 * high)
    c.mouse("mouseReleased", left + 0.75 * wide, top + 0.5 * high)
    across = float(re.match(r"(\S+) .m \(across", words(c, "#lengths"))[1])
    assert abs(across - WIDTH_UM / 2) < WIDTH_UM / wide * 2 + WIDTH_UM / LINES, words(c, "#lengths")
    c.js("document.activeElement.blur()")
    c.key("ArrowRight", 39)
    longer = float(re.match(r"(\S+) .m \(across", words(c, "#lengths"))[1])
    assert abs(longer - across - WIDTH_UM / LINES) < 1.5, (across, longer)
    keep(c, "calipers")
    c.key("m")
    before = c.js("octweb.contrast.limits(octweb.panels[0].picture)")
    c.key("ArrowRight", 39)
    assert c.js("octweb.contrast.mode") == "manual"
    after = c.js("octweb.contrast.lo")
    assert after > before[0] - 3 and c.js("octweb.contrast.hi") != before[1]
    c.key("a")
    assert c.js("octweb.contrast.mode") == "auto"
    c.key("p")
    assert c.js("octweb.contrast.mode") == "published"
    c.key("+")
    assert c.js("octweb.panels[0].lens.zoom") > 1.2
    c.key("h")
    c.until("document.getElementById('help').open", "the help")
    keys = c.js("[...document.querySelectorAll('#help dt')].map(d => d.textContent)")
    assert "M" in keys and "R" in keys and "Q" not in keys and "T" in keys, keys
    assert words(c, "#help dl").count("calipers") >= 1
    c.close()


@case
def touching():
    """one finger changes the contrast, measures or moves; two zoom and move what is between them"""
    c = page(PHONE)
    left, top, wide, high = c.js(
        "(() => { const b = document.getElementById('bscan').getBoundingClientRect();"
        "return [b.left, b.top, b.width, b.height]; })()")
    at_ = lambda u, v: (left + u * wide, top + v * high)
    under = lambda u, v: c.js("octweb.panels[0].at({clientX: %f, clientY: %f})" % at_(u, v))
    lens = lambda: c.js("octweb.panels[0].lens")
    mode = lambda: c.js("octweb.contrast.mode")
    c.js("window.ids = []; addEventListener('pointerdown', (e) => ids.push(e.pointerId), true)")
    c.touch("touchStart", at_(0.4, 0.5), at_(0.6, 0.5))
    for i in range(1, 11):
        c.touch("touchMove", at_(0.4 - 0.02 * i, 0.5), at_(0.6 + 0.02 * i, 0.5))
    zoomed = "Math.abs(octweb.panels[0].lens.zoom - 3) < 0.05"
    c.until(zoomed, "the zoom")  # fingers' moves come with the screen's frames
    middle = under(0.5, 0.5)
    assert abs(middle["u"] - 0.5) < 0.01 and abs(middle["v"] - 0.5) < 0.01, middle
    held = under(0.2, 0.5)
    for i in range(1, 11):  # both move
        c.touch("touchMove", at_(0.2 + 0.01 * i, 0.5 + 0.01 * i), at_(0.8 + 0.01 * i, 0.5 + 0.01 * i))
    near = lambda a, b: abs(a["u"] - b["u"]) < 0.01 and abs(a["v"] - b["v"]) < 0.01
    until(lambda: near(under(0.3, 0.6), held), "what was held under the finger that held it")
    c.js("""document.getElementById('bscan').dispatchEvent(
        new PointerEvent('pointerup', {pointerId: ids.at(-1)}))""")
    was = lens()
    c.touch("touchMove", at_(0.1, 0.9), at_(0.9, 0.7))  # the finger that is left
    c.touch("touchEnd")
    time.sleep(0.2)
    assert lens() == was and mode() == "published", (lens(), was)
    keep(c, "pinched")
    was = lens()
    c.touch("touchStart", at_(0.5, 0.5))
    c.touch("touchMove", at_(0.4, 0.5))
    c.touch("touchEnd")
    until(lambda: lens()["x"] - was["x"] > 0.02, "the picture moved")
    assert mode() == "published"
    c.js("octweb.panels[0].lens = {zoom: 1, x: 0.5, y: 0.5}")
    c.touch("touchStart", at_(0.5, 0.5))
    c.touch("touchMove", at_(0.6, 0.5))
    c.touch("touchEnd")
    c.until("octweb.contrast.mode === 'manual'", "contrast")
    press(c, "Measure")
    c.touch("touchStart", at_(0.3, 0.5))
    c.touch("touchMove", at_(0.6, 0.5))
    c.touch("touchEnd")
    assert c.js("octweb.calipers.all.length") == 1
    c.touch("touchStart", at_(0.3, 0.3))
    c.touch("touchStart", at_(0.3, 0.3), at_(0.6, 0.3))  # it was no caliper, then
    c.touch("touchEnd")
    assert c.js("octweb.calipers.all.length") == 1
    c.js("document.getElementById('controls').scrollIntoView()")  # the page is scrolled elsewhere
    assert c.js("getComputedStyle(document.getElementById('enface')).touchAction") == "auto"
    assert c.errors() == [], c.errors()
    c.close()


@case
def of_flow():
    """where flow has colours, the frozen picture says that it has none"""
    flows = Publisher(flow=True)
    other = Web(flows.endpoint)
    c = Chromium(*DESK)
    c.go(other.link("doctor", "look"))
    c.until("window.octweb && octweb.panels[0].picture?.form === 1", "colours")
    c.js("document.activeElement.blur()")
    c.key(" ")
    c.until("octweb.panels[0].picture.isPng", "the whole picture")
    assert "colours of the flow are off" in words(c, "#bscan .words")
    c.key(" ")
    c.until("octweb.panels[0].picture.form === 1", "live pictures")
    assert "are off" not in words(c, "#bscan .words")
    c.close()
    other.stop()
    flows.stop()


@case
def nothing_to_see():
    """without octd the page says what it waits for, and a long name stays within it"""
    other = Web(f"ipc://{at('n' * 70)}")
    c = Chromium(*LEAST, touch=True)
    c.size = LEAST
    c.go(other.link("doctor", "look"))
    c.until("window.octweb && octweb.state?.notice.length > 0", "the words")
    assert words(c, "#notice").startswith("waiting for ipc://")
    keep(c, "empty")
    wide = c.js("""[...document.querySelectorAll('#notice p, #alarms p, #recording-words')]
        .map(e => e.scrollWidth - e.clientWidth)""")
    assert max(wide) <= 0 and c.js("document.documentElement.scrollWidth") <= LEAST[0], wide
    c.close()
    other.stop()


@case
def no_room():
    """the 33rd browser is told that there are 32, and comes in once there is room"""
    other = Web("tcp://127.0.0.1:1")
    cookie = other.cookie("many", "look")
    sockets = [other.open(cookie) for _ in range(32)]
    c = Chromium(*LEAST)
    c.go(other.link("doctor", "look"))
    c.until("document.getElementById('alarms')?.textContent.startsWith('32 browsers look')", "words")
    wait(sockets[0].close())
    c.until("octweb.state !== null && !document.getElementById('alarms').textContent"
            ".startsWith('32 browsers')", "room")
    c.close()
    other.process.kill()


@case
def recording():
    """who operates labels, records and stops, and plays the recording; who looks may not"""
    guest = page(PHONE, "look")
    assert guest.js("""[...document.querySelectorAll('#octds button, #eyes button')]
        .every(b => b.disabled)""")
    c = page(TABLET)
    press(c, "OD")
    c.js("""(() => { const f = document.getElementById('pseudonym'); f.value = 'P-12';
        f.dispatchEvent(new Event('change')); })()""")
    eye.octd.wait(lambda s: (s["record"].get("eye"), s["record"].get("pseudonym")) == ("OD", "P-12"))
    press(c, "Record")
    c.until("octweb.state.records", "the recording")
    assert c.js("getComputedStyle(document.getElementById('top')).backgroundColor") == \
        "rgb(179, 38, 30)"
    guest.until("octweb.state.records && document.getElementById('top').className === 'on'",
                "the recording, seen by the other")
    keep(c, "recording")
    eye.octd.wait(lambda s: s["volumes_written"] >= 1)
    press(c, "Stop")
    c.until("!octweb.state.records", "the end of the recording")
    until(lambda: glob.glob(eye.octd.records + "/*.h5"), "a file")
    playing(c)
    guest.close()
    c.close()


def playing(c):
    names = sorted(os.path.basename(p) for p in glob.glob(eye.octd.records + "/*.h5"))
    press(c, "Recordings")
    c.until("document.querySelectorAll('#recordings li button').length > 0", "the list")
    listed = c.js("[...document.querySelectorAll('#recordings li')].map(l => l.textContent)")
    assert any(text.startswith(names[0]) for text in listed), (listed, names)
    search = lambda text: c.js(f"""(() => {{ const s = document.getElementById('search');
        s.value = '{text}'; s.dispatchEvent(new Event('input')); }})()""")
    search("no such one")
    c.until("document.getElementById('found').textContent.startsWith('there are none')", "none")
    search(names[0][:-3].upper())
    c.until("document.querySelectorAll('#recordings li button').length > 0", "the one")
    keep(c, "recordings")
    c.js(f"""[...document.querySelectorAll('#recordings li button')]
        .find(b => b.textContent.startsWith('{names[0]}')).click()""")
    c.until("octweb.state.playback?.n > 0", "the recording, open")
    c.until("!document.getElementById('slice').hidden", "the slice")
    n = c.js("octweb.state.playback.n")
    eye.octd.wait(lambda s: not s["record"]["active"])
    c.until("document.getElementById('recording-words').textContent.startsWith('not recording')",
            "what octd does meanwhile")
    c.js(f"""(() => {{ const s = document.getElementById('slider'); s.value = {n - 1};
        s.dispatchEvent(new Event('input')); }})()""")
    c.until(f"octweb.panels[0].picture.bscan === {n - 1}", "its last B-scan")
    assert "PLAYBACK" in words(c, "#bscan .veil strong").upper() or c.js("octweb.state.veil !== null")
    time.sleep(0.5)
    keep(c, "playback")
    assert c.errors() == [], c.errors()
    press(c, "Live")
    c.until("!octweb.state.playback", "live pictures")


@case
def losing():
    """without octd the page says so in octview's words; without octweb it says that"""
    c = page(PHONE)
    eye.camera.kill()
    eye.octd.kill()
    c.until("octweb.state.alarms.length > 0", "an alarm")
    told = c.js("octweb.state.alarms[0][0].text")
    c.until(f"document.getElementById('alarms').textContent.includes({json.dumps(told)})", told)
    keep(c, "alarm")
    eye.web.process.kill()
    c.until("document.getElementById('alarms').textContent.startsWith('NO CONNECTION')", "the word")
    assert words(c, "#bscan .veil strong") == "NO CONNECTION"
    c.until("document.getElementById('recording-words').textContent.startsWith('not known')",
            "that nothing is known of the recording")
    keep(c, "lost")
    c.close()


main()
