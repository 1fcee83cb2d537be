package record_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/testing/testdevice"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/record"
)

// The end of a context aborts what is being executed and what is recorded after it. The
// recording is abandoned, and the next one, with another context, works.
func TestAbort(t *testing.T) {
	for _, mode := range []string{"running", "between operations", "deferred", "wait"} {
		t.Run(mode, func(t *testing.T) {
			d := device(t, testdevice.Options{})
			on := record.Live(d)
			if mode == "deferred" {
				on = record.Deferred(d)
			}
			s := record.New("t", on)
			x := s.Input("x", ir.F32, 100_000)
			y := s.Output("y", ir.F32, 100_000)
			reason := errors.New("nobody listens")
			ctx, cancel := context.WithCancelCause(context.Background())
			s.SetContext(ctx)
			put(t, s.Encoder, x, 1)
			s.Add(x, x, record.Into(y))
			switch mode {
			case "running", "wait":
				for range 20_000 { // this would take minutes
					s.Add(y, x, record.Into(y))
				}
				s.Commit("long")
				cancel(reason)
				if mode == "wait" {
					require.ErrorIs(t, s.Wait(), reason)
				}
			default:
				cancel(reason)
				for range 10 {
					s.Add(y, x, record.Into(y))
				}
				require.Equal(t, int64(1), s.Counters().Dispatches, "what is given after it is not encoded")
			}
			_, err := s.Finish()
			require.ErrorIs(t, err, reason)
			s.Add(x, x, record.Into(y))
			require.ErrorIs(t, s.Err(), reason, "the context has still ended")
			_, err = s.Finish()
			require.ErrorIs(t, err, reason)

			s.SetContext(context.Background())
			put(t, s.Encoder, x, 3)
			s.Add(x, x, record.Into(y))
			_, err = s.Finish()
			require.NoError(t, err)
			require.Equal(t, []float32{6, 0}, get(t, s.Encoder, y, 2))
			require.NoError(t, s.Close())
			require.Zero(t, d.Uncommitted())
		})
	}
}

// A capture whose context has ended is aborted before it is checked.
func TestAbortCapture(t *testing.T) {
	s := record.New("t")
	x, y := s.Input("x", ir.F32, 4), s.Output("y", ir.F32, 4)
	s.Add(x, x, record.Into(y))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	s.SetContext(ctx)
	_, err := s.Graph()
	require.ErrorIs(t, err, context.Canceled)
}
