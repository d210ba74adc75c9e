#!/usr/bin/python3
"""octctl report, its page reread by poppler: the words and numbers are those of the results, nobody
is known unless asked for, nothing leaves the page, and what is missing says why."""
import re, resource, shutil, subprocess
import h5py
import numpy as np
import pydicom
from dicomrig import *
from octtest import *

os.environ.update(XDG_STATE_HOME=folder("state"), TZ="Europe/Berlin")
V, M = 24, 96
FIELD = ["--set", f"scan.bscans={V}", "--set", f"scan.lines={M}", "--set", "scan.width_um=5000",
         "--set", "scan.height_um=5000"]
A4 = "595.275 x 841.89 pts (A4)"
MARGIN = 29.9  # points


def seen(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    return done.stdout.decode()


def recording(name="a.h5", eye="OD", pseudonym="Pat 7", *options):
    """A reconstructed retina, whose fovea is in the middle."""
    if not os.path.exists(at("in.h5")):
        ok("synth", at("in.h5"), "--calibration", at("cal"), "--fovea", "0.5,0.5", "--motion",
           "none", *FIELD)
    if not os.path.exists(at(name)):
        ok("recon", "-c", at("cal/calibration.ini"), *FIELD, *options, at("in.h5"), at(name))
        ok("label", at(name), "--eye", eye, f"--pseudonym={pseudonym}")
    return at(name)


def layers(source):
    out = at(os.path.basename(source) + ".layers.h5")
    if not os.path.exists(out):
        ok("surfaces", source, out)
    return out


def report(*words, out="out.pdf"):
    """The text of the page, and what the command said of it."""
    said = json.loads(ok("report", *words, at(out), "--force", "--json")[0])
    return page(at(out)), said


def page(path):
    about = seen("pdfinfo", path)
    assert re.search(r"^Pages: +1$", about, re.M) and A4 in about, about
    assert "Date" not in about, about
    for box in re.findall(r'<word xMin="(.*?)" yMin="(.*?)" xMax="(.*?)" yMax="(.*?)">',
                          seen("pdftotext", "-bbox", path, "-")):
        x0, y0, x1, y1 = map(float, box)
        assert MARGIN < x0 < x1 < 595.3 - MARGIN and 0 < y0 < y1 < 841.9, box
    text = seen("pdftotext", "-layout", path, "-")
    assert text.rstrip().endswith("Not for diagnosis."), text[-200:]
    assert len(subprocess.run(["pdftoppm", "-r", "20", path], stdout=subprocess.PIPE,
                              check=True).stdout) > 10000
    return text


def row(text, label):
    found = re.search(rf"^{re.escape(label)} {{2,}}(.*)$", text, re.M)
    return found and found.group(1).strip()


def numbers(text):
    return [int(n) for n in re.findall(r"\(?(\d+)\)?(?=,|$)", text)]


def n_images(path):
    return len(seen("pdfimages", "-list", path).splitlines()) - 2


@case
def numbers_of_the_results():
    """numbers are those of the file of octctl surfaces, in the grid too; found here they are the
    same"""
    source = recording()
    file = layers(source)
    text, said = report(source, file)
    with h5py.File(file) as f:
        means, thickness = f["etdrs/mean_um"][:], f["thickness/retina"][:]
        fovea = f["etdrs"].attrs["fovea_px"]
        crc = f.attrs["source_crc32c"]
    assert said["layers"] == "file" and said["etdrs"] and said["bscan"] == round(fovea[0]), said
    assert numbers(row(text, "ETDRS (µm)")) == [round(m) for m in means], (text, means)
    grid = text.split("Retinal thickness")[1].split("Angiogram")[0]
    for mean in means[:5]:
        assert re.search(rf"\b{mean:.0f}\b", grid), (mean, grid)
    assert f"{np.nanmean(thickness):.1f} µm thick" in row(text, "Layers"), row(text, "Layers")
    assert row(text, "Source") == f"CRC-32C {crc}" and said["source_crc32c"] == crc
    for word in ("right eye (OD)", "Pat 7", "5 x 5 mm", "through the fovea", "RNFL/GCL", "1 mm",
                 f"{V} B-scans of {M} A-lines", "interpolation nufft", "octctl 0.", "octd 0."):
        assert word in text, (word, text)
    assert 5 < said["quality"] <= 10 and f"{said['quality']:.0f} of 10" in text, said
    found, again = report(source, out="found.pdf")
    assert again["layers"] == "found" and row(found, "ETDRS (µm)") == row(text, "ETDRS (µm)")
    first = open(at("out.pdf"), "rb").read()
    report(source, file)
    assert open(at("out.pdf"), "rb").read() == first, "the same page twice has other bytes"


@case
def what_surfaces_was_told():
    """a fovea, a superior side and an eye that octctl surfaces was given hold here too"""
    source = recording("none.h5", "none")
    ok("surfaces", source, at("told.h5"), "--fovea", "8,40", "--superior", "last", "--eye", "OS",
       "--layers", "ilm,rpe", "--force")
    text, said = report(source, at("told.h5"))
    with h5py.File(at("told.h5")) as f:
        assert numbers(row(text, "ETDRS (µm)")) == [round(m) for m in f["etdrs/mean_um"][:]
                                                    if not np.isnan(m)], text
    assert said["bscan"] == 8 and said["eye"] == "OS" and "left eye (OS)" in text
    assert "its borders were not found" in text and "RNFL/GCL" not in text
    text, said = report(source, layers(source))
    assert "eye not known" in text and "inner S" in text and ", right" in row(text, "ETDRS (µm)")
    text, said = report(source, layers(source), "--eye", "OS", "--bscan", "3")
    assert "left eye (OS)" in text and said["bscan"] == 3 and "B-scan 3," in text
    assert "through the fovea" not in text


NAME = "Ångström-Wolkenwanderer^Maximiliane^^Dr.=山田^花子"


@case
def who_it_is():
    """masked: neither names, dates nor files; real: whom the pseudonym stands for, and when"""
    source = recording()
    ok("identify", "Pat 7", "--name", NAME, "--id", "HOSP-77", "--born", "19610203", "--sex", "F",
       "--accession", "A-4711")
    os.rename(source, at("Wolkenwanderer.h5"))
    secrets = ("Wolkenwanderer", "Maximiliane", "HOSP-77", "1961", "A-4711", "2000-01", "2000")
    masked, _ = report(at("Wolkenwanderer.h5"), layers(source))
    for secret in secrets:
        assert secret not in masked, (secret, masked)
    assert b"Wolkenwanderer" not in open(at("out.pdf"), "rb").read()
    assert row(masked, "Command") == "octctl report IN RESULTS OUT --identity masked"
    real, said = report(at("Wolkenwanderer.h5"), layers(source), "--identity", "real")
    os.rename(at("Wolkenwanderer.h5"), source)
    for word in ("Ångström-Wolkenwanderer, Maximiliane", "HOSP-77", "1961-02-03, F", "A-4711",
                 "2000-01-01 01:00:00", "Wolkenwanderer.h5"):
        assert word in real, (word, real)
    assert said["identity"] == "real" and "Pat 7" not in real
    text, said = report(source, layers(source), "--set", "dicom.identity=real")
    assert said["identity"] == "real" and "HOSP-77" in text


@case
def long_words_are_shortened():
    """names as long as they may be, of wide letters and several bytes, end in an ellipsis"""
    wide = "W" * 127
    source = recording("wide.h5", "OD", wide)
    text, _ = report(source, layers(source))
    assert re.search("W{8,40}…", text) and "W" * 60 not in text, text
    ok("identify", wide, "--name", "Ω" * 30 + "^" + "W" * 30 + "^=^", "--id", "界" * 64)
    text, _ = report(source, layers(source), "--identity", "real")
    assert re.search("Ω{8,30}", text) and text.count("…") >= 2, text
    ok("identify", wide, "--name", "^^=", "--id", "=^")
    report(source, layers(source), "--identity", "real")  # a name of nothing but marks


@case
def for_the_archive():
    """Encapsulated PDF: the same page, the same study as the export's, taken by archive send"""
    source = recording()
    file = layers(source)
    report(source, file)
    for identity in "masked", "real":
        ok("report", source, file, at("out.dcm"), "--identity", identity, "--force")
        ok("export", source, at("scan.dcm"), "--identity", identity, "--force")
        d, scan = pydicom.dcmread(at("out.dcm")), pydicom.dcmread(at("scan.dcm"))
        assert d.SOPClassUID == "1.2.840.10008.5.1.4.1.1.104.1" and d.Modality == "DOC"
        assert d.MIMETypeOfEncapsulatedDocument == "application/pdf" and d.ImageLaterality == "R"
        for same in ("StudyInstanceUID", "PatientID", "PatientName", "PatientBirthDate",
                     "StudyDate", "StudyTime", "AccessionNumber"):
            assert d[same].value == scan[same].value, same
        assert d.SeriesInstanceUID != scan.SeriesInstanceUID
        assert d.BurnedInAnnotation == {"masked": "NO", "real": "YES"}[identity]
        judge = subprocess.run(["dciodvfy", at("out.dcm")], stderr=subprocess.PIPE)
        assert judge.stderr.decode().split() == ["EncapsulatedPDF"], judge.stderr
        seen("dcm2pdf", at("out.dcm"), at("back.pdf"))
        back = page(at("back.pdf"))
        assert ("HOSP-77" in back) == (identity == "real"), back
        if identity == "masked":
            assert d.PatientID == "Pat 7" and not d.PatientName and d.StudyDate == "19000101"
        elif identity == "real":
            assert str(d.PatientName) == NAME and d.StudyDate == "20000101"
        uid = d.SOPInstanceUID
        ok("report", source, file, at("named"), "--to", "dicom", "--identity", identity, "--force")
        said = ok("archive", "send", at("out.dcm"), "--set", f"dicom.queue={folder('queue')}")[0]
        assert uid in said and "waits for the archive" in said, said


@case
def circles():
    """a circle about the disc: the nerve fibres over the angle, in place of maps"""
    source = os.path.join(DATA, "eyes", "peripapillary.vol")
    if not os.path.exists(source):
        raise Skip("../shared/data/eyes is not there")
    text, said = report(source)
    ok("surfaces", source, at("circle.h5"), "--force")
    with h5py.File(at("circle.h5")) as f:
        assert numbers(row(text, "Nerve fibres (µm)")) == [round(m) for m in f["tsnit/mean_um"][:]]
    assert said["tsnit"] and not said["etdrs"] and "Nerve fibres about the optic disc" in text
    assert "180 nasal" in text and "one B-scan: there is no picture from above" in text
    assert "not measured: no dB" in text and "Spectralis .vol" in text and "2015" not in text


@case
def scans():
    """a circle of octd has nerve fibres and no picture from above; that of a star is gridded"""
    for pattern in "circle", "radial":
        scan = dict(bscans=16, lines=96, width_um=2400, pattern=pattern)
        ok("synth", at("scan.h5"), *settings(scan=scan))
        ok("recon", at("scan.h5"), at(f"of_{pattern}.h5"))
        ok("label", at(f"of_{pattern}.h5"), "--eye", "OS")
        os.remove(at("scan.h5"))
    text, said = report(at("of_circle.h5"))
    assert said["tsnit"] and "180 nasal" in text and "no picture from above" in text
    assert "circle of 96 A-lines" in text and "spacing" not in text
    text, said = report(at("of_radial.h5"))
    assert not said["tsnit"] and "From above (en face)" in text and "no ETDRS grid" in text
    assert "rows are B-scans" in text and "not known: no ETDRS" not in text


@case
def angiograms():
    """slabs of octctl flow, of the spectra that the recording was made of, or what octd recorded"""
    scan = ["--set", "scan.bscans=32", "--set", "scan.repeats=4", "--set", "scan.lines=64", "--set",
            "scan.width_um=1500", "--set", "scan.height_um=1500"]
    ok("synth", at("flow-in.h5"), "--flow", "--calibration", at("flow-cal"), *scan)
    cal = ["-c", at("flow-cal/calibration.ini")]
    ok("recon", *cal, at("flow-in.h5"), at("flow-b.h5"))
    ok("flow", *cal, at("flow-in.h5"), at("flow.h5"), "--slab", "100:200", "--slab", "200:300")
    none, said = report(at("flow-b.h5"))
    assert said["angiograms"] == 0 and "not recorded" in none.split("Angiogram")[1], none
    before = n_images(at("out.pdf"))
    text, said = report(at("flow-b.h5"), at("flow.h5"))
    assert said["angiograms"] == 2 and n_images(at("out.pdf")) == before + 2, said
    assert text.count("Angiogram, ") == 2 and "not recorded" not in text.split("Angiogram")[1], text
    ok("recon", *cal, at("flow-in.h5"), at("live.h5"), "--analyse", "flow,angiogram")
    text, said = report(at("live.h5"))
    assert said["angiograms"] == 1 and n_images(at("out.pdf")) == before + 1, said
    refused_by("report", 1, "was not made of", recording(), at("flow.h5"), at("no.pdf"))


@case
def what_is_missing_says_why():
    """a mirror is no retina; sizes, eye and pseudonym that nobody told"""
    ok("synth", at("mirror.h5"), "--mirror", "200", "--set", "scan.lines=64")
    ok("recon", at("mirror.h5"), at("mirror-b.h5"))
    text, said = report(at("mirror-b.h5"))
    assert text.count("no retina seen") >= 4 and said["quality"] is None, text
    assert "eye not known" in text and re.search(r"^not recorded +no retina seen", text, re.M), text
    source = recording("nosize.h5", "none", "", "--set", "scan.width_um=0", "--set",
                       "scan.height_um=0")
    text, said = report(source)
    assert text.count("the scan's size is not known: no ETDRS grid") == 2, text
    assert "stretched: not to scale" in text and "B-scans not known, A-lines not known" in text
    assert not said["etdrs"] and said["bscan"] == V // 2 and row(text, "ETDRS (µm)") is None
    with h5py.File(at("in.h5")) as f:
        rpe = int(f["truth/surfaces_px/rpe"][:].max())
    low, said = report(recording("low.h5", "OD", "", "--set", f"pipeline.crop_last={rpe + 10}"))
    assert said["place"] < 0.7 and "(out of place)" in low and said["signal_db"] > 15, (said, low)


@case
def refused():
    """others' results, other files, places that cannot be: one line, and nothing is written"""
    source, other = recording(), recording("none.h5", "none")
    no = at("no.pdf")
    refused_by("report", 1, "was not made of", source, layers(other), no)
    refused_by("report", 1, "recording of octd", source, other, no)
    refused_by("report", 1, "octctl recon makes them", at("in.h5"), no)
    refused_by("report", 1, "No such file", at("nobody.h5"), no)
    refused_by("report", 2, "0 to 23", source, layers(source), no, "--bscan", V)
    refused_by("report", 2, "from 0 on", source, no, "--bscan", "-1")
    refused_by("report", 2, "*.pdf", source, at("no.png"))
    refused_by("report", 2, "pdf or dicom", source, no, "--to", "png")
    refused_by("report", 2, "masked or real", source, no, "--identity", "me")
    refused_by("report", 1, "it says OD", source, layers(source), no, "--eye", "OS")
    refused_by("report", 1, "nobody is known by", recording("who.h5", "OD", "Pat 8"), no,
               "--identity", "real")
    shutil.copy(layers(source), at("there.pdf"))
    refused_by("report", 1, "exists", source, layers(source), at("there.pdf"))
    refused_by("report", 2, "input", source, layers(source), layers(source), "--to", "pdf",
               "--force")
    refused_by("report", 1, "No such file", source, layers(source), at("none/no.pdf"))
    with h5py.File(layers(source)) as f, h5py.File(at("bad.h5"), "w") as bad:
        for name in f.attrs:
            bad.attrs[name] = f.attrs[name]
        bad["layers/ilm"] = f["layers/ilm"][:, 1:]
        bad["layers/rpe"] = f["layers/rpe"][:]
    refused_by("report", 1, f"is not of {V} B-scans", source, at("bad.h5"), no)
    with h5py.File(at("bad.h5"), "a") as bad:
        del bad["layers/ilm"]
        bad["layers/ilm"] = np.full((V, M), 1e30, np.float32)
        bad["layers/rpe"][:, ::2] = -np.inf
    assert "no retina seen" in report(source, at("bad.h5"))[0]
    full = subprocess.run([program("octctl"), "report", source, layers(source), no],
                          stderr=subprocess.PIPE, preexec_fn=lambda: resource.setrlimit(
                              resource.RLIMIT_FSIZE, (4096, 4096)))
    assert full.returncode == 1 and b"File too large" in full.stderr, full
    assert not os.path.exists(no)


main()
