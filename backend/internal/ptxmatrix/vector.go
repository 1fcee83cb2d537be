package ptxmatrix

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/mlxc/mlxc/backend/internal/ptxwrite"
	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/air/nvptx"
	"github.com/mlxc/mlxc/ir"
)

// vector is a product of a matrix and vectors that this package has code for.
type vector struct {
	source *air.Kernel
	form   form
	norm   bool     // the vector is normalized before
	pairs  bool     // the form is rope: a rotation turns neighbours, and not halves of a head
	sides  []string // the ends of the names of matrices, scales and biases
	elem   ir.DType // of x, scales, biases and results
	group  int      // of weights that share a scale
	blocks *blocks  // of a matrix in GGML's blocks: their format; nil: codes are affine
	dense  bool     // weights are no codes
	gpu    GPU
	// How many rows of x are multiplied at once (few.go); 0: x is a vector. Whether they come with the weights, chunk by chunk.
	most     int
	streamed bool
}

var namedVector = regexp.MustCompile(`^affine_(?:qmv|qmv_fast)_(?:(add|silu_mul|rms|rms_silu_mul|rms_x3_rope)_)?(float16_t|bfloat16_t)_gs_(32|64|128)_b_4(_batch_0_pr_[01]_hgs_0_r_4)?$`)

func vectorOf(k *air.Kernel, constants []ir.FunctionConstant, gpu GPU) *vector {
	m := namedVector.FindStringSubmatch(k.Name)
	if m == nil {
		if v := denseVectorOf(k, gpu); v != nil {
			return v
		}
		return blocksOf(k, gpu)
	}
	if (m[1] == "") != (m[4] != "") {
		return nil
	}
	v := &vector{source: k, form: store, sides: []string{""}, elem: ir.F16, gpu: gpu}
	switch m[1] {
	case "add":
		v.form = add
	case "rms":
		v.norm = true
	case "silu_mul", "rms_silu_mul":
		v.form, v.norm, v.sides = siluMul, m[1] == "rms_silu_mul", []string{"_gate", "_up"}
	case "rms_x3_rope":
		v.form, v.norm, v.sides = rope, true, []string{"_q", "_k", "_v"}
		for _, c := range constants {
			v.pairs = v.pairs || c.Index == traditionalConstant && c.Bits != 0
		}
	}
	if m[2] == "bfloat16_t" {
		v.elem = ir.BF16
	}
	v.group, _ = strconv.Atoi(m[3])
	return v
}

// traditionalConstant is the number of the function constant of rope that says that a rotation turns neighbours.
const traditionalConstant = 2

const (
	// A chunk is what a warp multiplies at a time: chunk codes of each of tileRows rows, which one mma.sync takes, and their scales and biases.
	chunk      = 256
	tileRows   = 16
	codesChunk = tileRows * chunk / 2
	rowsChunk  = codesChunk + 2*tileRows*16
	// mostSlots is how many chunks of a warp at most lie in shared memory, or are on their way.
	mostSlots = 3
	// longest is the inner index up to which there is room for x in shared memory.
	longest = 32768
	// mostPieces is how many pieces of a vector a thread keeps that normalizes it.
	mostPieces = 4
)

// Fewest is the size of a matrix from which on products with vectors are faster here than by clang's code (H200). Tests of a device
// set it to 0, so that small matrices are multiplied by both, and products of f32 with few blocks by the code here.
var Fewest int64 = 2048 * 2048

// Fit implements [Kernel].
func (v *vector) Fit(groups [3]uint64, given Given) Fit {
	known := true
	constant := func(name string) int {
		n, there := given.Constant(name)
		known = known && there && n > 0 && n < 1<<30
		return int(n)
	}
	inner, outer := "in_vec_size", "out_vec_size"
	if v.blocks != nil || v.most > 0 || v.dense && !v.gemv() {
		inner, outer = "K", "N"
	}
	f := Fit{Aligned: true, Inner: constant(inner), Most: v.most, Streamed: v.streamed}
	rows := 0
	switch {
	case v.form == rope:
		f.Projections = Projections{constant("dims"), constant("q_heads"), constant("k_heads"), constant("n_v")}
		q, k, values := f.Projections.tiles()
		rows, f.Tiles = (f.Projections.Queries+f.Projections.Keys)*f.Projections.Dims+f.Projections.Values, q+k+values
	case v.arms():
		for i, side := range v.sides {
			n := constant("n" + side)
			f.Arms[i], known = n, known && n >= v.tall()
			rows, f.Tiles = rows+n, f.Tiles+(n+v.tall()-1)/v.tall()
		}
	case v.form == siluMul:
		f.Outer = constant(outer)
		rows, f.Tiles = 2*f.Outer, (f.Outer+v.tall()-1)/v.tall()
	default:
		f.Outer = constant(outer)
		rows, f.Tiles = f.Outer, (f.Outer+v.tall()-1)/v.tall()
	}
	for i := range v.source.Args {
		if name := v.source.Args[i].Name; weight(name) {
			known = known && given.Still(name)
		}
	}
	k := int64(f.Inner)
	if !known || !given.Aligned || k%int64(v.chunk()) != 0 || k > longest || int64(rows) > 1<<30 || k*int64(rows) < Fewest || f.Outer > 0 && f.Outer < v.tall() || v.blocks != nil && !v.blocksFit(f) || v.dense && !v.denseFit(groups, f.Inner, given) {
		return Fit{}
	}
	m := max(1, given.Multiprocessors)
	if !v.crew(&f, m) {
		return Fit{}
	}
	f.Blocks = f.Resident / f.Launches * m
	if v.form == rope { // a warp turns no more than one tile
		f.Blocks = max(f.Blocks, (f.Tiles+f.Teams*f.Warps-1)/(f.Teams*f.Warps))
	}
	return f
}

// crews are the blocks to choose from if two launches are to share each multiprocessor, one block each: how many teams, and how many warps a team has. The second launch
// then brings its first chunks while the first one is at work.
var crews = [][2]int{{3, 4}, {2, 4}}

// crew says what blocks consist of, on m multiprocessors.
func (v *vector) crew(f *Fit, m int) bool {
	best, least, slots := *f, 0, min(v.mostSlots(), mostSlots)
	fits := func(teams, warps, resident, launches, slots int) bool {
		f.Teams, f.Warps, f.Resident, f.Launches = teams, warps, resident, launches
		return v.slots(*f) >= slots && (!v.norm || v.pieces(*f) <= mostPieces) && teams*warps%max(1, v.most) == 0
	}
	if v.gpu.Major >= 9 && (v.blocks == nil || !v.blocks.large) && !v.streamed { // before, no launch begins while another one is at work
		for _, c := range crews {
			// How many chunks a warp takes, one after the other.
			steps := (f.Tiles + c[0]*m - 1) / (c[0] * m) * ((f.Inner/v.chunk() + c[1] - 1) / c[1])
			better := least == 0 || steps < least || v.dense && steps == least // with fewer warps, each has more on its way
			if better && fits(c[0], c[1], 2, 2, slots) {
				best, least = *f, steps
			}
		}
	}
	if least > 0 {
		*f = best
		return true
	}
	if v.most > 0 {
		return !v.streamed && fits(2, 8, 1, 1, slots) || fits(1, 8, 1, 1, slots)
	}
	return fits(1, 8, 2, 1, 2) || fits(1, 8, 1, 1, 2)
}

// Even reports whether each multiprocessor is to have one block of the launch, beside one of the launch before or behind it.
func (f Fit) Even() bool { return f.Launches == 2 }

// Roomy is how many bytes of shared memory every second of several even launches in a row asks for ([Fit.Even]). Two blocks with so much do not fit on a
// multiprocessor; one of them fits beside one of a launch that asks for no more than it needs. Without that a GPU puts two blocks of a launch where the launch before has ended first,
// and another multiprocessor gets none.
const Roomy = 116 << 10

// limit is how much shared memory a block may have.
func (v *vector) limit(f Fit) int {
	if f.Even() {
		return v.gpu.Memory - Roomy - 2*reserved
	}
	return v.gpu.Memory/f.Resident - reserved
}

// threads is how many a block has.
func (f Fit) threads() int { return 32 * f.Teams * f.Warps }

// pieces is how many pieces of eight elements of a vector a thread brings.
func (v *vector) pieces(f Fit) int { return (f.Inner/8 + f.threads() - 1) / f.threads() }

// tall is how many results a tile has, or pairs of them.
func (v *vector) tall() int {
	switch {
	case v.form == siluMul || v.form == rope:
		return tileRows / 2
	case v.streamed:
		return 2 * tileRows
	}
	return tileRows
}

// arms reports whether there are several matrices, each with results of its own.
func (v *vector) arms() bool { return v.form == store && len(v.sides) > 1 }

// overlaps reports whether the last tile begins in the one before, so that all tiles have rows at the same distances. Results are made once.
func (e *vectorEmitter) overlaps() bool {
	if e.arms() {
		return slices.ContainsFunc(e.fit.Arms[:], func(n int) bool { return n%e.tall() != 0 })
	}
	return e.form != rope && e.fit.Outer%e.tall() != 0
}

// Projections are the heads of queries, keys and values that one product makes.
type Projections struct {
	Dims          int // elements of a head
	Queries, Keys int // heads
	Values        int // elements of all heads
}

// tiles is how many tiles of eight pairs of elements they make.
func (h Projections) tiles() (queries, keys, values int) {
	return (h.Queries*h.Dims/2 + 7) / 8, (h.Keys*h.Dims/2 + 7) / 8, (h.Values + 15) / 16
}

// Rows implements [Kernel].
func (*vector) Rows() (argument string, dimension int) { return "", -1 }

// Wide implements [Kernel].
func (*vector) Wide(name string) bool { return name == "x" || name == "in_vec" || weight(name) }

// weight reports whether an argument is a matrix, its scales or biases, or what multiplies a normalized vector: none of them is anything
// that a launch before has written.
func weight(name string) bool { return namedWeight.MatchString(name) }

var namedWeight = regexp.MustCompile(`^(norm|mat|(w|scales|biases)(_gate|_up|_q|_k|_v|[0-2])?)$`)

// unused reports whether an argument says how batches lie in memory, or what is added, of a kernel that has none: there may be nothing behind its address.
func unused(name string) bool { return namedUnused.MatchString(name) }

var namedUnused = regexp.MustCompile(`^(bias|alpha|beta|batch_ndim)$|(_batch_ndims|_shape|_strides?)$`)

// vectors is the dimension of a grid of threadgroups that counts vectors.
func (v *vector) vectors() int {
	if v.blocks != nil || v.dense {
		return 1
	}
	return 0
}

// Launch implements [Kernel]: a block makes some results of one vector. There are blocks for all multiprocessors, some of which may have nothing to do.
func (v *vector) Launch(groups [3]uint64, f Fit) (grid [3]uint64, threads, shared uint32) {
	needs := v.ring(f) + f.Teams*f.Warps*v.slots(f)*v.chunkBytes() + 127
	needs = max(needs, v.gpu.Memory/(f.Resident+1)) // no more blocks have room
	if f.Most > 0 {
		return [3]uint64{1, uint64(f.Blocks), 1}, uint32(f.threads()), uint32(needs)
	}
	return [3]uint64{groups[v.vectors()], uint64(f.Blocks), 1}, uint32(f.threads()), uint32(needs)
}

// slots is how many chunks of a warp have room.
func (v *vector) slots(f Fit) int {
	return min(v.mostSlots(), (v.limit(f)-127-v.ring(f))/(f.Teams*f.Warps*v.chunkBytes()))
}

// mostSlots is for how many there is at most.
func (v *vector) mostSlots() int {
	switch {
	case v.most > 0 && !v.streamed:
		return fewSlots
	case v.dense:
		return denseSlots
	}
	return mostSlots
}

// chunk is how many elements of a row a chunk has.
func (v *vector) chunk() int {
	if v.dense {
		return denseChunk
	}
	return chunk
}

// chunkBytes are those of a chunk in shared memory.
func (v *vector) chunkBytes() int {
	if v.blocks != nil {
		return v.blocks.size
	}
	switch {
	case v.streamed:
		return 2*rowsChunk + 2*chunk*v.most
	case v.dense:
		return codesChunk
	}
	return rowsChunk
}

// sums is where the sums of each 32 elements of x lie in shared memory, behind x.
func (*vector) sums(f Fit) int { return 2 * f.Inner }

// needsSums reports whether there are biases, which multiply them.
func (v *vector) needsSums() bool { return !v.dense && (v.blocks == nil || v.blocks.sums) }

// parts is where the sums of warps lie: those of two tiles of each team.
func (v *vector) parts(f Fit) int {
	switch {
	case f.Streamed:
		return 0
	case f.Most > 0:
		return 2 * f.Inner * f.Most
	}
	if !v.needsSums() {
		return v.sums(f)
	}
	return v.sums(f) + f.Inner/8
}

// nothing is where the zeros lie that a lane multiplies in the place of x. Lanes read them while others read x, 16 bytes at a time: of a multiple
// of 128 these leave the banks of bytes 32 to 47 free then.
func (v *vector) nothing(f Fit) int { return (v.parts(f)+f.Teams*2*f.partBytes()+127)&^127 + 32 }

// ring is where chunks lie.
func (v *vector) ring(f Fit) int {
	if f.Most > 0 {
		return (v.parts(f) + f.Teams*f.partBytes() + 127) &^ 127
	}
	return (v.nothing(f) + 64 + 127) &^ 127
}

// partBytes are those of the sums of a tile.
func (f Fit) partBytes() int {
	n := 4 * tileRows * f.Warps * max(1, f.Most)
	if f.Streamed {
		n *= 2
	}
	return n
}

// Note implements [Kernel].
func (*vector) Note(f Fit) []byte { return note(f) }

// vectorEmitter writes one entry.
type vectorEmitter struct {
	*vector
	entry
	fit Fit

	thread, lane, base string
	team, warp         string // of the block; of the team, which shares a tile's inner index
	quad, member       string // lane/4 and lane%4: the row of a fragment, and the columns
	vector0            string // the number of the vector that the block multiplies
	mine               string // how many chunks of a tile the warp has

	// Of the chunks that are brought: the tile, how many of its chunks are left, the slot, and where the warp's ring ends.
	bringTile, bringLeft, bringSlot, end string
	// Where the thread's pieces of 16 bytes of the next chunk come from: some addresses, from which others lie at fixed distances; where scales come from. Of
	// blocks, the piece at the end of a row. Where in a slot the first piece goes to, and the last one. Predicates: the thread has pieces, it has one at the end.
	from               []string
	scaleFrom, fromEnd string
	to, toEnd          string
	hasPieces, hasEnd  string
	x                  []string // the lane's elements of x of the chunk that is multiplied
	sumsAt             string   // where the sums of x of the lane's groups lie

	// What a lane reads of affine codes: where those of its two groups lie in a slot, where its scales lie. Constants of f16.
	codesAt           [2]string
	scalesAt          string
	sixteenth, less64 string

	cosine, sine   string   // of the warp's tile, of the pair that is the lane's
	cosines, sines []string // the same, of some rows of x

	// Of rows of x that come with weights: where the lane's pieces of the next chunk come from, and of a tile's first one; how many chunks of the tile are left; where
	// pieces of even and of odd rows go to; and how many bytes of each row are copied.
	xFrom, xStart, xLeft string
	xTo                  [2]string
	xBytes               []string
	useSlot              string
	acc                  []string // sums of rows quad and quad + 8; of few rows of x, of each row two, of the columns that mma.sync gives the lane, and those of the lane's second group
}

// vectorTile says which rows a tile has, and which results are made of them.
type vectorTile struct {
	matrix    [2]operand // of its first eight rows, and of the others
	n0, count string     // its first result, and how many its matrix has; where two rows make one, or a pair, these are counted
	// Of rope, predicates: it is one of queries or keys; of keys or values; of values.
	turned, key, value string
	last               string // the last row of the matrix
	// Of several matrices: predicates, the tile is one of the second matrix or a later one, of the third; and where it would begin if it had a place of its own.
	further []string
	begin   string
}

// Emit implements [Kernel].
func (v *vector) Emit(launch nvptx.Launch, f Fit) []byte {
	e := &vectorEmitter{vector: v, entry: entry{kernel: v.source, launch: launch, typ: v.elem, target: elder(launch)}, fit: f}
	// Before it waits for the launches before, a block asks for weights and reads the table: what writes the table has ended when this launch begins
	// (nvptx.Launch). Constants that lie in memory are read behind the wait.
	early := launch.Programmatic && launch.Values
	if early {
		for i := range v.source.Args {
			if weight(v.source.Args[i].Name) {
				e.early = append(e.early, i)
			}
		}
		e.Line("griddepcontrol.launch_dependents")
	} else {
		e.wait()
	}
	e.read(weight, false)
	e.place()
	var norm [][]string
	if v.norm {
		norm = e.loaded(e.args["norm"])
	}
	first := e.bringSlot
	if v.streamed {
		first = e.r("mov.b32", "%s", first)
	}
	count, ahead := e.r("mov.b32", "%d", e.ahead()), e.Label()
	e.Mark(ahead)
	e.bring()
	e.Line("add.s32 \t%s, %s, -1", count, count)
	e.Line("@%s bra \t%s", e.Make("p", "setp.ne.u32", "%s, 0", count), ahead)
	e.read(func(name string) bool { return !weight(name) && (v.form == rope || !unused(name)) }, launch.Moving)
	if v.form == rope && v.most == 0 {
		e.angles()
	}
	if early {
		e.Line("griddepcontrol.wait") // in all threads, so that what waits for this grid waits for those before it
	}
	e.inGrid()
	if f.Tiles < f.Blocks { // blocks without a tile have stayed until here, so that no block of another launch took their places
		e.Line("@%s ret", e.Make("p", "setp.ge.u32", "%s, %d", e.r("mov.u32", "%%ctaid.y"), f.Tiles))
	}
	switch {
	case v.streamed:
		e.streamRows(first)
	case v.most > 0:
		e.stageRows()
	default:
		e.stage(norm)
	}
	e.tiles()
	e.resident = f.Resident
	if v.streamed { // what takes little memory finds registers beside it
		e.resident = 2
	}
	return e.text(f.threads())
}

// inGrid has blocks leave that are outside of a grid which params make smaller than it was launched, after their copies have come.
func (e *vectorEmitter) inGrid() {
	if !e.launch.Moving || e.most > 0 {
		return
	}
	d, inside := e.vectors(), e.Label()
	before := e.r("mul.lo.s32", "%s, %s", e.vector0, e.r("ld.param.b32", "%s", ptxwrite.Parameter(len(e.list())+3+d)))
	e.Line("@%s bra \t%s", e.Make("p", "setp.lt.u32", "%s, %s", before, e.threads(d)), inside)
	e.Line("cp.async.wait_group \t0")
	e.Line("ret")
	e.Mark(inside)
}

// place finds the thread's part of the copies.
func (e *vectorEmitter) place() {
	f := e.fit
	e.thread = e.r("mov.u32", "%%tid.x")
	e.lane = e.r("and.b32", "%s, 31", e.thread)
	warp := e.r("shr.u32", "%s, 5", e.thread)
	e.team, e.warp = e.r("div.u32", "%s, %d", warp, f.Warps), e.r("rem.u32", "%s, %d", warp, f.Warps)
	e.quad, e.member = e.r("shr.u32", "%s, 2", e.lane), e.r("and.b32", "%s, 3", e.lane)
	e.base = e.r("and.b32", "%s, -128", e.r("add.s32", "%s, 127", e.r("mov.u32", "mlxc_shared")))
	e.vector0 = e.r("mov.u32", "%%ctaid.x")
	e.mine = e.r("div.u32", "%s, %d", e.r("sub.s32", "%d, %s", f.Inner/e.chunk()+f.Warps-1, e.warp), f.Warps)

	if e.blocks != nil {
		e.placeBlocks()
	} else {
		e.placeCodes()
	}
	ring := e.r("mad.lo.s32", "%s, %d, %s", warp, e.slots(f)*e.chunkBytes(), e.r("add.s32", "%s, %d", e.base, e.ring(f)))
	e.end = e.r("add.s32", "%s, %d", ring, e.slots(f)*e.chunkBytes())
	e.bringSlot, e.useSlot = e.r("mov.b32", "%s", ring), e.r("mov.b32", "%s", ring)
	e.bringLeft = e.r("mov.b32", "0")
	// The tile before the block's first. A warp without chunks is behind the last one.
	e.bringTile = e.r("sub.s32", "%s, %d", e.firstTile(e.team), f.Teams*f.Blocks)
	e.bringTile = e.either(e.Make("p", "setp.eq.u32", "%s, 0", e.mine), "r", e.r("mov.b32", "%d", f.Tiles), e.bringTile)
}

// firstTile is the first tile of a team. The next one lies as many tiles on as all blocks have teams.
func (e *vectorEmitter) firstTile(team string) string {
	return e.r("mad.lo.s32", "%s, %d, %s", team, e.fit.Blocks, e.r("mov.u32", "%%ctaid.y"))
}

// placeCodes finds where the thread's part of a chunk goes to.
func (e *vectorEmitter) placeCodes() {
	row, piece := e.r("shr.u32", "%s, 3", e.lane), e.r("and.b32", "%s, 7", e.lane)
	// Every other piece of a row and of the next one lie in different banks.
	swizzled := e.r("xor.b32", "%s, %s", piece, e.r("and.b32", "%s, 1", row))
	e.to = e.r("mad.lo.s32", "%s, %d, %s", row, chunk/2, e.r("shl.b32", "%s, 4", swizzled))
	// Rows of one matrix side by side lie at fixed distances.
	addresses := 1
	switch e.form {
	case siluMul:
		addresses = 2
	case rope:
		addresses = 4
	}
	for range addresses {
		e.from = append(e.from, e.New("rd"))
	}
	e.scaleFrom = e.New("rd")
}

// of returns the rows and results of the tile whose number a register has.
func (e *vectorEmitter) of(number string) (t vectorTile) {
	of := func(side string) operand {
		return operand{e.args["w"+side], e.args["scales"+side], e.args["biases"+side]}
	}
	t.matrix = [2]operand{of(e.sides[0]), of(e.sides[len(e.sides)-1])}
	if e.arms() {
		e.arm(&t, number, of)
		return t
	}
	if e.form != rope {
		t.n0, t.count = e.r("mul.lo.s32", "%s, %d", number, e.tall()), e.r("mov.b32", "%d", e.fit.Outer)
		if e.overlaps() {
			t.n0 = e.r("min.s32", "%s, %d", t.n0, e.fit.Outer-e.tall())
		}
		return t
	}
	h := e.fit.Projections
	q, k, _ := h.tiles()
	t.key, t.value = e.Make("p", "setp.ge.s32", "%s, %d", number, q), e.Make("p", "setp.ge.s32", "%s, %d", number, q+k)
	t.turned = e.Make("p", "not.pred", "%s", t.value)
	of3 := func(kind string, q, k, v string) string {
		return e.either(t.value, kind, v, e.either(t.key, kind, k, q))
	}
	number3 := func(q, k, v int) string {
		n := func(i int) string { return e.r("mov.b32", "%d", i) }
		return of3("r", n(q), n(k), n(v))
	}
	qs, ks, vs := of("_q"), of("_k"), of("_v")
	m := operand{of3("rd", qs.codes, ks.codes, vs.codes), of3("rd", qs.scales, ks.scales, vs.scales), of3("rd", qs.biases, ks.biases, vs.biases)}
	t.matrix = [2]operand{m, m}
	t.n0 = e.r("shl.b32", "%s, 3", e.r("sub.s32", "%s, %s", number, number3(0, q, q+k))) // pairs
	t.count = number3(h.Queries*h.Dims/2, h.Keys*h.Dims/2, (h.Values+1)/2)
	t.last = number3(h.Queries*h.Dims-1, h.Keys*h.Dims-1, h.Values-1)
	return t
}

// row returns which row of its matrix a row of the tile is, in the tile's first or second half. A rotation's last tile may have rows behind the end of
// the matrix: they are taken for its last row, and their results are not stored.
func (e *vectorEmitter) row(t *vectorTile, at string, half int) string {
	if e.form == add || e.form == store {
		return e.r("add.s32", "%s, %s", t.n0, at)
	}
	n := e.r("add.s32", "%s, %s", t.n0, e.r("and.b32", "%s, 7", at))
	if e.form == siluMul {
		return n
	}
	head, place, apart := e.pair(n)
	first := e.either(t.turned, "r", e.r("mad.lo.s32", "%s, %d, %s", head, e.fit.Projections.Dims, place), e.r("shl.b32", "%s, 1", n))
	if half == 1 {
		first = e.r("add.s32", "%s, %s", first, e.either(t.turned, "r", e.r("mov.b32", "%d", apart), e.r("mov.b32", "1")))
	}
	return e.r("min.s32", "%s, %s", first, t.last)
}

// pair is the head of a pair that a rotation turns, where its first element lies in it, and how far from there its second.
func (e *vectorEmitter) pair(n string) (head, place string, apart int) {
	pairs := e.fit.Projections.Dims / 2
	head, place = e.r("div.u32", "%s, %d", n, pairs), e.r("rem.u32", "%s, %d", n, pairs)
	if e.pairs {
		return head, e.r("shl.b32", "%s, 1", place), 1
	}
	return head, place, pairs
}

// scaleBytes are those of the scales that a row has in a chunk.
func (v *vector) scaleBytes() int { return 2 * chunk / v.group }

// bring asks for the warp's next chunk, if there is one.
func (e *vectorEmitter) bring() {
	f := e.fit
	none, same := e.Label(), e.Label()
	e.Line("@%s bra \t%s", e.Make("p", "setp.ne.u32", "%s, 0", e.bringLeft), same)
	e.Line("add.s32 \t%s, %s, %d", e.bringTile, e.bringTile, f.Teams*f.Blocks)
	e.Line("@%s bra \t%s", e.Make("p", "setp.ge.s32", "%s, %d", e.bringTile, f.Tiles), none)
	e.Line("mov.b32 \t%s, %s", e.bringLeft, e.mine)
	t := e.of(e.bringTile)
	if e.blocks != nil {
		e.blocksOf(&t)
	} else {
		e.codesOf(&t)
	}
	e.Mark(same)
	if e.blocks != nil {
		e.bringBlocks()
	} else {
		e.bringCodes()
	}
	if e.xFrom != "" {
		e.bringRows(e.bringSlot)
	}
	e.next(e.bringSlot)
	e.Line("add.s32 \t%s, %s, -1", e.bringLeft, e.bringLeft)
	e.Mark(none)
	e.Line("cp.async.commit_group")
}

// codesRow is how many bytes a row of codes, or of weights that are none, has.
func (e *vectorEmitter) codesRow() int { return e.fit.Inner * chunk / e.chunk() / 2 }

// codesOf finds where the thread's part of a tile's first chunk comes from.
func (e *vectorEmitter) codesOf(t *vectorTile) {
	piece := e.r("mad.lo.s32", "%s, %d, %s", e.warp, chunk/2, e.r("shl.b32", "%s, 4", e.r("and.b32", "%s, 7", e.lane)))
	for i, from := range e.from {
		i *= 4 / len(e.from)
		at := e.r("add.s32", "%s, %d", e.r("shr.u32", "%s, 3", e.lane), 4*i)
		row := e.Make("rd", "add.s64", "%s, %s", t.matrix[i/2].codes, e.wide(e.row(t, at, i/2), strconv.Itoa(e.codesRow())))
		e.Line("add.s64 \t%s, %s, %s", from, row, e.Make("rd", "cvt.u64.u32", "%s", piece))
	}
	if e.dense {
		return
	}
	at := e.r("and.b32", "%s, 15", e.lane)
	lower, scales := e.Make("p", "setp.lt.u32", "%s, 8", at), e.Make("p", "setp.lt.u32", "%s, 16", e.lane)
	half := func(i int) string { return e.either(scales, "rd", t.matrix[i].scales, t.matrix[i].biases) }
	from := e.either(lower, "rd", half(0), half(1))
	row := e.either(lower, "r", e.row(t, at, 0), e.row(t, at, 1))
	from = e.Make("rd", "add.s64", "%s, %s", from, e.wide(row, strconv.Itoa(2*e.fit.Inner/e.group)))
	e.Line("add.s64 \t%s, %s, %s", e.scaleFrom, from, e.wide(e.warp, strconv.Itoa(e.scaleBytes())))
}

// bringCodes asks for the thread's part of a chunk.
func (e *vectorEmitter) bringCodes() {
	toCodes, each := e.r("add.s32", "%s, %s", e.bringSlot, e.to), 4/len(e.from)
	halves := 1
	if e.streamed {
		halves, each = 2, 8
	}
	for i := range 4 * halves { // rows four apart
		e.Line("cp.async.cg.shared.global.L2::128B \t[%s+%d], [%s+%d], 16", toCodes, i/4*rowsChunk+i%4*4*chunk/2, e.from[i/each], i%each*4*e.codesRow())
	}
	for _, from := range e.from {
		e.Line("add.s64 \t%s, %s, %d", from, from, e.fit.Warps*chunk/2)
	}
	if e.dense {
		return
	}
	kind := "ca"
	if e.scaleBytes() == 16 {
		kind = "cg"
	}
	to := e.r("mad.lo.s32", "%s, 16, %s", e.lane, e.bringSlot)
	for i := range halves {
		e.Line("cp.async.%s.shared.global \t[%s+%d], [%s+%d], %d", kind, to, i*rowsChunk+codesChunk, e.scaleFrom, i*tileRows*2*e.fit.Inner/e.group, e.scaleBytes())
	}
	e.Line("add.s64 \t%s, %s, %d", e.scaleFrom, e.scaleFrom, e.fit.Warps*e.scaleBytes())
}

// next moves a slot of the ring on.
func (e *vectorEmitter) next(slot string) {
	e.Line("add.s32 \t%s, %s, %d", slot, slot, e.chunkBytes())
	around := e.Make("p", "setp.ge.u32", "%s, %s", slot, e.end)
	e.Line("@%s sub.s32 \t%s, %s, %d", around, slot, slot, e.slots(e.fit)*e.chunkBytes())
}

// stage brings x to shared memory, in the order in which lanes multiply it, and the sum of each 32 elements. A word of codes has
// the elements 0 to 7 of a lane, of which mma.sync takes the first with the fifth, the second with the sixth, and so on. A thread takes pieces of
// eight elements.
func (e *vectorEmitter) stage(norm [][]string) {
	f := e.fit
	x := e.Make("rd", "add.s64", "%s, %s", e.args["x"], e.wide(e.vector0, strconv.Itoa(2*f.Inner)))
	e.Line("@%s st.shared.b32 \t[%s+%d], 0", e.Make("p", "setp.lt.u32", "%s, 16", e.thread), e.r("mad.lo.s32", "%s, 4, %s", e.thread, e.base), e.nothing(f))
	if e.norm {
		e.normalized(e.loaded(x), norm)
		e.Line("bar.sync \t0")
		return
	}
	// Four at a time are on their way.
	for first := 0; first < e.pieces(f); first += mostPieces {
		var pieces [][]string
		for i := first; i < min(e.pieces(f), first+mostPieces); i++ {
			pieces = append(pieces, e.piece(x, i))
		}
		for i, words := range pieces {
			e.put(first+i, words)
		}
	}
	e.Line("bar.sync \t0")
}

// loaded loads the thread's pieces of a vector.
func (e *vectorEmitter) loaded(from string) (out [][]string) {
	for i := range e.pieces(e.fit) {
		out = append(out, e.piece(from, i))
	}
	return out
}

// piece loads the thread's ith piece; zeros where there is none.
func (e *vectorEmitter) piece(from string, i int) (out []string) {
	guard := ""
	if there := e.there(i); there != "" {
		guard = "@" + there + " "
	}
	for range 4 {
		w := e.New("r")
		if guard != "" {
			e.Line("mov.b32 \t%s, 0", w)
		}
		out = append(out, w)
	}
	e.Line("%sld.global.v4.b32 \t{%s}, [%s+%d]", guard, strings.Join(out, ", "), e.Make("rd", "add.s64", "%s, %s", from, e.wide(e.thread, "16")), 16*i*e.fit.threads())
	return out
}

// there is a predicate that says whether the thread has an ith piece; empty if all threads have one. A warp has four pieces side by side or none of them.
func (e *vectorEmitter) there(i int) string {
	left := e.fit.Inner/8 - i*e.fit.threads()
	if left >= e.fit.threads() {
		return ""
	}
	return e.Make("p", "setp.lt.u32", "%s, %d", e.thread, left)
}

// put stores the thread's ith piece, and the sum of 32 elements.
func (e *vectorEmitter) put(i int, words []string) {
	skip := e.Label()
	if there := e.there(i); there != "" {
		e.Line("@!%s bra \t%s", there, skip)
	}
	number := e.r("add.s32", "%s, %d", e.thread, i*e.fit.threads())
	if e.blocks != nil {
		e.putBlocks(number, words)
	} else {
		if !e.dense {
			words = e.paired(words)
		}
		e.Line("st.shared.v4.b32 \t[%s], {%s}", e.r("mad.lo.s32", "%s, 16, %s", number, e.base), strings.Join(words, ", "))
	}
	if e.needsSums() {
		e.putSum(number, words)
	}
	e.Mark(skip)
}

// paired are eight elements in the order in which a word of codes is multiplied.
func (e *vectorEmitter) paired(words []string) (out []string) {
	for j := range 2 {
		for _, halves := range []string{"0x5410", "0x7632"} {
			out = append(out, e.r("prmt.b32", "%s, %s, %s", words[j], words[j+2], halves))
		}
	}
	return out
}

// putSum stores the sum of the pieces that four threads have.
func (e *vectorEmitter) putSum(number string, words []string) {
	sum := ""
	for _, h := range e.all(words) {
		if sum == "" {
			sum = h
		} else {
			sum = e.r("add.rn.f32", "%s, %s", sum, h)
		}
	}
	for step := 1; step < 4; step *= 2 {
		other := e.New("r")
		e.Line("shfl.sync.bfly.b32 \t%s, %s, %d, 31, -1", other, sum, step)
		sum = e.r("add.rn.f32", "%s, %s", sum, other)
	}
	first := e.Make("p", "setp.eq.u32", "%s, 0", e.member)
	e.Line("@%s st.shared.b32 \t[%s+%d], %s", first, e.r("add.s32", "%s, %s", number, e.base), e.sums(e.fit), sum)
}

// all are the numbers of 16 bits in words, as f32.
func (e *entry) all(words []string) (out []string) {
	for _, w := range words {
		low, high := e.New("rs"), e.New("rs")
		e.Line("mov.b32 \t{%s, %s}, %s", low, high, w)
		out = append(out, e.widened(low), e.widened(high))
	}
	return out
}

// normalized stages x by its root mean square: norm · round(x · inv), rounded.
func (e *vectorEmitter) normalized(x, norm [][]string) {
	f := e.fit
	squares := e.r("mov.b32", "0")
	for _, words := range x {
		for _, v := range e.all(words) {
			squares = e.r("fma.rn.f32", "%s, %s, %s", v, v, squares)
		}
	}
	for step := 16; step > 0; step /= 2 {
		other := e.New("r")
		e.Line("shfl.sync.bfly.b32 \t%s, %s, %d, 31, -1", other, squares, step)
		squares = e.r("add.rn.f32", "%s, %s", squares, other)
	}
	place := e.parts(f)
	first := e.Make("p", "setp.eq.u32", "%s, 0", e.lane)
	e.Line("@%s st.shared.b32 \t[%s+%d], %s", first, e.r("mad.lo.s32", "%s, 4, %s", e.r("shr.u32", "%s, 5", e.thread), e.base), place, squares)
	e.Line("bar.sync \t0")
	var sums []string // of all warps; those without a piece have 0
	for i := 0; i < f.Teams*f.Warps; i += 4 {
		sums = append(sums, e.four(e.base, place+4*i)...)
	}
	for len(sums) > 1 {
		half := (len(sums) + 1) / 2
		for i := range len(sums) / 2 {
			sums[i] = e.r("add.rn.f32", "%s, %s", sums[i], sums[half+i])
		}
		sums = sums[:half]
	}
	mean := ""
	if f.Inner&(f.Inner-1) == 0 { // the same, and sooner
		mean = e.r("mul.rn.f32", "%s, 0f%08X", sums[0], math.Float32bits(1/float32(f.Inner)))
	} else {
		mean = e.r("div.rn.f32", "%s, %s", sums[0], e.r("cvt.rn.f32.u32", "%s", e.r("mov.b32", "%d", f.Inner)))
	}
	root := e.r("sqrt.rn.f32", "%s", e.r("add.rn.f32", "%s, %s", mean, e.args["eps"]))
	inverse := e.r("rcp.rn.f32", "%s", root)
	for i := range x {
		var words []string
		for j := range x[i] { // taken apart again, which is cheaper than to keep the numbers
			var two [2]string
			numbers, weights := e.all(x[i][j:j+1]), e.all(norm[i][j:j+1])
			for k := range two {
				v := e.widened(e.rounded(e.r("mul.rn.f32", "%s, %s", numbers[k], inverse)))
				two[k] = e.rounded(e.r("mul.rn.f32", "%s, %s", weights[k], v))
			}
			words = append(words, e.r("mov.b32", "{%s, %s}", two[0], two[1]))
		}
		e.put(i, words)
	}
}

// tiles multiplies the block's tiles. The sums of a tile's warps meet in shared memory, and one warp, another for each tile, makes results of
// them while the others go on.
func (e *vectorEmitter) tiles() {
	f := e.fit
	number, turn := e.firstTile(e.team), e.r("mov.b32", "0")
	both := e.r("mad.lo.s32", "%s, %d, %s", e.team, (2-min(1, f.Most))*f.partBytes(), e.r("add.s32", "%s, %d", e.base, e.parts(f)))
	parts := e.r("mov.b32", "%s", both)
	var teams []string // predicates: it is the thread's team
	for i := range f.Teams {
		teams = append(teams, e.Make("p", "setp.eq.u32", "%s, %d", e.team, i))
	}
	for range 2 + 6*min(1, e.most) {
		e.acc = append(e.acc, e.New("r"))
	}
	residual := e.New("rs")
	var others []string // residuals of few rows
	var multiply multiplication
	switch {
	case e.most > 0:
		multiply = e.rowsCodes()
	case e.blocks != nil:
		multiply = e.blocks.multiply(e)
	case e.dense:
		multiply = e.elements()
	default:
		multiply = e.codes()
	}
	loop, end := e.Label(), e.Label()
	e.Mark(loop)
	e.Line("@%s bra \t%s", e.Make("p", "setp.ge.s32", "%s, %d", number, f.Tiles), end)
	own := e.Make("p", "setp.eq.u32", "%s, %s", turn, e.warp)
	if e.form == add && e.most > 0 {
		others = e.residuals(number, own)
	} else if e.form == add { // is there by the time that it is needed
		e.Line("mov.b16 \t%s, 0", residual)
		t := e.of(number)
		n := e.r("add.s32", "%s, %s", t.n0, e.lane)
		there := e.Make("p", "setp.lt.u32", "%s, %d", e.lane, tileRows)
		there = e.Make("p", "and.pred", "%s, %s", there, own)
		e.Line("@%s ld.global.b16 \t%s, [%s]", there, residual, e.Make("rd", "add.s64", "%s, %s", e.args["r"], e.result(n)))
	}
	e.multiply(multiply)
	meet := func() {
		for i, own := range teams { // barriers of their own, by numbers that the assembler knows: it reserves all of them otherwise
			e.Line("@%s bar.sync \t%d, %d", own, i+1, 32*f.Warps)
		}
	}
	if e.most > 0 {
		meet() // sums of the tile before have been read
		e.layRows(parts)
	} else {
		first := e.Make("p", "setp.eq.u32", "%s, 0", e.member)
		to := e.r("mad.lo.s32", "%s, %d, %s", e.warp, 4*tileRows, e.r("mad.lo.s32", "%s, 4, %s", e.quad, parts))
		e.Line("@%s st.shared.b32 \t[%s], %s", first, to, e.acc[0])
		e.Line("@%s st.shared.b32 \t[%s+32], %s", first, to, e.acc[1])
	}
	// Behind this barrier all have read the sums of the tile before, whose place the next tile's take.
	meet()
	next := e.Label()
	e.Line("@!%s bra \t%s", own, next)
	if e.most > 0 {
		e.finishRows(number, parts, others)
	} else {
		e.finish(number, parts, residual)
	}
	e.Mark(next)
	e.Line("add.s32 \t%s, %s, %d", number, number, f.Teams*f.Blocks)
	e.Line("add.s32 \t%s, %s, 1", turn, turn)
	e.Line("@%s mov.b32 \t%s, 0", e.Make("p", "setp.eq.u32", "%s, %d", turn, f.Warps), turn)
	if e.most == 0 { // the sums of the next tile lie in the other of two places
		e.Line("sub.s32 \t%s, %s, %s", parts, e.r("mad.lo.s32", "%s, 2, %d", both, f.partBytes()), parts)
	}
	e.Line("bra \t%s", loop)
	e.Mark(end)
	e.Line("ret")
}

// multiplication is how chunks are multiplied: what is done at the beginning of a tile, and with the chunk at useSlot, of which products are added to
// the sums of the lane. If there is a fetch, it reads all that the lane needs of the chunk, whose slot is filled again before it is multiplied.
type multiplication struct {
	begin, fetch, chunk func()
}

// multiply adds up the warp's chunks of a tile.
func (e *vectorEmitter) multiply(m multiplication) {
	for i := range e.acc {
		e.Line("mov.b32 \t%s, 0", e.acc[i])
	}
	m.begin()
	left := e.r("mov.b32", "%s", e.mine)
	loop, done := e.Label(), e.Label()
	e.Mark(loop)
	e.Line("@%s bra \t%s", e.Make("p", "setp.eq.u32", "%s, 0", left), done)
	e.Line("cp.async.wait_group \t%d", e.ahead()-1)
	e.Line("bar.warp.sync \t-1")
	if m.fetch != nil {
		m.fetch()
		e.Line("bar.warp.sync \t-1")
	}
	e.bring()
	m.chunk()
	e.next(e.useSlot)
	e.Line("sub.s32 \t%s, %s, 1", left, left)
	e.Line("bra \t%s", loop)
	e.Mark(done)
	if e.most > 0 || e.dense { // each lane has sums
		return
	}
	for i := range e.acc {
		e.Line("mov.b32 \t%s, %s", e.acc[i], e.across(e.acc[i], "add.rn.f32"))
	}
}

// ahead is how many chunks of a warp are on their way at most when it begins to multiply one.
func (e *vectorEmitter) ahead() int {
	if e.most > 0 && !e.streamed { // the place of that one is free by then
		return e.slots(e.fit)
	}
	return e.slots(e.fit) - 1
}

// codes multiplies affine codes. They become numbers as the last bits of 1024 + q, of 128 + q in bf16, less that: exact, so that
// what tensor cores lose is measured by the products alone, and infinities multiply as the term has it.
//
// A lane whose number in its four is m has the codes of groups 2·m and 2·m + 1, 32 each, of its two rows, and makes their sums alone, as [blocks] says.
func (e *vectorEmitter) codes() (m multiplication) {
	e.lanes()
	useX, advance := e.column()
	useSums := e.r("mad.lo.s32", "%s, %d, %s", e.warp, chunk/8, e.r("mad.lo.s32", "%s, 8, %s", e.member, e.r("add.s32", "%s, %d", e.base, e.sums(e.fit))))
	zero, one := "", ""
	xAt, sumsAt := "", ""
	m.begin = func() {
		zero, one = e.r("mov.b32", "0"), e.one()
		xAt, sumsAt = e.r("mov.b32", "%s", useX), e.r("mov.b32", "%s", useSums)
	}
	m.chunk = func() {
		var words [2][2][]string // of a group, of a row
		sum := [2][4]string{{zero, zero, zero, zero}, {zero, zero, zero, zero}}
		for g := range words {
			at := e.r("add.s32", "%s, %s", e.useSlot, e.codesAt[g])
			words[g] = [2][]string{e.four(at, 0), e.four(at, 8*chunk/2)}
		}
		for w := range 4 {
			x := e.four(xAt, 16*w)
			for g := range words {
				upper, lower := e.exact(words[g][0][w], one), e.exact(words[g][1][w], one)
				for step := range 2 {
					var out [4]string
					for i := range out {
						out[i] = e.New("r")
					}
					e.mma(out[:], upper, lower, step, x, sum[g][:])
					sum[g] = out
				}
			}
		}
		scales := e.r("add.s32", "%s, %s", e.useSlot, e.scalesAt)
		sums := [2]string{e.New("r"), e.New("r")}
		e.Line("ld.shared.v2.b32 \t{%s, %s}, [%s]", sums[0], sums[1], sumsAt)
		for i := range e.acc { // rows quad and quad + 8
			scale, bias := e.two(scales, codesChunk+128*i), e.two(scales, codesChunk+256+128*i)
			for j := range 2 {
				e.Line("fma.rn.f32 \t%s, %s, %s, %s", e.acc[i], scale[j], sum[j][2*i+j], e.acc[i])
				e.Line("fma.rn.f32 \t%s, %s, %s, %s", e.acc[i], bias[j], sums[j], e.acc[i])
			}
		}
		e.Line("add.s32 \t%s, %s, %s", xAt, xAt, advance)
		e.Line("add.s32 \t%s, %s, %d", sumsAt, sumsAt, e.fit.Warps*chunk/8)
	}
	return m
}

// one is the number in whose last bits codes are put: 1024, or 128 in bf16.
func (e *vectorEmitter) one() string {
	if e.elem == ir.BF16 {
		return e.r("mov.b32", "%d", 0x43004300)
	}
	return e.r("mov.b32", "%d", 0x64006400)
}

// exact are the codes of a word as numbers: of elements 0 and 4, 1 and 5, 2 and 6, 3 and 7.
func (e *vectorEmitter) exact(w, one string) (out [4]string) {
	for i := range out {
		if i == 2 || e.elem == ir.BF16 && i > 0 {
			w = e.r("shr.u32", "%s, %d", w, map[bool]int{true: 4, false: 8}[e.elem == ir.BF16])
		}
		if i%2 == 1 && e.elem == ir.F16 { // 1024 + 16·q
			v := e.r("lop3.b32", "%s, %d, %s, 0xEA", w, 0x00F000F0, one)
			out[i] = e.r("fma.rn.f16x2", "%s, %s, %s", v, e.sixteenth, e.less64)
			continue
		}
		out[i] = e.minus(e.r("lop3.b32", "%s, %d, %s, 0xEA", w, 0x000F000F, one), one)
	}
	return out
}

// mma multiplies the first or the second half of what becomes of a word of the upper row and one of the lower row.
func (e *vectorEmitter) mma(to []string, upper, lower [4]string, step int, x, sums []string) {
	typ := e.elem.String()
	e.Line("mma.sync.aligned.m16n8k16.row.col.f32.%s.%s.f32 \t{%s}, {%s, %s, %s, %s}, {%s, %s}, {%s}", typ, typ, strings.Join(to, ", "),
		upper[2*step], lower[2*step], upper[2*step+1], lower[2*step+1], x[2*step], x[2*step+1], strings.Join(sums, ", "))
}

// minus subtracts two numbers from two. Of bfloat16 GPUs before compute capability 9.0 have only fma.
func (e *vectorEmitter) minus(a, b string) string {
	switch {
	case e.elem == ir.F16:
		return e.r("sub.rn.f16x2", "%s, %s", a, b)
	case e.launch.Programmatic:
		return e.r("sub.rn.bf16x2", "%s, %s", a, b)
	}
	return e.r("fma.rn.bf16x2", "%s, %s, %s", b, e.r("mov.b32", "%d", uint32(0xBF80BF80)), a)
}

// two are the scales, or biases, of the lane's two groups of a row, as f32.
func (e *vectorEmitter) two(from string, offset int) []string {
	if e.group == 32 {
		return e.all([]string{e.r("ld.shared.b32", "[%s+%d]", from, offset)})
	}
	one := e.widened(e.Make("rs", "ld.shared.b16", "[%s+%d]", from, offset))
	return []string{one, one}
}

// column is where the lane's elements of x lie of the warp's first chunk, and how far on those of its next: of the group that is its column if
// that is one of its own two, else zeros.
func (e *vectorEmitter) column() (x, advance string) {
	own := e.Make("p", "setp.eq.u32", "%s, %s", e.r("shr.u32", "%s, 1", e.quad), e.member)
	at := e.r("mad.lo.s32", "%s, %d, %s", e.warp, 2*chunk, e.r("mad.lo.s32", "%s, 64, %s", e.quad, e.base))
	x = e.either(own, "r", at, e.r("add.s32", "%s, %d", e.base, e.nothing(e.fit)))
	return x, e.either(own, "r", e.r("mov.b32", "%d", e.fit.Warps*2*chunk), e.r("mov.b32", "0"))
}

// lanes finds what a lane reads of a chunk.
func (e *vectorEmitter) lanes() {
	for g := range 2 { // as copies put them
		piece := e.r("xor.b32", "%s, %s", e.r("mad.lo.s32", "%s, 2, %d", e.member, g), e.r("and.b32", "%s, 1", e.quad))
		e.codesAt[g] = e.r("mad.lo.s32", "%s, %d, %s", e.quad, chunk/2, e.r("shl.b32", "%s, 4", piece))
	}
	e.sixteenth, e.less64 = e.r("mov.b32", "%d", 0x2C002C00), e.r("mov.b32", "%d", uint32(0xD400D400))
	at := e.r("shl.b32", "%s, %d", e.member, 2)
	switch e.group {
	case 64:
		at = e.r("shl.b32", "%s, 1", e.member)
	case 128:
		at = e.r("and.b32", "%s, 2", e.member)
	}
	e.scalesAt = e.r("mad.lo.s32", "%s, 16, %s", e.quad, at)
}

// four loads four words.
func (e *entry) four(from string, offset int) (out []string) {
	for range 4 {
		out = append(out, e.New("r"))
	}
	e.Line("ld.shared.v4.b32 \t{%s}, [%s+%d]", strings.Join(out, ", "), from, offset)
	return out
}

// result is where a result lies in an array of results, in bytes.
func (e *vectorEmitter) result(n string) string {
	place := e.Make("rd", "add.s64", "%s, %s", e.wide(e.vector0, strconv.Itoa(e.fit.Outer)), e.Make("rd", "cvt.u64.u32", "%s", n))
	return e.Make("rd", "shl.b64", "%s, 1", place)
}

// finish adds up what the warps have of a tile, and stores what becomes of the sums: a lane's is of its row.
func (e *vectorEmitter) finish(number, parts, residual string) {
	sum := ""
	from := e.r("mad.lo.s32", "%s, 4, %s", e.r("and.b32", "%s, 15", e.lane), parts)
	for i := range e.fit.Warps {
		one := e.r("ld.shared.b32", "[%s+%d]", from, 4*tileRows*i)
		if sum == "" {
			sum = one
		} else {
			sum = e.r("add.rn.f32", "%s, %s", sum, one)
		}
	}
	second := ""
	if e.tall() < tileRows {
		second = e.r("shfl.sync.bfly.b32", "%s, 8, 31, -1", sum)
	}
	t := e.of(number)
	n := e.r("add.s32", "%s, %s", t.n0, e.lane)
	outside := e.Make("p", "setp.ge.u32", "%s, %d", e.lane, e.tall())
	outside = e.Make("p", "or.pred", "%s, %s", outside, e.made(&t, number, n))
	end := e.Label()
	e.Line("@%s bra \t%s", outside, end)
	if e.form == rope {
		e.turn(&t, n, e.stored(sum), e.stored(second))
	} else {
		result := e.stored(sum)
		switch e.form {
		case siluMul:
			result = e.siluMul(result, e.stored(second))
		case add:
			result = e.stored(e.r("add.rn.f32", "%s, %s", e.widened(residual), e.widened(result)))
		}
		e.Line("st.global.b16 \t[%s], %s", e.Make("rd", "add.s64", "%s, %s", e.resultsOf(&t), e.result(n)), result)
	}
	e.Mark(end)
}

// angles finds the cosine and the sine of the angle by which the pair of each of the first eight lanes is turned, in the tile that the warp
// makes the results of, if there is one.
func (e *vectorEmitter) angles() {
	e.cosine, e.sine = e.r("mov.b32", "0"), e.r("mov.b32", "0")
	number := e.firstTile(e.r("mad.lo.s32", "%s, %d, %s", e.warp, e.fit.Teams, e.team))
	q, k, _ := e.fit.Projections.tiles()
	skip := e.Label()
	e.Line("@%s bra \t%s", e.Make("p", "setp.ge.s32", "%s, %d", number, q+k), skip)
	e.Line("@%s bra \t%s", e.Make("p", "setp.ge.u32", "%s, 8", e.lane), skip)
	power := e.power(number, e.lane)
	position := e.r("cvt.rn.f32.s32", "%s", e.args["offset"])
	theta := e.r("mul.rn.f32", "%s, %s", e.r("mul.rn.f32", "%s, %s", e.args["scale"], position), power)
	e.Line("mov.b32 \t%s, %s", e.cosine, e.Call("cos", theta))
	e.Line("mov.b32 \t%s, %s", e.sine, e.Call("sin", theta))
	e.Mark(skip)
}

// power is what a position is multiplied by to become the angle of a pair of a tile.
func (e *vectorEmitter) power(number, pair string) string {
	t := e.of(number)
	pairs := e.fit.Projections.Dims / 2
	index := e.r("rem.u32", "%s, %d", e.r("add.s32", "%s, %s", t.n0, pair), pairs)
	float := func(v string) string { return e.r("cvt.rn.f32.s32", "%s", v) }
	part := e.r("neg.f32", "%s", e.r("div.rn.f32", "%s, %s", float(index), float(e.r("mov.b32", "%d", pairs))))
	return e.Call("exp2", e.r("mul.rn.f32", "%s, %s", part, e.args["base"]))
}

// turnedPair are two numbers turned by an angle, as they are stored.
func (e *vectorEmitter) turnedPair(a, b, cosine, sine string) (first, second string) {
	first = e.r("sub.rn.f32", "%s, %s", e.r("mul.rn.f32", "%s, %s", a, cosine), e.r("mul.rn.f32", "%s, %s", b, sine))
	second = e.r("add.rn.f32", "%s, %s", e.r("mul.rn.f32", "%s, %s", a, sine), e.r("mul.rn.f32", "%s, %s", b, cosine))
	return e.stored(first), e.stored(second)
}

// turn stores two elements of a query or key, turned by their position, or two of a value.
func (e *vectorEmitter) turn(t *vectorTile, n, one, two string) {
	to := e.either(t.value, "rd", e.args["v"], e.either(t.key, "rd", e.args["k"], e.args["q"]))
	plain, end := e.Label(), e.Label()
	e.Line("@%s bra \t%s", t.value, plain)
	head, place, apart := e.pair(n)
	a, b := e.widened(one), e.widened(two)
	first, second := e.turnedPair(a, b, e.cosine, e.sine)
	stride := e.either(t.key, "rd", e.args["k_stride"], e.args["q_stride"])
	at := e.Make("rd", "mul.lo.s64", "%s, %s", e.Make("rd", "cvt.u64.u32", "%s", head), stride)
	at = e.Make("rd", "add.s64", "%s, %s", at, e.Make("rd", "cvt.u64.u32", "%s", place))
	at = e.Make("rd", "add.s64", "%s, %s", to, e.Make("rd", "shl.b64", "%s, 1", at))
	e.Line("st.global.b16 \t[%s], %s", at, first)
	e.Line("st.global.b16 \t[%s+%d], %s", at, 2*apart, second)
	e.Line("bra \t%s", end)
	e.Mark(plain)
	value := e.r("shl.b32", "%s, 1", n)
	at = e.Make("rd", "add.s64", "%s, %s", to, e.wide(value, "2"))
	e.Line("st.global.b16 \t[%s], %s", at, one)
	e.Line("@%s st.global.b16 \t[%s+2], %s", e.Make("p", "setp.lt.s32", "%s, %s", value, t.last), at, two)
	e.Mark(end)
}
