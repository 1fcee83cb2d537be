#!/usr/bin/env python3
"""Builds the wheels of the package mlxc: both programs, and the Python recorder (python/).

    scripts/wheel.py                                 all platforms, of the tag that is checked out
    scripts/wheel.py musllinux_x86_64 --version 0.2.0.dev1    one, of a tree without a tag

The programs are what a release has, built by Go without cgo, so that all platforms are built on any; their manual pages come
along. A wheel of one commit has
the same bytes whoever makes it: its entries are sorted, and their time is SOURCE_DATE_EPOCH, or that of the commit.

Wheels for musl (and any other C library, or none) have an mlxreplay that is linked statically and so drives no GPU. The
others need a dynamic linker for mlxreplay, and of libraries nothing that has a version: glibc of 2.17 and later has all of it.
"""

import argparse
import base64
import hashlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Name here: tags, GOOS, GOARCH, tags of Go's. Go needs macOS 12.
PLATFORMS = {
    "manylinux_x86_64": ("manylinux_2_17_x86_64.manylinux2014_x86_64", "linux", "amd64", ""),
    "manylinux_aarch64": ("manylinux_2_17_aarch64.manylinux2014_aarch64", "linux", "arm64", ""),
    "musllinux_x86_64": ("musllinux_1_2_x86_64", "linux", "amd64", "static"),
    "musllinux_aarch64": ("musllinux_1_2_aarch64", "linux", "arm64", "static"),
    "macosx_arm64": ("macosx_12_0_arm64", "darwin", "arm64", ""),
    "win_amd64": ("win_amd64", "windows", "amd64", ""),
}

METADATA = """\
Metadata-Version: 2.4
Name: mlxc
Version: {version}
Summary: A compiler toolchain for GPU dispatch graphs: record, optimize, prove, replay
License-Expression: Apache-2.0
License-File: LICENSE
License-File: THIRD_PARTY.md
Project-URL: Source, https://github.com/mlxc/mlxc
Project-URL: Changes, https://github.com/mlxc/mlxc/blob/main/CHANGELOG.md
Classifier: Environment :: Console
Classifier: Programming Language :: Python :: 3
Classifier: Topic :: Software Development :: Compilers
Requires-Python: >=3.10
Provides-Extra: kernels
Requires-Dist: ziglang>=0.14; extra == "kernels"
Description-Content-Type: text/markdown

The programs `mlxc` and `mlxreplay`, and the recorder for engines in Python (`from mlxc import Recorder`).

    mlxc record model.gguf -o g.mlxg
    mlxreplay generate g.mlxg --prompt "Hi"

`pip install 'mlxc[kernels]'` brings a clang, with which `--device softmetal` and `mlxc effects --infer` compile Metal kernels
on any machine. Nothing is fetched when the programs run. Documentation: the repository's `docs/`.
"""


def git(*args):
    return subprocess.run(["git", "-C", str(ROOT), *args], check=True, capture_output=True, text=True).stdout.strip()


def tagged():
    """The version of the tag that is checked out, or None."""
    found = subprocess.run(["git", "-C", str(ROOT), "describe", "--exact-match", "--tags", "--match", "v*", "HEAD"], capture_output=True, text=True)
    return found.stdout.strip().removeprefix("v") if found.returncode == 0 else None


def build(target, to):
    """Builds both programs as a release has them, and returns their paths."""
    _, goos, goarch, tags = PLATFORMS[target]
    env = dict(os.environ, CGO_ENABLED="0", GOOS=goos, GOARCH=goarch, GOFLAGS="-buildvcs=true")
    paths = []
    for name in ("mlxc", "mlxreplay"):
        path = to / (name + (".exe" if goos == "windows" else ""))
        with_tags = ["-tags", tags] if tags and name == "mlxreplay" else []
        subprocess.run(["go", "build", "-trimpath", "-ldflags=-s -w -buildid=", *with_tags, "-o", path, "./cmd/" + name], cwd=ROOT, env=env, check=True)
        paths.append(path)
    return paths


def manual(to):
    """Has scripts/manual.sh write the manual pages, and returns their paths."""
    subprocess.run([ROOT / "scripts" / "manual.sh", to], check=True)
    return sorted((to / "man").iterdir())


def wheel(target, version, epoch, out, programs, pages=()):
    """Writes one wheel and returns its path."""
    tags = PLATFORMS[target][0]
    info = f"mlxc-{version}.dist-info"
    wheel_file = "Wheel-Version: 1.0\nGenerator: mlxc scripts/wheel.py\nRoot-Is-Purelib: false\n"
    wheel_file += "".join(f"Tag: py3-none-{t}\n" for t in tags.split("."))
    files = {}  # name in the archive: contents, whether it is run
    for source in sorted((ROOT / "python").rglob("*.py")):
        files[source.relative_to(ROOT / "python").as_posix()] = source.read_bytes(), False
    for path in programs:
        files[f"mlxc-{version}.data/scripts/{path.name}"] = path.read_bytes(), True
    for path in pages:
        files[f"mlxc-{version}.data/data/share/man/man1/{path.name}"] = path.read_bytes(), False
    for name in ("LICENSE", "THIRD_PARTY.md"):
        files[f"{info}/licenses/{name}"] = (ROOT / name).read_bytes(), False
    files[f"{info}/METADATA"] = METADATA.format(version=version).encode(), False
    files[f"{info}/WHEEL"] = wheel_file.encode(), False
    # pip wants what describes the wheel at the end of the archive.
    order = sorted(files, key=lambda name: (".dist-info/" in name, name))
    record = "".join(f"{name},sha256={base64.urlsafe_b64encode(hashlib.sha256(files[name][0]).digest()).rstrip(b'=').decode()},{len(files[name][0])}\n" for name in order)
    record_name = f"{info}/RECORD"
    files[record_name] = (record + f"{record_name},,\n").encode(), False
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"mlxc-{version}-py3-none-{tags}.whl"
    when = time.gmtime(max(epoch, 315532800))[:6]  # a zip begins in 1980
    partial = path.with_suffix(".partial")
    with zipfile.ZipFile(partial, "w") as z:
        for name in [*order, record_name]:
            data, runs = files[name]
            entry = zipfile.ZipInfo(name, when)
            entry.create_system = 3  # Unix, whose permissions are given
            entry.external_attr = (0o100755 if runs else 0o100644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            z.writestr(entry, data, compresslevel=9)
    partial.replace(path)
    return path


def main():
    parser = argparse.ArgumentParser(description="Builds the wheels of the package mlxc.")
    parser.add_argument("platforms", nargs="*", metavar="PLATFORM", help="of " + ", ".join(PLATFORMS) + "; all if none is named")
    parser.add_argument("--version", help="in place of that of the tag: a development version, such as 0.2.0.dev1")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "out" / "wheels", help="folder to write to (out/wheels)")
    args = parser.parse_args()
    for target in args.platforms:
        if target not in PLATFORMS:
            parser.error(f"unknown platform {target}: one of {', '.join(PLATFORMS)}")
    version = args.version or tagged()
    if version is None:
        parser.error("no tag is checked out: give a development version, such as --version 0.2.0.dev1")
    if args.version and not re.fullmatch(r"[0-9]+(\.[0-9]+)*\.dev[0-9]+", args.version):
        parser.error(f"{args.version} is no development version (0.2.0.dev1); other versions are those of tags")
    if not args.version and git("status", "--porcelain"):
        parser.error(f"v{version} is checked out, but files have been changed")
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH") or git("log", "-1", "--format=%ct"))
    with tempfile.TemporaryDirectory() as tmp:
        tmp = pathlib.Path(tmp)
        pages = manual(tmp / "manual")
        for target in args.platforms or PLATFORMS:
            path = wheel(target, version, epoch, args.out, build(target, tmp), pages)
            print(hashlib.sha256(path.read_bytes()).hexdigest() + "  " + path.name, flush=True)


if __name__ == "__main__":
    sys.exit(main())
