//go:build linux && (amd64 || arm64)

package cuda

import (
	"fmt"
	"regexp"

	"github.com/mlxc/mlxc/internal/air"
)

// roomyThreads is how many threads of a multiprocessor at most have so many registers each that an assembler
// has no need to save them, nor to keep any in memory: 128 of the 65,536 that all have together.
const roomyThreads = 512

// mostThreads is where an entry says how many threads a block has at most.
var mostThreads = regexp.MustCompile(`(?m)^\.maxntid (\d+)$`)

// blocks returns how many blocks of how many threads an entry of a kernel is launched with, or 0 if that is not
// known.
func (x *kernel) blocks(known []parameter) (blocks, threads uint64) {
	var numbers [6]uint64
	for _, p := range known {
		if i := p.number - (x.parameters() - len(numbers)); i >= 0 && i < len(numbers) {
			numbers[i] = p.value &^ air.WholeThreadgroups
		}
	}
	blocks, threads = 1, 1
	for i := range 3 {
		if numbers[i] == 0 || numbers[3+i] == 0 {
			return 0, 0
		}
		blocks *= (numbers[i]-1)/numbers[3+i] + 1
		threads *= numbers[3+i]
	}
	return blocks, threads
}

// resident says in a text how many blocks share a multiprocessor, where a grid is so small that they are few.
// An assembler that is not told saves registers, so that as many blocks as possible find room, and to that
// end loads some values only when others have been used up; few blocks hide no such wait, and the registers
// that were saved lie idle.
func resident(text []byte, blocks, threads uint64, multiprocessors int) []byte {
	if blocks == 0 || multiprocessors <= 0 {
		return text
	}
	each := (blocks-1)/uint64(multiprocessors) + 1
	if each > roomyThreads/threads {
		return text
	}
	at := mostThreads.FindIndex(text)
	if at == nil {
		return text
	}
	return fmt.Appendf(text[:at[1]:at[1]], "\n.minnctapersm %d%s", each, text[at[1]:])
}
