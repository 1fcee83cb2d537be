package ptxmatrix

import (
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
	form   form
	// sides are the ends of the names of matrices, scales and biases, and of results and their lengths.
	sides []string
	elem  ir.DType // of x, scales, biases and results
	group int      // of weights that share a scale
	bits  int      // of a code
	pairs bool     // the form is rope: a rotation turns neighbours, and not halves of a head
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

// Kernel is a kernel that this package has code for.
type Kernel interface {
	// Fit returns how a grid of a declaration's threadgroups is best launched; nothing if other code is better.
	Fit(groups [3]uint64, given Given) Fit
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

// Of returns the code for a kernel of the builtin library with some function constants; nil if there is none.
func Of(k *air.Kernel, constants []ir.FunctionConstant) Kernel {
	if p := productOf(k); p != nil {
		return p
	}
	if p := turnedOf(k, constants); p != nil {
		return p
	}
	if v := vectorOf(k, constants); v != nil {
		return v
	}
	if a := attentionOf(k, constants); a != nil {
		return a
	}
	return nil
}

func productOf(k *air.Kernel) *product {
	m := named.FindStringSubmatch(k.Name)
	if m == nil || (m[1] == "") != (m[5] != "") {
		return nil
	}
	p := &product{source: k, elem: ir.F16, sides: []string{""}}
	switch m[1] {
	case "":
		p.form = tile
	case "x2":
		p.sides = []string{"0", "1"}
	case "x3":
		p.sides = []string{"0", "1", "2"}
	case "add":
		p.form = add
	case "silu_mul":
		p.form, p.sides = siluMul, []string{"_gate", "_up"}
	}
	if m[2] == "bfloat16_t" {
		p.elem = ir.BF16
	}
	p.group, _ = strconv.Atoi(m[3])
	p.bits, _ = strconv.Atoi(m[4])
	return p
}

// What a block consists of, and what it has of the inner index at a time.
const (
	threads = 512
	columns = 256 // of results, rows of weights: 64 for each warpgroup
	depth   = 128 // elements of the inner index of a stage
)

// Shared memory has slots for so many stages, if they fit: for one that is multiplied, one that may be still, and those on their way.
const (
	minSlots = 3
	maxSlots = 4
	// sharedMemory is how much a block may have.
	sharedMemory = 227 << 10
)

// Given is what is known of a launch.
type Given struct {
	Aligned         bool                            // the memory of all arguments that are [Kernel.Wide] lies at multiples of 16
	Multiprocessors int                             // of the GPU
	Constant        func(name string) (int64, bool) // the value of a constant argument
	Still           func(name string) bool          // a memory argument is at the same place of its memory in each replay
}

// Fit is how a kernel is launched. The zero value says that it is launched as it was declared, with other code.
type Fit struct {
	Rows    int  // of results that a block makes
	Aligned bool // memory is read 16 bytes at a time
	Long    bool // the inner index may have more than one phase
	Chunk   int  // bytes of scales that are read at a time, if Aligned
	// Of a product with vectors: the length of a vector, how many results it has if all are alike, else the heads that it makes, tiles of rows, the
	// blocks that share them, and how many of these run on a multiprocessor at a time.
	Inner, Outer            int
	Projections             Projections
	Tiles, Blocks, Resident int
	// Of attention of few queries: the query heads that a cluster has, and those that share a key head; and Resident, for how many blocks of a multiprocessor
	// there is memory.
	Heads, Group int
}

// Fits reports whether there is code for the launch.
func (f Fit) Fits() bool { return f != Fit{} }

// Fit implements [Kernel].
func (p *product) Fit(groups [3]uint64, given Given) Fit {
	k, known := given.Constant("K")
	f := Fit{Rows: 128, Aligned: given.Aligned && known, Long: !known || k > phase, Chunk: 16}
	for f.Aligned && (2*k/int64(p.group)%int64(f.Chunk) != 0 || f.Chunk/2*p.group < depth) {
		f.Chunk /= 2
		f.Aligned = f.Chunk >= 4
	}
	if !f.Aligned {
		f.Chunk = 0
	}
	if p.form == rope {
		if f.Projections, known = p.projections(given); !known {
			return Fit{}
		}
	}
	rows, wide := p.size(groups, f)
	// Cycles of a stage: of tensor cores, or of decoding.
	best := uint64(0)
	for _, c := range []struct {
		rows   int
		cycles uint64
	}{{128, 1050}, {64, 700}, {32, 600}} {
		if c.rows > 64 && f.Long { // there is no room for what phases before have added up
			continue
		}
		blocks := wide * ((rows + uint64(c.rows) - 1) / uint64(c.rows))
		m := uint64(max(1, given.Multiprocessors))
		if cost := (blocks + m - 1) / m * c.cycles; best == 0 || cost < best {
			best, f.Rows = cost, c.rows
		}
	}
	return f
}

// Wide implements [Kernel].
func (*product) Wide(name string) bool {
	return name == "x" || strings.HasPrefix(name, "w") || strings.HasPrefix(name, "scales") || strings.HasPrefix(name, "biases")
}

// size is how many rows a grid makes results for, and how many blocks lie side by side.
func (p *product) size(groups [3]uint64, f Fit) (rows, wide uint64) {
	tall := uint64(64)
	switch p.form {
	case rope:
		tall = f.Projections.tall()
	case tile: // tiles of 32 columns along x
		return 32 * groups[1], (groups[0] + 7) / 8
	case siluMul: // tiles of 32 columns of each matrix
		return 64 * groups[0], (groups[1] + 3) / 4
	}
	// Tiles of 64 columns, of one matrix after another: each has a quarter as many blocks, rounded up.
	return tall * groups[0], (groups[1] + 3*uint64(len(p.sides))) / 4
}

// Launch implements [Kernel].
func (p *product) Launch(groups [3]uint64, f Fit) (grid [3]uint64, threadsOf, shared uint32) {
	rows, wide := p.size(groups, f)
	return [3]uint64{(rows + uint64(f.Rows) - 1) / uint64(f.Rows), wide, 1}, threads, uint32(p.memory(f))
}

func (p *product) codesBytes() int { return columns * depth * p.bits / 8 }

// stageBytes are those of x and of codes.
func (p *product) stageBytes(f Fit) int { return 2*depth*f.Rows + p.codesBytes() }

// scalesBytes are those of scales and biases: chunks of all rows, four of a stage each, or two of several stages.
func (*product) scalesBytes(f Fit) int { return max(2*16, maxSlots*8) * threads }

// pitch is how many elements lie from a row of results to the next in shared memory: what eight threads write side by side in four rows
// lies in different banks.
const pitch = columns + 8

// alignment is that of what a swizzled matrix consists of in shared memory.
const alignment = 1024

// slots is how many stages lie in shared memory.
func (p *product) slots(f Fit) int {
	return max(minSlots, min(maxSlots, (sharedMemory-p.beside(f))/p.stageBytes(f)))
}

// beside is what a block has in shared memory beside stages: scales, what phases have added up, and what is lost to alignment.
func (p *product) beside(f Fit) int {
	n := p.scalesBytes(f) + alignment
	if f.Long {
		n += 4 * threads * f.Rows / 2
	}
	return n
}

func (p *product) memory(f Fit) int {
	return max(p.slots(f)*p.stageBytes(f)+p.beside(f), 2*pitch*f.Rows+alignment)
}
