(* Wrong copies and fills, at once (Deviceptr) and on a stream (Stream): the same rows for both. *)

open Cuda
open Support
open Table

type host = (int32, Bigarray.int32_elt, Bigarray.c_layout) Bigarray.Genarray.t

(* The functions of one of the two modules. *)
type functions = {
  in_module : string;
  suffix : string;  (** of the driver's functions *)
  h_to_d :
    ?host_offset:int ->
    ?length:int ->
    ?dst_offset:int ->
    dst:Deviceptr.t ->
    src:host ->
    unit ->
    unit;
  d_to_h :
    ?host_offset:int ->
    ?length:int ->
    ?src_offset:int ->
    dst:host ->
    src:Deviceptr.t ->
    unit ->
    unit;
  h_to_d_unsafe : dst:Deviceptr.t -> src:unit Ctypes.ptr -> size_in_bytes:int -> unit;
  d_to_h_unsafe : dst:unit Ctypes.ptr -> src:Deviceptr.t -> size_in_bytes:int -> unit;
  d_to_d :
    ?kind:(int32, Bigarray.int32_elt) Bigarray.kind ->
    ?length:int ->
    ?size_in_bytes:int ->
    ?dst_offset:int ->
    ?src_offset:int ->
    dst:Deviceptr.t ->
    src:Deviceptr.t ->
    unit ->
    unit;
  peer :
    ?kind:(int32, Bigarray.int32_elt) Bigarray.kind ->
    ?length:int ->
    ?size_in_bytes:int ->
    ?dst_offset:int ->
    ?src_offset:int ->
    dst:Deviceptr.t ->
    dst_ctx:Context.t ->
    src:Deviceptr.t ->
    src_ctx:Context.t ->
    unit ->
    unit;
  d8 : ?offset:int -> Deviceptr.t -> Unsigned.uchar -> length:int -> unit;
  d16 : ?offset:int -> Deviceptr.t -> Unsigned.ushort -> length:int -> unit;
  d32 : ?offset:int -> Deviceptr.t -> Unsigned.uint32 -> length:int -> unit;
}

let at_once =
  {
    in_module = "Deviceptr";
    suffix = "";
    h_to_d = Deviceptr.memcpy_H_to_D;
    d_to_h = Deviceptr.memcpy_D_to_H;
    h_to_d_unsafe = Deviceptr.memcpy_H_to_D_unsafe;
    d_to_h_unsafe = Deviceptr.memcpy_D_to_H_unsafe;
    d_to_d = Deviceptr.memcpy_D_to_D;
    peer = Deviceptr.memcpy_peer;
    d8 = Deviceptr.memset_d8;
    d16 = Deviceptr.memset_d16;
    d32 = Deviceptr.memset_d32;
  }

let on s =
  {
    in_module = "Stream";
    suffix = "_async";
    h_to_d =
      (fun ?host_offset ?length ?dst_offset ~dst ~src () ->
        Stream.memcpy_H_to_D ?host_offset ?length ?dst_offset ~dst ~src s);
    d_to_h =
      (fun ?host_offset ?length ?src_offset ~dst ~src () ->
        Stream.memcpy_D_to_H ?host_offset ?length ?src_offset ~dst ~src s);
    h_to_d_unsafe =
      (fun ~dst ~src ~size_in_bytes ->
        Stream.memcpy_H_to_D_unsafe ~dst ~src ~size_in_bytes s);
    d_to_h_unsafe =
      (fun ~dst ~src ~size_in_bytes ->
        Stream.memcpy_D_to_H_unsafe ~dst ~src ~size_in_bytes s);
    d_to_d =
      (fun ?kind ?length ?size_in_bytes ?dst_offset ?src_offset ~dst ~src () ->
        Stream.memcpy_D_to_D ?kind ?length ?size_in_bytes ?dst_offset ?src_offset ~dst
          ~src s);
    peer =
      (fun ?kind
        ?length
        ?size_in_bytes
        ?dst_offset
        ?src_offset
        ~dst
        ~dst_ctx
        ~src
        ~src_ctx
        ()
      ->
        Stream.memcpy_peer ?kind ?length ?size_in_bytes ?dst_offset ?src_offset ~dst
          ~dst_ctx ~src ~src_ctx s);
    d8 = (fun ?offset ptr value ~length -> Stream.memset_d8 ?offset ptr value ~length s);
    d16 = (fun ?offset ptr value ~length -> Stream.memset_d16 ?offset ptr value ~length s);
    d32 = (fun ?offset ptr value ~length -> Stream.memset_d32 ?offset ptr value ~length s);
  }

let freed_ptr () =
  let ptr = device_ints 4 in
  Deviceptr.mem_free ptr;
  ptr

let number = string_of_int

(* All memory here has 16 bytes, and all bigarrays 8 elements of 4 bytes. *)
let of_bigarrays f =
  let ptr = device_ints 4 and host = ints 8 in
  let freed = freed_ptr () in
  let down = f.in_module ^ ".memcpy_H_to_D" and up = f.in_module ^ ".memcpy_D_to_H" in
  let both wrong ending ?host_offset ?length ?offset ?(ptr = ptr) () =
    [
      row down wrong (ending "src" "dst") (fun () ->
          f.h_to_d ?host_offset ?length ?dst_offset:offset ~dst:ptr ~src:host ());
      row up wrong (ending "dst" "src") (fun () ->
          f.d_to_h ?host_offset ?length ?src_offset:offset ~dst:host ~src:ptr ());
    ]
  in
  let host_offset n =
    both
      ("host_offset " ^ number n)
      (fun host _ -> invalid [ "host_offset " ^ number n; host; "8 elements" ])
      ~host_offset:n ()
  and length n =
    both
      ("length " ^ number n)
      (fun host _ -> invalid [ "length " ^ number n; host; "8 elements" ])
      ~length:n ()
  and offset n =
    both
      ("offset " ^ number n)
      (fun _ device -> invalid [ device; "offset " ^ number n; "4 bytes"; "16 bytes" ])
      ~offset:n ~length:1 ()
  and bare_offset n =
    both
      ("offset " ^ number n ^ " alone")
      (fun _ _ -> invalid [ "offset"; number n; "bytes" ])
      ~offset:n ()
  in
  List.concat
    [
      List.concat_map host_offset [ -1; 9; min_int; max_int ];
      List.concat_map length [ -1; 9; min_int; max_int ];
      List.concat_map offset [ -1; 13; 16; min_int; max_int ];
      List.concat_map bare_offset [ -1; 33; min_int; max_int ];
      both "the whole bigarray does not fit"
        (fun _ device -> invalid [ device; "32 bytes"; "16 bytes" ])
        ();
      both "freed memory"
        (fun _ device -> invalid [ device; "freed" ])
        ~length:1 ~ptr:freed ();
      both "freed memory and nothing to copy"
        (fun _ device -> invalid [ device; "freed" ])
        ~length:0 ~ptr:freed ();
      both "nothing to copy" (fun _ _ -> works) ~length:0 ~host_offset:8 ~offset:16 ();
    ]

let of_addresses f =
  let ptr = device_ints 4 and freed = freed_ptr () in
  let down = f.in_module ^ ".memcpy_H_to_D_unsafe" in
  let up = f.in_module ^ ".memcpy_D_to_H_unsafe" in
  let host = Ctypes.(to_voidp (CArray.start (CArray.make int32_t 8))) in
  let both wrong ending ?(ptr = ptr) ?(host = host) size_in_bytes =
    [
      row down wrong (ending "src" "dst") (fun () ->
          f.h_to_d_unsafe ~dst:ptr ~src:host ~size_in_bytes);
      row up wrong (ending "dst" "src") (fun () ->
          f.d_to_h_unsafe ~dst:host ~src:ptr ~size_in_bytes);
    ]
  in
  let negative n =
    both
      ("size " ^ number n)
      (fun _ _ -> invalid [ "size_in_bytes " ^ number n; "negative" ])
      n
  and large n =
    both
      ("size " ^ number n)
      (fun _ device -> invalid [ device; number n ^ " bytes"; "16 bytes" ])
      n
  in
  List.concat
    [
      List.concat_map negative [ -1; min_int ];
      List.concat_map large [ 17; max_int ];
      both "freed memory" (fun _ device -> invalid [ device; "freed" ]) ~ptr:freed 4;
      both "the address 0" (fun host _ -> invalid [ host; "NULL" ]) ~host:Ctypes.null 4;
      both "nothing at the address 0" (fun _ _ -> works) ~host:Ctypes.null 0;
    ]

(* Between two blocks of device memory, by [memcpy_D_to_D] and [memcpy_peer]. *)
let on_device f ~other =
  let ptr = device_ints 4 and freed = freed_ptr () in
  let here = Context.get_current () in
  let d_to_d = f.in_module ^ ".memcpy_D_to_D" and peer = f.in_module ^ ".memcpy_peer" in
  let both wrong ending ?kind ?length ?size_in_bytes ?dst_offset ?src_offset ?(dst = ptr)
      ?(src = ptr) () =
    [
      row d_to_d wrong ending (fun () ->
          f.d_to_d ?kind ?length ?size_in_bytes ?dst_offset ?src_offset ~dst ~src ());
      row peer wrong ending (fun () ->
          f.peer ?kind ?length ?size_in_bytes ?dst_offset ?src_offset ~dst ~dst_ctx:here
            ~src ~src_ctx:here ());
    ]
  in
  let kind = Bigarray.int32 in
  let two_ways = invalid [ "kind"; "length"; "size_in_bytes" ] in
  let offset n =
    let outside argument =
      invalid [ argument; "offset " ^ number n; "4 bytes"; "16 bytes" ]
    in
    both ("dst_offset " ^ number n) (outside "dst") ~dst_offset:n ~size_in_bytes:4 ()
    @ both ("src_offset " ^ number n) (outside "src") ~src_offset:n ~size_in_bytes:4 ()
  in
  List.concat
    [
      both "no size" two_ways ();
      both "two sizes" two_ways ~kind ~length:1 ~size_in_bytes:4 ();
      both "a kind alone" two_ways ~kind ();
      both "a length alone" two_ways ~length:1 ();
      both "a kind and bytes" two_ways ~kind ~size_in_bytes:4 ();
      both "length -1" (invalid [ "length -1"; "negative" ]) ~kind ~length:(-1) ();
      both "length min_int"
        (invalid [ "length " ^ number min_int; "negative" ])
        ~kind ~length:min_int ();
      both "length max_int"
        (invalid [ "length " ^ number max_int; "too large" ])
        ~kind ~length:max_int ();
      both "length 5" (invalid [ "dst"; "20 bytes"; "16 bytes" ]) ~kind ~length:5 ();
      both "size -1" (invalid [ "-1 bytes"; "negative" ]) ~size_in_bytes:(-1) ();
      both "size min_int"
        (invalid [ number min_int ^ " bytes"; "negative" ])
        ~size_in_bytes:min_int ();
      both "size max_int"
        (invalid [ "dst"; number max_int ^ " bytes"; "16 bytes" ])
        ~size_in_bytes:max_int ();
      List.concat_map offset [ -1; 13; 16; min_int; max_int ];
      both "a freed dst" (invalid [ "dst"; "freed" ]) ~size_in_bytes:4 ~dst:freed ();
      both "a freed src" (invalid [ "src"; "freed" ]) ~size_in_bytes:4 ~src:freed ();
      [
        row peer "dst of another context"
          (invalid [ "dst_ctx"; "dst was allocated in" ])
          (fun () ->
            f.peer ~size_in_bytes:4 ~dst:ptr ~dst_ctx:other ~src:ptr ~src_ctx:here ());
        row peer "src of another context"
          (invalid [ "src_ctx"; "src was allocated in" ])
          (fun () ->
            f.peer ~size_in_bytes:4 ~dst:ptr ~dst_ctx:here ~src:ptr ~src_ctx:other ());
      ];
    ]

let fills f =
  let ptr = device_ints 4 and freed = freed_ptr () in
  let d8 ?offset ?(ptr = ptr) length = f.d8 ?offset ptr Unsigned.UChar.one ~length in
  let d16 ?offset ?(ptr = ptr) length = f.d16 ?offset ptr Unsigned.UShort.one ~length in
  let d32 ?offset ?(ptr = ptr) length = f.d32 ?offset ptr Unsigned.UInt32.one ~length in
  let of_width (width, name, (fill : ?offset:int -> ?ptr:Deviceptr.t -> int -> unit)) =
    let name = f.in_module ^ "." ^ name in
    let row wrong ending call = row name wrong ending call in
    let negative n =
      row
        ("length " ^ number n)
        (invalid [ "length " ^ number n; "negative" ])
        (fun () -> fill n)
    and large n =
      row
        ("length " ^ number n)
        (invalid [ "bytes"; "offset 0"; "16 bytes" ])
        (fun () -> fill n)
    and outside offset =
      row
        ("offset " ^ number offset)
        (invalid [ "offset " ^ number offset; "16 bytes" ])
        (fun () -> fill ~offset 1)
    and crooked offset =
      row
        ("offset " ^ number offset)
        (invalid [ "offset " ^ number offset; "multiple"; number width ])
        (fun () -> fill ~offset 1)
    in
    List.concat
      [
        List.map negative [ -1; min_int ];
        List.map large [ (16 / width) + 1; max_int ];
        List.map outside [ -4; 16; min_int ];
        (if width > 1 then List.map crooked [ 1; -1; max_int ] else [ outside max_int ]);
        [
          row "freed memory" (invalid [ "freed" ]) (fun () -> fill ~ptr:freed 1);
          row "nothing" works (fun () -> fill ~offset:16 0);
        ];
      ]
  in
  List.concat_map of_width
    [ (1, "memset_d8", d8); (2, "memset_d16", d16); (4, "memset_d32", d32) ]

let rows f ~other =
  List.concat [ of_bigarrays f; of_addresses f; on_device f ~other; fills f ]
