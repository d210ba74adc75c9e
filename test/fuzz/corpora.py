#!/usr/bin/python3
"""Writes the first inputs of test/fuzz/corpus: one of each kind that the targets know. Inputs that
make fuzz found are kept beside them under names of their own and are not touched."""
import os, struct

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus")


def put(target, name, data):
    folder = os.path.join(TOP, target)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name), "wb") as file:
        file.write(data if isinstance(data, bytes) else data.encode())


def lines():
    header = struct.pack("<4sHHQQQIIHHII12x", b"OCTL", 1, 64, 0, 5, 0, 2, 8, 2, 1, 7, 0)
    put("lines", "raw", b"\0\1" + header + b"\x20" + bytes(range(32)))
    # how: next sequence, next line, small count, N samples, u16, no flags, same epoch, right size
    block = lambda n: bytes([4, 0xff, n, 0, 0]) + bytes(n * 16)
    put("lines", "whole", b"".join(block(5) for _ in range(6)) + b"\3\4" + block(3) + b"\1\1")
    put("lines", "across", b"".join(block(n) for n in (2, 7, 11, 1)) + b"\2" + block(5))
    put("lines", "gap", block(2) + bytes([4, 0xfd, 3, 9, 2, 0, 0]) + bytes(32) + block(5))
    put("lines", "short", bytes([4, 0x7f, 5, 0, 0]) + struct.pack("<I", 12) + bytes(12)
        + bytes([4, 0x7f, 1]) + bytes(2) + struct.pack("<I", 500) + bytes(500))
    put("lines", "full", b"".join(block(5) for _ in range(9)))


def shm():
    deliver = bytes([6, 1, 5, 1, 1, 1, 1, 0])
    put("shm", "good", deliver * 5)
    put("shm", "cut", deliver + bytes([5, 1, 5, 1, 1, 1, 0, 3, 4, 1, 1, 0, 2, 3, 2, 3]))
    put("shm", "scribble", deliver + bytes([0, 7, 0, 3, 9, 9, 9, 9, 9, 9, 9, 9]) + deliver)
    put("shm", "reclaim", bytes([5, 1, 5, 1, 1]) + bytes([2, 3]) * 6)


def control():
    sep = b"\x1e"
    put("control", "all", b"\2" + sep.join([
        b'{"cmd":"status"}', b'{"cmd":"get","key":"scan.lines"}',
        b'{"cmd":"set","key":"pipeline.max_db","value":70}',
        b'{"cmd":"set","key":"record.eye","value":"OD"}',
        b'{"cmd":"record","action":"start"}', b'{"cmd":"record","action":"stop"}',
        b'{"cmd":"record","action":"last","name":"a"}', b'{"cmd":"stop"}', b'{"cmd":"start"}']))
    put("control", "end", b'\3{"cmd":"shutdown"}\x1e{"cmd":"status"}\x1e{"cmd":"start"}')
    put("control", "rebuild", b'\0{"cmd":"set","key":"scan.lines","value":"480"}\x1e{"cmd":"start"}'
        b'\x1e{"cmd":"record","action":"start"}\x1e{"cmd":"status"}')
    put("control", "name", b'\3{"cmd":"record","action":"last","name":"../../x"}')
    put("control", "nonsense", b'\1{"cmd":7}\x1e[]\x1e{"cmd":"sta\\u0000tus"}\x1e{}x\x1e\x1e{"cmd":')
    put("control", "behind", b'\0{"cmd":"status"} x\x1e{"cmd":"status"}{"cmd":"status"}\x1e'
        b'{"cmd":"status"}\0\x1e{"cmd":"status"} \r\n')
    put("control", "refused", b'\0{"cmd":"set","key":"pipeline.min_db","value":100}\x1e'
        b'{"cmd":"set","key":"scan.lines","value":0}\x1e{"cmd":"set","key":"pipeline.crop_first",'
        b'"value":4000}\x1e{"cmd":"set","key":"control.endpoint","value":"tcp://*:1"}')
    put("control", "deep", b"\0" + b"[" * 1100)


def view():
    header = (b'{"frame_num":%d,"acquisition_id":"a","dtype":"%s","dsize":%d,"dataset":"bscans",'
              b'"compression":"none","shape":["2","3"],"time_ns":5,"missing_lines":0,"lo":0,"hi":60,'
              b'"volume":0,"bscan":%d}')
    picture = lambda i: b"p" + header % (i, b"uint8", 6, i) + b"\x1e" + b"abcdef"
    put("view", "u8", b"\x1e".join(picture(i) for i in (0, 1, 4)))
    put("view", "f32", b"p" + header % (7, b"float", 24, 7) + b"\x1e" + struct.pack("<6f", *range(6)))
    put("view", "spectrum", b's{"frame_num":3,"acquisition_id":"a","line":1,"n_samples":4,'
        b'"dtype":"uint16","shape":["4"],"limit":65535,"saturated":0}\x1e' + bytes(8))
    put("view", "status", b'd{"ok":true,"state":"recording","uptime_s":9,"lines_received":100,'
        b'"lines_missing":2,"bscans_done":9,"bscans_published":9,"bscans_dropped":{"ring_full":1},'
        b'"latency_us":{"p50":1,"p99":2,"max":3},"last_error":"disk","record":{"active":true,'
        b'"file":"/a/b.h5","eye":"OD","pseudonym":"x"}}\x1e' + picture(1))
    image = (b'{"frame_num":7,"acquisition_id":"a","dtype":"float","dsize":%d,"dataset":"analysis/%s",'
             b'"compression":"none","shape":[%s],"time_ns":5,"missing_lines":0,"lo":0,"hi":60,'
             b'"volume":0,"bscan":1%s}\x1e')
    labels = ("snr_db", "sharpness", "level_db", "blink", "motion", "missing", "blinks", "motions",
              "snr_smooth_db", "sharpness_smooth")
    enface = lambda *v: (b"e" + image % (24, b"enface", b'"2","3"', b',"whole":false')
                         + struct.pack("<6f", *v))
    quality = (b"q" + image % (40, b"quality", b'"10"', b',"labels":["%s"]'
                               % '","'.join(labels).encode()) + struct.pack("<10f", *range(20, 30)))
    average = lambda n, score: (
        b"a" + image % (24, b"average", b'"2","3"', b',"averaged":%d,"rejected":1,"resets":0,'
                        b'"score":%s,"shift_px":[0.25,-3]' % (n, score)) + struct.pack("<6f", *range(n, n + 6)))
    cones = lambda um: (b"c" + image % (20, b"cones", b'"5"', b',"labels":["spacing_px",'
                                        b'"spacing_um","rows_um","cells_per_mm2","strength"]')
                        + struct.pack("<5f", 10, um, um * 0.866, 65000, 0.14))
    averaging = (b'd{"ok":true,"state":"running","average":{"bscans":16,"min_score":0.3},'
                 b'"scan":{"lateral_um":3,"slow_um":3}}')
    told = (b'd{"ok":true,"state":"running","analysis":[{"name":"enface","projection":"slab",'
            b'"slab_first":0.4,"slab_last":0.6}]}')
    nan = float("nan")
    put("view", "enface", b"\x1e".join([enface(1, 2, 3, nan, nan, nan), picture(0),
                                        enface(1, 2, 3, 4, 5, nan)]))
    put("view", "quality", b"\x1e".join([quality, picture(0), quality]))
    put("view", "average", b"\x1e".join([averaging, picture(0), b"k\5\0\1\0" + average(1, b"null"),
                                         picture(1), average(2, b"0.2"), b"k\6\0\1\0" + average(3, b"0.9"),
                                         b"k\7\0\1\0" + picture(3)]))
    put("view", "cones", b"\x1e".join([averaging, picture(0), cones(4.2), cones(float("nan"))]))
    put("view", "keys", b"\x1e".join([told, b"k\0\0\1\1k\2\5\1\1k\2\x20\1\1k\4\xc0\0\1k\1\3\1\0"
                                      + told, picture(0)]))


def image():
    header = (b'{"frame_num":5,"acquisition_id":"a","dtype":"%s","dsize":%d,"dataset":"analysis/x",'
              b'"compression":"none","shape":[%s],"time_ns":5,"missing_lines":0,"lo":0,"hi":60,'
              b'"volume":0,"bscan":3%s}')
    put("image", "picture", header % (b"uint8", 6, b'"2","3"', b"") + b"\x1eabcdef")
    put("image", "row", header % (b"float", 12, b'"1","3"', b',"quantity":"numbers","unit":"um",'
        b'"axes":["row","column"],"spacing_um":[null,null],"whole":true,"labels":["a","b","c"],'
        b'"values":{"a":1,"b":null,"c":-3.5}') + b"\x1e" + struct.pack("<3f", 1, 2, -3.5))
    put("image", "numbers", header % (b"uint8", 6, b'"2","3"', b',"averaged":14,"score":null,'
        b'"shift_px":[0.25,-3],"wrong":[1,"a"],"none":[],"many":[1,2,3,4,5,6,7,8,9],"lo ":3,'
        b'"huge":1e999,"a\\"b":1,"\\u0007":2,"score":2,"name_of_more_than_thirty_two_letters":3')
        + b"\x1eabcdef")
    put("image", "none", header % (b"float", 0, b'"0","2","5"', b',"spacing_um":[12.25,null,3.5],'
        b'"whole":false') + b"\x1e")
    put("image", "label", header % (b"uint8", 1, b'"1"', b',"labels":["\\u001b[2J"]') + b"\x1ea")
    put("image", "large", header % (b"uint8", 1, b'"268435456","268435456","0"', b"") + b"\x1ea")


def ini():
    with open(os.path.join(TOP, "../../../config/octd.ini")) as file:
        keys = [line.lstrip(";") for line in file if "=" in line or line.startswith("[")]
    put("ini", "small", "[camera]\nsamples=832\n\n[scan]\nlines = 240 ; many\n[pipeline]\nlog=no\n"
        "min=0\nmax=1e4\n[record]\npseudonym=a b\n[calibration]\nkmap=k.txt\n")
    put("ini", "keys", "".join(keys[:60]))
    put("ini", "set", "@camera.samples=1024\x1epipeline.range=percentile\x1epipeline.nothing=3\x1e"
        "output.sample=f32\x1erecord.pseudonym=\x1bx\x1escan.line_rate_hz=nan")
    put("ini", "wrong", "[scan\nlines=99999999999\n=\n[x]\ny=z\n[scan]\nlines=-0x5\n")


def calibration():
    rising = "\n".join(str(800 + i) for i in range(16))
    put("calibration", "wavelengths", b"\0" + rising.encode())
    put("calibration", "kmap", b"\x01# pixels\r\n0\r\n7.5\r\n15\r\n")
    put("calibration", "dispersion", b"\x02" + b"1 0\n0, -1\n0;1e0\n")
    put("calibration", "background", b"\x03" + b"100\n" * 16)
    put("calibration", "infinite", b"\x01" + b"0\n1e999\n")
    put("calibration", "nan", b"\x03" + b"nan\n" * 16)
    put("calibration", "wrong", b"\x01" + b"1\n1e999\n0x1p4 nan\n" + b"9" * 300)


def key():
    public, secret = "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID", "D:)Q[IlAW!ahhC2ac:9*A}h:p?([4%wOTJ%JR%cs"
    put("key", "both", f'# a key\nmetadata\ncurve\n    public-key = "{public}"\n'
        f'    secret-key = "{secret}"\n')
    put("key", "bare", public + "\n")
    put("key", "long", f'public-key = "{public * 7}"\n')
    put("key", "short", f'public-key = "{public[:39]}"\nsecret-key\n')


def volume():
    # Extents V M N D G; for each object of the target's table its kind (0: absent), shape (5: the
    # right one), packing, whether written, and values; for each attribute a number and its kind.
    def thing(kind, packing=0, values=(1, 0, 2)):
        return bytes([kind, 5, packing, 1, len(values) - 1, 7]) + struct.pack(f"<{len(values)}Q", *values)
    gone = b"\0"
    u16, u8, u32, u64, f32, f64 = 1, 2, 4, 5, 7, 8
    text = lambda kind, value: bytes([3, kind, 9]) + value.ljust(24, b"\0") + b"\1"
    about = (text(7, b"octd 0.1") + bytes([0, 5]) + b"2026-01-01".ljust(24, b"\0") + b"\1"
             + text(6, b"OD") + text(7, b"p\x1b[2J") + text(7, b"[scan]\nlines=3")
             + bytes([4, 3]) + bytes(24) + b"\1")
    rows = thing(u64) + thing(u64) + thing(u64) + thing(u32) * 4 + thing(u8, 0, (1, 0))
    gaps = thing(u32) + thing(u64) + thing(u64, 0, (2, 3)) + thing(u8)
    tables = thing(f64) + thing(f64) + thing(f64) + thing(f64)
    put("volume", "whole", bytes([2, 3, 8, 5, 4]) + thing(u16) + thing(u8) + rows + thing(u8) + gaps
        + tables + about)
    put("volume", "packed", bytes([3, 4, 8, 5, 0]) + thing(3, 18) + thing(f32, 22) + gone * 17 + about)
    put("volume", "spectra", bytes([1, 2, 8, 0, 0]) + thing(u16, 1) + gone * 23)
    none_of = lambda kind: bytes([kind, 0, 0, 0, 0, 0])  # a length of its own: 0
    put("volume", "gaps_without_acquisitions", bytes([2, 3, 8, 5, 30]) + thing(u16) + gone * 10
        + none_of(u32) + thing(u64, 0, (9,)) + thing(u64, 0, (9,)) + thing(u8, 0, (2,)))
    put("volume", "pictures", bytes([4, 2, 0, 6, 0]) + gone + thing(u16) + rows + gone * 5 + tables)


def pictures():
    import io
    import struct
    import zlib

    import h5py
    import numpy as np
    grey = (np.arange(17 * 18) * 7 % 256).reshape(17, 18)

    def png(bits, colour, rows, interlace=0, more=b""):
        chunk = lambda kind, body: (struct.pack(">I", len(body)) + kind + body
                                    + struct.pack(">I", zlib.crc32(kind + body)))
        return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(
            ">IIBBBBB", 18, 17, bits, colour, 0, 0, interlace)) + more
            + chunk(b"IDAT", zlib.compress(b"".join(b"\0" + r for r in rows))) + chunk(b"IEND", b""))

    def tiff(order, dtype, tags=(), pages=1, cut=None):
        data = grey.astype(np.dtype(dtype).newbyteorder(order)).tobytes()
        e, kind = ("<", b"II*\0") if order == "<" else (">", b"MM\0*")
        out, at = kind + struct.pack(e + "I", 8), 8
        for page in range(pages):
            size = np.dtype(dtype).itemsize
            entries = {256: (4, 18), 257: (4, 17), 258: (3, 8 * size), 259: (3, 1), 262: (3, 1),
                            273: (4, 0), 277: (3, 1), 278: (4, 17), 279: (4, len(data)),
                            339: (3, 3 if dtype == "f4" else 1)} | dict(tags)
            ifd = 2 + 12 * len(entries) + 4
            entries[273] = (4, at + ifd)
            out += struct.pack(e + "H", len(entries))
            for tag, (t, v) in sorted(entries.items()):
                out += struct.pack(e + "HHI", tag, t, 1) + (
                    struct.pack(e + "HH", v, 0) if t == 3 else struct.pack(e + "I", v))
            at += ifd + len(data)
            out += struct.pack(e + "I", at if page + 1 < pages else 0) + data
        return out

    put("pictures", "grey8.png", png(8, 0, [bytes(r.tolist()) for r in grey]))
    put("pictures", "grey16.png", png(16, 0, [r.astype(">u2").tobytes() for r in grey * 200]))
    put("pictures", "colour.png", png(8, 2, [bytes(np.repeat(r, 3).tolist()) for r in grey]))
    put("pictures", "alpha.png", png(8, 6, [bytes(np.repeat(r, 4).tolist()) for r in grey]))
    put("pictures", "bits.png", png(1, 0, [bytes(3)] * 17))
    put("pictures", "cut.png", png(8, 0, [bytes(18)] * 9))
    put("pictures", "huge.png", png(8, 0, [bytes(18)] * 17).replace(
        struct.pack(">II", 18, 17), struct.pack(">II", 16384, 16384)))
    for order, name in ("<", "little"), (">", "big"):
        for dtype in "u1", "u2", "f4":
            put("pictures", f"{name}_{dtype}.tif", tiff(order, dtype))
    put("pictures", "stack.tif", tiff("<", "u1", pages=3))
    put("pictures", "white.tif", tiff("<", "u2", {262: (3, 0)}))
    put("pictures", "strips.tif", tiff("<", "u1", {278: (4, 0)}))
    put("pictures", "palette.tif", tiff("<", "u1", {262: (3, 3)}))
    put("pictures", "channels.tif", tiff("<", "u1", {277: (3, 3), 262: (3, 2)}))
    put("pictures", "tiles.tif", tiff("<", "u1", {322: (4, 16), 323: (4, 16)}))
    put("pictures", "wide.tif", tiff("<", "u1", {256: (4, 65536)}))
    put("pictures", "cut.tif", tiff("<", "u2")[:300])
    u32 = lambda *v: struct.pack("<%dI" % len(v), *v)
    chunk = lambda name, body: name + u32(len(body)) + body + b"\0" * (len(body) % 2)
    lst = lambda kind, body, name=b"LIST": chunk(name, kind + body)

    def avi(bits=8, codec=b"\0\0\0\0", height=17, pictures=3, palette=256, rec=False, more=0, chunks=()):
        row = lambda r: (np.repeat(r, bits // 8).astype("u1").tobytes() + b"\0" * 3)[:(18 * bits // 8 + 3) // 4 * 4]
        picture = chunk(b"00db", b"".join(row(r) for r in grey[::-1]))
        strf = (struct.pack("<IiiHH4sIiiII", 40, 18, height, 1, bits, codec, 0, 0, 0, palette, 0)
                + b"".join(u32(i * 0x10101) for i in range(palette)))
        strl = lst(b"strl", chunk(b"strh", b"vidsDIB " + u32(0, 0, 0, 1001, 30000, 0, pictures + more)
                                  + bytes(20)) + chunk(b"strf", strf))
        movi = lambda n: lst(b"movi", b"".join(lst(b"rec ", picture) if rec else picture for _ in range(n))
                             + b"".join(chunks))
        return (lst(b"AVI ", lst(b"hdrl", chunk(b"avih", u32(33367) + bytes(52)) + strl
                    + lst(b"odml", chunk(b"dmlh", u32(pictures + more)))) + movi(pictures)
                    + chunk(b"idx1", b""), b"RIFF")
                + (lst(b"AVIX", movi(more), b"RIFF") if more else b""))

    put("pictures", "grey.avi", avi())
    put("pictures", "colour.avi", avi(24, palette=0))
    put("pictures", "four.avi", avi(32, palette=0, height=-17))
    put("pictures", "y800.avi", avi(codec=b"Y800", palette=0))
    put("pictures", "rec.avi", avi(rec=True, pictures=2, more=2))
    put("pictures", "repeat.avi", avi(chunks=(chunk(b"00dc", b""), chunk(b"01wb", b"abc"), chunk(b"ix00", b""))))
    put("pictures", "packed.avi", avi(codec=b"MJPG"))
    put("pictures", "cut.avi", avi()[:-300])
    put("pictures", "open.avi", avi().replace(u32(len(avi()) - 8), u32(0)))
    put("pictures", "claims.avi", avi(chunks=(b"00db" + u32(0xfffffff0),)))
    put("pictures", "large.avi", avi(height=16384, pictures=0, chunks=(chunk(b"00db", b""),) * 9))

    def npy(descr, shape, data, order="False", version=1):
        text = f"{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}\n".encode()
        return (b"\x93NUMPY" + bytes([version, 0])
                + struct.pack("<H" if version == 1 else "<I", len(text)) + text + data)

    for dtype in "|u1", ">u2", "<i2", "<f4", ">f8":
        put("pictures", dtype[1:] + ".npy", npy(dtype, (2, 17, 18), np.stack([grey] * 2).astype(dtype).tobytes()))
    put("pictures", "one.npy", npy("|u1", (17, 18), grey.astype("u1").tobytes(), version=3))
    put("pictures", "fortran.npy", npy("|u1", (17, 18), grey.astype("u1").tobytes(), order="True"))
    put("pictures", "cut.npy", npy("|u1", (3, 17, 18), grey.astype("u1").tobytes(), version=2))
    put("pictures", "huge.npy", npy("<f8", (18446744073709551615, 16384, 16384), b""))
    for name, fill in (("recording", {"bscans": np.stack([grey] * 3).astype("u1")}),
                       ("timed", {"bscans": np.stack([grey] * 17).astype("u1")}),
                       ("array", {"a": grey.astype(">f4"), "bscans": grey[None].astype("f4")})):
        file = io.BytesIO()
        with h5py.File(file, "w", track_order=False) as f:
            for key, values in fill.items():
                f[key] = values
            n = len(fill["bscans"])
            f["frames/lo"], f["frames/hi"] = np.zeros(n), np.full(n, 60.0)
            if name == "timed":
                f["frames/time_ns"], f["frames/valid"] = (
                    10 ** 18 + np.arange(n, dtype="u8") * 10 ** 7, np.arange(n, dtype="u1") % 5 > 0)
                f.attrs["config"] = "[scan]\nline_rate_hz = 80000\n"
        put("pictures", name + ".h5", file.getvalue())


def devices():
    """What other devices export, for the targets of pictures and of volumes."""
    import io
    from PIL import Image
    m, d, v = 17, 16, 2

    def vol(layers=2, pattern=3, slo=(2, 2), bscans=v):
        head = struct.pack("<12s3i3d2i2did4sq2i", b"HSF-OCT-103", m, v, d, 0.01, 0.1, 0.004, *slo, 0.01, 0.01, 30,
                           -1.5, b"OD", 130681499728792759, pattern, 256 + 4 * layers * m)
        bscan = (struct.pack("<12si4d2ifi", b"HSF-BS-103", 256 + 4 * layers * m, 0, 0, 1, 0, layers, 256, 27, 0)
                 + bytes(192) + struct.pack("<f", 5.5) * (layers * m)
                 + b"".join(struct.pack("<f", 3.4028235e38 if i == 40 else i / 300) for i in range(m * d)))
        return head + bytes(2048 - len(head) + slo[0] * slo[1]) + bscan * bscans

    def element(tag, vr, value, implicit=False):
        value += (b" " if vr in ("CS", "DS", "IS", "DT", "LO") else b"\0") * (len(value) % 2)
        start = struct.pack("<2H", tag >> 16, tag & 0xffff)
        if implicit:
            return start + struct.pack("<I", len(value)) + value
        size = struct.pack("<2xI" if vr in ("OB", "OW", "SQ", "UN") else "<H", len(value))
        return start + vr.encode() + size + value

    item = lambda body: struct.pack("<2HI", 0xfffe, 0xe000, len(body)) + body
    opened = lambda tag: struct.pack("<2H2s2xI", tag >> 16, tag & 0xffff, b"SQ", 0xffffffff)
    mark = lambda what: struct.pack("<2HI", 0xfffe, what, 0)

    def dicom(syntax=b"1.2.840.10008.1.2.1", implicit=False, bits=8, pixels=None, more=b"", lines=False):
        e = lambda tag, vr, value: element(tag, vr, value, implicit)
        us = lambda tag, value: e(tag, "US", struct.pack("<H", value))
        frames = b"".join(item(e(0x209111, "SQ", item(e(0x189074, "DT", b"2020020304050%d.5" % i)))
                               + (e(0x220031, "SQ", item(e(0x220032, "FL", struct.pack("<4f", i, 0, i, 9))))
                                  if lines else
                                  e(0x209113, "SQ", item(e(0x200032, "DS", b"0\\0\\%d" % i)))))
                          for i in range(v))
        return (bytes(128) + b"DICM" + element(0x20010, "UI", syntax)
                + e(0x80016, "UI", b"1.2.840.10008.5.1.4.1.1.77.1.5.4") + e(0x8002a, "DT", b"20200203040506+0100")
                + e(0x200062, "CS", b"R") + us(0x209162, 1) + us(0x209163, 1) + us(0x280002, 1)
                + e(0x280004, "CS", b"MONOCHROME2") + e(0x280008, "IS", b"%d" % v) + us(0x280010, d) + us(0x280011, m)
                + us(0x280100, bits) + us(0x280101, bits) + us(0x280102, bits - 1) + us(0x280103, 0)
                + e(0x52009229, "SQ", item(e(0x289110, "SQ", item(e(0x180050, "DS", b"0.1")
                                                                  + e(0x280030, "DS", b"0.004\\0.01")))))
                + e(0x52009230, "SQ", frames) + more
                + (e(0x7fe00010, "OW", bytes(i * 7 & 255 for i in range(m * d * v * bits // 8)))
                   if pixels is None else pixels))

    rle = struct.pack("<16I", 1, 64, *[0] * 14) + b"".join(bytes([m - 1]) + bytes(range(z, z + m)) for z in range(d))
    packed = lambda *fragments: (struct.pack("<2H2s2xI", 0x7fe0, 0x10, b"OB", 0xffffffff)
                                 + b"".join(map(item, (b"", *fragments))) + mark(0xe0dd))
    jpeg = io.BytesIO()
    Image.frombytes("L", (m, d), bytes(range(16)) * m).save(jpeg, "JPEG")
    jpeg = jpeg.getvalue() + b"\0" * (len(jpeg.getvalue()) % 2)
    nested = (opened(0x81115) + struct.pack("<2HI", 0xfffe, 0xe000, 0xffffffff)) * 12 + (mark(0xe00d) + mark(0xe0dd)) * 12
    files = {"whole.vol": vol(), "line.vol": vol(0, 1, (0, 0)), "cut.vol": vol(bscans=1) + bytes(99),
             "many.vol": vol(20), "plain.dcm": dicom(), "u16.dcm": dicom(bits=16, lines=True),
             "implicit.dcm": dicom(b"1.2.840.10008.1.2", True), "nested.dcm": dicom(more=nested),
             "rle.dcm": dicom(b"1.2.840.10008.1.2.5", pixels=packed(rle, rle[:-20] + b"\xed\7" + b"\0" * 18)),
             "jpeg.dcm": dicom(b"1.2.840.10008.1.2.4.50", pixels=packed(jpeg, jpeg[:200]))}
    for name, data in files.items():
        put("pictures", name, data)
    put("nifti", "vol", b"\0" + vol())
    put("nifti", "dicom", b"\0" + dicom())


def csv():
    put("csv", "tracks", "track,frame,x_px,y_px\n1,0,10.5,20\n1,1,11.5,20.25\n2,1,40,1e1\n")
    put("csv", "trackmate", '\ufeff"ID","TRACK_ID","T","X","Y"\r\n1,0,0,3.5,4\r\n2,,1,5,6\r\n\r\n')
    put("csv", "quoted", 'track,frame,x,y,"a ""note"",\nof two lines"\n1,0,1,2,"b"\n')
    put("csv", "twice", "track,frame,x,y\n7,3,1,2\n8,3,1,2\n7,3,5,6\n")
    put("csv", "short", "track,frame,x,y\n1,0,1\n")
    put("csv", "open", 'track,frame,x,y\n1,0,"1,2\n')
    put("csv", "zero", b"track,frame,x,y\n1,\0,1,2\n")
    put("csv", "numbers", "id,t,x,y\r 1 ,0, -1e999,2\r1,18446744073709551616,1,2\r")
    put("csv", "wide", ",".join(["track", "frame", "x", "y"] + ["a"] * 4100) + "\n")


def nifti():
    import gzip, io, h5py, numpy as np

    def nii(order="<", dim=(3, 4, 3, 2, 1, 1, 1, 1), datatype=16, slope=0.0, offset=352, magic=b"n+1\0", units=10,
            qform=0, sform=0, data=None):
        voxels = b"".join(struct.pack(order + "f", i) for i in range(24)) if data is None else data
        return (struct.pack(order + "i", 348) + bytes(36) + struct.pack(order + "8h", *dim) + bytes(14)
                + struct.pack(order + "hh", datatype, 0) + bytes(2)
                + struct.pack(order + "11f", 1, .004, .01, .025, 1, 1, 1, 1, offset, slope, 2) + bytes(3)
                + bytes([units]) + bytes(128) + struct.pack(order + "hh", qform, sform)
                + struct.pack(order + "6f", .6, 0, 0, 1, 2, 3)
                + struct.pack(order + "12f", .004, 0, 0, 1, 0, .01, 0, 2, 0, 0, .025, 3) + bytes(16) + magic
                + bytes(4) + voxels)

    def nii2(order="<", dim=(3, 4, 3, 2, 1, 1, 1, 1), datatype=4, offset=544):
        return (struct.pack(order + "i", 540) + b"n+2\0\r\n\x1a\n" + struct.pack(order + "hh8q", datatype, 16, *dim)
                + bytes(24) + struct.pack(order + "8dq2d", 1, 4, 10, 25, 1, 1, 1, 1, offset, .5, -3) + bytes(144)
                + struct.pack(order + "ii18d", 1, 1, *[.1] * 18) + bytes(4) + struct.pack(order + "i", 3)
                + bytes(40) + bytes(range(48)))

    for packed in b"\0", b"\1":
        name = ".gz" if packed == b"\1" else ""
        put("nifti", "one" + name, packed + nii())
        put("nifti", "two" + name, packed + nii2())
    put("nifti", "big", b"\0" + nii(">", qform=1))
    put("nifti", "big2", b"\1" + nii2(">"))
    put("nifti", "placed", b"\0" + nii(sform=1, slope=2.5, units=3))
    for n, kind in enumerate((2, 4, 8, 64, 128, 256, 512, 768, 1024, 1280)):
        put("nifti", f"type{kind}", bytes([n % 2]) + nii(datatype=kind, data=bytes(range(192))))
    put("nifti", "cut", b"\0" + nii()[:-5])
    put("nifti", "cut.gz", b"\1" + nii()[:-5])
    put("nifti", "header", b"\0" + nii()[:200])
    put("nifti", "torn", b"\0" + gzip.compress(nii(), mtime=0)[:-9])
    put("nifti", "huge", b"\0" + nii2(dim=(3, 1 << 31, 1 << 31, 4, 1, 1, 1, 1)))
    put("nifti", "far", b"\0" + nii(offset=float("nan")))
    put("nifti", "five", b"\0" + nii(dim=(5, 4, 3, 2, 1, 3, 1, 1)))
    put("nifti", "pair", b"\0" + nii(magic=b"ni1\0"))
    put("nifti", "slope", b"\0" + nii(slope=float("inf")))
    put("nifti", "text", b"\1not a volume")
    for name, sets in (("one.h5", ["a/b"]), ("two.h5", ["a", "b"]), ("recording.h5", ["bscans"]), ("none.h5", [])):
        file = io.BytesIO()
        with h5py.File(file, "w", track_order=False) as f:
            f["flat"] = np.zeros((4, 4), "u1")
            for each in sets:
                f[each] = np.arange(60, dtype="f4").reshape(3, 4, 5)
                f[each].attrs["element_size_um"] = [30.0, 6, 3]
        put("nifti", name, b"\0" + file.getvalue())


def recording():
    import numpy as np

    def npy(descr, shape, order="False"):
        text = f"{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}\n".encode()
        values = (300 + np.arange(np.prod(shape)) * 7 % 1000).astype(descr).tobytes()
        return b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text + values

    def how(bits, sample=0):
        return bytes([bits, sample])

    for n, descr in enumerate(("<u2", ">u2", "|u1", "<i2", ">i4", "<f4", ">f8", "|i1")):
        put("recording", f"npy{n}", how(0) + npy(descr, (3, 4, 8)))
    put("recording", "fortran", how(0) + npy("<u2", (3, 4, 8), "True"))
    put("recording", "reversed", how(4) + npy("<f4", (8, 4, 3)))
    put("recording", "transposed", how(2) + npy("<u2", (3, 8, 4), "True"))
    put("recording", "alines", how(64) + npy("<u2", (12, 8)))
    put("recording", "alines_last", how(64 | 2) + npy("<u2", (8, 12)))
    put("recording", "odd", how(64) + npy("<u2", (11, 8)))
    put("recording", "scaled", how(128) + npy("<f4", (3, 4, 8)))
    put("recording", "nan", how(0) + npy("<f4", (3, 4, 8))[:-4] + b"\0\0\xc0\x7f")
    put("recording", "cut.npy", how(0) + npy("<u2", (3, 4, 8))[:-9])
    put("recording", "huge", how(0) + npy("<u2", (3, 4, 8)).replace(b"(3, 4", b"(99999999999999, 4"))
    for kind in range(14):
        put("recording", f"plain{kind}", how(0, kind) + bytes(range(256)))
    put("recording", "checked", how(8) + bytes(range(256)))

    def dataset(kind=0, packing=0, dims=(3, 4, 12), chunk=(2, 3, 5), rank=3):
        return bytes([1, rank - 2, kind, packing, *(b for d, c in zip(dims, chunk) for b in (d, c)),
                      *range(40, 56)])
    for kind in range(12):
        put("recording", f"h5-{kind}", how(1) + b"\0\0" + dataset(kind))
    put("recording", "h5-chunks", how(1) + b"\0\0" + dataset(0, 1))
    put("recording", "h5-packed", how(1 | 4) + b"\0\0" + dataset(1, 3, (12, 4, 3)))
    put("recording", "h5-alines", how(1 | 64) + b"\0\0" + dataset(3, 3, (12, 8), (5, 3), 2))
    put("recording", "h5-named", how(1 | 16) + b"\2\0" + dataset() * 3)
    put("recording", "h5-spectra", how(1) + b"\0\1" + dataset(3))
    put("recording", "h5-volume", how(1) + b"\0\1" + dataset(0))
    put("recording", "h5-unwritten", how(1) + b"\0\0" + dataset(3, 13))
    put("recording", "h5-far", how(1) + b"\0\0" + bytes([1, 1, 3, 15]) + bytes([0, 0, 1, 0, 0, 3]) * 3)


def octproz():
    geometry = ("[Virtual%20OCT%20System]\nbit_depth=12\nwidth=8\nheight=2\ndepth=1\n"
                "[main_window_settings]\nmain_active_system=Virtual OCT System\n")
    chain = "[processing]\nresampling=true\n" + "".join(
        f"resampling_c{i}={c}\n" for i, c in enumerate((.5, 6, -1, 2))) + (
        "dispersion_compensation=true\ndispersion_compensation_d2=-96.5\n"
        "dispersion_compensation_d3=-0.4\n")
    put("octproz", "whole", chain.encode() + geometry.encode() + b"\x1e" + bytes(range(64)))
    put("octproz", "bytes", geometry.replace("12", "8").encode() + chain.encode() + b"\x1e" + bytes(32))
    put("octproz", "wide", chain + geometry.replace("12", "24") + "\x1e" + "abcd" * 16)
    put("octproz", "turning", chain.replace("=6", "=-3") + geometry + "\x1e" + "ab" * 16)
    put("octproz", "other", chain + geometry.replace("OCT System\n", "Camera\n") + "\x1e" + "ab" * 16)
    put("octproz", "lines", "[]\n[%]\n[a\n=\n=b\nc=\n;d\n[processing]\nresampling_c0=nan\r\n\x1e")


def octview():
    import json
    whole = {"OCTview version": "1.0.0", "Data-type": "UINT16", "Processed": "False",
             "Frame-size-voxels": 32, "Spectrometer-bins": 8, "A-lines": 2, "A-line-repeat": 1,
             "B-lines": 2, "B-line-repeat": 1, "XY-ROI-mm": [1.2, .5], "Axial-voxel-size-mm": .0035,
             "Line-camera-trigger-rate-hz": 75900}
    samples = "\x1e" + "ab" * 32
    put("octview", "whole", json.dumps(whole) + samples)
    put("octview", "repeats", json.dumps(whole | {"A-lines": 1, "A-line-repeat": 2}) + samples)
    put("octview", "processed", json.dumps(whole | {"Data-type": "COMPLEX64"}) + samples)
    put("octview", "large", json.dumps(whole | {"A-lines": 1e300, "XY-ROI-mm": [-1]}) + samples)
    put("octview", "cut", json.dumps(whole)[:-9] + samples)
    put("octview", "other", '{"OCTview version": [[[[]]]]}' + samples)


def thorlabs():
    def file(name, more="", kind="Raw", z=6, x=4, n=2):
        return (f'<DataFile Type="{kind}" SizeZ="{z}" SizeX="{x}" BytesPerPixel="{n}"{more}>data\\'
                f'{name}.data</DataFile>')
    apo = ' ApoRegionStart0="0" ApoRegionEnd0="1" ScanRegionStart0="1" ScanRegionEnd0="4"'
    rest = ("<Instrument><RawDataIsSigned>True</RawDataIsSigned><BytesPerPixel>2</BytesPerPixel>"
            "<BinaryToElectronCountScaling>540</BinaryToElectronCountScaling></Instrument>"
            "<Acquisition><Timestamp>1700000000</Timestamp></Acquisition><Image><SizeReal><SizeX>1"
            "</SizeX></SizeReal></Image></Ocity>")

    def one(name, files, end=rest, contents=b"\1\2\3"):
        put("thorlabs", name, b"\1<Ocity><DataFiles>" + (files + "</DataFiles>" + end).encode()
            + b"\x1e" + contents)
    one("whole", file("Spectral0", apo) + file("Spectral1", apo))
    one("first", file("Spectral0", ' ApoRegionEnd0="4"') + file("Spectral1"))
    one("cameras", file("Spectral0", apo) + file("Spectral0_Cam1", apo))
    one("spectrum", file("Spectral0") + file("ApodizationSpectrum", "", "Real", 6, 1, 4)
        + file("Chirp", "", "Real", 6, 1, 4), rest, struct.pack("<6f", 0, 1, 2.5, 3, 4, 5))
    one("bytes", file("Spectral0", apo, n=1), rest.replace("True", "False"))
    one("words", file("Spectral0", apo, n=4))
    one("picture", file("Intensity", "", "Real"))
    one("regions", file("Spectral0", ' ScanRegionEnd0="9" ScanRegionStart1="2"'))
    one("huge", file("Spectral0", apo, z=4294967295, x=4294967295))
    one("few", file("Spectral0", apo, z=1) + file("Chirp", "", "Real", 1, 1, 4))
    one("gap", file("Spectral3", apo) + file("Spectral7", apo))
    one("cut", file("Spectral0", apo), rest[:-9])
    put("thorlabs", "entity", b'\1<!DOCTYPE a [<!ENTITY b "c">]><Ocity>&b;</Ocity>\x1e')
    put("thorlabs", "deep", b"\1" + b"<Ocity>" * 300 + b"\x1e")
    put("thorlabs", "archive", b"\0PK\3\4" + bytes(40))


def vortex():
    # name, rank, type, not far, value, (extent, chunk) of each axis, packed, how many, where
    def one(name, extents, dataset=0, kind=0, far=0, value=7, packed=0):
        axes = b"".join((struct.pack("<Q", e)[:5] if far else bytes([e])) + b"\0" for e in extents)
        put("vortex", name, bytes([dataset, 1, kind, far]) + struct.pack("<Q", value) + axes
            + bytes([packed, 3]) + bytes(range(20)))
    one("whole", (2, 2, 3, 6, 1))
    one("packed", (1, 2, 3, 6, 1), packed=1)
    one("channels", (1, 2, 3, 6, 2), dataset=3)
    one("which", (1, 2, 3, 6, 2))
    one("signed", (2, 1, 3, 6, 1), kind=2)
    one("bytes", (2, 1, 3, 6, 1), kind=4)
    one("empty", (0, 2, 3, 6, 1))
    one("far", (2, 2, 3, 6, 1), far=1)


def web():
    sep = b"\x1e"
    put("web_message", "all", b"\1" + sep.join([
        b'{"heard":1}', b'{"seen":1}', b'{"freeze":true}', b'{"freeze":true,"whole":false}',
        b'{"list":true,"of":"a"}', b'{"open":"a.h5"}', b'{"go":2}', b'{"line":3}',
        b'{"key":"Space"}', b'{"whole":true}', b'{"live":true}', b'{"key":"R"}', b'{"key":"T"}',
        b'{"pseudonym":"P-1","of":"","was":""}', b'{"key":"Escape"}', b'{"key":"N"}']))
    put("web_message", "look", b"\0" + sep.join([
        b'{"key":"R"}', b'{"open":"gone.h5"}', b'{"list":true}', b'{"open":"../a.h5"}']))
    put("web_message", "play", b"\1" + sep.join([
        b'{"open":"a.h5"}', b'{"heard":2}', b'{"pseudonym":"","of":"a.h5","was":""}',
        b'{"key":"Y"}', b'{"go":1e300}', b'{"line":-1}', b'{"key":"Left"}', b'{"open":"a.h5"}']))
    put("web_message", "wrong", b'\1{"seen":4e9}' + sep + b'\1{"go":1}' + sep + b"\2x" + sep + b"[]")
    request = lambda flags, *parts: bytes([flags]) + sep.join(parts)
    here, origin = b"127.0.0.1:8430", b"http://127.0.0.1:8430"
    for path in (b"/", b"/main.js", b"/metrics", b"/../tokens"):
        put("web_http", "get" + path.decode().replace("/", "-"), request(4, path, here))
    put("web_http", "names", request(0, b"/", b"OCTD.lab:8430", b"http://octd.lab:8430"))
    put("web_http", "six", request(4, b"/", b"[::1]:8430"))
    put("web_http", "other", request(0, b"/", b"evil.example:8430", b"http://evil.example:8430"))
    put("web_http", "enter", request(1, b"/enter", here, origin, b"", b"64", b"\2"))
    put("web_http", "wrong", request(1, b"/enter", here, origin, b"", b"64", b"0" * 64))
    put("web_http", "long", request(1, b"/enter", here, origin, b"", b"64", b"0" * 99))
    put("web_http", "upgrade", request(2, b"/", here, origin, b"a=b; \1"))
    put("web_http", "stranger", request(2, b"/", here, origin, b"octweb8430=" + b"0" * 64))


for kind in (lines, shm, control, view, image, ini, calibration, key, volume, pictures, devices, csv, nifti,
             recording, octproz, octview, thorlabs, vortex, web):
    kind()
