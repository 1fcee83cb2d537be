package conformance

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/ir"
)

// TestExamine: what passes has no errors, what a defect breaks has, and what is chosen runs alone.
func TestExamine(t *testing.T) {
	device := cpu.New(1)
	defer device.Close()
	forgets := broken{Device: device, change: drop(func(n ir.Node) bool { _, ok := n.(*ir.Copy); return ok })}
	choose := func(name string) bool { return strings.HasPrefix(name, "copy/") || name == "kernel/vv_Addfloat32" }
	o := Options{Cases: 4, Unsupported: map[string]string{"copy/empty": "a reason"}}
	var last float64
	outcomes := map[string]Outcome{}
	require.NoError(t, Examine(t.Context(), forgets, o, choose, func(x Outcome, done float64) {
		outcomes[x.Name] = x
		assert.Greater(t, done, last)
		last = done
	}))
	assert.EqualValues(t, 1, last)
	assert.NotEmpty(t, outcomes["copy/bytes"].Errors)
	assert.Equal(t, Outcome{Name: "copy/empty", Unsupported: "a reason"}, outcomes["copy/empty"])
	assert.Equal(t, Outcome{Name: "kernel/vv_Addfloat32"}, outcomes["kernel/vv_Addfloat32"])
	for name := range outcomes {
		assert.True(t, choose(name))
	}
}

// TestExamineEnds: a run ends with its context, and does not wait for the test that runs.
func TestExamineEnds(t *testing.T) {
	device := cpu.New(1)
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stop")
	n := 0
	require.ErrorIs(t, Examine(ctx, device, Options{Cases: 1}, func(string) bool { return true }, func(Outcome, float64) {
		n++
		cancel(stop)
	}), stop)
	assert.LessOrEqual(t, n, 2)
}
