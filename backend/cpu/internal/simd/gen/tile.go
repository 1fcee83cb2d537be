package main

// tile multiplies a panel with as many rows of x as there are registers for their sums, or as are left.
func tile(m machine) {
	vectors := panelVectors(m)
	most := 4
	if m.width() == 16 {
		most = 8
	}
	for rows := most; rows > 0; rows /= 2 {
		one := func() {
			tileRows(m, rows, vectors)
			m.setResult("rows", rows)
			m.end()
		}
		if rows > 1 {
			m.atLeast("m", rows, one)
		} else {
			m.scope(one)
		}
	}
}

func tileRows(m machine, rows, vectors int) {
	sums := m.zeros(rows * vectors)
	of := func(row int) []vec { return sums[row*vectors:][:vectors] }
	rowsAt := func(first, distance string) *stream {
		by := m.arg(distance)
		m.scale(by, 4, 0)
		return m.rows(m.arg(first), m.strides(by, rows), rows)
	}
	m.scope(func() {
		x, panel, cols := rowsAt("x", "ldx"), m.stream("panel"), m.arg("cols")
		m.columns(x, cols, func(elements []operand) {
			column := m.load(panel, 0, vectors)
			for row, e := range elements {
				m.scope(func() {
					a := m.broadcast(e)
					for i, s := range of(row) {
						m.fma(s, column[i], a)
					}
				})
			}
		})
	})
	y := rowsAt("y", "ldy")
	m.panelMasks("n", vectors)
	m.when("add", func() {
		for row := range rows {
			m.addRow(y, row, of(row))
		}
	})
	for row := range rows {
		m.putRow(y, row, of(row))
	}
}
