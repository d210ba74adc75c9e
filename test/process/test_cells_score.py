#!/usr/bin/python3
"""octctl cells-score: tracks judged by the truth, and tables that are none."""
from octtest import *

import math
import threading

WHERE = folder("cells-score")
TRUTH_HEADER = "track,frame,time_s,x_px,y_px,x_um,y_um,radius_px"


def table(name, text):
    path = os.path.join(WHERE, name)
    with open(path, "wb") as file:
        file.write(text if isinstance(text, bytes) else text.encode())
    return path


def score(truth, found, *words):
    status, out, err = run("octctl", "cells-score", truth, found, "--json", *words)
    assert status == 0 and err == "", (status, out, err)
    return json.loads(out)


def truth_of(cells):
    """cells: (track, frame, x, y)"""
    rows = [f"{k},{t},{t / 30},{x},{y},,,10" for k, t, x, y in cells]
    return table("truth.csv", "\n".join([TRUTH_HEADER] + rows) + "\n")


def found_of(cells, name="found.csv"):
    rows = [f"{k},{t},{x},{y}" for k, t, x, y in cells]
    return table(name, "\n".join(["track,frame,x_px,y_px"] + rows) + "\n")


FIVE = [(1, 0, 10, 10), (1, 1, 12, 10), (1, 2, 14, 10), (2, 0, 100, 50), (2, 1, 100, 50)]


@case
def counts():
    """a miss, a false positive, a switch and an error of 3 px give the numbers of their definitions"""
    found = found_of([(7, 0, 10, 13), (7, 1, 12, 10), (8, 2, 14, 10), (9, 0, 100, 50), (5, 4, 3, 3)])
    result = score(truth_of(FIVE), found)
    assert {k: result[k] for k in ("true", "found", "matches", "misses", "false_positives",
                                   "switches")} == dict(
        true=5, found=5, matches=4, misses=1, false_positives=1, switches=1), result
    assert result["precision"] == 0.8 and result["recall"] == 0.8, result
    assert abs(result["mota"] - (1 - 3 / 5)) < 1e-12, result
    assert abs(result["rmse_px"] - math.sqrt(9 / 4)) < 1e-12, result
    assert result["within_px"] == 5 and result["true_left_out"] == result["found_left_out"] == 0
    status, out, err = run("octctl", "cells-score", truth_of(FIVE), found)
    assert status == 0 and out == (
        "true cells 5, found 5: matches 4, misses 1, false positives 1, switches 1\n"
        "precision 0.8000, recall 0.8000, rmse 1.500 px, MOTA 0.4000\n"), out


@case
def within():
    """a cell farther away than --within is none"""
    found = found_of([(k, t, x + 2, y) for k, t, x, y in FIVE])
    assert score(truth_of(FIVE), found, "--within", 2)["matches"] == 5
    result = score(truth_of(FIVE), found, "--within", 1.9)
    assert result["matches"] == 0 and result["rmse_px"] is None and result["mota"] == -1, result


@case
def names_order_and_quotes():
    """columns by their names in any order, other columns, quotes, CRLF and blank lines"""
    mark = b"\xef\xbb\xbf"
    text = ('"Y","a note, with ""quotes""",id,T , x_px,x\r\n'
            '10,"two\r\nlines",4,2,14,999\r\n\r\n50,,,1.0,1e2,0\r\n'
            '50,,6,0,100.0,0\r\n10,,4,1,12,0\r\n"10",,4,0,"10",0')
    result = score(truth_of(FIVE), table("odd.csv", mark + text.encode()))
    assert result["matches"] == 5 and result["switches"] == 0 and result["rmse_px"] == 0, result
    plain = table("plain.csv", "t,track_id,x,y\n0,0,10,10\n1,0,12,10\n2,0,14,10\n")
    assert score(plain, plain)["mota"] == 1


@case
def pipes():
    """a table that comes through a pipe is the table, with a byte order mark or without"""
    truth, path = truth_of(FIVE), os.path.join(WHERE, "pipe")
    for mark in (b"", b"\xef\xbb\xbf"):
        with open(found_of(FIVE), "rb") as file:
            text = mark + file.read()
        os.mkfifo(path)
        writer = threading.Thread(target=lambda: open(path, "wb").write(text))
        writer.start()
        result = score(truth, path)
        writer.join()
        os.remove(path)
        assert result["matches"] == len(FIVE) and result["misses"] == 0, result


@case
def no_cells():
    """tables without rows: ratios of nothing are null, and misses count"""
    nothing = found_of([], "nothing.csv")
    result = score(truth_of(FIVE), nothing)
    assert result["recall"] == 0 and result["precision"] is None and result["misses"] == 5, result
    result = score(nothing, nothing)
    assert result["recall"] is None and result["mota"] is None, result
    status, out, _ = run("octctl", "cells-score", nothing, nothing)
    assert status == 0 and "precision -, recall -, rmse -" in out and "nan" not in out, out


@case
def region():
    """--roi leaves out true cells outside, and what was found of them, though it lies inside"""
    truth = truth_of([(1, 0, 9.5, 20), (2, 0, 40, 20), (3, 0, 80, 20)])
    found = found_of([(1, 0, 10.5, 20), (2, 0, 40, 20), (9, 0, 60, 20), (8, 0, 5, 70)])
    result = score(truth, found, "--roi", "10,10,60,60")
    # of 1 the true place is outside; 9 is false and inside, 8 false and outside
    assert result["true"] == 1 and result["true_left_out"] == 2, result
    assert result["matches"] == 1 and result["false_positives"] == 1, result
    assert result["found_left_out"] == 2, result
    for wrong in ("10,10,60", "1,2,3,4,5", "0,0,-5,5", "a,b,c,d", ""):
        status, _, err = run("octctl", "cells-score", truth, found, "--roi", wrong)
        assert status == 2 and err.count("\n") == 1, (wrong, status, err)


@case
def hostile():
    """what is no such table is refused with file and line, by one line, status 1"""
    head = "track,frame,x,y\n"
    good = truth_of(FIVE)
    wrong = [
        ("", 1, "empty"), ("\n\n", 3, "empty"), ("a,b\n", 1, "track"), (head + "1,2,3\n", 2, "4"),
        ("track,frame,x\n", 1, "y_px"), ("x,x,y,frame,track\n", 1, "2 columns"),
        (head + "1,2,3,nan\n", 2, "nan"), (head + "1,2,3,0x10\n", 2, "0x10"),
        (head + "1,2,3,1e999\n", 2, "1e999"), (head + "1,2.5,3,4\n", 2, "frame"),
        (head + "1,-1,3,4\n", 2, "frame"), (head + "1,1e300,3,4\n", 2, "frame"),
        (head + "-1,1,3,4\n", 2, "track"), (head + "1,1,,4\n", 2, "x_px"),
        (head + "1,2,3,4\n\n1,2,3,5\n", 4, "line 2"), (head + '1,2,"3,4\n', 2, "end"),
        (head + '1,2,"3"4,4\n', 2, "quotes"), (head + '1,2,3"4,4\n', 2, "quote"),
        (head + "1,2,3,4\0\n", 2, "zero"), (head + '1,2,"3\0",4\n', 2, "zero"),
        (head + "9" * 2000000, 2, "1048576"), ("," * 5000, 1, "4096"),
        (head + "1,2,3," + "\x1b[31m" * 99, 2, "y_px"),
    ]
    for text, line, what in wrong:
        bad = table("bad.csv", text)
        for words in ((good, bad), (bad, good)):
            status, out, err = run("octctl", "cells-score", *words)
            assert status == 1 and out == "" and err.count("\n") == 1, (text[:80], status, err)
            assert f"bad.csv, line {line}: " in err and what in err.split(": ", 2)[2], (text[:80], err)
            assert "\x1b" not in err and len(err) < 700, err
    noise = random.Random(5)
    for _ in range(40):
        bad = table("bad.csv", noise.randbytes(3000))
        status, _, err = run("octctl", "cells-score", good, bad)
        assert status == 1 and err.count("\n") == 1 and "bad.csv, line " in err, err


@case
def refused():
    """files that are not there, a folder, and wrong options"""
    truth = truth_of(FIVE)
    for words, wanted in ((("/nonexistent.csv", truth), 1), ((truth, WHERE), 1), ((truth,), 2), ((), 2),
                          ((truth, truth, truth), 2), ((truth, truth, "--within", "0"), 2),
                          ((truth, truth, "--within", "nan"), 2), ((truth, truth, "--odd"), 2)):
        status, out, err = run("octctl", "cells-score", *words)
        assert status == wanted and err.count("\n") == 1 and out == "", (words, status, err)


main()
