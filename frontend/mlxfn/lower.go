package mlxfn

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/record"
)

// value is an array of a function while it is recorded.
type value struct {
	shape []int64
	typ   ir.DType
	t     record.Tensor // of the shape, or [1] if there are no dimensions
	has   bool          // t is there
	// A boolean may be known as zeros and ones of f32, by which generated kernels compute. Its memory is made of them when
	// something wants it.
	ones    record.Tensor
	hasOnes bool
	// A constant of one element is a number until something wants its memory.
	number  float64
	uniform bool
	round   int  // the survey that t is of
	lost    bool // what should have computed it cannot be recorded
}

// lowering records one function.
//
// A session keeps its first mistake and no later one. So that all that cannot be recorded is said at once, the rest of a
// function is recorded into another session behind a mistake, in which values that are known so far are inputs; what comes of
// it is thrown away.
type lowering struct {
	fn    *Function
	s     *record.Session
	m     record.MLX
	again func() *record.Session
	// compiled says that kernels of MLX's library may be taken.
	compiled bool
	source   func(name string, text []byte) ir.Library // see frontend.Traced
	round    int
	values   []value
	uses     []int
	inPlace  map[int]bool // values whose memory the update that reads them changes
	faults   faults
	made     int
	// targets has the memory of a result of the function for the value that is made into it; target is that of the
	// primitive that is being recorded, until something has taken it.
	targets map[int]record.Tensor
	target  record.Tensor
	aimed   bool
	// complaint is why the primitive that is being recorded cannot be.
	complaint error
	consts    map[string]record.Tensor // by type and bits
}

// faults counts what cannot be recorded, by what it is.
type faults struct {
	order []string
	count map[string]int
	first map[string]string // where it is first
}

func (f *faults) add(what, where string) {
	if f.count == nil {
		f.count, f.first = map[string]int{}, map[string]string{}
	}
	if f.count[what] == 0 {
		f.order = append(f.order, what)
		f.first[what] = where
	}
	f.count[what]++
}

func (f *faults) list() (out []string) {
	for _, what := range f.order {
		text := fmt.Sprintf("%s (%s)", what, f.first[what])
		if n := f.count[what]; n > 1 {
			text = fmt.Sprintf("%s (%d times, first %s)", what, n, f.first[what])
		}
		out = append(out, text)
	}
	return out
}

// node records a primitive.
func (l *lowering) node(n *Node) {
	in := make([]value, len(n.In))
	lost := false
	for i, v := range n.In {
		in[i] = l.values[v]
		lost = lost || in[i].lost
	}
	where := fmt.Sprintf("offset %d", n.At)
	put := func(i int, v value) {
		a := l.fn.Values[n.Out[i]]
		v.shape, v.typ, v.round = a.Shape, a.Type.Ours(), l.round
		l.values[n.Out[i]] = v
	}
	// What is computed of something that cannot be recorded is looked at as well: it is an input from there on.
	refuse := func(why string) {
		if why != "" {
			l.faults.add(n.Name+": "+why, where)
		}
		for i, v := range n.Out {
			a := l.fn.Values[v]
			if a.Type.Ours() == ir.Invalid || a.elements() == 0 {
				put(i, value{lost: true})
				continue
			}
			l.made++
			put(i, value{has: true, t: l.s.Input(fmt.Sprintf("again%d", l.made), a.Type.Ours(), sizes(a.Shape)...)})
		}
	}
	row, ok := primitives[n.Name]
	switch why := l.strange(n); {
	case !ok:
		refuse("there is no operation for it")
		return
	case lost: // of a type that is said already
		refuse("")
		return
	case why != "":
		refuse(why)
		return
	}
	c := &call{lowering: l, n: n, in: in}
	for i := range n.Out {
		a := l.fn.Values[n.Out[i]]
		c.out = append(c.out, value{shape: a.Shape, typ: a.Type.Ours()})
	}
	l.complaint = nil
	l.target, l.aimed = l.targets[n.Out[0]]
	l.aimed = l.aimed && l.round == 0
	err := row(c)
	if err == nil {
		err = l.complaint
	}
	if failed := l.s.Err(); failed != nil {
		err = errors.New(reason(failed)) // of which the other may be a consequence
		l.s = l.again()
		l.m, l.consts = l.s.MLX(), nil
		l.round++
	}
	if err != nil {
		refuse(err.Error())
		return
	}
	for i := range c.out {
		put(i, c.out[i])
	}
}

// reason is what a session says of a mistake, without where the call was made.
func reason(err error) string {
	text := err.Error()
	if i := strings.Index(text, ".go:"); i >= 0 {
		if _, after, ok := strings.Cut(text[i:], ": "); ok {
			return after
		}
	}
	return strings.TrimPrefix(text, "record function: ")
}

// strange says what of a node's types and shapes no operation takes.
func (l *lowering) strange(n *Node) string {
	for _, v := range append(slices.Clone(n.In), n.Out...) {
		a := l.fn.Values[v]
		switch {
		case a.Type.Ours() == ir.Invalid:
			return fmt.Sprintf("elements of %s are not there", a.Type)
		case a.elements() == 0:
			return "an array has no elements"
		}
	}
	return ""
}

// call is the recording of one primitive.
type call struct {
	*lowering
	n   *Node
	in  []value
	out []value // with shapes and types
}

// Fields of the state.

func (c *call) int(i int) int64     { return c.n.State[i].(int64) }
func (c *call) float(i int) float32 { return c.n.State[i].(float32) }
func (c *call) flag(i int) bool     { return c.n.State[i].(bool) }
func (c *call) ints(i int) []int64  { return c.n.State[i].([]int64) }

// axis returns a field that is an axis, counted from the end if it is negative.
func (c *call) axis(i int, rank int) (int, error) {
	a := c.int(i)
	if a < 0 {
		a += int64(rank)
	}
	if a < 0 || a >= int64(rank) {
		return 0, fmt.Errorf("there is no axis %d of %d", c.int(i), rank)
	}
	return int(a), nil
}

// operands reports whether there are so many.
func (c *call) operands(n int) error {
	if len(c.in) != n {
		return fmt.Errorf("it has %d operands, %d are expected", len(c.in), n)
	}
	return nil
}

// give sets the result.
func (c *call) give(t record.Tensor) error {
	c.out[0].t, c.out[0].has = t, true
	return nil
}

// dims is a shape as tensors have it: without dimensions it is [1].
func dims(shape []int64) []ir.Affine {
	if len(shape) == 0 {
		return record.Dims(1)
	}
	return record.Dims(shape...)
}

func sizes(shape []int64) []int64 {
	if len(shape) == 0 {
		return []int64{1}
	}
	return shape
}

func product(shape []int64) int64 {
	n := int64(1)
	for _, d := range shape {
		n *= d
	}
	return n
}

// numbers returns the sizes of a tensor, all of which are constant here.
func numbers(t record.Tensor) []int64 {
	out := make([]int64, len(t.Shape))
	for i, d := range t.Shape {
		out[i] = d.Const
	}
	return out
}

func rowStrides(shape []int64) []int64 {
	strides := make([]int64, len(shape))
	step := int64(1)
	for i := len(shape) - 1; i >= 0; i-- {
		strides[i] = step
		step *= shape[i]
	}
	return strides
}

// contiguous reports whether the elements lie one after another.
func contiguous(t record.Tensor) bool {
	step := int64(1)
	for i := len(t.Shape) - 1; i >= 0; i-- {
		if d := t.Shape[i].Const; d != 1 {
			if t.Strides[i] != step {
				return false
			}
			step *= d
		}
	}
	return true
}

// strided returns t with other sizes and strides.
func strided(t record.Tensor, shape, strides []int64) record.Tensor {
	t.Shape, t.Strides = record.Dims(shape...), strides
	return t
}

// flat returns t, whose elements lie one after another, in another shape.
func flat(t record.Tensor, shape ...int64) record.Tensor {
	return strided(t, shape, rowStrides(shape))
}

// into returns where an operation writes if that may be a result of the function: it has the type and as many elements. What
// else is written there before is no matter, since what the memory holds last counts; if that is not the result, it is copied.
func (l *lowering) into(t ir.DType, shape []int64) []record.Option {
	if !l.aimed || l.target.DType != t || l.target.Elements().Const != product(shape) {
		return nil
	}
	l.aimed = false
	return []record.Option{record.Into(flat(l.target, shape...))}
}

// scratch returns memory for a result.
func (l *lowering) scratch(t ir.DType, shape []int64) record.Tensor {
	if l.into(t, sizes(shape)) != nil {
		return flat(l.target, sizes(shape)...)
	}
	return l.s.Scratch(t, dims(shape)...)
}

// constant returns memory with one element.
func (l *lowering) constant(t ir.DType, number float64) record.Tensor {
	var data []byte
	switch {
	case t.Float():
		data = record.Elements(t, []float32{float32(number)})
	default:
		data = binary.LittleEndian.AppendUint64(nil, uint64(int64(number)))[:t.Size()]
	}
	key := fmt.Sprint(t, data)
	if have, ok := l.consts[key]; ok {
		return have
	}
	if l.consts == nil {
		l.consts = map[string]record.Tensor{}
	}
	w := l.s.Weight(fmt.Sprintf("number_%s_%x", t, data), ir.NewBlob(data), t, 1)
	l.consts[key] = w
	return w
}

// broadcastTensor repeats the one element of t.
func broadcastTensor(t record.Tensor, shape []int64) record.Tensor {
	return strided(t, sizes(shape), make([]int64, max(len(shape), 1)))
}

// fresh makes what a value has known to the session, if it was recorded into an earlier one.
func (l *lowering) fresh(v value) value {
	if v.round == l.round || !v.has && !v.hasOnes {
		return v
	}
	l.made++
	v.t, v.has, v.hasOnes, v.round = l.s.Input(fmt.Sprintf("again%d", l.made), v.typ, sizes(v.shape)...), true, false, l.round
	return v
}

// tensor returns the memory of a value.
func (l *lowering) tensor(v value) record.Tensor {
	v = l.fresh(v)
	switch {
	case v.has:
		return v.t
	case v.uniform:
		return broadcastTensor(l.constant(v.typ, v.number), v.shape)
	case v.hasOnes:
		return l.truths(v.ones)
	}
	panic("mlxfn: a value without memory")
}

// dense returns the memory of a value, one element after another.
func (l *lowering) dense(v value) record.Tensor { return l.packed(l.tensor(v)) }

// truths makes booleans of zeros and ones. The bits of a one, as an integer, are at least 1.
func (l *lowering) truths(ones record.Tensor) record.Tensor {
	ones = l.packed(ones)
	shape := numbers(ones)
	n := product(shape)
	bits := flat(ones, 1, n)
	bits.DType = ir.I32
	one := broadcastTensor(l.constant(ir.I32, 1), []int64{1, n})
	return flat(l.m.Elementwise("greater_equal", []record.Tensor{bits, one}), shape...)
}

// onesOf returns a boolean as zeros and ones of f32.
func (l *lowering) onesOf(v value) record.Tensor {
	v = l.fresh(v)
	if v.hasOnes {
		return v.ones
	}
	if v.uniform {
		return broadcastTensor(l.constant(ir.F32, v.number), v.shape)
	}
	shape := sizes(v.shape)
	one, zero := broadcastTensor(l.constant(ir.F32, 1), shape), broadcastTensor(l.constant(ir.F32, 0), shape)
	return l.each(v.t, func(t record.Tensor) record.Tensor {
		s := numbers(t)
		return l.m.Where(t, strided(one, s, make([]int64, len(s))), strided(zero, s, make([]int64, len(s))))
	})
}

// collapsed returns t with dimensions joined that lie as one would, and without those of one element.
func collapsed(t record.Tensor) record.Tensor {
	var shape, strides []int64
	for i, d := range t.Shape {
		if d.Const == 1 {
			continue
		}
		if n := len(shape) - 1; n >= 0 && strides[n] == t.Strides[i]*d.Const {
			shape[n] *= d.Const
			strides[n] = t.Strides[i]
			continue
		}
		shape, strides = append(shape, d.Const), append(strides, t.Strides[i])
	}
	if len(shape) == 0 {
		shape, strides = []int64{1}, []int64{1}
	}
	return strided(t, shape, strides)
}

// maxParts bounds the pieces in which arrays of more dimensions than kernels have are copied.
const maxParts = 1 << 10

// each computes a result of t's shape, one element after another, by an operation on up to four dimensions that gives such
// results.
func (l *lowering) each(t record.Tensor, do func(record.Tensor) record.Tensor) record.Tensor {
	shape := numbers(t)
	c := collapsed(t)
	if c.Rank() <= 4 {
		r := do(c)
		return flat(r, shape...)
	}
	n := c.Shape[0].Const
	if n > maxParts {
		return l.fail(t, "an array %v with the strides %v is copied in more than %d pieces", shape, t.Strides, maxParts)
	}
	var out record.Tensor
	for i := range n {
		part := l.each(c.Row(ir.Const(i)), do)
		if i == 0 {
			out = l.s.Scratch(part.DType, dims(shape)...)
		}
		size := product(shape) / n
		to := flat(out, n, size).Row(ir.Const(i))
		l.copyTo(to, flat(part, size))
	}
	return out
}

// fail keeps why the primitive that is being recorded cannot be.
func (l *lowering) fail(t record.Tensor, format string, args ...any) record.Tensor {
	if l.complaint == nil {
		l.complaint = fmt.Errorf(format, args...)
	}
	return t
}

// bits returns t with elements that copies take, which are as wide.
func bits(t record.Tensor) record.Tensor {
	switch t.DType.Size() {
	case 4:
		t.DType = ir.U32
	case 2:
		t.DType = ir.F16
	case 8:
		shape, strides := numbers(t), slices.Clone(t.Strides)
		for i := range strides {
			strides[i] *= 2
		}
		t = strided(t, append(shape, 2), append(strides, 1))
		t.DType = ir.U32
	}
	return t
}

// packed returns t, or a copy whose elements lie one after another.
func (l *lowering) packed(t record.Tensor) record.Tensor {
	if contiguous(t) {
		return flat(t, numbers(t)...)
	}
	of, shape := t.DType, numbers(t)
	if of.Size() == 1 {
		if of != ir.Bool {
			return l.fail(t, "elements of %s cannot be copied under strides", of)
		}
		return l.truths(l.onesOf(value{shape: shape, typ: of, t: t, has: true, round: l.round}))
	}
	r := l.each(bits(t), func(t record.Tensor) record.Tensor { return l.m.Contiguous(t) })
	r.DType = of
	return flat(r, shape...)
}

// copyTo copies src into dst, of the same type and shape.
func (l *lowering) copyTo(dst, src record.Tensor) {
	if src.DType.Size() == 1 {
		src = l.packed(src)
		if !contiguous(dst) {
			l.fail(dst, "elements of %s cannot be copied under strides", dst.DType)
			return
		}
		l.s.Copy(flat(dst, numbers(dst)...), src, "copy")
		return
	}
	a, b := bits(dst), bits(src)
	// Dimensions that lie as one in both become one.
	var shape, to, from []int64
	for i, d := range a.Shape {
		if d.Const == 1 {
			continue
		}
		if n := len(shape) - 1; n >= 0 && to[n] == a.Strides[i]*d.Const && from[n] == b.Strides[i]*d.Const {
			shape[n] *= d.Const
			to[n], from[n] = a.Strides[i], b.Strides[i]
			continue
		}
		shape, to, from = append(shape, d.Const), append(to, a.Strides[i]), append(from, b.Strides[i])
	}
	if len(shape) == 0 {
		shape, to, from = []int64{1}, []int64{1}, []int64{1}
	}
	l.copyParts(strided(a, shape, to), strided(b, shape, from))
}

func (l *lowering) copyParts(dst, src record.Tensor) {
	switch {
	case contiguous(dst) && contiguous(src) || dst.Rank() <= 3:
		l.s.CopyTo("copy", dst, src)
	case dst.Shape[0].Const > maxParts:
		l.fail(dst, "an array %v is copied in more than %d pieces", numbers(dst), maxParts)
	default:
		for i := range dst.Shape[0].Const {
			l.copyParts(dst.Row(ir.Const(i)), src.Row(ir.Const(i)))
		}
	}
}

// layoutOf is how an operand lies in two dimensions of which the first p of a shape are one and the others the other.
type layoutOf int

const (
	apart  layoutOf = iota // in none of these ways
	full                   // row-contiguous
	row                    // one row for all
	column                 // one element a row
	one
)

func lies(t record.Tensor, p int) layoutOf {
	zero := func(from, to int) bool {
		for i := from; i < to; i++ {
			if t.Shape[i].Const != 1 && t.Strides[i] != 0 {
				return false
			}
		}
		return true
	}
	part := func(from, to int) bool {
		return contiguous(record.Tensor{Shape: t.Shape[from:to], Strides: t.Strides[from:to]})
	}
	n := t.Rank()
	switch {
	case zero(0, n):
		return one
	case contiguous(t):
		return full
	case zero(0, p) && part(p, n):
		return row
	case zero(p, n) && part(0, p):
		return column
	}
	return apart
}

// compute records a generated kernel: a formula in which $0, $1, … are operands and T is the type of the result, as the
// language of terms writes it (docs/terms.md). Booleans among the operands are zeros and ones.
func (l *lowering) compute(shape []int64, to ir.DType, formula string, operands ...value) record.Tensor {
	shape = sizes(shape)
	ts := make([]record.Tensor, len(operands))
	scalar := make([]bool, len(operands))
	for i, v := range operands {
		if scalar[i] = v.uniform && !math.IsNaN(v.number) && !math.IsInf(v.number, 0); scalar[i] {
			continue
		}
		if v.typ == ir.Bool {
			ts[i] = l.onesOf(v)
		} else {
			ts[i] = l.tensor(v)
		}
	}
	// Where the shape is cut in two so that the fewest operands have to be copied.
	best, at := -1, 0
	for p := 0; p <= len(shape); p++ {
		good := 0
		for i, t := range ts {
			if !scalar[i] {
				if how := lies(t, p); how == full || how == one {
					good += 3
				} else if how != apart {
					good += 2
				}
			}
		}
		if good > best {
			best, at = good, p
		}
	}
	d0, d1 := product(shape[:at]), product(shape[at:])
	ways := make([]layoutOf, len(ts))
	wide, any := false, false
	for i := range ts {
		if scalar[i] {
			continue
		}
		ways[i] = lies(ts[i], at)
		if ways[i] == apart {
			ts[i], ways[i] = l.packed(ts[i]), full
		}
		wide = wide || ways[i] == row || ways[i] == column
		any = any || ways[i] == full
	}
	index, all := "[i]", "[i]"
	if wide {
		index, all = "[i, j]", "[i, j]"
	}
	var inputs []record.Tensor
	var scalars []record.Scalar
	names := map[int]string{}
	var text strings.Builder
	for rest := formula; rest != ""; {
		i := strings.IndexByte(rest, '$')
		if i < 0 {
			text.WriteString(rest)
			break
		}
		text.WriteString(rest[:i])
		k := int(rest[i+1] - '0')
		rest = rest[i+2:]
		name, ok := names[k]
		switch {
		case ok:
		case scalar[k]:
			name = fmt.Sprintf("s%d", len(scalars))
			scalars = append(scalars, record.Float(float32(operands[k].number)))
		default:
			t := ts[k]
			suffix := map[ir.DType]string{ir.F16: "_f16", ir.BF16: "_bf16"}[t.DType]
			where := all
			switch ways[k] {
			case full:
				t = flat(t, d0*d1)
				if wide {
					t = flat(t, d0, d1)
				}
			case row:
				where, t = "[j]", flat(t, d1)
			case column:
				where, t = "[i]", flat(t, d0)
			case one:
				where, t = "[0]", strided(t, []int64{1}, []int64{1})
			}
			name = fmt.Sprintf("in%d%s%s", len(inputs), suffix, where)
			inputs = append(inputs, t)
		}
		names[k] = name
		text.WriteString(name)
	}
	term := "out0" + index + " = " + strings.ReplaceAll(text.String(), "round(T", "round("+to.String())
	size := []int64{d0 * d1}
	if wide {
		size = []int64{d0, d1}
	}
	o := l.into(to, size)
	if o == nil && !any {
		o = append(o, record.Into(l.s.Scratch(to, record.Dims(size...)...)))
	}
	return flat(l.s.Elementwise(term, inputs, scalars, o...), shape...)
}
