#!/usr/bin/env bash
# Fails when a retired word (docs/glossary.md has the terms that took their places) is back in what users read: public headers,
# help texts, manual pages, README, pages. usage: words.sh SOURCE COMMAND
set -euo pipefail
source=$1 command=$2
# words, as Perl's regular expressions, and what they are called now
words=(
    '\b[Ss]iev(e|es|ing|ed)\b=filter'
    '\b[Ss]pray(s|ed|ing)?\b=scatter'
    '\bin vain\b=false positives'
    '\b[Tt]olerant\b=tolerance'
    '\b(the|a) ground\b(?![ -]truth)=centre'
    '\bgnomon_lsh_effort\w*|\bGNOMON_LSH_EFFORT_INIT\b=gnomon_lsh_search_params'
    '\bgnomon_lsh_promise\w*|\bGNOMON_LSH_PROMISE_INIT\b=gnomon_lsh_guarantee'
)
text=$(mktemp -d)
trap 'rm -rf "$text"' EXIT
for verb in project svd hosvd lstsq neighbors join index convert info operator dim distortion; do
    "$command" help "$verb" > "$text/help-$verb"
done
"$command" help > "$text/help"
found=0
for entry in "${words[@]}"; do
    if grep -rnP -- "${entry%%=*}" "$source/include" "$source/README.md" "$source/docs/reference" "$source/docs/internals" \
        "$source/docs/man" "$source/docs/glossary.md" "$text"; then
        echo "retired: the word is '${entry#*=}' (docs/glossary.md)"
        found=1
    fi
done
exit "$found"
