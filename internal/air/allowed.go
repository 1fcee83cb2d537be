package air

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// What a module of others may hold. A kernel needs functions of its own, functions of AIR, a few of LLVM's
// that become instructions, memory of its own, and arithmetic. LLVM's IR can say much more: call the C
// library, run code when it is loaded, hold machine code in words. None of that is a kernel, so this is a
// list of what is allowed, and all else is an error that names the function and, where it is known, the
// line. It is the first fence; the second is the cage of the compiler and that of the executor.

// allowed returns an error for the first thing in a module that no kernel needs.
func (m *module) allowed() error {
	c := checker{m: m, functions: map[string]bool{}, globals: map[string]bool{}, intrinsics: map[string]bool{}}
	for _, d := range m.declares {
		c.functions[strings.Trim(d.name, `"`)] = true
	}
	for _, f := range m.funcs {
		c.functions[strings.Trim(f.name, `"`)] = true
	}
	for _, g := range m.globals {
		c.globals[strings.Trim(g.name, `"`)] = true
	}
	if m.assembly != "" {
		return fmt.Errorf("the module has assembly of its own (%.60s), which no kernel may", m.assembly)
	}
	for _, check := range []func() error{c.text, c.declarations, c.variables, c.types, c.attributes, c.metadata} {
		if err := check(); err != nil {
			return err
		}
	}
	for _, f := range m.funcs {
		if err := c.function(f); err != nil {
			return err
		}
	}
	return nil
}

// checker looks through one module.
type checker struct {
	m                  *module
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

// token is a part of a line: a word, a string, a name with its sigil, or a character.
type token struct {
	kind byte // 'w', '"', one of @ % # ! $, or the character itself
	text string
}

// tokens cuts a line. Comments are left out.
func tokens(l string) (out []token) {
	counted(len(l))
	for i := 0; i < len(l); {
		switch c := l[i]; {
		case c == ' ' || c == '\t':
			i++
		case c == ';':
			return out
		case c == '"':
			end := closing(l, i)
			out = append(out, token{'"', l[min(i+1, end):end]})
			i = end + 1
		case strings.IndexByte("@%#!$", c) >= 0:
			if i+1 < len(l) && l[i+1] == '"' {
				end := closing(l, i+1)
				out = append(out, token{c, l[min(i+2, end):end]})
				i = end + 1
				continue
			}
			end := i + 1
			for end < len(l) && nameByte(l[end]) {
				end++
			}
			out = append(out, token{c, l[i+1 : end]})
			i = end
		case nameByte(c):
			end := i
			for end < len(l) && nameByte(l[end]) {
				end++
			}
			out = append(out, token{'w', l[i:end]})
			i = end
		default:
			out = append(out, token{c, l[i : i+1]})
			i++
		}
	}
	return out
}

func nameByte(c byte) bool {
	return c == '.' || c == '_' || c == '-' || c == '$' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
}

// plainWord reports whether a word is a number or an integer's type.
func plainWord(w string) bool {
	d := w[0]
	return d >= '0' && d <= '9' || d == '-' || (d == 'i' && len(w) > 1 && scalarType(w))
}

// words returns the first word that none of the sets has, and any name of a function.
func (c *checker) words(ts []token, sets ...map[string]bool) error {
	for _, t := range ts {
		switch {
		case t.kind == 'w' && !plainWord(t.text) && !slices.ContainsFunc(sets, func(s map[string]bool) bool { return s[t.text] }):
			return fmt.Errorf("says %q, which no kernel needs", t.text)
		case t.kind == '@' && c.functions[t.text]:
			return fmt.Errorf("holds the address of the function @%s, which no kernel may", t.text)
		case t.kind == '@' && !c.globals[t.text]:
			return fmt.Errorf("names @%s, which the module has not", t.text)
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
	for _, list := range [][]string{c.m.types, c.m.attrs, c.m.metadata, c.m.named, c.m.comdats} {
		for _, l := range list {
			if err := line(l); err != nil {
				return err
			}
		}
	}
	for _, g := range c.m.globals {
		if err := line(g.name + " = " + g.text); err != nil {
			return fmt.Errorf("the variable @%s: %w", strings.Trim(g.name, `"`), err)
		}
	}
	for _, d := range c.m.declares {
		if err := line(d.name + " " + d.result + strings.Join(d.params, " ") + d.attrs); err != nil {
			return fmt.Errorf("the declaration of @%s: %w", strings.Trim(d.name, `"`), err)
		}
	}
	for _, f := range c.m.funcs {
		if err := line(f.head); err != nil {
			return fmt.Errorf("the function @%s: %w", strings.Trim(f.name, `"`), err)
		}
		for _, l := range f.lines {
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
	for _, d := range c.m.declares {
		name := strings.Trim(d.name, `"`)
		switch {
		case strings.HasPrefix(name, "llvm."):
			if !intrinsics[intrinsicTypes.ReplaceAllString(name, "")] {
				return fmt.Errorf("the module calls @%s, a function of LLVM's that no kernel needs", name)
			}
		case !strings.HasPrefix(name, "air."):
			return fmt.Errorf("the module calls @%s, which it has not and which is no function of Metal's%s", name, c.caller(d.name))
		}
		if err := c.words(tokens(d.attrs), attributeWords, typeWords); err != nil {
			return fmt.Errorf("the declaration of @%s %w", name, err)
		}
	}
	return nil
}

// caller says where a function is called first.
func (c *checker) caller(name string) string {
	for _, f := range c.m.funcs {
		for _, l := range f.lines {
			if strings.Contains(l, "@"+name+"(") {
				return ": " + c.at(f, l)
			}
		}
	}
	return ""
}

// at says where an instruction is.
func (c *checker) at(f *function, l string) string {
	where := "the function @" + strings.Trim(f.name, `"`)
	if i := strings.LastIndex(l, ", !dbg !"); i >= 0 {
		end := i + len(", !dbg !")
		for end < len(l) && l[end] >= '0' && l[end] <= '9' {
			end++
		}
		if n := c.m.line(l[i:end]); n > 0 {
			where += fmt.Sprintf(", line %d of its source", n)
		}
	}
	return where
}

// variables: memory of the module's own.
func (c *checker) variables() error {
	defined := map[string]bool{}
	for _, f := range c.m.funcs {
		defined[strings.Trim(f.name, `"`)] = true
	}
	for _, g := range c.m.globals {
		name := strings.Trim(g.name, `"`)
		switch ts := tokens(g.text); {
		case name == "llvm.used", name == "llvm.compiler.used": // which are taken out
		case name == "llvm.global_ctors":
			// Apple's compiler copies function constants so. LLVM computes it beforehand; where it cannot, what it
			// leaves in the object is an error (standsAlone).
			for _, t := range ts {
				if t.kind == '@' && !defined[t.text] {
					return fmt.Errorf("the module has @%s run @%s when it is loaded, which it has not: no kernel may", name, t.text)
				}
			}
		case name == "llvm.global_dtors":
			return fmt.Errorf("the module has @%s, which runs functions when it ends: no kernel may", name)
		case undefinedMarker.MatchString(name): // what stands for nothing; in an object it would be an error
		case strings.HasPrefix(name, "llvm."), strings.HasPrefix(name, "mlxc."):
			return fmt.Errorf("the module has @%s, which no kernel needs", name)
		case slices.ContainsFunc(ts, func(t token) bool { return t.kind == 'w' && (t.text == "external" || t.text == "extern_weak") }):
			return fmt.Errorf("the variable @%s is not the module's own, and no kernel may reach another", name)
		default:
			for i, t := range ts {
				if t.kind == '!' && t.text != "dbg" && (i == 0 || ts[i-1].kind != '!' && t.text != "" && !plainWord(t.text)) {
					return fmt.Errorf("the variable @%s has the metadata !%s, which no kernel needs", name, t.text)
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
	for _, l := range append(slices.Clone(c.m.types), c.m.comdats...) {
		if err := c.words(tokens(l), typeWords, set("comdat any")); err != nil {
			return fmt.Errorf("the type %.60s %w", l, err)
		}
	}
	return nil
}

func (c *checker) attributes() error {
	for _, l := range c.m.attrs {
		head, body, _ := strings.Cut(l, "{")
		rest := stringAttribute.ReplaceAllString(body, "")
		if strings.Contains(rest, `"`) || strings.Count(rest, "}") != 1 || !strings.HasSuffix(strings.TrimSpace(rest), "}") {
			return fmt.Errorf("these attributes are not understood: %.80s", l)
		}
		if err := c.words(tokens(head+rest), attributeWords, typeWords, set("attributes")); err != nil {
			return fmt.Errorf("a group of attributes %w", err)
		}
	}
	return nil
}

// metadata: a line of it begins nothing else. Of flags of the module only the known ones stay.
func (c *checker) metadata() error {
	flags := map[string]bool{}
	for i, l := range c.m.named {
		if strings.HasPrefix(l, "!llvm.module.flags ") {
			for _, t := range tokens(l)[1:] {
				if t.kind == '!' && t.text != "" {
					flags["!"+t.text] = true
				}
			}
			kept := []string{}
			for _, n := range c.m.metadata {
				name, text, _ := strings.Cut(n, " = ")
				if ts := tokens(text); flags[name] && slices.ContainsFunc(ts, func(t token) bool {
					return (t.kind == '!' || t.kind == '"') && moduleFlags[strings.ReplaceAll(t.text, " ", ".")]
				}) {
					kept = append(kept, name)
				}
			}
			c.m.named[i] = "!llvm.module.flags = !{" + strings.Join(kept, ", ") + "}"
		}
	}
	for _, l := range append(slices.Clone(c.m.metadata), c.m.named...) {
		for _, t := range tokens(l) {
			if t.kind == 'w' && (t.text == "define" || t.text == "declare" || t.text == "module" || t.text == "asm" || t.text == "attributes") {
				return fmt.Errorf("metadata %.60s says %q", l, t.text)
			}
		}
	}
	return nil
}

// function: instructions that are known, and calls of functions by their names.
func (c *checker) function(f *function) error {
	name := strings.Trim(f.name, `"`)
	if strings.HasPrefix(name, "llvm.") || strings.HasPrefix(name, "mlxc.") {
		return fmt.Errorf("the module defines @%s, which no kernel may", name)
	}
	attrs := stringAttribute.ReplaceAllString(" "+section.ReplaceAllString(f.attrs, ""), "")
	ts := tokens(attrs)
	for i, t := range ts {
		if t.kind == '"' || t.kind == '!' && t.text != "dbg" && t.text != "prof" && (t.text == "" || !plainWord(t.text)) || t.kind == '{' || t.kind == '<' {
			return fmt.Errorf("the function @%s has %.40q behind its parameters, which no kernel needs", name, t.text)
		}
		if t.kind == '!' && plainWord(t.text) && (i == 0 || ts[i-1].kind != '!') {
			return fmt.Errorf("the head of the function @%s is not understood", name)
		}
	}
	if err := c.words(ts, attributeWords); err != nil {
		return fmt.Errorf("the function @%s %w", name, err)
	}
	cases := false // within the cases of a switch
	for _, l := range f.lines {
		ts := tokens(l)
		if len(ts) == 0 {
			continue
		}
		err := error(nil)
		switch {
		case cases:
			cases = ts[0].kind != ']'
			err = c.words(ts, typeWords, set("true false"))
		case isLabel(ts):
		default:
			err = c.instruction(ts)
			cases = ts[0].kind == 'w' && ts[0].text == "switch" && ts[len(ts)-1].kind == '['
		}
		if err != nil {
			return fmt.Errorf("%s: %w", c.at(f, l), err)
		}
	}
	return nil
}

// isLabel reports whether a line is a block's name.
func isLabel(ts []token) bool {
	return len(ts) == 2 && ts[1].kind == ':' && (ts[0].kind == 'w' || ts[0].kind == '"')
}

// instruction checks one.
func (c *checker) instruction(ts []token) error {
	op := ts
	if ts[0].kind == '%' && len(ts) > 2 && ts[1].kind == '=' {
		op = ts[2:]
	}
	if ts[0].kind == '#' && strings.HasPrefix(ts[0].text, "dbg_") { // a debug record, which is no instruction
		for _, t := range ts {
			if t.kind == 'w' && (instructions[t.text] || forbidden[t.text]) && !constantWords[t.text] {
				return fmt.Errorf("a debug record says %q", t.text)
			}
		}
		return nil
	}
	if op[0].kind != 'w' || !instructions[op[0].text] {
		return fmt.Errorf("%q is no instruction that a kernel may have", op[0].text)
	}
	call := op[0].text == "call" || op[0].text == "tail" || op[0].text == "notail"
	callee := -1
	depth := 0
	for i, t := range op {
		switch t.kind {
		case '(':
			depth++
		case ')':
			depth--
		case '}':
			if len(op) == 1 {
				return fmt.Errorf("a brace stands where an instruction should")
			}
		case '@', '%':
			if call && callee < 0 && depth == 0 && i+1 < len(op) && op[i+1].kind == '(' {
				callee = i
				if t.kind == '%' {
					return fmt.Errorf("it calls what %%%s points to: a kernel calls functions by their names", t.text)
				}
				if !c.functions[t.text] {
					return fmt.Errorf("it calls @%s, which the module has not", t.text)
				}
				continue
			}
			if t.kind == '@' && c.functions[t.text] {
				return fmt.Errorf("it takes the address of the function @%s, which no kernel may", t.text)
			}
			if t.kind == '@' && !c.globals[t.text] {
				return fmt.Errorf("it names @%s, which the module has not", t.text)
			}
		case 'w':
			if forbidden[t.text] && i > 0 {
				return fmt.Errorf("it says %q, which no kernel may", t.text)
			}
			if t.text == "call" && i > 0 && (i > 1 || op[0].text != "tail" && op[0].text != "notail") {
				return fmt.Errorf("it calls within another instruction")
			}
		case '"':
			text := i > 0 && op[i-1].kind == 'w' && op[i-1].text == "c"
			scope := i > 1 && op[i-1].kind == '(' && op[i-2].text == "syncscope"
			assumed := call && callee >= 0 && op[callee].text == "llvm.assume"
			if !text && !scope && !assumed {
				return fmt.Errorf("it says %q, which no kernel needs", t.text)
			}
		}
	}
	if call && callee < 0 {
		return fmt.Errorf("it calls no function by its name")
	}
	return nil
}
