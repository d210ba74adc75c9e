#!/usr/bin/python3
"""octctl recon of many recordings: one engine, several at a time, none stops the others."""
import filecmp, glob, pty, shutil
import h5py, numpy as np
from octtest import *

LINES, SAMPLES = 8, 128
SETTINGS = ["--set", f"camera.samples={SAMPLES}", "--set", f"scan.lines={LINES}"]


def fresh(name):
    path = folder(name)
    shutil.rmtree(path)
    os.makedirs(os.path.join(path, "in"))
    return path


def samples(path, seed, n_bscans=2):
    values = np.random.default_rng(seed).integers(0, 4000, (n_bscans, LINES, SAMPLES), np.uint16)
    with open(path, "wb") as file:
        file.write(values.tobytes())
    return path


def plain(base, names, n_bscans=2):
    """Plain samples of these names, and the settings that go with them."""
    kmap = os.path.join(base, "kmap.txt")
    np.savetxt(kmap, np.linspace(0, SAMPLES - 1, 64))
    paths = [samples(os.path.join(base, "in", name), i, n_bscans) for i, name in enumerate(names)]
    return paths, ["--set", "calibration.kmap=" + kmap, *SETTINGS]


def pictures(path):
    with h5py.File(os.fsencode(path), "r") as file:
        return file["bscans"][()]


def volume(base, name, n_bscans, *settings, lines=24, samples=256):
    """A volume file of the synthetic retina: it brings geometry, calibration and settings."""
    path = os.path.join(base, "in", name)
    ok("synth", path, "--seed", str(n_bscans), "--set", f"camera.samples={samples}",
       "--set", f"scan.lines={lines}", "--set", f"scan.bscans={n_bscans}", *settings)
    return path


def check_bytes(base, paths, n_engines, *settings):
    """With one engine after the other the files are those that single runs make, to the byte."""
    out = os.path.join(base, "out")
    said, _ = ok("recon", *paths, "--out-dir", out, "--jobs", "1", "--force", *settings)
    engines = f", {n_engines} engine" + ("s," if n_engines > 1 else ",")
    assert f"{len(paths)} done, 0 skipped, 0 failed" in said and engines in said, said
    for path in paths:
        alone = os.path.join(base, "alone.h5")
        ok("recon", path, alone, "--force", *settings)
        assert filecmp.cmp(alone, os.path.join(out, os.path.basename(path)), shallow=False), path


@case
def same_bytes():
    """an engine that serves one recording after the other makes the bytes of single runs"""
    base = fresh("many-bytes")
    paths = [volume(base, f"eye{n}.h5", n) for n in (5, 1, 9, 2)]
    check_bytes(base, paths, 1)  # percentile limits are smoothed within each recording alone
    check_bytes(base, paths, 1, "--set", "pipeline.range=manual", "--set", "output.sample=f32")
    # The running mean's window is as long as the volume is.
    check_bytes(base, paths, 4, "--set", "pipeline.dc=running", "--set", "pipeline.dc_bscans=3")


@case
def other_plans():
    """recordings of another plan, or with settings of their own, get what is theirs"""
    base = fresh("many-plans")
    paths = [volume(base, "a.h5", 3), volume(base, "lines.h5", 3, lines=20),
             volume(base, "b.h5", 4), volume(base, "window.h5", 3, "--set", "pipeline.window=hann"),
             volume(base, "c.h5", 2, "--set", "pipeline.window=hann"),
             volume(base, "log.h5", 3, "--set", "pipeline.window=hann", "--set", "pipeline.log=no"),
             volume(base, "range.h5", 3, "--set", "pipeline.range=manual"),
             volume(base, "d.h5", 3, "--set", "pipeline.range=auto"),
             volume(base, "cubic.h5", 3, "--set", "pipeline.interpolation=cubic"),
             volume(base, "crop.h5", 3, "--set", "pipeline.crop_last=300")]
    # lines, b, window, log, range with d, cubic, crop: those that differ in limits alone share.
    check_bytes(base, paths, 8)


@case
def several_at_a_time():
    """any number of recordings at a time gives the same pictures"""
    base = fresh("many-jobs")
    paths, settings = plain(base, [f"eye{i}.raw" for i in range(24)])
    found = []
    for jobs in ("1", "2", "7", "64", None):
        out = os.path.join(base, f"out{jobs}")
        number = ["--jobs", jobs] if jobs else []
        said, _ = ok("recon", *paths, "--out-dir", out, *settings, *number)
        assert "24 done, 0 skipped, 0 failed" in said, said
        assert not jobs or f"{min(24, int(jobs))} at a time" in said, said
        found.append([pictures(os.path.join(out, f"eye{i}.h5")) for i in range(24)])
        assert sorted(os.listdir(out)) == sorted(f"eye{i}.h5" for i in range(24))
    for other in found[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(found[0], other))
    assert not np.array_equal(found[0][0], found[0][1])


@case
def broken_ones():
    """broken recordings are a line each on stderr and in --results, and stop no other"""
    base = fresh("many-broken")
    paths, settings = plain(base, [f"eye{i}.raw" for i in range(12)])
    os.truncate(paths[3], 100)
    os.truncate(paths[7], 0)
    os.remove(paths[9])
    open(paths[11], "wb").write(b"\x89HDF\r\n\x1a\n" + b"?" * 1000)
    out, results = os.path.join(base, "out"), os.path.join(base, "results")
    got, said, err = run("octctl", "recon", *paths, "--out-dir", out, "--results", results,
                         *settings)
    assert got == 1 and "8 done, 0 skipped, 4 failed" in said, (got, said, err)
    lines = err.splitlines()
    for i in 3, 7, 9, 11:
        named = [line for line in lines if line.startswith("octctl recon: ") and paths[i] in line]
        assert len(named) == 1, err
        assert not os.path.exists(os.path.join(out, f"eye{i}.h5"))
    assert len(lines) == 4 and len(os.listdir(out)) == 8, (err, os.listdir(out))
    noted = sorted(open(results).read().splitlines(), key=lambda line: int(line.split()[0]))
    assert [line.split()[1] for line in noted] == \
        ["failed" if i in (3, 7, 9, 11) else "done" for i in range(12)], noted
    assert paths[3] in noted[3] and "2038 bytes" not in noted[0], noted
    odd = samples(os.path.join(base, "line\n0 done\nend.raw"), 1)
    os.truncate(odd, 100)
    got, said, err = run("octctl", "recon", odd, "--out-dir", out, "--results", results, *settings)
    assert got == 1 and err.count("end.raw") == 1 and err.count("\n") == 1, err
    assert len(open(results).readlines()) == 13, open(results).read()


@case
def what_is_there():
    """outputs that are there: refused one by one, left out, or replaced; damaged are not done"""
    base = fresh("many-there")
    paths, settings = plain(base, [f"eye{i}.raw" for i in range(4)])
    out = os.path.join(base, "deep", "down", "out")  # made where it is missing
    at = lambda i: os.path.join(out, f"eye{i}.h5")
    arguments = ["recon", *paths, "--out-dir", out, *settings]
    ok(*arguments)
    made = [os.stat(at(i)).st_mtime_ns for i in range(4)]
    os.remove(at(2))
    got, said, err = run("octctl", *arguments)
    assert got == 1 and "1 done, 0 skipped, 3 failed" in said, (got, said)
    assert err.count("exists already") == 3, err
    os.remove(at(2))
    said, _ = ok(*arguments, "--skip-existing")
    assert "1 done, 3 skipped, 0 failed" in said, said
    assert [os.stat(at(i)).st_mtime_ns for i in (0, 1, 3)] == [made[i] for i in (0, 1, 3)]
    os.truncate(at(1), 3000)
    got, said, err = run("octctl", *arguments, "--skip-existing")
    assert got == 1 and "0 done, 3 skipped, 1 failed" in said and "eye1.h5" in err, (said, err)
    assert "is damaged" in err and "--force makes it anew" in err and err.count("\n") == 1, err
    said, _ = ok(*arguments, "--skip-existing", "--force")
    assert "1 done, 3 skipped, 0 failed" in said, said
    assert pictures(at(1)).shape[0] == 2
    said, _ = ok(*arguments, "--force")
    assert "4 done, 0 skipped, 0 failed" in said, said
    assert all(os.stat(at(i)).st_mtime_ns != made[i] for i in range(4))
    said, _ = ok(*arguments, "--skip-existing", "--quiet")
    assert said == "", said


@case
def names():
    """names that shells stumble over, from a list too; two outputs of one name, before any work"""
    base = fresh("many-names")
    strange = ["with space.raw", "line\nend.raw", "'\"$HOME`.raw", "-dash.raw", ".hidden", "no_dot",
               "two.dots.raw", "%s%n.raw", os.fsdecode(b"bytes\xff\xfe.raw")]
    paths, settings = plain(base, strange)
    listed, out = os.path.join(base, "list"), os.path.join(base, "out")
    with open(listed, "wb") as file:
        file.write(b"".join(os.fsencode(path) + b"\0" for path in paths[1:]))
    ok("recon", paths[0], "--files0-from", listed, "--out-dir", out, *settings)
    assert set(os.listdir(out)) == {name[:-4] + ".h5" if name.endswith(".raw") else name + ".h5"
                                    for name in strange}
    with open(listed, "rb") as file:
        done = subprocess.run([program("octctl"), "recon", "--files0-from=-", "--out-dir", out,
                               "--skip-existing", *settings], stdin=file, capture_output=True)
    assert done.returncode == 0 and b"0 done, 8 skipped" in done.stdout, done
    other = samples(os.path.join(base, "with space.bin"), 1)
    nothing = os.path.join(base, "nothing")
    for words, names in (("both would become", [paths[0], paths[1], other]),
                         ("both would become", [paths[0], paths[0]]),
                         ("names no file", [paths[0], base + "/in/"]),
                         ("a pipe has no name", ["-"])):
        got, said, err = run("octctl", "recon", *names, "--out-dir", nothing, *settings)
        assert got == 2 and words in err and err.count("\n") == 1, (got, err)
    for words, text in (("ends within a name", b"a.raw\0b.raw"), ("is empty", b"a.raw\0\0b.raw\0"),
                        ("no recording is named", b"")):
        open(listed, "wb").write(text)
        got, said, err = run("octctl", "recon", "--files0-from", listed, "--out-dir", nothing)
        assert got in (1, 2) and words in err and err.count("\n") == 1, (got, err)
    assert not os.path.exists(nothing)


@case
def ended_early():
    """killed, nothing half is under a name, the next run goes on; SIGTERM leaves nothing else"""
    base = fresh("many-killed")
    paths, settings = plain(base, [f"eye{i}.raw" for i in range(60)], n_bscans=64)
    for number in signal.SIGKILL, signal.SIGTERM:
        out = os.path.join(base, f"out{int(number)}")
        arguments = [program("octctl"), "recon", *paths, "--out-dir", out, *settings]
        process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        until(lambda: len(glob.glob(out + "/*.h5")) >= 3, "three outputs")
        process.send_signal(number)
        err = process.communicate(timeout=PATIENCE_S)[1].decode()
        done = [name for name in os.listdir(out) if name.endswith(".h5")]
        assert 3 <= len(done) < 60, (number, len(done))
        assert all(pictures(os.path.join(out, name)).shape[0] == 64 for name in done)
        if number == signal.SIGTERM:
            assert process.returncode == 1 and "interrupted" in err, (process.returncode, err)
            assert len(os.listdir(out)) == len(done), os.listdir(out)
        said, _ = ok("recon", *paths, "--out-dir", out, "--skip-existing", *settings)
        assert f"{60 - len(done)} done, {len(done)} skipped, 0 failed" in said, (said, done)


@case
def misuse():
    """options of many recordings need --out-dir; without it two files are expected"""
    for words, arguments in (("two files are needed", ["a.raw"]), ("two files are needed", []),
                             ("one argument too many: 'c.h5'", ["a.raw", "b.h5", "c.h5"]),
                             ("need --out-dir", ["a.raw", "b.h5", "--jobs", "2"]),
                             ("need --out-dir", ["a.raw", "b.h5", "--skip-existing"]),
                             ("--jobs needs", ["a.raw", "--out-dir", "d", "--jobs", "0"]),
                             ("--jobs needs", ["a.raw", "--out-dir", "d", "--jobs", "65"]),
                             ("no recording", ["--out-dir", "d"])):
        refused_by("recon", 2, words, *arguments)


def on_terminal(*arguments):
    """octctl with a terminal as stderr; what it showed there."""
    here, there = pty.openpty()
    process = subprocess.Popen([program("octctl"), *arguments], stdout=subprocess.DEVNULL,
                               stderr=there)
    os.close(there)
    shown = b""
    with contextlib.suppress(OSError):  # of a terminal whose other end is closed
        while part := os.read(here, 65536):
            shown += part
    os.close(here)
    assert process.wait(PATIENCE_S) == 0, shown
    return shown.decode()


@case
def progress():
    """one line of progress over all recordings; the engine is told where it was asked for"""
    base = fresh("many-progress")
    paths, settings = plain(base, [f"eye{i}.raw" for i in range(30)], n_bscans=64)
    shown = on_terminal("recon", *paths, "--out-dir", os.path.join(base, "out"), *settings)
    assert " of 30 recordings, 0 failed, " in shown and " a second" in shown, shown
    assert "\n" not in shown and shown.endswith("\r\033[K"), shown
    shown = on_terminal("recon", *paths, "--out-dir", os.path.join(base, "quiet"), *settings,
                        "--quiet")
    assert shown == "", shown
    single = ["recon", paths[0], os.path.join(base, "one.h5"), "--force", *settings]
    said, err = ok(*single)
    assert err == "" and re.search(r"A-lines/s\), (cpu|cuda)\n$", said), (said, err)
    said, err = ok(*single, "--backend", "cpu")
    assert err.startswith("engine cpu (") and err.endswith("asked for\n"), err


if __name__ == "__main__":
    main()
