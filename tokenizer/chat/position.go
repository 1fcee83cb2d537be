package chat

import (
	"errors"
	"regexp"
	"strconv"
	"strings"

	"github.com/nikolalohinski/gonja/v2/exec"
	"github.com/nikolalohinski/gonja/v2/nodes"
	"github.com/nikolalohinski/gonja/v2/parser"
)

// located adds a line to the errors of a tag's parser, many of which have none.
func located(parse parser.ControlStructureParser) parser.ControlStructureParser {
	return func(p, args *parser.Parser) (nodes.ControlStructure, error) {
		line := 0
		if t := args.Current(); t != nil {
			line = t.Line
		}
		if line == 0 {
			if t := p.Current(); t != nil {
				line = t.Line
			}
		}
		cs, err := parse(p, args)
		if err == nil {
			return cs, nil
		}
		var s *parser.SyntaxError
		var e *Error
		if errors.As(err, &s) && s.Line > 0 || errors.As(err, &e) {
			return nil, err // something inside knew better
		}
		return nil, &Error{Line: line, Reason: err.Error(), Err: err}
	}
}

// parseError is what gonja says about a template that it cannot parse, without
// the whole source, which it puts in front.
func parseError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	var s *parser.SyntaxError
	if errors.As(err, &s) {
		return &Error{Line: s.Line, Reason: s.Message, Err: err}
	}
	reason := err.Error()
	if inner := errors.Unwrap(err); inner != nil {
		reason = inner.Error()
	}
	return &Error{Reason: reason, Err: err}
}

// gonjaLine finds the places that the renderer puts in front of an error, from
// the outermost tag to the expression that failed.
var gonjaLine = regexp.MustCompile(`Unable to (?:render expression|render condition|execute controlStructure) at line (\d+): `)

// error turns a rendering error into an *Error.
func (r *run) error(err error) *Error {
	full := err.Error()
	reason := full
	if r.raised != nil {
		reason = *r.raised
		if i := strings.LastIndex(full, reason); i >= 0 {
			full = full[:i] // a line number in the template's own words is none
		}
	}
	line := 0
	if all := gonjaLine.FindAllStringSubmatchIndex(full, -1); len(all) > 0 {
		last := all[len(all)-1]
		line, _ = strconv.Atoi(full[last[2]:last[3]]) // it is digits
		if r.raised == nil {
			// What follows is the node's dump, then ": ", then the cause.
			reason = full[last[1]:]
			if _, cause, ok := strings.Cut(reason, "): "); ok {
				reason = cause
			}
		}
	}
	return &Error{Line: line, Reason: reason, Err: err}
}

// structure is a tag whose Execute something is added to.
type structure struct {
	exec.ControlStructure
	after func(*exec.Renderer) error
}

func (s structure) Execute(r *exec.Renderer, tag *nodes.ControlStructureBlock) error {
	if err := s.ControlStructure.Execute(r, tag); err != nil {
		return err
	}
	return s.after(r)
}
