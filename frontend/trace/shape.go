package trace

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"

	"github.com/mlxc/mlxc/internal/interrupt"
)

// run is a step in a form in which steps can be compared: its buffers have numbers by their first appearance, and what may
// differ from one run of a graph to the next is a list of numbers.
type run struct {
	*step
	of      *group
	index   int       // of the step among those that become runs
	buffers []*buffer // roots, by the lives that they have in the step
	lives   []life
	inPlace map[[2]int]bool         // lives that go over into others in place: by what a dispatch reads and writes at once
	hosts   int                     // what the host had written when it began: a count
	left    map[*buffer][]span[int] // which lives' bytes buffers hold when it ends
	at      int                     // the index of its step
	entries []entry                 // by buffer: what it holds at first, and who wrote that
	numbers []int64
	grid    []bool            // which of them are of grids
	shape   [sha256.Size]byte // digest of everything but the numbers
}

// group is runs of one shape, which become one graph.
type group struct {
	name  string
	runs  []*run
	given []given      // buffers that are params by what they hold
	hard  int          // so many numbers, the first, are not of these
	again map[int]bool // by life: some run finds what one has left there

	fitted *fitted
}

// canonical returns a step, the one at an index, as a run.
func canonical(ctx context.Context, k *kernels, s *step, at, index int) (_ *run, err error) {
	r := &run{step: s, at: at, index: index}
	if r.lives, r.left, r.inPlace, err = k.lives(s, at); err != nil {
		return nil, err
	}
	for _, l := range r.lives {
		r.buffers = append(r.buffers, l.buffer)
	}
	h := sha256.New()
	add := func(values ...int64) {
		r.numbers = append(r.numbers, values...)
		r.grid = append(r.grid, make([]bool, len(values))...)
	}
	put := func(values ...int64) { putNumbers(h, values) }
	buffer := func(b *binding) {
		_, at := b.buffer.root()
		put(int64(b.part), bit(b.limit > 0))
		if add(at + b.offset); b.limit > 0 {
			add(b.limit)
		}
	}
	var polls interrupt.Every
	for i := range s.commands {
		polls.Poll(ctx, 1024)
		c := &s.commands[i]
		put(int64(c.kind), int64(len(c.binds)), int64(len(c.memory)), int64(len(c.hints)))
		switch c.kind {
		case dispatch:
			put(int64(c.code.id), bit(c.threads))
			put(c.group[:]...)
			r.numbers, r.grid = append(r.numbers, c.grid[:]...), append(r.grid, true, true, true)
			for j := range c.binds {
				b := &c.binds[j]
				put(int64(b.slot), bit(b.buffer == nil), int64(len(b.data)))
				switch {
				case b.buffer != nil:
					buffer(b)
				case len(b.data)%4 == 0:
					for k := 0; k < len(b.data); k += 4 {
						add(int64(binary.LittleEndian.Uint32(b.data[k:])))
					}
				default:
					h.Write(b.data)
				}
			}
			for _, m := range c.memory {
				put(int64(m.slot), m.bytes)
			}
			for _, x := range c.hints {
				put(int64(x.slot), bit(x.write), bit(x.must))
				add(x.offset, x.bytes)
			}
		case copying, filling:
			for j := range c.binds {
				buffer(&c.binds[j])
			}
			put(int64(c.value))
			add(c.bytes)
		}
	}
	h.Sum(r.shape[:0])
	return r, nil
}

func bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func putNumbers(h hash.Hash, values []int64) {
	var buf [8]byte
	for _, v := range values {
		binary.LittleEndian.PutUint64(buf[:], uint64(v))
		h.Write(buf[:])
	}
}

// place says for people where number i of a run stands, and of which kernel it is inline bytes, if it is.
func (r *run) place(i int) (string, *pipeline) {
	for n := range r.commands {
		c := &r.commands[n]
		what := func(format string, args ...any) string {
			at := fmt.Sprintf("command %d", n)
			if c.kind == dispatch {
				at = fmt.Sprintf("dispatch of %s (command %d)", c.code.function, n)
			}
			return at + ", " + fmt.Sprintf(format, args...)
		}
		switch c.kind {
		case dispatch:
			if i < 3 {
				return what("dimension %d of the grid", i), nil
			}
			i -= 3
			for _, b := range c.binds {
				k := len(b.data) / 4
				switch {
				case b.buffer != nil && i < b.numbers():
					return what("the offset of the buffer at slot %d, or the size of what is there", b.slot), nil
				case b.buffer != nil:
					i -= b.numbers()
				case len(b.data)%4 != 0:
				case i < k:
					return what("bytes %d to %d at slot %d", 4*i, 4*i+4, b.slot), c.code
				default:
					i -= k
				}
			}
			if i < 2*len(c.hints) {
				return what("what a hint says of slot %d", c.hints[i/2].slot), nil
			}
			i -= 2 * len(c.hints)
		case copying, filling:
			if i <= len(c.binds) {
				return what("an offset or the number of bytes"), nil
			}
			i -= len(c.binds) + 1
		}
	}
	return fmt.Sprintf("number %d", i), nil
}

// numbers is how many numbers of a run a buffer that is bound has: where it begins, and how long the value there is, if that counts.
func (b *binding) numbers() int { return 1 + int(bit(b.limit > 0)) }

// dispatches returns how many dispatches a step has.
func (s *step) dispatches() (n int) {
	for i := range s.commands {
		if s.commands[i].kind == dispatch {
			n++
		}
	}
	return n
}
