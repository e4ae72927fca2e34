// Statements, printed again: indented, and braced only where that is needed.

// case: branches and loops
if (a) { if (b) return; } else break;
#pragma unroll 4
for (int i = 0, j = a; i < b; ++i, j--) { f(); g(); }
if (a) { b(); } else if (b) { c(); } else { return a; }
// want: if (a) {
// want:     if (b)
// want:         return;
// want: } else
// want:     break;
// want: #pragma unroll 4
// want: for (int i = 0, j = a; i < b; ++i, j--) {
// want:     f();
// want:     g();
// want: }
// want: if (a)
// want:     b();
// want: else if (b)
// want:     c();
// want: else
// want:     return a;
