package cpu

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/ir"
)

// machine runs steps, one after another. Used again, it allocates nothing.
type machine struct {
	pool    *pool
	mem     memTable // nil if the steps have bases
	params  []uint32
	scalars []byte       // 8 bytes for each BindScalar, in step order
	call    Call         // filled anew for each dispatch
	carries bool         // another replay of the submission follows, so Carry nodes copy
	stop    *atomic.Bool // set when the run is cancelled; nil if it cannot be
}

// watch makes the machine stop when the context ends; calling end stops watching.
func (m *machine) watch(ctx context.Context) (end func() bool) {
	m.stop = nil
	if ctx.Done() == nil {
		return func() bool { return true }
	}
	// A flag for each run: a context may report its end late, while the next run is executing.
	stop := new(atomic.Bool)
	m.stop = stop
	return context.AfterFunc(ctx, func() { stop.Store(true) })
}

// run runs the steps; times, if not nil, is given the time of each.
func (m *machine) run(ctx context.Context, steps []step, times *[]backend.CommandTime) error {
	for i := range steps {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		begin := time.Time{}
		if times != nil {
			begin = time.Now()
		}
		if err := m.step(&steps[i]); err != nil {
			if errors.Is(err, errStopped) {
				err = context.Cause(ctx)
			}
			return err
		}
		if times != nil && steps[i].node != nil {
			*times = append(*times, backend.TimeOf(steps[i].node, begin, time.Now()))
		}
	}
	return nil
}

// base returns the memory of view k of a step.
func (m *machine) base(s *step, k int, v *ir.View) []byte {
	if s.bases != nil {
		return s.bases[k]
	}
	return m.mem[v.Mem]
}

// bytes resolves view k of a step.
func (m *machine) bytes(s *step, k int, v *ir.View) []byte {
	off := v.Off.Eval(m.params)
	end := off + v.Len.Eval(m.params)
	return m.base(s, k, v)[off:end:end]
}

func (m *machine) step(s *step) error {
	switch n := s.node.(type) {
	case *ir.Copy:
		return m.copy(m.bytes(s, 0, &n.Dst), m.bytes(s, 1, &n.Src))
	case *ir.Fill:
		for dst := m.bytes(s, 0, &n.Dst); len(dst) > 0; {
			if stopped(m.stop) {
				return errStopped
			}
			piece := dst[:min(len(dst), pieceBytes)]
			for i := range piece {
				piece[i] = n.Value
			}
			dst = dst[len(piece):]
		}
		return nil
	case *ir.Dispatch:
		m.arguments(s, n)
		m.grid(n)
		if n.Indirect != nil {
			if err := m.indirect(s, n); err != nil {
				return err
			}
		}
		if slices.Contains(m.call.Threads[:], 0) {
			return nil // a grid without threads does nothing, whatever the arguments
		}
		return m.pool.run(s.kernel, &m.call)
	case *ir.Carry:
		if m.carries {
			return m.copy(m.bytes(s, 0, &n.Dst), m.bytes(s, 1, &n.Src))
		}
	case nil: // a carry copies from one place to another
		return m.copy(s.bases[0], s.bases[1])
	}
	return nil
}

// pieceBytes is the number of bytes that are copied or filled between two checks for cancellation.
const pieceBytes = 16 << 20

func (m *machine) copy(dst, src []byte) error {
	for len(dst) > 0 {
		if stopped(m.stop) {
			return errStopped
		}
		k := copy(dst[:min(len(dst), pieceBytes)], src)
		dst, src = dst[k:], src[k:]
		if k == 0 {
			break // the source is shorter
		}
	}
	return nil
}

// indirect reads from memory the grid and the argument offsets that the dispatch has there. The views to read
// from follow those of the bindings: first the threadgroup counts, then the offsets.
func (m *machine) indirect(s *step, n *ir.Dispatch) error {
	at := len(n.Bindings)
	counts := n.Counts()
	var grid []byte
	if counts != nil {
		grid = m.bytes(s, at, counts)
		at++
	}
	for i := range n.Indirect.Offsets {
		o := &n.Indirect.Offsets[i]
		var word [8]byte
		copy(word[:], m.bytes(s, at+i, &o.At))
		k := slices.IndexFunc(n.Bindings, func(b ir.Binding) bool { return b.Slot == o.Slot })
		v := &n.Bindings[k].View
		off, length := int64(binary.LittleEndian.Uint64(word[:])), v.Len.Eval(m.params)
		all := m.base(s, k, v)
		if size := int64(len(all)); off < 0 || off > size-length {
			return fmt.Errorf("%s: takes the offset of argument %d from memory, and finds %d: the argument's memory has %d bytes", n.ID, o.Slot, off, size)
		}
		data := all[off : off+length : off+length]
		m.call.Device[o.Slot], m.call.Constant[o.Slot] = data, data
	}
	for i := range len(grid) / 4 {
		v, most := int(binary.LittleEndian.Uint32(grid[4*i:])), m.call.Groups[i]
		if v > most {
			return fmt.Errorf("%s: takes its grid from memory, where %d threadgroups stand in dimension %d: the graph says at most %d", n.ID, v, i, most)
		}
		m.call.Groups[i], m.call.Threads[i] = v, v*int(n.Threadgroup[i])
	}
	return nil
}

// arguments fills m.call with the dispatch's arguments.
func (m *machine) arguments(s *step, n *ir.Dispatch) {
	c := &m.call
	clear(c.Device[:])
	clear(c.Constant[:])
	c.Constants = s.constants
	c.stop = m.stop
	scalar := s.scalars
	for i := range n.Bindings {
		b := &n.Bindings[i]
		var data []byte
		switch b.Kind {
		case ir.BindView:
			data = m.bytes(s, i, &b.View)
		case ir.BindBytes:
			data = b.Bytes
		case ir.BindScalar:
			data = m.scalars[scalar : scalar+8]
			scalar += 8
			if b.Type == ir.F32 {
				binary.LittleEndian.PutUint64(data, uint64(m.params[b.Expr.Terms()[0].Param]))
			} else {
				binary.LittleEndian.PutUint64(data, uint64(b.Expr.Eval(m.params)))
			}
		}
		// A kernel may use an argument as device or as constant memory whichever way it is bound; see Call.
		c.Device[b.Slot], c.Constant[b.Slot] = data, data
	}
}

// grid fills m.call with the dispatch's grid; for a grid in memory with the max that the graph states.
func (m *machine) grid(n *ir.Dispatch) {
	c := &m.call
	for i, g := range n.Grid {
		v, tg := int(g.Eval(m.params)), int(n.Threadgroup[i])
		c.Group[i] = tg
		if n.GridKind == ir.Threads {
			c.Threads[i], c.Groups[i] = v, (v+tg-1)/tg
		} else {
			c.Threads[i], c.Groups[i] = v*tg, v
		}
	}
}

// secondsPerByte is the time for copying or filling one byte on one core.
const secondsPerByte = 0.2e-9

// Work implements [backend.Modelled].
func (e *executable) Work(f backend.Frame, s backend.States, params []uint32) float64 {
	own, ok := f.(*frame)
	if !ok || own.owner != e {
		return 0
	}
	set, _ := s.(*states)
	e.device.mu.Lock()
	defer e.device.mu.Unlock()
	own.bind(set)
	m := machine{mem: slices.Clone(own.mem), params: params, scalars: make([]byte, e.scalars)}
	for _, a := range e.arguments { // a replay in flight may be reading the frame's argument memory
		memory := &e.graph.Memories[a]
		m.mem[a] = make([]byte, memory.Size)
		memory.WriteValues(m.mem[a], params)
	}
	m.mem.aliases(e.graph)
	total := 0.0
	for i := range e.steps {
		total += max(0, m.work(&e.steps[i]))
	}
	return total
}

func (m *machine) work(s *step) (seconds float64) {
	// A kernel whose arguments are invalid reports that when it runs, not here.
	defer func() {
		if recover() != nil {
			seconds = 0
		}
	}()
	switch n := s.node.(type) {
	case *ir.Copy:
		return secondsPerByte * float64(n.Dst.Len.Eval(m.params))
	case *ir.Fill:
		return secondsPerByte * float64(n.Dst.Len.Eval(m.params))
	case *ir.Dispatch:
		m.arguments(s, n)
		m.grid(n)
		if slices.Contains(m.call.Threads[:], 0) {
			return 0
		}
		return 1e-9 * float64(max(0, s.kernel.Units(&m.call))) * s.kernel.Cost(&m.call)
	}
	return 0
}
