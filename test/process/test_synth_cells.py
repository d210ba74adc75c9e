#!/usr/bin/python3
"""octctl synth --cells: films and their truth as files; that the truth is true is test_synth_cells.c's."""
import csv

import h5py, numpy as np
from octtest import *
from PIL import Image

HEADER = "track,frame,time_s,x_px,y_px,x_um,y_um,radius_px"
SMALL = ["--cells", "6", "--n-frames", "18", "--size", "200x150"]
count = 0


def path(suffix):
    global count
    count += 1
    return os.path.join(folder("synth-cells"), f"film{count}{suffix}")


def synth(out, *words):
    status, text, err = run("octctl", "synth", out, *SMALL, *words)
    assert status == 0 and err == "", (status, text, err)
    return text


def rows_of(name):
    with open(name, newline="") as file:
        assert file.readline().rstrip("\n") == HEADER
        file.seek(0)
        return list(csv.DictReader(file))


@case
def formats_agree():
    """.npy, .tif and .avi hold the same pictures, and come with the same truth"""
    npy, tif, avi = path(".npy"), path(".tif"), path(".avi")
    text = synth(npy)
    assert text.startswith(f"{npy}: 18 pictures, 200 x 150\n{npy}.truth.csv: the truth, "), text
    synth(tif)
    synth(avi)
    film = np.load(npy)
    assert film.shape == (18, 150, 200) and film.dtype == np.uint8 and 5 < film.std() < 60
    stack = Image.open(tif)
    assert stack.n_frames == 18
    for i in range(18):
        stack.seek(i)
        assert (np.array(stack) == film[i]).all(), i
    raw = open(avi, "rb").read()
    assert raw[:4] == b"RIFF"  # rows from the bottom up, or down
    assert film[7][::-1].tobytes() in raw or film[7].tobytes() in raw
    tables = {open(name + ".truth.csv").read() for name in (npy, tif, avi)}
    assert len(tables) == 1


@case
def truth():
    """one row a cell and frame, its time, and with a scale its place in um; bright in the picture"""
    npy, table = path(".npy"), path(".csv")
    synth(npy, "--truth", table, "--fps", "100", "--pixel-um", "2,1", "--cnr", "12", "--radius", "8")
    rows, film = rows_of(table), np.load(npy).astype(float)
    assert not os.path.exists(npy + ".truth.csv")
    assert {int(row["frame"]) for row in rows} == set(range(18))
    assert len({(row["track"], row["frame"]) for row in rows}) == len(rows) > 18 * 3
    for row in rows:
        x, y, t = float(row["x_px"]), float(row["y_px"]), int(row["frame"])
        assert abs(float(row["time_s"]) - t / 100) < 1e-9
        assert abs(float(row["x_um"]) - 2 * x) < 1e-4 and abs(float(row["y_um"]) - y) < 1e-4
        assert 7.6 <= float(row["radius_px"]) <= 8.4
        assert 0 <= x <= 199 and 0 <= y <= 149
        around = film[t, max(0, round(y) - 2):round(y) + 3, max(0, round(x) - 1):round(x) + 2]
        assert around.mean() > film[t].mean() + 30, row
    plain = path(".npy")
    synth(plain)
    assert all(row["x_um"] == row["y_um"] == "" for row in rows_of(plain + ".truth.csv"))


@case
def rows_in_time():
    """--motion-of-rows: the time of a cell is that of its row"""
    npy = path(".npy")
    synth(npy, "--motion-of-rows", "--flow", "90", "--cells", "3", "--fps", "20")
    for row in rows_of(npy + ".truth.csv"):
        wanted = (int(row["frame"]) + float(row["y_px"]) / 149) / 20
        assert abs(float(row["time_s"]) - wanted) < 1e-6, row


@case
def paths_and_seeds():
    """the same seed gives the same bytes, whatever the threads; others give others"""
    first = path(".npy")
    synth(first)
    for words, same in ((["--set", "pipeline.threads=1"], True),
                        (["--set", "pipeline.threads=5", "--paths", "separate", "--cnr", "4"], True),
                        (["--seed", "2"], False), (["--paths", "overtaking"], False),
                        (["--speed", "3:3"], False), (["--cnr", "5"], False)):
        other = path(".npy")
        synth(other, *words)
        assert (open(first, "rb").read() == open(other, "rb").read()) == same, words


@case
def scored():
    """the truth, scored as if it were found, is perfect"""
    npy = path(".npy")
    synth(npy)
    status, out, err = run("octctl", "cells-score", npy + ".truth.csv", npy + ".truth.csv", "--json")
    result = json.loads(out)
    assert status == 0 and result["mota"] == 1 and result["rmse_px"] == 0, (out, err)


@case
def recordings():
    """cells of a recording: bright above the ILM where /truth says, in each of its volumes"""
    where = folder("synth-cells-volumes")
    small = settings(scan=dict(lines=80, bscans=60), camera=dict(samples=832))
    status, out, err = run("octctl", "synth", os.path.join(where, "v.h5"), "--cells", "4", "--volumes",
                           "2", "--speed", "15:30", "--motion", "none", *small)
    assert status == 0, (out, err)
    tracks = []
    for v in range(2):
        name, done = os.path.join(where, f"v-00{v}.h5"), os.path.join(where, f"done{v}.h5")
        assert run("octctl", "recon", name, done)[0] == 0
        with h5py.File(name) as file, h5py.File(done) as volume:
            truth = {key: file["truth/cells/" + key][:] for key in file["truth/cells"]}
            above = file["truth/surfaces_px/ilm"][:] - 12 / file["truth/axial_um"][()]
            picture = np.empty(above.shape)
            for b, bscan in enumerate(volume["bscans"]):
                for j, line in enumerate(bscan.astype(float)):
                    picture[b, j] = line[int(above[b, j]) - 3:int(above[b, j]) + 4].mean()
        assert set(truth) == {"track", "position_um", "radius_um", "seen_px", "time_s"}
        assert len(truth["track"]) >= 2
        y, x = np.mgrid[:60, :80]
        for (cx, cy), radius, (um_x, um_y) in zip(truth["seen_px"], truth["radius_um"],
                                                  truth["position_um"]):
            assert abs(um_x - cx * 2.5) < 0.1 and abs(um_y - cy * 2.5) < 0.1
            distance = np.hypot(x - cx, y - cy) * 2.5
            inside, beside = picture[distance < radius], picture[(distance > 16) & (distance < 25)]
            assert inside.mean() > beside.mean() + 60, (v, cx, cy, inside.mean(), beside.mean())
        tracks.append(dict(zip(truth["track"], truth["position_um"])))
    moved = [abs(tracks[1][k][0] - tracks[0][k][0]) for k in set(tracks[0]) & set(tracks[1])]
    assert moved and all(14 < step < 31 for step in moved), moved


@case
def refused():
    """what cannot be is refused with one line, and leaves nothing"""
    where = folder("synth-cells-refused")
    film, table = os.path.join(where, "a.npy"), os.path.join(where, "t.csv")
    wrong = [([film], "--cells"), ([film, "--cells", "0"], "4096"), ([film, "--cells", "500"], "room for 1 to"),
             ([film, *SMALL, "--radius", "40"], "needs"), ([film, *SMALL, "--speed", "5:2"], "--speed"),
             ([film, *SMALL, "--speed", "0:2"], "--speed"), ([film, *SMALL, "--size", "640"], "--size"),
             ([film, *SMALL, "--size", "1e9x5"], "--size"), ([film, *SMALL, "--size", "20.5x30"], "--size"),
             ([film, *SMALL, "--pixel-um", "0,1"], "--pixel-um"), ([film, *SMALL, "--pixel-um", "9,1"], "1 to 8"),
             ([film, *SMALL, "--paths", "odd"], "--paths"), ([film, *SMALL, "--cnr", "0"], "--cnr"),
             ([film, *SMALL, "--fps", "-1"], "--fps"), ([film, *SMALL, "--truth", film], "names of their own"),
             ([film, *SMALL, "--volumes", "3"], "recordings"), ([film, *SMALL, "--motion", "none"], "recordings"),
             ([os.path.join(where, "a.h5"), "--radius", "3"], "--radius needs --cells"),
             ([os.path.join(where, "a.h5"), "--cells", "3", "--size", "5x5"], "--size is of films"),
             ([os.path.join(where, "a.png"), "--cells", "3"], ".npy")]
    for words, what in wrong:
        status, out, err = run("octctl", "synth", *words)
        assert status == 2 and err.count("\n") == 1 and what in err and out == "", (words, status, err)
    assert os.listdir(where) == []
    status, _, err = run("octctl", "synth", "/nonexistent/a.npy", *SMALL)
    assert status == 1 and err.count("\n") == 1, err
    for taken in (film, table):
        open(taken, "w").write("mine")
        status, _, err = run("octctl", "synth", film, *SMALL, "--truth", table)
        assert status == 1 and "exists" in err and err.count("\n") == 1, err
        assert os.listdir(where) == [os.path.basename(taken)] and open(taken).read() == "mine"
        os.unlink(taken)


main()
