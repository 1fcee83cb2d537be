"""The coefficients of erf in msl/activation.metal, and its error in f32.

    python testdata/gen/erf.py

fits P and Q at Chebyshev points, prints them, lowest power first, and the worst
error of the kernel's arithmetic over a dense grid, in units in the last place.
Metal has no erf; MLX's own is not copied. Versions: requirements.txt.
"""

from math import erf, erfc, log, pi, sqrt

import numpy as np

F32 = np.float32
SPLIT, END = 0.95, 4.0


def fit(f, lo, hi, degree, weight):
    n = 400
    x = np.cos(pi * (np.arange(n) + 0.5) / n) * (hi - lo) / 2 + (lo + hi) / 2
    c = np.polynomial.chebyshev.Chebyshev.fit(x, [f(v) for v in x], degree, w=[weight(v) for v in x], domain=[lo, hi])
    return c.convert(kind=np.polynomial.Polynomial).coef.astype(F32)


def horner(c, x):
    r = np.full_like(x, c[-1])
    for k in c[-2::-1]:
        r = (r * x).astype(F32) + k
    return r


# erf(x) = x·P(x²); erfc(x) = exp(Q(x)), an error of which counts as erfc/erf does.
P = fit(lambda s: erf(sqrt(s)) / sqrt(s), 0, SPLIT**2, 6, lambda s: 1)
Q = fit(lambda x: log(erfc(x)), SPLIT, END, 8, lambda x: erfc(x) / erf(x) + 1e-9)


def kernel(x, exp_ulps):
    """What the kernel computes, with an exp that is off by so many ulp."""
    small = x * horner(P, x * x)
    e = np.exp(horner(Q, np.minimum(x, F32(END))).astype(np.float64)).astype(F32)
    e += (exp_ulps * np.spacing(e)).astype(F32)
    return np.where(x < SPLIT, small, np.where(x < END, F32(1) - e, F32(1)))


def main():
    print("P", [float(c) for c in P])
    print("Q", [float(c) for c in Q])
    x = np.concatenate([np.linspace(0, 5, 400001), 10.0 ** np.linspace(-37, 0, 20001)]).astype(F32)
    want = np.array([erf(float(v)) for v in x])
    for off in (0, -4, 4):
        error = np.abs(kernel(x, off) - want) / np.spacing(want.astype(F32)).astype(np.float64)
        print(f"exp off by {off} ulp: erf within {error.max():.2f} ulp, worst at {x[error.argmax()]}")


if __name__ == "__main__":
    main()
