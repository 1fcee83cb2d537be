package record

import (
	"fmt"
	"slices"

	"github.com/mlxc/mlxc/internal/analysis/bytestate"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
)

// Reads, Writes and Updates say what a kernel without declaration touches:
// everything that it does, for the list is taken to be complete. A dispatch of
// which nothing is said, of a kernel without declaration, may touch anything:
// barriers stand on both sides of it. What is said must include something of every
// memory that the kernel's table says it reads or writes, and of a declared kernel
// what its declaration says.
func (d *Dispatch) Reads(ts ...Tensor) *Dispatch {
	d.given = true
	for i := range ts {
		if _, ok := d.use(0, &ts[i]); ok {
			d.reads = append(d.reads, ts[i].region())
		}
	}
	return d
}

// Writes says that every byte of the tensors' elements is written, whatever the
// inputs. See [Dispatch.Reads].
func (d *Dispatch) Writes(ts ...Tensor) *Dispatch { return d.write(ts, true) }

// Updates says that bytes of the tensors may be written, and that old ones may
// matter. See [Dispatch.Reads].
func (d *Dispatch) Updates(ts ...Tensor) *Dispatch { return d.write(ts, false) }

func (d *Dispatch) write(ts []Tensor, must bool) *Dispatch {
	d.given = true
	for i := range ts {
		if _, ok := d.use(0, &ts[i]); !ok {
			continue
		}
		if kind := d.e.g.Memories[ts[i].Mem].Kind; kind.ReadOnly() {
			d.fail("writes %s, whose kind is %s", d.e.tensorName(ts[i]), kind)
			continue
		}
		d.writes = append(d.writes, ir.Write{Region: ts[i].region(), Must: must})
	}
	return d
}

// effects returns what the dispatch touches; it sets those of n where its
// kernel has no declaration to say so.
func (d *Dispatch) effects(n *ir.Dispatch) (*ir.Effects, error) {
	e := d.e
	e.ready()
	k := &e.g.Kernels[d.kernel]
	if msl.Declared(k) {
		// A dispatch that the declaration does not describe is a mistake of the
		// caller: say it here, where the shapes are at hand.
		declared, err := e.cache.DescribeTo(&e.touched, n)
		if err != nil || !d.given {
			return declared, err
		}
		return declared, d.covers(declared)
	}
	if err := d.leavesOut(k, n); err != nil || !d.given {
		return nil, err
	}
	fx := e.effects.One()
	*fx = ir.Effects{Complete: true, Reads: e.regions.Clone(d.reads), Writes: e.writes.Clone(d.writes)}
	n.Effects = fx
	return fx, nil
}

// leavesOut reports a binding that the kernel's table does not have, or says is read
// or written while nothing given touches it: a list that is taken to be complete
// would hide it.
func (d *Dispatch) leavesOut(k *ir.Kernel, n *ir.Dispatch) error {
	g := d.e.g
	for i := range n.Bindings {
		b := &n.Bindings[i]
		a, ok := k.Arg(b.Slot)
		if !ok {
			return fmt.Errorf("@%s has no argument at slot %d", k.Name, b.Slot)
		}
		if b.Kind != ir.BindView || a.Kind != ir.DeviceArg || !d.given {
			continue
		}
		found := false
		for j := 0; j < len(d.writes) && !found; j++ {
			found = sameRoot(g, d.writes[j].Mem, b.View.Mem)
		}
		what := "written, and Writes and Updates leave it out"
		if a.Access == ir.ReadArg {
			what = "read, and Reads leaves it out"
			for j := 0; j < len(d.reads) && !found; j++ {
				found = sameRoot(g, d.reads[j].Mem, b.View.Mem)
			}
		}
		if !found {
			return fmt.Errorf("@%s: by its table %s %s is %s", k.Name, a.Name, g.FormatView(b.View), what)
		}
	}
	return nil
}

func sameRoot(g *ir.Graph, x, y ir.MemID) bool {
	if x != y {
		x, _ = g.Root(x)
		y, _ = g.Root(y)
	}
	return x == y
}

// covers reports what the caller's effects leave out of the declared ones.
func (d *Dispatch) covers(declared *ir.Effects) error {
	g := d.e.g
	for _, r := range declared.Reads {
		if !slices.ContainsFunc(d.reads, func(have ir.Region) bool { return bytestate.Covers(g, have, r) }) {
			return fmt.Errorf("@%s reads %s, which Reads leaves out", g.Kernels[d.kernel].Name, g.FormatRegion(r))
		}
	}
	for _, w := range declared.Writes {
		if !slices.ContainsFunc(d.writes, func(have ir.Write) bool { return bytestate.Covers(g, have.Region, w.Region) }) {
			return fmt.Errorf("@%s writes %s, which Writes leaves out", g.Kernels[d.kernel].Name, g.FormatRegion(w.Region))
		}
	}
	return nil
}

// Annotate says what a dispatch touches that was encoded without saying so, of a
// kernel without declaration, as [Dispatch.Reads] and [Dispatch.Writes] do, of
// tensors that were not given back since. It serves the passes; barriers were placed as for
// a dispatch that may touch anything.
func (e *Encoder) Annotate(id ir.ID, reads, writes []Tensor) {
	if e.err != nil {
		return
	}
	for i := len(e.g.Nodes) - 1; i >= 0; i-- {
		n, ok := e.g.Nodes[i].(*ir.Dispatch)
		if !ok || n.ID != id {
			continue
		}
		switch {
		case n.Effects != nil:
			e.fail("Annotate: dispatch %s has effects already", id)
		case msl.Declared(&e.g.Kernels[n.Kernel]):
			e.fail("Annotate: dispatch %s: the declaration of @%s says what it touches", id, e.g.Kernels[n.Kernel].Name)
		case e.building.open:
			e.fail("Annotate: a dispatch was begun and not ended")
		default:
			d := e.Dispatch(n.Kernel)
			d.Reads(reads...).Writes(writes...)
			d.open = false
			if err := d.leavesOut(&e.g.Kernels[n.Kernel], n); err != nil {
				e.fail("Annotate: %w", err)
				return
			}
			n.Effects = &ir.Effects{Complete: true, Reads: slices.Clone(d.reads), Writes: slices.Clone(d.writes)}
		}
		return
	}
	if e.records() {
		e.fail("Annotate: this recording has no dispatch %s", id)
	} else {
		e.fail("Annotate: dispatch %s is no longer here: nothing is captured", id)
	}
}
