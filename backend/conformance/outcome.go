package conformance

import (
	"context"

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

// Examine runs the tests on a device for a program that is no test: those whose names choose returns
// true of, in the order of their names. each hears how one has ended, and which part of them all is
// done, from 0 to 1. An error is that ctx has ended: the test that runs then is left behind, and with
// it the device, which must not be closed any more.
func Examine(ctx context.Context, dev backend.Device, o Options, choose func(name string) bool, each func(x Outcome, done float64)) error {
	names, tests := o.tests()
	var chosen []string
	for _, n := range names {
		if choose(n) {
			chosen = append(chosen, n)
		}
	}
	for i, name := range chosen {
		x := Outcome{Name: name}
		if reason, ok := listed(o.Unsupported, name); ok {
			x.Unsupported = reason
		} else {
			ended := make(chan []string, 1)
			go func() { ended <- record(dev, nil, name, tests[name]) }()
			select {
			case x.Errors = <-ended:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		each(x, float64(i+1)/float64(len(chosen)))
	}
	return nil
}
