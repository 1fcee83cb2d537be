package chat

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nikolalohinski/gonja/v2/builtins"
	"github.com/nikolalohinski/gonja/v2/exec"
)

// This file replaces what gonja does differently from Jinja and Python in
// things that chat templates use every day.

// list is a list whose l[-len(l)] is its first element: gonja's are off by one
// there, so that messages[-1] of a single message is undefined. Slices of a
// list are lists.
type list []any

// GetItem is gonja's hook for l[key].
func (l list) GetItem(key any) (*exec.Value, bool) {
	i, ok := key.(int)
	if !ok {
		return exec.AsValue(nil), false
	}
	if i < 0 {
		i += len(l)
	}
	if i < 0 || i >= len(l) {
		return exec.AsValue(nil), false
	}
	return exec.ToValue(l[i]), true
}

// toList makes a list of any gonja list; other values stay as they are.
func toList(v *exec.Value) *exec.Value {
	if v.IsError() || !v.IsList() {
		return v
	}
	out := make(list, 0, v.Len())
	v.Iterate(func(_, _ int, item, _ *exec.Value) bool {
		out = append(out, item.Interface())
		return true
	}, func() {})
	return exec.AsValue(out)
}

// dict keeps the order of its keys, which a Go map does not.
func dict(keysAndValues ...string) *exec.Dict {
	d := exec.NewDict()
	for i := 0; i < len(keysAndValues); i += 2 {
		d.Pairs = append(d.Pairs, &exec.Pair{Key: exec.AsValue(keysAndValues[i]), Value: exec.AsValue(keysAndValues[i+1])})
	}
	return d
}

// pairs is a mapping as a list of [key, value]: what a loop over two variables
// can take apart. gonja's own results come out as nothing there.
func pairs(v *exec.Value) list {
	out := list{}
	v.Iterate(func(_, _ int, key, value *exec.Value) bool {
		out = append(out, list{key.Interface(), value.Interface()})
		return true
	}, func() {})
	return out
}

func mapping(name string, fn func(*exec.Value) list) exec.FilterFunction {
	return func(_ *exec.Evaluator, in *exec.Value, args *exec.VarArgs) *exec.Value {
		switch {
		case in.IsError():
			return in
		case in.IsNil() && name == "items":
			return exec.AsValue(list{})
		case !in.IsDict():
			return exec.AsValue(fmt.Errorf("%s wants a mapping", name))
		case len(args.Args)+len(args.KwArgs) > 0:
			return exec.AsValue(fmt.Errorf("%s with arguments is not supported", name))
		}
		return exec.AsValue(fn(in))
	}
}

// filters is a copy of gonja's (they are shared by the whole program) with
// repairs.
func filters() *exec.FilterSet {
	own := map[string]exec.FilterFunction{
		"tojson": toJSON,
		"items":  mapping("items", pairs),
		"dictsort": mapping("dictsort", func(v *exec.Value) list {
			p := pairs(v)
			slices.SortStableFunc(p, func(a, b any) int {
				key := func(x any) string { return strings.ToLower(fmt.Sprint(x.(list)[0])) }
				return strings.Compare(key(a), key(b))
			})
			return p
		}),
	}
	for _, name := range strings.Fields("batch list map reject rejectattr reverse select selectattr slice sort unique") {
		f, ok := builtins.Filters.Get(name)
		if !ok {
			panic(fmt.Sprintf("chat: gonja has no filter %q", name)) // another version of gonja
		}
		own[name] = func(e *exec.Evaluator, in *exec.Value, args *exec.VarArgs) *exec.Value {
			return toList(f(e, in, args))
		}
	}
	all := exec.NewFilterSet(map[string]exec.FilterFunction{}).Update(builtins.Filters)
	return all.Update(exec.NewFilterSet(own))
}

// methods is gonja's, with repairs to those of strings and dictionaries.
func methods() exec.Methods {
	m := builtins.Methods
	str := map[string]exec.Method[string]{}
	for _, name := range strings.Fields(`capitalize casefold center count encode endswith expandtabs find format index isalnum isalpha
		isascii isdecimal isdigit islower isnumeric isprintable isspace istitle isupper join ljust lower partition removeprefix
		removesuffix rfind rindex rjust rpartition startswith swapcase title upper zfill`) {
		if f, ok := builtins.Methods.Str.Get(name); ok {
			str[name] = f
		}
	}
	str["strip"] = stripMethod(true, true)
	str["lstrip"] = stripMethod(true, false)
	str["rstrip"] = stripMethod(false, true)
	str["split"] = splitMethod(false)
	str["rsplit"] = splitMethod(true)
	str["splitlines"] = func(self string, _ *exec.Value, args *exec.VarArgs) (any, error) {
		if len(args.Args)+len(args.KwArgs) > 0 {
			return nil, errors.New("splitlines with arguments is not supported")
		}
		return splitLines(self), nil
	}
	str["replace"] = func(self string, _ *exec.Value, args *exec.VarArgs) (any, error) {
		a, err := arguments(args, "old", "new", "count")
		if err != nil {
			return nil, err
		}
		if a[0] == nil || !a[0].IsString() || a[1] == nil || !a[1].IsString() || a[2] != nil && !a[2].IsInteger() {
			return nil, errors.New("replace wants two strings, and perhaps a count")
		}
		count := -1
		if a[2] != nil {
			count = a[2].Integer()
		}
		return strings.Replace(self, a[0].String(), a[1].String(), count), nil
	}
	m.Str = exec.NewMethodSet(str)

	// Of dictionaries those that Jinja's immutable sandbox allows.
	get, ok := builtins.Methods.Dict.Get("get")
	if !ok {
		panic("chat: gonja has no dictionary method get") // another version of gonja
	}
	column := func(i int) exec.Method[map[string]any] {
		return func(_ map[string]any, self *exec.Value, _ *exec.VarArgs) (any, error) {
			out := list{}
			for _, p := range pairs(self) {
				out = append(out, p.(list)[i])
			}
			return out, nil
		}
	}
	m.Dict = exec.NewMethodSet(map[string]exec.Method[map[string]any]{
		"get":    get,
		"keys":   column(0),
		"values": column(1),
		"items": func(_ map[string]any, self *exec.Value, _ *exec.VarArgs) (any, error) {
			return pairs(self), nil
		},
	})
	return m
}

// arguments sorts positional and keyword arguments into the named places; one
// that is absent is nil.
func arguments(args *exec.VarArgs, names ...string) ([]*exec.Value, error) {
	out := make([]*exec.Value, len(names))
	if len(args.Args) > len(names) {
		return nil, fmt.Errorf("%d arguments, at most %d are taken", len(args.Args), len(names))
	}
	copy(out, args.Args)
	for name, v := range args.KwArgs {
		i := slices.Index(names, name)
		if i < 0 || out[i] != nil {
			return nil, fmt.Errorf("argument %q is unknown, or given twice", name)
		}
		out[i] = v
	}
	return out, nil
}

// stripMethod is Python's strip: white space, or the characters of a string.
func stripMethod(left, right bool) exec.Method[string] {
	return func(self string, _ *exec.Value, args *exec.VarArgs) (any, error) {
		a, err := arguments(args, "chars")
		if err != nil {
			return nil, err
		}
		drop := isSpace
		if a[0] != nil && !a[0].IsNil() {
			if !a[0].IsString() {
				return nil, errors.New("strip wants a string")
			}
			chars := a[0].String()
			drop = func(r rune) bool { return strings.ContainsRune(chars, r) }
		}
		if left {
			self = strings.TrimLeftFunc(self, drop)
		}
		if right {
			self = strings.TrimRightFunc(self, drop)
		}
		return self, nil
	}
}

// splitMethod is Python's split, or rsplit.
func splitMethod(fromRight bool) exec.Method[string] {
	return func(self string, _ *exec.Value, args *exec.VarArgs) (any, error) {
		a, err := arguments(args, "sep", "maxsplit")
		if err != nil {
			return nil, err
		}
		most := -1
		if a[1] != nil {
			if !a[1].IsInteger() {
				return nil, errors.New("split wants a whole number as maxsplit")
			}
			most = a[1].Integer()
		}
		if a[0] == nil || a[0].IsNil() {
			if most >= 0 {
				return nil, errors.New("split at white space with a maxsplit is not supported")
			}
			return strs(strings.FieldsFunc(self, isSpace)), nil
		}
		if !a[0].IsString() || a[0].String() == "" {
			return nil, errors.New("split wants a separator that is not empty")
		}
		parts := strings.Split(self, a[0].String())
		if most >= 0 && most < len(parts)-1 {
			sep, cut := a[0].String(), most
			if fromRight {
				cut = len(parts) - 1 - most
				parts = append([]string{strings.Join(parts[:cut+1], sep)}, parts[cut+1:]...)
			} else {
				parts = append(slices.Clone(parts[:cut]), strings.Join(parts[cut:], sep))
			}
		}
		return strs(parts), nil
	}
}

// splitLines is Python's splitlines: an end of line does not begin another one.
func splitLines(s string) list {
	out := list{}
	for s != "" {
		i := strings.IndexAny(s, "\n\r\v\f\x1c\x1d\x1e\u0085\u2028\u2029")
		if i < 0 {
			return append(out, s)
		}
		out = append(out, s[:i])
		rest := s[i:]
		if after, ok := strings.CutPrefix(rest, "\r\n"); ok {
			s = after
			continue
		}
		for _, r := range rest {
			s = rest[len(string(r)):]
			break
		}
	}
	return out
}

func strs(parts []string) list {
	out := make(list, len(parts))
	for i, p := range parts {
		out[i] = p
	}
	return out
}
