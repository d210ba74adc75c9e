#!/usr/bin/python3
"""octctl export of what octctl flow found, and of recorded angiograms: each format has the values
of the file, and a slab between layers is a DICOM En Face Image that dciodvfy accepts."""
import subprocess
import h5py
import nibabel
import numpy as np
import pydicom
import scipy.io
import tifffile
from PIL import Image
from octtest import *

EN_FACE, VOLUME = "1.2.840.10008.5.1.4.1.1.77.1.5.7", "1.2.840.10008.5.1.4.1.1.77.1.5.4"
SIZE = [word for key in ("lines=48", "repeats=2", "bscans=16", "width_um=240", "height_um=160")
        for word in ("--set", f"scan.{key}")]
SLABS = ("superficial", "80:160", "rpe-40:rpe")


def scan():
    if not os.path.exists(at("in.h5")):
        ok("synth", at("in.h5"), "--flow", "--calibration", at("cal"), *SIZE, "--vessels", "3")
    return at("in.h5")


CHAIN = "-c", at("cal/calibration.ini"), "--set", "pipeline.dc=running"


def found(*options):
    ok("flow", scan(), at("flow.h5"), *CHAIN, *(w for s in SLABS for w in ("--slab", s)), "--force",
       *options)
    return at("flow.h5")


def judged(path):
    """dciodvfy knows the edition of 2018; of later ones it warns, and of nothing else."""
    done = subprocess.run(["dciodvfy", path], stderr=subprocess.PIPE)
    lines = done.stderr.decode().splitlines()
    assert "OphthalmicOpticalCoherenceTomographyEnFaceImage" in lines, lines
    for line in lines[1:]:
        assert line.startswith("Warning") and ("not present in standard DICOM IOD" in line), lines


def exported(source, out, *options):
    return json.loads(ok("export", source, at(out), *options, "--force", "--json")[0])[0]


@case
def every_format_has_its_values():
    """of slabs and structures f32, of volumes plane by plane; moved places stay NaN"""
    source = found()
    with h5py.File(source) as f:
        want = {name: f[name][:] for name in ("slabs/80:160", "slabs/80:160_structure", "flow/d")}
    assert want["slabs/80:160"].shape == (8, 48) and want["flow/d"].shape[:2] == (8, 48)
    for name, values in want.items():
        said = exported(source, "a.npy", "--dataset", name)
        assert said["dataset"] == name and said["spacing_um"][1] > 0, said
        values = values.reshape(said["dims"])
        assert np.array_equal(np.load(at("a.npy")), values, equal_nan=True)
        assert said["unit"] == ("dB" if "structure" in name else ""), said
        for out, read in (("a.ome.tif", tifffile.imread), ("a.nii.gz", read_nifti),
                          ("a.mat", read_mat)):
            exported(source, out, "--dataset", name, "--pixel-um", "3.5")
            array = np.squeeze(read(at(out)))
            upright = values.transpose(0, 2, 1) if out == "a.ome.tif" and values.shape[0] > 1 \
                else values
            assert np.array_equal(array, np.squeeze(upright), equal_nan=True), (name, out)
    out, err = ok("export", source, at("a.npy"), "--force", "--json")  # without --dataset a slab
    said = json.loads(out)[0]
    assert said["dataset"].startswith("slabs/") and said["dims"] == [1, 8, 48], said
    others = [f"slabs/{name}" for name in sorted(SLABS) if f"slabs/{name}" != said["dataset"]]
    assert err == f"octctl export: {said['dataset']} is taken; --dataset takes {', '.join(others)}\n"
    assert ok("export", source, at("a.npy"), "--force", "--quiet")[1] == ""
    assert np.load(at("a.npy")).shape == (1, 8, 48)
    exported(source, "a.png", "--dataset", "slabs/80:160", "--sample", "u8", "--range", "0:10")
    with np.errstate(invalid="ignore"):
        grey = np.rint(np.clip(np.nan_to_num(want["slabs/80:160"]) / 10, 0, 1) * 255)
    assert np.array_equal(np.asarray(Image.open(at("a.png"))), grey)
    part = exported(source, "a.npy", "--dataset", "flow/d", "--frames", "3:5")
    assert np.array_equal(np.load(at("a.npy")), want["flow/d"][3:5], equal_nan=True), part


def read_nifti(path):
    return np.asarray(nibabel.load(path).dataobj).T


def read_mat(path):
    try:
        return scipy.io.loadmat(path)["data"].T
    except NotImplementedError:
        with h5py.File(path) as f:
            return f["data"][:]


@case
def eight_bits_stay_as_they_are_and_say_what_they_stand_for():
    """of a file of --sample u8: as f32 they are the values, within half a step"""
    exact = {}
    with h5py.File(found()) as f:
        for name in ("d", "z", "intensity"):
            exact[name] = np.nan_to_num(f["flow/" + name][:])
    source = found("--sample", "u8")
    for name, top in (("d", 1), ("z", 25.5), ("intensity", 127.5)):
        said = exported(source, "a.npy", "--dataset", "flow/" + name)
        with h5py.File(source) as f:
            stored, step = f["flow/" + name][:], f["flow/" + name].attrs["step"]
        assert said["sample"] == "u8" and np.array_equal(np.load(at("a.npy")), stored)
        assert np.isclose(255 * step, top), (name, step)
        exported(source, "a.npy", "--dataset", "flow/" + name, "--sample", "f32")
        values = np.load(at("a.npy"))
        assert np.allclose(values, stored * step, rtol=1e-6), name
        assert np.abs(values - np.clip(exact[name], 0, top)).max() < 0.51 * step, name
        exported(source, "a.nii", "--dataset", "flow/" + name, "--pixel-um", "3.5")
        scaled = nibabel.load(at("a.nii"))
        assert np.isclose(scaled.dataobj.slope, step) and scaled.dataobj.inter == 0, name


def codes(sequence):
    return [(s.SegmentedPropertyTypeCodeSequence[0].CodeValue, s.ReferencedSurfaceNumber,
             s.SurfaceMeshZPixelOffset) for s in sequence]


def algorithm(path):
    """the family of algorithms that flow was found by"""
    d = pydicom.dcmread(path)
    found_by = d.get((0x0022, 0x1612))
    return found_by and found_by[0].AlgorithmFamilyCodeSequence[0].CodeValue


@case
def a_slab_between_layers_is_an_en_face_image():
    """its class, type, surfaces and pixels; the structure beside it in the same study"""
    source, seen = found(), []
    for name, kind, surfaces in (
            ("superficial", "128265", ["280677004", "128291"]),
            ("superficial_structure", "128266", ["280677004", "128291"]),
            ("rpe-40:rpe", "128259", ["128299", "128299"])):
        said = exported(source, "a.dcm", "--dataset", "slabs/" + name, "--eye", "OS", "--range",
                        "-20:20")
        ok("export", source, at("a.npy"), "--dataset", "slabs/" + name, "--sample", "u8", "--range",
           "-20:20", "--force")
        d = pydicom.dcmread(at("a.dcm"))
        assert np.array_equal(d.pixel_array, np.load(at("a.npy"))[0]), name
        assert len(np.unique(d.pixel_array)) > 5, name
        assert (d.SOPClassUID, d.Modality, d.ImageLaterality) == (EN_FACE, "OPTENF", "L")
        assert d.ImageType == ["DERIVED", "PRIMARY"] and "NumberOfFrames" not in d
        kinds = d.OphthalmicImageTypeCodeSequence[0]
        assert (kinds.CodeValue, kinds.CodingSchemeDesignator) == (kind, "DCM"), kinds
        places = d.ReferencedSurfaceMeshIdentificationSequence
        assert codes(places) == [(surfaces[0], 1, 0), (surfaces[1], 2, 0)], places
        assert np.allclose(np.array(d.PixelSpacing, float) * 1e3, said["spacing_um"][1:])
        assert (float(d.WindowCenter), float(d.WindowWidth)) == (127.5, 255)
        assert "no instances" in d.ImageComments, d.ImageComments
        judged(at("a.dcm"))
        assert algorithm(at("a.dcm")) == (None if "structure" in name else "128253"), name
        seen.append(d)
    assert "ilm:ipl_inl-6" in seen[0].OphthalmicImageTypeDescription
    for word, n in (("StudyInstanceUID", 1), ("FrameOfReferenceUID", 1), ("SOPInstanceUID", 3),
                    ("SeriesInstanceUID", 3)):
        assert len({d[word].value for d in seen}) == n, word
    for method, code in (("ssada", "128252"), ("amplitude", "128252"), ("cdv", "128253")):
        source = found("--method", method)
        exported(source, "a.dcm", "--dataset", "slabs/superficial", "--eye", "OS")
        judged(at("a.dcm"))
        assert algorithm(at("a.dcm")) == code, method
    # Where no surface is known the picture has none.
    exported(source, "a.dcm", "--dataset", "slabs/80:160", "--eye", "OS")
    assert pydicom.dcmread(at("a.dcm")).SOPClassUID == VOLUME
    exported(source, "a.dcm", "--dataset", "slabs/superficial", "--eye", "OS")
    refused_by("export", 1, "not B-scans", at("a.dcm"), at("never.npy"))


@case
def a_recorded_angiogram_is_of_the_slab_that_octd_was_told():
    """flow.slab of the recording's configuration"""
    for slab, of, method, code in (("deep", EN_FACE, "complex", "128253"),
                                   ("deep", EN_FACE, "ssada", "128252"),
                                   ("90:200", VOLUME, "complex", None)):
        ok("analyse", "flow,angiogram", scan(), at("live.h5"), "--force", *CHAIN, "--set",
           "flow.enabled=yes", "--set", f"flow.slab={slab}", "--set", f"flow.method={method}")
        ok("check", at("live.h5"))
        exported(at("live.h5"), "a.dcm", "--dataset", "analysis/angiogram", "--eye", "OD")
        d = pydicom.dcmread(at("a.dcm"))
        assert d.SOPClassUID == of and d.pixel_array.shape == (8, 48), d
        assert of == VOLUME or algorithm(at("a.dcm")) == code, method
    assert d.ImageType[0] == "DERIVED"


@case
def an_exam_of_repeated_places():
    """is the average of each place, the angiogram and the page"""
    ok("analyse", "average,flow,angiogram", scan(), at("exam.h5"), *CHAIN, "--set",
       "flow.enabled=yes", "--set", "average.bscans=2")
    exam = json.loads(ok("archive", "exam", at("exam.h5"), "--eye", "OD", "--pixel-um", "2",
                         "--json", "--set", "dicom.queue=" + folder("queue"))[0])
    assert [i["what"] for i in exam] == ["analysis/average", "analysis/angiogram", "report"], exam


@case
def what_there_is_not():
    """is refused before anything is written"""
    source = found()
    other = recording()
    for status, message, name, of in ((1, "has no dataset", "slabs/none", source),
                                      (2, "no picture", "flow/noise", source),
                                      (2, "has no flow/d", "flow/d", other)):
        refused_by("export", status, message, of, at("never.npy"), "--dataset", name)
    refused_by("export", 2, "--eye", source, at("never.dcm"), "--dataset", "slabs/superficial")
    refused_by("export", 2, "--dataset", source, at("never.npy"), "--dataset", "flow/")
    assert not [name for name in os.listdir(at()) if name.startswith("never")]


def recording():
    ok("recon", *CHAIN, scan(), at("bscans.h5"), "--force")
    return at("bscans.h5")


main()
