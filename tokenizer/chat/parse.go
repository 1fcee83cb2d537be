package chat

import (
	"fmt"
	"slices"
	"strings"
)

// parse reads a template. Its grammar is that of Jinja's statements without those that
// read other files (include, import, extends, block). It panics with an *Error.
func parse(b *budget, template string) []stmt {
	tokens, err := lex(template)
	if err != nil {
		panic(err)
	}
	p := &parser{budget: b, tokens: tokens}
	body, _ := p.statements(0, "")
	return body
}

type parser struct {
	*budget
	tokens []token
	pos    int
	blocks int // open blocks
	exprs  int // nesting of expressions
	loops  int // enclosing loops within the same macro
}

func (p *parser) current() *token { return &p.tokens[p.pos] }

// look returns the token after the current one.
func (p *parser) look() *token { return &p.tokens[min(p.pos+1, len(p.tokens)-1)] }

func (p *parser) take() *token {
	p.step(1)
	t := &p.tokens[p.pos]
	if t.kind != kindEnd {
		p.pos++
	}
	return t
}

func (p *parser) failAt(line int, format string, args ...any) {
	panic(&Error{Line: line, Reason: fmt.Sprintf(format, args...)})
}

func (p *parser) unexpected(want string) {
	p.failAt(p.current().line, "expected %s, got %s", want, p.current())
}

// String describes a token for messages.
func (t *token) String() string {
	switch t.kind {
	case kindEnd:
		return "the end of the template"
	case kindTagEnd:
		return fmt.Sprintf("the end of the tag, %q", t.text)
	case kindString:
		return fmt.Sprintf("the string %.40q", t.text)
	}
	return fmt.Sprintf("%.40q", t.text)
}

func (t *token) is(text string) bool   { return t.kind == kindSign && t.text == text }
func (t *token) word(text string) bool { return t.kind == kindName && t.text == text }

func (p *parser) skip(sign string) bool {
	if p.current().is(sign) {
		p.pos++
		return true
	}
	return false
}

func (p *parser) skipWord(word string) bool {
	if p.current().word(word) {
		p.pos++
		return true
	}
	return false
}

func (p *parser) expect(sign string) {
	if !p.skip(sign) {
		p.unexpected(fmt.Sprintf("%q", sign))
	}
}

func (p *parser) expectWord(word string) {
	if !p.skipWord(word) {
		p.unexpected(fmt.Sprintf("%q", word))
	}
}

func (p *parser) expectName() string {
	if p.current().kind != kindName {
		p.unexpected("a name")
	}
	return p.take().text
}

func (p *parser) endTag() {
	if p.current().kind != kindTagEnd {
		p.unexpected("the end of the tag")
	}
	p.pos++
}

// statements reads statements up to one of the tags named in ends (none: the end of the
// template), and consumes and returns the name of that tag. The block began in the
// given line.
func (p *parser) statements(line int, opener string, ends ...string) ([]stmt, string) {
	if p.blocks++; p.blocks > maxDepth+1 {
		p.failAt(line, "blocks are nested deeper than %d", maxDepth)
	}
	defer func() { p.blocks-- }()
	var body []stmt
	for {
		switch t := p.take(); t.kind {
		case kindEnd:
			if len(ends) > 0 {
				p.failAt(line, "the block %q that starts here has no %q", opener, ends[len(ends)-1])
			}
			return body, ""
		case kindData:
			body = append(body, &text{t.text})
		case kindOutput:
			x := p.tuple(true)
			p.endTag()
			body = append(body, &output{t.line, x})
		case kindBlock:
			word := p.expectName()
			if slices.Contains(ends, word) {
				return body, word
			}
			if s := p.statement(word, t.line); s != nil {
				body = append(body, s)
			}
		}
	}
}

// block reads the end of a tag, and a body that ends with the tag named end.
func (p *parser) block(line int, opener, end string) []stmt {
	p.endTag()
	body, _ := p.statements(line, opener, end)
	p.endTag()
	return body
}

func (p *parser) statement(word string, line int) stmt {
	switch word {
	case "if":
		return p.ifStatement(line)
	case "for":
		return p.forStatement(line)
	case "set":
		return p.set(line)
	case "macro":
		m := &signature{name: p.expectName()}
		p.signature(m)
		loops := p.loops
		p.loops = 0
		m.body = p.block(line, word, "endmacro")
		p.loops = loops
		return &macroStmt{line, m}
	case "call":
		if p.current().is("(") {
			p.signature(&signature{})
		}
		p.expression()
		p.block(line, word, "endcall")
		return &callBlock{line}
	case "generation":
		return &scopedBlock{p.block(line, word, "endgeneration")}
	case "break", "continue":
		if p.loops == 0 {
			p.failAt(line, "%q is not inside a loop", word)
		}
		p.endTag()
		if word == "break" {
			return &jump{broke}
		}
		return &jump{continued}
	case "elif", "else":
		p.failAt(line, "unexpected tag %q", word)
	}
	if strings.HasPrefix(word, "end") {
		p.failAt(line, "unexpected tag %q", word)
	}
	p.failAt(line, "the tag %.40q is not supported", word)
	return nil
}

func (p *parser) ifStatement(line int) stmt {
	s := &ifStmt{}
	start := line
	for {
		b := branch{line: line, cond: p.tuple(false)}
		p.endTag()
		var end string
		b.body, end = p.statements(start, "if", "elif", "else", "endif")
		s.branches = append(s.branches, b)
		switch end {
		case "elif":
			line = p.current().line
			continue
		case "else":
			s.otherwise = p.block(start, "if", "endif")
		default:
			p.endTag()
		}
		return s
	}
}

func (p *parser) forStatement(line int) stmt {
	s := &forStmt{line: line, target: p.target(false)}
	p.expectWord("in")
	s.over = p.tuple(false)
	if p.skipWord("if") {
		s.cond = p.expression()
	}
	if p.current().word("recursive") {
		p.failAt(line, "recursive loops are not supported")
	}
	p.endTag()
	p.loops++
	body, end := p.statements(line, "for", "else", "endfor")
	p.loops--
	s.body = body
	if end == "else" {
		s.otherwise = p.block(line, "for", "endfor")
	} else {
		p.endTag()
	}
	return s
}

func (p *parser) set(line int) stmt {
	t := p.target(true)
	if p.skip("=") {
		s := &setStmt{line, t, p.tuple(true)}
		p.endTag()
		return s
	}
	if p.current().is("|") {
		p.failAt(line, "filters of a set block are not supported")
	}
	return &setBlock{line, t, p.block(line, "set", "endset")}
}

// target reads what is assigned to: a name, names with commas between them or, if attributes
// are allowed, an attribute of a namespace.
func (p *parser) target(attributes bool) target {
	brackets := p.skip("(")
	var names []string
	for {
		n := p.expectName()
		if constant(n) {
			p.failAt(p.current().line, "%q cannot be assigned to", n)
		}
		if attributes && len(names) == 0 && p.skip(".") {
			return target{name: n, attribute: p.expectName()}
		}
		names = append(names, n)
		if !p.skip(",") {
			break
		}
	}
	if brackets {
		p.expect(")")
	}
	if len(names) == 1 {
		return target{name: names[0]}
	}
	return target{tuple: names}
}

func constant(name string) bool {
	switch name {
	case "true", "True", "false", "False", "none", "None":
		return true
	}
	return false
}

func (p *parser) signature(m *signature) {
	p.expect("(")
	for !p.current().is(")") {
		if len(m.names) > 0 {
			p.expect(",")
		}
		n := p.expectName()
		if constant(n) || slices.Contains(m.names, n) {
			p.failAt(p.current().line, "the parameter %q is given twice, or is a constant", n)
		}
		m.names = append(m.names, n)
		if p.skip("=") {
			m.defaults = append(m.defaults, p.expression())
		} else if len(m.defaults) > 0 {
			p.failAt(p.current().line, "the parameter %q without a default follows one that has a default", n)
		}
	}
	p.expect(")")
}

// enter is called before, and leave after, reading anything that may contain itself.
func (p *parser) enter(line int) {
	if p.exprs++; p.exprs > maxNesting {
		p.failAt(line, "expressions are nested deeper than %d", maxNesting)
	}
}

func (p *parser) leave() { p.exprs-- }
