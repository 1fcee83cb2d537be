package metal

import (
	"errors"
	"fmt"

	"github.com/mlxc/mlxc/internal/environ"
)

// The environment variables that override options. docs/environment.md says what each does.
const (
	deviceVariable     = "MLXC_METAL_DEVICE"
	libraryVariable    = "MLXC_METAL_LIBRARY"
	ownVariable        = "MLXC_METAL_PRECOMPILED"
	cacheVariable      = "MLXC_METAL_CACHE"
	privateVariable    = "MLXC_METAL_PRIVATE"
	planVariable       = "MLXC_METAL_PLAN"
	encodersVariable   = "MLXC_METAL_ENCODERS"
	residencyVariable  = "MLXC_METAL_RESIDENCY"
	unretainedVariable = "MLXC_METAL_UNRETAINED"
	groupsVariable     = "MLXC_METAL_GROUPS"
	profileVariable    = "MLXC_METAL_PROFILE"
	captureVariable    = "MLXC_METAL_CAPTURE"
)

// environment overrides options with those environment variables that are set. Values that are not valid
// are returned as an error.
func (o *Options) environment() error {
	text := func(name string, to *string) {
		if v, set := environ.Text(name); set {
			*to = v
		}
	}
	text(deviceVariable, &o.Device)
	text(libraryVariable, &o.Library)
	text(ownVariable, &o.Precompiled)
	text(cacheVariable, &o.Cache)
	text(captureVariable, &o.Capture)
	var errs []error
	flag := func(name string, to *bool) { errs = append(errs, given(to)(environ.Switch(name))) }
	flag(unretainedVariable, &o.Unretained)
	flag(groupsVariable, &o.Groups)
	flag(profileVariable, &o.Profile)
	flag(privateVariable, &o.Private)
	way := int(o.Plan)
	errs = append(errs,
		given(&way)(environ.Choice(planVariable, plans[:]...)),
		given(&o.Encoders)(environ.Int(encodersVariable, 1, mostEncoders)),
		given(&o.Debug)(environ.Debug()),
		o.residency())
	o.Plan = Plan(way)
	return errors.Join(errs...)
}

// given returns a function that stores a variable's value in *to if it is set and valid, and returns its error.
func given[T any](to *T) func(v T, set bool, err error) error {
	return func(v T, set bool, err error) error {
		if set && err == nil {
			*to = v
		}
		return err
	}
}

// residency reads a variable that is either a switch, for NoResidency, or a duration, for Keep.
func (o *Options) residency() error {
	v, set := environ.Text(residencyVariable)
	if !set {
		return nil
	}
	if on, set, err := environ.Switch(residencyVariable); err == nil && set {
		o.NoResidency = !on
		return nil
	}
	keep, _, err := environ.Duration(residencyVariable)
	if err != nil {
		return fmt.Errorf("the environment has %s=%q: it is on, off, or how long memory is kept, as 90s or 3m", residencyVariable, v)
	}
	o.NoResidency, o.Keep = false, keep
	return nil
}

// check returns an error if an option is out of range. It is called after environment.
func (o *Options) check() error {
	switch {
	case int(o.Plan) >= len(plans):
		return fmt.Errorf("there is no plan %d", o.Plan)
	case o.Encoders < 0 || o.Encoders > mostEncoders:
		return fmt.Errorf("%d command buffers side by side: there may be 1 to %d, and more than 2 rarely pay", o.Encoders, mostEncoders)
	case o.Keep < 0:
		return fmt.Errorf("buffers are kept for %v: less than no time", o.Keep)
	case o.Debug < 0 || o.Debug > environ.MaxDebug:
		return fmt.Errorf("debug level %d: there are 0 to %d", o.Debug, environ.MaxDebug)
	}
	return nil
}
