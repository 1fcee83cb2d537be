// Package plan lowers a graph to the operations that an encoder of GPU commands is given, by whatever API: set this
// pipeline, bind this buffer at that slot, dispatch, barrier.
//
// A [Plan] is made once, by [Lower]. An encoder keeps pipeline and arguments from one dispatch to the next, so that
// a plan sets only what changes. What depends on params is listed apart ([Var]): a replay changes these words and
// nothing else. Operations name memories by their roots in the graph; where they lie is said when a plan is encoded.
// A [Live] makes a plan of commands that come one by one, over memories that may move; a [Stored] is a plan whose
// dispatches are encoded once and executed again and again.
package plan
