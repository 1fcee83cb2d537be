package isel

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/mlxc/mlxc/internal/analysis/bytestate"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/decl"
)

// Match is a dispatch that computes what a group computes.
type Match struct {
	// Instance is the dispatch as its declaration describes it, in a graph that
	// is the group's with Kernel as its only kernel.
	Instance *decl.Instance
	Kernel   ir.Kernel // its name is the function's; unique names are for the caller
	// Results are the group's operands that it writes, kept ones and spare ones.
	Results []Operand
	// Unrounded is the number of intermediates whose rounding to f16 or bf16 is
	// left out: rewrite round.
	Unrounded int
}

// Dispatch returns the dispatch, without an identity.
func (m *Match) Dispatch() *ir.Dispatch { return m.Instance.Dispatch }

// NearMiss is the error of a group that looks like a kernel but is not one.
type NearMiss struct {
	Kernel string
	Err    error
}

func (e *NearMiss) Error() string { return fmt.Sprintf("%s does not fit: %v", e.Kernel, e.Err) }

func (e *NearMiss) Unwrap() error { return e.Err }

// matcher looks for a kernel for one group.
type matcher struct {
	lib *Library
	gr  *Group
	lay *layout
	hit *Match
	// The composed terms, shared by all kernels that are fitted to them.
	composed  []*composed
	clash     bool // the last proposal was refused because its views overlap
	unrounded bool // roundings of intermediates are left out
	takes     func(*Match) float64
}

// composer returns a composer for the terms of the group.
func (m *matcher) composer(s *space) *composer {
	c := newComposer(s, m.gr.Members, m.lay.places, m.gr.Source)
	c.unrounded, c.dropped, c.inexact = m.unrounded, map[Operand]bool{}, m.gr.Unrounded
	return c
}

// Match returns a dispatch of one library kernel that computes what the group computes; nil if no kernel passes the
// prefilter. If one does but a condition fails, the error is a [*NearMiss].
func (l *Library) Match(gr *Group) (*Match, error) { return l.match(gr, false, nil) }

// Unrounded is [Library.Match] of the group without the roundings of its
// intermediates to f16 and bf16: rewrite round of docs/terms.md. Roundings that
// a condition or an integer depends on stay.
func (l *Library) Unrounded(gr *Group) (*Match, error) { return l.match(gr, true, nil) }

// match chooses among several matching kernels the one with the lowest time by takes or, for equal times and without
// takes, the one most like the members.
func (l *Library) match(gr *Group, unrounded bool, takes func(*Match) float64) (*Match, error) {
	lay, err := newLayout(gr)
	if err != nil {
		return nil, err
	}
	m := &matcher{lib: l, gr: gr, lay: lay, unrounded: unrounded, takes: takes}
	var miss error
	sets := [][]Operand{gr.Results}
	for i := range gr.Spare {
		sets = append(sets, append(slices.Clone(gr.Results), gr.Spare[i]))
	}
	for fold := range foldAll {
		if fold == foldOnes && !slices.ContainsFunc(lay.slots, func(s slot) bool { return s.filled }) {
			break
		}
		for _, rs := range sets {
			hit, err := m.try(rs, fold)
			if hit != nil {
				return hit, nil
			}
			if miss == nil {
				miss = err
			}
		}
	}
	return nil, miss
}

// try looks for a kernel that writes exactly the results rs.
func (m *matcher) try(rs []Operand, fold folding) (*Match, error) {
	shapes := make([][]dim, len(rs))
	for i, o := range rs {
		shapes[i] = m.own(o)
	}
	// Most kernels write their results in the same shapes as the members do.
	x := m.compose(rs, shapes, fold)
	if x.err != nil {
		x = m.composeOwn(rs, fold)
	}
	trees := make([]*opTree, len(rs))
	for i := range rs {
		if i >= len(x.results) {
			return nil, nil // some load's index maps cannot be composed
		}
		if trees[i] = m.lib.opTreeOf(x.results[i]); !m.lib.parts[trees[i]] {
			return nil, nil
		}
	}
	var miss error
	var best *Match
	least := math.Inf(1)
	// A kernel that writes elements of other types is none of these (see verify). Bytes that are moved as they are have
	// the operator tree of all the kernels that move or count elements, so this spares most of the fitting.
	typed := func(p *pattern, j, i int) bool {
		return p.d.Args[p.d.Results[j].Arg].Elem == m.gr.Members[rs[i].Member].Decl.Args[rs[i].Arg].Elem
	}
	for _, p := range m.byLikeness(m.lib.with(trees)) {
		var assign func(j int, taken []int) bool
		var err error
		assign = func(j int, taken []int) bool {
			if j < len(p.opTrees) {
				for i := range rs {
					if trees[i] == p.opTrees[j] && typed(p, j, i) && !slices.Contains(taken, i) && assign(j+1, append(taken[:j:j], i)) {
						return true
					}
				}
				return false
			}
			ops := make([]Operand, len(taken))
			for j, i := range taken {
				ops[j] = rs[i]
			}
			e := m.fit(p, ops, fold)
			if err == nil {
				err = e
			}
			return m.hit != nil
		}
		if assign(0, nil) {
			if m.takes == nil {
				return m.hit, nil
			}
			if t := m.takes(m.hit); best == nil || t < least {
				best, least = m.hit, t
			}
			m.hit = nil
			continue
		}
		if err != nil && miss == nil {
			miss = &NearMiss{p.d.Name, err}
		}
	}
	if best != nil {
		return best, nil
	}
	return nil, miss
}

// byLikeness sorts kernels that a member runs to the front, followed by those with the members' template parameters.
// Several variants of a kernel may match, and the engine that was recorded chose one.
func (m *matcher) byLikeness(ps []*pattern) []*pattern {
	likeness := func(p *pattern) (n int) {
		for _, in := range m.gr.Members {
			if in.Decl == p.d {
				n += 100
			}
		}
		for i, v := range p.d.Template {
			for _, in := range m.gr.Members {
				for k, w := range in.Decl.Template {
					if v == w && p.d.Symbols[i].Name == in.Decl.Symbols[k].Name {
						n++
					}
				}
			}
		}
		return n
	}
	out := slices.Clone(ps)
	slices.SortStableFunc(out, func(a, b *pattern) int { return likeness(b) - likeness(a) })
	return out
}

// own returns the index variables of a result in the shape in which its member writes it.
func (c *composer) own(o Operand) []form {
	shape := c.members[o.Member].Shapes[o.Arg]
	idx := make([]form, len(shape))
	for k, n := range shape {
		idx[k] = c.index(-1-k, c.affine(n))
	}
	return idx
}

// fit proposes kernel p for results ops, under every shape that the group
// suggests for them, until a proposal is accepted.
func (m *matcher) fit(p *pattern, ops []Operand, fold folding) error {
	choices := make([][][]dim, len(ops))
	for j, o := range ops {
		if choices[j] = m.shapes(o, len(p.d.Args[p.d.Results[j].Arg].Shape)); len(choices[j]) == 0 {
			return errContradiction
		}
	}
	var first error
	pick := make([]int, len(ops))
	for range maxShapes {
		shapes := make([][]dim, len(ops))
		for j := range ops {
			shapes[j] = choices[j][pick[j]]
		}
		m.clash = false
		proposed, err := m.fitShapes(p, ops, shapes, fold)
		if m.hit != nil {
			return nil
		}
		if !proposed {
			return err
		}
		if first == nil || first == errContradiction {
			first = err
		}
		if m.clash && m.twice(ops) {
			return first // with other shapes the two results would still overlap
		}
		j := 0
		for ; j < len(pick); j++ {
			if pick[j]++; pick[j] < len(choices[j]) {
				break
			}
			pick[j] = 0
		}
		if j == len(pick) {
			break
		}
	}
	return first
}

// twice reports whether two results have the same bytes.
func (m *matcher) twice(ops []Operand) bool {
	var seen []ir.Region
	for _, o := range ops {
		r, err := m.gr.Members[o.Member].Region(o.Arg)
		if err != nil {
			return false
		}
		r = bytestate.Rooted(m.gr.Graph, r)
		if slices.ContainsFunc(seen, r.Equal) {
			return true
		}
		seen = append(seen, r)
	}
	return false
}

// maxShapes bounds the combinations of shapes that are proposed.
const maxShapes = 12

// fitShapes proposes kernel p with results of given shapes. It says whether it
// came to a proposal: if not, other shapes do not help.
func (m *matcher) fitShapes(p *pattern, ops []Operand, shapes [][]dim, fold folding) (proposed bool, err error) {
	x := m.compose(ops, shapes, fold)
	s := x.space
	s.overflow = x.overflow
	f := &fitter{m: m, space: s, p: p, d: p.d, results: ops, shapes: shapes, floats: map[int]*value{}, slots: map[int]int{}, err: errContradiction}
	var todo []pair
	for j := range ops {
		r := &p.d.Results[j]
		a := &p.d.Args[r.Arg]
		if j == len(x.results) {
			return true, x.err
		}
		vars := make([]integerTerm, len(shapes[j]))
		for k, d := range shapes[j] {
			vars[k] = fixed(x.idx[j][k])
			f.eqs = append(f.eqs, equation{x: integerTerm{e: a.Shape[k]}, want: s.affine(d.n), arg: -1})
			if a.Strides != nil && !d.single() {
				f.eqs = append(f.eqs, equation{x: integerTerm{e: a.Strides[k]}, want: number(d.stride), arg: -1})
			}
		}
		x := x.results[j]
		if x.isInt {
			var ok bool
			if todo, ok = f.integerResult(r.Body, vars, x.f, todo); !ok {
				return false, errContradiction
			}
			continue
		}
		todo = append(todo, pair{r.Body, vars, x.v})
	}
	if s.overflow {
		return true, fmt.Errorf("its numbers leave 62 bits")
	}
	if f.run(todo) {
		return true, nil
	}
	return f.tries > 0, f.err
}

// composed holds the terms of results under given shapes.
type composed struct {
	ops      []Operand
	shapes   [][]dim
	fold     folding
	space    *space
	idx      [][]form // by result: its index variables
	results  []scalar // the results before the one that gave err
	err      error
	overflow bool
}

// compose returns the terms of results ops of the group under given shapes, in a
// space in which kernels are fitted to them.
func (m *matcher) compose(ops []Operand, shapes [][]dim, fold folding) *composed {
	for _, x := range m.composed {
		if x.fold == fold && slices.Equal(x.ops, ops) && slices.EqualFunc(x.shapes, shapes, sameShape) {
			return x
		}
	}
	s := newSpace(m.gr.Graph, m.lay.slots, fold)
	c := m.composer(s)
	x := &composed{ops: ops, shapes: shapes, fold: fold, space: s}
	m.composed = append(m.composed, x)
	for j, o := range ops {
		idx := make([]form, len(shapes[j]))
		at := form{}
		bits := int64(m.gr.Members[o.Member].Decl.Args[o.Arg].Elem.Bits())
		for k, d := range shapes[j] {
			idx[k] = s.index(-1-k, s.affine(d.n))
			at = s.addScaled(at, s.times(d.stride, bits), idx[k])
		}
		x.idx = append(x.idx, idx)
		inner, err := c.indices(o, at)
		if err == nil {
			var v scalar
			if v, err = c.result(o, inner); err == nil {
				x.results = append(x.results, v)
			}
		}
		if err != nil {
			x.err = err
			break
		}
	}
	x.overflow = s.overflow
	return x
}

// composeOwn is compose with the shapes in which the members write the results. It need not invert index maps,
// so it may succeed where compose fails.
func (m *matcher) composeOwn(ops []Operand, fold folding) *composed {
	s := newSpace(m.gr.Graph, m.lay.slots, fold)
	c := m.composer(s)
	x := &composed{space: s}
	for _, o := range ops {
		v, err := c.result(o, c.own(o))
		if err != nil {
			x.err = err
			break
		}
		x.results = append(x.results, v)
	}
	return x
}

// own returns the shape in which a member writes a result.
func (m *matcher) own(o Operand) []dim {
	in := m.gr.Members[o.Member]
	out := make([]dim, len(in.Shapes[o.Arg]))
	for k, n := range in.Shapes[o.Arg] {
		out[k] = dim{n, in.Strides[o.Arg][k]}
	}
	return out
}

func sameShape(a, b []dim) bool {
	return slices.EqualFunc(a, b, func(a, b dim) bool { return a.n.Equal(b.n) && a.stride == b.stride })
}

// dim is one dimension of a result: its extent and, in elements, its stride.
type dim struct {
	n      ir.Affine
	stride int64
}

func (d dim) single() bool { return d.n.IsConst() && d.n.Const == 1 }

// shapes lists index spaces of the given rank for the elements of a result: the result's own shape, the shapes of
// other results of the group, and flat ones.
func (m *matcher) shapes(o Operand, rank int) (out [][]dim) {
	own := m.own(o)
	add := func(ds []dim) {
		for _, x := range out {
			if sameShape(x, ds) {
				return
			}
		}
		out = append(out, ds)
	}
	if len(own) == rank {
		add(own)
	}
	for i, other := range m.gr.Members {
		for _, r := range other.Decl.Results {
			if (Operand{i, r.Arg}) == o {
				continue
			}
			if ds, ok := relayout(own, other.Shapes[r.Arg], rank); ok {
				add(ds)
			}
			if ds, ok := permuted(own, other.Shapes[r.Arg], other.Strides[r.Arg]); ok && len(ds) == rank {
				add(ds)
			}
		}
	}
	total := ir.Const(1)
	for _, d := range own {
		switch {
		case d.n.IsConst():
			total = total.Scale(d.n.Const)
		case total.IsConst():
			total = d.n.Scale(total.Const)
		default:
			return out
		}
	}
	for k := range rank {
		shape := make([]ir.Affine, rank)
		for i := range shape {
			shape[i] = ir.Const(1)
		}
		shape[rank-1-k] = total
		if ds, ok := relayout(own, shape, rank); ok {
			add(ds)
		}
	}
	return out
}

// permuted is relayout for an array whose dimensions lie in the order of the
// given strides.
func permuted(own []dim, shape []ir.Affine, strides []int64) ([]dim, bool) {
	order := make([]int, len(shape))
	for k := range order {
		order[k] = k
	}
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Compare(strides[y], strides[x]) })
	sorted := make([]ir.Affine, len(shape))
	for i, k := range order {
		sorted[i] = shape[k]
	}
	ds, ok := relayout(own, sorted, len(shape))
	if !ok {
		return nil, false
	}
	out := make([]dim, len(shape))
	for i, k := range order {
		out[k] = ds[i]
	}
	return out, true
}

// relayout finds strides with which an array of the given shape has the bytes of own in the same order (row-major).
// Dimensions of one element are dropped or added in front to reach the rank.
func relayout(own []dim, shape []ir.Affine, rank int) ([]dim, bool) {
	target := make([]ir.Affine, 0, rank)
	for _, n := range shape {
		if len(shape) <= rank || !n.IsConst() || n.Const != 1 {
			target = append(target, n)
		}
	}
	if len(target) > rank {
		return nil, false
	}
	for len(target) < rank {
		target = slices.Insert(target, 0, ir.Const(1))
	}
	// The dimensions of own, merged where they are contiguous, from the largest stride to the smallest.
	var merged []dim
	for _, d := range own {
		if !d.single() {
			merged = append(merged, d)
		}
	}
	slices.SortStableFunc(merged, func(a, b dim) int { return cmp.Compare(b.stride, a.stride) })
	for i := len(merged) - 1; i > 0; i-- {
		in, up := merged[i], merged[i-1]
		if in.n.IsConst() && up.stride == in.stride*in.n.Const {
			merged[i-1] = dim{up.n.Scale(in.n.Const), in.stride}
			merged = slices.Delete(merged, i, i+1)
		}
	}
	out := make([]dim, rank)
	for k := rank - 1; k >= 0; k-- {
		n := target[k]
		if n.IsConst() && n.Const == 1 {
			out[k] = dim{n, 0}
			continue
		}
		if len(merged) == 0 {
			return nil, false
		}
		d := &merged[len(merged)-1]
		out[k] = dim{n, d.stride}
		if n.Equal(d.n) {
			merged = merged[:len(merged)-1]
			continue
		}
		if !n.IsConst() || n.Const <= 0 {
			return nil, false
		}
		left, ok := quotient(d.n, n.Const)
		if !ok {
			return nil, false
		}
		*d = dim{left, d.stride * n.Const}
	}
	// The stride of a dimension of one element is free; most kernels want that of a
	// contiguous array.
	step := int64(1)
	for k := rank - 1; k >= 0; k-- {
		if out[k].single() {
			out[k].stride = step
		}
		if out[k].n.IsConst() {
			step = out[k].stride * max(out[k].n.Const, 1)
		}
	}
	return out, len(merged) == 0
}

func quotient(a ir.Affine, k int64) (ir.Affine, bool) {
	out := ir.Const(a.Const / k)
	ok := a.Const%k == 0
	for _, t := range a.Terms() {
		ok = ok && t.Coeff%k == 0
		out = out.Add(ir.Linear(0, ir.Term{Param: t.Param, Coeff: t.Coeff / k}))
	}
	return out, ok
}
