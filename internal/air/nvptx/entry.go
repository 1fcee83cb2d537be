package nvptx

import (
	"fmt"
	"strings"

	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/llvm"
)

// waitForGrids waits, in a grid that is launched before those that it depends on have ended, until they have,
// and only then lets the next one be launched. Were that allowed from the beginning, blocks of ten grids
// and more would be there and wait: a new grid's blocks would stand where an old one's just ended, three to
// five of them on a multiprocessor and none on the next, which made a decode of one token a third slower on
// an H200. What the next grid does before it waits itself is hidden by this one all the same.
const waitForGrids = `  call void asm sideeffect "griddepcontrol.wait;\0A\09griddepcontrol.launch_dependents;", "~{memory}"() #990`

// entryParameter is one of the entry's, which the kernel gets as %name.
type entryParameter struct{ typ, name string }

// entry writes the entry, which finds out where in the grid a thread is. If the kernel does not wait
// itself, the entry does, before it calls it: threads that are not in the grid touch nothing.
func (t *text) entry(f *llvm.Function, k *air.Kernel, launch Launch, waits bool) error {
	var params []entryParameter
	var args []string
	dynamic := false
	for i, a := range k.Args {
		p := f.Params[i]
		args = append(args, fmt.Sprintf("%s %%arg%d", p.Typ, i))
		switch {
		case a.Attribute != "":
		case a.Space == air.Threadgroup:
			params = append(params, entryParameter{"i32", fmt.Sprint("offset", i)})
			dynamic = true
		case launch.Values && a.ByValue():
			params = append(params, entryParameter{"i64", fmt.Sprint("value", i)})
		case launch.Values && a.Space == air.Constant:
			params = append(params, entryParameter{"ptr addrspace(1)", fmt.Sprint("memory", i)})
		default:
			params = append(params, entryParameter{p.Typ, fmt.Sprint("arg", i)})
		}
	}
	for _, name := range []string{"gx", "gy", "gz", "wx", "wy", "wz.whole"} {
		params = append(params, entryParameter{"i32", name})
	}
	if dynamic {
		t.Line("@mlxc_dynamic = external addrspace(3) global [0 x i8], align 16")
	}
	t.Line("declare i32 @llvm.umin.i32(i32, i32)")
	t.Line("declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()")
	for _, x := range "xyz" {
		t.Line("declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.%c()", x)
		t.Line("declare i32 @llvm.nvvm.read.ptx.sreg.nctaid.%c()", x)
	}
	var list []string
	for _, p := range params {
		name := p.name
		if launch.Moving {
			name += ".given"
		}
		list = append(list, fmt.Sprintf("%s %%%s", p.typ, name))
	}
	if launch.Moving {
		list = append(list, "i64 %additions", "i64 %moves")
	}
	t.Line("define ptx_kernel void @%s(%s) convergent nounwind {", Entry, strings.Join(list, ", "))
	if launch.Values {
		for i := range k.Args {
			if k.Args[i].ByValue() {
				t.Line("  %%arg%d = alloca i64, align 8", i)
			}
		}
	}
	if launch.Moving {
		t.moved(params)
	}
	if launch.Values {
		for i := range k.Args {
			switch a := &k.Args[i]; {
			case a.ByValue():
				t.Line("  store i64 %%value%d, ptr %%arg%d, align 8", i, i)
			case a.Attribute == "" && a.Space == air.Constant:
				t.Line("  %%arg%d = addrspacecast ptr addrspace(1) %%memory%d to ptr", i, i)
			}
		}
	}
	t.Line("  %%l = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()")
	t.Line("  %%all = icmp slt i32 %%wz.whole, 0\n  %%wz = and i32 %%wz.whole, %d", WholeThreadgroups-1)
	for _, x := range "xyz" {
		t.Line("  %%b%c = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.%c()", x, x)
		t.Line("  %%begin%[1]c = mul i32 %%b%[1]c, %%w%[1]c", x)
		t.Line("  %%rest%[1]c = sub i32 %%g%[1]c, %%begin%[1]c", x)
		t.Line("  %%least%[1]c = call i32 @llvm.umin.i32(i32 %%rest%[1]c, i32 %%w%[1]c)", x)
		t.Line("  %%e%[1]c = select i1 %%all, i32 %%w%[1]c, i32 %%least%[1]c", x)
	}
	product := func(name, p string) {
		t.Line("  %%%s.xy = mul i32 %%%sx, %%%sy", name, p, p)
		t.Line("  %%%s = mul i32 %%%s.xy, %%%sz", name, name, p)
	}
	product("here", "e")
	product("whole", "w")
	t.Line("  %%within = icmp ult i32 %%l, %%here\n  %%fits = or i1 %%all, %%within")
	in := "%fits"
	if launch.Moving {
		in = t.inGrid(in)
	}
	t.Line("  br i1 %s, label %%go, label %%out\nout:", in)
	if launch.Programmatic && launch.Moving {
		// Nothing may be in the grid, and what comes after takes what was before for ended.
		t.Line("  %%bxy = or i32 %%bx, %%by\n  %%bxyz = or i32 %%bxy, %%bz")
		t.Line("  %%first = icmp eq i32 %%bxyz, 0\n  br i1 %%first, label %%alone, label %%end\nalone:")
		t.Line(waitForGrids)
	}
	t.Line("  br label %%end\ngo:")
	for _, x := range "xyz" {
		if launch.Moving {
			// A threadgroup is in the grid, which so has a thread.
			t.Line("  %%last%[1]c = sub i32 %%g%[1]c, 1", x)
			t.Line("  %%before%[1]c = udiv i32 %%last%[1]c, %%w%[1]c", x)
			t.Line("  %%n%[1]c = add i32 %%before%[1]c, 1", x)
		} else {
			t.Line("  %%n%c = call i32 @llvm.nvvm.read.ptx.sreg.nctaid.%c()", x, x)
		}
	}
	// Where threadgroups have one dimension, as most do, nothing is divided.
	t.Line("  %%wyz = or i32 %%wy, %%wz\n  %%flat = icmp eq i32 %%wyz, 1")
	t.Line("  br i1 %%flat, label %%placed, label %%divide\ndivide:")
	t.Line("  %%dx = urem i32 %%l, %%ex")
	t.Line("  %%q = udiv i32 %%l, %%ex")
	t.Line("  %%dy = urem i32 %%q, %%ey")
	t.Line("  %%dz = udiv i32 %%q, %%ey")
	t.Line("  br label %%placed\nplaced:")
	t.Line("  %%px = phi i32 [ %%l, %%go ], [ %%dx, %%divide ]")
	t.Line("  %%py = phi i32 [ 0, %%go ], [ %%dy, %%divide ]")
	t.Line("  %%pz = phi i32 [ 0, %%go ], [ %%dz, %%divide ]")
	for _, x := range "xyz" {
		t.Line("  %%a%[1]c = add i32 %%begin%[1]c, %%p%[1]c", x)
	}
	for _, v := range []struct{ name, expression string }{
		{"lane", "and i32 %l, 31"}, {"simdgroup", "lshr i32 %l, 5"}, {"quad", "lshr i32 %l, 2"}, {"inquad", "and i32 %l, 3"},
		{"more", "add i32 %here, 31"}, {"simds", "lshr i32 %more, 5"}, {"morewhole", "add i32 %whole, 31"}, {"wholesimds", "lshr i32 %morewhole, 5"},
	} {
		t.Line("  %%%s = %s", v.name, v.expression)
	}
	for i := range k.Args {
		if err := t.entryArgument(&k.Args[i], f.Params[i], i); err != nil {
			return err
		}
	}
	// The warp's threads that are in the grid are those of its first lanes.
	t.Line("  %%warp = and i32 %%l, -32\n  %%left = sub i32 %%here, %%warp\n  %%some = icmp ult i32 %%left, 32")
	t.Line("  %%bit = shl i32 1, %%left\n  %%below = sub i32 %%bit, 1\n  %%ragged = select i1 %%some, i32 %%below, i32 -1")
	t.Line("  %%members = select i1 %%all, i32 -1, i32 %%ragged")
	args = append(args, "i32 %members")
	if waits {
		t.Line(waitForGrids)
	}
	t.Line("  call void @%s(%s)", f.Name, strings.Join(args, ", "))
	t.Line("  br label %%end\nend:\n  ret void\n}")
	return nil
}

// moved adds to each parameter that moves what stands in the table of additions. Where an assembler knows
// which do, the others are as they were given.
func (t *text) moved(params []entryParameter) {
	still := func(p entryParameter) bool { return p.name[0] == 'w' }
	t.Line("  br label %%entry\nentry:")
	t.Line("  %%still = icmp eq i64 %%moves, 0")
	t.Line("  br i1 %%still, label %%start, label %%table\ntable:")
	t.Line("  %%additions.at = inttoptr i64 %%additions to ptr addrspace(1)")
	for i, p := range params {
		if still(p) {
			continue
		}
		align := 8 << (1 - i&1)
		t.Line("  %%%s.place = getelementptr i64, ptr addrspace(1) %%additions.at, i64 %d", p.name, i)
		t.Line("  %%%s.there = load i64, ptr addrspace(1) %%%s.place, align %d", p.name, p.name, align)
		t.Line("  %%%s.bit = and i64 %%moves, %d", p.name, uint64(1)<<i)
		t.Line("  %%%s.stays = icmp eq i64 %%%s.bit, 0", p.name, p.name)
		t.Line("  %%%s.read = select i1 %%%s.stays, i64 0, i64 %%%s.there", p.name, p.name, p.name)
	}
	t.Line("  br label %%start\nstart:")
	for _, p := range params {
		if still(p) {
			t.Line("  %%%s = add i32 %%%s.given, 0", p.name, p.name)
			continue
		}
		t.Line("  %%%s.add = phi i64 [ 0, %%entry ], [ %%%s.read, %%table ]", p.name, p.name)
	}
	for _, p := range params {
		if still(p) {
			continue
		}
		switch p.typ {
		case "i64":
			t.Line("  %%%s = add i64 %%%s.given, %%%s.add", p.name, p.name, p.name)
			continue
		case "i32":
			t.Line("  %%%s.low = trunc i64 %%%s.add to i32", p.name, p.name)
			t.Line("  %%%s = add i32 %%%s.given, %%%s.low", p.name, p.name, p.name)
			continue
		}
		t.Line("  %%%s = getelementptr i8, %s %%%s.given, i64 %%%s.add", p.name, p.typ, p.name, p.name)
	}
}

// inGrid is whether a thread that may be in its threadgroup is in the grid, which the launched one
// may be larger than: there are too many threadgroups for 32 bits to count their threads.
func (t *text) inGrid(in string) string {
	for _, x := range "xyz" {
		t.Line("  %%b%[1]c.wide = zext i32 %%b%[1]c to i64", x)
		t.Line("  %%w%[1]c.wide = zext i32 %%w%[1]c to i64", x)
		t.Line("  %%g%[1]c.wide = zext i32 %%g%[1]c to i64", x)
		t.Line("  %%begin%[1]c.wide = mul nuw i64 %%b%[1]c.wide, %%w%[1]c.wide", x)
		t.Line("  %%begins%[1]c = icmp ult i64 %%begin%[1]c.wide, %%g%[1]c.wide", x)
		t.Line("  %%in%[1]c = and i1 %[2]s, %%begins%[1]c", x, in)
		in = fmt.Sprintf("%%in%c", x)
	}
	return in
}

// parts are the values of attributes in an entry, by Metal's names: one, or those of x, y and z.
var parts = map[string][]string{
	"threadgroup_position_in_grid":        {"%bx", "%by", "%bz"},
	"threads_per_threadgroup":             {"%ex", "%ey", "%ez"},
	"threadgroups_per_grid":               {"%nx", "%ny", "%nz"},
	"threads_per_grid":                    {"%gx", "%gy", "%gz"},
	"dispatch_threads_per_threadgroup":    {"%wx", "%wy", "%wz"},
	"thread_position_in_grid":             {"%ax", "%ay", "%az"},
	"thread_position_in_threadgroup":      {"%px", "%py", "%pz"},
	"simdgroups_per_threadgroup":          {"%simds"},
	"dispatch_simdgroups_per_threadgroup": {"%wholesimds"},
	"thread_index_in_simdgroup":           {"%lane"},
	"simdgroup_index_in_threadgroup":      {"%simdgroup"},
	"thread_index_in_threadgroup":         {"%l"},
	"threads_per_simdgroup":               {"32"},
	"quadgroup_index_in_threadgroup":      {"%quad"},
	"thread_index_in_quadgroup":           {"%inquad"},
}

// entryArgument defines %argI, the value of a parameter.
func (t *text) entryArgument(a *air.Arg, p llvm.Param, i int) error {
	if a.Attribute == "" {
		if a.Space == air.Threadgroup {
			t.Line("  %%arg%d = getelementptr i8, ptr addrspace(3) @mlxc_dynamic, i32 %%offset%d", i, i)
		}
		return nil
	}
	from, ok := parts[a.Attribute]
	if !ok {
		return fmt.Errorf("the argument %s is a %s, which is not known here", a.Name, a.Attribute)
	}
	width, elem := llvm.Elements(p.Typ)
	if width > len(from) {
		return fmt.Errorf("the argument %s asks for %d parts of %s", a.Name, width, a.Attribute)
	}
	if p.Typ[0] != '<' {
		t.Resize(fmt.Sprint("%arg", i), from[0], elem)
		return nil
	}
	last := "poison"
	for c := range width {
		v := fmt.Sprintf("%%arg%d.%d", i, c)
		t.Resize(v, from[c], elem)
		name := v + "v"
		if c == width-1 {
			name = fmt.Sprint("%arg", i)
		}
		t.Line("  %s = insertelement %s %s, %s %s, i32 %d", name, p.Typ, last, elem, v, c)
		last = name
	}
	return nil
}
