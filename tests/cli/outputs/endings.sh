# an ending that names no format is refused by every verb that writes data, before any work
. "$TESTS/lib.sh"
refused() {
    "$@" > out 2> err
    echo "$2 $3: exit $?, $(grep -c 'names no format that is written' err) line says so"
}
for ending in txt parquet pkl NPYX; do
    refused gnomon project small.npy -k 2 -o x.$ending
    refused gnomon convert small.npy x.$ending
    refused gnomon operator -k 2 -D 9 -o x.$ending
    refused gnomon neighbors base.npy queries.npy -k 2 -o x.$ending
    refused gnomon neighbors base.npy queries.npy -k 2 -o x.npy --distances x.$ending
    refused gnomon join base.npy --threshold 3 -o x.$ending
    refused gnomon join base.npy --threshold 3 --counts x.$ending
    refused gnomon join base.npy --threshold 3 --clusters x.$ending
    refused gnomon lstsq features.npy targets.npy -o x.$ending
    refused gnomon lstsq features.npy targets.npy --residual x.$ending
done
ls x.* 2> /dev/null
# a name without an ending is npy, and a format that is named needs none
try gnomon convert small.npy plain && gnomon info plain | sed -n 2p
try gnomon convert small.npy x.txt --output-format csv && gnomon info x.txt --format csv | sed -n 2p
mkdir some.folder && try gnomon convert small.npy some.folder/plain && try gnomon convert small.npy .hidden && ls .hidden
