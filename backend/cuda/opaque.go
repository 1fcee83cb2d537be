//go:build linux && (amd64 || arm64)

package cuda

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"

	"github.com/mlxc/mlxc/internal/air"
)

// cutOut matches code that masks bits of a word and sets others, as when an integer is put into the fraction of a
// float (`small` of quantized.metal). A GPU has one instruction for both if one of the two constants lies in a
// register, but none for two immediates: an assembler that knows both makes two instructions of it.
var (
	cutOut = regexp.MustCompile(`(?m)^\t(?:and\.b32 \t(%r\d+), %r\d+, \d+|bfe\.u32 \t(%r\d+), (%r\d+), (\d+), (\d+));\n\tor\.b32 \t%r\d+, (%r\d+), (\d+);$`)
	// lastRegisters matches the last register declarations of a body, before its first instruction.
	lastRegisters = regexp.MustCompile(`(?m)^\t\.reg \.\w+ +\t%\w+<\d+>;\n(?:\s*\n)*// %bb\.0:.*\n`)
)

// leastOpaque is the minimum of places that set a constant beside masked bits for it to be made opaque.
const leastOpaque = 8

// opaque returns the PTX in which the constant that is most often set beside masked bits is computed from a
// parameter, one whose value is known here but not to the assembler.
func opaque(text []byte, known []parameter) []byte {
	entry := bytes.Index(text, []byte(".visible .entry"))
	if entry < 0 {
		return text
	}
	var from *parameter
	for i := range known {
		p := &known[i]
		if !p.aligned && bytes.Contains(text[entry:], fmt.Appendf(nil, ".param .u32 %s_param_%d", air.PTXEntry, p.number)) {
			from = p // of 32 bits, such as the threads of the grid
		}
	}
	body := text[entry:]
	found := cutOut.FindAllSubmatchIndex(body, -1)
	counts, number := map[string]int{}, ""
	of := func(m []int, i int) string {
		if m[2*i] < 0 {
			return ""
		}
		return string(body[m[2*i]:m[2*i+1]])
	}
	for _, m := range found {
		n := of(m, 7)
		if counts[n]++; counts[n] > counts[number] || counts[n] == counts[number] && n < number {
			number = n
		}
	}
	begin := lastRegisters.FindIndex(body)
	value, err := strconv.ParseUint(number, 10, 32)
	if from == nil || begin == nil || err != nil || counts[number] < leastOpaque {
		return text
	}
	var out bytes.Buffer
	out.Write(text[:entry])
	out.Write(body[:begin[1]])
	fmt.Fprintf(&out, "\t.reg .b32 \t%%opaque;\n\tld.param.b32 \t%%opaque, [%s_param_%d];\n\txor.b32 \t%%opaque, %%opaque, %d;\n", air.PTXEntry, from.number, uint32(from.value)^uint32(value))
	last := begin[1]
	for _, m := range found {
		cut := of(m, 1) + of(m, 2)
		if of(m, 7) != number || of(m, 6) != cut {
			continue
		}
		if of(m, 2) != "" { // bfe becomes a shift and a mask
			at, _ := strconv.Atoi(of(m, 4))
			width, _ := strconv.Atoi(of(m, 5))
			if at+width > 32 || width == 0 {
				continue
			}
			out.Write(body[last:m[0]])
			fmt.Fprintf(&out, "\tshr.u32 \t%s, %s, %d;\n\tand.b32 \t%s, %s, %d;", cut, of(m, 3), at, cut, cut, uint32(1)<<width-1)
			last = bytes.IndexByte(body[m[0]:], '\n') + m[0]
		}
		out.Write(body[last:m[14]])
		out.WriteString("%opaque")
		last = m[15]
	}
	out.Write(body[last:])
	return out.Bytes()
}
