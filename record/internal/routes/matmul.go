package routes

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/mlxc/mlxc/ir"
)

// side is an operand of a matrix product: the matrix as a kernel reads it, whether that is transposed, and
// the distance of its rows, or of its columns if it is transposed.
type side struct {
	Array
	transposed bool
	step       Size
}

func (s side) letter() string {
	if s.transposed {
		return "t"
	}
	return "n"
}

// side returns a if its rows or its columns lie without gaps between elements, and a copy else. Of a vector the
// other distance must be that of a matrix, too.
func (e *Encoder) side(a Array, vector bool) side {
	row, column := a.Stride(-2), a.Stride(-1)
	switch {
	case isOne(column) && (!vector || row.Equal(a.Dim(-1))):
		return side{a, false, row}
	case isOne(row) && (!vector || column.Equal(a.Dim(-2))):
		return side{a, true, column}
	}
	a = e.contiguousCopy(a)
	return side{a, false, a.Dim(-1)}
}

// gemm is a product a·b, or α·a·b + β·c.
type gemm struct {
	a, b        side
	c           Array // may be left out
	out         Array
	m, n, k     int64
	batch       int64  // of the output
	shape       []Size // of the batch, joined
	strides     [3][]Size
	alpha, beta float32
}

// added reports whether c is there.
func (g gemm) added() bool { return g.c.Present() }

// Matmul sends a·b, batches broadcast.
func (e *Encoder) Matmul(a, b Array) Array { return e.AddMM(a, b, Array{}, 1, 0) }

// AddMM sends α·a·b + β·c, batches and c broadcast. c may be left out.
func (e *Encoder) AddMM(a, b, c Array, alpha, beta float32) Array {
	outer := []Size(nil)
	if a.Rank() > 2 && b.Rank() == 2 && c.Rank() <= 1 {
		outer = with(a.Shape[:a.Rank()-1], b.Dim(-1))
		a = e.Reshape(a, []Size{product(a.Shape[:a.Rank()-1]), a.Dim(-1)})
	} else {
		batch := broadcastShapes(a.Shape[:a.Rank()-2], b.Shape[:b.Rank()-2])
		a = a.broadcast(append(with(batch), a.Shape[a.Rank()-2:]...))
		b = b.broadcast(append(with(batch), b.Shape[b.Rank()-2:]...))
	}
	e.begin()
	out := e.temporary(a.Type, with(a.Shape[:a.Rank()-1], b.Dim(-1))...)
	g := gemm{
		out: out, m: e.fixed(a.Dim(-2)), n: e.fixed(b.Dim(-1)), k: e.fixed(a.Dim(-1)),
		batch: e.fixed(product(out.Shape[:out.Rank()-2])), alpha: alpha, beta: beta,
	}
	if c.Present() {
		g.c = c.broadcast(out.Shape)
	}
	g.a, g.b = e.side(a, g.m == 1), e.side(b, g.n == 1)
	e.foldBatch(&g)
	e.product(g)
	if outer != nil {
		out.Shape, out.Strides = outer, rowStrides(outer)
	}
	return out
}

// foldBatch joins the dimensions of the batch, and makes them rows of a where b is the same for all.
func (e *Encoder) foldBatch(g *gemm) {
	g.shape = sizes(1)
	for i := range g.strides {
		g.strides[i] = sizes(0)
	}
	if rank := g.a.Rank(); rank > 2 {
		layouts := [][]Size{g.a.Strides[:rank-2], g.b.Strides[:rank-2]}
		if g.added() {
			layouts = append(layouts, g.c.Strides[:rank-2])
		}
		shape, strides := e.collapse(g.a.Shape[:rank-2], layouts...)
		g.shape = shape
		copy(g.strides[:], strides)
	}
	if g.batch > 1 && !g.a.transposed && len(g.shape) == 1 && g.a.Stride(-2).Equal(ir.Const(g.k)) &&
		g.strides[0][0].Equal(ir.Const(g.m*g.k)) && isZero(g.strides[1][0]) &&
		(!g.added() || g.strides[2][0].Equal(g.c.Stride(-2).Scale(g.m))) {
		g.m *= e.fixed(g.shape[0])
		g.batch, g.shape, g.strides = 1, sizes(1), [3][]Size{sizes(0), sizes(0), sizes(0)}
	}
}

// product sends a gemm by the kernel that MLX takes, or by the next one that there is.
func (e *Encoder) product(g gemm) {
	e.take(e.productWays(g))
}

// productWays lists how a product can be sent, what MLX takes first. The last one is our own.
func (e *Encoder) productWays(g gemm) (ways []way) {
	add := func(kernel string, send func()) { ways = append(ways, way{kernel, send}) }
	if g.m == 1 && g.n == 1 && g.batch == 1 && g.a.rowContiguous() && g.b.rowContiguous() && !g.added() {
		add(dotName(g), func() { e.dotProduct(g) })
	}
	if !g.a.transposed && g.b.transposed {
		if w, ok := e.wide(g.a, g.b, g.m, g.n, g.k, g.out.Type, g.strides[0], g.strides[1]); ok {
			add(wideName(g, w), func() { e.gemvWide(g, w) })
		}
	}
	if min(g.m, g.n) == 1 {
		v := vectorOf(g)
		add(v.name(g), func() { e.gemv(g, v) })
	} else {
		if e.splits(g) {
			s := splitOf(g)
			add(s.name(g), func() { e.gemmSplit(g, s) })
		}
		t := e.Chip.matrixTile(g.out.Type, g.a, g.b, g.m, g.n, g.k, g.batch)
		add(steelName("gemm_fused", g.a.letter(), g.b.letter(), g.a.Type, g.out.Type, t), func() { e.gemmFused(g, t) })
	}
	if !g.added() {
		add(fmt.Sprintf("gemm_%s%s_batch_%s", g.a.letter(), g.b.letter(), plain(g.out.Type)), func() { e.batchProduct(g) })
	}
	return ways
}

// batchProduct sends a product by our own kernel, which takes batches of two dimensions. Operands whose batches do not join to
// as many are copied: first without what they repeat, and if that is not enough with it.
func (e *Encoder) batchProduct(g gemm) {
	e.next = Dispatch{}
	for repeat := 0; len(g.shape) > 2; repeat++ {
		for _, s := range []*side{&g.a, &g.b} {
			at := s.Rank() - 2
			whole := s.Array
			whole.Shape = with(s.Shape)
			for i := range at {
				if repeat == 0 && isZero(s.Strides[i]) {
					whole.Shape[i] = ir.Const(1)
				}
			}
			if shape, _ := e.collapse(whole.Shape[:at], whole.Strides[:at]); repeat > 0 || len(shape) > 1 {
				copied := e.contiguousCopy(whole).broadcast(s.Shape)
				*s = side{copied, false, s.Dim(-1)}
			}
		}
		strides := [][]Size{g.a.Strides[:g.a.Rank()-2], g.b.Strides[:g.b.Rank()-2]}
		shape, joined := e.collapse(g.a.Shape[:g.a.Rank()-2], strides...)
		g.shape = shape
		copy(g.strides[:], joined)
	}
	front := func(sizes []Size, first int64) []Size {
		for len(sizes) < 2 {
			sizes = append([]Size{ir.Const(first)}, sizes...)
		}
		return sizes
	}
	e.kernel("gemm_%s%s_batch_%s", g.a.letter(), g.b.letter(), plain(g.out.Type))
	e.input(0, g.a.Array)
	e.input(1, g.b.Array)
	e.output(2, g.out)
	for i, n := range []Size{ir.Const(g.k), ir.Const(g.n), ir.Const(g.m), g.a.step, g.b.step} {
		e.i32(3+i, n)
	}
	e.i32(8, front(g.shape, 1)...)
	e.i64(9, front(g.strides[0], 0)...)
	e.i64(10, front(g.strides[1], 0)...)
	e.threadgroups(grid(ir.Const(ceil(g.n, 32)), ir.Const(ceil(g.m, 32)), ir.Const(g.batch)), 32, 2, 2)
}

// splitTiles is up to how many tiles of 16 × 16 of the result a product is split along K.
var splitTiles = map[bool]int64{false: 1024, true: 2048} // by whether the chip is a Max or an Ultra

// splits reports whether a product of few tiles and long rows is split along K.
func (e *Encoder) splits(g gemm) bool {
	return g.batch == 1 && ceil(g.m, 16)*ceil(g.n, 16) <= splitTiles[e.Chip.large()] && g.k/16 >= 8 && g.k >= max(g.m, g.n)
}

// splitTile says how a product is split along K: the tile, and the parts, of so many steps of 16 each.
type splitTile struct {
	bm, bn, parts, steps int64
}

func splitOf(g gemm) splitTile {
	small := func(n int64) int64 {
		if n < 40 {
			return 16
		}
		return 32
	}
	parts := min(max(2, powerOf2(g.k/16/(ceil(g.m, 32)*ceil(g.n, 32)))), 32)
	return splitTile{small(g.m), small(g.n), parts, g.k / 16 / parts}
}

func (s splitTile) name(g gemm) string {
	return fmt.Sprintf("steel_gemm_splitk_%s%s_%s_float32_bm%d_bn%d_bk16_wm2_wn2_MN_%saligned_K_%saligned",
		g.a.letter(), g.b.letter(), plain(g.a.Type), s.bm, s.bn, yes(g.m%s.bm == 0 && g.n%s.bn == 0), yes(g.k%16 == 0))
}

// gemmSplit computes parts of K side by side in f32, and adds them up.
func (e *Encoder) gemmSplit(g gemm, s splitTile) {
	bm, bn, parts, steps := s.bm, s.bn, s.parts, s.steps
	split := e.temporary(ir.F32, sizes(parts, g.m, g.n)...)
	e.input(0, g.a.Array)
	e.input(1, g.b.Array)
	e.output(2, split)
	tn, tm := ceil(g.n, bn), ceil(g.m, bm)
	e.i32(3, append(sizes(g.m, g.n, g.k), g.a.step, g.b.step, ir.Const(g.n), ir.Const(tn), ir.Const(tm),
		ir.Const(parts), ir.Const(g.m*g.n), ir.Const(16*steps), ir.Const(0), ir.Const(steps))...)
	e.threadgroups(grid(ir.Const(tn), ir.Const(tm), ir.Const(parts)), 32, 2, 2)

	scaled := g.added() && (g.alpha != 1 || g.beta != 0)
	tail := ""
	if scaled {
		tail = "_axbpy"
	}
	e.accumulate(split, g.out, parts, g.m, g.n, tail)
	if scaled {
		e.input(5, g.c)
		e.i32(6, g.c.Stride(-2))
		e.i32(7, g.c.Stride(-1))
		e.f32(8, g.alpha)
		e.f32(9, g.beta)
	}
	e.threadsOf(g.n, g.m)
}

// accumulate binds what adds up parts of a product [m, n], which lie in f32; tail is the rest of the kernel's name.
func (e *Encoder) accumulate(split, out Array, parts, m, n int64, tail string) {
	e.kernel("steel_gemm_splitk_accum_%s_float32%s", plain(out.Type), tail)
	e.input(0, split)
	e.output(1, out)
	e.i32(2, ir.Const(parts))
	e.i32(3, ir.Const(m*n))
	e.i32(4, ir.Const(n))
}

// threadsOf sends a thread for each element of a matrix [m, n].
func (e *Encoder) threadsOf(n, m int64) {
	x, y := ir.Const(n), ir.Const(m)
	bx, by, bz := e.block(x, y, ir.Const(1))
	e.threads(grid(x, y, ir.Const(1)), bx, by, bz)
}

func yes(b bool) string {
	if b {
		return "t"
	}
	return "n"
}

// powerOf2 returns the least power of two from n on.
func powerOf2(n int64) int64 {
	if n <= 1 {
		return 1
	}
	return 1 << bits.Len64(uint64(n-1))
}

// matrixTile is the tile of a steel gemm: rows, columns and inner elements, simdgroups down and across.
type matrixTile struct {
	bm, bn, bk, wm, wn int64
}

var (
	tall   = matrixTile{64, 32, 32, 2, 2}
	square = matrixTile{64, 64, 16, 1, 2}
	broad  = matrixTile{32, 64, 16, 1, 2}
	common = matrixTile{64, 64, 16, 2, 2}
)

// matrixTiles says which tile a chip takes: by its size (s: small, m: Max, u: Ultra), the type, whether a
// is as it lies and b is transposed, whether the result has 2²⁰ elements, and whether K is below twice the
// longer side of the result. either asks nothing. The first row that holds is taken.
var matrixTiles = []struct {
	size                              byte
	half, rowsByColumns, large, short answer
	tile                              matrixTile
}{
	{'s', either, is, either, either, tall},
	{'s', is, either, either, either, square},
	{'u', is, either, is, is, square},
	{'u', is, is, is, either, tall},
	{'u', is, either, is, either, broad},
	{'u', either, either, is, either, common},
	{'u', is, is, isNot, either, tall},
	{'u', is, either, isNot, either, square},
	{'u', isNot, is, isNot, either, broad},
	{'u', isNot, either, isNot, either, tall},
}

// answer is what a row asks of a condition.
type answer int

const (
	either answer = iota
	is
	isNot
)

func (a answer) holds(b bool) bool { return a == either || (a == is) == b }

func (c Chip) matrixTile(t ir.DType, a, b side, m, n, k, batch int64) matrixTile {
	size := byte('m')
	switch c.Letter {
	case 'g', 'p':
		size = 's'
	case 'd':
		size = 'u'
	}
	for _, r := range matrixTiles {
		if r.size == size && r.half.holds(t != ir.F32) && r.rowsByColumns.holds(!a.transposed && b.transposed) &&
			r.large.holds(batch*m*n >= 1<<20) && r.short.holds(2*max(m, n) > k) {
			return r.tile
		}
	}
	return common
}

// gemmParams is the structure that steel gemms take.
func gemmParams(t matrixTile, m, n, k int64, a, b Size, strides [3]Size, rank int) []Number {
	var params []Number
	for _, s := range append(sizes(m, n, k), a, b, ir.Const(n), ir.Const(ceil(n, t.bn)), ir.Const(ceil(m, t.bm))) {
		params = append(params, Number{s, 4})
	}
	for _, s := range strides {
		params = append(params, Number{s, 8})
	}
	for _, s := range sizes(0, k/t.bk, int64(rank), 0) { // no swizzle; the last fills the structure up to 8 bytes
		params = append(params, Number{s, 4})
	}
	return params
}

// steelName spells a kernel of the steel family.
func steelName(form, a, b string, in, out ir.DType, t matrixTile) string {
	return fmt.Sprintf("steel_%s_%s%s_%s_%s_bm%d_bn%d_bk%d_wm%d_wn%d", form, a, b, plain(in), plain(out),
		t.bm, t.bn, t.bk, t.wm, t.wn)
}

func (e *Encoder) alignment(t matrixTile, m, n, k int64) {
	e.constant(200, m%t.bm == 0)
	e.constant(201, n%t.bn == 0)
	e.constant(202, k%t.bk == 0)
}

func (e *Encoder) gemmFused(g gemm, t matrixTile) {
	sourced := g.added() && (g.alpha != 0 || g.beta != 1)
	batched := len(g.shape) > 1
	e.constant(10, batched)
	e.constant(100, sourced)
	e.constant(110, sourced && (g.alpha != 1 || g.beta != 1))
	e.alignment(t, g.m, g.n, g.k)
	e.input(0, g.a.Array)
	e.input(1, g.b.Array)
	e.output(3, g.out)
	last := len(g.shape) - 1
	strides := [3]Size{g.strides[0][last], g.strides[1][last], ir.Const(g.m * g.n)}
	e.mixed(4, gemmParams(t, g.m, g.n, g.k, g.a.step, g.b.step, strides, len(g.shape))...)
	if batched {
		e.i32(6, g.shape...)
		all := append(with(g.strides[0]), g.strides[1]...)
		if g.added() {
			all = append(all, g.strides[2]...)
		}
		e.i64(7, all...)
	}
	if sourced {
		e.input(2, g.c)
		e.mixed(5, Number{g.c.Stride(-2), 4}, Number{g.c.Stride(-1), 4}, Number{g.strides[2][last], 8},
			Number{ir.Const(int64(math.Float32bits(g.alpha))), 4}, Number{ir.Const(int64(math.Float32bits(g.beta))), 4})
	}
	e.threadgroups(grid(ir.Const(ceil(g.n, t.bn)), ir.Const(ceil(g.m, t.bm)), ir.Const(g.batch)), 32, t.wn, t.wm)
}
