# joins of sparse rows, with themselves and with others, stopped again and again and resumed: the
# bytes of one that was never stopped
. "$TESTS/lib.sh"
make_rows 900 7 > p.svm
make_rows 950 5 > q.svm
resumed() { # KIB OPTIONS: so much may be written at first
    local limit=$1 stops=0
    shift
    gnomon join "$@" -o want.csv --counts want-counts.csv --quiet
    until (ulimit -f "$limit"; trap '' XFSZ; gnomon join "$@" -o got.csv --counts counts.csv --checkpoint state --quiet 2> why); do
        [ $stops -gt 9 ] && { cat why; break; }
        [ "$($PYTHON -c 'import json; print(json.load(open("state"))["rows_done"] > 0)')" = True ] && stops=$((stops + 1))
        limit=$((limit + 2500))
    done
    [ $stops -gt 0 ] || echo "never stopped within rows"
    cmp got.csv want.csv && cmp counts.csv want-counts.csv && echo "$*: $(wc -l < want.csv) lines, the same"
}
resumed 1700 p.svm --metric l2 --threshold 26
resumed 1700 p.svm q.svm --metric cosine --threshold 0.72
resumed 1700 p.svm q.svm --metric ip --threshold 150
resumed 1700 p.svm --metric l1 --threshold 108
resumed 1700 p.svm q.svm --metric weighted-jaccard --threshold 0.88
resumed 1700 p.svm --metric jaccard --threshold 0.86
ls state* 2> /dev/null || echo "no checkpoint left"
