//go:build linux

package metal_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/record"
)

// cells is the number of elements, u32 each, of most tensors of the workload.
const cells = 64

// far is an offset in bytes: ways with Limits.Reach set to it have memories beyond what indirect commands reach.
const far = 1 << 15

// uints returns n little-endian u32, f(0) to f(n-1), as bytes.
func uints(n int, f func(i int) uint32) []byte {
	out := make([]byte, 4*n)
	for i := range n {
		binary.LittleEndian.PutUint32(out[4*i:], f(i))
	}
	return out
}

// workload is a set of small graphs that together use every message that a plan can send. A wrong message
// changes their results.
type workload struct {
	graphs []*ir.Graph
	// engine makes the graphs for live recordings, anew each time, since a wrong emission may change their weights.
	engine   func() []*ir.Graph
	mistaken *ir.Graph // a graph whose grid is in memory and may exceed the max
	apart    bool      // each timed command has an encoder of its own, so no two run at the same time
	// idle, if not nil, switches on that command buffers complete only when nothing else is left to run.
	idle func(bool)
	// peak, if not nil, returns the max number of command buffers in flight together since its last call.
	peak func() int
}

// newWorkload makes the graphs of the workload.
func newWorkload(t testing.TB) *workload {
	t.Helper()
	path, err := filepath.Abs("testdata/workload.metal")
	require.NoError(t, err)
	w := &workload{}
	blob := func() *ir.Blob {
		return ir.NewBlob(uints(1<<12, func(i int) uint32 { return uint32(i)*2654435761 + 17 }))
	}
	library := ir.Library{Kind: ir.SourceFile, Path: path}
	built := func(b *ir.Builder) *ir.Graph {
		g, err := b.Graph()
		require.NoError(t, err)
		return g
	}
	w.graphs = []*ir.Graph{built(slotted(library, blob(), true)), built(counted(library)), built(passing(library)), built(hosted(library))}
	w.engine = func() []*ir.Graph {
		return []*ir.Graph{built(slotted(library, blob(), false)), w.graphs[1], w.graphs[2]}
	}
	w.mistaken = built(mistaken(library))
	return w
}

// kernels builds a graph of kernels of testdata/workload.metal.
type kernels struct {
	*ir.Builder
	library ir.Library
}

func (k kernels) kernel(function string, constants ...ir.FunctionConstant) ir.KernelID {
	name := function
	if len(constants) > 0 {
		name = fmt.Sprint(function, constants[0].Bits)
	}
	for i := range k.Unfinished().Kernels {
		if k.KernelAt(ir.KernelID(i)).Name == name {
			return ir.KernelID(i)
		}
	}
	device := func(slot uint8, name string, access ir.ArgAccess) ir.Arg {
		return ir.Arg{Slot: slot, Name: name, Kind: ir.DeviceArg, Access: access, Type: ir.U32}
	}
	args := map[string][]ir.Arg{
		"mixed": {device(0, "a", ir.ReadArg), device(1, "b", ir.ReadArg), device(2, "out", ir.WriteArg),
			{Slot: 3, Name: "k", Kind: ir.ConstantArg, Type: ir.U32, Count: 2}},
		"advanced": {device(0, "x", ir.ReadWriteArg), {Slot: 1, Name: "by", Kind: ir.ConstantArg, Type: ir.U32, Count: 1}},
		"folded": {device(0, "a", ir.ReadArg), device(1, "s", ir.ReadWriteArg),
			{Slot: 2, Name: "with", Kind: ir.ConstantArg, Type: ir.U32, Count: 4}},
		"turned": {device(0, "in", ir.ReadArg), device(1, "out", ir.WriteArg),
			{Slot: 0, Name: "first", Kind: ir.ThreadgroupArg, Type: ir.U32}, {Slot: 1, Name: "second", Kind: ir.ThreadgroupArg, Type: ir.U32}},
	}
	return k.Kernel(ir.Kernel{Name: name, Library: k.library, Function: function, Constants: constants, Args: args[function]})
}

// dispatch adds a dispatch with its effects: it touches all that it binds, or may where its grid has params.
func (k kernels) dispatch(d ir.Dispatch) {
	e := &ir.Effects{Complete: true}
	for i := range d.Bindings {
		b := &d.Bindings[i]
		if b.Kind != ir.BindView {
			continue
		}
		a, _ := k.KernelAt(d.Kernel).Arg(b.Slot)
		if a.Kind == ir.ConstantArg || a.Access != ir.WriteArg {
			e.Reads = append(e.Reads, b.View.Contiguous())
		}
		if a.Kind == ir.DeviceArg && a.Access != ir.ReadArg {
			e.Writes = append(e.Writes, ir.Write{Region: b.View.Contiguous(), Must: d.Grid[0].IsConst()})
		}
	}
	d.Effects = e
	k.Dispatch(d)
}

func chosen(factor uint64, flipped uint64) []ir.FunctionConstant {
	return []ir.FunctionConstant{
		{Index: 3, Name: "factor", Type: ir.U32, Bits: factor}, {Index: 5, Name: "flipped", Type: ir.Bool, Bits: flipped},
	}
}

// some returns a view of n elements of a memory, from element from on.
func some(m ir.MemID, from, n int64) ir.View { return ir.ViewOf(m, 4*from, 4*n) }

func extent(x, y, z int64) [3]ir.Extent { return [3]ir.Extent{ir.Ext(x), ir.Ext(y), ir.Ext(z)} }

// slotted makes a graph of which several replays can be in flight, with params, a weight and, if args is set,
// argument memory.
func slotted(l ir.Library, weight *ir.Blob, args bool) *ir.Builder {
	b := kernels{ir.NewBuilder("slotted"), l}
	pos, rows := b.Param("pos", 0, 7), b.Param("rows", 0, 5)
	for _, p := range []ir.ParamID{pos, rows} {
		b.Unfinished().Params[p].Advance = 1
	}
	of := func(p ir.ParamID, c, k int64) ir.Affine { return ir.Linear(c, ir.Term{Param: p, Coeff: k}) }
	x := b.Memory(ir.Memory{Name: "x", Kind: ir.Input, Size: 8 * cells, DType: ir.U32})
	w := b.Memory(ir.Memory{Name: "w", Kind: ir.Weight, Size: 1 << 14, Init: ir.Init{Kind: ir.InitBlob, Blob: weight}})
	with := func(slot uint8, at int64) ir.Binding {
		return ir.BytesArg(slot, uints(4, func(i int) uint32 { return uint32(at) + 3 }))
	}
	if args {
		m := b.Memory(ir.Memory{Name: "args", Kind: ir.Argument, Size: 64, Init: ir.Init{Kind: ir.InitValues, Values: []ir.Value{
			{Off: 0, Type: ir.U32, Expr: of(pos, 2, 3)}, {Off: 12, Type: ir.U32, Expr: of(rows, 1, 1)},
			{Off: 32, Type: ir.U32, Expr: of(pos, 5, 1)}, {Off: 44, Type: ir.U32, Expr: of(pos, 0, 7)},
		}}})
		with = func(slot uint8, at int64) ir.Binding { return ir.BufferArg(slot, ir.ViewOf(m, at, 16)) }
	}
	scratch := func(name string) ir.MemID {
		return b.Memory(ir.Memory{Name: name, Kind: ir.Scratch, Size: 4 * cells})
	}
	a, c, d, e := scratch("a"), scratch("c"), scratch("d"), scratch("e")
	fill := ir.Init{Kind: ir.InitFill, Pattern: [4]byte{1, 2, 3, 4}}
	s := b.Memory(ir.Memory{Name: "s", Kind: ir.State, Size: 4 * cells, Init: fill})
	u := b.Memory(ir.Memory{Name: "u", Kind: ir.State, Size: 8 * cells, Init: fill})
	y := b.Memory(ir.Memory{Name: "y", Kind: ir.Output, Size: 4 * cells, DType: ir.U32, Every: true})
	z := b.Memory(ir.Memory{Name: "z", Kind: ir.Output, Size: 4 * cells})
	mixed := func(a, x, to ir.View, kx, ky uint32, label string) {
		b.dispatch(ir.Dispatch{
			Kernel: b.kernel("mixed"), Grid: extent(4, 4, 4), GridKind: ir.Threads, Threadgroup: [3]uint32{3, 2, 1}, Label: label,
			Bindings: []ir.Binding{ir.BufferArg(0, a), ir.BufferArg(1, x), ir.BufferArg(2, to), ir.BytesArg(3, ir.ValueBytes(kx, ky))},
		})
	}
	advanced := func(k ir.KernelID, grid [3]ir.Extent, kind ir.GridKind, group [3]uint32, x ir.View, by ir.Binding) {
		b.dispatch(ir.Dispatch{Kernel: k, Grid: grid, GridKind: kind, Threadgroup: group, Bindings: []ir.Binding{ir.BufferArg(0, x), by}})
	}
	folded := func(a, s ir.View, with ir.Binding, n int64) {
		b.dispatch(ir.Dispatch{
			Kernel: b.kernel("folded"), Grid: extent(n, 1, 1), GridKind: ir.Threads, Threadgroup: [3]uint32{8, 1, 1},
			Bindings: []ir.Binding{ir.BufferArg(0, a), ir.BufferArg(1, s), with},
		})
	}
	triple, five := b.kernel("advanced", chosen(3, 1)...), b.kernel("advanced", chosen(5, 0)...)
	b.Group("front")
	mixed(some(x, 0, cells), some(w, 8, cells), some(a, 0, cells), 3, 5, "first of all")
	b.turned(some(x, cells, cells), some(d, 0, cells))
	b.Fill(some(c, 0, cells), 7, "sevens")
	b.Barrier()
	advanced(triple, extent(cells, 1, 1), ir.Threads, [3]uint32{8, 1, 1}, some(a, 0, cells), ir.ScalarArg(1, ir.U32, of(pos, 0, 1)))
	advanced(five, [3]ir.Extent{{Num: of(rows, 0, 1), Div: 1}, ir.Ext(2), ir.Ext(1)}, ir.Threadgroups, [3]uint32{2, 1, 1},
		ir.View{Mem: d, Off: of(pos, 0, 4), Len: ir.Const(4 * 20)}, ir.BytesArg(1, ir.ValueBytes(uint32(9))))
	b.Barrier()
	folded(some(a, 0, cells), some(s, 0, cells), with(2, 0), cells)
	b.Copy(some(c, 4, 16), some(d, 0, 16), "moved")
	b.EndGroup()
	b.Commit(ir.OrderEvent, "front half")
	folded(some(d, 0, cells), ir.View{Mem: u, Off: of(pos, 0, 4), Len: ir.Const(4 * cells)}, with(2, 32), cells)
	mixed(some(a, 0, cells), some(c, 0, cells), some(e, 0, cells), 11, 13, "")
	b.Barrier()
	advanced(triple, extent(4, 8, 2), ir.Threads, [3]uint32{1, 3, 2}, some(e, 0, cells), ir.ScalarArg(1, ir.U32, of(pos, 1, 2)))
	b.Barrier()
	mixed(some(e, 0, cells), some(s, 0, cells), some(y, 0, cells), 3, 5, "")
	mixed(some(e, 0, cells), some(u, 8, cells), some(z, 0, cells), 7, 1, "")
	b.Barrier()
	b.Carry(some(x, 0, cells), some(y, 0, cells), "on")
	b.Commit(ir.OrderEvent, "back half")
	return b.Builder
}

// counted makes a graph with dispatches that take their grids from memory.
func counted(l ir.Library) *ir.Builder {
	b := kernels{ir.NewBuilder("counted"), l}
	x := b.Memory(ir.Memory{Name: "x", Kind: ir.Input, Size: 4 * cells})
	counts := b.Memory(ir.Memory{Name: "counts", Kind: ir.Input, Size: 32})
	kept := b.Memory(ir.Memory{Name: "kept", Kind: ir.Scratch, Size: 12})
	s := b.Memory(ir.Memory{Name: "s", Kind: ir.State, Size: 4 * cells, Init: ir.Init{Kind: ir.InitFill, Pattern: [4]byte{9}}})
	z := b.Memory(ir.Memory{Name: "z", Kind: ir.Output, Size: 4 * cells})
	v := b.Memory(ir.Memory{Name: "v", Kind: ir.Output, Size: 4 * cells})
	counting := func(at ir.View, most int64, x ir.View, by uint32) {
		b.Dispatch(ir.Dispatch{
			Kernel: b.kernel("advanced", chosen(3, 1)...), Grid: extent(most, 2, 2), GridKind: ir.Threadgroups, Threadgroup: [3]uint32{2, 1, 1},
			Indirect: &ir.Indirect{Grid: &at}, Bindings: []ir.Binding{ir.BufferArg(0, x), ir.BytesArg(1, ir.ValueBytes(by))},
		})
	}
	b.Copy(ir.ViewOf(kept, 0, 12), ir.ViewOf(counts, 16, 12), "")
	b.Copy(some(z, 0, cells), some(x, 0, cells), "")
	b.Barrier()
	counting(ir.ViewOf(counts, 4, 12), 5, some(s, 0, cells), 4)
	counting(ir.ViewOf(kept, 0, 12), 6, some(z, 0, cells), 6)
	b.Commit(ir.OrderEvent, "counts")
	b.Dispatch(ir.Dispatch{
		Kernel: b.kernel("mixed"), Grid: extent(4, 4, 4), GridKind: ir.Threads, Threadgroup: [3]uint32{4, 1, 1},
		Bindings: []ir.Binding{ir.BufferArg(0, some(s, 0, cells)), ir.BufferArg(1, some(z, 0, cells)), ir.BufferArg(2, some(v, 0, cells)), ir.BytesArg(3, ir.ValueBytes(uint32(2), uint32(1)))},
	})
	return b.Builder
}

// turned adds a dispatch of the kernel that takes two threadgroup memories.
func (k kernels) turned(in, out ir.View) {
	k.dispatch(ir.Dispatch{
		Kernel: k.kernel("turned"), Grid: extent(2, 1, 1), GridKind: ir.Threadgroups, Threadgroup: [3]uint32{32, 1, 1},
		Bindings:          []ir.Binding{ir.BufferArg(0, in), ir.BufferArg(1, out)},
		ThreadgroupMemory: []ir.ThreadgroupMemory{{Slot: 0, Bytes: 128}, {Slot: 1, Bytes: 128}},
	})
}

// passing makes a graph whose encoders, and the commands around its carry, need the same state, so that an
// encoder that relies on state which only an earlier one has set is noticed.
func passing(l ir.Library) *ir.Builder {
	b := kernels{ir.NewBuilder("passing"), l}
	x := b.Memory(ir.Memory{Name: "x", Kind: ir.Input, Size: 4 * cells, DType: ir.U32})
	a := b.Memory(ir.Memory{Name: "a", Kind: ir.Scratch, Size: 4 * cells})
	c := b.Memory(ir.Memory{Name: "c", Kind: ir.Scratch, Size: 4 * cells})
	y := b.Memory(ir.Memory{Name: "y", Kind: ir.Output, Size: 4 * cells, DType: ir.U32})
	z := b.Memory(ir.Memory{Name: "z", Kind: ir.Output, Size: 4 * cells, DType: ir.U32})
	all := func(m ir.MemID) ir.View { return some(m, 0, cells) }
	b.turned(all(x), all(a))
	b.Barrier()
	b.turned(all(a), all(c))
	b.Commit(ir.OrderEvent, "turned twice")
	b.turned(all(c), all(y))
	b.Barrier()
	b.Carry(all(x), all(y), "on")
	b.Copy(all(z), all(y), "kept") // with the same kernel, source and size as the carry
	b.Commit(ir.OrderEvent, "once more")
	return b.Builder
}

// hosted makes a graph for which the host must wait between two replays; nothing else orders them.
func hosted(l ir.Library) *ir.Builder {
	b := kernels{ir.NewBuilder("hosted"), l}
	x := b.Memory(ir.Memory{Name: "x", Kind: ir.Input, Size: 4 * cells})
	s := b.Memory(ir.Memory{Name: "s", Kind: ir.State, Size: 4 * cells, Init: ir.Init{Kind: ir.InitFill, Pattern: [4]byte{7}}})
	y := b.Memory(ir.Memory{Name: "y", Kind: ir.Output, Size: 4 * cells, Every: true})
	b.dispatch(ir.Dispatch{
		Kernel: b.kernel("advanced", chosen(3, 1)...), Grid: extent(cells, 1, 1), GridKind: ir.Threads, Threadgroup: [3]uint32{8, 1, 1},
		Bindings: []ir.Binding{ir.BufferArg(0, some(s, 0, cells)), ir.BytesArg(1, ir.ValueBytes(uint32(5)))},
	})
	b.dispatch(ir.Dispatch{
		Kernel: b.kernel("mixed"), Grid: extent(4, 4, 4), GridKind: ir.Threads, Threadgroup: [3]uint32{4, 1, 1},
		Bindings: []ir.Binding{ir.BufferArg(0, some(s, 0, cells)), ir.BufferArg(1, some(x, 0, cells)), ir.BufferArg(2, some(y, 0, cells)), ir.BytesArg(3, ir.ValueBytes(uint32(2), uint32(1)))},
	})
	g := b.Unfinished()
	b.After(g.Nodes[1].(ir.Command), g.Nodes[0].(ir.Command))
	g.NextHost = true
	return b.Builder
}

// mistaken makes a graph with a grid in memory, counts, which a carry replaces by the input later for the
// second replay.
func mistaken(l ir.Library) *ir.Builder {
	b := kernels{ir.NewBuilder("mistaken"), l}
	counts := b.Memory(ir.Memory{Name: "counts", Kind: ir.Input, Size: 16, DType: ir.U32})
	later := b.Memory(ir.Memory{Name: "later", Kind: ir.Input, Size: 16, DType: ir.U32})
	on := b.Memory(ir.Memory{Name: "on", Kind: ir.Output, Size: 16, DType: ir.U32})
	z := b.Memory(ir.Memory{Name: "z", Kind: ir.Output, Size: 4 * cells})
	b.Copy(ir.ViewOf(on, 0, 16), ir.ViewOf(later, 0, 16), "")
	b.Fill(some(z, 0, cells), 1, "")
	b.Barrier()
	at := ir.ViewOf(counts, 0, 12)
	b.Dispatch(ir.Dispatch{
		Kernel: b.kernel("advanced", chosen(3, 1)...), Grid: extent(4, 2, 2), GridKind: ir.Threadgroups, Threadgroup: [3]uint32{2, 1, 1},
		Indirect: &ir.Indirect{Grid: &at}, Bindings: []ir.Binding{ir.BufferArg(0, some(z, 0, cells)), ir.BytesArg(1, ir.ValueBytes(uint32(9)))},
	})
	b.Barrier()
	b.Carry(ir.ViewOf(counts, 0, 16), ir.ViewOf(on, 0, 16), "")
	b.Commit(ir.OrderEvent, "")
	return b.Builder
}

// tooMany submits mistaken three times. If the second replay's count exceeds the max, the submission must fail
// with that count after one replay has ended; else its results are added to out.
func (w *workload) tooMany(d backend.Device, out outcome) (err error) {
	e, err := d.Compile(context.Background(), &backend.Program{Graph: w.mistaken})
	if err != nil {
		return err
	}
	f, err := e.NewFrame(backend.FrameSpec{Replays: 3})
	if err != nil {
		return errors.Join(err, e.Close())
	}
	if w.idle != nil { // what would be in flight beside the first replay has run by then
		w.idle(true)
		defer w.idle(false)
	}
	defer func() { err = errors.Join(err, f.Close(), e.Close()) }()
	for turn, later := range []uint32{5, 1, 7} { // counts of the second replay; the max is 4
		q, err := d.NewQueue()
		if err != nil {
			return err
		}
		for i, n := range []uint32{3, later} {
			copy(f.Place(ir.MemID(i)).Bytes(16), ir.ValueBytes(n, uint32(2), uint32(1), uint32(0)))
		}
		p, err := q.Submit(context.Background(), backend.Submission{Executable: e, Frame: f, Replays: 3})
		if err != nil {
			return errors.Join(err, q.Close())
		}
		<-p.Done()
		r := p.Result()
		ended := r.Err
		if later > 4 && ended != nil && strings.Contains(ended.Error(), fmt.Sprintf("%d threadgroups", later)) {
			ended = nil
			if r.Replays != 1 {
				ended = fmt.Errorf("%d replays have ended before the one whose counts are too great, and 1 has", r.Replays)
			}
		} else if later > 4 {
			ended = fmt.Errorf("counts of %d are too great, and the result says %v", later, ended)
		}
		if err := errors.Join(ended, q.Close()); err != nil {
			return err
		}
		if later <= 4 {
			data := make([]byte, 4*cells)
			at := f.Place(3)
			if _, err := at.Buffer.ReadAt(data, at.Offset); err != nil {
				return err
			}
			out[fmt.Sprintf("mistaken: %%z of turn %d", turn)] = string(data)
		}
	}
	return nil
}

// moved encodes a command three times into a live command buffer, its memory at another place each time.
func (w *workload) moved(d backend.Device, out outcome) (err error) {
	q, err := d.NewQueue()
	if err != nil {
		return err
	}
	b := kernels{ir.NewBuilder("moved"), w.graphs[0].Kernels[0].Library}
	x := b.Memory(ir.Memory{Name: "x", Kind: ir.State, Size: 4 * cells})
	step := func() ir.Node {
		b.dispatch(ir.Dispatch{
			Kernel: b.kernel("advanced", chosen(3, 1)...), Grid: extent(cells, 1, 1), GridKind: ir.Threads, Threadgroup: [3]uint32{8, 1, 1},
			Bindings: []ir.Binding{ir.BufferArg(0, some(x, 0, cells)), ir.BytesArg(1, ir.ValueBytes(uint32(5)))},
		})
		return b.Unfinished().Nodes[len(b.Unfinished().Nodes)-1]
	}
	var buffers []backend.Buffer
	defer func() {
		err = errors.Join(err, q.Close())
		for _, b := range buffers {
			err = errors.Join(err, b.Close())
		}
	}()
	for range 2 {
		b, err := d.Alloc(backend.BufferSpec{Size: 8 * cells * 4})
		if err != nil {
			return err
		}
		copy(b.Bytes(), uints(8*cells, func(i int) uint32 { return uint32(i) * 40503 }))
		buffers = append(buffers, b)
	}
	scope := &backend.Scope{Graph: b.Unfinished(), Places: make([]backend.Place, 1)}
	cb, err := q.CommandBuffer(context.Background(), backend.Recording{Scope: scope})
	if err != nil {
		return err
	}
	// The memory moves to another buffer, and then within that.
	for _, p := range []backend.Place{{Buffer: buffers[0]}, {Buffer: buffers[1]}, {Buffer: buffers[1], Offset: 4 * cells}} {
		scope.Places[0] = p
		if err := cb.Encode(step()); err != nil {
			cb.Discard()
			return err
		}
		if err := cb.Encode(&ir.Barrier{}); err != nil {
			cb.Discard()
			return err
		}
	}
	if err := backend.Wait(context.Background())(cb.Commit(context.Background(), "moved", ir.OrderEvent)); err != nil {
		return err
	}
	for i, b := range buffers {
		out[fmt.Sprint("moved: buffer ", i)] = string(b.Bytes())
	}
	return nil
}

// outcome is the results of a run of the workload, by name.
type outcome map[string]string

// run runs the workload on a device by submissions of several replays, two of which are in flight together.
func (w *workload) run(d backend.Device) (out outcome, err error) {
	out = outcome{}
	q, err := d.NewQueue()
	if err != nil {
		return nil, err
	}
	for _, g := range w.graphs {
		err = errors.Join(err, w.graph(d, q, g, out))
	}
	return out, errors.Join(err, q.Close(), w.tooMany(d, out))
}

// graph runs one of the graphs and adds its results to out.
func (w *workload) graph(d backend.Device, q backend.Queue, g *ir.Graph, out outcome) (err error) {
	var closing []func() error
	defer func() {
		for _, f := range slices.Backward(closing) {
			err = errors.Join(err, f())
		}
	}()
	weights := make([]backend.Place, len(g.Memories))
	states := [2][]backend.Place{make([]backend.Place, len(g.Memories)), make([]backend.Place, len(g.Memories))}
	for i := range g.Memories {
		m := &g.Memories[i]
		if m.Kind != ir.Weight && m.Kind != ir.State {
			continue
		}
		for set := range states {
			var b backend.Buffer
			if page := d.Info().PageSize; m.Kind == ir.Weight && page > 0 {
				b, err = mapped(d, page, m)
			} else {
				b, err = backend.AllocMemory(context.Background(), d, q, m)
				if set == 1 && err == nil { // the second set begins at byte far of its buffer
					behind := *m
					behind.Size += far
					all, alloc := d.Alloc(backend.Spec(&behind))
					if alloc == nil {
						alloc = backend.Wait(context.Background())(q.Copy(context.Background(), backend.Place{Buffer: all, Offset: far}, backend.At(b), m.Size))
					}
					err = errors.Join(alloc, b.Close())
					b = all
				}
			}
			if err != nil {
				return err
			}
			closing = append(closing, b.Close)
			if m.Kind == ir.Weight {
				weights[i] = backend.At(b)
				break
			}
			states[set][i] = backend.At(b)
			states[set][i].Offset = int64(set) * far
		}
	}
	e, err := d.Compile(context.Background(), &backend.Program{Graph: g, Places: weights})
	if err != nil {
		return err
	}
	closing = append(closing, e.Close)
	var sets []backend.States
	for _, places := range states {
		set, err := e.NewStates(places)
		if err != nil {
			return err
		}
		closing = append(closing, set.Close)
		sets = append(sets, set)
	}
	const burst = 4
	var frames []backend.Frame
	for range 2 {
		f, err := e.NewFrame(backend.FrameSpec{Replays: burst})
		if err != nil {
			return err
		}
		closing = append(closing, f.Close)
		frames = append(frames, f)
	}
	flight := make([]backend.Pending, len(frames))
	closing = append(closing, func() error {
		for _, p := range flight {
			if p != nil {
				<-p.Done()
			}
		}
		return nil
	})
	land := func(n, turn int) error {
		if flight[n] == nil {
			return nil
		}
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := flight[n].Wait(ctx); err != nil {
			return err
		}
		r := flight[n].Result()
		flight[n] = nil
		if err := timed(g, r, out, turn, w.apart); err != nil {
			return err
		}
		for i := range g.Memories {
			m := &g.Memories[i]
			count := int64(1)
			if m.Every {
				count = burst
			}
			if m.Kind == ir.Output {
				data := make([]byte, count*m.Size)
				p := frames[n].Place(ir.MemID(i))
				if _, err := p.Buffer.ReadAt(data, p.Offset); err != nil {
					return err
				}
				out[fmt.Sprintf("%s: %%%s of submission %d", g.Name, m.Name, turn)] = string(data)
			}
		}
		return nil
	}
	if w.peak != nil {
		w.peak()
	}
	// The second frame is submitted while the first is in flight. The last submission uses the other states.
	params := [][]uint32{{0, 0}, {3, 2}, {1, 2}, {2, 0}}
	for turn, n := range []int{0, 1, 0, 0} {
		if err := land(n, turn); err != nil {
			return err
		}
		for i := range g.Memories {
			m := &g.Memories[i]
			if m.Kind != ir.Input {
				continue
			}
			data := uints(int(m.Size/4), func(i int) uint32 { return uint32(i*i+3*turn+1) * 40503 })
			if m.Name == "counts" { // 4 bytes, the counts of one grid, those of another
				data = ir.ValueBytes(uint32(0), uint32(turn+1), uint32(turn%2+1), uint32(1), uint32(5-turn), uint32(1), uint32(turn%2+1), uint32(0))
			}
			p := frames[n].Place(ir.MemID(i))
			copy(p.Bytes(m.Size), data)
		}
		p, err := q.Submit(context.Background(), backend.Submission{
			Label: "row", Executable: e, Frame: frames[n], States: sets[turn/3], Params: params[turn][:len(g.Params)], Replays: burst,
		})
		if err != nil {
			return err
		}
		flight[n] = p
	}
	for n := range frames {
		if err := land(n, 10+n); err != nil {
			return err
		}
	}
	if g.NextHost && w.peak != nil {
		if n := w.peak(); n > 1 {
			return fmt.Errorf("%s: %d command buffers are in flight together, and the host comes between replays of one each", g.Name, n)
		}
	}
	for i := range g.Memories {
		if m := &g.Memories[i]; m.Kind == ir.State {
			for n := range states {
				data := make([]byte, m.Size)
				if _, err := states[n][i].Buffer.ReadAt(data, states[n][i].Offset); err != nil {
					return err
				}
				out[fmt.Sprintf("%s: %%%s of set %d", g.Name, m.Name, n)] = string(data)
			}
		}
	}
	return nil
}

// mapped maps the initial contents of a memory, in pages of their own. The pages are never unmapped: what a
// wrong emission leaves behind may still use them.
func mapped(d backend.Device, page int64, m *ir.Memory) (backend.Buffer, error) {
	all, err := syscall.Mmap(-1, 0, int(m.Size+page), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return nil, err
	}
	at := -int64(uintptr(unsafe.Pointer(unsafe.SliceData(all)))) & (page - 1) // Metal's pages are larger than the machine's
	data := all[at : at+m.Size]
	if err := m.WriteInit(data); err != nil {
		return nil, err
	}
	return d.Map(data, true)
}

// timed checks that the times of commands are plausible and, if apart is set, that no two commands overlap. It
// adds to out which commands have times.
func timed(g *ir.Graph, r *backend.Result, out outcome, turn int, apart bool) error {
	if len(r.Times.Commands) == 0 && r.Times.Unsampled == 0 {
		return nil
	}
	var list []string
	var replay []backend.CommandTime
	for _, c := range r.Times.Commands {
		list = append(list, c.ID.String())
		if took := c.End.Sub(c.Begin); took < 0 || took < 500*time.Nanosecond && never0(g, c.ID) {
			return fmt.Errorf("%s took %v", c.ID, took)
		}
	}
	// Each replay converts the GPU's clock anew, so only times within one replay are compared.
	for i, c := range r.Times.Commands {
		if i == 0 || c.ID < r.Times.Commands[i-1].ID {
			replay = replay[:0]
		}
		for _, x := range replay {
			if apart && alone(g, x.ID) && alone(g, c.ID) && x.Begin.Before(c.End) && c.Begin.Before(x.End) {
				return fmt.Errorf("%s and %s ran at the same time: %v %v", x.ID, c.ID, x, c)
			}
		}
		replay = append(replay, c)
	}
	out[fmt.Sprintf("%s: times of submission %d", g.Name, turn)] = fmt.Sprint(list, r.Times.Unsampled)
	return nil
}

// never0 reports whether a command has work to do for all values of params.
func never0(g *ir.Graph, id ir.ID) bool {
	for _, n := range g.Nodes {
		if d, ok := n.(*ir.Dispatch); ok && d.ID == id {
			return d.Grid[0].IsConst() && d.Indirect == nil
		}
	}
	return true
}

// alone reports whether a command is the only one in its encoder if each timed command has one: a dispatch
// with a grid in memory has a guard beside it, and a carry runs in the encoder of the dispatch before it.
func alone(g *ir.Graph, id ir.ID) bool {
	last := false
	for _, n := range slices.Backward(g.Nodes) {
		switch n := n.(type) {
		case *ir.Carry:
			last = true
		case *ir.Dispatch:
			if n.ID == id {
				return n.Indirect == nil && !last
			}
			last = false
		case ir.Command:
			last = false
		}
	}
	return true
}

// live encodes the graphs' commands in live recordings of several command buffers.
func (w *workload) live(d backend.Device) (out outcome, err error) {
	out = outcome{}
	for _, g := range w.engine() {
		e := record.NewEncoder("live", record.Live(d))
		err = errors.Join(err, w.dispatch(e, g, out), e.Close())
	}
	return out, errors.Join(err, w.moved(d, out))
}

func (w *workload) dispatch(e *record.Encoder, g *ir.Graph, out outcome) error {
	tensors := map[string]record.Tensor{}
	for i := range g.Memories {
		switch m := &g.Memories[i]; m.Kind {
		case ir.Input:
			tensors[m.Name] = e.Input(m.Name, ir.U8, m.Size)
		case ir.Output:
			tensors[m.Name] = e.Output(m.Name, ir.U8, m.Size)
		case ir.State:
			tensors[m.Name] = e.StateFrom(m.Name, m.Init, ir.U8, m.Size)
		}
	}
	for turn := range 2 {
		for i := range g.Params {
			p := &g.Params[i]
			e.Param(p.Name, uint32(p.Min), uint32(p.Max))
			e.SetParam(p.Name, float64(1+2*turn))
		}
		for i := range g.Memories {
			m := &g.Memories[i]
			if m.Kind != ir.Input {
				continue
			}
			data := uints(int(m.Size/4), func(i int) uint32 { return uint32(i*i+3*turn+1) * 40503 })
			if m.Name == "counts" {
				data = ir.ValueBytes(uint32(0), uint32(turn+1), uint32(turn%2+1), uint32(1), uint32(5-turn), uint32(1), uint32(turn%2+1), uint32(0))
			}
			if err := e.Write(tensors[m.Name], data); err != nil {
				return err
			}
		}
		e.Encode(g)
		x, err := e.Finish()
		if err != nil {
			return err
		}
		var list []string
		for _, b := range x.CommandBuffers {
			for _, c := range b.Times.Commands {
				list = append(list, fmt.Sprint(c.ID, c.Op, c.Label))
			}
			if b.Times.Unsampled > 0 {
				list = append(list, fmt.Sprint(b.Times.Unsampled, " without"))
			}
		}
		if len(list) > 0 {
			out[fmt.Sprintf("%s: times of turn %d", g.Name, turn)] = fmt.Sprint(list)
		}
		for i := range g.Memories {
			m := &g.Memories[i]
			if m.Kind != ir.Output && m.Kind != ir.State {
				continue
			}
			data := make([]byte, m.Size)
			if err := e.Read(tensors[m.Name], data); err != nil {
				return err
			}
			out[fmt.Sprintf("%s: %%%s of turn %d", g.Name, m.Name, turn)] = string(data)
		}
	}
	return nil
}

// differs returns the name of a result that differs from want, is missing or is not in it; "" if none does.
func (o outcome) differs(want outcome) string {
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if got, ok := o[name]; !ok || got != want[name] {
			return name
		}
	}
	for _, name := range slices.Sorted(maps.Keys(o)) {
		if _, ok := want[name]; !ok {
			return name
		}
	}
	return ""
}

// digits matches the number of a queue at the end of its label.
var digits = regexp.MustCompile(`\d+$`)
