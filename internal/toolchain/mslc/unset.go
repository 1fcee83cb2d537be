package mslc

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/llvm"
	"github.com/mlxc/mlxc/internal/toolchain/mslshim"
)

// Where a variable begins that nothing sets, clang would take any value that suits it, and nothing of it would be
// left. For the checker each gets one that clang cannot know, what a function gives that has no body, and which is
// followed from there (package air). So clang first says where such variables begin, by the pattern that it stores
// there (-ftrivial-auto-var-init), and the pattern is replaced before anything is optimized.

var (
	annotated = regexp.MustCompile(`, !annotation !\d+`)
	typeLine  = regexp.MustCompile(`(?m)^(%\S+) = type (.*)$`)
	byteArray = regexp.MustCompile(`^\[\d+ x i8\]$`)
)

// unsetter replaces patterns of variables that nothing sets in the text of a module, and leaves alone what it does not
// know.
type unsetter struct {
	types map[string]string // by name
	local map[string]string // the types of a function's variables
	root  map[string]string // of an address: the variable
	begun string            // the variable whose members are being set to patterns
	out   []string
	ends  []string // of the module: declarations
	count int
}

// maxLeaves is how many members a variable may have each of which gets a value of its own. What is larger is
// copied from memory of which nothing is known, and should lie in memory for good.
const maxLeaves = 256

func markUnset(text string) string {
	u := &unsetter{types: map[string]string{}, local: map[string]string{}, root: map[string]string{}}
	for _, t := range typeLine.FindAllStringSubmatch(text, -1) {
		u.types[t[1]] = t[2]
	}
	for _, l := range strings.Split(text, "\n") {
		if strings.HasPrefix(l, "define ") {
			clear(u.local)
			clear(u.root)
		}
		in := llvm.Read(l)
		if in != nil && in.Op == "alloca" {
			u.local[in.Result] = in.Type
		}
		if annotated.MatchString(l) && u.replace(llvm.Read(annotated.ReplaceAllString(l, ""))) {
			continue
		}
		if in != nil && in.Op == "getelementptr" && in.Operands[0].Type == "ptr" {
			of := in.Operands[0].Value
			if u.root[in.Result] = u.root[of]; u.root[in.Result] == "" {
				u.root[in.Result] = of
			}
		} else {
			u.begun = ""
		}
		u.out = append(u.out, l)
	}
	if u.count == 0 {
		return text
	}
	marked := strings.Join(u.out, "\n") + "\n" + strings.Join(u.ends, "\n") + "\n"
	if !strings.Contains(marked, "\ndeclare void @llvm.memcpy.p0.p0.i64(") {
		marked += "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)\n"
	}
	return marked
}

// replace replaces an instruction that stores a pattern.
func (u *unsetter) replace(in *llvm.Instruction) bool {
	switch {
	case in == nil:
		return false
	case in.Op == "store":
		// Patterns of a small variable are stored piece by piece, those of the gaps between members too, which stay
		// without a value.
		typ, at := in.Type, in.Operands[1].Value
		root := u.root[at]
		if root != "" && root == u.begun || root != "" && u.members(root, in.Place) {
			u.begun = root
			return true
		}
		if llvm.BytesOf(typ) == 0 {
			return false // it has members
		}
		if typ != "i8" || root == "" { // what may be a gap stays without a value
			u.store(typ, at, alignment(in.Line), in.Place)
		}
		return true
	case !strings.HasPrefix(in.Callee, "llvm.memset.") && !strings.HasPrefix(in.Callee, "llvm.memcpy."), len(in.Operands) != 4:
		return false
	}
	to, size := in.Operands[0], in.Operands[2].Value
	if _, err := strconv.Atoi(size); err != nil {
		return false
	}
	if u.members(to.Value, in.Place) {
		return true
	}
	align := alignment(in.Line[:to.ValueAt])
	if align != "" {
		align = "align " + align + " "
	}
	name := fmt.Sprintf("@%s%d", air.UnsetMemory, u.count) // of which no value is known
	u.count++
	u.ends = append(u.ends, fmt.Sprintf("%s = external constant [%s x i8], align 256", name, size))
	u.out = append(u.out, fmt.Sprintf("  call void @llvm.memcpy.p0.p0.i64(ptr %s%s, ptr align 256 %s, i64 %s, i1 false)%s", align, to.Value, name, size, in.Place))
	return true
}

// alignment is the first that a text names, "" if it names none.
func alignment(text string) string {
	_, rest, _ := strings.Cut(text, " align ")
	return rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789"))]
}

// members stores values that nothing has set to the members of a variable.
func (u *unsetter) members(variable, place string) bool {
	paths, leaves, ok := u.leaves(u.local[variable], nil, nil, nil)
	if !ok || len(leaves) == 0 {
		return false
	}
	for i, leaf := range leaves {
		at := fmt.Sprintf("%%mlxc.part%d", u.count)
		u.out = append(u.out, fmt.Sprintf("  %s = getelementptr inbounds %s, ptr %s, i64 0%s%s", at, u.local[variable], variable, paths[i], place))
		u.store(leaf, at, "1", place)
	}
	return true
}

// store stores a value that nothing has set.
func (u *unsetter) store(typ, at, align, place string) {
	name := fmt.Sprintf("%s%d", air.UnsetValue, u.count)
	value := fmt.Sprintf("%%mlxc.unset%d", u.count)
	u.count++
	u.ends = append(u.ends, fmt.Sprintf("declare %s @%s() nounwind willreturn memory(none)", typ, name))
	u.out = append(u.out, fmt.Sprintf("  %s = call %s @%s()%s", value, typ, name, place), fmt.Sprintf("  store %s %s, ptr %s, align %s%s", typ, value, at, align, place))
}

// leaves are the members of a type that have no members, with the indices that lead to each; ok is false of a type
// that is not known, or has too many.
func (u *unsetter) leaves(typ string, path, paths, leaves []string) (_, _ []string, ok bool) {
	if len(leaves) >= maxLeaves || len(path) > 16 {
		return nil, nil, false
	}
	if body, named := u.types[typ]; named {
		typ = body
	}
	if n, of, ok := llvm.ArrayOf(typ); ok {
		for i := range n {
			if paths, leaves, ok = u.leaves(of, append(path, fmt.Sprintf(", i64 %d", i)), paths, leaves); !ok {
				return nil, nil, false
			}
		}
		return paths, leaves, true
	}
	if fields, ok := llvm.Fields(typ); ok {
		for i, m := range fields {
			if byteArray.MatchString(m) {
				continue // a gap, or an array of bytes, which looks the same
			}
			if paths, leaves, ok = u.leaves(m, append(path, fmt.Sprintf(", i32 %d", i)), paths, leaves); !ok {
				return nil, nil, false
			}
		}
		return paths, leaves, true
	}
	if llvm.BytesOf(typ) == 0 {
		return nil, nil, false
	}
	return append(paths, strings.Join(path, "")), append(leaves, typ), true
}

// marked compiles C++ with marks where variables begin that nothing sets; args are those for an optimized module.
func marked(ctx context.Context, dir *mslshim.Folder, args []string, in, out string) error {
	first := append(append([]string(nil), args...), "-Xclang", "-disable-llvm-passes", "-ftrivial-auto-var-init=pattern", "-S", "-emit-llvm", "-o", "unset.ll", in)
	if _, err := dir.Run(ctx, first...); err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(dir.Dir, "unset.ll"))
	if err != nil {
		return err
	}
	if err := dir.Write("marked.ll", markUnset(string(text))); err != nil {
		return err
	}
	second := append(append(append([]string(nil), target...), optimization...), "-w", "-S", "-emit-llvm", "-o", out, "-x", "ir", "marked.ll")
	_, err = dir.Run(ctx, second...)
	return err
}
