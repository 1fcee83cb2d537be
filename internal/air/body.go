package air

import (
	"fmt"
	"regexp"
	"strings"
)

// block is a basic block of a function.
type block struct {
	label string // without its colon
	lines []string
}

var (
	numberedValue = regexp.MustCompile(`%([0-9]+)\b`)
	labelLine     = regexp.MustCompile(`^("(?:[^"\\]|\\.)*"|[-a-zA-Z$._0-9]+):`)
	labelUse      = regexp.MustCompile(`label %("(?:[^"\\]|\\.)*"|[-a-zA-Z$._0-9]+)`)
	incoming      = regexp.MustCompile(`\[ (.*?), %("(?:[^"\\]|\\.)*"|[-a-zA-Z$._0-9]+) \]`)
)

// blocks cuts the body of a function, whose numbered values and labels get names (%v7 of %7),
// so that others may stand between them.
func (f *function) blocks() (out []*block) {
	unnamed := 0
	for i := range f.params {
		if numberedValue.MatchString(f.params[i].name) {
			unnamed++
		}
		f.params[i].name = numberedValue.ReplaceAllString(f.params[i].name, "%v$1")
	}
	for _, l := range f.lines {
		if l == "" || l[0] == ';' {
			continue
		}
		l = numberedValue.ReplaceAllString(l, "%v$1")
		if m := labelLine.FindStringSubmatch(l); m != nil {
			label := m[1]
			if label[0] >= '0' && label[0] <= '9' {
				label = "v" + label
			}
			out = append(out, &block{label: label})
			continue
		}
		if len(out) == 0 {
			// The first block has no label; it has the number after those of the parameters without names.
			out = append(out, &block{label: fmt.Sprint("v", unnamed)})
		}
		b := out[len(out)-1]
		b.lines = append(b.lines, l)
	}
	return out
}

// successors are the labels that a block branches to.
func (b *block) successors() (out []string) {
	for _, l := range b.lines {
		for _, m := range labelUse.FindAllStringSubmatch(l, -1) {
			out = append(out, m[1])
		}
	}
	return out
}

// retarget changes the labels that values come from in phis: of a block that was cut, they
// come from its last piece.
func retarget(blocks []*block, last map[string]string) {
	for _, b := range blocks {
		for i, l := range b.lines {
			if !strings.Contains(l, " = phi ") {
				continue
			}
			b.lines[i] = incoming.ReplaceAllStringFunc(l, func(s string) string {
				m := incoming.FindStringSubmatch(s)
				if to, ok := last[m[2]]; ok {
					return fmt.Sprintf("[ %s, %%%s ]", m[1], to)
				}
				return s
			})
		}
	}
}

// call is a call of a function air.* in a body.
type call struct {
	name   string // of the function, as it stands
	result string // the value it gives a name to, with its %; empty if none
	args   []string
	dbg    string // ", !dbg !7", or empty
}

var callLine = regexp.MustCompile(`^  (?:(%\S+) = )?(?:tail |musttail |notail )?call .*?@(` + symbol + `)\(`)

// callOf reads a line that calls one of the declared functions.
func callOf(l string, declared map[string]declaration) (call, declaration, bool) {
	if !strings.Contains(l, "@air.") && !strings.Contains(l, `@"air.`) {
		return call{}, declaration{}, false
	}
	at := callLine.FindStringSubmatchIndex(l)
	if at == nil {
		return call{}, declaration{}, false
	}
	c := call{name: l[at[4]:at[5]]}
	if at[2] >= 0 {
		c.result = l[at[2]:at[3]]
	}
	d, ok := declared[strings.Trim(c.name, `"`)]
	if !ok {
		return call{}, declaration{}, false
	}
	open := at[1] - 1
	end := matching(l, open)
	if end < 0 {
		return call{}, declaration{}, false
	}
	for i, a := range splitTop(l[open+1 : end]) {
		if i < len(d.params) {
			a = valueOf(a, d.params[i])
		}
		c.args = append(c.args, a)
	}
	if len(c.args) != len(d.params) { // clang refuses it
		return call{}, declaration{}, false
	}
	if i := strings.Index(l[end:], ", !dbg "); i >= 0 {
		c.dbg = l[end+i:]
	}
	return c, d, true
}

// valueOf is an argument without its type and attributes.
func valueOf(arg, typ string) string {
	v := strings.TrimSpace(strings.TrimPrefix(arg, typ))
	for {
		word, rest, ok := strings.Cut(v, " ")
		if !ok || !isAttribute(word) {
			return v
		}
		if word == "align" || word == "dereferenceable" {
			_, rest, _ = strings.Cut(rest, " ")
		}
		v = rest
	}
}

// isAttribute reports whether a word before the value of an argument is an attribute.
func isAttribute(word string) bool {
	switch word {
	case "noundef", "signext", "zeroext", "inreg", "nonnull", "readonly", "readnone", "writeonly", "nocapture", "noalias", "returned", "immarg", "align", "dereferenceable":
		return true
	}
	return strings.HasPrefix(word, "captures(") || strings.HasPrefix(word, "range(") || strings.HasPrefix(word, "nofpclass(")
}
