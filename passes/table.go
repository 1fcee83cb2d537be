package passes

import "slices"

// Table is a list of passes that a pipeline may name. The default pipeline runs its default passes
// in the order of the list. To add a pass of your own:
//
//	table := append(passes.All(), mine)
//	pipeline, err := table.Parse("annotate,mine,barriers")
type Table []Pass

// builtin lists every pass of this package.
var builtin = Table{annotatePass, fusePass, dcePass, renamePass, reorderPass, schedulePass, barriersPass, planPass, splitPass, constantsPass, edgesPass}

// All returns the table of this package.
func All() Table { return slices.Clone(builtin) }

func (t Table) lookup(name string) (Pass, bool) {
	i := slices.IndexFunc(t, func(p Pass) bool { return p.Name == name })
	if i < 0 {
		return Pass{}, false
	}
	return t[i], true
}

// Constraint says that one pass runs before another if a pipeline has both.
type Constraint struct {
	Before string `json:"before"`
	After  string `json:"after"`
	Reason string `json:"reason"`
}

// Constraints returns the constraints on the order of the passes of this package.
func Constraints() []Constraint { return slices.Clone(order) }

// order holds pairs "a runs before b". A pipeline that breaks one of them is refused.
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
