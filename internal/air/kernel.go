package air

import "fmt"

// Kernel describes a kernel to whoever binds its arguments. Its source is the metadata
// !air.kernel of the kernel's module, and the module's globals.
type Kernel struct {
	Name string
	// Args are in the order of the function's parameters.
	Args []Arg
	// Constants are the function constants that the kernel depends on, in the order of
	// the module.
	Constants []FunctionConstant
	// Threadgroup is the threadgroup memory that the kernel declares in its body. What
	// the host gives the length of is an argument.
	Threadgroup []ThreadgroupMemory
	// MaxThreadgroup is the greatest number of threads of a threadgroup that the source
	// promises (max_total_threads_per_threadgroup); 0 if it does not.
	MaxThreadgroup int
	AIR, Metal     Version
	// Options are those of the compilation that arithmetic depends on, in the order of the
	// module, without the prefix air.compile: "denorms_disable".
	Options []string
}

// Version is that of AIR or of the Metal language.
type Version struct{ Major, Minor, Patch int }

// Arg is a parameter of a kernel: memory that is bound to it, or a position in the grid.
type Arg struct {
	Name string
	Type string // as the source spells it: "float", "uint3"
	// Attribute is empty for memory; else it is what the parameter receives:
	// "thread_position_in_grid".
	Attribute string
	// Index is the slot that memory is bound to. Threadgroup memory has an index space of
	// its own.
	Index  int
	Space  Space
	Access Access
	// Size is how many bytes a parameter that is a reference reads, 0 for pointers, whose
	// extent only the shape tells.
	Size int64
	// TypeSize and TypeAlign are those of one element, in bytes.
	TypeSize, TypeAlign int64
	// Fields are those of an element that is a struct.
	Fields []Field
	// Unused says that the kernel never touches the memory.
	Unused bool
	// If names the constant without which the argument does not exist. It need not be bound
	// then. The constant is one of [Kernel.Constants], or the kernel computes it from them.
	If string
}

// ByValue reports whether an entry for [Launch.Values] gets the argument by value.
func (a *Arg) ByValue() bool {
	return a.Attribute == "" && a.Space == Constant && a.Size > 0 && a.Size <= 8
}

// Space is an address space of Metal, with AIR's numbers.
type Space uint8

// The address spaces that arguments have.
const (
	Device      Space = 1
	Constant    Space = 2
	Threadgroup Space = 3
)

// Access is what a kernel may do with an argument. AIR's read_write does not say that the
// kernel reads.
type Access uint8

// The accesses.
const (
	Read Access = 1 + iota
	Write
	ReadWrite
)

// Field is a member of a struct.
type Field struct {
	Offset, Size int64 // bytes; the size is that of one element
	Array        int   // how many elements, 0 if it is no array
	Type, Name   string
	Fields       []Field // of a member that is a struct
}

// FunctionConstant is a value that the host gives when it makes a pipeline.
type FunctionConstant struct {
	Name  string
	Index int
	Type  string // "bool", "int", "uint", "float", …
}

// ThreadgroupMemory is a variable in the threadgroup address space.
type ThreadgroupMemory struct {
	Name        string
	Size, Align int64 // bytes
}

func (v Version) String() string { return fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch) }

func (s Space) String() string {
	switch s {
	case Device:
		return "device"
	case Constant:
		return "constant"
	case Threadgroup:
		return "threadgroup"
	}
	return fmt.Sprintf("Space(%d)", uint8(s))
}

func (a Access) String() string {
	switch a {
	case Read:
		return "read"
	case Write:
		return "write"
	case ReadWrite:
		return "readwrite"
	}
	return fmt.Sprintf("Access(%d)", uint8(a))
}
