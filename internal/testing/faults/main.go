// Command faults plants faults in the sources, one at a time, and asks which tests notice: first those of a run
// of make test, then, if none does, those that take every member of their families. A fault that only the latter
// notice is what sampling costs (docs/tests.md has the figures). No source changes: go builds with a file in place of
// another one. Random tests that fail leave what they drew in testdata/rapid, which git ignores; delete it afterwards.
//
//	go run ./internal/testing/faults -n 220 -o out/faults.jsonl
//
// What has been tried stands in the file, a line each, and is not tried again. With -whole 0 the tests of every member
// are left for another run, with which the file goes on.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// room is a part of the sources.
type room struct {
	name    string
	share   int      // of 100 faults
	sources []string // files, or folders with what is below them
	tests   []string // packages whose tests should notice
	sampled []string // those of them that take samples
}

var rooms = []room{
	{"kernels", 22, []string{"msl/*.metal", "msl/*.h"}, []string{"./msl/...", "./backend/softmetal"}, []string{"./backend/cpu", "./backend/softmetal"}},
	{"msl", 9, []string{"msl"}, []string{"./msl/...", "./prove", "./backend/cpu"}, []string{"./prove", "./backend/cpu", "./backend/softmetal"}},
	{"air", 13, []string{"internal/air"}, []string{"./internal/air/...", "./backend/softmetal"}, []string{"./internal/air/...", "./internal/toolchain/...", "./internal/testing/kernelcases", "./backend/softmetal"}},
	{"softmetal", 7, []string{"backend/softmetal"}, []string{"./backend/softmetal"}, []string{"./backend/softmetal", "./internal/testing/kernelcases", "./internal/infer"}},
	{"cpu", 9, []string{"backend/cpu"}, []string{"./backend/cpu/..."}, []string{"./backend/cpu/..."}},
	{"cuda", 9, []string{"backend/cuda", "backend/internal/ptxcode"}, []string{"./backend/internal/ptxcode", "./backend/cuda/..."}, []string{"./backend/internal/...", "./backend/cuda/..."}},
	{"metal", 9, []string{"backend/metal", "backend/internal/plan"}, []string{"./backend/internal/plan", "./backend/metal"}, []string{"./backend/metal/...", "./cmd/internal/doctor"}},
	{"prove", 9, []string{"prove", "internal/analysis"}, []string{"./internal/analysis/...", "./prove/..."}, []string{"./internal/analysis/hazard", "./prove/..."}},
	{"passes", 6, []string{"passes", "optimize"}, []string{"./passes/...", "./optimize/..."}, []string{"./optimize/...", "./internal/testing/judge"}},
	{"ir", 4, []string{"ir"}, []string{"./ir/..."}, []string{"./ir", "./ir/mlxg"}},
	{"text", 3, []string{"tokenizer", "cmd/internal/textgen"}, []string{"./tokenizer/...", "./cmd/internal/textgen"}, []string{"./tokenizer/...", "./cmd/internal/textgen"}},
}

var skip string

// tried is a line of the file.
type tried struct {
	Room  string `json:"room"`
	Fault string `json:"fault"` // file:offset and what stands there instead
	Line  string `json:"line"`  // before
	// The first test that noticed, in the samples of one run or several and of those of every member; - if none of the latter did,
	// empty if none was asked.
	Sample string `json:"sample,omitempty"`
	Runs   int    `json:"runs,omitempty"` // how many runs' samples were tried
	Whole  string `json:"whole,omitempty"`
	// Seconds of the clock.
	Seconds float64 `json:"seconds"`
}

func main() {
	n := flag.Int("n", 220, "how many faults")
	seed := flag.Uint64("seed", 1, "which ones")
	jobs := flag.Int("jobs", 1, "how many at a time")
	only := flag.String("room", "", "of this room alone")
	out := flag.String("o", "out/faults.jsonl", "file of results")
	whole := flag.Duration("whole", 20*time.Minute, "time for tests of every member; 0: none of them")
	runs := flag.Int("runs", 1, "how many runs of make test in a row are tried before those tests")
	flag.StringVar(&skip, "skip", "", "tests that do not run, as go test -skip has it: those that fail on this machine without a fault")
	again := flag.Bool("again", false, "those of the file alone, by the tests of every member if nothing has noticed them")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *n, *seed, *jobs, *runs, *only, *out, *whole, *again); err != nil {
		fmt.Fprintln(os.Stderr, "faults:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, n int, seed uint64, jobs, runs int, only, out string, whole time.Duration, again bool) error {
	before := map[string]tried{}
	if text, err := os.ReadFile(out); err == nil {
		for s := bufio.NewScanner(bytes.NewReader(text)); s.Scan(); {
			var x tried
			if json.Unmarshal(s.Bytes(), &x) == nil {
				before[x.Fault] = x
			}
		}
	}
	if jobs < 1 {
		return fmt.Errorf("-jobs is %d, want at least 1", jobs)
	}
	file, err := os.OpenFile(out, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer file.Close()
	for k, r := range rooms {
		if only != "" && only != r.name {
			continue
		}
		all, err := r.faults()
		if err != nil {
			return err
		}
		if test := r.notice(ctx, nil, "MLXC_SAMPLE=0", 1, 5*time.Minute, r.tests...); test != "" && ctx.Err() == nil {
			return fmt.Errorf("%s: %s fails without a fault: mend that first", r.name, test)
		}
		rng := rand.New(rand.NewPCG(seed, uint64(k)))
		rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		var mu sync.Mutex
		want, done, next := max(1, n*r.share/100), 0, 0
		// take returns the next fault to try, and its number; false if enough have been tried. With several jobs some
		// more may be tried than were asked for.
		take := func() (fault, int, bool) {
			mu.Lock()
			defer mu.Unlock()
			for done < want && next < len(all) && ctx.Err() == nil {
				i := next
				next++
				x, known := before[all[i].String()]
				if known && (x.Sample != "" || x.Whole != "" || whole == 0 && max(x.Runs, 1) >= runs) {
					done++
					continue
				}
				if again && !known {
					continue
				}
				return all[i], i, true
			}
			return fault{}, 0, false
		}
		var wg sync.WaitGroup
		for range jobs {
			wg.Go(func() {
				for {
					f, i, ok := take()
					if !ok {
						return
					}
					x, ok := f.try(ctx, r, before[f.String()], i%16, runs, jobs, whole)
					if !ok { // it does not compile
						continue
					}
					mu.Lock()
					done++
					line, _ := json.Marshal(x)
					fmt.Fprintf(file, "%s\n", line)
					fmt.Printf("%-9s %-60s sample: %s (%d) whole: %s %.0f s\n", x.Room, x.Fault, x.Sample, x.Runs, x.Whole, x.Seconds)
					mu.Unlock()
				}
			})
		}
		wg.Wait()
	}
	return ctx.Err()
}

// fault is one text in place of another.
type fault struct {
	path     string
	from, to int
	text     string
	line     string
}

func (f fault) String() string { return fmt.Sprintf("%s:%d %q", f.path, f.from, f.text) }

// faults are all that can be planted in a room.
func (r room) faults() (out []fault, err error) {
	for _, s := range r.sources {
		paths, err := filepath.Glob(s)
		if err != nil {
			return nil, err
		}
		for _, p := range paths {
			err := filepath.WalkDir(p, func(path string, d fs.DirEntry, err error) error {
				if err != nil {
					return err
				}
				if d.IsDir() {
					if slices.Contains([]string{"testdata", "conformance", "make", "irtest"}, d.Name()) {
						return fs.SkipDir
					}
					return nil
				}
				text, err := os.ReadFile(path)
				if err != nil {
					return err
				}
				switch {
				case strings.HasSuffix(path, "_test.go"), strings.Contains(path, "_darwin"), strings.Contains(path, "_arm64"), strings.Contains(path, "_other"):
				case strings.HasSuffix(path, ".go") && !bytes.Contains(text, []byte("DO NOT EDIT")):
					out = append(out, inGo(path, text)...)
				case (strings.HasSuffix(path, ".metal") || strings.HasSuffix(path, ".h")) && r.name == "kernels", strings.HasSuffix(path, ".c"):
					out = append(out, inC(path, text)...)
				}
				return nil
			})
			if err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

var failed = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)|^panic: (test timed out)|^(panic|fatal error|FAIL)`)

// try plants the fault; false if it does not compile. known is what was tried before, if anything.
func (f fault) try(ctx context.Context, r room, known tried, sample, runs, jobs int, long time.Duration) (tried, bool) {
	start := time.Now()
	dir, err := os.MkdirTemp("", "fault")
	if err != nil {
		return tried{}, false
	}
	defer os.RemoveAll(dir)
	text, err := os.ReadFile(f.path)
	if err != nil {
		return tried{}, false
	}
	here, _ := filepath.Abs(f.path)
	list := filepath.Join(dir, "overlay.json")
	table, _ := json.Marshal(map[string]any{"Replace": map[string]string{here: filepath.Join(dir, "wrong")}})
	wrong := slices.Concat(text[:f.from], []byte(f.text), text[f.to:])
	if os.WriteFile(filepath.Join(dir, "wrong"), wrong, 0o600) != nil || os.WriteFile(list, table, 0o600) != nil {
		return tried{}, false
	}
	overlay := []string{"-overlay", list}
	if strings.HasSuffix(f.path, ".go") {
		if _, err := goCommand(ctx, "", jobs, time.Minute, append(append([]string{"build"}, overlay...), "./"+filepath.Dir(f.path))...); err != nil {
			return tried{}, false
		}
	}
	x := tried{Room: r.name, Fault: f.String(), Line: f.line, Runs: known.Runs}
	if known.Fault != "" {
		x.Runs = max(x.Runs, 1)
	}
	for x.Sample == "" && x.Runs < runs && ctx.Err() == nil {
		for _, p := range r.tests {
			if x.Sample = r.notice(ctx, overlay, fmt.Sprintf("MLXC_SAMPLE=%d", (sample+x.Runs)%64), jobs, 5*time.Minute, p); x.Sample != "" {
				break
			}
		}
		x.Runs++
	}
	if x.Sample == "" && long > 0 {
		if x.Whole = r.notice(ctx, overlay, "MLXC_LONG=1", jobs, long, r.sampled...); x.Whole == "" {
			x.Whole = "-"
		}
	}
	x.Seconds = known.Seconds + time.Since(start).Seconds()
	return x, ctx.Err() == nil
}

// notice runs the tests of packages, and returns the first that fails; "" if none does.
func (r room) notice(ctx context.Context, overlay []string, env string, jobs int, limit time.Duration, packages ...string) string {
	args := append([]string{"test"}, overlay...)
	args = append(args, "-vet=off", "-ldflags=-w", "-count=1", "-failfast", fmt.Sprintf("-timeout=%v", limit))
	if skip != "" {
		args = append(args, "-skip="+skip)
	}
	out, err := goCommand(ctx, env, jobs, limit, append(args, packages...)...)
	if err == nil || ctx.Err() != nil {
		return ""
	}
	if m := failed.FindStringSubmatch(out); m != nil {
		return strings.Join(m[1:], "")
	}
	return "ended"
}

// goCommand runs the go command on its share of the cores.
func goCommand(ctx context.Context, env string, jobs int, limit time.Duration, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, limit+time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Env = append(os.Environ(), env, fmt.Sprintf("GOMAXPROCS=%d", max(1, runtime.NumCPU()/jobs)))
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	return string(out), err
}
