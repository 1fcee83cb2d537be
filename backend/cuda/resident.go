//go:build linux && (amd64 || arm64)

package cuda

import (
	"fmt"
	"regexp"
	"strconv"
)

// roomyThreads is how many threads of a multiprocessor at most have so many registers each that an assembler
// has no need to save them, nor to keep any in memory: 128 of the 65,536 that all have together.
const roomyThreads = 512

// crowdedThreads is how many threads of one launch a multiprocessor has where they leave none free: then they
// leave half of the registers to the launch behind them, which asks for its weights while they compute.
const crowdedThreads = 192

// largeBlock is of how many threads a block is large: one more or less of them on a multiprocessor is much. If all of a
// grid have room at one time with fullThreads, which leave each thread 64 registers, then an assembler that is not told
// may give each so many that one has to wait for the others.
const (
	largeBlock  = 256
	fullThreads = 1024
)

// mostThreads is where an entry says how many threads a block has at most.
var mostThreads = regexp.MustCompile(`(?m)^\.maxntid (\d+)$`)

// fewestBlocks is where it says how many blocks are to share a multiprocessor: as many as have all registers
// that they need.
var fewestBlocks = regexp.MustCompile(`(?m)^\.minnctapersm (\d+)\n`)

// resident says in a text how many blocks share a multiprocessor, where a grid is so small that they are few.
// An assembler that is not told saves registers, so that as many blocks as possible find room, and to that
// end loads some values only when others have been used up; few blocks hide no such wait, and the registers
// that were saved lie idle.
func resident(text []byte, known facts, multiprocessors int) []byte {
	blocks, threads := known.blocks[0]*known.blocks[1]*known.blocks[2], known.threads
	if blocks == 0 || multiprocessors <= 0 {
		return text
	}
	each := (blocks-1)/uint64(multiprocessors) + 1
	switch {
	case each <= roomyThreads/threads:
	case threads > largeBlock && each > 1 && each <= fullThreads/threads:
	default:
		return text
	}
	if blocks*threads >= crowdedThreads*uint64(multiprocessors) && 2*each <= roomyThreads/threads {
		each *= 2
	}
	at := mostThreads.FindIndex(text)
	if at == nil {
		return text
	}
	rest := text[at[1]:]
	if said := fewestBlocks.FindSubmatch(rest); said != nil { // without knowing of the grid
		if n, err := strconv.ParseUint(string(said[1]), 10, 64); err == nil {
			each = min(each, n)
		}
		rest = fewestBlocks.ReplaceAll(rest, nil)
	}
	return fmt.Appendf(text[:at[1]:at[1]], "\n.minnctapersm %d%s", each, rest)
}
