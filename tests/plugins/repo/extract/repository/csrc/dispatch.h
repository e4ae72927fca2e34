#pragma once
#include <torch/all.h>

#define OWN_DISPATCH(TYPE, NAME, ...)                       \
  AT_DISPATCH_SWITCH(TYPE, NAME,                            \
      AT_DISPATCH_CASE(at::ScalarType::Float, __VA_ARGS__)  \
      AT_DISPATCH_CASE(at::ScalarType::Half, __VA_ARGS__)   \
      AT_DISPATCH_CASE(at::ScalarType::BFloat16, __VA_ARGS__))
