//go:build linux && (amd64 || arm64)

package fakecuda

import "unsafe"

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
		return host{data: unsafe.Slice(bytePointer(at), n)}, true
	}
	m, off := g.pinned.find(at)
	if m == nil || off+int(n) > len(m.data) {
		g.note("a copy has %d bytes of pinned memory at %#x: they are not there, or no longer", n, at)
		return host{}, false
	}
	return host{m.data[off : off+int(n)], m}, true
}

func bytePointer(p uintptr) *byte { return at[byte](p) }

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

func (g *GPU) toDevice(dst, src, n, on uintptr) uint32 {
	s := object[stream](g, on)
	if s == nil {
		return invalidHandle
	}
	m, to := g.deviceMemory(dst, n)
	from, ok := g.hostMemory(src, n)
	if m == nil || !ok {
		return invalidValue
	}
	o := &op{device: []*allocation{m}}
	if from.pinned != nil {
		o.host = []*pinned{from.pinned}
	} else {
		from.data = append([]byte(nil), from.data...) // pageable memory may change once the call has returned
	}
	o.do = func() uint32 {
		copy(to, from.data)
		return success
	}
	g.put(s, o)
	return success
}

func (g *GPU) toHost(dst, src, n, on uintptr) uint32 {
	s := object[stream](g, on)
	if s == nil {
		return invalidHandle
	}
	to, ok := g.hostMemory(dst, n)
	m, from := g.deviceMemory(src, n)
	if m == nil || !ok {
		return invalidValue
	}
	o := &op{device: []*allocation{m}}
	if to.pinned != nil {
		o.host = []*pinned{to.pinned}
		o.do = func() uint32 {
			copy(to.data, from)
			return success
		}
		g.put(s, o)
		return success
	}
	between := make([]byte, n)
	o.do = func() uint32 {
		copy(between, from)
		return success
	}
	code := g.wait(g.put(s, o))
	if code == success {
		copy(to.data, between)
	}
	return code
}

func init() {
	register(inside, "cuMemcpyHtoDAsync_v2", 4, func(g *GPU, a []uintptr) uint32 { return g.toDevice(a[0], a[1], a[2], a[3]) })
	register(inside, "cuMemcpyDtoHAsync_v2", 4, func(g *GPU, a []uintptr) uint32 { return g.toHost(a[0], a[1], a[2], a[3]) })
	register(inside, "cuMemcpyDtoDAsync_v2", 4, func(g *GPU, a []uintptr) uint32 {
		s := object[stream](g, a[3])
		if s == nil {
			return invalidHandle
		}
		dst, to := g.deviceMemory(a[0], a[2])
		src, from := g.deviceMemory(a[1], a[2])
		if dst == nil || src == nil {
			return invalidValue
		}
		if a[0] < a[1]+a[2] && a[1] < a[0]+a[2] && a[0] != a[1] {
			g.note("a copy of %d bytes from %#x to %#x: they lie in each other", a[2], a[1], a[0])
		}
		g.put(s, &op{device: []*allocation{dst, src}, do: func() uint32 {
			copy(to, from)
			return success
		}})
		return success
	})
	register(inside, "cuMemsetD8Async", 4, func(g *GPU, a []uintptr) uint32 {
		s := object[stream](g, a[3])
		if s == nil {
			return invalidHandle
		}
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
