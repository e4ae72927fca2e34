// Names that the source has for what the model writes out.
// read: source names
// with: source = '''
// with:
// with:     const int half = d / 2;
// with:     const int quarter = half / 2;
// with:     const long long wide = d / 4;
// with:     int grows = d * 3;
// with:     grows += 1;
// with:     const int i = blockIdx.x * blockDim.x + threadIdx.x;
// with:     const int row = i / half;
// with:     const int col = i % half;
// with:     out[row * half + col] = quarter + grows + wide;
// with: '''

// case: what is said twice is declared at the top
// each line
out[d / 2] = d / 2;  // want: const int half = d / 2; out[half] = half;

// case: what is said once stays
// each line
out[0] = d / 2;  // want: out[0] = d / 2;

// case: one name is made of another
// each line
out[d / 2 / 2] = d / 2 / 2 + d / 2;  // want: const int half = d / 2; const int quarter = half / 2; out[quarter] = quarter + half;

// case: a name that means more does not come back
// each line
// `wide` has another type: what is made of it would be wider
out[d / 4] = d / 4;  // want: out[d / 4] = d / 4;
// `grows` does not stay
out[d * 3] = d * 3;  // want: out[d * 3] = d * 3;

// case: a name that means something else does not come back
// each line
int half = 1; out[d / 2] = d / 2 + half;  // want: int half = 1; out[d / 2] = d / 2 + half;

// case: a name that means something else does not come back (2)
// with: taken = ["half"]
// each line
out[d / 2] = d / 2;  // want: out[d / 2] = d / 2;

// case: shares of an index are declared behind it
// each line
{ const int here = 3; out[here / (d / 2)] = here / (d / 2) + d / 2; }  // want: const int half = d / 2; { const int here = 3; const int row = here / half; out[row] = row + half; }

// case: shares in other words
// each line
const int at = 3; out[REST(at, d / 2, made)] = REST(at, d / 2, made);  // want: const int at = 3; const int col = REST(at, d / 2, made); out[col] = col;

// case: an index inside another does not take its name
// each line
const int a = 3; out[a / (d / 2)] = a / (d / 2); if (d) { const int b = 4; out[b / (d / 2)] = b / (d / 2) + a / (d / 2); }  // want: const int half = d / 2; const int a = 3; const int row = a / half; out[row] = row; if (d) { const int b = 4; out[b / half] = b / half + row; }

// case: two blocks side by side have the same name
// each line
{ const int here = 3; out[here / (d / 2)] = here / (d / 2); }{ const int here = 3; out[here / (d / 2)] = here / (d / 2); }  // want: const int half = d / 2; { const int here = 3; const int row = here / half; out[row] = row; } { const int here = 3; const int row = here / half; out[row] = row; }
