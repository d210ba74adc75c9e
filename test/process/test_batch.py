#!/usr/bin/python3
"""octctl batch on a real Slurm cluster of this host: slurmctld, slurmd and munged."""
import glob, json, shlex, shutil
import h5py, numpy as np
from slurmrig import *

N, LINES, SAMPLES = 200, 8, 128
SETTINGS = ["--set", f"camera.samples={SAMPLES}", "--set", f"scan.lines={LINES}",
            "--set", "pipeline.range=manual"]
BROKEN = 17, 122
# What shells and parsers stumble over; the last is no text in UTF-8.
STRANGE = ["with space", "quote ' and \" two", "line\nend", "$HOME `id` $(id) \\ ; & | > *?[a]",
           "-dash", "100%j", os.fsdecode(b"bytes \xff\xfe")]


def batch(slurm, *arguments, status=0):
    """octctl batch; what it printed."""
    done = subprocess.run([program("octctl"), "batch", *arguments], env=slurm.environment,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=PATIENCE_S)
    assert done.returncode == status, (arguments, done)
    return (done.stdout if status != 2 else done.stderr).decode(errors="surrogateescape")


def samples(path, seed, n_bscans=2):
    values = np.random.default_rng(seed).integers(0, 4000, (n_bscans, LINES, SAMPLES), np.uint16)
    open(path, "wb").write(values.tobytes())


def recordings(base, n=N):
    """n recordings, of which those of BROKEN are no multiple of a B-scan; their names."""
    calibration = os.path.join(base, "kmap.txt")
    os.makedirs(os.path.join(base, "in"))
    np.savetxt(calibration, np.linspace(0, SAMPLES - 1, 64))
    names = [STRANGE[i] if i < len(STRANGE) else f"eye{i}" for i in range(n)]
    paths = [os.path.join(base, "in", name + ".raw") for name in names]
    for i, path in enumerate(paths):
        samples(path, i)
        if i in BROKEN:
            os.truncate(path, os.path.getsize(path) - 10)
    return paths, ["--set", "calibration.kmap=" + calibration, *SETTINGS]


def output(base, path):
    return os.path.join(base, "out", os.path.basename(path)[:-4] + ".h5")


def pictures(path):
    with h5py.File(os.fsencode(path), "r") as file:
        return file["bscans"][()]


def manifest(base):
    with open(os.path.join(base, "out", "octctl-batch", "manifest.json"), "rb") as file:
        tree = json.loads(file.read().decode(errors="surrogateescape"))
    return tree, {item["in"]: item for item in tree["recordings"]}


def states(base):
    found = {}
    for item in manifest(base)[1].values():
        found[item["state"]] = found.get(item["state"], 0) + 1
    return found


def alone(base, path):
    """What a single octctl recon makes."""
    out = os.path.join(base, "alone.h5")
    settings = os.path.join(base, "out", "octctl-batch", "octd.ini")
    ok("recon", path, out, "--force", "--config", settings)
    return out


def slow_octctl(base):
    """octctl that never comes to its end in task 3 of the first submission."""
    path, quoted = os.path.join(base, "octctl"), shlex.quote(base)
    with open(path, "w") as file:
        file.write(f"""#!/bin/bash
if [ "$SLURM_ARRAY_TASK_ID" = 3 ] && [ ! -e {quoted}/killed ]; then
    printf junk >{quoted}/out/eye23.h5.new.4711.part
    touch {quoted}/began
    exec sleep 600
fi
exec {shlex.quote(os.path.abspath(program("octctl")))} "$@"
""")
    os.chmod(path, 0o755)
    return path


@case
def two_hundred():
    """200 recordings, 2 of them broken, a task killed: 198 right, 2 named, resumed what is left"""
    with slurm("batch-slurm") as cluster:
        base = os.path.join(cluster.folder, "data 'of' $HOME \"%A\"")
        os.makedirs(base)
        paths, settings = recordings(base)
        cluster.environment["OCTCTL"] = slow_octctl(base)
        out = batch(cluster, *paths, "--out-dir", os.path.join(base, "out"), *settings,
                    "--tasks", "10", "--sbatch=--comment=two words", "--sbatch", "--time=5")
        job = out.split()[-1]
        assert "200 to do" in out and "10 tasks, submitted as job" in out, out
        comment = cluster.client("scontrol", "show", "job", job)
        assert "Comment=two words" in comment and "TimeLimit=00:05:00" in comment, comment
        kill_one(cluster, base, job)
        broken = [paths[i] for i in BROKEN]
        missing = [path for k, path in enumerate(paths) if k % 10 == 3]
        check_killed(cluster, base, broken, missing)
        check_resumed(cluster, base, paths, broken, missing)


def kill_one(cluster, base, job):
    until(lambda: os.path.exists(os.path.join(base, "began")), "task 3")
    shown = batch(cluster, "--status", os.path.join(base, "out"), status=1)
    assert " queued" in shown and " 0 queued" not in shown, shown
    open(os.path.join(base, "killed"), "w").close()
    cluster.client("scancel", "--full", "--signal=KILL", job + "_3")
    cluster.await_end()


def check_killed(cluster, base, broken, missing):
    shown = batch(cluster, "--status", os.path.join(base, "out"), status=1)
    assert ": 200 recordings: 178 done, 2 failed, 20 missing, 0 queued, 0 to do" in shown, shown
    for path in broken:
        assert f"failed {path}: " in shown and "bytes too many" in shown, shown
        assert shown.count(path) == 1, shown
    items = manifest(base)[1]
    assert {i for i in items if items[i]["state"] == "failed"} == set(broken)
    assert {i for i in items if items[i]["state"] == "missing"} == set(missing)
    assert not any(os.path.exists(output(base, path)) for path in missing + broken)


def check_resumed(cluster, base, paths, broken, missing):
    out = os.path.join(base, "out")
    made = {path: os.stat(output(base, path)).st_mtime_ns for path in paths
            if path not in broken + missing}
    assert "2 tasks, submitted as job" in batch(cluster, "--resume", out)
    cluster.await_end()
    again = b"".join(open(name, "rb").read() for name in
                     glob.glob(os.path.join(out, "octctl-batch", "2-*.files")))
    assert set(again.split(b"\0")) - {b""} == set(map(os.fsencode, broken + missing))
    assert {path: os.stat(output(base, path)).st_mtime_ns for path in made} == made
    shown = batch(cluster, "--status", out, status=1)
    assert ": 200 recordings: 198 done, 2 failed, 0 missing, 0 queued, 0 to do" in shown, shown
    assert states(base) == {"done": 198, "failed": 2}
    left = [name for name in os.listdir(out) if not name.endswith(".h5")]
    assert left == ["octctl-batch"], left
    for path in paths[:len(STRANGE)] + paths[20:200:23] + missing[:3]:
        if path not in broken:
            assert np.array_equal(pictures(output(base, path)), pictures(alone(base, path))), path
    check_all(base, paths, broken)


def check_all(base, paths, broken):
    """Against octctl recon of all in one run."""
    loop = os.path.join(base, "loop")
    names = os.path.join(base, "names")
    good = [path for path in paths if path not in broken]
    open(names, "wb").write(b"".join(os.fsencode(path) + b"\0" for path in good))
    settings = ["--config", os.path.join(base, "out", "octctl-batch", "octd.ini")]
    ok("recon", "--files0-from", names, "--out-dir", loop, *settings)
    for path in good:
        mine = os.path.join(loop, os.path.basename(output(base, path)))
        assert np.array_equal(pictures(mine), pictures(output(base, path))), path


def without_slurm(path=""):
    """An environment whose PATH has a folder of no use."""
    empty = folder("batch-no-path")
    return type("Environment", (), {"environment": dict(os.environ, PATH=path or empty)})


def small_batch(name, n=5, *more):
    base = folder(name)
    shutil.rmtree(base)
    paths, settings = recordings(base, n)
    shown = batch(without_slurm(), *paths, "--out-dir", os.path.join(base, "out"), *settings,
                  "--dry-run", *more)
    return base, paths, shown


def run_task(base, task, submission=1, job="77"):
    """A task as Slurm would run it, but by nobody's order."""
    script = os.path.join(base, "out", "octctl-batch", f"{submission}.sbatch")
    subprocess.run(["bash", script], check=False, timeout=PATIENCE_S, stdin=subprocess.DEVNULL,
                   env=dict(os.environ, SLURM_ARRAY_JOB_ID=job, SLURM_CPUS_ON_NODE="1",
                            SLURM_ARRAY_TASK_ID=str(task)))


@case
def no_slurm():
    """without sbatch in PATH a batch is refused before any work, but for --dry-run"""
    base = folder("batch-none")
    path = os.path.join(base, "eye.raw")
    samples(path, 1)
    out = os.path.join(base, "out")
    done = subprocess.run([program("octctl"), "batch", path, "--out-dir", out],
                          env=without_slurm().environment, capture_output=True, timeout=PATIENCE_S)
    assert done.returncode == 1 and b"sbatch is not in PATH" in done.stderr, done
    assert not os.path.exists(out)


@case
def dry_run():
    """--dry-run writes script and lists; tasks that somebody starts are told by what they wrote"""
    base, paths, shown = small_batch("batch-dry", 9, "--files-per-task", "3")
    out = os.path.join(base, "out")
    assert "9 to do" in shown and "3 tasks, not submitted" in shown, shown
    assert states(base) == {"todo": 9}
    run_task(base, 1)
    assert "3 done, 0 failed, 0 missing, 0 queued, 6 to do" in \
        batch(without_slurm(), "--status", out, status=1)
    text = open(os.path.join(out, "octctl-batch", "1-1.log")).read()
    assert "3 done, 0 skipped, 0 failed" in text, text
    os.remove(output(base, paths[1]))
    shown = batch(without_slurm(), "--status", out, status=1)
    assert "1 missing" in shown and "its output was removed" in shown, shown
    shown = batch(without_slurm(), "--resume", out, "--dry-run", "--tasks", "2")
    assert "2.sbatch: 2 tasks" in shown, shown
    run_task(base, 0, 2)
    run_task(base, 1, 2)
    assert "9 recordings: 9 done" in batch(without_slurm(), "--status", out)
    tree = json.loads(batch(without_slurm(), "--status", out, "--json"))
    assert [item["state"] for item in tree["recordings"]] == ["done"] * 9
    shown = batch(without_slurm(), "--resume", out, "--dry-run")
    assert "sbatch" not in shown, shown  # nothing is left


@case
def cut_short():
    """what a task left when it was killed, or could not run octctl, is missing and says so"""
    base, paths, _ = small_batch("batch-cut", 4, "--tasks", "2")
    out, files = os.path.join(base, "out"), os.path.join(base, "out", "octctl-batch")
    open(os.path.join(files, "1-0.results"), "w").write("begin 77_0 host\n0 done\n1 do")
    os.environ["OCTCTL"] = "/nonexistent/octctl"
    run_task(base, 1)
    del os.environ["OCTCTL"]
    shown = batch(without_slurm(), "--status", out, status=1)
    # Of task 0 both: the line says done, but there is no output.
    assert "0 done, 0 failed, 4 missing" in shown, shown
    assert shown.count("its task ended with status 127") == 2, shown
    with open(os.path.join(files, "1-0.results"), "w") as f:
        f.write("begin 77_0 host\n0 failed \x1b]0;owned\x07\x1b[2J\x9b31m bad\xff\n")
    shown = batch(without_slurm(), "--status", out, status=1)
    assert "failed" in shown and "?]0;owned??[2J" in shown and not set(shown) & set("\x1b\x07\x9b"), \
        repr(shown)
    open(os.path.join(files, "1-0.results"), "w").write("begin 77_0 host\n0 done\n1 do")
    open(output(base, paths[1]), "w").write("not HDF5")
    shutil.copy(alone(base, paths[2]), output(base, paths[2]))
    shown = batch(without_slurm(), "--status", out, status=1)
    assert "1 done" in shown and "3 missing" in shown, shown
    ends = [".new.12", ".new.12.part", ".new.12.txt", ".new.2nd", ".new."]
    for end in ends:
        open(output(base, paths[0]) + end, "w").close()
    batch(without_slurm(), "--resume", out, "--dry-run")
    assert [end for end in ends if os.path.exists(output(base, paths[0]) + end)] == ends[2:]


@case
def damaged():
    """a manifest that is damaged is refused in one line; a batch is not begun twice"""
    base, paths, _ = small_batch("batch-damaged", 3)
    out = os.path.join(base, "out")
    path = os.path.join(out, "octctl-batch", "manifest.json")
    good = open(path).read()
    assert "has a batch already" in refused(1, *paths, "--out-dir", out, "--dry-run")
    tree = json.loads(good)
    for change in ("", "{", "[]", "null", "{}", good[:len(good) // 2],
                   '{"recordings": []}', '{"recordings": [1]}', '{"recordings": {"in": "/a"}}',
                   changed(tree, "submissions", [{"tasks": 0, "job": ""}]),
                   changed(tree, "submissions", [{"tasks": 1e300, "job": ""}]),
                   changed(tree, "submissions", [{"tasks": 1, "job": "7; rm"}]),
                   changed(tree, "submissions", [{"tasks": 1, "job": "7" * 40}]),
                   changed(tree, "submissions", [{"tasks": 1}]),
                   changed(tree, "submissions", ["1"]),
                   changed(tree, "recordings", [{"in": "a", "out": "/b"}]),
                   changed(tree, "recordings", [{"in": "/a"}]),
                   changed(tree, "recordings", [{"in": 1, "out": 2}]),
                   changed(tree, "recordings", "x")):
        open(path, "w").write(change)
        said = refused(1, "--status", out)
        assert "is no manifest of a batch" in said, (change[:80], said)
    open(path, "w").write(good)
    batch(without_slurm(), "--status", out, status=1)
    os.remove(path)
    assert "holds no batch" in refused(1, "--status", out)


def changed(tree, key, value):
    return json.dumps(dict(tree, **{key: value}))


def refused(status, *arguments):
    done = subprocess.run([program("octctl"), "batch", *arguments], capture_output=True,
                          env=without_slurm().environment, timeout=PATIENCE_S)
    text = done.stderr.decode(errors="replace")
    assert done.returncode == status and text.count("\n") == 1, (arguments, done)
    return text


@case
def misuse():
    """options that do not go together, and two recordings of one name, are refused"""
    base = folder("batch-misuse")
    out = os.path.join(base, "out")
    for words, arguments in (
            ("--out-dir D is missing", ["a.raw"]),
            ("no recording is named", ["--out-dir", out, "--dry-run"]),
            ("two commands", ["--status", out, "--resume", out]),
            ("no recordings and no --out-dir", ["a.raw", "--status", out]),
            ("exclude one another", ["a.raw", "--out-dir", out, "--tasks", "1",
                                     "--files-per-task", "2"]),
            ("--tasks needs", ["a.raw", "--out-dir", out, "--tasks", "0"]),
            ("--json goes with --status", ["a.raw", "--out-dir", out, "--json"]),
            ("needs an option of sbatch", ["a.raw", "--out-dir", out, "--dry-run",
                                           "--sbatch=--comment=a\nb"]),
            ("both would become", ["a/eye.raw", "b/eye.bin", "--out-dir", out, "--dry-run"])):
        assert words in refused(2, *arguments), (words, refused(2, *arguments))
    assert not glob.glob(out + "/*/manifest.json")


if __name__ == "__main__":
    main()
