//go:build linux

package fakemetal_test

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/mlxc/mlxc/internal/objc"
	"github.com/mlxc/mlxc/internal/testing/fakemetal"
	"github.com/mlxc/mlxc/internal/testing/metallibs"
)

// residency makes a residency set.
func (e *engine) residency() objc.ID {
	d := e.object("MTLResidencySetDescriptor")
	objc.SetInitialCapacity.Send(objc.ID(d), 4)
	r, err := objc.WithError(objc.NewResidencySet, func(slot uintptr) uintptr { return objc.NewResidencySet.Send(e.device, d, slot) })
	require.NoError(e.t, err)
	return e.own(objc.ID(r))
}

// samples makes a counter sample buffer of n timestamps.
func (e *engine) samples(n uintptr) objc.ID {
	d := e.object("MTLCounterSampleBufferDescriptor")
	sets := objc.Objects(objc.CounterSets.SendID(e.device))
	require.Len(e.t, sets, 1)
	assert.Equal(e.t, "timestamp", objc.GoString(objc.CounterSetName.SendID(sets[0])))
	objc.SetCounterSet.Send(objc.ID(d), uintptr(sets[0]))
	objc.SetSampleCount.Send(objc.ID(d), n)
	objc.SetSampleStorage.Send(objc.ID(d), uintptr(objc.StorageModeShared))
	r, err := objc.WithError(objc.NewCounterSampleBuffer, func(slot uintptr) uintptr { return objc.NewCounterSampleBuffer.Send(e.device, d, slot) })
	require.NoError(e.t, err)
	return e.own(objc.ID(r))
}

// step encodes one step on x in a new command buffer.
func (e *engine) step(p, x objc.ID) objc.ID {
	c := e.commandBuffer()
	k := e.encoder(c, false)
	objc.SetPipeline.Send(k, uintptr(p))
	objc.SetBuffer.Send(k, uintptr(x), 0, 0)
	setBytes(k, 1, doubles)
	threads(k, size{1, 1, 1}, size{1, 1, 1})
	objc.EndEncoding.Send(k)
	return c
}

func TestDevice(t *testing.T) {
	run(t, fakemetal.Options{WorkingSet: 123 << 20}, func(e *engine) {
		d := e.device
		all := objc.AllDevices()
		assert.Equal(t, []objc.ID{d}, objc.Objects(all))
		objc.Release(all)
		assert.Equal(t, "software Metal", objc.GoString(objc.DeviceName.SendID(d)))
		assert.NotEmpty(t, objc.GoString(objc.ArchitectureName.SendID(objc.DeviceArchitecture.SendID(d))))
		assert.NotZero(t, objc.RegistryID.Send(d))
		assert.True(t, objc.HasUnifiedMemory.SendBool(d))
		for _, m := range []*objc.Method{objc.IsLowPower, objc.IsHeadless, objc.IsRemovable} {
			assert.False(t, m.SendBool(d), m)
		}
		for family, has := range map[uint64]bool{objc.GPUFamilyApple1: true, objc.GPUFamilyApple7: true, objc.GPUFamilyApple10: false, objc.GPUFamilyMac2: true, objc.GPUFamilyMetal3: true, objc.GPUFamilyMetal4: false} {
			assert.Equal(t, has, objc.SupportsFamily.SendBool(d, uintptr(family)), family)
		}
		assert.EqualValues(t, 123<<20, objc.RecommendedWorkingSet.Send(d))
		assert.EqualValues(t, 32<<10, objc.MaxThreadgroupMemory.Send(d))
		assert.NotZero(t, objc.MaxBufferLength.Send(d))
		before := objc.CurrentAllocatedSize.Send(d)
		b := e.buffer(true, make([]uint32, 1000)...)
		assert.EqualValues(t, 4000, objc.CurrentAllocatedSize.Send(d)-before)
		objc.SetResourceLabel.Send(b, uintptr(objc.String("b")))
		private := e.own(objc.NewBuffer.SendID(d, 100, uintptr(objc.ResourceStorageModePrivate)))
		assert.Zero(t, objc.Contents.Send(private))
		for i, m := range objc.Table {
			if m.Static || m.Class != "MTLDevice" {
				continue
			}
			assert.True(t, objc.Responds(d, m), "%d %v", i, m)
		}
	})
	run(t, fakemetal.Options{MacOS: 14}, func(e *engine) {
		assert.False(t, objc.Responds(e.device, objc.NewResidencySet))
		assert.Zero(t, objc.ClassNamed("MTLResidencySetDescriptor"))
	})
}

// TestTable: the stand-in has every method of the table, for objects of its class or for the class.
func TestTable(t *testing.T) {
	l := fakemetal.Build(t)
	for _, m := range objc.Table {
		assert.True(t, l.Knows(m.Class, m.Selector, m.Static), "%v", m)
	}
	assert.False(t, l.Knows("MTLDevice", "newTextureWithDescriptor:", false))
	assert.False(t, l.Knows("MTLNothing", "name", false))
}

func TestWithoutDevice(t *testing.T) {
	l := fakemetal.Build(t)
	require.NoError(t, objc.Load(l.Path))
	objc.Pool(func() {
		assert.Zero(t, objc.SystemDefaultDevice())
		all := objc.AllDevices()
		assert.Empty(t, objc.Objects(all))
		objc.Release(all)
	})
	assert.Empty(t, l.Failures())
}

// TestConstants: kernels see function constants; a missing one, or one of another type, is an error.
func TestConstants(t *testing.T) {
	run(t, fakemetal.Options{}, func(e *engine) {
		yes := constant{4, uintptr(objc.DataTypeBool), 1}
		more := constant{7, uintptr(objc.DataTypeInt), uint64(uint32(math.MaxUint32))} // −1
		x := e.buffer(false, 21)
		for _, p := range []objc.ID{e.pipeline("special", yes, more), e.pipeline("special", constant{4, uintptr(objc.DataTypeBool), 0}, constant{7, uintptr(objc.DataTypeInt), 100})} {
			c := e.commandBuffer()
			k := e.encoder(c, false)
			objc.SetPipeline.Send(k, uintptr(p))
			objc.SetBuffer.Send(k, uintptr(x), 0, 0)
			threads(k, size{1, 1, 1}, size{1, 1, 1})
			objc.EndEncoding.Send(k)
			require.NoError(t, finish(c))
		}
		assert.Equal(t, uint32(141), e.words(x)[0])
		_, err := e.function(e.sources(), "special", yes)
		assert.ErrorContains(t, err, "function constant more (7) of special has no value")
		_, err = e.function(e.sources(), "special", yes, constant{7, uintptr(objc.DataTypeFloat), 1})
		assert.ErrorContains(t, err, "function constant more (7) has the type 29, its value 3")
		_, err = e.function(e.sources(), "nothing")
		assert.ErrorContains(t, err, "no function nothing (MTLLibraryErrorDomain 5)")
		var names []string
		for _, o := range objc.Objects(objc.FunctionNames.SendID(e.sources())) {
			names = append(names, objc.GoString(o))
		}
		assert.Equal(t, []string{"add", "advance", "tripled", "reversed", "special", "stray"}, names)
	})
}

// TestThreadgroupMemory: a kernel can use threadgroup memory whose length the encoder sets.
func TestThreadgroupMemory(t *testing.T) {
	run(t, fakemetal.Options{}, func(e *engine) {
		x := e.buffer(false, 1, 2, 3, 4, 5, 6, 7, 8)
		c := e.commandBuffer()
		k := e.encoder(c, false)
		objc.SetPipeline.Send(k, uintptr(e.pipeline("reversed")))
		objc.SetBuffer.Send(k, uintptr(x), 0, 0)
		objc.SetThreadgroupMemory.Send(k, 32, 0)
		threads(k, size{8, 1, 1}, size{8, 1, 1})
		objc.EndEncoding.Send(k)
		require.NoError(t, finish(c))
		assert.Equal(t, []uint32{8, 7, 6, 5, 4, 3, 2, 1}, e.words(x))
	})
}

// TestErrors: a source with a mistake, a missing file, and a kernel that writes outside of its buffer.
func TestErrors(t *testing.T) {
	run(t, fakemetal.Options{}, func(e *engine) {
		_, err := e.compile("kernel void f(device float *x [[buffer(0)]]) { x[0] = y; }")
		assert.ErrorContains(t, err, "program_source:1: error:")
		assert.ErrorContains(t, err, "(MTLLibraryErrorDomain 3)")
		assert.False(t, e.Compiled()[0].FastMath)
		assert.Equal(t, int(objc.LanguageVersion3_1), e.Compiled()[0].Language)
		assert.Equal(t, -1, e.Compiled()[0].MathMode)
		_, err = e.open(filepath.Join(t.TempDir(), "nothing.metallib"))
		assert.ErrorContains(t, err, "(MTLLibraryErrorDomain 6)")

		x := e.buffer(false, 1)
		c := e.commandBuffer()
		k := e.encoder(c, false)
		objc.SetPipeline.Send(k, uintptr(e.pipeline("stray")))
		objc.SetBuffer.Send(k, uintptr(x), 0, 0)
		threads(k, size{1, 1, 1}, size{1, 1, 1})
		objc.EndEncoding.Send(k)
		err = finish(c)
		assert.ErrorContains(t, err, "stray")
		assert.ErrorContains(t, err, "(MTLCommandBufferErrorDomain 3)")
		require.NoError(t, finish(e.step(e.pipeline("advance"), x)), "the device goes on")
		assert.Equal(t, uint32(3), e.words(x)[0])
	})
}

func (e *engine) open(path string) (objc.ID, error) {
	r, err := objc.WithError(objc.NewLibraryWithURL, func(slot uintptr) uintptr {
		return objc.NewLibraryWithURL.Send(e.device, uintptr(objc.FileURLWithPath.SendID(objc.ClassNamed("NSURL"), uintptr(objc.String(path)))), slot)
	})
	return objc.ID(r), err
}

// TestMetallib: a kernel from a .metallib, compiled by Apple's compiler, runs.
func TestMetallib(t *testing.T) {
	run(t, fakemetal.Options{}, func(e *engine) {
		path := filepath.Join(t.TempDir(), "small.metallib")
		require.NoError(t, os.WriteFile(path, metallibs.Small(t, "vv_Addfloat32"), 0o600))
		l, err := e.open(path)
		require.NoError(t, err)
		e.own(l)
		f, err := e.function(l, "vv_Addfloat32")
		require.NoError(t, err)
		p, err := e.build(e.descriptor(e.own(f), false), 0)
		require.NoError(t, err)
		e.own(p)
		one := func(v float32) []uint32 { return []uint32{math.Float32bits(v), math.Float32bits(2 * v)} }
		x, y, z := e.buffer(true, one(1)...), e.buffer(true, one(10)...), e.buffer(true, 0, 0)
		c := e.commandBuffer()
		k := e.encoder(c, true)
		objc.SetPipeline.Send(k, uintptr(p))
		for i, b := range []objc.ID{x, y, z} {
			objc.SetBuffer.Send(k, uintptr(b), 0, uintptr(i))
		}
		setBytes(k, 3, uint32(2))
		threads(k, size{2, 1, 1}, size{2, 1, 1})
		objc.EndEncoding.Send(k)
		require.NoError(t, finish(c))
		assert.Equal(t, one(11), e.words(z))
	})
}

// TestNoCopy: a buffer without a copy shares its contents with the host; when it is freed, the host's
// memory keeps them.
func TestNoCopy(t *testing.T) {
	run(t, fakemetal.Options{}, func(e *engine) {
		mem := pages(t, 32<<10, unix.PROT_READ|unix.PROT_WRITE)
		word := func(at int) uint32 { return binary.LittleEndian.Uint32(mem[at:]) }
		binary.LittleEndian.PutUint32(mem, 5)
		binary.LittleEndian.PutUint32(mem[16<<10:], 7)
		b := e.noCopy(address(mem), 32<<10)
		require.NotZero(t, b)
		half := e.noCopy(address(mem)+16<<10, 16<<10)
		require.NotZero(t, half, "memory within that of another buffer")
		assert.Equal(t, address(mem), objc.Contents.Send(b))
		p := e.pipeline("advance")
		require.NoError(t, finish(e.step(p, b)))
		require.NoError(t, finish(e.step(p, half)))
		assert.Equal(t, []uint32{11, 15}, []uint32{word(0), word(16 << 10)})
		binary.LittleEndian.PutUint32(mem, 20)
		require.NoError(t, finish(e.step(p, b)))
		assert.EqualValues(t, 41, word(0))
		objc.Release(b)
		require.NoError(t, finish(e.step(p, half)))
		objc.Release(half)
		assert.Equal(t, []uint32{41, 31}, []uint32{word(0), word(16 << 10)})
		mem[5] = 9

		read := pages(t, 16<<10, unix.PROT_READ|unix.PROT_WRITE)
		binary.LittleEndian.PutUint32(read, 5)
		require.NoError(t, unix.Mprotect(read, unix.PROT_READ))
		r := e.own(e.noCopy(address(read), 16<<10))
		out := e.buffer(false, 0)
		c := e.commandBuffer()
		k := e.encoder(c, false)
		objc.SetPipeline.Send(k, uintptr(e.pipeline("tripled")))
		objc.SetBuffer.Send(k, uintptr(r), 0, 0)
		objc.SetBuffer.Send(k, uintptr(out), 0, 1)
		threads(k, size{1, 1, 1}, size{1, 1, 1})
		objc.EndEncoding.Send(k)
		require.NoError(t, finish(c))
		assert.EqualValues(t, 16, e.words(out)[0])
	})
}

// TestLate: with Options.Late a command buffer completes some time after it has run, also if nobody waits
// for it.
func TestLate(t *testing.T) {
	for _, seed := range []uint64{0, 2} {
		run(t, fakemetal.Options{Late: 30 * time.Millisecond, Seed: seed}, func(e *engine) {
			p, x := e.pipeline("advance"), e.buffer(false, 1)
			seen := 0
			// On a busy machine this test may always look too late to see it incomplete.
			for i := 0; i < 5 || seed == 0 && seen == 0 && i < 100; i++ {
				e.words(x)[0] = 1
				c := e.step(p, x)
				objc.Commit.Send(c)
				status := objc.BufferStatus.Send(c)
				if seed != 0 {
					objc.WaitUntilCompleted.Send(c)
				}
				for deadline := time.Now().Add(time.Minute); status != uintptr(objc.CommandBufferStatusCompleted) && time.Now().Before(deadline); {
					time.Sleep(time.Millisecond)
					ran := e.words(x)[0] == 3
					status = objc.BufferStatus.Send(c)
					if ran && status < uintptr(objc.CommandBufferStatusCompleted) {
						seen++
					}
				}
				assert.EqualValues(t, objc.CommandBufferStatusCompleted, status)
				assert.EqualValues(t, 3, e.words(x)[0])
			}
			assert.Equal(t, seed == 0, seen > 0, "has run, and is not complete")
			c := e.step(p, x)
			objc.Commit.Send(c)
			for deadline := time.Now().Add(time.Minute); objc.BufferStatus.Send(c) < uintptr(objc.CommandBufferStatusCompleted) && time.Now().Before(deadline); {
				time.Sleep(time.Millisecond)
			}
			assert.EqualValues(t, objc.CommandBufferStatusCompleted, objc.BufferStatus.Send(c), "though nobody waits")
		})
	}
}

// TestResidency: buffers in a committed residency set of the queue are resident, and so are those that
// the encoder declares.
func TestResidency(t *testing.T) {
	run(t, fakemetal.Options{Residency: true}, func(e *engine) {
		p := &pair{engine: e, step: e.pipeline("advance"), x: e.buffer(false, 5, 0, 0, 0), icb: e.own(e.indirect(2, 2))}
		f := p.factors(doubles)
		k := objc.IndirectCommand.SendID(p.icb, 0)
		objc.IndirectSetPipeline.Send(k, uintptr(p.step))
		objc.IndirectSetBuffer.Send(k, uintptr(p.x), 0, 0)
		objc.IndirectSetBuffer.Send(k, uintptr(f), 0, 1)
		grid, group := size{1, 1, 1}, size{1, 1, 1}
		at(&grid, func(g uintptr) { at(&group, func(s uintptr) { objc.IndirectDispatchThreads.Send(k, g, s) }) })
		set := e.residency()
		execute := func(f func(k objc.ID)) int {
			c := e.commandBuffer()
			p.pass(c, true, func(k objc.ID) {
				f(k)
				p.execute(k, 0, 1)
			})
			require.NoError(t, finish(c))
			return len(e.l.Failures())
		}
		assert.Zero(t, execute(func(k objc.ID) {
			list := [2]objc.ID{p.x, f}
			at(&list, func(l uintptr) {
				objc.UseResources.Send(k, l, 2, uintptr(objc.ResourceUsageRead|objc.ResourceUsageWrite))
			})
		}))
		objc.AddAllocation.Send(set, uintptr(p.x))
		objc.AddAllocation.Send(set, uintptr(f))
		objc.QueueAddResidency.Send(e.commands(), uintptr(set))
		assert.Equal(t, 2, execute(func(objc.ID) {}), "the set is not committed")
		objc.CommitResidency.Send(set)
		objc.RequestResidency.Send(set)
		assert.Zero(t, execute(func(objc.ID) {}))
		objc.RemoveAllocation.Send(set, uintptr(f))
		objc.CommitResidency.Send(set)
		assert.Equal(t, 1, execute(func(objc.ID) {}))
		objc.QueueRemoveResidency.Send(e.commands(), uintptr(set))
		objc.EndResidency.Send(set)
		assert.Equal(t, 2, execute(func(objc.ID) {}))
	})
}

// TestCounters: timestamps of encoders and between dispatches, converted by two clock pairs, are right.
func TestCounters(t *testing.T) {
	run(t, fakemetal.Options{SampleDispatches: true}, func(e *engine) {
		pair := func() (cpu, gpu float64) {
			var a, b uint64
			at(&a, func(p uintptr) { at(&b, func(q uintptr) { objc.SampleTimestamps.Send(e.device, p, q) }) })
			return float64(a), float64(b)
		}
		assert.True(t, objc.SupportsCounterSampling.SendBool(e.device, uintptr(objc.CounterSamplingPointAtStageBoundary)))
		samples := e.samples(6)
		cpu0, gpu0 := pair()
		p, x := e.pipeline("advance"), e.buffer(false, 1)
		d := objc.ComputePassDescriptor.SendID(objc.ClassNamed("MTLComputePassDescriptor"))
		objc.SetPassDispatchType.Send(d, uintptr(objc.DispatchTypeConcurrent))
		a := objc.PassSampleAt.SendID(objc.PassSamples.SendID(d), 0)
		objc.SetPassSampleBuffer.Send(a, uintptr(samples))
		objc.SetPassStartIndex.Send(a, 1)
		objc.SetPassEndIndex.Send(a, 2)
		c := e.commandBuffer()
		k := objc.ComputeEncoderOfPass.SendID(c, uintptr(d))
		objc.SetPipeline.Send(k, uintptr(p))
		objc.SetBuffer.Send(k, uintptr(x), 0, 0)
		setBytes(k, 1, doubles)
		objc.SampleCounters.Send(k, uintptr(samples), 3, 1)
		threads(k, size{1, 1, 1}, size{1, 1, 1})
		objc.SampleCounters.Send(k, uintptr(samples), 4, 1)
		objc.EndEncoding.Send(k)
		require.NoError(t, finish(c))
		cpu1, gpu1 := pair()
		data := objc.ResolveCounters.SendID(samples, 0, 6)
		require.EqualValues(t, 48, objc.DataLength.Send(data))
		bytes := objc.Bytes(objc.DataBytes.Send(data), 48)
		at := func(i int) float64 { // seconds
			v := float64(binary.LittleEndian.Uint64(bytes[8*i:]))
			return (cpu0 + (v-gpu0)*(cpu1-cpu0)/(gpu1-gpu0)) / 1e9
		}
		begin, end := objc.GPUStartTime.SendDouble(c), objc.GPUEndTime.SendDouble(c)
		assert.InDelta(t, begin, at(1), 1e-5)
		assert.InDelta(t, end, at(2), 1e-5)
		assert.LessOrEqual(t, at(3), at(1))
		assert.GreaterOrEqual(t, at(4), at(2)-1e-5)
		for _, i := range []int{0, 5} {
			assert.Equal(t, uint64(math.MaxUint64), binary.LittleEndian.Uint64(bytes[8*i:]), "not sampled")
		}
	})
}

// TestCapture: a capture writes a file, if captures are enabled.
func TestCapture(t *testing.T) {
	path := filepath.Join(t.TempDir(), "one.gputrace")
	start := func(e *engine) (objc.ID, error) {
		m := objc.SharedCaptureManager.SendID(objc.ClassNamed("MTLCaptureManager"))
		d := objc.ID(e.object("MTLCaptureDescriptor"))
		objc.SetCaptureObject.Send(d, uintptr(e.commands()))
		objc.SetCaptureDestination.Send(d, uintptr(objc.CaptureDestinationGPUTraceDocument))
		objc.SetCaptureURL.Send(d, uintptr(objc.FileURLWithPath.SendID(objc.ClassNamed("NSURL"), uintptr(objc.String(path)))))
		_, err := objc.WithError(objc.StartCapture, func(slot uintptr) uintptr { return objc.StartCapture.Send(m, uintptr(d), slot) & 0xff })
		return m, err
	}
	run(t, fakemetal.Options{}, func(e *engine) {
		m, err := start(e)
		assert.ErrorContains(t, err, "MTL_CAPTURE_ENABLED is not set (MTLCaptureErrorDomain 1)")
		assert.False(t, objc.SupportsDestination.SendBool(m, uintptr(objc.CaptureDestinationGPUTraceDocument)))
	})
	run(t, fakemetal.Options{Capture: true, Faults: []fakemetal.Fault{{On: fakemetal.Capture, Nth: 3, Text: "no room"}}}, func(e *engine) {
		m, err := start(e)
		require.NoError(t, err)
		assert.True(t, objc.IsCapturing.SendBool(m))
		_, err = start(e)
		assert.ErrorContains(t, err, "a capture is being made (MTLCaptureErrorDomain 2)")
		p, x := e.pipeline("advance"), e.buffer(false, 1)
		require.NoError(t, finish(e.step(p, x)))
		captured := e.queue
		e.queue = e.own(objc.NewQueue.SendID(e.device, 4))
		require.NoError(t, finish(e.step(p, x)), "on a queue that is not captured")
		e.queue = captured
		objc.StopCapture.Send(m)
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Equal(t, "1 command buffers of software Metal, in flight before: 0, after: 0\n", string(text))
		_, err = start(e)
		assert.ErrorContains(t, err, "no room")
		_, err = start(e)
		assert.ErrorContains(t, err, "(MTLCaptureErrorDomain 3)", "the file is there")
	})
}

// TestBatch: a program can be sent by one call from Go to C, with sizes and bytes in the batch's memory.
func TestBatch(t *testing.T) {
	run(t, fakemetal.Options{Seed: 3}, func(e *engine) {
		p, x := e.pipeline("advance"), e.buffer(false, 1, 2, 3, 4)
		var b objc.Batch
		defer func() { require.NoError(t, b.Close()) }()
		c := b.Send(objc.CommandBuffer, e.commands())
		k := b.SendTo(objc.ComputeEncoderOfType, c, uintptr(objc.DispatchTypeConcurrent))
		b.SendTo(objc.SetPipeline, k, uintptr(p))
		want := uint32(1)
		for i := range uint32(20) {
			f := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, 3), i)
			b.SendTo(objc.SetBuffer, k, uintptr(x), 0, 0)
			b.SendTo(objc.SetBytes, k, b.Bytes(f), 8, 1)
			b.SendTo(objc.DispatchThreads, k, b.Size(4, 1, 1), b.Size(2, 1, 1))
			b.SendTo(objc.MemoryBarrier, k, uintptr(objc.BarrierScopeBuffers))
			want = want*3 + i
		}
		b.SendTo(objc.EndEncoding, k)
		b.SendTo(objc.Commit, c)
		b.SendTo(objc.WaitUntilCompleted, c)
		status := b.SendTo(objc.BufferStatus, c)
		calls, _ := objc.Transitions()
		require.NoError(t, b.Run())
		after, _ := objc.Transitions()
		assert.EqualValues(t, 1, after-calls)
		assert.EqualValues(t, objc.CommandBufferStatusCompleted, status.Value())
		assert.Equal(t, want, e.words(x)[0])
	})
}

// TestArchive: an archive has the pipelines that were added to it, also when another device opens its file.
func TestArchive(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipelines")
	url := func() uintptr {
		return uintptr(objc.FileURLWithPath.SendID(objc.ClassNamed("NSURL"), uintptr(objc.String(path))))
	}
	archive := func(e *engine, from uintptr) (objc.ID, error) {
		d := e.object("MTLBinaryArchiveDescriptor")
		if from != 0 {
			objc.SetArchiveURL.Send(objc.ID(d), from)
		}
		r, err := objc.WithError(objc.NewBinaryArchive, func(slot uintptr) uintptr { return objc.NewBinaryArchive.Send(e.device, d, slot) })
		if r != 0 {
			e.own(objc.ID(r))
		}
		return objc.ID(r), err
	}
	build := func(e *engine, a objc.ID, name string) error {
		f, err := e.function(e.sources(), name)
		require.NoError(t, err)
		d := e.descriptor(e.own(f), false)
		at(&a, func(p uintptr) {
			objc.SetBinaryArchives.Send(d, uintptr(objc.ArrayWithObjects.SendID(objc.ClassNamed("NSArray"), p, 1)))
		})
		p, err := e.build(d, objc.PipelineOptionFailOnBinaryArchiveMiss)
		if p != 0 {
			e.own(p)
		}
		return err
	}
	run(t, fakemetal.Options{}, func(e *engine) {
		_, err := archive(e, url())
		assert.ErrorContains(t, err, "(MTLBinaryArchiveDomain 1)")
		a, err := archive(e, 0)
		require.NoError(t, err)
		assert.ErrorContains(t, build(e, a, "advance"), "no archive has the pipeline")
		f, err := e.function(e.sources(), "advance")
		require.NoError(t, err)
		d := e.descriptor(e.own(f), false)
		_, err = objc.WithError(objc.AddToArchive, func(slot uintptr) uintptr { return objc.AddToArchive.Send(a, uintptr(d), slot) & 0xff })
		require.NoError(t, err)
		require.NoError(t, build(e, a, "advance"))
		_, err = objc.WithError(objc.SerializeArchive, func(slot uintptr) uintptr { return objc.SerializeArchive.Send(a, url(), slot) & 0xff })
		require.NoError(t, err)
	})
	run(t, fakemetal.Options{}, func(e *engine) {
		a, err := archive(e, url())
		require.NoError(t, err)
		require.NoError(t, build(e, a, "advance"))
		assert.Error(t, build(e, a, "tripled"))
	})
}

// TestInherited: indirect commands can inherit pipeline and buffers from the encoder.
func TestInherited(t *testing.T) {
	run(t, fakemetal.Options{}, func(e *engine) {
		d := objc.ID(e.object("MTLIndirectCommandBufferDescriptor"))
		objc.SetCommandTypes.Send(d, uintptr(objc.IndirectCommandTypeConcurrentDispatchThreads))
		b := e.own(objc.NewIndirectCommandBuffer.SendID(e.device, uintptr(d), 3, 0))
		k := objc.IndirectCommand.SendID(b, 1) // the others are empty
		grid, group := size{1, 1, 1}, size{1, 1, 1}
		at(&grid, func(g uintptr) { at(&group, func(s uintptr) { objc.IndirectDispatchThreads.Send(k, g, s) }) })
		x := e.buffer(true, 5)
		c := e.commandBuffer()
		n := e.encoder(c, true)
		objc.SetPipeline.Send(n, uintptr(e.pipeline("advance")))
		objc.SetBuffer.Send(n, uintptr(x), 0, 0)
		setBytes(n, 1, doubles)
		objc.ExecuteCommands.Send(n, uintptr(b), 0, 3)
		setBytes(n, 1, triples)
		objc.EndEncoding.Send(n)
		require.NoError(t, finish(c))
		assert.EqualValues(t, 11, e.words(x)[0])
	})
}

// TestCounts: the library counts messages, bytes of setBytes: and objects.
func TestCounts(t *testing.T) {
	run(t, fakemetal.Options{}, func(e *engine) {
		p, x := e.pipeline("advance"), e.buffer(false, 1)
		sent, bytes, made := e.l.Sent("setBytes:length:atIndex:"), e.l.InlineBytes(), e.l.Made("MTLComputeCommandEncoder")
		for range 3 {
			require.NoError(t, finish(e.step(p, x)))
		}
		assert.Equal(t, 3, e.l.Sent("setBytes:length:atIndex:")-sent)
		assert.Equal(t, 24, e.l.InlineBytes()-bytes)
		assert.Equal(t, 3, e.l.Made("MTLComputeCommandEncoder")-made)
		assert.Equal(t, []string{"advance", "advance", "advance"}, e.Ran())
		assert.Positive(t, e.l.Live("MTLComputePipelineState"))
	})
}
