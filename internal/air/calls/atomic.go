package calls

import "fmt"

// writeAtomic writes air.atomic.SPACE.WHAT[.SIGN].TYPE. The parameters end in the memory
// order, the scope and whether the access is volatile; compare-exchange has two orders.
// Metal's order 0 is relaxed; for any other the operation stands between two fences.
func (n *name) writeAtomic(b *body) error {
	if n.what == "fence" {
		if b.result != none || len(b.args) != 3 || b.args[0].t != int32s || b.args[1].t != int32s || b.args[2].t != int32s {
			return fmt.Errorf("it is void (i32, i32, i32)")
		}
		b.ordered(b.args[1], func() {})
		b.line("ret void")
		return nil
	}
	t := n.t
	if t.lanes > 0 || t.bits() < 32 || t.elem == "half" || t.elem == "bfloat" {
		return errMissing
	}
	signature, order := "TpTiib", 2
	switch n.what {
	case "load":
		signature, order = "Tpiib", 1
	case "store":
		signature = "vpTiib"
	case "cmpxchg.weak", "cmpxchg.strong", "cmpxchg":
		signature, order = "TppTiiib", 3
	}
	op, ok := n.operation()
	if !ok {
		return errMissing
	}
	if err := b.expectAtomic(n, signature); err != nil {
		return err
	}
	p := b.args[0]
	if want, ok := map[string]int{"global": 1, "local": 3}[n.space]; ok && p.t.space != want && p.t.space != 0 {
		return fmt.Errorf("parameter 0 points to address space %d, by its name to %d", p.t.space, want)
	}
	pointer := p.t.written(b.target) + " " + p.text
	scope := ""
	if b.target == PTX {
		scope = ` syncscope("device")`
		if n.space == "local" {
			scope = ` syncscope("block")`
		}
	}
	var result value
	b.ordered(b.args[order], func() {
		switch n.what {
		case "load":
			result = b.make(t, "load atomic %s, %s%s monotonic, align %d", t, pointer, scope, alignment(t))
		case "store":
			b.line("store atomic %s %s, %s%s monotonic, align %d", t, b.args[1].text, pointer, scope, alignment(t))
		case "cmpxchg.weak", "cmpxchg.strong", "cmpxchg":
			result = b.exchange(t, pointer, scope)
		default:
			result = b.make(t, "atomicrmw %s %s, %s %s%s monotonic", op, pointer, t, b.args[1].text, scope)
		}
	})
	if n.what == "store" {
		b.line("ret void")
		return nil
	}
	b.ret(result)
	return nil
}

// operation is atomicrmw's, or "" for what is none.
func (n *name) operation() (string, bool) {
	if n.t.float() {
		switch n.what {
		case "add", "sub":
			return "f" + n.what, n.sign == 0
		case "xchg":
			return n.what, n.sign == 0
		}
	} else {
		switch n.what {
		case "add", "sub", "and", "or", "xor", "xchg":
			return n.what, true
		case "min", "max":
			if n.sign == 'u' {
				return "u" + n.what, true
			}
			return n.what, n.sign == 's'
		}
	}
	switch n.what {
	case "load", "store", "cmpxchg.weak", "cmpxchg.strong", "cmpxchg":
		return "", true
	}
	return "", false
}

func (b *body) expectAtomic(n *name, signature string) error {
	if signature[0] == 'v' {
		if b.result != none {
			return fmt.Errorf("result is %s, by its name it is void", b.result)
		}
		signature = "T" + signature[1:]
		b.result = n.t
		defer func() { b.result = none }()
	}
	return b.expect(n, signature)
}

// exchange stores what was found where the caller expected a value, and returns it. The
// caller takes the exchange for done if it finds its value again, so that a weak exchange
// must not fail for nothing.
func (b *body) exchange(t typ, pointer, scope string) value {
	i := t
	if t.float() {
		i = t.pattern()
	}
	where := b.args[1]
	expected := b.make(i, "load %s, %s %s, align %d", i, where.t.written(b.target), where.text, alignment(t))
	desired := b.bitcast(b.args[2], i)
	b.values++
	pair := fmt.Sprintf("%%v%d", b.values)
	b.line("%s = cmpxchg %s, %s %s, %s %s%s monotonic monotonic", pair, pointer, i, expected.text, i, desired.text, scope)
	found := b.make(i, "extractvalue { %s, i1 } %s, 0", i, pair)
	b.store(found, where)
	return b.bitcast(found, t)
}

// ordered writes f between fences that are passed if the order is not relaxed. The order is a
// constant at the call, so that one of the two ways remains.
func (b *body) ordered(order value, f func()) {
	relaxed := b.compare("eq", order, order.t.integerConst(0))
	b.fence(relaxed, "before")
	f()
	b.fence(relaxed, "after")
}

func (b *body) fence(relaxed value, label string) {
	b.line("br i1 %s, label %%%s, label %%fence.%s", relaxed.text, label, label)
	b.lines = append(b.lines, "fence."+label+":")
	if b.target == PTX {
		// LLVM 19 has no fence for this target.
		b.line(`call void asm sideeffect "membar.gl;", "~{memory}"()`)
	} else {
		b.line("fence seq_cst")
	}
	b.line("br label %%%s", label)
	b.lines = append(b.lines, label+":")
}
