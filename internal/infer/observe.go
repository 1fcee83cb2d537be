package infer

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/softmetal"
	"github.com/mlxc/mlxc/ir"
)

// Options of an [Observer]. The zero value is good.
type Options struct {
	// Shapes is how many shapes of a class are made up, in addition to those of the graph; 0: 48.
	Shapes int
	// HeldOut is how many shapes that expressions were not fitted to they must hold on; 0: 24.
	HeldOut int
	// Seed seeds the choice of shapes and data.
	Seed uint64
	// Limit is the maximum time of a dispatch; 0: a minute.
	Limit time.Duration
	// Threads and Bytes are limits of a dispatch: one with more threads, or that binds more bytes, does not run; 0: 4
	// Mi and 256 MiB.
	Threads, Bytes int64
	// Library and Cache are those of [softmetal.Options].
	Library, Cache string
	// Trust is that of [softmetal.Options].
	Trust bool
	// Progress, if it is not nil, is called with the fraction of the work that is done.
	Progress func(float64)
}

// Observer runs dispatches on software Metal under the checker, and records what they touch.
type Observer struct {
	o        Options
	device   *softmetal.Device
	queue    backend.Queue
	patterns map[pattern][]byte // what memory is filled with
	unused   []backend.Buffer   // those of earlier runs, which all have one kind of storage
}

// New returns an observer. It must be closed.
func New(ctx context.Context, o Options) (*Observer, error) {
	if o.Shapes <= 0 {
		o.Shapes = 48
	}
	if o.HeldOut <= 0 {
		o.HeldOut = 24
	}
	if o.Limit <= 0 {
		o.Limit = time.Minute
	}
	if o.Threads <= 0 {
		o.Threads = 4 << 20
	}
	if o.Bytes <= 0 {
		o.Bytes = 256 << 20
	}
	d, err := softmetal.New(ctx, softmetal.Options{Workers: 1, Check: true, Library: o.Library, Cache: o.Cache, Trust: o.Trust,
		// The contents of views, the states of their bytes, and the private memory of threads.
		Memory: 8*o.Bytes + 1<<30, Work: 10 * o.Limit})
	if err != nil {
		return nil, err
	}
	x := &Observer{o: o, device: d, patterns: map[pattern][]byte{}}
	if x.queue, err = d.NewQueue(); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return x, nil
}

// Close ends the device.
func (x *Observer) Close() error {
	for _, b := range x.unused {
		_ = b.Close()
	}
	return errors.Join(x.queue.Close(), x.device.Close())
}

// touched is what a shape's dispatches touched of a view, with all contents that were tried.
type touched struct {
	reads  spans
	writes spans // with any contents
	must   spans // with all contents
	varies bool  // what is touched depends on the contents
}

func (t *touched) all() spans { return t.reads.union(t.writes) }

// observation is what a shape touched, and what the checker found.
type observation struct {
	*shape
	number   int // index among those of its class
	views    []touched
	findings []softmetal.Finding
}

// refused is the error of a shape that is not used: the dispatch did what it must not, took too long, or cannot run.
type refused struct {
	why string
	// ends says that the kernel took longer than Options.Limit.
	ends bool
	// far says that an access outside of every view ended the kernel: some bytes were an index, and nobody knows those of which argument.
	far bool
	// beyond are the indices of the views that were accessed out of bounds.
	beyond []int
}

func (r *refused) Error() string { return r.why }

// contents is a kind of data in memory.
type contents int

const (
	ordinary contents = iota // numbers around zero, small indices
	others                   // numbers of the same kinds, but different ones
	oddities                 // infinities, NaNs, zeros; indices that are zero
	allKinds
	alike = allKinds // floats above zero, and integers that are all one number
)

// content is what a run finds in memory. Integers are below most; those that are alike are all most - 1.
type content struct {
	contents
	most uint32
}

// varied returns the first so many kinds of contents.
func varied(kinds contents, most uint32) (out []content) {
	for what := range kinds {
		if what == alike {
			most = 2 | most&asWords
		}
		out = append(out, content{what, most})
	}
	return out
}

// poolBytes is the size of the patterns that memory holds over and over.
const poolBytes = 1 << 20

// asWords is a bit of the bound of integers: bytes, which may be anything, are filled as words of 32 bits, so that indices among them are
// small.
const asWords = 1 << 16

// smaller returns the next bound to try of integers in memory, 0 behind the last.
func smaller(most uint32) uint32 {
	words, n := most&asWords, most&^asWords
	switch {
	case n <= 1:
		return 0
	case n == 2 && words == 0:
		return 8 | asWords
	}
	return n/2 | words
}

// pattern is what data is copied from: that of floats of a size, or of integers below a bound.
type pattern struct {
	t    ir.DType
	what contents
	size int
	most uint32
}

// fill fills to with data of an element type, which begins somewhere in a pattern.
func (x *Observer) fill(to []byte, t ir.DType, with content, r *rand.Rand) {
	what, most := with.contents, with.most
	if what == others { // elsewhere in the pattern
		what = ordinary
	}
	p := pattern{t: t, what: what, size: max(1, int(t.Size()))}
	switch {
	case !t.Valid():
		p.t, p.size = ir.F32, 4
	case !t.Float():
		p.t, p.most = 0, most&^asWords
		if most&asWords != 0 {
			p.size = max(p.size, 4)
		}
	}
	at := int(r.Uint32()) % poolBytes &^ 7
	if p.most > 0 && what == oddities {
		clear(to)
		return
	}
	all := x.patterns[p]
	if all == nil {
		all = p.data()
		x.patterns[p] = all
	}
	for n := copy(to, all[at:]); n < len(to); {
		n += copy(to[n:], all)
	}
}

// data returns poolBytes or more bytes of a pattern, always the same.
func (p pattern) data() []byte {
	r := rand.New(rand.NewPCG(1, 2))
	out := make([]byte, poolBytes)
	values := []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), 0, float32(math.Copysign(0, -1)), 1, math.MaxFloat32, -math.MaxFloat32, 1e-40, -2.5, 0.5}
	base, mask, odd := uint16(0x3400), uint16(0x7ff), []uint16{0x7e00, 0x7c00, 0xfc00, 0, 0x8000, 0x3c00, 0x7bff, 1}
	if p.t == ir.BF16 {
		base, mask, odd = 0x3e80, 0xff, []uint16{0x7fc0, 0x7f80, 0xff80, 0, 0x8000, 0x3f80, 0x7f7f, 1}
	}
	sign := uint32(0x8000)
	if p.what == alike {
		sign = 0
	}
	for i := 0; i < len(out); i += p.size {
		u := r.Uint32()
		switch { // ordinary floats are from a quarter to one, of either sign
		case p.most > 0 && p.what == alike:
			out[i] = byte(p.most - 1)
		case p.most > 0:
			out[i] = byte(u % p.most)
		case p.size == 4 && p.what == oddities:
			binary.LittleEndian.PutUint32(out[i:], math.Float32bits(values[u%uint32(len(values))]))
		case p.size == 4:
			binary.LittleEndian.PutUint32(out[i:], 0x3e800000|u&(sign<<16|0xffffff))
		case p.what == oddities:
			binary.LittleEndian.PutUint16(out[i:], odd[u%8])
		default:
			binary.LittleEndian.PutUint16(out[i:], base|uint16(u&(sign|uint32(mask))))
		}
	}
	return out
}

// madeLimit is how long a made-up shape may take.
const madeLimit = 3 * time.Second

// run runs a shape with some contents.
func (x *Observer) run(ctx context.Context, c *class, s *shape, with content, together, declared bool) (obs *softmetal.Observed, mems []ir.MemID, err error) {
	if n := c.threads(s); n > x.o.Threads {
		return nil, nil, &refused{why: fmt.Sprintf("it has %d threads, more than the %d that are run", n, x.o.Threads)}
	}
	bytes := int64(0)
	for _, n := range s.lens {
		bytes += n
	}
	if bytes > x.o.Bytes {
		return nil, nil, &refused{why: fmt.Sprintf("it binds %d bytes, more than the %d that are run", bytes, x.o.Bytes)}
	}
	if !c.fits(s) {
		return nil, nil, &refused{why: "a value is beyond its type"}
	}
	h := fnv.New64a()
	fmt.Fprint(h, s.vals, with.contents)
	r := rand.New(rand.NewPCG(x.o.Seed, h.Sum64()))
	var change func(to []byte, t ir.DType)
	if with.contents != ordinary {
		change = func(to []byte, t ir.DType) { x.fill(to, t, with, r) }
	}
	g, node, mems, err := c.graph(s, together, declared, change)
	if err != nil {
		return nil, nil, &refused{why: err.Error()}
	}
	limit := x.o.Limit
	if !s.real { // it has few threads: if it takes long, some word that was made up is the end of a loop
		limit = min(limit, madeLimit)
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	places := make([]backend.Place, len(g.Memories))
	for i := range g.Memories {
		b, err := x.take(&g.Memories[i])
		if err != nil {
			return nil, nil, err
		}
		defer x.put(b)
		places[i] = backend.At(b)
		data := make([]byte, g.Memories[i].Size)
		x.fill(data, c.slots[c.views[slices.Index(mems, ir.MemID(i))]].Type, with, r)
		if err := backend.Wait(ctx)(x.queue.Upload(ctx, places[i], data)); err != nil {
			return nil, nil, err
		}
	}
	e, err := x.device.Compile(ctx, &backend.Program{Graph: g, Places: places})
	if err != nil {
		return nil, nil, err
	}
	defer e.Close()
	f, err := e.NewFrame(backend.FrameSpec{})
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	err = backend.Wait(ctx)(x.queue.Submit(limited, backend.Submission{Executable: e, Frame: f}))
	if err != nil {
		// A queue that has failed cannot be used again.
		old := x.queue
		var again error
		if x.queue, again = x.device.NewQueue(); again != nil {
			x.queue = old
			return nil, nil, again
		}
		_ = old.Close()
		x.device.Observed()
		switch {
		case ctx.Err() != nil:
			return nil, nil, context.Cause(ctx)
		case limited.Err() != nil:
			return nil, nil, &refused{why: fmt.Sprintf("it does not end within %v", limit), ends: true}
		}
		return nil, nil, &refused{why: err.Error(), far: strings.Contains(err.Error(), "an access to memory that is not its own")}
	}
	for _, o := range x.device.Observed() {
		if o.Command == node.ID {
			return &o, mems, nil
		}
	}
	return nil, nil, &refused{why: "nothing was observed of it"}
}

// take returns a buffer for a memory, one that was used before if there is one: the pages of a new one take longer than most runs.
func (x *Observer) take(m *ir.Memory) (backend.Buffer, error) {
	i := slices.IndexFunc(x.unused, func(b backend.Buffer) bool { return b.Size() == m.Size })
	if i < 0 {
		return x.device.Alloc(backend.Spec(m))
	}
	b := x.unused[i]
	x.unused = slices.Delete(x.unused, i, i+1)
	return b, nil
}

// put keeps a buffer for other runs, and closes those that were not used for the longest time.
func (x *Observer) put(b backend.Buffer) {
	x.unused = append(x.unused, b)
	bytes := int64(0)
	for i := len(x.unused) - 1; i >= 0; i-- {
		if bytes += x.unused[i].Size(); bytes > x.o.Bytes {
			for _, b := range x.unused[:i+1] {
				_ = b.Close()
			}
			x.unused = slices.Delete(x.unused, 0, i+1)
			return
		}
	}
}

// kindsOf returns the kinds and arguments of those findings for which a shape may be refused.
func kindsOf(list []softmetal.Finding) (out []string) {
	for i := range list {
		f := &list[i]
		if f.Kind == softmetal.NonFinite || f.Kind == softmetal.UndeclaredRead || f.Kind == softmetal.UndeclaredWrite || f.Kind == softmetal.Unwritten || f.Kind == softmetal.Misaligned {
			continue
		}
		if s := f.Kind.String() + " of " + f.Argument; !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// observe runs a shape with each of some contents. Findings of the kinds in tolerated are no reason to refuse it,
// since the graph's own dispatches have them.
func (x *Observer) observe(ctx context.Context, c *class, s *shape, list []content, tolerated []string, declared bool) (*observation, error) {
	out := &observation{shape: s, views: make([]touched, len(c.views))}
	for n, with := range list {
		o, mems, err := x.run(ctx, c, s, with, false, declared)
		if err != nil {
			return nil, err
		}
		bad := &refused{}
		for i := range o.Findings {
			f := &o.Findings[i]
			switch f.Kind {
			case softmetal.NonFinite, softmetal.UndeclaredRead, softmetal.UndeclaredWrite, softmetal.Unwritten, softmetal.Misaligned:
				continue
			case softmetal.OutOfBounds, softmetal.WritesReadOnly:
				if f.Slot >= 0 {
					bad.why = f.String()
					if v := slices.IndexFunc(c.views, func(k int) bool { return int(c.slots[k].Slot) == f.Slot }); v >= 0 && !slices.Contains(bad.beyond, v) {
						bad.beyond = append(bad.beyond, v)
					}
					continue
				}
			case softmetal.Limit:
				bad.why = f.String()
				continue
			}
			if !s.real && !slices.Contains(tolerated, f.Kind.String()+" of "+f.Argument) && bad.why == "" {
				bad.why = f.String()
			}
		}
		out.findings = append(out.findings, o.Findings...)
		if bad.why != "" {
			return out, bad
		}
		for v := range out.views {
			t := &out.views[v]
			var reads, writes []span
			each := func(r *ir.Region, to *[]span) {
				if r.Mem == mems[v] {
					*to = append(*to, span{r.Off.Const, r.Off.Const + r.Run.Const})
				}
			}
			for i := range o.Effects.Reads {
				each(&o.Effects.Reads[i], &reads)
			}
			for i := range o.Effects.Writes {
				each(&o.Effects.Writes[i].Region, &writes)
			}
			rs, ws := normal(reads), normal(writes)
			if n == 0 {
				t.reads, t.writes, t.must = rs, ws, ws
				continue
			}
			t.varies = t.varies || !rs.equal(t.reads) || !ws.equal(t.writes)
			t.reads, t.writes, t.must = t.reads.union(rs), t.writes.union(ws), t.must.intersect(ws)
		}
	}
	return out, nil
}

// quote returns a text on one line, for a comment of a declaration.
func quote(s string) string { return strings.Join(strings.Fields(s), " ") }
