#!/usr/bin/python3
"""make install: what lies where, by a user who may write nowhere else, and that it can be used."""
import contextlib, os, re, shutil, subprocess, tempfile
from octtest import BUILD, SLOW, TOP, case, main

DRIVER = """
#include <octd/client.h>
#include <stdio.h>

int main(void)
{
    const struct oct_client_options options = {.wait_ms = 1, .linger_ms = 1};
    struct oct_client *client;
    char error[256];
    int status = oct_client_connect(&client, "carrier:pigeon", 832, &options, error,
                                    sizeof(error));
    printf("%d %s\\n", status, error);
    return 0;
}
"""
# A program and a library: what it was built against is what runs.
LAB = """
#include <octd/octd.h>
#include <stdio.h>

int main(void)
{
    struct octd_recon *recon = octd_recon_create();
    int status = octd_recon_start(recon);
    printf("%s %d %d %s\\n", octd_version(), octd_api_version() == OCTD_API_VERSION, status,
           octd_recon_error(recon));
    octd_recon_destroy(recon);
    return 0;
}
"""
PROGRAMS = ("octd", "octview", "octctl", "push_lines")
if os.path.exists(os.path.join(BUILD, "octgenicam")):  # where aravis is
    PROGRAMS += ("octgenicam",)
if os.path.exists(os.path.join(BUILD, "octweb")):  # where libwebsockets is
    PROGRAMS += ("octweb",)


@contextlib.contextmanager
def tree():
    """A copy of what make install takes, which anyone may read, and a folder that anyone may write;
    the rest of the machine is not theirs."""
    top = tempfile.mkdtemp(prefix="octd-test-install-", dir="/tmp")
    try:
        shutil.copy(TOP + "/Makefile", top)
        shutil.copy(TOP + "/README.md", top)
        for name in ("config", "docs", "kernels", "pipeline", "python", "scripts"):
            shutil.copytree(os.path.join(TOP, name), os.path.join(top, name))
        os.mkdir(top + "/build")
        for name in PROGRAMS + ("liboctclient.a", "liboctd.so.0"):
            shutil.copy(os.path.join(BUILD, name), top + "/build")
        subprocess.run(["chmod", "-R", "a+rX", top], check=True)
        os.mkdir(top + "/to")
        os.chmod(top + "/to", 0o777)
        os.chmod(top + "/build", 0o777)  # theirs: make notes there how it built
        yield top
    finally:
        shutil.rmtree(top)


def nobody():
    """What makes of the next command one of an ordinary user."""
    if os.getuid() != 0:
        return []
    return ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]


def install(top, *settings):
    """As an ordinary user: whatever is written outside fails it. -o: all is built."""
    environment = {k: v for k, v in os.environ.items()
                   if not k.startswith("MAKE") and k not in ("MFLAGS", "BUILD", "PREFIX")}
    done = subprocess.run([*nobody(), "make", "-o", "all", "install", "BUILD=build", "CUDA=0",
                           *settings], cwd=top, text=True,
                          env=dict(environment, HOME="/nonexistent", TMPDIR="/tmp"),
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout
    return done.stdout


def files_in(folder):
    return sorted(os.path.relpath(os.path.join(where, name), folder)
                  for where, _, names in os.walk(folder) for name in names)


@case
def of_a_user():
    """an ordinary user installs everything under PREFIX, and a driver is built against it"""
    with tree() as top:
        prefix = top + "/to/octd"
        install(top, "PREFIX=" + prefix)
        there = files_in(prefix)
        wanted = [f"bin/{name}" for name in PROGRAMS]
        wanted += ["include/octd/octd.h", "lib/liboctd.so.0", "lib/liboctd.so",
                   "lib/pkgconfig/octd.pc", "lib/python3/dist-packages/octd/py.typed",
                   "share/doc/octd/examples/python/recon_array.py"]
        wanted += ["etc/octd/octd.ini", "include/octd/client.h", "lib/liboctclient.a",
                   "lib/pkgconfig/octclient.pc", "lib/systemd/system/octd.service",
                   "lib/systemd/system/octd-archive@.service",
                   "share/bash-completion/completions/octctl",
                   "share/bash-completion/completions/octview",
                   "share/zsh/site-functions/_octctl",
                   "share/man/man1/octctl.1", "share/man/man1/octctl-recon.1", "share/doc/octd/README.md",
                   "share/doc/octd/examples/push_lines.py"]
        assert not set(wanted) - set(there), (set(wanted) - set(there), there)
        assert os.stat(prefix + "/etc/octd/keys").st_mode & 0o777 == 0o700
        pages = {name for name in there if name.startswith("share/man/man1/octctl-")}
        said = subprocess.run([prefix + "/bin/octctl", "--help"], check=True, text=True,
                              stdout=subprocess.PIPE).stdout.split("\noptions")[0]
        assert pages == {f"share/man/man1/octctl-{name}.1" for name in
                         re.findall(r"^  ([a-z][a-z-]*) ", said, re.M) if name != "help"}, pages
        assert files_in(top + "/to") == ["octd/" + name for name in there]
        unit = open(prefix + "/lib/systemd/system/octd.service").read()
        assert f"ExecStart={prefix}/bin/octd --config {prefix}/etc/octd/octd.ini\n" in unit
        assert "@" not in unit.replace("@system-service", "").replace("@privileged", "") \
            .replace("@resources", "").replace("@chown", ""), unit
        version = subprocess.run([prefix + "/bin/octctl", "--version"], check=True, text=True,
                                 stdout=subprocess.PIPE).stdout.split()[1]
        where = dict(os.environ, PKG_CONFIG_PATH=prefix + "/lib/pkgconfig")

        def ask(*options, package="octclient"):
            return subprocess.run(["pkg-config", *options, package], check=True, env=where,
                                  text=True, stdout=subprocess.PIPE).stdout.split()
        assert ask("--modversion") == [version]
        for name in "bash-completion/completions/octd", "zsh/site-functions/_octctl":
            script = open(f"{prefix}/share/{name}").read()
            assert "completion --list" in script, script[:200]
        install(top, "PREFIX=" + prefix)  # again: the configuration that stands is kept
        if SLOW:
            return  # the archive wants its sanitizer
        open(top + "/to/driver.c", "w").write(DRIVER)
        subprocess.run(["cc", "-o", top + "/to/driver", top + "/to/driver.c",
                        *ask("--cflags", "--libs")], check=True)
        said = subprocess.run([top + "/to/driver"], check=True, text=True,
                              stdout=subprocess.PIPE).stdout
        assert "carrier:pigeon" in said, said
        assert ask("--modversion", package="octd") == [version]
        open(top + "/to/lab.c", "w").write(LAB)
        for compiler in ["cc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic"], \
                ["c++", "-Wall", "-Wextra", "-Werror", "-x", "c++"]:
            subprocess.run([*compiler, "-o", top + "/to/lab", top + "/to/lab.c", "-x", "none",
                            *ask("--cflags", "--libs", package="octd"),
                            f"-Wl,-rpath,{prefix}/lib"], check=True)
            said = subprocess.run([top + "/to/lab"], check=True, text=True,
                                  stdout=subprocess.PIPE).stdout
            assert said.startswith(f"{version} 1 2 calibration.wavelengths is not set"), said
        python_of_a_user(prefix, version)


def python_of_a_user(prefix, version):
    """The package that lies under PREFIX takes the library beside it, and its examples run."""
    environment = {name: value for name, value in os.environ.items() if name != "OCTD_LIBRARY"}
    environment["PYTHONPATH"] = prefix + "/lib/python3/dist-packages"

    def python(*arguments):
        return subprocess.run([*nobody(), "/usr/bin/python3", *arguments], check=True, text=True,
                              env=dict(environment, HOME="/nonexistent"), cwd="/",
                              stdout=subprocess.PIPE).stdout
    said = python("-c", "import octd; print(octd.library_path(), octd.library_version(), "
                  "octd.__version__)")
    assert said.split() == [prefix + "/lib/liboctd.so.0", version, version], said
    said = python("-c", "import importlib.metadata as m; print(*m.entry_points(group='napari.manifest'))")
    assert "value='octd:napari.json'" in said, said
    said = python(prefix + "/share/doc/octd/examples/python/recon_array.py")
    assert "brightest at depth pixel" in said, said


@case
def of_a_system():
    """DESTDIR holds a system's PREFIX, whose configuration lies in /etc; what stands is kept"""
    with tree() as top:
        for prefix in ("/usr", "/usr/local"):
            to = top + "/to/" + prefix.replace("/", "_")
            install(top, "PREFIX=" + prefix, "DESTDIR=" + to)
            there = files_in(to)
            assert prefix[1:] + "/bin/octd" in there and "etc/octd/octd.ini" in there, there
            assert all(name.startswith((prefix[1:] + "/", "etc/octd/")) for name in there), there
            unit = open(to + prefix + "/lib/systemd/system/octd.service").read()
            assert f"ExecStart={prefix}/bin/octd --config /etc/octd/octd.ini\n" in unit
            for package in "octclient", "octd":
                assert f"prefix={prefix}\n" in \
                    open(f"{to}{prefix}/lib/pkgconfig/{package}.pc").read()
        open(to + "/etc/octd/octd.ini", "w").write("; mine\n")
        install(top, "PREFIX=/usr/local", "DESTDIR=" + to)
        assert open(to + "/etc/octd/octd.ini").read() == "; mine\n"


main()
