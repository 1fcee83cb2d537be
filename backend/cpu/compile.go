package cpu

import (
	"context"
	"errors"
	"fmt"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/cpu/internal/simd"
	"github.com/mlxc/mlxc/internal/interrupt"
	"github.com/mlxc/mlxc/ir"
)

// step is a command that has been checked, with what its execution needs.
type step struct {
	node      ir.Command
	kernel    *Kernel
	constants []ir.FunctionConstant
	scalars   int // offset of the step's scalars
	// bases are the memories of the command's views, where they are known already. A dispatch has one for
	// each binding, followed by those that an indirect dispatch reads from; a copy has the destination
	// first. If bases is nil, the memories come from the machine's table.
	bases [][]byte
}

// kernels looks up the CPU twins of a graph's kernels, each only once.
type kernels struct {
	graph *ir.Graph
	found []*Kernel // by id
}

func (ks *kernels) of(id ir.KernelID) (*Kernel, error) {
	for int(id) >= len(ks.found) {
		ks.found = append(ks.found, nil)
	}
	if ks.found[id] != nil {
		return ks.found[id], nil
	}
	k := &ks.graph.Kernels[id]
	var err error
	switch k.Library.Kind {
	case ir.Builtin:
		if ks.found[id] = Lookup(k.Function); ks.found[id] == nil {
			err = fmt.Errorf("the CPU has no kernel %q: give it a twin with cpu.Register", k.Function)
		}
	case ir.Generated:
		ks.found[id], err = compileGenerated(k)
	default:
		err = fmt.Errorf("kernel @%s is of %s library %q: %w: the CPU runs builtin and generated kernels only", k.Name, k.Library.Kind, k.Library.Path, backend.ErrForeignCode)
	}
	return ks.found[id], err
}

// step checks a command and returns its step, without bases. scalars is the number of
// bytes that the scalars of earlier steps take; those of this step are added to it.
func (ks *kernels) step(n ir.Command, scalars *int) (step, error) {
	s := step{node: n, scalars: *scalars}
	d, ok := n.(*ir.Dispatch)
	if !ok {
		return s, nil
	}
	var err error
	if s.kernel, err = ks.of(d.Kernel); err != nil {
		return s, err
	}
	k := &ks.graph.Kernels[d.Kernel]
	s.constants = k.Constants
	var bound uint32
	for i := range d.Bindings {
		b := &d.Bindings[i]
		if b.Slot >= maxSlots {
			return s, fmt.Errorf("binds slot %d: there are %d", b.Slot, maxSlots)
		}
		bound |= 1 << b.Slot
		if b.Kind == ir.BindScalar {
			*scalars += 8
		}
	}
	for i := range k.Args {
		a := &k.Args[i]
		if a.Kind != ir.ThreadgroupArg && bound&(1<<a.Slot) == 0 {
			return s, fmt.Errorf("argument %d (%s) is not bound", a.Slot, a.Name)
		}
		bound &^= 1 << a.Slot
	}
	for i := range d.Bindings {
		if slot := d.Bindings[i].Slot; bound&(1<<slot) != 0 {
			return s, fmt.Errorf("binds slot %d, which the kernel does not have", slot)
		}
	}
	return s, nil
}

// misaligned returns an error if, for some value of the params, a view of argument a may begin at an address
// that is not a multiple of the element size: kernels cast bytes to elements. at is the address in bytes to
// which the view's offset is added.
func misaligned(g *ir.Graph, v ir.View, a ir.Arg, at int64) error {
	size := max(a.Type.Size(), 1)
	ok := (at+v.Off.Const)%size == 0
	for _, t := range v.Off.Terms() {
		ok = ok && t.Coeff%size == 0
	}
	if !ok {
		return fmt.Errorf("argument %d (%s): %s begins at an address that is no multiple of the %d bytes of a %s", a.Slot, a.Name, g.FormatView(v), size, a.Type)
	}
	return nil
}

// executable runs the commands of a graph in list order, one at a time, each on as many workers as its cost
// justifies. The order of the list is valid for every kind of ordering that a graph may have.
type executable struct {
	device    *Device
	graph     *ir.Graph
	profile   bool
	steps     []step
	scalars   int             // bytes that the scalars of all steps take
	fixed     []backend.Place // where the program places root memories
	needed    []int64         // required alignment of the address of each root memory, in bytes; 0 if no command uses it
	arguments []ir.MemID
	machine   machine // one replay at a time uses it
}

// Compile implements [backend.Device].
func (d *Device) Compile(ctx context.Context, p *backend.Program) (_ backend.Executable, err error) {
	defer interrupt.Catch(&err)
	if simd.Environment != nil {
		return nil, simd.Environment
	}
	g := p.Graph
	e := &executable{device: d, graph: g, profile: p.Profile, fixed: make([]backend.Place, len(g.Memories)), needed: make([]int64, len(g.Memories))}
	copy(e.fixed, p.Places)
	ks := kernels{graph: g, found: make([]*Kernel, len(g.Kernels))}
	e.steps = make([]step, 0, len(g.Nodes))
	for i, n := range g.Nodes {
		interrupt.Poll(ctx)
		if p.Progress != nil && i%(1<<16) == 0 {
			p.Progress(float64(i) / float64(len(g.Nodes)))
		}
		c, ok := n.(ir.Command)
		if _, join := n.(*ir.Join); !ok || join {
			continue // commands run in list order, which satisfies every edge
		}
		s, err := ks.step(c, &e.scalars)
		if err == nil {
			err = e.need(c)
		}
		if err != nil {
			return nil, fmt.Errorf("cpu: graph %s: %s: %w", g.Name, g.DescribeNode(i), err)
		}
		e.steps = append(e.steps, s)
	}
	for i := range g.Memories {
		m := &g.Memories[i]
		if e.needed[i] > 0 && m.Kind == ir.Argument {
			e.arguments = append(e.arguments, ir.MemID(i))
		}
		if e.fixed[i].Buffer != nil || e.needed[i] > 0 && m.Kind == ir.Weight {
			if err := e.suits(ir.MemID(i), e.fixed[i]); err != nil {
				return nil, fmt.Errorf("cpu: graph %s: %w", g.Name, err)
			}
		}
	}
	if p.Progress != nil {
		p.Progress(1)
	}
	return e, nil
}

// need notes which memories a command uses, and how their addresses must be aligned.
func (e *executable) need(c ir.Command) error {
	d, ok := c.(*ir.Dispatch)
	if !ok {
		c.EachView(func(v *ir.View) {
			root, _ := e.graph.Root(v.Mem)
			e.needed[root] = max(e.needed[root], 1)
		})
		return nil
	}
	k := &e.graph.Kernels[d.Kernel]
	if x := d.Indirect; x != nil {
		if x.Grid != nil {
			root, _ := e.graph.Root(x.Grid.Mem)
			e.needed[root] = max(e.needed[root], 1)
		}
		for i := range x.Offsets {
			root, _ := e.graph.Root(x.Offsets[i].At.Mem)
			e.needed[root] = max(e.needed[root], 1)
		}
	}
	for i := range d.Bindings {
		b := &d.Bindings[i]
		if b.Kind != ir.BindView {
			continue
		}
		a, _ := k.Arg(b.Slot)
		root, off := e.graph.Root(b.View.Mem)
		if err := misaligned(e.graph, b.View, a, off); err != nil {
			return err
		}
		e.needed[root] = max(e.needed[root], a.Type.Size(), 1)
	}
	return nil
}

// suits returns an error if a memory cannot lie at a place.
func (e *executable) suits(root ir.MemID, p backend.Place) error {
	m := &e.graph.Memories[root]
	if err := p.Holds(m.Size); err != nil {
		return fmt.Errorf("memory %%%s %w", ir.QuoteName(m.Name), err)
	}
	b, ok := p.Buffer.(*buffer)
	if !ok || b.device != e.device {
		return fmt.Errorf("memory %%%s lies in a buffer of another device", ir.QuoteName(m.Name))
	}
	if n := e.needed[root]; n > 1 && int64(addressOf(b.data[p.Offset:]))%n != 0 {
		return fmt.Errorf("memory %%%s begins at an address that is no multiple of %d, the bytes of an element that a kernel reads there", ir.QuoteName(m.Name), n)
	}
	return nil
}

// Close implements [backend.Executable].
func (e *executable) Close() error { return nil }

// frame is an executable's memory for one submission in flight, of up to room replays.
type frame struct {
	*backend.FrameMemory
	owner  *executable
	mem    memTable
	states *states    // the set whose memories are in mem
	every  []ir.MemID // outputs with one copy per replay of a submission
	room   int        // the max number of replays in a submission
}

// states are one set of places for the state memories of an executable.
type states struct {
	owner  *executable
	places []backend.Place
}

// Close implements [backend.States].
func (*states) Close() error { return nil }

// NewFrame implements [backend.Executable].
func (e *executable) NewFrame(s backend.FrameSpec) (_ backend.Frame, err error) {
	f := &frame{owner: e, mem: make(memTable, len(e.graph.Memories)), room: max(1, s.Replays)}
	if f.FrameMemory, err = backend.NewFrameMemory(e.device, &backend.Program{Graph: e.graph, Places: e.fixed}, s); err != nil {
		return nil, fmt.Errorf("cpu: graph %s: %w", e.graph.Name, err)
	}
	for i := range e.graph.Memories {
		place := e.fixed[i]
		if place.Buffer == nil {
			place = f.Place(ir.MemID(i))
		}
		if place.Buffer == nil || e.needed[i] == 0 {
			continue
		}
		if err := e.suits(ir.MemID(i), place); err != nil {
			return nil, errors.Join(fmt.Errorf("cpu: graph %s: %w", e.graph.Name, err), f.Close())
		}
		f.mem[i] = place.Bytes(e.graph.Memories[i].Size)
		if e.graph.Memories[i].Every && f.room > 1 {
			f.every = append(f.every, ir.MemID(i))
		}
	}
	f.mem.aliases(e.graph)
	return f, nil
}

// NewStates implements [backend.Executable].
func (e *executable) NewStates(places []backend.Place) (backend.States, error) {
	s := &states{owner: e, places: make([]backend.Place, len(e.graph.Memories))}
	copy(s.places, places)
	for i := range e.graph.Memories {
		if e.graph.Memories[i].Kind != ir.State || e.needed[i] == 0 || e.fixed[i].Buffer != nil {
			continue
		}
		if err := e.suits(ir.MemID(i), s.places[i]); err != nil {
			return nil, fmt.Errorf("cpu: graph %s: %w", e.graph.Name, err)
		}
	}
	return s, nil
}

// stateless reports whether the executable uses no state memory whose place a set of states would give.
func (e *executable) stateless() bool {
	for i := range e.graph.Memories {
		if e.graph.Memories[i].Kind == ir.State && e.needed[i] > 0 && e.fixed[i].Buffer == nil {
			return false
		}
	}
	return true
}

// bind enters the memories of a set of states into the frame's table.
func (f *frame) bind(s *states) {
	if s == nil || f.states == s {
		return
	}
	for i, p := range s.places {
		if p.Buffer != nil && f.owner.needed[i] > 0 && f.owner.fixed[i].Buffer == nil {
			f.mem[i] = p.Bytes(f.owner.graph.Memories[i].Size)
		}
	}
	f.mem.aliases(f.owner.graph)
	f.states = s
}

// memTable holds the bytes of memories, by id.
type memTable [][]byte

// aliases fills in the memories that lie in others.
func (t memTable) aliases(g *ir.Graph) {
	for i := range g.Memories {
		m := &g.Memories[i]
		if m.Alias != ir.NoMem && t[m.Alias] != nil { // the list of memories has the parent before its aliases
			t[i] = t[m.Alias][m.AliasOff : m.AliasOff+m.Size : m.AliasOff+m.Size]
		}
	}
}
