// Package fakemetal stands in for Apple's libraries where there are none: a shared library, made
// from C by the clang that everything uses, that answers the functions and messages which
// internal/objc sends. It shares no code with what it tests and sees messages and bytes alone.
//
//	l := fakemetal.Build(t)             // the library, loaded; objc.Load(l.Path) finds it
//	m := l.Serve(t, fakemetal.Options{}) // it has a device until the test ends
//
// What its caller does wrong it notes, and tests ask for it at their end ([Library.Failures]):
// objects that leak or are released too often, methods that do not exist or are newer than the
// system, arguments that are none, and what Metal's API validation finds.
//
// # How kernels run
//
// The C half knows no kernels. It asks the Go half (serve.go, kernels.go) over a socket: for memory,
// which software Metal allocates in this process; for what a library has; and to run one dispatch
// after another. So C never calls Go, and its threads may wait.
//
// # What orders commands
//
// When a command buffer is committed, c/schedule.c makes a graph of what orders its dispatches, by
// what was emitted and nothing else; its comment has the rules. Where it is not known whether Metal
// orders, nothing is ordered. With [Options.Seed] the device is as lazy as it may be, and takes any
// order that the graph allows; of two dispatches that nothing orders and that touch the same buffer,
// some run at the same time, each on what was there before both. A program without races computes
// the same with every seed. Atomic operations of two such dispatches are lost, which they would not
// be on a GPU: order them.
//
// # Wrong messages
//
// A program that sends a wrong message must be told apart from one that sends the right one.
// [Metal.Mishear] has one message arrive otherwise than it was sent: not at all, twice, with another
// argument, as another selector. Then something has to be noted, to fail or to differ.
//
// # Memory of the host
//
// A buffer without a copy shares the caller's pages: the memory that software Metal has allocated is
// mapped over them, with the contents that they had, and when the buffer is freed a copy takes its
// place. Pages that are mapped for reading alone are copied when the buffer is made, and a dispatch
// that may write them is a failure. Buffers that are written and lie partly in each other's memory
// are not supported.
package fakemetal
