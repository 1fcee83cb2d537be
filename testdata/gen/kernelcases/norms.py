"""rms_norm, layer_norm, their gradients, and rope."""
import math

import numpy as np

from cases import EPS, MLX, Group

WHY = "sums, a root and a few products in float32, and the rounding of the result"


def tolerance(t, terms=1.0):
    # What is wanted is of the order of terms; bfloat16 and half round twice where w is multiplied.
    return {"abs": 2e-6 * terms, "rel": 4e-6, "ulp": {"f32": 2, "f16": 1.6, "bf16": 1.6}[t], "why": WHY}


def threads(n, reads, looped):
    return 1024 if looped else -(-(-(-n // reads)) // 32) * 32


def rows_of(c, name, t, rows, n):
    return np.float64(c.draw(name, t, (rows, n), -64, 64, 1 / 32))


def norms():
    g = Group("norm")
    eps = np.float32(1e-5)
    for t, rows, n, looped, stride in (("f32", 3, 128, 0, 1), ("f32", 2, 1000, 0, 1), ("f16", 5, 77, 0, 1), ("bf16", 2, 576, 0, 0), ("f32", 2, 5000, 1, 1), ("f16", 1, 4200, 1, 1), ("bf16", 1, 4099, 1, 0)):
        for family in ("rms", "layer"):
            name = ("rms" if family == "rms" else "layer_norm") + ("_looped" if looped else "") + MLX[t]
            c = g.case(name, f"{rows} rows of {n}")
            x = rows_of(c, "x", t, rows, n)
            w = np.float64(c.draw("w", t, n if stride else 1, 1, 16, 1 / 8))
            y = x
            if family == "layer":
                b = np.float64(c.draw("b", t, n if stride else 1, -8, 8, 1 / 8))
                m = x.mean(1, keepdims=True)
                y = (x - m) / np.sqrt(((x - m) ** 2).mean(1, keepdims=True) + np.float64(eps)) * w + b
                # A sum of two terms, of which the first was rounded.
                c.want("out", t, y, **{**tolerance(t, 4), "abs": 1e-5 if t == "f32" else EPS[t] * 8})
            else:
                y = x / np.sqrt((x * x).mean(1, keepdims=True) + np.float64(eps)) * w
                c.want("out", t, y, **tolerance(t))
            c.value("eps", "f32", eps)
            c.value("axis_size", "u32", n)
            c.value("w_stride", "u32", stride)
            reads = 4
            if family == "layer":
                c.value("b_stride", "u32", stride)
                reads = 4 if looped else 8
            tg = threads(n, reads, looped)
            c.grid(rows * tg, tg)
    for t, rows, n, looped, has_w in (("f32", 4, 256, 0, 1), ("f32", 3, 700, 0, 0), ("f16", 2, 100, 0, 1), ("bf16", 3, 64, 0, 1), ("f32", 1, 8300, 1, 1), ("f16", 1, 8200, 1, 0), ("bf16", 1, 8230, 1, 1)):
        for family in ("rms", "layer"):
            if has_w == 0 and looped and family == "layer":
                has_w = 1
            name = ("vjp_rms" if family == "rms" else "vjp_layer_norm") + ("_looped" if looped else "") + MLX[t]
            c = g.case(name, f"{rows} rows of {n}{'' if has_w else ' without w'}", has_w=has_w)
            x = rows_of(c, "x", t, rows, n)
            w = np.float64(c.draw("w", t, n if has_w else 1, 1, 16, 1 / 8))
            up = np.float64(c.draw("g", t, (rows, n), -16, 16, 1 / 8))
            e = np.float64(eps)
            if family == "rms":
                r = 1 / np.sqrt((x * x).mean(1, keepdims=True) + e)
                gx = up * w * r - x * (up * w * x).mean(1, keepdims=True) * r**3
                gw = up * x * r
            else:
                d = x - x.mean(1, keepdims=True)
                r = 1 / np.sqrt((d * d).mean(1, keepdims=True) + e)
                gx = r * (w * up - (w * up).mean(1, keepdims=True)) - d * (up * w * d).mean(1, keepdims=True) * r**3
                gw = up * d * r
            per = 1
            if family == "rms" and not looped and rows > 2:
                per = 2  # rows of a threadgroup, whose gradients of w it adds up
                gw = np.stack([gw[i:i + per].sum(0) for i in range(0, rows, per)])
            c.want("gx", t, gx, abs=2e-5, rel=4e-6, ulp=2 if t == "f32" else 0.51, why=WHY)
            if has_w:
                c.want("gw", t, gw, abs=1e-5, rel=4e-6, ulp=2 if t == "f32" else 0.51, why=WHY)
            else:
                c.free("gw", t, 1)
            c.value("eps", "f32", eps)
            c.value("axis_size", "u32", n)
            c.value("w_stride", "u32", has_w)
            groups = rows
            if family == "rms" and not looped:
                c.value("n_rows", "u32", rows)
                c.value("rows_per_group", "u32", per)
                groups = -(-rows // per)
            reads = 4 if family == "rms" or looped else 8
            tg = threads(n, reads, looped)
            c.grid(groups * tg, tg)
    return g


TURN = "fast sin and cos of an angle up to {:.0f} whose float32 is off by half an ulp, two products, and the rounding of the result"


def turned(c, x, theta, forward, traditional, t):
    """x: […, heads, positions, dims]; theta: [positions, dims/2] or with more axes before."""
    a, b = (x[..., 0::2], x[..., 1::2]) if traditional else np.split(x, 2, axis=-1)
    s, co = np.sin(theta), np.cos(theta)
    if forward:
        p, q = a * co - b * s, a * s + b * co
    else:
        p, q = b * s + a * co, b * co - a * s
    y = np.empty_like(x)
    if traditional:
        y[..., 0::2], y[..., 1::2] = p, q
    else:
        y = np.concatenate([p, q], axis=-1)
    top = np.abs(theta).max()
    return y, {"abs": float(top) * 2**-22 * 4 + 2e-6, "ulp": 2 if t == "f32" else 0.51, "why": TURN.format(math.ceil(top))}


def ropes():
    g = Group("rope")
    k = 0
    for single in (True, False):
        for freqs in (False, True):
            for t in ("f32", "f16", "bf16"):
                for forward, traditional in ((True, False), (k % 2 == 0, True)):
                    k += 1
                    large = not single and k % 3 == 0
                    transposed = not single and k % 2 == 0
                    name = f"rope_{'single_' if single else ''}{'freqs_' if freqs else ''}{'large_' if large else ''}{MLX[t]}"
                    constants = {"forward": forward, "traditional": traditional}
                    if not single:
                        constants["hs_transpose"] = transposed
                    c = g.case(name, f"{'' if forward else 'vjp '}{'traditional ' if traditional else ''}{'transposed' if transposed else ''}{k}", **constants)
                    dims, heads, batch, length = (64, 6, 1, 1) if single else (32, 5, 2, 7)
                    base, scale = np.float32(math.log2(10000)), np.float32(0.5)
                    if transposed:
                        x = np.float64(c.draw("in", t, (batch, length, heads, dims), -32, 32, 1 / 16)).transpose(0, 2, 1, 3)
                        strides = (dims, heads * dims, 1)
                    else:
                        x = np.float64(c.draw("in", t, (batch, heads, length, dims), -32, 32, 1 / 16))
                        strides = (length * dims, dims, 1)
                    half = dims // 2
                    inverse = 2.0 ** (-(np.arange(half) / half) * np.float64(base))
                    if freqs:
                        f = np.float64(c.give("freqs", "f32", np.float32(1.5 * 1.7 ** np.arange(half)).repeat(2)))[::2]
                        inverse = 1 / f
                        c.value("freq_stride", "i64", 2)
                    else:
                        c.value("base", "f32", base)
                    offsets = [37] if single else [11, 23]
                    position = np.arange(length)[None, :] + np.array(offsets)[:, None]
                    theta = (np.float64(scale) * position)[:, None, :, None] * inverse
                    y, within = turned(c, x, theta, forward, traditional, t)
                    c.want("out", t, y, **within)
                    c.value("scale", "f32", scale)
                    if single:
                        c.value("offset", "i32", *offsets)
                        c.value("stride", "i64", dims)
                        c.grid((half, heads), (16, 4))
                    else:
                        c.give("offset", "i32", offsets)
                        c.value("strides", "i64", *strides)
                        c.value("out_strides", "i64", length * dims, dims, 1)
                        c.value("offset_stride", "i64", 1)
                        c.value("n_head", "i32", heads)
                        c.grid((half, length, batch * -(-heads // 4)), (16, 4, 2))
    return g


GROUPS = (norms, ropes)
