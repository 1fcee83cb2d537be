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

func (p *parser) next() string {
	t := p.peek()
	p.i++
	return t
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
		sign := p.peek()
		prec, ok := precedence[sign]
		if !ok || prec < min {
			return left, nil
		}
		at := p.i
		p.i++
		right, err := p.expr(prec + 1)
		if err != nil {
			return nil, err
		}
		if left, err = p.binary(at, sign, left, right); err != nil {
			return nil, err
		}
		if prec == 3 { // a < b < c means nothing here
			if q, ok := precedence[p.peek()]; ok && q == 3 {
				return nil, p.errorf("comparisons do not chain")
			}
		}
	}
}

func (p *parser) binary(at int, sign string, a, b *Expr) (*Expr, error) {
	var op Op
	for o, s := range infix {
		if s == sign {
			op = o
		}
	}
	e := &Expr{Op: op, Args: []*Expr{a, b}, Kind: Int}
	if a.Kind == Float || b.Kind == Float {
		e.Kind = Float
	}
	switch op {
	case And, Or:
		if a.Kind != Bool || b.Kind != Bool {
			return nil, p.errorAt(at, "%s joins conditions", sign)
		}
		e.Kind = Bool
	case Eq, Ne, Lt, Le, Gt, Ge:
		e.Kind = Bool
		fallthrough
	default:
		if a.Kind == Bool || b.Kind == Bool {
			return nil, p.errorAt(at, "%s takes numbers, not conditions", sign)
		}
		if op == Mod && e.Kind == Float {
			return nil, p.errorAt(at, "%% takes integers")
		}
	}
	return e, nil
}

func (p *parser) unary() (*Expr, error) {
	switch p.peek() {
	case "-", "!":
		at := p.i
		sign := p.next()
		if p.depth++; p.depth > maxDepth {
			return nil, p.wrap(p.i, TooDeep)
		}
		defer func() { p.depth-- }()
		a, err := p.unary()
		if err != nil {
			return nil, err
		}
		if sign == "!" {
			if a.Kind != Bool {
				return nil, p.errorAt(at, "! takes a condition")
			}
			return &Expr{Op: Not, Kind: Bool, Args: []*Expr{a}}, nil
		}
		if a.Kind == Bool {
			return nil, p.errorAt(at, "- takes a number")
		}
		return &Expr{Op: Neg, Kind: a.Kind, Args: []*Expr{a}}, nil
	}
	return p.primary()
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
	if t != "sum" && t != "max" && t != "argmax" {
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
	e := &Expr{Op: map[string]Op{"sum": Sum, "max": MaxOver, "argmax": ArgMax}[t], Kind: Float}
	if e.Op == ArgMax {
		e.Kind = Int
	}
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
	count, err := p.expr(4)
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
	f, ok := functions[t]
	if !ok {
		return nil, p.errorAt(at, "there is no operation %q", t)
	}
	if len(args) != f.args {
		return nil, p.errorAt(at, "%s takes %d arguments, not %d", t, f.args, len(args))
	}
	e := &Expr{Op: f.op, Kind: f.kind, Args: args}
	rest := args
	switch f.op {
	case Select:
		if args[0].Kind != Bool {
			return nil, p.errorAt(at, "select takes a condition first, not one of kind %s", args[0].Kind)
		}
		rest = args[1:]
	case Min, Max:
		if args[0].Kind == Float || args[1].Kind == Float {
			e.Kind = Float
		}
	case Pow2, AsF16:
		if args[0].Kind != Int {
			return nil, p.errorAt(at, "%s takes an integer, not a %s", t, args[0].Kind)
		}
	}
	for _, a := range rest {
		if a.Kind == Bool {
			return nil, p.errorAt(at, "%s takes numbers, not conditions", t)
		}
	}
	return e, nil
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
