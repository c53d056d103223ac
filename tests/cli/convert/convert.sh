. "$TESTS/lib.sh"
for format in npy csv tsv fvecs fbin mtx; do
    gnomon convert points.npy a.$format --quiet --output-format $format && gnomon convert a.$format b.npy --output-dtype f4 --quiet --format $format
    cmp b.npy points.npy && echo "$format: the same"
done
gnomon convert points.npy a.npy --order F --quiet && cmp a.npy points-fortran.npy && echo fortran
gnomon convert points.npy a.raw --quiet && cmp a.raw points.raw && echo raw
gnomon convert long.npy a.npy --quiet --memory 65M && cmp a.npy long.npy && echo chunks
gnomon convert points-u1.npy a.bvecs --quiet && gnomon convert a.bvecs b.npy --quiet && cmp b.npy points-u1.npy && echo bvecs
gnomon convert points.idx.gz b.npy --quiet && cmp b.npy points-u1.npy && echo idx
gnomon convert small.npy - --output-format csv --digits 2
gnomon convert small.csv - --output-format tsv
try gnomon convert points.npy a.npy --output-dtype u1
try gnomon convert points.npy a.pdf --output-format pdf | sed 's,must be one of.*,,'
try gnomon convert small.npy b.npy --json | grep -vE '"(isa|threads|seconds)"'
