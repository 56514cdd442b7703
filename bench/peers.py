#!/usr/bin/env python3
"""peers.py PACKAGE: the measures of ocaml/work.ml with a Python package: cupy, pytorch or cuda.core.

Speaks as the other workers do: "ready ..." or "unavailable REASON" at first, then for each line
"MEASURE COUNT" the answer "NS 0 0", or "unsupported" for what the package does not offer. Scalar
arguments are made beforehand, which favours the package.
"""
import ctypes
import gc
import os
import sys
import time

WORDS = 256
BYTES = 4 * WORDS
PTX = os.path.join(os.path.dirname(os.path.abspath(__file__)), "kernels.ptx")


class Measure:
    """A call, or several parts of one, and what is done after a burst outside of the time."""

    def __init__(self, call, settle, parts=1):
        self.call, self.settle, self.parts = call, settle, parts

    def run(self, count):
        call = self.call
        for _ in range(count):
            call()

    def burst(self, count):
        self.run(max(1, count // 10))
        self.settle()
        gc.disable()
        start = time.perf_counter_ns()
        self.run(count)
        stop = time.perf_counter_ns()
        gc.enable()
        self.settle()
        return (stop - start) / (count * self.parts)


def scalars():
    import numpy as np

    return np.int32(0), np.int32(1), np.float32(2), np.float32(3), np.float64(4), np.float64(5), np.uint64(1)


def arguments(x, y):
    """Of the kernels with 1, 5 and 12 parameters."""
    n, m, a, c, d, e, stride = scalars()
    return {
        1: ("one", (y,)),
        5: ("five", (y, x, n, a, stride)),
        12: ("twelve", (y, x, x, x, n, m, a, c, d, e, stride, stride)),
    }


class CuPy:
    def __init__(self):
        import cupy
        import numpy as np

        self.cupy = cupy
        device = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
        self.description = f"CuPy {cupy.__version__}, {device}"
        self.stream = cupy.cuda.Stream(non_blocking=True)
        self.other = cupy.cuda.Stream(non_blocking=True)
        self.stream.use()
        self.module = cupy.RawModule(path=PTX)
        self.x = cupy.ones(WORDS, dtype=cupy.float32)
        self.y = cupy.ones(WORDS, dtype=cupy.float32)
        self.host = np.ones(WORDS, dtype=np.float32)
        self.event = cupy.cuda.Event(disable_timing=True)
        self.kernels = {
            parameters: (self.module.get_function(name), args)
            for parameters, (name, args) in arguments(self.x, self.y).items()
        }
        for parameters in self.kernels:  # loads their code, which a capture may not
            self.launch(parameters)
        self.wait()

    def wait(self):
        self.stream.synchronize()
        self.other.synchronize()

    def launch(self, parameters=5):
        kernel, args = self.kernels[parameters]
        kernel((1,), (32,), args)

    def graph(self, nodes):
        # The end of a capture instantiates as well, so neither can be measured alone.
        self.stream.begin_capture()
        for _ in range(nodes):
            self.launch()
        return self.stream.end_capture()

    def find(self, kind, size):
        stream, x, y, host = self.stream, self.x.data, self.y.data, self.host.ctypes.data
        simple = {
            "launch": lambda: self.launch(size),
            "event_record": lambda: self.event.record(stream),
            "event_pair": lambda: (self.event.record(stream), self.other.wait_event(self.event)),
            "h2d": lambda: y.copy_from_host_async(host, BYTES, stream),
            "d2h": lambda: y.copy_to_host_async(host, BYTES, stream),
            "d2d": lambda: y.copy_from_device_async(x, BYTES, stream),
            "memset": lambda: y.memset_async(0, BYTES, stream),
        }
        if kind in simple:
            return Measure(simple[kind], self.wait)
        if kind == "graph":
            graph = self.graph(size)
            return Measure(lambda: graph.launch(stream), self.wait)
        if kind == "replay":
            graph = self.graph(size)
            return Measure(lambda: (graph.launch(stream), stream.synchronize()), self.wait)
        if kind == "stream":
            return Measure(lambda: ([self.launch() for _ in range(size)], stream.synchronize()), self.wait)
        return None


class PyTorch:
    """It has no launch of a given kernel: the graphs are captured from launches by the driver."""

    def __init__(self):
        import torch

        if not torch.cuda.is_available():
            raise RuntimeError("PyTorch sees no GPU")
        self.torch = torch
        self.description = f"PyTorch {torch.__version__}, {torch.cuda.get_device_name(0)}"
        self.stream, self.other = torch.cuda.Stream(), torch.cuda.Stream()
        torch.cuda.set_stream(self.stream)
        self.x = torch.ones(WORDS, device="cuda")
        self.y = torch.ones(WORDS, device="cuda")
        self.host = torch.ones(WORDS)
        self.event = torch.cuda.Event()
        self.driver = ctypes.CDLL("libcuda.so.1")
        module, self.five = ctypes.c_void_p(), ctypes.c_void_p()
        with open(PTX, "rb") as file:
            self.check(self.driver.cuModuleLoadData(ctypes.byref(module), file.read() + b"\0"))
        self.check(self.driver.cuModuleGetFunction(ctypes.byref(self.five), module, b"five"))
        self.arguments = [
            ctypes.c_uint64(self.y.data_ptr()),
            ctypes.c_uint64(self.x.data_ptr()),
            ctypes.c_int(0),
            ctypes.c_float(2),
            ctypes.c_size_t(1),
        ]
        places = [ctypes.cast(ctypes.pointer(a), ctypes.c_void_p) for a in self.arguments]
        self.places = (ctypes.c_void_p * len(places))(*[p.value for p in places])
        self.launch()  # loads its code, which a capture may not
        self.wait()

    @staticmethod
    def check(status):
        if status != 0:
            raise RuntimeError(f"the driver answered {status}")

    def wait(self):
        self.stream.synchronize()
        self.other.synchronize()

    def launch(self):
        stream = ctypes.c_void_p(self.torch.cuda.current_stream().cuda_stream)
        self.check(self.driver.cuLaunchKernel(self.five, 1, 1, 1, 32, 1, 1, 0, stream, self.places, None))

    def graph(self, nodes):
        graph = self.torch.cuda.CUDAGraph()
        with self.torch.cuda.graph(graph):
            for _ in range(nodes):
                self.launch()
        return graph

    def find(self, kind, size):
        simple = {
            "event_record": lambda: self.event.record(self.stream),
            "event_pair": lambda: (self.event.record(self.stream), self.other.wait_event(self.event)),
            "h2d": lambda: self.y.copy_(self.host, non_blocking=True),
            "d2h": lambda: self.host.copy_(self.y, non_blocking=True),
            "d2d": lambda: self.y.copy_(self.x),
            "memset": lambda: self.y.zero_(),
        }
        if kind in simple:
            return Measure(simple[kind], self.wait)
        if kind == "graph":
            return Measure(self.graph(size).replay, self.wait)
        if kind == "replay":
            graph = self.graph(size)
            return Measure(lambda: (graph.replay(), self.stream.synchronize()), self.wait)
        return None


class CudaCore:
    def __init__(self):
        try:
            import cuda.core as core

            core.Device, core.ObjectCode, core.launch
        except (ImportError, AttributeError):
            import cuda.core.experimental as core
        import importlib.metadata

        self.core = core
        self.device = core.Device()
        self.device.set_current()
        version = importlib.metadata.version("cuda-core")
        self.description = f"cuda.core {version}, {self.device.name}"
        self.stream, self.other = self.device.create_stream(), self.device.create_stream()
        with open(PTX, "rb") as file:
            self.module = core.ObjectCode.from_ptx(file.read())
        self.x = self.device.allocate(BYTES, stream=self.stream)
        self.y = self.device.allocate(BYTES, stream=self.stream)
        self.event = self.device.create_event()
        self.config = core.LaunchConfig(grid=1, block=32)
        self.kernels = {
            parameters: (self.module.get_kernel(name), args)
            for parameters, (name, args) in arguments(self.x, self.y).items()
        }
        self.made = []
        for parameters in self.kernels:  # loads their code, which a capture may not
            self.launch(parameters)
        self.wait()

    def wait(self):
        self.stream.sync()
        self.other.sync()

    def launch(self, parameters=5):
        kernel, args = self.kernels[parameters]
        self.core.launch(self.stream, self.config, kernel, *args)

    def capture(self, nodes):
        builder = self.stream.create_graph_builder().begin_building(mode="thread_local")
        launch, config = self.core.launch, self.config
        kernel, args = self.kernels[5]
        for _ in range(nodes):
            launch(builder, config, kernel, *args)
        return builder.end_building()

    def close(self):
        for made in self.made:
            made.close()
        self.made.clear()

    def find(self, kind, size):
        stream = self.stream
        simple = {
            "launch": lambda: self.launch(size),
            "event_record": lambda: stream.record(self.event),
            "event_pair": lambda: (stream.record(self.event), self.other.wait(self.event)),
            "d2d": lambda: self.y.copy_from(self.x, stream=stream),
            "memset": lambda: self.y.fill(0, stream=stream),
        }
        if kind in simple:
            return Measure(simple[kind], self.wait)
        if kind == "graph":
            graph = self.capture(size).complete()
            return Measure(lambda: graph.launch(stream), self.wait)
        if kind == "replay":
            graph = self.capture(size).complete()
            return Measure(lambda: (graph.launch(stream), stream.sync()), self.wait)
        if kind == "stream":
            return Measure(lambda: ([self.launch() for _ in range(size)], stream.sync()), self.wait)
        if kind == "capture":
            return Measure(lambda: self.made.append(self.capture(size)), self.close, parts=size)
        if kind == "instantiate":
            builder = self.capture(size)
            return Measure(lambda: self.made.append(builder.complete()), self.close)
        return None


PACKAGES = {"cupy": CuPy, "pytorch": PyTorch, "cuda.core": CudaCore}


def split(name):
    """graph_10 is ("graph", 10); a name without a number has size 0."""
    kind, _, size = name.rpartition("_")
    return (kind, int(size)) if size.isdigit() else (name, 0)


def say(line):
    print(line, flush=True)


def one_line(error):
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}"[:200]


def main():
    if len(sys.argv) != 2 or sys.argv[1] not in PACKAGES:
        sys.exit(__doc__)
    label = sys.argv[1]
    try:
        peer = PACKAGES[label]()
    except Exception as error:  # whatever a package that is not whole may raise
        say(f"unavailable {one_line(error)}")
        return
    say(f"ready {peer.description}")
    measures = {}
    for line in sys.stdin:
        name, count = line.split()
        try:
            if name not in measures:
                measures[name] = None
                measures[name] = peer.find(*split(name))
            measure = measures[name]
            say("unsupported" if measure is None else f"{measure.burst(int(count)):.2f} 0 0")
        except Exception as error:
            print(f"{label}: {name}: {one_line(error)}", file=sys.stderr)
            measures[name] = None
            say("unsupported")


if __name__ == "__main__":
    main()
