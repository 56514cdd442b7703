#!/usr/bin/env python3
"""Makes the PTX of the kernels in this folder with NVRTC.

usage: generate.py LIBNVRTC INCLUDE_DIR TAG [FILE.cu ...]

Writes ptx/FILE.TAG.MODE.ptx for the modes default, debug (-G) and fast (--use_fast_math).
The folder of LIBNVRTC must be in LD_LIBRARY_PATH, for its builtins.
"""
import ctypes
import pathlib
import re
import sys

MODES = {"default": [], "debug": ["-G"], "fast": ["--use_fast_math"]}


def compile_ptx(nvrtc, include, source, options):
    program = ctypes.c_void_p()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernels.cu", 0, None, None)
    options = ["--gpu-architecture=compute_90", "-I" + include] + options
    array = (ctypes.c_char_p * len(options))(*[o.encode() for o in options])
    status = nvrtc.nvrtcCompileProgram(program, len(options), array)
    size = ctypes.c_size_t()
    if status != 0:
        nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetProgramLog(program, log)
        raise SystemExit(log.value.decode())
    nvrtc.nvrtcGetPTXSize(program, ctypes.byref(size))
    ptx = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetPTX(program, ptx)
    return ptx.value.decode()


def strip_debug_sections(ptx):
    """Debug sections only make the files large, and folders say where they were made; the rest of a -G
    build stays."""
    head, found, _ = ptx.partition("\n\t.section\t.debug_")
    kept = head + "\n" if found else ptx
    return re.sub(r'(\.file\s+\d+\s+")[^"]*/', r"\1", kept)


def main():
    library, include, tag, *files = sys.argv[1:]
    here = pathlib.Path(__file__).parent
    (here / "ptx").mkdir(exist_ok=True)
    nvrtc = ctypes.CDLL(library)
    for path in map(pathlib.Path, files) if files else sorted(here.glob("*.cu")):
        for mode, options in MODES.items():
            ptx = compile_ptx(nvrtc, include, path.read_text(), options)
            (here / "ptx" / f"{path.stem}.{tag}.{mode}.ptx").write_text(strip_debug_sections(ptx))


main()
