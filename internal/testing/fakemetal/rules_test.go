//go:build linux

package fakemetal_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/mlxc/mlxc/internal/objc"
	"github.com/mlxc/mlxc/internal/testing/fakemetal"
	"github.com/mlxc/mlxc/internal/testing/sample"
)

// ready is a program with an open encoder in which a step is set up and could be dispatched.
type ready struct {
	*engine
	step, x, c, k objc.ID
}

func (r *ready) dispatch() { threads(r.k, size{1, 1, 1}, size{1, 1, 1}) }

// object makes an object of a class, which is released at the end of the test.
func (e *engine) object(class string) uintptr { return uintptr(e.own(objc.New(class))) }

func (e *engine) set(mode uint64, n uintptr) objc.ID {
	return objc.NewBuffer.SendID(e.device, n, uintptr(mode))
}

func pages(t testing.TB, n int, mode int) []byte {
	t.Helper()
	// 16 KiB more, so that a page of 16 KiB begins within them.
	m, err := unix.Mmap(-1, 0, n+16<<10, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	require.NoError(t, err)
	t.Cleanup(func() { _ = unix.Munmap(m) })
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(m))) & (16<<10 - 1)
	out := m[skip:][:n:n]
	require.NoError(t, unix.Mprotect(out, mode))
	return out
}

// hold keeps a command buffer from running until the returned function is called.
func (e *engine) hold(c objc.ID) (run func()) {
	ev := e.own(objc.NewSharedEvent.SendID(e.device))
	objc.EncodeWaitForEvent.Send(c, uintptr(ev), 1)
	return func() {
		objc.SetSignaledValue.Send(ev, 1)
		objc.WaitUntilCompleted.Send(c)
	}
}

func address(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

func (e *engine) noCopy(p, n uintptr) objc.ID {
	return objc.NewBufferNoCopy.SendID(e.device, p, n, uintptr(objc.ResourceHazardTrackingModeUntracked), 0)
}

// command returns the first command of an indirect command buffer of two.
func (e *engine) command() objc.ID {
	return objc.IndirectCommand.SendID(e.own(e.indirect(2, 2)), 0)
}

// rules are programs that each break one rule of Metal's API validation, with a part of the note about it.
var rules = []struct {
	name    string
	options fakemetal.Options
	want    string
	breaks  func(r *ready)
}{
	{"command after the end", fakemetal.Options{}, "memoryBarrierWithScope:: the encoder has ended", func(r *ready) {
		objc.EndEncoding.Send(r.k)
		objc.MemoryBarrier.Send(r.k, 1)
	}},
	{"end twice", fakemetal.Options{}, "endEncoding: the encoder has ended", func(r *ready) {
		objc.EndEncoding.Send(r.k)
		objc.EndEncoding.Send(r.k)
	}},
	{"dispatch after the end", fakemetal.Options{}, "the encoder has ended", func(r *ready) {
		objc.EndEncoding.Send(r.k)
		r.dispatch()
	}},
	{"two encoders", fakemetal.Options{}, "an encoder of the command buffer has not ended", func(r *ready) {
		objc.ComputeEncoderOfType.Send(r.c, 0)
	}},
	{"event with an open encoder", fakemetal.Options{}, "encodeSignalEvent:value:: an encoder of the command buffer has not ended", func(r *ready) {
		objc.EncodeSignalEvent.Send(r.c, uintptr(r.own(objc.NewEvent.SendID(r.device))), 1)
	}},
	{"commit with an open encoder", fakemetal.Options{}, "commit: an encoder of the command buffer has not ended", func(r *ready) {
		objc.Commit.Send(r.c)
	}},
	{"commit twice", fakemetal.Options{}, "commit: the command buffer was committed", func(r *ready) {
		objc.EndEncoding.Send(r.k)
		objc.Commit.Send(r.c)
		objc.Commit.Send(r.c)
	}},
	{"encode after commit", fakemetal.Options{}, "computeCommandEncoderWithDispatchType:: the command buffer was committed", func(r *ready) {
		objc.EndEncoding.Send(r.k)
		objc.Commit.Send(r.c)
		objc.ComputeEncoderOfType.Send(r.c, 0)
	}},
	{"enqueue twice", fakemetal.Options{}, "enqueue: the command buffer is enqueued", func(r *ready) {
		objc.Enqueue.Send(r.c)
		objc.Enqueue.Send(r.c)
	}},
	{"wait before commit", fakemetal.Options{}, "waitUntilCompleted: the command buffer was not committed", func(r *ready) {
		objc.WaitUntilCompleted.Send(r.c)
	}},
	{"time before completion", fakemetal.Options{}, "GPUStartTime: the command buffer has not completed", func(r *ready) {
		objc.GPUStartTime.SendDouble(r.c)
	}},
	{"encoder never ended", fakemetal.Options{}, "an encoder is freed that has not ended", func(r *ready) {
		objc.Pool(func() { r.encoder(r.commandBuffer(), true) })
	}},
	{"no pipeline", fakemetal.Options{}, "dispatchThreads:threadsPerThreadgroup:: no pipeline is set", func(r *ready) {
		objc.EndEncoding.Send(r.k)
		r.k = r.encoder(r.c, true)
		r.dispatch()
	}},
	{"pipeline of another class", fakemetal.Options{}, "setComputePipelineState: is given MTLBuffer for a MTLComputePipelineState", func(r *ready) {
		objc.SetPipeline.Send(r.k, uintptr(r.x))
	}},
	{"nil for a pipeline", fakemetal.Options{}, "setComputePipelineState: is given nil", func(r *ready) { objc.SetPipeline.Send(r.k, 0) }},
	{"buffer of another class", fakemetal.Options{}, "setBuffer:offset:atIndex: is given MTLComputePipelineState for a MTLBuffer", func(r *ready) {
		objc.SetBuffer.Send(r.k, uintptr(r.step), 0, 0)
	}},
	{"buffer that was freed", fakemetal.Options{}, "setBuffer:offset:atIndex: is given an object that was freed", func(r *ready) {
		b := r.set(0, 16)
		objc.Release(b)
		objc.SetBuffer.Send(r.k, uintptr(b), 0, 0)
	}},
	{"argument not bound", fakemetal.Options{}, "argument 0 (x) is not bound", func(r *ready) {
		objc.SetBuffer.Send(r.k, 0, 0, 0)
		r.dispatch()
	}},
	{"constant not bound", fakemetal.Options{}, "argument 1 (f) is not bound", func(r *ready) {
		objc.EndEncoding.Send(r.k)
		r.k = r.encoder(r.c, true)
		objc.SetPipeline.Send(r.k, uintptr(r.step))
		objc.SetBuffer.Send(r.k, uintptr(r.x), 0, 0)
		r.dispatch()
	}},
	{"constant too short", fakemetal.Options{}, "argument 1 (f) has 8 bytes, setBytes gave 4", func(r *ready) {
		setBytes(r.k, 1, uint32(1))
		r.dispatch()
	}},
	{"constant behind the end", fakemetal.Options{}, "argument 1 (f) has 8 bytes, its buffer 4 from the offset on", func(r *ready) {
		objc.SetBuffer.Send(r.k, uintptr(r.buffer(false, 1)), 0, 1)
		r.dispatch()
	}},
	{"constant misaligned", fakemetal.Options{}, "argument 1 (f) begins at byte 4, no multiple of 8", func(r *ready) {
		objc.SetBuffer.Send(r.k, uintptr(r.buffer(false, 1, 2, 3, 4)), 4, 1)
		r.dispatch()
	}},
	{"constant misaligned for the system", fakemetal.Options{ConstantAlign: 256}, "argument 1 (f) begins at byte 8, no multiple of 256", func(r *ready) {
		objc.SetBuffer.Send(r.k, uintptr(r.buffer(false, 1, 2, 3, 4)), 8, 1)
		r.dispatch()
	}},
	{"device misaligned", fakemetal.Options{}, "argument 0 (x) begins at byte 2, no multiple of 4", func(r *ready) {
		objc.SetBufferOffset.Send(r.k, 2, 0)
		r.dispatch()
	}},
	{"writes to bytes", fakemetal.Options{}, "argument 0 (x) is written, and bound to the bytes of setBytes", func(r *ready) {
		setBytes(r.k, 0, uint32(1))
		r.dispatch()
	}},
	{"no bytes", fakemetal.Options{}, "setBytes:length:atIndex:: 0 bytes: setBytes takes 1 to 4096", func(r *ready) {
		w := uint32(1)
		at(&w, func(p uintptr) { objc.SetBytes.Send(r.k, p, 0, 1) })
	}},
	{"too many bytes", fakemetal.Options{}, "4097 bytes: setBytes takes 1 to 4096", func(r *ready) { setBytes(r.k, 1, [4097]byte{}) }},
	{"slot of bytes", fakemetal.Options{}, "setBytes:length:atIndex:: slot 31 of 31", func(r *ready) { setBytes(r.k, 31, uint32(1)) }},
	{"slot of a buffer", fakemetal.Options{}, "setBuffer:offset:atIndex:: slot 31 of 31", func(r *ready) { objc.SetBuffer.Send(r.k, uintptr(r.x), 0, 31) }},
	{"offset behind the end", fakemetal.Options{}, "setBuffer:offset:atIndex:: byte 16 of a buffer of 16", func(r *ready) { objc.SetBuffer.Send(r.k, uintptr(r.x), 16, 0) }},
	{"new offset behind the end", fakemetal.Options{}, "setBufferOffset:atIndex:: byte 20 of a buffer of 16", func(r *ready) { objc.SetBufferOffset.Send(r.k, 20, 0) }},
	{"offset of no buffer", fakemetal.Options{}, "setBufferOffset:atIndex:: slot 5 has no buffer", func(r *ready) { objc.SetBufferOffset.Send(r.k, 0, 5) }},
	{"large threadgroups", fakemetal.Options{}, "threadgroups of 1024 × 2 × 1: the pipeline has 1 to 1024 threads", func(r *ready) { threads(r.k, size{1, 1, 1}, size{1024, 2, 1}) }},
	{"threadgroups beyond the pipeline", fakemetal.Options{MaxThreads: 64}, "the pipeline has 1 to 64 threads", func(r *ready) { threads(r.k, size{1, 1, 1}, size{65, 1, 1}) }},
	{"empty threadgroups", fakemetal.Options{}, "threadgroups of 0 × 1 × 1", func(r *ready) { threads(r.k, size{1, 1, 1}, size{0, 1, 1}) }},
	{"empty grid", fakemetal.Options{}, "dispatchThreadgroups:threadsPerThreadgroup:: a grid of 1 × 0 × 1", func(r *ready) { groups(r.k, size{1, 0, 1}, size{1, 1, 1}) }},
	{"threadgroup memory", fakemetal.Options{}, "20 bytes: threadgroup memory is a multiple of 16", func(r *ready) { objc.SetThreadgroupMemory.Send(r.k, 20, 0) }},
	{"threadgroup memory of two", fakemetal.Options{}, "40960 bytes of threadgroup memory: there are 32 KiB", func(r *ready) {
		objc.SetThreadgroupMemory.Send(r.k, 32<<10, 0)
		objc.SetThreadgroupMemory.Send(r.k, 8<<10, 1)
		r.dispatch()
	}},
	{"threadgroup argument", fakemetal.Options{}, "threadgroup argument 0 (room) has no length", func(r *ready) {
		objc.SetPipeline.Send(r.k, uintptr(r.pipeline("reversed")))
		r.dispatch()
	}},
	{"counts behind the end", fakemetal.Options{}, "three numbers at byte 8 of a buffer of 16", func(r *ready) {
		group := size{1, 1, 1}
		at(&group, func(g uintptr) { objc.DispatchIndirect.Send(r.k, uintptr(r.x), 8, g) })
	}},
	{"scope of a barrier", fakemetal.Options{}, "memoryBarrierWithScope:: there is no scope 0", func(r *ready) { objc.MemoryBarrier.Send(r.k, 0) }},
	{"fence for which its updater waits", fakemetal.Options{}, "the encoder has updated the fence for which it waits", func(r *ready) {
		f := uintptr(r.own(objc.NewFence.SendID(r.device)))
		objc.UpdateFence.Send(r.k, f)
		objc.WaitForFence.Send(r.k, f)
	}},
	{"fence that nobody updates", fakemetal.Options{}, "nothing that was enqueued before updates the fence", func(r *ready) {
		objc.WaitForFence.Send(r.k, uintptr(r.own(objc.NewFence.SendID(r.device))))
		objc.EndEncoding.Send(r.k)
		finish(r.c)
	}},
	{"fence of another queue", fakemetal.Options{}, "an encoder of another queue updates the fence", func(r *ready) {
		f := uintptr(r.own(objc.NewFence.SendID(r.device)))
		objc.UpdateFence.Send(r.k, f)
		objc.EndEncoding.Send(r.k)
		finish(r.c)
		c := objc.CommandBuffer.SendID(r.own(objc.NewQueue.SendID(r.device, 1)))
		k := r.encoder(c, true)
		objc.WaitForFence.Send(k, f)
		objc.EndEncoding.Send(k)
		finish(c)
	}},
	{"event for a fence", fakemetal.Options{}, "updateFence: is given MTLEvent for a MTLFence", func(r *ready) {
		objc.UpdateFence.Send(r.k, uintptr(r.own(objc.NewEvent.SendID(r.device))))
	}},
	{"event that falls", fakemetal.Options{}, "encodeSignalEvent:value: 3 after 4", func(r *ready) {
		objc.EndEncoding.Send(r.k)
		ev := uintptr(r.own(objc.NewEvent.SendID(r.device)))
		objc.EncodeSignalEvent.Send(r.c, ev, 4)
		finish(r.c)
		c := r.commandBuffer()
		objc.EncodeSignalEvent.Send(c, ev, 3)
		finish(c)
	}},
	{"shared event that falls", fakemetal.Options{}, "setSignaledValue:: 3 after 4", func(r *ready) {
		ev := r.own(objc.NewSharedEvent.SendID(r.device))
		objc.SetSignaledValue.Send(ev, 4)
		objc.SetSignaledValue.Send(ev, 3)
	}},
	{"event that nobody signals", fakemetal.Options{Patience: 50 * time.Millisecond}, "waits for an event that nothing signals: a deadlock", func(r *ready) {
		objc.EndEncoding.Send(r.k)
		c := r.commandBuffer()
		objc.EncodeWaitForEvent.Send(c, uintptr(r.own(objc.NewEvent.SendID(r.device))), 1)
		err := finish(c)
		assert.ErrorContains(r.t, err, "kIOGPUCommandBufferCallbackErrorTimeout")
	}},
	{"command buffer before it not committed", fakemetal.Options{Patience: 50 * time.Millisecond}, "a command buffer that was enqueued before is not committed: a deadlock", func(r *ready) {
		objc.EndEncoding.Send(r.k)
		objc.Enqueue.Send(r.commandBuffer())
		assert.NoError(r.t, finish(r.c))
	}},
	{"queue full", fakemetal.Options{Patience: 50 * time.Millisecond}, "all 1 command buffers of the queue are uncompleted, and none comes to its end: a deadlock", func(r *ready) {
		q := r.own(objc.NewQueue.SendID(r.device, 1))
		objc.CommandBuffer.Send(q)
		objc.CommandBuffer.Send(q)
	}},
	{"queue full, where nobody may block", fakemetal.Options{Full: true, Patience: 50 * time.Millisecond}, "1 command buffers of the queue are uncompleted: who asks for one more blocks", func(r *ready) {
		q := r.own(objc.NewQueue.SendID(r.device, 1))
		objc.CommandBuffer.Send(q)
		objc.CommandBuffer.Send(q)
	}},
	{"debug group open", fakemetal.Options{}, "endEncoding: 1 debug groups are open", func(r *ready) {
		objc.PushDebugGroup.Send(r.k, uintptr(objc.String("group")))
		objc.EndEncoding.Send(r.k)
	}},
	{"debug group closed twice", fakemetal.Options{}, "popDebugGroup: no debug group is open", func(r *ready) { objc.BufferPopDebugGroup.Send(r.c) }},
	{"label that is no text", fakemetal.Options{}, "setLabel: is given MTLBuffer for a NSString", func(r *ready) { objc.SetBufferLabel.Send(r.c, uintptr(r.x)) }},
	{"freed in flight", fakemetal.Options{}, "an MTLBuffer is freed while a command buffer in flight uses it", func(r *ready) {
		c := objc.CommandBufferUnretained.SendID(r.commands())
		run := r.hold(c)
		k := r.encoder(c, true)
		b := r.set(0, 16)
		objc.SetPipeline.Send(k, uintptr(r.step))
		objc.SetBuffer.Send(k, uintptr(b), 0, 0)
		setBytes(k, 1, doubles)
		threads(k, size{1, 1, 1}, size{1, 1, 1})
		objc.EndEncoding.Send(k)
		objc.Commit.Send(c)
		objc.Release(b)
		run()
	}},
	{"freed before commit", fakemetal.Options{}, "an MTLBuffer is freed before a command buffer that uses it is committed", func(r *ready) {
		c := objc.CommandBufferUnretained.SendID(r.commands())
		k := r.encoder(c, true)
		b := r.set(0, 16)
		objc.SetBuffer.Send(k, uintptr(b), 0, 0)
		objc.EndEncoding.Send(k)
		objc.Release(b)
		finish(c)
	}},
	{"pipeline freed in flight", fakemetal.Options{}, "an MTLComputePipelineState is freed before a command buffer that uses it has completed", func(r *ready) {
		c := objc.CommandBufferUnretained.SendID(r.commands())
		run := r.hold(c)
		k := r.encoder(c, true)
		f, err := r.function(r.sources(), "advance")
		require.NoError(r.t, err)
		p, err := r.build(r.descriptor(r.own(f), false), 0)
		require.NoError(r.t, err)
		objc.SetPipeline.Send(k, uintptr(p))
		objc.EndEncoding.Send(k)
		objc.Commit.Send(c)
		objc.Release(p)
		run()
	}},
	{"empty buffer", fakemetal.Options{}, "newBufferWithLength:options:: 0 bytes: a buffer has 1 to", func(r *ready) { r.set(0, 0) }},
	{"large buffer", fakemetal.Options{MaxBuffer: 1 << 20}, "1048577 bytes: a buffer has 1 to 1048576", func(r *ready) { r.set(0, 1<<20+1) }},
	{"options of a buffer", fakemetal.Options{}, "the options 0x300", func(r *ready) { r.set(0x300, 16) }},
	{"no-copy base", fakemetal.Options{}, "are not whole pages of 16 KiB", func(r *ready) {
		p := pages(r.t, 32<<10, unix.PROT_READ)
		r.noCopy(address(p)+4096, 16<<10)
	}},
	{"no-copy length", fakemetal.Options{}, "4096 bytes are not whole pages of 16 KiB", func(r *ready) {
		r.noCopy(address(pages(r.t, 16<<10, unix.PROT_READ)), 4096)
	}},
	{"no-copy memory that is none", fakemetal.Options{}, "the memory is not mapped", func(r *ready) {
		p := pages(r.t, 32<<10, unix.PROT_READ)
		require.NoError(r.t, unix.MunmapPtr(unsafe.Pointer(&p[16<<10]), 16<<10))
		r.noCopy(address(p), 32<<10)
	}},
	{"no-copy memory that is only read", fakemetal.Options{}, "argument 0 (x) is written, and lies in memory of the host that is mapped for reading", func(r *ready) {
		b := r.own(r.noCopy(address(pages(r.t, 16<<10, unix.PROT_READ)), 16<<10))
		objc.SetBuffer.Send(r.k, uintptr(b), 0, 0)
		r.dispatch()
	}},
	{"no-copy memory unmapped too early", fakemetal.Options{}, "was unmapped before the buffer was freed", func(r *ready) {
		p := pages(r.t, 16<<10, unix.PROT_READ|unix.PROT_WRITE)
		b := r.noCopy(address(p), 16<<10)
		require.NoError(r.t, unix.MunmapPtr(unsafe.Pointer(&p[0]), 16<<10))
		objc.Release(b)
	}},
	{"indirect: slot of a buffer", fakemetal.Options{}, "setKernelBuffer:offset:atIndex:: slot 2, and maxKernelBufferBindCount is 2", func(r *ready) {
		objc.IndirectSetBuffer.Send(r.command(), uintptr(r.x), 0, 2)
	}},
	{"indirect: threadgroup memory", fakemetal.Options{}, "slot 0, and maxKernelThreadgroupMemoryBindCount is 0", func(r *ready) {
		objc.IndirectSetThreadgroupMemory.Send(r.command(), 16, 0)
	}},
	{"indirect: pipeline", fakemetal.Options{}, "the pipeline was made without supportIndirectCommandBuffers", func(r *ready) {
		f, err := r.function(r.sources(), "advance")
		require.NoError(r.t, err)
		p, err := r.build(r.descriptor(r.own(f), false), 0)
		require.NoError(r.t, err)
		objc.IndirectSetPipeline.Send(r.command(), uintptr(r.own(p)))
	}},
	{"indirect: command", fakemetal.Options{}, "indirectComputeCommandAtIndex:: command 2 of 2", func(r *ready) {
		objc.IndirectCommand.Send(r.own(r.indirect(2, 2)), 2)
	}},
	{"indirect: no types", fakemetal.Options{}, "1 commands of the types 0", func(r *ready) {
		objc.NewIndirectCommandBuffer.Send(r.device, r.object("MTLIndirectCommandBufferDescriptor"), 1, 0)
	}},
	{"indirect: inherited buffers", fakemetal.Options{}, "setKernelBuffer:offset:atIndex:: the commands inherit the buffers", func(r *ready) {
		d := r.own(objc.New("MTLIndirectCommandBufferDescriptor"))
		objc.SetCommandTypes.Send(d, uintptr(objc.IndirectCommandTypeConcurrentDispatch))
		b := r.own(objc.NewIndirectCommandBuffer.SendID(r.device, uintptr(d), 1, 0))
		objc.IndirectSetBuffer.Send(objc.IndirectCommand.SendID(b, 0), uintptr(r.x), 0, 0)
	}},
	{"indirect: range", fakemetal.Options{}, "16385 commands from 0 on, of 20000: a range has 1 to 16384", func(r *ready) {
		objc.ExecuteCommands.Send(r.k, uintptr(r.own(r.indirect(20000, 2))), 0, 16385)
	}},
	{"indirect: range, lowered", fakemetal.Options{Range: 3}, "4 commands from 0 on, of 8: a range has 1 to 3", func(r *ready) {
		objc.ExecuteCommands.Send(r.k, uintptr(r.own(r.indirect(8, 2))), 0, 4)
	}},
	{"indirect: offset of more than 32 bits", fakemetal.Options{}, "byte 4294967296: an indirect command has offsets below 4294967296", func(r *ready) {
		objc.IndirectSetBuffer.Send(objc.IndirectCommand.SendID(r.own(r.indirect(2, 2)), 0), uintptr(r.x), 1<<32, 0)
	}},
	{"indirect: offset, lowered", fakemetal.Options{Reach: 8}, "byte 8: an indirect command has offsets below 8", func(r *ready) {
		objc.IndirectSetBuffer.Send(objc.IndirectCommand.SendID(r.own(r.indirect(2, 2)), 0), uintptr(r.x), 8, 0)
	}},
	{"indirect: range behind the end", fakemetal.Options{}, "2 commands from 1 on, of 2", func(r *ready) {
		objc.ExecuteCommands.Send(r.k, uintptr(r.own(r.indirect(2, 2))), 1, 2)
	}},
	{"indirect: changed in flight", fakemetal.Options{}, "setBarrier: a command buffer in flight executes the indirect command buffer", func(r *ready) {
		p := &pair{engine: r.engine, step: r.step, x: r.x, icb: r.own(r.indirect(2, 2))}
		p.store(0, doubles, false)
		c := r.commandBuffer()
		run := r.hold(c)
		p.pass(c, true, func(k objc.ID) { p.execute(k, 0, 1) })
		objc.Commit.Send(c)
		objc.IndirectSetBarrier.Send(objc.IndirectCommand.SendID(p.icb, 0))
		run()
	}},
	{"indirect: buffer freed", fakemetal.Options{}, "executeCommandsInBuffer:withRange:: the buffer of argument 0 (x) was freed", func(r *ready) {
		p := &pair{engine: r.engine, step: r.step, x: r.set(0, 16), icb: r.own(r.indirect(2, 2))}
		p.store(0, doubles, false)
		objc.ExecuteCommands.Send(r.k, uintptr(p.icb), 0, 1)
		objc.EndEncoding.Send(r.k)
		objc.Release(p.x)
		finish(r.c)
	}},
	{"indirect: not resident", fakemetal.Options{Residency: true}, "command 0 uses a buffer that is not resident", func(r *ready) {
		p := &pair{engine: r.engine, step: r.step, x: r.x, icb: r.own(r.indirect(2, 2))}
		p.store(0, doubles, false)
		objc.ExecuteCommands.Send(r.k, uintptr(p.icb), 0, 1)
		objc.EndEncoding.Send(r.k)
		finish(r.c)
	}},
	{"usage", fakemetal.Options{}, "useResource:usage:: there is no usage 0", func(r *ready) { objc.UseResource.Send(r.k, uintptr(r.x), 0) }},
	{"resource of another class", fakemetal.Options{}, "useResource:usage: is given MTLComputePipelineState for a MTLResource", func(r *ready) {
		objc.UseResource.Send(r.k, uintptr(r.step), 1)
	}},
	{"residency: not in the set", fakemetal.Options{}, "removeAllocation:: the set does not have the allocation", func(r *ready) {
		objc.RemoveAllocation.Send(r.residency(), uintptr(r.x))
	}},
	{"samples between dispatches", fakemetal.Options{}, "the device samples counters at the boundaries of encoders alone", func(r *ready) {
		objc.SampleCounters.Send(r.k, uintptr(r.samples(2)), 0, 0)
	}},
	{"samples behind the end", fakemetal.Options{}, "resolveCounterRange:: 2 samples from 1 on, of 2", func(r *ready) {
		objc.ResolveCounters.Send(r.samples(2), 1, 2)
	}},
	{"constant of no type", fakemetal.Options{}, "setConstantValue:type:atIndex:: a value of type 2 at index 0", func(r *ready) {
		v := objc.ID(r.object("MTLFunctionConstantValues"))
		w := uint64(1)
		at(&w, func(p uintptr) { objc.SetConstantValue.Send(v, p, 2, 0) })
	}},
	{"language of a later system", fakemetal.Options{MacOS: 14}, "macOS 14 has no version 3.2", func(r *ready) {
		objc.SetLanguageVersion.Send(objc.ID(r.object("MTLCompileOptions")), 3<<16+2)
	}},
	{"method of a later system", fakemetal.Options{MacOS: 14}, "setMathMode: is sent to a MTLCompileOptions: macOS 14 does not have it", func(r *ready) {
		o := objc.ID(r.object("MTLCompileOptions"))
		assert.False(r.t, objc.Responds(o, objc.SetMathMode))
		objc.SetMathMode.Send(o, 0)
	}},
	{"descriptor without a function", fakemetal.Options{}, "the descriptor has no function", func(r *ready) {
		_, err := r.build(objc.ID(r.object("MTLComputePipelineDescriptor")), 0)
		assert.ErrorContains(r.t, err, "said no reason")
	}},
	{"queue of nothing", fakemetal.Options{}, "a queue of no command buffers", func(r *ready) { objc.NewQueue.Send(r.device, 0) }},
	{"capture stopped", fakemetal.Options{}, "stopCapture: no capture is being made", func(r *ready) {
		objc.StopCapture.Send(objc.SharedCaptureManager.SendID(objc.ClassNamed("MTLCaptureManager")))
	}},
	{"capture never stopped", fakemetal.Options{Capture: true}, "a capture was never stopped", func(r *ready) {
		d := objc.ID(r.object("MTLCaptureDescriptor"))
		objc.SetCaptureObject.Send(d, uintptr(r.device))
		objc.SetCaptureDestination.Send(d, uintptr(objc.CaptureDestinationGPUTraceDocument))
		path := objc.String(filepath.Join(r.t.TempDir(), "one.gputrace"))
		objc.SetCaptureURL.Send(d, uintptr(objc.FileURLWithPath.SendID(objc.ClassNamed("NSURL"), uintptr(path))))
		m := objc.SharedCaptureManager.SendID(objc.ClassNamed("MTLCaptureManager"))
		assert.True(r.t, objc.StartCapture.SendBool(m, uintptr(d), 0))
	}},
	{"leak", fakemetal.Options{}, "1 MTLBuffer leak", func(r *ready) { r.set(0, 16) }},
	{"too many releases", fakemetal.Options{}, "an object that was freed is released", func(r *ready) {
		b := r.set(0, 16)
		objc.Release(b)
		objc.Release(b)
	}},
	{"protocol's object", fakemetal.Options{}, "", func(r *ready) { assert.Zero(r.t, objc.ClassNamed("MTLBuffer")) }},
}

// TestRules: a program that breaks a rule is noted, and one that breaks none is not.
func TestRules(t *testing.T) {
	sample.Long(t)
	for _, c := range rules {
		t.Run(c.name, func(t *testing.T) {
			var l *fakemetal.Library
			run := func(breaks func(r *ready)) {
				l = run(t, c.options, func(e *engine) {
					r := &ready{engine: e, step: e.pipeline("advance"), x: e.buffer(false, 1, 2, 3, 4)}
					r.c = r.commandBuffer()
					r.k = r.encoder(r.c, true)
					objc.SetPipeline.Send(r.k, uintptr(r.step))
					objc.SetBuffer.Send(r.k, uintptr(r.x), 0, 0)
					setBytes(r.k, 1, [8]uint32{2})
					if breaks == nil {
						r.dispatch()
						objc.EndEncoding.Send(r.k)
						require.NoError(t, finish(r.c))
						return
					}
					breaks(r)
				})
			}
			run(nil)
			require.Empty(t, l.Failures())
			run(c.breaks)
			found := l.Failures()
			var other []string
			for _, f := range found {
				// That a program leaves encoders open is not the rule that it is about.
				if !strings.Contains(f, c.want) && f != "an encoder is freed that has not ended" {
					other = append(other, f)
				}
			}
			if c.want != "" {
				assert.Contains(t, strings.Join(found, "\n"), c.want)
			}
			assert.Empty(t, other)
		})
	}
	assert.Greater(t, len(rules), 80)
}
