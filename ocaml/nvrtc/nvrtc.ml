include Cudagraph.Nvrtc
(** {!Cudagraph.Nvrtc} under the name that programs for cudajit use. *)
