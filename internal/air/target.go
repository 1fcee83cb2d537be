package air

import (
	"runtime"

	"golang.org/x/sys/cpu"
)

// hostFlags choose the instructions of this machine. FMA is asked for wherever it is there:
// Metal contracts a·b + c, and so does every GPU that it runs on.
func hostFlags() []string {
	if runtime.GOARCH != "amd64" {
		return nil
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
