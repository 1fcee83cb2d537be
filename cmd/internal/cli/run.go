package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"
	"golang.org/x/term"

	"github.com/mlxc/mlxc/internal/files/mmap"
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
	Context context.Context // ended by Ctrl-C and other signals
	Stdin   io.Reader
	Stdout  io.Writer // for people: see [Screen]
	Stderr  io.Writer

	signals *signals  // nil in tests
	raw     io.Writer // standard output itself, if it is no terminal
}

// Raw is standard output for text that another program may read, which gets it
// unchanged; a terminal gets it escaped.
func (e *Env) Raw() io.Writer {
	if e.raw != nil {
		return e.raw
	}
	return e.Stdout
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
// Ctrl-C, SIGTERM or SIGHUP cancels the context; a second one, and some time,
// ends the process.
func Run(name, description string, grammar any, args []string) int {
	width := terminalWidth(os.Stdout, os.Getenv("COLUMNS"))
	stdout := NewScreen(os.Stdout, width)
	env := &Env{Stdin: os.Stdin, Stdout: stdout, Stderr: os.Stderr}
	if width == 0 {
		env.raw = os.Stdout
	}
	ctx, signals := watchSignals(name, os.Stderr)
	env.Context, env.signals = ctx, signals
	code := run(name, description, grammar, args, env, signals)
	if err := stdout.Close(); err != nil && code == OK {
		fmt.Fprintf(os.Stderr, "%s: standard output: %v\n", name, err)
		return Input
	}
	return code
}

// terminalWidth returns the columns of f if it is a terminal, else 0. COLUMNS of
// the environment, if it is a number, goes before what the terminal says; one that
// does not say has 80.
func terminalWidth(f *os.File, columns string) int {
	if !term.IsTerminal(int(f.Fd())) {
		return 0
	}
	if n, err := strconv.Atoi(columns); err == nil && n > 0 {
		return n
	}
	if n, _, err := term.GetSize(int(f.Fd())); err == nil && n > 0 {
		return n
	}
	return 80
}

// exit carries kong's wish to leave (after --help) to where run can return.
type exit int

func run(name, description string, grammar any, args []string, env *Env, signals *signals) (code int) {
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
		kong.Vars{"version": version(name)},
	)
	if err != nil {
		panic(err) // the grammar is ours
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	say := func(err error) { fmt.Fprintf(env.Stderr, "%s: %s\n", name, printable(err.Error(), args)) }
	ctx, err := parser.Parse(args)
	if err == nil {
		err = givenTwice(ctx)
	}
	if err != nil {
		var pe *kong.ParseError
		if errors.As(err, &pe) {
			ctx = pe.Context
		}
		say(err)
		hint(env, name, ctx)
		return Usage
	}
	// A mapped file that is cut while the command reads it is an error.
	err = mmap.Guard(func() error { return ctx.Run(env) })
	if err == nil {
		return OK
	}
	if c := signals.code(); c != 0 {
		signals.say(env.Stderr)
		return c
	}
	var coded codeError
	known := errors.As(err, &coded)
	if !known || coded.err != nil {
		say(err)
	}
	if !known {
		return Input
	}
	if coded.code == Usage {
		hint(env, name, ctx)
	}
	return coded.code
}

// hint says where to read how the command is used.
func hint(env *Env, name string, ctx *kong.Context) {
	if ctx != nil && ctx.Selected() != nil {
		name += " " + ctx.Selected().Name
	}
	fmt.Fprintf(env.Stderr, "see '%s --help'\n", name)
}

// givenTwice reports a flag of one value that has two: the first would be lost.
func givenTwice(ctx *kong.Context) error {
	seen := map[*kong.Flag]bool{}
	for _, p := range ctx.Path {
		if p.Flag == nil || p.Flag.IsBool() || p.Flag.IsCumulative() {
			continue
		}
		if seen[p.Flag] {
			return fmt.Errorf("%s is given twice", "--"+p.Flag.Name)
		}
		seen[p.Flag] = true
	}
	return nil
}

// printable is a message as it may be printed: paths that the command line gave,
// and a file may have chosen, cannot look like messages of their own.
func printable(message string, args []string) string {
	for _, a := range args {
		_, value, _ := strings.Cut(a, "=")
		for _, s := range []string{a, value} {
			if q := Quote(s); s != "" && q != s {
				message = strings.ReplaceAll(message, s, q)
			}
		}
	}
	return Escape(message)
}
