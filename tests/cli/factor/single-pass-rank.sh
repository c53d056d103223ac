# rows that come from a pipe are counted at their end: a rank or columns beyond them are refused as those of a file are
. "$TESTS/lib.sh"
needs_svd
printf '1,2,3,4,5,6\n7,8,9,9,8,7\n6,5,4,3,2,1\n' > wide.csv
try gnomon svd wide.csv -k 5
cat wide.csv | try gnomon svd - --format csv -k 5
cat wide.csv | try gnomon svd - --format csv -k 5 --single-pass
cat wide.csv | try gnomon svd - --format csv -k 2 --single-pass
cat wide.csv | try gnomon svd - --format csv -k 2 --single-pass --oversample 2
cat wide.csv | try gnomon svd - --format csv -k 2 --single-pass --oversample 1 -o x.npz --quiet
