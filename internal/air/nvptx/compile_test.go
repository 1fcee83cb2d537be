package nvptx

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/internal/toolchain/clang"
)

// compilers are the one that is used, and the oldest that will do.
func compilers(t *testing.T) (out []clang.Compiler) {
	for _, find := range []func(context.Context) (clang.Compiler, error){clang.Find, clang.Oldest} {
		c, err := find(t.Context())
		require.NoError(t, err)
		out = append(out, c)
	}
	return out
}

func ptxOf(t *testing.T, c clang.Compiler, text string, args ...air.Arg) (string, error) {
	return launchOf(t, c, Launch{}, text, args...)
}

func launchOf(t *testing.T, c clang.Compiler, launch Launch, text string, args ...air.Arg) (string, error) {
	out, err := Compile(t.Context(), c, air.Input{Name: "f.ll", IR: []byte(text), Kernel: &air.Kernel{Name: "k", Args: args}, Constants: []air.ConstantValue{{Index: 3, Bits: 1}}}, launch)
	return string(out), err
}

// gathering is a kernel with memory of each kind, in which threads meet.
const gathering = `@shared = internal unnamed_addr addrspace(3) global [32 x float] undef, align 4
@table = internal addrspace(2) constant [2 x float] [float 1.0, float 2.0]
@c.MTL_FC_INIT_3_j = internal addrspace(2) externally_initialized constant i32 undef
define void @k(ptr addrspace(3) %tg, ptr addrspace(1) %out, <2 x i32> %at, ptr addrspace(2) %in) {
  %x = load float, ptr addrspace(2) %in, align 4
  %i = extractelement <2 x i32> %at, i32 1
  %f = load float, ptr addrspace(2) getelementptr ([2 x float], ptr addrspace(2) @table, i64 0, i64 1), align 4
  %c = load i32, ptr addrspace(2) @c.MTL_FC_INIT_3_j
  %y = fmul float %x, %f
  %l = zext i32 %i to i64
  %p = getelementptr float, ptr addrspace(3) @shared, i64 %l
  store float %y, ptr addrspace(3) %p, align 4
  store i32 %c, ptr addrspace(3) %tg, align 4
  call void @air.wg.barrier(i32 2, i32 1) #0
  %q = load float, ptr addrspace(3) @shared, align 4
  %d = load float, ptr addrspace(3) %tg, align 4
  %z = fadd float %q, %d
  %s = call float @air.simd_sum.f32(float %z) #0
  store float %s, ptr addrspace(1) %out, align 4
  ret void
}
declare void @air.wg.barrier(i32, i32) #0
declare float @air.simd_sum.f32(float) #0
attributes #0 = { convergent nounwind }
`

// TestPTX looks at what becomes of a kernel: its arguments, memory, and what threads exchange.
func TestPTX(t *testing.T) {
	for _, c := range compilers(t) {
		out, err := ptxOf(t, c, gathering, air.Arg{Name: "tg", Space: air.Threadgroup}, air.Arg{Name: "out", Space: air.Device}, air.Arg{Name: "at", Attribute: "thread_position_in_grid"}, air.Arg{Name: "in", Space: air.Constant})
		require.NoError(t, err, c)
		for _, want := range []string{
			`\.visible \.entry mlxc_kernel\(`, `\.maxntid 1024`, `barrier\.sync`, `shfl\.sync\.idx`,
			`\.shared .*shared\[128\]`, `mlxc_kernel_param_8`,
		} {
			assert.Regexp(t, want, out, "%v", c)
		}
		assert.NotContains(t, out, "activemask")
		assert.NotContains(t, out, "mlxc_kernel_param_9")
		assert.NotContains(t, out, ".ftz")
		assert.NotContains(t, out, ".extern .func")
	}
}

// TestPTXValues: constants that the kernel refers to are parameters, from which they are read wherever the
// kernel needs them; those that are more than a value stay in memory, and tables in the module.
func TestPTXValues(t *testing.T) {
	const text = `@table = internal addrspace(2) constant [2 x float] [float 1.0, float 2.0]
define void @k(ptr addrspace(1) %out, ptr addrspace(2) %n, ptr addrspace(2) %list, <2 x i32> %at, ptr addrspace(2) %half) {
  %i = extractelement <2 x i32> %at, i32 0
  %c = load i32, ptr addrspace(2) %n, align 4
  %in = icmp ult i32 %i, %c
  br i1 %in, label %go, label %end
go:
  %l = zext i32 %i to i64
  %p = getelementptr float, ptr addrspace(2) %list, i64 %l
  %x = load float, ptr addrspace(2) %p, align 4
  %odd = and i64 %l, 1
  %q = getelementptr float, ptr addrspace(2) @table, i64 %odd
  %y = load float, ptr addrspace(2) %q, align 4
  %h = load half, ptr addrspace(2) %half, align 2
  %w = fpext half %h to float
  %z = fmul float %x, %y
  %s = fadd float %z, %w
  %o = getelementptr float, ptr addrspace(1) %out, i64 %l
  store float %s, ptr addrspace(1) %o, align 4
  br label %end
end:
  ret void
}
`
	args := []air.Arg{{Name: "out", Space: air.Device}, {Name: "n", Space: air.Constant, Size: 4}, {Name: "list", Space: air.Constant}, {Name: "at", Attribute: "thread_position_in_grid"}, {Name: "half", Space: air.Constant, Size: 2}}
	for _, c := range compilers(t) {
		for _, launch := range []Launch{{Values: true}, {Values: true, Moving: true, Programmatic: true}} {
			out, err := launchOf(t, c, launch, text, args...)
			require.NoError(t, err)
			assert.Contains(t, out, "[mlxc_kernel_param_1]")
			assert.True(t, !launch.Programmatic || !strings.Contains(out, ".nc."))
			assert.NotContains(t, out, ".local", "%v: the values need memory", launch)
			single := 2
			if launch.Moving {
				single++ // the last of seven additions, of which two are loaded together
			}
			assert.Equal(t, single, strings.Count(out, "ld.global")-strings.Count(out, "ld.global.v2."), "%v: the list's element and the table's are read, nothing else:\n%s", launch, out)
		}
	}
}

// exchangeModule is a kernel that calls a function in which threads exchange, of a type.
func exchangeModule(function, typ string, more int) string {
	args, params := typ+" %x", typ
	if strings.Contains(function, "fill") {
		args, params = args+", "+typ+" %x", params+", "+typ
	}
	args, params = args+strings.Repeat(", i16 %i", more), params+strings.Repeat(", i16", more)
	return fmt.Sprintf(`define void @k(ptr addrspace(1) %%p, i16 %%i) {
  %%x = load %[1]s, ptr addrspace(1) %%p, align 1
  %%r = call %[1]s @%[2]s(%[3]s) #0
  store %[1]s %%r, ptr addrspace(1) %%p, align 1
  ret void
}
declare %[1]s @%[2]s(%[4]s) #0
attributes #0 = { convergent nounwind }
`, typ, function, args, params)
}

// TestPTXExchange compiles functions in which threads exchange, one of each kind of type, with
// both compilers.
func TestPTXExchange(t *testing.T) {
	sample.Seldom(t)
	types := []struct{ llvm, suffix string }{
		{"float", "f32"}, {"<2 x half>", "v2f16"}, {"bfloat", "bf16"}, {"i8", "u.i8"}, {"<4 x i16>", "s.v4i16"}, {"i64", "u.i64"},
	}
	for _, c := range compilers(t) {
		for n, function := range []string{"sum", "product", "min", "max", "prefix_inclusive_sum", "prefix_exclusive_product", "shuffle", "shuffle_up", "shuffle_down", "shuffle_xor", "shuffle_rotate_up", "broadcast_first", "shuffle_and_fill_up", "and"} {
			typ := types[n%len(types)]
			if function == "and" {
				typ = types[5]
			}
			more := 0
			if strings.Contains(function, "shuffle") {
				more = 1
			}
			if strings.Contains(function, "fill") {
				more = 2
			}
			for _, group := range []string{"simd", "quad"} {
				name := fmt.Sprintf("air.%s_%s.%s", group, function, typ.suffix)
				out, err := ptxOf(t, c, exchangeModule(name, typ.llvm, more), air.Arg{Name: "p", Space: air.Device}, air.Arg{Name: "i", Attribute: "thread_index_in_simdgroup"})
				require.NoError(t, err, "%s, %v", name, c)
				assert.Contains(t, out, "shfl.sync.", name)
			}
		}
	}
}

// TestPTXRefusals: what is not known is an error that names it.
func TestPTXRefusals(t *testing.T) {
	c, err := clang.Find(t.Context())
	require.NoError(t, err)
	memory, lane := air.Arg{Name: "p", Space: air.Device}, air.Arg{Name: "i", Attribute: "thread_index_in_simdgroup"}
	for _, x := range []struct {
		text string
		args []air.Arg
		want string
	}{
		{exchangeModule("air.simd_juggle.f32", "float", 0), []air.Arg{memory, lane}, "f.ll: kernel k: PTX: air.simd_juggle.f32 is not a function that is known here"},
		{exchangeModule("air.simd_sum.f32", "float", 0), []air.Arg{memory, {Name: "i", Attribute: "amplification_id"}}, "the argument i is a amplification_id, which is not known here"},
		{exchangeModule("air.simd_shuffle.f32", "float", 0), []air.Arg{memory, lane}, "has 1 parameters"},
		{exchangeModule("air.simd_sum.f32", "float", 0), []air.Arg{memory}, "the function has 2 parameters, its description 1"},
		{strings.Replace(exchangeModule("air.simd_sum.f32", "float", 0), "i16 %i", "<4 x i16> %i", 1), []air.Arg{memory, {Name: "i", Attribute: "thread_position_in_grid"}}, "asks for 4 parts of thread_position_in_grid"},
	} {
		_, err := ptxOf(t, c, x.text, x.args...)
		assert.ErrorContains(t, err, x.want)
	}
}

// TestPTXLaunch looks at what an entry does for the way in which it is launched.
func TestPTXLaunch(t *testing.T) {
	args := []air.Arg{{Name: "tg", Space: air.Threadgroup}, {Name: "out", Space: air.Device}, {Name: "at", Attribute: "threadgroups_per_grid"}, {Name: "in", Space: air.Constant}}
	for _, c := range compilers(t) {
		for _, moving := range []bool{false, true} {
			for _, programmatic := range []bool{false, true} {
				out, err := launchOf(t, c, Launch{Programmatic: programmatic, Moving: moving}, gathering, args...)
				require.NoError(t, err, c)
				early, err := Early([]byte(out))
				require.NoError(t, err)
				assert.Empty(t, early)
				assert.Equal(t, moving, strings.Contains(out, "mlxc_kernel_param_10"))
				assert.NotContains(t, out, "mlxc_kernel_param_11")
				assert.Equal(t, moving, !strings.Contains(out, "%nctaid"))
				assert.NotContains(t, out, ".nc.")
				arch := ".target sm_80"
				if programmatic {
					arch = ".target sm_90"
				}
				assert.Contains(t, out, arch)
				say, wait := strings.Index(out, "griddepcontrol.launch_dependents"), strings.Index(out, "griddepcontrol.wait")
				table := strings.Index(out, "ld.global")
				if !programmatic {
					assert.Negative(t, say)
					assert.Negative(t, wait)
					continue
				}
				assert.Positive(t, wait)
				assert.Less(t, wait, say, "what comes next begins when this need wait no longer")
				assert.Equal(t, strings.Count(out, "griddepcontrol.wait"), strings.Count(out, "griddepcontrol.launch_dependents"))
				assert.Equal(t, moving, table < wait, "the table is read before the wait, and nothing else is")
				assert.Less(t, wait, strings.LastIndex(out, "ld.global"))
			}
		}
	}
}

// TestEarly: the line of a text that says which arguments are early.
func TestEarly(t *testing.T) {
	for _, early := range [][]int{nil, {0}, {1, 4, 30}} {
		got, err := Early(withEarly([]byte(".version 8.0\n"), early, "\nwhy"))
		require.NoError(t, err)
		assert.Equal(t, early, got)
	}
	for text, want := range map[string]string{
		"":                                 "the text was not made here",
		".version 8.0\n":                   "the text was not made here",
		earlyLine + " 1 x\n":               `"x" stands not the number of an argument`,
		earlyLine + " 2 1\n":               `"1" stands not the number`,
		earlyLine + " -1\n":                `"-1" stands not the number`,
		earlyLine + " 1 1\n.version 8.0\n": `"1" stands not the number`,
	} {
		_, err := Early([]byte(text))
		assert.ErrorContains(t, err, want, text)
	}
}
