package air

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/mlxc/mlxc/internal/llvm"
)

// A simdgroup matrix has 64 elements, and so has its type in AIR. A lane has two of them,
// elements 0 and 1 of its value; the others are never defined (exchange.go). A value that is
// alive where a thread suspends is kept in the thread's frame, 256 bytes of a matrix of floats,
// so values of matrices get a type of two elements. What lies in memory keeps its layout:
// of a matrix there, the first two elements are loaded and stored. So it is in a checked kernel too, where what the
// others do would have to be followed.
var (
	matrixType    = regexp.MustCompile(`<64 x (half|bfloat|float)>`)
	matrixInDepth = regexp.MustCompile(`[\[{][^%@]*<64 x (?:half|bfloat|float)>`)
	matrixMask    = regexp.MustCompile(`<(?:2|64) x i32> (<.*>|zeroinitializer|poison|undef)`)
	matrixValue   = regexp.MustCompile(`<(?:half|bfloat|float) `)
)

// narrow gives values of matrices a type of two elements. A module that does anything else with
// them than matrices are for stays as it is.
func (m *Module) narrow() {
	holders := m.matrixHolders()
	lines := make([][]string, len(m.Funcs))
	for i, f := range m.Funcs {
		if matrixInDepth.MatchString(f.Head) {
			return
		}
		for _, l := range f.Lines {
			if strings.Contains(l, "<64 x ") { // a mask of a shuffle too
				var ok bool
				if l, ok = narrowLine(l); !ok {
					return
				}
			} else if len(holders) > 0 && mentions(l, holders) {
				return
			}
			lines[i] = append(lines[i], l)
		}
	}
	for i, f := range m.Funcs {
		f.Lines, f.Head = lines[i], narrowType(f.Head)
		for k := range f.Params {
			f.Params[k].Typ = narrowType(f.Params[k].Typ)
		}
	}
	for i := range m.Declares {
		d := &m.Declares[i]
		d.Result = narrowType(d.Result)
		for k := range d.Params {
			d.Params[k] = narrowType(d.Params[k])
		}
	}
}

// matrixHolders returns the names of types that have matrices as parts, or as parts of parts.
func (m *Module) matrixHolders() map[string]bool {
	holders := map[string]bool{}
	within := map[string][]string{} // the types that a type is a part of
	var found []string
	for _, t := range m.Types {
		name, parts, ok := strings.Cut(t, " = type ")
		if !ok {
			continue
		}
		if matrixType.MatchString(parts) {
			found = append(found, name)
			continue
		}
		for _, other := range typeName.FindAllString(parts, -1) {
			within[other] = append(within[other], name)
		}
	}
	for len(found) > 0 {
		name := found[len(found)-1]
		found = found[:len(found)-1]
		llvm.Counted(1)
		if !holders[name] {
			holders[name] = true
			found = append(found, within[name]...)
		}
	}
	return holders
}

// mentions reports whether a line takes a value of one of the types apart, or puts one together.
func mentions(l string, types map[string]bool) bool {
	if in := llvm.Read(l); in == nil || in.Op != "extractvalue" && in.Op != "insertvalue" {
		return false
	}
	for _, name := range typeName.FindAllString(l, -1) {
		if types[name] {
			return true
		}
	}
	return false
}

var typeName = regexp.MustCompile(`%` + llvm.SymbolPattern)

func narrowType(s string) string { return matrixType.ReplaceAllString(s, "<2 x $1>") }

// narrowLine is an instruction with values of two elements for matrices.
func narrowLine(l string) (string, bool) {
	in := llvm.Read(l)
	switch {
	case in == nil:
		return "", false
	case in.Op == "alloca", in.Op == "getelementptr": // layouts of memory
		return l, true
	case matrixInDepth.MatchString(l):
		return "", false // a value that has matrices as parts
	}
	switch in.Op {
	case "phi", "select", "freeze", "ret", "fadd", "fsub", "fmul", "fdiv", "fneg", "fpext", "fptrunc":
	case "load", "store":
		if strings.Contains(in.Flags, "volatile") || strings.Contains(l, "addrspace(") {
			return "", false
		}
	case "call":
		if strings.Contains(l, "@llvm.") { // the name of an intrinsic has the type
			return "", false
		}
	case "extractelement", "insertelement":
		if i := in.Operands[len(in.Operands)-1].Value; i != "0" && i != "1" {
			return "", false
		}
	case "shufflevector":
		return narrowShuffle(l)
	default:
		return "", false
	}
	return narrowConstants(l)
}

// narrowConstants cuts constants to two elements, and gives all matrices their type.
func narrowConstants(l string) (string, bool) {
	var out strings.Builder
	for l = narrowType(l); ; {
		at := matrixValue.FindStringIndex(l)
		if at == nil {
			out.WriteString(l)
			return out.String(), true
		}
		end := llvm.Matching(l, at[0])
		if end < 0 {
			return "", false
		}
		value := l[at[0] : end+1]
		if elements := llvm.Split(l[at[0]+1 : end]); len(elements) == 64 {
			value = "<" + elements[0] + ", " + elements[1] + ">"
		}
		out.WriteString(l[:at[0]])
		out.WriteString(value)
		l = l[end+1:]
	}
}

// narrowShuffle is a shufflevector of matrices, or of one and two elements.
func narrowShuffle(l string) (string, bool) {
	at := matrixMask.FindStringSubmatchIndex(l)
	from := matrixType.MatchString(strings.SplitN(l, ", ", 2)[0]) // what is shuffled are matrices
	if at == nil || !from && !strings.Contains(l, "shufflevector <2 x ") {
		return "", false
	}
	mask := l[at[2]:at[3]]
	picked := [2]string{mask, mask}
	if mask[0] == '<' {
		for i, e := range llvm.Split(mask[1 : len(mask)-1]) {
			value := strings.TrimPrefix(e, "i32 ")
			n, err := strconv.Atoi(value)
			switch {
			case err != nil: // poison, undef
			case from && n >= 2 && n < 64, from && n >= 66:
				// An element that no lane has, which may only go where none is.
				if i < 2 {
					return "", false
				}
			case from && n >= 64:
				value = strconv.Itoa(n - 62)
			}
			if i < 2 {
				picked[i] = value
			} else if err == nil && (!from && n >= 0 || from && (n < 2 || n == 64 || n == 65)) {
				return "", false // one that a lane has goes where none is
			}
		}
	} else if mask == "zeroinitializer" {
		return "", false
	}
	head, ok := narrowConstants(l[:at[0]])
	return fmt.Sprintf("%s<2 x i32> <i32 %s, i32 %s>%s", head, picked[0], picked[1], l[at[3]:]), ok
}
