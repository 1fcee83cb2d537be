//go:build linux && (amd64 || arm64)

package cuda

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mlxc/mlxc/internal/ptx"
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

// warmedUp gives the text of a programmatic launch one more warp in each block, which warms the instruction cache: it takes the path of the first warp, but neither waits for other launches nor accesses memory, so that the
// code is cached when the others go on behind their wait. The caches of a multiprocessor hold 32 KB of instructions
// (measured on an H200: five copies of a kernel of 6.4 KB in turn take as long as one, and six a fifth longer); the
// five kernels of a layer of a decode have more than 50, and each, which executes every instruction once, would wait
// for most of them. It reports whether the text could be changed so: the path must also end for threads whose values
// mean nothing.
func warmedUp(m *ptx.Module, known facts, multiprocessors int) bool {
	blocks, threads := known.blocks[0]*known.blocks[1]*known.blocks[2], known.threads
	if blocks == 0 || threads%warmupThreads != 0 || threads+warmupThreads > mostInBlock || multiprocessors <= 0 {
		return false
	}
	if each := (blocks-1)/uint64(multiprocessors) + 1; each*(threads+warmupThreads) > fewThreads {
		return false
	}
	f := fold(m, known)
	if f == nil || !f.straight() { // the end of a loop may depend on values
		return false
	}
	if early, late := f.beforeWait(); shorter*early > late {
		return false
	}
	changed := map[int][]ptx.Line{} // by the line of the entry
	waits, begun, sized := false, false, false
	for i := range f.lines {
		l := &f.lines[i]
		switch {
		case !begun && strings.HasPrefix(l.Text, firstBlock):
			begun = true
			changed[i] = append([]ptx.Line{*l.Line}, ptx.NewLine("\t.reg .pred \t%rehearses<1>;\n"), ptx.NewLine("\t.reg .b32 \t%thread<1>;\n"), ptx.NewLine("\tmov.u32 \t%thread0, %tid.x;\n"),
				ptx.NewLine(fmt.Sprintf("\tsetp.ge.u32 \t%%rehearses0, %%thread0, %d;\n", threads)), ptx.NewLine(fmt.Sprintf("\t@%%rehearses0 sub.u32 \t%%thread0, %%thread0, %d;\n", threads)))
			continue
		case strings.TrimSpace(l.Text) == fmt.Sprintf(".maxntid %d", threads):
			sized = true
			changed[i] = []ptx.Line{ptx.NewLine(fmt.Sprintf(".maxntid %d\n", threads+warmupThreads))}
			continue
		case l.never || !begun || l.in == nil && !l.Executes():
			continue
		case l.in == nil: // several instructions, or a call
			return false
		case l.in.Op == "mov.u32" && l.in.Guard == "" && len(l.in.Args) == 2 && l.in.Args[1].Name == "%tid.x":
			changed[i] = l.With(fmt.Sprintf("mov.u32 \t%s, %%thread0", l.in.Args[0].Name))
			continue
		case strings.Contains(l.Text, "%tid") || strings.Contains(l.Text, "%ntid") || strings.Contains(l.Text, "warpid"):
			return false
		}
		switch kind, _, _ := strings.Cut(l.in.Op, "."); {
		case kind == "griddepcontrol" || strings.HasPrefix(l.in.Op, "ld.global.") || strings.HasPrefix(l.in.Op, "st.global.") || kind == "prefetch":
			if l.in.Guard != "" {
				return false
			}
			waits = waits || kind == "griddepcontrol"
			changed[i] = []ptx.Line{ptx.NewLine(strings.Replace(l.Text, l.in.Op, "@!%rehearses0 "+l.in.Op, 1))}
		case kind != "bra" && !strings.HasPrefix(l.in.Op, "ld.param.") && !slices.Contains(harmless, kind):
			return false
		}
	}
	if !waits || !sized {
		return false
	}
	entry := m.Entry
	m.Replace(func(i int) ([]ptx.Line, bool) {
		lines, ok := changed[i-entry]
		return lines, ok
	})
	return true
}

// beforeWait counts the instructions before griddepcontrol.wait, and those behind it.
func (f *folder) beforeWait() (early, late int) {
	reached := f.until(func(l *folding) bool { return l.op() == "griddepcontrol.wait" })
	for i := range f.lines {
		switch l := &f.lines[i]; {
		case l.in == nil || l.never:
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
