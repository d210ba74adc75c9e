#!/usr/bin/python3
"""The forecast in a running octd: said at the start, before a recording, and in the status."""
import numpy as np
from octtest import *

N, M, V = 128, 20, 10
WAVELENGTHS = os.path.join(folder("calibration"), "wavelengths.txt")
np.savetxt(WAVELENGTHS, np.linspace(800, 806.3, N), fmt="%.10f")


def start(*more):
    return Daemon(*settings(camera=dict(samples=N), scan=dict(lines=M, bscans=V),
                            calibration=dict(wavelengths=WAVELENGTHS),
                            pipeline=dict(crop_last=256, ring_bscans=50)), *more)


def records_folder(daemon):
    os.makedirs(daemon.records, exist_ok=True)
    return daemon


@case
def too_fast():
    """a rate that nothing reaches is warned of at the start, before recording and in the status"""
    with start("--set", "scan.line_rate_hz=1e9") as daemon:
        records_folder(daemon)
        log = daemon.log()
        assert "forecast: for 1000000000 A-lines/s (scan.line_rate_hz): " in log, log
        assert "too slow for" in log, log
        status, out, err = run("octctl", "record", "start", *daemon.common)
        assert status == 0 and "warning: too slow for 1000000000 A-lines/s" in err, (out, err)
        assert "the disk takes" in err and "computes" in err, err
        forecast = daemon.status()["forecast"]
        assert forecast["too_slow"] and forecast["warning"] in err, forecast
        assert forecast["wanted_hz"] == 1e9 and 0 < forecast["engine_hz"] < 1e9
        assert 0 < forecast["disk_hz"] < 1e9
        assert abs(forecast["ring_s"] - 50 * M / 1e9) < 1e-12, forecast
        assert 0 < forecast["overrun_s"] < 1
        assert forecast["buffer_s"] > forecast["ring_s"], forecast
        assert "record.directory" in err and "pipeline.crop_last" in err, err
        out = status_table(*daemon.common)
        assert "wanted_hz 1,000,000,000" in out, out
        assert daemon.status()["state"] == "recording"


@case
def slow_enough():
    """a rate that is reached by far is told without a warning; nothing but a volume is recorded"""
    with start("--set", "scan.line_rate_hz=50") as daemon:
        records_folder(daemon)
        assert "forecast: for 50 A-lines/s (scan.line_rate_hz): " in daemon.log()
        assert "too slow" not in daemon.log()
        status, _, err = run("octctl", "record", "start", *daemon.common)
        assert status == 0 and err == "", err
        forecast = daemon.status()["forecast"]
        assert not forecast["too_slow"] and forecast["warning"] == "", forecast
        assert forecast["ring_s"] == 50 * M / 50 and forecast["disk_min"] > 0
        # 3 B-scans are a second; at least 8 are kept, and half of the ring is behind them
        assert forecast["buffer_s"] == (8 + 25) * M / 50, forecast
        assert os.listdir(daemon.records) == []


@case
def nobody_said():
    """the rate that is built in is told as such, and nobody is warned of it; what came last takes
    its place"""
    with start("--set", "pipeline.threads=1") as daemon:
        log = daemon.log()
        assert "A-lines/s (scan.line_rate_hz is not set: built in): " in log, log
        assert "too slow" not in log, log
        assert not daemon.status()["forecast"]["too_slow"]
        sender = Sender(daemon, 3)
        lines = np.full((M, N), 1000, "<u2")
        for number in range(120):
            sender.send(lines, number * M, time_ns=number * 10 ** 9 * M // 2000)
            time.sleep(M / 2000)
        daemon.wait(lambda s: s["scan"]["line_rate_from"] == "camera")
        forecast = daemon.wait(lambda s: s["forecast"]["in_hz"] == 0)["forecast"]
        assert abs(forecast["wanted_hz"] - 2000) < 1, forecast  # as it came last


@case
def follows():
    """what comes in takes the place of a rate that nobody configured, and of one too low"""
    for more, wanted in (((), None), (("--set", "scan.line_rate_hz=10"), None),
                         (("--set", "scan.line_rate_hz=77777"), 77777)):
        with start(*more) as daemon:
            sender = Sender(daemon, 3)
            lines = np.full((M, N), 1000, "<u2")
            number, begun, looks = 0, time.monotonic(), []
            for second in (2, 3.2):
                while time.monotonic() < begun + second:  # about 2,000 A-lines/s, if they are taken
                    sender.send(lines, number * M, flags=0 if number else 1)
                    number += 1
                    time.sleep(M / 2000)
                status = daemon.status()
                looks.append((time.monotonic(), status["lines_received"]))
            (t0, n0), (t1, n1) = looks
            came_hz, forecast = (n1 - n0) / (t1 - t0), status["forecast"]
            assert came_hz / 3 < forecast["in_hz"] < 3 * came_hz, (came_hz, forecast)
            assert forecast["wanted_hz"] == (wanted or forecast["in_hz"]), forecast
            assert abs(forecast["ring_s"] - 50 * M / forecast["wanted_hz"]) < 1e-9


@case
def no_pause_in_the_rate():
    """the first rate after a pause is that of lines, not of lines and silence"""
    with start() as daemon:
        sender, lines, number = Sender(daemon, 3), np.full((M, N), 1000, "<u2"), 0
        for pause_s in (0, 0.75):  # where the second is looked at that ends as the rate goes to 0
            daemon.wait(lambda s: s["forecast"]["in_hz"] == 0)
            time.sleep(pause_s)
            begun, first, in_hz = time.monotonic(), number, 0
            while in_hz == 0 and time.monotonic() < begun + PATIENCE_S:
                sender.send(lines, number * M, flags=0 if number else 1)
                number += 1
                time.sleep(M / 2000)
                in_hz = daemon.status()["forecast"]["in_hz"]
            came_hz = (number - first) * M / (time.monotonic() - begun)
        assert in_hz > 0.6 * came_hz, (in_hz, came_hz)


@case
def measured_beside_what_runs():
    """while lines come the rate is that of the B-scans that were computed, and their share of time"""
    with start("--set", "pipeline.backend=cpu", "--set", "scan.line_rate_hz=50") as daemon:
        first = daemon.status()["forecast"]
        assert first["engine_load"] == 0 and first["engine_measurements"] == 2, first
        sender = Sender(daemon, 3)
        lines = np.full((M, N), 1000, "<u2")
        end, number, forecast = time.monotonic() + PATIENCE_S, 0, first
        while forecast["engine_measurements"] < 4 and time.monotonic() < end:
            for _ in range(50):
                sender.send(lines, number * M, flags=0 if number else 1)
                number += 1
            time.sleep(0.1)
            forecast = daemon.status()["forecast"]
        assert forecast["engine_measurements"] >= 4, forecast
        assert 0 < forecast["engine_load"] <= 1 and forecast["disk_measurements"] == 2, forecast
        assert forecast["engine_hz"] > 0, forecast


@case
def disk_left():
    """how long the disk lasts is unknown until a line rate is measured, whatever is configured"""
    with start("--set", "scan.line_rate_hz=77777") as daemon:
        records_folder(daemon)
        status = daemon.wait(lambda s: s["disk_bytes_free"])
        assert status["record"]["disk_left_s"] is None, status["record"]
        out = status_table(*daemon.common)
        assert "free, room for an unknown time: no line rate has been measured" in out, out
        sender = Sender(daemon, 3)
        lines = np.full((M, N), 1000, "<u2")
        end, number = time.monotonic() + PATIENCE_S, 0
        while status["record"]["disk_left_s"] is None and time.monotonic() < end:
            sender.send(lines, number * M, time_ns=number * 10 ** 9 * M // 2000)
            number += 1
            time.sleep(M / 2000)
            status = daemon.status()
        record = status["record"]
        wanted_s = status["disk_bytes_free"] / record["bytes_per_bscan"] * M / 2000
        # By octd's clock where the machine sends at less than half of the camera's rate.
        assert wanted_s * 0.9 < record["disk_left_s"] < wanted_s * 10, (record, wanted_s)


@case
def again_while_idle():
    """the engine is measured twice at the start, and again while nothing comes, behind the commands"""
    with start("--set", "scan.line_rate_hz=50") as daemon:
        forecast = daemon.status()["forecast"]
        assert forecast["engine_measurements"] == forecast["disk_measurements"] == 2, forecast
        status = daemon.wait(lambda s: s["pending"] or s["forecast"]["engine_measurements"] > 2)
        assert not status["pending"], "nobody asked for it"
        assert status["forecast"]["disk_measurements"] == 2, status
        assert daemon.end() == 0


@case
def no_folder():
    """a folder that recording will make is measured where it will be; without one, nothing is"""
    with start("--set", "scan.line_rate_hz=1e9") as daemon:
        assert not os.path.exists(daemon.records)
        assert daemon.status()["forecast"]["disk_hz"] > 0
        assert not os.path.exists(daemon.records)
    with start("--set", "scan.line_rate_hz=1e9", "--set", "record.directory=/no/where") as daemon:
        assert daemon.status()["forecast"]["disk_hz"] == 0
        log = daemon.log()
        assert "computes" in log and "the disk takes" not in log, log
        assert "no forecast of the disk: record.directory: /no/" in log, log


@case
def another_disk():
    """a folder that cannot be written is not judged by the disk of the folder around it"""
    with start("--set", "scan.line_rate_hz=1e9", "--set", "record.directory=/proc") as daemon:
        forecast, log = daemon.status()["forecast"], daemon.log()
        assert forecast["disk_hz"] == 0 and forecast["disk_min"] == 0, forecast
        assert "no forecast of the disk: record.directory: /proc" in log, log


@case
def changed():
    """what was measured is unknown once another disk or other display limits are configured"""
    with start("--set", "scan.line_rate_hz=1e9", "--set", "pipeline.range=auto") as daemon:
        def change(key, value):
            assert daemon.ask("set", key=key, value=value)["ok"]
            return daemon.status()["forecast"]

        before = daemon.status()["forecast"]
        assert before["engine_hz"] > 0 and before["disk_hz"] > 0
        forecast = change("pipeline.range", "percentile")
        assert forecast["engine_hz"] == forecast["overrun_s"] == 0, forecast
        assert forecast["disk_hz"] == before["disk_hz"] and forecast["too_slow"]
        assert "computes" not in forecast["warning"] and "the disk takes" in forecast["warning"]
        other = folder("another-disk")
        forecast = change("record.directory", other)
        assert forecast["disk_hz"] == forecast["disk_min"] == forecast["record_overrun_s"] == 0
        assert not forecast["too_slow"] and forecast["warning"] == "", forecast
        time.sleep(1.3)  # it is looked at once a second
        assert daemon.status()["forecast"]["disk_hz"] == 0
        forecast = change("pipeline.range", "auto")
        assert forecast["engine_hz"] > 0, "as it was measured, and is again while nothing comes"
        change("pipeline.range", "percentile")
        assert daemon.ask("record", action="start")["ok"]  # measures the disk, not the engine
        forecast = daemon.status()["forecast"]
        assert forecast["disk_hz"] > 0 and forecast["disk_min"] > 0 and forecast["too_slow"]
        assert forecast["engine_hz"] == 0, forecast
        assert daemon.ask("record", action="stop")["ok"]
        daemon.wait(lambda s: not s["record"]["active"])
        assert change("record.spectra", "no")["disk_hz"] > forecast["disk_hz"]  # the same disk
        # A start that builds the engine anew measures it with what is configured then.
        assert daemon.ask("stop")["ok"]
        daemon.wait(lambda s: s["phase"] == "idle")
        change("scan.width_um", "1000")
        assert daemon.ask("start")["ok"]
        forecast = daemon.status()["forecast"]
        assert forecast["engine_hz"] > 0 and forecast["disk_hz"] > 0, forecast


main()
