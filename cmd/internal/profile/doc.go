// Package profile says where the time of replays goes: as a table by kernel, as a trace that Perfetto and
// Chrome open, and as a page. `mlxreplay profile` writes them.
//
//	g := profile.New(ctx, graph)
//	g.Add(timing) // of each replay
//	r := &profile.Report{Title: "g.mlxg", Device: "cpu", Model: model, Graphs: []*profile.Graph{g}}
//	err := r.Page(ctx, w)
//
// # Words
//
// A command's time is what the device says of it, or nothing. Where it says nothing of any, times are by
// ablation: the replay is timed with all commands of one kernel left out, beside the whole one, and the
// difference is that kernel's time ([Ablate]). Such times do not add up to the replay where commands overlap.
//
// A replay is busy while at least one of its commands runs, and idle in the rest of its time. A gap is idle
// time before an epoch.
//
// The ceilings of a roofline (Williams, Waterman, Patterson 2009) are the bandwidth and the arithmetic of the
// model. Where the model was fitted to the very replays ([Report.Fitted]), they are the highest that a kernel of
// them attained, and no property of the device.
package profile
