#!/usr/bin/python3
"""Cones: octctl cones on pictures whose cones are known, and the live analysis in octd."""
import csv
import glob
import h5py
from octfaults import *
from PIL import Image

HEADER = "frame,tile_y,tile_x,spacing_px,spacing_um,rows_um,cells_per_mm2,strength,ring_spacing_px,cones," \
    "whole_cells,spacing_se_px,cells_per_px2,cells_per_mm2_se,nearest_px,nearest_um,regularity,six_sided,file"
PLACES = "frame,tile_y,tile_x,y_px,x_px,y_um,x_um,nearest_px,nearest_um,cell_px2,cell_sides,file"
SUMMARY = r"^%s: spacing ([0-9.]+) px, strength ([0-9.]+); ring ([0-9.]+) px, ([0-9]+) cones, regularity " \
    r"[0-9.]+; [0-9.]+ s$"


def lattice(spacing, height, width, seed=1, jitter=0.06, places=None):
    """Blobs on a hexagonal lattice under light that changes by three from side to side; where they are
    becomes rows of `places`."""
    dice = np.random.default_rng(seed)
    n = int((height + width) / spacing) + 4
    i, j = np.meshgrid(np.arange(-n, n), np.arange(-n, n))
    u = (i + 0.5 * j + dice.normal(0, jitter, i.shape)) * spacing
    v = (np.sqrt(3) / 2 * j + dice.normal(0, jitter, i.shape)) * spacing
    x, y = width / 2 + u * 0.96 - v * 0.28, height / 2 + u * 0.28 + v * 0.96
    near = (abs(x - width / 2) < width / 2 + 2 * spacing) & (abs(y - height / 2) < height / 2 + 2 * spacing)
    if places is not None:
        places.append(np.stack([y[near], x[near]], 1))
    reach = 2 * (0.22 * spacing) ** 2
    down = np.exp(-(np.arange(height)[:, None] - y[near]) ** 2 / reach)
    across = np.exp(-(np.arange(width)[:, None] - x[near]) ** 2 / reach)
    return (0.2 + down @ across.T) * np.exp(np.linspace(0, 1.1, width))


def picture(where, name, values):
    path = os.path.join(where, name)
    Image.fromarray(np.clip(values * 60, 0, 255).astype(np.uint8)).save(path)
    return path


def rows_of(path, header=HEADER):
    with open(path, newline="") as file:
        assert file.readline().strip() == header
        file.seek(0)
        return list(csv.DictReader(file))


@case
def many_pictures_of_different_sizes():
    """each picture has a row; spacings within 2 %, none of noise; without a scale nothing is in um"""
    where = folder("cones")
    sizes = ((6.3, 120, 150), (9, 150, 120), (14.5, 200, 180))
    paths = [picture(where, f"{i}.tif", lattice(*size)) for i, size in enumerate(sizes)]
    noise = np.random.default_rng(2).normal(2, 0.4, (128, 131))
    paths.append(picture(where, "noise.png", noise))
    table, results = os.path.join(where, "all.csv"), os.path.join(where, "all.h5")
    status, text, err = run("octctl", "cones", *paths, results, "--csv", table)
    assert status == 0 and not err, (text, err)
    assert "4 pictures, 4 spacings" in text and "no ring in 1" in text, text
    rows = rows_of(table)
    with h5py.File(results) as file:
        group = {name: file["cones/" + name][:] for name in ("spacing_px", "cells_per_mm2", "strength")}
        assert all(values.shape == (4, 1, 1) for values in group.values())
        assert np.isnan(group["cells_per_mm2"]).all() and np.isnan(group["strength"][3, 0, 0])
        for i, (spacing, _, _) in enumerate(sizes):
            assert rows[i]["frame"] == str(i) and rows[i]["tile_y"] == rows[i]["tile_x"] == "0"
            assert abs(float(rows[i]["spacing_px"]) / spacing - 1) < 0.004, rows[i]
            assert abs(float(rows[i]["ring_spacing_px"]) / spacing - 1) < 0.02, rows[i]
            assert 0 < float(rows[i]["spacing_se_px"]) < 0.01 * spacing, rows[i]
            assert abs(group["spacing_px"][i, 0, 0] - float(rows[i]["spacing_px"])) < 1e-6
            assert rows[i]["spacing_um"] == rows[i]["rows_um"] == rows[i]["cells_per_mm2"] == ""
            assert 0.06 <= float(rows[i]["strength"]) < 1
    assert list(rows[3].values()) == ["3", "0", "0", *[""] * 15, paths[3]], rows[3]
    status, text, _ = run("octctl", "cones", paths[3])
    assert status == 0 and ": no ring (" in text, text


@case
def each_cone_has_a_row():
    """--places and /places: where cones were drawn, nothing of noise; on one core the same bytes"""
    where = folder("cones")
    truth = []
    paths = [picture(where, "a.png", lattice(8, 160, 190, places=truth)),
             picture(where, "noise.png", np.random.default_rng(2).normal(2, 0.4, (128, 131))),
             picture(where, "b.png", lattice(11, 170, 180, 3, places=truth))]
    table, results, plot, whole = (os.path.join(where, n) for n in ("p.csv", "p.h5", "p.png", "totals.csv"))
    status, _, err = run("octctl", "cones", *paths, results, "--places", table, "--png", plot, "--csv", whole,
                         "--pixel-um", 0.5)
    assert status == 0 and not err, err
    rows, totals = rows_of(table, PLACES), rows_of(whole)
    assert {row["frame"] for row in rows} == {"0", "2"} and totals[1]["cones"] == ""
    for frame, drawn, (h, w), spacing in ((0, truth[0], (160, 190), 8), (2, truth[1], (170, 180), 11)):
        own = [row for row in rows if row["frame"] == str(frame)]
        assert len(own) == int(totals[frame]["cones"]) and own[0]["file"] == paths[frame]
        at = np.array([[float(row["y_px"]), float(row["x_px"])] for row in own])
        far = np.hypot(*(at[:, None] - drawn[None]).transpose(2, 0, 1))
        assert far.min(1).max() < 0.15 * spacing  # of each that was found: the one that was drawn
        inner = (drawn > spacing / 2).all(1) & (drawn < np.array([h, w]) - spacing / 2).all(1)
        assert far.min(0)[inner].max() < 0.15 * spacing and len(set(far.argmin(1))) == len(own)
        near = np.hypot(*(at[:, None] - at[None]).transpose(2, 0, 1)) + 1e9 * np.eye(len(at))
        assert np.allclose(near.min(1), [float(row["nearest_px"]) for row in own], rtol=1e-6)
        assert np.allclose(at * 0.5, [[float(row["y_um"]), float(row["x_um"])] for row in own], rtol=1e-6)
        cells = [float(row["cell_px2"]) for row in own if row["cell_px2"]]
        assert len(cells) == int(totals[frame]["whole_cells"])
        density = float(totals[frame]["cells_per_px2"])
        assert abs(density * np.mean(cells) - 1) < 1e-6
        assert abs(density * spacing ** 2 * np.sqrt(0.75) - 1) < 0.01, density
        assert abs(float(totals[frame]["cells_per_mm2"]) / (density * 4e6) - 1) < 1e-6
    with h5py.File(results) as file:
        assert file["places/y_px"].attrs["units"] == "px" and len(file["places/x_um"]) == len(rows)
        assert [int(row["frame"]) for row in rows] == list(file["places/frame"][:])
        assert file["cones/cones"][0, 0, 0] == int(totals[0]["cones"]) and np.isnan(file["cones/cones"][1, 0, 0])
    marked = np.asarray(Image.open(plot[:-4] + "-cones.png").convert("RGB")).astype(int)
    assert marked.shape == (160, 190, 3) and (marked[..., 1] - marked[..., 0] > 40).sum() > 500
    again, cores = os.path.join(where, "again.csv"), os.sched_getaffinity(0)
    for use in ({min(cores)}, cores):
        os.sched_setaffinity(0, use)
        status, _, err = run("octctl", "cones", *paths, "--places", again, "--force", "--pixel-um", 0.5)
        os.sched_setaffinity(0, cores)
        with open(table, "rb") as first, open(again, "rb") as second:
            assert status == 0 and first.read() == second.read(), err


@case
def a_count_and_a_ring_that_differ_are_told():
    """a mosaic of which cones are missing: fewer are counted, the ring is as before, a line says so"""
    where = folder("cones")
    truth = []
    lattice(10, 300, 300, jitter=0.04, places=truth)
    there = truth[0][np.random.default_rng(3).random(len(truth[0])) > 0.17]
    reach = 2 * 2.2 ** 2
    values = 0.2 + np.exp(-(np.arange(300)[:, None] - there[:, 0]) ** 2 / reach) @ \
        np.exp(-(np.arange(300)[:, None] - there[:, 1]) ** 2 / reach).T
    path = picture(where, "holes.png", values)
    status, text, err = run("octctl", "cones", path, "--json")
    row, = json.loads(text)["spacings"]
    assert status == 0 and "in 1 of 1 pictures the spacing of the cones counted" in err, err
    assert err.count("\n") == 1 and abs(row["spacing_px"] / 10 * np.sqrt(0.83) - 1) < 0.02, row
    assert abs(row["ring_spacing_px"] / 10 - 1) < 0.03, row


@case
def the_scale_makes_micrometres():
    """--pixel-um gives um, rows and cells/mm2; a picture squeezed to half its height is the same cones"""
    where = folder("cones")
    values = lattice(11, 240, 200)
    whole = picture(where, "whole.png", values)
    half = picture(where, "half.png", (values[::2] + values[1::2]) / 2)
    found = []
    for path, um in ((whole, "0.5"), (half, "0.5,1")):
        status, text, err = run("octctl", "cones", path, "--pixel-um", um, "--json")
        assert status == 0, err
        row, = json.loads(text)["spacings"]
        assert abs(row["spacing_um"] / 5.5 - 1) < 0.005, row
        assert abs(row["nearest_um"] / row["nearest_px"] / (row["spacing_um"] / row["spacing_px"]) - 1) < 1e-6
        assert abs(row["rows_um"] / row["spacing_um"] - np.sqrt(0.75)) < 1e-6
        density = 2 / np.sqrt(3) / (row["spacing_um"] * 1e-3) ** 2
        assert abs(row["cells_per_mm2"] / density - 1) < 1e-6, row
        found.append(row["spacing_um"])
    assert abs(found[0] / found[1] - 1) < 0.005, found


@case
def tiles_make_a_map():
    """--tile and --step: where cones stand closer the map says so; a PNG, the shape of the table"""
    where = folder("cones")
    two = np.hstack([lattice(6, 160, 160), lattice(9, 160, 160)])
    path, table = picture(where, "two.png", two), os.path.join(where, "map.csv")
    results, plot = os.path.join(where, "map.h5"), os.path.join(where, "map-plot.png")
    status, text, err = run("octctl", "cones", path, results, "--tile", 80, "--step", 40, "--csv",
                            table, "--png", plot, "--pixel-um", 0.5)
    assert status == 0 and "21 tiles" in text, (text, err)
    with h5py.File(results) as file:
        spacing = file["cones/spacing_px"][:]
        assert spacing.shape == (1, 3, 7) and file.attrs["tile_px"] == 80 and file.attrs["step_px"] == 40
        assert file["cones/cells_per_mm2"].attrs["units"] == "1/mm^2"
    assert (abs(spacing[0, :, :3] / 6 - 1) < 0.03).all(), spacing
    assert (abs(spacing[0, :, 4:] / 9 - 1) < 0.03).all(), spacing
    assert [(int(r["tile_y"]), int(r["tile_x"])) for r in rows_of(table)] == \
        [(y, x) for y in range(3) for x in range(7)]
    drawn = np.asarray(Image.open(plot).convert("RGB")).astype(int)
    assert (abs(drawn[..., 0] - drawn[..., 2]) > 40).mean() > 0.05  # in colour


@case
def what_cannot_be_measured_is_said_in_one_line():
    """wrong pictures, options and outputs: one line, status 1 or 2, nothing is written"""
    where = folder("cones")
    good = picture(where, "good.png", lattice(8, 100, 100))
    blank, small = picture(where, "blank.png", np.ones((80, 80))), picture(where, "small.png", np.ones((9, 80)))
    out, empty = os.path.join(where, "never.h5"), os.path.join(where, "empty")
    os.mkdir(empty)
    for words, status, says in (([blank], 1, "frame 0: no contrast"),
                                ([blank, blank, out], 1, f"{blank}: frame 0: no contrast"),
                                ([small], 1, "80 x 9"), ([good, "--tile", 200], 1, "200 px"),
                                ([good, "--spacing", "5:90"], 1, "5 to 90"),
                                ([good, "--spacing", "9"], 2, "--spacing"), ([good, "--step", 9], 2, "--tile"),
                                ([good, "--pixel-um", "0"], 2, "--pixel-um"), ([empty], 1, "an empty folder"),
                                ([good, "--csv", good, "--force"], 2, "input")):
        got, text, err = run("octctl", "cones", *words)
        assert got == status and says in err and err.count("\n") == 1 and not text, (words, got, err)
    assert not glob.glob(out + "*")


@case
def what_is_blank_is_left_out_and_named():
    """blank pictures of many, the first too, are left out as register does; each row names its file"""
    where = folder("cones")
    paths = [picture(where, "blank \N{LATIN SMALL LETTER E WITH ACUTE}.png", np.ones((80, 80)))]
    paths += [picture(where, f"{i}.png", lattice(8, 100 + i // 4, 120)) for i in range(6)]
    paths[3:3] = [picture(where, f"flat{i}.png", np.full((100, 120), 2)) for i in range(2)]
    table, out, plot = (os.path.join(where, "t" + end) for end in (".csv", ".h5", ".png"))
    status, text, err = run("octctl", "cones", *paths, out, "--csv", table, "--png", plot)
    assert status == 0 and not err, (text, err)
    assert "9 pictures, 6 spacings: " in text and \
        "no ring in 0; left out: 0 (no contrast), 3-4 (no contrast); " in text.replace(", 3", ", 3"), text
    rows = rows_of(table)
    assert [row["file"] for row in rows] == paths, rows
    with h5py.File(out) as file:
        names = file["files"]
        assert h5py.check_string_dtype(names.dtype) == ("utf-8", None), names.dtype
        assert [name.decode() for name in names[:]] == paths
        spacing = file["cones/spacing_px"][:, 0, 0]
    for i, row in enumerate(rows):
        assert (row["spacing_px"] == "") == np.isnan(spacing[i]) == (i in (0, 3, 4)), row
    status, text, _ = run("octctl", "cones", *paths, "--json")
    told = json.loads(text)
    assert [one["frame"] for one in told["left_out"]] == [0, 3, 4], told
    assert [row["file"] for row in told["spacings"]] == paths
    _, alone, _ = run("octctl", "cones", paths[1], "--json")
    assert told["spacings"][1]["spacing_px"] == json.loads(alone)["spacings"][0]["spacing_px"]
    status, text, err = run("octctl", "cones", *paths, "--tile", 90)  # the first is smaller
    assert status == 0 and "left out: 0 (a tile of 90 px is larger" in text, (text, err)


@case
def pictures_of_a_split_detector_are_told():
    """light and dark side by side: no spacing, a line says so, as does --json"""
    where = folder("cones")
    values = lattice(10, 200, 200)
    split = 2 + 0.8 * (np.roll(values, 2, 1) - np.roll(values, -2, 1)) / values.std()
    paths = [picture(where, "confocal.png", values), picture(where, "split.png", split / 2)]
    status, text, err = run("octctl", "cones", *paths, "--json")
    rows = json.loads(text)["spacings"]
    assert status == 0 and [row["is_split"] for row in rows] == [False, True], rows
    assert rows[1]["spacing_px"] is None and abs(rows[0]["spacing_px"] / 10 - 1) < 0.02, rows
    assert "1 of 2 pictures show cones as pairs of light and dark" in err and err.count("\n") == 1, err


@case
def living_eyes():
    """the five pictures of a living eye have the known spacing in rows and columns 200 to 455"""
    known = {"0069": 9.47, "0070": 10.75, "0071": 12.00, "0072": 13.31, "0075": 13.25}
    if not os.path.isdir(os.path.join(DATA, "ao_mosaic")):
        raise Skip("../shared/data/ao_mosaic is not there")
    where = folder("cones")
    for name, spacing in known.items():
        path = os.path.join(DATA, "ao_mosaic", f"confocal_{name}.tif")
        part = os.path.join(where, name + ".tif")
        Image.fromarray(np.asarray(Image.open(path))[200:456, 200:456]).save(part)
        status, text, _ = run("octctl", "cones", part)
        found = re.match(SUMMARY % re.escape(part), text)
        assert status == 0 and abs(float(found[3]) / spacing - 1) < 0.005, text
        assert abs(float(found[1]) / spacing - 1) < 0.03, text


@case
def live_it_is_a_row_a_volume():
    """analysis.run = cones: topic cones has a row a volume, and so has the recording"""
    with Daemon(*BASE, *settings(scan=dict(width_um=600, height_um=500),
                                 analysis=dict(run="enface,cones"))) as daemon:
        socket = daemon.context.socket(zmq.SUB)
        socket.rcvtimeo = PATIENCE_S * 1000
        socket.setsockopt(zmq.SUBSCRIBE, b"cones")
        connected(socket, lambda: socket.connect(daemon.publish))
        assert daemon.ask("record", action="start")["ok"]
        sender = Sender(daemon, 1)
        sender.send(LINES[:M * V], 0, flags=1)
        topic, header, values = socket.recv_multipart()
        header = json.loads(header)
        assert topic == b"cones" and header["dataset"] == "analysis/cones" and header["whole"], header
        assert header["labels"] == ["spacing_px", "spacing_um", "rows_um", "cells_per_mm2", "strength",
                                    "ring_spacing_px", "cones", "spacing_se_px", "regularity"]
        assert len(values) == 36 and set(header["values"]) == set(header["labels"]), header
        daemon.wait(lambda s: s["volumes_written"] == 1)
        with h5py.File(glob.glob(daemon.records + "/*.h5")[0]) as file:
            assert file["analysis/cones"].shape == (9,), file["analysis/cones"]
        socket.close()


main()
