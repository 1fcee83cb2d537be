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
// B is the chip's bandwidth times its attainable share, and A the arithmetic that its cores attain. A dispatch of few
// threadgroups leaves cores idle. Latency is the time of a kernel's dependent loads and sums, however few they are:
// no figure of a chip, but the median over the kernels that were measured. Work that each of several threadgroups has
// to do again for itself is repeated ([Repeated]): it takes the time of its operations, or of reading its operands
// from the cores' caches. The commands of an epoch run concurrently:
//
//	max(max(Σ bytes / B, Σ operations / A) + Σ repeated, the longest of them alone, Σ concurrent launch)
//
// and a schedule takes the sum over its epochs, plus each barrier, each boundary
// of command buffers, and each fence or event. A kernel that a profile has takes
// fixed + bytes · perByte alone instead, or what lies between the sizes that were measured ([Kernel.At]). A kernel
// that the profile lacks, though it has others, takes no less than the longest of the commands that it would replace, when it is weighed against them ([Model.Unmeasured]).
//
// A device may choose between several plans for launching commands. A serial plan takes one launch per command and
// the rest of each command's time alone. An overlapping plan takes one launch per epoch, the rest of each epoch's
// time, and the cost of fork and join for epochs of several commands ([Shape], [Way], [PlanTimes]).
//
// Lengths and grids depend on params. To compare schedules, each param is taken in the middle of its bounds
// ([Model.For]). Bounds, and rewrites that must pay for every value of the params, use the max of each expression
// over all params ([Model.AtMost]).
//
// # Words
//
// A [Model] is a chip's or a profile's figures, an [Estimator] is one applied to a
// graph. [Work] is what one command costs, an [Epoch] adds up commands, [Time] is what
// a graph takes. A [Fit] makes a model of measured times, which
// [Model.WriteProfile] writes as a profile.
package cost
