"""OME-TIFF files as tifffile and Pillow read them, their OME-XML against the schema of 2016-06, and
octctl export."""
import os, re
import xml.etree.ElementTree as ET

import numpy as np, tifffile
from PIL import Image

from exportrig import recording_of, same, samples, written_by
from octtest import LONG, Skip, case, folder, main, ok

OME = "{http://www.openmicroscopy.org/Schemas/OME/2016-06}"
DIMS = (5, 7, 11)
WHOLE = r"\d+"
POSITIVE = r"[0-9.]+(e[+-]?\d+)?"
LENGTH = {f"PhysicalSize{a}": POSITIVE for a in "XYZ"}
UNIT = {f"PhysicalSize{a}Unit": "\u00b5m" for a in "XYZ"}
SIZES = {f"Size{a}": r"[1-9]\d*" for a in "XYZCT"}
# Of each element that is written: its attributes, those that must be there, and its children in
# order, as ome.xsd of 2016-06 has them (documentation of the OME data model).
SCHEMA = {
    "OME": ({"Creator": ".+"}, {}, "(Image )+StructuredAnnotations "),
    "Image": ({"ID": r"Image:\S+"}, {"Name": ".+"},
              "(AcquisitionDate )?(Description )?Pixels (AnnotationRef )*"),
    "AcquisitionDate": ({}, {}, ""),
    "Pixels": ({"ID": r"Pixels:\S+", "DimensionOrder": "XY(ZCT|ZTC|CTZ|CZT|TCZ|TZC)",
                "Type": "uint8|uint16|float", **SIZES},
               {"BigEndian": "true|false", "Interleaved": "true|false", "TimeIncrement": POSITIVE,
                "TimeIncrementUnit": "s", **LENGTH, **UNIT}, "(Channel )+(TiffData )+(Plane )*"),
    "Channel": ({"ID": r"Channel:\S+"}, {"SamplesPerPixel": "1"}, ""),
    "TiffData": ({}, {"IFD": WHOLE, "PlaneCount": WHOLE, "FirstZ": WHOLE, "FirstC": WHOLE,
                      "FirstT": WHOLE}, ""),
    "Plane": ({"TheZ": WHOLE, "TheC": WHOLE, "TheT": WHOLE},
              {"DeltaT": POSITIVE, "DeltaTUnit": "s"}, ""),
    "AnnotationRef": ({"ID": r"Annotation:\S+"}, {}, ""),
    "StructuredAnnotations": ({}, {}, "(MapAnnotation )+"),
    "MapAnnotation": ({"ID": r"Annotation:\S+"}, {"Namespace": ".+"}, "Value "),
    "Value": ({}, {}, "(M )*"),
    "M": ({"K": ".+"}, {}, ""),
}


def validate(element, ids):
    name = element.tag.replace(OME, "")
    must, may, children = SCHEMA[name]
    for key, value in element.attrib.items():
        if key.startswith("{"):  # xsi:schemaLocation
            continue
        assert re.fullmatch({**must, **may}[key], value), (name, key, value)
    assert not must.keys() - element.keys(), (name, element.attrib)
    assert re.fullmatch(children, "".join(c.tag.replace(OME, "") + " " for c in element)), name
    if "ID" in element.keys() and name != "AnnotationRef":
        assert element.get("ID") not in ids, "an ID twice"
        ids.add(element.get("ID"))
    for child in element:
        validate(child, ids)
    return ids


def checked(tiff):
    """The OME-XML, which is valid and accounts for each directory of the file once."""
    text = tiff.pages[0].tags["ImageDescription"].value
    root, taken = ET.fromstring(text.encode("ascii")), []
    ids = validate(root, set())
    for reference in root.iter(OME + "AnnotationRef"):
        assert reference.get("ID") in ids
    for pixels in root.iter(OME + "Pixels"):
        n = int(pixels.get("SizeZ")) * int(pixels.get("SizeT"))
        data = pixels.find(OME + "TiffData")
        assert int(data.get("PlaneCount")) == n
        taken += range(int(data.get("IFD")), int(data.get("IFD")) + n)
        assert len(pixels.findall(OME + "Plane")) in (0, n)
    assert taken == list(range(len(tiff.pages)))
    return root


def facts(root, image=0):
    notes = root.findall(f".//{OME}MapAnnotation")[image]
    return {m.get("K"): m.text for m in notes.iter(OME + "M")}


def has(pixels, **wanted):
    for key, value in wanted.items():
        got = pixels.get(key)
        assert got is None if value is None else float(got) == value, (key, got, value)


def pil_pages(path):
    with Image.open(path) as picture:
        pages = []
        for i in range(picture.n_frames):
            picture.seek(i)
            pages.append(np.array(picture))
    return np.stack(pages)


files = written_by("test_export_ome_tiff")


@case
def u8_and_label():
    """B-scans are a series ZYX, depth downwards, with the voxel's size, times and the label"""
    for name, is_big in ("u8.ome.tif", False), ("big.ome.tif", True):
        picture = samples("u8", DIMS).transpose(0, 2, 1)
        with tifffile.TiffFile(files(name)) as tiff:
            assert tiff.is_ome and tiff.is_bigtiff == is_big and len(tiff.series) == 1
            series, root = tiff.series[0], checked(tiff)
            assert series.axes == "ZYX" and series.kind == "ome"
            assert same(series.asarray(), picture)
            page = tiff.pages[0]
            assert page.tags["ResolutionUnit"].value == 3 and page.compression == 1
            for tag, um in ("XResolution", 10), ("YResolution", 4.5):
                assert abs(np.divide(*page.tags[tag].value) * um / 1e4 - 1) < 1e-6
        pixels = root.find(f".//{OME}Pixels")
        has(pixels, PhysicalSizeX=10, PhysicalSizeY=4.5, PhysicalSizeZ=25, SizeZ=5, SizeT=1,
            SizeX=7, SizeY=11)
        assert root.find(f".//{OME}AcquisitionDate").text == "2026-01-02T03:04:05.678Z"
        planes = pixels.findall(OME + "Plane")
        assert [(int(p.get("TheZ")), float(p.get("DeltaT"))) for p in planes] \
            == [(i, float(f"{i * 0.004:.9g}")) for i in range(5)]
        said = facts(root)
        assert said["eye"] == "OS" and said["pseudonym"] == "S\u00e4-17 <1>"
        assert (said["black"], said["white"], said["unit"]) == ("-10", "50", "dB")
        assert said["missing_planes"] == "2" and said["x_axis"] == "line" \
            and said["y_axis"] == "depth" and said["refractive_index"] == "1.36"
        if not is_big:
            assert same(pil_pages(files(name)), picture)


@case
def plain_imagej():
    """ImageJ finds voxels in um and their depth in a second description, in files of any size"""
    for name in "u8.ome.tif", "big.ome.tif", "f32.ome.tif", "series.ome.tif":
        with tifffile.TiffFile(files(name)) as tiff:
            said = {**tiff.imagej_metadata}
            assert float(said.pop("ImageJ")[:4]) == 1.53
            assert said == {"slices": DIMS[0], "unit": "um", "spacing": 25}, said
            codes = [tag.code for tag in tiff.pages[0].tags]
            assert codes.count(270) == 2 and codes == sorted(codes) and 271 not in codes
            assert all(page.tags.get(270) is None for page in tiff.pages[1:])
            checked(tiff)  # the first one is OME-XML
    at = os.path.join(folder("films"), "film.ome.tif")
    recording_of("OD", at + ".h5", seed=1)
    ok("export", at + ".h5", at, "--frames", "1:2")
    with tifffile.TiffFile(at) as tiff:
        assert tiff.imagej_metadata["unit"] == "um" and tiff.imagej_metadata["slices"] == 1


@case
def floats():
    """floats are to the bit, NaN too, for tifffile and Pillow"""
    picture = samples("f32", DIMS).transpose(0, 2, 1)
    assert same(tifffile.imread(files("f32.ome.tif")), picture)
    assert same(pil_pages(files("f32.ome.tif")), picture)
    with tifffile.TiffFile(files("f32.ome.tif")) as tiff:
        root = checked(tiff)
    assert root.find(f".//{OME}AcquisitionDate") is None
    assert root.find(f".//{OME}Plane") is None and "eye" not in facts(root)


@case
def several_series():
    """several sources are a series each, of their own size, kind and axes"""
    wanted = [("u8", DIMS, "ZYX", True), ("f32", (1, 5, 7), "YX", False),
              ("u16", DIMS, "ZYX", False), ("u16", DIMS, "TYX", False)]
    with tifffile.TiffFile(files("series.ome.tif")) as tiff:
        root = checked(tiff)
        assert len(tiff.series) == 4
        for series, (kind, dims, axes, is_turned) in zip(tiff.series, wanted):
            picture = samples(kind, dims)
            picture = picture.transpose(0, 2, 1) if is_turned else picture
            assert series.axes == axes, (series.axes, axes)
            assert same(series.asarray(), picture.squeeze(0) if axes == "YX" else picture)
    _, slab, spectra, times = root.iter(OME + "Pixels")
    has(slab, PhysicalSizeX=10, PhysicalSizeY=25, PhysicalSizeZ=None)
    has(spectra, PhysicalSizeX=None, PhysicalSizeY=10, PhysicalSizeZ=25)
    has(times, PhysicalSizeX=10, PhysicalSizeZ=None, SizeZ=1, SizeT=5, TimeIncrement=1.5)


@case
def long_lines():
    """sides beyond 65535 are written"""
    assert same(tifffile.imread(files("long.ome.tif")),
                samples("u8", (3, 70000, 2)).transpose(0, 2, 1))


@case
def by_octctl():
    """octctl export: a series a recording, to the bit what .npy has, with its spacing and label"""
    at = lambda name: os.path.join(folder("own"), name)
    for i, eye in enumerate(("OD", "OS")):
        recording_of(eye, at(f"{i}.h5"), seed=i)
        ok("export", at(f"{i}.h5"), at(f"{i}.npy"), "--sample", "f32")
    ok("export", at("0.h5"), at("1.h5"), at("both.ome.tif"), "--sample", "f32")
    with tifffile.TiffFile(at("both.ome.tif")) as tiff:
        root = checked(tiff)
        assert len(tiff.series) == 2
        for i, series in enumerate(tiff.series):
            assert series.axes == "ZYX" and same(
                series.asarray(), np.load(at(f"{i}.npy")).transpose(0, 2, 1))
            assert facts(root, i)["eye"] == ("OD", "OS")[i]
            assert facts(root, i)["missing_planes"] == "2,5"
    for pixels in root.iter(OME + "Pixels"):
        has(pixels, PhysicalSizeX=5.25, PhysicalSizeY=3.5, PhysicalSizeZ=12.5)
    assert [d.text for d in root.iter(OME + "AcquisitionDate")] == ["2026-01-02T03:04:05Z"] * 2


@case
def beyond_4_gb():
    """4.3 GB are a BigTIFF, whose last series lies beyond 4 GiB"""
    if not LONG:
        raise Skip("writes 4.3 GB; OCT_LONG=1")
    path = written_by("test_export_ome_tiff", "4gb")("4gb.ome.tif")
    try:
        with tifffile.TiffFile(path) as tiff:
            assert tiff.is_bigtiff and os.path.getsize(path) > 2**32 + 2**24
            checked(tiff)
            assert len(tiff.series) == 2 and tiff.series[1].axes == "ZYX"
            assert tiff.pages[2114].dataoffsets[0] > 2**32
            assert same(tiff.series[1].asarray(), samples("u16", (5, 1000, 2000)))
            i = np.arange(2109 * 1000 * 2050, 2110 * 1000 * 2050, dtype=np.uint64)
            assert same(tiff.pages[2109].asarray(),
                        ((37 * i + 11) % 251).astype(np.uint8).reshape(1000, 2050).T)
    finally:
        os.remove(path)


main()
