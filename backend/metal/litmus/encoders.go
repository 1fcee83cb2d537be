//go:build (darwin || linux) && (amd64 || arm64)

package litmus

import (
	"slices"
	"sync"

	"github.com/mlxc/mlxc/internal/objc"
)

// encoders are the tests of what orders encoders, and the dispatches in an encoder.
var encoders = []*test{
	{
		name: "encoder/serial", use: "plan serial", required: true,
		says: "a serial encoder runs one dispatch after another",
		run: func(p *program) error {
			kind := objc.DispatchTypeConcurrent
			if p.ordered {
				kind = objc.DispatchTypeSerial
			}
			c := p.commandBuffer(p.queue)
			p.encodeAs(kind, c, func(e *pass) { e.inTurn(false, e.step) })
			p.commit(c)
			return nil
		},
	},
	{
		name: "encoder/barrier", use: "every replay", required: true,
		says: "memoryBarrierWithScope: orders the dispatches of a concurrent encoder",
		run: func(p *program) error {
			p.commits(func(e *pass) { e.inTurn(p.ordered, e.step) })
			return nil
		},
	},
	{
		name: "encoder/tracked", use: "nothing", keeps: trackedIfOrdered,
		says: "tracked memory orders the dispatches of one concurrent encoder (it should not)",
		run: func(p *program) error {
			p.commits(func(e *pass) { e.inTurn(false, e.step) })
			return nil
		},
	},
	{
		name: "tracked/encoders", use: "every replay", required: true, keeps: trackedIfOrdered,
		says: "tracked memory orders the encoders of a command buffer",
		run: func(p *program) error {
			p.encoders(func(e *pass, i int) { e.step(i) })
			return nil
		},
	},
	{
		name: "tracked/command-buffers", use: "every replay", required: true, keeps: trackedIfOrdered,
		says: "tracked memory orders the command buffers of a queue",
		run:  func(p *program) error { p.commit(p.each(func(e *pass, i int) { e.step(i) })...); return nil },
	},
	{
		name: "tracked/parallel", use: "plan parallel", required: true, keeps: trackedIfOrdered,
		says: "tracked memory orders command buffers as they were enqueued, though they were encoded side by side and committed the other way round",
		run:  func(p *program) error { p.parallel(func(e *pass, i int) { e.step(i) }); return nil },
	},
	{
		name: "fence/encoders", use: "fences",
		says: "a fence orders the encoders of a command buffer over memory that is not tracked",
		run: func(p *program) error {
			p.encoders(func(e *pass, i int) { e.fenced(i) })
			return nil
		},
	},
	{
		name: "fence/command-buffers", use: "fences",
		says: "a fence orders the command buffers of a queue",
		run: func(p *program) error {
			p.commit(p.each(func(e *pass, i int) { e.fenced(i) })...)
			return nil
		},
	},
	{
		name: "fence/parallel", use: "fences",
		says: "a fence orders command buffers as they were enqueued, though they were encoded side by side and committed the other way round",
		run:  func(p *program) error { p.parallel(func(e *pass, i int) { e.fenced(i) }); return nil },
	},
	{
		name: "fence/apart", use: "fences",
		says: "a fence orders an encoder behind one that is several encoders before it",
		run: func(p *program) error {
			c := p.commandBuffer(p.queue)
			for i := range steps {
				p.encode(c, func(e *pass) { e.fenced(i) })
				p.encode(c, func(e *pass) { e.beside() })
			}
			p.commit(c)
			return nil
		},
	},
}

// fenced dispatches step i: the encoder waits for the fence before it, and updates the fence after it.
func (e *pass) fenced(i int) {
	if e.ordered && i > 0 {
		e.waitFence()
	}
	e.step(i)
	if e.ordered {
		e.updateFence()
	}
}

// encoders commits a command buffer with an encoder for every step.
func (p *program) encoders(f func(e *pass, i int)) {
	c := p.commandBuffer(p.queue)
	for i := range steps {
		p.encode(c, func(e *pass) { f(e, i) })
	}
	p.commit(c)
}

// each encodes every step into a command buffer of its own and returns these in order.
func (p *program) each(f func(e *pass, i int)) (list []objc.ID) {
	for i := range steps {
		c := p.commandBuffer(p.queue)
		p.encode(c, func(e *pass) { f(e, i) })
		list = append(list, c)
	}
	return list
}

// parallel enqueues a command buffer for each step, encodes them by as many threads and commits them in
// reverse order.
func (p *program) parallel(f func(e *pass, i int)) {
	var list []objc.ID
	for range steps {
		c := p.commandBuffer(p.queue)
		objc.Enqueue.Send(c)
		list = append(list, c)
	}
	var wait sync.WaitGroup
	for i, c := range list {
		wait.Go(func() { objc.Pool(func() { p.encode(c, func(e *pass) { f(e, i) }) }) })
	}
	wait.Wait()
	slices.Reverse(list)
	p.commit(list...)
}
