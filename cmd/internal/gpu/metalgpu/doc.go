// Package metalgpu brings Apple's GPUs to a program that imports it (gpu.Metal).
package metalgpu
