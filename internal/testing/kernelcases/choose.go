package kernelcases

// Choose returns the cases of the first kernel of each family whose number take accepts. The cases keep their order.
func Choose(cases []*Case, take func(family int) bool) (out []*Case, _ error) {
	of := map[int]string{}
	chosen := map[string]bool{}
	for _, c := range cases {
		f, err := FamilyOf(c.Kernel)
		if err != nil {
			return nil, err
		}
		if take(f) && of[f] == "" {
			of[f] = c.Kernel
			chosen[c.Kernel] = true
		}
	}
	for _, c := range cases {
		if chosen[c.Kernel] {
			out = append(out, c)
		}
	}
	return out, nil
}

// NonFinite reports whether some expected result is infinite or NaN.
func (c *Case) NonFinite() bool {
	for i := range c.Args {
		w := c.Args[i].Want
		if w == nil || types[c.Args[i].Type].mantissa == 0 {
			continue
		}
		for b := c.data[w.At:][:w.Size]; len(b) >= 4; b = b[4:] {
			if b[3]&0x7f == 0x7f && b[2]&0x80 != 0 {
				return true
			}
		}
	}
	return false
}
