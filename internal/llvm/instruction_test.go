package llvm

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestRead: an instruction of every shape is read, and each operand stands where it is said to stand.
func TestRead(t *testing.T) {
	of := func(typ, value string) Operand { return Operand{Type: typ, Value: value} }
	for line, want := range map[string]Instruction{
		"  %3 = add nuw nsw i32 %1, -7, !dbg !5": {Result: "%3", Op: "add", Flags: "nuw nsw ", Type: "i32", Operands: []Operand{of("i32", "%1"), of("i32", "-7")}, Place: ", !dbg !5"},
		`  %"a b" = fneg fast <2 x float> %x`:    {Result: `%"a b"`, Op: "fneg", Flags: "fast ", Type: "<2 x float>", Operands: []Operand{of("<2 x float>", "%x")}},
		"  %c = fcmp nnan olt <2 x half> %x, zeroinitializer": {Result: "%c", Op: "fcmp", Flags: "nnan ", Pred: "olt", Type: "<2 x i1>",
			Operands: []Operand{of("<2 x half>", "%x"), of("<2 x half>", "zeroinitializer")}},
		"  %p = addrspacecast ptr addrspace(1) %0 to ptr": {Result: "%p", Op: "addrspacecast", Type: "ptr", Operands: []Operand{of("ptr addrspace(1)", "%0")}},
		"  %s = select i1 %c, ptr %a, ptr null":           {Result: "%s", Op: "select", Type: "ptr", Operands: []Operand{of("i1", "%c"), of("ptr", "%a"), of("ptr", "null")}},
		"  %e = extractelement <4 x float> %v, i64 2":     {Result: "%e", Op: "extractelement", Type: "float", Operands: []Operand{of("<4 x float>", "%v"), of("i64", "2")}},
		"  %v = shufflevector <4 x i8> %a, <4 x i8> poison, <2 x i32> <i32 1, i32 3>": {Result: "%v", Op: "shufflevector", Type: "<2 x i8>",
			Operands: []Operand{of("<4 x i8>", "%a"), of("<4 x i8>", "poison"), of("<2 x i32>", "<i32 1, i32 3>")}},
		"  %f = phi ptr [ %a, %1 ], [ getelementptr (i8, ptr @t, i64 4), %\"b c\" ]": {Result: "%f", Op: "phi", Type: "ptr",
			Operands: []Operand{{Type: "ptr", Value: "%a", From: "1"}, {Type: "ptr", Value: "getelementptr (i8, ptr @t, i64 4)", From: `"b c"`}}},
		`  %g = getelementptr inbounds nuw %"struct.a b", ptr addrspace(3) @t, i64 0, i32 1`: {Result: "%g", Op: "getelementptr", Flags: "inbounds nuw ", Type: "ptr addrspace(3)",
			Operands: []Operand{of("ptr addrspace(3)", "@t"), of("i64", "0"), of("i32", "1")}},
		"  %l = load volatile <3 x i8>, ptr %g, align 4, !tbaa !3, !dbg !7":           {Result: "%l", Op: "load", Flags: "volatile ", Type: "<3 x i8>", Operands: []Operand{of("ptr", "%g")}, Place: ", !dbg !7"},
		`  store atomic { i8, i32 } %x, ptr %g syncscope("agent") release, align 4`:   {Op: "store", Flags: "atomic ", Type: "{ i8, i32 }", Operands: []Operand{of("{ i8, i32 }", "%x"), of("ptr", "%g")}},
		"  %r = atomicrmw volatile add ptr addrspace(1) %p, i32 1 monotonic, align 4": {Result: "%r", Op: "atomicrmw", Flags: "volatile ", Pred: "add", Operands: []Operand{of("ptr addrspace(1)", "%p"), of("i32", "1")}},
		"  %x = cmpxchg weak ptr %p, i32 %a, i32 %b acq_rel monotonic, align 4":       {Result: "%x", Op: "cmpxchg", Flags: "weak ", Operands: []Operand{of("ptr", "%p"), of("i32", "%a"), of("i32", "%b")}},
		"  %a = alloca [4 x i8], align 1":                                             {Result: "%a", Op: "alloca", Type: "[4 x i8]"},
		"  br i1 %c, label %a, label %b, !llvm.loop !3":                               {Op: "br", Operands: []Operand{of("i1", "%c")}},
		"  br label %a":              {Op: "br"},
		"  switch i8 %c, label %a [": {Op: "switch", Operands: []Operand{of("i8", "%c")}},
		"  ret void":                 {Op: "ret"},
		"  %i = insertvalue { float, i8 } poison, float %x, 0":                             {Result: "%i", Op: "insertvalue", Type: "{ float, i8 }", Operands: []Operand{of("{ float, i8 }", "poison"), of("float", "%x")}},
		"  %q = tail call noundef range(i32 0, 32) i32 @f(i32 noundef range(i32 0, 5) %x)": {Result: "%q", Op: "call", Type: "i32", Callee: "f", Operands: []Operand{of("i32", "%x")}},
		`  call void @"g h"(ptr nonnull align 4 dereferenceable(8) captures(none) %2, i1 false) #3, !dbg !9`: {Op: "call", Type: "void", Callee: "g h",
			Operands: []Operand{of("ptr", "%2"), of("i1", "false")}, Place: ", !dbg !9"},
		`  call void asm sideeffect "@f(", "r"(i32 %x)`: {Op: "call"},
		"  call void %f(i32 %x)":                        {Op: "call"},
		"  %u = va_arg ptr %x, i32":                     {Result: "%u"},
		"  %u = add i32 %x":                             {Result: "%u"},
	} {
		got := Read(line)
		require.NotNil(t, got, line)
		want.Line = line
		assert.Empty(t, cmp.Diff(&want, got, cmpopts.IgnoreFields(Operand{}, "At", "ValueAt"), cmpopts.IgnoreFields(Instruction{}, "CalleeAt")), line)
		stand(t, got)
	}
	for _, line := range []string{"", "a:", "}", "; a comment", "    i8 1, label %b", "  ]"} {
		if in := Read(line); in != nil {
			assert.Empty(t, in.Op, line)
		}
	}
}

// stand holds the places of operands against the line, which without changes is as it was.
func stand(t *testing.T, in *Instruction) {
	require.Equal(t, in.Line, in.With())
	for _, o := range in.Operands {
		require.Equal(t, o.Value, in.Line[o.ValueAt:o.End()], in.Line)
		if o.At >= 0 {
			require.Equal(t, o.Type, in.Line[o.At:o.TypeEnd()], in.Line)
		}
	}
}

// TestWith: what is changed stands where the operand stood, and nothing else changes.
func TestWith(t *testing.T) {
	in := Read("  store i8 %x, ptr noundef %p, align 1")
	to := in.Operands[1]
	assert.Equal(t, "  store i8 %x, ptr addrspace(3) noundef @t, align 1",
		in.With(Change{to.At, to.TypeEnd(), Pointer(3)}, Change{to.ValueAt, to.End(), "@t"}))
}

// Whatever a line is, it is read without a panic, and what is read stands in it.
func FuzzRead(f *testing.F) {
	for _, l := range []string{"  %3 = add i32 %1, 2", "  %f = phi ptr [ %a, %1 ]", "  call void @f(ptr align 4 %x)", "  store atomic i8 1, ptr %g release", "  %p = bitcast ptr %0 to ptr", "  %x = load <9 x"} {
		f.Add(l)
	}
	f.Fuzz(func(t *testing.T, l string) {
		if in := Read(l); in != nil {
			stand(t, in)
		}
	})
}
