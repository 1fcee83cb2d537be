"""Values of Metal's mathematical functions: air_math.py OUT.json.  See README.md beside it."""
import base64, json, math, multiprocessing, struct, sys, zlib
import numpy as np
import mpmath
from mpmath import mp, mpf

mp.prec = 160
np.seterr(all="ignore")
F = np.float64


def pi_turns(kind):
    """sinPi, cosPi and tanPi of IEEE 754-2019, 9.2.1, where they are not mpmath's values."""
    def f(x):
        if math.isnan(x) or math.isinf(x):
            return math.nan
        halves = mpf(x) * 2
        if halves != mpmath.floor(halves):
            return None
        n = int(halves)  # x = n/2
        if kind == "sin":
            return math.copysign(0.0, x) if n % 2 == 0 else (1.0 if n % 4 == 1 else -1.0)
        if kind == "cos":
            return 0.0 if n % 2 else (1.0 if n % 4 == 0 else -1.0)
        if n % 2:
            return math.inf if n % 4 == 1 else -math.inf
        return math.copysign(0.0, x) if n % 4 == 0 else -math.copysign(0.0, x)
    return f


def special(ufunc):
    """What NumPy says of zeros, infinities and NaNs, and where it says one of these."""
    def f(*a):
        r = float(ufunc(*[F(v) for v in a]))
        if math.isnan(r) or math.isinf(r) or r == 0 or any(v == 0 or math.isinf(v) or math.isnan(v) for v in a):
            return r
        return None
    return f


def big_fmod(x, y):
    # C's remainder has the sign of x.
    with mp.workprec(400):
        r = mpmath.fmod(abs(mpf(x)), abs(mpf(y)))
        return -r if x < 0 else r


def c_pow(x, y):
    # For one exponent of 1/2 NumPy takes the square root, whose values at -0 and -inf are others.
    return np.power(np.array([x, x]), np.array([y, 3.0]))[0]


# The function of mpmath, what decides special arguments, and ranges that matter.
ONE = {
    "acos": (mpmath.acos, special(np.arccos), (-1, 1)),
    "acosh": (mpmath.acosh, special(np.arccosh), (1, 3)),
    "asin": (mpmath.asin, special(np.arcsin), (-1, 1)),
    "asinh": (mpmath.asinh, special(np.arcsinh), (-3, 3)),
    "atan": (mpmath.atan, special(np.arctan), (-3, 3)),
    "atanh": (mpmath.atanh, special(np.arctanh), (-1, 1)),
    "cos": (mpmath.cos, special(np.cos), (-100, 100)),
    "cosh": (mpmath.cosh, special(np.cosh), (-90, 90)),
    "cospi": (mpmath.cospi, pi_turns("cos"), (-5, 5)),
    "exp": (mpmath.exp, special(np.exp), (-105, 90)),
    "exp10": (lambda x: mpf(10) ** x, special(lambda x: np.power(F(10), x)), (-46, 39)),
    "exp2": (lambda x: mpf(2) ** x, special(np.exp2), (-151, 129)),
    "log": (mpmath.log, special(np.log), (0.5, 2)),
    "log10": (mpmath.log10, special(np.log10), (0.5, 2)),
    "log2": (lambda x: mpmath.log(x, 2), special(np.log2), (0.5, 2)),
    "rsqrt": (lambda x: 1 / mpmath.sqrt(x), special(lambda x: F(1) / np.sqrt(x)), (0, 10)),
    "sin": (mpmath.sin, special(np.sin), (-100, 100)),
    "sinh": (mpmath.sinh, special(np.sinh), (-90, 90)),
    "sinpi": (mpmath.sinpi, pi_turns("sin"), (-5, 5)),
    "sqrt": (mpmath.sqrt, special(np.sqrt), (0, 10)),
    "tan": (mpmath.tan, special(np.tan), (-100, 100)),
    "tanh": (mpmath.tanh, special(np.tanh), (-10, 10)),
    "tanpi": (lambda x: mpmath.sinpi(x) / mpmath.cospi(x), pi_turns("tan"), (-5, 5)),
}
TWO = {
    "atan2": (mpmath.atan2, special(np.arctan2), (-3, 3)),
    "fmod": (big_fmod, special(np.fmod), (-100, 100)),
    "pow": (mpmath.power, special(c_pow), (0, 30)),
    # IEEE's powr is what the logarithm says, at the ends too.
    "powr": (mpmath.power, special(lambda x, y: np.exp2(y * np.log2(x))), (0, 30)),
}


def value(f, ends, args):
    """A float or an mpf."""
    r = ends(*args)
    if r is not None:
        return r
    if f is mpmath.power and args[0] < 0:  # y is an integer, or NumPy had said NaN
        r = mpmath.power(-mpf(args[0]), mpf(args[1]))
        return -r if int(args[1]) % 2 else r
    with mp.workprec(160 + max(0, 2 * max(abs(math.frexp(a)[1]) for a in args))):
        return f(*[mpf(a) for a in args])


def nearest(v, digits, least, greatest):
    """v rounded to a binary format: digits of the significand, least positive value, and the
    greatest value, as a float; to nearest, ties to even."""
    if isinstance(v, float):
        if v == 0 or math.isinf(v) or math.isnan(v):
            return v
        v = mpf(v)
    sign = -1.0 if v < 0 else 1.0
    a = abs(v)
    if a == 0:
        return 0.0
    e = mpmath.frexp(a)[1] - 1
    unit = max(mpf(2) ** (e - digits + 1), mpf(least))
    q = a / unit
    k = int(mpmath.floor(q))
    d = q - k
    if d > mpf(0.5) or d == mpf(0.5) and k & 1:
        k += 1
    r = k * unit
    return sign * (math.inf if r > greatest else float(r))


HALF = (11, 2.0 ** -24, 65504.0)
BFLOAT = (8, 2.0 ** -133, (2 - 2.0 ** -7) * 2.0 ** 127)


def half_bits(v):
    return 0x7e00 if math.isnan(v) else int(np.float16(v).view(np.uint16))


def bfloat_bits(v):
    return 0x7fc0 if math.isnan(v) else int(np.float32(v).view(np.uint32)) >> 16


ALL = np.arange(65536, dtype=np.uint32)
HALVES = [float(v) for v in ALL.astype(np.uint16).view(np.float16)]
BFLOATS = [float(v) for v in (ALL << 16).view(np.float32)]
PARTNER = [int(i) * 40503 + 12345 & 0xffff for i in ALL]  # the second argument beside the i-th

SPECIAL = [0.0, -0.0, math.inf, -math.inf, math.nan, 1.0, -1.0, 0.5, -0.5, 1.5, 2.0, -2.0, 3.0, -3.0, 1e-45, -1e-45,
           2.0 ** -126, -2.0 ** -126, 2.0 ** -126 * (1 - 2.0 ** -23), 1 - 2.0 ** -24, 1 + 2.0 ** -23, 2.0 ** -24, 2.0 ** -12, 3.4028234663852886e38,
           -3.4028234663852886e38, 16777216.0, 8388607.5, 4194303.25, 1e10, -1e10, 88.72284, -87.33655, -103.97208, 128.0, -149.0, -150.0, 1.5707964,
           3.1415927, 6.2831855, 0.7853982, 2.0 ** 19, 2.0 ** 19 * 1.5, 16367173 * 2.0 ** 72, 5.02e35]


def arguments(lo, hi):
    x = [np.array(SPECIAL, np.float32)]
    x.append(rng.integers(0, 2 ** 32, 900, dtype=np.uint32).view(np.float32))  # all exponents
    x.append(rng.uniform(lo, hi, 700).astype(np.float32))
    x.append((np.float32(1) + rng.uniform(-1e-3, 1e-3, 100).astype(np.float32)))
    x.append((rng.integers(1, 10 ** 6, 100) * (math.pi / 2)).astype(np.float32))  # near the zeros
    return np.concatenate(x).astype(np.float32)


def pairs(name, lo, hi):
    s = np.array(SPECIAL[:34], np.float32)
    x = [np.repeat(s, len(s)), rng.integers(0, 2 ** 32, 900, dtype=np.uint32).view(np.float32), rng.uniform(lo, hi, 900).astype(np.float32)]
    y = [np.tile(s, len(s)), rng.integers(0, 2 ** 32, 900, dtype=np.uint32).view(np.float32), rng.uniform(-25, 25, 900).astype(np.float32)]
    if name in ("pow", "powr"):
        x.append((1 + rng.uniform(-1e-4, 1e-4, 400)).astype(np.float32))
        y.append(rng.uniform(-8e5, 8e5, 400).astype(np.float32))
        x.append(rng.uniform(-20, 20, 200).astype(np.float32))
        y.append(rng.integers(-20, 20, 200).astype(np.float32))
    return np.concatenate(x).astype(np.float32), np.concatenate(y).astype(np.float32)


def b64(a):
    return base64.b64encode(a.tobytes()).decode()


def sums(bits):
    """CRC-32 of each 256 results, as little-endian 16 bits; every NaN is the same."""
    raw = struct.pack("<65536H", *bits)
    return [zlib.crc32(raw[i:i + 512]) for i in range(0, len(raw), 512)]


def compute(name):
    two = name in TWO
    f, ends, (lo, hi) = (TWO if two else ONE)[name]
    global rng
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    args = pairs(name, lo, hi) if two else (arguments(lo, hi),)
    want = [float(value(f, ends, [float(a) for a in row])) for row in zip(*args)]
    entry = {"args": [b64(a) for a in args], "want": b64(np.array(want, np.float64))}
    for kind, values, form, bits in (("half", HALVES, HALF, half_bits), ("bfloat", BFLOATS, BFLOAT, bfloat_bits)):
        rows = [(values[i], values[PARTNER[i]]) if two else (values[i],) for i in range(65536)]
        entry[kind] = sums([bits(nearest(value(f, ends, r), *form)) for r in rows])
    print(name, len(want), file=sys.stderr, flush=True)
    return entry


def main(out):
    names = sorted(ONE | TWO)
    with multiprocessing.Pool() as pool:
        functions = dict(zip(names, pool.map(compute, names, chunksize=1)))
    with open(out, "w") as o:
        json.dump({"oracle": f"mpmath {mpmath.__version__}, NumPy {np.__version__}", "functions": functions}, o, indent=1)
        o.write("\n")


if __name__ == "__main__":
    main(sys.argv[1])
