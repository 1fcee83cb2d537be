package mslc

import (
	"slices"
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

// maxPlaces bounds the number of places in an argument that an address may be of.
const maxPlaces = 16

// reads notes the bytes that are read of what a parameter points to, and returns whether all uses of its address are understood.
func reads(m *llvm.Module, body []*llvm.Instruction, param string, unread []bool) bool {
	if !strings.HasPrefix(param, "%") {
		param = "%" + param
	}
	at := map[string][]int64{param: {0}} // addresses within it, by their values: where they may be
	chosen := map[string][]int64{}       // numbers that are one of several constants
	constant := func(o *llvm.Operand) (out []int64) {
		if v, err := strconv.ParseInt(o.Value, 10, 64); err == nil {
			return []int64{v}
		}
		return chosen[o.Value]
	}
	for _, in := range body {
		if in.Op == "select" && len(in.Operands) == 3 {
			if a, b := constant(&in.Operands[1]), constant(&in.Operands[2]); a != nil && b != nil && len(a)+len(b) <= maxPlaces {
				chosen[in.Result] = slices.Concat(a, b)
			}
		}
	}
	for changed := true; changed; {
		changed = false
		for _, in := range body {
			for k := range in.Operands {
				o := &in.Operands[k]
				places, ok := at[o.Value]
				if !ok || !o.IsPointer() {
					continue
				}
				var next []int64
				switch {
				case in.Op == "load" && in.Type != "":
					n := int64(m.Layout(in.Type).Size)
					for _, p := range places {
						if n <= 0 || p < 0 || p+n > int64(len(unread)) {
							return false
						}
						for j := p; j < p+n; j++ {
							unread[j] = false
						}
					}
					continue
				case in.Op == "getelementptr" && len(in.Operands) == 2 && k == 0 && strings.Contains(in.Line, " i8, ptr"):
					by := constant(&in.Operands[1])
					if by == nil {
						return false
					}
					for _, p := range places {
						for _, d := range by {
							next = append(next, p+d)
						}
					}
				case in.Op == "addrspacecast", in.Op == "select" && k > 0, in.Op == "phi":
					next = places
				default:
					return false
				}
				for _, p := range next {
					if !slices.Contains(at[in.Result], p) {
						at[in.Result], changed = append(at[in.Result], p), true
					}
				}
				if len(at[in.Result]) > maxPlaces {
					return false
				}
			}
		}
	}
	return true
}
