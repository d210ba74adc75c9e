#!/usr/bin/python3
"""Recordings of other programs through octctl: the same spectra in every format give the same
pictures, and what is missing is said."""
import json, os, re, signal, subprocess

import h5py, numpy as np

from octcrc import crc32c_rows
from octctlrig import OCTCTL, TMP, check, main, octctl
from octtest import BUILD, at, until

V, M, N = 12, 16, 256
GEOMETRY = ("--set", f"camera.samples={N}", "--set", f"scan.lines={M}")
F32 = ("--set", "output.sample=f32")


def spectra():
    """12-bit spectra of three mirrors before a source, with noise."""
    k, line = np.linspace(-1, 1, N), np.arange(V * M)[:, None]
    source = 1800 * np.exp(-3 * k * k)
    fringes = sum(a * np.cos(np.pi * depth * k + 0.3 * line * (i + 1))
                  for i, (a, depth) in enumerate(((0.2, 20), (0.1, 47), (0.05, 90))))
    counts = 300 + source * (1 + fringes) + np.random.default_rng(3).normal(0, 8, (V * M, N))
    return np.clip(np.round(counts), 0, 4095).astype("<u2").reshape(V, M, N)


S = spectra()
np.savetxt(at("axis.txt"), np.linspace(800, 880, N), fmt="%.12g")
AXIS = ("--set", "calibration.wavelengths=" + at("axis.txt"))


def recon(name, *arguments, stdin=None):
    """(exit status, stderr, pictures, attributes of the output)"""
    out = at("out.h5")
    done = subprocess.run([OCTCTL, "recon", "--force", name, out, *AXIS, *arguments],
                          input=stdin, capture_output=True)
    if done.returncode:
        return done.returncode, done.stderr.decode(), None, {}
    with h5py.File(out) as f:
        return 0, "", f["bscans"][:], dict(f.attrs)


def numpy_file(name, array):
    np.save(at(name), array)
    return at(name)


def raw_file(name, array):
    array.tofile(at(name))
    return at(name)


def hdf5_file(name, array, dataset="scan/raw", **how):
    with h5py.File(at(name), "w") as f:
        f.create_dataset(dataset, data=array, **how)
        f["notes"] = np.arange(5)
    return at(name)


REFERENCE = recon(raw_file("plain.raw", S), *GEOMETRY)[2]
if REFERENCE is None or REFERENCE.std() < 10:
    raise SystemExit("the reference cannot be reconstructed")

REVERSED, SWAPPED = S.transpose(2, 1, 0), S.transpose(0, 2, 1)
ALL, YES = ("--set", "file.transpose=all"), ("--transpose",)
LINES = ("--set", f"scan.lines={M}")
OFFSET = (S.astype("i4") - 32768).astype
SAME = [
    ("a .npy file", numpy_file("a.npy", S), ()),
    ("a .npy file in Fortran order", numpy_file("f.npy", np.asfortranarray(S)), ()),
    ("a .npy file of A-lines", numpy_file("l.npy", S.reshape(-1, N)), LINES),
    ("a big-endian .npy file", numpy_file("be.npy", S.astype(">u2")), ()),
    ("int32 in .npy", numpy_file("i4.npy", S.astype("<i4")), ()),
    ("float64 in .npy", numpy_file("f8.npy", S.astype(">f8")), ()),
    ("HDF5 of another name", hdf5_file("a.h5", S), ()),
    ("HDF5 of a long name", hdf5_file("long.h5", S, "scan/" + "x" * 200), ()),
    ("big-endian HDF5", hdf5_file("be.h5", S.astype(">u2")), ()),
    ("HDF5 in chunks across B-scans, packed",
     hdf5_file("c.h5", S, chunks=(5, 7, 100), compression="gzip", shuffle=True), ()),
    ("reversed HDF5 in packed chunks",
     hdf5_file("r.h5", REVERSED, chunks=(100, 7, 5), compression="gzip"), ALL),
    ("HDF5 with A-lines last", hdf5_file("t.h5", SWAPPED, chunks=(5, 100, 7)), YES),
    ("HDF5 of A-lines", hdf5_file("l.h5", S.reshape(-1, N), chunks=(21, 256)), LINES),
    ("HDF5 of A-lines, transposed", hdf5_file("lt.h5", S.reshape(-1, N).T, chunks=(50, 21)),
     LINES + YES),
    ("int32 in HDF5", hdf5_file("i4.h5", S.astype(">i4")), ()),
    ("float32 in HDF5", hdf5_file("f4.h5", S.astype("<f4"), chunks=True), ()),
    ("spectra of floats named as ours", hdf5_file("s.h5", S.astype("f4"), "spectra"), ()),
    ("MATLAB's block before HDF5", hdf5_file("m.mat", S), ()),
] + [(f"plain samples of {kind}", raw_file(kind + ".raw", S.astype(dtype)),
      GEOMETRY + ("--set", "file.sample=" + kind))
     for kind, dtype in (("u16be", ">u2"), ("i32", "<i4"), ("i32be", ">i4"), ("u32", "<u4"),
                         ("u32be", ">u4"), ("f32", "<f4"), ("f32be", ">f4"), ("f64", "<f8"),
                         ("f64be", ">f8"))]


def the_same_spectra_give_the_same_pictures():
    for what, name, how in SAME:
        status, err, pictures, _ = recon(name, *how)
        check(status == 0 and np.array_equal(pictures, REFERENCE), what,
           err or np.abs(pictures.astype(int) - REFERENCE).max())
    with h5py.File(at("block.h5"), "w", userblock_size=512) as f:
        f["x"] = S
    with open(at("block.h5"), "r+b") as f:
        f.write(b"MATLAB 7.3 MAT-file")
    check(np.array_equal(recon(at("block.h5"))[2], REFERENCE), "a block before HDF5's own")


def samples_with_a_sign_and_of_8_bits():
    """An offset goes with the DC: pictures differ by rounding alone. 8 bits lose what they lose."""
    signed = (S.astype("i4") - 32768).astype("<i2")
    exact = recon(at("plain.raw"), *GEOMETRY, *F32)[2]
    for what, name, how, scaling in (
            ("i16", raw_file("i16.raw", signed), GEOMETRY + ("--set", "file.sample=i16"),
             "+ 32768"),
            ("i16be", raw_file("i16be.raw", signed.astype(">i2")),
             GEOMETRY + ("--set", "file.sample=i16be"), "+ 32768"),
            ("i16 in .npy", numpy_file("i2.npy", signed), (), "+ 32768")):
        status, err, pictures, about = recon(name, *how)
        check(status == 0 and np.array_equal(pictures, REFERENCE), what, err)
        check(scaling in about.get("input_scaling", ""), what + " says its rule", about)
    centred = numpy_file("centred.npy", (S.astype("i4") - 2000).astype("<i2"))
    pictures, about = recon(centred, *F32)[2:]
    worst = np.abs(pictures - exact)[exact > exact.max() - 60].max()
    check(worst < 1e-2, "an offset that is not the same moves no picture", worst)
    eight = (S // 16).astype("u1")
    for what, name, how in (("u8", raw_file("u8.raw", eight),
                             GEOMETRY + ("--set", "file.sample=u8")),
                            ("i8", raw_file("i8.raw", (eight.astype(int) - 128).astype("i1")),
                             GEOMETRY + ("--set", "file.sample=i8")),
                            ("u8 in .npy", numpy_file("u1.npy", eight), ())):
        status, err, pictures, about = recon(name, *how, *F32)
        as_u16 = recon(raw_file("u16.raw", eight.astype("<u2")), *GEOMETRY, *F32)[2]
        check(status == 0 and np.array_equal(pictures, as_u16), what, err)
        check("bits = 8\n" in about["config"], what + " has 8 bits", about.get("config", "")[:200])


def floats_of_any_range_lose_less_than_the_noise():
    """Values of a balanced detector, in volts: 16 bits of their range."""
    volts = (S - 300.0) / 4095 * 1.7 - 0.4
    exact = recon(at("plain.raw"), *GEOMETRY, *F32)[2]
    for what, name, how in (
            ("float32 in .npy", numpy_file("volts.npy", volts.astype("<f4")), ()),
            ("float64 in HDF5", hdf5_file("volts.h5", volts, chunks=(3, M, N)), ()),
            ("plain f32", raw_file("volts.raw", volts.astype("<f4")),
             GEOMETRY + ("--set", "file.sample=f32"))):
        status, err, pictures, about = recon(name, *how, *F32)
        rule = re.fullmatch(r"value \* (\S+) \+ (\S+)", about.get("input_scaling", ""))
        check(status == 0 and rule, what + " says its rule", err or about)
        gain = 20 * np.log10(float(rule[1]) * 1.7 / 4095)
        seen = exact > exact.max() - 50
        worst = np.abs(pictures - gain - exact)[seen].max()
        check(worst < 0.1, f"{what}: within 0.1 dB over 50 dB", worst)
    given = recon(at("volts.npy"), "--set", f"file.scale={4095 / 1.7!r}",
                  "--set", f"file.offset={4095 / 1.7 * 0.4 + 300!r}")
    check(given[0] == 0 and np.array_equal(given[2], REFERENCE), "file.scale and offset undo it",
       given[1])


def has_open(child, name):
    folder = f"/proc/{child.pid}/fd/"
    for fd in os.listdir(folder):
        try:
            if name in os.readlink(folder + fd):
                return True
        except FileNotFoundError:  # closed meanwhile
            pass
    return False


def a_pipe_is_read_to_its_end():
    for what, name, how in (("plain samples", "plain.raw", GEOMETRY), (".npy", "f.npy", ()),
                            ("packed HDF5", "c.h5", ())):
        with open(at(name), "rb") as f:
            status, err, pictures, about = recon("-", *how, stdin=f.read())
        check(status == 0 and np.array_equal(pictures, REFERENCE), f"{what} through a pipe", err)
        check(about.get("input_name") == "standard input", "it is named", about)
    with open(at("c.h5"), "rb") as f:
        done = subprocess.run([OCTCTL, "info", "-", "--json"], stdin=f,
                              capture_output=True, text=True)
    check(json.loads(done.stdout or "{}").get("bscans") == V, "info of standard input", done)
    before = open(at("c.h5"), "rb").read()
    with open(at("c.h5"), "rb") as f:
        done = subprocess.run([OCTCTL, "recon", "-", at("c.h5"), "--force", *AXIS], stdin=f,
                              capture_output=True)
    check(b"is an input itself" in done.stderr and open(at("c.h5"), "rb").read() == before,
          "a file as standard input is not replaced", done)
    cut = S.tobytes()[:-1000]
    status, err, _, _ = recon("-", *GEOMETRY, stdin=cut)
    check(status == 1 and re.search(r"standard input: .* 11\.\d+ B-scans .*or 1000 too few", err),
       "a pipe that ends within a B-scan is told", err)
    check("standard input: damaged or truncated" in
       recon("-", stdin=open(at("c.h5"), "rb").read()[:9000])[1], "HDF5 that ends early is told")
    left = [n for n in os.listdir(os.environ.get("TMPDIR", "/var/tmp"))
            if n.startswith("octd-input")]
    check(not left, "no file is left behind", left)
    for command in (("recon", "-", at("never.h5")), ("replay", "-")):
        child = subprocess.Popen([OCTCTL, *command], stdin=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True)
        until(lambda: has_open(child, "octd-input"), "it waits")
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=60)
        ended = child.returncode == -signal.SIGINT or child.returncode and "interrupted" in err
        check(ended, f"{command[0]} of a pipe can be ended", (child.returncode, err))


def the_output_says_what_it_was_made_from():
    name = numpy_file("Some Name.npy", S)
    os.utime(name, (1700000000, 1700000000))
    about = recon(name)[3]
    with open(name, "rb") as f:
        content = f.read()
    crc = crc32c_rows(np.frombuffer(content, "u1")[None])[0]
    check(about.get("input_name") == "Some Name.npy", "its name, without the folder", about)
    check(about.get("input_time") == "2023-11-14T22:13:20Z", "its time", about.get("input_time"))
    check(about.get("input_bytes") == len(content), "its size", about.get("input_bytes"))
    check(about.get("input_crc32c") == f"{crc:08x}", "its CRC-32C", (about, crc))
    check(about.get("input_format") == "npy", "its format", about.get("input_format"))
    check(recon(at("plain.raw"), *GEOMETRY)[3].get("input_format") == "samples", "plain samples")


def what_is_missing_is_said():
    with h5py.File(at("two.h5"), "w") as f:
        f["first"], f["g/second"] = S, S[:, :, :200].astype("f4")
    with h5py.File(at("none.h5"), "w") as f:
        f["axis"], f["text"] = np.arange(9.0), "nothing"
    with h5py.File(at("empty.h5"), "w") as f:
        f.create_dataset("raw", (1000, 1000, 1000), "f4")
    numpy_file("flat.npy", S.ravel())
    numpy_file("complex.npy", S.astype("c8"))
    numpy_file("deep.npy", np.zeros((1, 70000, 8), "u2"))
    with open(at("cut.npy"), "wb") as f:
        f.write(open(at("a.npy"), "rb").read()[:-7])
    os.mkfifo(at("fifo"))
    for what, words, *arguments in (
            ("several datasets", r"two.h5: which dataset .*: /first \[12\]\[16\]\[256\] u16, "
             r"/g/second \[12\]\[16\]\[200\] f32", at("two.h5")),
            ("a dataset that is not there", r"no dataset third, only: /first .*, /g/second",
             at("two.h5"), "--dataset", "third"),
            ("no dataset that could be", r"none.h5: has no dataset that could be spectra: /axis "
             r"\[9\] f64", at("none.h5")),
            ("a dataset that was never written", "never written", at("empty.h5")),
            ("one axis", "1 axes; spectra have 3", at("flat.npy")),
            ("complex numbers", "type '<c8'", at("complex.npy")),
            ("too many A-lines", "scan.lines divides them", at("deep.npy")),
            ("a file that ends early", "truncated .npy file: its array has 98304 bytes, and 98297",
             at("cut.npy")),
            ("other axes", "set file.transpose=yes", at("t.h5"), "--set", f"camera.samples={N}"),
            ("another geometry", f"scan.lines = {M}, but the configuration says 5", at("a.npy"),
             "--set", "scan.lines=5"),
            ("a folder", "not a plain file but a folder", TMP),
            ("a pipe with a name", r"a pipe is read from standard input \(-\)", at("fifo"))):
        status, _, err = octctl("info", *arguments)
        check(status in (1, 2) and re.search(words, err) and err.count("\n") == 1, what, err)
    for arguments in (("--dataset", "first"), ("--dataset=/first",),
                      ("--set", "camera.samples=256"),
                      ("--set", "file.dataset=first")):
        pictures = recon(at("two.h5"), *arguments)[2]
        check(pictures is not None and np.array_equal(pictures, REFERENCE),
              "named by " + arguments[0])
    check(octctl("export", at("out.h5"), at("e.npy"), "--dataset", "bscans")[0] == 0,
       "a command's own --dataset stays its own")


def info_shows_what_a_file_is():
    done = octctl("info", at("i2.npy"), "--json")
    facts = json.loads(done[1] or "{}")
    check((facts.get("format"), facts.get("bscans"), facts.get("lines"), facts.get("samples")) ==
       ("npy", V, M, N) and facts.get("scaling") == "value + 32768", "of .npy", done)
    with h5py.File(at("r.h5"), "r+") as f:
        f["scan/raw"].attrs["element_size_um"] = np.array([np.nan, 2.5, 10.0])
    facts = json.loads(octctl("info", at("r.h5"), "--json", *ALL)[1] or "{}")
    check((facts.get("width_um"), facts.get("height_um")) == (2.5 * M, 10.0 * V),
       "the field from an array's spacing", facts)
    about = recon(at("r.h5"), *ALL)[3]
    check("width_um = 40\n" in about["config"] and "height_um = 120\n" in about["config"],
       "and recon takes it", about["config"][:300])
    check("width_um = 9\n" in recon(at("r.h5"), *ALL, "--set", "scan.width_um=9")[3]["config"],
       "the user's own wins")


def other_commands_take_them_too():
    numpy_file("r.npy", REVERSED)
    status, _, err = octctl("background", at("background.txt"), at("f.npy"))
    check(status == 0, "background", err)
    if status == 0:
        line = np.loadtxt(at("background.txt"))
        check(np.abs(line - S.mean((0, 1))).max() < 1e-3, "background of .npy is its mean")
    shown = subprocess.run([os.path.join(BUILD, "octview"), at("r.npy"), "--headless", "--frames",
                            "2", "--screenshot", at("seen.png"), *AXIS, "--set",
                            "file.transpose=all"], capture_output=True, text=True)
    check(shown.returncode == 0 and os.path.getsize(at("seen.png")) > 10000,
          "octview shows a reversed .npy", shown.stderr)
    err = octctl("replay", at("c.h5"), "--to", f"ipc://{TMP}/nobody", "--wait", "0")[2]
    check("no daemon takes lines" in err, "replay opens packed HDF5", err)


main(the_same_spectra_give_the_same_pictures, samples_with_a_sign_and_of_8_bits,
     floats_of_any_range_lose_less_than_the_noise, a_pipe_is_read_to_its_end,
     the_output_says_what_it_was_made_from, what_is_missing_is_said, info_shows_what_a_file_is,
     other_commands_take_them_too)
