package record_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/internal/testing/testdevice"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/ir/mlxg"
	"github.com/mlxc/mlxc/optimize"
	"github.com/mlxc/mlxc/record"
)

// device returns a test device with one worker, and checks at the end of the test that
// nothing leaked.
func device(t *testing.T, o testdevice.Options) *testdevice.Device {
	c := cpu.New(1)
	d := testdevice.New(c, o)
	t.Cleanup(func() {
		require.Empty(t, d.Leaks())
		require.NoError(t, c.Close())
	})
	return d
}

func put(t *testing.T, e *record.Encoder, x record.Tensor, v ...float32) {
	b, err := e.Bytes(x)
	require.NoError(t, err)
	for i := range v {
		binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(v[i]))
	}
}

func get(t *testing.T, e *record.Encoder, x record.Tensor, n int) []float32 {
	b, err := e.Bytes(x)
	require.NoError(t, err)
	out := make([]float32, n)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return out
}

// The same calls give the same numbers and counters, whether they are executed live,
// deferred, or deferred after passes.
func TestModes(t *testing.T) {
	for _, mode := range []string{"live", "both", "deferred", "optimized"} {
		t.Run(mode, func(t *testing.T) {
			d := device(t, testdevice.Options{})
			with := map[string][]record.Setting{
				"live": {record.Live(d)}, "both": {record.Live(d), record.Capture()},
				"deferred": {record.Deferred(d)}, "optimized": {record.Deferred(d)},
			}[mode]
			var finish []record.FinishOption
			if mode == "optimized" {
				finish = append(finish, record.Optimize(optimize.New("")))
			}
			s := record.New("t", with...)
			for round := range 3 {
				x := s.Input("x", ir.F32, 4)
				y := s.Output("y", ir.F32, 4)
				put(t, s.Encoder, x, 1, 2, 3, float32(round))
				a := s.Mul(x, x)
				b := s.Add(x, x)
				s.Commit("first")
				s.Add(a, b, record.Into(y))
				r, err := s.Finish(finish...)
				require.NoError(t, err)
				f := float32(round)
				require.Equal(t, []float32{3, 8, 15, f*f + 2*f}, get(t, s.Encoder, y, 4))
				require.Equal(t, mode != "live", r.Graph != nil)
				require.Equal(t, mode == "optimized", r.Optimized != nil)
				want := 2
				if mode == "optimized" {
					want = len(r.CommandBuffers) // the pass fuse may leave one
				}
				require.Len(t, r.CommandBuffers, want)
				require.Equal(t, record.GroupStats{Commands: 3, Groups: 2, Sizes: []int{1, 1}}, r.Groups)
			}
			c := s.Counters()
			require.Equal(t, int64(9), c.Dispatches)
			require.Equal(t, int64(3), c.Syncs)
			require.Zero(t, c.Barriers)
			require.NoError(t, s.Close())
		})
	}
}

// The status of every command buffer is checked, not only that of the last one.
func TestB6FaultOfTheFirstCommandBuffer(t *testing.T) {
	fault := errors.New("page fault")
	d := device(t, testdevice.Options{Fault: func(n int, _ string) error {
		if n == 0 {
			return fault
		}
		return nil
	}})
	s := record.New("t", record.Live(d))
	x, y := s.Input("x", ir.F32, 4), s.Output("y", ir.F32, 4)
	s.Mul(x, x)
	s.Commit("first")
	s.Add(x, x, record.Into(y))
	r, err := s.Finish()
	require.ErrorIs(t, err, fault)
	require.ErrorContains(t, err, `command buffer "first"`)
	require.ErrorIs(t, r.CommandBuffers[0].Err, fault)
	require.ErrorContains(t, r.CommandBuffers[1].Err, `not executed, for the queue has failed: command buffer "first": page fault`)
	require.Equal(t, int64(1), s.Counters().FailedBuffers)

	// The caller was told of the failure, so the next recording works again.
	put(t, s.Encoder, x, 1, 2, 3, 4)
	s.Add(x, x, record.Into(y))
	_, err = s.Finish()
	require.NoError(t, err)
	require.Equal(t, []float32{2, 4, 6, 8}, get(t, s.Encoder, y, 4))
	require.NoError(t, s.Close())
}

// The bytes that are bound and the bytes that are stated to be touched both come from the
// tensor, so they agree however the tensor was sliced.
func TestC1OffsetOfASlice(t *testing.T) {
	e := record.NewEncoder("t")
	x := e.Output("x", ir.F32, 256)
	slice := x.Slice(ir.Const(100), ir.Const(400))
	again := slice.Slice(ir.Const(28), ir.Const(64))
	k := e.Kernel(foreign)
	e.Dispatch(k).Buffer(0, again).Writes(again).Threads(record.Size(1), [3]uint32{1, 1, 1})
	r, err := e.Finish()
	require.NoError(t, err)
	d := r.Graph.Nodes[0].(*ir.Dispatch)
	require.Equal(t, "%x[128:192]", r.Graph.FormatView(d.Bindings[0].View))
	require.Equal(t, "%x[128:192]", r.Graph.FormatRegion(d.Effects.Writes[0].Region))
}

// foreign is a kernel without a declaration. Not all of its arguments need be bound, because
// its function constant may switch some off.
var foreign = ir.Kernel{
	Name: "foreign", Library: ir.Library{Kind: ir.SourceFile, Path: "foreign.metal"}, Function: "foreign",
	Constants: []ir.FunctionConstant{{Index: 0, Name: "alone", Type: ir.Bool, Bits: 1}},
	Args:      []ir.Arg{{Slot: 0, Name: "a", Access: ir.ReadWriteArg, Type: ir.U8}, {Slot: 1, Name: "b", Access: ir.ReadWriteArg, Type: ir.U8}, {Slot: 2, Name: "n", Kind: ir.ConstantArg, Type: ir.U32, Count: 1}},
}

// Arguments, effects and labels of a failed or unfinished dispatch do not reach the next one.
func TestC2NothingPending(t *testing.T) {
	e := record.NewEncoder("t")
	x, y := e.State("x", ir.F32, 64), e.State("y", ir.F32, 64)
	k := e.Kernel(foreign)
	e.Dispatch(k).Buffer(0, x).Reads(x).Op("mine").Label("mine")
	e.Dispatch(k).Buffer(0, y).Threads(record.Size(1), [3]uint32{1, 1, 1})
	_, err := e.Finish()
	requireMistake(t, err, "record t: @foreign (mine): was begun and not ended (Threads, Threadgroups) before another")

	// After the error the encoder is as new, and a dispatch without stated effects and label
	// has none.
	e.Dispatch(k).Buffer(0, y).Threads(record.Size(1), [3]uint32{1, 1, 1})
	r, err := e.Finish()
	require.NoError(t, err)
	d := r.Graph.Nodes[0].(*ir.Dispatch)
	require.Nil(t, d.Effects)
	require.Empty(t, d.Op+d.Label)
}

// Calls that make no sense in a given mode are errors and are not silently ignored.
func TestC3NoSilentNoOps(t *testing.T) {
	d := device(t, testdevice.Options{})
	for name, call := range map[string]func(e *record.Encoder) error{
		"Wait":          func(e *record.Encoder) error { return e.Wait() },
		"CommitAndWait": func(e *record.Encoder) error { return e.CommitAndWait("x") },
		"StartCapture":  func(e *record.Encoder) error { e.StartCapture(); return e.Err() },
	} {
		for mode, with := range map[string][]record.Setting{"capture": nil, "deferred": {record.Deferred(d)}} {
			e := record.NewEncoder("t", with...)
			require.Error(t, call(e), "%s while %s", name, mode)
			require.NoError(t, e.Close())
		}
	}
	for name, call := range map[string]func(e *record.Encoder) error{
		"SetParam": func(e *record.Encoder) error { e.Param("n", 1, 2); e.SetParam("n", 1); return e.Err() },
		"Bytes":    func(e *record.Encoder) error { _, err := e.Bytes(e.Input("x", ir.F32, 1)); return err },
		"Map":      func(e *record.Encoder) error { e.Map("x", ir.Input, make([]byte, 4), ir.F32, 1); return e.Err() },
		"NoWait":   func(e *record.Encoder) error { _, err := e.Finish(record.NoWait()); return err },
	} {
		require.Error(t, call(record.NewEncoder("t")), "%s while capturing", name)
	}
	e := record.NewEncoder("t", record.Live(d))
	_, err := e.Finish(record.Optimize(optimize.New("")))
	require.ErrorContains(t, err, "this recording has been executed: use Deferred")
	_, err = e.TakeCapture()
	require.ErrorContains(t, err, "not capturing")
	_, _ = e.Finish()
	require.NoError(t, e.Close())
}

// Annotate changes the dispatch that it names, whatever was recorded after that.
func TestC4LateAnnotation(t *testing.T) {
	e := record.NewEncoder("t")
	x, y := e.State("x", ir.F32, 64), e.State("y", ir.F32, 64)
	k := e.Kernel(foreign)
	one := [3]uint32{1, 1, 1}
	first := e.Dispatch(k).Buffer(0, x).Threads(record.Size(1), one)
	e.Dispatch(k).Buffer(0, y).Threads(record.Size(1), one)
	e.Barrier()
	e.Annotate(first, nil, []record.Tensor{x})
	r, err := e.Finish()
	require.NoError(t, err)
	require.Equal(t, "%x[0:256]", r.Graph.FormatRegion(r.Graph.Nodes[0].(*ir.Dispatch).Effects.Writes[0].Region))
	require.Nil(t, r.Graph.Nodes[2].(*ir.Dispatch).Effects)

	first = e.Dispatch(k).Buffer(0, x).Threads(record.Size(1), one)
	e.Annotate(first+1, nil, []record.Tensor{x})
	_, err = e.Finish()
	require.ErrorContains(t, err, "this recording has no dispatch #1")
}

// Memory stays allocated until the last command buffer that uses it has ended, even if
// nobody waits, and if the device does not retain memory itself.
func TestC5MemoryOutlivesAsynchronousCommits(t *testing.T) {
	d := device(t, testdevice.Options{Hold: true})
	s := record.New("t", record.Deferred(d))
	x, y := s.Input("x", ir.F32, 4), s.Output("y", ir.F32, 4)
	put(t, s.Encoder, x, 1, 2, 3, 4)
	pool := s.NewPool("tmp", ir.Scratch)
	a := pool.Alloc(ir.F32, 4)
	s.Add(x, x, record.Into(a))
	s.Mul(a, s.Mul(a, a), record.Into(y))
	r, err := s.Finish(record.NoWait(), record.Optimize(optimize.New("rename,schedule,barriers,plan")))
	require.NoError(t, err)
	pool.Reset()
	pool.Trim()
	_, err = s.Bytes(y)
	require.ErrorContains(t, err, "has not ended: call Wait first")
	d.ReleaseAll()
	require.NoError(t, r.Wait())
	require.Equal(t, []float32{8, 64, 216, 512}, get(t, s.Encoder, y, 4))
	require.NoError(t, s.Close())
}

// No error leaves a command buffer open. A queue has only 64 of them.
func TestC6ErrorsLeaveNoCommandBuffer(t *testing.T) {
	d := device(t, testdevice.Options{})
	s := record.New("t", record.Deferred(d))
	l := record.New("t", record.Live(d))
	for range 2 * 64 {
		x := s.Input("x", ir.F32, 4)
		s.Add(x, x, record.Into(s.Output("y", ir.F32, 4)))
		_, err := s.Finish(record.Optimize(optimize.New("reorder{lookahead=none}")))
		require.Error(t, err)

		x = l.Input("x", ir.F32, 4)
		l.Add(x, x)
		l.Add(x, l.Input("z", ir.F32, 3)) // shapes do not fit
		_, err = l.Finish()
		require.ErrorContains(t, err, "do not fit")

		l.Add(x, x)
		l.Discard()
		require.Zero(t, d.Uncommitted())
	}
	x := l.Input("x", ir.F32, 4)
	l.Add(x, x, record.Into(l.Output("y", ir.F32, 4)))
	_, err := l.Finish()
	require.NoError(t, err)
	require.Equal(t, int64(256), l.Counters().DiscardedBuffers)
	require.NoError(t, s.Close())
	require.NoError(t, l.Close())
}

// Memory of a pool that was given back and handed out again belongs to its new tensor. The
// old tensor can no longer be used or given back.
func TestC7Generations(t *testing.T) {
	e := record.NewEncoder("t")
	p := e.NewPool("tmp", ir.Scratch)
	a := p.Alloc(ir.F32, 64)
	p.Free(a)
	b := p.Alloc(ir.F32, 64)
	require.Equal(t, a.Mem, b.Mem, "the memory is reused")
	e.Fill(b, 0, "")
	require.NoError(t, e.Err())
	e.Fill(a, 0, "late")
	requireMistake(t, e.Err(), "record t: a dispatch (late): argument 0: %tmp.0[0:256] was given back before (ScratchReset, Free, or the end of its recording)")
	_, err := e.Finish()
	require.Error(t, err)
	p.Free(a)
	require.ErrorContains(t, e.Err(), "Free of %tmp.0[0:256], which was given back before")
}

// Tensors of the scratch arena are given back by ScratchReset and by the end of their
// recording.
func TestScratchGenerations(t *testing.T) {
	s := record.New("t")
	x := s.Input("x", ir.F32, 64)
	m := s.ScratchMark()
	a := s.Silu(x)
	s.ScratchReset(m)
	b := s.Silu(x)
	require.Equal(t, a.Off, b.Off)
	s.Silu(b)
	require.NoError(t, s.Err())
	s.Silu(a)
	require.ErrorContains(t, s.Err(), "was given back before")
	_, err := s.Finish()
	require.Error(t, err)
	s.Silu(b)
	require.ErrorContains(t, s.Err(), "was given back before")
}

// Two mapped memories must not share a page of the host if one of them is written, because
// the conflicts between them would not be found.
func TestB9MapsOverOnePage(t *testing.T) {
	d := device(t, testdevice.Options{})
	host := make([]byte, 256<<10)
	e := record.NewEncoder("t", record.Live(d))
	e.Map("a", ir.Input, host[:64<<10], ir.U8, 64<<10)
	e.Map("b", ir.Input, host[32<<10:96<<10], ir.U8, 64<<10) // allowed, because both are only read
	require.NoError(t, e.Err())
	e.Map("c", ir.State, host[128<<10:160<<10], ir.U8, 32<<10)
	e.Map("d", ir.Input, host[160<<10:161<<10], ir.U8, 1<<10) // lies right behind c, and shares a page with it unless host is aligned to pages
	e.Map("e", ir.State, host[16<<10:17<<10], ir.U8, 1<<10)
	require.ErrorContains(t, e.Err(), "shares a page of the host (16384 bytes) with %")
	_, _ = e.Finish()
	require.NoError(t, e.Close())
}

// Conflicts returns the reason for each automatic barrier, and Groups how many commands may
// run concurrently.
func ExampleEncoder_Conflicts() {
	s := record.New("t")
	x, y := s.Input("x", ir.F32, 64), s.Output("y", ir.F32, 64)
	a := s.Silu(x, record.Label("gate"))
	b := s.Sigmoid(x)
	s.Mul(a, b, record.Into(y), record.Label("product"))
	for _, c := range s.Conflicts() {
		fmt.Println(c)
	}
	fmt.Println(s.Groups())
	// Output:
	// RAW: #2 product after #0 gate on %scratch[0:256]
	// commands=3 barriers=1 groups=2 ratio=1.50
	//   size 1: 1
	//   size 2: 1
}

// An engine that does not write graphs itself writes its first recording to the file that
// the environment names.
func TestDumpByEnvironment(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(record.DumpVariable, dir)
	d := device(t, testdevice.Options{})
	for range 2 {
		s := record.New("de code", record.Live(d))
		for n := range 2 {
			x, y := s.Input("x", ir.F32, 4), s.Output("y", ir.F32, 4)
			for range n + 1 {
				s.Silu(x, record.Into(y))
			}
			_, err := s.Finish()
			require.NoError(t, err)
			require.False(t, s.Capturing())
		}
		require.NoError(t, s.Close())
	}
	f, err := mlxg.Open(context.Background(), filepath.Join(dir, "de_code.mlxg"), mlxg.OpenOptions{})
	require.NoError(t, err)
	require.Equal(t, 1, f.Module.Graphs[0].Stats().Dispatches)
	require.NoError(t, f.Close())

	t.Setenv(record.DumpVariable, filepath.Join(dir, "no", "such", "x.mlxg"))
	s := record.New("t", record.Live(d))
	s.Silu(s.Input("x", ir.F32, 4), record.Into(s.Output("y", ir.F32, 4)))
	_, err = s.Finish()
	require.ErrorContains(t, err, "MLXC_CAPTURE")
	require.Zero(t, d.Uncommitted())
	require.NoError(t, s.Close())
}

// Changes of the set of resident memory are handed to the system at most once for each
// command buffer, however much is allocated.
func TestResidency(t *testing.T) {
	d := device(t, testdevice.Options{})
	s := record.New("t", record.Live(d))
	pool := s.NewPool("tmp", ir.Scratch)
	for i := range 4 {
		x := s.Input("x", ir.F32, 64)
		for range i + 1 { // more memory each time
			s.Silu(x, record.Into(pool.Alloc(ir.F32, 64)))
		}
		s.Commit("a")
		s.Silu(x, record.Into(s.Output("y", ir.F32, 64)))
		_, err := s.Finish()
		require.NoError(t, err)
		pool.Reset()
	}
	require.Equal(t, 5, d.ResidencyFlushes(), "one for each of the four first commits, one for y")
	require.NoError(t, s.Close())
}

// The counters may be read while other goroutines encode.
func TestCountersFromOtherGoroutines(t *testing.T) {
	before := record.ProcessCounters().Dispatches
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			s := record.New("t")
			x := s.Input("x", ir.F32, 64)
			done := make(chan int64)
			go func() {
				last := int64(0)
				for last < 100 {
					last = s.Counters().Dispatches
				}
				done <- last
			}()
			for range 100 {
				s.Silu(x)
			}
			<-done
		})
	}
	wg.Wait()
	require.GreaterOrEqual(t, record.ProcessCounters().Dispatches-before, int64(400))
}

// It is an error if a captured recording reads bytes that nothing has written, although the
// same recording may seem to work live, in memory that something else wrote before.
func TestUndefinedReads(t *testing.T) {
	s := record.New("t")
	y := s.Output("y", ir.F32, 64)
	a := s.Scratch(ir.F32, record.Dims(64)...)
	s.Silu(a, record.Into(y))
	_, err := s.Finish()
	require.EqualError(t, err, "record t: #0 silu reads %scratch[0:256], which nothing in this recording has written before: scratch and outputs begin undefined")

	pool := s.NewPool("tmp", ir.Scratch)
	p := pool.Alloc(ir.F32, 64)
	s.Fill(p.Slice(ir.Const(0), ir.Const(128)), 0, "half")
	s.Silu(p, record.Into(y))
	_, err = s.Finish()
	require.ErrorContains(t, err, "#1 silu reads %tmp.0[0:256]")

	// If no output or state depends on the read, it is allowed.
	s.Silu(p)
	_, err = s.Finish()
	require.NoError(t, err)

	// If it depends on a param whether a row was written, there is only a warning.
	n := s.Param("n", 0, 1)
	rows := s.Scratch(ir.F32, ir.Const(2), ir.Const(64))
	s.Fill(rows.Row(n), 0, "one row")
	s.Silu(rows.Row(ir.Const(0)), record.Into(y))
	r, err := s.Finish()
	require.NoError(t, err)
	require.Equal(t, []string{"#1 silu may read bytes of %scratch[0:256] that nothing in this recording has written before: the writes before it were not shown to cover all of it"}, r.Warnings)

	d := device(t, testdevice.Options{})
	l := record.New("t", record.Live(d), record.Capture())
	l.Silu(l.Scratch(ir.F32, record.Dims(64)...), record.Into(l.Output("y", ir.F32, 64)))
	r, err = l.Finish()
	require.NoError(t, err)
	require.Len(t, r.Warnings, 1)
	require.NoError(t, l.Close())
}

// The pass split makes command buffers without an order between them. Executed in the
// reverse order, they give the same results.
func TestUnorderedCommandBuffers(t *testing.T) {
	d := device(t, testdevice.Options{Hold: true, Reverse: true})
	s := record.New("t", record.Deferred(d))
	x := s.Input("x", ir.F32, 4)
	put(t, s.Encoder, x, 1, 2, 3, 4)
	chain := func(name string, n int) record.Tensor {
		y := s.Output(name, ir.F32, 4)
		a := x
		for range n - 1 {
			a = s.Add(a, x)
		}
		s.Add(a, x, record.Into(y))
		return y
	}
	y := chain("y", 64)
	s.Barrier() // split divides the recording at a barrier
	z := chain("z", 99)
	r, err := s.Finish(record.Optimize(optimize.New("annotate,split")), record.NoWait())
	require.NoError(t, err)
	var orders []ir.CommitOrder
	for _, n := range r.Optimized.Nodes {
		if c, ok := n.(*ir.Commit); ok {
			orders = append(orders, c.Order)
		}
	}
	require.Equal(t, []ir.CommitOrder{ir.OrderNone, ir.OrderEvent}, orders)
	d.ReleaseAll()
	require.NoError(t, r.Wait())
	require.True(t, r.CommandBuffers[0].Times.Begin.After(r.CommandBuffers[1].Times.Begin), "backwards")
	require.Equal(t, []float32{65, 130, 195, 260}, get(t, s.Encoder, y, 4))
	require.Equal(t, []float32{100, 200, 300, 400}, get(t, s.Encoder, z, 4))
	require.NoError(t, s.Close())
}

// The time for finding conflicts is measured only with TimeBarriers.
func TestTimeBarriers(t *testing.T) {
	for _, with := range [][]record.Setting{nil, {record.TimeBarriers()}} {
		s := record.New("t", with...)
		x, y := s.Input("x", ir.F32, 64), s.Output("y", ir.F32, 64)
		for range 100 {
			s.Silu(x, record.Into(y))
		}
		require.Equal(t, with != nil, s.Counters().BarrierTime > 0)
	}
}
