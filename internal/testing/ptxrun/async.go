package ptxrun

import (
	"fmt"
	"strings"
)

// poison is what shared memory has that nobody has written: NaNs of all types.
const poison = 0xff

// copying is a copy to shared memory that is on its way.
type copying struct {
	in     *instruction
	from   uint64
	to     int // offset in shared memory
	n, of  int // bytes that are written, and of them those that come from memory; the others become zeros
	thread uint32
	bulk   bool
}

// waits says what has to be waited for.
func (c *copying) waits() string {
	if c.bulk {
		return fmt.Sprintf("nobody has seen the mbarrier's phase complete for the bulk copy of line %d", c.in.line)
	}
	return fmt.Sprintf("thread %d has not waited for its cp.async of line %d", c.thread, c.in.line)
}

// place returns the offset of n bytes of shared memory at an address.
func (t *thread) place(address uint64, n int) (int, error) {
	if address < sharedBase || address-sharedBase+uint64(n) > uint64(len(t.shared)) {
		return 0, fmt.Errorf("%d bytes of shared memory at 0x%x: there are %d, from 0x%x", n, address, len(t.shared), sharedBase)
	}
	return int(address - sharedBase), nil
}

// address is what an operand in brackets stands for.
func (t *thread) address(o *operand) uint64 {
	if o.index >= 0 {
		return t.value(&operand{kind: 'r', index: o.index}) + o.number
	}
	return o.number
}

// begin marks the bytes that a copy writes as on their way.
func (t *thread) begin(c *copying) error {
	if err := t.order.mayWrite(t, c.to, c.n); err != nil {
		return err
	}
	for i := c.to; i < c.to+c.n; i++ {
		if w := &t.order.cells[i]; w.writer != 0 && !t.knows(w.writerOf(), w.written) {
			return fmt.Errorf("the byte of shared memory at 0x%x has been written by %s, and no barrier lies between", sharedBase+i, t.order.who(w.writer))
		}
	}
	t.order.copies = append(t.order.copies, c)
	for i := c.to; i < c.to+c.n; i++ {
		t.order.cells[i].flight = int32(len(t.order.copies))
	}
	return nil
}

// end makes a copy.
func (t *thread) end(c *copying) error {
	for i := range c.n {
		t.shared[c.to+i] = 0
		t.order.cells[c.to+i].flight = 0
	}
	for i := 0; i < c.of; {
		n := 1
		if c.bulk || c.of%4 == 0 {
			n = 4
		}
		b, err := t.memory.place(c.from+uint64(i), n)
		if err != nil {
			return err
		}
		copy(t.shared[c.to+i:], b)
		i += n
	}
	return nil
}

// finish makes the copies of the oldest groups of a thread, until so many are left.
func (t *thread) finish(left int) error {
	for len(t.groups) > left {
		for _, c := range t.groups[0] {
			if err := t.end(c); err != nil {
				return fmt.Errorf("the copy of line %d: %w", c.in.line, err)
			}
			for i := c.to; i < c.to+c.n; i++ {
				w := &t.order.cells[i]
				w.writer, w.written, w.fences = int16(t.slot)+1, t.clock, uint32(len(t.fences))
			}
		}
		t.groups = t.groups[1:]
	}
	return nil
}

// asyncOf returns what executes an instruction of those that are about asynchronous copies; nil if it is none.
func asyncOf(in *instruction) func(t *thread, in *instruction) error {
	full := strings.Join(in.op, ".")
	n := len(in.args)
	switch {
	case full == "cp.async.commit_group" && n == 0:
		return func(t *thread, _ *instruction) error {
			t.groups = append(t.groups, t.uncommitted)
			t.uncommitted = nil
			return nil
		}
	case full == "cp.async.wait_group" && n == 1 && in.args[0].kind == 'n':
		return func(t *thread, in *instruction) error { return t.finish(int(in.args[0].number)) }
	case full == "cp.async.wait_all" && n == 0:
		return func(t *thread, _ *instruction) error {
			t.groups = append(t.groups, t.uncommitted)
			t.uncommitted = nil
			return t.finish(0)
		}
	case full == "fence.proxy.async" && n == 0, (full == "fence.proxy.async.shared::cta") && n == 0:
		return func(t *thread, _ *instruction) error {
			t.fences = append(t.fences, t.clock)
			t.initFences++
			return nil
		}
	case full == "fence.mbarrier_init.release.cluster" && n == 0:
		return func(t *thread, _ *instruction) error { t.initFences++; return nil }
	case strings.HasPrefix(full, "cp.async.bulk."):
		return bulkOf(in)
	case strings.HasPrefix(full, "cp.async."):
		return copyOf(in)
	case in.op[0] == "mbarrier":
		return mbarrierOf(in)
	}
	return nil
}

// copyOf is cp.async.{ca,cg}.shared.global [to], [from], bytes {, bytes that come from memory}.
func copyOf(in *instruction) func(t *thread, in *instruction) error {
	op, n := in.op, len(in.args)
	if len(op) > 5 && strings.HasPrefix(op[5], "L2::") && len(op) == 6 {
		op = op[:5]
	}
	if len(op) != 5 || op[3] != "shared" && op[3] != "shared::cta" || op[4] != "global" || n != 3 && n != 4 || in.args[0].kind != '[' || in.args[1].kind != '[' || in.args[2].kind != 'n' {
		return nil
	}
	size := int(in.args[2].number)
	if op[2] == "cg" && size != 16 || op[2] == "ca" && size != 4 && size != 8 && size != 16 || op[2] != "cg" && op[2] != "ca" {
		return nil
	}
	return func(t *thread, in *instruction) error {
		c := &copying{in: in, from: t.address(&in.args[1]), n: size, of: size, thread: t.index}
		if n == 4 {
			if of := uint32(t.value(&in.args[3])); of > uint32(size) {
				return fmt.Errorf("%d bytes of memory for %d", of, size)
			} else {
				c.of = int(of)
			}
		}
		to := t.address(&in.args[0])
		if to%uint64(size) != 0 || c.from%uint64(size) != 0 {
			return fmt.Errorf("%d bytes from 0x%x to 0x%x are not at multiples of their size", size, c.from, to)
		}
		var err error
		if c.to, err = t.place(to, size); err != nil {
			return err
		}
		if c.of > 0 {
			if _, err := t.memory.place(c.from, 1); err != nil {
				return err
			}
			if _, err := t.memory.place(c.from+uint64(c.of)-1, 1); err != nil {
				return err
			}
		}
		if err := t.begin(c); err != nil {
			return err
		}
		t.uncommitted = append(t.uncommitted, c)
		return nil
	}
}
