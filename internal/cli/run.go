package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
)

// Exit codes.
const (
	OK     = 0
	Failed = 1 // a check said no
	Usage  = 2
	Input  = 3 // a file or value that cannot be used
)

// Env is what a command may touch of the outside.
type Env struct {
	Context context.Context // cancelled by Ctrl-C
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
}

// codeError is an error with an exit code other than [Input].
type codeError struct {
	code int
	err  error
}

func (e codeError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}
func (e codeError) Unwrap() error { return e.err }

// Fail makes err a failed check (exit code 1).
func Fail(err error) error { return codeError{Failed, err} }

// Exit ends the command with a code and no message: the output says it all.
func Exit(code int) error { return codeError{code, nil} }

// BadUsage makes err a mistake of the command line (exit code 2).
func BadUsage(format string, args ...any) error { return codeError{Usage, fmt.Errorf(format, args...)} }

// Run parses args into grammar, a kong command structure whose commands have
// Run(*Env) error, runs the chosen command and returns the exit code. A first
// Ctrl-C cancels the context, a second one ends the process.
func Run(name, description string, grammar any, args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	go func() {
		<-ctx.Done()
		stop()
	}()
	env := &Env{Context: ctx, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
	return run(name, description, grammar, args, env)
}

// exit carries kong's wish to leave (after --help) to where run can return.
type exit int

func run(name, description string, grammar any, args []string, env *Env) (code int) {
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(exit)
			if !ok {
				panic(r)
			}
			code = int(e)
		}
	}()
	parser, err := kong.New(grammar,
		kong.Name(name), kong.Description(description), kong.Writers(env.Stdout, env.Stderr),
		kong.Exit(func(c int) { panic(exit(c)) }), kong.UsageOnError(), kong.Bind(env),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}),
	)
	if err != nil {
		panic(err) // the grammar is ours
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	ctx, err := parser.Parse(args)
	if err != nil {
		fmt.Fprintf(env.Stderr, "%s: %v\n", name, err)
		fmt.Fprintf(env.Stderr, "Run \"%s --help\" for usage.\n", name)
		return Usage
	}
	err = ctx.Run(env)
	var coded codeError
	switch {
	case err == nil:
		return OK
	case errors.Is(err, context.Canceled):
		fmt.Fprintf(env.Stderr, "%s: interrupted\n", name)
		return 130 // 128 + SIGINT, as shells have it
	}
	known := errors.As(err, &coded)
	if !known || coded.err != nil {
		fmt.Fprintf(env.Stderr, "%s: %v\n", name, err)
	}
	if known {
		return coded.code
	}
	return Input
}
