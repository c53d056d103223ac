# Normal forms, case folding and punctuation of Unicode; documents that differ by these alone.
. "$TESTS/lib.sh"
needs utf8proc
cat > lines.txt <<'END'
Der Straßenname ist Café Größe, fünfzig
DER STRASSENNAME IST CAFÉ GRÖSSE, FÜNFZIG
Der Straßenname ist Café Größe — fünfzig
ｆｕｌｌ ｗｉｄｔｈ ｌｅｔｔｅｒｓ and ﬁne ligatures
full width letters and fine ligatures
no accents in this one at all
No Accents In This One At All
END
for options in "" "--lower" "--normalize nfc" "--fold-case" "--normalize nfc --fold-case" "--normalize nfkc" \
    "--normalize nfkc --fold-case --punctuation drop-all"; do
    echo "$options: $(gnomon dedup lines.txt $options --ids - --quiet | tail -n +2 | cut -f 1 | tr '\n' ' ')"
done
gnomon dedup lines.txt --normalize nfkc --fold-case --sign a.sig --quiet
gnomon dedup lines.txt --normalize nfkc --sign b.sig --quiet
try gnomon dedup a.sig --merge --ids - --quiet
try gnomon dedup a.sig b.sig --merge --ids -
try gnomon dedup a.sig --merge --normalize nfc --ids -
try gnomon dedup lines.txt --lower --fold-case --ids -
try gnomon dedup lines.txt --normalize nfd --ids -
try gnomon dedup lines.txt --exact --normalize nfc --ids -
gnomon info --json | grep -c '"unicode": "1'
