"""Packs the Python package, libgnomon and the command into a wheel; or the plugin for NVIDIA GPUs into one of its own.

usage: wheel.py BUILD_FOLDER DIST_FOLDER PLATFORM          gnomon, of a build's folder
       wheel.py PLUGIN.so DIST_FOLDER PLATFORM             gnomon-cuda13, of the plugin
"""
import base64
import hashlib
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parents[1]
DATE = (1980, 1, 1, 0, 0, 0)  # the same bytes from the same files

METADATA = """Metadata-Version: 2.1
Name: gnomon
Version: {version}
Summary: Random projection, nearest neighbours, similarity joins and randomized factorisation
License: Apache-2.0
Requires-Python: >=3.10
Requires-Dist: numpy>=1.23
Requires-Dist: scipy-openblas32
Provides-Extra: sklearn
Requires-Dist: scikit-learn>=1.2; extra == "sklearn"
Provides-Extra: cuda13
Requires-Dist: gnomon-cuda13=={version}; extra == "cuda13"
Requires-Dist: nvidia-cublas>=13,<14; extra == "cuda13"
Requires-Dist: nvidia-cusolver>=12,<13; extra == "cuda13"
Description-Content-Type: text/markdown

{readme}"""

# The core and its plugins speak an interface that each version may change. No NVIDIA package is required: a system that
# has the CUDA toolkit needs none.
CUDA_METADATA = """Metadata-Version: 2.1
Name: gnomon-cuda13
Version: {version}
Summary: The plugin of gnomon for NVIDIA GPUs, of CUDA 13
License: Apache-2.0
Requires-Python: >=3.10
Requires-Dist: gnomon=={version}
Description-Content-Type: text/markdown

{readme}"""

WHEEL = """Wheel-Version: 1.0
Generator: gnomon
Root-Is-Purelib: false
Tag: py3-none-{platform}
"""

ENTRY = """[console_scripts]
gnomon = gnomon._command:main
"""


def stripped(path, work):
    """Without symbols for debuggers."""
    out = work / path.name
    subprocess.run(["strip", "-o", out, path], check=True)
    return out.read_bytes()


def notices(info, *patterns):
    """The licences of what is compiled in, by the names of Debian's packages."""
    files = {}
    for pattern in patterns:
        for notice in sorted(Path("/usr/share/doc").glob(f"{pattern}/copyright")):
            files[f"{info}/licenses/{notice.parent.name}"] = notice.read_bytes()
    return files


def pack(files, info, wheel):
    """Writes the wheel of these files, by name, in one step; those of other versions are removed once it is there."""
    record = []
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record.append(f"{name},sha256={digest},{len(data)}\n")
    files[f"{info}/RECORD"] = ("".join(record) + f"{info}/RECORD,,\n").encode()
    wheel.parent.mkdir(exist_ok=True)
    part = wheel.with_suffix(".part")
    with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name, DATE)
            entry.compress_type = zipfile.ZIP_DEFLATED
            executable = name.startswith("gnomon/bin/") or name.endswith((".so", ".so.0"))
            entry.external_attr = (0o100755 if executable else 0o100644) << 16
            archive.writestr(entry, data)
    os.replace(part, wheel)
    for other in wheel.parent.glob(wheel.name.split("-")[0] + "-*.whl"):
        if other != wheel:
            other.unlink()
    print(f"{wheel} {wheel.stat().st_size / 1e6:.1f} MB")


def package(build, info, version):
    """The files of gnomon."""
    work = build / "stripped"
    work.mkdir(exist_ok=True)
    files = {}
    for path in sorted((HERE / "gnomon").rglob("*")):
        if path.is_file() and path.suffix in (".py", ".typed"):
            files[str(path.relative_to(HERE))] = path.read_bytes()
    files["gnomon/lib/libgnomon.so.0"] = stripped((build / "libgnomon.so.0").resolve(), work)
    files["gnomon/bin/gnomon"] = stripped(build / "bin" / "gnomon", work)
    files[f"{info}/METADATA"] = METADATA.format(version=version, readme=(HERE / "README.md").read_text()).encode()
    files[f"{info}/entry_points.txt"] = ENTRY.encode()
    files.update(notices(info, "libjansson-dev", "zlib1g-dev", "libutf8proc-dev", "libxxhash-dev", "librandom123-dev"))
    return files


def plugin(library, info, version):
    """The files of gnomon-cuda13."""
    work = library.parent / "stripped"
    work.mkdir(exist_ok=True)
    readme = (HERE / "cuda13" / "README.md").read_text()
    return {
        "gnomon_cuda13/__init__.py": b'"""Holds the plugin for NVIDIA GPUs, which the package gnomon finds."""\n',
        "gnomon_cuda13/libgnomon_cuda.so": stripped(library, work),
        f"{info}/METADATA": CUDA_METADATA.format(version=version, readme=readme).encode(),
        **notices(info, "librandom123-dev", "libstdc++-*-dev"),
    }


def main():
    if len(sys.argv) != 4:
        raise SystemExit(__doc__)
    source, dist, platform = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    base = (SOURCE / "include" / "gnomon" / "base.h").read_text()
    version = re.search(r'GNOMON_VERSION_STRING "([^"]+)"', base)[1]
    name, gather = ("gnomon", package) if source.is_dir() else ("gnomon_cuda13", plugin)
    info = f"{name}-{version}.dist-info"
    files = gather(source, info, version)
    files[f"{info}/WHEEL"] = WHEEL.format(platform=platform).encode()
    files[f"{info}/LICENSE"] = (SOURCE / "LICENSE").read_bytes()
    pack(files, info, dist / f"{name}-{version}-py3-none-{platform}.whl")


if __name__ == "__main__":
    main()
