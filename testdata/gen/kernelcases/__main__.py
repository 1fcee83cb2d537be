"""Writes testdata/kernelcases: python testdata/gen/kernelcases [GROUP …]"""
import importlib
import sys

MODULES = ("elementwise", "reductions", "norms", "matmul", "attention", "quantized", "conv", "fft")
if __name__ == "__main__":
    chosen = sys.argv[1:]
    for m in MODULES:
        for make in importlib.import_module(m).GROUPS:
            if not chosen or make.__name__ in chosen:
                make().write("testdata/kernelcases")
