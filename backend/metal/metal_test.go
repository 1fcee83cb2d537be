//go:build linux

package metal_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/conformance"
	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/backend/metal"
	"github.com/mlxc/mlxc/internal/objc"
	"github.com/mlxc/mlxc/internal/testkit/fakemetal"
)

// serve has what stands in for Metal answer until the test ends.
func serve(t testing.TB, o fakemetal.Options) *fakemetal.Metal {
	t.Helper()
	l := fakemetal.Build(t)
	require.NoError(t, objc.Load(l.Path))
	return l.Serve(t, o)
}

func open(t testing.TB, o metal.Options) *metal.Device {
	t.Helper()
	d, err := metal.Open(o)
	require.NoError(t, err)
	return d
}

// TestConformance: the suite passes, through the messages that a Mac would get.
func TestConformance(t *testing.T) {
	serve(t, fakemetal.Options{})
	conformance.Run(t, func() backend.Device { return open(t, metal.Options{}) },
		conformance.Options{Cases: 3, Other: func() backend.Device { return cpu.New(1) }})
}
