package isel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"sync"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/msl/decl"
	"github.com/mlxc/mlxc/msl/term"
)

// Library is a set of declared kernels, indexed by what they compute.
type Library struct {
	byName map[string][]*decl.Decl
	byKey  map[string][]*pattern
	// parts holds the operator trees of the results of all kernels, to stop early at a term that no kernel stores.
	parts map[*opTree]bool
	// several holds the operator trees of the results of kernels that have more than one.
	several map[*opTree]bool
	trees   []*opTree // parts, in the order of the library
	opTrees *opTreeTable
	byDecl  map[*decl.Decl]*pattern
	own     bool
}

// Own reports whether the library describes dispatches by the declarations of package msl, even if it was made by
// [Without] and so does not select all of these kernels.
func (l *Library) Own() bool { return l.own }

// pattern is a declaration as instruction selection sees it.
type pattern struct {
	d       *decl.Decl
	opTrees []*opTree // of d.Results
	// shares: two results read one argument
	shares bool
	memo   map[*term.Expr]*opTree
}

// NewLibrary indexes declarations. Several may have one name; the first whose
// conditions hold describes a dispatch, as everywhere.
func NewLibrary(ds ...*decl.Decl) *Library {
	l := &Library{byName: map[string][]*decl.Decl{}, byKey: map[string][]*pattern{}, parts: map[*opTree]bool{}, several: map[*opTree]bool{}, byDecl: map[*decl.Decl]*pattern{}, opTrees: newOpTreeTable(nil)}
	for _, d := range ds {
		l.byName[d.Name] = append(l.byName[d.Name], d)
		if !Selectable(d) {
			continue
		}
		p := &pattern{d: d, memo: map[*term.Expr]*opTree{}}
		builder := &opTreeBuilder{d: d, table: l.opTrees, memo: p.memo}
		for _, r := range d.Results {
			p.opTrees = append(p.opTrees, builder.of(r.Body))
			s := p.opTrees[len(p.opTrees)-1]
			if !l.parts[s] {
				l.trees = append(l.trees, s)
			}
			l.parts[s] = true
			if len(d.Results) > 1 {
				l.several[s] = true
			}
		}
		p.shares = shares(d)
		l.byDecl[d] = p
		k := string(appendKey(nil, p.opTrees))
		l.byKey[k] = append(l.byKey[k], p)
	}
	return l
}

// shares reports whether two results of d read one argument.
func shares(d *decl.Decl) bool {
	seen := map[int]int{}
	common := false
	for i := range d.Results {
		var see func(e *term.Expr)
		see = func(e *term.Expr) {
			switch e.Op {
			case term.Load:
				if j, ok := seen[e.Index]; ok && j != i {
					common = true
				}
				seen[e.Index] = i
			case term.Call:
				d.Wheres[e.Index].Body.Walk(see)
			}
		}
		d.Results[i].Body.Walk(see)
	}
	return common
}

// appendKey appends the key in byKey for results with these operator trees, which is independent of their order.
func appendKey(b []byte, trees []*opTree) []byte {
	var room [8]int
	ids := room[:0]
	for _, s := range trees {
		ids = append(ids, s.id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		b = binary.AppendUvarint(b, uint64(id))
	}
	return b
}

// with returns the kernels whose results have these operator trees, in any order.
func (l *Library) with(trees []*opTree) []*pattern {
	var room [32]byte
	return l.byKey[string(appendKey(room[:0], trees))]
}

// Several reports whether other kernels have results that look like d's, so that exchanging a dispatch of d is
// possible.
func (l *Library) Several(d *decl.Decl) bool {
	p := l.byDecl[d]
	return p != nil && len(l.with(p.opTrees)) > 1
}

// Selectable reports whether a kernel may run as a member of a group: everything that it
// does is in its terms, and its results do not depend on the order of threads.
func Selectable(d *decl.Decl) bool {
	if d.Nondeterministic || len(d.Results) == 0 {
		return false
	}
	for _, a := range d.Args {
		if a.Mode == decl.Update || a.Mode == decl.Atomic {
			return false
		}
	}
	return true
}

// narrow are the 16-bit types. Two thirds of the kernels of package msl take one of them. A group can become such a kernel
// only if one of its members takes that type. So for a graph without 16-bit elements these declarations are not read:
// reading them all takes longer than fusing the graph of a language model.
var narrow = []ir.DType{ir.F16, ir.BF16}

var builtin struct {
	sync.Mutex
	version int                 // of package msl
	of      map[string]*Library // by the names of the narrow types left out
}

// Builtin returns the library of package msl. It describes dispatches of all kernels, but selects none in plain loops,
// whose declarations are many and read only where a graph has them.
func Builtin() *Library { return without(nil) }

// BuiltinFor returns those kernels of package msl that dispatches of g may be, or become.
func BuiltinFor(g *ir.Graph) *Library {
	lacking := slices.Clone(narrow)
	for i := range g.Kernels {
		ds, err := msl.DeclarationsOf(&g.Kernels[i])
		if err != nil {
			continue // it is in no group
		}
		for _, d := range ds {
			for j := range d.Args {
				if n := slices.Index(lacking, d.Args[j].Elem); n >= 0 {
					lacking = slices.Delete(lacking, n, n+1)
				}
			}
		}
	}
	return without(lacking)
}

// without returns the library of package msl without kernels that take elements of these types.
func without(types []ir.DType) *Library {
	builtin.Lock()
	defer builtin.Unlock()
	if v := msl.Version(); builtin.of == nil || builtin.version != v {
		builtin.of, builtin.version = map[string]*Library{}, v
	}
	key := fmt.Sprint(types)
	l := builtin.of[key]
	if l == nil {
		var ds []*decl.Decl
		for _, n := range msl.FunctionsWithout(types...) {
			if msl.FileOf(n) != msl.PlainLoops {
				ds = append(ds, msl.Declarations(n)...)
			}
		}
		l = NewLibrary(ds...)
		l.own = true
		builtin.of[key] = l
	}
	return l
}

// Without returns [BuiltinFor] of g without the kernels whose names match one of the patterns, in the
// syntax of [path.Match]. Dispatches of these kernels can still be members of groups, but no group becomes one.
func Without(g *ir.Graph, patterns []string) *Library {
	l := NewLibrary(BuiltinFor(g).all()...)
	l.own = true
	for key, of := range l.byKey {
		l.byKey[key] = slices.DeleteFunc(of, func(p *pattern) bool {
			return slices.ContainsFunc(patterns, func(glob string) bool {
				ok, err := path.Match(glob, p.d.Name)
				return ok && err == nil
			})
		})
	}
	return l
}

// all returns the declarations of a library, by name.
func (l *Library) all() (out []*decl.Decl) {
	for _, name := range slices.Sorted(maps.Keys(l.byName)) {
		out = append(out, l.byName[name]...)
	}
	return out
}

// Bind finds the declaration that describes a dispatch, of the library or of a
// generated kernel, and applies it.
func (l *Library) Bind(g *ir.Graph, d *ir.Dispatch) (*decl.Instance, error) {
	k := &g.Kernels[d.Kernel]
	ds := l.byName[k.Function]
	if ds == nil && l.own {
		ds = msl.Declarations(k.Function)
	}
	err := fmt.Errorf("%s: the library has no function %q", d.ID, k.Function)
	if k.Library.Kind != ir.Builtin {
		if ds, err = msl.DeclarationsOf(k); err != nil {
			return nil, err
		}
	}
	for _, x := range ds {
		var in *decl.Instance
		if in, err = x.Bind(g, d); err == nil {
			return in, nil
		}
	}
	return nil, err
}

// copies are declarations of [ir.Copy] as kernels that move elements, one for each element size.
var copies = sync.OnceValue(func() map[ir.DType]*decl.Decl {
	out := map[ir.DType]*decl.Decl{}
	for _, t := range []ir.DType{ir.F32, ir.F16, ir.BF16, ir.U32, ir.I32, ir.U16, ir.U8} {
		source, err := decl.Parse("copy", "// @kernel copy\n// @arg 0 src device "+t.String()+"[n] read\n// @arg 1 dst device "+t.String()+
			"[n] write\n// @threads n, 1, 1\n// @group _, _, _\n// @term dst[i] = src[i]\n")
		ds := source.Decls
		if err != nil {
			panic(err) // the text is constant
		}
		out[t] = ds[0]
	}
	return out
})

// CopyOperands are the arguments of the instance that [Copy] returns.
const (
	CopySource = 0
	CopyResult = 1
)

var errCopy = errors.New("the copy moves no whole elements")

// Copy describes a copy as a dispatch that moves elements of type t.
func Copy(g *ir.Graph, c *ir.Copy, t ir.DType) (*decl.Instance, error) {
	d, ok := copies()[t]
	if !ok {
		return nil, errCopy
	}
	size := t.Size()
	n := ir.Const(0)
	for i, x := range append([]ir.Term{{Coeff: c.Src.Len.Const}}, c.Src.Len.Terms()...) {
		if x.Coeff%size != 0 {
			return nil, errCopy
		}
		if i == 0 {
			n = ir.Const(x.Coeff / size)
		} else {
			n = n.Add(ir.Linear(0, ir.Term{Param: x.Param, Coeff: x.Coeff / size}))
		}
	}
	for _, v := range []ir.View{c.Src, c.Dst} {
		_, off := g.Root(v.Mem)
		at := v.Off.AddConst(off)
		if at.Const%size != 0 || slices.ContainsFunc(at.Terms(), func(x ir.Term) bool { return x.Coeff%size != 0 }) {
			return nil, errCopy
		}
	}
	in := &decl.Instance{
		Decl: d, Graph: g,
		Dispatch: &ir.Dispatch{ID: c.ID, GridKind: ir.Threads, Grid: [3]ir.Extent{{Num: n, Div: 1}, ir.Ext(1), ir.Ext(1)}, Threadgroup: [3]uint32{1, 1, 1}, From: c.From, Label: c.Label, Op: "copy"},
		Symbols:  make([]decl.Value, len(d.Symbols)),
		Views:    []ir.View{c.Src, c.Dst},
		Shapes:   [][]ir.Affine{{n}, {n}},
		Strides:  [][]int64{{1}, {1}},
	}
	for i := range in.Symbols { // n is the only one
		in.Symbols[i] = decl.Value{Extent: ir.Extent{Num: n, Div: 1}, Param: -1}
	}
	return in, nil
}

// PlaceCopy sets *in to the instance of a copy that differs from the one of which like is the instance only in where its
// views lie. It uses the memory of d and views.
func PlaceCopy(in, like *decl.Instance, c *ir.Copy, d *ir.Dispatch, views []ir.View) {
	*in, *d = *like, *like.Dispatch
	d.ID, d.From, d.Label = c.ID, c.From, c.Label
	views[CopySource], views[CopyResult] = c.Src, c.Dst
	in.Dispatch, in.Views = d, views
}

// isCopy reports whether in comes from [Copy]: it has no threadgroup.
func isCopy(in *decl.Instance) bool { return in.Decl == copies()[in.Decl.Args[CopySource].Elem] }
