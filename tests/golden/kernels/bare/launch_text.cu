// C expressions of launches in our language: the same value, or none.
// read: launch text
// with: sizes = { n = "n", "x.size(0)" = "rows", "args.d" = "d" }
// with: constants = { BLOCK = "256", WARPS = "(BLOCK / 32)", blocks = "(n + BLOCK - 1) / BLOCK", loop = "loop + 1" }

// case: expressions
// each line
256  // want: 256
256u  // want: 256
0x100UL  // want: 256
1'024  // want: 1024
010  // want: 8
BLOCK  // want: 256
WARPS * 2  // want: 16
1 << 10  // want: 1024
n  // want: n
x.size( 0 )  // want: rows
x.size(0) * args.d  // want: rows * d
(n + 255) / 256  // want: ceildiv(n, 256)
(n + BLOCK - 1) / BLOCK  // want: ceildiv(n, 256)
(n - 1 + BLOCK) / BLOCK  // want: ceildiv(n, 256)
((n * 2) + args.d - 1) / args.d  // want: ceildiv(n * 2, d)
blocks  // want: ceildiv(n, 256)
(n + 256) / 256  // want: (n + 256) // 256
(n - 1) / 256 + 1  // want: (n - 1) // 256 + 1
n / 4  // want: n // 4
n >> 2  // want: n // 4
(unsigned)n % 7  // want: n % 7
static_cast<int>(n) + int(args.d)  // want: n + d
std::min(n, 65535)  // want: min(n, 65535)
MAX(1, n)  // want: max(1, n)
at::ceil_div(n, 128)  // want: ceildiv(n, 128)
n > 1024 ? 1024 : n  // want: 1024 if n > 1024 else n
n == 1 || !(args.d > 3)  // want: n == 1 or not d > 3
BLOCK * sizeof(float4)  // want: 4096
2 * prop.multiProcessorCount  // want: 2 * device.sms
-n  // want: -n
m  // want: none
n & 3  // want: none
n << n  // want: none
(float)n / 4  // want: none
ceil(n / 256.0)  // want: none
next_pow2(n)  // want: none
sizeof(T)  // want: none
1 / 0  // want: none
loop  // want: none
n, 2  // want: none
n); evil(  // want: none
99999999999999999999  // want: none
