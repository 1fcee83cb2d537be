// Package mix mixes words into a hash, for the hash tables of this module. Equal input
// gives equal hashes. Different input may give equal hashes too, so a table must also
// compare what it finds.
package mix

import "math/bits"

// Word mixes x into h, by one wide multiplication (as wyhash does).
func Word(h, x uint64) uint64 {
	hi, lo := bits.Mul64(h^x, 0x9e3779b97f4a7c15)
	return hi ^ lo
}
