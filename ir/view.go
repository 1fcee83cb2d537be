package ir

// View is the byte range [Off, Off+Len) of a memory.
type View struct {
	Mem MemID
	Off Affine // bytes
	Len Affine // bytes
}

// ViewOf returns the constant view [off, off+n) of m.
func ViewOf(m MemID, off, n int64) View { return View{m, Const(off), Const(n)} }

// End returns the first byte after the view.
func (v View) End() Affine { return v.Off.Add(v.Len) }

// Equal reports whether v and o are the same expression.
func (v View) Equal(o View) bool {
	return v.Mem == o.Mem && v.Off.Equal(o.Off) && v.Len.Equal(o.Len)
}

// Dim repeats a run Count times, Stride bytes apart.
type Dim struct {
	Count  Affine
	Stride int64
}

// Region is a strided set of bytes of a memory: the runs [o, o+Run) for each o = Off + Σ i·Stride
// with 0 ≤ i < Count, one i for each of Dims (outermost first). It holds no bytes between the runs.
type Region struct {
	Mem  MemID
	Off  Affine
	Run  Affine
	Dims []Dim
}

// Contiguous returns the region of a view.
func (v View) Contiguous() Region { return Region{Mem: v.Mem, Off: v.Off, Run: v.Len} }

// Equal reports whether r and o are the same expression.
func (r Region) Equal(o Region) bool {
	if r.Mem != o.Mem || !r.Off.Equal(o.Off) || !r.Run.Equal(o.Run) || len(r.Dims) != len(o.Dims) {
		return false
	}
	for i, d := range r.Dims {
		if d.Stride != o.Dims[i].Stride || !d.Count.Equal(o.Dims[i].Count) {
			return false
		}
	}
	return true
}

// IsConst reports whether r depends on no param.
func (r Region) IsConst() bool {
	if !r.Off.IsConst() || !r.Run.IsConst() {
		return false
	}
	for _, d := range r.Dims {
		if !d.Count.IsConst() {
			return false
		}
	}
	return true
}

// HasRuns reports whether r is constant and has at most limit runs.
func (r *Region) HasRuns(limit int64) bool {
	if !r.IsConst() {
		return false
	}
	n := int64(1)
	for i := range r.Dims {
		if n *= r.Dims[i].Count.Const; n > limit {
			return false
		}
	}
	return true
}

// Runs calls yield with each run [lo, hi) of r for the given param values,
// until yield returns false. Runs may touch or overlap when a stride is
// smaller than the run.
func (r Region) Runs(params []uint32, yield func(lo, hi int64) bool) {
	n := r.Run.Eval(params)
	if n <= 0 {
		return
	}
	r.runs(params, r.Off.Eval(params), n, r.Dims, yield)
}

func (r Region) runs(params []uint32, off, n int64, dims []Dim, yield func(lo, hi int64) bool) bool {
	if len(dims) == 0 {
		return yield(off, off+n)
	}
	for i, c := int64(0), dims[0].Count.Eval(params); i < c; i++ {
		if !r.runs(params, off+i*dims[0].Stride, n, dims[1:], yield) {
			return false
		}
	}
	return true
}

// Hull returns the first byte of r and the first byte after it. The expressions hold if counts and
// runs are at least one and strides at least zero.
func (r Region) Hull() (lo, end Affine) {
	end = r.Off.Add(r.Run)
	for _, d := range r.Dims {
		end = end.Add(d.Count.AddConst(-1).Scale(d.Stride))
	}
	return r.Off, end
}
