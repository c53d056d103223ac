# long enough to fill a pipe whose other end closes at once
gnomon convert long.npy - --output-format csv | head -n 1 > /dev/null
echo "exit ${PIPESTATUS[0]}"
gnomon convert long.npy - | head -c 10 > /dev/null
echo "exit ${PIPESTATUS[0]}"
