//go:build linux && (amd64 || arm64)

package cuda

import (
	"fmt"
	"strings"

	"github.com/mlxc/mlxc/internal/air/nvptx"
	"github.com/mlxc/mlxc/internal/ptx"
)

// leastOpaque is the minimum of places that set a constant beside masked bits for it to be made opaque.
const leastOpaque = 8

// maskedAndSet reports whether a line masks bits of a word, by `and` or `bfe`, and the next one sets others, as when an
// integer is put into the fraction of a float (`small` of quantized.metal). A GPU has one instruction for both if one of
// the two constants lies in a register, but none for two immediates: an assembler that knows both makes two
// instructions of it.
func maskedAndSet(lines []ptx.Line) (cut, set *ptx.Statement, ok bool) {
	if len(lines) < 2 {
		return nil, nil, false
	}
	word := func(in *ptx.Statement, op string, numbers int) bool {
		if in == nil || in.Op != op || in.Guard != "" || len(in.Args) != 2+numbers {
			return false
		}
		for i, a := range in.Args {
			if i < 2 && a.Kind != ptx.Register || i >= 2 && (a.Kind != ptx.Integer || a.Text[0] == '-') {
				return false
			}
		}
		return true
	}
	cut, set = lines[0].Instruction(), lines[1].Instruction()
	return cut, set, word(set, "or.b32", 1) && (word(cut, "and.b32", 1) || word(cut, "bfe.u32", 2))
}

// opaque computes the constant that is most often set beside masked bits from a parameter, one whose value is known
// here but not to the assembler.
func opaque(m *ptx.Module, known []parameter) {
	var from *parameter
	for i := range known {
		if p := &known[i]; !p.aligned && p.number < len(m.Params) && m.Params[p.number].Type == "u32" {
			from = p // such as the threads of the grid
		}
	}
	counts, number := map[string]int{}, ""
	begin := -1
	var value uint64
	for i := m.Entry; i < len(m.Lines); i++ {
		if begin < 0 && strings.HasPrefix(m.Lines[i].Text, firstBlock) {
			begin = i
		}
		_, set, ok := maskedAndSet(m.Lines[i:])
		if !ok {
			continue
		}
		n := set.Args[2].Text
		if counts[n]++; counts[n] > counts[number] || counts[n] == counts[number] && n < number {
			number, value = n, set.Args[2].Number
		}
	}
	if from == nil || begin < 0 || m.Behind || counts[number] < leastOpaque {
		return
	}
	m.Replace(func(i int) ([]ptx.Line, bool) {
		l := &m.Lines[i]
		if i == begin {
			return append([]ptx.Line{*l}, ptx.NewLine("\t.reg .b32 \t%opaque;\n"), ptx.NewLine(fmt.Sprintf("\tld.param.b32 \t%%opaque, [%s_param_%d];\n", nvptx.Entry, from.number)),
				ptx.NewLine(fmt.Sprintf("\txor.b32 \t%%opaque, %%opaque, %d;\n", uint32(from.value)^uint32(value)))), true
		}
		use := func(cut, set *ptx.Statement) bool {
			return set.Args[2].Text == number && set.Args[1].Name == cut.Args[0].Name
		}
		fits := func(cut *ptx.Statement) bool {
			return cut.Op != "bfe.u32" || cut.Args[3].Number > 0 && cut.Args[2].Number+cut.Args[3].Number <= 32
		}
		if cut, set, ok := maskedAndSet(m.Lines[i:]); ok && use(cut, set) && fits(cut) && cut.Op == "bfe.u32" {
			to, at, width := cut.Args[0].Name, cut.Args[2].Number, cut.Args[3].Number
			return l.With(fmt.Sprintf("shr.u32 \t%s, %s, %d", to, cut.Args[1].Name, at), fmt.Sprintf("and.b32 \t%s, %[1]s, %d", to, uint32(1)<<width-1)), true
		}
		if i > 0 {
			if cut, set, ok := maskedAndSet(m.Lines[i-1:]); ok && use(cut, set) && fits(cut) {
				return l.With(fmt.Sprintf("or.b32 \t%s, %s, %%opaque", set.Args[0].Name, set.Args[1].Name)), true
			}
		}
		return nil, false
	})
}

// firstBlock is what the comment begins with that LLVM writes before the first instruction of a function.
const firstBlock = "// %bb.0:"
