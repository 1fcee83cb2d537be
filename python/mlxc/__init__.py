"""Logs what a program dispatches to Metal (.mlxtrace), of which `mlxc import` makes graphs.

The calls are those of capture/mlxrec.h. Neither Metal nor a Mac is needed, and nothing but Python:

    from mlxc import Recorder

    with Recorder("engine.mlxtrace", "my engine") as r:
        lib = r.source("engine.metal", open("engine.metal").read())
        add = r.kernel(lib, "add")
        x, y = r.buffer(4096, "x", "input"), r.buffer(4096, "y", "output")
        with r.step("double"):
            r.use(add).bind(0, x).bind(1, x).bind(2, y)
            r.threads((1024, 1, 1), (256, 1, 1))

A step that is logged again with other numbers (offsets, grids, inline integers) becomes one graph with params, whose values
`param` gives. Contents are anything with the buffer protocol: bytes, array.array, NumPy's arrays.
"""

import struct
from contextlib import contextmanager

__all__ = ["Recorder"]
_WRITER = "mlxc for Python 1"  # what a log says of who wrote it

# The events of a log: name and fields, in the order of their codes, as mlxrec.h has them.
_EVENTS = """
program name:s writer:s
library library:n kind:s name:s code:b options:s
pipeline pipeline:n library:n function:s constants:b label:s
buffer buffer:n bytes:n storage:n untracked:n label:s parent:n offset:n
free buffer:n
contents buffer:n offset:n data:b
zeros buffer:n offset:n bytes:n
name buffer:n name:s role:s
step name:s
param name:s value:n
commands commands:n queue:n label:s
enqueue commands:n
commit commands:n
wait commands:n
encoder encoder:n commands:n kind:s concurrent:n label:s
end encoder:n
use encoder:n pipeline:n
bind encoder:n slot:n buffer:n offset:n
bytes encoder:n slot:n data:b
threadgroup encoder:n slot:n bytes:n
reads encoder:n slot:n offset:n bytes:n
writes encoder:n slot:n offset:n bytes:n must:n
dispatch encoder:n threads:n x:n y:n z:n gx:n gy:n gz:n label:s
barrier encoder:n
fence-update encoder:n fence:n
fence-wait encoder:n fence:n
signal commands:n event:n value:n
await commands:n event:n value:n
copy encoder:n from:n from_offset:n to:n to_offset:n bytes:n
fill encoder:n buffer:n offset:n bytes:n value:n
push encoder:n label:s
pop encoder:n
unknown what:s
ended commands:n
holds buffer:n offset:n data:b
""".split("\n")[1:-1]
_CODES = {line.split()[0]: (i + 1, [f.split(":")[1] for f in line.split()[1:]]) for i, line in enumerate(_EVENTS)}
_MOST = 1 << 30  # bytes of contents in an event


def __getattr__(name):
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("mlxc")
    except PackageNotFoundError:
        return "0+source"


class Recorder:
    """An open log. Calls are for one thread at a time."""

    def __init__(self, path, program=""):
        self._file = open(path, "wb")
        self._last = 0
        self._commands = self._encoder = self._kernel = 0
        self._blit = self._concurrent = False
        self._bound = {}
        self._file.write(b"MLXTRACE" + struct.pack("<II", 1, 0))
        self._record(0, "".join(f"{i + 1} {line}\n" for i, line in enumerate(_EVENTS)).encode())
        self._event("program", program, _WRITER)
        self._file.flush()

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        self.close()

    def close(self):
        """Ends the step that is open, and the log."""
        if self._file.closed:
            return
        if self._commands:
            self._end()
        self._file.close()

    def _record(self, code, *parts):
        size = sum(map(len, parts))
        self._file.write(struct.pack("<II", size, code))
        for part in parts:
            self._file.write(part)
        self._file.write(bytes(-size % 8))

    def _event(self, name, *values):
        code, kinds = _CODES[name]
        parts = []
        for kind, value in zip(kinds, values, strict=True):
            if kind == "n":
                parts.append(struct.pack("<Q", value))
                continue
            data = value.encode() if kind == "s" else memoryview(value).cast("B")
            parts += [struct.pack("<I", len(data)), data]
        self._record(code, *parts)

    def _new(self, name, *values):
        self._last += 1
        self._event(name, self._last, *values)
        return self._last

    def source(self, name, text, options=""):
        """Metal source. options: lines "-DNAME=VALUE" and "fast-math"."""
        return self._new("library", "source", name, text.encode(), options)

    def metallib(self, name, data):
        """A compiled library."""
        return self._new("library", "metallib", name, data, "")

    def kernel(self, library, function, constants=()):
        """A function, with function constants (index, MTLDataType, bits): bool is 53, int 29, uint 33, float 3."""
        return self._new("pipeline", library, function, b"".join(struct.pack("<IIQ", *c) for c in constants), "")

    def buffer(self, size, name="", role="", contents=None):
        """Memory of so many bytes. role is weight, input, output, state, scratch, or "": that follows from who uses it."""
        b = self._new("buffer", size, 0, 0, "", 0, 0)
        if name or role:
            self._event("name", b, name, role)
        if contents is not None:
            self.write(b, contents)
        return b

    def part(self, buffer, offset, size):
        """A part of a buffer that is a buffer by itself."""
        return self._new("buffer", size, 0, 0, "", buffer, offset)

    def write(self, buffer, data, offset=0):
        """What the buffer holds from here on, written by the host."""
        data = memoryview(data).cast("B")
        for at in range(0, len(data), _MOST):
            self._event("contents", buffer, offset + at, data[at : at + _MOST])

    def free(self, buffer):
        self._event("free", buffer)

    @contextmanager
    def step(self, name, concurrent=False, **params):
        """One run of the graph of that name: its commands run one after another, or at once but for barriers."""
        if self._commands:
            raise RuntimeError("mlxc: a step is open")
        self._concurrent, self._kernel, self._bound = concurrent, 0, {}
        self._event("step", name)
        for param, value in params.items():
            self._event("param", param, value)
        self._commands = self._new("commands", 1, "")
        self._open(False)
        yield self
        self._end()

    def _end(self):
        self._event("end", self._encoder)
        self._event("commit", self._commands)
        self._event("wait", self._commands)
        self._event("step", "")
        self._commands = self._encoder = 0
        self._file.flush()  # what a program that dies has ended is in the log

    def _open(self, blit):
        if not self._commands:
            raise RuntimeError("mlxc: a command is in no step")
        if self._encoder and self._blit == blit:
            return
        if self._encoder:
            self._event("end", self._encoder)
        self._blit = blit
        self._encoder = self._new("encoder", self._commands, "blit" if blit else "compute", int(self._concurrent and not blit), "")
        if blit:
            return
        if self._kernel:
            self._event("use", self._encoder, self._kernel)
        for (name, slot), values in self._bound.items():
            self._event(name, self._encoder, slot, *values)

    def _keep(self, name, slot, *values):
        self._open(False)
        for other in ("bind", "bytes") if name != "threadgroup" else ("threadgroup",):
            self._bound.pop((other, slot), None)
        self._bound[name, slot] = values
        self._event(name, self._encoder, slot, *values)
        return self

    def use(self, kernel):
        self._open(False)
        self._kernel = kernel
        self._event("use", self._encoder, kernel)
        return self

    def bind(self, slot, buffer, offset=0):
        return self._keep("bind", slot, buffer, offset)

    def bytes(self, slot, data):
        """Inline bytes, at most 4096."""
        return self._keep("bytes", slot, bytes(data))

    def threadgroup(self, slot, size):
        return self._keep("threadgroup", slot, size)

    def reads(self, slot, offset, size):
        """The next dispatch reads nothing of the slot but this."""
        self._event("reads", self._encoder, slot, offset, size)
        return self

    def writes(self, slot, offset, size, must=False):
        """The next dispatch writes nothing of the slot but this; all of it, if must is set."""
        self._event("writes", self._encoder, slot, offset, size, int(must))
        return self

    def threads(self, grid, group, label=""):
        """A grid of threads in threadgroups."""
        self._open(False)
        self._event("dispatch", self._encoder, 1, *grid, *group, label)

    def threadgroups(self, grid, group, label=""):
        """A grid of threadgroups."""
        self._open(False)
        self._event("dispatch", self._encoder, 0, *grid, *group, label)

    def barrier(self):
        self._event("barrier", self._encoder)

    def copy(self, source, target, size, source_offset=0, target_offset=0):
        self._open(True)
        self._event("copy", self._encoder, source, source_offset, target, target_offset, size)

    def fill(self, buffer, offset, size, value):
        self._open(True)
        self._event("fill", self._encoder, buffer, offset, size, value)

    def push(self, label):
        """Begins a group of commands, for people."""
        self._open(False)
        self._event("push", self._encoder, label)

    def pop(self):
        self._event("pop", self._encoder)
