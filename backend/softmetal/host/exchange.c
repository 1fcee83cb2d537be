// Operations that the threads of a simdgroup execute together at a site. The threads' values of one operand lie in
// struct exchange, a stride of the site apart; active is the mask of the threads that wait at the site.
#include "executor.h"
#include <math.h>
#include <string.h>

static float of_bf16(uint16_t u) {
	uint32_t w = (uint32_t)u << 16;
	float f;
	memcpy(&f, &w, 4);
	return f;
}

static uint16_t to_bf16(float f) {
	uint32_t u;
	memcpy(&u, &f, 4);
	if ((u & 0x7fffffff) > 0x7f800000)
		return (uint16_t)(u >> 16 | 0x40);
	return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

static const uint8_t element_bytes[] = {
	[F32] = 4, [F16] = 2, [BF16] = 2, [S8] = 1, [S16] = 2, [S32] = 4, [S64] = 8, [U8] = 1, [U16] = 2, [U32] = 4, [U64] = 8,
};

// Elements are computed as float or as 64-bit integers, and rounded to their type after each operation.
static float load_float(int element, const uint8_t *p) {
	float f;
	uint16_t u;
	_Float16 h;
	switch (element) {
	case F32:
		memcpy(&f, p, 4);
		return f;
	case F16:
		memcpy(&h, p, 2);
		return (float)h;
	default:
		memcpy(&u, p, 2);
		return of_bf16(u);
	}
}

static void store_float(int element, uint8_t *p, float f) {
	uint16_t u;
	_Float16 h;
	switch (element) {
	case F32:
		memcpy(p, &f, 4);
		return;
	case F16:
		h = (_Float16)f;
		memcpy(p, &h, 2);
		return;
	default:
		u = to_bf16(f);
		memcpy(p, &u, 2);
	}
}

static float round_float(int element, float f) {
	if (element == F16)
		return (float)(_Float16)f;
	if (element == BF16)
		return of_bf16(to_bf16(f));
	return f;
}

static int is_signed(int element) { return element >= S8 && element <= S64; }

static uint64_t load_integer(int element, const uint8_t *p) {
	uint64_t u = 0;
	int bits = 8 * element_bytes[element];
	memcpy(&u, p, element_bytes[element]);
	if (is_signed(element) && bits < 64)
		u = (uint64_t)((int64_t)(u << (64 - bits)) >> (64 - bits));
	return u;
}

static uint64_t round_integer(int element, uint64_t u) {
	int bits = 8 * element_bytes[element];
	if (bits == 64)
		return u;
	if (is_signed(element))
		return (uint64_t)((int64_t)(u << (64 - bits)) >> (64 - bits));
	return u & ((1ull << bits) - 1);
}

static float combine_float(int operation, float a, float b) {
	switch (operation) {
	case SUM:
		return a + b;
	case PRODUCT:
		return a * b;
	case MIN:
		return fminf(a, b);
	default:
		return fmaxf(a, b);
	}
}

static uint64_t combine_integer(int operation, int sign, uint64_t a, uint64_t b) {
	switch (operation) {
	case SUM:
		return a + b;
	case PRODUCT:
		return a * b;
	case MIN:
		return sign ? ((int64_t)a < (int64_t)b ? a : b) : (a < b ? a : b);
	case MAX:
		return sign ? ((int64_t)a > (int64_t)b ? a : b) : (a > b ? a : b);
	case AND:
		return a & b;
	case OR:
		return a | b;
	default:
		return a ^ b;
	}
}

// reduce gives each active thread the result over the active threads of its group of width threads. It combines pairs
// that lie width/2 apart, then width/4 and so on, as in a butterfly, in which every thread gets the same bits.
static void reduce(const struct site *s, struct exchange *x, uint32_t active, int count, int part) {
	int size = element_bytes[s->element], stride = (int)s->stride, floating = s->element <= BF16;
	uint8_t *at = x->a + size * part;
	for (int base = 0; base < count; base += s->width) {
		float f[SIMD_WIDTH];
		uint64_t u[SIMD_WIDTH];
		int valid[SIMD_WIDTH];
		for (int i = 0; i < s->width; i++) {
			valid[i] = base + i < count && (active >> (base + i) & 1);
			if (!valid[i])
				continue;
			if (floating)
				f[i] = load_float(s->element, at + stride * (base + i));
			else
				u[i] = load_integer(s->element, at + stride * (base + i));
		}
		for (int k = s->width / 2; k > 0; k /= 2)
			for (int i = 0; i < k; i++) {
				if (!valid[i + k])
					continue;
				if (!valid[i]) {
					valid[i] = 1, f[i] = f[i + k], u[i] = u[i + k];
					continue;
				}
				if (floating)
					f[i] = round_float(s->element, combine_float(s->operation, f[i], f[i + k]));
				else
					u[i] = round_integer(s->element, combine_integer(s->operation, is_signed(s->element), u[i], u[i + k]));
			}
		if (!valid[0])
			continue;
		for (int i = base; i < count && i < base + s->width; i++) {
			if (!(active >> i & 1))
				continue;
			if (floating)
				store_float(s->element, at + stride * i, f[0]);
			else
				memcpy(at + stride * i, &u[0], size);
		}
	}
}

// reduce_all is reduce for the usual case: 32 floats, with all threads active.
static void reduce_all(const struct site *s, uint8_t *at) {
	float t[SIMD_WIDTH];
	if (s->stride == sizeof *t)
		memcpy(t, at, sizeof t);
	else
		for (int i = 0; i < SIMD_WIDTH; i++)
			memcpy(t + i, at + s->stride * i, sizeof *t);
	switch (s->operation) {
	case SUM:
		for (int k = 16; k > 0; k /= 2)
			for (int i = 0; i < k; i++)
				t[i] += t[i + k];
		break;
	case MAX:
		for (int k = 16; k > 0; k /= 2)
			for (int i = 0; i < k; i++)
				t[i] = fmaxf(t[i], t[i + k]);
		break;
	default:
		for (int k = 16; k > 0; k /= 2)
			for (int i = 0; i < k; i++)
				t[i] = combine_float(s->operation, t[i], t[i + k]);
	}
	if (s->stride == sizeof *t)
		for (int i = 0; i < SIMD_WIDTH; i++)
			memcpy(at + sizeof *t * i, t, sizeof *t);
	else
		for (int i = 0; i < SIMD_WIDTH; i++)
			memcpy(at + s->stride * i, t, sizeof *t);
}

// scan computes a prefix sum or product over the active threads, in the order of lanes.
static void scan(const struct site *s, struct exchange *x, uint32_t active, int count, int part) {
	int size = element_bytes[s->element], stride = (int)s->stride, floating = s->element <= BF16;
	int operation = s->operation == PREFIX_INCLUSIVE_SUM || s->operation == PREFIX_EXCLUSIVE_SUM ? SUM : PRODUCT;
	int exclusive = s->operation == PREFIX_EXCLUSIVE_SUM || s->operation == PREFIX_EXCLUSIVE_PRODUCT;
	float f = operation == PRODUCT;
	uint64_t u = operation == PRODUCT;
	for (int i = 0; i < count; i++) {
		uint8_t *at = x->a + size * part + stride * i;
		if (i % s->width == 0)
			f = u = operation == PRODUCT;
		if (!(active >> i & 1))
			continue;
		if (floating) {
			float next = round_float(s->element, combine_float(operation, f, load_float(s->element, at)));
			store_float(s->element, at, exclusive ? f : next);
			f = next;
		} else {
			uint64_t next = round_integer(s->element, combine_integer(operation, is_signed(s->element), u, load_integer(s->element, at)));
			uint64_t got = exclusive ? u : next;
			memcpy(at, &got, size);
			u = next;
		}
	}
}

// A lane that shuffles up or down from beyond the first or last lane keeps its own value, unless the operation is
// shuffle-and-fill.
int shuffle_source(const struct site *s, const struct exchange *x, uint32_t active, int i, int *filling) {
	int width = s->width, base = i / width * width, lane = i - base, to = lane;
	int by = (int)(x->argument[i] & 0xffff), modulus = (int)(x->argument[i] >> 16);
	*filling = 0;
	switch (s->operation) {
	case SHUFFLE:
		to = by;
		break;
	case SHUFFLE_XOR:
		to = lane ^ by;
		break;
	case SHUFFLE_UP:
		to = lane - by >= 0 ? lane - by : lane;
		break;
	case SHUFFLE_DOWN:
		to = lane + by < width ? lane + by : lane;
		break;
	case SHUFFLE_ROTATE_UP:
		to = (lane - by) & (width - 1);
		break;
	case SHUFFLE_ROTATE_DOWN:
		to = (lane + by) & (width - 1);
		break;
	case SHUFFLE_AND_FILL_UP:
	case SHUFFLE_AND_FILL_DOWN: {
		// Values shift within pieces of modulus lanes: a lane that reaches beyond its piece takes the filling value
		// of the lane at the piece's other end.
		if (modulus <= 0 || modulus > width)
			modulus = width;
		int piece = lane / modulus * modulus;
		to = s->operation == SHUFFLE_AND_FILL_UP ? lane - by : lane + by;
		if (to < piece || to >= piece + modulus) {
			*filling = 1;
			to += s->operation == SHUFFLE_AND_FILL_UP ? modulus : -modulus;
		}
		to &= width - 1;
		break;
	}
	case BROADCAST_FIRST: {
		uint32_t here = active >> base & (width == 32 ? 0xffffffffu : (1u << width) - 1);
		to = here ? __builtin_ctz(here) : lane;
		break;
	}
	}
	return to >= width ? -1 - to : base + to;
}

// shuffle gives each active thread the value of another lane.
static void shuffle(const struct site *s, struct exchange *x, uint32_t active, int count) {
	int bytes = element_bytes[s->element] * s->count, width = s->width, stride = (int)s->stride;
	uint8_t from[SIMD_WIDTH * 32];
	memcpy(from, x->a, (size_t)stride * SIMD_WIDTH);
	for (int i = 0; i < count; i++) {
		if (!(active >> i & 1))
			continue;
		int filling, source = shuffle_source(s, x, active, i, &filling);
		if (source < 0) // undefined in Metal, so any lane will do
			source = i / width * width + ((-1 - source) & (width - 1));
		memcpy(x->a + stride * i, (filling ? x->b : from) + stride * source, bytes);
	}
}

// vote evaluates a vote or a ballot of the active threads.
static void vote(const struct site *s, struct exchange *x, uint32_t active, int count) {
	for (int base = 0; base < count; base += s->width) {
		uint32_t here = active >> base & (s->width == 32 ? 0xffffffffu : (1u << s->width) - 1), yes = 0;
		for (int i = 0; i < s->width && base + i < count; i++)
			yes |= (uint32_t)((here >> i & 1) && x->a[s->stride * (base + i)]) << i;
		for (int i = 0; i < s->width && base + i < count; i++) {
			uint64_t got = 0;
			switch (s->operation) {
			case ANY:
				got = yes != 0;
				break;
			case ALL:
				got = yes == here;
				break;
			case BALLOT:
				got = yes;
				break;
			case ACTIVE_THREADS:
				got = here;
				break;
			case IS_FIRST:
				got = here && __builtin_ctz(here) == i;
				break;
			}
			if (here >> i & 1)
				memcpy(x->b + s->stride * (base + i), &got, 8);
		}
	}
}

// multiply_accumulate computes c += a·b of 8 by 8 matrices with fused multiply-adds in the order of the inner index.
// Lane l holds two elements: those of row (l>>2 & 4) | (l>>1 & 3) in column 2·((l>>2 & 2) | (l & 1)) and the next.
static void multiply_accumulate(const struct site *s, struct exchange *x) {
	float a[8][8], b[8][8], c[8][8];
	size_t stride = s->stride / 4;
	const float *va = (const float *)x->a, *vb = (const float *)x->b;
	float *vc = (float *)x->c;
	for (int l = 0; l < SIMD_WIDTH; l++) {
		int row = (l >> 2 & 4) | (l >> 1 & 3), column = 2 * ((l >> 2 & 2) | (l & 1));
		for (int k = 0; k < 2; k++) {
			a[row][column + k] = va[stride * l + k];
			b[row][column + k] = vb[stride * l + k];
			c[row][column + k] = vc[stride * l + k];
		}
	}
	for (int i = 0; i < 8; i++)
		for (int k = 0; k < 8; k++)
			for (int j = 0; j < 8; j++)
				c[i][j] = __builtin_fmaf(a[i][k], b[k][j], c[i][j]);
	for (int l = 0; l < SIMD_WIDTH; l++) {
		int row = (l >> 2 & 4) | (l >> 1 & 3), column = 2 * ((l >> 2 & 2) | (l & 1));
		for (int k = 0; k < 2; k++)
			vc[stride * l + k] = c[row][column + k];
	}
}

void exchange(const struct site *s, struct exchange *x, uint32_t active, int count) {
	switch (s->operation) {
	case THREADGROUP_BARRIER:
	case SIMDGROUP_BARRIER:
	case JOIN:
	case TOGETHER:
		return;
	case SUM:
	case PRODUCT:
	case MIN:
	case MAX:
	case AND:
	case OR:
	case XOR:
		if (active == 0xffffffffu && s->element == F32 && s->count == 1 && s->width == SIMD_WIDTH) {
			reduce_all(s, x->a);
			return;
		}
		for (int part = 0; part < s->count; part++)
			reduce(s, x, active, count, part);
		return;
	case PREFIX_INCLUSIVE_SUM:
	case PREFIX_EXCLUSIVE_SUM:
	case PREFIX_INCLUSIVE_PRODUCT:
	case PREFIX_EXCLUSIVE_PRODUCT:
		for (int part = 0; part < s->count; part++)
			scan(s, x, active, count, part);
		return;
	case ANY:
	case ALL:
	case BALLOT:
	case IS_FIRST:
	case ACTIVE_THREADS:
		vote(s, x, active, count);
		return;
	case MULTIPLY_ACCUMULATE:
		multiply_accumulate(s, x);
		return;
	default:
		shuffle(s, x, active, count);
	}
}
