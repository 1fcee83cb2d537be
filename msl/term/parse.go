package term

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/mlxc/mlxc/ir"
)

// Scope resolves the names of a declaration while its expressions are parsed.
type Scope interface {
	// Symbol returns the place of name in the table of symbols, and whether it
	// is an integer or an f32.
	Symbol(name string) (index int, kind Kind, ok bool)
	// Load returns the number, the rank and the element kind of the argument
	// called name.
	Load(name string) (index, rank int, kind Kind, ok bool)
	// Abbrev returns the number, the parameters and the kind of an abbreviation.
	Abbrev(name string) (index, params int, kind Kind, ok bool)
}

// maxDepth bounds the nesting of an expression.
const maxDepth = 100

// TooDeep is wrapped by the error about an expression that is nested too deep.
var TooDeep = fmt.Errorf("nested deeper than %d", maxDepth)

// Parse reads one whole expression. vars are the index variables in scope,
// outermost first.
func Parse(src string, scope Scope, vars ...string) (*Expr, error) {
	toks, err := lex(src)
	if err != nil {
		return nil, err
	}
	p := &parser{src: src, toks: toks, scope: scope, vars: vars}
	e, err := p.expr(0)
	if err != nil {
		return nil, err
	}
	if p.peek() != "" {
		return nil, p.errorf("unexpected %q", p.peek())
	}
	return e, nil
}

type token struct {
	text string
	pos  int
}

func lex(s string) ([]token, error) {
	out := make([]token, 0, len(s)/2+1) // a guess: most tokens have two bytes or more
	for i := 0; i < len(s); {
		c := s[i]
		start := i
		switch {
		case c == ' ' || c == '\t':
			i++
			continue
		case isLetter(c):
			for i < len(s) && (isLetter(s[i]) || isDigit(s[i])) {
				i++
			}
		case isDigit(c):
			for i < len(s) && (isDigit(s[i]) || s[i] == '.' || s[i] == 'e' || (s[i] == '-' || s[i] == '+') && s[i-1] == 'e') {
				i++
			}
		default:
			if i+1 < len(s) && strings.Contains("== != <= >= && ||", s[i:i+2]) && s[i+1] != ' ' {
				i++
			}
			i++
			if !strings.Contains("+-*/%()[],<>!==!=<=>=&&||", s[start:i]) {
				return nil, fmt.Errorf("column %d of %q: unexpected %q", start+1, s, s[start:i])
			}
		}
		out = append(out, token{s[start:i], start})
	}
	return out, nil
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }

type parser struct {
	src   string
	toks  []token
	i     int
	scope Scope
	vars  []string
	depth int
}

func (p *parser) peek() string {
	if p.i < len(p.toks) {
		return p.toks[p.i].text
	}
	return ""
}

// errorf is an error at the next token, errorAt one at token i.
func (p *parser) errorf(format string, args ...any) error { return p.errorAt(p.i, format, args...) }

func (p *parser) errorAt(i int, format string, args ...any) error {
	return p.wrap(i, fmt.Errorf(format, args...))
}

func (p *parser) wrap(i int, err error) error {
	pos := len(p.src)
	if i < len(p.toks) {
		pos = p.toks[i].pos
	}
	return fmt.Errorf("column %d of %q: %w", pos+1, p.src, err)
}

func (p *parser) expect(t string) error {
	if p.peek() != t {
		return p.errorf("found %q, want %q", p.peek(), t)
	}
	p.i++
	return nil
}

func (p *parser) expr(min int) (*Expr, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, p.wrap(p.i, TooDeep)
	}
	defer func() { p.depth-- }()
	left, err := p.unary()
	if err != nil {
		return nil, err
	}
	for {
		op, ok := signs[p.peek()]
		if !ok || table[op].binds < min {
			return left, nil
		}
		at := p.i
		p.i++
		right, err := p.expr(table[op].binds + 1)
		if err != nil {
			return nil, err
		}
		if left, err = p.operation(at, op, left, right); err != nil {
			return nil, err
		}
		if next, ok := signs[p.peek()]; ok && op.Comparison() && next.Comparison() { // a < b < c means nothing here
			return nil, p.errorf("comparisons do not chain")
		}
	}
}

// operation returns an operation of the table on operands, if these are of the kinds that it takes. Token at is its
// sign or name.
func (p *parser) operation(at int, op Op, args ...*Expr) (*Expr, error) {
	o := &table[op]
	if len(args) != o.args {
		return nil, p.errorAt(at, "%s takes %d arguments, not %d", op, o.args, len(args))
	}
	e := &Expr{Op: op, Kind: o.yields, Args: args}
	if e.Kind == widest {
		e.Kind = Int
	}
	for i, a := range args {
		switch {
		case o.takes == conditions && a.Kind != Bool:
			return nil, p.errorAt(at, "%s takes conditions, not one of kind %s", op, a.Kind)
		case o.takes == integers && a.Kind != Int:
			return nil, p.errorAt(at, "%s takes integers, not one of kind %s", op, a.Kind)
		case o.takes == choice && i == 0:
			if a.Kind != Bool {
				return nil, p.errorAt(at, "%s takes a condition first, not one of kind %s", op, a.Kind)
			}
		case (o.takes == numbers || o.takes == choice) && a.Kind == Bool:
			return nil, p.errorAt(at, "%s takes numbers, not conditions", op)
		}
		if o.yields == widest && a.Kind == Float {
			e.Kind = Float
		}
	}
	return e, nil
}

func (p *parser) unary() (*Expr, error) {
	op, ok := prefixes[p.peek()]
	if !ok {
		return p.primary()
	}
	at := p.i
	p.i++
	if p.depth++; p.depth > maxDepth {
		return nil, p.wrap(p.i, TooDeep)
	}
	defer func() { p.depth-- }()
	a, err := p.unary()
	if err != nil {
		return nil, err
	}
	return p.operation(at, op, a)
}

func (p *parser) primary() (*Expr, error) {
	t := p.peek()
	switch {
	case t == "":
		return nil, p.errorf("the expression ends too early")
	case t == "(":
		p.i++
		e, err := p.expr(0)
		if err != nil {
			return nil, err
		}
		return e, p.expect(")")
	case isDigit(t[0]):
		if strings.ContainsAny(t, ".e") {
			v, err := strconv.ParseFloat(t, 32)
			if err != nil {
				return nil, p.errorf("%q is no f32", t)
			}
			p.i++
			return &Expr{Op: Real, Kind: Float, Val: v}, nil
		}
		v, err := strconv.ParseInt(t, 10, 64)
		if err != nil {
			return nil, p.errorf("%q is no integer within 63 bits", t)
		}
		p.i++
		return &Expr{Op: Number, Kind: Int, Num: v}, nil
	case !isLetter(t[0]):
		return nil, p.errorf("unexpected %q", t)
	}
	p.i++
	if t == "inf" {
		return &Expr{Op: Real, Kind: Float, Val: math.Inf(1)}, nil
	}
	for i := len(p.vars) - 1; i >= 0; i-- {
		if p.vars[i] == t {
			return &Expr{Op: Var, Kind: Int, Name: t, Index: i}, nil
		}
	}
	if p.reductionAhead(t) {
		return p.reduction(t)
	}
	if p.peek() == "(" {
		return p.call(t)
	}
	if p.peek() == "[" {
		return p.element(t)
	}
	if i, kind, ok := p.scope.Symbol(t); ok {
		return &Expr{Op: Symbol, Kind: kind, Name: t, Index: i}, nil
	}
	p.i--
	return nil, p.errorf("%q is not defined", t)
}

// reductionAhead reports whether a reduction follows, as in max(k < n, e), and not the
// maximum of two numbers, as in max(a, b).
func (p *parser) reductionAhead(t string) bool {
	if _, ok := reductions[t]; !ok {
		return false
	}
	i := p.i
	at := func(k int) string {
		if k < len(p.toks) {
			return p.toks[k].text
		}
		return ""
	}
	if at(i) == "[" {
		return true
	}
	return at(i) == "(" && at(i+2) == "<" && at(i+1) != "" && isLetter(at(i + 1)[0]) && !p.known(at(i+1))
}

func (p *parser) known(name string) bool {
	for _, v := range p.vars {
		if v == name {
			return true
		}
	}
	_, _, ok := p.scope.Symbol(name)
	return ok
}

func (p *parser) reduction(t string) (*Expr, error) {
	op := reductions[t]
	e := &Expr{Op: op, Kind: table[op].yields}
	if p.peek() == "[" {
		p.i++
		if e.Class = p.peek(); e.Class == "" || !isLetter(e.Class[0]) {
			return nil, p.errorf("a reduction's class is a name, not %q", e.Class)
		}
		p.i++
		if err := p.expect("]"); err != nil {
			return nil, err
		}
	}
	if err := p.expect("("); err != nil {
		return nil, err
	}
	if e.Name = p.peek(); e.Name == "" || !isLetter(e.Name[0]) || p.known(e.Name) {
		return nil, p.errorf("%s binds a new index, not %q", t, e.Name)
	}
	p.i++
	if err := p.expect("<"); err != nil {
		return nil, err
	}
	at := p.i
	count, err := p.expr(sumBinds)
	if err != nil {
		return nil, err
	}
	if count.Kind != Int {
		return nil, p.errorAt(at, "the bound of %s is a %s, not an integer", e.Name, count.Kind)
	}
	if err := p.expect(","); err != nil {
		return nil, err
	}
	e.Index = len(p.vars)
	p.vars = append(p.vars, e.Name)
	at = p.i
	body, err := p.expr(0)
	p.vars = p.vars[:e.Index]
	if err != nil {
		return nil, err
	}
	if body.Kind == Bool {
		return nil, p.errorAt(at, "%s takes numbers, not conditions", t)
	}
	e.Args = []*Expr{count, body}
	if e.Op == ArgMax && p.peek() == "," {
		p.i++
		at = p.i
		place, err := p.expr(0)
		if err != nil {
			return nil, err
		}
		if place.Kind != Int {
			return nil, p.errorAt(at, "the place of argmax is a %s, not an integer", place.Kind)
		}
		e.Args = append(e.Args, place)
	}
	return e, p.expect(")")
}

func (p *parser) call(t string) (*Expr, error) {
	at := p.i - 1 // the name
	p.i++         // "("
	if t == "round" {
		d, err := ir.ParseDType(p.peek())
		if err != nil || !d.Float() {
			return nil, p.errorf("round takes f16, bf16 or f32 first, not %q", p.peek())
		}
		p.i++
		if err := p.expect(","); err != nil {
			return nil, err
		}
		a, err := p.expr(0)
		if err != nil {
			return nil, err
		}
		if a.Kind == Bool {
			return nil, p.errorAt(at, "round takes a number, not a condition")
		}
		return &Expr{Op: Round, Kind: Float, Type: d, Args: []*Expr{a}}, p.expect(")")
	}
	args, err := p.list(")")
	if err != nil {
		return nil, err
	}
	if t == "ceil" {
		if len(args) != 1 || args[0].Op != Div || args[0].Kind != Int {
			return nil, p.errorAt(at, "ceil takes a quotient of integers")
		}
		return &Expr{Op: CeilDiv, Kind: Int, Args: args[0].Args}, nil
	}
	if d, err := ir.ParseDType(t); err == nil && !d.Float() {
		if len(args) != 1 || args[0].Kind != Int {
			return nil, p.errorAt(at, "%s takes one integer", t)
		}
		return &Expr{Op: ToInt, Kind: Int, Type: d, Args: args}, nil
	}
	if op, ok := functions[t]; ok {
		return p.operation(at, op, args...)
	}
	return nil, p.errorAt(at, "there is no operation %q", t)
}

func (p *parser) element(t string) (*Expr, error) {
	at := p.i
	p.i++ // "["
	args, err := p.list("]")
	if err != nil {
		return nil, err
	}
	for _, a := range args {
		if a.Kind != Int {
			return nil, p.errorAt(at-1, "an index of %s is a %s, not an integer", t, a.Kind)
		}
	}
	e := &Expr{Name: t, Args: args}
	if i, rank, kind, ok := p.scope.Load(t); ok {
		if rank != len(args) {
			return nil, p.errorAt(at-1, "%s has %d dimensions, not %d", t, rank, len(args))
		}
		e.Op, e.Index, e.Kind = Load, i, kind
		return e, nil
	}
	if i, n, kind, ok := p.scope.Abbrev(t); ok {
		if n != len(args) {
			return nil, p.errorAt(at-1, "%s takes %d indices, not %d", t, n, len(args))
		}
		e.Op, e.Index, e.Kind = Call, i, kind
		return e, nil
	}
	// An element of a constant array is a symbol called name[i].
	if len(args) == 1 && args[0].Op == Number {
		name := fmt.Sprintf("%s[%d]", t, args[0].Num)
		if i, kind, ok := p.scope.Symbol(name); ok {
			return &Expr{Op: Symbol, Kind: kind, Name: name, Index: i}, nil
		}
	}
	return nil, p.errorAt(at-1, "%q is no readable argument and no abbreviation", t)
}

func (p *parser) list(close string) ([]*Expr, error) {
	var out []*Expr
	for {
		e, err := p.expr(0)
		if err != nil {
			return nil, err
		}
		out = append(out, e)
		if p.peek() == "," {
			p.i++
			continue
		}
		return out, p.expect(close)
	}
}
