"""NIfTI files as nibabel reads them: data to the bit, voxel size, directions, what is unknown."""
import gzip, os

import nibabel, numpy as np

from exportrig import recording_of, same, samples, written_by
from octtest import case, folder, main, ok, refused_by

DIMS = (5, 7, 11)
MM = (0.0045, 0.01, 0.025)  # of the file's axes: depth, A-line, B-scan
files = written_by("test_export_nifti")


def stored(name, kind, dims=DIMS, scaled=False):
    """The image, whose samples are those of the source, its last axis first."""
    image = nibabel.load(files(name))
    array = np.asarray(image.dataobj.get_unscaled())
    assert array.shape == dims[::-1] and same(array.T, samples(kind, dims)), name
    if not scaled:
        assert image.dataobj.slope == 1 and image.dataobj.inter == 0
    return image


def zooms(image):
    assert image.header.get_xyzt_units()[0] == "mm"
    return [float(z) for z in image.header.get_zooms()]


@case
def data_and_place():
    """depth, A-lines and B-scans are the three axes, to the bit, in mm; both forms agree"""
    for name, kind, eye in (("f32.nii", "f32", "OD"), ("f32.nii.gz", "f32", "OS"),
                            ("u8.nii.gz", "u8", "unknown"), ("u16.nii", "u16", "unknown")):
        image = stored(name, kind)
        assert isinstance(image, nibabel.Nifti1Image)
        assert np.allclose(zooms(image), MM, rtol=1e-6)
        assert nibabel.aff2axcodes(image.affine) == ("P", "L", "I"), eye
        wanted = np.zeros((4, 4))
        wanted[1, 0], wanted[0, 1], wanted[2, 2], wanted[3, 3] = -MM[0], -MM[1], -MM[2], 1
        # Half a turn as quaternion of f32 is off by 3e-4; libnifti takes it as exact.
        for (form, code), off in ((image.get_sform(coded=True), 1e-9),
                                  (image.get_qform(coded=True), 1e-5)):
            assert code == 1 and np.allclose(form, wanted, atol=off)
        text = image.header["descrip"].item().decode()
        assert text == f"eye {eye}; axes PLI by convention, origin unknown; bscans, dB"
        assert np.linalg.det(image.affine[:3, :3]) > 0
    with gzip.open(files("f32.nii.gz")) as packed:
        head = packed.read(352)
    assert head[344:348] == b"n+1\0" and len(head) == 352


@case
def left_and_right():
    """larger A-lines are the patient's left: nasal in a right eye, temporal in a left one"""
    for name in "f32.nii", "f32.nii.gz":
        image = nibabel.load(files(name))
        first, last = (image.affine @ [0, line, 0, 1] for line in (0, 6))
        assert last[0] < first[0] and last[1] == first[1] and last[2] == first[2]
        canonical = nibabel.as_closest_canonical(image)
        assert nibabel.aff2axcodes(canonical.affine) == ("R", "A", "S")
        turned = samples("f32", DIMS).transpose(1, 2, 0)[::-1, ::-1, ::-1]
        assert same(np.asarray(canonical.dataobj), turned.astype(np.float32))


@case
def scaled_values():
    """u8 pictures of known limits read as their values; B-scans have their times"""
    image = stored("scaled.nii.gz", "u8", scaled=True)
    values = samples("u8", DIMS) * 0.2 - 10
    assert np.allclose(image.get_fdata().T, values, atol=1e-5)
    assert image.header.get_xyzt_units() == ("mm", "sec")
    assert image.header.get_dim_info() == (None, None, 2)
    assert image.header.get_slice_duration() == np.float32(0.004)
    assert np.allclose(image.header.get_slice_times(), np.arange(5) * 0.004)


@case
def no_lengths():
    """samples of a spectrum have no length and the file no directions, and it says so"""
    image = stored("spectra.nii", "u16")
    assert np.allclose(zooms(image), (1, 0.01, 0.025))
    assert image.header["sform_code"] == 0 and image.header["qform_code"] == 0
    assert b"pixdim[1] is no length" in image.header["descrip"].item()
    slab = stored("slab.nii.gz", "f32", (1, 5, 7))
    assert np.allclose(zooms(slab), (0.01, 0.025, 1))
    assert nibabel.aff2axcodes(slab.affine) == ("L", "I", "P")
    assert b"pixdim[3] is no length" in slab.header["descrip"].item()


@case
def long_sides():
    """sides beyond 32767 make it NIfTI-2"""
    for name, kind in ("long.nii", "u8"), ("long.nii.gz", "f32"):
        image = stored(name, kind, (3, 40000, 2))
        assert isinstance(image, nibabel.Nifti2Image)
        assert np.allclose(zooms(image), MM) and nibabel.aff2axcodes(image.affine) == tuple("PLI")


@case
def by_octctl():
    """octctl export: what .npy has, in mm, eye by eye; an unknown spacing is asked for"""
    at = lambda name: os.path.join(folder("own"), name)
    for eye in "OD", "OS", "":
        recording_of(eye, at("in.h5"))
        ok("export", at("in.h5"), at("out.npy"), "--sample", "f32", "--force")
        ok("export", at("in.h5"), at("out.nii.gz"), "--sample", "f32", "--force")
        image = nibabel.load(at("out.nii.gz"))
        assert same(np.asarray(image.dataobj).T, np.load(at("out.npy")))
        assert np.allclose(zooms(image), (0.0035, 0.00525, 0.0125))
        assert nibabel.aff2axcodes(image.affine) == ("P", "L", "I")
        assert image.header["descrip"].item().startswith(f"eye {eye or 'unknown'}; ".encode())
    recording_of("OD", at("in.h5"), um=(np.nan, 5.25, 3.5))
    refused_by("export", 2, "--pixel-um", at("in.h5"), at("none.nii"))
    assert not os.path.exists(at("none.nii"))
    ok("export", at("in.h5"), at("some.nii"), "--pixel-um", "-,-,20")
    assert np.allclose(zooms(nibabel.load(at("some.nii"))), (0.0035, 0.00525, 0.02))


main()
