package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/backend/metal/litmus/verdict"
	"github.com/mlxc/mlxc/backend/softmetal"
	"github.com/mlxc/mlxc/cost"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/internal/testing/store"
)

// TestMain lets the tests share a cache of compiled kernels with those of software Metal, in the tree's
// folder for build results.
func TestMain(m *testing.M) {
	store.Use()
	os.Exit(m.Run())
}

// claims is a device with other Numerics in its Info.
type claims struct {
	backend.Device
	numerics backend.Numerics
}

func (c claims) Info() backend.Info {
	i := c.Device.Info()
	i.Numerics = c.numerics
	return i
}

func (claims) Facts() []backend.Fact { return []backend.Fact{{Name: "macOS", Value: "15.0"}} }

// TestNumbers: software Metal computes only what its Numerics allow; with stricter Numerics that is a failure.
func TestNumbers(t *testing.T) {
	sample.Seldom(t)
	d, err := softmetal.New(t.Context(), softmetal.Options{Workers: 1})
	require.NoError(t, err)
	defer d.Close()
	for _, honest := range []bool{true, false} {
		x := claims{d, d.Info().Numerics}
		if !honest {
			x.numerics = backend.Numerics{}
		}
		e := &examination{o: Options{Device: x}, r: &Report{}, progress: func(float64) {}}
		require.NoError(t, e.numbers(t.Context()))
		assert.Len(t, e.r.Numerics, len(numbers()))
		assert.True(t, e.r.Shown.FlushesDenormals)
		assert.False(t, e.r.Shown.Contracts)
		assert.Equal(t, sums[0].name, e.r.SimdSum)
		assert.Equal(t, honest, e.r.OK(), "%+v", e.r.Failures)
		for _, f := range e.r.Failures {
			assert.Regexp(t, "a denormal counts as zero|another NaN", f.Saw)
			assert.NotEmpty(t, f.Next)
		}
	}
}

// uncompiled is a device without a compiler.
type uncompiled struct{ claims }

func (uncompiled) Compile(context.Context, *backend.Program) (backend.Executable, error) {
	return nil, fmt.Errorf("kernel numeric_exp has to be compiled: %w", backend.ErrNoCompiler)
}

// TestNumbersWithoutCompiler: without a compiler numbers are not tested, which is not a failure.
func TestNumbersWithoutCompiler(t *testing.T) {
	d, err := softmetal.New(t.Context(), softmetal.Options{Workers: 1})
	require.NoError(t, err)
	defer d.Close()
	e := &examination{o: Options{Device: uncompiled{claims{d, d.Info().Numerics}}}, r: &Report{}, progress: func(float64) {}}
	require.NoError(t, e.numbers(t.Context()))
	assert.True(t, e.r.OK(), "%+v", e.r.Failures)
	require.Len(t, e.r.Unsupported, 1)
	assert.Contains(t, e.r.Unsupported[0].Saw, "not tried")
	assert.Contains(t, e.r.Unsupported[0].Next, "clang")
}

// TestJudge: judge tells the result of every case, and its allowed deviations, from wrong results.
func TestJudge(t *testing.T) {
	all := backend.Numerics{FlushesDenormals: true, Contracts: true, ManyNaNs: true}
	names := map[string]bool{}
	for _, n := range numbers() {
		assert.False(t, names[n.name], n.name)
		names[n.name] = true
		is, ok := n.judge(n.want, backend.Numerics{})
		assert.Equal(t, isExact, is, n.name)
		assert.True(t, ok)
		is, ok = n.judge(n.want^0x5a5a, all)
		assert.False(t, ok && !(n.nan && is == isNaN), "%s: %s", n.name, is)
		for _, f := range n.flushed {
			is, ok = n.judge(f, all)
			assert.Equal(t, isFlushed, is, n.name)
			assert.True(t, ok)
			_, ok = n.judge(f, backend.Numerics{})
			assert.False(t, ok, n.name)
		}
		if n.once != 0 {
			is, ok = n.judge(n.once, all)
			assert.Equal(t, isOnce, is)
			assert.True(t, ok)
			_, ok = n.judge(n.once, backend.Numerics{})
			assert.False(t, ok)
		}
		if n.units > 0 {
			is, ok = n.judge(n.want+n.units, backend.Numerics{})
			assert.Equal(t, isNear, is)
			assert.True(t, ok)
			_, ok = n.judge(n.want+n.units+1, all)
			assert.False(t, ok)
			_, ok = n.judge(0x7fc00000, all)
			assert.False(t, ok)
		}
	}
}

// TestSums: the addends have another sum in each of the orders.
func TestSums(t *testing.T) {
	v := addends()
	seen := map[uint32]string{}
	for _, o := range sums {
		first := o.sum(v)[0]
		assert.Empty(t, seen[first], o.name)
		seen[first] = o.name
	}
}

// litmusOf returns an Options.Litmus with fixed results.
func litmusOf(list ...verdict.Result) func(context.Context, func(string, float64)) ([]verdict.Result, error) {
	return func(context.Context, func(string, float64)) ([]verdict.Result, error) { return list, nil }
}

// TestReport: a required litmus test that fails is a failure, others are not. The text, JSON and profile have
// all results.
func TestReport(t *testing.T) {
	d := cpu.New(1)
	defer d.Close()
	result := func(name string, v verdict.Verdict, required bool) verdict.Result {
		r := verdict.Result{Name: name, Says: "it says " + name, For: "a plan", Required: required, Verdict: v, With: verdict.Count{Trials: 9}, Without: &verdict.Count{Trials: 9, Wrong: 3}}
		if v != verdict.Passed {
			r.Detail, r.Next = "a detail", "a step"
		}
		return r
	}
	var heard []string
	var log bytes.Buffer
	o := Options{
		Log:     &log,
		Program: "mlxreplay 1", Device: claims{d, backend.Numerics{}}, Quick: true, Only: "copy/*",
		Litmus: litmusOf(result("fence/a", verdict.Passed, false), result("fence/b", verdict.Passed, false), result("indirect/own-barrier", verdict.Passed, false),
			result("indirect/later-commands", verdict.NotKept, false), result("tracked/encoders", verdict.Failed, true), result("indirect/resident", verdict.Unsupported, false)),
		Plans: []Plan{
			{Name: "concurrent", Open: func(*Report) (backend.Device, func(), error) { return d, func() {}, nil }},
			{Name: "strange", Open: func(*Report) (backend.Device, func(), error) { return nil, nil, errors.New("there is no such plan") }},
		},
		Begin: func(what string) (func(float64), func()) {
			heard = append(heard, what)
			return func(float64) {}, func() {}
		},
	}
	r, err := Examine(t.Context(), o)
	require.NoError(t, err)
	assert.Equal(t, []string{"orders", "numbers", "kernels and conformance", "times"}, heard)
	for _, want := range []string{"orders: begins\n", "kernels and conformance: copy/bytes\n", "times: plan concurrent\n", "all: has ended\n"} {
		assert.Contains(t, log.String(), want)
	}
	assert.Len(t, r.Unsupported, 3) // a litmus test, numbers, a plan
	for _, f := range r.Unsupported {
		assert.NotEmpty(t, f.Next, "%+v", f)
	}
	require.Len(t, r.Failures, 1, "%+v", r.Failures)
	assert.Equal(t, "tracked/encoders: it says tracked/encoders", r.Failures[0].What)
	assert.Equal(t, "a step", r.Failures[0].Next)
	var text bytes.Buffer
	require.NoError(t, r.WriteText(&text))
	for _, want := range []string{
		"mlxreplay 1 doctor: cpu, ", "macOS ", "15.0", "passed      fence/a ", "0 of 9; 3 of 9", "needed by: a plan", "next: a step",
		"Failures: 1", "wrong in 0 of 9 runs: a detail", "plan strange", "there is no such plan",
	} {
		assert.Contains(t, text.String(), want)
	}
	assert.NotContains(t, text.String(), "Nothing has failed")
	assert.Positive(t, r.Conformance.Passed)
	data, err := json.Marshal(r)
	require.NoError(t, err)
	var back Report
	require.NoError(t, json.Unmarshal(data, &back))
	assert.Equal(t, *r, back)

	var profile bytes.Buffer
	require.NoError(t, r.Profile(4).WriteProfile(&profile))
	m, err := cost.ParseProfile("p", profile.Bytes())
	require.NoError(t, err)
	assert.Equal(t, cost.Litmus{Fences: true}, m.Litmus)
	assert.Equal(t, 4, m.Cores)
	assert.Len(t, m.Plans, 1)
	assert.InEpsilon(t, r.Bandwidth.Median*1e9, m.Bandwidth, 1e-4)

	o.Litmus = litmusOf(result("fence/a", verdict.NotSeen, false), result("indirect/own-barrier", verdict.Passed, false), result("indirect/later-commands", verdict.Passed, false))
	o.Plans = nil
	r, err = Examine(t.Context(), o)
	require.NoError(t, err)
	assert.Equal(t, cost.Litmus{IndirectBarriers: true}, r.Profile(1).Litmus, "what was not seen is not known")
	assert.Equal(t, cost.Model{}.OrDefault().Cores, r.Profile(0).Cores, "nobody says")
	r.Name = "Apple M3 Max"
	assert.Equal(t, 40, r.Profile(1).Cores, "of the chip")
}

// forgets is a device whose NewQueue fails.
type forgets struct{ backend.Device }

func (forgets) NewQueue() (backend.Queue, error) { return nil, errors.New("no queue today") }

// TestBrokenDevice: each thing that a device cannot do is a failure, and the rest is examined.
func TestBrokenDevice(t *testing.T) {
	d := cpu.New(1)
	defer d.Close()
	r, err := Examine(t.Context(), Options{Program: "x", Device: forgets{d}, Quick: true, Only: "copy/*"})
	require.NoError(t, err)
	assert.False(t, r.OK())
	assert.Positive(t, r.Conformance.Failed)
	parts := map[string]bool{}
	for _, f := range r.Failures {
		parts[f.Part] = true
		assert.True(t, strings.Contains(f.Saw, "no queue today"), "%+v", f)
		assert.Contains(t, f.Next, "send the report")
	}
	assert.Equal(t, map[string]bool{"conformance": true, "times": true}, parts)
}

// TestHangs: after a test that hangs the rest is not examined, and the device is not used any more.
func TestHangs(t *testing.T) {
	r, err := Examine(t.Context(), Options{Device: cpu.New(1), Quick: true, Only: "copy/*",
		Litmus: litmusOf(verdict.Result{Name: "event/queues", Verdict: verdict.NotKept, Hangs: true})})
	require.NoError(t, err)
	assert.True(t, r.Stuck)
	assert.Zero(t, r.Conformance)
	assert.Empty(t, r.Times)
	require.Len(t, r.Unsupported, 3)
	for _, f := range r.Unsupported {
		assert.Equal(t, "the device hangs", f.Saw)
	}
}

// TestEnds: an examination ends with its context.
func TestEnds(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stop")
	_, err := Examine(ctx, Options{Device: cpu.New(1), Begin: func(string) (func(float64), func()) { return func(float64) { cancel(stop) }, func() {} }})
	require.ErrorIs(t, err, stop)
}

// TestLaunched: plans whose commands are launches are measured as such; the profile has their times by name, and
// the launch time of the first as its own.
func TestLaunched(t *testing.T) {
	d := cpu.New(1)
	defer d.Close()
	open := func(*Report) (backend.Device, func(), error) { return d, func() {}, nil }
	r, err := Examine(t.Context(), Options{
		Program: "mlxreplay 1", Device: claims{d, backend.Numerics{}}, Quick: true, Only: "copy/bytes",
		Plans: []Plan{{Name: "chain-waiting", Launched: true, Open: open}, {Name: "edges", Launched: true, Edges: true, Open: open}},
	})
	require.NoError(t, err)
	require.Len(t, r.Times, 2, "%+v", r.Unsupported)
	var text bytes.Buffer
	require.NoError(t, r.WriteText(&text))
	assert.Contains(t, text.String(), "behind another")
	m := r.Profile(132)
	require.Len(t, m.Plans, 2)
	assert.Positive(t, m.Launch)
	assert.InEpsilon(t, 1e-9*r.Times[0].Launch.Median, float64(m.Launch), 1e-9)
	assert.Equal(t, m.Launch, m.Plans["chain-waiting"].Launch)
	assert.Equal(t, 132, m.Cores)
	assert.Zero(t, m.Barrier)
	assert.Positive(t, m.Latency, "that of an H200")
	var profile bytes.Buffer
	require.NoError(t, m.WriteProfile(&profile))
	_, err = cost.ParseProfile("p", profile.Bytes())
	require.NoError(t, err)
}
