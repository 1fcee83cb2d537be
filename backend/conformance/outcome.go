package conformance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mlxc/mlxc/backend"
)

// Outcome is how one test ended, of [Examine].
type Outcome struct {
	Name string
	// Errors are what was wrong; empty: the test passed.
	Errors []string
	// Unsupported is why the test did not run, from [Options.Unsupported].
	Unsupported string
}

// ErrHangs is the error of [Examine] where a test has not ended.
var ErrHangs = errors.New("a test has not ended, and the others were not run")

// Examination says which tests run for a program that is no test, and who hears of them. All of its
// functions must be there.
type Examination struct {
	// Choose returns true of the names of those that run.
	Choose func(name string) bool
	// Begin hears which begins, and which part of them all is done, from 0 to 1; Each how it has ended.
	Begin func(name string, done float64)
	Each  func(x Outcome)
	// Patience is after what time a test counts as one that never ends; 0 is ten minutes.
	Patience time.Duration
}

// Examine runs tests on a device for a program that is no test, in the order of their names. An error
// is that ctx has ended, or [ErrHangs]: the test that runs then is left behind, and with it the device,
// which must not be closed any more.
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
