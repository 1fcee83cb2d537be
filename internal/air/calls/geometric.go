package calls

// dot adds the products in order, each rounded to a float.
func (b *body) dot(x, y value) value {
	p := b.op("fmul", x, y)
	s := b.extract(p, 0)
	for i := 1; i < p.t.lanes; i++ {
		s = b.op("fadd", s, b.extract(p, i))
	}
	return s
}

func (b *body) length(x value) value { return b.overloaded("sqrt", b.dot(x, x)) }

// spread is a number in all lanes.
func (b *body) spread(x value, like typ) value {
	return b.each(like, func([]value) value { return x })
}

func normalize(b *body, x []value) value {
	r := b.mathematics("rsqrt_f", float32s, b.dot(x[0], x[0]))
	return b.op("fmul", x[0], b.spread(r, x[0].t))
}

// cross is of vectors of three.
func cross(b *body, x []value) value {
	r := value{x[0].t, "poison"}
	for i := range 3 {
		j, k := (i+1)%3, (i+2)%3
		p := b.op("fmul", b.extract(x[0], j), b.extract(x[1], k))
		q := b.op("fmul", b.extract(x[0], k), b.extract(x[1], j))
		d := b.op("fsub", p, q)
		r = b.make(r.t, "insertelement %s %s, float %s, i32 %d", r.t, r.text, d.text, i)
	}
	return r
}

// reflect is I - 2*dot(N, I)*N.
func reflect(b *body, x []value) value {
	d := b.dot(x[1], x[0])
	twice := b.spread(b.op("fmul", d, d.t.number(2)), x[0].t)
	return b.op("fsub", x[0], b.op("fmul", twice, x[1]))
}

// refract is 0 if k = 1 - eta²*(1 - dot(N, I)²) is negative, else
// eta*I - (eta*dot(N, I) + sqrt(k))*N.
func refract(b *body, x []value) value {
	in, normal, eta := x[0], x[1], x[2]
	one := float32s.number(1)
	d := b.dot(normal, in)
	k := b.op("fsub", one, b.op("fmul", b.op("fmul", eta, eta), b.op("fsub", one, b.op("fmul", d, d))))
	f := b.op("fadd", b.op("fmul", eta, d), b.overloaded("sqrt", k))
	r := b.op("fsub", b.op("fmul", b.spread(eta, in.t), in), b.op("fmul", b.spread(f, in.t), normal))
	total := b.compare("olt", k, k.t.number(0))
	return b.make(r.t, "select i1 %s, %s %s, %s %s", total.text, r.t, in.t.number(0).text, r.t, r.text)
}

// faceforward is N if dot(Nref, I) is negative, else -N.
func faceforward(b *body, n *name, x []value) value {
	w := b.widened(x)
	d := b.dot(w[2], w[1])
	away := b.compare("olt", d, d.t.number(0))
	i := b.bitcast(x[0], n.t.pattern())
	mask := b.choose(away, i.t.scalar().integerConst(0), i.t.scalar().signMask())
	return b.bitcast(b.op("xor", i, b.spread(mask, i.t)), n.t)
}
