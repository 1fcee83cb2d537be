//go:build linux && (amd64 || arm64) && !gpu

package cuda_test

import (
	"context"
	"encoding/binary"
	"errors"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/passes"
	"github.com/mlxc/mlxc/replay"
)

const (
	cells = 64 // of the workload's tensors
	burst = 41 // replays of a long submission: two CUDA graphs of 16, and single ones
)

func words(n int, f func(i int) uint32) []byte {
	out := make([]byte, 4*n)
	for i := range n {
		binary.LittleEndian.PutUint32(out[4*i:], f(i))
	}
	return out
}

// newWorkload returns a small graph that uses all that a launch can be given, so that an error in any of it changes
// the results: params that advance, as numbers, as offsets and as grids, which are empty at first; argument memory;
// threadgroup memory; states; outputs of every replay, one of which is carried to the next. pipeline has the passes
// that order it.
func newWorkload(t testing.TB, pipeline string) *ir.Graph {
	t.Helper()
	path, err := filepath.Abs("../metal/testdata/workload.metal")
	require.NoError(t, err)
	library := ir.Library{Kind: ir.SourceFile, Path: path}
	b := ir.NewBuilder("workload")
	pos, rows := b.Param("pos", 0, 63), b.Param("rows", 0, 63)
	b.Unfinished().Params[pos].Advance = 1
	b.Unfinished().Params[rows].Advance = 1
	of := func(p ir.ParamID, c, k int64) ir.Affine { return ir.Linear(c, ir.Term{Param: p, Coeff: k}) }
	device := func(slot uint8, name string, access ir.ArgAccess) ir.Arg {
		return ir.Arg{Slot: slot, Name: name, Kind: ir.DeviceArg, Access: access, Type: ir.U32}
	}
	kernel := func(name string, args ...ir.Arg) ir.KernelID {
		return b.Kernel(ir.Kernel{Name: name, Library: library, Function: name, Args: args})
	}
	mixed := kernel("mixed", device(0, "a", ir.ReadArg), device(1, "b", ir.ReadArg), device(2, "out", ir.WriteArg),
		ir.Arg{Slot: 3, Name: "k", Kind: ir.ConstantArg, Type: ir.U32, Count: 2})
	folded := kernel("folded", device(0, "a", ir.ReadArg), device(1, "s", ir.ReadWriteArg),
		ir.Arg{Slot: 2, Name: "with", Kind: ir.ConstantArg, Type: ir.U32, Count: 4})
	turned := kernel("turned", device(0, "in", ir.ReadArg), device(1, "out", ir.WriteArg),
		ir.Arg{Slot: 0, Name: "first", Kind: ir.ThreadgroupArg, Type: ir.U32}, ir.Arg{Slot: 1, Name: "second", Kind: ir.ThreadgroupArg, Type: ir.U32})
	advanced := b.Kernel(ir.Kernel{Name: "advanced", Library: library, Function: "advanced",
		Constants: []ir.FunctionConstant{{Index: 3, Name: "factor", Type: ir.U32, Bits: 3}, {Index: 5, Name: "flipped", Type: ir.Bool, Bits: 1}},
		Args:      []ir.Arg{device(0, "x", ir.ReadWriteArg), {Slot: 1, Name: "by", Kind: ir.ConstantArg, Type: ir.U32, Count: 1}}})
	memory := func(m ir.Memory) ir.MemID { return b.Memory(m) }
	fill := ir.Init{Kind: ir.InitFill, Pattern: [4]byte{1, 2, 3, 4}}
	x := memory(ir.Memory{Name: "x", Kind: ir.Input, Size: 4 * cells, DType: ir.U32})
	w := memory(ir.Memory{Name: "w", Kind: ir.Weight, Size: 4 * cells, Init: ir.Init{Kind: ir.InitBlob, Blob: ir.NewBlob(words(cells, func(i int) uint32 { return uint32(i)*2654435761 + 17 }))}})
	args := memory(ir.Memory{Name: "args", Kind: ir.Argument, Size: 64, Init: ir.Init{Kind: ir.InitValues, Values: []ir.Value{
		{Off: 0, Type: ir.U32, Expr: of(pos, 2, 3)}, {Off: 12, Type: ir.U32, Expr: of(rows, 1, 1)}, {Off: 32, Type: ir.U32, Expr: of(pos, 5, 1)},
	}}})
	scratch := func(name string) ir.MemID {
		return memory(ir.Memory{Name: name, Kind: ir.Scratch, Size: 4 * cells})
	}
	a, c, d := scratch("a"), scratch("c"), scratch("d")
	s := memory(ir.Memory{Name: "s", Kind: ir.State, Size: 4 * cells, Init: fill})
	u := memory(ir.Memory{Name: "u", Kind: ir.State, Size: 8 * cells, Init: fill})
	y := memory(ir.Memory{Name: "y", Kind: ir.Output, Size: 4 * cells, DType: ir.U32, Every: true})
	z := memory(ir.Memory{Name: "z", Kind: ir.Output, Size: 4 * cells})
	all := func(m ir.MemID) ir.View { return ir.ViewOf(m, 0, 4*cells) }
	dispatch := func(k ir.KernelID, grid [3]ir.Extent, kind ir.GridKind, group [3]uint32, shared []ir.ThreadgroupMemory, bindings ...ir.Binding) {
		e := &ir.Effects{Complete: true}
		for _, x := range bindings {
			if x.Kind != ir.BindView {
				continue
			}
			arg, _ := b.KernelAt(k).Arg(x.Slot)
			if arg.Kind == ir.ConstantArg || arg.Access != ir.WriteArg {
				e.Reads = append(e.Reads, x.View.Contiguous())
			}
			if arg.Kind == ir.DeviceArg && arg.Access != ir.ReadArg {
				e.Writes = append(e.Writes, ir.Write{Region: x.View.Contiguous(), Must: grid[0].IsConst()})
			}
		}
		b.Dispatch(ir.Dispatch{Kernel: k, Grid: grid, GridKind: kind, Threadgroup: group, ThreadgroupMemory: shared, Bindings: bindings, Effects: e})
	}
	three := func(x, y, z int64) [3]ir.Extent { return [3]ir.Extent{ir.Ext(x), ir.Ext(y), ir.Ext(z)} }
	dispatch(mixed, three(4, 4, 4), ir.Threads, [3]uint32{3, 2, 1}, nil,
		ir.BufferArg(0, all(x)), ir.BufferArg(1, all(w)), ir.BufferArg(2, all(a)), ir.BytesArg(3, ir.ValueBytes(uint32(3), uint32(5))))
	dispatch(turned, three(2, 1, 1), ir.Threadgroups, [3]uint32{32, 1, 1}, []ir.ThreadgroupMemory{{Slot: 0, Bytes: 128}, {Slot: 1, Bytes: 128}},
		ir.BufferArg(0, all(x)), ir.BufferArg(1, all(d)))
	b.Fill(all(c), 7, "sevens")
	b.Barrier()
	dispatch(advanced, [3]ir.Extent{{Num: of(rows, 0, 2), Div: 8}, ir.Ext(1), ir.Ext(1)}, ir.Threadgroups, [3]uint32{2, 1, 1}, nil,
		ir.BufferArg(0, all(a)), ir.ScalarArg(1, ir.U32, of(pos, 0, 1)))
	b.Copy(ir.ViewOf(c, 16, 64), ir.ViewOf(d, 0, 64), "moved")
	b.Barrier()
	dispatch(folded, three(cells, 1, 1), ir.Threads, [3]uint32{8, 1, 1}, nil, ir.BufferArg(0, all(a)), ir.BufferArg(1, all(s)), ir.BufferArg(2, ir.ViewOf(args, 0, 16)))
	dispatch(folded, three(cells, 1, 1), ir.Threads, [3]uint32{24, 1, 1}, nil,
		ir.BufferArg(0, all(d)), ir.BufferArg(1, ir.View{Mem: u, Off: of(pos, 0, 4), Len: ir.Const(4 * cells)}), ir.BufferArg(2, ir.ViewOf(args, 32, 16)))
	b.Barrier()
	dispatch(mixed, three(4, 4, 4), ir.Threads, [3]uint32{2, 2, 2}, nil,
		ir.BufferArg(0, all(a)), ir.BufferArg(1, all(s)), ir.BufferArg(2, all(y)), ir.BytesArg(3, ir.ValueBytes(uint32(7), uint32(9))))
	dispatch(mixed, three(4, 4, 4), ir.Threads, [3]uint32{1, 3, 2}, nil,
		ir.BufferArg(0, all(c)), ir.BufferArg(1, ir.ViewOf(u, 4*cells, 4*cells)), ir.BufferArg(2, all(z)), ir.BytesArg(3, ir.ValueBytes(uint32(11), uint32(13))))
	b.Barrier()
	b.Carry(all(x), all(y), "on")
	g, err := b.Graph()
	require.NoError(t, err)
	if pipeline != "" {
		p, err := passes.All().Parse(pipeline)
		require.NoError(t, err)
		_, err = passes.Run(t.Context(), g, p, passes.Options{})
		require.NoError(t, err)
	}
	return g
}

// outcome is what a run of the workload has left: of each of its submissions, the outputs and states.
type outcome []string

// several are submissions of many replays and of few.
var several = []int{burst, 3, 1, burst}

// run replays the workload by two frames in turn, for each number of replays in submissions. Inputs are written
// before the first submission of each frame.
func run(d backend.Device, g *ir.Graph, submissions ...int) (out outcome, err error) {
	ctx := context.Background()
	s, err := replay.Open(d, &ir.Module{Graphs: []*ir.Graph{g.Clone()}}, replay.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	p, err := s.Graph(ctx, "")
	if err != nil {
		return nil, err
	}
	var frames []*replay.Frame
	for range 2 {
		f, err := p.NewBurstFrame(ctx, burst)
		if err != nil {
			return nil, err
		}
		frames = append(frames, f)
	}
	other, err := s.NewStates(ctx)
	if err != nil {
		return nil, err
	}
	for turn, n := range submissions {
		f := frames[turn%2]
		if turn == 3 { // a frame's launches then have other memory
			if err := f.Use(other); err != nil {
				return nil, err
			}
		}
		if turn < len(frames) { // later submissions have what was carried as their input
			if err := f.SetInput("x", words(cells, func(i int) uint32 { return uint32(i+turn) * 40503 })); err != nil {
				return nil, err
			}
		}
		for k, name := range []string{"pos", "rows"} {
			if err := f.SetParam(name, float64(turn*(k+1))); err != nil {
				return nil, err
			}
		}
		if _, err := f.RunBurst(ctx, n); err != nil {
			return nil, err
		}
		for _, name := range []string{"y", "z"} {
			data, err := f.Output(name)
			if err != nil {
				return nil, err
			}
			out = append(out, string(data))
		}
		for _, name := range []string{"s", "u"} {
			data, err := f.State(name)
			if err != nil {
				return nil, err
			}
			out = append(out, string(data))
		}
	}
	return out, nil
}
