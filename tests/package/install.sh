#!/usr/bin/env bash
# Installs a build, moves the tree elsewhere, and builds and runs a program against it:
# through the CMake package (shared and static) and through pkg-config.
# usage: install.sh BUILD_FOLDER SCRATCH_FOLDER VERSION
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$1 scratch=$2 version=$3
cc=${CC:-cc}
rm -rf "$scratch"
mkdir -p "$scratch"

cmake --install "$build" --prefix "$scratch/first" >/dev/null
mv "$scratch/first" "$scratch/moved" # an installed tree may be moved
prefix=$scratch/moved
libdir=$(dirname "$(find "$prefix" -name libgnomon.so)")

fail() {
    echo "install: $*"
    exit 1
}

# runs PROGRAM: it prints the version and the result of a call
runs() {
    local said
    said=$(LD_LIBRARY_PATH=$libdir "$@")
    [ "$said" = "gnomon $version: NaN at (1, 2)" ] || fail "$1 said '$said'"
}

for wanted in "$libdir/libgnomon.so.$version" "$libdir/libgnomon.a" "$prefix/include/gnomon.h"; do
    [ -e "$wanted" ] || fail "$wanted is missing"
done
readelf -d "$libdir/libgnomon.so" | grep -qF "[libgnomon.so.${version%%.*}]" ||
    fail "the shared library's name for the loader is not libgnomon.so.${version%%.*}"
if grep -rn --include='*.cmake' --include='*.pc' -e "$scratch/first" -e "$build" "$prefix"; then
    fail "the installed files name the folder they were built or first put in"
fi

if grep -rniE --include='*.cmake' --include='*.pc' 'hdf5' "$prefix"; then
    fail "a program that links the static library is asked for HDF5, which is opened at run time"
fi

cmake -S "$here/consumer" -B "$scratch/consumer" -DCMAKE_PREFIX_PATH="$prefix" >/dev/null
cmake --build "$scratch/consumer" >/dev/null
runs "$scratch/consumer/with_shared"
runs "$scratch/consumer/with_static"

export PKG_CONFIG_PATH=$libdir/pkgconfig
[ "$(pkg-config --modversion gnomon)" = "$version" ] || fail "pkg-config knows another version"
read -r -a flags <<<"$(pkg-config --cflags --libs gnomon)"
"$cc" "$here/consumer/main.c" -o "$scratch/by_pkg_config" "${flags[@]}"
runs "$scratch/by_pkg_config"
read -r -a flags <<<"$(pkg-config --static --cflags --libs gnomon)"
"$cc" "$here/consumer/main.c" -o "$scratch/by_pkg_config_static" "${flags[@]/-lgnomon/-l:libgnomon.a}"
runs "$scratch/by_pkg_config_static"
for program in consumer/with_static by_pkg_config_static; do
    if ldd "$scratch/$program" | grep -q libgnomon; then fail "$program is not static"; fi
done

# The command finds the library of its own tree without help.
if [ -x "$prefix/bin/gnomon" ]; then
    "$prefix/bin/gnomon" --version | grep -qF "$version" || fail "gnomon --version"
fi
