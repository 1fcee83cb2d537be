package bitcode_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/metallib/bitcode"
	"github.com/mlxc/mlxc/internal/toolchain/clang"
)

// randomType returns the text of a random LLVM type.
func randomType(r *rand.Rand, depth int) string {
	scalar := func() string {
		return []string{"i1", "i8", "i16", "i24", "i32", "i64", "i128", "half", "bfloat", "float", "double", "ptr", "i5", "i70"}[r.IntN(14)]
	}
	if depth == 0 {
		return scalar()
	}
	switch r.IntN(5) {
	case 0:
		return fmt.Sprintf("[%d x %s]", r.IntN(40), randomType(r, depth-1))
	case 1:
		s := scalar()
		for s == "ptr" {
			s = scalar()
		}
		return fmt.Sprintf("<%d x %s>", 1+r.IntN(9), s)
	case 2, 3:
		var fields []string
		for range r.IntN(5) {
			fields = append(fields, randomType(r, depth-1))
		}
		body := "{ " + strings.Join(fields, ", ") + " }"
		if r.IntN(4) == 0 {
			return "<" + body + ">"
		}
		return body
	}
	return scalar()
}

// Sizes of types equal those that clang computes, for the data layouts of several targets.
func TestLayout(t *testing.T) {
	const types = 300
	c, err := clang.Find(context.Background())
	require.NoError(t, err)
	for _, target := range []string{"x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu", "nvptx64-nvidia-cuda"} {
		t.Run(target, func(t *testing.T) {
			r := rand.New(rand.NewPCG(11, 7))
			var b strings.Builder
			for i := range types {
				ty := randomType(r, 3)
				fmt.Fprintf(&b, "@g%d = global %s zeroinitializer\n", i, ty)
				fmt.Fprintf(&b, "@size%d = constant i64 ptrtoint (ptr getelementptr (%s, ptr null, i32 1) to i64)\n", i, ty)
				fmt.Fprintf(&b, "@align%d = constant i64 ptrtoint (ptr getelementptr ({ i8, %s }, ptr null, i32 0, i32 1) to i64)\n", i, ty)
			}
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, "g.ll"), []byte(b.String()), 0o644))
			run := func(args ...string) {
				cmd := c.Command(context.Background(), append([]string{"--target=" + target, "-Wno-override-module"}, args...)...)
				cmd.Dir = dir
				out, err := cmd.CombinedOutput()
				require.NoError(t, err, "%s", out)
			}
			run("-c", "-emit-llvm", "g.ll", "-o", "g.bc")
			run("-O1", "-S", "-emit-llvm", "g.ll", "-o", "folded.ll")
			data, err := os.ReadFile(filepath.Join(dir, "g.bc"))
			require.NoError(t, err)
			folded, err := os.ReadFile(filepath.Join(dir, "folded.ll"))
			require.NoError(t, err)
			want := map[string]string{}
			for _, m := range regexp.MustCompile(`(?m)^@(\w+) = .*constant i64 (\d+)`).FindAllStringSubmatch(string(folded), -1) {
				want[m[1]] = m[2]
			}
			require.Len(t, want, 2*types)
			m, err := bitcode.Read(data)
			require.NoError(t, err)
			compared := 0
			for _, g := range m.Globals {
				if n, ok := strings.CutPrefix(g.Name, "g"); ok {
					assert.Equal(t, want["size"+n]+" "+want["align"+n], strconv.FormatInt(g.Size, 10)+" "+strconv.FormatInt(g.Align, 10), "%s in %s", n, m.DataLayout)
					compared++
				}
			}
			assert.Equal(t, types, compared)
		})
	}
}

// A data layout without meaning leaves the sizes at LLVM's defaults.
func TestStrangeLayout(t *testing.T) {
	for _, layout := range []string{"", "-", ":", ":-:64", "i", "i:", "i32", "i32:", "i32:x", "i32:3", "i32:12", "i32:0", "i32:99999999999999999999", "p", "p:64", "p3:7:8", "p3:64:0", "a:0", "a:7", "v:1", "\xff\xff", "i-32:8"} {
		m, err := bitcode.Read(module(func(w *writer) {
			var ops []uint64
			for _, c := range []byte(layout) {
				ops = append(ops, uint64(c))
			}
			w.record(3, ops...)
			w.block(17, width, func(w *writer) { w.record(7, 32).record(25, 3).record(18, 0, 0, 1) })
			w.record(7, 0, 1, 2, 2, 0, 3, 0, 0)
		}))
		require.NoError(t, err, "%q", layout)
		assert.Equal(t, []int64{16, 8}, []int64{m.Globals[0].Size, m.Globals[0].Align}, "%q", layout)
	}
}
