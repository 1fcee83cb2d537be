package mlxreplay

import (
	"context"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/cmd/internal/cli"
	"github.com/mlxc/mlxc/cmd/internal/part"
	"github.com/mlxc/mlxc/internal/collections/interval"
	"github.com/mlxc/mlxc/internal/testing/recorded"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/optimize"
	"github.com/mlxc/mlxc/passes"
)

// wrong is a device that does one command wrongly: four bytes of what it writes become something else.
type wrong struct {
	backend.Device
	id ir.ID
}

func (w *wrong) Compile(ctx context.Context, p *backend.Program) (backend.Executable, error) {
	q := *p
	g := *p.Graph
	q.Graph, g.Nodes = &g, nil
	for _, n := range p.Graph.Nodes {
		g.Nodes = append(g.Nodes, n)
		if c, ok := n.(ir.Command); ok && c.Num() == w.id {
			if v, ok := firstWrite(p.Graph, c); ok {
				g.Nodes = append(g.Nodes, &ir.Fill{ID: 1 << 30, Dst: v, Value: 0x42})
			}
		}
	}
	return w.Device.Compile(ctx, &q)
}

// firstWrite returns four bytes that a command surely writes.
func firstWrite(g *ir.Graph, c ir.Command) (ir.View, bool) {
	four := func(m ir.MemID, off ir.Affine) (ir.View, bool) {
		return ir.View{Mem: m, Off: off, Len: ir.Const(4)}, true
	}
	switch c := c.(type) {
	case *ir.Copy:
		return four(c.Dst.Mem, c.Dst.Off)
	case *ir.Fill:
		return four(c.Dst.Mem, c.Dst.Off)
	case *ir.Dispatch:
		if c.Effects.Known() {
			for _, w := range c.Effects.Writes {
				if w.Must && w.Run.IsConst() && w.Run.Const >= 4 {
					return four(w.Mem, w.Off)
				}
			}
		}
	}
	return ir.View{}, false
}

// The first command that differs is the one that a device does wrongly, whichever it is, in graphs whose scratch memory is used
// again and again. Where what it does is never read, nothing differs.
func TestBisect(t *testing.T) {
	env := &cli.Env{Context: t.Context(), Stdout: io.Discard, Stderr: io.Discard}
	seen := 0
	for _, name := range []string{"llama_layer_decode", "llama_layer_prefill", "norm_residual", "arena_reuse", "copies_and_fills", "edges"} {
		file := name
		if name == "edges" {
			file = "llama_layer_decode"
		}
		read := recorded.Graph(t, file)
		switch name {
		case "copies_and_fills":
			read.SetOrdering(ir.Serial) // nothing else orders it
		case "edges":
			p, err := passes.ParsePipeline("annotate,edges")
			require.NoError(t, err)
			_, err = passes.Run(t.Context(), read, p, passes.Options{})
			require.NoError(t, err)
			require.Equal(t, ir.ByEdges, read.Ordering)
		}
		g := optimize.Annotated(t.Context(), read)
		m := &ir.Module{Graphs: []*ir.Graph{g}}
		commands := part.Commands(g)
		for _, c := range sample.Of(t, name, commands, 4) {
			if _, ok := firstWrite(g, c); !ok {
				continue
			}
			cmd := &compareCmd{Seed: 1, Replays: 1, Tolerance: 1e-3, deviceFlags: deviceFlags{MaxWork: 1 << 40}}
			sides := [2]*side{{device: cpu.New(1), module: m}, {device: &wrong{cpu.New(1), c.Num()}, module: m}}
			differs := false
			var first map[string][]byte
			for i, x := range sides {
				require.NoError(t, cmd.replay(env, x, x.device), name)
				defer x.close()
				if i == 0 {
					first = x.contents
				}
				for k := range g.Memories {
					if v := &g.Memories[k]; v.Kind == ir.Output || v.Kind == ir.State {
						differs = differs || !differ(v.DType, first[v.Name], x.contents[v.Name], 1e-3).OK
					}
				}
			}
			f, why, err := cmd.bisect(env, sides)
			require.NoError(t, err, name)
			if f == nil {
				assert.False(t, differs, "%s: %s: %s", name, g.Describe(c), why)
				continue
			}
			seen++
			assert.Equal(t, c.Num(), f.Command, "%s: found %s, and %s is done wrongly", name, f.What, g.Describe(c))
			assert.Zero(t, f.Reads, "what it reads is the same")
			assert.NotEmpty(t, f.Writes)
			assert.LessOrEqual(t, f.Replays, 3+bits(len(commands)))
		}
	}
	t.Logf("%d commands that were done wrongly were found", seen)
	assert.Greater(t, seen, 5)
}

// A difference that is small beside the max of all that a command writes, and large beside what a later command leaves of it, is
// found all the same, and no device is said to compute something else each time.
func TestBisectOfWhatIsLeft(t *testing.T) {
	env := &cli.Env{Context: t.Context(), Stdout: io.Discard, Stderr: io.Discard}
	one := []byte{0, 0, 0x80, 0x3f, 0xca, 0xf2, 0x49, 0x71} // 1, 10^30
	g := &ir.Graph{Name: "left", Ordering: ir.Serial, Memories: []ir.Memory{
		{Name: "w", Kind: ir.Weight, Size: 8, DType: ir.F32, Shape: []int64{2}, Alias: ir.NoMem, Init: ir.Init{Kind: ir.InitBlob, Blob: ir.NewBlob(one)}},
		{Name: "y", Kind: ir.Output, Size: 8, DType: ir.F32, Shape: []int64{2}, Alias: ir.NoMem},
		{Name: "z", Kind: ir.Output, Size: 8, DType: ir.F32, Shape: []int64{2}, Alias: ir.NoMem},
	}}
	view := func(m ir.MemID, off, length int64) ir.View {
		return ir.View{Mem: m, Off: ir.Const(off), Len: ir.Const(length)}
	}
	g.Nodes = []ir.Node{&ir.Fill{ID: 7, Dst: view(2, 0, 8)}, &ir.Copy{ID: 8, Src: view(0, 0, 8), Dst: view(1, 0, 8)}, &ir.Fill{ID: 9, Dst: view(1, 4, 4)}, &ir.Fill{ID: 10, Dst: view(2, 0, 4)}}
	require.NoError(t, g.Check())
	f, why := bisected(t, env, g, 8)
	require.NotNil(t, f, why)
	assert.Equal(t, ir.ID(8), f.Command)
	assert.Contains(t, why, "beside the max of what later commands leave")

	// What a fill writes is of the type of its memory.
	f, why = bisected(t, env, g, 10)
	require.NotNil(t, f, why)
	assert.Equal(t, ir.ID(10), f.Command)
	assert.Equal(t, "f32", f.Writes[0].Type)
	assert.Zero(t, f.Reads)

	// Another command may read what differs by less, and make more of it.
	g.Nodes = []ir.Node{&ir.Copy{ID: 8, Src: view(0, 0, 8), Dst: view(1, 0, 8)}, &ir.Copy{ID: 9, Src: view(1, 0, 4), Dst: view(2, 0, 4)}, &ir.Fill{ID: 10, Dst: view(2, 4, 4)}}
	require.NoError(t, g.Check())
	f, why = bisected(t, env, g, 8)
	require.NotNil(t, f, why)
	assert.Equal(t, ir.ID(9), f.Command)
	assert.InEpsilon(t, (0x1p5*1.5178909-1)/1e30, f.Reads, 1e-3, "48.6, the float of the byte 0x42, in the place of 1, beside 10^30")
}

// bisected compares the CPU with one that does a command wrongly.
func bisected(t *testing.T, env *cli.Env, g *ir.Graph, id ir.ID) (*found, string) {
	m := &ir.Module{Graphs: []*ir.Graph{g}}
	cmd := &compareCmd{Seed: 1, Replays: 1, Tolerance: 1e-3, deviceFlags: deviceFlags{MaxWork: 1 << 40}}
	sides := [2]*side{{device: cpu.New(1), module: m}, {device: &wrong{cpu.New(1), id}, module: m}}
	for _, x := range sides {
		require.NoError(t, cmd.replay(env, x, x.device))
		defer x.close()
	}
	f, why, err := cmd.bisect(env, sides)
	require.NoError(t, err)
	return f, why
}

// Of elements of which a later command has overwritten a part nothing is compared.
func TestCutElements(t *testing.T) {
	g := &ir.Graph{Memories: []ir.Memory{{Name: "m", Kind: ir.State, Size: 12}}}
	b := &bisection{c: &compareCmd{}, env: &cli.Env{Context: t.Context()}, graph: g}
	o := &interval.Partition[int32]{}
	o.Set(2, 12, 0)
	x := make([]byte, 12)
	for at, bad := range map[int]int{2: -1, 3: -1, 4: 0, 11: 0} {
		y := make([]byte, 12)
		y[at] = 1
		p := &probe{bad: -1, writes: []written{{t: ir.U32}}, owner: map[ir.MemID]*interval.Partition[int32]{0: o}, differ: map[int32]*difference{}}
		p.contents = [2]map[string][]byte{{"m": x}, {"m": y}}
		require.NoError(t, b.judge(p))
		assert.Equal(t, bad, p.bad, "byte %d", at)
		assert.Equal(t, 2, p.differ[0].Elements)
	}
}

// In pairs it is the second side's time over the first's that is said.
func TestPairs(t *testing.T) {
	env := &cli.Env{Context: t.Context(), Stdout: io.Discard, Stderr: io.Discard}
	cmd := &compareCmd{Seed: 1, Replays: 1, Pairs: 3, deviceFlags: deviceFlags{MaxWork: 1 << 40}}
	var sides [2]*side
	for i, size := range []int64{16, 1 << 24} {
		g := &ir.Graph{Name: "g", Memories: []ir.Memory{{Name: "y", Kind: ir.Output, Size: size, Alias: ir.NoMem}}, Nodes: []ir.Node{&ir.Fill{Dst: ir.View{Len: ir.Const(size)}}}}
		sides[i] = &side{device: cpu.New(1), module: &ir.Module{Graphs: []*ir.Graph{g}}}
		require.NoError(t, cmd.replay(env, sides[i], sides[i].device))
		defer sides[i].close()
	}
	p, err := cmd.inPairs(env, sides)
	require.NoError(t, err)
	assert.Equal(t, 3, p.Pairs)
	assert.Greater(t, p.Ratio.Median, 5.0)
	assert.Equal(t, [2]int{3, 0}, p.Faster)
	assert.Less(t, p.Took[0].Median, p.Took[1].Median)
	assert.LessOrEqual(t, p.Ratio.Min, p.Quartiles[0])
}

// bits is how often n can be halved.
func bits(n int) (k int) {
	for ; n > 1; n = (n + 1) / 2 {
		k++
	}
	return k
}

// A region that says the same bytes very often has them once.
func TestRunsOfRepeatedBytes(t *testing.T) {
	r := &ir.Region{Off: ir.Const(8), Run: ir.Const(4), Dims: []ir.Dim{{Count: ir.Const(1 << 40)}, {Count: ir.Const(3), Stride: 16}}}
	var got []int64
	(&bisection{}).runs(r, 100, func(lo, end int64) { got = append(got, lo, end) })
	require.Equal(t, []int64{108, 112, 124, 128, 140, 144}, got)
}
