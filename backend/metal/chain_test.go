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
	"github.com/mlxc/mlxc/internal/testkit/fakemetal"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/record"
	"github.com/mlxc/mlxc/replay"
)

// rig is a GPU that a test has, with a device of it.
type rig struct {
	*metal.Device
	library *fakemetal.Library
	gpu     *fakemetal.Metal
	log     *words
	t       testing.TB
}

// words is what a device tells.
type words struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (w *words) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(p)
}

// String is what was told since it was last asked.
func (w *words) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	defer w.b.Reset()
	return w.b.String()
}

// gpu has a GPU and a device of it until the test ends. The environment says nothing unless the test has
// set it.
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

// labels are those that begin with a word.
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

// buffer returns one with these numbers.
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

// add records y = x + x + … + x in so many command buffers, with n terms each.
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

// adding is the graph of add: its result is x times 2 + buffers·n.
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

// run replays a graph of add for an x of ones, and checks the result.
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

// unset has the environment of C without a variable until the test ends, as it was before.
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
