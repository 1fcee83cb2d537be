package routes

import (
	"fmt"

	"github.com/mlxc/mlxc/ir"
)

// Affine is affine quantization: codes of so many bits, a scale and a bias for each group of codes of a row.
type Affine struct {
	Bits, Group int64
}

// Matrix is a quantized matrix [..., N, K], or [..., K, N] where it is not transposed.
type Matrix struct {
	Codes, Scales, Biases Array
	Affine
	Transposed bool
}

// matrixFrom has the rows from which on a matrix-matrix kernel takes a transposed matrix: by the
// generation and whether the chip is an Ultra, for matrices of both sides up to 2048, up to 4096, and larger.
// The first row that a chip meets holds. A matrix that is not transposed has its own limit.
var matrixFrom = []struct {
	generation           int // this one and later
	ultra                bool
	small, medium, large int64
}{
	{generation: 17, small: 33, medium: 25, large: 13},
	{generation: 15, small: 13, medium: 15, large: 13},
	{generation: 13, small: 14, medium: 10, large: 6},
	{generation: 0, small: 18, medium: 12, large: 10},
	{generation: 0, ultra: true, small: 32, medium: 18, large: 12},
}

const matrixFromPlain = 4

func (c Chip) matrixFrom(m Matrix, k, n int64) int64 {
	if !m.Transposed {
		return matrixFromPlain
	}
	for _, l := range matrixFrom {
		if c.Generation < l.generation || l.ultra != (c.Letter == 'd') {
			continue
		}
		switch side := max(k, n); {
		case side <= 2048:
			return l.small
		case side <= 4096:
			return l.medium
		}
		return l.large
	}
	return 0
}

// wideFrom is the generation from which on a few rows share the codes that they read.
const wideFrom = 15

// fastStep is how much of K a simdgroup of qmv_fast reads in a step, by bits.
var fastStep = map[int64]int64{2: 512, 3: 512, 4: 512, 5: 512, 6: 256, 8: 256}

// splitWide is the inner dimension from which on qvm splits it.
const splitWide = 1024

// quantizedProduct is what routes of quantized products ask for.
type quantizedProduct struct {
	x, out  Array
	m       Matrix
	rows    Size // of x, with the batch where that folds into them
	k, n    int64
	batch   Size
	batched bool
}

// QuantizedMatmul sends x·m, and returns the result. x is [..., M, K].
func (e *Encoder) QuantizedMatmul(x Array, m Matrix) Array {
	e.begin()
	if e.Version == August2024 {
		return e.seedQuantizedMatmul(x, m)
	}
	n, ok := e.outer(m)
	if !ok {
		return Array{}
	}
	if x.Rank() > 2 && m.Codes.Rank() > 2 {
		batch := broadcastShapes(x.Shape[:x.Rank()-2], m.Codes.Shape[:m.Codes.Rank()-2])
		for _, a := range []*Array{&x, &m.Codes, &m.Scales, &m.Biases} {
			*a = a.broadcast(append(with(batch), a.Shape[a.Rank()-2:]...))
		}
	}
	out := e.temporary(x.Type, with(x.Shape[:x.Rank()-1], ir.Const(n))...)
	x = e.contiguousMatrix(x)
	m = e.contiguousMatrices(m)
	p := quantizedProduct{x: x, m: m, out: out, k: e.fixed(x.Dim(-1)), n: e.fixed(out.Dim(-1))}
	if m.Codes.Rank() == 2 && x.rowContiguous() {
		p.rows, p.batch = divide(x.Elements(), p.k), ir.Const(1)
	} else {
		p.rows, p.batch = x.Dim(-2), product(out.Shape[:out.Rank()-2])
	}
	p.batched = e.at(p.batch) > 1
	if e.Flat {
		e.flatten(&p)
	}
	e.take(e.quantizedWays(p))
	return out
}

// flatten makes one dimension of the batch of a product, or of all rows of one that has no batch.
func (e *Encoder) flatten(p *quantizedProduct) {
	if !p.batched {
		p.x, p.out = e.Reshape(p.x, []Size{p.rows, ir.Const(p.k)}), e.Reshape(p.out, []Size{p.rows, ir.Const(p.n)})
		for _, a := range []*Array{&p.m.Codes, &p.m.Scales, &p.m.Biases} {
			*a = e.Reshape(*a, a.Shape[a.Rank()-2:])
		}
		return
	}
	batch := p.out.Shape[:p.out.Rank()-2]
	p.out = e.Reshape(p.out, []Size{p.batch, p.rows, ir.Const(p.n)})
	for _, a := range []*Array{&p.x, &p.m.Codes, &p.m.Scales, &p.m.Biases} {
		*a = e.stacked(a.broadcast(append(with(batch), a.Shape[a.Rank()-2:]...)))
	}
}

// stacked returns the matrices of a as a stack of one dimension, in a copy where they do not lie so.
func (e *Encoder) stacked(a Array) Array {
	at := a.Rank() - 2
	shape, strides := e.collapse(a.Shape[:at], a.Strides[:at])
	switch {
	case at == 0:
		shape, strides = sizes(1), [][]Size{sizes(0)}
	case len(shape) > 1:
		a = e.contiguousCopy(a)
		return e.stacked(a)
	}
	a.Shape = append(with(shape), a.Shape[at:]...)
	a.Strides = append(with(strides[0]), a.Strides[at:]...)
	return a
}

// quantizedWays lists how a quantized product can be sent, what MLX takes first.
func (e *Encoder) quantizedWays(p quantizedProduct) (ways []way) {
	rows, m := e.at(p.rows), p.m
	add := func(when bool, kernel string, send func()) {
		if when {
			ways = append(ways, way{kernel, send})
		}
	}
	split := int64(1)
	if m.Transposed && !p.batched && p.rows.IsConst() {
		split = splitRows(rows, p.k, p.n, m.Group)
	}
	many := rows >= e.Chip.matrixFrom(m, p.k, p.n) || e.Once && rows > 1 && m.Transposed
	add(many && split > 1, p.name("qmm_t_splitk")+aligned(p.n, 32), func() { e.qmmSplit(p, split) })
	add(many && m.Transposed, p.name("qmm_t")+aligned(p.n, 32)+p.batchName(), func() { e.qmm(p) })
	add(many && !m.Transposed, p.name("qmm_n")+p.batchName(), func() { e.qmm(p) })
	if !m.Transposed {
		add(p.k < splitWide, p.name("qvm")+p.batchName(), func() { e.qvm(p) })
		parts := splitParts(p.k)
		add(p.k >= splitWide, fmt.Sprintf("%s_spk_%d", p.name("qvm_split_k"), parts), func() { e.qvmSplit(p, parts) })
		add(true, p.name("qvm")+p.batchName(), func() { e.qvm(p) })
		return ways
	}
	add((p.k == 64 || p.k == 128) && m.Bits&(m.Bits-1) == 0, fmt.Sprintf("%s_d_%d%s", p.name("qmv_quad"), p.k, p.batchName()),
		func() { e.qmvQuad(p) })
	tile := ceil(rows, ceil(rows, 5))
	add(rows >= 2 && e.Chip.Generation >= wideFrom, fmt.Sprintf("%s_nv_%d_kl_8%s", p.name("qmv_wide"), tile, p.batchName()),
		func() { e.qmvWide(p, tile) })
	add(p.fast(e.Version), p.vectorName(e.Version, "qmv_fast"), func() { e.qmv(p) })
	add(true, p.vectorName(e.Version, "qmv"), func() { e.qmv(p) })
	return ways
}

// outer returns N.
func (e *Encoder) outer(m Matrix) (int64, bool) {
	row := e.fixed(m.Codes.Dim(-1)) * 32 / m.Bits
	if scaled := e.fixed(m.Scales.Dim(-1)) * m.Group; row != scaled {
		e.fail("the codes have rows of %d elements, and the scales of %d", row, scaled)
		return 0, false
	}
	if m.Transposed {
		return e.fixed(m.Codes.Dim(-2)), true
	}
	return row, true
}

// contiguousMatrix returns a, or a copy if the last two dimensions are not a row-contiguous matrix.
func (e *Encoder) contiguousMatrix(a Array) Array {
	if a.Rank() < 2 && isOne(a.Stride(0)) || a.Rank() >= 2 && a.Stride(-2).Equal(a.Dim(-1)) && isOne(a.Stride(-1)) {
		return a
	}
	return e.contiguousCopy(a)
}

func (e *Encoder) contiguousMatrices(m Matrix) Matrix {
	m.Codes, m.Scales, m.Biases = e.contiguousMatrix(m.Codes), e.contiguousMatrix(m.Scales), e.contiguousMatrix(m.Biases)
	return m
}

// name returns a kernel's name without what only its form has.
func (p quantizedProduct) name(form string) string {
	return fmt.Sprintf("affine_%s_%s_gs_%d_b_%d", form, metal(p.x.Type), p.m.Group, p.m.Bits)
}

func (p quantizedProduct) batchName() string {
	if p.batched {
		return "_batch_1"
	}
	return "_batch_0"
}

// aligned is the part of a name that says whether N fills tiles.
func aligned(n, tile int64) string { return fmt.Sprintf("_alN_%t", n%tile == 0) }

// operands binds the matrix, x and out from slot 0 on, then numbers of 4 bytes.
func (e *Encoder) operands(p quantizedProduct, out Array, numbers ...Size) (slot int) {
	e.input(0, p.m.Codes)
	e.input(1, p.m.Scales)
	e.input(2, p.m.Biases)
	e.input(3, p.x)
	e.output(4, out)
	for i, n := range numbers {
		e.i32(5+i, n)
	}
	return 5 + len(numbers)
}

// shapes binds the shapes and strides of x and the matrix, by which a kernel finds the matrices of a batch.
func (e *Encoder) shapes(slot int, p quantizedProduct) int {
	e.count(slot, p.x.Rank()-2)
	e.i32(slot+1, p.x.Shape...)
	e.i64(slot+2, p.x.Strides...)
	e.count(slot+3, p.m.Codes.Rank()-2)
	e.i32(slot+4, p.m.Codes.Shape...)
	e.i64(slot+5, p.m.Codes.Strides...)
	e.i64(slot+6, p.m.Scales.Strides...)
	e.i64(slot+7, p.m.Biases.Strides...)
	return slot + 8
}

func (e *Encoder) batchShapes(slot int, p quantizedProduct) {
	if p.batched {
		e.shapes(slot, p)
	}
}

func (e *Encoder) qmvQuad(p quantizedProduct) {
	e.batchShapes(e.operands(p, p.out, ir.Const(p.k), ir.Const(p.n)), p)
	e.threadgroups(grid(p.rows, ir.Const(ceil(p.n, 64)), p.batch), 32, 1, 1)
}

// qmvWide takes up to five rows at a time: as few tiles of rows as cover them, and the least tile that does.
func (e *Encoder) qmvWide(p quantizedProduct, tile int64) {
	e.batchShapes(e.operands(p, p.out, ir.Const(p.k), ir.Const(p.n), p.rows), p)
	e.threadgroups([3]ir.Extent{tiles(p.rows, tile), ir.Ext(ceil(p.n, 8)), {Num: p.batch, Div: 1}}, 32, 2, 1)
}

// fast reports whether qmv_fast takes a matrix. That of 0.32.4 has a variant for partial rows: N that is not a
// multiple of 8.
func (p quantizedProduct) fast(v Version) bool {
	return (p.n%8 == 0 || v == Release0_32_4) && p.k%fastStep[p.m.Bits] == 0
}

// vectorName returns the name of qmv or qmv_fast. 0.32.4 also says whether rows are partial, whether there is a scale for
// all, and how many results a simdgroup computes.
func (p quantizedProduct) vectorName(v Version, form string) string {
	name := p.name(form) + p.batchName()
	if v == Release0_32_4 {
		name += fmt.Sprintf("_pr_%d_hgs_0_r_4", digit(form == "qmv_fast" && p.n%8 != 0))
	}
	return name
}

func (e *Encoder) qmv(p quantizedProduct) {
	e.batchShapes(e.operands(p, p.out, ir.Const(p.k), ir.Const(p.n)), p)
	e.threadgroups(grid(p.rows, ir.Const(ceil(p.n, 8)), p.batch), 32, 2, 1)
}

// columnTile is how many columns a threadgroup of qvm takes.
func (p quantizedProduct) columnTile() int64 { return 2 * min(p.m.Group, 32) }

func (e *Encoder) qvm(p quantizedProduct) {
	e.batchShapes(e.operands(p, p.out, ir.Const(p.k), ir.Const(p.n)), p)
	e.threadgroups(grid(p.rows, ir.Const(ceil(p.n, p.columnTile())), p.batch), 32, 2, 1)
}

// splitParts is in how many parts qvm_split_k computes a product.
func splitParts(k int64) int64 {
	if k > 8192 {
		return 32
	}
	return 8
}

// qvmSplit computes parts of K side by side, as a batch of products, and adds them up.
func (e *Encoder) qvmSplit(p quantizedProduct, split int64) {
	part := ceil(p.k, split)
	rank := p.out.Rank()
	shape := append(with(p.out.Shape[:rank-2], ir.Const(split)), p.out.Shape[rank-2:]...)
	parts := e.temporary(p.x.Type, shape...)

	q := p
	q.x = splitDimension(p.x, split, ir.Const(part))
	q.x.Shape[q.x.Rank()-1] = ir.Const(p.k / split)
	q.x.Strides[q.x.Rank()-2] = ir.Const(part)
	for _, a := range []*Array{&q.m.Codes, &q.m.Scales, &q.m.Biases} {
		*a = splitDimension(*a, split, a.Dim(-1).Scale(part))
		a.Shape[a.Rank()-2] = ir.Const(p.k / split)
	}

	slot := e.shapes(e.operands(p, parts, ir.Const(part), ir.Const(p.n)), q)
	e.i32(slot, ir.Const(p.k-(split-1)*part))
	e.threadgroups(grid(p.rows, ir.Const(ceil(p.n, p.columnTile())), p.batch.Scale(split)), 32, 2, 1)
	e.columnReduce(sum, parts, p.out, []int{rank - 2}, reduction{shape: sizes(split), strides: []Size{parts.Stride(-3)}})
}

// splitDimension inserts a dimension of the parts of a matrix before its last two.
func splitDimension(a Array, split int64, stride Size) Array {
	at := a.Rank() - 2
	a.Shape = append(with(a.Shape[:at], ir.Const(split)), a.Shape[at:]...)
	a.Strides = append(with(a.Strides[:at], stride), a.Strides[at:]...)
	return a
}

func (e *Encoder) qmm(p quantizedProduct) {
	e.batchShapes(e.operands(p, p.out, ir.Const(p.k), ir.Const(p.n), p.rows), p)
	e.threadgroups([3]ir.Extent{ir.Ext(ceil(p.n, 32)), tiles(p.rows, 32), {Num: p.batch, Div: 1}}, 32, 2, 2)
}

// splitRows returns in how many parts of K qmm_t_splitk computes a product: as many as make 512
// threadgroups, each a whole number of groups and of tiles of 32.
func splitRows(rows, k, n, group int64) int64 {
	step := max(group, 32)
	split := min(max(1, 512/(ceil(n, 32)*ceil(rows, 32))), k/step)
	for split > 1 && k%(split*step) != 0 {
		split--
	}
	return split
}

func (e *Encoder) qmmSplit(p quantizedProduct, split int64) {
	t := p.x.Type
	if e.Version == Release0_32_4 {
		t = ir.F32
	}
	parts := e.temporary(t, append(sizes(split), p.out.Shape...)...)
	stride := p.rows.Scale(p.n)
	e.operands(p, parts, ir.Const(p.k), ir.Const(p.n), p.rows, ir.Const(p.k/split), stride)
	e.threadgroups([3]ir.Extent{ir.Ext(ceil(p.n, 32)), tiles(p.rows, 32), ir.Ext(split)}, 32, 2, 2)
	if e.Version != Release0_32_4 {
		e.columnReduce(sum, parts, p.out, []int{0}, reduction{shape: sizes(split), strides: []Size{parts.Stride(0)}})
		return
	}
	e.accumulate(parts, p.out, split, e.fixed(p.rows), p.n, "")
	e.threadsOf(p.n, e.fixed(p.rows))
}
