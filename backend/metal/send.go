//go:build (darwin || linux) && (amd64 || arm64)

package metal

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/internal/plan"
	"github.com/mlxc/mlxc/internal/objc"
	"github.com/mlxc/mlxc/ir"
)

// at is the place of a memory: an MTLBuffer, and the byte in it at which the memory begins.
type at struct {
	buffer objc.ID
	offset int64
}

// placesOf converts places to the buffers and offsets that messages take; zero where there is no buffer.
func placesOf(places []backend.Place) []at {
	out := make([]at, len(places))
	for i, p := range places {
		if b, ok := p.Buffer.(*buffer); ok {
			out[i] = at{b.id, p.Offset}
		}
	}
	return out
}

// sending is what turning a plan into messages needs, for one replay or one live command buffer.
type sending struct {
	*code
	queue   objc.ID
	places  []at // by Index of operations
	guard   at   // the memory of guards (plan.Guarded)
	params  []uint32
	next    bool // another replay of the submission follows, so carries run
	device  *Device
	stored  *stored  // the indirect command buffers that are executed; nil: dispatches are encoded
	samples *samples // nil: no times are taken
	fence   *fence
}

// create appends the messages that make command buffer i of the plan. It is retained for the caller.
func (s *sending) create(b *objc.Batch, i int) objc.Ref {
	m := objc.CommandBuffer
	if s.device.options.Unretained {
		m = objc.CommandBufferUnretained
	}
	cb := b.Send(m, s.queue)
	b.SendTo(objc.RetainObject, cb)
	if name := s.names[i]; name != 0 {
		b.SendTo(objc.SetBufferLabel, cb, uintptr(name))
	}
	return cb
}

// fill appends the messages that encode command buffer i of the plan.
func (s *sending) fill(b *objc.Batch, cb objc.Ref, i int) {
	part := s.plan.Buffers[i]
	vars := s.vars(part.First)
	first := part.First
	sample := int32(-1)
	if o := &s.plan.Ops[first]; o.Kind == plan.Edge {
		sample, first = o.Index, first+1
	}
	encoder := s.labelled(b, s.open(b, cb, sample, i > 0), i)
	if s.stored != nil {
		s.stored.send(b, encoder, s, i)
		s.close(b, encoder)
		return
	}
	for n := first; n < part.End; n++ {
		o := &s.plan.Ops[n]
		if o.Kind == plan.Edge {
			if o.Next && !s.next {
				continue
			}
			s.close(b, encoder)
			encoder = s.labelled(b, s.open(b, cb, o.Index, true), i)
			continue
		}
		var own []plan.Var
		own, vars = of(vars, n)
		s.op(b, encoder, o, own)
	}
	s.close(b, encoder)
}

// vars returns the plan's variables of operation op and all later ones.
func (s *sending) vars(op int32) []plan.Var {
	first, _ := slices.BinarySearchFunc(s.plan.Vars, op, func(v plan.Var, op int32) int { return cmp.Compare(v.Op, op) })
	return s.plan.Vars[first:]
}

// of splits vars, which begin at operation op or later, into those of op and the rest.
func of(vars []plan.Var, op int32) (own, rest []plan.Var) {
	n := 0
	for n < len(vars) && vars[n].Op == op {
		n++
	}
	return vars[:n], vars[n:]
}

// open begins an encoder. timed is the timed command whose begin and end are sampled with it; negative:
// none. later: an encoder of this replay comes before it.
func (s *sending) open(b *objc.Batch, cb objc.Ref, timed int32, later bool) objc.Ref {
	kind := objc.DispatchTypeConcurrent
	if s.how == Serial {
		kind = objc.DispatchTypeSerial
	}
	var encoder objc.Ref
	if pass := s.samples.pass(timed); pass != 0 {
		encoder = b.SendTo(objc.ComputeEncoderOfPass, cb, uintptr(pass))
	} else {
		encoder = b.SendTo(objc.ComputeEncoderOfType, cb, uintptr(kind))
	}
	s.fence.wait(b, encoder, later)
	return encoder
}

// close ends the encoder.
func (s *sending) close(b *objc.Batch, encoder objc.Ref) {
	s.fence.update(b, encoder)
	b.SendTo(objc.EndEncoding, encoder)
}

// op appends the messages of one operation. vars are the operation's words that depend on params.
func (s *sending) op(b *objc.Batch, encoder objc.Ref, o *plan.Op, vars []plan.Var) {
	if o.Next && !s.next {
		return
	}
	off := offset(o, vars, s.params)
	slot := uintptr(o.Slot)
	switch o.Kind {
	case plan.SetPipeline:
		b.SendTo(objc.SetPipeline, encoder, uintptr(s.pipes[o.Index].id))
	case plan.SetBuffer:
		m := s.place(o)
		b.SendTo(objc.SetBuffer, encoder, uintptr(m.buffer), uintptr(m.offset+off), slot)
	case plan.SetOffset:
		b.SendTo(objc.SetBufferOffset, encoder, uintptr(s.places[o.Index].offset+off), slot)
	case plan.SetBytes:
		data := s.data + uintptr(o.Off)
		if len(vars) > 0 {
			value := word(&vars[0], s.params)
			data = b.Bytes(value[:o.Len])
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
	case plan.Timestamp:
		s.samples.send(b, encoder, o.Index)
	case plan.Dispatch:
		g := &s.plan.Grids[o.Index]
		size, some := extents(g, vars, s.params)
		if !some {
			return // Metal takes no empty grid
		}
		m := objc.DispatchThreadgroups
		if g.Unit == ir.Threads {
			m = objc.DispatchThreads
		}
		b.SendTo(m, encoder, b.Size(size[0], size[1], size[2]), group(b, g))
	case plan.DispatchIndirect:
		g := &s.plan.Grids[o.Index]
		b.SendTo(objc.DispatchIndirect, encoder, uintptr(s.guard.buffer), uintptr(s.guard.offset+off), group(b, g))
	}
}

// place returns the place of the memory that an operation binds.
func (s *sending) place(o *plan.Op) *at {
	if o.Index == plan.Guarded {
		return &s.guard
	}
	return &s.places[o.Index]
}

// offset returns the offset of an operation, in bytes, for these values of params.
func offset(o *plan.Op, vars []plan.Var, params []uint32) int64 {
	for i := range vars {
		if vars[i].Part == plan.Offset {
			return int64(vars[i].Value(params))
		}
	}
	return o.Off
}

// word returns the value of a variable, for these values of params, as little-endian bytes.
func word(v *plan.Var, params []uint32) (out [8]byte) {
	binary.LittleEndian.PutUint64(out[:], v.Value(params))
	return out
}

// extents returns the size of a grid for these values of params. some: the grid is not empty.
func extents(g *plan.Grid, vars []plan.Var, params []uint32) (size [3]uint64, some bool) {
	size = g.Size
	for i := range vars {
		if size[vars[i].Part-plan.Extent0] = vars[i].Value(params); size[vars[i].Part-plan.Extent0] == 0 {
			return size, false
		}
	}
	return size, true
}

func group(b *objc.Batch, g *plan.Grid) uintptr {
	return b.Size(uint64(g.Group[0]), uint64(g.Group[1]), uint64(g.Group[2]))
}
