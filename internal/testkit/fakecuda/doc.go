// Package fakecuda stands in for NVIDIA's driver where there is none: a table of functions, in Go, that
// internal/cuda calls as it would those of libcuda. It shares no code with what it tests and sees calls
// and bytes alone.
//
//	gpu := fakecuda.Serve(t, fakecuda.Options{}) // answers until the test ends
//
// What its caller does wrong it notes, and the test fails by it at its end ([GPU.Failures]): calls without
// a current context, handles that are not or no longer, arguments that the driver would refuse, memory that
// is given back too early or written over its end, and whatever leaks.
//
// # Memory
//
// Addresses of the device's memory are of a range that nobody may touch; the bytes lie in buffers of
// software Metal, each at the end of its last page, filled with a pattern. Behind them is a page that ends
// a kernel, before them a canary. Pinned memory of the host is of a range too. No address of either is used
// twice, so what is used after it was freed is found.
//
// # How kernels run
//
// There is nothing here that reads PTX. [Image] is what a module is made of in its place: a kernel as LLVM
// IR, and how it is launched. Software Metal compiles it, for this machine, and runs each launch as a
// dispatch. The numbers are software Metal's, bit for bit.
//
// # What orders work
//
// Work waits for what the order of its stream, the events and the edges of graphs say, and for nothing
// else. With [Options.Seed] nothing runs before somebody waits for it, and of what may run any is next;
// two kernels that nothing orders run at the same time, each on the memory that was before both. Copies
// read and write the host's memory when they run. A program without races computes the same with every
// seed.
//
// A programmatic edge has a kernel begin early. If its image does not wait by itself, the edge orders
// nothing. If it does, it runs when those before it have ended, on what its early arguments and its table of
// additions had when the first of them began; if that makes a difference, it is a failure.
package fakecuda
