//go:build gpu && unix

package softmetal

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/conformance"
	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/air/nvptx"
	"github.com/mlxc/mlxc/internal/testing/metallibs"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/term"
)

// The tests that run single kernels can run them on an NVIDIA GPU of another machine. `GPU_RECORD=FOLDER go test
// -tags gpu -run …` writes the dispatches to the folder, with the kernels as PTX; on the other machine `python
// testdata/gpu.py FOLDER` runs them and adds the contents of memory afterwards; then `GPU_RESULTS=FOLDER go test
// -tags gpu -run …` gives these contents to the tests.
func init() {
	if dir := os.Getenv("GPU_RECORD"); dir != "" {
		elsewhereRun = (&recording{dir: dir, seen: map[string]bool{}}).add
	}
	if dir := os.Getenv("GPU_RESULTS"); dir != "" {
		elsewhereRun = (&results{dir: dir}).take
	}
}

// gpuCase is a line of cases.jsonl. Places and lengths are bytes of data.bin.
type gpuCase struct {
	Key, Kernel, PTX string
	Groups           [3]uint32
	Threads, Dynamic uint32
	Params           []gpuParam
	Results          []gpuPlace // where out.bin gets what the buffers hold afterwards
}

// gpuParam is a parameter of the PTX entry: memory if it has a length, otherwise a number.
type gpuParam struct {
	Place  gpuPlace
	Buffer int    // equal numbers are the same memory; -1: a number
	Value  uint32 // the number, or an offset in the memory in bytes
}

type gpuPlace struct{ Offset, Bytes int }

// inside is an argument that begins inside a buffer.
type inside struct {
	*buffer
	offset int64
}

// buffersOf returns the buffers among arguments, each once.
func buffersOf(args []any) (out []*buffer, index map[*buffer]int) {
	index = map[*buffer]int{}
	for _, a := range args {
		b, ok := a.(*buffer)
		if w, is := a.(inside); is {
			b, ok = w.buffer, true
		}
		if ok {
			if _, known := index[b]; !known {
				index[b] = len(out)
				out = append(out, b)
			}
		}
	}
	return out, index
}

// keyOf returns the digest of a dispatch and of all that it reads.
func keyOf(in air.Input, grid, group [3]uint32, args []any) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s %x %v %v %v\n", in.Kernel.Name, sha256.Sum256(in.IR), in.Constants, grid, group)
	for _, a := range args {
		switch a := a.(type) {
		case *buffer:
			fmt.Fprintf(h, "buffer %x\n", sha256.Sum256(a.bytes()))
		case inside:
			fmt.Fprintf(h, "buffer %x %d\n", sha256.Sum256(a.bytes()), a.offset)
		default:
			fmt.Fprintf(h, "%T %v\n", a, a)
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

type recording struct {
	dir   string
	mu    sync.Mutex
	seen  map[string]bool
	bytes int
}

func (c *recording) append(name string, data []byte) error {
	f, err := os.OpenFile(filepath.Join(c.dir, name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.Write(data)
	return err
}

func (c *recording) put(data []byte) (gpuPlace, error) {
	p := gpuPlace{c.bytes, len(data)}
	padded := append(append([]byte(nil), data...), make([]byte, (-len(data))&255)...)
	c.bytes += len(padded)
	return p, c.append("data.bin", padded)
}

// add records a dispatch. It reports false, so that the dispatch runs here too.
func (c *recording) add(r *rig, in air.Input, grid, group [3]uint32, args []any) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	x := gpuCase{Key: keyOf(in, grid, group, args), Kernel: in.Kernel.Name, Threads: group[0] * group[1] * group[2]}
	if c.seen[x.Key] {
		return false, nil
	}
	c.seen[x.Key] = true
	x.PTX = fmt.Sprintf("%x.ptx", []byte(nvptx.Key(r.compiler, in, nvptx.Launch{}))[:12])
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return false, err
	}
	if path := filepath.Join(c.dir, x.PTX); !exists(path) {
		text, err := nvptx.Compile(context.Background(), r.compiler, in, nvptx.Launch{})
		if err != nil {
			return false, err
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return false, err
		}
	}
	for i := range 3 {
		x.Groups[i] = (grid[i] + group[i] - 1) / group[i]
	}
	buffers, index := buffersOf(args)
	var places []gpuPlace
	for _, b := range buffers {
		p, err := c.put(b.bytes())
		if err != nil {
			return false, err
		}
		places = append(places, p)
	}
	x.Results = places
	bySlot, locals := map[int]any{}, map[int]local{}
	for i, a := range args {
		if n, ok := a.(local); ok {
			locals[len(locals)] = n
			continue
		}
		bySlot[i-len(locals)] = a
	}
	others := len(buffers)
	for i := range in.Kernel.Args {
		a := &in.Kernel.Args[i]
		switch {
		case a.Attribute != "":
			continue
		case a.Space == air.Threadgroup:
			x.Params = append(x.Params, gpuParam{Buffer: -1, Value: x.Dynamic})
			x.Dynamic += (uint32(locals[a.Index]) + 15) &^ 15
			continue
		}
		p := gpuParam{}
		var data []byte
		switch v := bySlot[a.Index].(type) {
		case *buffer:
			p.Buffer, p.Place = index[v], places[index[v]]
			x.Params = append(x.Params, p)
			continue
		case inside:
			p.Buffer, p.Place, p.Value = index[v.buffer], places[index[v.buffer]], uint32(v.offset)
			x.Params = append(x.Params, p)
			continue
		case uint32:
			data = bytesOf([]uint32{v})
		case []byte:
			data = v
		case nil:
			data = make([]byte, 16)
		}
		var err error
		if p.Place, err = c.put(data); err != nil {
			return false, err
		}
		p.Buffer = others
		others++
		x.Params = append(x.Params, p)
	}
	for _, v := range append(grid[:], group[:]...) {
		x.Params = append(x.Params, gpuParam{Buffer: -1, Value: v})
	}
	line, err := json.Marshal(x)
	if err != nil {
		return false, err
	}
	return false, c.append("cases.jsonl", append(line, '\n'))
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// results are what a GPU has computed of a recording.
type results struct {
	dir  string
	once sync.Once
	err  error
	data []byte
	by   map[string]gpuCase
}

// take gives the buffers the contents that they have after a dispatch on the GPU.
func (c *results) take(r *rig, in air.Input, grid, group [3]uint32, args []any) (bool, error) {
	c.once.Do(func() {
		var lines []byte
		if lines, c.err = os.ReadFile(filepath.Join(c.dir, "cases.jsonl")); c.err != nil {
			return
		}
		if c.data, c.err = os.ReadFile(filepath.Join(c.dir, "out.bin")); c.err != nil {
			return
		}
		c.by = map[string]gpuCase{}
		for len(lines) > 0 && c.err == nil {
			n := 0
			for n < len(lines) && lines[n] != '\n' {
				n++
			}
			var x gpuCase
			c.err = json.Unmarshal(lines[:n], &x)
			c.by[x.Key] = x
			lines = lines[min(n+1, len(lines)):]
		}
	})
	if c.err != nil {
		return true, c.err
	}
	x, ok := c.by[keyOf(in, grid, group, args)]
	if !ok {
		return true, fmt.Errorf("%s: the GPU did not run this dispatch", in.Kernel.Name)
	}
	buffers, _ := buffersOf(args)
	for i, b := range buffers {
		copy(b.bytes(), c.data[x.Results[i].Offset:][:x.Results[i].Bytes])
	}
	return true, nil
}

// TestGPUSizes dispatches threadgroups of 1, 31, 33 and 1023 threads, and ragged ones of two and
// three dimensions, in which every thread says where it is.
func TestGPUSizes(t *testing.T) {
	require.NotNil(t, elsewhereRun, "GPU_RECORD or GPU_RESULTS names a folder")
	TestPlaces(t)
	TestThreadgroupMemory(t)
}

// TestGPUKernels dispatches random cases of our library's kernels, from our source and from MLX's library, and
// compares what a GPU computes with what the executor does. The GPU approximates functions like exp where the kernel
// asks for fast math.
func TestGPUKernels(t *testing.T) {
	require.NotNil(t, elsewhereRun, "GPU_RECORD or GPU_RESULTS names a folder")
	for _, library := range []string{"", metallibs.Path(t, "0.32.4")} {
		r := newRig(t, Options{Workers: 1, Library: library})
		same, near := 0, 0
		taken := map[string]int{}
		require.NoError(t, conformance.Sample(6, 3, nil, func(c *conformance.Case) error {
			n, ok := c.Graph.Nodes[0].(*ir.Dispatch)
			total := 0
			for _, m := range c.Before {
				total += len(m)
			}
			if !ok || n.Indirect != nil || total > 24<<10 || taken[c.Function] >= 2 || strings.Contains(c.Function, "_gather_") {
				return nil
			}
			taken[c.Function]++
			after, err := c.Run(r.Device)
			if err != nil {
				return nil // MLX's kernels fail on some random arguments
			}
			in, err := r.libraries.Find(context.Background(), &c.Graph.Kernels[n.Kernel])
			if err != nil {
				return err
			}
			b := &bindings{memories: c.Graph.Memories, params: c.Params, places: make([]backend.Place, len(c.Graph.Memories))}
			buffers := make([]*buffer, len(c.Graph.Memories))
			for i, m := range c.Graph.Memories {
				if m.Alias == ir.NoMem {
					buffers[i] = r.buffer(append([]byte(nil), c.Before[i]...))
					b.places[i] = backend.At(buffers[i])
				}
			}
			fillAliases(c.Graph.Memories, b.places)
			var grid, group [3]uint32
			for i, e := range n.Grid {
				v, size := uint32(e.Eval(c.Params)), uint32(n.Threadgroup[i])
				group[i] = size
				if grid[i] = v; n.GridKind != ir.Threads {
					grid[i] = v * size
				}
			}
			if grid[0] == 0 || grid[1] == 0 || grid[2] == 0 {
				return nil
			}
			args := make([]any, slots)
			for i := range n.Bindings {
				a := &n.Bindings[i]
				switch a.Kind {
				case ir.BindView:
					p, _ := b.view(&a.View)
					args[a.Slot] = inside{p.Buffer.(*buffer), p.Offset}
				case ir.BindBytes:
					args[a.Slot] = a.Bytes
				case ir.BindScalar:
					v := uint64(a.Expr.Eval(c.Params))
					if a.Type == ir.F32 {
						v = uint64(c.Params[a.Expr.Terms()[0].Param])
					}
					args[a.Slot] = binary.LittleEndian.AppendUint64(nil, v)
				}
			}
			for _, m := range n.ThreadgroupMemory {
				args = append(args, local(m.Bytes))
			}
			done, err := elsewhereRun(r, in, grid, group, args)
			if err != nil || !done {
				return err
			}
			for i, m := range buffers {
				if m == nil {
					continue
				}
				switch d := distance(after[i], m.bytes()); {
				case d == 0:
					same++
				case d < 2e-3:
					near++
				default:
					t.Errorf("%v: memory %d differs by %g of its greatest number", c, i, d)
				}
			}
			return nil
		}))
		t.Logf("%d kernels: %d memories are the same, %d within 0.002 of their greatest number", len(taken), same, near)
	}
}

// distance returns the maximum difference of floats relative to their maximum, read as 32 or as 16 bits: whichever is
// less.
func distance(want, got []byte) float64 {
	if bytes.Equal(want, got) {
		return 0
	}
	of := func(size int, number func([]byte) float64) float64 {
		most, differ := 0.0, 0.0
		for i := 0; i+size <= len(want); i += size {
			a, b := number(want[i:]), number(got[i:])
			if bytes.Equal(want[i:i+size], got[i:i+size]) || a != a && b != b {
				if math.Abs(a) < 1e6 {
					most = max(most, math.Abs(a))
				}
				continue
			}
			if a != a || b != b {
				return math.Inf(1)
			}
			most, differ = max(most, math.Abs(a)), max(differ, math.Abs(a-b))
		}
		if differ == 0 {
			return 0
		}
		return differ / max(most, 1e-30)
	}
	return min(of(4, func(b []byte) float64 { return float64(math.Float32frombits(binary.LittleEndian.Uint32(b))) }),
		of(2, func(b []byte) float64 { return term.F16Value(binary.LittleEndian.Uint16(b)) }))
}
