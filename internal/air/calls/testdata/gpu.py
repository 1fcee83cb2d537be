"""Runs what TestForGPU wrote, with CuPy: gpu.py FOLDER.  All results must have the bits of the host, but for
NaNs and for air.fast_*, whose greatest difference is printed."""
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
        x, y = g.view(np.float32).astype(np.float64), v.view(np.float32).astype(np.float64)
        with np.errstate(all="ignore"):
            ulp = np.abs(x - y) / np.spacing(np.maximum(np.abs(v.view(np.float32)), np.float32(2.0 ** -126))).astype(np.float64)
            usual = np.isfinite(x) & np.isfinite(y)
        print(f"{k['Name']}: {bad.sum()} of {len(bad)} differ, at most {ulp[usual].max():.3g} ulp, {np.abs(x - y)[usual].max():.3g}; not finite on one side: {(np.isfinite(x) != np.isfinite(y)).sum()}")
        continue
    wrong += 1
    j = int(np.flatnonzero(bad)[0])
    size = k["Args"][0]["Size"] * k["Count"] // len(bad) if len(bad) % k["Count"] == 0 else k["Args"][0]["Size"]
    shown = []
    for a in k["Args"]:
        lanes = len(bad) // k["Count"]
        n = a["Size"] if a["Size"] * k["Count"] != a["Bytes"] or lanes == 1 else a["Size"] // lanes
        shown.append(data[a["Offset"] + j * n:a["Offset"] + (j + 1) * n][::-1].tobytes().hex())
    print(f"WRONG {k['Name']}: {bad.sum()} of {len(bad)}; ({', '.join(shown)}) is {int(g[j]):#x}, on the host {int(v[j]):#x}", flush=True)
print(f"{same} the same, {wrong} wrong")
sys.exit(wrong > 0)
