// Statements as trees.

// case: a name that is a type elsewhere can be a variable
const int half = d / 2; x = (half) - 3;
// want: Declare(<const int> half Binary(/ d 2))
// want: Evaluate(Assign(= x Binary(- half 3)))

// case: a name that is a type elsewhere can be a variable (2)
x = half - 3;
// want: Evaluate(Assign(= x Binary(- half 3)))

// case: declarations are split and their types canonical
const unsigned a = 1, *b = p, c[2] = {1, 2}; long int d; float4 e(x, y); T4 f{};
// want: Declare(<const unsigned int> a 1)
// want: Declare(<const unsigned int *> b p)
// want: Declare(<const unsigned int> c Braces([1 2]) [2])
// want: Declare(<long> d)
// want: Declare(<float4> e Braces([x y] <float4>))
// want: Declare(<T4> f Braces([]))

// case: shared memory is known with its alignment
extern __shared__ __align__(16) unsigned char bytes[];
__shared__ alignas(8) float tile[32][33];
__shared__ float late[4] __attribute__((aligned(32)));
static __shared__ float one;
// want: Declare(<unsigned char> bytes storage=dynamic shared align=16)
// want: Declare(<float> tile dims=[32 33] storage=shared align=8)
// want: Declare(<float> late dims=[4] storage=shared align=32)
// want: Declare(<float> one storage=shared)

// case: a pragma belongs to the loop after it
    if (inside)
#pragma unroll
        for (int i = 0; i < 4; i++) a += i;
#pragma unroll 1
    for (;;) break;
#pragma nounroll
    for (;;) break;
#pragma unroll (8)
    for (;;) break;
    for (;;) break;
// want: If(inside [For([Declare(<int> i 0)] Binary(< i 4) [Unary(++ i True)] [Evaluate(Assign(+= a i))] 0)])
// want: For([] None [] [Jump(break)] 1)
// want: For([] None [] [Jump(break)] 1)
// want: For([] None [] [Jump(break)] 8)
// want: For([] None [] [Jump(break)])

// case: control flow
if constexpr (a) { f(); } else if (b) g(); else { h(); i(); }
while (a) b++;
do { f(); } while (a);
do { f(); } while (0);
for (i = 0, j = 1; i < n; ++i, j += 2) { if (a) continue; }
a = 1, b = 2;
;
// want: If(a [Evaluate(Call(f))] [If(b [Evaluate(Call(g))] [Evaluate(Call(h)) Evaluate(Call(i))])] True)
// want: While(a [Evaluate(Unary(++ b True))])
// want: While(a [Evaluate(Call(f))] True)
// want: Scope([Evaluate(Call(f))])
// want: For([Evaluate(Assign(= i 0)) Evaluate(Assign(= j 1))] Binary(< i n) [Unary(++ i) Assign(+= j 2)] [If(a [Jump(continue)])])
// want: Evaluate(Assign(= a 1))
// want: Evaluate(Assign(= b 2))

// case: what is not understood is stored with its names
switch (a) { case 1: b = c; }
// want: Verbatim(switch (a) { case 1: b = c; } {a b c case switch})

// case: what is not understood is stored with its names (2)
again: goto again;
// want: Verbatim(again: goto again; {again goto})

// case: what is not understood is stored with its names (3)
asm("trap;" : : "r"(a));
// want: Verbatim(asm("trap;" : : "r"(a)); {a asm})

// case: what is not understood is stored with its names (4)
if (int x = a) b = x;
// want: Verbatim(if (int x = a) b = x; {a b if int x})

// case: a lambda that keeps a value of its own stays text
auto f = [b = a](int q) { return q + b; };
// want: Declare(<auto> f Opaque([b = a](int q) { return q + b; } {a b int q return}))

// case: a pragma may come from a macro
// with: before = '#define UNROLL _Pragma("unroll 2")'
UNROLL for (;;) break;
// want: For([] None [] [Jump(break)] 2)

// case: the call of a variable is not understood
auto f = [n = 1](int q) { return q; }; a = f(3);
// want: Declare(<auto> f Opaque([n = 1](int q) { return q; } {int n q return}))
// want: Evaluate(Assign(= a Opaque(f(3) {f})))
