"""Which keys llama.cpp reads of each architecture that frontend/gguf records.

    python testdata/gen/gguf_keys.py [OUT]      (OUT: testdata/gguf_keys.json)

For each model of testdata/architectures, all keys NAME.KEY that llama.cpp's library knows of any architecture are added to the
file, with values of a type that none of them has. llama.cpp refuses the file because of a key only if it reads that key; it is
taken away, until the file is read. OUT has the keys by architecture.

Oracle: llama.cpp (requirements.txt). Deterministic; takes a minute.
"""

import gzip
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import llama_cpp
from gguf import GGUFReader, GGUFValueType, GGUFWriter

HERE = Path(__file__).parent.parent
LOAD = "import sys, llama_cpp; llama_cpp.Llama(sys.argv[1], n_ctx=32, verbose=True)"


def library_keys():
    library = min((Path(llama_cpp.__file__).parent / "lib").glob("libllama.*"))  # others are links to the same
    found = re.findall(rb"%s\.([a-z0-9_.]+)\0", library.read_bytes())
    return sorted({k.decode() for k in found})


def write(reader, arch, path, odd):
    w = GGUFWriter(path, arch)
    for name, field in reader.fields.items():
        if not name.startswith("GGUF.") and name != "general.architecture" and name not in odd:
            kind = field.types[0]
            w.add_key_value(name, field.contents(), kind, field.types[-1] if kind == GGUFValueType.ARRAY else None)
    for name in odd:
        w.add_key_value(name, [5], GGUFValueType.ARRAY, GGUFValueType.INT64)
    for t in reader.tensors:
        w.add_tensor(t.name, t.data, raw_shape=t.data.shape, raw_dtype=t.tensor_type)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def reads(model, candidates, folder):
    """Returns the architecture of a model, and which of the candidates are read of it."""
    plain, probe = folder / "plain.gguf", folder / "probe.gguf"
    plain.write_bytes(gzip.decompress(model.read_bytes()))
    reader = GGUFReader(plain)
    arch = reader.fields["general.architecture"].contents()
    have = {n.removeprefix(arch + ".") for n in reader.fields if n.startswith(arch + ".")}
    left, found = [k for k in candidates if k not in have], []
    while True:
        write(reader, arch, probe, [f"{arch}.{k}" for k in left])
        p = subprocess.run([sys.executable, "-c", LOAD, probe], capture_output=True, text=True)
        if p.returncode == 0:
            return arch, have | set(found)
        m = re.search(re.escape(arch) + r"\.([a-z0-9_.]+) (has wrong|is not a string)", p.stderr)
        if not m or m[1] not in left:
            sys.exit(f"{model}: {p.stderr[-2000:]}")
        found.append(m[1])
        left.remove(m[1])


def main():
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "gguf_keys.json"
    candidates, by_arch = library_keys(), {}
    with tempfile.TemporaryDirectory() as folder:
        for model in sorted((HERE / "architectures").glob("*.gguf.gz")):
            arch, keys = reads(model, candidates, Path(folder))
            by_arch.setdefault(arch, set()).update(keys)
    out.write_text(json.dumps({a: sorted(k) for a, k in sorted(by_arch.items())}, indent=1) + "\n")


main()
