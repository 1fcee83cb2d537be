//go:build unix

package softmetal

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/ir"
)

// batch is a request to run commands, in the format that host/main.c reads. The first eight bytes, the number of
// commands and whether they are timed, are filled in when it is sent.
type batch struct {
	data  []byte
	count int
	nodes []ir.Node // by command, for times and errors
	graph *ir.Graph // the graph that has the nodes; nil: unknown
	// endless returns, for a command's kernel, the source lines of loops that never end.
	endless map[int]func() []int
}

// explain adds the description of the failed command to an error of the executor, which has the command's index in
// the batch.
func (b *batch) explain(err error) error {
	var n int
	if _, e := fmt.Sscanf(err.Error(), "softmetal: command %d:", &n); e != nil || b.graph == nil || n < 0 || n >= len(b.nodes) || b.nodes[n] == nil {
		return err
	}
	_, text, _ := strings.Cut(err.Error(), ": command ")
	_, text, _ = strings.Cut(text, ": ")
	if find := b.endless[n]; find != nil && strings.Contains(text, "processor time") {
		if lines := find(); len(lines) > 0 {
			text += "; its kernel has a loop that nothing leaves"
			if lines[0] > 0 {
				text += fmt.Sprintf(", in line %d", lines[0])
			}
		}
	}
	return fmt.Errorf("softmetal: graph %s: %s: %s", b.graph.Name, b.graph.Describe(b.nodes[n]), text)
}

func (b *batch) reset() {
	b.data, b.count, b.nodes = append(b.data[:0], 0, 0, 0, 0, 0, 0, 0, 0), 0, b.nodes[:0]
	clear(b.endless)
}

// Kinds of commands and arguments; the values are those of the enums in host/main.c.
const (
	commandDispatch = 1
	commandCopy     = 2
	commandFill     = 3
	commandMixed    = 4

	argumentBuffer = 1
	argumentBytes  = 2
	argumentLength = 3
)

func (b *batch) u32(v uint32) { b.data = binary.LittleEndian.AppendUint32(b.data, v) }
func (b *batch) u64(v uint64) { b.data = binary.LittleEndian.AppendUint64(b.data, v) }

// place appends the buffer and the offset of a place.
func (b *batch) place(p backend.Place) {
	b.u64(p.Buffer.(*buffer).id)
	b.u64(uint64(p.Offset))
}

func (b *batch) command(n ir.Node, kind uint32) {
	b.nodes = append(b.nodes, n)
	b.count++
	b.u32(kind)
}

func (b *batch) copy(n ir.Node, dst, src backend.Place, size int64) {
	b.command(n, commandCopy)
	b.u64(uint64(size))
	b.place(dst)
	b.place(src)
}

func (b *batch) fill(n ir.Node, dst backend.Place, size int64, value byte) {
	b.command(n, commandFill)
	b.u64(uint64(size))
	b.place(dst)
	b.u32(uint32(value))
}

// step is a command that was checked, with its loaded kernel.
type step struct {
	node   ir.Command
	kernel *kernel // nil unless node is a dispatch
}

// check returns an error if a dispatch does not suit its kernel. What the checker reports by itself is no error if
// the dispatch is checked. limit is the device's memory in bytes; 0: without limit.
func (s *step) check(g *ir.Graph, checked bool, limit int64) error {
	d, ok := s.node.(*ir.Dispatch)
	if !ok {
		return nil
	}
	var bound [slots]bool
	for i := range d.Bindings {
		b := &d.Bindings[i]
		if b.Slot >= slots {
			return fmt.Errorf("binds slot %d: there are %d", b.Slot, slots)
		}
		bound[b.Slot] = true
		a := s.kernel.argument(int(b.Slot))
		if a == nil {
			return fmt.Errorf("binds slot %d, which the kernel does not have", b.Slot)
		}
		if k := &g.Kernels[d.Kernel]; k.Library.Declared() {
			if named, ok := k.Arg(b.Slot); ok && named.Name != a.Name {
				return fmt.Errorf("the argument table of kernel @%s is not that of its code: argument %d is %s, the code has %s there", k.Name, b.Slot, named.Name, a.Name)
			}
		}
		if b.Kind == ir.BindView {
			if err := misaligned(g, b.View, a); err != nil {
				return err
			}
		}
	}
	for i := range s.kernel.Args {
		a := &s.kernel.Args[i]
		if a.Attribute == "" && a.Space != air.Threadgroup && a.If == "" && !a.Unused && !bound[a.Index] {
			return fmt.Errorf("argument %d (%s) is not bound", a.Index, a.Name)
		}
	}
	threads := uint64(1)
	for _, n := range d.Threadgroup {
		threads *= uint64(n)
	}
	if most := s.kernel.MaxThreadgroup; most > 0 && threads > uint64(most) && !checked {
		return fmt.Errorf("threadgroups of %d threads: the kernel promises at most %d", threads, most)
	}
	if memory := s.kernel.threadgroupBytes(d); memory > maxThreadgroupBytes && !checked {
		return fmt.Errorf("%d bytes of threadgroup memory: Apple's GPUs have %d", memory, maxThreadgroupBytes)
	}
	// A product of float64 cannot overflow, however large the threadgroup is.
	if own := float64(s.kernel.frame) * float64(threads); limit > 0 && own > float64(limit) {
		return fmt.Errorf("the %d threads of a threadgroup take %.0f bytes of private memory: %d are allowed (--memory)", threads, own, limit)
	}
	return nil
}

// argument returns the argument in device or constant space at a slot, or nil.
func (k *kernel) argument(slot int) *air.Arg {
	for i := range k.Args {
		if a := &k.Args[i]; a.Attribute == "" && a.Space != air.Threadgroup && a.Index == slot {
			return a
		}
	}
	return nil
}

// misaligned returns an error if, for some values of the params, a view may begin at an address that is not a
// multiple of its elements' alignment. Root memories are aligned for any element.
func misaligned(g *ir.Graph, v ir.View, a *air.Arg) error {
	align := max(a.TypeAlign, 1)
	_, at := g.Root(v.Mem)
	ok := (at+v.Off.Const)%align == 0
	for _, t := range v.Off.Terms() {
		ok = ok && t.Coeff%align == 0
	}
	if !ok {
		return fmt.Errorf("argument %d (%s): %s begins at an address that is no multiple of the %d bytes that a %s asks for", a.Index, a.Name, g.FormatView(v), align, a.Type)
	}
	return nil
}

// bindings are the params and the places of memories with which a replay, or a command buffer, runs its commands.
type bindings struct {
	memories []ir.Memory
	params   []uint32
	places   []backend.Place // by memory, including aliases
	// carries is set if another replay of the submission follows, without which carry commands do nothing.
	carries bool
}

// view returns the place of a view, and its size in bytes.
func (r *bindings) view(v *ir.View) (backend.Place, int64) {
	return r.places[v.Mem].Add(v.Off.Eval(r.params)), v.Len.Eval(r.params)
}

// fillAliases sets the places of memories that are aliases of a part of another one.
func fillAliases(memories []ir.Memory, places []backend.Place) {
	for i := range memories {
		m := &memories[i]
		if m.Alias != ir.NoMem && places[m.Alias].Buffer != nil { // a memory precedes its aliases in the list
			places[i] = places[m.Alias].Add(m.AliasOff)
		}
	}
}

// encode appends the command of a step. All that was encoded before an indirect dispatch must have run, because its
// offsets and grid are read from memory here.
func (b *batch) encode(s *step, r *bindings) error {
	switch n := s.node.(type) {
	case *ir.Copy:
		dst, size := r.view(&n.Dst)
		src, _ := r.view(&n.Src)
		if size > 0 {
			b.copy(n, dst, src, size)
		}
	case *ir.Carry:
		if dst, size := r.view(&n.Dst); r.carries && size > 0 {
			src, _ := r.view(&n.Src)
			b.copy(n, dst, src, size)
		}
	case *ir.Fill:
		if dst, size := r.view(&n.Dst); size > 0 {
			b.fill(n, dst, size, n.Value)
		}
	case *ir.Dispatch:
		return b.dispatch(s.kernel, n, r)
	}
	return nil
}

func (b *batch) dispatch(k *kernel, n *ir.Dispatch, r *bindings) error {
	var grid, group [3]uint32
	for i, e := range n.Grid {
		v, size := uint32(e.Eval(r.params)), uint32(n.Threadgroup[i])
		group[i] = size
		if grid[i] = v; n.GridKind != ir.Threads {
			grid[i] = v * size
		}
	}
	offsets := map[uint8]int64(nil)
	if n.Indirect != nil {
		var err error
		if offsets, err = indirect(n, r, &grid, &group); err != nil {
			return err
		}
	}
	if grid[0] == 0 || grid[1] == 0 || grid[2] == 0 {
		return nil // a grid without threads does nothing, whatever the arguments
	}
	b.command(n, commandDispatch)
	if b.endless == nil {
		b.endless = map[int]func() []int{}
	}
	b.endless[len(b.nodes)-1] = k.endless
	b.u32(k.number)
	for _, v := range grid {
		b.u32(v)
	}
	for _, v := range group {
		b.u32(v)
	}
	b.u32(uint32(len(n.Bindings) + len(n.ThreadgroupMemory)))
	for i := range n.Bindings {
		a := &n.Bindings[i]
		b.u32(uint32(a.Slot))
		switch a.Kind {
		case ir.BindView:
			b.u32(argumentBuffer)
			p, size := r.view(&a.View)
			if off, ok := offsets[a.Slot]; ok {
				p = r.places[a.View.Mem].Add(off)
			}
			b.place(p)
			b.u64(uint64(size))
		case ir.BindBytes:
			b.u32(argumentBytes)
			b.u32(uint32(len(a.Bytes)))
			b.data = append(b.data, a.Bytes...)
		case ir.BindScalar:
			b.u32(argumentBytes)
			b.u32(8)
			if a.Type == ir.F32 {
				b.u64(uint64(r.params[a.Expr.Terms()[0].Param]))
			} else {
				b.u64(uint64(a.Expr.Eval(r.params)))
			}
		}
	}
	for _, m := range n.ThreadgroupMemory {
		b.u32(uint32(m.Slot))
		b.u32(argumentLength)
		b.u32(m.Bytes)
	}
	return nil
}

// indirect reads from memory the buffer offsets of an indirect dispatch, by slot, and its grid.
func indirect(n *ir.Dispatch, r *bindings, grid, group *[3]uint32) (map[uint8]int64, error) {
	d := func(v *ir.View) []byte {
		p, size := r.view(v)
		return p.Buffer.(*buffer).bytes()[p.Offset : p.Offset+size]
	}
	offsets := map[uint8]int64{}
	for i := range n.Indirect.Offsets {
		o := &n.Indirect.Offsets[i]
		var word [8]byte
		copy(word[:], d(&o.At))
		off := int64(binary.LittleEndian.Uint64(word[:]))
		for k := range n.Bindings {
			if n.Bindings[k].Slot != o.Slot {
				continue
			}
			v := &n.Bindings[k].View
			if size, length := r.memories[v.Mem].Size, v.Len.Eval(r.params); off < 0 || off > size-length {
				return nil, fmt.Errorf("%s: takes the offset of argument %d from memory, and finds %d: the argument's memory has %d bytes", n.ID, o.Slot, off, size)
			}
		}
		offsets[o.Slot] = off
	}
	if counts := n.Counts(); counts != nil {
		data := d(counts)
		for i := range len(data) / 4 {
			v, most := binary.LittleEndian.Uint32(data[4*i:]), grid[i]/max(1, group[i])
			if v > most {
				return nil, fmt.Errorf("%s: takes its grid from memory, where %d threadgroups stand in dimension %d: the graph says at most %d", n.ID, v, i, most)
			}
			grid[i] = v * group[i]
		}
	}
	return offsets, nil
}
