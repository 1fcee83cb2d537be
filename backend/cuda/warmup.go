//go:build linux && (amd64 || arm64)

package cuda

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// warmupThreads is the number of threads in a warm-up warp, which blocks of a warmed-up entry have in addition.
const warmupThreads = 32

// fewThreads is the maximum of threads that a launch has on a multiprocessor for a warm-up to pay: of more, the
// first ones warm the cache for the others.
const fewThreads = 512

// shorter is how many times fewer instructions there must be before the wait than behind it: a launch with much to
// do beforehand hardly waits, and one more warp would slow it down. (The products with rope, as many instructions
// before as behind, took 0.25 µs longer on an H200.)
const shorter = 2

// mostInBlock is the maximum of threads in a block on all of NVIDIA's GPUs.
const mostInBlock = 1024

// warmedUp returns the PTX of a programmatic launch with one more warp in each block, which warms the instruction
// cache: it takes the path of the first warp, but neither waits for other launches nor accesses memory, so that the
// code is cached when the others go on behind their wait. The caches of a multiprocessor hold 32 KB of instructions
// (measured on an H200: five copies of a kernel of 6.4 KB in turn take as long as one, and six a fifth longer); the
// five kernels of a layer of a decode have more than 50, and each, which executes every instruction once, would wait
// for most of them. ok: the text could be changed so; the path must also end for threads whose values mean nothing.
func warmedUp(text []byte, known facts, multiprocessors int) (_ []byte, ok bool) {
	blocks, threads := known.blocks[0]*known.blocks[1]*known.blocks[2], known.threads
	if blocks == 0 || threads%warmupThreads != 0 || threads+warmupThreads > mostInBlock || multiprocessors <= 0 {
		return text, false
	}
	if each := (blocks-1)/uint64(multiprocessors) + 1; each*(threads+warmupThreads) > fewThreads {
		return text, false
	}
	before, f := fold(text, known)
	if f == nil || !f.straight() { // the end of a loop may depend on values
		return text, false
	}
	if early, late := f.beforeWait(); shorter*early > late {
		return text, false
	}
	out := bytes.NewBuffer(bytes.Clone(before))
	waits, begun, sized := false, false, false
	for i := range f.lines {
		l := &f.lines[i]
		trimmed := strings.TrimSpace(l.text)
		switch {
		case !begun && strings.HasPrefix(trimmed, "// %bb.0:"):
			begun = true
			out.WriteString(l.text)
			fmt.Fprintf(out, "\t.reg .pred \t%%rehearses<1>;\n\t.reg .b32 \t%%thread<1>;\n\tmov.u32 \t%%thread0, %%tid.x;\n\tsetp.ge.u32 \t%%rehearses0, %%thread0, %d;\n\t@%%rehearses0 sub.u32 \t%%thread0, %%thread0, %[1]d;\n", threads)
			continue
		case trimmed == fmt.Sprintf(".maxntid %d", threads):
			sized = true
			fmt.Fprintf(out, ".maxntid %d\n", threads+warmupThreads)
			continue
		case l.never || !begun:
			out.WriteString(l.text)
			continue
		case l.op == "mov.u32" && l.guard == "" && len(l.args) == 2 && l.args[1] == "%tid.x":
			fmt.Fprintf(out, "\tmov.u32 \t%s, %%thread0;\n", l.args[0])
			continue
		case strings.Contains(l.text, "%tid") || strings.Contains(l.text, "%ntid") || strings.Contains(l.text, "warpid"):
			return text, false
		case l.op == "":
			if trimmed != "" && !strings.ContainsRune("./{}$", rune(trimmed[0])) {
				return text, false // several instructions, or a call
			}
			out.WriteString(l.text)
			continue
		}
		switch kind, _, _ := strings.Cut(l.op, "."); {
		case kind == "griddepcontrol" || strings.HasPrefix(l.op, "ld.global.") || strings.HasPrefix(l.op, "st.global.") || kind == "prefetch":
			if l.guard != "" {
				return text, false
			}
			waits = waits || kind == "griddepcontrol"
			out.WriteString(strings.Replace(l.text, l.op, "@!%rehearses0 "+l.op, 1))
			continue
		case kind != "bra" && !strings.HasPrefix(l.op, "ld.param.") && !slices.Contains(harmless, kind):
			return text, false
		}
		out.WriteString(l.text)
	}
	if !waits || !sized {
		return text, false
	}
	return out.Bytes(), true
}

// beforeWait counts the instructions before griddepcontrol.wait, and those behind it.
func (f *folder) beforeWait() (early, late int) {
	reached := f.until(func(l *ptxLine) bool { return l.op == "griddepcontrol.wait" })
	for i := range f.lines {
		switch l := &f.lines[i]; {
		case l.op == "" || l.never:
		case reached[i]:
			early++
		default:
			late++
		}
	}
	return early, late
}

// harmless are the instructions that access only registers of their thread, and do no harm whatever these hold.
var harmless = strings.Fields(`abs add and bfe bfi brev clz copysign cvt cvta div ex2 fma lg2 mad max min mov mul neg not or
	popc prmt rcp rem ret rsqrt selp set setp shf shfl shl shr sqrt sub xor`)
