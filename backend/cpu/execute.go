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
	"github.com/mlxc/mlxc/internal/mmap"
	"github.com/mlxc/mlxc/ir"
)

// executable runs the commands of a graph one after another in written order,
// each on as many workers as it deserves: one of the orders that every graph
// allows.
type executable struct {
	device  *Device
	graph   *ir.Graph
	mem     [][]byte // by MemID, aliases resolved
	profile bool
	steps   []step
	// generated holds the kernels that were made for this graph.
	generated map[ir.KernelID]*Kernel
	scalars   []byte // 8 bytes for each BindScalar, in the order of the steps
	call      Call   // filled anew for each dispatch
	timing    []backend.DispatchTime
	stop      *atomic.Bool // says that the replay that runs was cancelled; nil: it cannot be
}

// step is one command, checked.
type step struct {
	node    ir.Command
	kernel  *Kernel
	scalars int // offset of the step's scalars
}

func (e *executable) add(n ir.Node) error {
	switch n := n.(type) {
	case *ir.Dispatch:
		s := step{node: n, scalars: len(e.scalars)}
		k := &e.graph.Kernels[n.Kernel]
		var err error
		if s.kernel, err = e.kernel(n.Kernel); err != nil {
			return err
		}
		for _, b := range n.Bindings {
			a, ok := k.Arg(b.Slot)
			if !ok {
				return fmt.Errorf("binds slot %d, which the kernel does not have", b.Slot)
			}
			if b.Kind == ir.BindScalar {
				e.scalars = append(e.scalars, make([]byte, 8)...)
			}
			if b.Kind == ir.BindView {
				if err := e.here(b.View); err != nil {
					return err
				}
				if err := e.aligned(b.View, a); err != nil {
					return err
				}
			}
		}
		if v := n.Counts(); v != nil {
			if err := e.here(*v); err != nil {
				return err
			}
		}
		for _, a := range k.Args {
			if a.Kind != ir.ThreadgroupArg && n.Binding(a.Slot) == nil {
				return fmt.Errorf("argument %d (%s) is not bound", a.Slot, a.Name)
			}
		}
		e.steps = append(e.steps, s)
	case *ir.Copy:
		e.steps = append(e.steps, step{node: n})
		return errors.Join(e.here(n.Dst), e.here(n.Src))
	case *ir.Fill:
		e.steps = append(e.steps, step{node: n})
		return e.here(n.Dst)
	case *ir.Carry: // for the next replay of a submission
		return errors.Join(e.here(n.Dst), e.here(n.Src))
	}
	return nil
}

// here reports a view of memory that the program has no buffer for.
func (e *executable) here(v ir.View) error {
	if e.mem[v.Mem] == nil {
		return fmt.Errorf("memory %%%s has no buffer", ir.QuoteName(e.graph.Memories[v.Mem].Name))
	}
	return nil
}

// kernel returns the code of a kernel of the graph, made once.
func (e *executable) kernel(id ir.KernelID) (*Kernel, error) {
	k := &e.graph.Kernels[id]
	switch k.Library.Kind {
	case ir.Builtin:
		if twin := Lookup(k.Function); twin != nil {
			return twin, nil
		}
		return nil, fmt.Errorf("the CPU has no kernel %q", k.Function)
	case ir.Generated:
		if e.generated[id] == nil {
			made, err := compileGenerated(k)
			if err != nil {
				return nil, err
			}
			e.generated[id] = made
		}
		return e.generated[id], nil
	}
	return nil, fmt.Errorf("kernel @%s is of %s library %q: the CPU runs builtin and generated kernels only", k.Name, k.Library.Kind, k.Library.Path)
}

// aligned reports a view that begins at no multiple of its element's size, for
// some value of the params: a kernel casts it to elements.
func (e *executable) aligned(v ir.View, a ir.Arg) error {
	size := max(a.Type.Size(), 1)
	ok := (int64(addressOf(e.mem[v.Mem])%uintptr(size))+v.Off.Const)%size == 0
	for _, t := range v.Off.Terms() {
		ok = ok && t.Coeff%size == 0
	}
	if !ok {
		return fmt.Errorf("argument %d (%s): %s begins at an address that is no multiple of the %d bytes of a %s", a.Slot, a.Name, e.graph.FormatView(v), size, a.Type)
	}
	return nil
}

// Close implements [backend.Executable].
func (e *executable) Close() error { return nil }

// done is a replay that has ended.
type done struct {
	timing backend.Timing
	err    error
}

func (d done) Wait() (backend.Timing, error) { return d.timing, d.err }

// Submit implements [backend.Executable]; the replay has ended when it
// returns. A cancelled context ends it, within a command too.
func (e *executable) Submit(ctx context.Context, params []uint32) (_ backend.Pending, err error) {
	e.device.mu.Lock()
	defer e.device.mu.Unlock()
	defer mmap.Catch(&err)() // a copy of weights; kernels have the pool's
	start := time.Now()
	e.timing = e.timing[:0]
	e.stop = nil
	if ctx.Done() != nil {
		// One for each replay: a context that ended may say so late, when another runs.
		stop := new(atomic.Bool)
		e.stop = stop
		defer context.AfterFunc(ctx, func() { stop.Store(true) })()
	}
	for i := range e.steps {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		begin := time.Time{}
		if e.profile {
			begin = time.Now()
		}
		if err := e.run(&e.steps[i], params); err != nil {
			if errors.Is(err, errStopped) {
				err = context.Cause(ctx)
			}
			return nil, err
		}
		if e.profile {
			id := e.steps[i].node.Num()
			e.timing = append(e.timing, backend.DispatchTime{ID: id, Time: time.Since(begin)})
		}
	}
	t := backend.Timing{Total: time.Since(start)}
	if e.profile {
		t.Dispatches = append([]backend.DispatchTime(nil), e.timing...)
	}
	return done{timing: t}, nil
}

// bytes resolves a view.
func (e *executable) bytes(v ir.View, params []uint32) []byte {
	off := v.Off.Eval(params)
	end := off + v.Len.Eval(params)
	return e.mem[v.Mem][off:end:end]
}

func (e *executable) run(s *step, params []uint32) (err error) {
	switch n := s.node.(type) {
	case *ir.Copy:
		dst, src := e.bytes(n.Dst, params), e.bytes(n.Src, params)
		for len(dst) > 0 {
			if stopped(e.stop) {
				return errStopped
			}
			k := copy(dst[:min(len(dst), pieceBytes)], src)
			dst, src = dst[k:], src[k:]
			if k == 0 {
				break // the source is shorter
			}
		}
		return nil
	case *ir.Fill:
		for dst := e.bytes(n.Dst, params); len(dst) > 0; {
			if stopped(e.stop) {
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
		if err := e.resolve(s, n, params); err != nil {
			return err
		}
		if slices.Contains(e.call.Threads[:], 0) {
			return nil // a grid without threads does nothing, whatever the arguments
		}
		return e.device.pool.run(s.kernel, &e.call)
	}
	return nil
}

// pieceBytes is what is copied or filled before a look whether to go on.
const pieceBytes = 16 << 20

// Work implements [backend.Modelled].
func (e *executable) Work(params []uint32) float64 {
	e.device.mu.Lock()
	defer e.device.mu.Unlock()
	total := 0.0
	for i := range e.steps {
		total += max(0, e.work(&e.steps[i], params))
	}
	return total
}

// secondsPerByte is what copying and filling take on one core.
const secondsPerByte = 0.2e-9

func (e *executable) work(s *step, params []uint32) (seconds float64) {
	// A kernel whose arguments make no sense says so when it runs.
	defer func() {
		if recover() != nil {
			seconds = 0
		}
	}()
	switch n := s.node.(type) {
	case *ir.Copy:
		return secondsPerByte * float64(n.Dst.Len.Eval(params))
	case *ir.Fill:
		return secondsPerByte * float64(n.Dst.Len.Eval(params))
	case *ir.Dispatch:
		e.arguments(s, n, params)
		e.grid(n, params)
		if slices.Contains(e.call.Threads[:], 0) {
			return 0
		}
		return 1e-9 * float64(max(0, s.kernel.Units(&e.call))) * s.kernel.Cost(&e.call)
	}
	return 0
}

// resolve fills e.call with the dispatch's arguments and grid.
func (e *executable) resolve(s *step, n *ir.Dispatch, params []uint32) error {
	e.arguments(s, n, params)
	e.grid(n, params)
	if n.Indirect == nil {
		return nil
	}
	return e.indirect(n, params)
}

// indirect takes from memory what the dispatch has there.
func (e *executable) indirect(n *ir.Dispatch, params []uint32) error {
	for i := range n.Indirect.Offsets {
		o := &n.Indirect.Offsets[i]
		var word [8]byte
		copy(word[:], e.bytes(o.At, params))
		v := n.Binding(o.Slot).View
		off, length := int64(binary.LittleEndian.Uint64(word[:])), v.Len.Eval(params)
		if size := int64(len(e.mem[v.Mem])); off < 0 || off > size-length {
			return fmt.Errorf("%s: takes the offset of %s from memory, and finds %d in %s", n.ID, e.graph.FormatView(v), off, e.graph.FormatView(o.At))
		}
		data := e.mem[v.Mem][off : off+length : off+length]
		e.call.Device[o.Slot], e.call.Constant[o.Slot] = data, data
	}
	at := n.Counts()
	if at == nil {
		return nil
	}
	counts := e.bytes(*at, params)
	for i := range n.Grid {
		v, most := int(binary.LittleEndian.Uint32(counts[4*i:])), e.call.Groups[i]
		if v > most {
			return fmt.Errorf("%s: takes its grid from %s, where %d threadgroups stand in dimension %d: the graph says at most %d", n.ID, e.graph.FormatView(*at), v, i, most)
		}
		e.call.Groups[i], e.call.Threads[i] = v, v*int(n.Threadgroup[i])
	}
	return nil
}

// arguments fills e.call with the dispatch's arguments.
func (e *executable) arguments(s *step, n *ir.Dispatch, params []uint32) {
	c := &e.call
	k := &e.graph.Kernels[n.Kernel]
	clear(c.Device[:])
	clear(c.Constant[:])
	c.Constants = k.Constants
	c.stop = e.stop
	scalar := s.scalars
	for i := range n.Bindings {
		b := &n.Bindings[i]
		var data []byte
		switch b.Kind {
		case ir.BindView:
			data = e.bytes(b.View, params)
		case ir.BindBytes:
			data = b.Bytes
		case ir.BindScalar:
			data = e.scalars[scalar : scalar+8]
			scalar += 8
			if b.Type == ir.F32 {
				binary.LittleEndian.PutUint64(data, uint64(params[b.Expr.Terms()[0].Param]))
			} else {
				binary.LittleEndian.PutUint64(data, uint64(b.Expr.Eval(params)))
			}
		}
		// An argument of either space may be bound either way; see Call.
		c.Device[b.Slot], c.Constant[b.Slot] = data, data
	}
}

// grid fills e.call with the dispatch's grid; of one in memory with the greatest.
func (e *executable) grid(n *ir.Dispatch, params []uint32) {
	c := &e.call
	for i, g := range n.Grid {
		v, tg := int(g.Eval(params)), int(n.Threadgroup[i])
		c.Group[i] = tg
		if n.GridKind == ir.Threads {
			c.Threads[i], c.Groups[i] = v, (v+tg-1)/tg
		} else {
			c.Threads[i], c.Groups[i] = v*tg, v
		}
	}
}
