#!/usr/bin/python3
"""A mirror that moves over the depth, in a real octd: its width and the roll-off, live."""
import glob
import h5py
from octfaults import *

M, V, DEPTH = 24, 2, 640
NM = 825 + 52 * np.arange(N) / N - 2.5 * (np.arange(N) / N) ** 2
K = 2 * np.pi / (NM * 1e-3)  # rad/um, as wavelengths() has it
MIDDLE, BAND = (K[0] + K[-1]) / 2, 0.35 * abs(K[0] - K[-1])  # the source's: FWHM
DB_PER_MM, ZERO, NOISE = -9.0, 12000.0, 20.0
FWHM_UM = 2 * 2 ** 0.5 * np.log(2) / BAND  # of the intensity over depth
SCAN = settings(scan=dict(lines=M, bscans=V, refractive_index=1.25),
                pipeline=dict(crop_last=DEPTH, ring_bscans=32, backend="cpu", interpolation="cubic"),
                calibration=dict(wavelengths=wavelengths()))
KEYS = ["depth_px", "depth_um", "peak_db", "fwhm_px", "fwhm_um", "snr_db"]
DICE = np.random.default_rng(5)


def spectra(z_um, still=False):
    """A-lines of a mirror at a depth in air, whose fringes go round once in the B-scan, or stand."""
    source = np.exp(-4 * np.log(2) * ((K - MIDDLE) / BAND) ** 2)
    strength = ZERO * 10 ** (DB_PER_MM * z_um / 1000 / 20)
    phases = np.zeros(M) if still else 2 * np.pi * np.arange(M) / M
    lines = source * (20000 + strength * np.cos(2 * K * z_um + phases[:, None]))
    return np.clip(lines + DICE.normal(0, NOISE, lines.shape), 0, 65535).round().astype("<u2")


def rolloff(status):
    return next(a for a in status["analysis"] if a["name"] == "rolloff")


class Stage:
    """Sends B-scans one by one, each when the analysis has dealt with the one before."""

    def __init__(self, daemon, epoch=1):
        self.daemon, self.sender, self.n = daemon, Sender(daemon, epoch), 0

    def show(self, lines):
        before = self.daemon.status()
        self.sender.send(lines, self.n * M, flags=self.n == 0)
        self.n += 1
        return self.daemon.wait(
            lambda s: s["bscans_published"] == before["bscans_published"] + 1
            and (rolloff(s)["at_rest"] or rolloff(s)["seen"] == rolloff(before)["seen"] + 1)
            and rolloff(s)["published"] + rolloff(s)["unwanted"] == rolloff(s)["results"])


def check_mirror(header, z_um):
    assert header["state"] == 0, header
    assert abs(header["depth_um"] - z_um) < 0.3, (header["depth_um"], z_um)
    assert abs(header["fwhm_um"] / FWHM_UM - 1) < 0.02, (header["fwhm_um"], FWHM_UM)
    um = header["depth_um"] / header["depth_px"]
    assert abs(header["fwhm_px"] * um / header["fwhm_um"] - 1) < 1e-6
    assert abs(header["fwhm_tissue_um"] * 1.25 / header["fwhm_um"] - 1) < 1e-6
    assert abs(header["peak_db"] - header["noise_db"] - header["snr_db"]) < 0.3
    return um


@case
def a_mirror_that_moves_gives_width_and_rolloff():
    """topic rolloff, the curve as objects, status, octctl set, a new acquisition"""
    with Daemon(*SCAN) as daemon:
        stage, topic = Stage(daemon), daemon.subscriber("rolloff")
        assert rolloff(stage.show(spectra(400)))["at_rest"]
        assert daemon.ask("set", key="rolloff.enabled", value="yes")["ok"]
        daemon.wait(lambda s: not rolloff(s)["at_rest"])
        stage.show(spectra(300))  # it may have come before values were asked for
        while topic.poll(300):
            topic.recv_multipart()
        depths = [250, 500, 750, 1000, 1250, 1500]
        for z_um in depths:
            status = stage.show(spectra(z_um))
            name, header, values = receive(topic)
            um = check_mirror(header, z_um)
            assert name == "rolloff" and header["labels"] == KEYS
        n = header["points"]
        assert len(depths) <= n <= len(depths) + 1 and values.shape == (n, 6), header
        assert abs(header["db_per_mm"] / DB_PER_MM - 1) < 0.05, header
        assert abs(header["db_per_100px"] * 10 / um / header["db_per_mm"] - 1) < 1e-3
        assert abs(header["minus_6db_um"] * header["db_per_mm"] / -6000 - 1) < 1e-3
        assert header["rms_db"] < 0.3
        for row, point in zip(values, header["curve"]):
            assert list(point) == KEYS
            assert all(abs(point[k] - v) < 1e-4 * abs(v) for k, v in zip(KEYS, row)), (point, row)
        numbers = rolloff(status)["numbers"]
        assert numbers["points"] == n and abs(numbers["fwhm_px"] - header["fwhm_px"]) < 1e-6, numbers
        _, text, _ = run("octctl", "status", *daemon.common)
        assert "a mirror at" in text and "dB/mm" in text, text
        # Tissue, and nothing: no mirror, and the curve stays.
        tissue = sum(spectra(z, still=True) / 12 for z in range(300, 1200, 75)).astype("<u2")
        for lines, states in ((tissue, (1, 3)), (spectra(1e5), (1,))):
            shift = DICE.integers(0, N, M)
            lines = lines if states == (1,) else np.array([np.roll(l, s) for l, s in zip(lines, shift)])
            stage.show(lines)
            _, header, _ = receive(topic)
            assert header["state"] in states and header["fwhm_px"] is None, header
            assert header["points"] == n
        # Another acquisition begins anew.
        Stage(daemon, 2).show(spectra(600))
        _, header, values = receive(topic)
        check_mirror(header, 600)
        assert header["points"] == 1 and header["db_per_mm"] is None and values.shape == (1, 6)
        assert daemon.ask("set", key="rolloff.enabled", value="no")["ok"]
        status = daemon.wait(lambda s: rolloff(s)["at_rest"])
        assert rolloff(status)["numbers"]["fwhm_px"] is None, status


@case
def recordings_have_the_numbers_where_that_is_said():
    """rolloff.record: /analysis/rolloff and its columns; a mirror that stands needs another dc"""
    for dc, state in (("bscan", 1), ("none", 0)):
        with Daemon(*SCAN, *settings(pipeline=dict(dc=dc),
                                     rolloff=dict(enabled="yes", record="yes"))) as daemon:
            stage = Stage(daemon)
            assert daemon.ask("record", action="start")["ok"]
            for i in range(V):
                status = stage.show(spectra(500 + 200 * i, still=True))
            assert rolloff(status)["numbers"]["state"] == state, (dc, rolloff(status))
            daemon.wait(lambda s: s["volumes_written"] == 1)
            with h5py.File(glob.glob(daemon.records + "/*.h5")[0]) as f:
                assert f["/analysis/rolloff"].shape == (V, 64, 6)
                names = [n for n in list(f["/frames"]) + list(f["/analysis"])
                         if n.startswith("rolloff_")]
                assert "rolloff_fwhm_px" in names and "rolloff_db_per_mm" in names, names
                px = f["/frames/rolloff_fwhm_px"][:]
                assert np.isfinite(px).all() == (dc == "none"), px
                rows = f["/frames/rolloff_rows"][:]
                assert rows.tolist() == ([1, 2] if dc == "none" else [0, 0]), rows


main()
