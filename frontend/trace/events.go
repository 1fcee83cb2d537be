package trace

import (
	"fmt"
	"strings"
)

// Kind is the kind of an event.
type Kind uint32

// The events. Their numbers are the codes of logs that mlxrec.h and [Writer] write; a log says its own.
const (
	Program Kind = iota + 1
	Library
	Pipeline
	Buffer
	Free
	Contents
	Zeros
	Name
	Step
	Param
	Commands
	Enqueue
	Commit
	Wait
	Encoder
	End
	Use
	Bind
	Bytes
	Threadgroup
	Reads
	Writes
	Dispatch
	Barrier
	FenceUpdate
	FenceWait
	Signal
	Await
	Copy
	Fill
	Push
	Pop
	Unknown
	Ended
	Holds
	kinds
)

// Field is a field of an event: n is a number, s a text, b bytes.
type Field struct {
	Name     string
	Type     byte
	Optional bool // a log need not have it; it is 0 or empty then
}

// Event is a row of the table of events.
type Event struct {
	Name   string
	Fields []Field
	Help   string
}

// fields reads "encoder:n label:s?".
func fields(text string) (out []Field) {
	for _, w := range strings.Fields(text) {
		w, optional := strings.CutSuffix(w, "?")
		name, typ, _ := strings.Cut(w, ":")
		out = append(out, Field{name, typ[0], optional})
	}
	return out
}

// Events is the table of events, by their kinds. Objects have numbers, which are given once: an object that is made
// at the address of another one has another number.
var Events = [kinds]Event{
	Program:     {"program", fields("name:s writer:s"), "who writes the log: the program's name, and what logs it"},
	Library:     {"library", fields("library:n kind:s name:s code:b options:s?"), "code: kind is source or metallib; options are those of clang -D and -I, a line each, and fast-math"},
	Pipeline:    {"pipeline", fields("pipeline:n library:n function:s constants:b? label:s?"), "a function of a library, with function constants: of each u32 index, u32 type (as MTLDataType), u64 bits"},
	Buffer:      {"buffer", fields("buffer:n bytes:n storage:n? untracked:n? label:s? parent:n? offset:n?"), "memory of a device: storage is 0 shared, 1 managed, 2 private; parent, if not 0, is the buffer that it is a part of, from byte offset on"},
	Free:        {"free", fields("buffer:n"), "nothing uses the buffer any more"},
	Contents:    {"contents", fields("buffer:n offset:n data:b"), "what the buffer holds here before the next commit, written by the host"},
	Zeros:       {"zeros", fields("buffer:n offset:n bytes:n"), "contents that are zeros"},
	Name:        {"name", fields("buffer:n name:s role:s?"), "what a buffer is for people; role is weight, input, output, state or scratch"},
	Step:        {"step", fields("name:s"), "what is committed from here on up to the next step is one run of the graph of that name; an empty name is none"},
	Param:       {"param", fields("name:s value:n"), "a number on which the step depends, such as the position of its token"},
	Commands:    {"commands", fields("commands:n queue:n label:s?"), "a command buffer"},
	Enqueue:     {"enqueue", fields("commands:n"), "the place of a command buffer in its queue"},
	Commit:      {"commit", fields("commands:n"), "the command buffer goes to the device"},
	Wait:        {"wait", fields("commands:n"), "the host waits until the command buffer has ended"},
	Encoder:     {"encoder", fields("encoder:n commands:n kind:s concurrent:n? label:s?"), "an encoder: kind is compute or blit"},
	End:         {"end", fields("encoder:n"), "the encoder ends"},
	Use:         {"use", fields("encoder:n pipeline:n"), "the pipeline of the dispatches that follow"},
	Bind:        {"bind", fields("encoder:n slot:n buffer:n offset:n"), "a buffer at a slot; buffer 0 takes it away"},
	Bytes:       {"bytes", fields("encoder:n slot:n data:b"), "inline bytes at a slot"},
	Threadgroup: {"threadgroup", fields("encoder:n slot:n bytes:n"), "threadgroup memory"},
	Reads:       {"reads", fields("encoder:n slot:n offset:n bytes:n"), "the next dispatch reads nothing of the slot but this; several add up. A hint by who knows"},
	Writes:      {"writes", fields("encoder:n slot:n offset:n bytes:n must:n?"), "the next dispatch writes nothing of the slot but this; all of it, if must is 1"},
	Dispatch:    {"dispatch", fields("encoder:n threads:n x:n y:n z:n gx:n gy:n gz:n label:s?"), "a grid of x·y·z threads, or threadgroups if threads is 0, in threadgroups of gx·gy·gz"},
	Barrier:     {"barrier", fields("encoder:n"), "a memory barrier"},
	FenceUpdate: {"fence-update", fields("encoder:n fence:n"), "the fence stands behind what the encoder has"},
	FenceWait:   {"fence-wait", fields("encoder:n fence:n"), "the encoder waits for the fence"},
	Signal:      {"signal", fields("commands:n event:n value:n"), "the command buffer signals an event"},
	Await:       {"await", fields("commands:n event:n value:n"), "the command buffer waits for an event"},
	Copy:        {"copy", fields("encoder:n from:n from_offset:n to:n to_offset:n bytes:n"), "a copy by a blit encoder"},
	Fill:        {"fill", fields("encoder:n buffer:n offset:n bytes:n value:n"), "a fill by a blit encoder"},
	Push:        {"push", fields("encoder:n label:s"), "a group of commands, for people"},
	Pop:         {"pop", fields("encoder:n"), "the group ends"},
	Unknown:     {"unknown", fields("what:s"), "something was done that the writer cannot log"},
	Ended:       {"ended", fields("commands:n"), "the command buffer has ended, and a completion handler of the program's is called"},
	Holds:       {"holds", fields("buffer:n offset:n data:b"), "what the buffer holds here before the next commit, whoever wrote it"},
}

var byName = func() map[string]Kind {
	out := map[string]Kind{}
	for k := range Events {
		out[Events[k].Name] = Kind(k)
	}
	return out
}()

func kindNamed(name string) (Kind, bool) {
	k, ok := byName[name]
	return k, ok && name != ""
}

// Schema is the text of code 0 for all events.
func Schema() string {
	var b strings.Builder
	for k := Program; k < kinds; k++ {
		fmt.Fprintf(&b, "%d %s", k, Events[k].Name)
		for _, f := range Events[k].Fields {
			fmt.Fprintf(&b, " %s:%c", f.Name, f.Type)
		}
		b.WriteString("\n")
	}
	return b.String()
}
