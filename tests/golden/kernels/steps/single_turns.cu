// Loops that turn once, and those that only look like it.
// read: single turns
// with: fixed = { steps = 1, channels = 3 }

// case: the only turn
// each line
for (int i = 0; i < 1; ++i) y[i] = x[i + 1];  // want: y[0] = x[0 + 1];
for (int i = 0; i < 16; i += 16) y[i] = 2;  // want: y[0] = 2;
for (int t = 1; t <= steps; t++) y[n] = t;  // want: y[n] = 1; // by steps
for (size_t i = 0; i < 1; ++i) y[i * n] = 2;  // want: y[(size_t)0 * n] = 2;
for (int i = 0; i < 1; ++i) if (x[i] > 2) { y[i] = 0; break; }  // want: if (x[0] > 2) y[0] = 0;
for (int i = 0; i < 1; ++i, at += 2) y[at] = 2;  // want: y[at] = 2; at += 2;
int at = n; for (int i = 0; i < 1; ++i, at += 2) y[at] = 2;  // want: int at = n; y[at] = 2;
int at = n; int *p = &at; for (int i = 0; i < 1; ++i, at += 2) y[at] = 2; y[p[0]] = 0;  // want: int at = n; int *p = &at; y[at] = 2; at += 2; y[p[0]] = 0;

// case: others stay
// each line
for (int i = 0; i < 2; ++i) y[i] = 2;  // want: for (int i = 0; i < 2; ++i) y[i] = 2;
// a size
for (int i = 0; i < n; ++i) y[i] = 2;  // want: for (int i = 0; i < n; ++i) y[i] = 2;
for (int c = 0; c < channels; ++c) y[c] = 2;  // want: for (int c = 0; c < channels; ++c) y[c] = 2;
// it never turns
for (int i = 1; i < 1; ++i) y[i] = 2;  // want: for (int i = 1; i < 1; ++i) y[i] = 2;
// it turns for ever
for (int i = 0; i < 1; i += 0) y[i] = 2;  // want: for (int i = 0; i < 1; i += 0) y[i] = 2;
// so does this one
for (unsigned char i = 0; i < 1; i += 256) y[i] = 2;  // want: for (unsigned char i = 0; i < 1; i += 256) y[i] = 2;
for (int i = 0; i < 1; ++i) i = x[0];  // want: for (int i = 0; i < 1; ++i) i = x[0];
for (int i = 0; i < 1; ++i) { if (x[i] > 2) break; y[i] = 0; }  // want: for (int i = 0; i < 1; ++i) { if (x[i] > 2) break; y[i] = 0; }
// only a turn that goes on counts
for (int i = 0; i < 1; ++i, ++n) if (x[i] > 2) break;  // want: for (int i = 0; i < 1; ++i, ++n) { if (x[i] > 2) break; }
for (int i = 0; i < 1; ++i) { int i = 3; y[i] = 0; }  // want: for (int i = 0; i < 1; ++i) { int i_2 = 3; y[i_2] = 0; }
// another one of that name
{ int steps = n; for (int t = 1; t <= steps; t++) y[t] = t; }  // want: int steps = n; for (int t = 1; t <= steps; t++) y[t] = t;
