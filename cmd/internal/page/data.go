package page

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/mlxc/mlxc/cmd/internal/graphdiff"
	"github.com/mlxc/mlxc/cost"
	"github.com/mlxc/mlxc/internal/analysis/hazard"
	"github.com/mlxc/mlxc/internal/interrupt"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/optimize"
)

// MaxCommands is how many commands a page shows, of all its graphs together.
const MaxCommands = 250_000

// Bounds of what a page says of one command and of one graph. What is left out is counted.
const (
	maxWaits   = 24      // reasons to wait, by command
	maxOrigins = 512     // commands that a command stands for
	maxNotes   = 16      // texts beside the operands
	maxRemarks = 100_000 // of all passes
	maxChanges = 100_000
	maxMembers = 256 // commands behind a join, which are counted beyond that
)

// Page is what is written.
type Page struct {
	Title  string // the name of the file
	Model  cost.Model
	Graphs []Graph
	Limit  int // how many commands are shown; 0: MaxCommands
}

// Graph is one graph of a page.
type Graph struct {
	Before *ir.Graph
	// Result is what was made of it. Nil shows the graph alone.
	Result *optimize.Result
	// Faults says why the graph has no meaning; empty for most.
	Faults string
}

// The types below are the JSON in a page, which page.js reads. Lists of one kind of thing are one
// array, without names. Numbers of texts are those of [texts]; numbers of commands are those of
// their side's [layout].
type (
	document struct {
		Title    string   `json:"title"`
		Families []string `json:"families"`
		Texts    []string `json:"texts"`
		Memories []raw    `json:"memories"` // name, kind, size, type, base in the picture of scratch
		Graphs   []any    `json:"graphs"`
		Cut      string   `json:"cut,omitempty"`
		Model    string   `json:"model"`
	}
	graphData struct {
		Name    string  `json:"name"`
		At      string  `json:"at"` // values of the params for which times are modelled
		Faults  string  `json:"faults,omitempty"`
		Sides   []*side `json:"sides"`
		Links   raw     `json:"links,omitempty"` // by command after: the commands before
		Rows    []row   `json:"rows,omitempty"`
		Fused   string  `json:"fused,omitempty"`
		Remarks [][]int `json:"remarks,omitempty"` // pass, ID or −1, done, at, text
		More    int     `json:"more,omitempty"`    // remarks left out
		Changes raw     `json:"changes,omitempty"` // kind, text, commands before, commands after
		Proof   *proof  `json:"proof,omitempty"`
		Differs string  `json:"differs,omitempty"`
	}
	row struct {
		Pass    string  `json:"pass"`
		Figures []int64 `json:"figures"` // dispatches, barriers, epochs, depth, depth∞, scratch, modelled in ns
		Undone  string  `json:"undone,omitempty"`
	}
	proof struct {
		Verdict     string   `json:"verdict"`
		Text        string   `json:"text"`
		ByTerms     []int32  `json:"terms"` // commands after
		Assumptions []string `json:"assumptions,omitempty"`
		Rewrites    []string `json:"rewrites,omitempty"`
	}
	side struct {
		Name     string   `json:"name"`
		Commands int      `json:"commands"`
		All      int      `json:"all"` // with those that are left out
		Ordering string   `json:"ordering"`
		Figures  []int64  `json:"figures"`
		Kernels  raw      `json:"kernels"`  // name, function, library, [argument, access, …]
		Memories []int    `json:"memories"` // numbers of the document's
		Ranges   []int64  `json:"ranges"`   // memory, first byte, first byte behind, …
		First    []int32  `json:"first"`    // by epoch, with one more at the end
		Ends     string   `json:"ends"`
		X        []int32  `json:"x"` // by epoch, with one more at the end: columns
		From     []int32  `json:"from,omitempty"`
		To       []int32  `json:"to,omitempty"`
		ID       []uint32 `json:"id"`
		Kind     string   `json:"kind"` // a letter by command
		Family   string   `json:"family"`
		Kernel   []int32  `json:"kernel"`
		Op       []int    `json:"op"`
		Label    []int    `json:"label"`
		Grid     []int    `json:"grid"`
		NS       []int64  `json:"ns"`     // modelled, alone
		Bytes    []int64  `json:"bytes"`  // moved, modelled
		Args     raw      `json:"args"`   // by command, see operands
		Notes    raw      `json:"notes"`  // command, [texts]
		Waits    raw      `json:"waits"`  // by command, see waits
		Joins    raw      `json:"joins"`  // commands behind a join
		Values   []int32  `json:"values"` // writer, how many commands later the last reader stands, range, …
		Scratch  int64    `json:"scratch"`
		Known    bool     `json:"known"` // no command of unknown effects reads more
	}
)

// raw is JSON that was written by hand, because reflection over a million small lists takes long.
type raw = json.RawMessage

// list writes a JSON array.
type list struct{ b []byte }

func (l *list) comma() {
	if n := len(l.b); n > 0 && l.b[n-1] != '[' {
		l.b = append(l.b, ',')
	}
}

func (l *list) open()     { l.comma(); l.b = append(l.b, '[') }
func (l *list) close()    { l.b = append(l.b, ']') }
func (l *list) add(n int) { l.add64(int64(n)) }
func (l *list) add64(n int64) {
	l.comma()
	l.b = strconv.AppendInt(l.b, n, 10)
}

func (l *list) ints(ns ...int) {
	for _, n := range ns {
		l.add(n)
	}
}

// writer collects one page.
type writer struct {
	ctx   context.Context
	model cost.Model
	texts texts
	// memories and memory are the rows of all graphs, each once; ranges are those of one side.
	memories []raw
	memory   map[string]int
	ranges   map[bytesOf]int
	left     int // commands that may still be shown
	polls    interrupt.Every
}

// bytesOf is a constant range of a memory.
type bytesOf struct {
	mem     ir.MemID
	lo, end int64
}

// rangeOf returns the number of a range of s.
func (w *writer) rangeOf(s *side, r bytesOf) int {
	n, ok := w.ranges[r]
	if !ok {
		n = len(w.ranges)
		w.ranges[r] = n
		s.Ranges = append(s.Ranges, int64(r.mem), r.lo, r.end)
	}
	return n
}

func (w *writer) text(s string) int { return w.texts.of(s) }

// data returns what the page shows.
func (p *Page) data(ctx context.Context) (out *document, err error) {
	defer interrupt.Catch(&err)
	limit := cmp.Or(p.Limit, MaxCommands)
	w := &writer{ctx: ctx, model: p.Model.OrDefault(), left: limit, memory: map[string]int{}}
	out = &document{Title: shown(p.Title), Model: w.model.Name, Graphs: []any{}}
	for _, f := range families {
		out.Families = append(out.Families, f.name)
	}
	w.text("")
	for i := range p.Graphs {
		g, err := w.graph(&p.Graphs[i])
		if err != nil {
			return nil, err
		}
		out.Graphs = append(out.Graphs, g)
		for _, s := range g.Sides {
			if s.Commands < s.All {
				out.Cut = "This page shows the first " + strconv.Itoa(limit) + " commands; what is behind them is left out."
			}
		}
	}
	out.Texts, out.Memories = w.texts.list, w.memories
	return out, nil
}

func (w *writer) graph(g *Graph) (*graphData, error) {
	var at []string
	for _, p := range optimize.ModelledAt(g.Before, w.model) {
		at = append(at, "$"+p.Name+" = "+strconv.FormatUint(uint64(p.Value), 10))
	}
	out := &graphData{Name: shown(g.Before.Name), At: shown(strings.Join(at, ", ")), Faults: shownLong(g.Faults)}
	r := g.Result
	if r == nil || r.Optimized == nil {
		f, err := optimize.Measure(w.ctx, g.Before, w.model)
		if err != nil {
			return nil, err
		}
		s, _ := w.side(g.Before, "Graph", f, nil)
		out.Sides = []*side{s}
		return out, nil
	}
	before, bl := w.side(g.Before, "Recording", r.Before, nil)
	diff, err := graphdiff.Graphs(w.ctx, g.Before, r.Optimized)
	if err != nil {
		return nil, err
	}
	var images [][]int32
	after, al := w.side(r.Optimized, "Optimized", r.After, func(l *layout) {
		images = l.images(bl, diff.Images)
		l.align(bl, images)
	})
	out.Sides = []*side{before, after}
	var links list
	links.open()
	for _, js := range images {
		links.open()
		for _, j := range js[:min(len(js), maxOrigins)] {
			links.add(int(j))
		}
		links.close()
	}
	links.close()
	out.Links = raw(links.b)
	w.passes(out, r)
	w.changes(out, diff, g.Before, bl, r.Optimized, al)
	out.Differs = shownLong(diff.Summary())
	out.Proof = &proof{Verdict: r.Proof.Verdict.String(), ByTerms: []int32{}}
	out.Proof.Text, _, _ = strings.Cut(r.Proof.String(), "\n")
	number := numbers(r.Optimized, al)
	for _, id := range r.Proof.ByTerms {
		if c, ok := number[id]; ok {
			out.Proof.ByTerms = append(out.Proof.ByTerms, c)
		}
	}
	for _, a := range r.Proof.Assumptions {
		out.Proof.Assumptions = append(out.Proof.Assumptions, shownLong(a))
	}
	for _, u := range r.Proof.Rewrites {
		out.Proof.Rewrites = append(out.Proof.Rewrites, shown(u.Name+", "+strconv.Itoa(u.Count)+" times: "+u.Bound))
	}
	return out, nil
}

// shownLong is shown for a text of several lines.
func shownLong(s string) string {
	var out []string
	for line := range strings.SplitSeq(s, "\n") {
		out = append(out, shown(line))
		if len(out) == 40 {
			break
		}
	}
	return strings.Join(out, "\n")
}

// numbers returns the numbers of commands by their IDs.
func numbers(g *ir.Graph, l *layout) map[ir.ID]int32 {
	out := make(map[ir.ID]int32, len(l.nodes))
	for k, i := range l.nodes {
		out[g.Nodes[i].(ir.Command).Num()] = int32(k)
	}
	return out
}

// images turns images by the order of lists into images by the numbers of layouts.
func (l *layout) images(before *layout, byList [][]int) [][]int32 {
	out := make([][]int32, len(l.nodes))
	for i, js := range byList {
		k := l.place[i]
		if k < 0 {
			continue
		}
		for _, j := range js {
			if at := before.place[j]; at >= 0 {
				out[k] = append(out[k], at)
			}
		}
	}
	return out
}

func figures(f optimize.Figures) []int64 {
	return []int64{int64(f.Dispatches), int64(f.Barriers), int64(f.Epochs), int64(f.Depth), int64(f.ValueDepth), f.Bytes.Scratch, whole(f.Modelled.GPU * 1e3)}
}

// whole rounds a number that a model computed, which hostile sizes may make infinite.
func whole(x float64) int64 {
	if !(x > 0) {
		return 0
	}
	return int64(math.Min(math.Round(x), 1<<53))
}

// passes adds the rows of the passes and their remarks.
func (w *writer) passes(out *graphData, r *optimize.Result) {
	out.Rows = []row{{Pass: "(recorded)", Figures: figures(r.Before)}}
	out.Fused = shownLong(optimize.FusedText(r.Fused))
	for i, x := range r.Rows {
		out.Rows = append(out.Rows, row{Pass: shown(x.Pass), Figures: figures(x.After), Undone: shownLong(x.Undone)})
		for _, m := range x.Remarks {
			if len(out.Remarks) == maxRemarks {
				out.More++
				continue
			}
			id, done := -1, 0
			if s := m.Node.String(); m.At == s || strings.HasPrefix(m.At, s+" ") {
				id = int(m.Node)
			}
			if m.Done {
				done = 1
			}
			at := m.At
			if id >= 0 {
				at = "" // the page says the same of the command
			}
			out.Remarks = append(out.Remarks, []int{i, id, done, w.text(at), w.text(m.Text)})
		}
	}
}

// told are the kinds of changes that a page tells some other way: by colours, links and columns.
var told = []graphdiff.Kind{graphdiff.Fused, graphdiff.Dropped, graphdiff.Added, graphdiff.Barriers, graphdiff.Kernels}

func (w *writer) changes(out *graphData, d *graphdiff.Diff, b *ir.Graph, bl *layout, a *ir.Graph, al *layout) {
	before, after := numbers(b, bl), numbers(a, al)
	var l list
	l.open()
	n := 0
	subject := func(c *graphdiff.Change) string { // what the text of a change begins with
		if len(c.After) == 1 {
			if k, ok := after[c.After[0]]; ok {
				return a.Describe(a.Nodes[al.nodes[k]]) + ": "
			}
		}
		return ""
	}
	for _, c := range d.Changes {
		if slices.Contains(told, c.Kind) {
			continue
		}
		if n++; n > maxChanges {
			break
		}
		l.open()
		l.ints(w.text(string(c.Kind)), w.text(strings.TrimPrefix(c.Text, subject(&c))))
		for side, ids := range [][]ir.ID{c.Before, c.After} {
			l.open()
			for _, id := range ids[:min(len(ids), maxOrigins)] {
				if k, ok := []map[ir.ID]int32{before, after}[side][id]; ok {
					l.add(int(k))
				}
			}
			l.close()
		}
		l.close()
	}
	l.close()
	out.Changes = raw(l.b)
}

// side describes one graph. place is called once its commands have numbers.
func (w *writer) side(g *ir.Graph, name string, f optimize.Figures, place func(*layout)) (*side, *layout) {
	full := optimize.Annotated(w.ctx, g) // what kernels declare wins over what a recording says
	l := newLayout(g)
	s := &side{Name: name, All: len(l.nodes), Ordering: g.Ordering.String(), Figures: figures(f), Ranges: []int64{}}
	w.ranges = map[bytesOf]int{}
	l.cut(w.left)
	w.left -= len(l.nodes)
	if place != nil {
		place(l)
	}
	s.Commands, s.First, s.Ends, s.X, s.From, s.To = len(l.nodes), l.first, string(l.ends), l.x, l.from, l.to
	w.commands(s, full, l)
	w.waits(s, full, l)
	var base []int64
	base, s.Scratch = bases(g)
	w.tables(s, g, base)
	values, known := scratch(w.ctx, full)
	s.Known, s.Values = known, make([]int32, 0, 3*len(values))
	for _, v := range values {
		i, j := l.place[v.writer], l.place[v.last]
		if i < 0 {
			continue
		}
		if j < 0 {
			j = int32(len(l.nodes) - 1)
		}
		s.Values = append(s.Values, i, max(0, j-i), int32(w.rangeOf(s, bytesOf{v.mem, v.lo, v.end})))
	}
	return s, l
}

// tables writes the kernels and the memories.
func (w *writer) tables(s *side, g *ir.Graph, base []int64) {
	var l list
	l.open()
	for i := range g.Kernels {
		k := &g.Kernels[i]
		l.open()
		library := k.Library.Kind.String()
		if k.Library.Path != "" {
			library += " " + k.Library.Path
		}
		l.ints(w.text(k.Name), w.text(k.Function), w.text(library))
		l.open()
		for _, a := range k.Args {
			access := int(a.Access)
			if a.Kind != ir.DeviceArg {
				access = 2 + int(a.Kind) // constant: 3, threadgroup: 4
			}
			l.ints(w.text(a.Name), access)
		}
		l.close()
		l.close()
	}
	l.close()
	s.Kernels = raw(l.b)
	s.Memories = make([]int, 0, len(g.Memories))
	for i := range g.Memories {
		m := &g.Memories[i]
		what := ""
		if m.DType.Valid() {
			what = m.DType.String()
			if len(m.Shape) > 0 && len(m.Shape) < 32 {
				var dims []string
				for _, d := range m.Shape {
					dims = append(dims, strconv.FormatInt(d, 10))
				}
				what += "[" + strings.Join(dims, ", ") + "]"
			}
		}
		var l list
		l.open()
		l.ints(w.text(m.Name), int(m.Kind))
		l.add64(m.Size)
		l.add(w.text(what))
		l.add64(base[i])
		l.close()
		n, ok := w.memory[string(l.b)]
		if !ok {
			n = len(w.memories)
			w.memory[string(l.b)] = n
			w.memories = append(w.memories, raw(l.b))
		}
		s.Memories = append(s.Memories, n)
	}
}

// commands writes what each command is and binds.
func (w *writer) commands(s *side, g *ir.Graph, l *layout) {
	e := w.model.For(g)
	n := len(l.nodes)
	kind, fam := make([]byte, 0, n), make([]byte, 0, n)
	s.ID, s.Kernel, s.NS, s.Bytes = make([]uint32, 0, n), make([]int32, 0, n), make([]int64, 0, n), make([]int64, 0, n)
	s.Op, s.Label, s.Grid = make([]int, 0, n), make([]int, 0, n), make([]int, 0, n)
	type work struct {
		op     string
		kernel ir.KernelID
	}
	known := map[work]byte{}
	var args, notes list
	args.open()
	notes.open()
	for k, i := range l.nodes {
		w.polls.Poll(w.ctx, 64)
		c := g.Nodes[i].(ir.Command)
		s.ID = append(s.ID, uint32(c.Num()))
		cost := e.Work(c)
		s.NS, s.Bytes = append(s.NS, whole(cost.Alone.Microseconds()*1e3)), append(s.Bytes, whole(cost.Bytes))
		letter, kernel, op, label, grid, function := byte('d'), ir.KernelID(-1), "", "", 0, ""
		args.open()
		switch c := c.(type) {
		case *ir.Dispatch:
			kernel, op, label, function = c.Kernel, c.Op, c.Label, g.Kernels[c.Kernel].Function
			if op == "" {
				op = function
			}
			grid = w.text(gridText(g, c))
			w.operands(&args, s, g, c)
			w.notes(&notes, g, k, c)
		case *ir.Copy:
			letter, op, label = 'c', "copy", c.Label
			w.view(&args, s, g, &c.Dst)
			w.view(&args, s, g, &c.Src)
		case *ir.Carry:
			letter, op, label = 'r', "carry", c.Label
			w.view(&args, s, g, &c.Dst)
			w.view(&args, s, g, &c.Src)
		case *ir.Fill:
			letter, op, label = 'f', "fill", c.Label
			w.view(&args, s, g, &c.Dst)
			args.add(-1 - w.text("0x"+hex.EncodeToString([]byte{c.Value})))
		}
		args.close()
		of := work{op, kernel}
		f, ok := known[of]
		if !ok {
			f = byte('0' + family(op, function))
			known[of] = f
		}
		kind, fam = append(kind, letter), append(fam, f)
		s.Kernel, s.Op, s.Label, s.Grid = append(s.Kernel, int32(kernel)), append(s.Op, w.text(op)), append(s.Label, w.text(label)), append(s.Grid, grid)
	}
	args.close()
	notes.close()
	s.Kind, s.Family, s.Args, s.Notes = string(kind), string(fam), raw(args.b), raw(notes.b)
}

func gridText(g *ir.Graph, d *ir.Dispatch) string {
	var b strings.Builder
	for i, x := range d.Grid {
		if i > 0 {
			b.WriteString(" × ")
		}
		if n := g.FormatAffine(x.Num); x.Div == 1 {
			b.WriteString(n)
		} else {
			b.WriteString("⌈(" + n + ")/" + strconv.FormatInt(x.Div, 10) + "⌉")
		}
	}
	b.WriteString(" " + d.GridKind.String() + " of ")
	for i, x := range d.Threadgroup {
		if i > 0 {
			b.WriteString(" × ")
		}
		b.WriteString(strconv.FormatUint(uint64(x), 10))
	}
	return b.String()
}

// operands writes an entry for each argument of the kernel: a number of a memory that is bound as a
// whole, [range], [memory, text of the offset, text of the end] where params move it, −1 less the number of a text for a value, or nothing more than −1 where nothing is bound.
func (w *writer) operands(l *list, s *side, g *ir.Graph, d *ir.Dispatch) {
	k := &g.Kernels[d.Kernel]
	for _, a := range k.Args {
		if a.Kind == ir.ThreadgroupArg {
			text := ""
			for _, m := range d.ThreadgroupMemory {
				if m.Slot == a.Slot {
					text = strconv.FormatUint(uint64(m.Bytes), 10) + " bytes"
				}
			}
			l.add(-1 - w.text(text))
			continue
		}
		b := d.Binding(a.Slot)
		switch {
		case b == nil:
			l.add(-1)
		case b.Kind == ir.BindView:
			w.view(l, s, g, &b.View)
		case b.Kind == ir.BindScalar:
			l.add(-1 - w.text(g.FormatAffine(b.Expr)))
		default:
			l.add(-1 - w.text(bytesText(b.Bytes, &a)))
		}
	}
}

// bytesText writes inline bytes: as a number if the kernel takes one, else in hexadecimal.
func bytesText(b []byte, a *ir.Arg) string {
	word := func() (x uint64) {
		for i, c := range b {
			x |= uint64(c) << (8 * i)
		}
		return x
	}
	switch {
	case a.Count > 1 || len(b) > 8 || len(b) == 0:
	case a.Type == ir.F32 && len(b) == 4:
		return strconv.FormatFloat(float64(math.Float32frombits(uint32(word()))), 'g', -1, 32)
	case (a.Type == ir.I32 && len(b) == 4):
		return strconv.FormatInt(int64(int32(word())), 10)
	case a.Type == ir.I64 && len(b) == 8:
		return strconv.FormatInt(int64(word()), 10)
	case a.Type == ir.U32 && len(b) == 4 || a.Type == ir.U64 && len(b) == 8:
		return strconv.FormatUint(word(), 10)
	}
	return "0x" + hex.EncodeToString(b[:min(len(b), maxText)])
}

func (w *writer) view(l *list, s *side, g *ir.Graph, v *ir.View) {
	m := &g.Memories[v.Mem]
	if !v.Off.IsConst() || !v.Len.IsConst() {
		l.open()
		l.ints(int(v.Mem), w.text(g.FormatAffine(v.Off)), w.text(g.FormatAffine(v.End())))
		l.close()
		return
	}
	if v.Off.Const == 0 && v.Len.Const == m.Size {
		l.add(int(v.Mem))
		return
	}
	l.open()
	l.add(w.rangeOf(s, bytesOf{v.Mem, v.Off.Const, v.Off.Const + v.Len.Const}))
	l.close()
}

// notes writes what bindings do not say: regions within views, and what is read from memory.
func (w *writer) notes(l *list, g *ir.Graph, number int, d *ir.Dispatch) {
	bound := func(r *ir.Region) bool {
		for i := range d.Bindings {
			if b := &d.Bindings[i]; b.Kind == ir.BindView && len(r.Dims) == 0 && r.Mem == b.View.Mem && r.Off.Equal(b.View.Off) && r.Run.Equal(b.View.Len) {
				return true
			}
		}
		return false
	}
	var said []int
	more := 0
	say := func(s string) {
		if len(said) < maxNotes {
			said = append(said, w.text(s))
		} else {
			more++
		}
	}
	if v := d.Counts(); v != nil {
		say("the grid is read from " + g.FormatView(*v))
	}
	if !d.Effects.Known() {
		say("its effects are unknown: it may touch anything, and nothing crosses it")
	} else {
		for i := range d.Effects.Reads {
			if r := &d.Effects.Reads[i]; !bound(r) {
				say("reads " + g.FormatRegion(*r))
			}
		}
		for i := range d.Effects.Writes {
			x := &d.Effects.Writes[i]
			if x.Must && !x.Atomic && bound(&x.Region) {
				continue
			}
			how := "may write "
			if x.Must {
				how = "writes "
			}
			if x.Atomic {
				how = "by atomic operations, " + how
			}
			say(how + g.FormatRegion(x.Region))
		}
	}
	if len(said) == 0 {
		return
	}
	if more > 0 {
		said = append(said, w.text("and "+strconv.Itoa(more)+" regions more"))
	}
	l.add(number)
	l.open()
	l.ints(said...)
	l.close()
}

// edge is the kind of a wait that no conflict asks for here but an edge of the graph.
const edge = int(hazard.Unknown) + 1

// ofJoin is added to the kind of a reason whose earlier side is a join.
const ofJoin = 8

// waits writes why each command must wait: by command, reasons of three numbers (how many commands
// earlier the other one stands, or the number of a join; the kind; the range, or −1), then how many
// reasons there are more.
func (w *writer) waits(s *side, g *ir.Graph, l *layout) {
	type reason struct {
		from, kind, mem int32
		lo, end         int64
	}
	n := len(l.place)
	all := make([][]reason, len(l.nodes))
	more := make([]int32, len(l.nodes))
	slab := make([]reason, 0, 1024)
	add := func(to int32, r reason) {
		k := l.place[to]
		if k < 0 {
			return
		}
		have := all[k]
		// The pieces of one range that one command touched are one reason. They come one soon after
		// another, unless the bytes of other commands lie between those that a join stands for.
		first := max(0, len(have)-4)
		if int(r.from) >= n {
			first = 0
		}
		for i := first; i < len(have); i++ {
			if x := &have[i]; x.from == r.from && x.kind == r.kind && x.mem == r.mem && r.lo <= x.end && x.lo <= r.end {
				x.lo, x.end = min(x.lo, r.lo), max(x.end, r.end)
				return
			}
		}
		if len(have) == maxWaits {
			more[k]++
			return
		}
		if len(have) == cap(have) {
			// Most commands have few reasons: they lie in one slab.
			grown := min(max(4, 2*len(have)), maxWaits)
			if cap(slab)-len(slab) < grown {
				slab = make([]reason, 0, 4096)
			}
			at := len(slab)
			slab = slab[:at+grown]
			copy(slab[at:], have)
			have = slab[at : at+len(have) : at+grown]
		}
		all[k] = append(have, r)
	}
	order := hazard.NewTable(w.ctx, g).Hazards(func(h hazard.Hazard) {
		w.polls.Poll(w.ctx, 64)
		r := reason{from: h.From, kind: int32(h.Kind), mem: int32(h.Mem), lo: h.Lo, end: h.End}
		if h.Kind == hazard.Unknown {
			r.mem, r.lo, r.end = -1, 0, 0
		}
		add(h.To, r)
	})
	if g.Ordering == ir.ByEdges {
		byID := make(map[ir.ID]int32, n)
		i := int32(0)
		for _, x := range g.Nodes {
			if c, ok := x.(ir.Command); ok {
				byID[c.Num()] = i
				i++
			}
		}
		for _, e := range g.Edges {
			from, to := byID[e.From], byID[e.To]
			if !e.Previous && l.place[from] >= 0 {
				add(to, reason{from: from, kind: int32(edge), mem: -1})
			}
		}
	}
	// The members of joins, which may be joins.
	members := make([][]int32, order.Nodes-n)
	count := make([]int32, order.Nodes-n)
	for i := range order.Nodes {
		for _, next := range order.Successors(int32(i)) {
			if j := int(next) - n; j >= 0 {
				if count[j]++; len(members[j]) < maxMembers {
					members[j] = append(members[j], int32(i))
				}
			}
		}
	}
	node := func(i int32) (int, bool) {
		if int(i) >= n {
			return -1 - (int(i) - n), true
		}
		return int(l.place[i]), l.place[i] >= 0
	}
	var out list
	out.open()
	for k, rs := range all {
		out.open()
		for _, r := range rs {
			from, ok := node(r.from)
			if !ok {
				continue
			}
			kind, at := int(r.kind), -1
			if from < 0 {
				from, kind = -1-from, kind+ofJoin
			} else {
				from = k - from
			}
			if r.mem >= 0 {
				at = w.rangeOf(s, bytesOf{ir.MemID(r.mem), r.lo, r.end})
			}
			out.ints(from, kind, at)
		}
		if more[k] > 0 {
			out.add(int(more[k]))
		}
		out.close()
	}
	out.close()
	s.Waits = raw(out.b)
	out = list{}
	out.open()
	for j, ms := range members {
		out.open()
		out.add(int(count[j]))
		for _, m := range ms {
			if from, ok := node(m); ok {
				out.add(from)
			}
		}
		out.close()
	}
	out.close()
	s.Joins = raw(out.b)
}
