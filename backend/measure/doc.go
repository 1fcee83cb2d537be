// Package measure measures what launches, dispatches, barriers and copies cost a device by the plan that it was opened
// with, by which `auto` chooses among plans. What runs are made-up graphs of the smallest kernels, in memory of their
// own, so that nothing of a program's states changes.
//
//   - [On] times a graph on a device for some rounds; [Times] are what a plan costs.
//   - [Launches] is for plans whose commands are launches that follow one another, in a row or by edges; [Encoding]
//     for those that encode dispatches and barriers; [Copy] for memory.
//   - [Believe] puts the result into a cost model.
package measure
