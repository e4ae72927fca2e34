// Expressions as trees: each thing has one spelling.
// read: expression

// case: each thing has one spelling
// each line
*p  // want: Index(p 0)
*(p + i)  // want: Index(p i)
p[i]  // want: Index(p i)
*&x  // want: x
&x[i]  // want: Unary(& Index(x i))
*(p - i)  // want: Index(Binary(- p i) 0)
threadIdx.x  // want: threadIdx.x
v.x  // want: Member(v x)
v->x  // want: Member(v x True)
-1  // want: -1
- 1.5f  // want: -1.5f=-1.5
-1u  // want: Unary(- 1u=1)
1'000  // want: 1'000=1000
true  // want: true=1
'a'  // want: 'a'=97
0x1p-3f  // want: 0x1p-3f=0.125
static_cast<float>(x)  // want: Cast(<float> x)
reinterpret_cast<const uint4 *>(p)  // want: Cast(<const uint4 *> p)
(const uint4 *)p  // want: Cast(<const uint4 *> p)
(p[i]) && x  // want: Binary(&& Index(p i) x)
(int)(p[i]) && (float)(x) > y  // want: Binary(&& Cast(<int> Index(p i)) Binary(> Cast(<float> x) y))
x < (y) && i > 3  // want: Binary(&& Binary(< x y) Binary(> i 3))
x > (int)(y) && i > 3  // want: Binary(&& Binary(> x Cast(<int> y)) Binary(> i 3))
float(x)  // want: Cast(<float> x)
__half(x)  // want: Cast(<__half> x)
half(x)  // want: Cast(<__half> x)
(unsigned)x  // want: Cast(<unsigned int> x)
(unsigned long long int)x  // want: Cast(<unsigned long long> x)
(const float)x  // want: Cast(<float> x)
(my_t)(x)  // want: Cast(<my_t> x)
float2{x, y}  // want: Braces([x y] <float2>)
sizeof(float4)  // want: SizeOf(<float4>)
::max(x, y)  // want: Call(max [x y])
std::max(x, y)  // want: Call(std::max [x y])
__shfl_xor_sync(0xffffffff, x, 1)  // want: Call(__shfl_xor_sync [0xffffffff=4294967295 x 1])
hipThreadIdx_x  // want: threadIdx.x
hipBlockDim_y  // want: blockDim.y
-x++  // want: Unary(- Unary(++ x True))
tile.size()  // want: Call(size of=tile)
p->load(q)  // want: Call(load [q] of=Index(p 0))

// case: a comparison is no template
// with: before = "constexpr int N = 4;"
// each line
a < b && c > (d)  // want: Binary(&& Binary(< a b) Binary(> c d))
f(a < b, c > (d))  // want: Call(f [Binary(< a b) Binary(> c d)])
a < 1 && 2 > (b)  // want: Binary(&& Binary(< a 1) Binary(> 2 b))
a < (b >> 1)  // want: Binary(< a Binary(>> b 1))
a < b >> c  // want: Binary(< a Binary(>> b c))
i < N && N > (j)  // want: Binary(&& Binary(< i N) Binary(> N j))

// case: signs may be written as words
// each line
a and not (b or c)  // want: Binary(&& a Unary(! Binary(|| b c)))
a && !(b || c)  // want: Binary(&& a Unary(! Binary(|| b c)))
