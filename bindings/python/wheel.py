"""Packs the Python package, libgnomon and the command into a wheel.

usage: wheel.py BUILD_FOLDER DIST_FOLDER PLATFORM
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


def main():
    if len(sys.argv) != 4:
        raise SystemExit(__doc__)
    build, dist, platform = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    base = (SOURCE / "include" / "gnomon" / "base.h").read_text()
    version = re.search(r'GNOMON_VERSION_STRING "([^"]+)"', base)[1]
    info = f"gnomon-{version}.dist-info"
    work = build / "stripped"
    work.mkdir(exist_ok=True)
    files = {}
    for path in sorted((HERE / "gnomon").rglob("*")):
        if path.is_file() and path.suffix in (".py", ".typed"):
            files[str(path.relative_to(HERE))] = path.read_bytes()
    files["gnomon/lib/libgnomon.so.0"] = stripped((build / "libgnomon.so.0").resolve(), work)
    files["gnomon/bin/gnomon"] = stripped(build / "bin" / "gnomon", work)
    files[f"{info}/METADATA"] = METADATA.format(version=version, readme=(HERE / "README.md").read_text()).encode()
    files[f"{info}/WHEEL"] = WHEEL.format(platform=platform).encode()
    files[f"{info}/entry_points.txt"] = ENTRY.encode()
    files[f"{info}/LICENSE"] = (SOURCE / "LICENSE").read_bytes()
    for package in ("libjansson-dev", "zlib1g-dev", "libxxhash-dev", "librandom123-dev"):  # what is compiled in
        notice = Path("/usr/share/doc") / package / "copyright"
        if notice.exists():
            files[f"{info}/licenses/{package}"] = notice.read_bytes()
    record = []
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record.append(f"{name},sha256={digest},{len(data)}\n")
    files[f"{info}/RECORD"] = ("".join(record) + f"{info}/RECORD,,\n").encode()
    dist.mkdir(exist_ok=True)
    wheel = dist / f"gnomon-{version}-py3-none-{platform}.whl"
    part = wheel.with_suffix(".part")
    with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name, DATE)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if name.startswith(("gnomon/bin/", "gnomon/lib/")) else 0o100644) << 16
            archive.writestr(entry, data)
    os.replace(part, wheel)
    print(f"{wheel} {wheel.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
