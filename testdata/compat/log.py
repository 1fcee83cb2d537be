"""Logs two steps of an engine with one kernel, by the recorder of the release that scripts/compat.sh makes files of."""

import sys

from mlxc import Recorder

SOURCE = """#include <metal_stdlib>
using namespace metal;
kernel void my_scale(device const float *x [[buffer(0)]], device float *y [[buffer(1)]], constant uint &n [[buffer(2)]],
                     uint i [[thread_position_in_grid]]) {
    if (i < n)
        y[i] = 2.5f * x[i];
}
"""

with Recorder(sys.argv[1], "compat") as r:
    scale = r.kernel(r.source("scale.metal", SOURCE), "my_scale")
    x, y = r.buffer(4096, "x", "input"), r.buffer(4096, "y", "output")
    for n in (100, 101):
        with r.step("scale"):
            r.use(scale).bind(0, x).bind(1, y).bytes(2, n.to_bytes(4, "little"))
            r.threads((1024, 1, 1), (256, 1, 1))
