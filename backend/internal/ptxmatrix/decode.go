package ptxmatrix

import (
	"math/bits"
	"strconv"

	"github.com/mlxc/mlxc/internal/air/nvptx"
)

// Attention of few queries, as a decode step has: a cluster of blocks takes one query and some of the query heads that share a key head, and
// its warps share the keys, each of which a block reads once for all these heads.
//
// A team of lanes has a key at a time, a lane eight elements of it, and the same elements of the queries and of the sums. Keys and values come by asynchronous
// copies, a lane those that it uses itself, so that no lane waits for another, and what is on its way needs no registers. A chunk is what a warp takes at a
// time; warps of all blocks take chunks in turn.
//
// Scores are sums of products in f32, by fma, and then across the lanes of a team. While these are added, each lane gives half of its scores away and
// keeps the other half, until it has one or few, whose weights it alone computes. What is greatest, sums of weights, and sums of weighted values are
// those of a team. At the end they are brought to one maximum and added, in a block and then in the cluster, whose blocks each make a part of
// the results: what others have of that part they store in its shared memory. The order of sums depends on the number of keys alone.
//
// Keys behind the last one that a query sees are not read: zeros take their place, and their weights are 0.

const (
	clusterBlocks = 8
	decodeWarps   = 8
	teamRows      = 4 // keys that a team takes at a time
	laneElements  = 8 // of a key that a lane has: 16 bytes
	decodeStages  = 3 // chunks of a warp that lie in shared memory, or are on their way
	// stageBytes are those of the keys of a chunk and of their values.
	decodeStage = 2 * teamRows * 32 * 16
	// mostHeads is how many query heads a cluster takes at most: each needs 16 registers of a thread, and has a warp at the end.
	mostHeads = 8
	// sharingHeads is up to how many heads two blocks share a multiprocessor, whose threads then have 128 registers: of more than 64 blocks
	// some clusters may find no eight free multiprocessors that are near enough to each other.
	sharingHeads = 3
	// least stands for the maximum of no scores. It is finite, so that exp of a difference to it is 0.
	least = "0fFF7FFFFF"
)

// few is how attention of few queries is launched: with as few query heads to a cluster as there are multiprocessors for.
func (a *attention) few(groups [3]uint64, given Given) Fit {
	group, known := given.Constant("gqa_factor")
	if !known || group < 1 {
		return Fit{}
	}
	f := Fit{}
	for heads := min(mostHeads, int(group)); heads > 0; heads-- {
		next := Fit{Rows: 1, Group: int(group), Heads: heads}
		next.Heads = (next.Group + next.parts() - 1) / next.parts() // as many in each part
		grid, _, _ := a.Launch(groups, next)
		if f.Rows == 0 || grid[0]*grid[1] <= uint64(max(1, given.Multiprocessors)) {
			f = next
		}
	}
	return f
}

// parts is how many clusters share the query heads of a key head.
func (f Fit) parts() int { return (f.Group + f.Heads - 1) / f.Heads }

// clusters is how many clusters a query needs.
func (f Fit) clusters(heads uint64) uint64 {
	group, each := uint64(f.Group), uint64(f.Heads)
	return heads/group*uint64(f.parts()) + (heads%group+each-1)/each
}

// decode writes an entry of few queries.
type decode struct {
	*attention
	entry
	fit Fit

	// lanes is how many lanes a team has, teams how many teams a warp; padded are the query heads, up to a power of two.
	lanes, teams, padded int

	lane, warp, rank, member, team string // of the warp; of the block; of the cluster; of the team; of the warp
	query, heads, first, last      string // the query; all query heads; the cluster's first one, and the last one that it may have
	visible                        string // how many keys the query sees
	base                           string // of shared memory
	mine                           string // predicate: the lane has elements of a row

	from    [2]string // where the lane's part of the team's first key of the next chunk lies, and of its value
	step    [2]string // bytes from a team's key to its next one
	further [2]string // bytes from a chunk to the warp's next one
	single  string    // predicate: not all rows begin at multiples of 16
	key     string    // the team's first key of the warp's first chunk
	bringer string    // and of the one that is asked for next
	own     string    // the first key, of the chunk that is used, whose weights the lane computes
	uppers  []string  // predicates: bits of the lane's number in the team are set, the highest first

	slotBring, slotUse, end string
	left, unasked           string     // chunks of the warp that are to be used, and to be asked for
	q, o                    [][]string // by query head: elements
	top                     string     // of the query head whose weights the lane computes
	sum                     []string   // of its weights
}

// Memory of a block: the warps' chunks, of which each later becomes what the warp has of results; for each head the maximum of each
// warp; likewise sums of weights; of each block of the cluster its maximum and sum; and its sums of values, of the block's part of each head.
func (e *decode) topsAt() int     { return decodeWarps * decodeStages * decodeStage }
func (e *decode) sumsAt() int     { return e.topsAt() + mostHeads*decodeWarps*4 }
func (e *decode) totalsAt() int   { return e.sumsAt() + mostHeads*decodeWarps*4 }
func (e *decode) receivedAt() int { return e.totalsAt() + mostHeads*clusterBlocks*8 }
func (a *attention) decodeMemory(f Fit) int {
	return (&decode{}).receivedAt() + 4*f.Heads*a.width
}

// part is how many elements of a head a block of the cluster makes.
func (a *attention) part() int { return a.width / clusterBlocks }

// emitFew writes the entry.
func (a *attention) emitFew(launch nvptx.Launch, f Fit) []byte {
	e := &decode{attention: a, entry: entry{kernel: a.source, launch: launch, typ: a.elem, cluster: clusterBlocks, resident: 1}, fit: f}
	if f.Heads <= sharingHeads {
		e.resident = 2
	}
	e.lanes = 1 << bits.Len(uint(a.width/laneElements-1))
	e.teams = 32 / e.lanes
	e.padded = 1 << bits.Len(uint(f.Heads-1))
	// Where the keys lie can be said before the launches before have ended, unless it stands in memory.
	early := launch.Programmatic && launch.Values
	if !early {
		e.wait()
	}
	e.arguments()
	outside := e.place()
	if early {
		e.ask(outside)
		e.wait()
	}
	e.Line("@%s bra \t$L_end", outside)
	// Until all of its blocks run nobody stores in another's shared memory. That is waited for at the end.
	e.Line("barrier.cluster.arrive.relaxed.aligned")
	e.queries()
	e.chunks()
	e.join()
	e.gather()
	e.Mark("$L_end")
	e.Line("ret")
	return e.text(32 * decodeWarps)
}

// place finds the cluster's query and heads, and the warp's keys. It returns a predicate: the cluster has none.
func (e *decode) place() (outside string) {
	f := e.fit
	thread := e.r("mov.u32", "%%tid.x")
	e.lane, e.warp = e.r("and.b32", "%s, 31", thread), e.r("shr.u32", "%s, 5", thread)
	e.member, e.team = e.r("and.b32", "%s, %d", e.lane, e.lanes-1), e.r("shr.u32", "%s, %d", e.lane, bits.Len(uint(e.lanes-1)))
	e.rank = e.r("mov.u32", "%%cluster_ctarank")
	cluster := e.r("shr.u32", "%s, 3", e.r("mov.u32", "%%ctaid.x"))
	kv, part := e.r("div.u32", "%s, %d", cluster, f.parts()), e.r("rem.u32", "%s, %d", cluster, f.parts())
	e.query = e.r("mov.u32", "%%ctaid.y")
	rows := e.threads(1)
	e.heads = e.r("shr.u32", "%s, 8", e.threads(0)) // a threadgroup of the declaration has 256 threads
	begin := e.r("mul.lo.s32", "%s, %d", kv, f.Group)
	e.first = e.r("mad.lo.s32", "%s, %d, %s", part, f.Heads, begin)
	outside = e.Make("p", "setp.ge.u32", "%s, %s", e.first, e.heads)
	outside = e.Make("p", "or.pred", "%s, %s", outside, e.Make("p", "setp.ge.u32", "%s, %s", e.query, rows))
	end := e.r("min.u32", "%s, %s", e.r("add.s32", "%s, %d", begin, f.Group), e.heads)
	end = e.r("min.u32", "%s, %s", e.r("add.s32", "%s, %d", e.first, f.Heads), end)
	e.last = e.r("add.s32", "%s, -1", end)
	e.visible = e.args["N"]
	if e.causal {
		e.visible = e.r("add.s32", "%s, %s", e.r("sub.s32", "%s, %s", e.visible, e.r("add.s32", "%s, -1", rows)), e.query)
	}
	e.base = e.r("mov.u32", "mlxc_shared")
	e.mine = e.Make("p", "setp.lt.u32", "%s, %d", e.member, e.width/laneElements)

	chunk := teamRows * e.teams
	place := e.r("mad.lo.s32", "%s, %d, %s", e.warp, clusterBlocks, e.rank) // among the warps of the cluster
	const warps = clusterBlocks * decodeWarps
	all := e.r("div.u32", "%s, %d", e.r("add.s32", "%s, %d", e.visible, chunk-1), chunk)
	e.left = e.r("div.u32", "%s, %d", e.r("sub.s32", "%s, %s", e.r("add.s32", "%s, %d", all, warps-1), place), warps)
	e.unasked = e.r("mov.b32", "%s", e.left)
	e.key = e.r("mad.lo.s32", "%s, %d, %s", place, chunk, e.team)
	e.bringer = e.r("mov.b32", "%s", e.key)
	low := ""
	for i, name := range []string{"keys", "values"} {
		pitch := e.Make("rd", "shl.b64", "%s, 1", e.args[name[:1]+"_seq_stride"])
		at := e.Make("rd", "mul.lo.s64", "%s, %s", e.args[name[:1]+"_head_stride"], e.Make("rd", "cvt.u64.u32", "%s", kv))
		at = e.Make("rd", "mad.lo.s64", "%s, 2, %s", at, e.args[name])
		both := e.Make("rd", "or.b64", "%s, %s", at, pitch)
		if low == "" {
			low = both
		} else {
			low = e.Make("rd", "or.b64", "%s, %s", low, both)
		}
		at = e.Make("rd", "mad.lo.s64", "%s, %s, %s", pitch, e.Make("rd", "cvt.u64.u32", "%s", e.key), at)
		e.from[i] = e.plus(at, e.r("shl.b32", "%s, 4", e.member))
		e.step[i] = e.Make("rd", "mul.lo.s64", "%s, %d", pitch, e.teams)
		e.further[i] = e.Make("rd", "mul.lo.s64", "%s, %d", pitch, warps*chunk)
	}
	e.single = e.Make("p", "setp.ne.b64", "%s, 0", e.Make("rd", "and.b64", "%s, 15", low))
	e.slotBring = e.r("mad.lo.s32", "%s, %d, %s", e.warp, decodeStages*decodeStage, e.r("mad.lo.s32", "%s, 16, %s", e.lane, e.base))
	e.slotUse = e.r("mov.b32", "%s", e.slotBring)
	e.end = e.r("add.s32", "%s, %d", e.slotBring, decodeStages*decodeStage)
	return outside
}

// ask has the cache ask for the warp's first chunks. What launches before write of them they write there.
func (e *decode) ask(outside string) {
	// A lane asks for 128 bytes.
	asks := e.Make("p", "setp.eq.u32", "%s, 0", e.r("and.b32", "%s, 7", e.member))
	asks = e.Make("p", "and.pred", "%s, %s", asks, e.Make("p", "not.pred", "%s", outside))
	key, asked := e.r("mov.b32", "%s", e.key), e.r("mov.b32", "0")
	from := [2]string{e.Make("rd", "mov.b64", "%s", e.from[0]), e.Make("rd", "mov.b64", "%s", e.from[1])}
	loop := e.Label()
	e.Mark(loop)
	at := from
	for r := range teamRows {
		there := e.Make("p", "setp.lt.u32", "%s, %s", e.r("add.s32", "%s, %d", key, r*e.teams), e.visible)
		there = e.Make("p", "and.pred", "%s, %s", there, asks)
		for i := range at {
			if r > 0 {
				at[i] = e.Make("rd", "add.s64", "%s, %s", at[i], e.step[i])
			}
			e.Line("@%s prefetch.global.L2 \t[%s]", there, at[i])
		}
	}
	for i := range from {
		e.Line("add.s64 \t%s, %s, %s", from[i], from[i], e.further[i])
	}
	e.Line("add.s32 \t%s, %s, %d", key, key, e.round())
	e.Line("add.s32 \t%s, %s, 1", asked, asked)
	e.Line("@%s bra \t%s", e.Make("p", "setp.lt.u32", "%s, %d", asked, decodeStages), loop)
}

// round is how many keys the warps of a cluster take with one chunk each.
func (e *decode) round() int { return clusterBlocks * decodeWarps * teamRows * e.teams }

// next moves a slot of the warp's chunks on.
func (e *decode) next(slot string) {
	e.Line("add.s32 \t%s, %s, %d", slot, slot, decodeStage)
	e.Line("@%s sub.s32 \t%s, %s, %d", e.Make("p", "setp.eq.u32", "%s, %s", slot, e.end), slot, slot, decodeStages*decodeStage)
}

// bring asks for the warp's next chunk, if there is one.
func (e *decode) bring() {
	skip, single := e.Label(), e.Label()
	e.Line("@%s bra \t%s", e.Make("p", "setp.eq.u32", "%s, 0", e.unasked), skip)
	there := make([]string, teamRows)
	for r := range there {
		key := e.bringer
		if r > 0 {
			key = e.r("add.s32", "%s, %d", key, r*e.teams)
		}
		there[r] = e.Make("p", "setp.lt.u32", "%s, %s", key, e.visible)
		if e.width < e.lanes*laneElements {
			there[r] = e.Make("p", "and.pred", "%s, %s", there[r], e.mine)
		}
	}
	done := e.Label()
	e.Line("@%s bra \t%s", e.single, single)
	for _, wide := range []bool{true, false} {
		for i := range e.from {
			from := e.from[i]
			for r := range there {
				if r > 0 {
					from = e.Make("rd", "add.s64", "%s, %s", from, e.step[i])
				}
				at := (i*teamRows + r) * 32 * 16
				if wide {
					e.Line("cp.async.cg.shared.global \t[%s+%d], [%s], 16, %s", e.slotBring, at, from, e.either(there[r], "r", "16", "0"))
				} else {
					e.entry.single(e.slotBring, at, from, there[r])
				}
			}
		}
		if wide {
			e.Line("bra \t%s", done)
			e.Mark(single)
		}
	}
	e.Mark(done)
	for i := range e.from {
		e.Line("add.s64 \t%s, %s, %s", e.from[i], e.from[i], e.further[i])
	}
	e.Line("add.s32 \t%s, %s, %d", e.bringer, e.bringer, e.round())
	e.Line("sub.s32 \t%s, %s, 1", e.unasked, e.unasked)
	e.next(e.slotBring)
	e.Mark(skip)
	e.Line("cp.async.commit_group")
}

// queries begins the loop over chunks: it asks for one, and goes on when all that there is room for have been asked for. The first time the queries are
// read, while these are on their way.
func (e *decode) queries() {
	words := make([][]string, e.fit.Heads)
	for h := range words {
		for range 4 {
			words[h] = append(words[h], e.New("r"))
			e.Line("mov.b32 \t%s, 0", words[h][len(words[h])-1])
		}
		e.o = append(e.o, make([]string, laneElements))
		for i := range e.o[h] {
			e.o[h][i] = e.r("mov.b32", "0")
		}
		e.q = append(e.q, make([]string, laneElements))
	}
	for range max(1, e.scores()/e.lanes) {
		e.sum = append(e.sum, e.r("mov.b32", "0"))
	}
	e.top = e.r("mov.b32", least)
	for d := e.lanes / 2; d > 0; d /= 2 {
		e.uppers = append(e.uppers, e.bit(d))
	}
	first := e.r("shr.u32", "%s, %d", e.r("mul.lo.s32", "%s, %d", e.member, len(e.sum)), bits.Len(uint(e.same()-1)))
	e.own = e.r("mad.lo.s32", "%s, %d, %s", e.r("and.b32", "%s, %d", first, teamRows-1), e.teams, e.key)
	e.Line("@%s bra \t$L_join", e.Make("p", "setp.eq.u32", "%s, 0", e.left))
	brought := e.r("mov.b32", "0")
	e.Mark("$L_chunk")
	e.bring()
	e.Line("add.s32 \t%s, %s, 1", brought, brought)
	e.Line("@%s bra \t$L_chunk", e.Make("p", "setp.lt.u32", "%s, %d", brought, decodeStages))
	e.Line("@%s bra \t$L_use", e.Make("p", "setp.gt.u32", "%s, %d", brought, decodeStages))

	single, read := e.Label(), e.Label()
	e.Line("@%s bra \t%s", e.Make("p", "setp.ne.b64", "%s, 0", e.Make("rd", "and.b64", "%s, 15", e.args["queries"])), single)
	for _, wide := range []bool{true, false} {
		for h := range words {
			head := e.r("min.u32", "%s, %s", e.r("add.s32", "%s, %d", e.first, h), e.last)
			at := e.plus(e.at("queries", head), e.r("shl.b32", "%s, 4", e.member))
			if wide {
				e.Line("@%s ld.global.v4.b32 \t{%s}, [%s]", e.mine, list(words[h]), at)
				continue
			}
			for i, w := range words[h] {
				low, high := e.Make("rs", "mov.b16", "0"), e.Make("rs", "mov.b16", "0")
				e.Line("@%s ld.global.b16 \t%s, [%s+%d]", e.mine, low, at, 4*i)
				e.Line("@%s ld.global.b16 \t%s, [%s+%d]", e.mine, high, at, 4*i+2)
				e.Line("mov.b32 \t%s, {%s, %s}", w, low, high)
			}
		}
		if wide {
			e.Line("bra \t%s", read)
			e.Mark(single)
		}
	}
	e.Mark(read)
	for h := range words {
		for i, v := range e.all(words[h]) {
			e.q[h][i] = e.r("mul.rn.f32", "%s, %s", e.args["scale"], v)
		}
	}
	e.Mark("$L_use")
}

// at is where a head of the query lies in an array.
func (e *decode) at(array, head string) string {
	n := e.Make("rd", "add.s64", "%s, %s", e.wide(e.query, e.heads), e.Make("rd", "cvt.u64.u32", "%s", head))
	return e.Make("rd", "mad.lo.s64", "%s, %d, %s", n, 2*e.width, e.args[array])
}

// bit is a predicate: a bit of the lane's number is set.
func (e *decode) bit(n int) string {
	return e.Make("p", "setp.ne.u32", "%s, 0", e.r("and.b32", "%s, %d", e.lane, n))
}

func (e *decode) across(v string, distance int) string {
	return e.r("shfl.sync.bfly.b32", "%s, %d, 31, -1", v, distance)
}

// halved adds what two lanes have, whose numbers differ by a distance, a power of two: the lane whose number has not this bit gets the first half of the sums, and the other one
// the second. Where there is no number in the second half ("") both get the sum of the first.
func (e *decode) halved(v []string, distance int, upper string) (out []string) {
	half := len(v) / 2
	for i, low := range v[:half] {
		high := v[half+i]
		switch {
		case low == "":
			out = append(out, "")
		case high == "":
			out = append(out, e.r("add.rn.f32", "%s, %s", low, e.across(low, distance)))
		default:
			keep, give := e.either(upper, "r", high, low), e.either(upper, "r", low, high)
			out = append(out, e.r("add.rn.f32", "%s, %s", keep, e.across(give, distance)))
		}
	}
	return out
}

// scores is how many a team computes of a chunk's keys, and same how many lanes of it have the same one.
func (e *decode) scores() int { return teamRows * e.padded }
func (e *decode) same() int   { return max(1, e.lanes/e.scores()) }

// headLanes is how many lanes of a team compute weights of one query head.
func (e *decode) headLanes() int { return e.lanes / e.padded }

// chunks goes through the warp's chunks. Of the scores of a chunk's keys for a head, in the order of heads and then of the team's keys, a lane has as many as there are
// in e.sum, or some lanes side by side have one.
func (e *decode) chunks() {
	scores, same, each := e.scores(), e.same(), len(e.sum)
	e.Line("cp.async.wait_group \t%d", decodeStages-1)
	k := make([][]string, teamRows)
	v := make([][]string, teamRows)
	for r := range k {
		k[r] = e.four(e.slotUse, r*32*16)
	}
	for r := range v {
		v[r] = e.four(e.slotUse, (teamRows+r)*32*16)
	}
	s := make([]string, scores)
	for r := range k {
		numbers := e.all(k[r])
		for h, q := range e.q {
			sum := e.r("mul.rn.f32", "%s, %s", q[0], numbers[0])
			for i := 1; i < laneElements; i++ {
				sum = e.r("fma.rn.f32", "%s, %s, %s", q[i], numbers[i], sum)
			}
			s[h*teamRows+r] = sum
		}
	}
	d := e.lanes / 2
	for _, upper := range e.uppers {
		if len(s) > 1 {
			s = e.halved(s, d, upper)
		} else {
			s[0] = e.r("add.rn.f32", "%s, %s", s[0], e.across(s[0], d))
		}
		d /= 2
	}
	top := ""
	for i := range s {
		key := e.own
		if i > 0 {
			key = e.r("add.s32", "%s, %d", key, i*e.teams)
		}
		s[i] = e.either(e.Make("p", "setp.lt.u32", "%s, %s", key, e.visible), "r", s[i], "0fFF800000")
		if i == 0 {
			top = s[0]
		} else {
			top = e.r("max.f32", "%s, %s", top, s[i])
		}
	}
	for d := same; d < e.headLanes(); d *= 2 {
		top = e.r("max.f32", "%s, %s", top, e.across(top, d))
	}
	top = e.r("max.f32", "%s, %s", top, e.top)
	kept, more := e.Label(), e.New("p")
	e.Line("vote.sync.any.pred \t%s, %s, -1", more, e.Make("p", "setp.gt.f32", "%s, %s", top, e.top))
	e.Line("@!%s bra \t%s", more, kept)
	factor := e.Call("exp", e.r("sub.rn.f32", "%s, %s", e.top, top))
	e.Line("mov.b32 \t%s, %s", e.top, top)
	for _, sum := range e.sum {
		e.Line("mul.rn.f32 \t%s, %s, %s", sum, sum, factor)
	}
	e.scale(factor)
	e.Mark(kept)
	for i := range s {
		s[i] = e.Call("exp", e.r("sub.rn.f32", "%s, %s", s[i], e.top))
		e.Line("add.rn.f32 \t%s, %s, %s", e.sum[i], e.sum[i], s[i])
	}
	for r := range v {
		numbers := e.all(v[r])
		for h := range e.o {
			n := h*teamRows + r
			w := e.of(s[n%each], n/each*same)
			for i, o := range e.o[h] {
				e.Line("fma.rn.f32 \t%s, %s, %s, %s", o, w, numbers[i], o)
			}
		}
	}
	e.next(e.slotUse)
	e.Line("add.s32 \t%s, %s, %d", e.own, e.own, e.round())
	e.Line("sub.s32 \t%s, %s, 1", e.left, e.left)
	e.Line("@%s bra \t%s", e.Make("p", "setp.ne.u32", "%s, 0", e.left), "$L_chunk")
	e.Mark("$L_join")
}

// of is what a lane of the team has.
func (e *decode) of(v string, member int) string {
	return e.r("shfl.sync.idx.b32", "%s, %d, %d, -1", v, member, (32-e.lanes)<<8|31)
}

// scale multiplies sums of values by a factor, which lanes have of the head whose weights they compute.
func (e *decode) scale(factor string) {
	for h := range e.o {
		f := e.of(factor, h*e.headLanes())
		for _, o := range e.o[h] {
			e.Line("mul.rn.f32 \t%s, %s, %s", o, o, f)
		}
	}
}

// join brings what a block's teams have to one maximum, adds it up, and stores it where the blocks of the cluster find it that make results of it.
func (e *decode) join() {
	const row = 4 * decodeWarps // bytes of what warps have of one head
	head := e.r("shr.u32", "%s, %d", e.member, bits.Len(uint(e.headLanes()-1)))
	tops := e.r("mad.lo.s32", "%s, %d, %s", head, row, e.base)
	place := e.r("mad.lo.s32", "%s, 4, %s", e.warp, tops)
	first := e.Make("p", "setp.eq.u32", "%s, 0", e.r("and.b32", "%s, %d", e.lane, 31&^((e.padded-1)*e.headLanes()))) // of the lanes with a head
	top := e.top
	for d := e.lanes; d < 32; d *= 2 {
		top = e.r("max.f32", "%s, %s", top, e.across(top, d))
	}
	e.Line("@%s st.shared.b32 \t[%s+%d], %s", first, place, e.topsAt(), top)
	e.Line("bar.sync \t0")
	factor := e.Call("exp", e.r("sub.rn.f32", "%s, %s", e.top, e.greatest(tops, e.topsAt())))
	for _, sum := range e.sum {
		e.Line("mul.rn.f32 \t%s, %s, %s", sum, sum, factor)
	}
	sums := e.sum
	for len(sums) > 1 { // neighbors first, as lanes do
		var pairs []string
		for i := 0; i < len(sums); i += 2 {
			pairs = append(pairs, e.r("add.rn.f32", "%s, %s", sums[i], sums[i+1]))
		}
		sums = pairs
	}
	sum := sums[0]
	for d := e.same(); d < e.headLanes(); d *= 2 {
		sum = e.r("add.rn.f32", "%s, %s", sum, e.across(sum, d))
	}
	for d := e.lanes; d < 32; d *= 2 {
		sum = e.r("add.rn.f32", "%s, %s", sum, e.across(sum, d))
	}
	e.Line("@%s st.shared.b32 \t[%s+%d], %s", first, place, e.sumsAt(), sum)

	e.scale(factor)
	element := e.r("shl.b32", "%s, 3", e.member)
	to := e.r("mad.lo.s32", "%s, %d, %s", e.warp, decodeStages*decodeStage, e.base)
	var uppers []string
	for d := 16; d >= e.lanes; d /= 2 {
		upper := e.bit(d)
		uppers = append(uppers, upper)
		half := laneElements * d / 32
		element = e.r("add.s32", "%s, %s", element, e.either(upper, "r", strconv.Itoa(half), "0"))
	}
	to = e.r("mad.lo.s32", "%s, 4, %s", element, to)
	for h := range e.o {
		o := e.o[h]
		d := 16
		for _, upper := range uppers {
			o = e.halved(o, d, upper)
			d /= 2
		}
		for i := 0; i < len(o); i += 4 {
			some := o[i:min(i+4, len(o))]
			e.Line("@%s st.shared.v%d.b32 \t[%s+%d], {%s}", e.mine, len(some), to, 4*(h*e.width+i), list(some))
		}
	}
	e.Line("bar.sync \t0")
	e.Line("barrier.cluster.wait.acquire.aligned")

	// Two elements of a thread at a time, by the block that makes results of them.
	thread := e.r("mad.lo.s32", "%s, 32, %s", e.warp, e.lane)
	pairs, part := e.fit.Heads*e.width/2, e.part()
	for begin := 0; begin < pairs; begin += 32 * decodeWarps {
		n := thread
		if begin > 0 {
			n = e.r("add.s32", "%s, %d", thread, begin)
		}
		skip := ""
		if begin+32*decodeWarps > pairs {
			skip = e.Label()
			e.Line("@%s bra \t%s", e.Make("p", "setp.ge.u32", "%s, %d", n, pairs), skip)
		}
		from := e.r("mad.lo.s32", "%s, 8, %s", n, e.base)
		var sums [2]string
		for w := range decodeWarps {
			two := [2]string{e.New("r"), e.New("r")}
			e.Line("ld.shared.v2.b32 \t{%s}, [%s+%d]", list(two[:]), from, w*decodeStages*decodeStage)
			for i := range sums {
				if w == 0 {
					sums[i] = two[i]
				} else {
					sums[i] = e.r("add.rn.f32", "%s, %s", sums[i], two[i])
				}
			}
		}
		head, in := e.r("div.u32", "%s, %d", n, e.width/2), e.r("rem.u32", "%s, %d", n, e.width/2)
		block, in := e.r("div.u32", "%s, %d", in, part/2), e.r("rem.u32", "%s, %d", in, part/2)
		at := e.r("mad.lo.s32", "%s, %d, %s", e.rank, e.fit.Heads, head)
		at = e.r("mad.lo.s32", "%s, %d, %s", at, 4*part, e.r("mad.lo.s32", "%s, 8, %s", in, e.base))
		e.Line("st.shared::cluster.v2.b32 \t[%s+%d], {%s}", e.r("mapa.shared::cluster.u32", "%s, %s", at, block), e.receivedAt(), list(sums[:]))
		if skip != "" {
			e.Mark(skip)
		}
	}
	// The maximum and the sum of each head are needed by all: a warp has a head, and a lane a block.
	skip := e.Label()
	e.Line("@%s bra \t%s", e.Make("p", "setp.ge.u32", "%s, %d", thread, 32*e.fit.Heads), skip)
	e.Line("@%s bra \t%s", e.Make("p", "setp.ge.u32", "%s, %d", e.lane, clusterBlocks), skip)
	of := e.r("mad.lo.s32", "%s, %d, %s", e.warp, row, e.base)
	total := ""
	for _, s := range append(e.four(of, e.sumsAt()), e.four(of, e.sumsAt()+16)...) {
		if total == "" {
			total = s
		} else {
			total = e.r("add.rn.f32", "%s, %s", total, s)
		}
	}
	at := e.r("mad.lo.s32", "%s, 8, %s", e.r("mad.lo.s32", "%s, %d, %s", e.warp, clusterBlocks, e.rank), e.base)
	e.Line("st.shared::cluster.v2.b32 \t[%s+%d], {%s, %s}", e.r("mapa.shared::cluster.u32", "%s, %s", at, e.lane), e.totalsAt(), e.greatest(of, e.topsAt()), total)
	e.Mark(skip)
}

// greatest is the maximum of what warps have.
func (e *decode) greatest(from string, offset int) string {
	v := append(e.four(from, offset), e.four(from, offset+16)...)
	for len(v) > 1 {
		var pairs []string
		for i := 0; i < len(v); i += 2 {
			pairs = append(pairs, e.r("max.f32", "%s, %s", v[i], v[i+1]))
		}
		v = pairs
	}
	return v[0]
}

// gather adds up what the cluster's blocks have of the block's part of results, divides, and stores: a warp a head, a lane an element.
func (e *decode) gather() {
	e.Line("barrier.cluster.arrive.release.aligned")
	e.Line("barrier.cluster.wait.acquire.aligned")
	head := e.r("add.s32", "%s, %s", e.first, e.warp)
	outside := e.Make("p", "setp.ge.u32", "%s, %d", e.warp, e.fit.Heads)
	e.Line("@%s bra \t$L_end", e.Make("p", "or.pred", "%s, %s", outside, e.Make("p", "setp.gt.u32", "%s, %s", head, e.last)))
	block := e.r("and.b32", "%s, %d", e.lane, clusterBlocks-1)
	at := e.r("mad.lo.s32", "%s, 8, %s", e.r("mad.lo.s32", "%s, %d, %s", e.warp, clusterBlocks, block), e.base)
	own, sum := e.New("r"), e.New("r")
	e.Line("ld.shared.v2.b32 \t{%s, %s}, [%s+%d]", own, sum, at, e.totalsAt())
	top := own
	for d := 1; d < clusterBlocks; d *= 2 {
		top = e.r("max.f32", "%s, %s", top, e.across(top, d))
	}
	factor := e.Call("exp", e.r("sub.rn.f32", "%s, %s", own, top))
	sum = e.r("mul.rn.f32", "%s, %s", sum, factor)
	for d := 1; d < clusterBlocks; d *= 2 {
		sum = e.r("add.rn.f32", "%s, %s", sum, e.across(sum, d))
	}
	part := e.part()
	element := e.r("min.u32", "%s, %d", e.lane, part-1)
	from := e.r("mad.lo.s32", "%s, %d, %s", e.warp, 4*part, e.r("mad.lo.s32", "%s, 4, %s", element, e.base))
	result := ""
	for b := range clusterBlocks {
		v := e.r("ld.shared.b32", "[%s+%d]", from, e.receivedAt()+4*b*e.fit.Heads*part)
		f := e.r("shfl.sync.idx.b32", "%s, %d, 31, -1", factor, b)
		if result == "" {
			result = e.r("mul.rn.f32", "%s, %s", v, f)
		} else {
			result = e.r("fma.rn.f32", "%s, %s, %s", v, f, result)
		}
	}
	value := e.stored(e.r("div.rn.f32", "%s, %s", result, sum))
	to := e.plus(e.at("out", head), e.r("mad.lo.s32", "%s, %d, %s", e.rank, 2*part, e.r("shl.b32", "%s, 1", e.lane)))
	there := e.Make("p", "setp.lt.u32", "%s, %d", e.lane, part)
	e.Line("@%s st.global.b16 \t[%s], %s", there, to, value)
}
