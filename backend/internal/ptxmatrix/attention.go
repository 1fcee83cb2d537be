package ptxmatrix

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/air/nvptx"
	"github.com/mlxc/mlxc/ir"
)

// Attention of many queries over the keys of a cache: a block takes 64 queries of a head, a warp 16 of them, and keys in tiles of
// 64, or of 32 beside heads of 256, with a running maximum and sum (a "streaming" softmax). Within a window tiles begin with the first one of which the block's first query sees a
// key. Where they begin and end does not depend on which queries a block has, so that results do not either.
//
// Scores are products of numbers of 16 bits, by mma.sync, times the scale. Weights, exp(score − maximum), are f32. The product with a
// value is that of two parts of the weight, each as long as a TF32, whose sum is less than an ulp off: values of 16 bits are
// TF32 as they are. The sums of a tile are added by tensor cores, those of the tiles by fma, so that as little is cut off
// as the declaration allows.
//
// A value that a query does not see counts for nothing, even if it is infinite. Where queries of a warp see different keys of a tile, sums that are not
// finite are made again: tensor cores get zeros in the place of values that are infinite or NaN, and these are then added one by one, to the queries that see them.
type attention struct {
	source *air.Kernel
	elem   ir.DType // of queries, keys, values and results
	coded  bool     // keys and values are codes of 8 bits, with scales
	width  int      // elements of a head
	causal bool
	window bool // a query sees so many keys at most, the last ones
	capped bool // scores are kept within bounds
	sinks  bool // each head has one more score, which has no value
	gpu    GPU
}

const (
	queries        = 64 // of a block
	attentionWarps = 4
	// leastQueries is from how many on queries share blocks.
	leastQueries = 16
	// widest is the widest head whose queries a warp keeps in registers.
	widest = 128
)

var attentionNames = regexp.MustCompile(`^sdpa_rows_(window_|capped_|sinks_|)(float16_t|bfloat16_t)_(?:(64_64|96_96|128_128|256_256)|q8_0_(64_64|128_128|256_256))$`)

// causalConstant is the index of the function constant do_causal.
const causalConstant = 22

func attentionOf(k *air.Kernel, constants []ir.FunctionConstant, gpu GPU) *attention {
	m := attentionNames.FindStringSubmatch(k.Name)
	if m == nil {
		return nil
	}
	a := &attention{source: k, elem: ir.F16, gpu: gpu, window: m[1] != "", capped: m[1] == "capped_", sinks: m[1] == "sinks_"}
	if m[2] == "bfloat16_t" {
		a.elem = ir.BF16
	}
	a.coded, a.causal = m[4] != "", a.window
	width, _, _ := strings.Cut(m[3]+m[4], "_")
	a.width, _ = strconv.Atoi(width)
	for _, c := range constants {
		a.causal = a.causal || c.Index == causalConstant && c.Bits != 0
	}
	return a
}

// Fit implements [Kernel].
func (a *attention) Fit(groups [3]uint64, given Given) Fit {
	if given.Rows > 0 {
		groups[1] = min(groups[1], uint64(given.Rows))
	}
	switch {
	case groups[1] < leastQueries && a.gpu.warpgroups():
		return a.few(groups, given)
	case groups[1] < leastQueries: // there are no clusters
		return Fit{}
	case a.memory()+reserved > a.gpu.Memory:
		return Fit{}
	}
	return Fit{Rows: queries}
}

// Rows implements [Kernel].
func (*attention) Rows() (argument string, dimension int) { return "", 1 }

// Wide implements [Kernel].
func (*attention) Wide(string) bool { return false }

// Launch implements [Kernel].
func (a *attention) Launch(groups [3]uint64, f Fit) (grid [3]uint64, threads, shared uint32) {
	if f.Heads > 0 {
		return [3]uint64{clusterBlocks * f.clusters(groups[0]), (groups[1] + uint64(f.Rows) - 1) / uint64(f.Rows), 1}, 32 * decodeWarps, uint32(a.decodeMemory(f))
	}
	return [3]uint64{groups[0], (groups[1] + queries - 1) / queries, 1}, 32 * attentionWarps, uint32(a.memory())
}

// keys is how many keys a tile has. With wider heads there are fewer, since the sums of their elements take more registers.
func (a *attention) keys() int {
	if a.width <= widest {
		return 64
	}
	return 32
}

// The shared memory of a block begins with two tiles of keys and of values: one is used while the next one comes. With a cache of 8 bits the tile in use is there once, as numbers of 16 bits
// that were made of codes. Behind it come the codes of the next tile, each row followed by its scales, and then the scales of the tile in use as f32: first the keys', then the values', for each
// group of 32 elements those of all keys. At the end lie the queries, if they are not in registers, and without codes the weights of each warp, which it stores when values are added one by one.
func (a *attention) tile() int { return 2 * a.keys() * a.width }
func (a *attention) codesAt() int {
	return 2 * a.tile()
}
func (a *attention) codesTile() int { return a.keys() * a.pitch() }
func (a *attention) tileScalesAt() int {
	return a.codesAt() + 2*a.codesTile()
}
func (a *attention) tileScales() int { return 4 * a.keys() * a.groups() }
func (a *attention) queriesAt() int {
	if a.coded {
		return a.tileScalesAt() + 2*a.tileScales()
	}
	return 4 * a.tile()
}
func (a *attention) scratchAt() int {
	if a.width <= widest {
		return a.queriesAt()
	}
	return a.queriesAt() + 2*queries*a.width
}
func (a *attention) memory() int {
	if a.coded {
		return a.scratchAt() + alignment
	}
	return a.scratchAt() + attentionWarps*4*16*a.keys() + alignment
}

// attend writes an entry.
type attend struct {
	*attention
	entry

	member, lane, warp string    // of four threads that share a row; of the warp; of the block
	quad               string    // the row of the thread's first query
	base               string    // of shared memory
	head, heads, rows  string    // of the block; all; queries
	first              string    // query of the warp
	visible            [2]string // keys that the thread's queries see, with those before their windows
	before             [2]string // of which so many are before their windows
	all, most, least   string    // keys that any query of the block sees, any of the warp, and its first query
	opens, settled     string    // keys before the window of the warp's first query, and of its last one
	unread             string    // before that of the block's first query
	from               [2]string // the thread's next row of keys, and of values
	distance           [2]string // bytes from key to key there
	scaleFrom          [2]string // where the scales of these rows lie
	scalePitch         [2]string
	own                string // where the thread's part of the queries lies, before queriesAt
	row, unit          string // which of a tile the thread brings
	begin, stage       string // the tile's first key, and where it lies
	ratio              string // what sums of products are multiplied by
	q, o               [][4]string
	top, sum           [2]string
	rare               []func() // write what stands behind all else
}

// Emit implements [Kernel].
func (a *attention) Emit(launch nvptx.Launch, f Fit) []byte {
	if f.Heads > 0 {
		return a.emitFew(launch, f)
	}
	e := &attend{attention: a, entry: entry{kernel: a.source, launch: launch, typ: a.elem}}
	if !a.gpu.warpgroups() {
		e.target = elder(launch)
	}
	e.parameters()
	e.ratio = e.scaling(e.attention)
	e.place()
	e.queries()
	e.tiles()
	e.store()
	for _, write := range e.rare {
		write()
	}
	return e.text(32 * attentionWarps)
}

func (e *attend) place() {
	thread := e.r("mov.u32", "%%tid.x")
	e.lane, e.warp = e.r("and.b32", "%s, 31", thread), e.r("shr.u32", "%s, 5", thread)
	e.quad, e.member = e.r("shr.u32", "%s, 2", e.lane), e.r("and.b32", "%s, 3", e.lane)
	e.head, e.heads, e.rows = e.r("mov.u32", "%%ctaid.x"), e.r("mov.u32", "%%nctaid.x"), e.threads(1)
	// Blocks with the most keys begin first.
	block := e.r("sub.s32", "%s, %s", e.r("add.s32", "%s, -1", e.r("mov.u32", "%%nctaid.y")), e.r("mov.u32", "%%ctaid.y"))
	begin := e.r("mul.lo.s32", "%s, %d", block, queries)
	e.Line("@%s bra \t$L_end", e.Make("p", "setp.ge.u32", "%s, %s", begin, e.rows))
	e.first = e.r("mad.lo.s32", "%s, 16, %s", e.warp, begin)
	n := e.args["N"]
	sees := func(query string) string { // how many keys it sees; of queries behind the last one as many as that
		if !e.causal {
			return n
		}
		last := e.r("add.s32", "%s, -1", e.rows)
		return e.r("add.s32", "%s, %s", e.r("sub.s32", "%s, %s", n, last), e.r("min.u32", "%s, %s", query, last))
	}
	e.all = sees(e.r("add.s32", "%s, %d", begin, queries-1))
	e.least, e.most = sees(e.first), sees(e.r("add.s32", "%s, 15", e.first))
	for i := range e.visible {
		e.visible[i] = sees(e.query(i))
	}
	e.begin = e.r("mov.b32", "0")
	if e.window {
		e.opens, e.settled = e.unreached(e.least), e.unreached(e.most)
		for i := range e.before {
			e.before[i] = e.unreached(e.visible[i])
		}
		e.unread = e.unreached(sees(begin))
		e.begin = e.r("and.b32", "%s, %d", e.unread, -e.keys())
	}
	start := e.r("mov.u32", "mlxc_shared")
	e.base = e.r("and.b32", "%s, %d", e.r("add.s32", "%s, %d", start, alignment-1), -alignment)

	e.row, e.unit = e.r("div.u32", "%s, %d", thread, e.units()), e.r("rem.u32", "%s, %d", thread, e.units())
	kv := e.Make("rd", "cvt.u64.u32", "%s", e.r("div.u32", "%s, %s", e.head, e.args["gqa_factor"]))
	key := e.Make("rd", "cvt.u64.u32", "%s", e.r("add.s32", "%s, %s", e.row, e.begin))
	for i, name := range []string{"keys", "values"} {
		stride := e.args[name[:1]+"_seq_stride"]
		at := e.Make("rd", "mul.lo.s64", "%s, %s", e.args[name[:1]+"_head_stride"], kv)
		if e.coded {
			e.distance[i] = stride
			e.scaleFrom[i], e.scalePitch[i] = e.scalesOf(name, at, stride, key)
			at = e.Make("rd", "add.s64", "%s, %s", at, e.args[name])
		} else {
			e.distance[i] = e.Make("rd", "shl.b64", "%s, 1", stride)
			at = e.Make("rd", "mad.lo.s64", "%s, 2, %s", at, e.args[name])
		}
		at = e.Make("rd", "mad.lo.s64", "%s, %s, %s", e.distance[i], key, at)
		e.from[i] = e.plus(at, e.r("shl.b32", "%s, 4", e.unit))
	}
}

// unreached is how many of the keys up to a query's own are before its window.
func (e *entry) unreached(visible string) string {
	return e.r("max.s32", "%s, 0", e.r("sub.s32", "%s, %s", visible, e.args["window"]))
}

// units is how many times 16 bytes a row has in memory, and step how many rows the threads bring at a time.
func (a *attention) units() int { return a.rowBytes() / 16 }
func (a *attention) step() int {
	if a.width == 96 {
		return 8 // so that their places are changed alike
	}
	return 32 * attentionWarps / a.units()
}

// query is one of the thread's two queries, which may be behind the last one.
func (e *attend) query(i int) string {
	return e.r("add.s32", "%s, %s", e.first, e.r("add.s32", "%s, %d", e.quad, 8*i))
}

// place returns where a query lies in an array, from the thread's first two elements on.
func (e *attend) at(array, query string) string {
	n := e.Make("rd", "add.s64", "%s, %s", e.wide(query, e.heads), e.Make("rd", "cvt.u64.u32", "%s", e.head))
	n = e.Make("rd", "mad.lo.s64", "%s, %d, %s", n, 2*e.width, e.args[array])
	return e.plus(n, e.r("shl.b32", "%s, 2", e.member))
}

// queries reads the left factors of scores.
func (e *attend) queries() {
	e.q, e.o = make([][4]string, e.width/16), make([][4]string, e.width/8)
	last := e.r("add.s32", "%s, -1", e.rows)
	for i := range 2 {
		from := e.at("queries", e.r("min.u32", "%s, %s", e.query(i), last))
		for s := range e.q {
			for j := range 2 {
				low := e.Make("rs", "ld.global.b16", "[%s+%d]", from, 32*s+16*j)
				high := e.Make("rs", "ld.global.b16", "[%s+%d]", from, 32*s+16*j+2)
				e.q[s][2*j+i] = e.r("mov.b32", "{%s, %s}", low, high)
			}
		}
		e.top[i], e.sum[i] = e.r("mov.b32", none), e.r("mov.b32", "0f00000000")
	}
	if e.width > widest {
		e.own = e.r("mad.lo.s32", "%s, %d, %s", e.warp, 2*queries/attentionWarps*e.width, e.r("mad.lo.s32", "%s, 16, %s", e.lane, e.base))
		for s := range e.q {
			e.Line("st.shared.v4.b32 \t[%s+%d], {%s}", e.own, e.queriesAt()+32*16*s, list(e.q[s][:]))
		}
	}
	for j := range e.o {
		for i := range e.o[j] {
			e.o[j][i] = e.r("mov.b32", "0f00000000")
		}
	}
}

// swizzle is by what the places of 16 bytes in a row are changed, so that eight rows at one place lie in different banks.
func (e *attend) swizzle(row string) string {
	if e.width == 96 {
		return e.r("and.b32", "%s, 3", e.r("shr.u32", "%s, 1", row))
	}
	return e.r("and.b32", "%s, 7", row)
}

// bring asks for the tile that begins with a key, if any query sees it.
func (e *attend) bring(begin, stage string) {
	skip := e.Label()
	e.Line("@%s bra \t%s", e.Make("p", "setp.ge.u32", "%s, %s", begin, e.all), skip)
	pitch, tile, begins := 2*e.width, e.tile(), 0
	var at [2]string // of every other rows that are brought at a time: those of wide heads change their places by different numbers
	if e.coded {
		pitch, tile, begins = e.pitch(), e.codesTile(), e.codesAt()
		at[0] = e.r("mad.lo.s32", "%s, %d, %s", e.row, pitch, e.r("mad.lo.s32", "%s, 16, %s", e.unit, e.base))
		at[1] = at[0]
	} else {
		unit := e.r("shl.b32", "%s, 4", e.r("xor.b32", "%s, %s", e.unit, e.swizzle(e.row)))
		row := e.r("mad.lo.s32", "%s, %d, %s", e.row, pitch, e.r("add.s32", "%s, %s", e.base, stage))
		at[0] = e.r("add.s32", "%s, %s", row, unit)
		at[1] = at[0]
		if e.step() < 8 {
			at[1] = e.r("add.s32", "%s, %s", row, e.r("xor.b32", "%s, %d", unit, 16*e.step()))
		}
	}
	first, end := e.r("add.s32", "%s, %s", begin, e.row), e.all
	if e.window { // in unsigned numbers those before are behind
		first, end = e.r("sub.s32", "%s, %s", first, e.unread), e.r("sub.s32", "%s, %s", end, e.unread)
	}
	if e.width == 96 {
		e.Line("@%s bra \t%s", e.Make("p", "setp.ge.u32", "%s, %d", e.row, e.step()), skip)
	}
	for i := range e.from {
		single, next := e.Label(), e.Label()
		low := e.Make("rd", "and.b64", "%s, 15", e.Make("rd", "or.b64", "%s, %s", e.from[i], e.distance[i]))
		odd := e.Make("p", "setp.ne.b64", "%s, 0", low)
		if e.coded {
			odd = e.Make("p", "or.pred", "%s, %s", odd, e.oddScales(e.groups(), e.scaleFrom[i], e.scalePitch[i]))
		}
		e.Line("@%s bra \t%s", odd, single)
		for _, wide := range []bool{true, false} {
			from, scales := e.from[i], e.scaleFrom[i]
			for p := 0; p < e.keys(); p += e.step() {
				there := e.Make("p", "setp.lt.u32", "%s, %s", e.r("add.s32", "%s, %d", first, p), end)
				at, to := at[p/e.step()%2], begins+i*tile+p*pitch
				switch {
				case wide:
					e.Line("cp.async.cg.shared.global \t[%s+%d], [%s], 16, %s", at, to, from, e.either(there, "r", "16", "0"))
					if e.coded {
						e.copyScales(e.groups(), e.unit, at, to+e.rowBytes(), scales, there)
					}
				case e.coded:
					e.singleCodes(e.groups(), e.unit, at, to, from, scales, there)
				default:
					e.single(at, to, from, there)
				}
				if p+e.step() < e.keys() {
					from = e.Make("rd", "mad.lo.s64", "%s, %d, %s", e.distance[i], e.step(), from)
					if e.coded {
						scales = e.Make("rd", "mad.lo.s64", "%s, %d, %s", e.scalePitch[i], e.step(), scales)
					}
				}
			}
			if wide {
				e.Line("bra \t%s", next)
				e.Mark(single)
			}
		}
		e.Mark(next)
		e.Line("mad.lo.s64 \t%s, %s, %d, %s", e.from[i], e.distance[i], e.keys(), e.from[i])
		if e.coded {
			e.Line("mad.lo.s64 \t%s, %s, %d, %s", e.scaleFrom[i], e.scalePitch[i], e.keys(), e.scaleFrom[i])
		}
	}
	e.Mark(skip)
	e.Line("cp.async.commit_group")
}

// tiles goes through the keys.
func (e *attend) tiles() {
	e.stage = e.r("mov.b32", "0")
	other := ""
	if !e.coded {
		other = e.r("mov.b32", "%d", 2*e.tile())
	}
	e.bring(e.begin, e.stage)
	e.Mark("$L_tile")
	e.Line("cp.async.wait_group \t0")
	e.Line("bar.sync \t0")
	if e.coded {
		e.decode()
		e.Line("bar.sync \t0")
	}
	following := e.r("add.s32", "%s, %d", e.begin, e.keys())
	e.bring(following, other)
	skip := e.Label()
	e.Line("@%s bra \t%s", e.Make("p", "setp.ge.u32", "%s, %s", e.begin, e.most), skip)
	if e.window {
		e.Line("@%s bra \t%s", e.Make("p", "setp.le.u32", "%s, %s", following, e.opens), skip)
	}

	pitch := 2 * e.width
	r, g := e.r("and.b32", "%s, 7", e.lane), e.r("shr.u32", "%s, 3", e.lane)
	by := e.swizzle(r)
	row := e.r("add.s32", "%s, %s", e.base, e.stage)
	left, unit := e.r("mad.lo.s32", "%s, %d, %s", r, pitch, row), e.r("shl.b32", "%s, 4", e.r("xor.b32", "%s, %s", g, by))
	s := e.scores(left, unit)
	partly := e.Make("p", "setp.gt.u32", "%s, %s", following, e.least) // of the tile's keys some queries of the warp do not see all
	if e.window {
		partly = e.Make("p", "or.pred", "%s, %s", partly, e.Make("p", "setp.lt.u32", "%s, %s", e.begin, e.settled))
	}
	all := e.Label()
	e.Line("@!%s bra \t%s", partly, all)
	e.unseen(s, 0xFF800000)
	e.Mark(all)
	factor := e.weigh(s)
	mixed := e.Label()
	if e.coded {
		e.Line("@%s bra \t%s", partly, mixed)
		e.codedValues(s, left, unit, factor, false)
		e.Line("bra \t%s", skip)
		e.Mark(mixed)
		e.unseen(s, unseenWeight)
		e.codedValues(s, left, unit, factor, true)
	} else {
		row = e.r("mad.lo.s32", "%s, %d, %s", e.r("mad.lo.s32", "%s, 8, %s", g, r), pitch, row)
		unit = e.r("shl.b32", "%s, 4", by)
		e.Line("@%s bra \t%s", partly, mixed)
		e.values(s, row, unit, factor, false)
		e.Line("bra \t%s", skip)
		e.Mark(mixed)
		any := e.Make("p", "setp.ne.u32", "%s, 0", e.values(s, row, unit, factor, true))
		all := e.New("p")
		e.Line("vote.sync.any.pred \t%s, %s, -1", all, any)
		e.Line("@!%s bra \t%s", all, skip)
		e.apart(s)
	}
	e.Mark(skip)
	e.Line("mov.b32 \t%s, %s", e.begin, following)
	if !e.coded {
		e.Line("xor.b32 \t%s, %s, %d", e.stage, e.stage, 2*e.tile())
		e.Line("xor.b32 \t%s, %s, %d", other, other, 2*e.tile())
	}
	e.Line("@%s bra \t$L_tile", e.Make("p", "setp.lt.u32", "%s, %s", e.begin, e.all))
}

// decode makes numbers of 16 bits of the codes that the thread brought, and f32 of scales.
func (e *attend) decode() {
	from := e.r("mad.lo.s32", "%s, %d, %s", e.row, e.pitch(), e.base)
	codes := e.r("mad.lo.s32", "%s, 16, %s", e.unit, from)
	row := e.r("mad.lo.s32", "%s, %d, %s", e.row, 2*e.width, e.base)
	place := e.r("shl.b32", "%s, 4", e.r("xor.b32", "%s, %s", e.r("shl.b32", "%s, 1", e.unit), e.swizzle(e.row)))
	to := [2]string{e.r("add.s32", "%s, %s", row, place), e.r("add.s32", "%s, %s", row, e.r("xor.b32", "%s, 16", place))}
	scale := e.r("mad.lo.s32", "%s, 2, %s", e.unit, from)
	scaleTo := e.r("mad.lo.s32", "%s, 4, %s", e.r("mad.lo.s32", "%s, %d, %s", e.unit, e.keys(), e.row), e.base)
	one := e.Make("p", "setp.lt.u32", "%s, %d", e.unit, e.groups()) // the thread has a scale of each row
	for i := range e.from {
		for p := 0; p < e.keys(); p += e.step() {
			begins := e.codesAt() + i*e.codesTile() + p*e.pitch()
			words := e.four(codes, begins)
			h := e.Make("rs", "ld.shared.b16", "[%s+%d]", e.either(one, "r", scale, from), begins+e.rowBytes())
			for half := range 2 {
				var out []string
				for _, word := range words[2*half:][:2] {
					out = append(out, e.codePairs(e.typ, word, 0x4140, 0x4342)...)
				}
				e.Line("st.shared.v4.b32 \t[%s+%d], {%s}", to[half], i*e.tile()+p*2*e.width, list(out))
			}
			e.Line("@%s st.shared.b32 \t[%s+%d], %s", one, scaleTo, e.tileScalesAt()+i*e.tileScales()+4*p, e.r("cvt.f32.f16", "%s", h))
		}
	}
}

// two are the scales of the thread's two keys of eight: of keys or values, and of a group of 32 elements.
func (e *attend) two(i, group, j int) [2]string {
	out := [2]string{e.New("r"), e.New("r")}
	at := e.r("mad.lo.s32", "%s, 8, %s", e.member, e.base)
	e.Line("ld.shared.v2.b32 \t{%s}, [%s+%d]", list(out[:]), at, e.tileScalesAt()+i*e.tileScales()+4*(group*e.keys()+8*j))
	return out
}

func (e *entry) zeros() (out [4]string) {
	for i := range out {
		out[i] = e.r("mov.b32", "0f00000000")
	}
	return out
}

// scores are those of a tile: of eight keys, two of each of the thread's queries.
func (e *attend) scores(row, unit string) (out [][4]string) {
	var at []string
	for t := range e.width / 32 {
		at = append(at, e.r("add.s32", "%s, %s", row, e.r("xor.b32", "%s, %d", unit, 64*t)))
	}
	sums := make([][][4]string, e.keys()/8)
	step := func(j, t int) {
		if t == 0 || e.coded || t == (len(at)+1)/2 && e.halves() { // sums of 32 products are within the bound
			sums[j] = append(sums[j], e.zeros())
		}
		acc, b := sums[j][len(sums[j])-1], e.matrices("", at[t], j*8*2*e.width)
		for i := range 2 {
			e.multiply(acc, e.q[2*t+i], [2]string(b[2*i:2*i+2]))
		}
		if e.coded {
			scales := e.two(0, t, j)
			for i := range acc {
				if t == 0 {
					e.Line("mul.rn.f32 \t%s, %s, %s", acc[i], acc[i], scales[i%2])
				} else {
					e.Line("fma.rn.f32 \t%s, %s, %s, %s", sums[j][0][i], acc[i], scales[i%2], sums[j][0][i])
				}
			}
			sums[j] = sums[j][:1]
		}
	}
	if e.width <= widest {
		for j := range sums {
			for t := range at {
				step(j, t)
			}
		}
	} else { // queries are read once
		for t := range at {
			for i := range 2 {
				e.q[2*t+i] = [4]string(e.four(e.own, e.queriesAt()+32*16*(2*t+i)))
			}
			for j := range sums {
				step(j, t)
			}
		}
	}
	for j := range sums {
		acc := e.joined(sums[j])
		for i := range acc {
			acc[i] = e.score(e.attention, acc[i], e.ratio)
		}
		out = append(out, acc)
	}
	return out
}

// scaling is what sums of products are multiplied by: scores, or what is bent to make them.
func (e *entry) scaling(a *attention) string {
	if a.capped {
		return e.r("div.rn.f32", "%s, %s", e.args["scale"], e.args["cap"])
	}
	return e.args["scale"]
}

// score makes one of a sum.
func (e *entry) score(a *attention, sum, ratio string) string {
	s := e.r("mul.rn.f32", "%s, %s", sum, ratio)
	if a.capped {
		s = e.r("mul.rn.f32", "%s, %s", e.args["cap"], e.tanh(s))
	}
	return s
}

// tanh is within 4 ulp, without the arithmetic of f64 that the function of its name has (package ptxwrite), of which a tile would need as much as of all else. Scores are sums whose order is that of this code
// alone, so that no other kernel makes the same tanh of the same number.
func (e *entry) tanh(x string) string {
	size := e.r("abs.f32", "%s", x)
	// 1 - 2/(exp(2x) + 1)
	more := e.Call("exp", e.r("add.rn.f32", "%s, %s", size, size))
	more = e.r("rcp.rn.f32", "%s", e.r("add.rn.f32", "%s, 0f3F800000", more))
	more = e.r("fma.rn.f32", "%s, 0fC0000000, 0f3F800000", more)
	// x + x³·p(x²), up to 0.55
	square := e.r("mul.rn.f32", "%s, %s", x, x)
	less := e.r("fma.rn.f32", "%s, 0f3C80F082, 0fBD563CAE", square)
	less = e.r("fma.rn.f32", "%s, %s, 0f3E085941", less, square)
	less = e.r("fma.rn.f32", "%s, %s, 0fBEAAA9ED", less, square)
	less = e.r("fma.rn.f32", "%s, %s, %s", e.r("mul.rn.f32", "%s, %s", less, square), size, size)
	return e.r("copysign.f32", "%s, %s", x, e.either(e.Make("p", "setp.lt.f32", "%s, 0f3F0CCCCD", size), "r", less, more))
}

// halves reports whether a sum by tensor cores is made in two halves, which are added. Those of compute capability 8.0 lose up to ten times 2^−24 of all magnitudes with
// each eight products: of the 64 of a tile, or of 128 elements of a head, that is more than the bound of a sum.
func (a *attention) halves() bool { return !a.gpu.warpgroups() }

// joined is the sum of sums.
func (e *attend) joined(sums [][4]string) [4]string {
	out := sums[0]
	for _, s := range sums[1:] {
		for i := range out {
			out[i] = e.r("add.rn.f32", "%s, %s", out[i], s[i])
		}
	}
	return out
}

func list(registers []string) string { return strings.Join(registers, ", ") }

// unseenWeight stands for a weight that counts for nothing whatever it is multiplied by: −0, which is no exp of a number.
const unseenWeight = 0x80000000

// unseen puts a number in the place of scores, or of weights, of keys that queries do not see.
func (e *attend) unseen(s [][4]string, number uint32) {
	own := e.r("mad.lo.s32", "%s, 2, %s", e.member, e.begin)
	for i := range 2 {
		left, hidden := e.r("sub.s32", "%s, %s", e.visible[i], own), ""
		if e.window {
			hidden = e.r("sub.s32", "%s, %s", e.before[i], own)
		}
		for j := range s {
			for k := range 2 {
				p := e.Make("p", "setp.le.s32", "%s, %d", left, 8*j+k)
				if e.window {
					p = e.Make("p", "or.pred", "%s, %s", p, e.Make("p", "setp.gt.s32", "%s, %d", hidden, 8*j+k))
				}
				e.Line("selp.b32 \t%s, %d, %s, %s", s[j][2*i+k], number, s[j][2*i+k], p)
			}
		}
	}
}

// weigh makes weights of scores, and returns by what all before is multiplied.
func (e *attend) weigh(s [][4]string) (factor [2]string) {
	for i := range 2 {
		top := s[0][2*i]
		for j := range s {
			for k := range 2 {
				if j+k > 0 {
					top = e.r("max.f32", "%s, %s", top, s[j][2*i+k])
				}
			}
		}
		top = e.across(top, "max.f32")
		top = e.r("max.f32", "%s, %s", top, e.top[i])
		factor[i] = e.Call("exp", e.r("sub.rn.f32", "%s, %s", e.top[i], top))
		e.Line("mov.b32 \t%s, %s", e.top[i], top)
		e.Line("mul.rn.f32 \t%s, %s, %s", e.sum[i], e.sum[i], factor[i])
		for j := range s {
			for k := range 2 {
				w := e.Call("exp", e.r("sub.rn.f32", "%s, %s", s[j][2*i+k], top))
				e.Line("mov.b32 \t%s, %s", s[j][2*i+k], w)
				e.Line("add.rn.f32 \t%s, %s, %s", e.sum[i], e.sum[i], w)
			}
		}
	}
	return factor
}

// across joins what the four threads of a row have.
func (e *entry) across(v, instruction string) string {
	for _, distance := range []int{1, 2} {
		v = e.r(instruction, "%s, %s", v, e.r("shfl.sync.bfly.b32", "%s, %d, 31, -1", v, distance))
	}
	return v
}

// parts are weights as sums of two TF32.
func (e *attend) parts(weights [4]string) (out [2][4]string) {
	for i, w := range weights {
		out[0][i] = e.r("cvt.rna.tf32.f32", "%s", w)
		out[1][i] = e.r("cvt.rna.tf32.f32", "%s", e.r("sub.rn.f32", "%s, %s", w, out[0][i]))
	}
	return out
}

// sums are those of products of a tile's weights and values, for eight elements: of the weights' first parts, and of the second ones.
type sums [2][][4]string

// values adds the products of weights and values. A thread has the weights of keys 2·member and 2·member + 1 of each eight; as a
// left factor these are elements member and member + 4, so the right one has its rows in that order. In a mixed tile, of which some queries do not see all keys, sums are made again if they are not finite, with
// zeros in the place of values that are infinite or NaN; the register that it returns then has bits if there were any.
func (e *attend) values(s [][4]string, row, unit string, factor [2]string, mixed bool) (infinite string) {
	pitch := 2 * e.width
	if mixed {
		infinite = e.r("mov.b32", "0")
	}
	var parts [][2][4]string
	for _, w := range s {
		parts = append(parts, e.parts(w))
	}
	for j := range e.o {
		at := e.r("add.s32", "%s, %s", row, e.r("xor.b32", "%s, %d", unit, 16*j))
		var v []string
		for w := range e.keys() / 32 {
			m := e.matrices(".trans", at, e.tile()+w*32*pitch)
			v = append(v, m[:]...)
		}
		products := func(finite bool) (all sums) {
			for k, two := range v {
				if finite {
					two = e.finite(two, infinite)
				}
				e.product(&all, k, parts[k], two)
			}
			return all
		}
		var again func() sums
		if mixed {
			again = func() sums { return products(true) }
		}
		e.add(j, products(false), factor, again)
	}
	return infinite
}

// codedValues adds the products of weights and values that are codes. Codes are always finite, but scales may not be: they multiply the weights, and the weight of a key that a query does not see stays 0
// whatever the scale is. Each group of 32 elements has scales of its own, so that weights are taken apart anew for it, a few keys at a time, which saves registers. Rows and units are those of scores.
func (e *attend) codedValues(s [][4]string, row, unit string, factor [2]string, mixed bool) {
	for group := range e.groups() {
		at := e.r("add.s32", "%s, %s", row, e.r("xor.b32", "%s, %d", unit, 64*group))
		var all [4]sums
		for k, weights := range s {
			scales := e.two(1, group, k)
			for i, w := range weights {
				weights[i] = e.r("mul.rn.f32", "%s, %s", w, scales[i%2])
				if mixed {
					weights[i] = e.either(e.Make("p", "setp.eq.u32", "%s, %d", w, uint32(unseenWeight)), "r", "0", weights[i])
				}
			}
			parts := e.parts(weights)
			for i, v := range e.matrices(".trans", at, e.tile()+k*8*2*e.width) {
				e.product(&all[i], k, parts, v)
			}
		}
		for i := range all {
			e.add(4*group+i, all[i], factor, nil)
		}
	}
}

// product adds the products of the parts of weights with two values of 16 bits, those of the k-th eight keys.
func (e *attend) product(to *sums, k int, parts [2][4]string, v string) {
	low, high := e.New("rs"), e.New("rs")
	e.Line("mov.b32 \t{%s, %s}, %s", low, high, v)
	b := []string{e.widened(low), e.widened(high)}
	for p, a := range parts {
		if k == 0 || k == e.keys()/16 && p == 0 && e.halves() { // second parts are so small that it does not matter what of their sum is lost
			to[p] = append(to[p], e.zeros())
		}
		acc := to[p][len(to[p])-1]
		e.Line("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 \t{%s}, {%s}, {%s}, {%s}", list(acc[:]), list([]string{a[0], a[2], a[1], a[3]}), list(b), list(acc[:]))
	}
}

// add adds the sums of the j-th eight elements to those of the tiles before. If there is another way to make them, it is taken where any sum of the warp is not finite: a value that is not makes all of its
// products infinite or NaN, with weights that are 0 too. The code for that stands behind all else.
func (e *attend) add(j int, of sums, factor [2]string, again func() sums) {
	whole := func(of sums) (first, both [4]string) {
		first = e.joined(of[0])
		for i, rest := range e.joined(of[1]) {
			both[i] = e.r("add.rn.f32", "%s, %s", first[i], rest)
		}
		return first, both
	}
	first, both := whole(of)
	if again != nil {
		other, back := e.Label(), e.Label()
		zero := e.r("mul.rn.f32", "%s, 0f00000000", both[0])
		for _, v := range both[1:] {
			zero = e.r("fma.rn.f32", "%s, 0f00000000, %s", v, zero)
		}
		some := e.New("p")
		e.Line("vote.sync.any.pred \t%s, %s, -1", some, e.Make("p", "setp.nan.f32", "%s, %s", zero, zero))
		e.Line("@%s bra \t%s", some, other)
		e.Mark(back)
		e.rare = append(e.rare, func() {
			e.Mark(other)
			first2, both2 := whole(again())
			for i := range both {
				e.Line("mov.b32 \t%s, %s", first[i], first2[i])
				e.Line("mov.b32 \t%s, %s", both[i], both2[i])
			}
			e.Line("bra \t%s", back)
		})
	}
	for i, o := range e.o[j] {
		// The second part of a weight may be 0 or below, and a value infinite: the first part's product says what comes of that.
		e.Line("@%s mov.b32 \t%s, %s", e.Make("p", "setp.nan.f32", "%s, %s", both[i], both[i]), both[i], first[i])
		e.Line("fma.rn.f32 \t%s, %s, %s, %s", o, o, factor[i/2], both[i])
	}
}

// exponents are the bits of the exponents of two numbers of 16 bits, and the lowest of them.
func (e *entry) exponents() (all, lowest uint32) {
	if e.typ == ir.BF16 {
		return 0x7F807F80, 0x00800080
	}
	return 0x7C007C00, 0x04000400
}

// finite puts zeros in the place of numbers that are not finite, of two in a register, and notes whether there was one.
func (e *attend) finite(v, infinite string) string {
	all, lowest := e.exponents()
	over := e.r("and.b32", "%s, %d", e.r("add.s32", "%s, %d", e.r("and.b32", "%s, %d", v, all), lowest), uint32(0x80008000))
	e.Line("or.b32 \t%s, %s, %s", infinite, infinite, over)
	over = e.r("mul.lo.u32", "%s, 65535", e.r("shr.u32", "%s, 15", over))
	return e.r("and.b32", "%s, %s", v, e.r("not.b32", "%s", over))
}

// apart adds the products of weights and values that are not finite, key by key, to the queries that see them.
func (e *attend) apart(s [][4]string) {
	keys := e.keys()
	weights := e.r("add.s32", "%s, %d", e.r("mad.lo.s32", "%s, %d, %s", e.warp, 4*16*keys, e.base), e.scratchAt())
	own := e.r("mad.lo.s32", "%s, %d, %s", e.quad, 4*keys, weights)
	mine := e.r("mad.lo.s32", "%s, 8, %s", e.member, own)
	for j := range s {
		for i := range s[j] {
			e.Line("st.shared.b32 \t[%s+%d], %s", mine, i/2*8*4*keys+4*(8*j+i%2), s[j][i])
		}
	}
	e.Line("bar.warp.sync \t-1")
	key, at := e.r("mov.b32", "0"), e.r("mov.b32", "%s", own)
	row := e.r("add.s32", "%s, %s", e.base, e.stage)
	loop := e.Label()
	e.Mark(loop)
	var w, seen [2]string
	for i := range w {
		w[i] = e.r("ld.shared.b32", "[%s+%d]", at, i*8*4*keys)
		now := e.r("add.s32", "%s, %s", e.begin, key)
		seen[i] = e.Make("p", "setp.lt.u32", "%s, %s", now, e.visible[i])
		if e.window {
			seen[i] = e.Make("p", "and.pred", "%s, %s", seen[i], e.Make("p", "setp.ge.u32", "%s, %s", now, e.before[i]))
		}
	}
	values := e.r("mad.lo.s32", "%s, %d, %s", key, 2*e.width, e.r("mad.lo.s32", "%s, 4, %s", e.member, row))
	unit := e.r("shl.b32", "%s, 4", e.swizzle(key))
	for j := range e.o {
		v := e.r("ld.shared.b32", "[%s+%d]", e.r("add.s32", "%s, %s", values, e.r("xor.b32", "%s, %d", unit, 16*j)), e.tile())
		var half [2]string
		half[0], half[1] = e.New("rs"), e.New("rs")
		e.Line("mov.b32 \t{%s, %s}, %s", half[0], half[1], v)
		for k := range half {
			f := e.widened(half[k])
			over := e.Make("p", "setp.gt.u32", "%s, 0x7F7FFFFF", e.r("and.b32", "%s, 0x7FFFFFFF", f))
			for i := range w {
				both := e.Make("p", "and.pred", "%s, %s", over, seen[i])
				e.Line("@%s fma.rn.f32 \t%s, %s, %s, %s", both, e.o[j][2*i+k], w[i], f, e.o[j][2*i+k])
			}
		}
	}
	e.Line("add.s32 \t%s, %s, 4", at, at)
	e.Line("add.s32 \t%s, %s, 1", key, key)
	e.Line("@%s bra \t%s", e.Make("p", "setp.lt.s32", "%s, %d", key, keys), loop)
}

// store divides by the sums of weights, and stores.
func (e *attend) store() {
	for i := range 2 {
		skip, single := e.Label(), e.Label()
		sum := e.across(e.sum[i], "add.rn.f32")
		factor := ""
		if e.sinks {
			sum, factor = e.sunk(e.head, e.top[i], sum, "0f3F800000")
		}
		query := e.query(i)
		e.Line("@%s bra \t%s", e.Make("p", "setp.ge.u32", "%s, %s", query, e.rows), skip)
		to := e.at("out", query)
		out := make([][2]string, len(e.o))
		for j := range e.o {
			for k := range out[j] {
				v := e.o[j][2*i+k]
				if e.sinks {
					v = e.r("mul.rn.f32", "%s, %s", v, factor)
				}
				out[j][k] = e.stored(e.r("div.rn.f32", "%s, %s", v, sum))
			}
		}
		e.Line("@%s bra \t%s", e.Make("p", "setp.ne.b64", "%s, 0", e.Make("rd", "and.b64", "%s, 3", to)), single)
		for j := range out {
			e.Line("st.global.b32 \t[%s+%d], %s", to, 16*j, e.r("mov.b32", "{%s, %s}", out[j][0], out[j][1]))
		}
		e.Line("bra \t%s", skip)
		e.Mark(single)
		for j := range out {
			for k := range out[j] {
				e.Line("st.global.b16 \t[%s+%d], %s", to, 16*j+2*k, out[j][k])
			}
		}
		e.Mark(skip)
	}
	e.Mark("$L_end")
	e.Line("ret")
}

// sunk adds the weight of a head's sink, times a unit, to a sum of weights that were made with a maximum, and returns by what sums of values are multiplied besides.
func (e *entry) sunk(head, top, sum, unit string) (with, factor string) {
	sink := e.widened(e.Make("rs", "ld.global.b16", "[%s]", e.Make("rd", "add.s64", "%s, %s", e.args["sinks"], e.wide(head, "2"))))
	most := e.r("max.f32", "%s, %s", top, sink)
	factor = e.Call("exp", e.r("sub.rn.f32", "%s, %s", top, most))
	own := e.Call("exp", e.r("sub.rn.f32", "%s, %s", sink, most))
	return e.r("fma.rn.f32", "%s, %s, %s", own, unit, e.r("mul.rn.f32", "%s, %s", sum, factor)), factor
}
