# A reader that has seen enough: data long enough to fill a pipe whose other end closes at once ends the
# command as it ends cat, by SIGPIPE, without a word.
through() { "$@" --quiet | head -c 10 > /dev/null; echo "exit ${PIPESTATUS[0]}"; }
gnomon convert long.npy - --output-format csv | head -n 1 > /dev/null
echo "exit ${PIPESTATUS[0]}"
through gnomon convert long.npy -
through gnomon project long.npy -k 20
through gnomon join points.npy --threshold 99999 --metric l2 -o - --output-format csv
through gnomon neighbors points.npy points.npy -k 99 -o - --output-format csv
through gnomon operator -k 300 -D 3000
(set -o pipefail; gnomon operator -k 300 -D 3000 --quiet | head -c 10 > /dev/null; echo "exit $?")
# what fits the pipe is written, whoever reads it
gnomon dim --points 9 --eps 0.5 | head -n 1 | wc -l
rm -f pipe; mkfifo pipe
(sleep 0.3; gnomon info --json > pipe; echo "exit $?" > code) & head -c 0 < pipe; wait; cat code
