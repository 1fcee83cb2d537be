// What declarations of rotations share: the elements a and b of v turned by theta (docs/kernels.md, "Families").
//
// @text first(v; a; b; theta) = {v}[{a}] * cos(theta[{theta}]) - {v}[{b}] * sin(theta[{theta}])
// @text second(v; a; b; theta) = {v}[{a}] * sin(theta[{theta}]) + {v}[{b}] * cos(theta[{theta}])
