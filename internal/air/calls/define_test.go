package calls

import (
	"bytes"
	"debug/elf"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/testing/sample"
)

// targets are what the bodies are compiled for, and how.
var targets = []struct {
	name   string
	target Target
	args   []string
}{
	{"x86-64", Host, []string{"--target=x86_64-unknown-linux-gnu", "-march=x86-64-v3", "-O2", "-c"}},
	{"arm64", Host, []string{"--target=aarch64-unknown-linux-gnu", "-O2", "-c"}},
	{"ptx", PTX, []string{"--target=nvptx64-nvidia-cuda", "-march=sm_90", "--cuda-feature=+ptx83", "-O2", "-S"}},
}

// known are the functions that a shipped library declares.
func known(t testing.TB) []Function {
	data, err := os.ReadFile("testdata/mlx.txt")
	require.NoError(t, err)
	var fs []Function
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		result, rest, ok := strings.Cut(strings.TrimSpace(line), " @")
		require.True(t, ok, line)
		name, params, ok := strings.Cut(strings.TrimSuffix(rest, ")"), "(")
		require.True(t, ok, line)
		f := Function{Name: name, Result: result}
		if params != "" {
			f.Params = strings.Split(params, ", ")
		}
		fs = append(fs, f)
	}
	return fs
}

// families are functions of every family, for all its types.
func families() []Function {
	var fs []Function
	add := func(full string, n *name, signature string) {
		f := Function{Name: full, Result: n.letter(signature[0]).String()}
		for _, c := range []byte(signature[1:]) {
			f.Params = append(f.Params, n.letter(c).String())
		}
		fs = append(fs, f)
	}
	lanes := func(elems ...string) (ts []typ) {
		for _, e := range elems {
			for _, l := range []int{0, 2, 3, 4} {
				ts = append(ts, typ{elem: e, lanes: l})
			}
		}
		return ts
	}
	for _, op := range slices.Sorted(maps.Keys(floatFunctions)) {
		f := floatFunctions[op]
		for _, t := range lanes("float", "half", "bfloat") {
			if op == "cross" && t.lanes != 3 {
				continue
			}
			add("air."+op+"."+t.suffix(), &name{t: t}, f.signature)
			if t.elem == "float" && t.lanes == 0 {
				add("air.fast_"+op+"."+t.suffix(), &name{t: t}, f.signature)
			}
		}
	}
	for _, op := range slices.Sorted(maps.Keys(integerFunctions)) {
		f := integerFunctions[op]
		elems := []string{"i8", "i16", "i32", "i64"}
		if op == "all" || op == "any" {
			elems = []string{"i1"}
		}
		for _, t := range lanes(elems...) {
			if f.kind == patterns {
				add("air."+op+"."+t.suffix(), &name{t: t}, f.signature)
				continue
			}
			add("air."+op+".s."+t.suffix(), &name{t: t}, f.signature)
			add("air."+op+".u."+t.suffix(), &name{t: t}, f.signature)
		}
	}
	type end struct {
		kind byte
		t    typ
	}
	var ends []end
	for _, t := range lanes("i1", "i8", "i16", "i32", "i64") {
		ends = append(ends, end{'u', t})
		if t.elem != "i1" {
			ends = append(ends, end{'s', t})
		}
	}
	for _, t := range lanes("float", "half", "bfloat") {
		ends = append(ends, end{'f', t})
	}
	for _, to := range ends {
		for _, from := range ends {
			if to.t.lanes == from.t.lanes {
				fs = append(fs, Function{fmt.Sprintf("air.convert.%c.%s.%c.%s", to.kind, to.t.suffix(), from.kind, from.t.suffix()), to.t.String(), []string{from.t.String()}})
			}
		}
	}
	for _, format := range slices.Sorted(maps.Keys(packings)) {
		p := packings[format]
		t := typ{lanes: len(p.fields)}
		if t.lanes == 1 {
			t.lanes = 0
		}
		for _, e := range []string{"float", "half"} {
			t := t.of(e)
			fs = append(fs,
				Function{"air.pack." + format + "." + t.suffix(), p.word, []string{t.String()}},
				Function{"air.unpack." + format + "." + t.suffix(), t.String(), []string{p.word}})
		}
	}
	for _, space := range []string{"global", "local", "generic"} {
		pointer := map[string]string{"global": "ptr addrspace(1)", "local": "ptr addrspace(3)", "generic": "ptr"}[space]
		atomic := func(what, result string, params ...string) {
			fs = append(fs, Function{"air.atomic." + space + "." + what, result, append([]string{pointer}, params...)})
		}
		for _, t := range []typ{int32s, {elem: "i64"}, float32s} {
			e, s := t.String(), t.suffix()
			atomic("load."+s, e, "i32", "i32", "i1")
			atomic("store."+s, "void", e, "i32", "i32", "i1")
			atomic("xchg."+s, e, e, "i32", "i32", "i1")
			atomic("cmpxchg.weak."+s, e, "ptr", e, "i32", "i32", "i32", "i1")
			if t.float() {
				atomic("add."+s, e, e, "i32", "i32", "i1")
				atomic("sub."+s, e, e, "i32", "i32", "i1")
				continue
			}
			for _, what := range []string{"add", "sub", "min", "max", "and", "or", "xor"} {
				atomic(what+".s."+s, e, e, "i32", "i32", "i1")
				atomic(what+".u."+s, e, e, "i32", "i32", "i1")
			}
		}
	}
	return append(fs,
		Function{"air.atomic.fence", "void", []string{"i32", "i32", "i32"}},
		Function{"air.get_simdgroup_size.i16", "i16", nil},
		Function{"air.get_simdgroup_size.i32", "i32", nil},
		Function{"air.is_uniform.f32", "i1", []string{"float"}},
		Function{"air.normalize_function_constant_predicate.i1", "i1", []string{"i1"}})
}

// called makes the definitions reachable: each has a function that calls it and is not
// inlined away.
func called(t testing.TB, fs []Function, target Target) string {
	t.Helper()
	text, err := Module(fs, target)
	require.NoError(t, err)
	var b strings.Builder
	b.WriteString(text)
	for i, f := range fs {
		var params, operands []string
		for j, p := range f.Params {
			ty, err := parseType(p)
			require.NoError(t, err)
			params = append(params, fmt.Sprintf("%s %%p%d", ty.written(target), j))
		}
		operands = params
		fmt.Fprintf(&b, "define %s @use%d(%s) {\n", f.Result, i, strings.Join(params, ", "))
		if f.Result == "void" {
			fmt.Fprintf(&b, "  call void @%s(%s)\n  ret void\n}\n", f.Name, strings.Join(operands, ", "))
		} else {
			fmt.Fprintf(&b, "  %%r = call %s @%s(%s)\n  ret %s %%r\n}\n", f.Result, f.Name, strings.Join(operands, ", "), f.Result)
		}
	}
	return b.String()
}

// TestKnown compiles a body for every function that the shipped libraries call and that
// exchanges nothing.
func TestKnown(t *testing.T) {
	var fs []Function
	exchange := 0
	for _, f := range known(t) {
		if Exchanges(f.Name) {
			exchange++
			_, err := Define(f, Host)
			assert.ErrorContains(t, err, f.Name)
			continue
		}
		fs = append(fs, f)
	}
	assert.Equal(t, 147, len(fs))
	assert.Equal(t, 119, exchange)
	c := compiler(t)
	for _, target := range targets {
		t.Run(target.name, func(t *testing.T) {
			assert.Empty(t, missing(external(t, compiles(t, c, called(t, fs, target.target), target.args...))))
		})
	}
}

// TestFamilies does so for all types of all families, with vectors of one length each.
func TestFamilies(t *testing.T) {
	sample.Long(t)
	var fs []Function
	for i, f := range families() {
		if !sample.Takes(t.Name(), i, 4) {
			continue
		}
		if n, err := parseName(f.Name); assert.NoError(t, err) && (n.t.lanes == 0 || n.t.lanes == 2+i%3) {
			fs = append(fs, f)
		}
	}
	c := compiler(t)
	for _, target := range targets {
		t.Run(target.name, func(t *testing.T) {
			args := append([]string(nil), target.args...)
			for i := range args {
				if args[i] == "-O2" {
					args[i] = "-O1"
				}
			}
			assert.Empty(t, missing(external(t, compiles(t, c, called(t, fs, target.target), args...))))
		})
	}
}

// external are the functions that compiled code leaves to a library.
func external(t testing.TB, code []byte) []string {
	if !bytes.HasPrefix(code, []byte("\x7fELF")) {
		return regexp.MustCompile(`\.extern .*`).FindAllString(string(code), -1)
	}
	f, err := elf.NewFile(bytes.NewReader(code))
	require.NoError(t, err)
	symbols, err := f.Symbols()
	require.NoError(t, err)
	var names []string
	for _, s := range symbols {
		if s.Section == elf.SHN_UNDEF && s.Name != "" {
			names = append(names, s.Name)
		}
	}
	return names
}

// missing are those that Runtime has not either. Which LLVM calls for bfloats depends on its
// version.
func missing(names []string) []string {
	return slices.DeleteFunc(names, func(name string) bool { return strings.Contains(Runtime(), "@"+name+"(") })
}
