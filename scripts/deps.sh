#!/usr/bin/env bash
# Looks for every tool, header and package of the groups named (all of them when none is).
# What is missing is installed when this runs as root on Debian; otherwise the command that
# would install it is printed and the script fails.
# usage: deps.sh [GROUP...]      the groups are in dependencies.txt
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
python=/usr/bin/python3
[ -x "$python" ] || python=python3

have() {
    local kind=${1%%:*} name=${1#*:}
    case $kind in
    command) command -v "$name" >/dev/null ;;
    header) echo "#include <$name>" | cc -E - >/dev/null 2>&1 ;;
    pc)
        local one
        for one in ${name//|/ }; do
            pkg-config --exists "$one" 2>/dev/null && return 0
        done
        return 1
        ;;
    python) "$python" -c "import importlib.util as u, sys; sys.exit(not u.find_spec('$name'))" 2>/dev/null ;;
    file) compgen -G "$name" >/dev/null ;;
    *)
        echo "deps.sh: dependencies.txt has an unknown kind '$kind'" >&2
        exit 2
        ;;
    esac
}

# Fills must and may with the packages of what is not there.
look() {
    must=()
    may=()
    local group what package
    while read -r group what package; do
        case $group in '' | '#'*) continue ;; esac
        if [ "${#groups[@]}" -gt 0 ] && ! printf '%s\n' "${groups[@]}" | grep -qxF "${group%\?}"; then
            continue
        fi
        have "$what" && continue
        case $group in
        *\?) may+=("$package") ;;
        *) must+=("$package") ;;
        esac
    done <"$here/dependencies.txt"
}

groups=("$@")
look
[ $((${#must[@]} + ${#may[@]})) -eq 0 ] && exit 0

if [ "$(id -u)" -eq 0 ] && [ -f /etc/debian_version ] && command -v apt-get >/dev/null; then
    echo "deps.sh: installing ${must[*]} ${may[*]}" >&2
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -q >&2 || true
    if [ "${#must[@]}" -gt 0 ]; then
        apt-get install -q -y --no-install-recommends "${must[@]}" >&2 || true
    fi
    # One by one: a package that is missing stops no other.
    for package in "${may[@]}"; do
        apt-get install -q -y --no-install-recommends "$package" >&2 ||
            echo "deps.sh: going on without $package" >&2
    done
    look
fi

if [ "${#must[@]}" -gt 0 ]; then
    echo "deps.sh: missing: ${must[*]}" >&2
    echo "On Debian this installs what is missing:" >&2
    echo "    apt-get install ${must[*]} ${may[*]}" >&2
    exit 1
fi
