//go:build linux && (amd64 || arm64)

package cuda

import (
	"sort"
	"sync"

	"github.com/mlxc/mlxc/backend/internal/plan"
	"github.com/mlxc/mlxc/backend/internal/ptxmatrix"
	"github.com/mlxc/mlxc/internal/air/nvptx"
	"github.com/mlxc/mlxc/ir"
)

// code is a stored plan with its kernels, and the launches (steps) that it consists of.
type code struct {
	*plan.Stored
	kernels []*kernel // by plan.Pipelines
	steps   []step
	users   [][]int32 // by number of a memory: the steps that bind it
	varying []int32   // steps whose launch depends on params
	words   []int32   // operations whose words depend on params
	bytes   int       // size of all steps' parameters and the pointers to them
	// rules, if not nil, have the GPU compute what depends on params.
	rules   *rules
	advance *kernel // evaluates the rules
	every   []bool  // by memory: it is kept of every replay
	still   []bool  // by param: it does not advance
	// programmatic: launches are programmatic dependent ones. unwritten, by step: no launch writes what its kernel
	// reads before it waits.
	programmatic    bool
	unwritten       []bool
	mma             nvptx.MMA // what tensor cores may multiply
	multiprocessors int
	shares          bool                    // launches are to share multiprocessors: entries ask for all of the memory that these can share
	sometimes       []int32                 // steps that some replays leave out
	choice          bool                    // there are steps with several entries
	fitsOf          map[fitOf]ptxmatrix.Fit // while steps are arranged
	fitKey          []byte                  // room for a key of fitsOf
	marks           []mark                  // if a tool takes ranges
	// arcs are the edges of a replay's CUDA graph, whose nodes are the steps, and then so many joins.
	arcs  []arc
	joins int32

	mu   *sync.Mutex
	kept []*topology // CUDA graphs that no launches of the code use
	// nodes are those of the graph, or of a command buffer; describe names one in errors.
	nodes    []ir.Node
	describe func(node int32) string
}

// step is the launch of a kernel: the operations that set its arguments, and its dispatch.
type step struct {
	first, dispatch int32 // indices of operations
	counts          int32 // the operation that binds the counts of its grid; −1: it has none
	next            bool  // only if another replay of the submission follows
	kernel          *kernel
	node            int32
	params          int // offset of its parameters in launches.block
	// additions is the offset of its table of additions in the launches' memory; 0: it has none.
	additions int
	moves     uint64 // the parameters to which the table adds, by bit
	// values: the kernel gets constants by value (nvptx.Launch).
	values bool
	whole  bool // nvptx.WholeThreadgroups
	mma    nvptx.MMA
	entry  *entry
	ahead  bool   // as [form] has it
	room   uint32 // bytes of shared memory that it asks for at least
	few    []few  // entries that are launched instead where a replay has few rows, the fewest first
	rows   int32  // if there are few: the index in Vars of what says how many rows there are (rowsOf)
	grid
}

// form returns the form of a step's entry.
func (c *code) form(s *step) form {
	return form{s.additions > 0, s.values, c.programmatic, s.mma, c.fitted(s, 0), c.shares, s.ahead}
}

// count is how many parameters the step's entry has.
func (s *step) count() int {
	n := s.kernel.parameters()
	if s.additions > 0 {
		n += 2
	}
	return n
}

// arrange makes the steps of a plan in their order. What depends on params is left to the GPU where that is possible
// and g is not nil; most is the GPU's maximum grid, in blocks.
func (c *code) arrange(g *ir.Graph, most [3]int) {
	p := c.Plan
	add := func(first, dispatch, counts int32) {
		s := step{first: first, dispatch: dispatch, counts: counts, next: p.Ops[dispatch].Next, node: p.Grids[p.Ops[dispatch].Index].Node}
		for i := first; i < dispatch; i++ {
			if o := &p.Ops[i]; o.Kind == plan.SetPipeline {
				s.kernel = c.kernels[o.Index]
			}
		}
		s.values, s.mma = c.byValue(&s), c.multiplied(&s)
		c.steps = append(c.steps, s)
	}
	for i := range c.Steps {
		x := &c.Steps[i]
		if x.Kind == plan.Execute {
			for _, k := range c.Commands[x.First:x.End] {
				add(k.First, k.Dispatch, -1)
			}
			continue
		}
		// A guard, whose first argument is the counts, and the dispatch that it guards.
		counts, first := int32(-1), x.First
		for i := x.First; i < x.End; i++ {
			switch o := &p.Ops[i]; o.Kind {
			case plan.SetBuffer:
				if counts < 0 && o.Slot == 0 {
					counts = i
				}
			case plan.Dispatch:
				first = i + 1
			case plan.DispatchIndirect:
				add(first, i, counts)
			}
		}
	}
	if g != nil {
		c.rule(g, most)
	}
	c.share()
	for n := range c.steps {
		s := &c.steps[n]
		s.whole = c.filled(s)
		s.params = c.bytes
		c.bytes += 16 * s.count()
		f := c.form(s)
		s.entry = s.kernel.entry(f, "", nil)
		c.fewer(g, s, f)
		c.choice = c.choice || len(s.few) > 0
		size := p.Grids[p.Ops[s.dispatch].Index].Size
		if len(c.vars(s.dispatch)) == 0 || c.vars(s.dispatch)[0].Op != s.dispatch {
			s.hollow = size[0] == 0 || size[1] == 0 || size[2] == 0
		}
		if s.hollow = s.hollow || s.next || s.counts >= 0; s.hollow {
			c.sometimes = append(c.sometimes, int32(n))
		}
		c.depends(int32(n))
	}
	c.rooms()
	c.hurry()
}

// filled reports whether all threadgroups of a step are whole, whatever params are, and consist of whole simdgroups.
func (c *code) filled(s *step) bool {
	g := &c.Grids[c.Ops[s.dispatch].Index]
	if g.Group[0]*g.Group[1]*g.Group[2]%32 != 0 {
		return false
	}
	if g.Unit == ir.Threadgroups {
		return true
	}
	if v := c.vars(s.dispatch); len(v) > 0 && v[0].Op == s.dispatch {
		return false
	}
	for i := range 3 {
		if g.Size[i]%uint64(g.Group[i]) != 0 {
			return false
		}
	}
	return true
}

// byValue reports whether a step can pass by value all constants that an entry takes so: they must be bytes of the
// plan, and not lie in buffers.
func (c *code) byValue(s *step) bool {
	var size [slots]int64
	for i := range s.kernel.kernel.Args {
		if a := &s.kernel.kernel.Args[i]; a.ByValue() {
			size[a.Index] = a.Size
		}
	}
	for i := s.first; i < s.dispatch; i++ {
		switch o := &c.Ops[i]; o.Kind {
		case plan.SetBuffer:
			if size[o.Slot] > 0 {
				return false
			}
		case plan.SetBytes:
			if o.Len < size[o.Slot] {
				return false
			}
		}
	}
	return true
}

// given reports whether the constant of a slot is passed by value.
func (s *step) given(slot uint8) bool { return s.values && s.kernel.values>>slot&1 != 0 }

// depends records what a step's launch depends on: the places of memories, and params that the host has to follow.
func (c *code) depends(n int32) {
	s := &c.steps[n]
	bind := func(o *plan.Op) {
		if o.Kind != plan.SetBuffer || o.Index == plan.Guarded {
			return
		}
		for int(o.Index) >= len(c.users) {
			c.users = append(c.users, nil)
		}
		if u := c.users[o.Index]; len(u) == 0 || u[len(u)-1] != n {
			c.users[o.Index] = append(u, n)
		}
	}
	varies := len(s.few) > 0
	if s.counts >= 0 { // a grid from memory is read for each launch
		varies = true
		bind(&c.Ops[s.counts])
	}
	for i := s.first; i <= s.dispatch; i++ {
		o := &c.Ops[i]
		bind(o)
		for _, v := range c.vars(i) {
			if v.Op != i {
				break
			}
			switch {
			case c.rules != nil && v.Part >= plan.Extent0:
				varies = varies || s.most[v.Part-plan.Extent0] == 0
			case c.rules != nil:
			case o.Kind == plan.SetBytes && c.Word[i] >= 0 && !s.given(o.Slot):
				c.words = append(c.words, i)
			default:
				varies = true
			}
		}
	}
	if varies {
		c.varying = append(c.varying, n)
	}
}

// vars returns the vars of an operation and of those behind it, by operation.
func (c *code) vars(op int32) []plan.Var {
	return c.Vars[sort.Search(len(c.Vars), func(i int) bool { return c.Vars[i].Op >= op }):]
}

// offset is the buffer offset of an operation at the values of params.
func (c *code) offset(op int32, params []uint32) int64 {
	if v := c.vars(op); len(v) > 0 && v[0].Op == op && v[0].Part == plan.Offset {
		return int64(v[0].Value(params))
	}
	return c.Ops[op].Off
}

// ruled reports whether the GPU computes the offset of an operation, by rules.
func (c *code) ruled(op int32) bool {
	v := c.vars(op)
	return len(v) > 0 && v[0].Op == op || c.every[c.Ops[op].Index]
}
