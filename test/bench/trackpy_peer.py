#!/usr/bin/python3
"""octctl cells beside trackpy (Crocker and Grier 1996; pip install trackpy numba), which is told the size of the
cells, how far they are apart and how far they go, on the same films of octctl synth, judged by octctl cells-score.

    test/bench/trackpy_peer.py OCTCTL

Of both over three films: precision; recall where octctl searches, and of the whole picture; switches; RMS distance, px;
seconds of a processor, with octctl's start, without Python's and numba's compiler."""
import json
import math
import resource
import subprocess
import sys
import tempfile

import numpy as np
import trackpy

DIAMETER, APART, STEP, MEMORY, LEAST = 25, 12, 10, 3, 3  # px, px, px a picture, pictures, pictures
SEARCHED = "27,27,585,425"


def octctl(*arguments):
    return subprocess.run([OCTCTL, *map(str, arguments)], check=True, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL).stdout


def seconds(who):
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def peer(film):
    """Minimal mass: half of the strongest ten's median in the first picture."""
    mass = np.sort(trackpy.locate(film[0], DIAMETER, separation=APART)["mass"])
    found = trackpy.batch(film, DIAMETER, minmass=np.median(mass[-10:]) / 2, separation=APART, processes=1)
    return trackpy.filter_stubs(trackpy.link(found, STEP, memory=MEMORY), LEAST)


def write(tracks, name):
    with open(name, "w") as file:
        file.write("track,frame,time_s,x_px,y_px\n")
        for row in tracks.itertuples():
            file.write(f"{row.particle + 1},{row.frame},,{row.x:.6f},{row.y:.6f}\n")


class Sums:
    def __init__(self):
        self.inside, self.whole, self.s = [], [], 0

    def add(self, truth, found, s):
        self.s += s
        self.inside.append(json.loads(octctl("cells-score", truth, found, "--json", "--roi", SEARCHED)))
        self.whole.append(json.loads(octctl("cells-score", truth, found, "--json")))

    def __str__(self):
        def of(rows, name):
            return sum(row[name] for row in rows)
        n = of(self.inside, "matches")
        rms = math.sqrt(sum(row["matches"] * row["rmse_px"] ** 2 for row in self.inside) / n)
        return (f"{n / of(self.inside, 'found'):.3f} | {n / of(self.inside, 'true'):.3f} | "
                f"{of(self.whole, 'matches') / of(self.whole, 'true'):.3f} | {of(self.inside, 'switches')} | "
                f"{rms:.2f} | {self.s:.2f}")


def main(folder):
    names = [f"{folder}/{name}" for name in ("film.npy", "film.npy.truth.csv", "ours.csv", "peer.csv")]
    film, truth, ours, theirs = names
    print("| contrast / noise | by | precision | recall | of the whole | switches | RMS px | s |\n" + "| --- " * 8 + "|")
    for cnr in (4, 1.5):
        sums = Sums(), Sums()
        for seed in (1, 2, 3):
            octctl("synth", film, "--cells", 30, "--n-frames", 60, "--cnr", cnr, "--seed", seed)
            before = seconds(resource.RUSAGE_CHILDREN)
            octctl("cells", film, ours, "--force")
            sums[0].add(truth, ours, seconds(resource.RUSAGE_CHILDREN) - before)
            pictures = np.load(film)
            peer(pictures[:LEAST])  # compiles
            before = seconds(resource.RUSAGE_SELF)
            write(peer(pictures), theirs)
            sums[1].add(truth, theirs, seconds(resource.RUSAGE_SELF) - before)
            subprocess.run(["rm", film, truth], check=True)
        print(f"| {cnr} | octctl cells | {sums[0]} |\n| {cnr} | trackpy | {sums[1]} |")


if __name__ == "__main__":
    OCTCTL = sys.argv[1]
    trackpy.quiet()
    with tempfile.TemporaryDirectory() as scratch:
        main(scratch)
