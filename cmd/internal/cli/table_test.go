package cli

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func wide() *Table {
	t := &Table{Header: []string{"graph", "dispatches", "barriers", "epochs", "depth∞", "scratch", "modelled", "what it does"}}
	t.Add("decode", 605, 454, 455, 455, Bytes(50_000), Micros(3863.7), "replace groups of dispatches by one that computes the same terms, where that is worth it")
	t.Add("prefill", 1, 2, 3, 4, Bytes(5), Micros(6), "")
	return t
}

func printed(t *testing.T, table *Table, width int) string {
	var out bytes.Buffer
	s := NewScreen(&out, width)
	require.NoError(t, table.Print(s))
	require.NoError(t, s.Close())
	return out.String()
}

// Every line fits every terminal that is not absurdly narrow, no cell is lost, and
// through a pipe every row is one line.
func TestTableFitsTheTerminal(t *testing.T) {
	for width := 32; width < 200; width++ {
		s := printed(t, wide(), width)
		for _, l := range strings.Split(s, "\n") {
			require.LessOrEqual(t, utf8.RuneCountInString(l), width, "%d columns:\n%s", width, s)
		}
		for _, cell := range []string{"decode", "605", "454", "48.8 KiB", "3863.7 µs", "prefill", "depth∞", "dispatches", "replace", "worth", "it does"} {
			require.Contains(t, s, cell, "%d columns:\n%s", width, s)
		}
	}
	s := printed(t, wide(), 0)
	require.Len(t, strings.Split(strings.TrimSuffix(s, "\n"), "\n"), 4)
	require.Contains(t, s, "replace groups of dispatches by one that computes the same terms, where that is worth it")
	var plain bytes.Buffer
	require.NoError(t, wide().Print(&plain))
	require.Equal(t, s, plain.String(), "what is no screen has no width")
	// A term of a generated kernel, without a space to wrap at.
	long := &Table{Header: []string{"kernel", "dispatches"}}
	long.Add(strings.Repeat("x*", 2000), 1)
	for _, l := range strings.Split(printed(t, long, 60), "\n") {
		require.LessOrEqual(t, utf8.RuneCountInString(l), 60)
	}
}

func ExampleTable_narrow() {
	var out bytes.Buffer
	_ = wide().Print(NewScreen(&out, 60))
	for _, l := range strings.Split(out.String(), "\n") {
		fmt.Println(strings.TrimRight(l, " "))
	}
	// Output:
	// graph    dispatches  barriers  epochs  depth∞   scratch
	// ─────────────────────────────────────────────────────────
	//  decode          605       454     455     455  48.8 KiB
	//  prefill           1         2       3       4       5 B
	//
	//  graph     modelled
	// ────────────────────
	//  decode   3863.7 µs
	//  prefill     6.0 µs
	//
	//  graph    what it does
	// ────────────────────────────────────────────────────────────
	//  decode   replace groups of dispatches by one that computes
	//           the same terms, where that is worth it
	//  prefill
}

// Nothing that a file puts into a cell reaches the terminal as a command, or looks like
// another row.
func TestTableCellsAreEscaped(t *testing.T) {
	table := &Table{Header: []string{"\x1b]0;title\a", "n"}}
	table.Add("a\x1b[2J\nb\r\u009b1m\u202e\xff", 1)
	s := printed(t, table, 0)
	require.Contains(t, s, `a\x1b[2J b\x0d\u009b1m\u202e\xff`)
	require.Contains(t, s, `\x1b]0;title\x07`)
	require.Len(t, strings.Split(s, "\n"), 4)
}
