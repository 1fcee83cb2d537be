package main

import (
	"fmt"
	"slices"
	"strings"
)

// A reg is a register of addresses and numbers, by its name in Go's assembler.
type reg string

// A vec is a vector register, by its number.
type vec int

// An operand is what an operation reads: a register, one lane of a register, or, on amd64, memory.
type operand struct {
	v      vec
	lane   int
	at     string // the place in memory, if the operand is there
	scalar bool   // of the memory one float32, for all lanes
}

func in(v vec) operand { return operand{v: v} }

// A stream is one row of memory that a loop goes through, or several that are equally far apart. What reads or writes
// a row moves it on. On arm64 each row has its address, which every access moves; on amd64 eight rows share one, and it
// is the end of a pass of the loop that moves it.
type stream struct {
	at     []reg   // of each row, or of each eight
	by     strides // between rows
	moved  []int   // amd64: of each row, how many bytes the pass has moved it
	step   int     // bytes from one vector to the next
	stepBy reg     // arm64: the same, where vectors do not lie side by side
	parked string  // amd64: the argument that holds the address between accesses, for want of a register
}

// skip moves all rows on at the end of the pass.
func (s *stream) skip(bytes int) {
	for row := range s.moved {
		s.moved[row] += bytes
	}
}

// strides are the bytes between two rows, and on amd64 also three, five and seven times as many, as far as there are
// rows that need them.
type strides []reg

// code is the text of one function under construction.
type code struct {
	isa
	name    string // with the implementation's: dotAVX2
	lanes   int    // float32 in a vector
	out     strings.Builder
	args    map[string]int // where each is in the frame
	regs    []reg          // free, in the order in which they are taken
	used    []bool         // vector registers
	labels  map[string]int
	streams []*stream
	part    bool // only what is left of a vector exists: amd64 has a mask, arm64 one element
	single  bool // amd64: only one element exists, and nothing else is touched
	locals  int  // amd64: bytes of the function's own frame
	pool    *pool
}

// isa is what loops and addresses are made with; the first operand of each is a number or a register.
type isa struct{ add, sub, compare, less, notLess, notEqual string }

func (c *code) ins(format string, args ...any) { fmt.Fprintf(&c.out, "\t"+format+"\n", args...) }

func (c *code) mark(label string) { fmt.Fprintf(&c.out, "%s:\n", label) }

func (c *code) label(name string) string {
	c.labels[name]++
	return fmt.Sprint(name, c.labels[name])
}

// imm is an immediate if n is a number, and the register if it is one.
func imm(n any) string {
	if r, ok := n.(reg); ok {
		return string(r)
	}
	return fmt.Sprintf("$%d", n)
}

func (c *code) fail(what string) { panic(c.name + ": " + what) }

// reg takes a free register; at the end of the scope it is free again.
func (c *code) reg() reg {
	if len(c.regs) == 0 {
		c.fail("no register is left")
	}
	r := c.regs[0]
	c.regs = c.regs[1:]
	return r
}

// free gives a register back before its scope ends.
func (c *code) free(r reg) { c.regs = append([]reg{r}, c.regs...) }

// vecs takes n vector registers with numbers in a row.
func (c *code) vecs(n int) []vec {
	for i := 0; i+n <= len(c.used); i++ {
		if !slices.Contains(c.used[i:i+n], true) {
			return c.take(i, n)
		}
	}
	c.fail("no vector registers are left")
	return nil
}

// lastVecs is vecs from the other end: for what stays, since not every operation of amd64 knows registers behind the
// sixteenth.
func (c *code) lastVecs(n int) []vec {
	for i := len(c.used) - n; i >= 0; i-- {
		if !slices.Contains(c.used[i:i+n], true) {
			return c.take(i, n)
		}
	}
	c.fail("no vector registers are left")
	return nil
}

func (c *code) take(i, n int) (vs []vec) {
	for j := i; j < i+n; j++ {
		c.used[j] = true
		vs = append(vs, vec(j))
	}
	return vs
}

func (c *code) vec() vec { return c.vecs(1)[0] }

func (c *code) freeVecs(vs ...vec) {
	for _, v := range vs {
		c.used[v] = false
	}
}

// own is the register of an operand, or a new one if it is in memory.
func (c *code) own(o operand) vec {
	if o.at == "" {
		return o.v
	}
	return c.vec()
}

// scope gives back what body has taken.
func (c *code) scope(body func()) {
	regs, used, streams := slices.Clone(c.regs), slices.Clone(c.used), len(c.streams)
	body()
	c.regs, c.used, c.streams = regs, used, c.streams[:streams]
}

// pass is one pass through the body of a loop: at its end the streams move on by what the body read and wrote.
func (c *code) pass(body func()) {
	c.scope(func() {
		before := make([]int, len(c.streams))
		for i, s := range c.streams {
			before[i] = s.moved[0]
		}
		streams := slices.Clone(c.streams)
		body()
		for i, s := range streams {
			n := s.moved[0]
			switch {
			case n == before[i]:
				continue
			case before[i] != 0 || slices.ContainsFunc(s.moved, func(m int) bool { return m != n }):
				c.fail("a loop moves rows by different numbers of bytes")
			}
			clear(s.moved)
			if c.part {
				continue // nothing comes behind it
			}
			for _, a := range s.at {
				c.ins(c.add, imm(n), a)
			}
		}
	})
}

// loop runs body while at least per are left of n, of which each pass takes per, a number or a register.
func (c *code) loop(n reg, per any, body func()) {
	top, rest := c.label("loop"), c.label("rest")
	c.ins(c.sub, imm(per), n)
	c.ins(c.less, rest)
	c.mark(top)
	c.pass(body)
	c.ins(c.sub, imm(per), n)
	c.ins(c.notLess, top)
	c.mark(rest)
	c.ins(c.add, imm(per), n)
}

// once runs body if at least per are left of n, and takes per from it.
func (c *code) once(n reg, per int, body func()) {
	less := c.label("less")
	c.ins(c.compare, n, per)
	c.ins(c.less, less)
	c.pass(body)
	c.ins(c.sub, imm(per), n)
	c.mark(less)
}

// repeat runs body n/per times, n a multiple of per that is not 0.
func (c *code) repeat(n reg, per int, body func()) {
	top := c.label("again")
	c.mark(top)
	c.pass(body)
	c.ins(c.sub, imm(per), n)
	c.ins(c.notEqual, top)
}

// frame is an argument's place.
func (c *code) frame(name string) string {
	at, ok := c.args[name]
	if !ok {
		c.fail("no argument is called " + name)
	}
	return fmt.Sprintf("%s+%d(FP)", name, at)
}

// newStream has rows at these addresses.
func (c *code) newStream(rows int, at []reg, by strides) *stream {
	s := &stream{at: at, by: by, moved: make([]int, rows), step: 4 * c.lanes}
	c.streams = append(c.streams, s)
	return s
}

// A pool is the constants of a file.
type pool struct{ words []uint32 }

const poolName = "constants<>"

// place is where these words lie one after another.
func (p *pool) place(words ...uint32) string {
	at := 0
	for ; ; at++ {
		n := min(len(words), len(p.words)-at)
		if slices.Equal(p.words[at:at+n], words[:n]) {
			p.words = append(p.words, words[n:]...)
			return fmt.Sprintf("%s+%#x(SB)", poolName, 4*at)
		}
	}
}

func (p *pool) text() string {
	var b strings.Builder
	for i, w := range p.words {
		fmt.Fprintf(&b, "DATA %s+%#02x(SB)/4, $%#08x\n", poolName, 4*i, w)
	}
	fmt.Fprintf(&b, "GLOBL %s(SB), RODATA|NOPTR, $%d\n", poolName, 4*len(p.words))
	return b.String()
}
