//go:build linux

package metal_test

import (
	"encoding/json"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// wrongDecision is one that the backend takes about what it sends, and when. In a file of the package a
// text stands in place of another one.
type wrongDecision struct {
	name, file string
	right      string
	wrong      string // NAME is the name
	ways       []string
}

var wrongDecisions = []wrongDecision{
	{"a slot is used again while it is in flight", "replay.go",
		"land(len(own.slots) - 1)", "land(len(own.slots) - either(NAME, 1, 0))", []string{"concurrent", "indirect", "concurrent, fences"}},
	{"slots share argument memory", "replay.go",
		"if in.arguments != nil &&", "if !planted(NAME) && in.arguments != nil &&", stored},
	{"slots share indirect command buffers", "replay.go",
		"stored: in.stored,", "stored: either(NAME, in, &own.slots[0]).stored,", stored},
	{"another replay is waited for", "replay.go",
		"x.wait(&flight[0],", "x.wait(&flight[either(NAME, 0, len(flight)-1)],", []string{"concurrent", "indirect"}},
	{"the last replay carries, and no other", "replay.go",
		"next: i+1 < s.Count(),", "next: i+1 < s.Count() != planted(NAME),", []string{"concurrent", "indirect"}},
	{"params do not advance", "replay.go",
		"params[k] += uint32(", "params[k] += either[uint32](NAME, 1, 0) * uint32(", []string{"concurrent", "indirect"}},
	{"an output of every replay is kept of one", "replay.go",
		"if m.Every && i > 0 {", "if m.Every && i > 0 && !planted(NAME) {", []string{"concurrent", "indirect"}},
	{"no fence was updated before", "replay.go",
		"x.fenced = x.fence != 0", "x.fenced = x.fence != 0 && !planted(NAME)", []string{"concurrent, fences", "indirect, fences"}},
	{"parts are encoded into each other's command buffers", "replay.go",
		"s.fill(b, cb, first+i)", "s.fill(b, cb, first+either(NAME, i, len(made)-1-i))", []string{"parallel", "parallel, fences"}},
	{"submissions commit in any order", "turns.go",
		"for t.first < n {", "for t.first < n && !planted(NAME) {", []string{"concurrent", "parallel"}},
	{"a fence is waited for before its update", "send.go",
		"if s.fence != 0 && (later || s.fenced) {", "if s.fence != 0 && (later || s.fenced || planted(NAME)) {", []string{"concurrent, fences", "indirect, fences", "parallel, fences"}},
	{"memories begin where their buffers do", "send.go",
		"at{b.id, p.Offset}", "at{b.id, either(NAME, p.Offset, 0)}", []string{"concurrent", "indirect"}},
	{"replays with guards are in flight together", "frame.go",
		"len(e.plan.Guards) > 0 ||", "len(e.plan.Guards) > 0 && !planted(NAME) ||", []string{"concurrent"}},
	{"words of indirect commands are those of the first replay", "indirect.go",
		"copy(s.words.data[s.Word[i]:], w[:p.Ops[i].Len])", "copy(s.words.data[s.Word[i]:], w[:either(NAME, p.Ops[i].Len, 0)])", []string{"indirect", "indirect-barriers"}},
	{"variable commands are not encoded anew", "indirect.go",
		"if v.Part != plan.Bytes &&", "if !planted(NAME) && v.Part != plan.Bytes &&", []string{"indirect", "indirect-barriers"}},
	{"commands whose memory has moved are not encoded anew", "indirect.go",
		"if s.places[root] != r.places[root] {", "if !planted(NAME) && s.places[root] != r.places[root] {", []string{"indirect"}},
	{"a command that was empty is told only what has changed", "indirect.go",
		"case !was:", "case !was && !planted(NAME):", []string{"indirect"}},
	{"a grid stays as it was", "indirect.go",
		"case some && before == size:", "case some && (planted(NAME) || before == size):", []string{"indirect"}},
	{"nothing is declared to be written", "indirect.go",
		"writes[id] = writes[id] || s.written[root]", "writes[id] = writes[id] || s.written[root] && !planted(NAME)", []string{"indirect"}},
	{"barriers of indirect commands are left out", "indirect.go",
		"if k.Barrier && !again {", "if k.Barrier && !again && !planted(NAME) {", []string{"indirect-barriers"}},
}

// changed are the files of the package in which wrong decisions can be taken.
func changed(t *testing.T) map[string]string {
	out := map[string]string{}
	for _, x := range wrongDecisions {
		text, ok := out[x.file]
		if !ok {
			b, err := os.ReadFile(x.file)
			require.NoError(t, err)
			text = string(b)
		}
		require.Equal(t, 1, strings.Count(text, x.right), "%s: %s has not one %q", x.name, x.file, x.right)
		out[x.file] = strings.Replace(text, x.right, strings.ReplaceAll(x.wrong, "NAME", fmt.Sprintf("%q", x.name)), 1)
	}
	return out
}

// TestWrongDecisions: whatever the backend decides wrong about slots, turns, fences, guards and stored
// commands is noticed. The package is built with all of these decisions, each behind a switch, with
// MLXC_LONG=1; otherwise the places where they would be taken are looked for.
func TestWrongDecisions(t *testing.T) {
	dir := t.TempDir()
	here, err := filepath.Abs(".")
	require.NoError(t, err)
	overlay := map[string]string{}
	for name, text := range changed(t) {
		_, err := parser.ParseFile(token.NewFileSet(), name, text, 0)
		require.NoError(t, err)
		overlay[filepath.Join(here, name)] = filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	for _, name := range []string{"planted.go", "planted_test.go"} {
		overlay[filepath.Join(here, name)] = filepath.Join(here, "testdata", "decisions", name)
	}
	if os.Getenv("MLXC_LONG") == "" {
		return
	}
	table, err := json.Marshal(map[string]any{"Replace": overlay})
	require.NoError(t, err)
	list := filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(list, table, 0o600))
	out, err := exec.CommandContext(t.Context(), "go", "test", "-vet=off", "-count=1", "-v", "-overlay", list, "-run", "^TestPlantedDecisions$", ".").CombinedOutput()
	t.Logf("%s", out)
	require.NoError(t, err)
	require.Contains(t, string(out), "--- PASS: TestPlantedDecisions")
}
