package isel

import (
	"errors"
	"slices"

	"github.com/mlxc/mlxc/internal/collections/bump"
	"github.com/mlxc/mlxc/internal/invariants"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/msl/decl"
	"github.com/mlxc/mlxc/msl/term"
)

// Matcher finds library kernels or, where allowed, generated kernels that compute groups of one graph. It caches
// what it has found out about kernels.
type Matcher struct {
	lib      *Library
	combined map[[3]*decl.Decl]combination
	grows    map[*opTree]bool    // cache of Prefilter.Grow
	table    *opTreeTable        // of groups
	simple   map[*decl.Decl]bool // cache: whether a declaration is elementwise

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
	// Takes, if not nil, returns the time of a match of a group: of several matching kernels, the fastest is chosen.
	// Otherwise the one most like the members is.
	Takes func(*Group, *Match) float64
}

// NewMatcher returns a matcher of lib's kernels.
func NewMatcher(lib *Library) *Matcher {
	return &Matcher{lib: lib, combined: map[[3]*decl.Decl]combination{}, grows: map[*opTree]bool{}, simple: map[*decl.Decl]bool{}}
}

// Candidate is a match that can be carried over to groups that differ from its own only in where their views lie.
type Candidate struct {
	Like  *Match
	group *Group // of Like
	// views says, for each device argument of the match, where it lies: at a member's argument, or off bytes after
	// its begin.
	views []viewOrigin
	known bool // views is complete
}

type viewOrigin struct {
	binding int // in Dispatch.Bindings
	from    Operand
	same    bool // the view equals the member's
	off     ir.Affine
	length  ir.Affine
}

// Find is [Library.Match], but may also find a generated kernel or one without the
// roundings of intermediates, if the matcher allows them.
func (m *Matcher) Find(gr *Group) (*Candidate, error) {
	lay, err := newLayout(gr)
	if err != nil {
		return nil, err
	}
	hit, err := m.match(gr)
	if hit == nil {
		return nil, err
	}
	c := &Candidate{Like: hit, group: gr}
	c.views, c.known = origins(hit, gr, lay)
	return c, nil
}

// match tries the library's kernels before a generated one.
func (m *Matcher) match(gr *Group) (*Match, error) {
	generate := m.Generate && !slices.ContainsFunc(gr.Members, func(in *decl.Instance) bool { return !m.Elementwise(in.Decl) })
	if generate && !m.Prefilter(gr).Match {
		return m.lib.Generate(gr, narrowed(gr) && m.Unrounded)
	}
	var takes func(*Match) float64
	if m.Takes != nil {
		takes = func(x *Match) float64 { return m.Takes(gr, x) }
	}
	hit, err := m.lib.match(gr, false, takes)
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

// Elementwise is the cached function [Elementwise].
func (m *Matcher) Elementwise(d *decl.Decl) bool {
	ok, known := m.simple[d]
	if !invariants.Caches || !known {
		ok = Elementwise(d)
		m.simple[d] = ok
	}
	return ok
}

var errUnrounded = errors.New("it leaves out the rounding of an intermediate, which needs --allow=" + term.Unrounded)

// Again returns the dispatch of a candidate for another group that differs from the candidate's only in where its
// views lie; nil if the dispatch is not valid there or must be searched for. view returns the view of a member's
// argument, and kernel is the number of c.Like's kernel in g, −1 if g does not have it. The form is that of the
// dispatch, if [Matcher.Declared] found one.
func (m *Matcher) Again(c *Candidate, g *ir.Graph, view func(Operand) *ir.View, kernel ir.KernelID) (*ir.Dispatch, *decl.Form) {
	if !c.known {
		return nil, nil
	}
	// The new dispatch is bound and checked for aliasing like the first. Its terms are the same, so they need no new
	// check.
	d := m.dispatches.One()
	*d = *c.Like.Dispatch()
	d.Bindings = m.bindings.Clone(d.Bindings)
	for k := range c.views {
		v := &c.views[k]
		to := &d.Bindings[v.binding].View
		*to = *view(v.from)
		if !v.same {
			to.Off, to.Len = to.Off.Add(v.off), v.length
		}
	}
	if d.Kernel = kernel; kernel < 0 {
		with := *g
		with.Kernels = []ir.Kernel{c.Like.Kernel}
		g, d.Kernel = &with, 0
	}
	if m.Declared != nil && kernel >= 0 {
		if f := m.Declared.Form(d); f != nil {
			if f.Decl() != c.Like.Instance.Decl || f.CheckAliasing(d) != nil {
				return nil, nil
			}
			return d, f
		}
	}
	in, err := m.lib.Bind(g, d)
	if err != nil || in.Decl != c.Like.Instance.Decl || in.CheckAliasing() != nil {
		return nil, nil
	}
	return d, nil
}

// Members returns the members of the group for which c.Like was found.
func (c *Candidate) Members() []*decl.Instance { return c.group.Members }

// Anew searches from the beginning for a match of another group; nil if there is none, or if its results are not
// the candidate's.
func (m *Matcher) Anew(c *Candidate, gr *Group) *Match {
	hit, _ := m.match(gr)
	if hit != nil && !slices.Equal(hit.Results, c.Like.Results) {
		return nil
	}
	return hit
}

// origins finds for each view of a match the view of a member from which its position follows.
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

// combination says whether a set of kernels passes the prefilter.
type combination struct {
	ok    bool
	apart bool // even if they share no value that they read
}

// Combines reports whether up to three dispatches of these kernels, without data flow between them, may together be
// one library kernel; for a single kernel, whether it may be part of one. If sharing is false, the dispatches read no
// common value, and only library kernels whose results share none count.
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

// maxOpTrees bounds the operator trees that a matcher caches.
const maxOpTrees = 1 << 16

// opTreeTable returns the table of the groups' operator trees.
func (m *Matcher) opTreeTable() *opTreeTable {
	if m.table == nil || len(m.table.nodes) > maxOpTrees {
		m.table = newOpTreeTable(m.lib.opTrees)
		clear(m.grows)
	}
	return m.table
}

// opTrees returns the operator trees of the results of a declaration, with nil for those that no library kernel has.
func (m *Matcher) opTrees(d *decl.Decl) []*opTree {
	if p, ok := m.lib.byDecl[d]; ok {
		return p.opTrees
	}
	builder := &opTreeBuilder{d: d, table: m.lib.opTrees, fixed: true, memo: map[*term.Expr]*opTree{}}
	var trees []*opTree
	for _, r := range d.Results {
		trees = append(trees, builder.of(r.Body))
	}
	return trees
}

func (m *Matcher) combine(ds []*decl.Decl) (c combination) {
	var trees []*opTree
	for _, d := range ds {
		trees = append(trees, m.opTrees(d)...)
	}
	if len(ds) == 1 {
		c.ok = len(trees) > 0
		for _, s := range trees {
			c.ok = c.ok && m.lib.several[s]
		}
		return c
	}
	if slices.Contains(trees, nil) {
		return c
	}
	for _, p := range m.lib.with(trees) {
		c.ok, c.apart = true, c.apart || !p.shares
	}
	return c
}
