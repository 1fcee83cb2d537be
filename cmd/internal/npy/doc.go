// Package npy reads and writes arrays in NumPy's .npy format, versions 1, 2 and
// 3 (numpy.lib.format describes it).
//
// A file is a magic string, a version, the length of a header, the header — a
// Python literal such as
//
//	{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
//
// padded with spaces to a newline — and the elements. [Read] and [Load] give
// every array in one form: little endian and in C order (the last index runs
// fastest), whatever the file has. [Write] and [Save] write version 1, the same
// bytes as numpy.save.
//
// # What this package is not
//
// It has no structured types, strings, objects or complex numbers, no .npz
// archives, and no views: an array owns its bytes. NumPy has no bfloat16 of its
// own, and so this package has none.
//
// # Files that lie
//
// Nothing of a header is believed before it is checked. A bad file gives an
// [*Error] with the offset of the byte at fault,
//
//	npy: x.npy: offset 128: shape (1000000,) of float32 wants 4000000 bytes, 16 follow the header
//
// and costs at most its own size and 1 MB of memory, whatever shape it claims.
//
// # Example
//
//	a, err := npy.Load("x.npy")
//	…
//	y, err := npy.Of([]float32{1, 2, 3, 4, 5, 6}, 2, 3)
//	…
//	err = npy.Save("y.npy", y)
package npy
