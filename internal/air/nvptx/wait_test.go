package nvptx

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/air/calls"
	"github.com/mlxc/mlxc/internal/llvm"
)

// controlled is a kernel with its masks and waits, before clang sees it: one of weights w, x and y, a
// constant n, threadgroup memory t and three numbers, of which only lane differs in a warp.
func controlled(t *testing.T, body string, launch Launch) *gpuModule {
	m, err := air.ReadModule("f.ll", []byte(controlledText(body)))
	require.NoError(t, err)
	m.Target = calls.PTX
	require.NoError(t, m.Prepare("k", nil, false))
	g := &gpuModule{Module: m, kernel: controlledKernel(), function: m.Function("k"), known: map[string]bool{}}
	require.NoError(t, g.control(launch))
	return g
}

func controlledText(body string) string {
	return `@table = internal addrspace(2) constant [4 x float] zeroinitializer
@shared = internal addrspace(3) global [4 x float] undef
define void @k(ptr addrspace(1) %w, ptr addrspace(1) %x, ptr addrspace(1) %y, ptr addrspace(2) %n, ptr addrspace(3) %t, i32 %group, i32 %simdgroup, i32 %lane) {
` + strings.Trim(body, "\n") + `
}
declare void @air.wait_for_dispatches()
declare void @air.will_read(ptr)
declare void @air.wg.barrier(i32, i32) #0
declare void @air.simdgroup.barrier(i32, i32) #0
declare float @air.simd_sum.f32(float) #0
declare i32 @air.simd_sum.u.i32(i32) #0
declare void @llvm.memcpy.p0.p1.i64(ptr, ptr addrspace(1), i64, i1)
declare void @llvm.memcpy.p1.p0.i64(ptr addrspace(1), ptr, i64, i1)
declare i32 @llvm.umin.i32(i32, i32)
declare void @elsewhere(i32)
attributes #0 = { convergent nounwind }
`
}

func controlledKernel() *air.Kernel {
	return &air.Kernel{Name: "k", Args: []air.Arg{
		{Name: "w", Space: air.Device}, {Name: "x", Space: air.Device}, {Name: "y", Space: air.Device}, {Name: "n", Space: air.Constant}, {Name: "t", Space: air.Threadgroup},
		{Name: "group", Attribute: "threadgroup_position_in_grid"}, {Name: "simdgroup", Attribute: "simdgroup_index_in_threadgroup"}, {Name: "lane", Attribute: "thread_index_in_simdgroup"},
	}}
}

// TestWaits: what a kernel may do before it waits, and what has it wait at its beginning.
func TestWaits(t *testing.T) {
	const (
		wait  = "  call void @air.wait_for_dispatches()\n"
		store = "  store float %a, ptr addrspace(1) %y\n"
		load  = "  %a = load float, ptr addrspace(1) %w\n"
		isOne = "  %one = icmp eq i32 %lane, 1\n"
	)
	for name, c := range map[string]struct {
		body   string
		early  []int
		waits  int    // how many stand in the kernel
		reason string // why it waits at its beginning
	}{
		"weights":           {load + wait + "  %b = load float, ptr addrspace(1) %x\n" + store + "  ret void", []int{0}, 1, ""},
		"nothing":           {wait + load + store + "  ret void", nil, 1, ""},
		"no marker":         {load + store + "  ret void", nil, 0, notMarked},
		"write before":      {load + store + wait + "  ret void", nil, 0, `before the wait stands "store float %a, ptr addrspace(1) %y"`},
		"constants":         {"  %a = load float, ptr addrspace(2) %n\n" + wait + store + "  ret void", []int{3}, 1, ""},
		"constant table":    {"  %a = load float, ptr addrspace(2) getelementptr ([4 x float], ptr addrspace(2) @table, i64 0, i64 1)\n" + wait + store + "  ret void", nil, 1, ""},
		"an address of one": {"  %p = getelementptr float, ptr addrspace(1) %x, i32 %lane\n  %q = getelementptr i8, ptr addrspace(1) %p, i64 4\n  %a = load float, ptr addrspace(1) %q\n" + wait + store + "  ret void", []int{1}, 1, ""},
		"an address of two": {isOne + "  %p = select i1 %one, ptr addrspace(1) %w, ptr addrspace(1) %x\n  %a = load float, ptr addrspace(1) %p\n" + wait + store + "  ret void", []int{0, 1}, 1, ""},
		"an address by a phi": {`
  br label %l
l:
  %p = phi ptr addrspace(1) [ %w, %0 ], [ %q, %l ]
  %q = getelementptr float, ptr addrspace(1) %p, i64 1
  %a = load float, ptr addrspace(1) %p
  %c = fcmp olt float %a, 1.0
  br i1 %c, label %l, label %e
e:
` + wait + store + "  ret void", []int{0}, 1, ""},
		"an address from a number": {"  %i = ptrtoint ptr addrspace(1) %w to i64\n  %p = inttoptr i64 %i to ptr addrspace(1)\n  %a = load float, ptr addrspace(1) %p\n" + wait + store + "  ret void", nil, 0, "before the wait stands \"%a = load"},
		"an address from memory":   {"  %s = alloca ptr addrspace(1)\n  store ptr addrspace(1) %x, ptr %s\n  %p = load ptr addrspace(1), ptr %s\n  %a = load float, ptr addrspace(1) %p\n" + wait + store + "  ret void", nil, 0, "before the wait stands \"%a = load"},
		"an address of any space":  {"  %p = addrspacecast ptr addrspace(1) %x to ptr\n  %a = load float, ptr %p\n" + wait + store + "  ret void", []int{1}, 1, ""},
		"a write of any space":     {load + "  %p = addrspacecast ptr addrspace(1) %y to ptr\n  store float %a, ptr %p\n" + wait + "  ret void", nil, 0, "store float %a, ptr %p"},
		"volatile":                 {"  %a = load volatile float, ptr addrspace(1) %w\n" + wait + store + "  ret void", nil, 0, "load volatile"},
		"atomic":                   {"  %i = load atomic i32, ptr addrspace(1) %w seq_cst, align 4\n" + load + wait + store + "  ret void", nil, 0, "load atomic"},
		"atomic add":               {load + "  %i = atomicrmw add ptr addrspace(1) %y, i32 1 seq_cst\n" + wait + store + "  ret void", nil, 0, "atomicrmw"},
		"compare and exchange":     {load + "  %i = cmpxchg ptr addrspace(1) %y, i32 1, i32 2 seq_cst seq_cst\n" + wait + store + "  ret void", nil, 0, "cmpxchg"},
		"copied out":               {load + "  %s = alloca [4 x float]\n  call void @llvm.memcpy.p1.p0.i64(ptr addrspace(1) %y, ptr %s, i64 16, i1 false)\n" + wait + store + "  ret void", nil, 0, "llvm.memcpy"},
		"copied in":                {"  %s = alloca [4 x float]\n  call void @llvm.memcpy.p0.p1.i64(ptr align 4 %s, ptr addrspace(1) align 4 %w, i64 16, i1 false)\n" + wait + "  %a = load float, ptr %s\n" + store + "  ret void", []int{0}, 1, ""},
		"something else called":    {load + "  call void @elsewhere(i32 1)\n" + wait + store + "  ret void", nil, 0, "@elsewhere"},
		"assembly":                 {load + "  call void asm sideeffect \"st.global.u32 [$0], 1;\", \"l\"(ptr addrspace(1) %y)\n" + wait + store + "  ret void", nil, 0, "asm sideeffect"},
		"its own memory":           {load + "  store float %a, ptr addrspace(3) %t\n  store float %a, ptr addrspace(3) @shared\n" + wait + store + "  ret void", []int{0}, 1, ""},
		"barrier":                  {load + "  call void @air.wg.barrier(i32 2, i32 1) #0\n  %s = call float @air.simd_sum.f32(float %a) #0\n" + wait + store + "  ret void", []int{0}, 1, ""},
		"twice":                    {load + wait + "  %b = load float, ptr addrspace(1) %x\n" + wait + store + "  ret void", []int{0}, 1, ""},
		"left before":              {isOne + "  br i1 %one, label %end, label %go\nend:\n  ret void\ngo:\n" + load + wait + store + "  ret void", []int{0}, 2, ""},
		"in one branch":            {load + isOne + "  br i1 %one, label %mark, label %go\nmark:\n" + wait + "  br label %go\ngo:\n" + store + "  ret void", nil, 0, "store float %a"},
		"in one branch, and again": {load + isOne + "  br i1 %one, label %mark, label %go\nmark:\n" + wait + "  %b = load float, ptr addrspace(1) %y\n  br label %go\ngo:\n  %d = load float, ptr addrspace(1) %x\n" + wait + store + "  ret void", []int{0, 1}, 2, ""},
		"in both branches":         {load + isOne + "  br i1 %one, label %mark, label %go\nmark:\n" + wait + "  br label %e\ngo:\n" + wait + "  br label %e\ne:\n" + store + "  ret void", []int{0}, 2, ""},
		"in a loop that reads before it": {`
  br label %l
l:
  %i = phi i32 [ 0, %0 ], [ %j, %l ]
  %p = getelementptr float, ptr addrspace(1) %w, i32 %i
  %a = load float, ptr addrspace(1) %p
` + wait + `
  %b = load float, ptr addrspace(1) %x
  %j = add i32 %i, 1
  %c = icmp ult i32 %j, 4
  br i1 %c, label %l, label %e
e:
` + store + "  ret void", []int{0}, 1, ""},
		"in a loop that writes before it": {`
  br label %l
l:
  %i = phi i32 [ 0, %0 ], [ %j, %l ]
  store i32 %i, ptr addrspace(1) %y
` + wait + `
  %j = add i32 %i, 1
  %c = icmp ult i32 %j, 4
  br i1 %c, label %l, label %e
e:
  ret void`, nil, 0, "store i32 %i"},
		"in a loop that may not be gone round": {load + `
  br label %l
l:
  %i = phi i32 [ 0, %0 ], [ %j, %b ]
  %c = icmp ult i32 %i, %group
  br i1 %c, label %b, label %e
b:
  %j = add i32 %i, 1
` + wait + `
  br label %l
e:
` + store + "  ret void", nil, 0, "store float %a"},
		"behind a loop": {`
  br label %l
l:
  %i = phi i32 [ 0, %0 ], [ %j, %l ]
  %a = load float, ptr addrspace(1) %w
  %j = add i32 %i, 1
  %c = icmp ult i32 %j, 4
  br i1 %c, label %l, label %e
e:
` + wait + store + "  ret void", []int{0}, 1, ""},
		"asked for":                    {"  %p = addrspacecast ptr addrspace(1) %w to ptr\n  call void @air.will_read(ptr nonnull %p) #0\n" + wait + "  %a = load float, ptr addrspace(1) %x\n" + store + "  ret void", nil, 1, ""},
		"asked for, of unknown memory": {"  %i = ptrtoint ptr addrspace(1) %w to i64\n  %p = inttoptr i64 %i to ptr\n  call void @air.will_read(ptr %p)\n" + load + wait + store + "  ret void", []int{0}, 1, ""},
		"asked for, of what it writes": {load + "  %p = addrspacecast ptr addrspace(1) %x to ptr\n  tail call void @air.will_read(ptr %p)\n" + wait + store + "  ret void", []int{0}, 1, ""},
		"where nothing leads":          {load + store + "  ret void\ndead:\n" + wait + "  ret void", nil, 0, "store float %a"},
	} {
		t.Run(name, func(t *testing.T) {
			g := controlled(t, c.body, Launch{Programmatic: true})
			text := strings.Join(g.function.Lines, "\n")
			assert.NotContains(t, text, "wait_for_dispatches")
			assert.NotContains(t, text, "will_read")
			assert.Equal(t, strings.Count(c.body, "will_read"), strings.Count(text, `"prefetch.L2 [$0];", "l"(ptr %p)`), text)
			assert.Equal(t, c.waits, strings.Count(text, "griddepcontrol.wait"), text)
			if c.reason != "" {
				if c.reason == notMarked {
					assert.Empty(t, g.reason)
				} else {
					assert.Contains(t, g.reason, c.reason)
				}
				assert.False(t, g.waits)
				return
			}
			assert.Empty(t, g.reason)
			assert.True(t, g.waits)
			assert.Equal(t, c.early, g.early)
			// In the order of the text nothing but early arguments stands before the first wait.
			before, _, _ := strings.Cut(text, "griddepcontrol.wait")
			assert.NotContains(t, before, "ptr addrspace(1) %y")
			plain := controlled(t, strings.ReplaceAll(c.body, wait, ""), Launch{})
			assert.NotContains(t, strings.Join(plain.function.Lines, "\n"), "griddepcontrol")
		})
	}
}

// TestMarkerIsCompiled: an entry waits once, at its beginning or where the kernel says, and without a
// programmatic launch nowhere.
func TestMarkerIsCompiled(t *testing.T) {
	marked := controlledText(`
  %in = icmp ult i32 %lane, 20
  br i1 %in, label %go, label %end
go:
  %a = load float, ptr addrspace(1) %w
  call void @air.wait_for_dispatches()
  %b = load float, ptr addrspace(1) %x
  %c = fadd float %a, %b
  %s = call float @air.simd_sum.f32(float %c)
  store float %s, ptr addrspace(1) %y
  ret void
end:
  ret void`)
	marked = strings.Replace(marked, "declare void @elsewhere(i32)\n", "", 1)
	for _, compiler := range compilers(t) {
		for _, launch := range []Launch{{}, {Programmatic: true}, {Programmatic: true, Moving: true}} {
			out, err := launchOf(t, compiler, launch, marked, controlledKernel().Args...)
			require.NoError(t, err)
			early, err := Early([]byte(out))
			require.NoError(t, err)
			want, waits := []int(nil), 0
			if launch.Programmatic {
				want, waits = []int{0}, 2
			}
			if launch.Moving {
				waits++ // of the first threadgroup, if it is not in the grid
			}
			assert.Equal(t, want, early)
			assert.Equal(t, waits, strings.Count(out, "griddepcontrol.wait"), out)
			assert.NotContains(t, out, "wait_for_dispatches")
			assert.Contains(t, out, "vote.sync.ballot")
		}
		unproved := strings.Replace(marked, "  call void @air.wait_for_dispatches()\n", "  store float %a, ptr addrspace(1) %y\n  call void @air.wait_for_dispatches()\n", 1)
		out, err := launchOf(t, compiler, Launch{Programmatic: true}, unproved, controlledKernel().Args...)
		require.NoError(t, err)
		early, err := Early([]byte(out))
		require.NoError(t, err)
		assert.Empty(t, early)
		assert.Equal(t, 1, strings.Count(out, "griddepcontrol.wait"))
		assert.Less(t, strings.Index(out, "griddepcontrol.wait"), strings.Index(out, "ld.global"))
		out, err = launchOf(t, compiler, Launch{Programmatic: true, Moving: true}, unproved, controlledKernel().Args...)
		require.NoError(t, err)
		assert.Equal(t, 2, strings.Count(out, "griddepcontrol.wait"), "the first threadgroup waits, if it is not in the grid")
		assert.Contains(t, out, "// It waits at its beginning: before the wait stands ")
	}
}

// TestPrefetchIsCompiled: what a kernel says that it will read a cache is asked for under every launch, and each
// time; for another target the call means nothing.
func TestPrefetchIsCompiled(t *testing.T) {
	asking := strings.Replace(controlledText(`
  %p = getelementptr float, ptr addrspace(1) %w, i32 %lane
  %q = addrspacecast ptr addrspace(1) %p to ptr
  call void @air.will_read(ptr %q)
  call void @air.will_read(ptr %q)
  %a = load float, ptr addrspace(1) %x
  store float %a, ptr addrspace(1) %y
  ret void`), "declare void @elsewhere(i32)\n", "", 1)
	for _, compiler := range compilers(t) {
		for _, launch := range []Launch{{}, {Programmatic: true}, {Programmatic: true, Moving: true}, {Values: true}} {
			out, err := launchOf(t, compiler, launch, asking, controlledKernel().Args...)
			require.NoError(t, err)
			assert.Equal(t, 2, strings.Count(out, "prefetch.L2 ["), out)
			assert.NotContains(t, out, "will_read")
		}
	}
	m, err := air.ReadModule("f.ll", []byte(asking))
	require.NoError(t, err)
	m.Target = calls.Host
	require.NoError(t, m.Prepare("k", nil, false))
	assert.NotContains(t, m.String(), "will_read")
}

// TestMasks: who exchanges, by what leads there.
func TestMasks(t *testing.T) {
	// sum is an exchange, whose result is used.
	n := 0
	sum := func() string {
		n++
		return fmt.Sprintf("  %%s%d = call i32 @air.simd_sum.u.i32(i32 %%lane)\n", n)
	}
	loop := func(name, from, bound, body, next string) string {
		return fmt.Sprintf(`  br label %%l%[1]s
l%[1]s:
  %%i%[1]s = phi i32 [ 0, %%%[2]s ], [ %%j%[1]s, %%m%[1]s ]
%[4]s  br label %%m%[1]s
m%[1]s:
  %%j%[1]s = add i32 %%i%[1]s, 1
  %%c%[1]s = icmp ult i32 %%j%[1]s, %[3]s
  br i1 %%c%[1]s, label %%l%[1]s, label %%%[5]s
%[5]s:
`, name, from, bound, body, next)
	}
	const (
		grid   = "%mlxc.members"
		active = "%mlxc.active."
		own    = "%mlxc.members." // one that was made
	)
	for name, c := range map[string]struct {
		body  string
		masks []string // of the exchanges, in the order of the text
		votes int
	}{
		"at once":                                       {"b:\n" + sum() + "  ret void", []string{grid}, 0},
		"behind a loop that lanes leave apart":          {"b:\n" + loop("0", "b", "%lane", "", "e") + sum() + "  ret void", []string{grid}, 0},
		"behind two of them":                            {"b:\n" + loop("0", "b", "%lane", "", "e") + loop("1", "e", "%lane", "", "f") + sum() + "  ret void", []string{grid}, 0},
		"behind one in another":                         {"b:\n" + loop("0", "b", "%lane", "  br label %h\nh:\n"+loop("1", "h", "%lane", "", "g"), "e") + sum() + "  ret void", []string{grid}, 0},
		"in a loop that all leave together":             {"b:\n" + loop("0", "b", "%group", sum(), "e") + "  ret void", []string{grid}, 0},
		"in a loop of constants":                        {"b:\n  %k = load i32, ptr addrspace(2) %n\n" + loop("0", "b", "%k", sum(), "e") + "  ret void", []string{grid}, 0},
		"in a loop that lanes leave apart":              {"b:\n" + loop("0", "b", "%lane", sum(), "e") + sum() + "  ret void", []string{own, grid}, 1},
		"in a loop of memory":                           {"b:\n  %k = load i32, ptr addrspace(1) %w\n" + loop("0", "b", "%k", sum(), "e") + "  ret void", []string{own}, 1},
		"behind one, within one":                        {"b:\n" + loop("0", "b", "%group", "  br label %h\nh:\n"+loop("1", "h", "%lane", "", "g")+sum(), "e") + "  ret void", []string{grid}, 0},
		"behind one, within one that lanes leave apart": {"b:\n" + loop("0", "b", "%lane", "  br label %h\nh:\n"+loop("1", "h", "%lane", sum(), "g")+sum(), "e") + "  ret void", []string{own, own}, 2},
		"of some":                             {"  %c = icmp ult i32 %lane, 5\n  br i1 %c, label %t, label %e\nt:\n" + sum() + "  br label %e\ne:\n" + sum() + "  ret void", []string{own, grid}, 1},
		"of the others":                       {"  %c = icmp ult i32 %lane, 5\n  br i1 %c, label %e, label %t\nt:\n" + sum() + "  br label %e\ne:\n" + sum() + "  ret void", []string{own, grid}, 1},
		"where some have left":                {"  %c = icmp ult i32 %lane, 5\n  br i1 %c, label %e, label %t\ne:\n  ret void\nt:\n" + loop("0", "t", "%lane", "", "f") + sum() + "  ret void", []string{own}, 1},
		"where a whole simdgroup has left":    {"  %c = icmp ult i32 %simdgroup, 5\n  br i1 %c, label %e, label %t\ne:\n  ret void\nt:\n" + sum() + "  ret void", []string{grid}, 0},
		"by a switch":                         {"  switch i32 %lane, label %e [\n    i32 1, label %t\n    i32 2, label %u\n    i32 4, label %t\n  ]\nt:\n" + sum() + "  br label %e\nu:\n" + sum() + "  br label %e\ne:\n" + sum() + "  ret void", []string{own, own, grid}, 2},
		"by what is left of a switch":         {"  switch i32 %lane, label %e [\n    i32 1, label %t\n    i32 2, label %t\n  ]\nt:\n  ret void\ne:\n" + sum() + "  ret void", []string{own}, 1},
		"where two branches lead":             {"b:\n  %c = icmp ult i32 %lane, 5\n  br i1 %c, label %t, label %f\nf:\n  %d = icmp ugt i32 %lane, 9\n  br i1 %d, label %t, label %e\nt:\n" + sum() + "  br label %e\ne:\n" + sum() + "  ret void", []string{active, grid}, 0},
		"where two uniform branches lead":     {"b:\n  %c = icmp ult i32 %group, 5\n  br i1 %c, label %t, label %f\nf:\n  %d = icmp ugt i32 %group, 9\n  br i1 %d, label %t, label %e\nt:\n" + sum() + "  br label %e\ne:\n" + sum() + "  ret void", []string{grid, grid}, 0},
		"behind a loop that some return from": {"b:\n" + loop("0", "b", "%lane", "  %z = icmp eq i32 %i0, 7\n  br i1 %z, label %r, label %o\nr:\n  ret void\no:\n", "e") + sum() + "  ret void", []string{active}, 0},
		"into the middle of a loop":           {"b:\n  %c = icmp ult i32 %lane, 5\n  br i1 %c, label %t, label %f\nt:\n  br label %f\nf:\n  %d = icmp ugt i32 %lane, 9\n  br i1 %d, label %t, label %e\ne:\n" + sum() + "  ret void", []string{active}, 0},
		"a barrier of simdgroups":             {"b:\n" + loop("0", "b", "%lane", "", "e") + "  call void @air.simdgroup.barrier(i32 2, i32 1)\n  ret void", []string{allThreads}, 0},
		"a barrier of some":                   {"  %c = icmp ult i32 %lane, 5\n  br i1 %c, label %t, label %e\nt:\n  call void @air.simdgroup.barrier(i32 2, i32 1)\n  br label %e\ne:\n" + sum() + "  ret void", []string{own, grid}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			body := c.body
			if !strings.HasPrefix(body, "b:") {
				body = "b:\n" + body
			}
			g := controlled(t, body, Launch{})
			text := strings.Join(g.function.Lines, "\n")
			var got []string
			for _, l := range g.function.Lines {
				if _, rest, ok := strings.Cut(l, `@"mlxc.air.`); ok {
					_, mask, _ := strings.Cut(rest, "(i32 ")
					mask = mask[:strings.IndexAny(mask, ",)")]
					for _, kind := range []string{active, own} {
						if strings.HasPrefix(mask, kind) {
							mask = kind
						}
					}
					got = append(got, mask)
				}
			}
			assert.Equal(t, c.masks, got, text)
			assert.Equal(t, c.votes, strings.Count(text, "vote.ballot.sync"), text)
		})
	}
}

// TestControlIsLinear: twice as many branches, loops and cases take twice as long.
func TestControlIsLinear(t *testing.T) {
	work := func(n int) (total int) {
		var b strings.Builder
		b.WriteString("b0:\n")
		for i := range n {
			fmt.Fprintf(&b, `  %%p%[1]d = getelementptr float, ptr addrspace(1) %%w, i32 %%lane
  %%a%[1]d = load i32, ptr addrspace(1) %%p%[1]d
  %%c%[1]d = icmp ult i32 %%a%[1]d, %[1]d
  br i1 %%c%[1]d, label %%t%[1]d, label %%e%[1]d
t%[1]d:
  %%s%[1]d = call i32 @air.simd_sum.u.i32(i32 %%a%[1]d)
  br label %%l%[1]d
l%[1]d:
  %%i%[1]d = phi i32 [ 0, %%t%[1]d ], [ %%j%[1]d, %%l%[1]d ]
  %%u%[1]d = call i32 @air.simd_sum.u.i32(i32 %%i%[1]d)
  %%j%[1]d = add i32 %%i%[1]d, 1
  %%d%[1]d = icmp ult i32 %%j%[1]d, %%lane
  br i1 %%d%[1]d, label %%l%[1]d, label %%e%[1]d
e%[1]d:
  br label %%b%[2]d
b%[2]d:
`, i, i+1)
		}
		b.WriteString("  %last = call i32 @air.simd_sum.u.i32(i32 %lane)\n  call void @air.wait_for_dispatches()\n  switch i32 %lane, label %end [\n")
		for i := range n {
			fmt.Fprintf(&b, "    i32 %d, label %%x%d\n", i, i)
		}
		b.WriteString("  ]\n")
		for i := range n {
			fmt.Fprintf(&b, "x%[1]d:\n  %%y%[1]d = call i32 @air.simd_sum.u.i32(i32 %%lane)\n  br label %%end\n", i)
		}
		b.WriteString("end:\n  ret void")
		llvm.Count = func(n int) { total += n }
		defer func() { llvm.Count = nil }()
		g := controlled(t, b.String(), Launch{Programmatic: true})
		assert.True(t, g.waits)
		assert.Equal(t, []int{0}, g.early)
		assert.Less(t, len(g.function.Lines), 40*n)
		return total
	}
	small, large := work(400), work(1600)
	assert.Less(t, large, 5*small, "the tree's logarithm aside")
}
