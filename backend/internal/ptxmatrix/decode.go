package ptxmatrix

import (
	"math/bits"

	"github.com/mlxc/mlxc/internal/air/nvptx"
	"github.com/mlxc/mlxc/ir"
)

// Attention of few queries, as a decode step has: a cluster of blocks takes the query heads that share a key head, up to eight of them, of one query, or of
// several queries in a row if there are no more than eight in all. Its warps share the keys, each of which is read once for all these heads.
//
// A warp takes 16 keys at a time, a chunk; the warps of all blocks take chunks in turn. Keys and values come by asynchronous copies to a
// ring of slots in shared memory, which is the warp's own: first the keys of a chunk, then its values.
//
// Products are those of tensor cores (mma.sync), with keys, or the elements of values, as the rows of the left factor, and query heads as
// the columns of the right one: those of the first query, then those of the next one. So a thread has the scores of two heads, and later the sums of weighted values of the same two. Products of
// numbers of 16 bits are exact; scores are multiplied by the scale when they have been added up. A weight, exp(score − maximum), is the sum
// of two numbers of f16, of which the second is multiplied by 2^12 and the whole by 2^15 to keep clear of where f16 ends, or of three of
// bf16. The products of the first parts are added up apart from those of the others, which are so much smaller that what tensor cores cut
// off of them does not count. The second part of a weight may be 0 or less, and a value infinite; then the sum of the others is NaN or of
// the wrong sign, and what the first parts say holds.
//
// Maxima, sums of weights, and sums of weighted values are those of a warp. At the end they are brought to one maximum and added, in a
// block and then in the cluster, whose blocks each make a part of the results: what others have of that part they store in its shared
// memory. The order of sums depends on the number of keys that a query sees alone. Within a window its cluster takes the keys from the window's first one on for all that there are.
//
// Keys behind the last one that a query sees are not read: zeros take their place, and their weights are 0. Of several queries those behind the last key of
// the last query are not read. A key that only some of them see has weights of 0 for the others, which change no sum if its value is finite; if it is
// not, values are multiplied for each query on its own, with zeros in the place of those that it does not see. So results have the same bits, whether a query is alone or not.

const (
	clusterBlocks = 8
	decodeWarps   = 8
	chunkKeys     = 16
	// mostHeads is how many query heads a cluster takes at most, of all its queries: they are the columns of a factor, and each has a warp at the end.
	mostHeads = 8
	// none stands for the maximum of no scores. It is finite, so that exp of a difference to it is 0.
	none = "0fFF7FFFFF"
)

// perBlock is how many multiprocessors there are for each block at most. With fewer blocks attention is left to other code.
const perBlock = 4

// few is how attention of few queries is launched.
func (a *attention) few(groups [3]uint64, given Given) Fit {
	group, known := given.Constant("gqa_factor")
	if !known || group < 1 {
		return Fit{}
	}
	f := Fit{Rows: 1, Group: int(group), Heads: mostHeads}
	f.Heads = (f.Group + f.parts() - 1) / f.parts() // as many in each part
	// Beside codes both heads of a lane are to be of one query. Within windows a query on its own has a cluster that begins with its first key.
	if groups[1] > 1 && !(a.coded && f.Heads%2 != 0) && !a.window {
		f.Rows = 1 << (bits.Len(uint(mostHeads/f.Heads)) - 1)
	}
	for ; f.Rows > 0; f.Rows /= 2 {
		// With so few blocks the others of a model are over sooner than a cluster has begun: a block for each head is faster (H200, three key heads).
		if grid, _, _ := a.Launch(groups, f); perBlock*grid[0]*grid[1] >= uint64(given.Multiprocessors) {
			return f
		}
	}
	return Fit{}
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

	lane, warp, rank, quad, member string       // of the warp; of the block; of the cluster; lane/4, lane%4
	ratio                          string       // what sums of products are multiplied by
	query, latest                  string       // the cluster's first query, and the last one that it has
	heads, first, last             string       // all query heads; the cluster's first one, and the last one that it may have
	least, visible                 string       // how many keys its first query sees, and its last one: of a window these are the keys from its first one on
	opens                          string       // how many keys are before the window
	sees                           [2]string    // how many keys the queries of the lane's two heads see
	seenNow                        [2][2]string // predicates: of the lane's two keys of the chunk that is used, whether these queries see them
	place, all                     string       // the warp's among those of the cluster; how many chunks there are
	idle                           string       // predicate: the warp has no keys
	base, ring                     string       // of shared memory; the warp's slots

	row, unit  string    // which row of those that a copy of the warp brings the lane does, and which 16 bytes of it
	mine       string    // predicate: the row has these 16 bytes; "" if it always has
	array      [2]string // the key head's keys, and its values
	arrayPitch [2]string // bytes from key to key there
	from       [2]string // where they lie of the next chunk's keys, and of its values
	step       [2]string // bytes from the rows of a copy to those of the next one
	further    [2]string // bytes from a chunk to the warp's next one
	single     string    // predicate: not all rows begin at multiples of 16
	seen       string    // how many keys are visible from the lane's first row of the chunk on that is asked for next
	own        string    // the lane's first key of the chunk that is used

	slotBring, slotUse, end string
	left, unasked           string      // chunks of the warp that are to be used, and to be asked for
	turn                    string      // how often the loop over chunks has been entered
	q                       [][2]string // right factors of scores
	o                       [2][][4]string
	top, sum                [2]string // of the lane's two heads: the maximum, and the lane's sum of weights
	weights                 [][2]string
	valuesAt                string // where the lane begins to read values of the chunk

	// Of codes: where the scales of the keys and of the values lie that the lane brings next, how far those of a copy are from the next one's, and
	// of a chunk from the warp's next; and the lane's weights of a chunk, without scales.
	scaleFrom, scaleStep, scaleFurther [2]string
	plain                              [4]string

	queries rows   // the queries of the cluster's heads
	singles []rows // what is copied, and where that begins for rows that do not lie at multiples of 16
	apart   []string
}

// rowBytes is how many bytes a key has, or a value, without its scales.
func (a *attention) rowBytes() int {
	if a.coded {
		return a.width
	}
	return 2 * a.width
}

// pitch is how many bytes of shared memory a row takes: eight rows at one place lie in different banks. Behind codes their scales lie.
func (a *attention) pitch() int { return a.rowBytes() + 16 }

// slot is how many bytes the keys or the values of a chunk take.
func (a *attention) slot() int { return chunkKeys * a.pitch() }

// resident is how many blocks share a multiprocessor, of one launch or of two: of wider heads one needs all of its registers.
func (a *attention) resident() int {
	if a.width <= widest {
		return 2
	}
	return 1
}

// slots is how many a warp has: one that is used, and some on the way, so that 96 KB or more of each multiprocessor are where it has as many blocks as
// there is room for.
func (a *attention) slots() int {
	warp := 96 << 10 / (a.resident() * decodeWarps)
	return 1 + (warp-1)/(chunkKeys*a.rowBytes()) + 1
}

// ringBytes are those of a warp's slots.
func (a *attention) ringBytes() int { return a.slots() * a.slot() }

// sumPitch is how many bytes of shared memory a warp's sums of weighted values of a head take: those of two heads lie eight banks apart.
func (a *attention) sumPitch() int { return 4 * (a.width + 4) }

// Memory of a block: the warps' slots, which later become what the warp has of results; for each head the maximum of each
// warp; likewise sums of weights; of each block of the cluster its maximum and sum; and its sums of values, of the block's part of each head.
func (e *decode) topsAt() int     { return decodeWarps * e.ringBytes() }
func (e *decode) sumsAt() int     { return e.topsAt() + mostHeads*decodeWarps*4 }
func (e *decode) totalsAt() int   { return e.sumsAt() + mostHeads*decodeWarps*4 }
func (e *decode) receivedAt() int { return e.totalsAt() + mostHeads*clusterBlocks*8 }
func (a *attention) decodeMemory(f Fit) int {
	e := &decode{attention: a, fit: f}
	return e.receivedAt() + 4*e.columns()*a.width
}

// columns is how many query heads the cluster has, of all its queries.
func (e *decode) columns() int { return e.fit.Rows * e.fit.Heads }

// unlike reports whether the cluster's queries see different keys.
func (e *decode) unlike() bool { return e.causal && e.fit.Rows > 1 }

// part is how many elements of a head a block of the cluster makes.
func (a *attention) part() int { return a.width / clusterBlocks }

// emitFew writes the entry.
func (a *attention) emitFew(launch nvptx.Launch, f Fit) []byte {
	e := &decode{attention: a, entry: entry{kernel: a.source, launch: launch, typ: a.elem, cluster: clusterBlocks, resident: a.resident()}, fit: f}
	// Where the keys lie can be said before the launches before have ended, unless it stands in memory.
	early := launch.Programmatic && launch.Values
	if !early {
		e.wait()
	}
	e.arguments()
	e.ratio = e.scaling(e.attention)
	outside := e.places()
	e.begin()
	if early {
		e.ask(outside)
		e.wait()
	}
	e.Line("@%s bra \t$L_end", outside)
	// Until all of its blocks run nobody stores in another's shared memory. That is waited for at the end.
	e.Line("barrier.cluster.arrive.relaxed.aligned")
	e.chunks()
	e.join()
	e.gather()
	e.Mark("$L_end")
	e.Line("ret")
	e.singly()
	if e.unlike() && !e.coded {
		e.apartly()
	}
	return e.text(32 * decodeWarps)
}

// copyLanes is how many lanes copy a row, and copyRows how many rows a warp copies by one instruction.
func (a *attention) copyLanes() int { return 1 << bits.Len(uint(a.rowBytes()/16-1)) }
func (a *attention) copyRows() int  { return 32 / a.copyLanes() }

const warps = clusterBlocks * decodeWarps // of a cluster

// places finds the cluster's query and heads, and the warp's keys. It returns a predicate: the cluster has none.
func (e *decode) places() (outside string) {
	f := e.fit
	thread := e.r("mov.u32", "%%tid.x")
	e.lane = e.r("and.b32", "%s, 31", thread)
	// An assembler that does not know that all lanes have the same number here has them meet again and again.
	e.warp = e.r("shfl.sync.idx.b32", "%s, 0, 31, -1", e.r("shr.u32", "%s, 5", thread))
	e.quad, e.member = e.r("shr.u32", "%s, 2", e.lane), e.r("and.b32", "%s, 3", e.lane)
	e.rank = e.r("mov.u32", "%%cluster_ctarank")
	cluster := e.r("shr.u32", "%s, 3", e.r("mov.u32", "%%ctaid.x"))
	kv, part := cluster, "0"
	if f.parts() > 1 {
		kv, part = e.r("div.u32", "%s, %d", cluster, f.parts()), e.r("rem.u32", "%s, %d", cluster, f.parts())
	}
	e.query = e.r("mov.u32", "%%ctaid.y")
	if f.Rows > 1 {
		e.query = e.r("mul.lo.s32", "%s, %d", e.query, f.Rows)
	}
	rows := e.threads(1)
	e.heads = e.r("shr.u32", "%s, 8", e.threads(0)) // a threadgroup of the declaration has 256 threads
	begin := e.r("mul.lo.s32", "%s, %d", kv, f.Group)
	e.first = e.r("mad.lo.s32", "%s, %d, %s", part, f.Heads, begin)
	outside = e.Make("p", "setp.ge.u32", "%s, %s", e.first, e.heads)
	outside = e.Make("p", "or.pred", "%s, %s", outside, e.Make("p", "setp.ge.u32", "%s, %s", e.query, rows))
	end := e.r("min.u32", "%s, %s", e.r("add.s32", "%s, %d", begin, f.Group), e.heads)
	end = e.r("min.u32", "%s, %s", e.r("add.s32", "%s, %d", e.first, f.Heads), end)
	e.last = e.r("add.s32", "%s, -1", end)
	e.queriesSee(rows)
	e.base = e.r("mov.u32", "mlxc_shared")
	e.ring = e.r("mad.lo.s32", "%s, %d, %s", e.warp, e.ringBytes(), e.base)

	e.place = e.r("mad.lo.s32", "%s, %d, %s", e.warp, clusterBlocks, e.rank)
	e.all = e.r("shr.u32", "%s, %d", e.r("add.s32", "%s, %d", e.visible, chunkKeys-1), bits.Len(chunkKeys-1))
	e.left = e.r("shr.u32", "%s, %d", e.r("sub.s32", "%s, %s", e.r("add.s32", "%s, %d", e.all, warps-1), e.place), bits.Len(warps-1))
	e.idle = e.Make("p", "setp.eq.u32", "%s, 0", e.left)
	e.unasked = e.r("mov.b32", "%s", e.left)
	e.row, e.unit = e.r("shr.u32", "%s, %d", e.lane, bits.Len(uint(e.copyLanes()-1))), e.r("and.b32", "%s, %d", e.lane, e.copyLanes()-1)
	if units := e.rowBytes() / 16; e.copyLanes() > units {
		e.mine = e.Make("p", "setp.lt.u32", "%s, %d", e.unit, units)
	}
	key := e.r("mad.lo.s32", "%s, %d, %s", e.place, chunkKeys, e.row)
	e.own = e.r("mad.lo.s32", "%s, %d, %s", e.place, chunkKeys, e.quad)
	e.seen = e.r("sub.s32", "%s, %s", e.visible, key)
	low := ""
	for i, name := range []string{"keys", "values"} {
		pitch := e.args[name[:1]+"_seq_stride"]
		at := e.Make("rd", "mul.lo.s64", "%s, %s", e.args[name[:1]+"_head_stride"], e.Make("rd", "cvt.u64.u32", "%s", kv))
		if e.window {
			at = e.Make("rd", "mad.lo.s64", "%s, %s, %s", pitch, e.Make("rd", "cvt.u64.u32", "%s", e.opens), at)
		}
		if e.coded {
			step := ""
			e.scaleFrom[i], step = e.scalesOf(name, at, pitch, e.Make("rd", "cvt.u64.u32", "%s", key))
			e.scaleStep[i] = e.Make("rd", "mul.lo.s64", "%s, %d", step, e.copyRows())
			e.scaleFurther[i] = e.Make("rd", "mul.lo.s64", "%s, %d", step, warps*chunkKeys)
			at = e.Make("rd", "add.s64", "%s, %s", at, e.args[name])
		} else {
			pitch = e.Make("rd", "shl.b64", "%s, 1", pitch)
			at = e.Make("rd", "mad.lo.s64", "%s, 2, %s", at, e.args[name])
		}
		e.array[i], e.arrayPitch[i] = at, pitch
		both := e.Make("rd", "or.b64", "%s, %s", at, pitch)
		if low == "" {
			low = both
		} else {
			low = e.Make("rd", "or.b64", "%s, %s", low, both)
		}
		at = e.Make("rd", "mad.lo.s64", "%s, %s, %s", pitch, e.Make("rd", "cvt.u64.u32", "%s", key), at)
		e.from[i] = e.plus(at, e.r("shl.b32", "%s, 4", e.unit))
		e.step[i] = e.Make("rd", "mul.lo.s64", "%s, %d", pitch, e.copyRows())
		e.further[i] = e.Make("rd", "mul.lo.s64", "%s, %d", pitch, warps*chunkKeys)
	}
	e.single = e.Make("p", "setp.ne.b64", "%s, 0", e.Make("rd", "and.b64", "%s, 15", low))
	if e.coded {
		e.single = e.Make("p", "or.pred", "%s, %s", e.single, e.oddScales(e.groups(), e.scaleFrom[0], e.scaleFrom[1], e.scaleStep[0], e.scaleStep[1]))
	}
	e.slotBring = e.r("mad.lo.s32", "%s, %d, %s", e.row, e.pitch(), e.r("mad.lo.s32", "%s, 16, %s", e.unit, e.ring))
	e.slotUse = e.r("mov.b32", "%s", e.ring)
	e.end = e.r("add.s32", "%s, %d", e.ring, e.ringBytes())
	return outside
}

// queriesSee finds how many keys queries see.
func (e *decode) queriesSee(rows string) {
	e.visible, e.latest = e.args["N"], e.query
	if e.fit.Rows > 1 {
		e.latest = e.r("min.u32", "%s, %s", e.r("add.s32", "%s, %d", e.query, e.fit.Rows-1), e.r("add.s32", "%s, -1", rows))
	}
	if e.causal {
		before := e.r("sub.s32", "%s, %s", e.visible, e.r("add.s32", "%s, -1", rows))
		e.visible = e.r("add.s32", "%s, %s", before, e.latest)
		if e.unlike() {
			e.least = e.r("add.s32", "%s, %s", before, e.query)
			for i := range e.sees {
				if i > 0 && e.fit.Heads%2 == 0 { // both heads are of one query
					e.sees[i] = e.sees[0]
					continue
				}
				query, _ := e.divided(e.r("mad.lo.s32", "%s, 2, %d", e.member, i), e.fit.Heads)
				e.sees[i] = e.r("min.u32", "%s, %s", e.r("add.s32", "%s, %s", e.least, query), e.visible)
			}
			return
		}
	}
	if e.window {
		e.opens = e.unreached(e.visible)
		e.visible = e.r("sub.s32", "%s, %s", e.visible, e.opens)
	}
	e.sees = [2]string{e.visible, e.visible}
}

// ask has the warp's first chunks brought to the L2 cache, a lane 128 bytes at a time, before the wait. Launches that still run write their keys through
// the same cache, so that nothing out of date is read later.
func (e *decode) ask(outside string) {
	lines := 1 << bits.Len(uint((e.rowBytes()-1)/128)) // of a row
	rows := min(32/lines, chunkKeys)
	row, line := e.r("shr.u32", "%s, %d", e.lane, bits.Len(uint(lines-1))), e.r("and.b32", "%s, %d", e.lane, lines-1)
	asks := e.Make("p", "setp.lt.u32", "%s, %d", row, rows)
	asks = e.Make("p", "and.pred", "%s, %s", asks, e.Make("p", "not.pred", "%s", outside))
	key := e.r("mad.lo.s32", "%s, %d, %s", e.place, chunkKeys, row)
	for c := range e.ahead() {
		for r := 0; r < chunkKeys; r += rows {
			k := key
			if c+r > 0 {
				k = e.r("add.s32", "%s, %d", key, c*warps*chunkKeys+r)
			}
			there := e.Make("p", "setp.lt.u32", "%s, %s", k, e.visible)
			there = e.Make("p", "and.pred", "%s, %s", there, asks)
			for i := range e.array {
				at := e.Make("rd", "mad.lo.s64", "%s, %s, %s", e.arrayPitch[i], e.Make("rd", "cvt.u64.u32", "%s", k), e.array[i])
				e.Line("@%s prefetch.global.L2 \t[%s]", there, e.plus(at, e.r("shl.b32", "%s, 7", line)))
			}
		}
	}
}

// ahead is how many chunks are asked for before the first one is used, the values of the last one maybe not yet.
func (e *decode) ahead() int { return e.slots() / 2 }

// next moves a slot of the warp on.
func (e *decode) next(slot, end string) {
	e.Line("add.s32 \t%s, %s, %d", slot, slot, e.slot())
	e.Line("@%s sub.s32 \t%s, %s, %d", e.Make("p", "setp.ge.u32", "%s, %s", slot, end), slot, slot, e.ringBytes())
}

// rows are some that a warp copies to shared memory, with zeros in the place of those that are not seen.
type rows struct {
	count      int
	to         string
	offset     int
	from, step string // the lane's first row, and bytes from there to its next one
	seen       string // how many rows from there on are seen
	single     string // predicate: they do not lie at multiples of 16
	of         int    // keys or values, whose scales come too
	scales     string // where these lie of the rows that were copied last
	back       string // where it goes on
}

// copies asks for rows.
func (e *decode) copies(c rows) {
	apart := e.Label()
	c.back = e.Label()
	e.Line("@%s bra \t%s", c.single, apart)
	e.apart = append(e.apart, apart)
	e.singles = append(e.singles, c)
	mine := ""
	if e.mine != "" {
		mine = "@" + e.mine + " "
	}
	at := c.from
	for r := 0; r < c.count; r += e.copyRows() {
		if r > 0 {
			at = e.Make("rd", "add.s64", "%s, %s", at, c.step)
		}
		size := e.either(e.Make("p", "setp.gt.s32", "%s, %d", c.seen, r), "r", "16", "0")
		e.Line("%scp.async.cg.shared.global \t[%s+%d], [%s], 16, %s", mine, c.to, c.offset+r*e.pitch(), at, size)
		if e.coded {
			e.bringScales(&c, r)
		}
	}
	e.Mark(c.back)
}

// singly copies rows that do not lie at multiples of 16. It stands behind all else, where it takes nothing of what the cache of instructions has.
func (e *decode) singly() {
	from, step, to, seen, end, number := e.New("rd"), e.New("rd"), e.New("r"), e.New("r"), e.New("r"), e.New("r")
	scales, scaleStep := e.New("rd"), e.New("rd")
	loop, done := e.Label(), e.Label()
	for i, c := range e.singles {
		e.Mark(e.apart[i])
		e.Line("mov.b64 \t%s, %s", from, c.from)
		e.Line("mov.b64 \t%s, %s", step, c.step)
		if e.coded {
			e.Line("mov.b64 \t%s, %s", scales, e.scaleFrom[c.of])
			e.Line("mov.b64 \t%s, %s", scaleStep, e.scaleStep[c.of])
		}
		e.Line("add.s32 \t%s, %s, %d", to, c.to, c.offset)
		e.Line("add.s32 \t%s, %s, %d", end, to, c.count*e.pitch())
		e.Line("mov.b32 \t%s, %s", seen, c.seen)
		e.Line("mov.b32 \t%s, %d", number, i)
		if i < len(e.singles)-1 {
			e.Line("bra \t%s", loop)
		}
	}
	e.Mark(loop)
	e.Line(".pragma \"nounroll\"")
	if e.mine != "" {
		e.Line("@!%s bra \t%s", e.mine, done)
	}
	if there := e.Make("p", "setp.gt.s32", "%s, 0", seen); e.coded {
		e.singleCodes(e.groups(), e.unit, to, 0, from, scales, there)
		e.Line("add.s64 \t%s, %s, %s", scales, scales, scaleStep)
	} else {
		e.entry.single(to, 0, from, there)
	}
	e.Line("add.s64 \t%s, %s, %s", from, from, step)
	e.Line("add.s32 \t%s, %s, %d", to, to, e.copyRows()*e.pitch())
	e.Line("sub.s32 \t%s, %s, %d", seen, seen, e.copyRows())
	e.Line("@%s bra \t%s", e.Make("p", "setp.lt.u32", "%s, %s", to, end), loop)
	e.Mark(done)
	for i, c := range e.singles[1:] {
		e.Line("@%s bra \t%s", e.Make("p", "setp.eq.u32", "%s, %d", number, i+1), c.back)
	}
	e.Line("bra \t%s", e.singles[0].back)
}

// bring asks for the keys or values of the warp's next chunk, if there is one.
func (e *decode) bring(i int) {
	skip := e.Label()
	e.Line("@%s bra \t%s", e.Make("p", "setp.eq.u32", "%s, 0", e.unasked), skip)
	e.copies(rows{count: chunkKeys, to: e.slotBring, from: e.from[i], step: e.step[i], seen: e.seen, single: e.single, of: i})
	e.Line("add.s64 \t%s, %s, %s", e.from[i], e.from[i], e.further[i])
	if e.coded {
		e.Line("add.s64 \t%s, %s, %s", e.scaleFrom[i], e.scaleFrom[i], e.scaleFurther[i])
	}
	e.next(e.slotBring, e.end)
	if i == 1 {
		e.Line("sub.s32 \t%s, %s, %d", e.seen, e.seen, warps*chunkKeys)
		e.Line("sub.s32 \t%s, %s, 1", e.unasked, e.unasked)
	}
	e.Mark(skip)
	e.Line("cp.async.commit_group")
}

// settle waits for the slot that is used next. From then on the one before it is free.
func (e *decode) settle() {
	e.Line("cp.async.wait_group \t%d", e.slots()-2)
	e.Line("bar.warp.sync \t-1")
}

// begin finds the queries, and begins sums.
func (e *decode) begin() {
	for i := range e.top {
		e.top[i], e.sum[i] = e.r("mov.b32", none), e.r("mov.b32", "0")
	}
	for p := range e.o {
		for range e.width / 16 {
			if e.coded && p > 0 {
				break // the sums of a chunk are brought together
			}
			e.o[p] = append(e.o[p], e.zeros())
		}
	}
	e.turn = e.r("mov.b32", "0")
	if e.direct() {
		return
	}
	from := e.at("queries", e.query, e.first)
	e.queries = rows{
		count: mostHeads, to: e.slotBring, offset: (e.slots() - 1) * e.slot(),
		from:   e.plus(from, e.r("mad.lo.s32", "%s, %d, %s", e.row, 2*e.width, e.r("shl.b32", "%s, 4", e.unit))),
		step:   e.Make("rd", "mov.b64", "%d", 2*e.width*e.copyRows()),
		seen:   e.r("sub.s32", "%s, %s", e.r("add.s32", "%s, 1", e.last), e.r("add.s32", "%s, %s", e.first, e.row)),
		single: e.Make("p", "setp.ne.b64", "%s, 0", e.Make("rd", "and.b64", "%s, 15", e.args["queries"])),
	}
}

// direct reports whether warps read queries as factors, without shared memory.
func (e *decode) direct() bool { return e.coded || e.fit.Rows > 1 }

// chunks goes through the warp's chunks. The first times it only asks for some: with an odd number of slots for keys and then for values, with an even one for values of a chunk
// and then for keys of the next one, beginning with the keys of the first. The queries come to the last slot: nothing else does before the first chunk is used.
func (e *decode) chunks() {
	e.Line("@%s bra \t$L_join", e.idle)
	if e.direct() {
		e.factors()
	} else {
		e.copies(e.queries)
	}
	r, g := e.r("and.b32", "%s, 7", e.lane), e.r("shr.u32", "%s, 3", e.lane)
	row := e.r("mul.lo.s32", "%s, %d", r, e.pitch())
	low, high := e.r("and.b32", "%s, 1", g), e.r("shr.u32", "%s, 1", g)
	// Matrices of keys are, in this order: the first eight and the others, of eight elements, and then of the next eight; those of values the first
	// eight elements and the next, of eight keys, and then of the others.
	keys := e.r("mad.lo.s32", "%s, 16, %s", high, e.r("mad.lo.s32", "%s, %d, %s", low, 8*e.pitch(), row))
	values := e.r("mad.lo.s32", "%s, 16, %s", low, e.r("mad.lo.s32", "%s, %d, %s", high, 8*e.pitch(), row))

	even := e.slots()%2 ^ 1
	if even != 0 {
		e.Line("bra \t$L_values")
	}
	e.Mark("$L_chunk")
	e.settle()
	if !e.direct() {
		e.Line("@%s bra \t$L_keys", e.Make("p", "setp.ne.u32", "%s, %d", e.turn, e.ahead()))
		e.q = make([][2]string, e.width/16)
		from := e.r("add.s32", "%s, %s", e.ring, e.r("mad.lo.s32", "%s, 16, %s", g, row))
		for s := 0; s < len(e.q); s += 2 {
			m := e.matrices("", from, (e.slots()-1)*e.slot()+32*s)
			e.q[s], e.q[s+1] = [2]string(m[:2]), [2]string(m[2:])
		}
		e.Line("bar.warp.sync \t-1")
		e.Mark("$L_keys")
	}
	e.bring(even)
	e.Line("@%s bra \t$L_values", e.Make("p", "setp.lt.u32", "%s, %d", e.turn, e.ahead()))
	e.weigh(e.scores(e.r("add.s32", "%s, %s", e.slotUse, keys)))
	e.next(e.slotUse, e.end)
	e.Mark("$L_values")
	e.settle()
	e.bring(1 - even)
	filling := e.Make("p", "setp.lt.u32", "%s, %d", e.turn, e.ahead())
	e.Line("add.s32 \t%s, %s, 1", e.turn, e.turn)
	e.Line("@%s bra \t$L_chunk", filling)
	e.values(e.r("add.s32", "%s, %s", e.slotUse, values))
	e.next(e.slotUse, e.end)
	e.Line("sub.s32 \t%s, %s, 1", e.left, e.left)
	e.Line("@%s bra \t$L_chunk", e.Make("p", "setp.ne.u32", "%s, 0", e.left))
	e.Mark("$L_join")
}

// matrices reads four matrices of eight rows of 16 bytes.
func (e *entry) matrices(transposed, from string, offset int) (out [4]string) {
	for i := range out {
		out[i] = e.New("r")
	}
	e.Line("ldmatrix.sync.aligned.m8n8.x4%s.shared.b16 \t{%s}, [%s+%d]", transposed, list(out[:]), from, offset)
	return out
}

// multiply adds a product of 16 rows and eight columns.
func (e *entry) multiply(sum [4]string, left [4]string, right [2]string) {
	e.multiplyOf(e.typ, sum, left, right)
}

// multiplyOf is the same of factors of a type.
func (e *entry) multiplyOf(t ir.DType, sum [4]string, left [4]string, right [2]string) {
	name := t.String()
	e.Line("mma.sync.aligned.m16n8k16.row.col.f32.%s.%s.f32 \t{%s}, {%s}, {%s}, {%s}", name, name, list(sum[:]), list(left[:]), list(right[:]), list(sum[:]))
}

// scores are those of a chunk: of the lane's two heads for its first key, and for the eighth behind it. Those of keys that are not seen are −inf.
func (e *decode) scores(from string) (s [4]string) {
	if e.coded {
		s = e.codedScores(from)
	} else {
		sums := [2][4]string{e.zeros(), e.zeros()}
		for i, q := range e.q {
			e.multiply(sums[i%2], e.matrices("", from, 32*i), q)
		}
		for i := range s {
			s[i] = e.r("add.rn.f32", "%s, %s", sums[0][i], sums[1][i])
		}
	}
	for i := range s {
		s[i] = e.score(e.attention, s[i], e.ratio)
	}
	for k := range e.seenNow {
		key := e.r("add.s32", "%s, %d", e.own, 8*k)
		for i := range e.sees {
			if i > 0 && e.sees[i] == e.sees[0] {
				e.seenNow[k][i] = e.seenNow[k][0]
			} else {
				e.seenNow[k][i] = e.Make("p", "setp.lt.u32", "%s, %s", key, e.sees[i])
			}
			s[2*k+i] = e.either(e.seenNow[k][i], "r", s[2*k+i], "0fFF800000")
		}
	}
	e.Line("add.s32 \t%s, %s, %d", e.own, e.own, warps*chunkKeys)
	return s
}

// weigh makes weights of scores, the right factors of the products with values.
func (e *decode) weigh(s [4]string) {
	kept := e.Label()
	var top [2]string
	var more string
	for i := range top {
		top[i] = e.r("max.f32", "%s, %s", s[i], s[i+2])
		p := e.Make("p", "setp.gt.f32", "%s, %s", top[i], e.top[i])
		if i == 0 {
			more = p
		} else {
			more = e.Make("p", "or.pred", "%s, %s", more, p)
		}
	}
	some := e.New("p")
	e.Line("vote.sync.any.pred \t%s, %s, -1", some, more)
	e.Line("@!%s bra \t%s", some, kept)
	var less [2]string // by what the maximum was less
	for i := range top {
		for d := 4; d < 32; d *= 2 {
			top[i] = e.r("max.f32", "%s, %s", top[i], e.across(top[i], d))
		}
		top[i] = e.r("max.f32", "%s, %s", top[i], e.top[i])
		less[i] = e.r("sub.rn.f32", "%s, %s", e.top[i], top[i])
		e.Line("mov.b32 \t%s, %s", e.top[i], top[i])
	}
	e.Line("@%s bra \t%s", e.Make("p", "setp.eq.u32", "%s, %d", e.turn, e.ahead()), kept) // there are no sums yet
	for i := range less {
		factor := e.Call("exp", less[i])
		e.Line("mul.rn.f32 \t%s, %s, %s", e.sum[i], e.sum[i], factor)
		for _, o := range e.o {
			for _, v := range o {
				for _, n := range []string{v[i], v[i+2]} {
					e.Line("mul.rn.f32 \t%s, %s, %s", n, n, factor)
				}
			}
		}
	}
	e.Mark(kept)
	var parts [][4]string // of 16 bits
	for i := range s {
		w := e.Call("exp", e.r("sub.rn.f32", "%s, %s", s[i], e.top[i%2]))
		if e.coded {
			e.Line("add.rn.f32 \t%s, %s, %s", e.sum[i%2], e.sum[i%2], w)
			if e.plain[i] == "" {
				e.plain[i] = e.New("r")
			}
			e.Line("mov.b32 \t%s, %s", e.plain[i], w)
			continue
		}
		if e.typ == ir.F16 {
			w = e.r("mul.rn.f32", "%s, %s", w, e.weightUnit())
		}
		e.Line("add.rn.f32 \t%s, %s, %s", e.sum[i%2], e.sum[i%2], w)
		for p, h := range e.inParts(w) {
			if i == 0 {
				parts = append(parts, [4]string{})
			}
			parts[p][i] = h
		}
	}
	if e.weights == nil {
		e.weights = make([][2]string, len(parts))
	}
	for p, h := range parts {
		for i := range e.weights[p] {
			// A lane has two heads of a key, and of a right factor it has two keys of a head.
			e.weights[p][i] = e.r("movmatrix.sync.aligned.m8n8.trans.b16", "%s", e.r("mov.b32", "{%s, %s}", h[2*i], h[2*i+1]))
		}
	}
}

// weightUnit is what weights are multiplied by.
func (e *decode) weightUnit() string {
	if e.typ == ir.F16 && !e.coded {
		return "0f47000000"
	}
	return "0f3F800000"
}

// inParts are the numbers of 16 bits whose sum a weight is.
func (e *decode) inParts(w string) (parts []string) {
	if e.typ == ir.BF16 {
		for range 3 {
			h := e.rounded(w)
			parts = append(parts, h)
			w = e.r("sub.rn.f32", "%s, %s", w, e.widened(h))
		}
		return parts
	}
	// The first part of a weight that is not 0 is not 0, so that its product with an infinite value is infinite.
	first := e.r("mov.b32", "%s", w)
	e.Line("@%s max.f32 \t%s, %s, 0f33800000", e.Make("p", "setp.gt.f32", "%s, 0f00000000", w), first, first)
	h := e.rounded(first)
	rest := e.r("mul.rn.f32", "%s, 0f45800000", e.r("sub.rn.f32", "%s, %s", w, e.widened(h)))
	return []string{h, e.rounded(rest)}
}

// values adds the products of values and weights.
func (e *decode) values(from string) {
	if e.coded {
		e.codedValues(from)
		return
	}
	if e.unlike() {
		e.valuesAt = from
		end := e.r("sub.s32", "%s, %s", e.own, e.r("add.s32", "%s, %d", e.quad, (warps-1)*chunkKeys))
		e.Line("@%s bra \t$L_partly", e.Make("p", "setp.gt.s32", "%s, %s", end, e.least))
		e.Mark("$L_alike")
	}
	for i := range e.o[0] {
		v := e.matrices(".trans", from, 32*i)
		for p, w := range e.weights {
			e.multiply(e.o[min(p, 1)][i], v, w)
		}
	}
	if e.unlike() {
		e.Mark("$L_valued")
	}
}

// apartly adds the products of a chunk of which not all queries see all keys, if it has a value that is infinite or NaN and that some of them do not see: those of
// each query on its own. It stands behind all else, as most warps have no such chunk.
func (e *decode) apartly() {
	e.Mark("$L_partly")
	begin := e.r("sub.s32", "%s, %s", e.own, e.r("add.s32", "%s, %d", e.quad, warps*chunkKeys))
	left := e.r("sub.s32", "%s, %s", e.least, begin) // keys from here on that the first query sees
	first := e.r("max.s32", "%s, 0", left)
	end := e.r("min.s32", "%s, %d", e.r("add.s32", "%s, %d", left, e.fit.Rows-1), chunkKeys)
	slot := e.r("mad.lo.s32", "%s, 16, %s", e.lane, e.slotUse)
	at, last := e.r("mad.lo.s32", "%s, %d, %s", first, e.pitch(), slot), e.r("mad.lo.s32", "%s, %d, %s", end, e.pitch(), slot)
	reads := e.Make("p", "setp.lt.u32", "%s, %d", e.lane, e.width/8)
	all, lowest := e.exponents()
	over := e.r("mov.b32", "0")
	var v [4]string
	for i := range v {
		v[i] = e.r("mov.b32", "0")
	}
	loop := e.Label()
	e.Mark(loop)
	e.Line(".pragma \"nounroll\"")
	e.Line("@%s ld.shared.v4.b32 \t{%s}, [%s]", reads, list(v[:]), at)
	for _, two := range v {
		e.Line("or.b32 \t%s, %s, %s", over, over, e.r("add.s32", "%s, %d", e.r("and.b32", "%s, %d", two, all), lowest))
	}
	e.Line("add.s32 \t%s, %s, %d", at, at, e.pitch())
	e.Line("@%s bra \t%s", e.Make("p", "setp.lt.u32", "%s, %s", at, last), loop)
	some := e.New("p")
	e.Line("vote.sync.any.pred \t%s, %s, -1", some, e.Make("p", "setp.ne.u32", "%s, 0", e.r("and.b32", "%s, %d", over, uint32(0x80008000))))
	e.Line("@!%s bra \t$L_alike", some)

	sees := e.r("mov.b32", "%s", e.least)
	stop := e.r("add.s32", "%s, %d", e.least, e.fit.Rows)
	own := e.r("mad.lo.s32", "%s, 2, %s", e.member, begin) // the lane's first key as the inner index
	loop = e.Label()
	e.Mark(loop)
	e.Line(".pragma \"nounroll\"")
	left = e.r("sub.s32", "%s, %s", sees, own)
	var seen, mine [2]string // which bits of two values are seen, and whether the lane's heads are of the query
	for i := range seen {
		one := e.either(e.Make("p", "setp.gt.s32", "%s, %d", left, 8*i), "r", "0xFFFF", "0")
		seen[i] = e.either(e.Make("p", "setp.gt.s32", "%s, %d", left, 8*i+1), "r", "-1", one)
		mine[i] = e.Make("p", "setp.eq.u32", "%s, %s", e.sees[i], sees)
	}
	for i := range e.o[0] {
		v := e.matrices(".trans", e.valuesAt, 32*i)
		for j := range v {
			v[j] = e.r("and.b32", "%s, %s", v[j], seen[j/2])
		}
		var sums [2][4]string
		for p := range sums {
			for j, o := range e.o[p][i] {
				sums[p][j] = e.r("mov.b32", "%s", o)
			}
		}
		for p, w := range e.weights {
			e.multiply(sums[min(p, 1)], v, w)
		}
		for p := range sums {
			for j, o := range e.o[p][i] {
				e.Line("@%s mov.b32 \t%s, %s", mine[j%2], o, sums[p][j])
			}
		}
	}
	e.Line("add.s32 \t%s, %s, 1", sees, sees)
	e.Line("@%s bra \t%s", e.Make("p", "setp.lt.u32", "%s, %s", sees, stop), loop)
	e.Line("bra \t$L_valued")
}

// of is the query and the head of a column of factors, and a predicate: the cluster has them.
func (e *decode) of(column string) (query, head, there string) {
	query, head = e.query, column
	if e.fit.Rows > 1 {
		query, head = e.divided(column, e.fit.Heads)
		query = e.r("add.s32", "%s, %s", e.query, query)
	}
	head = e.r("add.s32", "%s, %s", e.first, head)
	there = e.Make("p", "setp.le.u32", "%s, %s", head, e.last)
	if e.fit.Rows > 1 {
		there = e.Make("p", "and.pred", "%s, %s", there, e.Make("p", "setp.le.u32", "%s, %s", query, e.latest))
	}
	return query, head, there
}

// at is where a head of a query lies in an array.
func (e *decode) at(array, query, head string) string {
	n := e.Make("rd", "add.s64", "%s, %s", e.wide(query, e.heads), e.Make("rd", "cvt.u64.u32", "%s", head))
	return e.Make("rd", "mad.lo.s64", "%s, %d, %s", n, 2*e.width, e.args[array])
}

func (e *decode) across(v string, distance int) string {
	return e.r("shfl.sync.bfly.b32", "%s, %d, 31, -1", v, distance)
}

// join brings what a block's warps have to one maximum, adds it up, and stores it where the blocks of the cluster find it that make results of it.
func (e *decode) join() {
	const row = 4 * decodeWarps // bytes of what warps have of one head
	tops := e.r("mad.lo.s32", "%s, %d, %s", e.member, 2*row, e.base)
	place := e.r("mad.lo.s32", "%s, 4, %s", e.warp, tops)
	first := e.Make("p", "setp.lt.u32", "%s, 4", e.lane)
	for i := range e.top {
		e.Line("@%s st.shared.b32 \t[%s+%d], %s", first, place, e.topsAt()+i*row, e.top[i])
		e.Line("@%s st.shared.b32 \t[%s+%d], %s", first, place, e.sumsAt()+i*row, e.sum[i])
	}
	e.Line("bar.sync \t0")
	e.Line("@%s bra \t$L_idle", e.idle)
	each := 4
	if e.coded {
		each = 8
	}
	to := e.r("mad.lo.s32", "%s, %d, %s", e.member, 2*e.sumPitch(), e.r("mad.lo.s32", "%s, %d, %s", e.quad, each, e.ring))
	var less [2]string
	for i := range e.top {
		less[i] = e.r("sub.rn.f32", "%s, %s", e.top[i], e.maximum(tops, e.topsAt()+i*row))
	}
	for i := range e.top {
		factor := e.Call("exp", less[i])
		sum := e.r("mul.rn.f32", "%s, %s", e.sum[i], factor)
		for d := 4; d < 32; d *= 2 {
			sum = e.r("add.rn.f32", "%s, %s", sum, e.across(sum, d))
		}
		e.Line("@%s st.shared.b32 \t[%s+%d], %s", first, place, e.sumsAt()+i*row, sum)
		there := e.Make("p", "setp.lt.u32", "%s, %d", e.r("mad.lo.s32", "%s, 2, %d", e.member, i), e.columns())
		for j := range e.o[0] {
			for k := range 2 {
				v, apart := e.o[0][j][2*k+i], 32 // bytes from the first eight elements to the others
				if e.coded {
					apart = 4 // the others lie between them
				} else {
					whole := v
					v = e.whole(whole, e.o[1][j][2*k+i])
					e.Line("@%s mov.b32 \t%s, %s", e.Make("p", "setp.nan.f32", "%s, %s", v, v), v, whole)
				}
				e.Line("@%s st.shared.b32 \t[%s+%d], %s", there, to, i*e.sumPitch()+64*j+apart*k, e.r("mul.rn.f32", "%s, %s", v, factor))
			}
		}
	}
	e.Mark("$L_idle")
	e.Line("bar.sync \t0")
	e.Line("barrier.cluster.wait.acquire.aligned")
	var works [decodeWarps]string // predicates: the warp has keys
	for w := range works {
		works[w] = e.Make("p", "setp.lt.u32", "%s, %s", e.r("add.s32", "%s, %d", e.rank, w*clusterBlocks), e.all)
	}

	// Two elements of a thread at a time, by the block that makes results of them.
	thread := e.r("mad.lo.s32", "%s, 32, %s", e.warp, e.lane)
	pairs, part := e.columns()*e.width/2, e.part()
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
		head, in := e.divided(n, e.width/2)
		from := e.r("mad.lo.s32", "%s, %d, %s", head, e.sumPitch(), e.r("mad.lo.s32", "%s, 8, %s", in, e.base))
		var sums [2]string
		for w := range decodeWarps {
			two := [2]string{e.r("mov.b32", "0"), e.r("mov.b32", "0")}
			e.Line("@%s ld.shared.v2.b32 \t{%s}, [%s+%d]", works[w], list(two[:]), from, w*e.ringBytes())
			for i := range sums {
				if w == 0 {
					sums[i] = two[i]
				} else {
					sums[i] = e.r("add.rn.f32", "%s, %s", sums[i], two[i])
				}
			}
		}
		block, in := e.divided(in, part/2)
		at := e.r("mad.lo.s32", "%s, %d, %s", e.rank, e.columns(), head)
		at = e.r("mad.lo.s32", "%s, %d, %s", at, 4*part, e.r("mad.lo.s32", "%s, 8, %s", in, e.base))
		e.Line("st.shared::cluster.v2.b32 \t[%s+%d], {%s}", e.r("mapa.shared::cluster.u32", "%s, %s", at, block), e.receivedAt(), list(sums[:]))
		if skip != "" {
			e.Mark(skip)
		}
	}
	// The maximum and the sum of each head are needed by all: a warp has a head, and a lane a block.
	skip := e.Label()
	e.Line("@%s bra \t%s", e.Make("p", "setp.ge.u32", "%s, %d", thread, 32*e.columns()), skip)
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
	e.Line("st.shared::cluster.v2.b32 \t[%s+%d], {%s, %s}", e.r("mapa.shared::cluster.u32", "%s, %s", at, e.lane), e.totalsAt(), e.maximum(of, e.topsAt()), total)
	e.Mark(skip)
}

// divided divides a number below 2^12 by another one.
func (e *entry) divided(n string, by int) (quotient, rest string) {
	if by&(by-1) == 0 {
		return e.r("shr.u32", "%s, %d", n, bits.Len(uint(by-1))), e.r("and.b32", "%s, %d", n, by-1)
	}
	quotient = e.r("shr.u32", "%s, 20", e.r("mul.lo.s32", "%s, %d", n, (1<<20+by-1)/by))
	return quotient, e.r("mad.lo.s32", "%s, %d, %s", quotient, -by, n)
}

// whole is a sum of products with weights by those with their parts.
func (e *decode) whole(first, others string) string {
	if e.typ == ir.BF16 {
		return e.r("add.rn.f32", "%s, %s", first, others)
	}
	return e.r("fma.rn.f32", "%s, 0f39800000, %s", others, first)
}

// maximum is that of what warps have.
func (e *decode) maximum(from string, offset int) string {
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
	query, head, there := e.of(e.warp)
	there = e.Make("p", "and.pred", "%s, %s", there, e.Make("p", "setp.lt.u32", "%s, %d", e.warp, e.columns()))
	e.Line("@!%s bra \t$L_end", there)
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
	if e.sinks {
		less := ""
		sum, less = e.sunk(head, top, sum, e.weightUnit())
		factor = e.r("mul.rn.f32", "%s, %s", factor, less)
	}
	part := e.part()
	element := e.r("min.u32", "%s, %d", e.lane, part-1)
	from := e.r("mad.lo.s32", "%s, %d, %s", e.warp, 4*part, e.r("mad.lo.s32", "%s, 4, %s", element, e.base))
	result := ""
	for b := range clusterBlocks {
		v := e.r("ld.shared.b32", "[%s+%d]", from, e.receivedAt()+4*b*e.columns()*part)
		f := e.r("shfl.sync.idx.b32", "%s, %d, 31, -1", factor, b)
		if result == "" {
			result = e.r("mul.rn.f32", "%s, %s", v, f)
		} else {
			result = e.r("fma.rn.f32", "%s, %s, %s", v, f, result)
		}
	}
	value := e.stored(e.r("div.rn.f32", "%s, %s", result, sum))
	to := e.plus(e.at("out", query, head), e.r("mad.lo.s32", "%s, %d, %s", e.rank, 2*part, e.r("shl.b32", "%s, 1", e.lane)))
	there = e.Make("p", "setp.lt.u32", "%s, %d", e.lane, part)
	e.Line("@%s st.global.b16 \t[%s], %s", there, to, value)
}
