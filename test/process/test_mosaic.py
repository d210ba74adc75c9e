#!/usr/bin/python3
"""octctl register --as mosaic as its users see it: a scene cut into pictures, and five real pictures
of photoreceptors that overlap."""
import csv
import glob
import json
import os

import h5py
import numpy as np
from PIL import Image

from octtest import DATA, Skip, case, folder, main, run

HERE = folder("mosaic")
REAL = {  # each on the one before: rows, columns, as an independent reference found them
    "0069": (0, 0), "0070": (-21.64, 277.87), "0071": (-99.59, 427.16), "0072": (56.40, 436.84),
    "0075": (118.14, 414.16)}


def path(name):
    return os.path.join(HERE, name)


def register(*arguments, status=0):
    got, out, err = run("octctl", "register", *arguments, "--as", "mosaic")
    assert got == status, (arguments, got, out, err)
    if status:
        assert err.count("\n") == 1 and err.startswith("octctl register: "), err
    return err if status else out


def scene():
    """A smooth random texture, 300 x 420."""
    random = np.random.default_rng(8)
    fy, fx = np.meshgrid(np.fft.fftfreq(300), np.fft.fftfreq(420), indexing="ij")
    values = np.fft.ifft2(np.fft.fft2(random.normal(size=(300, 420))) *
                          np.exp(-(np.hypot(fy, fx) / 0.08) ** 2)).real
    return 128 + 30 * values / values.std()


WINDOWS = {"a": (0, 0, 150, 180), "b": (20, 100, 160, 170), "c": (110, 60, 170, 150),
           "d": (130, 180, 150, 200)}


def pictures():
    whole = scene()
    for name, (y, x, h, w) in WINDOWS.items():
        Image.fromarray(np.uint8(np.clip(np.round(whole[y:y + h, x:x + w]), 0, 255))).save(
            path(name + ".png"))
    other = np.random.default_rng(9).integers(0, 255, (20, 22)).astype(np.uint8)
    Image.fromarray(other).resize((170, 160), Image.BICUBIC).save(path("other.png"))
    return [path(name + ".png") for name in WINDOWS]


@case
def a_scene():
    """a scene cut into pictures of different sizes is put together; what does not belong is named"""
    names = pictures()
    said = json.loads(register(names[2], path("other.png"), names[0], names[3], names[1],
                               path("m.h5"), "--csv", path("m.csv"), "--png", path("m.png"),
                               "--json"))
    assert said["placed"] == 4 and said["components"] == 2, said
    with open(path("m.csv")) as file:
        rows = {os.path.basename(row["file"])[:-4]: row for row in csv.DictReader(file)}
    assert rows["other"]["component"] == "1" and rows["other"]["with"] == ""
    for name, (y, x, _, _) in WINDOWS.items():
        row = rows[name]
        assert row["component"] == "0"
        assert abs(float(row["y_px"]) - (y - WINDOWS["c"][0])) < 0.02, (name, row)
        assert abs(float(row["x_px"]) - (x - WINDOWS["c"][1])) < 0.02, (name, row)
    with h5py.File(path("m.h5")) as f:
        average, weight = f["average"][:], f["weight"][:]
        assert f.attrs["n_averaged"] == 4
        assert np.array_equal(np.isnan(average), weight == 0)
        # From the first picture, "c", which lies at (110, 60) of the scene, to the scene's corner.
        top, left = (int(v) for v in f["average"].attrs["origin_px"])
        shown = average[top - 110:top - 110 + 279, left - 60:left - 60 + 379]
        error = shown - scene()[:shown.shape[0], :shown.shape[1]]
        assert np.nanmax(np.abs(error)) < 3 and np.isfinite(error).mean() > 0.7
    out = register(*names, path("other.png"), path("n.h5"))
    assert "4 of 5 pictures" in out and "left out, no overlap: " + path("other.png") in out, out


@case
def places_alone():
    """--shifts-only finds the same places and makes no average"""
    names = pictures()
    said = json.loads(register(*names, path("all.h5"), "--json"))
    alone = json.loads(register(*names, path("alone.h5"), "--shifts-only", "--json"))
    assert alone["pictures"] == said["pictures"], (alone, said)
    assert alone["placed"] == said["placed"]
    assert "height" in said and "height" not in alone, alone
    with h5py.File(path("all.h5")) as f, h5py.File(path("alone.h5")) as g:
        assert {"average", "weight", "pictures"} <= set(f) and set(g) == {"pictures"}, list(g)
        assert np.array_equal(f["pictures/position_px"][:], g["pictures/position_px"][:])
    assert " px" not in register(*names, "--shifts-only", "--csv", path("alone.csv"))
    assert os.path.exists(path("alone.csv"))
    said = register(*names, "--shifts-only", "--png", path("alone.png"), status=2)
    assert "--shifts-only" in said and not os.path.exists(path("alone.png")), said


@case
def real_pictures():
    """five real pictures find the places of an independent reference to 0.1 px, in any order"""
    files = {os.path.basename(name)[-8:-4]: name
             for name in glob.glob(os.path.join(DATA, "ao_mosaic", "*.tif"))}
    if sorted(files) != sorted(REAL):
        raise Skip("no ../shared/data/ao_mosaic")
    expected = dict(zip(REAL, np.cumsum(list(REAL.values()), axis=0)))
    for order in (["0071", "0075", "0069", "0072", "0070"], ["0075", "0070", "0072", "0069", "0071"]):
        said = json.loads(register(*(files[name] for name in order), path("real.h5"), "--force",
                                   "--json"))
        assert said["placed"] == 5 and 0.55 < said["weakest_score"] < 0.65, said
        places = {name: np.array([one["y_px"], one["x_px"]])
                  for name, one in zip(order, said["pictures"])}
        for before, name in zip(list(REAL)[:-1], list(REAL)[1:]):
            error = places[name] - places[before] - np.array(REAL[name])
            assert np.abs(error).max() < 0.1, (order, name, error)
        assert np.abs(places["0075"] - places["0069"] - expected["0075"]).max() < 0.1


@case
def refusals():
    """a single picture, pictures without overlap and options of others are one line and no file"""
    names = pictures()
    register(names[0], path("x.h5"), status=1)
    assert "no two of the 2" in register(names[0], path("other.png"), path("x.h5"), status=1)
    for given in (("--strip", "8:4"), ("--far", "9"), ("--domain", "db"), ("--lateral",)):
        said = register(*names, path("x.h5"), *given, status=2)
        assert f"--as mosaic takes no {given[0]}" in said, said
    Image.fromarray(np.full((100, 100), 9, np.uint8)).save(path("flat.png"))
    assert "have contrast" in register(names[0], path("flat.png"), path("x.h5"), status=1)
    assert not os.path.exists(path("x.h5"))
    said = register(*names, path("flat.png"), path("x.h5"))
    assert "4 of 5 pictures" in said and f"{path('flat.png')} (no contrast)" in said, said


main()
