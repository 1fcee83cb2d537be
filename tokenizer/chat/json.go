package chat

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/nikolalohinski/gonja/v2/exec"
)

// toJSON is the filter tojson as transformers define it: Python's json.dumps
// with ensure_ascii=False, so nothing is escaped for HTML, ", " and ": "
// separate, and keys stay in order.
func toJSON(_ *exec.Evaluator, in *exec.Value, args *exec.VarArgs) *exec.Value {
	if in.IsError() {
		return in
	}
	j := jsonWriter{indent: -1}
	for name, v := range args.KwArgs {
		switch {
		case name == "indent" && v.IsInteger() && v.Integer() >= 0 && v.Integer() <= 16:
			j.indent = v.Integer()
		case name == "indent" && v.IsNil(), name == "ensure_ascii" && !v.IsTrue():
		default:
			return exec.AsValue(fmt.Errorf("tojson: argument %s=%s is not supported", name, v))
		}
	}
	if len(args.Args) > 0 {
		return exec.AsValue(errors.New("tojson: only indent and ensure_ascii are supported, by name"))
	}
	if err := j.value(in, 0); err != nil {
		return exec.AsValue(fmt.Errorf("tojson: %w", err))
	}
	return exec.AsSafeValue(j.String())
}

type jsonWriter struct {
	strings.Builder
	indent int // columns per level; negative: all in one line
}

func (j *jsonWriter) value(v *exec.Value, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("nested deeper than %d", maxDepth)
	}
	switch {
	case v == nil || v.IsNil():
		j.WriteString("null")
	case v.IsError():
		return errors.New(v.Error())
	case v.IsBool():
		fmt.Fprint(j, v.Bool())
	case v.IsInteger():
		fmt.Fprint(j, v.Integer())
	case v.IsFloat():
		j.WriteString(v.String()) // as Python prints it: 1.0
	case v.IsString():
		return j.text(v.String())
	case v.IsList():
		return j.items("[", "]", v, depth, func(item, _ *exec.Value) error { return j.value(item, depth+1) })
	case v.IsDict():
		return j.items("{", "}", v, depth, func(key, value *exec.Value) error {
			if !key.IsString() {
				return fmt.Errorf("key %s is not a string", key)
			}
			if err := j.text(key.String()); err != nil {
				return err
			}
			j.WriteString(": ")
			return j.value(value, depth+1)
		})
	default:
		return fmt.Errorf("%s is not data", v)
	}
	return nil
}

func (j *jsonWriter) items(open, close string, v *exec.Value, depth int, each func(a, b *exec.Value) error) error {
	line := func(depth int) {
		if j.indent >= 0 {
			j.WriteString("\n" + strings.Repeat(" ", depth*j.indent))
		}
	}
	j.WriteString(open)
	n := 0
	var err error
	v.Iterate(func(_, _ int, a, b *exec.Value) bool {
		if n++; n > 1 {
			j.WriteByte(',')
			if j.indent < 0 {
				j.WriteByte(' ')
			}
		}
		line(depth + 1)
		err = each(a, b)
		return err == nil
	}, func() {})
	if n > 0 {
		line(depth)
	}
	j.WriteString(close)
	return err
}

// unescape undoes what encoding/json escapes and Python does not. The first
// pair keeps an escaped backslash from being taken for the start of another.
var unescape = strings.NewReplacer(`\\`, `\\`, `\u2028`, "\u2028", `\u2029`, "\u2029", `\u007f`, "\x7f")

func (j *jsonWriter) text(s string) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return err
	}
	j.WriteString(unescape.Replace(strings.TrimSuffix(b.String(), "\n")))
	return nil
}
