//go:build (darwin || linux) && (amd64 || arm64)

package metal

// Handle implements [Object]: the MTLDevice.
func (d *Device) Handle() uintptr { return uintptr(d.id) }

// Handle implements [Object]: the MTLCommandQueue. Command buffers that a program makes on it run in
// the order in which they are committed, as far as they share resources that Metal tracks, which all
// buffers of this package are but with [Options.Fences]. What is given to the queue here is committed
// a moment later, by a goroutine: wait for its end before something of one's own is committed that
// reads what it writes. Both count among the 64 command buffers that the queue holds.
func (q *queue) Handle() uintptr { return uintptr(q.x.id) }

// Handle implements [Object]: the MTLBuffer, shared with the host but with [Options.Private].
func (b *buffer) Handle() uintptr { return uintptr(b.id) }

var _, _, _ Object = (*Device)(nil), (*queue)(nil), (*buffer)(nil)
