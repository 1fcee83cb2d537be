package cpu

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/mlxc/mlxc/ir"
)

// maxSlots is the number of buffer slots of a Metal kernel.
const maxSlots = 31

// Call is one dispatch with every argument resolved for one replay. Kernels
// read it and never change it; many workers share one.
type Call struct {
	// Device holds the bytes of the views that are bound to device arguments;
	// they end where the view ends. Nil where nothing is bound.
	Device [maxSlots][]byte
	// Constant holds the little-endian bytes of constant arguments.
	Constant [maxSlots][]byte
	// Constants are the kernel's function constants.
	Constants []ir.FunctionConstant

	Groups  [3]int // threadgroups of the grid
	Threads [3]int // threads of the grid (of the dispatch, or groups × group)
	Group   [3]int // threads of a threadgroup

	stop *atomic.Bool // set once nobody waits for the result; may be nil
}

// Pause ends the call if its run was cancelled. A unit that may take longer than some milliseconds calls
// it from time to time.
func (c *Call) Pause() {
	if stopped(c.stop) {
		panic(errStopped)
	}
}

func stopped(stop *atomic.Bool) bool { return stop != nil && stop.Load() }

// errStopped is what a stopped call panics with.
var errStopped = errors.New("stopped")

// Bytes returns the bytes of device argument slot. No reslicing of them can
// reach past the view.
func (c *Call) Bytes(slot int) []byte { return slices.Clip(c.Device[slot]) }

// F32 returns the f32 elements of device argument slot.
func (c *Call) F32(slot int) []float32 { return cast[float32](c.Device[slot]) }

// U32 returns the u32 elements of device argument slot.
func (c *Call) U32(slot int) []uint32 { return cast[uint32](c.Device[slot]) }

// I32 returns the i32 elements of device argument slot.
func (c *Call) I32(slot int) []int32 { return cast[int32](c.Device[slot]) }

// U16 returns the 16-bit elements (f16 bits) of device argument slot.
func (c *Call) U16(slot int) []uint16 { return cast[uint16](c.Device[slot]) }

// Int returns the i32 constant at slot.
func (c *Call) Int(slot int) int { return int(int32(binary.LittleEndian.Uint32(c.Constant[slot]))) }

// Uint returns the u32 constant at slot.
func (c *Call) Uint(slot int) int { return int(binary.LittleEndian.Uint32(c.Constant[slot])) }

// Long returns element i of the 64-bit constant array at slot.
func (c *Call) Long(slot, i int) int {
	return int(int64(binary.LittleEndian.Uint64(c.Constant[slot][8*i:])))
}

// Float returns the f32 constant at slot.
func (c *Call) Float(slot int) float32 {
	return math.Float32frombits(binary.LittleEndian.Uint32(c.Constant[slot]))
}

// Flag returns the bool function constant with the given index; false when the
// kernel was not specialized with it.
func (c *Call) Flag(index uint16) bool {
	for _, fc := range c.Constants {
		if fc.Index == index {
			return fc.Bits&0xff != 0
		}
	}
	return false
}

// cast reinterprets little-endian bytes; every target of this package is
// little-endian. The plan has checked that the view is aligned to the element.
func cast[T float32 | uint32 | int32 | uint16](b []byte) []T {
	var t T
	n := len(b) / int(unsafe.Sizeof(t))
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), n)
}

// Worker is the memory of one goroutine: scratch, and what kernels cache from call to call.
type Worker struct {
	f32    []float32
	block  *block  // the memory that f32 lies in
	ledger *ledger // counts that memory; nil until the first allocation if the pool set none
	angles angles
	stack  Call // see matrix
}

// matrix returns a call that has one matrix of the stack in the first arguments of c: what lies behind the given offsets
// in bytes. It is valid until the worker's next call of matrix.
func (w *Worker) matrix(c *Call, offsets ...int) *Call {
	for i, at := range offsets {
		w.stack.Device[i] = c.Device[i][at:]
	}
	return &w.stack
}

// Scratch returns n floats of undefined contents. They are valid until the worker's next call of Scratch, so a
// kernel may call it only once per run. It allocates only when it has to grow. If the device's memory limit is
// reached it panics with the error, which the replay returns.
func (w *Worker) Scratch(n int) []float32 {
	if cap(w.f32) < n {
		w.grow(n)
	}
	return w.f32[:n]
}

// asBytes returns the memory of x.
func asBytes(x []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), 4*len(x))
}

func (w *Worker) grow(n int) {
	if n < 1<<20 {
		n += n / 2
	}
	if n > math.MaxInt64/4 {
		panic(fmt.Errorf("scratch of %d floats", n))
	}
	if w.ledger == nil {
		w.ledger = newLedger(0)
	}
	w.f32 = nil
	if err := w.block.free(); err != nil {
		panic(err)
	}
	b, err := w.ledger.take(4 * int64(n))
	if err != nil {
		panic(fmt.Errorf("scratch: %w", err))
	}
	w.block, w.f32 = b, cast[float32](b.data)
}

// Kernel is the CPU twin of one library function.
type Kernel struct {
	Name string
	// Units is the number of independent pieces of work of a call: the kernel
	// may be run on [0, Units) in any split and order, by several workers at
	// once.
	Units func(c *Call) int
	// Run does the units [lo, hi).
	Run func(c *Call, w *Worker, lo, hi int)
	// Cost estimates one unit in nanoseconds on one core, to decide how many
	// workers a call deserves.
	Cost func(c *Call) float64
}

// table holds the kernels by name.
var table struct {
	sync.RWMutex
	kernels map[string]*Kernel
}

// Register adds the CPU twins of kernels that are declared in a Metal source, either of the library or added by
// [github.com/mlxc/mlxc/msl.Register]. The Go file of each kernel family calls it in init. It panics if a twin
// lacks its Name, Units, Run or Cost, or has the name of another.
func Register(twins ...*Kernel) {
	table.Lock()
	defer table.Unlock()
	if table.kernels == nil {
		table.kernels = map[string]*Kernel{}
	}
	for _, k := range twins {
		switch {
		case k.Name == "" || k.Units == nil || k.Run == nil || k.Cost == nil:
			panic(fmt.Sprintf("cpu: the twin %q lacks its Name, Units, Run or Cost", k.Name))
		case table.kernels[k.Name] != nil:
			panic("cpu: two kernels are called " + k.Name)
		}
		table.kernels[k.Name] = k
	}
}

// Lookup returns the kernel called name, or nil.
func Lookup(name string) *Kernel {
	table.RLock()
	defer table.RUnlock()
	return table.kernels[name]
}

// Names returns the names of all kernels, sorted.
func Names() []string {
	table.RLock()
	defer table.RUnlock()
	return slices.Sorted(maps.Keys(table.kernels))
}
