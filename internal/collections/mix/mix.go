// Package mix mixes words into a hash, for the tables of this module. Equal input
// gives equal hashes; nothing is promised of other input, so whoever looks something
// up compares it too.
package mix

import "math/bits"

// Word mixes x into h, by one wide multiplication (as wyhash does).
func Word(h, x uint64) uint64 {
	hi, lo := bits.Mul64(h^x, 0x9e3779b97f4a7c15)
	return hi ^ lo
}
