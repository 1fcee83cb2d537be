// Package targets tests that every package, tests included, type-checks for other machines than the one that runs the
// tests: for Macs, and what the commands are made of for Windows. It only reads sources and compiles nothing, which takes an eighth of the time of go vet. The target
// darwin of the Makefile, part of test-all, compiles, links and vets.
package targets
