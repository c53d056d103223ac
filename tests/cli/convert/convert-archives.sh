. "$TESTS/lib.sh"
needs npz hdf5
for format in npz hdf5; do
    gnomon convert points.npy a.$format --quiet --output-format $format && gnomon convert a.$format b.npy --quiet
    cmp b.npy points.npy && echo "$format: the same"
done
gnomon convert points.npy a.npz:x --quiet --no-compress && gnomon convert a.npz:x b.npy --quiet && cmp b.npy points.npy && echo member
gnomon convert points.npy a.h5:/some/x --quiet && gnomon convert a.h5:/some/x b.npy --quiet && cmp b.npy points.npy && echo dataset
