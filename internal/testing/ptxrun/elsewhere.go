package ptxrun

// Elsewhere, if it is set, runs programs in place of the interpreter: a GPU, in programs that are built with the tag gpu. So tests
// that hold results of the interpreter against a declaration hold those of the GPU against it, and its tools watch the same programs.
// Nothing is counted then ([Program.Calls], [Program.Steps]), and what is unordered is no error.
var Elsewhere *Device

// Device runs PTX.
type Device struct {
	Base uint64 // the address of its memory, in which that of programs lies
	Run  func(text []byte, parts []Part, l Launch) error
}

// Part is a part of the memory of a program, which a run changes.
type Part struct {
	At    uint64
	Bytes []byte
}
