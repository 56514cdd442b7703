include Cudagraph
(** The modules of {!Cudagraph} under the name that programs for cudajit use. *)
