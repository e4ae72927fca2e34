/* ---- Serving. ------------------------------------------------------------------------------------------ */

struct TS_OPERATOR {
    cl_context context;
    cl_device_id device;
    const struct ts_device *tuned_for;
    size_t base_align;  /* bytes; every buffer of the device begins at a multiple of it */
    cl_program programs[TS_PROGRAMS];
    cl_int built[TS_PROGRAMS];  /* 1: not tried yet */
    struct ts_kernel kernels[TS_KERNELS];
    cl_command_queue work_queue;  /* whose commands use the workspaces one after the other */
    cl_mem work[TS_WORKSPACES];
    size_t work_bytes[TS_WORKSPACES];
    const char *served;
};

static int ts_same_bits(const void *value, cl_ulong bits, size_t bytes) {
    const cl_uchar bits_8 = (cl_uchar)bits;
    const cl_ushort bits_16 = (cl_ushort)bits;
    const cl_uint bits_32 = (cl_uint)bits;
    const void *tuned = &bits;
    if (bytes == 1) tuned = &bits_8;
    if (bytes == 2) tuned = &bits_16;
    if (bytes == 4) tuned = &bits_32;
    return memcmp(value, tuned, bytes) == 0;
}

static int ts_holds(ts_expression condition, const long long *size) {
    int undefined = 0;
    const long long value = condition(size, &undefined);
    return value != 0 && !undefined;
}

static long long ts_within(ts_expression expression, long long low, long long high, const long long *size,
                           int *undefined) {
    const long long value = expression(size, undefined);
    return value < low || value > high ? ts_no_value(undefined) : value;
}

/* Where a buffer lies: in which one, from which byte on; and in the host's memory, where it was made there. */
struct ts_range {
    cl_mem root;
    size_t origin, bytes;
    const char *host;
};

/* What is no buffer, an image or NULL, is CL_INVALID_MEM_OBJECT. */
static cl_int ts_range_of(cl_mem memory, struct ts_range *range) {
    cl_mem_object_type type = 0;
    cl_mem_flags flags = 0;
    cl_mem parent = NULL;
    void *host = NULL;
    cl_int error;
    if (memory == NULL) return CL_INVALID_MEM_OBJECT;
    error = clGetMemObjectInfo(memory, CL_MEM_TYPE, sizeof type, &type, NULL);
    if (error != CL_SUCCESS) return error;
    if (type != CL_MEM_OBJECT_BUFFER) return CL_INVALID_MEM_OBJECT;
    error = clGetMemObjectInfo(memory, CL_MEM_SIZE, sizeof range->bytes, &range->bytes, NULL);
    if (error == CL_SUCCESS)
        error = clGetMemObjectInfo(memory, CL_MEM_OFFSET, sizeof range->origin, &range->origin, NULL);
    if (error == CL_SUCCESS)
        error = clGetMemObjectInfo(memory, CL_MEM_ASSOCIATED_MEMOBJECT, sizeof parent, &parent, NULL);
    if (error != CL_SUCCESS) return error;
    range->root = parent != NULL ? parent : memory;
    range->host = NULL;
    error = clGetMemObjectInfo(range->root, CL_MEM_FLAGS, sizeof flags, &flags, NULL);
    if (error == CL_SUCCESS && (flags & CL_MEM_USE_HOST_PTR) != 0)
        error = clGetMemObjectInfo(range->root, CL_MEM_HOST_PTR, sizeof host, &host, NULL);
    range->host = (const char *)host;
    return error;
}

static int ts_overlap(const struct ts_range *a, const struct ts_range *b) {
    if (a->root == b->root) return a->origin < b->origin + b->bytes && b->origin < a->origin + a->bytes;
    if (a->host == NULL || b->host == NULL) return 0;
    {
        const uintptr_t first = (uintptr_t)a->host + a->origin, second = (uintptr_t)b->host + b->origin;
        return first < second + b->bytes && second < first + a->bytes;
    }
}

/* An error where an array is no buffer or too small: no kernel may run with it. *fit: whether the arrays are
   as they were while tuning, aligned, and none that is written in another. */
static cl_int ts_look_at_arrays(const struct TS_OPERATOR *self, const struct ts_call *call, int *fit) {
    struct ts_range range[TS_ARRAYS + 1];
    size_t i, j;
    *fit = 1;
    for (i = 0; i != TS_ARRAYS; ++i) {
        int undefined = 0;
        const long long bytes = ts_arrays[i].bytes(call->size, &undefined);
        const size_t align = ts_arrays[i].align;
        cl_int error;
        if (call->memory[i] == NULL && bytes == 0 && !undefined) { /* OpenCL has no empty buffers */
            memset(&range[i], 0, sizeof range[i]);
            *fit = 0;
            continue;
        }
        error = ts_range_of(call->memory[i], &range[i]);
        if (error != CL_SUCCESS) return error;
        if (undefined || bytes < 0 || (unsigned long long)bytes > range[i].bytes) return CL_INVALID_BUFFER_SIZE;
        if (self->base_align % align != 0 || range[i].origin % align != 0) *fit = 0;
        if (range[i].host != NULL && (uintptr_t)range[i].host % align != 0) *fit = 0;
        for (j = 0; j < i; ++j)
            if ((ts_arrays[i].written || ts_arrays[j].written) && ts_overlap(&range[i], &range[j])) *fit = 0;
    }
    return CL_SUCCESS;
}

static cl_int ts_build(struct TS_OPERATOR *self, size_t number) {
    const struct ts_program *program = &ts_programs[number];
    cl_int error = CL_SUCCESS;
    if (self->built[number] != 1) return self->built[number];
    self->programs[number] =
        clCreateProgramWithSource(self->context, program->count, (const char **)program->text, NULL, &error);
    if (error == CL_SUCCESS)
        error = clBuildProgram(self->programs[number], 1, &self->device, program->flags, NULL, NULL);
    self->built[number] = error;
    return error;
}

/* The name of a kernel in which {size} stands for a number. */
static int ts_name(const char *pattern, const long long *size, char *name) {
    size_t used = 0;
    while (*pattern != '\0') {
        size_t i, found = TS_SIZES;
        const char *end = *pattern == '{' ? strchr(pattern, '}') : NULL;
        for (i = 0; end != NULL && i != TS_SIZES; ++i) {
            const size_t length = strlen(ts_size_names[i]);
            if (length == (size_t)(end - pattern - 1) && memcmp(ts_size_names[i], pattern + 1, length) == 0)
                found = i;
        }
        if (found != TS_SIZES) {
            const int written = snprintf(name + used, TS_LONGEST_NAME - used, "%lld", size[found]);
            if (written < 0 || (size_t)written >= TS_LONGEST_NAME - used) return 0;
            used += (size_t)written;
            pattern = end + 1;
        } else {
            if (used + 1 >= TS_LONGEST_NAME) return 0;
            name[used++] = *pattern++;
        }
    }
    name[used] = '\0';
    return 1;
}

static cl_int ts_kernel_of(struct TS_OPERATOR *self, const struct ts_entry *entry, size_t number,
                           const long long *size, cl_kernel *kernel) {
    struct ts_kernel *kept = &self->kernels[entry->first_kernel + number];
    char name[TS_LONGEST_NAME];
    cl_int error = CL_SUCCESS;
    if (!ts_name(entry->launches[number].entry, size, name)) return CL_INVALID_KERNEL_NAME;
    if (kept->kernel == NULL || strcmp(kept->name, name) != 0) {
        cl_uint takes = 0;
        if (kept->kernel != NULL) clReleaseKernel(kept->kernel);
        kept->kernel = clCreateKernel(self->programs[entry->program], name, &error);
        if (error != CL_SUCCESS) {
            kept->kernel = NULL;
            return error;
        }
        strcpy(kept->name, name);
        error = clGetKernelInfo(kept->kernel, CL_KERNEL_NUM_ARGS, sizeof takes, &takes, NULL);
        if (error == CL_SUCCESS && takes != entry->launches[number].count) error = CL_INVALID_KERNEL_ARGS;
        if (error != CL_SUCCESS) {
            clReleaseKernel(kept->kernel);
            kept->kernel = NULL;
            return error;
        }
    }
    *kernel = kept->kernel;
    return CL_SUCCESS;
}

static cl_int ts_set_computed(cl_kernel kernel, cl_uint index, int type, long long value) {
    const cl_char as_8 = (cl_char)value;
    const cl_uchar as_u8 = (cl_uchar)value;
    const cl_short as_16 = (cl_short)value;
    const cl_ushort as_u16 = (cl_ushort)value;
    const cl_int as_32 = (cl_int)value;
    const cl_uint as_u32 = (cl_uint)value;
    const cl_long as_64 = (cl_long)value;
    const cl_ulong as_u64 = (cl_ulong)value;
    const cl_float as_float = (cl_float)value;
    const cl_double as_double = (cl_double)value;
    switch (type) {
    case TS_INT8: return clSetKernelArg(kernel, index, sizeof as_8, &as_8);
    case TS_UINT8: return clSetKernelArg(kernel, index, sizeof as_u8, &as_u8);
    case TS_INT16: return clSetKernelArg(kernel, index, sizeof as_16, &as_16);
    case TS_UINT16: return clSetKernelArg(kernel, index, sizeof as_u16, &as_u16);
    case TS_INT32: return clSetKernelArg(kernel, index, sizeof as_32, &as_32);
    case TS_UINT32: return clSetKernelArg(kernel, index, sizeof as_u32, &as_u32);
    case TS_INT64: return clSetKernelArg(kernel, index, sizeof as_64, &as_64);
    case TS_UINT64: return clSetKernelArg(kernel, index, sizeof as_u64, &as_u64);
    case TS_FLOAT: return clSetKernelArg(kernel, index, sizeof as_float, &as_float);
    case TS_DOUBLE: return clSetKernelArg(kernel, index, sizeof as_double, &as_double);
    }
    return CL_INVALID_ARG_VALUE;
}

static cl_int ts_set(struct TS_OPERATOR *self, cl_kernel kernel, cl_uint index,
                     const struct ts_argument *argument, const struct ts_call *call) {
    int undefined = 0;
    long long value;
    switch (argument->kind) {
    case TS_BUFFER:
        return clSetKernelArg(kernel, index, sizeof(cl_mem), &call->memory[argument->index]);
    case TS_WORKSPACE:
        return clSetKernelArg(kernel, index, sizeof(cl_mem), &self->work[argument->index]);
    case TS_GIVEN:
        return clSetKernelArg(kernel, index, call->given[argument->index].bytes, call->given[argument->index].value);
    case TS_LOCAL:
        value = ts_within(argument->expression, 1, 2147483647LL, call->size, &undefined);
        return undefined ? CL_INVALID_ARG_SIZE : clSetKernelArg(kernel, index, (size_t)value, NULL);
    case TS_COMPUTED:
        value = ts_within(argument->expression, argument->low, argument->high, call->size, &undefined);
        return undefined ? CL_INVALID_ARG_VALUE : ts_set_computed(kernel, index, argument->type, value);
    }
    return CL_INVALID_ARG_VALUE;
}

/* Grid and block in numbers, and the work-group no larger than the kernel allows. */
static cl_int ts_geometry_of(const struct TS_OPERATOR *self, cl_kernel kernel, const struct ts_launch *launch,
                             const long long *size, struct ts_geometry *made) {
    int undefined = 0, axis;
    size_t most = 0, items = 1;
    const cl_int error =
        clGetKernelWorkGroupInfo(kernel, self->device, CL_KERNEL_WORK_GROUP_SIZE, sizeof most, &most, NULL);
    if (error != CL_SUCCESS) return error;
    made->dimensions = 1;
    for (axis = 0; axis < 3; ++axis) {
        long long grid = 1, block = 1;
        if (launch->grid[axis]) grid = ts_within(launch->grid[axis], 1, 2147483647LL, size, &undefined);
        if (launch->block[axis]) block = ts_within(launch->block[axis], 1, 2147483647LL, size, &undefined);
        if (undefined) return CL_INVALID_GLOBAL_WORK_SIZE;
        if ((size_t)block > most / items) return CL_INVALID_WORK_GROUP_SIZE;
        if ((size_t)grid > (size_t)-1 / (size_t)block) return CL_INVALID_GLOBAL_WORK_SIZE;
        items *= (size_t)block;
        made->local[axis] = (size_t)block;
        made->global[axis] = (size_t)grid * (size_t)block;
        if (grid != 1 || block != 1) made->dimensions = (cl_uint)axis + 1;
    }
    return CL_SUCCESS;
}

/* Workspaces stay for the next call on the same queue, whose commands run in order; any other call gets its
   own. What is released here lives on until the commands that use it have ended. */
static cl_int ts_make_workspaces(struct TS_OPERATOR *self, const struct ts_entry *entry,
                                 const struct ts_call *call, int in_order) {
    size_t i;
    cl_int error = CL_SUCCESS;
    if (entry->workspace_count == 0) return CL_SUCCESS;
    if (!in_order || self->work_queue != call->queue) {
        for (i = 0; i < TS_WORKSPACES; ++i) {
            if (self->work[i] != NULL) clReleaseMemObject(self->work[i]);
            self->work[i] = NULL;
        }
        if (self->work_queue != NULL) clReleaseCommandQueue(self->work_queue);
        self->work_queue = NULL;
        error = clRetainCommandQueue(call->queue);
        if (error != CL_SUCCESS) return error;
        self->work_queue = call->queue;
    }
    for (i = 0; i < entry->workspace_count; ++i) {
        int undefined = 0;
        long long bytes = entry->workspaces[i].bytes(call->size, &undefined);
        if (undefined || bytes < 0) return CL_INVALID_BUFFER_SIZE;
        if (bytes == 0) bytes = 1;
        if (self->work[i] != NULL && self->work_bytes[i] >= (size_t)bytes) continue;
        if (self->work[i] != NULL) clReleaseMemObject(self->work[i]);
        self->work[i] = clCreateBuffer(self->context, CL_MEM_READ_WRITE, (size_t)bytes, NULL, &error);
        if (error != CL_SUCCESS) {
            self->work[i] = NULL;
            return error;
        }
        self->work_bytes[i] = (size_t)bytes;
    }
    return CL_SUCCESS;
}

/* The commands of a call. In a queue that does not keep their order each waits for the one before. */
struct ts_commands {
    int in_order;
    size_t left;
    cl_uint waits;
    const cl_event *wait_list;
    cl_event before;
    cl_event *event;
};

static cl_event *ts_event_of(struct ts_commands *commands, cl_event *made) {
    *made = NULL;
    return commands->left == 1 ? commands->event : commands->in_order ? NULL : made;
}

static void ts_enqueued(struct ts_commands *commands, cl_event made) {
    if (commands->before != NULL) clReleaseEvent(commands->before);
    commands->before = made;
    commands->left -= 1;
    commands->waits = made != NULL ? 1 : 0;
    commands->wait_list = made != NULL ? &commands->before : NULL;
}

/* *started tells whether a command went into the queue: until then another entry may serve. */
static cl_int ts_serve(struct TS_OPERATOR *self, const struct ts_entry *entry, const struct ts_call *call,
                       struct ts_commands commands, int *started) {
    cl_kernel kernels[TS_LAUNCHES];
    struct ts_geometry geometry[TS_LAUNCHES];
    int launched[TS_LAUNCHES] = {0};
    cl_event made = NULL;
    size_t i, wanted = 0;
    cl_uint index;
    cl_int error = ts_build(self, entry->program);
    if (error == CL_SUCCESS) error = ts_make_workspaces(self, entry, call, commands.in_order);
    for (i = 0; error == CL_SUCCESS && i < entry->count; ++i) {
        const struct ts_launch *launch = &entry->launches[i];
        launched[i] = launch->when == NULL || ts_holds(launch->when, call->size);
        if (!launched[i]) continue;
        wanted += 1;
        error = ts_kernel_of(self, entry, i, call->size, &kernels[i]);
        if (error == CL_SUCCESS) error = ts_geometry_of(self, kernels[i], launch, call->size, &geometry[i]);
        for (index = 0; error == CL_SUCCESS && index < launch->count; ++index)
            error = ts_set(self, kernels[i], index, &launch->arguments[index], call);
    }
    if (error != CL_SUCCESS) return error;
    commands.left = wanted;
    for (i = 0; i < entry->workspace_count; ++i) commands.left += entry->workspaces[i].filled != 0;
    for (i = 0; error == CL_SUCCESS && i < entry->workspace_count; ++i) {
        const struct ts_workspace *workspace = &entry->workspaces[i];
        const size_t whole = workspace->filled ? self->work_bytes[i] / workspace->filled * workspace->filled : 0;
        if (workspace->filled == 0) continue;
        error = clEnqueueFillBuffer(call->queue, self->work[i], workspace->pattern, workspace->filled, 0, whole,
                                    commands.waits, commands.wait_list, ts_event_of(&commands, &made));
        if (error == CL_SUCCESS) {
            *started = 1;
            ts_enqueued(&commands, made);
        }
    }
    for (i = 0; error == CL_SUCCESS && i < entry->count; ++i) {
        if (!launched[i]) continue;
        error = clEnqueueNDRangeKernel(call->queue, kernels[i], geometry[i].dimensions, NULL, geometry[i].global,
                                       geometry[i].local, commands.waits, commands.wait_list,
                                       ts_event_of(&commands, &made));
        if (error == CL_SUCCESS) {
            *started = 1;
            ts_enqueued(&commands, made);
        }
    }
    if (commands.before != NULL) clReleaseEvent(commands.before);
    return error;
}

static cl_int ts_enqueue(struct TS_OPERATOR *self, const struct ts_call *call, cl_uint waits,
                         const cl_event *wait_list, cl_event *event) {
    struct ts_commands commands;
    cl_command_queue_properties properties = 0;
    int fits = 0, started = 0;
    size_t i;
    cl_int error;
    self->served = NULL;
    for (i = 0; i != TS_SIZES; ++i)
        if (call->size[i] < -TS_LIMIT || call->size[i] > TS_LIMIT) return CL_INVALID_VALUE;
    error = clGetCommandQueueInfo(call->queue, CL_QUEUE_PROPERTIES, sizeof properties, &properties, NULL);
    if (error != CL_SUCCESS) return error;
    commands.in_order = (properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) == 0;
    commands.left = 0;
    commands.waits = waits;
    commands.wait_list = wait_list;
    commands.before = NULL;
    commands.event = event;
    error = ts_look_at_arrays(self, call, &fits);
    if (error != CL_SUCCESS) return error;
    fits = fits && call->as_tuned && ts_holds(ts_contract, call->size);
    for (i = 0; i < self->tuned_for->count; ++i) {
        const struct ts_entry *entry = &self->tuned_for->entries[i];
        if (!ts_holds(entry->when, call->size) || (entry->tuned && !fits)) continue;
        error = ts_serve(self, entry, call, commands, &started);
        if (error == CL_SUCCESS) {
            self->served = entry->file;
            return CL_SUCCESS;
        }
        /* What a tuned kernel cannot do here, the original may: nothing has begun yet. */
        if (!entry->tuned || started) return error;
    }
    return CL_INVALID_VALUE;
}

static cl_int ts_create(cl_context context, cl_device_id device, struct TS_OPERATOR **made) {
    struct TS_OPERATOR *self;
    char name[TS_LONGEST_NAME];
    size_t i, length = 0;
    const char *start = name;
    cl_uint bits = 0;
    cl_int error;
    if (made == NULL) return CL_INVALID_VALUE;
    *made = NULL;
    error = clGetDeviceInfo(device, CL_DEVICE_MEM_BASE_ADDR_ALIGN, sizeof bits, &bits, NULL);
    if (error != CL_SUCCESS) return error;
    error = clGetDeviceInfo(device, CL_DEVICE_NAME, sizeof name, name, NULL);
    if (error == CL_INVALID_VALUE) name[0] = '\0'; /* longer than any that is known */
    else if (error != CL_SUCCESS) return error;
    while (isspace((unsigned char)*start)) ++start;
    length = strlen(start);
    while (length > 0 && isspace((unsigned char)start[length - 1])) --length;
    self = (struct TS_OPERATOR *)calloc(1, sizeof *self);
    if (self == NULL) return CL_OUT_OF_HOST_MEMORY;
    error = clRetainContext(context);
    if (error != CL_SUCCESS) {
        free(self);
        return error;
    }
    self->context = context;
    self->device = device;
    self->base_align = bits >= 8 ? bits / 8 : 1;
    for (i = 0; i < TS_PROGRAMS; ++i) self->built[i] = 1;
    self->tuned_for = &ts_devices[TS_DEVICES - 1]; /* any other: the original */
    for (i = TS_DEVICES - 1; i-- > 0;)
        if (strlen(ts_devices[i].name) == length && memcmp(ts_devices[i].name, start, length) == 0)
            self->tuned_for = &ts_devices[i];
    ts_all_of_them();
    (void)ts_same_bits;
    *made = self;
    return CL_SUCCESS;
}

static cl_int ts_destroy(struct TS_OPERATOR *self) {
    size_t i;
    if (self == NULL) return CL_SUCCESS;
    for (i = 0; i < TS_KERNELS; ++i)
        if (self->kernels[i].kernel != NULL) clReleaseKernel(self->kernels[i].kernel);
    for (i = 0; i < TS_PROGRAMS; ++i)
        if (self->programs[i] != NULL) clReleaseProgram(self->programs[i]);
    for (i = 0; i < TS_WORKSPACES; ++i)
        if (self->work[i] != NULL) clReleaseMemObject(self->work[i]);
    if (self->work_queue != NULL) clReleaseCommandQueue(self->work_queue);
    clReleaseContext(self->context);
    free(self);
    return CL_SUCCESS;
}
