package decl

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/mlxc/mlxc/ir"
)

// Tests is what a Metal source says for the tests of its declarations.
type Tests struct {
	Witnesses   []*Witness
	Equivalents []*Equivalent
}

// Tests reads what the source says for tests when it is first called, because there is much of it
// and programs that run kernels do not need it.
func (s *Source) Tests() (*Tests, error) { return s.tests() }

func (f *family) readTests(ds []*Decl, lines []line) (*Tests, error) {
	out := &Tests{}
	for _, short := range lines {
		all, err := f.alternatives(short)
		if err != nil {
			return nil, err
		}
		for _, l := range all {
			if err := out.read(ds, l); err != nil {
				return nil, l.errorf("%w", err)
			}
		}
	}
	return out, nil
}

// read reads a @witness or @equivalent line.
func (t *Tests) read(ds []*Decl, l line) error {
	if l.key == "equivalent" {
		e, err := parseEquivalent(l.text)
		if err != nil {
			return err
		}
		e.File, e.Line = l.file, l.no
		t.Equivalents = append(t.Equivalents, e)
		return nil
	}
	w, err := parseWitness(l.text)
	if err != nil {
		return err
	}
	w.File, w.Line = l.file, l.no
	t.Witnesses = append(t.Witnesses, w)
	return w.fits(ds)
}

// fits returns an error if w is of none of the declarations, or names what no declaration of a kernel
// has.
func (w *Witness) fits(ds []*Decl) error {
	matched := false
	for _, d := range ds {
		if !w.Matches(d.Name) {
			continue
		}
		matched = true
		name := w.unknown(d)
		known := func(other *Decl) bool { return other.Name == d.Name && w.unknown(other) == "" }
		if name != "" && !slices.ContainsFunc(ds, known) {
			return fmt.Errorf("kernel %s has no constant or argument %q", d.Name, name)
		}
	}
	if !matched {
		return fmt.Errorf("this file declares no kernel %s", w.Function)
	}
	return nil
}

// unknown returns a name that w uses and d does not have.
func (w *Witness) unknown(d *Decl) string {
	for name := range w.Values {
		_, arg := d.ArgNamed(name)
		if !arg && !slices.ContainsFunc(d.Constants, func(c Constant) bool { return c.Name == name }) {
			return name
		}
	}
	for _, name := range w.Inplace {
		if _, ok := d.ArgNamed(name); !ok && name != "" {
			return name
		}
	}
	return ""
}

// Witness is a @witness line: a dispatch as an engine makes it, which the declarations of its
// function must describe, or one that they must refuse. Running a kernel on any executor shows
// whether the declared bytes and values are right. Declared grids, threadgroup sizes and conditions
// matter only on a GPU, so they are compared with witnesses.
type Witness struct {
	File     string
	Line     int
	Function string             // a pattern of path.Match
	Values   map[string][]int64 // of constants, by name; what is not given is 0, or 1.0
	Indices  map[string]uint16  // of those that are function constants
	Inplace  [2]string          // two arguments that are bound to one view, or none
	Kind     ir.GridKind
	Grid     [3]int64
	Group    [3]uint32
	OK       bool // described, not refused
}

func (w *Witness) String() string { return fmt.Sprintf("%s:%d", w.File, w.Line) }

// Matches reports whether w is about a function.
func (w *Witness) Matches(function string) bool {
	ok, err := path.Match(w.Function, function)
	return ok && err == nil
}

// parseWitness reads FUNCTION ; VALUES ; UNIT x y z / x y z ; VERDICT.
func parseWitness(text string) (*Witness, error) {
	parts := strings.Split(text, ";")
	if len(parts) != 4 {
		return nil, fmt.Errorf("has %d parts, not FUNCTION ; VALUES ; GRID ; VERDICT", len(parts))
	}
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	w := &Witness{Function: parts[0], Values: map[string][]int64{}, Indices: map[string]uint16{}, OK: parts[3] == "ok"}
	if !w.OK && parts[3] != "refused" {
		return nil, fmt.Errorf("the verdict %q is neither ok nor refused", parts[3])
	}
	for _, f := range strings.Fields(parts[1]) {
		name, list, _ := strings.Cut(f, "=")
		if name == "inplace" {
			out, in, _ := strings.Cut(list, ",")
			w.Inplace = [2]string{out, in}
			continue
		}
		if at, index, ok := strings.Cut(name, "@"); ok {
			i, err := strconv.ParseUint(index, 10, 16)
			if err != nil {
				return nil, fmt.Errorf("%s: %q is no index of a function constant", f, index)
			}
			name = at
			w.Indices[name] = uint16(i)
		}
		for _, s := range strings.Split(list, ",") {
			v, err := strconv.ParseInt(s, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("%s: %q is no integer", f, s)
			}
			w.Values[name] = append(w.Values[name], v)
		}
	}
	var unit string
	if _, err := fmt.Sscanf(parts[2], "%s %d %d %d / %d %d %d", &unit, &w.Grid[0], &w.Grid[1], &w.Grid[2], &w.Group[0], &w.Group[1], &w.Group[2]); err != nil {
		return nil, fmt.Errorf("the grid %q is not UNIT x y z / x y z: %w", parts[2], err)
	}
	switch unit {
	case "groups":
		w.Kind = ir.Threadgroups
	case "threads":
		w.Kind = ir.Threads
	default:
		return nil, fmt.Errorf("%q is neither groups nor threads", unit)
	}
	return w, nil
}

// Equivalent is an @equivalent line. It names a corruption that leaves a declaration true, and says
// why (package backend/conformance corrupts declarations).
type Equivalent struct {
	File        string
	Line        int
	Declaration string // a pattern of path.Match for function#number
	Corruption  string // as it is reported, with * for any text and ? for any byte
	Reason      string
}

func (e *Equivalent) String() string { return fmt.Sprintf("%s:%d", e.File, e.Line) }

// parseEquivalent reads DECLARATION ; CORRUPTION ; REASON.
func parseEquivalent(text string) (*Equivalent, error) {
	parts := strings.SplitN(text, ";", 3)
	if len(parts) != 3 {
		return nil, fmt.Errorf("has %d parts, not DECLARATION ; CORRUPTION ; REASON", len(parts))
	}
	e := &Equivalent{Declaration: strings.TrimSpace(parts[0]), Corruption: strings.TrimSpace(parts[1]), Reason: strings.TrimSpace(parts[2])}
	if e.Reason == "" {
		return nil, fmt.Errorf("gives no reason")
	}
	return e, nil
}
