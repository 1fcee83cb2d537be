"""Writes a C++ source with the headers that MLX puts before the kernels that it compiles at run time, as its build does
(make_compiled_preamble.sh, which asks Apple's compiler in what order they include each other).

	preambles.py FOLDER OUTPUT      FOLDER has mlx/backend/metal/kernels
"""
import os
import re
import sys

folder, output = sys.argv[1:]
kernels = "mlx/backend/metal/kernels/"
names = ["binary_ops", "indexing/gather", "indexing/gather_axis", "indexing/gather_front", "hadamard", "indexing/masked_scatter", "reduce_utils",
         "indexing/scatter", "indexing/scatter_axis", "ternary_ops", "unary_ops", "utils"]


def headers(path, seen):
    """The headers that a header includes, those first that others need, and itself last."""
    with open(os.path.join(folder, path)) as f:
        text = f.read()
    out = []
    for included in re.findall(r'^#include "(.*\.h)"', text, re.M):
        for base in ("", os.path.dirname(path) + "/", kernels + "jit/"):
            if os.path.exists(os.path.join(folder, base + included)):
                found = os.path.normpath(base + included)
                break
        else:
            sys.exit(f"{path} includes {included}, which is not there")
        if found not in seen:
            seen.add(found)
            out += headers(found, seen)
    return out + [path]


with open(output, "w") as f:
    f.write("namespace mlx::core::metal {\n")
    for name in names:
        text = ""
        for path in headers(kernels + name + ".h", set()):
            with open(os.path.join(folder, path)) as h:
                lines = [line for line in h if not re.search(r'#include ".*\.h"|#pragma once', line)]
            text += f'#line 1 "{path}"\n' + "".join(lines) + "\n"
        f.write(f"const char* {os.path.basename(name)}() {{\n  return\n")
        for at in range(0, len(text), 8000):  # a string literal is at most 64 KB long
            f.write('R"preamble(' + text[at : at + 8000] + ')preamble"\n')
        f.write(";\n}\n")
    f.write("} // namespace mlx::core::metal\n")
