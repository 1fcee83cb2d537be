package nvptx

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/llvm"
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
func isMatrixCall(d llvm.Declaration) bool { return air.Alone(d) || multiplies(d) }

// newMatrixFlow looks at all that a kernel does with matrices. byMMA says of a block whether products
// of a function are made by mma there.
func newMatrixFlow(blocks []*llvm.Block, declared map[string]llvm.Declaration, byMMA func(*llvm.Block, llvm.Declaration) bool) *matrixFlow {
	m := &matrixFlow{whole: true, right: map[string]bool{}, uses: map[string]int{}}
	matrices := map[string]bool{}
	type merge struct {
		name string
		of   []string
	}
	var merges []merge          // phis and selects of pairs
	users := map[string][]int{} // the merges that a value goes into
	loads, other := map[string]bool{}, map[string]bool{}
	each := func(see func(b *llvm.Block, l string)) {
		for _, b := range blocks {
			for _, l := range b.Lines {
				see(b, l)
			}
		}
	}
	var found []string
	each(func(_ *llvm.Block, l string) {
		llvm.Counted(1)
		if c, d, ok := llvm.CallOf(l, declared); ok {
			if isMatrixCall(d) && c.Result != "" {
				found = append(found, c.Result)
				loads[c.Result] = isMatrixLoad(d)
			}
			return
		}
		in := llvm.Read(l)
		if in == nil || !matrixPair.MatchString(in.Type) {
			return
		}
		x := merge{name: in.Result}
		switch in.Op {
		case "phi":
			x.of = in.Values()
		case "select":
			x.of = in.Values()[1:]
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
			llvm.Counted(1)
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
	each(func(b *llvm.Block, l string) {
		llvm.Counted(1)
		c, d, ok := llvm.CallOf(l, declared)
		if ok && isMatrixCall(d) {
			m.whole = m.whole && narrowMatrices(d)
			for i, v := range c.Values() {
				if !matrixPair.MatchString(d.Params[i]) {
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
		result := resultOf(l)
		for _, v := range valueToken.FindAllString(l, -1) {
			if !matrices[v] || v == result {
				continue
			}
			m.uses[v]++
			other[v] = true
			m.whole = m.whole && merged[result]
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
func narrowMatrices(d llvm.Declaration) bool {
	of := d.Params
	switch {
	case isMatrixLoad(d):
		of = []string{d.Result}
	case air.Alone(d) && d.Result == "void":
		of = d.Params[:min(1, len(d.Params))]
	case air.Alone(d):
		of = []string{d.Result}
	default:
		of = append([]string{d.Result}, of...)
	}
	return len(of) > 0 && !slices.ContainsFunc(of, func(t string) bool { return !matrixPair.MatchString(t) })
}

// isMatrixLoad reports whether a function loads a matrix.
func isMatrixLoad(d llvm.Declaration) bool {
	return strings.HasPrefix(strings.Trim(d.Name, `"`), "air.simdgroup_matrix_8x8_load.") && len(d.Params) == 4
}

// multiplies reports whether tensor cores make the products of a function: both factors have one type.
func (m MMA) multiplies(d llvm.Declaration) bool {
	if !multiplies(d) || !narrowMatrices(d) {
		return false
	}
	_, a := llvm.Elements(d.Params[0])
	return d.Params[0] == d.Params[1] && (a != "float" || m == AllMMA)
}

// byMMA has the products of a block made by mma, in which all threads of a warp take part. A product's place
// is that of the last one that it is joined with.
func (g *gpuModule) byMMA(b *llvm.Block, declared map[string]llvm.Declaration, flow *matrixFlow, which func(*llvm.Block, llvm.Declaration) bool) {
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
	lines := b.Lines[:0:0]
	for i, l := range b.Lines {
		if gone[i] {
			lines = append(lines, at[i]...)
			continue
		}
		lines = append(lines, l)
	}
	b.Lines = lines
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

// resultOf is the value that a line makes, or "".
func resultOf(l string) string {
	if in := llvm.Read(l); in != nil {
		return in.Result
	}
	return ""
}

// productsOf are the products of a block that mma makes, as they stand, and the line in which a value is first
// used, and first other than as what such a product is added to.
func productsOf(b *llvm.Block, declared map[string]llvm.Declaration, which func(*llvm.Block, llvm.Declaration) bool) (out []product, used, read map[string]int) {
	used, read = map[string]int{}, map[string]int{}
	note := func(in map[string]int, v string, line int) {
		if _, ok := in[v]; !ok {
			in[v] = line
		}
	}
	for i, l := range b.Lines {
		llvm.Counted(1)
		if c, d, ok := llvm.CallOf(l, declared); ok && which(b, d) {
			p := product{line: i, a: c.Values()[0], b: c.Values()[1], c: c.Values()[2], d: c.Result}
			for k := range p.types {
				_, p.types[k] = llvm.Elements(d.Params[k])
			}
			out = append(out, p)
			note(used, p.c, i)
			for _, v := range []string{p.a, p.b} {
				note(used, v, i)
				note(read, v, i)
			}
			continue
		}
		result := resultOf(l)
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
func turnLoads(b *llvm.Block, declared map[string]llvm.Declaration, flow *matrixFlow) {
	lines := make([]string, 0, len(b.Lines))
	for _, l := range b.Lines {
		c, d, ok := llvm.CallOf(l, declared)
		if !ok || !flow.right[c.Result] {
			lines = append(lines, l)
			continue
		}
		turned := map[string]string{"true": "false", "false": "true"}[c.Values()[3]]
		if turned == "" {
			turned = c.Result + ".turned"
			lines = append(lines, fmt.Sprintf("  %s = xor i1 %s, true", turned, c.Values()[3]))
		}
		lines = append(lines, fmt.Sprintf("  %s = call %s @%s(%s %s, %s %s, %s %s, i1 %s)%s", c.Result, d.Result, d.Name,
			d.Params[0], c.Values()[0], d.Params[1], c.Values()[1], d.Params[2], c.Values()[2], turned, c.Place))
	}
	b.Lines = lines
}
