package conformance

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/conformance/internal/dispatches"
	"github.com/mlxc/mlxc/backend/conformance/internal/require"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/msl/decl"
)

// Golden is a dispatch of a kernel with the results that it must have, which NumPy has
// computed in float64, or MLX. testdata/gen/kernels.py writes goldens and documents
// their fields.
type Golden struct {
	Kernel, Note           string
	Flags                  map[string]uint64 // function constants, by index
	Groups, Threads, Group [3]int
	Device                 map[string]struct {
		Data  *[2]int
		Bytes int64
		Same  *int
	}
	Constant map[string]string
	Expect   []expectation

	file   string
	arrays []byte // Data, Values and Scale are an offset and length in it
}

type expectation struct {
	Oracle         string
	Slot           int
	Shape, Strides []int
	Exact          bool
	Half           bool // elements have 16 bits, f16; so have Values that are exact
	BFloat         bool // they are bf16
	Tol            float64
	Values, Scale  *[2]int
}

func (g *Golden) String() string { return fmt.Sprintf("%s: %s %s", g.file, g.Kernel, g.Note) }

// ReadGoldens reads the goldens of a folder, from each *.txtar, which has cases, arrays and
// the program that made them, and from each *.json, whose arrays are in a *.bin.
func ReadGoldens(dir fs.FS) ([]*Golden, error) {
	var out []*Golden
	names, err := fs.ReadDir(dir, ".")
	if err != nil {
		return nil, err
	}
	for _, e := range names {
		var cases, arrays []byte
		switch base, ext := strings.TrimSuffix(e.Name(), path.Ext(e.Name())), path.Ext(e.Name()); ext {
		case ".txtar":
			cases, arrays, err = readArchive(dir, e.Name())
		case ".json":
			if cases, err = fs.ReadFile(dir, e.Name()); err == nil {
				arrays, err = fs.ReadFile(dir, base+".bin")
			}
		default:
			continue
		}
		if err != nil {
			return nil, err
		}
		var file struct{ Cases []*Golden }
		if err := json.Unmarshal(cases, &file); err != nil {
			return nil, fmt.Errorf("%s: %w: make it with testdata/gen/kernels.py", e.Name(), err)
		}
		for _, g := range file.Cases {
			g.file, g.arrays = e.Name(), arrays
			if len(g.Expect) == 0 || g.Expect[0].Oracle != "numpy" {
				return nil, fmt.Errorf("%v expects nothing that NumPy computed", g)
			}
		}
		out = append(out, file.Cases...)
	}
	return out, nil
}

func readArchive(dir fs.FS, name string) (cases, arrays []byte, err error) {
	data, err := fs.ReadFile(dir, name)
	if err != nil {
		return nil, nil, err
	}
	for _, f := range txtar.Parse(data).Files {
		switch f.Name {
		case "cases.json":
			cases = f.Data
		case "arrays.base64":
			text := bytes.ReplaceAll(f.Data, []byte("\n"), nil)
			arrays = make([]byte, base64.StdEncoding.DecodedLen(len(text)))
			n, err := base64.StdEncoding.Decode(arrays, text)
			if err != nil {
				return nil, nil, fmt.Errorf("%s: arrays.base64: %w", name, err)
			}
			arrays = arrays[:n]
		}
	}
	if cases == nil {
		return nil, nil, fmt.Errorf("%s has no cases.json: make them with testdata/gen/kernels.py %s", name, name)
	}
	return cases, arrays, nil
}

// Goldens runs every golden of a folder on a device. It returns, by kernel, the number of
// goldens that the kernel's declaration describes. Goldens that no declaration describes run
// too, but are not counted, since nothing would dispatch them.
func Goldens(t *testing.T, dev backend.Device, dir fs.FS) map[string]int {
	t.Helper()
	all, err := ReadGoldens(dir)
	require.NoError(t, err)
	counts := map[string]int{}
	for _, g := range all {
		described, err := g.Check(dev)
		switch {
		case err != nil:
			t.Errorf("%v: %v", g, err)
		case described != nil:
			t.Logf("%v is not counted: %v", g, described)
		default:
			counts[g.Kernel]++
		}
	}
	return counts
}

// margin is the number of bytes before and after each view of a golden that must not change.
const margin = 256

// goldenRun is a golden as a graph, with the bytes of its memories.
type goldenRun struct {
	graph     *ir.Graph
	described error           // why no declaration describes the dispatch, or nil
	views     map[int]ir.View // by slot
	contents  [][]byte        // by memory, before
}

// Check runs the golden on a device and compares every byte: results within their
// tolerance, everything else as it was. described says why no declaration describes
// the dispatch.
func (g *Golden) Check(dev backend.Device) (described, err error) {
	run, err := g.graph()
	if err != nil {
		return nil, err
	}
	all, err := backend.Once(context.Background(), dev, run.graph, run.contents)
	if err != nil {
		return nil, err
	}
	for m, before := range run.contents {
		after := all[m]
		written := false
		lo, hi := int64(margin), int64(len(before)-margin)
		for _, e := range g.Expect {
			v, ok := run.views[e.Slot]
			if !ok {
				return nil, fmt.Errorf("expects results in slot %d, which it does not bind", e.Slot)
			}
			if int(v.Mem) != m {
				continue
			}
			written = true
			if err := e.check(after[lo:hi], before[lo:hi], g.arrays); err != nil {
				return nil, fmt.Errorf("%s: %w", e.Oracle, err)
			}
		}
		for i := range before {
			if (!written || int64(i) < lo || int64(i) >= hi) && after[i] != before[i] {
				return nil, fmt.Errorf("changed byte %d of %%%s, which is none of the results", int64(i)-lo, run.graph.Memories[m].Name)
			}
		}
	}
	return run.described, nil
}

// graph makes the graph of the dispatch, with the contents of its memories.
func (g *Golden) graph() (*goldenRun, error) {
	ds := msl.Declarations(g.Kernel)
	if len(ds) == 0 {
		return nil, fmt.Errorf("the library has no kernel %s", g.Kernel)
	}
	d := ds[0]
	b := ir.NewBuilder("golden")
	var constants []ir.FunctionConstant
	for _, c := range d.Constants {
		constants = append(constants, ir.FunctionConstant{Index: c.Index, Name: c.Name, Type: c.Type, Bits: g.Flags[strconv.Itoa(int(c.Index))]})
	}
	n := ir.Dispatch{Kernel: b.Kernel(d.Kernel(d.Name, constants...)), GridKind: ir.Threadgroups}
	grid := g.Groups
	if d.Threads != nil {
		n.GridKind, grid = ir.Threads, g.Threads
	}
	for i := range grid {
		n.Grid[i], n.Threadgroup[i] = ir.Ext(int64(grid[i])), uint32(g.Group[i])
	}
	run := &goldenRun{views: map[int]ir.View{}}
	for i := range d.Args {
		a := &d.Args[i]
		if a.Mode == decl.Unused || a.Kind == ir.ThreadgroupArg {
			continue
		}
		slot := strconv.Itoa(int(a.Slot))
		if a.Kind == ir.ConstantArg {
			raw, err := hex.DecodeString(g.Constant[slot])
			if err != nil {
				return nil, fmt.Errorf("constant %s: %w", slot, err)
			}
			// An array shorter than the declared one is followed by zeros.
			n.Bindings = append(n.Bindings, ir.BytesArg(a.Slot, append(raw, make([]byte, max(0, a.Type.Size()*int64(a.Count)-int64(len(raw))))...)))
			continue
		}
		x := g.Device[slot] // an argument that is not given has no bytes
		at := int(a.Slot)
		if x.Same != nil {
			at = *x.Same
			x = g.Device[strconv.Itoa(at)]
		}
		v, ok := run.views[at]
		if !ok {
			data := pattern(x.Bytes)
			if x.Data != nil {
				data = g.array(*x.Data)
			}
			m := b.Memory(ir.Memory{Name: a.Name, Kind: ir.State, Size: int64(len(data)) + 2*margin})
			v = ir.ViewOf(m, margin, int64(len(data)))
			run.contents = append(run.contents, slices.Concat(pattern(margin), data, pattern(margin)))
		}
		run.views[at], run.views[int(a.Slot)] = v, v
		n.Bindings = append(n.Bindings, ir.BufferArg(a.Slot, v))
	}
	node := b.Dispatch(n)
	run.graph = b.Unfinished()
	node.Effects, run.described = msl.Describe(run.graph, node)
	return run, nil
}

func (g *Golden) array(at [2]int) []byte { return g.arrays[at[0] : at[0]+at[1]] }

// pattern returns contents for memory that the golden gives no data: NaNs that no kernel
// makes, in f32 and in f16.
func pattern(n int64) []byte {
	out := make([]byte, n)
	for i := range out {
		out[i] = [4]byte{0xa5, 0x7f, 0xa5, 0x7f}[i%4]
	}
	return out
}

// check compares the elements that e names with their values, and all others with before.
func (e *expectation) check(got, before, arrays []byte) error {
	t := ir.F32
	switch {
	case e.BFloat:
		t = ir.BF16
	case e.Half:
		t = ir.F16
	}
	values := arrays[e.Values[0] : e.Values[0]+e.Values[1]]
	size := int(t.Size())
	expected := make([]bool, len(got)/size)
	var worst error
	var worstRatio float64
	for p := range product(e.Shape) {
		i := offsetOf(p, e.Shape, e.Strides)
		expected[i] = true
		g, bits := dispatches.Element(got, t, int64(i))
		if e.Exact {
			if w, want := dispatches.Element(values, t, int64(p)); bits != want && (g.F == g.F || w.F == w.F) {
				return fmt.Errorf("element %d: got %#x (%v), want %#x (%v)", p, bits, g.F, want, w.F)
			}
			continue
		}
		w, _ := dispatches.Element(values, ir.F32, int64(p))
		scale := math.Abs(w.F)
		if e.Scale != nil {
			x, _ := dispatches.Element(arrays[e.Scale[0]:], ir.F32, int64(p))
			scale = x.F
		}
		if r := ratio(g.F, w.F, e.Tol*scale); r > worstRatio {
			worstRatio = r
			worst = fmt.Errorf("element %d: got %v, want %v, error %.3g of the tolerance %.3g", p, g.F, w.F, r, e.Tol*scale)
		}
	}
	for i, ok := range expected {
		if at := i * size; !ok && !bytes.Equal(got[at:at+size], before[at:at+size]) {
			return fmt.Errorf("wrote element %d of the buffer, which is none of the result", i)
		}
	}
	if worstRatio > 1 {
		return worst
	}
	return nil
}

// ratio is the error of got in units of the tolerance: 0 for equal values,
// infinite where one of them is not finite and the other differs.
func ratio(got, want, tol float64) float64 {
	switch {
	case got == want || got != got && want != want:
		return 0
	case math.IsInf(want, 0) || want != want || got != got || tol == 0:
		return math.Inf(1)
	}
	return math.Abs(got-want) / tol
}

func product(shape []int) int {
	n := 1
	for _, s := range shape {
		n *= s
	}
	return n
}

// offsetOf returns the index, by strides, of element p in row-major order.
func offsetOf(p int, shape, strides []int) int {
	o := 0
	for i := len(shape) - 1; i >= 0; i-- {
		o += p % shape[i] * strides[i]
		p /= shape[i]
	}
	return o
}
