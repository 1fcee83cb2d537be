package calls

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/cpu"

	"github.com/mlxc/mlxc/internal/testing/sample"
)

// TestLevels checks that machines with and without fused multiply-add, and with vectors of
// other lengths, compute the same bits.
func TestLevels(t *testing.T) {
	sample.Seldom(t)
	var fs []Function
	for _, op := range slices.Sorted(maps.Keys(floatFunctions)) {
		signature := floatFunctions[op].signature
		if strings.Trim(signature, "T") != "" || op == "cross" {
			continue
		}
		fs = append(fs, Function{"air." + op + ".f32", "float", slices.Repeat([]string{"float"}, len(signature)-1)})
	}
	fs = append(fs, Function{"air.fma.f16", "half", []string{"half", "half", "half"}}, Function{"air.exp.bf16", "bfloat", []string{"bfloat"}})
	require.Greater(t, len(fs), 50)
	levels := []string{"-march=x86-64-v2", "-march=x86-64-v3"}
	if cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512VL && cpu.X86.HasAVX512CD {
		levels = append(levels, "-march=x86-64-v4")
	}
	var first [][]uint64
	for l, level := range levels {
		p := start(t, fs, level)
		r := rand.New(rand.NewPCG(23, 24))
		for i, f := range fs {
			in := floatFormats()[slices.IndexFunc(floatFormats(), func(ff format) bool { return ff.t.String() == f.Result })]
			const count = 2000
			e := edges(in)
			var args [][]byte
			for range f.Params {
				var x []uint64
				for range count {
					v := r.Uint64() >> (64 - in.t.bits())
					switch r.IntN(3) {
					case 0:
						v = e[r.IntN(len(e))]
					case 1:
						v = in.encode(numberOf(r.Float64()*8 - 4))
					}
					x = append(x, v)
				}
				args = append(args, pack(x, in.t))
			}
			got := unpack(p.run(t, f.Name, count, false, args...), in.t)
			for j, v := range got {
				if in.decode(v).not == "nan" {
					got[j] = 0
				}
			}
			if l == 0 {
				first = append(first, got)
				continue
			}
			require.True(t, slices.Equal(first[i], got), "%s with %s", f.Name, level)
		}
	}
}
