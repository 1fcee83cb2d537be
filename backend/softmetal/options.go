package softmetal

import (
	"context"
	"time"

	"github.com/mlxc/mlxc/ir"
)

// Options of a device. The zero value is good.
type Options struct {
	// Workers is the number of threads that run threadgroups; 0: one for each core.
	Workers int
	// Memory is the maximum number of bytes that buffers and the threads' private memory may have together; 0: no
	// limit.
	Memory int64
	// Trust lets kernels of files, which a graph or Library names, run even where their code cannot be confined.
	Trust bool
	// Work is the maximum processor time of the kernels of a submission, or of one dispatch under the checker, after
	// which they are ended. 0: no limit. (Linux alone.)
	Work time.Duration
	// Cache is the folder in which compiled kernels are kept; "" is the user's own.
	Cache string
	// Check runs every dispatch under the checker, on one thread; [Device.Observed] has what
	// it found. It is slow: five to a hundred times as slow (docs/checker.md).
	Check bool
	// Only, if it is not empty, are patterns (path.Match) of the kernels whose dispatches are checked; other
	// dispatches run unchecked.
	Only []string
	// Seed, if it is not 0, shuffles the order in which threadgroups and their threads run under the checker.
	Seed uint64
	// Library is a .metallib, such as MLX's, whose kernels replace those of our own library that have the same names
	// and arguments. Kernels that it lacks, and all if it is "", are compiled from our Metal source. Kernels of other
	// libraries come from the file that their graph names.
	Library string
	// Module, if not nil, returns the code of a kernel in place of its library: the JSON text of an Input of
	// internal/air, or nil for a kernel that its library has. For tests.
	Module func(ctx context.Context, k *ir.Kernel) ([]byte, error)
	// Machine is the LLVM target triple of the machine that kernels run on, and Emulator the command that runs
	// programs of that machine; both are empty for this machine. For tests.
	Machine  string
	Emulator []string
}
