package main

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"unsafe"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/measure"
	"github.com/mlxc/mlxc/cost"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/optimize"
	"github.com/mlxc/mlxc/passes"
	"github.com/mlxc/mlxc/prove"
	"github.com/mlxc/mlxc/record"
)

// A kernelCase is an operation of a size; it is recorded several times, on other weights each time.
type kernelCase struct {
	name   string
	record func(s *record.Session, p *pool, i int)
	bytes  int64    // what one reads and writes, temporaries too, but for vectors beside matrices
	others []string // kernels of ours that compute the same, where they can
}

// pool hands out made-up contents.
type pool struct {
	random []byte // bytes of codes
	floats []byte // of f32 and f16 that are no NaN
	at     [2]int
	count  int
}

// newPool makes n bytes of each.
func newPool(n int) *pool {
	p := &pool{random: make([]byte, n), floats: make([]byte, n)}
	words := func(b []byte) []uint32 { return unsafe.Slice((*uint32)(unsafe.Pointer(&b[0])), len(b)/4) }
	r := rand.New(rand.NewPCG(1, 2))
	w := words(p.random)
	for i := range w {
		w[i] = r.Uint32()
	}
	w = words(p.floats)
	for i := range w {
		w[i] = 0x3c003c00 | r.Uint32()&0x83ff83ff // halves of 1 to 2 of both signs, floats near 0.008
	}
	return p
}

// blob returns n bytes that no other tensor of the graph has, until the pool is used up.
func (p *pool) blob(codes bool, n int64) *ir.Blob {
	from, at := p.floats, &p.at[1]
	if codes {
		from, at = p.random, &p.at[0]
	}
	if *at+int(n) > len(from) {
		*at = 0
	}
	data := from[*at:][:n]
	*at += (int(n) + 255) &^ 255
	p.count++
	return ir.MappedBlob(data, sha256.Sum256(fmt.Appendf(nil, "gpubench %d", p.count)))
}

func affine(n, k, bits int64) kernelCase {
	var others []string
	if bits == 4 {
		others = []string{"affine_qmv_whole_float_gs_32_b_4", "affine_qmv_piped_float_gs_32_b_4"}
	}
	return kernelCase{fmt.Sprintf("%d-bit matrix × vector, K = %d, N = %d", bits, k, n), func(s *record.Session, p *pool, i int) {
		q := record.QTensor{
			W:      s.Weight(fmt.Sprint("w", i), p.blob(true, n*k*bits/8), ir.U32, n, k*bits/32),
			Scales: s.Weight(fmt.Sprint("s", i), p.blob(false, n*k/8), ir.F32, n, k/32),
			Biases: s.Weight(fmt.Sprint("b", i), p.blob(false, n*k/8), ir.F32, n, k/32),
			N:      n, K: k, Bits: bits, Group: 32,
		}
		s.Matmul(vector(s, k), record.Quantized(q), record.Into(s.Output(fmt.Sprint("y", i), ir.F32, 1, n))) // an output, as passes drop what nothing reads
	}, n * k * (bits + 2) / 8, others}
}

func half(n, k int64) kernelCase {
	return kernelCase{fmt.Sprintf("f16 matrix × vector, K = %d, N = %d", k, n), func(s *record.Session, p *pool, i int) {
		s.Matmul(vector(s, k), record.Dense(s.Weight(fmt.Sprint("w", i), p.blob(false, 2*n*k), ir.F16, n, k)))
	}, 2 * n * k, nil}
}

// vector is the input of all products of a graph.
func vector(s *record.Session, k int64) record.Tensor {
	if x, ok := vectors[s]; ok {
		return x
	}
	vectors[s] = s.Input("x", ir.F32, 1, k)
	return vectors[s]
}

var vectors = map[*record.Session]record.Tensor{}

// norms returns norms of rows of axis elements, of so many rows that caches cannot hold them.
func norms(axis, bytes int64) []kernelCase {
	rows := max(1, bytes/(4*axis))
	x := func(s *record.Session, p *pool, name string, i int) record.Tensor {
		return s.Weight(fmt.Sprint(name, i), p.blob(false, 4*rows*axis), ir.F32, rows, axis)
	}
	w := func(s *record.Session, p *pool, name string, i int) record.Tensor {
		return s.Weight(fmt.Sprint(name, i), p.blob(false, 4*axis), ir.F32, axis)
	}
	of := fmt.Sprintf("%d rows of %d", rows, axis)
	return []kernelCase{
		{"rms norm, " + of, func(s *record.Session, p *pool, i int) { s.RMSNorm(x(s, p, "x", i), 1e-5) }, 8 * rows * axis, nil},
		{"layer norm, " + of, func(s *record.Session, p *pool, i int) {
			s.LayerNorm(x(s, p, "x", i), w(s, p, "w", i), w(s, p, "b", i), 1e-5)
		}, 8 * rows * axis, nil},
		{"gradients of a layer norm, " + of, func(s *record.Session, p *pool, i int) {
			s.LayerNormGrad(x(s, p, "x", i), w(s, p, "w", i), x(s, p, "g", i), 1e-5)
		}, 24 * rows * axis, nil}, // x and g are read, two arrays written, and of one of them and of g the columns are summed
	}
}

// kernels measures operations at sizes of models.
func (b *bench) kernels() error {
	fmt.Fprintf(b.out, "\n| operation | µs | GB/s | of a copy | µs, min–max |\n|---|---|---|---|---|\n")
	sizes, norm, room := [][2]int64{{4096, 4096}, {14336, 4096}, {4096, 14336}, {576, 576}, {1536, 576}, {576, 1536}}, int64(64<<20), int64(512<<20)
	axes := []int64{576, 1536, 4096, 14336}
	if b.tiny {
		sizes, norm, room, axes = [][2]int64{{64, 512}, {24, 96}}, 1<<14, 1<<18, []int64{96, 4128}
	}
	var all []kernelCase
	for _, bits := range []int64{4, 8} {
		for _, s := range sizes {
			all = append(all, affine(s[0], s[1], bits))
		}
	}
	for _, s := range sizes {
		all = append(all, half(s[0], s[1]))
	}
	for _, a := range axes {
		all = append(all, norms(a, norm)...)
	}
	d, end, err := b.open(waiting)
	if err != nil {
		return err
	}
	defer end()
	p := newPool(int(room))
	for _, c := range all {
		if b.late(c.name) {
			break
		}
		clear(vectors)
		s := record.New("kernel")
		count := int(min(max(2, room/c.bytes), 512))
		for i := range count {
			c.record(s, p, i)
		}
		g, err := s.Graph()
		if err != nil {
			b.fail(c.name, err)
			continue
		}
		b.product(d, c, count, c.name, g)
		for _, kernel := range c.others {
			if b.late(c.name) {
				break
			}
			other, err := b.running(g, kernel)
			if err != nil {
				b.fail(c.name+", "+kernel, err)
			} else if other != nil {
				b.product(d, c, count, c.name+", "+kernel, other)
			}
		}
	}
	b.fitted()
	return nil
}

// running returns a graph of dispatches of one kernel with another in its place; nil if that cannot replace it
// there.
func (b *bench) running(g *ir.Graph, kernel string) (*ir.Graph, error) {
	model := b.model.OrDefault()
	model.Kernels = map[string]cost.Kernel{g.Kernels[0].Function: {Fixed: 1}, kernel: {Fixed: 1e-9}} // seconds
	p, err := passes.ParsePipeline("annotate,fuse{without=*_x2_*+*_x3_*}")
	if err != nil {
		return nil, err
	}
	r, err := optimize.Run(b.ctx, g, optimize.Options{Pipeline: p, Passes: passes.Options{Model: model}})
	if err != nil {
		return nil, err
	}
	if r.Proof.Verdict != prove.Proved {
		return nil, fmt.Errorf("not proved: %s", r.Proof)
	}
	for _, n := range r.Optimized.Nodes {
		if x, ok := n.(*ir.Dispatch); ok && r.Optimized.Kernels[x.Kernel].Function != kernel {
			return nil, nil
		}
	}
	return r.Optimized, nil
}

// product measures a graph that runs a case count times.
func (b *bench) product(d backend.Device, c kernelCase, count int, name string, g *ir.Graph) {
	t, err := b.time(d, moduleOf(g), "kernel", 1, b.rounds, nil)
	if err != nil {
		b.fail(name, err)
		return
	}
	work := b.model.OrDefault().For(optimize.Annotated(b.ctx, g))
	first := cost.Work{}
	function := ""
	dispatches := 0
	for _, n := range g.Nodes {
		if x, ok := n.(*ir.Dispatch); ok {
			first, function = work.Work(x), g.Kernels[x.Kernel].Function
			dispatches++
		}
	}
	each := measure.Median(t.device) / float64(count)
	if dispatches == count {
		b.fit.Run(function, first, cost.Seconds(each))
	}
	rate := float64(c.bytes) / each // the model's own bytes are guesses where a thread reads much (cost.Work)
	share := "–"
	if b.copy > 0 {
		share = fmt.Sprintf("%.0f %%", 100*rate/b.copy)
	}
	for i := range t.device {
		t.device[i] /= float64(count)
	}
	b.row(name, map[string]any{"microseconds": 1e6 * each, "bytes_per_second": rate, "kernel": function, "dispatches": dispatches},
		"| %s | %.2f | %.0f | %s | %s |\n", name, 1e6*each, rate/1e9, share, around(t.device))
}
