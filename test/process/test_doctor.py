#!/usr/bin/python3
"""octctl doctor: one line for each thing that a camera driver does right or wrong."""
from driverrig import *



def doctor(daemon, *arguments):
    """(exit status, {name: (ok, text, cure)})"""
    status, out, err = run("octctl", *daemon.common, "doctor", "--json", "--seconds", "1.2",
                           *arguments)
    assert status == 0 or not err, err
    found = json.loads(out)
    assert found["ok"] == (status == 0) == all(c["ok"] for c in found["checks"]), found
    checks = {c["name"]: (c["ok"], c["text"], c["cure"]) for c in found["checks"]}
    for name, (ok, text, cure) in checks.items():
        assert text and (ok or cure), (name, text, cure)
        seen(f"{'ok' if ok else 'WRONG'} {name}: {text}: {cure}")
    return status, checks


def examine(how, *more, expect=1, seconds=1.2):
    bits = settings(camera=dict(bits=12))
    with Daemon(*BASE, *bits, *more) as daemon, Driver(daemon, how) as driver:
        until(lambda: driver.k > 25, "25 messages")
        status, checks = doctor(daemon, "--seconds", seconds)
        assert status == expect, checks
        return {name: check for name, check in checks.items() if not check[0]}, checks


def well(s, k):
    s.send(SMOOTH, k * M, time_ns=10 ** 18 + k * 10 ** 9 * M // 2000)


@case
def all_is_well():
    """a driver that is right: every line says ok, and the exit status is 0"""
    _, checks = examine(well, "--set", "scan.line_rate_hz=2000", expect=0)
    for name in ("messages", "refused", "samples a line", "lines a message", "check sums",
                 "line rate", "B-scans", "missing lines", "too late, twice", "acquisitions",
                 "camera's clock", "samples", "octd keeps up"):
        assert checks[name][0], (name, checks)


@case
def a_driver_with_many_faults():
    """swapped bytes, a clock in microseconds, lost lines and a wrong line rate are each told"""
    def how(s, k):
        s.send(SMOOTH.byteswap(), k * M * 2, time_ns=10 ** 18 + k * 10 ** 6 * M // 2000)
    wrong, _ = examine(how, "--set", "scan.line_rate_hz=100000")
    assert set(wrong) == {"samples", "camera's clock", "missing lines", "line rate"}, wrong
    assert "wrong way round" in wrong["samples"][1] and "microseconds" in wrong["camera's clock"][2]
    assert "set scan.line_rate_hz=" in wrong["line rate"][2], wrong


def send_packed(s, k, packed):
    header = s.header(SMOOTH, k * M, time_ns=10 ** 18 + k * 10 ** 9 * M // 2000, format=3)
    s.socket.send_multipart([header, np.stack(packed, -1).astype("u1").tobytes()])
    s.sequence += 1


@case
def twelve_bits_packed():
    """Mono12p is right where camera.bits is 12; Mono12Packed in its place is told"""
    a, b = SMOOTH[:, 0::2], SMOOTH[:, 1::2]
    mono12p = a & 255, a >> 8 | (b & 15) << 4, b >> 4
    _, checks = examine(lambda s, k: send_packed(s, k, mono12p), expect=0)
    assert checks["samples a line"][1].startswith(f"{N} of 12 bits packed"), checks
    wrong, _ = examine(lambda s, k: send_packed(s, k, mono12p), "--set", "camera.bits=16")
    assert "camera.bits=12" in wrong["samples a line"][2], wrong
    wrong, _ = examine(lambda s, k: send_packed(s, k, (a >> 4, a & 15 | (b & 15) << 4, b >> 4)))
    assert "Mono12Packed" in wrong["samples"][1] and "Mono12p" in wrong["samples"][2], wrong


@case
def many_acquisitions():
    """whole B-scans as acquisitions of their own are well; those that cut each other off are not"""
    for flags in (1, 3):
        _, checks = examine(lambda s, k: s.send(SMOOTH, 0, flags=flags, time_ns=k * 20 * 10 ** 6),
                            expect=0)
        assert " began meanwhile, the last in epoch" in checks["acquisitions"][1], checks

    def half(s, k):
        s.send(SMOOTH[:M // 2], 0, flags=1, time_ns=k * 20 * 10 ** 6)
    wrong, _ = examine(half)
    assert "while another had not ended" in wrong["acquisitions"][1], wrong
    assert "messages marked as a start: each message starts" in wrong["driver"][1], wrong


@case
def noise_on_the_level_of_floats():
    """noise between 16400 and 18000, where upper halves of floats lie, is no float; floats are"""
    noise = np.random.default_rng(5).integers(16400, 18001, (M, N)).astype("<u2")
    wrong, _ = examine(lambda s, k: s.send(noise, k * M, time_ns=time.monotonic_ns()), "--set",
                       "camera.bits=16", expect=0)
    floats = np.ascontiguousarray(SMOOTH[:, :N // 2].astype("<f4")).view("<u2")
    wrong, _ = examine(lambda s, k: s.send(floats, k * M, time_ns=time.monotonic_ns()), "--set",
                       "camera.bits=16")
    assert list(wrong) == ["samples"] and "look like floats" in wrong["samples"][1], wrong


@case
def what_octd_refuses():
    """what octd says of a wrong driver, doctor says; other refusals it names by reason"""
    def how(s, k):
        s.send(SMOOTH[:, :100].copy(), k * M)
    wrong, _ = examine(how)
    assert "100 samples a line come, camera.samples is 128" in wrong["driver"][1], wrong
    assert "camera.samples=100" in wrong["driver"][2], wrong

    def mostly_right(s, k):
        if k % 50 == 0:
            s.send(SMOOTH, k * M, version=2)
        well(s, k)
    wrong, _ = examine(mostly_right, seconds=2.5)
    assert list(wrong) == ["refused"] and ", reason version" in wrong["refused"][1], wrong

    def short_in_turns(s, k):
        if k % 2 == 0:
            return well(s, k)
        s.socket.send_multipart([s.header(SMOOTH, k * M), SMOOTH.tobytes()[:-1]])
        s.sequence += 1
    wrong, _ = examine(short_in_turns)
    # One may be counted before the first status as refused, and behind it as missed.
    assert re.search("; [01] messages never came", wrong["missing lines"][1]), wrong


@case
def values_of_samples():
    """samples beyond camera.bits, saturated, all zero, floats: each is told"""
    for factor, words in ((16, "camera.bits allows 4095"), (0, "all zero")):
        wrong, _ = examine(lambda s, k: s.send(SMOOTH * factor, k * M, time_ns=time.monotonic_ns()))
        assert list(wrong) == ["samples"] and words in wrong["samples"][1], wrong


@case
def nothing_to_look_at():
    """no daemon, one that is stopped, no driver, and a wrong call: one line, and the status"""
    status, out, err = run("octctl", "doctor", "--timeout", "0.3", "--endpoint", "ipc:///no/one")
    assert status == 1 and not out and err.count("\n") == 1 and "no daemon answers" in err, err
    for words in (["--seconds", "0"], ["--seconds", "nan"], ["more"], ["--what"], ["--seconds"]):
        status, out, err = run("octctl", "doctor", *words)
        assert status == 2 and not out and err.count("\n") == 1, (words, err)
    with Daemon(*BASE) as daemon:
        status, checks = doctor(daemon)
        assert status == 1 and "none came" in checks["messages"][1], checks
        assert daemon.ask("stop")["ok"]
        status, checks = doctor(daemon)
        assert status == 1 and checks == {"octd": checks["octd"]}, checks
        assert checks["octd"][2] == "octctl start", checks


main()
