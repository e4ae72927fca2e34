// Branches never taken are left out.
// read: fold statements

// case: branches and loops
// with: values = { n = 4 }
if (n == 4) { int x = 1; f(x); } else g();
if (n == 5) g();
while (n == 5) g();
for (int i = 0; n < 4; i++) g();
for (int i = 0; i < n; i++) g();
// want: {
// want:     int x = 1;
// want:     f(x);
// want: }
// want: for (int i = 0; i < 4; i++)
// want:     g();

// case: what goes takes its comments along
// with: values = { n = 4 }
// kept
int a = n * m;
if (0) {
    // gone
    f();
}
// want: // kept
// want: int a = 4 * m;
