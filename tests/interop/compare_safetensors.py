"""compare_safetensors.py COPY_SAFETENSORS: our safetensors against the format's own library.

The library writes files of every type that we have; our reader and writer copy them; the copies must be the same bytes
and hold the same values. Files that the library refuses must be refused by us. Needs numpy, ml_dtypes and safetensors.
"""

import json
import pathlib
import struct
import subprocess
import sys
import tempfile

import ml_dtypes
import numpy as np
import safetensors
import safetensors.numpy

TYPES = [np.uint8, np.float16, ml_dtypes.bfloat16, np.int32, np.float32, np.float64, np.int64]
SHAPES = [(), (0,), (1,), (3,), (2, 0, 3), (5, 7), (1, 2, 3, 4), (600_001,)]


def random_tensors(random, count):
    tensors = {}
    for i in range(count):
        dtype = TYPES[random.integers(len(TYPES))]
        shape = SHAPES[random.integers(len(SHAPES))]
        value = random.integers(0, 256, size=shape).astype(dtype)
        tensors[f"{'abcxyz'[random.integers(6)]}{i}/kernel"] = np.ascontiguousarray(value).reshape(shape)
    return tensors


def copy(binary, source, target):
    return subprocess.run([binary, source, target], capture_output=True, text=True)


def compare_copies(binary, folder, rounds):
    random = np.random.default_rng(7)
    for round_number in range(rounds):
        tensors = random_tensors(random, int(random.integers(0, 20)))
        source, target = folder / "in", folder / "out"
        safetensors.numpy.save_file(tensors, source)
        result = copy(binary, source, target)
        assert result.returncode == 0, result.stderr
        assert source.read_bytes() == target.read_bytes(), f"round {round_number}: the bytes differ"
        back = safetensors.numpy.load_file(target)
        assert back.keys() == tensors.keys()
        for name, value in tensors.items():
            assert back[name].dtype == value.dtype and back[name].shape == value.shape
            np.testing.assert_array_equal(back[name], value)
    return rounds


def compare_refusals(binary, folder):
    def file(header, data, length=None):
        text = header.encode()
        return struct.pack("<Q", len(text) if length is None else length) + text + data

    tensor = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
    bad = [
        b"",
        b"1234567",
        file("{}", b"", length=3),
        file("{}", b"", length=100_000_001),
        file("{}", b"", length=2**64 - 1),
        file("[]", b""),
        file("{", b""),
        file(json.dumps({"a": tensor}), b"1234567"),
        file(json.dumps({"a": tensor}), b"123456789"),
        file(json.dumps({"a": tensor | {"shape": [3]}}), b"12345678"),
        file(json.dumps({"a": tensor | {"shape": [-2]}}), b"12345678"),
        file(json.dumps({"a": tensor | {"shape": [2**62, 4]}}), b"12345678"),
        file(json.dumps({"a": tensor | {"dtype": "F33"}}), b"12345678"),
        file(json.dumps({"a": tensor | {"data_offsets": [8, 0]}}), b"12345678"),
        file(json.dumps({"a": tensor | {"data_offsets": [4, 12]}}), b"123412345678"),
        file(json.dumps({"a": tensor, "b": tensor}), b"12345678"),
        file(json.dumps({"a": tensor, "b": tensor | {"data_offsets": [12, 20]}}), b"12345678123412345678"),
        file(json.dumps({"__metadata__": {"a": 1}, "a": tensor}), b"12345678"),
    ]
    for i, contents in enumerate(bad):
        path = folder / f"bad{i}"
        path.write_bytes(contents)
        try:
            safetensors.numpy.load_file(path)
            raise AssertionError(f"the library accepts {contents!r}")
        except safetensors.SafetensorError:
            pass
        result = copy(binary, path, folder / "out")
        assert result.returncode == 65 and str(path) in result.stderr, (contents, result)
    return len(bad)


def main():
    binary = sys.argv[1]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        print(compare_copies(binary, folder, 200), "files copied to the same bytes")
        print(compare_refusals(binary, folder), "bad files refused by both")


if __name__ == "__main__":
    main()
