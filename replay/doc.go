// Package replay runs the graphs of a module on a device: plan once, then set
// params, fill inputs, run, read outputs, as often as asked.
//
//	s, err := replay.Open(cpu.New(0), module, replay.Options{})
//	g, err := s.Graph("decode")
//	g.SetParam("pos", 5)
//	copy(g.Input("tokens"), token)
//	timing, err := g.Run(ctx)
//	logits := g.Output("logits")
//
// A [Session] owns the memory: weights and states are shared by all graphs of
// the module (states by name), inputs, outputs and scratch belong to one graph.
// Before each run the params are checked against their bounds and constraints.
// Argument memory is written from them before each run; it is there once, so a
// run of such a graph begins after the one before it has ended.
package replay
