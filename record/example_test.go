package record_test

import (
	"encoding/binary"
	"fmt"
	"log"
	"math"
	"strings"

	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/internal/testing/testdevice"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/optimize"
	"github.com/mlxc/mlxc/record"
)

// This captures a first graph, y = norm(x) · w. Nothing is executed.
func Example() {
	s := record.New("norm")
	x := s.Input("x", ir.F32, 1, 576)
	w := s.RandomWeight("w", 1, ir.F32, 576)
	y := s.Output("y", ir.F32, 1, 576)

	s.Mul(s.RMSNorm(x, 1e-5), w, record.Into(y), record.Label("weight"))

	g, err := s.Graph()
	if err != nil {
		log.Fatal(err)
	}
	for i := range g.Nodes {
		fmt.Println(g.DescribeNode(i))
	}
	// Output:
	// #0 rms_norm
	// node 1 (barrier)
	// #1 elementwise_mul
}

// setFloats writes little-endian f32 numbers to b.
func setFloats(b []byte, v ...float32) {
	for i := range v {
		binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(v[i]))
	}
}

func floats(b []byte, n int) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return out
}

// This engine executes what it dispatches, token by token.
func ExampleLive() {
	d := cpu.New(1)
	defer d.Close()
	s := record.New("step", record.Live(d))
	defer s.Close()
	for token := range 3 {
		x := s.Input("x", ir.F32, 4)
		sum := s.State("sum", ir.F32, 4)
		in, err := s.Bytes(x)
		if err != nil {
			log.Fatal(err)
		}
		setFloats(in, 1, 2, 3, float32(token))
		s.Add(sum, x, record.Into(sum))
		if _, err := s.Finish(); err != nil {
			log.Fatal(err)
		}
		out, err := s.Bytes(sum)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(floats(out, 4))
	}
	// Output:
	// [1 2 3 0]
	// [2 4 6 1]
	// [3 6 9 3]
}

// This recording is executed at its end, after passes whose result is proved.
func ExampleDeferred() {
	d := cpu.New(1)
	defer d.Close()
	s := record.New("norm", record.Deferred(d))
	defer s.Close()
	x := s.Input("x", ir.F32, 1, 4)
	w := s.State("w", ir.F32, 4)
	y := s.Output("y", ir.F32, 1, 4)
	in, _ := s.Bytes(x)
	setFloats(in, 3, 3, 3, 3)
	weights, _ := s.Bytes(w)
	setFloats(weights, 1, 2, 3, 4)

	s.Mul(s.RMSNorm(x, 0), w, record.Into(y))
	o := optimize.New("annotate,fuse,dce,barriers")
	if _, err := s.Finish(record.Optimize(o)); err != nil {
		log.Fatal(err)
	}
	r := o.Result
	fmt.Printf("%s: %d dispatches, now %d\n", r.Proof.Verdict, r.Before.Dispatches, r.After.Dispatches)
	out, _ := s.Bytes(y)
	fmt.Println(floats(out, 4))
	// Output:
	// proved: 2 dispatches, now 1
	// [1 2 3 4]
}

// With Live and Capture together, the engine runs and also returns a graph.
func ExampleCapture() {
	d := cpu.New(1)
	defer d.Close()
	s := record.New("double", record.Live(d), record.Capture())
	defer s.Close()
	x, y := s.Input("x", ir.F32, 2), s.Output("y", ir.F32, 2)
	in, _ := s.Bytes(x)
	setFloats(in, 1, 2)
	s.Add(x, x, record.Into(y))
	r, err := s.Finish()
	if err != nil {
		log.Fatal(err)
	}
	out, _ := s.Bytes(y)
	fmt.Println(floats(out, 2), r.Graph.Stats().Dispatches)
	// Output: [2 4] 1
}

// scale is a kernel that is not in the kernel library: y = x · factor. It has a threadgroup
// argument.
var scale = ir.Kernel{
	Name: "scale", Function: "scale", Library: ir.Library{Kind: ir.SourceFile, Path: "scale.metal"},
	Args: []ir.Arg{
		{Slot: 0, Name: "x", Access: ir.ReadArg, Type: ir.F32},
		{Slot: 1, Name: "y", Access: ir.WriteArg, Type: ir.F32},
		{Slot: 2, Name: "factor", Kind: ir.ConstantArg, Type: ir.F32, Count: 1},
		{Slot: 0, Name: "partial", Kind: ir.ThreadgroupArg, Type: ir.F32},
	},
}

// This dispatch has every kind of argument: buffers, a buffer with an offset, inline bytes
// and threadgroup memory. It states what it touches, and its grid counts threadgroups.
func ExampleEncoder_Dispatch() {
	e := record.NewEncoder("raw")
	x := e.Input("x", ir.F32, 4096)
	y := e.Output("y", ir.F32, 4096)
	half := ir.Const(8192) // bytes
	k := e.Kernel(scale)
	e.Dispatch(k).
		Buffer(0, x.Slice(half, half)).
		Buffer(1, y.Slice(half, half)).
		Float32(2, 0.5).
		ThreadgroupMemory(0, 1024).
		Reads(x.Slice(half, half)).
		Writes(y.Slice(half, half)).
		Op("scale").Label("upper half").
		Threadgroups(record.Size(8), [3]uint32{256, 1, 1})
	e.Dispatch(k).Buffer(0, x).Buffer(1, y).Bytes(2, []byte{0, 0, 128, 63}).
		Reads(x).Writes(y).
		Threads(record.Size(4096), [3]uint32{256, 1, 1})
	r, err := e.Finish()
	if err != nil {
		log.Fatal(err)
	}
	for _, c := range r.Conflicts() {
		fmt.Println(c)
	}
	// Output: WAW: #1 scale after #0 upper half on %y[0:16384]
}

// Barriers stand exactly where commands conflict, and one can be forced.
func ExampleEncoder_Barrier() {
	s := record.New("t")
	x := s.Input("x", ir.F32, 64)
	a := s.Silu(x)
	s.Sigmoid(x)
	fmt.Println(s.TrackerSize(), "commands may overlap")
	s.Barrier()
	fmt.Println(s.TrackerSize(), "after a barrier")
	s.Silu(a) // conflicts with nothing since the barrier
	c := s.Counters()
	fmt.Println(c.Dispatches, "dispatches,", c.Barriers, "barrier,", c.AutoBarriers, "of them automatic")
	// Output:
	// 2 commands may overlap
	// 0 after a barrier
	// 3 dispatches, 1 barrier, 0 of them automatic
}

// If the caller places the barriers, Races lists the conflicts that they miss.
func ExampleManualBarriers() {
	s := record.New("t", record.ManualBarriers())
	x, y := s.Input("x", ir.F32, 64), s.Output("y", ir.F32, 64)
	a := s.Silu(x)
	s.Sigmoid(a, record.Into(y))
	r, err := s.Finish()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(r.Races())
	// Output: [RAW: #1 sigmoid after #0 silu on %scratch[0:256]]
}

// This captures a part of what a live encoder executes.
func ExampleEncoder_StartCapture() {
	d := cpu.New(1)
	defer d.Close()
	s := record.New("t", record.Live(d))
	defer s.Close()
	x, y := s.Input("x", ir.F32, 64), s.Output("y", ir.F32, 64)
	s.Silu(x, record.Into(y))
	s.StartCapture()
	s.Sigmoid(x, record.Into(y))
	fmt.Println(s.Capturing())
	g, err := s.TakeCapture()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(g.DescribeNode(len(g.Nodes)-1), s.Capturing())
	// Output:
	// true
	// #1 sigmoid false
}

// What a dispatch touches can be stated after it was recorded.
func ExampleEncoder_Annotate() {
	e := record.NewEncoder("t")
	x, y := e.Input("x", ir.F32, 64), e.Output("y", ir.F32, 64)
	id := e.Dispatch(e.Kernel(scale)).Buffer(0, x).Buffer(1, y).Float32(2, 2).ThreadgroupMemory(0, 256).
		Threads(record.Size(64), [3]uint32{64, 1, 1})
	e.Annotate(id, []record.Tensor{x}, []record.Tensor{y})
	r, err := e.Finish()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(r.Graph.Stats().Unannotated)
	// Output: 0
}

// The kind of operation is only a name for readers. Passes decide from the bytes that a
// dispatch touches whether it may move.
func ExampleDispatch_Op() {
	e := record.NewEncoder("t")
	x, y := e.Input("x", ir.F32, 64), e.Output("y", ir.F32, 64)
	e.Dispatch(e.Function("v_Silufloat32float32")).Buffer(0, x).Buffer(1, y).Op("my_activation").
		Threads(record.Size(64), [3]uint32{64, 1, 1})
	r, err := e.Finish()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(r.Graph.Nodes[0].(*ir.Dispatch).Op)
	// Output: my_activation
}

// There are counters of each encoder, and of all encoders of the process.
func ExampleEncoder_Counters() {
	d := cpu.New(1)
	defer d.Close()
	record.ResetProcessCounters()
	for range 2 {
		s := record.New("t", record.Live(d))
		x, y := s.Input("x", ir.F32, 64), s.Output("y", ir.F32, 64)
		s.Sigmoid(s.Silu(x), record.Into(y))
		if _, err := s.Finish(); err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%+v\n", s.Counters())
		s.ResetCounters()
		s.Close()
	}
	fmt.Println(record.ProcessCounters().Dispatches)
	// Output:
	// {Syncs:1 Dispatches:2 CommandBuffers:1 Barriers:1 AutoBarriers:1 ElidedBarriers:1 BarrierTime:0s FailedBuffers:0 DiscardedBuffers:0}
	// {Syncs:1 Dispatches:2 CommandBuffers:1 Barriers:1 AutoBarriers:1 ElidedBarriers:1 BarrierTime:0s FailedBuffers:0 DiscardedBuffers:0}
	// 4
}

// This asks for the times of command buffers and dispatches, on a device that cannot time
// all of them.
func ExampleTimeDispatches() {
	c := cpu.New(1)
	defer c.Close()
	d := testdevice.New(c, testdevice.Options{Samples: 4}) // room for two dispatches
	s := record.New("t", record.Live(d), record.TimeDispatches())
	defer s.Close()
	x, y := s.Input("x", ir.F32, 64), s.Output("y", ir.F32, 64)
	for range 3 {
		s.Silu(x, record.Into(y))
	}
	r, err := s.Finish()
	if err != nil {
		log.Fatal(err)
	}
	cb := r.CommandBuffers[0]
	fmt.Println(cb.Commands, "commands,", len(cb.Times.Commands), "times,", cb.Times.Duration() > 0 && r.GPU == cb.Times.Duration())
	fmt.Println(r.Warnings)
	// Output:
	// 3 commands, 2 times, true
	// [1 dispatches have no time, because a command buffer has room for a limited number of samples, or the GPU has taken none: commit more often]
}

// Command buffers have labels, which errors name.
func ExampleEncoder_Commit() {
	c := cpu.New(1)
	defer c.Close()
	d := testdevice.New(c, testdevice.Options{Fault: func(n int, label string) error {
		if label == "layer 0" {
			return fmt.Errorf("out of memory")
		}
		return nil
	}})
	s := record.New("t", record.Live(d))
	defer s.Close()
	x, y := s.Input("x", ir.F32, 64), s.Output("y", ir.F32, 64)
	a := s.Silu(x)
	s.Commit("layer 0")
	s.Sigmoid(a, record.Into(y))
	s.Commit("layer 1")
	_, err := s.Finish()
	fmt.Println(err)
	// Output: record t: command buffer "layer 0": out of memory
}

// This waits in the middle of a recording, and abandons what was not committed.
func ExampleEncoder_CommitAndWait() {
	d := cpu.New(1)
	defer d.Close()
	s := record.New("t", record.Live(d))
	defer s.Close()
	x, y := s.State("x", ir.F32, 2), s.Output("y", ir.F32, 2)
	s.Fill(x, 0, "zero")
	s.Sigmoid(x, record.Into(y))
	if err := s.CommitAndWait("first"); err != nil {
		log.Fatal(err)
	}
	out, _ := s.Bytes(y)
	fmt.Println(floats(out, 2))
	s.Add(y, y, record.Into(y))
	s.Discard()
	if _, err := s.Finish(); err != nil {
		log.Fatal(err)
	}
	out, _ = s.Bytes(y)
	fmt.Println(floats(out, 2), "after the abandoned addition")
	// Output:
	// [0.5 0.5]
	// [0.5 0.5] after the abandoned addition
}

// A captured graph can be encoded into another encoder, as it was recorded or with barriers
// only where they are needed.
func ExampleEncoder_EncodeRecomputed() {
	s := record.New("layer", record.ManualBarriers())
	x, y := s.Input("x", ir.F32, 64), s.Output("y", ir.F32, 64)
	for range 3 {
		s.Silu(x, record.Into(y))
		s.Barrier() // after each dispatch, as some engines do
		s.Sigmoid(x)
		s.Barrier()
	}
	g, err := s.Graph()
	if err != nil {
		log.Fatal(err)
	}
	e := record.NewEncoder("as recorded")
	e.Encode(g)
	fmt.Println(e.Groups().Barriers)
	e = record.NewEncoder("recomputed")
	e.EncodeRecomputed(g)
	fmt.Println(e.Groups().Barriers)
	// Output:
	// 6
	// 2
}

// The pass split makes two command buffers, so that the device begins with the first one
// while the host encodes the second.
func ExampleOptimize_split() {
	d := cpu.New(1)
	defer d.Close()
	s := record.New("t", record.Deferred(d))
	defer s.Close()
	x := s.Input("x", ir.F32, 64)
	y := s.Output("y", ir.F32, 64)
	a := s.Silu(x)
	for range 99 {
		a = s.Silu(a)
	}
	s.Silu(a, record.Into(y))
	r, err := s.Finish(record.Optimize(optimize.New("annotate,reorder{lookahead=64},barriers,split")))
	if err != nil {
		log.Fatal(err)
	}
	for _, cb := range r.CommandBuffers {
		fmt.Println(cb.Commands)
	}
	// Output:
	// 64
	// 37
}

// This prints what a finished recording tells about itself.
func ExampleEncoder_Finish() {
	d := cpu.New(1)
	defer d.Close()
	s := record.New("t", record.Deferred(d))
	defer s.Close()
	x, y := s.Input("x", ir.F32, 64), s.Output("y", ir.F32, 64)
	s.Mul(s.Silu(x), x, record.Into(y))
	o := optimize.New("")
	r, err := s.Finish(record.Optimize(o), record.NoWait())
	if err != nil {
		log.Fatal(err)
	}
	if err := r.Wait(); err != nil {
		log.Fatal(err)
	}
	fmt.Println("recorded", r.Graph.Stats().Dispatches, "executed", r.Optimized.Stats().Dispatches, o.Result.Proof.Verdict)
	fmt.Println("times:", r.Encode > 0, r.GPU > 0)
	// Output:
	// recorded 2 executed 1 proved
	// times: true true
}

// A pool hands out memory for as long as it is needed. A tensor must not be used after its
// memory was given back.
func ExampleEncoder_NewPool() {
	s := record.New("t")
	pool := s.NewPool("tmp", ir.Scratch)
	x := s.Input("x", ir.F32, 64)
	a := pool.Alloc(ir.F32, 64)
	s.Silu(x, record.Into(a))
	pool.Free(a)
	b := pool.Alloc(ir.F32, 64)
	s.Silu(x, record.Into(b))
	fmt.Println(pool.Bytes(), "bytes serve both")
	s.Add(a, b)
	_, err := s.Finish()
	line, mistake, _ := strings.Cut(err.Error(), ": ")
	fmt.Println(strings.HasPrefix(line, "record/example_test.go:")) // the line of the Add
	fmt.Println(mistake)
	// Output:
	// 256 bytes serve both
	// true
	// record t: @vv_Addfloat32: argument 0: %tmp.0[0:256] was given back before (ScratchReset, Free, or the end of its recording)
}

// This is the attention of one token: queries and keys are rotated to its position, keys
// and values are written to their caches, and the queries attend to all positions so far.
func ExampleSession_SDPA() {
	s := record.New("attention")
	pos := s.Param("pos", 0, 127)
	q := s.Input("q", ir.F32, 1, 8, 64) // 8 heads
	k, v := s.Input("k", ir.F32, 1, 2, 64), s.Input("v", ir.F32, 1, 2, 64)
	keys, values := s.State("keys", ir.F32, 128, 2, 64), s.State("values", ir.F32, 128, 2, 64)
	q = s.Rope(q, pos, 10000, false)
	k = s.Rope(k, pos, 10000, false)
	s.KVWrite(keys, k, pos)
	s.KVWrite(values, v, pos)
	s.SDPA(q, keys, values, pos.AddConst(1), 0.125, record.Into(s.Output("y", ir.F32, 1, 8, 64)))
	g, err := s.Graph()
	if err != nil {
		log.Fatal(err)
	}
	d := g.Nodes[len(g.Nodes)-1].(*ir.Dispatch)
	fmt.Println(g.Kernels[d.Kernel].Function, g.FormatView(d.Bindings[1].View))
	// Output: sdpa_rows_float_64_64 %keys[0:512*$pos + 512]
}

// A cache of f16 takes half the memory of one of f32. One dispatch rounds keys and values into it.
func ExampleSession_KVWriteRounded() {
	s := record.New("attention")
	pos := s.Param("pos", 0, 127)
	q, k, v := s.Input("q", ir.F32, 1, 8, 64), s.Input("k", ir.F32, 1, 2, 64), s.Input("v", ir.F32, 1, 2, 64)
	keys, values := s.State("keys", ir.F16, 128, 2, 64), s.State("values", ir.F16, 128, 2, 64)
	s.KVWriteRounded(keys, values, k, v, pos)
	s.SDPA(q, keys, values, pos.AddConst(1), 0.125, record.Into(s.Output("y", ir.F32, 1, 8, 64)))
	g, err := s.Graph()
	if err != nil {
		log.Fatal(err)
	}
	for _, n := range g.Nodes {
		if d, ok := n.(*ir.Dispatch); ok {
			fmt.Println(g.Kernels[d.Kernel].Function)
		}
	}
	// Output:
	// out0[i] = round(f16, in0[i]); out1[i] = round(f16, in1[i])
	// sdpa_rows_float_float16_t_64_64
}

// A cache of 8 bits takes little more than a quarter of the memory of one of f32.
func ExampleSession_KVWriteQuantized() {
	s := record.New("attention")
	pos := s.Param("pos", 0, 127)
	q, k, v := s.Input("q", ir.F32, 1, 8, 64), s.Input("k", ir.F32, 1, 2, 64), s.Input("v", ir.F32, 1, 2, 64)
	keys := record.QuantizedCache{Codes: s.State("keys", ir.I8, 128, 2, 64), Scales: s.State("keys.scales", ir.F16, 128, 2, 2)}
	values := record.QuantizedCache{Codes: s.State("values", ir.I8, 128, 2, 64), Scales: s.State("values.scales", ir.F16, 128, 2, 2)}
	s.KVWriteQuantized(keys, values, k, v, pos)
	s.SDPAQuantized(q, keys, values, pos.AddConst(1), record.Attention{Scale: 0.125}, record.Into(s.Output("y", ir.F32, 1, 8, 64)))
	g, err := s.Graph()
	if err != nil {
		log.Fatal(err)
	}
	for _, n := range g.Nodes {
		if d, ok := n.(*ir.Dispatch); ok {
			fmt.Println(g.Kernels[d.Kernel].Function, g.FormatView(d.Bindings[2].View))
		}
	}
	// Output:
	// kv_write_q8_0_float32 %keys[128*$pos:128*$pos + 128]
	// sdpa_rows_float_q8_0_64_64 %values[0:128*$pos + 128]
}

// Layers of some models see the last positions alone, or keep scores within bounds, or have sinks.
func ExampleSession_SDPABy() {
	s := record.New("attention")
	pos := s.Param("pos", 0, 127)
	q, keys, values := s.Input("q", ir.F16, 1, 8, 256), s.State("keys", ir.F16, 128, 2, 256), s.State("values", ir.F16, 128, 2, 256)
	for _, by := range []record.Attention{
		{Scale: 0.0625, Window: 32}, {Scale: 0.0625, Window: 32, Cap: 50}, {Scale: 0.0625, Sinks: s.Input("sinks", ir.F16, 8)},
	} {
		s.SDPABy(q, keys, values, pos.AddConst(1), by)
	}
	g, err := s.Graph()
	if err != nil {
		log.Fatal(err)
	}
	for _, n := range g.Nodes {
		if d, ok := n.(*ir.Dispatch); ok {
			fmt.Println(g.Kernels[d.Kernel].Function)
		}
	}
	// Output:
	// sdpa_rows_window_float16_t_256_256
	// sdpa_rows_capped_float16_t_256_256
	// sdpa_rows_sinks_float16_t_256_256
}

// These are the parts of a model around its layers: from the ID of a token to that of the
// next one.
func ExampleSession_Matmul() {
	s := record.New("head")
	table := record.Dense(s.RandomWeight("embedding", 1, ir.F32, 100, 32))
	x := s.Embed(s.Input("token", ir.I32, 1), table)
	x = s.Add(s.Mul(x, x), s.Silu(x))
	logits := s.Matmul(x, table)
	s.Argmax(logits, record.Into(s.Output("next", ir.U32, 1)))
	g, err := s.Graph()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(g.Stats().Dispatches, "dispatches,", g.Stats().Barriers, "barriers")
	// Output: 6 dispatches, 4 barriers
}
