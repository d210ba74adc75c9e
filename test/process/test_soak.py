#!/usr/bin/python3
"""scripts/soak, for seconds: it passes with an octd that is well, and says so when one is not. The
runs mostly wait for their seconds to pass: three are under way at a time."""
import concurrent.futures
from octtest import *

if SLOW:
    def skipped():
        """scripts/soak under a sanitizer: memory there grows by design"""
        raise Skip("not under a sanitizer")
    case(skipped)
    main()

LEAK = r"""
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static void *sleeper(void *unused)
{
    pause();
    return unused;
}
static void *leak(void *unused)
{
    for (unsigned i = 0;; i++) {
        pthread_t thread;
        char *lost = malloc(1 << 20);
        if (lost)
            memset(lost, 1, 1 << 20);
        if (i % 8 == 0)
            pthread_create(&thread, NULL, sleeper, NULL);
        usleep(50000);
    }
    return unused;
}
__attribute__((constructor)) static void begin(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, leak, NULL);
}
"""

SLOW_DISK = r"""
#include <sys/syscall.h>
#include <unistd.h>
static int slowly(long call, int fd)
{
    usleep(300000);
    return syscall(call, fd);
}
int fsync(int fd) { return slowly(SYS_fsync, fd); }
int fdatasync(int fd) { return slowly(SYS_fdatasync, fd); }
"""

ENDS_AT_RECORD = r"""
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
int mkdir(const char *path, mode_t mode)
{
    if (strstr(path, "/records"))
        raise(SIGKILL);
    return syscall(SYS_mkdir, path, mode);
}
"""


def preloaded(name, text):
    """The octd that runs with this library."""
    library = os.path.join(folder(name), "preloaded.so")
    with open(library + ".c", "w") as source:
        source.write(text)
    subprocess.run(["gcc", "-O1", "-fPIC", "-shared", "-pthread", "-o", library, library + ".c"],
                   check=True)
    return f"""LD_PRELOAD={library} exec {{real}} "$@" """


def soak(name, seconds=6, guests=False, **wrapped):
    """Runs it with programs of which some are shell scripts: {real} is the program itself."""
    build = folder("soak-" + name)
    programs = ("octd", "octctl", *(("octview", "octweb") if guests else ()))
    for program_name in programs:
        path, real = os.path.join(build, program_name), os.path.abspath(program(program_name))
        if program_name in wrapped:
            with open(path, "w") as script:
                script.write("#!/bin/bash\n" + wrapped[program_name].replace("{real}", real))
            os.chmod(path, 0o755)
        else:
            os.symlink(real, path)
    done = subprocess.run(
        [os.path.join(TOP, "scripts", "soak"), "--hours", str(seconds / 3600), "--rate",
         "4000", "--lines", "40", "--bscans", "100", "--directory", build,
         "--set", "record.buffer_s=5", *(["--set", "analysis.run="] if guests else ["--alone"])],
        env=dict(os.environ, BUILD=os.path.abspath(build)), stdout=subprocess.PIPE, timeout=300)
    if done.returncode == 2:
        raise Skip("there is no octview, octweb, Xvfb, xdotool or chromium")
    left = sorted(set(os.listdir(build)) - set(programs))
    assert len(left) == 1, f"not its table alone left behind: {left}"
    assert open(os.path.join(build, left[0])).read() == done.stdout.decode().lstrip("\n")
    return done.returncode, done.stdout.decode()


DAMAGING = """
    if [ "$1" = check ]; then
        printf 'x' | dd of="${@: -1}" bs=1 seek=1000000 conv=notrunc status=none
    fi
    exec {real} "$@" """

STOPPING = """
    if [ "$1" = replay ]; then exec {real} "${@/--loop/--strict}"; fi
    exec {real} "$@" """

PID = os.path.join(folder("killed"), "pid")

KILLING = f"""
    if [ "$1" = replay ]; then (sleep 2; kill -KILL "$(cat {PID})") >/dev/null & fi
    exec {{real}} "$@" """

ENDING = """exec timeout -s KILL 1 {real} "$@" """

POOL = concurrent.futures.ThreadPoolExecutor(max_workers=3)
RUNS = {name: POOL.submit(soak, name, **wrapped) for name, wrapped in dict(
    killed=dict(octd=f"""echo $$ > {PID}; exec {{real}} "$@" """, octctl=KILLING),
    well=dict(),
    killed_at_once=dict(octd=preloaded("killed-at-once", ENDS_AT_RECORD)),
    damaged=dict(octctl=DAMAGING),
    stops=dict(octctl=STOPPING),
    unwritten=dict(octd="""ulimit -f 1000; exec {real} "$@" """),
    slow_disk=dict(octd=preloaded("slow-disk", SLOW_DISK)),
    leaking=dict(octd=preloaded("leaking", LEAK)),
    guests=dict(guests=True, seconds=12),
    guest_ends=dict(guests=True, octview=ENDING)).items()}


def numbers(out, row):
    """What stands in a row of the table."""
    line = next(line for line in out.splitlines() if line.startswith("| " + row))
    return [int(n.replace(",", "")) for n in line.split("|")[2].split(", ")]


def fails(name, *texts):
    status, out = RUNS[name].result()
    assert status == 1 and "soak: FAILED" in out, out
    said = [line for line in out.splitlines() if line.startswith("soak: ")]
    for text in texts:
        assert any(text in line for line in said), out


@case
def well():
    """nothing is lost and nothing grows: status 0 and a table"""
    status, out = RUNS["well"].result()
    assert status == 0 and "soak: passed" in out, out
    sent, received, missing = numbers(out, "A-lines sent")
    assert sent == received > 4000 * 4 and missing == 0, out
    checked, right, whole = numbers(out, "volumes checked")
    assert checked == right >= 3 and whole >= checked - 1, out


@case
def damaged():
    """a bit that falls over on the disk is found"""
    fails("damaged", "files not right")


@case
def sender_stops():
    """lines that stop coming are noticed"""
    fails("stops", "replay ended")


@case
def unwritten():
    """a recording that ends before the run does is noticed"""
    fails("unwritten", "B-scans not written")


@case
def killed():
    """an octd that dies is noticed"""
    fails("killed", "octd ended")


@case
def killed_at_once():
    """an octd that dies as the recording begins is noticed, in words"""
    fails("killed_at_once", "no reply to record", "octd ended")


@case
def slow_disk():
    """a disk that takes long to close a file is no growth, though two files are open then; memory,
    which a busy machine lets rise, is not judged in these seconds"""
    out = RUNS["slow_disk"].result()[1]
    said = {line for line in out.splitlines() if line.startswith("soak: ")}
    assert said <= {"soak: passed", "soak: memory grows", "soak: FAILED"}, out


@case
def leaking():
    """memory and threads that grow are noticed"""
    fails("leaking", "memory grows", "threads grow")


@case
def guests():
    """viewers that come and go, a browser that stays and three recordings stand in the table"""
    status, out = RUNS["guests"].result()
    assert status == 0 and "soak: passed" in out, out
    started, showed = numbers(out, "octview started")
    assert started >= 3 and showed >= 2, out
    assert numbers(out, "pictures that the browser drew")[0] > 0, out
    n, offered, between = numbers(out, "recordings, ")
    assert n == 3 and offered > 400 and between > 0, out


@case
def guest_ends():
    """a viewer that ends by itself is noticed"""
    fails("guest_ends", "octview ended by itself: status -9")


main()
