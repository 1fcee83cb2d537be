// Package replay runs the graphs of a module on a device: plan once, then set
// params and inputs, run, get outputs, as often as asked.
//
//	s, err := replay.Open(cpu.New(0), module, replay.Options{})
//	g, err := s.Graph(ctx, "decode")
//	g.SetParam("pos", 5)
//	g.SetInput("tokens", token)
//	timing, err := g.Run(ctx)
//	logits, err := g.Output("logits")
//
// An [Instance] is a module on a device and owns its memory. All graphs of the module share the weights; each graph
// has its own scratch memory. The memory may be invisible to the host, because data is always copied in and out.
//
// # Frames
//
// Params, inputs and outputs belong to a [Frame]. A [Graph] has one, whose methods
// are the graph's; [Graph.NewFrame] makes more, so that the host fills the next while
// the device works on the last, and reads its outputs while the next one runs:
//
//	run, err := frame[i%3].Submit(ctx)
//
// A frame is in flight until its run has ended, and methods that set or get its memory wait
// for that. Replays of an instance begin in the order of submission. How far replays of one graph overlap depends
// on how the graph orders one replay after another.
//
// # States
//
// States of the same name are one memory in all graphs of the module. An instance has one set of states;
// [Instance.NewStates] makes more, for independent sequences on the same weights.
// [Frame.Use] chooses the set of a frame.
//
// If the context of a run ends, the run is aborted; [backend.Result] says whether between two replays or in the
// middle of one. In the second case the states are undefined, and no run on them is accepted before [States.Reset].
// The same holds after an error of the device, which also fails every run that was submitted later.
//
// # Before anything runs
//
// Planning refuses a graph that has no meaning, that exceeds a limit of the device, or that does not fit its
// memory. It runs the passes that the device asks for ([backend.Info]) and proves their result. Weights stay in
// their mapped file: buffers are made over windows of whole pages, none larger than the device's max buffer size. A
// weight that fits no window, or whose address is not aligned for its kernels, is copied; [Instance.Remarks] tells.
// Before each run the params are checked against their bounds and constraints.
package replay
