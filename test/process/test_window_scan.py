#!/usr/bin/python3
"""octview changes the scan of a real octd that a simulated camera follows (octctl replay --follow):
a scan of the site's list by touch, a line drawn on the picture from above, Average at one place and
back. What runs is what octd says. OCT_PICTURES names a folder that gets pictures of the window."""
from viewrig import *

CHOICES = "Volume: | Star: pattern=radial | Lost: pattern=file positions=/nowhere/at.txt"


class FollowedDesk(Desk):
    """A desk whose mirrors do what octd asks."""

    def __init__(self, name, width=1280, height=800):
        field = dict(width_um=3000, height_um=3000)
        super().__init__(name, width, height, scan=dict(choices=CHOICES, **field))
        ok("synth", self.where + "/eye.h5", *self.common)

    def keep_camera(self):
        if self.octd and getattr(self, "rate", 0) and \
                (self.camera is None or self.camera.poll() is not None):
            self.camera = self.start("octctl", "replay", self.where + "/eye.h5", *self.common,
                                     "--follow", "--rate", str(self.rate))

    def scan(self):
        return self.ask("status")["scan"]

    def scans(self, what, **members):
        """Until octd's scan is like this and pictures of it come; nothing alarms meanwhile."""
        def runs():
            pixels = self.look()
            for alarm in "NO SIGNAL", "MISSING", "DROPPED":
                assert self.find(alarm, BANNERS, pixels=pixels) is None, alarm
            return {k: self.scan()[k] for k in members} == members
        self.until(runs, what)
        done = self.ask("status")["bscans_done"]
        self.until(lambda: self.ask("status")["bscans_done"] != done and self.state_is("LIVE"),
                   "pictures of " + what)


@contextlib.contextmanager
def at_a_window(name, *arguments):
    desk = FollowedDesk(name)
    try:
        desk.start_octd()
        desk.start_camera()
        desk.open(*arguments)
        desk.until(lambda: desk.state_is("LIVE"), "pictures")
        yield desk
    finally:
        desk.close()


@case
def an_operator_takes_a_scan_and_a_line_by_touch():
    """an operator takes a scan of the list, draws a line, and goes back, by touch alone"""
    with at_a_window("window_scan", "--operator") as desk:
        desk.click("Scan")
        desk.until(desk.says("which scan?"), "the list")
        desk.save("scan-list")
        desk.click_at(*desk.find("Star", (0.05, 0.5)))
        desk.scans("the star", choice="Star", pattern="radial")
        desk.click("Scan")
        desk.click_at(*desk.find("Lost", (0.05, 0.5)))
        desk.until(desk.says("/nowhere/at.txt", BUTTONS), "why it is refused")
        desk.save("scan-refused")
        desk.scans("the star", choice="Star", pattern="radial")
        desk.click("Scan")
        desk.click_at(*desk.find("draw a line", (0.05, 0.5)))
        desk.until(desk.says("line here", (0.05, 0.8)), "where to draw")
        desk.until(lambda: desk.find("draw the line on", BUTTONS) is None, "no message")
        x, y = desk.find("line here", (0.05, 0.8))
        y += desk.height // 4
        desk.drag(x - 40, y, x - 36, y)
        desk.until(desk.says("too short", BUTTONS), "why not")
        assert desk.scan()["choice"] == "Star"
        desk.save("scan-draw")
        desk.drag(x - 40, y, x + 80, y + 60)
        desk.scans("the line", choice=None, pattern="line")
        line = desk.scan()
        assert line["width_um"] > 500 and 26 < line["angle_deg"] < 27, line
        desk.save("scan-line")
        desk.click("Scan")
        desk.click_at(*desk.find("Volume", (0.05, 0.5)))
        desk.scans("the volume", choice="Volume", pattern="raster")
        assert desk.scan()["angle_deg"] == 0
        desk.save("scan-back")


@case
def a_recording_goes_on():
    """while octd records a scan is taken from the list: the window never says that it ended"""
    with at_a_window("window_scan_record") as desk:
        desk.keys("r")
        desk.until(desk.says("RECORDING", HEADER), "the recording")
        desk.until(lambda: desk.ask("status")["volumes_written"] > 0, "a volume")
        desk.keys("F4")
        desk.until(desk.says("which scan?"), "the list by its key")
        desk.xdotool("key", "Down", "Down", "Return")
        end = time.monotonic() + PATIENCE_S
        while (status := desk.ask("status"))["scan"]["choice"] != "Star" or status["pending"] or \
                status["volumes_written"] == 0:
            pixels = desk.look()
            assert desk.find("Stop", BUTTONS, pixels=pixels), "a recording can be stopped"
            for words in "not recording", "SAVED", "stopped":
                assert desk.find(words, HEADER, pixels=pixels) is None, words
            assert time.monotonic() < end, status
        assert status["state"] == "recording", status
        desk.save("scan-recorded")
        desk.keys("r")
        desk.until(desk.says("SAVED", HEADER), "the end")


@case
def average_holds_a_place():
    """Average scans the place of the shown B-scan, and goes back"""
    with at_a_window("window_scan_average") as desk:
        before = desk.scan()
        desk.keys("l")
        desk.click("Average", "Avg")
        desk.until(lambda: desk.scan()["pattern"] == "line", "the line")
        desk.until(lambda: desk.state_is("LIVE, AVERAGED"), "the average")
        line = desk.scan()
        assert line["width_um"] == before["width_um"] and line["angle_deg"] == 0, line
        assert abs(line["centre_y_um"]) < 1500 and line["centre_x_um"] == 0, line
        assert int(desk.value("average.bscans")) > 1
        desk.until(lambda: desk.ask("status")["average"]["averaged"] > 4, "B-scans in it")
        desk.save("scan-average")
        desk.keys("b")
        desk.scans("what ran before", choice="Volume", pattern="raster")
        assert not desk.state_is("LIVE, AVERAGED")
        desk.keys("F5")
        desk.until(desk.says("line here", (0.05, 0.8)), "the tool by its key")
        desk.keys("Escape")
        desk.until(lambda: desk.find("line here", (0.05, 0.8)) is None, "no tool")
        assert desk.viewer.poll() is None


if __name__ == "__main__":
    main()
