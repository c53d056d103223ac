# what is a header: names, not a line of delimiters or of bytes that no text holds
. "$TESTS/lib.sh"
printf 'x,y\n1,2\n3,4\n' > names.csv
printf ',x,y\n0,1,2\n1,3,4\n' > index.csv
printf '"",5,6\n0,1,2\n' > unnamed.csv
printf ',,\n1,2,3\n' > commas.csv
printf ' , ,\n1,2,3\n' > blanks.csv
printf '"","",""\n1,2,3\n' > quotes.csv
printf '\t\t\n1\t2\t3\n' > tabs.tsv
printf '\0\0\0\0\n1\n2\n' > zeros.csv
printf '\0,\0\n1,2\n2,3\n' > zeros-and-commas.csv
printf 'x,\0\n1,2\n2,3\n' > name-and-zero.csv
for file in names.csv index.csv unnamed.csv commas.csv blanks.csv quotes.csv tabs.tsv zeros.csv zeros-and-commas.csv name-and-zero.csv; do
    try gnomon convert $file - --output-format csv
done
try gnomon convert commas.csv - --output-format csv --header
