package mlxreplay

import (
	"fmt"
	"strings"

	"github.com/mlxc/mlxc/cmd/internal/cli"
	"github.com/mlxc/mlxc/cmd/internal/doctor"
	"github.com/mlxc/mlxc/cmd/internal/gpu"
	"github.com/mlxc/mlxc/cost"
)

// learn sets the launch costs of the NVIDIA GPU that the flags choose, unless the flags give measured ones. They come
// from a file that an earlier run kept or, once per GPU and driver, are measured now. Launch plans are chosen by
// these costs, and models that are recorded in memory are optimized for them.
func (f *deviceFlags) learn(env *cli.Env) {
	if f.Device != onCUDA && f.Device != onAuto || f.CUDAMeasured != "" || f.check() != nil {
		return
	}
	all, err := gpu.CUDA.List()
	if err != nil {
		return // opening the device will report the error
	}
	for _, d := range all {
		if f.GPU != "" && !strings.Contains(strings.ToLower(d.Name), strings.ToLower(f.GPU)) {
			continue
		}
		m := gpu.Named(d.Name)
		p, ok := m.Profile()
		if !ok {
			if p, err = f.measure(env, d.Name); err != nil {
				fmt.Fprintf(env.Stderr, "remark: %s was not measured: %v\n", d.Name, err)
				return
			}
			if err := m.Keep(p); err != nil {
				fmt.Fprintf(env.Stderr, "remark: what was measured of %s is not kept: %v\n", d.Name, err)
			}
		}
		f.known = &p
		return
	}
}

// measure measures the launch costs of a GPU, for each plan.
func (f *deviceFlags) measure(env *cli.Env, name string) (p cost.Model, err error) {
	d, end, err := gpu.CUDA.Open(env.Context, gpu.CUDAOptions{Name: f.GPU})
	if err != nil {
		return p, err
	}
	defer func() { _ = end() }() // the measurements are not affected
	o := doctor.Options{Program: cli.Version("mlxreplay"), Device: d, Quick: true, Plans: launched(env, f.GPU, "")}
	o.Begin = func(string) (func(float64), func()) {
		bar := cli.StartProgress(env.Stderr, "measuring "+name+", once")
		return bar.Set, bar.End
	}
	r, err := doctor.Times(env.Context, o)
	if err != nil {
		return p, err
	}
	return r.Profile(d.Info().Threads), nil
}

// model returns the cost model of the chosen device, as far as it is known before the device is opened.
func (f *deviceFlags) model() cost.Model {
	if f.known != nil {
		return *f.known
	}
	return cost.Model{}
}
