#!/usr/bin/python3
"""octctl background: a mean spectrum from a recording and from the stream, read back by dc=file; and
dc=running, live and offline."""
import glob, os, subprocess

import h5py, numpy as np

from octtest import *

N, M, V, BITS = 128, 20, 8, 12
FULL = 2 ** BITS - 1
GEOMETRY = settings(camera=dict(samples=N, bits=BITS), scan=dict(lines=M, bscans=V))
LAB = [*GEOMETRY, "--set", f"calibration.wavelengths={calibration(N)}",
       *settings(pipeline=dict(backend="cpu", threads=2))]


def spectra(n_bscans, seed=1):
    """A source, a drift of its strength from B-scan to B-scan, and noise; a few samples saturate."""
    random = np.random.default_rng(seed)
    source = 800 + 2000 * np.exp(-((np.arange(N) / N - 0.5) / 0.25) ** 2)
    lines = source * (1 + 0.1 * np.sin(np.arange(n_bscans) * 0.9))[:, None, None]
    lines = lines + random.normal(0, 40, (n_bscans, M, N))
    lines[:, 3, 7] = FULL
    return np.clip(np.round(lines), 0, FULL).astype("<u2")


def write_raw(name, samples):
    with open(at(name), "wb") as file:
        file.write(samples.tobytes())
    return at(name)


def read_line(path):
    text = open(path).read()
    header = [line for line in text.splitlines() if line.startswith("#")]
    return "\n".join(header), np.array([float(line) for line in text.splitlines()
                                        if not line.startswith("#")])


ALL = spectra(3 * V)
RAW = write_raw("all.raw", ALL)


@case
def from_a_recording():
    """the mean of a recording's A-lines stands in the file, with where it is from, and dc=file takes it"""
    out, err = ok("background", at("a.txt"), RAW, *GEOMETRY)
    header, values = read_line(at("a.txt"))
    assert np.allclose(values, ALL.mean((0, 1)), rtol=0, atol=1e-5), values
    assert f"mean of {3 * V * M} A-lines ({3 * V} B-scans), counts" in header, header
    assert f"source: {RAW}" in header and "# recorded: 20" in header, header
    assert f"saturated samples: {3 * V} of {3 * V * M * N}" in header, header
    assert "warning: saturated: 24 of" in err and f"mean of {3 * V * M}" in out, (out, err)
    ok("background", at("b.txt"), RAW, *GEOMETRY, "--bscans", 5)
    assert np.allclose(read_line(at("b.txt"))[1], ALL[:5].mean((0, 1)), rtol=0, atol=1e-5)
    pictures = []
    for dc in (["file", "--set", f"calibration.background={at('a.txt')}"], ["none"]):
        ok("recon", RAW, at("recon.h5"), "--force", *LAB, *settings(output=dict(sample="f32")),
           "--set", "pipeline.log=no", "--set", "pipeline.dc=" + dc[0], *dc[1:])
        with h5py.File(at("recon.h5")) as f:
            pictures.append(f["bscans"][:])
    # The source itself lies at depth 0, and the line takes it away but for its drift.
    assert pictures[0][:, :, 0].mean() < 0.05 * pictures[1][:, :, 0].mean(), \
        [p[:, :, 0].mean() for p in pictures]


@case
def refusals():
    """nothing is replaced without --force, and every mistake is told in one line"""
    before = open(at("a.txt"), "rb").read()
    refused_by("background", 1, "exists", at("a.txt"), RAW, *GEOMETRY)
    refused_by("background", 2, "all.raw", RAW, RAW, "--force", *GEOMETRY)
    refused_by("background", 1, "has 24 B-scans", at("c.txt"), RAW, *GEOMETRY, "--bscans", 25)
    refused_by("background", 1, "too few", at("c.txt"), RAW, "--bscans", 1, *GEOMETRY,
               "--set", "scan.lines=15")
    refused_by("background", 2, "from 1 to 4096", at("c.txt"), RAW, *GEOMETRY, "--bscans", 5000)
    refused_by("background", 2, "OUT.txt")
    refused_by("background", 2, "--endpoint", at("c.txt"), RAW, "--endpoint", "ipc:///nowhere")
    refused_by("background", 1, "cannot open", at("c.txt"), at("none.raw"), *GEOMETRY)
    refused_by("background", 1, "is octd running", at("c.txt"), "--endpoint", f"ipc://{at('none')}")
    assert open(at("a.txt"), "rb").read() == before and not os.path.exists(at("c.txt"))
    assert ok("background", at("a.txt"), RAW, "--force", "--bscans", 2, *GEOMETRY)
    assert open(at("a.txt"), "rb").read() != before
    assert not glob.glob(at("*.new.*"))


@case
def from_the_stream():
    """a running octd gives the mean of the next B-scans, and says so in every state that has none"""
    alike = np.repeat(spectra(1, seed=2), V, axis=0)
    path = write_raw("alike.raw", alike)
    with Daemon(*LAB) as daemon:
        live = [*daemon.common, "--bscans", 30, "--timeout", PATIENCE_S]
        refused_by("background", 1, "none come", at("d.txt"), *live)
        assert "there is no background" in daemon.send("background", first=0)["error"]
        assert "bscans" in daemon.send("background", bscans=0)["error"]
        assert "bscans" in daemon.send("background", bscans="3")["error"]
        assert "whole" in daemon.send("background", bscans=1.5)["error"]
        with Replay(daemon, path, M * 200, *GEOMETRY):
            daemon.wait(lambda s: s["bscans_done"] > 3)
            out, err = ok("background", at("d.txt"), *live)
            header, values = read_line(at("d.txt"))
            assert np.allclose(values, alike[0].mean(0), rtol=0, atol=6e-5), values
            assert f"mean of {30 * M} A-lines (30 B-scans)" in header and daemon.control in header
            assert f"warning: saturated: 30 of {30 * M * N}" in err, err
            errand = daemon.status()["errand"]
            assert errand["command"] == "background" and errand["result"]["lines"] == 30 * M, errand
            assert "has 128 samples" in daemon.send("background", first=N)["error"]
            reply = daemon.send("background", first=N - 2)
            assert reply["ok"] and len(reply["values"]) == 2 and reply["samples"] == N, reply
            # One after the other, and one that takes longer than it may.
            refused_by("background", 1, "of 4096 B-scans came within", at("e.txt"), *daemon.common,
                       "--bscans", 4096, "--timeout", 0.3)
            other = subprocess.Popen([program("octctl"), "background", at("e.txt"), *daemon.common,
                                      "--bscans", "4096", "--timeout", "600"],
                                     stderr=subprocess.PIPE, text=True)
            daemon.wait(lambda s: s["errand"]["pending"] and s["errand"]["number"] == errand["number"] + 2)
            refused_by("background", 1, "under way", at("f.txt"), *live)
            assert daemon.send("background", first=0)["busy"]
            assert daemon.ask("stop")["ok"]
            daemon.wait(lambda s: not s["errand"]["pending"])
            assert "stop" in daemon.send("background", first=0)["error"]
            refused_by("background", 1, "idle", at("e.txt"), *live)
            assert other.wait(PATIENCE_S) == 1 and "stop came" in other.stderr.read()
            assert not os.path.exists(at("e.txt")) and not os.path.exists(at("f.txt"))
            status = daemon.status()
            assert status["bscans_published"] > 0 and not any(status["bscans_dropped"].values())


@case
def long_lines():
    """a line of more samples than a reply has comes whole"""
    n, m = 9001, 4
    samples = np.repeat(np.arange(n, dtype="<u2")[None, :], 4 * m, axis=0) * 3
    with open(at("long.raw"), "wb") as file:
        file.write(samples.tobytes())
    geometry = settings(camera=dict(samples=n), scan=dict(lines=m, bscans=4),
                        file=dict(check_samples="no"))
    with open(at("kmap.txt"), "w") as file:
        file.write(f"0\n{n - 1}\n")
    with Daemon(*geometry, "--set", f"calibration.kmap={at('kmap.txt')}",
                *settings(pipeline=dict(backend="cpu", crop_last=64))) as daemon:
        with Replay(daemon, at("long.raw"), m * 50, *geometry):
            daemon.wait(lambda s: s["bscans_done"] > 1)
            ok("background", at("long.txt"), *daemon.common, "--bscans", 6, "--timeout", PATIENCE_S)
    assert np.array_equal(read_line(at("long.txt"))[1], np.arange(n) * 3.0)


def send_volumes(daemon, samples):
    """Without B-scan 3 of the first volume, without some lines of others, in blocks across B-scans."""
    camera = Sender(daemon, 5)
    lines = samples.reshape(-1, N)
    came = np.ones(len(lines), bool)
    came[3 * M:4 * M] = False
    came[5 * M + 4:5 * M + 9] = came[(V + 2) * M:(V + 2) * M + 7] = False
    starts = True
    for first in range(0, len(lines), 7):
        block = range(first, min(first + 7, len(lines)))
        for run_of in np.split(np.array(block), np.flatnonzero(np.diff(came[block.start:block.stop])) + 1):
            if came[run_of[0]]:
                camera.send(lines[run_of[0]:run_of[-1] + 1], int(run_of[0]), flags=int(starts))
                starts = False
    camera.send(lines[:0], len(lines), flags=2)


@case
def a_running_mean():
    """with dc=running a volume reconstructs to the same bytes live and offline, whatever was lost"""
    running = settings(pipeline=dict(dc="running", dc_bscans=4))
    with Daemon(*LAB, *running) as daemon:
        assert daemon.ask("record", action="start")["ok"]
        send_volumes(daemon, ALL)
        daemon.wait(lambda s: s["volumes_written"] == 3)
        assert daemon.ask("record", action="stop")["ok"]
        files = sorted(glob.glob(os.path.join(daemon.records, "*.h5")))
        assert len(files) == 3, files
    live = []
    for path in files:
        with h5py.File(path) as f:
            live.append((f["bscans"][:], f["frames/valid"][:], f["frames/missing_lines"][:]))
    assert live[0][1].tolist() == [1, 1, 1, 0, 1, 1, 1, 1] and live[0][2][5] == 5, live[0][1:]
    for path, (pictures, valid, _) in zip(files, live):
        for more in ([], ["--set", "pipeline.threads=1"]):
            ok("recon", path, at("again.h5"), "--force", "--backend", "cpu", *more)
            with h5py.File(at("again.h5")) as f:
                assert np.array_equal(f["bscans"][:][valid == 1], pictures[valid == 1]), path
        ok("recon", path, at("other.h5"), "--force", "--backend", "cpu", "--set", "pipeline.dc=bscan")
        with h5py.File(at("other.h5")) as f:
            assert np.array_equal(f["bscans"][0], pictures[0])  # its own mean
            assert not np.array_equal(f["bscans"][1], pictures[1])


main()
