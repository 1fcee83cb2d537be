"""Functions that MLX has exported, and what MLX computes by them: testdata/mlxfn.

    python testdata/gen/mlxfn.py testdata/mlxfn

Each case is NAME.mlxfn and NAME.safetensors, with the arguments (arg0, arg1, …, and keywords by name) and MLX's results (out0,
out1, …); call0.out0 and so on are those of several calls, whose arguments are call0.arg0 and so on, and call0.wide the first result
as it is in f32, of the same weights. They lie in functions.zip. For the tests of commands sum.mlxfn stands beside it, with .npy files, and update.mlxfn, held.mlxfn, weighted.mlxfn with its
weights, several.mlxfn, refused.mlxfn and custom.mlxfn. Versions: requirements.txt.

MLX for CPUs records norms, rope and attention as what they are composed of, and MLX for GPUs as one primitive each. The cases
under "gpu" have these primitives: the function is traced by this MLX with stand-ins for them, and written by the class Writer
below, by the format's rules, with the stream of a GPU. Results are MLX's for the very same function without stand-ins.
"""

import os
import struct
import sys
import tempfile
import zipfile

import mlx.core as mx
import mlx.nn as nn
import numpy as np
from mlx.utils import tree_map
from mlx_lm.models import llama

TYPES = [mx.bool_, mx.uint8, mx.uint16, mx.uint32, mx.uint64, mx.int8, mx.int16, mx.int32, mx.int64, mx.float16, mx.float32, mx.float64, mx.bfloat16, mx.complex64]

# The fields of states, as frontend/mlxfn/states.go has them, of primitives that functions under "gpu" have.
STATES = {
    "AddMM": "ff", "Arange": "ddd", "ArgReduce": "ii", "AsType": "t", "Broadcast": "S", "Concatenate": "i", "DynamicSlice": "IS",
    "DynamicSliceUpdate": "I", "ArgPartition": "ii", "GatherAxis": "i", "GatherQMM": "iiibbb", "ExpandDims": "I", "Squeeze": "I", "Flatten": "ii", "Gather": "IS", "LayerNorm": "f", "QuantizedMatmul": "iiib",
    "Quantize": "iiib", "Reduce": "iI", "Reshape": "S", "RMSNorm": "f", "RoPE": "ibffb", "ScaledDotProductAttention": "fbbbb", "Slice": "SSS",
    "SliceUpdate": "iSSS", "Softmax": "b", "Split": "Si", "Sqrt": "b", "Transpose": "I", "Unflatten": "iS",
}


class Writer:
    """A .mlxfn file of one function, from what MLX hands to a callback. Ids are numbers from 1 on."""

    def __init__(self, metadata):
        self.out = bytearray()
        self.text(mx.__version__)
        self.out += struct.pack("<ib", 1, 0)
        self.text(metadata)
        self.known = {}

    def text(self, s):
        self.out += struct.pack("<Q", len(s)) + s.encode()

    def shape(self, s):
        self.out += struct.pack("<Q%di" % len(s), len(s), *s)

    def dtype(self, t):
        self.out += struct.pack("<iB", TYPES.index(t), t.size)

    def id(self, name):
        return self.known.setdefault(name, len(self.known) + 1)

    def ids(self, names):
        self.out += struct.pack("<Q%dQ" % len(names), len(names), *[self.id(n) for n in names])

    def state(self, name, values):
        fields = STATES.get(name, "")
        assert len(fields) == len(values), (name, values)
        for kind, v in zip(fields, values):
            if kind in "IS":
                self.shape(v)
            elif kind == "t":
                self.dtype(v)
            else:
                self.out += struct.pack({"i": "<i", "f": "<f", "d": "<d", "b": "<b"}[kind], v)

    def function(self, events):
        by = {e["type"]: e for e in events}
        inputs, names = by["inputs"]["inputs"], by["keyword_inputs"]["keywords"]
        self.out += struct.pack("<Q", len(names))
        for key, _ in names:
            self.text(key)
        self.ids([n for n, _, _ in inputs])
        self.out += struct.pack("<Q", len(inputs))
        for _, shape, dtype in inputs:
            self.shape(shape)
            self.dtype(dtype)
        self.ids([n for n, _, _ in by["outputs"]["outputs"]])
        nodes = [e for e in events if e["type"] == "primitive"]
        used = {n for e in nodes for n, _, _ in e["inputs"]}
        constants = [c for c in by["constants"]["constants"] if c[0] in used]
        self.out += struct.pack("<Q", len(constants) + len(nodes))
        for name, array in constants:
            self.out += struct.pack("<QBB", self.id(name), 0, 1)
            self.shape(array.shape)
            self.dtype(array.dtype)
            self.out += raw(array)
        for e in nodes:
            outs = e["outputs"]
            self.out += struct.pack("<QB", self.id(outs[0][0]), 1)
            self.ids([n for n, _, _ in e["inputs"]])
            self.out += struct.pack("<iii", 0, 1, 0)
            self.text(e["name"])
            self.state(e["name"], e["arguments"])
            self.out += struct.pack("<Q", len(outs) - 1)
            if len(outs) == 1:
                self.shape(outs[0][1])
                self.dtype(outs[0][2])
                continue
            self.ids([n for n, _, _ in outs])
            self.out += struct.pack("<Q", len(outs))
            for o in outs:
                self.shape(o[1])
            self.out += struct.pack("<Q", len(outs))
            for o in outs:
                self.dtype(o[2])


def raw(a):
    a = mx.contiguous(a)
    if a.dtype == mx.bfloat16:
        a = a.view(mx.uint16)
    return np.array(a).tobytes()


class StandIns:
    """While it is entered, fast operations are Depends on a constant that says which one it is."""

    MARK = 0x5EED

    def __init__(self):
        self.made = []

    def stand(self, like, operands, name, state):
        mark = mx.array([self.MARK, len(self.made)], mx.int32)
        mx.eval(mark)
        shaped = operands[0] is not like  # like has the shape of the result and nothing else of it
        self.made.append((name, state, shaped))
        return mx.depends([like], operands[0 if shaped else 1 :] + [mark])[0]

    def rms_norm(self, x, weight, eps):
        return self.stand(x, [x, mx.array(1, x.dtype) if weight is None else weight], "RMSNorm", [eps])

    def layer_norm(self, x, weight, bias, eps):
        w = mx.array(1, x.dtype) if weight is None else weight
        return self.stand(x, [x, w, mx.array(0, x.dtype) if bias is None else bias], "LayerNorm", [eps])

    def rope(self, x, dims, *, traditional, base, scale, offset, freqs=None):
        if not isinstance(offset, mx.array):
            offset = mx.array(offset, mx.int32)
        operands = [x, offset] + ([] if freqs is None else [freqs])
        return self.stand(x, operands, "RoPE", [dims, traditional, 1.0 if freqs is not None else base, scale, True])

    def scaled_dot_product_attention(self, q, k, v, *, scale, mask=None, sinks=None):
        t = mx.result_type(q, k, v)
        q, k, v = q.astype(t), k.astype(t), v.astype(t)
        operands, causal = [q, k, v], isinstance(mask, str)
        if mask is not None and not causal:
            operands.append(mx.broadcast_to(mask, (q.shape[0], q.shape[1], q.shape[2], k.shape[2])))
        if sinks is not None:
            operands.append(sinks)
        return self.stand(q, operands, "ScaledDotProductAttention", [scale, causal, sinks is not None, False, False])

    def dequantize(self, w, scales, biases=None, group_size=64, bits=4, mode="affine"):
        like = mx.broadcast_to(mx.array(0, scales.dtype), (*w.shape[:-1], w.shape[-1] * 32 // bits))
        return self.stand(like, [w, scales, biases], "Quantize", [group_size, bits, 0, True])

    NAMES = [(mx.fast, "rms_norm"), (mx.fast, "layer_norm"), (mx.fast, "rope"), (mx.fast, "scaled_dot_product_attention"), (mx, "dequantize")]

    def __enter__(self):
        self.real = [(m, n, getattr(m, n)) for m, n in self.NAMES]
        for m, n in self.NAMES:
            setattr(m, n, getattr(self, n))
        return self

    def __exit__(self, *_):
        for m, n, f in self.real:
            setattr(m, n, f)

    def replaced(self, events):
        """The events with stand-ins replaced by what they stand for."""
        marks = {}
        for e in events:
            if e["type"] == "constants":
                for name, a in e["constants"]:
                    if a.dtype == mx.int32 and a.shape == (2,) and a[0].item() == self.MARK:
                        marks[name] = a[1].item()
        for e in events:
            if e["type"] == "primitive" and e["name"] == "Depends" and e["inputs"][-1][0] in marks:
                e["name"], e["arguments"], shaped = self.made[marks[e["inputs"].pop()[0]]]
                if shaped:
                    e["inputs"].pop(0)
        needed, kept = {n for e in events if e["type"] == "outputs" for n, _, _ in e["outputs"]}, []
        for e in reversed(events):
            if e["type"] == "primitive":
                if not needed & {n for n, _, _ in e["outputs"]}:
                    continue
                needed |= {n for n, _, _ in e["inputs"]}
            kept.append(e)
        return kept[::-1]


def on_gpu(path, fun, args, kwargs):
    """Writes a function as MLX for GPUs would."""
    events = []
    with StandIns() as s:
        mx.export_function(events.append, fun, *args, **kwargs)
        events = s.replaced(events)
    w = Writer("written by testdata/gen/mlxfn.py")
    w.function(events)
    with open(path, "wb") as f:
        f.write(w.out)


mx.random.seed(7)


def rand(*shape, t=mx.float32, scale=1.0):
    a = (mx.random.normal(shape) * scale).astype(t)
    mx.eval(a)
    return a


def ints(lo, hi, *shape, t=mx.int32):
    a = mx.random.randint(lo, hi, shape).astype(t)
    mx.eval(a)
    return a


F32, F16, BF16, I32, U32 = mx.float32, mx.float16, mx.bfloat16, mx.int32, mx.uint32


def quantized(n, k, bits=4, group=64, t=F32):
    q = mx.quantize(rand(n, k, t=t, scale=k**-0.5), group, bits)
    mx.eval(q)
    return q


def cases():
    """Names, functions, arguments, keyword arguments, and whether it is traced as for a GPU."""
    x, y = rand(3, 8), rand(3, 8)
    pos = mx.abs(rand(4, 6)) + 0.1
    half = rand(5, 64, t=F16)
    mx.eval(pos)

    def plain(name, fun, *args, **kwargs):
        return ("cpu/" + name, fun, args, kwargs, False)

    def gpu(name, fun, *args, **kwargs):
        return ("gpu/" + name, fun, args, kwargs, True)

    yield plain("add", lambda a, b: a + b, x, y)
    yield plain("arithmetic", lambda a, b: (a * b - a, a / (mx.abs(b) + 1), -a), x, y)
    yield plain("arithmetic_f16", lambda a, b: (a * b + a) / (b * b + 1), half, rand(5, 64, t=F16))
    yield plain("arithmetic_bf16", lambda a, b: (a * b - a) * 0.5, rand(5, 64, t=BF16), rand(64, t=BF16))
    yield plain("broadcast", lambda a, b, c: a * b + c, rand(2, 3, 4), rand(4), rand(2, 3, 1))
    yield plain("exponentials", lambda a: (mx.exp(a), mx.expm1(a), mx.log(a), mx.log1p(a), mx.log2(a), mx.log10(a)), pos)
    yield plain("roots", lambda a: (mx.sqrt(a), mx.rsqrt(a), mx.square(a), a**2, a**0.5, a**3, a**0), pos)
    yield plain("waves", lambda a: (mx.sin(a), mx.cos(a), mx.tanh(a), mx.sigmoid(a)), x)
    yield plain("rounding", lambda a: (mx.floor(a), mx.ceil(a), mx.round(a), mx.sign(a), mx.abs(a)), rand(4, 9, scale=7.0))
    yield plain("floor_divide", lambda a, b: a // b, rand(4, 9, scale=7.0), rand(4, 9))
    yield plain("extremes", lambda a, b: (mx.maximum(a, b), mx.minimum(a, b), mx.clip(a, -0.5, 0.5), mx.logaddexp(a, b)), x, y)
    yield plain("erf", lambda a: (mx.erf(a), nn.gelu(a)), rand(4, 16, scale=2.0))
    yield plain("gelu", lambda a: (nn.gelu_approx(a), nn.silu(a), nn.relu(a), nn.softplus(a)), rand(4, 16, t=F16))
    yield plain("where", lambda a, b: (mx.where(a > b, a, b * 2), mx.where(a <= 0, mx.array(0.0), a)), x, y)
    yield plain("compare", lambda a, b: (a > b, a >= b, a < b, a <= b, a == b, a != b), ints(0, 4, 3, 7), ints(0, 4, 3, 7))
    yield plain("compare_f16", lambda a, b: ((a > b) & (a > 0), (a < b) | mx.logical_not(b < 0)), half, rand(5, 64, t=F16))
    yield plain("integers", lambda a, b: (a + b, a - b, a * b, mx.maximum(a, b), mx.minimum(a, b)), ints(-99, 99, 4, 5), ints(-99, 99, 4, 5))
    yield plain("unsigned", lambda a: (a + 3, a * 7, mx.minimum(a, 5)), ints(0, 9, 6, t=U32))
    yield plain("convert", lambda a, b, c: (a.astype(F32), b.astype(I32), c.astype(F16), c.astype(F32), (b > 0).astype(F32), a.astype(mx.bool_)), ints(-9, 9, 3, 5), rand(3, 5, scale=9.0), rand(3, 5, t=BF16))
    yield plain("shapes", lambda a: (a.reshape(4, 6), a.transpose(2, 0, 1), a[:, 1:3, ::2], mx.flatten(a), mx.expand_dims(a, 1), mx.swapaxes(a, 0, 1).reshape(3, 8)), rand(2, 3, 4))
    yield plain("join", lambda a, b: (mx.concatenate([a, b], axis=1), mx.stack([a, b]), *mx.split(a, [2, 5], axis=1)), x, y)
    yield plain("pad", lambda a: (mx.pad(a, [(1, 0), (2, 3)]), mx.broadcast_to(a[:1], (4, 8)), mx.tile(a, (2, 1))), x)
    yield plain("sums", lambda a: (a.sum(), a.sum(-1), a.mean(0), a.var(-1), a.sum((0, 2), keepdims=True)), rand(3, 5, 7))
    yield plain("sums_f16", lambda a: (a.sum(-1), a.mean(0)), half)
    yield plain("greatest", lambda a: (a.max(), a.max(-1), a.min(0), mx.argmax(a, -1), mx.argmin(a, -1)), rand(4, 33))
    yield plain("softmax", lambda a: (mx.softmax(a, -1), mx.softmax(a, 0), mx.logsumexp(a, -1)), rand(5, 40))
    yield plain("softmax_f16", lambda a: mx.softmax(a, -1, precise=True), half)
    yield plain("matmul", lambda a, b: a @ b, rand(5, 24), rand(24, 17))
    yield plain("matmul_batch", lambda a, b: (a @ b, a @ b.swapaxes(-1, -2).reshape(2, 3, 8, 6)), rand(2, 3, 4, 8), rand(2, 3, 8, 6))
    yield plain("matmul_f16", lambda a, b: a @ b.T, rand(3, 64, t=F16), rand(32, 64, t=F16))
    yield plain("matvec", lambda a, b: (a @ b, b @ a.T), rand(9, 32), rand(32))
    yield plain("addmm", lambda c, a, b: (mx.addmm(c, a, b), mx.addmm(c, a, b, alpha=0.5, beta=2.0)), rand(11), rand(4, 16), rand(16, 11))
    w8 = quantized(32, 128, 8, 32)
    w4 = quantized(48, 128, 4, 64, F16)
    yield plain("quantized", lambda a: mx.quantized_matmul(a, *w8, group_size=32, bits=8), rand(3, 128))
    yield plain("quantized_f16", lambda a: mx.quantized_matmul(a, *w4, group_size=64, bits=4), rand(1, 128, t=F16))
    yield plain("quantized_plain", lambda a, w, s, b: mx.quantized_matmul(a, w, s, b, transpose=False, group_size=64, bits=4), rand(2, 48), *quantized(48, 128))
    yield plain("dequantize", lambda w, s, b: mx.dequantize(w, s, b, group_size=64, bits=4), *quantized(6, 128))
    yield plain("quantize", lambda a: mx.quantize(a, 64, 4), rand(5, 128))
    yield plain("embedding", lambda t, i: (t[i], mx.take(t, i, axis=0)), rand(20, 12), ints(0, 20, 2, 3))
    yield plain("embedding_u32", lambda t, i: t[i], ints(0, 99, 20, 4, t=U32), ints(-20, 20, 5))
    yield plain("along", lambda a, i, j: (mx.take_along_axis(a, i, axis=1), mx.take_along_axis(a, j, axis=0)), rand(4, 9), ints(0, 9, 4, 3, t=U32), ints(-4, 4, 2, 9))
    yield plain("slice_update", lambda a, b: (mx.slice_update(a, b, mx.array([2]), axes=(1,))), rand(2, 9, 4), rand(2, 3, 4))
    yield plain("dynamic", lambda a, b, p: (mx.slice_update(a, b, p, axes=(1,)), mx.slice(a, p, axes=(1,), slice_size=(2, 3, 4))), rand(2, 9, 4), rand(2, 3, 4), mx.array([4]))
    yield plain("arange", lambda a: (a + mx.arange(8), mx.arange(3, 11).astype(F32) * a, mx.arange(5)), rand(8))
    yield plain("keywords", lambda a, *, weight, bias: a @ weight.T + bias, rand(2, 16), weight=rand(8, 16), bias=rand(8))
    yield plain("rms_norm", lambda a, w: mx.fast.rms_norm(a, w, 1e-5), rand(3, 48), rand(48))
    yield plain("rope", lambda a, p: mx.fast.rope(a, 16, traditional=False, base=10000.0, scale=1.0, offset=p), rand(1, 2, 3, 16), mx.array([5]))
    yield plain("attention", lambda q, k, v: mx.fast.scaled_dot_product_attention(q, k, v, scale=0.25, mask="causal"), rand(1, 4, 3, 16), rand(1, 2, 7, 16), rand(1, 2, 7, 16))
    conv = nn.Linear(24, 10)
    mx.eval(conv.parameters())
    yield plain("linear", conv, rand(4, 24))
    yield plain("identity", lambda a, b: (a, b + 1, a), x, y)
    yield plain("scalar", lambda a, b: (a * b, a.sum()), mx.array(3.0), mx.array(0.5))

    def library(name, fun, *args):  # of which MLX's compiled library has kernels, and ours has none
        return ("library/" + name, fun, args, {}, False)

    yield plain("sort", lambda a, b: (mx.sort(a, -1), mx.argsort(a, 0), mx.sort(b, 0), mx.sort(a, 0), mx.topk(a, 1)), rand(4, 33), rand(9, 5, t=F16))
    yield gpu("experts", experts, rand(1, 1, 64, t=F16), rand(8, 64, t=F16), *stack(8, 128, 64), *stack(8, 128, 64), *stack(8, 64, 128))

    yield library("sort", lambda a: (mx.sort(a, -1), mx.argsort(a, -1)), mx.random.permutation(400).reshape(4, 100).astype(I32))
    yield library("cumsum", lambda a: (mx.cumsum(a, -1), mx.cumsum(a, 0, reverse=True, inclusive=False)), rand(4, 33))
    yield library("reduce", lambda a, b: (mx.sum(a, -1), mx.max(a, 0), mx.prod(b, -1), mx.min(b), mx.argmax(a, -1)), ints(-9, 9, 4, 70), rand(3, 12))
    def custom(a, b, s):
        out = axpy(inputs=[a.T, b, s], template=[("T", F32)], grid=(12, 1, 1), threadgroup=(32, 1, 1), output_shapes=[(4, 3)], output_dtypes=[F32])[0]
        return counted(inputs=[out * 2], grid=(12, 1, 1), threadgroup=(4, 1, 1), output_shapes=[(12,)], output_dtypes=[F32], init_value=1.0)[0]

    yield library("custom", custom, rand(3, 4), rand(4, 3), mx.array([2.0]))
    yield library("gather_mm", lambda a, b, i: mx.gather_mm(a, b, None, i), rand(3, 2, 8), rand(4, 8, 5), mx.array([2, 0, 3], U32))
    yield library("plain", lambda a, w: mx.softmax(mx.exp(a @ w) - a[:, :5], -1), rand(4, 8), rand(8, 5))

    yield gpu("rms_norm", lambda a, w: (mx.fast.rms_norm(a, w, 1e-5), mx.fast.rms_norm(a, None, 1e-5)), rand(3, 96), rand(96))
    yield gpu("rms_norm_f16", lambda a, w: mx.fast.rms_norm(a, w, 1e-5), rand(2, 3, 128, t=F16), rand(128, t=F16))
    yield gpu("layer_norm", lambda a, w, b: (mx.fast.layer_norm(a, w, b, 1e-5), mx.fast.layer_norm(a, None, None, 1e-5)), rand(3, 96), rand(96), rand(96))
    yield gpu("rope", lambda a, p: (mx.fast.rope(a, 32, traditional=False, base=10000.0, scale=1.0, offset=p), mx.fast.rope(a, 16, traditional=True, base=500.0, scale=0.5, offset=3)), rand(1, 4, 3, 32), mx.array(5))
    yield gpu("rope_batch", lambda a, p, f: mx.fast.rope(a, 16, traditional=False, base=None, scale=1.0, offset=p, freqs=f), rand(2, 4, 1, 16), mx.array([5, 2]), mx.abs(rand(8)) + 1)
    yield gpu("attention", lambda q, k, v, m: mx.fast.scaled_dot_product_attention(q, k, v, scale=0.125, mask=m), rand(1, 4, 1, 64), rand(1, 2, 9, 64), rand(1, 2, 9, 64), mx.arange(9)[None, None, None] <= 5)
    yield gpu("attention_causal", lambda q, k, v: mx.fast.scaled_dot_product_attention(q, k, v, scale=0.1, mask="causal"), rand(2, 4, 5, 64, t=F16), rand(2, 4, 9, 64, t=F16), rand(2, 4, 9, 64, t=F16))
    yield gpu("attention_sinks", lambda q, k, v, s: mx.fast.scaled_dot_product_attention(q, k, v, scale=0.125, sinks=s), rand(1, 4, 1, 64), rand(1, 2, 9, 64), rand(1, 2, 9, 64), rand(4))
    yield gpu("dequantize", lambda w, s, b: mx.dequantize(w, s, b, group_size=64, bits=4) * 2, *quantized(6, 128, t=F16))
    yield gpu("layer", layer, rand(1, 1, 128, t=F16), rand(128, t=F16), *quantized(384, 128, t=F16), *quantized(128, 128, t=F16), rand(1, 2, 16, 64, t=F16), rand(1, 2, 16, 64, t=F16), mx.array([5]))
    yield gpu("attention_added", lambda q, k, v, m: mx.fast.scaled_dot_product_attention(q, k, v, scale=0.2, mask=m), rand(1, 2, 3, 48), rand(1, 2, 7, 48), rand(1, 2, 7, 48), rand(3, 7))


def layer(x, norm, w, ws, wb, o, os, ob, keys, values, at):
    """Attention of a decode step, with a cache, and a residual."""
    h = mx.fast.rms_norm(x, norm, 1e-5)
    parts = mx.split(mx.quantized_matmul(h, w, ws, wb, group_size=64, bits=4), 3, -1)
    q, k, v = (p.reshape(1, 1, 2, 64).transpose(0, 2, 1, 3) for p in parts)
    q, k = (mx.fast.rope(p, 64, traditional=False, base=10000.0, scale=1.0, offset=at) for p in (q, k))
    keys, values = mx.slice_update(keys, k, at, axes=(2,)), mx.slice_update(values, v, at, axes=(2,))
    out = mx.fast.scaled_dot_product_attention(q, keys, values, scale=0.125, mask=at >= mx.arange(16))
    out = mx.quantized_matmul(out.transpose(0, 2, 1, 3).reshape(1, 1, 128), o, os, ob, group_size=64, bits=4)
    return x + out * mx.sigmoid(out), keys, values


# Kernels of a program's own, which run on GPUs only; what they compute is said again in custom_result.
axpy = mx.fast.metal_kernel(
    name="axpy",
    input_names=["x", "y", "s"],
    output_names=["out"],
    source="""
    uint i = thread_position_in_grid.x;
    T v = x[elem_to_loc(i, x_shape, x_strides, x_ndim)];
    out[i] = v * s[0] + y[i];
""",
    ensure_row_contiguous=False,
)
counted = mx.fast.metal_kernel(
    name="counted", input_names=["x"], output_names=["out"], source="""
    uint i = thread_position_in_grid.x;
    if (i % 2 == 0) {
        out[i] += x[i];
    }
"""
)


def custom_result(a, b, s):
    out = (a.T * s + b).reshape(-1) * 2
    return mx.where(mx.arange(12) % 2 == 0, out + 1, mx.array(1.0))


def stack(count, n, k):
    """Quantized matrices, one behind another."""
    q = mx.quantize(rand(count, n, k, t=F16, scale=k**-0.5), 64, 4)
    mx.eval(q)
    return q


def experts(x, router, *w):
    """A mixture of experts as mlx-lm has it, two of them for a token."""
    gates = x @ router.T
    chosen = mx.argpartition(-gates, kth=1, axis=-1)[..., :2]
    scores = mx.softmax(mx.take_along_axis(gates, chosen, axis=-1), axis=-1, precise=True)

    def product(x, w):
        return mx.gather_qmm(x, *w, rhs_indices=chosen, transpose=True, group_size=64, bits=4)

    h = mx.expand_dims(x, (-2, -3))
    gate, up = product(h, w[:3]), product(h, w[3:6])
    y = product(gate * mx.sigmoid(gate) * up, w[6:]).squeeze(-2)
    return (y * scores[..., None]).sum(axis=-2)


class Cache:
    """A cache whose length is an array, so that one trace serves all positions."""

    def __init__(self, keys, values, offset):
        self.keys, self.values, self.offset = keys, values, offset

    def update_and_fetch(self, keys, values):
        self.keys = mx.slice_update(self.keys, keys, self.offset, axes=(2,))
        self.values = mx.slice_update(self.values, values, self.offset, axes=(2,))
        return self.keys, self.values

    def make_mask(self, n, return_array=False, window_size=None):
        return self.offset >= mx.arange(self.keys.shape[2])


def decoder(t, hidden=128, layers=2, heads=4, key_heads=2, width=256, vocabulary=96, context=16):
    """A decode step of a llama, quantized in 4 bits by groups of 64, the same one computed in f32, and its first caches."""
    def made():
        return llama.Model(llama.ModelArgs("llama", hidden, layers, width, heads, 1e-5, vocabulary, num_key_value_heads=key_heads, tie_word_embeddings=False))

    model, wide = made(), made()
    model.apply(lambda p: (mx.random.normal(p.shape) * (2 * p.shape[-1] ** -0.5 if p.ndim > 1 else 0.1) + (0 if p.ndim > 1 else 1)).astype(t))
    nn.quantize(model, 64, 4)
    nn.quantize(wide, 64, 4)
    mx.eval(model.parameters())
    wide.update(tree_map(lambda p: p.astype(F32) if p.dtype == t else p, model.parameters()))

    def step_of(model):
        def step(token, offset, *caches):
            kept = [Cache(caches[2 * i], caches[2 * i + 1], offset) for i in range(layers)]
            logits = model(token, cache=kept)[:, -1, :]
            return (logits, mx.argmax(logits, -1)) + tuple(a for c in kept for a in (c.keys, c.values))

        return step

    caches = [mx.zeros((1, key_heads, context, hidden // heads), t) for _ in range(2 * layers)]
    return step_of(model), step_of(wide), caches


def steps(t):
    """A decode step, its first arguments, and the tokens and logits of ten steps, each from the token before.

    Of several models the first is taken that chooses each token by more than its type's rounding moves logits."""
    for seed in range(100, 200):
        mx.random.seed(seed)
        step, wide, caches = decoder(t)
        token, first, calls, kept, ahead = mx.array([[5]]), None, [], [c.astype(F32) for c in caches], []
        for i in range(10):
            args = (token, mx.array([i]), *caches)
            out = step(*args)
            mx.eval(out)
            best = mx.sort(out[0].astype(F32)[0])
            ahead.append((best[-1] - best[-2]).item())
            first = first or args
            exactly = wide(token, mx.array([i]), *kept)
            kept = exactly[2:]
            calls.append((token, mx.array([i]), out[0], out[1], exactly[0]))
            token, caches = out[1].astype(I32)[None], out[2:]
        if min(ahead) > (0.2 if t == F16 else 0.05):
            print("  seed %d, tokens %s, ahead by %.3f or more" % (seed, [c[3].item() for c in calls], min(ahead)))
            return step, first, calls


def main(folder):
    os.makedirs(folder, exist_ok=True)
    archive = zipfile.ZipFile(os.path.join(folder, "functions.zip"), "w", zipfile.ZIP_DEFLATED, compresslevel=9)
    count = 0
    with tempfile.TemporaryDirectory() as tmp:
        path, tensors = os.path.join(tmp, "f.mlxfn"), os.path.join(tmp, "f.safetensors")

        def put(name, file):
            with open(file, "rb") as f:
                archive.writestr(zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0)), f.read(), zipfile.ZIP_DEFLATED)

        def keep(name, fun, args, kwargs, gpu, calls=()):
            nonlocal count
            if gpu:
                on_gpu(path, fun, args, kwargs)
            else:
                mx.export_function(path, fun, *args, **kwargs)
            out = custom_result(*args) if name == "library/custom" else fun(*args, **kwargs)
            out = list(out) if isinstance(out, (tuple, list)) else [out]
            arrays = {"arg%d" % i: a for i, a in enumerate(args)} | kwargs | {"out%d" % i: a for i, a in enumerate(out)}
            for i, (token, offset, logits, chosen, wide) in enumerate(calls):
                arrays |= {"call%d.arg0" % i: token, "call%d.arg1" % i: offset, "call%d.out0" % i: logits, "call%d.out1" % i: chosen, "call%d.wide" % i: wide}
            # Views would share what they are views of, which the format does not have.
            mx.save_safetensors(tensors, {k: mx.contiguous(v) for k, v in arrays.items()})
            put(name + ".mlxfn", path)
            put(name + ".safetensors", tensors)
            if name == "library/custom":
                os.replace(path, os.path.join(folder, "custom.mlxfn"))
            count += 1

        for name, fun, args, kwargs, gpu in cases():
            keep(name, fun, args, kwargs, gpu)
        for name, t, gpu in (("gpu/decoder_f16", F16, True), ("cpu/decoder", F32, False), ("gpu/decoder", F32, True)):
            print(name)
            fun, args, calls = steps(t)
            keep(name, fun, args, {}, gpu, calls)

        # Several traces of one function in a file.
        def both(a, b):
            return a * b + 1

        def beside(name):
            return os.path.join(folder, name)

        with mx.exporter(beside("several.mlxfn"), both) as e:
            e(rand(3), rand(3))
            e(rand(2, 5), rand(2, 5))

        # What is not there.
        def much(a, b, c):
            return mx.hadamard_transform(a) + mx.hadamard_transform(a * 2), mx.cumsum(a, 1), mx.fft.rfft(a), c + 1, mx.abs(mx.conv1d(b, b)) ** 1.3

        mx.export_function(beside("refused.mlxfn"), much, rand(3, 4), rand(2, 5, 2), mx.array([1, 2], mx.int64))

        # Numbers whose results have no rounding.
        a, b = mx.arange(12, dtype=F32).reshape(3, 4), mx.arange(4, dtype=F32) * 0.5
        mx.export_function(beside("sum.mlxfn"), both, a, b)
        for name, array in (("arg0", a), ("arg1", b), ("out0", both(a, b))):
            np.save(beside("sum.%s.npy" % name), np.array(array))

        def update(cache, row, at):
            return mx.slice_update(cache, row, at, axes=(0,)), at + 1

        mx.export_function(beside("update.mlxfn"), update, mx.zeros((4, 3)), mx.zeros((1, 3)), mx.array([0]))

        def held(cache, row, at):
            """What was there is needed after the update, and what is there between two."""
            first = mx.slice_update(cache, row, at, axes=(0,))
            second = mx.slice_update(first, row * 2, at + 1, axes=(0,))
            return second, cache[1:3] * 1, first + 0

        mx.export_function(beside("held.mlxfn"), held, mx.zeros((4, 3)), mx.zeros((1, 3)), mx.array([0]))
        w = mx.arange(8, dtype=F32).reshape(2, 4)
        mx.export_function(beside("weighted.mlxfn"), lambda x, *, weight: x @ weight.T, a, weight=w)
        mx.save_safetensors(beside("weighted.safetensors"), {"weight": w})
    archive.close()
    print("%d functions, %d bytes" % (count, os.path.getsize(os.path.join(folder, "functions.zip"))))


if __name__ == "__main__":
    main(sys.argv[1])
