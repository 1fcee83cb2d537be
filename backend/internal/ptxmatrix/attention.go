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
// 64, with a running maximum and sum (a "streaming" softmax).
//
// Scores are products of numbers of 16 bits, by mma.sync, times the scale. Weights, exp(score − maximum), are f32. The product with a
// value is that of two parts of the weight, each as long as a TF32, whose sum is less than an ulp off: values of 16 bits are
// TF32 as they are. The sums of a tile are added by tensor cores, those of the tiles by fma, so that as little is cut off
// as the declaration allows.
//
// A value that a query does not see counts for nothing, even if it is infinite: where queries of a warp see different keys of a tile,
// such values are zeros for the tensor cores, and are added one by one.
type attention struct {
	source *air.Kernel
	elem   ir.DType // of queries, keys, values and results
	coded  bool     // keys and values are codes of 8 bits, with scales
	width  int      // elements of a head
	causal bool
	gpu    GPU
}

const (
	queries        = 64 // of a block
	keys           = 64 // of a tile
	attentionWarps = 4
	// leastQueries is from how many on queries share blocks.
	leastQueries = 16
	// widest is the widest head of which there is a tile's room in shared memory.
	widest = 128
)

var attentionNames = regexp.MustCompile(`^sdpa_rows_(float16_t|bfloat16_t)_(?:(64_64|96_96|128_128|256_256)|q8_0_(64_64|128_128|256_256))$`)

// causalConstant is the index of the function constant do_causal.
const causalConstant = 22

func attentionOf(k *air.Kernel, constants []ir.FunctionConstant, gpu GPU) *attention {
	m := attentionNames.FindStringSubmatch(k.Name)
	if m == nil {
		return nil
	}
	a := &attention{source: k, elem: ir.F16, gpu: gpu}
	if m[1] == "bfloat16_t" {
		a.elem = ir.BF16
	}
	a.coded = m[3] != ""
	width, _, _ := strings.Cut(m[2]+m[3], "_")
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
	case a.width > widest || a.coded:
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
	return [3]uint64{groups[0], (groups[1] + queries - 1) / queries, 1}, 32 * attentionWarps, uint32(2*a.tile()*2 + a.scratch() + alignment)
}

// tile is how many bytes keys or values of a tile take.
func (a *attention) tile() int { return 2 * keys * a.width }

// scratch is where warps put weights when values of a tile are added one by one.
func (*attention) scratch() int { return attentionWarps * 4 * 16 * keys }

// attend writes an entry.
type attend struct {
	*attention
	entry

	member, lane, warp string    // of four threads that share a row; of the warp; of the block
	quad               string    // the row of the thread's first query
	base               string    // of shared memory
	head, heads, rows  string    // of the block; all; queries
	first              string    // query of the warp
	visible            [2]string // keys that the thread's queries see
	all, most, least   string    // keys that any query of the block sees, any of the warp, and its first query
	from               [2]string // the thread's next row of keys, and of values
	pitch              [2]string // bytes from key to key there
	row, unit          string    // which of a tile the thread brings
	begin, stage       string    // the tile's first key, and where it lies
	q, o               [][4]string
	top, sum           [2]string
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
	e.place()
	e.queries()
	e.tiles()
	e.store()
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
	start := e.r("mov.u32", "mlxc_shared")
	e.base = e.r("and.b32", "%s, %d", e.r("add.s32", "%s, %d", start, alignment-1), -alignment)

	units := e.width / 8
	e.row, e.unit = e.r("div.u32", "%s, %d", thread, units), e.r("rem.u32", "%s, %d", thread, units)
	kv := e.Make("rd", "cvt.u64.u32", "%s", e.r("div.u32", "%s, %s", e.head, e.args["gqa_factor"]))
	for i, name := range []string{"keys", "values"} {
		e.pitch[i] = e.Make("rd", "shl.b64", "%s, 1", e.args[name[:1]+"_seq_stride"])
		at := e.Make("rd", "mul.lo.s64", "%s, %s", e.args[name[:1]+"_head_stride"], kv)
		at = e.Make("rd", "mad.lo.s64", "%s, 2, %s", at, e.args[name])
		at = e.Make("rd", "mad.lo.s64", "%s, %s, %s", e.pitch[i], e.Make("rd", "cvt.u64.u32", "%s", e.row), at)
		e.from[i] = e.plus(at, e.r("shl.b32", "%s, 4", e.unit))
	}
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
		e.top[i], e.sum[i] = e.r("mov.b32", "0fFF800000"), e.r("mov.b32", "0f00000000")
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
	pitch := 2 * e.width
	at := e.r("shl.b32", "%s, 4", e.r("xor.b32", "%s, %s", e.unit, e.swizzle(e.row)))
	at = e.r("add.s32", "%s, %s", e.r("mad.lo.s32", "%s, %d, %s", e.row, pitch, at), e.r("add.s32", "%s, %s", e.base, stage))
	first := e.r("add.s32", "%s, %s", begin, e.row)
	step := 32 * attentionWarps / (e.width / 8) &^ 7 // rows at a time
	if e.width == 96 {
		e.Line("@%s bra \t%s", e.Make("p", "setp.ge.u32", "%s, %d", e.row, step), skip)
	}
	for i := range e.from {
		single, next := e.Label(), e.Label()
		low := e.Make("rd", "and.b64", "%s, 15", e.Make("rd", "or.b64", "%s, %s", e.from[i], e.pitch[i]))
		e.Line("@%s bra \t%s", e.Make("p", "setp.ne.b64", "%s, 0", low), single)
		for _, wide := range []bool{true, false} {
			from := e.from[i]
			for p := 0; p < keys; p += step {
				there := e.Make("p", "setp.lt.u32", "%s, %s", e.r("add.s32", "%s, %d", first, p), e.all)
				to := i*e.tile() + p*pitch
				if wide {
					e.Line("cp.async.cg.shared.global \t[%s+%d], [%s], 16, %s", at, to, from, e.either(there, "r", "16", "0"))
				} else {
					e.single(at, to, from, there)
				}
				if p+step < keys {
					from = e.Make("rd", "mad.lo.s64", "%s, %d, %s", e.pitch[i], step, from)
				}
			}
			if wide {
				e.Line("bra \t%s", next)
				e.Mark(single)
			}
		}
		e.Mark(next)
		e.Line("mad.lo.s64 \t%s, %s, %d, %s", e.from[i], e.pitch[i], keys, e.from[i])
	}
	e.Mark(skip)
	e.Line("cp.async.commit_group")
}

// tiles goes through the keys.
func (e *attend) tiles() {
	e.begin, e.stage = e.r("mov.b32", "0"), e.r("mov.b32", "0")
	other := e.r("mov.b32", "%d", 2*e.tile())
	e.bring(e.begin, e.stage)
	e.Mark("$L_tile")
	e.Line("cp.async.wait_group \t0")
	e.Line("bar.sync \t0")
	following := e.r("add.s32", "%s, %d", e.begin, keys)
	e.bring(following, other)
	skip := e.Label()
	e.Line("@%s bra \t%s", e.Make("p", "setp.ge.u32", "%s, %s", e.begin, e.most), skip)

	pitch := 2 * e.width
	r, g := e.r("and.b32", "%s, 7", e.lane), e.r("shr.u32", "%s, 3", e.lane)
	by := e.swizzle(r)
	row := e.r("add.s32", "%s, %s", e.base, e.stage)
	s := e.scores(e.r("mad.lo.s32", "%s, %d, %s", r, pitch, row), e.r("shl.b32", "%s, 4", e.r("xor.b32", "%s, %s", g, by)))
	partly := e.Make("p", "setp.gt.u32", "%s, %s", following, e.least) // of the tile's keys some queries of the warp do not see all
	e.unseen(s, partly)
	factor := e.weigh(s)
	row = e.r("mad.lo.s32", "%s, %d, %s", e.r("mad.lo.s32", "%s, 8, %s", g, r), pitch, row)
	unit := e.r("shl.b32", "%s, 4", by)
	mixed := e.Label()
	e.Line("@%s bra \t%s", partly, mixed)
	parts := e.parts(s)
	e.values(parts, row, unit, factor, "")
	e.Line("bra \t%s", skip)
	e.Mark(mixed)
	infinite := e.r("mov.b32", "0")
	parts = e.parts(s)
	e.values(parts, row, unit, factor, infinite)
	any := e.Make("p", "setp.ne.u32", "%s, 0", infinite)
	all := e.New("p")
	e.Line("vote.sync.any.pred \t%s, %s, -1", all, any)
	e.Line("@!%s bra \t%s", all, skip)
	e.apart(s)
	e.Mark(skip)
	e.Line("mov.b32 \t%s, %s", e.begin, following)
	e.Line("xor.b32 \t%s, %s, %d", e.stage, e.stage, 2*e.tile())
	e.Line("xor.b32 \t%s, %s, %d", other, other, 2*e.tile())
	e.Line("@%s bra \t$L_tile", e.Make("p", "setp.lt.u32", "%s, %s", e.begin, e.all))
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
	name := e.typ.String()
	for j := range keys / 8 {
		sums := [][4]string{e.zeros()}
		for t := range at {
			if t == (len(at)+1)/2 && e.halves() {
				sums = append(sums, e.zeros())
			}
			acc := sums[len(sums)-1]
			var b [4]string
			for i := range b {
				b[i] = e.New("r")
			}
			e.Line("ldmatrix.sync.aligned.m8n8.x4.shared.b16 \t{%s}, [%s+%d]", list(b[:]), at[t], j*8*2*e.width)
			for i := range 2 {
				e.Line("mma.sync.aligned.m16n8k16.row.col.f32.%s.%s.f32 \t{%s}, {%s}, {%s}, {%s}", name, name, list(acc[:]), list(e.q[2*t+i][:]), list(b[2*i:2*i+2]), list(acc[:]))
			}
		}
		acc := e.joined(sums)
		for i := range acc {
			acc[i] = e.r("mul.rn.f32", "%s, %s", acc[i], e.args["scale"])
		}
		out = append(out, acc)
	}
	return out
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

// unseen makes scores −inf where a query does not see the key.
func (e *attend) unseen(s [][4]string, partly string) {
	skip := e.Label()
	e.Line("@!%s bra \t%s", partly, skip)
	own := e.r("mad.lo.s32", "%s, 2, %s", e.member, e.begin)
	for i := range 2 {
		left := e.r("sub.s32", "%s, %s", e.visible[i], own)
		for j := range s {
			for k := range 2 {
				p := e.Make("p", "setp.le.s32", "%s, %d", left, 8*j+k)
				e.Line("selp.b32 \t%s, 0xFF800000, %s, %s", s[j][2*i+k], s[j][2*i+k], p)
			}
		}
	}
	e.Mark(skip)
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
func (e *attend) parts(s [][4]string) (out [2][][4]string) {
	out[0], out[1] = make([][4]string, len(s)), make([][4]string, len(s))
	for j := range s {
		for i := range s[j] {
			out[0][j][i] = e.r("cvt.rna.tf32.f32", "%s", s[j][i])
			out[1][j][i] = e.r("cvt.rna.tf32.f32", "%s", e.r("sub.rn.f32", "%s, %s", s[j][i], out[0][j][i]))
		}
	}
	return out
}

// values adds the products of weights and values. A thread has the weights of keys 2·member and 2·member + 1 of each eight; as a
// left factor these are elements member and member + 4, so the right one has its rows in that order. infinite, if not "", gets a bit for
// values that are infinite or NaN, in whose place zeros are multiplied.
func (e *attend) values(parts [2][][4]string, row, unit string, factor [2]string, infinite string) {
	pitch := 2 * e.width
	for j := range e.o {
		at := e.r("add.s32", "%s, %s", row, e.r("xor.b32", "%s, %d", unit, 16*j))
		var v [8]string
		for i := range v {
			v[i] = e.New("r")
		}
		for w := range 2 {
			e.Line("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 \t{%s}, [%s+%d]", list(v[4*w:4*w+4]), at, e.tile()+w*32*pitch)
		}
		var sums [2][][4]string
		for k := range v {
			for p := range sums {
				if k == 0 || k == len(v)/2 && p == 0 && e.halves() { // second parts are so small that it does not matter what of their sum is lost
					sums[p] = append(sums[p], e.zeros())
				}
			}
			if infinite != "" {
				v[k] = e.finite(v[k], infinite)
			}
			low, high := e.New("rs"), e.New("rs")
			e.Line("mov.b32 \t{%s, %s}, %s", low, high, v[k])
			b := []string{e.widened(low), e.widened(high)}
			for p := range parts {
				a, acc := parts[p][k], sums[p][len(sums[p])-1]
				e.Line("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 \t{%s}, {%s}, {%s}, {%s}", list(acc[:]), list([]string{a[0], a[2], a[1], a[3]}), list(b), list(acc[:]))
			}
		}
		acc := [2][4]string{e.joined(sums[0]), e.joined(sums[1])}
		for i := range e.o[j] {
			both := e.r("add.rn.f32", "%s, %s", acc[0][i], acc[1][i])
			// The second part of a weight may be 0 or below, and a value infinite: the first part's product says what comes of that.
			e.Line("@%s mov.b32 \t%s, %s", e.Make("p", "setp.nan.f32", "%s, %s", both, both), both, acc[0][i])
			e.Line("fma.rn.f32 \t%s, %s, %s, %s", e.o[j][i], e.o[j][i], factor[i/2], both)
		}
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
	weights := e.r("add.s32", "%s, %d", e.r("mad.lo.s32", "%s, %d, %s", e.warp, 4*16*keys, e.base), 4*e.tile())
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
		seen[i] = e.Make("p", "setp.lt.u32", "%s, %s", e.r("add.s32", "%s, %s", e.begin, key), e.visible[i])
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
	e.Line("bar.warp.sync \t-1")
}

// store divides by the sums of weights, and stores.
func (e *attend) store() {
	for i := range 2 {
		skip, single := e.Label(), e.Label()
		sum := e.across(e.sum[i], "add.rn.f32")
		query := e.query(i)
		e.Line("@%s bra \t%s", e.Make("p", "setp.ge.u32", "%s, %s", query, e.rows), skip)
		to := e.at("out", query)
		out := make([][2]string, len(e.o))
		for j := range e.o {
			for k := range out[j] {
				out[j][k] = e.stored(e.r("div.rn.f32", "%s, %s", e.o[j][2*i+k], sum))
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
