#ifndef TUNESMITH_STDDEF_H
#define TUNESMITH_STDDEF_H
typedef decltype((char *)0 - (char *)0) ptrdiff_t;
#define NULL 0
#ifndef offsetof
#define offsetof(type, member) __builtin_offsetof(type, member)
#endif
#endif
