//go:build linux

package metal_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/metal"
	"github.com/mlxc/mlxc/internal/testing/fakemetal"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/record"
)

// TestSwitches: environment variables change which messages are sent, whether the program leaves an option
// unset or sets it otherwise.
func TestSwitches(t *testing.T) {
	unset(t, enable)
	for name, c := range map[string]struct {
		value string
		with  metal.Options
		// more are selectors that a replay must send, none those that it must not.
		more, none []string
	}{
		"MLXC_METAL_UNRETAINED": {"1", metal.Options{}, []string{"commandBufferWithUnretainedReferences"}, []string{"commandBuffer"}},
		"MLXC_METAL_PLAN":       {"serial", metal.Options{Plan: metal.Indirect}, nil, []string{"memoryBarrierWithScope:", "executeCommandsInBuffer:withRange:"}},
		"MLXC_METAL_GROUPS":     {"on", metal.Options{}, []string{"pushDebugGroup:", "popDebugGroup"}, nil},
		"MLXC_METAL_PROFILE":    {"yes", metal.Options{}, []string{"computeCommandEncoderWithDescriptor:"}, nil},
		"MLXC_METAL_RESIDENCY":  {"0", metal.Options{}, nil, []string{"addResidencySet:", "addAllocation:"}},
		"MLXC_METAL_DEVICE":     {"software", metal.Options{Device: "Radeon"}, nil, nil},
		"MLXC_METAL_ENCODERS":   {"2", metal.Options{Plan: metal.Parallel, Encoders: 100}, []string{"enqueue"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, c.value)
			r := gpu(t, fakemetal.Options{}, c.with)
			var more, none []func() int
			for _, s := range c.more {
				more = append(more, r.sent(s))
			}
			for _, s := range c.none {
				none = append(none, r.sent(s))
			}
			r.run(r.replaying(adding(t, 2, 2)), 6)
			for i := range more {
				assert.Positive(t, more[i](), c.more[i])
			}
			for i := range none {
				assert.Zero(t, none[i](), c.none[i])
			}
		})
	}
	for name, c := range map[string][2]string{
		"MLXC_METAL_UNRETAINED": {"maybe", "it is one of 0, off,"},
		"MLXC_METAL_PLAN":       {"fast", "it is one of concurrent, serial, parallel, indirect, indirect-barriers"},
		"MLXC_METAL_ENCODERS":   {"9", "a number from 1 to 8"},
		"MLXC_METAL_RESIDENCY":  {"-3s", "it is on, off, or how long memory is kept, as 90s or 3m"},
		"MLXC_METAL_CAPTURE":    {"x.trace", "ends with .gputrace"},
		"MLXC_METAL_DEVICE":     {"Radeon", `no GPU is called "Radeon": there are software Metal`},
		"MLXC_METAL_LIBRARY":    {"nowhere.metallib", "nowhere.metallib"},
		"MLXC_DEBUG":            {"4", "a number from 0 to 3"},
	} {
		t.Run(name+"="+c[0], func(t *testing.T) {
			gpu(t, fakemetal.Options{}, metal.Options{})
			t.Setenv(name, c[0])
			d, err := metal.Open(metal.Options{})
			if name == "MLXC_METAL_LIBRARY" { // the file is opened only when a kernel is needed
				require.NoError(t, err)
				s := record.New("t", record.Live(d))
				add(s, 1, 1)
				_, err = s.Finish()
				require.NoError(t, s.Close())
				require.NoError(t, d.Close())
			}
			require.ErrorContains(t, err, c[1])
		})
	}
}

// TestManyEncoders: a warning comes for more than two parallel command buffers. Each replay enqueues that many
// before it encodes them. The first has a tenth of the commands, at least 64, to be committed early.
func TestManyEncoders(t *testing.T) {
	for n, warned := range map[string]bool{"2": false, "3": true, "8": true} {
		t.Run(n, func(t *testing.T) {
			t.Setenv("MLXC_METAL_PLAN", "parallel")
			t.Setenv("MLXC_METAL_ENCODERS", n)
			r := gpu(t, fakemetal.Options{}, metal.Options{})
			require.Equal(t, warned, strings.Contains(r.log.String(), "warning: metal: "+n+" command buffers side by side: more than 2 rarely pay"))
			enqueued := r.sent("enqueue")
			f, err := r.replaying(adding(t, 1, 200)).NewFrame(t.Context())
			require.NoError(t, err)
			run, err := f.Submit(t.Context())
			require.NoError(t, err)
			require.NoError(t, run.Result().Err)
			buffers := run.Result().Times.Buffers
			side, err := strconv.Atoi(n)
			require.NoError(t, err)
			require.Len(t, buffers, side+1, "and the commit of the graph")
			require.Equal(t, 64, buffers[0].Dispatches)
			require.GreaterOrEqual(t, enqueued(), side, "all are enqueued before they are encoded, so that their order is fixed")
		})
	}
}

// TestRaceProbes: a program with manual barriers that leaves them out computes something else in some order
// of the GPU. With serial execution or automatic barriers, which environment variables alone switch on, it
// is right, which shows that missing barriers are its mistake.
func TestRaceProbes(t *testing.T) {
	wrong := func(t *testing.T) (n int) {
		r := gpu(t, fakemetal.Options{}, metal.Options{})
		s := record.New("race", record.Live(r.Device), record.ManualBarriers())
		for seed := range uint64(5) {
			r.gpu.SetSeed(seed)
			in, err := s.Bytes(s.Input("x", ir.F32, 4))
			require.NoError(t, err)
			one := float32(seed + 1) // other numbers than the memory holds from the round before
			copy(in, floats(one, one, one, one))
			_, y := add(s, 1, 4)
			_, err = s.Finish()
			require.NoError(t, err)
			out, err := s.Bytes(y)
			require.NoError(t, err)
			// The first recording is left out: memory grows meanwhile, and copies between commands order them.
			if seed > 0 && !slices.Equal([]float32{6 * one, 6 * one, 6 * one, 6 * one}, numbers(out)) {
				n++
			}
		}
		require.NoError(t, s.Close())
		return n
	}
	require.Positive(t, sub(t, "as it is", wrong))
	require.Zero(t, sub(t, "serial", func(t *testing.T) int {
		t.Setenv("MLXC_METAL_PLAN", "serial")
		return wrong(t)
	}))
	require.Zero(t, sub(t, "barriers", func(t *testing.T) int {
		t.Setenv("MLXC_BARRIERS", "automatic")
		return wrong(t)
	}))
}

// sub runs f as a subtest and returns its result.
func sub[T any](t *testing.T, name string, f func(t *testing.T) T) (v T) {
	t.Run(name, func(t *testing.T) { v = f(t) })
	return v
}

// TestCheckedOptions: options that are out of range are errors.
func TestCheckedOptions(t *testing.T) {
	for want, o := range map[string]metal.Options{
		"there is no plan 9":    {Plan: 9},
		"less than no time":     {Keep: -1},
		"there are 0 to 3":      {Debug: 4},
		"there may be 1 to 8":   {Encoders: 9},
		"ends with .gputrace":   {Capture: "x"},
		"replays count from 1 ": {Capture: "x.gputrace:-1"},
	} {
		_, err := metal.Open(o)
		require.ErrorContains(t, err, want)
	}
}
