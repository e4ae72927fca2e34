// How arguments go into a body that is put in place: `parameters | body | arguments`.
// with: types = { a = "float", b = "float", n = "int", k = "int", x = "float *" }

// case: what goes in as it stands
// each line
float v | return v + 1; | a  // want: v: as it stands
float v | v += 1; return v; | a  // want: v: a copy
float v | return v; | n  // want: v: a copy
float v | return v; | a + b  // want: v: a copy
float v | return v; | 1.0f  // want: v: as it stands
float v | return v; | 1  // want: v: a copy
int v | return v; | threadIdx.x  // want: v: as it stands
float &v | v = 1; return v; | a  // want: v: as it stands
const float &v | return v; | a  // want: v: as it stands
float &v, float w | v = 1; return w; | a, a  // want: v: as it stands | w: a copy
float &v, const float &w | v = 1; return w; | a, a  // want: v: as it stands | w: as it stands
float *p, const float &w | p[0] = 1; return w; | x, x[n]  // want: p: as it stands | w: as it stands
const float *p, const float &w | return p[0] + w; | x, x[n]  // want: p: as it stands | w: a copy

// case: a copy that is given back may be the variable itself
// with: updated = "a"
// each line
float v | v += 1; return v; | a  // want: v: as it stands

// case: a copy that is given back may be the variable itself (2)
// with: updated = "b"
// each line
float v | v += 1; return v; | a  // want: v: a copy

// case: a copy that is given back may be the variable itself (3)
// with: updated = "a"
// each line
float v, const float &w | v += w; return v; | a, a  // want: v: as it stands | w: a copy

// case: a variable with other names is copied where something is stored
// each line
float v, float *p | p[0] = 2; return v; | a, x  // want: v: as it stands | p: as it stands

// case: a variable with other names is copied where something is stored (2)
// with: aliased = "a"
// each line
float v, float *p | p[0] = 2; return v; | a, x  // want: v: a copy | p: as it stands

// case: a place that is computed cannot be changed
// each line
float &v | v = 1; return v; | n > 0 ? a : b  // want: refused: its argument v is changed through a place that is computed

// case: a place whose index changes moves
// each line
float &v, int &i | i = 3; v = 1; return v; | x[n], n  // want: v: as it stands, moves | i: as it stands
float &v, int &i | i = 3; v = 1; return v; | x[k], n  // want: v: as it stands | i: as it stands
float &v, int &i | i = 3; v = 1; return v; | x[(int)x[k]], n  // want: v: as it stands, moves | i: as it stands
