# what can be done with a file beside reading it in order: going to a point, reading columns; as numbers and in words
. "$TESTS/lib.sh"
for file in base.npy words.csv sparse.mtx points.idx.gz; do
    echo "$file: $(gnomon info $file --json | grep -E '"(seek|columns|sparse)":' | tr -d ' \n')"
    gnomon info $file | grep access
done
echo "-: $(gnomon info - --json < base.npy | grep -E '"(seek|columns|sparse)":' | tr -d ' \n')"
gnomon info - < base.npy | grep access
