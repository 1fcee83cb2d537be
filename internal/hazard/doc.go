// Package hazard decides which accesses conflict, on bytes: aliases resolved,
// strides and params taken into account. Passes use it; the prover does not
// (it has its own).
//
// [Disjoint] compares two regions for all values of the params. A [Tracker]
// remembers the accesses of an epoch and finds those that a new one conflicts
// with, in O((k+1) log n) for k overlapping hulls.
package hazard
