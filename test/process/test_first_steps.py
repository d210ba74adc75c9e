#!/usr/bin/python3
"""README's first steps, typed as they stand there on a machine without any configuration, under
Xvfb: a synthetic eye, octd, octview, the eye replayed. What is seen is judged by the screen."""
import re, shlex, shutil
import numpy as np
from PIL import ImageGrab
from octtest import *

W, H = 1280, 720  # the window's size unless another is asked for, and here the screen's
HERE = folder("first")


def commands():
    """The lines of README's section that one types, without their remarks."""
    text = open(TOP + "/README.md").read()
    section = re.search(r"^## First steps\n(.*?)^## ", text, re.S | re.M).group(1)
    return [line.split("   #")[0].strip()
            for line in re.search(r"^```sh\n(.*?)^```", section, re.S | re.M).group(1).splitlines()]


class Newcomer:
    """A home with nothing in it. Only the ports are others than the usual ones, which somebody on
    this machine may use."""

    def __init__(self):
        if not (shutil.which("Xvfb") and shutil.which("xdotool")):
            raise Skip("Xvfb or xdotool is not installed")
        self.running = []
        self.ports = dict(zip(("ingest", "publish", "control"), (free_port() for _ in range(3))))
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("XDG_")}
        self.env.update(HOME=HERE, SDL_VIDEODRIVER="x11",
                        # X libraries that SDL unloads leak a little.
                        ASAN_OPTIONS=os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0")
        read, write = os.pipe()
        self.keep(subprocess.Popen(
            ["Xvfb", "-displayfd", str(write), "-screen", "0", f"{W}x{H}x24", "-nolisten", "tcp",
             "-noreset"], pass_fds=[write], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        os.close(write)
        with os.fdopen(read) as line:
            self.display = ":" + line.readline().strip()
        self.env["DISPLAY"] = self.display

    def keep(self, process):
        self.running.append(process)
        return process

    def start(self, command):
        words = shlex.split(command)
        words[0] = program(words[0])
        for section, port in self.ports.items():
            words += ["--set", f"{section}.endpoint=tcp://127.0.0.1:{port}"]
        return self.keep(subprocess.Popen(words, env=self.env, cwd=HERE, stdin=subprocess.DEVNULL,
                                          stderr=open(HERE + "/log", "ab")))

    def look(self):
        return np.asarray(ImageGrab.grab(xdisplay=self.display).convert("RGB"))

    def close(self):
        for process in reversed(self.running):
            process.kill()
            process.wait()


def is_grey(pixels):
    """What belongs to the picture and its bar of colours; nothing else in the window is grey."""
    return (pixels[..., 0] == pixels[..., 1]) & (pixels[..., 1] == pixels[..., 2])


@case
def the_first_picture():
    """README's first commands give a picture that fills 40 % of the window and is no haze"""
    synth, octd, octview, camera = commands()
    newcomer = Newcomer()
    try:
        assert newcomer.start(synth).wait() == 0
        for command in (octd, octview, camera):
            newcomer.start(command)

        def shown():
            pixels = newcomer.look()
            grey = is_grey(pixels)
            return pixels, grey.mean(), pixels[..., 0][grey]
        # Letters are 1 %; a screen without a window is black all over.
        until(lambda: 0.02 < shown()[1] < 0.9, "a picture")
        time.sleep(1)  # the limits settle
        pixels, share, levels = shown()
        seen(f"{100 * share:.1f} % of the window, median grey {np.median(levels):.0f}, "
             f"white {100 * (levels > 200).mean():.1f} %")
        assert share >= 0.4, share
        assert np.median(levels) < 64, np.median(levels)
        assert 0.005 < (levels > 200).mean() < 0.2, (levels > 200).mean()
    finally:
        newcomer.close()


main()
