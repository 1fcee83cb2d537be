// Package dispatches makes dispatches that the declaration of a kernel describes, random ones and those of witnesses,
// runs them on a device, and judges the results by the declaration: the values are those of its term, computed by an
// interpreter, and the kernel touches the declared bytes and no others.
//
//   - solve.go draws values for which a declaration's conditions hold, dispatch.go makes a dispatch of them, witness.go
//     one of a witness.
//   - check.go runs a dispatch twice and judges it. [Cases] does so for random dispatches, [Witnesses] for witnesses.
//   - [Alike] and [SameBits] compare two devices, and two kernels whose terms are equal. [Sample] leaves the judgement to
//     the caller.
package dispatches
