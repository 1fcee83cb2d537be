// Package caches holds the test that caches decide nothing. It optimizes and proves the same graphs with
// and without what is remembered (package internal/invariants), and compares all that is said: optimized
// graphs, remarks, figures, verdicts, findings.
package caches
