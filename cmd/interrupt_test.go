//go:build unix

package cmd_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Ctrl-C ends every long command on a graph of many commands, whenever it comes: at
// once, with exit code 130, and nothing is left over. The bound on the time is
// generous, because the machine may be busy.
func TestInterruptEndsEveryCommand(t *testing.T) {
	commands, times := 100_000, 2
	if os.Getenv("MLXC_LONG") != "" {
		commands, times = 1_000_000, 10
	}
	dir := t.TempDir()
	bin := filepath.Join(dir, "mlxc")
	if out, err := exec.Command("go", "build", "-o", bin, "./mlxc").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text := filepath.Join(dir, "g.mlxt")
	require.NoError(t, os.WriteFile(text, []byte(chain(commands)), 0o600))
	out, err := exec.Command(bin, "asm", text, "-o", filepath.Join(dir, "g.mlxg")).CombinedOutput()
	require.NoError(t, err, "%s", out)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	for _, c := range [][]string{
		{"optimize", "g.mlxg", "-o", "out.mlxg"}, {"verify", "g.mlxg"}, {"verify", "g.mlxg", "g.mlxg"}, {"stats", "g.mlxg"},
		{"dump", "g.mlxg"}, {"dump", "-f", "json", "g.mlxg"}, {"dump", "-f", "dot", "g.mlxg"}, {"diff", "g.mlxg", "g.mlxt"},
		{"asm", "g.mlxt", "-o", "out.mlxg"}, {"disasm", "g.mlxg", "-o", "out.mlxt"},
	} {
		t.Run(strings.Join(c, "_"), func(t *testing.T) {
			longest, ends := time.Duration(0), 0
			wait := 2 * time.Second // the command's own time, once it was seen
			for range times {
				run := t.TempDir()
				cmd := exec.Command(bin, c...)
				cmd.Dir = run
				for _, f := range []string{"g.mlxg", "g.mlxt"} {
					require.NoError(t, os.Symlink(filepath.Join(dir, f), filepath.Join(run, f)))
				}
				cmd.Stdout = io.Discard
				var messages strings.Builder
				cmd.Stderr = &messages
				start := time.Now()
				require.NoError(t, cmd.Start())
				ended := make(chan error, 1)
				go func() { ended <- cmd.Wait() }()
				select {
				case <-ended: // before its time: the next signal comes earlier
					wait = time.Since(start)
					continue
				case <-time.After(100*time.Millisecond + time.Duration(rng.Int64N(int64(wait)))):
				}
				require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
				signalled := time.Now()
				var code int
				select {
				case <-ended:
					code = cmd.ProcessState.ExitCode()
				case <-time.After(time.Minute):
					_ = cmd.Process.Signal(syscall.SIGQUIT) // where is it?
					<-ended
					t.Fatalf("it did not end within a minute:\n%s", messages.String())
				}
				if code == 0 {
					continue // it had ended already
				}
				ends++
				longest = max(longest, time.Since(signalled))
				require.Equal(t, 130, code, "%s", messages.String())
				require.Contains(t, messages.String(), "interrupted")
				left, err := os.ReadDir(run)
				require.NoError(t, err)
				require.Len(t, left, 2, "%v", left)
			}
			require.Less(t, longest, 15*time.Second)
			t.Logf("%d interrupted, the slowest answer took %v", ends, longest)
		})
	}
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
