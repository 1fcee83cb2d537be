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

// commands are a plan's dispatches as indirect commands, which all slots of an executable share.
type commands struct {
	*plan.Stored
	users    [][]int32 // by root memory: the commands, by number, that bind it
	variable []int32   // commands whose offsets or grids depend on params
	words    []int32   // SetBytes operations whose bytes depend on params
	written  []bool    // by root memory: a kernel may write it
}

// mostCommands is the max number of commands in an indirect command buffer (Apple, for Mac2). Tests lower it.
var mostCommands = 1 << 14

// reach is the first offset, in bytes of a buffer, that is too large for the 32 bits that commands of
// indirect command buffers have for it. Tests lower it.
var reach int64 = 1 << 32

// store makes the commands of a plan. barriers: its barriers become setBarrier of commands where possible.
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

// stored are the indirect command buffers of a slot, which replays that run in this slot execute.
type stored struct {
	*commands
	code    *code
	buffers []objc.ID // MTLIndirectCommandBuffers of up to mostCommands each
	words   *buffer   // the bytes of SetBytes operations, since indirect commands have no setBytes
	// The places of memories and values of params that the commands were encoded with. Nil: not encoded yet.
	places []at
	params []uint32
	// read and wrote are the buffers that the commands read only, and may write: words of MTLBuffer pointers.
	read, wrote []byte
	stale       []bool // by command: it has to be encoded again; used by bring only
}

// newStored makes the indirect command buffers of a slot, in which nothing is encoded yet.
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

// fits reports whether all offsets at these places fit into the 32 bits of indirect commands.
func (s *stored) fits(g *ir.Graph, places []at) bool {
	for root, u := range s.users {
		if len(u) > 0 && places[root].offset+g.Memories[root].Size >= reach {
			return false
		}
	}
	return true
}

// bring brings the commands up to date for a replay: it writes words, and appends the messages that encode
// all commands for the first replay and the changed ones later. No replay in flight may execute them.
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

// differs reports whether the offsets or grid of command n change with the params of a replay.
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

// encode appends the messages that encode command n for replay r. again: it is encoded already, with
// s.places and s.params, and only what has changed since is sent.
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
			size = [3]uint64{} // the grid need not be set again
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

// send appends the messages that execute the commands of command buffer i of the plan.
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

// declare appends useResources for the buffers that the commands use: Metal then keeps them resident and
// tracks their hazards.
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

// reach sets read and wrote to the buffers that the commands use with these places.
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
