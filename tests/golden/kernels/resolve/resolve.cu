// Conditions that known values decide, and macros that are numbers by then.

// case: a condition asks only what is not known
// with: values = { KEEP = 2 }
#define HALF(x) ((x) / 2)
#define TWICE (KEEP * 2)
#if KEEP
yes
#else
no
#endif
// want: #define KEEP 2
// want: #define HALF(x) ((x) / 2)
// want: #define TWICE (KEEP * 2)
// want: yes

// case: a condition asks only what is not known (2)
// with: values = { KEEP = 2 }
#define HALF(x) ((x) / 2)
#define TWICE (KEEP * 2)
#if !KEEP
yes
#else
no
#endif
// want: #define KEEP 2
// want: #define HALF(x) ((x) / 2)
// want: #define TWICE (KEEP * 2)
// want: no

// case: a condition asks only what is not known (3)
// with: values = { KEEP = 2 }
#define HALF(x) ((x) / 2)
#define TWICE (KEEP * 2)
#if KEEP == 2 && VEC > 1
yes
#else
no
#endif
// want: #define KEEP 2
// want: #define HALF(x) ((x) / 2)
// want: #define TWICE (KEEP * 2)
// want: #if VEC > 1
// want: yes
// want: #else
// want: no
// want: #endif

// case: a condition asks only what is not known (4)
// with: values = { KEEP = 2 }
#define HALF(x) ((x) / 2)
#define TWICE (KEEP * 2)
#if KEEP == 1 && VEC > 1
yes
#else
no
#endif
// want: #define KEEP 2
// want: #define HALF(x) ((x) / 2)
// want: #define TWICE (KEEP * 2)
// want: no

// case: a condition asks only what is not known (5)
// with: values = { KEEP = 2 }
#define HALF(x) ((x) / 2)
#define TWICE (KEEP * 2)
#if KEEP == 2 || VEC > 1
yes
#else
no
#endif
// want: #define KEEP 2
// want: #define HALF(x) ((x) / 2)
// want: #define TWICE (KEEP * 2)
// want: yes

// case: a condition asks only what is not known (6)
// with: values = { KEEP = 2 }
#define HALF(x) ((x) / 2)
#define TWICE (KEEP * 2)
#if (KEEP == 1 || VEC > 1) && KEEP
yes
#else
no
#endif
// want: #define KEEP 2
// want: #define HALF(x) ((x) / 2)
// want: #define TWICE (KEEP * 2)
// want: #if VEC > 1
// want: yes
// want: #else
// want: no
// want: #endif

// case: a condition asks only what is not known (7)
// with: values = { KEEP = 2 }
#define HALF(x) ((x) / 2)
#define TWICE (KEEP * 2)
#if (ROWS || VEC > 1) && KEEP
yes
#else
no
#endif
// want: #define KEEP 2
// want: #define HALF(x) ((x) / 2)
// want: #define TWICE (KEEP * 2)
// want: #if (ROWS || VEC > 1)
// want: yes
// want: #else
// want: no
// want: #endif

// case: a condition asks only what is not known (8)
// with: values = { KEEP = 2 }
#define HALF(x) ((x) / 2)
#define TWICE (KEEP * 2)
#if __CUDA_ARCH__ >= 900
yes
#else
no
#endif
// want: #define KEEP 2
// want: #define HALF(x) ((x) / 2)
// want: #define TWICE (KEEP * 2)
// want: #if __CUDA_ARCH__ >= 900
// want: yes
// want: #else
// want: no
// want: #endif

// case: a condition asks only what is not known (9)
// with: values = { KEEP = 2 }
#define HALF(x) ((x) / 2)
#define TWICE (KEEP * 2)
#if defined(KEEP) && defined VEC
yes
#else
no
#endif
// want: #define KEEP 2
// want: #define HALF(x) ((x) / 2)
// want: #define TWICE (KEEP * 2)
// want: #if defined VEC
// want: yes
// want: #else
// want: no
// want: #endif

// case: a condition asks only what is not known (10)
// with: values = { KEEP = 2 }
#define HALF(x) ((x) / 2)
#define TWICE (KEEP * 2)
#if VEC ? KEEP : 0
yes
#else
no
#endif
// want: #define KEEP 2
// want: #define HALF(x) ((x) / 2)
// want: #define TWICE (KEEP * 2)
// want: #if VEC ? KEEP : 0
// want: yes
// want: #else
// want: no
// want: #endif

// case: a condition asks only what is not known (11)
// with: values = { KEEP = 2 }
#define HALF(x) ((x) / 2)
#define TWICE (KEEP * 2)
#if HALF(KEEP) == 1
yes
#else
no
#endif
// want: #define KEEP 2
// want: #define HALF(x) ((x) / 2)
// want: #define TWICE (KEEP * 2)
// want: yes

// case: a condition asks only what is not known (12)
// with: values = { KEEP = 2 }
#define HALF(x) ((x) / 2)
#define TWICE (KEEP * 2)
#if TWICE == 4
yes
#else
no
#endif
// want: #define KEEP 2
// want: #define HALF(x) ((x) / 2)
// want: #define TWICE (KEEP * 2)
// want: yes

// case: branches in a row
// with: values = { A = 1 }
#if A == 1
one
#elif B
bee  // said
#elif A == 2
two
#elif C
sea
#else
rest
#endif
// want: #define A 1
// want: one

// case: branches in a row (2)
// with: values = { A = 2 }
#if A == 1
one
#elif B
bee  // said
#elif A == 2
two
#elif C
sea
#else
rest
#endif
// want: #define A 2
// want: #if B
// want: bee  // said
// want: #else
// want: two
// want: #endif

// case: branches in a row (3)
// with: values = { A = 3, B = 0 }
#if A == 1
one
#elif B
bee  // said
#elif A == 2
two
#elif C
sea
#else
rest
#endif
// want: #define A 3
// want: #define B 0
// want: #if C
// want: sea
// want: #else
// want: rest
// want: #endif

// case: what is inside a branch that is gone is gone whatever it asks
// with: values = { A = 0 }
#if A
#if B
x
#else
y
#endif
#define Q 1
#endif
z
// want: #define A 0
// want: z

// case: a comment of a condition that holds stands by itself
// with: values = { A = 1 }
void f()
{
#if A  // all at once
    g();
#endif
}
// want: #define A 1
// want: void f()
// want: {
// want:     // all at once
// want:     g();
// want: }

// case: a default gives way to the value where it stands unless it was used before
// with: values = { A = 4 }
int a;
#ifndef A
#define A 1  // threads
#endif
int b[A];
// want: int a;
// want: #define A 4  // threads
// want: int b[A];

// case: a default gives way to the value where it stands unless it was used before (2)
// with: values = { A = 4 }
int early = A;
int a;
#ifndef A
#define A 1  // threads
#endif
int b[A];
// want: #define A 4
// want: int early = A;
// want: int a;
// want: int b[A];

// case: a default gives way to the value where it stands unless it was used before (3)
// with: values = { A = 4 }
// with: early = ["A"]
int a;
#ifndef A
#define A 1  // threads
#endif
int b[A];
// want: #define A 4
// want: int a;
// want: int b[A];

// case: a default gives way to the value where it stands unless it was used before (4)
// with: values = { A = -4 }
int a;
#ifndef A
#define A 1  // threads
#endif
int b[A];
// want: int a;
// want: #define A (-4)  // threads
// want: int b[A];

// case: a macro that is one of several is not known
// with: values = { A = 1 }
#if B
#define N 1
#else
#define N 2
#endif
#if N == 1
x
#endif
// want: #define A 1
// want: #if B
// want: #define N 1
// want: #else
// want: #define N 2
// want: #endif
// want: #if N == 1
// want: x
// want: #endif

// case: numbers take the place of arithmetic and bools stay
// with: values = { A = 4 }
// with: fold = true
#define A 4
#define N (A > 2 ? A * 2 : 1)  // why
#define IS (A > 2)
#define U (A * 2u)
#define X (A * B)
// want: #define A 4
// want: #define N 8  // why
// want: #define IS (A > 2)
// want: #define U (A * 2u)
// want: #define X (A * B)

// case: what the preprocessor makes of it is the same
// with: values = { A = 1 }
#ifndef A
#define A 1
#endif
#if A > 1 && B
int x[A];
#elif B == 0
int y;
#else
int z;
#endif
// want: #define A 1
// want: #if B == 0
// want: int y;
// want: #else
// want: int z;
// want: #endif

// case: what the preprocessor makes of it is the same (2)
// with: values = { A = 2 }
#ifndef A
#define A 1
#endif
#if A > 1 && B
int x[A];
#elif B == 0
int y;
#else
int z;
#endif
// want: #define A 2
// want: #if B
// want: int x[A];
// want: #elif B == 0
// want: int y;
// want: #else
// want: int z;
// want: #endif
