package record

import (
	"fmt"
	"math"
	"slices"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/ir"
)

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
	return e.addMemory(m)
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
// the recording as it is. Where the device keeps the memory for itself, Bytes is such
// a mistake: [Encoder.Read] and [Encoder.Write] copy.
func (e *Encoder) Bytes(t Tensor) ([]byte, error) {
	at, n, err := e.reach("Bytes", &t)
	if err != nil {
		return nil, err
	}
	b := at.Bytes(n)
	if b == nil {
		return nil, fmt.Errorf("record %s: Bytes of %s: the host does not see this memory of %s: Read and Write copy", e.g.Name, e.tensorName(t), e.on.Name())
	}
	return b, nil
}

// Read copies bytes of t to the host, from its first element on, as many as to has. It may
// be called when [Encoder.Bytes] may be, on any device.
func (e *Encoder) Read(t Tensor, to []byte) error {
	at, n, err := e.reach("Read", &t)
	if err == nil && int64(len(to)) > n {
		err = fmt.Errorf("record %s: Read of %s: it has %d bytes, not %d", e.g.Name, e.tensorName(t), n, len(to))
	}
	if err != nil {
		return err
	}
	if from := at.Bytes(int64(len(to))); from != nil {
		copy(to, from)
		return nil
	}
	return backend.Wait(e.ctx)(e.device.queue.Download(e.ctx, to, at))
}

// Write copies bytes of the host to t, from its first element on. It may be called when
// bytes of [Encoder.Bytes] may be written, on any device.
func (e *Encoder) Write(t Tensor, data []byte) error {
	at, n, err := e.reach("Write", &t)
	if err == nil && int64(len(data)) > n {
		err = fmt.Errorf("record %s: Write of %s: it has %d bytes, not %d", e.g.Name, e.tensorName(t), n, len(data))
	}
	if err == nil && e.g.Memories[t.Mem].Kind == ir.Weight {
		err = fmt.Errorf("record %s: Write of %s, a weight", e.g.Name, e.tensorName(t))
	}
	if err != nil {
		return err
	}
	return e.device.store(e.ctx, at, data)
}

// reach returns where t lies, of how many bytes, if the host may touch it now.
func (e *Encoder) reach(method string, t *Tensor) (at backend.Place, n int64, err error) {
	fail := func(format string, args ...any) (backend.Place, int64, error) {
		return at, 0, fmt.Errorf("record %s: %s"+format, append([]any{e.g.Name, method}, args...)...)
	}
	switch {
	case e.dead != nil:
		return at, 0, e.dead
	case e.on == nil:
		return fail(": nothing is executed here, so that %s has no bytes", e.tensorName(*t))
	case t.owner != e.number:
		return fail(": %s", notOurs)
	case t.bad != nil:
		return fail(": %s", *t.bad)
	case !e.alive(t):
		return fail(": %s was given back before", e.tensorName(*t))
	case t.Mem < 0 || int(t.Mem) >= len(e.places) || !t.Off.IsConst():
		return fail(": %s is no memory at a constant place", e.tensorName(*t))
	}
	_, n, ok := e.g.Range(t.view().Len)
	if size := e.g.Memories[t.Mem].Size; !ok || t.Off.Const < 0 || n < 0 || t.Off.Const > size-n {
		return fail(": %s reaches outside its memory of %d bytes", e.tensorName(*t), size)
	}
	root, off := e.g.Root(t.Mem)
	if err := e.device.idle(root); err != nil {
		return fail(" of %s: %w", e.tensorName(*t), err)
	}
	if err := e.device.ensure(e.ctx, root); err != nil {
		return at, 0, err
	}
	return backend.At(e.places[root].buffer).Add(off + t.Off.Const), n, nil
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
	return e.device.close()
}
