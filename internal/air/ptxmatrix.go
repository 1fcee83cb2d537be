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
			m.whole = m.whole && narrowMatrices(d)
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

// narrowMatrices reports whether the matrices of a function have a type of two elements.
func narrowMatrices(d declaration) bool {
	of := d.params
	switch {
	case isMatrixLoad(d):
		of = []string{d.result}
	case alone(d) && d.result == "void":
		of = d.params[:min(1, len(d.params))]
	case alone(d):
		of = []string{d.result}
	default:
		of = append([]string{d.result}, of...)
	}
	return len(of) > 0 && !slices.ContainsFunc(of, func(t string) bool { return !matrixPair.MatchString(t) })
}

// isMatrixLoad reports whether a function loads a matrix.
func isMatrixLoad(d declaration) bool {
	return strings.HasPrefix(strings.Trim(d.name, `"`), "air.simdgroup_matrix_8x8_load.") && len(d.params) == 4
}

// multiplies reports whether tensor cores make the products of a function: both factors have one type.
func (m MMA) multiplies(d declaration) bool {
	if !multiplies(d) || !narrowMatrices(d) {
		return false
	}
	_, a := elements(d.params[0])
	return d.params[0] == d.params[1] && (a != "float" || m == AllMMA)
}

// byMMA has the products of a block made by mma, in which all threads of a warp take part. A product's place
// is that of the last one that it is joined with.
func (g *gpuModule) byMMA(b *block, declared map[string]declaration, flow *matrixFlow, which func(*block, declaration) bool) {
	products, used, read := productsOf(b, declared, which)
	if len(products) == 0 {
		return
	}
	gone, at := map[int]bool{}, map[int][]string{}
	for _, p := range products {
		gone[p.line] = true
	}
	w := &gpuText{module: g, flow: flow}
	var open [][]chain // pairs that are not multiplied yet: all threads are asked once whether their factors are small
	flush := func() {
		if len(open) > 0 {
			line := lineOf(open[len(open)-1])
			at[line] = append(at[line], w.products(open)...)
		}
		open = nil
	}
	for _, pair := range pairsOf(chainsOf(products, flow), used) {
		uses := read
		if pair[0].types[2] != "float" { // which is rounded before it is added to
			uses = used
		}
		alike := func(p []chain) bool { return p[0].types == pair[0].types }
		if len(open) == maxOpen || slices.ContainsFunc(open, func(p []chain) bool { return !alike(p) || neededBy(p, pair, uses) }) {
			flush()
		}
		open = append(open, pair)
		if pair[0].types[0] != "float" { // nobody has to be asked
			flush()
		}
	}
	flush()
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

// maxOpen is how many pairs are multiplied together at most, each of which has up to four registers.
const maxOpen = 8

// lineOf is where the last product of a pair stands.
func lineOf(pair []chain) int { return pair[len(pair)-1].line }

// neededBy reports whether what is made of a pair is needed before or by another one's factors. That the other is
// added to it is no need: that comes later.
func neededBy(made, pair []chain, read map[string]int) bool {
	for _, c := range made {
		if first, ok := read[c.d]; ok && first <= lineOf(pair) {
			return true
		}
	}
	return false
}

// productsOf are the products of a block that mma makes, as they stand, and the line in which a value is first
// used, and first other than as what such a product is added to.
func productsOf(b *block, declared map[string]declaration, which func(*block, declaration) bool) (out []product, used, read map[string]int) {
	used, read = map[string]int{}, map[string]int{}
	note := func(in map[string]int, v string, line int) {
		if _, ok := in[v]; !ok {
			in[v] = line
		}
	}
	for i, l := range b.lines {
		counted(1)
		if c, d, ok := callOf(l, declared); ok && which(b, d) {
			p := product{line: i, a: c.args[0], b: c.args[1], c: c.args[2], d: c.result}
			for k := range p.types {
				_, p.types[k] = elements(d.params[k])
			}
			out = append(out, p)
			note(used, p.c, i)
			for _, v := range []string{p.a, p.b} {
				note(used, v, i)
				note(read, v, i)
			}
			continue
		}
		result := ""
		if m := assigned.FindStringSubmatch(l); m != nil {
			result = m[1]
		}
		for _, v := range valueToken.FindAllString(l, -1) {
			if v != result {
				note(used, v, i)
				note(read, v, i)
			}
		}
	}
	return out, used, read
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
	out    []string
}

func (w *gpuText) line(format string, args ...any) {
	w.out = append(w.out, "  "+fmt.Sprintf(format, args...))
}

// value is a new name.
func (w *gpuText) value(of string) string {
	w.module.mma++
	return fmt.Sprint("%mlxc.", of, ".", w.module.mma)
}

// products makes the products of pairs of one type.
func (w *gpuText) products(pairs [][]chain) []string {
	w.out = nil
	elem, of := pairs[0][0].types[0], pairs[0][0].types[2]
	var factors, sums, results []string
	turned := "" // a letter for each factor
	numbers := map[string]int{}
	factor := func(v string, right bool) int {
		letter := "n"
		if right && !w.flow.right[v] {
			letter = "t"
		}
		n, ok := numbers[v+letter]
		if !ok {
			n = len(factors)
			numbers[v+letter] = n
			factors = append(factors, fmt.Sprintf("<2 x %s> %s", elem, v))
			turned += letter
		}
		return n
	}
	added := map[string]int{} // by the name of what is added to, or made
	var all []productShape
	for _, pair := range pairs {
		p := productShape{}
		for k, b := range pair[0].b {
			var rows []int
			for _, c := range pair {
				rows = append(rows, factor(c.a[k], false))
			}
			p.a, p.b = append(p.a, rows), append(p.b, factor(b, true))
			p.flips += map[bool]string{true: "r", false: "l"}[w.flow.right[b]]
		}
		for _, c := range pair {
			n, ok := added[c.c]
			if !ok {
				n = len(sums)
				added[c.c] = n
				sums = append(sums, fmt.Sprintf("<2 x %s> %s", of, c.c))
			}
			p.c = append(p.c, n)
		}
		for _, c := range pair {
			results = append(results, c.d)
			added[c.d] = -len(results)
		}
		all = append(all, p)
	}
	name, result := w.value("products"), productsType(of, len(results))
	w.line("%s = call %s @%s(%s) #990", name, result, w.module.productsBody(elem, of, turned, len(sums), all), strings.Join(append(factors, sums...), ", "))
	for i, d := range results {
		w.line("%s = extractvalue %s %s, %d", d, result, name, i)
	}
	return w.out
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
