#!/usr/bin/python3
"""Thorlabs' .oct files, written with zipfile and numpy alone from what formats/input/thorlabs.c and
its header say: their pictures are those of the same spectra with chirp and background given by hand,
and damaged ones are refused."""
import io, json, os, struct, zipfile

import numpy as np

from inputrig import *
from octtest import case, main, ok

APO = 4
CHIRP = np.interp(np.arange(N), [0, N / 3, N - 1], [0, N / 3 - 4, N - 1]).astype("<f4")
ELECTRONS = 540.0
OWN = ("--set", "pipeline.dc=file", "--set", "calibration.background=recording")


def data_file(name, type="Raw", more="", **attributes):
    fields = "".join(f' {key}="{value}"' for key, value in attributes.items())
    return f'<DataFile Type="{type}"{fields}{more}>data\\{name}.data</DataFile>\n'


def spectral(name, lines=APO + M, samples=N, bytes_=2, more=None):
    if more is None:
        more = (f' ApoRegionStart0="0" ApoRegionEnd0="{APO}" ScanRegionStart0="{APO}" '
                f'ScanRegionEnd0="{lines}"')
    return data_file(name, more=more, SizeZ=samples, SizeX=lines, BytesPerPixel=bytes_)


def header(files, signed="False", more="", bits="12"):
    return f"""<?xml version="1.0" encoding="utf-8"?>
<Ocity version="1.0">
<DataFiles>
{files}</DataFiles>
<Image Type="RawSpectra"><SizePixel Unit="px"><SizeZ>48</SizeZ><SizeX>{M}</SizeX><SizeY>{V}</SizeY></SizePixel>
<SizeReal Unit="mm"><SizeZ>0.15</SizeZ><SizeX>2.400000</SizeX><SizeY>1.200000</SizeY></SizeReal>
<PixelSpacing><SizeZ>0.002500</SizeZ><SizeX>0.2</SizeX><SizeY>0.24</SizeY></PixelSpacing></Image>
<Acquisition><Timestamp>1700000000</Timestamp><RefractiveIndex>1.400000</RefractiveIndex></Acquisition>
<Instrument><BitDepth>{bits}</BitDepth><BytesPerPixel>2</BytesPerPixel>
<RawDataIsSigned> {signed} </RawDataIsSigned><CentralWavelength>900.000000</CentralWavelength>
<SourceBandwidth>195</SourceBandwidth><CameraLineRate>36000</CameraLineRate>
<BinaryToElectronCountScaling>{ELECTRONS}</BinaryToElectronCountScaling></Instrument>{more}
</Ocity>
"""


REAL = data_file("Chirp", "Real", SizeZ=N, BytesPerPixel=4)


def apodisation(seed=5):
    rng = np.random.default_rng(seed)
    bell = 900 * np.exp(-(((np.arange(N) - N / 2) / (N / 3)) ** 2)) + 200
    return np.rint(bell + rng.normal(0, 4, (V, APO, N))).astype("u2")


def entries(spectra, apo, dtype="<u2", names="".join("\\")):
    """Of an ordinary file: B-scans with their apodisation, and the chirp."""
    lines = np.concatenate([apo, spectra], axis=1).astype(dtype)
    return {f"data{names}Spectral{i}.data": lines[i].tobytes() for i in range(len(lines))} | {
        f"data{names}Chirp.data": CHIRP.tobytes()}


def pack(path, parts, method=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", method) as z:
        for name, data in parts.items():
            z.writestr(name, data)
    return path


def ordinary():
    files = "".join(spectral(f"Spectral{i}") for i in range(V)) + REAL
    return {"Header.xml": header(files)} | entries(fringes(), apodisation())


def by_hand(place, chirp=CHIRP, background=None):
    """k map and background as keys. The k map by numpy: where each step in k lies on the camera."""
    steps = np.linspace(chirp[0], chirp[-1], N)
    kmap = np.interp(steps, chirp.astype(float), np.arange(N))
    keys = ["--set", "calibration.kmap=" + table(place, "kmap.txt", kmap)]
    if background is not None:
        keys += ["--set", "pipeline.dc=file", "--set",
                 "calibration.background=" + table(place, "background.txt", background)]
    return keys


@case
def same_pictures():
    """a .oct file makes the pictures of the same spectra with its chirp and apodisation by hand"""
    place = clean("thorlabs")
    spectra, apo = fringes(), apodisation()
    for method in (zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED):
        path = pack(os.path.join(place, "a.oct"), ordinary(), method)
        assert_alike(recon(path), recon_plain(place, spectra, *by_hand(place)))
        wanted = recon_plain(place, spectra, *by_hand(place, background=apo[0].mean(axis=0)))
        assert_alike(recon(path, *OWN), wanted)


@case
def own_calibration():
    """a calibration that is given takes the place of the file's"""
    place = clean("thorlabs-own")
    path = pack(os.path.join(place, "a.oct"), ordinary())
    keys = by_hand(place, np.linspace(0, N - 1, N))
    got = recon(path, *keys)
    assert_alike(got, recon_plain(place, fringes(), *keys))
    assert np.abs(got - recon(path)).max() > 3


@case
def signed_samples():
    """signed samples are moved by half their range, and the background with them"""
    place = clean("thorlabs-signed")
    spectra, apo = fringes(), apodisation()
    shifted = spectra.astype("i4") - 1500, apo.astype("i4") - 1500
    files = "".join(spectral(f"Spectral{i}") for i in range(V)) + REAL
    path = pack(os.path.join(place, "a.oct"),
                {"Header.xml": header(files, "True")} | entries(*shifted, "<i2", "/"))
    keys = by_hand(place, background=shifted[1][0].mean(axis=0) + 32768)
    wanted = recon_plain(place, (shifted[0] + 32768).astype("u2"), *keys)
    assert_alike(recon(path, *OWN), wanted)


@case
def bytes_as_samples():
    """samples of one byte are read too"""
    place = clean("thorlabs-u8")
    spectra, apo = fringes(8), apodisation() // 16
    files = "".join(spectral(f"Spectral{i}", bytes_=1) for i in range(V)) + REAL
    path = pack(os.path.join(place, "a.oct"),
                {"Header.xml": header(files)} | entries(spectra, apo, "u1"))
    assert_alike(recon(path), recon_plain(place, spectra, *by_hand(place)))


@case
def apodisation_elsewhere():
    """an apodisation of its own file, ApodizationSpectrum or the offsets become the background"""
    place = clean("thorlabs-apo")
    spectra, apo = fringes(), apodisation()
    scans = {f"data\\Spectral{i + 1}.data": spectra[i].tobytes() for i in range(V)}
    scans["data\\Chirp.data"] = CHIRP.tobytes()
    named = "".join(spectral(f"Spectral{i + 1}", M, more="") for i in range(V)) + REAL
    first = spectral("Spectral0", APO, more=f' ApoRegionStart0="0" ApoRegionEnd0="{APO}"')
    whole = (apo[0].mean(axis=0) * ELECTRONS).astype("<f4")
    dark = (np.full(N, 180.) * ELECTRONS).astype("<f4")
    spectrum = data_file("ApodizationSpectrum", "Real", SizeZ=N, BytesPerPixel=4)
    offset = data_file("OffsetErrors", "Real", SizeZ=N, BytesPerPixel=4)
    for name, files, more, background in (
            ("first", first + named, {"data\\Spectral0.data": apo[0].tobytes()}, apo[0].mean(axis=0)),
            ("spectrum", named + spectrum + offset, {
                "data\\ApodizationSpectrum.data": whole.tobytes(),
                "data\\OffsetErrors.data": dark.tobytes()}, whole / ELECTRONS),
            ("offset", named + offset, {"data\\OffsetErrors.data": dark.tobytes()}, dark / ELECTRONS)):
        path = pack(os.path.join(place, name + ".oct"), {"Header.xml": header(files)} | scans | more)
        wanted = recon_plain(place, spectra, *by_hand(place, background=background))
        assert_alike(recon(path, *OWN), wanted)


@case
def second_camera():
    """file.dataset=Cam1 takes the second camera of two"""
    place = clean("thorlabs-camera")
    parts, other = ordinary(), fringes(seed=9)
    apo = apodisation(6)
    files = "".join(spectral(f"Spectral{i}{camera}") for i in range(V) for camera in ("", "_Cam1"))
    for i in range(V):
        parts[f"data\\Spectral{i}_Cam1.data"] = np.concatenate([apo[i], other[i]]).tobytes()
    parts["Header.xml"] = header(files + REAL)
    path = pack(os.path.join(place, "a.oct"), parts)
    keys = by_hand(place)
    assert_alike(recon(path), recon_plain(place, fringes(), *keys))
    assert_alike(recon(path, "--set", "file.dataset=Cam1"), recon_plain(place, other, *keys))
    refuse(path, "Cam0", "--set", "file.dataset=Cam2")


@case
def facts():
    """what the header says becomes the settings of the reconstruction"""
    path = pack(os.path.join(clean("thorlabs-facts"), "a.oct"), ordinary())
    recon(path)
    settings = settings_of(path)
    for key, wanted in (("camera.bits", 12), ("camera.samples", N), ("scan.lines", M),
                        ("scan.line_rate_hz", 36000), ("scan.width_um", 2400),
                        ("scan.height_um", 1200)):
        assert float(settings[key]) == wanted, (key, settings[key])


@case
def depth_scale():
    """the depth of a mirror is true by the range in the header, whether the picture was cut or not"""
    place = clean("thorlabs-depth")
    whole = ("<SizeZ>48</SizeZ>", "<SizeZ>0.15</SizeZ>")
    range_um = 150 * 1.4
    k = 7 + np.pi / (2 * range_um) * CHIRP.astype(float)
    ways = {"whole": whole, "cut": ("<SizeZ>32</SizeZ>", "<SizeZ>0.10</SizeZ>"),
            "spacing": ("", "")}
    for name, (pixels, real) in ways.items():
        parts = ordinary() | entries(mirror(k, 77.0), apodisation())
        text = parts["Header.xml"].replace(whole[0], pixels).replace(whole[1], real)
        if name == "spacing":
            text = text.replace("<SizeZ>0.002500</SizeZ>", f"<SizeZ>{0.15 / 48}</SizeZ>")
        path = pack(os.path.join(place, name + ".oct"), parts | {"Header.xml": text})
        depth, pixel = seen_depth(path)
        assert abs(depth - 77.0) < pixel, (name, depth, pixel)
        said = json.loads(ok("info", path, "--json")[0])
        assert abs(said["depth_um"] / pixel - 1) < 1e-6, (name, said)
        assert abs(float(settings_of(path)["scan.axial_um"]) / pixel - 1) < 1e-6
    # What the user states wins, without a word.
    assert abs(seen_depth(path, "--set", "scan.axial_um=0.5")[1] - 0.5) < 1e-9
    # Another k map of the same samples leaves the scale true.
    straight = table(place, "straight.txt", np.linspace(0, N - 1, N))
    even = 7 + np.pi / (2 * range_um) * (CHIRP[-1] - CHIRP[0]) / (N - 1) * np.arange(N)
    path = pack(os.path.join(place, "own.oct"), ordinary() | entries(mirror(even, 77.0), apodisation()))
    depth, pixel = seen_depth(path, "--set", "calibration.kmap=" + straight)
    assert abs(depth - 77.0) < pixel, (depth, pixel)


@case
def no_depth_scale():
    """a header without range, spacing or index gives no scale"""
    place = clean("thorlabs-no-depth")
    parts = ordinary()
    path = pack(os.path.join(place, "a.oct"), parts | {"Header.xml": parts["Header.xml"].replace(
        "<RefractiveIndex>1.400000</RefractiveIndex>", "")})
    assert np.isnan(seen_depth(path)[1])
    assert "depth_um" not in json.loads(ok("info", path, "--json")[0])


def damaged():
    """Name, the parts of the archive or its bytes, and a word of what is said."""
    whole = ordinary()
    text = whole["Header.xml"]
    names = [f"data\\Spectral{i}.data" for i in range(V)]

    def but(**parts):
        return {k: v for k, v in (whole | {"Header.xml": text} | parts).items() if v is not None}

    def xml(old, new, count=1):
        assert old in text
        return whole | {"Header.xml": text.replace(old, new, count)}

    yield "no-header", {k: v for k, v in whole.items() if k != "Header.xml"}, "without Header.xml"
    yield "not-xml", whole | {"Header.xml": "spectra"}, "Header.xml, line 1"
    yield "cut-xml", whole | {"Header.xml": text[:300]}, "Header.xml, line"
    yield "other-xml", whole | {"Header.xml": "<a><b>1</b></a>"}, "<Ocity>"
    yield "entities", whole | {"Header.xml": '<!DOCTYPE a [<!ENTITY b "c">]>\n' + text[39:]}, \
        ("document type", "Header.xml")
    yield "deep", whole | {"Header.xml": "<Ocity>" + "<a>" * 60000 + "</a>" * 60000 + "</Ocity>"}, \
        "no spectra"
    yield "lacking", {k: v for k, v in whole.items() if k != names[2]}, "lacks data\\Spectral2"
    yield "gap", xml(spectral("Spectral3"), ""), "where 3 should follow"
    yield "twice", xml(spectral("Spectral3"), spectral("Spectral2")), "should follow"
    yield "short", whole | {names[1]: whole[names[1]][:-2]}, "bytes, but its Header.xml says"
    yield "long", whole | {names[1]: whole[names[1]] + b"12"}, "bytes, but its Header.xml says"
    yield "odd", whole | {names[0]: whole[names[0]] + b"1"}, "bytes, but its Header.xml says"
    yield "other-lines", xml(spectral("Spectral1"), spectral("Spectral1", APO + M - 1)) | {
        names[1]: whole[names[1]][:-2 * N]}, "other numbers or lengths"
    yield "huge", xml(f'SizeX="{APO + M}"', 'SizeX="4000000000"', 9), "bytes, but its Header.xml says"
    for n in (1, 3):
        few = [spectral(f"Spectral{i}", samples=n) for i in range(V)]
        yield f"few{n}", {"Header.xml": header("".join(few) + REAL)} | {
            name: bytes((APO + M) * n * 2) for name in names} | {
            "data\\Chirp.data": CHIRP[:n].tobytes()}, "beyond what can be processed"
    yield "overflow", xml(f'SizeZ="{N}"', 'SizeZ="99999999999999999999"', 9), "contradict"
    yield "negative", xml(f'SizeZ="{N}"', 'SizeZ="-4"', 9), "contradict"
    yield "region", xml(f'ScanRegionEnd0="{APO + M}"', 'ScanRegionEnd0="900"'), "contradict"
    yield "apo-region", xml(f'ApoRegionEnd0="{APO}"', 'ApoRegionEnd0="900"'), "contradict"
    yield "regions", xml('ScanRegionStart0=', 'ScanRegionStart1="1" ScanRegionStart0='), "several"
    yield "floats", xml('Type="Raw"', 'Type="Real"', 9), "spectra are of type Raw"
    yield "three-bytes", xml('BytesPerPixel="2"', 'BytesPerPixel="3"', 9), "BytesPerPixel"
    yield "few", whole | {"data\\Chirp.data": CHIRP[:-1].tobytes()}, "Chirp.data has"
    yield "turns", whole | {"data\\Chirp.data": CHIRP[::-1][[0, 2, 1, *range(3, N)]].tobytes()}, \
        "does not go on"
    yield "not-a-number", whole | {"data\\Chirp.data": (CHIRP * np.nan).tobytes()}, "is no number"
    yield "picture", {"Header.xml": header(data_file("Intensity", "Real", SizeZ=48, SizeX=M)),
                      "data\\Intensity.data": bytes(48 * M * 4)}, "ThorImage's own picture"
    yield "nothing", {"Header.xml": header("")}, "holds no spectra"


@case
def refusals():
    """damaged or strange files are refused in one line"""
    place = clean("thorlabs-damaged")
    n = 0
    for name, parts, words in damaged():
        refuse(pack(os.path.join(place, name + ".oct"), parts), words)
        n += 1
    assert n >= 20, n


@case
def bombs():
    """archives that are cut, packed otherwise, or say more than they can have, are refused"""
    place = clean("thorlabs-bombs")
    whole = open(pack(os.path.join(place, "a.oct"), ordinary()), "rb").read()
    for n in (4, 30, len(whole) // 2, len(whole) - 5):
        refuse(write(os.path.join(place, f"cut{n}.oct"), whole[:n]), "ZIP archive")
    refuse(write(os.path.join(place, "empty.oct"), b"PK\5\6" + bytes(18)), "without Header.xml")
    refuse(pack(os.path.join(place, "lzma.oct"), ordinary(), zipfile.ZIP_LZMA), "packed by method")
    torn = bytearray(whole)
    at = whole.index(b"Spectral1.data") + 100
    torn[at:at + 40] = bytes(40)
    refuse(write(os.path.join(place, "torn.oct"), bytes(torn)), "cannot be unpacked", commands=("recon",))
    # Of the central directory: 20 packed bytes, 24 unpacked bytes, 46 the name.
    entry = whole.rindex(b"data\\Spectral0.data") - 46
    for offset, value, name in ((24, 1 << 31, "grown"), (20, 1 << 31, "packed")):
        lying = bytearray(whole)
        lying[entry + offset:entry + offset + 4] = struct.pack("<I", value)
        refuse(write(os.path.join(place, name + ".oct"), bytes(lying)), "more bytes than it can have")
    # All entries share the bytes of one.
    shared = bytearray(whole)
    size = max(len(whole) // 2, 1)
    for i in range(V):
        at = whole.rindex(f"data\\Spectral{i}.data".encode()) - 46
        shared[at + 20:at + 24] = struct.pack("<I", size)
    refuse(write(os.path.join(place, "shared.oct"), bytes(shared)),
           ("more bytes than it can have", "cannot be unpacked"))


main()
