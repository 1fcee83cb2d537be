package routes

import (
	"fmt"
	"math"

	"github.com/mlxc/mlxc/ir"
)

// Attention is what scaled dot product attention is told beside its operands.
type Attention struct {
	Scale  float32
	Causal bool
	Mask   Array // may be left out; boolean or added
	Sinks  Array // may be left out
}

// vectorQueries is up to how many queries the kernels of a query at a time take.
const vectorQueries = 8

// fusedWidths are the widths of heads for which attention is one kernel: up to 8 queries, and more.
var fusedWidths = struct{ vector, full []int64 }{[]int64{64, 96, 128, 256}, []int64{64, 72, 80, 96, 128}}

// twoPassFrom says from how many keys on the vector kernel splits them among threadgroups: on large chips,
// and where query heads share keys.
var twoPassFrom = struct{ large, shared int64 }{1024, 4096}

// twoPassBlocks says into how many blocks: by the letter of the chip (0 for the rest), the simdgroups that
// share a block (heads that share keys × queries) and the keys. The first row that holds is taken.
var twoPassBlocks = []struct {
	letter             byte
	groupsFrom, groups int64 // from, up to
	keysFrom, keys     int64 // from, up to
	blocks             int64
}{
	{'s', 5, math.MaxInt64, 1025, 8192, 128},
	{'s', 5, math.MaxInt64, 8193, 32768, 256},
	{'s', 5, math.MaxInt64, 32769, 65536, 512},
	{'s', 5, math.MaxInt64, 65537, math.MaxInt64, 1024},
	{'s', 0, math.MaxInt64, 0, math.MaxInt64, 64},
	{'d', 0, 2, 8193, math.MaxInt64, 256},
	{'d', 6, math.MaxInt64, 16384, 65535, 512},
	{'d', 6, math.MaxInt64, 65536, math.MaxInt64, 1024},
	{'d', 0, math.MaxInt64, 0, math.MaxInt64, 128},
	{0, 4, math.MaxInt64, 0, math.MaxInt64, 64},
	{0, 0, math.MaxInt64, 0, math.MaxInt64, 32},
}

func (c Chip) large() bool { return c.Letter == 's' || c.Letter == 'd' }

func (c Chip) blocks(groups, keys int64) int64 {
	letter := c.Letter
	if !c.large() {
		letter = 0
	}
	for _, b := range twoPassBlocks {
		if b.letter == letter && groups >= b.groupsFrom && groups <= b.groups && keys >= b.keysFrom && keys <= b.keys {
			return b.blocks
		}
	}
	return 0
}

// fusedAttention reports whether attention is one kernel (or two passes of one). Vector kernels also take
// keys of 192 with values of 128.
func (e *Encoder) fusedAttention(q, k, v Array, o Attention) bool {
	queries, keys := e.at(q.Dim(2)), e.at(k.Dim(2))
	width, values := e.fixed(q.Dim(-1)), e.fixed(v.Dim(-1))
	if queries > vectorQueries {
		return width == values && contains(fusedWidths.full, width) && (!o.Causal || queries <= keys)
	}
	shared := e.fixed(q.Dim(1)) / e.fixed(k.Dim(1))
	return (width == values && contains(fusedWidths.vector, width) || width == 192 && values == 128) &&
		queries <= keys && queries*shared <= 32
}

func contains(list []int64, n int64) bool {
	for _, m := range list {
		if m == n {
			return true
		}
	}
	return false
}

// Attention sends softmax(scale·q·kᵀ + mask)·v for q [B, Hq, L, D], k [B, Hk, N, D] and v [B, Hk, N, V].
func (e *Encoder) Attention(q, k, v Array, o Attention) Array {
	if !e.fusedAttention(q, k, v, o) {
		return e.plainAttention(q, k, v, o)
	}
	e.begin()
	if o.Mask.Present() {
		o.Mask = o.Mask.broadcast([]Size{q.Dim(0), q.Dim(1), q.Dim(2), k.Dim(2)})
	}
	unitStride := func(a Array) bool { return isOne(a.Stride(-1)) }
	if o.Sinks.Present() {
		o.Sinks = e.copyUnless(unitStride, o.Sinks)
	}
	if e.at(q.Dim(2)) > vectorQueries {
		q, k, v = e.copyUnless(unitStride, q), e.copyUnless(unitStride, k), e.copyUnless(unitStride, v)
		if o.Mask.Present() {
			o.Mask = e.copyUnless(unitStride, o.Mask)
		}
		return e.fullAttention(q, k, v, o)
	}
	q.Spare = false // MLX holds q twice here, and takes the memory of a copy alone
	if !queryFits(q) {
		q = e.contiguousCopy(q)
		q.Spare = true
	}
	k, v = e.copyUnless(keysFit, k), e.copyUnless(keysFit, v)
	shape := with(q.Shape[:3], v.Dim(-1))
	out := e.temporary(q.Type, shape...)
	if q.Spare && q.rowContiguous() && q.Elements().Equal(out.Elements()) {
		out.Buffer, out.Offset = q.Buffer, q.Offset
	}
	if m := o.Mask; m.Present() && !m.rowContiguous() && !isOne(q.Dim(0)) && !isOne(q.Dim(1)) &&
		!m.Stride(0).Equal(times(m.Stride(1), m.Dim(1))) {
		o.Mask = e.contiguousCopy(m)
	}
	o.Causal = o.Causal && e.at(q.Dim(2)) > 1
	keys, shared := e.at(k.Dim(2)), e.fixed(k.Dim(1)) < e.fixed(q.Dim(1))
	var ways []way
	if e.Chip.large() && keys >= twoPassFrom.large || shared && keys >= twoPassFrom.shared {
		ways = append(ways, e.twoPasses(q, k, v, out, o))
	}
	e.take(append(ways, way{vectorName("sdpa_vector", q, v), func() { e.vectorAttention(q, k, v, out, o) }}))
	return out
}

func (e *Encoder) copyUnless(fits func(Array) bool, a Array) Array {
	if fits(a) {
		return a
	}
	return e.contiguousCopy(a)
}

// queryFits: row-contiguous, or of one batch or one head, with the other turned with the positions.
func queryFits(a Array) bool {
	if a.rowContiguous() {
		return true
	}
	i := 1
	switch {
	case isOne(a.Dim(0)):
	case isOne(a.Dim(1)):
		i = 0
	default:
		return false
	}
	return isOne(a.Stride(3)) && a.Stride(2).Equal(times(a.Dim(3), a.Dim(i))) && a.Stride(i).Equal(a.Dim(3))
}

// keysFit: rows without gaps, and batches and heads at one distance.
func keysFit(a Array) bool {
	return isOne(a.Stride(-1)) && (isOne(a.Dim(0)) || isOne(a.Dim(1)) || a.Stride(0).Equal(times(a.Stride(1), a.Dim(1))))
}

// headStride is the distance of the heads of keys or values, or of batches where there is one head.
func headStride(a Array) Size {
	if isOne(a.Dim(1)) {
		return a.Stride(0)
	}
	return a.Stride(1)
}

// vectorConstants sets what kernels of a query at a time are specialized by.
func (e *Encoder) vectorConstants(q Array, o Attention) (added bool) {
	masked := o.Mask.Present()
	added = masked && o.Mask.Type != ir.Bool
	for i, c := range []bool{masked, !q.rowContiguous(), o.Causal, masked && !added, added, o.Sinks.Present()} {
		e.constant(20+i, c)
	}
	return added
}

// vectorMask binds a mask, in the next slot if it is added, and its strides behind both.
func (e *Encoder) vectorMask(slot int, m Array, added bool) {
	if !m.Present() {
		return
	}
	at := slot
	if added {
		at++
	}
	e.input(at, m)
	stride := func(i int) Size {
		if isOne(m.Dim(i)) {
			return ir.Const(0)
		}
		return m.Stride(i)
	}
	head := stride(1)
	if isOne(m.Dim(1)) {
		head = stride(0)
	}
	e.i32(slot+2, stride(3))
	e.i32(slot+3, stride(2))
	e.i32(slot+4, head)
}

// vectorName spells a kernel of a query at a time.
func vectorName(form string, q, v Array) string {
	return fmt.Sprintf("%s_%s_%d_%d", form, metal(q.Type), q.Dim(-1).Const, v.Dim(-1).Const)
}

func (e *Encoder) vectorAttention(q, k, v, out Array, o Attention) {
	heads := e.fixed(q.Dim(1))
	added := e.vectorConstants(q, o)
	e.input(0, q)
	e.input(1, k)
	e.input(2, v)
	e.output(3, out)
	e.i32(4, ir.Const(heads/e.fixed(k.Dim(1))))
	e.i32(5, k.Dim(2))
	for i, s := range []Size{headStride(k), k.Stride(2), headStride(v), v.Stride(2)} {
		e.i64(6+i, s)
	}
	e.f32(10, o.Scale)
	e.vectorMask(11, o.Mask, added)
	if o.Sinks.Present() {
		e.input(16, o.Sinks)
		e.i32(17, ir.Const(heads))
	}
	e.threadgroups(grid(q.Dim(0).Scale(heads), q.Dim(2), ir.Const(1)), 1024, 1, 1)
}

// twoPasses is attention by the kernel that splits the keys among threadgroups.
func (e *Encoder) twoPasses(q, k, v, out Array, o Attention) way {
	heads, keyHeads, queries := e.fixed(q.Dim(1)), e.fixed(k.Dim(1)), e.at(q.Dim(2))
	width, values, keys := e.fixed(q.Dim(-1)), e.fixed(v.Dim(-1)), e.at(k.Dim(2))
	form := ""
	plain := !o.Mask.Present() && !o.Sinks.Present()
	if shared := heads / keyHeads; plain && queries == 1 && width == values && keys >= 8192 {
		eight := shared == 8 && (width == 64 || width == 128)
		switch {
		case eight && e.Version == Commit846d1762:
			form = "_gqa"
		case e.Version == Release0_32_4 && (eight || (shared == 12 || shared == 16) && width == 128):
			form = fmt.Sprintf("_gqa_%d", shared)
		}
	}
	return way{vectorName("sdpa_vector_2pass_1"+form, q, v), func() { e.twoPassAttention(q, k, v, out, o) }}
}

func (e *Encoder) twoPassAttention(q, k, v, out Array, o Attention) {
	heads, keyHeads, queries := e.fixed(q.Dim(1)), e.fixed(k.Dim(1)), e.fixed(q.Dim(2))
	values, keys := e.fixed(v.Dim(-1)), e.at(k.Dim(2))
	shared := heads / keyHeads
	blocks := e.Chip.blocks(shared*queries, keys)
	outside := with(out.Shape[:3], ir.Const(blocks))
	parts := e.temporary(q.Type, with(outside, ir.Const(values))...)
	sums, maxima := e.temporary(ir.F32, outside...), e.temporary(ir.F32, outside...)

	added := e.vectorConstants(q, o)
	e.next.Constants = append(e.next.Constants, Constant{Index: 26, Value: blocks})
	e.input(0, q)
	e.input(1, k)
	e.input(2, v)
	e.output(3, parts)
	e.output(4, sums)
	e.output(5, maxima)
	e.i32(7, k.Dim(2))
	for i, s := range []Size{headStride(k), k.Stride(2), headStride(v), v.Stride(2)} {
		e.i64(8+i, s)
	}
	e.f32(12, o.Scale)
	e.vectorMask(13, o.Mask, added)
	if o.Sinks.Present() {
		e.input(18, o.Sinks)
	}
	e.threadgroups(grid(ir.Const(keyHeads), q.Dim(0), ir.Const(blocks)), 32, shared, queries)

	e.kernel("sdpa_vector_2pass_2_%s_%d", metal(q.Type), values)
	e.input(0, parts)
	e.input(1, sums)
	e.input(2, maxima)
	e.output(3, out)
	e.i32(4, ir.Const(blocks))
	e.threadgroups(grid(q.Dim(0).Scale(heads), q.Dim(2), ir.Const(1)), 1024, 1, 1)
}

// fullTiles are the queries and keys of a tile of the full kernel; wide heads take fewer keys.
func fullTiles(width int64) (queries, keys int64) {
	if width < 128 {
		return 32, 32
	}
	return 32, 16
}

// fullAttention sends the kernel of many queries. Its result lies with the heads of a position together.
func (e *Encoder) fullAttention(q, k, v Array, o Attention) Array {
	batch, heads, queries, width := e.fixed(q.Dim(0)), e.fixed(q.Dim(1)), e.fixed(q.Dim(2)), e.fixed(q.Dim(3))
	keys, values := e.fixed(k.Dim(2)), e.fixed(v.Dim(3))
	out := e.temporary(q.Type, with(q.Shape[:3], ir.Const(values))...)
	out.Strides = sizes(queries*heads*values, values, heads*values, 1)

	tileQ, tileK := fullTiles(width)
	mask := q.Type
	if o.Mask.Present() {
		mask = o.Mask.Type
	}
	widths := fmt.Sprintf("bd%d", width)
	if e.Version == Release0_32_4 {
		widths += fmt.Sprintf("_bv%d", values)
	}
	e.kernel("steel_attention_%s_bq%d_bk%d_%s_wm4_wn1_mask%s", plain(q.Type), tileQ, tileK, widths, plain(mask))
	e.constant(200, queries%tileQ == 0)
	e.constant(201, keys%tileK == 0)
	e.constant(300, o.Mask.Present())
	e.constant(301, o.Causal)
	e.constant(302, o.Sinks.Present())
	if e.Version == Release0_32_4 {
		e.constant(303, false) // the sums are not kept
	}
	e.input(0, q)
	e.input(1, k)
	e.input(2, v)
	e.output(3, out)
	var params []Number
	for _, n := range []int64{
		batch, heads, width, queries, keys, heads / e.fixed(k.Dim(1)), int64(math.Float32bits(o.Scale)),
		ceil(queries, tileQ), ceil(keys, tileK), queries / tileQ, keys / tileK, queries % tileQ, keys % tileK, keys - queries,
	} {
		params = append(params, Number{ir.Const(n), 4})
	}
	for _, a := range []Array{q, k, v, out} {
		for _, s := range a.Strides[:3] {
			params = append(params, Number{s, 8})
		}
	}
	e.mixed(4, params...)
	if o.Mask.Present() {
		e.i64(5, o.Mask.Strides[:3]...)
		e.input(6, o.Mask)
	}
	if o.Sinks.Present() {
		e.input(7, o.Sinks)
	}
	e.threadgroups(grid(ir.Const(ceil(queries, tileQ)), ir.Const(heads), ir.Const(batch)), 32, 4, 1)
	return out
}

// lowest is the least number of a type, which stands for a score that a mask takes out.
var lowest = map[ir.DType]float32{ir.F32: -math.MaxFloat32, ir.F16: -65504, ir.BF16: math.Float32frombits(0xff7f0000)}

// plainAttention sends attention as the operations that it is made of. Query heads that share keys are a
// dimension of their own.
func (e *Encoder) plainAttention(q, k, v Array, o Attention) Array {
	batch, heads, keyHeads, length, keys := q.Dim(0), e.fixed(q.Dim(1)), e.fixed(k.Dim(1)), q.Dim(2), k.Dim(2)
	shared := heads / keyHeads
	mask := o.Mask
	var queryAt, keyAt Array
	if o.Causal {
		key := func() { keyAt = e.Arange(ir.I32, keys, ir.Const(0), ir.Const(1)) }
		query := func() { queryAt = e.Arange(ir.I32, length, keys.Sub(length), ir.Const(1)) }
		// MLX evaluates first what is deeper in its graph, and of what is as deep the last operand. The places
		// of one query are broadcast, the keys beside them are not.
		if isOne(length) && !isOne(keys) {
			query()
			key()
		} else {
			key()
			query()
		}
	}
	q = e.Binary("Multiply", e.number(q.Type, o.Scale), q, q.Type)
	if o.Causal {
		mask = e.Binary("GreaterEqual", queryAt.expand(1), keyAt.expand(0), ir.Bool)
	} else if mask.Present() {
		mask = mask.broadcast([]Size{batch, q.Dim(1), length, keys})
	}
	group := func(a Array, axis int) Array { // splits a dimension of heads
		shape := append(with(a.Shape[:axis], sizes(keyHeads, shared)...), a.Shape[axis+1:]...)
		return e.Reshape(a, shape)
	}
	if shared > 1 {
		q, k, v = group(q, 1), k.expand(2), v.expand(2)
		if rank := mask.Rank(); rank >= 3 {
			mask = group(mask, rank-3)
		}
	}
	scores := e.Matmul(q, k.turned())
	scores.Spare = true
	switch {
	case mask.Present() && mask.Type == ir.Bool:
		scores = e.Select(mask, scores, e.number(scores.Type, lowest[scores.Type]))
	case mask.Present():
		scores = e.Binary("Add", scores, mask, scores.Type)
	}
	last := scores.Rank() - 1
	if sinks := o.Sinks; sinks.Present() {
		sinks = sinks.expand(0).expand(2).expand(3)
		if shared > 1 {
			sinks = group(sinks, 1)
		}
		scores = e.Concatenate(last, sinks.broadcast(with(scores.Shape[:last], ir.Const(1))), scores)
	}
	scores.Spare = true
	scores = e.Softmax(scores, true)
	if o.Sinks.Present() {
		scores.Offset = scores.Offset.AddConst(scores.Type.Size())
		scores.Shape = with(scores.Shape[:last], keys)
	}
	out := e.Matmul(scores, v)
	if shared > 1 {
		out = e.Reshape(out, with(append(sizes(), batch, ir.Const(heads), length), v.Dim(-1)))
	}
	return out
}
