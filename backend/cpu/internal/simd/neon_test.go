//go:build !arm64

package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/testing/sample"
)

// TestNEON runs the assembly for arm64 in an emulator and compares it with the
// loops in Go; and, where the machine has qemu's user mode, under that too. On
// arm64 itself every test of this package runs it.
func TestNEON(t *testing.T) {
	sample.Seldom(t)
	m := newMachine(t)
	for i, at := range guards {
		if !sample.Whole() && i != sample.Run()%len(guards) {
			continue // an emulator runs this: a run takes one of the two
		}
		m.atEnd = at.atEnd
		for _, part := range []struct {
			name string
			test func(*testing.T, *machine)
		}{
			{"vector", neonVector}, {"exp", neonExp}, {"matvec", neonMatVec}, {"quantized", neonQuantized}, {"pack", neonPack}, {"tile", neonTile},
			{"narrow", neonNarrow}, {"blocks", neonBlocks},
		} {
			t.Run(at.name+"/"+part.name, func(t *testing.T) {
				m.t = t
				part.test(t, m)
			})
		}
	}
	for name := range m.pc {
		assert.True(t, m.called[name], "nothing tests %s", name)
	}
	assert.GreaterOrEqual(t, len(m.pc), 36)
	for _, name := range []string{"qemu-aarch64", "qemu-aarch64-static"} {
		if qemu, err := exec.LookPath(name); err == nil {
			t.Run(name, func(t *testing.T) { underQEMU(t, qemu) })
		}
	}
}

// sameFloats wants equal bits, or NaN for NaN.
func sameFloats(t *testing.T, want, got []float32, format string, args ...any) {
	t.Helper()
	require.Len(t, got, len(want))
	for i, w := range want {
		if math.Float32bits(w) != math.Float32bits(got[i]) && (w == w || got[i] == got[i]) {
			require.Failf(t, "differs", "element %d: got %v, want %v: "+format, append([]any{i, got[i], w}, args...)...)
		}
	}
}

func neonVector(t *testing.T, m *machine) {
	special := []float32{0, float32(math.Copysign(0, -1)), 1, nan, inf, -inf, math.MaxFloat32, math.SmallestNonzeroFloat32}
	for n := 0; n < 70; n += 1 + n/40*7 {
		r := rng(uint64(n))
		a, b := wild(r, make([]float32, n)), wild(r, make([]float32, n))

		var want, magnitude float64
		for i := range a {
			p := float64(a[i]) * float64(b[i])
			want, magnitude = want+p, magnitude+math.Abs(p)
		}
		near(t, want, magnitude, m.call("dotNEON", a, b, n), "dot, n = %d", n)

		y := append([]float32(nil), b...)
		m.call("axpyNEON", float32(1.5), a, y, n)
		for i := range y {
			near(t, 1.5*float64(a[i])+float64(b[i]), math.Abs(1.5*float64(a[i]))+math.Abs(float64(b[i])), y[i], "axpy, n = %d, i = %d", n, i)
		}

		for i := range a {
			if r.IntN(4) == 0 {
				a[i], b[i] = special[r.IntN(len(special))], special[r.IntN(len(special))]
			}
		}
		want32, got := make([]float32, n), make([]float32, n)
		addToGeneric(want32, a, b)
		m.call("addToNEON", got, a, b, n)
		sameFloats(t, want32, got, "add, n = %d", n)
		mulToGeneric(want32, a, b)
		m.call("mulToNEON", got, a, b, n)
		sameFloats(t, want32, got, "mul, n = %d", n)
		scaleToGeneric(want32, -1.25, a)
		m.call("scaleToNEON", got, float32(-1.25), a, n)
		sameFloats(t, want32, got, "scale, n = %d", n)

		sameFloats(t, []float32{maximumGeneric(a)}, []float32{m.call("maximumNEON", a, n)}, "max, n = %d", n)
		for i := range n { // the greatest in each place, and a NaN
			x := random(r, make([]float32, n))
			x[i] = 7
			require.Equal(t, float32(7), m.call("maximumNEON", x, n), "n = %d, i = %d", n, i)
			x[i] = nan
			require.True(t, math.IsNaN(float64(m.call("maximumNEON", x, n))), "n = %d, i = %d", n, i)
		}
	}
	for _, group := range []int{32, 64, 128} {
		for n := range 5 {
			x, dst := wild(rng(uint64(n)), make([]float32, n*group)), make([]float32, n)
			m.call("groupSumsNEON", dst, x, n, group)
			for i := range dst {
				var sum, magnitude float64
				for _, v := range x[i*group : (i+1)*group] {
					sum, magnitude = sum+float64(v), magnitude+math.Abs(float64(v))
				}
				near(t, sum, magnitude, dst[i], "sum %d of %d", i, group)
			}
		}
	}
}

// neonNarrow: every f16 and bf16, numbers with roundings of all kinds, and tails.
func neonNarrow(t *testing.T, m *machine) {
	widen := func(f string) func([]float32, []uint16) {
		return func(dst []float32, src []uint16) { m.call(f, dst, src, len(src)) }
	}
	narrow := func(f string) func([]uint16, []float32) {
		return func(dst []uint16, src []float32) { m.call(f, dst, src, len(src)) }
	}
	round := func(f string) func([]float32) { return func(x []float32) { m.call(f, x, len(x)) } }
	loops := narrowLoops{widen("halfToNEON"), widen("bfloatToNEON"), narrow("toHalfNEON"), narrow("toBFloatNEON"), round("roundHalfNEON"), round("roundBFloatNEON")}
	for n := range 40 {
		testNarrowTail(t, n, make([]float32, n), make([]uint16, n), make([]uint16, n), loops)
	}
	all, got, want := allNarrow(), make([]float32, 1<<16), make([]float32, 1<<16)
	halfToGeneric(want, all)
	loops.halfTo(got, all)
	require.True(t, equal(bits(want), bits(got)), "f16")
	bfloatToGeneric(want, all)
	loops.bfloatTo(got, all)
	require.True(t, equal(bits(want), bits(got)), "bf16")
	var x []float32
	for i, v := range roundings() {
		if i%16 == sample.Run()%16 { // an emulator runs this
			x = append(x, v)
		}
	}
	narrowed, want16 := make([]uint16, len(x)), make([]uint16, len(x))
	toHalfGeneric(want16, x)
	loops.toHalf(narrowed, x)
	require.True(t, equal(want16, narrowed), "to f16")
	toBFloatGeneric(want16, x)
	loops.toBFloat(narrowed, x)
	require.True(t, equal(want16, narrowed), "to bf16")
}

// neonBlocks: products with each weight alone, and with several rows and blocks; panels and rows.
func neonBlocks(t *testing.T, m *machine) {
	bytes, floats := func(n int) []byte { return make([]byte, n) }, func(n int) []float32 { return make([]float32, n) }
	xsum := func(x []float32) []float32 {
		sums := floats(len(x) / 32)
		groupSumsGeneric(sums, x, 32)
		return sums
	}
	codes, scales := bytes(3*32), random(rng(4), floats(3))
	for i := range codes {
		codes[i] = byte(37 * i)
	}
	want, got := floats(len(codes)), floats(len(codes))
	groupsQ8Generic(want, codes, scales, 3)
	m.call("groupsQ8NEON", got, codes, scales, 3)
	sameFloats(t, want, got, "groups of 8 bits")
	for f, layout := range blocks {
		name := fmt.Sprintf("matVec%sNEON", layout.name)
		product := func(y, x []float32, w *blockMatrix) {
			switch {
			case layout.weights == 32 && layout.biased:
				m.call(name, y, x, xsum(x), w.w, w.n, w.k)
			case layout.weights == 32:
				m.call(name, y, x, w.w, w.n, w.k)
			case layout.biased:
				m.call(name, y, x, xsum(x), w.w, w.scales, w.biases, w.n, w.k)
			default:
				m.call(name, y, x, w.w, w.scales, w.n, w.k)
			}
		}
		for n := range 7 {
			r := rng(uint64(n))
			w := newBlocks(Blocks(f), r, n, n%4*layout.weights, bytes, floats)
			x, y := random(r, floats(w.k)), floats(n)
			product(y, x, w)
			for j, v := range y {
				want, magnitude := w.dot(x, j)
				near(t, want, magnitude, v, "%s, n = %d, row %d", name, n, j)
				one, row, groups := floats(1), w.size(w.k), w.k/layout.group
				alone := &blockMatrix{w.Blocks, 1, w.k, w.w[j*row : (j+1)*row], w.scales[j*groups : (j+1)*groups], nil}
				if layout.biased {
					alone.biases = w.biases[j*groups : (j+1)*groups]
				}
				product(one, x, alone)
				sameFloats(t, one, y[j:j+1], "%s, row %d alone", name, j)
			}
		}
		w := newBlocks(Blocks(f), rng(1), 5, 2*layout.weights, bytes, floats)
		x, y := floats(w.k), floats(w.n)
		for e := sample.Run() % 7; e < w.k; e += 1 + layout.weights/256*6 {
			x[e] = 1
			product(y, x, w)
			x[e] = 0
			for j, v := range y {
				require.Equal(t, float32(w.weight(j, e)), v, "%s, weight %d of row %d", name, e, j)
			}
		}
		if Blocks(f) == Q6K {
			want, got := floats(w.k), floats(w.k)
			rowQ6KGeneric(want, w.w, w.scales, 2)
			m.call("rowQ6KNEON", got, w.w, w.scales, 2)
			sameFloats(t, want, got, "rows of q6_K")
			continue
		}
		const width, rows = 16, 4
		cols, stride, first := w.k, w.size(w.k), 0
		if Blocks(f) == Q4K {
			cols, first = 128, 16+32
		}
		scales, biases := random(rng(2), floats(cols/32*width)), random(rng(3), floats(cols/32*width))
		RoundHalf(scales)
		want, got := floats(cols*width), floats(cols*width)
		switch Blocks(f) {
		case Q4K:
			packQ4KGeneric(want, w.w[first:], scales, biases, rows, cols, stride, width)
		case Q80:
			packQ80Generic(want, w.w, scales, biases, rows, cols, stride, width)
		default:
			packNibbles(want, w.w, scales, biases, rows, cols, stride, width, layout.bytes, layout.bytes-16)
		}
		m.call(fmt.Sprintf("pack%sNEON", layout.name), got, w.w[first:], scales, biases, cols, stride)
		sameFloats(t, want, got, "pack of %s", layout.name)
	}
	for n := range 4 {
		testScales(t, n, bytes, floats, func(dst []float32, w []byte) { m.call("scalesQ6KNEON", dst, w, n) },
			func(scales, biases []float32, w []byte, stride int) {
				m.call("scalesKNEON", scales, biases, w, n, stride)
			})
	}
	for n := range 12 {
		stride := 2 + 6*(n%3)
		src, want, got := bytes(max(0, (n-1)*stride+2)), floats(n), floats(n)
		for i := range src {
			src[i] = byte(37 * i)
		}
		halvesAtGeneric(want, src, stride)
		m.call("halvesAtNEON", got, src, n, stride)
		require.Equal(t, bits(want), bits(got), "halves, n = %d", n)
	}
}

func neonExp(t *testing.T, m *machine) {
	const step = 65537 // a prime: all exponents and many fractions
	var x []float32
	for b := uint64(0); b < 1<<32; b += step {
		x = append(x, math.Float32frombits(uint32(b)))
	}
	for _, border := range []float32{0, 1, -1, math.Ln2, math.Ln2 / 2, 88.72283, 89, -87.33654, -103.97208, -104, inf, -inf} {
		for d := range uint32(65) {
			x = append(x, math.Float32frombits(math.Float32bits(border)+d-32))
		}
	}
	exp := func(x []float32) []float32 {
		dst := make([]float32, len(x))
		m.call("expToNEON", dst, x, len(x))
		return dst
	}
	var worst float64
	for i, v := range exp(x) {
		u := ulps(v, math.Exp(float64(x[i])))
		require.LessOrEqual(t, u, 1.1, "exp(%v) = %v", x[i], v)
		worst = max(worst, u)
	}
	t.Logf("exp: at most %.3f ulp", worst)
	if impls := Available(); len(impls) > 1 { // the method is AVX2's
		previous, err := Use(AVX2)
		require.NoError(t, err)
		want := make([]float32, len(x))
		ExpTo(want, x)
		_, err = Use(previous)
		require.NoError(t, err)
		sameFloats(t, want, exp(x), "AVX2's exp")
	}

	// The steps of their terms, to the bit.
	arg, got, want := make([]float32, len(x)), make([]float32, len(x)), make([]float32, len(x))
	for i, v := range x {
		arg[i] = -v
	}
	for i, e := range exp(arg) {
		d := 1 + e
		want[i] = x[i] / d
	}
	m.call("siluToNEON", got, x, len(x))
	sameFloats(t, want, got, "silu")
	for i, v := range x {
		arg[i] = float32(math.Abs(float64(v)))
	}
	for i, e := range exp(arg) {
		d := 1 + e
		want[i] = 1 / d
		if !(x[i] < 0) {
			want[i] = 1 - want[i]
		}
	}
	m.call("sigmoidToNEON", got, x, len(x))
	sameFloats(t, want, got, "sigmoid")

	// Tails: a result depends on its own argument only.
	long := random(rng(3), make([]float32, 16))
	scaleToGeneric(long, 100, long)
	for _, f := range []string{"expToNEON", "sigmoidToNEON", "siluToNEON"} {
		want := make([]float32, len(long))
		m.call(f, want, long, len(long))
		for n := range long {
			dst := make([]float32, n)
			m.call(f, dst, long[:n:n], n)
			sameFloats(t, want[:n], dst, "%s, n = %d", f, n)
		}
	}
}

func neonMatVec(t *testing.T, m *machine) {
	for _, k := range []int{0, 1, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 31, 64, 77} {
		for n := range 10 {
			r := rng(uint64(100*k + n))
			ld := k + r.IntN(3)
			x, w, y := wild(r, make([]float32, k)), wild(r, make([]float32, max(0, (n-1)*ld+k))), make([]float32, n)
			if n == 0 {
				w = nil
			}
			m.call("matVecF32NEON", y, x, w, n, k, ld)
			for j := range y {
				var sum, magnitude float64
				for i, v := range w[j*ld : j*ld+k] {
					p := float64(x[i]) * float64(v)
					sum, magnitude = sum+p, magnitude+math.Abs(p)
				}
				near(t, sum, magnitude, y[j], "n = %d, k = %d, row %d", n, k, j)
				one := make([]float32, 1)
				m.call("matVecF32NEON", one, x, w[j*ld:j*ld+k], 1, k, k)
				sameFloats(t, one, y[j:j+1], "row %d of %d alone", j, n)
			}
		}
	}
}

func neonMatrix(r *rand.Rand, bits, n, k, group int) *matrix {
	m := &matrix{bits: bits, n: n, k: k, group: group, w: make([]byte, n*k/8*bits),
		scales: make([]float32, n*k/group), biases: make([]float32, n*k/group)}
	return m.randomize(r, random)
}

func neonQuantized(t *testing.T, m *machine) {
	for _, bits := range []int{4, 8} {
		name := map[int]string{4: "matVecQ4NEON", 8: "matVecQ8NEON"}[bits]
		for _, group := range []int{32, 64, 128} {
			for _, groups := range []int{0, 1, 2, 3, 4, 5, 7, 8, 9} {
				k, n := groups*group, (groups*3+bits)%10
				r := rng(uint64(k + n))
				q := neonMatrix(r, bits, n, k, group)
				x, y, xsum := random(r, make([]float32, k)), make([]float32, n), make([]float32, groups)
				groupSumsGeneric(xsum, x, group)
				m.call(name, y, x, xsum, q.w, q.scales, q.biases, n, k, group)
				for j, v := range y {
					want, magnitude := q.dot(x, j)
					near(t, want, magnitude, v, "%v, row %d", q, j)
					one, row := make([]float32, 1), k/8*bits
					m.call(name, one, x, xsum, q.w[j*row:(j+1)*row], q.scales[j*groups:(j+1)*groups], q.biases[j*groups:(j+1)*groups], 1, k, group)
					sameFloats(t, one, y[j:j+1], "%v, row %d alone", q, j)
				}
			}
		}
		// Every weight in every place of a unit, exactly.
		q := neonMatrix(rng(1), bits, 5, 64, 32)
		for i := range q.scales {
			q.scales[i], q.biases[i] = float32(i%3+1), float32(-i)
		}
		for e := range q.k {
			x, y, xsum := make([]float32, q.k), make([]float32, q.n), make([]float32, 2)
			x[e], xsum[e/32] = 1, 1
			m.call(name, y, x, xsum, q.w, q.scales, q.biases, q.n, q.k, 32)
			for j := range y {
				i := j*2 + e/32
				require.Equal(t, q.scales[i]*float32(q.q(j, e))+q.biases[i], y[j], "%v, weight %d of row %d", q, e, j)
			}
		}
	}
}

// Panels are 16 rows wide; what lies beside the four that are packed stays.
func neonPack(t *testing.T, m *machine) {
	const width, rows = 16, 4
	untouched := func(n int) []float32 {
		s := make([]float32, n)
		for i := range s {
			s[i] = canary
		}
		return s
	}
	// A panel ends with the rows that are packed last.
	size := func(cols int) int { return max(0, (cols-1)*width+rows) }
	for _, cols := range []int{0, 4, 8, 20} {
		stride := cols + 3
		w := random(rng(uint64(cols)), make([]float32, (rows-1)*stride+cols))
		want, got := untouched(size(cols)), untouched(size(cols))
		packF32Generic(want, w, rows, cols, stride, width)
		m.call("packF32NEON", got, w, cols, 4*stride)
		sameFloats(t, want, got, "f32, %d columns", cols)
	}
	for _, group := range []int{32, 64, 128} {
		for _, groups := range []int{0, 1, 2, 3} {
			cols := group * groups
			stride := cols + 64
			r := rng(uint64(cols))
			w := make([]byte, max(0, (rows-1)*stride+cols))
			for i := range w {
				w[i] = byte(r.Uint32())
			}
			// Small numbers, so that no order of roundings matters.
			scales, biases := make([]float32, size(groups)), make([]float32, size(groups))
			for i := range scales {
				scales[i], biases[i] = float32(i%5+1), float32(-i)
			}
			want, got := untouched(size(cols)), untouched(size(cols))
			packQ8Generic(want, w, scales, biases, rows, cols, stride, group, width)
			m.call("packQ8NEON", got, w, scales, biases, cols, stride, group)
			sameFloats(t, want, got, "q8, %d columns, group %d", cols, group)

			w = w[:max(0, ((rows-1)*stride+cols)/2)]
			want, got = untouched(size(cols)), untouched(size(cols))
			packQ4Generic(want, w, scales, biases, rows, cols, stride, group, width)
			m.call("packQ4NEON", got, w, scales, biases, cols, stride/2, group)
			sameFloats(t, want, got, "q4, %d columns, group %d", cols, group)
		}
	}
}

func neonTile(t *testing.T, m *machine) {
	const width = 16
	for of, rows := range map[int]int{1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 9: 4} { // of so many rows it takes these
		for _, cols := range []int{1, 2, 3, 4, 5, 8, 31, 32} {
			for _, add := range []bool{false, true} {
				r := rng(uint64(cols))
				ldx, ldy := cols+r.IntN(3), width+r.IntN(3)
				x, panel := random(r, make([]float32, (rows-1)*ldx+cols)), random(r, make([]float32, cols*width))
				y := random(r, make([]float32, (rows-1)*ldy+width))
				before := append([]float32(nil), y...)
				took := m.call("tileNEON", y, ldy, x, ldx, panel, of, cols, width, add)
				require.EqualValues(t, rows, math.Float32bits(took), "rows taken of %d", of)
				for i, v := range y {
					row, j := i/ldy, i%ldy
					if j >= width {
						require.Equal(t, before[i], v, "%d rows: writes between rows", rows)
						continue
					}
					var sum, magnitude float64
					if add {
						sum, magnitude = float64(before[i]), math.Abs(float64(before[i]))
					}
					for c := range cols {
						p := float64(x[row*ldx+c]) * float64(panel[c*width+j])
						sum, magnitude = sum+p, magnitude+math.Abs(p)
					}
					near(t, sum, magnitude, v, "%d rows, %d columns, row %d, column %d", rows, cols, row, j)
				}
			}
		}
	}
}
