package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/conformance"
	"github.com/mlxc/mlxc/backend/measure"
	"github.com/mlxc/mlxc/backend/metal/litmus/verdict"
	"github.com/mlxc/mlxc/cost"
)

// Options of an examination.
type Options struct {
	Program string // the name and version of this program
	Device  backend.Device
	// Litmus runs the litmus tests; nil if the device is not a GPU.
	Litmus func(ctx context.Context, begin func(name string, done float64)) ([]verdict.Result, error)
	// Plans are the ways to encode that are tested and measured, in this order, that of Device
	// first; empty: only Device is measured.
	Plans []Plan
	// Quick leaves out most random dispatches and repetitions.
	Quick bool
	// Only is a pattern of path.Match for the names of conformance tests: "kernel/*"; "" means all
	// of them.
	Only string
	// Begin, if not nil, is called before each part of the examination. It returns a function that is
	// called with the share of the part that is done, from 0 to 1, and one that is called at its end.
	Begin func(what string) (progress func(float64), end func())
	// Log, if not nil, gets a line before each step: if the process dies, the last line says in
	// which step.
	Log io.Writer
}

// Plan is a way to encode, with a function that opens a device which encodes in this way.
type Plan struct {
	Name string
	// Open opens the device, given the report so far. It also returns a function that closes it.
	Open func(r *Report) (backend.Device, func(), error)
	// Launched: commands are launches that run one after another on the device, without barriers (CUDA).
	// Edges: commands that the edges of a graph do not order overlap.
	Launched, Edges bool
}

// examination is the state of a running examination.
type examination struct {
	o        Options
	r        *Report
	part     string
	progress func(float64)
	// stuck: a test that was left behind may still use the device.
	stuck bool
	// far: the measured copy is larger than all caches, also if Options.Quick is set.
	far bool
}

// step logs that a step begins, and reports the share of the part that is done.
func (e *examination) step(name string, done float64) {
	if e.o.Log != nil {
		_, _ = fmt.Fprintf(e.o.Log, "%s: %s\n", e.part, name) // that the log cannot be written does not matter
	}
	e.progress(done)
}

// Examine examines a device. It returns an error only if ctx has ended. Then, and if [Report.Stuck] is set,
// the device must not be closed any more, since a test that was left behind may use it.
func Examine(ctx context.Context, o Options) (*Report, error) {
	info := o.Device.Info()
	e := &examination{o: o, r: &Report{Program: o.Program, Device: o.Device.Name(), Name: info.Description, Quick: o.Quick, Claims: info.Numerics,
		Failures: []Failure{}, Unsupported: []Failure{}, Facts: []backend.Fact{}, Litmus: []verdict.Result{}, Numerics: []Numeric{}, Times: []PlanTimes{}}}
	if d, ok := o.Device.(backend.Described); ok {
		e.r.Facts = d.Facts()
	}
	for _, part := range []struct {
		name string
		run  func(context.Context) error
	}{
		{"orders", e.litmus}, {"numbers", e.numbers}, {"kernels and conformance", e.conformance}, {"times", e.measure},
	} {
		e.part, e.progress = part.name, func(float64) {}
		if e.stuck {
			e.unsupported(part.name, "the whole part", "the device hangs", "restart the machine, and run it again with --only and another pattern")
			continue
		}
		end := func() {}
		if o.Begin != nil {
			e.progress, end = o.Begin(part.name)
		}
		e.step("begins", 0)
		err := part.run(ctx)
		end()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err != nil {
			e.fail(part.name, "the whole part", err.Error(), next)
		}
	}
	e.part = "all"
	e.step("has ended", 1)
	e.r.Stuck = e.stuck
	return e.r, nil
}

// Times does only the part of [Examine] that measures the times of launches, barriers and copies.
func Times(ctx context.Context, o Options) (*Report, error) {
	e := &examination{o: o, far: true, r: &Report{Program: o.Program, Device: o.Device.Name(), Name: o.Device.Info().Description, Quick: o.Quick}}
	e.part, e.progress = "times", func(float64) {}
	if o.Begin != nil {
		progress, end := o.Begin(e.part)
		e.progress = progress
		defer end()
	}
	if err := e.measure(ctx); err != nil {
		return nil, err
	}
	if len(e.r.Failures) > 0 {
		f := e.r.Failures[0]
		return nil, fmt.Errorf("%s: %s", f.What, f.Saw)
	}
	return e.r, nil
}

func (e *examination) fail(part, what, saw, next string) {
	e.r.Failures = append(e.r.Failures, Failure{part, what, saw, next})
}

func (e *examination) unsupported(part, what, saw, next string) {
	e.r.Unsupported = append(e.r.Unsupported, Failure{part, what, saw, next})
}

func (e *examination) litmus(ctx context.Context) (err error) {
	if e.o.Litmus == nil {
		e.unsupported("orders", "litmus tests", fmt.Sprintf("the device %s is no GPU: the host orders its commands", e.o.Device.Name()), "run it with --device metal on a Mac")
		return nil
	}
	if e.r.Litmus, err = e.o.Litmus(ctx, e.step); err != nil {
		return err
	}
	for _, x := range e.r.Litmus {
		e.stuck = e.stuck || x.Hangs
		switch {
		case x.Verdict == verdict.Failed && x.Required:
			e.fail("orders", x.Name+": "+x.Says, fmt.Sprintf("wrong in %d of %d runs: %s", x.With.Wrong, x.With.Trials, x.Detail), x.Next)
		case x.Verdict == verdict.Unsupported:
			e.unsupported("orders", x.Name, x.Detail, x.Next)
		}
	}
	return nil
}

func (e *examination) numbers(ctx context.Context) error {
	if e.o.Device.Name() == "cpu" {
		e.unsupported("numbers", "kernels of known results", "the CPU device runs the kernels of the library alone, and not Metal source", "run it with --device softmetal, or --device metal on a Mac")
		return nil
	}
	return e.numerics(ctx)
}

// conformance runs the conformance suite, with the tests of every kernel of the library, on the device,
// and without these by every other plan.
func (e *examination) conformance(ctx context.Context) error {
	parts := float64(max(1, len(e.o.Plans)))
	if err := e.suite(ctx, e.o.Device, "", 0, 1/parts); err != nil {
		return err
	}
	for i, p := range e.o.Plans {
		if i == 0 {
			continue // the plan of the device itself
		}
		d, end, err := p.Open(e.r)
		if err != nil {
			continue // the measurements later report it
		}
		if err := e.suite(ctx, d, p.Name, float64(i)/parts, 1/parts); err != nil {
			return err
		}
		end()
	}
	return nil
}

// suite runs the conformance tests on a device, without those of kernels if plan is not "". from is the
// share of the work of all suites that is done before, part the share of this one.
func (e *examination) suite(ctx context.Context, d backend.Device, plan string, from, part float64) error {
	o := conformance.Options{BorrowedKernels: plan != ""}
	if e.o.Quick {
		o.Cases = 10
	}
	if d.Info().Sampling == backend.SampleNothing {
		o.Unsupported = map[string]string{"profile/every_command": "the device takes no times of commands"}
	}
	choose := func(name string) bool {
		if strings.HasPrefix(name, "term/") { // these test declarations, not devices
			return false
		}
		ok, err := path.Match(e.o.Only, name)
		return e.o.Only == "" || ok && err == nil
	}
	suffix := ""
	if plan != "" {
		suffix = ", plan " + plan
	}
	err := conformance.Examine(ctx, d, o, conformance.Examination{Choose: choose, Begin: func(name string, done float64) {
		e.step(name+suffix, from+part*done)
	}, Each: func(x conformance.Outcome) {
		what, tally := "conformance", &e.r.Conformance
		if strings.HasPrefix(x.Name, "kernel/") || strings.HasPrefix(x.Name, "generated/") {
			what, tally = "kernels", &e.r.Kernels
		}
		x.Name += suffix
		switch {
		case x.Unsupported != "":
			tally.Unsupported++
			e.unsupported(what, x.Name, x.Unsupported, "nothing: what needs it says so")
		case len(x.Errors) > 0:
			tally.Failed++
			e.fail(what, x.Name, strings.Join(x.Errors, "\n"), next)
		default:
			tally.Passed++
		}
	}})
	e.stuck = e.stuck || errors.Is(err, conformance.ErrHangs)
	return err
}

// Seen returns which optional orders the litmus tests have seen the device keep.
func (r *Report) Seen() cost.Litmus {
	return cost.Litmus{
		Fences:           verdict.Passing(r.Litmus, "fence/*"),
		IndirectBarriers: verdict.Passing(r.Litmus, "indirect/own-barrier") && verdict.Passing(r.Litmus, "indirect/later-commands"),
	}
}

// Profile returns the cost model for `mlxc optimize --profile`: the figures that were measured and, for
// the rest, those of the chip if it is known, else those of the default one.
func (r *Report) Profile(cores int) cost.Model {
	m, err := cost.Chip(r.Name)
	if err != nil {
		if m, _ = cost.Chip(""); cores > 0 { // the number of a GPU's cores is not known
			m.Cores = cores
		}
	}
	if r.Launched {
		m, _ = cost.Chip(cost.H200)
		m.Cores = max(1, cores)
	}
	m.Device, m.Litmus, m.Plans = r.Name, r.Seen(), nil
	const ns = 1e-9
	of := func(d Distribution) cost.Seconds { return cost.Seconds(max(0, d.Median) * ns) }
	switch {
	case r.Launched && len(r.Times) > 0:
		plans := map[string]cost.PlanTimes{}
		for _, t := range r.Times {
			plans[t.Plan] = cost.PlanTimes{Encode: of(t.Encode), Launch: of(t.Launch), Barrier: of(t.Barrier)}
		}
		measure.Believe(&m, plans, r.Times[0].Plan)
	case len(r.Times) > 0:
		t := r.Times[0]
		m.Barrier, m.CommandBuffer, m.ConcurrentLaunch = of(t.Barrier), of(t.CommandBuffer), of(t.Launch)
		m.Launch = max(of(t.Alone)-m.Barrier, m.ConcurrentLaunch)
		if t.Encode.Median > 0 { // a device of the host encodes nothing
			m.Encode = of(t.Encode)
		}
		m.Plans = map[string]cost.PlanTimes{}
		for _, t := range r.Times {
			m.Plans[t.Plan] = cost.PlanTimes{Encode: of(t.Encode), Launch: of(t.Launch), Barrier: of(t.Barrier)}
		}
	}
	if r.Bandwidth != nil && r.Bandwidth.Median > 0 {
		m.Bandwidth = r.Bandwidth.Median * 1e9
	}
	return m
}

// distribution returns the median and range of values in another unit; zeros if there are none.
func distribution(v []float64, unit float64) Distribution {
	if len(v) == 0 {
		return Distribution{}
	}
	s := slices.Sorted(slices.Values(v))
	return Distribution{Median: unit * s[len(s)/2], Min: unit * s[0], Max: unit * s[len(s)-1]}
}
