package air

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/mlxc/mlxc/internal/llvm"
)

// What a module of others may hold. A kernel needs functions of its own, functions of AIR, a few of LLVM's
// that become instructions, memory of its own, and arithmetic. LLVM's IR can say much more: call the C
// library, run code when it is loaded, hold machine code in words. None of that is a kernel, so this is a
// list of what is allowed, and all else is an error that names the function and, where it is known, the
// line. It is the first fence; the second is the cage of the compiler and that of the executor.

// allowed returns an error for the first thing in a module that no kernel needs.
func (m *Module) allowed() error {
	c := checker{m: m, functions: map[string]bool{}, globals: map[string]bool{}, intrinsics: map[string]bool{}}
	for _, d := range m.Declares {
		c.functions[strings.Trim(d.Name, `"`)] = true
	}
	for _, f := range m.Funcs {
		c.functions[strings.Trim(f.Name, `"`)] = true
	}
	for _, g := range m.Globals {
		c.globals[strings.Trim(g.Name, `"`)] = true
	}
	if m.Assembly != "" {
		return fmt.Errorf("the module has assembly of its own (%.60s), which no kernel may", m.Assembly)
	}
	for _, check := range []func() error{c.text, c.declarations, c.variables, c.types, c.attributes, c.metadata} {
		if err := check(); err != nil {
			return err
		}
	}
	for _, f := range m.Funcs {
		if err := c.function(f); err != nil {
			return err
		}
	}
	return nil
}

// checker looks through one module.
type checker struct {
	m                  *Module
	functions, globals map[string]bool // by their names without quotes
	intrinsics         map[string]bool // declared ones that are allowed
}

func set(words string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(words) {
		out[w] = true
	}
	return out
}

var (
	// intrinsics are the functions of LLVM that become instructions, or nothing, on every machine: by their names
	// without the types behind them. memcpy, memmove and memset may become calls, of functions that the executor has.
	intrinsics = set(`llvm.abs llvm.assume llvm.bitreverse llvm.bswap llvm.canonicalize llvm.ceil llvm.copysign llvm.ctlz llvm.ctpop llvm.cttz
		llvm.dbg.assign llvm.dbg.declare llvm.dbg.label llvm.dbg.value llvm.expect llvm.expect.with.probability llvm.experimental.noalias.scope.decl
		llvm.fabs llvm.floor llvm.fma llvm.fmuladd llvm.fptosi.sat llvm.fptoui.sat llvm.fshl llvm.fshr llvm.invariant.end llvm.invariant.start
		llvm.is.constant llvm.is.fpclass llvm.lifetime.end llvm.lifetime.start llvm.masked.load llvm.masked.store llvm.maximum llvm.maxnum llvm.memcpy llvm.memmove
		llvm.memset llvm.minimum llvm.minnum llvm.nearbyint llvm.objectsize llvm.rint llvm.round llvm.roundeven llvm.sadd.sat llvm.sadd.with.overflow
		llvm.scmp llvm.smax llvm.smin llvm.smul.with.overflow llvm.sqrt llvm.sshl.sat llvm.ssub.sat llvm.ssub.with.overflow llvm.trunc llvm.uadd.sat
		llvm.uadd.with.overflow llvm.ucmp llvm.umax llvm.umin llvm.umul.with.overflow llvm.ushl.sat llvm.usub.sat llvm.usub.with.overflow
		llvm.vector.extract llvm.vector.insert llvm.vector.reduce.add llvm.vector.reduce.and llvm.vector.reduce.fadd llvm.vector.reduce.fmax
		llvm.vector.reduce.fmin llvm.vector.reduce.fmul llvm.vector.reduce.mul llvm.vector.reduce.or llvm.vector.reduce.smax llvm.vector.reduce.smin
		llvm.vector.reduce.umax llvm.vector.reduce.umin llvm.vector.reduce.xor`)
	// instructions are those that compute, move and choose. What is missing raises exceptions, jumps to what was
	// stored, or, as frem, becomes a call of the C library.
	instructions = set(`ret br switch unreachable fneg add fadd sub fsub mul fmul udiv sdiv fdiv urem srem shl lshr ashr and or xor
		extractelement insertelement shufflevector extractvalue insertvalue alloca load store fence cmpxchg atomicrmw getelementptr
		trunc zext sext fptrunc fpext fptoui fptosi uitofp sitofp ptrtoint inttoptr bitcast addrspacecast icmp fcmp phi select freeze call tail notail`)
	// forbidden are words that have no place in an instruction, or begin something else than one.
	forbidden = set(`asm sideeffect blockaddress dso_local_equivalent no_cfi ptrauth target define declare module source_filename attributes
		ifunc alias musttail invoke callbr indirectbr unwind personality none_such x86_amx va_arg`)
	// typeWords are those of types.
	typeWords = set(`void half bfloat float double ptr addrspace x label metadata token vscale opaque type`)
	// constantWords are those of values that are known before anything runs.
	constantWords = set(`undef poison zeroinitializer null true false getelementptr inbounds nuw nsw nusw inrange ptrtoint inttoptr bitcast addrspacecast
		trunc add sub mul xor to splat c`)
	globalWords = set(`private internal linkonce_odr linkonce weak_odr weak common appending dso_local hidden local_unnamed_addr unnamed_addr externally_initialized
		constant global align section comdat`)
	// attributeWords are those of functions and parameters that change nothing but what an optimizer may believe.
	attributeWords = set(`alwaysinline noinline inlinehint optnone optsize minsize cold hot nounwind willreturn mustprogress nofree convergent nosync
		nocallback nobuiltin builtin speculatable nocreateundeforpoison norecurse noreturn nomerge noimplicitfloat noredzone nocf_check uwtable sync async
		memory none read write readwrite argmem inaccessiblemem errnomem target_mem0 target_mem1 target_mem
		readnone readonly writeonly argmemonly inaccessiblememonly inaccessiblemem_or_argmemonly local_unnamed_addr unnamed_addr dso_local section align comdat
		noundef nonnull noalias nocapture captures address address_is_null provenance read_provenance ret dereferenceable dereferenceable_or_null zeroext signext
		returned immarg range byval sret inreg noext nofpclass nan inf norm sub zero writable initializes dead_on_unwind dead_on_return allocsize
		elementtype linkonce_odr linkonce weak_odr weak internal private external hidden fastcc ccc coldcc spir_func spir_kernel`)
	// moduleFlags are those that places in the source need, and what goes for any code of this machine.
	moduleFlags = set(`Dwarf.Version Debug.Info.Version PIC.Level PIE.Level wchar_size frame-pointer uwtable`)
)

// plainWord reports whether a word is a number or an integer's type.
func plainWord(w string) bool {
	d := w[0]
	return d >= '0' && d <= '9' || d == '-' || (d == 'i' && len(w) > 1 && llvm.IsScalar(w))
}

// words returns the first word that none of the sets has, and any name of a function.
func (c *checker) words(ts []llvm.Token, sets ...map[string]bool) error {
	for _, t := range ts {
		switch {
		case t.Kind == 'w' && !plainWord(t.Text) && !slices.ContainsFunc(sets, func(s map[string]bool) bool { return s[t.Text] }):
			return fmt.Errorf("says %q, which no kernel needs", t.Text)
		case t.Kind == '@' && c.functions[t.Text]:
			return fmt.Errorf("holds the address of the function @%s, which no kernel may", t.Text)
		case t.Kind == '@' && !c.globals[t.Text]:
			return fmt.Errorf("names @%s, which the module has not", t.Text)
		}
	}
	return nil
}

var intrinsicTypes = regexp.MustCompile(`(?:\.(?:nx)?(?:v[0-9]+)?(?:p[0-9]+|i[0-9]+|[fb]f?[0-9]+))+$`)

// space is an address space. AIR has four; others are segments of processors, and what else a target makes of them.
var space = regexp.MustCompile(`addrspace\(([0-9]+)\)`)

// text: no line is one that two readers would read in two ways, nor names memory that is no kernel's.
func (c *checker) text() error {
	line := func(l string) error {
		// LLVM ends a string at the next quote, whatever stands before it, and writes quotes in strings otherwise.
		if strings.Contains(l, `\"`) {
			return fmt.Errorf("a string ends in a backslash: %.60s", l)
		}
		for _, s := range space.FindAllStringSubmatch(l, -1) {
			if len(s[1]) > 1 || s[1] > "3" {
				return fmt.Errorf("it names the address space %s, which no kernel has", s[1])
			}
		}
		return nil
	}
	for _, list := range [][]string{c.m.Types, c.m.Attrs, c.m.Metadata, c.m.Named, c.m.Comdats} {
		for _, l := range list {
			if err := line(l); err != nil {
				return err
			}
		}
	}
	for _, g := range c.m.Globals {
		if err := line(g.Name + " = " + g.Text); err != nil {
			return fmt.Errorf("the variable @%s: %w", strings.Trim(g.Name, `"`), err)
		}
	}
	for _, d := range c.m.Declares {
		if err := line(d.Name + " " + d.Result + strings.Join(d.Params, " ") + d.Attrs); err != nil {
			return fmt.Errorf("the declaration of @%s: %w", strings.Trim(d.Name, `"`), err)
		}
	}
	for _, f := range c.m.Funcs {
		if err := line(f.Head); err != nil {
			return fmt.Errorf("the function @%s: %w", strings.Trim(f.Name, `"`), err)
		}
		for _, l := range f.Lines {
			if err := line(l); err != nil {
				return fmt.Errorf("%s: %w", c.at(f, l), err)
			}
		}
	}
	return nil
}

// undefinedMarker is how our compiler of Metal calls what stands for bytes that nobody has written.
var undefinedMarker = regexp.MustCompile(`^mlxc\.un[a-z.]+\.[0-9]+$`)

// declarations: functions of AIR, and those of LLVM that are known.
func (c *checker) declarations() error {
	for _, d := range c.m.Declares {
		name := strings.Trim(d.Name, `"`)
		switch {
		case strings.HasPrefix(name, "llvm."):
			if !intrinsics[intrinsicTypes.ReplaceAllString(name, "")] {
				return fmt.Errorf("the module calls @%s, a function of LLVM's that no kernel needs", name)
			}
		case !strings.HasPrefix(name, "air."):
			return fmt.Errorf("the module calls @%s, which it has not and which is no function of Metal's%s", name, c.caller(d.Name))
		}
		if err := c.words(llvm.Tokens(d.Attrs), attributeWords, typeWords); err != nil {
			return fmt.Errorf("the declaration of @%s %w", name, err)
		}
	}
	return nil
}

// caller says where a function is called first.
func (c *checker) caller(name string) string {
	for _, f := range c.m.Funcs {
		for _, l := range f.Lines {
			if strings.Contains(l, "@"+name+"(") {
				return ": " + c.at(f, l)
			}
		}
	}
	return ""
}

// at says where an instruction is.
func (c *checker) at(f *llvm.Function, l string) string {
	where := "the function @" + strings.Trim(f.Name, `"`)
	if i := strings.LastIndex(l, ", !dbg !"); i >= 0 {
		end := i + len(", !dbg !")
		for end < len(l) && l[end] >= '0' && l[end] <= '9' {
			end++
		}
		if n := c.m.Line(l[i:end]); n > 0 {
			where += fmt.Sprintf(", line %d of its source", n)
		}
	}
	return where
}

// variables: memory of the module's own.
func (c *checker) variables() error {
	defined := map[string]bool{}
	for _, f := range c.m.Funcs {
		defined[strings.Trim(f.Name, `"`)] = true
	}
	for _, g := range c.m.Globals {
		name := strings.Trim(g.Name, `"`)
		switch ts := llvm.Tokens(g.Text); {
		case name == "llvm.used", name == "llvm.compiler.used": // which are taken out
		case name == "llvm.global_ctors":
			// Apple's compiler copies function constants so. LLVM computes it beforehand; where it cannot, what it
			// leaves in the object is an error (standsAlone).
			for _, t := range ts {
				if t.Kind == '@' && !defined[t.Text] {
					return fmt.Errorf("the module has @%s run @%s when it is loaded, which it has not: no kernel may", name, t.Text)
				}
			}
		case name == "llvm.global_dtors":
			return fmt.Errorf("the module has @%s, which runs functions when it ends: no kernel may", name)
		case undefinedMarker.MatchString(name): // what stands for nothing; in an object it would be an error
		case strings.HasPrefix(name, "llvm."), strings.HasPrefix(name, "mlxc."):
			return fmt.Errorf("the module has @%s, which no kernel needs", name)
		case slices.ContainsFunc(ts, func(t llvm.Token) bool { return t.Kind == 'w' && (t.Text == "external" || t.Text == "extern_weak") }):
			return fmt.Errorf("the variable @%s is not the module's own, and no kernel may reach another", name)
		default:
			for i, t := range ts {
				if t.Kind == '!' && t.Text != "dbg" && (i == 0 || ts[i-1].Kind != '!' && t.Text != "" && !plainWord(t.Text)) {
					return fmt.Errorf("the variable @%s has the metadata !%s, which no kernel needs", name, t.Text)
				}
			}
			if err := c.words(ts, globalWords, constantWords, typeWords); err != nil {
				return fmt.Errorf("the variable @%s %w", name, err)
			}
		}
	}
	return nil
}

func (c *checker) types() error {
	for _, l := range append(slices.Clone(c.m.Types), c.m.Comdats...) {
		if err := c.words(llvm.Tokens(l), typeWords, set("comdat any")); err != nil {
			return fmt.Errorf("the type %.60s %w", l, err)
		}
	}
	return nil
}

func (c *checker) attributes() error {
	for _, l := range c.m.Attrs {
		head, body, _ := strings.Cut(l, "{")
		rest := stringAttribute.ReplaceAllString(body, "")
		if strings.Contains(rest, `"`) || strings.Count(rest, "}") != 1 || !strings.HasSuffix(strings.TrimSpace(rest), "}") {
			return fmt.Errorf("these attributes are not understood: %.80s", l)
		}
		if err := c.words(llvm.Tokens(head+rest), attributeWords, typeWords, set("attributes")); err != nil {
			return fmt.Errorf("a group of attributes %w", err)
		}
	}
	return nil
}

// metadata: a line of it begins nothing else. Of flags of the module only the known ones stay.
func (c *checker) metadata() error {
	flags := map[string]bool{}
	for i, l := range c.m.Named {
		if strings.HasPrefix(l, "!llvm.module.flags ") {
			for _, t := range llvm.Tokens(l)[1:] {
				if t.Kind == '!' && t.Text != "" {
					flags["!"+t.Text] = true
				}
			}
			kept := []string{}
			for _, n := range c.m.Metadata {
				name, text, _ := strings.Cut(n, " = ")
				if ts := llvm.Tokens(text); flags[name] && slices.ContainsFunc(ts, func(t llvm.Token) bool {
					return (t.Kind == '!' || t.Kind == '"') && moduleFlags[strings.ReplaceAll(t.Text, " ", ".")]
				}) {
					kept = append(kept, name)
				}
			}
			c.m.Named[i] = "!llvm.module.flags = !{" + strings.Join(kept, ", ") + "}"
		}
	}
	for _, l := range append(slices.Clone(c.m.Metadata), c.m.Named...) {
		for _, t := range llvm.Tokens(l) {
			if t.Kind == 'w' && (t.Text == "define" || t.Text == "declare" || t.Text == "module" || t.Text == "asm" || t.Text == "attributes") {
				return fmt.Errorf("metadata %.60s says %q", l, t.Text)
			}
		}
	}
	return nil
}

// function: instructions that are known, and calls of functions by their names.
func (c *checker) function(f *llvm.Function) error {
	name := strings.Trim(f.Name, `"`)
	if strings.HasPrefix(name, "llvm.") || strings.HasPrefix(name, "mlxc.") {
		return fmt.Errorf("the module defines @%s, which no kernel may", name)
	}
	attrs := stringAttribute.ReplaceAllString(" "+section.ReplaceAllString(f.Attrs, ""), "")
	ts := llvm.Tokens(attrs)
	for i, t := range ts {
		if t.Kind == '"' || t.Kind == '!' && t.Text != "dbg" && t.Text != "prof" && (t.Text == "" || !plainWord(t.Text)) || t.Kind == '{' || t.Kind == '<' {
			return fmt.Errorf("the function @%s has %.40q behind its parameters, which no kernel needs", name, t.Text)
		}
		if t.Kind == '!' && plainWord(t.Text) && (i == 0 || ts[i-1].Kind != '!') {
			return fmt.Errorf("the head of the function @%s is not understood", name)
		}
	}
	if err := c.words(ts, attributeWords); err != nil {
		return fmt.Errorf("the function @%s %w", name, err)
	}
	cases := false // within the cases of a switch
	for _, l := range f.Lines {
		ts := llvm.Tokens(l)
		if len(ts) == 0 {
			continue
		}
		err := error(nil)
		switch {
		case cases:
			cases = ts[0].Kind != ']'
			err = c.words(ts, typeWords, set("true false"))
		case isLabel(ts):
		default:
			err = c.instruction(ts)
			cases = ts[0].Kind == 'w' && ts[0].Text == "switch" && ts[len(ts)-1].Kind == '['
		}
		if err != nil {
			return fmt.Errorf("%s: %w", c.at(f, l), err)
		}
	}
	return nil
}

// isLabel reports whether a line is a block's name.
func isLabel(ts []llvm.Token) bool {
	return len(ts) == 2 && ts[1].Kind == ':' && (ts[0].Kind == 'w' || ts[0].Kind == '"')
}

// instruction checks one.
func (c *checker) instruction(ts []llvm.Token) error {
	op := ts
	if ts[0].Kind == '%' && len(ts) > 2 && ts[1].Kind == '=' {
		op = ts[2:]
	}
	if ts[0].Kind == '#' && strings.HasPrefix(ts[0].Text, "dbg_") { // a debug record, which is no instruction
		for _, t := range ts {
			if t.Kind == 'w' && (instructions[t.Text] || forbidden[t.Text]) && !constantWords[t.Text] {
				return fmt.Errorf("a debug record says %q", t.Text)
			}
		}
		return nil
	}
	if op[0].Kind != 'w' || !instructions[op[0].Text] {
		return fmt.Errorf("%q is no instruction that a kernel may have", op[0].Text)
	}
	call := op[0].Text == "call" || op[0].Text == "tail" || op[0].Text == "notail"
	callee := -1
	depth := 0
	for i, t := range op {
		switch t.Kind {
		case '(':
			depth++
		case ')':
			depth--
		case '}':
			if len(op) == 1 {
				return fmt.Errorf("a brace stands where an instruction should")
			}
		case '@', '%':
			if call && callee < 0 && depth == 0 && i+1 < len(op) && op[i+1].Kind == '(' {
				callee = i
				if t.Kind == '%' {
					return fmt.Errorf("it calls what %%%s points to: a kernel calls functions by their names", t.Text)
				}
				if !c.functions[t.Text] {
					return fmt.Errorf("it calls @%s, which the module has not", t.Text)
				}
				continue
			}
			if t.Kind == '@' && c.functions[t.Text] {
				return fmt.Errorf("it takes the address of the function @%s, which no kernel may", t.Text)
			}
			if t.Kind == '@' && !c.globals[t.Text] {
				return fmt.Errorf("it names @%s, which the module has not", t.Text)
			}
		case 'w':
			if forbidden[t.Text] && i > 0 {
				return fmt.Errorf("it says %q, which no kernel may", t.Text)
			}
			if t.Text == "call" && i > 0 && (i > 1 || op[0].Text != "tail" && op[0].Text != "notail") {
				return fmt.Errorf("it calls within another instruction")
			}
		case '"':
			text := i > 0 && op[i-1].Kind == 'w' && op[i-1].Text == "c"
			scope := i > 1 && op[i-1].Kind == '(' && op[i-2].Text == "syncscope"
			assumed := call && callee >= 0 && op[callee].Text == "llvm.assume"
			if !text && !scope && !assumed {
				return fmt.Errorf("it says %q, which no kernel needs", t.Text)
			}
		}
	}
	if call && callee < 0 {
		return fmt.Errorf("it calls no function by its name")
	}
	return nil
}
