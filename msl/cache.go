package msl

import (
	"bytes"
	"hash/maphash"
	"math/bits"
	"slices"

	"github.com/mlxc/mlxc/internal/collections/bump"
	"github.com/mlxc/mlxc/internal/collections/mix"
	"github.com/mlxc/mlxc/internal/invariants"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/decl"
)

// Cache binds and describes the dispatches of one graph, with the results and errors of [Bind] and
// [Describe]. It does the work once for all dispatches that differ only in where their views lie
// (they share a [decl.Form]): the layers of a model, the tokens of a batch. It allocates its
// results in large pieces, not dispatch by dispatch.
//
// While a cache is in use, the graph's params and constraints must not change, and neither must the
// memories and kernels that it has; more may be added. A cache is for one goroutine.
type Cache struct {
	g     *ir.Graph
	seed  uint64
	forms map[uint64]*cachedForm
	last  *cachedForm

	resolved ir.Binding
	count    int
	roots    []root

	instances bump.Allocator[decl.Instance]
	views     bump.Allocator[ir.View]
	effects   bump.Allocator[ir.Effects]
	reads     bump.Allocator[ir.Region]
	writes    bump.Allocator[ir.Write]
}

type root struct {
	mem      ir.MemID
	off      int64
	argument bool // it is argument memory: kernels get its bytes as if they were bound inline
}

// cachedForm is an entry of a cache's table. It keeps a copy of the dispatch that it
// was made from, because passes change dispatches in place.
type cachedForm struct {
	*decl.Form
	like    ir.Dispatch
	classes []uint8     // alignment classes of the views, by binding
	next    *cachedForm // the next entry with the same hash
	after   *cachedForm // the entry that followed this one the last time, because graphs repeat themselves
	or      *cachedForm // the entry that followed before that: a norm may be followed by one of two commands in turn
}

// These limits keep a hostile graph from making the table slow or large. Dispatches beyond them are
// bound without the table.
const (
	maxForms = 1 << 14
	maxChain = 8
)

// NewCache returns an empty cache for the dispatches of g.
func NewCache(g *ir.Graph) *Cache {
	return &Cache{g: g, seed: maphash.String(maphash.MakeSeed(), ""), forms: map[uint64]*cachedForm{}}
}

// Form returns the form of d, which callers may use as a key for results that depend only on the
// form. It returns nil for a dispatch that has none, such as one that Bind refuses.
func (c *Cache) Form(d *ir.Dispatch) *decl.Form {
	if !Declared(&c.g.Kernels[d.Kernel]) {
		return nil
	}
	if f := c.form(d); f != nil {
		return f.Form
	}
	return nil
}

// Forms returns how many forms the cache knows.
func (c *Cache) Forms() int { return c.count }

// Bind is [Bind]. The instance is valid as long as its dispatch is not changed.
// It shares symbols, shapes and strides with others.
func (c *Cache) Bind(d *ir.Dispatch) (*decl.Instance, error) {
	f := c.form(d)
	if f == nil {
		return Bind(c.g, d)
	}
	in := c.instances.One()
	f.Place(in, d, c.views.Take(f.Views()))
	return in, nil
}

// Describe is [Describe]. Effects of different dispatches share the Dims of their
// regions, which must not be changed in place.
func (c *Cache) Describe(d *ir.Dispatch) (*ir.Effects, error) {
	f := c.form(d)
	if f == nil {
		return Describe(c.g, d)
	}
	return c.EffectsOf(f.Form, d), f.CheckAliasing(d)
}

// DescribeTo is [Cache.Describe] with memory that the caller provides. What it returns
// is valid until the next call with the same e.
func (c *Cache) DescribeTo(e *ir.Effects, d *ir.Dispatch) (*ir.Effects, error) {
	f := c.form(d)
	if f == nil {
		return Describe(c.g, d)
	}
	e.Complete = true
	e.Reads = slices.Grow(e.Reads[:0], f.Reads())[:f.Reads()]
	e.Writes = slices.Grow(e.Writes[:0], f.Writes())[:f.Writes()]
	f.Form.Effects(d, e.Reads, e.Writes)
	return e, f.CheckAliasing(d)
}

// Effects returns [decl.Instance.Effects] of a dispatch that Bind accepts. Unlike
// [Cache.Describe] it does not check how views overlap.
func (c *Cache) Effects(d *ir.Dispatch) (*ir.Effects, error) {
	if f := c.form(d); f != nil {
		return c.EffectsOf(f.Form, d), nil
	}
	in, err := Bind(c.g, d)
	if err != nil {
		return nil, err
	}
	return in.Effects()
}

// EffectsOf is [Cache.Effects] of a dispatch whose form is known.
func (c *Cache) EffectsOf(f *decl.Form, d *ir.Dispatch) *ir.Effects {
	e := c.effects.One()
	e.Complete = true
	e.Reads, e.Writes = c.reads.Take(f.Reads()), c.writes.Take(f.Writes())
	f.Effects(d, e.Reads, e.Writes)
	return e
}

// form returns the entry for d and adds one if there is none. It returns nil if d
// cannot be bound or the table is full.
func (c *Cache) form(d *ir.Dispatch) *cachedForm {
	if !invariants.Caches || d.Counts() != nil {
		return nil // the graph has few dispatches, and each keeps effects of its own
	}
	c.extendRoots()
	l := c.last
	if l == nil {
		c.last = c.find(d)
		return c.last
	}
	f := l.after
	switch {
	case f != nil && c.alike(f, d):
		c.last = f
		return f
	case l.or != nil && c.alike(l.or, d):
		f = l.or
	default:
		f = c.find(d)
	}
	if f != nil {
		l.after, l.or, c.last = f, l.after, f
	}
	return f
}

func (c *Cache) find(d *ir.Dispatch) *cachedForm {
	h := c.hash(d)
	chain := 0
	for f := c.forms[h]; f != nil; f = f.next {
		if c.alike(f, d) {
			return f
		}
		chain++
	}
	if c.count >= maxForms || chain >= maxChain {
		return nil
	}
	in, err := Bind(c.g, d)
	if err != nil {
		return nil
	}
	x, err := decl.NewForm(in, c.root)
	if err != nil {
		return nil
	}
	f := &cachedForm{Form: x, like: *ir.CloneNode(d).(*ir.Dispatch), classes: make([]uint8, len(d.Bindings)), next: c.forms[h]}
	f.like.Effects, f.like.From = nil, nil
	for i := range f.like.Bindings {
		b := &f.like.Bindings[i]
		*b = *c.inline(b)
		if b.Kind == ir.BindView {
			f.classes[i] = c.class(&b.View)
		}
	}
	c.forms[h] = f
	c.count++
	return f
}

// hash and alike look at everything on which [Bind], regions and the rules of aliasing depend,
// except for the memories and offsets of views.

func (c *Cache) hash(d *ir.Dispatch) uint64 {
	h := c.seed
	h = mix.Word(h, uint64(d.Kernel)<<32^uint64(d.GridKind)<<24^uint64(len(d.Bindings))<<8^uint64(len(d.ThreadgroupMemory)))
	for i := range d.Grid {
		h = mix.Word(d.Grid[i].Num.Hash(h), uint64(d.Grid[i].Div)<<32^uint64(d.Threadgroup[i]))
	}
	for _, t := range d.ThreadgroupMemory {
		h = mix.Word(h, uint64(t.Slot)<<32^uint64(t.Bytes))
	}
	for i := range d.Bindings {
		b := c.inline(&d.Bindings[i])
		head := uint64(b.Slot)<<16 ^ uint64(b.Kind)<<8
		switch b.Kind {
		case ir.BindView:
			h = b.View.Len.Hash(h ^ head ^ uint64(c.class(&b.View))<<24)
		case ir.BindBytes:
			h = mixBytes(h^head, b.Bytes)
		default:
			h = b.Expr.Hash(h ^ head ^ uint64(b.Type))
		}
	}
	return h
}

func (c *Cache) alike(f *cachedForm, d *ir.Dispatch) bool {
	x := &f.like
	if x.Kernel != d.Kernel || x.GridKind != d.GridKind || x.Threadgroup != d.Threadgroup ||
		len(x.Bindings) != len(d.Bindings) || !slices.Equal(x.ThreadgroupMemory, d.ThreadgroupMemory) {
		return false
	}
	for i := range x.Grid {
		if !x.Grid[i].Equal(d.Grid[i]) {
			return false
		}
	}
	for i := range x.Bindings {
		a, b := &x.Bindings[i], c.inline(&d.Bindings[i])
		if a.Slot != b.Slot || a.Kind != b.Kind {
			return false
		}
		switch a.Kind {
		case ir.BindView:
			if !a.View.Len.Equal(b.View.Len) || f.classes[i] != c.class(&b.View) {
				return false
			}
		case ir.BindBytes:
			if !bytes.Equal(a.Bytes, b.Bytes) {
				return false
			}
		default:
			if a.Type != b.Type || !a.Expr.Equal(b.Expr) {
				return false
			}
		}
	}
	return true
}

// inline returns b as the kernel sees it. To a kernel, a view of argument memory is the same as
// inline bytes.
func (c *Cache) inline(b *ir.Binding) *ir.Binding {
	if b.Kind == ir.BindView && c.roots[b.View.Mem].argument {
		c.resolved = c.g.Resolve(*b)
		return &c.resolved
	}
	return b
}

// class is the alignment of the view in its root: the exponent of the largest power of two that
// divides its offset, up to 8, the size of the widest element.
func (c *Cache) class(v *ir.View) uint8 {
	x := uint64(v.Off.Const + c.roots[v.Mem].off)
	for _, t := range v.Off.Terms() {
		x |= uint64(t.Coeff)
	}
	return uint8(bits.TrailingZeros64(x | 8))
}

func (c *Cache) root(m ir.MemID) (ir.MemID, int64) { return c.roots[m].mem, c.roots[m].off }

// extendRoots finds the roots of memories that were added since the last call. An
// alias stands behind the memory that it lies in, whose root is therefore known.
func (c *Cache) extendRoots() {
	for i := len(c.roots); i < len(c.g.Memories); i++ {
		m := &c.g.Memories[i]
		r := root{ir.MemID(i), 0, m.Kind == ir.Argument}
		if m.Alias != ir.NoMem {
			p := c.roots[m.Alias]
			r.mem, r.off = p.mem, p.off+m.AliasOff
		}
		c.roots = append(c.roots, r)
	}
}

func mixBytes(h uint64, b []byte) uint64 {
	h = mix.Word(h, uint64(len(b)))
	for ; len(b) >= 8; b = b[8:] {
		h = mix.Word(h, uint64(b[0])|uint64(b[1])<<8|uint64(b[2])<<16|uint64(b[3])<<24|uint64(b[4])<<32|uint64(b[5])<<40|uint64(b[6])<<48|uint64(b[7])<<56)
	}
	x := uint64(0)
	for i, v := range b {
		x |= uint64(v) << (8 * i)
	}
	return mix.Word(h, x)
}
