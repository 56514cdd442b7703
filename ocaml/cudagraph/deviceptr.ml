type t = Raw.deviceptr
type region = { base : t; offset_bytes : int }

let offset base ~bytes = { base; offset_bytes = bytes }
let region_of base = { base; offset_bytes = 0 }
let string_of ptr = Printf.sprintf "%nx" (Raw.ptr_address ptr)

let sexp_of_t ptr =
  Sexplib0.Sexp.List
    [
      List [ Atom "ptr"; Atom (Status.pp_address (Raw.ptr_address ptr)) ];
      List [ Atom "bytes"; Atom (string_of_int (Raw.ptr_size ptr)) ];
      List [ Atom "freed"; Atom (string_of_bool (Raw.ptr_is_freed ptr)) ];
    ]

let equal a b = Nativeint.equal (Raw.ptr_address a) (Raw.ptr_address b)
let hash ptr = Nativeint.to_int (Raw.ptr_address ptr)

let mem_alloc ~size_in_bytes =
  Status.get_memory "Cuda.Deviceptr.mem_alloc" "cu_mem_alloc" (fun () ->
      Raw.mem_alloc size_in_bytes)

let mem_free ptr = Status.check "Cuda.Deviceptr.mem_free" "cu_mem_free" (Raw.mem_free ptr)
let address_of_ptr ptr = Ctypes.raw_address_of_ptr ptr

let memcpy_H_to_D_unsafe ~dst ~src ~size_in_bytes =
  Status.check "Cuda.Deviceptr.memcpy_H_to_D_unsafe" "cu_memcpy_H_to_D"
    (Raw.h2d_unsafe dst (address_of_ptr src) size_in_bytes)

let memcpy_H_to_D ?host_offset ?length ?(dst_offset = 0) ~dst ~src () =
  let where = "Cuda.Deviceptr.memcpy_H_to_D" in
  let from, bytes =
    Host.interval ~where ~name:"src" ?host_offset ?length ~reserved:dst_offset src
  in
  Status.check where "cu_memcpy_H_to_D" (Raw.h2d dst dst_offset src from bytes)

let alloc_and_memcpy src =
  let dst = mem_alloc ~size_in_bytes:(Host.elements src * Host.element_bytes src) in
  memcpy_H_to_D ~dst ~src ();
  dst

let memcpy_D_to_H_unsafe ~dst ~src ~size_in_bytes =
  Status.check "Cuda.Deviceptr.memcpy_D_to_H_unsafe" "cu_memcpy_D_to_H"
    (Raw.d2h_unsafe (address_of_ptr dst) src size_in_bytes)

let memcpy_D_to_H ?host_offset ?length ?(src_offset = 0) ~dst ~src () =
  let where = "Cuda.Deviceptr.memcpy_D_to_H" in
  let into, bytes =
    Host.interval ~where ~name:"dst" ?host_offset ?length ~reserved:src_offset dst
  in
  Status.check where "cu_memcpy_D_to_H" (Raw.d2h dst into src src_offset bytes)

let memcpy_D_to_D ?kind ?length ?size_in_bytes ?(dst_offset = 0) ?(src_offset = 0) ~dst
    ~src () =
  let where = "Cuda.Deviceptr.memcpy_D_to_D" in
  let bytes = Host.device_bytes ~where ?kind ?length ?size_in_bytes () in
  Status.check where "cu_memcpy_D_to_D" (Raw.d2d dst dst_offset src src_offset bytes)

let memcpy_peer ?kind ?length ?size_in_bytes ?(dst_offset = 0) ?(src_offset = 0) ~dst
    ~dst_ctx ~src ~src_ctx () =
  let where = "Cuda.Deviceptr.memcpy_peer" in
  let bytes = Host.device_bytes ~where ?kind ?length ?size_in_bytes () in
  Status.check where "cu_memcpy_peer"
    (Raw.peer
       { memory = dst; offset = dst_offset; context = dst_ctx }
       { memory = src; offset = src_offset; context = src_ctx }
       bytes)

let memset_d8 ?(offset = 0) ptr value ~length =
  Status.check "Cuda.Deviceptr.memset_d8" "cu_memset_d8"
    (Raw.memset ptr offset 1 (Unsigned.UChar.to_int value) length)

let memset_d16 ?(offset = 0) ptr value ~length =
  Status.check "Cuda.Deviceptr.memset_d16" "cu_memset_d16"
    (Raw.memset ptr offset 2 (Unsigned.UShort.to_int value) length)

let memset_d32 ?(offset = 0) ptr value ~length =
  Status.check "Cuda.Deviceptr.memset_d32" "cu_memset_d32"
    (Raw.memset ptr offset 4 (Unsigned.UInt32.to_int value) length)

let allocation_size = Raw.ptr_size

(* CUmemAttach_flags *)
let mem_alloc_managed ?(only_host = false) ~size_in_bytes () =
  Status.get_memory "Cuda.Deviceptr.mem_alloc_managed" "cu_mem_alloc_managed" (fun () ->
      Raw.mem_alloc_managed size_in_bytes (if only_host then 2 else 1))
