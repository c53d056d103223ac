"""Made by generate.py from include/gnomon: do not edit."""
# fmt: off
import ctypes as c


GNOMON_VERSION_MAJOR = 0
GNOMON_VERSION_MINOR = 1
GNOMON_VERSION_PATCH = 0
GNOMON_OK = 0
GNOMON_ERROR_ARGUMENT = 10
GNOMON_ERROR_SHAPE = 11
GNOMON_ERROR_DTYPE = 12
GNOMON_ERROR_OVERFLOW = 13
GNOMON_ERROR_UNSUPPORTED = 14
GNOMON_ERROR_BUSY = 15
GNOMON_ERROR_DATA = 30
GNOMON_ERROR_NONFINITE = 31
GNOMON_ERROR_TRUNCATED = 32
GNOMON_ERROR_FORMAT = 33
GNOMON_ERROR_IO = 50
GNOMON_ERROR_NOT_FOUND = 51
GNOMON_ERROR_MEMORY = 70
GNOMON_ERROR_DEVICE = 90
GNOMON_ERROR_COMM = 91
GNOMON_ERROR_CANCELLED = 110
GNOMON_ERROR_INTERNAL = 127
GNOMON_DEVICE_AUTO = 0
GNOMON_DEVICE_CPU = 1
GNOMON_DEVICE_PLUGIN = 2
GNOMON_F32 = 1
GNOMON_F64 = 2
GNOMON_F16 = 3
GNOMON_BF16 = 4
GNOMON_I8 = 5
GNOMON_U8 = 6
GNOMON_I16 = 7
GNOMON_U16 = 8
GNOMON_I32 = 9
GNOMON_U32 = 10
GNOMON_I64 = 11
GNOMON_U64 = 12
GNOMON_HOST = 0
GNOMON_DEVICE_MEMORY = 1
GNOMON_TENSOR_MODES = 16
GNOMON_OPERATOR_VERSION = 1
GNOMON_GAUSSIAN = 1
GNOMON_RADEMACHER = 2
GNOMON_ACHLIOPTAS = 3
GNOMON_VERY_SPARSE = 4
GNOMON_SJLT = 5
GNOMON_SRHT = 6
GNOMON_BLOCK = 7
GNOMON_KRONECKER = 8
GNOMON_BLOCKPERM_SJLT = 9
GNOMON_ISOMETRIC = 1
GNOMON_UNSCALED = 2
GNOMON_USES_INNER = 1
GNOMON_USES_PRECISION = 2
GNOMON_USES_DENSITY = 4
GNOMON_USES_NONZEROS = 8
GNOMON_USES_BLOCKS = 16
GNOMON_USES_ZETA = 32
GNOMON_USES_WIDTH = 64
GNOMON_USES_WIRING = 128
GNOMON_KIND_COMPOSED = 1
GNOMON_KIND_INNER = 2
GNOMON_KIND_ANY_POINTS = 4
GNOMON_KIND_FAST = 8
GNOMON_PARAMETERS = 6
GNOMON_GEMM_AUTO = 0
GNOMON_GEMM_FP16 = 1
GNOMON_GEMM_TF32 = 2
GNOMON_GEMM_SCALED = 3
GNOMON_GEMM_BF16 = 4
GNOMON_GEMM_ST_RIGHT = 0
GNOMON_GEMM_S_RIGHT = 1
GNOMON_GEMM_S_LEFT = 2
GNOMON_GEMM_ST_LEFT = 3
GNOMON_BOUND_ACHLIOPTAS = 1
GNOMON_BOUND_GAUSSIAN_EXACT = 2
GNOMON_BOUND_DASGUPTA_GUPTA = 3
GNOMON_ASSUME_NOTHING = 1
GNOMON_ASSUME_INCOHERENT = 2
GNOMON_CANDIDATES = 16
GNOMON_SVD_CONVERGED = 0.01
GNOMON_RESIDUAL_NORMS = 1
GNOMON_RESIDUAL_MEASURED = 2
GNOMON_L2 = 1
GNOMON_COSINE = 2
GNOMON_IP = 3
GNOMON_HAMMING = 4
GNOMON_JACCARD = 5
GNOMON_L1 = 6
GNOMON_WEIGHTED_JACCARD = 7
GNOMON_POINTS_DENSE = 1
GNOMON_POINTS_BITS = 2
GNOMON_POINTS_SPARSE = 4
GNOMON_METRIC_LARGER = 1
GNOMON_METRIC_SIMILARITY = 2
GNOMON_METRIC_JOINS = 4
GNOMON_METRIC_HASHED = 8
GNOMON_METRIC_CODES = 16
GNOMON_METRIC_DEVICE = 32
GNOMON_METRIC_WEIGHTS = 64
GNOMON_SEARCH_WHY = 256
GNOMON_LSH_PSTABLE = 1
GNOMON_LSH_PSTABLE_L1 = 2
GNOMON_LSH_SIMHASH = 3
GNOMON_LSH_CROSS_POLYTOPE = 4
GNOMON_LSH_BIT_SAMPLING = 5
GNOMON_LSH_MINHASH = 6
GNOMON_LSH_ICWS = 7
GNOMON_LSH_KMEANS = 8
GNOMON_LSH_SPHERICAL_KMEANS = 9
GNOMON_METRIC_FAMILIES = 3
GNOMON_JOIN_AUTO = 0
GNOMON_JOIN_EXACT = 1
GNOMON_JOIN_LSH = 2
GNOMON_JOIN_WHY = 256
GNOMON_DEDUP_FIRST = 0
GNOMON_DEDUP_LONGEST = 1
GNOMON_RAW_NONE = 0
GNOMON_RAW_HELD = 1
GNOMON_RAW_SUM = 2
GNOMON_LOWER_NONE = 0
GNOMON_LOWER_ASCII = 1
GNOMON_LOWER_FOLD = 2
GNOMON_PUNCTUATION_DROP = 0
GNOMON_PUNCTUATION_KEEP = 1
GNOMON_PUNCTUATION_DROP_ALL = 2
GNOMON_NORMAL_NONE = 0
GNOMON_NORMAL_NFC = 1
GNOMON_NORMAL_NFKC = 2
GNOMON_DEDUP_HISTOGRAM = 20
GNOMON_DEDUP_LARGEST = 10
GNOMON_DEDUP_WHY = 256
GNOMON_PART_LINE = 1
GNOMON_PART_PARAGRAPH = 2
GNOMON_CORPUS_AUTO = 0
GNOMON_CORPUS_LINES = 1
GNOMON_CORPUS_JSON = 2
GNOMON_CORPUS_FILES = 3
GNOMON_ACCESS_SEEK = 1
GNOMON_ACCESS_COLUMNS = 2
GNOMON_ACCESS_SPARSE = 4
GNOMON_ACCESS_BOOLEAN = 8
GNOMON_ACCESS_GATHERED = 16
GNOMON_HOLDS_DENSE = 1
GNOMON_HOLDS_SPARSE = 2
GNOMON_HOLDS_TENSOR = 4
GNOMON_HOLDS_TEXT = 8
GNOMON_TAKES_SHAPE = 1
GNOMON_TAKES_DELIMITER = 2
GNOMON_TAKES_COLUMNS = 4
GNOMON_TAKES_ORDER = 8
GNOMON_TAKES_DIGITS = 16
GNOMON_TAKES_COMPRESS = 32


gnomon_allocator_allocate_fn = c.CFUNCTYPE(c.c_void_p, c.c_void_p, c.c_size_t, c.c_size_t)


gnomon_allocator_release_fn = c.CFUNCTYPE(None, c.c_void_p, c.c_void_p, c.c_size_t)


class gnomon_allocator(c.Structure):
    _fields_ = [
        ("user", c.c_void_p),
        ("allocate", gnomon_allocator_allocate_fn),
        ("release", gnomon_allocator_release_fn),
    ]


gnomon_progress_fn = c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_char_p, c.c_int64, c.c_int64)


class gnomon_context_options(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("device", c.c_char_p),
        ("threads", c.c_int),
        ("allocator", c.POINTER(gnomon_allocator)),
        ("progress", gnomon_progress_fn),
        ("progress_user", c.c_void_p),
        ("memory_limit", c.c_int64),
        ("seed", c.c_uint64),
    ]


class gnomon_matrix(c.Structure):
    _fields_ = [
        ("data", c.c_void_p),
        ("dtype", c.c_int),
        ("memory", c.c_int),
        ("rows", c.c_int64),
        ("cols", c.c_int64),
        ("row_stride", c.c_int64),
        ("col_stride", c.c_int64),
    ]


class gnomon_csr(c.Structure):
    _fields_ = [
        ("rows", c.c_int64),
        ("cols", c.c_int64),
        ("offsets", c.POINTER(c.c_int64)),
        ("indices", c.POINTER(c.c_int64)),
        ("values", c.c_void_p),
        ("dtype", c.c_int),
    ]


class gnomon_coo(c.Structure):
    _fields_ = [
        ("rows", c.c_int64),
        ("cols", c.c_int64),
        ("nonzeros", c.c_int64),
        ("row_indices", c.POINTER(c.c_int64)),
        ("col_indices", c.POINTER(c.c_int64)),
        ("values", c.c_void_p),
        ("dtype", c.c_int),
    ]


class gnomon_tensor(c.Structure):
    _fields_ = [
        ("data", c.c_void_p),
        ("dtype", c.c_int),
        ("memory", c.c_int),
        ("modes", c.c_int),
        ("size", c.c_int64 * GNOMON_TENSOR_MODES),
        ("stride", c.c_int64 * GNOMON_TENSOR_MODES),
    ]


class gnomon_descriptor(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("version", c.c_uint32),
        ("kind", c.c_int),
        ("inner", c.c_int),
        ("precision", c.c_int),
        ("scaling", c.c_int),
        ("seed", c.c_uint64),
        ("k", c.c_int64),
        ("d", c.c_int64),
        ("density", c.c_double),
        ("nonzeros", c.c_int64),
        ("blocks", c.c_int64),
        ("zeta", c.c_int64),
        ("width", c.c_int64),
        ("wiring", c.c_int64),
    ]


class gnomon_kind_info(c.Structure):
    _fields_ = [
        ("kind", c.c_int),
        ("name", c.c_char_p),
        ("about", c.c_char_p),
        ("uses", c.c_uint),
        ("flags", c.c_uint),
    ]


class gnomon_parameter_info(c.Structure):
    _fields_ = [
        ("name", c.c_char_p),
        ("uses", c.c_uint),
        ("is_real", c.c_int),
        ("offset", c.c_size_t),
        ("least", c.c_int64),
        ("range", c.c_char_p),
        ("value", c.c_char_p),
        ("unit", c.c_char_p),
        ("help", c.c_char_p),
    ]


class gnomon_sketch_options(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("alpha", c.c_double),
        ("beta", c.c_double),
        ("row", c.c_int64),
        ("rows", c.c_int64),
        ("col", c.c_int64),
        ("allow_nonfinite", c.c_int),
        ("device_stream", c.c_void_p),
        ("csr_memory", c.c_int),
    ]


class gnomon_gemm_options(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("alpha", c.c_double),
        ("beta", c.c_double),
        ("form", c.c_int),
        ("device_stream", c.c_void_p),
    ]


class gnomon_distortion(c.Structure):
    _fields_ = [
        ("count", c.c_int64),
        ("skipped", c.c_int64),
        ("mean", c.c_double),
        ("variance", c.c_double),
        ("min", c.c_double),
        ("max", c.c_double),
        ("worst", c.c_double),
        ("mean_abs", c.c_double),
        ("quantile", c.c_double * 9),
        ("outside", c.c_double),
        ("worst_i", c.c_int64),
        ("worst_j", c.c_int64),
        ("histogram", c.c_int64 * 64),
        ("histogram_low", c.c_double),
        ("histogram_high", c.c_double),
    ]


class gnomon_distortion_options(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("eps", c.c_double),
        ("max_pairs", c.c_int64),
        ("seed", c.c_uint64),
    ]


class gnomon_coherence(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("points", c.c_int64),
        ("pairs", c.c_int64),
        ("point_mean", c.c_double),
        ("point_most", c.c_double),
        ("pair_mean", c.c_double),
        ("pair_most", c.c_double),
        ("pair_most_i", c.c_int64),
        ("pair_most_j", c.c_int64),
    ]


class gnomon_choose_options(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("n", c.c_int64),
        ("d", c.c_int64),
        ("k", c.c_int64),
        ("eps", c.c_double),
        ("beta", c.c_double),
        ("delta", c.c_double),
        ("assume", c.c_int),
        ("dtype", c.c_int),
        ("coordinates_contiguous", c.c_int),
        ("nonzeros", c.c_int64),
        ("memory", c.c_int),
        ("scaling", c.c_int),
        ("seed", c.c_uint64),
        ("model", c.c_void_p),
    ]


class gnomon_candidate(c.Structure):
    _fields_ = [
        ("descriptor", gnomon_descriptor),
        ("admitted", c.c_int),
        ("seconds", c.c_double),
        ("reason", c.c_char * 160),
    ]


class gnomon_choice(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("chosen", c.c_int),
        ("count", c.c_int),
        ("candidate", gnomon_candidate * GNOMON_CANDIDATES),
        ("device", c.c_int),
        ("model", c.c_char * 64),
        ("note", c.c_char * 192),
    ]


gnomon_comm_send_fn = c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_int, c.c_void_p, c.c_int64)


gnomon_comm_receive_fn = c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_int, c.c_void_p, c.c_int64)


gnomon_comm_reason_fn = c.CFUNCTYPE(c.c_char_p, c.c_void_p)


gnomon_comm_abort_fn = c.CFUNCTYPE(None, c.c_void_p, c.c_int)


gnomon_comm_close_fn = c.CFUNCTYPE(None, c.c_void_p)


class gnomon_comm(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("user", c.c_void_p),
        ("rank", c.c_int),
        ("size", c.c_int),
        ("host_rank", c.c_int),
        ("host_size", c.c_int),
        ("send", gnomon_comm_send_fn),
        ("receive", gnomon_comm_receive_fn),
        ("reason", gnomon_comm_reason_fn),
        ("abort", gnomon_comm_abort_fn),
        ("close", gnomon_comm_close_fn),
    ]


class gnomon_svd_options(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("rank", c.c_int64),
        ("tolerance", c.c_double),
        ("oversample", c.c_int64),
        ("power", c.c_int),
        ("block", c.c_int64),
        ("single_pass", c.c_int),
        ("dtype", c.c_int),
        ("descriptor", c.POINTER(gnomon_descriptor)),
        ("seed", c.c_uint64),
        ("test_vectors", c.c_int64),
        ("test_power", c.c_int),
        ("measure", c.c_int),
        ("u", c.POINTER(gnomon_matrix)),
        ("vt", c.POINTER(gnomon_matrix)),
        ("center", c.c_int),
        ("standardize", c.c_int),
        ("device_stream", c.c_void_p),
        ("comm", c.POINTER(gnomon_comm)),
    ]


class gnomon_svd(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("given_u", c.c_int),
        ("given_vt", c.c_int),
        ("rank", c.c_int64),
        ("u", gnomon_matrix),
        ("s", c.POINTER(c.c_double)),
        ("vt", gnomon_matrix),
        ("rows", c.c_int64),
        ("cols", c.c_int64),
        ("norm", c.c_double),
        ("residual_estimate", c.c_double),
        ("residual_bound", c.c_double),
        ("spectral_estimate", c.c_double),
        ("spectral_bound", c.c_double),
        ("failure", c.c_double),
        ("residual", c.c_double),
        ("converged", c.c_int),
        ("columns", c.c_int64),
        ("numerical_rank", c.c_int64),
        ("passes", c.c_int64),
        ("cholesky", c.c_int64),
        ("householder", c.c_int64),
        ("power", c.c_int),
        ("single_pass", c.c_int),
        ("descriptor", gnomon_descriptor),
        ("project_seconds", c.c_double),
        ("power_seconds", c.c_double),
        ("orthonormalise_seconds", c.c_double),
        ("small_seconds", c.c_double),
        ("certify_seconds", c.c_double),
        ("converged_values", c.c_int64),
        ("centered", c.c_int),
        ("mean", c.POINTER(c.c_double)),
        ("standardized", c.c_int),
        ("scale", c.POINTER(c.c_double)),
        ("explained_variance", c.POINTER(c.c_double)),
        ("explained_ratio", c.POINTER(c.c_double)),
        ("total_variance", c.c_double),
    ]


gnomon_svd_rows_next_fn = c.CFUNCTYPE(c.c_int, c.c_void_p, c.POINTER(gnomon_matrix), c.POINTER(c.c_int64))


gnomon_svd_rows_rewind_fn = c.CFUNCTYPE(c.c_int, c.c_void_p)


class gnomon_svd_rows(c.Structure):
    _fields_ = [
        ("user", c.c_void_p),
        ("rows", c.c_int64),
        ("cols", c.c_int64),
        ("dtype", c.c_int),
        ("next", gnomon_svd_rows_next_fn),
        ("rewind", gnomon_svd_rows_rewind_fn),
    ]


gnomon_svd_sparse_rows_next_fn = c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_int64, c.c_int64, c.POINTER(gnomon_csr))


gnomon_svd_sparse_rows_rewind_fn = c.CFUNCTYPE(c.c_int, c.c_void_p)


class gnomon_svd_sparse_rows(c.Structure):
    _fields_ = [
        ("user", c.c_void_p),
        ("rows", c.c_int64),
        ("cols", c.c_int64),
        ("dtype", c.c_int),
        ("next", gnomon_svd_sparse_rows_next_fn),
        ("rewind", gnomon_svd_sparse_rows_rewind_fn),
    ]


class gnomon_svd_transform_options(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("vt", c.POINTER(gnomon_matrix)),
        ("s", c.POINTER(c.c_double)),
        ("mean", c.POINTER(c.c_double)),
        ("scale", c.POINTER(c.c_double)),
        ("rows", c.c_int64),
        ("whiten", c.c_int),
        ("inverse", c.c_int),
    ]


class gnomon_hosvd_options(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("ranks", c.POINTER(c.c_int64)),
        ("rank_count", c.c_int),
        ("tolerance", c.c_double),
        ("sequential", c.c_int),
        ("oversample", c.c_int64),
        ("power", c.c_int),
        ("measure", c.c_int),
        ("dtype", c.c_int),
        ("descriptor", c.POINTER(gnomon_descriptor)),
        ("seed", c.c_uint64),
        ("memory", c.c_int64),
        ("comm", c.POINTER(gnomon_comm)),
    ]


class gnomon_hosvd(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("modes", c.c_int),
        ("size", c.c_int64 * GNOMON_TENSOR_MODES),
        ("rank", c.c_int64 * GNOMON_TENSOR_MODES),
        ("core", gnomon_tensor),
        ("factor", gnomon_matrix * GNOMON_TENSOR_MODES),
        ("values", c.POINTER(c.c_double) * GNOMON_TENSOR_MODES),
        ("norm", c.c_double),
        ("residual", c.c_double),
        ("residual_by", c.c_int),
        ("converged", c.c_int),
        ("order", c.c_int * GNOMON_TENSOR_MODES),
        ("columns", c.c_int64 * GNOMON_TENSOR_MODES),
        ("passes", c.c_int64),
        ("cholesky", c.c_int64),
        ("householder", c.c_int64),
        ("power", c.c_int),
        ("sequential", c.c_int),
        ("descriptor", gnomon_descriptor),
        ("check_seconds", c.c_double),
        ("project_seconds", c.c_double),
        ("power_seconds", c.c_double),
        ("orthonormalise_seconds", c.c_double),
        ("shrink_seconds", c.c_double),
        ("small_seconds", c.c_double),
        ("measure_seconds", c.c_double),
    ]


class gnomon_lstsq_options(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("damp", c.c_double),
        ("tolerance", c.c_double),
        ("iterations", c.c_int64),
        ("rcond", c.c_double),
        ("sketch_size", c.c_int64),
        ("descriptor", c.POINTER(gnomon_descriptor)),
        ("seed", c.c_uint64),
        ("test_vectors", c.c_int64),
        ("dtype", c.c_int),
        ("keep_residual", c.c_int),
        ("comm", c.POINTER(gnomon_comm)),
    ]


class gnomon_lstsq_target(c.Structure):
    _fields_ = [
        ("norm_b", c.c_double),
        ("norm_x", c.c_double),
        ("residual", c.c_double),
        ("gradient", c.c_double),
        ("backward_bound", c.c_double),
        ("backward_error", c.c_double),
        ("fit_bound", c.c_double),
        ("suboptimality", c.c_double),
        ("forward_bound", c.c_double),
        ("sensitivity", c.c_double),
        ("converged", c.c_int),
    ]


class gnomon_lstsq(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("x", gnomon_matrix),
        ("residual", gnomon_matrix),
        ("target", c.POINTER(gnomon_lstsq_target)),
        ("rows", c.c_int64),
        ("cols", c.c_int64),
        ("targets", c.c_int64),
        ("norm", c.c_double),
        ("rank", c.c_int64),
        ("largest", c.c_double),
        ("least", c.c_double),
        ("condition", c.c_double),
        ("low", c.c_double),
        ("high", c.c_double),
        ("failure", c.c_double),
        ("converged", c.c_int),
        ("iterations", c.c_int64),
        ("refinements", c.c_int64),
        ("passes", c.c_int64),
        ("k", c.c_int64),
        ("sketched", c.c_int),
        ("descriptor", gnomon_descriptor),
        ("check_seconds", c.c_double),
        ("sketch_seconds", c.c_double),
        ("factor_seconds", c.c_double),
        ("iterate_seconds", c.c_double),
        ("certify_seconds", c.c_double),
    ]


class gnomon_metric_info(c.Structure):
    _fields_ = [
        ("metric", c.c_int),
        ("name", c.c_char_p),
        ("aliases", c.c_char_p),
        ("about", c.c_char_p),
        ("unit", c.c_char_p),
        ("points", c.c_uint),
        ("flags", c.c_uint),
    ]


class gnomon_search_options(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("metric", c.c_int),
        ("k", c.c_int64),
        ("radius", c.c_double),
        ("filter", c.POINTER(c.c_uint8)),
        ("filter_bits", c.c_int64),
        ("exclude", c.c_int64),
        ("device_stream", c.c_void_p),
    ]


class gnomon_neighbors(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("queries", c.c_int64),
        ("k", c.c_int64),
        ("base", c.c_int64),
        ("offsets", c.POINTER(c.c_int64)),
        ("ids", c.POINTER(c.c_int64)),
        ("distances", c.POINTER(c.c_double)),
        ("compared", c.c_int64),
        ("verified", c.c_int64),
        ("why", c.c_char * GNOMON_SEARCH_WHY),
    ]


class gnomon_sparse_index_info(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("metric", c.c_int),
        ("points", c.c_int64),
        ("removed", c.c_int64),
        ("dim", c.c_int64),
        ("nonzeros", c.c_int64),
        ("columns", c.c_int64),
        ("heavy_columns", c.c_int64),
        ("point_bytes", c.c_int64),
        ("index_bytes", c.c_int64),
    ]


class gnomon_rabitq_options(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("metric", c.c_int),
        ("bits", c.c_int64),
        ("seed", c.c_uint64),
        ("codes_only", c.c_int),
    ]


class gnomon_rabitq_params(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("recall", c.c_double),
        ("rerank", c.c_int64),
    ]


class gnomon_rabitq_info(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("options", gnomon_rabitq_options),
        ("points", c.c_int64),
        ("dim", c.c_int64),
        ("code_bytes", c.c_int64),
    ]


class gnomon_lsh_functions(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("family", c.c_int),
        ("dim", c.c_int64),
        ("count", c.c_int64),
        ("width", c.c_double),
        ("sides", c.c_int64),
        ("seed", c.c_uint64),
        ("descriptor", c.POINTER(gnomon_descriptor)),
        ("centre_count", c.c_int64),
        ("centres", c.POINTER(c.c_float)),
    ]


class gnomon_lsh_search_params(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("tables", c.c_int64),
        ("probes", c.c_int64),
        ("coarse", c.c_int64),
        ("candidates", c.c_int64),
        ("rerank", c.c_int64),
    ]


class gnomon_lsh_options(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("metric", c.c_int),
        ("functions", gnomon_lsh_functions),
        ("tables", c.c_int64),
        ("coarse", c.c_int64),
        ("fine", c.c_int64),
        ("codes", c.c_int64),
        ("memory", c.c_int64),
        ("search_params", gnomon_lsh_search_params),
    ]


class gnomon_lsh_info(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("options", gnomon_lsh_options),
        ("points", c.c_int64),
        ("removed", c.c_int64),
        ("buckets", c.c_int64),
        ("largest", c.c_int64),
        ("table_bytes", c.c_int64),
        ("code_bytes", c.c_int64),
        ("other_bytes", c.c_int64),
    ]


class gnomon_lsh_work(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("buckets", c.c_int64),
        ("candidates", c.c_int64),
        ("verified", c.c_int64),
        ("exact", c.c_int64),
        ("hash_seconds", c.c_double),
        ("search_seconds", c.c_double),
    ]


class gnomon_lsh_guarantee(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("metric", c.c_int),
        ("recall", c.c_double),
        ("confidence", c.c_double),
        ("k", c.c_int64),
        ("radius", c.c_double),
        ("memory", c.c_int64),
        ("queries", c.c_int64),
        ("seed", c.c_uint64),
        ("descriptor", c.POINTER(gnomon_descriptor)),
        ("slower", c.c_int),
        ("family", c.c_int),
        ("uses", c.c_int64),
    ]


class gnomon_lsh_trial(c.Structure):
    _fields_ = [
        ("family", c.c_int),
        ("width", c.c_double),
        ("sides", c.c_int64),
        ("tables", c.c_int64),
        ("functions", c.c_int64),
        ("fine", c.c_int64),
        ("probes", c.c_int64),
        ("rerank", c.c_int64),
        ("coarse", c.c_int64),
        ("limit", c.c_int64),
        ("recall", c.c_double),
        ("candidates", c.c_double),
        ("cost", c.c_double),
        ("bytes", c.c_int64),
        ("chosen", c.c_int),
        ("centres", c.c_int64),
    ]


class gnomon_lsh_tuning(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("exact", c.c_int),
        ("reason", c.c_char_p),
        ("recall", c.c_double),
        ("bound", c.c_double),
        ("tested", c.c_int64),
        ("asked", c.c_int64),
        ("exact_cost", c.c_double),
        ("trials", c.POINTER(gnomon_lsh_trial)),
        ("trial_count", c.c_int64),
    ]


class gnomon_pair(c.Structure):
    _fields_ = [
        ("i", c.c_int64),
        ("j", c.c_int64),
        ("distance", c.c_double),
    ]


class gnomon_join_batch(c.Structure):
    _fields_ = [
        ("pairs", c.POINTER(gnomon_pair)),
        ("count", c.c_int64),
        ("rows_done", c.c_int64),
    ]


gnomon_join_sink = c.CFUNCTYPE(c.c_int, c.c_void_p, c.POINTER(gnomon_join_batch))


class gnomon_join_options(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("metric", c.c_int),
        ("threshold", c.c_double),
        ("top", c.c_int64),
        ("max_pairs", c.c_int64),
        ("first_row", c.c_int64),
        ("recall", c.c_double),
        ("seed", c.c_uint64),
        ("method", c.c_int),
        ("p_counts", c.POINTER(c.c_int64)),
        ("q_counts", c.POINTER(c.c_int64)),
        ("sink", gnomon_join_sink),
        ("user", c.c_void_p),
        ("band_rows", c.c_int64),
        ("device_stream", c.c_void_p),
        ("comm", c.POINTER(gnomon_comm)),
    ]


class gnomon_join_result(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("pairs", c.c_int64),
        ("rows_done", c.c_int64),
        ("complete", c.c_int),
        ("method", c.c_int),
        ("recall", c.c_double),
        ("compared", c.c_int64),
        ("verified", c.c_int64),
        ("bands", c.c_int64),
        ("why", c.c_char * GNOMON_JOIN_WHY),
    ]


gnomon_join_points_read_fn = c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_int64, c.POINTER(gnomon_matrix))


class gnomon_join_points(c.Structure):
    _fields_ = [
        ("user", c.c_void_p),
        ("rows", c.c_int64),
        ("cols", c.c_int64),
        ("dtype", c.c_int),
        ("read", gnomon_join_points_read_fn),
    ]


gnomon_join_rows_read_fn = c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_int64, c.c_int64, c.POINTER(gnomon_csr))


class gnomon_join_rows(c.Structure):
    _fields_ = [
        ("user", c.c_void_p),
        ("rows", c.c_int64),
        ("cols", c.c_int64),
        ("offsets", c.POINTER(c.c_int64)),
        ("read", gnomon_join_rows_read_fn),
    ]


class gnomon_join_side(c.Structure):
    _fields_ = [
        ("dense", c.POINTER(gnomon_matrix)),
        ("sparse", c.POINTER(gnomon_csr)),
    ]


class gnomon_pairs(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("rows", c.c_int64),
        ("cols", c.c_int64),
        ("count", c.c_int64),
        ("offsets", c.POINTER(c.c_int64)),
        ("columns", c.POINTER(c.c_int64)),
        ("distances", c.POINTER(c.c_double)),
    ]


class gnomon_dedup_options(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("ngram", c.c_int64),
        ("characters", c.c_int),
        ("lower", c.c_int),
        ("punctuation", c.c_int),
        ("similarity", c.c_double),
        ("recall", c.c_double),
        ("bands", c.c_int64),
        ("rows", c.c_int64),
        ("seed", c.c_uint64),
        ("exact", c.c_int),
        ("unverified", c.c_int),
        ("bucket", c.c_int64),
        ("keep", c.c_int),
        ("keep_raw", c.c_int),
        ("work", c.c_char_p),
        ("normalize", c.c_int),
        ("checkpoint", c.c_char_p),
        ("identity", c.c_char_p),
        ("weighted", c.c_int),
        ("containment", c.c_int),
        ("comm", c.POINTER(gnomon_comm)),
    ]


class gnomon_documents(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("count", c.c_int64),
        ("text", c.c_char_p),
        ("begins", c.POINTER(c.c_int64)),
        ("ends", c.POINTER(c.c_int64)),
        ("raw_begins", c.POINTER(c.c_int64)),
        ("raw_ends", c.POINTER(c.c_int64)),
        ("names", c.POINTER(c.c_char_p)),
    ]


class gnomon_dedup_result(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("documents", c.c_int64),
        ("text_bytes", c.c_int64),
        ("empty", c.c_int64),
        ("distinct", c.c_int64),
        ("ngrams", c.c_int64),
        ("kept", c.c_int64),
        ("kept_bytes", c.c_int64),
        ("clusters", c.c_int64),
        ("clustered", c.c_int64),
        ("largest", c.c_int64 * GNOMON_DEDUP_LARGEST),
        ("pairs", c.c_int64),
        ("histogram", c.c_int64 * GNOMON_DEDUP_HISTOGRAM),
        ("bands", c.c_int64),
        ("rows", c.c_int64),
        ("recall_bound", c.c_double),
        ("large", c.c_int64),
        ("uncompared", c.c_int64),
        ("candidates", c.c_int64),
        ("add_seconds", c.c_double),
        ("group_seconds", c.c_double),
        ("plan_seconds", c.c_double),
        ("hash_seconds", c.c_double),
        ("verify_seconds", c.c_double),
        ("cluster_seconds", c.c_double),
        ("spilled", c.c_int),
        ("why", c.c_char * GNOMON_DEDUP_WHY),
        ("old", c.c_int64),
        ("held", c.c_int64),
    ]


class gnomon_dedup_pair(c.Structure):
    _fields_ = [
        ("i", c.c_uint32),
        ("j", c.c_uint32),
        ("similarity", c.c_double),
    ]


class gnomon_parts_options(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("part", c.c_int),
        ("min_bytes", c.c_int64),
        ("field", c.c_char_p),
        ("work", c.c_char_p),
        ("checkpoint", c.c_char_p),
        ("identity", c.c_char_p),
    ]


class gnomon_parts_result(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("documents", c.c_int64),
        ("text_bytes", c.c_int64),
        ("kept", c.c_int64),
        ("changed", c.c_int64),
        ("parts", c.c_int64),
        ("distinct", c.c_int64),
        ("removed", c.c_int64),
        ("removed_bytes", c.c_int64),
        ("largest", c.c_int64 * GNOMON_DEDUP_LARGEST),
        ("spilled", c.c_int),
    ]


gnomon_corpus_bad = c.CFUNCTYPE(None, c.c_void_p, c.c_char_p, c.c_int64, c.c_char_p)


class gnomon_corpus_options(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("kind", c.c_int),
        ("field", c.c_char_p),
        ("id", c.c_char_p),
        ("max_bytes", c.c_int64),
        ("names", c.c_int),
        ("bad", gnomon_corpus_bad),
        ("user", c.c_void_p),
    ]


class gnomon_read_options(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("format", c.c_char_p),
        ("raw_rows", c.c_int64),
        ("raw_cols", c.c_int64),
        ("raw_dtype", c.c_int),
        ("csv_header", c.c_int),
        ("csv_delimiter", c.c_char),
        ("svmlight_cols", c.c_int64),
        ("svmlight_zero_based", c.c_int),
        ("text_dtype", c.c_int),
        ("tensor", c.c_int),
    ]


class gnomon_data_info(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("format", c.c_char_p),
        ("rows", c.c_int64),
        ("cols", c.c_int64),
        ("dtype", c.c_int),
        ("access", c.c_int),
        ("coordinates_contiguous", c.c_int),
        ("nonzeros", c.c_int64),
        ("member", c.c_char_p),
        ("dimensions", c.c_int),
        ("shape", c.c_int64 * GNOMON_TENSOR_MODES),
        ("fortran_order", c.c_int),
    ]


class gnomon_write_options(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("format", c.c_char_p),
        ("coordinates_contiguous", c.c_int),
        ("sparse", c.c_int),
        ("csv_digits", c.c_int),
        ("compress", c.c_int),
        ("overwrite_ok", c.c_int),
    ]


class gnomon_named_array(c.Structure):
    _fields_ = [
        ("name", c.c_char_p),
        ("matrix", gnomon_matrix),
        ("vector", c.c_int),
    ]


class gnomon_named_tensor(c.Structure):
    _fields_ = [
        ("name", c.c_char_p),
        ("tensor", gnomon_tensor),
    ]


class gnomon_format_info(c.Structure):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("name", c.c_char_p),
        ("about", c.c_char_p),
        ("endings", c.c_char_p),
        ("member", c.c_char_p),
        ("writes", c.c_uint),
        ("holds", c.c_int),
        ("takes", c.c_int),
    ]


gnomon_sparse_fault_fn = c.CFUNCTYPE(None, c.c_void_p, c.c_char_p, c.c_char_p)


gnomon_rabitq_fault_fn = c.CFUNCTYPE(None, c.c_void_p, c.c_char_p, c.c_char_p)


gnomon_lsh_fault_fn = c.CFUNCTYPE(None, c.c_void_p, c.c_char_p, c.c_char_p)


gnomon_member_fn = c.CFUNCTYPE(None, c.c_void_p, c.c_char_p)


gnomon_describe_fn = c.CFUNCTYPE(None, c.c_void_p, c.c_char_p, c.POINTER(gnomon_data_info))


gnomon_comm_make_fn = c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_int64, c.POINTER(c.c_void_p), c.POINTER(c.c_int64))


gnomon_comm_take_fn = c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_int64, c.c_void_p, c.c_int64)


STRUCTS = [
    gnomon_allocator,
    gnomon_context_options,
    gnomon_matrix,
    gnomon_csr,
    gnomon_coo,
    gnomon_tensor,
    gnomon_descriptor,
    gnomon_kind_info,
    gnomon_parameter_info,
    gnomon_sketch_options,
    gnomon_gemm_options,
    gnomon_distortion,
    gnomon_distortion_options,
    gnomon_coherence,
    gnomon_choose_options,
    gnomon_candidate,
    gnomon_choice,
    gnomon_svd_options,
    gnomon_svd,
    gnomon_svd_rows,
    gnomon_svd_sparse_rows,
    gnomon_svd_transform_options,
    gnomon_hosvd_options,
    gnomon_hosvd,
    gnomon_lstsq_options,
    gnomon_lstsq_target,
    gnomon_lstsq,
    gnomon_metric_info,
    gnomon_search_options,
    gnomon_neighbors,
    gnomon_sparse_index_info,
    gnomon_rabitq_options,
    gnomon_rabitq_params,
    gnomon_rabitq_info,
    gnomon_lsh_functions,
    gnomon_lsh_search_params,
    gnomon_lsh_options,
    gnomon_lsh_info,
    gnomon_lsh_work,
    gnomon_lsh_guarantee,
    gnomon_lsh_trial,
    gnomon_lsh_tuning,
    gnomon_pair,
    gnomon_join_batch,
    gnomon_join_options,
    gnomon_join_result,
    gnomon_join_points,
    gnomon_join_rows,
    gnomon_join_side,
    gnomon_pairs,
    gnomon_dedup_options,
    gnomon_documents,
    gnomon_dedup_result,
    gnomon_dedup_pair,
    gnomon_parts_options,
    gnomon_parts_result,
    gnomon_corpus_options,
    gnomon_read_options,
    gnomon_data_info,
    gnomon_write_options,
    gnomon_named_array,
    gnomon_named_tensor,
    gnomon_format_info,
    gnomon_comm,
]

ENUMS = {
    "gnomon_status": [
        "GNOMON_OK",
        "GNOMON_ERROR_ARGUMENT",
        "GNOMON_ERROR_SHAPE",
        "GNOMON_ERROR_DTYPE",
        "GNOMON_ERROR_OVERFLOW",
        "GNOMON_ERROR_UNSUPPORTED",
        "GNOMON_ERROR_BUSY",
        "GNOMON_ERROR_DATA",
        "GNOMON_ERROR_NONFINITE",
        "GNOMON_ERROR_TRUNCATED",
        "GNOMON_ERROR_FORMAT",
        "GNOMON_ERROR_IO",
        "GNOMON_ERROR_NOT_FOUND",
        "GNOMON_ERROR_MEMORY",
        "GNOMON_ERROR_DEVICE",
        "GNOMON_ERROR_COMM",
        "GNOMON_ERROR_CANCELLED",
        "GNOMON_ERROR_INTERNAL",
    ],
    "gnomon_device": [
        "GNOMON_DEVICE_AUTO",
        "GNOMON_DEVICE_CPU",
        "GNOMON_DEVICE_PLUGIN",
    ],
    "gnomon_dtype": [
        "GNOMON_F32",
        "GNOMON_F64",
        "GNOMON_F16",
        "GNOMON_BF16",
        "GNOMON_I8",
        "GNOMON_U8",
        "GNOMON_I16",
        "GNOMON_U16",
        "GNOMON_I32",
        "GNOMON_U32",
        "GNOMON_I64",
        "GNOMON_U64",
    ],
    "gnomon_memory": [
        "GNOMON_HOST",
        "GNOMON_DEVICE_MEMORY",
    ],
    "gnomon_kind": [
        "GNOMON_GAUSSIAN",
        "GNOMON_RADEMACHER",
        "GNOMON_ACHLIOPTAS",
        "GNOMON_VERY_SPARSE",
        "GNOMON_SJLT",
        "GNOMON_SRHT",
        "GNOMON_BLOCK",
        "GNOMON_KRONECKER",
        "GNOMON_BLOCKPERM_SJLT",
    ],
    "gnomon_scaling": [
        "GNOMON_ISOMETRIC",
        "GNOMON_UNSCALED",
    ],
    "gnomon_gemm_form": [
        "GNOMON_GEMM_AUTO",
        "GNOMON_GEMM_FP16",
        "GNOMON_GEMM_TF32",
        "GNOMON_GEMM_SCALED",
        "GNOMON_GEMM_BF16",
    ],
    "gnomon_gemm_side": [
        "GNOMON_GEMM_ST_RIGHT",
        "GNOMON_GEMM_S_RIGHT",
        "GNOMON_GEMM_S_LEFT",
        "GNOMON_GEMM_ST_LEFT",
    ],
    "gnomon_bound": [
        "GNOMON_BOUND_ACHLIOPTAS",
        "GNOMON_BOUND_GAUSSIAN_EXACT",
        "GNOMON_BOUND_DASGUPTA_GUPTA",
    ],
    "gnomon_assumption": [
        "GNOMON_ASSUME_NOTHING",
        "GNOMON_ASSUME_INCOHERENT",
    ],
    "gnomon_residual": [
        "GNOMON_RESIDUAL_NORMS",
        "GNOMON_RESIDUAL_MEASURED",
    ],
    "gnomon_metric": [
        "GNOMON_L2",
        "GNOMON_COSINE",
        "GNOMON_IP",
        "GNOMON_HAMMING",
        "GNOMON_JACCARD",
        "GNOMON_L1",
        "GNOMON_WEIGHTED_JACCARD",
    ],
    "gnomon_lsh_family": [
        "GNOMON_LSH_PSTABLE",
        "GNOMON_LSH_PSTABLE_L1",
        "GNOMON_LSH_SIMHASH",
        "GNOMON_LSH_CROSS_POLYTOPE",
        "GNOMON_LSH_BIT_SAMPLING",
        "GNOMON_LSH_MINHASH",
        "GNOMON_LSH_ICWS",
        "GNOMON_LSH_KMEANS",
        "GNOMON_LSH_SPHERICAL_KMEANS",
    ],
    "gnomon_join_method": [
        "GNOMON_JOIN_AUTO",
        "GNOMON_JOIN_EXACT",
        "GNOMON_JOIN_LSH",
    ],
    "gnomon_dedup_keep": [
        "GNOMON_DEDUP_FIRST",
        "GNOMON_DEDUP_LONGEST",
    ],
    "gnomon_raw": [
        "GNOMON_RAW_NONE",
        "GNOMON_RAW_HELD",
        "GNOMON_RAW_SUM",
    ],
    "gnomon_lower": [
        "GNOMON_LOWER_NONE",
        "GNOMON_LOWER_ASCII",
        "GNOMON_LOWER_FOLD",
    ],
    "gnomon_punctuation": [
        "GNOMON_PUNCTUATION_DROP",
        "GNOMON_PUNCTUATION_KEEP",
        "GNOMON_PUNCTUATION_DROP_ALL",
    ],
    "gnomon_normal_form": [
        "GNOMON_NORMAL_NONE",
        "GNOMON_NORMAL_NFC",
        "GNOMON_NORMAL_NFKC",
    ],
    "gnomon_part": [
        "GNOMON_PART_LINE",
        "GNOMON_PART_PARAGRAPH",
    ],
    "gnomon_corpus_kind": [
        "GNOMON_CORPUS_AUTO",
        "GNOMON_CORPUS_LINES",
        "GNOMON_CORPUS_JSON",
        "GNOMON_CORPUS_FILES",
    ],
}

# name: a function that makes (what it returns, what it takes): types of pointers take time
FUNCTIONS = {
    "gnomon_version": lambda: (c.c_char_p, []),
    "gnomon_status_name": lambda: (c.c_char_p, [c.c_int]),
    "gnomon_context_options_init": lambda: (c.c_int, [c.POINTER(gnomon_context_options), c.c_size_t]),
    "gnomon_context_create": lambda: (c.c_int, [c.POINTER(gnomon_context_options), c.POINTER(c.c_void_p)]),
    "gnomon_context_destroy": lambda: (None, [c.c_void_p]),
    "gnomon_last_error": lambda: (c.c_char_p, [c.c_void_p]),
    "gnomon_last_error_argument": lambda: (c.c_char_p, [c.c_void_p]),
    "gnomon_last_error_place": lambda: (None, [c.c_void_p, c.POINTER(c.c_int64), c.POINTER(c.c_int64)]),
    "gnomon_context_threads": lambda: (c.c_int, [c.c_void_p]),
    "gnomon_context_isa": lambda: (c.c_char_p, [c.c_void_p]),
    "gnomon_context_device_reason": lambda: (c.c_char_p, [c.c_void_p]),
    "gnomon_context_device_name": lambda: (c.c_char_p, [c.c_void_p]),
    "gnomon_context_device_kind": lambda: (c.c_char_p, [c.c_void_p]),
    "gnomon_context_device_found": lambda: (c.c_char_p, [c.c_void_p, c.c_int]),
    "gnomon_context_worked_on": lambda: (c.c_int, [c.c_void_p]),
    "gnomon_context_declined": lambda: (c.c_char_p, [c.c_void_p]),
    "gnomon_dtype_size": lambda: (c.c_size_t, [c.c_int]),
    "gnomon_dtype_name": lambda: (c.c_char_p, [c.c_int]),
    "gnomon_matrix_check_finite": lambda: (c.c_int, [c.c_void_p, c.POINTER(gnomon_matrix), c.POINTER(c.c_int64), c.POINTER(c.c_int64)]),
    "gnomon_descriptor_init": lambda: (c.c_int, [c.POINTER(gnomon_descriptor), c.c_size_t]),
    "gnomon_kind_name": lambda: (c.c_char_p, [c.c_int]),
    "gnomon_kind_from_name": lambda: (c.c_int, [c.c_char_p]),
    "gnomon_kind_at": lambda: (c.POINTER(gnomon_kind_info), [c.c_int]),
    "gnomon_parameter_at": lambda: (c.POINTER(gnomon_parameter_info), [c.c_int]),
    "gnomon_operator_create": lambda: (c.c_int, [c.c_void_p, c.POINTER(gnomon_descriptor), c.POINTER(c.c_void_p)]),
    "gnomon_operator_destroy": lambda: (None, [c.c_void_p]),
    "gnomon_operator_describe": lambda: (None, [c.c_void_p, c.POINTER(gnomon_descriptor)]),
    "gnomon_operator_to_json": lambda: (c.c_int, [c.c_void_p, c.c_void_p, c.POINTER(c.c_void_p)]),
    "gnomon_operator_from_json": lambda: (c.c_int, [c.c_void_p, c.c_char_p, c.c_size_t, c.POINTER(c.c_void_p)]),
    "gnomon_operator_row_scale": lambda: (c.c_double, [c.c_void_p, c.c_int64]),
    "gnomon_operator_fill": lambda: (c.c_double, [c.c_void_p]),
    "gnomon_operator_block": lambda: (c.c_int, [c.c_void_p, c.c_void_p, c.c_int64, c.c_int64, c.POINTER(gnomon_matrix)]),
    "gnomon_operator_block_csr": lambda: (c.c_int, [c.c_void_p, c.c_void_p, c.c_int64, c.c_int64, c.c_int64, c.c_int64, c.c_int, c.POINTER(gnomon_csr)]),
    "gnomon_csr_free": lambda: (None, [c.c_void_p, c.POINTER(gnomon_csr)]),
    "gnomon_sketch_options_init": lambda: (c.c_int, [c.POINTER(gnomon_sketch_options), c.c_size_t]),
    "gnomon_sketch": lambda: (c.c_int, [c.c_void_p, c.c_void_p, c.POINTER(gnomon_matrix), c.POINTER(gnomon_matrix), c.POINTER(gnomon_sketch_options)]),
    "gnomon_sketch_csr": lambda: (c.c_int, [c.c_void_p, c.c_void_p, c.POINTER(gnomon_csr), c.POINTER(gnomon_matrix), c.POINTER(gnomon_sketch_options)]),
    "gnomon_sketch_coo": lambda: (c.c_int, [c.c_void_p, c.c_void_p, c.POINTER(gnomon_coo), c.POINTER(gnomon_matrix), c.POINTER(gnomon_sketch_options)]),
    "gnomon_adjoint": lambda: (c.c_int, [c.c_void_p, c.c_void_p, c.POINTER(gnomon_matrix), c.POINTER(gnomon_matrix), c.POINTER(gnomon_sketch_options)]),
    "gnomon_stream_create": lambda: (c.c_int, [c.c_void_p, c.c_void_p, c.c_int64, c.c_int, c.POINTER(gnomon_sketch_options), c.POINTER(c.c_void_p)]),
    "gnomon_stream_push": lambda: (c.c_int, [c.c_void_p, c.POINTER(gnomon_matrix)]),
    "gnomon_stream_finish": lambda: (c.c_int, [c.c_void_p, c.POINTER(gnomon_matrix)]),
    "gnomon_stream_destroy": lambda: (None, [c.c_void_p]),
    "gnomon_operator_granule": lambda: (c.c_int64, [c.c_void_p]),
    "gnomon_sketch_memory": lambda: (c.c_int64, [c.c_void_p, c.c_void_p, c.c_int64, c.c_int]),
    "gnomon_gemm_options_init": lambda: (c.c_int, [c.POINTER(gnomon_gemm_options), c.c_size_t]),
    "gnomon_gemm": lambda: (c.c_int, [c.c_void_p, c.POINTER(gnomon_matrix), c.POINTER(gnomon_matrix), c.POINTER(gnomon_matrix), c.POINTER(gnomon_gemm_options)]),
    "gnomon_gemm_operator": lambda: (c.c_int, [c.c_void_p, c.c_void_p, c.c_int, c.POINTER(gnomon_matrix), c.POINTER(gnomon_matrix), c.POINTER(gnomon_gemm_options)]),
    "gnomon_bound_name": lambda: (c.c_char_p, [c.c_int]),
    "gnomon_dim": lambda: (c.c_int, [c.c_void_p, c.c_int, c.c_int64, c.c_double, c.c_double, c.c_double, c.POINTER(c.c_double), c.POINTER(c.c_int64)]),
    "gnomon_distortion_options_init": lambda: (c.c_int, [c.POINTER(gnomon_distortion_options), c.c_size_t]),
    "gnomon_measure_distortion": lambda: (c.c_int, [c.c_void_p, c.POINTER(gnomon_matrix), c.POINTER(gnomon_matrix), c.POINTER(gnomon_distortion_options), c.POINTER(gnomon_distortion), c.POINTER(gnomon_distortion), c.POINTER(c.c_int)]),
    "gnomon_measure_distortion_csr": lambda: (c.c_int, [c.c_void_p, c.POINTER(gnomon_csr), c.POINTER(gnomon_matrix), c.POINTER(gnomon_distortion_options), c.POINTER(gnomon_distortion), c.POINTER(gnomon_distortion), c.POINTER(c.c_int)]),
    "gnomon_measure_coherence": lambda: (c.c_int, [c.c_void_p, c.POINTER(gnomon_matrix), c.c_int64, c.c_uint64, c.POINTER(gnomon_coherence)]),
    "gnomon_measure_coherence_csr": lambda: (c.c_int, [c.c_void_p, c.POINTER(gnomon_csr), c.c_int64, c.c_uint64, c.POINTER(gnomon_coherence)]),
    "gnomon_model_from_json": lambda: (c.c_int, [c.c_void_p, c.c_char_p, c.c_size_t, c.POINTER(c.c_void_p)]),
    "gnomon_model_destroy": lambda: (None, [c.c_void_p]),
    "gnomon_choose_options_init": lambda: (c.c_int, [c.POINTER(gnomon_choose_options), c.c_size_t]),
    "gnomon_operator_choose": lambda: (c.c_int, [c.c_void_p, c.POINTER(gnomon_choose_options), c.POINTER(gnomon_choice)]),
    "gnomon_svd_missing": lambda: (c.c_char_p, []),
    "gnomon_svd_blas": lambda: (c.c_char_p, []),
    "gnomon_svd_options_init": lambda: (c.c_int, [c.POINTER(gnomon_svd_options), c.c_size_t]),
    "gnomon_svd_free": lambda: (None, [c.c_void_p, c.POINTER(gnomon_svd)]),
    "gnomon_svd_rank_rows": lambda: (c.c_int, [c.c_void_p, c.POINTER(gnomon_comm), c.c_int64, c.c_int64, c.c_int64, c.POINTER(c.c_int64), c.POINTER(c.c_int64)]),
    "gnomon_svd_rank_sparse_rows": lambda: (c.c_int, [c.c_void_p, c.POINTER(gnomon_comm), c.c_int64, c.c_int64, c.POINTER(c.c_int64), c.POINTER(c.c_int64)]),
    "gnomon_svd_dense": lambda: (c.c_int, [c.c_void_p, c.POINTER(gnomon_matrix), c.POINTER(gnomon_svd_options), c.POINTER(gnomon_svd)]),
    "gnomon_svd_csr": lambda: (c.c_int, [c.c_void_p, c.POINTER(gnomon_csr), c.POINTER(gnomon_svd_options), c.POINTER(gnomon_svd)]),
    "gnomon_svd_stream": lambda: (c.c_int, [c.c_void_p, c.POINTER(gnomon_svd_rows), c.POINTER(gnomon_svd_options), c.POINTER(gnomon_svd)]),
    "gnomon_svd_csr_stream": lambda: (c.c_int, [c.c_void_p, c.POINTER(gnomon_svd_sparse_rows), c.POINTER(gnomon_svd_options), c.POINTER(gnomon_svd)]),
    "gnomon_svd_memory": lambda: (c.c_int64, [c.c_void_p, c.c_int64, c.c_int64, c.c_int, c.POINTER(gnomon_svd_options)]),
    "gnomon_svd_transform_options_init": lambda: (c.c_int, [c.POINTER(gnomon_svd_transform_options), c.c_size_t]),
    "gnomon_svd_transform": lambda: (c.c_int, [c.c_void_p, c.POINTER(gnomon_matrix), c.POINTER(gnomon_svd_transform_options), c.POINTER(gnomon_matrix)]),
    "gnomon_svd_transform_csr": lambda: (c.c_int, [c.c_void_p, c.POINTER(gnomon_csr), c.POINTER(gnomon_svd_transform_options), c.POINTER(gnomon_matrix)]),
    "gnomon_hosvd_options_init": lambda: (c.c_int, [c.POINTER(gnomon_hosvd_options), c.c_size_t]),
    "gnomon_hosvd_free": lambda: (None, [c.c_void_p, c.POINTER(gnomon_hosvd)]),
    "gnomon_hosvd_dense": lambda: (c.c_int, [c.c_void_p, c.POINTER(gnomon_tensor), c.POINTER(gnomon_hosvd_options), c.POINTER(gnomon_hosvd)]),
    "gnomon_hosvd_stream": lambda: (c.c_int, [c.c_void_p, c.POINTER(gnomon_tensor), c.POINTER(gnomon_svd_rows), c.POINTER(gnomon_hosvd_options), c.POINTER(gnomon_hosvd)]),
    "gnomon_hosvd_rank_rows": lambda: (c.c_int, [c.c_void_p, c.POINTER(gnomon_comm), c.c_int64, c.c_int64, c.c_int64, c.POINTER(c.c_int64), c.POINTER(c.c_int64)]),
    "gnomon_lstsq_options_init": lambda: (c.c_int, [c.POINTER(gnomon_lstsq_options), c.c_size_t]),
    "gnomon_lstsq_free": lambda: (None, [c.c_void_p, c.POINTER(gnomon_lstsq)]),
    "gnomon_lstsq_dense": lambda: (c.c_int, [c.c_void_p, c.POINTER(gnomon_matrix), c.POINTER(gnomon_matrix), c.POINTER(gnomon_lstsq_options), c.POINTER(gnomon_lstsq)]),
    "gnomon_lstsq_csr": lambda: (c.c_int, [c.c_void_p, c.POINTER(gnomon_csr), c.POINTER(gnomon_matrix), c.POINTER(gnomon_lstsq_options), c.POINTER(gnomon_lstsq)]),
    "gnomon_lstsq_stream": lambda: (c.c_int, [c.c_void_p, c.POINTER(gnomon_svd_rows), c.POINTER(gnomon_matrix), c.POINTER(gnomon_lstsq_options), c.POINTER(gnomon_lstsq)]),
    "gnomon_metric_name": lambda: (c.c_char_p, [c.c_int]),
    "gnomon_metric_from_name": lambda: (c.c_int, [c.c_char_p]),
    "gnomon_similarity_threshold": lambda: (c.c_double, [c.c_double]),
    "gnomon_metric_at": lambda: (c.POINTER(gnomon_metric_info), [c.c_int]),
    "gnomon_search_options_init": lambda: (c.c_int, [c.POINTER(gnomon_search_options), c.c_size_t]),
    "gnomon_neighbors_free": lambda: (None, [c.c_void_p, c.POINTER(gnomon_neighbors)]),
    "gnomon_search_create": lambda: (c.c_int, [c.c_void_p, c.POINTER(gnomon_matrix), c.POINTER(gnomon_search_options), c.POINTER(c.c_void_p)]),
    "gnomon_search_create_csr": lambda: (c.c_int, [c.c_void_p, c.POINTER(gnomon_csr), c.POINTER(gnomon_search_options), c.POINTER(c.c_void_p)]),
    "gnomon_search_first_id": lambda: (c.c_int, [c.c_void_p, c.c_int64]),
    "gnomon_search_add": lambda: (c.c_int, [c.c_void_p, c.POINTER(gnomon_matrix)]),
    "gnomon_search_add_csr": lambda: (c.c_int, [c.c_void_p, c.POINTER(gnomon_csr)]),
    "gnomon_search_finish": lambda: (c.c_int, [c.c_void_p, c.POINTER(gnomon_neighbors)]),
    "gnomon_search_destroy": lambda: (None, [c.c_void_p]),
    "gnomon_neighbors_exact": lambda: (c.c_int, [c.c_void_p, c.POINTER(gnomon_matrix), c.POINTER(gnomon_matrix), c.POINTER(gnomon_search_options), c.POINTER(gnomon_neighbors)]),
    "gnomon_neighbors_exact_csr": lambda: (c.c_int, [c.c_void_p, c.POINTER(gnomon_csr), c.POINTER(gnomon_csr), c.POINTER(gnomon_search_options), c.POINTER(gnomon_neighbors)]),
    "gnomon_sparse_index_create": lambda: (c.c_int, [c.c_void_p, c.c_int, c.POINTER(gnomon_csr), c.POINTER(c.c_void_p)]),
    "gnomon_sparse_index_destroy": lambda: (None, [c.c_void_p]),
    "gnomon_sparse_index_describe": lambda: (None, [c.c_void_p, c.POINTER(gnomon_sparse_index_info)]),
    "gnomon_sparse_index_query": lambda: (c.c_int, [c.c_void_p, c.c_void_p, c.POINTER(gnomon_matrix), c.POINTER(gnomon_search_options), c.POINTER(gnomon_neighbors)]),
    "gnomon_sparse_index_query_csr": lambda: (c.c_int, [c.c_void_p, c.c_void_p, c.POINTER(gnomon_csr), c.POINTER(gnomon_search_options), c.POINTER(gnomon_neighbors)]),
    "gnomon_sparse_index_open": lambda: (c.c_int, [c.c_void_p, c.c_char_p, c.POINTER(c.c_void_p)]),
    "gnomon_sparse_index_check": lambda: (c.c_int, [c.c_void_p, c.c_char_p, gnomon_sparse_fault_fn, c.c_void_p]),
    "gnomon_sparse_builder_create": lambda: (c.c_int, [c.c_void_p, c.c_int, c.c_int64, c.c_char_p, c.POINTER(c.c_void_p)]),
    "gnomon_sparse_builder_extend": lambda: (c.c_int, [c.c_void_p, c.c_void_p, c.c_char_p, c.c_int, c.POINTER(c.c_void_p)]),
    "gnomon_sparse_builder_add_csr": lambda: (c.c_int, [c.c_void_p, c.POINTER(gnomon_csr)]),
    "gnomon_sparse_builder_remove": lambda: (c.c_int, [c.c_void_p, c.POINTER(c.c_int64), c.c_int64]),
    "gnomon_sparse_builder_finish": lambda: (c.c_int, [c.c_void_p]),
    "gnomon_sparse_builder_abort": lambda: (None, [c.c_void_p]),
    "gnomon_rabitq_options_init": lambda: (c.c_int, [c.POINTER(gnomon_rabitq_options), c.c_size_t]),
    "gnomon_rabitq_params_init": lambda: (c.c_int, [c.POINTER(gnomon_rabitq_params), c.c_size_t]),
    "gnomon_rabitq_create": lambda: (c.c_int, [c.c_void_p, c.POINTER(gnomon_rabitq_options), c.POINTER(gnomon_matrix), c.POINTER(c.c_void_p)]),
    "gnomon_rabitq_destroy": lambda: (None, [c.c_void_p]),
    "gnomon_rabitq_describe": lambda: (None, [c.c_void_p, c.POINTER(gnomon_rabitq_info)]),
    "gnomon_rabitq_estimate": lambda: (c.c_int, [c.c_void_p, c.c_void_p, c.POINTER(gnomon_matrix), c.c_double, c.POINTER(gnomon_matrix), c.POINTER(gnomon_matrix)]),
    "gnomon_rabitq_query": lambda: (c.c_int, [c.c_void_p, c.c_void_p, c.POINTER(gnomon_matrix), c.POINTER(gnomon_search_options), c.POINTER(gnomon_rabitq_params), c.POINTER(gnomon_neighbors)]),
    "gnomon_rabitq_save": lambda: (c.c_int, [c.c_void_p, c.c_void_p, c.c_char_p]),
    "gnomon_rabitq_open": lambda: (c.c_int, [c.c_void_p, c.c_char_p, c.POINTER(c.c_void_p)]),
    "gnomon_rabitq_check": lambda: (c.c_int, [c.c_void_p, c.c_char_p, gnomon_rabitq_fault_fn, c.c_void_p]),
    "gnomon_lsh_family_name": lambda: (c.c_char_p, [c.c_int]),
    "gnomon_lsh_family_from_name": lambda: (c.c_int, [c.c_char_p]),
    "gnomon_metric_family": lambda: (c.c_int, [c.c_int, c.c_int]),
    "gnomon_lsh_functions_init": lambda: (c.c_int, [c.POINTER(gnomon_lsh_functions), c.c_size_t]),
    "gnomon_lsh_collision": lambda: (c.c_int, [c.c_void_p, c.POINTER(gnomon_lsh_functions), c.c_double, c.POINTER(c.c_double)]),
    "gnomon_lsh_train": lambda: (c.c_int, [c.c_void_p, c.c_int, c.POINTER(gnomon_matrix), c.c_int64, c.c_uint64, c.POINTER(c.c_float)]),
    "gnomon_lsh_train_stream": lambda: (c.c_int, [c.c_void_p, c.c_int, c.POINTER(gnomon_join_points), c.c_int64, c.c_uint64, c.POINTER(c.c_float)]),
    "gnomon_hasher_create": lambda: (c.c_int, [c.c_void_p, c.POINTER(gnomon_lsh_functions), c.POINTER(c.c_void_p)]),
    "gnomon_hasher_destroy": lambda: (None, [c.c_void_p]),
    "gnomon_hasher_apply": lambda: (c.c_int, [c.c_void_p, c.c_void_p, c.POINTER(gnomon_matrix), c.POINTER(gnomon_matrix)]),
    "gnomon_hasher_apply_csr": lambda: (c.c_int, [c.c_void_p, c.c_void_p, c.POINTER(gnomon_csr), c.POINTER(gnomon_matrix)]),
    "gnomon_lsh_search_params_init": lambda: (c.c_int, [c.POINTER(gnomon_lsh_search_params), c.c_size_t]),
    "gnomon_lsh_options_init": lambda: (c.c_int, [c.POINTER(gnomon_lsh_options), c.c_size_t]),
    "gnomon_lsh_create": lambda: (c.c_int, [c.c_void_p, c.POINTER(gnomon_lsh_options), c.POINTER(c.c_void_p)]),
    "gnomon_lsh_destroy": lambda: (None, [c.c_void_p]),
    "gnomon_lsh_add": lambda: (c.c_int, [c.c_void_p, c.POINTER(gnomon_matrix)]),
    "gnomon_lsh_add_csr": lambda: (c.c_int, [c.c_void_p, c.POINTER(gnomon_csr)]),
    "gnomon_lsh_remove": lambda: (c.c_int, [c.c_void_p, c.POINTER(c.c_int64), c.c_int64]),
    "gnomon_lsh_compact": lambda: (c.c_int, [c.c_void_p]),
    "gnomon_lsh_describe": lambda: (None, [c.c_void_p, c.POINTER(gnomon_lsh_info)]),
    "gnomon_lsh_query": lambda: (c.c_int, [c.c_void_p, c.c_void_p, c.POINTER(gnomon_matrix), c.POINTER(gnomon_search_options), c.POINTER(gnomon_lsh_search_params), c.POINTER(gnomon_neighbors), c.POINTER(gnomon_lsh_work)]),
    "gnomon_lsh_query_csr": lambda: (c.c_int, [c.c_void_p, c.c_void_p, c.POINTER(gnomon_csr), c.POINTER(gnomon_search_options), c.POINTER(gnomon_lsh_search_params), c.POINTER(gnomon_neighbors), c.POINTER(gnomon_lsh_work)]),
    "gnomon_lsh_save": lambda: (c.c_int, [c.c_void_p, c.c_void_p, c.c_char_p]),
    "gnomon_lsh_open": lambda: (c.c_int, [c.c_void_p, c.c_char_p, c.POINTER(c.c_void_p)]),
    "gnomon_lsh_check": lambda: (c.c_int, [c.c_void_p, c.c_char_p, gnomon_lsh_fault_fn, c.c_void_p]),
    "gnomon_lsh_builder_create": lambda: (c.c_int, [c.c_void_p, c.POINTER(gnomon_lsh_options), c.c_char_p, c.POINTER(c.c_void_p)]),
    "gnomon_lsh_builder_extend": lambda: (c.c_int, [c.c_void_p, c.c_void_p, c.c_char_p, c.c_int, c.POINTER(c.c_void_p)]),
    "gnomon_lsh_builder_add": lambda: (c.c_int, [c.c_void_p, c.POINTER(gnomon_matrix)]),
    "gnomon_lsh_builder_add_csr": lambda: (c.c_int, [c.c_void_p, c.POINTER(gnomon_csr)]),
    "gnomon_lsh_builder_finish": lambda: (c.c_int, [c.c_void_p]),
    "gnomon_lsh_builder_abort": lambda: (None, [c.c_void_p]),
    "gnomon_lsh_guarantee_init": lambda: (c.c_int, [c.POINTER(gnomon_lsh_guarantee), c.c_size_t]),
    "gnomon_lsh_tuning_free": lambda: (None, [c.c_void_p, c.POINTER(gnomon_lsh_tuning)]),
    "gnomon_lsh_tune": lambda: (c.c_int, [c.c_void_p, c.POINTER(gnomon_lsh_guarantee), c.POINTER(gnomon_matrix), c.POINTER(gnomon_matrix), c.POINTER(c.c_void_p), c.POINTER(gnomon_lsh_tuning)]),
    "gnomon_lsh_tune_csr": lambda: (c.c_int, [c.c_void_p, c.POINTER(gnomon_lsh_guarantee), c.POINTER(gnomon_csr), c.POINTER(gnomon_csr), c.POINTER(c.c_void_p), c.POINTER(gnomon_lsh_tuning)]),
    "gnomon_join_method_name": lambda: (c.c_char_p, [c.c_int]),
    "gnomon_join_options_init": lambda: (c.c_int, [c.POINTER(gnomon_join_options), c.c_size_t]),
    "gnomon_join": lambda: (c.c_int, [c.c_void_p, c.POINTER(gnomon_matrix), c.POINTER(gnomon_matrix), c.POINTER(gnomon_join_options), c.POINTER(gnomon_join_result)]),
    "gnomon_join_csr": lambda: (c.c_int, [c.c_void_p, c.POINTER(gnomon_csr), c.POINTER(gnomon_csr), c.POINTER(gnomon_join_options), c.POINTER(gnomon_join_result)]),
    "gnomon_join_stream": lambda: (c.c_int, [c.c_void_p, c.POINTER(gnomon_join_points), c.POINTER(gnomon_join_points), c.POINTER(gnomon_join_options), c.POINTER(gnomon_join_result)]),
    "gnomon_join_stream_csr": lambda: (c.c_int, [c.c_void_p, c.POINTER(gnomon_join_rows), c.POINTER(gnomon_join_rows), c.POINTER(gnomon_join_options), c.POINTER(gnomon_join_result)]),
    "gnomon_join_sides": lambda: (c.c_int, [c.c_void_p, c.POINTER(gnomon_join_side), c.POINTER(gnomon_join_side), c.POINTER(gnomon_join_options), c.POINTER(gnomon_join_result)]),
    "gnomon_pairs_free": lambda: (None, [c.c_void_p, c.POINTER(gnomon_pairs)]),
    "gnomon_join_collect": lambda: (c.c_int, [c.c_void_p, c.POINTER(gnomon_matrix), c.POINTER(gnomon_matrix), c.POINTER(gnomon_join_options), c.c_int, c.POINTER(gnomon_pairs), c.POINTER(gnomon_join_result)]),
    "gnomon_join_collect_csr": lambda: (c.c_int, [c.c_void_p, c.POINTER(gnomon_csr), c.POINTER(gnomon_csr), c.POINTER(gnomon_join_options), c.c_int, c.POINTER(gnomon_pairs), c.POINTER(gnomon_join_result)]),
    "gnomon_join_collect_sides": lambda: (c.c_int, [c.c_void_p, c.POINTER(gnomon_join_side), c.POINTER(gnomon_join_side), c.POINTER(gnomon_join_options), c.c_int, c.POINTER(gnomon_pairs), c.POINTER(gnomon_join_result)]),
    "gnomon_clusters_create": lambda: (c.c_int, [c.c_void_p, c.c_int64, c.POINTER(c.c_void_p)]),
    "gnomon_clusters_add": lambda: (c.c_int, [c.c_void_p, c.c_int64, c.c_int64]),
    "gnomon_clusters_label": lambda: (c.c_int64, [c.c_void_p, c.POINTER(c.c_int64), c.POINTER(c.c_int64)]),
    "gnomon_clusters_destroy": lambda: (None, [c.c_void_p]),
    "gnomon_unicode_version": lambda: (c.c_char_p, []),
    "gnomon_dedup_options_init": lambda: (c.c_int, [c.POINTER(gnomon_dedup_options), c.c_size_t]),
    "gnomon_documents_init": lambda: (c.c_int, [c.POINTER(gnomon_documents), c.c_size_t]),
    "gnomon_dedup_create": lambda: (c.c_int, [c.c_void_p, c.POINTER(gnomon_dedup_options), c.POINTER(c.c_void_p)]),
    "gnomon_dedup_add": lambda: (c.c_int, [c.c_void_p, c.POINTER(gnomon_documents)]),
    "gnomon_dedup_restored": lambda: (c.c_int64, [c.c_void_p]),
    "gnomon_dedup_forget": lambda: (None, [c.c_void_p]),
    "gnomon_dedup_run": lambda: (c.c_int, [c.c_void_p, c.POINTER(gnomon_dedup_result)]),
    "gnomon_dedup_representatives": lambda: (c.POINTER(c.c_int64), [c.c_void_p]),
    "gnomon_dedup_pairs": lambda: (c.POINTER(gnomon_dedup_pair), [c.c_void_p, c.POINTER(c.c_int64)]),
    "gnomon_dedup_write": lambda: (c.c_int, [c.c_void_p, c.c_char_p]),
    "gnomon_text_ngrams": lambda: (c.c_int, [c.c_void_p, c.POINTER(gnomon_dedup_options), c.c_char_p, c.c_int64, c.POINTER(c.c_uint64), c.c_int64, c.POINTER(c.c_int64)]),
    "gnomon_dedup_sign": lambda: (c.c_int, [c.c_void_p, c.POINTER(c.c_char_p), c.c_char_p]),
    "gnomon_dedup_add_signed": lambda: (c.c_int, [c.c_void_p, c.POINTER(c.c_char_p), c.c_int64]),
    "gnomon_dedup_add_old": lambda: (c.c_int, [c.c_void_p, c.POINTER(c.c_char_p), c.c_int64]),
    "gnomon_dedup_name": lambda: (c.c_char_p, [c.c_void_p, c.c_int64]),
    "gnomon_dedup_destroy": lambda: (None, [c.c_void_p]),
    "gnomon_parts_options_init": lambda: (c.c_int, [c.POINTER(gnomon_parts_options), c.c_size_t]),
    "gnomon_parts_create": lambda: (c.c_int, [c.c_void_p, c.POINTER(gnomon_parts_options), c.POINTER(c.c_void_p)]),
    "gnomon_parts_add": lambda: (c.c_int, [c.c_void_p, c.POINTER(gnomon_documents)]),
    "gnomon_parts_run": lambda: (c.c_int, [c.c_void_p, c.POINTER(gnomon_parts_result)]),
    "gnomon_parts_left": lambda: (c.c_int, [c.c_void_p, c.c_int64, c.POINTER(c.c_char_p), c.POINTER(c.c_int64)]),
    "gnomon_parts_write": lambda: (c.c_int, [c.c_void_p, c.c_char_p]),
    "gnomon_parts_restored": lambda: (c.c_int64, [c.c_void_p]),
    "gnomon_parts_forget": lambda: (None, [c.c_void_p]),
    "gnomon_parts_destroy": lambda: (None, [c.c_void_p]),
    "gnomon_corpus_options_init": lambda: (c.c_int, [c.POINTER(gnomon_corpus_options), c.c_size_t]),
    "gnomon_corpus_open": lambda: (c.c_int, [c.c_void_p, c.c_char_p, c.POINTER(gnomon_corpus_options), c.POINTER(c.c_void_p)]),
    "gnomon_corpus_next": lambda: (c.c_int, [c.c_void_p, c.POINTER(gnomon_documents), c.POINTER(c.POINTER(c.c_char_p))]),
    "gnomon_corpus_kind_of": lambda: (c.c_int, [c.c_void_p]),
    "gnomon_corpus_close": lambda: (None, [c.c_void_p]),
    "gnomon_dedup_write_again": lambda: (c.c_int, [c.c_void_p, c.POINTER(c.c_char_p), c.c_int64, c.POINTER(gnomon_corpus_options), c.c_char_p]),
    "gnomon_read_options_init": lambda: (c.c_int, [c.POINTER(gnomon_read_options), c.c_size_t]),
    "gnomon_reader_open": lambda: (c.c_int, [c.c_void_p, c.c_char_p, c.POINTER(gnomon_read_options), c.POINTER(c.c_void_p)]),
    "gnomon_reader_close": lambda: (None, [c.c_void_p]),
    "gnomon_reader_info": lambda: (c.c_int, [c.c_void_p, c.POINTER(gnomon_data_info)]),
    "gnomon_reader_next": lambda: (c.c_int, [c.c_void_p, c.POINTER(gnomon_matrix), c.POINTER(c.c_int64)]),
    "gnomon_reader_next_csr": lambda: (c.c_int, [c.c_void_p, c.c_int64, c.c_int64, c.POINTER(gnomon_csr)]),
    "gnomon_reader_seek": lambda: (c.c_int, [c.c_void_p, c.c_int64]),
    "gnomon_reader_block": lambda: (c.c_int, [c.c_void_p, c.c_int64, c.c_int64, c.POINTER(gnomon_matrix)]),
    "gnomon_write_options_init": lambda: (c.c_int, [c.POINTER(gnomon_write_options), c.c_size_t]),
    "gnomon_writer_open": lambda: (c.c_int, [c.c_void_p, c.c_char_p, c.c_int64, c.c_int64, c.c_int, c.POINTER(gnomon_write_options), c.POINTER(c.c_void_p)]),
    "gnomon_writer_rows": lambda: (c.c_int, [c.c_void_p, c.POINTER(gnomon_matrix)]),
    "gnomon_writer_csr": lambda: (c.c_int, [c.c_void_p, c.POINTER(gnomon_csr)]),
    "gnomon_writer_finish": lambda: (c.c_int, [c.c_void_p]),
    "gnomon_writer_abort": lambda: (None, [c.c_void_p]),
    "gnomon_table_open": lambda: (c.c_int, [c.c_void_p, c.c_char_p, c.c_char_p, c.POINTER(c.c_char_p), c.c_int, c.POINTER(c.c_void_p)]),
    "gnomon_table_integer": lambda: (c.c_int, [c.c_void_p, c.c_int64]),
    "gnomon_table_real": lambda: (c.c_int, [c.c_void_p, c.c_double]),
    "gnomon_table_text": lambda: (c.c_int, [c.c_void_p, c.c_char_p]),
    "gnomon_table_finish": lambda: (c.c_int, [c.c_void_p]),
    "gnomon_table_abort": lambda: (None, [c.c_void_p]),
    "gnomon_write_text": lambda: (c.c_int, [c.c_void_p, c.c_char_p, c.c_char_p, c.c_size_t]),
    "gnomon_write_npz": lambda: (c.c_int, [c.c_void_p, c.c_char_p, c.POINTER(gnomon_named_array), c.c_int]),
    "gnomon_write_npz_tensors": lambda: (c.c_int, [c.c_void_p, c.c_char_p, c.POINTER(gnomon_named_tensor), c.c_int]),
    "gnomon_write_hdf5": lambda: (c.c_int, [c.c_void_p, c.c_char_p, c.POINTER(gnomon_named_array), c.c_int]),
    "gnomon_format_name": lambda: (c.c_char_p, [c.c_int, c.POINTER(c.c_int)]),
    "gnomon_io_abandon_all": lambda: (None, []),
    "gnomon_format_describe": lambda: (c.c_int, [c.c_int, c.POINTER(gnomon_format_info)]),
    "gnomon_format_missing": lambda: (c.c_char_p, [c.c_char_p]),
    "gnomon_format_for": lambda: (c.c_char_p, [c.c_char_p, c.c_char_p, c.POINTER(c.c_int)]),
    "gnomon_file_members": lambda: (c.c_int, [c.c_void_p, c.c_char_p, gnomon_member_fn, c.c_void_p]),
    "gnomon_file_describe": lambda: (c.c_int, [c.c_void_p, c.c_char_p, gnomon_describe_fn, c.c_void_p]),
    "gnomon_same_file": lambda: (c.c_int, [c.c_char_p, c.c_char_p]),
    "gnomon_comm_init": lambda: (c.c_int, [c.POINTER(gnomon_comm), c.c_size_t]),
    "gnomon_comm_open": lambda: (c.c_int, [c.c_void_p, c.c_char_p, c.POINTER(gnomon_comm)]),
    "gnomon_comm_close": lambda: (None, [c.POINTER(gnomon_comm)]),
    "gnomon_comm_group_create": lambda: (c.c_int, [c.c_void_p, c.c_int, c.POINTER(c.c_void_p)]),
    "gnomon_comm_group_rank": lambda: (c.c_int, [c.c_void_p, c.c_int, c.POINTER(gnomon_comm)]),
    "gnomon_comm_group_destroy": lambda: (None, [c.c_void_p]),
    "gnomon_comm_share": lambda: (c.c_int, [c.c_void_p, c.POINTER(gnomon_comm), c.c_int64, c.POINTER(c.c_int64), c.POINTER(c.c_int64)]),
    "gnomon_comm_broadcast": lambda: (c.c_int, [c.c_void_p, c.POINTER(gnomon_comm), c.c_void_p, c.c_int64]),
    "gnomon_comm_agree": lambda: (c.c_int, [c.c_void_p, c.POINTER(gnomon_comm), c.POINTER(c.c_int), c.POINTER(c.c_int)]),
    "gnomon_comm_deal": lambda: (c.c_int, [c.c_void_p, c.POINTER(gnomon_comm), gnomon_comm_make_fn, gnomon_comm_take_fn, c.c_void_p]),
    "gnomon_comm_neighbors": lambda: (c.c_int, [c.c_void_p, c.POINTER(gnomon_comm), c.c_void_p, c.POINTER(gnomon_neighbors)]),
    "gnomon_comm_lsh_build": lambda: (c.c_int, [c.c_void_p, c.POINTER(gnomon_comm), c.POINTER(gnomon_lsh_options), c.POINTER(gnomon_join_points), c.c_char_p]),
}
