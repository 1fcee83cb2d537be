//go:build linux

package metal_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
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
)

// planting runs the workload while the stand-in alters single messages of the backend.
type planting struct {
	*workload
	library *fakemetal.Library
	soft    *softmetal.Device
	want    outcome            // the right results of replays, by software Metal
	live    outcome            // those of live recordings
	aside   map[string]outcome // by way: labels and timed commands, which software Metal does not have
	hit     bool               // in the last run a message was altered
}

// plantedWays are the ways in which wrong emissions are tried, with replays and with live recordings.
var plantedWays = append(slices.Clone(ways),
	way{name: "parallel, fences", device: metal.Options{Plan: metal.Parallel, Encoders: 3, Fences: true, Measured: keeps}},
	way{name: "groups, unretained", device: metal.Options{Groups: true, Unretained: true}},
	way{name: "indirect, macOS 14", device: metal.Options{Plan: metal.Indirect}, gpu: fakemetal.Options{MacOS: 14}},
	way{name: "profiled", device: metal.Options{Profile: true}},
	way{name: "profiled, sampled dispatches", device: metal.Options{Profile: true}, gpu: fakemetal.Options{SampleDispatches: true}},
	way{name: "private", device: metal.Options{Private: true}},
	way{name: "live", live: true},
	// With an encoder for each command, which times need unless dispatches can be sampled.
	way{name: "profiled, serial", device: metal.Options{Profile: true, Plan: metal.Serial}},
	way{name: "profiled, fences", device: metal.Options{Profile: true, Fences: true, Measured: keeps}},
	way{name: "profiled, serial, fences", device: metal.Options{Profile: true, Plan: metal.Serial, Fences: true, Measured: keeps}},
	way{name: "profiled, parallel, fences", device: metal.Options{Profile: true, Plan: metal.Parallel, Encoders: 3, Fences: true, Measured: keeps}},
	way{name: "profiled, indirect, fences", device: metal.Options{Profile: true, Plan: metal.Indirect, Fences: true, Measured: keeps}},
	way{name: "profiled, serial, sampled dispatches", device: metal.Options{Profile: true, Plan: metal.Serial}, gpu: fakemetal.Options{SampleDispatches: true}},
	way{name: "live, serial", live: true, device: metal.Options{Plan: metal.Serial}},
	way{name: "live, fences", live: true, device: metal.Options{Fences: true, Measured: keeps}},
	way{name: "live, profiled", live: true, device: metal.Options{Profile: true}},
	way{name: "live, profiled, serial", live: true, device: metal.Options{Profile: true, Plan: metal.Serial}},
	way{name: "live, profiled, fences", live: true, device: metal.Options{Profile: true, Fences: true, Measured: keeps}},
	way{name: "live, profiled, sampled dispatches", live: true, device: metal.Options{Profile: true}, gpu: fakemetal.Options{SampleDispatches: true}},
	// With limits so low that a graph of the workload exceeds them.
	way{name: "indirect, few commands", device: metal.Options{Plan: metal.Indirect}, limits: metal.Limits{Commands: 3}},
	way{name: "indirect-barriers, few commands", device: metal.Options{Plan: metal.IndirectBarriers, Measured: keeps}, gpu: fakemetal.Options{IndirectBarriers: true}, limits: metal.Limits{Commands: 3}},
	way{name: "indirect, fences, few commands", device: metal.Options{Plan: metal.Indirect, Fences: true, Measured: keeps}, limits: metal.Limits{Commands: 3}},
	way{name: "indirect, far", device: metal.Options{Plan: metal.Indirect}, limits: metal.Limits{Reach: far}},
	way{name: "indirect-barriers, far", device: metal.Options{Plan: metal.IndirectBarriers, Measured: keeps}, gpu: fakemetal.Options{IndirectBarriers: true}, limits: metal.Limits{Reach: far}},
	way{name: "indirect, fences, far", device: metal.Options{Plan: metal.Indirect, Fences: true, Measured: keeps}, limits: metal.Limits{Reach: far}},
	way{name: "profiled, few samples", device: metal.Options{Profile: true}, limits: metal.Limits{Samples: 6}},
	way{name: "profiled, sampled dispatches, few samples", device: metal.Options{Profile: true}, gpu: fakemetal.Options{SampleDispatches: true}, limits: metal.Limits{Samples: 6}},
	way{name: "live, profiled, few samples", live: true, device: metal.Options{Profile: true}, limits: metal.Limits{Samples: 6}},
	way{name: "concurrent, short queue", limits: metal.Limits{Uncompleted: 6}},
	way{name: "serial, short queue", device: metal.Options{Plan: metal.Serial}, limits: metal.Limits{Uncompleted: 6}},
	way{name: "parallel, short queue", device: metal.Options{Plan: metal.Parallel, Encoders: 3}, limits: metal.Limits{Uncompleted: 6}},
	way{name: "indirect, short queue", device: metal.Options{Plan: metal.Indirect}, limits: metal.Limits{Uncompleted: 6}},
	way{name: "live, short queue", live: true, limits: metal.Limits{Uncompleted: 6}},
)

func newPlanting(t *testing.T) *planting {
	p := &planting{workload: newWorkload(t), library: fakemetal.Build(t), aside: map[string]outcome{}}
	require.NoError(t, objc.Load(p.library.Path))
	var err error
	p.soft, err = fakemetal.SoftMetal(softmetal.Options{Workers: 1})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.soft.Close()) })
	p.want, err = p.run(p.soft)
	require.NoError(t, err)
	p.live, err = p.workload.live(p.soft)
	require.NoError(t, err)
	return p
}

// clean runs the workload in one of the ways without a wrong emission, and returns how many messages were
// sent. It keeps the labels and timed commands, which software Metal does not have, to compare with.
func (p *planting) clean(t testing.TB, w *way) []fakemetal.Heard {
	t.Helper()
	p.aside[w.name] = outcome{}
	var m *fakemetal.Metal
	wrong, aside := p.try(w, 1, calm, func(x *fakemetal.Metal) { m = x; m.Count() }, t)
	require.Empty(t, wrong, w.name)
	heard := m.Counted()
	p.aside[w.name] = aside
	return heard
}

// once runs the workload in one of the ways, and returns what is wrong: rules of Metal that were broken,
// leaks, an error or other results. begin is called before the device is opened. If nothing happens for
// the time patience while something waits, that counts as a deadlock.
func (p *planting) once(t testing.TB, w *way, seed uint64, patience time.Duration, begin func(m *fakemetal.Metal)) []string {
	t.Helper()
	if p.aside[w.name] == nil {
		p.clean(t, w)
	}
	wrong, aside := p.try(w, seed, patience, begin, t)
	if d := aside.differs(p.aside[w.name]); d != "" && aside != nil {
		wrong = append(wrong, "result: "+d)
	}
	return wrong
}

// calm is the patience of runs that have no deadlock but may stand still on a busy machine; hasty is that of
// runs that may deadlock, each of which then lasts that long.
const calm, hasty = time.Minute, 300 * time.Millisecond

// try is one run of once; aside are its labels and timed commands.
func (p *planting) try(w *way, seed uint64, patience time.Duration, begin func(m *fakemetal.Metal), t testing.TB) (wrong []string, aside outcome) {
	o := w.on(p.soft, seed)
	o.Patience, o.Residency, o.Full = patience, true, true
	defer metal.Lower(w.limits)()
	m := p.library.Serve(t, o)
	p.peak, p.idle = p.library.Peak, m.SetIdle
	p.apart = w.device.Profile && !w.gpu.SampleDispatches
	begin(m)
	var out outcome
	err := guarded(func() error {
		with := w.options()
		with.Log = io.Discard
		d, err := metal.Open(with)
		if err != nil {
			return err
		}
		err = guarded(func() (err error) {
			if w.live {
				out, err = p.workload.live(d)
			} else {
				out, err = p.run(d)
			}
			return err
		})
		if closed := d.Close(); err == nil {
			err = closed
		}
		return err
	})
	for _, c := range m.Compiled() {
		math := 0
		if w.gpu.MacOS == 14 {
			math = -1
		}
		if c.MathMode != math || c.Language != 3<<16+1 || c.FastMath != (math == 0) {
			wrong = append(wrong, fmt.Sprintf("options: a source is compiled with math mode %d, language %#x, fast math %t", c.MathMode, c.Language, c.FastMath))
		}
	}
	labels := p.library.Labels()
	p.hit = m.Misheard() > 0
	m.Close()
	for _, f := range p.library.Failures() {
		wrong = append(wrong, "rule: "+f)
	}
	if err != nil {
		return append(wrong, "error: "+err.Error()), nil
	}
	for i := range labels {
		labels[i] = digits.ReplaceAllString(labels[i], "")
	}
	slices.Sort(labels)
	aside = outcome{}
	aside["labels"] = strings.Join(labels, "\n")
	for name, v := range out {
		if strings.Contains(name, "times of") {
			aside[name] = v
			delete(out, name)
		}
	}
	want := p.want
	if w.live {
		want = p.live
	}
	if d := out.differs(want); d != "" {
		wrong = append(wrong, "result: "+d)
	}
	return wrong, aside
}

// guarded calls f and turns a panic into an error.
func guarded(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return f()
}

// TestWorkload: without a wrong emission the workload has the results of software Metal, in each way and in
// several orders of the GPU. A run of make test takes one way in eight.
func TestWorkload(t *testing.T) {
	sample.Seldom(t)
	p := newPlanting(t)
	for _, w := range sample.Of(t, t.Name(), plantedWays, sample.Few) {
		for seed := range uint64(4) {
			if seed > 1 && w.device.Profile {
				continue // in these orders two commands may run at the same time
			}
			require.Empty(t, p.once(t, &w, seed, calm, func(*fakemetal.Metal) {}), "%s: seed %d", w.name, seed)
		}
	}
}

// TestWrongEmissions: each wrong message is noticed: it breaks a rule of Metal, something leaks, an error
// comes, or a result differs. Those that are marked equivalent are not noticed. A run of make test
// takes one in sixteen, each in the first of its ways; MLXC_LONG=1 takes all in all their ways. It runs in a
// process of its own, since wrong messages leak objects.
func TestWrongEmissions(t *testing.T) {
	sample.Long(t)
	if os.Getenv(apart) == "" {
		c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestWrongEmissions$", "-test.v", "-test.timeout=30m")
		c.Env = append(os.Environ(), apart+"=1")
		out, err := c.CombinedOutput()
		t.Logf("%s", out)
		require.NoError(t, err)
		require.Contains(t, string(out), "--- PASS: TestWrongEmissions")
		return
	}
	p := newPlanting(t)
	by := map[string]int{}
	same := 0
	for _, x := range sample.Of(t, t.Name(), wrongEmissions, sample.Rare) {
		for _, name := range x.ways[:many(len(x.ways))] {
			w := wayNamed(name)
			var wrong []string
			hit, patience := true, hasty
			if x.equivalent != "" {
				patience = calm
			}
			for seed := uint64(1); seed <= 8 && hit && len(wrong) == 0; seed++ {
				if seed > 3 && x.equivalent != "" {
					break
				}
				wrong = p.once(t, w, seed, patience, func(m *fakemetal.Metal) { m.Mishear(x.Mishearing) })
				hit = p.hit
			}
			switch {
			case !hit:
				assert.True(t, hit, "%s, %s: there is no such message", x.name, name)
			case x.equivalent != "":
				same++
				assert.Empty(t, wrong, "%s, %s: somebody can tell: it is not so that %s", x.name, name, x.equivalent)
			case assert.NotEmpty(t, wrong, "%s, %s: nobody can tell", x.name, name):
				kind, _, _ := strings.Cut(wrong[0], ":")
				by[kind]++
				t.Logf("%s, %s: %s", x.name, name, wrong[0])
			}
		}
	}
	t.Logf("caught by %v, equivalent: %d", by, same)
}

func wayNamed(name string) *way {
	return &plantedWays[slices.IndexFunc(plantedWays, func(w way) bool { return w.name == name })]
}

// apart is the variable that tells a test that it runs in the process that it has started.
const apart = "MLXC_TEST_APART"

// many returns how many of n ways are run: 1, or all in long tests.
func many(n int) int {
	if sample.Whole() {
		return n
	}
	return min(n, 1)
}
