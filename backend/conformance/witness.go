package conformance

import (
	_ "embed"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/decl"
)

//go:embed witness.txt
var witnessText string

// witness is a dispatch that an engine makes, or must not make: a line of
// witness.txt.
type witness struct {
	line     int
	function string // a pattern
	values   map[string][]int64
	indices  map[string]uint16 // of function constants
	inplace  [2]string
	kind     ir.GridKind
	grid     [3]int64
	group    [3]uint32
	ok       bool
}

func (w *witness) String() string { return fmt.Sprintf("witness.txt:%d", w.line) }

var witnesses = sync.OnceValues(func() ([]*witness, error) { return parseWitnesses(witnessText) })

func parseWitnesses(text string) ([]*witness, error) {
	var out []*witness
	for i, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		if strings.TrimSpace(line) == "" {
			continue
		}
		w, err := parseWitness(line)
		if err != nil {
			return nil, fmt.Errorf("witness.txt:%d: %w", i+1, err)
		}
		w.line = i + 1
		out = append(out, w)
	}
	return out, nil
}

func parseWitness(line string) (*witness, error) {
	parts := strings.Split(line, ";")
	if len(parts) != 4 {
		return nil, fmt.Errorf("has %d parts, not 4", len(parts))
	}
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	w := &witness{function: parts[0], values: map[string][]int64{}, indices: map[string]uint16{}, ok: parts[3] == "ok"}
	if !w.ok && parts[3] != "refused" {
		return nil, fmt.Errorf("the verdict %q is neither ok nor refused", parts[3])
	}
	for _, f := range strings.Fields(parts[1]) {
		name, list, _ := strings.Cut(f, "=")
		if name == "inplace" {
			out, in, _ := strings.Cut(list, ",")
			w.inplace = [2]string{out, in}
			continue
		}
		if at, index, ok := strings.Cut(name, "@"); ok {
			i, err := strconv.ParseUint(index, 10, 16)
			if err != nil {
				return nil, err
			}
			name = at
			w.indices[name] = uint16(i)
		}
		for _, s := range strings.Split(list, ",") {
			v, err := strconv.ParseInt(s, 10, 64)
			if err != nil {
				return nil, err
			}
			w.values[name] = append(w.values[name], v)
		}
	}
	var unit string
	if _, err := fmt.Sscanf(parts[2], "%s %d %d %d / %d %d %d", &unit, &w.grid[0], &w.grid[1], &w.grid[2], &w.group[0], &w.group[1], &w.group[2]); err != nil {
		return nil, fmt.Errorf("the grid %q is not UNIT x y z / x y z: %w", parts[2], err)
	}
	switch unit {
	case "groups":
		w.kind = ir.Threadgroups
	case "threads":
		w.kind = ir.Threads
	default:
		return nil, fmt.Errorf("%q is neither groups nor threads", unit)
	}
	return w, nil
}

func (w *witness) matches(function string) bool {
	ok, err := path.Match(w.function, function)
	return ok && err == nil
}

// describes reports whether one of the declarations, all of one function,
// describes the dispatch, and else why the last one does not.
func (w *witness) describes(ds []*decl.Decl) error {
	var err error
	for _, d := range ds {
		if err = w.bind(d); err == nil {
			return nil
		}
	}
	return err
}

func (w *witness) bind(d *decl.Decl) error {
	b := ir.NewBuilder("witness")
	var constants []ir.FunctionConstant
	for _, c := range d.Constants {
		index := c.Index
		if i, ok := w.indices[c.Name]; ok {
			index = i // a kernel that is built with the right index
		}
		constants = append(constants, ir.FunctionConstant{Index: index, Name: c.Name, Type: c.Type, Bits: uint64(w.value(c.Name, 0))})
	}
	n := ir.Dispatch{Kernel: b.Kernel(d.Kernel(d.Name, constants...)), GridKind: w.kind, Threadgroup: w.group}
	for i, v := range w.grid {
		n.Grid[i] = ir.Ext(v)
	}
	mems := map[string]ir.MemID{}
	for i := range d.Args {
		switch a := &d.Args[i]; {
		case a.Mode == decl.Unused || a.Kind == ir.ThreadgroupArg:
		case a.Kind == ir.DeviceArg:
			name := a.Name
			if name == w.inplace[0] {
				name = w.inplace[1]
			}
			if _, ok := mems[name]; !ok {
				mems[name] = b.Memory(ir.Memory{Name: name, Kind: ir.State, Size: 1 << 40})
			}
			n.Bindings = append(n.Bindings, ir.BufferArg(a.Slot, ir.ViewOf(mems[name], 0, 1<<40)))
		default:
			var raw []byte
			for j := range int(a.Count) {
				raw = appendElement(raw, a.Type, w.value(a.Name, j), 1)
			}
			n.Bindings = append(n.Bindings, ir.BytesArg(a.Slot, raw))
		}
	}
	in, err := d.Bind(b.Unfinished(), b.Dispatch(n))
	if err != nil {
		return err
	}
	if _, err := in.Effects(); err != nil {
		return err
	}
	return in.CheckAliasing()
}

func (w *witness) value(name string, i int) int64 {
	if v := w.values[name]; i < len(v) {
		return v[i]
	}
	return 0
}

// unknown returns a name that w gives a value to and d does not have.
func (w *witness) unknown(d *decl.Decl) string {
	for name := range w.values {
		_, arg := d.ArgNamed(name)
		if !arg && !slices.ContainsFunc(d.Constants, func(c decl.Constant) bool { return c.Name == name }) {
			return name
		}
	}
	for _, name := range w.inplace {
		if _, ok := d.ArgNamed(name); !ok && name != "" {
			return name
		}
	}
	return ""
}

// errWitness is wrapped by what witnessed returns.
var errWitness = errors.New("declarations and witnesses disagree")

// witnessed compares the declarations of a function with every witness of it.
func witnessed(function string, ds []*decl.Decl) error {
	all, err := witnesses()
	if err != nil {
		return err
	}
	for _, w := range all {
		if !w.matches(function) {
			continue
		}
		switch err := w.describes(ds); {
		case w.ok && err != nil:
			return fmt.Errorf("%v: an engine makes this dispatch of %s, %w: %w", w, function, errWitness, err)
		case !w.ok && err == nil:
			return fmt.Errorf("%v: a dispatch of %s that must be refused: %w", w, function, errWitness)
		}
	}
	return nil
}

// dispatch makes the witness's dispatch, ready to run. d describes it.
func (w *witness) dispatch(d *decl.Decl) (*dispatch, error) {
	a := w.assign(d)
	if err := a.lets(); err != nil {
		return nil, err
	}
	b := &builder{a: a, r: a.r, pair: [2]int{-1, -1}, fixed: w}
	if w.inplace[0] != "" {
		for i, x := range d.Args {
			switch x.Name {
			case w.inplace[0]:
				b.pair[0] = i
			case w.inplace[1]:
				b.pair[1] = i
			}
		}
	}
	return b.build(0)
}

// assign gives the symbols of d the witness's values.
func (w *witness) assign(d *decl.Decl) *assignment {
	a := newAssignment(d, rand.New(rand.NewPCG(uint64(w.line), 3)))
	set := func(s int, v int64) {
		if a.floats[s] {
			a.f32s[s] = 1
		} else {
			a.vals[s] = v
		}
	}
	for _, c := range d.Constants {
		set(c.Symbol, w.value(c.Name, 0))
	}
	for _, x := range d.Args {
		if x.Kind == ir.ConstantArg && x.Mode != decl.Unused {
			for j := range int(x.Count) {
				set(x.Symbol+j, w.value(x.Name, j))
			}
		}
	}
	bind := func(g *decl.Grid, v [3]int64) {
		if g != nil {
			for i := range g {
				if g[i].Bind >= 0 {
					a.vals[g[i].Bind] = v[i]
				}
			}
		}
	}
	groups, threads, group := w.grid, w.grid, [3]int64{}
	for i, n := range w.group {
		group[i] = int64(n)
		if w.kind == ir.Threadgroups {
			threads[i] *= group[i]
		} else {
			groups[i] = (groups[i] + group[i] - 1) / max(1, group[i])
		}
	}
	bind(&d.Group, group)
	bind(d.Groups, groups)
	bind(d.Threads, threads)
	return a
}
