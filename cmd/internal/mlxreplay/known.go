package mlxreplay

import (
	"fmt"
	"strings"

	"github.com/mlxc/mlxc/cmd/internal/cli"
	"github.com/mlxc/mlxc/cmd/internal/doctor"
	"github.com/mlxc/mlxc/cmd/internal/gpu"
	"github.com/mlxc/mlxc/cost"
)

// learn finds out what launches cost on the GPU of NVIDIA's that the flags choose, if they choose one and do not say what
// was measured of it: from what was kept of an earlier time, or by measuring it, once for a GPU and its driver. Plans
// are chosen by it, and models that are recorded in memory are optimized for it.
func (f *deviceFlags) learn(env *cli.Env) {
	if f.Device != onCUDA && f.Device != onAuto || f.CUDAMeasured != "" || f.check() != nil {
		return
	}
	all, err := gpu.CUDA.List()
	if err != nil {
		return // which opening the device will say
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

// measure measures what launches cost on a GPU by each plan.
func (f *deviceFlags) measure(env *cli.Env, name string) (p cost.Model, err error) {
	d, end, err := gpu.CUDA.Open(env.Context, gpu.CUDAOptions{Name: f.GPU})
	if err != nil {
		return p, err
	}
	defer func() { _ = end() }() // what was measured is there
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

// model is how the device that the flags choose is modelled, as far as that is known before it is opened.
func (f *deviceFlags) model() cost.Model {
	if f.known != nil {
		return *f.known
	}
	return cost.Model{}
}
