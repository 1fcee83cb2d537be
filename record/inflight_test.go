package record_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/testdevice"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/record"
)

// Memory of a command buffer in flight stays although a later one that binds it
// was abandoned.
func TestDiscardThenTrim(t *testing.T) {
	d := device(t, testdevice.Options{Hold: true})
	s := record.New("t", record.Live(d))
	x := s.Input("x", ir.F32, 4)
	p := s.NewPool("p", ir.Scratch)
	a := p.Alloc(ir.F32, 4)
	s.Add(x, x, record.Into(a))
	s.Commit("1")
	s.Add(x, x, record.Into(a))
	s.Discard()
	_, err := s.Bytes(a)
	assert.Error(t, err)
	p.Free(a)
	p.Trim()
	d.ReleaseAll()
	assert.NoError(t, s.Wait())
	require.NoError(t, s.Close())
}

// … also if it was given back while that later one was open.
func TestTrimThenDiscard(t *testing.T) {
	d := device(t, testdevice.Options{Hold: true})
	s := record.New("t", record.Live(d))
	x := s.Input("x", ir.F32, 4)
	p := s.NewPool("p", ir.Scratch)
	a := p.Alloc(ir.F32, 4)
	s.Add(x, x, record.Into(a))
	s.Commit("1")
	s.Add(x, x, record.Into(a))
	p.Free(a)
	p.Trim()
	s.Discard()
	p.Trim()
	d.ReleaseAll()
	assert.NoError(t, s.Wait())
	require.NoError(t, s.Close())
}

// A dispatch that is never ended binds nothing, and frees nothing for the host.
func TestBytesBesideABegunDispatch(t *testing.T) {
	d := device(t, testdevice.Options{Hold: true})
	s := record.New("t", record.Live(d))
	x := s.State("x", ir.F32, 4)
	s.Add(x, x, record.Into(x))
	s.Commit("1")
	s.Dispatch(s.Function("v_Silufloat32float32")).Buffer(0, x)
	_, err := s.Bytes(x)
	assert.Error(t, err)
	d.ReleaseAll()
	_, err = s.Finish()
	assert.ErrorContains(t, err, "was begun and not ended")
	require.NoError(t, s.Close())
}

// Wait tells of a command buffer that failed, also if that was noticed before;
// each failure counts once.
func TestWaitTellsEveryFault(t *testing.T) {
	fault := errors.New("page fault")
	d := device(t, testdevice.Options{Fault: func(n int, _ string) error {
		if n == 0 {
			return fault
		}
		return nil
	}})
	s := record.New("t", record.Live(d))
	x := s.State("x", ir.F32, 4)
	s.Add(x, x, record.Into(x))
	s.Commit("1")
	require.Eventually(t, func() bool { // it is noticed that it has ended
		_, err := s.Bytes(x)
		return err == nil
	}, time.Minute, time.Millisecond)
	s.Add(x, x, record.Into(x))
	s.Commit("2")
	assert.ErrorIs(t, s.Wait(), fault)
	_, err := s.Finish()
	assert.ErrorIs(t, err, fault)
	assert.Equal(t, int64(1), s.Counters().FailedBuffers)
	require.NoError(t, s.Close())
}

// What a deferred recording has left running can be waited for, as Bytes advises.
func TestWaitForADeferredRecording(t *testing.T) {
	d := device(t, testdevice.Options{})
	s := record.New("t", record.Deferred(d))
	x := s.State("x", ir.F32, 4)
	require.ErrorContains(t, s.Wait(), "nothing is executed before Finish")
	_, err := s.Finish()
	require.Error(t, err)
	s.Add(x, x, record.Into(x))
	_, err = s.Finish(record.NoWait())
	require.NoError(t, err)
	require.NoError(t, s.Wait())
	_, err = s.Bytes(x)
	require.NoError(t, err)
	require.NoError(t, s.Close())
}

// Bytes of an input say what to wait for, not that Finish is missing.
func TestBytesOfADeferredInput(t *testing.T) {
	d := device(t, testdevice.Options{Hold: true})
	s := record.New("t", record.Deferred(d))
	x, y := s.Input("x", ir.F32, 4), s.Output("y", ir.F32, 4)
	for range 2 {
		s.Silu(x, record.Into(y))
		_, err := s.Finish(record.NoWait())
		require.NoError(t, err)
	}
	s.Silu(x, record.Into(y))
	_, err := s.Bytes(x)
	require.ErrorContains(t, err, "has not ended: Wait")
	_, err = s.Bytes(y)
	require.ErrorContains(t, err, "not executed before Finish")
	d.ReleaseAll()
	require.NoError(t, s.Wait())
	_, err = s.Bytes(x)
	require.NoError(t, err)
	require.NoError(t, s.Close())
}
