package cpu

import (
	"fmt"
	"math"

	"github.com/mlxc/mlxc/backend/cpu/internal/simd"
)

// partsBlocks is the function constant of sdpa_vector_2pass_1_… that says into how many blocks keys are cut.
const partsBlocks = 26

// parts is the twin of sdpa_vector_2pass_1_…: of each block of the keys of a query, the greatest score m, the sum of exp(s[j] - m),
// and the sum of exp(s[j] - m) * values[j]. A block without a key that the query sees has [noScore], 0 and zeros. Block b has the
// keys b, b + blocks, …; of the kernels _gqa_, ⌈n/blocks⌉ keys from b*⌈n/blocks⌉ on. A sink is a score of block 0.
//
// Arguments: 0 queries [heads, l, keys], 1 keys and 2 values under the strides 8 and 9, 10 and 11 (u64: head, position), 3 out
// [heads, l, blocks, values], 4 sums and 5 maxima f32[heads, l, blocks], 7 n i32, 12 scale f32, masks from 13, their strides from 15
// and 18 sinks as in [vectorWith]. Threadgroups are (key heads, batches, blocks) of (32, heads that share keys, l) threads. A unit
// is a row of a block.
type parts struct {
	floatType
	keys, values int
	together     bool
}

func init() {
	for _, t := range floatTypes() {
		for _, w := range [][2]int{{64, 64}, {96, 96}, {128, 128}, {256, 256}, {192, 128}} {
			parts{t, w[0], w[1], false}.register("")
		}
		for _, f := range []struct{ shared, width int }{{8, 64}, {8, 128}, {12, 128}, {16, 128}} {
			parts{t, f.width, f.width, true}.register(fmt.Sprintf("gqa_%d_", f.shared))
		}
		for _, width := range []int{64, 96, 128, 256} {
			j := joined{t, width}
			Register(&Kernel{
				Name:  fmt.Sprintf("sdpa_vector_2pass_2_%s_%d", t.name, width),
				Units: func(c *Call) int { return c.Groups[0] * c.Groups[1] },
				Run:   j.run,
				Cost:  func(c *Call) float64 { return 100 + float64(c.Int(4)*(20+width)) },
			})
		}
	}
}

func (p parts) register(form string) {
	Register(&Kernel{
		Name:  fmt.Sprintf("sdpa_vector_2pass_1_%s%s_%d_%d", form, p.name, p.keys, p.values),
		Units: func(c *Call) int { return c.Groups[0] * c.Groups[1] * c.Groups[2] * c.Group[1] * c.Group[2] },
		Run:   p.run,
		Cost:  func(c *Call) float64 { return 200 + 0.5*float64(c.Int(7)/c.Groups[2]*(p.keys+p.values)) },
	})
}

func (p parts) run(c *Call, w *Worker, lo, hi int) {
	shared, queries, blocks := c.Group[1], c.Group[2], c.Groups[2]
	ofBatch := c.Groups[0] * shared
	heads := ofBatch * c.Groups[1]
	a := attention{
		floatType: p.floatType, keys: p.keys, values: p.values, n: c.Int(7), kHead: c.Long(8, 0), kSeq: c.Long(9, 0), vHead: c.Long(10, 0), vSeq: c.Long(11, 0),
		scale: c.Float(12), masks: attentionMask{bools: -1, floats: -1},
	}
	if !p.together {
		a.masks = masksOf(c, 13, 15)
	}
	chunk := ceilDiv(a.n, blocks)
	sums, tops := c.F32(4), c.F32(5)
	out, buf := a.room(w)
	for u := lo; u < hi; u++ {
		b, row := u%blocks, u/blocks
		h, q := row/queries, row%queries
		s := streamed{out: out, top: noScore}
		of, at := keyRange{b, a.n, blocks}, row
		sink, sunk := float32(0), !p.together && b == 0 && c.Flag(attendSinks)
		if p.together {
			of = keyRange{b * chunk, min((b+1)*chunk, a.n), 1}
		} else {
			if c.Flag(sdpaCausal) {
				of.last = a.n - queries + q + 1
			}
			if c.Flag(sdpaQueryTransposed) {
				at = q*heads + h
			}
			if sunk {
				sink = p.at(c, 18, h%ofBatch)
				if sink > s.top {
					s.top = sink
				}
			}
		}
		a.stream(c, buf, &s, at*p.keys, h/shared, of, h, q)
		if sunk {
			weight := [1]float32{sink - s.top}
			simd.ExpTo(weight[:], weight[:])
			s.sum += weight[0]
		}
		sums[u], tops[u] = s.sum, s.top
		canonical(sums[u : u+1])
		canonical(tops[u : u+1])
		p.store(c, 3, u*p.values, out)
	}
}

// joined is the twin of sdpa_vector_2pass_2_…: the blocks of each row, with their weights exp(maxs[b] - m), m being the greatest
// of maxs[b].
//
// Arguments: 0 partials [rows, blocks, width], 1 sums and 2 maxs f32[rows, blocks], 3 out [rows, width], 4 blocks i32. Threadgroups
// are (heads, queries, 1). A unit is a row.
type joined struct {
	floatType
	width int
}

func (j joined) run(c *Call, w *Worker, lo, hi int) {
	blocks := c.Int(4)
	buf := w.Scratch(blocks + 2*j.width)
	weights, out, part := buf[:blocks], buf[blocks:][:j.width], buf[blocks+j.width:][:j.width]
	for r := lo; r < hi; r++ {
		c.Pause()
		top := float32(math.Inf(-1))
		for _, m := range c.F32(2)[r*blocks:][:blocks] {
			if m > top {
				top = m
			}
		}
		for b, m := range c.F32(2)[r*blocks:][:blocks] {
			weights[b] = m - top
		}
		simd.ExpTo(weights, weights)
		total := simd.Dot(weights, c.F32(1)[r*blocks:][:blocks])
		clear(out)
		for b, weight := range weights {
			j.load(c, part, 0, (r*blocks+b)*j.width)
			simd.Axpy(weight, part, out)
		}
		if total < 0.5 { // no block has a key
			total = 0.5
		}
		for i := range out {
			out[i] /= total
		}
		j.store(c, 3, r*j.width, out)
	}
}
