//go:build gpu

package calls

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestForGPU writes what testdata/gpu.py runs on a machine with an NVIDIA GPU to the folder
// that AIR_GPU names: PTX with a kernel for every function without pointers, arguments, and
// the results of this machine. Here: `AIR_GPU=FOLDER go test -tags gpu -run ForGPU`; there:
// `python gpu.py FOLDER`.
func TestForGPU(t *testing.T) {
	dir := os.Getenv("AIR_GPU")
	require.NotEmpty(t, dir, "AIR_GPU names the folder to write to")
	var fs []Function
	for _, f := range families() {
		n, err := parseName(f.Name)
		require.NoError(t, err)
		pointers := strings.Contains(strings.Join(f.Params, " "), "ptr")
		if !pointers && n.op != "atomic" && len(f.Params) > 0 {
			fs = append(fs, f)
		}
	}
	text, err := Module(fs, PTX)
	require.NoError(t, err)
	var b strings.Builder
	b.WriteString(text)
	b.WriteString("\ndeclare i32 @llvm.nvvm.read.ptx.sreg.tid.x()\ndeclare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()\ndeclare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()\n")
	type argument struct{ Offset, Bytes, Size int }
	type kernel struct {
		Name, Result string
		Count        int
		Args         []argument
		Want         argument
	}
	var kernels []kernel
	var blob []byte
	p := start(t, fs)
	r := rand.New(rand.NewPCG(19, 20))
	put := func(data []byte, size int) argument {
		for len(blob)%16 != 0 {
			blob = append(blob, 0)
		}
		a := argument{len(blob), len(data), size}
		blob = append(blob, data...)
		return a
	}
	for i, f := range fs {
		var params, operands []string
		result, err := parseType(f.Result)
		require.NoError(t, err)
		for j := range f.Params {
			params = append(params, fmt.Sprintf("ptr addrspace(1) %%in%d", j))
		}
		fmt.Fprintf(&b, "define ptx_kernel void @k%d(%s, ptr addrspace(1) %%out, i32 %%n) {\nstart:\n", i, strings.Join(params, ", "))
		b.WriteString("  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()\n  %c = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()\n  %w = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()\n")
		b.WriteString("  %m = mul i32 %c, %w\n  %id = add i32 %m, %t\n  %i = zext i32 %id to i64\n  %in = icmp ult i32 %id, %n\n  br i1 %in, label %go, label %end\ngo:\n")
		k := kernel{Name: f.Name, Result: f.Result, Count: 256}
		var arrays [][]byte
		for j := range f.Params {
			ty := element(t, f, j)
			stored := ty
			if ty.elem == "i1" {
				stored = ty.of("i8")
			}
			fmt.Fprintf(&b, "  %%o%d = mul i64 %%i, %d\n  %%p%d = getelementptr i8, ptr addrspace(1) %%in%d, i64 %%o%d\n  %%l%d = load %s, ptr addrspace(1) %%p%d, align %d\n", j, memory(ty), j, j, j, j, stored, j, alignment(ty))
			v := fmt.Sprintf("%%l%d", j)
			if ty.elem == "i1" {
				fmt.Fprintf(&b, "  %%x%d = trunc %s %%l%d to %s\n", j, stored, j, ty)
				v = fmt.Sprintf("%%x%d", j)
			}
			operands = append(operands, fmt.Sprintf("%s %s", ty, v))
			var x []uint64
			for range k.Count * max(1, ty.lanes) {
				v := r.Uint64() >> (64 - ty.bits())
				switch form := (format{'f', ty.scalar()}); {
				case ty.integer() && r.IntN(3) == 0:
					v >>= r.IntN(ty.bits())
				case ty.float() && r.IntN(3) == 0:
					v = form.encode(numberOf(r.Float64()*8 - 4))
				case ty.float() && r.IntN(3) == 0:
					e := edges(form)
					v = e[r.IntN(len(e))]
				}
				if strings.Contains(f.Name, "_bits.") && f.Params[j] == "i32" && j >= len(f.Params)-2 {
					v = uint64(r.IntN(4)) // a place within any integer
				}
				x = append(x, v)
			}
			data := pack(x, ty)
			arrays = append(arrays, data)
			k.Args = append(k.Args, put(data, memory(ty)))
		}
		want := p.run(t, f.Name, k.Count, false, arrays...)
		k.Want = put(want, memory(result))
		stored, v := result, "%r"
		fmt.Fprintf(&b, "  %%r = call %s @%s(%s)\n", result, f.Name, strings.Join(operands, ", "))
		if result.elem == "i1" {
			stored, v = result.of("i8"), "%rz"
			fmt.Fprintf(&b, "  %%rz = zext %s %%r to %s\n", result, stored)
		}
		fmt.Fprintf(&b, "  %%or = mul i64 %%i, %d\n  %%pr = getelementptr i8, ptr addrspace(1) %%out, i64 %%or\n  store %s %s, ptr addrspace(1) %%pr, align %d\n  br label %%end\nend:\n  ret void\n}\n", memory(result), stored, v, alignment(result))
		kernels = append(kernels, k)
	}
	// The kernels in modules of their own size, so that several can be loaded at once.
	require.NoError(t, os.MkdirAll(dir, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "functions.ll"), []byte(b.String()), 0o644))
	cmd := compiler(t).Command(context.Background(), "--target=nvptx64-nvidia-cuda", "-march=sm_90", "--cuda-feature=+ptx83", "-O2", "-S", "-Wno-override-module", "functions.ll", "-o", "functions.ptx")
	cmd.Dir = dir
	runs(t, cmd)
	index, err := json.Marshal(kernels)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "kernels.json"), index, 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "data.bin"), blob, 0o644))
	t.Logf("%d kernels, %d bytes", len(kernels), len(blob))
}
