package calls

import (
	"errors"
	"fmt"
	"strings"
)

// name is a function's name, taken apart. Which of the parts there are depends on the family.
type name struct {
	op     string // "exp", "convert", "atomic"
	fast   bool   // fast_ stood before it
	sign   byte   // 's', 'u', 'f', or 0
	t      typ    // at the end of the name
	from   typ    // of a conversion: what is converted
	source byte   // and its sign
	space  string // of an atomic: "global", "local" or "generic"
	what   string // of an atomic: "add", "cmpxchg.weak"
	format string // of pack and unpack: "unorm4x8", "unorm.rgb10a2"
	family *family
}

// family is a set of operations that are written alike.
type family struct {
	// signature is the result and the parameters: T is the type at the end of the name,
	// the others are in (*name).letter.
	signature string
	kind      kind
	write     func(b *body, n *name, x []value) value
}

// kind says for which types a family exists.
type kind uint8

const (
	floats   kind = iota // half, bfloat, float
	integers             // i8 … i64
	patterns             // integers whose sign does not matter, and is not part of the name
)

// errMissing says that nothing here is called that.
var errMissing = errors.New("no body for a function of this name")

func parseName(full string) (*name, error) {
	rest, ok := strings.CutPrefix(full, "air.")
	if !ok {
		return nil, errMissing
	}
	for _, r := range rest {
		if r != '.' && r != '_' && (r < 'a' || r > 'z') && (r < '0' || r > '9') {
			return nil, errMissing
		}
	}
	p := strings.Split(rest, ".")
	n := &name{op: p[0]}
	var err error
	switch {
	case rest == "atomic.fence":
		n.op, n.what = "atomic", "fence"
		return n, nil
	case n.op == "atomic" && len(p) >= 4 && (p[1] == "global" || p[1] == "local" || p[1] == "generic"):
		n.space = p[1]
		last := len(p) - 1
		if n.t, err = parseSuffix(p[last]); err != nil {
			return nil, err
		}
		if s := p[last-1]; last > 3 && (s == "s" || s == "u") {
			n.sign = s[0]
			last--
		}
		n.what = strings.Join(p[2:last], ".")
		return n, nil
	case n.op == "convert" && len(p) == 5 && len(p[1]) == 1 && len(p[3]) == 1:
		n.sign, n.source = p[1][0], p[3][0]
		if n.t, err = parseSuffix(p[2]); err != nil {
			return nil, err
		}
		if n.from, err = parseSuffix(p[4]); err != nil {
			return nil, err
		}
		return n, nil
	case (n.op == "pack" || n.op == "unpack") && len(p) >= 3:
		n.format = strings.Join(p[1:len(p)-1], ".")
		n.t, err = parseSuffix(p[len(p)-1])
		return n, err
	case n.op == "get_simdgroup_size" || n.op == "is_uniform" || n.op == "normalize_function_constant_predicate":
		if len(p) == 2 {
			n.t, err = parseSuffix(p[1])
			return n, err
		}
		return nil, errMissing
	}
	if op, ok := strings.CutPrefix(n.op, "fast_"); ok {
		n.op, n.fast = op, true
	}
	if len(p) == 3 && (p[1] == "s" || p[1] == "u" || p[1] == "f") {
		n.sign = p[1][0]
	} else if len(p) != 2 {
		return nil, errMissing
	}
	if n.t, err = parseSuffix(p[len(p)-1]); err != nil {
		return nil, err
	}
	table := integerFunctions
	if n.t.float() {
		table = floatFunctions
	}
	f, ok := table[n.op]
	if !ok {
		return nil, errMissing
	}
	n.family = &f
	signed := n.sign == 's' || n.sign == 'u'
	if n.op == "cross" && n.t.lanes != 3 {
		return nil, errMissing
	}
	truth := n.op == "all" || n.op == "any"
	switch {
	case f.kind == floats && signed, f.kind == integers && !signed, f.kind == patterns && n.sign == 'f',
		n.fast && f.kind != floats, truth && n.t.elem != "i1", !truth && n.op != "select" && n.t.elem == "i1":
		return nil, errMissing
	}
	return n, nil
}

// letter is the type that a letter of a signature means.
func (n *name) letter(c byte) typ {
	switch c {
	case 'E': // one element
		return n.t.scalar()
	case 'I': // as many i32
		return n.t.of("i32")
	case 'i':
		return int32s
	case 'b':
		return int1s
	case 'B': // a mask
		return n.t.of("i1")
	case 'p':
		return pointers
	}
	return n.t
}

// expect holds the declared types against a signature. The address space of a pointer is
// what the kernel says.
func (b *body) expect(n *name, signature string) error {
	if len(b.args) != len(signature)-1 {
		return fmt.Errorf("%d parameters, it has %d", len(b.args), len(signature)-1)
	}
	if want := n.letter(signature[0]); b.result != want {
		return fmt.Errorf("result is %s, by its name it is %s", b.result, want)
	}
	for i, a := range b.args {
		if want := n.letter(signature[i+1]); a.t.of(a.t.elem) != want {
			return fmt.Errorf("parameter %d is %s, by its name it is %s", i, a.t, want)
		}
	}
	return nil
}

// write writes the body.
func (n *name) write(b *body) error {
	switch n.op {
	case "atomic":
		return n.writeAtomic(b)
	case "convert":
		return n.writeConvert(b)
	case "pack", "unpack":
		return n.writePacked(b)
	case "is_uniform":
		// It feeds llvm.assume: false would be a lie that makes everything undefined.
		if len(b.args) != 1 || b.args[0].t != n.t || b.result != int1s {
			return fmt.Errorf("it is i1 (%s)", n.t)
		}
		b.line("ret i1 true")
		return nil
	case "normalize_function_constant_predicate":
		if len(b.args) != 1 || b.args[0].t != n.t || b.result != n.t || !n.t.integer() {
			return fmt.Errorf("it is %s (%s)", n.t, n.t)
		}
		set := b.compare("ne", b.args[0], n.t.integerConst(0))
		if n.t.elem == "i1" {
			b.ret(set)
		} else {
			b.ret(b.cast("zext", set, n.t))
		}
		return nil
	case "get_simdgroup_size":
		if len(b.args) != 0 || b.result != n.t || !n.t.integer() || n.t.lanes > 0 {
			return fmt.Errorf("it is %s ()", n.t)
		}
		b.ret(n.t.integerConst(32))
		return nil
	}
	f := n.family
	signature := f.signature
	// Some compilers leave out, or add, whether 0 is a defined argument.
	if (n.op == "clz" || n.op == "ctz") && len(b.args) == 1 {
		signature = "TT"
	}
	if err := b.expect(n, signature); err != nil {
		return err
	}
	b.ret(f.write(b, n, b.args))
	return nil
}
