package decl

import (
	"slices"

	"github.com/mlxc/mlxc/ir"
)

// Form is what the instances of dispatches have in common that differ only in where their views
// lie. Such dispatches have the same kernel, grid, threadgroup, inline bytes and scalars, and views
// of the same lengths, whose offsets are multiples of the same powers of two up to 8.
type Form struct {
	in      Instance    // with symbols, shapes and strides, without dispatch and views
	regions []ir.Region // what is touched of each argument if its view begins at offset 0 of no memory
	slots   []int       // index in Dispatch.Bindings of each argument up to the last device argument; −1 if it has none
	reads   []int       // the arguments that are read, in the order of the effects
	writes  []int
	pairs   []clash
	root    func(ir.MemID) (ir.MemID, int64)
}

// clash is a pair of arguments that must not overlap, the first of which is written.
// endI and endJ are where their regions end, relative to their views, for the values
// of the params that make them greatest.
type clash struct {
	i, j       int
	endI, endJ int64
	same       bool // if the two views begin at the same byte they are equal, which @inplace allows
}

// NewForm returns the form of an instance that [Decl.Bind] made. It is an error if the
// dispatch touches bytes outside its views. root is [ir.Graph.Root], or a faster
// function with the same results.
func NewForm(in *Instance, root func(ir.MemID) (ir.MemID, int64)) (*Form, error) {
	d := in.Decl
	f := &Form{in: *in, regions: make([]ir.Region, len(d.Args)), root: root}
	f.in.Dispatch, f.in.Views, f.in.form = nil, nil, f
	for i := range d.Args {
		a := &d.Args[i]
		if a.Kind != ir.DeviceArg {
			continue
		}
		for len(f.slots) <= i {
			f.slots = append(f.slots, -1)
		}
		if a.Mode == Unused {
			continue
		}
		r, err := in.Region(i)
		if err != nil {
			return nil, err
		}
		r.Mem, r.Off = ir.NoMem, r.Off.Sub(in.Views[i].Off)
		r.Dims = slices.Clip(r.Dims) // many regions share them: nobody may append in place
		f.regions[i] = r
		if in.Views[i].Mem == ir.NoMem {
			continue
		}
		f.slots[i] = slices.IndexFunc(in.Dispatch.Bindings, func(b ir.Binding) bool { return b.Slot == a.Slot })
		switch {
		case void(r):
		case a.Mode == Read:
			f.reads = append(f.reads, i)
		default:
			f.writes = append(f.writes, i)
		}
	}
	for i := range f.slots {
		for j := range f.slots {
			if !d.mayClash(i, j) || f.slots[j] < 0 || void(f.regions[i]) || void(f.regions[j]) {
				continue
			}
			_, endI := f.regions[i].Hull()
			_, endJ := f.regions[j].Hull()
			_, x, ok1 := in.Graph.Range(endI)
			_, y, ok2 := in.Graph.Range(endJ)
			const far = 1 << 60 // no two offsets are this far apart
			if !ok1 || !ok2 {
				x, y = far, far
			}
			f.pairs = append(f.pairs, clash{i, j, x, y, slices.Contains(d.Inplace, [2]int{i, j}) && in.sameElements(i, j)})
		}
	}
	return f, nil
}

func void(r ir.Region) bool { return r.Run.IsConst() && r.Run.Const == 0 }

// Form returns the form from which [Form.Place] made in, or nil if [Decl.Bind] made it.
func (in *Instance) Form() *Form { return in.form }

// Views returns how many views [Form.Place] writes; Reads and Writes how many
// regions [Form.Effects] does.
func (f *Form) Views() int  { return len(f.slots) }
func (f *Form) Reads() int  { return len(f.reads) }
func (f *Form) Writes() int { return len(f.writes) }

// Decl returns the declaration of the form's dispatches.
func (f *Form) Decl() *Decl { return f.in.Decl }

// View returns where n, a dispatch of this form, binds device argument i; nil if
// it binds it inline.
func (f *Form) View(n *ir.Dispatch, i int) *ir.View {
	if i >= len(f.slots) || f.slots[i] < 0 {
		return nil
	}
	return &n.Bindings[f.slots[i]].View
}

// Describes reports whether e is complete and is what [Form.Effects] writes for n.
func (f *Form) Describes(n *ir.Dispatch, e *ir.Effects) bool {
	if !e.Known() || len(e.Reads) != len(f.reads) || len(e.Writes) != len(f.writes) {
		return false
	}
	for k, i := range f.reads {
		if !f.regionIs(&e.Reads[k], i, n) {
			return false
		}
	}
	for k, i := range f.writes {
		w, mode := &e.Writes[k], f.in.Decl.Args[i].Mode
		if w.Must != (mode == Write) || w.Atomic != (mode == Atomic) || !f.regionIs(&w.Region, i, n) {
			return false
		}
	}
	return true
}

func (f *Form) regionIs(r *ir.Region, i int, n *ir.Dispatch) bool {
	from, v := &f.regions[i], &n.Bindings[f.slots[i]].View
	off := behind(v.Off, from.Off)
	if r.Mem != v.Mem || !r.Off.Equal(off) || !r.Run.Equal(from.Run) || len(r.Dims) != len(from.Dims) {
		return false
	}
	// Regions that this form has written share its Dims.
	return len(r.Dims) == 0 || &r.Dims[0] == &from.Dims[0] || r.Equal(ir.Region{Mem: v.Mem, Off: off, Run: from.Run, Dims: from.Dims})
}

// Place sets *in to the instance of n, a dispatch of this form, and writes its views to
// views. Instances of one form share symbols, shapes and strides.
func (f *Form) Place(in *Instance, n *ir.Dispatch, views []ir.View) {
	for i, s := range f.slots {
		if s >= 0 {
			views[i] = n.Bindings[s].View
		} else {
			views[i].Mem = ir.NoMem
		}
	}
	*in = f.in
	in.Dispatch, in.Views = n, views
}

// Effects writes to reads and writes what n, a dispatch of this form, touches. The
// result is that of [Instance.Effects], except that regions of one form share their
// Dims, which must not be changed.
func (f *Form) Effects(n *ir.Dispatch, reads []ir.Region, writes []ir.Write) {
	for k, i := range f.reads {
		f.region(&reads[k], i, n)
	}
	for k, i := range f.writes {
		w := &writes[k]
		f.region(&w.Region, i, n)
		mode := f.in.Decl.Args[i].Mode
		w.Must, w.Atomic = mode == Write, mode == Atomic
	}
}

func (f *Form) region(r *ir.Region, i int, n *ir.Dispatch) {
	from, v := &f.regions[i], &n.Bindings[f.slots[i]].View
	r.Mem, r.Off, r.Run, r.Dims = v.Mem, behind(v.Off, from.Off), from.Run, from.Dims
}

// CheckAliasing is [Instance.CheckAliasing] of n, a dispatch of this form.
func (f *Form) CheckAliasing(n *ir.Dispatch) error {
	if f.apart(n) {
		return nil
	}
	var in Instance
	f.Place(&in, n, make([]ir.View, f.Views()))
	return in.overlap()
}

// apart reports whether it is plain from constant offsets that no pair overlaps.
func (f *Form) apart(n *ir.Dispatch) bool {
	for k := range f.pairs {
		p := &f.pairs[k]
		v, w := &n.Bindings[f.slots[p.i]].View, &n.Bindings[f.slots[p.j]].View
		ofI, ofJ := int64(0), int64(0)
		if v.Mem != w.Mem {
			var ri, rj ir.MemID
			ri, ofI = f.root(v.Mem)
			rj, ofJ = f.root(w.Mem)
			if ri != rj {
				continue
			}
		}
		// Offsets, ends and sizes of memories are below 2^48, so that no sum overflows.
		d, ok := w.Off.Distance(v.Off)
		d += ofJ - ofI
		if !ok || !(d >= p.endI || -d >= p.endJ || d == 0 && p.same) {
			return false
		}
	}
	return true
}
