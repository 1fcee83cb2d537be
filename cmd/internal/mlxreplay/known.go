package mlxreplay

import (
	"fmt"
	"strings"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/cmd/internal/cli"
	"github.com/mlxc/mlxc/cmd/internal/doctor"
	"github.com/mlxc/mlxc/cmd/internal/gpu"
	"github.com/mlxc/mlxc/cost"
)

// learn sets the launch costs of the GPU that the flags choose, if its driver wants them ([backend.Driver].Learn),
// unless a profile is given. They come from a file that an earlier run kept or, once per GPU and driver, are measured
// now. Launch plans are chosen by these costs, and models that are recorded in memory are optimized for them.
func (f *deviceFlags) learn(env *cli.Env) {
	_ = f.each(func(d *backend.Driver, s backend.Settings) error { // opening the device will report the error
		if !d.Learn || s.Given("profile") || f.known != nil {
			return nil
		}
		all, err := d.List()
		if err != nil {
			return nil // as above
		}
		for _, x := range all {
			if !strings.Contains(strings.ToLower(x.Name), strings.ToLower(s.Text("gpu"))) {
				continue
			}
			m := gpu.Named(x.Name)
			p, ok := m.Profile()
			if !ok {
				if p, err = measureTimes(env, d, s.Text("gpu"), x.Name); err != nil {
					fmt.Fprintf(env.Stderr, "remark: %s was not measured: %v\n", x.Name, err)
					return nil
				}
				if err := m.Keep(p); err != nil {
					fmt.Fprintf(env.Stderr, "remark: what was measured of %s is not kept: %v\n", x.Name, err)
				}
			}
			f.known = &p
			return nil
		}
		return nil
	})
}

// measureTimes measures the launch costs of the GPU that the option gpu chooses, for each variant.
func measureTimes(env *cli.Env, d *backend.Driver, option, name string) (p cost.Model, err error) {
	var chosen []backend.Given
	if option != "" {
		chosen = []backend.Given{{Option: "gpu", Value: option}}
	}
	s, err := d.With(chosen...)
	if err != nil {
		return p, err
	}
	on, end, err := opened(env, d, s)
	if err != nil {
		return p, err
	}
	defer end()
	o := doctor.Options{Program: cli.Version("mlxreplay"), Device: on, Quick: true}
	o.Plans = variants(env, d, func(more []backend.Given) (backend.Settings, error) { return d.With(append(chosen, more...)...) })
	o.Begin = func(string) (func(float64), func()) {
		bar := cli.StartProgress(env.Stderr, "measuring "+name+", once")
		return bar.Set, bar.End
	}
	r, err := doctor.Times(env.Context, o)
	if err != nil {
		return p, err
	}
	return r.Profile(on.Info().Threads), nil
}

// variants returns the variants of a driver as plans for the doctor. The first is the default for most graphs without a
// profile.
func variants(env *cli.Env, d *backend.Driver, settings func(more []backend.Given) (backend.Settings, error)) (out []doctor.Plan) {
	for _, v := range d.Variants {
		out = append(out, doctor.Plan{Name: v.Name, Launched: v.Launched, Edges: v.Edges, Open: func(r *doctor.Report) (backend.Device, func(), error) {
			s, err := settings(v.Set)
			if err != nil {
				return nil, nil, err
			}
			if !v.Launched { // orders of encoders that the GPU was seen to keep
				s.Measured = &cost.Model{Device: r.Name, Litmus: r.Seen()}
			}
			return opened(env, d, s)
		}})
	}
	return out
}

// model returns the cost model of the chosen device, as far as it is known before the device is opened.
func (f *deviceFlags) model() cost.Model {
	if f.known != nil {
		return *f.known
	}
	return cost.Model{}
}
