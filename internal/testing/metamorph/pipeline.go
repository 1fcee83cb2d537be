package metamorph

import (
	"slices"
	"strings"

	"github.com/mlxc/mlxc/passes"
)

// settings are the values that options are drawn from. An option that is not listed
// keeps its default.
var settings = map[string][]string{
	"lookahead": {"1", "2", "64"},
	"budget":    {"0", "64", "1x", "unlimited"},
	"n":         {"1", "2", "3", "5"},
	"first":     {"1", "3"},
	"max-ms":    {"0.004", "50"},
}

// rest are the passes after which barriers need not be placed anew: they leave the
// commands and their order alone, or keep to the barriers.
var rest = []string{"annotate", "dce", "constants", "barriers", "plan", "split", "edges"}

// Pipeline draws passes of the table and their options: any subset, in the order of the
// table or in another order that its constraints allow. Barriers are placed after the
// last pass that changes commands or their order.
func (r Recipe) Pipeline() (passes.Pipeline, error) {
	choice := func(i int) int {
		if len(r.Passes) == 0 {
			return 1
		}
		return int(r.Passes[i%len(r.Passes)])
	}
	type step struct{ name, text string }
	var steps []step
	for i, p := range passes.All() {
		c := choice(i)
		if c%4 == 0 {
			continue
		}
		var options []string
		for k, o := range p.Options() {
			if vs := settings[o.Name]; vs != nil && c>>(2+k)&1 == 1 {
				options = append(options, o.Name+"="+vs[(c>>4+k)%len(vs)])
			}
		}
		s := step{p.Name, p.Name}
		if len(options) > 0 {
			s.text += "{" + strings.Join(options, ",") + "}"
		}
		steps = append(steps, s)
	}
	build := func(steps []step) (passes.Pipeline, error) {
		at, last := -1, -1 // the positions of the barriers pass and of the last pass that makes it necessary
		for i, s := range steps {
			if s.name == "barriers" {
				at = i
			} else if !slices.Contains(rest, s.name) {
				last = i
			}
		}
		if last > at {
			if at >= 0 {
				steps = slices.Delete(slices.Clone(steps), at, at+1)
				last--
			}
			steps = slices.Insert(slices.Clone(steps), last+1, step{"barriers", "barriers"})
		}
		var texts []string
		for _, s := range steps {
			texts = append(texts, s.text)
		}
		if texts == nil {
			texts = []string{"none"}
		}
		return passes.ParsePipeline(strings.Join(texts, ","))
	}
	if c := choice(len(passes.All())); c%4 == 3 { // sometimes in another order
		other := slices.Clone(steps)
		for i := range other {
			k := (c>>2 + choice(i+1)) % (i + 1)
			other[i], other[k] = other[k], other[i]
		}
		if p, err := build(other); err == nil {
			return p, nil
		}
	}
	return build(steps)
}

// Text returns a pipeline as a user would write it.
func Text(p passes.Pipeline) string {
	var out []string
	for _, s := range p {
		out = append(out, s.String())
	}
	return strings.Join(out, ",")
}
