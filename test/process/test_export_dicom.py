#!/usr/bin/python3
"""octctl export to DICOM, read by pydicom and judged by dciodvfy of dicom3tools: pixels to the bit,
spacing, order, laterality, the patient's ID, and nothing of whom or when."""
import re, subprocess
import h5py
import numpy as np
import pydicom
from exportrig import judged
from octtest import *

V, M = 5, 24


def recording(name, eye="OD", pseudonym="Pat 7", *options):
    """A reconstructed retina, spacing 30 um, 12.5 um and what its wavelengths say."""
    if not os.path.exists(at("cal")):
        ok("synth", at("in.h5"), "--calibration", at("cal"), "--set", f"scan.bscans={V}", "--set",
           f"scan.lines={M}")
    ok("recon", "-c", at("cal/calibration.ini"), "--set", f"scan.width_um={M * 12.5}", "--set",
       f"scan.height_um={V * 30}", *options, at("in.h5"), at(name), "--force")
    ok("label", at(name), "--eye", eye, f"--pseudonym={pseudonym}")
    return at(name)


def exported(source, *options):
    out = at("out.dcm")
    said = json.loads(ok("export", source, out, *options, "--force", "--json")[0])[0]
    return said, pydicom.dcmread(out)


def each_frame(d):
    return [(f.FrameContentSequence[0], f.PlanePositionSequence[0])
            for f in d.PerFrameFunctionalGroupsSequence]


def near(a, b):
    return np.allclose(np.array(a, dtype=float), b, rtol=1e-9, atol=0)


@case
def a_volume():
    """pixels to the bit, their spacing, order and times, and the eye"""
    source = recording("a.h5")
    said, d = exported(source)
    ok("export", source, at("a.npy"), "--sample", "u8", "--force")
    u8 = np.load(at("a.npy"))
    assert u8.shape[:2] == (V, M) and len(np.unique(u8)) > 100
    assert np.array_equal(d.pixel_array, u8.transpose(0, 2, 1))
    assert len({p.tobytes() for p in d.pixel_array}) == V, "frames could not be told apart"
    assert (d.NumberOfFrames, d.Rows, d.Columns) == (V, u8.shape[2], M)
    assert (d.BitsAllocated, d.PhotometricInterpretation) == (8, "MONOCHROME2")
    shared = d.SharedFunctionalGroupsSequence[0]
    um = said["spacing_um"]
    assert near(um[:2], [30, 12.5]) and 0.5 < um[2] < 5
    assert near(shared.PixelMeasuresSequence[0].PixelSpacing, [um[2] / 1e3, 12.5e-3])
    assert near(shared.PixelMeasuresSequence[0].SpacingBetweenSlices, 30e-3)
    assert near(shared.PixelMeasuresSequence[0].SliceThickness, 30e-3)
    assert near(shared.PlaneOrientationSequence[0].ImageOrientationPatient, [1, 0, 0, 0, 1, 0])
    assert (d.ImageLaterality, shared.FrameAnatomySequence[0].FrameLaterality) == ("R", "R")
    assert (d.PatientID, d.Modality) == ("Pat 7", "OPT")
    with h5py.File(source) as f:
        ns = f["frames/time_ns"][:].astype(np.int64)
    step = (ns[-1] - ns[0]) / (V - 1) * 1e-6
    for i, (content, place) in enumerate(each_frame(d)):
        assert near(place.ImagePositionPatient, [0, 0, i * 30e-3]), (i, place)
        assert content.DimensionIndexValues == [1, i + 1]
        assert content.InStackPositionNumber == i + 1
        assert content.FrameAcquisitionDateTime.startswith("190001010000")
        s = float(content.FrameAcquisitionDateTime[12:])
        assert abs(s - i * step * 1e-3) < 1e-6
        assert abs(content.FrameAcquisitionDuration - step) < 1e-6
    assert abs(d.AcquisitionDuration - V * step * 1e-3) < 1e-6
    judged(at("out.dcm"))


@case
def parts():
    """--frames chooses frames of one series, another instance each; the left eye"""
    source = recording("left.h5", "OS", "Zoë")
    whole, some, same = (exported(source, *o)[1]
                         for o in ((), ("--frames", "1:3"), ("--frames", "1:3")))
    limits = re.search("; 0 is (.*), 255 is (.*) dB", str(some.ImageComments)).groups()
    assert len(limits) == 2 and float(limits[0]) < float(limits[1])
    ok("export", source, at("a.npy"), "--frames", "1:3", "--sample", "u8", "--force")
    assert np.array_equal(some.pixel_array, np.load(at("a.npy")).transpose(0, 2, 1))
    for d in whole, some:
        assert (d.ImageLaterality, d.PatientID) == ("L", "Zoë"), (d.ImageLaterality, d.PatientID)
    assert some.SOPInstanceUID == same.SOPInstanceUID != whole.SOPInstanceUID
    for name in "StudyInstanceUID", "SeriesInstanceUID", "FrameOfReferenceUID":
        assert some[name].value == whole[name].value
    assert re.fullmatch(r"2\.25\.[1-9][0-9]{37,38}", whole.SOPInstanceUID), whole.SOPInstanceUID
    judged(at("out.dcm"))
    _, d = exported(source, "--frames", "2:3")
    assert d.pixel_array.shape == whole.pixel_array.shape[1:]
    assert np.array_equal(d.pixel_array, exported(source, "--frames", "2:3")[1].pixel_array)
    judged(at("out.dcm"), ("Frame Acquisition Duration",))


@case
def an_en_face_picture():
    """of the same study, a series of its own, derived; B-scans are rows and lie along z"""
    source = recording("a.h5")
    _, volume = exported(source)
    said, d = exported(source, "--dataset", "enface", "--slab", "100:200")
    ok("export", source, at("a.npy"), "--dataset", "enface", "--slab", "100:200", "--sample", "u8",
       "--force")
    assert np.array_equal(d.pixel_array, np.load(at("a.npy"))[0])
    assert d.pixel_array.shape == (V, M)
    shared = d.SharedFunctionalGroupsSequence[0]
    assert near(shared.PixelMeasuresSequence[0].PixelSpacing, [30e-3, 12.5e-3])
    assert near(shared.PlaneOrientationSequence[0].ImageOrientationPatient, [1, 0, 0, 0, 0, 1])
    assert (d.StudyInstanceUID, d.FrameOfReferenceUID) == \
        (volume.StudyInstanceUID, volume.FrameOfReferenceUID)
    assert d.SeriesInstanceUID != volume.SeriesInstanceUID
    assert (d.ImageType[0], volume.ImageType[0]) == ("DERIVED", "ORIGINAL")
    judged(at("out.dcm"))


@case
def frames_that_never_came():
    """are black, keep their place, and say so"""
    source = recording("gap.h5")
    with h5py.File(source, "r+") as f:
        f["frames/valid"][2] = 0
    _, d = exported(source)
    assert d.NumberOfFrames == V and not d.pixel_array[2].any() and d.pixel_array[3].any()
    said = [getattr(content, "FrameComments", "") for content, _ in each_frame(d)]
    assert said == ["", "", "not recorded", "", ""], said
    judged(at("out.dcm"))


@case
def nobody():
    """no date, path, name, place or serial number of the recording is in the file"""
    source = recording("Miller.h5")
    with h5py.File(source, "r+") as f:
        f.attrs["start_time"] = np.bytes_("2031-07-09T11:22:33.444Z")
        f.attrs["engine"] = np.bytes_("cpu of the eye clinic")
    _, d = exported(source)
    with open(at("out.dcm"), "rb") as file:
        header = file.read().split(b"\xe0\x7f\x10\x00OB")[0]
    for word in "Miller", "2031", "0709", "112233", "clinic", os.uname().nodename, at(), "out.dcm":
        assert word.encode() not in header, word
    assert d.PatientIdentityRemoved == "YES" and d.DeidentificationMethod
    assert d.LongitudinalTemporalInformationModified == "REMOVED"
    assert not d.PatientName and not d.PatientBirthDate and not d.ReferringPhysicianName
    assert "InstitutionName" not in d and "StationName" not in d
    dates = {str(e.value)[:8] for e in d.iterall() if e.VR in ("DA", "DT") and e.value}
    assert dates == {"19000101"}, dates
    source = recording("Miller.h5", pseudonym="")
    _, a = exported(source)
    _, b = exported(source, "--frames", "1:2")
    assert re.fullmatch("octd-[0-9]{12}", a.PatientID) and a.PatientID == b.PatientID, a.PatientID


@case
def somebody():
    """--identity real: who, when in local time, of what light; other UIDs than the masked file"""
    os.environ.update(XDG_STATE_HOME=at("state"), TZ="Europe/Berlin")
    source = recording("real.h5", "OD", "P-REAL")
    with h5py.File(source, "r+") as f:
        f.attrs["start_time"] = np.bytes_("2031-07-09T22:59:59.750Z")
    ok("identify", "P-REAL", "--name", "Doe^Jane", "--id", "4711")
    _, masked = exported(source)
    _, d = exported(source, "--identity", "real", "--set", "dicom.serial=SN 5")
    assert (d.PatientName, d.PatientID, d.PatientBirthDate) == ("Doe^Jane", "4711", "")
    assert (d.StudyDate, d.StudyTime, d.ContentDate) == ("20310710", "005959", "20310710")
    assert d.TimezoneOffsetFromUTC == "+0200" and d.AcquisitionDateTime == "20310710005959.750000"
    first, second = (content.FrameAcquisitionDateTime for content, _ in each_frame(d)[:2])
    assert first == d.AcquisitionDateTime < second
    assert "PatientIdentityRemoved" not in d and "RequestAttributesSequence" not in d
    assert d.DeviceSerialNumber == "SN 5" and 800 < d.IlluminationWaveLength < 900
    assert masked.DeviceSerialNumber == "not recorded" and masked.IlluminationWaveLength == 0
    for name in "StudyInstanceUID", "SeriesInstanceUID", "FrameOfReferenceUID", "SOPInstanceUID":
        assert d[name].value != masked[name].value
    assert "The date stands for none" not in d.ImageComments
    assert np.array_equal(d.pixel_array, masked.pixel_array)
    judged(at("out.dcm"))
    with h5py.File(source, "r+") as f:
        f.attrs["start_time"] = np.bytes_("")
    refused_by("export", 2, "does not say when it was made", source, at("no.dcm"), "--identity",
               "real")
    refused_by("export", 2, "masked or real", source, at("no.dcm"), "--identity", "none")
    del os.environ["TZ"]


@case
def surroundings():
    """another locale changes nothing; without DCMTK's dictionary there is a message and no file"""
    source, files = recording("a.h5"), []
    for more in {}, {"LC_ALL": "de_DE.UTF-8"}, {"DCMDICTPATH": "/nonexistent"}:
        done = subprocess.run([program("octctl"), "export", source, at("out.dcm"), "--force"],
                              env=dict(os.environ, **more), stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        assert done.stdout.count(b"\n") == 1, done.stdout
        with open(at("out.dcm"), "rb") as file:
            files.append(file.read())
    assert done.returncode == 1 and b"dictionary" in done.stdout, done
    assert files[0] == files[1] == files[2]


@case
def what_is_not_known():
    """stops before anything is written: the eye, spacing; a label's eye stands"""
    source = recording("none.h5", "none", "", "--set", "scan.height_um=0")
    out = at("never.dcm")
    refused_by("export", 2, "--pixel-um", source, out, "--eye", "OD")
    refused_by("export", 2, "--eye", source, out, "--pixel-um", "-,-,20")
    refused_by("export", 2, "--eye", source, out, "--pixel-um", "-,-,20", "--eye", "right")
    refused_by("export", 2, "reconstruct", at("in.h5"), out, "--dataset", "spectra", "--pixel-um",
               "-,-,20", "--eye", "OD")
    refused_by("export", 2, "label", recording("a.h5"), out, "--eye", "OS")
    assert not [name for name in os.listdir(at()) if name.startswith("never")]
    _, d = exported(source, "--pixel-um", "3.5,11,20", "--eye", "OS")
    measures = d.SharedFunctionalGroupsSequence[0].PixelMeasuresSequence[0]
    assert d.ImageLaterality == "L" and near(measures.PixelSpacing, [3.5e-3, 11e-3])
    assert near(measures.SpacingBetweenSlices, 20e-3)
    judged(at("out.dcm"))


main()
