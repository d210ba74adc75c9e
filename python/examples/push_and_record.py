#!/usr/bin/env python3
"""Is a simulated camera for a running octd, and has it record a volume.

    octd --set camera.samples=1024 --set calibration.wavelengths=wavelengths.txt
    push_and_record.py
"""
import argparse

import numpy as np
import octd


def waving_mirror(first, n_lines, lines_a_bscan, n_samples):
    """A-lines first to first + n_lines, u16: a mirror that comes and goes."""
    line = np.arange(first, first + n_lines)[:, None]
    cycles = 60 + 30 * np.sin(2 * np.pi * line / lines_a_bscan)
    place = np.arange(n_samples) / n_samples
    source = 1500 * np.exp(-(((place - 0.5) / 0.3) ** 2))
    return (source * (1 + 0.4 * np.cos(2 * np.pi * cycles * place))).astype(np.uint16)


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--ingest", default="tcp://127.0.0.1:5701")
    options.add_argument("--control", default="tcp://127.0.0.1:5703")
    options.add_argument("--volumes", type=int, default=1, help="to record (1)")
    given = options.parse_args()

    with octd.Control(given.control) as control:
        status = control.status()
        shape = status["geometry"]
        control.record_start(volumes=given.volumes)
        before = status["volumes_written"]
        with octd.Camera(given.ingest, samples=shape["samples"], crc=True) as camera:
            camera.wait_connected()
            camera.start()
            n = shape["lines"] * shape["bscans"] * given.volumes
            for first in range(0, n, shape["lines"]):
                camera.send(waving_mirror(first, shape["lines"], shape["lines"],
                                          shape["samples"]))
        status = control.wait(lambda s: s["volumes_written"] >= before + given.volumes
                              and not s["record"]["active"], timeout_s=60)
    account = status["record_account"]
    print(f"{status['record']['file']}: {account['written']} of {account['offered']} B-scans")


if __name__ == "__main__":
    main()
