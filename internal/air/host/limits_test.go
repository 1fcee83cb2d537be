package host

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/llvm"
)

// hostileKernel is a module whose kernel @k has the lines, before which other lines stand.
func hostileKernel(before, lines string) []byte {
	return []byte(before + "define void @k(ptr addrspace(1) %0, i32 %1) {\n" + lines + "  ret void\n}\n!llvm.dbg.cu = !{!0}\n!0 = !{}\n")
}

// hostile are texts of which every part is repeated n times, each where something was slow, or
// could be.
var hostile = map[string]func(n int) []byte{
	"threadgroup variables in one line": func(n int) []byte {
		use := "ptr addrspace(3) getelementptr inbounds ([4 x float], ptr addrspace(3) @g, i64 0, i64 1)"
		line := "  call void @f(" + strings.Repeat(use+", ", n/4) + use + ")\n"
		return hostileKernel("@g = internal addrspace(3) global [4 x float] undef, align 4\n", strings.Repeat(line, 4))
	},
	"expressions in expressions": func(n int) []byte {
		e := "ptr addrspace(3) @g"
		for range 60 {
			e = "ptr addrspace(3) getelementptr (i8, " + e + ", i64 1)"
		}
		return hostileKernel("@g = internal addrspace(3) global [4 x float] undef, align 4\n", strings.Repeat("  store i32 0, "+e+"\n", n/60))
	},
	"attributes whose brackets do not end": func(n int) []byte {
		return hostileKernel("declare void @g(\""+strings.Repeat("a( ", n)+"\" float)\n", "")
	},
	"declarations of fmuladd": func(n int) []byte {
		return hostileKernel(strings.Repeat("declare float @llvm.fmuladd.f32(float, float, float)\n", n), "")
	},
	"types in types": func(n int) []byte {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "%%t%d = type { %%t%d }\n", i, i+1)
		}
		fmt.Fprintf(&b, "%%t%d = type { <64 x float> }\n", n)
		return hostileKernel(b.String(), strings.Repeat("  %a = extractvalue %u %b, 0\n", n))
	},
	"places of one long node": func(n int) []byte {
		return append(hostileKernel("declare void @air.wg.barrier(i32, i32)\n", strings.Repeat("  call void @air.wg.barrier(i32 1, i32 1), !dbg !7\n", n)), "!7 = !{"+strings.Repeat("line: 7, ", n)+"}\n"...)
	},
	"blocks with barriers in one loop": func(n int) []byte {
		var b strings.Builder
		b.WriteString("  br label %l0\n")
		for i := range n {
			next := i + 1
			if i == n-1 {
				next = 0
			}
			fmt.Fprintf(&b, "l%d:\n  call void @air.wg.barrier(i32 1, i32 1)\n  br i1 undef, label %%l%d, label %%end\n", i, next)
		}
		b.WriteString("end:\n")
		return hostileKernel("declare void @air.wg.barrier(i32, i32)\n", b.String())
	},
	"loops in loops": func(n int) []byte {
		var b strings.Builder
		for range n / 100 { // which follow each other, 100 deep each
			at := strings.Count(b.String(), ":\n")
			for i := range 100 {
				fmt.Fprintf(&b, "  br label %%h%d\nh%d:\n  call void @air.wg.barrier(i32 1, i32 1)\n", at+i, at+i)
			}
			for i := 99; i >= 0; i-- {
				fmt.Fprintf(&b, "  br i1 undef, label %%h%d, label %%e%d\ne%d:\n", at+i, at+i, at+i)
			}
		}
		return hostileKernel("declare void @air.wg.barrier(i32, i32)\n", b.String())
	},
	"function constants": func(n int) []byte {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "@c.MTL_FC_INIT_%d_j = internal addrspace(2) constant i32 undef\n", i)
		}
		return hostileKernel(b.String(), "")
	},
	"functions that call each other": func(n int) []byte {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "define void @f%d() {\n  call void @f%d()\n  ret void\n}\n", i, i/2)
		}
		return hostileKernel(b.String(), strings.Repeat("  call void @f9()\n", n))
	},
}

// TestLinear: a text twice as long takes twice the steps.
func TestLinear(t *testing.T) {
	t.Cleanup(func() { llvm.Count = nil })
	for name, text := range hostile {
		t.Run(name, func(t *testing.T) {
			steps := func(n int) (total int) {
				llvm.Count = func(n int) { total += n }
				defer func() { llvm.Count = nil }()
				_ = handled(text(n))
				return total
			}
			one, two := steps(1000), steps(2000)
			assert.Greater(t, one, 100)
			assert.Less(t, two, one*22/10, "%d steps, then %d", one, two)
		})
	}
}

// TestLimits: what is absurd is an error that says where.
func TestLimits(t *testing.T) {
	nested := func(n int) string {
		return strings.Repeat("getelementptr (i8, ", n) + "@g" + strings.Repeat(", i64 1)", n)
	}
	deep := strings.Builder{}
	for i := range llvm.MaxNesting + 2 {
		fmt.Fprintf(&deep, "  br label %%h%d\nh%d:\n  call void @air.wg.barrier(i32 1, i32 1)\n", i, i)
	}
	for i := llvm.MaxNesting + 1; i >= 0; i-- {
		fmt.Fprintf(&deep, "  br i1 undef, label %%h%d, label %%e%d\ne%d:\n", i, i, i)
	}
	doubling := strings.Builder{}
	for i := range 40 {
		fmt.Fprintf(&doubling, "define void @f%d() {\n  call void @f%d()\n  call void @f%d()\n  ret void\n}\n", i, i+1, i+1)
	}
	doubling.WriteString("define void @f40() {\n  ret void\n}\n")
	chain := strings.Builder{}
	for i := range llvm.MaxNesting + 3 {
		fmt.Fprintf(&chain, "define void @f%d() {\n  call void @f%d()\n  ret void\n}\n", i, i+1)
	}
	for name, c := range map[string]struct {
		text []byte
		want string
	}{
		"line":      {hostileKernel("", "  %a = add i32 0, "+strings.Repeat("0", llvm.MaxLine)+"\n"), "f.ll:2: a line of 65554 bytes, of at most 65536"},
		"nesting":   {hostileKernel("", "  store i32 0, ptr "+nested(llvm.MaxNesting+1)+"\n"), "f.ll:2: at column"},
		"global":    {hostileKernel("@h = constant ptr "+nested(llvm.MaxNesting+1)+"\n", ""), "f.ll:1: at column"},
		"vector":    {hostileKernel("", "  %a = fadd <4000000000 x bfloat> %b, %c\n"), "f.ll:2: at column 13 a vector has more than 1024 elements"},
		"loops":     {hostileKernel("declare void @air.wg.barrier(i32, i32)\n", deep.String()), "at %h256 loops lie in each other more than 256 deep"},
		"inlining":  {hostileKernel(doubling.String(), "  call void @f0()\n"), "has more than 4194304 lines"},
		"calls":     {hostileKernel(chain.String(), "  call void @f0()\n"), "functions call each other more than 256 deep"},
		"recursion": {hostileKernel("define void @f() {\n  call void @f()\n  call void @k()\n  ret void\n}\n", "  call void @f()\n"), ""},
		"array": {hostileKernel("@t = internal constant ["+strings.Repeat("1 x [", 200)+strings.Repeat("2 x {"+strings.Repeat(" i32,", 1000)+" i32 }", 1)+strings.Repeat("]", 201)+" zeroinitializer\n", ""),
			"the type or name of the constant array @t takes more than 4096 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			err := handled(c.text)
			if c.want == "" {
				return // no panic, and an end
			}
			require.ErrorContains(t, err, c.want)
		})
	}
}
