package cpu

import (
	"fmt"
	"math"

	"github.com/mlxc/mlxc/backend/cpu/internal/simd"
)

// Function constants of kernels that attend with masks and sinks.
const (
	attendMasked = 20
	attendByBool = 23
	attendAdding = 24
	attendSinks  = 25
)

// attention is what kernels share that take the keys of one query one by one, with masks and sinks and heads of any
// width:
//
//	s[j]   = Σ_e (scale*query[e]) * keys[j,e] + added[j]
//	out[e] = Σ_j exp(s[j] - m) * values[j,e] / Σ_j exp(s[j] - m)
//
// over the keys j that the query sees, m being the greatest of s. A sink is one more score, without a value. Keys and
// values that the query does not see do not matter, whatever they are.
type attention struct {
	floatType
	keys, values int // elements of a row
	n            int // keys
	kHead, kSeq  int
	vHead, vSeq  int
	scale        float32
	masks        attentionMask
}

// attentionMask is where masks are: the slots of a boolean one and of one that is added, their strides, and what the
// added one does to a key: by -inf or NaN it takes the key out, if it can.
type attentionMask struct {
	bools, floats     int // slots, -1 if it has none
	head, query, step int
}

func init() {
	for _, t := range floatTypes() {
		for _, w := range [][2]int{{256, 256}, {192, 128}} {
			k := &Kernel{Name: fmt.Sprintf("sdpa_vector_%s_%d_%d", t.name, w[0], w[1])}
			vectorWith(k, t, w[0], w[1])
			Register(k)
		}
	}
}

// vectorWith makes k the twin of sdpa_vector for any masks, sinks and widths; if it is one already, where there are
// masks or sinks.
//
// Arguments: those of [sdpa], and if the function constants 23 or 24 are set 11 bmask, bool[heads, l, n], or 12 fmask, of
// the type, under the strides 15, 14 and 13, i32; if 25 is set 16 sinks of the type, of number 17, i32. A unit is a
// query of a head.
func vectorWith(k *Kernel, t floatType, keys, values int) {
	plain := *k
	rest := func(c *Call) bool { return plain.Run == nil || c.Flag(attendMasked) || c.Flag(attendSinks) }
	k.Units = func(c *Call) int {
		if !rest(c) {
			return plain.Units(c)
		}
		return c.Groups[0] * c.Groups[1]
	}
	k.Cost = func(c *Call) float64 {
		if !rest(c) {
			return plain.Cost(c)
		}
		return 1000 + 0.5*float64(c.Int(5)*(keys+values))
	}
	k.Run = func(c *Call, w *Worker, lo, hi int) {
		if !rest(c) {
			plain.Run(c, w, lo, hi)
			return
		}
		heads, queries := c.Groups[0], c.Groups[1]
		a := attention{
			floatType: t, keys: keys, values: values, n: c.Int(5), kHead: c.Long(6, 0), kSeq: c.Long(7, 0), vHead: c.Long(8, 0), vSeq: c.Long(9, 0),
			scale: c.Float(10), masks: masksOf(c, 11, 13),
		}
		out, buf := a.room(w)
		for u := lo; u < hi; u++ {
			h, q := u/queries, u%queries
			at, last := u, a.n
			if c.Flag(sdpaQueryTransposed) {
				at = q*heads + h
			}
			if c.Flag(sdpaCausal) {
				last = a.n - queries + q + 1
			}
			s := streamed{out: out, top: noScore}
			if c.Flag(attendSinks) {
				s.top, s.sum = t.at(c, 16, h%c.Int(17)), 1
			}
			a.stream(c, buf, &s, at*keys, h/c.Int(4), keyRange{0, last, 1}, h, q)
			divide(out, s.sum)
			t.store(c, 3, u*values, out)
		}
	}
}

// masksOf are the masks of a call by its function constants, whose slots begin at `bools` and whose strides, of keys,
// queries and heads, at `strides`.
func masksOf(c *Call, bools, strides int) attentionMask {
	m := attentionMask{bools: -1, floats: -1}
	if !c.Flag(attendMasked) {
		return m
	}
	if c.Flag(attendByBool) {
		m.bools = bools
	}
	if c.Flag(attendAdding) {
		m.floats = bools + 1
	}
	m.step, m.query, m.head = c.Int(strides), c.Int(strides+1), c.Int(strides+2)
	return m
}

// at is an element of a device argument.
func (t floatType) at(c *Call, slot, i int) float32 {
	var x [1]float32
	t.load(c, x[:], slot, i)
	return x[0]
}

// room returns scratch memory: for the result of a query, and for what [attention.stream] computes with.
func (a *attention) room(w *Worker) (out, buf []float32) {
	all := w.Scratch(2*a.keys + 2*a.values)
	return all[:a.values], all[a.values:]
}

// streamed is the state of a softmax that takes keys one by one: the maximum of the scores so far, and the sums of the
// weights and of the weighted values, all relative to that maximum.
type streamed struct {
	top, sum float32
	out      []float32
}

// keyRange are the keys first, first + every, … before last.
type keyRange struct{ first, last, every int }

// stream adds the keys of a range to s. The query begins at element `query` of argument 0.
func (a *attention) stream(c *Call, buf []float32, s *streamed, query, head int, of keyRange, maskHead, maskQuery int) {
	q, key, value := buf[:a.keys], buf[a.keys:2*a.keys], buf[2*a.keys:][:a.values]
	a.load(c, q, 0, query)
	simd.ScaleTo(q, a.scale, q)
	clear(s.out)
	for j := of.first; j < of.last; j += of.every {
		if j%1024 == 0 {
			c.Pause()
		}
		added, seen := a.mask(c, maskHead*a.masks.head+maskQuery*a.masks.query+j*a.masks.step)
		if !seen {
			continue
		}
		a.load(c, key, 1, head*a.kHead+j*a.kSeq)
		a.load(c, value, 2, head*a.vHead+j*a.vSeq)
		s.add(simd.Dot(q, key)+added, value)
	}
}

// add adds a key by its score.
func (s *streamed) add(score float32, value []float32) {
	top := s.top
	if score > top {
		top = score
	}
	e := [2]float32{s.top - top, score - top}
	simd.ExpTo(e[:], e[:])
	s.top, s.sum = top, float32(s.sum*e[0])+e[1]
	simd.ScaleTo(s.out, e[0], s.out)
	simd.Axpy(e[1], value, s.out)
}

// mask is what is added to a score, and whether the key is seen, by element i of the masks.
func (a *attention) mask(c *Call, i int) (added float32, seen bool) {
	if a.masks.bools >= 0 {
		return 0, c.Bytes(a.masks.bools)[i] != 0
	}
	if a.masks.floats >= 0 {
		added = a.at(c, a.masks.floats, i)
		return added, added >= -math.MaxFloat32
	}
	return 0, true
}
