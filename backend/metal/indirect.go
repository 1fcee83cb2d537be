//go:build (darwin || linux) && (amd64 || arm64)

package metal

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/internal/plan"
	"github.com/mlxc/mlxc/internal/objc"
	"github.com/mlxc/mlxc/ir"
)

// commands are a plan's dispatches as indirect command buffers have them, for all slots of an executable.
type commands struct {
	*plan.Stored
	users    [][]int32 // by root memory: the commands that bind it
	variable []int32   // commands whose messages depend on params
	words    []int32   // operations whose words do
	written  []bool    // by root memory: a kernel may write it
}

// mostCommands of an indirect command buffer: what Apple documents for the family Mac2. Tests have fewer.
var mostCommands = 1 << 14

// reach is beyond all offsets in buffers that a command of an indirect command buffer can have, which are of 32
// bits. Tests have it lower.
var reach int64 = 1 << 32

// store makes the commands of a plan.
func store(p *plan.Plan, barriers bool) *commands {
	c := &commands{Stored: plan.Store(p, mostCommands, barriers)}
	c.users = make([][]int32, len(p.Graph.Memories))
	c.written = make([]bool, len(p.Graph.Memories))
	for i := range p.Graph.Memories {
		c.written[i] = p.Graph.Memories[i].Kind != ir.Weight
	}
	vars := p.Vars
	for n := range c.Commands {
		k := &c.Commands[n]
		varies := false
		for i := k.First; i <= k.Dispatch; i++ {
			o := &p.Ops[i]
			if o.Kind == plan.SetBuffer && o.Index != plan.Guarded {
				if u := c.users[o.Index]; len(u) == 0 || u[len(u)-1] != int32(n) {
					c.users[o.Index] = append(u, int32(n))
				}
			}
			for len(vars) > 0 && vars[0].Op < i {
				vars = vars[1:]
			}
			if len(vars) > 0 && vars[0].Op == i {
				if o.Kind == plan.SetBytes {
					c.words = append(c.words, i)
				} else {
					varies = true
				}
			}
		}
		if varies {
			c.variable = append(c.variable, int32(n))
		}
	}
	return c
}

// stored are the indirect command buffers of a slot: what a replay executes that runs in it.
type stored struct {
	*commands
	code    *code
	buffers []objc.ID // of mostCommands each
	words   *buffer
	// What was encoded: places of memories, and values of params. Nil: nothing was.
	places []at
	params []uint32
	// read and wrote are the buffers that the commands reach, as messages have them.
	read, wrote []byte
	stale       []bool // by command, while it is found out what has changed
}

// newStored makes the indirect command buffers of a slot. Nothing is encoded yet.
func (d *Device) newStored(c *code) (_ *stored, err error) {
	s := &stored{commands: c.stored, code: c}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	words, err := d.Alloc(backend.BufferSpec{Size: int64(len(s.Words)), Storage: ir.Shared, Use: ir.Argument})
	if err != nil {
		return nil, err
	}
	s.words = words.(*buffer)
	copy(s.words.data, s.Words)
	objc.Pool(func() {
		descriptor := objc.New("MTLIndirectCommandBufferDescriptor")
		defer objc.Release(descriptor)
		objc.SetCommandTypes.Send(descriptor, uintptr(objc.IndirectCommandTypeConcurrentDispatch|objc.IndirectCommandTypeConcurrentDispatchThreads))
		objc.SetInheritBuffers.Send(descriptor, 0)
		objc.SetInheritPipelineState.Send(descriptor, 0)
		objc.SetMaxKernelBuffers.Send(descriptor, uintptr(s.Buffers))
		if s.Threadgroups > 0 {
			objc.SetMaxKernelThreadgroups.Send(descriptor, uintptr(s.Threadgroups))
		}
		for n := 0; n < len(s.Commands); n += mostCommands {
			count := min(mostCommands, len(s.Commands)-n)
			id := objc.NewIndirectCommandBuffer.SendID(d.id, uintptr(descriptor), uintptr(count), uintptr(objc.ResourceStorageModeShared))
			if id == 0 {
				err = fmt.Errorf("the system gives no indirect command buffer of %d commands", count)
				return
			}
			s.buffers = append(s.buffers, id)
		}
	})
	return s, err
}

func (s *stored) close() {
	if s == nil {
		return
	}
	for _, id := range s.buffers {
		objc.Release(id)
	}
	s.buffers = nil
	if s.words != nil {
		_ = s.words.Close()
	}
}

// fits reports whether places can stand in indirect command buffers: their offsets have 32 bits there.
func (s *stored) fits(g *ir.Graph, places []at) bool {
	for root, u := range s.users {
		if len(u) > 0 && places[root].offset+g.Memories[root].Size >= reach {
			return false
		}
	}
	return true
}

// bring appends the messages that have the commands be those of a replay: all of them for the first, then
// those that have changed. Nothing in flight executes them.
func (s *stored) bring(b *objc.Batch, r *sending) {
	p := s.Plan
	for _, i := range s.commands.words {
		v, _ := of(r.vars(i), i)
		w := word(&v[0], r.params)
		copy(s.words.data[s.Word[i]:], w[:p.Ops[i].Len])
	}
	switch {
	case s.places == nil:
		for n := range s.Commands {
			s.encode(b, r, n, false)
		}
	default:
		if s.stale == nil {
			s.stale = make([]bool, len(s.Commands))
		}
		var changed []int32
		add := func(n int32) {
			if !s.stale[n] {
				s.stale[n] = true
				changed = append(changed, n)
			}
		}
		for root := range s.users {
			if s.places[root] != r.places[root] {
				for _, n := range s.users[root] {
					add(n)
				}
			}
		}
		if !slices.Equal(s.params, r.params) {
			for _, n := range s.variable {
				if s.differs(r, n) {
					add(n)
				}
			}
		}
		for _, n := range changed {
			s.stale[n] = false
			s.encode(b, r, int(n), true)
		}
	}
	if s.read == nil || !slices.Equal(s.places, r.places) {
		s.reach(r.places)
	}
	s.places, s.params = append(s.places[:0], r.places...), append(s.params[:0], r.params...)
}

// differs reports whether a command is another one with the params of a replay.
func (s *stored) differs(r *sending, n int32) bool {
	k := &s.Commands[n]
	for _, v := range r.vars(k.First) {
		if v.Op > k.Dispatch {
			return false
		}
		if v.Part != plan.Bytes && v.Value(s.params) != v.Value(r.params) {
			return true
		}
	}
	return false
}

// encode appends the messages that encode a command. again: it is encoded, at the places and params that
// s has, and only what changes is told.
func (s *stored) encode(b *objc.Batch, r *sending, n int, again bool) {
	p, k := s.Plan, &s.Commands[n]
	at := b.Send(objc.IndirectCommand, s.buffers[n/mostCommands], uintptr(n%mostCommands))
	vars := r.vars(k.First)
	var own []plan.Var
	grid := &p.Grids[p.Ops[k.Dispatch].Index]
	last, _ := slices.BinarySearchFunc(vars, k.Dispatch, func(v plan.Var, op int32) int { return int(v.Op - op) })
	own, _ = of(vars[last:], k.Dispatch)
	size, some := extents(grid, own, r.params)
	if again {
		before, was := extents(grid, own, s.params)
		switch {
		case !was && !some:
			return
		case !was:
			again = false
		case some && before == size:
			size = [3]uint64{} // it stays
		}
	}
	if !some {
		b.SendTo(objc.IndirectReset, at)
		return
	}
	for i := k.First; i < k.Dispatch; i++ {
		o := &p.Ops[i]
		own, vars = of(vars, i)
		slot := uintptr(o.Slot)
		switch o.Kind {
		case plan.SetPipeline:
			if !again {
				b.SendTo(objc.IndirectSetPipeline, at, uintptr(s.code.pipes[o.Index].id))
			}
		case plan.SetBuffer:
			m, off := &r.places[o.Index], offset(o, own, r.params)
			if again && s.places[o.Index] == *m && offset(o, own, s.params) == off {
				continue
			}
			b.SendTo(objc.IndirectSetBuffer, at, uintptr(m.buffer), uintptr(m.offset+off), slot)
		case plan.SetBytes:
			if !again {
				b.SendTo(objc.IndirectSetBuffer, at, uintptr(s.words.id), uintptr(s.Word[i]), slot)
			}
		case plan.SetThreadgroupMemory:
			if !again {
				b.SendTo(objc.IndirectSetThreadgroupMemory, at, uintptr(o.Len), slot)
			}
		}
	}
	if size != [3]uint64{} {
		m := objc.IndirectDispatchThreadgroups
		if grid.Unit == ir.Threads {
			m = objc.IndirectDispatchThreads
		}
		b.SendTo(m, at, b.Size(size[0], size[1], size[2]), group(b, grid))
	}
	if k.Barrier && !again {
		b.SendTo(objc.IndirectSetBarrier, at)
	}
}

// send appends the messages that execute command buffer i of the plan.
func (s *stored) send(b *objc.Batch, encoder objc.Ref, r *sending, i int) {
	s.declare(b, encoder)
	p := s.Plan
	steps := s.Steps[s.Ranges[i].First:s.Ranges[i].End]
	for n := range steps {
		k := &steps[n]
		if k.Next && !r.next {
			continue
		}
		if k.Kind == plan.Emit {
			vars := r.vars(k.First)
			var own []plan.Var
			for op := k.First; op < k.End; op++ {
				own, vars = of(vars, op)
				r.op(b, encoder, &p.Ops[op], own)
			}
			continue
		}
		first := int(k.First)
		b.SendTo(objc.ExecuteCommands, encoder, uintptr(s.buffers[first/mostCommands]), uintptr(first%mostCommands), uintptr(k.End-k.First))
	}
}

// declare tells an encoder what the commands reach: it keeps it resident, and has Metal order encoders by
// it.
func (s *stored) declare(b *objc.Batch, encoder objc.Ref) {
	for _, l := range []struct {
		list  []byte
		usage uint64
	}{{s.read, objc.ResourceUsageRead}, {s.wrote, objc.ResourceUsageRead | objc.ResourceUsageWrite}} {
		if len(l.list) > 0 {
			b.SendTo(objc.UseResources, encoder, b.Bytes(l.list), uintptr(len(l.list)/8), uintptr(l.usage))
		}
	}
}

// reach finds the buffers that the commands reach at places.
func (s *stored) reach(places []at) {
	writes := map[objc.ID]bool{s.words.id: false}
	order := []objc.ID{s.words.id}
	for root, u := range s.users {
		if len(u) == 0 {
			continue
		}
		id := places[root].buffer
		if _, ok := writes[id]; !ok {
			order = append(order, id)
		}
		writes[id] = writes[id] || s.written[root]
	}
	s.read, s.wrote = s.read[:0], s.wrote[:0]
	for _, id := range order {
		if writes[id] {
			s.wrote = binary.LittleEndian.AppendUint64(s.wrote, uint64(id))
		} else {
			s.read = binary.LittleEndian.AppendUint64(s.read, uint64(id))
		}
	}
}
