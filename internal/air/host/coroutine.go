package host

import (
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/llvm"
)

// coroutine makes of the kernel, whose helper functions have been inlined, the function that
// the executor starts for each thread: @mlxc_start of abi.h. It suspends where threads
// exchange. The sites are returned.
func (m *hostModule) coroutine(f *llvm.Function, k *air.Kernel, endResult string, checked bool) (sites []air.Site, places []access, variables int, err error) {
	declared := map[string]llvm.Declaration{}
	for _, d := range m.Declares {
		declared[strings.Trim(d.Name, `"`)] = d
	}
	blocks := f.Blocks()
	if len(blocks) == 0 {
		return nil, nil, 0, fmt.Errorf("the function @%s has no instructions", f.Name)
	}
	memory, variables, err := m.threadgroupVariables(blocks)
	if err != nil {
		return nil, nil, 0, err
	}
	if checked {
		declared[air.TogetherMarker] = llvm.Declaration{Name: air.TogetherMarker, Result: "void"}
		if err := expandAlone(blocks, declared); err != nil {
			return nil, nil, 0, err
		}
		var more []string
		if places, more, err = m.instrument(blocks, memory, f, k, declared); err != nil {
			return nil, nil, 0, err
		}
		memory = append(memory, more...)
	}
	// Of the sites at which threads wait the executor takes the least. Where a thread could go
	// round a loop past a site at which others wait, it waits for them before it goes round
	// again: at a site in the loop's header, with a number behind those in the loop.
	arranged, err := llvm.Arrange(blocks)
	if err != nil {
		return nil, nil, 0, err
	}
	inOrder, loops := arranged.Order, arranged.Loops
	first := map[string]int{} // the number of a block's first site
	joins := map[string]int{} // the number of the site at which threads wait to go round, by header
	has := func(b *llvm.Block) bool {
		return slices.ContainsFunc(b.Lines, func(l string) bool {
			_, d, ok := llvm.CallOf(l, declared)
			return ok && !air.Alone(d)
		})
	}
	with := map[*llvm.Block]bool{}
	for _, b := range inOrder {
		with[b] = has(b)
	}
	stride := 1
	for at, b := range inOrder {
		first[b.Label] = len(sites)
		for _, l := range b.Lines {
			c, d, ok := llvm.CallOf(l, declared)
			if !ok || air.Alone(d) {
				continue
			}
			s, err := air.SiteOf(d)
			if err != nil {
				return nil, nil, 0, err
			}
			s.Line = m.Line(c.Place)
			if s.Operation <= air.SimdgroupBarrier && len(c.Values()) > 0 {
				// What is not a number is taken for all memory.
				if s.Flags, err = strconv.Atoi(c.Values()[0]); err != nil {
					s.Flags, err = 3, nil
				}
			}
			sites = append(sites, s)
			stride = max(stride, room(s, d))
		}
		for ; len(loops) > 0 && loops[0].Last == at; loops = loops[1:] {
			if arranged.Overtakes(loops[0], func(b *llvm.Block) bool { return with[b] }) {
				joins[loops[0].Header.Label] = len(sites)
				sites = append(sites, air.Site{Operation: air.OpJoin, Width: air.SimdWidth})
			}
		}
	}
	stride = 1 << bits.Len(uint(stride-1))
	for i := range sites {
		sites[i].Stride = stride
	}
	var out []*llvm.Block
	var allocas []string
	last := map[string]string{}
	values := 0 // names that are made, by number
	for _, b := range blocks {
		piece := &llvm.Block{Label: b.Label}
		out = append(out, piece)
		emit := func(lines ...string) { piece.Lines = append(piece.Lines, lines...) }
		n := first[b.Label]
		// wait suspends the thread until the executor has done what is done at a site.
		wait := func(site int, dbg string) {
			emit(fmt.Sprintf("  store i32 %d, ptr %%mlxc.site, align 4", site),
				fmt.Sprintf("  %%x%d.suspended = call i8 @llvm.coro.suspend(token none, i1 false)%s", values, dbg),
				fmt.Sprintf("  switch i8 %%x%d.suspended, label %%mlxc.end [ i8 0, label %%x%d.resumed ]", values, values))
			piece = &llvm.Block{Label: fmt.Sprintf("x%d.resumed", values)}
			out = append(out, piece)
			last[b.Label] = piece.Label
			values++
		}
		join, joined := joins[b.Label]
		for _, l := range b.Lines {
			if joined && !strings.Contains(l, " = phi ") {
				wait(join, "")
				joined = false
			}
			c, d, ok := llvm.CallOf(l, declared)
			switch {
			case ok && air.Alone(d):
				lines, err := air.MatrixLines(d, c.Values(), fmt.Sprint(values), c.Result, false)
				if err != nil {
					return nil, nil, 0, err
				}
				values++
				emit(lines...)
			case ok:
				before, after := operands(sites[n], d, c.Values(), values, c.Result)
				emit(before...)
				wait(n, c.Place)
				emit(after...)
				n++
			case strings.HasPrefix(l, "  ret "):
				emit("  br label %mlxc.return")
			case b == blocks[0] && strings.Contains(l, " = alloca "):
				allocas = append(allocas, l)
			default:
				emit(l)
			}
		}
	}
	llvm.Retarget(out, last)

	var t text
	t.Line("define ptr @mlxc_start(ptr %%mlxc.frame, ptr noalias readonly %%mlxc.group, ptr %%mlxc.lane) presplitcoroutine nounwind {")
	t.Line("mlxc.entry:")
	t.Lines(allocas)
	t.Line("  %%mlxc.id = call token @llvm.coro.id(i32 64, ptr null, ptr null, ptr null)")
	t.Line("  %%mlxc.asked = icmp eq ptr %%mlxc.frame, null")
	t.Line("  br i1 %%mlxc.asked, label %%mlxc.answer, label %%mlxc.begin")
	t.Line("mlxc.answer:")
	t.Line("  %%mlxc.size = call i64 @llvm.coro.size.i64()")
	t.Line("  %%mlxc.told = inttoptr i64 %%mlxc.size to ptr")
	t.Line("  ret ptr %%mlxc.told")
	t.Line("mlxc.begin:")
	t.Line("  %%mlxc.handle = call ptr @llvm.coro.begin(token %%mlxc.id, ptr %%mlxc.frame)")
	t.Line("  %%mlxc.exchange = load ptr, ptr %%mlxc.lane")
	t.Line("  %%mlxc.ip = getelementptr i8, ptr %%mlxc.lane, i64 %d", laneIndex)
	t.Line("  %%mlxc.i = load i32, ptr %%mlxc.ip")
	t.Line("  %%mlxc.index = zext i32 %%mlxc.i to i64")
	t.Line("  %%mlxc.sites = getelementptr i8, ptr %%mlxc.exchange, i64 %d", exchangeSite)
	t.Line("  %%mlxc.site = getelementptr i32, ptr %%mlxc.sites, i64 %%mlxc.index")
	t.groupMemory()
	t.Lines(memory)
	for i := range k.Args {
		if err := t.argument(&k.Args[i], f.Params[i], false); err != nil {
			return nil, nil, 0, err
		}
	}
	t.Line("  br label %%%s", blocks[0].Label)
	for _, b := range out {
		t.Line("%s:", b.Label)
		t.Lines(b.Lines)
	}
	t.Line("mlxc.return:")
	t.Line("  store i32 %d, ptr %%mlxc.site, align 4", finished)
	t.Line("  br label %%mlxc.end")
	t.Line("mlxc.end:")
	t.Line("  %scall %s @llvm.coro.end(ptr %%mlxc.handle, i1 false, token none)", map[string]string{"i1": "%mlxc.ended = "}[endResult], endResult)
	t.Line("  ret ptr %%mlxc.handle")
	t.Line("}")
	if checked {
		t.Line("declare ptr @mlxc_touch(ptr, ptr, i64, i32) nounwind")
		t.Line("declare ptr @mlxc_private(ptr, ptr, i64, ptr, i64, i32, ptr) nounwind")
		t.Line("declare void @mlxc_own(ptr, ptr, i64, ptr, i32) nounwind")
		t.Line("declare void @mlxc_used(ptr, i64, i32) nounwind")
		t.Line("declare void @mlxc_stored(ptr, i64, i64, i32) nounwind")
		t.Line("declare i64 @mlxc_loaded(ptr, i64) nounwind")
		t.Line("declare void @mlxc_copied(ptr, i32) nounwind")
		t.Line("declare void @mlxc_forget(ptr, i64, ptr, i64, ptr) nounwind")
		t.Line("declare void @mlxc_leave(ptr, i32, i64) nounwind")
		t.Line("declare i64 @mlxc_taken(ptr) nounwind")
		if !m.hasDeclared("llvm.memset.p0.i64") {
			t.Line("declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)")
		}
	}
	t.Line("declare token @llvm.coro.id(i32, ptr, ptr, ptr)")
	t.Line("declare i64 @llvm.coro.size.i64()")
	t.Line("declare ptr @llvm.coro.begin(token, ptr)")
	t.Line("declare i8 @llvm.coro.suspend(token, i1)")
	t.Line("declare %s @llvm.coro.end(ptr, i1, token)", endResult)
	m.replace(f, t.String())
	return sites, places, variables, nil
}

// expandAlone puts the bodies of functions that each thread does alone where they are called, so
// that the accesses in them are checked as all others.
func expandAlone(blocks []*llvm.Block, declared map[string]llvm.Declaration) error {
	n := 0
	for _, b := range blocks {
		var out []string
		for _, l := range b.Lines {
			c, d, ok := llvm.CallOf(l, declared)
			if !ok || !air.Alone(d) {
				out = append(out, l)
				continue
			}
			// The names of what comes later begin with a number.
			lines, err := air.MatrixLines(d, c.Values(), fmt.Sprint("m", n), c.Result, false)
			if err != nil {
				return err
			}
			n++
			if name := strings.Trim(d.Name, `"`); strings.Contains(name, "_load.") || strings.Contains(name, "_store.") {
				out = append(out, fmt.Sprintf("  call void @%s()%s", air.TogetherMarker, c.Place))
			}
			for _, l := range lines {
				out = append(out, l+c.Place)
			}
		}
		b.Lines = out
	}
	return nil
}

// hasDeclared reports whether the module declares a function.
func (m *hostModule) hasDeclared(name string) bool {
	return slices.ContainsFunc(m.Declares, func(d llvm.Declaration) bool { return d.Name == name })
}

// replace puts text where the function stood, and takes out the declarations of what exchanges.
func (m *hostModule) replace(f *llvm.Function, text string) {
	m.Funcs = slices.DeleteFunc(m.Funcs, func(x *llvm.Function) bool { return x == f })
	m.Declares = slices.DeleteFunc(m.Declares, func(d llvm.Declaration) bool { return strings.HasPrefix(strings.Trim(d.Name, `"`), "air.") })
	m.Bodies = append(m.Bodies, text)
}

// groupMemory defines %mlxc.memory, of the threadgroup's variables.
func (t *text) groupMemory() {
	t.Line("  %%mlxc.mp = getelementptr i8, ptr %%mlxc.group, i64 %d", groupMemory)
	t.Line("  %%mlxc.m0 = load ptr, ptr %%mlxc.mp")
	t.Line("  %%mlxc.memory = addrspacecast ptr %%mlxc.m0 to ptr addrspace(3)")
}

// argument defines the value of a parameter: an address of struct group's tables, or a value
// of struct group or struct lane. In a row, a value that differs between threads is computed
// of x, y and z (row.go).
func (t *text) argument(a *air.Arg, p llvm.Param, row bool) error {
	if a.Attribute == "" {
		table := groupBuffers
		if a.Space == air.Threadgroup {
			table = groupThreadgroups
		}
		n := p.Name
		t.Line("  %s.tp = getelementptr i8, ptr %%mlxc.group, i64 %d", n, table)
		t.Line("  %s.t = load ptr, ptr %s.tp", n, n)
		t.Line("  %s.p = getelementptr ptr, ptr %s.t, i64 %d", n, n, a.Index)
		t.Line("  %s = load %s, ptr %s.p", n, p.Typ, n)
		return nil
	}
	width, elem := llvm.Elements(p.Typ)
	get := func(name, part string, x attribute, c int) error {
		base := "%mlxc.group"
		if x.lane {
			base = "%mlxc.lane"
		}
		if c >= x.parts {
			return fmt.Errorf("the argument %s asks for %d parts of %s", a.Name, c+1, a.Attribute)
		}
		t.Line("  %s.%s.p = getelementptr i8, ptr %s, i64 %d", name, part, base, x.offset+4*c)
		t.Line("  %s.%s = load i32, ptr %s.%s.p", name, part, name, part)
		return nil
	}
	last := "poison"
	for c := range width {
		w := fmt.Sprint("w", c)
		x, known := attributes[a.Attribute]
		switch {
		case row && (x.lane || !known) && a.Attribute != "threads_per_simdgroup":
			from, err := t.ofRow(a, p.Name, c)
			if err != nil {
				return err
			}
			t.Line("  %s.%s = add i32 %s, 0", p.Name, w, from)
		case known:
			if err := get(p.Name, w, x, c); err != nil {
				return err
			}
		default:
			switch a.Attribute {
			case "threads_per_simdgroup":
				t.Line("  %s.%s = add i32 0, %d", p.Name, w, air.SimdWidth)
			case "quadgroup_index_in_threadgroup":
				if err := get(p.Name, "i", attributes["thread_index_in_threadgroup"], 0); err != nil {
					return err
				}
				t.Line("  %s.%s = lshr i32 %s.i, 2", p.Name, w, p.Name)
			case "thread_index_in_quadgroup":
				if err := get(p.Name, "i", attributes["thread_index_in_threadgroup"], 0); err != nil {
					return err
				}
				t.Line("  %s.%s = and i32 %s.i, 3", p.Name, w, p.Name)
			default:
				return fmt.Errorf("the argument %s is a %s, which is not known here", a.Name, a.Attribute)
			}
		}
		if p.Typ[0] != '<' {
			t.Resize(p.Name, p.Name+"."+w, elem)
			return nil
		}
		t.Resize(fmt.Sprintf("%s.c%d", p.Name, c), p.Name+"."+w, elem)
		name := fmt.Sprintf("%s.v%d", p.Name, c)
		if c == width-1 {
			name = p.Name
		}
		t.Line("  %s = insertelement %s %s, %s %s.c%d, i32 %d", name, p.Typ, last, elem, p.Name, c, c)
		last = name
	}
	return nil
}
