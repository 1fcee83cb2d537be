//go:build linux && (amd64 || arm64)

package cuda

import (
	"fmt"

	"github.com/mlxc/mlxc/internal/ptx"
)

// roomyThreads is the maximum of threads on a multiprocessor for each to have 128 of its 65,536 registers, with
// which an assembler need neither save registers nor spill them.
const roomyThreads = 512

// crowdedThreads is the number of threads on a multiprocessor from which a launch is held to half of the registers:
// blocks of the next programmatic launch then find room beside it, and load their weights while it computes.
const crowdedThreads = 192

// Blocks of more than largeBlock threads are large: one more or less on a multiprocessor matters. If all large
// blocks of a grid fit at once with at most fullThreads threads on a multiprocessor, of which each can have 64
// registers, that is asked for: an assembler that is not told may use so many that a block has to wait for the
// others.
const (
	largeBlock  = 256
	fullThreads = 1024
)

// resident adds the directive for how many blocks share a multiprocessor, where a grid is so small that they are
// few. An assembler that is not told saves registers, so that as many blocks as possible fit, and to that end issues
// some loads only when other values have been used up; few blocks do not hide such latencies, and the saved
// registers lie idle.
func resident(m *ptx.Module, known facts, multiprocessors int) {
	blocks, threads := known.blocks[0]*known.blocks[1]*known.blocks[2], known.threads
	if blocks == 0 || multiprocessors <= 0 {
		return
	}
	each := (blocks-1)/uint64(multiprocessors) + 1
	switch {
	case each <= roomyThreads/threads:
	case threads > largeBlock && each > 1 && each <= fullThreads/threads:
	default:
		return
	}
	if blocks*threads >= crowdedThreads*uint64(multiprocessors) && 2*each <= roomyThreads/threads {
		each *= 2
	}
	directive := func(i int, name string) bool {
		return len(m.Lines[i].Code) == 1 && m.Lines[i].Code[0].Op == name && len(m.Lines[i].Code[0].Args) == 1
	}
	for i := range m.Lines {
		// What the compiler says already, which does not know the grid, is the maximum with which the kernel has all
		// registers that it needs.
		if directive(i, ".minnctapersm") {
			each = min(each, m.Lines[i].Code[0].Args[0].Number)
		}
	}
	m.Replace(func(i int) ([]ptx.Line, bool) {
		if directive(i, ".maxntid") {
			return []ptx.Line{m.Lines[i], ptx.NewLine(fmt.Sprintf(".minnctapersm %d\n", each))}, true
		}
		return nil, directive(i, ".minnctapersm")
	})
}
