package prove

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mlxc/mlxc/internal/invariants"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/term"
)

// checkFusion proves that each result of command i of A is, as a term over equal values, a result
// of the commands of B in its image. Other results of these commands must have no other use; point
// 2 shows that, because a reader of such a result would find no command that writes it.
func (p *proof) checkFusion(i int32) {
	o := &p.a.ops[i]
	fail := func(v Verdict, format string, args ...any) {
		p.add(v, Fusion, p.before(i), []ir.ID{o.id}, "%s for %s: %s", p.a.g.Describe(o.node), listed(p.before(i)), fmt.Sprintf(format, args...))
	}
	if n := len(p.sets.of(i)); n > maxSet {
		fail(CannotTell, "it stands for %d commands, and at most %d are compared", n, maxSet)
		return
	}
	if p.termless(i) {
		why := "it has no declared term"
		switch {
		case hasCounts(o.node):
			why = "its grid is in memory"
		case o.inst != nil:
			why = "its kernel is nondeterministic"
		}
		fail(CannotTell, "%s", why)
		return
	}
	for _, j := range p.sets.of(i) {
		if p.nondeterministic(&p.b.ops[j]) {
			fail(CannotTell, "%s is nondeterministic", p.b.ops[j].id)
			return
		}
	}
	f := p.newFusion(i, p.sets.of(i))
	if len(f.sources) > maxSources {
		fail(CannotTell, "they read more than %d values", maxSources)
		return
	}
	key, ok := f.signature()
	known := p.fusions[string(key)]
	if !invariants.Caches || !ok || known == nil {
		known = f.compare()
		if ok {
			p.fusions[string(key)] = known
		}
	}
	if known.err != nil {
		var v undecided
		if errors.As(known.err, &v) {
			fail(CannotTell, "%v", v)
		} else {
			fail(Refused, "%v", known.err)
		}
		return
	}
	for k, z := range known.images {
		p.images.images[int(o.wlo)+k] = f.writeOf(z)
	}
	for _, e := range known.equal {
		// a copy, for example, yields the same bytes a second time
		p.recordedNames.join(f.writeOf(e[0]), f.writeOf(e[1]))
	}
	p.use(term.Unrounded, known.unrounded)
	p.Fused++
	p.ByTerms = append(p.ByTerms, o.id)
}

// These bounds on the fusions that are compared are far above what a kernel with 31 arguments and a
// source of 4,096 bytes can be.
const (
	maxSet     = 1 << 12 // commands
	maxSources = 1 << 9  // values that they read
)

// listed formats the first few of a list of commands.
func listed(ids []ir.ID) string {
	const shown = 16
	if len(ids) <= shown {
		return fmt.Sprint(ids)
	}
	return strings.TrimSuffix(fmt.Sprint(ids[:shown]), "]") + fmt.Sprintf(" …] (%d)", len(ids))
}

// termless reports whether no term says what command i of A computes from what it reads. This is so
// if it is not a copy, and its kernel declares no term or is not deterministic.
func (p *proof) termless(i int32) bool {
	o := &p.a.ops[i]
	_, isCopy := o.node.(*ir.Copy)
	return o.inst == nil && !isCopy || p.nondeterministic(o) || hasCounts(o.node)
}

// hasCounts reports whether a command reads its grid from memory. Then no term says which elements
// it computes.
func hasCounts(c ir.Command) bool {
	d, ok := c.(*ir.Dispatch)
	return ok && d.Counts() != nil
}

func (u undecided) Error() string { return u.why }

// fusion compares the terms of one command of A with the terms of its image. Here the image is
// called the set.
type fusion struct {
	p       *proof
	op      int32
	now     []reading // what the command of A reads
	set     []int32
	t       *table
	a, b    *side
	sources []source
	leaves  []int // by read, first of the commands of the set, then of the command of A: its position in sources, or inner if a command of the set wrote it
	first   []int // where the reads of each command begin in leaves
}

const inner = -1

// source is a value that leaves stand for, as a command of B or of A reads it.
type source struct {
	reading
	after bool
}

// outcome is the result of comparing the terms of a fusion. It holds for all fusions
// with the same signature.
type outcome struct {
	err    error
	images []result    // by write of the command of A
	equal  [][2]result // results of the set whose terms are equal
	// unrounded is the number of roundings of intermediates that the rewrite `round`
	// dropped.
	unrounded int
}

// result is write number nr of the command at position member of the set.
type result struct{ member, nr int32 }

// memberOf returns the position of a command in the set, or −1.
func (f *fusion) memberOf(op int32) int {
	if k, ok := slices.BinarySearch(f.set, op); ok {
		return k
	}
	return -1
}

func (f *fusion) writeOf(r result) int32 { return f.p.b.ops[f.set[r.member]].wlo + r.nr }

func (p *proof) newFusion(i int32, set []int32) *fusion {
	f := &p.fusion
	*f = fusion{p: p, op: i, now: f.now[:0], set: set, sources: f.sources[:0], leaves: f.leaves[:0], first: f.first[:0], a: f.a, b: f.b}
	if f.a == nil {
		f.a = &side{m: p.a, read: func(_ int32, k int) reading { return f.now[k] }, leaf: func(_ int32, k int) int { return f.leaves[f.first[len(f.set)]+k] }}
		f.b = &side{m: p.b, read: func(op int32, k int) reading { return p.recorded.reading(p.b.ops[op].rlo + int32(k)) }, leaf: func(op int32, k int) int {
			return f.leaves[f.first[f.memberOf(op)]+k]
		}}
	}
	f.b.set = f.set
	for _, j := range f.set {
		f.first = append(f.first, len(f.leaves))
		for k := p.b.ops[j].rlo; k < p.b.ops[j].rhi; k++ {
			r := p.recorded.reading(k)
			if f.b.inside(&r) {
				f.leaves = append(f.leaves, inner)
			} else {
				f.leaves = append(f.leaves, f.source(&r, false))
			}
		}
	}
	f.first = append(f.first, len(f.leaves))
	for k := p.a.ops[i].rlo; k < p.a.ops[i].rhi; k++ {
		f.now = append(f.now, p.reading(k))
		f.leaves = append(f.leaves, f.source(&f.now[len(f.now)-1], true))
	}
	return f
}

// source returns the number of the value of a reading. Readings of equal values get the
// same number.
func (f *fusion) source(r *reading, after bool) int {
	if len(f.sources) > maxSources {
		return maxSources // too many: the fusion will not be compared
	}
	for i := range f.sources {
		s := &f.sources[i]
		if flat := s.at.flat() && r.at.flat(); flat && s.at.end-s.at.lo != r.at.end-r.at.lo || !flat && !sameOnce(s.m, s.at, r.m, r.at) {
			continue
		}
		var equal bool
		if after && !s.after {
			equal, _ = equalValues(&s.reading, r, f.names(false), f.names(true))
		} else {
			equal, _ = equalValues(&s.reading, r, f.names(after), f.names(after))
		}
		if equal {
			return i
		}
	}
	f.sources = append(f.sources, source{*r, after})
	return len(f.sources) - 1
}

func (f *fusion) names(after bool) *names {
	if after {
		return &f.p.images
	}
	return &f.p.recordedNames
}

// signature encodes everything that the terms depend on: the forms of the commands,
// which of their reads are the same value, which reads see writes of the set and where
// in them, and which are constants. ok is false if a command has no form.
func (f *fusion) signature() (key []byte, ok bool) {
	k := f.p.key[:0]
	num := func(v int64) { k = binary.AppendVarint(k, v) }
	read := func(r *reading, leaf int) bool {
		num(int64(leaf))
		m := &r.m.g.Memories[r.at.mem]
		switch {
		case leaf == inner:
			w := &r.m.writes[r.writes[0]]
			num(int64(f.memberOf(w.op)))
			num(int64(r.writes[0] - r.m.ops[w.op].wlo))
			d, ok := r.m.off(r.at).Distance(r.m.off(&w.access))
			num(d)
			return len(r.writes) == 1 && !r.initial && ok
		case m.Kind == ir.Weight && m.Init.Kind == ir.InitFill:
			num(-3) // not a leaf
			k = append(k, m.Init.Pattern[:]...)
			num(r.at.lo % 4)
			return r.at.flat()
		}
		return true
	}
	for s, j := range f.set {
		o := &f.p.b.ops[j]
		if o.kind < 0 {
			return nil, false
		}
		num(int64(o.kind))
		for i := range o.rhi - o.rlo {
			r := f.p.recorded.reading(o.rlo + i)
			if !read(&r, f.leaves[f.first[s]+int(i)]) {
				return nil, false
			}
		}
	}
	num(-2)
	if f.p.a.ops[f.op].kind < 0 {
		return nil, false
	}
	num(int64(f.p.a.ops[f.op].kind))
	for i := range f.now {
		if !read(&f.now[i], f.leaves[f.first[len(f.set)]+i]) {
			return nil, false
		}
	}
	f.p.key = k
	return k, true
}

// compare finds, for each write of the command of A, the result of the set that has its
// term. If the error is an undecided one, it says what was missing for the comparison.
func (f *fusion) compare() *outcome {
	f.begin()
	out := &outcome{}
	o := &f.p.a.ops[f.op]
	for w := o.wlo; w < o.whi; w++ {
		if out.err = f.imageOf(w, out); out.err != nil {
			return out
		}
	}
	return out
}

// begin starts with an empty table of terms.
func (f *fusion) begin() {
	f.t = newTable(f.p.b.g)
	f.a.begin(f.t)
	f.b.begin(f.t)
}

// computes reports whether the set has a result with the term of write w. Other writes
// are not looked at.
func (f *fusion) computes(w int32) bool {
	f.begin()
	return f.imageOf(w, &outcome{}) == nil
}

func (f *fusion) imageOf(w int32, out *outcome) error {
	mine := &f.p.a.writes[w]
	if !mine.must {
		return undecided{"it may leave old bytes"}
	}
	off, dt, got, err := f.result(w)
	if err != nil {
		return err
	}
	err = fmt.Errorf("it writes %s, and none of them writes as much", f.p.a.format(&mine.access))
	found := false
	var others []candidate
	for s, j := range f.set {
		o := &f.p.b.ops[j]
		for nr := range o.whi - o.wlo {
			theirs := &f.p.b.writes[o.wlo+nr]
			if !theirs.must || !sameShape(f.p.b, &theirs.access, f.p.a, &mine.access) {
				continue
			}
			want, why := f.term(func() termID { return f.b.stored(o.wlo+nr, off, dt, f.level(w)) })
			switch {
			case why != nil:
				err = why
			case want == got && !found:
				found = true
				out.images = append(out.images, result{int32(s), nr})
			case want == got:
				out.equal = append(out.equal, [2]result{out.images[len(out.images)-1], {int32(s), nr}})
			default:
				err = &otherTerm{f.t, got, want}
				others = append(others, candidate{result{int32(s), nr}, want})
			}
		}
	}
	if found {
		return nil
	}
	if slices.Contains(f.p.opts.Allow, term.Unrounded) {
		found, why := f.rewritten(mine, others, got, out)
		if found {
			return nil
		}
		if why != nil {
			return why
		}
	}
	return err
}

// rewritten looks for a result of the set whose term differs from that of w only in
// roundings of intermediates that w lacks. Of several it takes the one that lay where w
// lies, otherwise the one with the fewest roundings dropped.
func (f *fusion) rewritten(w *write, others []candidate, got termID, out *outcome) (found bool, why error) {
	var best candidate
	dropped, here := 0, false
	for _, c := range others {
		n, ok := 0, false
		if _, err := f.term(func() termID { n, ok = f.t.unroundings(c.want, got); return got }); err != nil {
			why = err // a term is too large to compare
		}
		if !ok {
			continue
		}
		x, y := f.p.b.region(&f.p.b.writes[f.writeOf(c.result)].access), f.p.a.region(&w.access)
		same := x.Equal(y) && f.p.b.names[x.Mem] == f.p.a.names[y.Mem]
		if !found || same && !here || same == here && n < dropped {
			best, dropped, here, found = c, n, same, true
		}
	}
	if !found {
		return false, why
	}
	out.images = append(out.images, best.result)
	out.unrounded += dropped
	for _, c := range others { // results that equal the best one to the bit
		if c.want == best.want && c.result != best.result {
			out.equal = append(out.equal, [2]result{best.result, c.result})
		}
	}
	return true, nil
}

// candidate is a result of the set whose term is not equal to that of the write in
// question.
type candidate struct {
	result
	want termID
}

// otherTerm is the error for two terms that differ.
type otherTerm struct {
	t         *table
	got, want termID
}

func (e *otherTerm) Error() string {
	return fmt.Sprintf("its term is %s, theirs %s", e.t.format(e.got), e.t.format(e.want))
}

// term calls make, and turns its panic of giving up into an error.
func (f *fusion) term(make func() termID) (id termID, err error) {
	f.a.depth, f.b.depth = 0, 0
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

// result describes write w of A at one element, whose indices are one variable for each
// dimension of its argument: off is where the element begins, in bits after the start
// of the region, dt its type, and got its term.
func (f *fusion) result(w int32) (off termID, dt ir.DType, got termID, err error) {
	o := &f.p.a.ops[f.op]
	if o.inst == nil { // a copy: each byte is an element
		got, err = f.term(func() termID {
			n := f.t.affine(o.node.(*ir.Copy).Dst.Len)
			off, dt = f.t.scale(f.t.index(0, n), 8), ir.U8
			return f.a.stored(w, off, dt, 1)
		})
		return off, dt, got, err
	}
	got, err = f.term(func() termID {
		arg := o.writtenArg(int(w - o.wlo))
		dt = o.inst.Decl.Args[arg].Elem
		off, _ = f.a.element(o, arg)
		return f.a.stored(w, off, dt, f.level(w))
	})
	return off, dt, got, err
}

// element returns where an element of an argument begins, in bits after the first
// element, as a term over one index variable for each dimension. level is the first
// level that is free for the indices of reductions.
func (s *side) element(o *op, arg int) (off termID, level int) {
	off = s.t.integer(0)
	bits := int64(o.inst.Decl.Args[arg].Elem.Bits())
	for k, n := range o.inst.Shapes[arg] {
		if n.IsConst() && n.Const == 1 {
			continue
		}
		x := s.t.index(k, s.t.affine(n))
		off = s.t.add(off, s.t.times(o.inst.Strides[arg][k], bits), x)
	}
	return off, len(o.inst.Shapes[arg])
}

// level returns the level of the first reduction of a result: those below are the
// result's own indices.
func (f *fusion) level(w int32) int {
	o := &f.p.a.ops[f.op]
	if o.inst == nil {
		return 1
	}
	return len(o.inst.Shapes[o.writtenArg(int(w-o.wlo))])
}
