package conformance

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"path"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/conformance/internal/dispatches"
	"github.com/mlxc/mlxc/msl"
	"github.com/mlxc/mlxc/msl/decl"
)

// Options of a run. The zero value runs every test in its short form.
type Options struct {
	// Unsupported names tests that the backend will never pass, and why. They do not
	// run. A name may be a pattern: "kernel/gemv_*".
	Unsupported map[string]string
	// ExpectedFailure names tests that the backend does not pass yet, and why.
	// They run, and must fail.
	ExpectedFailure map[string]string
	// Cases is the number of random dispatches of each family of kernels or, in the
	// long form, of each instance; 0 means 100, in the long form 200.
	Cases int
	// Values, if not 0, is the max number of values of a random dispatch's params, and Witnesses that of the dispatches
	// which its source names of a function, of which each Turn takes others; in the long form all are run. If Witnesses is
	// 0, it is four.
	Values, Witnesses, Turn int
	// Regular is how many further random dispatches of each instance there are whose arguments are aligned, and whose sizes are multiples of 256,
	// as those of models: for devices that have other code for such.
	Regular int
	// Source, if not empty, names a Metal source: only its kernels are tested.
	Source string
	// Choose, if not nil, picks the members of families that are tested in this run, since not all
	// instances of one template need be tested every time.
	Choose Choice
	// Long asks for the long form.
	Long bool
	// BorrowedKernels leaves out the tests of kernels, for a device that runs the kernels
	// of another one.
	BorrowedKernels bool
	// Other returns another device to copy from. If it is nil, copies between devices are
	// not tested.
	Other func() backend.Device
	// Seed selects the random dispatches. 0 selects those that every run makes by default.
	Seed uint64
}

// Choice returns a selection of members, in their order. family returns the family of a member.
type Choice func(members []string, family func(member string) string) []string

func (o Options) cases() int {
	switch {
	case o.Cases != 0:
		return o.Cases
	case o.Long:
		return 200
	}
	return 100
}

// someWitnesses is how many dispatches that its source names of a function are run in the short form.
const someWitnesses = 4

func (o Options) values() int {
	if o.Long || o.Values == 0 {
		return dispatches.Everything
	}
	return o.Values
}

func (o Options) witnesses() int {
	if o.Long {
		return dispatches.Everything
	}
	return cmp.Or(o.Witnesses, someWitnesses)
}

// functions returns the names of the functions that are tested.
func (o Options) functions() []string {
	all := dispatches.Functions(o.Source)
	if o.Choose == nil {
		return all
	}
	return o.Choose(all, func(f string) string { return template(msl.Declarations(f)[0]) })
}

// template names what kernels share whose tests would find the same faults: their family, but how a format of GGML's blocks
// is decoded stands in one struct, which the product with a vector tests for all kernels that read the format.
func template(d *decl.Decl) string {
	family := d.Family()
	if line, format, ok := strings.Cut(family, " F="); ok && !strings.HasPrefix(d.Name, "ggml_mul_mv_"+format+"_") {
		return line
	}
	return family
}

// tests returns all tests, and their names in order.
func (o Options) tests() ([]string, map[string]func(*T)) {
	tests := map[string]func(*T){}
	if o.Source == "" {
		tests = semantics()
	}
	if !o.BorrowedKernels {
		maps.Copy(tests, kernelTests(o))
	}
	return slices.Sorted(maps.Keys(tests)), tests
}

// Run runs all tests on the device that open returns. A device that is an
// [io.Closer] is closed at the end.
func Run(t *testing.T, open func() backend.Device, o Options) {
	dev := open()
	defer closeDevice(t, dev)
	var other backend.Device
	if o.Other != nil {
		other = o.Other()
		defer closeDevice(t, other)
	}
	names, tests := o.tests()
	for _, list := range []map[string]string{o.Unsupported, o.ExpectedFailure} {
		for pattern, reason := range list {
			if !slices.ContainsFunc(names, func(n string) bool { return matches(pattern, n) }) {
				t.Errorf("there is no test %q, listed because %s", pattern, reason)
			}
			if reason == "" {
				t.Errorf("%q is listed without a reason", pattern)
			}
		}
	}
	for _, name := range names {
		if reason, ok := listed(o.Unsupported, name); ok {
			t.Logf("%s is not supported by %s: %s", name, dev.Name(), reason)
			continue
		}
		t.Run(name, func(real *testing.T) {
			reason, expected := listed(o.ExpectedFailure, name)
			if !expected {
				x := &T{TB: real, Device: dev, other: other}
				defer x.cleanup()
				tests[name](x)
				return
			}
			failure := recorded(dev, other, name, tests[name])
			if failure == "" {
				real.Fatalf("passes, and is listed as an expected failure (%s): take it off the list", reason)
			}
			real.Logf("fails as expected (%s): %s", reason, failure)
		})
	}
}

func closeDevice(t testing.TB, dev backend.Device) {
	if c, ok := dev.(io.Closer); ok {
		if err := c.Close(); err != nil {
			t.Errorf("close the device: %v", err)
		}
	}
}

func listed(list map[string]string, name string) (reason string, ok bool) {
	for pattern, reason := range list {
		if matches(pattern, name) {
			return reason, true
		}
	}
	return "", false
}

func matches(pattern, name string) bool {
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}

// TB has the methods of [testing.TB] that a test needs.
type TB interface {
	Name() string
	Helper()
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	FailNow()
}

// T is a test on a device.
type T struct {
	TB
	Device backend.Device
	other  backend.Device // see Options.Other
	queue  backend.Queue  // see workQueue
	after  []func()
}

// Cleanup calls f after the test.
func (t *T) Cleanup(f func()) { t.after = append(t.after, f) }

func (t *T) cleanup() {
	for _, f := range t.after {
		defer f() // in reverse order, each of them also if one ends the test
	}
}

// recorder is a TB that collects errors.
type recorder struct {
	name   string
	errors []string
}

func (r *recorder) Name() string                    { return r.name }
func (r *recorder) Helper()                         {}
func (r *recorder) Logf(format string, args ...any) {}
func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}
func (r *recorder) FailNow() {
	r.errors = append(r.errors, "stopped")
	runtime.Goexit()
}

// recorded runs a test that is allowed to fail and returns its errors, "" if it passed.
func recorded(dev, other backend.Device, name string, f func(*T)) string {
	return strings.Join(record(dev, other, name, f), "; ")
}

// record runs a test and returns its errors.
func record(dev, other backend.Device, name string, f func(*T)) []string {
	r := &recorder{name: name}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				r.errors = append(r.errors, fmt.Sprintf("panic: %v", p))
			}
		}()
		x := &T{TB: r, Device: dev, other: other}
		defer x.cleanup()
		f(x)
	}()
	<-done
	return r.errors
}
