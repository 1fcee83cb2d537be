package conformance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mlxc/mlxc/backend"
)

// Outcome is the result of one test of [Examine].
type Outcome struct {
	Name string
	// Errors are the errors of the test; empty: it passed.
	Errors []string
	// Unsupported is why the test did not run, from [Options.Unsupported].
	Unsupported string
}

// ErrHangs is returned by [Examine] if a test did not end in time.
var ErrHangs = errors.New("a test has not ended, and the others were not run")

// Examination says which tests [Examine] runs, and has the functions that it calls. None of them may be
// nil.
type Examination struct {
	// Choose reports whether the test of a name runs.
	Choose func(name string) bool
	// Begin is called before a test, with the share of tests that are done, from 0 to 1; Each after it.
	Begin func(name string, done float64)
	Each  func(x Outcome)
	// Patience is the time after which a test counts as hanging; 0 is ten minutes.
	Patience time.Duration
}

// Examine runs tests on a device in a program that is not a test, in the order of their names. It returns
// an error if ctx has ended, or [ErrHangs] if a test has not. The test that runs then is left behind and
// may still use the device, which must not be closed any more.
func Examine(ctx context.Context, dev backend.Device, o Options, e Examination) error {
	if e.Patience == 0 {
		e.Patience = 10 * time.Minute
	}
	names, tests := o.tests()
	var chosen []string
	for _, n := range names {
		if e.Choose(n) {
			chosen = append(chosen, n)
		}
	}
	for i, name := range chosen {
		x := Outcome{Name: name}
		if reason, ok := listed(o.Unsupported, name); ok {
			x.Unsupported = reason
			e.Each(x)
			continue
		}
		e.Begin(name, float64(i)/float64(len(chosen)))
		ended := make(chan []string, 1)
		go func() { ended <- record(dev, nil, name, tests[name]) }()
		late := time.NewTimer(e.Patience)
		select {
		case x.Errors = <-ended:
			late.Stop()
		case <-late.C:
			x.Errors = []string{fmt.Sprintf("it has not ended after %v", e.Patience)}
			e.Each(x)
			return ErrHangs
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		e.Each(x)
	}
	return nil
}
