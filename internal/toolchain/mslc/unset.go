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
	"github.com/mlxc/mlxc/internal/toolchain/mslshim"
)

// Where a variable begins that nothing sets, clang would take any value that suits it, and nothing of it would be
// left. For the checker each gets one that clang cannot know, what a function gives that has no body, and which is
// followed from there (package air). So clang first says where such variables begin, by the pattern that it stores
// there (-ftrivial-auto-var-init), and the pattern is replaced before anything is optimized.

var (
	annotated    = regexp.MustCompile(`, !annotation !\d+`)
	patternStore = regexp.MustCompile(`^  store (.*), ptr (%[\w.]+), align (\d+)(, !dbg !\d+)?$`)
	patternFill  = regexp.MustCompile(`^  call void @llvm\.mem(?:set|cpy)\.[\w.]+\(ptr (?:\w+ )*?(?:align (\d+) )?(%[\w.]+), (?:i8 -?\d+|ptr .*?@[^,]*), i64 (\d+), i1 false\)(?: #\d+)?(, !dbg !\d+)?$`)
	patternType  = regexp.MustCompile(`^(<\d+ x \w+>|\w+) `)
	localType    = regexp.MustCompile(`^  (%[\w.]+) = alloca (.*?)(?:, align \d+)?(?:, !dbg !\d+)?$`)
	typeLine     = regexp.MustCompile(`(?m)^(%\S+) = type (.*)$`)
	addressLine  = regexp.MustCompile(`^  (%[\w.]+) = getelementptr .*?, ptr (%[\w.]+), `)
	arrayOf      = regexp.MustCompile(`^\[(\d+) x (.*)\]$`)
)

// unsetter replaces patterns of variables that nothing sets in the text of a module. It trusts the syntax of
// clang's output, and leaves alone what it does not know.
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
		if t := localType.FindStringSubmatch(l); t != nil {
			u.local[t[1]] = t[2]
		}
		if annotated.MatchString(l) && u.replace(annotated.ReplaceAllString(l, "")) {
			continue
		}
		if g := addressLine.FindStringSubmatch(l); g != nil {
			if u.root[g[1]] = u.root[g[2]]; u.root[g[1]] == "" {
				u.root[g[1]] = g[2]
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

// replace replaces the line that stores a pattern.
func (u *unsetter) replace(l string) bool {
	if s := patternStore.FindStringSubmatch(l); s != nil {
		// Patterns of a small variable are stored piece by piece, those of the gaps between members too, which stay
		// without a value.
		root := u.root[s[2]]
		if root != "" && root == u.begun || root != "" && u.members(root, s[4]) {
			u.begun = root
			return true
		}
		t := patternType.FindStringSubmatch(s[1])
		if t == nil || t[1] == "i8" && root != "" {
			return t != nil // what may be a gap stays without a value
		}
		u.store(t[1], s[2], s[3], s[4])
		return true
	}
	f := patternFill.FindStringSubmatch(l)
	if f == nil {
		return false
	}
	place := f[4]
	if u.members(f[2], place) {
		return true
	}
	align := ""
	if f[1] != "" {
		align = "align " + f[1] + " "
	}
	name := fmt.Sprintf("@%s%d", air.UnsetMemory, u.count) // of which no value is known
	u.count++
	u.ends = append(u.ends, fmt.Sprintf("%s = external constant [%s x i8], align 256", name, f[3]))
	u.out = append(u.out, fmt.Sprintf("  call void @llvm.memcpy.p0.p0.i64(ptr %s%s, ptr align 256 %s, i64 %s, i1 false)%s", align, f[2], name, f[3], place))
	return true
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
	if a := arrayOf.FindStringSubmatch(typ); a != nil {
		n, _ := strconv.Atoi(a[1])
		for i := range n {
			if paths, leaves, ok = u.leaves(a[2], append(path, fmt.Sprintf(", i64 %d", i)), paths, leaves); !ok {
				return nil, nil, false
			}
		}
		return paths, leaves, true
	}
	if strings.HasPrefix(typ, "<{") || strings.HasPrefix(typ, "{") {
		for i, m := range members(strings.TrimSuffix(strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(typ, "<"), "{"), ">"), "}")) {
			if byteArray.MatchString(m) {
				continue // a gap, or an array of bytes, which looks the same
			}
			if paths, leaves, ok = u.leaves(m, append(path, fmt.Sprintf(", i32 %d", i)), paths, leaves); !ok {
				return nil, nil, false
			}
		}
		return paths, leaves, true
	}
	if typ == "" || strings.ContainsAny(typ[:1], "<%{[") && !vectorType.MatchString(typ) {
		return nil, nil, false
	}
	return append(paths, strings.Join(path, "")), append(leaves, typ), true
}

var byteArray = regexp.MustCompile(`^\[\d+ x i8\]$`)

var vectorType = regexp.MustCompile(`^<\d+ x \w+>$`)

// members cuts the members of a structure at the commas that stand in no bracket.
func members(list string) (out []string) {
	depth, begin := 0, 0
	for i, c := range list {
		switch c {
		case '{', '[', '<', '(':
			depth++
		case '}', ']', '>', ')':
			depth--
		case ',':
			if depth == 0 {
				out = append(out, strings.TrimSpace(list[begin:i]))
				begin = i + 1
			}
		}
	}
	if rest := strings.TrimSpace(list[begin:]); rest != "" {
		out = append(out, rest)
	}
	return out
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
