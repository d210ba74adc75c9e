#!/usr/bin/python3
"""octctl archive: to Orthanc and to DCMTK's storescp, which are away, killed, slow and full; to
peers that are none; killed at random moments; by TLS."""
import glob, random, shutil
import pydicom
from dicomrig import *
from octtest import *

os.environ["XDG_STATE_HOME"] = folder("state")
V, M = 12, 8
PERSON = dict(name="Müller^Jörg", id="ID-1", born="19610203", sex="M", physician="Ärztin^Eva",
              accession="A-77", step="SPS1", procedure="RP1")
PERSON["study-uid"] = "1.2.3.4.5"
seed = int(os.environ.get("SEED", "0")) or random.randrange(1 << 30)
dice = random.Random(seed)


def recording(lines=M):
    path = at("eye%d.h5" % lines)
    if not os.path.exists(path):
        raw, cal = path + ".raw", path + ".cal"
        ok("synth", raw, "--calibration", cal, *settings(scan=dict(bscans=V, lines=lines)))
        ok("recon", "-c", cal + "/calibration.ini", raw, path, *settings(
            scan=dict(width_um=100, height_um=100), pipeline=dict(crop_last=128)))
        ok("label", path, "--eye", "OD", "--pseudonym", "P-AAAAAAAA")
    return path


def whole_file():
    """One that is DICOM already."""
    path = at("whole.dcm")
    ok("export", recording(), path, "--force")
    return path


class Queue:
    """A queue of its own, towards a peer."""

    def __init__(self, name, peer, **keys):
        self.path = os.path.join(folder("queues"), name)
        self.keys = settings(dicom=dict(archive=peer, queue=self.path) | dict(timeout_s=1) | keys)

    def do(self, *words):
        return ok("archive", *words, *self.keys)[0]

    def send(self, n, *more):
        """n instances of one B-scan each; their UIDs."""
        said = [self.do("send", recording(), "--frames", f"{i}:{i + 1}", *more) for i in range(n)]
        uids = [line.split("bscans, ")[1].split(":")[0] for line in said]
        assert len(set(uids)) == n
        return uids

    def notes(self):
        return {i["uid"]: i for i in json.loads(self.do("status", "--json"))["instances"]}

    def run(self, *more):
        return subprocess.Popen([program("octctl"), "archive", "run", *self.keys, *more],
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True)

    def empty(self, timeout_s=PATIENCE_S):
        process = self.run("--until-empty")
        said = process.communicate(timeout=timeout_s)[0]
        assert process.returncode == 0, said
        return said

    def files(self):
        return sorted(n for n in os.listdir(self.path) if n.endswith(".dcm"))


@contextlib.contextmanager
def small_disk(name, size="16k"):
    """A folder on a disk of its own; None where nothing may be mounted."""
    where = folder(name)
    is_mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=" + size, "tmpfs", where],
                                capture_output=True).returncode == 0
    try:
        yield where if is_mounted else None
    finally:
        if is_mounted:
            subprocess.run(["umount", "-l", where], check=True)


@case
def to_orthanc():
    """a recording with the patient's name arrives in Orthanc as it was made, and is confirmed"""
    words = [w for key, value in PERSON.items() for w in ("--" + key, value)]
    ok("identify", "P-AAAAAAAA", *words)
    with Orthanc() as archive:
        q = Queue("orthanc", archive.peer)
        doctor = json.loads(ok("doctor", "--dicom", "--json", *q.keys)[0])
        assert doctor["ok"] and "answers" in doctor["checks"][0]["text"], doctor
        q.do("send", recording(), "--identity", "real")
        made = open(os.path.join(q.path, q.files()[0]), "rb").read()
        q.do("send", recording())
        assert "waits already" in q.do("send", recording())
        again, = json.loads(q.do("send", recording(), "--json"))
        assert (again["state"], again["new"], again["file"]) == ("waiting", False, recording())
        assert "2 waiting" in q.do("status")
        assert {os.stat(os.path.join(q.path, f)).st_mode & 0o777 for f in os.listdir(q.path)} \
            == {0o600} and os.stat(q.path).st_mode & 0o777 == 0o700
        said = q.empty()
        assert said.count("stored") == 2 and "Müller" not in said and "ID-1" not in said, said
        assert "the archive has it already" in q.do("send", recording())
        assert not q.files() and {n["state"] for n in q.notes().values()} == {"stored"}
        stored = archive.instances()
    assert len(stored) == 2
    both = [pydicom.dcmread(pydicom.filebase.DicomBytesIO(s)) for s in stored]
    real = next(d for d in both if d.PatientName)
    masked = next(d for d in both if not d.PatientName)
    mine = pydicom.dcmread(pydicom.filebase.DicomBytesIO(made))
    assert real.pixel_array.tobytes() == mine.pixel_array.tobytes() and real == mine
    assert (real.PatientName, real.PatientID, real.PatientBirthDate, real.PatientSex) == \
        ("Müller^Jörg", "ID-1", "19610203", "M")
    assert (real.ReferringPhysicianName, real.AccessionNumber, real.StudyInstanceUID) == \
        ("Ärztin^Eva", "A-77", "1.2.3.4.5")
    asked = real.RequestAttributesSequence[0]
    assert (asked.ScheduledProcedureStepID, asked.RequestedProcedureID) == ("SPS1", "RP1")
    assert masked.PatientID == "P-AAAAAAAA" and masked.StudyDate == "19000101"
    assert real.StudyDate != "19000101" and "PatientIdentityRemoved" not in real
    for name in "SeriesInstanceUID", "FrameOfReferenceUID", "StudyInstanceUID", "SOPInstanceUID":
        assert real[name].value != masked[name].value, name  # the one does not lead to the other


@case
def whole_exam():
    """B-scans, picture from above and report go together, or none; without a retina the page says
    so"""
    def pages(got):
        return [e for e in got if "EncapsulatedDocument" in e]

    def text(page):
        with open(at("page.pdf"), "wb") as file:
            file.write(page.EncapsulatedDocument)
        return subprocess.run(["pdftotext", at("page.pdf"), "-"], capture_output=True,
                              check=True).stdout.decode()
    path = recording(16)
    with storescp(folder("exam")) as archive:
        q = Queue("exam", archive.peer)
        made = json.loads(q.do("exam", path, "--json"))
        assert [i["what"] for i in made] == ["bscans", "enface", "report"], made
        assert all(i["new"] and i["pseudonym"] == "P-AAAAAAAA" for i in made), made
        assert not any(i["new"] for i in json.loads(q.do("exam", path, "--json")))
        ok("label", path, "--pseudonym", "P-UNKNOWN")
        got, _, err = run("octctl", "archive", "exam", path, "--identity", "real", *q.keys)
        assert got == 1 and "nobody is known" in err and len(q.files()) == 3, err
        assert not [n for n in os.listdir(q.path) if n.startswith("incoming")]
        ok("label", path, "--pseudonym", "P-AAAAAAAA")
        q.do("exam", path, "--identity", "real")
        q.empty()
        exams = [pydicom.dcmread(p) for p in glob.glob(folder("exam") + "/*")]
    assert len(exams) == 6 and len({e.StudyInstanceUID for e in exams}) == 2, len(exams)
    masked, = pages(e for e in exams if not e.PatientName)
    real, = pages(e for e in exams if e.PatientName)
    assert "no retina seen" in text(masked) and "P-AAAAAAAA" in text(masked)
    assert "Jörg" in text(real) and "Jörg" not in text(masked) and "no retina seen" in text(real)


@case
def exam_of_a_circle():
    """a circle has no picture from above; its exam is B-scans and report"""
    scan = dict(bscans=4, lines=64, pattern="circle", width_um=900)
    ok("synth", at("circle.raw.h5"), *settings(scan=scan))
    ok("recon", at("circle.raw.h5"), at("circle.h5"))
    ok("label", at("circle.h5"), "--eye", "OS", "--pseudonym", "P-AAAAAAAA")
    q = Queue("circle", f"ARCHIVE@127.0.0.1:{free_port()}")
    made = json.loads(q.do("exam", at("circle.h5"), "--json"))
    assert [i["what"] for i in made] == ["bscans", "report"], made


@case
def away_for_a_while():
    """nobody is there: it is tried again ever less often, and all arrives once when he is"""
    port, where = free_port(), folder("away")
    q = Queue("away", f"ARCHIVE@127.0.0.1:{port}")
    uids = q.send(3)
    process = q.run()
    try:
        until(lambda: sum(n["tries"] for n in q.notes().values()) >= 4, "four tries")
        time.sleep(1)
        tries = sum(n["tries"] for n in q.notes().values())
        assert tries <= 6 and all("127.0.0.1" in n["reason"] for n in q.notes().values()), q.notes()
        assert json.loads(q.do("status", "--json"))["running"]
        refused = run("octctl", "archive", "run", *q.keys)
        assert refused[0] == 1 and "another process" in refused[2], refused
        with storescp(where, port=port) as archive:
            q.do("retry")
            until(lambda: not q.files(), "all have arrived")
            got = open(archive.log).read().count("Received Store Request")
        assert sorted(os.listdir(where)) == sorted("OPt." + u for u in uids) and got == 3, got
        # It answers no question: nobody says "stored".
        assert {n["state"] for n in q.notes().values()} == {"sent"}
    finally:
        process.send_signal(signal.SIGTERM)
        said = process.communicate(timeout=PATIENCE_S)[0]
    assert process.returncode == 0, said


@case
def full_slow_killed():
    """a full disk there, a slow one, one that is killed in the middle: it arrives in the end"""
    q = Queue("full", f"ARCHIVE@127.0.0.1:{free_port()}")
    # storescp does not see that a file of less than a block was never written.
    uid = q.do("send", recording()).split("bscans, ")[1].split(":")[0]
    port = int(q.keys[1].split(":")[-1])
    process = q.run()
    try:
        with small_disk("full", "4k") as full:
            if full:
                with open(full + "/all", "wb") as file:
                    file.write(bytes(4096))
                with storescp(full, port=port):
                    q.do("retry")
                    until(lambda: "out of resources" in q.notes()[uid]["reason"], "a refusal")
        with storescp(folder("slow"), "--sleep-during", 30, port=port):
            before = q.notes()[uid]["tries"]
            q.do("retry")
            until(lambda: q.notes()[uid]["tries"] > before, "a try that was given up")
        with storescp(folder("killed"), "--sleep-during", 1, port=port) as archive:
            before = q.notes()[uid]["tries"]
            q.do("retry")
            until(lambda: "Received Store Request" in open(archive.log).read(), "a request")
            archive.kill()
            until(lambda: q.notes()[uid]["tries"] > before, "a try that was cut off")
            assert q.files() == [uid + ".dcm"]
        with storescp(folder("well"), port=port):
            q.do("retry")
            until(lambda: not q.files(), "the arrival")
        assert os.listdir(folder("well")) == ["OPt." + uid]
    finally:
        process.kill()
        process.communicate()


@case
def no_room_here():
    """a full disk on this side: one line, and nothing half done in the queue"""
    with small_disk("small") as where:
        if not where:
            raise Skip("nothing may be mounted")
        keys = settings(dicom=dict(queue=where, archive="A@127.0.0.1:9"))
        for path in recording(), whole_file():
            got, out, err = run("octctl", "archive", "send", path, *keys)
            assert got == 1 and err.count("\n") == 1 and "No space" in err and not out, (out, err)
            assert not [n for n in os.listdir(where) if not n.startswith(".")], os.listdir(where)
            assert "0 waiting, 0 arrived" in ok("archive", "status", *keys)[0]


@case
def killed_at_random():
    """kill -9 at 50 moments: no child is left, everything arrives"""
    n_kills, where = 200 if LONG else 50, folder("random")
    source = at("one.dcm")
    ok("export", recording(), source, "--frames", "0:1")
    one, paths = pydicom.dcmread(source), []
    for i in range(n_kills):
        one.SOPInstanceUID = one.file_meta.MediaStorageSOPInstanceUID = f"1.2.3.{seed}.{i}"
        paths.append(at(f"random{i}.dcm"))
        one.save_as(paths[-1])
    with storescp(where) as archive:
        q = Queue("random", archive.peer)
        q.do("send", *paths)
        assert len(q.files()) == len(paths)
        n_there, middle_s = 0, 0.2
        for number in range(n_kills):
            process = q.run()
            time.sleep(dice.uniform(0, 2 * middle_s))
            process.kill()
            process.communicate()
            middle_s *= 0.9 if len(os.listdir(where)) > n_there else 1.15  # where something happens
            n_there = len(os.listdir(where))
            until(lambda: not left(q.path), "the end of its children", 10)
            for note in q.notes().values():  # what has not arrived is there, whole
                assert note["done"] if not note["bytes"] else True, note
        n_before = len(os.listdir(where))
        q.empty()
        n_received = open(archive.log).read().count("Received Store Request")
    arrived = {n.split(".", 1)[1] for n in os.listdir(where)}
    assert arrived == {f"1.2.3.{seed}.{i}" for i in range(len(paths))}, (arrived, seed)
    assert all(n["done"] for n in q.notes().values()) and not q.files()
    assert not [n for n in os.listdir(q.path) if n.startswith("incoming")]
    seen(f"{n_kills} kills, {n_before} of {len(paths)} arrived meanwhile, {n_received} requests "
         f"(SEED={seed})")
    assert n_before >= n_kills // 5 and n_received - len(paths) <= n_kills


@case
def hostile_peers():
    """silence, garbage, endless PDUs: the child ends, the instance waits, the queue goes on"""
    q = Queue("hostile", "A@127.0.0.1:9")
    uid, = q.send(1)
    for talk in HOSTILE:
        with Peer(talk) as peer:
            keys = [*q.keys, *settings(dicom=dict(archive=peer.peer, worklist=peer.peer))]
            began = time.monotonic()
            process = subprocess.Popen([program("octctl"), "archive", "run", *keys],
                                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            try:
                before = q.notes()[uid]["tries"]
                until(lambda: q.notes()[uid]["tries"] > before or process.poll() is not None,
                      talk.__name__)
            finally:
                process.terminate()
                said = process.communicate(timeout=PATIENCE_S)[0]
            assert process.returncode == 0 and q.files() == [uid + ".dcm"], said
            took = time.monotonic() - began
            assert took < 25 or SLOW, (talk.__name__, took)
            assert peer.n >= 1 and not left(peer.peer.split(":")[1])
            q.do("retry")


@case
def child_dies_too():
    """kill -9 while the other side says nothing: the child is gone at once, and another may begin"""
    with Peer(silent) as peer:
        q = Queue("orphan", peer.peer, timeout_s=60)
        uid, = q.send(1)
        for number in range(2):
            process = q.run()
            until(lambda: peer.n > number and left(uid), "a transfer")
            process.kill()
            process.communicate()
            until(lambda: not left(uid), "the end of its child", 5)
        assert q.files() == [uid + ".dcm"]


@case
def by_tls():
    """with certificates of openssl's: the right ones arrive, others do not"""
    def openssl(*words):
        subprocess.run(["openssl", *words], check=True, capture_output=True, cwd=at())
    for name in "here", "there", "other":
        openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
                f"/CN={name}", "-keyout", name + ".key", "-out", name + ".crt")
    tls = dict(tls="yes", tls_key=at("here.key"), tls_cert=at("here.crt"), tls_ca=at("there.crt"))
    with storescp(folder("tls"), "+tls", at("there.key"), at("there.crt"), "+cf",
                  at("here.crt")) as archive:
        q = Queue("tls", archive.peer, **tls)
        uid, = q.send(1)
        for wrong in (dict(tls="no"), dict(tls, tls_ca=at("other.crt")),
                      dict(tls, tls_key=at("other.key"), tls_cert=at("other.crt"))):
            keys = settings(dicom=dict(archive=archive.peer, timeout_s=1) | wrong)
            got, out, _ = run("octctl", "doctor", "--dicom", *keys)
            assert got == 1 and "WRONG  dicom.archive" in out, (wrong, out)
        assert "by TLS" in ok("doctor", "--dicom", *q.keys)[0]
        q.empty()
        assert os.listdir(folder("tls")) == ["OPt." + uid]
    refused_by("doctor", 2, "unknown option", "--dicoms")
    got, out, _ = run("octctl", "doctor", "--dicom", *settings(
        dicom=dict(archive="A@127.0.0.1:9", tls="yes")))
    assert got == 1 and "dicom.tls_ca is empty" in out, out


@case
def what_is_refused():
    """nothing leaves without a key; peers that are none; unknown instances; who is not known"""
    refused_by("archive", 2, "is no part", "sent")
    got, _, err = run("octctl", "archive", "run")
    assert got == 2 and "nothing leaves this machine" in err, err
    for peer in ("pacs", "A@pacs", "A@pacs:0", "A@:104", "-A@pacs:104", "A@-o:104", "A@a b:104",
                 "ABCDEFGHIJKLMNOPQ@pacs:104", "A@pacs:104 -x"):
        got, _, err = run("octctl", "archive", "status", *settings(dicom=dict(archive=peer)))
        assert got == 2 and "dicom.archive" in err, (peer, err)
    q = Queue("refused", "A@127.0.0.1:9")
    for words in ("drop", "1.2.3"), ("retry", "../x"), ("drop", "../../etc/passwd"):
        got, _, err = run("octctl", "archive", *words, *q.keys)
        assert got == 1 and "is not in" in err, err
    ok("label", recording(), "--pseudonym", "P-UNKNOWN")
    got, _, err = run("octctl", "archive", "send", recording(), "--identity", "real", *q.keys)
    assert got == 1 and "nobody is known by the pseudonym" in err and not q.files(), err
    shutil.copy(recording(), at("open.h5.part"))  # octd has not closed it yet
    for words in ("archive", "send", at("open.h5.part")), ("export", at("open.h5.part"),
                                                          at("open.dcm")):
        got, _, err = run("octctl", *words, *q.keys)
        assert got == 1 and "is still being written" in err and not q.files(), err
    assert not os.path.exists(at("open.dcm"))
    shutil.copy(recording(), at("copy.h5"))
    got, _, err = run("octctl", "export", recording(), at("never.png"), "--identity", "real")
    assert got == 2 and "--identity is of DICOM" in err, err
    ok("label", recording(), "--pseudonym", "P-AAAAAAAA")


main()
