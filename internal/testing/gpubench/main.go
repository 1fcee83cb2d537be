package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/mlxc/mlxc/backend"
	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/backend/softmetal"
	"github.com/mlxc/mlxc/cost"
	"github.com/mlxc/mlxc/ir"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// bench is one run.
type bench struct {
	ctx            context.Context
	device, cache  string
	tiny           bool
	rounds, tokens int
	until          time.Time // no further figure is begun after it
	out            io.Writer
	model          cost.Model // what was measured, so far
	copy           float64    // bytes a second of a copy, read and written
	fit            *cost.Fit  // of kernels
	known          map[kind]bool
	made           map[making]*ir.Module // by the model as it is now
	serial         float64               // seconds of the smallest kernel behind another
	failed         bool
	rows           []any  // for the file of all figures
	shape          string // of the model that rows are of, if they are of one of several
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	b := &bench{ctx: ctx, out: stdout}
	flags := flag.NewFlagSet("gpubench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	var parts, profile, load, folder string
	var limit time.Duration
	flags.StringVar(&b.device, "device", "cuda", "cuda, softmetal or cpu")
	flags.StringVar(&b.cache, "cache", "", "folder of compiled kernels (default: the user's)")
	flags.StringVar(&parts, "parts", "costs,kernels,decode,alone,large,half,fusions,dense,caches", "what to measure")
	flags.BoolVar(&b.tiny, "tiny", false, "small sizes, to try the program")
	flags.IntVar(&b.rounds, "rounds", 7, "measurements of each figure; their median is printed")
	flags.IntVar(&b.tokens, "tokens", 128, "tokens to decode in one measurement")
	flags.StringVar(&profile, "write-profile", "", "write the measured costs to this file")
	flags.StringVar(&load, "profile", "", "believe this profile where costs are not measured")
	flags.StringVar(&folder, "out", "", "folder for figures.json")
	flags.DurationVar(&limit, "limit", 8*time.Minute, "begin no further figure after this time")
	if err := flags.Parse(args); err != nil || flags.NArg() > 0 || b.rounds < 1 || b.tokens < 2 {
		return 2
	}
	b.until = time.Now().Add(limit)
	if load != "" {
		m, err := cost.LoadProfile(load)
		if err != nil {
			fmt.Fprintln(stderr, err)
			return 3
		}
		b.model, b.copy, b.serial = m, m.Bandwidth, float64(m.Launch)
	}
	b.fit, b.known = cost.NewFit(b.model), map[kind]bool{}
	known := map[string]func() error{"costs": b.costs, "kernels": b.kernels, "decode": b.decode, "alone": b.alone, "large": b.large, "half": b.half, "fusions": b.fusions, "dense": b.dense, "caches": b.caches}
	for part := range strings.SplitSeq(parts, ",") {
		do := known[part]
		if do == nil {
			fmt.Fprintf(stderr, "there is no part %q (there are costs, kernels, decode, alone, large, half, fusions, dense and caches)\n", part)
			return 2
		}
		begin := time.Now()
		clear(b.made)
		if err := do(); err != nil {
			b.fail(part, err)
		}
		fmt.Fprintf(stdout, "\n(%s took %.1f s)\n", part, time.Since(begin).Seconds())
		runtime.GC()
		if ctx.Err() != nil {
			return 130
		}
		if err := b.write(folder, profile); err != nil {
			fmt.Fprintln(stderr, err)
			return 1
		}
	}
	if b.failed {
		return 1
	}
	return 0
}

// fail notes a figure that could not be had.
func (b *bench) fail(what string, err error) {
	b.failed = true
	text := strings.Join(strings.Fields(err.Error()), " ")
	fmt.Fprintf(b.out, "| %s | failed: %.300s |\n", what, text)
	b.rows = append(b.rows, map[string]string{"what": what, "failed": text})
}

// late reports whether the time is over, and notes that as a failure.
func (b *bench) late(what string) bool {
	if time.Now().Before(b.until) {
		return false
	}
	b.fail(what, fmt.Errorf("the time is over"))
	return true
}

// write writes the files of what was measured so far.
func (b *bench) write(folder, profile string) error {
	if folder != "" {
		data, err := json.MarshalIndent(b.rows, "", " ")
		if err != nil {
			return err
		}
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, "figures.json"), append(data, '\n'), 0o644); err != nil {
			return err
		}
	}
	if profile == "" || b.model.Bandwidth == 0 {
		return nil
	}
	f, err := os.Create(profile)
	if err != nil {
		return err
	}
	if err := b.model.WriteProfile(f); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// plan is how a device runs replays.
type plan struct {
	name string
	// of device cuda: stream, chain or edges; full: without programmatic dependent launches
	cuda string
	full bool
	// measured is the plan's name in a profile
	measured string
	noMMA    bool // nothing is multiplied by tensor cores
	generic  bool // code for compute capability 9.0 alone is left out
}

var (
	onStream = plan{"on a stream", "stream", true, "stream", false, false}
	asChain  = plan{"graph", "chain", true, "chain", false, false}
	waiting  = plan{"graph, kernels wait by themselves", "chain", false, "chain-waiting", false, false}
	byEdges  = plan{"graph of edges", "edges", true, "edges", false, false}
	edgesToo = plan{"graph of edges, kernels wait by themselves", "edges", false, "edges-waiting", false, false}
	plain    = plan{"graph, kernels wait by themselves, without tensor cores", "chain", false, "chain-waiting", true, false}
	generic  = plan{"graph, kernels wait by themselves, code for any GPU", "chain", false, "chain-waiting", false, true}
)

// open opens the device.
func (b *bench) open(p plan) (backend.Device, func(), error) {
	switch b.device {
	case "cuda":
		return openCUDA(b.ctx, p, b.cache)
	case "softmetal":
		d, err := softmetal.New(b.ctx, softmetal.Options{Cache: b.cache})
		if err != nil {
			return nil, nil, err
		}
		return d, func() { d.Close() }, nil
	case "cpu":
		d := cpu.New(0)
		return d, func() { d.Close() }, nil
	}
	return nil, nil, fmt.Errorf("there is no device %q (there are cuda, softmetal and cpu)", b.device)
}
