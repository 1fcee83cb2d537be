package chat

import (
	"strconv"
	"strings"
)

// tuple reads an expression, or several with commas between them, which are a tuple. If
// conditionals is false, as in an if or a for, an "if" after it belongs to the tag.
func (p *parser) tuple(conditionals bool) expr {
	first, ok := p.items(conditionals, func() bool {
		t := p.current()
		return t.kind == kindTagEnd || t.is(")")
	})
	if !ok {
		p.unexpected("an expression")
	}
	return first
}

// items reads expressions with commas between them, up to end. ok is false if there was
// no comma.
func (p *parser) items(conditionals bool, end func() bool) (x expr, ok bool) {
	var out []expr
	comma := false
	for {
		if len(out) > 0 {
			p.expect(",")
		}
		if end() {
			break
		}
		if conditionals {
			out = append(out, p.expression())
		} else {
			p.enter(p.current().line)
			out = append(out, p.or())
			p.leave()
		}
		if !p.current().is(",") {
			break
		}
		comma = true
	}
	if !comma && len(out) == 1 {
		return out[0], true
	}
	return &listExpr{out, true}, len(out) > 0
}

// expression reads `a if b else c`, which has the lowest rank.
func (p *parser) expression() expr {
	line := p.current().line
	p.enter(line)
	defer p.leave()
	x := p.or()
	for n := 0; p.skipWord("if"); n++ {
		if n == maxNesting {
			p.failAt(line, "expressions are nested deeper than %d", maxNesting)
		}
		c := &conditional{then: x, cond: p.or()}
		if p.skipWord("else") {
			c.otherwise = p.expression()
		}
		x = c
	}
	return x
}

func (p *parser) or() expr  { return p.logic("or", (*parser).and) }
func (p *parser) and() expr { return p.logic("and", (*parser).not) }

func (p *parser) logic(word string, operand func(*parser) expr) expr {
	x := operand(p)
	if !p.current().word(word) {
		return x
	}
	l := &logic{and: word == "and", parts: []expr{x}}
	for p.skipWord(word) {
		l.parts = append(l.parts, operand(p))
	}
	return l
}

func (p *parser) not() expr {
	if line := p.current().line; p.skipWord("not") {
		p.enter(line)
		defer p.leave()
		return &negation{p.not()}
	}
	return p.comparison()
}

func (p *parser) comparison() expr {
	x := p.math1()
	var rest []operand
	for {
		t := p.current()
		op := ""
		switch {
		case t.kind == kindSign && (t.text == "==" || t.text == "!=" || t.text == "<" || t.text == "<=" || t.text == ">" || t.text == ">="):
			op = p.take().text
		case t.word("in"):
			op = p.take().text
		case t.word("not") && p.look().word("in"):
			p.pos += 2
			op = "not in"
		}
		if op == "" {
			break
		}
		rest = append(rest, operand{op, p.math1()})
	}
	if rest == nil {
		return x
	}
	return &comparison{x, rest}
}

// left reads operands with any of the signs between them.
func (p *parser) left(operandOf func(*parser) expr, ops ...string) expr {
	x := operandOf(p)
	var rest []operand
again:
	for _, op := range ops {
		if p.skip(op) {
			rest = append(rest, operand{op, operandOf(p)})
			goto again
		}
	}
	if rest == nil {
		return x
	}
	return &arithmetic{x, rest}
}

func (p *parser) math1() expr { return p.left((*parser).concat, "+", "-") }
func (p *parser) math2() expr {
	x := p.left(func(p *parser) expr { return p.unary(true) }, "*", "/", "//", "%")
	if t := p.current(); t.is("**") {
		p.failAt(t.line, "the operator ** is not supported")
	}
	return x
}

func (p *parser) concat() expr {
	x := p.math2()
	if !p.current().is("~") {
		return x
	}
	c := &concatenation{[]expr{x}}
	for p.skip("~") {
		c.parts = append(c.parts, p.math2())
	}
	return c
}

func (p *parser) unary(filters bool) expr {
	var x expr
	if t := p.current(); t.is("-") || t.is("+") {
		p.pos++
		p.enter(t.line)
		x = &signed{t.text == "-", p.unary(false)}
		p.leave()
	} else {
		x = p.primary()
	}
	return p.postfix(x, filters)
}

func (p *parser) primary() expr {
	t := p.take()
	switch t.kind {
	case kindName:
		switch t.text {
		case "true", "True":
			return &literal{true}
		case "false", "False":
			return &literal{false}
		case "none", "None":
			return &literal{none{}}
		}
		return &name{t.text}
	case kindString:
		if p.current().kind != kindString {
			return &literal{t.text}
		}
		var b strings.Builder
		b.WriteString(t.text)
		for p.current().kind == kindString {
			b.WriteString(p.take().text)
		}
		return &literal{b.String()}
	case kindInteger:
		v, _ := strconv.ParseInt(t.text, 10, 64) // the lexer has checked it
		return &literal{v}
	case kindFloat:
		v, _ := strconv.ParseFloat(t.text, 64)
		return &literal{v}
	case kindSign:
		switch t.text {
		case "(":
			x, _ := p.items(true, func() bool { return p.current().is(")") })
			p.expect(")")
			return x
		case "[":
			l := &listExpr{}
			for !p.current().is("]") {
				if len(l.items) > 0 {
					p.expect(",")
					if p.current().is("]") {
						break
					}
				}
				l.items = append(l.items, p.expression())
			}
			p.expect("]")
			return l
		case "{":
			d := &dictExpr{}
			for !p.current().is("}") {
				if len(d.keys) > 0 {
					p.expect(",")
					if p.current().is("}") {
						break
					}
				}
				d.keys = append(d.keys, p.expression())
				p.expect(":")
				d.values = append(d.values, p.expression())
			}
			p.expect("}")
			return d
		}
	}
	p.failAt(t.line, "expected an expression, got %s", t)
	return nil
}

// postfix reads subscripts and calls and, with filters, also filters and tests.
func (p *parser) postfix(x expr, filters bool) expr {
	out := &postfix{base: x}
	for filtered := false; ; {
		t := p.current()
		op := postfixOp{line: t.line}
		switch {
		case !filtered && t.is("."):
			p.pos++
			switch a := p.take(); a.kind {
			case kindName:
				op.kind, op.name = attributeOp, a.text
			case kindInteger:
				v, _ := strconv.ParseInt(a.text, 10, 64)
				op.kind, op.index = itemOp, &literal{v}
			default:
				p.failAt(a.line, "expected a name or a number after the dot, got %s", a)
			}
		case !filtered && t.is("["):
			p.pos++
			p.subscript(&op)
			p.expect("]")
		case t.is("("):
			op.kind, op.args = callOp, p.arguments()
		case filters && t.is("|"):
			filtered = true
			p.pos++
			op.kind, op.name = filterOp, p.expectName()
			if p.current().is(".") {
				p.failAt(t.line, "a dot after the filter %.40q is not supported", op.name)
			}
			if p.current().is("(") {
				op.args = p.arguments()
			}
		case filters && t.word("is"):
			filtered = true
			p.test(&op)
		default:
			if len(out.ops) == 0 {
				return x
			}
			return out
		}
		out.ops = append(out.ops, op)
	}
}

func (p *parser) subscript(op *postfixOp) {
	if !p.current().is(":") {
		x := p.expression()
		if !p.current().is(":") {
			op.kind, op.index = itemOp, x
			return
		}
		op.slice[0] = x
	}
	p.expect(":")
	op.kind = sliceOp
	if !p.current().is("]") && !p.current().is(":") {
		op.slice[1] = p.expression()
	}
	if p.skip(":") && !p.current().is("]") {
		op.slice[2] = p.expression()
	}
}

func (p *parser) arguments() (a arguments) {
	line := p.current().line
	p.expect("(")
	for first := true; !p.current().is(")"); first = false {
		if !first {
			p.expect(",")
			if p.current().is(")") {
				break
			}
		}
		switch {
		case p.current().is("**"):
			p.failAt(line, "arguments with ** are not supported")
		case p.skip("*"):
			a.positional = append(a.positional, &spread{p.expression()})
		case p.current().kind == kindName && p.look().is("="):
			n := p.take().text
			p.pos++
			for _, k := range a.keywords {
				if k.name == n {
					p.failAt(line, "the argument %q is given twice", n)
				}
			}
			a.keywords = append(a.keywords, keyword{n, p.expression()})
			if len(a.keywords) > maxDepth { // the loop above looks at each of them
				p.failAt(line, "a call has more than %d arguments by name", maxDepth)
			}
		case len(a.keywords) == 0:
			a.positional = append(a.positional, p.expression())
		default:
			p.failAt(line, "the arguments of this call are in the wrong order")
		}
	}
	p.expect(")")
	return a
}

func (p *parser) test(op *postfixOp) {
	p.expectWord("is")
	op.kind = testOp
	op.negated = p.skipWord("not")
	op.name = p.expectName()
	switch t := p.current(); {
	case t.is("("):
		op.args = p.arguments()
	case t.kind == kindName && (t.text == "else" || t.text == "or" || t.text == "and"):
	case t.word("is"):
		p.failAt(t.line, "one test cannot follow another")
	case t.kind == kindName || t.kind == kindString || t.kind == kindInteger || t.kind == kindFloat || t.is("[") || t.is("{"):
		p.enter(t.line)
		op.args.positional = []expr{p.postfix(p.primary(), false)}
		p.leave()
	}
}
