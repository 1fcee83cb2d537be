//go:build linux

package litmus_test

import (
	"context"
	"errors"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/metal/litmus"
	"github.com/mlxc/mlxc/backend/metal/litmus/verdict"
	"github.com/mlxc/mlxc/backend/softmetal"
	"github.com/mlxc/mlxc/internal/objc"
	"github.com/mlxc/mlxc/internal/testing/fakemetal"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/internal/testing/store"
)

// device is the software Metal that executes for the stand-in; all tests share it, since starting it is slow.
var device *softmetal.Device

// TestMain lets the tests share a cache of compiled kernels with those of software Metal, in the tree's
// folder for build results.
func TestMain(m *testing.M) {
	store.Use()
	code := m.Run()
	if device != nil {
		device.Close()
	}
	os.Exit(code)
}

// serve lets the stand-in for Metal answer messages until the test ends.
func serve(t testing.TB, o fakemetal.Options) (*fakemetal.Library, *fakemetal.Metal) {
	t.Helper()
	l := fakemetal.Build(t)
	require.NoError(t, objc.Load(l.Path))
	if device == nil {
		var err error
		device, err = fakemetal.SoftMetal(softmetal.Options{Workers: 1})
		require.NoError(t, err)
	}
	o.Device = device
	return l, l.Serve(t, o)
}

// small are options for the stand-in: few trials, since it runs in random orders whether steps are slow or not.
var small = litmus.Options{Trials: 6, Spin: 3, Pause: 200 * time.Millisecond}

// run runs the tests and returns their results, and the verdicts by name.
func run(t *testing.T, o litmus.Options) ([]litmus.Result, map[string]litmus.Verdict) {
	t.Helper()
	results, err := litmus.Run(t.Context(), o)
	require.NoError(t, err)
	verdicts := map[string]litmus.Verdict{}
	for _, r := range results {
		verdicts[r.Name] = r.Verdict
	}
	return results, verdicts
}

// facts are the tests of orders that some GPU may keep and the stand-in does not.
var facts = []string{"encoder/tracked", "indirect/resident", "indirect/later-commands"}

// TestVerdicts: on a device that keeps exactly what Metal promises, the tests of these promises pass and
// those in facts do not; indirect/later-commands passes too if barriers in indirect commands hold for
// later commands.
func TestVerdicts(t *testing.T) {
	for _, walls := range []bool{false, true} {
		l, m := serve(t, fakemetal.Options{Seed: 7, IndirectBarriers: walls, Residency: true})
		results, _ := run(t, small)
		var names []string
		for _, r := range results {
			names = append(names, r.Name)
			want := litmus.Passed
			if slices.Contains(facts, r.Name) && (!walls || r.Name != "indirect/later-commands") {
				want = litmus.NotKept
				assert.False(t, r.Required, r.Name)
				assert.Contains(t, r.Detail, "element 0 is", r.Name)
			}
			if r.Name == "value/no-threads" {
				want = litmus.Unsupported
			}
			assert.Equal(t, want, r.Verdict, "%+v", r)
			if want == litmus.Passed && r.Without != nil {
				assert.Positive(t, r.Without.Wrong, r.Name)
				assert.Positive(t, r.With.Trials, r.Name)
			}
			if want == litmus.Unsupported {
				assert.NotEmpty(t, r.Next, r.Name)
			}
		}
		assert.Equal(t, litmus.Names(), names)
		assert.True(t, verdict.Passing(results, "fence/*"))
		assert.Equal(t, walls, verdict.Passing(results, "indirect/*-*"), "both tests of barriers")
		assert.False(t, verdict.Passing(results, "no/*"))
		m.Close()
		assert.Empty(t, l.Failures())
	}
}

// TestBrokenDevices: a device that ignores one kind of order fails the tests of it, and no others.
func TestBrokenDevices(t *testing.T) {
	sample.Seldom(t)
	for _, c := range []struct {
		ignored fakemetal.Order
		fail    []string
	}{
		{fakemetal.Tracking, []string{"tracked/encoders", "tracked/command-buffers", "tracked/parallel", "indirect/declared", "indirect/ring"}},
		{fakemetal.Fences, []string{"fence/encoders", "fence/command-buffers", "fence/parallel", "fence/apart"}},
		{fakemetal.Barriers, []string{"encoder/barrier", "indirect/ranges", "indirect/mixed", "indirect/threadgroup", "indirect/reset", "indirect/cold", "value/unretained", "value/archive", "event/host-signals", "event/host-waits", "value/private", "value/no-threadgroups"}},
		{fakemetal.Events, []string{"event/command-buffers", "event/queues", "event/shared", "event/host-signals"}},
		{fakemetal.SerialEncoders, []string{"encoder/serial"}},
		{fakemetal.IndirectBarriers, []string{"indirect/own-barrier", "indirect/later-commands"}},
	} {
		l, m := serve(t, fakemetal.Options{Seed: 11, IndirectBarriers: true, Ignored: c.ignored})
		results, _ := run(t, small)
		var failed []string
		for _, r := range results {
			if (r.Verdict == litmus.Failed || r.Verdict == litmus.NotKept) && !slices.Contains(facts[:2], r.Name) {
				failed = append(failed, r.Name)
				assert.Equal(t, r.Required, r.Verdict == litmus.Failed, r.Name)
			}
			if r.Verdict == litmus.Failed {
				assert.Contains(t, r.Next, "send the report")
			}
		}
		assert.ElementsMatch(t, c.fail, failed, "%+v", c.ignored)
		m.Close()
		for _, f := range l.Failures() { // without waits, events are signalled in any order, which breaks a rule
			assert.Equal(t, fakemetal.Events, c.ignored, f)
			assert.Regexp(t, "^(encodeSignalEvent:value: |and )", f)
		}
	}
}

// TestNothingSeen: if the device runs everything in the order of commits, no test of an order passes.
func TestNothingSeen(t *testing.T) {
	serve(t, fakemetal.Options{})
	o := small
	o.Trials = 2
	results, verdicts := run(t, o)
	for _, r := range results {
		seen := r.Without == nil || strings.HasPrefix(r.Name, "event/host") || r.Name == "indirect/arguments"
		if r.Verdict == litmus.NotSeen {
			assert.NotEmpty(t, r.Next)
		}
		if !seen && r.Name != "indirect/ring" {
			assert.Equal(t, litmus.NotSeen, r.Verdict, "%+v", r)
		}
	}
	assert.Equal(t, litmus.Passed, verdicts["value/no-copy"])
}

// TestValues: tests of values, and others without a control, fail on a device that breaks what they check.
func TestValues(t *testing.T) {
	for _, c := range []struct {
		o    fakemetal.Options
		test string
	}{
		{fakemetal.Options{ColdPipelines: true}, "indirect/cold"},
		{fakemetal.Options{Lacks: fakemetal.PartialChanges}, "indirect/changed"},
		{fakemetal.Options{Lacks: fakemetal.IndirectThreadgroups}, "indirect/threadgroup"},
		{fakemetal.Options{Lacks: fakemetal.ArchiveHits}, "value/archive"},
		{fakemetal.Options{Faults: []fakemetal.Fault{{On: fakemetal.Archive, Nth: 2}}}, "value/archive"},
		{fakemetal.Options{ConstantAlign: 256}, "value/constant-offset"},
		{fakemetal.Options{Faults: []fakemetal.Fault{{On: fakemetal.CommandBuffer, Nth: 1}}}, "value/set-bytes"},
		{fakemetal.Options{Faults: []fakemetal.Fault{{On: fakemetal.CommandBuffer, Nth: 3}}}, "value/no-threadgroups"},
	} {
		l, m := serve(t, c.o)
		o := small
		o.Only = c.test
		results, _ := run(t, o)
		require.Len(t, results, 1)
		assert.Contains(t, []litmus.Verdict{litmus.Failed, litmus.NotKept}, results[0].Verdict, "%+v", results[0])
		m.Close()
		for _, f := range l.Failures() {
			assert.Regexp(t, "no multiple of 256|is not bound|no pipeline is set|has no length|and [0-9]+ more", f)
		}
	}
	// Each of these tests notices a command buffer that fails.
	for _, name := range litmus.Names() {
		of := []string{"indirect/rewritten", "indirect/changed", "indirect/threadgroup", "indirect/reset"}
		if !strings.HasPrefix(name, "value/") && !slices.Contains(of, name) || name == "value/no-threads" {
			continue
		}
		_, m := serve(t, fakemetal.Options{Faults: []fakemetal.Fault{{On: fakemetal.CommandBuffer, Nth: 2}}})
		o := small
		o.Only = name
		results, _ := run(t, o)
		assert.Equal(t, 1, results[0].With.Wrong, "%+v", results[0])
		assert.Contains(t, results[0].Detail, "a command buffer failed")
		m.Close()
	}
	// A grid without threads is sent only with EmptyGrids; the stand-in then notes a broken rule, as Metal's
	// API validation would.
	l, m := serve(t, fakemetal.Options{})
	o := small
	o.Only, o.EmptyGrids = "value/no-threads", true
	results, verdicts := run(t, o)
	assert.Equal(t, litmus.Passed, verdicts["value/no-threads"], "%+v", results)
	m.Close()
	assert.Contains(t, strings.Join(l.Failures(), "\n"), "a grid of 0")
}

// TestApart: with Options.Apart the test of cold pipelines runs in a process of its own. Its result counts, and
// if that process dies, that counts as wrong.
func TestApart(t *testing.T) {
	serve(t, fakemetal.Options{})
	var asked []string
	for _, c := range []struct {
		found  litmus.Result
		err    error
		want   litmus.Verdict
		detail string
	}{
		{litmus.Result{Name: "indirect/cold", Verdict: litmus.Passed, Hangs: true}, nil, litmus.Passed, ""},
		{litmus.Result{}, errors.New("signal: killed"), litmus.NotKept, "in a process of its own: signal: killed"},
		{litmus.Result{Name: "another"}, nil, litmus.NotKept, `in a process of its own: it has the result of "another"`},
	} {
		o := small
		o.Only = "indirect/[cr]e*"
		o.Apart = func(_ context.Context, name string) (litmus.Result, error) {
			asked = append(asked, name)
			return c.found, c.err
		}
		_, verdicts := run(t, o)
		assert.Equal(t, litmus.Passed, verdicts["indirect/rewritten"])
		o.Only = "indirect/cold"
		results, _ := run(t, o)
		require.Len(t, results, 1)
		assert.Equal(t, c.want, results[0].Verdict)
		assert.Equal(t, c.detail, results[0].Detail)
		assert.False(t, results[0].Hangs, "the device of this process does not")
	}
	assert.Equal(t, []string{"indirect/cold", "indirect/cold", "indirect/cold"}, asked)
}

// TestOldSystem: tests of what macOS 14 does not have are unsupported.
func TestOldSystem(t *testing.T) {
	serve(t, fakemetal.Options{MacOS: 14, Seed: 3})
	o := small
	o.Only = "*/*s*"
	_, verdicts := run(t, o)
	assert.Equal(t, litmus.Unsupported, verdicts["indirect/resident"])
	assert.Equal(t, litmus.Passed, verdicts["event/host-waits"])
}

// TestEnds: a run ends with its context. After a command buffer that does not end in time, no more tests run.
func TestEnds(t *testing.T) {
	sample.Seldom(t)
	l, m := serve(t, fakemetal.Options{Late: 300 * time.Millisecond, Seed: 2})
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stop")
	o := small
	first := "value/no-threadgroups"
	o.Trials = 1 << 30
	o.Begin = func(name string, _ float64) {
		if name != first {
			cancel(stop)
		}
	}
	begin := time.Now()
	o.Only = "value/*"
	results, err := litmus.Run(ctx, o)
	require.ErrorIs(t, err, stop)
	assert.Len(t, results, 1)
	assert.Less(t, time.Since(begin), 30*time.Second)

	o = small
	o.Patience = time.Millisecond
	o.Trials = 1
	results, _ = run(t, o)
	assert.Equal(t, litmus.Failed, results[0].Verdict)
	assert.Contains(t, results[0].Detail, "has not ended after 1ms")
	assert.True(t, results[0].Hangs)
	assert.Equal(t, litmus.Unsupported, results[len(results)-1].Verdict)
	assert.Contains(t, results[len(results)-1].Next, "restart the machine")
	m.Close()
	for _, f := range l.Failures() { // objects leak: nobody knows when the GPU would release them
		assert.Contains(t, f, "leak")
	}
}

// TestPage: docs/metal.md names every test, and no other.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../../docs/metal.md")
	require.NoError(t, err)
	named := map[string]bool{}
	for _, m := range regexp.MustCompile("`([a-z]+/[-a-z*]+)`").FindAllStringSubmatch(string(page), -1) {
		pattern, some := m[1], false
		for _, name := range litmus.Names() {
			if ok, err := path.Match(pattern, name); ok && err == nil {
				named[name], some = true, true
			}
		}
		group, _, _ := strings.Cut(pattern, "/")
		isTest := slices.ContainsFunc(litmus.Names(), func(n string) bool { return strings.HasPrefix(n, group+"/") })
		assert.True(t, some || !isTest, "the page names %s, and there is no such test", pattern)
	}
	for _, name := range litmus.Names() {
		assert.True(t, named[name], "the page does not name %s", name)
	}
}
