package prove

import (
	"errors"
	"fmt"

	"github.com/mlxc/mlxc/ir"
)

// checkFusion proves that each result of command i after is, as a term over
// equal values, a result of the commands before that it implements. That their
// other results have no other use is point 2: who read one would find no
// command that writes it.
func (p *proof) checkFusion(i int32, now []reading) {
	o := &p.a.ops[i]
	fail := func(v Verdict, format string, args ...any) {
		p.add(v, Fusion, p.before(i), []ir.ID{o.id}, "%s for %v: %s", p.a.g.Describe(o.node), p.before(i), fmt.Sprintf(format, args...))
	}
	if o.inst == nil {
		if _, isCopy := o.node.(*ir.Copy); !isCopy {
			fail(CannotTell, "it has no declared term")
			return
		}
	} else if o.inst.Decl.Nondeterministic {
		fail(CannotTell, "its kernel is nondeterministic")
		return
	}
	for _, j := range p.sets[i] {
		if in := p.b.ops[j].inst; in != nil && in.Decl.Nondeterministic {
			fail(CannotTell, "%s is nondeterministic", p.b.ops[j].id)
			return
		}
	}
	f := p.newFusion(i, now)
	for w := o.wlo; w < o.whi; w++ {
		image, err := f.imageOf(w)
		if err != nil {
			var v undecided
			if errors.As(err, &v) {
				fail(CannotTell, "%v", err)
			} else {
				fail(Refused, "%v", err)
			}
			return
		}
		p.images[w] = image
	}
	p.Fused++
}

func (u undecided) Error() string { return u.why }

// fusion compares the terms of one command after with those of its image.
type fusion struct {
	p       *proof
	op      int32
	t       *table
	a, b    *side
	sources []source
}

// source is a value that leaves read: a reading of either graph.
type source struct {
	reading
	after bool
}

func (p *proof) newFusion(i int32, now []reading) *fusion {
	f := &fusion{p: p, op: i, t: newTable(p.b.g)}
	f.a = &side{t: f.t, m: p.a, read: func(_ int32, k int) reading { return now[k] }, leaf: func(r *reading) int { return f.source(r, true) }}
	f.b = &side{t: f.t, m: p.b, set: p.sets[i], read: func(op int32, k int) reading { return p.recorded.of[op][k] }, leaf: func(r *reading) int { return f.source(r, false) }}
	return f
}

// source names the value of a reading: readings of equal values have one name.
func (f *fusion) source(r *reading, after bool) int {
	for i := range f.sources {
		s := &f.sources[i]
		if !sameShape(&s.at.region, &r.at.region) {
			continue
		}
		var equal bool
		switch {
		case s.after == after:
			equal, _ = equalValues(&s.reading, r, f.names(after), f.names(after))
		case after:
			equal, _ = equalValues(&s.reading, r, f.names(false), f.names(true))
		default:
			equal, _ = equalValues(r, &s.reading, f.names(false), f.names(true))
		}
		if equal {
			return i
		}
	}
	f.sources = append(f.sources, source{*r, after})
	return len(f.sources) - 1
}

func (f *fusion) names(after bool) names {
	if after {
		return f.p.images
	}
	return f.p.recordedNames
}

// imageOf finds the write before that holds what write w after does. An error
// that is undecided says what is missing to compare them.
func (f *fusion) imageOf(w int32) (image int32, err error) {
	mine := &f.p.a.writes[w]
	if !mine.must {
		return noWrite, undecided{"it may leave old bytes"}
	}
	off, dt, got, err := f.result(w)
	if err != nil {
		return noWrite, err
	}
	err = fmt.Errorf("it writes %s, and none of them writes as much", f.p.a.g.FormatRegion(mine.region))
	image = noWrite
	for _, j := range f.p.sets[f.op] {
		for z := f.p.b.ops[j].wlo; z < f.p.b.ops[j].whi; z++ {
			theirs := &f.p.b.writes[z]
			if !theirs.must || !sameShape(&theirs.region, &mine.region) {
				continue
			}
			want, why := f.term(func() termID { return f.b.stored(z, off, dt, f.level(w)) })
			switch {
			case why != nil:
				err = why
			case want == got && image == noWrite:
				image = f.p.recordedNames[z]
			case want == got:
				// A copy, say: the same bytes twice.
				f.p.rename(z, image)
			default:
				err = fmt.Errorf("its term is %s, theirs %s", f.t.format(got), f.t.format(want))
			}
		}
	}
	if image != noWrite {
		err = nil
	}
	return image, err
}

// term runs what may give up.
func (f *fusion) term(make func() termID) (id termID, err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case undecided:
			err = r
		default:
			panic(r)
		}
	}()
	return make(), nil
}

// result returns the term of what write w after holds, over one index for each
// dimension of its argument, where that element begins, in bits after the
// region's start, and its type.
func (f *fusion) result(w int32) (off termID, dt ir.DType, got termID, err error) {
	o := &f.p.a.ops[f.op]
	if o.inst == nil { // a copy, byte by byte
		got, err = f.term(func() termID {
			n := f.t.affine(o.node.(*ir.Copy).Dst.Len)
			off, dt = f.t.scale(f.t.index(0, n), 8), ir.U8
			return f.a.stored(w, off, dt, 1)
		})
		return off, dt, got, err
	}
	got, err = f.term(func() termID {
		arg := o.writtenArg(int(w - o.wlo))
		a := &o.inst.Decl.Args[arg]
		dt = a.Elem
		off = f.t.integer(0)
		for k, n := range o.inst.Shapes[arg] {
			if n.IsConst() && n.Const == 1 {
				continue
			}
			x := f.t.index(k, f.t.affine(n))
			off = f.t.add(off, f.t.times(o.inst.Strides[arg][k], int64(dt.Bits())), x)
		}
		return f.a.stored(w, off, dt, f.level(w))
	})
	return off, dt, got, err
}

// level returns the level of a result's first reduction: above its indices.
func (f *fusion) level(w int32) int {
	o := &f.p.a.ops[f.op]
	if o.inst == nil {
		return 1
	}
	return len(o.inst.Shapes[o.writtenArg(int(w-o.wlo))])
}
