//go:build linux

package metal_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/metal"
	"github.com/mlxc/mlxc/internal/testing/fakemetal"
	"github.com/mlxc/mlxc/record"
)

// TestTimesOfDispatches: each dispatch has its begin and end, within those of its command buffer. They are
// sampled between dispatches if the GPU can do that, else at the ends of encoders, about which the first
// result has a warning.
func TestTimesOfDispatches(t *testing.T) {
	for name, o := range map[string]fakemetal.Options{"encoders": {}, "dispatches": {SampleDispatches: true}} {
		t.Run(name, func(t *testing.T) {
			r := gpu(t, o, metal.Options{})
			s := record.New("t", record.Live(r.Device), record.TimeDispatches())
			for round := range 2 {
				add(s, 2, 2)
				x, err := s.Finish()
				require.NoError(t, err)
				if name == "encoders" && round == 0 {
					require.Len(t, x.Warnings, 1)
					require.Contains(t, x.Warnings[0], "takes times at the ends of encoders only")
				} else {
					require.Empty(t, x.Warnings)
				}
				require.Len(t, x.CommandBuffers, 3)
				for _, b := range x.CommandBuffers {
					require.Len(t, b.Times.Commands, b.Commands)
					for i, c := range b.Times.Commands {
						require.Equal(t, "elementwise_add", c.Op)
						require.Positive(t, c.Duration())
						require.False(t, c.Begin.Before(b.Times.Begin))
						require.False(t, c.End.After(b.Times.End))
						require.True(t, i == 0 || !c.Begin.Before(b.Times.Commands[i-1].End), "one reads what the one before it writes")
					}
				}
				require.Equal(t, []string{"step"}, names(x.CommandBuffers[0].Times.ByLabel()))
			}
			require.NoError(t, s.Close())
		})
	}
}

func names(all []backend.Total) (out []string) {
	for _, x := range all {
		out = append(out, x.Name)
	}
	return out
}

// TestManyTimes: times beyond the size of one sample buffer go to more of them. If the system gives no sample
// buffer, or samples are zero, the result says how many commands have no time.
func TestManyTimes(t *testing.T) {
	times := func(t *testing.T, o fakemetal.Options, commands int) *backend.Times {
		r := gpu(t, o, metal.Options{Profile: true})
		f, err := r.replaying(adding(t, 1, commands-1)).NewFrame(t.Context())
		require.NoError(t, err)
		run, err := f.Submit(t.Context())
		require.NoError(t, err)
		require.NoError(t, run.Result().Err)
		return &run.Result().Times
	}
	t.Run("several", func(t *testing.T) {
		x := times(t, fakemetal.Options{}, 2100) // two samples each, of 4096
		require.Equal(t, 2100, len(x.Commands))
		require.Zero(t, x.Unsampled)
	})
	t.Run("zeros", func(t *testing.T) { // samples of 0 are no times
		x := times(t, fakemetal.Options{Lacks: fakemetal.Times}, 3)
		require.Equal(t, 2, len(x.Commands))
		require.Equal(t, 1, x.Unsampled)
	})
	t.Run("none", func(t *testing.T) {
		var refused []fakemetal.Fault
		for n := range 4 {
			refused = append(refused, fakemetal.Fault{On: fakemetal.SampleBuffer, Nth: n + 1})
		}
		x := times(t, fakemetal.Options{Faults: refused}, 3)
		require.Empty(t, x.Commands)
		require.Equal(t, 3, x.Unsampled)
	})
}
