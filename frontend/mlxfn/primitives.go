package mlxfn

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/record"
)

// primitives has a row for each primitive that can be recorded: how.
var primitives map[string]func(c *call) error

func init() {
	primitives = map[string]func(c *call) error{
		// One element of each operand. Integers go to kernels by MLX's names.
		"Abs": formula("abs($0)"), "Negative": formula("-$0"), "Exp": formula("exp($0)"), "Sin": formula("sin($0)"), "Cos": formula("cos($0)"),
		"Tanh": formula("tanh($0)"), "Square": formula("$0 * $0"), "Sigmoid": sigmoid, "Sqrt": squareRoot, "Log": logarithm,
		"Tan": formula("sin($0) / cos($0)"), "Erf": formula(erf),
		// What is lost as 1 + x is rounded is put right by a factor.
		"Log1p": formula("select(1.0 + $0 == 1.0, $0, select($0 == inf, $0, log(1.0 + $0) * ($0 / (1.0 + $0 - 1.0))))"),
		// e^x − 1 = 2t/(1 − t) with t = tanh(x/2), which loses nothing near 0.
		"Expm1": formula("select(abs($0) < 1.0, 2.0 * tanh($0 * 0.5) / (1.0 - tanh($0 * 0.5)), exp($0) - 1.0)"),
		"Cosh":  formula("0.5 * exp($0) + 0.5 * exp(-$0)"),
		"Sinh":  formula("select(abs($0) < 1.0, tanh($0) * (0.5 * exp($0) + 0.5 * exp(-$0)), 0.5 * exp($0) - 0.5 * exp(-$0))"),
		"Sign":  formula("select($0 > 0.0, 1.0, select($0 < 0.0, -1.0, $0))"),
		"Round": formula(nearest("$0")),
		"Floor": formula(fmt.Sprintf("select(%[1]s > $0, %[1]s - 1.0, %[1]s)", nearest("$0"))),
		"Ceil":  formula(fmt.Sprintf("select(%[1]s < $0, %[1]s + 1.0, %[1]s)", nearest("$0"))),

		"Add": arithmetic("add", "$0 + $1"), "Subtract": arithmetic("subtract", "$0 - $1"), "Multiply": arithmetic("multiply", "$0 * $1"),
		"Divide": formula("$0 / $1"), "FloorDivide": formula(fmt.Sprintf("select(%[1]s > $0 / $1, %[1]s - 1.0, %[1]s)", nearest("$0 / $1"))),
		// NaN goes on, from either side.
		"Maximum":   arithmetic("maximum", "select($0 > $1 || $0 != $0, $0, $1)"),
		"Minimum":   arithmetic("minimum", "select($0 < $1 || $0 != $0, $0, $1)"),
		"LogAddExp": formula("select($0 == $1, $0, max($0, $1)) + log(1.0 + exp(-abs($0 - $1)))"), "Power": power,

		"Equal": equal, "NotEqual": compare("not_equal", false, "$0 != $1"),
		"Less": compare("less", false, "$0 < $1"), "Greater": compare("less", true, "$0 > $1"),
		"GreaterEqual": compare("greater_equal", false, "$0 >= $1"), "LessEqual": compare("greater_equal", true, "$0 <= $1"),
		"LogicalNot": logic("1.0 - $0"), "LogicalAnd": logic("$0 * $1"), "LogicalOr": logic("max($0, $1)"), "Select": choose,
		"BitwiseBinary": bitwise, "AsType": convert, "View": view,

		// Shapes.
		"Broadcast": broadcast, "BroadcastAxes": broadcast, "Reshape": reshape, "Flatten": reshape, "Unflatten": reshape, "ExpandDims": reshape, "Squeeze": reshape,
		"Transpose": transpose, "Slice": slice, "Split": split, "Concatenate": concatenate, "Pad": pad, "AsStrided": asStrided,
		"Copy": same, "StopGradient": same, "Depends": depends, "Arange": arange, "NumberOfElements": numberOfElements, "Full": broadcast,

		// Indices and places.
		"Gather": gather, "GatherAxis": gatherAxis, "SliceUpdate": sliceUpdate, "DynamicSlice": dynamicSlice, "DynamicSliceUpdate": dynamicSliceUpdate,

		// Rows.
		"Reduce": reduce, "ArgReduce": argReduce, "Softmax": softmax, "LogSumExp": logSumExp, "RMSNorm": rmsNorm, "LayerNorm": layerNorm,
		"Sort": sorted, "ArgSort": sorted, "Partition": sorted, "ArgPartition": sorted, "Scan": scan, "RMSNormVJP": normGradient, "LayerNormVJP": normGradient,

		// Products.
		"Matmul": matmul, "AddMM": addMM, "QuantizedMatmul": quantizedMatmul, "GatherMM": gatherMM, "GatherQMM": gatherQMM, "Quantize": quantize,
		"CustomKernel": customKernel,
		"RoPE":         rope, "ScaledDotProductAttention": attention,
	}
}

// nearest is a formula for the nearest whole number, ties to even: numbers of less than 2^23 lose what is behind the point as
// 2^23 is added, and all others have nothing there.
func nearest(x string) string {
	return fmt.Sprintf("select(abs(%[1]s) < 8.388608e+06, select(%[1]s < 0.0, -(-%[1]s + 8.388608e+06 - 8.388608e+06), %[1]s + 8.388608e+06 - 8.388608e+06), %[1]s)", x)
}

// erf is a formula for erf: near 0 its series, of which the terms that are left out are below 2^-26, and elsewhere 1 − erfc,
// with erfc(|x|) = t·exp(−x² + p(t)), t = 1/(1 + |x|/2), where p is fitted to 1.2e-7 of it.
var erf = func() string {
	number := func(v float64) string {
		text := strconv.FormatFloat(math.Abs(v), 'g', -1, 32)
		if !strings.ContainsAny(text, ".e") {
			text += ".0"
		}
		return text
	}
	series, factor := "", 2/math.Sqrt(math.Pi)
	for n := 9; n >= 0; n-- {
		c := factor / float64(2*n+1)
		for k := 2; k <= n; k++ {
			c /= float64(k)
		}
		switch {
		case series == "":
			series = "-" + number(c)
		case n%2 == 0:
			series = fmt.Sprintf("%s + $0 * $0 * (%s)", number(c), series)
		default:
			series = fmt.Sprintf("-%s + $0 * $0 * (%s)", number(c), series)
		}
		if n == 8 { // a number has no parentheses
			series = strings.NewReplacer("(-", "-", ")", "").Replace(series)
		}
	}
	const t = "1.0 / (1.0 + 0.5 * abs($0))"
	fit := []float64{-1.26551223, 1.00002368, 0.37409196, 0.09678418, -0.18628806, 0.27886807, -1.13520398, 1.48851587, -0.82215223, 0.17087277}
	p := ""
	for i := len(fit) - 1; i >= 0; i-- {
		c := number(fit[i])
		if fit[i] < 0 {
			c = "-" + c
		}
		if p == "" {
			p = c
			continue
		}
		if i == len(fit)-2 {
			p = fmt.Sprintf("%s + %s * %s", c, t, p)
			continue
		}
		p = fmt.Sprintf("%s + %s * (%s)", c, t, p)
	}
	rest := fmt.Sprintf("1.0 - %s * exp(-($0 * $0) + (%s))", t, p)
	return fmt.Sprintf("select(abs($0) < 1.0, $0 * (%s), select($0 < 0.0, -(%[2]s), %[2]s))", series, rest)
}()

// floats reports whether all operands are of one type of floats.
func (c *call) floats() error {
	for i, v := range c.in {
		if !v.typ.Float() {
			return fmt.Errorf("operand %d is of %s, and floats are expected", i+1, v.typ)
		}
	}
	return nil
}

// formula computes floats by a generated kernel; the result is rounded to its type.
func formula(text string) func(*call) error {
	return func(c *call) error {
		if text == "" {
			return errors.New("there is no kernel for it")
		}
		if err := c.floats(); err != nil {
			return err
		}
		return c.give(c.compute(c.out[0].shape, c.out[0].typ, "round(T, "+text+")", c.in...))
	}
}

// whole reports whether a type is one of the integers that kernels compute with.
func whole(t ir.DType) bool { return t == ir.I32 || t == ir.U32 }

// arithmetic is formula, and for integers an operation of MLX.
func arithmetic(name, text string) func(*call) error {
	return func(c *call) error {
		if c.in[0].typ.Float() {
			return formula(text)(c)
		}
		if !whole(c.in[0].typ) {
			return fmt.Errorf("of %s", c.in[0].typ)
		}
		return c.give(c.integers(name, c.in...))
	}
}

// integers records an operation of MLX on operands of any layout.
func (c *call) integers(name string, in ...value) record.Tensor {
	ts := make([]record.Tensor, len(in))
	for i := range in {
		ts[i] = c.tensor(in[i])
	}
	return c.together(ts, func(ts []record.Tensor) record.Tensor { return c.m.Elementwise(name, ts) })
}

// together computes a result, of the shape that all operands have, by an operation on two dimensions: those that lie as one in
// all operands are joined, and operands are copied where more than two remain.
func (l *lowering) together(ts []record.Tensor, do func([]record.Tensor) record.Tensor) record.Tensor {
	shape := numbers(ts[0])
	best, at := -1, 0
	for p := 0; p <= len(shape); p++ {
		good := 0
		for _, t := range ts {
			if lies(t, p) != apart {
				good++
			}
		}
		if good > best {
			best, at = good, p
		}
	}
	d0, d1 := product(shape[:at]), product(shape[at:])
	out := make([]record.Tensor, len(ts))
	for i, t := range ts {
		how := lies(t, at)
		if how == apart {
			t, how = l.packed(t), full
		}
		strides := map[layoutOf][]int64{full: {d1, 1}, row: {0, 1}, column: {1, 0}, one: {0, 0}}[how]
		out[i] = strided(t, []int64{d0, d1}, strides)
	}
	return flat(do(out), shape...)
}

func sigmoid(c *call) error {
	if err := c.floats(); err != nil {
		return err
	}
	return c.give(c.s.Sigmoid(c.dense(c.in[0])))
}

func squareRoot(c *call) error {
	if c.flag(0) {
		return formula("rsqrt($0)")(c)
	}
	return formula("sqrt($0)")(c)
}

func logarithm(c *call) error {
	switch c.int(0) {
	case 0:
		return formula("log($0) * 1.442695")(c)
	case 1:
		return formula("log($0) * 0.4342945")(c)
	case 2:
		return formula("log($0)")(c)
	}
	return fmt.Errorf("to the base %d", c.int(0))
}

func power(c *call) error {
	if err := c.operands(2); err != nil {
		return err
	}
	if !c.in[1].uniform {
		return errors.New("exponents that are not one constant")
	}
	if c.in[1].number == 0 {
		c.out[0].uniform, c.out[0].number = true, 1
		return nil
	}
	text, ok := map[float64]string{
		1: "$0", 2: "$0 * $0", 3: "$0 * $0 * $0", 4: "$0 * $0 * ($0 * $0)", 0.5: "sqrt($0)", -0.5: "rsqrt($0)", -1: "1.0 / $0", -2: "1.0 / ($0 * $0)",
	}[c.in[1].number]
	if !ok {
		return fmt.Errorf("the exponent %v", float32(c.in[1].number))
	}
	c.in = c.in[:1]
	return formula(text)(c)
}

// compare gives booleans. Those of floats are zeros and ones until their memory is wanted.
func compare(name string, exchanged bool, text string) func(*call) error {
	return func(c *call) error {
		if err := c.operands(2); err != nil {
			return err
		}
		switch t := c.in[0].typ; {
		case t.Float() || t == ir.Bool:
			c.out[0].ones, c.out[0].hasOnes = c.compute(c.out[0].shape, ir.F32, "round(T, select("+text+", 1.0, 0.0))", c.in...), true
			return nil
		case whole(t):
			if exchanged {
				return c.give(c.integers(name, c.in[1], c.in[0]))
			}
			return c.give(c.integers(name, c.in...))
		default:
			return fmt.Errorf("of %s", t)
		}
	}
}

func equal(c *call) error {
	if c.flag(0) && c.in[0].typ.Float() {
		return compare("equal", false, "$0 == $1 || $0 != $0 && $1 != $1")(c)
	}
	return compare("equal", false, "$0 == $1")(c)
}

// logic combines booleans as zeros and ones.
func logic(text string) func(*call) error {
	return func(c *call) error {
		for i, v := range c.in {
			if v.typ == ir.Bool {
				continue
			}
			if !v.typ.Float() {
				return fmt.Errorf("operand %d is of %s", i+1, v.typ)
			}
			c.in[i] = value{shape: v.shape, typ: ir.Bool, round: c.round, hasOnes: true,
				ones: c.compute(v.shape, ir.F32, "round(T, select($0 != 0.0, 1.0, 0.0))", v)}
		}
		c.out[0].ones, c.out[0].hasOnes = c.compute(c.out[0].shape, ir.F32, "round(T, "+text+")", c.in...), true
		return nil
	}
}

func choose(c *call) error {
	if err := c.operands(3); err != nil {
		return err
	}
	switch t := c.out[0].typ; {
	case c.in[0].typ != ir.Bool:
		return fmt.Errorf("by %s", c.in[0].typ)
	case t.Float():
		return c.give(c.compute(c.out[0].shape, t, "round(T, select($0 != 0.0, $1, $2))", c.in...))
	case t == ir.Bool:
		c.out[0].ones, c.out[0].hasOnes = c.compute(c.out[0].shape, ir.F32, "round(T, select($0 != 0.0, $1, $2))", c.in...), true
		return nil
	case whole(t):
		ts := []record.Tensor{c.tensor(c.in[0]), c.tensor(c.in[1]), c.tensor(c.in[2])}
		return c.give(c.together(ts, func(ts []record.Tensor) record.Tensor { return c.m.Where(ts[0], ts[1], ts[2]) }))
	default:
		return fmt.Errorf("of %s", t)
	}
}

func bitwise(c *call) error {
	op, t := c.int(0), c.out[0].typ
	names := []string{"bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"}
	switch {
	case op < 0 || op >= int64(len(names)):
		return fmt.Errorf("operation %d", op)
	case t == ir.Bool && op == 2:
		return compare("", false, "$0 != $1")(c)
	case t == ir.Bool && op < 2:
		return logic([]string{"$0 * $1", "max($0, $1)"}[op])(c)
	case whole(t):
		return c.give(c.integers(names[op], c.in...))
	}
	return fmt.Errorf("%s of %s", names[op], t)
}

func convert(c *call) error {
	from, to := c.in[0], c.out[0].typ
	switch {
	case from.typ == to:
		return same(c)
	case from.uniform && (to.Float() || whole(to) && from.number == math.Trunc(from.number)) && math.Abs(from.number) < 1<<31:
		n := from.number
		if to.Float() {
			n = float64(record.Numbers(to, record.Elements(to, []float32{float32(n)}))[0])
		} else if to == ir.U32 && n < 0 {
			n += 1 << 32
		}
		c.out[0].uniform, c.out[0].number = true, n
		return nil
	case from.typ.Float() && to.Float():
		return formula("$0")(c)
	case from.typ == ir.Bool && to.Float():
		return c.give(c.compute(c.out[0].shape, to, "round(T, $0)", from))
	case from.typ == ir.Bool && whole(to):
		return c.give(c.m.AsType(c.packed(c.onesOf(from)), to))
	case from.typ.Float() && to == ir.Bool:
		return compare("", false, "$0 != $1")(c.with(from, value{shape: from.shape, typ: from.typ, uniform: true}))
	case whole(from.typ) && to == ir.Bool:
		return c.give(c.integers("not_equal", from, value{shape: from.shape, typ: from.typ, uniform: true}))
	case whole(from.typ) && whole(to):
		t := c.tensor(from)
		t.DType = to
		return c.give(t)
	case whole(from.typ) && to.Float():
		t := c.m.AsType(c.dense(from), ir.F32)
		if to != ir.F32 {
			t = c.compute(from.shape, to, "round(T, $0)", value{shape: from.shape, typ: ir.F32, t: t, has: true, round: c.round})
		}
		return c.give(t)
	case from.typ.Float() && whole(to):
		t := c.dense(from)
		if from.typ != ir.F32 {
			t = c.compute(from.shape, ir.F32, "round(T, $0)", from)
		}
		return c.give(c.m.AsType(t, to))
	}
	return fmt.Errorf("%s to %s", from.typ, to)
}

// with returns the call with other operands.
func (c *call) with(in ...value) *call {
	c.in = in
	return c
}

// view takes the bits for another type.
func view(c *call) error {
	from, to := c.in[0].typ, c.out[0].typ
	if from.Size() != to.Size() || from == ir.Bool || to == ir.Bool {
		if len(c.in[0].shape) == 0 || from == ir.Bool || to == ir.Bool {
			return fmt.Errorf("of %s as %s", from, to)
		}
		t := c.dense(c.in[0])
		t.DType = to
		return c.give(flat(t, c.out[0].shape...))
	}
	t := c.tensor(c.in[0])
	t.DType = to
	return c.give(t)
}

func same(c *call) error {
	c.out[0] = c.moved(func(t record.Tensor) record.Tensor { return t })
	return nil
}

func depends(c *call) error {
	for i := range c.out {
		in := c.in[i]
		in.shape, in.typ = c.out[i].shape, c.out[i].typ
		c.out[i] = c.fresh(in)
	}
	return nil
}

// moved returns the first operand with its memory looked at in another way, which is the same for a boolean's zeros and ones.
func (c *call) moved(do func(record.Tensor) record.Tensor) value {
	v := c.fresh(c.in[0])
	if v.has {
		v.t = do(v.t)
	}
	if v.hasOnes {
		v.ones = do(v.ones)
	}
	if v.uniform {
		v.has, v.hasOnes = false, false
	}
	return v
}

func broadcast(c *call) error {
	shape := c.out[0].shape
	c.out[0] = c.moved(func(t record.Tensor) record.Tensor {
		have := numbers(t)
		if len(c.in[0].shape) == 0 {
			have = nil
		}
		strides := make([]int64, len(shape))
		for i, d := range have {
			at := i + len(shape) - len(have)
			switch {
			case at < 0:
				c.fail(t, "%v to %v", have, shape)
				return t
			case d == shape[at]:
				strides[at] = t.Strides[i]
			case d != 1:
				c.fail(t, "%v to %v", have, shape)
			}
		}
		if len(shape) == 0 {
			strides = []int64{0}
		}
		return strided(t, sizes(shape), strides)
	})
	return nil
}

func reshape(c *call) error {
	shape := c.out[0].shape
	if product(shape) != product(c.in[0].shape) {
		return fmt.Errorf("%v to %v", c.in[0].shape, shape)
	}
	c.out[0] = c.moved(func(t record.Tensor) record.Tensor {
		if strides, ok := restride(t, sizes(shape)); ok {
			return strided(t, sizes(shape), strides)
		}
		return flat(c.packed(t), sizes(shape)...)
	})
	return nil
}

// restride returns the strides of another shape of the same elements, if there are any.
func restride(t record.Tensor, shape []int64) ([]int64, bool) {
	have := collapsed(t)
	strides := make([]int64, len(shape))
	left, step, at := int64(1), int64(0), have.Rank()
	for i := len(shape) - 1; i >= 0; i-- {
		if shape[i] == 1 {
			strides[i] = 0
			continue
		}
		if left == 1 {
			if at--; at < 0 {
				return nil, false
			}
			left, step = have.Shape[at].Const, have.Strides[at]
		}
		if left%shape[i] != 0 {
			return nil, false
		}
		strides[i] = step
		left /= shape[i]
		step *= shape[i]
	}
	// Of dimensions of one element, which say nothing, strides are those of what follows.
	next := int64(1)
	for i := len(shape) - 1; i >= 0; i-- {
		if shape[i] == 1 {
			strides[i] = next
		}
		next = strides[i] * shape[i]
	}
	return strides, true
}

func transpose(c *call) error {
	order := c.ints(0)
	if len(order) != len(c.in[0].shape) {
		return fmt.Errorf("by %v of %v", order, c.in[0].shape)
	}
	seen := make([]bool, len(order))
	for i, a := range order {
		if a < 0 {
			a += int64(len(order))
		}
		if a < 0 || a >= int64(len(order)) || seen[a] {
			return fmt.Errorf("by %v", order)
		}
		seen[a] = true
		order[i] = a
	}
	if len(order) == 0 {
		return same(c)
	}
	c.out[0] = c.moved(func(t record.Tensor) record.Tensor {
		shape, strides := make([]int64, len(order)), make([]int64, len(order))
		for i, a := range order {
			shape[i], strides[i] = t.Shape[a].Const, t.Strides[a]
		}
		return strided(t, shape, strides)
	})
	return nil
}

// cut returns the part of t from start on, in steps.
func cut(t record.Tensor, start, steps, shape []int64) record.Tensor {
	at, strides := int64(0), make([]int64, len(shape))
	for i := range shape {
		at += start[i] * t.Strides[i]
		strides[i] = t.Strides[i] * steps[i]
	}
	t.Off = t.Off.AddConst(at * t.DType.Size())
	return strided(t, shape, strides)
}

// bounds checks a slice against the shape of what it is of.
func bounds(start, steps, shape, of []int64) error {
	if len(start) != len(of) || len(steps) != len(of) || len(shape) != len(of) {
		return fmt.Errorf("%v from %v in steps %v of %v", shape, start, steps, of)
	}
	for i := range of {
		if steps[i] < 1 {
			return errors.New("steps back")
		}
		if start[i] < 0 || start[i] >= of[i] || shape[i] < 1 || shape[i]-1 > (of[i]-1-start[i])/steps[i] {
			return fmt.Errorf("%v from %v in steps %v of %v", shape, start, steps, of)
		}
	}
	return nil
}

func slice(c *call) error {
	shape := c.out[0].shape
	if err := bounds(c.ints(0), c.ints(2), shape, c.in[0].shape); err != nil {
		return err
	}
	if len(shape) == 0 {
		return same(c)
	}
	c.out[0] = c.moved(func(t record.Tensor) record.Tensor { return cut(t, c.ints(0), c.ints(2), shape) })
	return nil
}

func ones(n int) []int64 {
	out := make([]int64, n)
	for i := range out {
		out[i] = 1
	}
	return out
}

func split(c *call) error {
	axis, err := c.axis(1, len(c.in[0].shape))
	if err != nil {
		return err
	}
	at := int64(0)
	for i := range c.out {
		start := make([]int64, len(c.in[0].shape))
		start[axis] = at
		shape := c.out[i].shape
		if err := bounds(start, ones(len(start)), shape, c.in[0].shape); err != nil {
			return err
		}
		c.out[i] = c.moved(func(t record.Tensor) record.Tensor { return cut(t, start, ones(len(start)), shape) })
		at += shape[axis]
	}
	return nil
}

// whole booleans are put together as zeros and ones, all else as it is.
func (c *call) pieces(vs []value) (ts []record.Tensor, of ir.DType) {
	of = c.out[0].typ
	for _, v := range vs {
		if of == ir.Bool {
			ts = append(ts, c.onesOf(v))
		} else {
			ts = append(ts, c.tensor(v))
		}
	}
	if of == ir.Bool {
		of = ir.F32
	}
	return ts, of
}

// joined sets the result to memory that pieces makes.
func (c *call) joined(t record.Tensor) error {
	if c.out[0].typ == ir.Bool {
		c.out[0].ones, c.out[0].hasOnes = t, true
		return nil
	}
	return c.give(t)
}

func concatenate(c *call) error {
	shape := c.out[0].shape
	axis, err := c.axis(0, len(shape))
	if err != nil {
		return err
	}
	ts, of := c.pieces(c.in)
	out := c.scratch(of, shape)
	at := int64(0)
	for i, t := range ts {
		start := make([]int64, len(shape))
		start[axis] = at
		if err := bounds(start, ones(len(shape)), c.in[i].shape, shape); err != nil {
			return err
		}
		c.copyTo(cut(out, start, ones(len(shape)), c.in[i].shape), t)
		at += c.in[i].shape[axis]
	}
	if at != shape[axis] {
		return fmt.Errorf("pieces of %d elements make %v", at, shape)
	}
	return c.joined(out)
}

func pad(c *call) error {
	if err := c.operands(2); err != nil {
		return err
	}
	shape, axes, low := c.out[0].shape, c.ints(0), c.ints(1)
	if len(axes) != len(low) {
		return fmt.Errorf("%d axes by %d sizes", len(axes), len(low))
	}
	start := make([]int64, len(shape))
	for i, a := range axes {
		if a < 0 {
			a += int64(len(shape))
		}
		if a < 0 || a >= int64(len(shape)) {
			return fmt.Errorf("there is no axis %d", axes[i])
		}
		start[a] = low[i]
	}
	if err := bounds(start, ones(len(shape)), c.in[0].shape, shape); err != nil {
		return err
	}
	filled := c.in[1]
	filled.shape = nil
	ts, of := c.pieces([]value{c.in[0], filled})
	out := c.scratch(of, shape)
	c.copyTo(out, broadcastTensor(ts[1], shape))
	c.copyTo(cut(out, start, ones(len(shape)), c.in[0].shape), ts[0])
	return c.joined(out)
}

func asStrided(c *call) error {
	shape, strides, at := c.ints(0), c.ints(1), c.int(2)
	if len(shape) != len(strides) || !slices.Equal(shape, c.out[0].shape) {
		return fmt.Errorf("%v with strides %v", shape, strides)
	}
	last := at
	for i := range shape {
		if strides[i] < 0 {
			return errors.New("negative strides")
		}
		if strides[i] > maxShape || last > maxShape {
			return fmt.Errorf("%v with strides %v", shape, strides)
		}
		last += (shape[i] - 1) * strides[i]
	}
	if at < 0 || last >= product(c.in[0].shape) {
		return fmt.Errorf("%v with strides %v from %d on, of %d elements", shape, strides, at, product(c.in[0].shape))
	}
	t := c.dense(c.in[0])
	t.Off = t.Off.AddConst(at * t.DType.Size())
	if len(shape) == 0 {
		shape, strides = []int64{1}, []int64{1}
	}
	return c.give(strided(t, shape, strides))
}

// maxMade bounds the elements of constants that are made here.
const maxMade = 1 << 24

func arange(c *call) error {
	start, step, n := c.n.State[0].(float64), c.n.State[2].(float64), product(c.out[0].shape)
	t := c.out[0].typ
	if n > maxMade || !t.Float() && !whole(t) {
		return fmt.Errorf("%d elements of %s", n, t)
	}
	var data []byte
	for i := range n {
		v := start + float64(i)*step
		if t.Float() {
			data = append(data, record.Elements(t, []float32{float32(v)})...)
		} else {
			data = append(data, byte(int64(v)), byte(int64(v)>>8), byte(int64(v)>>16), byte(int64(v)>>24))
		}
	}
	return c.give(c.s.Weight(fmt.Sprintf("range_%v_%v_%d_%s", start, step, n, t), ir.NewBlob(data), t, n))
}

func numberOfElements(c *call) error {
	n := int64(1)
	for i := range c.ints(0) {
		a, err := axisOf(c.ints(0)[i], len(c.in[0].shape))
		if err != nil {
			return err
		}
		n *= c.in[0].shape[a]
	}
	c.out[0].uniform, c.out[0].number = true, float64(n)
	if c.flag(1) {
		c.out[0].number = 1 / float64(n)
	}
	return nil
}

func axisOf(a int64, rank int) (int, error) {
	if a < 0 {
		a += int64(rank)
	}
	if a < 0 || a >= int64(rank) {
		return 0, fmt.Errorf("there is no axis %d of %d", a, rank)
	}
	return int(a), nil
}
