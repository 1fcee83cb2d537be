package ir

import "fmt"

// KernelID is the index of a kernel in [Graph.Kernels].
type KernelID int32

// LibraryKind says where a kernel's code is.
type LibraryKind uint8

// The kinds of library.
const (
	Builtin    LibraryKind = iota // embedded in package msl
	SourceFile                    // a Metal source file, by path and digest
	Metallib                      // a compiled library, by path and digest
	Generated                     // no code but the kernel's term, which is its function name; see package msl
)

func (k LibraryKind) String() string {
	switch k {
	case Builtin:
		return "builtin"
	case SourceFile:
		return "source"
	case Metallib:
		return "metallib"
	case Generated:
		return "generated"
	}
	return fmt.Sprintf("LibraryKind(%d)", uint8(k))
}

// Library names the code that holds a kernel. Path and Digest are empty for
// Builtin and Generated.
type Library struct {
	Kind   LibraryKind
	Path   string
	Digest Digest
}

// Declared reports whether package msl declares what every kernel of the library touches and
// computes, by its function's name. Some kernels of a source file may have declarations too;
// msl.Declared knows.
func (l *Library) Declared() bool { return l.Kind == Builtin || l.Kind == Generated }

// MaxFunction is the max number of bytes of a function's name. The name of a generated kernel is
// its term, which may be long.
const MaxFunction = 4096

// FunctionConstant is the value of one Metal function constant.
type FunctionConstant struct {
	Index uint16
	Name  string // for people
	Type  DType
	Bits  uint64 // the value's little-endian bytes, zero-extended
}

// ArgKind is the address space of a kernel argument.
type ArgKind uint8

// The kinds of argument.
const (
	DeviceArg      ArgKind = iota // a buffer of the device address space
	ConstantArg                   // inline bytes or a small buffer, constant address space
	ThreadgroupArg                // threadgroup memory, sized at dispatch
)

var argKinds = [...]string{"device", "constant", "threadgroup"}

func (k ArgKind) String() string {
	if int(k) >= len(argKinds) {
		return fmt.Sprintf("ArgKind(%d)", uint8(k))
	}
	return argKinds[k]
}

// ParseArgKind is the inverse of [ArgKind.String].
func ParseArgKind(s string) (ArgKind, bool) {
	for i, n := range argKinds {
		if n == s {
			return ArgKind(i), true
		}
	}
	return 0, false
}

// ArgAccess is what a kernel does to a device argument.
type ArgAccess uint8

// The accesses.
const (
	ReadArg ArgAccess = iota
	WriteArg
	ReadWriteArg
)

var argAccesses = [...]string{"read", "write", "readwrite"}

func (a ArgAccess) String() string {
	if int(a) >= len(argAccesses) {
		return fmt.Sprintf("ArgAccess(%d)", uint8(a))
	}
	return argAccesses[a]
}

// ParseArgAccess is the inverse of [ArgAccess.String].
func ParseArgAccess(s string) (ArgAccess, bool) {
	for i, n := range argAccesses {
		if n == s {
			return ArgAccess(i), true
		}
	}
	return 0, false
}

// Arg is one row of a kernel's argument table.
type Arg struct {
	Slot   uint8 // index of the [[buffer(i)]] or [[threadgroup(i)]]
	Name   string
	Kind   ArgKind
	Access ArgAccess // device arguments only
	Type   DType
	// Count is the number of elements of a constant argument: 1 for a scalar (`constant float&`), n
	// for an array. It is 0 if the number is unknown, and for pointers.
	Count int32
}

// Kernel is a compiled function: the code, the constants that specialize it
// and its argument table.
type Kernel struct {
	Name      string // unique in the graph
	Library   Library
	Function  string // the function's name in the library, or the term of a generated kernel
	Constants []FunctionConstant
	Args      []Arg // ascending slots, threadgroup arguments last
}

// Arg returns the buffer argument at slot.
func (k *Kernel) Arg(slot uint8) (Arg, bool) {
	if i := k.index(slot); i >= 0 {
		return k.Args[i], true
	}
	return Arg{}, false
}

// index returns the index of the buffer argument at slot, or −1.
func (k *Kernel) index(slot uint8) int {
	for i := range k.Args {
		if k.Args[i].Slot == slot && k.Args[i].Kind != ThreadgroupArg {
			return i
		}
	}
	return -1
}

// ArgNamed returns the argument called name.
func (k *Kernel) ArgNamed(name string) (Arg, bool) {
	for _, a := range k.Args {
		if a.Name == name {
			return a, true
		}
	}
	return Arg{}, false
}
