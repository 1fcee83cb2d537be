package simd

import (
	"fmt"
	"testing"
	"time"
	"unsafe"
)

// A bench is the memory of several matrices, one after another: weights,
// scales, biases, each in one piece.
type bench struct {
	matrices   []*matrix
	w          []byte
	scales     []float32
	biases     []float32
	x, xsum, y []float32
}

type shape struct{ bits, n, k int }

func (s shape) String() string { return fmt.Sprintf("Q%d-%dx%d", s.bits, s.n, s.k) }

// bytes is the size of weights, scales and biases with groups of 32.
func (s shape) bytes() int { return s.n*s.k/8*s.bits + s.n*s.k/32*8 }

func newBench(shapes []shape) *bench {
	var bytes, groups, n, k int
	for _, s := range shapes {
		bytes, groups = bytes+s.n*s.k/8*s.bits, groups+s.n*s.k/32
		n, k = max(n, s.n), max(k, s.k)
	}
	r := rng(1)
	b := &bench{w: make([]byte, bytes), scales: random(r, make([]float32, groups)), biases: random(r, make([]float32, groups)),
		x: random(r, make([]float32, k)), xsum: make([]float32, k/32), y: make([]float32, n)}
	for i := range b.w {
		b.w[i] = byte(i * 37)
	}
	bytes, groups = 0, 0
	for _, s := range shapes {
		nb, ng := s.n*s.k/8*s.bits, s.n*s.k/32
		b.matrices = append(b.matrices, &matrix{s.bits, s.n, s.k, 32, b.w[bytes : bytes+nb], b.scales[groups : groups+ng], b.biases[groups : groups+ng]})
		bytes, groups = bytes+nb, groups+ng
	}
	return b
}

func (b *bench) size() int { return len(b.w) + 4*len(b.scales) + 4*len(b.biases) }

func (b *bench) run(i int) {
	m := b.matrices[i%len(b.matrices)]
	x, xsum, y := b.x[:m.k], b.xsum[:m.k/32], b.y[:m.n]
	GroupSums(xsum, x, 32)
	if m.bits == 4 {
		MatVecQ4(y, x, xsum, m.w, m.scales, m.biases, m.k, 32)
	} else {
		MatVecQ8(y, x, xsum, m.w, m.scales, m.biases, m.k, 32)
	}
}

// readRate is the rate, in bytes a second, at which the fastest loop that does
// nothing but read gets through the same memory.
func (b *bench) readRate() float64 {
	previous, _ := Use(Available()[len(Available())-1])
	defer Use(previous)
	words := unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(b.w))), len(b.w)/4)
	var n int
	start := time.Now()
	for n == 0 || time.Since(start) < 100*time.Millisecond {
		sink += Max(words) + Max(b.scales) + Max(b.biases)
		n++
	}
	return float64(n*b.size()) / time.Since(start).Seconds()
}

var sink float32

func (b *bench) measure(t *testing.B, perOp int, op func(i int)) {
	before := b.readRate()
	i := 0
	for t.Loop() {
		op(i)
		i++
	}
	read := (before + b.readRate()) / 2
	rate := float64(perOp) * float64(t.N) / t.Elapsed().Seconds()
	t.ReportMetric(rate/1e9, "GB/s")
	t.ReportMetric(read/1e9, "read-GB/s")
	t.ReportMetric(rate/read, "of-read")
}

// cold is more than the last cache of most machines holds.
const cold = 768 << 20

// BenchmarkMatVec multiplies one matrix again and again (warm), or one after
// another of as many as exceed the caches (cold).
func BenchmarkMatVec(b *testing.B) {
	for _, s := range []shape{{4, 1536, 576}, {4, 576, 1536}, {8, 1536, 576}, {8, 49152, 576}} {
		for _, where := range []string{"warm", "cold"} {
			shapes := []shape{s}
			for len(shapes)*s.bytes() < cold && where == "cold" {
				shapes = append(shapes, s)
			}
			data := newBench(shapes)
			eachBenchmark(b, s.String()+"/"+where, func(b *testing.B) { data.measure(b, s.bytes(), data.run) })
		}
	}
}

// decode is all matrices of a model of 135 million parameters, 115 MB.
func decode() (all []shape) {
	for range 30 {
		all = append(all, shape{4, 576, 576}, shape{4, 192, 576}, shape{4, 192, 576}, shape{4, 576, 576},
			shape{4, 1536, 576}, shape{4, 1536, 576}, shape{4, 576, 1536})
	}
	return append(all, shape{8, 49152, 576})
}

// BenchmarkDecode is the dot products of one token.
func BenchmarkDecode(b *testing.B) {
	data := newBench(decode())
	eachBenchmark(b, "135M", func(b *testing.B) {
		data.measure(b, data.size(), func(int) {
			for i := range data.matrices {
				data.run(i)
			}
		})
	})
}

func BenchmarkMatMul(b *testing.B) {
	scratch := make([]float32, MatMulScratch)
	for _, s := range []shape{{4, 1536, 576}, {4, 576, 1536}, {8, 1536, 576}, {8, 49152, 576}} {
		for _, m := range []int{2, 3, 4, 8, 32, 128, 512} {
			if m > 32 && s.n > 10000 {
				continue // the same as for smaller n, for seconds
			}
			mat := newBench([]shape{s}).matrices[0]
			x, y := random(rng(1), make([]float32, m*s.k)), make([]float32, m*s.n)
			eachBenchmark(b, fmt.Sprintf("%v/m=%d", s, m), func(b *testing.B) {
				for b.Loop() {
					mat.matMul(y, s.n, x, m, scratch)
				}
				b.ReportMetric(2*float64(m*s.n*s.k)*float64(b.N)/b.Elapsed().Seconds()/1e9, "Gflop/s")
			})
		}
	}
}

func BenchmarkMatMulF32(b *testing.B) {
	scratch := make([]float32, MatMulScratch)
	for _, d := range [][3]int{{128, 128, 64}, {512, 512, 64}, {128, 576, 576}} {
		m, n, k := d[0], d[1], d[2]
		x, w, y := random(rng(1), make([]float32, m*k)), random(rng(2), make([]float32, n*k)), make([]float32, m*n)
		eachBenchmark(b, fmt.Sprintf("%dx%dx%d", m, n, k), func(b *testing.B) {
			for b.Loop() {
				MatMulF32(y, n, x, w, m, n, k, scratch)
			}
			b.ReportMetric(2*float64(m*n*k)*float64(b.N)/b.Elapsed().Seconds()/1e9, "Gflop/s")
		})
	}
}

func BenchmarkVector(b *testing.B) {
	for _, n := range []int{64, 576, 1536} {
		r := rng(1)
		x, y, dst := random(r, make([]float32, n)), random(r, make([]float32, n)), make([]float32, n)
		w := random(r, make([]float32, 64*n))
		for _, f := range []struct {
			name string
			fn   func()
		}{
			{"Dot", func() { sink += Dot(x, y) }},
			{"SumSquares", func() { sink += SumSquares(x) }},
			{"Max", func() { sink += Max(x) }},
			{"Axpy", func() { Axpy(1e-9, x, y) }},
			{"AddTo", func() { AddTo(dst, x, y) }},
			{"ExpTo", func() { ExpTo(dst, x) }},
			{"SiluTo", func() { SiluTo(dst, x) }},
			{"GroupSums", func() { GroupSums(dst[:n/32], x, 32) }},
			{"MatVecF32x64", func() { MatVecF32(dst[:64], x, w, n) }},
		} {
			eachBenchmark(b, fmt.Sprintf("%s/%d", f.name, n), func(b *testing.B) {
				for b.Loop() {
					f.fn()
				}
			})
		}
	}
}

func eachBenchmark(b *testing.B, name string, f func(b *testing.B)) {
	for _, impl := range Available() {
		b.Run(name+"/"+string(impl), func(b *testing.B) {
			previous, err := Use(impl)
			if err != nil {
				b.Fatal(err)
			}
			defer Use(previous)
			f(b)
		})
	}
}
