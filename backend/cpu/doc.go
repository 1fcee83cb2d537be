// Package cpu is the embedded backend: every kernel of package msl in pure Go,
// on all cores, with assembly for the inner loops where the machine has it. It
// is the numerical reference that other backends are compared with, and fast
// enough to use.
//
// Each file holds one family of kernels, the twins of one .metal file. A
// [Kernel] cuts its work into independent units; the device (device.go) shares
// them among workers (pool.go). Results do not depend on the number of workers.
package cpu
