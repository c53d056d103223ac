# ids and distances in the element types that a format has: ids are whole numbers or refused
. "$TESTS/lib.sh"
for ending in npy ivecs idx safetensors; do
    gnomon neighbors small.npy small.npy -k 2 -o ids.$ending --distances distances.$ending --quiet 2> said ||
        gnomon neighbors small.npy small.npy -k 2 -o ids.$ending --quiet
    cat said
    gnomon info ids.$ending | sed -n '/^format/p;/^dtype/p'
    gnomon convert ids.$ending $ending.csv --quiet && cmp npy.csv $ending.csv
    gnomon join small.npy --threshold 1000 -o pairs.$ending --quiet
    gnomon info pairs.$ending | sed -n '/^dtype/p'
    gnomon convert pairs.$ending $ending-pairs.csv --quiet && cmp npy-pairs.csv $ending-pairs.csv
done
for ending in fvecs fbin u8bin; do
    try gnomon join small.npy --threshold 1000 -o pairs.$ending
    try gnomon neighbors small.npy small.npy -k 2 -o ids.$ending
done
for ending in fvecs fbin npy; do
    gnomon neighbors small.npy small.npy -k 2 -o ids.npy --distances distances.$ending --quiet
    gnomon info distances.$ending | sed -n '/^dtype/p'
done
