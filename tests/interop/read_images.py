"""Reads the picture and the data that `predict` wrote of the same images, with Python's own modules.

    read_images.py FOLDER SCALE

FOLDER has grid.png, data.idx and g_image, which `predict --json` wrote. Prints JSON: how many images, the largest
difference of the data from the outputs, and how many pixels of the picture are not those of the outputs.
"""

import json
import math
import pathlib
import struct
import sys
import zlib

GAP = 2


def chunks(data):
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at = 8
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        body = data[at + 8:at + 8 + length]
        (crc,) = struct.unpack(">I", data[at + 8 + length:at + 12 + length])
        assert crc == zlib.crc32(kind + body), kind
        yield kind, body
        at += 12 + length


def read_png(path):
    """Lines of grey pixels."""
    parts = list(chunks(path.read_bytes()))
    assert [kind for kind, _ in parts] == [b"IHDR", b"IDAT", b"IEND"]
    width, height, depth, color, *methods = struct.unpack(">IIBBBBB", parts[0][1])
    assert (depth, color, methods) == (8, 0, [0, 0, 0])
    data = zlib.decompress(parts[1][1])
    assert len(data) == height * (width + 1)
    lines = [data[y * (width + 1):(y + 1) * (width + 1)] for y in range(height)]
    assert all(line[0] == 0 for line in lines)
    return [line[1:] for line in lines]


def read_idx(path):
    data = path.read_bytes()
    assert data[:4] == bytes([0, 0, 13, 4])
    count, height, width, channels = struct.unpack(">4I", data[4:20])
    assert channels == 1
    return count, height, width, struct.unpack(f">{count * height * width}f", data[20:])


def main():
    folder, scale = pathlib.Path(sys.argv[1]), float(sys.argv[2])
    outputs = [p["outputs"] for p in json.loads((folder / "g_image").read_text())["predictions"]]
    count, height, width, values = read_idx(folder / "data.idx")
    flat = [y for image in outputs for y in image]
    assert len(values) == len(flat)
    lines = read_png(folder / "grid.png")
    zoom = 32 // height
    columns = math.isqrt(count - 1) + 1
    wrong = 0
    for t, image in enumerate(outputs):
        top = GAP + t // columns * (height * zoom + GAP)
        left = GAP + t % columns * (width * zoom + GAP)
        for y in range(height * zoom):
            for x in range(width * zoom):
                # Rounding of halves may differ.
                expected = image[y // zoom * width + x // zoom] * 255
                wrong += abs(lines[top + y][left + x] - expected) > 0.5001
    difference = max(abs(x * scale - y) for x, y in zip(values, flat))
    print(json.dumps({"images": count, "idx": difference, "png": wrong}))


if __name__ == "__main__":
    main()
