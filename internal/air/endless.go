package air

import (
	"slices"
	"strings"

	"github.com/mlxc/mlxc/internal/llvm"
)

// Endless returns the lines of the source at which a kernel, or a function that it calls, has a loop that nothing
// leaves and that does nothing but go round: a thread that comes there never ends. A line that is not known is 0.
// Such a loop may stand where no thread comes to, as for what must not be, so it is no error by itself; it says why
// a kernel that was ended had not.
func Endless(in Input) (lines []int) {
	m, err := ReadModule(in.Name, in.IR)
	if err != nil {
		return nil
	}
	for _, f := range m.Funcs {
		blocks := f.Blocks()
		flow, err := llvm.NewFlow(blocks)
		if err != nil || flow == nil {
			continue
		}
		for _, loop := range flow.Loops {
			if len(loop.Exits) > 0 || slices.ContainsFunc(flow.Blocks[loop.Header:loop.Last+1], acts) {
				continue
			}
			line := 0
			for _, latch := range loop.Latches {
				for _, x := range flow.Blocks[latch].Lines {
					if i := strings.LastIndex(x, ", !dbg !"); i >= 0 {
						at, _, _ := strings.Cut(x[i+2:], ",")
						line = m.Line(", " + at)
					}
				}
			}
			lines = append(lines, line)
		}
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

// acts reports whether a block does what others could see.
func acts(b *llvm.Block) bool {
	return slices.ContainsFunc(b.Lines, func(l string) bool {
		return strings.HasPrefix(l, "  store ") || strings.Contains(l, "call ") || strings.Contains(l, " volatile ") || strings.Contains(l, "atomicrmw ") || strings.Contains(l, "cmpxchg ")
	})
}
