// Macros, conditions and headers, as the preprocessor leaves them.

// case: includes of what is compiled are collected
#include <a.h>
#ifdef __HIPCC__
#include "b.h"
#else
#include<c.h>
#endif
#pragma once
#pragma unroll
// want: #pragma unroll
// want: include: <a.h>
// want: include: "b.h"
// want: decided: line 2: #ifdef __HIPCC__ holds: __HIPCC__ is 1
