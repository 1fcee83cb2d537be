package decl

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/mlxc/mlxc/ir"
)

// Effects returns the bytes that the dispatch touches: those of the declared shapes with their
// strides. They are complete. If the grid is in memory, they are the effects of the max grid, and
// no write is a must-write.
func (in *Instance) Effects() (*ir.Effects, error) {
	e := &ir.Effects{Complete: true}
	if f := in.form; f != nil {
		e.Reads, e.Writes = make([]ir.Region, f.Reads()), make([]ir.Write, f.Writes())
		f.Effects(in.Dispatch, e.Reads, e.Writes)
		return e, nil
	}
	for i := range in.Decl.Args {
		a := &in.Decl.Args[i]
		if a.Kind != ir.DeviceArg || a.Mode == Unused {
			continue
		}
		r, err := in.Region(i)
		if err != nil {
			return nil, err
		}
		if in.Views[i].Mem == ir.NoMem || void(r) {
			continue
		}
		switch a.Mode {
		case Read:
			e.Reads = append(e.Reads, r)
		default:
			e.Writes = append(e.Writes, ir.Write{Region: r, Must: a.Mode == Write && in.Dispatch.Counts() == nil, Atomic: a.Mode == Atomic})
		}
	}
	if v := in.Dispatch.Counts(); v != nil {
		e.Reads = append(e.Reads, v.Contiguous())
	}
	return e, nil
}

// Region returns the bytes of device argument i (of Decl.Args) in canonical form: outer dimensions
// have larger strides (0 counts as the largest), no dimension has one element, no two dimensions
// could be one, and an empty region has no run.
func (in *Instance) Region(i int) (ir.Region, error) {
	a := &in.Decl.Args[i]
	v := in.Views[i]
	if in.form != nil {
		r := in.form.regions[i]
		r.Mem, r.Off = v.Mem, behind(v.Off, r.Off)
		return r, nil
	}
	if a.Whole {
		return ir.Region{Mem: v.Mem, Off: v.Off, Run: in.Shapes[i][0]}, nil
	}
	r := ir.Region{Mem: v.Mem, Off: v.Off}
	if in.At != nil {
		at, ok := scale(in.At[i], a.Elem.Size())
		if !ok {
			return r, in.errorf("%s: its place, %s, is absurd", a.Name, in.Graph.FormatAffine(in.At[i]))
		}
		r.Off = behind(r.Off, at)
	}
	dims, empty, err := in.dims(i)
	if err != nil || empty {
		return r, err
	}
	// The run: the dimensions of the least strides as long as they follow one
	// another.
	run := ir.Const(int64(a.Elem.Bits()))
	for len(dims) > 0 && run.IsConst() && dims[0].Stride == run.Const {
		run = dims[0].Count.Scale(run.Const)
		dims = dims[1:]
	}
	bytes, ok := exactBytes(run)
	if !ok {
		return r, in.errorf("%s: a row of %s bits is no whole number of bytes", a.Name, in.Graph.FormatAffine(run))
	}
	r.Run = bytes
	for _, d := range dims {
		if d.Stride%8 != 0 {
			return r, in.errorf("%s: a stride of %d bits is no whole number of bytes", a.Name, d.Stride)
		}
		d.Stride /= 8
		if n := len(r.Dims) - 1; n >= 0 && r.Dims[n].Count.IsConst() && r.Dims[n].Count.Const*r.Dims[n].Stride == d.Stride {
			r.Dims[n].Count = d.Count.Scale(r.Dims[n].Count.Const)
			continue
		}
		r.Dims = append(r.Dims, d)
	}
	slices.Reverse(r.Dims)
	if len(r.Dims) > 4 {
		return r, in.errorf("%s: more than 4 strided dimensions", a.Name)
	}
	return r, in.inside(a, i, r)
}

// behind returns the place that lies so far behind another one.
func behind(off, by ir.Affine) ir.Affine {
	if by.IsConst() && by.Const == 0 {
		return off // nearly always
	}
	return off.Add(by)
}

// dims returns the dimensions of argument i that have more than one element, the
// innermost of the canonical form first, with strides in bits. Or it reports that the
// argument is empty whatever the params are.
func (in *Instance) dims(i int) (dims []ir.Dim, empty bool, err error) {
	a := &in.Decl.Args[i]
	bits := int64(a.Elem.Bits())
	for j := len(in.Shapes[i]) - 1; j >= 0; j-- {
		n, s := in.Shapes[i][j], in.Strides[i][j]
		lo, hi, ok := in.Graph.Range(n)
		if !ok {
			return nil, false, in.errorf("%s: dimension %d, %s, leaves 64 bits", a.Name, j, in.Graph.FormatAffine(n))
		}
		if hi == 0 {
			return nil, true, nil
		}
		if n.IsConst() && n.Const == 1 {
			continue
		}
		// INVARIANT: the region reaches less than 2^limitBits bits, so that no sum
		// or product of its numbers leaves 64.
		if _, ok := scale(ir.Const(hi), s); !ok {
			return nil, false, in.errorf("%s: dimension %d of up to %d elements %d apart is absurd", a.Name, j, hi, s)
		}
		if s == 0 {
			if a.Mode != Read {
				return nil, false, in.errorf("%s: dimension %d is written with stride 0", a.Name, j)
			}
			// A stride of 0 names the same bytes again and again. They count once, unless the
			// dimension may be empty.
			if lo >= 1 {
				continue
			}
		}
		dims = append(dims, ir.Dim{Count: n, Stride: s * bits})
	}
	slices.SortStableFunc(dims, func(x, y ir.Dim) int {
		return cmp.Compare(uint64(x.Stride-1), uint64(y.Stride-1)) // 0 comes last
	})
	return dims, false, nil
}

func exactBytes(bits ir.Affine) (ir.Affine, bool) {
	if !divides(8, bits) {
		return bits, false
	}
	terms := slices.Clone(bits.Terms())
	for i := range terms {
		terms[i].Coeff /= 8
	}
	return ir.Linear(bits.Const/8, terms...), true
}

// inside checks that the region ends within the bound view, for every value of
// the params: a kernel that reads past its view reads somebody else's bytes.
func (in *Instance) inside(a *Arg, i int, r ir.Region) error {
	_, end := r.Hull()
	v := in.Views[i]
	limit := v.End()
	if v.Mem == ir.NoMem {
		limit = ir.Const(inlineSize(in.Graph.Resolve(*in.Dispatch.Binding(a.Slot))))
	}
	_, over, ok := in.Graph.Range(end.Sub(limit))
	if ok && over <= 0 {
		return nil
	}
	if v.Mem == ir.NoMem {
		return in.errorf("%s: the kernel touches %d bytes past its %d inline bytes", a.Name, over, limit.Const)
	}
	return in.errorf("%s: the kernel touches %s, %d bytes past the bound view %s", a.Name, in.Graph.FormatRegion(r), over, in.Graph.FormatView(v))
}

func inlineSize(b ir.Binding) int64 {
	if b.Kind == ir.BindScalar {
		return b.Type.Size()
	}
	return int64(len(b.Bytes))
}

// Concrete evaluates the instance for given values of the params: the shapes
// of all arguments.
func (in *Instance) Concrete(params []uint32) [][]int64 {
	out := make([][]int64, len(in.Shapes))
	for i, s := range in.Shapes {
		for _, d := range s {
			out[i] = append(out[i], d.Eval(params))
		}
	}
	return out
}

func (in *Instance) String() string {
	return fmt.Sprintf("%s %s", in.Dispatch.ID, in.Decl.Name)
}
