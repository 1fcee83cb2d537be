package mlxc

import (
	"fmt"
	"io"
	"strings"

	"github.com/mlxc/mlxc/cmd/internal/cli"
	"github.com/mlxc/mlxc/cmd/internal/gpu"
	"github.com/mlxc/mlxc/cost"
	"github.com/mlxc/mlxc/optimize"
)

// modelFlags choose the cost model of times.
type modelFlags struct {
	Chip    string `placeholder:"NAME" help:"Chip whose times are modelled (default: this machine's GPU of NVIDIA's, as it was measured when a model ran on it or as its name says, else m3-max)."`
	Profile string `placeholder:"FILE" help:"Measured times (JSON) to use in place of a chip's."`
}

// model returns the chosen cost model. If neither flag is set, it is the model of this machine's GPU or, if that is
// not known, the zero value, which stands for the default chip.
func (f *modelFlags) model() (m cost.Model, err error) {
	if f.Profile != "" && f.Chip != "" {
		return m, cli.BadUsage("--chip and --profile: a profile names its chip itself")
	}
	if f.Profile != "" {
		return cost.LoadProfile(f.Profile)
	}
	if f.Chip == "" {
		if here, ok := gpu.Here(); ok {
			m, _ = here.Model()
		}
		return m, nil
	}
	if m, err = cost.Chip(f.Chip); err != nil {
		return m, cli.BadUsage("--chip: %v", err)
	}
	return m, nil
}

// printModel prints for which chip and which values of the params times are modelled.
func printModel(w io.Writer, graph string, m cost.Model, at []optimize.ParamValue) {
	var values []string
	for _, p := range at {
		values = append(values, fmt.Sprintf("$%s = %d", p.Name, p.Value))
	}
	with := ""
	if len(values) > 0 {
		with = " with " + strings.Join(values, ", ")
	}
	fmt.Fprintf(w, "graph %s: times modelled for %s%s\n", graph, m.OrDefault().Name, with)
}
