#!/usr/bin/python3
"""octctl calibrate dispersion: of a recording, and of a running octd's next B-scans."""
import configparser
import numpy as np
from octtest import *

BSCANS = 2
TRUTH = {}  # a2, a3 of the synthetic retina, over the P2 steps


def retina():
    """A recording of the synthetic retina, and its calibration without the dispersion."""
    where = folder(f"retina{os.getpid()}")
    path = os.path.join(where, "retina.h5")
    if not TRUTH:
        ok("synth", path, "--set", f"scan.bscans={BSCANS}", "--set", "scan.lines=160",
           "--calibration", where)
        ini = configparser.ConfigParser()
        ini.read(os.path.join(where, "calibration.ini"))
        TRUTH.update({k: float(ini["calibration"]["dispersion_" + k]) for k in ("a2", "a3")})
    return path, os.path.join(where, "wavelengths.txt")


WRONG = settings(calibration=dict(dispersion_a2=0, dispersion_a3=0))


def near(found, wanted, most_off, what):
    assert abs(found - wanted) <= most_off, (what, found, wanted)


def judge(result):
    """Within 3 % and 15 %: the retina is speckle, and a3 is small."""
    near(result["over_grid"][0], TRUTH["a2"], 0.03 * abs(TRUTH["a2"]), "a2")
    near(result["over_grid"][1], TRUTH["a3"], 0.15 * abs(TRUTH["a3"]), "a3")
    assert result["sharpness_after"] > 1.5 * result["sharpness_before"], result
    assert result["width_after_px"] < 0.75 * result["width_before_px"], result
    assert result["state"] == "found" and result["agreement"] > 0.8, result


@case
def a_retina_gives_its_dispersion_back():
    """a synthetic retina gives its dispersion back, and what is written is a configuration"""
    path, _ = retina()
    out, png = path.replace(".h5", ".ini"), path.replace(".h5", ".png")
    text, _ = ok("calibrate", "dispersion", path, *WRONG, out, "--json", "--png", png)
    judge(json.loads(text))
    for name in (png, png.replace(".png", "-curve.png")):
        assert open(name, "rb").read(8) == b"\x89PNG\r\n\x1a\n"
    again = json.loads(ok("--config", out, "calibrate", "dispersion", path, "--json")[0])
    near(again["a2"], 0, 0.15, "what remains of a2")
    near(again["a3"], 0, 0.3, "what remains of a3")
    before = open(out).read()
    status, _, err = run("octctl", "calibrate", "dispersion", path, out)
    assert status == 1 and "exists already" in err and open(out).read() == before, err


@case
def noise_and_nonsense_are_refused():
    """noise is refused by name, and nothing is written; so is what cannot be meant"""
    where = folder(f"noise{os.getpid()}")
    path, out = os.path.join(where, "noise.raw"), os.path.join(where, "noise.ini")
    rng = np.random.default_rng(5)
    rng.normal(3000, 100, (60, 832)).astype("<u2").tofile(path)
    keys = settings(scan=dict(lines=60, bscans=1), calibration=dict(wavelengths=retina()[1]))
    status, text, err = run("octctl", "calibrate", "dispersion", path, out, *keys)
    assert status == 1 and err.count("\n") == 1 and "nothing to sharpen" in err and not text, err
    assert not os.path.exists(out)
    status, text, _ = run("octctl", "calibrate", "dispersion", path, *keys, "--json")
    assert status == 1 and json.loads(text)["state"] == "nothing"
    for more in ([], ["--live", path], [path, "--lines", "3"], ["--live", "--png", "a.png"]):
        status, _, err = run("octctl", "calibrate", "dispersion", *more)
        assert status == 2 and err.count("\n") == 1, (more, status, err)


def ask_live(daemon, *more):
    return run("octctl", *daemon.common, "calibrate", "dispersion", "--live", *more,
               timeout=PATIENCE_S * 5)


def refused(daemon, words):
    status, _, err = ask_live(daemon)
    assert status == 1 and words in err, (status, err)


@contextlib.contextmanager
def playing(daemon, path, breaks_off=False):
    with Replay(daemon, path, 16000) as replay:
        daemon.wait(lambda s: s["phase"] == "running" and s["bscans_done"] > 2)
        yield
        if not breaks_off:
            replay.stop()


@case
def a_running_octd_finds_it_too():
    """a running octd finds it on its next B-scans, publishes before and after, and goes on"""
    path, wavelengths = retina()
    keys = settings(scan=dict(bscans=BSCANS, lines=160), calibration=dict(wavelengths=wavelengths))
    with Daemon(*keys) as daemon:
        refused(daemon, "none come")
        topic = daemon.subscriber("calibrate")
        with playing(daemon, path):
            out = path.replace(".h5", "-live.ini")
            wait = ["--wait", PATIENCE_S * 4] if SLOW else []
            status, text, err = ask_live(daemon, out, "--json", *wait)
            assert status == 0, err
            judge(json.loads(text))
            assert "dispersion_over = spectrum" in open(out).read()
            topic.setsockopt(zmq.RCVTIMEO, 1000 * PATIENCE_S)
            _, header, pixels = topic.recv_multipart()
            header = json.loads(header)
            a = np.frombuffer(pixels, "u1").reshape([int(n) for n in header["shape"]])
            assert a.shape == (320, 1024), a.shape
            near(header["dispersion"][0], json.loads(text)["over_spectrum"][0], 1e-5, "a2")
            before, after = a[:160].astype(float), a[160:].astype(float)
            assert after.max() == 255 and after.max() - before.max() > 5 and after.std() > 10
            status = daemon.status()
            assert status["errand"]["command"] == "calibrate" and not status["errand"]["pending"]
            check_sums(status)
            assert status["lines_missing"] == 0 and status["bscans_dropped"]["ring_full"] == 0
            reply = daemon.send("calibrate")
            assert reply["ok"] and reply["pending"] and reply["number"] == 2, reply
            second = daemon.send("calibrate")
            assert not second["ok"] and "under way" in second["error"], second
            daemon.wait(lambda s: not s["errand"]["pending"])
            assert daemon.ask("stop")["ok"]
            refused(daemon, "send start")
        assert daemon.end() == 0


@case
def a_stop_or_the_end_cancels_it():
    """a stop, or the end, does not wait for B-scans that do not come any more"""
    path, wavelengths = retina()
    keys = settings(scan=dict(bscans=BSCANS, lines=160), calibration=dict(wavelengths=wavelengths),
                    ingest=dict(idle_s=8))
    with Daemon(*keys) as daemon:
        with playing(daemon, path, breaks_off=True):
            pass
        assert daemon.send("calibrate")["ok"]  # the camera has stopped, octd waits for it
        begun = time.monotonic()
        assert daemon.ask("stop")["ok"]
        errand = daemon.wait(lambda s: not s["errand"]["pending"])["errand"]
        assert "cancelled: stop came" in errand["error"] and "result" not in errand, errand
        assert SLOW or time.monotonic() - begun < 8  # of the 10 s that it would have waited


main()
