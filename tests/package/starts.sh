#!/usr/bin/env bash
# A start of the command loads no library but these: what only some jobs need is opened by them.
# usage: starts.sh LIBRARY COMMAND
set -euo pipefail
known='linux-vdso|ld-linux|libgnomon|libc\.|libm\.|libdl\.|libpthread|libgcc_s|libjansson|libz\.|libzip|libbz2|liblzma|libzstd|libutf8proc|libcrypto|libasan|libubsan|libtsan|libstdc\+\+|librt\.|libresolv'
for file; do
    needed=$(readelf -d "$file" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
    [ -n "$needed" ] || { echo "$file needs nothing"; exit 1; }
    if strangers=$(grep -vE "^($known)" <<<"$needed"); then
        echo "$file loads at each start: $strangers"
        exit 1
    fi
done
if grep -E 'libhdf5|libopenblas|libcurl' <<<"$(ldd "$2")"; then exit 1; fi
