//go:build (darwin || linux) && (amd64 || arm64)

package litmus

import (
	"context"
	"errors"
	"fmt"

	"github.com/mlxc/mlxc/internal/objc"
)

// program is the program of one test, with its order (ordered) or as the control. It is run many times.
type program struct {
	*rig
	ctx     context.Context
	test    *test
	ordered bool

	x         objc.ID // buffer of the elements that the chain computes
	y         objc.ID // buffer for commands that have no part in the chain
	arguments objc.ID // buffer of the arguments of the steps
	icb       objc.ID // indirect command buffer of 2·steps commands
	fence     objc.ID
	event     objc.ID
	shared    objc.ID
	value     uint64 // the last value that was signalled, of event or shared

	flight []objc.ID // command buffers that were committed and not waited for
	owned  []objc.ID
}

// keeps says whether x is a tracked resource (MTLHazardTrackingMode).
type keeps int

const (
	untracked keeps = iota
	tracked
	trackedIfOrdered
)

// newProgram makes the buffers and events of a test. The caller has an autorelease pool.
func (r *rig) newProgram(ctx context.Context, t *test, ordered bool) (*program, error) {
	p := &program{rig: r, ctx: ctx, test: t, ordered: ordered}
	own := t.keeps == tracked || t.keeps == trackedIfOrdered && ordered
	p.x, p.y = p.buffer(4*elements, own), p.buffer(4*elements, false)
	p.arguments = p.buffer(stride*steps, false)
	p.fence = p.have(objc.NewFence.SendID(r.device))
	p.event, p.shared = p.have(objc.NewEvent.SendID(r.device)), p.have(objc.NewSharedEvent.SendID(r.device))
	for _, o := range []objc.ID{p.x, p.y, p.arguments, p.fence, p.event, p.shared} {
		if o == 0 {
			p.close()
			return nil, errors.New("the system gives no buffer, fence or event")
		}
	}
	for i, s := range r.args {
		p.argument(i, s)
	}
	if t.prepare != nil {
		if err := t.prepare(p); err != nil {
			p.close()
			return nil, err
		}
	}
	return p, nil
}

// close releases the objects of the program, unless the GPU may still use them.
func (p *program) close() {
	if p.stuck {
		return
	}
	for i := len(p.owned) - 1; i >= 0; i-- {
		objc.Release(p.owned[i])
	}
}

func (p *program) have(o objc.ID) objc.ID {
	if o != 0 {
		p.owned = append(p.owned, o)
	}
	return o
}

// buffer makes a buffer with shared storage, with hazard tracking or without.
func (p *program) buffer(bytes int, tracked bool) objc.ID {
	mode := objc.ResourceHazardTrackingModeUntracked
	if tracked {
		mode = objc.ResourceHazardTrackingModeTracked
	}
	return p.have(objc.NewBuffer.SendID(p.device, uintptr(bytes), uintptr(objc.ResourceStorageModeShared|mode)))
}

// argument writes the argument of step s into the i-th place of arguments.
func (p *program) argument(i int, s step) {
	to := words(p.arguments, stride*steps/4)[i*stride/4:]
	copy(to, []uint32{s.times, s.plus, s.spin, s.begin, s.end, s.zero})
}

// fill sets x to its initial values.
func (p *program) fill() {
	for i := range elements {
		words(p.x, elements)[i] = first(i)
	}
}

// holds returns an error if x is not the result of n steps in order.
func (p *program) holds(n int) error {
	for i, v := range words(p.x, elements) {
		if want := chained(i, n); v != want {
			return fmt.Errorf("element %d is %#x, and %#x after %d steps in order", i, v, want, n)
		}
	}
	return nil
}

// commandBuffer makes a command buffer of a queue, retained until it was waited for.
func (p *program) commandBuffer(queue objc.ID) objc.ID {
	return objc.Retain(objc.CommandBuffer.SendID(queue))
}

// commit commits command buffers, in this order.
func (p *program) commit(list ...objc.ID) {
	for _, c := range list {
		objc.Commit.Send(c)
	}
	p.flight = append(p.flight, list...)
}

// land waits for all committed command buffers but the last n.
func (p *program) land(n int) error {
	if len(p.flight) <= n {
		return nil
	}
	list := p.flight[:len(p.flight)-n]
	p.flight = append([]objc.ID(nil), p.flight[len(list):]...)
	return p.wait(p.ctx, list)
}

// pass is a compute encoder with a batch of messages to it.
type pass struct {
	*program
	id objc.ID
	b  *objc.Batch
}

// encode adds a concurrent encoder to command buffer c, with what f encodes.
func (p *program) encode(c objc.ID, f func(e *pass)) { p.encodeAs(objc.DispatchTypeConcurrent, c, f) }

func (p *program) encodeAs(kind uint64, c objc.ID, f func(e *pass)) {
	e := &pass{program: p, id: objc.ComputeEncoderOfType.SendID(c, uintptr(kind)), b: p.batches.Take()}
	f(e)
	e.b.Send(objc.EndEncoding, e.id)
	_ = e.b.Run() // if the batch has no memory, nothing runs and the result is wrong
	p.batches.Give(e.b)
}

// commits commits a command buffer with a concurrent encoder of what f encodes.
func (p *program) commits(f func(e *pass)) {
	c := p.commandBuffer(p.queue)
	p.encode(c, f)
	p.commit(c)
}

// inTurn calls f for each step, with a barrier between two if barriers is set.
func (e *pass) inTurn(barriers bool, f func(i int)) {
	for i := range steps {
		if barriers && i > 0 {
			e.barrier()
		}
		f(i)
	}
}

// step dispatches step i of the chain.
func (e *pass) step(i int) { e.advance(e.x, i) }

// beside dispatches a step on y, which has no part in the chain.
func (e *pass) beside() { e.advance(e.y, 1) }

func (e *pass) advance(x objc.ID, i int) {
	e.b.Send(objc.SetPipeline, e.id, uintptr(e.pipes["litmus_step"]))
	e.b.Send(objc.SetBuffer, e.id, uintptr(x), 0, 0)
	e.b.Send(objc.SetBuffer, e.id, uintptr(e.arguments), uintptr(i*stride), 1)
	e.threads(elements)
}

func (e *pass) threads(n int) {
	e.b.Send(objc.DispatchThreads, e.id, e.b.Size(uint64(n), 1, 1), e.b.Size(uint64(max(1, min(n, 32))), 1, 1))
}

func (e *pass) barrier()     { e.b.Send(objc.MemoryBarrier, e.id, uintptr(objc.BarrierScopeBuffers)) }
func (e *pass) waitFence()   { e.b.Send(objc.WaitForFence, e.id, uintptr(e.fence)) }
func (e *pass) updateFence() { e.b.Send(objc.UpdateFence, e.id, uintptr(e.fence)) }
func (e *pass) execute(from, n int) {
	e.b.Send(objc.ExecuteCommands, e.id, uintptr(e.icb), uintptr(from), uintptr(n))
}
func (e *pass) use(o objc.ID, usage uint64) {
	e.b.Send(objc.UseResource, e.id, uintptr(o), uintptr(usage))
}

// declare declares, by useResource, the buffers that the indirect command buffer uses.
func (e *pass) declare() {
	e.use(e.x, objc.ResourceUsageRead|objc.ResourceUsageWrite)
	e.use(e.y, objc.ResourceUsageRead|objc.ResourceUsageWrite)
	e.use(e.arguments, objc.ResourceUsageRead)
}
