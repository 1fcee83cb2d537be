package main

// matVecQ is the product with rows of so many bits, in units of 32 weights, the least group. A row has the same sum,
// to the bit, wherever it stands among the n.
func matVecQ(bits int) func(m machine) {
	return func(m machine) {
		y, w, scales, biases, n := m.parked("y"), m.arg("w"), m.arg("scales"), m.arg("biases"), m.arg("n")
		bytes, group := m.arg("k"), m.arg("group")
		groups := m.quotient(bytes, group)
		m.free(group)
		m.scale(bytes, bits, 3)
		m.scale(groups, 4, 0)
		p := &product{m, m.quantized(bits), w, scales, biases, m.strides(bytes, 4), m.strides(groups, 4)}
		for _, rows := range []int{4, 1} {
			m.loop(n, rows, func() {
				sums := m.zeros(rows)
				m.scope(func() { p.weights(sums) })
				m.scope(func() { p.addBiases(sums) })
				m.sums(sums)
				m.storeLanes(y, sums[0], rows)
			})
		}
		m.end()
	}
}

// A product is what the rows have in common.
type product struct {
	machine
	quantized
	w, scales, biases reg     // of the next rows
	bytes, groups     strides // of w, and of scales and biases, from one row to the next
}

// weights adds the products with the next rows, a sum for each, and each unit's times the scale of its group.
func (p *product) weights(sums []vec) {
	rows := len(sums)
	x := p.machine.stream("x")
	var ahead reg
	if rows > 1 {
		ahead = p.ahead(p.w)
	}
	w := p.next(p.w, p.bytes, rows)
	p.walk(p.scales, p.groups, rows, 1, func(s *stream, off reg) {
		if rows > 1 {
			p.fetchRows(p.scales, off)
			p.fetchRows(p.biases, off)
		}
		scales, left := p.scalars(s), p.arg("group")
		p.repeat(left, 32, func() {
			if rows > 1 {
				p.fetch(ahead, rows*32*p.bits/8)
			}
			v := p.x(x)
			for row, sum := range sums {
				p.scope(func() { p.fma(sum, p.unitSum(v, w, row), scales[row]) })
			}
		})
	})
}

// unitSum is the sum of the products of a unit: from four fields on two sums, of every other field, that are added.
func (p *product) unitSum(x []vec, w *stream, row int) vec {
	decode := p.unit(w, row)
	var sums []vec
	for from := 0; from < p.fields; from += 4 {
		for i, v := range decode(from, min(from+4, p.fields)) {
			field := from + i
			if field < max(1, min(2, p.fields/2)) {
				p.mul(v, x[field], in(v))
				sums = append(sums, v)
				continue
			}
			p.fma(sums[field%len(sums)], x[field], in(v))
			p.freeVecs(v)
		}
	}
	tree(p.add, sums)
	return sums[0]
}

// addBiases adds the products of the biases of the next rows with xsum.
func (p *product) addBiases(sums []vec) {
	xsum, b, left := p.stream("xsum"), p.next(p.biases, p.groups, len(sums)), p.shifted(p.groups[0], 2)
	add := func() {
		x := p.load(xsum, 0, 1)[0]
		for row, s := range sums {
			p.fma(s, x, p.operands(b, row, 1)[0])
		}
	}
	p.loop(left, p.width(), add)
	p.tail(left, add)
}
