// Numbers behind names only where two of them meet.
// read: plain names

// case: a name serves again in another block
// each line
for (int i = 0; i < p; i++) { const int x = i; f(x); } for (int i_2 = 0; i_2 < p; i_2++) { const int x_2 = i_2; f(x_2); }  // want: for (int i = 0; i < p; i++) { const int x = i; f(x); } for (int i = 0; i < p; i++) { const int x = i; f(x); }

// case: where the other is seen or means something the number stays
// each line
int x = 1; for (int i = 0; i < p; i++) { const int x_2 = i; g(x_2 + x); }  // want: int x = 1; for (int i = 0; i < p; i++) { const int x_2 = i; g(x_2 + x); }
int x = 1; g(x); { const int x_2 = 3; g(x_2); }  // want: int x = 1; g(x); { const int x_2 = 3; g(x_2); }

// case: where the other is seen or means something the number stays (2)
// with: file_words = ["x"]
// each line
int x_2 = 1; g(x_2);  // want: int x_2 = 1; g(x_2);

// case: where the other is seen or means something the number stays (3)
// with: kept = ["x_2"]
// each line
int x_2 = 1; g(x_2);  // want: int x_2 = 1; g(x_2);

// case: where the other is seen or means something the number stays (4)
// each line
int p_2 = 1; g(p_2);  // want: int p_2 = 1; g(p_2);
int x_2 = 1; x(x_2);  // want: int x_2 = 1; x(x_2);
int x_2 = 1; g(x_2);  // want: int x = 1; g(x);

// case: the lowest number that is free
// each line
int x = 1; int x_4 = 2; g(x, x_4);  // want: int x = 1; int x_2 = 2; g(x, x_2);

// case: equal constants are declared once
// each line
const int end = p ? p * 2 : 0; g(end); const int end_2 = p ? p * 2 : 0; g(end_2);  // want: const int end = p ? p * 2 : 0; g(end); g(end);
int q = 1; const int end = q; q = 2; const int end_2 = q; g(end, end_2);  // want: int q = 1; const int end = q; q = 2; const int end_2 = q; g(end, end_2);
const int end = f(p); const int end_2 = f(p); g(end, end_2);  // want: const int end = f(p); const int end_2 = f(p); g(end, end_2);
