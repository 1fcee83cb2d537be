package conformance

import (
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/replay"
)

// refused compiles a program that no device runs and returns the error. The
// program's first command fills %s with zeros: %s must keep its ones.
func refused(t *T, p *program, buffers func(g *ir.Graph) []backend.Buffer) error {
	return refusedGraph(t, t.graph(p), buffers)
}

func refusedGraph(t *T, g *ir.Graph, buffers func(g *ir.Graph) []backend.Buffer) error {
	list := buffers(g)
	s, _ := g.MemoryNamed("s")
	if list[s] != nil {
		fill(list[s].Bytes(), 1)
	}
	e, err := t.Device.Compile(&backend.Program{Graph: g, Buffers: list})
	if err == nil {
		require.NoError(t, e.Close())
	}
	if list[s] != nil {
		assert.Equal(t, repeated(1, len(list[s].Bytes())/4), get(list[s].Bytes()), "something ran")
	}
	return err
}

// exact allocates a buffer for every root memory.
func (t *T) exact(g *ir.Graph) []backend.Buffer {
	list := make([]backend.Buffer, len(g.Memories))
	for i, m := range g.Memories {
		if m.Alias == ir.NoMem {
			b, err := t.Device.Alloc(m.Size)
			require.NoError(t, err)
			list[i] = b
		}
	}
	return list
}

// wrong starts a program whose first command is right.
func wrong() (p *program, s ir.MemID) {
	p = newProgram("wrong")
	s = p.state("s", 16, 0)
	p.Fill(ir.ViewOf(s, 0, 64), 0, "")
	p.Barrier()
	return p, s
}

// errorTests: what cannot run is an error of Compile, which names the command,
// before anything runs.
var errorTests = map[string]func(*T){
	"error/unknown_kernel": func(t *T) {
		p, s := wrong()
		k := ir.Kernel{Name: "k", Function: "no_such_kernel", Args: []ir.Arg{{Slot: 0, Name: "x", Kind: ir.DeviceArg, Access: ir.WriteArg, Type: ir.F32}}}
		p.Dispatch(ir.Dispatch{Kernel: p.Kernel(k), Grid: [3]ir.Extent{ir.Ext(1), ir.Ext(1), ir.Ext(1)}, Threadgroup: [3]uint32{1, 1, 1}, Bindings: []ir.Binding{ir.BufferArg(0, floats(s, 0, 16))}})
		err := refused(t, p, t.exact)
		assert.ErrorContains(t, err, "#1")
		assert.ErrorContains(t, err, "no_such_kernel")
	},

	"error/foreign_library": func(t *T) {
		p, s := wrong()
		k := builtin("vv_Addfloat32")
		k.Library = ir.Library{Kind: ir.Metallib, Path: "user.metallib"}
		p.Dispatch(ir.Dispatch{Kernel: p.Kernel(k), GridKind: ir.Threads, Grid: [3]ir.Extent{ir.Ext(4), ir.Ext(1), ir.Ext(1)}, Threadgroup: [3]uint32{4, 1, 1},
			Bindings: []ir.Binding{ir.BufferArg(0, floats(s, 0, 4)), ir.BufferArg(1, floats(s, 4, 4)), ir.BufferArg(2, floats(s, 8, 4))}})
		err := refused(t, p, t.exact)
		assert.ErrorContains(t, err, "#1")
		assert.ErrorContains(t, err, "user.metallib")
	},

	// Check does not say which arguments a kernel with function constants needs, so
	// devices look for themselves. Here one is taken away behind Check's back.
	"error/unbound_argument": func(t *T) {
		p, s := wrong()
		d := p.binary("Add", floats(s, 0, 4), floats(s, 4, 4), floats(s, 8, 4), ir.Const(4))
		g := t.graph(p)
		d.Bindings = append(d.Bindings[:1:1], d.Bindings[2])
		err := refusedGraph(t, g, t.exact)
		assert.ErrorContains(t, err, "#1")
		assert.ErrorContains(t, err, "argument 1")
	},

	"error/misaligned_view": func(t *T) {
		p, s := wrong()
		p.binary("Add", ir.ViewOf(s, 0, 16), ir.ViewOf(s, 18, 16), ir.ViewOf(s, 40, 16), ir.Const(4))
		err := refused(t, p, t.exact)
		assert.ErrorContains(t, err, "#1")
	},

	"error/misaligned_for_some_param": func(t *T) {
		p, s := wrong()
		n := p.Param("n", 0, 4)
		p.binary("Add", ir.ViewOf(s, 0, 16), ir.View{Mem: s, Off: param(n, 2).AddConst(16), Len: ir.Const(16)}, ir.ViewOf(s, 40, 16), ir.Const(4))
		err := refused(t, p, t.exact)
		assert.ErrorContains(t, err, "#1")
	},

	"error/misaligned_alias": func(t *T) {
		p, s := wrong()
		p.binary("Add", ir.ViewOf(s, 0, 16), ir.ViewOf(p.Alias("odd", s, 18, 20), 0, 16), ir.ViewOf(s, 40, 16), ir.Const(4))
		err := refused(t, p, t.exact)
		assert.ErrorContains(t, err, "#1")
	},

	"error/missing_buffer": func(t *T) {
		p, s := wrong()
		x := p.memory("x", ir.Input, 4)
		p.Copy(floats(s, 0, 4), floats(x, 0, 4), "")
		err := refused(t, p, func(g *ir.Graph) []backend.Buffer { return append(t.exact(g)[:1:1], nil) })
		assert.ErrorContains(t, err, "%x")
	},

	// A memory that no command binds needs none.
	"error/unbound_memory": func(t *T) {
		p, _ := wrong()
		p.memory("x", ir.Input, 4)
		g, err := p.Graph()
		require.NoError(t, err)
		x, err := t.Device.Compile(&backend.Program{Graph: g, Buffers: append(t.exact(g)[:1:1], nil)})
		require.NoError(t, err)
		require.NoError(t, x.Close())
	},

	"error/short_buffer": func(t *T) {
		p, _ := wrong()
		p.memory("x", ir.Input, 100)
		err := refused(t, p, func(g *ir.Graph) []backend.Buffer {
			short, err := t.Device.Alloc(399)
			require.NoError(t, err)
			return append(t.exact(g)[:1:1], short)
		})
		assert.ErrorContains(t, err, "%x")
		assert.ErrorContains(t, err, "400")
		assert.ErrorContains(t, err, "399")
	},

	// The same errors reach the user of a session when a graph is planned.
	"error/through_replay": func(t *T) {
		p, s := wrong()
		// What replay itself knows to be wrong never reaches the device; a library
		// that the device does not have is the device's to refuse.
		k := builtin("vv_Addfloat32")
		k.Library = ir.Library{Kind: ir.SourceFile, Path: "elsewhere.metal"}
		p.Dispatch(ir.Dispatch{Kernel: p.Kernel(k), GridKind: ir.Threads, Grid: [3]ir.Extent{ir.Ext(4), ir.Ext(1), ir.Ext(1)}, Threadgroup: [3]uint32{4, 1, 1},
			Bindings: []ir.Binding{ir.BufferArg(0, floats(s, 0, 4)), ir.BufferArg(1, floats(s, 4, 4)), ir.BufferArg(2, floats(s, 8, 4))}})
		_, err := t.open(replay.Options{}, t.graph(p)).Graph("")
		assert.ErrorContains(t, err, "graph wrong")
		assert.ErrorContains(t, err, "elsewhere.metal")
	},

	"error/allocation": func(t *T) {
		_, err := t.Device.Alloc(-1)
		assert.Error(t, err)
		_, err = t.Device.Alloc(1 << 60)
		assert.Error(t, err)
	},
}
