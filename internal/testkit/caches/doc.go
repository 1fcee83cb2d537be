// Package caches holds the test that caches decide nothing. It builds itself with the
// tag invariants, in which nothing that was remembered is believed (package
// internal/invariants), has both builds optimize and prove the same graphs, and
// compares all that they say: optimized graphs, remarks, figures, verdicts, findings.
package caches
