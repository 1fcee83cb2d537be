package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/mlxc/mlxc/internal/air"
	"github.com/mlxc/mlxc/internal/air/host"
	"github.com/mlxc/mlxc/internal/files/mmap"
	"github.com/mlxc/mlxc/internal/metallib"
	"github.com/mlxc/mlxc/internal/toolchain/clang"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// options are those of the command line.
type options struct {
	shard, shards int
	seed          uint64
	jobs, limit   int
	target        string
	checked, ptx  bool
	results       string
	kernels       *regexp.Regexp
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o := options{shard: 1, shards: 1}
	flags := flag.NewFlagSet("coverage", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Func("shard", "`I/N`: of every N kernels, the I-th", func(s string) error {
		if n, err := fmt.Sscanf(s, "%d/%d", &o.shard, &o.shards); err != nil || n != 2 || o.shard < 1 || o.shard > o.shards {
			return fmt.Errorf("%q is no I/N with I from 1 to N", s)
		}
		return nil
	})
	flags.Uint64Var(&o.seed, "seed", 1, "chooses the order of kernels")
	flags.IntVar(&o.jobs, "jobs", runtime.GOMAXPROCS(0), "how many kernels at a time")
	flags.IntVar(&o.limit, "limit", 0, "how many kernels of each library at most; 0: all")
	flags.StringVar(&o.target, "target", "", "a `triple` of LLVM's to compile objects for, instead of this machine")
	flags.BoolVar(&o.checked, "checked", false, "with the checks of mlxreplay check")
	flags.BoolVar(&o.ptx, "ptx", false, "to PTX, for NVIDIA's GPUs")
	flags.StringVar(&o.results, "results", "", "the `file` that keeps results")
	flags.Func("kernels", "only those whose names match the `expression`", func(s string) (err error) {
		o.kernels, err = regexp.Compile(s)
		return err
	})
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return 0
		}
		return 2
	}
	if flags.NArg() == 0 || o.jobs < 1 {
		fmt.Fprintln(stderr, "usage: coverage [flags] LIBRARY.metallib …")
		return 2
	}
	compiler, err := clang.Find(ctx)
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	kept, err := openResults(o.results)
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 3
	}
	defer kept.close()
	if o.ptx {
		o.target = "ptx"
	}
	fmt.Fprintf(stdout, "%s: clang %d\n", compiler, compiler.Version)
	c := coverage{
		options: o, checker: checker{compiler, o.target, o.checked, o.ptx}, kept: kept,
		with: fmt.Sprintf("%x", host.Key(compiler, air.Input{Kernel: &air.Kernel{}})), progress: stderr,
	}
	for _, path := range flags.Args() {
		total, passed, err := c.library(ctx, path)
		if err != nil {
			fmt.Fprintln(stderr, err)
			if ctx.Err() != nil {
				return 130
			}
			return 3
		}
		fmt.Fprintf(stdout, "%s: of %d kernels, %d compile\n", path, total, passed)
	}
	if len(c.failures) > 0 {
		report(stdout, c.failures)
		return 1
	}
	return 0
}

// coverage is the state of a run of the command.
type coverage struct {
	options
	checker  checker
	kept     *results
	with     string
	progress io.Writer

	mu       sync.Mutex
	failures []failure
}

// library compiles this shard's kernels of a library, and returns how many there are and how
// many compile.
func (c *coverage) library(ctx context.Context, path string) (total, passed int, err error) {
	m, err := mmap.Open(path)
	if err != nil {
		return 0, 0, err
	}
	defer m.Close()
	lib, err := metallib.Parse(path, m.Bytes())
	if err != nil {
		return 0, 0, err
	}
	names := c.choose(lib)
	next := make(chan string)
	var workers sync.WaitGroup
	var done, failed atomic.Int64
	var written error
	for range c.jobs {
		workers.Go(func() {
			for name := range next {
				x := result{With: c.with, Library: path, Target: c.target, Checked: c.checked, Kernel: name}
				if !c.kept.passed[x] {
					if err := c.checker.check(ctx, lib, name); err != nil {
						x.Error = err.Error()
					}
					if ctx.Err() != nil {
						return
					}
					c.mu.Lock()
					if x.Error != "" {
						failed.Add(1)
						c.failures = append(c.failures, failure{path, name, x.Error})
					}
					written = errors.Join(written, c.kept.add(x))
					c.mu.Unlock()
				}
				if n := done.Add(1); n%100 == 0 {
					fmt.Fprintf(c.progress, "%s: %d of %d, %d fail\n", path, n, len(names), failed.Load())
				}
			}
		})
	}
feed:
	for _, name := range names {
		select {
		case next <- name:
		case <-ctx.Done():
			break feed
		}
	}
	close(next)
	workers.Wait()
	if err := errors.Join(written, ctx.Err()); err != nil {
		return 0, 0, err
	}
	return len(names), len(names) - int(failed.Load()), nil
}

// choose returns the names of this shard's kernels in the order of work.
func (c *coverage) choose(lib *metallib.Library) (out []string) {
	var names []string
	for _, k := range lib.Kernels {
		if c.kernels == nil || c.kernels.MatchString(k.Name) {
			names = append(names, k.Name)
		}
	}
	names = inOrder(names, c.seed)
	if c.limit > 0 && len(names) > c.limit {
		names = names[:c.limit]
	}
	for i := c.shard - 1; i < len(names); i += c.shards {
		out = append(out, names[i])
	}
	return out
}
