// ================================================================================================
// >>kernels-end  the end of what is compiled for each set
// The words and the set go; EINI_KERNELS stays for the next one.
// ================================================================================================

#undef EINI_VT
#undef EINI_V
#undef EINI_VW
#undef EINI_VBYTES
#undef EINI_VAT
#undef EINI_VEND
#undef EINI_VLOAD
#undef EINI_VSTORE
#undef EINI_VSTREAM
#undef EINI_VPAST
#undef EINI_VSET
#undef EINI_VADD
#undef EINI_VSUB
#undef EINI_VMUL
#undef EINI_VFMA
#undef EINI_VFNMA
#undef EINI_VDIV
#undef EINI_VSQRT
#undef EINI_VNEG
#undef EINI_VABS
#undef EINI_VRELU
#undef EINI_VMIN
#undef EINI_VMAX
#undef EINI_VTOP
#undef EINI_VLOW
#undef EINI_VKEEP
#undef EINI_VFLOOR
#undef EINI_VCEIL
#undef EINI_VRINT
#undef EINI_VEXP
#undef EINI_VEXPS
#undef EINI_VB
#undef EINI_VBITS
#undef EINI_VFROM
#undef EINI_VBSET
#undef EINI_VBSUB
#undef EINI_VSHR
#undef EINI_VSHL
#undef EINI_FN
#undef EINI_VEC
#endif  // EINI_KERNELS
