"""Writes the model of the stored capture of ggml's Metal backend: two layers with made-up weights of q4_1, 0.2 MB.

    python testdata/gen/ggmlhost/model.py FILE
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
import synthetic_gguf

synthetic_gguf.SHAPES["small"] = dict(layers=2, width=128, ffn=256, heads=2, kv=1, dim=64, vocab=320, context=256, theta=10000.0, tied=True)
print(synthetic_gguf.write("small", sys.argv[1], "q4_1"), "bytes")
