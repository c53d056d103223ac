# a file four times --memory: the process stays within it
. "$TESTS/lib.sh"
[ -z "$SANITIZED" ] || { echo "sanitizers take memory of their own"; exit 77; }
truncate -s 416000000 big.raw
for kind in $kinds; do
    "$PYTHON" -c '
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True)
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
limit = 100 << 20
print(sys.argv[-1] + ": " + ("within the limit" if peak <= limit else f"{peak} bytes of {limit}"))' \
        gnomon project big.raw --shape 10400,10000 --dtype f4 -k 32 --memory 100M -o y.npy --quiet --operator $kind
done
rm big.raw
