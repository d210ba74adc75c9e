#!/usr/bin/python3
"""octctl bench: every part checks what it made, times it beside a limit and reports both."""
from octtest import *

SMALL = settings(scan=dict(lines=60, bscans=20), pipeline=dict(crop_last=512, ring_bscans=16))


def bench(*words):
    where = folder("bench")
    return run("octctl", "bench", *words, "--seconds", "0.1", "--size-gb", "0.1", *SMALL,
               "--set", f"record.directory={where}", timeout=300)


@case
def parts():
    """the parts that are named are measured, each with its limit, and nothing is left behind"""
    status, out, err = bench("recorder", "ingest", "shm", "start", "latency", "--json")
    assert status == 0, (out, err)
    rows = {row["part"]: row for row in json.loads(out)["parts"]}
    assert set(rows) == {"recorder", "ingest", "shm", "start", "latency"}
    for row in rows.values():
        assert row["value"] > 0 and row["limit"] > 0, row
        assert abs(row["ratio"] - row["value"] / row["limit"]) < 1e-9 and row["what"], row
    assert os.listdir(folder("bench")) == []
    assert not [name for name in os.listdir("/dev/shm") if name.startswith("octd.bench-")]


@case
def table():
    """the table has one line a figure"""
    status, out, err = bench("shm", "ingest")
    assert status == 0, (out, err)
    assert [line.split()[0] for line in out.splitlines() if line] == ["part", "ingest", "shm"], out


@case
def refused():
    """a part that there is not, and a size without sense, are refused with status 2"""
    for words in (["nosuch"], ["--size-gb", "-1"], ["--seconds", "x"], ["--nosuch"]):
        status, out, err = run("octctl", "bench", *words)
        assert status == 2 and err.count("\n") == 1, (words, status, err)


@case
def full_disk():
    """a folder without room is said before anything is written"""
    status, out, err = run("octctl", "bench", "recorder", "--size-gb", "1000", *SMALL, "--set",
                           f"record.directory={folder('bench')}", timeout=60)
    assert status == 1 and "--size-gb" in err, err
    assert os.listdir(folder("bench")) == []


main()
