"""Attention: by vectors in one pass and two, by matrices, and the parts of its gradient."""
import numpy as np

from cases import EPS, MLX, Group

NAME = {"f32": "float", "f16": "float16_t", "bf16": "bfloat16_t"}
WHY = "scores of float32 up to a few tens, fast exp, sums, and the rounding of the result"


def softmax(s, sink=None):
    """Probabilities along the last axis; a sink is one more score without a value."""
    m = s.max(-1, keepdims=True)
    if sink is not None:
        m = np.maximum(m, sink)
    m = np.where(np.isfinite(m), m, 0)
    e = np.exp(s - m)
    return e / (e.sum(-1, keepdims=True) + (np.exp(sink - m) if sink is not None else 0))


def tensors(c, t, batch, heads, kv, q_length, length, dq, dv, pad=0):
    """Queries, keys and values; keys and values have pad elements between the rows."""
    q = np.float64(c.draw("queries", t, (batch, heads, q_length, dq), -8, 8, 1 / 8))
    k = np.float64(c.draw("keys", t, (batch, kv, length, dq + pad), -8, 8, 1 / 8))[..., :dq]
    v = np.float64(c.draw("values", t, (batch, kv, length, dv + pad), -8, 8, 1 / 8))[..., :dv]
    return q, k, v


def scored(c, q, k, scale, t, mask, causal):
    """Scores, with a mask drawn that is bool or of the type, and its strides bound."""
    group = q.shape[1] // k.shape[1]
    s = scale * np.einsum("bhqd,bhkd->bhqk", q, k.repeat(group, 1))
    batch, heads, ql, kl = s.shape
    if causal:
        s = np.where(np.arange(kl)[None, :] <= np.arange(ql)[:, None] + kl - ql, s, -np.inf)
    if mask:
        if mask == "bool":
            m = c.draw("bmask", "bool", (batch, heads, ql, kl), 0, 1)
            m = m.copy()
            s = np.where(m, s, -np.inf)
        else:
            s = s + np.float64(c.draw("fmask", t, (batch, heads, ql, kl), -16, 16, 1 / 8))
        c.value("mask_kv_seq_stride", "i32", 1)
        c.value("mask_q_seq_stride", "i32", kl)
        c.value("mask_head_stride", "i32", ql * kl)
    return s


def constants(mask, causal, sinks, transposed=False):
    return {"has_mask": mask is not None, "query_transposed": transposed, "do_causal": causal, "bool_mask": mask == "bool", "float_mask": mask == "float", "has_sinks": sinks}


def vectors():
    g = Group("sdpa")
    for t, dq, dv, heads, kv, ql, length, mask, causal, sinks in (
        ("f32", 64, 64, 4, 2, 1, 77, None, 0, 0), ("f16", 128, 128, 3, 3, 2, 40, "bool", 0, 0), ("bf16", 96, 96, 4, 1, 3, 100, None, 1, 0), ("f32", 96, 64, 2, 2, 1, 33, "float", 0, 1),
        ("f16", 192, 128, 2, 1, 1, 65, None, 0, 1), ("bf16", 256, 256, 2, 2, 2, 20, "float", 0, 0), ("f32", 192, 192, 1, 1, 4, 50, None, 1, 0), ("f32", 64, 64, 2, 2, 5, 31, "bool", 0, 1), ("f16", 512, 512, 1, 1, 1, 12, None, 0, 0),
    ):
        c = g.case(f"sdpa_vector_{NAME[t]}_{dq}_{dv}", f"{ql} by {length}{' masked' if mask else ''}{' causal' if causal else ''}", **constants(mask, causal, sinks))
        scale = 0.25
        q, k, v = tensors(c, t, 2, heads, kv, ql, length, dq, dv, 4)
        s = scored(c, q, k, scale, t, mask, causal)
        sink = None
        if sinks:
            sink = np.float64(c.draw("sinks", t, heads, -16, 16, 1 / 8))[None, :, None, None]
            c.value("num_q_heads", "i32", heads)
        y = np.einsum("bhqk,bhkd->bhqd", softmax(s, sink), v.repeat(heads // kv, 1))
        c.want("out", t, y, abs=1e-5, rel=1e-5, ulp=0.51 if t != "f32" else 2, why=WHY)
        for key, x in (("k_head_stride", length * (dq + 4)), ("k_seq_stride", dq + 4), ("v_head_stride", length * (dv + 4)), ("v_seq_stride", dv + 4)):
            c.value(key, "u64", x)
        c.value("gqa_factor", "i32", heads // kv)
        c.value("N", "i32", length)
        c.value("scale", "f32", scale)
        c.groups((2 * heads, ql), 1024)
    for t, dq, dv, heads, kv, ql, length, mask, causal, sinks in (("f32", 64, 64, 4, 2, 1, 300, None, 0, 0), ("f16", 128, 128, 2, 1, 2, 150, "bool", 0, 0), ("bf16", 96, 64, 3, 3, 1, 95, "float", 0, 1), ("f32", 256, 256, 2, 1, 3, 70, None, 1, 0)):
        blocks = 32
        c = g.case(f"sdpa_vector_2pass_1_{NAME[t]}_{dq}_{dv}", f"{ql} by {length}{' masked' if mask else ''}", blocks=blocks, **constants(mask, causal, sinks))
        scale = 0.25
        q, k, v = tensors(c, t, 2, heads, kv, ql, length, dq, dv)
        s = scored(c, q, k, scale, t, mask, causal)
        sink = np.float64(c.draw("sinks", t, heads, -16, 16, 1 / 8)) if sinks else None
        low = float(np.finfo(np.float32).min)
        m = np.full(s.shape[:3] + (blocks,), low)
        total = np.zeros_like(m)
        if sinks:
            m[..., 0], total[..., 0] = sink[None, :, None], 1
        part = np.zeros(s.shape[:3] + (blocks, dv))
        for b in range(blocks):
            mine, values = s[..., b::blocks], v.repeat(heads // kv, 1)[:, :, b::blocks]
            if mine.shape[-1] == 0:
                continue
            top = np.maximum(mine.max(-1), m[..., b])
            e = np.exp(mine - top[..., None])
            total[..., b] = total[..., b] * np.exp(m[..., b] - top) + e.sum(-1)
            m[..., b] = top
            part[..., b, :] = np.einsum("bhqk,bhkd->bhqd", e, values)
        within = {"abs": 1e-5, "rel": 1e-5, "ulp": 0.51 if t != "f32" else 2, "why": WHY}
        c.want("out", t, part, **within)
        c.want("sums", "f32", total, abs=1e-5, rel=1e-5, why=WHY)
        c.want("maxs", "f32", m, abs=1e-5, rel=1e-6, why=WHY)
        for key, x in (("k_head_stride", length * dq), ("k_seq_stride", dq), ("v_head_stride", length * dv), ("v_seq_stride", dv)):
            c.value(key, "u64", x)
        c.value("N", "i32", length)
        c.value("scale", "f32", scale)
        c.groups((kv, 2, blocks), (32, heads // kv, ql))
        c = g.case(f"sdpa_vector_2pass_2_{NAME[t]}_{dv}", f"{ql} by {length}")
        p = np.float64(c.give("partials", t, part))
        a = np.float64(c.give("sums", "f32", total))
        b = np.float64(c.give("maxs", "f32", m))
        w = np.exp(b - b.max(-1, keepdims=True))
        c.want("out", t, (w[..., None] * p).sum(-2) / (w * a).sum(-1)[..., None], **within)
        c.value("blocks", "i32", blocks)
        c.groups((2 * heads, ql), 1024)
    for t, d, group, length, blocks in (("f32", 64, 8, 203, 8), ("f16", 128, 12, 100, 4), ("bf16", 128, 16, 90, 4)):
        c = g.case(f"sdpa_vector_2pass_1_gqa_{group}_{NAME[t]}_{d}_{d}", str(length))
        kv, scale = 2, 0.25
        q, k, v = tensors(c, t, 1, kv * group, kv, 1, length, d, d)
        s = scale * np.einsum("bhqd,bhkd->bhqk", q, k.repeat(group, 1))[0, :, 0]
        values = v.repeat(group, 1)[0]
        chunk = -(-length // blocks)
        part, total, top = [], [], []
        for h in range(kv * group):
            for b in range(blocks):
                mine = s[h, b * chunk:(b + 1) * chunk]
                m = mine.max()
                e = np.exp(mine - m)
                top.append(m)
                total.append(e.sum())
                part.append(e @ values[h, b * chunk:(b + 1) * chunk])
        c.want("out", t, np.array(part), abs=2e-5, rel=1e-5, ulp=0.51 if t != "f32" else 2, why=WHY)
        c.want("sums", "f32", np.array(total), abs=1e-5, rel=1e-5, why=WHY)
        c.want("maxs", "f32", np.array(top), abs=1e-5, rel=1e-6, why=WHY)
        for key in ("k", "v"):
            c.value(key + "_head_stride", "u64", length * d)
            c.value(key + "_seq_stride", "u64", d)
        c.value("N", "i32", length)
        c.value("scale", "f32", scale)
        c.groups((kv, 1, blocks), (32, group, 1))
    return g


def blocked():
    g = Group("attention")
    for t, bk, d, ql, kl, mask, causal, sinks, lse in (
        ("f32", 32, 64, 32, 64, None, 0, 0, 0), ("f16", 32, 64, 45, 70, "bool", 0, 0, 1), ("bf16", 16, 128, 33, 40, None, 1, 0, 0), ("f32", 16, 128, 50, 33, "float", 0, 1, 0), ("f16", 32, 80, 64, 96, None, 1, 1, 1), ("f32", 32, 64, 20, 37, "bool", 0, 0, 0),
    ):
        heads, kv, bq = 4, 2, 32
        name = f"steel_attention_{MLX[t]}_bq{bq}_bk{bk}_bd{d}_bv{d}_wm4_wn1_mask{'bool_' if mask != 'float' else MLX[t]}"
        c = g.case(name, f"{ql} by {kl}{' masked' if mask else ''}{' causal' if causal else ''}{' sinks' if sinks else ''}", align_Q=ql % bq == 0, align_K=kl % bk == 0, has_mask=mask is not None, do_causal=causal, has_sinks=sinks, save_lse=lse)
        scale = np.float32(0.125)
        q = np.float64(c.draw("Q", t, (1, heads, ql, d), -8, 8, 1 / 8))
        k = np.float64(c.draw("K", t, (1, kv, kl, d), -8, 8, 1 / 8))
        v = np.float64(c.draw("V", t, (1, kv, kl, d), -8, 8, 1 / 8))
        s = float(scale) * np.einsum("bhqd,bhkd->bhqk", q, k.repeat(heads // kv, 1))
        if causal:
            s = np.where(np.arange(kl)[None, :] <= np.arange(ql)[:, None] + kl - ql, s, -np.inf)
        if mask:
            m = c.draw("mask", "bool" if mask == "bool" else t, (1, heads, ql, kl), *((0, 1) if mask == "bool" else (-16, 16)), **({} if mask == "bool" else {"scale": 1 / 8}))
            s = np.where(m, s, -np.inf) if mask == "bool" else s + np.float64(m)
            c.value("mask_params", "3q", heads * ql * kl, ql * kl, kl)
        sink = np.float64(c.draw("sinks", t, heads, -16, 16, 1 / 8))[None, :, None, None] if sinks else None
        y = np.einsum("bhqk,bhkd->bhqd", softmax(s, sink), v.repeat(heads // kv, 1))
        # Scores are of the type of the matrices of queries, which are scaled before.
        c.want("O", t, y, abs={"f32": 2e-5, "f16": 2e-3, "bf16": 2e-2}[t], rel=1e-5, ulp=1, why="queries are scaled by scale · log₂ e and rounded to their type; then scores of float32, fast exp2 and sums")
        if lse:
            m = s.max(-1, keepdims=True)
            if sinks:
                m = np.maximum(m, sink)
            total = np.exp(s - m).sum(-1) + (np.exp(sink - m)[..., 0] if sinks else 0)
            c.want("lse", "f32", np.log(total) + m[..., 0], abs={"f32": 1e-5, "f16": 1e-2, "bf16": 1e-1}[t], why="as of the results")
        strides = lambda h, n: (h * n * d, n * d, d)
        c.value("params", "6if7i12q", 1, heads, d, ql, kl, heads // kv, scale, -(-ql // bq), -(-kl // bk), ql // bq, kl // bk, ql % bq, kl % bk, kl - ql, *strides(heads, ql), *strides(kv, kl), *strides(kv, kl), *strides(heads, ql))
        c.groups((-(-ql // bq), heads, 1), (32, 4, 1))
    return g


def gradients():
    g = Group("sdpa_vjp")
    for t, d in (("f32", 64), ("f16", 128), ("bf16", 80), ("f32", 512)):
        ql, heads = 5, 3
        c = g.case(f"sdpa_vjp_odo_{NAME[t]}_{d}")
        o = np.float64(c.draw("o", t, (heads, ql, d), -8, 8, 1 / 8))
        u = np.float64(c.draw("cot_o", t, (heads, ql, d), -8, 8, 1 / 8))
        c.want("odo", "f32", (o * u).sum(-1))
        c.value("qL", "i32", ql)
        c.groups((1, ql, heads), (32, 1, 1))
    for t, causal in (("f32", 0), ("f16", 1), ("bf16", 1), ("f32", 1)):
        heads, ql, rows, columns, row, column, shift = 2, 20, 9, 13, 4, 3, 2
        c = g.case(f"sdpa_vjp_ds_{NAME[t]}", "causal" if causal else "")
        scale = 0.25
        s = np.float64(c.draw("S", t, (heads, rows, columns), -40, 40, 1 / 8))
        dp = np.float64(c.draw("dP", t, (heads, rows, columns), -16, 16, 1 / 8))
        lse = np.float64(c.draw("lse", "f32", (heads, ql), 0, 40, 1 / 8))[:, row:row + rows, None]
        odo = np.float64(c.draw("odo", "f32", (heads, ql), -16, 16, 1 / 8))[:, row:row + rows, None]
        p = np.exp(s * scale - lse)
        if causal:
            p = np.where(column + np.arange(columns)[None, :] <= row + np.arange(rows)[:, None] + shift, p, 0)
        within = {"rel": 4e-6, "ulp": 0.51 if t != "f32" else 2, "abs": 1e-7 if t == "f16" else 0, "why": "fast exp, a difference and products in float32, and the rounding of the result"}
        c.want("dS", t, scale * p * (dp - odo), **within)
        c.want("P", t, p, **within)
        c.value("p", "5if2i", rows, columns, ql, row, column, scale, shift, causal)
        c.grid((16, 12, heads), (8, 4, 1))
    for t in ("f32", "f16", "bf16"):
        for how in ("set", "add"):
            heads, group, rows, d, total, offset = 3, 2, 4, 10, 9, 3
            c = g.case(f"sdpa_vjp_reduce_{how}_{NAME[t]}")
            x = np.float64(c.draw("src", t, (heads, group, rows, d), -8, 8))
            y = x.sum(1)
            before = c.draw("acc", "f32", (heads, total, d), -8, 8)
            after = np.float64(before)
            after[:, offset:offset + rows] = y + (after[:, offset:offset + rows] if how == "add" else 0)
            c.want("acc", "f32", after, of=True)
            old = c.draw("out", t, (heads, total, d), 50, 60)
            out = np.float64(old)
            out[:, offset:offset + rows] = after[:, offset:offset + rows]
            c.want("out", t, out, of=True)
            for key, v in (("rows", rows), ("dim", d), ("group", group), ("acc_rows", total), ("row_off", offset)):
                c.value(key, "i32", v)
            c.grid((12, 5, heads), (4, 5, 1))
    for t in ("f16", "bf16"):
        rows, columns, heads = 6, 15, 4
        c = g.case(f"sdpa_blocked_causal_mask_{MLX[t]}")
        x = c.draw("scores", t, (heads, rows, columns), -8, 8)
        lowest = -65504.0 if t == "f16" else -float(np.uint32(0x7F7F0000).view(np.float32))
        hidden = np.arange(rows)[None, :] > np.arange(rows)[:, None]
        y = np.float64(x)
        y[:, :, columns - rows:] = np.where(hidden, lowest, y[:, :, columns - rows:])
        c.want("scores", t, y, of=True)
        c.value("tile_rows", "i32", rows)
        c.value("columns", "i32", columns)
        c.grid((rows, heads * rows), (3, 4))
        c = g.case(f"sdpa_blocked_scale_copy_{MLX[t]}")
        batch, heads, length, d, offset, rows = 2, 3, 11, 8, 4, 5
        q = np.float64(c.draw("q", t, (batch, length, heads, d), -64, 64, 1 / 8)).transpose(0, 2, 1, 3)
        c.want("q_block", t, q[:, :, offset:offset + rows] * 0.25)
        c.value("scale", "f32", 0.25)
        c.value("q_strides", "i64", length * heads * d, d, heads * d)
        for key, v in (("heads", heads), ("rows", rows), ("head_dim", d), ("q_offset", offset)):
            c.value(key, "i32", v)
        c.grid((d, rows, batch * heads), (8, 2, 2))
    return g


GROUPS = (vectors, blocked, gradients)
