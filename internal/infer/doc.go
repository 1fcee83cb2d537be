// Package infer observes which bytes the dispatches of a kernel touch, and describes them in a declaration of effects
// (docs/effects.md).
//
// Dispatches of one kernel that differ only in numbers are a class: the integers among the arguments and the sizes of
// the grid are its symbols. [Observer] runs many shapes of a class, which are values for the symbols, on software
// Metal under the checker: those of a graph, and variations of them. For each it records the bytes of every argument
// that were read and written, with several contents of memory.
//
//   - [Observer.Compare] compares these bytes with a declaration.
//   - [Observer.Propose] looks for expressions in the symbols that give these bytes, tries them on
//     shapes that they were not fitted to, and widens those that fail.
//
// A proposal contradicts nothing that was observed, but it is not proved.
package infer
