# sizes that no machine has are told in TiB, not as an option to give
. "$TESTS/lib.sh"
printf '1 1:1 500000000000000000:1\n' > wide.svm
try gnomon distortion wide.svm wide.svm
try gnomon neighbors wide.svm wide.svm -k 1
try gnomon neighbors wide.svm wide.svm -k 1 --recall 0.9
try gnomon join wide.svm --threshold 1
try gnomon join wide.svm --threshold 1 --recall 0.9
try gnomon svd wide.svm -k 1
