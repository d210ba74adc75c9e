#!/usr/bin/env python3
"""Watches the live B-scans of octd: their number, brightness, and how many this program missed.

    watch_live.py --pictures 20
"""
import argparse

import octd


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--publish", default="tcp://127.0.0.1:5702")
    options.add_argument("--pictures", type=int, default=20, help="to watch (20)")
    options.add_argument("--timeout", type=float, default=30, help="s to wait for each (30)")
    given = options.parse_args()

    missed, last = 0, None
    with octd.subscribe(given.publish, "bscan", timeout_s=given.timeout) as pictures:
        for n, (header, picture) in enumerate(pictures, 1):
            new = last is None or header["acquisition_id"] != last["acquisition_id"]
            missed += 0 if new else header["frame_num"] - last["frame_num"] - 1
            last = header
            grey_db = (header["hi"] - header["lo"]) / 255  # of uint8 pictures
            mean_db = (header["lo"] + picture.mean() * grey_db
                       if header["dtype"] == "uint8" else picture.mean())
            print(f"B-scan {header['frame_num']}: {picture.shape[0]} A-lines of "
                  f"{picture.shape[1]} depths, mean {mean_db:.1f} dB", flush=True)
            if n == given.pictures:
                break
    print(f"{given.pictures} B-scans, {missed} missed")


if __name__ == "__main__":
    main()
