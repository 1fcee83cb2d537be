package air

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"

	"github.com/mlxc/mlxc/internal/air/calls"
	"github.com/mlxc/mlxc/internal/toolchain/clang"
)

// PTXEntry is the name of the entry of [PTX].
const PTXEntry = "mlxc_kernel"

// maxThreads is how many threads a threadgroup has at most.
const maxThreads = 1024

// ptxFlags choose the oldest GPU that PTX is for, and the language's version.
var ptxFlags = []string{"--target=nvptx64-nvidia-cuda", "-march=sm_80", "--cuda-feature=+ptx80"}

// PTX compiles a kernel to the text of an entry for NVIDIA's GPUs, [PTXEntry]. Its parameters are:
// for each of the kernel's arguments that is memory, in their order, an address; of a threadgroup
// argument the place in dynamic shared memory, 32 bits, a multiple of 16; then six numbers of 32
// bits, how many threads the grid has, and how many a threadgroup: x, y and z of each.
//
// A threadgroup is a block of as many threads in one dimension; the grid has the threadgroups in
// three. Threads of a threadgroup at the edge that are not in the grid return at once: those of
// the others are numbered as Metal has it, and a simdgroup is a warp.
//
// Denormals are numbers: LLVM would have comparisons of half take them for zero too, where f32's are
// flushed, and Metal's halves have them.
func PTX(ctx context.Context, c clang.Compiler, in Input) (_ []byte, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: kernel %s: PTX: %w", in.Name, in.Kernel.Name, err)
		}
	}()
	m, err := parseModule(in.Name, in.IR)
	if err != nil {
		return nil, err
	}
	f := m.function(in.Kernel.Name)
	if f != nil && len(f.params) != len(in.Kernel.Args) {
		return nil, fmt.Errorf("the function has %d parameters, its description %d", len(f.params), len(in.Kernel.Args))
	}
	m.target = calls.PTX
	if err := m.prepare(in.Kernel.Name, in.Constants, false); err != nil {
		return nil, err
	}
	text, err := m.ptx(f, in.Kernel)
	if err != nil {
		return nil, err
	}
	b := builder{ctx: ctx, compiler: c, flags: ptxFlags}
	if b.dir, err = os.MkdirTemp("", "mlxc-air-"); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	out, err := b.clang(text, "ptx.ll", "-O2", "-S")
	if err != nil {
		return nil, err
	}
	return bounded(out, in.Kernel)
}

// PTXKey is the key of what [PTX] makes.
func PTXKey(c clang.Compiler, in Input) Key {
	h := sha256.New()
	fmt.Fprintf(h, "ptx denormals %q %x", ptxFlags, []byte(HostKey(c, in)))
	return h.Sum(nil)
}

var entryEnd = regexp.MustCompile(`(?s)(\.entry ` + PTXEntry + `\(.*?\n\)[^\n]*\n)`)

// bounded says in the text how many threads a block has at most: without that, a kernel may be
// given more registers than so many threads have.
func bounded(text []byte, k *Kernel) ([]byte, error) {
	at := entryEnd.FindIndex(text)
	if at == nil {
		return nil, fmt.Errorf("clang has made no entry %s", PTXEntry)
	}
	most := maxThreads
	if k.MaxThreadgroup > 0 {
		most = min(most, k.MaxThreadgroup)
	}
	return fmt.Appendf(text[:at[1]:at[1]], ".maxntid %d\n%s", most, text[at[1]:]), nil
}

var (
	// secondSpace is the address space of constants, which GPUs of NVIDIA have in another way.
	secondSpace  = regexp.MustCompile(`addrspace\(2\)`)
	secondSuffix = regexp.MustCompile(`(@"?llvm\.[a-z0-9.]*)\.p2\b`)
	sharedValue  = regexp.MustCompile(`(\baddrspace\(3\) (?:global|constant) .*?) (?:zeroinitializer|poison)(, align [0-9]+)?$`)
)

// ptx is the text of a module that was prepared, with an entry that calls the kernel.
func (m *module) ptx(f *function, k *Kernel) (string, error) {
	kept := m.declares[:0]
	own := &gpuModule{known: map[string]bool{}}
	for _, d := range m.declares {
		if !strings.HasPrefix(strings.Trim(d.name, `"`), "air.") {
			kept = append(kept, d)
			continue
		}
		if err := own.exchangeBody(d); err != nil {
			return "", err
		}
	}
	m.declares = kept
	for i, g := range m.globals {
		if v := sharedValue.FindStringSubmatch(g.text); v != nil {
			m.globals[i].text = v[1] + " undef" + v[2]
		}
	}
	f.head = strings.Replace(alwaysInline(f.head), "define ", "define internal ", 1)
	if err := own.bodies.entry(f, k); err != nil {
		return "", err
	}
	known := map[string]bool{}
	for _, d := range m.declares {
		known[strings.Trim(d.name, `"`)] = true
	}
	for _, b := range m.bodies {
		for l := range strings.Lines(b) {
			if d := declare.FindStringSubmatch(l); d != nil {
				known[strings.Trim(d[2], `"`)] = true
			}
		}
	}
	m.add(gpuSupport+own.support.String()+own.bodies.String(), known)
	m.withoutPlaces()
	out := secondSpace.ReplaceAllString(m.String(), "addrspace(1)")
	return secondSuffix.ReplaceAllString(out, "$1.p1"), nil
}

// entry writes the entry, which finds out where in the grid a thread is.
func (t *text) entry(f *function, k *Kernel) error {
	var params, args []string
	dynamic := false
	for i, a := range k.Args {
		p := f.params[i]
		args = append(args, fmt.Sprintf("%s %%arg%d", p.typ, i))
		switch {
		case a.Attribute != "":
		case a.Space == Threadgroup:
			params = append(params, fmt.Sprintf("i32 %%offset%d", i))
			dynamic = true
		default:
			params = append(params, fmt.Sprintf("%s %%arg%d", p.typ, i))
		}
	}
	for _, x := range "xyz" {
		params = append(params, fmt.Sprintf("i32 %%g%c", x))
	}
	for _, x := range "xyz" {
		params = append(params, fmt.Sprintf("i32 %%w%c", x))
	}
	if dynamic {
		t.line("@mlxc_dynamic = external addrspace(3) global [0 x i8], align 16")
	}
	t.line("declare i32 @llvm.umin.i32(i32, i32)")
	t.line("declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()")
	for _, x := range "xyz" {
		t.line("declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.%c()", x)
		t.line("declare i32 @llvm.nvvm.read.ptx.sreg.nctaid.%c()", x)
	}
	t.line("define ptx_kernel void @%s(%s) convergent nounwind {", PTXEntry, strings.Join(params, ", "))
	t.line("  %%l = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()")
	for _, x := range "xyz" {
		t.line("  %%b%c = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.%c()", x, x)
		t.line("  %%n%c = call i32 @llvm.nvvm.read.ptx.sreg.nctaid.%c()", x, x)
		t.line("  %%begin%[1]c = mul i32 %%b%[1]c, %%w%[1]c", x)
		t.line("  %%rest%[1]c = sub i32 %%g%[1]c, %%begin%[1]c", x)
		t.line("  %%e%[1]c = call i32 @llvm.umin.i32(i32 %%rest%[1]c, i32 %%w%[1]c)", x)
	}
	product := func(name, p string) {
		t.line("  %%%s.xy = mul i32 %%%sx, %%%sy", name, p, p)
		t.line("  %%%s = mul i32 %%%s.xy, %%%sz", name, name, p)
	}
	product("here", "e")
	product("whole", "w")
	t.line("  %%in = icmp ult i32 %%l, %%here")
	t.line("  br i1 %%in, label %%go, label %%end\ngo:")
	t.line("  %%px = urem i32 %%l, %%ex")
	t.line("  %%q = udiv i32 %%l, %%ex")
	t.line("  %%py = urem i32 %%q, %%ey")
	t.line("  %%pz = udiv i32 %%q, %%ey")
	for _, x := range "xyz" {
		t.line("  %%a%[1]c = add i32 %%begin%[1]c, %%p%[1]c", x)
	}
	for _, v := range []struct{ name, expression string }{
		{"lane", "and i32 %l, 31"}, {"simdgroup", "lshr i32 %l, 5"}, {"quad", "lshr i32 %l, 2"}, {"inquad", "and i32 %l, 3"},
		{"more", "add i32 %here, 31"}, {"simds", "lshr i32 %more, 5"}, {"morewhole", "add i32 %whole, 31"}, {"wholesimds", "lshr i32 %morewhole, 5"},
	} {
		t.line("  %%%s = %s", v.name, v.expression)
	}
	for i := range k.Args {
		if err := t.entryArgument(&k.Args[i], f.params[i], i); err != nil {
			return err
		}
	}
	t.line("  call void @%s(%s)", f.name, strings.Join(args, ", "))
	t.line("  br label %%end\nend:\n  ret void\n}")
	return nil
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
func (t *text) entryArgument(a *Arg, p param, i int) error {
	if a.Attribute == "" {
		if a.Space == Threadgroup {
			t.line("  %%arg%d = getelementptr i8, ptr addrspace(3) @mlxc_dynamic, i32 %%offset%d", i, i)
		}
		return nil
	}
	from, ok := parts[a.Attribute]
	if !ok {
		return fmt.Errorf("the argument %s is a %s, which is not known here", a.Name, a.Attribute)
	}
	width, elem := elements(p.typ)
	if width > len(from) {
		return fmt.Errorf("the argument %s asks for %d parts of %s", a.Name, width, a.Attribute)
	}
	cast := func(to, from string) {
		switch elem {
		case "i32":
			t.line("  %s = add i32 %s, 0", to, from)
		case "i64":
			t.line("  %s = zext i32 %s to i64", to, from)
		default:
			t.line("  %s = trunc i32 %s to %s", to, from, elem)
		}
	}
	if p.typ[0] != '<' {
		cast(fmt.Sprint("%arg", i), from[0])
		return nil
	}
	last := "poison"
	for c := range width {
		v := fmt.Sprintf("%%arg%d.%d", i, c)
		cast(v, from[c])
		name := v + "v"
		if c == width-1 {
			name = fmt.Sprint("%arg", i)
		}
		t.line("  %s = insertelement %s %s, %s %s, i32 %d", name, p.typ, last, elem, v, c)
		last = name
	}
	return nil
}
