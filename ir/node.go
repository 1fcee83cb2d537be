package ir

import "fmt"

// Node is an element of a graph's list: a command ([*Dispatch], [*Copy],
// [*Fill], [*Carry], [*Join]), which has an ID, or a mark between commands ([*Barrier],
// [*Commit], [*GroupBegin], [*GroupEnd]).
type Node interface{ node() }

// ID names a command within its graph. Passes move commands, but a command keeps its ID. It prints
// as #12.
type ID uint32

func (id ID) String() string { return fmt.Sprintf("#%d", uint32(id)) }

// BindingKind is the form of one argument of a dispatch.
type BindingKind uint8

// The kinds of binding.
const (
	BindView   BindingKind = iota // a buffer with an offset
	BindBytes                     // inline bytes (setBytes)
	BindScalar                    // a scalar computed from params
)

// Binding is one argument of a dispatch.
type Binding struct {
	Slot  uint8
	Kind  BindingKind
	Type  DType  // for BindScalar: I32, U32, I64, U64, or F32 for the value of one f32 param
	View  View   // for BindView
	Bytes []byte // for BindBytes: at most 4096, Metal's limit of setBytes
	Expr  Affine // for BindScalar
}

// ThreadgroupMemory is the size of a threadgroup argument.
type ThreadgroupMemory struct {
	Slot  uint8
	Bytes uint32
}

// GridKind is the unit of a dispatch's grid.
type GridKind uint8

// The units are whole threadgroups (dispatchThreadgroups) and threads (dispatchThreads, where the
// last threadgroups may be partial).
const (
	Threadgroups GridKind = iota
	Threads
)

func (k GridKind) String() string {
	if k == Threads {
		return "threads"
	}
	return "threadgroups"
}

// Dispatch runs a kernel.
type Dispatch struct {
	// The fields that nearly every analysis reads come first, so that they lie in one cache
	// line: a graph may have a million dispatches.
	ID       ID
	Kernel   KernelID
	Effects  *Effects  // nil: unknown
	Bindings []Binding // ascending slots
	Op       string    // kind of operation, "rms_norm"; "" if the recorder said nothing
	// From holds the IDs of the recorded commands that this one implements. Nil
	// in a recording: the command implements itself.
	From              []ID
	Indirect          *Indirect // what is read from memory instead of the command; may be nil
	Grid              [3]Extent // in units of GridKind
	Threadgroup       [3]uint32 // threads of one threadgroup
	GridKind          GridKind
	ThreadgroupMemory []ThreadgroupMemory
	Label             string // for people
}

// Binding returns the binding at slot, or nil.
func (d *Dispatch) Binding(slot uint8) *Binding {
	for i := range d.Bindings {
		if d.Bindings[i].Slot == slot {
			return &d.Bindings[i]
		}
	}
	return nil
}

// Copy copies Src to Dst, which have equal lengths and do not overlap.
type Copy struct {
	ID       ID
	Dst, Src View
	Label    string
	From     []ID
}

// Fill sets every byte of Dst to Value.
type Fill struct {
	ID    ID
	Dst   View
	Value byte
	Label string
	From  []ID
}

// Barrier orders every command before it in its command buffer before every
// command after it.
type Barrier struct{}

// CommitOrder says by what means every command before a commit, in this and earlier command
// buffers, is ordered before every command after it.
type CommitOrder uint8

// These are the orders. A commit of order none orders nothing.
const (
	OrderNone CommitOrder = iota
	OrderFence
	OrderEvent
)

var commitOrders = [...]string{"none", "fence", "event"}

func (o CommitOrder) String() string {
	if int(o) >= len(commitOrders) {
		return fmt.Sprintf("CommitOrder(%d)", uint8(o))
	}
	return commitOrders[o]
}

// ParseCommitOrder is the inverse of [CommitOrder.String].
func ParseCommitOrder(s string) (CommitOrder, bool) {
	for i, n := range commitOrders {
		if n == s {
			return CommitOrder(i), true
		}
	}
	return 0, false
}

// Commit ends a command buffer.
type Commit struct {
	Order CommitOrder
	Label string
}

// GroupBegin opens a labelled group; GroupEnd closes the innermost open one. Groups are for people
// and order nothing.
type GroupBegin struct{ Label string }

// GroupEnd closes the innermost open group.
type GroupEnd struct{}

func (*Dispatch) node()   {}
func (*Copy) node()       {}
func (*Fill) node()       {}
func (*Join) node()       {}
func (*Barrier) node()    {}
func (*Commit) node()     {}
func (*GroupBegin) node() {}
func (*GroupEnd) node()   {}
