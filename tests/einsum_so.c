// The library as one translation unit, for a shared library that scripts load.
#define EINSUM_IMPLEMENTATION
#include "../einsum.h"
