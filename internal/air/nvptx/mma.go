package nvptx

import (
	"fmt"
	"slices"
	"strings"
)

// The fragments of mma.sync (PTX ISA, "Matrix fragments for mma"): lane l holds two elements of each matrix of 8 by 8
// elements of 16 bits, in one register. Of the left factor and of the result they are those in row l>>2 and columns
// 2·(l&3) and 2·(l&3)+1, of the right factor those in column l>>2 and rows 2·(l&3) and 2·(l&3)+1. m16n8k8 takes two
// left factors, one above the other; m16n8k16 adds the products of two such pairs with two right factors.
//
// mma.sync multiplies factors in f16 or bf16 exactly. A factor in f32 is split into a sum of three in bf16,
//
//	2^16 · x = high + middle + low
//
// each of which is the remainder rounded to nearest. The split is exact for every x, small ones too, as long as high
// does not overflow. Of the nine products of parts, low·low and low·middle are left out: together they are at most
// 2^-23 of x·y. The six others are added from the smallest to the largest, so that only the last mma rounds.
//
// The sum of an mma is not exact: it aligns the exact products with the largest one and truncates them. GPUs of compute
// capability 8.0 lose most: they add nine numbers at a time, and truncate 24 bits below the highest bit of the largest.
// That is an error of 9 · 2^-24 of Σ|x·y| twice for an inner index of 16, and 2 · 2^-24 each time for a result of
// 24 bits. With the products left out the error is less than 25 · 2^-24 · Σ|x·y| ([MMATerms] has some more). Sums are
// added to c, rounded to nearest.
//
// Where a sum is not finite, since a factor is not or since something overflows, the element is computed by fma in the
// order of the inner index instead. Whether that can happen is decided by the factors, before they are multiplied, so
// that no registers are kept for it: if the squares of all high parts that a thread holds add up to less than 2^120,
// each part is at most 2^60, and products of 16 times six parts stay below 2^127. If this does not hold for any thread,
// all threads of the warp take a branch that looks at each sum.
const (
	splitScale = "6.553600e+04"       // 2^16
	splitBack  = "0x3DF0000000000000" // 2^-32
	// What takes a bf16, two to a register, from 2^120 on to where its sign is.
	squaresOver = 0x0480_0480
)

// factor is a register of a matrix, two elements of 16 bits, as mma takes it; turned says that what threads have
// of a right factor are elements of a row.
func (g *gpu) factor(r string, turned bool) string {
	if !g.module.rows {
		// Lane abcde of mma's has what lane abdce of AIR's rows has: see multiplied.
		r = g.make(`call i32 asm "shfl.sync.idx.b32 $0, $1, $2, 31, -1;", "=r,r,r"(i32 %s, i32 %s) #992`, r, g.airLane(g.lane()))
	}
	if turned {
		r = g.make(`call i32 asm "movmatrix.sync.aligned.m8n8.trans.b16 $0, $1;", "=r,r"(i32 %s) #992`, r)
	}
	return r
}

// airLane is the lane that has, in AIR's order, what a lane has in mma's: row 4·b4 + 2·b2 + b1 and column
// pair 2·b3 + b0 of a lane's bits there are 4·b4 + 2·b3 + b2 and 2·b1 + b0 here.
func (g *gpu) airLane(lane string) string {
	kept := g.make("and i32 %s, 17", lane)
	up := g.make("shl i32 %s, 2", g.make("and i32 %s, 2", lane))
	down := g.make("lshr i32 %s, 1", g.make("and i32 %s, 12", lane))
	return g.make("or i32 %s, %s", kept, g.make("or i32 %s, %s", up, down))
}

// mmaLane is the other way round.
func (g *gpu) mmaLane(lane string) string {
	kept := g.make("and i32 %s, 17", lane)
	down := g.make("lshr i32 %s, 2", g.make("and i32 %s, 8", lane))
	up := g.make("shl i32 %s, 1", g.make("and i32 %s, 6", lane))
	return g.make("or i32 %s, %s", kept, g.make("or i32 %s, %s", up, down))
}

// scaled are two floats of a factor times 2^16, and high the high parts of them, two bf16 in a register.
func (g *gpu) scaled(in [2]string) (scaled [2]string, high string) {
	for k := range scaled {
		scaled[k] = g.make("fmul float %s, "+splitScale, in[k])
	}
	return scaled, g.nearest(scaled)
}

// nearest are two floats as bf16.
func (g *gpu) nearest(in [2]string) string {
	return g.make(`call i32 asm "cvt.rn.bf16x2.f32 $0, $1, $2;", "=r,f,f"(float %s, float %s) #993`, in[1], in[0])
}

// split are the three parts of two floats that are scaled, each two bf16 in a register, of which the first is known.
func (g *gpu) split(left [2]string, high string) []string {
	regs := []string{high}
	for len(regs) < 3 {
		r := regs[len(regs)-1]
		part := [2]string{g.make("shl i32 %s, 16", r), g.make("and i32 %s, -65536", r)}
		for k := range left {
			left[k] = g.make("fsub float %s, %s", left[k], g.make("bitcast i32 %s to float", part[k]))
		}
		regs = append(regs, g.nearest(left))
	}
	return regs
}

// sumType is what sumBody's function returns: a thread's elements of the products.
func sumType(rows int) string {
	return "{ " + strings.TrimSuffix(strings.Repeat("float, ", 2*rows), ", ") + " }"
}

// partsOf is how many registers a factor takes.
func partsOf(elem string) int {
	if elem == "float" {
		return 3
	}
	return 1
}

// sumBody is the function that adds up the products of left factors, in so many rows, with as many right ones
// below each other as depth says.
func (m *gpuModule) sumBody(elem string, rows, depth int) string {
	name := fmt.Sprintf("mlxc.sum.%s.%d.%d", elem, rows, depth)
	(&gpu{module: m}).once(name, func(g *gpu) { g.sum(name, elem, rows, depth, g.module.rows) })
	return name
}

// sum writes it. What threads have of the result lies as mma has it, or as matrices do in this module.
func (g *gpu) sum(name, elem string, rows, depth int, asMMA bool) {
	parts := partsOf(elem)
	left := func(k, r, p int) string { return fmt.Sprintf("%%a%d.%d.%d", k, r, p) }
	var params []string
	for k := range depth {
		for r := range rows {
			for p := range parts {
				params = append(params, "i32 "+left(k, r, p))
			}
		}
		for p := range parts {
			params = append(params, fmt.Sprintf("i32 %%b%d.%d", k, p))
		}
	}
	g.Line("define internal %s @%s(%s) convergent alwaysinline nounwind {", sumType(rows), name, strings.Join(params, ", "))
	sum := [4]string{"0.0", "0.0", "0.0", "0.0"}
	type which struct{ a, b int }
	order := []which{{0, 0}}
	if parts > 1 {
		order = []which{{2, 0}, {0, 2}, {1, 1}, {1, 0}, {0, 1}, {0, 0}}
	}
	for _, w := range order {
		var args []string
		for k := range depth {
			for r := range 2 {
				if r < rows {
					args = append(args, "i32 "+left(k, r, w.a))
				} else {
					args = append(args, "i32 0")
				}
			}
		}
		for k := range depth {
			args = append(args, fmt.Sprintf("i32 %%b%d.%d", k, w.b))
		}
		for _, s := range sum {
			args = append(args, "float "+s)
		}
		places := "{$4, $5}, {$6}, {$7, $8, $9, $10}"
		if depth == 2 {
			places = "{$4, $5, $6, $7}, {$8, $9}, {$10, $11, $12, $13}"
		}
		typ := map[string]string{"half": "f16", "bfloat": "bf16", "float": "bf16"}[elem]
		all := g.make(`call { float, float, float, float } asm "mma.sync.aligned.m16n8k%[1]d.row.col.f32.%[2]s.%[2]s.f32 {$0, $1, $2, $3}, %[3]s;", "=f,=f,=f,=f%[4]s,f,f,f,f"(%[5]s) #992`,
			8*depth, typ, places, strings.Repeat(",r", 3*depth), strings.Join(args, ", "))
		for i := range sum {
			sum[i] = g.make("extractvalue { float, float, float, float } %s, %d", all, i)
		}
	}
	from, result := "", "poison"
	if !asMMA {
		from = g.mmaLane(g.lane())
	}
	for i := range 2 * rows {
		if from != "" {
			sum[i] = g.given(sum[i], allThreads, from)
		}
		result = g.make("insertvalue %s %s, float %s, %d", sumType(rows), result, sum[i], i)
	}
	g.Line("  ret %s %s\n}", sumType(rows), result)
}

// summed calls sumBody's function and takes its result apart. An argument is a register of a factor.
func (g *gpu) summed(elem string, rows, depth int, args []string) (values []string) {
	all := g.make("call %s @%s(%s) #990", sumType(rows), g.module.sumBody(elem, rows, depth), strings.Join(args, ", "))
	for i := range 2 * rows {
		values = append(values, g.make("extractvalue %s %s, %d", sumType(rows), all, i))
	}
	return values
}

// productShape is one of the products that a function makes: matrices by the numbers of its parameters.
type productShape struct {
	a     [][]int // by step of the inner index and row
	b     []int   // by step
	flips string  // for each step, r where threads have elements of a column of b, else l
	c     []int   // by row: a parameter, or a result from −1 downwards
}

func (p *productShape) rows() int { return len(p.c) }

// productsBody is the function that makes products, one after another, of factors and of matrices that they are
// added to. turned has a letter for each factor: t where threads have the elements of a row of a right one.
func (m *gpuModule) productsBody(elem, of, turned string, sums int, all []productShape) string {
	name := fmt.Sprintf("mlxc.products.%s.%s.%s.%d", elem, of, turned, sums)
	for _, p := range all {
		name += fmt.Sprintf("_%s", p.flips)
		for _, n := range slices.Concat(append(slices.Clone(p.a), p.b, p.c)...) {
			name += strings.Replace(fmt.Sprintf(".%d", n), "-", "r", 1)
		}
	}
	for _, p := range all { // which are to stand before it
		m.sumBody(elem, p.rows(), len(p.b))
	}
	(&gpu{module: m}).once(name, func(g *gpu) { g.products(name, elem, of, turned, sums, all) })
	return name
}

func (g *gpu) products(name, elem, of, turned string, sums int, all []productShape) {
	pair := "<2 x " + of + ">"
	var params []string
	for n := range turned {
		params = append(params, fmt.Sprintf("<2 x %s> %%f%d", elem, n))
	}
	for n := range sums {
		params = append(params, fmt.Sprintf("%s %%c%d", pair, n))
	}
	count := 0
	for _, p := range all {
		count += p.rows()
	}
	result := productsType(of, count)
	g.Line("define internal %s @%s(%s) convergent alwaysinline nounwind {", result, name, strings.Join(params, ", "))
	before := make([][2]string, sums) // what sums begin with
	for n := range before {
		before[n] = g.floats(pair, fmt.Sprintf("%%c%d", n))
	}
	// sum adds up the products of a pair, of factors that are there as registers.
	sum := func(p *productShape, registers func(n int) []string) []string {
		var args []string
		for k, b := range p.b {
			for _, n := range append(slices.Clone(p.a[k]), b) {
				for _, r := range registers(n) {
					args = append(args, "i32 "+r)
				}
			}
		}
		return g.summed(elem, p.rows(), len(p.b), args)
	}
	// each calls do with what is to be added to a row of a pair, and what that is added to.
	var made [][2]string
	each := func(do func(p *productShape, row int, sum, c [2]string) [2]string, registers func(n int) []string, begin func(p *productShape)) (out [][2]string) {
		for i := range all {
			p := &all[i]
			begin(p)
			values := sum(p, registers)
			for r, n := range p.c {
				c := before[max(n, 0)]
				if n < 0 {
					c = out[-1-n]
				}
				out = append(out, do(p, r, [2]string{values[2*r], values[2*r+1]}, c))
			}
		}
		return out
	}
	nothing := func(*productShape) {}
	known := make([][]string, len(turned)) // the registers of each factor
	registers := func(n int) []string { return known[n] }
	if elem != "float" {
		for n := range turned {
			known[n] = []string{g.factor(g.make("bitcast <2 x %s> %%f%d to i32", elem, n), turned[n] == 't')}
		}
		made = each(func(_ *productShape, _ int, sum, c [2]string) [2]string {
			return [2]string{g.make("fadd float %s, %s", c[0], sum[0]), g.make("fadd float %s, %s", c[1], sum[1])}
		}, registers, nothing)
	} else {
		added := func(_ *productShape, _ int, sum, c [2]string) [2]string {
			for j := range c {
				c[j] = g.make("call float @llvm.fma.f32(float %s, float %s, float %s)", sum[j], splitBack, c[j])
			}
			return c
		}
		parts := func(left [2]string, high string, turned bool) []string {
			regs := g.split(left, high)
			for i := range regs {
				regs[i] = g.factor(regs[i], turned)
			}
			return regs
		}
		scaled, high := make([][2]string, len(turned)), make([]string, len(turned))
		for n := range turned {
			scaled[n], high[n] = g.scaled(g.floats("<2 x float>", fmt.Sprintf("%%f%d", n)))
		}
		g.Line("  br i1 %s, label %%slow, label %%fast\nfast:", g.large(high))
		for n := range turned {
			known[n] = parts(scaled[n], high[n], turned[n] == 't')
		}
		made = each(added, registers, nothing)
		g.Line("  br label %%end\nslow:")
		// All is done anew for each pair, of values of which no compiler knows that they are those of above, and
		// in loops: what this branch needs would otherwise take registers from the other one.
		var own map[int][2]string
		var carefully [][2]string
		at := "slow" // the block that is written
		var exact [][2]string
		slow := each(func(p *productShape, row int, sum, c [2]string) [2]string {
			if row == 0 {
				exact = nil
				for _, n := range p.c {
					if n < 0 {
						exact = append(exact, carefully[-1-n])
					} else {
						exact = append(exact, before[n])
					}
				}
				for k, b := range p.b {
					var left [][2]string
					for _, n := range p.a[k] {
						left = append(left, own[n])
					}
					exact, at = g.multiplyInOrder(left, own[b], exact, p.flips[k] == 'r', at)
				}
			}
			made := added(p, row, sum, c)
			for j := range made {
				finite := g.make("fcmp olt float %s, 0x7FF0000000000000", g.make("call float @llvm.fabs.f32(float %s)", sum[j]))
				made[j] = g.make("select i1 %s, float %s, float %s", finite, made[j], exact[row][j])
			}
			carefully = append(carefully, made)
			return made
		}, registers, func(p *productShape) {
			own = map[int][2]string{}
			for _, n := range slices.Concat(append(slices.Clone(p.a), p.b)...) {
				if _, ok := own[n]; ok {
					continue
				}
				v := g.floats("<2 x float>", fmt.Sprintf("%%f%d", n))
				for j := range v {
					v[j] = g.make(`call float asm sideeffect "mov.b32 $0, $1;", "=f,f"(float %s) #990`, v[j])
				}
				own[n] = v
				left, high := g.scaled(v)
				known[n] = parts(left, high, turned[n] == 't')
			}
		})
		g.Line("  br label %%end\nend:")
		for i := range made {
			for j := range 2 {
				made[i][j] = g.make("phi float [ %s, %%fast ], [ %s, %%%s ]", made[i][j], slow[i][j], at)
			}
		}
	}
	last := "poison"
	for i, m := range made {
		v := "poison"
		for j, e := range m {
			if of != "float" {
				e = g.make("fptrunc float %s to %s", e, of)
			}
			v = g.make("insertelement %s %s, %s %s, i32 %d", pair, v, of, e, j)
		}
		last = g.make("insertvalue %s %s, %s %s, %d", result, last, pair, v, i)
	}
	g.Line("  ret %s %s\n}", result, last)
}

// large is whether any thread of the warp has a factor so large that a sum may be no finite number: it asks for
// the squares of their high parts, in two sums so that an addition need not wait for the one before.
func (g *gpu) large(high []string) string {
	squares := [2]string{"0", "0"}
	for i, h := range high {
		squares[i%2] = g.make(`call i32 asm "fma.rn.bf16x2 $0, $1, $1, $2;", "=r,r,r"(i32 %s, i32 %s) #993`, h, squares[i%2])
	}
	for i, s := range squares { // a NaN has no sign that is known
		squares[i] = g.make("add i32 %s, %d", g.make("and i32 %s, %d", s, 0x7fff7fff), squaresOver)
	}
	over := g.make("or i32 %s, %s", squares[0], squares[1])
	some := g.make("icmp ne i32 %s, 0", g.make("and i32 %s, %d", over, -0x7fff8000))
	return g.make("call i1 @llvm.nvvm.vote.any.sync(i32 -1, i1 %s) #990", some)
}

// productsType is what productsBody's function returns.
func productsType(of string, n int) string {
	return "{ " + strings.TrimSuffix(strings.Repeat("<2 x "+of+">, ", n), ", ") + " }"
}
