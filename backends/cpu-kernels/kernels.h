// ================================================================================================
// >>kernels  what is compiled for each set of vectors
// EINI_KERNELS says which of what follows, EINI_VEC for which set of einsum_cpu.h's vectors.
// ================================================================================================

// The words of section vectors, of the set at hand; EINI_FN(name) is a function of it.
#define EINI_VT EINI_X(T)
#define EINI_V EINI_X(V)
#define EINI_VW EINI_X(W)
#define EINI_VBYTES EINI_X(BYTES)
#define EINI_VAT EINI_X(AT)
#define EINI_VEND EINI_X(END)
#define EINI_VLOAD EINI_X(LOAD)
#define EINI_VSTORE EINI_X(STORE)
#define EINI_VSTREAM EINI_X(STREAM)
#define EINI_VPAST EINI_X(PAST)
#define EINI_VSET EINI_X(SET)
#define EINI_VADD EINI_X(ADD)
#define EINI_VSUB EINI_X(SUB)
#define EINI_VMUL EINI_X(MUL)
#define EINI_VFMA EINI_X(FMA)
#define EINI_VFNMA EINI_X(FNMA)
#define EINI_VDIV EINI_X(DIV)
#define EINI_VSQRT EINI_X(SQRT)
#define EINI_VNEG EINI_X(NEG)
#define EINI_VABS EINI_X(ABS)
#define EINI_VRELU EINI_X(RELU)
#define EINI_VMIN EINI_X(MIN)
#define EINI_VMAX EINI_X(MAX)
#define EINI_VTOP EINI_X(TOP)
#define EINI_VLOW EINI_X(LOW)
#define EINI_VKEEP EINI_X(KEEP)
#define EINI_VFLOOR EINI_X(FLOOR)
#define EINI_VCEIL EINI_X(CEIL)
#define EINI_VRINT EINI_X(RINT)
#define EINI_VEXP EINI_X(EXP)
#define EINI_VEXPS EINI_X(EXPS)
#define EINI_VB EINI_X(B)
#define EINI_VBITS EINI_X(BITS)
#define EINI_VFROM EINI_X(FROM)
#define EINI_VBSET EINI_X(BSET)
#define EINI_VBSUB EINI_X(BSUB)
#define EINI_VSHR EINI_X(SHR)
#define EINI_VSHL EINI_X(SHL)
#define EINI_VU EINI_X(U)
#define EINI_VREAL EINI_X(REAL)
#define EINI_VREGS EINI_X(REGS)
#define EINI_VM EINI_X(M)
#define EINI_VMASK EINI_X(MASK)
#define EINI_VLOADM EINI_X(LOADM)
#define EINI_VSTOREM EINI_X(STOREM)
#define EINI_FN(name) EINI_CAT(eini_##name##_, EINI_X(TAG))
#define EINI_FAR(name) EINI_CAT(eini_##name##_, EINI_X(FAR))  // of the set FAR
// The statements X(0), X(1), .. of the first n up to 8, n constant once it is inlined. In loops
// over arrays some compilers would leave vectors in memory.
#define EINI_FIRST(n, X)                                                                     \
  { X(0) }                                                                                   \
  if ((n) > 1) { X(1) }                                                                      \
  if ((n) > 2) { X(2) }                                                                      \
  if ((n) > 3) { X(3) }                                                                      \
  if ((n) > 4) { X(4) X(5) X(6) X(7) }
