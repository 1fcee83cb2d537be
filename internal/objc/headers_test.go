package objc_test

import (
	"fmt"
	"go/constant"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/objc"
)

// headers are the declarations in Apple's C++ headers (scripts/fetch-metallib.sh).
type headers struct {
	methods   map[string][]declared // by class and selector: "MTLBuffer length"
	constants map[string]uint64     // by name, with the prefix MTL or NS
	functions string                // the text of all headers, without comments
}

// declared is the types of a method, by its inline definition, and whether it is a class method.
type declared struct {
	types  string
	static bool
}

var (
	comments  = regexp.MustCompile(`//[^\n]*|(?s:/\*.*?\*/)`)
	selectors = regexp.MustCompile(`_(?:MTL|NS)_PRIVATE_DEF_SEL\(\s*(\w+)\s*,\s*"([^"]+)"\s*\)`)
	// A definition: result, namespace, class, method, arguments, body.
	definitions = regexp.MustCompile(`_(MTL|NS)_INLINE\s+([^;{}()]*?)\b(MTL|NS)::(\w+)(?:<[^>]*>)?::(\w+)\(((?:[^(){}]|\([^(){}]*\))*)\)\s*(?:const)?\s*\{([^}]*)\}`)
	sent        = regexp.MustCompile(`_(?:MTL|NS)_PRIVATE_SEL\((\w+)\)`)
	enums       = regexp.MustCompile(`_(MTL|NS)_(?:ENUM|OPTIONS)\([^)]*\)\s*\{([^}]*)\}`)
)

// kindOf returns the kind in which a C++ type is passed.
func kindOf(typ string) objc.Kind {
	typ = strings.TrimSpace(strings.NewReplacer("const ", "", "class ", "").Replace(typ))
	switch {
	case typ == "void":
		return objc.Void
	case strings.Contains(typ, "^"), strings.HasSuffix(typ, "Handler"), strings.HasSuffix(typ, "Block"):
		return objc.Block
	case typ == "bool":
		return objc.Bool
	case typ == "double", typ == "CFTimeInterval":
		return objc.Double
	case typ == "SEL":
		return objc.SEL
	case typ == "char*":
		return objc.CString
	case strings.HasSuffix(typ, "**"), strings.HasSuffix(typ, "[]"), strings.HasSuffix(typ, "* const*"), strings.HasSuffix(typ, "*const*"),
		typ == "void*", typ == "MTL::Timestamp*", strings.HasPrefix(typ, "MTL::Autoreleased"):
		return objc.Pointer
	case strings.HasSuffix(typ, "*"):
		return objc.Object
	case typ == "NS::Range":
		return objc.Range
	case typ == "MTL::Size", typ == "MTL::Region":
		return objc.Struct
	case typ == "NS::ErrorDomain":
		return objc.Object // an NSString
	}
	return objc.Integer
}

// readHeaders parses the headers' methods and constants.
func readHeaders(t *testing.T) *headers {
	dir := filepath.Join("..", "..", "out", "metal-cpp")
	var files []string
	for _, part := range []string{"Foundation", "Metal"} {
		more, err := filepath.Glob(filepath.Join(dir, part, "*.hpp"))
		require.NoError(t, err)
		files = append(files, more...)
	}
	require.NotEmpty(t, files, "Apple's headers are missing: run scripts/fetch-metallib.sh")
	h := &headers{methods: map[string][]declared{}, constants: map[string]uint64{}}
	names := map[string]string{}
	var all strings.Builder
	for _, f := range files {
		text, err := os.ReadFile(f)
		require.NoError(t, err)
		all.Write(comments.ReplaceAll(text, nil))
	}
	h.functions = all.String()
	for _, m := range selectors.FindAllStringSubmatch(h.functions, -1) {
		names[m[1]] = m[2]
	}
	for _, m := range definitions.FindAllStringSubmatch(h.functions, -1) {
		result, space, class, arguments, body := m[2], m[3], m[4], m[6], m[7]
		s := sent.FindStringSubmatch(body)
		if s == nil || names[s[1]] == "" {
			continue
		}
		if class == "Referencing" || class == "Copying" {
			class = "Object"
		}
		d := declared{types: string(kindOf(result)), static: strings.Contains(body, "_PRIVATE_CLS(")}
		for _, a := range split(arguments) {
			a = strings.TrimSpace(a)
			if i := strings.LastIndexAny(a, " *&"); i >= 0 && !strings.Contains(a, "^") {
				name := a[i+1:]
				a = a[:i+1]
				if strings.HasSuffix(name, "[]") {
					a += "[]"
				}
			}
			d.types += string(kindOf(a))
		}
		key := space + class + " " + names[s[1]]
		if space == "MTL" {
			key = "MTL" + class + " " + names[s[1]]
		}
		h.methods[key] = append(h.methods[key], d)
	}
	for _, m := range enums.FindAllStringSubmatch(h.functions, -1) {
		for _, line := range strings.Split(m[2], ",") {
			name, value, ok := strings.Cut(line, "=")
			if !ok {
				continue
			}
			v, err := types.Eval(token.NewFileSet(), nil, token.NoPos, strings.TrimSpace(value))
			if err != nil || v.Value == nil || v.Value.Kind() != constant.Int {
				continue // an expression of other constants
			}
			n, exact := constant.Uint64Val(v.Value)
			if exact {
				h.constants[m[1]+strings.TrimSpace(name)] = n
			}
		}
	}
	return h
}

// split splits a list of arguments at its commas, except those in parentheses or angle brackets.
func split(list string) (out []string) {
	depth, from := 0, 0
	for i, c := range list {
		switch {
		case c == '(' || c == '<':
			depth++
		case c == ')' || c == '>':
			depth--
		case c == ',' && depth == 0:
			out, from = append(out, list[from:i]), i+1
		}
	}
	if strings.TrimSpace(list[from:]) != "" {
		out = append(out, list[from:])
	}
	return out
}

// unpublished are methods of the table that the headers do not send, or send otherwise, with the types that
// they are known to have.
var unpublished = map[string]declared{
	"NSObject respondsToSelector:": {types: "B:"},
	"NSObject alloc":               {types: "@", static: true},
	"NSObject retain":              {types: "@"},
	// The C++ headers send mutableBytes, a selector that only NSMutableData has: an NSData does not know it,
	// which would end the process.
	"NSData bytes": {types: "^"},
}

// wrong says how a method differs from the headers, "" if it does not.
func (h *headers) wrong(m *objc.Method) string {
	key := m.Class + " " + m.Selector
	list := h.methods[key]
	if u, ok := unpublished[key]; ok {
		list = []declared{u}
	}
	switch {
	case len(list) == 0:
		return "is in no header"
	case !slices.Contains(list, declared{m.Types, m.Static}):
		return fmt.Sprintf("is %q, static %v; the headers have %v", m.Types, m.Static, list)
	case len(m.Args()) != strings.Count(m.Selector, ":"):
		return "has not as many arguments as its selector"
	case m.Registers() > 8:
		// Apple's arm64 lays out arguments on the stack in its own way.
		return "passes arguments on the stack"
	}
	return ""
}

// TestTable compares every method, constant and function with Apple's headers.
func TestTable(t *testing.T) {
	h := readHeaders(t)
	require.Greater(t, len(h.methods), 1500)
	require.Greater(t, len(h.constants), 500)
	seen := map[string]bool{}
	for _, m := range objc.Table {
		assert.Empty(t, h.wrong(m), "%v", m)
		assert.False(t, seen[m.String()], "%v stands twice", m)
		seen[m.String()] = true
	}
	for _, c := range objc.Constants {
		value, ok := h.constants[c.Name]
		if assert.True(t, ok, "%s is in no header", c.Name) {
			assert.Equal(t, value, c.Value, c.Name)
		}
	}
	for _, f := range objc.Functions {
		if strings.HasPrefix(f, "MTL") {
			assert.Contains(t, h.functions, fmt.Sprintf(" %s();", f))
		}
	}
	t.Logf("%d methods, %d constants", len(objc.Table), len(objc.Constants))
}

// TestWrongTable: TestTable would notice an entry with another kind in any place, with one more argument, or
// with another selector or class.
func TestWrongTable(t *testing.T) {
	h := readHeaders(t)
	for _, m := range objc.Table {
		var wrong []objc.Method
		for i := range m.Types {
			for _, k := range "v@QBd*^R" {
				if types := m.Types[:i] + string(k) + m.Types[i+1:]; types != m.Types {
					wrong = append(wrong, objc.Method{Class: m.Class, Selector: m.Selector, Types: types, Static: m.Static})
				}
			}
		}
		wrong = append(wrong,
			objc.Method{Class: m.Class, Selector: m.Selector, Types: m.Types + "Q", Static: m.Static},
			objc.Method{Class: m.Class, Selector: m.Selector, Types: m.Types, Static: !m.Static},
			objc.Method{Class: m.Class, Selector: m.Selector + "x", Types: m.Types, Static: m.Static},
			objc.Method{Class: "MTLTexture", Selector: m.Selector, Types: m.Types, Static: m.Static})
		for i := range wrong {
			if m.Class == "MTLResource" && wrong[i].Class == "MTLTexture" {
				continue
			}
			assert.NotEmpty(t, h.wrong(&wrong[i]), "%v with %q", &wrong[i], wrong[i].Types)
		}
	}
}

// TestOwnership: Owned is true for exactly those methods whose selector says so.
func TestOwnership(t *testing.T) {
	owned := 0
	for _, m := range objc.Table {
		want := m.Result() == objc.Object && regexp.MustCompile(`^(new[A-Z]|alloc$|init$)`).MatchString(m.Selector)
		assert.Equal(t, want, m.Owned(), "%v", m)
		if want {
			owned++
		}
	}
	assert.Greater(t, owned, 10)
}
