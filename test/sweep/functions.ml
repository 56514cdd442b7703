(* What the driver may answer to each function that the library calls. *)

(* The kind of object that stays when the driver refuses to release one. What another library's graph
   keeps for us stays along with it. *)
let releases =
  [
    ("cuMemFree_v2", [ "memory"; "async" ]);
    ("cuMemFreeAsync", [ "memory"; "async" ]);
    ("cuModuleUnload", [ "module" ]);
    ("cuStreamDestroy_v2", [ "stream" ]);
    ("cuEventDestroy_v2", [ "event" ]);
    ("cuGraphDestroy", [ "graph" ]);
    ("cuGraphExecDestroy", [ "exec" ]);
    ("cuCtxDestroy_v2", [ "context" ]);
    ("cuDevicePrimaryCtxRelease_v2", [ "context" ]);
  ]

let memory = [ "OUT_OF_MEMORY"; "UNKNOWN" ]
let launch = [ "LAUNCH_OUT_OF_RESOURCES"; "UNKNOWN" ]
let waiting = [ "LAUNCH_FAILED"; "UNKNOWN" ]
let query = [ "NOT_READY"; "LAUNCH_FAILED" ]
let other = [ "UNKNOWN" ]

let all =
  List.map (fun (name, _) -> (name, other)) releases
  @ [
      ("cuMemAlloc_v2", memory);
      ("cuMemAllocManaged", memory);
      ("cuMemAllocAsync", memory);
      ("cuModuleLoadDataEx", memory);
      ("cuStreamCreateWithPriority", memory);
      ("cuEventCreate", memory);
      ("cuGraphInstantiateWithFlags", memory);
      ("cuCtxCreate_v2", memory);
      ("cuDevicePrimaryCtxRetain", memory);
      ("cuLaunchKernel", launch);
      ("cuGraphLaunch", launch);
      ("cuStreamSynchronize", waiting);
      ("cuCtxSynchronize", waiting);
      ("cuEventSynchronize", waiting);
      ("cuStreamQuery", query);
      ("cuEventQuery", query);
      ("cuStreamBeginCapture_v2", other);
      ("cuStreamEndCapture", [ "STREAM_CAPTURE_INVALIDATED"; "UNKNOWN" ]);
      ("cuStreamIsCapturing", other);
      ("cuStreamGetCaptureInfo_v2", other);
      ("cuThreadExchangeStreamCaptureMode", other);
      ("cuGraphGetNodes", other);
      ("cuStreamWaitEvent", [ "STREAM_CAPTURE_ISOLATION"; "UNKNOWN" ]);
      ("cuEventRecordWithFlags", other);
      ("cuEventRecord", other);
      ("cuEventElapsedTime", [ "NOT_READY"; "UNKNOWN" ]);
      ("cuStreamGetId", other);
      ("cuStreamGetCtx", other);
      ("cuStreamGetFlags", other);
      ("cuUserObjectCreate", memory);
      ("cuGraphRetainUserObject", memory);
      ("cuUserObjectRelease", other);
      ("cuStreamAttachMemAsync", other);
      ("cuMemcpyHtoD_v2", waiting);
      ("cuMemcpyDtoH_v2", waiting);
      ("cuMemcpyDtoD_v2", waiting);
      ("cuMemcpyPeer", waiting);
      ("cuMemcpyHtoDAsync_v2", other);
      ("cuMemcpyDtoHAsync_v2", other);
      ("cuMemcpyDtoDAsync_v2", other);
      ("cuMemcpyPeerAsync", other);
      ("cuMemsetD8_v2", other);
      ("cuMemsetD16_v2", other);
      ("cuMemsetD32_v2", other);
      ("cuMemsetD8Async", other);
      ("cuMemsetD16Async", other);
      ("cuMemsetD32Async", other);
      ("cuModuleGetFunction", [ "NOT_FOUND"; "UNKNOWN" ]);
      ("cuModuleGetGlobal_v2", [ "NOT_FOUND"; "UNKNOWN" ]);
      ("cuFuncGetAttribute", other);
      ("cuFuncSetAttribute", other);
      ("cuFuncGetParamInfo", other);
      ("cuOccupancyMaxActiveBlocksPerMultiprocessor", other);
      ("cuOccupancyMaxPotentialBlockSize", other);
      ("cuPointerGetAttribute", other);
      ("cuCtxGetCurrent", other);
      ("cuCtxSetCurrent", other);
      ("cuCtxPushCurrent_v2", other);
      ("cuCtxPopCurrent_v2", other);
      ("cuCtxGetDevice", other);
      ("cuCtxGetFlags", other);
      ("cuCtxGetLimit", other);
      ("cuCtxSetLimit", other);
      ("cuMemGetInfo_v2", other);
      ("cuDeviceGet", other);
      ("cuDeviceGetCount", other);
      ("cuDeviceGetName", other);
      ("cuDeviceGetAttribute", other);
      ("cuDeviceTotalMem_v2", other);
      ("cuDevicePrimaryCtxReset_v2", other);
      ("cuDriverGetVersion", other);
    ]
