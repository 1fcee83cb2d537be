//go:build linux && (amd64 || arm64)

package fakecuda

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/air/nvptx"
	"github.com/mlxc/mlxc/ir"
)

// launch is the launch of a kernel, with the values of its parameters.
type launch struct {
	*code
	grid, block [3]uint32
	shared      uint32
	params      []uint64 // of the arguments that are memory, then the grid's and a threadgroup's threads
	table       uint64   // address of the table of additions
	moves       uint64   // bit i: the table adds to parameter i
	// The rest is for launches behind programmatic edges.
	watched []*launch // whose reads before their wait may happen once this one begins
	early   *early    // what this one has read before its wait
}

// newLaunch checks a launch as the driver does, and copies its parameters; params is an array of pointers to them.
func (g *GPU) newLaunch(fn uintptr, grid, block [3]uint32, shared uint32, params, extra uintptr) (*launch, uint32) {
	f := object[function](g, fn)
	if f == nil {
		return nil, invalidHandle
	}
	threads := uint64(1)
	for i := range 3 {
		if grid[i] == 0 || block[i] == 0 || grid[i] > maxGrid[i] {
			return nil, invalidValue
		}
		threads *= uint64(block[i])
	}
	if threads > uint64(f.threads()) || int(shared) > f.dynamic || params == 0 || extra != 0 {
		return nil, invalidValue
	}
	l := &launch{code: f.code, grid: grid, block: block, shared: shared}
	count := 6
	for i := range f.Input.Kernel.Args {
		if f.Input.Kernel.Args[i].Attribute == "" {
			count++
		}
	}
	if f.Launch.Moving {
		count += 2
	}
	pointers := list[uintptr](params, uintptr(count))
	next := func(wide bool) uint64 {
		p := pointers[0]
		pointers = pointers[1:]
		if wide {
			return *at[uint64](p)
		}
		return uint64(*at[uint32](p))
	}
	if slices.Contains(pointers, 0) {
		return nil, invalidValue
	}
	for i := range f.Input.Kernel.Args {
		if a := &f.Input.Kernel.Args[i]; a.Attribute == "" {
			l.params = append(l.params, next(a.Space != air.Threadgroup))
		}
	}
	for range 6 {
		l.params = append(l.params, next(false))
	}
	if f.Launch.Moving {
		if l.table = next(true); l.table%16 != 0 {
			g.note("kernel %s: the table of additions lies at %#x, which is no multiple of 16", l.kernel.Name, l.table)
			return nil, invalidValue
		}
		if l.moves = next(true); l.moves>>(len(l.params)-3) != 0 {
			g.note("kernel %s: the bits %#x are for more than what something may be added to", l.kernel.Name, l.moves)
			return nil, invalidValue
		}
	}
	return l, success
}

// op makes the op of a launch, with the device memory to which its parameters point.
func (g *GPU) op(l *launch) *op {
	o := &op{launch: l}
	use := func(at uint64) {
		if m := g.memory.find(at); m != nil && !slices.Contains(o.device, m) {
			o.device = append(o.device, m)
		}
	}
	l.addresses(l.params, func(_ *air.Arg, at uint64) { use(at) })
	use(l.table)
	return o
}

// byValue reports whether an argument is given by value.
func (l *launch) byValue(a *air.Arg) bool { return l.Launch.Values && a.ByValue() }

// addresses calls f for each argument whose parameter is an address.
func (l *launch) addresses(params []uint64, f func(a *air.Arg, at uint64)) {
	n := 0
	for i := range l.Input.Kernel.Args {
		a := &l.Input.Kernel.Args[i]
		if a.Attribute != "" {
			continue
		}
		if a.Space != air.Threadgroup && !l.byValue(a) {
			f(a, params[n])
		}
		n++
	}
}

// moved returns the parameters after the additions of a table; an empty one adds nothing.
func (l *launch) moved(table []byte) []uint64 {
	out := slices.Clone(l.params)
	if len(table) == 0 {
		return out
	}
	n := 0
	add := func(wide bool) {
		if l.moves>>n&1 != 0 {
			out[n] += binary.LittleEndian.Uint64(table[8*n:])
		}
		if !wide {
			out[n] = uint64(uint32(out[n]))
		}
		n++
	}
	for i := range l.Input.Kernel.Args {
		if a := &l.Input.Kernel.Args[i]; a.Attribute == "" {
			add(a.Space != air.Threadgroup)
		}
	}
	for range 6 {
		add(false)
	}
	return out
}

// additions copies the table of a launch as it is now: nil if it has none, false if its address is not valid.
func (g *GPU) additions(l *launch) ([]byte, bool) {
	if l.moves == 0 {
		return nil, true
	}
	n := int64(8 * len(l.params))
	m := g.memory.span(l.table, n)
	if m == nil {
		g.note("kernel %s: there is no table of additions of %d bytes at %#x, or no longer", l.kernel.Name, n, l.table)
		return nil, false
	}
	off := int64(l.table - m.at)
	return bytes.Clone(m.bytes()[off : off+n]), true
}

// run is a launch with decoded parameters, as software Metal runs it.
type run struct {
	*launch
	grid, group [3]uint32
	memory      []bound
	rooms       []*allocation // of each of memory; nil: none
	args        []*air.Arg    // of each of memory
	shared      []ir.ThreadgroupMemory
	values      []ir.Binding // of constants that are given by value
	nothing     bool         // the grid has no threads
}

// resolve decodes the parameters of a launch, and checks them against what is launched. g.mu is held.
func (g *GPU) resolve(l *launch, params []uint64) (*run, uint32) {
	r := &run{launch: l}
	name := l.kernel.Name
	numbers := params[len(params)-6:]
	all := numbers[5]&nvptx.WholeThreadgroups != 0
	for i := range 3 {
		r.grid[i], r.group[i] = uint32(numbers[i]), uint32(numbers[3+i]&^nvptx.WholeThreadgroups)
		if r.group[i] == 0 {
			g.note("kernel %s: a threadgroup of no threads in dimension %d", name, i)
			return nil, launchFailed
		}
		blocks := uint32((uint64(r.grid[i]) + uint64(r.group[i]) - 1) / uint64(r.group[i]))
		if l.note != nil {
			r.nothing = r.nothing || blocks == 0
			continue
		}
		if blocks > l.grid[i] || blocks < l.grid[i] && !l.Launch.Moving {
			g.note("kernel %s: %d blocks are launched in dimension %d, for %d threads in threadgroups of %d", name, l.grid[i], i, r.grid[i], r.group[i])
			return nil, launchFailed
		}
		r.nothing = r.nothing || blocks == 0
		if all && r.grid[i]%r.group[i] != 0 {
			g.note("kernel %s: %d threads are in threadgroups of %d in dimension %d, where all should be whole", name, r.grid[i], r.group[i], i)
			return nil, launchFailed
		}
	}
	if whole := r.group[0] * r.group[1] * r.group[2]; all && whole%32 != 0 {
		g.note("kernel %s: threadgroups of %d threads, where simdgroups should be whole", name, whole)
		return nil, launchFailed
	}
	if l.note != nil {
		if err := g.fits(l, r); err != nil {
			g.note("kernel %s: %v", name, err)
			return nil, launchFailed
		}
	} else if whole := r.group[0] * r.group[1] * r.group[2]; l.block != [3]uint32{whole, 1, 1} {
		g.note("kernel %s: blocks of %v threads are launched, for threadgroups of %d", name, l.block, whole)
		return nil, launchFailed
	}
	code := uint32(success)
	l.addresses(params, func(a *air.Arg, at uint64) {
		m := g.memory.find(at)
		b := bound{slot: uint8(a.Index), room: g.runner.none, off: page}
		switch {
		case m != nil:
			b.room, b.off = m.room, m.front+int64(at-m.at)
		case at != 0 && !a.Unused:
			g.note("kernel %s: argument %d (%s) lies at %#x, where no memory is, or no longer", name, a.Index, a.Name, at)
			code = illegalAddress
		}
		r.memory, r.rooms, r.args = append(r.memory, b), append(r.rooms, m), append(r.args, a)
	})
	n := 0
	var offsets []uint64
	var slots []uint8
	for i := range l.Input.Kernel.Args {
		a := &l.Input.Kernel.Args[i]
		if a.Attribute != "" {
			continue
		}
		switch {
		case a.Space == air.Threadgroup:
			offsets, slots = append(offsets, params[n]), append(slots, uint8(a.Index))
		case l.byValue(a):
			var word [8]byte
			binary.LittleEndian.PutUint64(word[:], params[n])
			r.values = append(r.values, ir.BytesArg(uint8(a.Index), word[:a.Size]))
		}
		n++
	}
	for i, off := range offsets {
		end := uint64(l.shared)
		for _, other := range offsets {
			if other > off {
				end = min(end, other)
			}
		}
		if off%16 != 0 || off > end {
			g.note("kernel %s: threadgroup memory %d begins at byte %d of %d", name, slots[i], off, l.shared)
			return nil, launchFailed
		}
		r.shared = append(r.shared, ir.ThreadgroupMemory{Slot: slots[i], Bytes: uint32(end - off)})
	}
	return r, code
}

// fits compares what is launched of a kernel that has blocks of its own with what those are.
func (g *GPU) fits(l *launch, r *run) error {
	var groups [3]uint64
	for i := range groups {
		groups[i] = (uint64(r.grid[i]) + uint64(r.group[i]) - 1) / uint64(r.group[i])
	}
	grid, threads, shared, err := g.options.Fits(l.Input.Kernel, l.constants(), l.note, groups)
	if err != nil {
		return err
	}
	for i, n := range grid {
		if n > uint64(l.grid[i]) || n < uint64(l.grid[i]) && !l.Launch.Moving {
			return fmt.Errorf("%d blocks are launched in dimension %d, not %d", l.grid[i], i, n)
		}
	}
	if l.block != [3]uint32{threads, 1, 1} || l.shared < shared {
		return fmt.Errorf("blocks of %v threads and %d bytes are launched, not of %d threads and %d bytes or more", l.block, l.shared, threads, shared)
	}
	return nil
}

// constants are the function constants of the kernel.
func (l *launch) constants() (out []ir.FunctionConstant) {
	for _, c := range l.Input.Constants {
		out = append(out, ir.FunctionConstant{Index: uint16(c.Index), Bits: c.Bits})
	}
	return out
}

// execute runs a launch.
func (g *GPU) execute(l *launch) uint32 {
	g.mu.Lock()
	table, ok := g.additions(l)
	if !ok {
		g.mu.Unlock()
		return illegalAddress
	}
	if l.early != nil && !bytes.Equal(l.early.table, table) {
		g.note("kernel %s: its table of additions is written by a launch that may run when it is read", l.kernel.Name)
		table = l.early.table
	}
	r, code := g.resolve(l, l.moved(table))
	g.mu.Unlock()
	if code != success || r.nothing {
		return code
	}
	if l.early != nil && l.early.stale() {
		return g.twice(r)
	}
	return g.dispatch(r)
}

func (g *GPU) dispatch(r *run) uint32 {
	code, err := g.runner.dispatch(r.code, r.grid, r.group, r.memory, r.shared, r.values)
	if err != nil {
		g.mu.Lock()
		g.say("%v", err)
		g.mu.Unlock()
	}
	return code
}

func init() {
	registerOn(inside, "cuLaunchKernel", 11, 8, func(g *GPU, s *stream, a []uintptr) uint32 {
		l, code := g.newLaunch(a[0], [3]uint32{uint32(a[1]), uint32(a[2]), uint32(a[3])}, [3]uint32{uint32(a[4]), uint32(a[5]), uint32(a[6])}, uint32(a[7]), a[9], a[10])
		if l != nil {
			g.put(s, g.op(l))
		}
		return code
	})
}
