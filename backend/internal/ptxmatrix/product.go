package ptxmatrix

import (
	"math/bits"
	"regexp"
	"strconv"
	"strings"

	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/air/nvptx"
	"github.com/mlxc/mlxc/ir"
)

// product is a product of matrices that this package has code for.
type product struct {
	source *air.Kernel
	gpu    GPU
	form   form
	// sides are the ends of the names of matrices, scales and biases, and of results and their lengths.
	sides []string
	elem  ir.DType // of x, scales, biases and results
	group int      // of weights that share a scale
	bits  int      // of a code, or 16 of a weight that is no code
	pairs bool     // the form is rope: a rotation turns neighbours, and not halves of a head
	cache ir.DType // and keys and values have this type; [ir.Invalid]: that of x
}

// form is what is done with products.
type form uint8

const (
	store   form = iota // each matrix has results of its own
	tile                // the same of one matrix, with the grid of tiles of 32 by 32 results
	add                 // a residual is added
	siluMul             // silu of one product times the other
	rope                // queries and keys are turned, and may lie apart as values do
)

// named are the kernels of the builtin library.
var named = regexp.MustCompile(`^affine_qmm_t_(?:(x2|x3|add|silu_mul)_)?(float16_t|bfloat16_t)_gs_(32|64|128)_b_(4|8)_alN_(?:true|false)(_batch_0)?$`)

// namedDense are those whose weights are numbers of 16 bits.
var namedDense = regexp.MustCompile(`^gemm_nt_(?:(x2|x3|add|silu_mul)_)?(float16|bfloat16)$`)

// dense reports whether weights are no codes: both factors are multiplied as they lie in memory.
func (p *product) dense() bool { return p.bits == 16 }

// Kernel is a kernel that this package has code for.
type Kernel interface {
	// Fit returns how a grid of a declaration's threadgroups is best launched; nothing if other code is better.
	Fit(groups [3]uint64, given Given) Fit
	// Rows names the argument that counts rows of x, or the dimension of the grid of threadgroups that counts them, or queries, if there is no such argument.
	// "" and −1: a launch with few of them is no other ([Given]).
	Rows() (argument string, dimension int)
	// Wide reports whether an argument may be read 16 bytes at a time.
	Wide(name string) bool
	// Launch returns the grid of blocks that stands for a grid of a declaration's threadgroups, or more: blocks that have
	// nothing to do leave. threads is how many a block has, and shared the bytes of its dynamic shared memory.
	Launch(groups [3]uint64, f Fit) (grid [3]uint64, threads, shared uint32)
	// Note is a line that says how an image that stands for the text in tests is launched ([Noted]).
	Note(f Fit) []byte
	// Emit returns the text of an entry, as [nvptx.Compile] would make it for a way to launch it.
	Emit(launch nvptx.Launch, f Fit) []byte
}

// GPU says which GPUs code is for.
type GPU struct {
	Major, Minor int // of their compute capability
	// Memory is how many bytes of shared memory a multiprocessor has, of which each block takes reserved for the system.
	Memory int
}

// Hopper are the GPUs of compute capability 9.0.
var Hopper = GPU{9, 0, 228 << 10}

// reserved is how much shared memory the system takes of each block.
const reserved = 1 << 10

// warpgroups reports whether tensor cores take products of four warps (wgmma).
func (g GPU) warpgroups() bool { return g.Major == 9 && g.Minor == 0 }

// Of returns the code for a kernel of the builtin library with some function constants; nil if there is none. GPUs other than those of compute capability 9.0
// have none for attention of few queries, and for f32, and those before 8.0, or the zero value, none at all.
func Of(k *air.Kernel, constants []ir.FunctionConstant, gpu GPU) Kernel {
	if gpu.Major < 8 {
		return nil
	}
	if v := vectorOf(k, constants, gpu); v != nil {
		return v
	}
	if gpu.warpgroups() {
		if p := productOf(k, gpu); p != nil {
			return p
		}
		if p := turnedOf(k, constants, gpu); p != nil {
			return p
		}
		if p := fullProductOf(k, constants); p != nil {
			return p
		}
	} else if p := warpProductOf(k, constants, gpu); p != nil {
		return p
	}
	if a := attentionOf(k, constants, gpu); a != nil {
		return a
	}
	if b := blockProductOf(k, gpu); b != nil {
		return b
	}
	return nil
}

// formOf is what the name of a kernel says of its form, and the ends of the names of its matrices.
func formOf(name string) (form, []string) {
	switch name {
	case "x2":
		return store, []string{"0", "1"}
	case "x3":
		return store, []string{"0", "1", "2"}
	case "add":
		return add, []string{""}
	case "silu_mul":
		return siluMul, []string{"_gate", "_up"}
	case "rope":
		return rope, []string{"_q", "_k", "_v"}
	}
	return tile, []string{""}
}

func productOf(k *air.Kernel, gpu GPU) *product {
	p := &product{source: k, gpu: gpu, elem: ir.F16}
	m := named.FindStringSubmatch(k.Name)
	switch {
	case m == nil:
		if m = namedDense.FindStringSubmatch(k.Name); m == nil {
			return nil
		}
		p.bits = 16
	case (m[1] == "") != (m[5] != ""):
		return nil
	default:
		p.group, _ = strconv.Atoi(m[3])
		p.bits, _ = strconv.Atoi(m[4])
	}
	p.form, p.sides = formOf(m[1])
	if strings.HasPrefix(m[2], "bfloat16") {
		p.elem = ir.BF16
	}
	return p
}

// What a block consists of, and what it has of the inner index at a time.
const (
	threads = 512
	columns = 256 // of results, rows of weights: 64 for each warpgroup
	depth   = 128 // elements of the inner index of a stage

	tall = 256 // rows of x of the tallest blocks, which have half as many threads and columns

	denseDepth = 64 // the same of weights of 16 bits: a row's part is as long as the pattern in which it lies in shared memory
)

// Shared memory has slots for so many stages, if they fit: for one that is multiplied, one that may be still, and those on their way. A multiprocessor
// needs some 60 KB on their way to have its share of what memory can bring.
const (
	minSlots = 3
	maxSlots = 8
	// keptSlots is how many there are at least, unless they are for all stages, where all of x is kept in shared memory.
	keptSlots = 4
	// sharedMemory is how much a block may have.
	sharedMemory = 227 << 10
	// mostSplits is how many blocks share the inner index at most: more need not fit a group of multiprocessors of the GPU.
	mostSplits = 8
)

// FewestStages is how many stages each block has at least of those that share the inner index. Tests of a device set it to 1, so that short ones are shared too.
var FewestStages = 4

// Given is what is known of a launch.
type Given struct {
	Aligned         bool                            // the memory of all arguments that are [Kernel.Wide] lies at multiples of 16
	Multiprocessors int                             // of the GPU
	Rows            int                             // a product of matrices has no more of x, or attention no more queries; 0: what the grid says
	Constant        func(name string) (int64, bool) // the value of a constant argument
	Still           func(name string) bool          // a memory argument is at the same place of its memory in each replay
}

// Fit is how a kernel is launched. The zero value says that it is launched as it was declared, with other code.
type Fit struct {
	Rows    int  // of results that a block makes, or a cluster
	Aligned bool // memory is read 16 bytes at a time
	Long    bool // the inner index may have more than one phase
	Chunk   int  // bytes of scales that are read at a time, if Aligned
	Columns int  // of results that a block of warps makes that multiply by themselves; 0: they do not
	Depth   int  // elements of the inner index of a stage
	// Of a product of matrices: how many rows of x there are at most (0: as the grid says); how many blocks, a cluster, share the inner index, and how
	// many elements of it each has at most (0: all, of an unknown number); for how many stages there is memory; and whether matrices and sizes are the
	// same in each replay, so that weights may be asked for before the wait.
	Most, Splits, Part, Slots int
	Still                     bool
	Kept                      bool // all of x that a block multiplies lies in shared memory
	// Of a product with vectors, or with few rows of x: the length of a vector, how many results it has if all are alike, else the heads that it makes, tiles of rows, the
	// blocks that share them, the teams of a block, each of which takes a tile after the other, the warps of a team, how many blocks have room
	// on a multiprocessor, and of how many launches these are.
	Inner, Outer                                    int
	Arms                                            [3]int // lengths of results of several matrices
	Projections                                     Projections
	Tiles, Blocks, Teams, Warps, Resident, Launches int
	Streamed                                        bool // rows of x come with the weights
	// Of attention of few queries: the query heads that a cluster has, and those that share a key head.
	Heads, Group int
}

// columns and blockThreads are those of a block of a product of matrices.
func (f Fit) columns() int {
	switch {
	case f.Columns > 0:
		return f.Columns
	case f.Rows == tall:
		return columns / 2
	}
	return columns
}

func (f Fit) blockThreads() int {
	if f.Columns > 0 {
		return warpThreads
	}
	return threads / columns * f.columns()
}

// Fits reports whether there is code for the launch.
func (f Fit) Fits() bool { return f != Fit{} }

// Fit implements [Kernel].
func (p *product) Fit(groups [3]uint64, given Given) (best Fit) {
	if f := p.fitFew(groups, given); f.Fits() {
		return f
	}
	least := uint64(0)
	for _, rows := range []int{tall, 128, 64, 32, 16, 8} {
		for splits := 1; splits <= mostSplits; splits *= 2 {
			f, ok := p.fit(groups, given, rows, splits)
			if !ok {
				continue
			}
			if cost := p.cost(groups, given, f); least == 0 || cost < least {
				least, best = cost, f
			}
		}
	}
	return best
}

// rows is how many rows of x there are at most.
func (p *product) rows(groups [3]uint64, given Given, f Fit) uint64 {
	all, _ := p.size(groups, f)
	if given.Rows > 0 {
		all = min(all, uint64(given.Rows))
	}
	if m, there := given.Constant("M"); there && m > 0 {
		all = min(all, uint64(m))
	}
	return all
}

// fit is how blocks of so many rows are launched, of which so many share the inner index. It reports whether they can.
func (p *product) fit(groups [3]uint64, given Given, rows, splits int) (f Fit, ok bool) {
	k, known := given.Constant("K")
	f = Fit{Rows: rows, Aligned: given.Aligned && known, Long: !known || k > phase, Depth: depth, Splits: splits, Still: known}
	if p.dense() {
		// What is copied at a time lies in one row.
		if f.Depth = denseDepth; !known || k%8 != 0 {
			return Fit{}, false
		}
	}
	if p.form == rope {
		if f.Projections, ok = p.projections(given); !ok {
			return Fit{}, false
		}
	}
	f.Most = p.most(groups, given, f)
	if f.Aligned && !p.dense() {
		f.Chunk = 16
		for f.Aligned && (2*k/int64(p.group)%int64(f.Chunk) != 0 || f.Chunk/2*p.group < depth) {
			f.Chunk /= 2
			f.Aligned = f.Chunk >= 4
		}
		if !f.Aligned {
			f.Chunk = 0
		}
	}
	if known {
		// A part begins where a chunk of scales does.
		stages := (int(k) + f.Depth - 1) / f.Depth
		part := (stages + splits - 1) / splits
		for splits > 1 && f.Chunk > 4 && f.Chunk/2*p.group > depth && part%f.period(p.group) != 0 {
			f.Chunk /= 2
		}
		if splits > 1 {
			part = (part + f.period(p.group) - 1) / f.period(p.group) * f.period(p.group)
		}
		f.Part = f.Depth * part
		f.Long = f.Part > phase
		if splits > 1 && (part < FewestStages || (splits-1)*part >= stages) {
			return Fit{}, false
		}
	}
	// There is no room for what phases before have added up. Nobody knows where a part of an unknown number begins.
	if rows > 64 && f.Long || splits > 1 && !known || rows == tall && !p.dense() {
		return Fit{}, false
	}
	for i := range p.source.Args {
		switch name := p.source.Args[i].Name; {
		case weight(name):
			f.Still = f.Still && given.Still(name)
		case size(name):
			_, there := given.Constant(name)
			f.Still = f.Still && there
		}
	}
	f.Slots = p.slots(f, sharedMemory)
	if f.Aligned && (!p.dense() || rows <= 16) {
		kept, least := f, keptSlots
		if p.dense() {
			least = minSlots // of twice as many bytes and more
		}
		kept.Kept = true
		kept.Slots = p.slots(kept, sharedMemory)
		if p.memory(kept) <= sharedMemory && (kept.whole() || kept.Slots >= least) {
			f = kept
		}
	}
	return f, true
}

// most is [Fit.Most].
func (p *product) most(groups [3]uint64, given Given, f Fit) int {
	all := p.rows(groups, given, f)
	// A grid counts 64 rows at a time, or 32. Numbers of rows that are not far apart have one code.
	if all > 64 {
		return 0
	}
	return max(8, 1<<bits.Len64(all-1))
}

func (f Fit) with(slots int) Fit {
	f.Slots = slots
	return f
}

// cost is about how many cycles a launch takes.
func (p *product) cost(groups [3]uint64, given Given, f Fit) uint64 {
	// Those of a stage: of tensor cores, or of decoding. Where x is kept no warp waits for all others, and decoding takes fewer instructions.
	cycles := map[int]uint64{128: 3100, 64: 2100, 32: 1800, 16: 1720, 8: 1700}[f.Rows]
	switch {
	case p.dense():
		// There is nothing to decode. What comes from the cache that multiprocessors share is 38 bytes a cycle, and in shared memory, which has 128 bytes a cycle, it is
		// written and then read by each warpgroup, x by all.
		groups := f.blockThreads() / 128
		inside := (p.stageBytes(f) + p.codesBytes(f) + groups*f.rowsBytes()) / 128
		cycles = uint64(max(p.stageBytes(f)/38, inside*9/8))
	case f.Kept:
		cycles = map[int]uint64{128: 2400, 64: 1400, 32: 1270, 16: 1200, 8: 1150}[f.Rows]
	}
	stages := uint64(f.Part / f.Depth)
	if stages == 0 { // nobody knows how many
		stages = 64
	}
	grid, _, _ := p.Launch(groups, f)
	return f.cost(grid, given.Multiprocessors, stages*cycles)
}

// cost is about how many cycles a launch takes whose blocks take so many for the stages that they have.
func (f Fit) cost(grid [3]uint64, multiprocessors int, stages uint64) uint64 {
	// Beginning, waiting for the first stage, and storing results; of a cluster, also meeting twice and sending sums.
	each := stages + 800 + 45*uint64(f.Rows*f.columns()/columns)
	at := max(1, multiprocessors)
	if f.Splits > 1 {
		each += uint64(bits.Len(uint(f.Splits))-1) * (600 + 60*uint64(f.Rows*f.columns()/columns))
		// Multiprocessors come in groups of up to 18, of which a cluster has those of one: of 132 clusters of eight have 112.
		const group = 18
		at = max(f.Splits, at/group*(group-group%f.Splits)+at%group/f.Splits*f.Splits)
	}
	tiles := grid[0] / uint64(f.Splits) // each reads all weights, of which memory brings what is not in a cache
	return (grid[0]*grid[1] + uint64(at) - 1) / uint64(at) * (each + each*(tiles-1)/32)
}

// Rows implements [Kernel].
func (*product) Rows() (argument string, dimension int) { return "M", -1 }

// Wide implements [Kernel].
func (*product) Wide(name string) bool { return name == "x" || weight(name) }

// size reports whether an argument says how large the matrices are.
func size(name string) bool {
	return name == "K" || name == "N" || len(name) == 2 && name[0] == 'n'
}

// size is how many rows a grid makes results for, and how many blocks lie side by side.
func (p *product) size(groups [3]uint64, f Fit) (rows, wide uint64) {
	rows, along, each := 64*groups[0], groups[1], uint64(f.columns()/64)
	switch {
	case p.form == tile || p.dense(): // tiles of 32 by 32 results, columns along x
		rows, along, each = 32*groups[1], groups[0], uint64(f.columns()/32)
		if p.form == siluMul {
			each /= 2
		}
	case p.form == rope:
		rows = f.Projections.tall() * groups[0]
	}
	// Tiles lie behind those of the matrix before: of each matrix there are so many times fewer blocks, rounded up.
	return rows, (along + (each-1)*p.results()) / each
}

// results is how many matrices have results of their own.
func (p *product) results() uint64 {
	if p.form == siluMul {
		return 1
	}
	return uint64(len(p.sides))
}

// Launch implements [Kernel].
func (p *product) Launch(groups [3]uint64, f Fit) (grid [3]uint64, threadsOf, shared uint32) {
	if f.Teams > 0 {
		return p.few(f.Most, f.Streamed).Launch(groups, f)
	}
	rows, wide := p.size(groups, f)
	if f.Most > 0 {
		rows = min(rows, uint64(f.Most))
	}
	return [3]uint64{(rows + uint64(f.Rows) - 1) / uint64(f.Rows) * uint64(max(1, f.Splits)), wide, 1}, uint32(f.blockThreads()), uint32(p.memory(f))
}

func (p *product) codesBytes(f Fit) int { return f.columns() * f.Depth * p.bits / 8 }

// rowsBytes are those of x in a stage, and keptBytes those of all x that is kept.
func (f Fit) rowsBytes() int { return 2 * f.Depth * f.Rows }

func (f Fit) keptBytes() int {
	if !f.Kept {
		return 0
	}
	return f.Part / f.Depth * f.rowsBytes()
}

// stageBytes are those of codes, and of x unless that is kept. Stages lie behind what is kept.
func (p *product) stageBytes(f Fit) int {
	if f.Kept {
		return p.codesBytes(f)
	}
	return f.rowsBytes() + p.codesBytes(f)
}

// behindStages is where scales lie in shared memory, behind stages.
func (p *product) behindStages(f Fit) int { return f.keptBytes() + f.Slots*p.stageBytes(f) }

// whole reports whether there is memory for all stages that a block has.
func (f Fit) whole() bool { return f.Part > 0 && f.Slots*f.Depth >= f.Part }

// ahead is how many stages are asked for before the first one is multiplied.
func (f Fit) ahead() int {
	switch {
	case f.whole():
		return f.Slots
	case f.Kept: // the last one's place is free when the next one is read
		return f.Slots - 1
	}
	return f.Slots - 2
}

// period is for how many stages a chunk of scales is.
func (f Fit) period(group int) int { return max(1, f.Chunk/2*group/depth) }

// chunk is how many bytes a chunk of scales takes in shared memory.
func (f Fit) chunk() int { return max(8, f.Chunk) }

// chunks is how many of a thread have room: those of the stages on their way, and of the one that is multiplied.
func (p *product) chunks(f Fit) int {
	n := (f.ahead() + f.period(p.group) - 1) / f.period(p.group)
	if f.whole() {
		return n
	}
	return n + 1
}

// scalesBytes are those of scales and biases: chunks of all rows.
func (p *product) scalesBytes(f Fit) int {
	if p.dense() {
		return 0
	}
	return p.chunks(f) * f.chunk() * threads
}

// pitch is how many elements lie from a row of results to the next in shared memory: what eight threads write side by side in four rows
// lies in different banks.
func (f Fit) pitch() int { return f.columns() + 8 }

// sumPitch is the same of sums in f32, of which a thread writes those of two rows.
func (f Fit) sumPitch() int { return f.columns() + 4 }

// alignment is that of what a swizzled matrix consists of in shared memory.
const alignment = 1024

// slots is how many stages lie in shared memory of a size.
func (p *product) slots(f Fit, size int) int {
	for n := maxSlots; n > minSlots; n-- {
		if f.Part > 0 {
			n = min(n, f.Part/f.Depth)
		}
		if p.memory(f.with(n)) <= size {
			return n
		}
	}
	return minSlots
}

// sumsBytes are those of the sums that a cluster's blocks store in a block's memory.
func (f Fit) sumsBytes() int {
	if f.Splits < 2 {
		return 0
	}
	return 4 * f.sumPitch() * f.Rows
}

// beside reports whether sums that other blocks send lie beside stages: of few rows. Others take the place of stages, once all blocks are done with theirs.
func (f Fit) beside() bool { return f.Rows <= 16 }

// savedAt is where in shared memory the sums of phases before lie, behind stages and scales, and sumsAt where those of the cluster do.
func (p *product) savedAt(f Fit) int { return p.behindStages(f) + p.scalesBytes(f) }

func (p *product) sumsAt(f Fit) int {
	switch {
	case !f.beside():
		return 0
	case f.Long:
		return p.savedAt(f) + 4*threads*f.Rows/2
	}
	return p.savedAt(f)
}

func (p *product) memory(f Fit) int {
	n := p.savedAt(f)
	if f.Long {
		n += 4 * threads * f.Rows / 2
	}
	return max(n, p.sumsAt(f)+f.sumsBytes(), 2*f.pitch()*f.Rows) + alignment
}
