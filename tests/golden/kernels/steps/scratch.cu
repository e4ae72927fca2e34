// Variables that belong to a turn, and those in which a turn may find something.
// read: scratch

// case: what every turn sets first is its own
// each line
float4 v; __half2 *h = (__half2 *)&v; for (int i = t; i < n; i += 32) { v = x[i]; y[i] = h[0]; }  // want: for (int i = t; i < n; i += 32) { float4 v; __half2 *h = (__half2 *)&v; v = x[i]; y[i] = h[0]; }
float4 v; __half2 *h = (__half2 *)&v; for (int i = t; i < n; i += 32) { h[0] = x[i]; h[1] = x[i]; h[3] = x[i]; h[2] = x[i]; y[i] = v; }  // want: for (int i = t; i < n; i += 32) { float4 v; __half2 *h = (__half2 *)&v; h[0] = x[i]; h[1] = x[i]; h[3] = x[i]; h[2] = x[i]; y[i] = v; }
float4 v; __half2 *h = (__half2 *)&v; for (int i = t; i < n; i += 32) { for (int j = 0; j < 4; j++) h[j] = x[i]; y[i] = v; }  // want: for (int i = t; i < n; i += 32) { float4 v; __half2 *h = (__half2 *)&v; for (int j = 0; j < 4; j++) h[j] = x[i]; y[i] = v; }
float v[4]; for (int i = t; i < n; i += 32) { for (int j = 0; j < 4; j++) v[j] = x[i]; y[i] = v[2]; v[1] += 1; }  // want: for (int i = t; i < n; i += 32) { float v[4]; for (int j = 0; j < 4; j++) v[j] = x[i]; y[i] = v[2]; v[1] += 1; }

// case: what a turn may find stays outside
// each line
float4 v; __half2 *h = (__half2 *)&v; for (int i = t; i < n; i += 32) { y[i] = h[0]; v = x[i]; }  // want: float4 v; __half2 *h = (__half2 *)&v; for (int i = t; i < n; i += 32) { y[i] = h[0]; v = x[i]; }
float4 v; __half2 *h = (__half2 *)&v; for (int i = t; i < n; i += 32) { h[0] = x[i]; h[1] = x[i]; h[3] = x[i]; y[i] = v; }  // want: float4 v; __half2 *h = (__half2 *)&v; for (int i = t; i < n; i += 32) { h[0] = x[i]; h[1] = x[i]; h[3] = x[i]; y[i] = v; }
float4 v; __half2 *h = (__half2 *)&v; for (int i = t; i < n; i += 32) { if (i > 3) v = x[i]; y[i] = v; }  // want: float4 v; __half2 *h = (__half2 *)&v; for (int i = t; i < n; i += 32) { if (i > 3) v = x[i]; y[i] = v; }
float4 v; __half2 *h = (__half2 *)&v; for (int i = t; i < n; i += 32) { for (int j = 1; j < 4; j++) h[j] = x[i]; y[i] = v; }  // want: float4 v; __half2 *h = (__half2 *)&v; for (int i = t; i < n; i += 32) { for (int j = 1; j < 4; j++) h[j] = x[i]; y[i] = v; }
float4 v; __half2 *h = (__half2 *)&v; for (int i = t; i < n; i += 32) { h[0] = h[1]; h[1] = x[i]; h[2] = x[i]; h[3] = x[i]; }  // want: float4 v; __half2 *h = (__half2 *)&v; for (int i = t; i < n; i += 32) { h[0] = h[1]; h[1] = x[i]; h[2] = x[i]; h[3] = x[i]; }
float4 v; __half2 *h = (__half2 *)&v; for (int i = t; i < n; i += 32) { v = x[i]; y[i] = h[0]; } y[0] = h[1];  // want: float4 v; __half2 *h = (__half2 *)&v; for (int i = t; i < n; i += 32) { v = x[i]; y[i] = h[0]; } y[0] = h[1];
float4 v; __half2 *h = (__half2 *)&v; v = x[0]; for (int i = t; i < n; i += 32) { v = x[i]; y[i] = h[0]; }  // want: float4 v; __half2 *h = (__half2 *)&v; v = x[0]; for (int i = t; i < n; i += 32) { v = x[i]; y[i] = h[0]; }
float4 v; __half2 *h = (__half2 *)&v; h = z; for (int i = t; i < n; i += 32) { v = x[i]; y[i] = h[0]; }  // want: float4 v; __half2 *h = (__half2 *)&v; h = z; for (int i = t; i < n; i += 32) { v = x[i]; y[i] = h[0]; }
float v[4]; for (int i = t; i < n; i += 32) for (int j = 0; j < 4; j++) v[j] += x[i];  // want: float v[4]; for (int i = t; i < n; i += 32) for (int j = 0; j < 4; j++) v[j] += x[i];
