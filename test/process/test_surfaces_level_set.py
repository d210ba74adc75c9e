#!/usr/bin/python3
"""octctl surfaces --mask and --phi: level sets as their definition has them, in double precision."""
import h5py
import numpy as np

from octtest import case, main
from surfacesrig import path, refused, surfaces, volume, write_bscans


# ---- level sets as they are ----

@case
def masks_are_denoised():
    """--mask: a noisy ball becomes a rounder one, given as a mask or as signed distances"""
    random, n, radius = np.random.default_rng(8), 40, 13.3
    z, y, x = np.mgrid[:n, :n, :n] - (n - 1) / 2
    exact = np.sqrt(x * x + y * y + z * z) - radius
    noisy = exact + random.normal(0, 0.7, exact.shape)
    with h5py.File(path("ball.h5"), "w") as f:
        f["mask"] = (noisy < 0).astype("u1") * 255
        f["phi"] = exact.astype("f4")
    np.save(path("ball.npy"), (noisy < 0).astype("u1"))

    def wrong(mask):
        return int((mask.astype(bool) != (exact < 0)).sum())
    for given in path("ball.h5") + ":/mask", path("ball.npy"):
        said, _ = surfaces("--mask", given, path("ball_o.h5"), "--json", "--force")
        with h5py.File(path("ball_o.h5")) as f:
            mask, phi = f["mask"][:], f["phi"][:]
        assert mask.dtype == np.uint8 and phi.dtype == np.float32 and mask.shape == (n, n, n)
        assert np.array_equal(mask == 1, phi < 0) and set(np.unique(mask)) == {0, 1}
        assert wrong(mask) < 0.7 * wrong(noisy < 0), (wrong(mask), wrong(noisy < 0))
        assert said["given_as"] == "mask" and said["tissue"] == mask.sum()
        assert said["tissue_before"] == (noisy < 0).sum()
    said, _ = surfaces("--mask", path("ball.h5") + ":/phi", path("ball_o.h5"), "--json", "--force",
                       "--denoise", "full")
    with h5py.File(path("ball_o.h5")) as f:
        assert said["given_as"] == "signed distances" and f.attrs["weights"] == "full"
        near = abs(exact) < 1
        assert abs(f["phi"][:] - exact)[near].max() < 0.5
    refused(2, "--csv", "--mask", path("ball.npy"), path("no.h5"), "--csv", path("no.csv"))
    refused(2, "in place of IN", volume(), path("no.h5"), "--mask", path("ball.npy"))
    for name, values, words in (("full.npy", np.ones((20, 20, 20), "u1"), "no boundary"),
                                ("wild.npy", np.where(exact < 0, exact, 1e38), "no distance"),
                                ("thin.npy", np.ones((3, 20, 20), "u1"), "at least"),
                                ("gaps.npy", np.where(exact < 0, np.nan, exact), "not finite")):
        np.save(path(name), values)
        refused(1, words, "--mask", path(name), path("no.h5"))


def denoised(phi, f):
    """The local steps by their definition: shifts of the box, whose patches see its nearest voxels
    beyond it."""
    n, reach, steps = int(f["patch_px"]), int(f["reach_px"]), int(f["steps"])
    half = n // 2
    wide = np.pad(phi, half + reach, mode="edge")
    inner = tuple(slice(half + reach, half + reach + size) for size in phi.shape)

    def at(values, offset, more=0):
        return values[tuple(slice(s.start + o - more, s.stop + o + more)
                            for s, o in zip(inner, offset))]
    band = np.abs(phi) <= f["delta_px"]
    inside = np.pad(band, half + reach)
    weights = []
    for offset in np.ndindex(*[2 * reach + 1] * 3):
        offset = np.array(offset) - reach
        if not offset.any():
            continue
        square = (at(wide, (0, 0, 0), half) - at(wide, offset, half)) ** 2
        d = np.zeros(phi.shape)
        for k in np.ndindex(n, n, n):
            d += square[tuple(slice(i, i + size) for i, size in zip(k, phi.shape))]
        w = np.exp(-(offset ** 2).sum() / f["c1"] - d / f["c2"]) * band * at(inside, offset)
        weights.append((offset, w))
    now = phi.copy()
    for _ in range(steps):
        total, weight = now.copy(), np.ones(phi.shape)
        moved = np.pad(now, half + reach, mode="edge")
        for offset, w in weights:
            total += w * at(moved, offset)
            weight += w
        now = np.where(band, total / weight, phi)
    return now


@case
def the_level_set_is_its_definition():
    """--phi: the layer as found, and the steps of the paper's equations on it in double precision"""
    with h5py.File(volume()) as f:
        part, um = f["bscans"][10:26, 40:60], f["bscans"].attrs["axis_spacing_um"]
    part = write_bscans("part.h5", part), "--pixel-um", ",".join(map(str, um[::-1])), "--no-align", \
        "--layers", "ilm"
    surfaces(*part[:1], path("part_o.h5"), *part[1:], "--phi", path("phi.h5"))
    surfaces(*part[:1], path("part_n.h5"), *part[1:], "--denoise", "none")
    with h5py.File(path("phi.h5")) as f, h5py.File(path("part_n.h5")) as o:
        before, after, heights = f["phi_before"][:].astype(float), f["phi"][:], o["surfaces/ilm"][:]
        assert before.shape[:2] == heights.shape == (16, 20) and f["phi"].attrs["units"] == "px"
        crossed = (before[:, :, :-1] > 0) & (before[:, :, 1:] <= 0)
        at = f["phi"].attrs["origin_px"] + np.argmax(crossed, axis=2) - heights
        at = at[np.isfinite(heights)]
        assert crossed.any(axis=2).all() and at.min() > -1.1 and at.max() < 0.1, (at.min(), at.max())
        assert len(at) > 0.9 * heights.size, len(at)
        exact = denoised(before, f.attrs)
        assert abs(exact - before).max() > 0.05, "nothing was denoised"
        assert abs(exact - after).max() < 1e-4, abs(exact - after).max()


def stepped(phi, how, m=96):
    """One step over all pairs, and c2 from the band; `how`: local, full or paper."""
    x = np.argwhere(abs(phi) <= 2.5)
    wide, n = np.pad(phi, 2, mode="edge"), len(x)
    patch = np.stack([wide[tuple((x + k).T)] for k in np.ndindex(5, 5, 5)], axis=1)
    d = np.stack([((patch - p) ** 2).sum(1) for p in patch])
    np.fill_diagonal(d, np.inf)
    far = x[:, None] - x
    if how == "local":
        d[abs(far).max(2) > 4] = np.inf
    order = np.sort(d, axis=1)
    assert n % 2 == 0 and n > 500
    rank = order[:, 23]
    w = np.exp(-d / (0.5 * np.median(rank[np.isfinite(rank)])))
    w = w * np.exp(-(far ** 2).sum(2) / 20) if how == "local" else w * (d <= order[:, m - 1:m])
    now, total = phi[tuple(x.T)], w.sum(1)
    moved = phi.copy()
    moved[tuple(x.T)] += (w @ now - total * now) / (total.max() if how == "paper" else 1 + total)
    return moved


@case
def one_step_is_its_definition():
    """--mask --steps 1: Eq. 13 to 15 with c2 of the data, local, full and as published"""
    random = np.random.default_rng(4)
    d, height = np.arange(14), 6.5 + random.normal(0, 0.7, (12, 13, 1))
    phi = (height - d).astype("f4")
    np.save(path("step.npy"), phi)
    for how, option in ("local", "--denoise"), ("full", "--denoise"), ("paper", "--profile"):
        surfaces("--mask", path("step.npy"), path("step.h5"), option, how, "--steps", "1", "--force")
        exact = stepped(phi.astype(float), how)
        with h5py.File(path("step.h5")) as f:
            assert f.attrs["steps"] == 1 and abs(exact - phi).max() > 0.1
            assert abs(f["phi"][:] - exact).max() < 1e-5, (how, abs(f["phi"][:] - exact).max())


main()
