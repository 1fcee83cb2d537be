// Package caches holds the test that caches do not change results. It optimizes and proves the same graphs with and
// without caches (package internal/invariants), and compares everything that is reported: optimized graphs, remarks,
// figures, verdicts, findings.
package caches
