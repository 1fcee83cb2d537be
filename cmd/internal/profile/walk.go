package profile

import (
	"github.com/mlxc/mlxc/cost"
	"github.com/mlxc/mlxc/ir"
)

// epoch is the commands that may run together.
type epoch struct {
	commands []int32 // numbers of commands: the how manieth of the graph's list each is, joins left out
	after    after   // what separates it from the next
}

// after counts what stands between an epoch and the next, as [cost.Model.Graph] counts it.
type after struct{ barriers, buffers, events int }

// seconds is what it takes by a model.
func (a after) seconds(m *cost.Model) cost.Seconds {
	return m.Barrier*cost.Seconds(a.barriers) + m.CommandBuffer*cost.Seconds(a.buffers) + m.Event*cost.Seconds(a.events)
}

// epochsOf returns the epochs of g, of which none is empty.
func epochsOf(g *ir.Graph) (out []epoch) {
	var now []int32
	end := func(add after) {
		if len(now) > 0 {
			out, now = append(out, epoch{commands: now}), nil
		}
		if n := len(out); n > 0 { // what stands before the first command separates nothing
			x := &out[n-1].after
			x.barriers, x.buffers, x.events = x.barriers+add.barriers, x.buffers+add.buffers, x.events+add.events
		}
	}
	number := make([]int32, len(g.Nodes))
	n := int32(0)
	for i, x := range g.Nodes {
		number[i] = -1
		if _, join := x.(*ir.Join); join {
			continue
		}
		if _, ok := x.(ir.Command); ok {
			number[i] = n
			n++
		}
	}
	if g.Ordering == ir.ByEdges {
		levels := g.Levels()
		for i, level := range levels {
			for _, k := range level {
				if number[k] >= 0 {
					now = append(now, number[k])
				}
			}
			between := after{}
			if i+1 < len(levels) {
				between.barriers = 1
			}
			end(between)
		}
		for _, x := range g.Nodes {
			if _, ok := x.(*ir.Commit); ok {
				end(after{buffers: 1})
			}
		}
		return out
	}
	for i, x := range g.Nodes {
		switch x := x.(type) {
		case *ir.Barrier:
			if g.Ordering != ir.Serial {
				end(after{barriers: 1})
			}
		case *ir.Commit:
			a := after{buffers: 1}
			if x.Order != ir.OrderNone {
				a.events = 1
			}
			end(a)
		default:
			if number[i] >= 0 {
				now = append(now, number[i])
				if g.Ordering == ir.Serial {
					end(after{barriers: 1})
				}
			}
		}
	}
	end(after{})
	return out
}

// stretch is a time within a replay, in seconds from its beginning.
type stretch struct{ begin, end cost.Seconds }

// modelled is where commands and epochs stand in a replay by a model: each epoch begins when the one before has ended, and each
// of its commands with it.
type modelled struct {
	commands, epochs []stretch
	whole            cost.Seconds // [cost.Time.GPU]
}

// layOut places commands whose work is known.
func layOut(m *cost.Model, epochs []epoch, work []cost.Work) modelled {
	out := modelled{commands: make([]stretch, len(work)), epochs: make([]stretch, len(epochs))}
	for i, e := range epochs {
		var p cost.Epoch
		row := cost.Seconds(0)
		for _, c := range e.commands {
			p.Add(work[c])
			row += work[c].Alone
			out.commands[c] = stretch{out.whole, out.whole + work[c].Alone}
		}
		// By a chip's figures an epoch never takes longer than its commands in a row. By those of a profile it may: what
		// threadgroups repeat is in the time that a kernel was measured to take, and is added to the epoch's once more.
		out.epochs[i] = stretch{out.whole, out.whole + min(m.Of(p), row)}
		out.whole = out.epochs[i].end + e.after.seconds(m)
	}
	return out
}
