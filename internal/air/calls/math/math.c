/*
 * The mathematics of Metal's precise functions, for every target.
 *
 * A float goes in and a float comes out; between them everything is computed in
 * double, with additions, multiplications, divisions and square roots alone. None
 * of these is fused, so a machine with fused multiply-add, one without and a GPU
 * give the same bits. The last rounding makes nearly all of the error: a double
 * carries 29 bits more than a float, and each approximation below is good to 2^-39
 * or better.
 *
 * Two functions, which kernels of models wait for, are computed in float where a float
 * is wanted: exp and rsqrt. On a GPU a chain of operations in double takes several times
 * as long. They are less exact for it, and use fused multiply-adds by their name, which
 * round once on every machine.
 *
 * There are no calls, no tables and no loops, and branches only where skipping
 * their side pays: a loop around any of these functions can become vector code.
 *
 * Denormal floats: where the surroundings flush them, they are zero before the
 * first line here and after the last. No double below is ever denormal.
 *
 * The coefficients are made by testdata/gen/air_math_coefficients.py, which states
 * the error of each polynomial. math.ll is made from this file; see doc.go.
 */

typedef unsigned short u16;
typedef unsigned int u32;
typedef int i32;
typedef unsigned long long u64;
typedef long long i64;

#define inline static inline __attribute__((always_inline))

#define INF __builtin_inf()
#define NOT_A_NUMBER __builtin_nan("")
/* Adding and subtracting this rounds a double of magnitude below 2^51 to an integer,
   to even in ties, and leaves the integer in the low bits of the sum. */
#define ROUNDER 0x1.8p52

inline u64 bits(double x) { return __builtin_bit_cast(u64, x); }
inline double from_bits(u64 x) { return __builtin_bit_cast(double, x); }
inline u32 bits_f(float x) { return __builtin_bit_cast(u32, x); }
inline float from_bits_f(u32 x) { return __builtin_bit_cast(float, x); }
inline double absolute(double x) { return from_bits(bits(x) & 0x7fffffffffffffffull); }
inline double with_sign(double x, double s) {
	return from_bits((bits(x) & 0x7fffffffffffffffull) | (bits(s) & 0x8000000000000000ull));
}
/* x*y + z, rounded once. */
inline float fused(float x, float y, float z) { return __builtin_elementwise_fma(x, y, z); }
/* Bounds; a NaN stays. */
inline double at_most(double x, double hi) { return x > hi ? hi : x; }
inline double at_least(double x, double lo) { return x < lo ? lo : x; }

/* ---- the result ---- */

/* The float nearest to 0 of the two around a double, its last bit set when the double
   lies between: what is rounded from it to a half or a bfloat is rounded as if from the
   double. */
inline float to_odd(double s) {
	float f = (float)s;
	double d = f;
	u32 b = bits_f(f);
	u32 toward = absolute(d) > absolute(s) ? b - 1 : b;
	return from_bits_f(((s == s) & (d != s)) ? toward | 1 : b);
}

/* Each function has two ends: NAME_f, rounded to a float, and NAME_h, from which a half or
   a bfloat is rounded. */
#define ONE(name) \
	float name##_f(float x) { return (float)name(x); } \
	float name##_h(float x) { return to_odd(name(x)); }
#define TWO(name) \
	float name##_f(float x, float y) { return (float)name(x, y); } \
	float name##_h(float x, float y) { return to_odd(name(x, y)); }

/* ---- exponentials ---- */

/* 2^n for the integer n that adding ROUNDER left in the low bits of k. */
inline double power(double k) { return from_bits((bits(k) << 52) + 0x3ff0000000000000ull); }

/* e^r - 1 for |r| <= ln(2)/2. */
inline double expm1_small(double r) {
	double q = 0x1.72ad458027fbcp-19;
	q = q * r + 0x1.a136bf03ec612p-16;
	q = q * r + 0x1.a019c36bc053cp-13;
	q = q * r + 0x1.6c166bde96885p-10;
	q = q * r + 0x1.111111170bc08p-7;
	q = q * r + 0x1.55555565c7e0ep-5;
	q = q * r + 0x1.5555555554f96p-3;
	q = q * r + 0x1.fffffffffe062p-2;
	return r + r * r * q;
}

/* e^x - 1 = s*(e^r - 1) + (s - 1), where s = 2^n and x = n*ln(2) + r. */
inline double expm1_in(double x) {
	double k = x * 0x1.71547652b82fep+0 + ROUNDER, n = k - ROUNDER;
	double r = (x - n * 0x1.62e42fefa2000p-1) - n * 0x1.9ef35793c7673p-41;
	double s = power(k);
	return s * expm1_small(r) + (s - 1);
}

inline double exp_in(double x) {
	double k = x * 0x1.71547652b82fep+0 + ROUNDER, n = k - ROUNDER;
	double r = (x - n * 0x1.62e42fefa2000p-1) - n * 0x1.9ef35793c7673p-41;
	double s = power(k);
	return s * expm1_small(r) + s;
}

/* 2^n. */
inline float power_f(i32 n) { return from_bits_f(((u32)n << 23) + 0x3f800000u); }

inline double exp2_in(double x) {
	double k = x + ROUNDER, n = k - ROUNDER;
	double s = power(k);
	return s * expm1_small((x - n) * 0x1.62e42fefa39efp-1) + s;
}

/* What lies outside these bounds is 0 or infinite as a float. */
inline double bound_exp2(double x) { return at_least(at_most(x, 160), -160); }

inline double exp(float x) { return exp_in(at_least(at_most(x, 110), -110)); }
float exp_h(float x) { return to_odd(exp(x)); }

/* The same in float: e^x = 2^n * e^r, where n is in the low bits of k and e^r = 1 + r + r^2*q.
   2^n is two factors: of the two, only the second can leave the range of floats. */
float exp_f(float x) {
	x = x > 89 ? 89 : x;
	x = x < -105 ? -105 : x;
	const float rounder = 0x1.8p23f;
	float k = fused(x, 0x1.715476p+0f, rounder), n = k - rounder;
	float r = fused(n, 0x1.05c610p-29f, fused(n, -0x1.62e430p-1f, x)), r2 = r * r;
	float q = fused(r2, fused(r, 0x1.a124f2p-13f, 0x1.6d4324p-10f), fused(r, 0x1.1110e0p-7f, 0x1.5554eap-5f));
	q = fused(r2, q, fused(r, 0x1.555556p-3f, 0x1.0p-1f));
	i32 whole = (i32)(bits_f(k) - bits_f(rounder)), half = whole >> 1;
	float s = power_f(half);
	return fused(fused(r2, q, r), s, s) * power_f(whole - half);
}
inline double exp2(float x) { return exp2_in(bound_exp2(x)); }
ONE(exp2)
inline double exp10(float x) {
	double b = at_least(at_most(x, 48), -48);
	double k = b * 0x1.a934f0979a371p+1 + ROUNDER, n = k - ROUNDER;
	double r = (b - n * 0x1.34413509f6000p-2) - n * 0x1.9fef311f12b36p-42;
	double s = power(k);
	return s * expm1_small(r * 0x1.26bb1bbb55516p+1) + s;
}
ONE(exp10)

/* ---- logarithms ---- */

struct binary {
	double exponent, log; /* of x = m * 2^exponent; log(m), with m from sqrt(1/2) to sqrt(2) */
};

/* For x that is positive and finite. log(m) = 2*atanh(s), s = f/(2+f), f = m-1. */
inline struct binary log_in(double x) {
	u64 i = bits(x) - 0x3fe6a09e667f3bcdull; /* sqrt(1/2) */
	u64 high = i & 0xfff0000000000000ull;
	double f = from_bits(bits(x) - high) - 1;
	double s = f / (2 + f), z = s * s;
	double q = 0x1.546b8e26e265ep-3;
	q = q * z + 0x1.7382c4e35c8aep-3;
	q = q * z + 0x1.c71fcd608be90p-3;
	q = q * z + 0x1.2492462a593e1p-2;
	q = q * z + 0x1.9999999b86f7ep-2;
	q = q * z + 0x1.55555555553b8p-1;
	struct binary b;
	b.exponent = (double)((i32)(high >> 32) >> 20);
	b.log = 2 * s + s * z * q;
	return b;
}

inline double ln_in(double x) {
	struct binary b = log_in(x);
	return b.exponent * 0x1.62e42fefa2000p-1 + (b.log + b.exponent * 0x1.9ef35793c7673p-41);
}

inline double log2_in(double x) {
	struct binary b = log_in(x);
	return b.exponent + b.log * 0x1.71547652b82fep+0;
}

/* The values at the ends: log(0) = -inf, log(inf) = inf, NaN below 0. */
inline double log_ends(double x, double l) {
	l = x == INF ? x : l;
	l = x == 0 ? -INF : l;
	return x >= 0 ? l : NOT_A_NUMBER;
}

inline double log(float x) { return log_ends(x, ln_in(x)); }
ONE(log)
inline double log2(float x) { return log_ends(x, log2_in(x)); }
ONE(log2)
inline double log10(float x) {
	struct binary b = log_in(x);
	double l = b.exponent * 0x1.34413509f6000p-2 + (b.log * 0x1.bcb7b1526e50ep-2 + b.exponent * 0x1.9fef311f12b36p-42);
	return log_ends(x, l);
}
ONE(log10)

/* log(1+u), u > -1 and finite: what 1+u rounds away comes back to first order. */
inline double log1p_in(double u) {
	double w = 1 + u;
	return ln_in(w) + (u - (w - 1)) / w;
}

/* ---- powers ---- */

/* |x|^y, where neither is NaN. */
inline double power_in(double ax, double y) {
	double l = log2_in(ax);
	l = ax == 0 ? -INF : l;
	l = ax == INF ? INF : l;
	return exp2_in(bound_exp2(y * l));
}

inline double pow(float x, float y) {
	double dy = y, ax = absolute(x);
	/* y is an integer, and odd. Beyond 2^25 all floats are even integers. */
	double by = at_least(at_most(dy, 0x1p25), -0x1p25);
	double k = by + ROUNDER;
	i32 whole = (k - ROUNDER) == by;
	i32 odd = whole & (i32)(bits(k) & 1);
	double r = power_in(ax, dy);
	r = (odd & (bits_f(x) >> 31)) ? -r : r;
	r = ((x < 0) & (ax != INF) & !whole) ? NOT_A_NUMBER : r;
	r = ((ax == 1) & (absolute(dy) == INF)) ? 1 : r;
	r = ((x != x) | (y != y)) ? NOT_A_NUMBER : r;
	return (x == 1) | (y == 0) ? 1 : r;
}
TWO(pow)

/* powr is exp2(y*log2(x)), whatever that gives at the ends: 0^0, inf^0 and 1^inf are NaN. */
inline double powr(float x, float y) {
	double r = power_in(x, y);
	r = ((x == 0) & (y == 0)) ? NOT_A_NUMBER : r;
	r = ((x == 1) & (absolute(y) == INF)) ? NOT_A_NUMBER : r;
	r = ((x == (float)INF) & (y == 0)) ? NOT_A_NUMBER : r;
	return (x >= 0) & (y == y) ? r : NOT_A_NUMBER;
}
TWO(powr)

float rsqrt_f(float x) { return 1 / __builtin_sqrtf(x); }
float rsqrt_h(float x) { return to_odd(1 / __builtin_sqrt((double)x)); }

/* ---- circular functions ---- */

/* x = n*(pi/2) + r with |r| <= pi/4; the low bits of n count. */
struct quarter {
	double r;
	u32 n;
};

inline u32 pick(u32 i, u32 a, u32 b, u32 c, u32 d, u32 e) {
	u32 v = a;
	v = i == 1 ? b : v;
	v = i == 2 ? c : v;
	v = i == 3 ? d : v;
	return i == 4 ? e : v;
}

/* |x| = m * 2^e, m an integer of 24 bits, 2^19 <= |x|. Of 2/pi only the bits matter
   that give a product below 4 and above 2^-62: 96 bits from some place on (the
   reduction of Payne and Hanek). */
inline struct quarter reduce_large(float x) {
	u32 b = bits_f(x) & 0x7fffffff;
	u64 m = (b & 0x7fffff) | 0x800000;
	u32 at = (b >> 23) - 120; /* e + 30 */
	u32 i = at >> 5, s = at & 31;
	u64 w0 = pick(i, 0, 0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0);
	u64 w1 = pick(i, 0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599);
	u64 w2 = pick(i, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041);
	u64 w3 = pick(i, 0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab);
	u64 h0 = (u32)(((w0 << 32 | w1) << s) >> 32);
	u64 h1 = (u32)(((w1 << 32 | w2) << s) >> 32);
	u64 h2 = (u32)(((w2 << 32 | w3) << s) >> 32);
	/* In units of 2^-62 quarters, modulo 4. */
	u64 p = ((m * h0) << 32) + m * h1 + ((m * h2) >> 32);
	u64 n = (p + 0x2000000000000000ull) >> 62;
	i64 f = (i64)(p - (n << 62));
	double v = (double)(i32)(f >> 32) * 0x1p32 + (double)(u32)f;
	struct quarter q;
	q.r = v * 0x1.921fb54442d18p-62;
	q.n = (u32)n;
	u32 negative = bits_f(x) >> 31;
	q.r = negative ? -q.r : q.r;
	q.n = negative ? -q.n : q.n;
	return q;
}

inline struct quarter reduce(float x) {
	double d = x, k = d * 0x1.45f306dc9c883p-1 + ROUNDER, n = k - ROUNDER;
	struct quarter q;
	/* n has at most 19 bits and the first part of pi/2 33: their product is exact. */
	q.r = (d - n * 0x1.921fb54400000p+0) - n * 0x1.0b4611a626331p-34;
	q.n = (u32)bits(k);
	if (absolute(d) >= 0x1p19)
		q = reduce_large(x);
	q.r = absolute(d) < INF ? q.r : NOT_A_NUMBER;
	return q;
}

inline double sin_small(double r) {
	double z = r * r;
	double q = -0x1.aa28204b8cc64p-26;
	q = q * z + 0x1.71d9a97cd3c34p-19;
	q = q * z + -0x1.a019fd9a9838bp-13;
	q = q * z + 0x1.1111110fd3935p-7;
	q = q * z + -0x1.555555555516ap-3;
	return r * (1 + z * q); /* of -0 it is -0 */
}

inline double cos_small(double r) {
	double z = r * r;
	double q = -0x1.25242a3a17327p-22;
	q = q * z + 0x1.a015c40ec65ecp-16;
	q = q * z + -0x1.6c16bf5495185p-10;
	q = q * z + 0x1.5555555502be6p-5;
	return (1 - 0.5 * z) + z * z * q;
}

inline double sine_of(struct quarter q) {
	double s = sin_small(q.r), c = cos_small(q.r);
	double v = q.n & 1 ? c : s;
	return q.n & 2 ? -v : v;
}

inline double tangent_of(struct quarter q) {
	double s = sin_small(q.r), c = cos_small(q.r);
	return q.n & 1 ? -c / s : s / c;
}

inline struct quarter advance(struct quarter q) {
	q.n++;
	return q;
}

inline double sin(float x) { return sine_of(reduce(x)); }
ONE(sin)
inline double cos(float x) { return sine_of(advance(reduce(x))); }
ONE(cos)
inline double tan(float x) { return tangent_of(reduce(x)); }
ONE(tan)

/* x*pi = n*(pi/2) + r. From 2^24 on floats are even integers. */
inline struct quarter reduce_pi(float x) {
	double d = x;
	d = absolute(d) < 0x1p24 ? d : with_sign(0, d);
	double k = 2 * d + ROUNDER, n = k - ROUNDER;
	struct quarter q;
	q.r = (d - 0.5 * n) * 0x1.921fb54442d18p+1;
	q.n = (u32)bits(k);
	q.r = absolute(x) < INF ? q.r : NOT_A_NUMBER;
	return q;
}

/* sinpi of an integer is 0 with the sign of the integer, cospi of a half +0, tanpi
   as their quotient, as IEEE 754 says. */
inline double sinpi(float x) {
	double v = sine_of(reduce_pi(x));
	double zero = with_sign(0, x);
	return v == 0 ? zero : v;
}
ONE(sinpi)
inline double cospi(float x) {
	double v = sine_of(advance(reduce_pi(x)));
	return v == 0 ? 0 : v;
}
ONE(cospi)
inline double tanpi(float x) {
	struct quarter q = reduce_pi(x);
	double v = tangent_of(q);
	/* n is even at integers and odd at halves; of odd integers and of 3/2, 7/2 … the
	   sign turns. */
	u64 turned = (u64)(q.n & 2) << 62;
	double zero = from_bits(bits(with_sign(0, x)) ^ turned), pole = from_bits(bits(INF) ^ turned);
	double end = q.n & 1 ? pole : zero;
	return q.r == 0 ? end : v;
}
ONE(tanpi)

/* ---- inverse circular functions ---- */

/* The angle of (x, y) from the first axis, for y >= 0, x >= 0 that are not both 0 and
   not both infinite: atan(y/x). The octant decides which quotient the polynomial
   gets; one division serves. */
inline double angle(double y, double x) {
	double lo = y > x ? x : y, hi = y > x ? y : x;
	double middle = lo > 0x1.a827999fcef32p-2 * hi ? 1 : 0; /* tan(pi/8) */
	/* atan(lo/hi) = pi/4 - atan((hi-lo)/(hi+lo)) */
	double num = middle != 0 ? hi - lo : lo, den = middle != 0 ? hi + lo : hi;
	double t = num / den, z = t * t;
	double q = 0x1.0df3d7740e89ep-5;
	q = q * z + -0x1.edbd91278e3e1p-5;
	q = q * z + 0x1.377da553e9083p-4;
	q = q * z + -0x1.7415a99ae0103p-4;
	q = q * z + 0x1.c71962df85f3dp-4;
	q = q * z + -0x1.249240d86ba87p-3;
	q = q * z + 0x1.9999998859170p-3;
	q = q * z + -0x1.5555555552605p-2;
	double a = t + t * z * q;
	a = middle != 0 ? 0x1.921fb54442d18p-1 - a : a;
	return y > x ? 0x1.921fb54442d18p+0 - a : a;
}

inline double atan(float x) { return with_sign(angle(absolute(x), 1), x); }
ONE(atan)

inline double atan2(float y, float x) {
	double ay = absolute(y), ax = absolute(x);
	double equal = (ay == ax) & ((ay == 0) | (ay == INF));
	double a = angle(equal != 0 ? 1 : ay, equal != 0 ? 1 : ax);
	a = ((ay == 0) & (ax == 0)) ? 0 : a;
	a = bits_f(x) >> 31 ? 0x1.921fb54442d18p+1 - a : a;
	a = with_sign(a, y);
	return (x != x) | (y != y) ? NOT_A_NUMBER : a;
}
TWO(atan2)

inline double leg(double x) { return __builtin_sqrt((1 - x) * (1 + x)); }

inline double asin(float x) {
	double a = absolute(x);
	double v = with_sign(angle(a, leg(a)), x);
	return a <= 1 ? v : NOT_A_NUMBER;
}
ONE(asin)
inline double acos(float x) {
	double a = absolute(x);
	double v = angle(leg(a), a);
	v = bits_f(x) >> 31 ? 0x1.921fb54442d18p+1 - v : v;
	return a <= 1 ? v : NOT_A_NUMBER;
}
ONE(acos)

/* ---- hyperbolic functions ---- */

inline double sinh(float x) {
	double e = expm1_in(at_most(absolute(x), 100));
	return with_sign(0.5 * (e + e / (e + 1)), x);
}
ONE(sinh)
inline double cosh(float x) {
	double e = exp_in(at_most(absolute(x), 100));
	return 0.5 * (e + 1 / e);
}
ONE(cosh)
inline double tanh(float x) {
	double e = expm1_in(at_most(2 * absolute(x), 100));
	return with_sign(e / (e + 2), x);
}
ONE(tanh)
inline double asinh(float x) {
	double a = absolute(x), b = at_most(a, 0x1p128);
	double v = log1p_in(b + b * b / (1 + __builtin_sqrt(b * b + 1)));
	return with_sign(a == INF ? a : v, x);
}
ONE(asinh)
inline double acosh(float x) {
	double t = at_most((double)x - 1, 0x1p128);
	double v = log1p_in(t + __builtin_sqrt(t * (t + 2)));
	v = x == (float)INF ? INF : v;
	return x >= 1 ? v : NOT_A_NUMBER;
}
ONE(acosh)
inline double atanh(float x) {
	double a = absolute(x);
	double v = 0.5 * log1p_in(2 * a / (1 - a));
	v = a == 1 ? INF : v;
	v = with_sign(v, x);
	return a <= 1 ? v : NOT_A_NUMBER;
}
ONE(atanh)

/* ---- remainders, exponents ---- */

/* Takes a multiple of y, as near as a double tells, from r: |r| ends at most a
   little above y/2. Exact while |r| < y * 2^29. */
inline double take(double r, double y, double inverse) {
	double k = r * inverse + ROUNDER;
	return r - (k - ROUNDER) * y;
}

inline double fmod(float x, float y) {
	double ax = absolute(x), ay = absolute(y);
	double by = at_most(ay, 0x1p129), bx = at_most(ax, 0x1p129);
	double inverse = 1 / by, r = bx;
	if (bx >= by * 0x1p28) {
		r = take(r, by * 0x1p252, inverse * 0x1p-252);
		r = take(r, by * 0x1p224, inverse * 0x1p-224);
		r = take(r, by * 0x1p196, inverse * 0x1p-196);
		r = take(r, by * 0x1p168, inverse * 0x1p-168);
		r = take(r, by * 0x1p140, inverse * 0x1p-140);
		r = take(r, by * 0x1p112, inverse * 0x1p-112);
		r = take(r, by * 0x1p84, inverse * 0x1p-84);
		r = take(r, by * 0x1p56, inverse * 0x1p-56);
		r = take(r, by * 0x1p28, inverse * 0x1p-28);
	}
	r = take(r, by, inverse);
	r = r < 0 ? r + by : r;
	r = r >= by ? r - by : r;
	r = ax < ay ? ax : r;
	r = with_sign(r, x);
	return (ax < INF) & (ay > 0) ? r : NOT_A_NUMBER;
}
TWO(fmod)

inline double ldexp(float x, i32 n) {
	n = n > 300 ? 300 : n;
	n = n < -300 ? -300 : n;
	return (double)x * from_bits((u64)(i64)(n + 1023) << 52);
}
float ldexp_f(float x, i32 n) { return (float)ldexp(x, n); }
float ldexp_h(float x, i32 n) { return to_odd(ldexp(x, n)); }

/* The exponent e of x = m * 2^e with 1 <= |m| < 2; of a denormal too. */
inline i32 exponent_of(u32 b) {
	u32 m = b & 0x7fffff;
	i32 e = (i32)(b >> 23 & 0xff);
	return e ? e - 127 : -118 - (i32)__builtin_clzg(m, 32);
}

i32 ilogb(float x) {
	u32 b = bits_f(x) & 0x7fffffff;
	i32 e = exponent_of(b);
	e = b == 0 ? (i32)0x80000000 : e;
	e = b == 0x7f800000 ? 0x7fffffff : e;
	return b > 0x7f800000 ? (i32)0x80000000 : e;
}

/* Both halves of frexp: 1/2 <= |fraction| < 1. What has no exponent stays, with 0. */
inline i32 no_exponent(u32 b) { return ((b << 1) == 0) | ((b << 1) >= 0xff000000u); }
i32 frexp_exponent(float x) {
	u32 b = bits_f(x);
	return (exponent_of(b & 0x7fffffff) + 1) & ~-no_exponent(b);
}
float frexp_fraction(float x) {
	u32 b = bits_f(x), m = b & 0x7fffff;
	u32 up = b >> 23 & 0xff ? 0 : (u32)__builtin_clzg(m, 32) - 8;
	u32 v = (b & 0x80000000) | 0x3f000000 | ((m << up) & 0x7fffff);
	u32 keep = (u32)-no_exponent(b);
	return from_bits_f((b & keep) | (v & ~keep));
}

/* The next value from x towards y, of a type whose sign is the bit `sign` and whose
   infinity is `inf`. */
inline u32 next(u32 x, u32 y, u32 sign, u32 inf) {
	u32 ax = x & (sign - 1), ay = y & (sign - 1);
	/* In order: below zero the more bits the less. */
	i32 ox = x & sign ? -(i32)ax : (i32)ax, oy = y & sign ? -(i32)ay : (i32)ay;
	u32 away = ox < oy ? (x & sign ? x - 1 : x + 1) : (x & sign ? x + 1 : x - 1);
	u32 r = ax == 0 ? ((y & sign) | 1) : away;
	r = ox == oy ? y : r;
	r = ay > inf ? y : r;
	return ax > inf ? x : r;
}
u32 nextafter_f32(u32 x, u32 y) { return next(x, y, 0x80000000, 0x7f800000); }
u16 nextafter_f16(u16 x, u16 y) { return (u16)next(x, y, 0x8000, 0x7c00); }
u16 nextafter_bf16(u16 x, u16 y) { return (u16)next(x, y, 0x8000, 0x7f80); }

/* ---- what rounds once ---- */

/* a*b + c, odd in the last bit if that had to be rounded. The product is exact. */
inline double fma_in(float a, float b, float c) {
	double p = (double)a * (double)b, d = c, s = p + d;
	double t = s - p, e = (p - (s - t)) + (d - t); /* s + e = p + d exactly */
	/* Towards zero where the sum was rounded away from it, odd where it was rounded. */
	u64 v = bits(s);
	i32 finite = absolute(s) < INF, rounded = finite & (e != 0);
	u64 less = (bits(e) ^ v) >> 63; /* e points back towards zero */
	return from_bits(rounded ? (v - less) | 1 : v);
}
float fma_f(float a, float b, float c) { return (float)fma_in(a, b, c); }
float fma_h(float a, float b, float c) { return to_odd(fma_in(a, b, c)); }

/* ---- for machines without instructions for halves ---- */

float odd_of_double(double x) { return to_odd(x); }
float float_of_half(u16 h) {
	u32 m = h & 0x7fff;
	/* Denormals are integers in units of 2^-24. */
	u32 v = m < 0x400 ? bits_f((float)(i32)m * 0x1p-24f) : (m << 13) + (m < 0x7c00 ? 112u << 23 : 224u << 23);
	return from_bits_f(v | (u32)(h & 0x8000) << 16);
}
u16 half_of_float(float x) {
	u32 b = bits_f(x), m = b & 0x7fffffff;
	u32 normal = (m - (112u << 23) + 0xfff + (m >> 13 & 1)) >> 13;
	/* In a float with the unit 2^-24 adding rounds as a half that small is rounded. */
	u32 small = bits_f(from_bits_f(m) + 0.5f) - 0x3f000000;
	u32 v = m < (113u << 23) ? small : normal;
	v = m >= 0x477ff000 ? 0x7c00 : v; /* 65520 */
	v = m > 0x7f800000 ? 0x7e00 | (m >> 13 & 0x3ff) : v;
	return (u16)(v | (b >> 16 & 0x8000));
}

/* To bfloat, to nearest, ties to even, of a double that is 0 or has a magnitude from 1
   to 2^64. */
inline u16 bf16_of(double x) {
	u64 b = bits(x * 0x1p-896); /* the exponent as a bfloat has it */
	u64 r = (b + 0xfffffffffffull + (b >> 45 & 1)) >> 45;
	return (u16)((r & 0x7fff) | (b >> 63 << 15));
}
u16 bf16_of_i32(i32 x) { return bf16_of(x); }
u16 bf16_of_u32(u32 x) { return bf16_of(x); }
/* What does not fit a double loses its low bits, of which one remembers. */
u16 bf16_of_i64(i64 x) {
	u64 u = (u64)x, low = u & 0xfff;
	u64 cut = (u & ~0xfffull) | (low ? 0x800 : 0);
	i32 fits = u + (1ull << 52) < (1ull << 53);
	return bf16_of((double)(i64)(fits ? u : cut));
}
u16 bf16_of_u64(u64 x) {
	u64 low = x & 0xfff;
	u64 cut = (x & ~0xfffull) | (low ? 0x800 : 0);
	return bf16_of((double)(x < (1ull << 53) ? x : cut));
}

/* ---- colours ---- */

inline double linear_of_srgb(float x) {
	double d = x, curve = power_in((d + 0.055) * (1 / 1.055), 2.4), line = d * (1 / 12.92);
	return d <= 0.04045 ? line : curve;
}
ONE(linear_of_srgb)
inline double srgb_of_linear(float x) {
	double d = x, curve = 1.055 * power_in(d, 1 / 2.4) - 0.055, line = d * 12.92;
	return d <= 0.0031308 ? line : curve;
}
ONE(srgb_of_linear)
