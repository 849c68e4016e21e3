"""Struct: named arrays that kernels receive as one pointer.

Numba passes a tuple of arrays by value, about seven machine words an array and call; with forty
arrays that makes compilation take minutes. A `Struct` is passed as the address of a header (data
pointer and shape of every array), and a field access in a kernel is a load from it. The arrays
stay ordinary numpy arrays in Python; the object keeps them alive.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple, Self, cast

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    NativeValue,
    infer_getattr,
    intrinsic,
    lower_getattr_generic,
    models,
    register_model,
    typeof_impl,
    unbox,
)


class _Field(NamedTuple):
    dtype: np.dtype[Any]
    ndim: int


def array(dtype: Any, ndim: int = 1) -> Any:
    """Declare an array field of a `Struct`."""
    return _Field(np.dtype(dtype), ndim)


class Struct:
    """Base of classes whose fields are C-contiguous, writable arrays, declared with `array`."""

    fields: ClassVar[dict[str, _Field]] = {}
    _numba_type: ClassVar[types.Type]

    def __init_subclass__(cls) -> None:
        cls.fields = {k: v for k, v in vars(cls).items() if isinstance(v, _Field)}
        for name in cls.fields:
            delattr(cls, name)

    def __init__(self, **arrays: Any) -> None:
        """Take the arrays; every declared field must be given.

        Raises:
            TypeError: on a missing or unknown field, or an array of another dtype or layout.
        """
        if arrays.keys() != self.fields.keys():
            raise TypeError(f"fields {sorted(arrays.keys() ^ self.fields.keys())} do not match")
        header: list[int] = []
        for name, (dtype, ndim) in self.fields.items():
            value = arrays[name]
            if value.dtype != dtype or value.ndim != ndim or not value.flags.carray:
                raise TypeError(
                    f"{type(self).__name__}.{name} must be a C-contiguous {ndim}-d array of"
                    f" {dtype}, not {value.ndim}-d of {value.dtype}"
                )
            header += [value.ctypes.data, *value.shape]
            setattr(self, name, value)
        self._header = np.array(header, np.int64)
        self._address = int(self._header.ctypes.data)

    def replace(self, **arrays: Any) -> Self:
        """A struct with some arrays exchanged and the others shared."""
        return type(self)(**{name: getattr(self, name) for name in self.fields} | arrays)

    def copy(self) -> Self:
        """A struct whose arrays are all copies."""
        return type(self)(**{name: getattr(self, name).copy() for name in self.fields})

    @property
    def address(self) -> int:
        """Of the header; valid as long as the object lives."""
        return self._address

    @classmethod
    def numba_type(cls) -> types.Type:
        """The type under which kernels know this class; made once a class, as every call asks."""
        if "_numba_type" not in vars(cls):
            cls._numba_type = StructType(cls)
        return cls._numba_type


class StructType(types.Type):
    """Numba's view of one `Struct` class."""

    def __init__(self, struct: type[Struct]) -> None:
        self.struct = struct
        fields = [(n, f.dtype.descr, f.ndim) for n, f in struct.fields.items()]
        super().__init__(name=f"Struct({struct.__module__}.{struct.__qualname__}, {fields})")

    def field_type(self, name: str) -> types.Array | None:
        """Array type of a field, None if there is no such field."""
        field = self.struct.fields.get(name)
        if field is None:
            return None
        return types.Array(numba.from_dtype(field.dtype), field.ndim, "C", aligned=True)

    def offset(self, name: str) -> int:
        """Position of a field's data pointer in the header; its shape follows."""
        names = list(self.struct.fields)
        before = names[: names.index(name)]
        return sum(1 + self.struct.fields[other].ndim for other in before)


@typeof_impl.register(Struct)  # type: ignore[untyped-decorator]
def _typeof_struct(value: Struct, _context: Any) -> types.Type:
    return value.numba_type()


@register_model(StructType)
class _StructModel(models.PrimitiveModel):  # type: ignore[misc]
    """The address of the header, as an integer."""

    def __init__(self, manager: Any, type_: StructType) -> None:
        super().__init__(manager, type_, ir.IntType(64))


@unbox(StructType)  # type: ignore[untyped-decorator]
def _unbox_struct(_type: StructType, obj: Any, c: Any) -> NativeValue:
    address = c.pyapi.object_getattr_string(obj, "_address")
    native = c.pyapi.long_as_ulonglong(address)
    c.pyapi.decref(address)
    return NativeValue(native, is_error=cgutils.is_not_null(c.builder, c.pyapi.err_occurred()))


@infer_getattr
class _StructAttributes(AttributeTemplate):  # type: ignore[misc]
    key = StructType

    def generic_resolve(self, type_: StructType, name: str) -> types.Array | None:
        return type_.field_type(name)


def pointer_to(struct: type[Struct]) -> Any:
    """A function for kernels that takes the address of a struct of this class (`address`) for it.

    With it a kernel goes through many structs: an array of addresses stands for a list of them. The
    caller keeps the structs alive.
    """
    struct_type = struct.numba_type()

    @intrinsic  # type: ignore[untyped-decorator]
    def at(_context: Any, address: Any) -> Any:
        def same(_context: Any, _builder: Any, _signature: Any, arguments: Any) -> Any:
            return arguments[0]

        return struct_type(types.int64), same

    return at


@lower_getattr_generic(StructType)  # type: ignore[untyped-decorator]
def _lower_field(context: Any, builder: Any, type_: StructType, value: Any, name: str) -> Any:
    """Build the array from the header; it owns nothing, so it is never counted or freed."""
    array_type = cast(types.Array, type_.field_type(name))
    word = ir.IntType(64)
    header = builder.inttoptr(value, word.as_pointer())
    loads = []
    for index in range(1 + array_type.ndim):
        place = builder.gep(header, [ir.Constant(word, type_.offset(name) + index)])
        load = builder.load(place)
        # The header never changes while its struct lives: lets LLVM move the load out of loops.
        load.set_metadata("invariant.load", builder.module.add_metadata([]))
        loads.append(load)
    array = context.make_array(array_type)(context, builder)
    data_type = context.get_data_type(array_type.dtype)
    item_bytes = context.get_abi_sizeof(data_type)
    strides = [ir.Constant(word, item_bytes)]
    for size in reversed(loads[2:]):
        strides.insert(0, builder.mul(strides[0], size))
    count = ir.Constant(word, 1)
    for size in loads[1:]:
        count = builder.mul(count, size)
    array.meminfo = ir.Constant(array.meminfo.type, None)
    array.parent = ir.Constant(array.parent.type, None)
    array.nitems = count
    array.itemsize = ir.Constant(word, item_bytes)
    array.data = builder.inttoptr(loads[0], data_type.as_pointer())
    array.shape = cgutils.pack_array(builder, loads[1:], ty=word)
    array.strides = cgutils.pack_array(builder, strides, ty=word)
    return array._getvalue()
