package judge

import (
	"math/rand/v2"
	"slices"

	"github.com/mlxc/mlxc/ir"
)

// Mutation is one way to change a graph. Apply changes a clone of g at random, and
// reports whether it found a place to change. The clone passes [ir.Graph.Check].
type Mutation struct {
	Name  string
	Apply func(rng *rand.Rand, g *ir.Graph) (*ir.Graph, bool)
	// Honest: the change is made as an optimizer would make it, to keep the meaning.
	Honest bool
	// Fuses: the change replaces commands by one whose term computes the same. It is
	// judged with [Options.Terms].
	Fuses bool
	// Inert: the change may affect an argument that has no effect together with the
	// others. If the CPU has the kernels, such a change only counts as harmful if the
	// CPU computes other bits.
	Inert bool
}

// Mutations are all ways to change a graph, in a fixed order.
var Mutations = []Mutation{
	// Changes of the order.
	mutation("barrier_dropped", drop(is[*ir.Barrier])),
	mutation("barrier_added", addBarrier),
	mutation("barrier_moved", moveBarrier),
	mutation("commands_swapped", swapCommands),
	mutation("command_moved", moveCommand),
	mutation("epoch_shuffled", shuffleEpoch),
	mutation("commit_weakened", weakenCommit),
	mutation("commit_strengthened", strengthenCommit),
	mutation("commit_dropped", drop(is[*ir.Commit])),
	mutation("commit_added", addCommit),
	mutation("barrier_becomes_commit", commitBarrier),
	mutation("wraparound_dropped", dropWraparound),
	mutation("serial_flipped", flipSerial),
	mutation("edge_dropped", dropEdge(false)),
	mutation("previous_edge_dropped", dropEdge(true)),
	mutation("edge_redirected", redirectEdge),
	mutation("edge_added", addEdge),
	mutation("join_dropped", dropJoin),
	mutation("host_no_longer_waits", forgetHost),
	mutation("edges_drawn", drawEdges),
	// Changes of what is touched.
	mutation("view_moved", moveView),
	mutation("view_shortened", resizeView(-1)),
	mutation("view_grown", resizeView(1)),
	mutation("source_changed", changeSource),
	mutation("unlisted_moved", moveUnlisted),
	mutation("view_of_another", borrowView),
	mutation("copy_forwarded", forwardCopy),
	mutation("carry_changed", changeCarry),
	mutation("bindings_exchanged", exchangeBindings),
	mutation("scratch_renamed_fresh", renameFresh),
	mutation("scratch_renamed_used", renameUsed),
	mutation("scratch_renamed_live", renameLive),
	mutation("scratch_moved", moveScratch),
	mutation("alias_moved", moveAlias),
	mutation("alias_resolved", resolveAlias),
	// Changes of what is said about that.
	mutation("effect_narrowed", narrowEffect),
	mutation("effect_removed", removeEffect),
	mutation("effect_widened", widenEffect),
	mutation("effects_forgotten", forgetEffects),
	mutation("must_flipped", flipMust),
	mutation("provenance_forged", forgeFrom),
	// Changes of what is computed.
	mutation("grid_changed", changeGrid),
	mutation("threadgroup_changed", changeThreadgroup),
	mutation("threadgroup_memory_changed", changeThreadgroupMemory),
	inert(mutation("function_constant_changed", changeConstant)),
	mutation("inline_byte_changed", changeInlineByte),
	mutation("scalar_changed", changeScalar),
	mutation("arguments_into_memory", argumentsIntoMemory),
	mutation("argument_memory_changed", changeArgumentMemory),
	mutation("argument_moved", moveArgument),
	mutation("argument_memory_shifted", shiftArguments),
	mutation("argument_made_inline", inlineArgument),
	mutation("argument_of_another", borrowArgument),
	mutation("param_replaced", replaceParam),
	mutation("fill_value_changed", changeFill),
	mutation("kernel_changed", changeKernel),
	mutation("library_digest_changed", changeDigest),
	mutation("command_dropped", drop(isCommand)),
	mutation("command_duplicated", duplicateCommand),
	// Faulty fusions.
	fused("fused_without_condition", unfit, nil),
	fused("fused_wrong_scale", nil, wrongView(1)),
	fused("fused_wrong_input", nil, wrongView(0)),
	fused("fused_wrong_result", nil, wrongView(2)),
	fused("fused_wrong_argument", nil, wrongArgument),
	fused("fused_wrong_extent", nil, wrongExtent),
	// Changes of the interface.
	mutation("memory_kind_changed", changeKind),
	mutation("memory_size_changed", changeSize),
	mutation("contents_changed", changeContents),
	mutation("memory_type_changed", changeType),
	mutation("memory_storage_changed", changeStorage),
	mutation("param_bound_changed", changeBound),
	mutation("constraint_changed", changeConstraint),
	// Changes of names and list positions, which mean nothing.
	mutation("labels_changed", changeLabels),
	mutation("groups_added", addGroup),
	mutation("memories_reordered", reorderMemories),
	mutation("commands_renumbered", renumber),
	mutation("scratch_name_changed", renameScratchMemory),
	mutation("kernel_copied", copyKernel),
	// What an honest optimizer does.
	honest("honest_barriers", honestBarriers),
	honest("honest_edges", honestEdges),
	honest("honest_order", honestOrder),
	honest("honest_rename", honestRename),
	honest("honest_dead_dropped", honestDead),
	honest("honest_all", honestAll),
	honestly(fused("honest_fusion", fits, nil)),
}

func inert(m Mutation) Mutation { m.Inert = true; return m }

func honestly(m Mutation) Mutation { m.Honest = true; return m }

// tries is how often a mutation looks for a place where the result is well-formed.
const tries = 12

func mutation(name string, edit func(*rand.Rand, *ir.Graph) bool) Mutation {
	return Mutation{Name: name, Apply: func(rng *rand.Rand, g *ir.Graph) (*ir.Graph, bool) {
		for range tries {
			out := g.Clone()
			out.Source = nil // its line numbers would be wrong now
			if edit(rng, out) && out.Check() == nil {
				return out, true
			}
		}
		return nil, false
	}}
}

// indices returns the positions of the nodes that `which` accepts.
func indices(g *ir.Graph, which func(ir.Node) bool) (out []int) {
	for i, n := range g.Nodes {
		if which(n) {
			out = append(out, i)
		}
	}
	return out
}

// isCommand reports whether n is a command that does something; joins count as marks
// here.
func isCommand(n ir.Node) bool {
	_, ok := n.(ir.Command)
	return ok && !is[*ir.Join](n)
}

func is[T ir.Node](n ir.Node) bool { _, ok := n.(T); return ok }

func pick[T any](rng *rand.Rand, xs []T) (x T, ok bool) {
	if len(xs) == 0 {
		return x, false
	}
	return xs[rng.IntN(len(xs))], true
}

// pickNode draws a node of type T that `which` accepts (nil: any).
func pickNode[T ir.Node](rng *rand.Rand, g *ir.Graph, which func(T) bool) (t T, ok bool) {
	i, ok := pick(rng, indices(g, func(n ir.Node) bool {
		t, ok := n.(T)
		return ok && (which == nil || which(t))
	}))
	if !ok {
		return t, false
	}
	return g.Nodes[i].(T), true
}

func insert(g *ir.Graph, at int, n ir.Node) { g.Nodes = slices.Insert(g.Nodes, at, n) }

// unitOf returns the greatest length that divides every boundary in the graph, for
// changes that should not need a finer one.
func unitOf(g *ir.Graph) int64 {
	unit := int64(0)
	add := func(as ...ir.Affine) {
		for _, a := range as {
			unit = gcd(unit, a.Const)
			for _, t := range a.Terms() {
				unit = gcd(unit, t.Coeff)
			}
		}
	}
	for _, n := range g.Nodes {
		for _, v := range views(n) {
			if g.Memories[v.Mem].Kind != ir.Weight {
				add(v.Off, v.Len)
			}
		}
		c, ok := n.(ir.Command)
		if !ok {
			continue
		}
		if e := c.Touches(); e != nil {
			for _, r := range regions(e) {
				if g.Memories[r.Mem].Kind == ir.Weight {
					continue
				}
				add(r.Off, r.Run)
				for _, d := range r.Dims {
					unit = gcd(unit, d.Stride)
				}
			}
		}
	}
	return max(unit, 1)
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return max(a, -a)
}

// views returns pointers to every view of a command.
func views(n ir.Node) (out []*ir.View) {
	if c, ok := n.(ir.Command); ok {
		c.EachView(func(v *ir.View) { out = append(out, v) })
	}
	return out
}

// eachPlace calls f with the memory and the offset of every view of a command and of
// every region of its effects.
func eachPlace(n ir.Node, f func(m *ir.MemID, off *ir.Affine)) {
	for _, v := range views(n) {
		f(&v.Mem, &v.Off)
	}
	if d, ok := n.(*ir.Dispatch); ok {
		for _, r := range regions(d.Effects) {
			f(&r.Mem, &r.Off)
		}
	}
}

// regions returns pointers to every region of effects.
func regions(e *ir.Effects) (out []*ir.Region) {
	if e == nil {
		return nil
	}
	for i := range e.Reads {
		out = append(out, &e.Reads[i])
	}
	for i := range e.Writes {
		out = append(out, &e.Writes[i].Region)
	}
	return out
}

// follow applies change to those regions of a dispatch's effects that lie in view v, as
// far as constant offsets tell.
func follow(n ir.Node, v ir.View, change func(*ir.Region)) {
	d, ok := n.(*ir.Dispatch)
	if !ok {
		return
	}
	for _, r := range regions(d.Effects) {
		delta := r.Off.Sub(v.Off)
		if r.Mem == v.Mem && delta.IsConst() && delta.Const >= 0 && (!v.Len.IsConst() || delta.Const < v.Len.Const) {
			change(r)
		}
	}
}
