//go:build (darwin || linux) && (amd64 || arm64)

package litmus

import (
	"errors"
	"fmt"

	"github.com/mlxc/mlxc/internal/objc"
)

// indirect are the tests of indirect command buffers.
var indirect = []*test{
	{
		name: "indirect/ranges", use: "plan indirect", required: true,
		says:    "a barrier of the encoder orders two ranges of an indirect command buffer",
		prepare: chainOf(steps),
		run: func(p *program) error {
			p.executes(func(e *pass) { e.inTurn(p.ordered, e.one) })
			return nil
		},
	},
	{
		name: "indirect/mixed", use: "plan indirect", required: true,
		says:    "a barrier of the encoder orders indirect commands and dispatches of its own",
		prepare: chainOf(steps),
		run: func(p *program) error {
			p.executes(func(e *pass) { e.inTurn(p.ordered, e.oneOrStep) })
			return nil
		},
	},
	{
		name: "indirect/own-barrier", use: "plan indirect-barriers",
		says: "a command of an indirect command buffer with setBarrier waits for all before it",
		prepare: func(p *program) error {
			return p.store(func(i int) { p.command(i, p.x, i, p.ordered && i > 0) }, steps)
		},
		run: func(p *program) error {
			p.executes(func(e *pass) { e.execute(0, steps) })
			return nil
		},
	},
	{
		name: "indirect/later-commands", use: "plan indirect-barriers",
		says: "what stands behind a command with setBarrier waits for all before that command too",
		prepare: func(p *program) error {
			// Before each step comes a command that has the barrier and no part in the chain.
			return p.store(func(i int) {
				if i%2 == 0 {
					p.command(i, p.y, 1, p.ordered && i > 0)
				} else {
					p.command(i, p.x, i/2, false)
				}
			}, 2*steps)
		},
		run: func(p *program) error {
			p.executes(func(e *pass) { e.execute(0, 2*steps) })
			return nil
		},
	},
	{
		name: "indirect/declared", use: "plan indirect", required: true, keeps: trackedIfOrdered,
		says:    "useResource:usage: has Metal track what an indirect command buffer reaches",
		prepare: chainOf(steps),
		run:     func(p *program) error { p.alternates(true); return nil },
	},
	{
		name: "indirect/resident", use: "nothing", keeps: trackedIfOrdered,
		says: "Metal tracks what an indirect command buffer reaches that is resident by a residency set alone (it should not)",
		prepare: func(p *program) error {
			if err := p.store(p.chainCommand, steps); err != nil {
				return err
			}
			return p.reside()
		},
		run: func(p *program) error {
			objc.QueueAddResidency.Send(p.queue, uintptr(p.residency()))
			p.alternates(false)
			err := p.land(0)
			objc.QueueRemoveResidency.Send(p.queue, uintptr(p.residency()))
			return err
		},
	},
	{
		name: "indirect/arguments", use: "plan indirect", required: true, keeps: tracked,
		says:    "a command of an indirect command buffer reads its arguments anew each time it is executed",
		prepare: chainOf(1),
		run:     func(p *program) error { return p.ring(1) },
	},
	{
		name: "indirect/ring", use: "plan indirect", required: true, keeps: tracked,
		says:    "arguments in a ring of three slots may be rewritten when the last replay that reads them has ended",
		prepare: chainOf(3),
		run:     func(p *program) error { return p.ring(3) },
	},
	{
		name: "indirect/rewritten", use: "plan indirect", required: true, values: true,
		says:    "a command may be given another buffer, and executed again, when what has executed it has ended",
		prepare: chainOf(1),
		run: func(p *program) error {
			for i := range steps {
				k := objc.IndirectCommand.SendID(p.icb, 0)
				objc.IndirectSetBuffer.Send(k, uintptr(p.arguments), uintptr(i*stride), 1)
				p.executes(func(e *pass) { e.execute(0, 1) })
				if err := p.land(0); err != nil {
					return err
				}
			}
			return nil
		},
	},
	{
		name: "indirect/changed", use: "plan indirect", required: true, values: true, few: 20,
		says:    "of a command the grid, a buffer or its offset may be changed alone: it keeps the rest",
		prepare: chainOf(1),
		run: func(p *program) error {
			const half = elements / 2
			for i := range steps {
				arguments := func(k objc.ID) { objc.IndirectSetBuffer.Send(k, uintptr(p.arguments), uintptr(i*stride), 1) }
				from := func(k objc.ID, first int) { objc.IndirectSetBuffer.Send(k, uintptr(p.x), uintptr(4*first), 0) }
				changes := []func(k objc.ID){func(k objc.ID) { arguments(k); from(k, 0); p.grid(k, elements) }}
				if i%2 == 1 { // one half by another grid alone, then the other by another offset alone
					changes = []func(k objc.ID){func(k objc.ID) { arguments(k); p.grid(k, half) }, func(k objc.ID) { from(k, half) }}
				}
				for _, change := range changes {
					change(objc.IndirectCommand.SendID(p.icb, 0))
					p.executes(func(e *pass) { e.execute(0, 1) })
					if err := p.land(0); err != nil {
						return err
					}
				}
			}
			return nil
		},
	},
	{
		name: "indirect/threadgroup", use: "plan indirect", required: true, values: true, few: 20, threadgroups: 1,
		says: "a command of an indirect command buffer has the threadgroup memory whose length it was given",
		prepare: func(p *program) error {
			return p.store(func(i int) {
				p.command(i, p.x, i, false)
				k := objc.IndirectCommand.SendID(p.icb, uintptr(i))
				objc.IndirectSetPipeline.Send(k, uintptr(p.pipes["litmus_group"]))
				objc.IndirectSetThreadgroupMemory.Send(k, 4*group, 0)
			}, steps)
		},
		run: func(p *program) error {
			p.executes(func(e *pass) { e.inTurn(true, e.one) })
			return nil
		},
	},
	{
		name: "indirect/reset", use: "plan indirect", required: true, values: true, few: 20,
		says: "a command that was reset does nothing",
		prepare: func(p *program) error {
			return p.store(func(i int) {
				p.command(i, p.x, i/2, false)
				if i%2 == 1 {
					objc.IndirectReset.Send(objc.IndirectCommand.SendID(p.icb, uintptr(i)))
				}
			}, 2*steps)
		},
		run: func(p *program) error {
			p.executes(func(e *pass) { e.inTurn(true, func(i int) { e.execute(2*i, 2) }) })
			return nil
		},
	},
	{
		// On GPUs before Apple9, which are said to need it, the backend dispatches such pipelines once
		// before. The test runs in a process of its own: there no other test has used the pipelines'
		// code, and if the GPU fails, only that process does.
		name: "indirect/cold", use: "plan indirect, on Apple9 and later", required: true, family: objc.GPUFamilyApple7 + 2, values: true, few: 5, apart: true,
		says: "a pipeline may stand in an indirect command buffer though no encoder has dispatched it before",
		run: func(p *program) error {
			// Each trial makes a new pipeline, since one that was used is not cold any more.
			cold, err := p.pipeline("litmus_cold")
			if err != nil {
				return err
			}
			defer objc.Release(cold)
			warm := p.pipes["litmus_step"]
			p.pipes["litmus_step"] = cold
			err = p.store(p.chainCommand, steps)
			p.pipes["litmus_step"] = warm
			if err != nil {
				return err
			}
			p.executes(func(e *pass) { e.inTurn(true, e.one) })
			return p.land(0)
		},
	},
}

// chainOf prepares the first n commands of the chain, without barriers.
func chainOf(n int) func(p *program) error {
	return func(p *program) error { return p.store(p.chainCommand, n) }
}

// chainCommand sets command i to step i of the chain.
func (p *program) chainCommand(i int) { p.command(i, p.x, i, false) }

// one executes command i; oneOrStep dispatches the odd ones as steps instead.
func (e *pass) one(i int) { e.execute(i, 1) }

func (e *pass) oneOrStep(i int) {
	if i%2 == 0 {
		e.one(i)
	} else {
		e.step(i)
	}
}

// store makes the indirect command buffer, once, and calls f to set each of its first n commands.
func (p *program) store(f func(i int), n int) error {
	if p.icb == 0 {
		d := objc.New("MTLIndirectCommandBufferDescriptor")
		defer objc.Release(d)
		objc.SetCommandTypes.Send(d, uintptr(objc.IndirectCommandTypeConcurrentDispatch|objc.IndirectCommandTypeConcurrentDispatchThreads))
		objc.SetInheritBuffers.Send(d, 0)
		objc.SetInheritPipelineState.Send(d, 0)
		objc.SetMaxKernelBuffers.Send(d, 2)
		if n := p.test.threadgroups; n > 0 {
			objc.SetMaxKernelThreadgroups.Send(d, uintptr(n))
		}
		p.icb = p.have(objc.NewIndirectCommandBuffer.SendID(p.device, uintptr(d), 2*steps, 0))
		if p.icb == 0 {
			return errors.New("the system gives no indirect command buffer")
		}
	}
	for i := range n {
		f(i)
	}
	return nil
}

// command sets command i to a step on buffer x, with the arguments at place a.
func (p *program) command(i int, x objc.ID, a int, barrier bool) {
	k := objc.IndirectCommand.SendID(p.icb, uintptr(i))
	objc.IndirectReset.Send(k)
	objc.IndirectSetPipeline.Send(k, uintptr(p.pipes["litmus_step"]))
	objc.IndirectSetBuffer.Send(k, uintptr(x), 0, 0)
	objc.IndirectSetBuffer.Send(k, uintptr(p.arguments), uintptr(a*stride), 1)
	p.grid(k, elements)
	if barrier {
		objc.IndirectSetBarrier.Send(k)
	}
}

// grid sets the grid of a command to n threads.
func (p *program) grid(k objc.ID, n uint64) {
	b := p.batches.Take()
	b.Send(objc.IndirectDispatchThreads, k, b.Size(n, 1, 1), b.Size(group, 1, 1))
	_ = b.Run()
	p.batches.Give(b)
}

// executes commits a command buffer with one encoder, which declares the buffers and runs what f encodes.
func (p *program) executes(f func(e *pass)) {
	p.commits(func(e *pass) {
		e.declare()
		f(e)
	})
}

// alternates commits a command buffer with an encoder for each step: even steps are indirect commands, odd
// ones dispatches.
func (p *program) alternates(declared bool) {
	p.encoders(func(e *pass, i int) {
		if declared && i%2 == 0 {
			e.declare()
		}
		e.oneOrStep(i)
	})
}

// ring runs each step as a command buffer of its own, whose arguments lie in one of n slots by turns. The
// host overwrites a slot after the last command buffer that reads it has ended; in the control, at once.
func (p *program) ring(n int) error {
	var err error
	for i := range steps {
		if p.ordered {
			if err = p.land(n - 1); err != nil {
				break
			}
		}
		p.argument(i%n, p.args[i])
		p.executes(func(e *pass) { e.execute(i%n, 1) })
	}
	if failed := p.land(0); err == nil {
		err = failed
	}
	return err
}

// reside makes a residency set of the buffers that commands use.
func (p *program) reside() error {
	if !objc.Responds(p.device, objc.NewResidencySet) {
		return &unsupported{"the system has no residency sets", "run it on macOS 15 or later; nothing relies on it"}
	}
	d := objc.New("MTLResidencySetDescriptor")
	defer objc.Release(d)
	id, err := objc.WithError(objc.NewResidencySet, func(slot uintptr) uintptr {
		return objc.NewResidencySet.Send(p.device, uintptr(d), slot)
	})
	if err != nil {
		return fmt.Errorf("the system gives no residency set: %w", err)
	}
	p.have(objc.ID(id))
	for _, o := range []objc.ID{p.x, p.y, p.arguments} {
		objc.AddAllocation.Send(objc.ID(id), uintptr(o))
	}
	objc.CommitResidency.Send(objc.ID(id))
	objc.RequestResidency.Send(objc.ID(id))
	return nil
}

// residency returns the residency set that [program.reside] made.
func (p *program) residency() objc.ID { return p.owned[len(p.owned)-1] }
