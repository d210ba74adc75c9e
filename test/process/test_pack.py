#!/usr/bin/python3
"""octctl pack: a packed recording holds what the recording held, for h5py and for every command of
octctl; whatever stops it leaves the original as it was and nothing else."""
import shutil
import h5py
import numpy as np
from octtest import *

M, V = 60, 40
BASE = settings(scan=dict(bscans=V, lines=M))
RAW = at("r.h5")
ok("synth", RAW, *BASE)


def told(*arguments):
    return "".join(ok(*arguments))


def scales(axis):
    try:
        return [s.name for s in axis.values()]
    except RuntimeError:  # h5py has copied a list of scales that points at nothing
        return []


def values(v):
    return [list(i) for i in v] if v.dtype.hasobject else v.tobytes()


def everything(name):
    """Of each object its kind, attributes and values; a link to one that was met is its name."""
    seen_at, found = {}, {}

    def attributes(o):
        # what points at objects is compared through h5py's dims
        skip = ("DIMENSION_LIST", "REFERENCE_LIST")
        return {k: (np.asarray(v).tolist(), str(o.attrs.get_id(k).dtype))
                for k, v in o.attrs.items() if k not in skip}

    def visit(o, at):
        key = h5py.h5o.get_info(o.id).addr
        if key in seen_at:
            found[at] = ("link", seen_at[key])
            return
        seen_at[key] = at
        if isinstance(o, h5py.Group):
            found[at] = ("group", attributes(o))
            for k in o:
                link = o.get(k, getlink=True)
                if isinstance(link, h5py.SoftLink):
                    found[f"{at}/{k}"] = ("soft", link.path)
                else:
                    visit(o[k], f"{at}/{k}")
        else:
            found[at] = ("dataset", attributes(o), o.dtype.str, o.shape, o.fillvalue,
                         values(o[()]), [d.label for d in o.dims],
                         [scales(d) for d in o.dims])

    with h5py.File(name) as f:
        visit(f["/"], "")
    return found


def expect_same(one, other):
    a, b = everything(one), everything(other)
    assert a.keys() == b.keys(), a.keys() ^ b.keys()
    for k in a:
        assert repr(a[k]) == repr(b[k]), (k, repr(a[k])[:300], repr(b[k])[:300])


def refused(*arguments, status=1):
    code, out, err = run("octctl", "pack", *arguments)
    assert code == status and err.count("\n") == 1 and not out, (code, out, err)
    return err


@case
def spectra_and_what_is_known():
    """spectra with truth, calibration, scales, a soft and a hard link: equal by h5py, and smaller"""
    with h5py.File(RAW, "r+") as f:
        f["again"] = f["spectra"]
        f["soft"] = h5py.SoftLink("/frames/valid")
        f.attrs["own"] = np.arange(6).reshape(2, 3)
        f["frames"].attrs["texts"] = np.array(["a", "äö"], dtype=h5py.string_dtype())
        d = f.create_dataset("notes/table", (100, 300), ">f4", fillvalue=-3)
        d[:50] = np.arange(300)
        f.create_dataset("notes/ragged", (3,), h5py.vlen_dtype("i4"))[1] = [1, 2, 3]
    ok("pack", RAW, at("p.h5"))
    expect_same(RAW, at("p.h5"))
    assert os.path.getsize(at("p.h5")) < 0.7 * os.path.getsize(RAW)
    with h5py.File(at("p.h5")) as f:
        s = f["spectra"]
        assert s.compression == "gzip" and s.shuffle
        assert f["spectra"] == f["again"] and f["notes/table"].compression == "gzip"
        assert f["frames/valid"].compression is None
    assert "40 verified" in told("check", at("p.h5"))


@case
def every_command_reads_both():
    """recon of packed spectra equals that of the others; check, info, label, export, replay read it"""
    for name in "r", "p":
        ok("recon", at(name + ".h5"), at(f"{name}-out.h5"), *settings(output=dict(sample="u8")))
    with h5py.File(at("r-out.h5")) as a, h5py.File(at("p-out.h5")) as b:
        assert np.array_equal(a["bscans"][:], b["bscans"][:]) and a["bscans"][:].any()
    ok("pack", at("p-out.h5"), at("pp-out.h5"), "--level", 9)
    expect_same(at("p-out.h5"), at("pp-out.h5"))
    ok("correlate", at("pp-out.h5"), at("c.h5"))
    ok("label", at("p.h5"), "--eye", "OS", "--mark", "keep")
    with h5py.File(at("p.h5")) as f:
        assert f.attrs["eye"] == "OS" and f.attrs["mark"] == "keep"
    info = json.loads(told("info", at("p.h5"), "--json"))
    assert info["eye"] == "OS", info
    assert "40 verified" in told("check", at("p.h5"))


@case
def rows_that_never_came():
    """rows that never came take no space, in a recording that was cut short"""
    name, out = at("early.h5"), at("early-packed.h5")
    shutil.copy(RAW, name)
    with h5py.File(name, "r+") as f:
        f["spectra"][5:] = 0
        f["frames/valid"][5:] = 0
    ok("pack", name, out)
    expect_same(name, out)
    with h5py.File(out) as f:
        assert f["spectra"].id.get_num_chunks() * f["spectra"].chunks[0] <= 8
    assert "5 verified" in told("check", out)


@case
def shapes():
    """large B-scans in parts, small ones together, odd ends, one axis and four: equal"""
    rng = np.random.default_rng(3)
    name, out = at("shapes.h5"), at("shapes-packed.h5")
    with h5py.File(name, "w") as f:
        f["spectra"] = rng.integers(0, 4096, (3, 257, 2048)).astype("<u2")  # 1 MiB a row
        f["a/line"] = rng.integers(0, 9, 300_007).astype("<i8")
        f["a/small"] = rng.integers(0, 9, (50003, 7)).astype("u1")
        f["a/four"] = rng.normal(size=(2, 33, 65, 129)).astype("<f8").round(1)
        f["a/three"] = rng.integers(0, 9, (2, 3, 400_001)).astype(">u2")
        f["a/packed"] = np.zeros(4)
        f.create_dataset("a/done", data=np.arange(100_000), compression="gzip")
        f.create_dataset("a/empty", (0, 5), "f4")
        f["a/scalar"] = 5
    ok("pack", name, out)
    expect_same(name, out)
    with h5py.File(out) as f:
        for k in "spectra", "a/line", "a/small", "a/four", "a/three":
            size = np.prod(f[k].chunks) * f[k].dtype.itemsize
            assert f[k].compression == "gzip" and size <= 1 << 20, (k, f[k].chunks)
        assert f["spectra"].chunks[1] < 257 and f["a/small"].chunks[0] > 1000
        assert f["a/done"].chunks and f["a/scalar"][()] == 5


@case
def never_written():
    """arrays that claim to be huge and were never written, or hardly, are copied as they are"""
    name, out = at("claims.h5"), at("claims-packed.h5")
    with h5py.File(name, "w") as f:
        f["spectra"] = np.random.default_rng(4).integers(0, 4096, (3, 64, 512)).astype("<u2")
        f.create_dataset("line", (1 << 40,), "f4", fillvalue=2)
        f.create_dataset("grid", (1 << 20, 1 << 28), "u1", chunks=(1, 1 << 16))[5, 9] = 7
    ok("pack", name, out)
    with h5py.File(out) as f:
        assert f["spectra"].compression == "gzip"
        assert f["line"].shape == (1 << 40,) and f["line"][1 << 39] == 2
        assert f["grid"].shape == (1 << 20, 1 << 28) and f["grid"][5, 8:10].tolist() == [0, 7]


@case
def analyses():
    """results of analyses, with their columns and limits, are kept and listed"""
    with h5py.File(RAW) as f, h5py.File(at("an.h5"), "w") as g:
        for k in f:
            if k not in ("again", "soft", "notes"):
                f.copy(k, g)
        for k, v in f.attrs.items():
            g.attrs[k] = v
        g["analysis/enface"] = np.random.default_rng(1).random((V, 500)).astype("f4").round(2)
        g["analysis/enface"].attrs["units"] = "dB"
        g["analysis/enface"].attrs["quantity"] = "intensity"
        g["analysis/enface_valid"] = np.ones(1, "u1")
        g["analysis/enface_rows"] = np.array([V], "u4")
    ok("pack", at("an.h5"), at("an-packed.h5"))
    expect_same(at("an.h5"), at("an-packed.h5"))
    n = told("info", at("an-packed.h5")).count("enface")
    assert n == told("info", at("an.h5")).count("enface") > 0


@case
def replace():
    """--replace: the packed copy has the name, the mode and all values; again there is nothing to do"""
    shutil.copy(RAW, at("in.h5"))
    os.chmod(at("in.h5"), 0o664)  # more than the umask lets through
    os.symlink("in.h5", at("link.h5"))
    ok("pack", at("link.h5"), "--replace")
    assert os.path.islink(at("link.h5")) and os.stat(at("in.h5")).st_mode & 0o777 == 0o664
    expect_same(RAW, at("in.h5"))
    before = os.stat(at("in.h5"))
    assert "nothing to pack" in told("pack", at("in.h5"), "--replace")
    assert os.stat(at("in.h5")).st_ino == before.st_ino


@case
def what_is_refused():
    """unfinished, damaged, foreign, existing, itself, nonsense: one line, and nothing is made"""
    there = set(os.listdir(at()))
    shutil.copy(RAW, at("x.h5.part"))
    assert "still being written" in refused(at("x.h5.part"), at("y.h5"))
    assert "still being written" in refused(at("x.h5.part"), "--replace")
    os.unlink(at("x.h5.part"))
    shutil.copy(RAW, at("bad.h5"))
    with h5py.File(at("bad.h5"), "r+") as f:
        f["spectra"][7, 3, 100] ^= 1
    assert "B-scan 7 does not match its checksum" in refused(at("bad.h5"), at("y.h5"))
    with h5py.File(at("bad.h5"), "w") as f:
        f["spectra"] = np.zeros((2, 50, 800), "u2")
        f["far"] = h5py.ExternalLink("else.h5", "/x")
    assert "another file" in refused(at("bad.h5"), at("y.h5"))
    with h5py.File(at("bad.h5"), "w") as f:
        f["spectra"] = np.zeros((2, 50, 800), "u2")
        f.attrs["at"] = f["spectra"].ref
    assert "points at other objects" in refused(at("bad.h5"), at("y.h5"))
    with h5py.File(at("bad.h5"), "w") as f:
        f["else"] = np.zeros(9)
    assert "neither /spectra nor /bscans" in refused(at("bad.h5"), at("y.h5"))
    open(at("bad.h5"), "wb").write(open(RAW, "rb").read()[:200_000])
    refused(at("bad.h5"), at("y.h5"))
    assert "--force" in refused(RAW, at("p.h5"))
    for out, words in ((RAW, "is an input itself"), (at(), "is a folder"), ("/dev/null", "no plain file")):
        assert words in refused(RAW, out, "--force", status=2), out
    refused(at("none.h5"), at("y.h5"))
    shutil.copy(at("p.h5"), at("bad.h5"))
    assert "nothing to pack" in refused(at("bad.h5"), at("y.h5"))
    for arguments in ((RAW,), (RAW, at("y.h5"), "--replace"), (RAW, at("y.h5"), "--level", 0),
                      (RAW, at("y.h5"), "--level", 10), ()):
        refused(*arguments, status=2)
    os.unlink(at("bad.h5"))
    assert set(os.listdir(at())) == there, set(os.listdir(at())) ^ there


@case
def damaged():
    """bytes changed anywhere but in the values, and files cut short: packed or one line, no crash"""
    ok("synth", at("d.h5"), *settings(scan=dict(bscans=2, lines=20)))
    good = open(at("d.h5"), "rb").read()
    with h5py.File(at("d.h5")) as f:
        first, n = f["spectra"].id.get_offset(), f["spectra"].id.get_storage_size()
    rng, n_refused = random.Random(4), 0
    places = [i for i in range(len(good)) if not first <= i < first + n and good[i]]
    there = set(os.listdir(at()))
    for k in range(24):
        data = bytearray(good[:len(good) * k // 4] if k < 4 else good)
        for _ in range(0 if k < 4 else 40):
            data[rng.choice(places)] = rng.randrange(256)
        open(at("d.h5"), "wb").write(data)
        status, out, err = run("octctl", "pack", at("d.h5"), at("y.h5"))
        assert (status, err.count("\n")) in ((0, 0), (1, 1)), (k, status, err)
        n_refused += status
        if status == 0 and os.path.exists(at("y.h5")):
            os.unlink(at("y.h5"))
        assert set(os.listdir(at())) == there, (k, err)
    assert n_refused >= 4, n_refused


@case
def disk_full():
    """a full disk: one line, the original as it was, nothing left behind"""
    before = open(RAW, "rb").read()
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    shutil.copy(RAW, at("full.h5"))
    there = set(os.listdir(at()))
    for arguments in ((at("full.h5"), at("y.h5")), (at("full.h5"), "--replace")):
        done = subprocess.run([program("octctl"), "pack", *arguments], preexec_fn=limit,
                              capture_output=True, text=True)
        assert done.returncode == 1 and "cannot be written" in done.stderr, done
        assert done.stderr.count("\n") == 1, done.stderr
    assert open(at("full.h5"), "rb").read() == before and set(os.listdir(at())) == there


def places(name):
    """{what: offset of a byte of it} in a packed file: of every dataset, and of what describes them."""
    data, found = open(name, "rb").read(), {}
    with h5py.File(name) as f:
        def visit(at, o):
            if not isinstance(o, h5py.Dataset) or o.id.get_storage_size() == 0:
                return
            if o.chunks:
                found[at] = o.id.get_chunk_info(0).byte_offset + 9
            else:
                found[at] = o.id.get_offset() + o.id.get_storage_size() // 2
        f.visititems(visit)
        for text in ("own-marker", "texts", "time_ns", "/frames/valid", "DIMENSION_LIST", "äö",
                     "[camera]"):
            assert text.encode() in data, text
            found["text " + text] = data.index(text.encode()) + 1
    return found


@case
def a_bit_flipped_on_its_way():
    """one bit of anything that is written changes on its way to the disk: no copy, the original stays"""
    there = folder("records")
    plan, name, out = at("plan"), os.path.join(there, "r.h5"), os.path.join(there, "p.h5")
    shutil.copy(RAW, name)
    with h5py.File(name, "r+") as f:
        f.attrs["own-marker"] = "of a lab"
    ok("pack", name, out)
    before = open(name, "rb").read()
    spots = places(out)
    assert {"frames/time_ns", "again", "notes/ragged", "bscan_um"} <= set(spots), spots
    os.unlink(out)
    env = dict(os.environ, FAULTIO=plan, LD_PRELOAD=os.path.abspath(program("test/faultio.so")))
    if "asan" in BUILD or "tsan" in BUILD:
        env.pop("LD_PRELOAD")  # they must come first
        raise Skip("a sanitizer's library must be the first")
    for i, (what, place) in enumerate(spots.items()):
        with open(plan, "w") as file:
            file.write(f"flip {place}")
        done = subprocess.run([program("octctl"), "pack", name, "--replace" if i % 2 else out],
                              env=env, capture_output=True, text=True, timeout=PATIENCE_S)
        assert done.returncode == 1 and done.stderr.count("\n") == 1 and not done.stdout, \
            (what, place, done)
        assert open(name, "rb").read() == before and os.listdir(there) == ["r.h5"], what
    os.unlink(plan)  # all is well again
    subprocess.run([program("octctl"), "pack", name, out], env=env, check=True, capture_output=True)
    expect_same(name, out)


@case
def killed():
    """kill -9 and SIGINT at any moment: the original, or the whole packed copy"""
    before = everything(RAW)
    n_early = 0
    for run_number in range(9):  # the first is killed at once, the last is done on most machines
        name = at("kill.h5")
        shutil.copy(RAW, name)
        process = subprocess.Popen([program("octctl"), "pack", name, "--replace"],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(0.1 * run_number)
        process.send_signal(signal.SIGINT if run_number % 3 == 2 else signal.SIGKILL)
        process.wait()
        with h5py.File(name) as f:
            n_early += f["spectra"].compression is None
        assert everything(name).keys() == before.keys()
        assert ok("check", name)
        left = [n for n in os.listdir(at()) if n.startswith("kill.h5.")]
        assert not left or process.returncode == -signal.SIGKILL, (left, process.returncode)
        for n in left:
            os.unlink(at(n))
    assert n_early >= 1, n_early


@case
def labelled_meanwhile():
    """a label that is written while --replace packs waits and is not lost"""
    name = at("busy.h5")
    for _ in range(3):
        shutil.copy(RAW, name)
        process = subprocess.Popen([program("octctl"), "pack", name, "--replace"],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(0.15)
        status, _, err = run("octctl", "label", name, "--eye", "OD", "--mark", "keep")
        assert process.wait() == 0 or status == 0
        with h5py.File(name) as f:
            assert status != 0 or f.attrs.get("mark") == "keep", (status, err)
        assert status == 0 or "try again" in err, err


main()
