#!/usr/bin/python3
"""octview as its users need it, in a real window on a real octd: the room that the B-scan has of
the window, for a narrow and a wide scan, alone and beside the en face picture; a patient from the
label to playback to the next patient. At 1280 x 720; with OCT_LONG=1 at three sizes, and what a
window costs octd."""
from viewrig import *

MOST_CLICKS = 12


def white(desk):
    """octd shows every B-scan all white, so that its rectangle can be measured."""
    desk.open()
    desk.start_octd("--set", "pipeline.range=manual", "--set", "pipeline.min_db=-300", "--set",
                    "pipeline.max_db=-299")
    desk.start_camera()
    desk.until(lambda: desk.state_is("LIVE"), "LIVE")
    desk.keys("p")  # contrast as octd publishes it
    desk.until(lambda: desk.white_share() > 0.3, "a white B-scan")


def room(size, width_um):
    def check():
        desk = Desk("room-%dx%d-%d" % (*size, width_um), *size,
                    scan=dict(width_um=width_um, height_um=width_um))
        try:
            white(desk)
            alone = desk.white_share()
            desk.save(f"alone-{width_um}um")
            desk.keys("l")
            desk.until(lambda: desk.white_share() < alone - 0.05, "the en face picture")
            time.sleep(0.5)
            beside = desk.white_share()
            desk.save(f"beside-{width_um}um")
            seen(f"{width_um / 1e3} mm: {100 * alone:.1f} % of the window, {100 * beside:.1f} % "
                 "beside en face")
            assert alone >= 0.6 and beside >= 0.4, (alone, beside)
        finally:
            desk.close()
    check.__doc__ = "%dx%d, %g mm: the B-scan has 60 %% of the window, 40 %% beside en face" % (
        *size, width_um / 1e3)
    case(check)


def patient(size):
    def check():
        desk = Desk("patient-%dx%d" % size, *size)
        try:
            one_patient(desk)
        finally:
            desk.save("patient")
            desk.close()
    check.__doc__ = "%dx%d: label, recording, playback, verdict, next patient: twelve clicks" % size
    case(check)


def one_patient(desk):
    desk.open()
    desk.start_octd()
    desk.start_camera()
    desk.until(lambda: desk.state_is("LIVE"), "LIVE")
    desk.until(lambda: desk.find("OD", HEADER), "the patient's row")
    desk.n_clicks = 0
    desk.click("OD")
    desk.click("no pseudonym", "pseudonym")
    desk.type("P-12")
    desk.keys("Return")
    desk.until(lambda: (desk.value("record.eye"), desk.value("record.pseudonym")) == ("OD", "P-12"),
               "the label")
    desk.click("Record")
    desk.until(lambda: desk.ask("status")["volumes_written"] >= 1, "a volume")
    desk.click("Stop")
    desk.until(lambda: not desk.ask("status")["record"]["active"], "the end of it")
    desk.click("Playback")
    desk.until(lambda: desk.state_is("PLAYBACK"), "PLAYBACK")
    desk.click("Play")
    desk.until(desk.says("Pause", BUTTONS), "that it plays")
    desk.click("Keep")
    kept = lambda: [name for name in glob.glob(desk.records + "/*.h5")
                    if json.loads(ok("info", "--json", name)[0])["mark"] == "keep"]
    desk.until(kept, "the mark in the file")
    said = json.loads(ok("info", "--json", kept()[0])[0])
    assert (said["eye"], said["pseudonym"]) == ("OD", "P-12"), said
    desk.click("Live")
    desk.until(lambda: desk.state_is("LIVE"), "LIVE")
    desk.click("Next patient", "Next")
    desk.until(lambda: (desk.value("record.eye"), desk.value("record.pseudonym")) == ("", ""),
               "a new label")
    seen(f"{desk.n_clicks} clicks, a name and Enter")
    assert desk.n_clicks + 1 <= MOST_CLICKS, desk.n_clicks


def latency(desk, seconds):
    """octd's p50 and p99 of an acquisition of its own, in ms; the window's pictures a second."""
    for cmd, states in ("stop", ["idle"]), ("start", ["armed", "running"]):
        reply = desk.ask(cmd)
        assert reply["ok"], reply
        until(lambda: desk.ask("status")["state"] in states, cmd)
    desk.until(lambda: desk.ask("status")["bscans_published"] > 50, "B-scans")
    end, n, last = time.monotonic() + seconds, 0, None
    while time.monotonic() < end:
        now = hash(desk.middle().tobytes()) if desk.viewer else None
        n += now != last
        last = now
        time.sleep(0.005 if desk.viewer else 0.1)
    us = desk.ask("status")["latency_us"]
    return us["p50"] / 1e3, us["p99"] / 1e3, n / seconds


def beside(size):
    def check():
        desk = Desk("beside-%dx%d" % size, *size)
        without, with_it = [], []
        try:
            desk.start_octd()
            desk.start_camera(2 * RATE_HZ)
            for _ in range(3):
                without.append(latency(desk, 5))
                desk.open()
                desk.until(lambda: desk.state_is("LIVE"), "LIVE")
                with_it.append(latency(desk, 5))
                desk.end(desk.viewer)
                desk.viewer = None
        finally:
            desk.close()
        for name, rounds in ("without", without), ("with", with_it):
            seen(f"{name} a window: p50 " + ", ".join(f"{p50:.1f}" for p50, _, _ in rounds)
                 + " ms, p99 " + ", ".join(f"{p99:.1f}" for _, p99, _ in rounds) + " ms")
        seen("pictures a second in it: " + ", ".join(f"{hz:.0f}" for _, _, hz in with_it))
        assert max(hz for _, _, hz in with_it) > 10, with_it
        # A window that octd waited for would show in the best round too. The largest takes whole
        # cores where no GPU draws it.
        best_ms, alone_ms = (min(p99 for _, p99, _ in rounds) for rounds in (with_it, without))
        assert best_ms < 20 + 5 * alone_ms or size == SIZES[-1], (best_ms, alone_ms)
    check.__doc__ = "%dx%d: a window takes octd no time" % size
    case(check)


for size in SIZES if LONG else SIZES[:1]:
    for width_um in 1300, 6000:
        room(size, width_um)
    patient(size)
    if LONG:
        beside(size)
main()
