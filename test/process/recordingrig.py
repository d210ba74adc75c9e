"""Recordings as docs/recordings.md describes them, written by h5py from that page alone, of which
every value is known."""
import h5py
import numpy as np

CONFIG = "[pipeline]\nlog = yes\n[scan]\nrefractive_index = 1.36\n"
PSEUDONYM, WHERE = "Pseudonym of somebody", "/data/secret-folder/of-somebody"


def u8_recording(path, V=7, M=13, D=37, seed=1, um=(12.5, 5.25, 3.5), missing=(2, 5),
                 lost=((4, 3),), limits="own", config=CONFIG, **attributes):
    """V B-scans of u8 with limits of their own: B-scans `missing` were never written, A-lines
    `lost` (B-scan, line) never came. Returns the decibels in double precision, NaN where there are
    none. limits: own, same or none."""
    rng = np.random.default_rng(seed)
    pixels = rng.integers(0, 256, (V, M, D), dtype=np.uint8)
    lo, hi = rng.uniform(-12, -8, V), rng.uniform(30, 40, V)
    if limits == "same":
        lo[:], hi[:] = lo[0], hi[0]
    valid, came = np.ones(V, np.uint8), np.ones((V, M), np.uint8)
    valid[list(missing)] = 0
    came[list(missing)] = 0
    for v, line in lost:
        came[v, line] = 0
    with h5py.File(path, "w") as f:
        f["bscans"] = pixels
        f["frames/valid"], f["frames/line_valid"] = valid, came
        f["frames/time_ns"] = (np.arange(V) * 4_000_000 + 10**9).astype("u8")
        f["frames/number"] = np.arange(V).astype("u8")
        f["frames/missing_lines"] = (M - came.sum(axis=1)).astype("u4")
        if limits != "none":
            f["frames/lo"], f["frames/hi"] = lo, hi
        common(f, f["bscans"], um, ("bscan", "line", "depth"), config, attributes)
    if limits == "none":
        lo[:], hi[:] = 0, 255
    db = lo[:, None, None] + pixels.astype(float) * (hi - lo)[:, None, None] / 255
    db[valid == 0] = np.nan
    db[came == 0] = np.nan
    return db


def common(f, dataset, um, axes, config=CONFIG, attributes=()):
    for thing in (f, dataset):
        thing.attrs["axis_names"] = np.array(axes, dtype=h5py.string_dtype())
        thing.attrs["axis_spacing_um"] = np.array(um, float)
    about = dict(software="octd 9", start_time="2026-01-02T03:04:05Z", engine="none", eye="OS",
                 pseudonym=PSEUDONYM, config=config + f"[record]\ndirectory = {WHERE}\n",
                 **dict(attributes))
    for name, text in about.items():
        if text is not None:
            f.attrs[name] = text


def common_u8(db, lo, hi):
    """What a picture of common limits has: 0 where there is nothing."""
    share = np.clip((db - lo) / (hi - lo), 0, 1)
    return np.where(np.isnan(db), 0, np.rint(np.nan_to_num(share) * 255)).astype(np.uint8)


def add_result(path, name, data, axes, um, unit, valid, of_volume=False, lo=None, hi=None,
               block=1):
    """One image a B-scan, one of the volume, or one for each `block` of B-scans."""
    with h5py.File(path, "r+") as f:
        d = f.create_dataset(f"analysis/{name}", data=data)
        d.attrs["units"], d.attrs["quantity"] = unit, "intensity" if unit == "dB" else "length"
        d.attrs["axis_names"] = np.array(axes, dtype=h5py.string_dtype())
        d.attrs["axis_spacing_um"] = np.array(um, float)
        if block > 1:
            d.attrs["bscans_an_image"] = np.uint32(block)
        at = f"analysis/{name}" if of_volume or block > 1 else f"frames/{name}"
        valid = np.array(valid, np.uint8)
        f[f"{at}_valid"] = valid
        f[f"{at}_rows"] = np.full(len(valid), data.shape[0 if of_volume else 1], np.uint32)
        if lo is not None:
            f[f"{at}_lo"], f[f"{at}_hi"] = np.array(lo, float), np.array(hi, float)
