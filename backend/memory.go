package backend

import (
	"context"
	"errors"
	"fmt"
	"unsafe"

	"github.com/mlxc/mlxc/ir"
)

// BufferSpec describes a buffer to allocate.
type BufferSpec struct {
	Size  int64 // bytes, at least 0
	Align int64 // alignment of its first byte, a power of two; 0: [Info.Alignment]
	// Storage Shared asks for memory that the host can see, which the device gives if it
	// has such memory. The host need not see Private memory.
	Storage ir.Storage
	// Use is the kind of memory that it will hold.
	Use ir.MemKind
}

// Spec returns the specification of a buffer for a memory of a graph: scratch is private, other
// kinds are as the graph says.
func Spec(m *ir.Memory) BufferSpec {
	s := BufferSpec{Size: m.Size, Align: m.Align, Storage: m.Storage, Use: m.Kind}
	if m.Kind == ir.Scratch {
		s.Storage = ir.Private
	}
	return s
}

// Buffer is memory of a device, which commands can use. It may be closed when nothing that uses
// it is in flight.
type Buffer interface {
	Size() int64
	// Bytes is the memory as the host sees it, or nil. The host may read it while
	// nothing in flight writes it, and write it while nothing in flight uses it.
	Bytes() []byte
	// ReadAt copies len(p) bytes, from byte off on, to the host at once, ordered by no
	// queue. Queues of other devices call it for copies.
	ReadAt(p []byte, off int64) (int, error)
	Close() error
}

// Place is where a memory begins: a buffer and a byte in it. Many places may share a
// buffer. The zero Place means that there is none.
type Place struct {
	Buffer Buffer
	Offset int64
}

// At returns the place at the beginning of a buffer.
func At(b Buffer) Place { return Place{Buffer: b} }

// Bytes returns the n bytes from the place on, nil if the host cannot see them.
func (p Place) Bytes(n int64) []byte {
	if p.Buffer == nil {
		return nil
	}
	b := p.Buffer.Bytes()
	if b == nil {
		return nil
	}
	return b[p.Offset : p.Offset+n : p.Offset+n]
}

// Add returns the place n bytes on.
func (p Place) Add(n int64) Place { return Place{p.Buffer, p.Offset + n} }

// Holds returns an error if there is no room for n bytes from the place on.
func (p Place) Holds(n int64) error {
	switch {
	case p.Buffer == nil:
		return errors.New("has no place")
	case p.Offset < 0 || n < 0 || p.Offset > p.Buffer.Size() || n > p.Buffer.Size()-p.Offset:
		return fmt.Errorf("needs %d bytes from byte %d on, its buffer has %d", n, p.Offset, p.Buffer.Size())
	}
	return nil
}

// AllocMemory returns a buffer of d for m, with m's initial contents: it maps a weight's bytes
// if the device can do that; else it allocates memory and calls [InitMemory].
func AllocMemory(ctx context.Context, d Device, q Queue, m *ir.Memory) (Buffer, error) {
	if page := d.Info().PageSize; m.Kind == ir.Weight && m.Init.Kind == ir.InitBlob && page > 0 && !m.Init.Blob.Made() {
		data, err := m.Init.Blob.Bytes()
		if err != nil {
			return nil, err
		}
		if at := int64(uintptr(unsafe.Pointer(unsafe.SliceData(data)))); at%page == 0 && int64(len(data))%page == 0 && len(data) > 0 {
			return d.Map(data, true)
		}
	}
	b, err := d.Alloc(Spec(m))
	if err != nil {
		return nil, err
	}
	if err := InitMemory(ctx, q, At(b), m); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// InitMemory sets the memory at p to the initial contents of m, if it has any: it writes them if
// the host can see the memory, else it uploads them by q and waits. Nothing in flight may use it.
func InitMemory(ctx context.Context, q Queue, p Place, m *ir.Memory) error {
	if m.Init.Kind == ir.InitNone || m.Init.Kind == ir.InitValues {
		return nil
	}
	if data := p.Bytes(m.Size); data != nil {
		return m.WriteInit(data)
	}
	data := []byte(nil)
	if m.Init.Kind == ir.InitBlob {
		var err error
		if data, err = m.Init.Blob.Bytes(); err != nil {
			return err
		}
		if int64(len(data)) != m.Size {
			return fmt.Errorf("initial contents have %d bytes, memory has %d", len(data), m.Size)
		}
	} else {
		data = make([]byte, m.Size)
		if err := m.WriteInit(data); err != nil {
			return err
		}
	}
	return Wait(ctx)(q.Upload(ctx, p, data))
}

// Wait waits for the operation that a method of a queue returns:
//
//	err := backend.Wait(ctx)(q.Upload(ctx, place, data))
//
// It returns only when the operation has ended. If ctx ends first, that aborts operations that
// were given ctx, and Wait waits until they have: then buffers and data are the caller's again.
func Wait(ctx context.Context) func(Pending, error) error {
	return func(p Pending, err error) error {
		if err != nil {
			return err
		}
		return p.Wait(context.WithoutCancel(ctx))
	}
}

// FrameMemory implements [Frame.Place] for most devices: it has the places that the caller gave,
// and allocates buffers for the rest.
type FrameMemory struct {
	places []Place
	own    []Buffer
}

// NewFrameMemory allocates the memories of a frame that s does not place: inputs, outputs,
// and the scratch and argument memory that commands bind.
func NewFrameMemory(d Device, p *Program, s FrameSpec) (_ *FrameMemory, err error) {
	g := p.Graph
	f := &FrameMemory{places: make([]Place, len(g.Memories))}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	for i, bound := range BoundMemories(g) {
		m := &g.Memories[i]
		root := ir.MemID(i)
		if !bound || p.Place(root).Buffer != nil || m.Kind == ir.State || m.Kind == ir.Weight {
			continue
		}
		if i < len(s.Places) && s.Places[i].Buffer != nil {
			f.places[i] = s.Places[i]
			size := m.Size
			if m.Every {
				size *= int64(max(1, s.Replays))
			}
			if err := f.places[i].Holds(size); err != nil {
				return nil, fmt.Errorf("memory %%%s %w", ir.QuoteName(m.Name), err)
			}
			continue
		}
		spec := Spec(m)
		if m.Every {
			spec.Size *= int64(max(1, s.Replays))
		}
		b, err := d.Alloc(spec)
		if err != nil {
			return nil, fmt.Errorf("memory %%%s: %w", ir.QuoteName(m.Name), err)
		}
		f.own = append(f.own, b)
		f.places[i] = At(b)
	}
	return f, nil
}

// Place implements [Frame].
func (f *FrameMemory) Place(root ir.MemID) Place {
	if root < 0 || int(root) >= len(f.places) {
		return Place{}
	}
	return f.places[root]
}

// Close closes the buffers that were allocated.
func (f *FrameMemory) Close() error {
	var errs []error
	for _, b := range f.own {
		errs = append(errs, b.Close())
	}
	f.own, f.places = nil, nil
	return errors.Join(errs...)
}

// BoundMemories returns, by memory, whether a root memory needs a place: inputs, outputs and
// states do, since the host may use them, and others if a command binds them.
func BoundMemories(g *ir.Graph) []bool {
	bound := make([]bool, len(g.Memories))
	for i := range g.Memories {
		m := &g.Memories[i]
		bound[i] = m.Alias == ir.NoMem && (m.Kind == ir.Input || m.Kind == ir.Output || m.Kind == ir.State)
	}
	each := func(v *ir.View) {
		root, _ := g.Root(v.Mem)
		bound[root] = true
	}
	for _, n := range g.Nodes {
		if c, ok := n.(ir.Command); ok {
			c.EachView(each)
		}
	}
	return bound
}
