//go:build linux

package fakemetal_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/objc"
	"github.com/mlxc/mlxc/internal/testing/fakemetal"
)

// pair is a program of two steps on x: x·2 + 1 and then x·3. The result shows in which order they ran.
type pair struct {
	*engine
	step    objc.ID
	x       objc.ID // the buffer, tracked if the case says so
	tracked bool
	fence   objc.ID
	event   objc.ID
	shared  objc.ID
	value   uintptr // the next value to signal, of event or shared
	other   objc.ID // a second queue
	icb     objc.ID // an indirect command buffer of four commands
	waits   []objc.ID
}

var doubles, triples = [2]uint32{2, 1}, [2]uint32{3, 0}

// dispatch encodes a step with the factors f.
func (p *pair) dispatch(k objc.ID, f [2]uint32) {
	objc.SetPipeline.Send(k, uintptr(p.step))
	objc.SetBuffer.Send(k, uintptr(p.x), 0, 0)
	setBytes(k, 1, f)
	threads(k, size{4, 1, 1}, size{4, 1, 1})
}

// pass encodes an encoder of command buffer c; f encodes its commands.
func (p *pair) pass(c objc.ID, concurrent bool, f func(k objc.ID)) {
	k := p.encoder(c, concurrent)
	f(k)
	objc.EndEncoding.Send(k)
}

// first and second encode one step in a concurrent encoder, with the other messages of the case.
func (p *pair) first(c objc.ID, also ...func(k objc.ID)) {
	p.pass(c, true, func(k objc.ID) {
		p.dispatch(k, doubles)
		for _, f := range also {
			f(k)
		}
	})
}

func (p *pair) second(c objc.ID, also ...func(k objc.ID)) {
	p.pass(c, true, func(k objc.ID) {
		for _, f := range also {
			f(k)
		}
		p.dispatch(k, triples)
	})
}

func (p *pair) update(k objc.ID) { objc.UpdateFence.Send(k, uintptr(p.fence)) }
func (p *pair) wait(k objc.ID)   { objc.WaitForFence.Send(k, uintptr(p.fence)) }
func (p *pair) barrier(k objc.ID) {
	objc.MemoryBarrier.Send(k, uintptr(objc.BarrierScopeBuffers))
}
func (p *pair) declare(k objc.ID) {
	objc.UseResource.Send(k, uintptr(p.x), uintptr(objc.ResourceUsageRead|objc.ResourceUsageWrite))
}

// commit commits command buffers, in this order.
func (p *pair) commit(list ...objc.ID) {
	for _, c := range list {
		objc.Commit.Send(c)
	}
	p.waits = append(p.waits, list...)
}

// store sets command i of the indirect command buffer to a step, whose factors lie in a buffer.
func (p *pair) store(i int, f [2]uint32, barrier bool) {
	k := objc.IndirectCommand.SendID(p.icb, uintptr(i))
	objc.IndirectReset.Send(k)
	objc.IndirectSetPipeline.Send(k, uintptr(p.step))
	objc.IndirectSetBuffer.Send(k, uintptr(p.x), 0, 0)
	objc.IndirectSetBuffer.Send(k, uintptr(p.factors(f)), 0, 1)
	grid, group := size{1, 1, 1}, size{4, 1, 1}
	at(&grid, func(g uintptr) { at(&group, func(s uintptr) { objc.IndirectDispatchThreadgroups.Send(k, g, s) }) })
	if barrier {
		objc.IndirectSetBarrier.Send(k)
	}
}

func (p *pair) factors(f [2]uint32) objc.ID { return p.buffer(false, f[:]...) }

func (p *pair) execute(k objc.ID, from, n uintptr) {
	objc.ExecuteCommands.Send(k, uintptr(p.icb), from, n)
}

// orders are programs that differ in what orders their steps; ordered: something does.
var orders = []struct {
	name    string
	tracked bool
	ordered bool
	emit    func(p *pair)
}{
	{"serial encoder", false, true, func(p *pair) {
		c := p.commandBuffer()
		p.pass(c, false, func(k objc.ID) { p.dispatch(k, doubles); p.dispatch(k, triples) })
		p.commit(c)
	}},
	{"concurrent encoder", false, false, func(p *pair) {
		c := p.commandBuffer()
		p.pass(c, true, func(k objc.ID) { p.dispatch(k, doubles); p.dispatch(k, triples) })
		p.commit(c)
	}},
	{"concurrent encoder, tracked", true, false, func(p *pair) {
		c := p.commandBuffer()
		p.pass(c, true, func(k objc.ID) { p.dispatch(k, doubles); p.dispatch(k, triples) })
		p.commit(c)
	}},
	{"barrier", false, true, func(p *pair) {
		c := p.commandBuffer()
		p.pass(c, true, func(k objc.ID) { p.dispatch(k, doubles); p.barrier(k); p.dispatch(k, triples) })
		p.commit(c)
	}},
	{"barrier before both", false, false, func(p *pair) {
		c := p.commandBuffer()
		p.pass(c, true, func(k objc.ID) { p.barrier(k); p.dispatch(k, doubles); p.dispatch(k, triples) })
		p.commit(c)
	}},
	{"barriers of two encoders", false, false, func(p *pair) {
		c := p.commandBuffer()
		p.first(c, p.barrier)
		p.second(c, p.barrier)
		p.commit(c)
	}},
	{"two encoders, tracked", true, true, func(p *pair) {
		c := p.commandBuffer()
		p.first(c)
		p.second(c)
		p.commit(c)
	}},
	{"fence", false, true, func(p *pair) {
		c := p.commandBuffer()
		p.first(c, p.update)
		p.second(c, p.wait)
		p.commit(c)
	}},
	{"fence updated first and waited for last", false, true, func(p *pair) {
		c := p.commandBuffer()
		p.pass(c, true, func(k objc.ID) { p.update(k); p.dispatch(k, doubles) })
		p.pass(c, true, func(k objc.ID) { p.dispatch(k, triples); p.wait(k) })
		p.commit(c)
	}},
	{"fence that nobody waits for", false, false, func(p *pair) {
		c := p.commandBuffer()
		p.first(c, p.update)
		p.second(c)
		p.commit(c)
	}},
	{"fence between command buffers", false, true, func(p *pair) {
		c, d := p.commandBuffer(), p.commandBuffer()
		p.first(c, p.update)
		p.second(d, p.wait)
		p.commit(c, d)
	}},
	{"fence, committed the other way round", false, true, func(p *pair) {
		c, d := p.commandBuffer(), p.commandBuffer()
		objc.Enqueue.Send(c)
		objc.Enqueue.Send(d)
		p.first(c, p.update)
		p.second(d, p.wait)
		p.commit(d, c)
	}},
	{"two command buffers", false, false, func(p *pair) {
		c, d := p.commandBuffer(), p.commandBuffer()
		p.first(c)
		p.second(d)
		p.commit(c, d)
	}},
	{"two command buffers, tracked", true, true, func(p *pair) {
		c, d := p.commandBuffer(), p.commandBuffer()
		p.first(c)
		p.second(d)
		p.commit(c, d)
	}},
	{"event", false, true, func(p *pair) {
		c, d := p.commandBuffer(), p.commandBuffer()
		p.first(c)
		objc.EncodeSignalEvent.Send(c, uintptr(p.event), p.value)
		objc.EncodeWaitForEvent.Send(d, uintptr(p.event), p.value)
		p.second(d)
		p.commit(d, c) // the wait may come first
	}},
	{"event signalled before", false, false, func(p *pair) {
		c, d := p.commandBuffer(), p.commandBuffer()
		objc.EncodeSignalEvent.Send(c, uintptr(p.event), p.value)
		p.first(c)
		objc.EncodeWaitForEvent.Send(d, uintptr(p.event), p.value)
		p.second(d)
		p.commit(c, d)
	}},
	{"event waited for behind", false, false, func(p *pair) {
		c, d := p.commandBuffer(), p.commandBuffer()
		p.first(c)
		objc.EncodeSignalEvent.Send(c, uintptr(p.event), p.value)
		p.second(d)
		objc.EncodeWaitForEvent.Send(d, uintptr(p.event), p.value)
		p.commit(c, d)
	}},
	{"shared event", false, true, func(p *pair) {
		c, d := p.commandBuffer(), p.commandBuffer()
		p.first(c)
		objc.EncodeSignalEvent.Send(c, uintptr(p.shared), p.value)
		objc.EncodeWaitForEvent.Send(d, uintptr(p.shared), p.value)
		p.second(d)
		p.commit(c, d)
	}},
	{"host", false, true, func(p *pair) {
		c, d := p.commandBuffer(), p.commandBuffer()
		objc.EncodeWaitForEvent.Send(c, uintptr(p.shared), 2*p.value)
		p.first(c)
		objc.EncodeSignalEvent.Send(c, uintptr(p.shared), 2*p.value+1)
		p.second(d)
		p.commit(c)
		objc.SetSignaledValue.Send(p.shared, 2*p.value)
		assert.True(p.t, objc.WaitUntilValue.SendBool(p.shared, 2*p.value+1, 5000))
		p.commit(d)
	}},
	{"two queues, tracked", true, false, func(p *pair) {
		c, d := p.commandBuffer(), objc.CommandBuffer.SendID(p.other)
		p.first(c)
		p.second(d)
		p.commit(c, d)
	}},
	{"two queues, event", true, true, func(p *pair) {
		c, d := p.commandBuffer(), objc.CommandBuffer.SendID(p.other)
		p.first(c)
		objc.EncodeSignalEvent.Send(c, uintptr(p.event), p.value)
		objc.EncodeWaitForEvent.Send(d, uintptr(p.event), p.value)
		p.second(d)
		p.commit(c, d)
	}},
	{"wait for completion", false, true, func(p *pair) {
		c, d := p.commandBuffer(), p.commandBuffer()
		p.first(c)
		p.commit(c)
		objc.WaitUntilCompleted.Send(c)
		p.second(d)
		p.commit(d)
	}},
	{"indirect commands", true, false, func(p *pair) {
		c := p.commandBuffer()
		p.store(0, doubles, false)
		p.store(1, triples, false)
		p.pass(c, true, func(k objc.ID) { p.declare(k); p.execute(k, 0, 2) })
		p.commit(c)
	}},
	{"indirect commands of a serial encoder", true, false, func(p *pair) {
		c := p.commandBuffer()
		p.store(0, doubles, false)
		p.store(1, triples, false)
		p.pass(c, false, func(k objc.ID) { p.declare(k); p.execute(k, 0, 2) })
		p.commit(c)
	}},
	{"indirect barrier", false, true, func(p *pair) {
		c := p.commandBuffer()
		p.store(0, doubles, false)
		p.store(1, triples, true)
		p.pass(c, true, func(k objc.ID) { p.execute(k, 0, 2) })
		p.commit(c)
	}},
	{"indirect barrier taken back", false, false, func(p *pair) {
		c := p.commandBuffer()
		p.store(0, doubles, false)
		p.store(1, triples, true)
		objc.IndirectClearBarrier.Send(objc.IndirectCommand.SendID(p.icb, 1))
		p.pass(c, true, func(k objc.ID) { p.execute(k, 0, 2) })
		p.commit(c)
	}},
	// Whether commands after one with a barrier wait for it is not known, so here they do not.
	{"indirect command behind a barrier", false, false, func(p *pair) {
		c := p.commandBuffer()
		p.store(0, doubles, true)
		p.store(1, triples, false)
		p.pass(c, true, func(k objc.ID) { p.execute(k, 0, 2) })
		p.commit(c)
	}},
	{"two ranges", false, false, func(p *pair) {
		c := p.commandBuffer()
		p.store(0, doubles, false)
		p.store(1, triples, true)
		p.pass(c, true, func(k objc.ID) { p.execute(k, 0, 1); p.execute(k, 1, 1) })
		p.commit(c)
	}},
	{"two ranges and a barrier of the encoder", false, true, func(p *pair) {
		c := p.commandBuffer()
		p.store(0, doubles, false)
		p.store(1, triples, false)
		p.pass(c, true, func(k objc.ID) { p.execute(k, 0, 1); p.barrier(k); p.execute(k, 1, 1) })
		p.commit(c)
	}},
	{"two ranges of a serial encoder", false, true, func(p *pair) {
		c := p.commandBuffer()
		p.store(0, doubles, false)
		p.store(1, triples, false)
		p.pass(c, false, func(k objc.ID) { p.execute(k, 0, 1); p.execute(k, 1, 1) })
		p.commit(c)
	}},
	{"indirect, tracked and declared", true, true, func(p *pair) {
		c := p.commandBuffer()
		p.store(0, doubles, false)
		p.pass(c, true, func(k objc.ID) { p.declare(k); p.execute(k, 0, 1) })
		p.second(c)
		p.commit(c)
	}},
	{"indirect, tracked and not declared", true, false, func(p *pair) {
		c := p.commandBuffer()
		p.store(0, doubles, false)
		p.pass(c, true, func(k objc.ID) { p.execute(k, 0, 1) })
		p.second(c)
		p.commit(c)
	}},
	{"indirect, tracked and declared too late", true, false, func(p *pair) {
		c := p.commandBuffer()
		p.store(0, doubles, false)
		p.pass(c, true, func(k objc.ID) { p.execute(k, 0, 1); p.declare(k) })
		p.second(c)
		p.commit(c)
	}},
	{"indirect and fence", false, true, func(p *pair) {
		c := p.commandBuffer()
		p.store(0, doubles, false)
		p.pass(c, true, func(k objc.ID) { p.execute(k, 0, 1); p.update(k) })
		p.second(c, p.wait)
		p.commit(c)
	}},
}

// TestOrders: if something orders the two steps, all seeds have the same result; else some differ.
func TestOrders(t *testing.T) {
	run(t, fakemetal.Options{}, func(e *engine) {
		step := e.pipeline("advance")
		for _, c := range orders {
			objc.Pool(func() {
				p := &pair{engine: &engine{t: t, Metal: e.Metal, l: e.l, device: e.device, queue: e.commands()}, step: step, tracked: c.tracked, value: 1}
				defer p.releaseAll()
				p.x = p.buffer(c.tracked, 0, 0, 0, 0)
				p.fence, p.event, p.shared = p.own(objc.NewFence.SendID(e.device)), p.own(objc.NewEvent.SendID(e.device)), p.own(objc.NewSharedEvent.SendID(e.device))
				p.other = p.own(objc.NewQueue.SendID(e.device, 8))
				p.icb = p.own(p.indirect(4, 2))
				seeds := uint64(50)
				if !c.ordered {
					seeds = 20
				}
				changed := 0
				for seed := range seeds {
					e.SetSeed(seed)
					objc.Pool(func() {
						copy(e.words(p.x), []uint32{5, 6, 7, 8})
						c.emit(p)
						for _, d := range p.waits {
							objc.WaitUntilCompleted.Send(d)
							require.Equal(t, uintptr(objc.CommandBufferStatusCompleted), objc.BufferStatus.Send(d), c.name)
						}
						p.waits = nil
						p.value++
						switch got := e.words(p.x)[0]; got {
						case 33: // (5·2 + 1)·3
						case 31, 11, 15: // 5·3·2 + 1, or the result of one step alone
							changed++
						default:
							t.Fatalf("%s: %d", c.name, got)
						}
					})
					if seed == 0 {
						assert.Zero(t, changed, "%s: the order of the list", c.name)
					}
				}
				if c.ordered {
					assert.Zero(t, changed, "%s: of %d seeds", c.name, seeds)
				} else {
					assert.Greater(t, changed, 2, "%s: of %d seeds", c.name, seeds)
					assert.Less(t, changed, int(seeds), c.name)
				}
			})
		}
		e.SetSeed(0)
	})
}

// indirect makes an indirect command buffer.
func (e *engine) indirect(commands, buffers uintptr) objc.ID {
	d := objc.New("MTLIndirectCommandBufferDescriptor")
	defer objc.Release(d)
	objc.SetCommandTypes.Send(d, uintptr(objc.IndirectCommandTypeConcurrentDispatch|objc.IndirectCommandTypeConcurrentDispatchThreads))
	objc.SetInheritBuffers.Send(d, 0)
	objc.SetInheritPipelineState.Send(d, 0)
	objc.SetMaxKernelBuffers.Send(d, buffers)
	return objc.NewIndirectCommandBuffer.SendID(e.device, uintptr(d), commands, 0)
}

// TestHazards: a tracked buffer orders a read before a later write and a write before a later read, but
// not two reads.
func TestHazards(t *testing.T) {
	run(t, fakemetal.Options{}, func(e *engine) {
		next, step := e.pipeline("tripled"), e.pipeline("advance")
		x, y, z := e.buffer(true, 5), e.buffer(false, 0), e.buffer(false, 0)
		copies := func(c, to objc.ID) {
			k := e.encoder(c, false)
			objc.SetPipeline.Send(k, uintptr(next))
			objc.SetBuffer.Send(k, uintptr(x), 0, 0)
			objc.SetBuffer.Send(k, uintptr(to), 0, 1)
			threads(k, size{1, 1, 1}, size{1, 1, 1})
			objc.EndEncoding.Send(k)
		}
		exchanged := 0
		for seed := range uint64(40) {
			e.SetSeed(seed)
			objc.Pool(func() {
				e.words(x)[0] = 5
				c := e.commandBuffer()
				copies(c, y)
				k := e.encoder(c, false)
				objc.SetPipeline.Send(k, uintptr(step))
				objc.SetBuffer.Send(k, uintptr(x), 0, 0)
				setBytes(k, 1, doubles)
				threads(k, size{1, 1, 1}, size{1, 1, 1})
				objc.EndEncoding.Send(k)
				copies(c, z)
				require.NoError(t, finish(c))
				assert.Equal(t, []uint32{16, 34}, []uint32{e.words(y)[0], e.words(z)[0]}, "seed %d", seed)
			})
		}
		// Here the two dispatches share only y, which is not tracked, so they may run in either order.
		for seed := uint64(1); seed < 20; seed++ {
			e.SetSeed(seed)
			objc.Pool(func() {
				e.words(x)[0] = 5
				c := e.commandBuffer()
				k := e.encoder(c, false)
				objc.SetPipeline.Send(k, uintptr(step))
				objc.SetBuffer.Send(k, uintptr(y), 0, 0)
				setBytes(k, 1, doubles)
				threads(k, size{1, 1, 1}, size{1, 1, 1})
				objc.EndEncoding.Send(k)
				copies(c, y)
				require.NoError(t, finish(c))
				if e.words(y)[0] != 16 {
					exchanged++
				}
			})
		}
		assert.Positive(t, exchanged)
		e.SetSeed(0)
	})
}

// TestOverlap: two unordered dispatches may each read the contents from before both, which loses a step
// that no order of them would lose. If they touch different bytes of a buffer nothing is lost.
func TestOverlap(t *testing.T) {
	run(t, fakemetal.Options{}, func(e *engine) {
		step := e.pipeline("advance")
		for _, c := range []struct {
			second, group uintptr // of the second dispatch: its first byte, and its threads
			barrier       bool
			want          []uint32
			lost          bool
		}{
			{0, 4, false, []uint32{7, 8, 9, 10}, true},
			{0, 4, true, []uint32{7, 8, 9, 10}, false},
			{8, 2, false, []uint32{6, 7, 9, 10}, true},
			{16, 4, false, []uint32{6, 7, 8, 9}, false},
		} {
			x, lost := e.buffer(true, make([]uint32, 8)...), 0
			for seed := range uint64(50) {
				e.SetSeed(seed)
				objc.Pool(func() {
					copy(e.words(x), []uint32{5, 6, 7, 8, 9, 9, 9, 9})
					b := e.commandBuffer()
					k := e.encoder(b, true)
					objc.SetPipeline.Send(k, uintptr(step))
					objc.SetBuffer.Send(k, uintptr(x), 0, 0)
					setBytes(k, 1, [2]uint32{1, 1})
					threads(k, size{4, 1, 1}, size{4, 1, 1})
					if c.barrier {
						objc.MemoryBarrier.Send(k, uintptr(objc.BarrierScopeBuffers))
					}
					objc.SetBufferOffset.Send(k, c.second, 0)
					threads(k, size{uint64(c.group), 1, 1}, size{4, 1, 1})
					objc.EndEncoding.Send(k)
					require.NoError(t, finish(b))
					if !assert.ObjectsAreEqual(c.want, e.words(x)[:4]) {
						lost++
					}
				})
			}
			assert.Equal(t, c.lost, lost > 0, "%+v: %d", c, lost)
		}
		e.SetSeed(0)
	})
}
