(* Intervals of bigarrays, in elements, turned into bytes. *)

let element_bytes array = Bigarray.kind_size_in_bytes (Bigarray.Genarray.kind array)
let elements array = Array.fold_left ( * ) 1 (Bigarray.Genarray.dims array)

(* The byte offset and the bytes of [length] elements from [host_offset], which must be inside the
   bigarray called [name]. Without a length: up to the end, less [reserved] bytes. *)
let interval ~where ~name ?(host_offset = 0) ?length ?(reserved = 0) array =
  let refuse text = invalid_arg (where ^ ": " ^ text) in
  let size = element_bytes array and count = elements array in
  if host_offset < 0 || host_offset > count then
    refuse
      (Printf.sprintf "host_offset %d is not between 0 and the %d elements of %s"
         host_offset count name);
  match length with
  | Some length ->
      if length < 0 || length > count - host_offset then
        refuse
          (Printf.sprintf
             "length %d from host_offset %d is not inside %s, which has %d elements"
             length host_offset name count);
      (host_offset * size, length * size)
  | None ->
      if reserved < 0 then
        refuse (Printf.sprintf "the device offset of %d bytes is negative" reserved);
      let bytes = ((count - host_offset) * size) - reserved in
      if bytes < 0 then
        refuse
          (Printf.sprintf "the device offset of %d bytes is past the %d bytes of %s"
             reserved
             ((count - host_offset) * size)
             name);
      (host_offset * size, bytes)

(* The bytes of a copy on the device, given in one of two ways. *)
let device_bytes (type a b) ~where ?(kind : (a, b) Bigarray.kind option) ?length
    ?size_in_bytes () =
  let refuse text = invalid_arg (where ^ ": " ^ text) in
  let bytes =
    match (kind, length, size_in_bytes) with
    | None, None, Some bytes -> bytes
    | Some kind, Some length, None ->
        let size = Bigarray.kind_size_in_bytes kind in
        if length < 0 then refuse (Printf.sprintf "length %d is negative" length);
        if length > max_int / size then
          refuse (Printf.sprintf "length %d is too large" length);
        length * size
    | _ -> refuse "give either both kind and length, or size_in_bytes alone"
  in
  if bytes < 0 then refuse (Printf.sprintf "the size of %d bytes is negative" bytes);
  bytes
