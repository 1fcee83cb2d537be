package reduce

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

// Env is the environment variable by which a command is told the path of a graph.
const Env = "MLXC_GRAPH"

// Command is a check by a command of the user's, which is given the path of a graph and ends with exit code 0 if it is what is
// looked for. Nothing else is run.
type Command struct {
	Text  string // for the system's shell; {} stands for the path, and $MLXC_GRAPH has it
	Path  string
	Limit time.Duration // a run that takes longer is ended, and counts as one of another exit code; 0: none
}

// Outcome is how a run of a command ended.
type Outcome struct {
	Code    int
	Late    bool   // it took longer than the limit
	Printed string // the end of what it has printed
}

func (o *Outcome) String() string {
	text := fmt.Sprintf("exit code %d", o.Code)
	if o.Late {
		text = "it was ended, for it took too long"
	}
	if p := strings.TrimSpace(o.Printed); p != "" {
		text += "; it printed: " + p
	}
	return text
}

// tail keeps the last bytes that are written to it.
type tail struct{ b bytes.Buffer }

const mostPrinted = 2000

func (t *tail) Write(p []byte) (int, error) {
	t.b.Write(p)
	if over := t.b.Len() - mostPrinted; over > mostPrinted {
		t.b.Next(over)
	}
	return len(p), nil
}

// Run runs the command once. The error is one of starting it, or that of an ended context.
func (c *Command) Run(ctx context.Context) (*Outcome, error) {
	within, cancel := ctx, context.CancelFunc(func() {})
	if c.Limit > 0 {
		within, cancel = context.WithTimeout(ctx, c.Limit)
	}
	defer cancel()
	shell, flag, quoted := "/bin/sh", "-c", "'"+strings.ReplaceAll(c.Path, "'", `'\''`)+"'"
	if runtime.GOOS == "windows" {
		shell, flag, quoted = "cmd", "/C", `"`+c.Path+`"`
	}
	cmd := exec.CommandContext(within, shell, flag, strings.ReplaceAll(c.Text, "{}", quoted))
	cmd.Env = append(os.Environ(), Env+"="+c.Path)
	var printed tail
	cmd.Stdout, cmd.Stderr = io.Writer(&printed), &printed
	alone(cmd) // what it has started ends with it
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	if cmd.Process != nil {
		_ = cmd.Cancel() // however it has ended: it may have left processes behind, which then go on without end
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	out := &Outcome{Late: within.Err() != nil, Printed: printed.b.String()}
	if over := len(out.Printed) - mostPrinted; over > 0 {
		out.Printed = "…" + out.Printed[over:]
	}
	var exit *exec.ExitError
	switch {
	case out.Late:
		out.Code = -1
	case errors.As(err, &exit):
		out.Code = exit.ExitCode()
	case errors.Is(err, exec.ErrWaitDelay): // it has ended with exit code 0, and what it left behind held its output
	case err != nil:
		return nil, fmt.Errorf("the check cannot be run: %w", err)
	}
	return out, nil
}
