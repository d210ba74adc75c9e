#!/usr/bin/python3
"""octweb with browsers, for docs/performance.md: PYTHONPATH=test/process test/bench/web_browsers.py
[SECONDS]. Prints a table in Markdown, with the load of the machine. A publisher of the test's own
sends B-scans of 512 x 512 u8; one link is narrow (webrig.Throttled), as no namespace needs be."""
from webrig import *

SECONDS = int(sys.argv[1]) if len(sys.argv) > 1 else 30
SHAPE = (512, 512)


def row(what, found):
    print(f"| {what} | {found} |", flush=True)


def of(ages):
    p50, p99 = np.percentile(ages, (50, 99))
    return f"{p50:.0f} ms (p50), {p99:.0f} ms (p99), {max(ages):.0f} ms at most"


def cores(process, of_s):
    """What a process uses while of_s() goes on."""
    spent = lambda: sum(map(int, open(f"/proc/{process.pid}/stat").read().split()[13:15]))
    began, before = time.monotonic(), spent()
    of_s()
    return (spent() - before) / os.sysconf("SC_CLK_TCK") / (time.monotonic() - began)


def drawn(c, publisher):
    time.sleep(5)
    c.js("octweb.drawn.length = 0")
    ages, n, began = [], 0, time.monotonic()
    while time.monotonic() - began < SECONDS:
        time.sleep(2)
        came = c.js("octweb.drawn.splice(0)")
        ages += [at_ - publisher.sent[frame] for frame, at_ in came]
        n += len(came)
    return f"{n / (time.monotonic() - began):.1f} drawn a second; from publishing to drawn {of(ages)}"


def one_chromium():
    publisher = Publisher(30, SHAPE)
    web = Web(publisher.endpoint)
    c = Chromium(1024, 768)
    c.go(web.link("one", "look"))
    c.until("window.octweb && octweb.drawn.length > 3")
    row("one headless Chromium, 30 B-scans/s", drawn(c, publisher))
    c.close()
    web.stop()
    publisher.stop()


def narrow_chromium():
    publisher = Publisher(30, SHAPE)
    web = Web(publisher.endpoint, "tcp://127.0.0.1:1", "--set", "web.names=octd.lab")
    narrow = Throttled(web.port, 125_000, 0.1)
    c = Chromium(1024, 768, False, f"--host-resolver-rules=MAP octd.lab 127.0.0.1:{narrow.port}")
    c.go(web.link("narrow", "look").replace("127.0.0.1", "octd.lab"))
    c.until("window.octweb && octweb.drawn.length > 3")
    row("one by 1 Mbit/s, 100 ms each way (a proxy)", drawn(c, publisher))
    c.close()
    web.stop()
    publisher.stop()


class Lookers:
    """Ten WebSockets that say what they have seen."""

    def __init__(self, web, publisher=None):
        self.ages, self.n_bytes, self.n = [], 0, 0
        self.lookers = [Looker(web, web.cookie(f"looker{i}", "look")) for i in range(10)]
        self.tasks = [looker.meanwhile(self.take) for looker in self.lookers]
        self.sent = publisher.sent if publisher else None

    def take(self, message):
        if message.get("kind") == 0:
            self.n += 1
            self.n_bytes += len(message["image"])
            if self.sent:
                self.ages.append(time.time() * 1e3 - self.sent[message["frame"]])

    def look(self, seconds):
        self.n = self.n_bytes = 0
        self.ages.clear()
        loop.run_until_complete(asyncio.sleep(seconds))

    def close(self):
        for task in self.tasks:
            task.cancel()
        for looker in self.lookers:
            looker.close()


def ten():
    publisher = Publisher(25, SHAPE)
    web = Web(publisher.endpoint)
    lookers = Lookers(web, publisher)
    lookers.look(5)
    used = cores(web.process, lambda: lookers.look(SECONDS))
    row("ten WebSockets that acknowledge, 25 B-scans/s",
        f"{lookers.n / 10 / SECONDS:.1f} each; {used:.2f} cores; from publishing to arrival "
        f"{of(lookers.ages)}; {lookers.n_bytes / lookers.n / 1e3:.0f} kB a picture")
    row("its memory with ten", f"{web.rss_mb():.0f} MB")
    lookers.close()
    web.stop()
    publisher.stop()


def octd_itself():
    """octd's own latency, without octweb and with ten browsers, in turns."""
    field = settings(scan=dict(lines=240, bscans=60, width_um=1200, height_um=1200))
    ok("synth", at("eye.h5"), *field, "--seed", 3, "--calibration", at("cal"))
    scan = ["--config", at("cal", "calibration.ini"), *settings(pipeline=dict(backend="cpu"))]
    p99 = {False: [], True: []}
    for turn in range(6):
        octd = Daemon(*scan)
        web = Web(octd.publish, octd.control, *scan)
        lookers = Lookers(web) if turn % 2 else None
        camera = subprocess.Popen(
            [program("octctl"), "replay", at("eye.h5"), *octd.common, "--loop", "--rate", "7200"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if lookers:
            lookers.look(SECONDS / 2)
        else:
            time.sleep(SECONDS / 2)
        p99[bool(lookers)].append(octd.send("status")["latency_us"]["p99"] / 1e3)
        if lookers:
            lookers.close()
        for process in camera, web.process, octd.process:
            process.terminate()
            process.wait()
    text = lambda values: " ".join(f"{v:.1f}" for v in values)
    row("octd's own p99, 240 A-lines, 30 B-scans/s, three turns each",
        f"without browsers {text(p99[False])} ms; ten that look {text(p99[True])} ms")


print(f"load {' '.join(open('/proc/loadavg').read().split()[:3])}, {os.cpu_count()} cores, "
      f"{time.strftime('%Y-%m-%d %H:%M', time.gmtime())} UTC\n")
for measure in one_chromium, ten, narrow_chromium, octd_itself:
    measure()
print(f"\nload {' '.join(open('/proc/loadavg').read().split()[:3])} at the end")
