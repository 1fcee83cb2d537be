// Package record is how an engine gets its dispatches into a graph, onto a
// device, or both.
//
// # A first graph
//
// A [Session] has operations on [Tensor] values. Each chooses the kernel and grid
// that MLX would choose (docs/kernels.md); its result lies in scratch memory,
// unless [Into] says where.
//
//	s := record.New("norm")
//	x := s.Input("x", ir.F32, 1, 576)
//	w := s.RandomWeight("w", 1, ir.F32, 576)
//	y := s.Output("y", ir.F32, 1, 576)
//	s.Mul(s.RMSNorm(x, 1e-5), w, record.Into(y))
//	g, err := s.Graph()
//
// The types of elements and memories are those of package ir, files those of
// package ir/mlxg.
//
// Operations return no errors, so that a model reads like a formula: the first
// mistake is kept, with the line of the call that made it, and Graph or Finish
// returns it. The graph goes into a file with
//
//	err = mlxg.WriteFile(ctx, "norm.mlxg", &ir.Module{Graphs: []*ir.Graph{g}}, mlxg.WriteOptions{})
//
// and from there through the commands:
//
//	mlxc optimize norm.mlxg -o fast.mlxg
//	mlxreplay run fast.mlxg --in x=x.npy --out y=y.npy
//
// Package replay runs it in
// this process. The recorder writes what it is told, two dispatches for a norm
// and its weight: package passes makes one of them.
//
// # Memory
//
// Memory is declared by name: [Encoder.Weight], [Encoder.Input],
// [Encoder.Output], [Encoder.State]. Declaring it again gives the same memory, so
// that one function can record every token. Scratch comes from an arena
// ([Encoder.ScratchMark], [Encoder.ScratchReset]) or a [Pool]. Either reuses what was given back,
// and knows: a tensor of an earlier generation is a mistake where it is used,
// although its bytes are there. Scratch and outputs begin each recording
// undefined, those of a pool too, although on a device the old bytes are there:
// what must last is a state.
//
// Numbers that change from replay to replay, a position, a length, are params.
// Offsets, lengths and grids may depend on them:
//
//	pos := s.Param("pos", 0, 2047)
//	s.Silu(cache.Row(pos))
//	s.Require(pos.Add(n), 2048) // for every replay
//
// A replay, or [Encoder.SetParam] before a recording that is executed, gives them
// values.
//
// # On a device
//
// With [Live] the same calls execute, command buffer by command buffer:
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
// With [Capture] beside Live the graph is kept as well. With [Deferred] it is
// executed at Finish, after an [Optimizer] if Finish is given one ([Optimize]);
// that of package optimize returns what is proved to compute what was recorded, or
// nothing is executed.
// [Encoder.Commit] ends a command buffer earlier; everything before it is ordered
// before everything after it. The error of every command buffer reaches Wait,
// Finish or Close; [Encoder.SetContext] aborts what takes too long. Memory outlives the last command buffer that uses it.
//
// An encoder, its session, tensors and results are for one goroutine; several
// encoders may share a device, each with its own memory and queue.
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
// What a dispatch touches belongs to it and is given with it; nothing is recorded
// before the call that ends it. Of kernels of the library the declaration says
// what they touch; a foreign kernel of which nothing is said may touch anything.
// Foreign kernels are for captures, and for devices that have their code.
//
// # Barriers
//
// A barrier is placed exactly where a command conflicts, on bytes, with one since
// the last barrier. [Encoder.Conflicts] says why each stands, [Encoder.Groups] how
// many commands may overlap. [Encoder.Barrier] forces one; [ManualBarriers] leaves
// them to the caller, and [Result.Races] lists what they miss; [Serial] records what
// a serial encoder does, without any.
//
// # Not here
//
// What a pass does (package passes) or a proof shows (package prove), how a graph
// runs again and again (package replay), and model files (frontend/gguf).
package record
