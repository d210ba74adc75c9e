#!/usr/bin/python3
"""What was made or removed stays so after a power cut: its folder is synced, and after the change.
test/preload/names.c keeps a journal of both."""
from octfaults import *

HERE = os.path.realpath(os.environ.get("TMPDIR", "/tmp"))
LIBRARY = HERE + "/names.so"


class Journal:
    def __init__(self, name):
        self.path = f"{HERE}/{name}.names"
        if not os.path.exists(LIBRARY):
            subprocess.run(["gcc", "-std=c17", "-O1", "-Wall", "-fPIC", "-shared", "-o", LIBRARY,
                            TOP + "/test/preload/names.c", "-ldl"], check=True)

    def environment(self):
        return environment(LD_PRELOAD=LIBRARY, OCT_NAMES=self.path,
                           ASAN_OPTIONS="verify_asan_link_order=0")

    def lines(self):
        with open(self.path) as file:
            return [tuple(line.rstrip("\n").split(" ", 1)) for line in file]

    def check(self, what, path):
        """The last such change of this name is there, and its folder was synced after it."""
        lines = self.lines()
        at = max((i for i, line in enumerate(lines) if line == (what, path)), default=None)
        assert at is not None, (what, path, lines)
        assert ("sync", os.path.dirname(path)) in lines[at + 1:], (what, path, lines)


def octctl(journal, *arguments):
    with journal.environment():
        status, out, err = run("octctl", *arguments)
    assert status == 0, err


@case
def keys():
    """keygen, allow and allow --remove sync the folder they changed, and a new folder's own"""
    base, journal = folder("keys"), Journal("keys")
    base = os.path.realpath(base)
    allowed = ("--set", f"security.allowed={base}/allowed")
    octctl(journal, "keygen", base + "/desk")
    journal.check("open", base + "/desk.key_secret")
    journal.check("open", base + "/desk.key")
    octctl(journal, "allow", base + "/desk.key", *allowed)
    journal.check("mkdir", base + "/allowed")
    journal.check("link", base + "/allowed/desk.key")
    octctl(journal, "allow", "--remove", "desk", *allowed)
    journal.check("unlink", base + "/allowed/desk.key")


@case
def records():
    """a record folder that octd makes is synced into the folder it lies in"""
    base, journal = os.path.realpath(folder("data")), Journal("records")
    for directory in (base + "/one", base + "/two/"):
        with journal.environment(), Daemon(*BASE, "--set", f"record.directory={directory}") as d:
            d.wait(lambda s: s["state"] == "running")
            assert d.ask("record", action="start")["ok"]
            until(lambda: os.path.isdir(directory), "the folder")
            d.wait(lambda s: s["record"]["active"])
            assert d.end() == 0, d.log()
        lines = journal.lines()
        assert ("mkdir", directory) in lines, lines
        assert ("sync", base) in lines[lines.index(("mkdir", directory)) + 1:], lines


main()
