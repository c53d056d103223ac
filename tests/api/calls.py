"""Makes calls of every public function from the declarations in include/gnomon, for api.c.

usage: calls.py INCLUDE_FOLDER OUTPUT

A declaration becomes one C function that calls it with valid arguments, any one of which may be made
NULL or spoilt by its number. Which argument is which follows from its type and name, by the tables
below; a new function whose arguments they know needs nothing here, and one that they don't know
stops the build with its name. Every pointer counts as required unless OPTIONAL says otherwise.

Each struct that begins with its struct_size can be given in other sizes (api.c, "sizes"): as an argument, and
where options hold one or point to one. One that no call can be given so stops the build.
"""
import re
import sys

# Pointers that may be NULL, as the headers say: (function, argument), regular expressions.
OPTIONAL = [
    (r"gnomon_context_create|gnomon_gemm(_operator)?|gnomon_(reader|writer)_open|gnomon_lstsq_(dense|csr|stream)"
     r"|gnomon_sketch(_csr|_coo)?|gnomon_adjoint|gnomon_stream_create|gnomon_measure_distortion(_csr)?", "options"),
    (r"gnomon_last_error(_argument|_place)?", "ctx"),
    (r"gnomon_last_error_place", "row|col"),
    (r".*_(destroy|free|close|abort)", r"(?!ctx).*"),
    (r"gnomon_context_destroy", "ctx"),
    (r".*", "user"),
    (r"gnomon_join(_csr|_stream(_csr)?|_sides)?|gnomon_join_collect(_csr|_sides)?", "q|result"),
    (r"gnomon_clusters_label", "representatives"),
    (r"gnomon_(dedup_create|dedup_write_again|parts_create|corpus_open)", "options"),
    (r"gnomon_(dedup|parts)_run", "result"),
    (r"gnomon_text_ngrams", "options|hashes"),
    (r"gnomon_dedup_pairs", "count"),
    (r"gnomon_corpus_next", "names"),
    (r"gnomon_lsh_query(_csr)?", "params|work"),
    (r"gnomon_(lsh|sparse_index|rabitq)_check", "fn"),
    (r"gnomon_rabitq_create", "options"),
    (r"gnomon_rabitq_query", "params"),
    (r"gnomon_rabitq_estimate", "bounds"),
    (r"gnomon_lsh_tune(_csr)?", "queries"),
    (r"gnomon_matrix_check_finite", "row|col"),
    (r"gnomon_dim", "real"),
    (r"gnomon_measure_distortion(_csr)?", "norms|pairs|all_pairs"),
    (r"gnomon_format_name", "can_write"),
    (r"gnomon_format_for", "format|holds"),
    (r"gnomon_table_open", "format"),
    (r"gnomon_comm_agree", "rank"),
]

# Valid arguments, the first that fits: (function, type, name, C expression).
VALID = [
    (".*", r"(const )?gnomon_context \*", ".*", "f->ctx"),
    (".*", r"(const )?gnomon_operator \*", ".*", "f->op"),
    ("gnomon_lsh_query_csr", r"const gnomon_lsh \*", ".*", "f->set_index"),
    ("gnomon_lsh_add_csr", r"gnomon_lsh \*", ".*", "f->set_index"),
    ("gnomon_lsh_builder_add_csr", r"gnomon_lsh_builder \*", ".*", "f->set_builder"),
    ("gnomon_search_add_csr", r"gnomon_search \*", ".*", "f->set_search"),
    ("gnomon_hasher_apply_csr", r"const gnomon_hasher \*", ".*", "f->set_hasher"),
    ("gnomon_writer_csr", r"gnomon_writer \*", ".*", "f->sparse_writer"),
    ("gnomon_reader_next_csr", r"gnomon_reader \*", ".*", "f->sparse_reader"),
    ("gnomon_writer_finish", r"gnomon_writer \*", ".*", "f->full_writer"),
    ("gnomon_lsh_train(_stream)?", r"gnomon_lsh_family", ".*", "GNOMON_LSH_KMEANS"),
    ("gnomon_lsh_train(_stream)?", r"int64_t", "count", "2"),
    ("gnomon_lsh_train(_stream)?", r"float \*", "centres", "(float *)f->reals"),
    ("gnomon_comm_open", r"const char \*", "name", "\"mpi\""),
    ("gnomon_(svd|hosvd)_rank_(sparse_)?rows", r"const struct gnomon_comm \*", "comm", "&f->comm"),
    ("gnomon_comm_broadcast", r"void \*", "data", "f->reals"),
    ("gnomon_comm_group_create", r"int", "size", "2"),
    ("gnomon_comm_deal", r"gnomon_comm_make_fn", ".*", "make_piece"),
    ("gnomon_comm_deal", r"gnomon_comm_take_fn", ".*", "take_piece"),
    ("gnomon_comm_lsh_build", r"const char \*", "path", "\"ranks.index\""),
    ("gnomon_comm_neighbors", r"gnomon_search \*", ".*", "f->full_search"),
    ("gnomon_table_open", r"const char \*", "path", "\"out.csv\""),
    ("gnomon_table_open", r"const char \*", "format", "\"csv\""),
    ("gnomon_table_open", r"const char \*const \*", "columns", "column_names"),
    ("gnomon_dedup_(write|pairs|representatives|sign|name)", r"(const )?gnomon_dedup \*", ".*", "f->full_dedup"),
    ("gnomon_dedup_write_again", r"gnomon_dedup \*", ".*", "f->again_dedup"),
    ("gnomon_dedup_write_again", r"const char \*const \*", "inputs", "corpus_files"),
    ("gnomon_dedup_write_again", r"const char \*", "path", "\"again.txt\""),
    ("gnomon_parts_(write|left)", r"gnomon_parts \*", ".*", "f->full_parts"),
    ("gnomon_parts_left", r"const char \*\*", "out", "(void *)&f->out"),
    ("gnomon_parts_left", r"int64_t", "document", "0"),
    ("gnomon_dedup_add_signed", r"gnomon_dedup \*", ".*", "f->signed_dedup"),
    ("gnomon_dedup_add_old", r"gnomon_dedup \*", ".*", "f->old_dedup"),
    ("gnomon_dedup_add_(signed|old)", r"const char \*const \*", "paths", "signed_files"),
    ("gnomon_text_ngrams", r"int64_t", "bytes", "4"),
    ("gnomon_text_ngrams", r"uint64_t \*", "hashes", "(uint64_t *)f->more_numbers"),
    ("gnomon_dedup_sign", r"const char \*const \*", "names", "column_names"),
    ("gnomon_corpus_open", r"const char \*", "path", "f->npy"),
    ("gnomon_corpus_next", r"const char \*const \*\*", "names", "(void *)&f->out"),
    ("gnomon_stream_finish", r"gnomon_stream \*", ".*", "f->full_stream"),
    ("gnomon_search_finish", r"gnomon_search \*", ".*", "f->full_search"),
    ("gnomon_lsh_save", r"const gnomon_lsh \*", ".*", "f->full_index"),
    ("gnomon_lsh_(query|builder_extend)", r"const gnomon_lsh \*", ".*", "f->full_index"),
    ("gnomon_lsh_(remove|compact)", r"gnomon_lsh \*", ".*", "f->full_index"),
    ("gnomon_hasher_apply(_csr)?", r"const gnomon_matrix \*", "values", "&f->values"),
    ("gnomon_sparse_index_query_csr", r"const gnomon_search_options \*", ".*", "&f->search_options"),
    ("(?!gnomon_join_stream).*_csr", r"const gnomon_(search_options|join_options|lsh_guarantee) \*", ".*", "&f->set_{1}"),
    (".*_init", r"size_t", "size", "sizeof *a0"),
    ("gnomon_hosvd_stream", r"const gnomon_svd_rows \*", ".*", "&f->tensor_rows"),
    ("gnomon_operator_block_csr", r"gnomon_csr \*", ".*", "&f->csr_out"),
    ("gnomon_reader_next_csr|gnomon_csr_free", r"gnomon_csr \*", ".*", "&f->csr_out"),
    (".*", r"const gnomon_matrix \*", "(x|a|points|original|base|p|piece|src|m)", "&f->matrix[0]"),
    (".*", r"const gnomon_matrix \*", "(b|queries|sketch|q)", "&f->matrix[1]"),
    (".*", r"const gnomon_matrix \*", ".*", "&f->matrix[2]"),
    (".*", r"const gnomon_tensor \*", ".*", "&f->tensor"),
    (".*", r"const gnomon_csr \*", "(b|queries|q)", "&f->csr[1]"),
    (".*", r"const gnomon_csr \*", ".*", "&f->csr[0]"),
    (".*", r"const gnomon_coo \*", ".*", "&f->coo"),
    (".*", r"const gnomon_named_(array|tensor) \*", ".*", "&f->named_{1}"),
    (".*", r"gnomon_member_fn", ".*", "take_member"),
    (".*", r"gnomon_describe_fn", ".*", "take_description"),
    (".*", r"gnomon_(lsh|sparse|rabitq)_fault_fn", ".*", "take_fault"),
    ("gnomon_reader_open|gnomon_file_(members|describe)", r"const char \*", "path", "f->npy"),
    ("gnomon_lsh_(open|check)", r"const char \*", "path", "f->index_file"),
    ("gnomon_rabitq_(open|check)", r"const char \*", "path", "f->rabitq_file"),
    ("gnomon_rabitq_.*", r"(const )?gnomon_rabitq \*", ".*", "f->rabitq"),
    ("gnomon_sparse_index_(open|check)", r"const char \*", "path", "f->sparse_file"),
    ("gnomon_sparse_builder_(create|extend)", r"const char \*", "path", "\"out.gnx\""),
    ("gnomon_sparse_.*", r"(const )?gnomon_sparse_index \*", ".*", "f->sparse_index"),
    ("gnomon_sparse_builder_finish", r"gnomon_sparse_builder \*", ".*", "f->full_sparse_builder"),
    ("gnomon_writer_open", r"const char \*", "path", "\"out.npy\""),
    (".*npz.*", r"const char \*", "path", "\"out.npz\""),
    (".*hdf5.*", r"const char \*", "path", "\"out.h5\""),
    (".*", r"const char \*", "path|a|b", "\"out.txt\""),
    ("gnomon_model_from_json", r"const char \*", "json", "f->model_json"),
    ("gnomon_model_from_json", r"size_t", "length", "strlen(f->model_json)"),
    ("gnomon_operator_from_json", r"const char \*", "json", "f->operator_json"),
    ("gnomon_operator_from_json", r"size_t", "length", "strlen(f->operator_json)"),
    (".*", r"const char \*", "text", "\"text\""),
    (".*", r"size_t", "length", "4"),
    (".*", r"const char \*", "format", "\"npy\""),
    (".*", r"const char \*", "name", "\"gaussian\""),
    (".*", r"char \*\*", ".*", "(char **)&f->out"),
    (".*", r"gnomon_\w+ \*\*", ".*", "(void *)&f->out"),
    (".*", r"const int64_t \*", ".*", "f->ids"),
    (".*", r"int64_t \*", "representatives", "f->more_numbers"),
    (".*", r"int64_t \*", ".*", "f->numbers"),
    (".*", r"double \*", ".*", "f->reals"),
    (".*", r"int \*", ".*", "f->flags"),
    (".*", r"void \*", "user", "f"),
    (".*", r"gnomon_dtype", ".*", "GNOMON_F32"),
    (".*", r"gnomon_gemm_side", ".*", "GNOMON_GEMM_ST_RIGHT"),
    (".*", r"gnomon_status", ".*", "GNOMON_ERROR_SHAPE"),
    (".*", r"gnomon_(kind|bound|metric|lsh_family|join_method)", ".*", "1"),
    (".*", r"int64_t", "row|col|i", "0"),
    (".*", r"int64_t", "j|count", "1"),
    (".*", r"int", "count", "1"),
    (".*", r"int", ".*", "0"),
    (".*", r"int64_t", ".*", "8"),
    (".*", r"uint64_t", ".*", "1"),
    (".*", r"double", "eps|distance", "0.5"),
    (".*", r"double", ".*", "0"),
]

# How an argument of a type can be spoilt: (what, C statement over *v, its copy, and the statuses due).
ARGUMENT, REFUSED = "1", "2"
SPOILS = {
    "gnomon_matrix": [
        ("data is NULL", "v.data = NULL;", ARGUMENT),
        ("data is one byte off", "v.data = (char *)v.data + 1;", ARGUMENT),
        ("row_stride is INT64_MIN", "v.row_stride = INT64_MIN;", ARGUMENT),
        ("col_stride is INT64_MIN", "v.col_stride = INT64_MIN;", ARGUMENT),
        ("rows is -1", "v.rows = -1;", ARGUMENT),
        ("rows is INT64_MIN", "v.rows = INT64_MIN;", REFUSED),
        ("cols is INT64_MIN", "v.cols = INT64_MIN;", REFUSED),
        ("dtype is 99", "v.dtype = (gnomon_dtype)99;", REFUSED),
        ("memory is 99", "v.memory = (gnomon_memory)99;", REFUSED),
    ],
    "gnomon_tensor": [
        ("data is one byte off", "v.data = (char *)v.data + 1;", ARGUMENT),
        ("stride[0] is INT64_MIN", "v.stride[0] = INT64_MIN;", ARGUMENT),
        ("size[0] is INT64_MIN", "v.size[0] = INT64_MIN;", ARGUMENT),
        ("modes is -1", "v.modes = -1;", ARGUMENT),
    ],
    "gnomon_csr": [
        ("offsets is NULL", "v.offsets = NULL;", ARGUMENT),
        ("indices is NULL", "v.indices = NULL;", ARGUMENT),
        ("values is NULL", "v.values = NULL;", ARGUMENT),
        ("offsets is one byte off", "v.offsets = (const int64_t *)((const char *)v.offsets + 1);", ARGUMENT),
        ("indices is one byte off", "v.indices = (const int64_t *)((const char *)v.indices + 1);", ARGUMENT),
        ("values is one byte off", "v.values = (const char *)v.values + 1;", ARGUMENT),
        ("offsets begin at INT64_MIN", "v.offsets = offsets(INT64_MIN, 0);", REFUSED),
        ("offsets begin at INT64_MIN and end at its end", "v.offsets = offsets(INT64_MIN, INT64_MAX);", REFUSED),
        ("offsets begin at -1 and end at INT64_MAX", "v.offsets = offsets(-1, INT64_MAX);", REFUSED),
        ("offsets fall to INT64_MIN", "v.offsets = offsets(INT64_MAX, INT64_MIN);", REFUSED),
        ("offsets are all INT64_MIN", "v.offsets = offsets(INT64_MIN, INT64_MIN);", REFUSED),
        ("rows is INT64_MIN", "v.rows = INT64_MIN;", REFUSED),
        ("cols is INT64_MIN", "v.cols = INT64_MIN;", REFUSED),
        ("dtype is 99", "v.dtype = (gnomon_dtype)99;", REFUSED),
    ],
    "gnomon_coo": [
        ("row_indices is NULL", "v.row_indices = NULL;", ARGUMENT),
        ("col_indices is NULL", "v.col_indices = NULL;", ARGUMENT),
        ("values is NULL", "v.values = NULL;", ARGUMENT),
        ("row_indices is one byte off", "v.row_indices = (const int64_t *)((const char *)v.row_indices + 1);", ARGUMENT),
        ("col_indices is one byte off", "v.col_indices = (const int64_t *)((const char *)v.col_indices + 1);", ARGUMENT),
        ("values is one byte off", "v.values = (const char *)v.values + 1;", ARGUMENT),
        ("nonzeros is INT64_MIN", "v.nonzeros = INT64_MIN;", ARGUMENT),
    ],
    "gnomon_named_array": [
        ("name is NULL", "v.name = NULL;", ARGUMENT),
        ("matrix.data is NULL", "v.matrix.data = NULL;", ARGUMENT),
        ("matrix.data is one byte off", "v.matrix.data = (char *)v.matrix.data + 1;", ARGUMENT),
    ],
    "gnomon_named_tensor": [
        ("name is NULL", "v.name = NULL;", ARGUMENT),
        ("tensor.data is NULL", "v.tensor.data = NULL;", ARGUMENT),
        ("tensor.data is one byte off", "v.tensor.data = (char *)v.tensor.data + 1;", ARGUMENT),
    ],
    "gnomon_svd_rows": [
        ("next is NULL", "v.next = NULL;", ARGUMENT),
    ],
    "gnomon_svd_sparse_rows": [
        ("next is NULL", "v.next = NULL;", ARGUMENT),
        ("rewind is NULL", "v.rewind = NULL;", ARGUMENT),
        ("rows is INT64_MIN", "v.rows = INT64_MIN;", ARGUMENT),
        ("cols is INT64_MIN", "v.cols = INT64_MIN;", ARGUMENT),
    ],
    "gnomon_join_points": [
        ("read is NULL", "v.read = NULL;", ARGUMENT),
    ],
    "gnomon_join_rows": [
        ("read is NULL", "v.read = NULL;", ARGUMENT),
        ("offsets is NULL", "v.offsets = NULL;", ARGUMENT),
        ("offsets is one byte off", "v.offsets = (const int64_t *)((const char *)v.offsets + 1);", ARGUMENT),
        ("offsets begin at INT64_MIN", "v.offsets = offsets(INT64_MIN, 0);", REFUSED),
        ("offsets end at INT64_MAX", "v.offsets = offsets(0, INT64_MAX);", REFUSED),
        ("offsets fall to INT64_MIN", "v.offsets = offsets(INT64_MAX, INT64_MIN);", REFUSED),
        ("rows is INT64_MIN", "v.rows = INT64_MIN;", REFUSED),
        ("cols is INT64_MIN", "v.cols = INT64_MIN;", REFUSED),
    ],
    "gnomon_svd_options": [
        ("u is one byte off", "static gnomon_matrix u; u = f->matrix[2]; u.data = (char *)u.data + 1; v.u = &u;", ARGUMENT),
        ("vt is one byte off", "static gnomon_matrix u; u = f->matrix[2]; u.data = (char *)u.data + 1; v.vt = &u;", ARGUMENT),
        ("u's data is NULL", "static gnomon_matrix u; u = f->matrix[2]; u.data = NULL; v.u = &u;", ARGUMENT),
        ("center is 2", "v.center = 2;", ARGUMENT),
        ("standardize is 2", "v.standardize = 2;", ARGUMENT),
        ("standardize with single_pass", "v.standardize = v.single_pass = 1;", ARGUMENT),
    ],
    "gnomon_svd_transform_options": [
        ("vt is NULL", "v.vt = NULL;", ARGUMENT),
        ("vt is one byte off", "static gnomon_matrix u; u = f->matrix[2]; u.data = (char *)u.data + 1; v.vt = &u;", ARGUMENT),
        ("mean has NaN", "static double m[N]; m[1] = NAN; v.mean = m;", ARGUMENT),
        ("scale has 0", "static double m[N]; v.scale = m;", ARGUMENT),
        ("whiten without s", "v.whiten = 1; v.s = NULL;", ARGUMENT),
        ("whiten without rows", "static double m[N]; v.s = m; v.whiten = 1;", ARGUMENT),
        ("whiten is 2", "v.whiten = 2;", ARGUMENT),
        ("inverse is 2", "v.inverse = 2;", ARGUMENT),
    ],
}
NOT_HERE = {  # no fault there: the data of a stream is not looked at
    ("gnomon_hosvd_stream", "data is one byte off"),
}


TELLS = {"gnomon_svd_memory"}  # they return a number, and -1 of what is not valid, and no status
NOT_READ = {  # (function, place) of structs that a call says it does not read
    ("gnomon_lsh_collision", "functions.descriptor"),
}
ARRAYS = set()  # (struct, member) of those that are arrays


def declarations(folder):
    import glob
    for path in sorted(glob.glob(f"{folder}/gnomon/*.h")):
        with open(path) as f:
            text = f.read()
        inits = re.findall(r"#define (GNOMON_\w+_INIT)\b.*?sizeof\((gnomon_\w+)\)", text, re.S)
        text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
        text = "\n".join(x for x in text.split("\n") if not x.startswith("#"))
        for declared in re.findall(r"GNOMON_API ([^;]*);", text):
            declared = " ".join(declared.split())
            found = re.fullmatch(r"(.*?)(\w+)\((.*)\)", declared)
            result, name, parameters = found.group(1).strip(), found.group(2), []
            if found.group(3) != "void":
                for p in found.group(3).split(","):
                    typed, called = re.fullmatch(r"(.*?)(\w+)", p.strip()).groups()
                    parameters.append((typed.strip(), called))
            yield "call", (result, name, parameters)
        for struct, body in re.findall(r"typedef struct (gnomon_\w+) \{([^{}]*)\} \1;", text):
            members = []
            for member in filter(None, (" ".join(x.split()) for x in body.split(";"))):
                if "(" in member:
                    members.append((re.search(r"\(\*(\w+)\)", member).group(1), ""))
                else:
                    first, *more = member.split(",")
                    typed, first = re.fullmatch(r"(.*?)(\w+(?:\[\w+\])?)", first.strip()).groups()
                    for name in [first] + [x.strip(" *") for x in more]:
                        members.append((name.split("[")[0], typed.strip()))
                        if "[" in name:
                            ARRAYS.add((struct, members[-1][0]))
            yield "struct", (struct, members)
        for struct in re.findall(r"typedef struct (gnomon_\w+) \1;", text):
            yield "opaque", struct
        for macro, struct in inits:
            yield "init", (macro, struct)


def leaves(struct, structs):
    """The members of a struct, and theirs where they are structs."""
    out = []
    for name, typed in structs[struct]:
        out += [f"{name}.{x}" for x in leaves(typed, structs)] if typed in structs else [name]
    return out


def type_of_pointer(typed):
    found = re.fullmatch(r"(?:const )?(gnomon_\w+) \*", typed)
    return found.group(1) if found else None


def sized(struct, structs):
    return struct in structs and structs[struct][0][0] == "struct_size"


def places(struct, structs):
    """Where sized structs stand in options: (path, their type, whether it is a pointer)."""
    for name, typed in structs[struct]:
        if sized(typed, structs):
            yield name, typed, False
            yield from ((f"{name}.{path}", inner, far) for path, inner, far in places(typed, structs))
        elif sized(type_of_pointer(typed), structs):
            yield name, type_of_pointer(typed), True


def comparable(struct, structs, prefix=""):
    """The members of a result that two runs of a call have in common: (path, how they are compared)."""
    for name, typed in structs[struct]:
        path = prefix + name + ("[0]" if (struct, name) in ARRAYS and (typed in structs or typed.endswith("*")) else "")
        if typed in structs:
            yield from comparable(typed, structs, path + ".")
        elif typed.endswith("*"):
            yield path, "pointer"
        elif typed and name != "struct_size" and not name.endswith("seconds"):
            yield path, "bytes"


def valid(function, typed, called, opaque):
    for where, kind, name, expression in VALID:
        if re.fullmatch(where, function) and re.fullmatch(kind, typed) and re.fullmatch(name, called):
            group = re.fullmatch(kind, typed).groups()
            return expression.replace("{1}", (group[0] or "") if group else "")
    struct = re.fullmatch(r"(const )?(gnomon_\w+) \*", typed)
    if struct:  # options, results and objects: members of the fixture named as their types
        return f"{'' if struct.group(2) in opaque else '&'}f->{struct.group(2)[7:]}"
    sys.exit(f"calls.py: it does not know what to give {function} for {called} ({typed}): add to VALID")


def pointer(typed):
    return typed.endswith("*") or typed.endswith("_fn")


def main():
    folder, output = sys.argv[1:]
    calls, inits, opaque, structs = [], {}, set(), {}
    for kind, what in declarations(folder):
        if kind == "call":
            calls.append(what)
        elif kind == "opaque":
            opaque.add(what)
        elif kind == "struct":
            structs[what[0]] = what[1]
        else:
            inits[what[1]] = what[0]
    out = ["/* Made by calls.py. */", ""]
    rows, covered = [], set()
    for struct in sorted(structs):  # before the calls, which refer to them
        if not sized(struct, structs):
            continue
        out.append(f"static const api_member members_{struct}[] = {{")
        for path, how in comparable(struct, structs):
            out.append(f"    {{offsetof({struct}, {path}), sizeof ((({struct} *)0)->{path}), {int(how == 'pointer')}, \"{path}\"}},")
        out += ["    {0, 0, 0, NULL},", "};"]
        if struct in inits:
            out.append(f"static const {struct} defaults_{struct} = {inits[struct]};")
    for result, name, parameters in calls:
        out.append(f"static gnomon_status call_{name}(fixture *f, int null, int spoil)")
        out += ["{", "    (void)f, (void)null, (void)spoil;"]
        given, arguments, spoils, sizes = [], [], [], []
        for i, (typed, called) in enumerate(parameters):
            expression = valid(name, typed, called, opaque)
            bare = re.sub(r"^const | \*$", "", typed)
            if expression == f"&f->{bare[7:]}" and not typed.startswith("const ") and bare not in inits:
                out.append(f"    static {bare} r{i};")  # a result
                if structs[bare][0][0] == "struct_size":
                    out.append(f"    r{i}.struct_size = sizeof r{i};")
                expression = f"&r{i}"
            space = "" if typed.endswith("*") else " "
            out.append(f"    {typed}{space}a{i} = {expression};")
            bare = re.sub(r"^const | \*$", "", typed)
            if typed.startswith("const ") and bare in SPOILS:
                out += [f"    {bare} v{i} = *a{i};", f"    (void)v{i};"]
                for what, code, due in SPOILS[bare]:
                    if (name, what) in NOT_HERE or name in TELLS:
                        continue
                    spoils.append((f"{called}: {what}", due))
                    code = re.sub(r"\bv\b", f"v{i}", code)
                    out.append(f"    if (spoil == {len(spoils)}) {{ {code} a{i} = &v{i}; }}")
            if sized(bare, structs) and typed == f"const {bare} *":
                covered.add(bare)
                sizes.append((called, bare, f"&defaults_{bare}", 0))
                out.append(f"    if (f->size.place == {len(sizes)}) a{i} = resized_options(f, a{i});")
                inside = [x for x in places(bare, structs) if (name, f"{called}.{x[0]}") not in NOT_READ]
                if inside:
                    out.append(f"    static {bare} w{i};")
                for path, inner, far in inside:
                    covered.add(inner)
                    sizes.append((f"{called}.{path}", inner, f"&defaults_{inner}", 0 if far else 1))
                    change = (f"w{i}.{path} = resized_options(f, &f->{inner[7:]})" if far else
                              f"resize_inside(f, &w{i}.{path})")
                    out.append(f"    if (f->size.place == {len(sizes)}) {{ w{i} = *a{i}; {change}; a{i} = &w{i}; }}")
            elif sized(bare, structs) and typed == f"{bare} *" and not name.endswith("_init"):
                covered.add(bare)
                sizes.append((called, bare, "NULL", 0))
                out.append(f"    if (f->size.place == {len(sizes)}) a{i} = resized_result(f, a{i}, {int(name.endswith('_free'))});")
            if pointer(typed):
                out.append(f"    if (null == {i}) a{i} = NULL;")
                optional = any(re.fullmatch(w, name) and re.fullmatch(n, called) for w, n in OPTIONAL)
                arguments.append((i, called, int(optional)))
            given.append(f"a{i}")
        if name.endswith("_free"):  # without the context that it is of, a result is not touched
            out.append("    if (null == 0) memset(a1, 0x55, sizeof *a1);")
        call = f"{name}({', '.join(given)})"
        if result == "gnomon_status" and name != "gnomon_status_name":
            out.append(f"    return {call};")
        elif result == "void":
            out += [f"    {call};", "    return GNOMON_OK;"]
        else:
            out += [f"    (void){call};", "    return GNOMON_OK;"]
        out += ["}", ""]
        handle = any(typed.endswith("**") for typed, _ in parameters)
        rows.append((name, result == "gnomon_status", handle, arguments, spoils, sizes))
    for struct in structs:
        if sized(struct, structs) and struct not in covered:
            sys.exit(f"calls.py: no call takes {struct} in another size")
    for name, _, _, arguments, spoils, sizes in rows:
        if arguments:
            out.append(f"static const api_argument arguments_{name}[] = {{")
            out += [f'    {{{i}, "{called}", {optional}}},' for i, called, optional in arguments] + ["};"]
        if spoils:
            out.append(f"static const api_spoil spoils_{name}[] = {{")
            out += [f'    {{"{what}", {due}}},' for what, due in spoils] + ["};"]
        if sizes:
            out.append(f"static const api_size sizes_{name}[] = {{")
            for called, struct, defaults, inside in sizes:
                free = f"{struct}_free" if f"{struct}_free" in {x for _, x, _ in calls} else "NULL"
                out.append(f'    {{"{called}", "{struct}", sizeof({struct}), {defaults}, {inside}, members_{struct}, '
                           f"(free_function){free}}},")
            out.append("};")
    out.append("static const api_call calls[] = {")
    for name, status, handle, arguments, spoils, sizes in rows:
        out.append(f'    {{"{name}", call_{name}, {int(status)}, {int(handle)}, {len(arguments)}, {len(spoils)}, {len(sizes)}, '
                   f"{f'arguments_{name}' if arguments else 'NULL'}, {f'spoils_{name}' if spoils else 'NULL'}, "
                   f"{f'sizes_{name}' if sizes else 'NULL'}}},")
    out += ["};", ""]
    out.append("static int check_inits(void)")
    out += ["{", "    int bad = 0;"]
    declared = {name for _, name, _ in calls}
    for struct, macro in sorted(inits.items()):
        function = f"{struct}_init"
        if function not in declared:
            sys.exit(f"calls.py: {macro} has no {function}")
        out += ["    {", f"        const {struct} due = {macro};", f"        _Alignas(16) unsigned char room[sizeof({struct}) + 64];",
                "        memset(room, 0xa5, sizeof room);", f"        bad += {function}((void *)room, sizeof due) != GNOMON_OK;",
                f"        const {struct} *made = (void *)room;", "        bool same = true;"]
        for member in leaves(struct, structs):
            out.append(f"        same &= SAME_MEMBER(due.{member}, made->{member});")
        out += [f'        bad += different("{function}", same, room, sizeof due, sizeof room);',
                f'        bad += other_sizes("{function}", (init_function){function}, sizeof due);',
                "    }"]
    out += ["    return bad;", "}"]
    with open(output, "w") as f:
        f.write("\n".join(out) + "\n")


if __name__ == "__main__":
    main()
