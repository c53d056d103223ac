# the completions, as far as each shell that is here can be asked
folder=$TESTS/../../cli/completions
. "$folder/gnomon.bash"
ask() {
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
    _gnomon 2> /dev/null
    echo "bash: $*: ${COMPREPLY[*]}"
}
ask gnomon dis
ask gnomon project --den
ask gnomon project x.npy --operator sr
ask gnomon project x.npy --operator = kr
ask gnomon dim --p
ask gnomon convert --output-format h
ask gnomon help op
ask gnomon project --seed 1
ask gnomon index b
ask gnomon index build --fa
ask gnomon index build x.npy --family mi
ask gnomon index query x.lsh --coa
if command -v fish > /dev/null; then
    for line in 'gnomon dis' 'gnomon project --den' 'gnomon project x.npy --operator sr' 'gnomon dim --po' 'gnomon help op' 'gnomon index com' 'gnomon index build --fam' 'gnomon index info --fo'; do
        echo "$line: $(fish --no-config -c "source '$folder/gnomon.fish'; complete -C'$line'" | cut -f1 | tr '\n' ' ')" >> fish
    done
    diff fish - <<'END'
gnomon dis: distortion 
gnomon project --den: --density 
gnomon project x.npy --operator sr: srht 
gnomon dim --po: --points 
gnomon help op: operator 
gnomon index com: compact 
gnomon index build --fam: --family 
gnomon index info --fo: 
END
fi
if command -v zsh > /dev/null; then zsh -f -n "$folder/_gnomon"; fi
