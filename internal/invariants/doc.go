// Package invariants says whether what is remembered is believed.
//
// Where [Caches] is false, what was found once is found again each time. Every cache of the module asks it
// before it looks something up. Package internal/testing/caches does the same work with and without, and
// compares what is said: a cache may save work and never decide.
//
// A hit is not compared with what is found anew, because nothing would say that two
// verdicts, matches or sets of effects are equal but their results, and those are what
// the comparison looks at.
//
// Tables in which equal things become one (terms, regions, values, names) are no
// caches: they are how equality is defined, and stay.
package invariants
