package ptxrun

import (
	"encoding/binary"
	"fmt"
	"sort"
)

// Memory is what a program may touch.
type Memory struct {
	parts []Part
	next  uint64
}

// Add makes bytes reachable, and returns their address, a multiple of 256.
func (m *Memory) Add(b []byte) uint64 {
	if m.next == 0 {
		m.next = 1 << 32
		if Elsewhere != nil {
			m.next = Elsewhere.Base
		}
	}
	at := m.next
	m.parts = append(m.parts, Part{at, b})
	m.next += (uint64(len(b)) + 511) &^ 255
	return at
}

// place returns the n bytes at an address, which must be a multiple of n.
func (m *Memory) place(at uint64, n int) ([]byte, error) {
	i := sort.Search(len(m.parts), func(i int) bool { return m.parts[i].At > at }) - 1
	if i < 0 || at-m.parts[i].At+uint64(n) > uint64(len(m.parts[i].Bytes)) {
		return nil, fmt.Errorf("%d bytes at 0x%x are nobody's", n, at)
	}
	if at%uint64(n) != 0 {
		return nil, fmt.Errorf("%d bytes at 0x%x are not at a multiple of their size", n, at)
	}
	return m.parts[i].Bytes[at-m.parts[i].At:][:n], nil
}

// Launch is a grid of blocks.
type Launch struct {
	Params []uint64
	Grid   [3]uint32
	Block  uint32 // threads, in x
	Shared int    // bytes of the variable in shared memory that the entry declares without a size
}

// thread is the state of a thread that runs.
type thread struct {
	*Program
	memory   *Memory
	launch   *Launch
	shared   []byte
	block    [3]uint32
	index    uint32
	cluster  *cluster
	rank     int // of the block in the cluster
	slot     int // of the thread in the cluster
	r        []uint64
	next     int
	steps    int
	finished bool
	waits    *instruction // an instruction that threads execute together, which it has reached; nil: none
	paused   *instruction // one that found that a thread has to wait, in this round; nil: none
	barriers map[uint64]*named
	events   int   // that others may wait for
	fault    error // of the instruction that is executed

	arrivedAt int  // the phase of barrier.cluster in which it has arrived and for which it has not waited, from 1 on
	met       bool // it has waited for one, so that all blocks of the cluster have begun

	// Of programs with asynchronous instructions:
	order       *order
	known       clocks
	clock       uint32
	fences      []uint32     // when it executed fence.proxy.async
	initFences  int          // how many of these or fence.mbarrier_init
	uncommitted []*copying   // by cp.async
	groups      [][]*copying // that it has committed and not waited for

	// Of programs with wgmma:
	products      []int32   // that it has not committed
	productGroups [][]int32 // and those that it has not waited for
	done          int32     // the last product that it has waited for
	productFences int32     // how many wgmma.fence it has executed
	busy          []int32   // the last product that uses a register
	sums          []bool    // as its sum
	fencedAt      []int32   // how many wgmma.fence there had been then
	touched       []int32   // and before the last other use, plus 1
}

// space is where an address lies.
type space uint8

const (
	global        space = iota
	ownShared           // in the block's shared memory
	clusterShared       // in that of a block of the cluster
)

// steps is the maximum of instructions that a thread executes.
const steps = 1 << 20

// Run runs all threads of a launch, a cluster of blocks after another.
func (p *Program) Run(m *Memory, l Launch) error {
	if len(l.Params) != len(p.Params) {
		return fmt.Errorf("the entry has %d parameters, and is given %d", len(p.Params), len(l.Params))
	}
	if Elsewhere != nil {
		return Elsewhere.Run(p.text, m.parts, l)
	}
	blocks := uint32(1)
	for i, n := range p.cluster {
		if l.Grid[i]%n != 0 {
			return fmt.Errorf("a grid of %v blocks is not one of clusters of %v", l.Grid, p.cluster)
		}
		blocks *= n
	}
	c := &cluster{}
	threads := make([]*thread, l.Block*blocks)
	for i := range threads {
		threads[i] = &thread{Program: p, memory: m, launch: &l, cluster: c, slot: i, rank: i / int(l.Block), index: uint32(i) % l.Block, r: make([]uint64, len(p.registers))}
		if p.matrix {
			n := len(p.registers)
			threads[i].busy, threads[i].sums, threads[i].fencedAt, threads[i].touched = make([]int32, n), make([]bool, n), make([]int32, n), make([]int32, n)
		}
	}
	if l.Shared > 0 && p.external == "" {
		return fmt.Errorf("the entry has no variable of any size, and is given %d bytes", l.Shared)
	}
	c.threads = threads
	for i := range blocks {
		c.blocks = append(c.blocks, threads[i*l.Block:][:l.Block])
	}
	for z := uint32(0); z < l.Grid[2]; z += p.cluster[2] {
		for y := uint32(0); y < l.Grid[1]; y += p.cluster[1] {
			for x := uint32(0); x < l.Grid[0]; x += p.cluster[0] {
				if err := p.run(c, [3]uint32{x, y, z}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// run runs a thread to its end, or to an instruction that threads execute together.
func (t *thread) run() error {
	for ; !t.finished; t.steps++ {
		if t.next >= len(t.code) || t.steps > steps {
			return fmt.Errorf("the thread does not end")
		}
		in := &t.code[t.next]
		if in.guard >= 0 && t.r[in.guard] != 0 == in.unless {
			t.next++
			continue
		}
		if in.together != nil {
			t.waits = in
			return nil
		}
		t.next++
		err := in.resolved(t, in)
		if t.fault != nil {
			err = t.fault
		}
		if err != nil {
			return fmt.Errorf("line %d: %s: %w", in.line, in.text, err)
		}
		if t.paused != nil {
			return nil
		}
	}
	return nil
}

// value returns the value of an operand.
func (t *thread) value(o *operand) uint64 {
	switch o.kind {
	case 'r':
		if t.busy != nil {
			t.touch(o.index)
		}
		return t.r[o.index]
	case 'n':
		return o.number
	case 'p':
		return t.launch.Params[o.index]
	case 's':
		switch o.name {
		case "%laneid":
			return uint64(t.index % warpSize)
		case "%warpid":
			return uint64(t.index / warpSize)
		case "%cluster_ctarank":
			return uint64(t.rank)
		case "%cluster_nctarank":
			return uint64(len(t.cluster.blocks))
		case "%tid.y", "%tid.z":
			return 0
		case "%ntid.y", "%ntid.z":
			return 1
		}
		switch d := o.name[len(o.name)-1] - 'x'; o.name[:len(o.name)-2] {
		case "%tid":
			return uint64(t.index)
		case "%ntid":
			return uint64(t.launch.Block)
		case "%ctaid":
			return uint64(t.block[d])
		default:
			return uint64(t.launch.Grid[d])
		}
	}
	return 0
}

func (t *thread) set(o *operand, v uint64) {
	if o.kind == 'r' {
		if t.busy != nil {
			t.touch(o.index)
		}
		t.r[o.index] = v
	}
}

// access loads or stores an element of width bytes for each of the registers, one behind the other.
func (t *thread) access(at *operand, registers []operand, width int, store bool, where space) error {
	address, n := t.address(at), width*len(registers)
	var b []byte
	var ordered *order
	if where != global {
		of, err := t, error(nil)
		if where == clusterShared {
			if of, address, err = t.remote(address); err != nil {
				return err
			}
		}
		if address < sharedBase || address-sharedBase+uint64(n) > uint64(len(of.shared)) || address%uint64(n) != 0 {
			return fmt.Errorf("%d bytes of shared memory at 0x%x: there are %d, from 0x%x", n, address, len(of.shared), sharedBase)
		}
		b = of.shared[address-sharedBase:][:n]
		if t.order != nil && !store {
			if err := of.order.read(t, int(address-sharedBase), n); err != nil {
				return err
			}
		}
		ordered = of.order
	} else {
		var err error
		if b, err = t.memory.place(address, n); err != nil {
			return err
		}
	}
	var stored [32]byte
	for i := range registers {
		e := b[width*i:][:width]
		var whole [8]byte
		if store {
			binary.LittleEndian.PutUint64(whole[:], t.value(&registers[i]))
			copy(stored[width*i:], whole[:width])
		} else {
			copy(whole[:], e)
			t.set(&registers[i], binary.LittleEndian.Uint64(whole[:]))
		}
	}
	if !store {
		return nil
	}
	if ordered != nil {
		if err := ordered.write(t, int(address-sharedBase), b, stored[:n]); err != nil {
			return err
		}
	}
	copy(b, stored[:n])
	return nil
}
