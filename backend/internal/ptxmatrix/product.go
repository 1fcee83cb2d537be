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
}

// form is what is done with products.
type form uint8

const (
	store   form = iota // each matrix has results of its own
	tile                // the same of one matrix, with the grid of tiles of 32 by 32 results
	add                 // a residual is added
	siluMul             // silu of one product times the other
)

// named are the kernels of the builtin library.
var named = regexp.MustCompile(`^affine_qmm_t_(?:(x2|x3|add|silu_mul)_)?(float16_t|bfloat16_t)_gs_(32|64|128)_b_(4|8)_alN_(?:true|false)(_batch_0)?$`)

// Kernel is a kernel that this package has code for.
type Kernel interface {
	// Fit returns how a grid of a declaration's threadgroups is best launched; nothing if other code is better.
	// aligned: the memory of all arguments that are [Kernel.Wide] lies at multiples of 16.
	Fit(groups [3]uint64, aligned bool) Fit
	// Wide reports whether an argument may be read 16 bytes at a time.
	Wide(name string) bool
	// Launch returns the grid of blocks that stands for a grid of a declaration's threadgroups, or more: blocks that have
	// nothing to do leave. threads is how many a block has, and shared the bytes of its dynamic shared memory.
	Launch(groups [3]uint64, f Fit) (grid [3]uint64, threads, shared uint32)
	// Emit returns the text of an entry, as [nvptx.Compile] would make it for a way to launch it.
	Emit(launch nvptx.Launch, f Fit) []byte
}

// Of returns the code for a kernel of the builtin library with some function constants; nil if there is none.
func Of(k *air.Kernel, constants []ir.FunctionConstant) Kernel {
	if p := productOf(k); p != nil {
		return p
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
	columns = 128 // of results, rows of weights
	depth   = 128 // elements of the inner index of a stage, half of them for each pair of warpgroups
	half    = depth / 2
)

// Fit is how a product is launched.
type Fit struct {
	Rows    int  // of results that a block makes: 32, 64 or 128
	Aligned bool // all addresses are multiples of 16
}

// Fit implements [Kernel].
func (p *product) Fit(groups [3]uint64, aligned bool) Fit {
	f := Fit{Rows: 128, Aligned: aligned}
	rows := 64 * groups[0]
	if p.form == tile {
		rows = 32 * groups[1]
	}
	for f.Rows > 32 && rows <= uint64(f.Rows/2) {
		f.Rows /= 2
	}
	return f
}

// Wide implements [Kernel].
func (*product) Wide(name string) bool { return name == "x" || strings.HasPrefix(name, "w") }

// Launch implements [Kernel].
func (p *product) Launch(groups [3]uint64, f Fit) (grid [3]uint64, threadsOf uint32, shared uint32) {
	rows, wide := 64*groups[0], groups[1] // of 64 columns
	switch p.form {
	case tile:
		rows, wide = 32*groups[1], (groups[0]+1)/2
	case siluMul: // of 32 columns, of which a block makes 64
	}
	arms := uint64(len(p.sides))
	if p.form == siluMul {
		arms = 1
	}
	// Each matrix has half as many blocks of 128 columns as of 64, rounded up.
	return [3]uint64{(rows + uint64(f.Rows) - 1) / uint64(f.Rows), (wide + arms) / 2, 1}, threads, uint32(p.memory(f))
}

// stages is how many stages lie in shared memory: one that is multiplied, one that may be still, and those on their way.
const stages = 4

func (p *product) codesBytes() int      { return columns * depth * p.bits / 8 }
func (p *product) stageBytes(f Fit) int { return 2*depth*f.Rows + p.codesBytes() }

// pitch is how many elements lie from a row of results to the next in shared memory: what eight threads write side by side in four rows
// lies in different banks.
const pitch = columns + 8

// sumsBytes are those of the sums that warpgroups hand over.
func sumsBytes(f Fit) int { return 4 * f.Rows / 2 * threads / 2 }

// alignment is that of what a swizzled matrix consists of in shared memory.
const alignment = 1024

func (p *product) memory(f Fit) int {
	return max(stages*p.stageBytes(f), sumsBytes(f)+2*pitch*f.Rows) + alignment
}
