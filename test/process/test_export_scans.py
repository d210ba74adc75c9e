#!/usr/bin/python3
"""octctl export of scans that are no rows: each format says where B-scans lie, or refuses; no length
that there is none."""
import h5py
import numpy as np
import pydicom
import tifffile
import xml.etree.ElementTree as ET
from exportrig import judged
from octtest import *

M, V, N, W = 48, 12, 256, 900.0
S = ((np.arange(M) + .5) / M - .5) * W  # along a straight B-scan


def spectra(pattern):
    path = at(pattern + ".in.h5")
    if not os.path.exists(path):
        scan = dict(lines=M, bscans=V, width_um=W, height_um=W, pattern=pattern, centre_x_um=100)
        ok("synth", path, *settings(scan=scan, camera=dict(samples=N)))
    return path


def recording(pattern):
    path = at(pattern + ".h5")
    if not os.path.exists(path):
        ok("recon", spectra(pattern), path)
        ok("label", path, "--eye", "OD")
    return path


def places(path):
    with h5py.File(path) as file:
        return file["scan/x_um"][()], file["scan/y_um"][()]


def exported(pattern, suffix, *options):
    out = at(pattern + suffix)
    said = json.loads(ok("export", recording(pattern), out, *options, "--force", "--json")[0])[0]
    return said, out


def frames_of(path):
    d = pydicom.dcmread(path)
    return d, list(d.PerFrameFunctionalGroupsSequence)


def measures(d):
    return d.SharedFunctionalGroupsSequence[0].PixelMeasuresSequence[0]


@case
def dicom_of_a_star():
    """each frame has its plane and both of its ends; no distance from frame to frame"""
    said, path = exported("radial", ".dcm", "--frames", "2:12:3")
    d, frames = frames_of(path)
    x, y = [a[2::3] for a in places(recording("radial"))]
    assert len(frames) == 4 and said["spacing_um"][0] is None, said
    spacing = measures(d)
    assert "SpacingBetweenSlices" not in spacing and "SliceThickness" not in spacing
    assert abs(float(spacing.PixelSpacing[1]) - W / M / 1e3) < 1e-9
    assert "DimensionOrganizationType" not in d
    for i, frame in enumerate(frames):
        along = np.array([x[i, -1] - x[i, 0], y[i, -1] - y[i, 0]])
        along /= np.hypot(*along)
        cosines = [float(c) for c in frame.PlaneOrientationSequence[0].ImageOrientationPatient]
        assert np.allclose(cosines, [along[0], 0, along[1], 0, 1, 0], atol=1e-6), cosines
        at_mm = [float(c) for c in frame.PlanePositionSequence[0].ImagePositionPatient]
        assert np.allclose(at_mm, [x[i, 0] / 1e3, 0, y[i, 0] / 1e3], atol=1e-6), at_mm
        where, = frame.OphthalmicFrameLocationSequence
        assert where.OphthalmicImageOrientation == "LINEAR"
        ends = np.reshape(where.ReferenceCoordinates, (2, 2))  # row and column
        assert np.allclose(ends, np.stack([y[i, [0, -1]] - y.min(), x[i, [0, -1]] - x.min()], 1),
                           atol=1e-3), ends
    assert f"x {x.min():.6g} um" in d.ImageComments and "radial" in d.ImageComments
    judged(path)


@case
def dicom_of_a_circle():
    """unrolled frames, one after another, each with the place of every column"""
    said, path = exported("circle", ".dcm")
    d, frames = frames_of(path)
    x, y = places(recording("circle"))
    assert said["axes"] == ["frame", "line", "depth"] and said["spacing_um"][0] is None, said
    assert abs(float(measures(d).PixelSpacing[1]) - np.pi * W / M / 1e3) < 1e-9
    assert "SpacingBetweenSlices" not in measures(d) and "unrolled" in d.ImageComments
    for i, frame in enumerate(frames):
        where, = frame.OphthalmicFrameLocationSequence
        assert where.OphthalmicImageOrientation == "NONLINEAR"
        rows, columns = np.reshape(where.ReferenceCoordinates, (M, 2)).T
        assert np.allclose(rows, y[i] - y.min(), atol=1e-3)
        assert np.allclose(columns, x[i] - x.min(), atol=1e-3)
        assert min(rows.min(), columns.min()) >= 0
    judged(path)


@case
def dicom_of_rows_stays():
    """a raster has one plane for all, its spacing and no frame locations"""
    d, frames = frames_of(exported("raster", ".dcm")[1])
    assert "OphthalmicFrameLocationSequence" not in frames[1]
    assert "PlaneOrientationSequence" in d.SharedFunctionalGroupsSequence[0]
    assert abs(float(measures(d).SpacingBetweenSlices) - W / V / 1e3) < 1e-9


@case
def what_has_no_spacing_is_refused():
    """NIfTI takes no stars and circles, DICOM no spirals: one line says why and what else"""
    for pattern, out, words in (("radial", "no.nii", "of pattern radial lie on no even grid"),
                                ("circle", "no.nii.gz", "of pattern circle lie on no even grid"),
                                ("spiral", "no.nii", "of pattern spiral lie on no even grid"),
                                ("spiral", "no.dcm", "of pattern spiral have no even spacing"),
                                ("circle", "no.dcm", "export its B-scans as DICOM")):
        face = ["--dataset", "enface"] if "its B-scans" in words else []
        for given in [], ["--pixel-um", "3,9,20"]:  # nobody can say what there is not
            refused_by("export", 2, words, recording(pattern), at(out), *face, *given)
            assert not os.path.exists(at(out))


@case
def nifti_of_what_is_straight():
    """one spoke is a picture; a line is a film of one place"""
    exported("radial", ".nii", "--frames", "3:4")
    said, _ = exported("line", ".nii")
    assert said["axes"][0] == "frame" and said["spacing_um"][0] is None, said


def planes(path):
    xml = ET.fromstring(tifffile.TiffFile(path).ome_metadata)
    pixels, = [e for e in xml.iter() if e.tag.endswith("Pixels")]
    return pixels, [e for e in pixels if e.tag.endswith("Plane")]


@case
def ome_tiff_says_where():
    """planes have the place of their first A-line; no size that there is none"""
    for pattern in "radial", "spiral", "circle", "line":
        _, path = exported(pattern, ".ome.tif")
        pixels, found = planes(path)
        x, y = places(recording(pattern))
        assert "PhysicalSizeZ" not in pixels.attrib and "PhysicalSizeY" in pixels.attrib
        assert ("PhysicalSizeX" in pixels.attrib) == (pattern != "spiral")
        assert pixels.get("SizeT" if pattern in ("circle", "line") else "SizeZ") == str(V)
        got = [[float(p.get(f"Position{a}")) for a in "XY"] for p in found]
        assert np.allclose(got, np.stack([x[:, 0], y[:, 0]], 1), atol=1e-3), pattern
        assert all(p.get("PositionXUnit") == "\u00b5m" for p in found)
    assert "PositionX" not in planes(exported("raster", ".ome.tif")[1])[1][0].attrib


@case
def from_above():
    """the picture from above of a star is gridded, to the bit as octctl analyse enface, in every format"""
    said, path = exported("radial", ".npy", "--dataset", "enface")
    ok("analyse", "enface", spectra("radial"), at("face.h5"))
    with h5py.File(at("face.h5")) as file:
        d = file["analysis/enface"]
        want, um = d[()], d.attrs["axis_spacing_um"]
    got = np.load(path)[0]
    assert said["axes"] == ["slab", "y", "x"] and np.allclose(said["spacing_um"][1:], um), said
    assert got.shape == want.shape and np.isfinite(got).mean() > 0.7
    assert np.array_equal(np.isnan(got), np.isnan(want))
    assert np.allclose(got, want, atol=1e-4, equal_nan=True), np.nanmax(np.abs(got - want))
    exported("radial", ".face.nii", "--dataset", "enface")
    path = exported("radial", ".face.dcm", "--dataset", "enface")[1]
    judged(path)
    assert np.allclose([float(a) for a in pydicom.dcmread(path).SharedFunctionalGroupsSequence[0]
                        .PixelMeasuresSequence[0].PixelSpacing], um / 1e3)
    part = np.load(exported("radial", ".npy", "--dataset", "enface", "--frames", "0:3")[1])[0]
    assert 0.1 < np.isfinite(part).mean() < 0.45, np.isfinite(part).mean()


@case
def spectra_of_others():
    """of samples that know nothing, the configuration's pattern says what lengths there are"""
    np.zeros((V, M, N), np.uint16).tofile(at("plain.raw"))
    plain = settings(scan=dict(lines=M, bscans=V, width_um=W, height_um=W), camera=dict(samples=N))
    for pattern, um in (("raster", [W / V, W / M, None]), ("radial", [None, W / M, None]),
                        ("circle", [None, np.pi * W / M, None]), ("spiral", [None, None, None])):
        said = json.loads(ok("export", at("plain.raw"), at("plain.npy"), *plain, "--set",
                             f"scan.pattern={pattern}", "--json", "--force")[0])[0]
        assert [a and round(a, 6) for a in said["spacing_um"]] == \
            [a and round(a, 6) for a in um], (pattern, said)


main()
