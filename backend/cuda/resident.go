//go:build linux && (amd64 || arm64)

package cuda

import (
	"fmt"
	"regexp"
	"strconv"
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

// mostThreads matches the directive for the maximum of threads in a block.
var mostThreads = regexp.MustCompile(`(?m)^\.maxntid (\d+)$`)

// fewestBlocks matches the directive for how many blocks share a multiprocessor. What it says already is the maximum
// with which the kernel has all registers that it needs.
var fewestBlocks = regexp.MustCompile(`(?m)^\.minnctapersm (\d+)\n`)

// resident adds the directive for how many blocks share a multiprocessor, where a grid is so small that they are
// few. An assembler that is not told saves registers, so that as many blocks as possible fit, and to that end issues
// some loads only when other values have been used up; few blocks do not hide such latencies, and the saved
// registers lie idle.
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
	if said := fewestBlocks.FindSubmatch(rest); said != nil { // by the compiler, which does not know the grid
		if n, err := strconv.ParseUint(string(said[1]), 10, 64); err == nil {
			each = min(each, n)
		}
		rest = fewestBlocks.ReplaceAll(rest, nil)
	}
	return fmt.Appendf(text[:at[1]:at[1]], "\n.minnctapersm %d%s", each, rest)
}
