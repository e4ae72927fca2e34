// Launches by calls of CUDA's runtime: the same parts as of `<<<...>>>`.
// read: launches

// case: all ways are alike
void host(torch::Tensor x, int n) {
  int rows = x.size(0);
  dim3 grid(rows, 2);

  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = dim3(256);
  config.dynamicSmemBytes = 4 * n;
  config.stream = stream;
  cudaLaunchKernelEx(&config, scale<float, 4>, out, rows);
}
// want: line 10: kernel 'scale', template_args 'float, 4', grid ('rows', '2'), block ('256',), shared '4 * n', arguments ('out', 'rows'), settled (('rows', 'x.size(0)'), ('grid', '(rows, 2)')), local ['config', 'grid', 'n', 'rows', 'x'], changed ['config'], function 'host', fields (('config.gridDim', 'grid'), ('config.blockDim', 'dim3(256)'), ('config.dynamicSmemBytes', '4 * n'), ('config.stream', 'stream'))

// case: all ways are alike (2)
void host(torch::Tensor x, int n) {
  int rows = x.size(0);
  dim3 grid(rows, 2);

  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = dim3(256);
  config.dynamicSmemBytes = 4 * n;
  config.stream = stream;
  CHECK(cudaLaunchKernelEx(&config, own::scale<float, 4>, out, rows));
}
// want: line 10: kernel 'scale', template_args 'float, 4', grid ('rows', '2'), block ('256',), shared '4 * n', arguments ('out', 'rows'), settled (('rows', 'x.size(0)'), ('grid', '(rows, 2)')), local ['config', 'grid', 'n', 'rows', 'x'], changed ['config'], checks ('cudaLaunchKernelEx(&config, own::scale<float, 4>, out, rows)',), around (('CHECK', 'cudaLaunchKernelEx(&config, own::scale<float, 4>, out, rows)'),), function 'host', fields (('config.gridDim', 'grid'), ('config.blockDim', 'dim3(256)'), ('config.dynamicSmemBytes', '4 * n'), ('config.stream', 'stream'))

// case: all ways are alike (3)
void host(torch::Tensor x, int n) {
  int rows = x.size(0);
  dim3 grid(rows, 2);
  cudaLaunchConfig_t config{grid, 256, 4 * n, stream};
  cudaLaunchKernelEx(&config, scale<float, 4>, out, rows);
}
// want: line 5: kernel 'scale', template_args 'float, 4', grid ('rows', '2'), block ('256',), shared '4 * n', arguments ('out', 'rows'), settled (('rows', 'x.size(0)'), ('grid', '(rows, 2)')), local ['config', 'grid', 'n', 'rows', 'x'], changed ['config'], function 'host'

// case: all ways are alike (4)
void host(torch::Tensor x, int n) {
  int rows = x.size(0);
  dim3 grid(rows, 2);
  cudaLaunchConfig_t config = {.gridDim = grid, .blockDim = 256, .dynamicSmemBytes = 4 * n};
  cudaLaunchKernelEx(&config, scale<float, 4>, out, rows);
}
// want: line 5: kernel 'scale', template_args 'float, 4', grid ('rows', '2'), block ('256',), shared '4 * n', arguments ('out', 'rows'), settled (('rows', 'x.size(0)'), ('grid', '(rows, 2)')), local ['config', 'grid', 'n', 'rows', 'x'], changed ['config'], function 'host'

// case: all ways are alike (5)
void host(torch::Tensor x, int n) {
  int rows = x.size(0);
  dim3 grid(rows, 2);

  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = dim3(256);
  config.dynamicSmemBytes = 4 * n;
  config.stream = stream;
  auto* out = x.data_ptr<float>();
  void* args[] = {&out, (void*)&rows};
  cudaLaunchKernelExC(&config, (const void*)scale<float, 4>, args);
}
// want: line 12: kernel 'scale', template_args 'float, 4', grid ('rows', '2'), block ('256',), shared '4 * n', arguments ('out', 'rows'), settled (('rows', 'x.size(0)'), ('grid', '(rows, 2)')), local ['args', 'config', 'grid', 'n', 'out', 'rows', 'x'], changed ['config'], function 'host', fields (('config.gridDim', 'grid'), ('config.blockDim', 'dim3(256)'), ('config.dynamicSmemBytes', '4 * n'), ('config.stream', 'stream'))

// case: all ways are alike (6)
void host(torch::Tensor x, int n) {
  int rows = x.size(0);
  dim3 grid(rows, 2);
  auto* out = x.data_ptr<float>();
  void* args[] = {&out, (void*)&rows};
  cudaLaunchKernel((void*)&scale<float, 4>, grid, 256, args, 4 * n, stream);
}
// want: line 6: kernel 'scale', template_args 'float, 4', grid ('rows', '2'), block ('256',), shared '4 * n', arguments ('out', 'rows'), settled (('rows', 'x.size(0)'), ('grid', '(rows, 2)')), local ['args', 'grid', 'n', 'out', 'rows', 'x'], changed ['scale<float, 4>'], function 'host'

// case: all ways are alike (7)
void host(torch::Tensor x, int n) {
  int rows = x.size(0);
  dim3 grid(rows, 2);
  auto* out = x.data_ptr<float>();
  void* args[] = {&out, (void*)&rows};
  cudaLaunchCooperativeKernel(reinterpret_cast<void*>(&scale<float, 4>), grid, dim3(256), args, 4 * n);
}
// want: line 6: kernel 'scale', template_args 'float, 4', grid ('rows', '2'), block ('256',), shared '4 * n', arguments ('out', 'rows'), settled (('rows', 'x.size(0)'), ('grid', '(rows, 2)')), local ['args', 'grid', 'n', 'out', 'rows', 'x'], changed ['scale<float, 4>'], function 'host'

// case: without geometry or arguments there is no launch
void host(torch::Tensor x, int n) {
  int rows = x.size(0);
  dim3 grid(rows, 2);
  cudaLaunchKernelEx(config, scale<float>, out, rows);
}

// case: without geometry or arguments there is no launch (2)
void host(torch::Tensor x, int n) {
  int rows = x.size(0);
  dim3 grid(rows, 2);
  cudaLaunchConfig_t config;
  config.gridDim = 3;
  cudaLaunchKernelEx(&config, scale, out);
}

// case: without geometry or arguments there is no launch (3)
void host(torch::Tensor x, int n) {
  int rows = x.size(0);
  dim3 grid(rows, 2);

  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = dim3(256);
  config.dynamicSmemBytes = 4 * n;
  config.stream = stream;
  cudaLaunchKernelExC(&config, (void*)scale, arguments);
}

// case: without geometry or arguments there is no launch (4)
void host(torch::Tensor x, int n) {
  int rows = x.size(0);
  dim3 grid(rows, 2);
  cudaMemcpyAsync(a, b, c, d, e, f);
}

// case: an address that goes elsewhere may change its variable
void host(torch::Tensor x, int n) {
  int rows = x.size(0);
  dim3 grid(rows, 2);
  int n = 4;
  fill(&n);
  scale<<<n, 32>>>(x, n);
}
// want: line 6: kernel 'scale', template_args None, grid ('n',), block ('32',), shared None, arguments ('x', 'n'), settled (('rows', 'x.size(0)'), ('grid', '(rows, 2)')), local ['grid', 'n', 'rows', 'x'], changed ['n'], function 'host'
