//go:build linux && (amd64 || arm64)

package cuda

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/mlxc/mlxc/backend/internal/plan"
	"github.com/mlxc/mlxc/backend/internal/ptxmatrix"
	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/air/nvptx"
	"github.com/mlxc/mlxc/ir"
)

// few is an entry for replays in which a step has no more than some rows.
type few struct {
	rows  uint64
	entry *entry
	room  uint32 // as [step] has it
}

// fewRows are numbers of rows up to which products of matrices and attention have entries of their own, if their number depends on params: what is fast for a prompt leaves
// most of a GPU idle in a step of a few tokens.
var fewRows = [...]int{2, 8, 16, 64}

// fitOf is a kernel with what its fit depends on.
type fitOf struct {
	kernel *kernel
	key    string
}

// fewer finds the entries for few rows of a step whose entry has a form.
func (c *code) fewer(g *ir.Graph, s *step, f form) {
	if g == nil || !f.fit.Fits() {
		return
	}
	at := c.rowsOf(s)
	if at < 0 {
		return
	}
	for _, t := range c.Vars[at].Expr.Terms() {
		if c.rules != nil && g.Params[t.Param].Advance != 0 { // the host does not know it
			return
		}
	}
	for _, rows := range fewRows {
		f.fit = c.fitted(s, rows)
		if e := s.kernel.entry(f, "", nil); f.fit.Fits() && e != s.entry {
			s.few, s.rows = append(s.few, few{rows: uint64(rows), entry: e}), at
		}
	}
}

// rowsOf is the index in Vars of what says how many rows a step has, if that depends on params; −1: nothing does.
func (c *code) rowsOf(s *step) int32 {
	argument, dimension := s.kernel.matrix.Rows()
	op, part := s.dispatch, plan.Bytes
	switch {
	case argument != "":
		if op = c.constantOf(s, argument); op < 0 {
			return -1
		}
	case dimension < 0 || c.Grids[c.Ops[op].Index].Unit != ir.Threadgroups:
		return -1
	default:
		part = plan.Extent0 + plan.Part(dimension)
	}
	vars := c.vars(op)
	for i := range vars {
		if vars[i].Op != op {
			break
		}
		if vars[i].Part == part {
			return int32(len(c.Vars) - len(vars) + i)
		}
	}
	return -1
}

// chosen is a step's entry for a replay.
func (c *code) chosen(s *step, params []uint32) *entry {
	for i := range s.few {
		if c.Vars[s.rows].Value(params) <= s.few[i].rows {
			return s.few[i].entry
		}
	}
	return s.entry
}

// entries are all that a step is launched by.
func (s *step) entries() (out []*entry) {
	out = append(out, s.entry)
	for i := range s.few {
		out = append(out, s.few[i].entry)
	}
	return out
}

// fitted says how package ptxmatrix launches a step, which depends on the largest grid that it has, or on how many rows it has at most, if that is not 0; nothing if
// it does not.
func (c *code) fitted(s *step, rows int) ptxmatrix.Fit {
	if s.kernel.matrix == nil || c.mma == nvptx.NoMMA {
		return ptxmatrix.Fit{}
	}
	// The key has all that a fit depends on, so that steps that have it in common are fitted once.
	groups := c.threadgroups(s)
	key := binary.AppendUvarint(c.fitKey[:0], uint64(rows))
	for _, n := range groups {
		key = binary.AppendUvarint(key, n)
	}
	aligned := true
	wide := s.kernel.wide()
	for i := s.first; i < s.dispatch; i++ {
		if o := &c.Ops[i]; o.Kind == plan.SetBuffer && wide>>uint(max(0, s.kernel.parameter(o.Slot)))&1 != 0 {
			aligned = aligned && c.aligned(i)
		}
	}
	for op := s.first; op < s.dispatch; op++ {
		o := &c.Ops[op]
		if o.Kind != plan.SetBytes && o.Kind != plan.SetBuffer {
			continue
		}
		v := c.vars(op)
		key = append(key, byte(o.Kind), o.Slot, oneIf(len(v) > 0 && v[0].Op == op))
		if o.Kind == plan.SetBytes && o.Len >= 4 {
			key = append(key, c.Words[c.Word[op]:][:4]...)
		}
	}
	key = append(key, oneIf(aligned))
	c.fitKey = key
	if f, ok := c.fitsOf[fitOf{s.kernel, string(key)}]; ok {
		return f
	}
	f := s.kernel.matrix.Fit(groups, ptxmatrix.Given{
		Aligned: aligned, Multiprocessors: c.multiprocessors, Rows: rows,
		Constant: func(name string) (int64, bool) { return c.constant(s, name) },
		Still:    func(name string) bool { return c.unmoved(s, name) },
	})
	if c.fitsOf == nil {
		c.fitsOf = map[fitOf]ptxmatrix.Fit{}
	}
	c.fitsOf[fitOf{s.kernel, string(key)}] = f
	return f
}

// share finds out whether there is code of package ptxmatrix for any step but the attention of a token: products by other code, which then take most of the time, read their
// vector from the first-level cache (f16 weights of 8 billion parameters: a token took 10 % longer with little of it, H200).
func (c *code) share() {
	for n := range c.steps {
		f := c.fitted(&c.steps[n], 0)
		c.shares = c.shares || f.Fits() && f.Heads == 0
	}
}

// rooms sets how much shared memory even launches ask for, which are to have one block on each multiprocessor ([ptxmatrix.Fit.Even]). Of even launches that follow one another the first, the
// third, and so on ask for [ptxmatrix.Roomy] bytes. Any other launch ends such a row, since nobody knows where its blocks leave room: the next even launch is the first of a new row.
// What is launched depends on the number of rows, so each of [fewRows] has rows of its own; an entry that serves all numbers of rows asks for the same in all.
func (c *code) rooms() {
	for _, rows := range append([]int{0}, fewRows[:]...) {
		roomy := false
		for n := range c.steps {
			s := &c.steps[n]
			e, room := s.entry, &s.room
			for i := range s.few {
				if rows > 0 && uint64(rows) <= s.few[i].rows {
					e, room = s.few[i].entry, &s.few[i].room
					break
				}
			}
			switch {
			case !e.fit.Fits():
				roomy = false
				continue
			case rows > 0 && room == &s.room:
				roomy = s.room > 0
				continue
			}
			if roomy = e.fit.Even() && !roomy; roomy {
				*room = ptxmatrix.Roomy
			}
		}
	}
}

// hurry looks for clang's kernels, such as norms, that stand in front of an even launch ([ptxmatrix.Fit.Even]), and has them trigger it at their first instruction. The even launch then asks for
// its weights while the launch before both still runs. It is safe, since each kernel waits for the one before it before it reads anything else. Other kernels trigger behind their
// wait: if all did it first, ten launches would be resident, and their blocks would crowd on some multiprocessors (docs/tuning.md).
func (c *code) hurry() {
	for n := 1; n < len(c.steps); n++ {
		s, behind := &c.steps[n-1], &c.steps[n]
		if s.entry.fit.Fits() || !slices.ContainsFunc(behind.entries(), func(e *entry) bool { return e.fit.Even() }) {
			continue
		}
		s.ahead = true
		s.entry = s.kernel.entry(c.form(s), "", nil)
	}
}

// roomOf is how much shared memory a step asks for at least if it is launched by one of its entries.
func (s *step) roomOf(e *entry) uint32 {
	for i := range s.few {
		if s.few[i].entry == e {
			return s.few[i].room
		}
	}
	return s.room
}

func oneIf(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// constant is the value of a constant argument of four bytes, if it is the same in each replay.
func (c *code) constant(s *step, name string) (int64, bool) {
	op := c.constantOf(s, name)
	if op < 0 {
		return 0, false
	}
	v := c.vars(op)
	return int64(int32(word(c.Words[c.Word[op]:][:4]))), len(v) == 0 || v[0].Op != op
}

// constantOf is the operation that sets a constant argument of four bytes; −1: there is none.
func (c *code) constantOf(s *step, name string) int32 {
	for i := range s.kernel.kernel.Args {
		a := &s.kernel.kernel.Args[i]
		if a.Name != name || !a.ByValue() {
			continue
		}
		for op := s.first; op < s.dispatch; op++ {
			if o := &c.Ops[op]; o.Kind == plan.SetBytes && o.Slot == uint8(a.Index) && o.Len >= 4 {
				return op
			}
		}
	}
	return -1
}

// unmoved reports whether a memory argument is at the same place of its memory in each replay.
func (c *code) unmoved(s *step, name string) bool {
	for i := range s.kernel.kernel.Args {
		a := &s.kernel.kernel.Args[i]
		if a.Name != name {
			continue
		}
		for op := s.first; op < s.dispatch; op++ {
			if o := &c.Ops[op]; o.Kind == plan.SetBuffer && o.Slot == uint8(a.Index) {
				v := c.vars(op)
				return len(v) == 0 || v[0].Op != op
			}
		}
	}
	return false
}

// threadgroups are those of the largest grid of a step.
func (c *code) threadgroups(s *step) (out [3]uint64) {
	g := &c.Grids[c.Ops[s.dispatch].Index]
	size := g.Size
	for _, v := range c.vars(s.dispatch) {
		if v.Op != s.dispatch {
			break
		}
		if c.Graph == nil { // of a live recording; any fit computes the same
			break
		}
		if _, hi, ok := c.Graph.Range(v.Expr); ok && hi > 0 {
			by := max(1, v.Divide)
			size[v.Part-plan.Extent0] = uint64((hi-1)/by + 1)
		}
	}
	for i := range out {
		if out[i] = size[i]; g.Unit != ir.Threadgroups {
			out[i] = (size[i] + uint64(g.Group[i]) - 1) / uint64(g.Group[i])
		}
	}
	return out
}

// wide are the parameters, by bit, whose memory the code of package ptxmatrix may read 16 bytes at a time.
func (x *kernel) wide() (out uint64) {
	n := 0
	for i := range x.kernel.Args {
		a := &x.kernel.Args[i]
		if a.Attribute != "" {
			continue
		}
		if a.Space == air.Device && n < 64 && x.matrix.Wide(a.Name) {
			out |= 1 << n
		}
		n++
	}
	return out
}

// fitted sets the grid and the block of a launch whose entry is one of package ptxmatrix.
func (l *launches) fitted(n int) error {
	s, out := &l.steps[n], &l.list[n]
	if empty(out) {
		return nil
	}
	grid, threads, shared := s.kernel.matrix.Launch([3]uint64{uint64(out.Grid[0]), uint64(out.Grid[1]), uint64(out.Grid[2])}, l.entries[n].fit)
	for i := range grid {
		if grid[i] > uint64(l.device.limits.grid[i]) {
			return fmt.Errorf("%s: %d blocks in dimension %d: the GPU takes %d", l.describe(s.node), grid[i], i, l.device.limits.grid[i])
		}
		out.Grid[i] = uint32(grid[i])
	}
	out.Block, out.Shared = threads, max(shared, s.roomOf(l.entries[n]))
	return nil
}

// smallest is the smallest grid of a launch that does something: its blocks may be clusters.
func (l *launches) smallest(n int) (out [3]uint32) {
	grid := [3]uint64{1, 1, 1}
	if f := l.entries[n].fit; f.Fits() {
		grid, _, _ = l.steps[n].kernel.matrix.Launch(grid, f)
	}
	for i := range out {
		out[i] = uint32(grid[i])
	}
	return out
}
