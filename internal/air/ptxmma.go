package air

import (
	"fmt"
	"strings"
)

// What mma.sync does with matrices (PTX ISA, "Matrix fragments for mma"): of 8 by 8 elements of 16 bits, lane
// l has in one register those in row l>>2 and columns 2·(l&3) and the next, of the left factor and of the
// result; of the right factor those in column l>>2 and rows 2·(l&3) and the next. m16n8k8 takes two left
// factors, one above the other, and m16n8k16 adds the products of two such with two right factors.
//
// Factors in f16 or bf16 are what it multiplies, exactly. One in f32 is the sum of three in bf16,
//
//	2^16 · x = high + middle + low
//
// each the nearest to what is left of it. That is exact for every x, small ones too, as long as high does not
// overflow. Of the nine products low with low and low with middle are left out: of x·y they are at
// most 2^-23. The six others are added from the least on, so that what is lost is lost of the last mma.
//
// An mma loses when it adds: it aligns exact products at the greatest and cuts them off. On GPUs of compute
// capability 8.0, which lose most, it adds nine numbers at a time, and cuts 24 bits below the highest bit of the
// greatest: 9 · 2^-24 of Σ|x·y| twice for an inner index of 16, and 2 · 2^-24 each time for a result of
// 24 bits. With what is left out that is less than 25 · 2^-24 · Σ|x·y| ([MMATerms] has some more). Sums are
// added to c, rounded to nearest.
//
// Where such a sum is no finite number, an element becomes what fma in the order of the inner index
// makes of it: a factor was no finite number, or so large that something overflows.
const (
	splitScale = "6.553600e+04"       // 2^16
	splitBack  = "0x3DF0000000000000" // 2^-32
)

// factorBody is the function that makes of a matrix what mma takes as a factor. turned says that what threads
// have of a right factor are elements of a row.
func (m *gpuModule) factorBody(elem string, turned bool) string {
	name := fmt.Sprintf("mlxc.factor.%s.%v", elem, turned)
	(&gpu{module: m}).once(name, func(g *gpu) {
		n := partsOf(elem)
		g.line("define internal %s @%s(<2 x %s> %%in) convergent alwaysinline nounwind {", registers(n), name, elem)
		var regs []string
		if elem == "float" {
			regs = g.split("%in")
		} else {
			regs = []string{g.make("bitcast <2 x %s> %%in to i32", elem)}
		}
		last := "poison"
		from := ""
		if !m.rows {
			lane := g.lane()
			// Lane abcde of mma's has what lane abdce of AIR's rows has: see multiplied.
			from = g.airLane(lane)
		}
		for i, r := range regs {
			if from != "" {
				r = g.make(`call i32 asm "shfl.sync.idx.b32 $0, $1, $2, 31, -1;", "=r,r,r"(i32 %s, i32 %s) #992`, r, from)
			}
			if turned {
				r = g.make(`call i32 asm "movmatrix.sync.aligned.m8n8.trans.b16 $0, $1;", "=r,r"(i32 %s) #992`, r)
			}
			last = g.make("insertvalue %s %s, i32 %s, %d", registers(n), last, r, i)
		}
		g.line("  ret %s %s\n}", registers(n), last)
	})
	return name
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

// split are the three parts of two floats, each two bf16 in a register.
func (g *gpu) split(in string) (regs []string) {
	var left [2]string
	for k := range left {
		left[k] = g.make("fmul float %s, "+splitScale, g.make("extractelement <2 x float> %s, i32 %d", in, k))
	}
	for i := range 3 {
		r := g.make(`call i32 asm "cvt.rn.bf16x2.f32 $0, $1, $2;", "=r,f,f"(float %s, float %s) #993`, left[1], left[0])
		regs = append(regs, r)
		if i == 2 {
			break
		}
		part := [2]string{g.make("shl i32 %s, 16", r), g.make("and i32 %s, -65536", r)}
		for k := range left {
			left[k] = g.make("fsub float %s, %s", left[k], g.make("bitcast i32 %s to float", part[k]))
		}
	}
	return regs
}

// sumType is what sumBody's function returns: a thread's elements of the products, and of float whether one of
// them is no finite number.
func sumType(elem string, rows int) string {
	t := "{ " + strings.TrimSuffix(strings.Repeat("float, ", 2*rows), ", ")
	if elem == "float" {
		t += ", i1"
	}
	return t + " }"
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
	(&gpu{module: m}).once(name, func(g *gpu) { g.sum(name, elem, rows, depth) })
	return name
}

func (g *gpu) sum(name, elem string, rows, depth int) {
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
	g.line("define internal %s @%s(%s) convergent alwaysinline nounwind {", sumType(elem, rows), name, strings.Join(params, ", "))
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
	from, all, last := "", "", "poison"
	if !g.module.rows {
		from = g.mmaLane(g.lane())
	}
	for i := range 2 * rows {
		if from != "" {
			sum[i] = g.given(sum[i], allThreads, from)
		}
		if all = sum[i]; i > 0 {
			all = g.make("fadd float %s, %s", last, sum[i])
		}
		last = all
	}
	result := "poison"
	for i := range 2 * rows {
		result = g.make("insertvalue %s %s, float %s, %d", sumType(elem, rows), result, sum[i], i)
	}
	if parts > 1 {
		large := g.make("fcmp uge float %s, 0x7FF0000000000000", g.make("call float @llvm.fabs.f32(float %s)", all))
		result = g.make("insertvalue %s %s, i1 %s, %d", sumType(elem, rows), result, large, 2*rows)
	}
	g.line("  ret %s %s\n}", sumType(elem, rows), result)
}

// addBody is the function that adds to matrices, in so many rows, the sums of their products. flips has a letter
// for each right factor: r where threads have elements of a column of it. Of float its first parameter is
// whether any sum of the warp's threads is no finite number.
func (m *gpuModule) addBody(elem, of string, rows int, flips string) string {
	name := fmt.Sprintf("mlxc.add.%s.%s.%d.%s", elem, of, rows, flips)
	(&gpu{module: m}).once(name, func(g *gpu) { g.add(name, elem, of, rows, flips) })
	return name
}

func (g *gpu) add(name, elem, of string, rows int, flips string) {
	pair := "<2 x " + of + ">"
	split := elem == "float"
	var params []string
	if split {
		params = append(params, "i1 %some")
	}
	sum := func(i int) string { return "%" + fmt.Sprint("sum", i) }
	for i := range 2 * rows {
		params = append(params, "float "+sum(i))
	}
	for r := range rows {
		params = append(params, fmt.Sprintf("%s %%c%d", pair, r))
	}
	for k := 0; split && k < len(flips); k++ {
		for r := range rows {
			params = append(params, fmt.Sprintf("<2 x float> %%a%d.%d", k, r))
		}
		params = append(params, fmt.Sprintf("<2 x float> %%b%d", k))
	}
	result := "{ " + strings.TrimSuffix(strings.Repeat(pair+", ", rows), ", ") + " }"
	g.line("define internal %s @%s(%s) convergent alwaysinline nounwind {", result, name, strings.Join(params, ", "))
	var made [4]string
	var to [2][2]string
	for r := range rows {
		to[r] = g.floats(pair, fmt.Sprintf("%%c%d", r))
		for j, c := range to[r] {
			i := 2*r + j
			if split {
				made[i] = g.make("call float @llvm.fma.f32(float %s, float %s, float %s)", sum(i), splitBack, c)
			} else {
				made[i] = g.make("fadd float %s, %s", c, sum(i))
			}
		}
	}
	if split {
		g.line("  br i1 %%some, label %%slow, label %%end\nslow:")
		slow := made
		for r := range rows {
			c := to[r]
			for k := range flips {
				c = g.multiplied(g.floats("<2 x float>", fmt.Sprintf("%%a%d.%d", k, r)), g.floats("<2 x float>", fmt.Sprintf("%%b%d", k)), c, allThreads, flips[k] == 'r')
			}
			for j := range c {
				i := 2*r + j
				finite := g.make("fcmp olt float %s, 0x7FF0000000000000", g.make("call float @llvm.fabs.f32(float %s)", sum(i)))
				slow[i] = g.make("select i1 %s, float %s, float %s", finite, made[i], c[j])
			}
		}
		g.line("  br label %%end\nend:")
		for i := range 2 * rows {
			made[i] = g.make("phi float [ %s, %%0 ], [ %s, %%slow ]", made[i], slow[i])
		}
	}
	last := "poison"
	for r := range rows {
		v := "poison"
		for j := range 2 {
			e := made[2*r+j]
			if of != "float" {
				e = g.make("fptrunc float %s to %s", e, of)
			}
			v = g.make("insertelement %s %s, %s %s, i32 %d", pair, v, of, e, j)
		}
		last = g.make("insertvalue %s %s, %s %s, %d", result, last, pair, v, r)
	}
	g.line("  ret %s %s\n}", result, last)
}
