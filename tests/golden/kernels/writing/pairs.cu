// What ends a loop's body with a conversion that the hardware does for two at once.
// read: pairs

// case: a store of what is converted
// each line
const float y = x * 2.0f; q[k].at[v] = to_e4m3(y + 1.0f);  // want: y + 1.0f into q[k].at by both({a}, {b}), after const float y = x * 2.0f;
const float y = x * 2.0f; q[k].at[v].__x = to_e4m3(y + 1.0f);  // want: y + 1.0f into q[k].at by both({a}, {b}), after const float y = x * 2.0f;

// case: what is none
// each line
q[k].at[v] = other(x);  // want: none
q[k].at[v + 1] = to_e4m3(x);  // want: none
q[k].at[v] = to_e4m3(x); sum += x;  // want: none
if (x > 0.0f) continue; q[k].at[v] = to_e4m3(x);  // want: none
q[k].at[v] += to_e4m3(x);  // want: none
