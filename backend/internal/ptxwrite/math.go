package ptxwrite

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/mlxc/mlxc/internal/air/calls"
	"github.com/mlxc/mlxc/internal/toolchain/clang"
	"github.com/mlxc/mlxc/msl/term"
)

// mathText is the PTX of functions of a float (exp, sin, …). Its first line says from what it was made.
//
//go:embed math.ptx
var mathText string

// names are the operations that take several instructions, in the order of math.ptx. The functions of
// internal/air/calls have the same names.
var names = func() (out []string) {
	for _, op := range term.FloatOperations(1) {
		if op.PTX() == "" {
			out = append(out, op.String())
		}
	}
	return out
}()

// mathModule is the LLVM module of which math.ptx is made.
func mathModule() (string, error) {
	var declared []calls.Function
	var wrappers strings.Builder
	for _, n := range names {
		f := calls.Function{Name: "air." + n + ".f32", Result: "float", Params: []string{"float"}}
		declared = append(declared, f)
		fmt.Fprintf(&wrappers, "define float @mlxc_%s(float %%x) nounwind {\n  %%r = call float @%s(float %%x)\n  ret float %%r\n}\n", n, f.Name)
	}
	m, err := calls.Module(declared, calls.PTX)
	return m + wrappers.String(), err
}

// MathStamp is the beginning of math.ptx's first line if that is made of the present functions.
func MathStamp() (string, error) {
	m, err := mathModule()
	return fmt.Sprintf("// internal/air/calls (SHA-256 %x)", sha256.Sum256([]byte(m))), err
}

// MathText compiles math.ptx.
func MathText(ctx context.Context, c clang.Compiler) (_ string, err error) {
	m, err := mathModule()
	if err != nil {
		return "", err
	}
	stamp, err := MathStamp()
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "mlxc-math-")
	if err != nil {
		return "", err
	}
	defer func() {
		if e := os.RemoveAll(dir); err == nil {
			err = e
		}
	}()
	in, out := filepath.Join(dir, "math.ll"), filepath.Join(dir, "math.ptx")
	if err := os.WriteFile(in, []byte(m), 0o600); err != nil {
		return "", err
	}
	if message, err := c.Command(ctx, "--target=nvptx64-nvidia-cuda", "-march=sm_80", "--cuda-feature=+ptx80", "-O2", "-S", "-Wno-override-module", "-x", "ir", in, "-o", out).CombinedOutput(); err != nil {
		return "", fmt.Errorf("clang: %w\n%s", err, message)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s by clang %d; made by `make ptx`\n", stamp, c.Version)
	for l := range strings.Lines(string(text)) {
		l, _, _ = strings.Cut(l, "//")
		if l = strings.TrimSpace(l); l != "" && !strings.HasPrefix(l, ".version") && !strings.HasPrefix(l, ".target") && !strings.HasPrefix(l, ".address_size") {
			b.WriteString(l + "\n")
		}
	}
	if _, err := parseMath(b.String()); err != nil {
		return "", fmt.Errorf("what clang %d makes of the functions is not understood: %w", c.Version, err)
	}
	return b.String(), nil
}

// body is the code of a function, to be inlined: it reads the register "%in", leaves its result in "%out", and has
// registers and labels of its own.
type body struct {
	registers map[string]int // by kind, how many it declares
	lines     []string
}

var (
	functionHead  = regexp.MustCompile(`^\.visible \.func +\(\.param \.b32 func_retval0\) mlxc_([a-z0-9]+)\($`)
	registerLine  = regexp.MustCompile(`^\.reg \.(?:pred|b16|b32|b64)\s+%(p|rs|r|rd)<([0-9]+)>;$`)
	parameterLoad = regexp.MustCompile(`^ld\.param\.b32\s+(%r[0-9]+), \[mlxc_[a-z0-9]+_param_0\];$`)
	resultStore   = regexp.MustCompile(`^st\.param\.b32\s+\[func_retval0\], (%r[0-9]+);$`)
	instruction   = regexp.MustCompile(`^(?:@!?%p[0-9]+ )?[a-z][a-z0-9.]*\s+[^\[\]]*;$`)
	label         = regexp.MustCompile(`^\$L__[A-Z0-9_]+:$`)
)

// parseMath returns the functions of a text, by name.
func parseMath(text string) (map[string]*body, error) {
	out := map[string]*body{}
	var f *body
	ended := true
	for n, l := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		fail := func(what string) (map[string]*body, error) {
			return nil, fmt.Errorf("math.ptx:%d: %s: %s", n+1, what, l)
		}
		if m := functionHead.FindStringSubmatch(l); m != nil && ended {
			f, ended = &body{registers: map[string]int{}}, false
			out[m[1]] = f
			continue
		}
		if ended {
			if n > 0 && l != "}" {
				return fail("stands behind the end of a function")
			}
			continue
		}
		switch {
		case strings.HasPrefix(l, ".param") || l == ")" || l == "{":
		case registerLine.MatchString(l):
			m := registerLine.FindStringSubmatch(l)
			f.registers[m[1]], _ = strconv.Atoi(m[2])
		case parameterLoad.MatchString(l):
			f.lines = append(f.lines, fmt.Sprintf("mov.b32 \t%s, %%in;", parameterLoad.FindStringSubmatch(l)[1]))
		case resultStore.MatchString(l):
			f.lines = append(f.lines, fmt.Sprintf("mov.b32 \t%%out, %s;", resultStore.FindStringSubmatch(l)[1]))
		case l == "ret;": // nothing stands behind it
			ended = true
		case instruction.MatchString(l) && !strings.HasPrefix(l, "call"), label.MatchString(l):
			f.lines = append(f.lines, l)
		default:
			return fail("is not known")
		}
	}
	for _, n := range names {
		if out[n] == nil {
			return nil, fmt.Errorf("math.ptx has no function %s", n)
		}
	}
	return out, nil
}

// bodies are the functions by name.
var bodies = sync.OnceValue(func() map[string]*body {
	b, err := parseMath(mathText)
	if err != nil {
		panic(err) // INVARIANT: the text is part of the program; a test parses it.
	}
	return b
})
