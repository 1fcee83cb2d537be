// Package optimize runs a pipeline of passes over a graph and proves the result: a graph that is
// not proved to compute what the recording does is not returned. The command of the same name only
// prints the result of [Run].
//
// # Words
//
// If a proof cannot tell, the offending pass is the first one after which the graph is not proved.
// It is undone: the pipeline runs again without it, and the new result is proved. If a proof
// refuses the result, a pass has a bug, or the recording itself is wrong. [Reduce] makes a small
// recording for which the proof still refuses, and [Reproduction] writes it as text.
//
// [Figures] are what a row of the table shows: counts, depths, modelled time. They are computed of
// an annotated copy, so that the figures of a recording without effects can be compared with the
// others.
//
// # Passes and kernels of your own
//
// The pipeline may contain passes of the caller ([passes.New]), and graphs may use kernels that the
// caller declares ([msl.Register]), which the proof has to be told ([prove.Options]). An example
// does both with public packages alone. An [Optimizer] is the interface that an encoder calls.
//
// # What it does not do
//
// It rewrites nothing itself, and reads and writes no file.
//
// # Smallest example
//
//	p := passes.DefaultPipeline()
//	r, err := optimize.Run(ctx, recorded, optimize.Options{Pipeline: p})
//	if err == nil && r.Proof.Verdict == prove.Proved {
//		use(r.Optimized) // nil unless proved
//	}
package optimize
