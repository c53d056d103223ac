#!/usr/bin/env bash
# Projects real images to 64 dimensions and shows what that did to norms and distances.
# usage: demo.sh [BUILD]
set -euo pipefail
build=${1:-build}
here=$(cd "$(dirname "$0")/.." && pwd)
gnomon=$build/bin/gnomon
out=$build/demo
mkdir -p "$out"

images=/usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz
what="the 60,000 Fashion-MNIST images, 28 x 28 pixels each"
k=64
if [ ! -e "$images" ]; then
    images=$here/data/digits.npy
    what="1797 handwritten digits, 8 x 8 pixels each (Fashion-MNIST, Debian's package
dataset-fashion-mnist, is not here)"
    k=16
fi

bold=$(tput bold 2>/dev/null || true) plain=$(tput sgr0 2>/dev/null || true)
say() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }
run() {
    printf '$ gnomon %s\n' "$*"
    "$gnomon" "$@"
}

say "1. The points: $what"
run info "$images"

say "2. How many dimensions would keep every distance within 50 %?"
points=$("$gnomon" info "$images" --json | sed -n 's/^  "points": \([0-9]*\),$/\1/p')
run dim --points "$points" --eps 0.5
echo "That is for whatever data, and for the worst of all pairs. Most pairs fare far better: see below."

say "3. To $k dimensions, by random signs and by a matrix of few nonzeros"
for kind in rademacher very-sparse; do
    run project "$images" -k $k --operator $kind --seed 7 -o "$out/$kind.npy"
done

say "4. What that did to norms and distances"
for kind in rademacher very-sparse; do
    run distortion "$images" "$out/$kind.npy" --eps 0.3 --pairs 200000 --histogram --plot "$out/$kind.svg"
done

say "5. The same bytes with one thread, and with plain C instead of vector instructions"
"$gnomon" project "$images" -k $k --operator very-sparse --seed 7 --threads 1 --quiet -o "$out/one-thread.npy"
GNOMON_ISA=portable "$gnomon" project "$images" -k $k --operator very-sparse --seed 7 --quiet -o "$out/portable.npy"
cmp "$out/very-sparse.npy" "$out/one-thread.npy"
cmp "$out/very-sparse.npy" "$out/portable.npy"
echo "yes: very-sparse.npy, one-thread.npy and portable.npy are the same, byte for byte"
rm "$out/one-thread.npy" "$out/portable.npy"

if "$gnomon" info --json | grep -q '"svd": true'; then
    say "6. What a matrix of low rank keeps of the images themselves"
    run svd "$images" -k $((k > 50 ? 50 : k)) --measure -o "$out/factors.npz" --plot "$out/spectrum.svg"

    say "7. The images as a tensor: its Tucker decomposition"
    run hosvd "$images" --tolerance 0.3 --sequential -o "$out/parts.npz"
fi

say "Where things are"
echo "  $out/rademacher.npy, $out/very-sparse.npy     the sketches (numpy.load reads them)"
echo "  $out/rademacher.svg, $out/very-sparse.svg     the histograms as pictures"
[ ! -e "$out/parts.npz" ] || echo "  $out/parts.npz                                core, factor_0, factor_1 and so on"
[ ! -e "$out/factors.npz" ] || echo "  $out/factors.npz, $out/spectrum.svg     U, S and Vt, and the singular values"
