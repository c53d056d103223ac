"""Contexts of the library: who may use one, how a call is watched, and what is freed when."""
from __future__ import annotations

import atexit
import contextlib
import contextvars
import ctypes
import functools
import os
import struct
import weakref
from typing import Any, Callable, Generator, Iterator, Mapping, NamedTuple, Optional, Union

from . import _abi
from ._errors import fail
from ._library import lib

Progress = Union[bool, None, Callable[[str, int, int], Any]]


class _Config(NamedTuple):
    device: str
    n_jobs: Optional[int]
    memory_limit: int
    progress: Progress


_config: contextvars.ContextVar[_Config] = contextvars.ContextVar("gnomon", default=_Config("auto", None, 0, None))


def get_config() -> dict[str, Any]:
    """The settings in force.

    Returns
    -------
    dict
        ``device``, ``n_jobs``, ``memory_limit`` (bytes; 0: 1 GiB) and ``progress``, as `set_config` takes them.

    Examples
    --------
    >>> import gnomon
    >>> gnomon.get_config()["device"]
    'auto'
    """
    return _config.get()._asdict()


def set_config(**settings: Any) -> None:
    """Changes the settings that calls take when they are told nothing else.

    Parameters
    ----------
    device : str
        ``"auto"`` (default): each job runs on a GPU if there is one, it takes the job and the gain exceeds the
        transfer; else on the CPU. ``"cpu"``, ``"cuda"``, ``"cuda:1"``: there.
        ``"cuda:0,1"``, ``"cuda:all"``: divided among several GPUs, where the job can be; ``"auto:all"``: as ``"auto"``,
        with all GPUs that can be used.
    n_jobs : int or None
        Threads of a call. -1: one for each core that the process may use; -2: all but one. None (default): as many as
        ``OMP_NUM_THREADS`` says when the first call begins, as joblib sets it in its worker processes; without it, as -1.
    memory_limit : int
        Bytes of working memory that a call may take beside its input and output; 0 (default): 1 GiB.
    progress : bool, callable or None
        What long calls do that are told nothing: True shows a bar of tqdm; a callable is called as
        ``progress(phase, done, total)`` (total -1: unknown) and ends the call by returning a true value.

    Notes
    -----
    Settings belong to the current context of `contextvars`: threads begin with the defaults.

    Examples
    --------
    >>> import gnomon
    >>> gnomon.set_config(n_jobs=2)
    >>> gnomon.get_config()["n_jobs"]
    2
    >>> gnomon.set_config(n_jobs=None)
    """
    unknown = set(settings) - set(_Config._fields)
    if unknown:
        raise TypeError(f"set_config has no setting {', '.join(sorted(unknown))}")
    changed = _config.get()._replace(**settings)
    _key(changed.device, changed.n_jobs, changed.memory_limit)
    _config.set(changed)


@contextlib.contextmanager
def config_context(**settings: Any) -> Iterator[None]:
    """The same for the block of a ``with`` statement.

    Examples
    --------
    >>> import gnomon
    >>> with gnomon.config_context(memory_limit=1 << 28):
    ...     gnomon.get_config()["memory_limit"]
    268435456
    """
    before = _config.get()
    set_config(**settings)
    try:
        yield
    finally:
        _config.set(before)


def _share() -> int:
    """How many threads OMP_NUM_THREADS leaves a process, of OpenMP's outermost level; 0 where it says nothing."""
    outermost = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return min(int(outermost), 4096) if outermost.isascii() and outermost.isdigit() else 0


_Key = tuple[str, int, int]
_keys: dict[tuple[str, Optional[int], int], _Key] = {}


def _key(device: str, n_jobs: Optional[int], memory_limit: int) -> _Key:
    """What a context is made with: the device, threads (0: one per core) and the memory limit."""
    known = _keys.get((device, n_jobs, memory_limit))
    if known is not None:
        return known
    if not isinstance(device, str):
        raise TypeError(f"device must be a str, not {type(device).__name__}")
    if "\0" in device:
        raise ValueError("device holds a NUL character")
    if n_jobs is None:
        threads = _share()
    elif n_jobs == -1:
        threads = 0
    elif isinstance(n_jobs, bool) or not hasattr(n_jobs, "__index__"):
        raise TypeError(f"n_jobs must be an int or None, not {type(n_jobs).__name__}")
    elif n_jobs == 0:
        raise ValueError("n_jobs is 0; it must be positive, negative (-1: all cores) or None")
    elif n_jobs < 0:
        threads = max(1, len(os.sched_getaffinity(0)) + 1 + int(n_jobs))
    else:
        threads = int(n_jobs)
    if threads > 4096:
        raise ValueError(f"n_jobs is {n_jobs}; at most 4096 threads are allowed")
    if isinstance(memory_limit, bool) or not hasattr(memory_limit, "__index__"):
        raise TypeError(f"memory_limit must be an int, not {type(memory_limit).__name__}")
    if not 0 <= memory_limit < 1 << 63:
        raise ValueError(f"memory_limit is {memory_limit}; it must be 0 (1 GiB) or a positive number of bytes")
    _keys[device, n_jobs, memory_limit] = key = (device, threads, int(memory_limit))
    return key


class Watch:
    """What Python code that the library calls back came to in the call under way."""

    __slots__ = ("error", "report", "stop")

    def __init__(self) -> None:
        self.error: Optional[BaseException] = None
        self.report: Optional[Callable[[str, int, int], Any]] = None
        self.stop = False


def _guarded(watch: Watch, function: Callable[..., None], count: int, failed: int) -> Generator[int, Any, None]:
    key = 0
    arguments: list[Any] = []
    while True:
        try:
            while True:
                try:
                    item = yield key
                    key = -2
                    if item is False:
                        arguments, key = [], 0
                    elif item is failed:
                        key = 1 if watch.stop or watch.error is not None else -1
                    else:
                        arguments.append(item)
                        if len(arguments) == count and watch.error is None:
                            function(*arguments)
                except GeneratorExit:
                    return
                except BaseException as error:
                    key = -2
                    watch.error = watch.error or error
        except BaseException as error:
            key = -2
            watch.error = watch.error or error


def guard(watch: Watch, kind: Any, function: Callable[..., None], count: int, failed: int) -> Any:
    """A C callback of this type that calls function with its count arguments and loses no exception.

    A pending signal's handler runs at the first instruction of the next Python function, so that a function that ctypes
    calls can't catch the KeyboardInterrupt that it begins with: ctypes would print it and go on. A generator resumes
    within its try block and can. Its send takes one argument, so max, which is C, gives it each in turn, as the key
    function: first False (0: go on) and 'failed', of which the one with the larger key is the callback's result, then
    the arguments. What went wrong is in watch.error, and the callback returns 'failed' from its next call on.
    """
    generator = _guarded(watch, function, count, failed)
    next(generator)
    return kind(functools.partial(max, False, failed, key=generator.send))


class Context:
    """A context of the library. One call at a time may use it."""

    __slots__ = ("handle", "key", "watch", "views", "first", "second", "_callback", "_garbage", "_pid", "__weakref__")

    def __init__(self, key: _Key):
        device, threads, memory_limit = key
        watch = self.watch = Watch()

        def progress(user: Any, phase: bytes, done: int, total: int) -> None:
            if watch.report is not None and watch.report(phase.decode(), done, total):
                watch.stop = True

        self.key = key
        self.views = (_abi.gnomon_matrix * 2)()  # of the call under way, where its arguments are two dense matrices
        self.first, self.second = (ctypes.byref(one) for one in self.views)
        self.handle = ctypes.c_void_p()
        self._garbage: list[tuple[Any, Any]] = []
        self._pid = os.getpid()
        self._callback = guard(watch, _abi.gnomon_progress_fn, progress, 4, True)
        options = _abi.gnomon_context_options()
        lib.gnomon_context_options_init(ctypes.byref(options), ctypes.sizeof(options))
        options.device = device.encode()
        options.threads = threads
        options.memory_limit = memory_limit
        options.progress = self._callback
        status = lib.gnomon_context_create(ctypes.byref(options), ctypes.byref(self.handle))
        if status:
            self.handle = ctypes.c_void_p()
            self.fail(status, {"options.threads": "n_jobs"})

    def fail(self, status: int, names: Mapping[str, str]) -> None:
        """Raises what a failed call on the context stands for."""
        error, watch = self.watch.error, self.watch
        if error is not None:
            watch.error = None
            raise error
        row, col = ctypes.c_int64(), ctypes.c_int64()
        lib.gnomon_last_error_place(self.handle, ctypes.byref(row), ctypes.byref(col))
        fail(status, lib.gnomon_status_name(status).decode(), _decode(lib.gnomon_last_error(self.handle)),
             _decode(lib.gnomon_last_error_argument(self.handle)), row.value, col.value, names)

    def release(self, free: Any, struct: Any) -> None:
        """Frees what a call on the context allocated: now if nobody uses the context, else when its call ends."""
        if self._pid != os.getpid():
            return
        self._garbage.append((free, struct))
        pool = _pools.get(self.key)
        if pool is None:
            return
        try:
            pool.remove(self)
        except ValueError:
            return
        self.collect()
        pool.append(self)

    def collect(self) -> None:
        while self._garbage:
            free, struct = self._garbage.pop()
            free(self.handle, ctypes.byref(struct))

    def __del__(self, destroy: Any = lib.gnomon_context_destroy, getpid: Any = os.getpid) -> None:
        if self.handle.value and self._pid == getpid():
            self.collect()
            destroy(self.handle)
            self.handle = ctypes.c_void_p()


def _decode(text: Optional[bytes]) -> str:
    return (text or b"").decode("utf-8", "surrogateescape")


def configured_device() -> str:
    """The device that calls take when they are told none."""
    return _config.get().device


_pools: dict[_Key, list[Context]] = {}
_NO_NAMES: Mapping[str, str] = {}


def _put_back(context: Context) -> None:
    """Makes a context that a call is done with one of the idle ones."""
    if context._garbage:
        context.collect()
    try:
        _pools[context.key].append(context)
    except KeyError:
        _pools.setdefault(context.key, []).append(context)


def _chosen(config: _Config, n_jobs: Optional[int], device: Optional[str]) -> _Key:
    """The key of what a call asks for, and of the configuration where it asks for nothing."""
    return _key(device if device is not None else config.device, n_jobs if n_jobs is not None else config.n_jobs,
                config.memory_limit)


def _take(config: _Config, n_jobs: Optional[int], device: Optional[str]) -> Context:
    """An idle context, or a new one; _put_back takes it."""
    key = _chosen(config, n_jobs, device)
    try:
        return _pools[key].pop()
    except (KeyError, IndexError):
        return Context(key)


class lease:
    """A context for the calls of one function, taken from those that are idle.

    ``lease(...).call(function, ...)`` raises what a status stands for. At the end of the block the context goes back, and
    an exception that a callback came to is raised.
    """

    __slots__ = ("context", "names", "_bar", "_pooled")

    def __init__(self, names: Mapping[str, str] = _NO_NAMES, n_jobs: Optional[int] = None, device: Optional[str] = None,
                 progress: Progress = None):
        config = _config.get()
        self.context = _take(config, n_jobs, device)
        self.names = names
        self._bar: Any = None
        self._pooled = True
        if progress is None:
            progress = config.progress
        if progress:
            self._show(progress)

    @classmethod
    def of(cls, context: Context, names: Mapping[str, str], progress: Progress = None) -> "lease":
        """The same of a context that its owner has for itself and that does not go to the idle ones."""
        self = cls.__new__(cls)
        self.context, self.names, self._bar, self._pooled = context, names, None, False
        if progress is None:
            progress = _config.get().progress
        if progress:
            self._show(progress)
        return self

    def _show(self, progress: Progress) -> None:
        try:
            if progress is True:
                from ._progress import Bar
                self._bar = progress = Bar()
            elif not callable(progress):
                raise TypeError(f"progress must be a bool or callable, not {type(progress).__name__}")
            self.context.watch.report = progress
        except BaseException:
            self.__exit__(True, None, None)
            raise

    @property
    def handle(self) -> ctypes.c_void_p:
        return self.context.handle

    def call(self, function: Any, *arguments: Any) -> None:
        """Calls a function of the library whose first argument is the context."""
        status = function(self.context.handle, *arguments)
        if status:
            self.context.fail(status, self.names)

    def check(self, status: int) -> None:
        """Raises what the status of a call that used the context stands for."""
        if status:
            self.context.fail(status, self.names)

    def __enter__(self) -> "lease":
        return self

    def __exit__(self, kind: Any, value: Any, traceback: Any) -> None:
        context = self.context
        watch = context.watch
        error, watch.error, watch.report, watch.stop = watch.error, None, None, False
        if self._bar is not None:
            self._bar.close()
        if self._pooled:
            _put_back(context)
        elif context._garbage:
            context.collect()
        if error is not None and kind is None:
            raise error


def call(names: Mapping[str, str], n_jobs: Optional[int], device: Optional[str], progress: Progress, function: Any,
         *arguments: Any) -> None:
    """``with lease(names, n_jobs, device, progress) as ctx: ctx.call(function, *arguments)``, in less time."""
    config = _config.get()
    if progress or (progress is None and config.progress):
        with lease(names, n_jobs, device, progress) as ctx:
            ctx.call(function, *arguments)
        return
    context = _take(config, n_jobs, device)
    watch = context.watch
    try:
        status = function(context.handle, *arguments)
        if status:
            context.fail(status, names)
        if watch.error is not None:
            raise watch.error
    finally:
        watch.error, watch.report, watch.stop = None, None, False
        _put_back(context)


_pack = struct.Struct("Pii4qPii4q").pack_into  # two gnomon_matrix


def call_on_two(names: Mapping[str, str], n_jobs: Optional[int], device: Optional[str], progress: Progress, function: Any,
                handle: ctypes.c_void_p, x: tuple[int, ...], y: tuple[int, ...], options: Any) -> None:
    """`call` of a function of an operator, two dense matrices and options, the matrices by their views' members: to fill the
    context's two structs takes half as long as to make new ones."""
    config = _config.get()
    if progress or (progress is None and config.progress):
        a, b = _abi.gnomon_matrix(*x), _abi.gnomon_matrix(*y)
        call(names, n_jobs, device, progress, function, handle, ctypes.byref(a), ctypes.byref(b), options)
        return
    context = _take(config, n_jobs, device)
    try:
        _pack(context.views, 0, *x, *y)
        status = function(context.handle, handle, context.first, context.second, options)
        if status:
            context.fail(status, names)
        if context.watch.error is not None:
            raise context.watch.error
    finally:
        context.watch.error = None
        _put_back(context)


def at_death(owner: Any, function: Callable[..., Any], *arguments: Any) -> None:
    """Calls the function when the owner dies; not at the interpreter's end, where daemon threads and functions of atexit
    may still use what it would free."""
    weakref.finalize(owner, function, *arguments).atexit = False


def destroy(function: Callable[[ctypes.c_void_p], Any], handle: ctypes.c_void_p, *kept: Any) -> None:
    """Frees what a handle stands for, for `at_death`: what is kept, its context first of all, lives until then."""
    function(handle)


def owned_context(n_jobs: Optional[int] = None, device: Optional[str] = None) -> Context:
    """A context of its own for an object that outlives a call."""
    return Context(_chosen(_config.get(), n_jobs, device))


def open_file(function: Callable[..., int], path: Any, n_jobs: Optional[int] = None,
              device: Optional[str] = None) -> tuple[Context, ctypes.c_void_p]:
    """An index that a function of the library opens from its file, and a context of its own."""
    context, handle = owned_context(n_jobs, device), ctypes.c_void_p()
    status = function(context.handle, os.fsencode(path), ctypes.byref(handle))
    if status:
        context.fail(status, {"path": os.fsdecode(path)})
    return context, handle


def _forget() -> None:
    """In a child of fork: its parent's idle contexts are not its own, and their threads are not there."""
    _kept.extend(context for pool in _pools.values() for context in pool)
    _pools.clear()


_kept: list[Context] = []
os.register_at_fork(after_in_child=_forget)
atexit.register(_pools.clear)
