"""Convolutions by their several ways, and the gated delta rule."""
import math

import numpy as np

from cases import MLX, Group


def params(dims, N, C, O, i, w, o, stride, pad, dilation, groups=1, flip=0, padded=None):
    """MLXConvParams of steel/conv/params.h; arrays are dense, channels last."""
    def strides(shape):
        return [math.prod(shape[k + 1:]) for k in range(len(shape))]

    ints = [N, C, O, *i, *w, *o, *stride, *pad, *dilation, *[1] * dims]
    longs = strides([N, *i, C]) + strides([O, *w, C // groups]) + strides([N, *o, O])
    form = f"{len(ints)}i{'4x' if len(ints) % 2 else ''}{len(longs)}qi?3x"
    return (form, *ints, *longs, groups, bool(flip))


def outputs(i, w, stride, pad, dilation):
    return [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in zip(i, w, stride, pad, dilation)]


def patches(x, w, o, stride, pad, dilation, flip=False):
    """x: [N, spatial…, C] -> [N, outputs…, filter…, C], zeros outside."""
    dims = len(w)
    x = np.pad(x, [(0, 0), *[(p, p + d * k + s) for p, d, k, s in zip(pad, dilation, w, stride)], (0, 0)])
    index = []
    for k in range(dims):
        at = np.arange(w[k])[::-1] if flip else np.arange(w[k])
        a = np.arange(o[k])[:, None] * stride[k] + at[None, :] * dilation[k]
        index.append(a.reshape([o[k] if j == k else 1 for j in range(dims)] + [w[k] if j == k else 1 for j in range(dims)]))
    return x[(slice(None), *index)]


def convolutions():
    g = Group("conv")
    k = 0
    for dims, N, C, i, w, stride, pad, dilation in ((1, 2, 5, (17,), (3,), (2,), (1,), (1,)), (2, 2, 3, (7, 6), (3, 2), (1, 2), (1, 0), (1, 2)), (3, 1, 4, (4, 5, 3), (2, 2, 2), (1, 1, 1), (0, 1, 1), (1, 1, 1))):
        o = outputs(i, w, stride, pad, dilation)
        for transposed in (0, 1):
            for t in ("f32", ("f16", "bf16")[transposed]):
                flip = k % 2
                k += 1
                c = g.case(f"naive_unfold_{'transpose_' if transposed else ''}nd_{MLX[t]}_{dims}", "flipped" if flip else "")
                x = c.draw("in", t, (N, *i, C), -50, 50)
                y = patches(x, w, o, stride, pad, dilation, flip).reshape(N * math.prod(o), math.prod(w), C)
                c.want("out", t, y.swapaxes(1, 2) if transposed else y)
                c.value("params", *params(dims, N, C, 1, i, w, o, stride, pad, dilation, 1, flip))
                c.value("row_offset", "i32", 0)
                c.grid((C, math.prod(w), N * math.prod(o)), (4, 4, 8))
    for t, large in (("f32", ""), ("f16", ""), ("bf16", "_large")):
        N, L, D, K = 2, 19, 12, 4
        c = g.case(f"depthwise_conv_1d_{MLX[t]}{large}")
        x = np.float64(c.draw("in", t, (N, L, D), -2, 2))
        w = np.float64(c.draw("w", t, (D, K), -2, 2))
        o = L - K + 1
        c.want("out", t, sum(x[:, j:j + o] * w[:, j] for j in range(K)))
        c.value("strides", "i64" if large else "i32", L * D, D, 1)
        c.value("kernel_size", "i32", K)
        c.grid((D, o, N), (4, 4, 2))
    for t, i, w, stride, pad, flip in (("f32", (13, 11), (3, 3), (1, 1), (1, 1), 0), ("f16", (9, 20), (5, 3), (2, 1), (2, 0), 0), ("bf16", (8, 8), (3, 4), (1, 2), (0, 1), 1)):
        N, C = 2, 16
        o = outputs(i, w, stride, pad, (1, 1))
        c = g.case(f"depthwise_conv_2d_{MLX[t]}", f"{i} by {w}", ker_h=w[0], ker_w=w[1], str_h=stride[0], str_w=stride[1], tgp_h=4, tgp_w=8, do_flip=flip)
        x = np.float64(c.draw("in", t, (N, *i, C), -2, 2))
        f = np.float64(c.draw("wt", t, (C, *w, 1), -2, 2))
        p = patches(x, w, o, stride, pad, (1, 1))
        c.want("out", t, np.einsum("nabhwc,chw->nabc", p, f[..., 0][:, ::-1, ::-1] if flip else f[..., 0]))
        c.value("params", *params(2, N, C, C, i, w, o, stride, pad, (1, 1), C, flip))
        c.groups((C // 8, -(-o[1] // 8), -(-o[0] // 4) * N), (8, 8, 4))
    for t, C, O, groups, i, w, stride, pad, dilation, bm, bn in (
        ("f32", 32, 32, 1, (8, 9), (3, 3), (1, 1), (1, 1), (1, 1), 32, 32), ("f16", 16, 16, 1, (7, 7), (3, 2), (2, 1), (1, 0), (1, 2), 32, 8), ("bf16", 32, 64, 2, (6, 5), (1, 1), (1, 1), (0, 0), (1, 1), 32, 32),
        ("f32", 3, 32, 1, (9, 8), (3, 3), (2, 2), (1, 1), (1, 1), 32, 32), ("f16", 1, 8, 1, (10, 10), (5, 5), (1, 1), (2, 2), (1, 1), 32, 8), ("f32", 4, 64, 1, (6, 6), (2, 2), (1, 1), (0, 0), (2, 1), 32, 64),
    ):
        N, per, outs = 2, C // groups, O // groups
        wm, wn = (4, 1) if bn == 8 else (2, 2)
        o = outputs(i, w, stride, pad, dilation)
        special = per if per <= 4 else 0
        c = g.case(f"implicit_gemm_conv_2d_{MLX[t]}_bm{bm}_bn{bn}_bk16_wm{wm}_wn{wn}_channel_{special or 'l'}_filter_{'l' if special else 's'}", f"{i} by {w} of {C}")
        x = np.float64(c.draw("A", t, (N, *i, C), -2, 2))
        f = np.float64(c.draw("B", t, (O, *w, per), -2, 2))
        p = patches(x, w, o, stride, pad, dilation).reshape(N, *o, *w, groups, per)
        y = np.einsum("nabhwgc,gohwc->nabgo", p, f.reshape(groups, outs, *w, per))
        c.want("C", t, y)
        M, K = N * o[0] * o[1], w[0] * w[1] * per
        if special == 0:
            steps = w[0] * w[1] * -(-per // 16)
        elif special <= 2:
            steps = -(-K // 16)
        else:
            steps = -(-(w[0] * w[1] * 4) // 16)
        jw, jh = C * dilation[1], i[1] * C * dilation[0]
        tiles_n, tiles_m = -(-outs // bn), -(-M // bm)
        c.value("params", *params(2, N, C, O, i, w, o, stride, pad, dilation, groups))
        c.value("gemm_params", "10i", M, outs, K, steps, jw, jh - (w[1] - 1) * jw, 16 - (w[0] - 1) * jh - (w[1] - 1) * jw, tiles_n, tiles_m, 0)
        c.groups((tiles_n, tiles_m, groups), (32, wn, wm))
    for t, C, O, i, w, stride, pad, dilation, bn, size in (("f32", 16, 32, (4, 5, 6), (2, 3, 2), (1, 1, 1), (0, 1, 1), (1, 1, 1), 32, "s"), ("f16", 32, 16, (5, 4, 5), (3, 2, 1), (2, 1, 1), (1, 0, 0), (1, 2, 1), 8, "l")):
        N = 2
        wm, wn = (4, 1) if bn == 8 else (2, 2)
        o = outputs(i, w, stride, pad, dilation)
        c = g.case(f"implicit_gemm_conv_3d_{MLX[t]}_bm32_bn{bn}_bk16_wm{wm}_wn{wn}_filter_{size}", f"{i} by {w} of {C}")
        x = np.float64(c.draw("A", t, (N, *i, C), -2, 2))
        f = np.float64(c.draw("B", t, (O, *w, C), -2, 2))
        p = patches(x, w, o, stride, pad, dilation)
        c.want("C", t, np.einsum("nzabdhwc,odhwc->nzabo", p, f))
        M, K = N * math.prod(o), math.prod(w) * C
        jw, jh, jd = C * dilation[2], i[2] * C * dilation[1], i[1] * i[2] * C * dilation[0]
        back = (w[1] - 1) * jh + (w[2] - 1) * jw
        tiles_n, tiles_m = -(-O // bn), -(-M // 32)
        c.value("params", *params(3, N, C, O, i, w, o, stride, pad, dilation))
        c.value("gemm_params", "11i", M, O, K, math.prod(w) * -(-C // 16), jw, jh - (w[2] - 1) * jw, jd - back, 16 - (w[0] - 1) * jd - back, tiles_n, tiles_m, 0)
        c.groups((tiles_n, tiles_m), (32, wn, wm))
    winograd(g)
    return g


# Winograd's F(6×6, 3×3) with the points 0, ±1, ±2, ±1/2 (Lavin and Gray, Fast algorithms for
# convolutional neural networks, 2015).
BT = np.array([[1, 0, -5.25, 0, 5.25, 0, -1, 0], [0, 1, 1, -4.25, -4.25, 1, 1, 0], [0, -1, 1, 4.25, -4.25, -1, 1, 0], [0, 0.5, 0.25, -2.5, -1.25, 2, 1, 0], [0, -0.5, 0.25, 2.5, -1.25, -2, 1, 0], [0, 2, 4, -2.5, -5, 0.5, 1, 0], [0, -2, 4, 2.5, -5, -0.5, 1, 0], [0, -1, 0, 5.25, 0, -5.25, 0, 1]])
G3 = np.array([[1, 0, 0], [-2 / 9, -2 / 9, -2 / 9], [-2 / 9, 2 / 9, -2 / 9], [1 / 90, 1 / 45, 2 / 45], [1 / 90, -1 / 45, 2 / 45], [32 / 45, 16 / 45, 8 / 45], [32 / 45, -16 / 45, 8 / 45], [0, 0, 1]])
AT = np.array([[1, 1, 1, 1, 1, 1, 1, 0], [0, 1, -1, 2, -2, 0.5, -0.5, 0], [0, 1, 1, 4, 4, 0.25, 0.25, 0], [0, 1, -1, 8, -8, 0.125, -0.125, 0], [0, 1, 1, 16, 16, 0.0625, 0.0625, 0], [0, 1, -1, 32, -32, 0.03125, -0.03125, 1]])
_d, _g = np.arange(64.0).reshape(8, 8) % 7, np.arange(9.0).reshape(3, 3) % 4
assert np.allclose(AT @ ((G3 @ _g @ G3.T) * (BT @ _d @ BT.T)) @ AT.T, [[(_d[a:a + 3, b:b + 3] * _g).sum() for b in range(6)] for a in range(6)])


def winograd(g):
    for t in ("f32", "f16", "bf16"):
        close = {"abs": {"f32": 2e-4, "f16": 5e-4, "bf16": 5e-4}[t], "rel": 4e-6, "ulp": 0.51 if t != "f32" else 2, "why": "two products of matrices in float32 with constants that are rounded, and the rounding of the result"}
        C, O = 32, 8
        c = g.case(f"winograd_conv_2d_weight_transform_{MLX[t]}_bc32")
        w = np.float64(c.draw("wt_in", t, (O, 3, 3, C), -8, 8))
        c.want("wt_out", t, np.einsum("ih,ohwc,jw->ijco", G3, w, G3), **close)
        c.value("C", "i32", C)
        c.value("O", "i32", O)
        c.groups(O // 4, 128)
        N, tiles = 1, (2, 3)
        h, width = 6 * tiles[0] + 2, 6 * tiles[1] + 2
        c = g.case(f"winograd_conv_2d_input_transform_{MLX[t]}_bc32")
        x = np.float64(c.draw("inp_in", t, (N, h, width, C), -4, 4))
        y = np.stack([np.einsum("ia,abc,jb->ijc", BT, x[0, 6 * a:6 * a + 8, 6 * b:6 * b + 8], BT) for a in range(tiles[0]) for b in range(tiles[1])], 2)
        c.want("inp_out", t, y, **close)
        p = params(2, N, C, O, (h, width), (3, 3), (6 * tiles[0], 6 * tiles[1]), (1, 1), (0, 0), (1, 1))
        c.value("params", *p)
        c.groups((tiles[1], tiles[0], N), (32, 2, 2))
        c = g.case(f"winograd_conv_2d_output_transform_{MLX[t]}_bo32")
        O = 32
        m = np.float64(c.draw("out_in", t, (8, 8, tiles[0] * tiles[1], O), -4, 4))
        o = (6 * tiles[0] - 1, 6 * tiles[1] - 4)  # the last tiles are cut
        y = np.einsum("xi,ijto,yj->xyto", AT, m, AT).reshape(6, 6, *tiles, O).transpose(2, 0, 3, 1, 4).reshape(6 * tiles[0], 6 * tiles[1], O)
        c.want("out_out", t, y[None, :o[0], :o[1]], **close)
        c.value("params", *params(2, N, C, O, (h, width), (3, 3), o, (1, 1), (0, 0), (1, 1)))
        c.groups((tiles[1], tiles[0], N), (32, 2, 2))


def deltas():
    g = Group("gated_delta")
    name = {"f32": "float", "f16": "float16_t", "bf16": "bfloat16_t"}
    for t, what, hk, hv, last, steps in (("f32", "seq_gated_delta", 16, 16, 4, 5), ("f16", "seq_gated_delta", 16, 32, 1, 2), ("bf16", "seq_gated_delta", 24, 24, 8, 3), ("f32", "gated_delta_fused_chunk", 16, 16, 8, 11), ("bf16", "gated_delta_fused_chunk", 16, 32, 8, 8)):
        B, d = 1, 128
        save = last == 4
        c = g.case(f"{what}_{name[t]}_{d}_{d}_{hk}_{hv}_{last}", f"{steps} steps", **({"save_state": save} if what.startswith("seq") else {}))
        q = np.float64(c.draw("q", t, (B, steps, hk, d), -8, 8, 1 / 64))
        k = np.float64(c.draw("k", t, (B, steps, hk, d), -8, 8, 1 / 64))
        v = np.float64(c.draw("v", t, (B, steps, hv, d), -8, 8, 1 / 8))
        s = np.float64(c.draw("state_in", "f32", (B, hv, d, d), -4, 4, 1 / 16))
        decay = np.float64(c.draw("g", t, (B, steps, hv), 40, 64, 1 / 64))
        beta = np.float64(c.draw("beta", t, (B, steps, hv), 8, 64, 1 / 64))
        q, k = q.repeat(hv // hk, 2), k.repeat(hv // hk, 2)
        kept, out = [], []
        for i in range(steps):
            if i % last == 0:
                kept.append(s)
            s = s * decay[:, i, :, None, None]
            delta = (v[:, i] - np.einsum("bhvk,bhk->bhv", s, k[:, i])) * beta[:, i, :, None]
            s = s + delta[..., None] * k[:, i, :, None, :]
            out.append(np.einsum("bhvk,bhk->bhv", s, q[:, i]))
        why = "products and sums of 128 terms in float32" + ("" if what.startswith("seq") else ", and decays by fast log and exp")
        far = 1e-5 if what.startswith("seq") else 5e-5
        c.want("y", t, np.stack(out, 1), abs=far, rel=2e-5, ulp=0.51 if t != "f32" else 2, why=why)
        c.want("state_out", "f32", s, abs=far, rel=2e-5, why=why, every=61)
        if save:
            c.want("state_cache", "f32", np.stack(kept, 2), abs=far, rel=2e-5, why=why, every=61)
        c.value("T", "i32", steps)
        if what.startswith("seq"):
            c.grid((32, d, B * hv), (32, 4, 1))
        else:
            c.grid((32, d // 8, B * hv), (32, 4, 1))
    return g


GROUPS = (convolutions, deltas)
