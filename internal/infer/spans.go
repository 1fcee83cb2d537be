package infer

import (
	"cmp"
	"slices"
)

// span is the bytes [lo, hi).
type span struct{ lo, hi int64 }

// spans is a set of bytes, as ordered spans of which no two overlap or adjoin.
type spans []span

// normal makes a set of spans in any order, which may overlap.
func normal(s []span) spans {
	slices.SortFunc(s, func(a, b span) int { return cmp.Compare(a.lo, b.lo) })
	out := s[:0]
	for _, x := range s {
		if x.hi <= x.lo {
			continue
		}
		if n := len(out) - 1; n >= 0 && x.lo <= out[n].hi {
			out[n].hi = max(out[n].hi, x.hi)
			continue
		}
		out = append(out, x)
	}
	return out
}

func (s spans) union(o spans) spans {
	if len(o) == 0 {
		return s
	}
	return normal(append(slices.Clone(s), o...))
}

func (s spans) intersect(o spans) (out spans) {
	for i, j := 0, 0; i < len(s) && j < len(o); {
		if lo, hi := max(s[i].lo, o[j].lo), min(s[i].hi, o[j].hi); lo < hi {
			out = append(out, span{lo, hi})
		}
		if s[i].hi < o[j].hi {
			i++
		} else {
			j++
		}
	}
	return out
}

// minus returns the bytes of s that are not in o.
func (s spans) minus(o spans) (out spans) {
	j := 0
	for _, x := range s {
		for j < len(o) && o[j].hi <= x.lo {
			j++
		}
		for k := j; k < len(o) && o[k].lo < x.hi; k++ {
			if x.lo < o[k].lo {
				out = append(out, span{x.lo, o[k].lo})
			}
			x.lo = max(x.lo, o[k].hi)
		}
		if x.lo < x.hi {
			out = append(out, x)
		}
	}
	return out
}

func (s spans) equal(o spans) bool { return slices.Equal(s, o) }

// bytes returns the number of bytes in the set.
func (s spans) bytes() (n int64) {
	for _, x := range s {
		n += x.hi - x.lo
	}
	return n
}

// hull returns the smallest span around the set.
func (s spans) hull() span {
	if len(s) == 0 {
		return span{}
	}
	return span{s[0].lo, s[len(s)-1].hi}
}

// box is a strided set of bytes, like ir.Region: runs of run bytes from off on, repeated as dims say, with the
// outermost dimension first.
type box struct {
	off, run int64
	dims     []boxDim
}

type boxDim struct{ count, stride int64 }

// maxDims is the maximum number of strided dimensions of a region.
const maxDims = 4

// boxOf returns s as a box, if it is one.
func boxOf(s spans) (b box, ok bool) {
	if len(s) == 0 {
		return box{}, true
	}
	b.off, b.run = s[0].lo, s[0].hi-s[0].lo
	at := make([]int64, len(s))
	for i, x := range s {
		if x.hi-x.lo != b.run {
			return box{}, false
		}
		at[i] = x.lo
	}
	for len(at) > 1 {
		// The innermost dimension is the run of equal distances at the beginning.
		n, step := 2, at[1]-at[0]
		for n < len(at) && at[n]-at[n-1] == step {
			n++
		}
		if len(at)%n != 0 || len(b.dims) == maxDims {
			return box{}, false
		}
		outer := at[:0]
		for i := 0; i < len(at); i += n {
			first := at[i]
			for k := range n {
				if at[i+k] != first+int64(k)*step {
					return box{}, false
				}
			}
			outer = append(outer, first)
		}
		at = outer
		b.dims = append(b.dims, boxDim{int64(n), step})
	}
	slices.Reverse(b.dims)
	return b, true
}

// maxSpans is the maximum number of spans in a set that is compared.
const maxSpans = 1 << 20

// spans returns the bytes of b, or false if there are too many spans.
func (b box) spans() (spans, bool) {
	if b.run <= 0 {
		return nil, true
	}
	at := []int64{b.off}
	for _, d := range b.dims {
		if d.count <= 0 {
			return nil, true
		}
		if d.count > maxSpans/int64(len(at)) {
			return nil, false
		}
		next := make([]int64, 0, len(at)*int(d.count))
		for _, a := range at {
			for i := range d.count {
				next = append(next, a+i*d.stride)
			}
		}
		at = next
	}
	out := make([]span, len(at))
	for i, a := range at {
		out[i] = span{a, a + b.run}
	}
	return normal(out), true
}
