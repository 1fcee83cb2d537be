package ptxwrite

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/mlxc/mlxc/internal/air/nvptx"
)

// Text is the body of an entry while it is written: lines, and the registers that they use, which have the names of their
// kinds: p (predicates), rs (16 bits), r (32 bits), rd (64 bits), f (f32 that wgmma adds to).
type Text struct {
	next   map[string]int // by kind of register, the next number
	b      strings.Builder
	labels int
}

// kinds are the kinds of registers, with their types.
var kinds = []struct{ name, typ string }{{"p", "pred"}, {"rs", "b16"}, {"r", "b32"}, {"rd", "b64"}, {"f", "f32"}}

// Line writes an instruction.
func (t *Text) Line(format string, args ...any) {
	t.b.WriteByte('\t')
	fmt.Fprintf(&t.b, format, args...)
	t.b.WriteString(";\n")
}

// New returns a new register.
func (t *Text) New(kind string) string {
	if t.next == nil {
		t.next = map[string]int{}
		for _, k := range kinds {
			t.next[k.name] = 1
		}
	}
	n := t.next[kind]
	t.next[kind]++
	return "%" + kind + strconv.Itoa(n)
}

// Make writes an instruction, and returns its result, a new register.
func (t *Text) Make(kind, instruction, format string, args ...any) string {
	r := t.New(kind)
	t.Line("%s \t%s, %s", instruction, r, fmt.Sprintf(format, args...))
	return r
}

// Label returns a new label, and Mark puts one where the text ends so far.
func (t *Text) Label() string {
	t.labels++
	return fmt.Sprint("$L__BB0_", t.labels)
}

// Mark puts a label where the text ends so far.
func (t *Text) Mark(label string) { t.b.WriteString(label + ":\n") }

// Body returns the declarations of registers, and the lines.
func (t *Text) Body() string {
	var b strings.Builder
	for _, k := range kinds {
		if t.next[k.name] > 1 {
			fmt.Fprintf(&b, "\t.reg .%s \t%%%s<%d>;\n", k.typ, k.name, t.next[k.name])
		}
	}
	return b.String() + "\n" + t.b.String()
}

// Parameter is the place of a parameter of an entry.
func Parameter(i int) string { return fmt.Sprintf("[%s_param_%d]", nvptx.Entry, i) }

// Number is a float as PTX writes it.
func Number(v float32) string { return fmt.Sprintf("0f%08X", math.Float32bits(v)) }

var (
	register  = regexp.MustCompile(`%(rs|rd|r|p)([0-9]+)\b`)
	labelName = regexp.MustCompile(`\$L__[A-Z0-9_]+`)
)

// Call inlines a function of a float (exp, sin, …), with registers and labels of its own, and returns its result.
func (t *Text) Call(name, in string) string {
	f := bodies()[name]
	out := t.Make("r", "mov.b32", "%s", in)
	base := map[string]int{}
	for _, kind := range []string{"p", "rs", "r", "rd"} {
		base[kind] = t.next[kind]
		t.next[kind] += f.registers[kind]
	}
	labels := map[string]string{}
	for _, l := range f.lines {
		l = register.ReplaceAllStringFunc(l, func(r string) string {
			m := register.FindStringSubmatch(r)
			n, _ := strconv.Atoi(m[2])
			return fmt.Sprintf("%%%s%d", m[1], base[m[1]]+n)
		})
		l = labelName.ReplaceAllStringFunc(l, func(n string) string {
			if labels[n] == "" {
				labels[n] = t.Label()
			}
			return labels[n]
		})
		l = strings.ReplaceAll(strings.ReplaceAll(l, "%out", out), "%in", in)
		if !strings.HasSuffix(l, ":") {
			l = "\t" + l
		}
		t.b.WriteString(l + "\n")
	}
	return out
}
