package profile

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/mlxc/mlxc/cmd/internal/page"
	"github.com/mlxc/mlxc/cost"
	"github.com/mlxc/mlxc/internal/analysis/hazard"
	"github.com/mlxc/mlxc/internal/interrupt"
	"github.com/mlxc/mlxc/ir"
	"github.com/mlxc/mlxc/replay"
)

// Processes and threads of a trace: what viewers show as groups of tracks and as tracks.
const (
	device, host, model = 1, 2, 3 // processes

	// Kinds of threads: the first of each. What overlaps takes more of them, one after the other.
	onReplays, onBuffers, onEpochs, onCommands = 1_000, 2_000, 3_000, 4_000
)

// mostWaits bounds the commands of a replay of which a trace says what they waited for.
const mostWaits = 20_000

// mostBeside bounds the commands of a modelled epoch that a trace draws, side by side.
const mostBeside = 64

// micro is a time of a trace: nanoseconds, written in microseconds.
type micro int64

func (m micro) append(b []byte) []byte {
	n := int64(m)
	if n < 0 {
		b, n = append(b, '-'), -n
	}
	b = strconv.AppendInt(b, n/1000, 10)
	return append(b, '.', byte('0'+n/100%10), byte('0'+n/10%10), byte('0'+n%10))
}

// event is one of the Trace Event Format, whose fields are called as the comments say.
type event struct {
	Name  string         // name
	Kind  string         // cat
	Phase string         // ph
	PID   int            // pid
	TID   int            // tid
	At    micro          // ts
	Lasts *micro         // dur
	ID    string         // id
	Binds string         // bp
	Args  map[string]any // args
}

// track is a kind of threads of a process.
type track struct{ pid, kind int }

// tracer writes the events of one trace.
type tracer struct {
	ctx    context.Context
	w      *bufio.Writer
	err    error
	any    bool
	b      []byte            // the event that is written
	texts  map[string][]byte // as JSON
	zero   time.Time         // when the trace begins
	flows  int
	polls  interrupt.Every
	ends   map[track][]micro // when each thread is free again
	model  micro             // when the modelled replays that are written end
	report *Report
}

func (t *tracer) put(e event) {
	if t.err != nil {
		return
	}
	t.polls.Poll(t.ctx, 8)
	b := t.b[:0]
	if t.any {
		b = append(b, ",\n"...)
	}
	t.any = true
	b = append(b, `{"name":`...)
	b = t.text(b, e.Name)
	if e.Kind != "" {
		b = append(t.text(append(b, `,"cat":`...), e.Kind), `,"ph":"`...)
	} else {
		b = append(b, `,"ph":"`...)
	}
	b = append(append(b, e.Phase...), `","pid":`...)
	b = strconv.AppendInt(b, int64(e.PID), 10)
	b = strconv.AppendInt(append(b, `,"tid":`...), int64(e.TID), 10)
	b = e.At.append(append(b, `,"ts":`...))
	if e.Lasts != nil {
		b = e.Lasts.append(append(b, `,"dur":`...))
	}
	if e.ID != "" {
		b = t.text(append(b, `,"id":`...), e.ID)
	}
	if e.Binds != "" {
		b = t.text(append(b, `,"bp":`...), e.Binds)
	}
	if len(e.Args) > 0 {
		args, err := json.Marshal(e.Args)
		if err != nil {
			t.err = err
			return
		}
		b = append(append(b, `,"args":`...), args...)
	}
	b = append(b, '}')
	t.b = b
	_, _ = t.w.Write(b) // Flush reports errors
}

// text appends a text as JSON. Most stand there more than once.
func (t *tracer) text(b []byte, s string) []byte {
	known, ok := t.texts[s]
	if !ok {
		known, _ = json.Marshal(s) // a text is always written
		if len(t.texts) < 1<<16 {
			t.texts[s] = known
		}
	}
	return append(b, known...)
}

func (t *tracer) at(x time.Time) micro { return micro(x.Sub(t.zero).Nanoseconds()) }

// slice writes what lasts from begin to end.
func (t *tracer) slice(pid, tid int, name, kind string, begin, end micro, args map[string]any) {
	lasts := max(0, end-begin)
	t.put(event{Name: name, Kind: kind, Phase: "X", PID: pid, TID: tid, At: begin, Lasts: &lasts, Args: args})
}

func (t *tracer) counter(pid int, name string, at micro, unit string, value float64) {
	t.put(event{Name: name, Phase: "C", PID: pid, At: at, Args: map[string]any{unit: json.Number(strconv.FormatFloat(value, 'g', 6, 64))}})
}

// flow writes an arrow from a slice that begins at from to one that begins at to.
func (t *tracer) flow(kind string, pid, tid int, from micro, toPID, toTID int, to micro) {
	t.flows++
	id := strconv.Itoa(t.flows)
	t.put(event{Name: kind, Kind: kind, Phase: "s", PID: pid, TID: tid, At: from, ID: id})
	t.put(event{Name: kind, Kind: kind, Phase: "f", PID: toPID, TID: toTID, At: to, ID: id, Binds: "e"})
}

// thread returns a thread of a kind that is free from begin to end.
func (t *tracer) thread(pid, kind int, begin, end micro) int {
	k := track{pid, kind}
	free := t.ends[k]
	for i := range free {
		if free[i] <= begin {
			free[i] = end
			return kind + i
		}
	}
	t.ends[k] = append(free, end)
	return kind + len(free)
}

// Trace writes a trace in Chrome's Trace Event Format (JSON), which Perfetto and chrome://tracing open. It has every replay that
// the table sums up: on the device its command buffers, epochs and commands; on the host for how long it worked; and beside them
// the same replays by the model. Counters are bytes: moved since the replay began, and a second.
func (r *Report) Trace(ctx context.Context, w io.Writer) (err error) {
	defer interrupt.Catch(&err)
	type one struct {
		g *Graph
		t *replay.Timing
	}
	var all []one
	for _, g := range r.Graphs {
		for i := range g.replays {
			all = append(all, one{g, &g.replays[i]})
		}
	}
	slices.SortStableFunc(all, func(a, b one) int { return a.t.Begin.Compare(b.t.Begin) })
	t := &tracer{ctx: ctx, w: bufio.NewWriterSize(w, 1<<16), ends: map[track][]micro{}, texts: map[string][]byte{}, report: r}
	if len(all) > 0 {
		t.zero = all[0].t.Begin
		for _, x := range all {
			if x.t.Submitted.Before(t.zero) && !x.t.Submitted.IsZero() {
				t.zero = x.t.Submitted
			}
		}
	}
	head, err := json.Marshal(map[string]any{
		"program": r.Program, "file": page.Shown(r.Title), "device": r.Device, "about": r.About, "model": r.modelName(), "notes": r.Notes,
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(t.w, "{\"displayTimeUnit\": \"ns\", \"otherData\": %s,\n\"traceEvents\": [\n", head)
	type what struct {
		works  func([]uint32) []cost.Work
		last   int
		number int
	}
	graphs := map[*Graph]*what{}
	for i, x := range all {
		if graphs[x.g] == nil {
			graphs[x.g] = &what{works: x.g.works(r.Model)}
		}
		graphs[x.g].last = i
	}
	for i, x := range all {
		k := graphs[x.g]
		t.replay(x.g, x.t, k.number, k.works(x.t.Params), i == k.last)
		k.number++
	}
	t.names()
	_, _ = t.w.WriteString("\n]}\n") // Flush reports errors
	return cmp.Or(t.err, t.w.Flush())
}

// modelName says what the model is.
func (r *Report) modelName() string {
	if r.Fitted {
		return "fitted to these replays"
	}
	return page.Shown(r.Model.Name)
}

// names writes what the tracks are called, and in which order they stand.
func (t *tracer) names() {
	name := func(what string, pid, tid int, name string, order int) {
		t.put(event{Name: what + "_name", Phase: "M", PID: pid, TID: tid, Args: map[string]any{"name": name}})
		t.put(event{Name: what + "_sort_index", Phase: "M", PID: pid, TID: tid, Args: map[string]any{"sort_index": order}})
	}
	kinds := []struct {
		kind int
		name string
	}{{onReplays, "queue: replays"}, {onBuffers, "command buffers"}, {onEpochs, "epochs"}, {onCommands, "commands"}}
	for pid, text := range map[int]string{device: "device " + t.report.Device, host: "host: submissions", model: "modelled: " + t.report.modelName()} {
		name("process", pid, 0, text, pid)
		for _, k := range kinds {
			for i := range t.ends[track{pid, k.kind}] {
				name("thread", pid, k.kind+i, k.name, k.kind+i)
			}
		}
	}
}

// replay writes one replay, measured and modelled.
func (t *tracer) replay(g *Graph, x *replay.Timing, number int, work []cost.Work, last bool) {
	begin, end := t.at(x.Begin), t.at(x.End)
	name := fmt.Sprintf("%s, replay %d", page.Shown(g.IR.Name), number)
	args := map[string]any{"graph": page.Shown(g.IR.Name)}
	for i, v := range x.Params {
		if p := &g.IR.Params[i]; p.Type == ir.U32 {
			args["$"+page.Shown(p.Name)] = v
		}
	}
	queue := t.thread(device, onReplays, begin, end)
	t.slice(device, queue, name, "replay", begin, end, args)
	if !x.Submitted.IsZero() {
		from := t.at(x.Submitted)
		encoded := from + micro(x.Encode.Nanoseconds())
		tid := t.thread(host, onReplays, from, max(begin, encoded))
		t.slice(host, tid, name, "submit", from, max(begin, encoded), map[string]any{"encode_us": micros(x.Encode)})
		t.flow("submit", host, tid, from, device, queue, begin)
	}
	for i := range x.Buffers {
		b := &x.Buffers[i]
		what := map[string]any{}
		if b.Dispatches > 0 {
			what["dispatches"], what["barriers"] = b.Dispatches, b.Barriers
		}
		label := page.Shown(b.Label)
		if label == "" {
			label = fmt.Sprintf("command buffer %d", i)
		}
		t.slice(device, t.thread(device, onBuffers, t.at(b.Begin), t.at(b.End)), label, "buffer", t.at(b.Begin), t.at(b.End), what)
	}
	type place struct {
		tid        int
		begin, end micro
	}
	var places map[int32]place
	if last && len(g.commands) <= mostWaits {
		places = map[int32]place{}
	}
	order := make([]int, len(x.Commands))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return x.Commands[i].Begin.Compare(x.Commands[j].Begin) })
	var load []change
	for _, i := range order {
		c := &x.Commands[i]
		n, ok := g.number[c.ID]
		if !ok {
			continue
		}
		from, to := t.at(c.Begin), t.at(c.End)
		tid := t.thread(device, onCommands, from, to)
		t.slice(device, tid, g.shown(n), "command", from, to, g.args(n, &work[n]))
		if places != nil {
			places[n] = place{tid, from, to}
		}
		load = add(load, from, to, work[n].Bytes)
	}
	t.load(device, load)
	t.epochs(g, x, work)
	if places != nil {
		table := hazard.NewTable(t.ctx, g.full)
		waits := map[int32]int32{} // by command: the one that it waits for and that ends last
		at := func(node int32) (int32, bool) {
			if int(node) >= table.Len() {
				return 0, false // a join of the analysis
			}
			n, ok := g.number[table.Node(int(node)).Num()]
			return n, ok
		}
		table.Hazards(func(h hazard.Hazard) {
			from, ok := at(h.From)
			to, ok2 := at(h.To)
			if !ok || !ok2 || h.Kind != hazard.RAW {
				return
			}
			p, had := places[from]
			_, has := places[to]
			if old, known := waits[to]; had && has && (!known || places[old].end < p.end) {
				waits[to] = from
			}
		})
		for n := range int32(len(g.commands)) {
			if from, ok := waits[n]; ok && places[from].begin <= places[n].begin {
				p, q := places[from], places[n]
				t.flow("reads what it wrote", device, p.tid, p.begin, device, q.tid, q.begin)
			}
		}
	}
	t.modelled(g, name, max(begin, t.model), work)
}

// epochs writes the epochs of a replay whose commands have times: from the beginning of the first of its commands to the end of
// the last. Where a device lets two of them overlap, the later one is drawn from the end of the earlier.
func (t *tracer) epochs(g *Graph, x *replay.Timing, work []cost.Work) {
	type extent struct {
		begin, end micro
		commands   int
		bytes      float64
	}
	all := map[int32]*extent{}
	for i := range x.Commands {
		c := &x.Commands[i]
		n, ok := g.number[c.ID]
		if !ok {
			continue
		}
		from, to := t.at(c.Begin), t.at(c.End)
		if e := all[g.epochOf[n]]; e != nil {
			e.begin, e.end, e.commands, e.bytes = min(e.begin, from), max(e.end, to), e.commands+1, e.bytes+work[n].Bytes
		} else {
			all[g.epochOf[n]] = &extent{from, to, 1, work[n].Bytes}
		}
	}
	if len(all) > 0 {
		t.counter(device, "bytes moved", t.at(x.Begin), "bytes", 0)
	}
	end, moved := micro(-1<<62), 0.0
	for i := range int32(len(g.epochs)) {
		if e := all[i]; e != nil {
			begin := max(e.begin, end)
			end = max(begin, e.end)
			t.slice(device, t.thread(device, onEpochs, begin, end), fmt.Sprintf("epoch %d", i), "epoch", begin, end, map[string]any{"commands": e.commands, "bytes": whole(e.bytes)})
			moved += e.bytes
			t.counter(device, "bytes moved", end, "bytes", moved)
		}
	}
}

// modelled writes a replay by the model. It begins with the measured one, or where the modelled one before it ends.
func (t *tracer) modelled(g *Graph, name string, begin micro, work []cost.Work) {
	lay := layOut(&t.report.Model, g.epochs, work)
	at := func(s cost.Seconds) micro { return begin + micro(whole(float64(s)*1e9)) }
	t.model = at(lay.whole)
	t.slice(model, t.thread(model, onReplays, begin, t.model), name, "replay", begin, t.model, nil)
	for i, e := range g.epochs {
		first, end := at(lay.epochs[i].begin), at(lay.epochs[i].end)
		bytes := 0.0
		for _, n := range e.commands {
			bytes += work[n].Bytes
		}
		t.slice(model, t.thread(model, onEpochs, first, end), fmt.Sprintf("epoch %d", i), "epoch", first, end, map[string]any{"commands": len(e.commands), "bytes": whole(bytes)})
		t.load(model, add(nil, first, end, bytes))
		for _, n := range e.commands[:min(len(e.commands), mostBeside)] { // all begin at once: each has a track of its own
			from, to := at(lay.commands[n].begin), at(lay.commands[n].end)
			t.slice(model, t.thread(model, onCommands, from, to), g.shown(n), "command", from, to, nil)
		}
	}
}

// whole rounds a number that a model computed, which hostile sizes may make infinite.
func whole(x float64) int64 {
	if !(x > 0) {
		return 0
	}
	return int64(min(x+0.5, 1<<50))
}

// change is one of the bytes that move a second.
type change struct {
	at micro
	by float64
}

func add(load []change, from, to micro, bytes float64) []change {
	if to <= from || bytes <= 0 {
		return load
	}
	rate := bytes / float64(to-from) // 10^9 bytes a second
	return append(load, change{from, rate}, change{to, -rate})
}

// load writes the counter of bytes a second.
func (t *tracer) load(pid int, all []change) {
	slices.SortStableFunc(all, func(a, b change) int { return cmp.Compare(a.at, b.at) })
	now, running := 0.0, 0
	for i, c := range all {
		now += c.by
		if c.by > 0 {
			running++
		} else if running--; running == 0 {
			now = 0 // sums of floats need not end there
		}
		if i+1 == len(all) || all[i+1].at != c.at {
			t.counter(pid, "bytes a second", c.at, "GB/s", max(0, now))
		}
	}
}

// shown is what a command is called.
func (g *Graph) shown(n int32) string { return page.Shown(g.full.Describe(g.commands[n])) }

// args are what a trace says of a command.
func (g *Graph) args(n int32, w *cost.Work) map[string]any {
	out := map[string]any{"kernel": page.Shown(g.kernels[n]), "bytes": whole(w.Bytes), "operations": whole(w.Operations), "modelled_us": float64(whole(float64(w.Alone)*1e9)) / 1e3}
	if l := ir.LabelOf(g.commands[n]); l != "" {
		out["label"] = page.Shown(l)
	}
	return out
}
