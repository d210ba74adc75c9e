"""octctl's command line, its control against a daemon played by Python, info, files that hold
something else, and every error's text."""
import contextlib, fcntl, json, os, pty, re, struct, subprocess, termios, threading, time

import h5py, numpy as np, zmq

from octctlrig import *


# ---- command line ----

def test_version():
    for program, uv in (("octctl", ""), ("octd", r"libuv 1\.\d+\.\d+\n")):
        wanted = (program + r" \d+\.\d+\.\d+\nlibzmq 4\.\d\.\d+\n" + uv + r"inih( \d+)?\n"
                  r"FFTW 3\.\d+\.\d+\nHDF5 1\.\d+\.\d+\ncJSON 1\.\d+\.\d+\n"
                  r"(gcc|clang) \d+\.\d+.*\nengines: cpu(, cuda)?\n")
        done = run(program, "--config", "nowhere.ini", "--version")
        check(done.returncode == 0 and re.fullmatch(wanted, done.stdout) and not done.stderr,
              f"{program} --version names the libraries, a line each", done.stdout + done.stderr)


def test_global_options():
    """octd and octctl read their common options the same way and refuse them in one line."""
    fine, odd = os.path.join(TMP, "fine.ini"), os.path.join(TMP, "odd.ini")
    with open(fine, "w") as file:
        file.write("[pipeline]\nmin_db = 10\n")
    with open(odd, "w") as file:
        file.write("[pipeline]\nlog = yes\nmin_db = 60\n")
    line = r"odd\.ini:3: \[pipeline\] min_db: is 60: it must be less than"
    both = [
        (["--nosuch"], r"unknown option '--nosuch'. see {} --help"),
        (["--conf", fine], r"unknown option '--conf'"),
        (["-x"], r"unknown option '-x'"),
        (["--config"], r"--config needs a value"), (["-c"], r"-c needs a value"),
        (["--config", odd], line), ([f"--config={odd}"], line), (["-c", odd], line),
        ([f"-c{odd}"], line),
        (["-c", fine, "--set", "pipeline.max_db=5"],
         r"--set pipeline\.max_db: pipeline\.min_db is 10"),
        (["--set=pipeline.max_db=5", "-c", fine], r"--set pipeline\.max_db: pipeline\.min_db is 10"),
        (["--set", "scan.lines=0"], r"--set scan\.lines: '0' is not allowed"),
        (["--backend=vulkan"], r"--backend pipeline\.backend: 'vulkan' is not allowed"),
    ]
    for program, more in (("octd", []), ("octctl", ["status"])):
        start = program + ": " + ("error: " if program == "octd" else "")
        for arguments, wanted in both:
            wants_nothing_more = arguments[-1] in ("--config", "-c")
            done = run(program, *arguments, *([] if wants_nothing_more else more))
            check(done.returncode == 2 and done.stderr.count("\n") == 1
                  and re.match(start + ".*" + wanted.format(program), done.stderr),
                  f"{program} {' '.join(map(os.path.basename, arguments))} is refused in one line",
                  done.stderr + "wanted " + wanted)
        for option in ("-h", "--help"):
            done = run(program, option)
            check(done.returncode == 0 and "-c, --config" in done.stdout and not done.stderr, f"{program} {option} helps", done.stderr)
    for arguments, word in ((["word"], "'word' is no option"), (["--help=3"], "unknown option '--help=3'"),
                            (["--", "--help"], "'--help' is no option"), ([""], "'' is no option")):
        done = run("octd", *arguments)
        check(done.returncode == 2 and done.stderr.count("\n") == 1 and word in done.stderr,
              f"octd {' '.join(arguments)!r} is refused in one line", done.stderr)
    refused("-- ends octctl's options", 2, "unknown command '--help'", "--", "--help")
    refused("behind -- a command gets its arguments as they stand", 2,
            "octctl info: unknown option '--config'", "info", "--", "--config")
    code, out, err = octctl("--", "reference")
    check(code == 0 and "[camera]" in out, "a command may follow --", err)


def test_overview():
    code, out, err = octctl()
    rows = re.findall(r"^(?:[a-z]+ +| {11})([a-z].*?)  +\S.*$", out.split("\n\n")[1], re.M)
    named = ", ".join(rows).split(", ")
    code_of_help, help_text, _ = octctl("--help")
    names = re.findall(r"^  ([a-z][a-z-]*) ", help_text.split("\noptions")[0], re.M)
    check(code == 2 and not err and out.count("\n") <= 40 and sorted(named) == sorted(names)
          and len(names) > 40, "octctl alone has every command once, in 40 lines", out)
    calls = [(name, "--help") for name in names if name != "help"]
    calls += [(*part.split()[1:], "--help") for name in ("calibrate", "archive")
              for part in re.findall(r"^octctl [a-z]+ [a-z]+", octctl("help", name)[1], re.M)]
    calls += [(), ("--help",), ("help", "keys"), ("help", "conventions")]
    texts = {("octctl", *words): octctl(*words)[1] for words in calls}
    for name in "octd", "octview", "octweb", "octgenicam":
        if os.path.exists(os.path.join(BUILD, name)):
            texts[name, "--help"] = run(name, "--help").stdout
    wide = [(*words, line) for words, text in texts.items() for line in text.split("\n")
            if len(line) > 100]
    check(len(texts) > 50 and all(texts.values()) and not wide, "no help is wider than 100 columns",
          str(wide[:3]))


def test_help_of_keys():
    code, out, _ = octctl("help", "keys")
    check(code == 0 and set(re.findall(r"^  ([a-z]+\.[a-z0-9_]+)=", out, re.M))
          == set(keys_of(octctl("reference")[1])), "help keys lists every key", out)
    code, out, _ = octctl("help", "keys", "scan")
    check(code == 0 and set(re.findall(r"^  ([a-z]+)\.", out, re.M)) == {"scan"},
          "help keys scan lists those of scan", out)
    refused("an unknown section is refused", 2, "no section 'scam'", "help", "keys", "scam")


def keys_of(reference):
    section = ""
    for line in reference.split("\n"):
        if line.startswith("["):
            section = line.strip("[]")
        elif re.match(r";[a-z0-9_]+ =", line):
            yield section + "." + line[1:].split(" ")[0]


def test_command_line():
    code, out, _ = octctl("replay", "--help")
    check(code == 0 and "--loop" in out and "--config" in out, "replay --help lists its options")
    for words in ["replay"], ["calibrate", "dispersion"], []:
        code, out, _ = octctl("help", *words)
        check(code == 0 and out == octctl(*words, "--help")[1],
              f"help {' '.join(words)} is --help", out)
    code, out, _ = octctl("help", "export")
    check(code == 0 and out.count("--dataset ") == 1 and "--transpose" in out,
          "help tells a command's own option alone, where a common one has its name", out)
    refused("help of an unknown command is refused", 2, "unknown command 'recn'", "help", "recn")
    code, out, _ = octctl("reference")
    check(code == 0 and "[camera]" in out and "samples" in out, "reference prints the config")
    refused("an unknown command is named", 2,
            "unknown command 'recn'; did you mean recon", "recn")
    refused("one that is like none, too", 2, "unknown command 'frobnicate'; see octctl --help",
            "frobnicate")
    refused("an unknown global option is named", 2, "unknown option '--frob'", "--frob", "status")
    refused("an unknown option of a command is named", 2, "octctl status: unknown option '--frob'",
            "status", "--frob")
    refused("a missing command is told", 2, "no command", "--set", "scan.lines=3")
    refused("--set without a value is told", 2, "--set needs a value", "status", "--set")
    refused("an unknown key is refused", 2, "scan.linez", "--set", "scan.linez=3", "status")
    refused("an unknown backend is refused", 2, "--backend.*vulkan", "--backend", "vulkan", "bench")
    refused("a config that is not there is named", 2, "nowhere.ini", "info", "x", "--config",
            "nowhere.ini")
    refused("a superfluous argument is named", 2, "unexpected argument 'b'", "get", "a", "b")
    refused("a missing argument is told", 2, "a key and its value", "set", "scan.lines")
    refused("record wants start, stop or last", 2, "'begin' must be start, stop or last", "record", "begin")
    refused("a timeout must be a number", 2, "--timeout", "status", "--timeout", "soon")
    with open("/dev/full", "w") as full:
        done = subprocess.run([OCTCTL, "reference"], stdout=full, stderr=subprocess.PIPE, text=True)
    check(done.returncode == 1 and "cannot write" in done.stderr,
          "a full standard output is an error", done.stderr)


def on_terminal(*arguments):
    """What octctl writes to stderr where that is a terminal, its stdout, and its exit status."""
    ours, theirs = pty.openpty()
    with subprocess.Popen([OCTCTL, *arguments], stdout=subprocess.PIPE, stderr=theirs,
                          text=True) as done:
        os.close(theirs)
        shown = b""
        with contextlib.suppress(OSError):  # EIO: the other end is closed
            while part := os.read(ours, 65536):
                shown += part
        out = done.stdout.read()
    os.close(ours)
    return shown.decode(), out, done.returncode


def test_progress():
    (raw, _), n = make_raw("progress.raw", 300), 300
    kmap = os.path.join(TMP, "kmap.txt")
    np.savetxt(kmap, [0, N - 1])
    recon = ["recon", raw, "--force", *SMALL[:4], "--set", "file.check_samples=no",
             "--set", "calibration.kmap=" + kmap]
    shown, out, code = on_terminal(*recon, os.path.join(TMP, "progress.h5"))
    lines = re.findall(r"\r\[(#*) *\] (\d+) of 300 B-scans, [0-9.]+ a second(, \d+:\d\d left)?\x1b\[K",
                       shown)
    done = [int(count) for _, count, _ in lines]
    check(code == 0 and done and done == sorted(done) and done[-1] == n and not lines[-1][2]
          and len(lines[-1][0]) == 40, "progress counts to the end on a terminal", shown)
    check(all(left for _, count, left in lines if 0 < int(count) < n),
          "progress says the time that is left", shown)
    check("300 B-scans" in out, "the report comes on standard output", out)
    shown, out, code = on_terminal("--quiet", *recon, os.path.join(TMP, "quiet.h5"))
    check((shown, out, code) == ("", "", 0) and os.path.getsize(os.path.join(TMP, "quiet.h5")),
          "--quiet says nothing of what went well", shown + out)
    refused("--quiet says what went wrong", 1, "nowhere.raw: cannot open", "--quiet", "recon",
            os.path.join(TMP, "nowhere.raw"), os.path.join(TMP, "none.h5"))


# ---- control ----

STATUS = {"ok": True, "state": "recording", "backend": "cpu", "lines_received": 1234567,
          "messages_bad": {"crc": 2, "magic": 0, "epoch": 1}, "bytes_written": 2500000000,
          "bscans_dropped": {"engine": 0, "ring": 0}, "uptime_s": 3725.4, "last_error": "",
          "geometry": {"samples": 832, "file_bytes": 5000},
          "latency_us": {"p50": 900, "p99": 3400, "max": 2000000}}


answers = {"pending": False}  # to what was granted


# A reply with a row of some 2500 characters, a word wider than any terminal, and escapes.
LONG = dict(STATUS, last_error="\x1b[31mé" + "x" * 200 + " end",
            forecast={f"stage_{i}": {"bscan_us": 1000.0 * i, "what": "ü" * 9} for i in range(60)})


def answer(request):
    command = request.get("cmd")
    if answers.get("long") and command == "status":
        return LONG
    if answers["pending"] and command == "status":
        return dict(STATUS, pending=True, record={"active": True})
    if answers["pending"] and command in ("start", "stop", "record"):
        return {"ok": True, "pending": True}
    if command == "status":
        return STATUS
    if command == "get" and request.get("key") == "scan.lines":
        return {"ok": True, "key": "scan.lines", "value": "240"}
    if command == "set" and request.get("value") == "-10":
        return {"ok": True}
    if command == "record" and request.get("action") in ("start", "stop"):
        return {"ok": True}
    if command == "get" and request.get("key") == "daemon.drain_s":
        return {"ok": True, "key": "daemon.drain_s", "value": "0"}
    if command in ("start", "stop", "shutdown"):
        return {"ok": True}
    if command == "get" and request.get("key") == "nonsense":
        return b"I am no daemon"
    return {"ok": False, "error": "not while\nrecording: " + str(request.get("key"))}


def status_on_terminal(width, *where):
    """The lines of octctl status on a terminal of that width."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    with subprocess.Popen([OCTCTL, "status", "--all", *where], stdout=theirs, stderr=theirs):
        os.close(theirs)
        shown = b""
        with contextlib.suppress(OSError):  # EIO: the other end is closed
            while part := os.read(ours, 65536):
                shown += part
    os.close(ours)
    return shown.decode().replace("\r\n", "\n").split("\n")


@contextlib.contextmanager
def fake_daemon(endpoint, requests):
    context = zmq.Context()
    socket = context.socket(zmq.ROUTER)
    socket.bind(endpoint)
    stop = threading.Event()

    def serve():
        while not stop.is_set():
            if socket.poll(20):
                peer, empty, body = socket.recv_multipart()
                requests.append(json.loads(body))
                reply = answer(requests[-1])
                socket.send_multipart([peer, empty, reply if isinstance(reply, bytes)
                                       else json.dumps(reply).encode()])

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        socket.close(0)
        context.term()


def test_control():
    endpoint = f"ipc://{TMP}/control"
    where = ("--set", f"control.endpoint={endpoint}")
    requests = []
    with fake_daemon(endpoint, requests):
        code, out, err = octctl("status", "--all", *where)
        summary, *groups = out.split("\n\n")
        check(octctl("status", *where) == (0, summary + "\n", ""),
              "without --all, status is its summary")
        check(code == 0 and [g.splitlines()[0] for g in groups] ==
              ["daemon", "lines in", "B-scans out", "recording", "machine", "set-up"]
              and re.fullmatch(r"state +recording\nlines +1,234,567 received\n"
                               r"losses +3 messages refused", summary),
              "status --all begins with a summary, and all the rest stands in groups", out + err)
        rows = dict(re.split(r"\s{2,}", line.strip(), maxsplit=1) for group in groups
                    for line in group.splitlines()[1:])
        check(code == 0 and rows.get("state") == "recording"
              and rows.get("lines received") == "1,234,567"
              and rows.get("bytes written") == "2.50 GB"
              and rows.get("uptime") == "1 h 2 min 5 s"
              and rows.get("messages bad") == "3 (crc 2, epoch 1)"
              and rows.get("bscans dropped") == "0"
              and rows.get("geometry") == "samples 832, file_bytes 5.00 kB"
              and rows.get("latency") == "p50 900 us, p99 3.40 ms, max 2.00 s",
              "status is a table in human units with nested reasons", out + err)
        code, out, _ = octctl("status", "--json", *where)
        check(code == 0 and json.loads(out) == STATUS, "status --json is the reply as it came", out)
        code, out, _ = octctl("get", "scan.lines", *where)
        check((code, out) == (0, "240\n"), "get prints the value", out)
        code, out, _ = octctl(*where, "set", "pipeline.min_db", "-10")
        check((code, out) == (0, "ok\n") and requests[-1] ==
              {"cmd": "set", "key": "pipeline.min_db", "value": "-10"},
              "set passes a negative value on as text", requests[-1])
        answers["long"] = True
        for width, lines in ((80, octctl("status", "--all", *where)[1].split("\n")),
                             (132, status_on_terminal(132, *where))):
            wide = [line for line in lines if len(line) > width]
            check(len(wide) == 2 and wide[0].endswith("x" * 200) and "\x1b" not in "".join(lines)
                  and any(len(line) > width - 20 for line in lines if line not in wide),
                  f"rows of status are broken at {width} columns, words are not", lines)
            rows = re.sub(r"\n {21,23}(?=\S)", " ", "\n".join(lines))
            check(all(f"stage_{i} bscan_us {i or 0}" in rows.replace(".00 ms", "").replace(" us", "")
                      for i in range(60)) and "last error           ?[31mé" + "x" * 200 + " end" in rows,
                  "and lose nothing", rows)
        check(json.loads(octctl("status", "--json", *where)[1]) == LONG, "--json is not broken")
        answers["long"] = False
        results = [octctl(*c, "--endpoint", endpoint) for c in
                   (["start"], ["stop"], ["record", "start"], ["record", "stop"],
                    ["shutdown", "--no-wait"])]
        # A stop asks for the status until the recording's file is closed.
        check(all(r == (0, "ok\n", "") for r in results) and requests[-7:] ==
              [{"cmd": "start"}, {"cmd": "stop"}, {"cmd": "status"},
               {"cmd": "record", "action": "start"}, {"cmd": "record", "action": "stop"},
               {"cmd": "status"}, {"cmd": "shutdown"}],
              "start, stop, record and shutdown say ok", (results, requests[-7:]))
        answers["pending"] = True
        for command in (["start"], ["stop"], ["record", "start"], ["record", "stop"], ["shutdown"]):
            began = time.monotonic()
            code, out, err = octctl(*command, "--wait", "0.5", *where)
            took_s = time.monotonic() - began
            check(code == 1 and out == "" and err.count("\n") == 1 and "--wait" in err
                  and .5 <= took_s < 4,
                  f"{command} says no ok before it is so, and keeps --wait", (code, out, err, took_s))
            check(octctl(*command, "--no-wait", *where) == (0, "ok\n", ""),
                  f"{command} --no-wait says ok to what was granted")
        answers["pending"] = False
        refused("a daemon that does not end is told after drain_s and 5 s", 1,
                r"^octctl: shutdown: octd has not ended after 5 s \(daemon.drain_s and 5 s\)",
                "shutdown", *where)
        refused("a refusal is shown as one line", 1,
                r"^octctl: set: not while\?recording: scan.lines$", "set", "scan.lines", "3",
                *where)
        latin = "J\xfcrgen".encode("latin-1")
        n_requests = len(requests)
        for arguments, says in (((b"set", b"record.pseudonym", latin), "record.pseudonym: "),
                                ((b"record", b"last", latin), "last: "), ((b"get", latin), "")):
            done = subprocess.run([OCTCTL, *arguments, *where], capture_output=True)
            said = done.stderr.decode()
            check(done.returncode == 2 and len(requests) == n_requests and said.startswith(
                f"octctl {arguments[0].decode()}: {says}'J?rgen' is not UTF-8: write it in that "),
                f"{arguments[0]} in Latin-1 is refused by what the user wrote", said)
        code, out, err = octctl("set", "scan.lines", "3", "--json", *where)
        check(code == 1 and json.loads(out)["ok"] is False and err,
              "a refusal with --json prints the reply and fails", (code, out, err))
        refused("an answer that is no JSON is told", 1, "no JSON object", "get", "nonsense", *where)
    started = time.monotonic()
    refused("without a daemon the endpoint is named", 1,
            re.escape(f"octctl: no daemon answers at ipc://{TMP}/nobody (is octd running? --set "
                      "control.endpoint=...; one with keys answers only with security.client_key)"),
            "status", "--endpoint", f"ipc://{TMP}/nobody", "--timeout", "0.3")
    took_s = time.monotonic() - started
    check(0.3 <= took_s < 5, "--timeout is kept, not its default", took_s)
    refused("an impossible endpoint is named", 2, "cannot connect to 'carrier:pigeon'",
            "status", "--endpoint", "carrier:pigeon")


# ---- info ----

def test_info():
    path, _ = make_raw("a.raw", 6, b"h" * 5, b"t" * 3)
    around = ("--set", "file.header_bytes=5", "--set", "file.trailer_bytes=3")
    code, out, err = octctl("info", path, "--json", *SMALL, *around)
    facts = json.loads(out or "{}")
    check(code == 0 and (facts["bscans"], facts["lines"], facts["samples"], facts["volumes"]) ==
          (6, M, N, 1.5), "info counts the B-scans of plain samples from the size", out + err)
    code, out, _ = octctl("info", path, *SMALL, *around)
    check(code == 0 and re.search(r"^B-scans +6$", out, re.M), "info prints a table", out)
    refused("a size that does not fit is told by how much", 1,
            r"a\.raw: 7683 bytes after header and trailer are 6\.00\d* B-scans of 1280 bytes: "
            r"3 bytes too many", "info", path, *SMALL, "--set", "file.header_bytes=5")
    refused("a file shorter than header and trailer is told", 1, "7688 bytes, less than",
            "info", path, *SMALL, "--set", "file.header_bytes=9000")
    open(TMP + "/empty.raw", "w").close()
    refused("a file without samples is told", 1, "holds no samples", "info", TMP + "/empty.raw")
    refused("a file that is not there is named", 1, "nothing.raw.*No such file",
            "info", TMP + "/nothing.raw")
    refused("a folder is refused", 1, "not a plain file", "info", TMP)
    refused("an impossible geometry is refused", 2, "scan.lines", "info", path, "--set",
            "camera.samples=131072", "--set", "scan.lines=65536")

    path, _ = make_h5("a.h5", valid=[1, 1, 0, 1], missing=[0, 3, 0, 0])
    code, out, err = octctl("info", path, "--json")
    facts = json.loads(out or "{}")
    check(code == 0 and (facts["bscans"], facts["lines"], facts["samples"]) == (V, M, N)
          and facts["valid_bscans"] == 3 and facts["missing_lines"] == 3
          and facts["whole"] is False and facts["wavelengths"] == N
          and facts["pictures"] is False, "info tells what a volume holds", out + err)
    check(facts["spacing_um"] == [None, None], "info tells that a spacing is unknown", out)
    with h5py.File(path, "r+") as f:
        f.attrs["axis_spacing_um"] = [50.0, 12.5, np.nan]
    code, out, err = octctl("info", path)
    check(code == 0 and re.search(r"^spacing +50 um B-scans, 12.5 um A-lines$", out, re.M),
          "info tells the spacing of a volume", out + err)
    refused("a cut volume is an error", 1, "cut.h5", "info", cut(path, "cut.h5", 1000))
    refused("a text called .h5 is an error", 1, "fake.h5", "info", text_file("fake.h5"))
    refused("info wants a file", 2, "which file", "info")


def test_names_with_escapes():
    """Names of files, and texts in them, cannot control a terminal."""
    path, _ = make_h5("esc\x1b[31m\x07.h5")
    with h5py.File(path, "r+") as file:
        file.attrs["pseudonym"] = "\x1b]0;owned\x07"
    for command in "check", "info", "label":
        code, out, err = octctl(command, path)
        check("?[31m?.h5" in out + err and not set(out + err) & set("\x1b\x07"),
              f"{command} shows ? for control characters", out + err)


def test_synth_replaces_no_pipe():
    folder = os.path.join(TMP, "cal")
    os.mkdir(folder)
    os.mkfifo(os.path.join(folder, "wavelengths.txt"))
    refused("a pipe is not replaced by a calibration", 2, "wavelengths.txt: is no plain file",
            "synth", os.path.join(TMP, "s.h5"), "--calibration", folder, "--set", "scan.bscans=1",
            "--set", "scan.lines=8")
    check(os.listdir(folder) == ["wavelengths.txt"], "and nothing is left beside it")


def test_latin():
    """What a recording holds in another encoding keeps nobody from its data."""
    attributes = {
        "fixed": lambda text: np.bytes_(text),
        "variable": lambda text: np.array(text, dtype=h5py.string_dtype("ascii")),
    }
    text = "[record]\npseudonym = J\xfcrgen\ndirectory = /data/M\xfcller\n".encode("latin-1")
    for kind, write in attributes.items():
        path, _ = make_h5(f"latin-{kind}.h5")
        with h5py.File(path, "r+") as f:
            f["calibration/wavelengths_nm"][:] = np.linspace(840, 850, N)
            f.attrs["config"] = write(text)
            f.attrs["pseudonym"] = write("J\xfcrgen \x9b".encode("latin-1"))
            f.attrs["software"] = write("\u0416".encode() * 400)  # cut within a character
        named = os.path.join(TMP.encode(), kind.encode() + b"-M\xfcller.h5")
        os.rename(path, named)
        done = subprocess.run([OCTCTL, "info", named, "--json"], capture_output=True)
        try:
            facts = json.loads(done.stdout.decode())
        except ValueError as why:
            facts = {"pseudonym": str(why)}
        check(facts["pseudonym"] == "J?rgen ?" and facts["file"].endswith("M?ller.h5"),
              f"info --json of {kind} texts in Latin-1 is UTF-8", (facts, done.stderr))
        done = subprocess.run([OCTCTL, "check", named, "--json"], capture_output=True)
        check(b"M?ller.h5" in done.stdout and done.stdout.decode(errors="replace").isascii(),
              "and so is that of check", done)
        out = os.path.join(TMP, kind + "-out.h5")
        done = subprocess.run([OCTCTL, "recon", named, out], capture_output=True)
        check(done.returncode == 0, f"recon of {kind} texts in Latin-1 works", done)
        if done.returncode == 0:
            with h5py.File(out) as f:
                check("pseudonym = J?rgen\n" in f.attrs["config"] and
                      "directory = /data/M?ller\n" in f.attrs["config"],
                      "and the new file's configuration is UTF-8", f.attrs["config"])


def cut(path, name, n_bytes):
    with open(path, "rb") as f, open(os.path.join(TMP, name), "wb") as g:
        g.write(f.read(n_bytes))
    return os.path.join(TMP, name)


def text_file(name):
    with open(os.path.join(TMP, name), "w") as f:
        f.write("these are no spectra\n" * 100)
    return os.path.join(TMP, name)


def test_foreign_samples():
    """Plain files that hold something else: told by what it looks like, where, and the way out."""
    t = np.linspace(-1, 1, 64)
    counts = 900 + 2500 * np.exp(-3 * t * t) * (1 + .2 * np.cos(40 * t + np.arange(200)[:, None]))
    counts += np.random.default_rng(1).normal(0, 5, counts.shape)
    small = ["--set", "camera.samples=64", "--set", "scan.lines=10", "--to", f"ipc://{TMP}/none",
             "--wait", "0"]
    path = os.path.join(TMP, "foreign.raw")
    for kind, dtype, words, lines in (
            ("f32", "<f4", "from byte 6 on it looks like 32-bit floats", 20),
            ("f64", "<f8", "from byte 6 on it looks like 64-bit floats", 40),
            ("big-endian", ">u2", "from byte 6 on the two bytes .* swapped", 10)):
        with open(path, "wb") as f:
            f.write(b"header" + counts.astype(dtype).tobytes())
        there = [path, "--set", "file.header_bytes=6", *small]
        refused(f"{kind} samples are refused", 1,
                f"foreign.raw: {words}.*u16.*file.check_samples=no", "replay", *there)
        refused(f"{kind} samples are taken by who insists", 1, "no daemon takes lines", "replay",
                *there, "--set", "file.check_samples=no")
    counts.astype("<u2").tofile(path)
    refused("samples beyond camera.bits are refused", 1,
            r"the sample at byte \d+ is \d+, but camera.bits = 10 ends at 1023: correct camera.bits",
            "recon", path, os.path.join(TMP, "foreign.h5"), *small[:4], "--set", "camera.bits=10")
    axis = os.path.join(TMP, "axis.txt")
    for scale, words in ((1e-3, "looks like micrometres"), (1e-9, "looks like metres"),
                         (10, "looks like angstrom"), (1e3, "within 200 to 3000 nm;")):
        np.savetxt(axis, scale * (850 + 20 * t))
        refused(f"wavelengths times {scale} are refused", 2, "calibration.wavelengths.*" + words,
                "recon", path, os.path.join(TMP, "foreign.h5"), *small[:4],
                "--set", "calibration.wavelengths=" + axis)


main(test_version, test_global_options, test_overview, test_help_of_keys, test_command_line,
     test_progress, test_control, test_info, test_names_with_escapes, test_synth_replaces_no_pipe,
     test_latin, test_foreign_samples)
