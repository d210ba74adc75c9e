#!/usr/bin/python3
"""octctl label: eye, pseudonym and mark of closed recordings, read by h5py; killed at random
moments; a file of 20 GB; letters outside ASCII."""
import hashlib, random, shutil
import h5py
import numpy as np
from octtest import *

N, M, V = 832, 16, 6
ROUNDS = 400 if LONG else 60
seed = int(os.environ.get("SEED", "0")) or random.randrange(1 << 30)
dice = random.Random(seed)
BASE = settings(scan=dict(lines=M, bscans=V), calibration=dict(wavelengths=calibration(N)),
                pipeline=dict(crop_last=200))
LABEL = "eye", "pseudonym", "mark"
RECORDS = folder("records")  # faultio.c knows it by this name


def recording(name="of.h5", holds="pictures"):
    """As octd makes them."""
    raw, path = os.path.join(folder("raw"), "raw.h5"), os.path.join(RECORDS, name)
    if not os.path.exists(raw):
        ok("synth", raw, *BASE)
    if holds == "spectra":
        shutil.copy(raw, path)
    else:
        ok("recon", raw, path, "--force", *BASE)
    return path


def label_of(path):
    with h5py.File(path, "r") as f:
        assert all(isinstance(f.attrs.get(k, ""), str) for k in LABEL)
        return f.attrs["eye"], f.attrs["pseudonym"], f.attrs.get("mark", "")


def content_of(path):
    """Sums of all arrays and attributes, but for the label, and where the arrays lie."""
    found = {}

    def look(name, thing):
        if isinstance(thing, h5py.Dataset):
            found[name] = (hashlib.sha256(thing[()].tobytes()).hexdigest(), thing.id.get_offset())
        found["of " + name] = {k: str(v) for k, v in thing.attrs.items()}
    with h5py.File(path, "r") as f:
        f.visititems(look)
        found["/"] = {k: str(v) for k, v in f.attrs.items() if k not in LABEL}
    return found


@case
def a_label_is_corrected():
    """a label is corrected, shown and taken back; nothing else changes, and h5dump reads it"""
    path = recording()
    before, other = content_of(path), recording("second.h5", "spectra")
    others = content_of(other)
    assert "bscans" in before and "spectra" in others
    out, _ = ok("label", path, "--eye", "os", "--pseudonym", "P 7", "--mark", "repeat")
    assert out == f"{path}: eye OS, pseudonym P 7, mark repeat\n", out
    assert label_of(path) == ("OS", "P 7", "repeat") and content_of(path) == before
    out, _ = ok("label", path, other, "--json")
    assert json.loads(out) == [dict(file=path, eye="OS", pseudonym="P 7", mark="repeat"),
                               dict(file=other, eye="", pseudonym="", mark="")], out
    facts = json.loads(ok("info", path, "--json")[0])
    assert (facts["eye"], facts["pseudonym"], facts["mark"]) == ("OS", "P 7", "repeat")
    assert "mark               repeat\n" in ok("info", path)[0]
    dump = subprocess.run(["h5dump", "-A", path], capture_output=True, text=True)
    assert dump.returncode == 0 and '"repeat"' in dump.stdout, dump.stderr
    ok("check", path)
    ok("label", path, other, "--eye", "none", "--pseudonym=", "--mark", "none")
    assert label_of(path) == label_of(other) == ("", "", "") and content_of(path) == before
    assert content_of(other) == others
    with h5py.File(path, "r") as f:
        assert "mark" not in f.attrs
    with h5py.File(path, "r+") as f:  # other programs go on with it
        f.attrs["note"] = "x" * 3000
        f["more"] = np.arange(9)
        del f.attrs["pseudonym"]
    ok("label", path, "--pseudonym", "again", "--mark", "keep")
    with h5py.File(path, "r") as f:
        assert f.attrs["note"] == "x" * 3000 and (f["more"][:] == np.arange(9)).all()
    assert label_of(path) == ("", "again", "keep")
    again = os.path.join(folder("again"), "again.h5")
    ok("label", other, "--eye", "OD", "--pseudonym", "again")
    ok("recon", other, again, "--force", *BASE)
    assert label_of(again)[:2] == ("OD", "again")  # what is made of it has the corrected label


@case
def refusals():
    """what cannot be is refused in one line, and the other files are done"""
    path = recording()
    part = path + ".part"
    shutil.copy(path, part)
    refused_by("label", 2, "of which file?")
    refused_by("label", 2, "--eye left: it is OD, OS or none", path, "--eye", "left")
    refused_by("label", 2, "--mark bad: it is keep", path, "--mark", "bad")
    refused_by("label", 2, "at most 127", path, path, "--pseudonym", "x" * 128)
    refused_by("label", 2, "control characters", path, "--pseudonym", "a\tb")
    refused_by("label", 1, "still being written", part, "--eye", "OD")
    refused_by("label", 1, "No such file", path + "x", "--eye", "OD")
    got, out, err = run("octctl", "label", part, path, "--eye", "OD")
    assert got == 1 and err.count("\n") == 1 and out.startswith(path + ": eye OD"), (out, err)
    assert label_of(part)[0] == "" and label_of(path)[0] == "OD"
    with h5py.File(path, "r") as f:  # who reads it goes on reading
        ok("label", path, "--eye", "OS")
        assert f.attrs["eye"] == "OD" and f["bscans"][0].any()
    with h5py.File(path, "r+"):
        refused_by("label", 1, "another program writes it", path, "--eye", "OD")
    os.remove(part)
    if os.geteuid() != 0:
        os.chmod(path, 0o444)
        refused_by("label", 1, "Permission denied", path, "--eye", "OD")


@case
def killed_at_random():
    """kill -9 at random moments: the old label or the new one, and every value as it was"""
    path, plan = recording(), os.path.join(folder("plans"), "label")
    before, old = content_of(path), label_of(path)
    env, n_old, n_new, n_ended, middle_s = dict(os.environ), 0, 0, 0, 0.05
    if not SLOW:  # the disk takes its time, so that the kill meets it
        open(plan, "w").write("stall 5")
        env.update(LD_PRELOAD=os.path.abspath(os.path.join(BUILD, "test", "faultio.so")),
                   FAULTIO=plan)
    for number in range(ROUNDS):
        new = (dice.choice(("OD", "OS")), f"P-{number} \u00e4\u65e5",
               dice.choice(("keep", "repeat")))
        label = subprocess.Popen(
            [program("octctl"), "label", path, "--eye", new[0], "--pseudonym", new[1], "--mark",
             new[2]], env=env, stdout=subprocess.DEVNULL)
        time.sleep(dice.uniform(0.6, 1.4) * middle_s)
        label.kill()
        ended_well = label.wait() == 0
        found = label_of(path)
        assert found in (old, new), (found, old, new, seed)
        assert not ended_well or found == new
        is_new = found == new
        n_old, n_new, n_ended = n_old + (not is_new), n_new + (is_new and not ended_well), \
            n_ended + ended_well
        middle_s *= 0.93 if is_new else 1.07  # where the one becomes the other
        old = found
        assert content_of(path) == before, seed
    ok("check", path)
    seen(f"{ROUNDS} kills: {n_old} left the old label, {n_new} the new one, {n_ended} came too "
         f"late (SEED={seed})")
    assert n_old >= ROUNDS // 6 and n_new + n_ended >= ROUNDS // 6


@case
def a_file_of_20_gb():
    """the size of a recording costs nothing: 20 GB, which the disk does not have"""
    path = os.path.join(folder("large"), "large.h5")
    m, n, v = 512, 2048, 9537
    if os.path.exists(path):
        os.remove(path)
    with h5py.File(path, "w") as f:
        space = h5py.h5s.create_simple((v, m, n))
        how = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        how.set_layout(h5py.h5d.CONTIGUOUS)
        how.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
        how.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
        h5py.h5d.create(f.id, b"spectra", h5py.h5t.STD_U16LE, space, how)
        f.attrs["eye"] = "OD"
    size = os.path.getsize(path)
    assert size > 20e9 and os.stat(path).st_blocks * 512 < 1e6
    began = time.monotonic()
    ok("label", path, "--eye", "OS", "--mark", "keep")
    took_s = time.monotonic() - began
    with h5py.File(path, "r") as f:
        assert f.attrs["eye"] == "OS" and f["spectra"].shape == (v, m, n)
    assert os.stat(path).st_blocks * 512 < 1e6 and os.path.getsize(path) < size + 8192
    seen(f"{size * 1e-9:.1f} GB in {took_s * 1e3:.0f} ms")
    os.remove(path)
    assert took_s < (30 if SLOW else 5)


@case
def letters_outside_ascii():
    """pseudonyms and paths in any letters, whatever the locale"""
    there = os.path.join(folder("Aufnahmen \u00fc\u65e5"), "\u0416.h5")
    shutil.copy(recording(), there)
    for number, locale in enumerate(("C", "POSIX", "C.UTF-8", "de_DE.ISO-8859-1", "nowhere")):
        who = f"J\u00fcrgen \u65e5\u672c {number}"
        env = dict(os.environ, LC_ALL=locale)
        done = subprocess.run([program("octctl"), "label", there, "--pseudonym", who], env=env,
                              capture_output=True)
        assert done.returncode == 0 and done.stdout.decode() == \
            f"{there}: eye -, pseudonym {who}, mark -\n", (locale, done)
        assert label_of(there) == ("", who, "")
        done = subprocess.run([program("octctl"), "info", there], env=env, capture_output=True)
        assert f"pseudonym          {who}\n" in done.stdout.decode(), (locale, done)


main()
