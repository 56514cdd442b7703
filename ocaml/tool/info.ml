(* What is here: the driver, its devices, the simulator, NVRTC. *)

open Sexplib0
open Text

let device_row { Task.ordinal; attributes = a; free_memory; total_memory } =
  [
    string_of_int ordinal;
    a.name;
    Printf.sprintf "%d.%d" a.compute_capability_major a.compute_capability_minor;
    bytes total_memory;
    bytes free_memory;
    string_of_int a.multiprocessor_count;
    Printf.sprintf "%d MHz" (a.clock_rate / 1000);
    bytes a.l2_cache_size;
    bytes a.max_shared_memory_per_block_optin;
    (if a.memory_pools_supported then "yes" else "no");
  ]

let device_table devices =
  table
    ~right:[ "compute"; "memory"; "free"; "SMs"; "clock"; "L2"; "shared/block" ]
    [ "device"; "name"; "compute"; "memory"; "free"; "SMs"; "clock"; "L2"; "shared/block"; "pools" ]
    (List.map device_row devices)
[@@ocamlformat "disable"]

let file_of (driver : Task.driver) = Option.value ~default:driver.description driver.file

let driver_text (driver : Task.driver) =
  match driver.file with
  | Some file -> Printf.sprintf "%s, %s" file (Task.version_text driver.version)
  | None -> driver.description

let print_text ~choice driver simulator compiler =
  print
    (match driver with
    | Error failure -> entry "driver" ("none: " ^ Failure.to_string failure)
    | Ok (driver : Task.driver) ->
        entry "driver"
          (Printf.sprintf "%s (CUDAGRAPH_DRIVER=%s)" (driver_text driver) choice));
  print
    (match simulator with
    | Error failure -> entry "simulator" ("none: " ^ Failure.to_string failure)
    | Ok simulator -> entry "simulator" (driver_text simulator));
  print
    (match compiler with
    | Error failure -> entry "NVRTC" ("none: " ^ Failure.to_string failure)
    | Ok { Task.library; nvrtc_version = major, minor; include_folders } ->
        let headers =
          match include_folders with
          | [] -> "no CUDA headers"
          | folders -> "headers in " ^ String.concat ", " folders
        in
        entry "NVRTC" (Printf.sprintf "%s, CUDA %d.%d; %s" library major minor headers));
  match driver with
  | Ok { devices; _ } ->
      print_newline ();
      print (device_table devices)
  | Error _ -> ()

let sexp_of_failure { Failure.status; message } =
  Sexp.List
    [
      field "error"
        (List [ field "status" (atom status); field "message" (atom message) ]);
    ]

let sexp_of_result f = function
  | Ok value -> f value
  | Error failure -> sexp_of_failure failure

let sexp_of_device { Task.ordinal; attributes; free_memory; total_memory } =
  Sexp.List
    [
      field "ordinal" (int ordinal);
      field "free_memory" (int free_memory);
      field "total_memory" (int total_memory);
      field "attributes" (Cuda.Device.sexp_of_attributes attributes);
    ]

let driver_fields (driver : Task.driver) =
  [
    field "description" (atom driver.description);
    field "file" (atom (file_of driver));
    field "version" (int driver.version);
  ]

let sexp_of_driver (driver : Task.driver) =
  Sexp.List
    (driver_fields driver
    @ [ field "devices" (List (List.map sexp_of_device driver.devices)) ])

let sexp_of_compiler { Task.library; nvrtc_version = major, minor; include_folders } =
  Sexp.List
    [
      field "library" (atom library);
      field "version" (List [ int major; int minor ]);
      field "include_folders" (List (List.map atom include_folders));
    ]

let print_sexp ~choice driver simulator compiler =
  print_sexp
    (List
       [
         field "chosen" (atom choice);
         field "driver" (sexp_of_result sexp_of_driver driver);
         field "simulator"
           (sexp_of_result (fun s -> Sexp.List (driver_fields s)) simulator);
         field "nvrtc" (sexp_of_result sexp_of_compiler compiler);
       ])

(* Whether the chosen driver works. *)
let run ~sexp ~choice =
  let driver = Task.describe ~driver:choice () in
  let simulator = if choice = "sim" then driver else Task.describe ~driver:"sim" () in
  let compiler = Task.compiler () in
  (if sexp then print_sexp else print_text) ~choice driver simulator compiler;
  Result.is_ok driver
