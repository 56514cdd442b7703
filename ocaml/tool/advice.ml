(* How to mend what the driver and NVRTC say. *)

let container =
  "In a container, start it with the GPU (docker run --gpus all, with the NVIDIA \
   Container Toolkit on the host)."

let no_library =
  "Install the NVIDIA driver (on Debian: the package nvidia-driver; on Ubuntu: \
   ubuntu-drivers install). " ^ container
  ^ " Without a GPU, set CUDAGRAPH_DRIVER=sim: programs then run on the simulator."

let visible () =
  match Sys.getenv_opt "CUDA_VISIBLE_DEVICES" with
  | Some text ->
      Printf.sprintf "CUDA_VISIBLE_DEVICES=%s may hide the GPUs: unset it. " text
  | None -> ""

let of_simulator =
  "libcudagraph_sim.so is installed with this package, in lib/cudagraph: install the \
   package again, or set CUDAGRAPH_SIM to the file."

let of_path =
  "Set CUDAGRAPH_DRIVER, or --driver, to the path of a libcuda, to sim for the \
   simulator, or to system for the installed driver."

let of_driver choice { Failure.status; message = _ } =
  match status with
  | "CUDA_ERROR_SHARED_OBJECT_INIT_FAILED" -> (
      match choice with "system" -> no_library | "sim" -> of_simulator | _ -> of_path)
  | "CUDA_ERROR_STUB_LIBRARY" ->
      "This libcuda is the toolkit's stub, for linking only: take the folder 'stubs' out \
       of LD_LIBRARY_PATH."
  | "CUDA_ERROR_NOT_SUPPORTED" ->
      "Install a driver of CUDA 12.0 or newer: on Linux, NVIDIA driver 525.60 or newer."
  | "CUDA_ERROR_NO_DEVICE" | "CUDA_ERROR_INVALID_DEVICE" ->
      visible ()
      ^ "See whether nvidia-smi lists a GPU; if not, the GPU or its kernel module is \
         missing. " ^ container
  | "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH" ->
      "The kernel module and libcuda are of different driver versions: restart the \
       machine after an update of the driver; in a container, use the host's libcuda."
  | "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE" ->
      "A libcuda of CUDA's compatibility package does not fit this GPU: take the folder \
       'compat' out of LD_LIBRARY_PATH."
  | "CUDA_ERROR_SYSTEM_NOT_READY" ->
      "On machines with NVSwitch, start the service nvidia-fabricmanager."
  | "CUDA_ERROR_DEVICE_UNAVAILABLE" ->
      "Another process has the GPU for itself (compute mode 'exclusive'), or the GPU \
       needs a reset: see nvidia-smi."
  | "CUDA_ERROR_OUT_OF_MEMORY" -> "Other processes use the GPU's memory: see nvidia-smi."
  | "CUDA_ERROR_JIT_COMPILER_NOT_FOUND" ->
      "The driver's compiler, libnvidia-ptxjitcompiler.so.1, is missing: install it with \
       the driver; in a container, set NVIDIA_DRIVER_CAPABILITIES=compute,utility."
  | "CUDA_ERROR_UNKNOWN" | "CUDA_ERROR_OPERATING_SYSTEM" ->
      "The kernel module may not be loaded: run nvidia-modprobe -u -c 0 as root, or \
       restart the machine."
  | _ ->
      "See whether nvidia-smi works; if not, install the driver again or restart the \
       machine."

let of_compiler { Failure.status; message = _ } =
  match status with
  | "NVRTC_NOT_FOUND" ->
      "Only programs that compile CUDA C need it: pip install \
       'nvidia-cuda-nvrtc==13.0.*' 'nvidia-cuda-runtime==13.0.*', or for a driver of \
       CUDA 12 nvidia-cuda-nvrtc-cu12 and nvidia-cuda-runtime-cu12."
  | "CUDA_ERROR_UNSUPPORTED_PTX_VERSION" ->
      "This NVRTC is newer than the driver: install an older one (for a driver of CUDA \
       12: pip install nvidia-cuda-nvrtc-cu12), update the driver, or compile to a \
       CUBIN."
  | _ -> "Install NVRTC again, or set CUDAGRAPH_NVRTC to the path of another libnvrtc.so."

let no_headers =
  "Only programs that include CUDA's headers, as cuda_fp16.h, need them: pip install \
   nvidia-cuda-runtime (or nvidia-cuda-runtime-cu12), of NVRTC's version."
[@@ocamlformat "disable"]
