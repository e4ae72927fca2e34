#ifndef TUNESMITH_STDLIB_H
#define TUNESMITH_STDLIB_H
#include <stddef.h>
#endif
