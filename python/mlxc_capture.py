"""Logs what this process sends to Metal (.mlxtrace), of which `mlxc import` makes graphs.

For programs that load Metal from Python, MLX's or another engine's, and know nothing of it:

    import mlxc_capture

    mlxc_capture.start("decode.mlxtrace")  # before the engine makes its queue and buffers
    ...
    with mlxc_capture.step("decode", pos=3):  # optional: where a step begins and ends, and its params
        ...
    mlxc_capture.stop()

The library that captures (capture/shim.c) is the one that is in the process already, as `mlxc capture` puts it there, else the file
that MLXC_CAPTURE_LIBRARY names, else `mlxc capture --library` builds it, for which mlxc is on the path or named by MLXC. What was made
before `start` is not in the log: dispatches that use it are named there as what could not be logged.
"""

import contextlib
import ctypes
import errno
import os
import shutil
import subprocess
import tempfile

__all__ = ["param", "start", "step", "stop"]

_loaded = None


def _declared(library):
    """Gives the library's functions their types. Without them a pointer would be cut to 32 bits."""
    library.mlxcapture_start.argtypes = [ctypes.c_char_p, ctypes.c_void_p]
    library.mlxcapture_start.restype = library.mlxcapture_stop.restype = ctypes.c_int
    library.mlxcapture_stop.argtypes = []
    library.mlxcapture_step.argtypes = [ctypes.c_char_p]
    library.mlxcapture_param.argtypes = [ctypes.c_char_p, ctypes.c_uint32]
    library.mlxcapture_step.restype = library.mlxcapture_param.restype = None
    return library


def _built():
    """Has mlxc build the library, and loads it. The file may go then."""
    mlxc = os.environ.get("MLXC") or shutil.which("mlxc")
    if not mlxc:
        raise FileNotFoundError(errno.ENOENT, "mlxc, which builds the library that captures, is not on the path: set MLXC to it, or MLXC_CAPTURE_LIBRARY to the library")
    with tempfile.TemporaryDirectory(prefix="mlxc-capture-") as folder:
        path = os.path.join(folder, "mlxcapture.dylib")
        built = subprocess.run([mlxc, "capture", "--library", "-o", path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        if built.returncode:
            raise RuntimeError(f"{mlxc} capture --library: " + built.stdout.decode(errors="replace").strip())
        return ctypes.CDLL(path)


def _library():
    global _loaded
    if _loaded is None:
        inserted = ctypes.CDLL(None)
        path = os.environ.get("MLXC_CAPTURE_LIBRARY")
        if hasattr(inserted, "mlxcapture_start"):
            _loaded = _declared(inserted)
        else:
            _loaded = _declared(ctypes.CDLL(path) if path else _built())
    return _loaded


def start(path, device=None):
    """Begins a log. device is the address of the program's MTLDevice; None: the system's default, which MLX takes too."""
    error = _library().mlxcapture_start(os.fsencode(path), device)
    if error == errno.ENOSYS:
        raise OSError(error, "this process has no Metal")
    if error == errno.EBUSY:
        raise OSError(error, "this process is captured already")
    if error:
        raise OSError(error, os.strerror(error), os.fspath(path))


def stop():
    """Ends the log. An error of an earlier write, such as a full disk, is raised here."""
    error = _library().mlxcapture_stop()
    if error == errno.EINVAL:
        raise OSError(error, "nothing is captured")
    if error:
        raise OSError(error, os.strerror(error))


@contextlib.contextmanager
def _ending(library):
    yield
    library.mlxcapture_step(None)


def step(name=None, **params):
    """Begins a step, one run of the graph of that name, with params if it has some. The next call ends it; so does the end of a with
    statement. None ends it alone."""
    library = _library()
    library.mlxcapture_step(None if name is None else name.encode())
    for key, value in params.items():
        param(key, value)
    return _ending(library)


def param(name, value):
    """Gives the value of a param in the step that is open."""
    if not 0 <= value < 1 << 32:
        raise ValueError(f"the param {name} is {value}: params have 32 bits")
    _library().mlxcapture_param(name.encode(), value)
