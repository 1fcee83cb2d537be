package host

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/llvm"
)

// originKind is what an address is computed from; the numbers are those of abi.h, but for the
// last two.
type originKind uint8

const (
	fromNowhere     originKind = iota // it is not known, or of several
	fromArgument                      // index: its slot
	fromVariable                      // of threadgroup space; index: its number
	fromPrivate                       // a private array; index: its number
	fromTable                         // a constant array; index: its number
	fromOwn                           // what the kernel cannot miss: a local without parts, a constant
	fromUnsetMemory                   // what nothing has set (undefined.go)
)

// origin is where an address comes from.
type origin struct {
	kind  originKind
	index int
}

// private is an array of the kernel's own.
type private struct {
	base  string // its address
	size  string // of the array in bytes, an expression
	shade string // the address of a byte for each of its bytes, which says whether it was written
	bytes int    // how many there are
	begin string // the address that it lies slack bytes behind
	mixed bool   // an address that is not known may lead into it
}

// origins says of the addresses in a kernel where they come from.
type origins struct {
	of     map[string]origin // by the value's name
	arrays []*private        // private arrays, then constant ones
}

var (
	roomyAlloca      = regexp.MustCompile(fmt.Sprintf(`^  (%%\S+) = alloca (\{ \[%d x i8\], (.*), \[%d x i8\], \[([0-9]+) x i8\] \})`, air.Slack, air.Slack))
	constantArray    = regexp.MustCompile(`\bconstant (.*)$`)
	threadgroupLocal = regexp.MustCompile(`^%mlxc\.tg([0-9]+)$`)
)

// origins finds out where the addresses in a kernel come from. extra are the lines that compute
// those of threadgroup variables. It also returns lines for the beginning of the function, which
// note that nothing has been written to private arrays.
func (m *hostModule) origins(blocks []*llvm.Block, extra []string, f *llvm.Function, k *air.Kernel) (_ *origins, begin []string, err error) {
	o := &origins{of: map[string]origin{}}
	for i, p := range f.Params {
		if a := &k.Args[i]; a.Attribute == "" {
			o.of[p.Name] = origin{fromArgument, a.Index}
		}
	}
	// The numbers of arrays. roomy has those of private arrays, by the name of the memory that
	// holds the array between its slacks; tables those of constant arrays, by their names.
	roomy, tables := map[string]int{}, map[string]int{}
	for _, b := range blocks {
		for _, l := range b.Lines {
			if r := roomyAlloca.FindStringSubmatch(l); r != nil {
				if len(r[3]) > maxTable {
					return nil, nil, fmt.Errorf("the type of the private array %s takes %d bytes of text, of at most %d", r[1], len(r[3]), maxTable)
				}
				n := len(o.arrays)
				p := &private{size: sizeOf(r[3]), shade: fmt.Sprintf("%%mlxc.shade%d", n)}
				p.bytes, _ = strconv.Atoi(r[4])
				if p.bytes > 0 {
					// There are states only if LLVM lays the type out as expected.
					begin = append(begin, fmt.Sprintf("  %s.at = getelementptr %s, ptr %s, i32 0, i32 3", p.shade, r[2], r[1]),
						fmt.Sprintf("  %s.fits = icmp eq i64 %s, %d", p.shade, p.size, p.bytes),
						fmt.Sprintf("  %s = select i1 %s.fits, ptr %s.at, ptr null", p.shade, p.shade, p.shade),
						fmt.Sprintf("  call void @llvm.memset.p0.i64(ptr %s.at, i8 0, i64 %d, i1 false)", p.shade, p.bytes))
				} else {
					p.shade = "null"
				}
				p.begin = r[1]
				roomy[r[1]] = n
				o.arrays = append(o.arrays, p)
			} else if in := llvm.Read(l); in != nil && in.Op == "alloca" {
				o.of[in.Result] = origin{kind: fromOwn}
			}
		}
	}
	for _, g := range m.Globals {
		a := constantArray.FindStringSubmatch(g.Text)
		if a == nil || air.IsUndefined("@"+g.Name) {
			continue
		}
		typ := llvm.TypeOf(a[1])
		if !strings.HasPrefix(typ, "[") {
			continue
		}
		if len(typ) > maxTable || len(g.Name) > maxTable {
			return nil, nil, fmt.Errorf("the type or name of the constant array @%.40s takes more than %d bytes of text", g.Name, maxTable)
		}
		p := &private{base: "@" + g.Name, size: sizeOf(typ), shade: "null"}
		if strings.Contains(g.Text[:len(g.Text)-len(a[1])], "addrspace(2)") {
			p.base = fmt.Sprintf("addrspacecast (ptr addrspace(2) @%s to ptr)", g.Name)
		}
		tables["@"+g.Name] = len(o.arrays)
		o.arrays = append(o.arrays, p)
	}
	// Origins spread from a value to the values that are computed from it. A value that is
	// computed from two different origins has none, so no value changes more than twice.
	users := map[string][]string{} // by what a value is computed of
	var changed []string
	learn := func(name string, from origin) {
		had, ok := o.of[name]
		if ok && had != from {
			o.mix(had)
			o.mix(from)
		}
		switch {
		case !ok:
			o.of[name] = from
		case had == from || had.kind == fromNowhere:
			return
		default:
			o.of[name] = origin{}
		}
		changed = append(changed, name)
	}
	computed := func(name, of string) {
		if n, ok := tables[of]; ok {
			learn(name, origin{fromTable, n})
			return
		}
		if air.IsUndefined(of) {
			learn(name, origin{kind: fromUnsetMemory})
			return
		}
		if strings.HasPrefix(of, "@") {
			learn(name, origin{kind: fromOwn})
			return
		}
		users[of] = append(users[of], name)
		if from, ok := o.of[of]; ok {
			learn(name, from)
		}
	}
	for _, b := range append([]*llvm.Block{{Lines: extra}}, blocks...) {
		for _, l := range b.Lines {
			in := llvm.Read(l)
			if in == nil {
				continue
			}
			of := in.Operands
			switch in.Op {
			case "getelementptr", "bitcast", "addrspacecast", "freeze":
				of = of[:1]
			case "select":
				of = of[1:]
			case "phi":
			default:
				continue
			}
			if v := threadgroupLocal.FindStringSubmatch(in.Result); v != nil {
				n, _ := strconv.Atoi(v[1])
				learn(in.Result, origin{fromVariable, n})
				continue
			}
			for _, p := range of {
				if !p.IsPointer() {
					continue
				}
				name := within(p.Value)
				if n, ok := roomy[name]; ok {
					if o.arrays[n].base == "" {
						o.arrays[n].base = in.Result
					}
					learn(in.Result, origin{fromPrivate, n})
					continue
				}
				computed(in.Result, name)
			}
		}
	}
	for len(changed) > 0 {
		name := changed[len(changed)-1]
		changed = changed[:len(changed)-1]
		for _, u := range users[name] {
			learn(u, o.of[name])
		}
	}
	// So do addresses that lie in memory themselves.
	for _, b := range blocks {
		for _, l := range b.Lines {
			in := llvm.Read(l)
			switch {
			case in == nil:
			case in.Op == "store" || in.Op == "ptrtoint":
				o.mix(o.of[in.Operands[0].Value])
			case in.Op == "insertvalue" || in.Op == "insertelement":
				o.mix(o.of[in.Operands[1].Value])
			}
		}
	}
	own := 0
	for n, p := range o.arrays {
		if !p.mixed {
			continue
		}
		if own++; own > maxOwn {
			p.shade = "null" // which accesses set it would not be known
			continue
		}
		begin = append(begin, fmt.Sprintf("  %%mlxc.own%d = getelementptr i8, ptr %s, i64 %d", n, p.begin, air.Slack),
			fmt.Sprintf("  call void @mlxc_own(ptr %%mlxc.lane, ptr %%mlxc.own%d, i64 %s, ptr %s, i32 %d)", n, p.size, p.shade, n))
	}
	return o, begin, nil
}

// maxOwn is how many variables a thread may have whose addresses mix with others (host/check.h).
const maxOwn = 16

// within is the address itself, or the variable in an expression of constants.
func within(address string) string {
	if i := strings.IndexByte(address, '@'); i > 0 && address[0] != '%' {
		return address[i:llvm.NameEnd(address, i)]
	}
	return address
}

// mix notes that an address into a private array may have been mixed with others: from then on an address that is
// not known may lead into the array.
func (o *origins) mix(from origin) {
	if from.kind == fromPrivate {
		o.arrays[from.index].mixed = true
	}
}

// maxTable is how many bytes the text of an array's type has at most, where each access repeats it.
const maxTable = 1 << 12

// sizeOf is the size of a type in bytes, as an expression.
func sizeOf(typ string) string {
	return fmt.Sprintf("ptrtoint (ptr getelementptr (%s, ptr null, i32 1) to i64)", typ)
}
