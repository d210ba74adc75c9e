#!/usr/bin/env python3
"""Tries second orders of the dispersion on a recording's middle B-scan and tells the sharpest.

    sweep_dispersion.py volume.h5 --from 0 --to 200 --steps 41

`octctl calibrate dispersion` does it better; this shows how one engine serves a sweep.
"""
import argparse

import numpy as np
import octd


def sharpness(intensity):
    """Of light over all pixels: mean square over squared mean."""
    return float((intensity ** 2).mean() / intensity.mean() ** 2)


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("recording")
    options.add_argument("--from", type=float, default=-200, dest="first", help="a2, radians")
    options.add_argument("--to", type=float, default=200, dest="last", help="a2, radians")
    options.add_argument("--steps", type=int, default=41)
    given = options.parse_args()

    with octd.open(given.recording) as recording:
        if recording.spectra is None:
            raise SystemExit(f"{given.recording}: no spectra (record.spectra=yes keeps them)")
        spectra = recording.spectra[len(recording) // 2]
        a3 = float(recording.key("calibration.dispersion_a3") or 0)
        # Intensities, not dB: sharpness is one of light.
        engine = recording.reconstructor(sample="f32", pipeline_log=False)
    found = []
    for a2 in np.linspace(given.first, given.last, given.steps):
        engine.set_dispersion([a2, a3])
        found.append((sharpness(engine(spectra)[:, 30:]), a2))
    best, a2 = max(found)
    print(f"a2 = {a2:.4g} rad is the sharpest of {given.steps}: {best:.4g}, the least is "
          f"{min(found)[0]:.4g}")


if __name__ == "__main__":
    main()
