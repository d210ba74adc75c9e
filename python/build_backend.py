"""Builds the wheel of the package `octd` for pip (PEP 517), with nothing but Python's own
library: files are copied, nothing is compiled. The wheel notes this checkout, whose build/ has
liboctd.so."""
import base64, hashlib, pathlib, re, tarfile, zipfile

HERE = pathlib.Path(__file__).resolve().parent
# Debian's h5py does not tell pip that it is there, so what only parts of the package use is no
# requirement: pip install "./python[all]" brings it.
NEEDS, PARTS_NEED = ("numpy",), ("h5py", "pyzmq")
# By it napari, where it is installed, finds the reader of recordings.
ENTRY_POINTS = "[napari.manifest]\noctd = octd:napari.json\n"


def version():
    text = (HERE / "octd" / "__init__.py").read_text(encoding="utf-8")
    return re.search(r'^__version__ = "(.+)"$', text, re.M).group(1)


def metadata():
    lines = ["Metadata-Version: 2.1", "Name: octd", "Version: " + version(),
             "Summary: Reconstruction of OCT spectra, recordings as arrays, and a running octd",
             "Requires-Python: >=3.9"]
    lines += ["Requires-Dist: " + name for name in NEEDS] + ["Provides-Extra: all"]
    lines += [f"Requires-Dist: {name}; extra == 'all'" for name in PARTS_NEED]
    return "\n".join(lines) + "\n"


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    """`make install` calls it too: napari finds what a package says of itself in such a folder."""
    info = pathlib.Path(metadata_directory, f"octd-{version()}.dist-info")
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text(metadata())
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    return info.name


def write_wheel(folder, files):
    """files: {name in the wheel: bytes}."""
    info = f"octd-{version()}.dist-info"
    files = dict(files)
    files[info + "/METADATA"] = metadata().encode()
    files[info + "/entry_points.txt"] = ENTRY_POINTS.encode()
    files[info + "/WHEEL"] = (b"Wheel-Version: 1.0\nGenerator: octd\nRoot-Is-Purelib: true\n"
                              b"Tag: py3-none-any\n")
    record = ""
    for name, data in files.items():
        sum_ = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={sum_},{len(data)}\n"
    files[info + "/RECORD"] = (record + info + "/RECORD,,\n").encode()
    name = f"octd-{version()}-py3-none-any.whl"
    with zipfile.ZipFile(pathlib.Path(folder) / name, "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, data in files.items():
            wheel.writestr(path, data)
    return name


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    files = {f"octd/{path.name}": path.read_bytes() for path in sorted((HERE / "octd").iterdir())
             if path.suffix in (".py", ".json") or path.name == "py.typed"}
    files["octd/checkout.txt"] = (str(HERE.parent) + "\n").encode()
    return write_wheel(wheel_directory, files)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    return write_wheel(wheel_directory, {"octd.pth": (str(HERE) + "\n").encode()})


def build_sdist(sdist_directory, config_settings=None):
    name = f"octd-{version()}"
    with tarfile.open(pathlib.Path(sdist_directory) / (name + ".tar.gz"), "w:gz") as archive:
        for path in ("pyproject.toml", "build_backend.py", "octd"):
            archive.add(HERE / path, f"{name}/{path}",
                        filter=lambda item: None if "__pycache__" in item.name else item)
    return name + ".tar.gz"
