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
// An [Instance] is a module on a device: it owns the memory. Weights are shared by
// all graphs of the module, scratch belongs to one graph. The memory may be where the
// host cannot see it: bytes go in and out by copies.
//
// # Frames
//
// Params, inputs and outputs belong to a [Frame]. A [Graph] has one, whose methods
// are the graph's; [Graph.NewFrame] makes more, so that the host fills the next while
// the device works on the last, and reads its outputs while the next one runs:
//
//	run, err := frame[i%3].Submit(ctx)
//
// A frame is in flight until its run has ended; what sets or gets its memory then waits
// for that. Replays of an instance begin in the order of their submissions; those of one
// graph overlap as far as its end allows.
//
// # States
//
// States that have one name are one memory in all graphs of the module. An instance has a
// set of them; [Instance.NewStates] makes more, each a sequence of its own on the same
// weights: [Frame.Use] chooses.
//
// A run whose context ends is aborted: [backend.Result] says whether between two replays or
// in the middle of one. States that were torn are undefined, and nothing runs on them
// before [States.Reset]. The same holds after an error of the device, which also
// ends everything that was submitted after it.
//
// # Before anything runs
//
// Planning a graph refuses one without a meaning, one that is beyond the device's
// limits, and one that does not fit its memory. It runs the passes that the device wants
// ([backend.Info]) and proves their result. Weights stay in their file: windows of whole
// pages, none greater than the device's greatest buffer; a weight that no window can hold, or
// that lies at an address that its kernels cannot read from, is copied. [Instance.Remarks] tells.
// Before each run the params are checked against their bounds and constraints.
package replay
