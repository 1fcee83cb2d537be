//go:build (darwin || linux) && (amd64 || arm64)

package metal

// Handle implements [Object]: the MTLDevice.
func (d *Device) Handle() uintptr { return uintptr(d.id) }

// Handle implements [Object]: the MTLCommandQueue. A program may commit its own command buffers to it.
// Hazard tracking then orders them with those of this package by the order of commits, if they share a
// tracked buffer; all buffers are tracked unless [Options.Fences] is set. A goroutine commits what was
// submitted here a moment later: wait for its end before you commit something that reads its results.
// The program's command buffers count among the 64 that the queue holds too.
func (q *queue) Handle() uintptr { return uintptr(q.x.id) }

// Handle implements [Object]: the MTLBuffer. Its storage is shared, or private by [Options.Private].
func (b *buffer) Handle() uintptr { return uintptr(b.id) }

var _, _, _ Object = (*Device)(nil), (*queue)(nil), (*buffer)(nil)
