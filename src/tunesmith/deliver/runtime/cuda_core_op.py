"""Tuned kernels on a cuda.core stream, for any arrays with DLPack or the CUDA array interface."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cuda.core import Device, Stream
from cuda.core.utils import StridedMemoryView

from . import cuda_driver
from .arguments import passed
from .binding import Array
from .cuda_calls import CudaCalls
from .element_types import plain_type
from .operator import Operator


class CudaCoreCalls:
    """Call it with the stream and every array in the kernel's order. Whoever made the arrays sees to it that
    their work comes before this stream's."""

    def __init__(self, operator: Operator) -> None:
        self.operator = operator
        self.calls = CudaCalls(operator)

    def __call__(self, stream: Stream, /, *arrays: Any, **named: Any) -> None:
        self._run(stream, arrays, named, False)

    def original(self, stream: Stream, /, *arrays: Any, **named: Any) -> None:
        self._run(stream, arrays, named, True)

    def prepare(self, device: int | None = None) -> None:
        """Load, or compile, all that may serve: before a capture, or to have the first call as fast."""
        self.calls.prepare(Device().device_id if device is None else device)

    def _run(
        self, stream: Stream, positional: Sequence[Any], named: Mapping[str, Any], original: bool
    ) -> None:
        handle = getattr(stream, "handle", None)
        if handle is None:
            raise TypeError(
                f"the first argument is a cuda.core Stream, got {type(stream).__name__}: pass one"
            )
        own = passed(self.operator, positional, named, lambda _, array: _view(array).shape, None)
        views = [_view(array) for array in own.arrays]
        ordinal = views[0].device_id if views else stream.device.device_id
        kinds = [(str(v.dtype), tuple(v.shape), v.strides and tuple(v.strides), v.device_id) for v in views]
        call = self.operator.call(
            (tuple(kinds), tuple(own.sizes.items())),
            lambda: [
                Array(plain_type(kind), shape, strides, f"cuda:{n}") for kind, shape, strides, n in kinds
            ],
            own.sizes,
            lambda: self.calls.device_of(ordinal),
        )

        def allocate(nbytes: int) -> tuple[int, Any]:
            memory = Device(ordinal).allocate(nbytes, stream=stream)  # freed in the order of the stream
            return int(memory.handle), memory

        with cuda_driver.on_device(ordinal):
            if not cuda_driver.is_stream_of(int(handle), ordinal):
                raise ValueError(
                    f"{self.operator.name}: the arrays lie on device {ordinal}, the stream is another's "
                    f"or of a context of its own: pass one made with Device({ordinal}).create_stream()"
                )
            self.calls.launch(
                call,
                [int(view.ptr) for view in views],
                self.operator.scalar_bytes(own.scalars),
                ordinal,
                int(handle),
                allocate,
                original,
            )


def _view(array: Any) -> Any:
    """Without waiting: -1 says that the order of streams is the caller's."""
    try:
        make = getattr(StridedMemoryView, "from_any_interface", StridedMemoryView)
        view = make(array, stream_ptr=-1)
    except (AttributeError, BufferError, TypeError) as error:
        raise TypeError(
            f"arrays have DLPack or the CUDA array interface, got {type(array).__name__} ({error}): pass a "
            "CuPy array, a tensor or a buffer of cuda.core with a type and shape"
        ) from error
    if not view.is_device_accessible:
        raise ValueError("arrays lie on a CUDA device, got one in the host's memory: copy it there first")
    return view
