package clang

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// MinVersion is the minimum major version: the first whose bitcode reader accepts what Apple's compilers wrote for
// MLX's libraries.
const MinVersion = 19

// maxVersion is the highest version whose numbered name (clang-N) is tried.
const maxVersion = 24

// Env names the environment variable that chooses the compiler.
const Env = "MLXC_CLANG"

// OldestEnv names the environment variable that chooses the compiler of [Oldest].
const OldestEnv = "MLXC_CLANG_OLDEST"

// Compiler is a clang whose version is known.
type Compiler struct {
	Path    string   // of the program
	prefix  []string // arguments that make the program clang: ["clang"] of zig
	Version int      // its major version
	// Trust lets the compiler run without a cage where none is available ([Compiler.Run]): its input is our own, or
	// the user has said that he trusts it.
	Trust bool
}

// Command returns a command that runs the compiler's driver, which takes C++ with `-x c++`. Its messages are in
// English, whatever the user's language, so that they can be compared.
func (c Compiler) Command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, c.Path, append(append([]string(nil), c.prefix...), args...)...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	return cmd
}

// Link returns a command that links a shared object from others, and from nothing else; args are `-o OUT IN…`.
func (c Compiler) Link(ctx context.Context, args ...string) *exec.Cmd {
	if len(c.prefix) > 0 { // zig, which brings lld; for one small object threads cost more than they bring
		cmd := exec.CommandContext(ctx, c.Path, append([]string{"ld.lld", "-shared", "--threads=1"}, args...)...)
		cmd.Env = append(os.Environ(), "LC_ALL=C")
		return cmd
	}
	return c.Command(ctx, append([]string{"-shared", "-nostdlib"}, args...)...)
}

// Program returns a command that compiles C to a program or a shared library of this machine, without the compiler's
// runtime library, which zig would first compile for some seconds.
func (c Compiler) Program(ctx context.Context, args ...string) *exec.Cmd {
	if len(c.prefix) > 0 { // zig cc brings the C library's headers
		args = slices.Clone(args)
		for i, a := range args {
			if level, ok := strings.CutPrefix(a, "-march=x86-64-"); ok { // as zig spells it
				args[i] = "-march=x86_64_" + level
			}
		}
		cmd := exec.CommandContext(ctx, c.Path, append([]string{"cc", "-rtlib=none"}, args...)...)
		cmd.Env = append(os.Environ(), "LC_ALL=C")
		return cmd
	}
	return c.Command(ctx, args...)
}

// String returns the command with which a user would start it.
func (c Compiler) String() string {
	return strings.Join(append([]string{c.Path}, c.prefix...), " ")
}

// found has the compilers by path, so that a process asks each program for its version only once.
var found struct {
	sync.Mutex
	byPath map[string]Compiler
}

// Find returns the compiler, or an error that says what was looked for and how
// to get one.
func Find(ctx context.Context) (Compiler, error) {
	if name := os.Getenv(Env); name != "" {
		return named(ctx, Env, name)
	}
	var unfit []error // programs that exist and do not serve
	for _, path := range candidates() {
		c, err := probe(ctx, path)
		if err == nil {
			return c, nil
		}
		if ctx.Err() != nil {
			return Compiler{}, ctx.Err()
		}
		unfit = append(unfit, err)
	}
	err := fmt.Errorf("no clang %d or later found: put one on PATH (Debian: the package clang-19), or install one without root (pip install ziglang; in the source tree scripts/fetch-clang.sh), or name one in %s", MinVersion, Env)
	return Compiler{}, errors.Join(append([]error{err}, unfit...)...)
}

// named returns the compiler that an environment variable names.
func named(ctx context.Context, env, name string) (Compiler, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return Compiler{}, fmt.Errorf("%s: %w", env, err)
	}
	c, err := probe(ctx, path)
	if err != nil {
		return Compiler{}, fmt.Errorf("%s: %w", env, err)
	}
	return c, nil
}

// Oldest returns a compiler of [MinVersion], with which tests are repeated: the text of LLVM's IR, and what is
// compiled from it, differ from version to version.
func Oldest(ctx context.Context) (c Compiler, err error) {
	path, missing := exec.LookPath("clang-" + strconv.Itoa(MinVersion))
	switch name := os.Getenv(OldestEnv); {
	case name != "":
		c, err = named(ctx, OldestEnv, name)
	case missing == nil:
		c, err = probe(ctx, path)
	case fetched("ziglang-19") != "":
		c, err = probe(ctx, fetched("ziglang-19"))
	default:
		return Compiler{}, fmt.Errorf("no clang %d found: run scripts/fetch-clang.sh oldest, which needs no root, or name one in %s", MinVersion, OldestEnv)
	}
	if err == nil && c.Version != MinVersion {
		return Compiler{}, fmt.Errorf("%s is clang %d, not %d", c, c.Version, MinVersion)
	}
	return c, err
}

// candidates returns the paths of the programs that exist, best first.
func candidates() []string {
	names := []string{"clang"}
	for v := maxVersion; v >= MinVersion; v-- {
		names = append(names, "clang-"+strconv.Itoa(v))
	}
	names = append(names, "zig")
	var paths []string
	for _, n := range names {
		if p, err := exec.LookPath(n); err == nil {
			paths = append(paths, p)
		}
	}
	if p := fetched("ziglang"); p != "" {
		paths = append(paths, p)
	}
	return append(paths, inPython()...)
}

// fetched returns the path of the program that scripts/fetch-clang.sh puts in a folder of out/, in the source tree
// around the working folder, or "".
func fetched(folder string) string {
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	for {
		if mod, err := os.ReadFile(filepath.Join(dir, "go.mod")); err == nil {
			p := filepath.Join(dir, "out", folder, "zig")
			if _, err := os.Stat(p); err == nil && strings.HasPrefix(string(mod), "module github.com/mlxc/mlxc\n") {
				return p
			}
			return ""
		}
		up := filepath.Dir(dir)
		if up == dir {
			return ""
		}
		dir = up
	}
}

// versionLine is what `clang --version` begins with, behind the name of a
// distribution or vendor.
var versionLine = regexp.MustCompile(`(?m)^(.*)clang version (\d+)\.`)

// probe asks the program for its version.
func probe(ctx context.Context, path string) (Compiler, error) {
	found.Lock()
	defer found.Unlock()
	if c, ok := found.byPath[path]; ok {
		return c, nil
	}
	c := Compiler{Path: path}
	base := strings.TrimSuffix(filepath.Base(path), ".exe")
	if base == "zig" || base == "python-zig" {
		c.prefix = []string{"clang"}
	}
	out, err := c.Command(ctx, "--version").Output()
	if err != nil {
		return Compiler{}, fmt.Errorf("%s --version: %w", c, err)
	}
	m := versionLine.FindSubmatch(out)
	switch {
	case m == nil:
		first, _, _ := strings.Cut(string(out), "\n")
		return Compiler{}, fmt.Errorf("%s: no clang: it says %q", c, first)
	case strings.HasPrefix(string(m[1]), "Apple"):
		return Compiler{}, fmt.Errorf("%s: Apple's clang, which has no GPU targets", c)
	}
	c.Version, err = strconv.Atoi(string(m[2]))
	if err != nil || c.Version < MinVersion {
		return Compiler{}, fmt.Errorf("%s: clang %s, at least %d is needed", c, m[2], MinVersion)
	}
	if found.byPath == nil {
		found.byPath = map[string]Compiler{}
	}
	found.byPath[path] = c
	return c, nil
}
