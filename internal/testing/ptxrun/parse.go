package ptxrun

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// Program is the entry of a PTX text, parsed.
type Program struct {
	Target string // "sm_80"
	// Params are the widths of the parameters, in bytes.
	Params []int
	// Calls counts the instructions griddepcontrol.wait and griddepcontrol.launch_dependents, by name.
	Calls map[string]int
	// Steps counts the instructions that threads have executed by themselves.
	Steps int

	params    map[string]int // by name
	registers map[string]int
	shared    map[string]uint64 // addresses of variables
	size      int               // of shared memory
	code      []instruction
}

// instruction is an instruction of an entry, with its operands.
type instruction struct {
	line     int
	text     string
	op       []string // the opcode, split at its points
	guard    int      // register of its predicate; −1: none
	unless   bool
	args     []operand
	vector   int  // how many operands the last pair of braces has
	first    bool // the first operand stands in braces
	resolved func(t *thread, in *instruction) error
	together *together // if threads execute it together; resolved is nil then
}

// operand is a register, a number, a place in memory or in the parameters, or a place in the code.
type operand struct {
	kind   byte // 'r', 'n', '[', 'p', 'l', 's', 'v', '_'
	index  int  // of the register, the parameter, or the instruction at a label; −1: none
	number uint64
	name   string
}

var (
	comment    = regexp.MustCompile(`//[^\n]*`)
	entry      = regexp.MustCompile(`(?s)\.visible \.entry (\w+)\((.*?)\)\s*((?:\.\w+[^{]*?)?)\{(.*)\}\s*$`)
	paramLine  = regexp.MustCompile(`\.param \.[a-z](\d+)[^,]*?(\w+)\s*$`)
	sharedLine = regexp.MustCompile(`(?m)^\s*\.shared \.align (\d+) \.b8 (\w+)\[(\d+)\];`)
	regLine    = regexp.MustCompile(`^\.reg \.(?:pred|[bfsu](?:16|32|64))\s+%(\w+)<(\d+)>$`)
	targetLine = regexp.MustCompile(`(?m)^\.target (\w+)`)
	memoryText = regexp.MustCompile(`^\[([%\w$]+)(?:\+(-?\d+))?\]$`)
	labelText  = regexp.MustCompile(`^(\$\w+):\s*`)
)

// Parse reads the text of one entry.
func Parse(text []byte) (*Program, error) {
	plain := comment.ReplaceAllString(string(text), "")
	m := entry.FindStringSubmatch(plain)
	if m == nil {
		return nil, fmt.Errorf("there is no entry")
	}
	p := &Program{params: map[string]int{}, registers: map[string]int{}, Calls: map[string]int{}, shared: map[string]uint64{}}
	for _, v := range sharedLine.FindAllStringSubmatch(plain, -1) {
		size, _ := strconv.Atoi(v[3])
		p.size = (p.size + 255) &^ 255
		p.shared[v[2]] = sharedBase + uint64(p.size)
		p.size += size
	}
	if t := targetLine.FindStringSubmatch(plain); t != nil {
		p.Target = t[1]
	}
	for s := range strings.SplitSeq(m[2], ",") {
		x := paramLine.FindStringSubmatch(strings.TrimSpace(s))
		if x == nil {
			return nil, fmt.Errorf("parameter %q is not understood", s)
		}
		bits, _ := strconv.Atoi(x[1])
		p.params[x[2]] = len(p.Params)
		p.Params = append(p.Params, bits/8)
	}
	labels := map[string]int{}
	first := strings.Count(plain[:strings.Index(plain, m[4])], "\n") + 1
	for n, statement := range splitted(m[4]) {
		s := statement.text
		for {
			l := labelText.FindStringSubmatch(s)
			if l == nil {
				break
			}
			labels[l[1]] = len(p.code)
			s = s[len(l[0]):]
		}
		if s == "" || strings.HasPrefix(s, ".shared ") || strings.HasPrefix(s, ".pragma ") {
			continue
		}
		if r := regLine.FindStringSubmatch(s); r != nil {
			count, _ := strconv.Atoi(r[2])
			for i := range count {
				p.registers[fmt.Sprintf("%%%s%d", r[1], i)] = len(p.registers)
			}
			continue
		}
		in, err := p.instruction(s)
		if err != nil {
			return nil, fmt.Errorf("statement %d, line %d: %s: %w", n+1, first+statement.line, s, err)
		}
		in.line = first + statement.line
		p.code = append(p.code, in)
	}
	for i := range p.code {
		for k := range p.code[i].args {
			if a := &p.code[i].args[k]; a.kind == 'l' {
				at, ok := labels[a.name]
				if !ok {
					return nil, fmt.Errorf("line %d: there is no label %s", p.code[i].line, a.name)
				}
				a.index = at
			}
		}
	}
	return p, nil
}

type statement struct {
	text string
	line int
}

// splitted returns the statements of a body.
func splitted(body string) (out []statement) {
	line := 0
	for s := range strings.SplitSeq(body, ";") {
		trimmed := strings.TrimLeft(s, " \t\n")
		at := line + strings.Count(s[:len(s)-len(trimmed)], "\n")
		line += strings.Count(s, "\n")
		out = append(out, statement{strings.TrimSpace(trimmed), at})
	}
	return out
}

func (p *Program) instruction(s string) (in instruction, err error) {
	in = instruction{text: s, guard: -1}
	if strings.HasPrefix(s, "@") {
		guard, rest, _ := strings.Cut(s[1:], " ")
		if in.unless = strings.HasPrefix(guard, "!"); in.unless {
			guard = guard[1:]
		}
		r, ok := p.registers[guard]
		if !ok {
			return in, fmt.Errorf("there is no register %s", guard)
		}
		in.guard, s = r, strings.TrimSpace(rest)
	}
	op, rest, _ := strings.Cut(strings.ReplaceAll(s, "\t", " "), " ")
	in.op = strings.Split(op, ".")
	for _, a := range arguments(strings.TrimSpace(rest)) {
		if inner, ok := strings.CutPrefix(a, "{"); ok {
			parts := strings.Split(strings.TrimSuffix(inner, "}"), ",")
			in.vector, in.first = len(parts), in.first || len(in.args) == 0
			for _, x := range parts {
				o, err := p.operand(strings.TrimSpace(x))
				if err != nil {
					return in, err
				}
				in.args = append(in.args, o)
			}
			continue
		}
		o, err := p.operand(a)
		if err != nil {
			return in, err
		}
		in.args = append(in.args, o)
	}
	if in.together = togetherOf(&in); in.together == nil {
		in.resolved, err = resolve(&in)
	}
	return in, err
}

// arguments splits at commas outside of braces.
func arguments(s string) (out []string) {
	depth, from := 0, 0
	for i := range len(s) {
		switch s[i] {
		case '{':
			depth++
		case '}':
			depth--
		case ',':
			if depth == 0 {
				out, from = append(out, strings.TrimSpace(s[from:i])), i+1
			}
		}
	}
	if s = strings.TrimSpace(s[from:]); s != "" {
		out = append(out, s)
	}
	return out
}

var specials = map[string]bool{
	"%tid.x": true, "%ctaid.x": true, "%ctaid.y": true, "%ctaid.z": true, "%nctaid.x": true, "%nctaid.y": true, "%nctaid.z": true, "%ntid.x": true,
}

func (p *Program) operand(s string) (operand, error) {
	switch {
	case s == "_":
		return operand{kind: '_'}, nil
	case p.shared[s] != 0:
		return operand{kind: 'v', number: p.shared[s]}, nil
	case specials[s]:
		return operand{kind: 's', name: s}, nil
	case strings.HasPrefix(s, "%"):
		r, ok := p.registers[s]
		if !ok {
			return operand{}, fmt.Errorf("there is no register %s", s)
		}
		return operand{kind: 'r', index: r}, nil
	case strings.HasPrefix(s, "$"):
		return operand{kind: 'l', name: s}, nil
	case strings.HasPrefix(s, "["):
		m := memoryText.FindStringSubmatch(s)
		if m == nil {
			return operand{}, fmt.Errorf("the place %s is not understood", s)
		}
		more, _ := strconv.ParseInt(m[2], 10, 64)
		if i, ok := p.params[m[1]]; ok && more == 0 {
			return operand{kind: 'p', index: i}, nil
		}
		if at, ok := p.shared[m[1]]; ok {
			return operand{kind: '[', index: -1, number: at + uint64(more)}, nil
		}
		r, ok := p.registers[m[1]]
		if !ok {
			return operand{}, fmt.Errorf("there is no register %s", m[1])
		}
		return operand{kind: '[', index: r, number: uint64(more)}, nil
	case strings.HasPrefix(s, "0f"), strings.HasPrefix(s, "0d"):
		n, err := strconv.ParseUint(s[2:], 16, 64)
		return operand{kind: 'n', number: n}, err
	}
	if n, err := strconv.ParseInt(s, 0, 64); err == nil {
		return operand{kind: 'n', number: uint64(n)}, nil
	}
	n, err := strconv.ParseUint(s, 0, 64)
	return operand{kind: 'n', number: n}, err
}

// The NaNs that GPUs make.
const (
	nan16 = 0x7fff
	nan32 = 0x7fffffff
	nan64 = 0x7fffffffffffffff
)

func single(x uint64) float32 { return math.Float32frombits(uint32(x)) }
func double(x uint64) float64 { return math.Float64frombits(x) }

func ofSingle(x float32) uint64 {
	if x != x {
		return nan32
	}
	return uint64(math.Float32bits(x))
}

func ofDouble(x float64) uint64 {
	if x != x {
		return nan64
	}
	return math.Float64bits(x)
}
