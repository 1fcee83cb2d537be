package judge

import (
	"slices"
	"strings"

	"github.com/mlxc/mlxc/passes"
)

// settings are the values that options of passes are drawn from. An option that is not
// listed keeps its default.
var settings = map[string][]string{
	"lookahead": {"1", "2", "64"},
	"budget":    {"0", "64", "1x", "unlimited"},
	"n":         {"1", "2", "3", "5"},
	"first":     {"1", "3"},
	"max-ms":    {"0.004", "50"},
}

// orderly are the passes after which barriers need not be placed anew: they leave the
// commands and their order alone, or keep to the barriers.
var orderly = []string{"annotate", "dce", "constants", "barriers", "plan", "split", "edges"}

// Pipeline draws passes of the table and their options: most of them, in the order of the
// table or in another order that its constraints allow. Barriers are placed after the
// last pass that changes commands or their order. A new pass is drawn as soon as it has a
// row in the table.
func Pipeline(c Choices) (passes.Pipeline, error) {
	var steps []string
	for _, p := range passes.All() {
		if c.IntN(4) == 0 {
			continue
		}
		var options []string
		for _, o := range p.Options() {
			if vs := settings[o.Name]; vs != nil && c.IntN(2) == 0 {
				options = append(options, o.Name+"="+vs[c.IntN(len(vs))])
			}
		}
		text := p.Name
		if len(options) > 0 {
			text += "{" + strings.Join(options, ",") + "}"
		}
		steps = append(steps, text)
	}
	if c.IntN(4) == 0 { // sometimes in another order
		other := slices.Clone(steps)
		for i := range other {
			k := c.IntN(i + 1)
			other[i], other[k] = other[k], other[i]
		}
		if p, err := withBarriers(other); err == nil {
			return p, nil
		}
	}
	return withBarriers(steps)
}

// withBarriers makes a pipeline of steps, in which barriers are placed late enough.
func withBarriers(steps []string) (passes.Pipeline, error) {
	at := slices.Index(steps, "barriers")
	last := len(steps) - 1
	for ; last >= 0; last-- {
		if name, _, _ := strings.Cut(steps[last], "{"); !slices.Contains(orderly, name) {
			break
		}
	}
	if last > at {
		if at >= 0 {
			steps = slices.Delete(slices.Clone(steps), at, at+1)
			last--
		}
		steps = slices.Insert(slices.Clone(steps), last+1, "barriers")
	}
	if len(steps) == 0 {
		steps = []string{"none"}
	}
	return passes.ParsePipeline(strings.Join(steps, ","))
}

// PipelineText returns a pipeline as a user would write it.
func PipelineText(p passes.Pipeline) string {
	var out []string
	for _, s := range p {
		out = append(out, s.String())
	}
	return strings.Join(out, ",")
}
