# Which OpenBLAS is used can be told, and what is wrong with one that can't be.
blas() {
    gnomon info --json | "$PYTHON" -c 'import json, sys; d = json.load(sys.stdin); print(d["svd"], d["blas"][:8], d.get("svd_reason", "").split(":")[0])'
}
blas
GNOMON_BLAS=libopenblas.so.0 blas
GNOMON_BLAS=/there/is/none.so blas
GNOMON_BLAS=libopenblas.so.0 GNOMON_BLAS_PREFIX=other_ blas
GNOMON_BLAS=libopenblas.so.0 GNOMON_BLAS_SUFFIX=64_ blas
GNOMON_BLAS=libm.so.6 blas
