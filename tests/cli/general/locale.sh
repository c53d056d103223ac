# a locale with a decimal comma changes nothing
command -v localedef > /dev/null && [ -e /usr/share/i18n/locales/de_DE ] || { echo "no locale sources"; exit 77; }
localedef -i de_DE -f UTF-8 ./de_DE.UTF-8 2> /dev/null
export LOCPATH=$PWD
# a library of others (p11-kit, by way of HDF5) never frees what it keeps of LOCPATH
export ASAN_OPTIONS=detect_leaks=0
gnomon project small.csv -k 2 --operator very-sparse --density 0.5 -o a.csv --quiet
gnomon operator --operator very-sparse --density 0.3 -k 2 -D 5 --json | grep density > a.json
LC_ALL=de_DE.UTF-8 gnomon project small.csv -k 2 --operator very-sparse --density 0.5 -o b.csv --quiet
LC_ALL=de_DE.UTF-8 gnomon operator --operator very-sparse --density 0.3 -k 2 -D 5 --json | grep density > b.json
[ "$(LC_ALL=de_DE.UTF-8 printf %.1f 0,5 2> /dev/null)" = 0,5 ] && echo "the locale has a comma"
cmp a.csv b.csv && cmp a.json b.json && echo "the same"
