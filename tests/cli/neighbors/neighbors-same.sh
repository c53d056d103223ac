. "$TESTS/lib.sh"
# The same bytes: threads, instruction set, the base in pieces, queries in groups, a pipe.
a() { gnomon neighbors "$@" --quiet --json | grep -E 'query_groups' | sed 's/: [2-9][0-9]*,/: several,/'; }
a long.npy queries-32.npy -k 30 -o one.csv --threads 1
a long.npy queries-32.npy -k 30 -o two.csv --threads 2
GNOMON_ISA=portable a long.npy queries-32.npy -k 30 -o portable.csv
a long.npy queries-32.npy -k 30 -o pieces.csv --memory 65M
cmp one.csv two.csv && cmp one.csv portable.csv && cmp one.csv pieces.csv && echo same
a queries-32.npy long.npy -k 3 -o whole.csv
a queries-32.npy long.npy -k 3 -o groups.csv --memory 66M
cmp whole.csv groups.csv && echo same
a queries-32.npy long.npy --radius 9 --metric cosine -o whole.csv
a queries-32.npy long.npy --radius 9 --metric cosine -o groups.csv --memory 66M
cmp whole.csv groups.csv && echo same
a base.npy queries.npy -k 2 -o whole.csv
a - queries.npy -k 2 -o base-piped.csv < base.npy
a base.npy - -k 2 -o queries-piped.csv < queries.npy
cmp whole.csv base-piped.csv && cmp whole.csv queries-piped.csv && echo same
# a base that can't be read twice
cat queries-32.npy | try gnomon neighbors - long.npy -k 3 --memory 66M
