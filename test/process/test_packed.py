#!/usr/bin/python3
"""Samples as the camera has them, 8 bits and 12 packed: on the wire, in shared memory, through octd,
in files, and for all who read those. What comes out is that of the same samples as u16, to the byte."""
import glob, shutil, sys
import h5py
import numpy as np
from octtest import *

load_liboctd()

N, M, V = 834, 20, 6
GEOMETRY = dict(camera=dict(samples=N, bits=12), scan=dict(lines=M, bscans=V, line_rate_hz=20000),
                calibration=dict(wavelengths=calibration(N)))
BASE = settings(**GEOMETRY, record=dict(sync_interval_s=0.05))
BITS = dict(u16=12, mono12p=12, u8=8)


def samples(bits):
    t = np.arange(N) / N
    j, b = np.arange(M)[:, None], np.arange(V)[:, None, None]
    noise = np.random.default_rng(3).normal(0, 8, (V, M, N))
    light = 1900 + 1500 * np.exp(-9 * (t - 0.5) ** 2) * np.cos(300 * t + 0.3 * j + b) + noise
    return (np.clip(light, 0, 4095).astype("<u2")) >> (12 - bits)


def pack(lines):
    """By the definition, not by octd."""
    a, b = lines[..., 0::2], lines[..., 1::2]
    return np.stack([a & 255, a >> 8 | (b & 15) << 4, b >> 4], -1).astype(np.uint8).reshape(
        *lines.shape[:-1], -1)


def raw(name, lines):
    path = os.path.join(folder("packed"), name + ".raw")
    lines.tofile(path)
    return path


def record(spectra, sent, bits, to=None, block=M):
    """Sends the volume as `sent` and records it: the file."""
    path = raw(f"bits{bits}", samples(bits))
    with Daemon(*BASE, *settings(record=dict(spectra=spectra)),
                *(["--set", f"ingest.endpoint={to}"] if to else [])) as daemon:
        assert daemon.ask("record", action="start", volumes=1)["ok"]
        ok("replay", path, "--to", to or daemon.ingest, "--as", sent, "--rate", "20000", "--block",
           str(block), *settings(**GEOMETRY, file=dict(check_samples="no")))
        status = daemon.wait(lambda s: s["record"]["volumes_written"] == 1)
        assert status["lines_received"] == V * M and not any(status["messages_bad"].values()), status
        assert status["source"]["seen"]["sample_bits"] == oct_bits(sent), status["source"]
        name, = glob.glob(glob.escape(daemon.records) + "/*.h5")
        return shutil.move(name, os.path.join(folder("packed"), f"{spectra}-{sent}-{bits}-{block}"
                                              f"{'-shm' if to else ''}.h5"))


def oct_bits(sent):
    return dict(u16=16, mono12p=12, u8=8)[sent]


def arrays(path):
    with h5py.File(path) as f:
        return {name: f[name][:] for name in ("bscans", "spectra", "spectra_packed", "frames/lo",
                                              "frames/hi", "frames/valid") if name in f}


FILES = {}


@case
def the_same_pictures_and_spectra():
    """u16, 12 bits packed and u8 give the same B-scans, and the same /spectra, to the byte"""
    for sent in ("mono12p", "u8"):
        bits = BITS[sent]
        wanted = arrays(record("yes", "u16", bits))
        FILES[sent, "u16"] = os.path.join(folder("packed"), f"yes-u16-{bits}-{M}.h5")
        for block in (M, 7):
            got = arrays(record("yes", sent, bits, block=block))
            assert sorted(got) == sorted(wanted) and "spectra_packed" not in got
            for name in wanted:
                assert np.array_equal(got[name], wanted[name]), (sent, block, name)
        assert np.array_equal(wanted["spectra"], samples(bits)) and wanted["frames/valid"].all()


@case
def as_sent():
    """record.spectra=as_sent keeps the bytes, and says how they are to be read"""
    for sent in ("mono12p", "u8"):
        path = FILES[sent] = record("as_sent", sent, BITS[sent])
        got, wanted = arrays(path), arrays(FILES[sent, "u16"])
        assert "spectra" not in got and np.array_equal(got["bscans"], wanted["bscans"])
        stored = samples(8).astype(np.uint8) if sent == "u8" else pack(samples(12))
        assert np.array_equal(got["spectra_packed"], stored)
        with h5py.File(path) as f:
            a = f["spectra_packed"].attrs
            assert a["sample_format"] == sent and a["samples"] == N, dict(a)
    u16 = record("as_sent", "u16", 12)
    assert np.array_equal(arrays(u16)["spectra"], samples(12)) and "spectra_packed" not in arrays(u16)


@case
def through_shared_memory():
    """whole B-scans that are lent from shared memory, and pieces, of 12 bits packed"""
    wanted = arrays(FILES["mono12p", "u16"])
    for block in (M, 7):
        got = arrays(record("yes", "mono12p", 12, to=f"shm://packed{os.getpid()}", block=block))
        assert all(np.array_equal(got[name], wanted[name]) for name in wanted), block


@case
def readers():
    """recon, export, check, info, pack and Python read the packed file as the other"""
    if "tsan" in BUILD:
        raise Skip("ThreadSanitizer must be the program's own, and Python has none")
    import octd
    for sent in ("mono12p", "u8"):
        path, out = FILES[sent], folder("read")
        results = {}
        for kind, name in (("packed", path), ("u16", FILES[sent, "u16"])):
            made = os.path.join(out, f"{sent}-{kind}.h5")
            ok("recon", name, made, "--force")
            npy = os.path.join(out, f"{sent}-{kind}.npy")
            ok("export", name, npy, "--dataset", "spectra", "--force")
            with octd.open(name) as recording:
                spectra = recording.spectra
                assert spectra.shape == (V, M, N) and spectra.dtype == np.uint16 and len(spectra) == V
                parts = [spectra[:], spectra[2], spectra[-1, 3:9], spectra[1:4, 5, 11:80:3],
                         spectra[..., 7]]
                pictures = np.asarray(recording.recon())
            results[kind] = (arrays(made)["bscans"], np.load(npy), pictures, *parts)
            ok("check", name)
            packed = os.path.join(out, f"{sent}-{kind}-small.h5")
            ok("pack", name, packed, "--force")
            ok("check", packed)
        for a, b in zip(results["packed"], results["u16"]):
            assert np.array_equal(a, b)
        info = json.loads(ok("info", path, "--json")[0])
        assert info["samples"] == N and info["bscans"] == V, info
        assert info["stored_as"] == sent, info


@case
def a_damaged_file():
    """a bit that has changed in packed spectra is found; attributes that lie are refused"""
    path = os.path.join(folder("read"), "damaged.h5")
    shutil.copy(FILES["mono12p"], path)
    with h5py.File(path, "r+") as f:
        f["spectra_packed"][3, 4, 5] ^= 1
    assert run("octctl", "check", path)[0] == 1
    for name, value in (("samples", N + 2), ("sample_format", "mono10p")):
        shutil.copy(FILES["mono12p"], path)
        with h5py.File(path, "r+") as f:
            f["spectra_packed"].attrs[name] = value
        refused_by("recon", 1, "/spectra_packed must be", path, path + ".out.h5")


@case
def bad_input():
    """an odd packed block, too few bytes, another format in mid-stream: a line each, and no other
    block is lost"""
    lines, epoch = samples(12), 50
    for wrong, words in (
            (dict(format=2), "sample format 2 comes, the acquisition has 3"),
            (dict(format=4), "sample format 4 comes"),
            (dict(n_samples=N - 1), f"{N - 1} samples a line come")):
        with Daemon(*BASE) as daemon:
            sender = Sender(daemon, epoch)
            for k in range(60):
                packed = pack(lines[k % V])
                header = sender.header(lines[k % V], k * M, flags=int(k == 0), format=3)
                sender.socket.send_multipart([header, packed.tobytes()])
                sender.sequence += 1
                if k % 3 == 2:  # beside the stream, numbered as if it were of it
                    bad = dict(format=3, **{}) | wrong
                    body = lines[0] if bad["format"] == 2 else packed
                    header = sender.header(lines[0], (k + 1) * M, **bad)
                    sender.socket.send_multipart([header, body.tobytes()])
                time.sleep(0.02)
            status = daemon.wait(lambda s: s["lines_received"] == 60 * M)
            assert status["lines_missing"] == 0 and sum(status["messages_bad"].values()) == 20
            assert words in daemon.log(), daemon.log()
    with Daemon(*BASE) as daemon:  # one byte too many, of an odd number, for 2 s
        sender = Sender(daemon, epoch)
        for k in range(60):
            sender.socket.send_multipart([sender.header(lines[0], k * M, format=3),
                                          pack(lines[0]).tobytes() + b"\0"])
            sender.sequence += 1
            time.sleep(0.03)
        fault = daemon.status()["source"]["fault"]
        assert fault["reason"] == "payload_size" and f"are {M * N * 3 // 2}" in fault["text"], fault


@case
def u16_said_to_be_packed():
    """the driver's mistakes of sizes are named"""
    lines = samples(12)
    for body, said, words in ((lines, 3, "2 bytes a sample come, format 3 says 1.5"),
                              (pack(lines), 2, "1.5 bytes a sample come, format 2 says 2")):
        with Daemon(*BASE) as daemon:
            sender = Sender(daemon, 7)
            for k in range(60):
                sender.socket.send_multipart([sender.header(lines[0], k * M, format=said),
                                              body[0].tobytes()])
                sender.sequence += 1
                time.sleep(0.03)
            fault = daemon.status()["source"]["fault"]
            assert words in fault["text"], fault


@case
def replay_refuses():
    """octctl replay --as mono12p of samples beyond 12 bits says so, and of an unknown format"""
    beyond = samples(12).copy()
    beyond[1, 2, 3] = 4096
    with Daemon(*BASE) as daemon:
        status, _, err = run("octctl", "replay", raw("beyond", beyond), "--to", daemon.ingest, "--as",
                             "mono12p", *settings(**GEOMETRY, file=dict(check_samples="no")))
        assert status == 1 and "1 samples of 20 lines are beyond its 12 bits" in err, err
    one = raw("one", samples(12))
    refused_by("replay", 2, "u16, u8 or mono12p", one, "--as", "mono10p", *settings(**GEOMETRY))


@case
def the_example():
    """scripts/push_lines.py --packed sends what octd takes"""
    with Daemon(*settings(camera=dict(samples=N, bits=12), scan=dict(lines=240, bscans=4),
                          calibration=dict(wavelengths=calibration(N)))) as daemon:
        subprocess.run(["/usr/bin/python3", os.path.join(TOP, "scripts", "push_lines.py"), "--samples",
                        str(N), "--packed", daemon.ingest, "4"], check=True, timeout=PATIENCE_S)
        status = daemon.wait(lambda s: s["bscans_done"] == 4)
        seen = status["source"]["seen"]
        assert not any(status["messages_bad"].values()) and seen["sample_bits"] == 12, status
        assert 1000 < seen["sample_max"] < 1626, seen  # 20000 * 1.3 / 16


@case
def last_seconds():
    """record last saves packed lines as they were sent"""
    lines = samples(12)
    with Daemon(*BASE, *settings(record=dict(spectra="as_sent", last_s=1))) as daemon:
        sender = Sender(daemon, 9)
        for k in range(V):
            header = sender.header(lines[k], k * M, flags=int(k == 0), format=3)
            sender.socket.send_multipart([header, pack(lines[k]).tobytes()])
            sender.sequence += 1
        daemon.wait(lambda s: s["bscans_done"] == V)
        reply = daemon.ask("record", action="last")
        assert reply["ok"], reply
        status = daemon.wait(lambda s: not s["record_last"]["saving"])
        got = arrays(status["record_last"]["file"])
        assert np.array_equal(got["spectra_packed"][-V:], pack(lines)), status["record_last"]


main()
