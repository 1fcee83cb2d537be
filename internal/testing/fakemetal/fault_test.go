//go:build linux

package fakemetal_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/objc"
	"github.com/mlxc/mlxc/internal/testing/fakemetal"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/internal/toolchain/clang"
)

// TestFaults: each operation fails when a Fault says so, with an error like Metal's, and works the next time.
func TestFaults(t *testing.T) {
	faults := []fakemetal.Fault{
		{On: fakemetal.Allocation, Nth: 2}, {On: fakemetal.Compilation, Nth: 2, Text: "the compiler crashed"},
		{On: fakemetal.PipelineState, Nth: 2, Code: 9, Text: "no registers are left"}, {On: fakemetal.Queue, Nth: 1},
		{On: fakemetal.Event, Nth: 2}, {On: fakemetal.Archive, Nth: 1, Text: "no archive"},
		{On: fakemetal.ResidencySet, Nth: 1, Text: "no set"}, {On: fakemetal.SampleBuffer, Nth: 1, Text: "no samples"},
	}
	run(t, fakemetal.Options{Faults: faults}, func(e *engine) {
		e.buffer(true, 1)
		assert.Zero(t, e.set(0, 16))
		assert.NotZero(t, e.own(e.set(0, 16)))

		e.sources()
		_, err := e.compile(source)
		assert.Equal(t, &objc.Error{Domain: "MTLLibraryErrorDomain", Code: 3, Description: "the compiler crashed"}, err)
		l, err := e.compile(source)
		require.NoError(t, err)
		e.own(l)

		e.pipeline("add")
		f, err := e.function(e.sources(), "add")
		require.NoError(t, err)
		_, err = e.build(e.descriptor(e.own(f), false), 0)
		assert.ErrorContains(t, err, "no registers are left (AGXMetalSoftware 9)")
		e.pipeline("add")

		assert.Zero(t, objc.NewQueue.Send(e.device, 4))
		assert.NotZero(t, e.commands())
		e.own(objc.NewFence.SendID(e.device))
		assert.Zero(t, objc.NewSharedEvent.Send(e.device))

		for _, c := range []struct {
			m           *objc.Method
			class, want string
		}{
			{objc.NewBinaryArchive, "MTLBinaryArchiveDescriptor", "no archive"},
			{objc.NewResidencySet, "MTLResidencySetDescriptor", "no set"},
			{objc.NewCounterSampleBuffer, "MTLCounterSampleBufferDescriptor", "no samples"},
		} {
			d := e.object(c.class)
			_, err := objc.WithError(c.m, func(slot uintptr) uintptr { return c.m.Send(e.device, d, slot) })
			assert.ErrorContains(t, err, c.want)
		}
	})
}

// TestCommandBufferFaults: a command buffer ends with each of the errors after half of it has run, and the
// next one works; after DeviceRemoved nothing works.
func TestCommandBufferFaults(t *testing.T) {
	for _, c := range []struct {
		code int
		want string
	}{
		{1, "Internal Error"}, {2, "Timeout"}, {3, "PageFault"}, {4, "SubmissionsIgnored"}, {7, "NotPermitted"}, {8, "Insufficient Memory"},
		{9, "InvalidResource"}, {12, "StackOverflow"}, {fakemetal.Interactivity, "Impacting Interactivity (0000000e:kIOGPUCommandBufferCallbackErrorImpactingInteractivity)"},
		{fakemetal.DeviceRemoved, "DeviceRemoved"},
	} {
		run(t, fakemetal.Options{Faults: []fakemetal.Fault{{On: fakemetal.CommandBuffer, Nth: 2, Code: c.code}}}, func(e *engine) {
			p, x := e.pipeline("advance"), e.buffer(false, 1)
			require.NoError(t, finish(e.step(p, x)))
			b := e.commandBuffer()
			k := e.encoder(b, false)
			objc.SetPipeline.Send(k, uintptr(p))
			objc.SetBuffer.Send(k, uintptr(x), 0, 0)
			setBytes(k, 1, doubles)
			for range 4 {
				threads(k, size{1, 1, 1}, size{1, 1, 1})
			}
			objc.EndEncoding.Send(k)
			err := finish(b)
			var failure *objc.Error
			require.ErrorAs(t, err, &failure)
			assert.Equal(t, "MTLCommandBufferErrorDomain", failure.Domain)
			assert.Equal(t, c.code, failure.Code)
			assert.Contains(t, failure.Description, c.want)
			assert.EqualValues(t, objc.CommandBufferStatusError, objc.BufferStatus.Send(b))
			assert.EqualValues(t, 15, e.words(x)[0], "two of four steps")
			err = finish(e.step(p, x))
			if c.code != fakemetal.DeviceRemoved {
				assert.NoError(t, err)
				return
			}
			assert.ErrorContains(t, err, "DeviceRemoved")
			assert.Zero(t, e.set(0, 16))
			_, err = e.compile(source)
			assert.ErrorContains(t, err, "the device is lost")
			assert.Zero(t, objc.NewQueue.Send(e.device, 4))
		})
	}
}

// TestFaultInBatch: a failed command buffer does not signal its event. A command buffer that waits for the
// event ends with a timeout, which is not noted as a mistake.
func TestFaultInBatch(t *testing.T) {
	run(t, fakemetal.Options{Patience: 100 * time.Millisecond, Faults: []fakemetal.Fault{{On: fakemetal.CommandBuffer, Nth: 2, Code: 8}}}, func(e *engine) {
		p, x := e.pipeline("advance"), e.buffer(false, 1)
		ev := uintptr(e.own(objc.NewEvent.SendID(e.device)))
		c := e.step(p, x)
		objc.EncodeSignalEvent.Send(c, ev, 1)
		d := e.commandBuffer()
		objc.EncodeWaitForEvent.Send(d, ev, 1)
		objc.Commit.Send(d)
		assert.ErrorContains(t, finish(c), "OutOfMemory")
		objc.WaitUntilCompleted.Send(d)
		assert.ErrorContains(t, objc.Failure(objc.BufferError.SendID(d)), "Timeout")
	})
}

// TestInteractivity: a command buffer of more than MaxDispatches ends with an error, shorter ones do not.
func TestInteractivity(t *testing.T) {
	run(t, fakemetal.Options{MaxDispatches: 2}, func(e *engine) {
		p, x := e.pipeline("advance"), e.buffer(false, 1)
		for n := range 4 {
			c := e.commandBuffer()
			k := e.encoder(c, false)
			objc.SetPipeline.Send(k, uintptr(p))
			objc.SetBuffer.Send(k, uintptr(x), 0, 0)
			setBytes(k, 1, doubles)
			for range n {
				threads(k, size{1, 1, 1}, size{1, 1, 1})
				objc.MemoryBarrier.Send(k, uintptr(objc.BarrierScopeBuffers))
			}
			objc.EndEncoding.Send(k)
			if err := finish(c); n <= 2 {
				assert.NoError(t, err)
			} else {
				assert.ErrorContains(t, err, "ImpactingInteractivity")
			}
		}
	})
}

// TestArm64: the C half compiles for arm64, where the C code takes an MTLSize by value.
func TestArm64(t *testing.T) {
	sample.Seldom(t)
	c, err := clang.Find(context.Background())
	require.NoError(t, err)
	files, err := filepath.Glob("c/*.c")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	out := filepath.Join(t.TempDir(), "fakemetal.so")
	args := append([]string{"-target", "aarch64-linux-gnu", "-O1", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-fvisibility=hidden", "-fPIC", "-shared", "-pthread", "-o", out}, files...)
	text, err := c.Program(context.Background(), args...).CombinedOutput()
	require.NoError(t, err, "%s", text)
	head, err := os.ReadFile(out)
	require.NoError(t, err)
	assert.Equal(t, byte(183), head[18], "EM_AARCH64")
}

// TestNotShared: the C half includes no other files of the module, so that it shares no code with the
// backend.
func TestNotShared(t *testing.T) {
	files, err := filepath.Glob("c/*")
	require.NoError(t, err)
	for _, f := range files {
		text, err := os.ReadFile(f)
		require.NoError(t, err)
		for l := range strings.Lines(string(text)) {
			if strings.HasPrefix(l, "#include \"") {
				name := strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(l), "#include \""), "\"")
				assert.Contains(t, []string{"objc.h", "metal.h", "schedule.h", "blocks.h"}, name, f)
			}
		}
	}
}
