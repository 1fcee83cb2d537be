package msl

import (
	"slices"
	"strings"
)

// Only returns a Metal source without the instances of kernel templates that are not among
// functions. A compiler generates code for every instance, and a source may have thousands. Lines
// keep their numbers.
//
// It leaves out statements like
//
//	template [[host_name("rmsfloat32")]] [[kernel]] decltype(rms<float>) rms<float>;
//
// outside of braces, and uses of macros that the source defines unconditionally and that expand
// only to such statements. It keeps everything else, also what it cannot parse.
func Only(text string, functions []string) string {
	s, ok := scan(text)
	if !ok {
		return text
	}
	o := only{scanned: s, keep: functions, macros: map[string]*macro{}}
	if !o.run() {
		return text
	}
	o.out.WriteString(text[o.done:])
	return o.out.String()
}

// only holds a source while instances are removed from it.
type only struct {
	scanned
	keep     []string
	macros   map[string]*macro // by name; nil if it cannot be expanded here
	inside   int               // how many conditionals are open
	includes bool              // it includes other files, whose macros are not known
	out      strings.Builder
	done     int // bytes of the text that were copied to out or left out so far
}

// macro is a macro with parameters.
type macro struct {
	params []string
	body   []string // tokens
}

// run visits the statements outside of braces one after another. It returns false if it cannot
// parse the source.
func (o *only) run() bool {
	for i := 0; i < len(o.tokens); {
		t := o.text(i)
		next := ""
		if i+1 < len(o.tokens) {
			next = o.text(i + 1)
		}
		switch {
		case o.tokens[i].directive:
			if !o.directive(t) {
				return false
			}
			i++
		case t == "template" && next != "<":
			end := o.until(i, ";")
			if end < 0 {
				return true
			}
			if host, ok := hostOf(o.texts(i, end+1)); ok && !slices.Contains(o.keep, host) {
				o.replace(i, end, nil)
			}
			i = end + 1
		case next == "(" && o.macros[t] != nil:
			end := o.until(i+1, ")")
			if end < 0 {
				return true
			}
			use := o.texts(i, end+1)
			if end+1 < len(o.tokens) && o.text(end+1) == ";" {
				end++
			}
			if kept, ok := o.expanded(use); ok {
				o.replace(i, end, kept)
			}
			i = end + 1
		default:
			depth := 0
			for ended := false; i < len(o.tokens) && !ended; i++ {
				switch t := o.text(i); {
				case o.tokens[i].directive:
					if !o.directive(t) {
						return false
					}
				case t == "{" || t == "(" || t == "[":
					depth++
				case t == "}" || t == ")" || t == "]":
					if depth--; depth < 0 {
						return false
					}
					// A use of a macro that expands to other statements ends here, or a body does.
					ended = depth == 0 && (t == "}" || t == ")" && i+1 < len(o.tokens) && o.text(i+1) == "template")
				case t == ";":
					ended = depth == 0
				}
			}
		}
	}
	return true
}

// until returns the index of the token that ends the statement, or the parentheses, that begin at
// from. It returns −1 if they do not end, or a directive comes first.
func (o *only) until(from int, end string) int {
	depth := 0
	for i := from; i < len(o.tokens); i++ {
		if o.tokens[i].directive {
			return -1
		}
		switch o.text(i) {
		case "(", "[", "{":
			depth++
		case ")", "]", "}":
			depth--
		}
		if depth == 0 && o.text(i) == end {
			return i
		}
	}
	return -1
}

// replace replaces the tokens from first to last by statements. It keeps their line ends.
func (o *only) replace(first, last int, statements []string) {
	from, to := o.tokens[first].from, o.tokens[last].to
	o.out.WriteString(o.source[o.done:from])
	o.out.WriteString(strings.Join(statements, " "))
	o.out.WriteString(strings.Repeat("\n", strings.Count(o.source[from:to], "\n")))
	o.done = to
}

// directive processes a preprocessor line. It returns false if the source cannot be handled.
func (o *only) directive(line string) bool {
	line = strings.ReplaceAll(line, "\\\n", " ")
	s, ok := scan(strings.TrimSpace(line)[1:])
	if !ok || len(s.tokens) == 0 {
		return ok
	}
	switch s.text(0) {
	case "if", "ifdef", "ifndef":
		o.inside++
	case "endif":
		o.inside--
		return o.inside >= 0
	case "include", "import":
		o.includes = o.includes || len(s.tokens) > 1 && s.text(1) != "<"
	case "undef", "define":
		if len(s.tokens) < 2 {
			return false
		}
		name := s.text(1)
		_, again := o.macros[name]
		o.macros[name] = nil
		if m := s.macro(); m != nil && !again && o.inside == 0 && s.text(0) == "define" {
			o.macros[name] = m
		}
	}
	return true
}

// macro returns the macro that a line defines. It returns nil if that has no parameters, or is
// variadic.
func (s *scanned) macro() *macro {
	if len(s.tokens) < 4 || s.text(2) != "(" || s.tokens[2].from != s.tokens[1].to {
		return nil
	}
	m := &macro{}
	i := 3
	for ; i < len(s.tokens) && s.text(i) != ")"; i++ {
		switch t := s.text(i); {
		case t == "...":
			return nil
		case t != ",":
			m.params = append(m.params, t)
		}
	}
	if i == len(s.tokens) {
		return nil
	}
	m.body = s.texts(i+1, len(s.tokens))
	return m
}

// expanded returns the wanted instances that a use of a macro makes. ok is false if it also makes
// other statements.
func (o *only) expanded(use []string) (kept []string, ok bool) {
	if o.includes {
		return nil, false
	}
	room := 1 << 16
	tokens, ok := o.expand(use, nil, &room)
	if !ok {
		return nil, false
	}
	for len(tokens) > 0 {
		end := slices.Index(tokens, ";")
		if end < 0 {
			return nil, false
		}
		statement := tokens[:end+1]
		tokens = tokens[end+1:]
		if end == 0 {
			continue
		}
		host, ok := hostOf(statement)
		if !ok {
			return nil, false
		}
		if slices.Contains(o.keep, host) {
			kept = append(kept, strings.Join(statement, " "))
		}
	}
	return kept, true
}

// expand expands macros with parameters in tokens, as the preprocessor does. It leaves macros
// without parameters alone, because the compiler expands them later. ok is false if that would give
// another result. within are the macros that are being expanded; room is how many more tokens may
// be made.
func (o *only) expand(tokens, within []string, room *int) (out []string, ok bool) {
	for i := 0; i < len(tokens); {
		name := tokens[i]
		m, is := o.macros[name]
		if !is || i+1 == len(tokens) || tokens[i+1] != "(" {
			out = append(out, name)
			i++
			continue
		}
		args, n := arguments(tokens[i+1:])
		if m == nil || n < 0 || len(args) != len(m.params) || slices.Contains(within, name) {
			return nil, false
		}
		for _, a := range args {
			if len(a) == 1 && o.macros[a[0]] != nil {
				continue // a macro with parameters, without any here, stays until the body gives it some
			}
			if slices.ContainsFunc(a, func(t string) bool { _, is := o.macros[t]; return is }) {
				return nil, false // whether it is expanded depends on the tokens after the expansion
			}
		}
		body, ok := m.with(args)
		if *room -= len(body) + 1; !ok || *room < 0 {
			return nil, false
		}
		if body, ok = o.expand(body, append(slices.Clip(within), name), room); !ok {
			return nil, false
		}
		out = append(out, body...)
		i += 1 + n
	}
	return out, true
}

// arguments splits the tokens in parentheses at commas. n is their number, or −1 if the parentheses
// do not end.
func arguments(tokens []string) (args [][]string, n int) {
	depth, from := 0, 1
	for i, t := range tokens {
		switch t {
		case "(":
			depth++
		case ")":
			if depth--; depth == 0 {
				return append(args, tokens[from:i]), i + 1
			}
		case ",":
			if depth == 1 {
				args, from = append(args, tokens[from:i]), i+1
			}
		}
	}
	return nil, -1
}

// with returns the macro's body with args in place of its parameters.
func (m *macro) with(args [][]string) (out []string, ok bool) {
	pasted := false // the next token is joined to the last one
	add := func(tokens ...string) {
		if pasted && len(out) > 0 && len(tokens) > 0 {
			out[len(out)-1] += tokens[0]
			tokens = tokens[1:]
		}
		pasted = false
		out = append(out, tokens...)
	}
	for i := 0; i < len(m.body); i++ {
		t := m.body[i]
		if t == "#" {
			if i+1 < len(m.body) && m.body[i+1] == "#" {
				i, pasted = i+1, true
				continue
			}
			if i+1 == len(m.body) {
				return nil, false
			}
			p := slices.Index(m.params, m.body[i+1])
			// The text of several tokens depends on the spaces between them, which are not kept.
			if p < 0 || len(args[p]) != 1 || strings.ContainsAny(args[p][0], `"\`) {
				return nil, false
			}
			add(`"` + args[p][0] + `"`)
			i++
			continue
		}
		if p := slices.Index(m.params, t); p >= 0 {
			add(args[p]...)
			continue
		}
		add(t)
	}
	return out, !pasted
}

// hostOf returns the name by which a host knows the kernel of an instance. ok is false if the
// statement is not an instance, or its kernel has no such name.
func hostOf(statement []string) (host string, ok bool) {
	if statement[0] != "template" || slices.Contains(statement, "{") {
		return "", false
	}
	i := slices.Index(statement, "host_name")
	if i < 0 || i+1 >= len(statement) || statement[i+1] != "(" {
		return "", false
	}
	for i += 2; i < len(statement) && statement[i] != ")"; i++ {
		t := statement[i]
		if len(t) < 2 || t[0] != '"' || strings.Contains(t, `\`) {
			return "", false
		}
		host += t[1 : len(t)-1]
	}
	return host, host != ""
}
