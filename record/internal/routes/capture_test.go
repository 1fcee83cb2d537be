package routes

import (
	"bufio"
	"bytes"
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
	Op                          string
	Type                        string
	From, To                    string
	Transpose                   bool
	Bits                        int64
	Group                       int64
	Eps                         float32
	In                          map[string]operand
	Sent                        map[string]sent
	Error                       string
	Dims                        int64
	How                         int
	Traditional, Precise        bool
	Sorted, Reverse, Inclusive  bool
	Layers, Length, Cache, M, K int64
}

// sent are results, each [buffer, type, shape, strides, offset], and messages.
type sent struct {
	Out      []json.RawMessage
	Messages []json.RawMessage
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
		Buffer: &Buffer{Name: name}, Type: o.kind,
		Shape: sizes(o.shape...), Strides: sizes(o.strides...), Offset: ir.Const(o.offset),
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

// bindings returns what each argument of each dispatch of a capture is bound to.
func bindings(messages []json.RawMessage) [][]string {
	var all [][]string
	for _, m := range messages {
		var fields []json.RawMessage
		if json.Unmarshal(m, &fields) != nil {
			continue // a barrier or a commit
		}
		var arguments [][]any
		if err := json.Unmarshal(fields[6], &arguments); err != nil {
			panic(err)
		}
		names := make([]string, len(arguments))
		for i, a := range arguments {
			names[i], _ = a[2].(string)
		}
		all = append(all, names)
	}
	return all
}

// namer names temporaries and results as a capture does, by their first use and their size. After a commit MLX may
// take memory that was last used before it; the stand-in for Metal completes command buffers at once, so it does.
// Which memory that is depends on when a GPU completes, and is taken from the capture.
type namer struct {
	params   []uint32
	sizes    map[int]int64
	bindings [][]string // of a capture with commits
	names    map[*Buffer]string
	owner    map[string]*Buffer
	used     map[*Buffer]int // the command buffer that used it last
	commits  int
}

func (n *namer) name(b *Buffer, dispatch, argument int) string {
	if b.Name != "" {
		return b.Name
	}
	name := n.names[b]
	if name == "" && n.commits > 0 && dispatch < len(n.bindings) && argument < len(n.bindings[dispatch]) {
		candidate := n.bindings[dispatch][argument]
		if old := n.owner[candidate]; old != nil && n.used[old] < n.commits {
			name = candidate
			delete(n.names, old)
		}
	}
	if name == "" {
		i := len(n.owner)
		name = fmt.Sprintf("t%d:%d", i, allocated(b.Bytes.Eval(n.params), n.sizes[i]))
	}
	n.names[b], n.owner[name], n.used[b] = name, b, n.commits
	return name
}

// text writes what was sent as a capture has it, for values of the params: a line a message, and then a line a result.
func text(messages []Dispatch, results []Array, params []uint32, captured sent) string {
	var s strings.Builder
	lines := captured.text()
	n := &namer{
		params: params, sizes: allocations(lines),
		names: map[*Buffer]string{}, owner: map[string]*Buffer{}, used: map[*Buffer]int{},
	}
	if strings.Contains(lines, "commit") {
		n.bindings = bindings(captured.Messages)
	}
	for at, d := range messages {
		if d.Commit {
			n.commits++
			s.WriteString("\"commit\"\n")
		}
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
			d.Grid[0].Eval(params), d.Grid[1].Eval(params), d.Grid[2].Eval(params), d.Group[0], d.Group[1], d.Group[2])
		for i, a := range d.Arguments {
			if i > 0 {
				s.WriteByte(',')
			}
			if a.Buffer == nil {
				var b []byte
				for _, v := range a.Values {
					b = append(b, number(v.Value.Eval(params), v.Bytes)...)
				}
				fmt.Fprintf(&s, `["y",%d,"%s"]`, a.Slot, hex.EncodeToString(b))
				continue
			}
			fmt.Fprintf(&s, `["b",%d,"%s",%d]`, a.Slot, n.name(a.Buffer, at, i), a.Offset.Eval(params))
		}
		s.WriteString("]]\n")
	}
	for _, a := range results {
		list := func(sizes []Size) string {
			out := make([]string, len(sizes))
			for i, d := range sizes {
				out[i] = strconv.FormatInt(d.Eval(params), 10)
			}
			return strings.Join(out, ",")
		}
		fmt.Fprintf(&s, "[\"%s\",\"%s\",[%s],[%s],%d]\n", n.name(a.Buffer, len(messages), 0), a.Type, list(a.Shape),
			list(a.Strides), a.Offset.Eval(params))
	}
	return s.String()
}

// padding finds the four bytes that fill the structure of gathered products, which MLX does not initialize: they are
// what the stack held.
var padding = regexp.MustCompile(`(\["y",5,"[0-9a-f]{136})[0-9a-f]{8}"`)

// text returns the lines of a capture.
func (s sent) text() string {
	var lines strings.Builder
	for _, m := range slices.Concat(s.Messages, s.Out) {
		if bytes.Contains(m, []byte("steel_gather_mm_")) {
			m = padding.ReplaceAll(m, []byte(`${1}00000000"`))
		}
		lines.Write(m)
		lines.WriteByte('\n')
	}
	return lines.String()
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

// Every message that MLX's own host code sent, for every case, on each chip.
func TestCaptures(t *testing.T) {
	type row struct{ cases, equal int }
	table := map[string]*row{}
	for i, c := range read(t) {
		r := table[c.Op]
		if r == nil {
			r = &row{}
			table[c.Op] = r
		}
		r.cases++
		problem := "no route"
		if send := operations[c.Op]; send != nil {
			problem = compare(&c, send)
		}
		if problem == "" {
			r.equal++
		} else if r.cases-r.equal <= 2 { // two of an operation are enough to read
			t.Errorf("case %d, %s %v: %s", i, c.Op, c.In, problem)
		}
	}
	total := row{}
	t.Logf("%-30s %6s %6s", "operation", "cases", "equal")
	for _, op := range slices.Sorted(maps.Keys(table)) {
		r := table[op]
		t.Logf("%-30s %6d %6d", op, r.cases, r.equal)
		total.cases += r.cases
		total.equal += r.equal
	}
	t.Logf("%-30s %6d %6d", "all", total.cases, total.equal)
	if total.cases < 6000 {
		t.Errorf("%d cases: testdata/mlxhost has lost some", total.cases)
	}
}

// compare sends a case on each chip, and returns the first difference.
func compare(c *capture, send func(*Encoder, *capture) []Array) string {
	if c.Error != "" {
		e := &Encoder{Chip: chip("g13g")}
		send(e, c)
		if e.Err == nil {
			return "MLX refuses with " + c.Error
		}
		return ""
	}
	for chips, want := range c.Sent {
		for _, name := range strings.Split(chips, "+") {
			e := &Encoder{Chip: chip(name)}
			results := send(e, c)
			if e.Err != nil {
				return name + ": " + e.Err.Error()
			}
			if got := text(e.Sent, results, nil, want); got != want.text() {
				return name + "\n" + difference(got, want.text())
			}
		}
	}
	return ""
}

// difference returns the first message that differs, and how many there are.
func difference(got, want string) string {
	g, w := strings.SplitAfter(got, "\n"), strings.SplitAfter(want, "\n")
	i := 0
	for i < len(g)-1 && i < len(w)-1 && g[i] == w[i] {
		i++
	}
	return fmt.Sprintf("message %d of %d\ngot  %swant %s", i, len(w)-1, g[i], w[i])
}
