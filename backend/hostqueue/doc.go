// Package hostqueue is the queue of devices whose work is done by goroutines of this
// process: it keeps the order, the states of operations and the sticky error, and asks an
// [Executor] to do one operation at a time.
//
//	func (d *Device) NewQueue() (backend.Queue, error) { return hostqueue.New(executor{d}), nil }
//
// Not here: more than one operation at a time. A device that has hardware to
// order its work needs a queue of its own.
package hostqueue
