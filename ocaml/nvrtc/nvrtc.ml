(** {!Cudagraph.Nvrtc} under the name that programs for cudajit use. *)
include Cudagraph.Nvrtc
