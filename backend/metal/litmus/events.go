//go:build (darwin || linux) && (amd64 || arm64)

package litmus

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/mlxc/mlxc/internal/objc"
)

// events are the tests of MTLEvent and MTLSharedEvent. A GPU that loses a signal waits for ever.
var events = []*test{
	{
		name: "event/command-buffers", use: "ordered commits of untracked memory",
		says: "an event orders the command buffers of a queue",
		run:  func(p *program) error { p.signals(p.event, p.queue, p.queue); return nil },
	},
	{
		name: "event/queues", use: "copies between queues",
		says: "an event orders command buffers of two queues",
		run:  func(p *program) error { p.signals(p.event, p.queue, p.other); return nil },
	},
	{
		name: "event/shared", use: "copies between queues",
		says: "a shared event orders command buffers of two queues",
		run:  func(p *program) error { p.signals(p.shared, p.queue, p.other); return nil },
	},
	{
		name: "event/host-signals", use: "copies from the host", late: true,
		says: "a command buffer waits for a shared event that the host signals, and sees what the host has written before",
		run: func(p *program) error {
			p.value++
			clear(words(p.x, elements))
			c := p.commandBuffer(p.queue)
			if p.ordered {
				objc.EncodeWaitForEvent.Send(c, uintptr(p.shared), uintptr(p.value))
			}
			p.chain(c)
			p.commit(c)
			p.pause()
			p.fill()
			objc.SetSignaledValue.Send(p.shared, uintptr(p.value))
			return nil
		},
	},
	{
		name: "event/host-waits", use: "copies to the host", unchained: true,
		says: "the host sees what a command buffer has written when it sees the shared event that it signals",
		run: func(p *program) error {
			p.value++
			c := p.commandBuffer(p.queue)
			p.chain(c)
			objc.EncodeSignalEvent.Send(c, uintptr(p.shared), uintptr(p.value))
			p.commit(c)
			if p.ordered {
				if err := p.reached(p.value); err != nil {
					return err
				}
			}
			return p.holds(steps)
		},
	},
}

// pause waits for Options.Pause, or until the GPU has written x.
func (p *program) pause() {
	end := time.Now().Add(p.o.Pause)
	last := &words(p.x, elements)[elements-1]
	for time.Now().Before(end) && atomic.LoadUint32(last) == 0 {
		time.Sleep(100 * time.Microsecond)
	}
}

// chain encodes all steps into one encoder, with barriers between.
func (p *program) chain(c objc.ID) { p.encode(c, func(e *pass) { e.inTurn(true, e.step) }) }

// signals runs each step in a command buffer of its own, on two queues by turns. Each waits for the value of
// the event that the one before it signals.
func (p *program) signals(event, even, odd objc.ID) {
	var list []objc.ID
	for i := range steps {
		queue := even
		if i%2 == 1 {
			queue = odd
		}
		c := p.commandBuffer(queue)
		if p.ordered && i > 0 {
			objc.EncodeWaitForEvent.Send(c, uintptr(event), uintptr(p.value))
		}
		p.encode(c, func(e *pass) { e.step(i) })
		if p.ordered {
			p.value++
			objc.EncodeSignalEvent.Send(c, uintptr(event), uintptr(p.value))
		}
		list = append(list, c)
	}
	p.commit(list...)
}

// reached waits until the shared event has a value, or for Options.Patience.
func (p *program) reached(value uint64) error {
	end := time.Now().Add(p.o.Patience)
	asks := objc.Responds(p.shared, objc.WaitUntilValue)
	for time.Now().Before(end) {
		if p.ctx.Err() != nil {
			return context.Cause(p.ctx)
		}
		if asks {
			if objc.WaitUntilValue.SendBool(p.shared, uintptr(value), 100) {
				return nil
			}
			continue
		}
		if uint64(objc.SignaledValue.Send(p.shared)) >= value {
			return nil
		}
		runtime.Gosched()
	}
	return errors.New("the shared event was not signalled")
}
