"""Extracts from the argument tables of MLX's compiled Metal library those of the
kernels that msl/*.metal declares.

  python mlx_signatures.py mlx-0.32.4-kernels.tsv > ../msl/mlx-0.32.4-signatures.tsv

The input holds, for each kernel of MLX 0.32.4's mlx.metallib (MLX is MIT
licensed), what its AIR metadata say: lines "=Sn<TAB>arguments<TAB>maximum of
threads<TAB>function constants" and "name<TAB>Sn<TAB>threadgroup bytes". Names of
ours that it lacks are listed on stderr: the kernel is our own, or the input
leaves it out.
"""

import itertools
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]

HEADER = """\
# Arguments of the kernels of MLX 0.32.4's Metal library that are also in msl/*.metal (MLX is MIT licensed).
# Made by testdata/gen/mlx_signatures.py. Columns, cut by tabs: name, arguments, bytes of threadgroup variables,
# maximum of threads of a threadgroup, function constants (name=index:type).
# An argument: index:access:space:type:name. access r | rw/w; space d device, c constant; type ends in #bytes
# (a reference or array of that size) or * (a pointer); ?c = there if constant c is true; ! = unused.
"""


def expand(template):
    """Yields the names of an @kernel line: {name:spelled|spelled=value}."""
    parts = re.split(r"\{\w+:([^}]*)\}", template)
    choices = [[p] if i % 2 == 0 else [c.split("=")[0] for c in p.split("|")] for i, p in enumerate(parts)]
    for pick in itertools.product(*choices):
        yield "".join(pick)


def of_each_type(names, kernels):
    """Keeps, of a template with many widths and groups, which have the same arguments, the first that is there of each type."""
    first = {}
    for name in sorted(names):
        if name in kernels:
            first.setdefault(re.split(r"_gs_\d+_b_\d+", name)[0], name)
    return first.values()


def declared(kernels):
    sources = [p.read_text().splitlines() for p in sorted((ROOT / "msl").glob("*.[hm]*"))]
    texts = {}  # those without parameters, such as the widths that there are
    for line in itertools.chain(*sources):
        m = re.match(r"\s*//\s*@text\s+(\w+)\(\) = (\S+)$", line)
        if m:
            texts["{" + m.group(1) + "()}"] = m.group(2)
    names = set()
    for line in itertools.chain(*sources):
        m = re.match(r"\s*//\s*@kernel\s+(\S.*)", line)
        if m:
            of = expand(re.sub(r"\{\w+\(\)\}", lambda t: texts.get(t.group(), t.group()), m.group(1)))
            names.update(of_each_type(of, kernels) if "{code_bits()}" in m.group(1) else of)
    return sorted(names)


def main(path):
    signatures, kernels = {}, {}
    for line in pathlib.Path(path).read_text().splitlines():
        if line.startswith("#"):
            continue
        name, *rest = line.split("\t")
        if name.startswith("="):
            signatures[name[1:]] = rest
        else:
            kernels[name] = rest
    sys.stdout.write(HEADER)
    for name in declared(kernels):
        if name not in kernels:
            print(f"not in {path}: {name}", file=sys.stderr)
            continue
        signature, size = kernels[name]
        arguments, threads, constants = (signatures[signature] + ["", ""])[:3]
        arguments = " ".join(a for a in arguments.split(" ") if not a.startswith("@"))
        print(name, arguments, size, threads, constants, sep="\t")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
