#!/usr/bin/env bash
# Each public header compiles alone, as strict C11, C17 and C++17, and twice over.
# usage: headers.sh INCLUDE_FOLDER
set -euo pipefail
cd "$1"
for header in gnomon.h gnomon/*.h; do
    text=$(printf '#include <%s>\n#include <%s>\nint main(void) { return 0; }\n' "$header" "$header")
    for standard in c11 c17; do
        cc -std=$standard -pedantic -Wall -Wextra -Werror -I. -fsyntax-only -x c - <<<"$text"
    done
    c++ -std=c++17 -pedantic -Wall -Wextra -Werror -I. -fsyntax-only -x c++ - <<<"$text"
done
