"""The polynomials of internal/air/calls/math/math.c, with the greatest relative error of each."""
import numpy as np
from mpmath import atan, atanh, chebyfit, cos, exp, log, mp, mpf, pi, polyval, sin, sqrt

mp.prec = 320


def fit(name, f, at_zero, lo, hi, n, weight, of=float):
    """A polynomial of n terms near f; weight makes its error one relative to the function."""
    g = lambda z: f(z) if abs(z) > mpf(10) ** -20 else at_zero
    c = [float(of(float(x))) for x in chebyfit(g, [lo, hi], n)]
    points = [lo + (hi - lo) * mpf(i) / 2000 for i in range(2001)]
    worst = max(abs((polyval([mpf(x) for x in c], z) - g(z)) * weight(z)) for z in points)
    print(f"{name}: 2^{float(mp.log(worst, 2)):.1f}")
    for x in c:
        print("   ", x.hex())


r = log(2) / 2 * mpf("1.0001")
fit("expm1_small", lambda x: (exp(x) - 1 - x) / x**2, mpf(1) / 2, -r, r, 8, lambda x: x)
s = (sqrt(mpf(2)) - 1) / (sqrt(mpf(2)) + 1) * mpf("1.0001")
fit("log_in", lambda z: (2 * atanh(sqrt(z)) - 2 * sqrt(z)) / sqrt(z) ** 3, mpf(2) / 3, mpf(0), s**2, 6, lambda z: z / 2)
q = pi / 4 * mpf("1.0001")
fit("sin_small", lambda z: (sin(sqrt(z)) - sqrt(z)) / sqrt(z) ** 3, -mpf(1) / 6, mpf(0), q**2, 5, lambda z: z)
fit("cos_small", lambda z: (cos(sqrt(z)) - 1 + z / 2) / z**2, mpf(1) / 24, mpf(0), q**2, 4, lambda z: z * z / cos(sqrt(z)))
t = (sqrt(mpf(2)) - 1) * mpf("1.0001")
fit("angle", lambda z: (atan(sqrt(z)) - sqrt(z)) / sqrt(z) ** 3, -mpf(1) / 3, mpf(0), t**2, 8, lambda z: z)

# Of exp_f, whose coefficients are floats.
fit("exp_f", lambda x: (exp(x) - 1 - x) / x**2, mpf(1) / 2, -r, r, 6, lambda x: x**2 / exp(x), np.float32)
