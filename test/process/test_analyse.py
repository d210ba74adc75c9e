#!/usr/bin/python3
"""octctl analyse: what octd's analyses find in recordings, by the stages that run live."""
import glob
import h5py
import numpy as np
from octtest import *

WHERE = folder("analyse")
GEOMETRY = settings(scan=dict(lines=100, bscans=48))
NAMES = ["enface", "quality", "cones", "surfaces", "rolloff"]


def recording():
    """A synthetic volume, made once; where its calibration is."""
    path = os.path.join(WHERE, "volume.h5")
    if not os.path.exists(path):
        ok("synth", path, "--calibration", WHERE, *GEOMETRY)
    return path


def analysed(name, names, *words):
    out = os.path.join(WHERE, name)
    ok("analyse", ",".join(names), recording(), out, "--force", *words)
    return h5py.File(out)


@case
def every_bscan_passes():
    """each analysis has a result of every B-scan, or of the volume; pictures are those of recon"""
    plain = os.path.join(WHERE, "plain.h5")
    ok("recon", recording(), plain, "--force")
    with analysed("all.h5", NAMES) as found, h5py.File(plain) as pictures:
        assert np.array_equal(found["bscans"], pictures["bscans"])
        assert "analysis" not in pictures
        assert all(found[f"frames/{name}_valid"][:].all()
                   for name in ("quality", "surfaces", "rolloff"))
        assert found["analysis/enface_valid"][0] == 1 == found["analysis/cones_valid"][0]
        assert found["analysis/enface"].shape == (48, 100)
        assert np.isfinite(found["analysis/enface"]).all()
        assert np.isfinite(found["analysis/surfaces"][:, 0]).mean() > 0.5  # it is a retina


def in_step(daemon, spectra):
    """B-scans one by one, so that no analysis is late on a busy machine."""
    sender = Sender(daemon, 1)
    for i, bscan in enumerate(spectra):
        sender.send(bscan, i * len(bscan), flags=1 if i == 0 else 0, time_ns=i * 10**7)
        daemon.wait(lambda s: all(a["seen"] == i + 1 for a in s["analysis"]))


@case
def octd_finds_the_same():
    """what octd records live has the names, the layout and the numbers of octctl analyse"""
    with h5py.File(recording()) as file:
        spectra = file["spectra"][:]
    with Daemon("--config", os.path.join(WHERE, "calibration.ini"), *GEOMETRY,
                *settings(analysis=dict(run="enface,rolloff"),
                          rolloff=dict(enabled="yes", record="yes"))) as daemon:
        assert daemon.ask("record", action="start")["ok"]
        in_step(daemon, spectra)
        daemon.wait(lambda s: s["volumes_written"] == 1)
        assert [a["done"] for a in daemon.status()["analysis"]] == [48, 48], daemon.status()
        live = glob.glob(daemon.records + "/*.h5")[0]
        offline = os.path.join(WHERE, "offline.h5")
        ok("analyse", "enface,rolloff", live, offline, "--force")
        with h5py.File(live) as a, h5py.File(offline) as b:
            names = sorted(a["analysis"])
            assert names == sorted(b["analysis"]) and "rolloff" in names, names
            for name in names:
                np.testing.assert_array_equal(a["analysis"][name], b["analysis"][name], name)
                assert dict_of(a["analysis"][name].attrs) == dict_of(b["analysis"][name].attrs), name


def dict_of(attributes):
    return {name: str(value) for name, value in attributes.items()
            if name not in ("DIMENSION_LIST", "REFERENCE_LIST")}


@case
def threads_change_nothing():
    """the same numbers with one thread and with two"""
    with analysed("one.h5", NAMES, *settings(pipeline=dict(threads=1))) as a, \
            analysed("two.h5", NAMES, *settings(pipeline=dict(threads=2))) as b:
        for name in a["analysis"]:
            np.testing.assert_array_equal(a["analysis"][name], b["analysis"][name], name)


@case
def settings_are_the_configurations():
    """keys of an analysis act; a name switches it on, whatever NAME.enabled says"""
    with analysed("max.h5", ["enface"], *settings(analysis=dict(enface_projection="max"))) as a, \
            analysed("mean.h5", ["enface"]) as b:
        assert (a["analysis/enface"][:] > b["analysis/enface"][:]).all()
        assert "enface_projection = max" in a.attrs["config"]
    with analysed("surfaces.h5", ["surfaces"], *settings(surfaces=dict(enabled="no"))) as a:
        assert a["frames/surfaces_valid"][:].all()


@case
def many_recordings():
    """--out-dir: a file of results of each recording"""
    out = os.path.join(WHERE, "many")
    twin = os.path.join(WHERE, "twin.h5")
    with open(recording(), "rb") as a, open(twin, "wb") as b:
        b.write(a.read())
    ok("analyse", "quality", recording(), twin, "--out-dir", out, "--force")
    assert sorted(os.listdir(out)) == ["twin.h5", "volume.h5"]
    with h5py.File(out + "/twin.h5") as a, h5py.File(out + "/volume.h5") as b:
        np.testing.assert_array_equal(a["analysis/quality"], b["analysis/quality"])


@case
def what_cannot_be_is_one_line():
    """unknown names, settings that leave nothing to do, pictures that are too small: no file"""
    out = os.path.join(WHERE, "nothing.h5")
    refused_by("analyse", 2, "there is no analysis 'nosuch': use some of enface",
               "enface,nosuch", recording(), out)
    refused_by("analyse", 2, "two files are needed", "enface", recording())
    refused_by("analyse", 2, "slab: no result", "slab", recording(), out)
    refused_by("analyse", 2, "too small for a radius", "cells", recording(), out,
               *settings(cells=dict(radius_px=60)))
    refused_by("analyse", 2, "analysis.run", "enface,enface", recording(), out)
    assert not os.path.exists(out)


main()
