// Comments where they are printed.
// read: statements

// case: they are printed where they were
// the row
int a = 1;  // in elements
for (int i = 0; i < a; i++) {  // each
    // one
    f(i);
}
// want: // the row
// want: int a = 1;  // in elements
// want: for (int i = 0; i < a; i++) {  // each
// want:     // one
// want:     f(i);
// want: }

// case: one between else and if goes into the branch
if (a) {
    f();
} else if (b) {  // rare
    g();
}
// want: if (a)
// want:     f();
// want: else if (b) {
// want:     // rare
// want:     g();
// want: }
