#!/usr/bin/env python3
"""make_ptx.py SOURCE.cu OUTPUT.ptx: compiles CUDA C to PTX with NVRTC.

NVRTC is looked for in CUDAGRAPH_NVRTC (the path of a libnvrtc), in the active Python's
`nvidia-cuda-nvrtc-cu12` package, and under CUDA_PATH. The PTX in this tree was made by the NVRTC of
CUDA 12.1, so that drivers from 12.1 on accept it.
"""
import ctypes
import glob
import os
import sys


def find_nvrtc():
    places = [os.environ.get("CUDAGRAPH_NVRTC", "")]
    for folder in sys.path:
        places += glob.glob(os.path.join(folder, "nvidia", "*", "lib", "libnvrtc.so*"))
    if "CUDA_PATH" in os.environ:
        places += glob.glob(os.path.join(os.environ["CUDA_PATH"], "lib64", "libnvrtc.so*"))
    for place in places:
        if place and os.path.exists(place):
            return ctypes.CDLL(place)
    sys.exit("make_ptx: no libnvrtc: pip install nvidia-cuda-nvrtc-cu12, or set CUDAGRAPH_NVRTC")


def text(get_size, get, program):
    size = ctypes.c_size_t()
    get_size(program, ctypes.byref(size))
    buffer = ctypes.create_string_buffer(size.value)
    get(program, buffer)
    return buffer.value.decode()


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    nvrtc = find_nvrtc()
    with open(sys.argv[1], "rb") as file:
        source = file.read()
    program = ctypes.c_void_p()
    name = os.path.basename(sys.argv[1]).encode()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, name, 0, None, None)
    options = (ctypes.c_char_p * 1)(b"--gpu-architecture=compute_75")
    status = nvrtc.nvrtcCompileProgram(program, 1, options)
    if status != 0:
        sys.exit(text(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program))
    with open(sys.argv[2], "w") as file:
        file.write(text(nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX, program))


if __name__ == "__main__":
    main()
