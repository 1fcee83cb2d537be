package llvm

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Block is a basic block of a function.
type Block struct {
	Label string // without its colon
	Lines []string
}

var (
	NumberedValue = regexp.MustCompile(`%([0-9]+)\b`)
	labelLine     = regexp.MustCompile(`^("(?:[^"\\]|\\.)*"|[-a-zA-Z$._0-9]+):`)
	labelUse      = regexp.MustCompile(`label %("(?:[^"\\]|\\.)*"|[-a-zA-Z$._0-9]+)`)
)

// Blocks cuts the body of a function, whose numbered values and labels get names (%v7 of %7),
// so that others may stand between them.
func (f *Function) Blocks() (out []*Block) {
	unnamed := 0
	for i := range f.Params {
		if NumberedValue.MatchString(f.Params[i].Name) {
			unnamed++
		}
		f.Params[i].Name = NumberedValue.ReplaceAllString(f.Params[i].Name, "%v$1")
	}
	for _, l := range f.Lines {
		if l == "" || l[0] == ';' {
			continue
		}
		l = NumberedValue.ReplaceAllString(l, "%v$1")
		if m := labelLine.FindStringSubmatch(l); m != nil {
			label := m[1]
			if label[0] >= '0' && label[0] <= '9' {
				label = "v" + label
			}
			out = append(out, &Block{Label: label})
			continue
		}
		if len(out) == 0 {
			// The first block has no label; it has the number after those of the parameters without names.
			out = append(out, &Block{Label: fmt.Sprint("v", unnamed)})
		}
		b := out[len(out)-1]
		b.Lines = append(b.Lines, l)
	}
	return out
}

// Successors are the labels that a block branches to.
func (b *Block) Successors() (out []string) {
	for _, l := range b.Lines {
		for _, m := range labelUse.FindAllStringSubmatch(l, -1) {
			out = append(out, m[1])
		}
	}
	return out
}

// Retarget changes the labels that values come from in phis: of a block that was cut, they
// come from its last piece.
func Retarget(blocks []*Block, last map[string]string) {
	for _, b := range blocks {
		for i, l := range b.Lines {
			if !strings.Contains(l, " = phi ") {
				continue
			}
			b.Lines[i] = incoming.ReplaceAllStringFunc(l, func(s string) string {
				m := incoming.FindStringSubmatch(s)
				if to, ok := last[m[2]]; ok {
					return fmt.Sprintf("[ %s, %%%s ]", m[1], to)
				}
				return s
			})
		}
	}
}

// CallOf reads a line that calls one of the declared functions air.*, with the types that this has.
func CallOf(l string, declared map[string]Declaration) (*Instruction, Declaration, bool) {
	if !strings.Contains(l, "@air.") && !strings.Contains(l, `@"air.`) {
		return nil, Declaration{}, false
	}
	in := Read(l)
	if in == nil || in.Callee == "" {
		return nil, Declaration{}, false
	}
	d, ok := declared[in.Callee]
	ok = ok && slices.EqualFunc(in.Operands, d.Params, func(o Operand, typ string) bool { return o.Type == typ }) // else clang refuses it
	return in, d, ok
}
