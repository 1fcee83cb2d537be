package softmetal

import (
	"context"
	"time"

	"github.com/mlxc/mlxc/ir"
)

// Options of a device. The zero value is good.
type Options struct {
	// Workers is how many threads run threadgroups; 0: one for each core.
	Workers int
	// Memory is the most bytes that buffers, and what the threads of kernels have of their own, may take together; 0:
	// no limit.
	Memory int64
	// Trust says that kernels of files, which a graph or Library names, may run where their code cannot be confined.
	Trust bool
	// Work is the most processor time that the kernels of a submission may take, with the checker those of a
	// dispatch; what takes longer is ended. 0: no limit. (Linux alone.)
	Work time.Duration
	// Cache is the folder in which compiled kernels are kept; "" is the user's own.
	Cache string
	// Check runs every dispatch under the checker, on one thread; [Device.Observed] has what
	// it found. It is slow: five to a hundred times as slow (docs/checker.md).
	Check bool
	// Only, if it is not empty, are patterns (path.Match) of the kernels whose dispatches are
	// checked; others just run.
	Only []string
	// Seed, if it is not 0, chooses the order in which threadgroups run under the checker.
	Seed uint64
	// Library is a .metallib from which the kernels of our own library are taken, such as
	// MLX's, where they have the same names and arguments; those that it lacks, and all if
	// it is "", are compiled from their Metal source.
	// Other kernels come from the file that their graph names.
	Library string
	// Module, if not nil, finds the code of kernels in place of the libraries that they are of: the JSON
	// text of an Input of internal/air, or nil for a kernel that its library has. For tests.
	Module func(ctx context.Context, k *ir.Kernel) ([]byte, error)
	// Machine is LLVM's triple of the machine that kernels run on, and Emulator the command that
	// runs its programs here; "" and none are this machine. For tests.
	Machine  string
	Emulator []string
}
