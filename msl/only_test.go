package msl_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/msl"
)

// instance is an instance that Only has kept, on a line of its own.
var instance = regexp.MustCompile(`(?m)^(?:\s*;?\s*)template ?\[ ?\[ ?host_name ?\( ?((?:"[^"]*" ?)+)\)`)

func hosts(text string) (out []string) {
	for _, m := range instance.FindAllStringSubmatch(regexp.MustCompile(`(?m)^#define(.*\\\n)*.*$`).ReplaceAllString(text, ""), -1) {
		out = append(out, regexp.MustCompile(`"\s*"|"| $`).ReplaceAllString(m[1], ""))
	}
	return out
}

// TestInstances: the sources of the library have the kernels that they declare.
func TestInstances(t *testing.T) {
	declared := map[string][]string{}
	for _, f := range msl.Functions() {
		file := msl.Declarations(f)[0].File
		declared[file] = append(declared[file], f)
	}
	anywhere := regexp.MustCompile(`host_name ?\( ?((?:"[^"]*" ?)+)\)`)
	for file, functions := range declared {
		if _, err := os.Stat(file); err != nil {
			continue // registered by another test
		}
		text, err := msl.Source(file)
		require.NoError(t, err)
		found := map[string]bool{}
		for _, m := range anywhere.FindAllStringSubmatch(msl.Only(text, functions), -1) {
			found[regexp.MustCompile(`"\s*"|"| $`).ReplaceAllString(m[1], "")] = true
		}
		for _, f := range functions {
			assert.True(t, found[f] || strings.Contains(text, " "+f+"("), "%s: %s", file, f)
		}
	}
}

// TestOnlyOne: each kernel of each source of the library can be kept alone.
func TestOnlyOne(t *testing.T) {
	family := func(f string) string { return msl.Declarations(f)[0].Family() }
	for _, f := range sample.Kernels(t, t.Name(), msl.Functions(), family) {
		file := msl.Declarations(f)[0].File
		if _, err := os.Stat(file); err != nil {
			continue // registered by another test
		}
		text, err := msl.Source(file)
		require.NoError(t, err)
		some := msl.Only(text, []string{f})
		if regexp.MustCompile(`(?m)^\[\[host_name\("` + regexp.QuoteMeta(f) + `"\)\]\]`).MatchString(text) { // no instance of a template: it is always kept
			require.Empty(t, hosts(some), file)
			require.Contains(t, some, `"`+f+`"`, file)
		} else {
			require.Equal(t, []string{f}, hosts(some), file)
		}
		require.Equal(t, strings.Count(text, "\n"), strings.Count(some, "\n"))
	}
}

// TestOnlyLeaves: statements that are no instances, or cannot be parsed, are kept.
func TestOnlyLeaves(t *testing.T) {
	one := "template [[host_name(\"a\")]] [[kernel]] void f<float>();\n"
	for _, c := range []struct{ name, text, want string }{
		{"an instance", one, "\n"},
		{"of two on a line", "int x; " + one, "int x; \n"},
		{"in a comment", "// " + one + "/* " + one + "*/\n", ""},
		{"in a text", `constant char x[] = "template [[host_name(\"a\")]] g;";` + "\n", ""},
		{"in braces", "namespace n {\n" + one + "}\n", ""},
		{"behind a body", "void g() { if (x) { } }\n" + one, "void g() { if (x) { } }\n\n"},
		{"a specialization", "template <> [[host_name(\"a\")]] [[kernel]] void f<float>() {}\n", ""},
		{"without a name", "template void g<float>();\n", ""},
		{"with a name that is computed", "template [[host_name(NAME)]] [[kernel]] void f<float>();\n", ""},
		{"in a conditional", "#ifdef X\n" + one + "#endif\n", "#ifdef X\n\n#endif\n"},
		{"around a conditional", "template [[host_name(\"a\")]] [[kernel]] void f<\n#ifdef X\nfloat>();\n#else\nhalf>();\n#endif\n", ""},
		{"a macro of a conditional", "#ifdef X\n#define F(x) template [[host_name(#x)]] [[kernel]] void f<x>();\n#endif\nF(a)\n", ""},
		{"bodies that end in a conditional", "void g() {\n#ifdef X\n}\n#else\n}\n#endif\n" + one, ""},
		{"behind a conditional", "#if 0\n#else\n#endif\n" + one, "#if 0\n#else\n#endif\n\n"},
		{"in a macro", "#define F(x) template [[host_name(#x)]] [[kernel]] void f<x>();\nF(a)\nF(b);\n", "#define F(x) template [[host_name(#x)]] [[kernel]] void f<x>();\n\n\n"},
		{"of a macro, another", "#define F(x) template [[host_name(#x \"c\")]] [[kernel]] void f_##x<x>();\nF(a) F(k)\n",
			"#define F(x) template [[host_name(#x \"c\")]] [[kernel]] void f_##x<x>();\n template [ [ host_name ( \"k\" \"c\" ) ] ] [ [ kernel ] ] void f_k < k > ( ) ;\n"},
		{"of a macro, with tokens of more than one character",
			"#define F(x, y) template [[host_name(#x \"c\")]] [[kernel]] void ns::f<x, y, .5f+1.e-5f, (2>=1&&3!=4)?1<<2:0x1p-3, a::b<c<d>>>(A<T>::t);\nF(k, 1e+2)\n",
			"#define F(x, y) template [[host_name(#x \"c\")]] [[kernel]] void ns::f<x, y, .5f+1.e-5f, (2>=1&&3!=4)?1<<2:0x1p-3, a::b<c<d>>>(A<T>::t);\n" +
				"template [ [ host_name ( \"k\" \"c\" ) ] ] [ [ kernel ] ] void ns :: f < k , 1e+2 , .5f + 1.e-5f , ( 2 >= 1 && 3 != 4 ) ? 1 << 2 : 0x1p-3 , a :: b < c < d >> > ( A < T > :: t ) ;\n"},
		{"a macro that is an argument",
			"#define F(x) template [[host_name(#x \"c\")]] [[kernel]] void f<x>();\n#define EACH(m) m(a) m(k)\nEACH(F)\n",
			"#define F(x) template [[host_name(#x \"c\")]] [[kernel]] void f<x>();\n#define EACH(m) m(a) m(k)\n" +
				"template [ [ host_name ( \"k\" \"c\" ) ] ] [ [ kernel ] ] void f < k > ( ) ;\n"},
		{"a macro without parameters that is an argument",
			"#define F b\n#define G(x) template [[host_name(#x \"c\")]] [[kernel]] void f<x>();\n#define EACH(m) G(m)\nEACH(F)\n", ""},
		{"a macro that makes other things", "#define F(x) int x; template [[host_name(#x)]] [[kernel]] void f<x>();\nF(a)\n", ""},
		{"a macro of a macro that is changed", "#define F(x) template [[host_name(#x)]] [[kernel]] void f<x>();\n#undef F\n#define F(x) int x;\nF(a)\n", ""},
		{"an argument that is a macro", "#define a b\n#define G(x) template [[host_name(#x)]] [[kernel]] void f<x>();\n#define F(x) G(x)\nF(a)\n", ""},
		{"a macro that uses itself", "#define F(x) F(x)\nF(a)\n", ""},
		{"any number of arguments", "#define F(...) template [[host_name(#__VA_ARGS__)]] [[kernel]] void f<x>();\nF(a)\n", ""},
		{"macros of another file", "#include \"x.h\"\n#define F(x) template [[host_name(#x)]] [[kernel]] void f<x>();\nF(a)\n", ""},
		{"with lines that end otherwise", strings.ReplaceAll(one, "\n", "\r\n"), ""},
		{"an open comment", one + "/*", ""},
		{"an open text", one + "\"", ""},
		{"a brace too many", "}\n" + one, ""},
		{"a literal of another kind", `constant char x[] = R"(;)";` + "\n" + one, ""},
		{"no end", "template [[host_name(\"a\")]] [[kernel]] void f<float>()\n", ""},
	} {
		want := c.want
		if want == "" {
			want = c.text
		}
		assert.Equal(t, want, msl.Only(c.text, []string{"kc"}), c.name)
	}
	assert.Equal(t, one, msl.Only(one, []string{"b", "a"}))
}

// TestOnlyGrows: a macro that expands without end is left alone.
func TestOnlyGrows(t *testing.T) {
	var b strings.Builder
	b.WriteString("#define F0(x) template [[host_name(#x)]] [[kernel]] void f<x>();\n")
	for i := range 40 {
		fmt.Fprintf(&b, "#define F%d(x) F%d(x) F%d(x)\n", i+1, i, i)
	}
	b.WriteString("F40(a)\n")
	assert.Equal(t, b.String(), msl.Only(b.String(), nil))
}

// TestOnlyHostile: whatever is removed from a source, lines keep their numbers.
func TestOnlyHostile(t *testing.T) {
	text, err := msl.Source("quantized.metal")
	require.NoError(t, err)
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		from := r.IntN(len(text))
		to := from + r.IntN(min(2000, len(text)-from))
		cut := text[:from] + text[to:]
		if r.IntN(2) == 0 {
			cut = text[from:to]
		}
		some := msl.Only(cut, []string{"affine_qmv_x2_float_gs_64_b_4"})
		require.Equal(t, strings.Count(cut, "\n"), strings.Count(some, "\n"))
	}
}
