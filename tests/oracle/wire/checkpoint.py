"""Checkpoints as docs/checkpoint.md describes them: written to start from given values, read to see slots."""
import array
import json
import pathlib
import struct

_NAMES = {"float32": "F32", "float64": "F64"}
_CODES = {"F32": "f", "F64": "d"}


def _make_table():
    table = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


_TABLE = _make_table()


def _crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = (crc >> 8) ^ _TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def write(folder, optimizer, tensors):
    """A checkpoint of step 0 with one shard. `tensors`: {name: (dtype, shape, flat values)}."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True)
    header, records, data = {}, [], b""
    # Wider types first, then by name.
    for name, (dtype, shape, values) in sorted(tensors.items(), key=lambda item: (item[1][0] != "float64", item[0])):
        piece = array.array(_CODES[_NAMES[dtype]], values).tobytes()
        offsets = [len(data), len(data) + len(piece)]
        header[name] = {"dtype": _NAMES[dtype], "shape": shape, "data_offsets": offsets}
        records.append({"name": name, "dtype": dtype, "shape": shape, "crc32c": _crc32c(piece)})
        data += piece
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    contents = struct.pack("<Q", len(text)) + text + data
    (folder / "shard-0-of-1.safetensors").write_bytes(contents)
    manifest = {
        "format": "lockstep-checkpoint", "format_version": 1, "step": 0, "epoch": 0, "seed": 0,
        "lockstep_version": "", "optimizer": optimizer, "model": "", "job": "", "cluster": "",
        "shards": [{"file": "shard-0-of-1.safetensors", "bytes": len(contents), "tensors": records}],
    }
    canonical = json.dumps(manifest, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    manifest["manifest_crc32c"] = _crc32c(canonical.encode())
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def read(path):
    """{name: (shape, flat values)} of a shard file."""
    contents = pathlib.Path(path).read_bytes()
    (length,) = struct.unpack_from("<Q", contents)
    tensors = {}
    for name, entry in json.loads(contents[8:8 + length]).items():
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        tensors[name] = (entry["shape"], array.array(_CODES[entry["dtype"]], contents[begin:end]).tolist())
    return tensors
