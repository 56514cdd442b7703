(* What the code in the guides takes for granted; guides.mld shows it. *)
open Cuda

let () =
  Cuda.init ();
  Context.set_current (Context.get_primary (Device.get ~ordinal:0))

let n = 1024
let floats value = Bigarray.(Genarray.init float32 c_layout [| n |] (fun _ -> value))
let on_device value = Deviceptr.alloc_and_memcpy (floats value)

let first ptr =
  let host = floats 0.0 in
  Deviceptr.memcpy_D_to_H ~dst:host ~src:ptr ();
  Bigarray.Genarray.get host [| 0 |]

let kernels = Module.load_file "../examples/saxpy.ptx"

let launch name stream arguments =
  Stream.launch_kernel
    (Module.get_function kernels ~name)
    ~grid_dim_x:(n / 256) ~block_dim_x:256 ~shared_mem_bytes:0 stream arguments

let increment stream y = launch "increment" stream Stream.[ Tensor y; Int n ]

(* Addresses are others in each run. *)
let hide_addresses = Str.global_replace (Str.regexp "0x[0-9a-f]+") "0x..."

let message f =
  try f ()
  with error ->
    Format.printf "@[%a@]@." Format.pp_print_text
      (hide_addresses (Printexc.to_string error))
