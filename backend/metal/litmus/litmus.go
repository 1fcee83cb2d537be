//go:build (darwin || linux) && (amd64 || arm64)

package litmus

import (
	"context"
	"errors"
	"fmt"
	"path"
	"time"

	"github.com/mlxc/mlxc/internal/objc"
)

// test is a litmus test.
type test struct {
	name, says string
	use        string // the feature that relies on what it says
	required   bool
	family     uint64 // the first GPU family for which it is required, instead of required; 0: see required
	keeps      keeps
	// values: the test has no control.
	values bool
	// late: the host pauses in each trial, so there are a tenth as many.
	late bool
	// apart: it runs in a process of its own if Options.Apart is set.
	apart bool
	// threadgroups is the number of threadgroup memory arguments of its indirect commands.
	threadgroups int
	// few is the max number of trials; 0: Options.Trials.
	few int
	// prepare, if not nil, makes what this test needs in addition, once for all trials.
	prepare func(p *program) error
	// run encodes and commits the program once. It returns errors other than a wrong chain.
	run func(p *program) error
	// unchained: run checks the result itself, which is not that of the chain.
	unchained bool
}

// unsupported is the error of a test that cannot run here: why, and what to do next.
type unsupported struct{ why, next string }

func (u *unsupported) Error() string { return u.why }

// all returns the tests in the order in which they run. Those that may hang the GPU come last.
func all(o Options) []*test {
	var out []*test
	for _, list := range [][]*test{encoders, indirect, values, events, {empty(o)}} {
		out = append(out, list...)
	}
	return out
}

// Names returns the names of all tests.
func Names() (out []string) {
	for _, t := range all(Options{}) {
		out = append(out, t.name)
	}
	return out
}

// Run runs the tests. It returns an error if there is no GPU to run them on or ctx has ended, in which case
// the results are those of the tests that have ended before.
func Run(ctx context.Context, o Options) ([]Result, error) {
	if o.Trials == 0 {
		o.Trials = 300
	}
	if o.Pause == 0 {
		o.Pause = 2 * time.Millisecond
	}
	if o.Patience == 0 {
		o.Patience = 10 * time.Second
	}
	r, err := newRig(o)
	if err != nil {
		return nil, err
	}
	defer r.close()
	if r.spin(o.Spin); o.Spin == 0 {
		err := r.calibrate(ctx)
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case err != nil: // the tests will report it
			r.spin(20_000)
		}
	}
	var results []Result
	tests := all(o)
	for i, t := range tests {
		if ok, err := path.Match(o.Only, t.name); o.Only != "" && (err != nil || !ok) {
			continue
		}
		if o.Begin != nil {
			o.Begin(t.name, float64(i)/float64(len(tests)))
		}
		x := Result{Name: t.name, Says: t.says, For: t.use, Required: t.required}
		if t.family != 0 {
			x.Required = objc.SupportsFamily.SendBool(r.device, uintptr(t.family))
		}
		if t.apart && o.Apart != nil && !r.stuck {
			if err := elsewhere(ctx, o, &x); err != nil {
				return results, err
			}
		} else if err := r.test(ctx, t, &x); err != nil {
			return results, err
		}
		results = append(results, x)
	}
	return results, nil
}

// elsewhere runs a test in another process. If that dies, the test was wrong. The error is that of ctx.
func elsewhere(ctx context.Context, o Options, x *Result) error {
	found, err := o.Apart(ctx, x.Name)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err == nil && found.Name == x.Name {
		*x = found
		x.Hangs = false // it hangs in the other process, not in this one
		return nil
	}
	if err == nil {
		err = fmt.Errorf("it has the result of %q", found.Name)
	}
	x.With = Count{Trials: 1, Wrong: 1}
	x.Detail = "in a process of its own: " + err.Error()
	x.Judge()
	return nil
}

// test runs one test and sets its result. The error is that of ctx.
func (r *rig) test(ctx context.Context, t *test, x *Result) error {
	if r.stuck {
		x.Verdict = Unsupported
		x.Detail = "a command buffer of an earlier test has not ended"
		x.Next = "restart the machine, and run this test again"
		return nil
	}
	err := r.count(ctx, t, true, &x.With, x)
	if err == nil && !t.values && x.With.Wrong == 0 {
		x.Without = &Count{}
		err = r.count(ctx, t, false, x.Without, nil)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var u *unsupported
	switch {
	case errors.As(err, &u):
		x.Verdict, x.Detail, x.Next = Unsupported, u.why, u.next
		return nil
	case err != nil:
		x.With.Wrong = max(x.With.Wrong, 1)
		x.Detail = err.Error()
	}
	x.Hangs = r.stuck
	x.Judge()
	return nil
}

// count runs a test's program, with or without its order, and counts the wrong results, of which 20 are
// enough.
func (r *rig) count(ctx context.Context, t *test, ordered bool, n *Count, x *Result) (err error) {
	var p *program
	objc.Pool(func() { p, err = r.newProgram(ctx, t, ordered) })
	if err != nil {
		return err
	}
	defer p.close()
	trials := r.o.Trials
	if t.late {
		trials = max(1, trials/10)
	}
	if t.few > 0 {
		trials = min(trials, t.few)
	}
	const enough = 20
	for n.Trials < trials && n.Wrong < enough {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		var wrong error
		objc.Pool(func() { wrong = p.trial() })
		n.Trials++
		if wrong == nil {
			continue
		}
		var u *unsupported
		if errors.As(wrong, &u) {
			return wrong
		}
		n.Wrong++
		if x != nil && x.Detail == "" {
			x.Detail = fmt.Sprintf("run %d: %v", n.Trials, wrong)
		}
		if r.stuck {
			return nil
		}
	}
	return nil
}

// trial runs the program once and returns what was wrong. The caller has an autorelease pool.
func (p *program) trial() error {
	p.fill()
	err := p.test.run(p)
	if failed := p.land(0); err == nil {
		err = failed
	}
	if err == nil && !p.test.unchained {
		err = p.holds(steps)
	}
	return err
}
