// Package invariants says whether this is the build that believes nothing it
// remembers.
//
// With the build tag invariants, [Caches] is false: what was found once is found again
// each time. Every cache of the module asks it before it looks something up, so in the
// usual build the compiler removes the question. Package internal/testkit/caches runs
// both builds and compares what they say: a cache may save work and never decide.
//
// A hit is not compared with what is found anew, because nothing would say that two
// verdicts, matches or sets of effects are equal but their results, and those are what
// the comparison looks at.
//
// Tables in which equal things become one (terms, regions, values, names) are no
// caches: they are how equality is defined, and stay.
package invariants
