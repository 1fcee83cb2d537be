package record

import (
	"fmt"
	"slices"

	"github.com/mlxc/mlxc/internal/analysis/bytestate"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
)

// Reads states which bytes the dispatch reads: those of the tensors' elements. Together,
// Reads, Writes and Updates must state everything that the dispatch touches, because the
// list is taken to be complete. They are meant for kernels without a declaration. If
// nothing is stated for such a kernel, the dispatch may touch anything, and barriers stand
// on both sides of it. The list is checked as far as possible: it must have some bytes of
// every memory that is bound to an argument which the kernel's table calls read or written.
// If the kernel has a declaration, the list must cover what that says.
func (d *Dispatch) Reads(ts ...Tensor) *Dispatch {
	d.given = true
	for i := range ts {
		if _, ok := d.use(0, &ts[i]); ok {
			d.reads = append(d.reads, ts[i].region())
		}
	}
	return d
}

// Writes states that every byte of the tensors' elements is written, whatever the inputs
// are. See [Dispatch.Reads].
func (d *Dispatch) Writes(ts ...Tensor) *Dispatch { return d.write(ts, true) }

// Updates states that bytes of the tensors' elements may be written, and that their old
// values may matter: some bytes may keep them, or the kernel may read them first. See
// [Dispatch.Reads].
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

// effects returns what the dispatch touches, nil if that is not known. For a kernel without
// a declaration it also stores the effects in n.
func (d *Dispatch) effects(n *ir.Dispatch) (*ir.Effects, error) {
	e := d.e
	e.ready()
	k := &e.g.Kernels[d.kernel]
	if msl.Declared(k) {
		// If the declaration does not allow this dispatch, the caller has made a mistake.
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

// leavesOut returns an error if a binding is for a slot that the kernel's table does not
// have, or if the table says that a binding is read or written and the caller's list has
// nothing of its memory.
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
		what := "written, but Writes and Updates leave it out"
		if a.Access == ir.ReadArg {
			what = "read, but Reads leaves it out"
			for j := 0; j < len(d.reads) && !found; j++ {
				found = sameRoot(g, d.reads[j].Mem, b.View.Mem)
			}
		}
		if !found {
			return fmt.Errorf("@%s: its table says that %s %s is %s", k.Name, a.Name, g.FormatView(b.View), what)
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

// covers returns an error if the caller's list leaves out something that the declaration of
// the kernel has.
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

// Annotate states afterwards what dispatch id touches, as [Dispatch.Reads] and
// [Dispatch.Writes] do. The kernel must have no declaration, nothing may have been stated
// before, and the tensors must not have been given back since. This helps passes; the
// barriers of the recording stay those of a dispatch that may touch anything.
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
			e.fail("Annotate: a dispatch was begun and not ended (Threads, Threadgroups)")
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
		e.fail("Annotate: dispatch %s is not kept, because nothing is captured: use the setting Capture", id)
	}
}
