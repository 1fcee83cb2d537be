package passes

import (
	"context"
	"fmt"

	"github.com/mlxc/mlxc/internal/analysis/cost"
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
	// listed: the pass keeps the order of the list and asks nothing of barriers, so
	// that a serial graph stays one. edged: it keeps the commands, too, so that a graph
	// ordered by edges stays one.
	listed, edged bool

	run func(ctx context.Context, g *ir.Graph, o Values, r *Report) error
}

// New returns a pass that is not in the table, for a pipeline that a program
// puts together itself. No order constraint names it.
func New(name, summary string, run func(ctx context.Context, g *ir.Graph, o Values, r *Report) error) Pass {
	return Pass{Name: name, Summary: summary, run: run}
}

// Option is a setting of a pass.
type Option struct {
	Name    string
	Default string
	Help    string
}

// table lists every pass in the order of the default pipeline.
var table = []Pass{
	{Name: "annotate", Summary: "give each dispatch the effects that its kernel declares", Default: true, listed: true, edged: true, run: annotate},
	{Name: "fuse", Summary: "replace groups of dispatches by one that computes the same terms", Default: true, run: fuse,
		Options: []Option{{"max-threads", "1024", "threads of a threadgroup that a pipeline of the device has at most"},
			{"generate", "true", "true: elementwise commands become kernels of their own where the library has none"},
			{"allow", "none", "rewrites that may change bits and may be used, joined by + (docs/terms.md)"}}},
	{Name: "dce", Summary: "drop commands whose results nobody sees, and scratch that nothing binds", Default: true, listed: true, run: dce},
	{Name: "rename", Summary: "break false dependences: scratch values get bytes of their own", Default: true, run: rename,
		Options: []Option{{"budget", renameBudget, "scratch to add at most: 0, 4096, 64MiB, 1x (as much again), unlimited"}}},
	{Name: "reorder", Summary: "move commands up into earlier epochs, as ggml and mlx-native do, made sound", run: reorder, Options: []Option{
		{Name: "lookahead", Default: "64", Help: "commands that are looked at behind the one that ends an epoch"},
	}},
	{Name: "schedule", Summary: "as few epochs as conflicts allow, then the least modelled time", Default: true, run: schedule, Options: []Option{
		{Name: "chip", Default: cost.DefaultChip, Help: "the chip whose figures are modelled: " + cost.Chips()[0] + " to " + cost.Chips()[len(cost.Chips())-1]},
		{Name: "profile", Default: "none", Help: "a file of measured figures, which replace the chip's"},
	}},
	{Name: "barriers", Summary: "recompute barriers: the fewest for the order of the graph", Default: true, run: barriers},
	{Name: "plan", Summary: "assign scratch by liveness under the graph's barriers and commits", Default: true, run: plan},
	{Name: "split", Summary: "end command buffers early, so that encoding and execution overlap and none runs too long", Options: []Option{
		{"first", "max(64, 10 %)", "commands of the first command buffer"},
		{"n", "2", "command buffers, 1 to 64; more where their time asks for it"},
		{"max-ms", "50", "modelled GPU time of a command buffer, in milliseconds"},
		{Name: "chip", Default: splitChip, Help: "the chip whose figures are modelled; the slowest, whose bound holds on the others"},
		{Name: "profile", Default: "none", Help: "a file of measured figures, which replace the chip's"},
	}, run: split},
	{Name: "constants", Summary: "move inline bytes and params into argument memory, so that a replay changes bytes and no command", Options: []Option{
		{"align", "32", "bytes between places, a power of two; 256 under some validation layers"},
	}, listed: true, edged: true, run: constants},
	{Name: "edges", Summary: "order commands by edges, for devices that take graphs of commands, and no longer by barriers", listed: true, run: edges},
}

// Constraint says that one pass runs before another where a pipeline has both.
type Constraint struct {
	Before string `json:"before"`
	After  string `json:"after"`
	Reason string `json:"reason"`
}

// Constraints returns every constraint on the order of passes.
func Constraints() []Constraint { return append([]Constraint(nil), order...) }

// order holds pairs "a runs before b". A pipeline that breaks one is refused.
var order = []Constraint{
	{"annotate", "fuse", "a dispatch of unknown effects is fused with nothing"},
	{"fuse", "barriers", "a fused dispatch needs fewer of them"},
	{"annotate", "reorder", "what may move follows from effects: nothing crosses a dispatch without them"},
	{"annotate", "schedule", "what may move follows from effects: nothing crosses a dispatch without them"},
	{"reorder", "barriers", "barriers are the fewest for one order of the commands"},
	{"schedule", "barriers", "barriers are the fewest for one order of the commands"},
	{"annotate", "dce", "a command of unknown effects is never dead"},
	{"annotate", "rename", "values are found by effects"},
	{"rename", "reorder", "fewer dependences leave more to move"},
	{"rename", "schedule", "fewer dependences leave more to move"},
	{"dce", "rename", "dead values would take bytes"},
	{"rename", "barriers", "fewer dependences need fewer barriers"},
	{"annotate", "barriers", "barriers follow from effects: without them every dispatch conflicts with every other"},
	{"barriers", "plan", "values share bytes where the order of the graph allows it: it must be final"},
	{"annotate", "edges", "edges follow from effects: without them every dispatch waits for every other"},
	{"schedule", "edges", "edges lead forward in the list: it must be final"},
	{"reorder", "edges", "edges lead forward in the list: it must be final"},
	{"plan", "edges", "edges follow from where values lie"},
	{"split", "edges", "a cut gives commits an order, and a graph of edges has no other"},
	{"barriers", "split", "a cut takes the place of a barrier, and every command buffer has its own"},
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
		a, ok1 := at[o.Before]
		b, ok2 := at[o.After]
		if !ok1 || !ok2 || a >= b {
			panic(fmt.Sprintf("passes: the table breaks %q before %q", o.Before, o.After))
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
