// Expressions over parameters as expressions over sizes.
// read: sizes
// with: values = { n = "tokens * d", dim = "d", vecs = "d // 4" }

// case: over sizes
// each line
dim / 8  // want: d // 8
(n + 255) / 256  // want: ceildiv(tokens * d, 256)
(n + dim - 1) / dim  // want: ceildiv(tokens * d, d)
min(dim, 1024)  // want: min(d, 1024)
dim < 8 ? dim : 8  // want: d if d < 8 else 8
(long long)dim * 2  // want: d * 2
dim & 7  // want: d % 8
dim >> 3  // want: d // 8
dim % 4 == 0 && n > 1  // want: d % 4 == 0 and tokens * d > 1
eps * 2  // want: none
table[dim]  // want: none
dim ^ 3  // want: none
f(dim)  // want: none
