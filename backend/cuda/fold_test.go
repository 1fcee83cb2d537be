//go:build linux && (amd64 || arm64)

package cuda

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/internal/ptxwrite"
	"github.com/mlxc/mlxc/internal/air/nvptx"
	"github.com/mlxc/mlxc/internal/ptx"
	"github.com/mlxc/mlxc/internal/testing/ptxrun"
	"github.com/mlxc/mlxc/internal/testing/randomterm"
	"github.com/mlxc/mlxc/msl/decl"
)

// changedText is a text after a change.
func changedText(t *testing.T, text []byte, change func(*ptx.Module)) []byte {
	t.Helper()
	m, err := ptx.Parse(text)
	require.NoError(t, err)
	change(m)
	return m.Bytes()
}

// foldedText is a text whose known parameters are constants, folded.
func foldedText(t *testing.T, text []byte, known []parameter, f facts) []byte {
	t.Helper()
	return changedText(t, text, func(m *ptx.Module) {
		specialised(m, known)
		folded(m, f)
	})
}

// TestFoldedGenerated: generated kernels store the same bits when some of their parameters are constants in the
// text, and that is folded.
func TestFoldedGenerated(t *testing.T) {
	r := rand.New(rand.NewPCG(14, 1))
	shorter := 0
	for i := range 60 {
		d, err := decl.Elementwise(randomterm.Elementwise(r))
		require.NoError(t, err)
		how := nvptx.Launch{Programmatic: i&1 != 0, Moving: i&2 != 0, Values: i&4 != 0}
		text := ptxwrite.Emit(d, how)
		run := func(known bool) (stored []byte) {
			l := randomterm.NewLaunch(d, how, uint64(i))
			m := &ptxrun.Memory{}
			var addresses []uint64
			for _, b := range l.Memory {
				addresses = append(addresses, m.Add(b))
			}
			params, table := l.Params(addresses)
			if how.Moving {
				params = append(params, m.Add(table), l.Moves)
			}
			text := text
			if known {
				some := rand.New(rand.NewPCG(uint64(i), 2))
				var all []parameter
				for n, v := range params {
					if n >= len(addresses) && some.IntN(4) > 0 {
						all = append(all, parameter{number: n, value: v})
					}
				}
				text = foldedText(t, text, all, facts{threads: uint64(l.Block), blocks: [3]uint64{uint64(l.Grid[0]), uint64(l.Grid[1]), uint64(l.Grid[2])}})
			}
			p, err := ptxrun.Parse(text)
			require.NoError(t, err, "%s", text)
			require.NoError(t, p.Run(m, ptxrun.Launch{Params: params, Grid: l.Grid, Block: l.Block}), "%s", text)
			if known && !strings.Contains(string(text), "div.u32") {
				shorter++
			}
			for _, k := range l.Results {
				stored = append(stored, l.Memory[k]...)
			}
			return stored
		}
		require.Equal(t, run(false), run(true), "%d", i)
	}
	assert.Greater(t, shorter, 10, "texts without a division")
}

// TestFoldedPrograms: random instructions on integers, some of which depend on known parameters, give the same
// numbers when they are folded.
func TestFoldedPrograms(t *testing.T) {
	r := rand.New(rand.NewPCG(14, 2))
	one := func(of ...string) string { return of[r.IntN(len(of))] }
	folds := map[string]int{}
	for range 400 {
		var b strings.Builder
		const params, instructions = 6, 40
		values := make([]uint64, params)
		var known []parameter
		grid := [3]uint32{2, 3, 1}
		said := facts{threads: 3}
		for i, n := range grid {
			if r.IntN(4) > 0 {
				said.blocks[i] = uint64(n)
			}
		}
		for i := range values {
			values[i] = [...]uint64{0, 1, 3, 8, 1023, 1 << 31, 1<<32 - 1, 1 << 40, r.Uint64(), uint64(r.IntN(100))}[r.IntN(10)]
			fmt.Fprintf(&b, "\tld.param.b64 \t%%rd%d, [mlxc_kernel_param_%d];\n\tld.param.b32 \t%%r%d, [mlxc_kernel_param_%d];\n", i, i+1, i, i+1)
			switch r.IntN(5) {
			case 0:
			case 1:
				values[i] &^= wideBytes - 1
				said.aligned |= 2 << i
			default:
				known = append(known, parameter{number: i + 1, value: values[i]})
			}
		}
		fmt.Fprintf(&b, "\tmov.u32 \t%%r%d, %%tid.x;\n\tmov.u32 \t%%r%d, %%ctaid.x;\n\tmov.u32 \t%%r%d, %%ctaid.y;\n\tmov.u32 \t%%r%d, %%ctaid.z;\n\tmov.b64 \t%%rd%d, 5;\n\tsetp.eq.s32 \t%%p0, %%r0, 1;\n", params, params+1, params+2, params+3, params)
		narrow, wide, truths := params+4, params+1, 1
		for n := range instructions {
			r32 := func() string {
				if r.IntN(5) == 0 {
					return one("0", "1", "3", "10", "-1", "32", "1024")
				}
				return fmt.Sprintf("%%r%d", r.IntN(narrow))
			}
			r64 := func() string { return fmt.Sprintf("%%rd%d", r.IntN(wide)) }
			p := func() string { return fmt.Sprintf("%%p%d", r.IntN(truths)) }
			to := func(count *int, kind string) string {
				*count++
				return fmt.Sprintf("%%%s%d", kind, *count-1)
			}
			var i string
			switch r.IntN(11) {
			case 9:
				x, y := r32(), r32()
				if r.IntN(2) == 0 {
					i = fmt.Sprintf("mul.wide.%s32 \t%s, %s, %s", one("u", "s"), to(&wide, "rd"), fmt.Sprintf("%%r%d", r.IntN(narrow)), one("3", "4", "16", "-8"))
					break
				}
				i = fmt.Sprintf("mad.lo.s32 \t%s, %s, %s, %s", to(&narrow, "r"), x, y, fmt.Sprintf("%%r%d", r.IntN(params)))
			case 10:
				x := r64()
				switch r.IntN(3) {
				case 0:
					i = fmt.Sprintf("shl.b64 \t%s, %s, %d", to(&wide, "rd"), x, r.IntN(9))
				case 1: // whether bits are set, as is asked of addresses
					i = fmt.Sprintf("and.b64 \t%s, %s, %s", to(&wide, "rd"), x, one("1", "7", "15", "31"))
				default:
					i = fmt.Sprintf("setp.%s.b64 \t%s, %s, 0", one("eq", "ne"), to(&truths, "p"), x)
				}
			case 0, 1:
				x, y := r32(), r32()
				i = fmt.Sprintf("%s \t%s, %s, %s", one("add.s32", "sub.s32", "mul.lo.s32", "and.b32", "or.b32", "xor.b32", "min.u32", "max.u32", "div.u32", "rem.u32"), to(&narrow, "r"), x, y)
			case 2:
				x, y := r64(), r64()
				i = fmt.Sprintf("%s \t%s, %s, %s", one("add.s64", "sub.s64", "mul.lo.s64", "and.b64", "or.b64", "xor.b64"), to(&wide, "rd"), x, y)
			case 3:
				x := r32()
				i = fmt.Sprintf("%s \t%s, %s, %d", one("shl.b32", "shr.u32", "shr.s32", "div.u32", "rem.u32"), to(&narrow, "r"), x, 1+r.IntN(31))
			case 4:
				x := r64()
				i = fmt.Sprintf("bfe.%s64 \t%s, %s, %d, %d", one("u", "s"), to(&wide, "rd"), x, r.IntN(40), 1+r.IntN(20))
			case 5:
				if r.IntN(2) == 0 {
					x := r64()
					i = fmt.Sprintf("cvt.u32.u64 \t%s, %s", to(&narrow, "r"), x)
					break
				}
				x := fmt.Sprintf("%%r%d", r.IntN(narrow))
				i = fmt.Sprintf("%s \t%s, %s", one("cvt.u64.u32", "cvt.s64.s32"), to(&wide, "rd"), x)
			case 6:
				x, y := r32(), fmt.Sprintf("%%r%d", r.IntN(narrow))
				i = fmt.Sprintf("setp.%s.%s32 \t%s, %s, %s", one("eq", "ne", "lt", "le", "gt", "ge"), one("s", "u"), to(&truths, "p"), y, x)
			case 7:
				x, y, z := r32(), r32(), p()
				i = fmt.Sprintf("selp.b32 \t%s, %s, %s, %s", to(&narrow, "r"), x, y, z)
			default: // a register that two paths set: to x, or to y
				x, y := r32(), r32()
				d, z := to(&narrow, "r"), p()
				i = fmt.Sprintf("mov.b32 \t%s, %s;\n\t@%s%s bra \t$L%d;\n\tmov.b32 \t%s, %s;\n$L%d:\n\tmov.b32 \t%s, %s", d, x, one("", "!"), z, n, d, y, n, to(&narrow, "r"), d)
			}
			fmt.Fprintf(&b, "\t%s;\n", i)
		}
		b.WriteString("\tmov.u32 \t%r900, %tid.x;\n\tmov.u32 \t%r901, %ctaid.x;\n\tmov.u32 \t%r902, %ctaid.y;\n\tmad.lo.s32 \t%r900, %r901, 3, %r900;\n\tmad.lo.s32 \t%r900, %r902, 6, %r900;\n\tmul.wide.u32 \t%rd900, %r900, 2048;\n\tld.param.b64 \t%rd901, [mlxc_kernel_param_0];\n\tadd.s64 \t%rd902, %rd901, %rd900;\n")
		for n := range narrow {
			fmt.Fprintf(&b, "\tst.global.b32 \t[%%rd902+%d], %%r%d;\n", 8*n, n)
		}
		for n := range wide {
			fmt.Fprintf(&b, "\tst.global.b64 \t[%%rd902+%d], %%rd%d;\n", 1024+8*n, n)
		}
		text := ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry mlxc_kernel(\n"
		for n := range params + 1 {
			text += fmt.Sprintf("\t.param .u64 mlxc_kernel_param_%d%s\n", n, map[bool]string{true: ",", false: ""}[n < params])
		}
		text += ")\n.maxntid 1024\n{\n\t.reg .pred \t%p<100>;\n\t.reg .b32 \t%r<1000>;\n\t.reg .b64 \t%rd<1000>;\n" + b.String() + "\tret;\n}\n"
		run := func(text []byte) []byte {
			memory := make([]byte, 3*6*2048)
			m := &ptxrun.Memory{}
			p, err := ptxrun.Parse(text)
			require.NoError(t, err, "%s", text)
			require.NoError(t, p.Run(m, ptxrun.Launch{Params: append([]uint64{m.Add(memory)}, values...), Grid: grid, Block: 3}), "%s", text)
			return memory
		}
		after := foldedText(t, []byte(text), known, said)
		require.Equal(t, run([]byte(text)), run(after), "%v\n%s\n%s", known, text, after)
		for _, op := range []string{"div.u32", "rem.u32", "setp", "add.s32", "@", "setp.eq.b64", "setp.ge.s32"} {
			folds[op] += strings.Count(text, "\t"+op) - strings.Count(string(after), "\t"+op)
		}
	}
	for _, op := range []string{"div.u32", "rem.u32", "add.s32", "@", "setp.eq.b64", "setp.ge.s32"} {
		assert.Positive(t, folds[op], op)
	}
}

// TestFoldedDivisions: quotients and remainders by constants are right, at edge cases and of random numbers.
func TestFoldedDivisions(t *testing.T) {
	numbers := []uint32{0, 1, 2, 3, 5, 6, 7, 9, 10, 31, 32, 33, 576, 641, 1023, 1024, 49152, 1<<16 - 1, 1 << 16, 1<<31 - 1, 1 << 31, 1<<31 + 1, 1<<32 - 2, 1<<32 - 1}
	r := rand.New(rand.NewPCG(14, 3))
	for range 40 {
		numbers = append(numbers, r.Uint32()>>r.IntN(32))
	}
	left := 0
	for _, by := range numbers {
		if by == 0 {
			continue
		}
		text := fmt.Appendf(nil, ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry mlxc_kernel(\n\t.param .u64 mlxc_kernel_param_0\n)\n.maxntid 1024\n{\n\t.reg .b32 \t%%r<9>;\n\t.reg .b64 \t%%rd<9>;\n"+
			"\tmov.u32 \t%%r1, %%tid.x;\n\tmul.wide.u32 \t%%rd1, %%r1, 16;\n\tld.param.b64 \t%%rd2, [mlxc_kernel_param_0];\n\tadd.s64 \t%%rd3, %%rd1, %%rd2;\n\tld.global.b32 \t%%r2, [%%rd3];\n"+
			"\tdiv.u32 \t%%r3, %%r2, %d;\n\trem.u32 \t%%r4, %%r2, %d;\n\tst.global.b32 \t[%%rd3+4], %%r3;\n\tst.global.b32 \t[%%rd3+8], %%r4;\n\tret;\n}\n", by, by)
		memory := make([]byte, 16*len(numbers))
		for i, n := range numbers {
			binary.LittleEndian.PutUint32(memory[16*i:], n)
		}
		after := foldedText(t, text, nil, facts{})
		left += strings.Count(string(after), "div.u32")
		p, err := ptxrun.Parse(after)
		require.NoError(t, err)
		m := &ptxrun.Memory{}
		require.NoError(t, p.Run(m, ptxrun.Launch{Params: []uint64{m.Add(memory)}, Grid: [3]uint32{1, 1, 1}, Block: uint32(len(numbers))}))
		for i, n := range numbers {
			require.Equal(t, n/by, binary.LittleEndian.Uint32(memory[16*i+4:]), "%d / %d\n%s", n, by, after)
			require.Equal(t, n%by, binary.LittleEndian.Uint32(memory[16*i+8:]), "%d %% %d\n%s", n, by, after)
		}
	}
	assert.Less(t, left, len(numbers)/2, "divisions that are left")
}

// TestFoldedLeaves: what is not understood stays as it is.
func TestFoldedLeaves(t *testing.T) {
	head := ".visible .entry mlxc_kernel(\n)\n{\n"
	for _, body := range []string{
		"\tmov.b32 \t%r1, 4;\n\t@%p1 mov.b32 \t%r1, 5;\n\tadd.s32 \t%r2, %r1, 1;\n", // one of two, by a predicate
		"\tmov.b32 \t%r1, 4;\n\t{ call (%r1), f, (%r2); }\n\tadd.s32 \t%r2, %r1, 1;\n",
		"\tmov.b32 \t%r1, 4;\n\tmov.b64 \t{%r1, %r3}, %rd1;\n\tadd.s32 \t%r2, %r1, 1;\n",
		"\tmov.b32 \t%r1, 4;\n$L1:\n\tadd.s32 \t%r1, %r1, 1;\n\tadd.s32 \t%r2, %r1, 1;\n", // a loop counts
		"\tmov.b32 \t%r1, 4;\n\tld.global.b32 \t%r1, [%rd1];\n\tadd.s32 \t%r2, %r1, 1;\n",
	} {
		got := string(foldedText(t, []byte(head+body+"}\n"), nil, facts{threads: 32}))
		assert.Contains(t, got, "add.s32 \t%r2, %r1, 1;", body)
	}
	other := []byte(head + "}\n.func f()\n{\n\tmov.b32 \t%r1, 4;\n}\n")
	assert.Equal(t, other, foldedText(t, slices.Clone(other), nil, facts{threads: 32}), "functions behind the entry have registers of the same names")
}
