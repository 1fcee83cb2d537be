//go:build linux

package metal_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/metal"
	"github.com/mlxc/mlxc/internal/objc"
	"github.com/mlxc/mlxc/internal/testing/fakemetal"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/record"
	"github.com/mlxc/mlxc/replay"
)

// rig is an opened device of the stand-in for Metal, with what tests look at.
type rig struct {
	*metal.Device
	library *fakemetal.Library
	gpu     *fakemetal.Metal
	log     *words
	t       testing.TB
}

// words is the log of a device.
type words struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (w *words) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(p)
}

// String returns what was written since String was last called.
func (w *words) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	defer w.b.Reset()
	return w.b.String()
}

// gpu serves a GPU with options o and opens a device with options with; both are closed when the test ends.
func gpu(t testing.TB, o fakemetal.Options, with metal.Options) *rig {
	t.Helper()
	r := &rig{library: fakemetal.Build(t), log: &words{}, t: t}
	require.NoError(t, objc.Load(r.library.Path))
	r.gpu = r.library.Serve(t, o)
	if with.Log == nil {
		with.Log = r.log
	}
	r.Device = open(t, with)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	return r
}

// labels returns the labels of a class, "MTLBuffer", or of debug groups, "group", in the order they were set.
func (r *rig) labels(of string) (out []string) {
	for _, l := range r.library.Labels() {
		if text, ok := strings.CutPrefix(l, of+" "); ok {
			out = append(out, text)
		}
	}
	return out
}

func (r *rig) queue() backend.Queue {
	q, err := r.NewQueue()
	require.NoError(r.t, err)
	return q
}

// buffer returns a buffer with these floats.
func (r *rig) buffer(v ...float32) backend.Buffer {
	b, err := r.Alloc(backend.BufferSpec{Size: int64(4 * len(v))})
	require.NoError(r.t, err)
	copy(b.Bytes(), floats(v...))
	return b
}

func floats(v ...float32) []byte {
	b := make([]byte, 4*len(v))
	for i := range v {
		binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(v[i]))
	}
	return b
}

func numbers(b []byte) []float32 {
	v := make([]float32, len(b)/4)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return v
}

// add records y = x + x + … + x, with n additions in each of so many command buffers, and one in another.
func add(s *record.Session, buffers, n int) (x, y record.Tensor) {
	x, y = s.Input("x", ir.F32, 4), s.Output("y", ir.F32, 4)
	last := x
	for range buffers {
		s.Group("part")
		for range n {
			last = s.Add(last, x, record.Label("step"))
		}
		s.EndGroup()
		s.Commit("some")
	}
	s.Add(last, x, record.Into(y))
	s.Commit("last")
	return x, y
}

// adding returns the graph that add records: y is x times 2 + buffers·n.
func adding(t testing.TB, buffers, n int) *ir.Graph {
	s := record.New("adding")
	add(s, buffers, n)
	g, err := s.Graph()
	require.NoError(t, err)
	return g
}

// replaying opens a graph on a device until the test ends.
func (r *rig) replaying(g *ir.Graph) *replay.Graph {
	s, err := replay.Open(r.Device, &ir.Module{Graphs: []*ir.Graph{g}}, replay.Options{})
	require.NoError(r.t, err)
	r.t.Cleanup(func() { require.NoError(r.t, s.Close()) })
	p, err := s.Graph(r.t.Context(), "")
	require.NoError(r.t, err)
	return p
}

// run replays a graph of adding with an x of ones, and checks that y is want.
func (r *rig) run(p *replay.Graph, want float32) {
	r.t.Helper()
	f, err := p.NewFrame(r.t.Context())
	require.NoError(r.t, err)
	require.NoError(r.t, f.SetInput("x", floats(1, 1, 1, 1)))
	_, err = f.Run(r.t.Context())
	require.NoError(r.t, err)
	y, err := f.Output("y")
	require.NoError(r.t, err)
	require.Equal(r.t, []float32{want, want, want, want}, numbers(y))
}

// unset sets a variable of C's environment to 0, and again when the test ends.
func unset(t *testing.T, name string) {
	require.NoError(t, objc.Setenv(name, "0"))
	t.Cleanup(func() { require.NoError(t, objc.Setenv(name, "0")) })
}

// text reads a file.
func text(t *testing.T, path string) string {
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(b)
}
