"""Writes a quantized GGUF file again with every weight as float32.

    python testdata/gen/smollm2_f32.py MODEL.gguf OUT.gguf

llama.cpp rounds activations to 8 bits before it multiplies them with quantized
weights, so its logits on MODEL are not those of MODEL's weights. On OUT it
multiplies in float32, and nothing else differs: the tensors keep their names,
order and shapes, the metadata keep their bytes (general.file_type too, which
then names MODEL's type; llama.cpp only prints it).

Tensors of type F32, Q4_1 and Q8_0 are known. The values come from the gguf
package, and each is compared, bit for bit, with the format's formula computed
in float64 and rounded once. Prints the count of tensors and OUT's sha256.
Deterministic. Versions: requirements.txt.
"""

import hashlib
import os
import sys

import gguf
import numpy as np
from gguf.quants import dequantize

Q = gguf.GGMLQuantizationType


def exact(data, kind):
    """Values of the blocks in data (uint8, [rows, bytes of a row]) as float64.

    Layouts, per 32 values (ggml-common.h, block_q4_1 and block_q8_0):
      Q4_1  f16 d, f16 m, 16 bytes qs: value j = d·(qs[j] & 15) + m,
            value 16+j = d·(qs[j] >> 4) + m
      Q8_0  f16 d, 32 int8 q: value j = d·q[j]
    No operation rounds: the factors have 11 and at most 8 bits, and the sum
    spans fewer than the 53 bits of float64.
    """
    size = {Q.Q4_1: 20, Q.Q8_0: 34}[kind]
    blocks = np.ascontiguousarray(data).reshape(-1, size)
    d = np.ascontiguousarray(blocks[:, 0:2]).view("<f2").astype(np.float64)
    if kind == Q.Q8_0:
        values = d * np.ascontiguousarray(blocks[:, 2:]).view(np.int8)
    else:
        m = np.ascontiguousarray(blocks[:, 2:4]).view("<f2").astype(np.float64)
        qs = blocks[:, 4:]
        values = d * np.hstack([qs & 15, qs >> 4]) + m
    return values.reshape(data.shape[0], -1)


def as_float32(tensor):
    """A GGUFReader tensor as a float32 array of its logical shape."""
    if tensor.tensor_type == Q.F32:
        return np.ascontiguousarray(tensor.data)
    if tensor.tensor_type not in (Q.Q4_1, Q.Q8_0):
        raise SystemExit(f"{tensor.name}: type {tensor.tensor_type.name}; this script knows F32, Q4_1 and Q8_0")
    got = np.ascontiguousarray(dequantize(tensor.data, tensor.tensor_type), dtype=np.float32)
    want = exact(tensor.data, tensor.tensor_type).astype(np.float32)
    differ = np.count_nonzero(got.view(np.uint32) != want.view(np.uint32))
    if got.shape != want.shape or differ:
        raise SystemExit(f"{tensor.name}: {differ} of {want.size} values differ from the formula")
    return got


def metadata_bytes(path):
    """The bytes of the key/value section of a GGUF file."""
    reader = gguf.GGUFReader(path)
    first = min(f.offset for f in reader.fields.values() if not f.name.startswith("GGUF."))
    last = max(reader.fields.values(), key=lambda f: f.offset)
    end = last.offset + sum(int(p.nbytes) for p in last.parts)
    with open(path, "rb") as f:
        f.seek(first)
        return f.read(end - first)


def convert(source, target):
    """Writes target, returns its sha256 (hex). Reads it again and compares."""
    reader = gguf.GGUFReader(source)
    arch = reader.fields[gguf.Keys.General.ARCHITECTURE].contents()
    writer = gguf.GGUFWriter(target, arch)
    for field in reader.fields.values():
        if field.name == gguf.Keys.General.ARCHITECTURE or field.name.startswith("GGUF."):
            continue  # the writer's own
        kind = field.types[0]
        sub = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(field.name, field.contents(), kind, sub_type=sub)
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, as_float32(tensor))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()

    if metadata_bytes(source) != metadata_bytes(target):
        raise SystemExit(f"{target}: metadata differ from those of {source}")
    written = gguf.GGUFReader(target)
    for old, new in zip(reader.tensors, written.tensors, strict=True):
        if new.tensor_type != Q.F32 or old.name != new.name or list(old.shape) != list(new.shape):
            raise SystemExit(f"{target}: tensor {new.name} {new.tensor_type.name} {list(new.shape)}, want {old.name} F32 {list(old.shape)}")
        if as_float32(old).tobytes() != new.data.tobytes():
            raise SystemExit(f"{target}: tensor {new.name}: bytes differ from what was written")
    digest = hashlib.sha256()
    with open(target, "rb") as f:
        while piece := f.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


def main(args):
    if len(args) != 2:
        raise SystemExit("usage: smollm2_f32.py MODEL.gguf OUT.gguf")
    digest = convert(*args)
    print(f"{len(gguf.GGUFReader(args[1]).tensors)} tensors, {os.path.getsize(args[1])} bytes, sha256 {digest}")


if __name__ == "__main__":
    main(sys.argv[1:])
