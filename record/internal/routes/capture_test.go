package routes

import (
	"bufio"
	"compress/gzip"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mlxc/mlxc/ir"
)

// capture is a line of testdata/mlxhost: an operation, its operands, and what MLX's own host code sent for
// it, by chips ("g13g+g15s").
type capture struct {
	Op        string
	Type      string
	From, To  string
	Transpose bool
	Bits      int64
	Group     int64
	Eps       float32
	In        map[string]operand
	Sent      map[string]struct {
		Out      [][]any
		Messages []json.RawMessage
	}
	Error                       string
	Dims                        int64
	How                         int
	Traditional, Precise        bool
	Sorted, Reverse, Inclusive  bool
	Layers, Length, Cache, M, K int64
}

// operand is [type, shape, strides, offset].
type operand struct {
	kind           ir.DType
	shape, strides []int64
	offset         int64
}

func (o *operand) UnmarshalJSON(b []byte) error {
	var kind string
	if err := json.Unmarshal(b, &[]any{&kind, &o.shape, &o.strides, &o.offset}); err != nil {
		return err
	}
	var err error
	o.kind, err = ir.ParseDType(kind)
	return err
}

// array returns an operand as an array, of which there is none if the case has none of that name.
func (c *capture) array(name string) Array {
	o, ok := c.In[name]
	if !ok {
		return Array{}
	}
	return Array{
		Buffer: &Buffer{Name: name}, Type: o.kind, Shape: sizes(o.shape...), Strides: sizes(o.strides...), Offset: ir.Const(o.offset),
	}
}

func chip(name string) Chip {
	generation, _ := strconv.Atoi(name[1 : len(name)-1])
	return Chip{Generation: generation, Letter: name[len(name)-1]}
}

// page is the size to which MLX's allocator rounds allocations above it.
const page = 16384

var allocation = regexp.MustCompile(`"t(\d+):(\d+)"`)

// allocations returns the size of each temporary and result of a capture.
func allocations(lines string) map[int]int64 {
	out := map[int]int64{}
	for _, m := range allocation.FindAllStringSubmatch(lines, -1) {
		i, _ := strconv.Atoi(m[1])
		out[i], _ = strconv.ParseInt(m[2], 10, 64)
	}
	return out
}

// allocated returns the size of the buffer that MLX allocates for so many bytes. Its cache may have handed
// out a longer one, of less than twice the size and less than two pages more: then that is the size.
func allocated(bytes, captured int64) int64 {
	if bytes > page {
		bytes = roundUp(bytes, page)
	}
	if captured > bytes && captured < min(2*bytes, bytes+2*page) {
		return captured
	}
	return bytes
}

// text writes what was sent as a capture has it: a line a message. captured has the sizes of allocations.
func text(sent []Dispatch, captured map[int]int64) string {
	var s strings.Builder
	temporaries := map[*Buffer]string{}
	for _, d := range sent {
		if d.Barrier {
			s.WriteString("\"barrier\"\n")
		}
		constants := []string{}
		for _, c := range d.Constants {
			if c.Bool {
				constants = append(constants, fmt.Sprintf(`[%d,"bool","%02x"]`, c.Index, c.Value))
			} else {
				constants = append(constants, fmt.Sprintf(`[%d,"i32","%s"]`, c.Index, hex.EncodeToString(number(c.Value, 4))))
			}
		}
		grid := "groups"
		if d.Threads {
			grid = "threads"
		}
		fmt.Fprintf(&s, `["d","%s",[%s],"%s",[%d,%d,%d],[%d,%d,%d],[`, d.Kernel, strings.Join(constants, ","), grid,
			d.Grid[0].Eval(nil), d.Grid[1].Eval(nil), d.Grid[2].Eval(nil), d.Group[0], d.Group[1], d.Group[2])
		for i, a := range d.Arguments {
			if i > 0 {
				s.WriteByte(',')
			}
			if a.Buffer == nil {
				var b []byte
				for _, v := range a.Values {
					b = append(b, number(v.Value.Const, v.Bytes)...)
				}
				fmt.Fprintf(&s, `["y",%d,"%s"]`, a.Slot, hex.EncodeToString(b))
				continue
			}
			name := a.Buffer.Name
			if name == "" {
				if temporaries[a.Buffer] == "" {
					n := len(temporaries)
					temporaries[a.Buffer] = fmt.Sprintf("t%d:%d", n, allocated(a.Buffer.Bytes.Const, captured[n]))
				}
				name = temporaries[a.Buffer]
			}
			fmt.Fprintf(&s, `["b",%d,"%s",%d]`, a.Slot, name, a.Offset.Const)
		}
		s.WriteString("]]\n")
	}
	return s.String()
}

func number(v int64, bytes int) []byte {
	return binary.LittleEndian.AppendUint64(nil, uint64(v))[:bytes]
}

func read(t *testing.T) []capture {
	f, err := os.Open("../../../testdata/mlxhost/captures.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var all []capture
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var c capture
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatalf("%v: %s", err, lines.Bytes())
		}
		all = append(all, c)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// Every message that MLX's own host code sent, for every case of the families that have routes, on each
// of three chips.
func TestCaptures(t *testing.T) {
	type row struct{ cases, equal, listed, open int }
	table := map[string]*row{}
	for i, c := range read(t) {
		r := table[c.Op]
		if r == nil {
			r = &row{}
			table[c.Op] = r
		}
		r.cases++
		send := operations[c.Op]
		if send == nil {
			r.open++
			continue
		}
		problem := compare(&c, send)
		switch reason := listed(&c); {
		case problem == "" && reason == "":
			r.equal++
		case problem == "":
			t.Errorf("case %d, %s, is listed (%s) and is equal", i, c.Op, reason)
		case reason != "":
			r.listed++
		default:
			if r.open++; r.open <= 2 {
				t.Errorf("case %d, %s %v: %s", i, c.Op, c.In, problem)
			}
		}
	}
	total := row{}
	t.Logf("%-30s %6s %6s %6s %6s", "operation", "cases", "equal", "listed", "open")
	for _, op := range slices.Sorted(maps.Keys(table)) {
		r := table[op]
		t.Logf("%-30s %6d %6d %6d %6d", op, r.cases, r.equal, r.listed, r.open)
		total.cases += r.cases
		total.equal += r.equal
		total.listed += r.listed
		total.open += r.open
	}
	t.Logf("%-30s %6d %6d %6d %6d", "all", total.cases, total.equal, total.listed, total.open)
}

// compare sends a case on each chip, and returns the first difference.
func compare(c *capture, send func(*Encoder, *capture)) string {
	if c.Error != "" {
		e := &Encoder{Chip: chip("g13g")}
		send(e, c)
		if e.Err == nil {
			return "MLX refuses with " + c.Error
		}
		return ""
	}
	for chips, want := range c.Sent {
		var lines strings.Builder
		for _, m := range want.Messages {
			lines.Write(m)
			lines.WriteByte('\n')
		}
		for _, name := range strings.Split(chips, "+") {
			e := &Encoder{Chip: chip(name)}
			send(e, c)
			if e.Err != nil {
				return name + ": " + e.Err.Error()
			}
			if got := text(e.Sent, allocations(lines.String())); got != lines.String() {
				return fmt.Sprintf("%s\ngot\n%swant\n%s", name, got, lines.String())
			}
		}
	}
	return ""
}

// listed returns why a case may differ, if it may.
func listed(c *capture) string { return "" }

// operations sends the operation of a case.
var operations = map[string]func(*Encoder, *capture){
	"quantized_matmul": func(e *Encoder, c *capture) {
		e.QuantizedMatmul(c.array("x"), c.matrix())
	},
	"gather_qmm": func(e *Encoder, c *capture) {
		e.GatherQMM(c.array("x"), c.matrix(), c.array("lhs"), c.array("rhs"), c.Sorted)
	},
	"quantize":   func(e *Encoder, c *capture) { e.Quantize(c.array("w"), Affine{c.Bits, c.Group}) },
	"dequantize": func(e *Encoder, c *capture) { e.Dequantize(c.matrix()) },
	"rms_norm":   func(e *Encoder, c *capture) { e.RMSNorm(c.array("x"), c.array("w"), c.Eps) },
	"layer_norm": func(e *Encoder, c *capture) { e.LayerNorm(c.array("x"), c.array("w"), c.array("b"), c.Eps) },
	"rms_norm_vjp": func(e *Encoder, c *capture) {
		e.RMSNormVJP(c.array("x"), c.array("w"), c.array("g"), c.Eps)
	},
	"layer_norm_vjp": func(e *Encoder, c *capture) {
		e.LayerNormVJP(c.array("x"), c.array("w"), c.array("b"), c.array("g"), c.Eps)
	},
	"matmul": func(e *Encoder, c *capture) { e.Matmul(c.array("a"), c.array("b")) },
	"addmm":  func(e *Encoder, c *capture) { e.AddMM(c.array("a"), c.array("b"), c.array("c"), 1, 1) },
	"gather_mm": func(e *Encoder, c *capture) {
		e.GatherMM(c.array("a"), c.array("b"), c.array("lhs"), c.array("rhs"), c.Sorted)
	},
	"reciprocal": func(e *Encoder, c *capture) {
		x := c.array("x")
		e.Elementwise("divide", e.temporary(x.Type), x)
	},
	"isnan": func(e *Encoder, c *capture) { e.Elementwise("not_equal", c.array("x"), c.array("x")) },
	"floor_divide": func(e *Encoder, c *capture) {
		a := c.array("a")
		q := e.Binary("Divide", a, c.array("b"), a.Type)
		if q.Spare = true; a.Type.Float() {
			e.Elementwise("floor", q)
		}
	},
	"astype": func(e *Encoder, c *capture) {
		t, err := ir.ParseDType(c.To)
		if err != nil {
			panic(err)
		}
		e.AsType(c.array("x"), t)
	},
	"contiguous":  func(e *Encoder, c *capture) { e.Contiguous(c.array("x")) },
	"concatenate": func(e *Encoder, c *capture) { e.Concatenate(1, c.array("a"), c.array("b")) },
	"full":        func(e *Encoder, c *capture) { e.Full(c.array("v"), sizes(64, 576)) },
	"arange": func(e *Encoder, c *capture) {
		t, one := ir.F32, int64(0x3f800000)
		if c.Type == "f16" {
			t, one = ir.F16, 0x3c00
		}
		e.Arange(t, ir.Const(1000), ir.Const(0), ir.Const(one))
	},
	"slice_update": func(e *Encoder, c *capture) { e.SliceUpdate(c.array("a"), c.array("b"), sizes(0, 0, 17, 0)) },
	"slice_update_dynamic": func(e *Encoder, c *capture) {
		e.DynamicSliceUpdate(c.array("a"), c.array("b"), c.array("start"), []int{2})
	},
	"slice_dynamic": func(e *Encoder, c *capture) {
		e.DynamicSlice(c.array("a"), c.array("start"), []int{2}, sizes(1, 3, 16, 64))
	},
	"take":            func(e *Encoder, c *capture) { e.Take(c.array("table"), c.array("ids")) },
	"take_along_axis": func(e *Encoder, c *capture) { e.TakeAlongAxis(c.array("a"), c.array("ids"), 1) },
	"put_along_axis": func(e *Encoder, c *capture) {
		e.PutAlongAxis(c.array("a"), c.array("ids"), c.array("values"), 1)
	},
	"scatter_add": func(e *Encoder, c *capture) { e.ScatterAdd(c.array("a"), c.array("ids"), c.array("updates")) },
	"cumsum":      func(e *Encoder, c *capture) { e.Scan(c.array("x"), c.axis(), c.Reverse, c.Inclusive) },
	"sort":        func(e *Encoder, c *capture) { e.Sort(c.array("x"), c.axis(), false) },
	"argsort":     func(e *Encoder, c *capture) { e.Sort(c.array("x"), c.axis(), true) },
	"where":       func(e *Encoder, c *capture) { e.Select(c.array("condition"), c.array("a"), c.array("b")) },
	"softmax":     func(e *Encoder, c *capture) { e.Softmax(c.array("x"), c.Precise) },
	"logsumexp":   func(e *Encoder, c *capture) { e.LogSumExp(c.array("x")) },
	"rope": func(e *Encoder, c *capture) {
		r := Rope{Dims: c.Dims, Traditional: c.Traditional, Base: 10000, Scale: 1}
		offset := c.array("offset")
		if !offset.Present() {
			offset = e.temporary(ir.I32)
		}
		if c.How == 2 {
			r.Scale = 0.5
		}
		e.Rope(c.array("x"), offset, c.array("freqs"), r)
	},
	"scaled_dot_product_attention": func(e *Encoder, c *capture) {
		o := Attention{Scale: 0.125, Causal: c.How == 1, Mask: c.array("mask"), Sinks: c.array("sinks")}
		e.Attention(c.array("q"), c.array("k"), c.array("v"), o)
	},
}

func init() {
	for name := range Operations {
		operations[name] = func(e *Encoder, c *capture) {
			if x := c.array("x"); x.Present() {
				e.Elementwise(name, x)
			} else {
				e.Elementwise(name, c.array("a"), c.array("b"))
			}
		}
	}
	for name, op := range map[string]reduceOp{"sum": sum, "prod": prod, "max": most, "min": least, "all": and, "any": or} {
		operations[name] = func(e *Encoder, c *capture) { e.Reduce(op, c.array("x"), c.axes()) }
	}
	for _, name := range []string{"argmin", "argmax"} {
		operations[name] = func(e *Encoder, c *capture) { e.ArgReduce(name, c.array("x"), c.axis()) }
	}
}

// axis is the axis of an arg-reduction, a scan or a sort, which a case does not say: the table of shapes of
// testdata/gen/mlxhost/cases.cpp does.
func (c *capture) axis() int {
	return map[string]int{"[49152]": 0, "[3 1000]": 1, "[64 576]": 0, "[2 3 4]": 1}[fmt.Sprint(c.In["x"].shape)]
}

// axes are the axes of a reduction, which a case does not say: those that its result lacks. No two dimensions of
// a shape are equal in these cases.
func (c *capture) axes() []int {
	var result []any
	for _, s := range c.Sent {
		result = s.Out[0][2].([]any)
	}
	axes, next := []int{}, 0
	for i, d := range c.In["x"].shape {
		if next < len(result) && int64(result[next].(float64)) == d {
			next++
		} else {
			axes = append(axes, i)
		}
	}
	return axes
}

func (c *capture) matrix() Matrix {
	return Matrix{
		Codes: c.array("w"), Scales: c.array("scales"), Biases: c.array("biases"),
		Affine: Affine{c.Bits, c.Group}, Transposed: c.Transpose,
	}
}
