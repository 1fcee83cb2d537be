package record

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/ir"
)

// place is what the encoder knows of a root memory beside its declaration.
type place struct {
	buffer backend.Buffer
	bytes  int64  // of the buffer
	host   []byte // [Encoder.Map]: the caller's memory
	pool   *Pool
	// serial is that of the allocation that lives in pooled memory now; 0: none.
	serial uint32
	used   uint64 // the last command buffer that binds it
	before uint64 // the one before that
	bound  uint32 // the last recording that binds it
}

// declare returns the memory of m's name, added if need be: a live engine
// declares the same memories for every token.
func (e *Encoder) declare(m ir.Memory) Tensor {
	bits := int64(m.DType.Bits())
	for _, d := range m.Shape {
		if d < 1 || d > math.MaxInt64/8/max(bits, 1) {
			e.fail("memory %%%s of shape %v: dimensions are at least 1, and a size fits 63 bits", ir.QuoteName(m.Name), m.Shape)
			return e.broken(m.DType, len(m.Shape))
		}
		bits *= d
	}
	m.Size, m.Alias = (bits+7)/8, ir.NoMem
	id, ok := e.names[m.Name]
	if ok {
		have := &e.g.Memories[id]
		if have.Kind != m.Kind || have.DType != m.DType || !slices.Equal(have.Shape, m.Shape) || !have.SameContents(&m) {
			e.fail("memory %%%s is declared again, otherwise: it is %s %s%v, not %s %s%v of these contents", ir.QuoteName(m.Name), have.Kind, have.DType, have.Shape, m.Kind, m.DType, m.Shape)
		}
	} else {
		if id = e.memory(m); id == ir.NoMem {
			return e.broken(m.DType, len(m.Shape))
		}
	}
	shape := Dims(m.Shape...)
	strides, _ := contiguous(shape)
	return Tensor{Mem: id, owner: e.number, DType: m.DType, Shape: shape, Strides: strides}
}

// maxMemory bounds the bytes of a tensor and of the arena: those of a memory of a
// graph, see [ir.Graph.Check].
const maxMemory = 1 << 47

// sizeOf returns the bytes of a row-contiguous tensor, of the greatest ones if its
// shape depends on params.
func (e *Encoder) sizeOf(t ir.DType, shape []ir.Affine) (int64, error) {
	n := t.Size()
	if n == 0 {
		return 0, fmt.Errorf("has no size: elements of this type have none of their own")
	}
	for _, d := range shape {
		lo, hi := d.Const, d.Const
		if !d.IsConst() {
			var ok bool
			if lo, hi, ok = e.g.Range(d); !ok {
				lo = -1
			}
		}
		if lo < 0 || hi < 1 {
			return 0, fmt.Errorf("has no size: dimensions are at least 1 (one that depends on params is at least 0)")
		}
		if n > maxMemory/hi {
			return 0, fmt.Errorf("is too much: more than %d bytes", int64(maxMemory))
		}
		n *= hi
	}
	return n, nil
}

// memory adds m; its alias, if any, is there already. NoMem: it is invalid.
func (e *Encoder) memory(m ir.Memory) ir.MemID {
	alone := m
	alone.Alias, alone.AliasOff = ir.NoMem, 0
	if !e.valid(&ir.Graph{Memories: []ir.Memory{alone}}) {
		return ir.NoMem
	}
	id := ir.MemID(len(e.g.Memories))
	e.g.Memories = append(e.g.Memories, m)
	e.places = append(e.places, place{})
	e.names[m.Name] = id
	return id
}

// broken is what a failed operation gives: something of the asked rank.
func (e *Encoder) broken(t ir.DType, rank int) Tensor {
	shape := make([]ir.Affine, rank)
	for i := range shape {
		shape[i] = ir.Const(1)
	}
	return Tensor{Mem: ir.NoMem, owner: e.number, DType: t, Shape: shape, Strides: make([]int64, rank)}
}

// Weight adds a weight with the given contents.
func (e *Encoder) Weight(name string, contents *ir.Blob, t ir.DType, shape ...int64) Tensor {
	return e.declare(ir.Memory{Name: name, Kind: ir.Weight, DType: t, Shape: shape, Init: ir.Init{Kind: ir.InitBlob, Blob: contents}})
}

// RandomWeight adds a weight with pseudo-random contents (see
// [ir.Memory.WriteInit]): for tests and benchmarks.
func (e *Encoder) RandomWeight(name string, seed uint64, t ir.DType, shape ...int64) Tensor {
	return e.declare(ir.Memory{Name: name, Kind: ir.Weight, DType: t, Shape: shape, Init: ir.Init{Kind: ir.InitRandom, Seed: seed}})
}

// Input adds a memory that the host fills before each replay.
func (e *Encoder) Input(name string, t ir.DType, shape ...int64) Tensor {
	return e.declare(ir.Memory{Name: name, Kind: ir.Input, DType: t, Shape: shape})
}

// Output adds a memory that the host reads after each replay.
func (e *Encoder) Output(name string, t ir.DType, shape ...int64) Tensor {
	return e.declare(ir.Memory{Name: name, Kind: ir.Output, DType: t, Shape: shape})
}

// State adds a memory that survives from replay to replay, at first all zero.
func (e *Encoder) State(name string, t ir.DType, shape ...int64) Tensor {
	return e.declare(ir.Memory{Name: name, Kind: ir.State, DType: t, Shape: shape, Init: ir.FillU32(0)})
}

// StateFrom is [Encoder.State] with first contents: ir.FillU32(math.Float32bits(1))
// for ones, ir.Init{Kind: ir.InitRandom, Seed: 1} for f32 numbers in [−1, 1), a blob.
func (e *Encoder) StateFrom(name string, init ir.Init, t ir.DType, shape ...int64) Tensor {
	return e.declare(ir.Memory{Name: name, Kind: ir.State, DType: t, Shape: shape, Init: init})
}

// Bytes returns the memory of t as the host sees it, from t's first element to its
// last, of the greatest shape if that depends on params: to fill an input, which
// may be done until the commands that read it are committed; to read an output or
// state, or to write a state, when the commands that bind it have ended. Ask anew
// for each recording: the slice is of no use after the commit of a command that
// binds it, [Pool.Trim] or [Encoder.Close]. Bytes of a weight are the caller's
// contents and must not be written. It tells of its own mistakes only, and leaves
// the recording as it is.
func (e *Encoder) Bytes(t Tensor) ([]byte, error) {
	if e.dead != nil {
		return nil, e.dead
	}
	if e.on == nil {
		return nil, fmt.Errorf("record %s: Bytes: nothing is executed here, so that %s has no bytes", e.g.Name, e.tensorName(t))
	}
	if t.owner != e.number {
		return nil, fmt.Errorf("record %s: Bytes: %s", e.g.Name, notOurs)
	}
	if t.bad != nil {
		return nil, fmt.Errorf("record %s: Bytes: %s", e.g.Name, *t.bad)
	}
	if !e.alive(&t) {
		return nil, fmt.Errorf("record %s: Bytes: %s was given back before", e.g.Name, e.tensorName(t))
	}
	if t.Mem < 0 || int(t.Mem) >= len(e.places) || !t.Off.IsConst() {
		return nil, fmt.Errorf("record %s: Bytes: %s is no memory at a constant place", e.g.Name, e.tensorName(t))
	}
	_, n, ok := e.g.Range(t.view().Len)
	if size := e.g.Memories[t.Mem].Size; !ok || t.Off.Const < 0 || n < 0 || t.Off.Const > size-n {
		return nil, fmt.Errorf("record %s: Bytes: %s reaches outside its memory of %d bytes", e.g.Name, e.tensorName(t), size)
	}
	root, off := e.g.Root(t.Mem)
	p := &e.places[root]
	if err := e.idle(p, e.g.Memories[root].Kind.ReadOnly()); err != nil {
		return nil, fmt.Errorf("record %s: Bytes of %s: %w", e.g.Name, e.tensorName(t), err)
	}
	if err := e.ensure(root); err != nil {
		return nil, err
	}
	from := off + t.Off.Const
	return p.buffer.Bytes()[from : from+n : from+n], nil
}

// notOurs is what is wrong with a tensor of another encoder: its memory's number
// is that of another memory here.
const notOurs = "a tensor that did not come from this encoder"

func (e *Encoder) tensorName(t Tensor) string {
	if t.Mem < 0 || int(t.Mem) >= len(e.g.Memories) {
		return "a tensor of no memory"
	}
	return e.g.FormatView(t.view())
}

// ensure allocates the memory of root.
func (e *Encoder) ensure(root ir.MemID) error {
	p, m := &e.places[root], &e.g.Memories[root]
	if p.buffer != nil && p.bytes >= m.Size {
		return nil
	}
	var b backend.Buffer
	var err error
	if p.host != nil {
		b, err = e.on.Map(p.host)
	} else {
		b, err = backend.AllocMemory(e.on, m)
	}
	if err != nil {
		return fmt.Errorf("record %s: memory %%%s: %w", e.g.Name, ir.QuoteName(m.Name), err)
	}
	if p.buffer != nil { // a scratch memory has grown; what it holds stays
		if d := e.device; p.used <= d.ended || p.used >= d.current() && p.before <= d.ended {
			// nobody else uses it
		} else {
			e.counters.add(syncs, 1)
		}
		e.device.drain(p.used) // who asks for their errors is told
		copy(b.Bytes(), p.buffer.Bytes()[:p.bytes])
		if err := p.buffer.Close(); err != nil {
			return errors.Join(err, b.Close())
		}
	}
	p.buffer, p.bytes = b, m.Size
	return nil
}

// Close abandons what is not committed, waits for what is, and releases all
// memory; slices of [Encoder.Bytes] end here. It returns the errors of command
// buffers that nobody has asked for. Whatever follows is a mistake; a second Close
// does nothing.
func (e *Encoder) Close() error {
	e.Discard()
	if e.closed {
		return nil
	}
	e.closed = true
	e.kill("it was closed")
	if e.device == nil {
		return nil
	}
	return e.device.close(e.places)
}
