//go:build (darwin || linux) && (amd64 || arm64)

package metal

// Handle implements [Object]: the MTLDevice.
func (d *Device) Handle() uintptr { return uintptr(d.id) }

// Handle implements [Object]: the MTLCommandQueue. Command buffers that a program makes on it run in
// the order in which they are committed, as far as they share resources that Metal tracks, which all
// buffers of this package are; wait for an Event of the queue before that which they read, and for
// their end before more is given to the queue that depends on them. They count among the 64 that the
// queue holds.
func (q *queue) Handle() uintptr { return uintptr(q.x.id) }

// Handle implements [Object]: the MTLBuffer, of shared storage, whose hazards Metal tracks.
func (b *buffer) Handle() uintptr { return uintptr(b.id) }

var _, _, _ Object = (*Device)(nil), (*queue)(nil), (*buffer)(nil)
