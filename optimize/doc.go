// Package optimize runs a pipeline of passes over a graph and answers for the
// result: it is proved to compute what the recording does, or it is not given
// out. The command of the same name only prints what [Run] says.
//
// # Words
//
// Of a proof that cannot tell, the offending pass is the first after which the
// graph is not proved; it is undone: the pipeline runs again without it, and the
// result is proved anew. A proof that refuses has found a mistake of ours, or a
// recording that is wrong in itself; [Reduce] makes the least recording that it
// can for which that still happens, and [Reproduction] its text.
//
// [Figures] are what a row of the table has: counts, depths, modelled time.
// They are taken of an annotated copy, so that those of a recording without
// effects can be compared with the rest.
//
// # Of one's own
//
// The pipeline may hold passes of the caller's own ([passes.New]), and graphs kernels that
// the caller declares ([msl.Register]), which the proof has to be told
// ([prove.Options]). An example does both, and uses public packages alone. An
// [Optimizer] is the form that an encoder asks for.
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
