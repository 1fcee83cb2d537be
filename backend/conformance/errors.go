package conformance

import (
	"context"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/conformance/internal/require"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/replay"
)

// refused compiles a program that every device must refuse, and returns the error. The first
// command would fill state %s, which holds ones, with zeros: %s must keep the ones.
func refused(t *T, p *program, places func(g *ir.Graph) []backend.Place) error {
	return refusedGraph(t, t.graph(p), places)
}

func refusedGraph(t *T, g *ir.Graph, places func(g *ir.Graph) []backend.Place) error {
	list := places(g)
	s, _ := g.MemoryNamed("s")
	ones := floatBytes(repeated(1, int(g.Memories[s].Size/4)))
	if list[s].Buffer != nil {
		t.upload(list[s], ones)
	}
	e, err := t.Device.Compile(context.Background(), &backend.Program{Graph: g, Places: list})
	if err == nil {
		require.NoError(t, e.Close())
	}
	if list[s].Buffer != nil {
		require.Equal(t, ones, t.download(list[s], int64(len(ones))), "something ran")
	}
	return err
}

// exact allocates a buffer of exactly its size for every root memory.
func (t *T) exact(g *ir.Graph) []backend.Place {
	list := make([]backend.Place, len(g.Memories))
	for i, m := range g.Memories {
		if m.Alias == ir.NoMem {
			list[i] = backend.At(t.alloc(m.Size))
		}
	}
	return list
}

// wrong returns a program with one valid command, to which tests add an invalid one.
func wrong() (p *program, s ir.MemID) {
	p = newProgram("wrong")
	s = p.state("s", 16, 0)
	p.Fill(ir.ViewOf(s, 0, 64), 0, "")
	p.Barrier()
	return p, s
}

// errorTests test that Compile refuses a program that cannot run, before anything runs, and that
// its error names the command.
var errorTests = map[string]func(*T){
	"error/unknown_kernel": func(t *T) {
		p, s := wrong()
		k := ir.Kernel{Name: "k", Function: "no_such_kernel", Args: []ir.Arg{{Slot: 0, Name: "x", Kind: ir.DeviceArg, Access: ir.WriteArg, Type: ir.F32}}}
		p.Dispatch(ir.Dispatch{Kernel: p.Kernel(k), Grid: [3]ir.Extent{ir.Ext(1), ir.Ext(1), ir.Ext(1)}, Threadgroup: [3]uint32{1, 1, 1}, Bindings: []ir.Binding{ir.BufferArg(0, floats(s, 0, 16))}})
		err := refused(t, p, t.exact)
		require.ErrorContains(t, err, "#1")
		require.ErrorContains(t, err, "no_such_kernel")
	},

	"error/foreign_library": func(t *T) {
		p, s := wrong()
		k := builtin("vv_Addfloat32")
		k.Library = ir.Library{Kind: ir.Metallib, Path: "user.metallib"}
		p.Dispatch(ir.Dispatch{Kernel: p.Kernel(k), GridKind: ir.Threads, Grid: [3]ir.Extent{ir.Ext(4), ir.Ext(1), ir.Ext(1)}, Threadgroup: [3]uint32{4, 1, 1},
			Bindings: []ir.Binding{ir.BufferArg(0, floats(s, 0, 4)), ir.BufferArg(1, floats(s, 4, 4)), ir.BufferArg(2, floats(s, 8, 4))}})
		err := refused(t, p, t.exact)
		require.ErrorContains(t, err, "#1")
		require.ErrorContains(t, err, "user.metallib")
	},

	// ir.Graph.Check does not know which arguments a kernel with function constants needs, so
	// devices check that. Here an argument is removed after Check has run.
	"error/unbound_argument": func(t *T) {
		p, s := wrong()
		d := p.binary("Add", floats(s, 0, 4), floats(s, 4, 4), floats(s, 8, 4), ir.Const(4))
		g := t.graph(p)
		d.Bindings = append(d.Bindings[:1:1], d.Bindings[2])
		err := refusedGraph(t, g, t.exact)
		require.ErrorContains(t, err, "#1")
		require.ErrorContains(t, err, "argument 1")
	},

	"error/misaligned_view": func(t *T) {
		for what, view := range map[string]func(p *program, s ir.MemID) ir.View{
			"view": func(_ *program, s ir.MemID) ir.View { return ir.ViewOf(s, 18, 16) },
			"for some param": func(p *program, s ir.MemID) ir.View {
				return ir.View{Mem: s, Off: param(p.Param("n", 0, 4), 2).AddConst(16), Len: ir.Const(16)}
			},
			"alias": func(p *program, s ir.MemID) ir.View { return ir.ViewOf(p.Alias("odd", s, 18, 20), 0, 16) },
		} {
			p, s := wrong()
			p.binary("Add", ir.ViewOf(s, 0, 16), view(p, s), ir.ViewOf(s, 40, 16), ir.Const(4))
			require.ErrorContains(t, refused(t, p, t.exact), "#1", what)
		}
	},

	"error/missing_place": func(t *T) {
		p, s := wrong()
		x := p.Memory(ir.Memory{Name: "x", Kind: ir.Weight, Size: 16, Init: ir.FillU32(0)})
		p.Copy(floats(s, 0, 4), floats(x, 0, 4), "")
		err := refused(t, p, func(g *ir.Graph) []backend.Place { return t.exact(g)[:1] })
		require.ErrorContains(t, err, "%x")
	},

	"error/missing_state": func(t *T) {
		p, _ := wrong()
		g := t.graph(p)
		x, err := t.Device.Compile(context.Background(), &backend.Program{Graph: g})
		require.NoError(t, err)
		_, err = x.NewStates(nil)
		require.ErrorContains(t, err, "%s")
		require.NoError(t, x.Close())
	},

	// A memory that no command binds needs no place.
	"error/unbound_memory": func(t *T) {
		p, _ := wrong()
		p.Memory(ir.Memory{Name: "x", Kind: ir.Weight, Size: 16, Init: ir.FillU32(0)})
		g, err := p.Graph()
		require.NoError(t, err)
		x, err := t.Device.Compile(context.Background(), &backend.Program{Graph: g, Places: t.exact(g)[:1]})
		require.NoError(t, err)
		require.NoError(t, x.Close())
	},

	"error/short_buffer": func(t *T) {
		p, _ := wrong()
		p.memory("x", ir.Input, 100)
		g := t.graph(p)
		short := append(t.exact(g)[:1:1], backend.At(t.alloc(399)))
		_, err := t.Device.Compile(context.Background(), &backend.Program{Graph: g, Places: short})
		for _, want := range []string{"%x", "400", "399"} {
			require.ErrorContains(t, err, want)
		}
		x, err := t.Device.Compile(context.Background(), &backend.Program{Graph: g})
		require.NoError(t, err)
		_, err = x.NewFrame(backend.FrameSpec{Places: short})
		for _, want := range []string{"%x", "400", "399"} {
			require.ErrorContains(t, err, want)
		}
		_, err = x.NewStates([]backend.Place{{Buffer: t.alloc(64), Offset: 4}})
		for _, want := range []string{"%s", "64", "from byte 4 on"} {
			require.ErrorContains(t, err, want)
		}
		require.NoError(t, x.Close())
	},

	// The same errors reach the user of a session when a graph is planned.
	"error/through_replay": func(t *T) {
		p, s := wrong()
		// Package replay finds most mistakes before they reach the device; a library that
		// the device does not have is refused by the device.
		k := builtin("vv_Addfloat32")
		k.Library = ir.Library{Kind: ir.SourceFile, Path: "elsewhere.metal"}
		p.Dispatch(ir.Dispatch{Kernel: p.Kernel(k), GridKind: ir.Threads, Grid: [3]ir.Extent{ir.Ext(4), ir.Ext(1), ir.Ext(1)}, Threadgroup: [3]uint32{4, 1, 1},
			Bindings: []ir.Binding{ir.BufferArg(0, floats(s, 0, 4)), ir.BufferArg(1, floats(s, 4, 4)), ir.BufferArg(2, floats(s, 8, 4))}})
		_, err := t.open(replay.Options{}, t.graph(p)).Graph(context.Background(), "")
		require.ErrorContains(t, err, "graph wrong")
		require.ErrorContains(t, err, "elsewhere.metal")
	},

	"error/allocation": func(t *T) {
		_, err := t.Device.Alloc(backend.BufferSpec{Size: -1})
		require.Error(t, err)
		_, err = t.Device.Alloc(backend.BufferSpec{Size: 1 << 60})
		require.Error(t, err)
	},
}
