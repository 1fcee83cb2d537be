package isel

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"

	"github.com/mlxc/mlxc/internal/collections/bump"
	"github.com/mlxc/mlxc/internal/invariants"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/msl/decl"
	"github.com/mlxc/mlxc/msl/term"
)

// Matcher is a library that remembers what it found: groups that differ only in
// where their views lie, as the layers of a model, are unified once. A matcher
// serves one graph.
type Matcher struct {
	lib      *Library
	memo     map[string]*outcome
	combined map[[3]*decl.Decl]combination
	skels    map[*decl.Decl][]*skel // of kernels that the library has not
	grows    map[*skel]bool         // see Outlook.Grow
	table    *skeletonTable         // of groups
	simple   map[*decl.Decl]bool    // elementwise
	key      []byte

	dispatches bump.Allocator[ir.Dispatch]
	bindings   bump.Allocator[ir.Binding]
	// Generate: groups of elementwise commands that no kernel computes become
	// kernels of their own.
	Generate bool
	// Declared, if not nil, binds the dispatches of the graph as lib does, faster.
	Declared *msl.Cache
	// Unrounded allows rewrite round: kernels that do not round intermediates to
	// f16 and bf16 where the group does.
	Unrounded bool
	// Hits and Misses count the groups that were known and those that were not.
	Hits, Misses int
}

// NewMatcher returns a matcher of lib's kernels.
func NewMatcher(lib *Library) *Matcher {
	return &Matcher{lib: lib, memo: map[string]*outcome{}, combined: map[[3]*decl.Decl]combination{}, skels: map[*decl.Decl][]*skel{}, grows: map[*skel]bool{}, simple: map[*decl.Decl]bool{}}
}

// Forget drops what is known of groups, to save memory.
func (m *Matcher) Forget() { clear(m.memo) }

// outcome is what became of a group.
type outcome struct {
	match *Match
	err   error
	// views says where each device argument of the match lies: at the place of an
	// argument of a member, or off bytes behind it.
	views []viewOrigin
	known bool   // views is complete
	group *Group // the first
}

type viewOrigin struct {
	binding int // in Dispatch.Bindings
	from    Operand
	same    bool // the member's view as it is
	off     ir.Affine
	length  ir.Affine
}

// Candidate is a group that is known to have a match, which is built when asked
// for.
type Candidate struct {
	// Like is the match of the first group that differs from this one only in
	// where its views lie: the same kernel, grid, constants and results.
	Like *Match
	o    *outcome
}

// Find is [Library.Match], remembered. The error of a remembered near miss is
// the first one's.
func (m *Matcher) Find(gr *Group) (*Candidate, error) {
	lay, err := newLayout(gr)
	if err != nil {
		return nil, err
	}
	m.key = appendGroup(m.key[:0], gr, lay)
	if o, ok := m.memo[string(m.key)]; invariants.Caches && ok {
		m.Hits++
		if o.match == nil {
			return nil, o.err
		}
		return &Candidate{o.match, o}, nil
	}
	m.Misses++
	hit, err := m.match(gr)
	o := &outcome{match: hit, err: err}
	if hit != nil {
		o.group = gr
		o.views, o.known = origins(hit, gr, lay)
	}
	m.memo[string(m.key)] = o
	if hit == nil {
		return nil, err
	}
	return &Candidate{hit, o}, nil
}

// match prefers a kernel of the library to a generated one.
func (m *Matcher) match(gr *Group) (*Match, error) {
	generate := m.Generate && !slices.ContainsFunc(gr.Members, func(in *decl.Instance) bool { return !m.elementwise(in.Decl) })
	if generate && !m.Outlook(gr).Match {
		return m.lib.Generate(gr, narrowed(gr) && m.Unrounded)
	}
	hit, err := m.lib.Match(gr)
	narrow := hit == nil && narrowed(gr)
	if narrow {
		if other, _ := m.lib.Unrounded(gr); other != nil {
			if m.Unrounded {
				return other, nil
			}
			err = &NearMiss{other.Kernel.Function, errUnrounded}
		}
	}
	if hit != nil || !generate {
		return hit, err
	}
	if hit, _ := m.lib.Generate(gr, narrow && m.Unrounded); hit != nil {
		return hit, nil
	}
	return nil, err
}

// elementwise is [Elementwise], remembered.
func (m *Matcher) elementwise(d *decl.Decl) bool {
	ok, known := m.simple[d]
	if !invariants.Caches || !known {
		ok = Elementwise(d)
		m.simple[d] = ok
	}
	return ok
}

var errUnrounded = errors.New("it leaves out the rounding of an intermediate, which needs --allow=" + term.Unrounded)

// Again returns the dispatch of a candidate over another group, which differs
// from the candidate's only in where its views lie; nil if the views may not lie
// as they do, or it must be found anew. view returns the view of an argument of a
// member. kernel is the kernel of c.Like in g, −1 if it has none yet. The form is
// that of the dispatch, if [Matcher.Declared] found one.
func (m *Matcher) Again(c *Candidate, g *ir.Graph, view func(Operand) *ir.View, kernel ir.KernelID) (*ir.Dispatch, *decl.Form) {
	if !c.o.known {
		return nil, nil
	}
	return m.again(c.o, g, view, kernel)
}

// Members are those of the group that c.Like was found for.
func (c *Candidate) Members() []*decl.Instance { return c.o.group.Members }

// Anew looks for the match of a candidate over another group without what is
// remembered.
func (m *Matcher) Anew(c *Candidate, gr *Group) *Match {
	hit, _ := m.match(gr)
	if hit != nil && !slices.Equal(hit.Results, c.Like.Results) {
		return nil
	}
	return hit
}

// origins finds for each view of a match a view of the group from which it can
// be told.
func origins(hit *Match, gr *Group, lay *layout) (out []viewOrigin, ok bool) {
	for b := range hit.Dispatch().Bindings {
		x := &hit.Dispatch().Bindings[b]
		if x.Kind != ir.BindView {
			continue
		}
		p, ok := lay.locate(x.View)
		if !ok {
			return nil, false
		}
		found := false
		for i, in := range gr.Members {
			for j, q := range lay.places[i] {
				if q.slot != p.slot || found && !in.Views[j].Equal(x.View) {
					continue
				}
				o := viewOrigin{binding: b, from: Operand{i, j}, same: in.Views[j].Equal(x.View), off: p.off.Sub(q.off), length: x.View.Len}
				if found {
					out[len(out)-1] = o
				} else {
					out = append(out, o)
				}
				if found = true; o.same {
					break
				}
			}
			if found && out[len(out)-1].same {
				break
			}
		}
		if !found {
			return nil, false
		}
	}
	return out, true
}

// again is a remembered match over the views of another group. It is bound and
// checked for aliasing like the first; its terms are the first's.
func (m *Matcher) again(o *outcome, g *ir.Graph, view func(Operand) *ir.View, kernel ir.KernelID) (*ir.Dispatch, *decl.Form) {
	d := m.dispatches.One()
	*d = *o.match.Dispatch()
	d.Bindings = m.bindings.Clone(d.Bindings)
	for k := range o.views {
		v := &o.views[k]
		to := &d.Bindings[v.binding].View
		*to = *view(v.from)
		if !v.same {
			to.Off, to.Len = to.Off.Add(v.off), v.length
		}
	}
	if d.Kernel = kernel; kernel < 0 {
		with := *g
		with.Kernels = []ir.Kernel{o.match.Kernel}
		g, d.Kernel = &with, 0
	}
	if m.Declared != nil && kernel >= 0 {
		if f := m.Declared.Form(d); f != nil {
			if f.Decl() != o.match.Instance.Decl || f.CheckAliasing(d) != nil {
				return nil, nil
			}
			return d, f
		}
	}
	in, err := m.lib.Bind(g, d)
	if err != nil || in.Decl != o.match.Instance.Decl || in.CheckAliasing() != nil {
		return nil, nil
	}
	return d, nil
}

// appendGroup writes all that a match depends on: the declarations, the values
// of their symbols, the grids, and how the views lie to one another.
func appendGroup(b []byte, gr *Group, lay *layout) []byte {
	num := func(x int64) { b = binary.AppendVarint(b, x) }
	affine := func(a ir.Affine) {
		num(a.Const)
		num(int64(len(a.Terms())))
		for _, t := range a.Terms() {
			num(int64(t.Param))
			num(t.Coeff)
		}
	}
	operand := func(o Operand) {
		num(int64(o.Member))
		num(int64(o.Arg))
	}
	for i, in := range gr.Members {
		b = append(append(b, in.Decl.Name...), 0)
		num(int64(in.Decl.Line))
		for k := range in.Symbols {
			v := &in.Symbols[k]
			affine(v.Num)
			num(v.Div)
			num(int64(math.Float32bits(v.F)))
			num(int64(v.Param))
		}
		num(int64(in.Dispatch.GridKind))
		for k := range 3 {
			affine(in.Dispatch.Grid[k].Num)
			num(in.Dispatch.Grid[k].Div)
			num(int64(in.Dispatch.Threadgroup[k]))
		}
		for j := range in.Decl.Args {
			p := lay.places[i][j]
			num(int64(p.slot))
			if p.slot >= 0 {
				affine(p.off)
				affine(in.Views[j].Len)
				if s, ok := gr.Source[Operand{i, j}]; ok {
					operand(s)
				} else {
					num(-1)
				}
			} else if a := &in.Decl.Args[j]; a.Kind == ir.DeviceArg && a.Mode != decl.Unused {
				x := in.Dispatch.Binding(a.Slot)
				num(int64(x.Type))
				affine(x.Expr)
				num(int64(len(x.Bytes)))
				b = append(b, x.Bytes...)
			}
		}
	}
	for _, s := range lay.slots {
		if s.filled {
			b = append(append(b, 1), s.fill[:]...)
			affine(s.at)
		} else {
			b = append(b, 0)
		}
	}
	for _, u := range gr.Unrounded {
		b = append(b, '-')
		if u {
			b[len(b)-1] = 'u'
		}
	}
	for _, os := range [][]Operand{gr.Results, gr.Spare} {
		num(int64(len(os)))
		for _, o := range os {
			operand(o)
		}
	}
	return b
}

// combination says whether some kernels look like one of the library.
type combination struct {
	ok    bool
	apart bool // even if they read no value in common
}

// Combines reports whether dispatches of these kernels, up to three and without
// data flow between them, look like one of a kernel of the library; for a single
// one, whether it looks like a part of one. Unless they share a value that they
// read, only kernels count whose results share none.
func (m *Matcher) Combines(sharing bool, ds ...*decl.Decl) bool {
	var k [3]*decl.Decl
	copy(k[:], ds)
	c, known := m.combined[k]
	if !invariants.Caches || !known {
		c = m.combine(ds)
		m.combined[k] = c
	}
	return c.apart || sharing && c.ok
}

// maxSkeletons bounds what a matcher remembers of skeletons.
const maxSkeletons = 1 << 16

// skeletonTable is where the skeletons of groups are.
func (m *Matcher) skeletonTable() *skeletonTable {
	if m.table == nil || len(m.table.nodes) > maxSkeletons {
		m.table = newSkeletonTable(m.lib.skels)
		clear(m.grows)
	}
	return m.table
}

// skeletons are those of the results of a kernel; nil for one that no kernel of the
// library has.
func (m *Matcher) skeletons(d *decl.Decl) []*skel {
	if p, ok := m.lib.byDecl[d]; ok {
		return p.skels
	}
	skels, ok := m.skels[d]
	if !invariants.Caches || !ok {
		skels = nil
		sk := &skeletons{d: d, table: m.lib.skels, fixed: true, memo: map[*term.Expr]*skel{}}
		for _, r := range d.Results {
			skels = append(skels, sk.of(r.Body))
		}
		m.skels[d] = skels
	}
	return skels
}

func (m *Matcher) combine(ds []*decl.Decl) (c combination) {
	var skels []*skel
	for _, d := range ds {
		skels = append(skels, m.skeletons(d)...)
	}
	if len(ds) == 1 {
		c.ok = len(skels) > 0
		for _, s := range skels {
			c.ok = c.ok && m.lib.several[s]
		}
		return c
	}
	if slices.Contains(skels, nil) {
		return c
	}
	for _, p := range m.lib.byKey[joined(skels)] {
		c.ok, c.apart = true, c.apart || !p.shares
	}
	return c
}
