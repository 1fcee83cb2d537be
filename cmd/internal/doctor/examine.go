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
	"github.com/mlxc/mlxc/backend/launchtimes"
	"github.com/mlxc/mlxc/backend/metal/litmus/verdict"
	"github.com/mlxc/mlxc/cost"
)

// Options say what to examine.
type Options struct {
	Program string // the name and version of this program
	Device  backend.Device
	// Litmus runs litmus tests; nil where the device is no GPU.
	Litmus func(ctx context.Context, begin func(name string, done float64)) ([]verdict.Result, error)
	// Plans opens devices that encode in other ways, by name, in this order; empty: Device alone is
	// measured.
	Plans []Plan
	// Quick leaves out most random dispatches and repetitions.
	Quick bool
	// Only is a pattern of the names of tests of conformance, as path.Match has it: "kernel/*"; "" is
	// all of them.
	Only string
	// Begin, if not nil, hears what is done next, and returns what hears which part of it is done,
	// from 0 to 1, and what is called at its end.
	Begin func(what string) (progress func(float64), end func())
	// Log, if not nil, gets a line for each step before it begins: if the process dies, the last one
	// says where.
	Log io.Writer
}

// Plan is a way to encode, with a device that does.
type Plan struct {
	Name string
	// Open opens the device, given what was found out before.
	Open func(r *Report) (backend.Device, func(), error)
	// Launched: commands are launches that follow one another on the device, and no barriers are encoded
	// between them (CUDA). Edges: what the edges of a graph do not order overlaps.
	Launched, Edges bool
}

// examination is one that goes on.
type examination struct {
	o        Options
	r        *Report
	part     string
	progress func(float64)
	// stuck: something that was left behind may use the device.
	stuck bool
	// far: a copy is measured that no cache holds, however quick the rest is.
	far bool
}

// step says that a step of the part begins, and which part of that is done.
func (e *examination) step(name string, done float64) {
	if e.o.Log != nil {
		_, _ = fmt.Fprintf(e.o.Log, "%s: %s\n", e.part, name) // the report is what matters
	}
	e.progress(done)
}

// Examine examines a device. An error is that ctx has ended. Then the device must not be closed any
// more, for a test that was left behind may use it; neither may it if [Report.Stuck].
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

// Times measures what launches, barriers and copies of a device cost, and nothing else of what [Examine] looks at.
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

// conformance runs every kernel of the library against its declared meaning, and the suite; the suite
// without the kernels by every other plan too.
func (e *examination) conformance(ctx context.Context) error {
	parts := float64(max(1, len(e.o.Plans)))
	if err := e.suite(ctx, e.o.Device, "", 0, 1/parts); err != nil {
		return err
	}
	for i, p := range e.o.Plans {
		if i == 0 {
			continue // that of the device
		}
		d, end, err := p.Open(e.r)
		if err != nil {
			continue // what is measured later says so
		}
		if err := e.suite(ctx, d, p.Name, float64(i)/parts, 1/parts); err != nil {
			return err
		}
		end()
	}
	return nil
}

// suite runs the tests on a device; all but those of kernels, if it has a plan. The work is a part of
// all, from a share of it on.
func (e *examination) suite(ctx context.Context, d backend.Device, plan string, from, part float64) error {
	o := conformance.Options{BorrowedKernels: plan != ""}
	if e.o.Quick {
		o.Cases = 10
	}
	if d.Info().Sampling == backend.SampleNothing {
		o.Unsupported = map[string]string{"profile/every_command": "the device takes no times of commands"}
	}
	choose := func(name string) bool {
		// What tests declarations, and not devices, needs no device.
		if name == "generated/lies" || strings.HasPrefix(name, "term/") {
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

// Seen is what the device was seen to keep.
func (r *Report) Seen() cost.Litmus {
	return cost.Litmus{
		Fences:           verdict.Passing(r.Litmus, "fence/*"),
		IndirectBarriers: verdict.Passing(r.Litmus, "indirect/own-barrier") && verdict.Passing(r.Litmus, "indirect/later-commands"),
	}
}

// Profile is what the report says for `mlxc optimize --profile`: figures that were measured, with those
// of the chip where it is known, and of the default one, for the rest.
func (r *Report) Profile(cores int) cost.Model {
	m, err := cost.Chip(r.Name)
	if err != nil {
		if m, _ = cost.Chip(""); cores > 0 { // those of a GPU are not known
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
		launchtimes.Believe(&m, plans, r.Times[0].Plan)
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

// distribution is that of some values.
func distribution(v []float64) Distribution {
	s := slices.Sorted(slices.Values(v))
	return Distribution{Median: s[len(s)/2], Min: s[0], Max: s[len(s)-1]}
}
