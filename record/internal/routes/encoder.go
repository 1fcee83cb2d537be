package routes

import (
	"fmt"
	"math"

	"github.com/mlxc/mlxc/ir"
)

// Chip is what MLX asks of a GPU: its generation and the letter of its size (g phone or base, p pro or
// phone, s max, d ultra), both of the name of its architecture, as 13 and g of applegpu_g13g.
type Chip struct {
	Generation int
	Letter     byte
}

// Dispatch is one message to the GPU.
type Dispatch struct {
	Commit    bool // the command buffer before it is committed, and it begins another
	Barrier   bool // a barrier stands before it
	Kernel    string
	Constants []Constant
	Threads   bool // the grid counts threads, else threadgroups
	Grid      [3]ir.Extent
	Group     [3]int64 // threads of a threadgroup
	Arguments []Argument
}

// Constant is a function constant: an int (4 bytes) or a bool.
type Constant struct {
	Index int
	Bool  bool
	Value int64
}

// Argument is what a slot is bound to: a place in a buffer, or inline numbers.
type Argument struct {
	Slot    int
	Buffer  *Buffer // nil for numbers
	Written bool    // the buffer is
	Touched Array   // what the kernel touches of the buffer; not present where only the kernel or its arguments know
	Offset  Size
	Values  []Number
}

// Number is little-endian and has 1, 4 or 8 bytes. A float is its bits.
type Number struct {
	Value Size
	Bytes int
}

// Encoder takes operations and keeps what is sent for them. The zero value but for Chip and Most is
// ready. An operation that the encoder cannot send as asked leaves an error in Err.
type Encoder struct {
	Chip    Chip
	Version Version
	Most    []uint32 // the greatest value of each param
	// Has reports whether there is a kernel; nil stands for all of MLX's. Where MLX has several kernels for an
	// operation, the first one that there is is taken, in the order in which MLX prefers them.
	Has func(kernel string) bool
	// Flat says that batches of quantized matrices, and of what they are multiplied with, are sent as one dimension, as
	// our kernels are declared. MLX sends them as they are.
	Flat bool
	// Once says that products of more than one row with a transposed matrix are those of many rows, which MLX takes from some number of rows on.
	Once bool
	Sent []Dispatch
	Err  error

	next Dispatch
	// What MLX's encoder knows of hazards: buffers bound and written since the last barrier, and those
	// of the dispatch being put together.
	bound, written, nextBound, nextWritten map[*Buffer]bool
	hazard                                 bool
	apart                                  map[*Buffer]bool // written by dispatches that write disjoint places
	// What the command buffer holds so far.
	dispatches int64
	elements   int64
	seen, read map[*Buffer]bool // bound, and read by an operation but not written in place
	commit     bool
}

// commandBuffers says after how many dispatches, or how many 2²⁰ elements of the buffers bound, MLX commits a
// command buffer, by the letter of the chip (0 for the rest). It does so between operations only.
var commandBuffers = map[byte]struct{ dispatches, elements int64 }{
	'p': {20, 40}, 'g': {40, 40}, 's': {50, 50}, 'd': {50, 50}, 0: {40, 40},
}

// begin is called first by each operation that MLX knows as one.
func (e *Encoder) begin() {
	limit, ok := commandBuffers[e.Chip.Letter]
	if !ok {
		limit = commandBuffers[0]
	}
	if e.dispatches <= limit.dispatches && e.elements>>20 <= limit.elements {
		return
	}
	e.commit, e.dispatches, e.elements, e.hazard = true, 0, 0, false
	for _, set := range []map[*Buffer]bool{e.seen, e.read, e.bound, e.written} {
		clear(set)
	}
}

// Last returns a for the last operation that needs it: spare, unless an operation of the same command buffer
// has read it. MLX holds what was read until the command buffer completes.
func (e *Encoder) Last(a Array) Array {
	e.begin()
	a.Spare = !e.read[a.Buffer]
	return a
}

// spareBytes is by how much a buffer may be longer than what is needed of it.
const spareBytes = 16384

// takes reports whether an elementwise result of n elements of type t goes into the memory of a: that is
// spare, its elements have the size of t, and its buffer is not much longer than the result.
func (e *Encoder) takes(a Array, t ir.DType, n Size) bool {
	return a.Spare && a.Type.Size() == t.Size() && e.at(a.Buffer.Bytes) <= e.at(n)*t.Size()+spareBytes
}

func (e *Encoder) fail(format string, args ...any) {
	if e.Err == nil {
		e.Err = fmt.Errorf(format, args...)
	}
}

// at returns the greatest value of a size, by which routes are chosen.
func (e *Encoder) at(s Size) int64 { return s.Eval(e.Most) }

// fixed returns a size that must not depend on a param; of one that does, after an error, some number.
func (e *Encoder) fixed(s Size) int64 {
	if !s.IsConst() {
		e.fail("a size that a route needs as a number depends on a param")
		return max(e.at(s), 1)
	}
	return s.Const
}

func (e *Encoder) allFixed(s []Size) []int64 {
	out := make([]int64, len(s))
	for i := range s {
		out[i] = e.fixed(s[i])
	}
	return out
}

// temporary returns a new row-contiguous array.
func (e *Encoder) temporary(t ir.DType, shape ...Size) Array {
	a := Array{Type: t, Shape: shape, Strides: rowStrides(shape)}
	a.Buffer = &Buffer{Bytes: a.Elements().Scale(t.Size())}
	return a
}

// number returns an array of one element, without dimensions, that the host fills.
func (e *Encoder) number(t ir.DType, v float32) Array {
	a := e.temporary(t)
	a.Buffer.Number, a.Buffer.Value = t, v
	return a
}

// like returns a new array with the layout of a, of type t.
func (e *Encoder) like(a Array, t ir.DType) Array {
	return Array{Type: t, Shape: a.Shape, Strides: a.Strides, Buffer: &Buffer{Bytes: a.stored().Scale(t.Size())}}
}

func (e *Encoder) kernel(format string, args ...any) {
	e.next.Kernel = fmt.Sprintf(format, args...)
}

func (e *Encoder) constant(index int, value bool) {
	c := Constant{Index: index, Bool: true}
	if value {
		c.Value = 1
	}
	e.next.Constants = append(e.next.Constants, c)
}

func (e *Encoder) input(slot int, a Array) { e.inputAt(slot, a, ir.Const(0)) }

// inputAt binds a with more bytes of offset.
func (e *Encoder) inputAt(slot int, a Array, more Size) {
	e.mark(&e.read, a.Buffer)
	e.bind(slot, a, more)
}

func (e *Encoder) bind(slot int, a Array, more Size) {
	arg := Argument{Slot: slot, Buffer: a.Buffer, Offset: a.Offset.Add(more)}
	if isZero(more) {
		arg.Touched = a
	}
	e.next.Arguments = append(e.next.Arguments, arg)
	if !e.seen[a.Buffer] {
		e.mark(&e.seen, a.Buffer)
		e.elements += e.at(a.stored())
	}
	e.mark(&e.nextBound, a.Buffer)
	e.hazard = e.hazard || e.written[a.Buffer]
}

func (e *Encoder) output(slot int, a Array) { e.outputAt(slot, a, ir.Const(0)) }

func (e *Encoder) outputAt(slot int, a Array, more Size) {
	e.bind(slot, a, more)
	e.next.Arguments[len(e.next.Arguments)-1].Written = true
	delete(e.read, a.Buffer)
	if e.apart != nil {
		e.apart[a.Buffer] = true
		return
	}
	e.mark(&e.nextWritten, a.Buffer)
	e.hazard = e.hazard || e.bound[a.Buffer]
}

// together runs f, whose dispatches write disjoint places of the same buffers.
func (e *Encoder) together(f func()) {
	e.apart = map[*Buffer]bool{}
	f()
	for b := range e.apart {
		e.mark(&e.written, b)
	}
	e.apart = nil
}

func (e *Encoder) mark(set *map[*Buffer]bool, b *Buffer) {
	if *set == nil {
		*set = map[*Buffer]bool{}
	}
	(*set)[b] = true
}

// i32 binds numbers of 4 bytes, one after another, and i64 numbers of 8 bytes.
func (e *Encoder) i32(slot int, values ...Size) { e.numbers(slot, 4, values) }
func (e *Encoder) i64(slot int, values ...Size) { e.numbers(slot, 8, values) }

func (e *Encoder) numbers(slot, bytes int, values []Size) {
	a := Argument{Slot: slot}
	for _, v := range values {
		a.Values = append(a.Values, Number{v, bytes})
	}
	e.next.Arguments = append(e.next.Arguments, a)
}

func (e *Encoder) f32(slot int, v float32) {
	e.i32(slot, ir.Const(int64(math.Float32bits(v))))
}

// mixed binds numbers of several sizes, one after another.
func (e *Encoder) mixed(slot int, values ...Number) {
	e.next.Arguments = append(e.next.Arguments, Argument{Slot: slot, Values: values})
}

func (e *Encoder) count(slot int, n int) { e.i32(slot, ir.Const(int64(n))) }

// threadgroups sends what was put together over a grid of threadgroups, threads over a grid of threads.
func (e *Encoder) threadgroups(grid [3]ir.Extent, x, y, z int64) { e.send(false, grid, x, y, z) }
func (e *Encoder) threads(grid [3]ir.Extent, x, y, z int64)      { e.send(true, grid, x, y, z) }

func (e *Encoder) send(threads bool, grid [3]ir.Extent, x, y, z int64) {
	affine := true
	for _, g := range grid {
		affine = affine && g.Num.Const > impossible.Const/2
	}
	for _, a := range e.next.Arguments {
		for _, v := range a.Values {
			affine = affine && v.Value.Const > impossible.Const/2
		}
	}
	if !affine {
		e.fail("%s: the grid or an argument is not affine in the params", e.next.Kernel)
	}
	e.next.Threads, e.next.Grid, e.next.Group, e.next.Barrier = threads, grid, [3]int64{x, y, z}, e.hazard
	e.next.Commit, e.commit = e.commit, false
	e.dispatches++
	if e.hazard {
		clear(e.bound)
		clear(e.written)
	}
	for b := range e.nextBound {
		e.mark(&e.bound, b)
	}
	for b := range e.nextWritten {
		e.mark(&e.written, b)
	}
	clear(e.nextBound)
	clear(e.nextWritten)
	e.hazard = false
	e.Sent = append(e.Sent, e.next)
	e.next = Dispatch{}
}

// grid returns a grid of constant or affine sizes.
func grid(x, y, z Size) [3]ir.Extent {
	return [3]ir.Extent{{Num: x, Div: 1}, {Num: y, Div: 1}, {Num: z, Div: 1}}
}

// tiles is how many tiles cover n.
func tiles(n Size, tile int64) ir.Extent {
	if n.IsConst() {
		return ir.Ext(ceil(n.Const, tile))
	}
	return ir.Extent{Num: n, Div: tile}
}

func ceil(n, d int64) int64 { return (n + d - 1) / d }

// roundUp returns the least multiple of d from n on.
func roundUp(n, d int64) int64 { return ceil(n, d) * d }
