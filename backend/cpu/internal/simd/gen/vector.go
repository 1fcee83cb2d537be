package main

// each goes through n elements: four vectors at a time, one, and what is left.
func each(m machine, n reg, body func(vectors int)) {
	m.loop(n, 4*m.width(), func() { body(4) })
	m.loop(n, m.width(), func() { body(1) })
	m.tail(n, func() { body(1) })
}

func addTo(m machine) { elementwise(m, m.add) }
func mulTo(m machine) { elementwise(m, m.mul) }

func elementwise(m machine, op func(d, a vec, b operand)) {
	dst, a, b, n := m.stream("dst"), m.stream("a"), m.stream("b"), m.arg("n")
	each(m, n, func(vectors int) {
		x, y := m.load(a, 0, vectors), m.operands(b, 0, vectors)
		for i, v := range x {
			op(v, v, y[i])
		}
		m.store(dst, 0, x...)
	})
	m.end()
}

func scaleTo(m machine) {
	alpha, dst, x, n := m.splat("alpha"), m.stream("dst"), m.stream("x"), m.arg("n")
	each(m, n, func(vectors int) {
		var out []vec
		for _, v := range m.operands(x, 0, vectors) {
			d := m.own(v)
			m.mul(d, alpha, v)
			out = append(out, d)
		}
		m.store(dst, 0, out...)
	})
	m.end()
}

func axpy(m machine) {
	alpha, x, y, n := m.splat("alpha"), m.stream("x"), m.stream("y"), m.arg("n")
	each(m, n, func(vectors int) {
		a, sum := m.operands(x, 0, vectors), m.peek(y, 0, vectors)
		for i, v := range sum {
			m.fma(v, alpha, a[i])
		}
		m.store(y, 0, sum...)
	})
	m.end()
}

// maximum: the lanes of a last vector that do not exist are -Inf.
func maximum(m machine) {
	x, n := m.stream("x"), m.arg("n")
	infinity := m.constants(0, 0xff800000)[0]
	var largest []vec
	for range 4 {
		largest = append(largest, m.copy(infinity))
	}
	nan := m.noNaN()
	put := func(vs []vec) {
		m.unordered(nan, vs...)
		for i, v := range vs {
			m.max(largest[i], in(largest[i]), in(v))
		}
	}
	m.loop(n, 4*m.width(), func() { put(m.load(x, 0, 4)) })
	m.loop(n, m.width(), func() { put(m.load(x, 0, 1)) })
	m.tail(n, func() { put([]vec{m.loadOr(x, infinity.v)}) })
	tree(func(d, a vec, b operand) { m.max(d, in(a), b) }, largest)
	m.maximum(largest[0], nan)
	m.returns(largest[0])
}

// tree leaves op of all registers, at most eight, in the first one.
func tree(op func(d, a vec, b operand), vs []vec) {
	if n := len(vs) / 2; n == 4 {
		for i := range n {
			op(vs[i], vs[i], in(vs[n+i]))
		}
		vs = vs[:n]
	}
	for step := 1; step < len(vs); step *= 2 {
		for i := 0; i < len(vs); i += 2 * step {
			op(vs[i], vs[i], in(vs[i+step]))
		}
	}
}

// dot: several sums hide the latency of an addition.
func dot(m machine) {
	a, b, n := m.stream("a"), m.stream("b"), m.arg("n")
	sums := m.zeros(max(4, 32/m.width()))
	put := func(sums []vec) {
		x, y := m.load(a, 0, len(sums)), m.operands(b, 0, len(sums))
		for i, s := range sums {
			m.fma(s, x[i], y[i])
		}
	}
	m.loop(n, len(sums)*m.width(), func() { put(sums) })
	m.loop(n, m.width(), func() { put(sums[:1]) })
	m.tail(n, func() { put(sums[1:2]) })
	tree(m.add, sums)
	m.sum(sums[0])
	m.returns(sums[0])
}

func groupSums(m machine) {
	dst, x, n := m.stream("dst"), m.stream("x"), m.arg("n")
	m.loop(n, 1, func() {
		left, sums := m.arg("group"), m.zeros(16/m.width())
		m.repeat(left, 32, func() {
			for i, v := range m.operands(x, 0, 32/m.width()) {
				s := sums[i%len(sums)]
				m.add(s, s, v)
			}
		})
		tree(m.add, sums)
		m.sum(sums[0])
		m.storeLanes(dst, sums[0], 1)
	})
	m.end()
}

// matVecF32: a row has the same sum, to the bit, wherever it stands among the n.
func matVecF32(m machine) {
	y, w, n := m.stream("y"), m.arg("w"), m.arg("n")
	ld := m.arg("ld")
	m.scale(ld, 4, 0)
	by := m.strides(ld, 4)
	for _, rows := range []int{4, 1} {
		m.loop(n, rows, func() {
			x, k := m.stream("x"), m.arg("k")
			sums, r := m.zeros(2*rows), m.next(w, by, rows)
			put := func(sums []vec, vectors int) { // the sums of vectors one behind the other
				v := m.load(x, 0, vectors)
				for row := range rows {
					for i, o := range m.operands(r, row, vectors) {
						m.fma(sums[i*rows+row], v[i], o)
					}
				}
			}
			m.loop(k, 2*m.width(), func() { put(sums, 2) })
			m.ifAny(k, func() {
				m.once(k, m.width(), func() { put(sums, 1) })
				m.tail(k, func() { put(sums[rows:], 1) })
			})
			for row, s := range sums[:rows] {
				m.add(s, s, in(sums[rows+row]))
			}
			m.sums(sums[:rows])
			m.storeLanes(y, sums[0], rows)
		})
	}
	m.end()
}
