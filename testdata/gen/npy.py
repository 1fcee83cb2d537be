"""NumPy's side of the tests of cmd/internal/npy.

    npy.py OUT           writes OUT/*.npy and OUT/expected.json
    npy.py --check DIR   reads the .npy files of DIR with numpy.load and compares
                         them, and their bytes, with what numpy.save makes of the
                         arrays in testdata/npy

The files of testdata/npy come from `python testdata/gen/npy.py testdata/npy`;
those to check from `go test ./cmd/internal/npy -run TestSave -out DIR`.
requirements.txt pins NumPy.
"""

import io
import json
import pathlib
import sys

import numpy as np
from numpy.lib import format as npy

TYPES = ["b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"]
SHAPES = [(), (0,), (1,), (5,), (2, 3), (3, 0, 2), (2, 3, 4), (1, 2, 1, 3, 2)]
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -2.5]


def values(dtype, count):
    """Elements that reach the ends of the type."""
    kind = dtype.kind
    if kind == "b":
        return np.arange(count) % 3 == 0
    if kind == "f":
        info = np.finfo(dtype)
        special = SPECIAL + [info.max, info.min, info.tiny, info.smallest_subnormal, info.eps]
        return np.array([special[i % len(special)] for i in range(count)], dtype)
    info = np.iinfo(dtype)
    special = [0, 1, info.max, info.min, info.max // 3, 7]
    return np.array([special[i % len(special)] for i in range(count)], dtype)


def arrays():
    """Yields name, array, version. An array keeps its byte order and layout."""
    for n, code in enumerate(TYPES):
        little = np.dtype("<" + code)
        for order in "<>" if little.itemsize > 1 else "<":
            dtype = np.dtype(order + code)
            name = {"<": "le", ">": "be"}[order]
            a = values(little, 24).reshape(2, 3, 4).astype(dtype)
            yield f"{code}_{name}", a, (1, 0)
            yield f"{code}_{name}_fortran", np.asfortranarray(a), (1 + n % 3, 0)
    for shape in SHAPES:
        a = values(np.dtype("<i2"), int(np.prod(shape))).reshape(shape)
        name = "x".join(map(str, shape)) or "scalar"
        for version in (1, 2, 3):
            yield f"shape_{name}_v{version}", a, (version, 0)


def write(out):
    out = pathlib.Path(out)
    out.mkdir(parents=True, exist_ok=True)
    expected = {}
    for name, a, version in arrays():
        with open(out / f"{name}.npy", "wb") as f:
            npy.write_array(f, a, version=version)
        expected[name] = {
            "dtype": a.dtype.name,
            "shape": a.shape,
            "data": a.astype(a.dtype.newbyteorder("<")).tobytes("C").hex(),
        }
    lines = [f"{json.dumps(k)}: {json.dumps(v)}" for k, v in expected.items()]
    (out / "expected.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(f"{len(expected)} files, NumPy {np.__version__}")


def check(directory):
    here = pathlib.Path(__file__).parent.parent / "npy"
    names = sorted(p.name for p in here.glob("*.npy"))
    found = sorted(p.name for p in pathlib.Path(directory).glob("*.npy"))
    if found != names:
        sys.exit(f"{directory} has {len(found)} files, want the {len(names)} of {here}")
    for name in names:
        want = np.load(here / name)
        want = np.ascontiguousarray(want.astype(want.dtype.newbyteorder("<"))).reshape(want.shape)
        got = np.load(pathlib.Path(directory) / name)
        if got.dtype != want.dtype or got.shape != want.shape or got.tobytes() != want.tobytes():
            sys.exit(f"{name}: got {got.dtype}{got.shape}, want {want.dtype}{want.shape}, or other values")
        saved = io.BytesIO()
        np.save(saved, want)
        if saved.getvalue() != (pathlib.Path(directory) / name).read_bytes():
            sys.exit(f"{name}: not the bytes of numpy.save")
    print(f"{len(names)} files agree, NumPy {np.__version__}")


if __name__ == "__main__":
    if sys.argv[1] == "--check":
        check(sys.argv[2])
    else:
        write(sys.argv[1])
