package air

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// product is a multiplication of matrices in a block: d = a·b + c.
type product struct {
	line       int // where it stands
	a, b, c, d string
	types      [3]string // of the elements of a, b and of what they are added to
}

// chain is one or two products of a block that are added to each other: d = a[1]·b[1] + (a[0]·b[0] + c).
type chain struct {
	line  int // that of its last product
	a, b  []string
	c, d  string
	types [3]string
}

// matrixFlow is what becomes of the matrices in a kernel: where they come from and go to.
type matrixFlow struct {
	// whole says that no matrix is taken apart: matrices come from functions of matrices and go to such, so
	// that nobody can tell which thread has which element.
	whole bool
	// right are the matrices that are loaded only to be the right factor of products that mma makes.
	right map[string]bool
	uses  map[string]int // how often a value is used
}

var matrixPair = regexp.MustCompile(`^<2 x (?:half|bfloat|float)>$`)

// isMatrixCall reports whether a function is one of matrices.
func isMatrixCall(d declaration) bool { return alone(d) || multiplies(d) }

// newMatrixFlow looks at all that a kernel does with matrices. byMMA says of a block whether products
// of a function are made by mma there.
func newMatrixFlow(blocks []*block, declared map[string]declaration, byMMA func(*block, declaration) bool) *matrixFlow {
	m := &matrixFlow{whole: true, right: map[string]bool{}, uses: map[string]int{}}
	matrices := map[string]bool{}
	type merge struct {
		name string
		of   []string
	}
	var merges []merge          // phis and selects of pairs
	users := map[string][]int{} // the merges that a value goes into
	loads, other := map[string]bool{}, map[string]bool{}
	each := func(see func(b *block, l string)) {
		for _, b := range blocks {
			for _, l := range b.lines {
				see(b, l)
			}
		}
	}
	var found []string
	each(func(_ *block, l string) {
		counted(1)
		if c, d, ok := callOf(l, declared); ok {
			if isMatrixCall(d) && c.result != "" {
				found = append(found, c.result)
				loads[c.result] = isMatrixLoad(d)
			}
			return
		}
		a := assigned.FindStringSubmatch(l)
		if a == nil {
			return
		}
		x := merge{name: a[1]}
		switch {
		case a[2] == "phi" && matrixPair.MatchString(typeOf(a[3])):
			for _, in := range incoming.FindAllStringSubmatch(a[3], -1) {
				x.of = append(x.of, in[1])
			}
		case a[2] == "select" && len(splitTop(a[3])) == 3 && matrixPair.MatchString(typeOf(splitTop(a[3])[1])):
			for _, p := range splitTop(a[3])[1:] {
				x.of = append(x.of, valueOf(p, typeOf(p)))
			}
		default:
			return
		}
		for _, v := range x.of {
			users[v] = append(users[v], len(merges))
		}
		merges = append(merges, x)
	})
	merged := map[string]bool{}
	for len(found) > 0 {
		v := found[len(found)-1]
		found = found[:len(found)-1]
		if matrices[v] {
			continue
		}
		matrices[v] = true
		for _, u := range users[v] {
			counted(1)
			merged[merges[u].name] = true
			found = append(found, merges[u].name)
		}
	}
	matrix := func(v string) bool { return matrices[v] || v == "zeroinitializer" || v == "poison" || v == "undef" }
	for _, x := range merges {
		if merged[x.name] && !slices.ContainsFunc(x.of, func(v string) bool { return !matrix(v) }) {
			continue
		}
		m.whole = m.whole && !merged[x.name]
	}
	each(func(b *block, l string) {
		counted(1)
		c, d, ok := callOf(l, declared)
		if ok && isMatrixCall(d) {
			for i, v := range c.args {
				if !matrixPair.MatchString(d.params[i]) {
					continue
				}
				m.uses[v]++
				m.whole = m.whole && matrix(v)
				if !(i == 1 && byMMA(b, d)) {
					other[v] = true
				}
			}
			return
		}
		a := assigned.FindStringSubmatch(l)
		for _, v := range valueToken.FindAllString(l, -1) {
			if !matrices[v] || a != nil && a[1] == v {
				continue
			}
			m.uses[v]++
			other[v] = true
			m.whole = m.whole && a != nil && merged[a[1]]
		}
	})
	for v, is := range loads {
		if is && m.whole && !other[v] && m.uses[v] > 0 {
			m.right[v] = true
		}
	}
	return m
}

// isMatrixLoad reports whether a function loads a matrix.
func isMatrixLoad(d declaration) bool {
	return strings.HasPrefix(strings.Trim(d.name, `"`), "air.simdgroup_matrix_8x8_load.")
}

// multiplies reports whether tensor cores make the products of a function: both factors have one type.
func (m MMA) multiplies(d declaration) bool {
	if !multiplies(d) {
		return false
	}
	_, a := elements(d.params[0])
	_, b := elements(d.params[1])
	return a == b && (a != "float" || m == AllMMA)
}

// byMMA has the products of a block made by mma, in which all threads of a warp take part. A product's place
// is that of the last one that it is joined with.
func (g *gpuModule) byMMA(b *block, declared map[string]declaration, flow *matrixFlow, which func(*block, declaration) bool) {
	products, used := productsOf(b, declared, which)
	if len(products) == 0 {
		return
	}
	chains := chainsOf(products, flow)
	gone := map[int]bool{}
	at := map[int][]string{}
	for _, p := range products {
		gone[p.line] = true
	}
	w := &gpuText{module: g, flow: flow, parts: map[string]string{}}
	for _, pair := range pairsOf(chains, used) {
		w.out = nil
		w.multiply(pair)
		at[pair[len(pair)-1].line] = w.out
	}
	lines := b.lines[:0:0]
	for i, l := range b.lines {
		if gone[i] {
			lines = append(lines, at[i]...)
			continue
		}
		lines = append(lines, l)
	}
	b.lines = lines
}

// productsOf are the products of a block that mma makes, as they stand, and the line in which a value is first
// used.
func productsOf(b *block, declared map[string]declaration, which func(*block, declaration) bool) (out []product, used map[string]int) {
	used = map[string]int{}
	for i, l := range b.lines {
		counted(1)
		if c, d, ok := callOf(l, declared); ok && which(b, d) {
			p := product{line: i, a: c.args[0], b: c.args[1], c: c.args[2], d: c.result}
			for k := range p.types {
				_, p.types[k] = elements(d.params[k])
			}
			out = append(out, p)
		}
		result := ""
		if m := assigned.FindStringSubmatch(l); m != nil {
			result = m[1]
		}
		for _, v := range valueToken.FindAllString(l, -1) {
			if _, ok := used[v]; !ok && v != result {
				used[v] = i
			}
		}
	}
	return out, used
}

// chainsOf joins each product with the one that alone uses its result, if that is in f32, in twos from the
// first of them on: which are joined depends on nothing but the order in which a matrix is added to.
func chainsOf(products []product, flow *matrixFlow) (out []chain) {
	adds := map[string]int{} // the product that adds to a value
	for i, p := range products {
		adds[p.c] = i
	}
	joined := make([]bool, len(products))
	for i, p := range products {
		if joined[i] {
			continue
		}
		x := chain{line: p.line, a: []string{p.a}, b: []string{p.b}, c: p.c, d: p.d, types: p.types}
		if next, ok := adds[p.d]; ok && p.types[2] == "float" && flow.uses[p.d] == 1 && products[next].types == p.types && products[next].line > p.line {
			q := products[next]
			joined[next] = true
			x.line, x.d, x.a, x.b = q.line, q.d, append(x.a, q.a), append(x.b, q.b)
		}
		out = append(out, x)
	}
	slices.SortFunc(out, func(a, b chain) int { return a.line - b.line })
	return out
}

// pairsOf puts chains with the same right factors in twos, in the order of their last lines: an mma
// multiplies 16 rows.
func pairsOf(chains []chain, used map[string]int) (out [][]chain) {
	open := map[string]int{} // pairs of one, by their right factors
	for _, x := range chains {
		key := fmt.Sprint(x.b, x.types)
		if i, ok := open[key]; ok {
			first, is := used[out[i][0].d]
			delete(open, key)
			if !is || first > x.line {
				out[i] = append(out[i], x)
				continue
			}
		}
		open[key] = len(out)
		out = append(out, []chain{x})
	}
	return out
}

// gpuText writes lines of the kernel.
type gpuText struct {
	module *gpuModule
	flow   *matrixFlow
	parts  map[string]string // by the matrix and which factor it is
	out    []string
}

func (w *gpuText) line(format string, args ...any) {
	w.out = append(w.out, "  "+fmt.Sprintf(format, args...))
}

// factor is a matrix as mma takes it: registers, each of which has two elements.
func (w *gpuText) factor(v, elem string, right bool) (regs []string) {
	turned := right && !w.flow.right[v]
	n := 1
	if elem == "float" {
		n = 3
	}
	key := fmt.Sprint(v, right)
	name, ok := w.parts[key]
	if !ok {
		w.module.mma++
		name = fmt.Sprint("%mlxc.factor.", w.module.mma)
		if !strings.HasPrefix(v, "%") {
			key = "" // a constant has any type
		}
		w.parts[key] = name
		w.line("%s = call %s @%s(<2 x %s> %s) #990", name, registers(n), w.module.factorBody(elem, turned), elem, v)
		for i := range n {
			w.line("%s.%d = extractvalue %s %s, %d", name, i, registers(n), name, i)
		}
	}
	for i := range n {
		regs = append(regs, fmt.Sprintf("i32 %s.%d", name, i))
	}
	return regs
}

// registers is the type of so many registers.
func registers(n int) string {
	return "{ " + strings.TrimSuffix(strings.Repeat("i32, ", n), ", ") + " }"
}

// multiply makes the products of one or two chains.
func (w *gpuText) multiply(pair []chain) {
	x := pair[0]
	elem, of := x.types[0], x.types[2]
	var regs, raw, to []string
	flips := ""
	for k := range x.b {
		for _, c := range pair {
			regs = append(regs, w.factor(c.a[k], elem, false)...)
			raw = append(raw, fmt.Sprintf("<2 x %s> %s", elem, c.a[k]))
		}
		regs = append(regs, w.factor(x.b[k], elem, true)...)
		raw = append(raw, fmt.Sprintf("<2 x %s> %s", elem, x.b[k]))
		flips += map[bool]string{true: "r", false: "l"}[w.flow.right[x.b[k]]]
	}
	for _, c := range pair {
		to = append(to, fmt.Sprintf("<2 x %s> %s", of, c.c))
	}
	args := append(regs, to...)
	if elem == "float" {
		args = append(args, raw...)
	}
	w.module.mma++
	name := fmt.Sprint("%mlxc.product.", w.module.mma)
	result := "{ " + strings.Join(slices.Repeat([]string{"<2 x " + of + ">"}, len(pair)), ", ") + " }"
	w.line("%s = call %s @%s(%s) #990", name, result, w.module.productBody(elem, of, len(pair), flips), strings.Join(args, ", "))
	for i, c := range pair {
		w.line("%s = extractvalue %s %s, %d", c.d, result, name, i)
	}
}

// turnLoads has matrices that are only right factors loaded as mma takes those: a thread gets two elements
// of a column, and not of a row.
func turnLoads(b *block, declared map[string]declaration, flow *matrixFlow) {
	lines := make([]string, 0, len(b.lines))
	for _, l := range b.lines {
		c, d, ok := callOf(l, declared)
		if !ok || !flow.right[c.result] {
			lines = append(lines, l)
			continue
		}
		turned := map[string]string{"true": "false", "false": "true"}[c.args[3]]
		if turned == "" {
			turned = c.result + ".turned"
			lines = append(lines, fmt.Sprintf("  %s = xor i1 %s, true", turned, c.args[3]))
		}
		lines = append(lines, fmt.Sprintf("  %s = call %s @%s(%s %s, %s %s, %s %s, i1 %s)%s", c.result, d.result, c.name,
			d.params[0], c.args[0], d.params[1], c.args[1], d.params[2], c.args[2], turned, c.dbg))
	}
	b.lines = lines
}
