package infer

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl/decl"
)

// Propose observes the kernels that want chooses in the graphs, and returns a declaration of effects for each class
// of their dispatches. If ctx ends, the error is its cause; all other problems with a kernel are in the report.
func (x *Observer) Propose(ctx context.Context, graphs []*ir.Graph, want func(k *ir.Kernel) bool) (*Report, error) {
	cs, r := x.gather(graphs, want)
	for i, c := range cs {
		if x.o.Progress != nil {
			x.o.Progress(float64(i) / float64(len(cs)))
		}
		ps, err := x.propose(ctx, c)
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case err != nil:
			r.leave(c, err.Error())
			continue
		}
		for _, p := range ps {
			if p.Text == "" {
				r.leave(c, strings.Join(p.Notes, "; "))
				continue
			}
			r.Proposals = append(r.Proposals, p)
		}
	}
	return r, nil
}

// gather sorts the dispatches of all graphs into classes.
func (x *Observer) gather(graphs []*ir.Graph, want func(k *ir.Kernel) bool) (cs []*class, r *Report) {
	r = &Report{Seed: x.o.Seed}
	for _, g := range graphs {
		var left []Left
		cs, left = classes(g, cs, want)
		r.Left = append(r.Left, left...)
	}
	return cs, r
}

func (r *Report) leave(c *class, why string) {
	for _, f := range c.forms {
		r.Left = append(r.Left, Left{Graph: f.graph.Name, Command: f.node.ID, Kernel: c.kernel.Function, Why: why})
	}
}

// maxSplit is the maximum number of forms of a class that may get declarations of their own.
const maxSplit = 8

// propose returns the proposals for a class: one, or one for each of its forms if all of these are exact.
func (x *Observer) propose(ctx context.Context, c *class) ([]Proposal, error) {
	s := x.study(c)
	m, err := s.infer(ctx)
	if err != nil {
		return nil, err
	}
	if m == nil {
		return []Proposal{{Kernel: c.kernel.Function, Notes: append(s.notes, "none of its dispatches could be observed")}}, nil
	}
	if n := len(c.forms); n > 1 && n <= maxSplit && s.couldBeExact(m) {
		var out []Proposal
		better := 0
		for _, one := range c.split() {
			ps, err := x.propose(ctx, one)
			if err != nil {
				return nil, err
			}
			for _, p := range ps {
				if p.Exact {
					better++
				}
			}
			out = append(out, ps...)
		}
		if better == len(out) {
			return out, nil
		}
	}
	return x.write(s, m)
}

// couldBeExact reports whether a view is not exact because nothing fits it, and not because it depends on data.
func (s *study) couldBeExact(m *model) bool {
	for v := range m.fits {
		if !m.fits[v].exact && !s.depends[v] {
			return true
		}
	}
	return false
}

// write returns the declaration for a model. It parses it again, and checks it with everything that was observed and
// with the dispatches of the graph.
func (x *Observer) write(s *study, m *model) ([]Proposal, error) {
	p := Proposal{Kernel: s.c.kernel.Function, Library: s.c.kernel.Library, Counts: s.counts, Exact: true, Notes: s.notes}
	p.Text = s.text(m, &p)
	ds, err := parsed(p.Text)
	if err != nil {
		return nil, fmt.Errorf("kernel %s: its proposal cannot be read: %w\n%s", p.Kernel, err, p.Text)
	}
	seen := under(s.seen, m.ks)
	if err := s.holds(ds[0], seen, &p); err != nil {
		return nil, err
	}
	for _, f := range s.c.forms {
		in, err := ds[0].Bind(f.graph, f.node)
		if err == nil {
			if _, err = in.Effects(); err == nil {
				err = in.CheckAliasing()
			}
		}
		if err == nil {
			continue
		}
		// The dispatch keeps unknown effects, which is safe.
		p.Notes = append(p.Notes, fmt.Sprintf("graph %s: the declaration does not describe %s as it stands, of any params: %s", ir.QuoteName(f.graph.Name), f.node.ID, quote(err.Error())))
	}
	for i := range p.Fits {
		p.Exact = p.Exact && p.Fits[i].Exact
	}
	return []Proposal{p}, nil
}

// parsed parses declarations; a text without any is an error.
func parsed(text string) ([]*decl.Decl, error) {
	src, err := decl.Parse("proposal", text)
	if err != nil {
		return nil, err
	}
	if len(src.Decls) == 0 {
		return nil, fmt.Errorf("it declares nothing")
	}
	return src.Decls, nil
}

// text returns the declaration for a model, and sets p.Fits.
func (s *study) text(m *model, p *Proposal) string {
	c := s.c
	var b strings.Builder
	line := func(key, format string, args ...any) {
		fmt.Fprintf(&b, "// @%-8s %s\n", key, fmt.Sprintf(format, args...))
	}
	line("kernel", "%s", c.kernel.Function)
	line("effects", "observed in %d shapes of the graph and %d others, %d held out; seed %d", s.counts.Real, s.counts.Made, s.counts.HeldOut, s.x.o.Seed)
	var requires []string
	for _, k := range c.kernel.Constants {
		name := k.Name
		if name = free(map[string]bool{}, name, 0); k.Name == "" || slices.ContainsFunc(c.slots, func(o slot) bool { return o.name == name }) {
			name = fmt.Sprintf("constant%d", k.Index)
		}
		line("constant", "%d %s %s", k.Index, name, k.Type)
		if !k.Type.Float() {
			requires = append(requires, fmt.Sprintf("%s == %d", name, k.Bits))
		}
	}
	n := 0
	for i := range c.slots {
		x := &c.slots[i]
		what := fmt.Sprintf("%d %s %s %s", x.Slot, x.name, x.Arg.Kind, x.Type)
		switch x.kind {
		case absent:
			line("arg", "%s unused", what)
		case view:
			shape := m.fits[n].shape(c.names)
			access := m.fits[n].mode.String()
			p.Fits = append(p.Fits, Fit{Slot: x.Slot, Argument: x.Name, Access: access, Shape: shape, Exact: m.fits[n].exact, Skips: m.fits[n].exact && s.skips[n], Why: m.fits[n].why})
			line("arg", "%s%s %s", what, shape, access)
			n++
		case inline:
			line("arg", "%s[_] read", what)
		default:
			if x.Arg.Count != 1 {
				what += fmt.Sprintf("[%d]", x.count)
			}
			line("arg", "%s", what)
		}
	}
	for _, t := range c.local {
		name, typ := fmt.Sprintf("local%d", t.Slot), ir.U8
		line("arg", "%d %s threadgroup %s[%d]", t.Slot, name, typ, t.Bytes)
	}
	var grid [3]string
	copy(grid[:], c.names[c.grid:])
	for i := range grid {
		for _, k := range m.ks {
			switch {
			case k.sym != c.grid+i:
			case k.kind == tied:
				grid[i] = k.is.format(c.names)
			case k.kind == pinned:
				grid[i] = fmt.Sprint(k.by)
			}
		}
	}
	unit := "groups"
	if c.kind == ir.Threads {
		unit = "threads"
	}
	line(unit, "%s", strings.Join(grid[:], ", "))
	line("group", "%d, %d, %d", c.group[0], c.group[1], c.group[2])
	for _, k := range m.ks {
		if k.kind == aligned && slices.ContainsFunc(m.ks, func(o condition) bool { return o.kind == pinned && o.sym == k.sym }) {
			continue // the pinned value implies it
		}
		if k.sym < c.grid || k.kind == aligned {
			line("require", "%s", k.line(c.names))
		}
	}
	for _, r := range requires {
		line("require", "%s", r)
	}
	for i, r := range s.ranges(m) {
		if r != "" && (i < c.grid || grid[i-c.grid] == c.names[i]) {
			line("require", "%s", r)
		}
	}
	for _, pair := range s.inplace(m) {
		line("inplace", "%s %s", c.slots[c.views[pair[0]]].name, c.slots[c.views[pair[1]]].name)
	}
	return b.String()
}

// ranges returns requirements that bound each symbol by the values that were observed or that the graph has: for
// others nothing is claimed.
func (s *study) ranges(m *model) []string {
	c := s.c
	all := make([]seen, len(c.names))
	for i, o := range under(s.seen, m.ks) {
		for k, v := range o.vals {
			all[k].add(v, i == 0)
		}
	}
	for _, f := range c.forms {
		for _, params := range f.graph.Samples(64) {
			vals, _ := c.values(f, params)
			for k, v := range vals {
				if v != 0 || k < c.grid {
					all[k].add(v, false)
				}
			}
		}
	}
	out := make([]string, len(c.names))
	for k := range out {
		if slices.ContainsFunc(m.ks, func(x condition) bool { return x.sym == k && x.kind == pinned }) {
			continue
		}
		n := c.names[k]
		switch lo, hi := all[k].lo, all[k].hi; {
		case lo == hi:
			out[k] = fmt.Sprintf("%s == %s", n, number(lo))
		default:
			out[k] = fmt.Sprintf("%s >= %s && %s <= %s", n, number(lo), n, number(hi))
		}
	}
	return out
}

func number(n int64) string {
	if n < 0 {
		return fmt.Sprintf("0 - %d", -n)
	}
	return fmt.Sprint(n)
}

// shape returns the part of an @arg line that stands in brackets.
func (f *fitted) shape(names []string) string {
	switch {
	case f.mode == unused:
		return ""
	case f.whole:
		return "[_]"
	}
	var counts, strides []string
	contiguous := true
	for i, d := range f.dims {
		counts, strides = append(counts, d.count.format(names)), append(strides, d.stride.format(names))
		contiguous = contiguous && i == 0
	}
	s := strings.Join(counts, ", ")
	if !contiguous {
		s += " : " + strings.Join(strides, ", ")
	}
	if !f.off.isConst() || f.off.plus != 0 {
		s += " at " + f.off.format(names)
	}
	return "[" + s + "]"
}

// inplace returns pairs of a written and a read view that are the same view in some dispatch of the graph. Their shapes may be other
// expressions: a declaration allows the same view where they have the same values.
func (s *study) inplace(m *model) (out [][2]int) {
	if s.clash {
		return nil
	}
	for i := range m.fits {
		for j := range m.fits {
			if i == j || m.fits[i].mode < write || m.fits[j].mode != read || m.fits[i].whole || m.fits[j].whole {
				continue
			}
			for _, f := range s.c.forms {
				if s.c.sameView(&shape{form: f}, i, j) && !slices.Contains(out, [2]int{i, j}) {
					out = append(out, [2]int{i, j})
				}
			}
		}
	}
	return out
}

// holds checks a declaration with observations, and sums up what it declares and they touch. A contradiction is an
// error: the search is wrong then, and nothing is proposed.
func (s *study) holds(d *decl.Decl, seen []*observation, p *Proposal) error {
	described := 0
	worst := make([]int64, len(p.Fits))
	for _, o := range seen {
		g, node, mems, err := s.c.graph(o.shape, false, true, nil)
		if err != nil {
			return err
		}
		e, err := accepts(d, g, node)
		if err != nil {
			if o.real {
				p.Notes = append(p.Notes, fmt.Sprintf("%s: the declaration does not describe it: %s", s.c.say(o.shape), quote(err.Error())))
			}
			continue
		}
		described++
		for v := range o.views {
			reads, writes, must := declaredOf(e, mems[v])
			t := &o.views[v]
			all := reads.union(writes)
			if len(t.reads.minus(all)) > 0 || len(t.writes.minus(writes)) > 0 || len(must.minus(t.must)) > 0 {
				return fmt.Errorf("kernel %s: argument %d: the proposal contradicts %s:\n%s", p.Kernel, s.c.slots[s.c.views[v]].Slot, s.c.say(o.shape), p.Text)
			}
			f := &p.Fits[v]
			touched, declared := t.all().bytes(), all.bytes()
			f.Touched, f.Declared = f.Touched+touched, f.Declared+declared
			if declared-touched > worst[v] {
				worst[v], f.Loosest = declared-touched, s.c.say(o.shape)
			}
			if declared != touched {
				f.Exact = false
			}
		}
	}
	if described == 0 {
		return fmt.Errorf("kernel %s: the proposal describes nothing that was observed", p.Kernel)
	}
	return nil
}

// declaredOf returns the bytes of a memory that effects list.
func declaredOf(e *ir.Effects, m ir.MemID) (reads, writes, must spans) {
	var rs, ws, ms []span
	each := func(r *ir.Region, to ...*[]span) {
		if r.Mem == m {
			r.Runs(nil, func(lo, hi int64) bool {
				for _, t := range to {
					*t = append(*t, span{lo, hi})
				}
				return true
			})
		}
	}
	for i := range e.Reads {
		each(&e.Reads[i], &rs)
	}
	for i := range e.Writes {
		if e.Writes[i].Must {
			each(&e.Writes[i].Region, &ws, &ms)
		} else {
			each(&e.Writes[i].Region, &ws)
		}
	}
	return normal(rs), normal(ws), normal(ms)
}
