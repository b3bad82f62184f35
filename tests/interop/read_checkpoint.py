"""read_checkpoint.py FOLDER: checks a checkpoint and lists its tensors.

FOLDER is a checkpoint (ckpt-<step>) or a folder of them. Written from docs/checkpoint.md alone, with the safetensors
library of PyPI, so that our reader and writer are not the only ones that agree on the format.
"""

import json
import pathlib
import sys

import safetensors.numpy

DTYPES = {"float32": "float32", "float64": "float64", "float16": "float16", "bfloat16": "bfloat16", "int32": "int32",
          "int64": "int64", "uint8": "uint8"}


def _crc_table():
    table = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


_TABLE = _crc_table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ _TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def find(folder):
    """The checkpoint that is meant: the folder itself or the one that LATEST names."""
    folder = pathlib.Path(folder)
    if (folder / "manifest.json").exists():
        return folder
    return folder / (folder / "LATEST").read_text().strip()


def read_manifest(folder):
    manifest = json.loads((folder / "manifest.json").read_text())
    checksum = manifest.pop("manifest_crc32c")
    canonical = json.dumps(manifest, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert crc32c(canonical.encode()) == checksum, "the manifest is damaged"
    return manifest


def read(folder):
    """(manifest, {name: array}) of a checkpoint, everything checked."""
    folder = find(folder)
    manifest = read_manifest(folder)
    tensors = {}
    for shard in manifest["shards"]:
        path = folder / shard["file"]
        assert path.stat().st_size == shard["bytes"], f"{path}: wrong size"
        arrays = safetensors.numpy.load_file(path)
        assert arrays.keys() == {record["name"] for record in shard["tensors"]}, f"{path}: other tensors"
        for record in shard["tensors"]:
            array = arrays[record["name"]]
            assert str(array.dtype) == DTYPES[record["dtype"]], record
            assert list(array.shape) == record["shape"], record
            assert crc32c(array.tobytes()) == record["crc32c"], record
        tensors.update(arrays)
    return manifest, tensors


def main():
    manifest, tensors = read(sys.argv[1])
    print(f"step {manifest['step']}, optimizer {manifest['optimizer']}, {len(tensors)} tensors")
    for name, array in sorted(tensors.items()):
        print(f"{name} {array.dtype} {list(array.shape)}")


if __name__ == "__main__":
    main()
