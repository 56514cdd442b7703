(* What is asked of the driver and of NVRTC. Each of these runs in a process of its own. *)

open Cuda

type device = {
  ordinal : int;
  attributes : Device.attributes;
  free_memory : int;  (** Bytes. *)
  total_memory : int;  (** Bytes. *)
}

type driver = {
  description : string;
  file : string option;  (** Where it was loaded from, if that can be told. *)
  version : int;
  devices : device list;
}

(* The file, among those that are mapped into this process, whose name starts so. *)
let mapped_file prefix =
  let starts line =
    match String.index_opt line '/' with
    | None -> None
    | Some i ->
        let file = String.sub line i (String.length line - i) in
        if String.starts_with ~prefix (Filename.basename file) then Some file else None
  in
  match In_channel.with_open_bin "/proc/self/maps" In_channel.input_all with
  | exception Sys_error _ -> None
  | text -> List.find_map starts (String.split_on_char '\n' text)

let start_device device = Context.set_current (Context.get_primary device)

let describe_device ordinal =
  let device = Device.get ~ordinal in
  start_device device;
  let free_memory, total_memory = Device.get_free_and_total_mem () in
  { ordinal; attributes = Device.get_attributes device; free_memory; total_memory }

let driver_file () =
  match mapped_file "libcudagraph_sim" with
  | Some file -> Some file
  | None -> mapped_file "libcuda."

let describe () =
  Cuda.init ();
  {
    description = driver_description ();
    file = driver_file ();
    version = driver_version ();
    devices = List.init (Device.get_count ()) describe_device;
  }

let n = 256

let increment stream kernel memory =
  Stream.launch_kernel kernel ~grid_dim_x:1 ~block_dim_x:n ~shared_mem_bytes:0 stream
    [ Tensor memory; Int n ]

let zeros () = Bigarray.(Genarray.init int32 c_layout [| n |] (fun _ -> 0l))

(* Every element of [memory] is [wanted], or [Failure]. *)
let expect wanted memory =
  let host = zeros () in
  Deviceptr.memcpy_D_to_H ~dst:host ~src:memory ();
  for i = 0 to n - 1 do
    let found = Int32.to_int (Bigarray.Genarray.get host [| i |]) in
    if found <> wanted then
      Printf.ksprintf failwith "wrong result: element %d is %d, not %d" i found wanted
  done

let load_increment () =
  Module.get_function (Module.load_ptx Kernel_ptx.text) ~name:"increment"

let run_kernel () =
  let stream = Stream.create ~non_blocking:true () in
  let memory = Deviceptr.alloc_and_memcpy (zeros ()) in
  increment stream (load_increment ()) memory;
  Stream.synchronize stream;
  expect 1 memory;
  Printf.sprintf "%d threads, result checked" n

let replay_graph () =
  let stream = Stream.create ~non_blocking:true () in
  let memory = Deviceptr.alloc_and_memcpy (zeros ()) in
  let kernel = load_increment () in
  let graph, () =
    Graph.with_capture stream (fun () ->
        increment stream kernel memory;
        increment stream kernel memory)
  in
  let exec = Graph.instantiate graph in
  for _ = 1 to 10 do
    Graph.launch exec stream
  done;
  Stream.synchronize stream;
  expect 20 memory;
  "2 kernels, replayed 10 times, result checked"

let version_text version =
  Printf.sprintf "CUDA %d.%d" (version / 1000) (version mod 1000 / 10)

(* One after the other, up to the first that fails: name, and what there is to say. *)
let exercise () =
  let load () =
    Cuda.init ();
    match driver_file () with Some file -> file | None -> driver_description ()
  in
  let version () =
    let version = driver_version () in
    if version < 12000 then
      Printf.ksprintf failwith "%s; 12.0 or newer is needed" (version_text version);
    version_text version
  in
  let device () =
    let device = Device.get ~ordinal:0 in
    start_device device;
    let { Device.name; compute_capability_major; compute_capability_minor; _ } =
      Device.get_attributes device
    in
    Printf.sprintf "%d, the first is %s, compute capability %d.%d" (Device.get_count ())
      name compute_capability_major compute_capability_minor
  in
  let rec go = function
    | [] -> []
    | (name, step) :: rest -> (
        match Failure.catch step with
        | Ok _ as ok -> (name, ok) :: go rest
        | Error _ as error -> [ (name, error) ])
  in
  go
    [
      ("driver", load);
      ("version", version);
      ("device", device);
      ("kernel", run_kernel);
      ("graph", replay_graph);
    ]

type compiler = {
  library : string;
  nvrtc_version : int * int;
  include_folders : string list;
}

let compiler () =
  {
    library = Nvrtc.library ();
    nvrtc_version = Nvrtc.version ();
    include_folders = Nvrtc.include_folders ();
  }

let source = "extern \"C\" __global__ void f(int *p) { *p = 1; }"
let compile () = Nvrtc.Program.compile ~name:"doctor.cu" source

let compile_alone () =
  ignore (compile ());
  "a kernel compiles"

let compile_and_load () =
  let program = compile () in
  Cuda.init ();
  start_device (Device.get ~ordinal:0);
  let code = Module.load_data_ex (Nvrtc.Program.to_load program) [] in
  ignore (Module.get_function code ~name:"f");
  "a kernel compiles, and the driver takes it"

(* The names under which [Child.run] asks for them. *)

let serve = function
  | "describe" -> Child.serve describe
  | "exercise" -> Child.serve exercise
  | "compiler" -> Child.serve compiler
  | "compile" -> Child.serve compile_alone
  | "compile and load" -> Child.serve compile_and_load
  | other -> failwith ("no task " ^ other)

let describe ?driver () : (driver, Failure.t) Result.t = Child.run ?driver "describe"

let exercise ?driver () :
    ((string * (string, Failure.t) Result.t) list, Failure.t) Result.t =
  Child.run ?driver "exercise"

let compiler () : (compiler, Failure.t) Result.t = Child.run "compiler"
let compile () : (string, Failure.t) Result.t = Child.run "compile"

let compile_and_load ?driver () : (string, Failure.t) Result.t =
  Child.run ?driver "compile and load"
