package ptxrun

import (
	"encoding/binary"
	"fmt"
	"sort"
)

// Memory is what a program may touch.
type Memory struct {
	parts []part
	next  uint64
}

type part struct {
	at    uint64
	bytes []byte
}

// Add makes bytes reachable, and returns their address, a multiple of 256.
func (m *Memory) Add(b []byte) uint64 {
	if m.next == 0 {
		m.next = 1 << 32
	}
	at := m.next
	m.parts = append(m.parts, part{at, b})
	m.next += (uint64(len(b)) + 511) &^ 255
	return at
}

// place returns the n bytes at an address, which must be a multiple of n.
func (m *Memory) place(at uint64, n int) ([]byte, error) {
	i := sort.Search(len(m.parts), func(i int) bool { return m.parts[i].at > at }) - 1
	if i < 0 || at-m.parts[i].at+uint64(n) > uint64(len(m.parts[i].bytes)) {
		return nil, fmt.Errorf("%d bytes at 0x%x are nobody's", n, at)
	}
	if at%uint64(n) != 0 {
		return nil, fmt.Errorf("%d bytes at 0x%x are not at a multiple of their size", n, at)
	}
	return m.parts[i].bytes[at-m.parts[i].at:][:n], nil
}

// Launch is a grid of blocks.
type Launch struct {
	Params []uint64
	Grid   [3]uint32
	Block  uint32 // threads, in x
}

// thread is the state of a thread that runs.
type thread struct {
	*Program
	memory   *Memory
	launch   *Launch
	shared   []byte
	block    [3]uint32
	index    uint32
	r        []uint64
	next     int
	steps    int
	finished bool
	waits    *instruction // an instruction that threads execute together, which it has reached; nil: none
}

// steps is the maximum of instructions that a thread executes.
const steps = 1 << 20

// Run runs all threads of a launch, a block after another.
func (p *Program) Run(m *Memory, l Launch) error {
	if len(l.Params) != len(p.Params) {
		return fmt.Errorf("the entry has %d parameters, and is given %d", len(p.Params), len(l.Params))
	}
	threads := make([]*thread, l.Block)
	for i := range threads {
		threads[i] = &thread{Program: p, memory: m, launch: &l, index: uint32(i), r: make([]uint64, len(p.registers))}
	}
	var block [3]uint32
	for block[2] = range l.Grid[2] {
		for block[1] = range l.Grid[1] {
			for block[0] = range l.Grid[0] {
				if err := p.block(threads, block); err != nil {
					return fmt.Errorf("block %v, %w", block, err)
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
		if err := in.resolved(t, in); err != nil {
			return fmt.Errorf("line %d: %s: %w", in.line, in.text, err)
		}
	}
	return nil
}

// value returns the value of an operand.
func (t *thread) value(o *operand) uint64 {
	switch o.kind {
	case 'r':
		return t.r[o.index]
	case 'n':
		return o.number
	case 'p':
		return t.launch.Params[o.index]
	case 's':
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
		t.r[o.index] = v
	}
}

// access loads or stores an element of width bytes for each of the registers, one behind the other.
func (t *thread) access(at *operand, registers []operand, width int, store, shared bool) error {
	address, n := at.number, width*len(registers)
	if at.index >= 0 {
		address += t.r[at.index]
	}
	var b []byte
	if shared {
		if address < sharedBase || address-sharedBase+uint64(n) > uint64(len(t.shared)) || address%uint64(n) != 0 {
			return fmt.Errorf("%d bytes of shared memory at 0x%x: there are %d, from 0x%x", n, address, len(t.shared), sharedBase)
		}
		b = t.shared[address-sharedBase:][:n]
	} else {
		var err error
		if b, err = t.memory.place(address, n); err != nil {
			return err
		}
	}
	for i := range registers {
		e := b[width*i:][:width]
		var whole [8]byte
		if store {
			binary.LittleEndian.PutUint64(whole[:], t.value(&registers[i]))
			copy(e, whole[:])
		} else {
			copy(whole[:], e)
			t.set(&registers[i], binary.LittleEndian.Uint64(whole[:]))
		}
	}
	return nil
}
