package ir

import (
	"fmt"
	"math/bits"

	"github.com/mlxc/mlxc/internal/collections/mix"
	"github.com/mlxc/mlxc/internal/interrupt"
)

// effects checks everything that a change of effects can make wrong: the effects themselves, and
// the other rules that depend on them.
func (c *checker) effects(g *Graph) {
	nc := nodeChecker{c: c, g: g}
	nc.prepare()
	var polls interrupt.Every
	for i, n := range g.Nodes {
		if polls.Poll(c.ctx, 64); len(c.defects) >= maxDefects {
			return
		}
		nc.i = i
		switch n := n.(type) {
		case *Carry:
			nc.carry(n)
			continue
		case *Dispatch:
			before := len(c.defects)
			if nc.effects(n); len(c.defects) > before {
				break
			}
			if v := n.Counts(); v != nil {
				nc.counts(n, *v)
			}
			nc.promises(n, n.alwaysRuns())
		}
		if command, ok := n.(Command); ok && len(nc.carries) > 0 {
			nc.behind(command)
		}
	}
}

func (nc *nodeChecker) effects(d *Dispatch) {
	e := d.Effects
	if e == nil {
		return
	}
	for i := range e.Reads {
		nc.region("read", &e.Reads[i], false)
	}
	for i := range e.Writes {
		nc.region("write", &e.Writes[i].Region, true)
	}
}

func (nc *nodeChecker) region(what string, at *Region, write bool) {
	// In the common case the region is constant and has no dimensions.
	if len(at.Dims) == 0 && at.Off.lin == nil && at.Run.lin == nil && nc.inside(at.Mem, at.Off.Const, at.Run.Const, write) {
		return
	}
	g, r := nc.g, *at
	if r.Mem < 0 || int(r.Mem) >= len(g.Memories) {
		nc.add(fmt.Sprintf("%s is of memory %d of %d", what, r.Mem, len(g.Memories)), "")
		return
	}
	m := &g.Memories[r.Mem]
	if len(r.Dims) == 0 && r.Off.IsConst() && r.Run.IsConst() {
		if r.Off.Const < 0 || r.Run.Const < 0 || r.Off.Const > m.Size || r.Run.Const > m.Size-r.Off.Const {
			nc.add(fmt.Sprintf("%s %s leaves the memory (%d bytes)", what, g.FormatRegion(r), m.Size), "")
		}
	} else if place, accepted := nc.memo.region(r); !accepted {
		if nc.strided(what, r, m) {
			*place = acceptedRegion{r, true}
		}
	}
	if write && m.Kind.ReadOnly() {
		nc.add(fmt.Sprintf("%s %s is of %s memory", what, g.FormatRegion(r), m.Kind), "weights and inputs are read-only to a graph")
	}
}

// strided checks a region that has dimensions or depends on params.
func (nc *nodeChecker) strided(what string, r Region, m *Memory) bool {
	g := nc.g
	if len(r.Dims) > 4 {
		nc.add(fmt.Sprintf("%s of %s has %d dimensions", what, g.memName(r.Mem), len(r.Dims)), "at most 4")
		return false
	}
	for _, dim := range r.Dims {
		lo, hi, ok := nc.bounds.Range(dim.Count)
		if !nc.c.intParams(g, dim.Count) || !ok || lo < 0 || dim.Stride < 0 || dim.Stride > maxSize {
			nc.add(fmt.Sprintf("%s %s has a dimension of negative count or stride", what, g.FormatRegion(r)), "")
			return false
		}
		// INVARIANT: the sum of four such numbers and an offset does not overflow 64 bits.
		if reach, ok := mulOK(hi, dim.Stride); !ok || reach > 1<<60 {
			nc.add(fmt.Sprintf("%s %s leaves 64 bits", what, g.FormatRegion(r)), "use smaller bounds")
			return false
		}
	}
	lo, end := r.Hull()
	return nc.within(what, "", lo, end, r.Run, m, func() string { return g.FormatRegion(r) })
}

// alwaysRuns reports whether the grid of d is constant and not empty.
func (d *Dispatch) alwaysRuns() bool {
	for i := range d.Grid {
		if e := &d.Grid[i]; !e.IsConst() || e.Num.Const <= 0 {
			return false
		}
	}
	return true
}

// promises checks that the writes of a dispatch without other defects are possible: where they go
// through bindings, and what must-writes promise. runs says that the grid is never empty, so that
// the dispatch runs for all values of the params.
func (nc *nodeChecker) promises(d *Dispatch, runs bool) {
	if d.Effects == nil {
		return
	}
	ws := d.Effects.Writes
	certain := 0
	for i := range ws {
		w := &ws[i]
		if len(d.Bindings) > 0 {
			nc.writable(d, w)
		}
		if w.Must {
			certain++
		}
	}
	if certain == 0 {
		return
	}
	if certain > 1 {
		nc.distinct(ws, certain)
	}
	for i := 0; i < len(d.Grid) && !runs; i++ {
		if e := &d.Grid[i]; !e.IsConst() || e.Num.Const <= 0 {
			nc.emptyWith(d, i)
		}
	}
}

// writable reports a write to memory that the dispatch binds only to arguments that its kernel does
// not write.
func (nc *nodeChecker) writable(d *Dispatch, w *Write) {
	if w.Run.IsConst() && w.Run.Const == 0 {
		return
	}
	written := nc.needs[d.Kernel].written
	if nc.boundTo(d, w, written) >= 0 {
		return
	}
	if through := nc.boundTo(d, w, ^written); through >= 0 {
		a, _ := nc.g.Kernels[d.Kernel].Arg(d.Bindings[through].Slot)
		nc.add(fmt.Sprintf("write %s goes through argument %s, which is declared %s", nc.g.FormatRegion(w.Region), a.Name, accessOf(&a)), "declare the argument write or readwrite")
	}
}

// boundTo returns the index of the last binding at one of the given slots through which w may
// happen, or −1.
func (nc *nodeChecker) boundTo(d *Dispatch, w *Write, slots uint32) int {
	root := nc.roots[w.Mem]
	// INVARIANT: slots ascend, so the index of the binding at slot n is at most n.
	for j := min(len(d.Bindings), bits.Len32(slots)) - 1; j >= 0; j-- {
		b := &d.Bindings[j]
		if slots>>b.Slot&1 == 0 || b.Kind != BindView || uint(b.View.Mem) >= uint(len(nc.roots)) {
			continue
		}
		if at := nc.roots[b.View.Mem]; at.mem == root.mem && !away(&w.Region, &b.View, at.off-root.off) {
			return j
		}
	}
	return -1
}

func accessOf(a *Arg) string {
	if a.Kind == ConstantArg {
		return "constant"
	}
	return a.Access.String()
}

// away reports whether a constant region ends before a constant view begins, or begins after it
// ends. The view's memory begins off bytes after that of the region.
func away(r *Region, v *View, off int64) bool {
	if !r.IsConst() || !v.Off.IsConst() || !v.Len.IsConst() {
		return false
	}
	end := r.Off.Const + r.Run.Const
	for _, d := range r.Dims {
		end += max(d.Count.Const-1, 0) * d.Stride
	}
	lo := v.Off.Const + off
	return end <= lo || lo+v.Len.Const <= r.Off.Const
}

// fewWrites is the number of must-writes up to which every pair is compared.
const fewWrites = 8

// distinct reports two must-writes of the same bytes, because it would be undefined which of the
// two values remains.
func (nc *nodeChecker) distinct(ws []Write, certain int) {
	same := func(i, j int) bool {
		a, b := &ws[i], &ws[j]
		p, q := nc.roots[a.Mem], nc.roots[b.Mem]
		if p.mem != q.mem || a.Off.Const+p.off != b.Off.Const+q.off || !a.Must || !b.Must {
			return false
		}
		x, y := a.Region, b.Region
		x.Mem, x.Off = p.mem, x.Off.AddConst(p.off)
		y.Mem, y.Off = q.mem, y.Off.AddConst(q.off)
		return x.Equal(y) && !(x.Run.IsConst() && x.Run.Const == 0)
	}
	report := func(i int) {
		nc.add(fmt.Sprintf("write %s is promised twice", nc.g.FormatRegion(ws[i].Region)), "list it once")
	}
	if certain <= fewWrites && len(ws) <= 4*fewWrites {
		for i := range ws {
			for j := range i {
				if same(i, j) {
					report(i)
					return
				}
			}
		}
		return
	}
	seen := map[uint64][]int{}
	for i := range ws {
		w := &ws[i]
		if !w.Must {
			continue
		}
		p := nc.roots[w.Mem]
		h := w.Run.Hash(w.Off.AddConst(p.off).Hash(uint64(p.mem)))
		for k := range w.Dims {
			h = w.Dims[k].Count.Hash(mix.Word(h, uint64(w.Dims[k].Stride)))
		}
		for _, j := range seen[h] {
			if same(j, i) {
				report(i)
				return
			}
		}
		if len(seen[h]) < fewWrites { // more writes with one hash are made on purpose, and would take quadratic time
			seen[h] = append(seen[h], i)
		}
	}
}

// emptyWith reports a must-write that is not empty where dimension i of the grid is 0. No thread
// runs then, so nothing is written.
func (nc *nodeChecker) emptyWith(d *Dispatch, i int) {
	g, e := nc.g, &d.Grid[i]
	for k := range d.Effects.Writes {
		w := &d.Effects.Writes[k]
		if !w.Must {
			continue
		}
		place, accepted := nc.memo.promise(e.Num, &w.Region)
		if accepted {
			continue
		}
		if !g.emptyAt(e.Num, &w.Region) {
			nc.add(fmt.Sprintf("write %s is promised, and the grid can be empty: dimension %d is %s", g.FormatRegion(w.Region), i, g.FormatAffine(e.Num)), "make it a may-write, or empty with the grid, or bound the params")
			return
		}
		*place = acceptedPromise{e.Num, w.Region, true}
	}
}

// emptyAt proves for all values of the params that r is empty or n is not 0. n is never negative.
func (g *Graph) emptyAt(n Affine, r *Region) bool {
	if lo, _, ok := g.Range(n); ok && lo > 0 {
		return true
	}
	// h is a graph whose params take exactly the values for which n is 0. If n is 0 only where each
	// of its terms has its min, the params of n are set to those values.
	h := &Graph{Params: append([]Param(nil), g.Params...), Constraints: append([]Constraint(nil), g.Constraints...)}
	if most, ok := (&Bounds{g: g}).box(n.Scale(-1).Terms()); ok && most == n.Const {
		for _, t := range n.Terms() {
			if p := &h.Params[t.Param]; t.Coeff > 0 {
				p.Max = p.Min
			} else {
				p.Min = p.Max
			}
		}
	} else if !n.IsConst() {
		h.Constraints = append(h.Constraints, Constraint{n.AddConst(-n.Const), -n.Const})
	}
	none := func(a Affine) bool {
		_, hi, ok := h.Range(a)
		return ok && hi <= 0
	}
	if none(r.Run) {
		return true
	}
	for k := range r.Dims {
		if none(r.Dims[k].Count) {
			return true
		}
	}
	return len(h.Constraints) > 0 && len(h.Samples(1)) == 0 && len(h.contradiction()) > 0
}
