//go:build linux

package metal_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/metal"
	"github.com/mlxc/mlxc/internal/testing/fakemetal"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/record"
)

// sent returns a function that counts the messages with a selector since sent was called.
func (r *rig) sent(selector string) func() int {
	before := r.library.Sent(selector)
	return func() int { return r.library.Sent(selector) - before }
}

// TestResidency: the residency set is committed at most once for each command buffer, however much is
// allocated, as record.TestResidency tests of the test device.
func TestResidency(t *testing.T) {
	r := gpu(t, fakemetal.Options{}, metal.Options{})
	began, commits, adds := time.Now(), r.sent("commit"), r.sent("addAllocation:")
	s := record.New("t", record.Live(r.Device))
	pool := s.NewPool("tmp", ir.Scratch)
	buffers := 0
	for i := range 4 {
		x := s.Input("x", ir.F32, 64)
		for range i + 1 { // more memory each time
			s.Silu(x, record.Into(pool.Alloc(ir.F32, 64)))
		}
		s.Commit("a")
		s.Silu(x, record.Into(s.Output("y", ir.F32, 64)))
		_, err := s.Finish()
		require.NoError(t, err)
		pool.Reset()
		buffers += 2
	}
	flushes := r.ResidencyFlushes()
	require.GreaterOrEqual(t, flushes, 4, "one for each of the four first commits; y may come before the first of them is sent, or behind")
	require.LessOrEqual(t, flushes, 5+int(time.Since(began)/(500*time.Millisecond)), "and one a half second, of the heartbeat")
	require.Equal(t, buffers+flushes, commits(), "command buffers are committed too")
	require.Positive(t, adds())
	require.NoError(t, s.Close())
}

// TestResident: buffers that indirect command buffers use are resident: every queue has the residency set.
// Without one, before macOS 15 or if it is switched off, encoders declare them.
func TestResident(t *testing.T) {
	for name, c := range map[string]struct {
		gpu    fakemetal.Options
		device metal.Options
		env    string
		sets   int
		told   string
	}{
		"set":      {sets: 1},
		"old":      {gpu: fakemetal.Options{MacOS: 14}},
		"option":   {device: metal.Options{NoResidency: true}},
		"variable": {env: "off"},
		"wins":     {env: "on", device: metal.Options{NoResidency: true}, sets: 1},
		"refused":  {gpu: fakemetal.Options{Faults: []fakemetal.Fault{{On: fakemetal.ResidencySet, Nth: 1, Text: "no set"}}}, told: "warning: metal: there is no residency set, so that memory may be swapped out between replays: no set"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("MLXC_METAL_RESIDENCY", c.env)
			c.gpu.Residency, c.device.Plan = true, metal.Indirect
			before := fakemetal.Build(t).Live("MTLResidencySet") // other tests may leak some on purpose
			r := gpu(t, c.gpu, c.device)
			require.Contains(t, r.log.String(), c.told)
			require.Equal(t, before+c.sets, r.library.Live("MTLResidencySet"))
			queues := r.sent("addResidencySet:")
			p := r.replaying(adding(t, 1, 2))
			r.run(p, 4)
			r.run(p, 4)
			require.Equal(t, c.sets > 0, queues() > 0)
			if c.sets == 0 {
				require.Zero(t, r.ResidencyFlushes())
			}
		})
	}
}

// TestHeartbeat: while a device is in use, and for Options.Keep after, residency is requested again and
// again; then it is ended, until the next use.
func TestHeartbeat(t *testing.T) {
	t.Setenv("MLXC_METAL_RESIDENCY", "80ms")
	r := gpu(t, fakemetal.Options{}, metal.Options{NoResidency: true, Keep: time.Hour})
	asked, over := r.sent("requestResidency"), r.sent("endResidency")
	p := r.replaying(adding(t, 1, 1))
	require.Zero(t, asked(), "nothing was used yet")
	for range 2 {
		before, ended := asked(), over()
		r.run(p, 3)
		require.Greater(t, asked(), before)
		before = asked()
		for asked() < before+2 { // two more requests, while it is in use
			r.run(p, 3)
		}
		flushes := r.ResidencyFlushes()
		require.Eventually(t, func() bool {
			before := asked()
			time.Sleep(200 * time.Millisecond) // ten times the time between two requests
			return asked() == before && over() > ended
		}, 20*time.Second, time.Millisecond)
		require.Equal(t, flushes, r.ResidencyFlushes(), "nothing has changed")
	}
	// The heartbeat has ended, so only Close can commit the removal of the buffer.
	b := r.buffer(1)
	flushes := r.ResidencyFlushes()
	require.NoError(t, b.Close())
	require.Equal(t, flushes+1, r.ResidencyFlushes())
	t.Setenv("MLXC_METAL_RESIDENCY", "on")
	d := open(t, metal.Options{Log: r.log})
	e := record.New("t", record.Live(d))
	add(e, 1, 1)
	_, err := e.Finish()
	require.NoError(t, err)
	require.NoError(t, e.Close())
	ended := over()
	require.NoError(t, d.Close())
	require.Equal(t, ended+1, over(), "closing ends it too")
}

// TestDropped: the set is committed when many bytes of closed buffers are in it, also without command buffers.
func TestDropped(t *testing.T) {
	r := gpu(t, fakemetal.Options{}, metal.Options{})
	q := r.queue()
	run := func() {
		s := record.New("t", record.Live(r.Device))
		x := s.Input("x", ir.F32, 4)
		s.Silu(x, record.Into(s.Output("y", ir.F32, 4)))
		_, err := s.Finish()
		require.NoError(t, err)
		require.NoError(t, s.Close())
	}
	run()
	before := r.ResidencyFlushes()
	for range 3 {
		b, err := r.Alloc(backend.BufferSpec{Size: 100 << 20})
		require.NoError(t, err)
		require.NoError(t, b.Close())
	}
	require.GreaterOrEqual(t, r.ResidencyFlushes(), before+1)
	require.NoError(t, backend.Wait(context.Background())(q.Event()))
	require.NoError(t, q.Close())
}
