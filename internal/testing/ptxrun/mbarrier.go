package ptxrun

import (
	"fmt"
	"slices"
	"strings"
)

// mbarrier is an mbarrier object in shared memory.
type mbarrier struct {
	slot        int // its clock
	by          *thread
	fences      int // that this thread had executed before it initialized it
	clock       uint32
	count, left uint32 // arrivals of a phase, and those that are missing
	bytes       int64  // that are expected
	phase       uint64
	arrived     clocks // what those knew that have arrived in this phase
	known       clocks // and in the phases that are complete
	copies      []*copying
}

// barrierAt returns the mbarrier at an address, which t must know to be initialized.
func (t *thread) barrierAt(o *operand) (*mbarrier, error) {
	at := t.address(o)
	m := t.order.mbarriers[at]
	if m == nil {
		return nil, fmt.Errorf("there is no mbarrier at 0x%x", at)
	}
	if c := &t.order.cells[at-sharedBase]; !t.knows(c.writerOf(), c.written) {
		return nil, fmt.Errorf("the mbarrier at 0x%x has been initialized by %s, and no barrier lies between", at, t.order.who(c.writer))
	}
	return m, nil
}

// completes ends the phase if nothing is missing.
func (t *thread) completes(m *mbarrier) {
	if m.left == 0 && m.bytes == 0 {
		m.phase++
		m.left = m.count
		m.known, m.arrived = m.known.with(m.arrived), nil
		t.events++
	}
}

// arrive is an arrival of t, which stands for n.
func (t *thread) arrive(m *mbarrier, n uint32) error {
	if n > m.left || n == 0 {
		return fmt.Errorf("%d arrive where %d are missing", n, m.left)
	}
	m.left -= n
	m.arrived = t.release(m.arrived)
	t.events++
	t.completes(m)
	return nil
}

// mbarrierOf returns what executes an instruction of mbarriers; nil if that is not known.
func mbarrierOf(in *instruction) func(t *thread, in *instruction) error {
	var words []string
	for _, w := range in.op[1:] {
		switch w {
		case "shared", "shared::cta", "release", "acquire", "relaxed", "cta", "b64":
		default:
			words = append(words, w)
		}
	}
	shared := slices.ContainsFunc(in.op, func(w string) bool { return w == "shared" || w == "shared::cta" })
	n := len(in.args)
	memory := func(i int) bool { return n > i && in.args[i].kind == '[' }
	state := func(t *thread, in *instruction, f func(m *mbarrier) error) error {
		m, err := t.barrierAt(&in.args[1])
		if err != nil {
			return err
		}
		t.set(&in.args[0], m.phase)
		return f(m)
	}
	name := strings.Join(words, ".")
	switch {
	case !shared || in.op[len(in.op)-1] != "b64":
	case name == "init" && n == 2 && memory(0):
		return func(t *thread, in *instruction) error {
			at, count := t.address(&in.args[0]), uint32(t.value(&in.args[1]))
			i, err := t.place(at, 8)
			switch {
			case err != nil:
				return err
			case at%8 != 0 || count == 0:
				return fmt.Errorf("an mbarrier at 0x%x of %d", at, count)
			}
			if err := t.order.write(t, i, make([]byte, 8), []byte{1, 1, 1, 1, 1, 1, 1, 1}); err != nil { // nobody writes the same
				return err
			}
			for j := range 8 {
				t.order.cells[i+j].mbarrier = true
			}
			t.order.mbarriers[at] = &mbarrier{by: t, fences: t.initFences, slot: *t.order.slots, clock: 1, count: count, left: count}
			*t.order.slots++
			return nil
		}
	case name == "inval" && n == 1 && memory(0):
		return func(t *thread, in *instruction) error {
			if _, err := t.barrierAt(&in.args[0]); err != nil {
				return err
			}
			at := t.address(&in.args[0])
			delete(t.order.mbarriers, at)
			for j := range 8 {
				t.order.cells[int(at-sharedBase)+j].mbarrier = false
			}
			return nil
		}
	case name == "arrive" && (n == 2 || n == 3) && memory(1):
		return func(t *thread, in *instruction) error {
			return state(t, in, func(m *mbarrier) error {
				if n == 3 {
					return t.arrive(m, uint32(t.value(&in.args[2])))
				}
				return t.arrive(m, 1)
			})
		}
	case name == "arrive.expect_tx" && n == 3 && memory(1):
		return func(t *thread, in *instruction) error {
			return state(t, in, func(m *mbarrier) error {
				m.bytes += int64(uint32(t.value(&in.args[2])))
				return t.arrive(m, 1)
			})
		}
	case name == "expect_tx" && n == 2 && memory(0):
		return func(t *thread, in *instruction) error {
			m, err := t.barrierAt(&in.args[0])
			if err == nil {
				m.bytes += int64(uint32(t.value(&in.args[1])))
			}
			return err
		}
	case (name == "try_wait.parity" || name == "test_wait.parity") && (n == 3 || n == 4) && memory(1):
		return func(t *thread, in *instruction) error {
			m, err := t.barrierAt(&in.args[1])
			if err != nil {
				return err
			}
			parity := t.value(&in.args[2])
			if parity > 1 {
				return fmt.Errorf("a parity of %d", parity)
			}
			if m.phase&1 != parity {
				t.set(&in.args[0], 1)
				t.acquire(m.known)
				return nil
			}
			// The phase is not complete. Copies come no earlier than they are needed, and no thread finds at its first
			// try that they have come, for it must try again.
			t.set(&in.args[0], 0)
			t.paused = in
			return t.arriveCopies(m)
		}
	}
	return nil
}

// arriveCopies makes the copies of which an mbarrier counts the bytes.
func (t *thread) arriveCopies(m *mbarrier) error {
	for _, c := range m.copies {
		if err := t.end(c); err != nil {
			return fmt.Errorf("the copy of line %d: %w", c.in.line, err)
		}
		for i := c.to; i < c.to+c.n; i++ {
			w := &t.order.cells[i]
			w.writer, w.written = int16(-m.slot-1), m.clock
		}
		arrived := make(clocks, max(len(m.arrived), m.slot+1))
		copy(arrived, m.arrived)
		arrived[m.slot] = m.clock
		m.arrived = arrived
		m.bytes -= int64(c.n)
		m.clock++
		t.events++
	}
	if len(m.copies) > 0 {
		m.copies = nil
		t.completes(m)
	}
	return nil
}

// bulkOf is cp.async.bulk from memory to shared memory; nil for its other forms.
func bulkOf(in *instruction) func(t *thread, in *instruction) error {
	full := strings.Join(in.op, ".")
	if full != "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes" && full != "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes" ||
		len(in.args) != 4 || in.args[0].kind != '[' || in.args[1].kind != '[' || in.args[3].kind != '[' {
		return nil
	}
	return func(t *thread, in *instruction) error {
		m, err := t.barrierAt(&in.args[3])
		if err != nil {
			return err
		}
		if m.by.initFences == m.fences {
			return fmt.Errorf("thread %d, which has initialized the mbarrier, has executed neither fence.mbarrier_init nor fence.proxy.async since", m.by.index)
		}
		to, from, size := t.address(&in.args[0]), t.address(&in.args[1]), uint32(t.value(&in.args[2]))
		if to%16 != 0 || from%16 != 0 || size%16 != 0 {
			return fmt.Errorf("%d bytes from 0x%x to 0x%x: all must be multiples of 16", size, from, to)
		}
		c := &copying{in: in, from: from, n: int(size), of: int(size), thread: t.index, bulk: true}
		if c.to, err = t.place(to, int(size)); err != nil {
			return err
		}
		if err := t.begin(c); err != nil {
			return err
		}
		m.copies = append(m.copies, c)
		return nil
	}
}
