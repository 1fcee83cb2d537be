// Package fakemetal is a stand-in for Apple's libraries on Linux: a shared library, compiled from C
// by the same clang as everything else, that answers the functions and messages which internal/objc
// sends. It shares no code with the code under test, and sees only messages and bytes.
//
//	l := fakemetal.Build(t)             // the library, loaded; objc.Load(l.Path) finds it
//	m := l.Serve(t, fakemetal.Options{}) // there is an MTLDevice until the test ends
//
// It notes the mistakes of its callers, which tests check at their end ([Library.Failures]): objects
// that leak or are released too often, methods that do not exist or are newer than the system,
// arguments of wrong classes, and what Metal's API validation finds.
//
// # How kernels run
//
// The C half cannot run kernels. Over a socket it asks the Go half (serve.go, kernels.go) for memory,
// which software Metal allocates in this process, for the functions of a library, and to run
// dispatches one by one. So C never calls Go, and its threads may block. Kernels of a large source are
// compiled when a function is asked for. Blits are done in C. A program of another process, such as Python, is served by [ServeProcess].
//
// Programs compiled from Objective-C run on it too: ggml's own Metal backend, unmodified (scripts/ggml-host.sh).
//
// # What orders commands
//
// When a command buffer is committed, c/schedule.c makes a graph of its dispatches and of the orders
// between them, from the messages alone; its comment has the rules. Where Metal is not known to keep an
// order there is none. With [Options.Seed] the device begins as late as it may, and takes any order
// that the graph allows. Two unordered dispatches that touch the same buffer may run at the same
// time, each on the contents from before both. A program without races computes the same with every
// seed. Atomic operations of two such dispatches can be lost, which on a GPU they would not be: order
// them.
//
// # Wrong messages
//
// Tests must notice a program that sends a wrong message. [Metal.Mishear] alters one message on its
// way: it arrives not at all, twice, with another argument or as another selector. Then a test must
// see a broken rule, an error or another result.
//
// # Memory of the host
//
// For a buffer without a copy, memory that software Metal has allocated is mapped over the caller's
// pages, with their contents; when the buffer is freed, private memory with a copy takes its place.
// Read-only pages are copied when the buffer is made instead, and a dispatch that may write them is a
// failure. Writable buffers whose memory overlaps partly are not supported.
package fakemetal
