"""Near-duplicates of texts."""
from __future__ import annotations

import contextlib
import ctypes
import os
from typing import Any, Iterable, Iterator, NamedTuple, Optional, Sequence, Union

import numpy as np

from . import _abi
from . import _arrow
from ._arrays import integer, real, seed_of
from ._context import Progress, lease
from ._library import lib

_NAMES = {"options.similarity": "similarity", "options.recall": "recall", "options.bands": "bands", "options.rows": "rows",
          "options.ngram": "ngram", "options.bucket": "bucket", "options.seed": "random_state",
          "options.unverified": "unverified", "options.containment": "containment", "options.lower": "lower",
          "options.punctuation": "punctuation", "options.normalize": "normalize", "documents": "texts", "options.min_bytes": "min_bytes"}
_PARTS = {"lines": _abi.GNOMON_PART_LINE, "paragraphs": _abi.GNOMON_PART_PARAGRAPH}
_KEEP = {"first": _abi.GNOMON_DEDUP_FIRST, "longest": _abi.GNOMON_DEDUP_LONGEST}
_LOWER = {False: _abi.GNOMON_LOWER_NONE, True: _abi.GNOMON_LOWER_ASCII, "fold": _abi.GNOMON_LOWER_FOLD}
_PUNCTUATION = {False: _abi.GNOMON_PUNCTUATION_DROP, True: _abi.GNOMON_PUNCTUATION_KEEP,
                "drop-all": _abi.GNOMON_PUNCTUATION_DROP_ALL}
_FORMS = {None: _abi.GNOMON_NORMAL_NONE, "nfc": _abi.GNOMON_NORMAL_NFC, "nfkc": _abi.GNOMON_NORMAL_NFKC}
_Path = Union[str, bytes, "os.PathLike[Any]"]
_BATCH = 1 << 22  # bytes of text that are given to the library at a time


class DedupInfo(NamedTuple):
    """Counts of a deduplication; `uncompared` pairs are those that the guarantee of `recall` leaves out, `held` the texts
    that aren't kept for one of the `old` documents of `against`.

    Examples
    --------
    >>> import gnomon
    >>> info = gnomon.dedup(["one line of text", "one line of text", "something else altogether"]).info
    >>> info.documents, info.distinct, info.clusters
    (3, 2, 1)
    """

    documents: int
    empty: int
    distinct: int
    clusters: int
    bands: int
    rows: int
    recall_bound: float
    candidates: int
    uncompared: int
    why: str
    old: int = 0
    held: int = 0


class Dedup(NamedTuple):
    """Near-duplicates: ``kept, representatives, *_ = dedup(texts)``.

    ``kept`` are the numbers of the texts to keep, ascending; ``representatives[i]`` is the one that is kept for text i;
    ``pairs`` of shape (n_pairs, 2) are those found, i < j, sorted, and ``similarities`` theirs. Numbers of ``len(texts)`` or
    more are documents of `against`, whose names ``old_names`` has, by number.

    Examples
    --------
    >>> import gnomon
    >>> found = gnomon.dedup(["one line of text", "one line of text", "something else altogether"])
    >>> found.kept.tolist(), found.representatives.tolist(), found.similarities.tolist()
    ([0, 2], [0, 0, 2], [1.0])
    """

    kept: np.ndarray
    representatives: np.ndarray
    pairs: np.ndarray
    similarities: np.ndarray
    info: DedupInfo
    old_names: dict[int, bytes] = {}


class DedupParts(NamedTuple):
    """Texts without their repeated parts, None for one of which nothing is left; and counts: of the texts that lost a part
    and are left, of the parts and the distinct ones, and of the parts removed and their bytes. ``most_frequent`` says how
    often the most frequent parts occur.

    Examples
    --------
    >>> import gnomon
    >>> found = gnomon.dedup_parts(["Home\\nabout cats", "Home\\nabout dogs"])
    >>> found.texts, found.removed, found.most_frequent
    (['Home\\nabout cats', 'about dogs'], 1, [2])
    """

    texts: list[Union[str, bytes, None]]
    changed: int
    parts: int
    distinct: int
    removed: int
    removed_bytes: int
    most_frequent: list[int]


def _give(ctx: lease, handle: Any, text: Any, begins: np.ndarray, ends: np.ndarray, add: Any) -> None:
    """text: bytes, or where they lie."""
    pointer = ctypes.POINTER(ctypes.c_int64)
    documents = _abi.gnomon_documents(struct_size=ctypes.sizeof(_abi.gnomon_documents), count=len(begins), text=text,
                                      begins=begins.ctypes.data_as(pointer), ends=ends.ctypes.data_as(pointer))
    ctx.check((add or lib.gnomon_dedup_add)(handle, ctypes.byref(documents)))


def _add(ctx: lease, handle: Any, batch: list[bytes], add: Any = None) -> None:
    ends = np.cumsum([len(text) for text in batch], dtype=np.int64)
    _give(ctx, handle, b"".join(batch), np.concatenate([np.zeros(1, np.int64), ends[:-1]]), ends, add)


def _add_column(ctx: lease, handle: Any, texts: _arrow.Texts, add: Any) -> None:
    """In parts of about _BATCH bytes, as the others, so that Ctrl-C is seen."""
    before = np.cumsum(texts.ends - texts.begins)
    at = 0
    while at < len(before):
        done = int(before[at - 1]) if at else 0
        end = max(at + 1, int(np.searchsorted(before, done + _BATCH)))
        _give(ctx, handle, texts.address or b"", texts.begins[at:end], texts.ends[at:end], add)
        at = end


def _add_all(ctx: lease, handle: Any, texts: Iterable[Union[str, bytes]], add: Any = None,
             are_bytes: Optional[list[bool]] = None) -> int:
    """Returns how many there were; are_bytes receives which of them are bytes (of a column none)."""
    column = _arrow.texts(texts, "texts")
    count = 0
    if column is not None:
        for chunk in column:
            _add_column(ctx, handle, chunk, add)
            count += len(chunk.begins)
        return count
    batch: list[bytes] = []
    size = 0
    for i, text in enumerate(texts):
        if not isinstance(text, (str, bytes)):
            raise TypeError(f"texts must be str or bytes; number {i} is {type(text).__name__}")
        if are_bytes is not None:
            are_bytes.append(isinstance(text, bytes))
        batch.append(text.encode() if isinstance(text, str) else text)
        size += len(batch[-1])
        count += 1
        if size >= _BATCH:
            _add(ctx, handle, batch, add)
            batch, size = [], 0
    if batch:
        _add(ctx, handle, batch, add)
    return count


def _one_of(value: Any, choices: dict[Any, int], name: str) -> int:
    try:
        return choices[value]
    except (KeyError, TypeError):
        raise ValueError(f"{name} is {value!r}; it must be one of {', '.join(map(repr, choices))}") from None


def _copy(pointer: Any, count: int, dtype: Any) -> np.ndarray:
    if not count:
        return np.empty(0, dtype)
    size = count * np.dtype(dtype).itemsize
    return np.frombuffer(ctypes.string_at(pointer, size), dtype).copy()


def _take(handle: Any, result: Any) -> Dedup:
    representatives = _copy(lib.gnomon_dedup_representatives(handle), result.documents, np.int64)
    count = ctypes.c_int64()
    found = lib.gnomon_dedup_pairs(handle, ctypes.byref(count))
    pairs = _copy(found, count.value, np.dtype([("i", np.uint32), ("j", np.uint32), ("similarity", np.float64)]))
    info = DedupInfo(result.documents, result.empty, result.distinct, result.clusters, result.bands, result.rows,
                     result.recall_bound, result.candidates, result.uncompared, result.why.decode(),
                     result.old, result.held)
    numbers = np.concatenate([representatives, pairs["j"].astype(np.int64)])
    names = {int(i): ctypes.string_at(lib.gnomon_dedup_name(handle, int(i)))
             for i in np.unique(numbers[numbers >= result.documents])}
    return Dedup(np.flatnonzero(representatives == np.arange(len(representatives))), representatives,
                 np.stack([pairs["i"], pairs["j"]], axis=1).astype(np.int64), pairs["similarity"].copy(), info, names)


def _add_old(ctx: lease, handle: Any, against: Union[_Path, Sequence[_Path]]) -> None:
    paths = [against] if isinstance(against, (str, bytes, os.PathLike)) else list(against)
    names = (ctypes.c_char_p * len(paths))(*(os.fsencode(path) for path in paths))
    ctx.check(lib.gnomon_dedup_add_old(handle, names, len(paths)))


def _new_options() -> Any:
    options = _abi.gnomon_dedup_options()
    lib.gnomon_dedup_options_init(ctypes.byref(options), ctypes.sizeof(options))
    return options


def _counted_as(options: Any, ngram: int, characters: bool, lower: Union[bool, str], punctuation: Union[bool, str],
                normalize: Optional[str], weighted: bool) -> None:
    options.ngram, options.characters = integer(ngram, "ngram", 1, 64), bool(characters)
    options.lower, options.punctuation = _one_of(lower, _LOWER, "lower"), _one_of(punctuation, _PUNCTUATION, "punctuation")
    options.normalize, options.weighted = _one_of(normalize, _FORMS, "normalize"), bool(weighted)


def _found_by(similarity: float, recall: float, bands: Optional[int], rows: Optional[int], unverified: bool, bucket: int,
              keep: str, random_state: Any, containment: bool) -> Any:
    options = _new_options()
    if keep not in _KEEP:
        raise ValueError(f"keep is {keep!r}; it must be one of {', '.join(_KEEP)}")
    if (bands is None) != (rows is None):
        raise ValueError("bands and rows: both must be given, or neither")
    options.similarity, options.recall = real(similarity, "similarity"), real(recall, "recall")
    options.bucket, options.unverified = integer(bucket, "bucket", 2), bool(unverified)
    options.containment = bool(containment)
    options.keep, options.seed = _KEEP[keep], seed_of(random_state)
    if bands is not None:
        options.bands, options.rows = integer(bands, "bands", 1), integer(rows, "rows", 1)
    return options


@contextlib.contextmanager
def _opened(options: Any, n_jobs: Optional[int], progress: Progress) -> Iterator[tuple[Any, Any]]:
    handle = ctypes.c_void_p()
    with lease(_NAMES, n_jobs, "cpu", progress) as ctx:
        ctx.call(lib.gnomon_dedup_create, ctypes.byref(options), ctypes.byref(handle))
        try:
            yield ctx, handle
        finally:
            lib.gnomon_dedup_destroy(handle)


def _run(ctx: lease, handle: Any) -> Dedup:
    result = _abi.gnomon_dedup_result(struct_size=ctypes.sizeof(_abi.gnomon_dedup_result))
    ctx.check(lib.gnomon_dedup_run(handle, ctypes.byref(result)))
    return _take(handle, result)


def dedup(texts: Iterable[Union[str, bytes]], *, similarity: float = 0.8, ngram: int = 3, characters: bool = False,
          lower: Union[bool, str] = False, punctuation: Union[bool, str] = False, normalize: Optional[str] = None,
          recall: float = 0.95, bands: Optional[int] = None,
          rows: Optional[int] = None, exact: bool = False, unverified: bool = False, weighted: bool = False,
          containment: bool = False, bucket: int = 256, keep: str = "first", against: Union[None, _Path, Sequence[_Path]] = None,
          random_state: Any = 0, n_jobs: Optional[int] = None, progress: Progress = None) -> Dedup:
    """Finds near-duplicate texts and which of them to keep.

    A text is the set of its n-grams. MinHash bands select candidate pairs, the Jaccard similarity of each is computed
    from the sets, and one text is kept of each cluster that the pairs connect. The command `gnomon dedup` does the same
    for files.

    Parameters
    ----------
    texts : iterable of str or bytes, or a column of Arrow's
        The texts, of any length; bytes must be UTF-8. They are read once. A column of strings or bytes that shows itself
        by Arrow's PyCapsule interface (pyarrow's arrays and chunked arrays, polars' Series) is read where it lies.
    similarity : float
        Texts of this Jaccard similarity or more are near, in (0, 1].
    ngram : int
        Words of an n-gram, from 1 to 64. A text of fewer is one n-gram; one of none is near no other.
    characters : bool
        N-grams of characters rather than words.
    lower : bool or "fold"
        ASCII letters count in lower case; with ``"fold"`` all letters, by Unicode's full case folding.
    punctuation : bool or "drop-all"
        ASCII punctuation belongs to words; otherwise it separates them as white space does. With ``"drop-all"`` all of
        Unicode's punctuation, symbols and separators do.
    normalize : {None, "nfc", "nfkc"}
        A normal form of Unicode, before and after folding.
    recall : float
        At least this share of all near pairs is found, in 19 of 20 seeds; ``info.uncompared`` counts the pairs that this
        does not cover. With 1 all are found, by an exact join in memory.
    bands, rows : int, optional
        So many bands of so many hashes, instead of those that `recall` needs.
    exact : bool
        Only equal texts are duplicates.
    unverified : bool
        Texts that share a band and an n-gram are near, whatever their similarity.
    weighted : bool
        An n-gram counts as often as a text has it; the similarity is the sum of the lesser counts over that of the greater
        ones.
    containment : bool
        The similarity is the share of the smaller text's n-grams that the larger one has. All near pairs are found, and
        `recall` and `random_state` are ignored.
    bucket : int
        In buckets of more distinct sets than this each is compared with at most 64 others.
    keep : str
        The ``"first"`` text of each cluster, or the ``"longest"`` in UTF-8 bytes.
    against : path or sequence of paths, optional
        Signature files of an old corpus, which `gnomon dedup --sign` writes, with the same n-grams. Texts near one of its
        documents, or connected with one by others, are not kept; their representative is the first such document.
    random_state : int, numpy.random.Generator, numpy.random.RandomState or None
        The seed of the hash functions.
    n_jobs, progress
        As for `set_config`.

    Returns
    -------
    Dedup
        ``kept``, ``representatives``, ``pairs`` (int64), ``similarities`` (float64) and ``info``. Of equal sets each is
        paired with the first one alone.

    Examples
    --------
    >>> import gnomon
    >>> texts = ["the cat sat on the mat today", "a wholly different line of text", "the cat sat on the mat again"]
    >>> found = gnomon.dedup(texts, similarity=0.6)
    >>> found.kept
    array([0, 1])
    >>> found.pairs, found.similarities
    (array([[0, 2]]), array([0.66666667]))
    """
    if isinstance(texts, (str, bytes)):
        raise TypeError("texts is one text; it must be several")
    options = _found_by(similarity, recall, bands, rows, unverified, bucket, keep, random_state, containment)
    _counted_as(options, ngram, characters, lower, punctuation, normalize, weighted)
    options.exact = bool(exact)
    with _opened(options, n_jobs, progress) as (ctx, handle):
        _add_all(ctx, handle, texts)
        if against is not None:
            _add_old(ctx, handle, against)
        return _run(ctx, handle)


def dedup_parts(texts: Iterable[Union[str, bytes]], *, parts: str = "lines", min_bytes: int = 1,
                n_jobs: Optional[int] = None, progress: Progress = None) -> DedupParts:
    """Removes repeated lines or paragraphs from texts; `gnomon dedup --exact --parts` does the same for JSON lines.

    Of equal parts, within a text and among all, the first stays and the others are removed, with the end of the line; of a
    paragraph with the blank lines behind it. Blank lines are no parts. A text of which nothing but white space is left is
    None.

    Parameters
    ----------
    texts : iterable of str or bytes, or a column of Arrow's
        As for `dedup`.
    parts : {"lines", "paragraphs"}
        What is compared, byte by byte: lines without their ends, or what stands between blank lines.
    min_bytes : int
        Shorter parts stay.
    n_jobs, progress
        As for `set_config`.

    Returns
    -------
    DedupParts
        ``texts``, of the types that were given (str for a column), and counts.

    Examples
    --------
    >>> import gnomon
    >>> gnomon.dedup_parts(["Home\\nabout cats", "Home\\nabout dogs", "Home"]).texts
    ['Home\\nabout cats', 'about dogs', None]
    """
    if isinstance(texts, (str, bytes)):
        raise TypeError("texts is one text; it must be several")
    options = _abi.gnomon_parts_options()
    lib.gnomon_parts_options_init(ctypes.byref(options), ctypes.sizeof(options))
    options.part, options.min_bytes = _one_of(parts, _PARTS, "parts"), integer(min_bytes, "min_bytes", 1)
    handle = ctypes.c_void_p()
    are_bytes: list[bool] = []
    result = _abi.gnomon_parts_result(struct_size=ctypes.sizeof(_abi.gnomon_parts_result))
    with lease(_NAMES, n_jobs, "cpu", progress) as ctx:
        ctx.call(lib.gnomon_parts_create, ctypes.byref(options), ctypes.byref(handle))
        try:
            count = _add_all(ctx, handle, texts, lib.gnomon_parts_add, are_bytes)
            ctx.check(lib.gnomon_parts_run(handle, ctypes.byref(result)))
            left: list[Union[str, bytes, None]] = []
            text, size = ctypes.c_char_p(), ctypes.c_int64()
            for i in range(count):
                ctx.check(lib.gnomon_parts_left(handle, i, ctypes.byref(text), ctypes.byref(size)))
                one = ctypes.string_at(text, size.value) if text else None
                left.append(one if one is None or (are_bytes and are_bytes[i]) else one.decode())
        finally:
            lib.gnomon_parts_destroy(handle)
    return DedupParts(left, result.changed, result.parts, result.distinct, result.removed, result.removed_bytes,
                      [n for n in result.largest if n])


def _names_of(names: Iterable[str]) -> list[bytes]:
    made = []
    for i, name in enumerate(names):
        if not isinstance(name, str):
            raise TypeError(f"names must be str; number {i} is {type(name).__name__}")
        made.append(name.encode())
        if b"\0" in made[-1]:
            raise ValueError(f"names: number {i} has a NUL character")
    return made


def _texts_of(paths: Iterable[Any]) -> Any:
    if isinstance(paths, (str, bytes, os.PathLike)):
        raise TypeError("paths is one path; it must be several")
    made = [os.fsencode(path) for path in paths]
    return (ctypes.c_char_p * max(len(made), 1))(*made), len(made)


def dedup_sign(texts: Iterable[Union[str, bytes]], path: Any, *, names: Iterable[str], ngram: int = 3, characters: bool = False,
               lower: Union[bool, str] = False, punctuation: Union[bool, str] = False, normalize: Optional[str] = None,
               weighted: bool = False, n_jobs: Optional[int] = None, progress: Progress = None) -> None:
    """Writes the signature file of a part of a corpus, for `dedup_merge`; as `gnomon dedup --sign` does.

    Parameters
    ----------
    texts
        As for `dedup`.
    path : str or path-like
        The file, which is replaced when the new one is complete.
    names : iterable of str
        A name for each text, which should not depend on how the corpus is divided: merged documents are in the order of
        their names, byte by byte in UTF-8.
    ngram, characters, lower, punctuation, normalize, weighted, n_jobs, progress
        As for `dedup`.

    Examples
    --------
    >>> import gnomon, os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     paths = [os.path.join(folder, part) for part in "ab"]
    ...     gnomon.dedup_sign(["the cat sat on the mat today", "another line of text"], paths[0], names=["c", "a"])
    ...     gnomon.dedup_sign(["the cat sat on the mat again"], paths[1], names=["b"])
    ...     found, names = gnomon.dedup_merge(paths, similarity=0.6)
    >>> names, found.kept
    (['a', 'b', 'c'], array([0, 1]))
    """
    if isinstance(texts, (str, bytes)):
        raise TypeError("texts is one text; it must be several")
    options = _new_options()
    _counted_as(options, ngram, characters, lower, punctuation, normalize, weighted)
    made = _names_of(names)
    with _opened(options, n_jobs, progress) as (ctx, handle):
        count = _add_all(ctx, handle, texts)
        if count != len(made):
            raise ValueError(f"names are {len(made)}; there are {count} texts")
        given = (ctypes.c_char_p * max(count, 1))(*made)
        ctx.check(lib.gnomon_dedup_sign(handle, given, os.fsencode(path)))


def dedup_merge(paths: Iterable[Any], *, similarity: float = 0.8, recall: float = 0.95, bands: Optional[int] = None,
                rows: Optional[int] = None, unverified: bool = False, containment: bool = False, bucket: int = 256,
                keep: str = "first",
                random_state: Any = 0, sign: Any = None, n_jobs: Optional[int] = None,
                progress: Progress = None) -> tuple[Dedup, list[str]]:
    """Finds near-duplicates among the documents of signature files; as `gnomon dedup --merge` does.

    The result does not depend on how the corpus was divided into files, or on their order.

    Parameters
    ----------
    paths : iterable of str or path-like
        Signature files, by `dedup_sign` or the command, all with the same n-grams.
    sign : str or path-like, optional
        A signature file of all documents together, to be written too.
    similarity, recall, bands, rows, unverified, containment, bucket, keep, random_state, n_jobs, progress
        As for `dedup`.

    Returns
    -------
    found : Dedup
        Documents are numbered in the order of their names.
    names : list of str
        The documents' names.

    Examples
    --------
    >>> import gnomon, os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     whole = os.path.join(folder, "whole")
    ...     gnomon.dedup_sign(["one line of text", "one line of text", "quite another one"], whole, names="xyz")
    ...     found, names = gnomon.dedup_merge([whole])
    >>> names, found.kept
    (['x', 'y', 'z'], array([0, 2]))
    """
    options = _found_by(similarity, recall, bands, rows, unverified, bucket, keep, random_state, containment)
    options.ngram = 0
    given, count = _texts_of(paths)
    with _opened(options, n_jobs, progress) as (ctx, handle):
        ctx.check(lib.gnomon_dedup_add_signed(handle, given, count))
        found = _run(ctx, handle)
        if sign is not None:
            ctx.check(lib.gnomon_dedup_sign(handle, None, os.fsencode(sign)))
        names = [lib.gnomon_dedup_name(handle, i).decode(errors="surrogateescape") for i in range(found.info.documents)]
        return found, names
