package softmetal

import (
	"fmt"

	"github.com/mlxc/mlxc/ir"
)

// FindingKind says what kind of defect a finding is.
type FindingKind uint8

// The kinds. Those up to InactiveLane are found by the executor, and have the numbers of enum finding_kind
// (host/check.h).
const (
	OutOfBounds       FindingKind = 1 + iota // an access outside of the bound view, the variable, or the threadgroup memory given
	UndefinedRead                            // a read of bytes that nothing has written
	UndeclaredRead                           // a read of bytes that the dispatch's effects do not list
	UndeclaredWrite                          // a write to bytes that the dispatch's effects do not list
	WritesReadOnly                           // a write through an argument that is declared const
	ReadAfterWrite                           // a race: a read after a write by another thread, without synchronization between
	WriteAfterWrite                          // a race of two writes
	WriteAfterRead                           // a race: a write after a read by another thread
	DivergentBarrier                         // some threads of a threadgroup have returned, and others wait at a barrier
	DifferentBarriers                        // threads of a threadgroup wait at different barriers
	PartialBarrier                           // some threads of a simdgroup do not reach its barrier
	PartialMatrix                            // only some threads of a simdgroup execute a matrix product
	PartialAccess                            // only some threads of a simdgroup execute a load or store of a matrix
	Misaligned                               // an address that is not a multiple of the alignment that Metal requires
	UndefinedValue                           // a use of a value that depends on a variable that nothing has set
	InactiveLane                             // a use of a value that a simdgroup function took from an inactive lane
	NonFinite                                // an infinite or NaN result of finite arguments
	Unwritten                                // bytes that the dispatch's effects say it always writes, and that it does not
	Limit                                    // a limit of Metal that is exceeded
)

// lastFound is the last of the kinds that the executor finds.
const lastFound = InactiveLane

var findingNames = [...]string{
	OutOfBounds: "out of bounds", UndefinedRead: "undefined read", UndeclaredRead: "undeclared read", UndeclaredWrite: "undeclared write",
	WritesReadOnly: "write to read-only", ReadAfterWrite: "race", WriteAfterWrite: "race", WriteAfterRead: "race",
	DivergentBarrier: "divergent barrier", DifferentBarriers: "divergent barrier", PartialBarrier: "divergent barrier",
	PartialMatrix: "divergent matrix product", PartialAccess: "divergent matrix access", Misaligned: "misaligned access",
	UndefinedValue: "undefined value", InactiveLane: "inactive lane", NonFinite: "non-finite result", Unwritten: "not written", Limit: "limit",
}

func (k FindingKind) String() string {
	if int(k) >= len(findingNames) || findingNames[k] == "" {
		return fmt.Sprintf("FindingKind(%d)", uint8(k))
	}
	return findingNames[k]
}

// Thread identifies a thread of a dispatch.
type Thread struct {
	Threadgroup [3]uint32 // position in the grid
	Thread      [3]uint32 // position in the threadgroup
}

func (t Thread) String() string {
	return fmt.Sprintf("thread %v of threadgroup %v", t.Thread, t.Threadgroup)
}

// ValueUse says how an undefined value is used; the numbers are those of air's abi.h.
type ValueUse uint8

// The uses.
const (
	StoredValue  ValueUse = 6 + iota // it is stored
	BranchValue                      // a branch depends on it
	AddressValue                     // an address, or the lane of a simdgroup function, depends on it
)

// Finding is a defect that the checker has found in a dispatch.
type Finding struct {
	Kind    FindingKind
	Command ir.ID  // of the dispatch
	Kernel  string // its function
	// Argument names the memory: an argument of the kernel, or a variable or array of its own.
	Argument string
	Slot     int // slot of a bound argument; −1 for other memory
	// Offset is the distance in bytes from the beginning of what is bound to the argument, or of the variable. It may
	// be negative.
	Offset int64
	Bytes  int64 // size of what is bound, or of the variable; −1 if unknown
	Access int   // size of the access in bytes, 0 if that varies
	Thread Thread
	Other  *Thread // of a race or a divergent barrier: the other thread
	// Line and OtherLine are source lines of what the two threads do, 0 if unknown. For an undefined value OtherLine
	// is where the value comes from.
	Line, OtherLine int
	Use             ValueUse // of an undefined value
	Lane            int      // of an inactive lane: the lane whose value was taken; −1 if unknown
	Align           int      // of a misaligned access: the alignment in bytes that Metal requires
	Missing         int64    // of what is not written: how many bytes
	Times           uint64   // how often it happened at these places of the code
	Text            string   // of a Limit
}

// What stands for an argument where an address lies in none.
const (
	unbound = "memory that is not bound"
	unowned = "threadgroup memory that is no argument's and no variable's"
)

// String describes the finding in a sentence, without the command.
func (f *Finding) String() string {
	if f.Kind == Limit {
		return f.Text
	}
	line := func(n int) string {
		if n == 0 {
			return ""
		}
		return fmt.Sprintf(" (line %d)", n)
	}
	here := fmt.Sprintf("%v%s", f.Thread, line(f.Line))
	size := "bytes"
	if f.Access > 0 {
		size = fmt.Sprintf("%d bytes", f.Access)
	}
	var s string
	switch f.Kind {
	case OutOfBounds:
		s = fmt.Sprintf("%s touches %s at byte %d of %s, which has %d", here, size, f.Offset, f.Argument, f.Bytes)
		switch {
		case f.Argument == unbound || f.Argument == unowned:
			s = fmt.Sprintf("%s touches %s of %s, at byte %d", here, size, f.Argument, f.Offset)
		case f.Bytes < 0:
			s = fmt.Sprintf("%s touches %s of %s outside of it, at byte %d", here, size, f.Argument, f.Offset)
		}
	case UndefinedRead:
		s = fmt.Sprintf("%s reads %s at byte %d of %s, which nothing has written", here, size, f.Offset, f.Argument)
	case UndeclaredRead:
		s = fmt.Sprintf("%s reads %s at byte %d of %s, which the effects of the dispatch leave out", here, size, f.Offset, f.Argument)
	case UndeclaredWrite:
		s = fmt.Sprintf("%s writes %s at byte %d of %s, which the effects of the dispatch leave out", here, size, f.Offset, f.Argument)
	case WritesReadOnly:
		s = fmt.Sprintf("%s writes %s at byte %d of %s, which the kernel may only read", here, size, f.Offset, f.Argument)
	case ReadAfterWrite, WriteAfterWrite, WriteAfterRead:
		verbs := map[FindingKind][2]string{ReadAfterWrite: {"reads", "wrote"}, WriteAfterWrite: {"writes", "wrote"}, WriteAfterRead: {"writes", "read"}}[f.Kind]
		s = fmt.Sprintf("%s %s byte %d of %s, which %v%s %s; nothing orders the two", here, verbs[0], f.Offset, f.Argument, *f.Other, line(f.OtherLine), verbs[1])
	case DivergentBarrier:
		s = fmt.Sprintf("%s waits at a barrier, and %v has returned", here, *f.Other)
	case DifferentBarriers:
		s = fmt.Sprintf("%s waits at one barrier, and %v%s at another", here, *f.Other, line(f.OtherLine))
	case PartialBarrier:
		s = fmt.Sprintf("%s waits at a barrier of its simdgroup, and %v%s does not come to it", here, *f.Other, line(f.OtherLine))
	case PartialAccess:
		s = fmt.Sprintf("%s loads or stores a matrix, and not all threads of its simdgroup do", here)
	case Misaligned:
		s = fmt.Sprintf("%s touches %s at byte %d of %s, where Metal asks for a multiple of %d", here, size, f.Offset, f.Argument, f.Align)
	case UndefinedValue, InactiveLane:
		use := map[ValueUse]string{
			StoredValue: "stores a value", BranchValue: "goes where a value says", AddressValue: "goes by a value to an address",
		}[f.Use]
		if f.Use == StoredValue && f.Argument != "" {
			use += fmt.Sprintf(" at byte %d of %s", f.Offset, f.Argument)
		}
		from := "which comes of a variable that nothing has set"
		if f.Kind == InactiveLane {
			from = "which a function of the simdgroup took from a lane where no thread is active"
			if f.Lane >= 0 {
				from = fmt.Sprintf("which a function of the simdgroup took from lane %d, where no thread is active", f.Lane)
			}
		}
		s = fmt.Sprintf("%s %s, %s%s", here, use, from, line(f.OtherLine))
	case Unwritten:
		s = fmt.Sprintf("byte %d of %s is not written, and the effects of the dispatch say that it is", f.Offset, f.Argument)
		if f.Missing > 1 {
			s += fmt.Sprintf("; nor are %d more", f.Missing-1)
		}
	case PartialMatrix:
		s = fmt.Sprintf("%s multiplies matrices, and not all threads of its simdgroup do", here)
	case NonFinite:
		s = fmt.Sprintf("byte %d of %s becomes infinite or no number, of arguments that are all finite", f.Offset, f.Argument)
	}
	if f.Times > 1 {
		s += fmt.Sprintf(" (%d times)", f.Times)
	}
	return s
}

// Observed is what a checked dispatch touched, and the defects that were found in it.
type Observed struct {
	Command  ir.ID
	Effects  ir.Effects // exactly the bytes that were touched
	Findings []Finding
	Dropped  uint64 // how many findings there were beyond the maximum that is kept
}
