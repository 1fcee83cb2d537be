//go:build linux && (amd64 || arm64)

package cuda

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"unsafe"

	"github.com/mlxc/mlxc/backend/internal/plan"
	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/air/nvptx"
	driver "github.com/mlxc/mlxc/internal/cuda"
	"github.com/mlxc/mlxc/ir"
)

// launches are the launches of a code with their current parameters and grids. Where the host has to compute what
// depends on params, each replay in flight has launches of its own.
type launches struct {
	*code
	device  *Device
	list    []driver.Launch // by step; an empty grid: it is left out
	entries []*entry        // by step: those that are launched
	block   []byte          // parameters, and pointers to them, outside the Go heap for the driver
	memory  *buffer         // the words, or with rules their image
	staged  []byte          // the same in pinned memory, from which the GPU copies it
	fresh   bool            // memory was copied to the GPU; only what depends on params may have changed
	places  []driver.Address
	params  []uint32
	stale   []bool // by step: bring is about to set it anew

	first []driver.Launch // that evaluate rules, by group
	known []uint32        // params as the GPU has them, and the number of the next replay of the submission; nil: unknown

	// version counts the changes of the launches; changed has the steps of the last change, and moved says whether
	// it has changed those that evaluate rules.
	version int
	changed []int32
	moved   bool
	// single and many are CUDA graphs of one replay and of [batch] replays; nil: none was needed yet.
	single, many *topology
}

func (d *Device) newLaunches(c *code) (_ *launches, err error) {
	l := &launches{code: c, device: d, list: make([]driver.Launch, len(c.steps)), entries: make([]*entry, len(c.steps)), stale: make([]bool, len(c.steps))}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.close())
		}
	}()
	image, groups := c.Words, 0
	if c.rules != nil {
		image, groups = c.rules.image, len(c.rules.groups)
	}
	if l.block, err = syscall.Mmap(-1, 0, max(1, c.bytes+groups*advanceBytes), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE); err != nil {
		return nil, fmt.Errorf("memory for the parameters of kernels: %w", err)
	}
	m, err := d.Alloc(specOf(int64(len(image))))
	if err != nil {
		return nil, err
	}
	l.memory = m.(*buffer)
	err = d.do(func() (err error) {
		l.staged, err = driver.AllocHost(len(image))
		copy(l.staged, image)
		return err
	})
	return l, err
}

func (l *launches) close() error {
	if l == nil {
		return nil
	}
	var errs []error
	l.keep(l.single)
	l.keep(l.many)
	if l.block != nil {
		errs = append(errs, syscall.Munmap(l.block))
	}
	if l.memory != nil {
		errs = append(errs, l.memory.Close())
	}
	if l.staged != nil {
		errs = append(errs, l.device.gpu.Do(func() error { return driver.FreeHost(l.staged) }))
	}
	l.block, l.memory, l.staged, l.single, l.many = nil, nil, nil, nil, nil
	return errors.Join(errs...)
}

// bring sets the launches to the places and params of a replay, and submits copies of what the GPU has to know to a
// stream. params has one more than the graph, the number of the replay in its submission. staged is pinned memory
// for as many, from which no copy is in flight; without rules no replay of these launches may be in flight at all.
func (l *launches) bring(s driver.Stream, places []driver.Address, params []uint32, staged []byte) error {
	for _, i := range l.code.words {
		v := l.vars(i)
		var word [8]byte
		binary.LittleEndian.PutUint64(word[:], v[0].Value(params))
		copy(l.staged[l.Word[i]:], word[:l.Ops[i].Len])
	}
	if len(l.code.words) > 0 || !l.fresh {
		if err := driver.CopyToDevice(s, l.memory.at, l.staged); err != nil {
			return err
		}
		l.fresh, l.known = true, nil
	}
	if l.rules != nil && len(l.rules.groups) > 0 && !slices.Equal(l.known, params) {
		l.known = nil
		for i, p := range params {
			binary.LittleEndian.PutUint32(staged[4*i:], p)
		}
		if err := driver.CopyToDevice(s, l.memory.at+driver.Address(l.rules.params), staged[:4*len(params)]); err != nil {
			return err
		}
		l.known = append(l.known, params...)
	}
	all := l.places == nil
	changed := l.changed[:0]
	add := func(n int32) {
		if !l.stale[n] {
			l.stale[n] = true
			changed = append(changed, n)
		}
	}
	switch {
	case all:
		for n := range l.steps {
			add(int32(n))
		}
	default:
		for m, u := range l.users {
			if l.places[m] != places[m] {
				for _, n := range u {
					add(n)
				}
			}
		}
		if !l.equal(params) {
			for _, n := range l.varying {
				add(n)
			}
		}
	}
	moved := l.rules != nil && (all || !slices.Equal(l.places, places))
	if len(changed) > 0 || moved {
		l.version++
		l.changed, l.moved = changed, moved
	}
	for k, n := range changed {
		l.stale[n] = false
		if err := l.make(int(n), places, params); err != nil {
			for _, n := range changed[k:] {
				l.stale[n] = false
			}
			l.places = nil
			return err
		}
	}
	if moved {
		l.advances(places)
	}
	l.places, l.params = append(l.places[:0], places...), append(l.params[:0], params...)
	return nil
}

// equal reports whether the params that the host has to follow are those of the replay before.
func (l *launches) equal(params []uint32) bool {
	for i, p := range params[:len(params)-1] {
		if p != l.params[i] && (l.rules == nil || l.still[i]) {
			return false
		}
	}
	return true
}

// advanced notes that n replays were launched, each of which advances the params on the GPU.
func (l *launches) advanced(n int) {
	for i := range l.known {
		l.known[i] += uint32(n) * binary.LittleEndian.Uint32(l.rules.image[l.rules.steps+4*i:])
	}
}

// advanceBytes is the size of the parameters of a launch that evaluates rules, and of the pointers to them.
const advanceBytes = 16 * 12

// advances makes the launches that evaluate rules, one for each group.
func (l *launches) advances(places []driver.Address) {
	r := l.rules
	l.first = l.first[:0]
	for i := range r.groups {
		g := &r.groups[i]
		at := func(n int) uint64 { return uint64(l.memory.at) + uint64(n) }
		to := at(0)
		if g.memory != ours {
			to = uint64(places[g.memory])
		}
		if to == 0 {
			continue // the memory has no place
		}
		out := driver.Launch{Function: l.advance.entry(form{}, "", nil).function, Grid: [3]uint32{1, 1, 1}, Block: advanceThreads}
		begin := l.bytes + i*advanceBytes
		for k, v := range []uint64{at(g.rules), at(g.first), at(r.params), at(r.steps), to, uint64(len(g.list)/ruleBytes) | uint64(r.counted(i))<<32, advanceThreads, 1, 1, advanceThreads, 1, 1} {
			l.put(begin, 12, k, v)
		}
		out.Params = uintptr(unsafe.Pointer(&l.block[begin+8*12]))
		l.first = append(l.first, out)
	}
}

// put writes the k-th of n parameters, and the pointer to it.
func (l *launches) put(begin, n, k int, v uint64) {
	at := begin + 8*k
	binary.LittleEndian.PutUint64(l.block[at:], v)
	binary.LittleEndian.PutUint64(l.block[at+8*n:], uint64(uintptr(unsafe.Pointer(&l.block[at]))))
}

// make sets the parameters and the grid of a step's launch.
func (l *launches) make(n int, places []driver.Address, params []uint32) error {
	s := &l.steps[n]
	var memory [slots]driver.Address
	var shared [slots]uint32
	var values [slots]uint64
	for i := s.first; i < s.dispatch; i++ {
		switch o := &l.Ops[i]; o.Kind {
		case plan.SetBuffer:
			memory[o.Slot] = places[o.Index]
			if l.rules == nil || !l.ruled(i) {
				memory[o.Slot] += driver.Address(l.offset(i, params))
			}
		case plan.SetBytes:
			memory[o.Slot] = l.memory.at + driver.Address(l.Word[i])
			if s.given(o.Slot) {
				values[o.Slot] = l.value(i, params)
			}
		case plan.SetThreadgroupMemory:
			shared[o.Slot] = uint32(o.Len)
		}
	}
	k, count, e := s.kernel, s.count(), l.chosen(s, params)
	out := driver.Launch{Function: e.function, Params: uintptr(unsafe.Pointer(&l.block[s.params+8*count]))}
	at := 0
	for i := range k.kernel.Args {
		a := &k.kernel.Args[i]
		switch {
		case a.Attribute != "":
			continue
		case a.Space == air.Threadgroup:
			l.put(s.params, count, at, uint64(out.Shared))
			out.Shared += (shared[a.Index] + 15) &^ 15
		case a.ByValue() && s.values:
			l.put(s.params, count, at, values[a.Index])
		default:
			if memory[a.Index]%wideBytes != 0 && e.isAligned(at) {
				return fmt.Errorf("%s: argument %d lies at an address that is no multiple of %d, but its memory asks for that or for nothing (backend.Info)", l.describe(s.node), a.Index, wideBytes)
			}
			l.put(s.params, count, at, uint64(memory[a.Index]))
		}
		at++
	}
	if s.additions > 0 {
		l.put(s.params, count, count-2, uint64(l.memory.at)+uint64(s.additions))
		l.put(s.params, count, count-1, s.moves)
	}
	size := l.Grids[l.Ops[s.dispatch].Index].Size
	for _, v := range l.vars(s.dispatch) {
		if v.Op != s.dispatch {
			break
		}
		if k := v.Part - plan.Extent0; s.most[k] == 0 {
			size[k] = v.Value(params)
		}
	}
	l.list[n], l.entries[n] = out, e
	return l.size(n, size)
}

// value is the constant of at most 8 bytes that an operation sets, as a number; 0 where the GPU adds it.
func (l *launches) value(op int32, params []uint32) uint64 {
	o := &l.Ops[op]
	v := l.vars(op)
	switch {
	case len(v) == 0 || v[0].Op != op:
		return word(l.Words[l.Word[op]:][:o.Len])
	case l.rules != nil:
		return 0
	}
	return v[0].Value(params)
}

// word returns at most 8 bytes as a number.
func word(b []byte) uint64 {
	var all [8]byte
	copy(all[:], b)
	return binary.LittleEndian.Uint64(all[:])
}

// size sets the grid and block of a launch, and the parameters that repeat them; all others are set already.
func (l *launches) size(n int, size [3]uint64) error {
	s, out := &l.steps[n], &l.list[n]
	g := &l.Grids[l.Ops[s.dispatch].Index]
	count, numbers := s.count(), s.kernel.parameters()-6
	out.Block = 1
	out.Grid = [3]uint32{}
	for i := range 3 {
		group := uint64(g.Group[i])
		blocks, threads := (size[i]+group-1)/group, size[i]
		if g.Unit == ir.Threadgroups {
			blocks, threads = size[i], size[i]*group
		}
		if s.most[i] > 0 {
			blocks, threads = uint64(s.most[i]), 0 // the GPU adds the number of threads
		}
		if blocks > uint64(l.device.limits.grid[i]) || threads > 1<<32-1 {
			return fmt.Errorf("%s: %d threadgroups in dimension %d: the GPU takes %d", l.describe(s.node), blocks, i, l.device.limits.grid[i])
		}
		l.put(s.params, count, numbers+i, threads)
		if i == 2 && s.whole {
			group |= nvptx.WholeThreadgroups
		}
		l.put(s.params, count, numbers+3+i, group)
		out.Grid[i] = uint32(blocks)
		out.Block *= g.Group[i]
	}
	out.Block += l.entries[n].more
	if l.entries[n].fit.Fits() {
		return l.fitted(n)
	}
	return nil
}

// empty reports whether a launch does nothing, as its grid is empty.
func empty(l *driver.Launch) bool { return l.Grid[0] == 0 || l.Grid[1] == 0 || l.Grid[2] == 0 }
