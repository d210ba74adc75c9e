#!/usr/bin/python3
"""octctl cells as its users see it: films of moving disks in, their places and speeds out, in every
format; and what is said of films, options and outputs that cannot be."""
import csv
import glob
import json
import os
import xml.etree.ElementTree as ET

import h5py
import numpy as np
from PIL import Image

from octtest import at, case, main, run

HEADER = "track,frame,time_s,x_px,y_px,x_um,y_um,radius_um,score,speed_um_s,how"
WITHOUT_UM = "track,frame,time_s,x_px,y_px,score,how"
R, SPEED = 5.0, 2.5  # px, px a frame


def disks(height, width, places, radius=R, noise=2.0, seed=1, aspect=1.0):
    """One picture: bright soft disks at (x, y) on noise. aspect: pixels' height over their width."""
    y, x = np.mgrid[:height, :width]
    picture = 60 + np.random.default_rng(seed).normal(0, noise, (height, width))
    for cx, cy in places:
        picture += 60 / (1 + np.exp((np.hypot(x - cx, (y - cy) * aspect) - radius) / 0.6))
    return np.clip(picture, 0, 255)


def truth(n=12):
    """Two cells: one to the right, one to the left. [frame][cell] = (x, y)."""
    return [[(30 + SPEED * t, 30.3), (110 - SPEED * t, 60.7)] for t in range(n)]


def film(name="film.npy", n=12, dtype=np.uint8, places=None):
    places = places or truth(n)
    pictures = np.array([disks(90, 140, p, seed=t) for t, p in enumerate(places)])
    if name.endswith(".tif"):
        images = [Image.fromarray(p.astype(np.uint8)) for p in pictures]
        images[0].save(at(name), save_all=True, append_images=images[1:])
    else:
        np.save(at(name), pictures.astype(dtype))
    return at(name)


def cells(*arguments, status=0):
    got, text, err = run("octctl", "cells", *arguments)
    assert got == status, (arguments, got, text, err)
    return text, err


def rows_of(name, header=HEADER):
    with open(name, newline="") as file:
        assert file.readline().strip() == header
        file.seek(0)
        return list(csv.DictReader(file))


def near(row, place, reach=0.3):
    return np.hypot(float(row["x_px"]) - place[0], float(row["y_px"]) - place[1]) < reach


@case
def tracks_of_a_film():
    """places within 0.3 px, one track a cell, um and um/s; rows in order of frame, then of track"""
    out = at("tracks.csv")
    text, err = cells(film(), out, "--radius", R, "--pixel-um", 2, "--fps", 10)
    rows = rows_of(out)
    assert len(rows) == 24 and err == "" and "tracks            2" in text, (text, err)
    assert [(int(r["frame"]), int(r["track"])) for r in rows] == [(t, k) for t in range(12) for k in (1, 2)]
    for row in rows:
        t, k = int(row["frame"]), int(row["track"]) - 1
        assert near(row, truth()[t][k]) and row["how"] == "detected", row
        assert abs(float(row["time_s"]) - t / 10) < 1e-9
        assert abs(float(row["x_um"]) - 2 * float(row["x_px"])) < 1e-6
        assert abs(float(row["radius_um"]) - 2 * R) < 1, row
        assert float(row["score"]) < -1.8
        if t == 0:
            assert row["speed_um_s"] == ""
        else:
            assert abs(float(row["speed_um_s"]) / (SPEED * 2 * 10) - 1) < 0.2, row


@case
def without_a_scale_there_are_no_um():
    """no columns in um, said in one line; the same places"""
    out = at("px.csv")
    text, err = cells(film(), out, "--radius", R)
    rows = rows_of(out, WITHOUT_UM)
    assert err.count("\n") == 1 and "--pixel-um" in err and "px a frame" in text, (text, err)
    assert len(rows) == 24 and rows[0]["time_s"] == "" and near(rows[0], truth()[0][0])


@case
def every_kind_of_film():
    """TIFF, u16, f32, a folder and a pattern give the cells of the .npy; detection alone has no tracks"""
    pictures = np.load(film())
    os.makedirs(at("frames"), exist_ok=True)
    for t, picture in enumerate(pictures):
        Image.fromarray(picture).save(at(f"frames/f{t}.png"))
    np.save(at("u16.npy"), pictures.astype("<u2") * 100)
    np.save(at("f32.npy"), pictures.astype(">f4"))
    found = []
    for i, name in enumerate((film(), film("film.tif"), at("u16.npy"), at("f32.npy"),
                              at("frames"), at("frames/f*.png"))):
        out = at(f"kind{i}.csv")
        cells(name, out, "--radius", R, "--detect-only")
        found.append([(r["frame"], float(r["x_px"]), float(r["y_px"])) for r in rows_of(out, WITHOUT_UM)])
        assert len(found[i]) == 24 and {r["track"] for r in rows_of(out, WITHOUT_UM)} == {""}
        assert np.allclose(np.array(found[i], float), np.array(found[0], float), atol=1e-3), name


@case
def a_track_ends_where_it_was_last_seen():
    """no coasted rows at its end; a gap within it is coasted; what is seen twice is no track"""
    places = [[p[0]] if t != 4 else [] for t, p in enumerate(truth())]
    places[8:] = [[] for _ in places[8:]]
    places[6].append((110, 65))
    places[7].append((110, 65))
    out = at("gap.csv")
    cells(film("gap.npy", places=places), out, "--radius", R, "--pixel-um", 1, "--fps", 1)
    rows = rows_of(out)
    assert [int(r["frame"]) for r in rows] == list(range(8)), rows
    assert [r["how"] for r in rows] == ["detected"] * 4 + ["coasted"] + ["detected"] * 3
    assert rows[4]["score"] == "" and near(rows[4], truth()[4][0], 0.6)
    cells(at("gap.npy"), out, "--radius", R, "--min-frames", 2, "--force")
    assert len(rows_of(out, WITHOUT_UM)) == 10
    cells(film("pair.npy", n=2), out, "--radius", R, "--force")  # all pictures of a pair are enough
    pair = rows_of(out, WITHOUT_UM)
    assert pair and {r["track"] for r in pair if r["frame"] == "0"} == \
        {r["track"] for r in pair if r["frame"] == "1"}, pair
    cells(at("pair.npy"), out, "--radius", R, "--force", "--min-frames", 3)
    assert not rows_of(out, WITHOUT_UM)


@case
def results_as_hdf5_and_json():
    """/tracks has the table's columns with units; --into adds it and replaces it with --force alone"""
    out, results, side, summary = at("h5.csv"), at("t.h5"), at("side.h5"), at("s.json")
    with h5py.File(side, "w") as file:
        file["other/results"] = np.arange(5)
    common = ("--radius", R, "--pixel-um", 2, "--fps", 10)
    cells(film(), out, *common, "--tracks", results, "--into", side, "--summary", summary,
          "--along", "70,5,70,85")
    rows = rows_of(out)
    for name in (results, side):
        with h5py.File(name) as file:
            for column in HEADER.split(","):
                dataset = file["tracks/" + column]
                assert dataset.shape == (24,) and dataset.attrs["units"], column
                if column != "how":
                    table = [float(r[column] or "nan") for r in rows]
                    assert np.allclose(dataset[:], table, rtol=1e-6, equal_nan=True), column
            assert "threshold = 1.8" in file["tracks"].attrs["config"]
    with h5py.File(side) as file:
        assert (file["other/results"][:] == np.arange(5)).all()
    text = json.load(open(summary))
    assert text["frames"] == 12 and text["cells"] == 24 and text["tracks"] == 2
    speeds = [float(r["speed_um_s"]) for r in rows if r["speed_um_s"]]
    for name, part in (("p10", 10), ("p50", 50), ("p90", 90)):
        assert abs(text["speed_um_s"][name] - np.percentile(speeds, part)) < 1e-4
    middle = [[r for r in rows if int(r["frame"]) == t] for t in range(12)]
    gaps = [np.hypot(float(a["x_um"]) - float(b["x_um"]), float(a["y_um"]) - float(b["y_um"]))
            for a, b in middle]
    assert abs(text["nearest_neighbour_um"] - np.mean(gaps)) < 1e-4
    area = (140 - 2 * 12) * (90 - 2 * 12) * 4 * 1e-6
    assert abs(text["density_per_mm2"] / (2 / area) - 1) < 1e-9, text
    # Both cells are 40 px from x = 70 at first and move by 27.5 px: none crosses it.
    assert text["flux_over_line"] == 0 and text["flux_over_line_per_s"] == 0
    cells(film(), out, *common, "--force", "--along", "45,5,45,85", "--summary", summary)
    text = json.load(open(summary))
    assert text["flux_over_line"] == 1 and abs(text["flux_over_line_per_s"] - 1 / 1.1) < 1e-9, text
    _, err = cells(film(), at("h52.csv"), *common, "--into", side, status=2)
    assert "/tracks already" in err and err.count("\n") == 1 and not os.path.exists(at("h52.csv"))
    cells(film(), at("h52.csv"), *common, "--into", side, "--force", "--detect-only")
    with h5py.File(side) as file:
        assert (file["tracks/track"][:] == 0).all() and "other/results" in file


@case
def trackmate_and_napari():
    """spots, edges and units as TrackMate's reader looks for them; napari's four columns"""
    out = at("tm.xml")
    cells(film(), out, "--radius", R, "--pixel-um", 2, "--fps", 10, "--format", "trackmate")
    root = ET.parse(out).getroot()
    model = root.find("Model")
    assert root.tag == "TrackMate" and root.get("version")
    assert (model.get("spatialunits"), model.get("timeunits")) == ("micron", "sec")
    assert model.find("AllSpots").get("nspots") == "24"
    frames = model.findall("AllSpots/SpotsInFrame")
    assert [int(f.get("frame")) for f in frames] == list(range(12))
    spots = {s.get("ID"): s for f in frames for s in f}
    for spot in spots.values():
        assert all(np.isfinite(float(value)) for name, value in spot.items() if name != "name")
    tracks = model.findall("AllTracks/Track")
    assert len(tracks) == 2
    for track in tracks:
        edges = [(e.get("SPOT_SOURCE_ID"), e.get("SPOT_TARGET_ID")) for e in track]
        assert len(edges) == 11 and all(a in spots and b in spots for a, b in edges)
        steps = [float(spots[b].get("POSITION_X")) - float(spots[a].get("POSITION_X")) for a, b in edges]
        assert abs(abs(np.mean(steps)) - 2 * SPEED) < 0.2, steps
    assert {t.get("TRACK_ID") for t in model.findall("FilteredTracks/TrackID")} == \
        {t.get("TRACK_ID") for t in tracks}
    image = root.find("Settings/ImageData")
    assert float(image.get("timeinterval")) == 0.1 and float(image.get("pixelwidth")) == 2
    for name in ("BasicSettings", "DetectorSettings", "InitialSpotFilter", "SpotFilterCollection",
                 "TrackerSettings", "TrackFilterCollection", "AnalyzerCollection/SpotAnalyzers"):
        assert root.find("Settings/" + name) is not None, name
    out = at("napari.csv")
    cells(film(), out, "--radius", R, "--format", "napari")
    table = np.genfromtxt(out, delimiter=",", names=True)
    assert table.dtype.names == ("track_id", "t", "y", "x") and len(table) == 24
    assert (np.lexsort((table["t"], table["track_id"])) == np.arange(24)).all()
    assert np.hypot(table["x"][3] - truth()[3][0][0], table["y"][3] - truth()[3][0][1]) < 0.3


def coloured(picture):
    """Pixels whose channels differ: what was drawn on grey."""
    rgb = np.asarray(picture.convert("RGB")).astype(int)
    return np.ptp(rgb, axis=2) > 60


@case
def pictures():
    """a ring within a px of the table about each cell, in PNG files and in an AVI; the plots open"""
    out, overlay, avi = at("pic.csv"), at("overlay"), at("overlay.avi")
    plots = at("kymograph.png"), at("histogram.png")
    common = (film(), out, "--radius", R, "--pixel-um", 2, "--fps", 10, "--force")
    os.mkdir(overlay)
    others = ["frame_000003.png.bak", "frame_7.png"]
    # Of an earlier run: one is replaced, one goes.
    for name in others + ["frame_000003.png", "frame_000099.png"]:
        open(f"{overlay}/{name}", "w").close()
    cells(*common, "--overlay", overlay, "--kymograph", plots[0], "--along", "5,30,135,30",
          "--histogram", plots[1])
    assert sorted(os.listdir(overlay)) == sorted([f"frame_{t:06}.png" for t in range(12)] + others)
    y, x = np.mgrid[:90, :140]
    for row in rows_of(out):
        drawn = coloured(Image.open(f"{overlay}/frame_{int(row['frame']):06}.png"))
        radius = float(row["radius_um"]) / 2
        for angle in np.arange(0, 2 * np.pi, 0.2):
            # Wherever no number hides it, the ring passes within a px.
            ring = float(row["x_px"]) + radius * np.cos(angle), float(row["y_px"]) + radius * np.sin(angle)
            if angle > np.pi / 2 * 3:
                continue
            assert drawn[np.hypot(x - ring[0], y - ring[1]) <= 1].any(), (row, angle)
        away = np.min([np.hypot(x - p[0], y - p[1]) for p in truth()[int(row["frame"])]], axis=0) > 40
        assert not drawn[away & (np.abs(y - 45) < 3)].any()
    cells(*common, "--overlay", avi)
    text, err = cells(avi, at("again.csv"), status=1)
    assert "colour" in err and err.count("\n") == 1, err  # it is read as an AVI, and is in colour
    sizes = [Image.open(p).convert("RGB").size for p in plots]
    assert min(min(s) for s in sizes) >= 500, sizes
    kymograph = np.asarray(Image.open(plots[0]).convert("RGB")).astype(int)
    assert coloured(Image.open(plots[0])).sum() > 100  # the track over it
    assert (kymograph.max(axis=2) < 40).sum() > 1000 and (kymograph.min(axis=2) > 250).sum() > 1000
    assert coloured(Image.open(plots[1])).mean() > 0.05  # the bars


def recording(name, en_face, t0_ns, line_ns=20_000, shape=None):
    """A recording whose en face picture is [V][M], in a slab of its depth."""
    v, m = en_face.shape
    depth = 40
    values = np.random.default_rng(3).normal(20, 1, (v, m, depth)).astype("f4")
    values[:, :, 10:20] += en_face[:, :, None] / 10
    with h5py.File(at(name), "w") as file:
        file["bscans"] = values
        file["bscans"].attrs["axis_spacing_um"] = np.array([2.0, 2.0, 3.0])
        file["frames/time_ns"] = (t0_ns + np.arange(v) * m * line_ns).astype("<u8")
        file["frames/sequence"] = np.arange(v, dtype="<u8")
        file["frames/valid"] = np.ones(v, "u1")
    return at(name)


@case
def recordings_from_above_and_from_the_side():
    """en face: a frame a volume, times of rows, spacing of the file; B-scans lie with depth downward"""
    names = []
    for i in range(4):
        places = [(30 + 3 * i, 40.0), (90.0, 30 + 3 * i)]
        names.append(recording(f"v{i}.h5", disks(80, 130, places, seed=i), 10 ** 9 * (1 + i)))
    out = at("enface.csv")
    cells(*names, out, "--radius", R, "--slab", "25%:50%")
    rows = rows_of(out)
    assert len(rows) == 8, rows
    row_s = 130 * 20e-6
    for row in rows:
        i, y = int(row["frame"]), float(row["y_px"])
        assert near(row, [(30 + 3 * i, 40.0), (90.0, 30 + 3 * i)][int(row["track"]) == first_right(rows)], 0.5)
        assert abs(float(row["time_s"]) - (i + y * row_s)) < 1e-6, row
        assert abs(float(row["x_um"]) - 2 * float(row["x_px"])) < 1e-6
        if i > 0:  # 3 px of 2 um a second; along the slow axis the rows come later, too
            down = abs(float(row["x_px"]) - 90) < 5
            true = 6 / (1 + 3 * row_s) if down else 6
            assert abs(float(row["speed_um_s"]) / true - 1) < 0.2, row
    assert run("octctl", "cells", names[0], at("x.csv"), "--into", names[0])[0] == 2
    # B-scans: A-lines along x, depth along y; a bright disk of 2 x 3 um pixels.
    side = np.array([disks(90, 70, [(30 + 2 * t, 40)], seed=t, radius=8, aspect=1.5) for t in range(5)])
    with h5py.File(at("side_on.h5"), "w") as file:
        file["bscans"] = side.transpose(0, 2, 1).astype("f4")
        file["bscans"].attrs["axis_spacing_um"] = np.array([2.0, 2.0, 3.0])
    out = at("bscan.csv")
    cells(at("side_on.h5"), out, "--source", "bscan", "--radius-um", 16, "--overlay", at("side_on"))
    rows = rows_of(out)
    assert len(rows) == 5 and all(near(r, (30 + 2 * t, 40), 0.5) for t, r in enumerate(rows)), rows
    assert all(abs(float(r["y_um"]) - 3 * float(r["y_px"])) < 1e-6 for r in rows)
    assert Image.open(at("side_on/frame_000000.png")).size == (70, 90)


def first_right(rows):
    """The number of the track that begins at x = 90."""
    return next(int(r["track"]) for r in rows if float(r["x_px"]) > 70)


@case
def maps_for_tests():
    """scores and circles of every pixel; MGVF fields of what was followed"""
    maps, out = at("maps.h5"), at("maps.csv")
    cells(film(), out, "--radius", R, "--detect-every", 4, "--maps", maps)
    rows = rows_of(out, WITHOUT_UM)
    assert {r["how"] for r in rows} == {"detected", "snake"}, {r["how"] for r in rows}
    with h5py.File(maps) as file:
        score, best = file["score"][:], file["best_radius"][:]
        assert score.shape == best.shape == (12, 90, 140) and best.dtype == np.uint8
        assert [bool(np.isfinite(s).all()) for s in score] == [t % 4 == 0 for t in range(12)]
        y, x = np.unravel_index(np.argmin(score[0]), score[0].shape)
        assert min(np.hypot(x - p[0], y - p[1]) for p in truth()[0]) < 2
        assert np.allclose(file["best_radius"].attrs["radii_px"], R * np.arange(0.8, 2.01, 0.2))
        assert (best[0, :10] == 255).all() and best[0, 30, 30] < 7
        group = file["mgvf"]
        n = len(group["track"])
        assert n == 18 and group["field"].shape[0] == n, n
        for i in range(n):
            h, w = group["rows"][i], group["columns"][i]
            field = group["field"][i]
            assert np.isfinite(field[:h, :w]).all() and np.isnan(field[h:]).all()
            assert 0 <= field[:h, :w].min() and field[:h, :w].max() <= 1
            assert 1 <= group["iterations"][i] <= 500 and group["u1"][i] + w <= 140


@case
def what_cannot_be_asked_for_is_said_in_one_line():
    """status 2, one line, no output: options, sizes, formats, names"""
    good, out = film(), at("never.csv")
    np.save(at("small.npy"), np.zeros((3, 40, 200), "u1"))
    np.save(at("tiny.npy"), np.zeros((3, 10, 40), "u1"))
    open(at("text.bin"), "w").write("no picture at all, but some text")
    Image.fromarray(np.zeros((60, 60), "u1")).save(at("one.png"))
    Image.fromarray(np.zeros((60, 70), "u1")).save(at("two.png"))
    open(at("taken.csv"), "w").write("mine")
    volume = recording("v.h5", disks(80, 130, [(30, 40)]), 10 ** 9)
    for words, says in (((good, out, "--radius", 1.4), "1.5"), ((good, out, "--radii", "2:1:0.2"), "--radii"),
                        ((good, out, "--radii", "0.8:2:0"), "--radii"),
                        ((good, out, "--threshold", 0), "--threshold"), ((good, out, "--roi", "100,0,80,90"), "140 x 90"),
                        ((good, out, "--format", "excel"), "--format"), ((at("text.bin"), out), "neither PNG"),
                        ((at("small.npy"), out), "45 x 45"), ((at("tiny.npy"), out), "needs 45 x 45"),
                        ((at("one.png"), at("two.png"), out), "two.png: 70 x 60"),
                        ((good, out, "--fps", 0), "--fps"), ((good, out, "--fps", -3), "--fps"),
                        ((good, out, "--pixel-um", 0), "--pixel-um"), ((good, out, "--pixel-um", "1,9"), "8 times"),
                        ((good, at("taken.csv")), "exists already"), ((good, good), "the last name"),
                        ((good, out, "--radius-um", 8), "um"), ((good, out, "--max-speed", 8, "--pixel-um", 1), "--fps"),
                        ((good, out, "--along", "0,0,500,0"), "--along"), ((good, out, "--kymograph", out + ".png"), "--along"),
                        ((good, out, "--slab", "10%:50%"), "recordings"), ((good, out, "--mask", at("one.png")), "60 x 60"),
                        ((volume, out, "--slab", "50%:10%"), "--slab"), ((volume, good, out), "one kind"),
                        ((good, out, "--profile", "seed"), "--profile"), ((good, out, "--detect-every", 0), "--detect-every"),
                        ((good, out, "--into", volume, "--tracks", volume), ""), ((good, out, "--into", at("no.h5")), "no.h5")):
        text, err = cells(*words, status=2)
        assert says in err and err.count("\n") == 1 and text == "", (words, text, err)
        assert not glob.glob(out + "*"), words
    assert open(at("taken.csv")).read() == "mine"


@case
def damaged_films_give_what_was_whole():
    """status 1: the whole pictures of a cut film are searched; a damaged recording, a compressed AVI"""
    for name, n, unit in (("cut.tif", None, ["--pixel-um", 1, "--fps", 1]), ("cut.npy", 7, [])):
        whole = film("whole" + name[3:])
        data = open(whole, "rb").read()
        open(at(name), "wb").write(data[:len(data) * 5 // 8])
        out = at(name + ".csv")
        _, err = cells(at(name), out, "--radius", R, *unit, status=1)
        rows = rows_of(out, HEADER if unit else WITHOUT_UM)
        assert "truncated" in err and err.count("\n") == 1, err
        frames = 1 + max(int(r["frame"]) for r in rows)
        assert len(rows) == 2 * frames and (n is None or frames == n), (name, frames)
        assert str(frames) in err
    broken = at("frames/f7.png")
    data = open(broken, "rb").read()
    open(broken, "wb").write(data[:len(data) // 2])
    out = at("broken.csv")
    _, err = cells(at("frames"), out, "--radius", R, "--pixel-um", 1, "--fps", 1, status=1)
    assert "f7.png" in err and "7 of 12" in err and err.count("\n") == 1 and len(rows_of(out)) == 14, err
    open(broken, "wb").write(data)
    open(at("damaged.h5"), "wb").write(b"\x89HDF\r\n\x1a\n" + b"\1" * 600)
    header = b"avih" + (56).to_bytes(4, "little") + bytes(56)
    strh = b"strh" + (56).to_bytes(4, "little") + b"vidsMJPG" + bytes(48)
    strf = b"strf" + (40).to_bytes(4, "little") + np.array([40, 64, 64], "<u4").tobytes() + \
        np.array([1, 24], "<u2").tobytes() + b"MJPG" + bytes(20)
    strl = b"LIST" + (4 + len(strh) + len(strf)).to_bytes(4, "little") + b"strl" + strh + strf
    hdrl = b"LIST" + (4 + len(header) + len(strl)).to_bytes(4, "little") + b"hdrl" + header + strl
    movi = b"LIST" + (4).to_bytes(4, "little") + b"movi"
    body = b"AVI " + hdrl + movi
    open(at("jpeg.avi"), "wb").write(b"RIFF" + len(body).to_bytes(4, "little") + body)
    for name, says in (("damaged.h5", "damaged"), ("jpeg.avi", "MJPG")):
        _, err = cells(at(name), at("none.csv"), status=1)
        assert says in err and err.count("\n") == 1 and not os.path.exists(at("none.csv")), err


@case
def frames_without_cells():
    """flat, saturated and NaN frames: one warning with their count, no NaN; none at all: a header"""
    pictures = np.load(film()).astype("f4")
    pictures[3] = 255
    pictures[7] = np.nan
    np.save(at("holes.npy"), pictures)
    out = at("holes.csv")
    _, err = cells(at("holes.npy"), out, "--radius", R, "--pixel-um", 1, "--fps", 1)
    assert "2 of 12 frames" in err and err.count("\n") == 1, err
    assert "nan" not in open(out).read().lower()
    rows = rows_of(out)
    assert {r["how"] for r in rows if r["frame"] in "37"} == {"coasted"} and len(rows) == 24
    np.save(at("noise.npy"), disks(90, 140, [])[None].repeat(3, 0).astype("u1"))
    out = at("none_found.csv")
    text, err = cells(at("noise.npy"), out, "--radius", R, "--pixel-um", 1, "--fps", 1)
    assert rows_of(out) == [] and "highest score seen is " in err and err.count("\n") == 1, err
    assert "cells             0 in 3 frames" in text, text


@case
def the_published_profile():
    """--profile boyer: every 10th frame searched, snakes between; options given besides count"""
    out, results = at("boyer.csv"), at("boyer.h5")
    cells(film(), out, "--radius", R, "--profile", "boyer", "--tracks", results, "--polarity", "bright")
    rows = rows_of(out, WITHOUT_UM)
    assert {r["how"] for r in rows if r["frame"] == "0"} == {"detected"}
    assert {r["how"] for r in rows if r["frame"] in "123456789"} == {"snake"}
    with h5py.File(results) as file:
        config = dict(line.split(" = ") for line in file["tracks"].attrs["config"].split("\n") if line)
    assert (config["refine"], config["offsets"], config["polarity"], config["detect_every"], config["smooth"],
            config["floor"]) == ("spline", "truncated", "bright", "10", "0", "0"), config


@case
def keys_act_or_are_refused():
    """--set of a key of an analysis: all of the command's own section act or are refused, as are others"""
    _, text, _ = run("octctl", "reference")
    keys, section = [], ""
    for line in text.splitlines():
        section = line.strip("[]") if line.startswith("[") else section
        if " = " in line and line.lstrip(";")[0].isalpha() and not line.startswith("; "):
            keys.append((f"{section}.{line.lstrip(';').split(' = ')[0]}", line.split(" = ")[1]))
    keys = [(key, value) for key, value in keys
            if key.split(".")[0] in ("analysis", "average", "cells", "surfaces", "rolloff")]
    assert len(keys) > 30, keys
    act = {"cells.radius_um": 4, "cells.radius_px": 6, "cells.threshold": 500, "cells.polarity": "dark", "cells.smooth": 1,
           "cells.floor": 6, "cells.detect_every": 4, "cells.memory": 0, "cells.min_frames": 100, "cells.max_speed_um_s": 1,
           "cells.flow_deg": 90, "cells.roi": "0,0,80,90"}
    views = {"analysis.enface_projection": ("max", ()), "cells.source": ("bscan", ()),
             "analysis.enface_slab_first": (0.1, ("analysis.enface_projection=slab",)),
             "analysis.enface_slab_last": (0.9, ("analysis.enface_projection=slab",))}
    places = truth()
    places[5] = places[5][:1]  # one cell blinks
    name, out = film("keys.npy", places=places), at("keys.csv")
    volumes = [recording(f"k{i}.h5", disks(80, 130, [(40 + 3 * i, 40.0)], seed=i), 10 ** 9 * (1 + i)) for i in range(4)]

    def table(inputs, *sets):
        words = [word for one in ("cells.radius_px=5", *sets) for word in ("--set", one)]
        cells(*inputs, out, "--pixel-um", 1, "--fps", 10, "--force", *words)
        return open(out).read()

    plain = table([name], "cells.detect_every=3")
    whole = table([name])
    for key, value in act.items():
        if key in ("cells.flow_deg", "cells.memory"):  # of snakes
            assert table([name], "cells.detect_every=3", f"{key}={value}") != plain, key
        else:
            assert table([name], f"{key}={value}") != whole, key
    for key, (value, more) in views.items():
        assert table(volumes, *more, f"{key}={value}") != table(volumes, *more), key
    cells(name, out, "--force", "--radius", R, "--set", "cells.radius_px=9", "--set", "cells.radius_um=3")
    with_keys = open(out).read()
    cells(name, out, "--force", "--radius", R)
    assert open(out).read() == with_keys and len(with_keys) > 500  # options win
    for command in ("correlate", "cones", "cells", "cells-score", "register", "register-volumes", "surfaces",
                    "calibrate kmap", "calibrate dispersion", "calibrate report"):
        own = {"cells": "cells", "cells-score": "cells", "surfaces": "surfaces", "register": "average"}.get(command)
        first = {key.split(".")[0]: key for key, _ in reversed(keys)}  # of each section
        for key, value in keys:
            if command == "cells" and (key in act or key in views) or \
                    key.split(".")[0] != own and key not in first.values():
                continue
            status, text, err = run("octctl", *command.split(), name, name, at("never.h5"), "--set", f"{key}={value}")
            assert status == 2 and err.count("\n") == 1 and f"--set {key}: " in err and "octd alone" in err, \
                (command, key, err)
    assert not os.path.exists(at("never.h5"))
    _, err = cells(name, out, "--profile", "boyer", "--set", "cells.floor=2", status=2)
    assert "--profile boyer" in err and "cells.floor" in err, err


main()
