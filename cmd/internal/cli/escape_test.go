package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"runtime/debug"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestEscape(t *testing.T) {
	for _, k := range [][2]string{
		{"plain µs ∞ — 日本\n\ttext", "plain µs ∞ — 日本\n\ttext"},
		{"\x1b[31mred", `\x1b[31mred`},
		{"\r\b\x00\x7f", `\x0d\x08\x00\u007f`},
		{"\u009b31m", `\u009b31m`},
		{"\x9b31m", `\x9b31m`},
		{"a\u202eb\u2066", `a\u202eb\u2066`},
		{"\xe2\x80", `\xe2\x80`},
	} {
		require.Equal(t, k[1], Escape(k[0]))
	}
	require.Equal(t, "dir/a b.mlxg", Quote("dir/a b.mlxg"))
	require.Equal(t, `"a\nb"`, Quote("a\nb"))
	require.Equal(t, `"\x1b[0m"`, Quote("\x1b[0m"))
	require.Equal(t, `""`, Quote(""))
}

// A screen prints the same however its input is divided into writes, and escaped JSON
// is still JSON of the same value.
func TestScreenCutAnywhere(t *testing.T) {
	s := "é∞日\x1b\u009b\xff\xe2\x80x\u202e🙂\x80"
	want := Escape(s)
	for cut := range len(s) + 1 {
		for cut2 := cut; cut2 <= len(s); cut2++ {
			var out bytes.Buffer
			w := NewScreen(&out, 0)
			for _, part := range []string{s[:cut], s[cut:cut2], s[cut2:]} {
				n, err := w.Write([]byte(part))
				require.NoError(t, err)
				require.Equal(t, len(part), n)
			}
			require.NoError(t, w.Close())
			require.Equal(t, want, out.String())
		}
	}
	value := "\x7f\u009b\u202e\x1b ok"
	var out bytes.Buffer
	w := NewScreen(&out, 0)
	require.NoError(t, JSON(t.Context(), w, value))
	var back string
	require.NoError(t, json.Unmarshal(out.Bytes(), &back))
	require.Equal(t, value, back)
	require.NotContains(t, out.String(), "\u009b")
}

func FuzzEscape(f *testing.F) {
	f.Add("a\x1b[m\xc2")
	f.Fuzz(func(t *testing.T, s string) {
		e := Escape(s)
		require.True(t, utf8.ValidString(e))
		require.False(t, strings.ContainsFunc(e, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 }))
		require.Equal(t, e, Escape(e))
	})
}

func TestVersion(t *testing.T) {
	require.Contains(t, versionOf(nil), "(devel), go1.")
	info := &debug.BuildInfo{Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.time", Value: "2026-01-02T03:04:05Z"}, {Key: "vcs.modified", Value: "true"}}}
	info.Main.Version = "v1.2.3"
	require.Regexp(t, `^v1\.2\.3, revision 0123456789ab of 2026-01-02T03:04:05Z, modified, go1\.\S+ \w+/\w+$`, versionOf(info))
}

type testGrammar struct {
	Do struct {
		File string   `arg:""`
		O    string   `short:"o"`
		Many []string `name:"many"`
		Flag bool     `name:"flag"`
		doRun
	} `cmd:""`
}

type doRun struct{}

func (doRun) Run(env *Env) error {
	switch {
	case env.Context.Err() != nil:
		return env.Context.Err()
	}
	return BadUsage("no")
}

func runTest(args ...string) (code int, stderr string) {
	var out, errs bytes.Buffer
	env := &Env{Context: context.Background(), Stdout: NewScreen(&out, 0), Stderr: &errs}
	code = run("prog", "", &testGrammar{}, args, env, &signals{name: "prog"})
	return code, errs.String()
}

// Hints name the subcommand, and a flag of one value may be given only once.
func TestUsage(t *testing.T) {
	code, stderr := runTest("do", "f", "--nobody")
	require.Equal(t, Usage, code)
	require.Contains(t, stderr, "see 'prog do --help'\n")
	code, stderr = runTest("nobody")
	require.Equal(t, Usage, code)
	require.Contains(t, stderr, "see 'prog --help'\n")
	code, stderr = runTest("do")
	require.Equal(t, Usage, code)
	require.Contains(t, stderr, "see 'prog do --help'\n")
	code, stderr = runTest("do", "f", "-o", "a", "--many", "x", "--many", "y", "--flag", "--flag")
	require.Equal(t, Usage, code)
	require.Equal(t, "prog: no\nsee 'prog do --help'\n", stderr)
	code, stderr = runTest("do", "f", "-o", "a", "--o=b")
	require.Equal(t, Usage, code)
	require.Contains(t, stderr, "--o is given twice")
}

// A path with a line break cannot forge a message.
func TestMessagesAreOneLine(t *testing.T) {
	arg := "x\nprog: wrote it all\x1b[1m"
	got := printable(errors.New("open "+arg+": no such file").Error(), []string{"do", arg})
	require.Equal(t, `open "x\nprog: wrote it all\x1b[1m": no such file`, got)
	got = printable("open a\nb: no", []string{"--out=y=a\nb", "y=a\nb"})
	require.NotContains(t, got, "a\nb")
}

func TestTerminalWidth(t *testing.T) {
	f, err := os.CreateTemp(t.TempDir(), "")
	require.NoError(t, err)
	defer f.Close()
	require.Equal(t, 0, terminalWidth(f, "60"), "a file is never cut, whatever COLUMNS says")
}
