#pragma once
#include "../tunesmith_cpu.h"
