#!/usr/bin/env bash
# Fails when a retired word or phrase (docs/glossary.md has the terms that took their places) is back in what users read: public headers,
# help texts, manual pages, README, pages; and of them the project's own in the sources. usage: words.sh SOURCE COMMAND
set -euo pipefail
source=$1 command=$2
# words, as Perl's regular expressions, and what they are called now
# shellcheck disable=SC2016  # backquotes are the text's own
words=(
    '\b[Ss]iev(e|es|ing|ed)\b=filter'
    '\b[Ss]pray(s|ed|ing)?\b=scatter'
    '\bin vain\b=false positives'
    '\b[Tt]olerant\b=tolerance'
    '\b(the|a) ground\b(?![ -]truth)=centre'
    '\b[Ss]ettl(e|es|ed|ing)\b=converge, verify or determine'
    '\b[Ss]hingles?\b=n-gram'
    '\bbroad (bucket|one|function)s?\b=coarse'
    '(?<!`)\beffort\b(?!`)=search parameters'
    '\b(the|a|its|that|this|same) promise\b=guarantee'
    '\b(random|fresh) probes?\b|\bprobe_power\b=test vector'
    '--(lambda|rank-tolerance|shingle|allowed|verified|broad-probes|probe-power)\b=--damp, --rcond, --ngram, --filter, --rerank, --coarse-probes, --test-power'
    '\bassume spread\b|GNOMON_ASSUME_SPREAD=incoherent'
    '\bgnomon_precision\b|\bGNOMON_FP(16|32)\b=gnomon_dtype'
    '\bworth the way\b=when the gain exceeds the transfer'
    '\bWanted are\b=computes'
    '\ba factor a mode\b=one factor per mode'
    '\b[Pp]resses [A-Z] to\b=compresses'
    '\bhang(s)? on\b=depend on'
    '\bgo(es)? with -=require'
    '\bworth (having|the way|it)\b=what it gains, in numbers'
    '\blook(s|ing)? into\b=probe or search'
    '\b[Ss]ettings of (yours|one.s own)\b=given settings'
    '\btake another (file|format)\b=use another'
    '\bWanted (are|is)\b|\bas (it|they) (lies?|stands?)\b|\bgone back in\b|\bfound out\b|\bno matter\b=computes, in place, seek, detected'
    '\b(is|are|may|it) pass(ed|es)? over\b|\bwhat came of\b|\bcan(.t)? be had\b|\bquick(er|est)\b=ignored, result, available, faster'
    '\b[Hh]ostile files?\b|\bfiles are hostile\b=malformed, not trusted'
    '\bgnomon_lsh_effort\w*|\bGNOMON_LSH_EFFORT_INIT\b=gnomon_lsh_search_params'
    '\bgnomon_lsh_promise\w*|\bGNOMON_LSH_PROMISE_INIT\b=gnomon_lsh_guarantee'
)
text=$(mktemp -d)
trap 'rm -rf "$text"' EXIT
for verb in project svd transform hosvd lstsq neighbors join dedup index convert info operator dim distortion; do
    "$command" help "$verb" > "$text/help-$verb"
done
for verb in build tune query add remove compact info check; do
    "$command" index "$verb" --help > "$text/help-index-$verb"
done
"$command" help > "$text/help"
found=0
for entry in "${words[@]}"; do
    if grep -rnP -- "${entry%%=*}" "$source/include" "$source/README.md" "$source/docs/reference" "$source/docs/internals" \
        "$source/docs/tutorial" "$source/docs/extending" "$source/docs/man" "$source/docs/glossary.md" "$source/bench/README.md" \
        "$source/CONTRIBUTING.md" "$text"; then
        echo "retired: the word is '${entry#*=}' (docs/glossary.md)"
        found=1
    fi
done
# identifiers and comments of the sources: terms of the project alone, which no plain sentence needs
if grep -rnP '\b(sieves?|sieved|spray\w*|shingles?|settle[sd]?|tolerant|probe_power|gnomon_precision|GNOMON_FP(16|32)|widen\w*|\w+_(widen|broad)|broad_\w*|look_seconds)\b|\bin vain\b' \
    "$source/src" "$source/cli" --include='*.[ch]' --include='*.cu' --include='*.cuh' --include='*.inc'; then
    echo "retired: see docs/glossary.md"
    found=1
fi
exit "$found"
