//go:build linux

package fakemetal

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/ebitengine/purego"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/toolchain/clang"
)

//go:embed c
var source embed.FS

// Library is the loaded shared library, with the functions by which tests control it.
type Library struct {
	Path string

	failures func() int
	failure  func(i int) string
	forgive  func()
	live     func(class string) int
	made     func(class string) int
	sent     func(selector string) int
	inline   func() int
	class    func(i int) string
	note     func(text string)
	label    func(i int) string

	reset      func()
	option     func(name string, value int) bool
	inject     func(operation, nth, code int, text string) bool
	connect    func(socket int)
	disconnect func() int
	seed       func(n int)
	idle       func(on bool)
	knows      func(class, selector string, static bool) bool

	mishear                       func(class, selector string, nth, how, arg, at, by int, as string)
	misheard                      func() int
	count                         func()
	peak                          func() int
	countedClass, countedSelector func(i int) string
	counted                       func(i int) int
}

// emulated returns the target triple and the emulator's command, by MLXC_EMULATE, if the tests run as
// linux/arm64 programs under an emulator (make arm64); else nothing.
func emulated() (triple string, emulator []string) {
	if f := strings.Fields(os.Getenv("MLXC_EMULATE")); len(f) > 1 && runtime.GOARCH == "arm64" {
		return f[0], f[1:]
	}
	return "", nil
}

// trusted reports whether sources compile without a cage: an emulator has none, and tests' kernels are their own.
func trusted() bool {
	triple, _ := emulated()
	return triple != ""
}

// Build compiles the library, unless an earlier test run did, and loads it.
func Build(t testing.TB) *Library {
	t.Helper()
	ctx := context.Background()
	c, err := clang.Find(ctx)
	require.NoError(t, err)
	files, err := source.ReadDir("c")
	require.NoError(t, err)
	h := sha256.New()
	fmt.Fprintf(h, "%s %d\n", c.Path, c.Version)
	dir := t.TempDir()
	args := []string{"-O1", "-g", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-fvisibility=hidden", "-fPIC", "-shared", "-pthread"}
	if triple, _ := emulated(); triple != "" {
		args = append(args, "--target="+triple)
	}
	fmt.Fprintf(h, "%s\n", runtime.GOARCH)
	for _, f := range files {
		text, err := source.ReadFile("c/" + f.Name())
		require.NoError(t, err)
		fmt.Fprintf(h, "%s %d\n%s", f.Name(), len(text), text)
		require.NoError(t, os.WriteFile(filepath.Join(dir, f.Name()), text, 0o600))
		if strings.HasSuffix(f.Name(), ".c") {
			args = append(args, filepath.Join(dir, f.Name()))
		}
	}
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	cache = filepath.Join(cache, "mlxc", "test")
	require.NoError(t, os.MkdirAll(cache, 0o755))
	path := filepath.Join(cache, "fakemetal-"+hex.EncodeToString(h.Sum(nil)[:12])+".so")
	if _, err := os.Stat(path); err != nil {
		made := filepath.Join(dir, "fakemetal.so")
		out, err := c.Program(ctx, append(args, "-o", made)...).CombinedOutput()
		require.NoError(t, err, "%s", out)
		data, err := os.ReadFile(made)
		require.NoError(t, err)
		// Written to another name and renamed: another test may look for the file meanwhile.
		f, err := os.CreateTemp(cache, ".fakemetal")
		require.NoError(t, err)
		_, err = f.Write(data)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		require.NoError(t, os.Rename(f.Name(), path))
	}
	h2, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	require.NoError(t, err)
	l := &Library{Path: path}
	for name, f := range map[string]any{
		"failures": &l.failures, "failure": &l.failure, "forgive": &l.forgive, "live": &l.live, "made": &l.made,
		"sent": &l.sent, "inline_bytes": &l.inline, "class": &l.class, "note": &l.note, "label": &l.label, "reset": &l.reset,
		"option": &l.option, "inject": &l.inject, "connect": &l.connect, "disconnect": &l.disconnect, "seed": &l.seed, "idle": &l.idle, "knows": &l.knows,
		"mishear": &l.mishear, "misheard": &l.misheard, "count": &l.count, "peak": &l.peak, "counted": &l.counted,
		"counted_class": &l.countedClass, "counted_selector": &l.countedSelector,
	} {
		purego.RegisterLibFunc(f, h2, "fakemetal_"+name)
	}
	return l
}

// Failures returns, in order, the mistakes that were noted since Failures was last called.
func (l *Library) Failures() []string {
	n := l.failures()
	defer l.forgive()
	out := make([]string, 0, n)
	for i := range n {
		if s := l.failure(i); s != "" {
			out = append(out, s)
		}
	}
	if len(out) < n {
		out = append(out, fmt.Sprintf("and %d more", n-len(out)))
	}
	return out
}

// Live returns the number of objects of a class and its subclasses that have not been freed.
func (l *Library) Live(class string) int { return l.live(class) }

// Made returns the number of objects of a class and its subclasses that were ever made.
func (l *Library) Made(class string) int { return l.made(class) }

// Peak returns the max number of command buffers that were committed and not completed at the same time, since
// its last call.
func (l *Library) Peak() int { return l.peak() }

// Sent returns how many messages with a selector were sent.
func (l *Library) Sent(selector string) int { return l.sent(selector) }

// InlineBytes returns how many bytes setBytes:length:atIndex: has copied.
func (l *Library) InlineBytes() int { return l.inline() }

// Labels returns the labels and debug groups that were set since [Library.Serve], each with the class of
// the object, or "group", before it: "MTLBuffer weights".
func (l *Library) Labels() []string {
	var out []string
	for i := 0; ; i++ {
		s := l.label(i)
		if s == "" {
			return out
		}
		out = append(out, s)
	}
}

// Knows reports whether objects of a class, or with static the class itself, understand a selector.
func (l *Library) Knows(class, selector string, static bool) bool {
	return l.knows(class, selector, static)
}

// classes returns the names of all classes.
func (l *Library) classes() []string {
	var out []string
	for i := 0; ; i++ {
		name := l.class(i)
		if name == "" {
			return out
		}
		out = append(out, name)
	}
}
