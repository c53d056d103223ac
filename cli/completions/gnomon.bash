# bash completion for gnomon; made by generate.py

_gnomon() {
    local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} verb=${COMP_WORDS[1]}
    local options= words=
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        mapfile -t COMPREPLY < <(compgen -W "project dim operator distortion neighbors index join dedup svd transform lstsq hosvd convert info help --help --version" -- "$current")
        return
    fi
    if [ "$verb" = index ]; then
        if [ "$COMP_CWORD" -eq 2 ]; then
            mapfile -t COMPREPLY < <(compgen -W "build tune query add remove compact info check --help" -- "$current")
            return
        fi
        verb="index ${COMP_WORDS[2]}"
    fi
    # --name=value comes as three words
    if [ "$current" = = ]; then
        current=
    elif [ "$before" = = ]; then
        before=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    case $verb in
    project)
        options="--operator -k --seed --density --nonzeros --blocks --wiring --zeta --width --inner --precision --scaling --save-operator --load-operator --eps --delta --beta --bound --points --assume --model -o --output --output-format --output-dtype --format --shape --dtype --delimiter --header --no-header --features --zero-based --one-based --large --allow-nonfinite --device --threads --memory --comm --json --progress --quiet -h --help"
        case $before in
        --operator) words="auto gaussian rademacher achlioptas very-sparse sjlt srht blockperm-sjlt block kronecker" ;;
        -k) words="NONE" ;;
        --seed) words="NONE" ;;
        --density) words="NONE" ;;
        --nonzeros) words="NONE" ;;
        --blocks) words="NONE" ;;
        --wiring) words="NONE" ;;
        --zeta) words="NONE" ;;
        --width) words="NONE" ;;
        --inner) words="gaussian rademacher achlioptas very-sparse sjlt" ;;
        --precision) words="fp32 fp16" ;;
        --scaling) words="isometric none" ;;
        --save-operator) words=FILES ;;
        --load-operator) words=FILES ;;
        --eps) words="NONE" ;;
        --delta) words="NONE" ;;
        --beta) words="NONE" ;;
        --bound) words="achlioptas gaussian-exact dasgupta-gupta" ;;
        --points) words="NONE" ;;
        --assume) words="nothing incoherent" ;;
        --model) words=FILES ;;
        -o | --output) words=FILES ;;
        --output-format) words="npy npz csv tsv fvecs bvecs ivecs fbin u8bin i8bin f16bin idx hdf5 safetensors mtx svmlight raw" ;;
        --output-dtype) words="f2 f4 f8 i1 u1 i2 u2 i4 u4 i8 u8" ;;
        --format) words="npy npz csv tsv fvecs bvecs ivecs fbin u8bin i8bin f16bin idx hdf5 safetensors mtx svmlight raw" ;;
        --shape) words="NONE" ;;
        --dtype) words="f2 f4 f8 i1 u1 i2 u2 i4 u4 i8 u8" ;;
        --delimiter) words="tab comma semicolon space" ;;
        --features) words="NONE" ;;
        --device) words="auto cpu cuda" ;;
        --threads) words="NONE" ;;
        --memory) words="NONE" ;;
        --comm) words="mpi mpich openmpi" ;;
        --progress) words="auto always never" ;;
        esac
        ;;
    dim)
        options="--points --eps --delta --beta --device --threads --memory --comm --json --progress --quiet -h --help"
        case $before in
        --points) words="NONE" ;;
        --eps) words="NONE" ;;
        --delta) words="NONE" ;;
        --beta) words="NONE" ;;
        --device) words="auto cpu cuda" ;;
        --threads) words="NONE" ;;
        --memory) words="NONE" ;;
        --comm) words="mpi mpich openmpi" ;;
        --progress) words="auto always never" ;;
        esac
        ;;
    operator)
        options="--operator -k --seed --density --nonzeros --blocks --wiring --zeta --width --inner --precision --scaling --save-operator --load-operator -D --rows --cols --sparse --describe -o --output --output-format --output-dtype --device --threads --memory --comm --json --progress --quiet -h --help"
        case $before in
        --operator) words="gaussian rademacher achlioptas very-sparse sjlt srht blockperm-sjlt block kronecker" ;;
        -k) words="NONE" ;;
        --seed) words="NONE" ;;
        --density) words="NONE" ;;
        --nonzeros) words="NONE" ;;
        --blocks) words="NONE" ;;
        --wiring) words="NONE" ;;
        --zeta) words="NONE" ;;
        --width) words="NONE" ;;
        --inner) words="gaussian rademacher achlioptas very-sparse sjlt" ;;
        --precision) words="fp32 fp16" ;;
        --scaling) words="isometric none" ;;
        --save-operator) words=FILES ;;
        --load-operator) words=FILES ;;
        -D) words="NONE" ;;
        --rows) words="NONE" ;;
        --cols) words="NONE" ;;
        -o | --output) words=FILES ;;
        --output-format) words="npy npz csv tsv fvecs bvecs ivecs fbin u8bin i8bin f16bin idx hdf5 safetensors mtx svmlight raw" ;;
        --output-dtype) words="f2 f4 f8 i1 u1 i2 u2 i4 u4 i8 u8" ;;
        --device) words="auto cpu cuda" ;;
        --threads) words="NONE" ;;
        --memory) words="NONE" ;;
        --comm) words="mpi mpich openmpi" ;;
        --progress) words="auto always never" ;;
        esac
        ;;
    distortion)
        options="--eps --pairs --seed --max-outside --plot --histogram --format --shape --dtype --delimiter --header --no-header --features --zero-based --one-based --device --threads --memory --comm --json --progress --quiet -h --help"
        case $before in
        --eps) words="NONE" ;;
        --pairs) words="NONE" ;;
        --seed) words="NONE" ;;
        --max-outside) words="NONE" ;;
        --plot) words=FILES ;;
        --format) words="npy npz csv tsv fvecs bvecs ivecs fbin u8bin i8bin f16bin idx hdf5 safetensors mtx svmlight raw" ;;
        --shape) words="NONE" ;;
        --dtype) words="f2 f4 f8 i1 u1 i2 u2 i4 u4 i8 u8" ;;
        --delimiter) words="tab comma semicolon space" ;;
        --features) words="NONE" ;;
        --device) words="auto cpu cuda" ;;
        --threads) words="NONE" ;;
        --memory) words="NONE" ;;
        --comm) words="mpi mpich openmpi" ;;
        --progress) words="auto always never" ;;
        esac
        ;;
    neighbors)
        options="-k --radius --threshold --metric --exact --recall --index --seed --exclude-self --filter -o --output --output-format --distances --names --query-names --ground-truth --format --shape --dtype --delimiter --header --no-header --features --zero-based --one-based --device --threads --memory --comm --json --progress --quiet -h --help"
        case $before in
        -k) words="NONE" ;;
        --radius | --threshold) words="NONE" ;;
        --metric) words="l2 cosine ip hamming jaccard l1 weighted-jaccard euclidean dot inner_product manhattan ruzicka" ;;
        --recall) words="NONE" ;;
        --index) words=FILES ;;
        --seed) words="NONE" ;;
        --filter) words=FILES ;;
        -o | --output) words=FILES ;;
        --output-format) words="npy npz csv tsv fvecs bvecs ivecs fbin u8bin i8bin f16bin idx hdf5 safetensors mtx svmlight raw" ;;
        --distances) words=FILES ;;
        --names) words=FILES ;;
        --query-names) words=FILES ;;
        --ground-truth) words=FILES ;;
        --format) words="npy npz csv tsv fvecs bvecs ivecs fbin u8bin i8bin f16bin idx hdf5 safetensors mtx svmlight raw" ;;
        --shape) words="NONE" ;;
        --dtype) words="f2 f4 f8 i1 u1 i2 u2 i4 u4 i8 u8" ;;
        --delimiter) words="tab comma semicolon space" ;;
        --features) words="NONE" ;;
        --device) words="auto cpu cuda" ;;
        --threads) words="NONE" ;;
        --memory) words="NONE" ;;
        --comm) words="mpi mpich openmpi" ;;
        --progress) words="auto always never" ;;
        esac
        ;;
    'index build')
        options="-o --output --metric --recall -k --radius --threshold --queries --slower --seed --family --tables --bands --functions --rows --fine --width --sides --centres --codes --probes --rerank --rabitq --format --shape --dtype --delimiter --header --no-header --features --zero-based --one-based --device --threads --memory --comm --json --progress --quiet -h --help"
        case $before in
        -o | --output) words=FILES ;;
        --metric) words="l2 cosine ip hamming jaccard l1 weighted-jaccard euclidean dot inner_product manhattan ruzicka" ;;
        --recall) words="NONE" ;;
        -k) words="NONE" ;;
        --radius | --threshold) words="NONE" ;;
        --queries) words=FILES ;;
        --seed) words="NONE" ;;
        --family) words="p-stable p-stable-l1 simhash cross-polytope bit-sampling minhash icws k-means spherical-k-means" ;;
        --tables | --bands) words="NONE" ;;
        --functions | --rows) words="NONE" ;;
        --fine) words="NONE" ;;
        --width) words="NONE" ;;
        --sides) words="NONE" ;;
        --centres) words="NONE" ;;
        --codes) words="NONE" ;;
        --probes) words="NONE" ;;
        --rerank) words="NONE" ;;
        --rabitq) words="NONE" ;;
        --format) words="npy npz csv tsv fvecs bvecs ivecs fbin u8bin i8bin f16bin idx hdf5 safetensors mtx svmlight raw" ;;
        --shape) words="NONE" ;;
        --dtype) words="f2 f4 f8 i1 u1 i2 u2 i4 u4 i8 u8" ;;
        --delimiter) words="tab comma semicolon space" ;;
        --features) words="NONE" ;;
        --device) words="auto cpu cuda" ;;
        --threads) words="NONE" ;;
        --memory) words="NONE" ;;
        --comm) words="mpi mpich openmpi" ;;
        --progress) words="auto always never" ;;
        esac
        ;;
    'index tune')
        options="--metric --recall -k --radius --threshold --queries --slower --seed -o --output --format --shape --dtype --delimiter --header --no-header --features --zero-based --one-based --device --threads --memory --comm --json --progress --quiet -h --help"
        case $before in
        --metric) words="l2 cosine ip hamming jaccard l1 weighted-jaccard euclidean dot inner_product manhattan ruzicka" ;;
        --recall) words="NONE" ;;
        -k) words="NONE" ;;
        --radius | --threshold) words="NONE" ;;
        --queries) words=FILES ;;
        --seed) words="NONE" ;;
        -o | --output) words=FILES ;;
        --format) words="npy npz csv tsv fvecs bvecs ivecs fbin u8bin i8bin f16bin idx hdf5 safetensors mtx svmlight raw" ;;
        --shape) words="NONE" ;;
        --dtype) words="f2 f4 f8 i1 u1 i2 u2 i4 u4 i8 u8" ;;
        --delimiter) words="tab comma semicolon space" ;;
        --features) words="NONE" ;;
        --device) words="auto cpu cuda" ;;
        --threads) words="NONE" ;;
        --memory) words="NONE" ;;
        --comm) words="mpi mpich openmpi" ;;
        --progress) words="auto always never" ;;
        esac
        ;;
    'index query')
        options="-k --radius --threshold --exclude-self --tables --bands --probes --coarse-probes --candidates --rerank --recall -o --output --output-format --distances --names --query-names --ground-truth --format --shape --dtype --delimiter --header --no-header --features --zero-based --one-based --device --threads --memory --comm --json --progress --quiet -h --help"
        case $before in
        -k) words="NONE" ;;
        --radius | --threshold) words="NONE" ;;
        --tables | --bands) words="NONE" ;;
        --probes) words="NONE" ;;
        --coarse-probes) words="NONE" ;;
        --candidates) words="NONE" ;;
        --rerank) words="NONE" ;;
        --recall) words="NONE" ;;
        -o | --output) words=FILES ;;
        --output-format) words="npy npz csv tsv fvecs bvecs ivecs fbin u8bin i8bin f16bin idx hdf5 safetensors mtx svmlight raw" ;;
        --distances) words=FILES ;;
        --names) words=FILES ;;
        --query-names) words=FILES ;;
        --ground-truth) words=FILES ;;
        --format) words="npy npz csv tsv fvecs bvecs ivecs fbin u8bin i8bin f16bin idx hdf5 safetensors mtx svmlight raw" ;;
        --shape) words="NONE" ;;
        --dtype) words="f2 f4 f8 i1 u1 i2 u2 i4 u4 i8 u8" ;;
        --delimiter) words="tab comma semicolon space" ;;
        --features) words="NONE" ;;
        --device) words="auto cpu cuda" ;;
        --threads) words="NONE" ;;
        --memory) words="NONE" ;;
        --comm) words="mpi mpich openmpi" ;;
        --progress) words="auto always never" ;;
        esac
        ;;
    'index add')
        options="-o --output --format --shape --dtype --delimiter --header --no-header --features --zero-based --one-based --device --threads --memory --comm --json --progress --quiet -h --help"
        case $before in
        -o | --output) words=FILES ;;
        --format) words="npy npz csv tsv fvecs bvecs ivecs fbin u8bin i8bin f16bin idx hdf5 safetensors mtx svmlight raw" ;;
        --shape) words="NONE" ;;
        --dtype) words="f2 f4 f8 i1 u1 i2 u2 i4 u4 i8 u8" ;;
        --delimiter) words="tab comma semicolon space" ;;
        --features) words="NONE" ;;
        --device) words="auto cpu cuda" ;;
        --threads) words="NONE" ;;
        --memory) words="NONE" ;;
        --comm) words="mpi mpich openmpi" ;;
        --progress) words="auto always never" ;;
        esac
        ;;
    'index remove')
        options="-o --output --format --shape --dtype --delimiter --header --no-header --features --zero-based --one-based --device --threads --memory --comm --json --progress --quiet -h --help"
        case $before in
        -o | --output) words=FILES ;;
        --format) words="npy npz csv tsv fvecs bvecs ivecs fbin u8bin i8bin f16bin idx hdf5 safetensors mtx svmlight raw" ;;
        --shape) words="NONE" ;;
        --dtype) words="f2 f4 f8 i1 u1 i2 u2 i4 u4 i8 u8" ;;
        --delimiter) words="tab comma semicolon space" ;;
        --features) words="NONE" ;;
        --device) words="auto cpu cuda" ;;
        --threads) words="NONE" ;;
        --memory) words="NONE" ;;
        --comm) words="mpi mpich openmpi" ;;
        --progress) words="auto always never" ;;
        esac
        ;;
    'index compact')
        options="-o --output --device --threads --memory --comm --json --progress --quiet -h --help"
        case $before in
        -o | --output) words=FILES ;;
        --device) words="auto cpu cuda" ;;
        --threads) words="NONE" ;;
        --memory) words="NONE" ;;
        --comm) words="mpi mpich openmpi" ;;
        --progress) words="auto always never" ;;
        esac
        ;;
    'index info')
        options="--device --threads --memory --comm --json --progress --quiet -h --help"
        case $before in
        --device) words="auto cpu cuda" ;;
        --threads) words="NONE" ;;
        --memory) words="NONE" ;;
        --comm) words="mpi mpich openmpi" ;;
        --progress) words="auto always never" ;;
        esac
        ;;
    'index check')
        options="--device --threads --memory --comm --json --progress --quiet -h --help"
        case $before in
        --device) words="auto cpu cuda" ;;
        --threads) words="NONE" ;;
        --memory) words="NONE" ;;
        --comm) words="mpi mpich openmpi" ;;
        --progress) words="auto always never" ;;
        esac
        ;;
    join)
        options="-t --threshold --radius --similarity --metric --top --max-pairs --from-row --recall --method --seed --text --ngram --char-ngram -o --output --output-format --distances --values --names --q-names --count --counts --clusters --checkpoint --format --shape --dtype --delimiter --header --no-header --features --zero-based --one-based --device --threads --memory --comm --json --progress --quiet -h --help"
        case $before in
        -t | --threshold | --radius) words="NONE" ;;
        --similarity) words="NONE" ;;
        --metric) words="l2 cosine ip hamming jaccard l1 weighted-jaccard euclidean dot inner_product manhattan ruzicka" ;;
        --top) words="NONE" ;;
        --max-pairs) words="NONE" ;;
        --from-row) words="NONE" ;;
        --recall) words="NONE" ;;
        --method) words="NONE" ;;
        --seed) words="NONE" ;;
        --text) words="NONE" ;;
        --ngram) words="NONE" ;;
        --char-ngram) words="NONE" ;;
        -o | --output) words=FILES ;;
        --output-format) words="npy npz csv tsv fvecs bvecs ivecs fbin u8bin i8bin f16bin idx hdf5 safetensors mtx svmlight raw" ;;
        --distances) words=FILES ;;
        --values) words="distance similarity" ;;
        --names) words=FILES ;;
        --q-names) words=FILES ;;
        --counts) words=FILES ;;
        --clusters) words=FILES ;;
        --checkpoint) words=FILES ;;
        --format) words="npy npz csv tsv fvecs bvecs ivecs fbin u8bin i8bin f16bin idx hdf5 safetensors mtx svmlight raw" ;;
        --shape) words="NONE" ;;
        --dtype) words="f2 f4 f8 i1 u1 i2 u2 i4 u4 i8 u8" ;;
        --delimiter) words="tab comma semicolon space" ;;
        --features) words="NONE" ;;
        --device) words="auto cpu cuda" ;;
        --threads) words="NONE" ;;
        --memory) words="NONE" ;;
        --comm) words="mpi mpich openmpi" ;;
        --progress) words="auto always never" ;;
        esac
        ;;
    dedup)
        options="--text --field --id --skip-bad --max-document --sign --merge --against --similarity --ngram --char-ngram --weighted --containment --lower --fold-case --normalize --punctuation --exact --parts --min-part --recall --bands --rows --seed --unverified --bucket --work --checkpoint -o --output --keep --ids --pairs --clusters --device --threads --memory --comm --json --progress --quiet -h --help"
        case $before in
        --text) words="NONE" ;;
        --field) words="NONE" ;;
        --id) words="NONE" ;;
        --max-document) words="NONE" ;;
        --sign) words=FILES ;;
        --against) words=FILES ;;
        --similarity) words="NONE" ;;
        --ngram) words="NONE" ;;
        --char-ngram) words="NONE" ;;
        --normalize) words="NONE" ;;
        --punctuation) words="NONE" ;;
        --parts) words="NONE" ;;
        --min-part) words="NONE" ;;
        --recall) words="NONE" ;;
        --bands) words="NONE" ;;
        --rows) words="NONE" ;;
        --seed) words="NONE" ;;
        --bucket) words="NONE" ;;
        --work) words="NONE" ;;
        --checkpoint) words=FILES ;;
        -o | --output) words="NONE" ;;
        --keep) words="NONE" ;;
        --ids) words=FILES ;;
        --pairs) words=FILES ;;
        --clusters) words=FILES ;;
        --device) words="auto cpu cuda" ;;
        --threads) words="NONE" ;;
        --memory) words="NONE" ;;
        --comm) words="mpi mpich openmpi" ;;
        --progress) words="auto always never" ;;
        esac
        ;;
    svd)
        options="-k --rank --tolerance --center --standardize --single-pass --measure --power --oversample --block --test-vectors --test-power --operator --seed --density --nonzeros -o --output --output-dtype --plot --format --shape --dtype --delimiter --header --no-header --features --zero-based --one-based --device --threads --memory --comm --json --progress --quiet -h --help"
        case $before in
        -k | --rank) words="NONE" ;;
        --tolerance) words="NONE" ;;
        --power) words="NONE" ;;
        --oversample) words="NONE" ;;
        --block) words="NONE" ;;
        --test-vectors) words="NONE" ;;
        --test-power) words="NONE" ;;
        --operator) words="gaussian rademacher achlioptas very-sparse sjlt srht blockperm-sjlt block kronecker" ;;
        --seed) words="NONE" ;;
        --density) words="NONE" ;;
        --nonzeros) words="NONE" ;;
        -o | --output) words=FILES ;;
        --output-dtype) words="f2 f4 f8 i1 u1 i2 u2 i4 u4 i8 u8" ;;
        --plot) words=FILES ;;
        --format) words="npy npz csv tsv fvecs bvecs ivecs fbin u8bin i8bin f16bin idx hdf5 safetensors mtx svmlight raw" ;;
        --shape) words="NONE" ;;
        --dtype) words="f2 f4 f8 i1 u1 i2 u2 i4 u4 i8 u8" ;;
        --delimiter) words="tab comma semicolon space" ;;
        --features) words="NONE" ;;
        --device) words="auto cpu cuda" ;;
        --threads) words="NONE" ;;
        --memory) words="NONE" ;;
        --comm) words="mpi mpich openmpi" ;;
        --progress) words="auto always never" ;;
        esac
        ;;
    transform)
        options="--whiten --inverse -o --output --output-format --output-dtype --large --format --shape --dtype --delimiter --header --no-header --features --zero-based --one-based --device --threads --memory --comm --json --progress --quiet -h --help"
        case $before in
        -o | --output) words=FILES ;;
        --output-format) words="npy npz csv tsv fvecs bvecs ivecs fbin u8bin i8bin f16bin idx hdf5 safetensors mtx svmlight raw" ;;
        --output-dtype) words="f2 f4 f8 i1 u1 i2 u2 i4 u4 i8 u8" ;;
        --format) words="npy npz csv tsv fvecs bvecs ivecs fbin u8bin i8bin f16bin idx hdf5 safetensors mtx svmlight raw" ;;
        --shape) words="NONE" ;;
        --dtype) words="f2 f4 f8 i1 u1 i2 u2 i4 u4 i8 u8" ;;
        --delimiter) words="tab comma semicolon space" ;;
        --features) words="NONE" ;;
        --device) words="auto cpu cuda" ;;
        --threads) words="NONE" ;;
        --memory) words="NONE" ;;
        --comm) words="mpi mpich openmpi" ;;
        --progress) words="auto always never" ;;
        esac
        ;;
    lstsq)
        options="--damp --rcond --tolerance --iterations --test-vectors --operator --seed --density --nonzeros -k --sketch-size -o --output --residual --output-format --output-dtype --format --shape --dtype --delimiter --header --no-header --features --zero-based --one-based --device --threads --memory --comm --json --progress --quiet -h --help"
        case $before in
        --damp) words="NONE" ;;
        --rcond) words="NONE" ;;
        --tolerance) words="NONE" ;;
        --iterations) words="NONE" ;;
        --test-vectors) words="NONE" ;;
        --operator) words="gaussian rademacher achlioptas very-sparse sjlt srht blockperm-sjlt block kronecker" ;;
        --seed) words="NONE" ;;
        --density) words="NONE" ;;
        --nonzeros) words="NONE" ;;
        -k | --sketch-size) words="NONE" ;;
        -o | --output) words=FILES ;;
        --residual) words=FILES ;;
        --output-format) words="npy npz csv tsv fvecs bvecs ivecs fbin u8bin i8bin f16bin idx hdf5 safetensors mtx svmlight raw" ;;
        --output-dtype) words="f2 f4 f8 i1 u1 i2 u2 i4 u4 i8 u8" ;;
        --format) words="npy npz csv tsv fvecs bvecs ivecs fbin u8bin i8bin f16bin idx hdf5 safetensors mtx svmlight raw" ;;
        --shape) words="NONE" ;;
        --dtype) words="f2 f4 f8 i1 u1 i2 u2 i4 u4 i8 u8" ;;
        --delimiter) words="tab comma semicolon space" ;;
        --features) words="NONE" ;;
        --device) words="auto cpu cuda" ;;
        --threads) words="NONE" ;;
        --memory) words="NONE" ;;
        --comm) words="mpi mpich openmpi" ;;
        --progress) words="auto always never" ;;
        esac
        ;;
    hosvd)
        options="--ranks --tolerance --sequential --measure --power --oversample --operator --seed --density --nonzeros -o --output --output-dtype --format --shape --dtype --delimiter --header --no-header --features --zero-based --one-based --device --threads --memory --comm --json --progress --quiet -h --help"
        case $before in
        --ranks) words="NONE" ;;
        --tolerance) words="NONE" ;;
        --power) words="NONE" ;;
        --oversample) words="NONE" ;;
        --operator) words="gaussian rademacher achlioptas very-sparse sjlt srht blockperm-sjlt block kronecker" ;;
        --seed) words="NONE" ;;
        --density) words="NONE" ;;
        --nonzeros) words="NONE" ;;
        -o | --output) words=FILES ;;
        --output-dtype) words="f2 f4 f8 i1 u1 i2 u2 i4 u4 i8 u8" ;;
        --format) words="npy npz csv tsv fvecs bvecs ivecs fbin u8bin i8bin f16bin idx hdf5 safetensors mtx svmlight raw" ;;
        --shape) words="NONE" ;;
        --dtype) words="f2 f4 f8 i1 u1 i2 u2 i4 u4 i8 u8" ;;
        --delimiter) words="tab comma semicolon space" ;;
        --features) words="NONE" ;;
        --device) words="auto cpu cuda" ;;
        --threads) words="NONE" ;;
        --memory) words="NONE" ;;
        --comm) words="mpi mpich openmpi" ;;
        --progress) words="auto always never" ;;
        esac
        ;;
    convert)
        options="--output-format --output-dtype --order --sparse --dense --digits --no-compress --large --format --shape --dtype --delimiter --header --no-header --features --zero-based --one-based --device --threads --memory --comm --json --progress --quiet -h --help"
        case $before in
        --output-format) words="npy npz csv tsv fvecs bvecs ivecs fbin u8bin i8bin f16bin idx hdf5 safetensors mtx svmlight raw" ;;
        --output-dtype) words="f2 f4 f8 i1 u1 i2 u2 i4 u4 i8 u8" ;;
        --order) words="C F" ;;
        --digits) words="NONE" ;;
        --format) words="npy npz csv tsv fvecs bvecs ivecs fbin u8bin i8bin f16bin idx hdf5 safetensors mtx svmlight raw" ;;
        --shape) words="NONE" ;;
        --dtype) words="f2 f4 f8 i1 u1 i2 u2 i4 u4 i8 u8" ;;
        --delimiter) words="tab comma semicolon space" ;;
        --features) words="NONE" ;;
        --device) words="auto cpu cuda" ;;
        --threads) words="NONE" ;;
        --memory) words="NONE" ;;
        --comm) words="mpi mpich openmpi" ;;
        --progress) words="auto always never" ;;
        esac
        ;;
    info)
        options="--format --shape --dtype --delimiter --header --no-header --features --zero-based --one-based --device --threads --memory --comm --json --progress --quiet -h --help"
        case $before in
        --format) words="npy npz csv tsv fvecs bvecs ivecs fbin u8bin i8bin f16bin idx hdf5 safetensors mtx svmlight raw" ;;
        --shape) words="NONE" ;;
        --dtype) words="f2 f4 f8 i1 u1 i2 u2 i4 u4 i8 u8" ;;
        --delimiter) words="tab comma semicolon space" ;;
        --features) words="NONE" ;;
        --device) words="auto cpu cuda" ;;
        --threads) words="NONE" ;;
        --memory) words="NONE" ;;
        --comm) words="mpi mpich openmpi" ;;
        --progress) words="auto always never" ;;
        esac
        ;;
    help) [ "$COMP_CWORD" -eq 2 ] && options="project dim operator distortion neighbors index join dedup svd transform lstsq hosvd convert info" words="project dim operator distortion neighbors index join dedup svd transform lstsq hosvd convert info" ;;
    esac
    case $words in
    NONE) ;;
    FILES) compopt -o filenames && mapfile -t COMPREPLY < <(compgen -f -- "$current") ;;
    '')
        if [[ $current == -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W "$options" -- "$current")
        else
            compopt -o filenames
            mapfile -t COMPREPLY < <(compgen -f -- "$current")
        fi
        ;;
    *) mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current") ;;
    esac
}
complete -F _gnomon gnomon
