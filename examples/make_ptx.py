#!/usr/bin/env python3
"""make_ptx.py SOURCE.cu OUTPUT.ptx: compiles CUDA C to PTX with NVRTC.

NVRTC decides the version of PTX, and a driver refuses a newer version than its own. The PTX in this tree
is of version 8.0, made by the NVRTC of CUDA 12.0, so that every driver from CUDA 12.0 on takes it:

    pip install nvidia-cuda-nvrtc-cu12==12.0.140

NVRTC is taken from CUDAGRAPH_NVRTC (the path of a libnvrtc) if that is set, else from the active Python's
package as above, else from under CUDA_PATH.
"""
import ctypes
import glob
import os
import sys

WANTED = (12, 0)


def find_nvrtc():
    chosen = os.environ.get("CUDAGRAPH_NVRTC")
    if chosen:
        if not os.path.exists(chosen):
            sys.exit(f"make_ptx: CUDAGRAPH_NVRTC={chosen}: there is no such file")
        return chosen
    places = []
    for folder in sys.path:
        places += glob.glob(os.path.join(folder, "nvidia", "*", "lib", "libnvrtc.so*"))
    if "CUDA_PATH" in os.environ:
        places += glob.glob(os.path.join(os.environ["CUDA_PATH"], "lib64", "libnvrtc.so*"))
    if not places:
        sys.exit("make_ptx: no libnvrtc: pip install nvidia-cuda-nvrtc-cu12==12.0.140, or set CUDAGRAPH_NVRTC")
    return places[0]


def load_nvrtc():
    path = find_nvrtc()
    try:
        nvrtc = ctypes.CDLL(path)
    except OSError as error:
        sys.exit(f"make_ptx: {path} cannot be loaded: {error}")
    nvrtc.nvrtcGetErrorString.restype = ctypes.c_char_p
    major, minor = ctypes.c_int(), ctypes.c_int()
    check(nvrtc, nvrtc.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)))
    if (major.value, minor.value) != WANTED:
        print(
            f"make_ptx: {path} is NVRTC {major.value}.{minor.value}, not 12.0: "
            "drivers older than that will refuse the PTX",
            file=sys.stderr,
        )
    return nvrtc


def check(nvrtc, status):
    if status != 0:
        sys.exit("make_ptx: NVRTC: " + nvrtc.nvrtcGetErrorString(status).decode())


def text(nvrtc, get_size, get, program):
    size = ctypes.c_size_t()
    check(nvrtc, get_size(program, ctypes.byref(size)))
    buffer = ctypes.create_string_buffer(size.value)
    check(nvrtc, get(program, buffer))
    return buffer.value.decode()


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    source_path, output_path = sys.argv[1:]
    try:
        with open(source_path, "rb") as file:
            source = file.read()
    except OSError as error:
        sys.exit(f"make_ptx: {error}")
    nvrtc = load_nvrtc()
    program = ctypes.c_void_p()
    name = os.path.basename(source_path).encode()
    check(nvrtc, nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, name, 0, None, None))
    options = (ctypes.c_char_p * 1)(b"--gpu-architecture=compute_75")
    status = nvrtc.nvrtcCompileProgram(program, 1, options)
    if status != 0:
        sys.stderr.write(text(nvrtc, nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program))
        check(nvrtc, status)
    ptx = text(nvrtc, nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX, program)
    try:
        with open(output_path, "w") as file:
            file.write(ptx)
    except OSError as error:
        sys.exit(f"make_ptx: {error}")


if __name__ == "__main__":
    main()
