// Package plan turns a graph into what an encoder is told, whatever sends it: set this pipeline,
// this buffer at that slot, dispatch, barrier. It knows no Objective-C.
//
// A [Plan] is made once, by [Lower]. Its operations are few: an encoder keeps pipeline and arguments
// from one dispatch to the next, so that only what changes is set again. What depends on params is
// listed apart ([Var]), so that a replay changes these words and nothing else. Memories are named by
// their roots in the graph; where they lie is said when a plan is sent. A [Live] is one whose commands
// come one by one, over memories that may move; a [Stored] one, whose dispatches are encoded once and
// executed again and again.
package plan
