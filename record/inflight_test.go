package record_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/testing/testdevice"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/record"
)

// Memory of a command buffer in flight is not released when a later command buffer that
// binds it was abandoned.
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

// Memory of a command buffer in flight is not released when it was given back while a later
// command buffer was open that then was abandoned.
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

// A dispatch that is never ended binds nothing, and does not make memory that is in use
// accessible to the host.
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

// Wait returns the error of a command buffer that failed, even if another call noticed the
// failure before. Each failure is counted once.
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
	require.Eventually(t, func() bool { // Bytes notices that the command buffer has ended
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

// If a deferred recording is still running, one can wait for it, as the error of Bytes
// advises.
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

// The error of Bytes of an input says what to wait for. It does not ask for Finish, because
// an input may be written before.
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
	require.ErrorContains(t, err, "has not ended: call Wait first")
	_, err = s.Bytes(y)
	require.ErrorContains(t, err, "are executed at Finish")
	d.ReleaseAll()
	require.NoError(t, s.Wait())
	_, err = s.Bytes(x)
	require.NoError(t, err)
	require.NoError(t, s.Close())
}
