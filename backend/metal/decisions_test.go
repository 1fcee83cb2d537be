//go:build linux

package metal_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxc/mlxc/internal/testing/sample"
)

// wrongDecision is a mistake in the backend's logic that tests must notice, such as a slot that is used again
// too early. It replaces a piece of source, right, of a file of this package or of package plan.
type wrongDecision struct {
	name, file string
	right      string
	wrong      string // the replacement, in which NAME stands for the name
	ways       []string
}

// toPlan is the path of package plan from here.
const toPlan = "../internal/plan/"

// Lists of ways, by name.
var (
	replaying = []string{"concurrent", "serial", "parallel", "indirect", "indirect-barriers", "concurrent, fences", "indirect, fences"}
	carrying  = []string{"concurrent", "serial", "parallel", "concurrent, fences", "profiled, sampled dispatches", "profiled, serial, sampled dispatches",
		"live", "live, serial", "live, fences", "live, profiled, sampled dispatches"}
	fewCommands = []string{"indirect, few commands", "indirect-barriers, few commands", "indirect, fences, few commands"}
)

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
	{"no fence was updated before", "fences.go",
		"f.updated = true", "f.updated = !planted(NAME)", []string{"concurrent, fences", "indirect, fences"}},
	{"parts are encoded into each other's command buffers", "replay.go",
		"s.fill(b, cb, first+i)", "s.fill(b, cb, first+either(NAME, i, len(made)-1-i))", []string{"parallel", "parallel, fences"}},
	{"submissions commit in any order", "turns.go",
		"for t.first < n {", "for t.first < n && !planted(NAME) {", []string{"concurrent", "parallel"}},
	{"a fence is waited for before its update", "fences.go",
		"if f != nil && (later || f.updated) {", "if f != nil && (later || f.updated || planted(NAME)) {", []string{"concurrent, fences", "indirect, fences", "parallel, fences"}},
	{"memories begin where their buffers do", "send.go",
		"at{b.id, p.Offset}", "at{b.id, either(NAME, p.Offset, 0)}", []string{"concurrent", "indirect"}},
	{"replays with guards are in flight together", "frame.go",
		"len(e.plan.Guards) > 0 ||", "len(e.plan.Guards) > 0 && !planted(NAME) ||", replaying},
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

	// Encoders of one command buffer.
	{"a fence is not waited for inside of a command buffer", "send.go",
		"encoder = s.labelled(b, s.open(b, cb, o.Index, true), i)",
		"unfenced := *s\nunfenced.fence = either(NAME, s.fence, nil)\nencoder = s.labelled(b, unfenced.open(b, cb, o.Index, true), i)",
		[]string{"profiled, fences", "profiled, serial, fences", "profiled, parallel, fences", "profiled, indirect, fences", "live, profiled, fences"}},
	{"a serial plan is profiled as a concurrent one", "samples.go",
		"if how == Serial {", "if how == Serial && !planted(NAME) {", []string{"profiled, serial", "live, profiled, serial"}},
	{"a serial plan has concurrent encoders", "send.go",
		"if s.how == Serial {", "if s.how == Serial && !planted(NAME) {", []string{"serial", "profiled, serial, sampled dispatches", "live, serial"}},
	{"lengths of threadgroup memory are believed across encoders", toPlan + "lower.go",
		"clear(l.state.memory[:])", "if !planted(NAME) {\nclear(l.state.memory[:])\n}",
		[]string{"concurrent", "serial", "parallel", "indirect", "indirect-barriers", "concurrent, fences", "indirect, fences", "profiled", "profiled, serial", "live, profiled"}},
	{"the pipeline of a carry is believed", toPlan + "lower.go",
		"l.state.pipeline = -1 // the last", "l.state.pipeline = map[bool]int32{false: -1, true: n}[planted(NAME)] // the last", carrying},
	{"what a carry binds is believed", toPlan + "lower.go",
		"if l.next {\n\t\ts = slot{}", "if l.next && !planted(NAME) {\n\t\ts = slot{}", carrying},
	{"live memory that has moved is not bound anew", toPlan + "live.go",
		"l.moved(root)", "if !planted(NAME) {\nl.moved(root)\n}", []string{"live", "live, serial", "live, fences", "live, profiled, sampled dispatches"}},

	// Limits.
	{"offsets of more than 32 bits stand in indirect commands", "indirect.go",
		"if len(u) > 0 && places[root].offset", "if !planted(NAME) && len(u) > 0 && places[root].offset",
		[]string{"indirect, far", "indirect-barriers, far", "indirect, fences, far"}},
	{"a range has commands of two buffers", toPlan + "stored.go",
		"&& int(n)%x.most != 0", "&& (planted(NAME) || int(n)%x.most != 0)", fewCommands},
	{"commands of later buffers are encoded into the first", "indirect.go",
		"s.buffers[n/mostCommands], ", "s.buffers[either(NAME, n/mostCommands, 0)], ", fewCommands},
	{"ranges of later buffers are executed in the first", "indirect.go",
		"s.buffers[first/mostCommands])", "s.buffers[either(NAME, first/mostCommands, 0)])", fewCommands},
	{"times of later sample buffers have the names of the first", "samples.go",
		"command(k*mostSamples/2+i)", "command(either(NAME, k*mostSamples/2, 0)+i)",
		[]string{"profiled, few samples", "profiled, sampled dispatches, few samples", "live, profiled, few samples"}},
	{"passes of later sample buffers sample into the first", "samples.go",
		"s.buffers[2*i/mostSamples]", "s.buffers[either(NAME, 2*i/mostSamples, 0)]", []string{"profiled, few samples", "live, profiled, few samples"}},
	{"times of later sample buffers are taken into the first", "samples.go",
		"s.buffers[int(i)/mostSamples]", "s.buffers[either(NAME, int(i)/mostSamples, 0)]", []string{"profiled, sampled dispatches, few samples"}},
	{"more command buffers are in flight than a queue holds", "queue.go",
		"room: make(chan struct{}, maxUncompleted)}", "room: make(chan struct{}, either(NAME, maxUncompleted, 1000))}",
		[]string{"concurrent, short queue", "serial, short queue", "parallel, short queue", "indirect, short queue"}},
	{"a barrier inside of commands is not told to the encoder where others follow", toPlan + "stored.go",
		"x.inside.leave(); needed {", "x.inside.leave(); needed && !planted(NAME) {", []string{"indirect-barriers, few commands"}},

	// Host work between replays, and guards.
	{"replays between which the host comes are in flight together", "frame.go",
		"if e.program.Graph.NextHost ||", "if e.program.Graph.NextHost && !planted(NAME) ||", replaying},
	{"submissions between which the host comes overlap", "queue.go",
		"return !earlier.Executable.(*executable).program.Graph.NextHost", "return planted(NAME) || !earlier.Executable.(*executable).program.Graph.NextHost", replaying},
	{"a guard's words stay after an error", "libraries.go",
		"return plan.Moves, nil", `return replaced(NAME, plan.Moves, "to[3] = wrong;", "if (wrong) to[3] = wrong;"), nil`, replaying},
}

// changed returns the sources in which wrong decisions are planted, by their paths from here.
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

// TestWrongDecisions: tests notice each of wrongDecisions, about slots, turns, fences, guards, indirect commands
// and what an encoder has bound. A test program is built with all of them, each behind a switch. A run of
// make test switches on one in eight of them, each in the first of its ways; with MLXC_LONG=1 all are run
// in all their ways.
func TestWrongDecisions(t *testing.T) {
	sample.Seldom(t)
	dir := t.TempDir()
	here, err := filepath.Abs(".")
	require.NoError(t, err)
	overlay := map[string]string{}
	for name, text := range changed(t) {
		copied := filepath.Join(dir, strings.NewReplacer("/", "_", "..", "up").Replace(name))
		overlay[filepath.Join(here, name)] = copied
		require.NoError(t, os.WriteFile(copied, []byte(text), 0o600))
	}
	for to, from := range map[string]string{"planted.go": "planted.go", "planted_test.go": "planted_test.go", "../internal/plan/planted.go": "plan.go"} {
		overlay[filepath.Join(here, to)] = filepath.Join(here, "testdata", "decisions", from)
	}
	table, err := json.Marshal(map[string]any{"Replace": overlay})
	require.NoError(t, err)
	list := filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(list, table, 0o600))
	out, err := exec.CommandContext(t.Context(), "go", "test", "-timeout=10m", "-vet=off", "-ldflags=-w", "-count=1", "-v", "-overlay", list, "-run", "^TestPlantedDecisions$", ".").CombinedOutput()
	t.Logf("%s", out)
	require.NoError(t, err)
	require.Contains(t, string(out), "--- PASS: TestPlantedDecisions")
}

// TestPage: docs/metal.md states the numbers of wrong emissions and wrong decisions.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/metal.md")
	require.NoError(t, err)
	equivalent := 0
	for _, x := range wrongEmissions {
		if x.equivalent != "" {
			equivalent++
		}
	}
	text := strings.Join(strings.Fields(string(page)), " ")
	require.Contains(t, text, fmt.Sprintf("notice %d such messages; %d change nothing", len(wrongEmissions)-equivalent, equivalent))
	require.Contains(t, text, fmt.Sprintf("Noticed are %d wrong decisions too", len(wrongDecisions)))
}
