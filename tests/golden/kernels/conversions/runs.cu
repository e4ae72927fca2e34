// Running wraps and rounds as the hardware does: `a number -> what is done with v`.
// read: run

// case: numbers and what becomes of them
// each line
0.0 -> return 0xffffffffu + 2u;  // want: 1
1.0 -> return v + 16777216.0f == 16777216.0f;  // want: 1
0.0 -> int a = -8; return (unsigned)(a >> 1);  // want: 4294967292
0.5 -> if (v < 0.0f || v > 1.0f) return 1u; else { return 2u; }  // want: 2
3.0 -> return v > 2.0f ? 5u : 6u;  // want: 5
0.0 -> unsigned a[2]; return 0u;  // want: None
0.0 -> return 1u << 40;  // want: None
