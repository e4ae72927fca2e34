// Conditions that the problem's arguments decide, and those that only look like it.
// read: decided
// with: fixed = { mode = 2, off = 0, gone = 0 }
// with: arrays = ["x"]

// case: what the arguments decide is gone
// each line
if (mode == 2) y[0] = 1; else y[0] = 2;  // want: y[0] = 1; // by mode
if (gone != nullptr) y[0] = gone[0];  // want:  // by gone
y[0] = off ? *scale : 1;  // want: y[0] = 1; // by off
if (n > 3 && mode == 1) y[0] = 1;  // want:  // by mode
const bool has = gone != nullptr && mode > 1; if (has) y[0] = 1;  // want: const bool has = 0; // by gone, mode
float *more = nullptr; const bool two = 0; if (two) more[0] = 2; y[0] = 1;  // want: const bool two = 0; y[0] = 1;
float *more = nullptr; if (more != nullptr || mode == 1) more[0] = 2; y[0] = 1;  // want: y[0] = 1; // by mode
if (x == nullptr) y[0] = 1; else y[0] = x[0];  // want: y[0] = x[0];

// case: what they do not decide stays
// each line
// a size
if (n == 2) y[0] = 1;  // want: if (n == 2) y[0] = 1;
// no question
y[mode] = mode * 2;  // want: y[mode] = mode * 2;
// no array of the problem
if (z == nullptr) y[0] = 1;  // want: if (z == nullptr) y[0] = 1;
// it points elsewhere by then
x = z; if (x != nullptr) y[0] = 1;  // want: x = z; if (x != nullptr) y[0] = 1;
// another one of that name
if (n > 1) { int mode = n; if (mode == 2) y[0] = 1; }  // want: if (n > 1) { int mode = n; if (mode == 2) y[0] = 1; }
bool has = mode == n; if (has) y[0] = 1;  // want: bool has = mode == n; if (has) y[0] = 1;
bool two = 0; if (n) two = 1; if (two) y[0] = 1;  // want: bool two = 0; if (n) two = 1; if (two) y[0] = 1;
float *more = nullptr; if (n) y[0] = more[0];  // want: float *more = nullptr; if (n) y[0] = more[0];
float *more = nullptr; if (n) more = x; if (more != nullptr) y[0] = more[0];  // want: float *more = nullptr; if (n) more = x; if (more != nullptr) y[0] = more[0];

// case: a flag that changes is no flag
// each line
bool on = mode == 2; if (n > 3) on = false; if (on) y[0] = 1;  // want: bool on = 1; if (n > 3) on = false; if (on) y[0] = 1; // by mode
