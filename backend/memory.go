package backend

import (
	"context"
	"errors"
	"fmt"
	"unsafe"

	"github.com/mlxc/mlxc/ir"
)

// BufferSpec says what a buffer is for.
type BufferSpec struct {
	Size  int64 // bytes, at least 0
	Align int64 // of its first byte, a power of two; 0: [Info.Alignment]
	// Storage Shared wants bytes that the host can see, and gets them where the
	// device has such memory. Private memory is the device's alone.
	Storage ir.Storage
	// Use is the kind of memory that it will hold.
	Use ir.MemKind
}

// Spec returns what a memory of a graph needs: scratch is the device's alone, the
// rest is as the graph says.
func Spec(m *ir.Memory) BufferSpec {
	s := BufferSpec{Size: m.Size, Align: m.Align, Storage: m.Storage, Use: m.Kind}
	if m.Kind == ir.Scratch {
		s.Storage = ir.Private
	}
	return s
}

// Buffer is memory that a device can bind. A buffer is closed when nothing that
// uses it is in flight.
type Buffer interface {
	Size() int64
	// Bytes is the memory as the host sees it, or nil. The host may read it while
	// nothing in flight writes it, and write it while nothing in flight uses it.
	Bytes() []byte
	// ReadAt copies len(p) bytes from byte off on to the host, ordered by no queue:
	// it is what a queue of another device calls for a copy.
	ReadAt(p []byte, off int64) (int, error)
	Close() error
}

// Place is where a memory begins: a byte of a buffer. Many places may share a
// buffer. The zero Place is none.
type Place struct {
	Buffer Buffer
	Offset int64
}

// At returns the place of the whole buffer.
func At(b Buffer) Place { return Place{Buffer: b} }

// Bytes returns n bytes from the place on as the host sees them, nil if it cannot.
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

// Holds reports, as an error, a place without room for n bytes.
func (p Place) Holds(n int64) error {
	switch {
	case p.Buffer == nil:
		return errors.New("has no place")
	case p.Offset < 0 || n < 0 || p.Offset > p.Buffer.Size() || n > p.Buffer.Size()-p.Offset:
		return fmt.Errorf("needs %d bytes from byte %d on, its buffer has %d", n, p.Offset, p.Buffer.Size())
	}
	return nil
}

// AllocMemory returns a buffer of d for m, with m's first contents: a weight's bytes as they
// are, if the device can map them; else a copy, see [InitMemory].
func AllocMemory(ctx context.Context, d Device, q Queue, m *ir.Memory) (Buffer, error) {
	if page := d.Info().PageSize; m.Kind == ir.Weight && m.Init.Kind == ir.InitBlob && page > 0 {
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

// InitMemory gives the memory that lies at p the first contents of m, if it has any: written
// where the host can see it, uploaded by q and waited for elsewhere. Nothing in flight uses it.
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

// Wait waits for what a method of a queue returned:
//
//	err := backend.Wait(ctx)(q.Upload(ctx, place, data))
//
// It returns when the operation has ended, also where ctx ends, which aborts what was given ctx:
// buffers and data are the caller's again then.
func Wait(ctx context.Context) func(Pending, error) error {
	return func(p Pending, err error) error {
		if err != nil {
			return err
		}
		return p.Wait(context.WithoutCancel(ctx))
	}
}

// FrameMemory is what most devices need for [Frame.Place]: the places that the caller gave
// and buffers for the rest.
type FrameMemory struct {
	places []Place
	own    []Buffer
}

// NewFrameMemory allocates what a frame needs and s does not place: inputs, outputs,
// scratch and argument memory that commands bind.
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

// Close releases what was allocated.
func (f *FrameMemory) Close() error {
	var errs []error
	for _, b := range f.own {
		errs = append(errs, b.Close())
	}
	f.own, f.places = nil, nil
	return errors.Join(errs...)
}

// BoundMemories says of each root memory whether it needs a place: inputs, outputs and states
// do, as the host may ask for them, and others if a command binds them.
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
