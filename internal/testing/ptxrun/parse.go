package ptxrun

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/mlxc/mlxc/internal/ptx"
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

	text      []byte
	params    map[string]int // by name
	registers map[string]int
	shared    map[string]uint64 // addresses of variables
	size      int               // of shared memory
	code      []instruction
	align     int    // of the variable that is external
	external  string // the variable whose size is that of a launch
	// async: there are instructions that something has to be waited for, and matrix: wgmma.
	async, matrix bool
	cluster       [3]uint32 // how many blocks are one, by dimension
	explicit      bool      // the directive .explicitcluster
}

// instruction is an instruction of an entry, with its operands.
type instruction struct {
	line     int
	text     string
	op       []string // the opcode, split at its points
	guard    int      // register of its predicate; −1: none
	unless   bool
	args     []operand
	vector   int      // how many operands the last pair of braces has
	lists    [][2]int // for each pair of braces its first operand and how many it has
	first    bool     // the first operand stands in braces
	resolved func(t *thread, in *instruction) error
	together *together // if threads execute it together; resolved is nil then
}

// operand is a register, a number, a place in memory or in the parameters, or a place in the code.
type operand struct {
	kind   byte // 'r', 'n', '[', 'p', 'l', 's', '_'
	index  int  // of the register, the parameter, or the instruction at a label; −1: none
	number uint64
	name   string // of a special register
}

// Parse reads the text of one entry.
func Parse(text []byte) (*Program, error) {
	m, err := ptx.Parse(text)
	if err != nil {
		return nil, err
	}
	p := &Program{text: text, cluster: [3]uint32{1, 1, 1}, params: map[string]int{}, registers: map[string]int{}, Calls: map[string]int{}, shared: map[string]uint64{}}
	for _, x := range m.Params {
		t, ok := typeOf(x.Type)
		if !ok {
			return nil, fmt.Errorf("parameter %s of type %s is not understood", x.Name, x.Type)
		}
		p.params[x.Name] = len(p.Params)
		p.Params = append(p.Params, t.bits/8)
	}
	labels := map[string]int{}
	var statements []ptx.Statement
	for n, l := range m.Lines {
		if l.Unclear {
			return nil, fmt.Errorf("line %d: %s: is not understood", n+1, strings.TrimSpace(l.Text))
		}
		for _, s := range l.Code {
			for _, name := range s.Labels {
				labels[name] = len(p.code)
			}
			if s.Op == "" || s.Op[0] == '.' {
				if err := p.directive(s); err != nil {
					return nil, fmt.Errorf("line %d: %s: %w", n+1, strings.TrimSpace(l.Text), err)
				}
				continue
			}
			p.code = append(p.code, instruction{line: n + 1, text: strings.TrimSpace(l.Text), op: strings.Split(s.Op, "."), guard: -1, unless: s.Unless})
			statements = append(statements, s)
		}
	}
	if p.external != "" {
		p.size = (p.size + p.align - 1) &^ (p.align - 1)
		p.shared[p.external] = sharedBase + uint64(p.size)
	}
	if p.explicit && p.cluster == [3]uint32{1, 1, 1} { // launches here say nothing of clusters
		return nil, fmt.Errorf("nothing says how large clusters are")
	}
	for i := range p.code {
		if err := p.instruction(&p.code[i], statements[i], labels); err != nil {
			return nil, fmt.Errorf("line %d: %s: %w", p.code[i].line, p.code[i].text, err)
		}
	}
	return p, nil
}

// directive notes the target, registers, or a variable in shared memory.
func (p *Program) directive(s ptx.Statement) error {
	var words []string
	for _, a := range s.Args {
		words = append(words, strings.Fields(a.Text)...)
	}
	switch last := strings.Join(words[max(0, len(words)-1):], ""); {
	case s.Op == ".target" && len(words) == 1:
		p.Target = last
	case s.Op == ".reg" && len(words) == 2: // .reg .b32 %r<9>
		name, count, _ := strings.Cut(strings.TrimSuffix(last, ">"), "<")
		n, err := strconv.Atoi(count)
		if err != nil {
			return err
		}
		for i := range n {
			p.registers[fmt.Sprint(name, i)] = len(p.registers)
		}
	case (s.Op == ".shared" || s.Op == ".extern") && slices.Contains(words, ".align"): // .shared .align 4 .b8 name[256], .extern .shared .align 16 .b8 name[]
		outside := s.Op == ".extern"
		if outside && words[0] != ".shared" {
			return fmt.Errorf("%s is not understood", words[0])
		}
		name, size, _ := strings.Cut(strings.TrimSuffix(last, "]"), "[")
		n, err := 0, error(nil)
		if !outside {
			n, err = strconv.Atoi(size)
		}
		if err != nil {
			return err
		}
		align, err := strconv.Atoi(words[slices.Index(words, ".align")+1])
		if err != nil || align <= 0 || align > sharedBase || align&(align-1) != 0 {
			return fmt.Errorf("an alignment is not understood")
		}
		if outside {
			if p.external != "" {
				return fmt.Errorf("there are two variables of any size")
			}
			p.external, p.align = name, max(align, 256)
			break
		}
		align = max(align, 256)
		p.size = (p.size + align - 1) &^ (align - 1)
		p.shared[name] = sharedBase + uint64(p.size)
		p.size += n
	case s.Op == ".explicitcluster" && len(words) == 0:
		p.explicit = true
	case s.Op == ".reqnctapercluster" && len(words) >= 1 && len(words) <= 3:
		for i, w := range words {
			n, err := strconv.ParseUint(w, 10, 16)
			if err != nil || n == 0 {
				return fmt.Errorf("a cluster of %s blocks", w)
			}
			p.cluster[i] = uint32(n)
		}
	case s.Op == ".version", s.Op == ".address_size", s.Op == ".visible", s.Op == ".param", s.Op == ".pragma", s.Op == "", strings.HasPrefix(s.Op, ".max"), strings.HasPrefix(s.Op, ".min"):
	default:
		return fmt.Errorf("%s is not understood", s.Op)
	}
	return nil
}

// instruction finds what an instruction refers to, and what executes it.
func (p *Program) instruction(in *instruction, s ptx.Statement, labels map[string]int) (err error) {
	if s.Guard != "" {
		if in.guard, err = p.register(s.Guard); err != nil {
			return err
		}
	}
	for i, a := range s.Args {
		list := []ptx.Operand{a}
		if x, y, both := strings.Cut(a.Text, "|"); both && a.Kind == ptx.Other { // elect.sync %r|%p, …
			list = []ptx.Operand{nameOf(x), nameOf(y)}
		}
		if a.Kind == ptx.List {
			list = a.Elements
			in.vector, in.first = len(list), in.first || i == 0
			in.lists = append(in.lists, [2]int{len(in.args), len(list)})
		}
		for _, x := range list {
			o, err := p.operand(x, labels)
			if err != nil {
				return err
			}
			in.args = append(in.args, o)
		}
	}
	switch in.op[0] {
	case "wgmma":
		p.async, p.matrix = true, true
	case "mbarrier", "cp", "mapa":
		p.async = true
	case "barrier":
		p.async = p.async || in.op[1] == "cluster"
	}
	if in.together = togetherOf(in); in.together == nil {
		in.resolved, err = resolve(in)
	}
	return err
}

// nameOf is the operand that a name, or _, is.
func nameOf(s string) ptx.Operand {
	if s == "_" {
		return ptx.Operand{Text: s, Kind: ptx.Nothing}
	}
	return ptx.Operand{Text: s, Kind: ptx.Register, Name: s}
}

var specials = map[string]bool{
	"%tid.x": true, "%ctaid.x": true, "%ctaid.y": true, "%ctaid.z": true, "%nctaid.x": true, "%nctaid.y": true, "%nctaid.z": true, "%ntid.x": true,
	"%laneid": true, "%warpid": true, "%cluster_ctarank": true, "%cluster_nctarank": true, "%tid.y": true, "%tid.z": true, "%ntid.y": true, "%ntid.z": true,
}

func (p *Program) register(name string) (int, error) {
	r, ok := p.registers[name]
	if !ok {
		return 0, fmt.Errorf("there is no register %s", name)
	}
	return r, nil
}

func (p *Program) operand(a ptx.Operand, labels map[string]int) (o operand, err error) {
	shared, isShared := p.shared[a.Name]
	param, isParam := p.params[a.Name]
	switch {
	case a.Kind == ptx.Nothing:
		o.kind = '_'
	case a.Kind == ptx.Symbol && isShared:
		o.kind, o.number = 'n', shared
	case a.Kind == ptx.Register && specials[a.Name]:
		o.kind, o.name = 's', a.Name
	case a.Kind == ptx.Register:
		o.kind = 'r'
		o.index, err = p.register(a.Name)
	case a.Kind == ptx.Label:
		var ok bool
		if o.index, ok = labels[a.Name]; !ok {
			err = fmt.Errorf("there is no label %s", a.Name)
		}
		o.kind = 'l'
	case a.Kind == ptx.Memory && isParam && a.Number == 0:
		o.kind, o.index = 'p', param
	case a.Kind == ptx.Memory && isShared:
		o.kind, o.index, o.number = '[', -1, shared+a.Number
	case a.Kind == ptx.Memory:
		o.kind, o.number = '[', a.Number
		o.index, err = p.register(a.Name)
	case a.Kind == ptx.Integer, a.Kind == ptx.Float:
		o.kind, o.number = 'n', a.Number
	case strings.HasSuffix(a.Text, "U"): // a selection of bytes, as newer compilers write it
		o.kind = 'n'
		if o.number, err = strconv.ParseUint(strings.TrimSuffix(a.Text, "U"), 0, 32); err == nil {
			break
		}
		fallthrough
	default:
		err = fmt.Errorf("the operand %s is not understood", a.Text)
	}
	return o, err
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
