"""Elementwise kernels: unary, binary, binary_two, ternary, copy, arange."""
import math
import statistics

import numpy as np
from numpy.lib.stride_tricks import as_strided

from cases import FLOATS, MLX, Group, cast, is_float

ONE = "one function within 0.50002 ulp (docs/softmetal-math.md), and the rounding of what is stored"
SEVERAL = "a few operations, each rounded"
OWN = "MLX's own approximation: its expm1f takes ln 2 as 0.693145752 alone, 1.43e-6 too little for each power of two"


def strided(x, shape, strides):
    """x seen with strides in elements, as NumPy has it."""
    return as_strided(x, shape, [s * x.itemsize for s in strides])


def extent(shape, strides):
    return 1 + sum((n - 1) * s for n, s in zip(shape, strides))


normal = statistics.NormalDist()
UNARY = {
    # name: function, low, high, scale, ulp of float32, ulp of the others, why
    "Abs": (np.abs, -400, 400, 1 / 8, 0, 0, ""),
    "ArcCos": (np.arccos, -64, 64, 1 / 64, 1, 0.51, ONE),
    "ArcCosh": (np.arccosh, 9, 400, 1 / 8, 1, 0.51, ONE),
    "ArcSin": (np.arcsin, -64, 64, 1 / 64, 1, 0.51, ONE),
    "ArcSinh": (np.arcsinh, -400, 400, 1 / 8, 1, 0.51, ONE),
    "ArcTan": (np.arctan, -400, 400, 1 / 8, 1, 0.51, ONE),
    "ArcTanh": (np.arctanh, -63, 63, 1 / 64, 1, 0.51, ONE),
    "Ceil": (np.ceil, -100, 100, 1 / 8, 0, 0, ""),
    "Cos": (np.cos, -800, 800, 1 / 8, 1, 0.51, ONE),
    "Cosh": (np.cosh, -64, 64, 1 / 8, 1, 0.51, ONE),
    "Erf": (np.vectorize(math.erf), -250, 250, 1 / 64, {"abs": 8e-7, "ulp": 2}, 0.51, OWN),
    "ErfInv": (np.vectorize(lambda x: normal.inv_cdf((x + 1) / 2) / math.sqrt(2)), -63, 63, 1 / 64, 8, 0.51, OWN),
    "Exp": (np.exp, -80, 80, 1 / 8, 1, 0.51, ONE),
    "Expm1": (np.expm1, -80, 80, 1 / 8, {"rel": 15 * 1.43e-6, "ulp": 2}, 0.51, OWN),
    "Floor": (np.floor, -100, 100, 1 / 8, 0, 0, ""),
    "Log": (np.log, 1, 800, 1 / 8, 1, 0.51, ONE),
    "Log10": (np.log10, 1, 800, 1 / 8, 1, 0.51, ONE),
    "Log1p": (np.log1p, -7, 800, 1 / 8, 4, 2, OWN),
    "Log2": (np.log2, 1, 800, 1 / 8, 1, 0.51, ONE),
    "Negative": (np.negative, -400, 400, 1 / 8, 0, 0, ""),
    "Round": (np.rint, -100, 100, 1 / 8, 0, 0, ""),
    "Rsqrt": (lambda x: 1 / np.sqrt(x), 1, 800, 1 / 8, 2, 0.51, "the root and the quotient are rounded"),
    "Sigmoid": (lambda x: 1 / (1 + np.exp(-x)), -64, 64, 1 / 8, 4, 4, SEVERAL),
    "Sign": (np.sign, -5, 5, 1 / 8, 0, 0, ""),
    "Sin": (np.sin, -800, 800, 1 / 8, 1, 0.51, ONE),
    "Sinh": (np.sinh, -64, 64, 1 / 8, 1, 0.51, ONE),
    "Sqrt": (np.sqrt, 0, 800, 1 / 8, 0, 0, ""),
    "Square": (np.square, -40, 40, 1 / 8, 0, 0, ""),
    "Tan": (np.tan, -12, 12, 1 / 8, 1, 0.51, ONE),
    "Tanh": (np.tanh, -64, 64, 1 / 8, 1, 0.51, ONE),
}


def unary_case(g, op, template, tin, tout, f, low, high, scale, note="", n=None, **tolerance):
    """A case of one unary kernel: f computes from float64 or from integers."""
    size = {"bool": 1, "u8": 1, "i8": 1, "u16": 2, "i16": 2, "f16": 2, "bf16": 2, "u64": 8, "i64": 8, "c64": 8}.get(tin, 4)
    c = g.case(f"{template}_{op}{MLX[tin]}{MLX[tout]}", note)
    wide = (lambda x: np.asarray(x, np.float64)) if is_float(tin) and tin != "c64" else (lambda x: x)
    with np.errstate(all="ignore"):
        if template in ("v", "vn", "v2"):
            n = n or {"v": 97, "vn": 203, "v2": 150}[template]
            x = c.draw("in", tin, n, low, high, scale)
            c.want("out", tout, f(wide(x)), **tolerance)
            per = 1 if template == "v" else 8 // size
            threads = -(-n // per)
            if template == "v2":
                c.value("size", "i64", n)
                c.grid((10, -(-threads // 10)), (10, 1))  # full where each thread has one element
            else:
                c.value("size", "u32", n)
                c.grid(threads, min(threads, 64))
        else:  # gn1, gn4large: seen with strides, the result dense
            per = 1 if template == "gn1" else 4
            shape, strides = ((3, 5, 7), (1, 3, 15)) if per == 1 else ((2, 3, 2, 9), (27, 9, 0, 1))
            x = c.draw("in", tin, extent(shape, strides), low, high, scale)
            c.want("out", tout, f(wide(strided(x, shape, strides))), **tolerance)
            c.value("in_shape", "i32", *shape)
            c.value("in_strides", "i64", *strides)
            c.value("ndim", "i32", len(shape))
            grid = (-(-shape[-1] // per), shape[-2], math.prod(shape[:-2]))
            c.grid(grid, (4, 2, 2))


def unary():
    g = Group("unary")
    templates = ("vn", "v2", "gn1", "gn4large")
    for i, (op, (f, low, high, scale, u32, other, why)) in enumerate(UNARY.items()):
        def tolerance(t):
            u = u32 if t == "f32" else other
            return {**(u if isinstance(u, dict) else {"ulp": u}), "why": why} if u else {}
        unary_case(g, op, "v", "f32", "f32", f, low, high, scale, **tolerance("f32"))
        t = ("f16", "bf16")[i % 2]
        unary_case(g, op, templates[i % 4], t, t, f, low, high, scale, **tolerance(t))
    # With infinities, zeros and NaN.
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.5, -2.5, 65504.0, -65504.0] * 5)
    for op, t in (("Abs", "f32"), ("Negative", "f16"), ("Exp", "f32"), ("Log", "f32"), ("Sqrt", "f32"), ("Tanh", "f32"), ("ArcTan", "f32"), ("Floor", "bf16"), ("Sigmoid", "f32")):
        f, u = UNARY[op][0], UNARY[op][4]
        c = g.case(f"v_{op}{MLX[t]}{MLX[t]}", "special")
        with np.errstate(all="ignore"):
            x = np.asarray(c.give("in", t, special), np.float64)
            y = f(x)
            c.want("out", t, y, **({"ulp": u, "why": UNARY[op][6]} if u else {}))
        c.value("size", "u32", len(x))
        c.grid(len(x), 32)
    for op, f, types in (("Abs", np.abs, ("i8", "i32", "u16")), ("Negative", np.negative, ("i16", "i64", "u32")), ("Sign", np.sign, ("i32", "u64")),
                         ("Square", np.square, ("i16", "u32", "i64")), ("BitwiseInvert", np.invert, ("u8", "i32", "i64"))):
        for k, t in enumerate(types):
            template = ("v", "v2", "gn1", "gn4large")[(k + len(op)) % 4]
            unary_case(g, op, template, t, t, f, -120 if t[0] == "i" else 0, 120, 1)
    unary_case(g, "LogicalNot", "v", "bool", "bool", np.logical_not, 0, 1, 1)
    unary_case(g, "LogicalNot", "vn", "bool", "bool", np.logical_not, 0, 1, 1, n=61)
    # e4m3 (OCP 8-bit floating point, 2023), without the codes of NaN.
    code = np.arange(127)
    e4m3 = np.where(code >> 3 == 0, (code & 7) * 2.0**-9, (8 + (code & 7)) * 2.0 ** ((code >> 3) - 10.0))
    for t, template in (("f32", "v"), ("f16", "v2"), ("bf16", "gn1")):
        def to(x):
            m = np.minimum(np.abs(x), 448)
            hi = np.searchsorted(e4m3, m).clip(1, 126)
            a, b = m - e4m3[hi - 1], e4m3[hi] - m
            c = np.where(a < b, hi - 1, np.where(b < a, hi, hi & ~1))
            c = np.where((a == b) & (hi % 2 == 1), hi - 1, c)
            return c | np.signbit(x).astype(np.int64) << 7
        unary_case(g, "ToFP8", template, t, "u8", to, -4000, 4000, 1 / 8 if t == "f32" else 1 / 64)
        unary_case(g, "FromFP8", template, "u8", t, lambda x: e4m3[x], 0, 126, 1)
    wide = lambda f: lambda x: f(x.astype(np.complex128))
    near = {"rel": 2e-6, "abs": 2e-6, "why": "a few operations of float32 on each part, which may cancel"}
    for op, f, template, out, tolerance in (("Abs", np.abs, "v", "c64", near), ("Exp", np.exp, "v2", "c64", near), ("Log", np.log, "gn1", "c64", near), ("Sqrt", np.sqrt, "v", "c64", near), ("Sin", np.sin, "gn4large", "c64", near),
                                    ("Tanh", np.tanh, "v2", "c64", near), ("Conjugate", np.conj, "v", "c64", {}), ("Real", np.real, "v", "f32", {}), ("Imag", np.imag, "v2", "f32", {}), ("Negative", np.negative, "gn1", "c64", {})):
        unary_case(g, op, template, "c64", out, wide(f), 1, 24, 1 / 16, **tolerance)
    return g


DTYPES = ("u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64")
BINARY = {
    # name: function of float64 or integers, function of exact floats, types, ranges of a and b, ulp, why
    "Add": (np.add, FLOATS + ("i32", "u8", "c64"), (-100, 100), (-100, 100), 0, ""),
    "Subtract": (np.subtract, ("f32", "f16", "i64"), (-100, 100), (-100, 100), 0, ""),
    "Multiply": (np.multiply, ("f32", "bf16", "i16", "u64"), (-100, 100), (-100, 100), 0, ""),
    "Divide": (np.divide, ("f32", "f16", "bf16"), (-100, 100), (1, 37), 0, ""),
    "Maximum": (np.maximum, ("f32", "i8", "bf16"), (-50, 50), (-50, 50), 0, ""),
    "Minimum": (np.minimum, ("f16", "u32", "i64"), (-50, 50), (-50, 50), 0, ""),
    "Power": (np.power, ("f32", "f16", "i32"), (1, 9), (0, 4), 2, "pow within 1 ulp, and the rounding of what is stored"),
    "Remainder": (np.remainder, ("f32", "i32", "u16"), (-100, 100), (3, 9), 0, ""),
    "FloorDivide": (lambda a, b: np.floor_divide(a, b) if a.dtype.kind in "iu" else np.floor(a / b), ("f32", "i16", "u32"), (-100, 100), (1, 16), 0, ""),
    "LogAddExp": (np.logaddexp, ("f32", "bf16"), (-40, 40), (-40, 40), 8, "a few operations, each rounded"),
    "ArcTan2": (np.arctan2, ("f32", "f16"), (-40, 40), (-40, 40), 1, ONE),
    "BitwiseAnd": (np.bitwise_and, ("i32", "u8"), (-100, 100), (-100, 100), 0, ""),
    "BitwiseOr": (np.bitwise_or, ("u64", "i16"), (-100, 100), (-100, 100), 0, ""),
    "BitwiseXor": (np.bitwise_xor, ("i64", "u32"), (-100, 100), (-100, 100), 0, ""),
    "LeftShift": (np.left_shift, ("i32", "u16"), (0, 100), (0, 7), 0, ""),
    "RightShift": (np.right_shift, ("i32", "u64"), (-100, 100), (0, 7), 0, ""),
    "Equal": (np.equal, ("f32", "i32"), (-3, 3), (-3, 3), 0, ""),
    "NotEqual": (np.not_equal, ("f16", "u8"), (-3, 3), (-3, 3), 0, ""),
    "Less": (np.less, ("f32", "i8"), (-3, 3), (-3, 3), 0, ""),
    "LessEqual": (np.less_equal, ("bf16", "u16"), (-3, 3), (-3, 3), 0, ""),
    "Greater": (np.greater, ("f32", "i64"), (-3, 3), (-3, 3), 0, ""),
    "GreaterEqual": (np.greater_equal, ("f16", "u32"), (-3, 3), (-3, 3), 0, ""),
    "LogicalAnd": (np.logical_and, ("bool",), (0, 1), (0, 1), 0, ""),
    "LogicalOr": (np.logical_or, ("bool",), (0, 1), (0, 1), 0, ""),
    "NaNEqual": (lambda a, b: (a == b) | (np.isnan(a) & np.isnan(b)), ("f32",), (-3, 3), (-3, 3), 0, ""),
}
TRUTH = ("Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual", "LogicalAnd", "LogicalOr", "NaNEqual")
LAYOUTS = ("vv", "ss", "sv", "vs", "vvn", "svn", "vsn", "vv2", "sv2", "vs2", "g1", "g2", "g3", "gn2", "gn4large", "g1large", "g2large", "g3large")
SIZE = {"bool": 1, "u8": 1, "i8": 1, "u16": 2, "i16": 2, "f16": 2, "bf16": 2, "u64": 8, "i64": 8, "c64": 8}


def operands(c, layout, t, names, ranges, scales):
    """Draws the operands of an elementwise kernel of some layout, writes the arguments that say how they
    lie, and the grid. Returns the operands as the result's shape has them."""
    size = SIZE.get(t, 4)
    types = [t if k or len(names) < 3 else "bool" for k in range(len(names))]
    last, tail = [], []
    if layout[0] != "g":
        per = 8 // size if layout.endswith(("n", "2")) else 1
        n = 1 if layout == "ss" else 61 if per == 1 else 123
        n = 90 if layout.endswith("2") else n  # MLX's grid is full where each thread has one element
        single = {"s": 1, "v": 0}
        if len(names) == 3:
            kinds = {"v": (0, 0, 0), "vs": (0, 0, 1), "sv": (0, 1, 0)}[layout.rstrip("n2")]
        else:
            kinds = [single[l] for l in layout[:2]]
        out = []
        for name, dtype, (low, high), scale, one in zip(names, types, ranges, scales, kinds):
            x = c.draw(name, dtype, 1 if one else n, low, high, scale)
            out.append(np.broadcast_to(x, (n,)))
        threads = -(-n // per)
        if layout.endswith("2"):
            tail.append(("size", "i64", n))
            grid = ((9, -(-threads // 9)), (9, 2))
        else:
            if layout != "ss":
                tail.append(("size", "u32", n))
            grid = (threads, min(threads, 32))
        return out, tail, grid
    per = {"gn2": 2, "gn4large": 4}.get(layout, 1)
    if layout.startswith("g1"):
        shape, strides = (53,), [(2,), (1,), (3,)]
    elif layout.startswith("g2"):
        shape, strides = (6, 11), [(1, 6), (0, 1), (11, 1)]
    elif layout.startswith("g3"):
        shape, strides = (3, 4, 5), [(20, 5, 1), (1, 3, 12), (5, 0, 1)]
    else:
        shape, strides = (2, 3, 2, 9), [(54, 18, 9, 1), (1, 0, 2, 4), (27, 9, 0, 1)]
    out = []
    for name, dtype, (low, high), scale, s in zip(names, types, ranges, scales, strides):
        x = c.draw(name, dtype, extent(shape, s), low, high, scale)
        out.append(strided(x, shape, s))
    if layout.startswith("gn"):
        tail.append(("shape", "i32", *shape))
    for name, s in zip(names, strides):
        suffix = "_stride" if layout.startswith("g1") and len(names) < 3 else "_strides"
        tail.append((name + suffix, "i64", *s))
    if layout.startswith("gn"):
        tail.append(("ndim", "i32", len(shape)))
    grid = [-(-shape[-1] // per)] + list(shape[-2:-1]) + ([math.prod(shape[:-2])] if len(shape) > 2 else [])
    return out, tail, (grid, [4, 2, 2][:len(grid)])


def binary_case(g, op, layout, t, note=""):
    f, _, ra, rb, ulp, why = BINARY[op]
    if t[0] == "u" or t == "bool":
        ra, rb = (max(0, ra[0]), ra[1]), (max(0, rb[0]), rb[1])
    scale = 1 / 8 if is_float(t) else 1
    c = g.case(f"{layout}_{op}{MLX[t]}", note)
    (a, b), tail, grid = operands(c, layout, t, ("a", "b"), (ra, rb), (scale, scale))
    with np.errstate(all="ignore"):
        if op in ("FloorDivide",) and is_float(t):
            y = np.floor(cast(np.float64(a) / np.float64(b), t))
        elif is_float(t) and t != "c64":
            y = f(np.float64(a), np.float64(b))
        else:
            y = f(a, b)
    c.want("c", "bool" if op in TRUTH else t, y, **({"ulp": ulp, "why": why} if ulp and is_float(t) else {}))
    for v in tail:
        c.value(*v)
    c.grid(*grid)


def binary():
    g = Group("binary")
    i = 0
    for op, spec in BINARY.items():
        for t in spec[1]:
            layout = LAYOUTS[i % len(LAYOUTS)]
            if SIZE.get(t, 4) == 8 and layout in ("vvn", "svn", "vsn"):
                layout = layout[:2]
            binary_case(g, op, layout, t)
            i += 1
    for layout in LAYOUTS:  # one operation in every layout
        if f"{layout}_Addfloat32" not in {c.kernel for c in g.cases}:
            binary_case(g, "Add", layout, "f32")
    special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.5, -2.5, 3.0])
    for op in ("Maximum", "Minimum", "NaNEqual", "Equal", "Less", "Divide"):
        c = g.case(f"vv_{op}float32", "special")
        a = c.give("a", "f32", np.repeat(special, 8))
        b = c.give("b", "f32", np.tile(special, 8))
        with np.errstate(all="ignore"):
            c.want("c", "bool" if op in TRUTH else "f32", BINARY[op][0](a, b))
        c.value("size", "u32", 64)
        c.grid(64, 32)
    for k, t in enumerate(("f32", "i32", "f16", "u8", "i64", "u16", "bf16", "i8", "f32", "i16", "u32", "f32", "i32", "u64", "f16", "i32", "u32", "f32")):
        layout = LAYOUTS[k]
        if SIZE.get(t, 4) == 8 and layout.endswith("n"):
            layout = layout[:2]
        c = g.case(f"{layout}_DivMod{MLX[t]}")
        scale = 1 / 8 if is_float(t) else 1
        (a, b), tail, grid = operands(c, layout, t, ("a", "b"), ((-100 if t[0] != "u" else 0, 100), (2, 16)), (scale, scale))
        if is_float(t):
            a, b = np.float64(a), np.float64(b)
            quotient, rest = np.floor(cast(a / b, t)), np.remainder(a, b)
        else:
            quotient, rest = np.divmod(a, b)
        c.want("c", t, quotient)
        c.want("d", t, rest)
        for v in tail:
            c.value(*v)
        c.grid(*grid)
    return g


def ternary():
    g = Group("ternary")
    layouts = ("v", "v2", "vs", "vs2", "sv", "sv2", "vn", "vsn", "svn", "g1", "g2", "g3", "gn2", "gn4large", "g1large", "g2large", "g3large")
    types = ("f32", "f16", "i32", "bf16", "c64", "u8", "i64", "i16", "u32", "bool", "i8", "u16", "u64")
    for k, layout in enumerate(layouts):
        t = types[k % len(types)]
        if SIZE.get(t, 4) == 8 and layout.endswith("n"):
            t = "f16"
        c = g.case(f"{layout}_Select{MLX[t]}")
        r = (0, 1) if t == "bool" else (0, 100)
        (a, b, d), tail, grid = operands(c, layout, t, ("a", "b", "c"), ((0, 1), r, r), (1, 1, 1))
        c.want("d", t, np.where(a, b, d))
        for v in tail:
            c.value(*v)
        c.grid(*grid)
    return g


def copy():
    g = Group("copy")

    def pair(k):
        pairs = (("f32", "f32"), ("f32", "f16"), ("f16", "bf16"), ("bf16", "f32"), ("i32", "f32"), ("u8", "f16"), ("bool", "i32"), ("f32", "bool"), ("i64", "i8"), ("f32", "i32"),
                 ("u16", "u64"), ("f16", "u8"), ("i16", "bf16"), ("i8", "i64"), ("u32", "u16"), ("f32", "c64"), ("c64", "f32"))
        return pairs[k % len(pairs)]

    k = 0
    for round in range(2):
        for layout in ("v", "s", "vn", "sn", "v2", "s2", "g1", "g2", "g3", "gn2", "gn4large", "g1large", "g2large", "g3large"):
            tin, tout = pair(k)
            k += 1
            if layout in ("vn", "sn") and SIZE.get(tout, 4) == 8:
                tin, tout = "u8", "u16"
            c = g.case(f"{layout}_copy{MLX[tin]}{MLX[tout]}")
            low, high = (0, 1) if tin == "bool" else (0, 100) if tin[0] == "u" or tout[0] == "u" else (-100, 100)
            scale = 1 / 4 if is_float(tin) else 1
            per = 8 // SIZE.get(tout, 4) if layout in ("vn", "sn", "v2", "s2") else {"gn2": 2, "gn4large": 4}.get(layout, 1)

            def converted(x):
                x = np.real(x) if tin == "c64" else x
                if tout == "bool":
                    return x != 0
                return np.trunc(np.float64(x)).astype(np.int64) if is_float(tin) and not is_float(tout) else x

            if layout[0] != "g":
                n = 75 + 32 * round
                x = c.draw("src", tin, 1 if layout[0] == "s" else n, low, high, scale)
                c.want("dst", tout, np.broadcast_to(converted(x), (n,)))
                threads = -(-n // per)
                if layout[1:] == "2":
                    c.value("size", "i64", n)
                    side = 5 if per > 1 else n
                    c.grid((side, -(-threads // side)), (side, 4))
                else:
                    c.value("size", "u32", n)
                    c.grid(threads, min(threads, 32))
                continue
            shape, strides = {"1": ((57,), (3,)), "2": ((7, 9), (1, 7)), "3": ((3, 4, 5), (1, 15, 3))}.get(layout[1], ((2, 3, 2, 7), (1, 2, 0, 6)))
            if round:
                shape = shape[:-1] + (shape[-1] + 4,)
            x = c.draw("src", tin, extent(shape, strides), low, high, scale)
            c.want("dst", tout, converted(strided(x, shape, strides)))
            if layout[1] == "n":
                c.value("src_shape", "i32", *shape)
                c.value("ndim", "i32", len(shape))
            c.value("src_stride" if layout[1] == "1" else "src_strides", "i64", *strides)
            grid = [-(-shape[-1] // per)] + list(shape[-2:-1]) + ([math.prod(shape[:-2])] if len(shape) > 2 else [])
            c.grid(grid, [4, 2, 2][:len(grid)])
    # Both sides with strides, and, dynamic, with offsets from memory.
    types = ("f32", "i8", "f16", "i64", "u32", "bf16", "c64", "u16")
    k = 0
    for dynamic in ("", "_dynamic"):
        for layout in ("gg1", "gg2", "gg3", "ggn2", "gg1large", "gg2large", "gg3large", "ggn4large"):
            t = types[k % len(types)]
            k += 1
            c = g.case(f"{layout}{dynamic}_copy{MLX[t] * 2}")
            kind = layout[2]
            shape, s, d = {"1": ((31,), (2,), (3,)), "2": ((5, 9), (1, 5), (10, 1)), "3": ((2, 3, 5), (1, 2, 6), (16, 5, 1))}.get(kind, ((2, 3, 2, 5), (1, 2, 0, 6), (35, 11, 5, 1)))
            so, do = (4, 3) if dynamic else (0, 0)
            x = c.draw("src", t, so + extent(shape, s), 0, 100)
            before = c.draw("dst", t, do + extent(shape, d) + 2, 101, 120)
            after = before.copy()
            strided(after[do:], shape, d)[...] = strided(x[so:], shape, s)
            c.want("dst", t, after, of=True)
            one = "" if kind == "1" else "s"
            c.value("src_stride" + one, "i64", *s)
            c.value("dst_stride" + one, "i64", *d)
            per = 1
            if kind == "n":
                per = int(layout[3])
                c.value("src_shape", "i32", *shape)
                c.value("ndim", "i32", len(shape))
            if dynamic:
                c.value("src_offset", "i64", so)
                c.value("dst_offset", "i64", do)
            grid = [-(-shape[-1] // per)] + list(shape[-2:-1]) + ([math.prod(shape[:-2])] if len(shape) > 2 else [])
            c.grid(grid, [4, 2, 2][:len(grid)])
    for t, start, step, n in (("f32", 1.5, 0.25, 70), ("i32", -7, 3, 33), ("f16", 2, 0.5, 50), ("bf16", -3, 1, 40), ("u8", 3, 2, 90), ("i64", 1, -4, 31), ("u16", 0, 7, 64), ("i8", -60, 2, 50)):
        c = g.case(f"arange{MLX[t]}")
        c.value("start", t, start)
        c.value("step", t, step)
        c.want("out", t, start + step * np.arange(n))
        c.grid(n, 32)
    return g


GROUPS = (unary, binary, ternary, copy)
