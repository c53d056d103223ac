# two names of one option: either does, both are refused; what is told is the name that was given
. "$TESTS/lib.sh"
printf '0,0\n3,4\n0,1\n3,5\n9,9\n' > five.csv
for name in radius threshold; do
    gnomon neighbors five.csv five.csv --$name 1.5 -o $name.csv --quiet
    gnomon join five.csv --$name 1.5 -o pairs-$name.csv --quiet
done
cmp radius.csv threshold.csv && cmp pairs-radius.csv pairs-threshold.csv && cat pairs-radius.csv
try gnomon neighbors five.csv five.csv --radius 1 --threshold 1
try gnomon join five.csv -t 1 --radius 1
try gnomon join five.csv --radius 1 -t1
try gnomon join five.csv --radius x
try gnomon join five.csv --radius=-1
try gnomon neighbors five.csv five.csv --threshold -1
printf '1 1:1 2:1 3:1\n1 1:1 2:1 3:1 4:1\n1 7:1 8:1\n' > sets.svm
gnomon index build sets.svm --metric jaccard --bands 3 --rows 2 -o bands.lsh --quiet
gnomon index build sets.svm --metric jaccard --tables 3 --functions 2 -o tables.lsh --quiet
cmp bands.lsh tables.lsh && echo the same index
try gnomon index build sets.svm --metric jaccard --bands 3 --tables 3 --rows 2 -o no.lsh
try gnomon index build sets.svm --metric jaccard --bands 0 --rows 2 -o no.lsh
try gnomon index query bands.lsh sets.svm -k 1 --bands 99
try gnomon index query bands.lsh sets.svm -k 1 --tables 99
try gnomon index build five.csv -o no.lsh --metric cosine --tables 2 --functions 3 --threshold 0.8
try gnomon index build five.csv -o no.lsh --recall 0.9 -k 1 --threshold 0.8
try gnomon neighbors five.csv five.csv -k 1 --threshold 0.8
try gnomon join five.csv --radius 0.8 --similarity 0.5
