package plan

import "github.com/mlxc/mlxc/ir"

// Kind is what an operation does.
type Kind uint8

// The kinds of operations.
const (
	SetPipeline          Kind = iota // Index: of Plan.Pipelines
	SetBuffer                        // Index: a root memory; Off: bytes from its place; Slot
	SetOffset                        // of the buffer that is bound at Slot: Off from the place of the root Index
	SetBytes                         // Plan.Data[Off:Off+Len] at Slot
	SetThreadgroupMemory             // Len bytes at Slot
	Dispatch                         // Index: of Plan.Grids
	DispatchIndirect                 // the same, with counts at Off of the memory of guards
	Barrier                          // what is behind it waits for what is before it, in this encoder
	Push                             // Index: of Plan.Labels
	Pop
	Edge      // ends the encoder; the next one waits for it, has nothing bound, and its times are those of Plan.Timed[Index]
	Timestamp // takes the time at which Plan.Timed[Index/2] begins, or ends if Index is odd
)

var kindNames = [...]string{"pipeline", "buffer", "offset", "bytes", "threadgroup", "dispatch", "indirect", "barrier", "push", "pop", "edge", "timestamp"}

func (k Kind) String() string { return kindNames[k] }

// Op is an operation on an encoder.
type Op struct {
	Kind Kind
	Slot uint8
	// Next: only if another replay of the submission follows (ir.Carry).
	Next  bool
	Index int32
	Off   int64
	Len   int64
}

// Source is what a pipeline runs.
type Source uint8

// The sources. Copies and fills are dispatches of kernels: an encoder for copies would end this one.
const (
	FromGraph Source = iota // a kernel of the graph
	Copy                    // n elements of Width bytes; slots: 0 source, 1 destination, 2 n
	Fill                    // n elements of Width bytes; slots: 0 destination, 1 the element, 2 n
	Guard                   // slots: 0 counts, 1 a guard's words, 2 the maximum of each count
)

// Guarded is the memory number of the guards' memory. A grid that is read from memory may exceed the maximum that
// the graph states; then the dispatch must not run, and that must be reported. So a guard runs before it, which
// copies the counts to its words, or zeros if one exceeds its maximum, which it notes there. The dispatch takes its
// grid from these words.
const Guarded = 1 << 30

// GuardBytes is the size of a guard's words in that memory: three counts; the number, from 1 on, of a dimension
// whose count exceeds its maximum, or 0; that count, and the maximum.
const GuardBytes = 32

// Pipeline is code that a plan dispatches.
type Pipeline struct {
	Source Source
	Kernel ir.KernelID // FromGraph
	Width  int         // Copy, Fill: 1, 4 or 16 bytes
}

// Grid is the size of a dispatch.
type Grid struct {
	Unit  ir.GridKind
	Size  [3]uint64 // a [Var] says those that depend on params
	Group [3]uint32
	Node  int32 // the command's place in the list
}

// Part says which part of an operation a [Var] is.
type Part uint8

// The parts.
const (
	Offset  Part = iota // Op.Off of a SetBuffer, SetOffset or DispatchIndirect
	Bytes               // the bytes of a SetBytes
	Extent0             // of the grid of a Dispatch
	Extent1
	Extent2
)

// Var is a word of an operation that depends on params. A dispatch whose grid has an empty
// dimension is left out.
type Var struct {
	Op   int32
	Part Part
	// The value is Expr at the params, exact in 64 bits, divided by Divide and rounded up.
	Expr   ir.Affine
	Divide int64 // 0: 1
	// Float: the value is the bits of the f32 param of Expr's only term.
	Float bool
}

// Buffer is a command buffer: the operations First to End, in one encoder.
type Buffer struct {
	First, End int32
	Label      string
	// Dispatches and Barriers are how many of these it has.
	Dispatches, Barriers int32
	// Order says how it is ordered after the command buffers before it.
	Order ir.CommitOrder
}

// Plan is what a replay of a graph sends.
type Plan struct {
	Graph     *ir.Graph
	Pipelines []Pipeline
	Ops       []Op
	Vars      []Var // by Op
	Grids     []Grid
	Data      []byte
	Labels    []string
	Buffers   []Buffer
	Guards    []int32 // by guard: the command's place in the list
	Timed     []int32 // commands whose times are taken: their places in the list
	Stats     Stats
}

// Stats counts operations.
type Stats struct {
	Dispatches, Barriers int
	Copies               int // copies, carries and fills among the dispatches
	Set                  int // pipelines and arguments that are set
	Kept                 int // that need not be set again
	Variable             int // operations that depend on params
}
