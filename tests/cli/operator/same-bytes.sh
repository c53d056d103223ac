# one file, byte for byte: any number of threads, instruction set, memory limit, layout
. "$TESTS/lib.sh"
for kind in $kinds; do
    make() { gnomon project "$1" -k 24 --operator $kind --seed 7 --quiet -o "$2" "${@:3}"; }
    make long.npy one.npy --threads 1
    make long.npy two.npy --threads 2 && cmp one.npy two.npy
    make long.npy three.npy --threads 3 --memory 65M && cmp one.npy three.npy
    GNOMON_ISA=portable make long.npy portable.npy --threads 2 && cmp one.npy portable.npy
    make long-fortran.npy fortran.npy && cmp one.npy fortran.npy
    make long-fortran.npy fortran.npy --memory 65M && cmp one.npy fortran.npy
    make points.npy p.npy
    make points-fortran.npy q.npy && cmp p.npy q.npy
    gnomon project - -k 24 --operator $kind --seed 7 --quiet < points.npy | cmp p.npy
    GNOMON_ISA=portable make points.npy q.npy --threads 1 && cmp p.npy q.npy
    make points.raw q.npy --shape '?,784' --dtype f4 && cmp p.npy q.npy
    gnomon operator --operator $kind -k 24 -D 32 --seed 7 -o s.npy
    GNOMON_ISA=portable gnomon operator --operator $kind -k 24 -D 32 --seed 7 --threads 1 | cmp s.npy
    echo "$kind: the same"
done
GNOMON_ISA=none gnomon info 2> error
echo "exit $?"
