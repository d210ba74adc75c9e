"""Every analysis of octctl finds the same on one processor as on two, and says in its file what it is
of: the version, the command line, and the CRC-32C of each input."""
import os

import h5py, numpy as np

from octcrc import crc32c_rows
from octtest import case, folder, main, ok, settings

# What no two runs share: times, and on how many threads the pictures were made.
TIMES = {"seconds", "start_time", "input_time", "memory_bytes", "engine"}
COMMANDS = {  # file: its inputs, the command
    "cones.h5": ("film.npy", "cones film.npy cones.h5 --tile 64"),
    "plain.h5": ("film.npy", "correlate film.npy plain.h5 --c2d"),
    "frames.h5": ("film.npy", "register film.npy frames.h5 --stack"),
    "strips.h5": ("film.npy", "register film.npy strips.h5 --model strips"),
    "bscans.h5": ("rec.h5", "register rec.h5 bscans.h5 --as volume --min-score -1"),
    "mosaic.h5": ("0.npy 1.npy", "register 0.npy 1.npy mosaic.h5 --as mosaic"),
    "both.h5": ("v.npy w.npy", "register-volumes v.npy w.npy both.h5 --average --inverse"),
    "layers.h5": ("rec.h5", "surfaces rec.h5 layers.h5"),
    "cells.h5": ("film.npy", "cells film.npy cells.csv --radius 4 --tracks cells.h5"),
}
TABLES = ["cells.csv"]


def make_inputs():
    rng = np.random.default_rng(3)
    y, x = np.mgrid[:160, :160]
    one = rng.normal(0, 0.02, y.shape)
    for v, u in rng.uniform(0, 160, (60, 2)):
        one += np.exp(-((y - v) ** 2 + (x - u) ** 2) / 18)
    np.save("film.npy", np.stack([np.roll(one, i, 1) for i in range(4)]).astype("f4"))
    for i in range(2):
        np.save(f"{i}.npy", np.roll(one, 4 * i, 1).astype("f4"))
    waves = np.indices((20, 24, 32)).transpose(1, 2, 3, 0) @ rng.normal(0, 0.25, (3, 12))
    for name, shift in (("v.npy", 0.3), ("w.npy", 0)):
        np.save(name, np.sin(waves + shift).sum(axis=-1).astype("f4"))
    scan = settings(camera=dict(samples=512), scan=dict(lines=48, bscans=20))
    ok("synth", "in.h5", "--calibration", "cal", *scan)
    ok("recon", "in.h5", "rec.h5", "--config", "cal/calibration.ini", "--set", "output.sample=f32")


def contents(path):
    """{name: bytes} of datasets and attributes."""
    found = {}

    def take(name, item):
        for key, value in item.attrs.items():
            if key not in ("DIMENSION_LIST", "REFERENCE_LIST"):
                value = np.asarray(value)  # of texts the bytes are places in memory
                found[f"{name}@{key}"] = (repr(value.tolist()).encode() if value.dtype.kind == "O"
                                          else value.tobytes())
        if isinstance(item, h5py.Dataset) and item.dtype.kind != "O":
            found[name] = item[()].tobytes()

    with h5py.File(path) as file:
        take("", file)
        file.visititems(take)
    return {k: v for k, v in found.items() if not TIMES & {*k.replace("@", "/").split("/")}}


def on(n_processors, made):
    """What the commands find, all on so many processors."""
    every = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(every)[:n_processors])
    try:
        for _, command in COMMANDS.values():
            ok(*command.split(), "--force")
        ok("analyse", "enface,quality,cones,surfaces", "in.h5", "live.h5", "--force", "--config",
           "cal/calibration.ini")
    finally:
        os.sched_setaffinity(0, every)
    made.update({name: contents(name) for name in [*COMMANDS, "live.h5"]})
    made.update({name: {"": open(name, "rb").read()} for name in TABLES})


@case
def one_processor_finds_what_two_find():
    """the same bytes in all datasets and attributes, of each analysis and of octctl analyse"""
    os.chdir(folder("same"))
    make_inputs()
    one, two = {}, {}
    on(1, one)
    on(2, two)
    for name, of_one in one.items():
        other = [k for k in of_one.keys() | two[name].keys() if of_one.get(k) != two[name].get(k)]
        assert not other and len(of_one) > 0, (name, other)


@case
def a_file_says_what_it_is_of():
    """software, the command line, and the inputs with the CRC-32C of their bytes"""
    for name, (inputs, command) in COMMANDS.items():
        with h5py.File(name) as file:
            said = {k: file.attrs[k].splitlines() for k in ("source", "source_crc32c")}
            assert file.attrs["software"].startswith("octd "), name
            assert file.attrs["command"].endswith("octctl " + command + " --force"), name
        sums = [f"{crc32c_rows(np.fromfile(i, 'u1')[None])[0]:08x}" for i in inputs.split()]
        assert said == {"source": inputs.split(), "source_crc32c": sums}, (name, said, sums)


main()
