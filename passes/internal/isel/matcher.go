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

// Matcher finds what groups of one graph may become: a kernel of a library, and where it
// is allowed a generated one. It remembers what it found out about kernels.
type Matcher struct {
	lib      *Library
	combined map[[3]*decl.Decl]combination
	grows    map[*skel]bool      // see Outlook.Grow
	table    *skeletonTable      // of groups
	simple   map[*decl.Decl]bool // whether it is elementwise

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
	// Takes, if not nil, says how long a match of a group takes: of several kernels that compute the same, the
	// fastest one is chosen. Without it, it is the one that is most like the members.
	Takes func(*Group, *Match) float64
}

// NewMatcher returns a matcher of lib's kernels.
func NewMatcher(lib *Library) *Matcher {
	return &Matcher{lib: lib, combined: map[[3]*decl.Decl]combination{}, grows: map[*skel]bool{}, simple: map[*decl.Decl]bool{}}
}

// Candidate is a match, and how it is carried over to groups that differ from its own
// only in where their views lie.
type Candidate struct {
	Like  *Match
	group *Group // of Like
	// views says where each device argument of the match lies: at the place of an
	// argument of a member, or off bytes behind it.
	views []viewOrigin
	known bool // views is complete
}

type viewOrigin struct {
	binding int // in Dispatch.Bindings
	from    Operand
	same    bool // the member's view as it is
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

// match prefers a kernel of the library to a generated one.
func (m *Matcher) match(gr *Group) (*Match, error) {
	generate := m.Generate && !slices.ContainsFunc(gr.Members, func(in *decl.Instance) bool { return !m.Elementwise(in.Decl) })
	if generate && !m.Outlook(gr).Match {
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

// Elementwise is the function [Elementwise], remembered.
func (m *Matcher) Elementwise(d *decl.Decl) bool {
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
	if !c.known {
		return nil, nil
	}
	// The new dispatch is bound and checked for aliasing like the first; its terms are
	// the first one's.
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

// Members are those of the group that c.Like was found for.
func (c *Candidate) Members() []*decl.Instance { return c.group.Members }

// Anew looks for the match of another group, like that of the candidate, from the
// beginning; nil if there is none, or if it has other results.
func (m *Matcher) Anew(c *Candidate, gr *Group) *Match {
	hit, _ := m.match(gr)
	if hit != nil && !slices.Equal(hit.Results, c.Like.Results) {
		return nil
	}
	return hit
}

// origins finds for each view of a match a view of the group from which its place
// follows.
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
	sk := &skeletons{d: d, table: m.lib.skels, fixed: true, memo: map[*term.Expr]*skel{}}
	var skels []*skel
	for _, r := range d.Results {
		skels = append(skels, sk.of(r.Body))
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
	for _, p := range m.lib.with(skels) {
		c.ok, c.apart = true, c.apart || !p.shares
	}
	return c
}
