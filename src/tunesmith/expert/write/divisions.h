// Cheaper forms of quotients, as macros.
// Parts begin with their names; parts.py puts words in place of @THESE@.
//= of an index
// Of an index by what is the same for the whole launch, with what was made of it before.
#if @KIND@ == 1  // a power of two
#define @QUOTIENT@(x, d, made) ((x) >> (made))
#define @REST@(x, d, made) ((x) & ((d) - 1))
#elif @KIND@ == 2  // exact as long as x * d has 32 bits
#define @QUOTIENT@(x, d, made) ((int)__umulhi((unsigned int)(x), made))
#define @REST@(x, d, made) ((x) - @QUOTIENT@(x, d, made) * (d))
#else
#define @QUOTIENT@(x, d, made) ((x) / (d))
#define @REST@(x, d, made) ((x) % (d))
#endif
//= inverse
#if @KIND@ == 2  // nearly the nearest float, which is near enough to be set right
#define @INVERSE@(y) fmaf(fmaf(-(y), __fdividef(1.0f, y), 1.0f), __fdividef(1.0f, y), __fdividef(1.0f, y))
#else
#define @INVERSE@(y) (1.0f / (y))
#endif
//= over
// x / y where 1 / y is at hand: a product, a product set right by its remainder, the division.
#if @KIND@ == 1
#define @OVER@(x, y, inverse) ((x) * (inverse))
#elif @KIND@ == 2
#define @OVER@(x, y, inverse) @FMA@(@FMA@(-((x) * (inverse)), y, x), inverse, (x) * (inverse))
#else
#define @OVER@(x, y, inverse) @PLAIN@
#endif
