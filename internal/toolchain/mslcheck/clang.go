package mslcheck

// language are the flags for compiling rewritten source. They compile freestanding C++ for one
// target, whatever the host is, so that types have Metal's sizes and the object is ELF.
var language = []string{
	"--target=x86_64-unknown-linux-gnu", "-nostdinc", "-nostdinc++", "-ffreestanding", "-fno-exceptions", "-fno-rtti",
	"-x", "c++", "-I", "shim", "-Xclang", "-cl-single-precision-constant", "-fno-strict-aliasing", "-fno-gnu-inline-asm",
	"-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-Wno-unused-const-variable", "-Wno-duplicate-decl-specifier", "-Wno-sign-compare",
}
