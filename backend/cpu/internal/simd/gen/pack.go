package main

// A panel is some rows of w, decoded and transposed: so many float32 for each of its columns. It is made as many rows
// at a time as there are lanes, and read by tile.
func panelVectors(m machine) int {
	if m.width() == 4 {
		return 4 // 16 rows
	}
	return 3 // 24 or 48
}

func panelBytes(m machine) int { return 4 * m.width() * panelVectors(m) }

// packF32 takes four columns at a time.
func packF32(m machine) {
	dst, cols := m.stream("dst"), m.arg("cols")
	m.panels(dst, panelBytes(m))
	w := m.rows(m.arg("w"), m.strides(m.arg("stride"), min(8, m.width())), m.width())
	m.loop(cols, 4, func() { m.store(dst, 0, m.transpose(w)...) })
	m.end()
}

// packQ decodes units of 32 columns of rows of so many bits.
func packQ(bits int) func(m machine) {
	return func(m machine) {
		dst, scales, biases := m.stream("dst"), m.stream("scales"), m.stream("biases")
		cols, group := m.arg("cols"), m.arg("group")
		for _, s := range []*stream{dst, scales, biases} {
			m.panels(s, panelBytes(m))
		}
		w := m.rows(m.arg("w"), m.strides(m.arg("stride"), min(8, m.width())), m.width())
		codes := m.codes(bits)
		m.loop(cols, group, func() {
			scale, bias, left := m.load(scales, 0, 1)[0], m.load(biases, 0, 1)[0], m.arg("group")
			m.repeat(left, 32, func() {
				for range bits / 4 { // 16 bytes of each row
					m.scope(func() {
						for _, word := range m.transpose(w) {
							for i := range 32 / bits {
								m.scope(func() { m.store(dst, 0, m.mulAdd(codes(word, i)[0], scale, bias)) })
							}
						}
					})
				}
			})
		})
		m.end()
	}
}
