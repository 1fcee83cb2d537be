"""One training step of a small network, and layer norms, by MLX.

    python testdata/gen/train.py testdata/train.json

MLX's own gradients (mx.grad) on its CPU back end, in float32. Numbers are
written so that they read back to the same float32. Versions: requirements.txt.

layer_norm  y, and the gradients of Σ y·g, with and without weight and bias, by shape
narrow      the same of numbers that are of the type, f16 or bf16, to be rounded to it
step        linear → layer norm → relu → linear, mean of the squared errors:
            the parameters, the loss, the gradient of each parameter
losses      the loss before each of some steps of gradient descent from there
"""

import json
import sys

import mlx.core as mx
import numpy as np

BATCH, INPUTS, HIDDEN, OUTPUTS = 20, 6, 40, 3
EPS, RATE, STEPS = 1e-5, 0.05, 30


def numbers(a):
    return [float(str(v)) for v in np.array(a, np.float32).ravel()]  # the fewest digits


def layer_norms(rng):
    out = []
    for rows, n in ((4, 7), (3, 300), (33, 20)):
        x, g = (mx.array(rng.standard_normal((rows, n)).astype(np.float32)) for _ in range(2))
        w, b = (mx.array(rng.standard_normal(n).astype(np.float32)) for _ in range(2))
        shape = {"rows": rows, "n": n, "x": numbers(x), "g": numbers(g), "w": numbers(w), "b": numbers(b), "cases": []}
        for has_w in (True, False):
            for has_b in (True, False):

                def f(x, w, b):
                    return mx.fast.layer_norm(x, w if has_w else None, b if has_b else None, EPS)

                (y,), (gx, gw, gb) = mx.vjp(f, [x, w, b], [g])
                case = {"has_w": has_w, "has_b": has_b, "y": numbers(y), "gx": numbers(gx)}
                if has_w:
                    case["gw"] = numbers(gw)
                if has_b:
                    case["gb"] = numbers(gb)
                shape["cases"].append(case)
        out.append(shape)
    return out


def narrow():
    rng = np.random.default_rng(2)
    out = []
    for name, dtype in (("f16", mx.float16), ("bf16", mx.bfloat16)):
        for rows, n in ((3, 300), (40, 20)):
            x, g, w, b = (
                mx.array(rng.standard_normal(s).astype(np.float32)).astype(dtype).astype(mx.float32)
                for s in ((rows, n), (rows, n), n, n)
            )
            (y,), (gx, gw, gb) = mx.vjp(lambda x, w, b: mx.fast.layer_norm(x, w, b, EPS), [x, w, b], [g])
            case = {"type": name, "rows": rows, "n": n}
            out.append(case | {k: numbers(v) for k, v in dict(x=x, g=g, w=w, b=b, y=y, gx=gx, gw=gw, gb=gb).items()})
    return out


def loss(p, x, t):
    h = x @ p["w1"].T + p["b1"]
    a = mx.maximum(mx.fast.layer_norm(h, p["gamma"], p["beta"], EPS), 0)
    y = a @ p["w2"].T + p["b2"]
    return mx.mean((y - t) ** 2)


def main():
    mx.set_default_device(mx.cpu)
    rng = np.random.default_rng(1)
    shapes = {
        "w1": (HIDDEN, INPUTS),
        "b1": (HIDDEN,),
        "gamma": (HIDDEN,),
        "beta": (HIDDEN,),
        "w2": (OUTPUTS, HIDDEN),
        "b2": (OUTPUTS,),
    }
    p = {name: mx.array((0.3 * rng.standard_normal(s)).astype(np.float32)) for name, s in shapes.items()}
    p["gamma"] = p["gamma"] + 1
    x = mx.array(rng.standard_normal((BATCH, INPUTS)).astype(np.float32))
    t = mx.array(rng.standard_normal((BATCH, OUTPUTS)).astype(np.float32))
    step = {"x": numbers(x), "t": numbers(t), "parameters": {k: numbers(v) for k, v in p.items()}}
    step["loss"] = float(loss(p, x, t))
    step["gradients"] = {k: numbers(v) for k, v in mx.grad(loss)(p, x, t).items()}
    losses = []
    for _ in range(STEPS):
        v, grads = mx.value_and_grad(loss)(p, x, t)
        losses.append(float(v))
        p = {k: p[k] - RATE * grads[k] for k in p}
    out = {
        "made by": f"testdata/gen/train.py, mlx {mx.__version__}, numpy {np.__version__}",
        "batch": BATCH, "inputs": INPUTS, "hidden": HIDDEN, "outputs": OUTPUTS, "eps": EPS, "rate": RATE,
        "layer_norm": layer_norms(rng), "narrow": narrow(), "step": step, "losses": losses,
    }  # fmt: skip
    with open(sys.argv[1], "w") as f:
        json.dump(out, f, separators=(",", ":"))
        f.write("\n")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main()
