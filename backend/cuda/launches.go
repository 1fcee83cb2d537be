//go:build linux && (amd64 || arm64)

package cuda

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sort"
	"syscall"
	"unsafe"

	"github.com/mlxc/mlxc/backend/internal/plan"
	"github.com/mlxc/mlxc/internal/air"
	driver "github.com/mlxc/mlxc/internal/cuda"
	"github.com/mlxc/mlxc/ir"
)

// code is a plan with its kernels.
type code struct {
	*plan.Stored
	kernels []*kernel // by plan.Pipelines
	steps   []step
	users   [][]int32 // by number of a memory: the steps that bind it
	varying []int32   // steps whose launch depends on params
	words   []int32   // operations whose words do
	bytes   int       // of all steps' parameters
	// nodes are the graph's, or those of a command buffer; describe names one.
	nodes    []ir.Node
	describe func(node int32) string
}

// step is a launch, with what sets its arguments.
type step struct {
	first, dispatch int32 // operations
	counts          int32 // the operation that binds the counts of its grid; −1: it has none
	next            bool  // only if another replay of the submission follows
	kernel          *kernel
	node            int32
	params          int // where its parameters begin
}

// arrange makes the steps of a plan in their order.
func (c *code) arrange() {
	p := c.Plan
	add := func(first, dispatch, counts int32) {
		s := step{first: first, dispatch: dispatch, counts: counts, next: p.Ops[dispatch].Next, node: p.Grids[p.Ops[dispatch].Index].Node}
		for i := first; i < dispatch; i++ {
			if o := &p.Ops[i]; o.Kind == plan.SetPipeline {
				s.kernel = c.kernels[o.Index]
			}
		}
		s.params = c.bytes
		c.bytes += 16 * s.kernel.parameters()
		c.steps = append(c.steps, s)
	}
	for i := range c.Steps {
		x := &c.Steps[i]
		if x.Kind == plan.Execute {
			for _, k := range c.Commands[x.First:x.End] {
				add(k.First, k.Dispatch, -1)
			}
			continue
		}
		// A guard, whose first argument is the counts, and the dispatch that it guards.
		counts, first := int32(-1), x.First
		for i := x.First; i < x.End; i++ {
			switch o := &p.Ops[i]; o.Kind {
			case plan.SetBuffer:
				if counts < 0 && o.Slot == 0 {
					counts = i
				}
			case plan.Dispatch:
				first = i + 1
			case plan.DispatchIndirect:
				add(first, i, counts)
			}
		}
	}
	vars := p.Vars
	for n := range c.steps {
		s := &c.steps[n]
		varies := false
		bind := func(i int32) {
			if o := &p.Ops[i]; o.Kind == plan.SetBuffer && o.Index != plan.Guarded {
				for int(o.Index) >= len(c.users) {
					c.users = append(c.users, nil)
				}
				if u := c.users[o.Index]; len(u) == 0 || u[len(u)-1] != int32(n) {
					c.users[o.Index] = append(u, int32(n))
				}
			}
		}
		if s.counts >= 0 {
			bind(s.counts)
			varies = true // what it reads is found out each time
		}
		for i := s.first; i <= s.dispatch; i++ {
			bind(i)
			for len(vars) > 0 && vars[0].Op < i {
				vars = vars[1:]
			}
			if len(vars) > 0 && vars[0].Op == i {
				if p.Ops[i].Kind == plan.SetBytes && c.Word[i] >= 0 {
					c.words = append(c.words, i)
				} else {
					varies = true
				}
			}
		}
		if varies {
			c.varying = append(c.varying, int32(n))
		}
	}
}

// parameters is how many the entry of a kernel has (air.PTX).
func (k *kernel) parameters() int {
	n := 6
	for i := range k.kernel.Args {
		if k.kernel.Args[i].Attribute == "" {
			n++
		}
	}
	return n
}

// launches are the steps of a code with the parameters that they have in one slot: what a replay
// launches that runs in it.
type launches struct {
	*code
	device *Device
	list   []driver.Launch // by step; no blocks: it does nothing
	block  []byte          // of parameters, and of pointers to them, where the driver reads them
	words  *buffer         // plan.Stored.Words
	staged []byte          // the same, where the GPU copies it from
	fresh  bool            // the GPU has the words that do not depend on params
	places []driver.Address
	params []uint32
	stale  []bool
}

func (d *Device) newLaunches(c *code) (_ *launches, err error) {
	l := &launches{code: c, device: d, list: make([]driver.Launch, len(c.steps)), stale: make([]bool, len(c.steps))}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.close())
		}
	}()
	if l.block, err = syscall.Mmap(-1, 0, max(1, c.bytes), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE); err != nil {
		return nil, fmt.Errorf("memory for the parameters of kernels: %w", err)
	}
	w, err := d.Alloc(specOf(int64(len(c.Words))))
	if err != nil {
		return nil, err
	}
	l.words = w.(*buffer)
	err = d.gpu.Do(func() (err error) {
		l.staged, err = driver.AllocHost(len(c.Words))
		copy(l.staged, c.Words)
		return err
	})
	return l, err
}

func (l *launches) close() error {
	if l == nil {
		return nil
	}
	var errs []error
	if l.block != nil {
		errs = append(errs, syscall.Munmap(l.block))
	}
	if l.words != nil {
		errs = append(errs, l.words.Close())
	}
	if l.staged != nil {
		errs = append(errs, l.device.gpu.Do(func() error { return driver.FreeHost(l.staged) }))
	}
	l.block, l.words, l.staged = nil, nil, nil
	return errors.Join(errs...)
}

// bring has the launches be those of a replay, at places and params, and has the GPU get their words, in
// the order of a stream. Nothing of the slot is in flight.
func (l *launches) bring(s driver.Stream, places []driver.Address, params []uint32) error {
	for _, i := range l.code.words {
		v := l.vars(i)
		var word [8]byte
		binary.LittleEndian.PutUint64(word[:], v[0].Value(params))
		copy(l.staged[l.Word[i]:], word[:l.Ops[i].Len])
	}
	if len(l.code.words) > 0 || !l.fresh {
		if err := driver.CopyToDevice(s, l.words.at, l.staged); err != nil {
			return err
		}
		l.fresh = true
	}
	all := l.places == nil
	var changed []int32
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
		if !slices.Equal(l.params, params) {
			for _, n := range l.varying {
				add(n)
			}
		}
	}
	for _, n := range changed {
		l.stale[n] = false
		if err := l.make(int(n), places, params); err != nil {
			l.places = nil
			return err
		}
	}
	l.places, l.params = append(l.places[:0], places...), append(l.params[:0], params...)
	return nil
}

// vars are what depends on params in an operation and those behind it.
func (c *code) vars(op int32) []plan.Var {
	return c.Vars[sort.Search(len(c.Vars), func(i int) bool { return c.Vars[i].Op >= op }):]
}

// offset is that of an operation at the values of params.
func (c *code) offset(op int32, params []uint32) int64 {
	if v := c.vars(op); len(v) > 0 && v[0].Op == op && v[0].Part == plan.Offset {
		return int64(v[0].Value(params))
	}
	return c.Ops[op].Off
}

// make writes the parameters of a step and says how it is launched.
func (l *launches) make(n int, places []driver.Address, params []uint32) error {
	s := &l.steps[n]
	var memory [slots]driver.Address
	var shared [slots]uint32
	for i := s.first; i < s.dispatch; i++ {
		switch o := &l.Ops[i]; o.Kind {
		case plan.SetBuffer:
			memory[o.Slot] = places[o.Index] + driver.Address(l.offset(i, params))
		case plan.SetBytes:
			memory[o.Slot] = l.words.at + driver.Address(l.Word[i])
		case plan.SetThreadgroupMemory:
			shared[o.Slot] = uint32(o.Len)
		}
	}
	k := s.kernel
	out := driver.Launch{Function: k.function}
	at, pointers := s.params, s.params+8*k.parameters()
	put := func(v uint64) {
		binary.LittleEndian.PutUint64(l.block[at:], v)
		binary.LittleEndian.PutUint64(l.block[pointers:], uint64(uintptr(unsafe.Pointer(&l.block[at]))))
		at, pointers = at+8, pointers+8
	}
	out.Params = uintptr(unsafe.Pointer(&l.block[pointers]))
	for i := range k.kernel.Args {
		switch a := &k.kernel.Args[i]; {
		case a.Attribute != "":
		case a.Space == air.Threadgroup:
			put(uint64(out.Shared))
			out.Shared += (shared[a.Index] + 15) &^ 15
		default:
			put(uint64(memory[a.Index]))
		}
	}
	g := &l.Grids[l.Ops[s.dispatch].Index]
	size := g.Size
	for _, v := range l.vars(s.dispatch) {
		if v.Op != s.dispatch {
			break
		}
		size[v.Part-plan.Extent0] = v.Value(params)
	}
	l.list[n] = out
	return l.size(n, size)
}

// size sets the grid of a launch, whose other parameters are written.
func (l *launches) size(n int, size [3]uint64) error {
	s, out := &l.steps[n], &l.list[n]
	g := &l.Grids[l.Ops[s.dispatch].Index]
	at := s.params + 8*(s.kernel.parameters()-6)
	out.Block = 1
	out.Grid = [3]uint32{}
	for i := range 3 {
		group := uint64(g.Group[i])
		blocks, threads := (size[i]+group-1)/group, size[i]
		if g.Unit == ir.Threadgroups {
			blocks, threads = size[i], size[i]*group
		}
		if blocks > uint64(l.device.limits.grid[i]) || threads > 1<<32-1 {
			return fmt.Errorf("%s: %d threadgroups in dimension %d: the GPU takes %d", l.describe(s.node), blocks, i, l.device.limits.grid[i])
		}
		binary.LittleEndian.PutUint64(l.block[at+8*i:], threads)
		binary.LittleEndian.PutUint64(l.block[at+24+8*i:], group)
		for _, v := range []int{at + 8*i, at + 24 + 8*i} {
			binary.LittleEndian.PutUint64(l.block[v+8*s.kernel.parameters():], uint64(uintptr(unsafe.Pointer(&l.block[v]))))
		}
		out.Grid[i] = uint32(blocks)
		out.Block *= g.Group[i]
	}
	return nil
}

// empty reports whether a launch does nothing.
func empty(l *driver.Launch) bool { return l.Grid[0] == 0 || l.Grid[1] == 0 || l.Grid[2] == 0 }
