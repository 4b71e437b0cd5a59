"""Files that are damaged, or made by hand with every sum right: a sentence, an equal value, or something that works."""

import json
import warnings
from functools import cache

import numpy as np
import pytest

from kerneltrail.errors import KerneltrailError, ModelFileError
from kerneltrail.store import container
from kerneltrail.trajectory.model import from_bytes
from kerneltrail.trajectory.model_file import to_bytes
from kerneltrail.trajectory.new_user import NewUser
from support.identical import difference

from .small import mean_model, rewarded_model, rows

ODD = [None, True, -1, 2**70, 0.5, float("nan"), float("inf"), "x", "", [], {}, [[[]]], {"a": 1}]


@cache
def followed(refine=6):
    """A user past the point where rows are replaced by sums, or before it."""
    user, seen = rewarded_model().new_user("ann", refine=refine), rows("ann", 12, seed=9)
    for t in (1, 2):
        batch = seen.batch(t)
        user.update(batch.X, batch.y, action=batch.action)
    return user


def use(user):
    """Go on with a user, ask, and write it down again."""
    batch = rows("ann", 12, seed=9).batch(3)
    user.update(batch.X, batch.y, action=batch.action)
    user.predict(batch.X, action=batch.action)
    user.to_bytes()


FILES = {
    "model": (lambda: to_bytes(mean_model()), from_bytes, lambda model: use(model.new_user())),
    "user": (lambda: followed().to_bytes(), lambda data: NewUser.from_bytes(data, rewarded_model()), use),
    "young user": (lambda: followed(400).to_bytes(), lambda data: NewUser.from_bytes(data, rewarded_model()), use),
}


@cache
def written(name):
    return FILES[name][0]()


def kind_of(name):
    return name.split()[-1]


def only_sentences(name, data):
    """Read and use a file; only errors for people may come of it."""
    _, load, using = FILES[name]
    try:
        value = load(data)
        using(value)
    except KerneltrailError:
        return None
    return value


def leaves(value, place=()):
    """Every part of a JSON value, by place."""
    yield place
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from leaves(item, (*place, key))


def replaced(value, place, new):
    if not place:
        return new
    items = dict(value) if isinstance(value, dict) else list(value)
    items[place[0]] = replaced(value[place[0]], place[1:], new)
    return items


@pytest.mark.parametrize("name", FILES)
def test_flipped_cut_or_overwritten_bytes(name):
    data, load = written(name), FILES[name][1]
    original, rng = load(data), np.random.default_rng(0)
    for _ in range(150):
        changed = bytearray(data)
        place, how = int(rng.integers(len(data))), int(rng.integers(4))
        if how == 0:
            changed[place] ^= 1 << int(rng.integers(8))
        elif how == 1:
            del changed[place:]
        elif how == 2:
            changed[place : place + 8] = rng.bytes(8)
        else:
            del changed[place : place + 5]
        try:
            value = load(bytes(changed))
        except ModelFileError:
            continue
        assert difference(value, original) is None  # such as another version's number, which nothing depends on


@pytest.mark.parametrize("name", FILES)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_every_part_of_the_content_replaced_by_something_odd(name):
    content, arrays = container.unpack(written(name), kind_of(name), "it")
    rng = np.random.default_rng(0)
    for place in leaves(content):
        for new in rng.choice(len(ODD), 3, replace=False).tolist():
            only_sentences(name, container.pack(kind_of(name), replaced(content, place, ODD[new]), arrays))


@pytest.mark.parametrize("name", FILES)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_every_array_of_another_type_or_shape_or_not_there(name):
    content, arrays = container.unpack(written(name), kind_of(name), "it")
    for key, array in arrays.items():
        others = [
            None, array.astype(np.float32), array.astype(np.int8), array[None], array.ravel()[:-1], array[:0],
            np.zeros(0), np.full_like(array, 1 if array.dtype == np.int64 else np.nan), np.array(3.0),
        ]  # fmt: skip
        for other in others:
            kept = {n: a for n, a in arrays.items() if n != key}
            if other is not None:
                kept[key] = other
            data = container.pack(kind_of(name), content, kept)
            if other is not None and (other.dtype, other.ndim) != (array.dtype, array.ndim):
                with pytest.raises(ModelFileError):
                    FILES[name][1](data)
            only_sentences(name, data)


def with_header(change):
    """A model's bytes with another header, which is a mapping."""
    data = written("model")
    length = int.from_bytes(data[:8], "little")
    header = change(json.loads(data[8 : 8 + length]))
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data[8 + length :]


def inner(change):
    def changed(header):
        head = change(json.loads(header["__metadata__"]["kerneltrail"]))
        header["__metadata__"]["kerneltrail"] = head if isinstance(head, str) else json.dumps(head)
        return header

    return changed


DEEP = "[" * 100_000
HEADERS = {
    "a list": lambda header: b"[]      ",
    "metadata a list": lambda header: {**header, "__metadata__": []},
    "the head a list": inner(lambda head: []),
    "the head a text": inner(lambda head: '"x"'),
    "the head deep": inner(lambda head: DEEP),
    "deep": lambda header: b'{"a":' + DEEP.encode(),
    "an entry a number": lambda header: {**header, "nodes.0.mean": 3},
    "offsets of text": lambda header: {**header, "x": {"dtype": "F64", "shape": [1], "data_offsets": ["a", "b"]}},
    "offsets far off": lambda header: {**header, "x": {"dtype": "F64", "shape": [1], "data_offsets": [0, 10**12]}},
    "offsets infinite": lambda header: {**header, "x": {"dtype": "F64", "shape": [1], "data_offsets": [0, 1e999]}},
    "offsets backwards": lambda header: {**header, "x": {"dtype": "F64", "shape": [1], "data_offsets": [8, 0]}},
    "offsets negative": lambda header: {**header, "x": {"dtype": "F64", "shape": [1], "data_offsets": [-8, 0]}},
    "no such type": lambda header: {**header, "x": {"dtype": "Q7", "shape": [0], "data_offsets": [0, 0]}},
    "a half type": lambda header: {**header, "x": {"dtype": "BF16", "shape": [0], "data_offsets": [0, 0]}},
    "no digest": inner(lambda head: {k: v for k, v in head.items() if k != "digest"}),
    "turned a number": inner(lambda head: {**head, "turned": 3}),
    "the content a list": inner(lambda head: {**head, "content": []}),
    "a number of many digits": inner(lambda head: '{"schema": ' + "9" * 5000 + "}"),
}


@pytest.mark.parametrize("change", HEADERS.values(), ids=HEADERS)
def test_headers_made_by_hand(change):
    with pytest.raises(ModelFileError, match=r"it (is|was)"):
        from_bytes(with_header(change), "it")


def test_a_step_at_infinity_is_no_step():
    content, arrays = container.unpack(written("user"), "user", "it")
    changed = replaced(content, ("history", 0, "batch"), float("inf"))
    with pytest.raises(ModelFileError, match="step 1 of its history: batch must be a whole number, got inf"):
        NewUser.from_bytes(container.pack("user", changed, arrays), rewarded_model())


def test_nothing_warns_on_the_way():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name, (_, load, using) in FILES.items():
            using(load(written(name)))
