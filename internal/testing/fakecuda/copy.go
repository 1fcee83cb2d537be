//go:build linux && (amd64 || arm64)

package fakecuda

import "bytes"

// host is memory of the caller's that a copy reads or writes.
type host struct {
	data   []byte
	pinned *pinned // nil: the memory is pageable
}

// hostMemory returns the n bytes at an address of the host; false if it is 0, or of freed or too short pinned memory.
func (g *GPU) hostMemory(at, n uintptr) (host, bool) {
	if at == 0 {
		return host{}, false
	}
	if !g.pinned.ours(at) {
		g.pageable++
		return host{data: list[byte](at, n)}, true
	}
	m, off := g.pinned.find(at)
	if m == nil || off+int(n) > len(m.data) {
		g.note("a copy has %d bytes of pinned memory at %#x: they are not there, or no longer", n, at)
		return host{}, false
	}
	return host{m.data[off : off+int(n)], m}, true
}

// deviceMemory returns the n bytes at an address of the GPU, and their allocation; nil, noted, if there is none.
func (g *GPU) deviceMemory(at uintptr, n uintptr) (*allocation, []byte) {
	m := g.memory.span(uint64(at), int64(n))
	if m == nil {
		g.note("a copy has %d bytes of the GPU's memory at %#x: they are not there, or no longer", n, at)
		return nil, nil
	}
	off := int64(uint64(at) - m.at)
	return m, m.bytes()[off : off+int64(n)]
}

func toDevice(g *GPU, s *stream, a []uintptr) uint32 {
	m, to := g.deviceMemory(a[0], a[2])
	from, ok := g.hostMemory(a[1], a[2])
	if m == nil || !ok {
		return invalidValue
	}
	if from.pinned == nil {
		from.data = bytes.Clone(from.data) // pageable memory may change once the call has returned
	}
	g.copies(s, to, from.data, from.pinned, m)
	return success
}

func toHost(g *GPU, s *stream, a []uintptr) uint32 {
	to, ok := g.hostMemory(a[0], a[2])
	m, from := g.deviceMemory(a[1], a[2])
	if m == nil || !ok {
		return invalidValue
	}
	if to.pinned != nil {
		g.copies(s, to.data, from, to.pinned, m)
		return success
	}
	between := make([]byte, a[2])
	code := g.wait(g.copies(s, between, from, nil, m))
	if code == success {
		copy(to.data, between)
	}
	return code
}

func within(g *GPU, s *stream, a []uintptr) uint32 {
	dst, to := g.deviceMemory(a[0], a[2])
	src, from := g.deviceMemory(a[1], a[2])
	if dst == nil || src == nil {
		return invalidValue
	}
	if a[0] < a[1]+a[2] && a[1] < a[0]+a[2] && a[0] != a[1] {
		g.note("a copy of %d bytes from %#x to %#x: they lie in each other", a[2], a[1], a[0])
	}
	g.copies(s, to, from, nil, dst, src)
	return success
}

// copies adds a copy to the end of a stream, with the memory that it uses; host is nil if none of that is pinned.
func (g *GPU) copies(s *stream, to, from []byte, host *pinned, device ...*allocation) *op {
	o := &op{device: device, do: func() uint32 {
		copy(to, from)
		return success
	}}
	if host != nil {
		o.host = []*pinned{host}
	}
	return g.put(s, o)
}

func init() {
	registerOn(inside, "cuMemcpyHtoDAsync_v2", 4, 3, toDevice)
	registerOn(inside, "cuMemcpyDtoHAsync_v2", 4, 3, toHost)
	registerOn(inside, "cuMemcpyDtoDAsync_v2", 4, 3, within)
	registerOn(inside, "cuMemsetD8Async", 4, 3, func(g *GPU, s *stream, a []uintptr) uint32 {
		m, to := g.deviceMemory(a[0], a[2])
		if m == nil {
			return invalidValue
		}
		g.put(s, &op{device: []*allocation{m}, do: func() uint32 {
			fill(to, byte(a[1]))
			return success
		}})
		return success
	})
}
