package host

import (
	"fmt"
	"strings"

	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/llvm"
)

// row makes of a kernel in which threads exchange nothing the function that runs all threads
// of a threadgroup that differ in x only: @mlxc_row of abi.h, a loop that clang may vectorise.
func (m *hostModule) row(f *llvm.Function, k *air.Kernel) error {
	blocks := f.Blocks()
	memory, _, err := m.threadgroupVariables(blocks)
	if err != nil {
		return err
	}
	var t text
	params := []string{"ptr addrspace(3) %mlxc.memory"}
	args := []string{"ptr addrspace(3) %mlxc.memory"}
	for _, p := range f.Params {
		params = append(params, p.Typ+" "+p.Name)
		args = append(args, p.Typ+" "+p.Name)
	}
	t.Line("define internal void @mlxc_body(%s) alwaysinline nounwind {", strings.Join(params, ", "))
	for i, b := range blocks {
		t.Line("%s:", b.Label)
		if i == 0 {
			t.Lines(memory)
		}
		t.Lines(b.Lines)
	}
	t.Line("}")
	t.Line("define void @mlxc_row(ptr noalias readonly %%mlxc.group, i32 %%mlxc.y, i32 %%mlxc.z) nounwind {")
	t.Line("mlxc.entry:")
	t.groupMemory()
	for c, axis := range "xyz" {
		t.part(fmt.Sprintf("mlxc.w%c", axis), attributes["threads_per_threadgroup"], c)
		t.part(fmt.Sprintf("mlxc.d%c", axis), attributes["dispatch_threads_per_threadgroup"], c)
		t.part(fmt.Sprintf("mlxc.g%c", axis), attributes["threadgroup_position_in_grid"], c)
		t.Line("  %%mlxc.o%c = mul i32 %%mlxc.g%c, %%mlxc.d%c", axis, axis, axis)
	}
	t.Line("  %%mlxc.zh = mul i32 %%mlxc.z, %%mlxc.wy")
	t.Line("  %%mlxc.zy = add i32 %%mlxc.zh, %%mlxc.y")
	t.Line("  %%mlxc.zyw = mul i32 %%mlxc.zy, %%mlxc.wx")
	varies := func(a *air.Arg) bool {
		x, known := attributes[a.Attribute]
		return a.Attribute != "" && (x.lane || !known)
	}
	for i := range k.Args {
		if a := &k.Args[i]; !varies(a) {
			if err := t.argument(a, f.Params[i], true); err != nil {
				return err
			}
		}
	}
	t.Line("  br label %%mlxc.loop")
	t.Line("mlxc.loop:")
	t.Line("  %%mlxc.x = phi i32 [ 0, %%mlxc.entry ], [ %%mlxc.next, %%mlxc.loop ]")
	t.Line("  %%mlxc.linear = add i32 %%mlxc.zyw, %%mlxc.x")
	for i := range k.Args {
		if a := &k.Args[i]; varies(a) {
			if err := t.argument(a, f.Params[i], true); err != nil {
				return err
			}
		}
	}
	t.Line("  call void @mlxc_body(%s)", strings.Join(args, ", "))
	t.Line("  %%mlxc.next = add nuw i32 %%mlxc.x, 1")
	t.Line("  %%mlxc.more = icmp ult i32 %%mlxc.next, %%mlxc.wx")
	t.Line("  br i1 %%mlxc.more, label %%mlxc.loop, label %%mlxc.end")
	t.Line("mlxc.end:")
	t.Line("  ret void")
	t.Line("}")
	m.replace(f, t.String())
	return nil
}

// part loads a part of struct group.
func (t *text) part(name string, x attribute, c int) {
	t.Line("  %%%s.p = getelementptr i8, ptr %%mlxc.group, i64 %d", name, x.offset+4*c)
	t.Line("  %%%s = load i32, ptr %%%s.p", name, name)
}

// ofRow returns a part of what differs between the threads of a row.
func (t *text) ofRow(a *air.Arg, name string, c int) (string, error) {
	axis := "xyz"[c%3]
	switch a.Attribute {
	case "thread_position_in_threadgroup":
		return fmt.Sprintf("%%mlxc.%c", axis), nil
	case "thread_position_in_grid":
		t.Line("  %s.s%d = add i32 %%mlxc.o%c, %%mlxc.%c", name, c, axis, axis)
	case "thread_index_in_threadgroup":
		return "%mlxc.linear", nil
	case "thread_index_in_simdgroup":
		t.Line("  %s.s%d = and i32 %%mlxc.linear, 31", name, c)
	case "simdgroup_index_in_threadgroup":
		t.Line("  %s.s%d = lshr i32 %%mlxc.linear, 5", name, c)
	case "quadgroup_index_in_threadgroup":
		t.Line("  %s.s%d = lshr i32 %%mlxc.linear, 2", name, c)
	case "thread_index_in_quadgroup":
		t.Line("  %s.s%d = and i32 %%mlxc.linear, 3", name, c)
	default:
		return "", fmt.Errorf("the argument %s is a %s, which is not known here", a.Name, a.Attribute)
	}
	return fmt.Sprintf("%s.s%d", name, c), nil
}
