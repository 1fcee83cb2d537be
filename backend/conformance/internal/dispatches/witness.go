package dispatches

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/msl/decl"
)

// witness is a dispatch that an engine makes, or must not make: a @witness line of
// a Metal source.
type witness struct{ *decl.Witness }

var witnessesOf sync.Map // by function: its witnesses

// witnesses returns the witnesses of a function. It panics if the lines of its source cannot be parsed: a test of
// package msl parses all, and [msl.Register] refuses such a source.
func witnesses(function string) []witness {
	if out, ok := witnessesOf.Load(function); ok {
		return out.([]witness)
	}
	tests, err := msl.Tests(msl.Declarations(function)[0].File)
	if err != nil {
		panic(err)
	}
	var out []witness
	for _, w := range tests.Witnesses {
		if w.Matches(function) {
			out = append(out, witness{w})
		}
	}
	witnessesOf.Store(function, out)
	return out
}

// describes returns nil if one of the declarations, all of one function, describes
// the dispatch, else why the last one does not.
func (w witness) describes(ds []*decl.Decl) error {
	var err error
	for _, d := range ds {
		if err = w.bind(d); err == nil {
			return nil
		}
	}
	return err
}

func (w witness) bind(d *decl.Decl) error {
	b := ir.NewBuilder("witness")
	var constants []ir.FunctionConstant
	for _, c := range d.Constants {
		index := c.Index
		if i, ok := w.Indices[c.Name]; ok {
			index = i // the index that the kernel really has, whatever the declaration says
		}
		constants = append(constants, ir.FunctionConstant{Index: index, Name: c.Name, Type: c.Type, Bits: uint64(w.value(c.Name, 0))})
	}
	n := ir.Dispatch{Kernel: b.Kernel(d.Kernel(d.Name, constants...)), GridKind: w.Kind, Threadgroup: w.Group}
	for i, v := range w.Grid {
		n.Grid[i] = ir.Ext(v)
	}
	mems := map[string]ir.MemID{}
	for i := range d.Args {
		switch a := &d.Args[i]; {
		case a.Mode == decl.Unused || a.Kind == ir.ThreadgroupArg:
		case a.Kind == ir.DeviceArg:
			name := a.Name
			if name == w.Inplace[0] {
				name = w.Inplace[1]
			}
			if _, ok := mems[name]; !ok {
				mems[name] = b.Memory(ir.Memory{Name: name, Kind: ir.State, Size: 1 << 40})
			}
			n.Bindings = append(n.Bindings, ir.BufferArg(a.Slot, ir.ViewOf(mems[name], 0, 1<<40)))
		default:
			var raw []byte
			for j := range int(a.Count) {
				raw = appendElement(raw, a.Type, w.value(a.Name, j), 1)
			}
			n.Bindings = append(n.Bindings, ir.BytesArg(a.Slot, raw))
		}
	}
	in, err := d.Bind(b.Unfinished(), b.Dispatch(n))
	if err != nil {
		return err
	}
	if _, err := in.Effects(); err != nil {
		return err
	}
	return in.CheckAliasing()
}

func (w witness) value(name string, i int) int64 {
	if v := w.Values[name]; i < len(v) {
		return v[i]
	}
	return 0
}

// ErrWitness is wrapped by the errors of witnessed.
var ErrWitness = errors.New("declarations and witnesses disagree")

// Witnessed compares the declarations of a function with every witness of it.
func Witnessed(function string, ds []*decl.Decl) error {
	for _, w := range witnesses(function) {
		switch err := w.describes(ds); {
		case w.OK && err != nil:
			return fmt.Errorf("%v: an engine makes this dispatch of %s, %w: %w", w, function, ErrWitness, err)
		case !w.OK && err == nil:
			return fmt.Errorf("%v: a dispatch of %s that must be refused: %w", w, function, ErrWitness)
		}
	}
	return nil
}

// dispatch makes the witness's dispatch, ready to run. d describes it.
func (w witness) dispatch(d *decl.Decl) (*dispatch, error) {
	a := w.assign(d)
	if err := a.lets(); err != nil {
		return nil, err
	}
	b := &builder{a: a, r: a.r, pair: [2]int{-1, -1}, fixed: &w}
	if w.Inplace[0] != "" {
		for i, x := range d.Args {
			switch x.Name {
			case w.Inplace[0]:
				b.pair[0] = i
			case w.Inplace[1]:
				b.pair[1] = i
			}
		}
	}
	return b.build(0)
}

// assign returns an assignment of d whose symbols have the witness's values.
func (w witness) assign(d *decl.Decl) *assignment {
	a := newAssignment(d, rand.New(rand.NewPCG(uint64(w.Line), 3)))
	set := func(s int, v int64) {
		if a.floats[s] {
			a.f32s[s] = 1
		} else {
			a.vals[s] = v
		}
	}
	for _, c := range d.Constants {
		set(c.Symbol, w.value(c.Name, 0))
	}
	for _, x := range d.Args {
		if x.Kind == ir.ConstantArg && x.Mode != decl.Unused {
			for j := range int(x.Count) {
				set(x.Symbol+j, w.value(x.Name, j))
			}
		}
	}
	bind := func(g *decl.Grid, v [3]int64) {
		if g != nil {
			for i := range g {
				if g[i].Bind >= 0 {
					a.vals[g[i].Bind] = v[i]
				}
			}
		}
	}
	groups, threads, group := w.Grid, w.Grid, [3]int64{}
	for i, n := range w.Group {
		group[i] = int64(n)
		if w.Kind == ir.Threadgroups {
			threads[i] *= group[i]
		} else {
			groups[i] = (groups[i] + group[i] - 1) / max(1, group[i])
		}
	}
	bind(&d.Group, group)
	bind(d.Groups, groups)
	bind(d.Threads, threads)
	return a
}
