#!/usr/bin/env bash
# Builds the Python packages' wheels into dist/.
# gnomon: libgnomon and the command for any Linux with glibc 2.28 on, and pure Python, one file for all versions of
# Python 3. The compiler is that of PyPI's package ziglang (scripts/requirements-wheel.txt), which
# PYTHON, or a virtual environment made here, has.
# gnomon-cuda13: the plugin for NVIDIA GPUs alone, for the same systems, where CUDA 13's nvcc is there.
# WHEEL_CUDA=OFF leaves it out, as its compilation takes many minutes; ON fails where it can't be built.
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
for header in jansson.h jansson_config.h zlib.h zconf.h xxhash.h xxh3.h utf8proc.h Random123; do
    found=
    for folder in /usr/include /usr/include/*-linux-gnu; do
        [ -e "$folder/$header" ] && found=$folder/$header
    done
    if [ -n "$found" ]; then ln -s "$found" "$others/include/"; fi
done
for archive in libjansson.a libz.a libutf8proc.a; do
    found=$(find /usr/lib /usr/lib64 -name "$archive" 2>/dev/null | head -n 1)
    [ -n "$found" ] || { echo "wheel.sh: $archive is missing (Debian's libjansson-dev, zlib1g-dev, libutf8proc-dev)"; exit 1; }
    cp "$found" "$others/lib/"
    chmod u+w "$others/lib/$archive"
done
for name in jansson z utf8proc; do
    printf 'Name: %s\nDescription: %s\nVersion: 2\nCflags: -I%s\nLibs: -L%s -l%s\n' "$name" "$name" "$others/include" \
        "$others/lib" "$name" > "$others/$(case $name in z) echo zlib ;; utf8proc) echo libutf8proc ;; *) echo "$name" ;; esac).pc"
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
# The run path is that of the installed command, $ORIGIN/../lib, which is right in the wheel too. The one of a build would
# leave empty places, which the loader takes for the current folder, and auditwheel finds no library by it.
cmake -S . -B "$build/library" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_COMPILER="$build/cc" -DCMAKE_AR="$build/ar" \
    -DCMAKE_RANLIB="$build/ranlib" -DGNOMON_CUDA=OFF -DGNOMON_MPI=OFF -DGNOMON_WITH_HDF5=OFF -DGNOMON_WITH_LIBZIP=OFF -DGNOMON_WITH_ZSTD=OFF -DGNOMON_TESTS=OFF \
    -DGNOMON_WERROR=OFF -DRANDOM123_INCLUDE="$others/include" -DXXHASH_INCLUDE="$others/include" \
    -DCMAKE_C_FLAGS="-fno-sanitize=all -Wno-unused-command-line-argument" \
    -DCMAKE_SHARED_LINKER_FLAGS="-Wl,--version-script=$build/exports.map" -DCMAKE_SKIP_BUILD_RPATH=OFF \
    -DCMAKE_BUILD_WITH_INSTALL_RPATH=ON -DCMAKE_INSTALL_LIBDIR=lib >/dev/null
cmake --build "$build/library" --target gnomon gnomon_command

"$python" "$source/bindings/python/wheel.py" "$build/library" "$source/dist" manylinux_2_28_x86_64

# ---- the plugin ----

nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
missing=
if [ "${WHEEL_CUDA:-AUTO}" = OFF ]; then
    missing="WHEEL_CUDA is OFF"
elif ! "$nvcc" --version 2>/dev/null | grep -q 'release 13\.'; then
    missing="there is no nvcc of CUDA 13"
fi
if [ -n "$missing" ]; then
    echo "wheel.sh: no wheel of gnomon-cuda13: $missing"
    for old in "$source"/dist/gnomon_cuda13-*.whl; do
        if [ -e "$old" ]; then echo "wheel.sh: $old is of an earlier run: the library refuses its plugin if it does not fit"; fi
    done
    [ "${WHEEL_CUDA:-AUTO}" != ON ]
    exit
fi
unset PKG_CONFIG_LIBDIR # the objects are the system's compiler's, with its headers
cmake -S . -B "$build/cuda" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CUDA_COMPILER="$nvcc" -DGNOMON_CUDA=ON \
    -DGNOMON_TESTS=OFF -DGNOMON_WERROR=OFF >/dev/null
cmake --build "$build/cuda" --target gnomon_cuda_objects
# nvcc's host compiler is the system's. Its objects are linked for the older glibc: what they and the static C++
# library need of a newer one is in old_glibc.c, and the unwinder, which needs more of it, is that of the system where
# the plugin runs. The run path is where NVIDIA's packages lay cuBLAS and cuSOLVER beside this one.
"$build/cc" -O2 -fPIC -fno-sanitize=all -c bindings/python/cuda13/old_glibc.c -o "$build/old_glibc.o"
ninja -C "$build/cuda" -t cleandead >/dev/null # objects of sources that are gone
mapfile -t objects < <(find "$build/cuda/CMakeFiles/gnomon_cuda_objects.dir" -name '*.o' | sort)
toolkit=$(cd "$(dirname "$(realpath "$nvcc")")/../lib64" && pwd)
# shellcheck disable=SC2016 # the loader expands $ORIGIN
"$build/cc" -shared -o "$build/libgnomon_cuda.so" "${objects[@]}" "$build/old_glibc.o" \
    "$toolkit/libcudart_static.a" "$toolkit/libcudadevrt.a" "$(g++ -print-file-name=libstdc++.a)" \
    "$(g++ -print-file-name=libgcc_s.so.1)" -lrt -lpthread -ldl -lm -Wl,--version-script="$source/cmake/plugin.map" \
    -Wl,-z,defs -Wl,--as-needed '-Wl,-rpath,$ORIGIN/../nvidia/cu13/lib'
"$python" "$source/bindings/python/wheel.py" "$build/libgnomon_cuda.so" "$source/dist" manylinux_2_28_x86_64
