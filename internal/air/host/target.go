package host

import (
	"runtime"
	"strings"

	"golang.org/x/sys/cpu"
)

// hostFlags choose the instructions of this machine. FMA is asked for wherever it is there:
// Metal contracts a·b + c, and so does every GPU that it runs on.
func hostFlags() []string {
	if runtime.GOARCH != "amd64" {
		return archFlags(runtime.GOARCH)
	}
	x := cpu.X86
	switch {
	case x.HasAVX512F && x.HasAVX512BW && x.HasAVX512DQ && x.HasAVX512VL && x.HasAVX512CD && x.HasFMA:
		return []string{"-march=x86-64-v4"}
	case x.HasAVX2 && x.HasFMA && x.HasBMI2:
		return []string{"-march=x86-64-v3"}
	}
	return []string{"-march=x86-64-v2"}
}

// archFlags are the flags for any machine of an architecture, which is the first word of a
// triple of LLVM's, or Go's name.
func archFlags(triple string) []string {
	arch, _, _ := strings.Cut(triple, "-")
	switch arch {
	case "arm64", "aarch64":
		// A kernel's object calls nothing: not the C library's functions for atomics either,
		// which choose the instructions when a program starts.
		return []string{"-mno-outline-atomics"}
	}
	return nil
}
