// Package hostqueue implements [backend.Queue] for devices whose operations are done by goroutines
// of this process: it keeps the order, the statuses of operations and the error of a failed
// queue, and calls an [Executor] to do each operation.
//
//	func (d *Device) NewQueue() (backend.Queue, error) { return hostqueue.New(executor{d}, hostqueue.Options{}), nil }
//
// Operations run at the same time only if that cannot change a result. Uploads, downloads and
// copies run beside replays, and beside each other, unless they share a byte that one of them
// writes; so the outputs of one frame are read, and the inputs of another are written, while a
// replay runs. Replays of one executable overlap if the executor says so. All other operations,
// such as replays of different executables and command buffers, run one at a time.
package hostqueue
