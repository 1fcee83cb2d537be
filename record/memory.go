package record

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/term"
)

// declare returns the memory that has m's name, and adds it if there is none. A live
// engine declares the same memories for every token.
func (e *Encoder) declare(m ir.Memory) Tensor {
	bits := int64(m.DType.Bits())
	for _, d := range m.Shape {
		if d < 1 || d > math.MaxInt64/8/max(bits, 1) {
			e.fail("memory %%%s of shape %v: want dimensions of at least 1, and a size in bits that fits in 63 bits", ir.QuoteName(m.Name), m.Shape)
			return e.broken(m.DType, len(m.Shape))
		}
		bits *= d
	}
	m.Size, m.Alias = (bits+7)/8, ir.NoMem
	id, ok := e.names[m.Name]
	if ok {
		have := &e.g.Memories[id]
		switch {
		case have.Kind != m.Kind || have.DType != m.DType || !slices.Equal(have.Shape, m.Shape):
			e.fail("memory %%%s is declared again as %s %s%v, but it is %s %s%v", ir.QuoteName(m.Name), m.Kind, m.DType, m.Shape, have.Kind, have.DType, have.Shape)
		case !have.SameContents(&m):
			e.fail("memory %%%s is declared again with other contents", ir.QuoteName(m.Name))
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

// maxMemory bounds the bytes of a tensor and of the arena. It is the bound that
// [ir.Graph.Check] sets on every memory.
const maxMemory = 1 << 47

// sizeOf returns the bytes of a row-contiguous tensor. If its shape depends on params, it
// returns the max size that any values of the params give.
func (e *Encoder) sizeOf(t ir.DType, shape []ir.Affine) (int64, error) {
	n := t.Size()
	if n == 0 {
		return 0, fmt.Errorf("has no size: an element of this type is not a whole number of bytes")
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
			return 0, fmt.Errorf("has no size: want dimensions of at least 1 (0 is allowed for some values of params)")
		}
		if n > maxMemory/hi {
			return 0, fmt.Errorf("is too large: more than %d bytes", int64(maxMemory))
		}
		n *= hi
	}
	return n, nil
}

// memory adds m, and returns NoMem after reporting it if m is invalid. If m is an alias,
// its parent must have been added before.
func (e *Encoder) memory(m ir.Memory) ir.MemID {
	alone := m
	alone.Alias, alone.AliasOff = ir.NoMem, 0
	if !e.valid(&ir.Graph{Memories: []ir.Memory{alone}}) {
		return ir.NoMem
	}
	return e.addMemory(m)
}

// broken returns a tensor of the given rank in place of the result of a failed operation,
// so that the calls that follow can go on until Finish reports the mistake.
func (e *Encoder) broken(t ir.DType, rank int) Tensor {
	shape := make([]ir.Affine, rank)
	for i := range shape {
		shape[i] = ir.Const(1)
	}
	return Tensor{Mem: ir.NoMem, owner: e.number, DType: t, Shape: shape, Strides: make([]int64, rank)}
}

// Weight adds a weight with the given contents: memory that no command writes. shape has
// its dimensions, outermost first; the same holds for all memories below.
func (e *Encoder) Weight(name string, contents *ir.Blob, t ir.DType, shape ...int64) Tensor {
	return e.declare(ir.Memory{Name: name, Kind: ir.Weight, DType: t, Shape: shape, Init: ir.Init{Kind: ir.InitBlob, Blob: contents}})
}

// Elements returns numbers as elements of type t, which is f32, f16 or bf16, for the contents of a weight. They are
// rounded to the nearest, ties to even.
func Elements(t ir.DType, values []float32) []byte {
	out := make([]byte, 0, int64(len(values))*t.Size())
	for _, v := range values {
		switch t {
		case ir.F16:
			out = binary.LittleEndian.AppendUint16(out, term.F16Bits(float64(v)))
		case ir.BF16:
			out = binary.LittleEndian.AppendUint16(out, uint16(math.Float32bits(float32(term.BF16Round(float64(v))))>>16))
		default:
			out = binary.LittleEndian.AppendUint32(out, math.Float32bits(v))
		}
	}
	return out
}

// Numbers is the inverse of [Elements]: elements of type t, which is f32, f16 or bf16, as numbers.
func Numbers(t ir.DType, data []byte) []float32 {
	out := make([]float32, int64(len(data))/t.Size())
	for i := range out {
		switch t {
		case ir.F16:
			out[i] = float32(term.F16Value(binary.LittleEndian.Uint16(data[2*i:])))
		case ir.BF16:
			out[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(data[2*i:])) << 16)
		default:
			out[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
		}
	}
	return out
}

// RandomWeight adds a weight with pseudo-random contents ([ir.Memory.WriteInit]), for tests
// and benchmarks.
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

// State adds a memory whose contents survive from replay to replay. It begins as zeros.
func (e *Encoder) State(name string, t ir.DType, shape ...int64) Tensor {
	return e.declare(ir.Memory{Name: name, Kind: ir.State, DType: t, Shape: shape, Init: ir.FillU32(0)})
}

// StateFrom is [Encoder.State] with given first contents: for example
// ir.FillU32(math.Float32bits(1)) for ones, ir.Init{Kind: ir.InitRandom, Seed: 1} for f32
// numbers in [−1, 1), or a blob.
func (e *Encoder) StateFrom(name string, init ir.Init, t ir.DType, shape ...int64) Tensor {
	return e.declare(ir.Memory{Name: name, Kind: ir.State, DType: t, Shape: shape, Init: init})
}

// Bytes returns the memory of t as the host sees it, from t's first element to its last.
// If the shape of t depends on params, the slice has room for the max shape.
//
// An input may be filled until the commands that read it are committed. An output or
// state may be read, and a state written, once the commands that bind it have ended.
// Bytes of a weight are the caller's contents and must not be written. Call Bytes again
// for each recording: the slice must not be used after the commit of a command that binds
// the memory, after [Pool.Trim], or after [Encoder.Close].
//
// The error is about this call alone, and the recording goes on unchanged. It is an error
// if the host cannot see the memory of this device: then [Encoder.Read] and
// [Encoder.Write] copy.
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

// Read copies len(to) bytes of t, from its first element on, to the host. It works on any
// device, and at the times at which bytes of [Encoder.Bytes] may be read.
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

// Write copies data to t, from its first element on. It works on any device, and at the
// times at which bytes of [Encoder.Bytes] may be written.
func (e *Encoder) Write(t Tensor, data []byte) error {
	at, n, err := e.reach("Write", &t)
	if err == nil && int64(len(data)) > n {
		err = fmt.Errorf("record %s: Write of %s: it has %d bytes, not %d", e.g.Name, e.tensorName(t), n, len(data))
	}
	if err == nil && e.g.Memories[t.Mem].Kind == ir.Weight {
		err = fmt.Errorf("record %s: Write of %s, which is a weight: its contents are given when it is declared", e.g.Name, e.tensorName(t))
	}
	if err != nil {
		return err
	}
	return e.device.store(e.ctx, at, data)
}

// reach returns where t lies and how many bytes it has. It returns an error if the host
// may not touch them now.
func (e *Encoder) reach(method string, t *Tensor) (at backend.Place, n int64, err error) {
	fail := func(format string, args ...any) (backend.Place, int64, error) {
		return at, 0, fmt.Errorf("record %s: %s"+format, append([]any{e.g.Name, method}, args...)...)
	}
	switch {
	case e.dead != nil:
		return at, 0, e.dead
	case e.on == nil:
		return fail(": nothing is executed here, so %s has no bytes", e.tensorName(*t))
	case t.owner != e.number:
		return fail(": %s", notOurs)
	case t.bad != nil:
		return fail(": %s", *t.bad)
	case !e.alive(t):
		return fail(": %s was given back before", e.tensorName(*t))
	case t.Mem < 0 || int(t.Mem) >= len(e.places) || !t.Off.IsConst():
		return fail(": %s does not begin at a constant offset of a memory", e.tensorName(*t))
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

// notOurs describes a tensor of another encoder in messages. It must be refused, because
// the number of its memory stands for a different memory in this encoder.
const notOurs = "a tensor that did not come from this encoder"

func (e *Encoder) tensorName(t Tensor) string {
	if t.Mem < 0 || int(t.Mem) >= len(e.g.Memories) {
		return "a tensor of no memory"
	}
	return e.g.FormatView(t.view())
}

// Close abandons what is not committed, waits for what is committed, and releases all
// memory, so that slices of [Encoder.Bytes] must not be used any more. It returns the
// errors of command buffers that were not returned before. All later calls are mistakes,
// but a second Close does nothing.
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
