// Expressions, printed again.
// with: before = "template <typename T, int N> __device__ T f(T x);"

// case: parentheses that are needed and no others
// each line
a + b * c  // want: a + b * c
(a + b) * c  // want: (a + b) * c
a - (b - c)  // want: a - (b - c)
a - b - c  // want: a - b - c
a / (b / c) % d  // want: a / (b / c) % d
-(-a)  // want: -(-a)
-(-3)  // want: -(-3)
!(a < b)  // want: !(a < b)
a ? b : c ? d : e  // want: a ? b : c ? d : e
(a ? b : c) ? d : e  // want: (a ? b : c) ? d : e
f((a, b), c)  // want: f((a, b), c)
a = b = c  // want: a = b = c
(a = b) + c  // want: (a = b) + c
(float)a[i]  // want: (float)a[i]
((float *)a)[i]  // want: ((float *)a)[i]
(T)(-a)  // want: (T)(-a)
(float)-a  // want: (float)-a
(unsigned int)a >> 3  // want: (unsigned int)a >> 3
&a[i]  // want: &a[i]
(&a)[i]  // want: (&a)[i]
a++ + ++b  // want: a++ + ++b
a->x.y  // want: a->x.y
(a & 31) == 0  // want: (a & 31) == 0
(a << 2) + b  // want: (a << 2) + b
(a && b) || c  // want: (a && b) || c
f<float, 4>(a)  // want: f<float, 4>(a)
float2{a, b}  // want: float2{a, b}
sizeof(float4)  // want: sizeof(float4)
0xffffffffu  // want: 0xffffffffu
std::max(a, b)  // want: std::max(a, b)
