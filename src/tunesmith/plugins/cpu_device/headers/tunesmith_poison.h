// Included behind our own headers and before a stranger's text: what it pastes together is no assembly either.
#include <stdlib.h>
#include <type_traits>
#pragma GCC poison asm __asm __asm__
