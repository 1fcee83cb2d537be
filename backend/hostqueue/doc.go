// Package hostqueue is the queue of devices whose work is done by goroutines of this
// process: it keeps the order, the states of operations and the sticky error, and asks an
// [Executor] to do each operation.
//
//	func (d *Device) NewQueue() (backend.Queue, error) { return hostqueue.New(executor{d}, hostqueue.Options{}), nil }
//
// Operations run beside each other where nobody can tell that they do. Uploads, downloads and
// copies run beside replays, and beside each other, if no byte that one of them writes is
// touched by the other; so the outputs of one frame are read, and the inputs of another are
// written, while a replay runs. Replays of one executable overlap if the executor says so.
// Everything else, different executables and command buffers too, runs one at a time.
package hostqueue
