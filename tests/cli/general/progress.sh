# the bar: only when asked for or on a terminal, and gone at the end
gnomon convert long.npy a.npy --quiet --progress always 2> bar
tail -c 4 bar | od -An -c | tr -d ' \n'; echo
grep -c 'converting \[' bar
gnomon convert long.npy a.npy --quiet --progress never 2> bar; wc -c < bar
gnomon convert long.npy a.npy --quiet 2> bar; wc -c < bar
gnomon convert small.npy a.npy 2>&1 | cat
