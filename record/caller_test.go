package record_test

import (
	"fmt"
	"regexp"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/backend/cpu"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/record"
)

// requireMistake requires the whole text of an error, apart from the test's own line with
// which it begins.
func requireMistake(t *testing.T, err error, want string, name ...any) {
	t.Helper()
	require.Error(t, err, name...)
	require.Regexp(t, `^record/\w+_test\.go:\d+: `+regexp.QuoteMeta(want)+`$`, err.Error(), name...)
}

func line() int {
	_, _, n, _ := runtime.Caller(1)
	return n
}

// layer makes a mistake as an engine's own layer does, and returns its line.
func layer(s *record.Session, x record.Tensor) int {
	s.Add(x, record.Tensor{})
	return line() - 1
}

// An error names the line of the engine that made the first mistake, not the line that
// asks for the error, even if the mistake was made through several layers of calls.
func TestMistakesNameTheLine(t *testing.T) {
	s := record.New("t")
	x := s.Input("x", ir.F32, 8)
	at := layer(s, x)
	s.Silu(record.Tensor{}) // a second mistake changes nothing
	_, err := s.Graph()
	require.ErrorContains(t, err, fmt.Sprintf("record/caller_test.go:%d: record t: ", at))

	e := record.NewEncoder("t", record.Live(cpu.New(1)))
	defer e.Close()
	e.SetParam("nobody", 1)
	at = line() - 1
	require.EqualError(t, e.Err(), fmt.Sprintf("record/caller_test.go:%d: record t: there is no param $nobody", at))

	func() { e = record.NewEncoder("bad\x1b[31m\nname") }()
	at = line() - 1
	require.ErrorContains(t, e.Err(), fmt.Sprintf("record/caller_test.go:%d: record ", at))
	require.NotContains(t, e.Err().Error(), "\x1b")
}
