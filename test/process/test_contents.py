"""octctl check and info say what each file of results is: those that octctl writes now, those that it
wrote before they said so themselves, damaged ones, and others'."""
import json, os

import h5py, numpy as np

from octtest import case, main, ok, refused_by, run

SCAN = ["--set", "camera.samples=512", "--set", "scan.lines=48", "--set", "scan.bscans=20"]


def pictures(n=3, side=160):
    """The same cells, shifted, as .npy."""
    rng = np.random.default_rng(3)
    y, x = np.mgrid[:side, :side]
    one = np.zeros((side, side))
    for v, u in rng.uniform(0, side, (60, 2)):
        one += np.exp(-((y - v) ** 2 + (x - u) ** 2) / 18)
    one += rng.normal(0, 0.02, one.shape)
    np.save("film.npy", np.stack([np.roll(one, i, 1) for i in range(n)]).astype("f4"))
    for i in range(n):
        np.save(f"{i}.npy", np.roll(one, 4 * i, 1).astype("f4"))
    return "film.npy"


def make_all():
    """{file: (kind, the dataset that it is for)}."""
    ok("synth", "in.h5", "--calibration", "cal", *SCAN)
    ok("recon", "in.h5", "rec.h5", "--config", "cal/calibration.ini", "--set", "output.sample=f32")
    film = pictures()
    ok("surfaces", "rec.h5", "layers.h5", "--phi", "phi.h5")
    ok("surfaces", "--mask", "rec.h5", "mask.h5")
    ok("register", film, "frames.h5", "--stack")
    ok("register", film, "shifts.h5", "--shifts-only")
    ok("register", "rec.h5", "volume.h5", "--as", "volume", "--min-score", "-1")
    ok("register", "0.npy", "1.npy", "mosaic.h5", "--as", "mosaic")
    ok("register-volumes", "rec.h5", "rec.h5", "one.h5", "--model", "bscans")
    ok("register-volumes", "rec.h5", "rec.h5", "rec.h5", "two.h5", "--model", "bscans")
    ok("cones", film, "cones.h5", "--tile", "64")
    ok("correlate", film, "plain.h5")
    ok("correlate", film, "planes.h5", "--c2d")
    ok("cells", film, "cells.csv", "--radius", "4", "--tracks", "cells.h5", "--maps", "scores.h5")
    return {"layers.h5": ("layers", "/thickness/retina"), "phi.h5": ("level-set", "/phi"),
            "mask.h5": ("mask", "/mask"), "frames.h5": ("frames", "/average"),
            "shifts.h5": ("frames", None), "volume.h5": ("volume", "/bscans"),
            "mosaic.h5": ("mosaic", "/average"), "one.h5": ("volumes", "/warped"),
            "two.h5": ("volumes", "/pair/1/warped"), "cones.h5": ("cones", "/cones/spacing_px"),
            "plain.h5": ("correlation", None), "planes.h5": ("correlation", "/correlation/c2d"),
            "cells.h5": ("cells", None), "scores.h5": ("cell-scores", "/score")}


def judge(path, kind, first):
    facts = json.loads(ok("info", path, "--json")[0])
    assert (facts["format"], facts["kind"]) == ("result", kind), (path, facts)
    shown = [d for d in facts["datasets"] if d["picture"]]
    assert [d["name"] for d in shown[:1]] == [first] * (first is not None), (path, shown)
    with h5py.File(path) as file:
        for d in facts["datasets"]:
            dataset = file[d["name"]]
            assert list(dataset.shape) == d["shape"], (path, d)
            um = dataset.attrs.get("axis_spacing_um", [np.nan] * dataset.ndim)
            assert np.allclose([np.nan if v is None else v for v in d["spacing_um"]], um,
                               equal_nan=True), (path, d, um)
        n = sum(1 for d in facts["datasets"])
    words = ok("info", path)[0]
    assert facts["is"] in words and facts["source"][:1] == [] or facts["source"][0] in words
    said = ok("check", path)[0]
    assert said.startswith(f"{path}: ok: {facts['is']}; {n} datasets, "), said
    report = json.loads(ok("check", "--json", path)[0])[0]
    assert report["ok"] and report["kind"] == kind, report


@case
def every_kind_of_result_is_known():
    """check and info know all that octctl's analyses write, also from before they said what it is"""
    for path, (kind, first) in make_all().items():
        judge(path, kind, first)
        with h5py.File(path, "a") as file:
            del file.attrs["kind"]
        judge(path, kind, first)


@case
def a_damaged_result_is_no_ok():
    """results that end early, or of which a dataset cannot be read, end check with 1"""
    np.save("film.npy", np.random.default_rng(1).normal(0, 1, (2, 64, 64)).astype("f4"))
    ok("correlate", "film.npy", "good.h5", "--c2d", "--force")
    data = open("good.h5", "rb").read()
    open("short.h5", "wb").write(data[:len(data) // 2])
    status, out, err = run("octctl", "check", "short.h5", "good.h5")
    assert status == 1 and "short.h5" in err and "good.h5: ok: " in out, (status, out, err)
    assert json.loads(run("octctl", "check", "--json", "short.h5")[1])[0]["ok"] is False
    with h5py.File("packed.h5", "w") as file:
        file.attrs["software"], file.attrs["kind"] = "octd 0.1.0", "correlation"
        made = file.create_dataset("correlation/c2d", (4, 64, 64), "f4", chunks=(1, 64, 64),
                                   compression="gzip")
        made[...] = np.arange(4 * 64 * 64).reshape(4, 64, 64)
        place = made.id.get_chunk_info(1)
    with open("packed.h5", "r+b") as file:
        file.seek(place.byte_offset)
        file.write(b"\xff" * place.size)
    status, out, err = run("octctl", "check", "packed.h5")
    assert status == 1 and "/correlation/c2d" in err and not out, (status, out, err)


@case
def results_are_no_recordings():
    """recon says what a file of results is; a dataset that the user names is taken all the same"""
    np.save("one.npy", np.random.default_rng(1).normal(0, 1, (2, 64, 64)).astype("f4"))
    ok("correlate", "one.npy", "corr.h5", "--c2d", "--force")
    refused_by("recon", 1, "corr.h5: no recording, but correlation of pictures, by octctl correlate",
               "corr.h5", "out.h5")
    named = json.loads(ok("info", "corr.h5", "--json", "--dataset", "/correlation/c1d")[0])
    assert named["format"] == "HDF5" and named["samples"] == 22, named


@case
def what_others_wrote_is_not_ours():
    """a file of another program has no kind, whatever its datasets are called"""
    with h5py.File("other.h5", "w") as file:
        file["cones/spacing_px"] = np.zeros((1, 9, 9), "u2")
        file.attrs["kind"] = "cones"
    status, _, err = run("octctl", "check", "other.h5")
    assert status == 1 and "holds neither /spectra nor /bscans" in err, (status, err)
    assert json.loads(ok("info", "other.h5", "--json")[0])["format"] == "HDF5"


@case
def names_of_a_file_do_not_control_the_terminal():
    """info, check: control characters in names of datasets are '?', in the table and in errors"""
    with h5py.File("loud.h5", "w") as file:
        file.attrs["software"], file.attrs["kind"] = "octd 0.1.0", "layers"
        file["thickness_um"] = np.zeros((4, 16), "f4")
        file["a\x1b[31mred"] = np.zeros((4, 16), "f4")
        file["\x1b]0;owned\x07"] = np.zeros((4, 16), "f4")
    for command in (["info"], ["check"], ["recon", "--set", "file.dataset=\x1b[2J", "--to"]):
        _, out, err = run("octctl", command[0], "loud.h5", *command[1:])
        assert "red" in out or command[0] != "info", (command, out)
        assert not set(out + err) & set("\x1b\x07"), (command, out, err)


@case
def all_names_of_very_many_files_are_read_back():
    """info: a result of 400 files with long names says what it was made of"""
    film, names = np.load(pictures(1)), []
    for i in range(400):
        names.append(f"{i:03d}-" + "n" * 200 + ".npy")
        np.save(names[-1], film[0, :64, :64])
    ok("cones", *names, "many.h5", "--pixel-um", "0.5")
    assert json.loads(ok("info", "many.h5", "--json")[0])["source"] == names
    with h5py.File("many.h5") as file:  # without tiles there are no pixels of a map
        assert np.isnan(file["cones/spacing_px"].attrs["axis_spacing_um"]).all()


@case
def keys_of_analyses_are_refused_where_they_are_not_read():
    """info, check, label, pack, doctor: --set of an analysis' key ends with 2"""
    for command in "info", "check", "label", "pack", "doctor":
        status, _, err = run("octctl", command, "many.h5", "--set", "surfaces.min_quality=1")
        assert status == 2 and "does not read this key" in err, (command, status, err)


if __name__ == "__main__":
    main()
