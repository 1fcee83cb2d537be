package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/mlxc/mlxc/backend/metal/litmus/verdict"
)

// apartLimit is the max time of a test in a process of its own; a test that hangs ends itself much earlier.
const apartLimit = 2 * time.Minute

// Apart returns a function that runs a litmus test in a new process of a program. The program gets the test's
// name after args, and writes a [verdict.Result] as JSON to its output. If it dies, the error has the end of
// what it has written to standard error.
func Apart(program string, args ...string) func(ctx context.Context, name string) (verdict.Result, error) {
	return func(ctx context.Context, name string) (r verdict.Result, err error) {
		ctx, cancel := context.WithTimeoutCause(ctx, apartLimit, fmt.Errorf("it has not ended after %v", apartLimit))
		defer cancel()
		var out, said bytes.Buffer
		c := exec.CommandContext(ctx, program, append(args[:len(args):len(args)], name)...)
		c.Stdout, c.Stderr = &out, &said
		c.WaitDelay = time.Second
		err = c.Run()
		if ctx.Err() != nil {
			return r, context.Cause(ctx)
		}
		if err == nil {
			if err = json.NewDecoder(&out).Decode(&r); err == nil {
				return r, nil
			}
			err = fmt.Errorf("it has written no result: %w", err)
		}
		const most = 2000
		text := strings.TrimSpace(said.String())
		if len(text) > most {
			text = "…" + text[len(text)-most:]
		}
		if text != "" {
			err = errors.Join(err, errors.New(strings.ToValidUTF8(text, "?")))
		}
		return r, err
	}
}
