package passes

import (
	"fmt"

	"github.com/mlxc/mlxc/ir"
)

// Pass is one rewrite.
type Pass struct {
	Name    string
	Summary string // one line, for `mlxc passes`
	// Options are the names that `name{option=value}` may set, with their help.
	Options []Option
	// Default: the pass is part of the pipeline that runs when nobody asks for
	// another.
	Default bool
	run     func(g *ir.Graph, o Values, r *Report) error
}

// Option is a setting of a pass.
type Option struct {
	Name    string
	Default string
	Help    string
}

// table lists every pass in the order of the default pipeline.
var table = []Pass{
	{Name: "annotate", Summary: "give each dispatch the effects that its kernel declares", Default: true, run: annotate},
	{Name: "fuse", Summary: "replace groups of dispatches by one that computes the same terms", run: fuse,
		Options: []Option{{"max-threads", "1024", "threads of a threadgroup that a pipeline of the device has at most"}}},
	{Name: "barriers", Summary: "recompute barriers: the fewest for the order of the graph", Default: true, run: barriers},
}

// order holds pairs "a runs before b". A pipeline that breaks one is refused.
var order = []struct{ before, after, reason string }{
	{"annotate", "fuse", "a dispatch of unknown effects is fused with nothing"},
	{"fuse", "barriers", "a fused dispatch needs fewer of them"},
	{"annotate", "barriers", "barriers follow from effects: without them every dispatch conflicts with every other"},
}

func init() {
	at := map[string]int{}
	for i, p := range table {
		if _, ok := at[p.Name]; ok {
			panic("passes: two passes are called " + p.Name)
		}
		at[p.Name] = i
	}
	for _, o := range order {
		a, ok1 := at[o.before]
		b, ok2 := at[o.after]
		if !ok1 || !ok2 || a >= b {
			panic(fmt.Sprintf("passes: the table breaks %q before %q", o.before, o.after))
		}
	}
}

// All returns the table.
func All() []Pass { return append([]Pass(nil), table...) }

func lookup(name string) (Pass, bool) {
	for _, p := range table {
		if p.Name == name {
			return p, true
		}
	}
	return Pass{}, false
}
