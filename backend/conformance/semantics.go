package conformance

import (
	"context"
	"encoding/binary"
	"maps"
	"math"

	"github.com/mlxc/mlxc/backend/conformance/internal/require"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/replay"
)

// semantics returns the tests of how a device executes graphs. Each is a program
// of a few commands whose result is computed here.
func semantics() map[string]func(*T) {
	all := map[string]func(*T){}
	for _, group := range []map[string]func(*T){orderTests, paramTests, stateTests, sessionTests, errorTests, gridTests, indirectTests, burstTests, queueTests} {
		maps.Copy(all, group)
	}
	return all
}

// program builds a graph of builtin kernels.
type program struct {
	*ir.Builder
	kernels map[string]ir.KernelID
}

func newProgram(name string) *program {
	return &program{ir.NewBuilder(name), map[string]ir.KernelID{}}
}

func (p *program) memory(name string, kind ir.MemKind, floats int64) ir.MemID {
	return p.Memory(ir.Memory{Name: name, Kind: kind, Size: 4 * floats})
}

func (p *program) state(name string, floats int64, fill float32) ir.MemID {
	return p.Memory(ir.Memory{Name: name, Kind: ir.State, Size: 4 * floats, Init: ir.FillU32(math.Float32bits(fill))})
}

// kernel returns the kernel of a library function.
func (p *program) kernel(function string) ir.KernelID {
	id, ok := p.kernels[function]
	if !ok {
		id = p.Kernel(builtin(function))
		p.kernels[function] = id
	}
	return id
}

// dispatch appends a dispatch of threads.
func (p *program) dispatch(function string, threads [3]ir.Extent, group [3]uint32, args ...ir.Binding) *ir.Dispatch {
	return p.Dispatch(ir.Dispatch{Kernel: p.kernel(function), GridKind: ir.Threads, Grid: threads, Threadgroup: group, Bindings: args})
}

// floats returns the view of n floats of m from float at on.
func floats(m ir.MemID, at, n int64) ir.View { return ir.ViewOf(m, 4*at, 4*n) }

// binary appends c = a OP b for views of n floats.
func (p *program) binary(op string, c, a, b ir.View, n ir.Affine) *ir.Dispatch {
	return p.dispatch("vv_"+op+"float32", [3]ir.Extent{{Num: n, Div: 1}, ir.Ext(1), ir.Ext(1)}, [3]uint32{8, 1, 1}, ir.BufferArg(0, a), ir.BufferArg(1, b), ir.BufferArg(2, c))
}

// add appends c = a + b and a barrier, for whole memories of n floats.
func (p *program) add(c, a, b ir.MemID, n int64) {
	p.binary("Add", floats(c, 0, n), floats(a, 0, n), floats(b, 0, n), ir.Const(n))
	p.Barrier()
}

// mul appends c = a · b and a barrier.
func (p *program) mul(c, a, b ir.MemID, n int64) {
	p.binary("Multiply", floats(c, 0, n), floats(a, 0, n), floats(b, 0, n), ir.Const(n))
	p.Barrier()
}

// rms appends y = the RMS norm of each row of x, times w, for rows of the n that the memories hold, of k floats each, by
// threadgroups of so many threads. Its argument 3 is ε, here 0.
func (p *program) rms(y, x, w ir.MemID, rows ir.Extent, n, k int64, threads uint32) *ir.Dispatch {
	return p.Dispatch(ir.Dispatch{
		Kernel: p.kernel("rmsfloat32"), Grid: [3]ir.Extent{rows, ir.Ext(1), ir.Ext(1)}, Threadgroup: [3]uint32{threads, 1, 1},
		Bindings: []ir.Binding{
			ir.BufferArg(0, floats(x, 0, n*k)), ir.BufferArg(1, floats(w, 0, k)), ir.BufferArg(2, floats(y, 0, n*k)),
			ir.BytesArg(3, ir.ValueBytes(float32(0))), ir.BytesArg(4, ir.ValueBytes(uint32(k))), ir.BytesArg(5, ir.ValueBytes(uint32(1))),
		},
	})
}

func param(p ir.ParamID, coeff int64) ir.Affine {
	return ir.Linear(0, ir.Term{Param: p, Coeff: coeff})
}

// graph finishes the program.
func (t *T) graph(p *program) *ir.Graph {
	t.Helper()
	g, err := p.Graph()
	require.NoError(t, err)
	return g
}

// open opens a session on a module of the given graphs.
func (t *T) open(o replay.Options, graphs ...*ir.Graph) *replay.Instance {
	t.Helper()
	s, err := replay.Open(t.Device, &ir.Module{Graphs: graphs}, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// plan opens a session on the program alone and plans it.
func (t *T) plan(p *program) *replay.Graph {
	t.Helper()
	return t.planned(t.open(replay.Options{}, t.graph(p)), "")
}

func (t *T) planned(s *replay.Instance, name string) *replay.Graph {
	t.Helper()
	g, err := s.Graph(context.Background(), name)
	require.NoError(t, err)
	return g
}

// run replays g with the given params, by name and value in turn.
func (t *T) run(g *replay.Graph, params ...any) replay.Timing {
	t.Helper()
	for i := 0; i < len(params); i += 2 {
		require.NoError(t, g.SetParam(params[i].(string), float64(params[i+1].(int))))
	}
	timing, err := g.Run(context.Background())
	require.NoError(t, err)
	return timing
}

// bytes returns the data of an output or state, and fails the test if there is an error.
func (t *T) bytes(data []byte, err error) []byte {
	t.Helper()
	require.NoError(t, err)
	return data
}

// putInput writes floats to the begin of an input.
func (t *T) putInput(g *replay.Graph, name string, values ...float32) {
	t.Helper()
	data := make([]byte, 4*len(values))
	put(data, values...)
	require.NoError(t, g.SetInput(name, data))
}

// fillInput writes v to all of an input.
func (t *T) fillInput(g *replay.Graph, name string, v float32) {
	t.Helper()
	n, _ := g.Size(name, ir.Input)
	data := make([]byte, n)
	fill(data, v)
	require.NoError(t, g.SetInput(name, data))
}

// fillState writes v to all of a state.
func (t *T) fillState(g *replay.Graph, name string, v float32) {
	t.Helper()
	n, _ := g.Size(name, ir.State)
	data := make([]byte, n)
	fill(data, v)
	require.NoError(t, g.SetState(name, data))
}

// putState writes floats to the begin of a state.
func (t *T) putState(g *replay.Graph, name string, values ...float32) {
	t.Helper()
	data := make([]byte, 4*len(values))
	put(data, values...)
	require.NoError(t, g.SetState(name, data))
}

// put writes floats to the begin of data.
func put(data []byte, values ...float32) {
	for i, v := range values {
		binary.LittleEndian.PutUint32(data[4*i:], math.Float32bits(v))
	}
}

// fill writes v to all of data.
func fill(data []byte, v float32) {
	for i := 0; i+4 <= len(data); i += 4 {
		put(data[i:], v)
	}
}

// get returns data as floats.
func get(data []byte) []float32 {
	out := make([]float32, len(data)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return out
}

// counting returns from, from+1, …
func counting(from float32, n int) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = from + float32(i)
	}
	return out
}

func repeated(v float32, n int) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = v
	}
	return out
}
