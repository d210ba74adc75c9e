#!/usr/bin/python3
"""The documents: commands of README and docs/tasks are run as they stand there, in order, in a folder of
their own; each link leads somewhere; the page for trouble has every word of `degraded`; README has what
octctl prints by itself. A block that is run says so: ```sh run, ```python run, ```matlab run."""
import glob, re, shutil, signal, unicodedata

from octtest import *

PAGES = [TOP + "/README.md", *sorted(glob.glob(TOP + "/docs/*.md") + glob.glob(TOP + "/docs/*/*.md"))]
PORTS = {name: free_port() for name in ("5701", "5702", "5703")}
ENDPOINTS = {"ingest": "5701", "publish": "5702", "control": "5703"}
PATIENCE_S = 3600 if SLOW else 600


def text_of(page):
    with open(page, encoding="utf-8") as file:
        return file.read()


def blocks(page):
    """[(language, text)] of those that are run."""
    found = re.findall(r"^( *)```(sh|python|matlab) run\n(.*?)^ *```$", text_of(page), re.S | re.M)
    return [(language, re.sub("^" + indent, "", body, flags=re.M))
            for indent, language, body in found]


def programs_of(where):
    """A folder of the programs. Those that speak with octd do so at ports which nobody else has."""
    os.makedirs(where)
    more = " ".join(f"--set {section}.endpoint=tcp://127.0.0.1:{PORTS[port]}"
                    for section, port in ENDPOINTS.items())
    for name in ("octd", "octctl", "octview", "push_lines"):
        with open(f"{where}/{name}", "w") as file:
            file.write(f'#!/bin/sh\nexec "{program(name)}" {more if name != "push_lines" else ""} "$@"\n')
        os.chmod(f"{where}/{name}", 0o755)
    return where


def run_page(page, where):
    environment = dict(os.environ, PATH=programs_of(where + "-bin") + ":" + os.environ["PATH"],
                       PYTHONPATH=TOP + "/python", HOME=where)
    say = {"sh": ["bash", "-eu"], "python": ["/usr/bin/python3"], "matlab": ["octave-cli", "-q"]}
    for language, body in blocks(page):
        if language == "matlab" and not shutil.which("octave-cli"):
            print("# octave-cli is not installed: the MATLAB block was not run")
            continue
        script = f"{where}/.block"
        with open(script, "w") as file:
            file.write(re.sub(r"(?<=127\.0\.0\.1:)570[123]", lambda m: str(PORTS[m[0]]), body))
        with open(where + ".log", "w+") as log:  # no pipe: octd may go on
            shell = subprocess.Popen([*say[language], script], cwd=where, env=environment, stdout=log,
                                     stderr=log, stdin=subprocess.DEVNULL, preexec_fn=os.setpgrp)
            try:
                status = shell.wait(PATIENCE_S)
            finally:
                yield shell.pid
            log.seek(0)
            assert status == 0, body + log.read()


def case_of(page):
    def run_it():
        where, groups = folder(os.path.basename(page)), []
        try:
            for group in run_page(page, where):
                groups.append(group)
        finally:
            for group in groups:
                try:
                    os.killpg(group, signal.SIGKILL)
                except ProcessLookupError:
                    pass  # all have ended
    run_it.__doc__ = f"{os.path.relpath(page, TOP)}: its commands do what they say"
    case(run_it)


for one in PAGES:
    if blocks(one):
        case_of(one)


def anchors(page):
    """As GitHub makes them of headings."""
    names, plain = [], re.sub(r"^```.*?^```", "", text_of(page), flags=re.S | re.M)
    for heading in re.findall(r"^#+ (.*)$", plain, re.M):
        kept = "".join(c for c in heading.lower() if c in " -_" or unicodedata.category(c)[0] in "LN")
        names.append(kept.replace(" ", "-"))
    return names


@case
def links():
    """every relative link leads to a file, and to a heading of it"""
    wrong, n = [], 0
    for page in [*PAGES, TOP + "/CHANGELOG.md"]:
        plain = re.sub(r"^ *```.*?^ *```", "", text_of(page), flags=re.S | re.M)
        for link in re.findall(r"\]\(([^)\s]+)\)", plain):
            if re.match(r"[a-z]+:", link):
                continue
            n += 1
            name, _, anchor = link.partition("#")
            target = os.path.normpath(os.path.join(os.path.dirname(page), name)) if name else page
            if not os.path.exists(target) or (anchor and anchor not in anchors(target)):
                wrong.append((os.path.relpath(page, TOP), link))
    seen(f"{n} links")
    assert n > 100 and not wrong, wrong


@case
def every_page_is_in_the_index():
    """docs/index.md leads to every page"""
    index = text_of(TOP + "/docs/index.md")
    missing = [page for page in PAGES[1:] if not page.endswith("/index.md")
               and f"]({os.path.relpath(page, TOP + '/docs')})" not in index]
    assert not missing, missing


def rows_of(page, heading):
    """The words in `` that begin the rows of a table."""
    body = text_of(TOP + "/docs/tasks/" + page).split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return re.findall(r"^\| `(.+?)` \| .+ \|$", body, re.M)


@case
def targets():
    """make help has a row of at most 100 columns for each target that README names"""
    said = subprocess.run(["make", "-s", "-C", TOP, "help"], check=True, text=True,
                          stdout=subprocess.PIPE).stdout.splitlines()
    rows = dict(re.fullmatch(r"([a-z-]+) +(\S.*)", row).groups() for row in said)
    named = set(re.findall(r"(?:`|^    )make ([a-z-]+)", text_of(PAGES[0]), re.M))
    assert {"demo", "check"} <= named <= set(rows), (named, said)
    assert max(map(len, said)) <= 100 and "FUZZ=name: one" in rows["fuzz"], said


@case
def degraded():
    """docs/tasks/trouble.md has every word of `degraded` and every reason of a loss, and no other"""
    def within(path, start, end):
        return text_of(TOP + path).split(start)[1].split(end)[0]
    words = re.findall(r'CreateString\("(\w+)"\)', within("/daemon/status.c", "void add_degraded(", "\n}"))
    assert len(words) >= 8 and sorted(words) == sorted(rows_of("trouble.md", "`degraded` holds")), words
    reasons = re.findall(r'= "(\w+)",', within("/pipeline/flow/loss.c", "oct_loss_names[", "};"))
    assert sorted(reasons[1:]) == sorted(rows_of("trouble.md", "A recording lacks B-scans")), reasons


LITERALS = r'(?:"(?:[^"\\]|\\.)*"|\bPRI\w+|\s)+'
# What begins a line of the log, or a text that one of them or `last_error` is given.
TELLS = (r'(?:\boct_log\([^"]*OCT_LOG_(?:ERROR|WARNING)[^"]*|oct_fail\(&(?:d->outcome|failure), [^"]*|'
         r'oct_fail\(&err, OCT_E_BACKEND, |\[OCT_KEYS_\w+\] = |snprintf\(before \+[^"]*|'
         r'snprintf\(text, bytes, (?="too slow))')


def plain(literals):
    """What a format prints, with ... for values."""
    joined = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', re.sub(r"\bPRI\w+", '"X"', literals)))
    return re.sub(r"(%[-+ #0-9.*]*(?:X|l*[a-z]))+", "...", joined.replace("%%", "\0")).replace("\0", "%")


def messages_of_source():
    """(of warnings and errors that have words of their own, of all literals)"""
    told, all_of = [], ""
    for path in subprocess.check_output(
            ["find", "analysis", "config", "daemon", "kernels", "pipeline", "-name", "*.[ch]", "-o",
             "-name", "*.cu", "-o", "-name", "*.cuh"], cwd=TOP, text=True).split():
        source = text_of(f"{TOP}/{path}")
        for one in re.findall(TELLS + "(" + LITERALS + ")", source):
            told += [plain(one)] if re.search("[a-z]{3}", plain(one)) else []
        all_of += "\n".join(plain(one) for one in re.findall(LITERALS, source) if '"' in one)
    return told, all_of


@case
def messages():
    """docs/tasks/messages.md has every warning and error of octd's log, every code, and no other"""
    groups = re.findall(r"^## (.+)$", text_of(TOP + "/docs/tasks/messages.md"), re.M)
    rows = [row for group in groups[1:] for row in rows_of("messages.md", group)]
    told, all_of = messages_of_source()
    seen(f"{len(told)} warnings and errors, {len(rows)} rows")
    missing = [one for one in told if not any(one.startswith(row) for row in rows)]
    assert len(told) > 40 and not missing, ("no row for", missing)
    idle = [row for row in rows if row not in all_of or rows.count(row) > 1]
    assert not idle, ("nothing prints, or twice", idle)
    codes = re.findall(r"^    (OCT_\w+)", text_of(TOP + "/pipeline/base/err.h").split("enum oct_err {")[1]
                       .split("};")[0], re.M)
    assert groups[0] == "Codes" and codes == rows_of("messages.md", "Codes"), codes


@case
def site():
    """make docs: every page is a page of the site, found by its words, and nothing is loaded from elsewhere"""
    if not os.path.exists("/usr/bin/mkdocs"):
        raise Skip("mkdocs is not installed")
    out = folder("site")
    subprocess.run([TOP + "/scripts/docs", out], check=True, stdout=subprocess.DEVNULL)
    for page in PAGES:
        name = os.path.relpath(page, TOP).replace("README", "index")[:-len("md")] + "html"
        html = text_of(f"{out}/site/{name}")
        assert not re.search(r"<(script|link|img)[^>]*(src|href)=.https?:", html), name
    words = text_of(out + "/site/search/search_index.json")
    assert "ETDRS" in words and "tasks/camera.html" in words


@case
def proof():
    """every command of docs/proof.md is there: targets of make, tests, scripts"""
    page = text_of(TOP + "/docs/proof.md")
    targets = set(re.findall(r"^([a-z-]+):.*## ", text_of(TOP + "/Makefile"), re.M))
    tests = [os.path.basename(path) for path in glob.glob(TOP + "/test/*/test_*.*")]
    named = re.findall(r"\bT=(test_\w+)", page)
    assert len(named) > 20 and not [t for t in named if not any(t in one for one in tests)]
    assert not set(re.findall(r"`make ([a-z-]+)", page)) - targets
    assert not [s for s in re.findall(r"`(scripts/[\w-]+)", page) if not os.path.exists(f"{TOP}/{s}")]


@case
def licences():
    """docs/licences.md has a row for each library that a program links, and says which programs do"""
    if SLOW:
        raise Skip("with a sanitizer more of each library stays in a program, and it links more")
    table = text_of(TOP + "/docs/licences.md").split("\n## ")[1]
    rows = {}
    for line in re.findall(r"^\| (`lib.*)$", table, re.M):
        libraries, _, _, programs, _ = line.rstrip("|").split("|")
        for library in re.findall(r"`([^`]+)`", libraries):
            rows[library] = programs
    for name in ("octd", "octview", "octctl", "octgenicam", "octweb", "liboctd.so.0"):
        if not os.path.exists(program(name)):
            continue
        said = subprocess.run(["readelf", "-d", program(name)], check=True, text=True,
                              stdout=subprocess.PIPE).stdout
        for library in re.findall(r"\(NEEDED\).*\[(.+?)(?:-2\.0)?\.so", said):
            by = next((rows[one] for one in (library, library + "-2.0") if one in rows), None)
            if not re.match(r"lib(a|l|t|ub)san$|libcu|libnv", library):
                assert by and (name.split(".")[0] in by or by.strip() == "all"), (name, library)


@case
def readme():
    """README has at most 150 lines, and octctl's commands as octctl prints them"""
    readme = text_of(TOP + "/README.md")
    printed = subprocess.run([program("octctl")], stdout=subprocess.PIPE, text=True).stdout
    assert readme.count("\n") <= 150 and f"```text\n{printed}```" in readme


main()
