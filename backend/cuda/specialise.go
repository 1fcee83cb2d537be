//go:build linux && (amd64 || arm64)

package cuda

import (
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"github.com/mlxc/mlxc/backend/internal/plan"
	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/air/nvptx"
	"github.com/mlxc/mlxc/internal/ptx"
	"github.com/mlxc/mlxc/ir"
)

// An entry is specialised for known parameters if at least worthwhile launches of a replay share them, as the layers
// of a model do; a launch of several times largeLaunch threads counts as several. Compiling one takes the driver
// milliseconds.
const (
	worthwhile  = 8
	largeLaunch = 8192
)

// specialise has steps with the same known parameters, such as the sizes of matrices and of the grid, launch an
// entry in which these are constants. The driver then unrolls loops and leaves out divisions, and no block begins by
// loading how long its rows are.
func (c *code) specialise() {
	type group struct {
		kernel *kernel
		known  string
	}
	groups := map[group]int32{}       // the numbers of the groups
	var counts, first []int32         // by group: the weighted count of its steps, and its first step
	of := make([]int32, len(c.steps)) // by step: the number of its group
	var known []parameter             // of a step
	var key []byte
	for n := range c.steps {
		s := &c.steps[n]
		known = c.known(s, known[:0])
		key = append(key[:0], oneIf(s.ahead))
		for _, p := range known {
			key = binary.AppendUvarint(binary.AppendUvarint(key, uint64(p.number)), p.value)
			if p.aligned {
				key = append(key, 'a')
			}
		}
		i, ok := groups[group{s.kernel, string(key)}]
		if !ok {
			i = int32(len(counts))
			counts, first = append(counts, 0), append(first, int32(n))
			groups[group{s.kernel, string(key)}] = i
		}
		of[n] = i
		counts[i] += int32(min(worthwhile, max(1, c.threads(s)/largeLaunch)))
	}
	entries := make([]*entry, len(counts)) // of groups that are worthwhile
	for g, i := range groups {
		if s := &c.steps[first[i]]; counts[i] >= worthwhile && !s.entry.fit.Fits() {
			entries[i] = g.kernel.entry(c.form(s), g.known, c.known(s, nil))
		}
	}
	for n, i := range of {
		if entries[i] != nil {
			c.steps[n].entry = entries[i]
		}
	}
}

// threads is how many threads a step has: a maximum if the GPU computes its grid, a minimum if the host does.
func (c *code) threads(s *step) uint64 {
	g := &c.Grids[c.Ops[s.dispatch].Index]
	n := uint64(1)
	for i := range 3 {
		size := g.Size[i]
		if s.most[i] > 0 {
			size = uint64(s.most[i])
		}
		if (g.Unit == ir.Threadgroups || s.most[i] > 0) && size < 1<<32 {
			size *= uint64(g.Group[i])
		}
		n = min(n, 1<<32) * min(size, 1<<31)
	}
	return n
}

// parameter is a parameter of an entry whose value is known, or which is an address that is known to be aligned to
// wideBytes.
type parameter struct {
	number  int
	value   uint64
	aligned bool
}

// known appends the parameters of a step whose value or alignment is the same in each replay.
func (c *code) known(s *step, out []parameter) []parameter {
	var value, shared [slots]uint64
	var aligned [slots]bool
	for i := s.first; i < s.dispatch; i++ {
		o := &c.Ops[i]
		if o.Kind == plan.SetBuffer || o.Kind == plan.SetBytes {
			aligned[o.Slot] = c.aligned(i)
		}
		switch {
		case o.Kind == plan.SetThreadgroupMemory:
			shared[o.Slot] = uint64(o.Len)
		case o.Kind == plan.SetBytes && s.given(o.Slot):
			if v := c.vars(i); len(v) == 0 || v[0].Op != i {
				value[o.Slot] = word(c.Words[c.Word[i]:][:o.Len])
			}
		}
	}
	at, begin := 0, uint64(0)
	for i := range s.kernel.kernel.Args {
		a := &s.kernel.kernel.Args[i]
		switch {
		case a.Attribute != "":
			continue
		case a.Space == air.Threadgroup:
			out = append(out, parameter{number: at, value: begin})
			begin += (shared[a.Index] + 15) &^ 15
		case a.ByValue() && s.values:
			out = append(out, parameter{number: at, value: value[a.Index]}) // 0 where the table of additions has it
		case aligned[a.Index]:
			out = append(out, parameter{number: at, aligned: true})
		}
		at++
	}
	g := &c.Grids[c.Ops[s.dispatch].Index]
	var varies [3]bool
	for _, v := range c.vars(s.dispatch) {
		if v.Op != s.dispatch {
			break
		}
		varies[v.Part-plan.Extent0] = true
	}
	for i := range 3 {
		threads := g.Size[i]
		if g.Unit == ir.Threadgroups {
			threads *= uint64(g.Group[i])
		}
		switch {
		case s.most[i] > 0:
			out = append(out, parameter{number: at + i}) // the table of additions has it
		case !varies[i]:
			out = append(out, parameter{number: at + i, value: threads})
		}
		group := uint64(g.Group[i])
		if i == 2 && s.whole {
			group |= nvptx.WholeThreadgroups
		}
		out = append(out, parameter{number: at + 3 + i, value: group})
	}
	if s.additions > 0 {
		out = append(out, parameter{number: at + 7, value: s.moves})
	}
	return out
}

// aligned reports whether what an operation binds is aligned to wideBytes in each replay, if memories lie as the
// graph asks, or at multiples of [backend.Info.Alignment] where it does not. That they do is checked when they are
// bound ([launches.make]).
func (c *code) aligned(op int32) bool {
	o := &c.Ops[op]
	if o.Kind == plan.SetBytes {
		return true // plan.WordAlign
	}
	if c.Graph == nil || int(o.Index) >= len(c.Graph.Memories) || int(o.Index) < len(c.every) && c.every[o.Index] || o.Off%wideBytes != 0 {
		return false
	}
	if v := c.vars(op); len(v) > 0 && v[0].Op == op {
		if v[0].Divide > 1 {
			return false
		}
		for _, t := range v[0].Expr.Terms() {
			if t.Coeff%wideBytes != 0 {
				return false
			}
		}
	}
	return c.Graph.Memories[o.Index].Align%wideBytes == 0
}

// facts returns what follows from known parameters: threads, blocks and aligned addresses.
func (x *kernel) facts(known []parameter) (f facts) {
	var numbers [6]uint64
	for _, p := range known {
		i := p.number - (x.parameters() - len(numbers))
		switch {
		case p.aligned && p.number < 64:
			f.aligned |= 1 << p.number
		case !p.aligned && i >= 0 && i < len(numbers):
			numbers[i] = p.value &^ nvptx.WholeThreadgroups
		}
	}
	f.threads = numbers[3] * numbers[4] * numbers[5]
	for i := range 3 {
		if numbers[i] > 0 && numbers[3+i] > 0 {
			f.blocks[i] = (numbers[i]-1)/numbers[3+i] + 1
		}
	}
	return f
}

// specialised replaces loads of known parameters, or of parts of them, by their values.
func specialised(m *ptx.Module, known []parameter) {
	values := map[int]uint64{}
	for _, p := range known {
		if !p.aligned {
			values[p.number] = p.value
		}
	}
	m.Replace(func(i int) ([]ptx.Line, bool) {
		l := &m.Lines[i]
		in := l.Instruction()
		if in == nil || !strings.HasPrefix(in.Op, "ld.param.") || in.Guard != "" || len(in.Args) != 2 || in.Args[1].Kind != ptx.Memory {
			return nil, false
		}
		typ := in.Op[len("ld.param."):]
		v, ok := values[entryParameter(in.Args[1].Name)]
		width, err := strconv.Atoi(typ[1:])
		if !ok || err != nil {
			return nil, false
		}
		v = v >> (8 * in.Args[1].Number) & (1<<width - 1)
		move := func(typ, value string) ([]ptx.Line, bool) {
			return l.With(fmt.Sprintf("mov.%s \t%s, %s", typ, in.Args[0].Text, value)), true
		}
		switch {
		case typ == "f32":
			return move(typ, fmt.Sprintf("0f%08X", v))
		case typ == "f64":
			return move(typ, fmt.Sprintf("0d%016X", v))
		case typ[0] == 's' && width < 64: // a value of 8 bits has a register of 16
			return move(fmt.Sprint("s", max(16, width)), fmt.Sprint(int64(v)<<(64-width)>>(64-width)))
		}
		return move(fmt.Sprint("b", max(16, width)), fmt.Sprint(v))
	})
}
