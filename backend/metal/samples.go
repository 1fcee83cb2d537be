//go:build (darwin || linux) && (amd64 || arm64)

package metal

import (
	"encoding/binary"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/internal/objc"
	"github.com/mlxc/mlxc/ir"
)

// samples are the counter sample buffers of a plan's timestamps: begin and end of each timed command.
type samples struct {
	buffers []objc.ID // MTLCounterSampleBuffer
	passes  []objc.ID // MTLComputePassDescriptor, by command, if encoders take the times
	count   int       // commands that have room in the buffers
	before  ClockPair // clocks before the replay
}

// samplingOf returns at which points of execution a device can sample timestamps.
func samplingOf(device objc.ID) backend.Sampling {
	switch {
	case objc.SupportsCounterSampling.SendBool(device, uintptr(objc.CounterSamplingPointAtDispatchBoundary)):
		return backend.SampleCommands
	case objc.SupportsCounterSampling.SendBool(device, uintptr(objc.CounterSamplingPointAtStageBoundary)):
		return backend.SampleEncoders
	}
	return backend.SampleNothing
}

// mostSamples is the max number of samples in a sample buffer, of 32 KiB. Tests lower it; it is even.
var mostSamples = 4096

// newSamples makes sample buffers for n commands, or for as many of them as the system has room for.
func (d *Device) newSamples(n int, how Plan) *samples {
	s := &samples{}
	objc.Pool(func() {
		var set objc.ID
		for _, x := range objc.Objects(objc.CounterSets.SendID(d.id)) {
			if objc.GoString(objc.CounterSetName.SendID(x)) == "timestamp" {
				set = x
			}
		}
		if set == 0 {
			return
		}
		descriptor := objc.New("MTLCounterSampleBufferDescriptor")
		defer objc.Release(descriptor)
		objc.SetCounterSet.Send(descriptor, uintptr(set))
		objc.SetSampleStorage.Send(descriptor, uintptr(objc.StorageModeShared))
		for s.count < n {
			some := min(mostSamples/2, n-s.count)
			objc.SetSampleCount.Send(descriptor, uintptr(2*some))
			id, err := objc.WithError(objc.NewCounterSampleBuffer, func(slot uintptr) uintptr {
				return objc.NewCounterSampleBuffer.Send(d.id, uintptr(descriptor), slot)
			})
			if err != nil {
				break // the other commands get no times; Times.Unsampled counts them
			}
			s.buffers = append(s.buffers, objc.ID(id))
			s.count += some
		}
		if d.sampling != backend.SampleEncoders {
			return
		}
		for i := range s.count {
			pass := objc.Retain(objc.ComputePassDescriptor.SendID(objc.ClassNamed("MTLComputePassDescriptor")))
			kind := objc.DispatchTypeConcurrent
			if how == Serial {
				kind = objc.DispatchTypeSerial
			}
			objc.SetPassDispatchType.Send(pass, uintptr(kind))
			a := objc.PassSampleAt.SendID(objc.PassSamples.SendID(pass), 0)
			objc.SetPassSampleBuffer.Send(a, uintptr(s.buffers[2*i/mostSamples]))
			objc.SetPassStartIndex.Send(a, uintptr(2*i%mostSamples))
			objc.SetPassEndIndex.Send(a, uintptr(2*i%mostSamples+1))
			s.passes = append(s.passes, pass)
		}
	})
	return s
}

// pass returns the descriptor of an encoder that samples the begin and end of timed command n; 0 if
// encoders take no times, or that command has none.
func (s *samples) pass(n int32) objc.ID {
	if s == nil || n < 0 || int(n) >= len(s.passes) {
		return 0
	}
	return s.passes[n]
}

// send appends the message that takes sample i, between two dispatches.
func (s *samples) send(b *objc.Batch, encoder objc.Ref, i int32) {
	if s != nil && int(i) < 2*s.count {
		b.SendTo(objc.SampleCounters, encoder, uintptr(s.buffers[int(i)/mostSamples]), uintptr(int(i)%mostSamples), 1)
	}
}

// begin reads both clocks before a replay.
func (s *samples) begin(d *Device) {
	if s != nil {
		s.before = d.ClockPair()
	}
}

// end appends the times of the n timed commands of a replay that has completed to t.Commands. command
// returns the i-th of them.
func (s *samples) end(d *Device, t *backend.Times, n int, command func(i int) ir.Command) {
	if s == nil {
		return
	}
	after := d.ClockPair()
	already := len(t.Commands)
	t.Unsampled += n - min(n, s.count)
	objc.Pool(func() {
		for k, id := range s.buffers {
			some := min(mostSamples/2, s.count-k*mostSamples/2)
			data := objc.ResolveCounters.SendID(id, 0, uintptr(2*some))
			if data == 0 || int(objc.DataLength.Send(data)) < 16*some {
				t.Unsampled += some
				continue
			}
			raw := objc.Bytes(objc.DataBytes.Send(data), 16*some)
			for i := range some {
				begin, end := binary.LittleEndian.Uint64(raw[16*i:]), binary.LittleEndian.Uint64(raw[16*i+8:])
				switch {
				case begin == 0 || end == 0: // a sample of 0 is no time: the GPU has not taken it
					t.Unsampled++
					continue
				case begin == noTime || end == noTime || begin < s.before.GPU:
					continue // it did not run in this replay, since its grid is empty
				}
				t.Commands = append(t.Commands, backend.TimeOf(command(k*mostSamples/2+i), s.before.At(after, begin), s.before.At(after, end)))
			}
		}
	})
	t.Fit(already)
}

// noTime is the value of a sample that was not taken (MTLCounterErrorValue).
const noTime = ^uint64(0)

func (s *samples) close() {
	if s == nil {
		return
	}
	for _, id := range s.passes {
		objc.Release(id)
	}
	for _, id := range s.buffers {
		objc.Release(id)
	}
	s.passes, s.buffers, s.count = nil, nil, 0
}
