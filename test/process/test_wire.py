#!/usr/bin/python3
"""Lines on the wire, as any camera driver may send them: counts and pictures come out exactly
right. Written from the contract alone."""
import json, struct, time
import numpy as np
import octref
from octtest import *

N, M, V, D = 64, 24, 5, 450
WAVELENGTHS = np.linspace(800, 806.3, N)
rng = np.random.default_rng(7)


def spectra(n_lines):
    """A-lines that differ from one another: fringes of their own depth on a pedestal, noise."""
    i, j = np.arange(N), np.arange(n_lines)[:, None]
    fringe = 300 * np.cos(2 * np.pi * i * (0.02 + 0.18 * ((j * 37) % 101) / 101) + j)
    value = 1000 + fringe + rng.normal(0, 10, (n_lines, N))
    return np.clip(np.round(value), 1, 4095).astype("<u2")


def start_daemon():
    path = os.path.join(folder("calibration"), "wavelengths.txt")
    np.savetxt(path, WAVELENGTHS, fmt="%.10f")
    return Daemon(*settings(camera=dict(samples=N), scan=dict(lines=M, bscans=V),
                            calibration=dict(wavelengths=path), output=dict(sample="f32"),
                            pipeline=dict(crop_last=D, range="auto", threads=1,
                                          interpolation="linear"),
                            ingest=dict(idle_s=0),
                            publish=dict(queue_bscans=100)))  # every picture is looked at


daemon = start_daemon()
viewer = daemon.subscriber()
epoch = 100


def new_sender():
    global epoch
    epoch += 1
    return Sender(daemon, epoch)


def pictures(n):
    """The next n pictures: [(header, image)]."""
    got = []
    while len(got) < n:
        assert viewer.poll(PATIENCE_S * 1000), f"{len(got)} of {n}"
        topic, header, image = viewer.recv_multipart()
        assert topic == b"bscan"
        header = json.loads(header)
        assert header["dtype"] == "float" and header["compression"] == "none"
        assert header["shape"] == [str(M), str(D)] and header["dsize"] == len(image) == M * D * 4
        got.append((header, np.frombuffer(image, "<f4").reshape(M, D)))
    return got


def expect_picture(picture, lines, valid=None, number=None, missing=0):
    header, image = picture
    assert header["missing_lines"] == missing, header
    if number is not None:
        assert header["frame_num"] == number, (header, number)
        assert header["volume"] == number // V and header["bscan"] == number % V
    value = octref.intensity(lines, WAVELENGTHS, valid, crop=(0, D))
    want = octref.decibel(value)
    seen = value > value.max() * 1e-8
    assert np.abs(image - want)[seen].max() < 0.01
    assert abs(header["hi"] - want.max()) < 0.01
    came = np.ones(M, bool) if valid is None else np.asarray(valid, bool)
    assert np.float32(header["lo"]) == image[came].min(), header
    assert np.all(image[~came] < -119.9)


class Count:
    """What the status counts between two moments."""
    KEYS = ("lines_received", "lines_missing", "lines_duplicate", "lines_late", "bscans_begun",
            "bscans_done", "bscans_published", "messages_duplicate", "messages_missed")

    def __init__(self):
        self.before = daemon.status()

    def expect(self, bad=None, **want):
        def difference(status):
            return {key: status[key] - self.before[key] for key in self.KEYS}

        def bad_difference(status):
            return {reason: n - self.before["messages_bad"][reason]
                    for reason, n in status["messages_bad"].items()
                    if n != self.before["messages_bad"][reason]}

        want = {key: want.get(key, 0) for key in self.KEYS}
        bad = bad or {}
        end = time.monotonic() + PATIENCE_S
        while True:
            status = daemon.status()
            if difference(status) == want and bad_difference(status) == bad:
                break
            assert time.monotonic() < end, (difference(status), bad_difference(status), want, bad)
            time.sleep(0.02)
        assert not any(status["bscans_dropped"].values()), status


def whole(n_bscans, **more):
    return dict(lines_received=n_bscans * M, bscans_begun=n_bscans, bscans_done=n_bscans,
                bscans_published=n_bscans, **more)


def send_in_blocks(block):
    n_bscans = 50 if block > 100 else 10
    lines = spectra(n_bscans * M)
    count, sender = Count(), new_sender()
    for first in range(0, len(lines), block):
        last = first + block >= len(lines)
        sender.send(lines[first:first + block], first,
                    flags=(1 if first == 0 else 0) | (2 if last else 0), time_ns=1000 + first)
    got = pictures(n_bscans)
    for number, picture in enumerate(got):
        expect_picture(picture, lines[number * M:(number + 1) * M], number=number)
        begun_by = number * M // block * block  # the block that brought its first line
        assert picture[0]["time_ns"] == 1000 + begun_by, picture[0]
    assert len({header["acquisition_id"] for header, _ in got}) == 1
    count.expect(**whole(n_bscans))


@case
def single_lines():
    """blocks of 1 line make whole B-scans"""
    send_in_blocks(1)


@case
def seven_lines():
    """blocks of 7 lines cross B-scan borders"""
    send_in_blocks(7)


@case
def many_bscans_a_block():
    """blocks of 240 lines bring ten B-scans each"""
    send_in_blocks(240)


@case
def a_thousand_lines():
    """blocks of 1000 lines begin and end inside B-scans"""
    send_in_blocks(1000)


@case
def gap_inside():
    """a gap inside a B-scan leaves its lines empty and counted"""
    lines, count, sender = spectra(3 * M), Count(), new_sender()
    sender.send(lines[:30], 0, flags=1)
    sender.send(lines[37:], 37, flags=2)
    valid = np.ones(M, bool)
    valid[30 - M:37 - M] = False
    got = pictures(3)
    expect_picture(got[0], lines[:M], number=0)
    expect_picture(got[1], lines[M:2 * M], valid, number=1, missing=7)
    expect_picture(got[2], lines[2 * M:], number=2)
    count.expect(**{**whole(3), "lines_received": 3 * M - 7, "lines_missing": 7})


@case
def gap_across():
    """a gap over whole B-scans counts their lines and skips their numbers"""
    lines, count, sender = spectra(8 * M), Count(), new_sender()
    sender.send(lines[:M + 5], 0, flags=1)
    sender.send(lines[6 * M + 2:], 6 * M + 2, flags=2)
    got = pictures(4)
    assert [header["frame_num"] for header, _ in got] == [0, 1, 6, 7]
    expect_picture(got[0], lines[:M], number=0)
    expect_picture(got[1], lines[M:2 * M], np.arange(M) < 5, number=1, missing=M - 5)
    expect_picture(got[2], lines[6 * M:7 * M], np.arange(M) >= 2, number=6, missing=2)
    expect_picture(got[3], lines[7 * M:], number=7)
    missing = (M - 5) + 4 * M + 2
    count.expect(lines_received=8 * M - missing, lines_missing=missing, bscans_begun=4,
                 bscans_done=4, bscans_published=4)


@case
def duplicate():
    """a block that comes twice changes nothing"""
    lines, count, sender = spectra(2 * M), Count(), new_sender()
    sender.send(lines[:10], 0, flags=1)
    sender.send(lines[:10], 0, flags=1, sequence=0)
    sender.send(lines[10:30], 10)
    sender.send(lines[10:30], 10, sequence=1)
    sender.send(lines[30:], 30, flags=2)
    for number, picture in enumerate(pictures(2)):
        expect_picture(picture, lines[number * M:(number + 1) * M], number=number)
    count.expect(**whole(2, messages_duplicate=2, lines_duplicate=30))


@case
def same_lines_again():
    """lines sent again under a new sequence number are counted, the first ones stay"""
    lines, other, count, sender = spectra(M), spectra(10), Count(), new_sender()
    sender.send(lines[:10], 0, flags=1)
    sender.send(other, 0)
    sender.send(lines[10:], 10, flags=2)
    expect_picture(pictures(1)[0], lines, number=0)
    count.expect(**whole(1, lines_duplicate=10))


@case
def late_in_time():
    """a late block of the B-scan under way still finds its place"""
    lines, count, sender = spectra(2 * M), Count(), new_sender()
    sender.send(lines[:5], 0, flags=1, sequence=0)
    sender.send(lines[12:20], 12, sequence=2)
    sender.send(lines[5:12], 5, sequence=1)
    sender.send(lines[20:], 20, flags=2, sequence=3)
    for number, picture in enumerate(pictures(2)):
        expect_picture(picture, lines[number * M:(number + 1) * M], number=number)
    # sequence 1 was missed when 2 came
    count.expect(**whole(2, messages_missed=1))


@case
def too_late():
    """a block that comes after its B-scan was closed is late, and only counted"""
    lines, count, sender = spectra(3 * M), Count(), new_sender()
    sender.send(lines[:20], 0, flags=1, sequence=0)
    sender.send(lines[M:M + 3], M, sequence=2)
    sender.send(lines[20:M], 20, sequence=1)
    sender.send(lines[M + 3:], M + 3, flags=2, sequence=3)
    got = pictures(3)
    expect_picture(got[0], lines[:M], np.arange(M) < 20, number=0, missing=M - 20)
    expect_picture(got[1], lines[M:2 * M], number=1)
    expect_picture(got[2], lines[2 * M:], number=2)
    count.expect(**{**whole(3, messages_missed=1), "lines_received": 2 * M + 20,
                    "lines_missing": M - 20, "lines_late": M - 20})


@case
def new_epoch():
    """a new epoch delivers what was begun and starts a new acquisition at B-scan 0"""
    lines, count, first = spectra(M), Count(), new_sender()
    first.send(lines[:9], 0, flags=1)
    got = []
    daemon.wait(lambda s: s["lines_received"] - count.before["lines_received"] == 9)
    second = new_sender()
    second.send(lines, 0)
    got = pictures(2)
    expect_picture(got[0], lines, np.arange(M) < 9, number=0, missing=M - 9)
    expect_picture(got[1], lines, number=0)
    assert got[0][0]["acquisition_id"] != got[1][0]["acquisition_id"]
    # what the first sender had still under way is refused, from after and from before
    first.send(lines[9:], 9)
    first.send(lines[5:9], 5, sequence=1, epoch=first.epoch)
    second.send(lines, M)
    expect_picture(pictures(1)[0], lines, number=1)
    count.expect(lines_received=2 * M + 9, lines_missing=M - 9, bscans_begun=3, bscans_done=3,
                 bscans_published=3, bad={"epoch": 2})


@case
def camera_goes_on_after_a_replay():
    """when a second sender has said that it ends, the first one is heard again"""
    lines, count, camera = spectra(M), Count(), new_sender()
    camera.send(lines, 0, flags=1)
    replay = new_sender()
    replay.send(lines, 0, flags=3)
    expect_picture(pictures(2)[1], lines, number=0)
    camera.send(lines, M)
    camera.send(lines, 2 * M)
    for number, picture in enumerate(pictures(2), 1):
        expect_picture(picture, lines, number=number)
    count.expect(**whole(4))


@case
def junk_holds_nothing_back():
    """junk does not keep an unfinished B-scan from being delivered after ingest.idle_s"""
    global viewer
    lines = spectra(M)
    assert daemon.ask("stop")["ok"]
    assert daemon.ask("set", key="ingest.idle_s", value="0.3")["ok"]
    assert daemon.ask("start")["ok"]
    sender = new_sender()
    sender.send(lines[:5], 0, flags=1)
    end = time.monotonic() + PATIENCE_S
    while daemon.status()["bscans_done"] == 0:
        sender.socket.send(b"junk")
        time.sleep(0.05)
        assert time.monotonic() < end
    assert daemon.ask("stop")["ok"] and daemon.ask("set", key="ingest.idle_s", value="0")["ok"]
    assert daemon.ask("start")["ok"]
    viewer.close(0)
    viewer = daemon.subscriber()


@case
def acquisition_starts_again():
    """the flag "acquisition starts" begins anew within an epoch"""
    lines, count, sender = spectra(M), Count(), new_sender()
    sender.send(lines, 0, flags=1)
    sender.send(lines, 0, flags=1)
    got = pictures(2)
    for picture in got:
        expect_picture(picture, lines, number=0)
    assert got[0][0]["acquisition_id"] != got[1][0]["acquisition_id"]
    count.expect(**whole(2))


@case
def joins_midway():
    """a daemon that joins a running camera counts nothing from before"""
    lines, count, sender = spectra(2 * M), Count(), new_sender()
    sender.send(lines[10:], 7 * M + 10, flags=2)
    got = pictures(2)
    expect_picture(got[0], lines[:M], np.arange(M) >= 10, number=7, missing=10)
    expect_picture(got[1], lines[M:], number=8)
    count.expect(**{**whole(2), "lines_received": 2 * M - 10, "lines_missing": 10})


@case
def eight_bits():
    """samples of 8 bits count as they are"""
    lines, count, sender = (spectra(M) // 16), Count(), new_sender()
    lines = lines.astype("u1")
    sender.send(lines, 0, flags=3, format=1)
    expect_picture(pictures(1)[0], lines.astype("<u2"), number=0)
    count.expect(**whole(1))


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


@case
def checksum():
    """a right checksum passes, a wrong one is counted and dropped"""
    assert crc32c(b"123456789") == 0xE3069283
    lines, count, sender = spectra(M), Count(), new_sender()
    crc = crc32c(lines.tobytes())
    sender.send(lines, 0, flags=1, crc=crc ^ 1)
    sender.send(lines, 0, flags=3, crc=crc)
    expect_picture(pictures(1)[0], lines, number=0)
    count.expect(**whole(1), bad={"crc": 1})


@case
def malformed():
    """every malformed message is counted by its reason and disturbs nothing"""
    lines, count, sender = spectra(M), Count(), new_sender()
    payload = lines.tobytes()
    sender.send(lines[:10], 0, flags=1)

    def send_raw(*parts):
        sender.socket.send_multipart(list(parts))

    good = sender.header(lines, 0)
    send_raw(good)
    send_raw(payload)
    send_raw(good, payload, b"")
    send_raw(good[:63], payload)
    send_raw(good + b"\0", payload)
    send_raw(b"", b"")
    send_raw(sender.header(lines, 0, header_bytes=63), payload)
    send_raw(sender.header(lines, 0, magic=b"OCTX"), payload)
    send_raw(sender.header(lines, 0, version=2), payload)
    send_raw(sender.header(lines, 0, format=4), payload)
    send_raw(sender.header(lines, 0, format=0), payload)
    send_raw(sender.header(lines, 0, n_samples=N + 1), payload)
    send_raw(sender.header(lines, 0, n_samples=0), payload)
    send_raw(sender.header(lines, 0), payload[:-1])
    send_raw(sender.header(lines, 0), payload + b"\0")
    send_raw(sender.header(lines, 0, n_lines=2**32 - 1), payload)
    send_raw(sender.header(lines, 2**64 - 3), payload)
    send_raw(sender.header(lines, 2**62), payload)
    send_raw(sender.header(lines, 0, n_lines=0), b"")
    send_raw(sender.header(lines, 0, zeros=b"\0" * 11 + b"\1"), payload)
    sender.send(lines[10:], 10, flags=2)
    expect_picture(pictures(1)[0], lines, number=0)
    count.expect(**whole(1), bad=dict(parts=3, header_size=4, magic=1, version=1, format=2,
                                      samples=2, payload_size=3, lines=3, reserved=1))


@case
def silence():
    """a malformed message alone is no acquisition"""
    count, before = Count(), daemon.status()["acquisitions"]
    new_sender().socket.send_multipart([b"hello", b"world"])
    count.expect(bad={"header_size": 1})
    assert daemon.status()["acquisitions"] == before


@case
def sequence_wraps():
    """sequence numbers that wrap at 2^64 go on"""
    lines, count, sender = spectra(4 * 6), Count(), new_sender()
    for i, number in enumerate((2**64 - 2, 2**64 - 1, 0, 1)):
        sender.send(lines[6 * i:6 * i + 6], 6 * i, flags=(1 if i == 0 else 0), sequence=number)
    expect_picture(pictures(1)[0], lines, number=0)
    count.expect(**whole(1))


@case
def ends_cleanly():
    """SIGTERM delivers what was begun and exits 0"""
    lines, sender = spectra(2 * M), new_sender()
    before = daemon.status()["lines_received"]
    sender.send(lines[:M + 4], 0, flags=1)
    daemon.wait(lambda s: s["lines_received"] - before == M + 4)
    daemon.process.terminate()
    got = pictures(2)
    expect_picture(got[0], lines[:M], number=0)
    expect_picture(got[1], lines[M:], np.arange(M) < 4, number=1, missing=M - 4)
    assert daemon.process.wait(PATIENCE_S) == 0, daemon.log()


try:
    main()
finally:
    daemon.kill()
