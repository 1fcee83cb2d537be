"""Kernels that go along axes: reduce, arg_reduce, softmax, logsumexp, cross_entropy, scan, sort,
searchsorted, random, dot."""
import math

import numpy as np

from cases import EPS, MLX, SIZES, Group, cast, is_float
from elementwise import strided

SUM = "fast exp within 1e-6 of each term, sums of float32, and the rounding of the result"


def results(t, op):
    """The type of a reduction's results (reduce.cpp, remap_reduce_types)."""
    if op in ("and", "or"):
        return "bool"
    if op in ("sum", "prod"):
        return {"u8": "i32", "u16": "u32", "i8": "i32", "i16": "i32"}.get(t, t)
    return t


def values(c, name, t, op, shape):
    """Draws values whose reductions are exact, in any order."""
    if op == "prod" and is_float(t):
        x = np.where(np.arange(math.prod(shape)) * 7919 % 5 < 2, -1.0, 1.0)
        x[:: max(1, x.size // 3)] *= 2
        return c.give(name, t, x).reshape(shape)
    if op in ("and", "or"):
        x = c.draw(name, t, shape, 0, 1)
        if op == "and" and t == "i32":
            return x
        return x
    low, high = (0, 1) if t == "bool" else (-3, 3) if t[0] in "ibfc" else (0, 9)
    if t in ("bf16",):
        low, high = -1, 1
    return c.draw(name, t, shape, low, high)


def reduce(x, t, op, axes):
    out = results(t, op)
    if op == "and":
        return np.all(x != 0, axis=axes)
    if op == "or":
        return np.any(x != 0, axis=axes)
    if t == "bool":
        return (np.min if op == "min" else np.max)(x, axis=axes)
    if not is_float(t):
        x = x.astype({"i32": np.int32, "u32": np.uint32, "i64": np.int64, "u64": np.uint64, "u8": np.uint8, "i8": np.int8, "u16": np.uint16, "i16": np.int16}[out])
        f = {"sum": np.sum, "prod": np.prod, "min": np.min, "max": np.max}[op]
        return f(x, axis=axes, dtype=x.dtype) if op in ("sum", "prod") else f(x, axis=axes)
    f = {"sum": np.sum, "prod": np.prod, "min": np.min, "max": np.max}[op]
    if t == "c64":
        return f(x, axis=axes)
    return f(np.float64(x), axis=axes)


def group_of_row(n):
    return 32 if n <= 512 else 128 if n <= 1024 else min(1024, -(-(-(-n // 4)) // 32) * 32)


def row_reduce(g, kind, op, t, dims, large="", note=""):
    """dims: kept, reduced, kept, reduced, …, row."""
    *outer, row = dims
    kept, gone = outer[::2], outer[1::2]
    strides = [math.prod(dims[i + 1:]) for i in range(len(dims) - 1)]
    n = {0: 1, 1: 1, 2: 2}.get(len(gone), 5)
    c = g.case(f"row_reduce_{kind}{large}_{n}_reduce_{op}{MLX[t]}", note)
    x = values(c, "in", t, op, dims)
    y = reduce(x, t, op, tuple(range(1, len(outer), 2)) + (len(outer),))
    c.want("out", results(t, op), y)
    times = math.prod(gone)
    c.value("row_size", "i64", row)
    c.value("non_row_reductions", "i64", times)
    c.value("shape", "i32", *kept)
    c.value("strides", "i64", *strides[::2])
    c.value("ndim", "i32", len(kept))
    c.value("reduce_shape", "i32", *(gone or [1]))
    c.value("reduce_strides", "i64", *(strides[1::2] or [0]))
    c.value("reduce_ndim", "i32", len(gone))
    rows = math.prod(kept)
    if kind == "small":
        if times < 32 and row <= 8 or times <= 8:
            c.grid((rows, 1), (min(rows, 1024), 1))
        else:
            c.grid((32, rows), (32, 1))
    else:
        tg = group_of_row(row)
        c.grid((tg, rows), (tg, 1))


def col_reduce(g, kind, op, t, dims, large="", note=""):
    """dims: kept, reduced, kept, reduced, …, column length, row."""
    *outer, size, row = dims
    kept, gone = outer[::2], outer[1::2]
    strides = [math.prod(dims[i + 1:]) for i in range(len(dims))]
    n = {0: 1, 1: 2}.get(len(gone), 5)
    tile = "_32_32" if kind in ("looped", "2pass") else ""
    c = g.case(f"col_reduce_{kind}{large}_{n}{tile}_reduce_{op}{MLX[t]}", note)
    x = values(c, "in", t, op, dims)
    axes = tuple(range(1, len(outer), 2)) + (len(outer),)
    out, times, rows = results(t, op), math.prod(gone), math.prod(kept)
    total = times * size
    if kind in ("small", "looped"):
        c.want("out", out, reduce(x, t, op, axes))
    else:
        # Parts of the columns, one for each of 32 blocks: rows of the reduction in their order.
        order = [i for i in range(len(dims)) if i not in axes]
        flat = np.transpose(x, list(axes) + order).reshape(total, rows, row)
        per = 32 if kind == "2pass" else min(32, -(-total // 32))
        parts = []
        for b in range(32):
            mine = flat[np.arange(total) // per % 32 == b]
            if len(mine) == 0:
                mine = np.full((1, rows, row), {"sum": 0, "prod": 1}[op]).astype(x.dtype)
            parts.append(reduce(mine, t, op, 0))
        c.want("out", out, np.stack(parts))
    c.value("reduction_size", "u64", size)
    c.value("reduction_stride", "i64", row)
    c.value("shape", "i32", *kept)
    c.value("strides", "i64", *strides[0:len(outer):2])
    c.value("ndim", "i32", len(kept))
    c.value("reduce_shape", "i32", *gone, size)
    c.value("reduce_strides", "i64", *strides[1:len(outer):2], row)
    c.value("reduce_ndim", "i32", len(gone) + 1)
    c.value("non_col_reductions", "u64", times)
    if kind == "small":
        blocks = -(-row // 4)
        tx = min(blocks, 32)
        ty = min(8, 1024 // tx, total)
        c.groups((-(-blocks // tx), rows), (tx, ty))
    elif kind == "longcolumn":
        c.value("out_size", "u64", rows * row)
        c.groups((rows, 1, 32), (row, min(32, -(-total // 32))))
    else:
        c.value("column_offset", "i64", 0)
        if kind == "2pass":
            c.value("out_size", "u64", rows)
        c.grid((256 * -(-row // 32), rows * (32 if kind == "2pass" else 1)), (256, 1))


def reduces():
    g = Group("reduce")
    ops = ("sum", "prod", "min", "max", "and", "or")
    types = {"sum": ("f32", "u8", "f16", "i64", "c64", "i16"), "prod": ("f32", "i32", "bf16", "u16"), "min": ("f32", "i8", "f16", "u64"), "max": ("bf16", "u32", "i64", "f32"),
             "and": ("bool", "i32"), "or": ("i16", "i64", "bool")}
    k = 0
    for op in ops:
        for t in types[op][:3]:
            for n in ((100, 1009) if k % 2 else (4096, 7)):
                c = g.case(f"all_reduce_{op}{MLX[t]}", str(n))
                x = values(c, "in", t, op, (n,))
                c.want("out", results(t, op), reduce(x, t, op, None).reshape(1))
                tg = -(-(-(-n // 4)) // 32) * 32
                c.value("in_size", "u64", n)
                c.value("row_size", "u64", n)
                c.grid(tg, tg)
            k += 1
    # The first of two passes, with rows that do not fill the last.
    c = g.case("all_reduce_sumfloat32", "rows")
    x = c.draw("in", "f32", 5000, -9, 9)
    row = -(-5000 // 128)
    y = [x[i * row:(i + 1) * row].sum() for i in range(128)]
    c.want("out", "f32", y)
    c.value("in_size", "u64", 5000)
    c.value("row_size", "u64", row)
    c.grid((32, 128), (32, 1))
    k = 0
    for op in ops:
        t = types[op][0]
        row_reduce(g, "small", op, t, (5, 4, 3, 7), note="a thread a row")
        row_reduce(g, "small", op, types[op][-1], (3, 40, 2, 11), note="a simdgroup a row")
        row_reduce(g, "small", op, t, (2, 3, 3, 2, 2, 5, 9), large="_large" if k % 2 else "")
        row_reduce(g, "looped", op, types[op][1], (3, 2, 2, 130))
        row_reduce(g, "looped", op, t, (2, 3, 2, 2, 301), large="_large" if k % 2 else "")
        n, row = (35, 70 + 100 * k)
        c = g.case(f"row_reduce_simple_{op}{MLX[t]}", f"{n} rows of {row}")
        x = values(c, "in", t, op, (n, row))
        c.want("out", results(t, op), reduce(x, t, op, 1))
        c.value("reduction_size", "u64", row)
        c.value("out_size", "i64", n)
        tg = min(group_of_row(row), 512 if SIZES[t] == 8 else 1024)
        c.grid((tg, -(-n // 4)), (tg, 1))
        col_reduce(g, "small", op, t, (3, 6, 40), note="10 columns of 4")
        col_reduce(g, "small", op, types[op][-1], (2, 3, 2, 5, 16), large="_large" if k % 2 else "")
        col_reduce(g, "small", op, t, (3, 2, 2, 3, 1, 4, 21), note="21 columns")
        col_reduce(g, "looped", op, types[op][1], (2, 70, 45))
        col_reduce(g, "looped", op, t, (2, 3, 1, 40, 33), large="_large" if k % 2 else "")
        k += 1
    for op, t, large in (("sum", "f32", ""), ("sum", "i16", "_large"), ("prod", "f32", "")):
        col_reduce(g, "2pass", op, t, (2, 270, 35), large=large)
        col_reduce(g, "2pass", op, t, (1, 5, 2, 61, 8), large=large)
        col_reduce(g, "longcolumn", op, t, (2, 1030, 3), large=large)
        col_reduce(g, "longcolumn", op, t, (1, 9, 2, 117, 5), large=large)
    limits = {"sum": 0, "prod": 1}
    for op, t in (("sum", "f32"), ("prod", "i32"), ("min", "u8"), ("max", "i16"), ("and", "bool"), ("or", "bool"), ("min", "f32"), ("max", "bf16")):
        c = g.case(f"init_reduce_{op}{MLX[t]}")
        if op in ("min", "max"):
            info = None if is_float(t) else np.iinfo({"u8": np.uint8, "i16": np.int16}[t])
            v = (np.inf if op == "min" else -np.inf) if is_float(t) else info.max if op == "min" else info.min
        else:
            v = {"and": True, "or": False, **limits}[op]
        c.want("out", t, np.full(77, v))
        c.grid((11, 7), (8, 4))
    return g


def arg_reduces():
    g = Group("arg_reduce")
    for k, t in enumerate(("f32", "i32", "f16", "u8", "bf16", "i64", "u16", "bool")):
        for op in ("argmin", "argmax"):
            for shape, axis in (((3, 5, 37), 2), ((4, 150, 3), 1)) if k % 2 else (((1, 1, 1000), 2), ((6, 9, 4), 0)):
                c = g.case(f"{op}_{MLX[t]}", f"{shape} along {axis}")
                x = c.draw("in", t, shape, *((0, 1) if t == "bool" else (0, 40) if t[0] == "u" else (-40, 40)))
                f = np.argmin if op == "argmin" else np.argmax
                y = f(x, axis=axis)  # the first of equals
                c.want("out", "u32", y)
                strides = [math.prod(shape[i + 1:]) for i in range(3)]
                rest = [i for i in range(3) if i != axis]
                kept = [shape[i] for i in rest]
                c.value("shape", "i32", *kept)
                c.value("in_strides", "i64", *[strides[i] for i in rest])
                c.value("out_strides", "i64", kept[1], 1)
                c.value("ndim", "u64", 2)
                c.value("axis_stride", "i64", strides[axis])
                c.value("axis_size", "u64", shape[axis])
                tg = -(-min(-(-shape[axis] // 4), 1024) // 32) * 32
                c.grid((tg, math.prod(kept)), (tg, 1))
    # NumPy gives the place of the first NaN.
    for op in ("argmin", "argmax"):
        c = g.case(f"{op}_float32", "NaN")
        x = np.tile(np.arange(50.0), (4, 1))
        x[0, 20] = x[1, 0] = x[2, 49] = x[2, 30] = np.nan
        c.give("in", "f32", x)
        c.want("out", "u32", (np.argmin if op == "argmin" else np.argmax)(x, axis=1))
        c.value("shape", "i32", 4)
        c.value("in_strides", "i64", 50)
        c.value("out_strides", "i64", 1)
        c.value("ndim", "u64", 1)
        c.value("axis_stride", "i64", 1)
        c.value("axis_size", "u64", 50)
        c.grid((32, 4), (32, 1))
    return g


def softmax_rows(c, name, t, rows, n):
    x = c.draw(name, t, (rows, n), -80, 80, 1 / 8)
    return np.float64(x)


def softmaxes():
    g = Group("softmax")
    for kernel, t, rows, n in (
        ("block_softmax_float32", "f32", 3, 77), ("block_softmax_float32", "f32", 2, 1024), ("block_softmax_float32", "f32", 5, 5), ("block_softmax_float16", "f16", 3, 130), ("block_softmax_bfloat16", "bf16", 2, 64),
        ("block_softmax_precise_float16", "f16", 4, 100), ("block_softmax_precise_bfloat16", "bf16", 2, 515),
        ("looped_softmax_float32", "f32", 2, 4500), ("looped_softmax_float16", "f16", 1, 4100), ("looped_softmax_bfloat16", "bf16", 1, 4099), ("looped_softmax_precise_float16", "f16", 1, 5000), ("looped_softmax_precise_bfloat16", "bf16", 1, 4097),
    ):
        c = g.case(kernel, f"{rows} rows of {n}")
        x = softmax_rows(c, "in", t, rows, n)
        e = np.exp(x - x.max(1, keepdims=True))
        y = e / e.sum(1, keepdims=True)
        if "precise" in kernel or t == "f32":
            tolerance = {"rel": 4e-6, "ulp": 0.51 if t != "f32" else 2, "abs": 1e-7 if t == "f16" else 0, "why": SUM}
        else:
            # Differences, exponentials and their sum are of the type itself.
            tolerance = {"rel": EPS[t] * 8, "abs": EPS[t] / 16, "ulp": 2, "why": "each operation, sums among them, is rounded to the type"}
        c.want("out", t, y, **tolerance)
        c.value("axis_size", "i32", n)
        tg = 1024 if kernel.startswith("looped") else -(-(-(-n // 4)) // 32) * 32
        c.grid(rows * tg, tg)
    for kernel, t, rows, n in (("block_logsumexp_float32", "f32", 3, 77), ("block_logsumexp_float32", "f32", 1, 2000), ("block_logsumexp_float16", "f16", 5, 100), ("block_logsumexp_bfloat16", "bf16", 2, 9),
                               ("looped_logsumexp_float32", "f32", 1, 5001), ("looped_logsumexp_float16", "f16", 2, 4100), ("looped_logsumexp_bfloat16", "bf16", 1, 4500)):
        c = g.case(kernel, f"{rows} rows of {n}")
        x = softmax_rows(c, "in", t, rows, n)
        m = x.max(1)
        c.want("out", t, np.log(np.exp(x - m[:, None]).sum(1)) + m, abs=4e-6, ulp=0.51 if t != "f32" else 2, why=SUM)
        c.value("axis_size", "i32", n)
        tg = 1024 if kernel.startswith("looped") else -(-(-(-n // 4)) // 32) * 32
        c.grid(rows * tg, tg)
    for t, rows, n, tg in (("f32", 3, 1000, 256), ("f16", 2, 333, 64), ("bf16", 2, 4100, 1024)):
        target = np.arange(rows) * 37 % n
        target[-1] -= n  # counts from the end
        c = g.case(f"cross_entropy_{MLX[t]}", f"{rows} rows of {n}")
        x = softmax_rows(c, "in", t, rows, n)
        c.give("targets", "i32", target)
        m = x.max(1)
        loss = np.log(np.exp(x - m[:, None]).sum(1)) + m - x[np.arange(rows), target]
        c.want("out", "f32", loss, abs=4e-6, ulp=4, why=SUM)
        c.value("axis_size", "i32", n)
        c.grid(rows * tg, tg)
        c = g.case(f"cross_entropy_vjp_{MLX[t]}", f"{rows} rows of {n}")
        x = softmax_rows(c, "in", t, rows, n)
        c.give("targets", "i32", target)
        m = x.max(1)
        loss = np.float64(c.give("loss", "f32", np.log(np.exp(x - m[:, None]).sum(1)) + m - x[np.arange(rows), target]))
        g1 = np.float64(c.draw("cotan", "f32", rows, -8, 8, 1 / 4))
        one = np.zeros((rows, n))
        one[np.arange(rows), target] = 1
        p = np.exp(x - x[np.arange(rows), target][:, None] - loss[:, None])
        c.want("out", t, g1[:, None] * (p - one), rel=4e-6, abs=1e-6, ulp=0.51 if t != "f32" else 2, why="fast exp, a difference, a product, and the rounding of the result")
        c.value("axis_size", "i32", n)
        c.grid(rows * tg, tg)
    return g


def scans():
    g = Group("scan")
    types = {"sum": ("f32", "i32", "f16", "i64", "bool", "u8"), "prod": ("f32", "u32", "i64"), "max": ("f32", "i8", "u64"), "min": ("bf16", "i32", "f16"), "logaddexp": ("f32", "f16")}
    k = 0
    for op in types:
        for t in types[op]:
            for how in ("contig", "strided") if k % 3 == 0 else (("contig", "strided")[k % 2],):
                reverse, inclusive = k // 2 % 2 == 1, k % 2 == 0
                out = "i32" if t == "bool" else t
                c = g.case(f"{how}_scan_{'reverse_' if reverse else ''}{'inclusive' if inclusive else 'exclusive'}_{op}_{MLX[t]}_{MLX[out]}", "")
                rows, n, stride = (3, 300 + 97 * k, 1) if how == "contig" else (2, 45 + k, 37)
                shape = (rows, n, stride)
                if op == "prod" and is_float(t):
                    x = values(c, "in", t, op, shape)
                elif op == "logaddexp":
                    x = c.draw("in", t, shape, -40, 40, 1 / 8)
                else:
                    x = values(c, "in", t, op, shape)
                z = np.float64(x) if is_float(t) else x.astype(np.int32) if t == "bool" else x
                z = np.flip(z, 1) if reverse else z
                f = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum, "logaddexp": np.logaddexp}[op]
                with np.errstate(over="ignore"):
                    y = f.accumulate(z, axis=1, dtype=z.dtype)
                if not inclusive:
                    first = {"sum": 0, "prod": 1, "logaddexp": -np.inf}.get(op)
                    if first is None:
                        first = (np.inf if op == "min" else -np.inf) if is_float(t) else getattr(np.iinfo(z.dtype), "max" if op == "min" else "min")
                    y = np.concatenate([np.full_like(y[:, :1], first), y[:, :-1]], 1)
                y = np.flip(y, 1) if reverse else y
                tolerance = {"abs": 3e-5 if t == "f32" else 0, "ulp": 0 if t == "f32" else 40, "why": "each of up to 600 steps is rounded, most of them to less than a thousandth of it"} if op == "logaddexp" else {}
                c.want("out", out, y, **tolerance)
                c.value("axis_size", "u64", n)
                reads = 4 if SIZES[out] <= 4 else 2
                if how == "contig":
                    tg = -(-n // (reads * 32)) * 32
                    c.grid((tg, rows), (tg, 1))
                else:
                    c.value("stride", "u64", stride)
                    c.value("stride_blocks", "u64", -(-stride // 32))
                    tg = 32 // reads * 32
                    c.grid((tg, rows * -(-stride // 32)), (tg, 1))
            k += 1
    return g


def sorts():
    g = Group("sort")
    for k, (t, bn, rows, n) in enumerate((("f32", 128, 3, 500), ("f16", 32, 5, 128), ("i32", 64, 2, 201), ("u8", 256, 1, 900), ("i64", 128, 2, 333), ("bf16", 512, 1, 1500), ("u16", 64, 2, 129), ("i16", 32, 3, 77), ("u32", 32, 2, 2))):
        for arg in ("", "arg"):
            low, high = (0, 200) if t[0] == "u" else (-100, 100)
            c = g.case(f"c{arg}_block_sort_{MLX[t]}_{'uint32' if arg else MLX[t]}_bn{bn}_tn4")
            x = c.draw("inp", t, (rows, n), low, high)
            if arg:
                c.want("out", "u32", np.argsort(x, 1, kind="stable"))
            else:
                c.want("out", t, np.sort(x, 1))
            for name, v in (("size_sorted_axis", n), ("in_stride_sorted_axis", 1), ("out_stride_sorted_axis", 1), ("in_stride_segment_axis", n), ("out_stride_segment_axis", n)):
                c.value(name, "i32", v)
            c.groups((1, rows), bn)
            # The middle axis of three.
            a, b = 2, 1 + k % 3
            c = g.case(f"nc{arg}_block_sort_{MLX[t]}_{'uint32' if arg else MLX[t]}_bn{bn}_tn4")
            x = c.draw("inp", t, (a, n, b), low, high)
            if arg:
                c.want("out", "u32", np.argsort(x, 1, kind="stable"))
            else:
                c.want("out", t, np.sort(x, 1))
            for name, v in (("size_sorted_axis", n), ("in_stride_sorted_axis", b), ("out_stride_sorted_axis", b), ("nc_dim", 2)):
                c.value(name, "i32", v)
            c.value("nc_shape", "i32", a, b)
            c.value("in_nc_strides", "i64", n * b, 1)
            c.value("out_nc_strides", "i64", n * b, 1)
            c.groups((1, a * b), bn)
    # Sorting by several blocks: blocks are sorted, partitions found, and pairs of blocks merged.
    for t, bn, n in (("f32", 512, 5000), ("i64", 256, 3333), ("u16", 512, 4097)):
        block, name, i = bn * 4, MLX[t], f"_uint32_bn{bn}_tn4"
        blocks = -(-n // block)
        values_ = (np.arange(n) * 7919 % n - (0 if t[0] == "u" else n // 2)).astype(np.int64)  # each once
        c = g.case(f"sort_mbsort_{name}{i}")
        x = c.give("inp", t, values_)
        order = np.concatenate([b * block + np.argsort(values_[b * block:][:block]) for b in range(blocks)])
        c.want("out_vals", t, values_[order])
        c.want("out_idxs", "u32", order)
        c.value("size_sorted_axis", "i32", n)
        c.value("stride_sorted_axis", "i32", 1)
        c.value("nc_dim", "i32", 0)
        c.value("nc_shape", "i32", 0)
        c.value("nc_strides", "i64", 1)
        c.groups((blocks, 1), bn)
        v = values_[order]
        # How many of the first block of a pair are among the first elements of both.
        parts = []
        for p in range(blocks + 1):
            pair, lane = divmod(p, 2)
            a0, a1 = min(n, pair * 2 * block), min(n, pair * 2 * block + block)
            b1 = min(n, a1 + block)
            among = np.argsort(np.concatenate([v[a0:a1], v[a1:b1]]))[:lane * block]
            parts.append(a0 + int((among < a1 - a0).sum()))
        c = g.case(f"partition_mbsort_{name}{i}")
        c.want("block_partitions", "u32", parts)
        c.give("dev_vals", t, v)
        c.give("dev_idxs", "u32", order)
        for key, w in (("size_sorted_axis", n), ("merge_tiles", 2), ("n_blocks", blocks)):
            c.value(key, "i32", w)
        c.groups((1, 1), blocks + 1)
        c = g.case(f"merge_mbsort_{name}{i}")
        c.give("block_partitions", "u32", parts)
        c.give("dev_vals_in", t, v)
        c.give("dev_idxs_in", "u32", order)
        merged = np.concatenate([s + np.argsort(v[s:s + 2 * block]) for s in range(0, n, 2 * block)])
        c.want("dev_vals_out", t, v[merged])
        c.want("dev_idxs_out", "u32", order[merged])
        for key, w in (("size_sorted_axis", n), ("merge_tiles", 2), ("num_tiles", blocks)):
            c.value(key, "i32", w)
        c.groups((blocks, 1), bn)
    for k, t in enumerate(("f32", "i32", "u8", "f16", "bf16", "i64")):
        side = ("left", "right")[k % 2]
        c = g.case(f"searchsorted_{MLX[t]}_{side}")
        stride = 1 + k % 2
        a = np.sort(np.arange(50) * 37 % 23) + 1
        spread = np.full((50 - 1) * stride + 1, 99)
        spread[::stride] = a
        c.give("a", t, spread)
        v = c.draw("v", t, 66, 0, 25)
        c.want("out", "u32", np.searchsorted(a, np.float64(v), side=side))
        c.value("n", "u32", 50)
        c.value("a_stride", "i64", stride)
        c.grid((11, 6), (11, 1))
    return g


def threefry(key, count):
    """Threefry-2x32 with 20 rounds (Salmon et al., Parallel random numbers: as easy as 1, 2, 3, 2011)."""
    with np.errstate(over="ignore"):
        k = [np.uint32(key[0]), np.uint32(key[1])]
        k.append(k[0] ^ k[1] ^ np.uint32(0x1BD11BDA))
        x = [np.uint32(count[0]) + k[0], np.uint32(count[1]) + k[1]]
        for i in range(20):
            r = (13, 15, 26, 6, 17, 29, 16, 24)[i % 8]
            x[0] = x[0] + x[1]
            x[1] = (x[1] << np.uint32(r) | x[1] >> np.uint32(32 - r)) ^ x[0]
            if i % 4 == 3:
                s = i // 4 + 1
                x[0] = x[0] + k[s % 3]
                x[1] = x[1] + k[(s + 1) % 3] + np.uint32(s)
    return x


# The vectors that Random123 1.14 publishes (examples/kat_vectors, threefry2x32 20).
KNOWN = (((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)), ((0xFFFFFFFF,) * 2, (0xFFFFFFFF,) * 2, (0x1CB996FC, 0xBB002BE7)), ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)))
for key, count, want in KNOWN:
    assert tuple(int(v) for v in threefry(key, count)) == want


def randoms():
    g = Group("random", "Threefry-2x32 in NumPy, held against the vectors of Random123")
    for kernel in ("rbitsc", "rbits"):
        for keys, size in ((2, 40), (3, 28), (1, 13), (2, 6), (1, 8)):
            c = g.case(kernel, f"{keys} keys, {size} bytes each")
            if kernel == "rbits":  # keys lie as columns
                k = c.draw("keys", "u32", (2, keys)).T
            else:
                k = c.draw("keys", "u32", (keys, 2))
            words = -(-size // 4)
            half = words // 2 + words % 2
            out = []
            for key in k:
                i = np.arange(half, dtype=np.uint32)
                second = i + np.uint32(half)
                if words % 2:
                    second[-1] = 0  # MLX's counter of the last pair, whose second word is not used
                a, b = threefry(key, (i, second))
                out.append(np.concatenate([a, b])[:words].astype(np.uint32).tobytes()[:size])
            c.want("out", "i8", np.frombuffer(b"".join(out), np.int8))
            c.value("odd", "bool", words % 2)
            c.value("bytes_per_key", "u64", size)
            if kernel == "rbits":
                c.value("ndim", "i32", 2)
                c.value("key_shape", "i32", keys, 2)
                c.value("key_strides", "i64", 1, keys)
            c.grid((keys, half), (keys, half))
    # The first published vector: key 0, and a counter of 0 and 0 where one word is wanted.
    c = g.case("rbitsc", "known answer", oracle="Random123's published vectors")
    c.give("keys", "u32", [0, 0])
    c.want("out", "u32", [KNOWN[0][2][0]])
    c.value("odd", "bool", 1)
    c.value("bytes_per_key", "u64", 4)
    c.grid((1, 1), (1, 1))
    return g


def dots():
    g = Group("dot")
    for t in ("f32", "f16", "bf16"):
        for n in (20000, 513):
            c = g.case(f"dot_product_{MLX[t]}_it32_tg512_sg16", str(n))
            a = np.float64(c.draw("a", t, n, -4, 4))
            b = np.float64(c.draw("b", t, n, -4, 4))
            groups = -(-n // (512 * 32))
            c.want("output", "f32", [np.dot(a[i * 16384:][:16384], b[i * 16384:][:16384]) for i in range(groups)])
            c.value("n", "i32", n)
            c.groups(groups, 512)
    return g


GROUPS = (reduces, arg_reduces, softmaxes, scans, sorts, randoms, dots)
