//go:build linux && (amd64 || arm64)

package fakecuda

import (
	"math"
	"time"
)

// stream is a CUDA stream; tail is the op that was added to it last.
type stream struct{ tail *op }

// event is a CUDA event: a point in a stream, reached when the op that recorded it has ended.
type event struct {
	timed bool
	last  *op // that recorded it last; nil: none did
}

const (
	streamNonBlocking = 1

	eventBlockingSync  = 1
	eventDisableTiming = 2
)

// put adds an op to the end of a stream.
func (g *GPU) put(s *stream, o *op) *op {
	s.tail = g.add(o, s.tail)
	return s.tail
}

func init() {
	register(inside, "cuStreamCreate", 2, func(g *GPU, a []uintptr) uint32 {
		if a[0] == 0 || uint32(a[1])&^streamNonBlocking != 0 {
			return invalidValue
		}
		return give(a[0], g.handle(&stream{}))
	})
	registerDestroy("cuStreamDestroy_v2", func(*GPU, *stream) {}) // its pending work runs all the same
	registerOn(inside, "cuStreamSynchronize", 1, 0, func(g *GPU, s *stream, _ []uintptr) uint32 { return g.wait(s.tail) })
	register(inside, "cuEventCreate", 2, func(g *GPU, a []uintptr) uint32 {
		if a[0] == 0 || uint32(a[1])&^(eventBlockingSync|eventDisableTiming) != 0 {
			return invalidValue
		}
		return give(a[0], g.handle(&event{timed: a[1]&eventDisableTiming == 0}))
	})
	registerDestroy("cuEventDestroy_v2", func(*GPU, *event) {})
	registerOn(inside, "cuEventRecord", 2, 1, func(g *GPU, s *stream, a []uintptr) uint32 {
		e := object[event](g, a[0])
		if e == nil {
			return invalidHandle
		}
		e.last = g.put(s, &op{})
		return success
	})
	registerOn(inside, "cuEventSynchronize", 1, 0, func(g *GPU, e *event, _ []uintptr) uint32 { return g.wait(e.last) })
	register(inside, "cuEventElapsedTime", 3, elapsed)
}

func elapsed(g *GPU, a []uintptr) uint32 {
	from, to := object[event](g, a[1]), object[event](g, a[2])
	switch {
	case from == nil || to == nil:
		return invalidHandle
	case !from.timed || !to.timed || from.last == nil || to.last == nil:
		return invalidHandle
	case !from.last.done || !to.last.done:
		return notReady
	}
	return give(a[0], math.Float32bits(float32(float64(to.last.at-from.last.at)/float64(time.Millisecond))))
}
