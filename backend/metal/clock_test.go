//go:build linux

package metal_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/metal"
	"github.com/mlxc/mlxc/internal/testing/fakemetal"
)

// TestClockPair: the stand-in's GPU clock counts 24 million ticks a second from a zero of its own. Two
// ClockPairs convert ticks to the host's time, as exactly as Within says, and times of commands lie between
// those of the submission and its end.
func TestClockPair(t *testing.T) {
	r := gpu(t, fakemetal.Options{}, metal.Options{Profile: true})
	first := r.ClockPair()
	p := r.replaying(adding(t, 1, 2))
	f, err := p.NewFrame(t.Context())
	require.NoError(t, err)
	began := time.Now()
	run, err := f.Submit(t.Context())
	require.NoError(t, err)
	times := run.Result().Times
	ended := time.Now()
	middle := r.ClockPair()
	time.Sleep(50 * time.Millisecond)
	last := r.ClockPair()

	assert.Positive(t, first.Within)
	// The rate is as exact as both pairs are, which is less on a busy machine.
	inexact := float64(first.Within+last.Within+time.Microsecond) / float64(last.Host.Sub(first.Host))
	assert.InEpsilon(t, 24e6, first.TicksPerSecond(last), max(0.0001, 2*inexact))
	off := first.At(last, middle.GPU).Sub(middle.Host)
	assert.LessOrEqual(t, off.Abs(), first.Within+middle.Within+last.Within+time.Microsecond)
	assert.Equal(t, first.Host, first.At(last, first.GPU))
	assert.Equal(t, first.Host, first.At(first, middle.GPU), "two pairs of one moment say nothing")
	assert.Zero(t, last.TicksPerSecond(first))

	require.Len(t, times.Commands, 3)
	slack := time.Millisecond + 2*(first.Within+middle.Within)
	for i, c := range times.Commands {
		require.False(t, c.Begin.Before(began.Add(-slack)), "%d", i)
		require.False(t, c.End.After(ended.Add(slack)), "%d", i)
		require.False(t, c.End.Before(c.Begin), "%d", i)
		require.True(t, i == 0 || !c.Begin.Before(times.Commands[i-1].End), "one after the other")
	}
}
