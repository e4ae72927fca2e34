// Kernels of tests/fixtures that no other table has.

// case: folder published/copied_packs
// with: folder = "published/copied_packs"
// see there
// want: grid: block<n // 2048 | each 0..256
// want: each 0..256:
// want:     __align__(16) __nv_bfloat16 result_cells[8];
// want:     __align__(16) __nv_bfloat16 Pack16_made_cells[8];
// want:     int4 given_2 = ((const int4 *)(x + (block * 256 + first_step) * 8))[0];
// want:     ((int4 *)Pack16_made_cells)[0] = given_2;
// want:     __nv_bfloat16 given_cells[8];
// want: #pragma unroll
// want:     for (int part = 0; part < 8; ++part)
// want:         given_cells[part] = Pack16_made_cells[part];
// want:     for (int k = 0; k < 8ULL; ++k) {
// want:         const float v = (float)given_cells[k];
// want:         result_cells[k] = (__nv_bfloat16)(0.5f * v * (1.0f + tanhf(0.7978845608f * (v + 0.044715f * v * v * v))));
// want:     }
// want:     int4 found = ((int4 *)result_cells)[0];
// want:     ((int4 *)(out + (block * 256 + first_step) * 8))[0] = found;
// want: load x[0]: 1
// want: store out[0]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 8)
// want:   out, x do not overlap: the contract's word (no alias)

// case: folder bad_cuda/bank_conflicts
// with: folder = "bad_cuda/bank_conflicts"
// see there
// want: not read: threads cooperate other than by totals over a row's elements: line 10: __syncthreads inside a loop over elements; as tiles: line 22: 'part' holds what depends on 'largest', which changes

// case: folder bad_cuda/healthy_transpose
// with: folder = "bad_cuda/healthy_transpose"
// see there
// want: grid: to_row<cols // 32 * 32 | each 0..rows / 32 * 32
// want: each 0..rows / 32 * 32:
// want:     out[(long long)to_row * rows + to_col] = x[(long long)to_col * cols + to_row];
// want: store out[(long long)to_row * rows + to_col]: 1
// want: load x[(long long)to_col * cols + to_row]: None
// want:   every place of 'tile' that is read was written by one thread, a barrier before: proved (line 4)
// want:   the turns of a loop may come in any order: the kernel's own (line 14)
// want:   out, x do not overlap: the contract's word (no alias)

// case: folder bad_cuda/serial_thread
// with: folder = "bad_cuda/serial_thread"
// see there
// want: block: block<rows | let found; each 1..cols maxfound_2; each 0..cols
// want: let found:
// want:     const float found = x[(size_t)block * cols];
// want: each 1..cols maxfound_2 (found_2 from found fmaxf):
// want:     found_2 = fmaxf(found_2, x[(size_t)block * cols + i]);
// want: each 0..cols:
// want:     out[(size_t)block * cols + i_2] = x[(size_t)block * cols + i_2] - found_2;
// want: load x[(size_t)block * cols]: None
// want: load x[(size_t)block * cols + i]: 1
// want: store out[(size_t)block * cols + i_2]: 1
// want: load x[(size_t)block * cols + i_2]: 1
// want:   the turns of a loop may come in any order: proved (line 9)
// want:   'found_2' may be joined in another order: proved (line 9)
// want:   the turns of a loop may come in any order: the kernel's own (line 15)
// want:   out, x do not overlap: the contract's word (no alias)

// case: folder bad_cuda/tail_wave
// long
// with: folder = "bad_cuda/tail_wave"
// see there
// want: block: block<rows | each 0..cols / 4 maxlargest; each 0..cols / 4
// want: each 0..cols / 4 maxlargest (largest from -__int_as_float(0x7f800000) fmaxf):
// want:     const float4 v = ((const float4 *)(x + (size_t)block * cols))[i];
// want:     row[i] = v;
// want:     largest = fmaxf(largest, fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w)));
// want: each 0..cols / 4:
// want:     ((float4 *)(out + (size_t)block * cols))[i_2] = relaxed(row[i_2], largest);
// want: keeps row: 1 float4
// want: load x[i]: 1
// want: store out[i_2]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 25, line 43)
// want:   'largest' may be joined in another order: proved (line 25)
// want:   out, x do not overlap: the contract's word (no alias)

// case: folder bad_cuda/uncoalesced
// with: folder = "bad_cuda/uncoalesced"
// see there
// want: grid: row<rows | each 0..cols
// want: each 0..cols:
// want:     out[(size_t)row * cols + col] = 2.0f * x[(size_t)row * cols + col] + 1.0f;
// want: store out[(size_t)row * cols + col]: 1
// want: load x[(size_t)row * cols + col]: 1
// want: note: neighbouring threads differ in 'row', but elements lie side by side along 'col'
// want:   the turns of a loop may come in any order: the kernel's own (line 6)
// want:   out, x do not overlap: the contract's word (no alias)

// case: folder examples/cuda/silu_and_mul_vector
// with: folder = "../../examples/cuda/silu_and_mul_vector"
// see there
// want: block: token<tokens | each 0..d / 8; each again d - (int)(d % (8 * (d / 8 < 1024 ? d / 8 : 1024)))..d
// want: each 0..d / 8:
// want:     const uint4 x = ((const uint4 *)(input + token * 2 * d))[i];
// want:     const uint4 gate = ((const uint4 *)(input + (token * 2 * d + d)))[i];
// want:     uint4 result;
// want:     result.x = gated(x.x, gate.x);
// want:     result.y = gated(x.y, gate.y);
// want:     result.z = gated(x.z, gate.z);
// want:     result.w = gated(x.w, gate.w);
// want:     ((uint4 *)(out + token * d))[i] = result;
// want: each again d - (int)(d % (8 * (d / 8 < 1024 ? d / 8 : 1024)))..d:
// want:     out[token * d + i_2] =
// want:         __float2half(silu(__half2float(input[token * 2 * d + i_2])) * __half2float(input[token * 2 * d + (d + i_2)]));
// want: load input[i]: 1
// want: load input[i]: 1
// want: store out[i]: 1
// want: store out[token * d + i_2]: 1
// want: load input[token * 2 * d + i_2]: 1
// want: load input[token * 2 * d + (d + i_2)]: 1
// want: note: line 43: the loop stores only what an earlier loop has stored
// want:   the turns of a loop may come in any order: the kernel's own (line 30, line 43)
// want:   every element it stores has been stored before: proved (line 43)
// want:   out, input do not overlap: the contract's word (no alias)

// case: folder examples/cuda/fused_add_rmsnorm
// with: folder = "../../examples/cuda/fused_add_rmsnorm"
// see there
// want: block: token<tokens | each 0..d / 8 +sum; let scale; each 0..d / 8
// want: each 0..d / 8 +sum (sum from 0.0f):
// want:     uint4 added = ((uint4 *)(input + token * d))[i];
// want:     uint4 stored = ((uint4 *)(residual + token * d))[i];
// want:     float x[8];
// want: #pragma unroll
// want:     for (int j = 0; j < 4; j++) {
// want:         const float2 a = __half22float2(((const __half2 *)&added)[j]);
// want:         const float2 b = __half22float2(((const __half2 *)&stored)[j]);
// want:         x[2 * j] = a.x + b.x;
// want:         x[2 * j + 1] = a.y + b.y;
// want:         sum += x[2 * j] * x[2 * j];
// want:         sum += x[2 * j + 1] * x[2 * j + 1];
// want:         ((__half2 *)&stored)[j] = __floats2half2_rn(x[2 * j], x[2 * j + 1]);
// want:     }
// want:     ((uint4 *)(residual + token * d))[i] = stored;
// want:     shared[i][0] = make_float4(x[0], x[1], x[2], x[3]);
// want:     shared[i][1] = make_float4(x[4], x[5], x[6], x[7]);
// want: let scale:
// want:     const float scale = rsqrtf(sum / d + eps);
// want: each 0..d / 8:
// want:     const uint4 weights = ((const uint4 *)weight)[i_2];
// want:     const float4 low = shared[i_2][0];
// want:     const float4 high = shared[i_2][1];
// want:     const float x_2[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
// want:     uint4 result;
// want: #pragma unroll
// want:     for (int j_2 = 0; j_2 < 4; j_2++) {
// want:         const float2 w = __half22float2(((const __half2 *)&weights)[j_2]);
// want:         ((__half2 *)&result)[j_2] = __floats2half2_rn(x_2[2 * j_2] * scale * w.x, x_2[2 * j_2 + 1] * scale * w.y);
// want:     }
// want:     ((uint4 *)(input + token * d))[i_2] = result;
// want: keeps shared: 2 float4
// want: load input[i]: 1
// want: load residual[i]: 1
// want: store residual[i]: 1
// want: load weight[i_2]: 1
// want: store input[i_2]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 29, line 60)
// want:   'sum' may be joined in another order: the contract's word ([accuracy])
// want:   input, residual, weight do not overlap: the contract's word (no alias)

// case: folder examples/cuda/merge_attn_states_lse
// with: folder = "../../examples/cuda/merge_attn_states_lse"
// see there
// want: grid: | each 0..tokens * heads * (head_dim / 8u)
// want: each 0..tokens * heads * (head_dim / 8u):
// want:     const float minus_infinity = __int_as_float(0xff800000);
// want:     float score_a = s_a[i / (head_dim / 8u) / heads * heads + i / (head_dim / 8u) % heads];
// want:     float score_b = s_b[i / (head_dim / 8u) / heads * heads + i / (head_dim / 8u) % heads];
// want:     score_a = isinf(score_a) ? minus_infinity : score_a;
// want:     score_b = isinf(score_b) ? minus_infinity : score_b;
// want:     const float m = fmaxf(score_a, score_b);
// want:     const float exp_a = expf(score_a - m);
// want:     const float exp_b = expf(score_b - m);
// want:     const float sum = exp_a + exp_b;
// want:     const float weight_a = exp_a / sum;
// want:     const float weight_b = exp_b / sum;
// want:     const uint4 pack_a = ((const uint4 *)(v_a + (unsigned int)(i * 8)))[0];
// want:     const uint4 pack_b = ((const uint4 *)(v_b + (unsigned int)(i * 8)))[0];
// want:     uint4 merged;
// want: #pragma unroll
// want:     for (unsigned int j = 0; j < 8u; j++) {
// want:         const float a = to_float(((const __half *)&pack_a)[j]);
// want:         const float b = to_float(((const __half *)&pack_b)[j]);
// want:         const float x = weight_a * a + weight_b * b;
// want:         ((__half *)&merged)[j] = __float2half(x);
// want:     }
// want:     ((uint4 *)(v_merged + (unsigned int)(i * 8)))[0] = merged;
// want:     if (i % (head_dim / 8u) == 0)
// want:         s_merged[i / (head_dim / 8u) / heads * heads + i / (head_dim / 8u) % heads] = logf(sum) + m;
// want: load s_a[i / (head_dim / 8u) / heads * heads + i / (head_dim / 8u) % heads]: 0 within head_dim / 8u
// want: load s_b[i / (head_dim / 8u) / heads * heads + i / (head_dim / 8u) % heads]: 0 within head_dim / 8u
// want: load v_a[0]: 1
// want: load v_b[0]: 1
// want: store v_merged[0]: 1
// want: store s_merged[i / (head_dim / 8u) / heads * heads + i / (head_dim / 8u) % heads]: 0 within head_dim / 8u
// want:   the turns of a loop may come in any order: the kernel's own (line 19)
// want:   v_a, s_a, v_b, s_b, v_merged, s_merged do not overlap: the contract's word (no alias)

// case: folder examples/opencl/silu_and_mul
// with: folder = "../../examples/opencl/silu_and_mul"
// see there
// want: grid: | each 0..(size_t)tokens * d
// want: each 0..(size_t)tokens * d:
// want:     float x = input[i / d * 2 * d + i % d];
// want:     float gate = input[i / d * 2 * d + d + i % d];
// want:     out[i] = x / (1.0f + exp(-x)) * gate;
// want: load input[i / d * 2 * d + i % d]: 1 within d
// want: load input[i / d * 2 * d + d + i % d]: 1 within d
// want: store out[i]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 8)
// want:   out, input do not overlap: the contract's word (no alias)

// case: folder published/packs_of_heads
// with: folder = "published/packs_of_heads"
// see there
// want: grid: token<tokens, head<heads | each 0..dim / 8
// want: each 0..dim / 8:
// want:     const float by = scale[token * heads + head];
// want:     uint4 pack = ((const uint4 *)(x + ((token * heads + head) * dim + lane * 8)))[0];
// want:     __half *values = (__half *)&pack;
// want: #pragma unroll
// want:     for (int i = 0; i < 8; i++)
// want:         values[i] = __float2half(__half2float(values[i]) * by);
// want:     ((uint4 *)(out + ((token * heads + head) * dim + lane * 8)))[0] = pack;
// want: load scale[token * heads + head]: 0
// want: load x[0]: 1
// want: store out[0]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 13)
// want:   x, scale, out do not overlap: the contract's word (no alias)

// case: folder zoo/layernorm
// with: folder = "zoo/layernorm"
// see there
// want: block: row<rows | each 0..d +acc; let mean; each 0..d +acc_2; let rstd; each 0..d
// want: each 0..d +acc (acc from 0.0f):
// want:     acc += x[(long long)row * d + i];
// want: let mean:
// want:     const float mean = acc / d;
// want: each 0..d +acc_2 (acc_2 from 0.0f):
// want:     float diff = x[(long long)row * d + i_2] - mean;
// want:     acc_2 += diff * diff;
// want: let rstd:
// want:     const float rstd = 1.0f / sqrtf(acc_2 / d + eps);
// want: each 0..d:
// want:     y[(long long)row * d + i_3] = (x[(long long)row * d + i_3] - mean) * rstd * gamma[i_3] + beta[i_3];
// want: load x[(long long)row * d + i]: 1
// want: load x[(long long)row * d + i_2]: 1
// want: store y[(long long)row * d + i_3]: 1
// want: load x[(long long)row * d + i_3]: 1
// want: load gamma[i_3]: 1
// want: load beta[i_3]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 17, line 31, line 44)
// want:   'acc' may be joined in another order: the contract's word ([accuracy])
// want:   'acc_2' may be joined in another order: the contract's word ([accuracy])
// want:   y, x, gamma, beta do not overlap: the contract's word (no alias)

// case: folder zoo/conv3x3_tile
// with: folder = "zoo/conv3x3_tile"
// see there
// want: grid: at_z<channels, y<height | each 0..width
// want: each 0..width:
// want:     float sum = 0.0f;
// want:     for (int dy = 0; dy < 3; dy++)
// want:         for (int dx = 0; dx < 3; dx++)
// want:             sum += taps[3 * dy + dx]
// want:                 * __half2float(in[(long long)at_z * height * width
// want:                                   + (long long)min(max(y + dy - 1, 0), height - 1) * width
// want:                                   + min(max(x + dx - 1, 0), width - 1)]);
// want:     out[(long long)at_z * height * width + (long long)y * width + x] = __float2half(sum);
// want: load taps[3 * dy + dx]: 0
// want: load in[(long long)at_z * height * width + (long long)min(max(y + dy - 1, 0), height - 1) * width + min(max(x + dx - 1, 0), width - 1)]: None
// want: store out[(long long)at_z * height * width + (long long)y * width + x]: 1
// want:   every place of 'tile' that is read was written by one thread, a barrier before: proved (line 10)
// want:   every place of 'weight' that is read was written by one thread, a barrier before: proved (line 11)
// want:   the turns of a loop may come in any order: the kernel's own (line 24)
// want:   in, taps, out do not overlap: the contract's word (no alias)

// case: folder zoo/matmul_tile
// long
// with: folder = "zoo/matmul_tile"
// see there
// want: grid: row<m | each 0..n
// want: each 0..n:
// want:     float sum = 0.0f;
// want:     for (int t = 0; t < (k + 16 - 1) / 16; t++)
// want:         for (int i = 0; i < 16; i++)
// want:             sum += (16 * t + i < k ? a[(long long)row * k + (16 * t + i)] : 0.0f)
// want:                 * (16 * t + i < k ? b[(long long)(16 * t + i) * n + col] : 0.0f);
// want:     c[(long long)row * n + col] = sum;
// want: load a[(long long)row * k + (16 * t + i)]: 0
// want: load b[(long long)(16 * t + i) * n + col]: 1
// want: store c[(long long)row * n + col]: 1
// want:   every place of 'left' that is read was written by one thread, a barrier before: proved (line 6)
// want:   every place of 'right' that is read was written by one thread, a barrier before: proved (line 7)
// want:   the turns of a loop may come in any order: the kernel's own (line 10)
// want:   a, b, c do not overlap: the contract's word (no alias)

// case: folder zoo/transpose_tiled
// with: folder = "zoo/transpose_tiled"
// see there
// want: grid: y<cols | each 0..rows
// want: each 0..rows:
// want:     out[(long long)y * rows + x] = in[(long long)x * cols + y];
// want: store out[(long long)y * rows + x]: 1
// want: load in[(long long)x * cols + y]: None
// want:   every place of 'tile' that is read was written by one thread, a barrier before: proved (line 9)
// want:   the turns of a loop may come in any order: the kernel's own (line 23)
// want:   out, in do not overlap: the contract's word (no alias)

// case: folder zoo/argmax
// with: folder = "zoo/argmax"
// see there
// want: not read: line 19: 'at' is carried from one element to the next in a way that is no sum, product, maximum or minimum; as tiles: line 30: a loop with barriers turns differently for different threads

// case: folder zoo/masked_scale
// with: folder = "zoo/masked_scale"
// see there
// want: grid: | each 0..n
// want: each 0..n:
// want:     out[index] = mask[index] ? in[index] * scale : (float)0;
// want: store out[index]: 1
// want: load mask[index]: 1
// want: load in[index]: 1
// want:   the turns of a loop may come in any order: the kernel's own (line 10)
// want:   in, mask, out do not overlap: the contract's word (no alias)

// case: folder zoo/rows_int8_two_pass
// with: folder = "zoo/rows_int8_two_pass"
// see there
// want: not read: the operator runs 2 kernels, one after the other

// case: folder zoo/heat_tile
// long
// with: folder = "zoo/heat_tile"
// see there
// want: grid: y<height | each 0..width
// want: each 0..width:
// want:     const float centre = u[(long long)y * width + x];
// want:     const float around = (y >= 1 ? u[(long long)(y - 1) * width + x] : 0.0f)
// want:         + (y + 1 < height ? u[(long long)(y + 1) * width + x] : 0.0f)
// want:         + (x >= 1 ? u[(long long)y * width + (x - 1)] : 0.0f)
// want:         + (x + 1 < width ? u[(long long)y * width + (x + 1)] : 0.0f);
// want:     u_next[(long long)y * width + x] = centre + alpha * (around - 4.0f * centre);
// want: load u[(long long)y * width + x]: 1
// want: load u[(long long)(y - 1) * width + x]: 1
// want: load u[(long long)(y + 1) * width + x]: 1
// want: load u[(long long)y * width + (x - 1)]: 1
// want: load u[(long long)y * width + (x + 1)]: 1
// want: store u_next[(long long)y * width + x]: 1
// want:   every place of 'tile' that is read was written by one thread, a barrier before: proved (line 8)
// want:   the turns of a loop may come in any order: the kernel's own (line 27)
// want:   u, u_next do not overlap: the contract's word (no alias)
