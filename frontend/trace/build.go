package trace

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mlxc/mlxc/internal/analysis/dataflow"
	"github.com/mlxc/mlxc/internal/interrupt"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/msl"
)

// builder makes one graph.
type builder struct {
	*ir.Builder
	w       *world
	g       *group
	f       *fitted
	k       *kernels
	remark  func(string, ...any)
	run     *run
	at      int              // the number of the run that comes next
	number  map[int]ir.MemID // by life of the run
	kernels map[*pipeline]ir.KernelID
	tables  map[*pipeline]*table
	args    ir.Memory
	argsMem ir.MemID
	finds   []bool       // by buffer: a run may read what it held before
	written []bool       // by buffer: some command may write it
	unsure  []bool       // likewise, as far as the effects of kernels are known
	plain   []ir.MemKind // by buffer: what it is if it is no state
	moved   bool         // there are commands since the last barrier
	behind  bool         // a barrier comes before the next command
	node    []int        // by command: its node
}

// table is what all dispatches of a pipeline bind.
type table struct {
	kernel ir.Kernel
	known  bool
}

// argAlign is the distance between values of argument memory in bytes, as Metal demands of buffers in the constant address space.
const argAlign = 32

// maxSparse bounds the size in bytes of a buffer with contents of which the log has a small part alone.
const maxSparse = 16 << 30

// build makes a group's graph.
func build(ctx context.Context, w *world, g *group, k *kernels, o *Options, remark func(string, ...any)) (*builder, error) {
	b := &builder{
		Builder: ir.NewBuilder(printable(g.name)), w: w, g: g, f: g.fitted, k: k, remark: remark, run: g.runs[0],
		kernels: map[*pipeline]ir.KernelID{}, tables: map[*pipeline]*table{}, argsMem: ir.NoMem, number: map[int]ir.MemID{},
	}
	if err := b.params(o, remark); err != nil {
		return nil, err
	}
	if err := b.collect(); err != nil {
		return nil, err
	}
	b.written = b.writes()
	b.finds, b.unsure = make([]bool, len(b.run.buffers)), make([]bool, len(b.run.buffers))
	for j := range b.run.buffers {
		if err := b.memory(j); err != nil {
			return nil, err
		}
	}
	var polls interrupt.Every
	b.node = make([]int, len(b.run.commands))
	for i := range b.run.commands {
		polls.Poll(ctx, 1024)
		if err := b.command(&b.run.commands[i]); err != nil {
			return nil, err
		}
		b.node[i] = len(b.Unfinished().Nodes) - 1
	}
	u := b.Unfinished()
	if b.argsMem != ir.NoMem {
		m := &u.Memories[b.argsMem]
		m.Size, m.Init.Values = b.args.Size, b.args.Init.Values
	}
	b.within(ctx, u)
	b.roles(ctx, u, remark)
	return b, nil
}

// within lowers the greatest value of a graph's only param to that at which kernels still touch nothing beyond their buffers,
// where their declarations say what they touch.
func (b *builder) within(ctx context.Context, g *ir.Graph) {
	if len(g.Params) != 1 {
		return
	}
	p := &g.Params[0]
	most := uint32(p.Max)
	lo, hi := uint32(0), most
	for _, v := range b.f.values {
		lo = max(lo, uint32(v[0]))
	}
	fits := func(d *ir.Dispatch, n uint32) bool {
		p.Max = float64(n)
		_, err := msl.Describe(g, d)
		return err == nil
	}
	for _, x := range g.Nodes {
		interrupt.Poll(ctx)
		d, ok := x.(*ir.Dispatch)
		if !ok || d.Effects != nil || !msl.Declared(&g.Kernels[d.Kernel]) || fits(d, hi) || !fits(d, lo) { // what fits nowhere counts as not known
			continue
		}
		least := lo // it fits there, and not at hi
		for hi-least > 1 {
			if mid := least + (hi-least)/2; fits(d, mid) {
				least = mid
			} else {
				hi = mid
			}
		}
		hi = least
	}
	if p.Max = float64(hi); hi < most {
		b.remark("graph %s: with $%s greater than %d a kernel would touch what lies behind a buffer", b.g.name, p.Name, hi)
	}
}

// finish makes the states of the graph what the log says of them, and has those that lie elsewhere when a run ends copied to where the
// next one finds them.
func (b *builder) finish(ctx context.Context, c *carried, names *stateNames) (*ir.Graph, error) {
	g := b.Unfinished()
	named := map[string]int{}
	for i := range g.Memories {
		named[g.Memories[i].Name] = i
	}
	name := func(p part) string { return names.of(b.w, c.root(p)) }
	size := func(p part) (n int64) {
		root := c.root(p)
		n = root.g.size(root.role)
		for h, j := range c.groups[root] {
			n = max(n, h.size(j))
		}
		return n
	}
	state := func(m *ir.Memory, p part) error {
		m.Kind, m.Size = ir.State, size(p)
		own := name(p)
		if m.Name != own {
			if i, ok := named[own]; ok { // a buffer of the graph that is something else has the name
				other := own
				for n := 2; ; n++ {
					if other = fmt.Sprintf("%s.other%d", own, n); names.free(other) && !has(named, other) {
						break
					}
				}
				g.Memories[i].Name, named[other] = other, i
			}
			delete(named, m.Name)
			m.Name = own
			named[own] = slices.IndexFunc(g.Memories, func(m ir.Memory) bool { return m.Name == own })
		}
		e := c.first[c.root(p)]
		if e == nil {
			e = &entry{}
		}
		return b.contents(m, p.g.runs[0].buffers[p.role], p.g.runs[0].lives[p.role].base(), e)
	}
	for j := range b.run.buffers {
		id, ok := b.number[j]
		p := part{b.g, j}
		_, joined := c.groups[c.root(p)]
		if !ok || !b.finds[j] && !joined && !b.unsure[j] {
			continue
		}
		m := &g.Memories[id]
		if m.Kind != ir.Scratch && m.Kind != ir.Output && m.Kind != ir.State || b.run.buffers[j].role != "" && m.Kind != ir.State {
			continue
		}
		if err := state(m, p); err != nil {
			if b.finds[j] && !b.written[j] {
				return nil, err
			}
			m.Init = ir.FillU32(0)
			b.remark("graph %s: %s begins as zeros: %v", b.g.name, m.Name, err)
		}
	}
	if moved := b.moving(); len(moved) > 0 {
		b.remark("graph %s: whether a run reads what %s held before is not known, as effects of kernels are not, and other buffers are in its place in other runs: it counts as what one graph keeps", b.g.name, strings.Join(moved, ", "))
	}
	if err := b.move(g, c.copies[b.g], c, state); err != nil {
		return nil, err
	}
	if err := g.CheckContext(ctx); err != nil {
		return nil, err
	}
	return g, nil
}

// stateNames are the names of states, which are the same in all graphs that have them.
type stateNames struct {
	names map[part]string
	taken map[string]bool
}

func (s *stateNames) free(name string) bool { return !s.taken[name] }

func has[K comparable, V any](m map[K]V, k K) bool {
	_, ok := m[k]
	return ok
}

func (s *stateNames) of(w *world, root part) string {
	if s.names[root] == "" {
		base := w.nameOfLife(root.g.runs[0], root.role)
		name := base
		for n := 2; s.taken[name]; n++ {
			name = fmt.Sprintf("%s.%d", base, n)
		}
		s.names[root], s.taken[name] = name, true
	}
	return s.names[root]
}

// moving returns the names of buffers that are states since effects are not known, and not the same in all runs: of a few.
func (b *builder) moving() (names []string) {
	for j := range b.run.buffers {
		if !b.finds[j] && b.unsure[j] && !b.g.steady(j) {
			if len(names) == 4 {
				return append(names, "…")
			}
			names = append(names, b.w.nameOfLife(b.run, j))
		}
	}
	return names
}

// move copies states from where a run leaves them to where the next one finds them. Where one lies in the place of another, all are
// read before any is written.
func (b *builder) move(g *ir.Graph, moves []move, c *carried, state func(*ir.Memory, part) error) error {
	if len(moves) == 0 {
		return nil
	}
	var from, to []ir.MemID
	for _, m := range moves {
		from = append(from, b.number[m.from])
		if j, ok := c.in(m.to, b.g); ok {
			to = append(to, b.number[j])
			continue
		}
		id := b.Memory(ir.Memory{Name: fmt.Sprintf("state %d of another graph", len(to)), Kind: ir.State, Size: 1})
		if err := state(&g.Memories[id], m.to); err != nil {
			return err
		}
		to = append(to, id)
	}
	copied := func(from, to ir.MemID) {
		n := min(g.Memories[from].Size, g.Memories[to].Size)
		b.Copy(ir.ViewOf(to, 0, n), ir.ViewOf(from, 0, n), "to where the next step finds it")
	}
	b.Barrier()
	crossed := false
	for i, id := range from {
		if !slices.Contains(to, id) {
			continue
		}
		room := b.Memory(ir.Memory{Name: fmt.Sprintf("on its way.%d", i), Kind: ir.Scratch, Size: g.Memories[id].Size})
		copied(id, room)
		from[i], crossed = room, true
	}
	if crossed {
		b.Barrier()
	}
	for i := range from {
		copied(from[i], to[i])
	}
	return nil
}

// affine returns number i of the run as an expression.
func (b *builder) affine(i int) ir.Affine {
	x := &b.f.numbers[i]
	terms := []ir.Term{}
	for p, s := range x.slope {
		if s != 0 {
			terms = append(terms, ir.Term{Param: ir.ParamID(p), Coeff: s})
		}
	}
	return ir.Linear(x.con, terms...)
}

// next returns the next number as an expression.
func (b *builder) next() ir.Affine {
	b.at++
	return b.affine(b.at - 1)
}

// extent returns the next number as an extent of a grid.
func (b *builder) extent() ir.Extent {
	div := b.f.numbers[b.at].div
	return ir.Extent{Num: b.next(), Div: div}
}

// params declares the params, within what the buffers and 32 bits allow.
func (b *builder) params(o *Options, remark func(string, ...any)) error {
	for p, name := range b.f.names {
		lo, hi, seen := int64(0), int64(math.MaxInt32), [2]uint64{math.MaxUint64, 0}
		for _, v := range b.f.values {
			seen[0], seen[1] = min(seen[0], v[p]), max(seen[1], v[p])
		}
		if len(b.f.names) > 1 { // what fits depends on the others
			lo, hi = int64(seen[0]), int64(seen[1])
		} else {
			b.limits(func(x *form, least, most int64) {
				if len(x.slope) == 0 || x.slope[p] == 0 {
					return
				}
				s := x.slope[p]
				if s > 0 {
					lo, hi = max(lo, ceilDiv(least-x.con, s)), min(hi, floorDiv(most-x.con, s))
				} else {
					lo, hi = max(lo, ceilDiv(x.con-most, -s)), min(hi, floorDiv(x.con-least, -s))
				}
			})
		}
		if most, ok := o.Max[name]; ok {
			if uint64(most) < seen[1] {
				return b.w.log.fault(b.run.offset, "graph %s: param %s was up to %d, and its greatest value shall be %d", b.g.name, name, seen[1], most)
			}
			hi = min(hi, int64(most))
		}
		lo, hi = min(lo, int64(seen[0])), max(hi, int64(seen[1]))
		if hi > math.MaxUint32 {
			return b.w.log.fault(b.run.offset, "graph %s: param %s is up to %d", b.g.name, name, hi)
		}
		b.Param(name, uint32(lo), uint32(hi))
		remark("graph %s: $%s was %d to %d in %d runs, and may be %d to %d", b.g.name, name, seen[0], seen[1], len(b.g.runs), lo, hi)
	}
	return nil
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b != 0 && a < 0 {
		q--
	}
	return q
}

func ceilDiv(a, b int64) int64 { return -floorDiv(-a, b) }

// limits calls do with each number that must stay in a range.
func (b *builder) limits(do func(x *form, least, most int64)) {
	i := 0
	take := func(least, most int64) {
		do(&b.f.numbers[i], least, most)
		i++
	}
	ends := func(x *binding) (lo, hi int64) {
		_, at := x.buffer.root()
		l := &b.run.lives[x.part]
		if hi = at + x.buffer.size; l.window != nil {
			hi = min(hi, l.window.hi)
		}
		return max(at, l.base()), hi
	}
	offset := func(x *binding) {
		lo, hi := ends(x)
		if x.limit > 0 {
			end := b.f.numbers[i].plus(&b.f.numbers[i+1])
			do(&end, lo, hi)
		}
		if take(lo, hi-1); x.limit > 0 {
			take(1, maxBuffer)
		}
	}
	for n := range b.run.commands {
		c := &b.run.commands[n]
		switch c.kind {
		case dispatch:
			for range 3 {
				take(0, math.MaxUint32)
			}
			var bound [maxSlots]struct {
				offset *form
				end    int64
			}
			for j := range c.binds {
				switch x := &c.binds[j]; {
				case x.buffer != nil:
					_, bound[x.slot].end = ends(x)
					bound[x.slot].offset = &b.f.numbers[i]
					offset(x)
				case len(x.data)%4 == 0:
					for range len(x.data) / 4 {
						take(0, math.MaxUint32)
					}
				}
			}
			for _, h := range c.hints {
				if x := bound[h.slot]; x.offset != nil {
					end := b.f.numbers[i].plus(&b.f.numbers[i+1])
					end = end.plus(x.offset)
					do(&end, 0, x.end)
				}
				take(0, maxBuffer)
				take(0, maxBuffer)
			}
		case copying, filling:
			for j := range c.binds {
				offset(&c.binds[j])
			}
			take(0, maxBuffer)
		}
	}
}

// collect finds the table of each pipeline: what its code says, without what no dispatch binds; or what dispatches bind.
func (b *builder) collect() error {
	bound := map[*pipeline]map[[2]int]ir.Arg{}
	for i := range b.run.commands {
		c := &b.run.commands[i]
		if c.kind != dispatch {
			continue
		}
		t := b.tables[c.code]
		if t == nil {
			kernel, known, err := b.k.of(c.code)
			if err != nil {
				return err
			}
			t = &table{kernel, known}
			b.tables[c.code], bound[c.code] = t, map[[2]int]ir.Arg{}
		}
		for _, x := range c.binds {
			a := ir.Arg{Slot: uint8(x.slot), Name: fmt.Sprintf("b%d", x.slot), Type: ir.U8, Access: ir.ReadWriteArg}
			if x.buffer == nil {
				a.Kind, a.Access, a.Count = ir.ConstantArg, ir.ReadArg, int32(len(x.data))
			}
			if old, ok := bound[c.code][[2]int{0, x.slot}]; ok && old.Kind != a.Kind {
				a.Kind, a.Access, a.Count = ir.DeviceArg, ir.ReadArg, 0
			}
			bound[c.code][[2]int{0, x.slot}] = a
		}
		for _, m := range c.memory {
			bound[c.code][[2]int{1, m.slot}] = ir.Arg{Slot: uint8(m.slot), Name: fmt.Sprintf("t%d", m.slot), Kind: ir.ThreadgroupArg, Access: ir.ReadWriteArg, Type: ir.U8}
		}
	}
	for p, t := range b.tables {
		if t.known {
			t.kernel.Args = slices.DeleteFunc(slices.Clone(t.kernel.Args), func(a ir.Arg) bool {
				_, ok := bound[p][[2]int{int(bit(a.Kind == ir.ThreadgroupArg)), int(a.Slot)}]
				return !ok
			})
			continue
		}
		for class := range 2 {
			for slot := range maxSlots {
				if a, ok := bound[p][[2]int{class, slot}]; ok {
					t.kernel.Args = append(t.kernel.Args, a)
				}
			}
		}
	}
	return nil
}

// memory declares buffer j of the run. What kind of memory a buffer is that commands write shows when all of them are there.
func (b *builder) memory(j int) error {
	if b.g.givenBy(j) != nil {
		return nil // its words are numbers
	}
	buf := b.run.buffers[j]
	m := ir.Memory{Name: b.w.nameOfLife(b.run, j), Size: b.g.size(j), Kind: ir.Scratch}
	if buf.private {
		m.Storage = ir.Private
	}
	written := b.written[j]
	same, host, lost := true, true, false
	first := &b.run.entries[j]
	for _, r := range b.g.runs {
		e := &r.entries[j]
		host, lost = host && e.run == nil, lost || e.lost
		same = same && e.run == nil && (e.version == first.version || samePieces(e.pieces, first.pieces))
	}
	again := !same || len(b.g.runs) == 1 && b.run.rewritten(j)
	if b.run.lives[j].window != nil { // a part of a buffer that is used for other things too
		again = !same || b.g.rewritten(j)
	}
	switch {
	case !b.run.lives[j].touched:
	case buf.role == "input" || buf.role == "" && !written && host && again && !lost:
		m.Kind = ir.Input
	case buf.role == "output":
		m.Kind = ir.Output
	case buf.role == "weight" || buf.role == "" && !written && host:
		m.Kind = ir.Weight
	case buf.role == "state" || buf.role == "" && !written:
		m.Kind, b.finds[j] = ir.State, true
	}
	if m.Kind == ir.Weight {
		if err := b.contents(&m, buf, b.run.lives[j].base(), &entry{lost: lost, version: first.version, pieces: first.pieces}); err != nil {
			return err
		}
		if !same {
			return b.w.log.fault(b.run.offset, "graph %s: a weight, %s, does not hold the same in all runs", b.g.name, m.Name)
		}
		if len(first.pieces) == 0 {
			b.remark("graph %s: nothing writes %s, and the log does not have what it holds: zeros", b.g.name, m.Name)
		}
	}
	b.number[j] = b.Memory(m)
	return nil
}

// writes finds the buffers that some command may write, as far as the code of kernels says it.
func (b *builder) writes() []bool {
	out := make([]bool, len(b.run.buffers))
	for i := range b.run.commands {
		c := &b.run.commands[i]
		for n := range c.binds {
			if x := &c.binds[n]; x.buffer != nil && (c.kind == filling || c.kind == copying && n == 1 || c.kind == dispatch && writesSlot(&b.tables[c.code].kernel, x.slot)) {
				out[x.part] = true
			}
		}
	}
	return out
}

func samePieces(a, b []piece) bool {
	return slices.EqualFunc(a, b, func(x, y piece) bool {
		return x.offset == y.offset && x.n == y.n && x.value == y.value && (x.data == nil) == (y.data == nil) && string(x.data) == string(y.data)
	})
}

// nameOf returns the name of a buffer, which no other one has.
func (w *world) nameOf(b *buffer) string {
	base := cmp.Or(printable(b.name), printable(b.label), "buffer")
	if w.names == nil {
		w.names = map[string]*buffer{}
	}
	name := base
	if printable(b.name) == "" {
		name = fmt.Sprintf("%s.%d", base, b.id)
	}
	if other := w.names[name]; other != nil && other != b {
		name = fmt.Sprintf("%s.%d", base, b.id)
	}
	w.names[name] = b
	return name
}

// nameOfLife returns the name of a life of a run: of the first one of a buffer that is the buffer's.
func (w *world) nameOfLife(r *run, j int) string {
	name := w.nameOf(r.buffers[j])
	if n := r.lives[j].nth; n > 0 {
		return fmt.Sprintf("%s.life%d", name, n+1)
	}
	return name
}

// maxName bounds the name of a memory, in bytes.
const maxName = 200

// printable returns a text of a log as a name can hold it.
func printable(text string) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '_'
		}
		return r
	}, text)
	for len(text) > maxName {
		_, n := utf8.DecodeLastRuneInString(text)
		text = text[:len(text)-n]
	}
	return text
}

// contents gives a weight or state what the log says that it held at first.
func (b *builder) contents(m *ir.Memory, buf *buffer, base int64, e *entry) error {
	k := b.k
	if e.lost {
		return b.w.log.fault(b.run.offset, "graph %s: the buffer %s was written by dispatches of no graph before: what it held is not in the log (mark steps from the first dispatch on)", b.g.name, m.Name)
	}
	pieces := e.pieces
	if !slices.ContainsFunc(pieces, func(p piece) bool { return p.data != nil || p.value != 0 }) {
		m.Init = ir.FillU32(0)
		return nil
	}
	if len(pieces) == 1 && pieces[0].n == m.Size {
		if word, ok := repeated(pieces[0].data); ok {
			m.Init = ir.Init{Kind: ir.InitFill, Pattern: word}
			return nil
		}
	}
	if most := maxSparse + 16*int64(len(b.w.log.data)); m.Size > most {
		return b.w.log.fault(b.run.offset, "graph %s: the buffer %s has %d bytes, of which the log has few: at most %d are expected", b.g.name, m.Name, m.Size, most)
	}
	blob := k.blobs[writing{buf, e.version, base, m.Size}]
	if blob == nil {
		if len(pieces) == 1 && pieces[0].n == m.Size && pieces[0].data != nil {
			blob = ir.MappedBlob(pieces[0].data, ir.Digest{})
		} else {
			blob = ir.MadeBlob(m.Size, ir.Digest{}, func(dst []byte, at int64) error {
				clear(dst)
				for _, p := range cut(pieces, at, int64(len(dst))) {
					if copy(dst[p.offset-at:], p.data); p.data == nil && p.value != 0 {
						for i := range p.n {
							dst[p.offset-at+i] = p.value
						}
					}
				}
				return nil
			})
		}
		var err error
		if blob.Digest, err = blob.Sum(k.ctx, nil); err != nil {
			return err
		}
		k.blobs[writing{buf, e.version, base, m.Size}] = blob
	}
	m.Init = ir.Init{Kind: ir.InitBlob, Blob: blob}
	return nil
}

// repeated returns the word that data repeats. Passes know the value of such memory: a norm's weights of ones.
func repeated(data []byte) (word [4]byte, ok bool) {
	if len(data) < 4 || len(data)%4 != 0 || !bytes.Equal(data[4:], data[:len(data)-4]) {
		return word, false
	}
	return [4]byte(data[:4]), true
}

// command adds a command.
func (b *builder) command(c *command) error {
	view := func(x *binding) ir.View {
		_, at := x.buffer.root()
		l := &b.run.lives[x.part]
		off := b.next().AddConst(-l.base())
		end := at + x.buffer.size
		if l.window != nil {
			end = min(end, l.window.hi)
		}
		v := ir.View{Mem: b.number[x.part], Off: off, Len: ir.Const(end - l.base()).Sub(off)}
		if x.limit > 0 {
			v.Len = b.next()
		}
		return v
	}
	if c.kind != barrier && c.kind != pop && b.behind { // the last one of a step orders nothing
		b.Barrier()
		b.behind, b.moved = false, false
	}
	switch c.kind {
	case barrier:
		b.behind = b.moved
		return nil
	case push:
		b.Group(c.label)
	case pop:
		b.EndGroup()
	case copying:
		src, dst := view(&c.binds[0]), view(&c.binds[1])
		src.Len = b.next()
		dst.Len = src.Len
		b.Copy(dst, src, c.label)
		b.moved = true
	case filling:
		dst := view(&c.binds[0])
		dst.Len = b.next()
		b.Fill(dst, c.value, c.label)
		b.moved = true
	case dispatch:
		b.moved = true
		return b.dispatch(c, view)
	}
	return nil
}

// dispatch adds a dispatch.
func (b *builder) dispatch(c *command, view func(*binding) ir.View) error {
	t := b.tables[c.code]
	d := ir.Dispatch{Label: c.label}
	if c.threads {
		d.GridKind = ir.Threads
	}
	for i := range 3 {
		d.Grid[i], d.Threadgroup[i] = b.extent(), uint32(c.group[i])
	}
	views := map[int]ir.View{}
	for j := range c.binds {
		x := &c.binds[j]
		a, listed := t.kernel.Arg(uint8(x.slot))
		if v := b.given(x); v != nil {
			b.at += x.numbers() // its offset, which is 0
			if listed {
				d.Bindings = append(d.Bindings, b.inline(&binding{slot: x.slot, data: b.run.entries[v.role].bytes()}, a, v.first))
			}
			continue
		}
		if x.buffer != nil {
			v := view(x)
			if views[x.slot] = v; listed {
				d.Bindings = append(d.Bindings, ir.BufferArg(uint8(x.slot), v))
			}
			continue
		}
		first := b.at
		if len(x.data)%4 == 0 {
			b.at += len(x.data) / 4
		}
		if listed {
			d.Bindings = append(d.Bindings, b.inline(x, a, first))
		}
	}
	for _, m := range c.memory {
		if slices.ContainsFunc(t.kernel.Args, func(a ir.Arg) bool { return a.Kind == ir.ThreadgroupArg && int(a.Slot) == m.slot }) {
			d.ThreadgroupMemory = append(d.ThreadgroupMemory, ir.ThreadgroupMemory{Slot: uint8(m.slot), Bytes: uint32(m.bytes)})
		}
	}
	if len(c.hints) > 0 {
		d.Effects = b.hinted(c, &t.kernel, views)
	}
	id, ok := b.kernels[c.code]
	if !ok {
		kernel := t.kernel
		kernel.Name = b.kernelName(kernel.Function)
		id = b.Kernel(kernel)
		b.kernels[c.code] = id
	}
	d.Kernel = id
	b.Dispatch(d)
	return nil
}

// given returns how the words of a buffer that is bound are numbers; nil: they are not, or inline bytes are bound.
func (b *builder) given(x *binding) *given {
	if x.buffer == nil {
		return nil
	}
	return b.g.givenBy(x.part)
}

// kernelName returns a name for a kernel that none of the graph has.
func (b *builder) kernelName(function string) string {
	name := function
	for n := 2; ; n++ {
		if !slices.ContainsFunc(b.Unfinished().Kernels, func(k ir.Kernel) bool { return k.Name == name }) {
			return name
		}
		name = fmt.Sprintf("%s.%d", function, n)
	}
}

// inline returns inline bytes, whose words are the numbers of the run from `first` on. Where some depend on params, it is a
// scalar, or values in argument memory.
func (b *builder) inline(x *binding, a ir.Arg, first int) ir.Binding {
	slot := uint8(x.slot)
	data := x.data
	if a.Kind == ir.ConstantArg && a.Count > 0 {
		data = data[:min(int64(len(data)), int64(a.Count)*a.Type.Size())]
	}
	varies := func(word int) bool { return b.f.numbers[first+word].slope != nil }
	words, some := 0, false
	if len(x.data)%4 == 0 {
		words = len(data) / 4
	}
	for i := range words {
		some = some || varies(i)
	}
	if !some {
		return ir.BytesArg(slot, data)
	}
	if a.Count == 1 {
		switch {
		case len(data) == 4 && (a.Type == ir.U32 || a.Type == ir.I32):
			return ir.ScalarArg(slot, a.Type, b.affine(first))
		case len(data) == 8 && (a.Type == ir.U64 || a.Type == ir.I64) && !varies(1) && b.f.numbers[first+1].con == 0:
			return ir.ScalarArg(slot, a.Type, b.affine(first))
		}
	}
	if b.argsMem == ir.NoMem {
		b.args = ir.Memory{Name: "args", Kind: ir.Argument, Align: argAlign, Init: ir.Init{Kind: ir.InitValues}}
		b.argsMem = b.Memory(b.args)
	}
	start := (b.args.Size + argAlign - 1) / argAlign * argAlign
	typed := func(v ir.Value) ir.Value {
		if n := a.Type.Size(); n > 0 && int64(len(v.Bytes))%n == 0 {
			v.Type = a.Type
		}
		return v
	}
	add := func(v ir.Value) { b.args.Init.Values = append(b.args.Init.Values, v) }
	from := 0
	for i := range words {
		if !varies(i) {
			continue
		}
		if from < 4*i {
			add(typed(ir.Value{Off: start + int64(from), Bytes: data[from : 4*i]}))
		}
		add(ir.Value{Off: start + int64(4*i), Type: ir.U32, Expr: b.affine(first + i)})
		from = 4*i + 4
	}
	if from < len(data) {
		add(typed(ir.Value{Off: start + int64(from), Bytes: data[from:]}))
	}
	b.args.Size = start + int64(len(data))
	return ir.BufferArg(slot, ir.ViewOf(b.argsMem, start, int64(len(data))))
}

// hinted returns the effects that hints say. What is bound to other slots may be touched as the kernel's table says.
func (b *builder) hinted(c *command, k *ir.Kernel, views map[int]ir.View) *ir.Effects {
	out := &ir.Effects{Complete: true}
	said := map[int]bool{}
	for _, h := range c.hints {
		off, n := b.next(), b.next()
		v, ok := views[h.slot]
		if !ok {
			continue
		}
		said[h.slot] = true
		r := ir.Region{Mem: v.Mem, Off: v.Off.Add(off), Run: n}
		if h.write {
			out.Writes = append(out.Writes, ir.Write{Region: r, Must: h.must})
		} else {
			out.Reads = append(out.Reads, r)
		}
	}
	for slot := range maxSlots {
		v, ok := views[slot]
		a, listed := k.Arg(uint8(slot))
		if !ok || !listed || said[slot] {
			continue
		}
		if a.Kind != ir.DeviceArg || a.Access != ir.WriteArg {
			out.Reads = append(out.Reads, v.Contiguous())
		}
		if a.Kind == ir.DeviceArg && a.Access != ir.ReadArg {
			out.Writes = append(out.Writes, ir.Write{Region: v.Contiguous()})
		}
	}
	return out
}

// roles decides what the buffers are that commands write and nobody has named: outputs if nothing reads them behind their last write
// and the host can see them, else scratch; and whether a run may read what they held before, which makes them states.
func (b *builder) roles(ctx context.Context, g *ir.Graph, remark func(string, ...any)) {
	var undeclared error
	// What is read before it is written: with all that kernels may do, and with what is known that they do.
	var initial [2]map[ir.MemID]bool
	var polls interrupt.Every
	for known := range initial {
		described := *g
		described.Nodes = slices.Clone(g.Nodes)
		for i, n := range described.Nodes {
			polls.Poll(ctx, 256)
			d, ok := n.(*ir.Dispatch)
			if !ok || d.Effects != nil {
				continue
			}
			copied := *d
			copied.Effects = touches(g, d, known == 1)
			if msl.Declared(&g.Kernels[d.Kernel]) {
				if e, err := msl.Describe(g, d); err == nil {
					copied.Effects = e
				} else {
					undeclared = cmp.Or(undeclared, err)
				}
			}
			described.Nodes[i] = &copied
		}
		initial[known] = map[ir.MemID]bool{}
		flow := dataflow.Build(ctx, &described)
		for i := range flow.Commands {
			for _, u := range flow.Reads(i) {
				if u.Region.Mem != ir.NoMem && u.Initial {
					initial[known][u.Region.Mem] = true
				}
			}
		}
	}
	if undeclared != nil {
		remark("graph %s: a declaration does not fit a dispatch: %v", b.g.name, undeclared)
	}
	last := b.lastTouch()
	for j, buf := range b.run.buffers {
		id, ok := b.number[j]
		if !ok {
			continue
		}
		m := &g.Memories[id]
		if m.Kind != ir.Scratch || buf.role != "" {
			continue
		}
		b.finds[j] = initial[1][id]
		b.unsure[j] = initial[0][id] && !initial[1][id]
		if !buf.private && b.run.lives[j].touched && (last[id] == wrote || slices.Contains(b.k.options.Outputs, m.Name)) {
			m.Kind = ir.Output
		}
	}
}

// touches returns what a dispatch may touch as far as its kernel's code says it: all of what is bound to it. With whole set it
// writes all of what it may write, before it reads any of that.
func touches(g *ir.Graph, d *ir.Dispatch, whole bool) *ir.Effects {
	out := &ir.Effects{Complete: true}
	for i := range d.Bindings {
		x := &d.Bindings[i]
		a, listed := g.Kernels[d.Kernel].Arg(x.Slot)
		if x.Kind != ir.BindView || !listed {
			continue
		}
		writes := a.Kind == ir.DeviceArg && a.Access != ir.ReadArg
		if !writes || a.Access != ir.WriteArg && !whole {
			out.Reads = append(out.Reads, x.View.Contiguous())
		}
		if writes {
			out.Writes = append(out.Writes, ir.Write{Region: x.View.Contiguous(), Must: whole})
		}
	}
	return out
}

// touch is what a step does last with a buffer.
type touch uint8

const (
	untouched touch = iota
	read
	wrote
)

// lastTouch returns, by buffer of the run, what is done last with it.
func (b *builder) lastTouch() []touch {
	out := make([]touch, len(b.Unfinished().Memories))
	for i := range b.run.commands {
		c := &b.run.commands[i]
		for n := range c.binds {
			x := &c.binds[n]
			if x.buffer == nil {
				continue
			}
			writes := c.kind == filling || c.kind == copying && n == 1
			if c.kind == dispatch {
				writes = writesSlot(&b.tables[c.code].kernel, x.slot)
			}
			id, ok := b.number[x.part]
			if !ok {
				continue
			}
			if out[id] = read; writes {
				out[id] = wrote
			}
		}
	}
	return out
}
