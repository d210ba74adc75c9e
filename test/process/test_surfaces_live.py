#!/usr/bin/python3
"""Layers live, in a real octd: a synthetic retina is replayed, and what the topics `surfaces` and
`slab` say is compared with its truth, with the recording and with the account."""
import glob
import h5py
from octfaults import *

LINES, BSCANS, DEPTH = 120, 16, 600
FIELD = settings(scan=dict(lines=LINES, bscans=BSCANS, width_um=1200, height_um=320))
ROOM = folder("surfaces")
RETINA = os.path.join(ROOM, "retina.h5")


def make_retina():
    """The recording, its calibration, and where its ILM and the lower border of its RPE lie."""
    if not os.path.exists(RETINA):
        status, _, err = run("octctl", "synth", RETINA, *FIELD, "--seed", 3,
                             "--calibration", os.path.join(ROOM, "cal"))
        assert status == 0, err
    with h5py.File(RETINA) as f:
        surfaces = f["truth/surfaces_px"]
        # Where the root of the light changes fastest, beside the middle of both bands.
        return surfaces["ilm"][:] - 2.5, surfaces["rpe"][:] + 4


ILM, RPE = make_retina()
SCAN = ["--config", os.path.join(ROOM, "cal", "calibration.ini"),
        *settings(pipeline=dict(crop_last=DEPTH, ring_bscans=64, backend="cpu"))]


def play(daemon, *more):
    """Replays the volume so slowly that a busy machine skips nothing, and waits for its end."""
    before = daemon.status()["bscans_done"]
    rate = 300 if "tsan" in os.environ.get("OCT_BUILD", "") else 800
    status, _, err = run("octctl", "replay", RETINA, *daemon.common, "--rate", rate, *more)
    assert status == 0, err
    return daemon.wait(lambda s: s["bscans_done"] == before + BSCANS and all(
        a["at_rest"] or a["seen"] >= BSCANS for a in s["analysis"]))


def analysis_of(status, name):
    return next(a for a in status["analysis"] if a["name"] == name)


def receive_all(socket):
    messages = []
    while socket.poll(1000):
        messages.append(receive(socket)[1:])
    return messages


def check_account(status, name):
    counts = analysis_of(status, name)
    assert counts["seen"] == counts["done"] + sum(counts["skipped"].values()), counts
    return counts


def check_layers(header, rows, every):
    """One message against the truth."""
    b = header["bscan"]
    assert header["dataset"] == "analysis/surfaces" and rows.shape == (14, LINES), header
    assert header["unit"] == "px" and header["axes"] == ["row", "line"], header
    assert b % every == 0, header
    ilm, rpe = rows[0], rows[6]
    both = np.isfinite(ilm + rpe)
    assert abs(header["found"] - both.mean()) < 1e-6 and both.mean() > 0.75, header
    thickness = (rpe - ilm)[both].astype(float).mean() * header["depth_um"]
    assert abs(header["thickness"] / thickness - 1) < 1e-5, (header, thickness)
    for row, truth, median, most in ((ilm, ILM[b], 1.5, 2.5), (rpe, RPE[b], 2.5, 6)):
        off = np.abs(row - truth)[both]  # pixels of 1.1 um
        assert np.median(off) < median and np.quantile(off, 0.9) < most, (b, off)
    assert (np.diff(rows[:7], axis=0)[np.isfinite(np.diff(rows[:7], axis=0))] >= 0).all()
    assert (rows[7:] >= 0).all() and (rows[7][both] > 0).all()


def newest_file(daemon):
    return sorted(glob.glob(daemon.records + "/*.h5"), key=os.path.getmtime)[-1]


@case
def layers_are_where_the_truth_has_them():
    """every B-scan, or every 4th: the topic is near the truth, the recording is what it said"""
    for every in (1, 4):
        wanted = settings(surfaces=dict(enabled="yes", every=every, record="yes"))
        with Daemon(*SCAN, *wanted) as daemon:
            socket = daemon.subscriber("surfaces")
            assert daemon.ask("record", action="start")["ok"]
            counts = check_account(play(daemon), "surfaces")
            daemon.wait(lambda s: s["volumes_written"] == 1)
            messages = receive_all(socket)
            assert counts["done"] == BSCANS, counts
            assert [h["bscan"] for h, _ in messages] == list(range(0, BSCANS, every)), counts
            for header, rows in messages:
                check_layers(header, rows, every)
            path = newest_file(daemon)
            with h5py.File(path) as f:
                data, frames = f["analysis/surfaces"], f["frames"]
                assert data.shape == (BSCANS, 14, LINES) and data.attrs["units"] == "px"
                valid = frames["surfaces_valid"][:].astype(bool)
                assert list(np.nonzero(valid)[0]) == [h["bscan"] for h, _ in messages], valid
                for header, rows in messages:
                    b = header["bscan"]
                    assert np.array_equal(data[b], rows, equal_nan=True), b
                    for key in ("found", "thickness", "depth_um"):
                        assert abs(frames["surfaces_" + key][b] - header[key]) < 1e-9, (b, key)
            assert run("octctl", "check", path)[0] == 0
            said = f"dataset            surfaces [{BSCANS}][14][{LINES}] f32, px"
            assert said in run("octctl", "info", path)[1], run("octctl", "info", path)[1]


@case
def it_rests_until_it_is_enabled():
    """octctl set surfaces.enabled yes wakes it, no sends it to rest; nothing is recorded unasked"""
    with Daemon(*SCAN) as daemon:
        socket = daemon.subscriber("surfaces")
        status = play(daemon)
        counts = analysis_of(status, "surfaces")
        assert counts["at_rest"] and counts["seen"] == 0 and counts["every"] == 1, counts
        assert run("octctl", "set", *daemon.common, "surfaces.enabled", "yes")[0] == 0
        daemon.wait(lambda s: not analysis_of(s, "surfaces")["at_rest"])
        assert daemon.ask("record", action="start")["ok"]
        play(daemon)
        messages = receive_all(socket)
        assert len(messages) == BSCANS, len(messages)
        for header, rows in messages:
            check_layers(header, rows, 1)
        daemon.wait(lambda s: s["volumes_written"] == 1)
        assert daemon.ask("record", action="stop")["ok"]
        with h5py.File(newest_file(daemon)) as f:
            assert "surfaces" not in f["analysis"] and "slab" not in f["analysis"]
        assert daemon.ask("set", key="surfaces.enabled", value="no")["ok"]
        daemon.wait(lambda s: analysis_of(s, "surfaces")["at_rest"])
        play(daemon)
        assert receive_all(socket) == [] and analysis_of(daemon.status(), "slab")["at_rest"]


def mean_between(picture, first, last):
    """Of each A-line, of pixels by their share."""
    d = np.arange(picture.shape[1])
    share = np.clip(np.minimum(last[:, None], d + 0.5) - np.maximum(first[:, None], d - 0.5), 0, 1)
    return (picture * share).sum(1) / share.sum(1)


@case
def a_slab_is_the_mean_between_layers():
    """surfaces.slab, while it runs: topic and dataset are the pictures' mean between layers"""
    wanted = settings(surfaces=dict(every=2, record="yes"), output=dict(sample="f32"))
    with Daemon(*SCAN, *wanted) as daemon:
        images, pictures = daemon.subscriber("slab"), daemon.subscriber("bscan")
        assert analysis_of(daemon.status(), "slab")["at_rest"]
        assert daemon.ask("set", key="surfaces.slab", value="rpe-80:rpe")["ok"]
        daemon.wait(lambda s: not analysis_of(s, "slab")["at_rest"])
        assert daemon.ask("record", action="start")["ok"]
        status = play(daemon)
        check_account(status, "slab")
        assert analysis_of(status, "surfaces")["at_rest"]
        daemon.wait(lambda s: s["volumes_written"] == 1)
        header, image = receive_all(images)[-1]
        assert header["whole"] and header["unit"] == "dB" and image.shape == (BSCANS, LINES), header
        assert header["axes"] == ["bscan", "line"] and header["lo"] < header["hi"], header
        shown = {h["bscan"]: p for h, p in receive_all(pictures)}
        with h5py.File(RETINA) as f:
            depth_um = f["truth/axial_um"][()] / 1.36
        known = np.isfinite(image)
        assert known.mean() > 0.9, known.mean()
        for b in range(BSCANS):
            expected = mean_between(shown[b], RPE[b] - 80 / depth_um, RPE[b])
            off = np.abs(image[b] - expected)[known[b]]
            assert np.median(off) < 0.7, (b, np.median(off))
        with h5py.File(newest_file(daemon)) as f:
            assert f["analysis/slab_valid"][0] == 1
            assert np.array_equal(f["analysis/slab"][:], image, equal_nan=True)
        assert run("octctl", "check", newest_file(daemon))[0] == 0
        assert daemon.ask("record", action="stop")["ok"]
        assert daemon.ask("set", key="surfaces.slab", value="")["ok"]
        daemon.wait(lambda s: analysis_of(s, "slab")["at_rest"])
    wanted = settings(analysis=dict(run="enface"), surfaces=dict(slab="ilm:rpe"))
    with Daemon(*SCAN, *wanted) as daemon:
        assert [a["name"] for a in daemon.status()["analysis"]] == ["enface", "slab"]
        refused = daemon.ask("set", key="surfaces.enabled", value="yes")
        assert not refused["ok"] and "surfaces does not run" in refused["error"], refused


@case
def every_bscan_of_a_camera_that_never_pauses_is_accounted_for():
    """beside a fast camera: seen = done + skipped at every moment, and pictures lose nothing"""
    wanted = settings(surfaces=dict(enabled="yes", every=1, slab="ilm:rpe"))
    with Daemon(*BASE, *wanted) as daemon, Player(daemon, 4000 if SLOW else 40000):
        daemon.subscriber("surfaces")
        enough = 5 if SLOW else 20
        daemon.wait(lambda s: analysis_of(s, "surfaces")["done"] >= enough
                    and analysis_of(s, "slab")["done"] >= enough)
        for _ in range(20):
            status = daemon.status()
            for name in ("surfaces", "slab"):
                assert check_account(status, name)["seen"] <= status["bscans_done"], status
        assert status["degraded"] == [], status["degraded"]


@case
def wrong_settings_are_refused():
    """no slab, distances out of order, pictures too small: named, and left as they were"""
    for key, value, says in (("slab", "ilm", "LAYER"), ("slab", "ilm+40:ilm+10", "above its last"),
                             ("slab", "vitreous:rpe", "is_os and rpe"), ("every", "0", "1 to"),
                             ("least_um", "600", "less than"), ("min_quality", "-1", "0 to")):
        status, _, err = run("octd", *SCAN, "--set", f"surfaces.{key}={value}")
        assert status == 2 and f"surfaces.{key}" in err and says in err, err
        assert err.count("\n") == 1, err
    small = settings(scan=dict(lines=12))
    with Daemon(*SCAN, *small) as daemon:
        for key, value in (("enabled", "yes"), ("slab", "ilm:rpe")):
            refused = daemon.ask("set", key="surfaces." + key, value=value)
            assert not refused["ok"] and "too small" in refused["error"], refused
        refused = daemon.ask("set", key="surfaces.slab", value="ilm:ilm")
        assert not refused["ok"] and "surfaces.slab" in refused["error"], refused
        assert daemon.ask("get", key="surfaces.slab")["value"] == ""
        assert not daemon.status()["degraded"]


@case
def what_did_not_start_is_mended_while_stopped():
    """too few A-lines: said, and stop, set, start helps as the refusal says"""
    wanted = settings(scan=dict(lines=12), surfaces=dict(enabled="yes", slab="ilm:rpe"))
    with Daemon(*SCAN, *wanted) as daemon:
        assert daemon.status()["degraded"] == ["analysis"]
        refused = daemon.ask("set", key="surfaces.enabled", value="no")
        assert not refused["ok"] and "stop, set it and start" in refused["error"], refused
        assert daemon.ask("stop")["ok"]
        daemon.wait(lambda s: s["state"] == "idle")
        for key, value in (("surfaces.enabled", "no"), ("surfaces.slab", "")):
            answer = daemon.ask("set", key=key, value=value)
            assert answer["ok"], answer
        refused = daemon.ask("set", key="surfaces.slab", value="ilm:ilm")
        assert not refused["ok"] and "surfaces.slab" in refused["error"], refused
        assert daemon.ask("start")["ok"]
        daemon.wait(lambda s: s["phase"] == "armed" and not s["pending"])
        status = daemon.status()
        assert status["degraded"] == [] and analysis_of(status, "slab")["at_rest"], status
        assert daemon.ask("stop")["ok"]
        daemon.wait(lambda s: s["state"] == "idle")
        for key, value in (("scan.lines", str(LINES)), ("surfaces.enabled", "yes")):
            answer = daemon.ask("set", key=key, value=value)  # which 12 A-lines would not bear
            assert answer["ok"], answer
        assert daemon.ask("start")["ok"]
        daemon.wait(lambda s: s["phase"] == "armed" and not s["pending"])
        status = daemon.status()
        assert status["degraded"] == [] and not analysis_of(status, "surfaces")["at_rest"], status


main()
