. "$TESTS/lib.sh"
try gnomon dim --points 256 --eps 0.2 --beta 0.9
try gnomon dim --points 60000 --eps 0.1 --delta 1e-6
