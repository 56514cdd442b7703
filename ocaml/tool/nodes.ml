(* The files by which the driver reaches the kernel module and the GPUs, on Linux. *)

let can_open file =
  match Unix.access file [ R_OK; W_OK ] with
  | () -> true
  | exception Unix.Unix_error _ -> false

let is_gpu name =
  String.starts_with ~prefix:"nvidia" name
  && String.length name > 6
  && String.for_all
       (fun c -> c >= '0' && c <= '9')
       (String.sub name 6 (String.length name - 6))

(* [Ok] with what was found, or what is wrong and how to mend it. *)
let check ?(folder = "/dev") () =
  let at name = Filename.concat folder name in
  if Sys.file_exists (at "dxg") then
    (* Windows Subsystem for Linux *)
    if can_open (at "dxg") then Ok (at "dxg")
    else Error (at "dxg" ^ " cannot be opened", "Allow this user to read and write it.")
  else
    let names = try Sys.readdir folder with Sys_error _ -> [||] in
    let gpus = List.filter is_gpu (List.sort compare (Array.to_list names)) in
    let needed = "nvidiactl" :: "nvidia-uvm" :: gpus in
    let missing = List.filter (fun name -> not (Sys.file_exists (at name))) needed in
    let closed = List.filter (fun name -> not (can_open (at name))) needed in
    let list names = String.concat ", " (List.map at names) in
    if gpus = [] then
      Error
        ( "no " ^ at "nvidia0",
          "Load the kernel module: run nvidia-modprobe -u -c 0 as root, and see dmesg if that \
           fails. " ^ Advice.container )
    else if missing <> [] then
      Error ("missing: " ^ list missing, "Run nvidia-modprobe -u -c 0 as root.")
    else if closed <> [] then
      Error
        ( "cannot be opened by this user: " ^ list closed,
          "Allow this user to read and write them; see their groups with ls -l (often video or \
           render), and add the user with usermod -aG GROUP USER." )
    else Ok (list needed)
[@@ocamlformat "disable"]
