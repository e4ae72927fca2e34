// What loops move by the same amount in every turn, and what they do not.
// read: tidied
// with: parameters = "__global float *a, int n, int s"

// case: sums over the index
// each line
int at = s; for (int i = 0; i < n; ++i, at += s) a[at] = 1;  // want: int at = s; for (int i = 0; i < n; ++i) a[at + i * s] = 1;
int at = s; for (int i = 2; i < n; i += 2) { a[at] = 1; at++; }  // want: int at = s; for (int i = 2; i < n; i += 2) a[at + (i - 2) / 2] = 1;
int at = 0; for (int i = 0; i < n; ++i) { at += s; a[at] = 1; }  // want: int at = 0; for (int i = 0; i < n; ++i) a[at + (i + 1) * s] = 1;
int y = s; for (int i = 0; i < 4; ++i) if (y < n) { a[y] = 1; ++y; }  // want: int y = s; for (int i = 0; i < 4; ++i) { if (y + i < n) a[y + i] = 1; }
for (int y = s, end = min(n, y + 4); y < end; ++y) a[y] = 1;  // want: int end = min(n, s + 4); for (int y = s; y < end; ++y) a[y] = 1;
for (int i = 0; i < n; ++i, ++a) a[0] = 1;  // want: long a_at = 0; for (int i = 0; i < n; ++i) (a + (a_at + (long)i))[0] = 1;

// case: what moves otherwise stays
// each line
// used behind the loop
int at = 0; for (int i = 0; i < n; ++i, at += s) a[at] = 1; a[at] = 2;  // want: int at = 0; for (int i = 0; i < n; ++i, at += s) a[at] = 1; a[at] = 2;
// by another amount in every turn
int at = 0; for (int i = 0; i < n; ++i) { a[at] = 1; at += i; }  // want: int at = 0; for (int i = 0; i < n; ++i) { a[at] = 1; at += i; }
int at = 0; for (int i = 0; i < n; ++i) { if (a[i] > 0) continue; a[at] = 1; at += s; }  // want: int at = 0; for (int i = 0; i < n; ++i) { if (a[i] > 0) continue; a[at] = 1; at += s; }
int at = 0; for (int i = 0; i < n; ++i) if (a[i] > 0) { a[at] = 1; at += s; }  // want: int at = 0; for (int i = 0; i < n; ++i) { if (a[i] > 0) { a[at] = 1; at += s; } }
// the bound moves
int y = s; for (int i = 0; i < 4; ++i) if (y < n) { a[y] = 1; --n; ++y; }  // want: int y = s; for (int i = 0; i < 4; ++i) { if (y < n) { a[y] = 1; --n; ++y; } }
// it may hold again
int y = s; for (int i = 0; i < 4; ++i) if (y > n) { a[y] = 1; ++y; }  // want: int y = s; for (int i = 0; i < 4; ++i) { if (y > n) { a[y] = 1; ++y; } }
int at = 0; for (int k = 0; k < 2; ++k) for (int i = 0; i < n; ++i, at += s) a[at] = 1;  // want: int at = 0; for (int k = 0; k < 2; ++k) for (int i = 0; i < n; ++i, at += s) a[at] = 1;
int at = 0; for (int i = 0; i < n; i *= 2) { a[at] = 1; at += s; }  // want: int at = 0; for (int i = 0; i < n; i *= 2) { a[at] = 1; at += s; }

// case: 24 bits are plain products
// each line
a[mad24(n, s, 3)] = mul24(n, s);  // want: a[n * s + 3] = n * s;
