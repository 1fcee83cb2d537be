package air

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/mlxc/mlxc/internal/air/calls"
	"github.com/mlxc/mlxc/internal/llvm"
)

// Module is an LLVM module that becomes code of a machine.
type Module struct {
	*llvm.Module
	Target  calls.Target // of the bodies of air.* functions
	aligned bool         // Input.Aligned
}

// ReadModule reads a module. name is the file's, for errors.
func ReadModule(name string, text []byte) (*Module, error) {
	m, err := llvm.Parse(name, text)
	if err != nil {
		return nil, err
	}
	return &Module{Module: m}, nil
}

// ConstantValue is the value of a function constant.
type ConstantValue struct {
	Index int
	Bits  uint64 // of the value, little-endian from bit 0 on
}

var (
	// attachment is metadata that an instruction has, but for its place in the source.
	attachment = regexp.MustCompile(`, !([a-z][a-zA-Z._]*) ![0-9]+`)
	// stringAttribute is an attribute of a function; a name in quotes stands behind % or @.
	stringAttribute = regexp.MustCompile(` "[^"]*"(?:="[^"]*")?`)
	argumentAlign   = regexp.MustCompile(` align [0-9]+`)
	dereferenceable = regexp.MustCompile(` dereferenceable(?:_or_null)?\([0-9]+\)`)
	constantGlobal  = regexp.MustCompile(`^"?(.*)\.MTL_FC_INIT_([0-9]+)_([A-Za-z0-9]+)"?$`)
	constantText    = regexp.MustCompile(`\b(?:constant|global) (\S+|<[^>]*>) (?:undef|poison|zeroinitializer)`)
	alignment       = regexp.MustCompile(`, align [0-9]+`)
	allocaArray     = regexp.MustCompile(`^  (%\S+) = alloca (\[.*?\]|<.*?>|[^,]+?)(?:, align ([0-9]+))?(, !dbg ![0-9]+)?$`)
)

// Slack is how many bytes stand before and behind a private array. Kernels that MLX ships
// write up to 992 bytes below one (layer_norm, of threads beyond the end of a row).
const Slack = 1024

// Prepare makes of a module as Apple's compiler, or ours, left it one that clang takes for
// this machine: only kernel is left to be called from outside, whatever exchanges nothing
// between threads has a body, and function constants are known.
func (m *Module) Prepare(kernel string, constants []ConstantValue, checked bool) error {
	for _, t := range m.Types {
		if len(t) > 1 && t[1] >= '0' && t[1] <= '9' {
			return fmt.Errorf("the type %s has a number for a name", strings.Fields(t)[0])
		}
	}
	k := m.Function(kernel)
	if k == nil {
		return fmt.Errorf("the module has no function @%s", kernel)
	}
	if err := m.Inlined(k); err != nil {
		return err
	}
	if m.Target != calls.PTX {
		m.WithoutWaits()
		m.withoutPrefetches()
		if err := m.Parts(false); err != nil {
			return err
		}
		if err := m.Subnormals(false); err != nil {
			return err
		}
	}
	if err := m.specialise(constants); err != nil {
		return err
	}
	m.plainGlobals()
	for i, a := range m.Attrs {
		head, body, _ := strings.Cut(a, "{")
		m.Attrs[i] = head + "{" + stringAttribute.ReplaceAllString(body, "")
	}
	if m.Target != calls.PTX {
		m.mayStay()
	}
	for _, f := range m.Funcs {
		m.plain(f, checked)
		divide(f)
		f.Head = Prefix(f, f == k) + f.Head[strings.IndexByte(f.Head, '@'):]
		if f != k {
			f.Head = AlwaysInline(f.Head)
		}
	}
	m.Metadata, m.Named = m.debugMetadata(), debugNames(m.Named)
	m.narrow()
	m.uncontracted()
	m.renameUnset(checked)
	m.bfloats()
	return m.define()
}

// promises are those that a function comes to its end, or at least does something that others see.
var promises = regexp.MustCompile(` (?:mustprogress|willreturn)\b`)

// mayStay takes the promise out of functions that they end: of a loop without an end LLVM would make nothing, and a
// thread would run into whatever code stands behind it. So the loop stays, and the executor ends it in time. GPUs
// have such loops for themselves.
func (m *Module) mayStay() {
	groups := map[string]string{}
	for _, a := range m.Attrs {
		head, body, _ := strings.Cut(a, "{")
		if f := strings.Fields(head); len(f) > 1 {
			groups[f[1]] = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(body), "}"))
		}
	}
	for _, f := range m.Funcs {
		end := llvm.Matching(f.Head, strings.IndexByte(f.Head, '('))
		if end < 0 {
			continue
		}
		rest := attributeGroup.ReplaceAllStringFunc(f.Head[end+1:], func(g string) string {
			if words, ok := groups[strings.TrimSpace(g)]; ok {
				return " " + words
			}
			return g
		})
		f.Head = f.Head[:end+1] + promises.ReplaceAllString(rest, "")
	}
}

// attributeGroup names a group of attributes behind the parameters of a function.
var attributeGroup = regexp.MustCompile(` #[0-9]+`)

// Prefix is the head of a function up to its name.
func Prefix(f *llvm.Function, kernel bool) string {
	result := llvm.TypeOf(strings.TrimPrefix(f.Head[:strings.IndexByte(f.Head, '@')], "define "))
	if kernel {
		return "define " + result + " "
	}
	return "define internal " + result + " "
}

// AlwaysInline adds the attribute to a function's head, in which noinline may stand.
func AlwaysInline(head string) string {
	end := llvm.Matching(head, strings.IndexByte(head, '('))
	rest := head[end+1:]
	for _, word := range []string{" local_unnamed_addr", " unnamed_addr", " noinline"} {
		rest = strings.ReplaceAll(rest, word, "")
	}
	return head[:end+1] + " alwaysinline" + rest
}

// elementAlign is the alignment of a vector's elements.
var elementAlign = map[string]string{"i8": "1", "half": "2", "bfloat": "2", "i16": "2", "float": "4", "i32": "4", "i64": "8"}

// plain takes promises out of a function that only Apple's own runtime keeps: that arguments
// do not overlap (MLX dispatches in place), that more bytes may be read than are, and types
// of memory. Vectors may lie where their elements may: Metal asks for more, but Apple's GPUs do
// not, and kernels of ggml's move four floats to and from any address of a float. A kernel that is
// aligned has looked: there a copy of a vector is a load and a store, where else it is one of bytes.
func (m *Module) plain(f *llvm.Function, checked bool) {
	aligned := m.aligned
	f.Head = dereferenceable.ReplaceAllString(stringAttribute.ReplaceAllString(f.Head, ""), "")
	f.Head = strings.ReplaceAll(f.Head, " noalias", "")
	out := make([]string, 0, len(f.Lines))
	for _, l := range f.Lines {
		if strings.Contains(l, "@llvm.lifetime.") || strings.Contains(l, "@llvm.experimental.noalias.scope.decl") {
			continue
		}
		l = attachment.ReplaceAllStringFunc(l, func(s string) string {
			if strings.HasPrefix(s, ", !dbg ") {
				return s
			}
			return ""
		})
		switch {
		case checked:
		case !aligned:
			l = Unaligned(l)
		case strings.Contains(l, "@llvm.memcpy."):
			if in := llvm.Read(l); isVectorCopy(in) {
				to, from, name := in.Operands[0], in.Operands[1], fmt.Sprintf("%%mlxc.copied%d", len(out))
				out = append(out, fmt.Sprintf("  %s = load <4 x i32>, %s %s, align 16%s", name, from.Type, from.Value, in.Place))
				l = fmt.Sprintf("  store <4 x i32> %s, %s %s, align 16%s", name, to.Type, to.Value, in.Place)
			}
		}
		if a := allocaArray.FindStringSubmatch(l); a != nil && (a[2][0] == '[' || checked && m.Layout(a[2]).Size > 0 && strings.ContainsAny(a[2][:1], "{%<")) {
			shade := -1
			if checked {
				shade = m.shadeBytes(a[2])
			}
			out = append(out, roomy(a, shade)...)
			continue
		}
		out = append(out, l)
	}
	f.Lines = out
}

// isVectorCopy reports whether a call copies 16 bytes that lie at a multiple of that: mostly a vector, which is a
// structure to our compiler of Metal. LLVM would make two accesses of 8 bytes each of it.
func isVectorCopy(in *llvm.Instruction) bool {
	if in == nil || len(in.Operands) != 4 || in.Operands[2].Value != "16" || in.Operands[3].Value != "false" {
		return false
	}
	return Promised(in, 0) == 16 && Promised(in, 1) == 16
}

// Promised is what an address that a function is given is promised to be a multiple of, 0 if nothing is.
func Promised(in *llvm.Instruction, i int) (n int) {
	o := in.Operands[i]
	n, _ = strconv.Atoi(strings.TrimPrefix(argumentAlign.FindString(in.Line[o.TypeEnd():o.ValueAt]), " align "))
	return n
}

// Unaligned is a line in which vectors that are read, written or copied lie where their elements may.
func Unaligned(l string) string {
	if strings.Contains(l, "call void @llvm.mem") {
		return argumentAlign.ReplaceAllString(l, "") // such a copy may be one of a vector
	}
	if !strings.Contains(l, ", align ") {
		return l
	}
	in := llvm.Read(l)
	if in == nil || in.Op != "load" && in.Op != "store" || !strings.HasPrefix(in.Type, "<") || strings.Contains(in.Flags, "atomic") {
		return l
	}
	if _, elem := llvm.Elements(in.Type); elementAlign[elem] != "" {
		return alignment.ReplaceAllString(l, ", align "+elementAlign[elem])
	}
	return l
}

// maxShade is the most bytes of a private variable whose states are kept.
const maxShade = 1 << 16

// shadeBytes is how many bytes of a variable of the type have states: all, or none where it is too large or not known.
func (m *Module) shadeBytes(typ string) int {
	if n := m.Layout(typ).Size; n <= maxShade {
		return n
	}
	return 0
}

// roomy is a private array with slack before and behind it. In a checked kernel it has behind
// that shaded bytes, one for each of its own, which say whether that was written; below 0 is none.
func roomy(a []string, shaded int) []string {
	align := 16
	if n, err := strconv.Atoi(a[3]); err == nil {
		align = max(align, n)
	}
	name := "%slack." + a[1][1:]
	shade := ""
	if shaded >= 0 {
		shade = fmt.Sprintf(", [%d x i8]", shaded)
	}
	return []string{
		fmt.Sprintf("  %s = alloca { [%d x i8], %s, [%d x i8]%s }, align %d%s", name, Slack, a[2], Slack, shade, align, a[4]),
		fmt.Sprintf("  %s = getelementptr i8, ptr %s, i64 %d%s", a[1], name, Slack, a[4]),
	}
}

// specialise gives function constants their values. One that is not given is zero, as Metal
// has it for a constant that nothing sets.
func (m *Module) specialise(constants []ConstantValue) error {
	bitsOf := make(map[int]uint64, len(constants))
	for _, v := range constants {
		bitsOf[v.Index] = v.Bits
	}
	for i, g := range m.Globals {
		c := constantGlobal.FindStringSubmatch(g.Name)
		if c == nil {
			continue
		}
		index, _ := strconv.Atoi(c[2])
		bits := bitsOf[index]
		t := constantText.FindStringSubmatchIndex(g.Text)
		if t == nil {
			return fmt.Errorf("the function constant @%s is not understood: %.80q", g.Name, g.Text)
		}
		typ := g.Text[t[2]:t[3]]
		value, err := literal(typ, bits)
		if err != nil {
			return fmt.Errorf("the function constant @%s: %w", g.Name, err)
		}
		m.Globals[i].Text = "internal addrspace(2) constant " + typ + " " + value
	}
	return nil
}

// literal is a value of a type as IR has it.
func literal(typ string, bits uint64) (string, error) {
	switch typ {
	case "i1":
		return strconv.FormatBool(bits&1 != 0), nil
	case "i8":
		return strconv.FormatUint(bits&0xff, 10), nil
	case "i16":
		return strconv.FormatUint(bits&0xffff, 10), nil
	case "i32":
		return strconv.FormatUint(bits&0xffffffff, 10), nil
	case "i64":
		return strconv.FormatUint(bits, 10), nil
	case "half":
		return fmt.Sprintf("0xH%04X", bits&0xffff), nil
	case "bfloat":
		return fmt.Sprintf("0xR%04X", bits&0xffff), nil
	case "float":
		return fmt.Sprintf("0x%016X", math.Float64bits(float64(math.Float32frombits(uint32(bits))))), nil
	}
	return "", fmt.Errorf("values of type %s cannot be given", typ)
}

// plainGlobals takes out what only Apple's tools ask for, and sections.
func (m *Module) plainGlobals() {
	out := m.Globals[:0]
	for _, g := range m.Globals {
		switch strings.Trim(g.Name, `"`) {
		case "llvm.compiler.used", "llvm.used":
			continue
		case "llvm.global_ctors":
			if strings.Contains(g.Text, "[0 x ") {
				continue
			}
		}
		g.Text = strings.ReplaceAll(g.Text, "externally_initialized ", "")
		g.Text = section.ReplaceAllString(g.Text, "")
		g.Text = attachment.ReplaceAllString(g.Text, "")
		out = append(out, g)
	}
	m.Globals = out
	for _, f := range m.Funcs {
		f.Head = section.ReplaceAllString(f.Head, "")
	}
}

var section = regexp.MustCompile(`,? section "[^"]*"`)

// debugMetadata returns the nodes that places in the source need; none if no instruction has
// a place.
func (m *Module) debugMetadata() []string {
	for _, n := range m.Named {
		if !strings.HasPrefix(n, "!llvm.dbg.cu ") {
			continue
		}
		out := make([]string, len(m.Metadata))
		for i, l := range m.Metadata {
			// A node that names a value keeps that value alive.
			if name, text, _ := strings.Cut(l, " = "); strings.Contains(text, "ptr @") {
				l = name + " = !{}"
			}
			out[i] = l
		}
		return out
	}
	// A function's own node would be left without a definition.
	for _, f := range m.Funcs {
		f.Head = llvm.DbgSuffix.ReplaceAllString(f.Head, "")
	}
	return nil
}

// debugNames returns the named nodes that places in the source need.
func debugNames(named []string) (out []string) {
	debug := false
	for _, n := range named {
		debug = debug || strings.HasPrefix(n, "!llvm.dbg.cu ")
	}
	for _, n := range named {
		if debug && (strings.HasPrefix(n, "!llvm.dbg.cu ") || strings.HasPrefix(n, "!llvm.module.flags ")) {
			out = append(out, n)
		}
	}
	return out
}

// uncontracted makes two roundings of each a·b + c that the compiler may fuse. Then a kernel
// computes what its term says (docs/terms.md), on every machine.
func (m *Module) uncontracted() {
	for _, f := range m.Funcs {
		for k, l := range f.Lines {
			f.Lines[k] = strings.ReplaceAll(l, "@llvm.fmuladd.", "@mlxc.fmuladd.")
		}
	}
	for i, d := range m.Declares {
		name := strings.Trim(d.Name, `"`)
		if !strings.HasPrefix(name, "llvm.fmuladd.") {
			continue
		}
		own := "mlxc." + strings.TrimPrefix(name, "llvm.")
		m.Declares[i].Name = own
		m.Funcs = append(m.Funcs, &llvm.Function{
			Name: own,
			Head: fmt.Sprintf("define internal %[1]s @%[2]s(%[1]s %%a, %[1]s %%b, %[1]s %%c) alwaysinline ", d.Result, own),
			Lines: []string{
				fmt.Sprintf("  %%m = fmul %s %%a, %%b", d.Result),
				fmt.Sprintf("  %%s = fadd %s %%m, %%c", d.Result),
				fmt.Sprintf("  ret %s %%s", d.Result),
			},
		})
	}
	m.Declares = slices.DeleteFunc(m.Declares, func(d llvm.Declaration) bool { return strings.HasPrefix(d.Name, "mlxc.") })
}

// define gives every air.* function a body that exchanges nothing.
func (m *Module) define() error {
	known := map[string]bool{}
	kept := m.Declares[:0]
	var functions []calls.Function
	for _, d := range m.Declares {
		name := strings.Trim(d.Name, `"`)
		switch {
		case strings.HasPrefix(name, "llvm.lifetime."), name == "llvm.experimental.noalias.scope.decl", known[name]:
		case strings.HasPrefix(name, "air.") && !calls.Exchanges(name) && !IsAirMarker(name):
			functions = append(functions, calls.Function{Name: name, Result: d.Result, Params: d.Params})
		default:
			kept = append(kept, d)
		}
		known[name] = true
	}
	m.Declares = kept
	text, err := calls.Module(functions, m.Target)
	if err != nil {
		return err
	}
	m.Add(text, known)
	return nil
}
