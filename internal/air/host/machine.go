package host

import (
	"runtime"
	"strings"

	"github.com/mlxc/mlxc/internal/air/calls"
)

// MachineFlags are the flags by which clang compiles for a machine: the one that LLVM's triple
// names, with the least instructions that such machines have, or this one, if it is "".
func MachineFlags(triple string) []string {
	if triple == "" {
		return hostFlags()
	}
	return append(archFlags(triple), "--target="+triple)
}

// bodiesOf is what the bodies of air.* functions are for on a machine.
func bodiesOf(triple string) calls.Target {
	if triple == "" {
		triple = runtime.GOARCH
	}
	if strings.HasPrefix(triple, "aarch64") || strings.HasPrefix(triple, "arm64") {
		return calls.ARM64
	}
	return calls.Host
}
