// Command make compiles our own kernels to PTX and writes the archive of them:
//
//	go run ./backend/internal/prebuilt/make [-check | -same FILE] backend/internal/prebuilt/kernels.bin backend/internal/ptxwrite/math.ptx
//
// and the functions that generated kernels call. With -check it writes nothing, and fails if a file is not
// of today's sources. With -same it compiles all, and writes to FILE of which kernels the archive has these texts: they
// need not be made anew only because the compiler or a source is another one. Kernels whose sources have changed, and
// their texts too, are named and not noted.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/mlxc/mlxc/backend/internal/prebuilt"
	"github.com/mlxc/mlxc/backend/internal/ptxwrite"
	"github.com/mlxc/mlxc/internal/air/nvptx"
	"github.com/mlxc/mlxc/internal/files/atomicfile"
	"github.com/mlxc/mlxc/internal/toolchain/clang"
	"github.com/mlxc/mlxc/internal/toolchain/mslc"
)

// compiler is the clang that archives are made with, so that they are the same wherever they are made: that
// of scripts/fetch-clang.sh.
const compiler = 22

// find returns the clang, if it is the one.
func find(ctx context.Context) (clang.Compiler, error) {
	c, err := clang.Find(ctx)
	if err == nil && c.Version != compiler {
		err = fmt.Errorf("%s is clang %d: archives are made with clang %d; have %s name one (scripts/fetch-clang.sh fetches it to out/ziglang/zig)", c, c.Version, compiler, clang.Env)
	}
	return c, err
}

func main() {
	check := flag.Bool("check", false, "write nothing: fail if a file is not of today's sources")
	note := flag.String("same", "", "compile all, and note in this file of which kernels the archive has these texts")
	flag.Parse()
	if flag.NArg() != 2 {
		fmt.Fprintln(os.Stderr, "usage: make [-check | -same FILE] ARCHIVE MATH")
		os.Exit(2)
	}
	run, functions := write, writeMath
	if *check {
		run, functions = stale, staleMath
	}
	if *note != "" {
		run = func(ctx context.Context, path string) error { return same(ctx, path, *note) }
		functions = staleMath
	}
	ctx := context.Background()
	if err := errors.Join(functions(ctx, flag.Arg(1)), run(ctx, flag.Arg(0))); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// stale is an error that names what a file lacks.
func stale(_ context.Context, path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	a, err := prebuilt.Read(data)
	if err != nil {
		return err
	}
	wanted, _, err := prebuilt.Wanted()
	if err != nil {
		return err
	}
	var errs []error
	missing := 0
	named := map[string]bool{}
	for _, r := range wanted {
		if _, err := a.Find(r); err != nil {
			if missing++; !named[r.Function] && len(errs) < 12 {
				errs = append(errs, fmt.Errorf("%s: kernel %s: %w", r.File, r.Function, err))
			}
			named[r.Function] = true
		}
	}
	fmt.Printf("%s: %d of %d texts are of today's sources; %d kernels are not\n", path, len(wanted)-missing, len(wanted), len(named))
	return errors.Join(errs...)
}

func staleMath(_ context.Context, path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	stamp, err := ptxwrite.MathStamp()
	if err == nil && !strings.HasPrefix(string(text), stamp) {
		err = fmt.Errorf("%s is not of today's functions (internal/air/calls): run `make ptx`", path)
	}
	return err
}

func writeMath(ctx context.Context, path string) error {
	c, err := find(ctx)
	if err != nil {
		return err
	}
	text, err := ptxwrite.MathText(ctx, c)
	if err != nil {
		return err
	}
	return replace(path, []byte(text))
}

// replace writes a file, if that changes it.
func replace(path string, data []byte) error {
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, data) {
		return nil
	}
	return atomicfile.Replace(path, func(f *os.File) error {
		if _, err := f.Write(data); err != nil {
			return err
		}
		return f.Chmod(0o644)
	})
}

// same compares what is compiled today with an archive, and notes of which sources it is the same. That the same source
// makes another text is an error: such a kernel would be taken for today's.
func same(ctx context.Context, path, note string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	a, err := prebuilt.Read(data)
	if err != nil {
		return err
	}
	wanted, _, err := prebuilt.Wanted()
	if err != nil {
		return err
	}
	sources := a.AsToday(wanted) // texts are compared, one by one
	all, _, err := compile(ctx)
	if err != nil {
		return err
	}
	var errs []error
	differ := 0
	others := map[string]bool{}
	for _, k := range all {
		old, err := a.Find(k.Request)
		if err == nil && bytes.Equal(code(old.PTX), code(k.PTX)) {
			continue
		}
		differ++
		if _, ok := sources[k.Function]; !ok && err == nil && len(errs) < 12 {
			errs = append(errs, fmt.Errorf("%s: kernel %s: another text of the same source", k.File, k.Function))
		}
		others[k.Function] = true
	}
	fmt.Printf("%s: %d of %d texts are those of the compiler as it is\n", path, len(all)-differ, len(all))
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	for _, f := range slices.Sorted(maps.Keys(others)) {
		fmt.Printf("%s: compiled where it is needed\n", f)
		delete(sources, f)
	}
	return replace(note, []byte(prebuilt.Same(data, prebuilt.Maker(), sources)))
}

var (
	block   = regexp.MustCompile(`(?m)// %(v\d+\S*|[\w.]+$)`)
	mangled = regexp.MustCompile(`\b_ZZ\w+`)
)

// code returns a text without the remarks that name its blocks, and with its threadgroup variables numbered, whose
// mangled names have the types of the template that they stand in: texts with equal code are the same to the driver.
func code(ptx []byte) []byte {
	numbers := map[string]int{}
	return mangled.ReplaceAllFunc(block.ReplaceAll(ptx, nil), func(name []byte) []byte {
		n, ok := numbers[string(name)]
		if !ok {
			n = len(numbers)
			numbers[string(name)] = n
		}
		return fmt.Appendf(nil, "variable%d", n)
	})
}

// write writes all that is wanted.
func write(ctx context.Context, path string) error {
	out, text, err := compile(ctx)
	if err != nil {
		return err
	}
	data, err := prebuilt.Write(fmt.Sprintf("clang %d", compiler), out)
	if err != nil {
		return err
	}
	fmt.Printf("%s: %d kernels, %d bytes of PTX, %d compressed\n", path, len(out), text, len(data))
	return replace(path, data)
}

// compile compiles all that is wanted, and says how many bytes the texts have.
func compile(ctx context.Context) (out []prebuilt.Compiled, text int, err error) {
	c, err := find(ctx)
	if err != nil {
		return nil, 0, err
	}
	wanted, sources, err := prebuilt.Wanted()
	if err != nil {
		return nil, 0, err
	}
	functions := map[string][]string{}
	for _, r := range wanted {
		functions[r.File] = append(functions[r.File], r.Function)
	}
	units := map[string]*mslc.Unit{}
	var mu sync.Mutex
	var wait sync.WaitGroup
	var errs []error
	room := make(chan struct{}, runtime.GOMAXPROCS(0))
	for _, r := range wanted {
		u := units[r.File]
		if u == nil {
			if u, err = mslc.Compile(ctx, r.File, sources[r.File], mslc.Options{Kernels: functions[r.File], Lines: true}); err != nil {
				return nil, 0, err
			}
			units[r.File] = u
		}
		in, err := r.Input(u)
		if err != nil {
			return nil, 0, err
		}
		room <- struct{}{}
		wait.Go(func() {
			defer func() { <-room }()
			ptx, err := nvptx.Compile(ctx, c, in, r.Launch)
			mu.Lock()
			defer mu.Unlock()
			errs = append(errs, err)
			text += len(ptx)
			out = append(out, prebuilt.Compiled{Request: r, Kernel: prebuilt.Kernel{Description: in.Kernel, PTX: ptx}})
		})
	}
	wait.Wait()
	return out, text, errors.Join(errs...)
}
