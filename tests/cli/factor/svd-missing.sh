# What a machine without OpenBLAS says: here one that can't be loaded stands in its way.
. "$TESTS/lib.sh"
mkdir lib && : > lib/libopenblas.so.0
export LD_LIBRARY_PATH=$PWD/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
gnomon svd small.npy -k 2 -o f.npz 2>&1 | sed "s|$PWD|.|g"
echo "exit ${PIPESTATUS[0]}"
ls f.npz 2> /dev/null
gnomon hosvd video.npy --ranks 2,2,2 2>&1 | cut -d: -f1-2
gnomon info | sed -n "s|$PWD|.|g; /^svd/p"
gnomon info --json | grep '"svd"'
gnomon project small.npy -k 2 -o y.npy --quiet && echo "projects all the same"
