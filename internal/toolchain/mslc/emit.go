package mslc

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/mlxc/mlxc/internal/air"
)

// Module returns the LLVM module of one kernel: the kernel, what it needs, and its metadata.
func (u *Unit) Module(kernel string) (string, error) {
	for i := range u.Kernels {
		if u.Kernels[i].Name == kernel {
			return u.module.emit(&u.Kernels[i])
		}
	}
	return "", fmt.Errorf("there is no kernel %q among %d", kernel, len(u.Kernels))
}

var (
	// external is a function constant as the rewriter declares it.
	external = regexp.MustCompile(` = external (?:dso_local )?(?:local_unnamed_addr )?addrspace\(2\) constant (\S+), align (\d+)`)
	// target is a function's attribute that says how clang was called.
	targetAttribute = regexp.MustCompile(` "[^"]*"(="[^"]*")?`)
)

func (m *module) emit(k *air.Kernel) (string, error) {
	root := symbol(k.Name)
	needed := m.closure(root)
	var b strings.Builder
	fmt.Fprintf(&b, "source_filename = %q\n\n", k.Name)
	for _, i := range m.named {
		e := &m.entities[i]
		if strings.HasPrefix(e.text, "!llvm.dbg.cu ") || strings.HasPrefix(e.text, "!llvm.module.flags ") && m.lines() {
			for _, r := range e.refs {
				for name := range m.closure(r) {
					needed[name] = true
				}
			}
		}
	}
	// A function constant that only a condition of an argument mentions is needed as well.
	constants := map[string]functionConstant{}
	for _, c := range k.Constants {
		for _, d := range m.constants {
			if d.index == c.Index && d.name == c.Name {
				constants[symbol(d.symbol)] = d
			}
		}
	}
	if err := m.check(needed); err != nil {
		return "", fmt.Errorf("kernel %s: %w", k.Name, err)
	}
	for _, e := range m.entities {
		if !needed[e.name] {
			continue
		}
		if _, ok := constants[e.name]; ok {
			g := external.FindStringSubmatch(e.text)
			if g == nil {
				return "", fmt.Errorf("kernel %s: the function constant %q is none", k.Name, clip(e.text))
			}
			fmt.Fprintf(&b, "%s = internal addrspace(2) externally_initialized constant %s undef, section \"air.fc_initializer\", align %s\n", e.name, g[1], g[2])
			delete(constants, e.name)
			continue
		}
		text := e.text
		switch {
		case strings.HasPrefix(text, "attributes #"):
			text = attributes(text)
		case strings.HasPrefix(text, "$"):
			continue
		case e.name != root:
			text = private(text)
		}
		b.WriteString(text)
		b.WriteString("\n")
	}
	for _, c := range m.constants {
		if _, ok := constants[symbol(c.symbol)]; ok {
			fmt.Fprintf(&b, "%s = internal addrspace(2) externally_initialized constant %s undef, section \"air.fc_initializer\"\n", symbol(c.symbol), llvmScalar[mangled[c.typ]])
		}
	}
	for _, i := range m.named {
		if e := &m.entities[i]; m.lines() && (strings.HasPrefix(e.text, "!llvm.dbg.cu ") || strings.HasPrefix(e.text, "!llvm.module.flags ")) {
			b.WriteString(e.text + "\n")
		}
	}
	m.metadataOf(&b, k, root)
	return b.String(), nil
}

// linkage matches what a definition says of other modules that may have it as well.
var linkage = regexp.MustCompile(`^(define|@\S+ =) (?:weak_odr|linkonce_odr|weak|linkonce|internal) `)

// inComdat matches the group of definitions that a linker keeps one of.
var inComdat = regexp.MustCompile(`,? comdat(?:\([^)]*\))?`)

// private makes a definition one of this module alone: there is no other.
func private(text string) string {
	header, body, _ := strings.Cut(text, "\n")
	if !linkage.MatchString(header) {
		return text
	}
	header = linkage.ReplaceAllString(header, "$1 internal ")
	header = inComdat.ReplaceAllString(strings.Replace(header, " dso_local ", " ", 1), "")
	if body == "" {
		return header
	}
	return header + "\n" + body
}

// llvmScalar are LLVM's types of function constants, by their letters.
var llvmScalar = map[string]string{
	"b": "i8", "c": "i8", "h": "i8", "s": "i16", "t": "i16", "i": "i32", "j": "i32", "l": "i64", "m": "i64", "Dh": "half", "f": "float",
}

// lines reports whether the module has debug information.
func (m *module) lines() bool {
	for _, i := range m.named {
		if strings.HasPrefix(m.entities[i].text, "!llvm.dbg.cu ") {
			return true
		}
	}
	return false
}

// attributes leaves out what belongs to the target that clang compiled for, and "convergent" where
// a function does nothing but compute a value: clang says it of every function whose body it does
// not see.
func attributes(line string) string {
	line = targetAttribute.ReplaceAllString(line, "")
	if strings.Contains(line, " memory(none)") {
		line = strings.Replace(line, " convergent", "", 1)
	}
	return line
}

// place is that of an instruction.
var place = regexp.MustCompile(`, !dbg (![0-9]+)`)

// lineOf says in which line of the source an instruction stands, the first of which a text holds, if places are known.
func (m *module) lineOf(is func(string) bool) string {
	for _, e := range m.entities {
		if !strings.HasPrefix(e.text, "define ") {
			continue
		}
		for l := range strings.Lines(e.text) {
			if !is(l) {
				continue
			}
			if at := place.FindStringSubmatch(l); at != nil && m.get(at[1]) != nil {
				if _, rest, ok := strings.Cut(m.get(at[1]).text, "line: "); ok {
					return "line " + rest[:strings.IndexAny(rest+",", ",)")] + ": "
				}
			}
			return ""
		}
	}
	return ""
}

// check refuses what a kernel cannot have: functions that nobody defines, recursion, calls through
// pointers.
func (m *module) check(needed map[string]bool) error {
	for _, e := range m.entities {
		if !needed[e.name] {
			continue
		}
		switch {
		case strings.HasPrefix(e.text, "declare ") && !strings.HasPrefix(e.name, "@air.") && !strings.HasPrefix(e.name, "@llvm."):
			return fmt.Errorf("%sit calls %s, which nothing defines", m.lineOf(func(l string) bool { return strings.Contains(l, e.name+"(") }), e.name[1:])
		case strings.HasPrefix(e.name, "@air.atomic.generic.") || strings.HasPrefix(e.name, "@air.simdgroup_matrix_8x8_") && strings.Contains(e.name, ".p0"):
			return fmt.Errorf("it calls %s with a pointer whose address space does not show", e.name[1:])
		case strings.HasPrefix(e.text, "define ") && hasLine(e.text, "call", indirect):
			return fmt.Errorf("%sit calls a function through a pointer", m.lineOf(indirect.MatchString))
		case variable.MatchString(e.text) && !strings.Contains(e.text, " addrspace(3) global "):
			return fmt.Errorf("the value of %s is computed when a program starts, or changed: a constant of program scope has a constant value", e.name[1:])
		case strings.HasPrefix(e.text, "define ") && hasLine(e.text, "double", double):
			return fmt.Errorf("it computes with double, which Metal does not have")
		}
	}
	return m.recursion(needed)
}

// hasLine reports whether an expression matches a line of text. All lines that it matches contain the word, which is found
// much faster.
func hasLine(text, word string, line *regexp.Regexp) bool {
	if !strings.Contains(text, word) {
		return false
	}
	for l := range strings.Lines(text) {
		if strings.Contains(l, word) && line.MatchString(l) {
			return true
		}
	}
	return false
}

var indirect = regexp.MustCompile(`^[^;"]*\bcall\b[^@"\n]* %[\w.]+\(`)

// variable matches variables of program scope that are no constants. (Those in address space 3 are
// threadgroup memory.)
var variable = regexp.MustCompile(`^@\S+ = [^"]*?\bglobal `)

var double = regexp.MustCompile(`^[^;"]*[ <]double[ >]`)

// recursion looks for a function that calls itself, by whatever way.
func (m *module) recursion(needed map[string]bool) error {
	const (
		active = 1 + iota
		done
	)
	state := map[string]int{}
	var visit func(name string) error
	visit = func(name string) error {
		e := m.get(name)
		if e == nil || !strings.HasPrefix(e.text, "define ") || state[name] == done {
			return nil
		}
		if state[name] == active {
			return fmt.Errorf("the function %s is recursive", name[1:])
		}
		state[name] = active
		for _, r := range e.refs {
			if r != name || strings.Count(e.text, name+"(") > 1 {
				if err := visit(r); err != nil {
					return err
				}
			}
		}
		state[name] = done
		return nil
	}
	for _, e := range m.entities {
		if needed[e.name] {
			if err := visit(e.name); err != nil {
				return err
			}
		}
	}
	return nil
}

// metadataOf writes the named metadata of AIR.
func (m *module) metadataOf(b *strings.Builder, k *air.Kernel, root string) {
	next := m.metadata
	node := func(format string, args ...any) string {
		name := fmt.Sprintf("!%d", next)
		next++
		fmt.Fprintf(b, "%s = !{%s}\n", name, fmt.Sprintf(format, args...))
		return name
	}
	names := map[string]functionConstant{}
	for _, c := range m.constants {
		names[c.name] = c
	}
	var args []string
	for i, a := range k.Args {
		args = append(args, node("%s", argumentNode(node, names, i, a)))
	}
	empty := node("")
	kernel := fmt.Sprintf("ptr %s, %s, %s", root, empty, node("%s", strings.Join(args, ", ")))
	if k.MaxThreadgroup > 0 {
		kernel += ", " + node(`!"air.max_work_group_size", i32 %d`, k.MaxThreadgroup)
	}
	fmt.Fprintf(b, "!air.kernel = !{%s}\n", node("%s", kernel))
	if len(k.Constants) > 0 {
		var list []string
		for _, c := range k.Constants {
			list = append(list, node(`ptr addrspace(2) %s, !%s, !%s, i32 %d, i1 true`, symbol(names[c.Name].symbol), quote(c.Type), quote(c.Name), c.Index))
		}
		fmt.Fprintf(b, "!air.function_constants = !{%s}\n", strings.Join(list, ", "))
	}
	fmt.Fprintf(b, "!air.version = !{%s}\n", node("i32 %d, i32 %d, i32 %d", k.AIR.Major, k.AIR.Minor, k.AIR.Patch))
	fmt.Fprintf(b, "!air.language_version = !{%s}\n", node(`!"Metal", i32 %d, i32 %d, i32 %d`, k.Metal.Major, k.Metal.Minor, k.Metal.Patch))
	var options []string
	for _, o := range k.Options {
		options = append(options, node("!%s", quote("air.compile."+o)))
	}
	fmt.Fprintf(b, "!air.compile_options = !{%s}\n", strings.Join(options, ", "))
}

// argumentNode is what AIR's metadata says of an argument.
func argumentNode(node func(string, ...any) string, names map[string]functionConstant, i int, a air.Arg) string {
	var w []string
	add := func(format string, args ...any) { w = append(w, fmt.Sprintf(format, args...)) }
	add("i32 %d", i)
	if a.If != "" {
		add(`!"air.function_constant", %s`, node(`ptr addrspace(2) %s, !%s, !%s`, symbol(names[a.If].symbol), quote(names[a.If].typ), quote(a.If)))
	}
	if a.Attribute != "" {
		add("!%s", quote("air."+a.Attribute))
	} else {
		add(`!"air.buffer"`)
		if a.Size > 0 {
			add(`!"air.buffer_size", i32 %d`, a.Size)
		}
		access := map[air.Access]string{air.Read: "air.read", air.Write: "air.write", air.ReadWrite: "air.read_write"}[a.Access]
		add(`!"air.location_index", i32 %d, i32 1, !%s, !"air.address_space", i32 %d`, a.Index, quote(access), a.Space)
		if len(a.Fields) > 0 {
			add(`!"air.struct_type_info", %s`, fieldsNode(node, a.Fields))
		}
		add(`!"air.arg_type_size", i32 %d, !"air.arg_type_align_size", i32 %d`, a.TypeSize, a.TypeAlign)
	}
	add(`!"air.arg_type_name", !%s, !"air.arg_name", !%s`, quote(a.Type), quote(a.Name))
	if a.Unused {
		add(`!"air.arg_unused"`)
	}
	return strings.Join(w, ", ")
}

// fieldsNode writes the node of a struct's fields.
func fieldsNode(node func(string, ...any) string, fields []air.Field) string {
	var w []string
	for _, f := range fields {
		if len(f.Fields) > 0 {
			w = append(w, `!"air.struct_type_info"`, fieldsNode(node, f.Fields))
		}
		w = append(w, fmt.Sprintf("i32 %d, i32 %d, i32 %d, !%s, !%s", f.Offset, f.Size, f.Array, quote(f.Type), quote(f.Name)))
	}
	return node("%s", strings.Join(w, ", "))
}

// quote writes a string as LLVM does.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c > '~' {
			fmt.Fprintf(&b, `\%02X`, c)
		} else {
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
