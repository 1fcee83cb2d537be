//go:build linux && (amd64 || arm64)

package cuda

import (
	"sort"
	"sync"

	"github.com/mlxc/mlxc/backend/internal/plan"
	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/ir"
)

// code is a plan with its kernels.
type code struct {
	*plan.Stored
	kernels []*kernel // by plan.Pipelines
	steps   []step
	users   [][]int32 // by number of a memory: the steps that bind it
	varying []int32   // steps whose launch depends on params
	words   []int32   // operations whose words do
	bytes   int       // of all steps' parameters
	// rules, if not nil, are what the GPU does about params by itself.
	rules   *rules
	advance *kernel // follows the rules
	every   []bool  // by memory: it is kept of every replay
	still   []bool  // by param: it does not advance
	// programmatic: kernels wait by themselves; unwritten, by step: nobody writes what its kernel reads
	// before that.
	programmatic bool
	unwritten    []bool
	mma          air.MMA // what tensor cores may multiply
	sometimes    []int32 // steps that may do nothing
	marks        []mark  // if a tool hears of ranges

	mu   *sync.Mutex
	kept []*topology // that launches of the code had
	// nodes are the graph's, or those of a command buffer; describe names one.
	nodes    []ir.Node
	describe func(node int32) string
}

// step is a launch, with what sets its arguments.
type step struct {
	first, dispatch int32 // operations
	counts          int32 // the operation that binds the counts of its grid; −1: it has none
	next            bool  // only if another replay of the submission follows
	kernel          *kernel
	node            int32
	params          int // where its parameters begin
	// additions is where in the launches' memory the numbers lie that are added to its parameters; 0: nothing is.
	additions int
	moves     uint64 // the parameters to which they are added, by bit
	// values: constants that the kernel refers to are given to it by value.
	values bool
	whole  bool // air.WholeThreadgroups
	mma    air.MMA
	entry  *entry
	grid
}

// form is that of a step's entry.
func (c *code) form(s *step) form { return form{s.additions > 0, s.values, c.programmatic, s.mma} }

// count is how many parameters the step's entry has.
func (s *step) count() int {
	n := s.kernel.parameters()
	if s.additions > 0 {
		n += 2
	}
	return n
}

// arrange makes the steps of a plan in their order. What depends on params is left to the GPU as far as it
// can be; g is nil where the host has to say it.
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
	for n := range c.steps {
		s := &c.steps[n]
		s.whole = c.filled(s)
		s.params = c.bytes
		c.bytes += 16 * s.count()
		s.entry = s.kernel.entry(c.form(s), "", nil)
		size := p.Grids[p.Ops[s.dispatch].Index].Size
		if len(c.vars(s.dispatch)) == 0 || c.vars(s.dispatch)[0].Op != s.dispatch {
			s.hollow = size[0] == 0 || size[1] == 0 || size[2] == 0
		}
		if s.hollow = s.hollow || s.next || s.counts >= 0; s.hollow {
			c.sometimes = append(c.sometimes, int32(n))
		}
		c.depends(int32(n))
	}
}

// filled reports whether all threadgroups of a step have all their threads, whatever params are, and
// simdgroups all theirs.
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

// byValue reports whether a step can give all those constants by value that an entry takes so: their bytes
// are part of the plan.
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

// given reports whether the bytes of a slot are given by value.
func (s *step) given(slot uint8) bool { return s.values && s.kernel.values>>slot&1 != 0 }

// depends notes what a step's launch depends on: the places of memories, and params that the host has to
// look at.
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
	varies := s.counts >= 0 // what it reads is found out each time
	if varies {
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

// vars are what depends on params in an operation and those behind it.
func (c *code) vars(op int32) []plan.Var {
	return c.Vars[sort.Search(len(c.Vars), func(i int) bool { return c.Vars[i].Op >= op }):]
}

// offset is that of an operation at the values of params.
func (c *code) offset(op int32, params []uint32) int64 {
	if v := c.vars(op); len(v) > 0 && v[0].Op == op && v[0].Part == plan.Offset {
		return int64(v[0].Value(params))
	}
	return c.Ops[op].Off
}

// ruled reports whether the offset of an operation is found by the GPU.
func (c *code) ruled(op int32) bool {
	v := c.vars(op)
	return len(v) > 0 && v[0].Op == op || c.every[c.Ops[op].Index]
}
