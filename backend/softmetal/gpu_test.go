//go:build gpu && unix

package softmetal

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/air"
)

// The tests that run single kernels can run them on an NVIDIA GPU, on another machine. With
// `GPU_RECORD=FOLDER go test -tags gpu -run …` they write to the folder what is dispatched, with the
// kernels as PTX; there, `python testdata/gpu.py FOLDER` runs that and adds what the memories hold
// afterwards; with `GPU_RESULTS=FOLDER go test -tags gpu -run …` here, that is what the tests see.
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

// gpuParam is a parameter of the entry: memory, if it has a length, or a number.
type gpuParam struct {
	Place  gpuPlace
	Buffer int // memory with the same number is the same; -1: a number
	Value  uint32
}

type gpuPlace struct{ Offset, Bytes int }

// buffersOf returns the buffers among arguments, each once.
func buffersOf(args []any) (out []*buffer, index map[*buffer]int) {
	index = map[*buffer]int{}
	for _, a := range args {
		if b, ok := a.(*buffer); ok {
			if _, known := index[b]; !known {
				index[b] = len(out)
				out = append(out, b)
			}
		}
	}
	return out, index
}

// keyOf is the digest of a dispatch and of all that it reads.
func keyOf(in air.Input, grid, group [3]uint32, args []any) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s %x %v %v %v\n", in.Kernel.Name, sha256.Sum256(in.IR), in.Constants, grid, group)
	for _, a := range args {
		switch a := a.(type) {
		case *buffer:
			fmt.Fprintf(h, "buffer %x\n", sha256.Sum256(a.bytes()))
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

// add writes a dispatch, which then runs here as ever.
func (c *recording) add(r *rig, in air.Input, grid, group [3]uint32, args []any) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	x := gpuCase{Key: keyOf(in, grid, group, args), Kernel: in.Kernel.Name, Threads: group[0] * group[1] * group[2]}
	if c.seen[x.Key] {
		return false, nil
	}
	c.seen[x.Key] = true
	x.PTX = fmt.Sprintf("%x.ptx", []byte(air.PTXKey(r.compiler, in))[:12])
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return false, err
	}
	if path := filepath.Join(c.dir, x.PTX); !exists(path) {
		text, err := air.PTX(context.Background(), r.compiler, in)
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

// results are what a GPU made of a recording.
type results struct {
	dir  string
	once sync.Once
	err  error
	data []byte
	by   map[string]gpuCase
}

// take gives the buffers what they hold after a dispatch.
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
