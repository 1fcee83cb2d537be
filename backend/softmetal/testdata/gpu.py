"""Runs what the tests with GPU_RECORD wrote, on an NVIDIA GPU with CuPy: gpu.py FOLDER. What the
memories hold afterwards goes to FOLDER/out.bin, in the places of data.bin."""
import json, sys, time
import cupy, numpy as np

folder = sys.argv[1]
cases = [json.loads(l) for l in open(f"{folder}/cases.jsonl")]
out = np.fromfile(f"{folder}/data.bin", np.uint8)
start, functions, failed = time.time(), {}, 0
for n, c in enumerate(cases):
    try:
        if c["PTX"] not in functions:
            functions[c["PTX"]] = cupy.RawModule(path=f"{folder}/{c['PTX']}").get_function("mlxc_kernel")
        f = functions[c["PTX"]]
        memories, args = {}, []
        for p in c["Params"]:
            if p["Buffer"] < 0:
                args.append(np.uint32(p["Value"]))
                continue
            if p["Buffer"] not in memories:
                at = p["Place"]["Offset"]
                memories[p["Buffer"]] = cupy.asarray(out[at:at + p["Place"]["Bytes"]]) if p["Place"]["Bytes"] else cupy.zeros(16, np.uint8)
            args.append(np.uint64(memories[p["Buffer"]].data.ptr + p["Value"]))
        if c["Dynamic"] > 48 << 10:
            f.max_dynamic_shared_size_bytes = c["Dynamic"]
        f(tuple(c["Groups"]), (c["Threads"],), tuple(args), shared_mem=c["Dynamic"])
        cupy.cuda.runtime.deviceSynchronize()
        for i, p in enumerate(c["Results"]):
            if i in memories and p["Bytes"]:
                out[p["Offset"]:p["Offset"] + p["Bytes"]] = cupy.asnumpy(memories[i])
    except Exception as e:
        failed += 1
        print(f"FAILED {c['Kernel']} {c['PTX']} {c['Groups']} of {c['Threads']}: {str(e)[:400]}", flush=True)
        if "illegal" in str(e) or "launch failure" in str(e):
            break
out.tofile(f"{folder}/out.bin")
print(f"{len(cases)} dispatches of {len(functions)} kernels in {time.time() - start:.1f} s, {failed} failed")
