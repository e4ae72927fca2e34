// Which accesses of a loop's body are packed, and what must divide for it.
// read: packs

// case: packs
// each line
out[i] = a[i];  // want: a × 1 loaded, 1 places | out × 1 stored, 1 places
out[token * d + i] = a[i];  // want: a × 1 loaded, 1 places | out × 1 stored where d divide, 1 places
out[token * d + i] += a[token * 2 * d + d + i];  // want: a × 1 loaded where 2 * d, d divide, 1 places | out × 1 loaded and stored where d divide, 1 places
const int at = token * d + i; out[at] = a[at];  // want: a × 1 loaded where d divide, 1 places | out × 1 stored where d divide, 1 places
out[i] = a[i / 64];  // want: a × 0 loaded, 1 places | out × 1 stored, 1 places
out[i] = a[i / d];  // want: a × 0 loaded where d divide, 1 places | out × 1 stored, 1 places
out[2 * i] = a[i]; out[2 * i + 1] = b[i];  // want: a × 1 loaded, 1 places | out × 2 stored, 2 places | b × 1 loaded, 1 places
for (int j = 0; j < 4; j++) out[4 * i + j] = a[i];  // want: a × 1 loaded, 1 places | out × 4 stored, 1 places
out[2 * i] = a[i];  // want: a × 1 loaded, 1 places
if (i > 3) out[i] = a[i];  // want: 
out[i] = i > 3 ? a[i] : b[i];  // want: out × 1 stored, 1 places
out[i] = a[i + 1];  // want: out × 1 stored, 1 places
out[i] = a[(long long)b[i]];  // want: b × 1 loaded, 1 places | out × 1 stored, 1 places
out[i] = f(&a[i]);  // want: out × 1 stored, 1 places
if (b[0] > 0) out[i] = b[1]; else { if (b[2] > 0) { out[i] = a[i]; } else out[i] = b[3]; }  // want: out × 1 stored, 1 places
if (b[0] > 0) out[i] = b[1]; else { out[i] = out[i] + b[3]; }  // want: out × 1 loaded and stored, 1 places
if (b[0] > 0) out[i] = b[1]; else { if (b[2] > 0) out[i] = b[3]; }  // want: 
if (b[0] > 0) out[i] = b[1]; else out[i + 8] = b[3];  // want: 
if (b[0] > 0) out[i] = b[1]; else { if (b[2] > 0) continue; out[i] = b[3]; }  // want: 
if (a[i] == b[i]) continue; out[i] = a[i];  // want: a × 1 loaded, 1 places | b × 1 loaded, 1 places

// case: what is written is not read first
// each line
out[i] = a[i]; out[i] = out[i] * b[i];  // want: a × 1 loaded, 1 places | out × 1 stored, 1 places | b × 1 loaded, 1 places

// case: an array with stores in two places is read in order
// each line
out[i] = a[i]; out[i + 16] = out[i + 8];  // want: a × 1 loaded, 1 places

// case: a conditional store beside a sure one lands in the pack
// each line
out[i] = a[i]; if (a[i] == b[0]) out[i] = b[1];  // want: a × 1 loaded, 1 places | out × 1 stored, 1 places

// case: a place that the turn itself computes is no pack
// each line
float at = a[i]; if (i > 3) at = 2.0f; out[i] = b[token * (int)at];  // want: a × 1 loaded, 1 places | out × 1 stored, 1 places
int at = token; if (i > 3) at = 2; out[i] = b[at * d + i];  // want: out × 1 stored, 1 places
