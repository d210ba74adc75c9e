#!/usr/bin/python3
"""octview in a hospital: the day's patients in the window, one of them taken, recorded, played back
and exported; DCMTK's wlmscpfs as worklist, Orthanc as archive, octctl archive run beside them. The
name is seen in the window and is in the archive, and nowhere else. At 1280 x 800 and 3840 x 2160, with
OCT_LONG=1 at 1920 x 1080 too."""
import threading
import pydicom
from dicomrig import *
from viewrig import *

MOST_TAPS = 8
TODAY = time.strftime("%Y%m%d")
JOE = dict(name="Müller^Jörg", id="ID-1", accession="A-77", time="101500", sex="M", date=TODAY)
SHAPES = ((1280, 800), (1920, 1080), (3840, 2160)) if LONG else ((1280, 800), (3840, 2160))
PANELS = (0.05, 0.9)


class Ward(Desk):
    """A desk whose octview knows the hospital; keys of [dicom]."""

    def __init__(self, name, size=SHAPES[0], **dicom):
        super().__init__(name, *size, dicom=dict(timeout_s=2, queue=f"{folder('queues')}/{name}",
                                                 **dicom))

    def live(self, *words):
        self.open(*words)
        self.start_octd()
        self.start_camera()
        self.until(lambda: self.state_is("LIVE"), "LIVE")
        self.until(lambda: self.find("OD", HEADER), "the patient's row")
        self.n_clicks = 0

    def tap(self, words, *where):
        self.until(lambda: self.find(words, *where), "what is tapped: " + words)
        self.click_at(*self.find(words, *where))

    def sees(self, words, *where):
        self.until(self.says(words, *where), "words: " + words)

    def record(self):
        """A volume, by the window, and its playback."""
        self.click("Record")
        self.until(lambda: self.ask("status")["volumes_written"] >= 1, "a volume")
        self.click("Stop")
        self.until(lambda: not self.ask("status")["record"]["active"], "the end of it")
        self.click("Playback")
        self.until(lambda: self.state_is("PLAYBACK"), "PLAYBACK")

    def asks(self):
        self.keys("ctrl+n")

    def is_moving(self):
        before = self.middle()
        self.until(lambda: not np.array_equal(self.middle(), before), "a picture that goes on")


def taps(size):
    def check():
        accession = "A-%d" % size[0]
        with Worklist(dict(JOE, accession=accession)) as worklist, Orthanc() as archive:
            desk = Ward("taps-%dx%d" % size, size, worklist=worklist.peer, archive=archive.peer,
                        identity="real")
            sender = desk.start("octctl", "archive", "run", *desk.common)
            try:
                eight_taps(desk, archive, accession)
            finally:
                desk.end(sender)
                desk.save("end")
                desk.close()
    check.__doc__ = "%dx%d: from the worklist to an exam in the archive: eight taps" % size
    case(check)


def eight_taps(desk, archive, accession):
    desk.live("--operator")
    desk.click("Next patient", "Next")
    desk.tap("Müller, Jörg", PANELS)
    desk.until(lambda: desk.value("record.pseudonym").startswith("P-"), "a pseudonym")
    pseudonym = desk.value("record.pseudonym")
    desk.click("OD")
    desk.sees("Müller, Jörg", HEADER)
    desk.until(lambda: desk.value("record.eye") == "OD", "the eye")
    snapshot = np.asarray(Image.open(desk.snap()).convert("RGB"))
    assert not desk.find("Müller, Jörg", HEADER, pixels=snapshot), "the name is in a snapshot"
    assert desk.find(pseudonym, HEADER, pixels=snapshot), "the pseudonym is in none"
    desk.record()
    desk.sees("Müller, Jörg", HEADER)
    desk.save("playback")
    desk.tap("Export", BUTTONS)
    desk.sees("ARCHIVED, with name", HEADER)
    desk.save("archived")
    n_taps = desk.n_clicks
    desk.tap("Export", BUTTONS)
    time.sleep(1)
    desk.sees("ARCHIVED, with name", HEADER)
    exams = [pydicom.dcmread(pydicom.filebase.DicomBytesIO(b)) for b in archive.instances()]
    mine = [e for e in exams if e.AccessionNumber == accession]
    assert sorted(e.Modality for e in mine) == ["DOC", "OPT", "OPT"], mine
    assert {(str(e.PatientName), e.PatientID) for e in mine} == {("Müller^Jörg", "ID-1")}
    assert len({e.StudyInstanceUID for e in mine}) == 1
    assert [e.ImageLaterality for e in mine if e.Modality == "OPT"] == ["R", "R"]
    for path in glob.glob(desk.where + "/*.log") + glob.glob(desk.records + "/*"):
        assert "Müller".encode() not in open(path, "rb").read() and "Müller" not in path, path
    seen(f"{n_taps} taps from the list to the archive")
    assert n_taps <= MOST_TAPS, n_taps


@case
def a_long_list():
    """500 patients, hostile names: keys and wheel scroll, Enter takes; names of any kind are shown"""
    with Worklist(dict(JOE, id="one")) as server:
        one = pydicom.dcmread(server.files + "/one.wl", force=True)
        names = ["<b>&amp;%s%n</b>", "R" * 64, "\u0141ukasz^\u017b\u00f3\u0142\u0107", "A\x1b[2J^B"]
        for i in range(499):
            one.PatientName = names[i] if i < len(names) else f"Nobody^{i}"
            one.PatientID = one.SOPInstanceUID = f"1.{i}"
            one.ScheduledProcedureStepSequence[0].ScheduledProcedureStepStartTime = \
                f"{8 + i // 60:02}{i % 60:02}00"
            one.save_as(f"{server.files}/w{i}.wl")
        desk = Ward("long", worklist=server.peer)
        try:
            desk.live()
            desk.asks()
            desk.sees("of 500, by wheel or Page keys", PANELS)
            desk.save("list")
            desk.sees("Żółć", PANELS)
            desk.is_moving()
            desk.keys("Next")
            desk.sees("Nobody, 15", PANELS)
            desk.xdotool("mousemove", desk.width * 3 // 4, desk.height // 2, "click", 5)
            desk.sees("Nobody, 25", PANELS)
            desk.keys("Down", "Down", "Return")
            desk.until(lambda: desk.value("record.pseudonym").startswith("P-"), "a pseudonym")
            desk.sees("Nobody,", HEADER)
            desk.until(lambda: not desk.find("by wheel", PANELS), "the list to be gone")
            who = json.loads(ok("identify", desk.value("record.pseudonym"), "--json")[0])
            assert re.fullmatch(r"Nobody\^\d+", who["name"]), who
        finally:
            desk.save("long")
            desk.close()


def children(port):
    """Of octview, and theirs."""
    return [line for line in left(port) if b"--json" in line or line.startswith(b"findscu")]


@case
def a_list_that_does_not_come():
    """slow, garbage, absent, empty: said in the window; the picture goes on, a pseudonym is typed,
    and nothing is left when the window closes"""
    with Peer(silent) as peer:
        desk, port = Ward("slow", worklist=peer.peer), peer.peer.split(":")[1]
        try:
            desk.live()
            desk.asks()
            desk.sees("asking the worklist ...", PANELS)
            desk.is_moving()
            desk.keys("t")
            desk.type("P-typed")
            desk.keys("Return")
            desk.until(lambda: desk.value("record.pseudonym") == "P-typed", "a typed pseudonym")
            desk.until(lambda: not desk.find("asking the worklist", PANELS), "no list")
            desk.asks()
            desk.until(lambda: len(children(port)) == 2, "octctl and findscu")
            desk.keys("Escape")
            desk.keys("q")
            assert desk.viewer.wait(PATIENCE_S) == 0
            until(lambda: not children(port), "the end of its children", 10)
        finally:
            desk.close()
    with Worklist() as empty, Peer(garbage) as wrong:
        for name, worklist, words in (("empty", empty.peer, "nobody is on the list of today"),
                                      ("garbage", wrong.peer, "the worklist cannot be read"),
                                      ("absent", f"A@127.0.0.1:{free_port()}", "refused")):
            desk = Ward(name, worklist=worklist)
            try:
                desk.live()
                desk.asks()
                desk.sees(words, PANELS)
                desk.save(name)
                if name == "empty":
                    empty.add(**JOE)
                    desk.tap("ask again", PANELS)
                    desk.sees("Müller, Jörg", PANELS)
                    desk.keys("Escape")
                    desk.until(lambda: not desk.find("who is next?", PANELS), "no list")
            finally:
                desk.close()


@case
def nobody_is_taken():
    """a patient who is not on the list any more: said, and octd has the pseudonym of nobody"""
    with Worklist(JOE) as server:
        desk = Ward("gone", worklist=server.peer)
        try:
            desk.live()
            desk.set(record__pseudonym="P-before")
            desk.sees("P-before", HEADER)
            desk.asks()
            desk.sees("Müller, Jörg", PANELS)
            for path in glob.glob(server.files + "/*.wl"):
                os.remove(path)
            desk.tap("Müller, Jörg", PANELS)
            desk.sees("not taken from the worklist", (0.8, 1))
            assert desk.value("record.pseudonym") == ""
        finally:
            desk.close()


@case
def without_octctl():
    """octview without octctl says so, and shows its pictures"""
    desk = Ward("alone", worklist="A@127.0.0.1:9")
    where = folder("alone-bin")
    shutil.copy(program("octview"), where)
    try:
        desk.start_octd()
        desk.start_camera()
        desk.viewer = subprocess.Popen(
            [where + "/octview", *desk.common, "--settings", "none", "--size",
             f"{desk.width}x{desk.height}"], env=dict(desk.env, PATH="/nowhere"), cwd=desk.where,
            stdin=subprocess.DEVNULL)
        desk.xdotool("search", "--sync", "--name", "^octview ")
        desk.until(lambda: desk.state_is("LIVE"), "LIVE")
        desk.asks()
        desk.sees("octctl cannot be started", PANELS)
        desk.is_moving()
    finally:
        desk.close()


@case
def a_file_beside_the_recording():
    """without an archive: a masked file beside the recording, once; refused where it cannot be"""
    desk = Ward("file")
    try:
        desk.live()
        desk.record()
        desk.tap("Export", BUTTONS)
        desk.sees("an exam is of an eye", BANNERS)
        desk.save("which-eye")
        desk.keys("1")
        desk.until(lambda: any(json.loads(ok("info", "--json", name)[0])["eye"] == "OD"
                               for name in glob.glob(desk.records + "/*.h5")), "the eye")
        time.sleep(1)
        desk.tap("Export", BUTTONS)
        desk.sees("EXPORTED, masked", HEADER)
        desk.save("file-exported")
        path, = glob.glob(desk.records + "/*.dcm")
        made = open(path, "rb").read()
        assert not pydicom.dcmread(path).PatientName
        desk.tap("Report", BUTTONS)
        desk.until(lambda: glob.glob(desk.records + "/*-report.pdf"), "the report")
        page = subprocess.run(["pdftotext", path[:-4] + "-report.pdf", "-"], capture_output=True,
                              check=True).stdout.decode()
        assert "Not for diagnosis" in page and "right eye" in page, page
        desk.keys("ctrl+x")
        time.sleep(1)
        assert open(path, "rb").read() == made and len(glob.glob(desk.records + "/*.dcm")) == 1
        desk.end(desk.viewer)
        desk.open(path[:-4] + ".h5")  # another window does not know of it
        desk.until(lambda: desk.state_is("PLAYBACK"), "PLAYBACK")
        desk.tap("Export", BUTTONS)
        desk.sees("NOT EXPORTED", HEADER)
        desk.sees("is there already: move it away first", BANNERS)
        desk.save("file-refused")
        os.remove(path)
        desk.tap("Export", BUTTONS)
        desk.sees("EXPORTED, masked", HEADER)
        assert open(path, "rb").read() == made
    finally:
        desk.save("file-end")
        desk.close()


@case
def an_archive_that_is_away():
    """queued, nobody sends, the archive is away: said; once it is there the exam arrives, once"""
    port = free_port()
    desk = Ward("away", archive=f"PACS@127.0.0.1:{port}")
    sender = None
    try:
        desk.live("--operator")
        desk.set(record__pseudonym="P-1", record__eye="OD")
        desk.sees("P-1", HEADER)  # else it asks whether to record without
        desk.record()
        desk.tap("Export", BUTTONS)
        desk.sees("queued for the archive, masked", HEADER)
        desk.sees("NOBODY SENDS TO THE ARCHIVE", BANNERS)
        desk.save("nobody-sends")
        sender = desk.start("octctl", "archive", "run", *desk.common)
        desk.sees("NOT ARCHIVED YET", BANNERS)
        desk.save("not-yet")
        desk.tap("Export", BUTTONS)  # again: it waits already
        with storescp(folder("pacs"), port=port) as archive:
            desk.sees("ARCHIVED, masked", HEADER)
            time.sleep(2)
            assert open(archive.log).read().count("Received Store Request") == 3
        assert len(os.listdir(folder("pacs"))) == 3
        desk.click("Live")
        desk.until(lambda: desk.state_is("LIVE"), "LIVE")
    finally:
        desk.end(sender)
        desk.close()


@case
def nobody_is_known():
    """with name, of a patient whom nobody has named: refused with octctl's word"""
    desk = Ward("unknown", archive="A@127.0.0.1:9", identity="real")
    try:
        desk.live()
        desk.set(record__pseudonym="P-2", record__eye="OS")
        desk.record()
        desk.tap("Export", BUTTONS)
        desk.sees("NOT EXPORTED", HEADER)
        desk.sees("nobody is known by the pseudonym 'P-2'", BANNERS)
        desk.save("nobody-known")
        desk.keys("F3")
        desk.until(lambda: not desk.find("nobody is known", BANNERS), "that it is noted")
    finally:
        desk.close()


for shape in SHAPES:
    taps(shape)
main()
