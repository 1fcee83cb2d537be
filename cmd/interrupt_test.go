//go:build unix

package cmd_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/frontend/trace"
	"github.com/mlxc/mlxc/internal/testing/metallibs"
	"github.com/mlxc/mlxc/internal/testing/sample"
	"github.com/mlxc/mlxc/internal/toolchain/clang"
)

// interrupted is a command that takes long on the files of TestInterruptEndsEveryCommand.
type interrupted struct {
	args  string
	stdin string // fed to it for ever; empty: nothing ever comes from standard input
	once  string // fed to it once, and nothing more comes
	shown string // the signal comes once standard output has this; empty: at any time
	again bool   // the first signal ends an answer, one that comes soon after it the command
}

// long lists every command that may take long, by name; short are the others.
var (
	long = map[string][]interrupted{
		"mlxc": {
			{args: "optimize g.mlxg -o out.mlxg"}, {args: "optimize m.mlxg -o out.mlxg --verify"},
			{args: "verify g.mlxg"}, {args: "verify g.mlxg g.mlxg"}, {args: "verify -"}, {args: "stats g.mlxg"}, {args: "report g.mlxg"},
			{args: "reduce g.mlxg -o out.mlxg --check grep${IFS}-q${IFS}vv_Add${IFS}{}"}, {args: "reduce g.mlxg -o out.mlxg --check sleep${IFS}1000"},
			{args: "dump g.mlxg"}, {args: "dump -f json g.mlxg"}, {args: "dump -f dot g.mlxg"}, {args: "dump g.mlxg --html out.html"}, {args: "optimize g.mlxg -o out.mlxg --html out.html"},
			{args: "diff g.mlxg g.mlxt"},
			{args: "asm g.mlxt -o out.mlxg"}, {args: "disasm g.mlxg -o out.mlxt"}, {args: "record model.gguf -o out.mlxg"},
			{args: "capture -o out.mlxtrace sleep 1000"}, {args: "import log.mlxtrace -o out.mlxg"}, {args: "kernels mlx.metallib"}, {args: "kernels mlx.metallib --json"},
			{args: "effects g.mlxg"}, {args: "effects m.mlxg --infer --shapes 100000 --graph decode -o out.effects"},
		},
		"mlxreplay": {
			{args: "run g.mlxg --zeros --repeat 100000 --max-work 10000h --out y=out.npy"},
			{args: "run loop.mlxt --zeros --max-work 2000000h --out y=out.npy"}, // one command
			{args: "generate m.mlxg -p Once -n 2000 --ignore-eos --logits out.npy"},
			{args: "generate m.mlxg -p Once -n 2000 --ignore-eos", shown: " "}, // within the answer
			{args: "generate model.gguf -p Once -n 2000 --ignore-eos"},
			{args: "chat m.mlxg", once: "Hi\n", shown: "\n"}, // it waits for the next message
			{args: "chat m.mlxg", stdin: "Hi\n", again: true},
			{args: "bench m.mlxg --rounds 1000 --max-work 10000h"},
			{args: "profile g.mlxg --rounds 100000 --max-work 10000h --trace out.json"}, {args: "profile m.mlxg --rounds 1000 --max-work 10000h --html out.html"},
			{args: "bench m.mlxg --graph prefill --set pos=0 --set n=128 --rounds 1000 --max-work 10000h"},
			{args: "check g.mlxg"}, {args: "doctor --device cpu"}, {args: "compare g.mlxg --device cpu --replays 1000000 --max-work 100000h"},
			{args: "tokenize m.mlxg", stdin: "One line after the other. \n"}, {args: "tokenize model.gguf", stdin: "All in one line. "},
		},
	}
	short = map[string][]string{"mlxc": {"passes", "completion", "manual"}, "mlxreplay": {"devices", "completion", "manual"}}
)

// Every subcommand is interrupted below, or takes no time.
func TestEveryCommandIsInterrupted(t *testing.T) {
	for name, list := range long {
		help, err := exec.Command(name, "--help").CombinedOutput()
		require.NoError(t, err, "%s", help)
		_, commands, ok := strings.Cut(string(help), "Commands:\n")
		require.True(t, ok, "%s", help)
		known := slices.Clone(short[name])
		for _, c := range list {
			sub, _, _ := strings.Cut(c.args, " ")
			known = append(known, sub)
		}
		for _, m := range regexp.MustCompile(`(?m)^  (\w+) `).FindAllStringSubmatch(commands, -1) {
			assert.Contains(t, known, m[1], "%s has a command of which nobody knows whether Ctrl-C ends it", name)
		}
	}
}

// Ctrl-C ends every long command, whenever it comes: within a second, with exit code
// 130, and nothing is left over. When it comes, and how long the command goes on,
// is measured in the processor time that the command takes, because a busy machine
// lets it wait as long as it likes.
func TestInterruptEndsEveryCommand(t *testing.T) {
	sample.Long(t)
	commands, times := 100_000, 1 // how often each is interrupted
	if sample.Whole() {
		commands, times = 1_000_000, 10
	}
	model := modelPath(t)
	compiler, err := clang.Find(context.Background()) // here: the commands run elsewhere
	require.NoError(t, err)
	t.Setenv(clang.Env, compiler.Path)
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	require.NoError(t, os.WriteFile(at("g.mlxt"), []byte(chain(commands)), 0o600))
	loop, err := os.ReadFile("../testdata/review/files/hc-col_reduce_loope2e12.mlxt")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(at("loop.mlxt"), loop, 0o600))
	require.NoError(t, os.WriteFile(at("log.mlxtrace"), traced(t, commands), 0o600))
	require.NoError(t, os.Symlink(model, at("model.gguf")))
	require.NoError(t, os.Symlink(metallibs.Path(t, "0.32.4"), at("mlx.metallib")))
	for _, c := range [][]string{{"asm", at("g.mlxt"), "-o", at("g.mlxg")}, {"record", model, "-o", at("m.mlxg")}} {
		out, err := exec.Command("mlxc", c...).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	for _, name := range []string{"mlxc", "mlxreplay"} {
		for _, c := range sample.Of(t, name, long[name], sample.Few) {
			t.Run(name+"_"+strings.ReplaceAll(c.args, " ", "_"), func(t *testing.T) {
				longest, ends := time.Duration(0), 0
				whole := time.Second // of its own work; less, once that was seen
				for tries := 0; ends < times; tries++ {
					require.Less(t, tries, 10*times, "it always ends before it can be interrupted: give it more to do")
					moment := time.Duration(rng.Int64N(int64(whole)))
					r := c.run(t, name, dir, moment)
					if !r.interrupted { // it ended before: the next signal comes earlier
						require.Zero(t, r.code, "%s", r.messages)
						whole = max(r.cpu, time.Millisecond)
						continue
					}
					ends++
					longest = max(longest, r.after)
					if r.code < 0 {
						continue // it was killed before it watched for signals, and a shell reports that as 130 too
					}
					require.Equal(t, 130, r.code, "after %v: %s", moment, r.messages)
					require.Contains(t, r.messages, "interrupted")
					require.NotContains(t, r.messages, "panic")
				}
				// Of each of two cores.
				assert.Less(t, longest, 2*time.Second)
				t.Logf("%d interrupted, the slowest took %v more of processor time", ends, longest)
			})
		}
	}
}

// ended says how a command ended.
type ended struct {
	interrupted bool // by the signal: it was not there before
	code        int  // -1: the signal killed it
	cpu, after  time.Duration
	messages    string
}

// run starts the command in a folder of its own with links to the files of dir, and
// interrupts it once it took so much processor time, or showed what c waits for.
func (c interrupted) run(t *testing.T, name, dir string, moment time.Duration) (r ended) {
	folder := t.TempDir()
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, f := range files {
		require.NoError(t, os.Symlink(filepath.Join(dir, f.Name()), filepath.Join(folder, f.Name())))
	}
	cmd := exec.Command(name, strings.Fields(c.args)...)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "GOMAXPROCS=2")
	in, feed, err := os.Pipe()
	require.NoError(t, err)
	defer feed.Close()
	cmd.Stdin = in
	shown := &watched{text: c.shown, seen: make(chan struct{})}
	var messages bytes.Buffer
	cmd.Stdout, cmd.Stderr = shown, &messages
	require.NoError(t, cmd.Start())
	in.Close()
	go func() {
		_, err := io.WriteString(feed, c.once+c.stdin)
		for err == nil && c.stdin != "" {
			_, err = io.WriteString(feed, c.stdin)
		}
	}()
	over := make(chan struct{})
	go func() {
		_ = cmd.Wait() // how it ended is in its state
		close(over)
	}()
	if waitFor(t, cmd.Process.Pid, moment, shown, over) {
		r.after = -taken(cmd.Process.Pid)
		r.interrupted = cmd.Process.Signal(syscall.SIGINT) == nil
	}
	for deadline, waiting := time.After(time.Minute), true; waiting; {
		select {
		case <-over:
			waiting = false
		case <-time.After(100 * time.Millisecond):
			if c.again {
				_ = cmd.Process.Signal(syscall.SIGINT)
			}
		case <-deadline:
			_ = cmd.Process.Signal(syscall.SIGQUIT) // where is it?
			<-over
			t.Fatalf("it did not end within a minute:\n%s", messages.String())
		}
	}
	r.code, r.messages = cmd.ProcessState.ExitCode(), messages.String()
	r.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	r.after += r.cpu
	r.interrupted = r.interrupted && r.code != 0 // else it had ended already
	// What was whole may stay: an output that was renamed into its place before.
	left, err := filepath.Glob(filepath.Join(folder, "*"))
	require.NoError(t, err)
	hidden, err := filepath.Glob(filepath.Join(folder, ".*"))
	require.NoError(t, err)
	require.Empty(t, hidden)
	for _, path := range left {
		if st, err := os.Lstat(path); err == nil && st.Mode().IsRegular() {
			require.Contains(t, c.args, filepath.Base(path))
			whole(t, path)
		}
	}
	return r
}

// waitFor waits until the process took so much processor time and showed what is
// waited for; it reports whether that came before its end.
func waitFor(t *testing.T, pid int, moment time.Duration, shown *watched, over chan struct{}) bool {
	deadline := time.After(5 * time.Minute)
	moved, last := time.Now(), time.Duration(-1)
	for {
		select {
		case <-over:
			return false
		case <-deadline:
			t.Fatal("what should be interrupted does not come")
		case <-time.After(5 * time.Millisecond):
		}
		if shown.text != "" {
			select {
			case <-shown.seen:
				return true
			default:
				continue
			}
		}
		now := taken(pid)
		if now != last {
			moved, last = time.Now(), now
		}
		// One that waits for its input takes no time.
		if now >= moment || time.Since(moved) > time.Second {
			return true
		}
	}
}

// taken is the processor time that a process has taken, where the system says so to
// others; else nothing.
func taken(pid int) time.Duration {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// After the name, which may hold anything: state and 10 numbers, then the times
	// in hundredths of a second.
	_, rest, _ := strings.Cut(string(raw[bytes.LastIndexByte(raw, ')'):]), " ")
	f := strings.Fields(rest)
	if len(f) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(f[11])
	system, _ := strconv.Atoi(f[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}

// whole requires that what a command left is a file that can be read.
func whole(t *testing.T, path string) {
	if strings.HasSuffix(path, ".effects") {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Contains(t, string(text), "@group")
		return
	}
	if strings.HasSuffix(path, ".html") {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Contains(t, string(text[max(0, len(text)-20):]), "</html>")
		return
	}
	if strings.HasSuffix(path, ".json") {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		require.True(t, json.Valid(text))
		return
	}
	if strings.HasSuffix(path, ".npy") {
		st, err := os.Stat(path)
		require.NoError(t, err)
		require.Greater(t, st.Size(), int64(128)) // its header, and contents
		return
	}
	out, err := exec.Command("mlxc", "stats", path).CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// watched is standard output that says when it has seen a text.
type watched struct {
	text string
	seen chan struct{}
	once sync.Once
	last []byte
}

func (w *watched) Write(p []byte) (int, error) {
	if w.text == "" {
		return len(p), nil
	}
	w.last = append(w.last, p...)
	if bytes.Contains(w.last, []byte(w.text)) {
		w.once.Do(func() { close(w.seen) })
	}
	w.last = w.last[max(0, len(w.last)-len(w.text)):]
	return len(p), nil
}

// Ctrl-C within an answer of a chat ends the answer alone; the conversation goes on,
// and its end is the end of the command.
func TestInterruptEndsAnAnswer(t *testing.T) {
	dir := t.TempDir()
	model := filepath.Join(dir, "m.mlxg")
	out, err := exec.Command("mlxc", "record", modelPath(t), "-o", model).CombinedOutput()
	require.NoError(t, err, "%s", out)
	cmd := exec.Command("mlxreplay", "chat", model, "-n", "1500")
	feed, err := cmd.StdinPipe()
	require.NoError(t, err)
	shown := &watched{text: "1", seen: make(chan struct{})}
	var messages bytes.Buffer
	cmd.Stdout, cmd.Stderr = shown, &messages
	require.NoError(t, cmd.Start())
	_, err = io.WriteString(feed, "Write the numbers from 1 to 1000 in a list, each on its own line.\n")
	require.NoError(t, err)
	<-shown.seen
	require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
	_, err = io.WriteString(feed, "/exit\n")
	require.NoError(t, err)
	require.NoError(t, cmd.Wait(), "%s", messages.String())
	require.Contains(t, messages.String(), "(stopped)")
	require.NotContains(t, messages.String(), "interrupted")
}

// chain is a graph of n additions, each of the result of the one before, in text
// form.
func chain(n int) string {
	var b strings.Builder
	b.WriteString("mlxt 1\ngraph g {\n  memory %x input 4096\n  memory %s scratch 65536\n  memory %y output 4096\n" +
		"  kernel @a builtin \"vv_Addfloat32\" args(0 a: device f32 read, 1 b: device f32 read, 2 c: device f32 write)\n")
	from := "%x[0:4096]"
	for i := range n {
		to := fmt.Sprintf("%%s[%d:%d]", i%16*4096, i%16*4096+4096)
		if i == n-1 {
			to = "%y[0:4096]"
		}
		fmt.Fprintf(&b, "  #%d @a (a = %s, b = %s, c = %s) grid threads [1024, 1, 1] of [256, 1, 1]\n  barrier\n", i, from, from, to)
		from = to
	}
	b.WriteString("}\n")
	return b.String()
}

// traced returns a log of so many dispatches in one step.
func traced(t *testing.T, commands int) []byte {
	var b bytes.Buffer
	w := trace.NewWriter(&b)
	w.Event(trace.Library, uint64(1), "metallib", "none", []byte("none"))
	w.Event(trace.Pipeline, uint64(2), uint64(1), "f")
	w.Event(trace.Buffer, uint64(3), uint64(4096))
	w.Event(trace.Commands, uint64(4), uint64(1))
	w.Event(trace.Encoder, uint64(5), uint64(4), "compute", uint64(1))
	w.Event(trace.Use, uint64(5), uint64(2))
	w.Event(trace.Bind, uint64(5), uint64(0), uint64(3), uint64(0))
	one := []any{uint64(5), uint64(1), uint64(1), uint64(1), uint64(1), uint64(1), uint64(1), uint64(1)}
	for range commands {
		w.Event(trace.Dispatch, one...)
		w.Event(trace.Barrier, uint64(5))
	}
	w.Event(trace.Commit, uint64(4))
	require.NoError(t, w.Err())
	return b.Bytes()
}
