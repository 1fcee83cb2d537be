//go:build (darwin || linux) && (amd64 || arm64)

package metal

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/metal/internal/plan"
	"github.com/mlxc/mlxc/internal/objc"
	"github.com/mlxc/mlxc/ir"
)

// at is where a memory lies: the beginning of it in an MTLBuffer.
type at struct {
	buffer objc.ID
	offset int64
}

// placesOf are places as messages need them.
func placesOf(places []backend.Place) []at {
	out := make([]at, len(places))
	for i, p := range places {
		if b, ok := p.Buffer.(*buffer); ok {
			out[i] = at{b.id, p.Offset}
		}
	}
	return out
}

// sending is a replay, or a command buffer of a recording, on its way to messages.
type sending struct {
	*code
	queue  objc.ID
	places []at // by the numbers that operations have
	guard  at   // of plan.Guarded
	params []uint32
	next   bool // another replay of the submission follows
	device *Device
}

// buffer appends the messages that encode command buffer i of the plan. The result is the command
// buffer, which is the caller's.
func (s *sending) buffer(b *objc.Batch, i int) objc.Ref {
	p, o := s.plan, &s.device.options
	create := objc.CommandBuffer
	if o.Unretained {
		create = objc.CommandBufferUnretained
	}
	cb := b.Send(create, s.queue)
	b.SendTo(objc.RetainObject, cb)
	if name := s.names[i]; name != 0 {
		b.SendTo(objc.SetBufferLabel, cb, uintptr(name))
	}
	kind := objc.DispatchTypeConcurrent
	if o.Plan == Serial {
		kind = objc.DispatchTypeSerial
	}
	encoder := b.SendTo(objc.ComputeEncoderOfType, cb, uintptr(kind))
	part := p.Buffers[i]
	first, _ := slices.BinarySearchFunc(p.Vars, part.First, func(v plan.Var, op int32) int { return cmp.Compare(v.Op, op) })
	vars := p.Vars[first:]
	for n := part.First; n < part.End; n++ {
		depends := vars
		for len(vars) > 0 && vars[0].Op == n {
			vars = vars[1:]
		}
		s.op(b, encoder, &p.Ops[n], depends[:len(depends)-len(vars)])
	}
	b.SendTo(objc.EndEncoding, encoder)
	return cb
}

// op appends the messages of one operation. vars are what depends on params in it.
func (s *sending) op(b *objc.Batch, encoder objc.Ref, o *plan.Op, vars []plan.Var) {
	if o.Next && !s.next {
		return
	}
	off := o.Off
	for i := range vars {
		if vars[i].Part == plan.Offset {
			off = int64(vars[i].Value(s.params))
		}
	}
	slot := uintptr(o.Slot)
	switch o.Kind {
	case plan.SetPipeline:
		b.SendTo(objc.SetPipeline, encoder, uintptr(s.pipes[o.Index].id))
	case plan.SetBuffer:
		m := &s.guard
		if o.Index != plan.Guarded {
			m = &s.places[o.Index]
		}
		b.SendTo(objc.SetBuffer, encoder, uintptr(m.buffer), uintptr(m.offset+off), slot)
	case plan.SetOffset:
		b.SendTo(objc.SetBufferOffset, encoder, uintptr(s.places[o.Index].offset+off), slot)
	case plan.SetBytes:
		data := s.data + uintptr(o.Off)
		if len(vars) > 0 {
			var word [8]byte
			binary.LittleEndian.PutUint64(word[:], vars[0].Value(s.params))
			data = b.Bytes(word[:o.Len])
		}
		b.SendTo(objc.SetBytes, encoder, data, uintptr(o.Len), slot)
	case plan.SetThreadgroupMemory:
		b.SendTo(objc.SetThreadgroupMemory, encoder, uintptr(o.Len), slot)
	case plan.Barrier:
		b.SendTo(objc.MemoryBarrier, encoder, uintptr(objc.BarrierScopeBuffers))
	case plan.Push:
		b.SendTo(objc.PushDebugGroup, encoder, uintptr(s.labels[o.Index]))
	case plan.Pop:
		b.SendTo(objc.PopDebugGroup, encoder)
	case plan.Dispatch:
		g := &s.plan.Grids[o.Index]
		size := g.Size
		for i := range vars {
			if size[vars[i].Part-plan.Extent0] = vars[i].Value(s.params); size[vars[i].Part-plan.Extent0] == 0 {
				return // Metal takes no empty grid
			}
		}
		m := objc.DispatchThreadgroups
		if g.Unit == ir.Threads {
			m = objc.DispatchThreads
		}
		b.SendTo(m, encoder, b.Size(size[0], size[1], size[2]), s.group(b, g))
	case plan.DispatchIndirect:
		g := &s.plan.Grids[o.Index]
		b.SendTo(objc.DispatchIndirect, encoder, uintptr(s.guard.buffer), uintptr(s.guard.offset+off), s.group(b, g))
	}
}

func (s *sending) group(b *objc.Batch, g *plan.Grid) uintptr {
	return b.Size(uint64(g.Group[0]), uint64(g.Group[1]), uint64(g.Group[2]))
}
