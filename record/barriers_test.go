package record_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/testing/testdevice"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/record"
)

// racing records two commands, the second of which reads what the first writes, with no barrier between them but an
// unnecessary one elsewhere.
func racing(s *record.Session) {
	x, y := s.Input("x", ir.F32, 4), s.Output("y", ir.F32, 4)
	a := s.Silu(x)
	s.Silu(a, record.Into(y))
	s.Barrier()
	s.Silu(x, record.Into(s.Output("z", ir.F32, 4)))
}

// The environment turns on automatic barriers that the program has turned off. Barriers that the program places
// stay, and an unknown value is an error of the recording.
func TestAutomaticBarriersByEnvironment(t *testing.T) {
	manual := func() *record.Result {
		s := record.New("t", record.ManualBarriers())
		racing(s)
		r, err := s.Finish()
		require.NoError(t, err)
		return r
	}
	r := manual()
	require.Len(t, r.Races(), 1)
	require.EqualValues(t, 1, r.Counters.Barriers)
	t.Setenv("MLXC_BARRIERS", "automatic")
	r = manual()
	require.Empty(t, r.Races())
	require.Len(t, r.Conflicts(), 1)
	require.EqualValues(t, 2, r.Counters.Barriers)
	require.EqualValues(t, 1, r.Counters.AutoBarriers)

	t.Setenv("MLXC_BARRIERS", "manual")
	_, err := record.New("t").Finish()
	require.ErrorContains(t, err, `MLXC_BARRIERS="manual": it is one of automatic`)
}

// The result has, for each command buffer, the number of its barriers and the host's waiting time, which is not
// the device's time.
func TestBarriersOfCommandBuffers(t *testing.T) {
	for name, on := range map[string]func(d *testdevice.Device) record.Setting{
		"live":     func(d *testdevice.Device) record.Setting { return record.Live(d) },
		"deferred": func(d *testdevice.Device) record.Setting { return record.Deferred(d) },
	} {
		t.Run(name, func(t *testing.T) {
			s := record.New("t", on(device(t, testdevice.Options{})))
			defer func() { require.NoError(t, s.Close()) }()
			put(t, s.Encoder, s.Input("x", ir.F32, 4), 1)
			racing(s)
			s.Commit("first")
			s.Silu(s.Input("x", ir.F32, 4), record.Into(s.Output("v", ir.F32, 4)))
			s.Commit("second")
			r, err := s.Finish()
			require.NoError(t, err)
			require.Len(t, r.CommandBuffers, 2)
			require.Equal(t, 2, r.CommandBuffers[0].Barriers)
			require.Equal(t, 3, r.CommandBuffers[0].Commands)
			require.Zero(t, r.CommandBuffers[1].Barriers)
			require.Positive(t, r.Waited)
			require.Equal(t, r.CommandBuffers[0].Times.Duration()+r.CommandBuffers[1].Times.Duration(), r.GPU)
		})
	}
}
