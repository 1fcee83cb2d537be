// Package infer observes which bytes the dispatches of a kernel touch, and says it as a
// declaration of effects (docs/effects.md).
//
// Dispatches of one kernel that differ in numbers alone are a class: the integers among its
// arguments and the sizes of its grid are the class's symbols. [Observer] runs many shapes of a
// class, values of the symbols, on software Metal under the checker: those that a graph has,
// and variations of them. Of each it keeps the bytes that were read and written of every
// argument, with several contents of memory.
//
//   - [Observer.Compare] holds that against a declaration.
//   - [Observer.Propose] looks for expressions in the symbols that give these bytes, tries
//     them on shapes that they were not made from, and widens what does not hold.
//
// What is proposed was observed and is not proved: it contradicts nothing that was seen.
package infer
