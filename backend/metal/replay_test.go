//go:build linux

package metal_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/metal"
	"github.com/mlxc/mlxc/backend/softmetal"
	"github.com/mlxc/mlxc/internal/objc"
	"github.com/mlxc/mlxc/internal/testing/fakemetal"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/record"
	"github.com/mlxc/mlxc/replay"
)

// TestNothingLeaks: after 1,000 replays, or live recordings, there are no more Objective-C objects than after
// ten. Plans other than concurrent and indirect run 100 replays, or 1,000 with MLXC_LONG=1.
func TestNothingLeaks(t *testing.T) {
	sample.Seldom(t)
	soft, err := fakemetal.SoftMetal(softmetal.Options{Workers: 1})
	require.NoError(t, err)
	defer soft.Close()
	g := testGraphs(t)["commits, optimized"]
	hold := func(t *testing.T, w way, times int, begin func(d *metal.Device) (once, end func())) {
		l := fakemetal.Build(t)
		require.NoError(t, objc.Load(l.Path))
		l.Serve(t, w.on(soft, 0))
		d := open(t, w.options())
		once, end := begin(d)
		live := 0
		for i := range times {
			if i == 10 {
				live = alive(l)
			}
			once()
		}
		// On a busy machine the stand-in's GPU thread may release its references late.
		assert.Eventually(t, func() bool { return alive(l) <= live }, time.Minute, time.Millisecond)
		end()
		require.NoError(t, d.Close())
	}
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			times := 1000
			if w.name != "concurrent" && w.name != "indirect" && os.Getenv("MLXC_LONG") == "" {
				times = 100
			}
			hold(t, w, times, func(d *metal.Device) (once, end func()) {
				f := fly(t, d, "", g)
				return func() {
					_, err := f.frames[0].Run(context.Background())
					require.NoError(t, err)
				}, func() { require.NoError(t, f.s.Close()) }
			})
		})
	}
	t.Run("live", func(t *testing.T) {
		hold(t, ways[0], 1000, func(d *metal.Device) (once, end func()) {
			e := record.NewEncoder("live", record.Live(d))
			return func() {
				e.Encode(g)
				_, err := e.Finish()
				require.NoError(t, err)
			}, func() { require.NoError(t, e.Close()) }
		})
	})
}

// alive returns the number of objects once nothing runs: the GPU releases its references a moment after it
// has reported completion.
func alive(l *fakemetal.Library) int {
	n := l.Live("NSObject")
	for range 20 {
		time.Sleep(time.Millisecond)
		n = min(n, l.Live("NSObject"))
	}
	return n
}

// faulty opens a device with faults, replays a graph three times and encodes it live, until something fails.
func faulty(o metal.Options, g *ir.Graph) (err error) {
	o.Cache = metal.NoCache // with an archive a pipeline that fails would be made a second time
	d, err := metal.Open(o)
	if err != nil {
		return err
	}
	defer d.Close()
	s, err := replay.Open(d, &ir.Module{Graphs: []*ir.Graph{g}}, replay.Options{})
	if err != nil {
		return err
	}
	defer s.Close()
	r, err := s.Graph(context.Background(), "")
	for i := 0; i < 3 && err == nil; i++ {
		_, err = r.Run(context.Background())
	}
	if err != nil {
		return err
	}
	e := record.NewEncoder("live", record.Live(d))
	defer e.Close()
	e.Encode(g)
	_, err = e.Finish()
	return err
}

// TestReplayFaults: whatever fails in a replay or a live recording ends it with an error that says why, and
// closing the rest leaks nothing. Of each kind of operation the first is made to fail, then the second, and
// so on, up to the number that a run without faults has.
func TestReplayFaults(t *testing.T) {
	sample.Long(t)
	soft, err := fakemetal.SoftMetal(softmetal.Options{Workers: 1})
	require.NoError(t, err)
	defer soft.Close()
	g := testGraphs(t)["commits, optimized"]
	for _, w := range ways {
		if w.name == "serial" || w.name == "indirect-barriers" || w.name == "concurrent, fences" {
			continue // they make no kind of object that the other plans do not make
		}
		l := fakemetal.Build(t)
		require.NoError(t, objc.Load(l.Path))
		made := func(classes string) (n int) {
			for c := range strings.FieldsSeq(classes) {
				n += l.Made(c)
			}
			return n
		}
		for _, k := range []struct {
			on    fakemetal.Operation
			class string
			code  int
			want  string
		}{
			{fakemetal.Allocation, "MTLBuffer MTLIndirectCommandBuffer", 0, "the system gives no (buffer of [0-9]+ bytes|indirect command buffer of [0-9]+ commands)"},
			{fakemetal.Compilation, "MTLLibrary", 0, "the source does not compile"},
			{fakemetal.PipelineState, "MTLComputePipelineState", 0, "no pipeline can be made of it"},
			{fakemetal.Queue, "MTLCommandQueue", 0, "the system gives no command queue"},
			{fakemetal.Event, "MTLFence", 0, "no fence"},
			{fakemetal.CommandBuffer, "MTLCommandBuffer", int(objc.CommandBufferErrorOutOfMemory), `out of memory.*\(use a smaller graph or context, or close other programs\)`},
			{fakemetal.CommandBuffer, "MTLCommandBuffer", int(objc.CommandBufferErrorTimeout), `ran too long.*\(cut the graph`},
			{fakemetal.CommandBuffer, "MTLCommandBuffer", int(objc.CommandBufferErrorPageFault), "page fault.*mlxreplay check"},
			{fakemetal.CommandBuffer, "MTLCommandBuffer", fakemetal.Interactivity, "kept the screen from being drawn"},
			{fakemetal.CommandBuffer, "MTLCommandBuffer", fakemetal.DeviceRemoved, "the GPU was lost"},
		} {
			t.Run(fmt.Sprintf("%s/%s/%d", w.name, k.class, k.code), func(t *testing.T) {
				times := 0
				serving(t, l, w.on(soft, 0), func() {
					before := made(k.class)
					require.NoError(t, faulty(w.options(), g))
					times = made(k.class) - before
				})
				if k.on == fakemetal.Event && !w.device.Fences {
					require.Zero(t, times)
				} else {
					require.Positive(t, times)
				}
				for nth := range times {
					o := w.on(soft, 0)
					o.Late, o.Faults = 100*time.Microsecond, []fakemetal.Fault{{On: k.on, Nth: nth + 1, Code: k.code}}
					serving(t, l, o, func() {
						err := faulty(w.options(), g)
						if assert.Error(t, err, "%d of %d", nth+1, times) {
							assert.Regexp(t, "(?s)metal: .*"+k.want, err.Error(), "%d of %d", nth+1, times)
						}
					})
				}
			})
		}
	}
}

// serving calls f while the stand-in answers, and fails the test if a rule was broken.
func serving(t *testing.T, l *fakemetal.Library, o fakemetal.Options, f func()) {
	t.Helper()
	m := l.Serve(t, o)
	f()
	m.Close()
	assert.Empty(t, l.Failures())
}
