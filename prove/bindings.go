package prove

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/mlxc/mlxc/internal/invariants"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
)

// Bindings are arguments: a kernel gets the bytes that are bound inline or that lie in
// argument memory, whatever its effects say. So these bytes are compared for every
// value of the params, wherever they lie. Argument memory holds zeros where no value is
// placed.

// given is a range of the bytes that the host writes before a replay: n bytes from offset off on,
// in a list of values. Gaps between the values are zero.
type given struct {
	values []ir.Value
	off, n ir.Affine
}

// givenBy returns the bytes that b gives a kernel. ok is false for a view of any memory
// but argument memory. one is storage for a single value, so that none is allocated.
func givenBy(g *ir.Graph, b *ir.Binding, one *[1]ir.Value) (x given, ok bool) {
	switch b.Kind {
	case ir.BindBytes:
		one[0] = ir.Value{Bytes: b.Bytes}
		return given{one[:], ir.Affine{}, ir.Const(int64(len(b.Bytes)))}, true
	case ir.BindScalar:
		one[0] = ir.Value{Type: b.Type, Expr: b.Expr}
		return given{one[:], ir.Affine{}, ir.Const(b.Type.Size())}, true
	}
	return argumentBytes(g, b.View.Mem, b.View.Off, b.View.Len)
}

func argumentBytes(g *ir.Graph, m ir.MemID, off, n ir.Affine) (x given, ok bool) {
	if g.Memories[m].Kind != ir.Argument {
		return x, false
	}
	root, at := g.Root(m)
	return given{g.Memories[root].Init.Values, off.AddConst(at), n}, true
}

// twins compares the bytes that the host gives to the kernels of two graphs with the same params.
type twins struct {
	b, a *ir.Graph
	work int // values and bytes compared so far
	// lists remembers which lists of values are equal. The key is the pair of first
	// values.
	lists map[[2]*ir.Value]bool
}

// maxGiven bounds how many values and bytes one proof compares: a hostile graph may
// bind large lists many times.
const maxGiven = 1 << 24

func newTwins(b, a *ir.Graph) *twins { return &twins{b: b, a: a, lists: map[[2]*ir.Value]bool{}} }

// sameGiven compares bytes that the host writes, for all values of the params.
func (t *twins) sameGiven(x, y given) answer {
	if found := sameAffine(t.b, x.n, y.n); found != same {
		return found
	}
	if x.off.Equal(y.off) && t.sameValues(x.values, y.values) {
		return same
	}
	d, shifted := y.off.Distance(x.off)
	lo, hi, ok1 := t.b.Range(x.off)
	least, most, ok2 := t.b.Range(x.n)
	if shifted && ok1 && ok2 {
		found := t.walk(x.values, lo, y.values, lo+d, hi-lo+most)
		if found == same || found == differ && lo == hi && least == most {
			return found
		}
	}
	use := []ir.Affine{x.off, y.off, x.n, y.n}
	use = t.expressions(t.expressions(use, x), y)
	found := same
	return tried(t.b, use, func(params []uint32) bool {
		p, ok1 := t.eval(x, params)
		q, ok2 := t.eval(y, params)
		if !ok1 || !ok2 {
			found = unsure
			return true
		}
		return bytes.Equal(p, q)
	}).and(found)
}

// maxGivenBytes bounds the bytes that are written out for one assignment of the params:
// four times what a dispatch may bind inline.
const maxGivenBytes = 1 << 14

// eval returns the bytes of x for one assignment of the params.
func (t *twins) eval(x given, params []uint32) (out []byte, ok bool) {
	off, n := x.off.Eval(params), x.n.Eval(params)
	if t.work += int(min(max(n, 1), maxGivenBytes)); n < 0 || n > maxGivenBytes || t.work > maxGiven {
		return nil, false
	}
	out = make([]byte, n)
	for i := firstValue(x.values, off); i < len(x.values) && x.values[i].Off < off+n; i++ {
		v := &x.values[i]
		bits := v.Bytes
		if bits == nil {
			bits = scalarBytes(v, params)
		}
		if v.Off < off {
			copy(out, bits[off-v.Off:])
		} else {
			copy(out[v.Off-off:], bits)
		}
	}
	return out, true
}

// scalarBytes returns the bytes of a value that is an expression.
func scalarBytes(v *ir.Value, params []uint32) []byte {
	return binary.LittleEndian.AppendUint64(nil, ir.ScalarBits(v.Type, v.Expr, params))[:v.Type.Size()]
}

// sameValues compares two whole lists, and does so only once for each pair of lists.
func (t *twins) sameValues(x, y []ir.Value) bool {
	if len(x) != len(y) {
		return false
	}
	if len(x) == 0 || &x[0] == &y[0] {
		return true
	}
	key := [2]*ir.Value{&x[0], &y[0]}
	if len(x) == 1 { // a list of one may be the storage of givenBy, which is reused
		return t.sameValue(&x[0], &y[0])
	}
	found, ok := t.lists[key]
	if !invariants.Caches || !ok {
		t.work += len(x)
		found = slices.EqualFunc(x, y, func(v, w ir.Value) bool { return t.sameValue(&v, &w) })
		t.lists[key] = found
	}
	return found
}

func (t *twins) sameValue(v, w *ir.Value) bool {
	if v.Off != w.Off || (v.Bytes == nil) != (w.Bytes == nil) {
		return false
	}
	if v.Bytes != nil {
		return bytes.Equal(v.Bytes, w.Bytes)
	}
	return v.Type == w.Type && v.Expr.Equal(w.Expr)
}

// expressions appends the expressions of the values that may lie within x.
func (t *twins) expressions(list []ir.Affine, x given) []ir.Affine {
	lo, _, ok1 := t.b.Range(x.off)
	_, end, ok2 := t.b.Range(x.off.Add(x.n))
	if !ok1 || !ok2 {
		lo, end = 0, 1<<62
	}
	for i := firstValue(x.values, lo); i < len(x.values) && x.values[i].Off < end; i++ {
		if t.work++; x.values[i].Bytes == nil {
			list = append(list, x.values[i].Expr)
		}
	}
	return list
}

// piece is a run of bytes that belong to one value, from the value's byte `from` on, or a run of
// zeros.
type piece struct {
	value *ir.Value
	from  int64
	n     int64
}

// pieceAt returns the piece that holds byte `at`. next is the index of the first value
// that ends after it.
func pieceAt(values []ir.Value, next int, at int64) piece {
	if next == len(values) {
		return piece{n: 1 << 62}
	}
	v := &values[next]
	if at < v.Off {
		return piece{n: v.Off - at}
	}
	return piece{v, at - v.Off, v.Off + v.Size() - at}
}

func firstValue(values []ir.Value, at int64) int {
	i, _ := slices.BinarySearchFunc(values, at, func(v ir.Value, at int64) int {
		if v.Off+v.Size() <= at {
			return -1
		}
		return 1
	})
	return i
}

// walk compares n bytes of two lists of values, each from a constant offset on.
func (t *twins) walk(x []ir.Value, xat int64, y []ir.Value, yat int64, n int64) answer {
	i, j, out := firstValue(x, xat), firstValue(y, yat), same
	for n > 0 {
		p, q := pieceAt(x, i, xat), pieceAt(y, j, yat)
		k := min(p.n, q.n, n)
		if t.work++; t.work > maxGiven {
			return unsure
		}
		if out = out.and(t.samePiece(p, q, k)); out == differ {
			return differ
		}
		if k == p.n && p.value != nil {
			i++
		}
		if k == q.n && q.value != nil {
			j++
		}
		xat, yat, n = xat+k, yat+k, n-k
	}
	return out
}

// samePiece compares the first n bytes of two pieces.
func (t *twins) samePiece(p, q piece, n int64) answer {
	if p.value == nil && q.value == nil {
		return same
	}
	if u, v := p.value, q.value; u != nil && v != nil && u.Bytes == nil && v.Bytes == nil && p.from == q.from && (u.Type == ir.F32) == (v.Type == ir.F32) {
		// These are the low bytes of two numbers, each of which fits its type.
		if u.Expr.Equal(v.Expr) || u.Type != ir.F32 && sameAffine(t.b, u.Expr, v.Expr) == same {
			return same
		}
	}
	if t.work += int(n); t.work > maxGiven {
		return unsure
	}
	x, ok1 := p.constant(n)
	y, ok2 := q.constant(n)
	switch {
	case !ok1 || !ok2:
		return unsure
	case bytes.Equal(x, y):
		return same
	}
	return differ
}

// constant returns the first n bytes of a piece whose value depends on no param. A
// piece of zeros is never longer than the value that it is compared with, so it is
// short.
func (p piece) constant(n int64) ([]byte, bool) {
	switch {
	case p.value == nil:
		return make([]byte, n), true
	case p.value.Bytes != nil:
		return p.value.Bytes[p.from : p.from+n], true
	case p.value.Expr.IsConst() && p.value.Type != ir.F32:
		return scalarBytes(p.value, nil)[p.from : p.from+n], true
	}
	return nil, false
}

// listed returns the effects that d stores, without reads of the argument memory that
// it binds: those bytes are compared as arguments.
func (m *model) listed(d *ir.Dispatch) *ir.Effects {
	if e := d.Effects; e == nil || !m.arguments {
		return e
	}
	return m.withoutGiven(d)
}

func (m *model) withoutGiven(d *ir.Dispatch) *ir.Effects {
	e := d.Effects
	given := func(r ir.Region) bool { return m.g.Memories[r.Mem].Kind == ir.Argument && m.bound(d, &r) }
	if !slices.ContainsFunc(e.Reads, given) {
		return e
	}
	out := *e
	out.Reads = slices.DeleteFunc(slices.Clone(e.Reads), given)
	return &out
}

// bound reports whether r lies within a view that d binds.
func (m *model) bound(d *ir.Dispatch, r *ir.Region) bool {
	at := &m.roots[r.Mem]
	x := *r
	x.Mem, x.Off = at.mem, r.Off.AddConst(at.off)
	return slices.ContainsFunc(d.Bindings, func(b ir.Binding) bool {
		if b.Kind != ir.BindView || m.roots[b.View.Mem].mem != at.mem {
			return false
		}
		return within(m.g, &x, b.View.Off.AddConst(m.roots[b.View.Mem].off), b.View.Len)
	})
}

// addConstants adds the constant-space bindings of n to its reads, where commands write
// the memory that is bound. Only a kernel without declaration needs this: its complete
// effects may leave such bindings out.
func (m *model) addConstants(n ir.Node) {
	d, ok := n.(*ir.Dispatch)
	if !ok || msl.Declared(&m.g.Kernels[d.Kernel]) {
		return
	}
	for k := range d.Bindings {
		b := &d.Bindings[k]
		if b.Kind != ir.BindView || m.readOnly(b.View.Mem) {
			continue // memory that nothing writes is compared as part of the interface
		}
		if arg, ok := m.g.Kernels[d.Kernel].Arg(b.Slot); ok && arg.Kind == ir.ConstantArg {
			r := b.View.Contiguous()
			m.reads = append(m.reads, m.rooted(&r))
		}
	}
}

// checkPinned checks a command i of A whose kernel has no declaration. Bytes that it binds but that
// its complete effects leave out must be the same bytes of the same memory as in B. Bytes that its
// effects list may move together with the view that holds them, and are compared like any other
// bytes that a command touches.
func (p *proof) checkPinned(i int32) {
	o, was := &p.a.ops[i], &p.b.ops[p.sets.of(i)[0]]
	e, ok := o.node.(*ir.Dispatch)
	if !ok || !o.known || p.usual[i]&stayed != 0 || msl.Declared(&p.a.g.Kernels[e.Kernel]) {
		return
	}
	d := was.node.(*ir.Dispatch)
	for k := range d.Bindings {
		if b, c := &d.Bindings[k], &e.Bindings[k]; b.Kind == ir.BindView && c.Kind == ir.BindView && !p.b.given(b) && !p.b.constant(d, b) && !p.b.touches(was, d.Effects, &b.View) {
			if found := p.sameBytes(&b.View, &c.View); found != same {
				v := Refused
				if found == unsure {
					v = CannotTell
				}
				p.add(v, Interface, p.before(i), []ir.ID{o.id}, "%s binds %s, which its effects leave out; it was %s, and what the kernel does with that address is unknown",
					p.a.g.Describe(e), p.a.g.FormatRegion(c.View.Contiguous()), p.b.g.FormatRegion(b.View.Contiguous()))
			}
		}
	}
}

// given reports whether b binds a view of argument memory.
func (m *model) given(b *ir.Binding) bool { return m.g.Memories[b.View.Mem].Kind == ir.Argument }

// constant reports whether addConstants has made a read of all of b, so that its bytes are compared
// wherever they lie.
func (m *model) constant(d *ir.Dispatch, b *ir.Binding) bool {
	arg, ok := m.g.Kernels[d.Kernel].Arg(b.Slot)
	return ok && arg.Kind == ir.ConstantArg && !m.readOnly(b.View.Mem)
}

// touches reports whether e, the effects of o, lists a byte of v for all values of the params for which v has bytes: where it
// does for some values only, v is left out for the others. Reads that addConstants made do not count: they are of another binding, and
// do not move with v.
func (m *model) touches(o *op, e *ir.Effects, v *ir.View) bool {
	r := v.Contiguous()
	x := m.rooted(&r)
	writes, listed := int(o.whi-o.wlo), len(e.Reads)
	for k := range writes + int(o.rhi-o.rlo) {
		if j := k - writes; j >= listed && o.rlo+int32(j) < o.maybe {
			continue
		}
		a := m.access(o, k)
		if m.covers(a, &x) || a.flat() && x.flat() && !m.outOfBounds(a, &x) {
			return true
		}
		if a.mem == x.mem && m.hasBytes(a) {
			first := m.region(a)
			first.Run, first.Dims = ir.Const(1), nil
			if y := m.rooted(&first); m.covers(&x, &y) {
				return true
			}
		}
	}
	return false
}

// hasBytes proves that an access has a byte, whatever the params.
func (m *model) hasBytes(a *access) bool {
	if a.flat() {
		return a.end > a.lo
	}
	r := m.region(a)
	least := func(x ir.Affine) int64 {
		lo, _, ok := m.g.Range(x)
		if !ok {
			return 0
		}
		return lo
	}
	for _, d := range r.Dims {
		if least(d.Count) < 1 {
			return false
		}
	}
	return least(r.Run) >= 1
}

// sameBytes compares where two views of equal length begin. They must lie in memories
// of one name and kind.
func (p *proof) sameBytes(v, w *ir.View) answer {
	x, y := &p.b.roots[v.Mem], &p.a.roots[w.Mem]
	if p.b.names[x.mem] != p.a.names[y.mem] || p.b.g.Memories[x.mem].Kind != p.a.g.Memories[y.mem].Kind {
		return differ
	}
	return sameAffine(p.b.g, v.Off.AddConst(x.off), w.Off.AddConst(y.off))
}
