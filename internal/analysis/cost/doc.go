// Package cost models how long dispatches and whole schedules take on an Apple
// GPU, so that a pass can compare two schedules and a table can show what a
// rewrite is worth. It predicts no benchmark: its figures are public ones of
// single chips, carried over to others, and a measured profile replaces them.
//
// # The formula
//
// A command moves the bytes of its effects, weights included, each strided byte
// once; param-dependent lengths are taken in the middle of their params' bounds.
// Alone it takes
//
//	launch + bytes / (B · min(1, threadgroups / cores))
//
// B being the chip's bandwidth times its attainable share: a dispatch of few
// threadgroups leaves cores idle, and an idle core loads nothing. The commands of
// an epoch run concurrently:
//
//	max(Σ bytes / B, the longest of them alone, Σ concurrent launch)
//
// and a schedule takes the sum over its epochs, plus each barrier, each boundary
// of command buffers, and each fence or event. A kernel of a profile takes
// fixed + bytes · perByte alone instead.
//
// # Words
//
// A [Model] is a chip's or a profile's figures. [Work] is what one command
// costs, an [Epoch] adds up commands, [Time] is what a graph takes.
package cost
