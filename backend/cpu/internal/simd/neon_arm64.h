// Instructions of arm64's Advanced SIMD that Go's assembler has no names for.
// The operands are numbers of registers in Go's order, sources first; behind
// each stands how the architecture writes it ({d} is the number that d stands
// for). TestNEONEncodings has clang assemble that and compares.

#define VFADD(m, n, d) WORD $(0x4e20d400 | (m)<<16 | (n)<<5 | (d)) // fadd v{d}.4s, v{n}.4s, v{m}.4s
#define VFSUB(m, n, d) WORD $(0x4ea0d400 | (m)<<16 | (n)<<5 | (d)) // fsub v{d}.4s, v{n}.4s, v{m}.4s
#define VFMUL(m, n, d) WORD $(0x6e20dc00 | (m)<<16 | (n)<<5 | (d)) // fmul v{d}.4s, v{n}.4s, v{m}.4s
#define VFDIV(m, n, d) WORD $(0x6e20fc00 | (m)<<16 | (n)<<5 | (d)) // fdiv v{d}.4s, v{n}.4s, v{m}.4s
#define VFMAX(m, n, d) WORD $(0x4e20f400 | (m)<<16 | (n)<<5 | (d)) // fmax v{d}.4s, v{n}.4s, v{m}.4s
#define VFMIN(m, n, d) WORD $(0x4ea0f400 | (m)<<16 | (n)<<5 | (d)) // fmin v{d}.4s, v{n}.4s, v{m}.4s
#define VFADDP(m, n, d) WORD $(0x6e20d400 | (m)<<16 | (n)<<5 | (d)) // faddp v{d}.4s, v{n}.4s, v{m}.4s
#define VFMAXV(n, d) WORD $(0x6e30f800 | (n)<<5 | (d)) // fmaxv s{d}, v{n}.4s
#define VFNEG(n, d) WORD $(0x6ea0f800 | (n)<<5 | (d)) // fneg v{d}.4s, v{n}.4s
#define VFABS(n, d) WORD $(0x4ea0f800 | (n)<<5 | (d)) // fabs v{d}.4s, v{n}.4s
#define VFRINTN(n, d) WORD $(0x4e218800 | (n)<<5 | (d)) // frintn v{d}.4s, v{n}.4s
#define VFCVTNS(n, d) WORD $(0x4e21a800 | (n)<<5 | (d)) // fcvtns v{d}.4s, v{n}.4s
#define VFCMLTZ(n, d) WORD $(0x4ea0e800 | (n)<<5 | (d)) // fcmlt v{d}.4s, v{n}.4s, #0.0
#define VFCMEQ(m, n, d) WORD $(0x4e20e400 | (m)<<16 | (n)<<5 | (d)) // fcmeq v{d}.4s, v{n}.4s, v{m}.4s
#define VFCVTL(n, d) WORD $(0x0e217800 | (n)<<5 | (d)) // fcvtl v{d}.4s, v{n}.4h
#define VFCVTL2(n, d) WORD $(0x4e217800 | (n)<<5 | (d)) // fcvtl2 v{d}.4s, v{n}.8h
#define VFCVTN(n, d) WORD $(0x0e216800 | (n)<<5 | (d)) // fcvtn v{d}.4h, v{n}.4s
#define VSXTLB(n, d) WORD $(0x0f08a400 | (n)<<5 | (d)) // sxtl v{d}.8h, v{n}.8b
#define VSXTLB2(n, d) WORD $(0x4f08a400 | (n)<<5 | (d)) // sxtl2 v{d}.8h, v{n}.16b
#define VSXTLH(n, d) WORD $(0x0f10a400 | (n)<<5 | (d)) // sxtl v{d}.4s, v{n}.4h
#define VSXTLH2(n, d) WORD $(0x4f10a400 | (n)<<5 | (d)) // sxtl2 v{d}.4s, v{n}.8h
#define VSCVTF(n, d) WORD $(0x4e21d800 | (n)<<5 | (d)) // scvtf v{d}.4s, v{n}.4s
#define VUCVTF(n, d) WORD $(0x6e21d800 | (n)<<5 | (d)) // ucvtf v{d}.4s, v{n}.4s

// VUCVTFX converts numbers with f (1 to 32) bits behind the point.
#define VUCVTFX(f, n, d) WORD $(0x6f00e400 | (64-(f))<<16 | (n)<<5 | (d)) // ucvtf v{d}.4s, v{n}.4s, #{f}

#define VSSHR1(n, d) WORD $(0x4f3f0400 | (n)<<5 | (d)) // sshr v{d}.4s, v{n}.4s, #1

// VFMLAE adds n times lane i of m.
#define VFMLAE(i, m, n, d) WORD $(0x4f801000 | ((i)&1)<<21 | ((i)>>1)<<11 | (m)<<16 | (n)<<5 | (d)) // fmla v{d}.4s, v{n}.4s, v{m}.s[{i}]

// VFMULE multiplies n by lane i of m.
#define VFMULE(i, m, n, d) WORD $(0x4f809000 | ((i)&1)<<21 | ((i)>>1)<<11 | (m)<<16 | (n)<<5 | (d)) // fmul v{d}.4s, v{n}.4s, v{m}.s[{i}]
