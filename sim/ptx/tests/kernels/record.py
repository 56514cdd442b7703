#!/usr/bin/env python3
"""Runs every kernel of ptx/ on a GPU and writes what it answered to expected/.

usage: record.py [OUTPUT_DIR]

Needs libcuda and a GPU of compute capability 9.0, and nothing else. The inputs are those of
tests/corpus.rs. Equal answers are stored once; index.tsv says which file belongs to which kernel,
NVRTC version and mode. A file that the driver refuses is named, with what it says, and left out.
"""
import ctypes
import hashlib
import pathlib
import re
import struct
import sys

THREADS, BLOCK, WORDS = 256, 128, 16
SPECIAL = [
    0, 1, 2, 0xFFFFFFFF, 0x7FFFFFFF, 0x80000000, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001,
    0x00800000, 0x007FFFFF, 0x3F800000, 0xBF800000, 0x7F7FFFFF, 0x00000010, 0x7FF00000, 0x7FF80000,
    0x3FF00000, 0x7C007C00, 0x7E01FC00, 0x00010001, 0x03FF8400, 0x7BFF3C00,
]

# On a GPU, threads of a warp that wait for each other outside of the loop may hang.
SKIPPED = {"warp_relay"}


def splitmix(index):
    mask = (1 << 64) - 1
    z = (index + 1) * 0x9E3779B97F4A7C15 & mask
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & mask
    z = (z ^ z >> 27) * 0x94D049BB133111EB & mask
    return z ^ z >> 31


def word(index):
    z = splitmix(index)
    if (z >> 40) & 7 == 0:
        return SPECIAL[(z >> 44) % len(SPECIAL)]
    return z & 0xFFFFFFFF


class Cuda:
    def __init__(self):
        self.lib = ctypes.CDLL("libcuda.so.1")
        self.call("cuInit", 0)
        device = ctypes.c_int()
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)

    def call(self, name, *args):
        status = getattr(self.lib, name)(*args)
        if status != 0:
            raise RuntimeError(f"{name}: error {status}")

    def load(self, ptx):
        module = ctypes.c_void_p()
        # The debug sections were left out of the files, and ptxas insists on them for this target.
        ptx = ptx.replace(b", debug", b"")
        log = ctypes.create_string_buffer(4096)
        # CU_JIT_ERROR_LOG_BUFFER and its size.
        names = (ctypes.c_int * 2)(5, 6)
        values = (ctypes.c_void_p * 2)(ctypes.addressof(log), len(log))
        status = self.lib.cuModuleLoadDataEx(ctypes.byref(module), ptx + b"\0", 2, names, values)
        if status != 0:
            raise RuntimeError(f"cuModuleLoadDataEx: error {status}\n{log.value.decode()}")
        return module

    def run(self, module, name, data):
        function = ctypes.c_void_p()
        self.call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
        size = len(data)
        pointers = []
        for _ in range(2):
            pointer = ctypes.c_uint64()
            self.call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(size))
            pointers.append(pointer)
        self.call("cuMemcpyHtoD_v2", pointers[0], data, ctypes.c_size_t(size))
        self.call("cuMemsetD8_v2", pointers[1], ctypes.c_ubyte(0), ctypes.c_size_t(size))
        n = ctypes.c_int(THREADS)
        args = (ctypes.c_void_p * 3)(*[ctypes.addressof(x) for x in (*pointers, n)])
        grid = THREADS // BLOCK
        self.call("cuLaunchKernel", function, grid, 1, 1, BLOCK, 1, 1, BLOCK * 4, None, args, None)
        self.call("cuCtxSynchronize")
        answer = ctypes.create_string_buffer(size)
        self.call("cuMemcpyDtoH_v2", answer, pointers[1], ctypes.c_size_t(size))
        for pointer in pointers:
            self.call("cuMemFree_v2", pointer)
        return answer.raw


def main():
    here = pathlib.Path(__file__).parent
    output = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else here / "expected"
    output.mkdir(parents=True, exist_ok=True)
    data = struct.pack(f"<{THREADS * WORDS}I", *[word(i) for i in range(THREADS * WORDS)])
    cuda, index, refused = Cuda(), [], []
    for path in sorted((here / "ptx").glob("*.ptx")):
        stem, *tag, mode = path.name.removesuffix(".ptx").split(".")
        ptx = path.read_bytes()
        try:
            module = cuda.load(ptx)
        except RuntimeError as error:
            refused.append(path.name)
            print(f"{path.name}: {error}", flush=True)
            continue
        for name in re.findall(r"\.entry (\w+)\(", ptx.decode()):
            if name in SKIPPED:
                continue
            print(name, mode, flush=True)
            answer = cuda.run(module, name, data)
            file = f"{name}.{hashlib.sha256(answer).hexdigest()[:8]}.bin"
            (output / file).write_bytes(answer)
            index.append(f"{name}\t{'.'.join(tag)}\t{mode}\t{file}\n")
        cuda.call("cuModuleUnload", module)
    (output / "index.tsv").write_text("".join(sorted(index)))
    print(f"{len(index)} answers, {len(refused)} files refused: {' '.join(refused)}")


main()
