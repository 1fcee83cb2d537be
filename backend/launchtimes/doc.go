// Package launchtimes measures what launching commands costs a device by the plan that it was opened with:
// cost.PlanTimes, by which `auto` chooses among plans. What is measured are made-up graphs of the smallest
// kernels, in memory of their own, so that nothing of a program's states changes.
package launchtimes
