package mslc

import (
	"strconv"
	"strings"

	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/llvm"
)

// maxConstant bounds the size in bytes of an argument whose bytes are looked at one by one.
const maxConstant = 4096

// Unread returns for each slot of a kernel's constant arguments which of their bytes the code never reads, by any path: padding
// of a struct, which a program may leave as it was, or fields of no use. Slots whose uses the code does not show are left out.
func (u *Unit) Unread(kernel string) (map[int][]bool, error) {
	text, err := u.Module(kernel)
	if err != nil {
		return nil, err
	}
	m, err := llvm.Parse(kernel, []byte(text))
	if err != nil {
		return nil, err
	}
	var k *air.Kernel
	for i := range u.Kernels {
		if u.Kernels[i].Name == kernel {
			k = &u.Kernels[i]
		}
	}
	out := map[int][]bool{}
	for _, f := range m.Funcs {
		if strings.Trim(f.Name, `"`) != kernel || len(f.Params) != len(k.Args) {
			continue
		}
		var body []*llvm.Instruction
		for _, l := range f.Lines {
			if in := llvm.Read(l); in != nil {
				body = append(body, in)
			}
		}
		for i, a := range k.Args {
			if a.Attribute != "" || a.Space != air.Constant || a.Size <= 0 || a.Size > maxConstant {
				continue
			}
			unread := make([]bool, a.Size)
			for j := range unread {
				unread[j] = true
			}
			if reads(m, body, f.Params[i].Name, unread) {
				out[a.Index] = unread
			}
		}
	}
	return out, nil
}

// reads notes the bytes that are read of what a parameter points to, and returns whether all uses of its address are understood.
func reads(m *llvm.Module, body []*llvm.Instruction, param string, unread []bool) bool {
	if !strings.HasPrefix(param, "%") {
		param = "%" + param
	}
	at := map[string]int64{param: 0} // the addresses within it, by their values
	for changed := true; changed; {
		changed = false
		for _, in := range body {
			for _, o := range in.Operands {
				offset, ok := at[o.Value]
				if !ok || !o.IsPointer() {
					continue
				}
				next := offset
				switch {
				case in.Op == "load" && in.Type != "":
					n := int64(m.Layout(in.Type).Size)
					if n <= 0 || offset < 0 || offset+n > int64(len(unread)) {
						return false
					}
					for j := offset; j < offset+n; j++ {
						unread[j] = false
					}
					continue
				case in.Op == "getelementptr" && len(in.Operands) == 2 && in.Operands[0].Value == o.Value && strings.Contains(in.Line, "getelementptr") && strings.Contains(in.Line, " i8, ptr"):
					d, err := strconv.ParseInt(in.Operands[1].Value, 10, 64)
					if err != nil {
						return false
					}
					next += d
				case in.Op == "addrspacecast" || in.Op == "bitcast" && strings.HasPrefix(in.Type, "ptr"):
				default:
					return false
				}
				if old, ok := at[in.Result]; !ok {
					at[in.Result], changed = next, true
				} else if old != next {
					return false
				}
			}
		}
	}
	return true
}
