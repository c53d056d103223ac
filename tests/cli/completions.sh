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
if command -v fish > /dev/null; then
    for line in 'gnomon dis' 'gnomon project --den' 'gnomon project x.npy --operator sr' 'gnomon dim --po' 'gnomon help op'; do
        echo "$line: $(fish --no-config -c "source '$folder/gnomon.fish'; complete -C'$line'" | cut -f1 | tr '\n' ' ')" >> fish
    done
    diff fish - <<'END'
gnomon dis: distortion 
gnomon project --den: --density 
gnomon project x.npy --operator sr: srht 
gnomon dim --po: --points 
gnomon help op: operator 
END
fi
if command -v zsh > /dev/null; then zsh -f -n "$folder/_gnomon"; fi
