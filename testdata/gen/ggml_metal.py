"""Dispatches of ggml's Metal kernels, with the results that ggml's CPU back end gives.

    python testdata/gen/ggml_metal.py [OUT]      (OUT: testdata/ggml)

writes OUT/cases.json and OUT/cases.bin.gz, in the form of internal/testing/kernelcases. The programs
beside this script record what ggml's Metal back end dispatches on a device that only writes
down, and compute the same graphs on the CPU, of ggml 0.13.1: its sources are those that
pywhispercpp's source distribution carries, its CPU back end is the one in pywhispercpp's wheel for
x86-64. Needs Linux on x86-64, pip, and g++ 11 or later (or CXX).
"""

import gzip
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import zipfile

HERE = pathlib.Path(__file__).parent / "ggml_metal"
SDIST = "pywhispercpp==1.5.1 --hash=sha256:5df897e5dd9d9f16804fc937bd85b9f5880a0b29a55f8843585e0e03d76195e5"
WHEEL = "pywhispercpp==1.5.1 --hash=sha256:a70839d9a1f569e1e5424f27ed01a32133d658beae4cd1459eb39de1e0483bba"


def download(work, requirement, *args):
    (work / "requirement.txt").write_text(requirement + "\n")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--no-deps", "--require-hashes"]
    subprocess.run([*pip, "--dest", work, "--requirement", work / "requirement.txt", *args], check=True)


def main(out):
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        download(work, SDIST, "--no-binary", "pywhispercpp")
        download(work, WHEEL, "--only-binary", ":all:", "--platform", "manylinux_2_28_x86_64", "--implementation", "cp", "--python-version", "3.11")
        [sdist], [wheel] = work.glob("*.tar.gz"), work.glob("*.whl")
        with tarfile.open(sdist) as f:
            f.extractall(work, filter="data")
        with zipfile.ZipFile(wheel) as f:
            f.extractall(work / "wheel")
        source = work / sdist.name.removesuffix(".tar.gz") / "whisper.cpp" / "ggml"
        metal = source / "src" / "ggml-metal"
        (work / "ops.cpp").write_text(f'#include "padding.h"\n#include "{metal / "ggml-metal-ops.cpp"}"\n')
        files = [work / "ops.cpp", metal / "ggml-metal-device.cpp", metal / "ggml-metal-common.cpp", *sorted(HERE.glob("*.cpp"))]
        include = [f"-I{d}" for d in (source / "include", source / "src", metal, HERE)]
        libraries = [f"-L{work / 'wheel'}", "-lggml-base", "-lggml-cpu", f"-Wl,-rpath,{work / 'wheel'}"]
        subprocess.run([os.environ.get("CXX", "g++"), "-std=c++17", "-O1", *include, "-o", work / "cases", *files, *libraries], check=True)
        subprocess.run([work / "cases", out / "cases.json", work / "cases.bin"], check=True)
        (out / "cases.bin.gz").write_bytes(gzip.compress((work / "cases.bin").read_bytes(), 9, mtime=0))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "testdata/ggml"))
