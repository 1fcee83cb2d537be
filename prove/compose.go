package prove

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/mlxc/mlxc/internal/invariants"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/decl"
	"github.com/mlxc/mlxc/msl/term"
)

// side builds the terms of a set of commands. Their leaves are values that come from outside the
// set. A load of something that a command of the set wrote is replaced by the term of what was
// written.
type side struct {
	t    *table
	m    *model
	set  []int32                       // ascending
	read func(op int32, k int) reading // returns what op reads
	leaf func(op int32, k int) int     // names the value that op reads, if it comes from outside
	// memo holds the terms that were made already, so that what is read many times is built once.
	// The key is a write's element, or a shared term of a declaration, together with its indices.
	memo  map[string]termID
	key   []byte
	depth int // how many calls of once are nested now
	// origins says where copies of the set have what they write from, see origin.
	origins map[int32]origin
	steps   int64 // how many reads of copies were followed
	path    []int32
}

// origin is where a copy has its bytes from: it writes what copy op reads, delta bytes further on.
type origin struct {
	op    int32
	delta ir.Affine
}

// begin forgets all terms and continues with table t.
func (s *side) begin(t *table) {
	s.t, s.memo, s.depth, s.origins = t, map[string]termID{}, 0, map[int32]origin{}
}

// maxDepth bounds how many commands of a set may read from one another in a row. No
// real kernel computes more.
const maxDepth = 1 << 12

// once returns the term that make makes, and remembers it. The key is term number n (a write, or a
// shared term) of command op at the indices env, where the indices of reductions are counted from
// level on.
func (s *side) once(kind byte, op int32, n, level int, env []termID, make func() termID) termID {
	k := append(s.key[:0], kind)
	k = binary.AppendUvarint(k, uint64(op))
	k = binary.AppendUvarint(k, uint64(n))
	k = binary.AppendUvarint(k, uint64(level))
	for _, id := range env {
		k = binary.AppendUvarint(k, uint64(id))
	}
	s.key = k
	if id, ok := s.memo[string(k)]; ok {
		return id
	}
	key := string(k)
	if s.depth++; s.depth > maxDepth {
		giveUp("more than %d commands and shared terms need one another", maxDepth)
	}
	id := make()
	s.depth--
	s.memo[key] = id
	return id
}

// evaluation builds the terms of one command's declaration, at given indices.
type evaluation struct {
	s     *side
	op    int32
	in    *decl.Instance
	env   []termID
	level int // of the index of the next reduction
}

// stored returns the element of type dt that write w holds `off` bits after the start
// of its region.
func (s *side) stored(w int32, off termID, dt ir.DType, level int) termID {
	j := s.m.writes[w].op
	o := &s.m.ops[j]
	switch n := o.node.(type) {
	case *ir.Copy:
		from := s.origin(j)
		return s.load(from.op, 0, s.t.add(off, 8, s.t.affine(from.delta)), dt, level)
	case *ir.Fill:
		if dt == ir.F32 {
			v := uint32(n.Value) * 0x01010101
			return s.t.intern(node{form: real, num: int64(v)})
		}
	}
	if o.inst == nil || hasCounts(o.node) {
		giveUp("nothing says what %s writes as %s", o.id, dt)
	}
	arg := o.writtenArg(int(w - o.wlo))
	a := &o.inst.Decl.Args[arg]
	if a.Elem != dt {
		giveUp("%s of %s is %s, read as %s", a.Name, o.id, a.Elem, dt)
	}
	env := s.decode(o, arg, off)
	for i := range o.inst.Decl.Results {
		if r := &o.inst.Decl.Results[i]; r.Arg == arg {
			return s.once('r', j, i, level, env, func() termID {
				e := &evaluation{s: s, op: j, in: o.inst, env: env, level: level}
				return e.eval(r.Body)
			})
		}
	}
	giveUp("%s of %s has no term", a.Name, o.id)
	return 0
}

// origin follows what copy j reads through copies of the set, to the first whose bytes come from elsewhere. All copies on
// the way are remembered, so that a chain of copies is walked once, and not from each of its results.
func (s *side) origin(j int32) origin {
	s.path = s.path[:0]
	o := origin{op: j}
	for {
		if known, ok := s.origins[o.op]; ok && invariants.Caches {
			o = known
			break
		}
		s.steps++
		r := s.read(o.op, 0)
		if !s.inside(&r) || len(r.writes) != 1 || r.initial {
			o.delta = ir.Affine{}
			s.origins[o.op] = o
			break
		}
		w := &s.m.writes[r.writes[0]]
		if _, copies := s.m.ops[w.op].node.(*ir.Copy); !copies || !w.must {
			o.delta = ir.Affine{}
			s.origins[o.op] = o
			break
		}
		s.path = append(s.path, o.op)
		o.op = w.op
	}
	// From the origin back to j, with the distances added up.
	for k := len(s.path) - 1; k >= 0; k-- {
		r := s.read(s.path[k], 0)
		o.delta = o.delta.Add(s.m.off(r.at).Sub(s.m.off(&s.m.writes[r.writes[0]].access)))
		s.origins[s.path[k]] = o
	}
	return o
}

// decode returns the indices of the element of argument arg that begins off bits after
// its first element: the inverse of its strides.
func (s *side) decode(o *op, arg int, off termID) []termID {
	a, shape, strides := &o.inst.Decl.Args[arg], o.inst.Shapes[arg], o.inst.Strides[arg]
	bits := int64(a.Elem.Bits())
	at := s.t.div(off, bits)
	if s.t.scale(at, bits) != off {
		giveUp("%s of %s is read between its elements", a.Name, o.id)
	}
	dims := make([]int, 0, len(shape))
	env := make([]termID, len(shape))
	for k, n := range shape {
		env[k] = s.t.integer(0)
		if !n.IsConst() || n.Const != 1 {
			dims = append(dims, k)
		}
	}
	slices.SortStableFunc(dims, func(x, y int) int { return cmp.Compare(strides[y], strides[x]) })
	inner := int64(0) // how many elements the dimensions with smaller strides span
	for i := len(dims) - 1; i >= 0; i-- {
		k := dims[i]
		if strides[k] <= inner {
			giveUp("elements of %s of %s interleave", a.Name, o.id)
		}
		_, hi, ok := s.m.g.Range(shape[k])
		if !ok {
			panic("prove: a shape leaves 64 bits") // INVARIANT: decl.Bind refuses it.
		}
		inner += s.t.times(max(hi-1, 0), strides[k])
	}
	for _, k := range dims {
		env[k] = s.t.div(at, strides[k])
		at = s.t.add(at, -strides[k], env[k])
	}
	if v, ok := s.t.constant(at); !ok || v != 0 {
		giveUp("%s of %s is read between its elements", a.Name, o.id)
	}
	return env
}

// load returns the element of type dt that op reads off bits after the start of its
// k-th read.
func (s *side) load(op int32, k int, off termID, dt ir.DType, level int) termID {
	r := s.read(op, k)
	if s.inside(&r) {
		w := &s.m.writes[r.writes[0]]
		if len(r.writes) != 1 || r.initial || !w.must {
			giveUp("%s reads bytes of more than one write", s.m.ops[op].id)
		}
		delta := s.m.off(r.at).Sub(s.m.off(&w.access))
		return s.stored(r.writes[0], s.t.add(off, 8, s.t.affine(delta)), dt, level)
	}
	if v, ok := s.filled(&r, off, dt); ok {
		return v
	}
	n := node{form: floatLoad, num: int64(s.leaf(op, k)), text: dt.String(), args: []termID{off}}
	if !dt.Float() {
		n.form, n.lo, n.hi = intLoad, -wide, wide
		return s.t.atom(n)
	}
	return s.t.intern(n)
}

// inside reports whether a reading sees a write of the set.
func (s *side) inside(r *reading) bool {
	if len(s.set) == 0 {
		return false
	}
	for k := len(r.writes) - 1; k >= 0; k-- {
		op := s.m.writes[r.writes[k]].op
		if op < s.set[0] { // most reads see older writes only
			break
		}
		if _, ok := slices.BinarySearch(s.set, op); ok {
			return true
		}
	}
	return false
}

// filled returns the element of a weight that is filled with one number. ok is false
// for any other memory.
func (s *side) filled(r *reading, off termID, dt ir.DType) (termID, bool) {
	m := &s.m.g.Memories[r.at.mem]
	if m.Kind != ir.Weight || m.Init.Kind != ir.InitFill {
		return 0, false
	}
	at := s.t.add(off, 8, s.t.affine(s.m.off(r.at)))
	bits := int64(dt.Bits())
	if s.t.scale(s.t.div(at, bits), bits) != at {
		return 0, false
	}
	word := binary.LittleEndian.Uint32(m.Init.Pattern[:])
	switch {
	case dt == ir.F32:
		return s.t.intern(node{form: real, num: int64(word)}), true
	case dt == ir.F16 && word>>16 == word&0xffff:
		v := float32(term.F16Value(uint16(word)))
		return s.t.real(v), v == v // the number does not say which bits a NaN has
	case dt == ir.BF16 && word>>16 == word&0xffff:
		v := math.Float32frombits(word << 16)
		return s.t.real(v), v == v
	}
	return 0, false
}

func (e *evaluation) evalAll(list []*term.Expr) []termID {
	out := make([]termID, len(list))
	for i, x := range list {
		out[i] = e.eval(x)
	}
	return out
}

// float evaluates x, and converts it to f32 if it is an integer.
func (e *evaluation) float(x *term.Expr) termID {
	v := e.eval(x)
	if x.Kind == term.Int {
		return e.s.t.float(v)
	}
	return v
}

func (e *evaluation) floatAll(list []*term.Expr) []termID {
	out := make([]termID, len(list))
	for i, x := range list {
		out[i] = e.float(x)
	}
	return out
}

// eval returns the normal form of x.
func (e *evaluation) eval(x *term.Expr) termID {
	t := e.s.t
	switch x.Op {
	case term.Number:
		return t.integer(x.Num)
	case term.Real:
		return t.real(float32(x.Val))
	case term.Var:
		return e.env[x.Index]
	case term.Symbol:
		v := e.in.Symbols[x.Index]
		switch {
		case x.Kind == term.Int:
			return t.extent(v.Extent)
		case v.Param >= 0:
			return t.intern(node{form: floatParam, num: int64(v.Param)})
		}
		return t.real(v.F)
	case term.Load:
		return e.load(x)
	case term.Call:
		w := &e.in.Decl.Wheres[x.Index]
		env := e.evalAll(x.Args)
		return e.s.once('w', e.op, x.Index, e.level, env, func() termID {
			sub := *e
			sub.env = env
			return sub.eval(w.Body)
		})
	case term.Sum, term.MaxOver, term.ArgMax:
		return e.reduce(x)
	case term.Select:
		c := e.eval(x.Args[0])
		if n := &t.nodes[c]; n.form == truth { // the branch that is not taken need not have a term
			if n.num != 0 {
				return e.float(x.Args[1])
			}
			return e.float(x.Args[2])
		}
		return t.choose(c, e.float(x.Args[1]), e.float(x.Args[2]))
	case term.Eq, term.Ne, term.Lt, term.Le, term.Gt, term.Ge:
		if x.Args[0].Kind == term.Int && x.Args[1].Kind == term.Int {
			return t.compare(x.Op, e.eval(x.Args[0]), e.eval(x.Args[1]), true)
		}
		return t.compare(x.Op, e.float(x.Args[0]), e.float(x.Args[1]), false)
	case term.Not:
		return t.not(e.eval(x.Args[0]))
	case term.And, term.Or:
		a := e.eval(x.Args[0])
		if n := &t.nodes[a]; n.form == truth {
			if (n.num != 0) == (x.Op == term.And) {
				return e.eval(x.Args[1])
			}
			return a
		}
		return t.intern(node{form: condition, op: x.Op, args: []termID{a, e.eval(x.Args[1])}})
	case term.Pow2:
		return t.intern(node{form: condition, op: x.Op, args: e.evalAll(x.Args)})
	case term.AsF16, term.AsF32:
		return t.ofBits(x.Op, e.eval(x.Args[0]))
	case term.ToInt:
		return t.atom(node{form: intOp, op: x.Op, text: x.Type.String(), args: e.evalAll(x.Args), lo: -wide, hi: wide})
	}
	if x.Kind == term.Int {
		return t.integers(x.Op, e.evalAll(x.Args))
	}
	return t.floats(x.Op, x.Type, e.floatAll(x.Args))
}

// reduce evaluates a reduction. Its index is named by its nesting depth, so that equal
// reductions get equal terms.
func (e *evaluation) reduce(x *term.Expr) termID {
	t := e.s.t
	bound := e.eval(x.Args[0])
	sub := *e
	sub.env = append(e.env[:len(e.env):len(e.env)], t.index(e.level, bound))
	sub.level++
	var body termID
	if x.Op == term.ArgMax || x.Args[1].Kind != term.Int {
		body = sub.float(x.Args[1])
	} else {
		body = t.float(sub.eval(x.Args[1]))
	}
	n := node{form: reduction, op: x.Op, text: x.Class, args: []termID{bound, t.value(body)}}
	n.args = append(n.args, e.evalAll(x.Args[2:])...)
	if x.Class != "" && !fixedGroup(e.in.Decl) {
		// If the dispatch chooses the threadgroup, the order of additions may depend on
		// it.
		n.text += fmt.Sprint(e.in.Dispatch.Threadgroup)
	}
	if x.Op == term.ArgMax {
		n.lo, n.hi = -wide, wide
		return t.atom(n)
	}
	return t.intern(n)
}

// fixedGroup reports whether a declaration alone determines the threadgroup.
func fixedGroup(d *decl.Decl) bool {
	for i := range d.Group {
		if d.Group[i].Check == nil {
			return false
		}
	}
	return true
}

// load evaluates a load of one element of an argument.
func (e *evaluation) load(x *term.Expr) termID {
	t, arg := e.s.t, x.Index
	a := &e.in.Decl.Args[arg]
	bits := int64(a.Elem.Bits())
	off := t.integer(0)
	for k, i := range e.evalAll(x.Args) {
		off = t.add(off, t.times(e.in.Strides[arg][k], bits), i)
	}
	if e.in.Views[arg].Mem == ir.NoMem {
		return e.inline(a, off)
	}
	k, ok := e.s.m.ops[e.op].readOf(arg)
	if !ok {
		giveUp("%s of %s is not read", a.Name, e.s.m.ops[e.op].id)
	}
	return e.s.load(e.op, k, off, a.Elem, e.level)
}

// inline returns an element of a buffer argument that is bound to bytes or to a scalar.
func (e *evaluation) inline(a *decl.Arg, off termID) termID {
	t := e.s.t
	b := e.in.Graph.Resolve(*e.in.Dispatch.Binding(a.Slot))
	at, ok := t.constant(off)
	if b.Kind == ir.BindScalar && ok && at == 0 && b.Type == a.Elem && !a.Elem.Float() {
		return t.affine(b.Expr)
	}
	if b.Kind != ir.BindBytes {
		giveUp("%s of %s is bound to a scalar of another type", a.Name, e.s.m.ops[e.op].id)
	}
	if ok && at >= 0 && at%32 == 0 && at/8+4 <= int64(len(b.Bytes)) { // a number, as a constant argument would be
		word := binary.LittleEndian.Uint32(b.Bytes[at/8:])
		switch a.Elem {
		case ir.I32:
			return t.integer(int64(int32(word)))
		case ir.U32:
			return t.integer(int64(word))
		case ir.F32:
			return t.intern(node{form: real, num: int64(word)})
		}
	}
	n := node{form: floatLoad, num: -1, text: a.Elem.String() + string(b.Bytes), args: []termID{off}}
	if !a.Elem.Float() {
		n.form, n.lo, n.hi = intLoad, -wide, wide
		return t.atom(n)
	}
	return t.intern(n)
}
