// Package record takes the dispatches of an engine and puts them into a graph, runs them
// on a device, or both.
//
// # A first graph
//
// A [Session] has operations on [Tensor] values. Each operation chooses the kernel and
// grid that MLX would choose (docs/kernels.md). Its result lies in scratch memory unless
// [Into] says where.
//
//	s := record.New("norm")
//	x := s.Input("x", ir.F32, 1, 576)
//	w := s.RandomWeight("w", 1, ir.F32, 576)
//	y := s.Output("y", ir.F32, 1, 576)
//	s.Mul(s.RMSNorm(x, 1e-5), w, record.Into(y))
//	g, err := s.Graph()
//
// The types of elements and memories are those of package ir, and files are written by
// package ir/mlxg.
//
// Operations return no errors, so that a model reads like a formula. The first mistake is
// kept, with the line of the call that made it, and Graph or Finish returns it. This
// writes the graph into a file:
//
//	err = mlxg.WriteFile(ctx, "norm.mlxg", &ir.Module{Graphs: []*ir.Graph{g}}, mlxg.WriteOptions{})
//
// The commands read that file:
//
//	mlxc optimize norm.mlxg -o fast.mlxg
//	mlxreplay run fast.mlxg --in x=x.npy --out y=y.npy
//
// Package replay runs the graph in this process. The recorder does not optimize: a norm
// and the multiplication by its weight are two dispatches. Package passes fuses them.
//
// # Memory
//
// Memory is declared by name: [Encoder.Weight], [Encoder.Input], [Encoder.Output],
// [Encoder.State]. Declaring a name again returns the same memory, so that one function
// can record every token. Scratch memory comes from an arena ([Encoder.ScratchMark],
// [Encoder.ScratchReset]) or from a [Pool]. Both reuse memory that was given back. Using a
// tensor after its memory was given back is a mistake, which is reported even though its
// bytes still exist. The contents of scratch memory and of outputs are undefined when a
// recording begins, even if the device still holds the old bytes. Contents that must last
// belong in a state.
//
// Numbers that change from replay to replay, such as a position or a length, are params.
// Offsets, lengths and grids may depend on them:
//
//	pos := s.Param("pos", 0, 2047)
//	s.Silu(cache.Row(pos))
//	s.Require(pos.Add(n), 2048) // checked at every replay
//
// Their values are given to each replay. If the recording itself is executed,
// [Encoder.SetParam] sets them before it.
//
// # On a device
//
// With [Live], the same calls are executed, one command buffer after the other:
//
//	s := record.New("decode", record.Live(cpu.New(0)))
//	defer s.Close()
//	for … {
//		in, err := s.Bytes(x)    // fill the input
//		s.SetParam("pos", pos)
//		model(s)                 // dispatch
//		r, err := s.Finish()     // commit, wait
//		out, err := s.Bytes(y)   // read the output
//	}
//
// With [Capture] in addition to Live, the graph is kept as well. With [Deferred], the
// recording is executed at Finish, and Finish may be given an [Optimizer] that rewrites it
// first ([Optimize]). The optimizer of package optimize proves that its result computes
// what was recorded; if it cannot, nothing is executed.
//
// [Encoder.Commit] ends a command buffer earlier. Everything before it is ordered before
// everything after it. The error of every command buffer is returned by Wait, Finish or
// Close. [Encoder.SetContext] aborts what takes too long. Memory stays allocated until the
// last command buffer that uses it has ended.
//
// An encoder and its session, tensors and results belong to one goroutine. Several
// encoders may share a device; each has its own memory and queue.
//
// # One dispatch in full
//
// A Session stands on an [Encoder], which takes dispatches one by one, of any
// kernel:
//
//	kernel := s.Kernel(scale) // an ir.Kernel; Function gives those of the library
//	s.Dispatch(kernel).Buffer(0, x).Buffer(1, y).Float32(2, 0.5).
//		Reads(x).Writes(y).Label("scale").
//		Threads(record.Size(4096), [3]uint32{256, 1, 1})
//
// What a dispatch touches is stated as part of it, and nothing is recorded before the call
// that ends it. The kernels of the library have declarations that say what they touch. A
// dispatch of any other kernel may touch anything, unless the caller states what it
// touches. Such kernels can be captured, and executed on devices that have their code.
//
// # Barriers
//
// A barrier is placed exactly where a command conflicts with a command since the last
// barrier: both touch some of the same bytes, and one of them writes them.
// [Encoder.Conflicts] lists the reason for each barrier, and [Encoder.Groups] how many
// commands may overlap. [Encoder.Barrier] forces a barrier. [ManualBarriers] leaves all
// barriers to the caller, and [Result.Races] lists the conflicts that they miss. [Serial]
// records what a serial encoder does, without barriers.
//
// # What this package does not do
//
// It does not optimize (package passes), prove (package prove), replay a graph many times
// (package replay), or read model files (frontend/gguf).
package record
