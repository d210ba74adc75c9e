"""Keys and mouse of somebody who sits before a window under Xvfb, by xdotool."""
from octtest import *


class Hands:
    """Of a desk that has `env`, the window's environment, and `keep_camera`, which starts a camera
    again that gave up on a busy machine."""

    PAUSE_S = 0.3  # after keys, for what they do to be seen

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
