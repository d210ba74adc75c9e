#!/usr/bin/python3
"""octctl completion: what bash and zsh offer is what --help of every command says, words that are
offered are taken, and a real TAB in both shells completes."""
import pty, re, select, signal, subprocess
from octtest import *

WORK = folder(f"completion{os.getpid()}")
SMALL = ("--set", "scan.bscans=1", "--set", "scan.lines=4", "--set", "camera.samples=64")
OCTCTL = os.path.abspath(program("octctl"))
# Options that another must stand beside.
BESIDE = {("synth", "--paths"): ("--cells", "2")}

# bash gives the words of a line broken at blanks, '=' and ':' to the function.
BASH = r"""
source "$1"
while IFS= read -r line; do
    COMP_LINE=$line COMP_POINT=${#line}
    mapfile -t COMP_WORDS < <(grep -oE '[=:]+|([^=: ]|\\ )+' <<<"$line")
    [[ $line == *[\ =] ]] && COMP_WORDS+=("")
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    _octctl_complete
    printf '%s\n' "${COMPREPLY[@]}"
    echo END
done
"""
# The parts of zsh's completion that the function calls; files are said to be asked for.
ZSH = r"""
compdef() { }
_files() { print -r -- "FILES$*" }
compset() { PREFIX=${PREFIX[$2+1,-1]} }
_describe() { print -rl -- "${(@P)2%%:*}" }
source "$1"
while IFS= read -r line; do
    words=(${(z)line}) PREFIX=
    [[ $line == *' ' ]] || PREFIX=${words[-1]}
    [[ $line == *' ' ]] && words+=("")
    CURRENT=${#words}
    _octctl | { while IFS= read -r said; do print -r -- "$said"; done }
    print END
done
"""


def script(shell):
    path = os.path.join(WORK, f"completion.{shell}")
    if not os.path.exists(path):
        with open(path, "w") as file:
            file.write(ok("completion", shell)[0])
    return path


def offered(shell, *lines):
    """What the shell offers at the end of each line, where the word being typed is empty or a
    beginning; of zsh before it looks at that beginning."""
    path = os.pathsep.join([os.path.abspath(BUILD), os.environ["PATH"]])
    start = {"bash": ["bash", "--norc", "--noprofile", "-c", BASH, "bash"],
             "zsh": ["zsh", "-f", "-c", ZSH, "zsh"]}[shell]
    done = subprocess.run([*start, script(shell)], input="".join(l + "\n" for l in lines),
                          cwd=WORK, env=dict(os.environ, PATH=path), text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=600)
    assert done.stderr == "", done.stderr
    answers = [a.strip("\n").split("\n") if a.strip() else []
               for a in done.stdout.split("END\n")[:-1]]
    assert len(answers) == len(lines), done.stdout
    return answers


def commands():
    """NAME (or "calibrate PART"): {option: its argument in --help}, less the global ones; the global ones
    of all; NAME: those that it reads."""
    text = ok("--help")[0]
    common = options(text.split("\noptions", 1)[1])
    found, read = {}, {}
    for name in re.findall(r"^  ([a-z][a-z-]*) ", text.split("\noptions")[0], re.M):
        if name == "help":
            continue
        said = ok(name, "--help")[0]
        for part, its in re.findall(r"^octctl (calibrate [a-z]+) .*\n((?:  .*\n)*)", said, re.M):
            found[part] = options(its)
        its, rest = said.split("\noptions:\n")[1].split("  -c, --config")
        found[name] = options(its)
        read[name] = {"--config", *options(rest)}
    return found, common, read


def options(text):
    """{"--name": its argument, or None}"""
    return {name: argument for name, argument in re.findall(
        r"^  (?:-[a-z], )?(--[a-z0-9-]*)(?: ([^ \n]+))?(?:  | [A-Za-z]|$)", text, re.M)}


FOUND, COMMON, READ = commands()


@case
def commands_and_options():
    """are those of --help, in both shells"""
    assert len(FOUND) > 30 and len(FOUND["synth"]) > 20 and "--set" in COMMON, FOUND
    lines = ["octctl ", "octctl help ", "octctl --quiet ", *[f"octctl {name} --" for name in FOUND]]
    for shell in "bash", "zsh":
        top, after_help, after_flag, *each = offered(shell, *lines)
        names = {name for name in FOUND if " " not in name} | {"help"}
        assert set(top) == set(after_flag) == names, set(top) ^ names
        assert set(after_help) == names - {"help"} | {"conventions", "keys"}, after_help
        for name, said in zip(FOUND, each):
            want = set(FOUND[name]) | READ[name.split()[0]]
            assert READ[name.split()[0]] <= set(COMMON), name
            assert set(said) == want and len(said) == len(want), (shell, name, set(said) ^ want)


@case
def beginnings():
    """only what begins as the word does is offered, behind options and their values, too"""
    lines = {
        "octctl reg": ["register", "register-volumes"],
        "octctl -c file.ini --set a.b=c sy": ["synth"],
        "octctl --backend=cpu sy": ["synth"],
        "octctl synth OUT --motion ": "bscans none fixation unsteady".split(),
        "octctl synth OUT --motion un": ["unsteady"],
        "octctl synth OUT --motion=un": ["unsteady"],
        "octctl synth --motion none --pa": ["--paths"],
        "octctl synth --seed ": [],
        "octctl calibrate ": "kmap dispersion report scan".split(),
        "octctl calibrate kmap --pos": ["--positions"],
        "octctl record ": "start stop last".split(),
        "octctl record last ": [],
        "octctl bench whole gr": ["growth"],
        "octctl status ": [],
        "octctl completion ": ["bash", "zsh"],
        "octctl get pipeline.back": ["pipeline.backend"],
        "octctl help keys ca": ["camera", "calibration"],
        "octctl set pipeline.backend ": "auto cpu cuda".split(),
        "octctl set pipeline.log ": ["yes", "no"],
        "octctl set scan.lines ": [],
        "octctl --set pipeline.backe": ["pipeline.backend="],
        "octctl --set pipeline.backend=": "auto cpu cuda".split(),
        "octctl --set=pipeline.backend=cu": ["cuda"],
        "octctl recon IN --set pipeline.log=": ["yes", "no"],
        "octctl export a.h5 --to d": ["dicom"],
        "octctl no-such-command --se": ["--set"],
        "octd --set pipeline.backend=c": ["cpu", "cuda"],
        "octd --back": ["--backend"],
        "octd --backend ": "auto cpu cuda".split(),
        "octview --head": ["--headless"],
        "octview --size ": [],
    }
    for shell in "bash", "zsh":
        for (line, want), said in zip(lines.items(), offered(shell, *lines)):
            begun = re.split("[ =]", line)[-1]
            if shell == "zsh":
                said = [word for word in said if word.startswith(begun)]
            assert said == want, (shell, line, said, want)


@case
def files():
    """are offered where --help says FILE, folders where one is taken, names with blanks whole"""
    for name in "one.h5", "two words.h5":
        open(os.path.join(WORK, name), "w").close()
    os.makedirs(os.path.join(WORK, "odd folder"), exist_ok=True)
    taken = [(c, o) for c in FOUND for o, a in FOUND[c].items() if a and a.startswith("FILE")]
    assert len(taken) > 25, taken
    lines = [f"octctl {c} {o} " for c, o in taken]
    lines += ["octctl recon ", "octctl info o", "octctl -c ", "octctl --config=o",
              "octctl info two\\ w", "octview o", "octd --config ",
              "octctl --set calibration.kmap=o", "octctl set calibration.kmap o"]
    folders = ["octctl synth --calibration ", "octctl cells --overlay o"]
    for line, said in zip(lines + folders, offered("bash", *lines, *folders)):
        begun = re.split("[ =]", line.replace("two\\ ", "two_"))[-1].replace("_", " ")
        want = {n for n in os.listdir(WORK) if n.startswith(begun)}
        if line in folders:
            want = {"odd folder"}
        assert set(said) == want, (line, said, want)
    for line, said in zip(lines + folders, offered("zsh", *lines, *folders)):
        assert said == ["FILES-/" if line in folders else "FILES"], (line, said)
    assert offered("bash", "octd ") == [[]]


@case
def words_are_taken():
    """each word that is offered is one that the command takes, and others are refused"""
    n_words = 0
    taken = [(c, o) for c in FOUND for o, a in FOUND[c].items() if a]
    lines = [f"octctl {command} {option} " for command, option in taken]
    for (name, option), words in zip(taken, offered("bash", *lines)):
        if not words or set(words) <= set(os.listdir(WORK)):
            continue

        def tried(word, n_files):
            argv = [*name.split(), *[f"{n}.h5" for n in range(n_files)], option, word]
            done = subprocess.run([OCTCTL, *argv, *BESIDE.get((name, option), ()), *SMALL],
                                  cwd=WORK, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            for n in range(n_files):
                if os.path.exists(os.path.join(WORK, f"{n}.h5")):
                    os.remove(os.path.join(WORK, f"{n}.h5"))
            return done.returncode, done.stderr.decode().replace(word, "WORD")

        tries = ((n, tried("bogus", n)) for n in (0, 1, 2, 3))
        n_files, refused = next(t for t in tries if option.strip("-") in t[1][1])
        assert refused[0] == 2, (name, option, refused)
        for word in words:
            n_words += 1
            assert tried(word, n_files) != refused, (name, option, word, refused)
    assert n_words > 60, n_words
    bench = ok("bench", "--help")[0]
    for word in offered("bash", "octctl bench ")[0]:
        assert re.search(rf"\b{word}\b", bench), word


@case
def keys():
    """of the configuration are all there, with the words that they take"""
    reference = ok("reference")[0]
    section, want = "", []
    for line in reference.splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        found = re.match(r";? ?([a-z0-9_]+) ?=", line)
        if found and section:
            want.append(f"{section}.{found[1]}")
    for shell in "bash", "zsh":
        said = offered(shell, "octctl get ")[0]
        assert len(said) > 80 and set(said) == set(want), (shell, set(said) ^ set(want))
    values = dict(zip(want, offered("bash", *[f"octctl set {key} " for key in want])))
    some = {key: words for key, words in values.items()
            if words and not set(words) <= set(os.listdir(WORK))}
    assert len(some) > 20 and some["pipeline.range"] and some["record.eye"], some
    for key, words in some.items():
        got, _, err = run("octctl", "reference", "--set", f"{key}=bogus")
        assert got == 2 and f"--set {key}: " in err, (key, err)
    for k in range(max(map(len, some.values()))):  # values are read in their order before any check
        given = [f"--set={key}={words[k]}" for key, words in some.items() if k < len(words)]
        err = run("octctl", "reference", *given)[2]
        assert not re.match("octctl: --set [a-z_.]+: '", err), err


@case
def daemon_and_viewer():
    """octd, octview, octgenicam and octweb offer what their own --help says"""
    there = [name for name in ("octd", "octview", "octgenicam", "octweb") if os.path.exists(program(name))]
    for name in there:
        said = run(name, "--help")[1]
        want = set(re.findall(r"(?<=[ ,])--[a-z][a-z-]+", "\n".join(
            line[:26] for line in said.splitlines() if re.match("  -", line))))
        assert {"--set", "--help", "--version"} <= want, want
        for shell in "bash", "zsh":
            got = {word for word in offered(shell, f"{name} --")[0] if word.startswith("--")}
            assert got == want, (name, shell, got ^ want)


def typed(argv, setup, *lines):
    """Types lines into a shell in a terminal, each until it shows what is expected of it."""
    path = os.pathsep.join([os.path.abspath(BUILD), os.environ["PATH"]])
    child, fd = pty.fork()
    if child == 0:
        os.chdir(WORK)
        os.execvpe(argv[0], argv, {"PATH": path, "TERM": "dumb", "HOME": WORK, "PS1": "READY> ",
                                   "LC_ALL": "C.UTF-8"})
    shown = ""

    def wait_for(words):
        nonlocal shown
        end = time.monotonic() + 60
        while words not in shown:
            assert time.monotonic() < end, (words, shown)
            if select.select([fd], [], [], 0.5)[0]:
                shown += os.read(fd, 4096).decode(errors="replace").replace("\a", "")

    try:
        for line in setup:
            os.write(fd, line.encode() + b"; echo do''ne\n")
            wait_for("done\r\n")
            shown = ""
        for keys, expected in lines:
            shown = ""
            os.write(fd, b"\x15" + keys.encode())  # the line before is taken back
            wait_for(expected)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(fd)


@case
def tab():
    """completes in an interactive bash and zsh"""
    bash = ["bash", "--norc", "--noprofile", "-i"], [f"source {script('bash')}"]
    zfolder = os.path.join(WORK, "site")
    os.makedirs(zfolder, exist_ok=True)
    with open(script("zsh")) as source, open(os.path.join(zfolder, "_octctl"), "w") as to:
        to.write(source.read())
    zsh = ["zsh", "-f", "-i"], ["PS1='READY> '; unsetopt zle_bracketed_paste 2>/dev/null",
                                f"fpath=({zfolder} $fpath); autoload -Uz compinit; compinit -u -D"]
    sourced = zsh[0], ["PS1='READY> '; autoload -Uz compinit; compinit -u -D",
                       f"source {script('zsh')}"]
    for shell in bash, zsh, sourced:
        typed(*shell,
              ("octctl synth OUT --cal\t", "--calibration "),
              ("octctl synth OUT --motion uns\t", "unsteady"),
              ("octctl --set pipeline.backe\tcu\t", "pipeline.backend=cuda"),
              ("octview --hea\t", "--headless"),
              ("octctl info two\t", "two\\ words.h5"))


main()
