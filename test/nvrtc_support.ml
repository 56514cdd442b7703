(* What the tests of Nvrtc share.

   Tests that need NVRTC are skipped, aloud, where it is not found - unless
   CUDAGRAPH_TEST_NVRTC says which version there must be, as "12.9". *)

open Support
open Cuda

let wanted = Sys.getenv_opt "CUDAGRAPH_TEST_NVRTC"
let nvrtc_status status = sexp (Nvrtc.sexp_of_result status)

let absence =
  match Nvrtc.version () with
  | _ -> None
  | exception Nvrtc.Nvrtc_error { message; _ } -> Some message

(* A test that needs NVRTC. *)
let compiling name f =
  test name (fun () ->
      match (absence, wanted) with
      | None, _ -> f ()
      | Some why, None -> print_endline ("skipped: " ^ why)
      | Some why, Some version -> Alcotest.failf "there must be NVRTC %s: %s" version why)

let check_parts name text parts =
  List.iter
    (fun part ->
      Alcotest.(check bool)
        (Printf.sprintf "%s: %S names %S" name text part)
        true (contains text part))
    parts

(* The same for one that runs what it has compiled: no driver takes PTX that is newer than itself. *)
let running name f =
  compiling name (fun () ->
      let major, minor = Nvrtc.version () and driver = Cuda.driver_version () in
      if (1000 * major) + (10 * minor) <= driver then f ()
      else
        Printf.printf "skipped: NVRTC %d.%d is newer than the driver, of CUDA %d.%d\n"
          major minor (driver / 1000)
          (driver mod 1000 / 10))

(* [f] fails with a status of NVRTC, and a text that holds [parts]. *)
let check_nvrtc_error name status parts f =
  match f () with
  | _ -> Alcotest.failf "%s: no error" name
  | exception Nvrtc.Nvrtc_error { status = got; message } ->
      Alcotest.(check string) (name ^ ": status") ("NVRTC_" ^ status) (nvrtc_status got);
      check_parts name message parts

let in_folder f =
  let folder = Filename.temp_dir "cudagraph" ".nvrtc" in
  let rec remove path =
    match (Unix.lstat path).st_kind with
    | S_DIR ->
        Array.iter (fun name -> remove (Filename.concat path name)) (Sys.readdir path);
        Sys.rmdir path
    | _ -> Sys.remove path
  in
  Fun.protect ~finally:(fun () -> remove folder) (fun () -> f folder)

let write_file folder name text =
  let file = Filename.concat folder name in
  Out_channel.with_open_bin file (fun channel -> output_string channel text);
  file

let saxpy =
  {|extern "C" __global__ void saxpy(float a, const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}|}

(* Runs [name] of a program with one thread and an array of ints; its first values. *)
let first_ints ?(n = 1) image name =
  let s = stream () and p = device_ints n in
  run (Module.get_function (Module.load_ptx image) ~name) ~threads:1 s [ Tensor p ];
  Stream.synchronize s;
  read ~n p
