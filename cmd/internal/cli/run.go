package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"
	"golang.org/x/term"

	"github.com/mlxc/mlxc/internal/files/mmap"
)

// The exit codes.
const (
	OK     = 0
	Failed = 1 // a check failed
	Usage  = 2
	Input  = 3 // a file or value that cannot be used
)

// Env is the part of the outside world that a command may use.
type Env struct {
	Context context.Context // cancelled by Ctrl-C and other signals
	Stdin   io.Reader
	Stdout  io.Writer // for people: see [Screen]
	Stderr  io.Writer

	signals *signals  // nil in tests
	raw     io.Writer // standard output itself, unless it is a terminal
}

// Raw returns standard output for text that another program may read. A program gets it
// unchanged; a terminal gets it escaped.
func (e *Env) Raw() io.Writer {
	if e.raw != nil {
		return e.raw
	}
	return e.Stdout
}

// Remark tells the user what is no error.
func Remark(env *Env, texts ...string) {
	for _, t := range texts {
		fmt.Fprintf(env.Stderr, "remark: %s\n", Escape(t))
	}
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

// Fail marks err as a failed check (exit code 1).
func Fail(err error) error { return codeError{Failed, err} }

// Exit ends the command with a code and without a message, because its output says
// everything.
func Exit(code int) error { return codeError{code, nil} }

// BadUsage returns an error in the use of the command line (exit code 2).
func BadUsage(format string, args ...any) error { return codeError{Usage, fmt.Errorf(format, args...)} }

// IsUsage reports whether err is one of [BadUsage].
func IsUsage(err error) bool {
	var c codeError
	return errors.As(err, &c) && c.code == Usage
}

// Run parses args into grammar, a kong command structure whose commands have a method
// Run(*Env) error. If it has a method Words, help texts may name what that returns as ${word}.
// It runs the chosen command and returns the exit code. The first
// Ctrl-C, SIGTERM or SIGHUP cancels the context; a second one, or the end of a grace
// period, ends the process.
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

// terminalWidth returns the number of columns if f is a terminal, otherwise 0. The
// environment's COLUMNS, if it is a number, overrides what the terminal says. A
// terminal that does not say is taken to have 80.
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

// exit is a panic value. kong wants to end the process after --help; this lets Run
// return instead.
type exit int

// missing matches kong's error for a flag whose value looks like another flag. kong advises to write
// --memory="-5", but mostly the value was forgotten.
var missing = regexp.MustCompile(`(-\S+): expected \w+ value but got (".*") \(\w+ flag\); perhaps try .*`)

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
	parser := parserOf(name, description, grammar, env)
	if len(args) == 0 {
		args = []string{"--help"}
	}
	say := func(err error) {
		text := missing.ReplaceAllString(err.Error(), `$1: a value is missing ($2 looks like another flag)`)
		fmt.Fprintf(env.Stderr, "%s: %s\n", name, printable(text, args))
	}
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
	// If a mapped file is shortened while the command reads it, that becomes an error.
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

// parserOf returns the parser for a command's arguments.
func parserOf(name, description string, grammar any, env *Env) *kong.Kong {
	vars := kong.Vars{"version": Version(name), "program": name}
	if g, ok := grammar.(interface{ Words() map[string]string }); ok {
		maps.Copy(vars, g.Words())
	}
	parser, err := kong.New(grammar,
		kong.Name(name), kong.Description(description), kong.Writers(env.Stdout, env.Stderr),
		kong.Exit(func(c int) { panic(exit(c)) }), kong.UsageOnError(), kong.Bind(env),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}),
		vars,
	)
	if err != nil {
		panic(err) // the grammar is part of the program
	}
	return parser
}

// Understands returns an error if the command does not accept the arguments. Nothing is run.
func Understands(name string, grammar any, args []string) error {
	ctx, err := parserOf(name, "", grammar, &Env{Stdout: io.Discard, Stderr: io.Discard}).Parse(args)
	if err == nil {
		err = givenTwice(ctx)
	}
	return err
}

// hint says where to read how the command is used.
func hint(env *Env, name string, ctx *kong.Context) {
	if ctx != nil && ctx.Selected() != nil {
		name += " " + ctx.Selected().Name
	}
	fmt.Fprintf(env.Stderr, "see '%s --help'\n", name)
}

// givenTwice returns an error for a flag of one value that was given twice, because the
// first value would be lost.
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

// printable escapes a message, and quotes in it the arguments of the command line that
// need it, so that a file name cannot look like a message of its own.
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
