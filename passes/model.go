package passes

import "github.com/mlxc/mlxc/internal/analysis/cost"

// model returns the cost model that the options chip and profile name.
func (o Values) model() (cost.Model, error) {
	if p := o["profile"]; p != "" && p != "none" {
		return cost.LoadProfile(p)
	}
	return cost.Chip(o["chip"])
}
