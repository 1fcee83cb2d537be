// Package cost models how long dispatches and whole schedules take on an Apple
// GPU, or on one of NVIDIA's, so that a pass can compare two schedules and a table can show what a
// rewrite is worth. It predicts no benchmark: its figures are public ones of
// single chips, carried over to others, and a measured profile replaces them.
//
// # The formula
//
// A command moves the bytes of its effects, weights included, each strided byte
// once, and does the operations of its kernel's terms. Alone it takes
//
//	launch + latency + (max(bytes / B, operations / A) + repeated) / min(1, threadgroups / cores)
//
// B being the chip's bandwidth times its attainable share, A the arithmetic that
// its cores attain: a dispatch of few threadgroups leaves cores idle. Latency
// is what the loads and sums of a kernel take that wait for one another, however few: no figure of a chip, but
// the median of what was measured of kernels. What each of several
// threadgroups has to compute for itself is repeated ([Repeated]): it takes the time of its
// operations, or of reading its operands from the cores' caches. The commands of an epoch run
// concurrently:
//
//	max(max(Σ bytes / B, Σ operations / A) + Σ repeated, the longest of them alone, Σ concurrent launch)
//
// and a schedule takes the sum over its epochs, plus each barrier, each boundary
// of command buffers, and each fence or event. A kernel of a profile takes
// fixed + bytes · perByte alone instead. One that is not in a profile which has others takes, where it is
// weighed against commands that it would replace, no less than the longest of them ([Model.Unmeasured]).
//
// A device that launches commands by one of several plans takes, by each, a launch for every command in a row
// and the rest of its time alone, or a launch for every epoch, the rest of the epoch's time, and for those of
// several commands what it takes to fork and to join ([Shape], [Way], [PlanTimes]).
//
// Lengths and grids depend on params. Schedules are compared with each param in the
// middle of its bounds ([Model.For]); bounds, and what pays for every value of the
// params, are about the greatest of each expression ([Model.AtMost]).
//
// # Words
//
// A [Model] is a chip's or a profile's figures, an [Estimator] is one applied to a
// graph. [Work] is what one command costs, an [Epoch] adds up commands, [Time] is what
// a graph takes. A [Fit] makes a model of measured times, which
// [Model.WriteProfile] writes as a profile.
package cost
