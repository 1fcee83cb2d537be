"""Quantized weights: affine (bits, groups, scales and biases), and the formats mxfp4, mxfp8 and nvfp4.

Formulas are in NumPy; where mlx is installed (testdata/gen/requirements.txt), its CPU back end is asked
for the same weights and must say the same.
"""
import numpy as np

from cases import EPS, Group, bf16_bits, cast, mix

try:
    import mlx.core as mx
except ImportError:
    mx = None

NAME = {"f32": "float", "f16": "float16_t", "bf16": "bfloat16_t"}
FP4 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
FP4 = np.concatenate([FP4, -FP4])


def fp8(code):
    """e4m3 without infinities (OCP 8-bit floating point, 2023)."""
    code = np.asarray(code).astype(np.int64)
    e, m = code >> 3 & 15, code & 7
    v = np.where(e == 0, m * 2.0**-9, (8 + m) * 2.0 ** (e - 10.0))
    return np.where(code & 128, -v, v)


def unpack(words, bits):
    """The codes of a stream of bits, the lowest first."""
    b = np.unpackbits(np.ascontiguousarray(words).view(np.uint8), axis=-1, bitorder="little")
    b = b.reshape(*b.shape[:-1], -1, bits)
    return (b.astype(np.int64) << np.arange(bits)).sum(-1)


def pack(codes, bits):
    b = (codes[..., None] >> np.arange(bits) & 1).astype(np.uint8)
    return np.packbits(b.reshape(*codes.shape[:-1], -1), axis=-1, bitorder="little")


class Form:
    """A kernel's weights: mode, bits, size of groups, the type of activations, a global scale."""

    def __init__(self, mode, bits, group, t, scaled=False):
        self.mode, self.bits, self.group, self.t, self.scaled = mode, bits, group, t, scaled

    def name(self, what):
        return f"{self.mode}_{what}_{NAME[self.t]}_gs_{self.group}_b_{self.bits}"

    def weights(self, c, n, rows, columns):
        """Draws n matrices; returns their values and the words, scales of a row."""
        words = columns * self.bits // 32
        groups = columns // self.group
        if self.bits == 8 and self.mode != "affine":
            w = c.draw("w", "u8", (n, rows, columns), 0x28, 0x4F)
            codes = w
        else:
            w = c.draw("w", "u32", (n, rows, words))
            codes = unpack(w, self.bits)
        if self.mode == "affine":
            s = np.float64(c.draw("scales", self.t, (n, rows, groups), 1, 4, 1 / 4))
            b = np.float64(c.draw("biases", self.t, (n, rows, groups), -8, 8, 1 / 4))
            values = codes * s.repeat(self.group, -1) + b.repeat(self.group, -1)
            if mx is not None:
                d = mx.dequantize(mx.array(w), mx.array(s.astype(np.float32)), mx.array(b.astype(np.float32)), self.group, self.bits, stream=mx.cpu)
                assert np.array_equal(np.array(d), values.astype(np.float32)), self.name("dequantize")
            return values, words, groups
        if self.mode == "nvfp4":
            q = c.draw("scales", "u8", (n, rows, groups), 0x30, 0x3C)
            s = fp8(q)
        else:
            q = c.draw("scales", "u8", (n, rows, groups), 126, 128)
            s = 2.0 ** (q.astype(np.float64) - 127)
        v = fp8(codes) if self.bits == 8 else FP4[codes]
        if mx is not None and q.size % 4 == 0:  # of others mlx's CPU back end cannot make the shape
            packed = np.ascontiguousarray(w).view(np.uint32)
            d = mx.dequantize(mx.array(packed), mx.array(q), None, self.group, self.bits, mode=self.mode, dtype=mx.float32, stream=mx.cpu)
            assert np.array_equal(np.array(d), (v * s.repeat(self.group, -1)).astype(np.float32)), self.name("dequantize")
        values = v * s.repeat(self.group, -1)
        if self.scaled:  # scales are of values up to 448 · 6
            values = values * self.factor(c, n)
        return values, words, groups

    def factor(self, c, n):
        scale = 448 * 6 * 2.0 ** (np.arange(n) % 3 - 1)
        if "gather" not in c.kernel:
            scale = scale[:1]
        c.give("global_scale", "f32", scale)
        return (scale / (448 * 6))[:, None, None]


def operands(c, f, batch, M, K):
    x = c.draw("x", f.t, (batch, M, K), -2, 2)
    return np.float64(x)


def batched(c, f, batch, M, K, rows, words, groups, columns):
    c.value("x_batch_ndims", "i32", 1)
    c.value("x_shape", "i32", batch, M, K)
    c.value("x_strides", "i64", M * K, K, 1)
    c.value("w_batch_ndims", "i32", 1)
    c.value("w_shape", "i32", batch, rows, words)
    c.value("w_strides", "i64", rows * words, words, 1)
    c.value("s_strides", "i64", rows * groups, groups, 1)
    if f.mode == "affine":
        c.value("b_strides", "i64", rows * groups, groups, 1)


def sizes(c, what, M, N, K):
    if "qmm" in what:
        for k, v in (("K", K), ("N", N), ("M", M)):
            c.value(k, "i32", v)
    else:
        c.value("in_vec_size", "i32", K)
        c.value("out_vec_size", "i32", N)
        if "wide" in what:
            c.value("M", "i32", M)


def product(g, f, what, suffix, M, N, K, batch=1):
    """y = x·wᵀ, or x·w where the weights lie the other way."""
    straight = what in ("qvm", "qmm_n")
    c = g.case(f.name(what) + suffix, f"{M}x{N}x{K}{' batched' if batch > 1 else ''}")
    rows, columns = (K, N) if straight else (N, K)
    w, words, groups = f.weights(c, batch, rows, columns)
    x = operands(c, f, batch, M, K)
    c.want("y", f.t, x @ (w if straight else np.swapaxes(w, 1, 2)))
    sizes(c, what, M, N, K)
    if "_batch_1" in suffix:
        batched(c, f, batch, M, K, rows, words, groups, columns)
    group = (32, 2, 1)
    if what == "qmv_quad":
        grid, group = (M, -(-N // 64), batch), (32, 1, 1)
    elif what == "qmv_wide":
        nv = int(suffix.split("_nv_")[1][0])
        grid = (-(-M // nv), -(-N // (8 if f.mode == "affine" else 4)), batch)
    elif what.startswith("qmv"):
        grid = (M, -(-N // (4 if suffix.endswith("_r_2") else 8)), batch)
    elif what == "qvm":
        grid = (M, -(-N // (2 * min(f.group, 32))), batch)
    else:
        grid, group = (-(-N // 32), -(-M // 32), batch), (32, 2, 2)
    c.groups(grid, group)


def split(g, f, what, M, N, K, parts, suffix):
    """Partial results for parts of the inner axis."""
    straight = what == "qvm_split_k"
    c = g.case(f.name(what) + suffix, f"{M}x{N}x{K}")
    rows, columns = (K, N) if straight else (N, K)
    w, words, groups = f.weights(c, 1, rows, columns)
    w = w[0] if straight else w[0].T
    x = operands(c, f, 1, M, K)[0]
    size = K // parts
    y = np.stack([x[:, i * size:(i + 1) * size] @ w[i * size:(i + 1) * size] for i in range(parts)])
    if straight:
        c.want("y", f.t, y)
        c.value("in_vec_size", "i32", size)
        c.value("out_vec_size", "i32", N)
        c.value("x_batch_ndims", "i32", 1)
        c.value("x_shape", "i32", parts, M, size)
        c.value("x_strides", "i64", size, K, 1)
        c.value("w_batch_ndims", "i32", 1)
        c.value("w_shape", "i32", parts, size, words)
        c.value("w_strides", "i64", size * words, words, 1)
        c.value("s_strides", "i64", size * groups, groups, 1)
        if f.mode == "affine":
            c.value("b_strides", "i64", size * groups, groups, 1)
        c.value("final_block_size", "i32", size)
        c.groups((M, -(-N // (2 * min(f.group, 32))), parts), (32, 2, 1))
    else:
        c.want("y", "f32", y)
        sizes(c, what, M, N, K)
        c.value("k_partition_size", "i32", size)
        c.value("split_k_partition_stride", "i32", M * N)
        c.groups((-(-N // 32), -(-M // 32), parts), (32, 2, 2))


def gathered(g, f, what, suffix, M, N, K):
    straight = what in ("gather_qvm", "gather_qmm_n")
    c = g.case(f.name(what) + suffix, f"{M}x{N}x{K}")
    experts, inputs, n = 4, 3, 6
    rows, columns = (K, N) if straight else (N, K)
    w, words, groups = f.weights(c, experts, rows, columns)
    x = operands(c, f, inputs, M, K)
    left, right = np.arange(n) % inputs, np.arange(n) * 3 % experts
    c.give("lhs_indices", "u32", left)
    c.give("rhs_indices", "u32", right)
    c.want("y", f.t, np.stack([x[i] @ (w[j] if straight else w[j].T) for i, j in zip(left, right)]))
    sizes(c, what, M, N, K)
    c.value("x_batch_ndims", "i32", 1)
    c.value("x_shape", "i32", inputs, M, K)
    c.value("x_strides", "i64", M * K, K, 1)
    c.value("w_batch_ndims", "i32", 1)
    c.value("w_shape", "i32", experts, rows, words)
    c.value("w_strides", "i64", rows * words, words, 1)
    c.value("s_strides", "i64", rows * groups, groups, 1)
    if f.mode == "affine":
        c.value("b_strides", "i64", rows * groups, groups, 1)
    c.value("batch_ndims", "i32", 1)
    c.value("batch_shape", "i32", n)
    c.value("lhs_strides", "i64", 1)
    c.value("rhs_strides", "i64", 1)
    if "qmm" in what:
        c.groups((-(-N // 32), -(-M // 32), n), (32, 2, 2))
    elif "qvm" in what:
        c.groups((M, -(-N // (2 * min(f.group, 32))), n), (32, 2, 1))
    else:
        c.groups((M, -(-N // 8), n), (32, 2, 1))


def experts(g, f, letter, suffix, N, K):
    """Rows that are sorted by the expert whose weights they meet."""
    straight = letter == "nn"
    counts = (20, 0, 13, 21, 1)
    index = np.repeat(np.arange(len(counts)), counts)
    M = len(index)
    c = g.case(f.name("gather_qmm_rhs_" + letter) + "_bm_16_bn_32_bk_32_wm_1_wn_2" + suffix, f"{M}x{N}x{K}", align_N=N % 32 == 0, align_K=K % 32 == 0)
    rows, columns = (K, N) if straight else (N, K)
    w, _, _ = f.weights(c, len(counts), rows, columns)
    x = operands(c, f, 1, M, K)[0]
    c.give("offsets", "i32", np.searchsorted(index, np.arange(len(counts))))
    c.want("y", f.t, np.stack([x[i] @ (w[e] if straight else w[e].T) for i, e in enumerate(index)]))
    for k, v in (("M", M), ("N", N), ("K", K), ("num_groups", len(counts))):
        c.value(k, "i32", v)
    c.groups((-(-N // 32), -(-M // 16) + len(counts) - 1), (32, 2, 1))


def half_away(x):
    return np.trunc(x + np.copysign(0.5, x))


def quantize(g, f, n):
    """Quantizing n groups; the way of mlx's CPU back end is asked where it is there."""
    c = g.case(f.name("quantize") + ("" if f.mode == "affine" else f"_hgs_{'true' if f.scaled else 'false'}"), f"{n} groups")
    t = f.t
    w = c.draw("w", t, (n, f.group), -500, 500, 0.0137)
    x = np.float32(np.float64(w))
    if f.mode == "affine":
        bins = np.float32((1 << f.bits) - 1)
        low, high = x.min(1), np.maximum(x.max(1), np.float32(0))
        if f.bits == 1:
            s, b = np.maximum(high - low, np.float32(1e-7)), low
        else:
            s = np.maximum((high - low) / bins, np.float32(1e-7))
            side = np.abs(low) > np.abs(high)
            s = np.where(side, s, -s)
            edge = np.where(side, low, high)
            q = half_away(np.float64(edge / s)).astype(np.float32)
            s, b = np.where(q == 0, s, edge / np.where(q == 0, 1, q)), np.where(q == 0, np.float32(0), edge)
        exact = np.float64((x - b[:, None]) / s[:, None])
        codes = np.minimum(half_away(exact), bins).astype(np.int64)
        assert codes.min() >= 0
        c.want("out", "u8", pack(codes.reshape(1, -1), f.bits))
        c.want("scales", t, s)
        c.want("biases", t, b)
        per = f.group // 32
        if mx is not None and t == "f32":
            q, ms, mb = mx.quantize(mx.array(x), f.group, f.bits, stream=mx.cpu)
            # Between two codes mlx's kernel rounds away from zero, its CPU back end to even.
            clear = exact - np.floor(exact) != 0.5
            same(unpack(np.array(q).view(np.uint8).reshape(n, -1), f.bits)[clear], codes[clear], c.kernel)
            same(np.array(ms)[:, 0], s, c.kernel)
            same(np.array(mb)[:, 0], b, c.kernel)
        c.grid(n * 32, 64)
        return
    most = np.abs(x).max(1)
    enc = np.float32(1)
    if f.scaled:
        total = np.float32(np.abs(x).max())
        c.give("global_scale", "f32", [total])
        enc = np.float32(2688) / total
    s = most / np.float32(6 if f.bits == 4 else 448)
    if f.scaled:
        s = s * enc
    if f.mode == "nvfp4":
        grid = fp8(np.arange(127))
        q = nearest(s, grid)
        value = grid[q]
    else:  # the least power of two that is no less
        e = np.ceil(np.log2(np.float64(s)))
        q, value = (e + 127).astype(np.int64), 2.0**e
    inverse = np.where(value == 0, np.float32(0), enc / np.float32(np.where(value == 0, 1, value)))
    y = x * inverse[:, None].astype(np.float32)
    table = FP4[:8] if f.bits == 4 else fp8(np.arange(127))
    codes = nearest(np.abs(np.float64(y)), table)
    signed = codes | np.signbit(y).astype(np.int64) << (f.bits - 1)
    c.want("out", "u8", pack(signed.reshape(1, -1), f.bits))
    c.want("scales", "u8", q)
    if mx is not None and t == "f32" and not f.scaled:
        a = mx.quantize(mx.array(x), f.group, f.bits, mode=f.mode, stream=mx.cpu)
        same(np.array(a[1]).reshape(-1), q, c.kernel)
        # mlx's CPU back end drops the sign of zero.
        got = unpack(np.array(a[0]).view(np.uint8).reshape(n, -1), f.bits)
        same(np.where(codes == 0, 0, got), np.where(codes == 0, 0, signed), c.kernel)
    c.grid(n * f.group, 64)
    # The same and back.
    c = g.case(f.name("quantize_dequantize") + f"_hgs_{'true' if f.scaled else 'false'}", f"{n} groups")
    c.give("w", t, np.float64(w))
    if f.scaled:
        c.give("global_scale", "f32", [total])
    back = np.where(np.signbit(y), -1, 1) * table[codes] * np.float64(np.float32(value) / enc)[:, None]
    c.want("out", t, back, ulp=0.51 if t != "f32" else 1, why="a quotient and a product of float32, and the rounding of the result")
    c.grid(n * f.group, 64)


def same(a, b, what):
    if not np.array_equal(a, b):
        raise ValueError(f"{what}: mlx and the formula differ at {np.flatnonzero(a != b)[:9]} of {a.size}: {a[a != b][:9]}, {b[a != b][:9]}")


def nearest(x, table):
    """The place of the nearest value in an ascending table, ties to the even place."""
    x = np.minimum(np.float64(x), table[-1])
    hi = np.searchsorted(table, x).clip(1, len(table) - 1)
    lo = hi - 1
    a, b = x - table[lo], table[hi] - x
    return np.where(a < b, lo, np.where(b < a, hi, np.where(lo % 2 == 0, lo, hi)))


def dequantize(g, f, n):
    c = g.case(f.name("dequantize") + ("" if f.mode == "affine" else f"_hgs_{'true' if f.scaled else 'false'}"), f"{n} groups")
    values, _, _ = f.weights(c, 1, n, f.group)
    c.want("out", f.t, values)
    pack_factor = {1: 8, 2: 4, 3: 8, 4: 2, 5: 8, 6: 4, 8: 1}[f.bits]
    c.grid(n * f.group // pack_factor, 64)


def affine():
    g = Group("affine", "NumPy, mlx's CPU back end")
    F = lambda bits, group, t: Form("affine", bits, group, t)
    for bits, group, t in ((4, 64, "f32"), (8, 32, "f32"), (2, 128, "f32"), (3, 64, "f32"), (5, 32, "f32"), (6, 64, "f32"), (1, 64, "f32")):
        quantize(g, F(bits, group, t), 16)
    for bits, group, t in ((4, 64, "f32"), (8, 32, "f16"), (2, 128, "bf16"), (3, 64, "f32"), (5, 32, "f16"), (6, 64, "f32"), (1, 128, "f32")):
        dequantize(g, F(bits, group, t), 16)
    b0 = "_batch_0_pr_0_hgs_0_r_4"
    product(g, F(4, 64, "f32"), "qmv_fast", b0, 2, 24, 512)
    product(g, F(4, 32, "f16"), "qmv_fast", b0, 1, 16, 1024)
    product(g, F(8, 64, "f32"), "qmv_fast", "_batch_1_pr_0_hgs_0_r_4", 1, 8, 512, 3)
    product(g, F(2, 128, "bf16"), "qmv_fast", b0, 1, 8, 512)
    product(g, F(4, 128, "f32"), "qmv_fast", "_batch_0_pr_1_hgs_0_r_4", 2, 21, 512)
    product(g, F(6, 64, "f32"), "qmv_fast", b0, 1, 8, 256)
    product(g, F(4, 64, "f32"), "qmv", b0, 3, 21, 192)
    product(g, F(3, 32, "f16"), "qmv", b0, 1, 13, 96)
    product(g, F(5, 64, "f32"), "qmv", "_batch_1_pr_0_hgs_0_r_4", 1, 5, 128, 2)
    product(g, F(8, 32, "bf16"), "qmv", b0, 2, 9, 160)
    product(g, F(4, 64, "bf16"), "qmv", b0, 1, 3, 64)
    product(g, F(4, 64, "f32"), "qmv_quad", "_d_64_batch_0", 2, 70, 64)
    product(g, F(8, 32, "f16"), "qmv_quad", "_d_128_batch_0", 1, 64, 128)
    product(g, F(2, 64, "bf16"), "qmv_quad", "_d_128_batch_1", 1, 65, 128, 2)
    product(g, F(4, 64, "f32"), "qmv_wide", "_nv_3_kl_8_batch_0", 5, 20, 256)
    product(g, F(8, 32, "f16"), "qmv_wide", "_nv_2_kl_8_batch_0", 2, 16, 128)
    product(g, F(4, 128, "bf16"), "qmv_wide", "_nv_5_kl_8_batch_1", 5, 11, 256, 2)
    product(g, F(3, 64, "f32"), "qmv_wide", "_nv_4_kl_8_batch_0", 7, 9, 192)
    product(g, F(4, 64, "f32"), "qvm", "_batch_0", 2, 128, 96)
    product(g, F(8, 32, "f16"), "qvm", "_batch_0", 1, 64, 70)
    product(g, F(2, 32, "bf16"), "qvm", "_batch_1", 1, 96, 50, 2)
    split(g, F(4, 64, "f32"), "qvm_split_k", 2, 128, 1024, 8, "_spk_8")
    split(g, F(4, 32, "f16"), "qvm_split_k", 1, 64, 2048, 32, "_spk_32")
    product(g, F(4, 64, "f32"), "qmm_t", "_alN_true_batch_0", 40, 64, 128)
    product(g, F(4, 32, "f16"), "qmm_t", "_alN_false_batch_0", 20, 45, 96)
    product(g, F(2, 64, "bf16"), "qmm_t", "_alN_true_batch_1", 7, 32, 64, 2)
    product(g, F(8, 64, "f32"), "qmm_t", "_alN_false_batch_0", 33, 33, 64)
    product(g, F(3, 32, "f32"), "qmm_t", "_alN_true_batch_0", 8, 32, 96)
    product(g, F(4, 64, "f32"), "qmm_n", "_batch_0", 40, 64, 96)
    product(g, F(8, 32, "f16"), "qmm_n", "_batch_0", 9, 32, 64)
    product(g, F(4, 32, "bf16"), "qmm_n", "_batch_1", 6, 96, 32, 2)
    split(g, F(4, 64, "f32"), "qmm_t_splitk", 35, 64, 512, 4, "_alN_true")
    split(g, F(4, 32, "f16"), "qmm_t_splitk", 12, 37, 256, 2, "_alN_false")
    gathered(g, F(4, 64, "f32"), "gather_qmv_fast", "", 1, 16, 512)
    gathered(g, F(4, 64, "f16"), "gather_qmv", "", 2, 13, 128)
    gathered(g, F(8, 32, "f32"), "gather_qmv", "", 1, 8, 96)
    gathered(g, F(4, 64, "f32"), "gather_qvm", "", 1, 64, 96)
    gathered(g, F(4, 64, "f32"), "gather_qmm_t", "_alN_true", 35, 32, 64)
    gathered(g, F(4, 32, "bf16"), "gather_qmm_t", "_alN_false", 9, 41, 96)
    gathered(g, F(4, 64, "f16"), "gather_qmm_n", "", 10, 64, 64)
    experts(g, F(4, 64, "f32"), "nt", "", 64, 64)
    experts(g, F(4, 32, "f16"), "nn", "", 64, 96)
    experts(g, F(8, 64, "f32"), "nt", "", 40, 128)
    return g


def formats():
    g = Group("fp_quantized", "NumPy, mlx's CPU back end")
    M4 = lambda t: Form("mxfp4", 4, 32, t)
    M8 = lambda t: Form("mxfp8", 8, 32, t)
    N4 = lambda t, scaled=False: Form("nvfp4", 4, 16, t, scaled)
    for f in (M4("f32"), M8("f32"), N4("f32"), N4("f32", True), M4("f16"), N4("bf16")):
        quantize(g, f, 24)
    for f in (M4("f32"), M8("f16"), N4("bf16"), N4("f32", True)):
        dequantize(g, f, 16)
    b0 = "_batch_0_pr_0_hgs_0_r_4"
    product(g, M4("f32"), "qmv_fast", b0, 2, 16, 512)
    product(g, M8("f16"), "qmv_fast", b0, 1, 8, 512)
    product(g, N4("bf16", True), "qmv_fast", "_batch_0_pr_0_hgs_1_r_2", 1, 12, 512)
    product(g, N4("f32"), "qmv_fast", "_batch_1_pr_1_hgs_0_r_4", 1, 11, 512, 2)
    product(g, M4("f32"), "qmv", b0, 2, 13, 96)
    product(g, M8("bf16"), "qmv", b0, 1, 9, 160)
    product(g, N4("f32", True), "qmv", "_batch_0_pr_0_hgs_1_r_4", 1, 21, 80)
    product(g, N4("f16"), "qmv", "_batch_1_pr_0_hgs_0_r_4", 1, 5, 144, 3)
    product(g, M4("f32"), "qmv_quad", "_d_64_batch_0", 1, 70, 64)
    product(g, M8("f32"), "qmv_quad", "_d_128_batch_0", 1, 64, 128)
    product(g, N4("f16"), "qmv_quad", "_d_128_batch_1", 1, 66, 128, 2)
    product(g, M4("f32"), "qmv_wide", "_nv_3_kl_16_batch_0", 5, 14, 256)
    product(g, M8("f16"), "qmv_wide", "_nv_2_kl_16_batch_0", 2, 9, 512)
    product(g, N4("bf16"), "qmv_wide", "_nv_4_kl_16_batch_1", 4, 8, 256, 2)
    product(g, M4("f32"), "qvm", "_batch_0", 1, 128, 70)
    product(g, M8("f16"), "qvm", "_batch_1", 1, 64, 33, 2)
    product(g, N4("f32", True), "qvm", "_batch_0_hgs", 2, 64, 64)
    split(g, M4("f32"), "qvm_split_k", 1, 64, 512, 8, "_spk_8")
    split(g, N4("f16"), "qvm_split_k", 1, 64, 1024, 32, "_spk_32")
    product(g, M4("f32"), "qmm_t", "_alN_true_batch_0", 35, 32, 64)
    product(g, M8("f32"), "qmm_t", "_alN_false_batch_0", 9, 41, 96)
    product(g, N4("bf16", True), "qmm_t", "_alN_true_batch_0_hgs", 8, 32, 64)
    product(g, N4("f16"), "qmm_t", "_alN_true_batch_1", 8, 32, 32, 2)
    product(g, M4("f32"), "qmm_n", "_batch_0", 20, 64, 64)
    product(g, N4("f16"), "qmm_n", "_batch_0", 9, 32, 32)
    split(g, M4("f32"), "qmm_t_splitk", 33, 32, 256, 2, "_alN_true")
    split(g, M8("f16"), "qmm_t_splitk", 8, 21, 128, 2, "_alN_false")
    gathered(g, M4("f32"), "gather_qmv_fast", "", 1, 8, 512)
    gathered(g, N4("f32", True), "gather_qmv_fast", "_hgs", 1, 8, 512)
    gathered(g, M4("f16"), "gather_qmv", "", 2, 11, 96)
    gathered(g, N4("f32", True), "gather_qmv", "_hgs", 1, 9, 64)
    gathered(g, M8("f32"), "gather_qvm", "", 1, 64, 64)
    gathered(g, M4("f32"), "gather_qmm_t", "_alN_true", 12, 32, 64)
    gathered(g, N4("f16"), "gather_qmm_t", "_alN_false", 9, 35, 32)
    gathered(g, M4("f32"), "gather_qmm_n", "", 8, 64, 32)
    experts(g, M4("f32"), "nt", "", 64, 64)
    experts(g, N4("f16"), "nn", "", 64, 64)
    return g


GROUPS = (affine, formats)
