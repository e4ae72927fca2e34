// Tests of alignment and remainders: what the contract decides, and what it does not.
// read: promised
// with: argument = { x = { align = 16 }, out = { align = 16 } }

// case: multiples of 8
// with: contract = { d = { min = 8, max = 65536, multiple_of = 8 } }
// with: workloads = { many = { rows = 512, d = 96 } }
// each line
if (d % 8 == 0) out[0] = 1; else out[1] = 1;  // want: out[0] = 1; | since 'd % 8 == 0' holds (line 1: align and multiple_of)
if ((d & 3) == 0 && (uintptr_t)x % 16 == 0) out[0] = 1; else out[1] = 1;  // want: out[0] = 1; | since '(d & 3) == 0' holds (line 1: align and multiple_of) | since '(uintptr_t)x % 16 == 0' holds (line 1: align and multiple_of)
if (d % 4 != 0) out[0] = 1; else out[1] = 1;  // want: out[1] = 1; | since 'd % 4 != 0' does not hold (line 1: align and multiple_of)
uintptr_t at = (uintptr_t)(x + blockIdx.x * d); if ((at & 15) == 0) out[0] = 1; else out[1] = 1;  // want: uintptr_t at = (uintptr_t)(x + blockIdx.x * d); out[0] = 1; | since '(at & 15) == 0' holds (line 1: align and multiple_of)
uintptr_t at = (uintptr_t)(x + blockIdx.x * d); bool wide = at % 16 == 0 && d / 2 % 4 == 0; if (wide) out[0] = 1; else out[1] = 1;  // want: uintptr_t at = (uintptr_t)(x + blockIdx.x * d); bool wide = 1; out[0] = 1; | since 'at % 16 == 0' holds (line 1: align and multiple_of) | since 'd / 2 % 4 == 0' holds (line 1: align and multiple_of) | since 'wide' holds (line 1: align and multiple_of)
auto *p = x; p += 4 * rows; if ((uintptr_t)p % 16 == 0) out[0] = 1; else out[1] = 1;  // want: auto *p = x; p += 4 * rows; out[0] = 1; | since '(uintptr_t)p % 16 == 0' holds (line 1: align and multiple_of)
const float *p = x + 1 + 2 * d; if (((uintptr_t)p & 7) == 0) out[0] = 1; else out[1] = 1;  // want: const float *p = x + 1 + 2 * d; out[1] = 1; | since '((uintptr_t)p & 7) == 0' does not hold (line 1: align and multiple_of)
int n = d; n -= 8; n = d - 16; if (n % 8 == 0) out[0] = 1; else out[1] = 1;  // want: int n = d; n -= 8; n = d - 16; out[0] = 1; | since 'n % 8 == 0' holds (line 1: align and multiple_of)
if (d % 16 == 0) out[0] = 1; else out[1] = 1;  // want: if (d % 16 == 0) out[0] = 1; else out[1] = 1;
if (rows % 2 == 0) out[0] = 1; else out[1] = 1;  // want: if (rows % 2 == 0) out[0] = 1; else out[1] = 1;
uintptr_t at = (uintptr_t)(x + blockIdx.x * d); if ((at & 31) == 0) out[0] = 1; else out[1] = 1;  // want: uintptr_t at = (uintptr_t)(x + blockIdx.x * d); if ((at & 31) == 0) out[0] = 1; else out[1] = 1;
if ((uintptr_t)(x + rows) % 16 == 0) out[0] = 1; else out[1] = 1;  // want: if ((uintptr_t)(x + rows) % 16 == 0) out[0] = 1; else out[1] = 1;
d += rows; if (d % 8 == 0) out[0] = 1; else out[1] = 1;  // want: d += rows; if (d % 8 == 0) out[0] = 1; else out[1] = 1;
if (rows > 3) d = rows; if (d % 8 == 0) out[0] = 1; else out[1] = 1;  // want: if (rows > 3) d = rows; if (d % 8 == 0) out[0] = 1; else out[1] = 1;
for (int i = 0; i < 9; i++) { if (d % 8 == 0) out[0] = 1; else out[1] = 1; d++; }  // want: for (int i = 0; i < 9; i++) { if (d % 8 == 0) out[0] = 1; else out[1] = 1; d++; }
int &n = d; n = rows; if (d % 8 == 0) out[0] = 1; else out[1] = 1;  // want: int &n = d; n = rows; if (d % 8 == 0) out[0] = 1; else out[1] = 1;
int *n = &d; *n = rows; if (d % 8 == 0) out[0] = 1; else out[1] = 1;  // want: int *n = &d; n[0] = rows; if (d % 8 == 0) out[0] = 1; else out[1] = 1;
change(d); if (d % 8 == 0) out[0] = 1; else out[1] = 1;  // want: change(d); if (d % 8 == 0) out[0] = 1; else out[1] = 1;
{ int d = rows; if (d % 8 == 0) out[0] = 1; else out[1] = 1; }  // want: { int d = rows; if (d % 8 == 0) out[0] = 1; else out[1] = 1; }
bool n = d; if ((int)n % 8 == 0) out[0] = 1; else out[1] = 1;  // want: bool n = d; if ((int)n % 8 == 0) out[0] = 1; else out[1] = 1;
float n = d; if ((int)n % 8 == 0) out[0] = 1; else out[1] = 1;  // want: float n = d; if ((int)n % 8 == 0) out[0] = 1; else out[1] = 1;
if ((int)(unsigned char)(d / 3) % 8 == 0) out[0] = 1; else out[1] = 1;  // want: if ((int)(unsigned char)(d / 3) % 8 == 0) out[0] = 1; else out[1] = 1;
if ((uintptr_t)x % 16 == 0 || d++ > 3) out[0] = 1; else out[1] = 1;  // want: out[0] = 1; | since '(uintptr_t)x % 16 == 0' holds (line 1: align and multiple_of)
if (d++ > 3 || (uintptr_t)x % 16 == 0) out[0] = 1; else out[1] = 1;  // want: if (d++ > 3 || 1) out[0] = 1; else out[1] = 1; | since '(uintptr_t)x % 16 == 0' holds (line 1: align and multiple_of)
int n = d - 65537; if (n % 4 == 3) out[0] = 1; else out[1] = 1;  // want: int n = d - 65537; if (n % 4 == 3) out[0] = 1; else out[1] = 1;

// case: multiples of 96
// with: contract = { d = { min = 96, max = 65536, multiple_of = 96 } }
// with: workloads = { many = { rows = 512, d = 96 } }
// each line
if (d % 96 == 0) out[0] = 1; else out[1] = 1;  // want: if (d % 96 == 0) out[0] = 1; else out[1] = 1;
if (d % 32 == 0) out[0] = 1; else out[1] = 1;  // want: out[0] = 1; | since 'd % 32 == 0' holds (line 1: align and multiple_of)
