// C's own, without C++'s overloads: those are in tunesmith_math.h.
#pragma once
#pragma push_macro("_GLIBCXX_INCLUDE_NEXT_C_HEADERS")
#undef _GLIBCXX_INCLUDE_NEXT_C_HEADERS
#define _GLIBCXX_INCLUDE_NEXT_C_HEADERS 1
#include_next <math.h>
#pragma pop_macro("_GLIBCXX_INCLUDE_NEXT_C_HEADERS")
