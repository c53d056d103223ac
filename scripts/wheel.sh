#!/usr/bin/env bash
# Builds the Python package's wheel into dist/: libgnomon and the command for any Linux with glibc 2.28 on, and pure Python,
# one file for all versions of Python 3. The compiler is that of PyPI's package ziglang (scripts/requirements-wheel.txt), which
# PYTHON, or a virtual environment made here, has.
# usage: wheel.sh [BUILD_FOLDER]
set -euo pipefail
cd "$(dirname "$0")/.."
source=$PWD
mkdir -p "${1:-build-wheel}"
build=$(cd "${1:-build-wheel}" && pwd)
python=${PYTHON:-}
if [ -z "$python" ]; then
    [ -x "$build/venv/bin/python" ] || python3 -m venv "$build/venv"
    python=$build/venv/bin/python
    "$python" -m pip install -q -r scripts/requirements-wheel.txt
fi

# Other projects' headers and archives alone, so that this machine's C library stays out of it.
others=$build/others
rm -rf "$others"
mkdir -p "$others/include" "$others/lib"
for header in jansson.h jansson_config.h zlib.h zconf.h xxhash.h xxh3.h Random123; do
    found=
    for folder in /usr/include /usr/include/*-linux-gnu; do
        [ -e "$folder/$header" ] && found=$folder/$header
    done
    if [ -n "$found" ]; then ln -s "$found" "$others/include/"; fi
done
for archive in libjansson.a libz.a; do
    found=$(find /usr/lib /usr/lib64 -name "$archive" 2>/dev/null | head -n 1)
    [ -n "$found" ] || { echo "wheel.sh: $archive is missing (Debian's libjansson-dev, zlib1g-dev)"; exit 1; }
    cp "$found" "$others/lib/"
    chmod u+w "$others/lib/$archive"
done
for name in jansson z; do
    printf 'Name: %s\nDescription: %s\nVersion: 2\nCflags: -I%s\nLibs: -L%s -l%s\n' "$name" "$name" "$others/include" \
        "$others/lib" "$name" > "$others/$([ "$name" = z ] && echo zlib || echo "$name").pc"
done

printf '#!/bin/sh\nexec "%s" -m ziglang cc -target x86_64-linux-gnu.2.28 "$@"\n' "$python" > "$build/cc"
printf '#!/bin/sh\nexec "%s" -m ziglang ar "$@"\n' "$python" > "$build/ar"
printf '#!/bin/sh\nexec "%s" -m ziglang ranlib "$@"\n' "$python" > "$build/ranlib"
chmod +x "$build/cc" "$build/ar" "$build/ranlib"
export PKG_CONFIG_LIBDIR=$others

# Debian's archives are for programs: in a shared library their code can reach no variable of another one. jansson
# looks at stdin to name it in errors about files, which libgnomon never has it read. The version script keeps
# everything else of theirs inside.
objcopy --redefine-sym stdin=gnomon_no_stdin "$others/lib/libjansson.a"
echo '__attribute__((visibility("hidden"))) void *gnomon_no_stdin;' > "$build/no_stdin.c"
"$build/cc" -fPIC -O2 -c "$build/no_stdin.c" -o "$build/no_stdin.o"
ar q "$others/lib/libjansson.a" "$build/no_stdin.o"
ranlib "$others/lib/libjansson.a"
echo '{ global: gnomon_*; local: *; };' > "$build/exports.map"
cmake -S . -B "$build/library" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_COMPILER="$build/cc" -DCMAKE_AR="$build/ar" \
    -DCMAKE_RANLIB="$build/ranlib" -DGNOMON_CUDA=OFF -DGNOMON_WITH_HDF5=OFF -DGNOMON_WITH_LIBZIP=OFF -DGNOMON_TESTS=OFF \
    -DGNOMON_WERROR=OFF -DRANDOM123_INCLUDE="$others/include" -DXXHASH_INCLUDE="$others/include" \
    -DCMAKE_C_FLAGS="-fno-sanitize=all -Wno-unused-command-line-argument" \
    -DCMAKE_SHARED_LINKER_FLAGS="-Wl,--version-script=$build/exports.map" -DCMAKE_SKIP_BUILD_RPATH=ON >/dev/null
cmake --build "$build/library" --target gnomon gnomon_command

"$python" "$source/bindings/python/wheel.py" "$build/library" "$source/dist" manylinux_2_28_x86_64
