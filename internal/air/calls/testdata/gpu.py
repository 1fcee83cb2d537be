"""Runs what TestForGPU wrote, with CuPy: gpu.py FOLDER.  All results must have the bits of the host, but for NaNs and for
what the GPU approximates, whose errors are printed."""
import json, sys, time
import cupy, numpy as np

folder = sys.argv[1]
kernels = json.load(open(f"{folder}/kernels.json"))
data = np.fromfile(f"{folder}/data.bin", np.uint8)
start = time.time()
module = cupy.RawModule(path=f"{folder}/functions.ptx")
first = module.get_function("k0")
print(f"{len(kernels)} kernels loaded in {time.time() - start:.1f} s", flush=True)
on_gpu = cupy.asarray(data)
wrong = same = 0
for i, k in enumerate(kernels):
    args = [on_gpu[a["Offset"]:a["Offset"] + a["Bytes"]] for a in k["Args"]]
    w = k["Want"]
    out = cupy.zeros(w["Bytes"], np.uint8)
    module.get_function(f"k{i}")(((k["Count"] + 127) // 128,), (128,), (*args, out, np.uint32(k["Count"])))
    got, want = cupy.asnumpy(out), data[w["Offset"]:w["Offset"] + w["Bytes"]]
    element = k["Result"].strip("<>").split(" x ")[-1]
    if element in ("float", "half", "bfloat"):
        bits = np.uint32 if element == "float" else np.uint16
        infinity = {"float": 0x7f800000, "half": 0x7c00, "bfloat": 0x7f80}[element]
        g, v = got.view(bits), want.view(bits)
        magnitude = bits(~(1 << (8 * g.itemsize - 1)) & (2 ** (8 * g.itemsize) - 1))
        bad = (g != v) & ~(((g & magnitude) > infinity) & ((v & magnitude) > infinity))
    else:
        g, v = got, want
        bad = g != v
    if not bad.any():
        same += 1
        continue
    if k["Name"].startswith("air.fast_"):
        continue  # below
    wrong += 1
    j = int(np.flatnonzero(bad)[0])
    shown = []
    for a in k["Args"]:
        lanes = len(bad) // k["Count"]
        n = a["Size"] if a["Size"] * k["Count"] != a["Bytes"] or lanes == 1 else a["Size"] // lanes
        shown.append(data[a["Offset"] + j * n:a["Offset"] + (j + 1) * n][::-1].tobytes().hex())
    print(f"WRONG {k['Name']}: {bad.sum()} of {len(bad)}; ({', '.join(shown)}) is {int(g[j]):#x}, on the host {int(v[j]):#x}", flush=True)

# What the GPU approximates, where it is used, against NumPy in float64.
RANGES = {
    "exp": (np.exp, (-10, 10)), "exp2": (np.exp2, (-10, 10)), "exp10": (lambda x: 10.0 ** x, (-5, 5)),
    "log": (np.log, (2, 1000)), "log2": (np.log2, (2, 1000)), "log10": (np.log10, (2, 1000)), "rsqrt": (lambda x: 1 / np.sqrt(x), (1e-6, 1000)),
    "log ": (np.log, (0.5, 2)), "sin": (np.sin, (-np.pi, np.pi)), "cos": (np.cos, (-np.pi, np.pi)), "tan": (np.tan, (-1.5, 1.5)),
    "sin ": (np.sin, (-1e5, 1e5)), "cos ": (np.cos, (-1e5, 1e5)),
}
names = {k["Name"]: i for i, k in enumerate(kernels)}
for name, (f, (lo, hi)) in RANGES.items():
    x = np.linspace(lo, hi, 1 << 20).astype(np.float32)
    a, out = cupy.asarray(x), cupy.zeros(x.shape, np.float32)
    module.get_function(f"k{names['air.fast_' + name.strip() + '.f32']}")((x.size // 128,), (128,), (a, out, np.uint32(x.size)))
    want = f(x.astype(np.float64))
    error = np.abs(cupy.asnumpy(out) - want)
    print(f"fast_{name.strip()} from {lo:.4g} to {hi:.4g}: {(error / np.spacing(np.abs(want).astype(np.float32))).max():.2f} ulp, {error.max():.3g} at most")
print(f"{same} the same, {wrong} wrong")
sys.exit(wrong > 0)
