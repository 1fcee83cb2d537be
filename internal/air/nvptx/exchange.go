package nvptx

import (
	"fmt"
	"strings"

	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/llvm"
)

// gpu writes the body of a function in which the threads of a warp exchange. Which threads take
// part is its first argument, %mlxc.mask. Sums and the like combine in the order that
// the executor has (backend/softmetal/host/exchange.c), so that they have the same bits.
type gpu struct {
	*text
	module *gpuModule
	n      int
}

// make adds an instruction with a result.
func (g *gpu) make(format string, args ...any) string {
	g.n++
	v := fmt.Sprintf("%%x%d", g.n)
	g.Line("  %s = %s", v, fmt.Sprintf(format, args...))
	return v
}

// partMask is the parameter that has the mask of the threads that take part.
const partMask = "%mlxc.mask"

// lane is the number of the thread in its warp. Blocks have one dimension.
func (g *gpu) lane() string { return g.make("and i32 %s, 31", g.make("call i32 @mlxc.thread()")) }

// number is a type of numbers that threads exchange.
type number struct {
	llvm string
	kind string // f, s, u
	bits int
}

// shuffled is the value that another lane has, of threads that are active by the mask.
func (g *gpu) shuffled(t number, v, mask, lane string) string {
	return g.exchanged(t, v, func(word string) string {
		return g.make("call i32 @mlxc.shuffle(i32 %s, i32 %s, i32 %s)", mask, word, lane)
	})
}

// exchanged is a value of which each word of 32 bits went through an exchange.
func (g *gpu) exchanged(t number, v string, whole func(word string) string) string {
	i := fmt.Sprint("i", t.bits)
	if t.kind == "f" {
		v = g.make("bitcast %s %s to %s", t.llvm, v, i)
	}
	switch t.bits {
	case 32:
		v = whole(v)
	case 64:
		low := g.make("zext i32 %s to i64", whole(g.make("trunc i64 %s to i32", v)))
		high := g.make("zext i32 %s to i64", whole(g.make("trunc i64 %s to i32", g.make("lshr i64 %s, 32", v))))
		v = g.make("or i64 %s, %s", low, g.make("shl i64 %s, 32", high))
	default:
		v = g.make("trunc i32 %s to %s", whole(g.make("zext %s %s to i32", i, v)), i)
	}
	if t.kind == "f" {
		v = g.make("bitcast %s %s to %s", i, v, t.llvm)
	}
	return v
}

// combine is one step of a reduction.
func (g *gpu) combine(op air.Operation, t number, a, b string) string {
	if t.kind == "f" {
		wide := func(v string) string {
			if t.bits == 32 {
				return v
			}
			return g.make("fpext %s %s to float", t.llvm, v)
		}
		x, y := wide(a), wide(b)
		switch op {
		case air.OpSum:
			x = g.make("fadd float %s, %s", x, y)
		case air.OpProduct:
			x = g.make("fmul float %s, %s", x, y)
		case air.OpMin:
			x = g.make("call float @llvm.minnum.f32(float %s, float %s)", x, y)
		default:
			x = g.make("call float @llvm.maxnum.f32(float %s, float %s)", x, y)
		}
		if t.bits == 32 {
			return x
		}
		return g.make("fptrunc float %s to %s", x, t.llvm)
	}
	if op == air.OpMin || op == air.OpMax {
		predicate := map[string]string{"s": "s", "u": "u"}[t.kind] + map[air.Operation]string{air.OpMin: "lt", air.OpMax: "gt"}[op]
		return g.make("select i1 %s, %s %s, %s %s", g.make("icmp %s %s %s, %s", predicate, t.llvm, a, b), t.llvm, a, t.llvm, b)
	}
	instruction := map[air.Operation]string{air.OpSum: "add", air.OpProduct: "mul", air.OpAnd: "and", air.OpOr: "or", air.OpXor: "xor"}[op]
	return g.make("%s %s %s, %s", instruction, t.llvm, a, b)
}

// reduced is what all active threads of the width have together, of each of some values. The values go side
// by side: no step of one waits for another's.
func (g *gpu) reduced(op air.Operation, t number, values []string, width int) (out []string) {
	base := fmt.Sprintf("mlxc.reduce.%d.%s.%s.%d", op, t.kind, t.llvm, width)
	g.reducedPart(base+".part", op, t, width)
	n := len(values)
	name := fmt.Sprint(base, ".", n)
	result := "{ " + strings.Repeat(t.llvm+", ", n-1) + t.llvm + " }"
	var params, args []string
	for i, v := range values {
		params = append(params, fmt.Sprintf("%s %%in%d", t.llvm, i))
		args = append(args, t.llvm+" "+v)
	}
	g.once(name, func(h *gpu) {
		ret := func(all []string) {
			last := "poison"
			for i, v := range all {
				last = h.make("insertvalue %s %s, %s %s, %d", result, last, t.llvm, v, i)
			}
			h.Line("  ret %s %s", result, last)
		}
		// All are there: each thread gets the same from a butterfly.
		h.Line("define internal %s @%s(i32 %s, %s) convergent alwaysinline nounwind {", result, name, partMask, strings.Join(params, ", "))
		full := h.make("icmp eq i32 %s, -1", partMask)
		h.Line("  br i1 %s, label %%full, label %%part\nfull:", full)
		all := make([]string, n)
		for i := range all {
			all[i] = fmt.Sprint("%in", i)
		}
		for k := width / 2; k > 0; k /= 2 {
			for i, v := range all {
				all[i] = h.combine(op, t, v, h.exchanged(t, v, func(word string) string {
					return h.make("call i32 @llvm.nvvm.shfl.sync.bfly.i32(i32 -1, i32 %s, i32 %d, i32 31) #990", word, k)
				}))
			}
		}
		ret(all)
		h.Line("part:")
		lane := h.lane()
		for i := range all {
			all[i] = h.make("call %s @%s.part(%s %%in%d, i32 %s, i32 %s)", t.llvm, base, t.llvm, i, partMask, lane)
		}
		ret(all)
		h.Line("}")
	})
	got := g.make("call %s @%s(i32 %s, %s) #990", result, name, partMask, strings.Join(args, ", "))
	for i := range values {
		out = append(out, g.make("extractvalue %s %s, %d", result, got, i))
	}
	return out
}

// reducedPart writes the function for one value of which only some threads of the warp have a part.
func (g *gpu) reducedPart(name string, op air.Operation, t number, width int) {
	g.once(name, func(h *gpu) {
		// Some are not. By the same tree: before a step the lanes whose numbers are the same modulo 2·k have
		// one value, and get that of those whose numbers differ from theirs by k, from the first of these
		// that is there.
		h.Line("define internal %s @%s(%s %%in, i32 %%mask, i32 %%lane) convergent noinline nounwind {", t.llvm, name, t.llvm)
		base := h.make("and i32 %%lane, %d", -width)
		here := h.make("lshr i32 %%mask, %s", base)
		v := "%in"
		for k := width / 2; k > 0; k /= 2 {
			pattern := uint32(0)
			for j := 0; j < width; j += 2 * k {
				pattern |= 1 << j
			}
			others := h.make("shl i32 %d, %s", int32(pattern), h.make("and i32 %s, %d", h.make("xor i32 %%lane, %d", k), 2*k-1))
			there := h.make("and i32 %s, %s", here, others)
			none := h.make("icmp eq i32 %s, 0", there)
			first := h.make("add i32 %s, %s", base, h.make("call i32 @llvm.cttz.i32(i32 %s, i1 false)", there))
			got := h.shuffled(t, v, "%mask", h.make("select i1 %s, i32 %%lane, i32 %s", none, first))
			upper := h.make("icmp ne i32 %s, 0", h.make("and i32 %%lane, %d", k))
			left := h.make("select i1 %s, %s %s, %s %s", upper, t.llvm, got, t.llvm, v)
			right := h.make("select i1 %s, %s %s, %s %s", upper, t.llvm, v, t.llvm, got)
			v = h.make("select i1 %s, %s %s, %s %s", none, t.llvm, v, t.llvm, h.combine(op, t, left, right))
		}
		h.Line("  ret %s %s\n}", t.llvm, v)
	})
}

// scanned is the prefix sum or product, from lane to lane.
func (g *gpu) scanned(op air.Operation, t number, v string, width int, exclusive bool) string {
	name := fmt.Sprintf("mlxc.scan.%d.%s.%s.%d.%v", op, t.kind, t.llvm, width, exclusive)
	g.once(name, func(h *gpu) {
		h.Line("define internal %s @%s(i32 %s, %s %%in) convergent noinline nounwind {", t.llvm, name, partMask, t.llvm)
		mask, lane := partMask, h.lane()
		base := h.make("and i32 %s, %d", lane, -width)
		sum, out := "0", "undef"
		if op == air.OpProduct {
			sum = "1"
		}
		if t.kind == "f" {
			sum = h.make("sitofp i32 %s to %s", sum, t.llvm)
		}
		for j := range width {
			from := h.make("or i32 %s, %d", base, j)
			next := h.combine(op, t, sum, h.shuffled(t, "%in", mask, from))
			there := h.make("icmp ne i32 %s, 0", h.make("and i32 %s, %s", mask, h.make("shl i32 1, %s", from)))
			is := h.make("icmp eq i32 %s, %s", lane, from)
			got := next
			if exclusive {
				got = sum
			}
			out = h.make("select i1 %s, %s %s, %s %s", is, t.llvm, got, t.llvm, out)
			sum = h.make("select i1 %s, %s %s, %s %s", there, t.llvm, next, t.llvm, sum)
		}
		h.Line("  ret %s %s\n}", t.llvm, out)
	})
	return g.make("call %s @%s(i32 %s, %s %s) #990", t.llvm, name, partMask, t.llvm, v)
}

// once writes a function beside this one, if it was not written yet.
func (g *gpu) once(name string, write func(*gpu)) {
	if !g.module.known[name] {
		g.module.known[name] = true
		write(&gpu{text: &g.module.support, module: g.module})
	}
}

// gpuSupport is what the bodies call.
const gpuSupport = `declare i32 @llvm.nvvm.shfl.sync.idx.i32(i32, i32, i32, i32) #990
declare i32 @llvm.nvvm.shfl.sync.bfly.i32(i32, i32, i32, i32) #990
declare i32 @llvm.nvvm.vote.ballot.sync(i32, i1) #990
declare i1 @llvm.nvvm.vote.any.sync(i32, i1) #990
declare float @llvm.fabs.f32(float)
declare float @llvm.minnum.f32(float, float)
declare float @llvm.maxnum.f32(float, float)
declare i32 @llvm.cttz.i32(i32, i1)
declare float @llvm.fma.f32(float, float, float)
define internal i32 @mlxc.shuffle(i32 %mask, i32 %x, i32 %lane) convergent alwaysinline nounwind {
  %r = call i32 @llvm.nvvm.shfl.sync.idx.i32(i32 %mask, i32 %x, i32 %lane, i32 31) #990
  ret i32 %r
}
attributes #990 = { convergent nounwind }
attributes #992 = { convergent nounwind willreturn memory(none) }
attributes #993 = { nounwind willreturn memory(none) }
!990000000 = distinct !{!990000000, !990000001}
!990000001 = !{!"llvm.loop.unroll.disable"}
`

// rolledLoop is the metadata of a loop that no compiler is to unroll.
const rolledLoop = 990000000

// ownThread is the number of a thread in its block.
const ownThread = `declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
define internal i32 @mlxc.thread() alwaysinline nounwind {
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  ret i32 %t
}
`

// exchangeBody writes the body of a function in which threads exchange, or do their parts alone.
func (m *gpuModule) exchangeBody(d llvm.Declaration) error {
	s, err := air.Site{}, error(nil)
	if !air.Alone(d) {
		if s, err = air.SiteOf(d); err != nil {
			return err
		}
	}
	var params, args []string
	for i, p := range d.Params {
		params = append(params, fmt.Sprintf("%s %%a%d", p, i))
		args = append(args, fmt.Sprint("%a", i))
	}
	g := &gpu{text: &m.bodies, module: m}
	name := d.Name
	if !air.Alone(d) {
		name, params = masked(d), append([]string{"i32 " + partMask}, params...)
	}
	g.Line("define internal %s @%s(%s) convergent alwaysinline nounwind {", d.Result, name, strings.Join(params, ", "))
	defer g.Line("}")
	ret := func(v string) { g.Line("  ret %s %s", d.Result, v) }
	switch {
	case air.Alone(d):
		g.Line("  %%mlxc.lane = call i32 @mlxc.thread()\n  %%mlxc.low = and i32 %%mlxc.lane, 31\n  %%mlxc.index = zext i32 %%mlxc.low to i64")
		lines, err := air.MatrixLines(d, args, "m", "%result", m.rows)
		if err != nil {
			return err
		}
		g.Lines(lines)
		if d.Result == "void" {
			g.Line("  ret void")
		} else {
			ret("%result")
		}
		return nil
	case s.Operation == air.ThreadgroupBarrier:
		g.Line(`  call void asm sideeffect "barrier.sync 0;", "~{memory}"() #990`)
		g.Line("  ret void")
		return nil
	case s.Operation == air.SimdgroupBarrier:
		g.Line(`  call void asm sideeffect "bar.warp.sync $0;", "r,~{memory}"(i32 %s) #990`, partMask)
		g.Line("  ret void")
		return nil
	case s.Operation == air.OpMultiplyAccumulate:
		g.multiplyAccumulate(d, partMask)
		g.Line("}\ndefine internal %s @%s(%s) convergent alwaysinline nounwind {", d.Result, maskedByAll(d), strings.Join(params, ", "))
		g.multiplyAccumulate(d, allThreads)
		return nil
	case s.Element == air.ElementNames["u.i8"] && isVote(s.Operation):
		v, err := g.voted(s, d)
		if err != nil {
			return err
		}
		ret(v)
		return nil
	}
	width, elem := llvm.Elements(d.Params[0])
	n := number{llvm: elem, kind: map[bool]string{true: "f", false: "u"}[s.Element <= 2], bits: 8 * llvm.BytesOf(elem)}
	if n.kind == "u" && s.Element <= air.ElementNames["s.i64"] {
		n.kind = "s"
	}
	each := func(f func(v, fill string) string) {
		if d.Params[0][0] != '<' {
			fill := ""
			if len(args) > 1 {
				fill = args[1]
			}
			ret(f(args[0], fill))
			return
		}
		last := "poison"
		var out []string
		for i := range width {
			fill := ""
			if s.Operation == air.OpShuffleAndFillUp || s.Operation == air.OpShuffleAndFillDown {
				fill = g.make("extractelement %s %s, i32 %d", d.Params[1], args[1], i)
			}
			out = append(out, f(g.make("extractelement %s %s, i32 %d", d.Params[0], args[0], i), fill))
		}
		for i, v := range out {
			last = g.make("insertelement %s %s, %s %s, i32 %d", d.Result, last, elem, v, i)
		}
		ret(last)
	}
	switch s.Operation {
	case air.OpSum, air.OpProduct, air.OpMin, air.OpMax, air.OpAnd, air.OpOr, air.OpXor:
		if d.Params[0][0] != '<' {
			ret(g.reduced(s.Operation, n, args[:1], s.Width)[0])
			return nil
		}
		var values []string
		for i := range width {
			values = append(values, g.make("extractelement %s %s, i32 %d", d.Params[0], args[0], i))
		}
		last := "poison"
		for i, v := range g.reduced(s.Operation, n, values, s.Width) {
			last = g.make("insertelement %s %s, %s %s, i32 %d", d.Result, last, elem, v, i)
		}
		ret(last)
		return nil
	case air.OpPrefixInclusiveSum, air.OpPrefixExclusiveSum:
		each(func(v, _ string) string {
			return g.scanned(air.OpSum, n, v, s.Width, s.Operation == air.OpPrefixExclusiveSum)
		})
		return nil
	case air.OpPrefixInclusiveProduct, air.OpPrefixExclusiveProduct:
		each(func(v, _ string) string {
			return g.scanned(air.OpProduct, n, v, s.Width, s.Operation == air.OpPrefixExclusiveProduct)
		})
		return nil
	}
	return g.moved(s, d, args, n, each)
}

func isVote(op air.Operation) bool {
	return op == air.OpAny || op == air.OpAll || op == air.OpBallot || op == air.OpIsFirst || op == air.OpActiveThreads
}

// voted is the answer of a vote, in the type of the result.
func (g *gpu) voted(s air.Site, d llvm.Declaration) (string, error) {
	mask, lane := partMask, g.lane()
	base := "0"
	if s.Width < air.SimdWidth {
		base = g.make("and i32 %s, %d", lane, -s.Width)
	}
	within := func(v string) string {
		if s.Width == air.SimdWidth {
			return v
		}
		return g.make("and i32 %s, %d", g.make("lshr i32 %s, %s", v, base), 1<<s.Width-1)
	}
	here := within(mask)
	yes := here
	if len(d.Params) > 0 && s.Operation != air.OpIsFirst && s.Operation != air.OpActiveThreads {
		if d.Params[0] != "i1" {
			return "", fmt.Errorf("@%s asks about a %s", d.Name, d.Params[0])
		}
		yes = within(g.make("call i32 @llvm.nvvm.vote.ballot.sync(i32 %s, i1 %%a0) #990", mask))
	}
	var got string
	switch s.Operation {
	case air.OpAny:
		got = g.make("zext i1 %s to i32", g.make("icmp ne i32 %s, 0", yes))
	case air.OpAll:
		got = g.make("zext i1 %s to i32", g.make("icmp eq i32 %s, %s", yes, here))
	case air.OpIsFirst:
		first := g.make("call i32 @llvm.cttz.i32(i32 %s, i1 true)", here)
		got = g.make("zext i1 %s to i32", g.make("icmp eq i32 %s, %s", first, g.make("sub i32 %s, %s", lane, base)))
	default:
		got = yes
	}
	switch bytes := llvm.BytesOf(d.Result); {
	case d.Result == "i32":
		return got, nil
	case d.Result == "i64":
		return g.make("zext i32 %s to i64", got), nil
	case bytes > 0 && d.Result[0] == 'i':
		return g.make("trunc i32 %s to %s", got, d.Result), nil
	}
	return "", fmt.Errorf("@%s returns a %s", d.Name, d.Result)
}

// moved is a shuffle: each thread gets the value of another.
func (g *gpu) moved(s air.Site, d llvm.Declaration, args []string, n number, each func(func(v, fill string) string)) error {
	mask, lane := partMask, g.lane()
	base := g.make("and i32 %s, %d", lane, -s.Width)
	own := g.make("and i32 %s, %d", lane, s.Width-1)
	next := 1
	filled := s.Operation == air.OpShuffleAndFillUp || s.Operation == air.OpShuffleAndFillDown
	if filled {
		next = 2
	}
	number := func(i int) string { // an argument as 32 bits
		if d.Params[i] == "i32" {
			return args[i]
		}
		return g.make("zext %s %s to i32", d.Params[i], args[i])
	}
	by := "0"
	if s.Operation != air.OpBroadcastFirst {
		if len(args) <= next {
			return fmt.Errorf("@%s has %d parameters", d.Name, len(args))
		}
		by = number(next)
	}
	wrap := func(v string) string { return g.make("and i32 %s, %d", v, s.Width-1) }
	choose := func(c, a, b string) string { return g.make("select i1 %s, i32 %s, i32 %s", c, a, b) }
	to, outside := "", ""
	switch s.Operation {
	case air.OpShuffle:
		to = wrap(by)
	case air.OpShuffleXor:
		to = wrap(g.make("xor i32 %s, %s", own, by))
	case air.OpShuffleUp:
		to = choose(g.make("icmp uge i32 %s, %s", own, by), g.make("sub i32 %s, %s", own, by), own)
	case air.OpShuffleDown:
		sum := g.make("add i32 %s, %s", own, by)
		to = choose(g.make("icmp ult i32 %s, %d", sum, s.Width), sum, own)
	case air.OpShuffleRotateUp:
		to = wrap(g.make("sub i32 %s, %s", own, by))
	case air.OpShuffleRotateDown:
		to = wrap(g.make("add i32 %s, %s", own, by))
	case air.OpBroadcastFirst:
		here := g.make("lshr i32 %s, %s", mask, base)
		to = wrap(g.make("call i32 @llvm.cttz.i32(i32 %s, i1 true)", here))
	case air.OpShuffleAndFillUp, air.OpShuffleAndFillDown:
		modulus := fmt.Sprint(s.Width)
		if len(args) > next+1 {
			given := number(next + 1)
			// One that is 0 or too large is the width.
			modulus = choose(g.make("icmp ult i32 %s, %d", g.make("sub i32 %s, 1", given), s.Width), given, modulus)
		}
		piece := g.make("mul i32 %s, %s", g.make("udiv i32 %s, %s", own, modulus), modulus)
		end := g.make("add i32 %s, %s", piece, modulus)
		other := ""
		if s.Operation == air.OpShuffleAndFillUp {
			to = g.make("sub i32 %s, %s", own, by)
			outside = g.make("icmp slt i32 %s, %s", to, piece)
			other = g.make("add i32 %s, %s", to, modulus)
		} else {
			to = g.make("add i32 %s, %s", own, by)
			outside = g.make("icmp sge i32 %s, %s", to, end)
			other = g.make("sub i32 %s, %s", to, modulus)
		}
		to = wrap(choose(outside, other, to))
	default:
		return fmt.Errorf("@%s is not a function that is known here", d.Name)
	}
	from := g.make("or i32 %s, %s", base, to)
	each(func(v, fill string) string {
		got := g.shuffled(n, v, mask, from)
		if !filled {
			return got
		}
		return g.make("select i1 %s, %s %s, %s %s", outside, n.llvm, g.shuffled(n, fill, mask, from), n.llvm, got)
	})
	return nil
}

// multiplyAccumulate is d = a·b + c of 8 by 8 matrices.
func (g *gpu) multiplyAccumulate(d llvm.Declaration, mask string) {
	var x [3][2]string
	for i := range x {
		x[i] = g.floats(d.Params[i], fmt.Sprint("%a", i))
	}
	sum := g.multiplied(x[0], x[1], x[2], mask)
	_, elem := llvm.Elements(d.Result)
	last := "poison"
	for j, v := range sum {
		if elem != "float" {
			v = g.make("fptrunc float %s to %s", v, elem)
		}
		last = g.make("insertelement %s %s, %s %s, i32 %d", d.Result, last, elem, v, j)
	}
	g.Line("  ret %s %s", d.Result, last)
}

// floats are a thread's two elements of a matrix.
func (g *gpu) floats(typ, matrix string) (p [2]string) {
	_, elem := llvm.Elements(typ)
	for k := range p {
		p[k] = g.make("extractelement %s %s, i32 %d", typ, matrix, k)
		if elem != "float" {
			p[k] = g.make("fpext %s %s to float", elem, p[k])
		}
	}
	return p
}

// multiplied is c = a·b + c of what threads have of matrices. Lane l has the elements in row
// (l>>2 & 4) | (l>>1 & 3) and columns 2·((l>>2 & 2) | (l & 1)) and the next; in a module whose matrices lie as
// mma has them, row l>>2 and columns 2·(l&3) and the next. A lane gets the row of a and the columns of b that its
// elements need from the others; products are added in the order of the inner index. A kernel multiplies a matrix
// by several: what lanes get of it is then the same, and is asked for once, since these shuffles have no effect but
// their result.
func (g *gpu) multiplied(a, b, sum [2]string, mask string) [2]string {
	lane := g.lane()
	rowBits, columnBits := 22, 9 // the bits of a lane that say its row, and its columns
	inRow := func(p int) int { return p&2<<2 | p&1 }
	inColumn := func(k int) int { return k&4<<2 | k&3<<1 }
	if g.module.rows {
		rowBits, columnBits = 28, 3
		inRow = func(p int) int { return p }
		inColumn = func(k int) int { return k << 2 }
	}
	row := g.make("and i32 %s, %d", lane, rowBits)
	column := g.make("and i32 %s, %d", lane, columnBits)
	var left [8]string
	for p := range 4 { // columns 2p and 2p+1 of a
		from := g.make("or i32 %s, %d", row, inRow(p))
		left[2*p], left[2*p+1] = g.given(a[0], mask, from), g.given(a[1], mask, from)
	}
	for k := range 8 { // row k of b
		from := g.make("or i32 %s, %d", column, inColumn(k))
		for j := range 2 {
			sum[j] = g.make("call float @llvm.fma.f32(float %s, float %s, float %s)", left[k], g.given(b[j], mask, from), sum[j])
		}
	}
	return sum
}

// multiplyInOrder is what multiplied makes, of all threads of a warp and several left factors, in a loop, whose text
// is short and needs few registers: it stands where hardly ever anybody comes. Where b is turned, threads have its
// column l>>2 and rows 2·(l&3) and the next. The loop stands behind the block `at`; end is the block behind it.
func (g *gpu) multiplyInOrder(a [][2]string, b [2]string, sums [][2]string, turned bool, at string) (made [][2]string, end string) {
	lane := g.lane()
	g.n++
	loop, end, k, next := fmt.Sprint("loop", g.n), fmt.Sprint("done", g.n), fmt.Sprint("%k", g.n), fmt.Sprint("%next", g.n)
	number := g.n
	sum := func(i, j int, of string) string { return fmt.Sprintf("%%%s%d.%d.%d", of, i, j, number) }
	g.Line("  br label %%%s\n%s:", loop, loop)
	g.Line("  %s = phi i32 [ 0, %%%s ], [ %s, %%%s ]", k, at, next, loop)
	for i := range sums {
		for j := range 2 {
			g.Line("  %s = phi float [ %s, %%%s ], [ %s, %%%s ]", sum(i, j, "before"), sums[i][j], at, sum(i, j, "after"), loop)
		}
	}
	pair := g.make("lshr i32 %s, 1", k)
	odd := g.make("icmp ne i32 %s, 0", g.make("and i32 %s, 1", k))
	one := func(v [2]string) string { return g.make("select i1 %s, float %s, float %s", odd, v[1], v[0]) }
	rowBits, columnBits, inRow, inColumn := 28, 3, pair, g.make("shl i32 %s, 2", k)
	if !g.module.rows {
		rowBits, columnBits = 22, 9
		inRow = g.make("or i32 %s, %s", g.make("shl i32 %s, 2", g.make("and i32 %s, 2", pair)), g.make("and i32 %s, 1", pair))
		inColumn = g.make("or i32 %s, %s", g.make("shl i32 %s, 2", g.make("and i32 %s, 4", k)), g.make("shl i32 %s, 1", g.make("and i32 %s, 3", k)))
	}
	row := g.make("or i32 %s, %s", g.make("and i32 %s, %d", lane, rowBits), inRow)
	column := g.make("and i32 %s, %d", lane, columnBits)
	var right [2]string
	for j := range right {
		if turned {
			from := g.make("or i32 %s, %s", g.make("or i32 %s, %d", g.make("shl i32 %s, 3", column), j<<2), pair)
			right[j] = g.given(one(b), allThreads, from)
		} else {
			right[j] = g.given(b[j], allThreads, g.make("or i32 %s, %s", column, inColumn))
		}
	}
	for i := range sums {
		left := g.given(one(a[i]), allThreads, row)
		var of [2]string
		for j := range of {
			of[j] = sum(i, j, "after")
			g.Line("  %s = call float @llvm.fma.f32(float %s, float %s, float %s)", of[j], left, right[j], sum(i, j, "before"))
		}
		made = append(made, of)
	}
	g.Line("  %s = add i32 %s, 1", next, k)
	g.Line("  br i1 %s, label %%%s, label %%%s, !llvm.loop !%d\n%s:", g.make("icmp ult i32 %s, 8", next), loop, end, rolledLoop, end)
	return made, end
}

// given returns the value of the float v in another lane. The shuffle is marked as free of side effects, so that
// LLVM keeps one of two equal ones.
func (g *gpu) given(v, mask, lane string) string {
	if mask == allThreads {
		return g.make(`call float asm "shfl.sync.idx.b32 $0, $1, $2, 31, -1;", "=f,f,r"(float %s, i32 %s) #992`, v, lane)
	}
	return g.make(`call float asm "shfl.sync.idx.b32 $0, $1, $2, 31, $3;", "=f,f,r,r"(float %s, i32 %s, i32 %s) #992`, v, lane, mask)
}
