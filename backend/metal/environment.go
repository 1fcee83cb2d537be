package metal

import (
	"fmt"

	"github.com/mlxc/mlxc/internal/environ"
)

// The variables of the environment, which win over options. docs/environment.md says what each does.
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

// environment changes the options as the environment says, and returns an error of what it says that
// means nothing.
func (o *Options) environment() error {
	for name, to := range map[string]*string{deviceVariable: &o.Device, libraryVariable: &o.Library, ownVariable: &o.Precompiled, cacheVariable: &o.Cache, captureVariable: &o.Capture} {
		if v, set := environ.Text(name); set {
			*to = v
		}
	}
	var errs [7]error
	flag := func(name string, to *bool) error {
		on, set, err := environ.Switch(name)
		if set {
			*to = on
		}
		return err
	}
	errs[0] = flag(unretainedVariable, &o.Unretained)
	errs[1] = flag(groupsVariable, &o.Groups)
	errs[2] = flag(profileVariable, &o.Profile)
	if i, set, err := environ.Choice(planVariable, plans[:]...); err != nil {
		errs[3] = err
	} else if set {
		o.Plan = Plan(i)
	}
	if n, set, err := environ.Int(encodersVariable, 1, mostEncoders); err != nil {
		errs[4] = err
	} else if set {
		o.Encoders = n
	}
	if n, set, err := environ.Debug(); err != nil {
		errs[5] = err
	} else if set {
		o.Debug = n
	}
	errs[6] = flag(privateVariable, &o.Private)
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return o.residency()
}

// residency reads the variable that is either a switch or how long memory is kept.
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

// check returns an error of options that mean nothing. It is after environment.
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
