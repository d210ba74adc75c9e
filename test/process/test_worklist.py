#!/usr/bin/python3
"""octctl worklist and identify: DCMTK's wlmscpfs as the hospital's list, peers that are none; who a
patient is stands in octctl's folder, and in nothing that octd writes, logs or sends."""
import glob, shutil, stat, urllib.request
import pydicom
from dicomrig import *
from octtest import *

STATE = folder("state")
os.environ["XDG_STATE_HOME"] = STATE
DAY = "20301231"
ZOE = dict(name="Ørsted^Zoë", id="ID-2", accession="A-78", time="091500", charset="ISO_IR 100",
           what="Kontrolle", study="1.2.3.5", step="SPS2", procedure="RP2", sex="F")
JOE = dict(name="Müller^Jörg=Müller^Jörg", id="ID-1", accession="A-77", time="101500", sex="M",
           physician="Ärztin^Eva", study="1.2.3.4")
WRONG = dict(name="O", id="ID-4", modality="US", time="080000")


def identities():
    return sorted(glob.glob(os.path.join(STATE, "octd", "identities", "*")))


def keys_of(peer):
    return settings(dicom=dict(worklist=peer, timeout_s=1))


def listed(keys, *more):
    return json.loads(ok("worklist", "--date", DAY, "--json", *keys, *more)[0])


@case
def the_days_list():
    """the list of a day by time, in two character sets, of OPT or of all"""
    with Worklist(JOE, ZOE, WRONG) as server:
        keys = keys_of(server.peer)
        zoe, joe = listed(keys)
        assert (zoe["number"], zoe["name"], zoe["id"], zoe["accession"], zoe["description"]) == \
            (1, "Ørsted^Zoë", "ID-2", "A-78", "Kontrolle") and zoe["readable"], zoe
        assert [joe[k] for k in ("number", "name", "physician", "study-uid", "born", "step")] == \
            [2, JOE["name"], "Ärztin^Eva", "1.2.3.4", "19610203", "SPS1"], joe
        out, _ = ok("worklist", "--date", DAY, *keys)
        assert out.splitlines()[0] == "  1  09:15  Ørsted^Zoë  ID-2  A-78  Kontrolle", out
        assert [e["modality"] for e in listed(keys, "--modality", "any")] == ["US", "OPT", "OPT"]
        assert listed(keys, "--modality", "US")[0]["id"] == "ID-4"
        assert json.loads(ok("worklist", "--date", "20301230", "--json", *keys)[0]) == []
        assert ok("worklist", *keys)[0] == "nobody\n"  # today
        server.add(**dict(JOE, id="ID-9", name="Evil\x1b[2J^\tX", time="230000"))
        evil = listed(keys)[-1]
        assert evil["id"] == "ID-9" and not evil["readable"] and "\x1b" not in evil["name"], evil
        assert "\x1b" not in ok("worklist", "--date", DAY, *keys)[0]
        refused_by("worklist", 1, "takes it by hand", "--date", DAY, "--take", "3", *keys)
        refused_by("worklist", 1, "not in the list", "--date", DAY, "--take", "4", *keys)
        refused_by("worklist", 2, "YYYYMMDD", "--date", "today", *keys)
    refused_by("worklist", 2, "dicom.worklist is empty")
    assert not os.listdir(os.path.join(STATE, "octd", "worklist")) and not identities()


@case
def nobody_knows_the_name():
    """taken, recorded, exported: the name is in octctl's folder and the real export alone"""
    canary = "Kanarienvogel"
    port, n, m, v = free_port(), 256, 8, 4
    base = settings(camera=dict(samples=n),
                    scan=dict(lines=m, bscans=v, width_um=100, height_um=100),
                    calibration=dict(wavelengths=calibration(n)), pipeline=dict(crop_last=100),
                    metrics=dict(endpoint=f"127.0.0.1:{port}"))
    ok("synth", at("lines.h5"), *base)
    heard = []
    someone = dict(JOE, name=f"{canary}^Maria", id=canary + "-1", physician=canary)
    with Worklist(someone) as server, \
            Daemon(*base, "--set", "record.eye=OD") as daemon:
        keys = [*keys_of(server.peer), *daemon.common]
        entry, = listed(keys)
        topics = daemon.subscriber("")
        taken = listed(keys, "--take", entry["key"])
        pseudonym = taken["pseudonym"]
        assert re.fullmatch("P-[A-Z]{8}", pseudonym) and canary in taken["name"], taken
        assert daemon.ask("get", key="record.pseudonym")["value"] == pseudonym
        assert daemon.ask("record", action="start")["ok"]
        with Replay(daemon, at("lines.h5"), 2000, *base):
            daemon.wait(lambda s: s["volumes_written"] >= 1)
        assert daemon.ask("record", action="stop")["ok"]
        while topics.poll(200):
            heard += topics.recv_multipart()
        heard.append(json.dumps(daemon.status()).encode())
        heard.append(urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics").read())
        daemon.end()
        heard.append(daemon.log().encode())
        files = glob.glob(daemon.records + "/*.h5")
    for path in files:
        heard.append(open(path, "rb").read() + path.encode())
    assert len(heard) > 10 and files and any(pseudonym.encode() in part for part in heard)
    for part in heard:
        assert canary.encode() not in part, part[:200]
    path, = identities()
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    for up in path, os.path.dirname(path), os.path.dirname(os.path.dirname(path)):
        assert not os.stat(up).st_mode & 0o077, up
    assert canary in open(path).read() and canary not in path
    queue = settings(dicom=dict(archive="A@127.0.0.1:9", queue=at("queue")))
    said = ok("archive", "send", files[0], "--identity", "real", *queue)
    said += ok("archive", "status", *queue)
    assert canary not in said[0] + said[1] + said[2] + said[3]
    sent, = glob.glob(at("queue") + "/*.dcm")
    assert pydicom.dcmread(sent).PatientName == f"{canary}^Maria"
    for note in glob.glob(at("queue") + "/*.json"):
        assert canary not in open(note).read() and pseudonym in open(note).read()
    ok("export", files[0], at("masked.dcm"))
    assert canary.encode() not in open(at("masked.dcm"), "rb").read()
    where = settings(record=dict(directory=os.path.dirname(files[0])))
    out, _ = ok("label", "--forget", files[0], *queue, *where)
    assert "was removed" in out and "waits for the archive" in out and canary not in out, out
    assert f"{len(files)} recordings" in out and not identities(), out
    got, _, err = run("octctl", "export", files[0], at("never.dcm"), "--identity", "real")
    assert got == 1 and "nobody is known" in err and not os.path.exists(at("never.dcm")), err
    assert "nobody was known" in ok("label", "--forget", pseudonym, *queue, *where)[0]
    shutil.rmtree(at("queue"))


@case
def without_octd():
    """where octd is not there nobody is taken, and nothing of it stays"""
    with Worklist(JOE) as server:
        keys = [*keys_of(server.peer), "--set", f"control.endpoint=ipc://{at('nobody')}"]
        got, out, err = run("octctl", "worklist", "--date", DAY, "--take", "1", *keys)
        assert got == 1 and err.count("\n") == 1 and not out, (out, err)
    assert not identities()


@case
def typed_by_hand():
    """octctl identify: shown, changed, refused where DICOM would not take it"""
    ok("identify", "Zoë 7/..", "--name", "Zoë^Ø", "--id", "7")
    ok("identify", "Zoë 7/..", "--born", "20010203")
    shown = json.loads(ok("identify", "Zoë 7/..", "--json")[0])
    assert shown == {"pseudonym": "Zoë 7/..", "name": "Zoë^Ø", "id": "7", "born": "20010203"}
    for words in ("--sex", "X"), ("--born", "3.2.2001"), ("--name", "a\\b"), ("--name", "a\tb"), \
            ("--id", "x" * 65), ("--accession", "x" * 17), ("--study-uid", "1.2.x"), ("--id", ""):
        got, _, err = run("octctl", "identify", "Zoë 7/..", *words)
        assert got == 2 and err.count("\n") == 1, (words, got, err)
    assert json.loads(ok("identify", "Zoë 7/..", "--json")[0]) == shown

    def typed(text, *more):
        done = subprocess.run([program("octctl"), "identify", "P-Y", "--from", "-", *more],
                              input=text.encode(), capture_output=True)
        return done.returncode, done.stdout.decode(), done.stderr.decode()
    assert typed(json.dumps(dict(shown, sex="F"))) == (0, "", "")  # in no list of processes
    assert json.loads(ok("identify", "P-Y", "--json")[0]) == dict(shown, pseudonym="P-Y", sex="F")
    for text, words, *more in (("", "JSON"), ("[7]", "JSON"), (" " * 20000, "JSON"),
                               ('{"name": 7}', "name is no text"), ('{"sex": "X"}', "sex"),
                               ('{"id": "%s"}' % ("x" * 300), "id is too long"),
                               ('{"name": "A\\u0007"}', "name"), ("{}", "not both", "--id", "8")):
        got, out, err = typed(text, *more)
        assert got == 2 and err.count("\n") == 1 and words in err and not out, (text, got, err)
    with open(at("who.json"), "w") as file:
        file.write('{"born": "19990101"}')
    ok("identify", "P-Y", "--from", at("who.json"))
    assert json.loads(ok("identify", "P-Y", "--json")[0])["born"] == "19990101"
    refused_by("identify", 1, "nowhere.json", "P-Y", "--from", at("nowhere.json"))
    ok("label", "--forget", "P-Y")
    refused_by("identify", 1, "nobody is known", "P-X")
    refused_by("identify", 2, "a name and an id", "P-X", "--sex", "M")
    path, = identities()
    open(path, "w").write('{"pseudonym": "another"}')
    refused_by("identify", 1, "it says nobody", "Zoë 7/..")
    ok("label", "--forget", "Zoë 7/..")
    assert not identities()


@case
def hostile_lists():
    """silence, garbage, endless PDUs: one line, in time, nothing is left"""
    for talk in HOSTILE:
        with Peer(talk) as peer:
            began = time.monotonic()
            refused_by("worklist", 1, "", "--date", DAY, *keys_of(peer.peer))
            took = time.monotonic() - began
            assert took < 10 or SLOW, (talk.__name__, took)
            assert not left(peer.peer.split(":")[1])
    refused_by("worklist", 1, "127.0.0.1:9", "--date", DAY, *keys_of("A@127.0.0.1:9"))
    left_over = os.path.join(STATE, "octd", "worklist", "answers.abcdef")  # of one that was killed
    for age_s, is_kept in (60, True), (4000, False):
        os.makedirs(left_over, exist_ok=True)
        open(left_over + "/rsp0001.dcm", "w").close()
        os.utime(left_over, (time.time() - age_s,) * 2)
        refused_by("worklist", 1, "", "--date", DAY, *keys_of("A@127.0.0.1:9"))
        assert os.path.exists(left_over) == is_kept


main()
