"""Viewers that come and go and a browser that stays, beside an octd that scripts/soak measures."""
from viewrig import Screen
from webrig import *

TURN_S = 180  # of a viewer, which is there for two thirds of it
NICE = 10
WIDTH, HEIGHT = 1280, 720
MIDDLE = slice(HEIGHT * 3 // 10, HEIGHT * 7 // 10), slice(WIDTH // 5, WIDTH // 2)


class Seat:
    """A screen on which an octview comes and goes. It stays until it has shown pictures."""

    def __init__(self, number, arguments, turn_s):
        self.screen = Screen(WIDTH, HEIGHT, folder(f"screen{number}"))
        self.arguments, self.turn_s = arguments, turn_s
        self.log = folder(f"screen{number}") + "/log"
        self.env = dict(os.environ, DISPLAY=self.screen.display, SDL_VIDEODRIVER="x11",
                        XDG_CONFIG_HOME=folder(f"screen{number}"))
        self.viewer, self.due = None, time.monotonic() + number * turn_s / 2
        self.starts, self.shown, self.spent_s, self.trouble = 0, 0, 0, []

    def come(self):
        self.viewer = subprocess.Popen(
            [program("octview"), *self.arguments, "--settings", "none", "--size",
             f"{WIDTH}x{HEIGHT}"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=open(self.log, "wb"), env=self.env)
        self.starts += 1
        self.before, self.changes = None, 0
        self.due += 2 / 3 * self.turn_s

    def go(self, why=""):
        """It is told to, unless it has ended already."""
        self.spent_s += cpu_s(self.viewer.pid)
        with contextlib.suppress(AssertionError):  # it has ended
            catches(self.viewer)
        self.viewer.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.viewer.wait(PATIENCE_S)
        said = open(self.log, errors="replace").read().strip()
        if why or said or self.viewer.returncode != 0:
            self.trouble.append(f"octview {why or 'ended'}: status {self.viewer.returncode} {said}")
        self.viewer.kill()
        self.viewer = None
        self.due = max(self.due, time.monotonic()) + self.turn_s / 3

    def turn(self):
        now = time.monotonic()
        if not self.viewer:
            if now >= self.due:
                self.come()
            return
        middle = self.screen.shot(MIDDLE)
        if self.before is not None and (middle != self.before).any():
            self.changes += 1
            self.shown += self.changes == 2  # the first change may be the window itself
        self.before = middle
        if self.viewer.poll() is not None:
            self.go("ended by itself")
        elif now >= self.due and self.changes > 1:
            self.go()
        elif now >= self.due + PATIENCE_S:
            self.go("showed no pictures")

    def close(self):
        if self.viewer:
            self.go()
        self.screen.process.kill()
        self.screen.process.wait()


class Guests(threading.Thread):
    """Two octview that come and go and a browser that stays: programs that give way to others."""

    def __init__(self, daemon, common, seconds):
        super().__init__(daemon=True)
        self.octd, self.arguments = daemon, [*common, *daemon.common]
        self.turn_s = min(TURN_S, seconds / 3)
        self.seats, self.drawn, self.spent_s, self.trouble = [], 0, {}, []
        self.ended, self.here = False, threading.Event()
        self.start()
        self.here.wait()

    def run(self):
        # Of this thread, and of the programs that it starts; the slices are the system's again.
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        os.setpriority(os.PRIO_PROCESS, 0, NICE)
        try:
            with contextlib.ExitStack() as guests:
                self.come(guests)
                self.here.set()
                while not self.ended:
                    for seat in self.seats:
                        seat.turn()
                    self.look_at_page()
                    time.sleep(0.5)
                self.spent_s = {
                    "octweb": cpu_s(self.web.process.pid), "chromium": cpu_s(self.page.process.pid),
                    "Xvfb": sum(cpu_s(seat.screen.process.pid) for seat in self.seats)}
                self.web.stop()
        except Exception as error:
            self.trouble.append(f"guests: {type(error).__name__} {error}")
        self.trouble += [text for seat in self.seats for text in seat.trouble]
        self.spent_s["octview"] = sum(seat.spent_s for seat in self.seats)
        self.here.set()

    def come(self, guests):
        self.web = Web(self.octd.publish, self.octd.control, *self.arguments)
        guests.callback(self.web.process.kill)
        self.page = Chromium(1024, 768)
        guests.callback(self.page.kill)
        self.page.go(self.web.link("soak", "look"))
        self.page.until("window.octweb")
        self.last_drawn = time.monotonic()
        for number in range(2):
            self.seats.append(Seat(number, self.arguments, self.turn_s))
            guests.callback(self.seats[-1].close)

    def look_at_page(self):
        assert self.web.process.poll() is None, "octweb ended by itself"
        with contextlib.suppress(asyncio.TimeoutError):  # it gets no processor
            if came := len(self.page.js("octweb.drawn.splice(0)")):
                self.drawn, self.last_drawn = self.drawn + came, time.monotonic()
            wrong = self.page.errors()
            self.page.told.clear()
            assert not wrong, wrong
        assert time.monotonic() < self.last_drawn + 2 * PATIENCE_S, "the browser draws no more"

    def is_waiting(self):
        """Whether one of them has still to show its first picture."""
        return self.is_alive() and not all((self.drawn, *(seat.shown or seat.trouble
                                                          for seat in self.seats)))

    def end(self):
        self.ended = True
        self.join()

    def rows(self):
        return [("octview started, showed pictures",
                 f"{sum(s.starts for s in self.seats)}, {sum(s.shown for s in self.seats)}"),
                ("pictures that the browser drew", f"{self.drawn:,}")]
